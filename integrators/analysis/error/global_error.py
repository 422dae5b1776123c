"""The global error of a computed solution, estimated in three ways.

A tolerance bounds the error of each step. What is left at the end, the global error
e(t) = y(t) − u(t), u being what was computed, may be much larger, or smaller. After R. D. Skeel,
*Thirteen ways to estimate global error*, Numer. Math. 48 (1986) 1–20:

ladder
    Solve again with tighter tolerances (or half the step) and compare. For fixed steps and order p,
    e = (u_{h/2} − u_h)/(1 − 2⁻ᵖ). Robust, and knows nothing about the method.
defect
    u is continued between the steps; its defect d = u' − f(t, u) is what it fails to satisfy, and
    the error solves e' = f(t, u + e) − f(t, u) − d, e(t₀) = 0, exactly. Besides, with the
    logarithmic norm μ along u, ‖e‖' ≤ μ‖e‖ + ‖d‖ (to first order) gives a bound.
variational
    Each step contributes its local error ℓ_k, measured against the exact flow, and the flow carries
    it on by the variational equation v' = (∂f/∂y)v:  e_{k+1} = Φ_k e_k + ℓ_k. This also shows which
    steps are to blame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...methods.names import method_name
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ...tracing import traced
from ..problem.fields import Field
from ..problem.norms import as_norm
from .one_step import TIGHT, as_problem, is_implicit, method_order, states_at

__all__ = ["GlobalError", "global_error"]

Array = NDArray[Any]

RUNGS = (10.0, 100.0)  # by how much the tolerances of the ladder are tighter
AGREE = 0.5  # the rungs must agree to within this part of the estimate


@dataclass(frozen=True, eq=False)
class GlobalError:
    """An estimate of the global error; made by :func:`global_error`.

    Attributes
    ----------
    t : array (m,)
        Times of the solution.
    error : array (n, m)
        Estimate of exact − computed.
    y : array (n, m)
        The computed solution.
    how : str
        How it was found.
    rtol, atol
        What was asked for; None for a fixed step.
    step : float or None
        The fixed step.
    local : array (n, m − 1) or None
        Local errors (variational).
    defect : array or None
        Largest ‖defect‖ in each step (defect).
    bound : array (m,) or None
        Bound of ‖e‖∞ by the logarithmic norm, to first order (defect).
    notes : tuple of str
        What to beware of.
    """

    t: Array
    error: Array
    y: Array
    how: str
    rtol: float | None
    atol: Any
    step: float | None = None
    local: Array | None = None
    defect: Array | None = None
    bound: Array | None = None
    notes: tuple[str, ...] = ()
    method: str = field(default="")

    @property
    def norms(self) -> Array:
        """‖e(t)‖∞ at each time."""
        return np.asarray(np.max(np.abs(self.error), axis=0))

    @property
    def largest(self) -> float:
        """Largest |e| over components and times."""
        return float(np.max(self.norms))

    @property
    def final(self) -> float:
        """‖e‖∞ at the end."""
        return float(self.norms[-1])

    @property
    def corrected(self) -> Array:
        """The solution plus its estimated error, shape (n, m)."""
        return self.y + self.error

    @property
    def relative(self) -> float:
        """Largest |e_i|/(max_t |y_i| + atol_i/rtol), to be compared with rtol.

        The size of a component is its largest over the run, lest its zeros spoil the picture.
        For fixed steps, or rtol = 0, the largest |e|.
        """
        if not self.rtol:
            return self.largest
        size = np.max(np.abs(self.y), axis=1) + np.asarray(self.atol, dtype=float) / self.rtol
        return float(np.max(np.abs(self.error) / size[:, None]))

    @property
    def ratio(self) -> float:
        """How many times the tolerance the error is; NaN for fixed steps."""
        if self.rtol is None:
            return float("nan")
        asked = self.rtol if self.rtol else float(np.min(self.atol))
        return self.relative / asked

    def __str__(self) -> str:
        if self.rtol is None:
            return f"fixed step {self.step:.4g}, estimated global error {self.relative:.1e}"
        asked = self.rtol if self.rtol else float(np.min(self.atol))
        return "\n  ".join(
            [f"asked for {asked:g}, estimated global error {self.relative:.1e}", *self.notes]
        )


def global_error(
    solution: Solution,
    how: str = "ladder",
    *,
    rtol: float | None = None,
    atol: ArrayLike | None = None,
    method: Any = None,
) -> GlobalError:
    """Estimate the global error of a computed solution.

    Parameters
    ----------
    solution
        What ``solve`` returned, with its problem.
    how
        "ladder", "defect" or "variational".
    rtol, atol
        The tolerances it was asked for. If they are left out, those that ``solve`` takes by default
        are tried: if they do not reproduce the run, an error says so. Not needed for fixed steps.
    method
        The method, if it is not one that has a name.

    Returns
    -------
    GlobalError
        The estimate at each time; printed, it is a sentence.

    Examples
    --------
    >>> from integrators import problems, solve
    >>> problem = problems.get("kepler")
    >>> print(global_error(solve(problem)))
    asked for 1e-06, estimated global error 4.6e-04
    >>> print(global_error(solve(problem, method="RK4", step=0.01), "variational"))
    fixed step 0.01, estimated global error 1.9e-06
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"expected a Solution, got {type(solution).__name__}")
    if how not in _WAYS:
        raise ValueError(f"how must be 'ladder', 'defect' or 'variational', got {how!r}")
    ivp = solution.problem
    if not isinstance(ivp, IVP):
        raise ValueError(
            "the solution does not know its problem (it was saved or pickled): solve again"
        )
    if not solution.success:
        raise ValueError(f"the run failed, so there is no solution to judge: {solution.message}")
    if any(event.reset is not None for event in ivp.events):
        raise ValueError(
            "the state jumps at events; global errors are estimated between jumps only"
        )
    if solution.t.size < 2:
        raise ValueError("the solution has no steps")
    chosen = solution.method if method is None else method
    plain = ivp.with_(events=(), t_span=(float(solution.t[0]), float(solution.t[-1])))
    if not np.array_equal(solution.y[:, 0], ivp.y0):
        raise ValueError("the output must begin with the initial state: include t0 in t_eval")
    step = _fixed_step(solution)
    if step is None:
        rtol, atol = _tolerances(solution, ivp, chosen, rtol, atol)
    else:
        rtol, atol = None, None
    extra = _WAYS[how](solution, plain, chosen, step, rtol, atol)
    return GlobalError(
        solution.t, extra.pop("error"), solution.y, how, rtol, atol, step,
        method=solution.method, **extra,
    )  # fmt: skip


def _accurate(method: Any) -> str:
    """Name of the method for equations about errors, as stiff as those of the run."""
    if method_name(method) == "auto":
        return "auto"
    return "RADAU5" if is_implicit(method) else "DOP853"


def _fixed_step(solution: Solution) -> float | None:
    """Return the step, if no error control was at work."""
    if not solution.error_estimate.startswith("none") or not solution.h.size:
        return None
    return float(np.max(np.abs(solution.h)))  # the last one may have been clipped


def _tolerances(
    solution: Solution, ivp: IVP, method: Any, rtol: Any, atol: Any
) -> tuple[float, Any]:
    if rtol is not None or atol is not None:
        return (1e-6 if rtol is None else float(rtol)), (1e-9 if atol is None else atol)
    again = solve(ivp, method=method)
    if again.nsteps != solution.nsteps or not np.array_equal(again.h, solution.h):
        raise ValueError(
            f"the run has {solution.nsteps} steps, with the default tolerances it would have "
            f"{again.nsteps}: say what was asked for, global_error(solution, rtol=..., atol=...)"
        )
    return 1e-6, 1e-9


def _ladder(
    solution: Solution, ivp: IVP, method: Any, step: float | None, rtol: Any, atol: Any
) -> dict[str, Any]:
    inner = solution.t[1:-1]
    if step is not None:
        p = method_order(method)
        finer = [
            states_at(
                solve(ivp, method=method, step=step / 2**k, tstops=inner, throw=True), solution.t
            )
            for k in (1, 2)
        ]
        first, second = (y - solution.y for y in finer)
        error = first / (1 - 2.0**-p)
        doubt = np.max(np.abs(second / (1 - 4.0**-p) - error))
    else:
        least = 3e-14  # below, ``solve`` refuses
        runs = [
            solve(ivp, method=method, rtol=max(rtol / r, least), atol=np.asarray(atol) / r,
                  tstops=inner, throw=True)
            for r in RUNGS
        ]  # fmt: skip
        middle, best = (states_at(run, solution.t) for run in runs)
        error = best - solution.y
        doubt = np.max(np.abs(best - middle))
    size = float(np.max(np.abs(error)))
    notes: tuple[str, ...] = ()
    if doubt > AGREE * size:
        notes = (
            f"the rungs of the ladder differ by {doubt:.1e}: the estimate is rough (chaos, "
            "discontinuities or rounding)",
        )
    return {"error": error, "notes": notes}


def _defect(
    solution: Solution, ivp: IVP, method: Any, step: float | None, rtol: Any, atol: Any
) -> dict[str, Any]:
    from scipy.interpolate import CubicHermiteSpline

    as_problem(ivp)
    f = ivp.bind(ivp.f)
    t = solution.t
    slopes = np.array([np.asarray(f(s, y)) for s, y in zip(t, solution.y.T)])
    forward = 1.0 if t[-1] > t[0] else -1.0
    spline = CubicHermiteSpline(forward * t, solution.y.T, forward * slopes)
    derivative = spline.derivative()

    def u(s: float) -> Array:
        return np.asarray(spline(forward * s))

    def u_slope(s: float) -> Array:
        return np.asarray(forward * derivative(forward * s))

    def correction(s: float, e: Array) -> Array:
        return np.asarray(f(s, u(s) + e)) - u_slope(s)

    scale = float(np.max(np.abs(solution.y))) or 1.0
    run = solve(
        correction, (float(t[0]), float(t[-1])), np.zeros_like(solution.y[:, 0]),
        method=_accurate(method), rtol=1e-4, atol=1e-12 * scale,
        tstops=t[1:-1], throw=True,
    )  # fmt: skip
    defects, bound = _defect_bound(ivp, t, u, u_slope)
    return {"error": states_at(run, t), "defect": defects, "bound": bound}


def _defect_bound(ivp: IVP, t: Array, u: Any, u_slope: Any) -> tuple[Array, Array | None]:
    """Largest ‖d‖∞ in each step, and E' = μE + ‖d‖ integrated along u."""
    theta = np.polynomial.legendre.leggauss(4)[0]
    f = ivp.bind(ivp.f)
    real = not np.iscomplexobj(ivp.y0)
    jacobians = Field(ivp, ivp.n) if real else None
    norm = as_norm(np.inf, ivp.n)
    defects, bound = np.zeros(t.size - 1), np.zeros(t.size)
    for k in range(t.size - 1):
        h = float(t[k + 1] - t[k])
        nodes = t[k] + h * (1 + theta) / 2
        d = np.array([np.max(np.abs(u_slope(s) - f(s, u(s)))) for s in nodes])
        defects[k] = float(np.max(d))
        if jacobians is not None:
            J = jacobians.jacobians(nodes, np.array([u(s) for s in nodes]))
            mu = float(np.max(norm.logarithmic(np.sign(h) * J)))
            grown = float(np.exp(np.clip(mu * abs(h), -700, 700)))
            # ∫ e^{μ(h−s)} ‖d‖ ds ≤ max‖d‖ (e^{μh} − 1)/μ
            inflow = defects[k] * ((grown - 1) / mu if abs(mu * h) > 1e-8 else abs(h))
            bound[k + 1] = grown * bound[k] + inflow
    return defects, (bound if real else None)


def _variational(
    solution: Solution, ivp: IVP, method: Any, step: float | None, rtol: Any, atol: Any
) -> dict[str, Any]:
    as_problem(ivp)
    if np.iscomplexobj(solution.y):
        raise ValueError("the variational equation is for real states; use how='ladder'")
    n, t = ivp.n, solution.t
    joint = _joint_flow(ivp)
    name = _accurate(method)
    error, local = np.zeros_like(solution.y), np.zeros((n, t.size - 1))
    scale = float(np.max(np.abs(solution.y))) or 1.0
    unit = 1e-6 * scale  # v is linear: carry it at a size that the tolerances can see
    for k in range(t.size - 1):
        start = solution.y[:, k]
        size = float(np.max(np.abs(error[:, k]))) or 1.0
        z = np.concatenate([start, error[:, k] / size * unit])
        small = np.concatenate([np.full(n, TIGHT * scale), np.full(n, 1e-6 * unit)])
        run = solve(
            joint, (float(t[k]), float(t[k + 1])), z, method=name, rtol=TIGHT, atol=small,
            throw=True,
        )  # fmt: skip
        end = run.y[:, -1]
        local[:, k] = end[:n] - solution.y[:, k + 1]
        carried = end[n:] / unit * size if np.any(error[:, k]) else 0.0
        error[:, k + 1] = local[:, k] + carried
    return {"error": error, "local": local}


def _joint_flow(ivp: IVP) -> Any:
    """(y, v)' = (f(t, y), (∂f/∂y) v), by machine code where f can be traced."""
    field = Field(ivp, ivp.n)
    n, p = ivp.n, field.p
    if field.traced is not None:
        rhs = field.traced
        product = rhs.jvp()
        extra = (p,) if p.size else ()

        def joint(t: Any, z: Any) -> Any:
            y, v = z[:n], z[n:]
            return np.concatenate([rhs(t, y, *extra), product(t, y, v, *extra)])

        return traced(joint, n=2 * n)

    def plain(t: float, z: Array) -> Array:
        return np.concatenate([field(t, z[:n]), field.jacobian(t, z[:n]) @ z[n:]])

    return plain


_WAYS = {"ladder": _ladder, "defect": _defect, "variational": _variational}
