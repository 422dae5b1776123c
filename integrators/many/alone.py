"""Runs of ``solve_many`` that are done one by one, by ``solve``: what has no place in lanes.

On all cores if everything is machine code, which lets other threads run; in the calling thread if
functions of Python are called.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import pass_on
from ..methods.names import bound, chosen_method, method_name
from ..problem import IVP
from ..runs.mistakes import explained
from ..solve import solve
from ..stepping.engine import Options, Stepper, checked_slope
from ..stepping.state import Status
from .threads import on_threads

if TYPE_CHECKING:
    from .reductions import Reductions
    from .results import Each, ManySolutions

__all__ = ["Alone", "Watched", "one_by_one", "probe"]


class Watched:
    """A method whose engines are known while they run, so that they can be stopped."""

    def __init__(self, method: Any) -> None:
        self.method = chosen_method(method)
        self.name = method_name(method)
        self.engines: dict[int, Stepper] = {}  # by thread
        self.stopped = False
        if hasattr(self.method, "error_components"):
            self.error_components = self.method.error_components

    def bind(self, problem: IVP, options: Options) -> Stepper:
        """Bind the method to a run, and remember the engine."""
        engine = bound(self.method, problem, options)
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


def probe(
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
    method: Watched = options["method"]
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
    with explained(run), np.errstate(all="ignore"):  # NaN is told by the status of the run
        return run.bind(run.f)(run.t_span[0], run.y0.copy())


class Alone:
    """Does a run by ``solve`` and enters what it finds; `engine` is one of those that do it."""

    def __init__(
        self,
        ivp: IVP,
        engine: Stepper,
        parameters: NDArray[np.float64],
        result: ManySolutions,
        options: dict[str, Any],
        each: Each,
        reductions: Reductions,
    ) -> None:
        from ..tracing import Traced

        # Some methods trace f themselves; once is enough. (Others have divided it by the mass.)
        found, same = engine.problem.f, engine.problem.mass is ivp.mass
        self.ivp = ivp.with_(f=found) if isinstance(found, Traced) and same else ivp
        self.states, self.parameters, self.result = result.y.copy(), parameters, result
        times = result.t_eval if result.t_eval.size else None
        self.options = {**options, "t_eval": times, "on_interrupt": "return"}
        self.each, self.reductions = each, reductions
        if reductions.along:
            self.options["dense_output"] = True

    def __call__(self, k: int) -> None:
        """Do run k."""
        result, times = self.result, self.result.t_eval
        changes: dict[str, Any] = {"y0": self.states[k], "params": self.parameters[k]}
        if len(self.each.spans) > 1:
            changes["t_span"] = self.each.span(k)
        run = self.ivp.with_(**changes)
        result.y_eval[k] = np.nan
        self.reductions.enter_alone(k, result, None, self.parameters[k])
        try:
            solution = solve(run, **{**self.options, **self.each.tolerances(k)})
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
        self.reductions.enter_alone(k, result, solution, self.parameters[k])


def one_by_one(ivp: IVP, engine: Stepper, alone: Alone, threads: int) -> bool:
    """Integrate each run by ``solve``; whether Ctrl-C was pressed."""
    from ..tracing import Traced

    result, options = alone.result, alone.options
    watched = all(isinstance(event.function, Traced) for event in ivp.events)
    if engine.is_native and ivp.project is None and watched:
        threads = min(threads, len(result))
        result.engine = f"one by one, {threads} threads"
        tasks = ((k,) for k in range(len(result)))
        return on_threads(alone, tasks, threads, options["method"].stop)
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
