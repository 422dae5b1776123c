"""What a user gives to ``solve_many``: states, parameters, times and tolerances of all runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hybrid import Hybrid
from ..problem import IVP, time_span
from ..runs.mistakes import relative_tolerance
from .results import Each

__all__ = ["ALGEBRA", "check_finite", "check_times", "runs_of", "sorted_options"]

Array = NDArray[np.float64]


#: Options of ``solve`` that are parts of the problem, …
FIELDS = frozenset(("jac", "jac_sparsity", "mass", "index", "project", "nonnegative", "manifold"))
#: … that choose linear algebra, …
ALGEBRA = frozenset(("linear_solver", "preconditioner", "bandwidth"))
#: … and that are for one run, with what to do instead.
FOR_ONE = {
    "precision": "all runs are done in doubles; call solve(…, precision=…) for each run",
    "dense_output": "give t_eval, or call solve for each run",
    "callback": "give events or reduce, or call solve for each run",
    "time_limit": "Ctrl-C keeps what was computed; max_steps bounds each run",
    "progress": "a Study tells how far it is; or call solve for each run",
    "throw": "look at success and message of the result",
    "check": "call solve(…, check=…) for the runs in doubt",
    "args": "give them as params, one row for each run",
    "vectorized": "f is called with one state",
}


def sorted_options(others: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the problem and choices of linear algebra among further options of ``solve``."""
    for name in others:
        if name in FOR_ONE:
            raise TypeError(f"solve_many has no {name}, which is for one run: {FOR_ONE[name]}")
        if name not in FIELDS | ALGEBRA:
            raise TypeError(
                f"solve_many() got an unexpected keyword argument {name!r}; help(solve_many) lists "
                "what it takes"
            )
    given = {name: value for name, value in others.items() if value is not None}
    return (
        {name: value for name, value in given.items() if name in FIELDS},
        {name: value for name, value in given.items() if name in ALGEBRA},
    )


def runs_of(
    problem: Any,
    t_span: Any,
    y0: Any,
    params: Any,
    events: Any,
    rtol: Any,
    atol: Any,
    fields: Mapping[str, Any],
) -> tuple[Any, Array, Array, Each]:
    """The problem of the first run, and states, parameters, times and tolerances of all."""
    wide = np.ndim(t_span) == 2 and np.shape(t_span)[1] != 2  # intervals have two columns
    if np.ndim(t_span) == 2 and (np.shape(y0) == (2,) or (y0 is None and wide)):
        # Rows of states, in the order of IVP.
        t_span, y0 = y0, t_span
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
    given = t_span if t_span is not None else getattr(problem, "t_span", None)
    if given is None:
        raise TypeError("solve_many(f, t_span, y0) needs the interval")
    spans = np.asarray([time_span(row) for row in given] if np.ndim(given) == 2 else given)
    rtols = np.asarray(rtol if np.ndim(rtol) else relative_tolerance(rtol), dtype=float)
    atols = np.asarray(atol, dtype=float)
    rows = [a.shape[0] for a in (states, parameters, spans, atols) if a.ndim == 2]
    if rtols.ndim and rows and rtols.shape[0] not in rows:
        raise ValueError(
            f"rtol must be one number, or one for each of the {rows[0]} rows (runs), got "
            f"{np.shape(rtol)}; for tolerances of components let atol be a list"
        )
    counts = {*rows, *(rtols.shape[0] for _ in range(rtols.ndim))}
    if len(counts) != 1:
        more = {"t_span": spans.shape, "rtol": rtols.shape, "atol": atols.shape}
        told = "".join(f", {name} {shape}" for name, shape in more.items() if len(shape) > 1)
        raise ValueError(
            "give y0 with m rows, params with m rows, or both with the same m; got shapes "
            f"{states.shape} and {parameters.shape}{told}"
        )
    (m,) = counts
    if m == 0:
        raise ValueError("there are no runs: y0 or params has no rows")
    check_finite("y0", states)
    check_finite("params", parameters)
    states = np.ascontiguousarray(np.broadcast_to(states, (m, states.shape[-1])))
    parameters = np.ascontiguousarray(np.broadcast_to(parameters, (m, parameters.shape[-1])))
    find = getattr(problem, "consistent_start", None)
    if find is not None:  # what a state must satisfy depends on the parameters, and on time
        begins = np.broadcast_to(spans[..., 0], m)
        every = zip(states, parameters, begins)
        states = np.array([find(None if y0 is None else row, p, t) for row, p, t in every])
    if (admit := getattr(problem, "admit", None)) is not None:
        states = np.array([admit(row) for row in states])
    if isinstance(problem, IVP | Hybrid):
        changes: dict[str, Any] = {"y0": states[0], "params": parameters[0], **fields}
        if t_span is not None:
            changes["t_span"] = spans[0] if spans.ndim == 2 else t_span
        if events is not None:
            changes["events"] = events
        ivp = problem.with_(**changes)
    else:
        first = spans[0] if spans.ndim == 2 else t_span
        ivp = IVP(problem, states[0], first, params=parameters[0], events=events or (), **fields)
    spans = spans if spans.ndim == 2 else np.array([ivp.t_span])
    return (
        ivp,
        states,
        parameters,
        Each(
            np.ascontiguousarray(spans, dtype=float), *_tolerances(rtols, atols, ivp.n), rtol, atol
        ),
    )


def check_finite(name: str, values: NDArray[np.float64]) -> None:
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


def _tolerances(rtols: Array, atols: Array, n: int) -> tuple[Array, Array]:
    """Relative tolerances of all runs, and absolute ones in rows; one for all where they agree."""
    if rtols.ndim > 1:
        raise ValueError(f"rtol must be a number, or one for each run, got shape {rtols.shape}")
    for rtol in np.atleast_1d(rtols) if rtols.ndim else ():
        relative_tolerance(float(rtol))
        if not 0.0 <= rtol < np.inf:
            raise ValueError(f"rtol must be a number ≥ 0 for each run, got {rtol}")
    if atols.ndim == 2 and atols.shape[1] not in (1, n):
        raise ValueError(
            f"atol must have 1 or {n} columns, if it has a row for each run, got shape "
            f"{atols.shape}"
        )
    if atols.ndim == 2 and not (np.all(atols >= 0.0) and np.isfinite(atols).all()):
        raise ValueError("atol must not be negative, NaN or infinite in any row")
    rows = atols if atols.ndim == 2 else np.atleast_1d(atols)[None]
    if rows.shape[1] not in (1, n):  # `solve` says what is wrong with it
        rows = rows[:, :1]
    wide = np.ascontiguousarray(np.broadcast_to(rows, (len(rows), n)))
    return np.ascontiguousarray(np.atleast_1d(rtols)), wide


def check_times(times: Array, spans: Array) -> None:
    """Refuse output times outside of the interval of some run."""
    if not times.size or len(spans) == 1:
        return
    low, high = spans.min(axis=1).max(), spans.max(axis=1).min()
    if times.min() < low or times.max() > high:
        raise ValueError(
            f"t_eval must lie within the t_span of every run, here from {low:g} to {high:g}"
        )
