"""One step of a method, and the exact flow over the same time.

A one-step method is a map y₊ = φ(t, y, h); the differential equation has the flow Y(t, y, h). Their
difference is what one step does wrong. Both are had from ``solve``: φ with one fixed step of any
method it accepts, the flow with a method of high order and tolerances near rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import problems
from ...methods.multistep import Multistep
from ...methods.multistep.variable import BDF
from ...methods.names import method_name, named_method
from ...methods.runge_kutta.radau_variable import VariableRadau
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ...tableau import Tableau

__all__ = [
    "as_problem",
    "exact_flow",
    "is_implicit",
    "method_of",
    "method_order",
    "resolve",
    "states_at",
    "step_map",
]

Array = NDArray[Any]
StepMap = Callable[[float, Any, float], Array]

TIGHT = 1e-13  # relative tolerance of reference flows


def as_problem(problem: Any) -> IVP:
    """Insist on an initial value problem, or the name of one, without a mass matrix."""
    if isinstance(problem, str):
        problem = problems.get(problem)
    if not isinstance(problem, IVP):
        raise TypeError(f"expected an IVP, got {problem!r}; make one by IVP(f, y0, t_span)")
    if problem.mass is not None:
        raise ValueError("expected y' = f(t, y); this problem has a mass matrix")
    return problem


def resolve(method: Any) -> Any:
    """Return the method behind a name."""
    return named_method(method) if isinstance(method, str) and ":" not in method else method


def method_order(method: Any) -> int:
    """Return the order of a method, as it says itself."""
    found = resolve(method)
    order = getattr(found, "order", None)
    if isinstance(found, type) or not isinstance(order, int | np.integer):
        raise ValueError(f"{method_name(method)} does not say its order; give order=")
    return int(order)


def is_implicit(method: Any) -> bool:
    """Whether a method is an implicit one, and so perhaps chosen for stiffness."""
    found = resolve(method)
    if isinstance(found, BDF | VariableRadau):
        return True
    return isinstance(found, Tableau) and not found.is_explicit


def method_of(solution: Solution) -> Any:
    """The method of a run: the one that was chosen, if the choice was left to ``solve``."""
    chosen = list(dict.fromkeys(phase.method for phase in solution.phases))
    if len(chosen) > 1:
        raise ValueError(
            f"the method of the run was chosen on the way ({', '.join(chosen)}), so that there is "
            "no one formula to look at; solve with one of them, method=..."
        )
    return chosen[0] if chosen else solution.method


def step_map(problem: IVP, method: Any) -> StepMap:
    """Return φ(t, y, h), one step of a method.

    Examples
    --------
    >>> from integrators import problems
    >>> phi = step_map(problems.get("linear_growth"), "ExplicitEuler")
    >>> phi(0.5, [1.0], 0.1)  # 1 + 0.1 (0.5·1 + 0.5)
    array([1.1])
    """
    plain = problem.with_(events=(), project=None)
    found = resolve(method)
    if isinstance(found, Multistep) and found.steps > 1:
        raise ValueError(
            f"one step of {method_name(found)} from one value is its starter's; a multistep method "
            "has its error constant (error_constant, analysis.multistep_report), and convergence "
            "measures its order"
        )

    def phi(t: float, y: Any, h: float) -> Array:
        result = solve(plain, (t, t + h), np.asarray(y), method=found, step=abs(h), throw=True)
        return np.asarray(result.y[:, -1])

    return phi


def exact_flow(problem: IVP, *, stiff: bool = False) -> StepMap:
    """Return Y(t, y, h), the solution at t + h through (t, y), to about 12 digits.

    Parameters
    ----------
    problem
        The problem.
    stiff
        Whether to integrate by RADAU5 instead of DOP853.
    """
    plain = problem.with_(events=(), project=None)
    method = "RADAU5" if stiff else "DOP853"

    def flow(t: float, y: Any, h: float) -> Array:
        if h == 0.0:
            return np.asarray(y)
        scale = float(np.max(np.abs(y))) or 1.0
        result = solve(
            plain, (t, t + h), np.asarray(y), method=method, rtol=TIGHT, atol=TIGHT * 1e-2 * scale,
            throw=True,
        )  # fmt: skip
        return np.asarray(result.y[:, -1])

    return flow


def states_at(run: Solution, t: Any) -> Array:
    """Return the states of a run at times on which it stepped, shape (n, m)."""
    times = np.asarray(t, dtype=float)
    order = np.argsort(run.t, kind="stable")
    place = np.searchsorted(run.t[order], times)
    after = order[np.clip(place, 0, run.t.size - 1)]
    before = order[np.clip(place - 1, 0, run.t.size - 1)]
    nearer = np.abs(run.t[before] - times) < np.abs(run.t[after] - times)
    return np.asarray(run.y[:, np.where(nearer, before, after)])
