"""Programs as C functions without a compiler: Python behind a callback.

Where there is no LLVM (a browser's Python, for instance), whoever asks a traced function for its
machine code gets this: the same attributes, the same call, at the speed of Python.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .graph import FLOATS, Program

__all__ = ["InterpretedCode"]

#: Larger programs are run node by node; Python would take long to read them as one function.
LARGEST_FUNCTION = 20_000

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class InterpretedCode:
    """Stands in for :class:`~.llvm.codegen.MachineCode`, with the same attributes.

    Parameters
    ----------
    program
        Its inputs are t, n states, then parameters.
    n
        How many states there are.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> code = InterpretedCode(trace(lambda t, y, p: y * p[0] + t, (), 2, 1), n=2)
    >>> code(1.0, [3.0, 4.0], [10.0])
    array([31., 41.])
    """

    lanes = 1

    def __init__(self, program: Any, n: int) -> None:
        k = len(program.inputs) - 1 - n
        self.size = size = int(np.prod(program.shape))
        self._evaluate = evaluate = _function(program, n)
        doubles, vectors = ctypes.c_double, cast(Any, np.frombuffer)
        states, parameters, results = doubles * max(n, 1), doubles * max(k, 1), doubles * size

        def run(t: float, y: int, p: int, out: int) -> None:
            x = vectors(states.from_address(y)) if n else ()
            given = vectors(parameters.from_address(p)) if k else ()
            try:
                values = evaluate(np.float64(t), x, given)
            except KeyboardInterrupt:  # it cannot leave a callback: once more, and Ctrl-C later
                values = evaluate(np.float64(t), x, given)
                threading.Timer(0.001, _thread.interrupt_main).start()
            vectors(results.from_address(out))[:] = values

        pointers = [ctypes.c_void_p] * 3
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_double, *pointers)(run)
        self.address = int(ctypes.c_void_p.from_buffer(self.function).value or 0)

    def __call__(self, t: Any, y: Any, p: Any = (), out: np.ndarray | None = None) -> np.ndarray:
        """Evaluate (t, y[n], p[k])."""
        y, p = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
        out = np.empty(self.size) if out is None else out
        out[:] = self._evaluate(np.float64(t), y, p)
        return out


def _function(program: Any, n: int) -> Callable[..., Any]:
    """Return a Python function (t, y, p) → values of a program."""
    if not isinstance(program, Program):
        return lambda t, y, p: program.evaluate(np.concatenate([[t], y, p]))
    if len(program) > LARGEST_FUNCTION:
        return lambda t, y, p: program.evaluate([t, *y, *p])
    names: dict[str, Any] = {}
    lines = []
    for j, (op, a) in enumerate(zip(program.ops, program.args)):
        if op == "const":
            names[f"v{j}"] = np.float64(a[0])
            continue
        if op == "input":
            k = a[0]
            value = "t" if k == 0 else f"y[{k - 1}]" if k <= n else f"p[{k - 1 - n}]"
        elif op in _SIGNS:
            value = f"v{a[0]} {_SIGNS[op]} v{a[1]}"
        else:
            names[f"do_{op}"] = FLOATS[op]
            value = f"do_{op}({', '.join(f'v{i}' for i in a)})"
        lines.append(f" v{j} = {value}")
    results = ", ".join(f"v{o}" for o in program.outputs)
    exec("def f(t, y, p):\n" + "\n".join(lines) + f"\n return [{results}]", names)
    quiet: Callable[..., Any] = np.errstate(all="ignore")(names["f"])
    return quiet
