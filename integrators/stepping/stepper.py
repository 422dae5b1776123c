"""What a run asks of whatever takes the steps, be it an engine of ours or another package's solver.

:class:`Options` is what ``solve`` hands over, :class:`Stepper` what it gets back.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP, has_text
from .control import Controller, first_length, trial_length

__all__ = ["Options", "Stepper", "Take", "checked_slope"]

Array = NDArray[np.float64]

# take(t, y, ends, states, Q): the run is handed steps from (t, y), and says whether it ends.
Take = Callable[[float, Array, Array, Array, Array | None], bool]


class Options:
    """What ``solve`` hands to a method, checked."""

    def __init__(
        self,
        *,
        rtol: float,
        atol: Array,
        step: float | None,
        controller: Controller | None,
        max_norm: bool,
        min_step: float,
        max_step: float,
        max_steps: int,
        want_dense: bool,
        outputs: Array,
        linear: Any = None,
        idle_tolerances: bool = False,
    ) -> None:
        self.rtol = rtol
        self.atol = atol
        self.step, self.fixed = step, step is not None
        self.idle_tolerances = idle_tolerances  # given beside a fixed step
        self.controller = controller
        self.max_norm = max_norm
        self.min_step = min_step
        self.max_step = max_step
        self.max_steps = max_steps
        self.want_dense = want_dense
        self.outputs = outputs  # the only times where dense output is needed; empty: everywhere
        self.linear = linear  # how linear systems are solved, a LinearChoice; None: as is best


def checked_slope(
    value: Any, y: NDArray[Any], of: str = "f", what: str = "the derivative of each component"
) -> NDArray[Any]:
    """Return the value of f, or of another function, as an array like y; or say what is wrong."""
    if value is None:
        raise TypeError(
            f"{of} returned None; expected {y.size} numbers, {what} "
            "(is a return statement missing?)"
        )
    try:
        slope = np.asarray(value)
        if has_text(slope):
            raise TypeError
        if slope.dtype.kind not in "biufc":
            slope = np.asarray(value, dtype=y.dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{of} returned {value!r}; expected {y.size} numbers, {what}") from None
    if slope.shape != y.shape:
        if slope.shape == () and y.size == 1:
            slope = slope.reshape(1)
        elif slope.size == y.size and slope.ndim == 2 and 1 in slope.shape:
            slope = slope.reshape(y.shape)
        else:
            raise ValueError(
                f"{of} returned an array of shape {slope.shape} for a state of shape {y.shape}; "
                f"it must return {what} of y"
            )
    if slope.dtype.kind == "c" and y.dtype.kind != "c":
        raise TypeError(
            f"{of} returned complex values but y0 is real; start from a complex y0 "
            "(for example np.array(y0, dtype=complex))"
        )
    return slope


class Stepper(ABC):
    """A problem and something that takes steps for it; ``Run`` does everything else.

    States are exchanged as real vectors (:meth:`to_real`); each accepted step comes with its
    end, the state there and, if ``options.want_dense``, the coefficients Q of its interpolant
    y + Σⱼ Q[j] θʲ⁺¹, where + is :attr:`move`.

    Attributes
    ----------
    estimate
        How errors are estimated, in words.
    dense_order
        Order of the interpolants.
    keeps_bounds
        Whether steps that make a non-negative component negative are rejected.
    linear_solver
        How linear systems are solved, in words; empty for methods that solve none.
    failure
        What a solver from elsewhere said of its own failure.
    move
        ``move(y, z)``: the state that the increment z leads to from y; y + z on a vector space.
    """

    estimate: str
    dense_order: int
    failure: str = ""
    look: bool = True
    unprojected: bool = True
    keeps_bounds: bool = False
    linear_solver: str = ""
    move: Callable[..., NDArray[Any]] = staticmethod(operator.add)

    def __init__(self, problem: IVP, options: Options) -> None:
        self.problem = problem
        self.options = options
        self.complex = problem.y0.dtype.kind == "c"
        self.n = self._dimension()

    def _dimension(self) -> int:
        """Length of the real vectors that the method works with."""
        return int(self.problem.y0.size) * (2 if self.complex else 1)

    @property
    def is_native(self) -> bool:
        """Whether steps are machine code throughout, so that no Python runs between them."""
        return False

    @property
    @abstractmethod
    def t(self) -> float:
        """Current time."""

    @property
    @abstractmethod
    def y(self) -> NDArray[Any]:
        """Current state, a copy."""

    @property
    @abstractmethod
    def h(self) -> float:
        """Magnitude proposed for the next step."""

    @abstractmethod
    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y), counted; raises what f raises."""

    @abstractmethod
    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Prepare the first step; ``slope`` is f(t0, y0)."""

    @abstractmethod
    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Take steps up to ``t_stop`` and hand them over, if wished one at a time.

        ``take`` may call :meth:`restart` or :meth:`replace_state`; the march then goes on from
        there. Returns REACHED, OK if ``take`` ended the run, or the code of a failure.
        """

    def watch(self, functions: Sequence[Any], values: Array) -> bool:
        """Watch for zeros of event functions while marching, if they are machine code.

        If so, steps are handed over in numbers, and :attr:`look` tells whether the last of them
        may hold a zero. ``values``, those of the functions at the current time, are shared: after
        a look they are renewed by whoever took it.
        """
        return False

    def project_in_loop(self, project: Any) -> bool:
        """Project after each step while marching, if the projection is machine code.

        If so, steps are handed over in numbers, and :attr:`unprojected` tells whether the last of
        them still is to be projected.
        """
        return False

    def renew(self) -> None:  # noqa: B027
        """Told after a projection by Python, which may have chosen another f."""

    @abstractmethod
    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one (projection): no slope survives."""

    @abstractmethod
    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Start afresh from (t, y) after a jump; nothing known about the past is used."""

    def forget(self) -> None:  # noqa: B027
        """Told that the state has been moved far: what was learnt from earlier steps is void."""

    def stop(self) -> None:
        """Asked from another thread to end before the next step, if the method can."""
        return

    @abstractmethod
    def error(self) -> BaseException | None:
        """Return what a Python function raised, once."""

    @abstractmethod
    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""

    def release(self) -> None:
        """Told at the end of a run that nobody needs the engine any more."""
        return

    def initial_step(self, slope: NDArray[Any], order: int, rtol: float) -> float:
        """Hairer's first guess (II.4): a step on which an Euler step changes little."""
        t0, t1 = self.problem.t_span
        y0, length, forward = self.problem.y0, abs(t1 - t0), np.sign(t1 - t0)
        if self.problem.mass is not None:  # f is not the derivative
            # Multipliers of index 3 have rounding errors of y over h²: no shorter than it must be.
            index = self.problem.index
            return min(1e-6 if index is None or np.max(index) < 3 else 1e-3, 1e-3 * length)
        size = self.size(y0)
        scale = self.options.atol + rtol * size
        d0, d1 = _rms(size / scale), _rms(slope / scale)
        h0 = trial_length(d0, d1, length)
        try:
            ahead = self.slope(t0 + forward * h0, self.move(y0, forward * h0 * slope))
        except Exception:  # a trial outside f's domain is no failure of the run
            return float(max(min(1e-3 * h0, length), 1e-12 * length))
        d2 = _rms((ahead - slope) / scale) / h0
        return float(first_length(h0, d1, d2, 1 / (order + 1), length))

    def size(self, y: NDArray[Any]) -> Array:
        """Sizes of the components at y that relative tolerances refer to."""
        return np.abs(y)

    # ------------------------------------------------------------ real and complex states

    def to_real(self, y: NDArray[Any]) -> Array:
        """Real view of a state: complex numbers as (real, imaginary) pairs."""
        if self.complex:
            return np.ascontiguousarray(y, dtype=np.complex128).view(np.float64)
        return np.ascontiguousarray(y, dtype=np.float64)

    def from_real(self, y: Array) -> NDArray[Any]:
        """Undo :meth:`to_real`, for any array whose last axis is the state."""
        return np.ascontiguousarray(y).view(np.complex128) if self.complex else y

    def to_real_weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Repeat per-component weights for real and imaginary parts."""
        return np.repeat(weights, 2) if self.complex else np.ascontiguousarray(weights)


def _rms(x: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.abs(x) ** 2)))
