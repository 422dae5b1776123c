"""A method bound to a problem: buffers, callbacks, and the compiled loop that works on them.

:class:`Stepper` is all that a run asks of whatever takes the steps. :class:`Engine` is the bridge
between Python objects and kernels. It owns the arrays that the loop sees, wraps the problem's
functions as pointers, and restarts the method after a jump.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..control import Controller
from ..kernels import address_of, compiled
from ..problem import IVP
from . import state as at
from .common import hermite_order, hermite_tables
from .pointers import SlopeTrampoline, Trampoline, call

__all__ = ["Engine", "Options", "Stepper", "Take", "checked_slope"]

Array = NDArray[np.float64]

# take(t, y, ends, states, Q): the run is handed steps from (t, y), and says whether it ends.
Take = Callable[[float, Array, Array, Array, Array | None], bool]

BUFFER_BYTES = 4_000_000  # output of one call of the loop
MAX_CHUNK = 4096  # steps between two looks at the keyboard


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
    ) -> None:
        self.rtol = rtol
        self.atol = atol
        self.step = step
        self.controller = controller
        self.max_norm = max_norm
        self.min_step = min_step
        self.max_step = max_step
        self.max_steps = max_steps
        self.want_dense = want_dense
        self.outputs = outputs  # the only times where dense output is needed; empty: everywhere

    @property
    def fixed(self) -> bool:
        """Whether the step is fixed."""
        return self.step is not None


def checked_slope(value: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return f's value as an array like y, or say what is wrong with it."""
    if value is None:
        raise TypeError(
            f"f returned None; expected {y.size} numbers, the derivative of each component "
            "(is a return statement missing?)"
        )
    try:
        slope = np.asarray(value)
        if slope.dtype.kind not in "biufc":
            slope = np.asarray(value, dtype=y.dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"f returned {value!r}; expected {y.size} numbers, the derivative of each component"
        ) from None
    if slope.shape != y.shape:
        if slope.shape == () and y.size == 1:
            slope = slope.reshape(1)
        elif slope.size == y.size and slope.ndim == 2 and 1 in slope.shape:
            slope = slope.reshape(y.shape)
        else:
            raise ValueError(
                f"f returned an array of shape {slope.shape} for a state of shape {y.shape}; "
                "it must return the derivative of each component of y"
            )
    if slope.dtype.kind == "c" and y.dtype.kind != "c":
        raise TypeError(
            "f returned complex values but y0 is real; start from a complex y0 "
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
    failure
        What a solver from elsewhere said of its own failure.
    move
        ``move(y, z)``: the state that the increment z leads to from y; y + z on a vector space.
    """

    estimate: str
    dense_order: int
    failure: str = ""
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

    @abstractmethod
    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one (projection): no slope survives."""

    @abstractmethod
    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Start afresh from (t, y) after a jump; nothing known about the past is used."""

    @abstractmethod
    def error(self) -> BaseException | None:
        """Return what a Python function raised, once."""

    @abstractmethod
    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""

    def initial_step(self, slope: NDArray[Any], order: int, rtol: float) -> float:
        """Hairer's first guess (II.4): a step on which an Euler step changes little."""
        t0, t1 = self.problem.t_span
        y0, length, forward = self.problem.y0, abs(t1 - t0), np.sign(t1 - t0)
        if self.problem.mass is not None:  # f is not the derivative
            return min(1e-6, 1e-3 * length)
        size = self.size(y0)
        scale = self.options.atol + rtol * size
        d0, d1 = _rms(size / scale), _rms(slope / scale)
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h0 = min(h0, length)
        try:
            ahead = self.slope(t0 + forward * h0, self.move(y0, forward * h0 * slope))
        except Exception:  # a trial outside f's domain is no failure of the run
            return float(max(min(1e-3 * h0, length), 1e-12 * length))
        d2 = _rms((ahead - slope) / scale) / h0
        if not np.isfinite(d2):
            return 1e-3 * h0
        largest = max(d1, d2)
        if largest <= 1e-15:
            h1 = max(1e-6, h0 * 1e-3)
        else:
            h1 = (0.01 / largest) ** (1 / (order + 1))
        return float(min(100 * h0, h1, length))

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

    def to_real_weights(self, weights: Array) -> Array:
        """Repeat per-component weights for real and imaginary parts."""
        return np.repeat(weights, 2) if self.complex else np.ascontiguousarray(weights)


class Engine(Stepper):
    """The arrays and callbacks of one run.

    Subclasses add what their family needs and build the workspace in ``_workspace``.
    """

    order: int
    estimate_order: int
    default_controller = Controller()
    degree: int

    def __init__(self, problem: IVP, options: Options) -> None:
        super().__init__(problem, options)
        n = self.n
        self.flag = np.zeros(1, dtype=np.int64)
        self.x, self.dx = np.zeros(n), np.zeros(n)
        self.clock = np.zeros(at.CLOCK_SIZE)
        self.count = np.zeros(at.COUNT_SIZE, dtype=np.int64)
        self.trampolines: list[Trampoline] = []
        self._prepare_state()
        self._setup()
        degree = self.degree if options.want_dense else 0
        per_step = 8 * n * (1 + degree)
        self.chunk = int(max(1, min(MAX_CHUNK, BUFFER_BYTES // per_step)))
        self.ts = np.zeros(self.chunk)
        self.ys = np.zeros((self.chunk, n))
        self.Qs = np.zeros((self.chunk if options.want_dense else 1, self.degree, n))
        self.w = self._workspace(self._shared())
        self._advance = compiled(_loop().advance)

    # ------------------------------------------------------------ for subclasses

    @abstractmethod
    def _setup(self) -> None:
        """Find order, estimate and dense output; fill switches."""

    @abstractmethod
    def _kernels(self) -> tuple[Any, ...]:
        """Family of the workspace, and the kernels attempt, accepted, dense and refine."""

    @abstractmethod
    def _workspace(self, shared: dict[str, Any]) -> Any:
        """Build the workspace from the shared arrays and the family's own."""

    def _first_vector(self) -> Array:
        """The vector w.y at the start: the initial state."""
        return self.to_real(self.problem.y0)

    # ------------------------------------------------------------ set-up

    def _prepare_state(self) -> None:
        problem, options, clock, count = self.problem, self.options, self.clock, self.count
        t0, t1 = problem.t_span
        clock[at.T] = clock[at.T_PREVIOUS] = clock[at.T_BASE] = t0
        clock[at.T_STOP] = t1
        clock[at.T_LIMIT] = np.inf if t1 >= t0 else -np.inf
        clock[at.DIRECTION] = 1.0 if t1 >= t0 else -1.0
        clock[at.RTOL] = options.rtol
        clock[at.MIN_STEP] = options.min_step
        clock[at.MAX_STEP] = options.max_step
        clock[at.H_FIXED] = clock[at.DIRECTION] * (options.step or 0.0)
        clock[at.ERROR] = clock[at.ERROR_BEFORE] = 1.0
        count[at.FIXED] = int(options.fixed)
        count[at.MAX_STEPS] = options.max_steps
        count[at.MAX_NORM] = int(options.max_norm)
        count[at.PAIRS] = int(self.complex)
        count[at.WANT_DENSE] = int(options.want_dense)

    def _shared(self) -> dict[str, Any]:
        problem, n = self.problem, self.n
        stages = int(self.count[at.STAGES] + self.count[at.EXTRA_STAGES])
        controller = self.options.controller or self.default_controller
        index = np.zeros(0, dtype=np.int64) if problem.index is None else problem.index
        vectors = ("y", "y_old", "y_new", "f0", "f1", "error", "error_low", "big", "saved")
        shared: dict[str, Any] = {name: np.zeros(n) for name in vectors}
        shared["y"][:] = self._first_vector()
        self.f_address = self._rhs_address()
        family, attempt, accepted, dense, refine = self._kernels()
        shared.update(
            attempt=address_of(attempt, family),
            accepted=address_of(accepted, family),
            dense=address_of(dense, family),
            refine=address_of(refine, family),
            f=self.f_address,
            clock=self.clock,
            count=self.count,
            control=controller.to_array(self.estimate_order),
            flag=self.flag,
            x=self.x,
            dx=self.dx,
            p=np.ascontiguousarray(problem.params, dtype=np.float64),
            atol=self.to_real_weights(self.options.atol),
            index=np.ascontiguousarray(index, dtype=np.int64),
            K=np.zeros((max(stages, 1), n)),
            P=np.zeros((0, 0)),
            Q=np.zeros((self.degree, n)),
            outputs=self.options.outputs,
            **hermite_tables(hermite_order(self.order), n),
        )
        return shared

    def _use_hermite(self) -> None:
        self.count[at.DENSE] = at.DENSE_HERMITE
        self.dense_order = hermite_order(self.order)
        self.degree = max(3, self.dense_order)

    def _use_doubling(self) -> None:
        self.count[at.ESTIMATE] = at.ESTIMATE_DOUBLING
        self.clock[at.DOUBLING_DIVISOR] = 2.0**self.order - 1.0
        self.estimate_order = self.order
        self.estimate = "step doubling"

    def _rhs_address(self) -> int:
        code = self._machine_code(self.problem.f)
        if code is not None:
            self.count[at.NATIVE] = 1
            return code
        f = self.problem.bind(self.problem.f)
        made = SlopeTrampoline(f, *self.buffer_views(), checked_slope, self.flag)
        self.trampolines.append(made)
        return made.address

    def _machine_code(self, function: Any) -> int | None:
        """Address of a traced function's machine code; None for an ordinary function."""
        if self.complex or not hasattr(function, "machine_code"):
            return None
        problem = self.problem
        problem.bind(function)(problem.t_span[0], problem.y0)  # tells it n, if it did not know
        self._code = function.machine_code()  # keep it alive
        return int(self._code.address)

    def trampoline(self, action: Callable[[float], None]) -> int:
        """Make a Python action callable from the loop; returns its address."""
        made = Trampoline(action, self.flag)
        self.trampolines.append(made)
        return made.address

    def buffer_views(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """(x, dx) as the user's function sees them."""
        return self.from_real(self.x), self.from_real(self.dx)

    # ------------------------------------------------------------ running

    @property
    def t(self) -> float:
        """Current time."""
        return float(self.clock[at.T])

    @property
    def point(self) -> Array:
        """The current state, in place."""
        return self.w.y

    @property
    def points(self) -> Array:
        """States after the steps of the last call of the loop."""
        return self.ys

    @property
    def y(self) -> NDArray[Any]:
        """Current state, a copy."""
        return self.from_real(self.point.copy())

    @property
    def h(self) -> float:
        """Magnitude proposed for the next step."""
        return float(self.clock[at.H])

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember the first slope; choose the first step."""
        self.w.f0[:] = self.to_real(slope)
        self.count[at.F0_CURRENT] = 1
        if not self.options.fixed:
            rtol = float(self.clock[at.RTOL])
            h = first_step or self.initial_step(slope, self.estimate_order, rtol)
            t0, t1 = self.problem.t_span
            self.clock[at.H] = min(h, self.options.max_step, abs(t1 - t0))

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Run the loop up to ``t_stop``, a buffer of steps at a time."""
        forward = float(self.clock[at.DIRECTION])
        is_end = t_stop == self.problem.t_span[1]
        self.clock[at.T_LIMIT] = forward * np.inf if is_end else np.nextafter(t_stop, self.t)
        while True:
            t, y = self.t, self.point.copy()
            code, taken = self.advance(t_stop, 1 if one_by_one else self.chunk)
            if taken:
                Q = self.Qs[:taken].copy() if self.options.want_dense else None
                if take(t, y, self.ts[:taken].copy(), self.points[:taken].copy(), Q):
                    return at.OK
            if code == at.REACHED or code < 0:
                return code
            if (self.t - t_stop) * forward >= 0:
                return at.REACHED

    def advance(self, t_stop: float, wanted: int) -> tuple[int, int]:
        """Run the loop; returns (status, number of accepted steps in ts, ys, Qs)."""
        self.clock[at.T_STOP] = t_stop
        status = self._advance(self.w, min(wanted, self.chunk), self.ts, self.ys, self.Qs)
        return int(status), int(self.count[at.TAKEN])

    def error(self) -> BaseException | None:
        """Return what a Python function raised, once."""
        for trampoline in self.trampolines:
            if trampoline.error is not None:
                error, trampoline.error = trampoline.error, None
                return error
        return None

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y) through the same pointer as the loop, counted; raises what f raises."""
        self.x[:] = self.to_real(y)
        self.count[at.NFEV] += 1
        self.flag[0] = 0
        call(self.f_address, t, self.x, self.w.p, self.dx)
        if (error := self.error()) is not None:
            raise error
        return self.from_real(self.dx.copy())

    def typical_size(self) -> Array:
        """Size below which a component does not matter: atol/rtol."""
        rtol = float(self.clock[at.RTOL])
        return self.w.atol / rtol if rtol > 0 else np.zeros(self.n)

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one (projection): no slope survives."""
        self.w.y[:] = self.to_real(y)
        self.count[at.F0_CURRENT] = self.count[at.HAVE_F1] = 0

    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Start afresh from (t, y) after a jump; nothing known about the past is used."""
        self.replace_state(y)
        self.clock[at.T] = self.clock[at.T_BASE] = t
        for place in (at.STEP_INDEX, at.HAVE_START, at.HAVE_JACOBIAN, at.LAST_REJECTED):
            self.count[place] = 0
        self.clock[at.H_FACTORED] = 0.0
        if h is not None:
            self.clock[at.H] = h

    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""
        places = {
            "nfev": at.NFEV,
            "njev": at.NJEV,
            "nlu": at.NLU,
            "nsteps": at.NSTEPS,
            "nrejected": at.NREJECTED,
            "nnewton": at.NNEWTON,
        }
        return {name: int(self.count[place]) for name, place in places.items()}


def _rms(x: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.abs(x) ** 2)))


def _loop() -> Any:
    from . import loop  # imported late: it needs the controllers, which need the state

    return loop
