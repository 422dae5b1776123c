"""``solve_many``: thousands of runs of one problem, side by side and on all cores.

With a traced right-hand side and an explicit method, or a fully implicit one such as RADAU5, runs
are integrated in the lanes of SIMD registers (``lanes``), a block of runs for each thread. Each run
has its own adaptive steps, and a run that fails stops nobody else. What has no place in lanes
(other methods, functions that are not traced) runs one by one through ``solve``, and
``ManySolutions.engine`` says why: on all cores if it is machine code throughout, which lets other
threads run, and in the calling thread if it calls functions of Python. After Ctrl-C
what was computed goes with the exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import IntegrationInterrupted, check_on_interrupt
from ..hybrid import Hybrid
from ..kernels import interpreting
from ..options import USUAL_ATOL, USUAL_RTOL
from ..problem import IVP
from ..stepping.control import Controller
from ..stepping.engine import Stepper
from ..stepping.limits import attempts
from ..stepping.state import Status
from .alone import Alone, Watched, one_by_one, probe
from .by_solve import run_each, why_not_lanes
from .inputs import ALGEBRA, check_times, sorted_options
from .inputs import runs_of as _runs
from .lanes.code import LaneCode, lane_code
from .lanes.runs import LaneRuns
from .lanes.tasks import lane_tasks
from .reductions import Reductions
from .results import Each, ManySolutions, nothing_yet
from .sensitive import many_with_sensitivities
from .threads import on_threads, thread_count

__all__ = ["ManySolutions", "solve_many"]

log = logging.getLogger(__name__)


def solve_many(
    problem: IVP | Hybrid | Callable[..., Any],
    t_span: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    *,
    params: ArrayLike | None = None,
    method: Any = "DOPRI5",
    step: float | None = None,
    rtol: ArrayLike = USUAL_RTOL,
    atol: ArrayLike = USUAL_ATOL,
    t_eval: ArrayLike | None = None,
    tstops: ArrayLike = (),
    events: Any = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int | None = None,
    reduce: Mapping[str, Any] | None = None,
    sensitivities: Any = None,
    kinks: str | None = None,
    workers: int | None = None,
    on_interrupt: str = "raise",
    **others: Any,
) -> ManySolutions:
    """Solve a problem for many initial values, parameters, or both.

    Parameters
    ----------
    problem, t_span
        As in ``solve``. For a method that runs in lanes the function is traced if it is not yet;
        what cannot be traced is called as it is, a run at a time. ``t_span`` may have a row
        (t0, t1) for each run; rows of two numbers without ``y0`` are intervals, too.
    y0
        Initial states, shape (m, n), or one state for all, shape (n,).
    params
        Parameters, shape (m, k), or one set for all, shape (k,).
    method
        Explicit tableaux run in SIMD lanes, and so do Radau IIA methods (RADAU5) of up to 20
        states; any other method one run at a time, with a traced function on each core.
    step, rtol, atol, tstops, controller, norm, first_step, max_step, min_step, max_steps, kinks
        As in ``solve``; each run has its own steps. ``rtol`` may be a number for each run, ``atol``
        a row for each run, shape (m, 1) or (m, n).
    events
        As in ``solve``. Traced events, with traced resets, and a traced projection stay in lanes;
        runs with other ones, with modes, a Switch, a mass matrix or ``tstops`` are done one by one,
        and ``ManySolutions.engine`` says so. A run is reviewed as ``solve`` reviews it, wherever
        it was done.
    t_eval
        Output times, the same for all runs.
    reduce
        What to keep of each run, by name: :class:`Largest`, :class:`Smallest`, :class:`Integral`
        and :class:`Mean` of a function g(t, y [, p]) along it, :class:`Final` and :class:`ValueAt`,
        :class:`EventTime`. The numbers are in ``ManySolutions.reduced``; no trajectories are kept.
    sensitivities
        As in ``solve``: derivatives of the final states (and of those at ``t_eval``) are in
        ``ManySolutions.sensitivities`` (and ``sensitivities_eval``). Not together with `reduce`.
    workers
        Threads; by default one for each processor that this process may use.
    on_interrupt
        What Ctrl-C does, as in ``solve``: "raise" :class:`IntegrationInterrupted`, whose
        ``solution`` is what this function would return, or "return" it.
    others
        ``jac``, ``jac_sparsity``, ``mass``, ``index``, ``project``, ``nonnegative`` and
        ``manifold`` of the problem; ``linear_solver``, ``preconditioner`` and ``bandwidth``: as in
        ``solve``, one run at a time.

    Examples
    --------
    >>> import numpy as np
    >>> decay = lambda t, y, p: -p[0] * y
    >>> many = solve_many(decay, (0, 1), [1.0], params=np.linspace(1, 3, 5)[:, None], rtol=1e-9)
    >>> bool(np.allclose(many.y[:, 0], np.exp(-np.linspace(1, 3, 5))))
    True
    """
    check_on_interrupt(on_interrupt)
    fields, algebra = sorted_options(others)
    ivp, states, parameters, each = _runs(problem, t_span, y0, params, events, rtol, atol, fields)
    if sensitivities is not None:
        if reduce or why_not_lanes(ivp, kinks):
            raise ValueError(
                "sensitivities of many runs go neither with reduce, nor with modes and switches; "
                "leave these out, or call solve for each run"
            )
        rest: dict[str, Any] = dict(
            method=method,
            step=step,
            t_eval=t_eval,
            tstops=tstops,
            controller=controller,
            norm=norm,
            first_step=first_step,
            max_step=max_step,
            min_step=min_step,
            max_steps=max_steps,
            workers=workers,
            **algebra,
        )
        fixed, run = step is not None, partial(solve_many, **rest)
        found = many_with_sensitivities(ivp, states, parameters, sensitivities, each, fixed, run)
        return _returned(*found, on_interrupt)
    threads = thread_count(workers)
    most = attempts(max_steps, fixed=step is not None)
    times = np.zeros(0) if t_eval is None else np.array(t_eval, dtype=np.float64, ndmin=1)
    alone_because = why_not_lanes(ivp, kinks)
    options: dict[str, Any] = dict(
        method=method if alone_because else Watched(method),
        step=step,
        **each.tolerances(0),
        tstops=tstops,
        controller=controller,
        norm=norm,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
        **algebra,
    )
    if alone_because:
        if reduce or each.differs:
            raise ValueError(
                f"reduce, and times or tolerances of each run, have no place here, since "
                f"{alone_because}; reduce trajectories (t_eval=…), and call solve for each run"
            )
        result = nothing_yet(states, times, each)
        result.engine += f": {alone_because}"
        more = {"kinks": kinks, "max_steps": most, "t_eval": t_eval}
        pressed = run_each(ivp, parameters, result, {**options, **more})
        return _returned(result, pressed, on_interrupt)
    reductions = Reductions(reduce or {}, ivp, times)
    engine = probe(ivp, states, parameters, {**options, "t_eval": t_eval})
    options["max_steps"] = most
    check_times(reductions.times, each.spans)
    lanes = _lanes(ivp, engine, options, reductions, each)
    result = nothing_yet(states, reductions.times, each, blank=isinstance(lanes, str))
    alone = Alone(ivp, engine, parameters, result, options, each, reductions)
    if isinstance(lanes, str):
        log.info("%s one by one: %s", ivp, lanes)
        pressed = one_by_one(ivp, engine, alone, threads)
        result.engine += f": {lanes}"
    else:
        runs = LaneRuns(ivp, lanes, parameters, result, options, threads, alone, each, reductions)
        pressed = runs.integrate(on_threads)
        for k in np.flatnonzero(result.message == ""):
            alone(int(k))
    reductions.trim(result)
    return _returned(result, pressed, on_interrupt)


def _returned(result: ManySolutions, pressed: bool, on_interrupt: str) -> ManySolutions:
    if on_interrupt == "raise" and (pressed or np.any(result.status == Status.INTERRUPTED)):
        raise IntegrationInterrupted(f"interrupted: {result!r}", result)
    return result


def _lanes(
    ivp: IVP, engine: Stepper, options: dict[str, Any], reductions: Reductions, each: Each
) -> LaneCode | str:
    """Code for running in lanes; or why that is impossible."""
    from ..tracing import Traced, TracingError

    reasons = {
        "kernels are interpreted": interpreting(),
        "the interval is empty": bool((each.spans[:, 0] == each.spans[:, 1]).any()),
        "runs go both ways in time": len(set(np.sign(np.diff(each.spans).ravel()))) > 1,
        "it has a mass matrix": ivp.mass is not None,
        "components must not become negative": ivp.nonnegative.size > 0,
        "there are times to step on": np.size(options["tstops"]) > 0,
        "its linear algebra is chosen": not ALGEBRA.isdisjoint(options),
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    fixed = options["step"] is not None
    try:
        kept = reductions.traced()
    except TracingError as error:
        log.info("a function of reduce is called as it is, a run at a time: %s", error)
        return "a function of reduce cannot be traced"
    try:
        tasks = lane_tasks(ivp, kept)
        if isinstance(tasks, str):
            return tasks
        if fixed and tasks.resets is not None:
            return "an event resets the state between fixed steps"
        inside = reductions.times.size > 0 or tasks.needs_dense
        max_norm = options["norm"] == "max"
        method, controller = options["method"].method, options["controller"]
        return lane_code(ivp, engine, method, inside, max_norm, tasks, fixed, controller)
    except Exception as error:
        if isinstance(ivp.f, Traced):
            raise
        # Nobody asked for tracing, and on floats f works: `probe` has called it.
        log.info("%s is called as it is, a run at a time: %s", ivp.f, error)
        return "f cannot be traced"
