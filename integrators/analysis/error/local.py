"""Local truncation errors, measured and estimated, and how they add up.

    τ_k = y(t_k + h) − φ(t_k, y(t_k), h)                              (notes, §1.3.2; E29)

is what one step from the exact solution does wrong. For a method of order p it is O(h^{p+1}). It is
measured against the exact flow, or estimated from the method alone: by an embedded method, or by
taking the step again as two halves, whose difference is (1 − 2^{-p}) τ up to higher orders. Errors
of earlier steps grow at most by the Lipschitz constant 1 + hL_φ of the step:

    |ε_{k+1}| ≤ (1 + h L_φ) |ε_k| + |τ_k|                              (notes, Eq 1.15; E23)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...methods.names import method_name
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ...tableau import Tableau
from ..problem.norms import Norm, as_norm
from ..study.order_fit import fit_power
from .one_step import (
    TIGHT,
    as_problem,
    exact_flow,
    is_implicit,
    method_of,
    method_order,
    resolve,
    states_at,
    step_map,
)

__all__ = [
    "LocalErrors",
    "error_recursion",
    "increment_lipschitz",
    "local_errors",
    "truncation_order",
]

Array = NDArray[np.float64]

VISIBLE, ROUNDING = 1e-13, 1e-15  # relative: local errors that can be seen, and their rounding


@dataclass(frozen=True, eq=False)
class LocalErrors:
    """Local errors along a solution; made by :func:`local_errors`.

    Attributes
    ----------
    t, h : array (m,)
        Start and length of each step.
    errors : array (n, m)
        Exact minus computed after one step.
    how, along : str
        How they were found, and along which solution.
    """

    t: Array
    h: Array
    errors: Array
    how: str
    along: str
    method: str
    norm: Norm

    @property
    def norms(self) -> Array:
        """‖τ_k‖, shape (m,)."""
        return np.asarray(self.norm.vector(self.errors.T))

    def __str__(self) -> str:
        k = int(np.argmax(self.norms))
        return (
            f"local errors of {self.method} ({self.how}, along the {self.along} solution): "
            f"largest {self.norms[k]:.3e} in the step from t = {self.t[k]:.4g}"
        )


def local_errors(
    problem: Any,
    method: Any = None,
    step: float | None = None,
    *,
    how: str = "measured",
    along: str = "exact",
    norm: Any = np.inf,
) -> LocalErrors:
    """Measure or estimate the local error of each step.

    Parameters
    ----------
    problem
        An IVP; or a Solution, whose steps and states are then examined (``along="numerical"``).
    method
        Anything that ``solve`` accepts; that of the Solution by default.
    step
        Fixed step, for an IVP.
    how
        "measured" against the exact flow; "doubling": from two half steps; "embedded": from the
        embedded method of a pair, which estimates the error of the lower order.
    along
        "exact": from points of the exact solution (τ above); "numerical": from those computed.
    norm
        1, 2 or inf, for ``norms``.

    Examples
    --------
    >>> from integrators import problems
    >>> found = local_errors(problems.get("linear_growth"), "ExplicitEuler", 0.1)
    >>> print(f"{found.norms[0]:.6f}")  # 2 exp(0.005) − 2
    0.010025
    """
    if how not in ("measured", "doubling", "embedded"):
        raise ValueError(f"how must be 'measured', 'doubling' or 'embedded', got {how!r}")
    if along not in ("exact", "numerical"):
        raise ValueError(f"along must be 'exact' or 'numerical', got {along!r}")
    if isinstance(problem, Solution):
        ivp, t, states = _of_solution(problem)
        method = method_of(problem) if method is None else method
        along = "numerical"
    else:
        ivp = as_problem(problem)
        if method is None or step is None:
            raise TypeError("local_errors(problem, method, step) needs the method and the step")
        t, states = _points(ivp, method, float(step), along)
    size = as_norm(norm, ivp.n)
    h = np.diff(t)
    pairs = list(zip(t[:-1], states.T, h))
    if how == "measured":
        phi = step_map(ivp, method)
        flow = exact_flow(ivp, stiff=is_implicit(method))
        known = ivp.exact is not None and along == "exact"
        after = states[:, 1:].T if known else [flow(a, y, d) for a, y, d in pairs]
        columns = [end - phi(a, y, d) for end, (a, y, d) in zip(after, pairs)]
    elif how == "doubling":
        phi, p = step_map(ivp, method), method_order(method)
        columns = []
        for a, y, d in pairs:
            half = phi(a + d / 2, phi(a, y, d / 2), d / 2)
            columns.append((half - phi(a, y, d)) / (1 - 2.0**-p))
    else:
        columns = _embedded(ivp, method, pairs)
    return LocalErrors(t[:-1], h, np.array(columns).T, how, along, method_name(method), size)


def _of_solution(solution: Solution) -> tuple[IVP, Array, Array]:
    ivp = as_problem(solution.problem)
    if solution.t.size < 2:
        raise ValueError("the solution has no steps to examine")
    if solution.t.size != solution.nsteps + 1:
        raise ValueError(
            f"the solution has {solution.nsteps} steps but {solution.t.size} output times; solve "
            "without t_eval and events, so that every step is kept"
        )
    return ivp, solution.t, solution.y


def _points(ivp: IVP, method: Any, step: float, along: str) -> tuple[Array, Array]:
    """Return the grid of fixed steps, and the states to step from."""
    t0, t1 = ivp.t_span
    if not 0 < step <= abs(t1 - t0) * (1 + 1e-12):
        raise ValueError(f"step must be positive and at most {abs(t1 - t0):g}, got {step!r}")
    if along == "numerical":
        run = solve(ivp.with_(events=(), project=None), method=method, step=step, throw=True)
        return run.t, run.y
    count = int(np.ceil(abs(t1 - t0) / step * (1 - 1e-12)))
    t = t0 + np.sign(t1 - t0) * step * np.arange(count + 1)
    t[-1] = t1
    return t, exact_states(ivp, t, stiff=is_implicit(method))


def exact_states(ivp: IVP, t: Array, *, stiff: bool = False) -> Array:
    """Return the exact solution at the given times, or a reference to about 12 digits."""
    if ivp.exact is not None:
        return np.array([ivp.reference(s) for s in t]).T
    scale = float(np.max(np.abs(ivp.y0))) or 1.0
    run = solve(
        ivp.with_(events=(), project=None, t_span=(ivp.t_span[0], float(t[-1]))),
        method="RADAU5" if stiff else "DOP853", rtol=TIGHT, atol=TIGHT * 1e-2 * scale, tstops=t,
        throw=True,
    )  # fmt: skip
    return states_at(run, t)


def _embedded(ivp: IVP, method: Any, pairs: list[Any]) -> list[Any]:
    found = resolve(method)
    if not isinstance(found, Tableau) or found.b_hat is None:
        raise ValueError(
            f"{method_name(method)} has no embedded method; use how='doubling' or 'measured'"
        )
    lower = Tableau(found.A, found.b_hat, found.c, check=False)
    main, other = step_map(ivp, found), step_map(ivp, lower)
    sign = 1.0 if found.order >= (found.embedded_order or 0) else -1.0
    # The better of the two stands for the exact value.
    return [sign * (main(a, y, d) - other(a, y, d)) for a, y, d in pairs]


class Slope(float):
    """A slope, with the interval in which it lies when h goes to 0.

    Examples
    --------
    >>> slope = Slope(3.02, 0.1)
    >>> 3 in slope, str(slope)
    (True, '3.02 ± 0.10')
    """

    def __new__(cls, value: float, half: float) -> Slope:
        made = super().__new__(cls, value)
        made.half = half
        return made

    half: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return float(self) - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return float(self) + self.half

    def __contains__(self, order: float) -> bool:
        return self.low <= order <= self.high

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{float(self):.2f} ± {self.half:.2f}"


def truncation_order(
    problem: Any, method: Any, steps: ArrayLike = (), *, t: float | None = None
) -> tuple[Slope, Array, Array]:
    """Measure how the local error of one step falls with h: slope p + 1 for a method of order p.

    Parameters
    ----------
    problem, method
        An IVP, and anything that ``solve`` accepts.
    steps
        Decreasing step sizes; by default 1/10 … 1/320 of the time interval.
    t
        Where to take the step; a third into the interval by default.

    Returns
    -------
    slope, steps, errors
        The slope that the errors above rounding tend to as h goes to 0, with its interval
        (:mod:`order_fit`): ``p + 1 in slope``. Two errors have a slope, but nothing tells how far
        it is from the limit: then the interval is as wide as that.

    Examples
    --------
    >>> from integrators import problems
    >>> slope, _, _ = truncation_order(problems.get("linear_growth"), "ExplicitEuler")
    >>> round(slope, 1), 2 in slope
    (2.0, True)
    """
    ivp = as_problem(problem)
    t0, t1 = ivp.t_span
    given = np.asarray(steps if np.size(steps) else (t1 - t0) / (10 * 2.0 ** np.arange(6)))
    if given.ndim != 1 or given.size < 2 or (np.diff(np.abs(given)) >= 0).any():
        raise ValueError(f"steps must be at least two decreasing numbers, got {steps!r}")
    start = t0 + (t1 - t0) / 3 if t is None else float(t)
    if not min(t0, t1) <= start <= max(t0, t1):
        raise ValueError(f"t = {start:g} is outside the interval {ivp.t_span}")
    stiff = is_implicit(method)
    y = exact_states(ivp, np.array([t0, start]), stiff=stiff)[:, -1] if start != t0 else ivp.y0
    phi, flow = step_map(ivp, method), exact_flow(ivp, stiff=stiff)
    errors = []
    for h in given:
        known = ivp.exact is not None
        end = ivp.reference(start + h) if known else flow(start, y, float(h))
        errors.append(float(np.max(np.abs(end - phi(start, y, float(h))))))
    found = np.array(errors)
    size = max(1.0, float(np.max(np.abs(y))))
    visible = np.flatnonzero(found > VISIBLE * size)
    if visible.size < 2:
        raise ValueError(
            f"the local errors {found} are hidden by rounding; take larger steps to see the order"
        )
    return _slope(np.abs(given[visible]), found[visible], size), given, found


def _slope(h: Array, e: Array, size: float) -> Slope:
    """Fit the errors with their next term; two of them have a slope and no interval."""
    if h.size == 2:
        return Slope(float(np.log(e[0] / e[1]) / np.log(h[0] / h[1])), float("inf"))
    fits = [fit_power(h[k:], e[k:], ROUNDING * size / e[k:]) for k in range(h.size - 2)]
    best = min(fits, key=lambda fit: fit.half)
    return Slope(best.order, best.half)


# ------------------------------------------------------------------------------ propagation


def increment_lipschitz(method: Any, L: float, h: float) -> float:
    """Return L_φ such that ‖φ(t, x, h) − φ(t, y, h)‖ ≤ (1 + h L_φ) ‖x − y‖, for a tableau.

    The stages for x and y differ by δ_i ≤ hL(‖x − y‖ + Σ_j |a_ij| δ_j), hence
    L_φ = L |b|ᵀ (I − hL|A|)⁻¹ 𝟙. For explicit Euler that is L.

    Examples
    --------
    >>> increment_lipschitz("ExplicitEuler", 2.0, 0.1)
    2.0
    """
    tableau = resolve(method)
    if not isinstance(tableau, Tableau):
        raise TypeError(f"expected a Runge–Kutta method, got {method!r}")
    if not (np.isfinite(L) and L >= 0 and np.isfinite(h) and h > 0):
        raise ValueError(f"L must be ≥ 0 and h > 0, both finite; got L = {L!r}, h = {h!r}")
    A, b, _ = tableau.arrays
    absolute = h * L * np.abs(A)
    if not tableau.is_explicit and np.max(np.abs(np.linalg.eigvals(absolute))) >= 1:
        return float("inf")  # the stages are not bounded by the Lipschitz constant alone
    stages = np.linalg.solve(np.eye(len(b)) - absolute, np.ones(len(b)))
    return float(L * (np.abs(b) @ stages))


def error_recursion(tau: ArrayLike, h: ArrayLike, L: ArrayLike, initial: float = 0.0) -> Array:
    """Return the bounds e_{k+1} = (1 + h_k L_k) e_k + |τ_k| of the global error, e_0 first.

    Parameters
    ----------
    tau
        |τ_k|, one for each step.
    h, L
        Step and growth rate, numbers or one for each step. Rates may be negative (logarithmic
        norms), but not below −1/h.
    initial
        |ε_0|.

    Examples
    --------
    >>> error_recursion([0.1, 0.1], 0.5, 1.0)
    array([0.  , 0.1 , 0.25])
    """
    local = np.abs(np.asarray(tau, dtype=float))
    if local.ndim != 1 or not np.isfinite(local).all():
        raise ValueError(f"tau must be a list of finite numbers, got {tau!r}")
    steps = np.broadcast_to(np.abs(np.asarray(h, dtype=float)), local.shape)
    growth = 1 + steps * np.broadcast_to(np.asarray(L, dtype=float), local.shape)
    if np.isnan(growth).any() or (growth < 0).any():
        raise ValueError("1 + hL is negative or NaN: L below −1/h is no growth rate of a step")
    if not initial >= 0:
        raise ValueError(f"initial must be a number ≥ 0, got {initial!r}")
    e = np.empty(local.size + 1)
    e[0] = initial
    for k in range(local.size):
        e[k + 1] = growth[k] * e[k] + local[k]
    return e
