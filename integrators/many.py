"""``solve_many``: thousands of runs of one problem, side by side and on all cores.

With a traced right-hand side and an explicit method, runs are integrated in the lanes of SIMD
registers (``integrators.methods.lanes``), a block of runs for each thread. Each run has its own
adaptive steps, and a run that fails stops nobody else. Other methods run one by one through
``solve``: on all cores if they are machine code throughout, which lets other threads run, and in
the calling thread if they call functions of Python. After Ctrl-C what was computed is returned.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .control import PREDICTIVE, Controller
from .interrupts import Interrupts, quiet_interrupts
from .kernels import compiled, interpreting
from .methods.engine import Engine, Options, Stepper, checked_slope
from .methods.lanes import LANES, STOP, LaneCode, lane_code, run_lanes
from .methods.state import MAX_STEPS, Status
from .problem import IVP
from .processors import available_processors
from .solve import _bind, _chosen, method_name, solve

__all__ = ["ManySolutions", "solve_many"]

BLOCK = 512  # runs that a thread takes at a time
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
        How the runs were done.
    """

    y: NDArray[np.float64]
    t: NDArray[np.float64]
    status: NDArray[np.int64]
    nsteps: NDArray[np.int64]
    nrejected: NDArray[np.int64]
    t_eval: NDArray[np.float64]
    y_eval: NDArray[np.float64]
    engine: str

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
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    t_eval: ArrayLike | None = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int = 1_000_000,
    workers: int | None = None,
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
    rtol, atol, controller, norm, first_step, max_step, min_step, max_steps
        As in ``solve``; each run has its own steps.
    t_eval
        Output times, the same for all runs.
    workers
        Threads; by default one for each processor that this process may use.

    Examples
    --------
    >>> import numpy as np
    >>> decay = lambda t, y, p: -p[0] * y
    >>> many = solve_many(decay, (0, 1), [1.0], params=np.linspace(1, 3, 5)[:, None], rtol=1e-9)
    >>> bool(np.allclose(many.y[:, 0], np.exp(-np.linspace(1, 3, 5))))
    True
    """
    ivp, states, parameters = _runs(problem, t_span, y0, params)
    threads = _thread_count(workers)
    if int(max_steps) < 1:
        raise ValueError(f"max_steps must be at least 1, got {max_steps}")
    times = np.zeros(0) if t_eval is None else np.atleast_1d(np.asarray(t_eval, dtype=np.float64))
    options: dict[str, Any] = dict(
        method=_Watched(method),
        rtol=rtol,
        atol=atol,
        controller=controller,
        norm=norm,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
    )
    engine = _probe(ivp, states, parameters, {**options, "t_eval": t_eval})
    options["max_steps"] = int(max_steps)
    result = _nothing_yet(ivp, states, times)
    if ivp.t_span[0] == ivp.t_span[1]:
        result.status[:] = Status.FINISHED
        return result
    lanes = None
    if not interpreting() and not (controller and controller.predictive):
        lanes = _lanes(ivp, options["method"].method, times, norm == "max")
    if lanes is None:
        _one_by_one(ivp, engine, parameters, result, options, threads)
    else:
        _in_lanes(ivp, lanes, parameters, result, options, threads)
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
    return ManySolutions(states.copy(), start, status, steps, rejected, times, y_eval, "one by one")


def _runs(
    problem: Any, t_span: Any, y0: Any, params: Any
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
        ivp = problem.with_(**changes)
    else:
        if t_span is None:
            raise TypeError("solve_many(f, t_span, y0) needs the interval")
        ivp = IVP(problem, states[0], t_span, params=parameters[0])
    if ivp.events or ivp.project is not None or ivp.mass is not None:
        raise ValueError(
            "solve_many knows neither events, projections nor mass matrices; use solve in a loop"
        )
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
        """Let the loops of all engines end at once: they look at this limit before each step."""
        self.stopped = True
        for engine in list(self.engines.values()):
            if isinstance(engine, Engine):
                engine.count[MAX_STEPS] = 0


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
        if solve(run, max_steps=1, **options).status == Status.INTERRUPTED:
            raise KeyboardInterrupt  # there is nothing to return yet
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


def _lanes(ivp: IVP, method: Any, times: NDArray[np.float64], max_norm: bool) -> LaneCode | None:
    """Code for running in lanes; None if that is impossible."""
    from .tracing import Traced

    try:
        return lane_code(ivp, method, times, max_norm)
    except Exception as error:
        if isinstance(ivp.f, Traced):
            raise
        # Nobody asked for tracing, and on floats f works: `_probe` has called it.
        log.info("%s is called as it is, a run at a time: %s", ivp.f, error)
        return None


def _in_lanes(
    ivp: IVP,
    code: LaneCode,
    parameters: NDArray[np.float64],
    result: ManySolutions,
    options: dict[str, Any],
    threads: int,
) -> None:
    """Integrate all runs in lanes, a block of them on each thread."""
    m, n = result.y.shape
    order = code.estimate_order
    weights = np.zeros(n) + np.asarray(options["atol"], dtype=np.float64)
    weights = np.maximum(weights, np.finfo(float).tiny)
    t0, t1 = ivp.t_span
    first = options["first_step"] or 0.0
    control = (options["controller"] or Controller()).to_array(order)[:PREDICTIVE]
    constants = [t1, options["min_step"], options["max_step"], options["max_steps"], *control]
    shared: dict[str, Any] = dict(
        switches=code.switches(options["norm"] == "max"),
        numbers=np.array([t0, first, options["rtol"], 1 / (order + 1)], dtype=np.float64),
        atol=weights,
        y0=result.y.copy(),
        p0=parameters,
        t_eval=result.t_eval,
        y_end=result.y,
        t_end=result.t,
        status=result.status,
        steps=result.nsteps,
        rejected=result.nrejected,
        y_eval=result.y_eval,
    )
    kernel = compiled(run_lanes, nogil=True)

    def integrate(first: int, last: int) -> None:
        kernel(code.workspace(constants, **shared), first, last)

    def stop() -> None:
        shared["switches"][STOP] = 1

    size = max(LANES, min(BLOCK, -(-m // threads)))
    integrate(0, 0)  # compile before the threads start
    _on_threads(integrate, pairwise([*range(0, m, size), m]), threads, stop)
    result.engine = f"{LANES} lanes, {threads} threads"


def _one_by_one(
    ivp: IVP,
    engine: Stepper,
    parameters: NDArray[np.float64],
    result: ManySolutions,
    options: dict[str, Any],
    threads: int,
) -> None:
    """Integrate each run by ``solve``; `engine` is one of those that do it."""
    from .tracing import Traced

    states, times, method = result.y.copy(), result.t_eval, options["method"]
    forward = 1.0 if ivp.t_span[1] >= ivp.t_span[0] else -1.0
    options = {**options, "dense_output": times.size > 0}
    if isinstance(engine.problem.f, Traced):  # some methods trace f themselves; once is enough
        ivp = ivp.with_(f=engine.problem.f)

    def integrate(k: int) -> None:
        run = ivp.with_(y0=states[k], params=parameters[k])
        try:
            solution = solve(run, **options)
        except Exception:  # f fails at this run's very start; the others go on
            result.status[k] = _failure_at_start(run)
            return
        finally:
            method.unbind()
        result.nsteps[k], result.nrejected[k] = solution.nsteps, solution.nrejected
        result.t[k], result.y[k] = solution.t[-1], solution.y[:, -1]
        reached = forward * times <= forward * result.t[k]
        if solution.sol is not None:
            result.y_eval[k][:, reached] = solution.sol(times[reached])
        status = solution.status
        attempts = solution.nsteps + solution.nrejected
        if status == Status.TOO_MANY_STEPS and attempts < options["max_steps"]:
            status = Status.INTERRUPTED  # by method.stop
        result.status[k] = status

    if engine.is_native:
        threads = min(threads, len(states))
        _on_threads(integrate, ((k,) for k in range(len(states))), threads, method.stop)
        result.engine = f"one by one, {threads} threads"
        return
    try:
        for k in range(len(states)):
            integrate(k)
            if result.status[k] == Status.INTERRUPTED:
                break
    except KeyboardInterrupt:  # it came between two runs
        pass


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
) -> None:
    """Do all tasks on threads. After Ctrl-C no more are begun, and `stop` is to end the others."""
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
    with ThreadPoolExecutor(threads) as pool, quiet_interrupts(), interrupts:
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
