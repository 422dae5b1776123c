"""``solve``: one function for every problem and every method.

It checks the input, chooses the first step, calls the compiled loop again and again, and between
the calls does what needs Python: output times, events, projections, callbacks, progress. Whatever
goes wrong, what was computed up to then is returned.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .control import Controller
from .events import Tracker
from .methods import state as at
from .methods.engine import Engine, Options
from .methods.state import Status
from .problem import IVP, Event
from .solution import DenseOutput, Solution, polynomials
from .tableau import Tableau

__all__ = ["solve"]

SMALLEST_RTOL = 100 * np.finfo(float).eps
MAX_STEPS = 1_000_000
MOST_FIXED_STEPS = 1_000_000_000


def solve(
    problem: IVP | Callable[..., Any],
    t_span: Sequence[float] | None = None,
    y0: ArrayLike | None = None,
    *,
    method: Any = "DOPRI5",
    step: float | None = None,
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    t_eval: ArrayLike | None = None,
    tstops: ArrayLike = (),
    dense_output: bool = False,
    events: Any = None,
    params: Any = (),
    jac: Any = None,
    jac_sparsity: Any = None,
    mass: Any = None,
    index: Any = None,
    project: Callable[..., Any] | None = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int | None = None,
    callback: Callable[[float, NDArray[Any]], Any] | None = None,
    progress: bool = False,
    throw: bool = False,
) -> Solution:
    """Solve an initial value problem.

    Parameters
    ----------
    problem
        An :class:`IVP`, or the function ``f(t, y)``; then ``t_span`` and ``y0`` follow, as in
        SciPy's ``solve_ivp``.
    t_span, y0
        Interval (t0, t1), backwards if t1 < t0, and initial state; with an IVP they replace its
        own.
    method
        A name of the catalogue ("DOPRI5", "RADAU5", "Gauss4"; SciPy's names work too), a
        :class:`Tableau`, an object with a ``step`` method (:class:`Method`), a
        ``scipy.integrate.OdeSolver`` class, or "assimulo:CVode" and its like.
    step
        A fixed step size, without error control. Otherwise steps are adaptive.
    rtol, atol
        Tolerances: the local error of each component is kept below atol + rtol·|y|. ``atol``
        may be a list, one for each component.
    t_eval
        Times at which to return the solution; they never change the steps. By default every
        accepted step is returned.
    tstops
        Times to step on exactly, for instance where f jumps.
    dense_output
        Return ``sol``, the solution as a function of time.
    events
        Event functions ``g(t, y)`` or :class:`Event` objects.
    params
        Parameters p; f and everything else is then called as ``f(t, y, p)``.
    jac, jac_sparsity, mass, index, project
        As in :class:`IVP`.
    controller
        Step-size controller: ``I()``, ``PI()``, ``PID()``, ``Predictive()``.
    norm
        "rms" or "max": how the errors of the components are combined.
    first_step, max_step, min_step
        Limits of the adaptive step; falling below ``min_step`` ends the run.
    max_steps
        Most attempts, rejected ones included; a million by default for adaptive steps.
    callback
        ``callback(t, y)`` after each accepted step; returning True stops the run.
    progress
        Show a progress bar.
    throw
        Raise :class:`IntegrationError` on failure instead of returning a failed Solution.

    Returns
    -------
    Solution
        Always, with everything computed up to the end of the run; look at ``success``.

    Examples
    --------
    >>> sol = solve(lambda t, y: -y, (0, 1), [1.0], rtol=1e-9)
    >>> round(float(sol.y[0, -1]), 8)  # e⁻¹
    0.36787944
    """
    changes = {
        "params": params,
        "jac": jac,
        "jac_sparsity": jac_sparsity,
        "mass": mass,
        "index": index,
        "events": events,
        "project": project,
    }
    ivp = _as_ivp(problem, t_span, y0, changes)
    options = _options(
        ivp, rtol, atol, step, controller, norm, min_step, max_step, max_steps, dense_output, t_eval
    )
    output_times = _output_times(t_eval, ivp.t_span)
    stops = _stops(tstops, ivp.t_span)
    first = _first_step(first_step, ivp.t_span, options)
    bound = _bind(method, ivp, options)
    if not isinstance(bound, Engine):  # a solver from elsewhere runs by its own rules
        solution = bound.run(output_times, stops, first, dense_output, callback, progress)
    else:
        run = _Run(bound, ivp, output_times, stops, dense_output, callback, progress)
        solution = run.run(first)
        solution.method = method_name(method)
    return solution.raise_for_status() if throw else solution


# -------------------------------------------------------------------- checking the input


def _as_ivp(problem: Any, t_span: Sequence[float] | None, y0: Any, changes: dict[str, Any]) -> IVP:
    given = {
        name: value
        for name, value in changes.items()
        if value is not None and not (isinstance(value, tuple) and value == ())
    }
    if isinstance(problem, IVP):
        if t_span is not None:
            given["t_span"] = t_span
        if y0 is not None:
            given["y0"] = y0
        return problem.with_(**given) if given else problem
    if not callable(problem):
        raise TypeError(f"expected an IVP or a function f(t, y), got {problem!r}")
    if t_span is None or y0 is None:
        raise TypeError("solve(f, t_span, y0) needs the interval and the initial state")
    return IVP(problem, y0, t_span, **given)


def _options(
    ivp: IVP,
    rtol: Any,
    atol: Any,
    step: Any,
    controller: Any,
    norm: str,
    min_step: Any,
    max_step: Any,
    max_steps: int | None,
    dense_output: bool,
    t_eval: Any,
) -> Options:
    rtol = float(rtol)
    tolerance = np.asarray(atol, dtype=np.float64)
    if not np.isfinite(rtol) or rtol < 0:
        raise ValueError(f"rtol must be a number ≥ 0, got {rtol}")
    if tolerance.shape not in ((), (1,), (ivp.n,)):
        raise ValueError(
            f"atol must be a number or one for each of the {ivp.n} components, "
            f"got shape {tolerance.shape}"
        )
    if not np.all(np.isfinite(tolerance)) or np.any(tolerance < 0):
        raise ValueError(f"atol must not be negative, NaN or infinite, got {atol!r}")
    if rtol == 0 and np.any(tolerance == 0):
        raise ValueError("rtol = 0 needs atol > 0 for every component: some error must be allowed")
    if 0 < rtol < SMALLEST_RTOL:
        raise ValueError(
            f"rtol = {rtol:g} is below what double precision can deliver; "
            f"use at least {SMALLEST_RTOL:.2g}"
        )
    # A component that starts at zero with atol = 0 would have to be exact.
    weights = np.full(ivp.n, tolerance) if tolerance.size == 1 else tolerance.copy()
    weights = np.maximum(weights, np.finfo(float).tiny)
    if step is not None:
        step = abs(_positive("step", step, allow_negative=_backwards(ivp)))
        if abs(ivp.t_span[1] - ivp.t_span[0]) / step > MOST_FIXED_STEPS:
            raise ValueError(f"step = {step:g} means more than {MOST_FIXED_STEPS:,} steps")
        if controller is not None:
            raise ValueError("a fixed step takes no controller; leave out one of the two")
    if controller is not None and not isinstance(controller, Controller):
        raise TypeError(f"controller must be I(), PI(), PID() or Predictive(), got {controller!r}")
    if norm not in ("rms", "max"):
        raise ValueError(f"norm must be 'rms' or 'max', got {norm!r}")
    if not (float(min_step) >= 0 and np.isfinite(min_step)):
        raise ValueError(f"min_step must be a number ≥ 0, got {min_step}")
    if not float(max_step) > 0:
        raise ValueError(f"max_step must be positive, got {max_step}")
    if float(min_step) > float(max_step):
        raise ValueError(f"min_step = {min_step} is larger than max_step = {max_step}")
    if max_steps is None:
        max_steps = MAX_STEPS if step is None else 2 * MOST_FIXED_STEPS
    elif int(max_steps) < 1:
        raise ValueError(f"max_steps must be at least 1, got {max_steps}")
    return Options(
        rtol=rtol,
        atol=weights,
        step=step,
        controller=controller,
        max_norm=norm == "max",
        min_step=float(min_step),
        max_step=float(max_step),
        max_steps=int(max_steps),
        want_dense=bool(dense_output) or (t_eval is not None) or len(ivp.events) > 0,
    )


def _backwards(ivp: IVP) -> bool:
    return ivp.t_span[1] < ivp.t_span[0]


def _positive(name: str, value: Any, *, allow_negative: bool = False) -> float:
    number = float(value)
    if not np.isfinite(number) or number == 0 or (number < 0 and not allow_negative):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return number


def _first_step(first_step: Any, span: tuple[float, float], options: Options) -> float | None:
    if first_step is None:
        return None
    if options.fixed:
        raise ValueError("a fixed step takes no first_step; leave out one of the two")
    number = _positive("first_step", first_step)
    length = abs(span[1] - span[0])
    if length > 0 and number > length:
        raise ValueError(f"first_step = {number:g} is longer than the interval ({length:g})")
    return number


def _output_times(t_eval: Any, span: tuple[float, float]) -> NDArray[np.float64] | None:
    if t_eval is None:
        return None
    times = np.atleast_1d(np.asarray(t_eval, dtype=np.float64))
    low, high = min(span), max(span)
    if times.ndim != 1:
        raise ValueError(f"t_eval must be a flat list of times, got shape {times.shape}")
    if not np.all(np.isfinite(times)):
        raise ValueError("t_eval contains NaN or infinity")
    if np.any(times < low) or np.any(times > high):
        raise ValueError(f"t_eval must lie within t_span = {span}")
    forward = span[1] >= span[0]
    if np.any(np.diff(times) <= 0 if forward else np.diff(times) >= 0):
        raise ValueError("t_eval must be strictly sorted in the direction of the integration")
    return times


def _stops(tstops: Any, span: tuple[float, float]) -> list[float]:
    times = np.atleast_1d(np.asarray(tstops, dtype=np.float64))
    if not np.all(np.isfinite(times)):
        raise ValueError("tstops contains NaN or infinity")
    inside = np.unique(times[(times > min(span)) & (times < max(span))])
    ordered = inside if span[1] >= span[0] else inside[::-1]
    return [*map(float, ordered), span[1]]


def method_name(method: Any) -> str:
    """Return a name for tables and messages."""
    if isinstance(method, str):
        return method
    return getattr(method, "name", "") or getattr(method, "__name__", "") or type(method).__name__


def _bind(method: Any, ivp: IVP, options: Options) -> Any:
    """Bind whatever the user calls a method to the problem."""
    from .methods.rungekutta import engine_for

    if isinstance(method, str):
        if method.lower().startswith("assimulo:"):
            from .methods.external import AssimuloRun

            return AssimuloRun(method.split(":", 1)[1], ivp, options)
        from . import catalogue

        method = catalogue.get(method)
    if isinstance(method, Tableau):
        return engine_for(method, ivp, options)
    if isinstance(method, type) and _is_scipy_solver(method):
        from .methods.external import ScipyRun

        return ScipyRun(method, ivp, options)
    if hasattr(method, "bind"):
        return method.bind(ivp, options)
    if callable(getattr(method, "step", None)) and hasattr(method, "order"):
        from .methods.user import CustomEngine

        return CustomEngine(method, ivp, options)
    raise TypeError(
        f"method must be a name, a Tableau, an object with `order` and `step(f, t, y, h)`, or a "
        f"SciPy OdeSolver class; got {method!r}"
    )


def _is_scipy_solver(method: type) -> bool:
    from scipy.integrate import OdeSolver

    return issubclass(method, OdeSolver)


# -------------------------------------------------------------------- the run


class _Run:
    """One run of our own loop."""

    def __init__(
        self,
        engine: Engine,
        ivp: IVP,
        output_times: NDArray[np.float64] | None,
        stops: list[float],
        keep_dense: bool,
        callback: Callable[[float, NDArray[Any]], Any] | None,
        progress: bool,
    ) -> None:
        self.engine = engine
        self.ivp = ivp
        self.stops = stops
        self.keep_dense = keep_dense
        self.callback = callback
        self.project = None if ivp.project is None else ivp.bind(ivp.project)
        self.progress = progress
        self.output_times = output_times
        self.next_output = 0
        t0 = ivp.t_span[0]
        self.forward = 1.0 if ivp.t_span[1] >= t0 else -1.0
        self.ts: list[NDArray[np.float64]] = []
        self.ys: list[NDArray[Any]] = []
        self.step_starts: list[NDArray[np.float64]] = []
        self.step_lengths: list[NDArray[np.float64]] = []
        self.step_states: list[NDArray[Any]] = []
        self.step_polynomials: list[NDArray[Any]] = []
        self.tracker: Tracker | None = None
        self.exception: BaseException | None = None
        self.message = ""
        # Python has to look at every step if any of these is there.
        self.one_by_one = bool(ivp.events) or callback is not None or self.project is not None
        if output_times is None:
            self._output(np.array([t0]), ivp.y0[None, :])
        elif output_times.size and output_times[0] == t0:
            self._output(np.array([t0]), ivp.y0[None, :])
            self.next_output = 1

    def run(self, first_step: float | None) -> Solution:
        """Run to the end and collect."""
        t0, t1 = self.ivp.t_span
        status = Status.FINISHED
        if t0 != t1:
            self._start(first_step)
            reporter = _Progress(t0, t1) if self.progress else None
            try:
                status = self._loop(reporter)
            except KeyboardInterrupt as interrupt:
                status, self.exception = Status.INTERRUPTED, interrupt
            finally:
                if reporter is not None:
                    reporter.close()
        return self._solution(status)

    def _start(self, first_step: float | None) -> None:
        """Evaluate f once, so that a faulty f is told at once and as itself; choose h."""
        engine, ivp = self.engine, self.ivp
        t0, t1 = ivp.t_span
        slope = engine.slope(t0, ivp.y0)
        if not np.all(np.isfinite(slope)):
            bad = int(np.flatnonzero(~np.isfinite(slope))[0])
            raise ValueError(
                f"f(t0, y0) is not finite: component {bad} is {slope[bad]} at t0 = {t0:g}; "
                "the right-hand side must be defined at the initial state"
            )
        engine.w.f0[:] = engine.to_real(slope)
        engine.count[at.F0_CURRENT] = 1
        if ivp.mass is not None:
            _check_consistent(ivp, slope, engine.options)
        if ivp.events:
            self.tracker = Tracker(ivp.events, ivp.bind, t0, ivp.y0)
        if not engine.options.fixed:
            h = first_step if first_step is not None else self._initial_step(slope)
            engine.clock[at.H] = min(h, engine.options.max_step, abs(t1 - t0))

    def _initial_step(self, slope: NDArray[Any]) -> float:
        """Hairer's first guess (II.4): a step on which an Euler step changes little."""
        engine, ivp = self.engine, self.ivp
        t0, t1 = ivp.t_span
        length = abs(t1 - t0)
        if ivp.mass is not None:  # f is not the derivative
            return min(1e-6, 1e-3 * length)
        scale = engine.options.atol + engine.clock[at.RTOL] * np.abs(ivp.y0)
        d0, d1 = _rms(ivp.y0 / scale), _rms(slope / scale)
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        h0 = min(h0, length)
        try:
            ahead = engine.slope(t0 + self.forward * h0, ivp.y0 + self.forward * h0 * slope)
        except Exception:  # noqa: BLE001 - a trial outside f's domain is no failure of the run
            return float(max(min(1e-3 * h0, length), 1e-12 * length))
        d2 = _rms((ahead - slope) / scale) / h0
        if not np.isfinite(d2):
            return 1e-3 * h0
        largest = max(d1, d2)
        if largest <= 1e-15:
            h1 = max(1e-6, h0 * 1e-3)
        else:
            h1 = (0.01 / largest) ** (1 / (engine.estimate_order + 1))
        return float(min(100 * h0, h1, length))

    def _loop(self, reporter: _Progress | None) -> Status:
        engine = self.engine
        for stop in self.stops:
            while True:
                t_start, y_start = engine.t, engine.w.y.copy()
                code, taken = engine.advance(stop, 1 if self.one_by_one else engine.chunk)
                if taken:
                    try:
                        ended = self._accept(t_start, y_start, taken)
                    except Exception as error:  # an event, a projection or a callback raised
                        self.exception = error
                        return Status.FUNCTION_RAISED
                    if ended is not None:
                        return ended
                if reporter is not None:
                    reporter.update(engine.t)
                if code == at.REACHED:
                    break
                if code < 0:
                    return self._failure(code)
                if (engine.t - stop) * self.forward >= 0:
                    break
            if stop != self.stops[-1]:
                engine.restart(stop, engine.y)
        return Status.FINISHED

    def _accept(self, t_start: float, y_start: NDArray[Any], taken: int) -> Status | None:
        """Deal with new steps; a Status if the run ends with them."""
        engine = self.engine
        ends = engine.ts[:taken].copy()
        states = engine.ys[:taken].copy()
        starts = np.concatenate([[t_start], ends[:-1]])
        before = np.concatenate([y_start[None, :], states[:-1]])
        Q = engine.Qs[:taken].copy() if engine.options.want_dense else None
        lengths = ends - starts
        if self.tracker is not None:
            assert Q is not None
            return self._with_events(starts[0], lengths[0], before[0], Q[0], states[0])
        self._keep(starts, lengths, before, Q)
        if self.project is not None:
            states[-1] = self._projected(ends[-1], states[-1])
        self._emit(starts, lengths, before, Q, ends, states)
        return self._call_back(ends[-1], states[-1])

    def _with_events(
        self,
        t: float,
        h: float,
        y: NDArray[Any],
        Q: NDArray[Any],
        y_new: NDArray[Any],
    ) -> Status | None:
        """One step with events: find them, act on them, output what is left of the step."""
        tracker, engine = self.tracker, self.engine
        assert tracker is not None
        powers = np.arange(1, Q.shape[0] + 1)

        def state(theta: float) -> NDArray[Any]:
            if theta == 1.0:
                return engine.from_real(y_new.copy())
            return engine.from_real(y + theta**powers @ Q)

        end, ended, jump = t + h, None, None
        for occurrence in tracker.find(t, h, state):
            final = tracker.record(occurrence)
            reset = self.ivp.events[occurrence.event].reset
            if final:
                end, ended = occurrence.t, Status.EVENT
                name = tracker.label(occurrence.event)
                self.message = f"stopped by event {name} at t = {occurrence.t:.9g}"
                y_new = engine.to_real(occurrence.y).copy()
                break
            if reset is not None:
                end = occurrence.t
                jump = occurrence
                y_new = engine.to_real(occurrence.y).copy()
                break
        one = slice(None), None
        start, before, coefficients = np.array([t]), y[None, :], Q[None]
        self._keep(start, np.array([h]), before, coefficients)
        if jump is None and ended is None and self.project is not None:
            y_new = self._projected(end, y_new)
        if end != t:
            self._emit(start, np.array([h]), before, coefficients, np.array([end]), y_new[one[1]])
        if jump is not None:
            ended = self._jump(jump)
        elif ended is not None:
            engine.restart(end, engine.from_real(y_new))
        return ended or self._call_back(end, y_new)

    def _jump(self, occurrence: Any) -> Status | None:
        tracker, engine = self.tracker, self.engine
        assert tracker is not None
        event = self.ivp.events[occurrence.event]
        assert event.reset is not None
        value = self.ivp.bind(event.reset)(occurrence.t, occurrence.y.copy())
        y = np.array(value, dtype=self.ivp.y0.dtype)
        if y.shape != self.ivp.y0.shape or not np.all(np.isfinite(y)):
            raise ValueError(
                f"the reset of event {tracker.label(occurrence.event)} returned {value!r}; "
                f"expected {self.ivp.n} finite numbers"
            )
        gap = tracker.restart(occurrence, y)
        h = float(engine.clock[at.H])
        # A new flight may be as short as the last: look at it closely.
        engine.restart(occurrence.t, y, h if gap is None or gap == 0 else min(h, gap))
        if self.output_times is None:
            self._output(np.array([occurrence.t]), y[None, :])
        if tracker.accumulates():
            self.message = (
                f"events accumulate at t = {occurrence.t:.9g} (Zeno): "
                f"{len(tracker.reset_times)} resets, ever closer together"
            )
            return Status.ZENO
        return None

    def _projected(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        assert self.project is not None
        value = self.project(t, self.engine.from_real(y.copy()))
        projected = np.asarray(value, dtype=self.ivp.y0.dtype)
        if projected.shape != self.ivp.y0.shape:
            raise ValueError(
                f"project returned shape {projected.shape}, expected {self.ivp.y0.shape}"
            )
        self.engine.replace_state(projected)
        return self.engine.to_real(projected)

    def _call_back(self, t: float, y: NDArray[Any]) -> Status | None:
        if self.callback is None:
            return None
        if self.callback(float(t), self.engine.from_real(y.copy())) is True:
            self.message = f"stopped by the callback at t = {t:.9g}"
            return Status.STOPPED
        return None

    # ------------------------------------------------------------ collecting output

    def _keep(self, starts: Any, lengths: Any, before: Any, Q: NDArray[Any] | None) -> None:
        self.step_starts.append(starts)
        self.step_lengths.append(lengths)
        if self.keep_dense and Q is not None:
            self.step_states.append(before)
            self.step_polynomials.append(Q)

    def _emit(
        self,
        starts: NDArray[np.float64],
        lengths: NDArray[np.float64],
        before: NDArray[Any],
        Q: NDArray[Any] | None,
        ends: NDArray[np.float64],
        states: NDArray[Any],
    ) -> None:
        if self.output_times is None:
            self._output(ends, self.engine.from_real(states))
            return
        assert Q is not None
        times = self.output_times[self.next_output :]
        upto = np.searchsorted(self.forward * times, self.forward * ends[-1], side="right")
        times = times[:upto]
        if not times.size:
            return
        step = np.searchsorted(self.forward * ends, self.forward * times, side="left")
        values = polynomials(starts, lengths, before, Q, step, times)
        exact = times == ends[step]
        values[exact] = states[step[exact]]
        self._output(times, self.engine.from_real(values))
        self.next_output += int(upto)

    def _output(self, t: NDArray[np.float64], y: NDArray[Any]) -> None:
        self.ts.append(t)
        self.ys.append(np.array(y))

    def _failure(self, code: int) -> Status:
        status = Status(code)
        engine = self.engine
        self.exception = engine.error()
        if isinstance(self.exception, KeyboardInterrupt):
            return Status.INTERRUPTED
        return status

    def _solution(self, status: Status) -> Solution:
        engine = self.engine
        y = np.concatenate(self.ys).T if self.ys else np.zeros((self.ivp.n, 0))
        sol = None
        starts = np.concatenate([*self.step_starts, np.zeros(0)])
        lengths = np.concatenate([*self.step_lengths, np.zeros(0)])
        if self.keep_dense and self.step_states:
            sol = DenseOutput(
                starts,
                lengths,
                engine.from_real(np.concatenate(self.step_states)),
                engine.from_real(np.concatenate(self.step_polynomials)),
                engine.dense_order,
            )
        tracker = self.tracker
        kind = self.ivp.y0.dtype
        return Solution(
            np.concatenate([*self.ts, np.zeros(0)]),
            y.astype(kind, copy=False),
            sol=sol,
            h=lengths,
            t_events=[np.array(t) for t in tracker.t] if tracker else [],
            y_events=[np.array(y) for y in tracker.y] if tracker else [],
            status=status,
            message=self.message or self._message(status),
            error_estimate=engine.estimate,
            dense_order=engine.dense_order,
            problem=self.ivp,
            exception=self.exception,
            **engine.statistics(),
        )

    def _message(self, status: Status) -> str:
        engine = self.engine
        where = f"t = {engine.t:.9g}"
        h = float(engine.clock[at.H])
        cause = repr(self.exception)
        texts = {
            Status.FINISHED: "reached the end of the interval",
            Status.STEP_TOO_SMALL: (
                f"the step size became too small (h = {h:.3g}) at {where}: the solution may have "
                "a singularity there, or the tolerance cannot be met; loosen rtol/atol, or use an "
                "implicit method if the problem is stiff"
            ),
            Status.NONFINITE: (
                f"the solution or f became NaN or infinite just after {where}"
                + ("" if engine.options.fixed else ", however short the step")
            ),
            Status.NEWTON_FAILED: (
                f"Newton's iteration did not converge at {where}; check jac, shorten the step, "
                "or look for a jump in f"
            ),
            Status.SINGULAR_MATRIX: (
                f"the matrix M − hλJ is singular at {where}; check mass and jac, and the index of "
                "a differential-algebraic problem"
            ),
            Status.TOO_MANY_STEPS: (
                f"gave up at {where} after max_steps = {engine.options.max_steps} attempts; raise "
                "max_steps, loosen the tolerances, or use an implicit method if the problem is "
                "stiff"
            ),
            Status.FUNCTION_RAISED: f"a function of the problem raised {cause} after {where}",
            Status.INTERRUPTED: f"interrupted at {where}",
        }
        return texts.get(status, status.name)


class _Progress:
    """A progress bar over the integration interval."""

    def __init__(self, t0: float, t1: float) -> None:
        from rich.progress import Progress

        self.t0, self.length = t0, t1 - t0
        self.bar = Progress(transient=True)
        self.task = self.bar.add_task("solving", total=1.0)
        self.bar.start()

    def update(self, t: float) -> None:
        self.bar.update(self.task, completed=(t - self.t0) / self.length)

    def close(self) -> None:
        self.bar.stop()


def _rms(x: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.abs(x) ** 2)))


def _check_consistent(ivp: IVP, slope: NDArray[Any], options: Options) -> None:
    """Refuse a start that violates the algebraic equations of M y' = f."""
    from scipy.linalg import null_space

    mass = ivp.mass.toarray() if hasattr(ivp.mass, "toarray") else np.asarray(ivp.mass)
    if np.linalg.matrix_rank(mass) == ivp.n:
        return
    residual = null_space(mass.T).T @ slope
    allowed = 1e3 * max(float(np.max(options.atol)), options.rtol * 1e-3)
    scale = max(1.0, float(np.max(np.abs(ivp.y0))))
    if np.max(np.abs(residual)) > allowed * scale:
        raise ValueError(
            f"inconsistent initial values: the algebraic equations of M y' = f(t, y) are violated "
            f"by {np.max(np.abs(residual)):.3g} at t0; correct y0 so that f(t0, y0) vanishes there"
        )


def suggest(name: str, known: Sequence[str]) -> str:
    """Return a phrase with the nearest known names, or an empty string."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return f"; did you mean {' or '.join(near)}?" if near else ""


__all__ += ["Event", "method_name", "suggest"]
