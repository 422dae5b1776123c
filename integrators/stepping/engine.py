"""A method bound to a problem: buffers, callbacks, and the compiled loop that works on them.

:class:`Engine` is the bridge between Python objects and kernels. It owns the arrays that the loop
sees, wraps the problem's functions as pointers, and restarts the method after a jump.
"""

from __future__ import annotations

import contextlib
import math
import operator
import threading
import weakref
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import interpreting
from ..kernels.pointers import SIGNATURE, SlopeTrampoline, Trampoline
from ..problem import IVP
from ..processors import available_processors
from ..tableau.extension import Extension, hermite_extension
from . import state as at
from .control import Control, Controller
from .dense import hermite_order, hermite_tables
from .state import State
from .stepper import Options, Stepper, Take, checked_slope
from .watch import SAMPLES

__all__ = ["Engine", "Options", "Stepper", "Take", "checked_slope", "implicit_key"]

Array = NDArray[np.float64]

BUFFER_BYTES = 4_000_000  # output of one call of the loop
# What a problem and its options set, in the order of `Engine._prepare_state`.
_TIMES = State.places(
    *("t", "t_previous", "t_base", "t_stop", "direction", "h_fixed"),
    *("log_error", "log_before", "rtol", "min_step", "max_step"),
)
_COUNTERS = ("nfev", "njev", "nlu", "nsteps", "nrejected", "nnewton")
_COUNTED = State.places(*_COUNTERS)
_SWITCHES = State.places("max_steps", "fixed", "max_norm", "pairs", "want_dense")

MOST_WAITING = available_processors()  # engines kept for other runs with the same f and method
MOST_ENGINES = 64  # kept by all functions together; one has buffers of a tenth of a megabyte
MAX_CHUNK = 4096  # steps between two looks at the keyboard


class Engine(Stepper):
    """The arrays and callbacks of one run.

    Subclasses add what their family needs and build the workspace in ``_workspace``.
    """

    order: int
    estimate_order: int
    default_controller = Controller()
    degree: int
    hermite: Extension = hermite_extension(3)
    waiting: list[Engine] | None = None
    keeps_bounds = True

    def __init__(self, problem: IVP, options: Options) -> None:
        super().__init__(problem, options)
        n = self.n
        self.flag = np.zeros(1, dtype=np.int64)
        self.x, self.dx = np.zeros(n), np.zeros(n)
        self.state = State()
        self.trampolines: list[Trampoline] = []
        self.interpreted = interpreting()
        self._prepare_state()
        self._setup()
        degree = self.degree if options.want_dense else 0
        per_step = 8 * n * (1 + degree)
        self.chunk = int(max(1, min(MAX_CHUNK, BUFFER_BYTES // per_step)))
        self.ts = np.zeros(self.chunk)
        self.ys = np.zeros((self.chunk, n))
        self.Qs = np.zeros((self.chunk if options.want_dense else 1, self.degree, n))
        self.w = self._workspace(self._shared())
        self.loop = _loop_kernels()(self.w, calls_python=bool(self.trampolines))
        self._f = SIGNATURE(self.f_address)
        self._f_arguments = tuple(a.ctypes.data for a in (self.x, self.w.p, self.dx))
        self._fresh = self.state.words.copy()

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

    @property
    def is_native(self) -> bool:
        """Whether steps are machine code throughout."""
        return not self.trampolines and not self.interpreted

    # ------------------------------------------------------------ set-up

    def rebind(self, problem: IVP, options: Options) -> None:
        """Start again with a problem and options that differ in numbers only."""
        self.problem, self.options = problem, options
        self.state.words[:] = self._fresh
        self._prepare_state()
        w = self.w
        w.y[:] = problem.y0
        w.p[:] = problem.params
        w.atol[:] = options.atol
        w.control.floats[:] = self._control()
        if problem.nonnegative.size or w.nonnegative.size:
            w.replace("nonnegative", problem.nonnegative)
        if w.outputs is not options.outputs:
            w.replace("outputs", options.outputs)
        self.renew()

    @classmethod
    def reused(
        cls, key: tuple[Any, ...], problem: IVP, options: Options, make: Callable[[], Engine]
    ) -> Engine:
        """Return an engine that is left from an earlier run with a traced f, or make one.

        To set up an engine takes longer than many a run. Those that serve machine code are kept
        with f and wait for the next run; ``key`` tells the method, and the rest of what must
        agree is added here. An engine in use is not in the list, so threads do not meet.
        """
        f: Any = problem.f
        if not hasattr(f, "machine_code") or problem.y0.dtype.kind == "c":
            return make()
        index = None if problem.index is None else tuple(problem.index.tolist())
        shape = (problem.n, problem.params.size, index, interpreting())
        kind = (options.fixed, options.max_norm, options.want_dense)
        waiting = f._derive(("engines", cls, *key, *shape, *kind), list)
        try:
            engine = waiting.pop()
        except IndexError:
            engine = make()
            if not engine.trampolines:  # these know the parameters of their own run
                engine.waiting = waiting
            return engine
        engine.rebind(problem, options)
        engine.loop.begin_run()
        return engine

    def release(self) -> None:
        """Told at the end of a run: the engine may be used for another one."""
        if self.waiting is not None and len(self.waiting) < MOST_WAITING:
            self.waiting.append(self)
            if id(self) not in _kept:
                _keep(self)

    def _control(self) -> Array:
        controller = self.options.controller or self.default_controller
        return _controller_array(controller, self.estimate_order)

    def _prepare_state(self) -> None:
        problem, options = self.problem, self.options
        t0, t1 = problem.t_span
        forward = 1.0 if t1 >= t0 else -1.0
        fixed = forward * (options.step or 0.0)
        times = (t0, t0, t0, t1, forward, fixed, 0.0, 0.0)
        self.state.floats[_TIMES] = (*times, options.rtol, options.min_step, options.max_step)
        switches = (options.fixed, options.max_norm, self.complex, options.want_dense)
        self.state.words[_SWITCHES] = (options.max_steps, *switches)
        at_start = options.outputs.size > 0 and options.outputs[0] == t0
        self.state.next_output = int(at_start)
        self.state.newton_factor = 0.5  # for methods that know of no better one

    def _shared(self) -> dict[str, Any]:
        problem, n = self.problem, self.n
        stages = int(self.state.stages + self.state.extra_stages)
        index = np.zeros(0, dtype=np.int64) if problem.index is None else problem.index
        vectors = ("y", "y_old", "y_new", "f0", "f1", "error", "error_low", "big", "saved")
        shared: dict[str, Any] = {name: np.zeros(n) for name in vectors}
        shared["y"][:] = self._first_vector()
        control = Control()
        control.floats[:] = self._control()
        self.f_address = self._rhs_address()
        _, attempt, accepted, dense, refine = self._kernels()
        shared.update(
            attempt=attempt,
            accepted=accepted,
            dense=dense,
            refine=refine,
            f=self.f_address,
            state=self.state,
            control=control,
            flag=self.flag,
            x=self.x,
            dx=self.dx,
            p=np.array(problem.params, dtype=np.float64),
            atol=self.to_real_weights(self.options.atol).copy(),
            index=self.to_real_weights(index),
            nonnegative=problem.nonnegative,
            K=np.zeros((max(stages, 1), n)),
            P=np.zeros((0, 0)),
            Q=np.zeros((self.degree, n)),
            event_codes=np.zeros(0, dtype=np.int64),
            event_values=np.zeros(0),
            event_samples=np.zeros((0, len(SAMPLES))),
            projection=np.zeros(2, dtype=np.int64),
            projected=np.zeros(n + 1),
            ts=self.ts,
            ys=self.ys,
            Qs=self.Qs,
            outputs=self.options.outputs,
            **hermite_tables(self.hermite, n),
        )
        return shared

    def _use_hermite(self) -> None:
        self.state.dense_kind = at.DENSE_HERMITE
        self.dense_order = hermite_order(self.order)
        self.degree = max(3, self.dense_order)
        if self.options.want_dense:
            self.hermite = hermite_extension(self.dense_order)

    def _use_doubling(self) -> None:
        self.state.estimate_kind = at.ESTIMATE_DOUBLING
        self.state.doubling_divisor = 2.0**self.order - 1.0
        self.estimate_order = self.order
        self.estimate = "step doubling"

    def _rhs_address(self) -> int:
        code = self._machine_code(self.problem.f)
        if code is not None:
            self.state.f_native = 1
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
        return float(self.state.t)

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
        return float(self.state.h)

    def initial_step(self, slope: NDArray[Any], order: int, rtol: float) -> float:
        """Hairer's first guess, as a kernel; on a manifold as everywhere else."""
        if self.move is not operator.add or self.problem.mass is not None:
            return super().initial_step(slope, order, rtol)
        outcome = self.loop.first_step(self.w, self.t, 1.0 / (order + 1))
        error = self.error()  # a trial outside f's domain is no failure of the run
        if outcome != at.OK and error is None:
            raise KeyboardInterrupt  # it hit the callback's entry, where nothing catches it
        if error is not None and not isinstance(error, Exception):
            raise error
        return float(self.state.h)

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember the first slope; choose the first step."""
        self.w.f0[:] = self.to_real(slope) if self.complex else slope
        self.state.f0_current = 1
        if not self.options.fixed:
            rtol = float(self.state.rtol)
            h = first_step or self.initial_step(slope, self.estimate_order, rtol)
            t0, t1 = self.problem.t_span
            self.state.h = min(h, self.options.max_step, abs(t1 - t0))

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Run the loop up to ``t_stop``, a buffer of steps at a time."""
        forward = float(self.state.direction)
        is_end = t_stop == self.problem.t_span[1]
        self.state.limited = int(not is_end)
        self.state.t_limit = math.nextafter(t_stop, self.t)
        while True:
            t, y = self.t, self.point.copy()
            code, taken = self.advance(t_stop, 1 if one_by_one else self.chunk)
            self.look = one_by_one or code == at.LOOK
            self.unprojected = one_by_one or code == at.UNPROJECTED
            if taken:
                kept = self.state.kept
                ends, states = self.ts[:taken].copy(), self.points[:taken].copy()
                Q = self.Qs[:kept].copy() if self.options.want_dense else None
                if self.unprojected and taken > 1:  # the last alone: its projection may fail
                    before = kept - self.state.last_kept
                    self.unprojected = False
                    if take(t, y, ends[:-1], states[:-1], None if Q is None else Q[:before]):
                        return at.OK
                    self.unprojected = True
                    t, y, Q = float(ends[-2]), states[-2], None if Q is None else Q[before:]
                    ends, states = ends[-1:], states[-1:]
                if take(t, y, ends, states, Q):
                    return at.OK
            if code in (at.REACHED, at.SWITCH, at.CHANGE) or code < 0:
                return code
            if (self.t - t_stop) * forward >= 0:
                return at.REACHED

    def watch(self, functions: Sequence[Any], values: Array) -> bool:
        """Watch for zeros of event functions while marching, if they are machine code."""
        n, k = self.problem.n, self.problem.params.size
        if self.complex or self.move is not operator.add or self.state.variable_order == 1:
            return False
        for g in functions:
            if not hasattr(g, "machine_code") or g.n != n or g.m != 1 or g.k not in (0, k):
                return False
        self._event_codes = [g.machine_code() for g in functions]  # keep them alive
        addresses = [code.address for code in self._event_codes]
        self.w.replace("event_codes", np.array(addresses, dtype=np.int64))
        self.w.replace("event_values", values)
        self.w.replace("event_samples", np.zeros((len(addresses), len(SAMPLES))))
        self.state.watched = len(addresses)
        return True

    def project_in_loop(self, project: Any) -> bool:
        """Let the loop project, if states are plain vectors and the projection is machine code."""
        codes = None
        plain = self.move is operator.add and not self.complex
        if plain and getattr(project, "n", 0) == self.n:
            if hasattr(project, "machine_codes"):
                codes = project.machine_codes()
            elif hasattr(project, "machine_code") and project.m == self.n:
                codes = None, project.machine_code()
        if codes is None:
            return False
        self._projection = codes  # keep them alive
        self.w.projection[:] = [0 if code is None else code.address for code in codes]
        self.state.projecting = 1
        return True

    def renew(self) -> None:
        """Read addresses again: a projection done by Python may have chosen another f."""
        if self.state.projecting:
            self.project_in_loop(self.problem.project)
        if getattr(self.problem.f, "is_replaced", False) and self.state.f_native:
            self._code = self.problem.f.machine_code()  # type: ignore[attr-defined]
            self._use_slope(int(self._code.address))

    def _use_slope(self, address: int) -> None:
        """Let the loop call another right-hand side."""
        if address != self.f_address:
            self.state.f0_current = self.state.have_f1 = 0  # they are another f's
            self.f_address = address
            self._f = SIGNATURE(address)
            self.w.enter_address("f", address)
            self.w.f = address

    def advance(self, t_stop: float, wanted: int) -> tuple[int, int]:
        """Run the loop; returns (status, number of accepted steps in ts, ys, Qs)."""
        status = self.loop.advance(self.w, t_stop, min(wanted, self.chunk))
        return int(status), int(self.state.taken)

    def stop(self) -> None:
        """End before the next step; the loop looks at this flag."""
        self.state.stop = 1

    def error(self) -> BaseException | None:
        """Return what a Python function raised, once."""
        for trampoline in self.trampolines:
            if (error := trampoline.take_error()) is not None:
                return error
        return None

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y) through the same pointer as the loop, counted; raises what f raises."""
        self.x[:] = self.to_real(y) if self.complex else y
        self.state.nfev += 1
        self.flag[0] = self.state.f_native
        self._f(t, *self._f_arguments)
        if (error := self.error()) is not None:
            raise error
        if self.flag[0] != 1:  # Ctrl-C hit the callback's entry, where nothing catches it
            raise KeyboardInterrupt
        return self.from_real(self.dx.copy())

    def typical_size(self) -> Array:
        """Size below which a component does not matter: atol/rtol."""
        rtol = float(self.state.rtol)
        return self.w.atol / rtol if rtol > 0 else np.zeros(self.n)

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one (projection): no slope survives."""
        self.w.y[:] = self.to_real(y)
        self.state.f0_current = self.state.have_f1 = 0

    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Start afresh from (t, y) after a jump; nothing known about the past is used."""
        self.replace_state(y)
        self.forget()
        self.state.t = self.state.t_base = t
        self.state.step_index = 0
        if h is not None:
            self.state.h = h

    def forget(self) -> None:
        """Use nothing that was learnt from earlier steps but the step length."""
        state = self.state
        state.have_start = state.have_jacobian = state.last_rejected = state.steps_at_order = 0
        state.newton_memory, state.h_factored, state.inside_now = 1.0, 0.0, -1.0

    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""
        return dict(zip(_COUNTERS, self.state.words[_COUNTED].tolist()))


#: Engines that wait or will wait again, in the order in which they came.
_kept: OrderedDict[int, weakref.ref[Engine]] = OrderedDict()
_keeping = threading.Lock()


def _keep(engine: Engine) -> None:
    """Let the oldest engine go, if there are too many."""
    with _keeping:
        _kept[id(engine)] = weakref.ref(engine)
        oldest = _kept.popitem(last=False)[1]() if len(_kept) > MOST_ENGINES else None
    if oldest is not None and oldest.waiting is not None:
        with contextlib.suppress(ValueError):  # it may be in use, and comes back
            oldest.waiting.remove(oldest)


def implicit_key(problem: IVP, options: Options) -> tuple[Any, ...]:
    """What runs must share to share an engine that solves with a Jacobian, for `Engine.reused`."""
    parts = (id(problem.jac), id(problem.mass), id(problem.jac_sparsity))
    return options.rtol, *parts, options.linear


@cache
def _controller_array(controller: Controller, estimate_order: int) -> Array:
    return controller.to_array(estimate_order)


def _loop_kernels() -> Any:
    from .tiers import LoopKernels  # imported late: it needs the controllers, which need the state

    return LoopKernels
