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
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import IntegrationInterrupted, check_choice
from ..hybrid import Hybrid
from ..kernels import interpreting
from ..problem import IVP
from ..stepping.control import Controller
from ..stepping.limits import attempts
from ..stepping.state import Status
from .alone import Alone, Watched, one_by_one, probe
from .by_solve import run_each, why_not_lanes
from .in_lanes import LaneRuns
from .lanes import LaneCode, lane_code
from .results import ManySolutions, nothing_yet
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
    kinks: str | None = None,
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
    step, rtol, atol, tstops, controller, norm, first_step, max_step, min_step, max_steps, kinks
        As in ``solve``; each run has its own steps.
    events
        As in ``solve``. Runs with events,
        with modes, a Switch, a projection, a mass matrix, a fixed step or ``tstops`` are done one
        by one; ``engine`` says why. A run is
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
    threads = thread_count(workers)
    most = attempts(max_steps, fixed=step is not None)
    times = np.zeros(0) if t_eval is None else np.array(t_eval, dtype=np.float64, ndmin=1)
    alone_because = why_not_lanes(ivp, kinks)
    options: dict[str, Any] = dict(
        method=method if alone_because else Watched(method),
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
    if alone_because:
        result = nothing_yet(ivp, states, times)
        result.engine += f": {alone_because}"
        more = {"kinks": kinks, "max_steps": most, "t_eval": t_eval}
        pressed = run_each(ivp, parameters, result, {**options, **more})
        return _returned(result, pressed, on_interrupt)
    engine = probe(ivp, states, parameters, {**options, "t_eval": t_eval})
    options["max_steps"] = most
    result = nothing_yet(ivp, states, times)
    lanes = _lanes(ivp, options, times)
    if isinstance(lanes, str):
        log.info("%s one by one: %s", ivp, lanes)
        pressed = one_by_one(ivp, engine, parameters, result, options, threads)
        result.engine += f": {lanes}"
    else:
        alone = Alone(ivp, engine, parameters, result, options)
        runs = LaneRuns(ivp, lanes, parameters, result, options, threads, alone)
        pressed = runs.integrate(on_threads)
        for k in np.flatnonzero(result.message == ""):
            alone(int(k))
    return _returned(result, pressed, on_interrupt)


def _returned(result: ManySolutions, pressed: bool, on_interrupt: str) -> ManySolutions:
    if on_interrupt == "raise" and (pressed or np.any(result.status == Status.INTERRUPTED)):
        raise IntegrationInterrupted(f"interrupted: {result!r}", result)
    return result


def _runs(
    problem: Any, t_span: Any, y0: Any, params: Any, events: Any
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    base_y0 = y0 if y0 is not None else getattr(problem, "y0", None)
    base_p = params if params is not None else getattr(problem, "params", ())
    base_p = () if base_p is None else base_p  # of a Hybrid whose modes have their own
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
    if isinstance(problem, IVP | Hybrid):
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
