"""Bounds of the global error of explicit Euler, beside the true error (notes, §1.3.1).

With |f(x, y) − f(x, z)| ≤ L|y − z| and M₂ = sup|y″| (E23), one step of length h = (b − a)/N gives
|ε_{k+1}| ≤ A|ε_k| + B, A = 1 + hL, B = h²M₂/2 (Eqs 1.14–1.15), and so

    |ε_k| ≤ B (Aᵏ − 1)/(A − 1)                          "geometric"    (E22: Aᴺ, not Aʰ)
          ≤ (h M₂/2) (e^{L(x_k−a)} − 1)/L               "exponential"
          ≤ (h M₂/2) e^{L(x_k−a)}/L                     "exponential, coarse" (Eq 1.16)

For L = 0 the first two tend to (x_k − a) M₂h/2, the third is no bound any more. L grows with the
stiffness of a problem even where solutions approach each other; the logarithmic norm does not. An
error is multiplied by at most ‖I + hJ‖ = 1 + hμ(J) + O(h²), hence the sharper

    |ε_{k+1}| ≤ ‖I + hJ_k‖ |ε_k| + h²M₂ₖ/2               "logarithmic norm"

with J between y(x_k) and y_k, enclosed by intervals, and M₂ₖ the largest |y″| in that step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...solve import solve
from ..problem.fields import Field, enclose
from ..problem.lipschitz import Constant, lipschitz, logarithmic_norm
from ..problem.norms import Norm, as_norm
from .local import error_recursion, exact_states
from .one_step import as_problem

__all__ = ["EulerBounds", "euler_bounds"]

Array = NDArray[np.float64]

SAMPLES = 33  # points in each step at which |y″| is looked at; its maximum is then refined


@dataclass(frozen=True, eq=False)
class EulerBounds:
    """The true error of explicit Euler and its bounds; made by :func:`euler_bounds`.

    Attributes
    ----------
    t : array (N + 1,)
        Grid.
    error : array (N + 1,)
        True |ε_k|.
    truncation : array (N,)
        True |τ_k|.
    h, L, M2 : float
        Step, Lipschitz constant, sup|y″|.
    mu : array (N,)
        Growth rate (‖I + hJ_k‖ − 1)/h of each step, the logarithmic norm up to O(h).
    curves : dict
        Name of each bound → its values on the grid, from the sharpest to the coarsest.
    lipschitz, logarithmic_norm : Constant or None
        Where L comes from, and the largest logarithmic norm; None if L was given.
    """

    t: Array
    error: Array
    truncation: Array
    h: float
    L: float
    M2: float
    mu: Array
    curves: dict[str, Array]
    norm: Norm
    lipschitz: Constant | None = None
    logarithmic_norm: Constant | None = None

    @property
    def largest_error(self) -> float:
        """E_h = max|ε_k|."""
        return float(np.max(self.error))

    @property
    def final(self) -> dict[str, float]:
        """Each bound at the last point of the grid, where its curve ends."""
        return {name: float(values[-1]) for name, values in self.curves.items()}

    @property
    def largest(self) -> dict[str, float]:
        """Each bound of E_h: the largest value on the grid."""
        return {name: float(np.max(values)) for name, values in self.curves.items()}

    def __str__(self) -> str:
        lines = [
            f"explicit Euler, N = {self.truncation.size}, h = {self.h:.4g}, L = {self.L:.6g}, "
            f"M2 = {self.M2:.6g} ({self.norm})",
            f"  {'true error':<22}{self.largest_error:12.4e}",
        ]
        lines += [f"  {name:<22}{value:12.4e}" for name, value in self.largest.items()]
        if self.lipschitz is not None and not self.lipschitz.guaranteed:
            lines.append("  L is the largest value found, not a guaranteed bound")
        return "\n".join(lines)


def euler_bounds(
    problem: IVP,
    N: int,
    *,
    L: float | None = None,
    M2: float | None = None,
    norm: Any = np.inf,
    weights: Any = None,
) -> EulerBounds:
    """Compute the error of N steps of explicit Euler, and all bounds of it.

    Parameters
    ----------
    problem
        An IVP with an exact solution, or one for which a reference can be computed.
    N
        Number of steps.
    L, M2
        Lipschitz constant and sup‖y″‖, if you know better; otherwise L is the (guaranteed, where f
        can be traced) constant on the box around the exact and the computed solution, and M2 the
        largest ‖y″‖ along the exact one.
    norm, weights
        As in :func:`~integrators.analysis.lipschitz`.

    Examples
    --------
    The notes' y' = xy + x on [0, 1] with ten steps:

    >>> from integrators import problems
    >>> print(euler_bounds(problems.get("linear_growth"), 10))
    explicit Euler, N = 10, h = 0.1, L = 1, M2 = 6.59489 (max-norm)
      true error              2.0322e-01
      logarithmic norm        2.2212e-01
      geometric (A^N)         5.2553e-01
      exponential             5.6659e-01
      exponential, coarse     8.9634e-01
    """
    ivp = as_problem(problem)
    if isinstance(N, bool) or int(N) != N or N < 1:
        raise ValueError(f"N must be a whole number of steps ≥ 1, got {N!r}")
    if np.iscomplexobj(ivp.y0):
        raise ValueError("the state must be real; split it into real and imaginary parts")
    for name, value in (("L", L), ("M2", M2)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number ≥ 0, got {value!r}")
    a, b = ivp.t_span
    if a == b:
        raise ValueError("the time interval has no length")
    size = as_norm(norm, ivp.n, weights)
    field = Field(ivp, ivp.n)
    signed = (b - a) / int(N)
    h = abs(signed)
    run = solve(ivp.with_(events=(), project=None), method="ExplicitEuler", step=h, throw=True)
    exact = exact_states(ivp, run.t)
    error = np.asarray(size.vector((exact - run.y).T))
    stepped = exact[:, :-1] + signed * field.values(run.t[:-1], exact[:, :-1].T).T
    truncation = np.asarray(size.vector((exact[:, 1:] - stepped).T))
    second = _second_derivatives(ivp, field, size, run.t)
    bound = float(np.max(second)) if M2 is None else float(M2)
    constant, slow = None, None
    if L is None:
        both = np.concatenate([exact, run.y], axis=1)
        box = (both.min(axis=1), both.max(axis=1))
        options: dict[str, Any] = {"norm": size, "t": (a, b), "params": field.p}
        constant = lipschitz(ivp.f, box, **options)
        slow = logarithmic_norm(ivp.f, box, **options)
        if constant.is_lipschitz is False or not math.isfinite(constant.value):
            raise ValueError(f"there is no Lipschitz constant: {constant}")
        rate = constant.value
    else:
        rate = float(L)
    mu = _growth_rates(field, size, run.t, signed, exact, run.y)
    curves = _curves(np.abs(run.t - a), h, rate, bound, mu, np.minimum(second, bound))
    return EulerBounds(run.t, error, truncation, h, rate, bound, mu, curves, size, constant, slow)


def _curves(x: Array, h: float, L: float, M2: float, mu: Array, second: Array) -> dict[str, Array]:
    """Return all bounds on the grid x_k − a, from the sharpest to the coarsest."""
    k = np.arange(x.size)
    B = h * h * M2 / 2
    if L == 0.0:
        growth, elapsed, last = k.astype(float), x, np.full(x.size, np.inf)
    else:
        with np.errstate(over="ignore"):
            growth = np.expm1(k * math.log1p(h * L)) / (h * L)
            elapsed = np.expm1(L * x) / L
            last = np.exp(L * x) / L
    return {
        "logarithmic norm": error_recursion(h * h * second / 2, h, mu),
        "geometric (A^N)": B * growth,
        "exponential": h * M2 / 2 * elapsed,
        "exponential, coarse": h * M2 / 2 * last,
    }


def _second_derivatives(ivp: IVP, field: Field, norm: Norm, t: Array) -> Array:
    """Largest ‖y″‖ in each step, along the exact solution."""
    steps = t.size - 1
    fine = np.concatenate(
        [np.linspace(t[k], t[k + 1], SAMPLES)[:-1] for k in range(steps)] + [t[-1:]]
    )
    values = norm.vector(field.acceleration(fine, exact_states(ivp, fine).T))
    result = np.empty(steps)
    for k in range(steps):
        piece = values[k * (SAMPLES - 1) : (k + 1) * (SAMPLES - 1) + 1]
        result[k] = _peak(piece)
    return result


def _peak(values: Array) -> float:
    """Largest value of a smooth function from its samples, by a parabola at the top."""
    i = int(np.argmax(values))
    if not 0 < i < values.size - 1:
        return float(values[i])
    left, top, right = values[i - 1 : i + 2]
    curvature = left - 2 * top + right
    return float(top if curvature >= 0 else top - (right - left) ** 2 / (8 * curvature))


def _growth_rates(
    field: Field, norm: Norm, t: Array, h: float, exact: Array, computed: Array
) -> Array:
    """(‖I + hJ‖ − 1)/|h| for all J between the exact and the computed state of each step."""
    rates = np.empty(t.size - 1)
    identity = np.eye(field.n)
    for k in range(t.size - 1):
        lo = np.minimum(exact[:, k], computed[:, k])
        hi = np.maximum(exact[:, k], computed[:, k])
        if field.traced is not None:
            here = np.concatenate([[t[k]], lo]), np.concatenate([[t[k]], hi])
            low, high = enclose(field.traced.jacobian().graph, field.inputs(*here))
            ends = (h * low, h * high) if h > 0 else (h * high, h * low)
            size = norm.matrix_bound(identity + ends[0], identity + ends[1])
        else:
            between = np.linspace(0, 1, 5)[:, None] * (hi - lo) + lo
            J = field.jacobians(np.full(5, t[k]), between)
            size = float(np.max(norm.matrix(identity + h * J)))
        rates[k] = (size - 1) / abs(h)
    return rates
