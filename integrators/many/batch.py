"""``solve_many``: thousands of runs of one problem, side by side and on all cores.

With a traced right-hand side and an explicit method, runs are integrated in the lanes of SIMD
registers (``in_lanes``), a block of runs for each thread. Each run has its own adaptive steps,
and a run that fails stops nobody else. What has no place in lanes (other methods, events,
projections, fixed steps) runs one by one through ``solve``, and ``ManySolutions.engine`` says why:
on all cores if it is machine code throughout, which lets other threads run, and in the calling
thread if it calls functions of Python. After Ctrl-C what was computed goes with the exception.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import IntegrationInterrupted, check_choice, pass_on
from ..kernels import interpreting
from ..problem import IVP
from ..processors import available_processors
from ..runs.interrupts import Interrupts, quiet_interrupts
from ..solve import _bind, _chosen, method_name, solve
from ..stepping.control import Controller
from ..stepping.engine import Options, Stepper, checked_slope
from ..stepping.limits import attempts
from ..stepping.state import Status
from .in_lanes import LaneRuns
from .lanes import LaneCode, lane_code

__all__ = ["ManySolutions", "solve_many"]

LOOK = 0.05  # seconds between two looks at the keyboard while threads work

log = logging.getLogger(__name__)


@dataclass
class ManySolutions:
    """Results of many runs; row k belongs to run k.

    Attributes
    ----------
    y : ndarray, shape (m, n)
        Final states (the last good one where a run failed).
    t : ndarray, shape (m,)
        Times reached.
    status : ndarray of int
        A :class:`Status` for each run; INTERRUPTED if Ctrl-C came before its end.
    nsteps, nrejected : ndarray of int
        Accepted and rejected steps.
    t_eval, y_eval : ndarray
        Output times and the states there, shape (m, n, len(t_eval)); NaN beyond a failure.
    engine : str
        How the runs were done; after a colon, why not in lanes.
    message : ndarray of str
        How each run ended, in the words of ``solve``.
    t_events, y_events : list
        For each run, what :class:`Solution` has under these names; empty without events.
    """

    y: NDArray[np.float64]
    t: NDArray[np.float64]
    status: NDArray[np.int64]
    nsteps: NDArray[np.int64]
    nrejected: NDArray[np.int64]
    t_eval: NDArray[np.float64]
    y_eval: NDArray[np.float64]
    engine: str
    message: NDArray[np.object_] = field(default_factory=lambda: np.zeros(0, dtype=object))
    t_events: list[list[NDArray[np.float64]]] = field(default_factory=list)
    y_events: list[list[NDArray[np.float64]]] = field(default_factory=list)

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each run reached its end."""
        return self.status >= 0

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        good = int(np.count_nonzero(self.success))
        return f"<ManySolutions: {good} of {len(self)} runs succeeded, {self.engine}>"

    def failures(self) -> dict[int, Status]:
        """Return the runs that failed, and how."""
        return {int(k): Status(int(self.status[k])) for k in np.flatnonzero(~self.success)}


def solve_many(
    problem: IVP | Callable[..., Any],
    t_span: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    *,
    params: ArrayLike | None = None,
    method: Any = "DOPRI5",
    step: float | None = None,
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    t_eval: ArrayLike | None = None,
    tstops: ArrayLike = (),
    events: Any = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int | None = None,
    workers: int | None = None,
    on_interrupt: str = "raise",
) -> ManySolutions:
    """Solve a problem for many initial values, parameters, or both.

    Parameters
    ----------
    problem, t_span
        As in ``solve``. For an explicit method the function is traced if it is not yet; what
        cannot be traced is called as it is, a run at a time.
    y0
        Initial states, shape (m, n), or one state for all, shape (n,).
    params
        Parameters, shape (m, k), or one set for all, shape (k,).
    method
        Explicit tableaux run in SIMD lanes; any other method one run at a time, with a traced
        function on each core.
    step, rtol, atol, tstops, controller, norm, first_step, max_step, min_step, max_steps
        As in ``solve``; each run has its own steps.
    events
        As in ``solve``. Runs with events,
        with a projection, a mass matrix, a fixed step or ``tstops`` are done one by one. A run is
        reviewed as ``solve`` reviews it, wherever it was done.
    t_eval
        Output times, the same for all runs.
    workers
        Threads; by default one for each processor that this process may use.
    on_interrupt
        What Ctrl-C does, as in ``solve``: "raise" :class:`IntegrationInterrupted`, whose
        ``solution`` is what this function would return, or "return" it.

    Examples
    --------
    >>> import numpy as np
    >>> decay = lambda t, y, p: -p[0] * y
    >>> many = solve_many(decay, (0, 1), [1.0], params=np.linspace(1, 3, 5)[:, None], rtol=1e-9)
    >>> bool(np.allclose(many.y[:, 0], np.exp(-np.linspace(1, 3, 5))))
    True
    """
    check_choice(on_interrupt)
    ivp, states, parameters = _runs(problem, t_span, y0, params, events)
    threads = _thread_count(workers)
    most = attempts(max_steps, fixed=step is not None)
    times = np.zeros(0) if t_eval is None else np.array(t_eval, dtype=np.float64, ndmin=1)
    options: dict[str, Any] = dict(
        method=_Watched(method),
        step=step,
        rtol=rtol,
        atol=atol,
        tstops=tstops,
        controller=controller,
        norm=norm,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
    )
    engine = _probe(ivp, states, parameters, {**options, "t_eval": t_eval})
    options["max_steps"] = most
    result = _nothing_yet(ivp, states, times)
    lanes = _lanes(ivp, options, times)
    if isinstance(lanes, str):
        log.info("%s one by one: %s", ivp, lanes)
        pressed = _one_by_one(ivp, engine, parameters, result, options, threads)
        result.engine += f": {lanes}"
    else:
        alone = _Alone(ivp, engine, parameters, result, options)
        runs = LaneRuns(ivp, lanes, parameters, result, options, threads, alone)
        pressed = runs.integrate(_on_threads)
        for k in np.flatnonzero(result.message == ""):
            alone(int(k))
    if on_interrupt == "raise" and (pressed or np.any(result.status == Status.INTERRUPTED)):
        raise IntegrationInterrupted(f"interrupted: {result!r}", result)
    return result


def _thread_count(workers: Any) -> int:
    if workers is None:
        return available_processors()
    try:
        count = 0 if isinstance(workers, bool) else operator.index(workers)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(
            f"workers must be a number of threads, an integer of at least 1, or None for one on "
            f"each core; got {workers!r}"
        )
    return count


def _nothing_yet(
    ivp: IVP, states: NDArray[np.float64], times: NDArray[np.float64]
) -> ManySolutions:
    """Return what is known before the first step; runs that Ctrl-C leaves untouched stay so."""
    m, n = states.shape
    y_eval = np.full((m, n, times.size), np.nan)
    if times.size and times[0] == ivp.t_span[0]:
        y_eval[:, :, 0] = states
    steps, rejected = (np.zeros(m, dtype=np.int64) for _ in range(2))
    status = np.full(m, Status.INTERRUPTED, dtype=np.int64)
    start = np.full(m, ivp.t_span[0])
    message = np.full(m, f"interrupted at t = {ivp.t_span[0]:.9g}", dtype=object)
    nothing: list[list[NDArray[np.float64]]] = [[] for _ in range(m)]
    return ManySolutions(
        states.copy(), start, status, steps, rejected, times, y_eval, "one by one", message,
        nothing, [[] for _ in range(m)],
    )  # fmt: skip


def _runs(
    problem: Any, t_span: Any, y0: Any, params: Any, events: Any
) -> tuple[IVP, NDArray[np.float64], NDArray[np.float64]]:
    base_y0 = y0 if y0 is not None else getattr(problem, "y0", None)
    base_p = params if params is not None else getattr(problem, "params", ())
    if base_y0 is None:
        raise TypeError("solve_many needs initial states y0, of shape (m, n) or (n,)")
    if np.iscomplexobj(base_y0):
        raise TypeError("solve_many works on real states; split them into real and imaginary parts")
    states = np.asarray(base_y0, dtype=np.float64)
    parameters = np.asarray(base_p, dtype=np.float64)
    if states.ndim not in (1, 2) or parameters.ndim not in (1, 2):
        raise ValueError(
            f"expected y0 of shape (m, n) or (n,) and params of shape (m, k) or (k,), got "
            f"{states.shape} and {parameters.shape}"
        )
    counts = {a.shape[0] for a in (states, parameters) if a.ndim == 2}
    if len(counts) != 1:
        raise ValueError(
            "give y0 with m rows, params with m rows, or both with the same m; got shapes "
            f"{states.shape} and {parameters.shape}"
        )
    (m,) = counts
    if m == 0:
        raise ValueError("there are no runs: y0 or params has no rows")
    _check_finite("y0", states)
    _check_finite("params", parameters)
    states = np.ascontiguousarray(np.broadcast_to(states, (m, states.shape[-1])))
    parameters = np.ascontiguousarray(np.broadcast_to(parameters, (m, parameters.shape[-1])))
    if isinstance(problem, IVP):
        changes: dict[str, Any] = {"y0": states[0], "params": parameters[0]}
        if t_span is not None:
            changes["t_span"] = t_span
        if events is not None:
            changes["events"] = events
        ivp = problem.with_(**changes)
    else:
        if t_span is None:
            raise TypeError("solve_many(f, t_span, y0) needs the interval")
        ivp = IVP(problem, states[0], t_span, params=parameters[0], events=events or ())
    return ivp, states, parameters


def _check_finite(name: str, values: NDArray[np.float64]) -> None:
    """Raise with the first NaN or infinity among what the runs start with."""
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    place = ", ".join(map(str, bad[0]))
    message = f"{name}[{place}] is {values[tuple(bad[0])]}; {name} must be finite"
    if values.ndim == 2:
        count = len(np.unique(bad[:, 0]))
        message += (
            f" in every row (here it is not in {count} of {len(values)}); leave such runs out: "
            f"np.isfinite({name}).all(axis=1) says which to keep"
        )
    raise ValueError(message)


class _Watched:
    """A method whose engines are known while they run, so that they can be stopped."""

    def __init__(self, method: Any) -> None:
        self.method = _chosen(method)
        self.name = method_name(method)
        self.engines: dict[int, Stepper] = {}  # by thread
        self.stopped = False
        if hasattr(self.method, "error_components"):
            self.error_components = self.method.error_components

    def bind(self, problem: IVP, options: Options) -> Stepper:
        """Bind the method to a run, and remember the engine."""
        engine = _bind(self.method, problem, options)
        self.engines[threading.get_ident()] = engine
        if self.stopped:
            self.stop()
        return engine

    def unbind(self) -> Stepper | None:
        """Forget the engine of this thread, and return it."""
        return self.engines.pop(threading.get_ident(), None)

    def stop(self) -> None:
        """Let the loops of all engines end at once: they look at this flag before each step."""
        self.stopped = True
        for engine in list(self.engines.values()):
            engine.stop()


def _probe(
    ivp: IVP,
    states: NDArray[np.float64],
    parameters: NDArray[np.float64],
    options: dict[str, Any],
) -> Stepper:
    """Take one step of the first run that can take one; raise what is wrong with all of them.

    ``solve`` checks the options, the method and what f returns. A run whose f raises or is not
    finite at its start fails by itself, later, unless f raises for every run: then f is wrong.
    """
    run, sound = ivp, ivp.t_span[0] == ivp.t_span[1]  # f is not asked on an empty interval
    first: Exception | None = None
    raised = 0
    for y0, p in () if sound else zip(states, parameters):
        candidate = ivp.with_(y0=y0, params=p)
        try:
            slope = _first_slope(candidate)
        except Exception as error:
            first, raised = first or error, raised + 1
            continue
        run = candidate
        if np.isfinite(checked_slope(slope, run.y0)).all():
            sound = True
            break
    if first is not None and raised == len(states):
        raise first
    method: _Watched = options["method"]
    try:
        solve(run, max_steps=1, **options)  # after Ctrl-C there is nothing to keep yet
    except Exception:
        if sound or not method.engines:
            raise
    engine = method.unbind()
    assert engine is not None
    return engine


def _first_slope(run: IVP) -> Any:
    """f(t0, y0), as f returns it."""
    with np.errstate(all="ignore"):  # NaN is told by the status of the run
        return run.bind(run.f)(run.t_span[0], run.y0.copy())


def _lanes(ivp: IVP, options: dict[str, Any], times: NDArray[np.float64]) -> LaneCode | str:
    """Code for running in lanes; or why that is impossible."""
    from ..tracing import Traced

    controller = options["controller"]
    reasons = {
        "kernels are interpreted": interpreting(),
        "the interval is empty": ivp.t_span[0] == ivp.t_span[1],
        "it has events": bool(ivp.events),
        "it projects after each step": ivp.project is not None,
        "it has a mass matrix": ivp.mass is not None,
        "components must not become negative": ivp.nonnegative.size > 0,
        "the step is fixed": options["step"] is not None,
        "there are times to step on": np.size(options["tstops"]) > 0,
        "a predictive controller looks at steps in Python": controller and controller.predictive,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    try:
        return lane_code(ivp, options["method"].method, times, options["norm"] == "max")
    except Exception as error:
        if isinstance(ivp.f, Traced):
            raise
        # Nobody asked for tracing, and on floats f works: `_probe` has called it.
        log.info("%s is called as it is, a run at a time: %s", ivp.f, error)
        return "f cannot be traced"


class _Alone:
    """Does a run by ``solve`` and enters what it finds; `engine` is one of those that do it."""

    def __init__(
        self,
        ivp: IVP,
        engine: Stepper,
        parameters: NDArray[np.float64],
        result: ManySolutions,
        options: dict[str, Any],
    ) -> None:
        from ..tracing import Traced

        # Some methods trace f themselves; once is enough. (Others have divided it by the mass.)
        found, same = engine.problem.f, engine.problem.mass is ivp.mass
        self.ivp = ivp.with_(f=found) if isinstance(found, Traced) and same else ivp
        self.states, self.parameters, self.result = result.y.copy(), parameters, result
        times = result.t_eval if result.t_eval.size else None
        self.options = {**options, "t_eval": times, "on_interrupt": "return"}

    def __call__(self, k: int) -> None:
        result, times = self.result, self.result.t_eval
        run = self.ivp.with_(y0=self.states[k], params=self.parameters[k])
        result.y_eval[k] = np.nan
        try:
            solution = solve(run, **self.options)
        except Exception as error:  # f fails at this run's very start; the others go on
            result.status[k], result.message[k] = _failure_at_start(run), str(error) or repr(error)
            if times.size and times[0] == run.t_span[0]:
                result.y_eval[k, :, 0] = run.y0
            return
        finally:
            self.options["method"].unbind()
        assert solution.reached is not None
        result.nsteps[k], result.nrejected[k] = solution.nsteps, solution.nrejected
        result.t[k], result.y[k] = solution.reached
        if times.size:
            result.y_eval[k, :, : solution.t.size] = solution.y
        status, result.message[k] = solution.status, solution.ending
        result.status[k] = status
        result.t_events[k], result.y_events[k] = solution.t_events, solution.y_events


def _one_by_one(
    ivp: IVP,
    engine: Stepper,
    parameters: NDArray[np.float64],
    result: ManySolutions,
    options: dict[str, Any],
    threads: int,
) -> bool:
    """Integrate each run by ``solve``; whether Ctrl-C was pressed."""
    from ..tracing import Traced

    alone = _Alone(ivp, engine, parameters, result, options)
    watched = all(isinstance(event.function, Traced) for event in ivp.events)
    if engine.is_native and ivp.project is None and watched:
        threads = min(threads, len(result))
        result.engine = f"one by one, {threads} threads"
        tasks = ((k,) for k in range(len(result)))
        return _on_threads(alone, tasks, threads, options["method"].stop)
    try:
        for k in range(len(result)):
            alone(k)
            if result.status[k] == Status.INTERRUPTED:
                break
    except KeyboardInterrupt:  # it came between two runs
        return True
    except Exception:
        raise
    except BaseException as stop:  # sys.exit and its like
        pass_on(stop, result)
    return False


def _failure_at_start(run: IVP) -> Status:
    """How a run failed that ``solve`` refused to begin."""
    try:
        finite = np.isfinite(checked_slope(_first_slope(run), run.y0)).all()
    except Exception:
        return Status.FUNCTION_RAISED
    return Status.FUNCTION_RAISED if finite else Status.NONFINITE


def _on_threads(
    work: Callable[..., None],
    tasks: Iterable[tuple[Any, ...]],
    threads: int,
    stop: Callable[[], None],
) -> bool:
    """Do all tasks on threads. After Ctrl-C no more are begun, and `stop` is to end the others.

    Returns whether that has happened.
    """
    waiting = deque(tasks)

    def take() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            work(*task)

    # Runs on several threads at once leave Python's hook as one of them found it; here it is
    # put back. The main thread waits in short pieces, since only it is told of Ctrl-C.
    interrupts = Interrupts()
    with ThreadPoolExecutor(threads) as pool, quiet_interrupts(interrupts.wait), interrupts:
        working = [pool.submit(take) for _ in range(threads)]
        try:
            while wait(working, LOOK).not_done and not interrupts.waiting:
                pass
        finally:  # a second Ctrl-C, or another signal, may raise
            waiting.clear()
            while not all(future.done() for future in working):
                stop()
                wait(working, LOOK)
    for future in working:
        future.result()
    return interrupts.waiting
