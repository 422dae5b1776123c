"""The time loop of a run in two tiers: as Python at first, as machine code when there is some.

The workspace serves both. A run goes over between two steps, and takes the same steps, to the last
bit, as if it had been one or the other from the start.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..kernels.as_python import interpret, uninterrupted
from ..kernels.c_functions import STATUS, c_function
from ..kernels.tiers.tiers import C_TYPES, Tier
from . import loop
from .state import FUNCTION_RAISED
from .workspace import Steps

__all__ = ["LoopKernels"]

#: Interpreted, so many seconds pass between two looks at the keyboard and for machine code …
INTERVAL = 0.05
#: … and at most so many steps.
MOST_STEPS = 64

#: Types of the loop's kernels as C functions: while Python functions may be called from them, other
#: threads wait. (ctypes makes a class for each of these calls.)
_HOLDING, _RELEASING = ctypes.PYFUNCTYPE(*C_TYPES[STATUS]), ctypes.CFUNCTYPE(*C_TYPES[STATUS])

LoopKernel = Callable[[Any, float, float], int]  # kernel(w, …): status


class LoopKernels:
    """``advance`` and ``first_step`` of the time loop on the workspace of an engine.

    Parameters
    ----------
    w
        The workspace; its fields that are kernels are those of the method.
    calls_python
        Whether Python functions are called from the loop; if not, other threads may run meanwhile.
    """

    advance: LoopKernel
    first_step: LoopKernel

    def __init__(self, w: Any, calls_python: bool) -> None:
        self._w = w
        self._type: Any = _HOLDING if calls_python else _RELEASING
        own, family = w.kernels(), cast(Any, type(w))
        self._names = list(own)
        self._tier = Tier(
            [
                c_function(loop.advance, Steps, STATUS),
                c_function(loop.first_step, Steps, STATUS),
                *[c_function(kernel, family, STATUS) for kernel in own.values()],
            ]
        )
        self._steps = 1
        self.is_compiled = False
        self.advance, self.first_step = self._advance, self._first_step
        self.begin_run()

    def begin_run(self) -> None:
        """Look for machine code before a run."""
        if not (self.is_compiled or self._goes_over()):
            self._tier.run_begins()

    def _goes_over(self) -> bool:
        found = self._tier.look()
        if found is None:
            return False
        for name, address in zip(self._names, found[2:]):
            self._w.enter_address(name, address)
        self.advance, self.first_step = (self._called(address) for address in found[:2])
        self.is_compiled = True
        return True

    def _called(self, address: int) -> LoopKernel:
        function = self._type(address)
        return lambda w, *numbers: function(w.address, *numbers)

    # ------------------------------------------------------------ interpreted

    def _advance(self, w: Any, t_stop: float, wanted: float) -> int:
        """Take some steps as Python; fewer than wanted, so that there is a chance to go over."""
        if self._goes_over():
            return self.advance(w, t_stop, wanted)
        start, before = time.perf_counter(), int(w.nsteps)
        with uninterrupted() as pressed:
            wanted = min(int(wanted), self._steps)
            status = int(interpret(loop.advance, w, np.float64(t_stop), wanted))
            if pressed() and status >= 0:
                status = FUNCTION_RAISED  # without an error of a function: Ctrl-C
        seconds = time.perf_counter() - start
        self._tier.spent(seconds)
        each = seconds / max(1, int(w.nsteps) - before)
        self._steps = int(min(max(1.0, INTERVAL / max(each, 1e-9)), MOST_STEPS))
        return status

    def _first_step(self, w: Any, t: float, exponent: float) -> int:
        return int(interpret(loop.first_step, w, np.float64(t), np.float64(exponent)))
