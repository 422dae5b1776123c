"""Positions and velocities of a mechanism along a run, whatever the variables of its problem."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["is_plain", "states_at", "states_of"]


def states_of(model: Model, solution: Any) -> tuple[Array, Array]:
    """Times and states [q; v] in columns of a solution, or of anything with its fields t and y.

    States in other variables (of gears, minimal coordinates, multipliers, compliant surfaces) are
    translated by what their problem lets observe.
    """
    try:
        t, y = np.atleast_1d(solution.t), np.asarray(solution.y, dtype=float)
    except AttributeError:
        raise TypeError(
            f"expected a Solution, such as simulate() returns, received {solution!r:.80}"
        ) from None
    n = model.nq + model.nv
    if is_plain(model, solution):
        return t, y
    problem: Any = getattr(solution, "problem", None)
    own = (*model.q_names, *model.v_names)
    kept = getattr(solution, "kept_names", None) or ()
    if tuple(kept)[:n] == own:  # multipliers follow, of a lost form
        return t, y[:n]
    if hasattr(problem, "mechanical"):  # a formulation of closed loops
        states = np.concatenate(problem.split_along(t, y))
        if len(states) == n:
            return t, states
    observe = getattr(problem, "observe", None)
    seen = None
    if observe is not None:
        seen = solution.observed if hasattr(solution, "observed") else observe(solution)
    if seen is None or len(seen.q) != model.nq or len(seen.v) != model.nv:
        raise ValueError(
            f"the solution's states have shape {y.shape}, expected nq + nv = {n} rows for this "
            f"model and {len(t)} columns; is it a solution of another model? Of a run from a file, "
            "in other variables, the problem translates them: Solution.load(path, problem=...)"
        )
    return t, np.vstack([seen.q, seen.v])


def states_at(model: Model, solution: Any, t: Array) -> SimpleNamespace:
    """Times t and states [q; v] then, as fields t and y.

    Between the times of the solution its dense output is used, else states are interpolated
    linearly.
    """
    if getattr(solution, "sol", None) is not None:
        kept = {name: getattr(solution, name, None) for name in ("problem", "kept_names")}
        between = SimpleNamespace(t=t, y=np.asarray(solution.sol(t), dtype=float), **kept)
        y = np.array(states_of(model, between)[1])
    else:
        times, states = states_of(model, solution)
        order = np.argsort(times)
        y = np.array([np.interp(t, times[order], row[order]) for row in states])
    for column in y.T:
        column[: model.nq] = model.normalise(column[: model.nq])
    return SimpleNamespace(t=t, y=y)


def is_plain(model: Model, solution: Any) -> bool:
    """Whether the states of a solution are [q; v] as they stand."""
    names = getattr(getattr(solution, "problem", None), "state_names", None) or ()
    names = names or getattr(solution, "kept_names", None) or ()
    shape = (model.nq + model.nv, len(np.atleast_1d(solution.t)))
    own = tuple(names)[: shape[0]]
    return np.shape(solution.y) == shape and own in ((), (*model.q_names, *model.v_names))
