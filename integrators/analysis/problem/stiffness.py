"""Stiffness: the eigenvalues of ∂f/∂y along a solution, and what limits the step.

A mode e^{λt} that has died out still has to be integrated stably: hλ must stay where the method's
stability function satisfies |R(hλ)| ≤ 1, though the solution no longer shows that mode and would
allow long steps. A problem is stiff *for a method* where the step that stability allows,

    h_stab = min over decaying λ of the first h at which |R(hλ)| exceeds 1,

is much shorter than the one that resolves the solution to the tolerance by a polynomial of the
method's degree p,

    h_acc:  |y[t, …, t + h]| h^{p+1} = tolerance,

with the divided difference over p + 2 points, which stands for y⁽ᵖ⁺¹⁾/(p+1)!. It is computed from a
solution by an L-stable method with a tighter tolerance, so that stability plays no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...methods.names import method_name
from ...methods.taylor import Taylor
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ...tableau import Tableau
from ..error.one_step import as_problem, method_order, resolve
from .fields import Field

__all__ = ["Stiffness", "stability_limit", "stiffness"]

Array = NDArray[np.float64]

DECAYING = 1e-6  # −Re λ/|λ| from which a mode counts as decaying
NEGLIGIBLE = 1e-13  # |λ| below this part of the largest is zero up to rounding
TIGHTER = 1e-2  # tolerance of the reference against the one asked for
LONGEST = 1e8  # h|λ| beyond which a method counts as stable for all h
STIFF = 10.0  # ratio of the two steps from which the word is used


@dataclass(frozen=True, eq=False)
class Stiffness:
    """Eigenvalues and step limits along a solution; made by :func:`stiffness`.

    Attributes
    ----------
    t : array (m,)
        Times.
    y : array (n, m)
        The solution.
    eigenvalues : array (n, m), complex
        Of ∂f/∂y, sorted by real part.
    h_stability, h_accuracy : array (m,)
        Longest steps that stability and accuracy allow; the first is infinite where the method is
        stable for all h.
    method : str
        For which method.
    """

    t: Array
    y: Array
    eigenvalues: NDArray[np.complex128]
    h_stability: Array
    h_accuracy: Array
    method: str
    rtol: float

    @property
    def ratio(self) -> Array:
        """Stiffness ratio max|Re λ|/min|Re λ| over decaying modes; NaN where there is none."""
        rate = np.where(_decays(self.eigenvalues), -self.eigenvalues.real, np.nan)
        size = np.max(np.abs(self.eigenvalues), axis=0)
        rate = np.where(rate > NEGLIGIBLE * size, rate, np.nan)
        some = np.isfinite(rate).any(axis=0)
        result = np.full(self.t.size, np.nan)
        result[some] = np.nanmax(rate[:, some], axis=0) / np.nanmin(rate[:, some], axis=0)
        return result

    @property
    def fastest(self) -> float:
        """Largest decay rate −Re λ met, 0 if nothing decays."""
        return float(max(0.0, np.max(-self.eigenvalues.real)))

    @property
    def limited_by_stability(self) -> NDArray[np.bool_]:
        """Where stability, not accuracy, limits the step."""
        return np.asarray(self.h_stability < self.h_accuracy)

    @property
    def share(self) -> float:
        """Part of the time interval in which stability limits the step."""
        weights = np.gradient(np.abs(self.t - self.t[0])) if self.t.size > 1 else np.ones(1)
        return float(np.sum(weights[self.limited_by_stability]) / np.sum(weights))

    @property
    def excess(self) -> Array:
        """h_acc/h_stab: how many times too short the steps are because of stability."""
        return np.asarray(self.h_accuracy / self.h_stability)

    @property
    def stiff(self) -> bool:
        """Whether stability costs more than a factor of ten somewhere."""
        return bool(np.max(self.excess) > STIFF)

    def __str__(self) -> str:
        if np.isinf(self.h_stability).all():
            return (
                f"{self.method}: stability never limits the step (it is stable for all decaying "
                f"modes met, the fastest e^(−{self.fastest:.3g} t)); not stiff for this method"
            )
        k = int(np.argmax(self.excess))
        word = "stiff" if self.stiff else "not stiff"
        return (
            f"{word} for {self.method} at tolerance {self.rtol:g}: stability limits the step on "
            f"{100 * self.share:.0f} % of the interval; at t = {self.t[k]:.4g} to "
            f"{self.h_stability[k]:.2e} where accuracy allows {self.h_accuracy[k]:.2e} "
            f"({self.excess[k]:.3g} times as much)"
        )


def _decays(eigenvalues: NDArray[np.complex128]) -> NDArray[np.bool_]:
    size = np.abs(eigenvalues)
    return np.asarray((size > 0) & (-eigenvalues.real > DECAYING * size))


def _amplification(method: Any) -> Callable[[Any], Any]:
    """Return R(z) of a Runge–Kutta or Taylor method."""
    found = resolve(method)
    if isinstance(found, Tableau):
        from ..method.stability.amplification import stability_function

        return stability_function(found)
    if isinstance(found, Taylor):
        coefficients = [1 / math.factorial(k) for k in range(method_order(found) + 1)]
        return lambda z: np.polynomial.polynomial.polyval(z, coefficients)
    raise TypeError(
        f"the stability of {method_name(method)} is not known; expected a Runge–Kutta method or "
        "Taylor(order)"
    )


def stability_limit(method: Any, eigenvalue: complex, *, slack: float = 1e-10) -> float:
    """Return the first h > 0 at which |R(hλ)| exceeds 1; infinite if there is none.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or Taylor(order).
    eigenvalue
        λ, a decaying mode.
    slack
        |R| up to 1 + slack counts as stable.

    Examples
    --------
    >>> stability_limit("ExplicitEuler", -50.0)
    0.04
    >>> stability_limit("ImplicitEuler", -50.0)
    inf
    """
    R = _amplification(method)
    size = abs(eigenvalue)
    if not (np.isfinite(size) and size > 0):
        raise ValueError(f"the eigenvalue must be finite and not zero, got {eigenvalue!r}")
    z = eigenvalue / size

    def grows(r: Any) -> Any:
        return np.abs(R(r * z)) > 1 + slack

    # Fine where boundaries lie (up to 100 stages squared …), coarse beyond.
    r = np.concatenate([np.linspace(0.01, 40, 4000), np.geomspace(40, LONGEST, 2000)[1:]])
    outside = np.flatnonzero(grows(r))
    if not outside.size:
        return math.inf
    k = int(outside[0])
    lo, hi = (0.0 if k == 0 else float(r[k - 1])), float(r[k])
    while hi - lo > 1e-13 * hi:
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if grows(middle) else (middle, hi)
    # |R| = 1 is reached a little before |R| = 1 + slack; digits beyond that mean nothing.
    return float(f"{hi / size:.9g}")


def stiffness(
    problem: IVP | Solution,
    method: Any = "DOPRI5",
    *,
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    points: int = 100,
) -> Stiffness:
    """Follow the eigenvalues of ∂f/∂y along the solution and find out what limits the step.

    Parameters
    ----------
    problem
        An IVP, or a Solution, of which the problem is taken.
    method
        The method whose steps are judged: a Runge–Kutta method or Taylor(order).
    rtol, atol
        Tolerances for the accuracy.
    points
        At about how many times to look.

    Returns
    -------
    Stiffness
        Eigenvalues, stiffness ratio, both step limits and a verdict in words.

    Examples
    --------
    >>> from integrators import problems
    >>> decay = problems.get("curtiss_hirschfelder", lam=2000.0)
    >>> found = stiffness(decay, "RK4")
    >>> found.stiff, f"{found.h_stability[0]:.3e}"  # 2.785/2000
    (True, '1.393e-03')
    >>> stiffness(decay, "RadauIIA3").stiff
    False
    """
    ivp = as_problem(problem.problem if isinstance(problem, Solution) else problem)
    if np.iscomplexobj(ivp.y0):
        raise ValueError("the state must be real; split it into real and imaginary parts")
    if not points >= 2:
        raise ValueError(f"points must be at least 2, got {points!r}")
    order = method_order(method)
    field = Field(ivp, ivp.n)
    span = abs(ivp.t_span[1] - ivp.t_span[0])
    if span == 0:
        raise ValueError("the time interval has no length")
    tight = max(rtol * TIGHTER, 1e-12)
    run = solve(
        ivp.with_(events=(), project=None, f=field.traced or ivp.f), method="RADAU5", rtol=tight,
        atol=np.asarray(atol) * TIGHTER, max_step=span / (4 * (order + 2)), throw=True,
    )  # fmt: skip
    chosen = _spread(run.t, points)
    J = field.jacobians(run.t[chosen], run.y[:, chosen].T)
    found = np.linalg.eigvals(J).astype(np.complex128)
    eigenvalues = np.take_along_axis(found, np.argsort(found.real, axis=1), axis=1).T
    R = _limits(method, eigenvalues)
    accuracy = np.array([_accurate_step(run, int(k), order, rtol, atol) for k in chosen])
    return Stiffness(
        run.t[chosen], run.y[:, chosen], eigenvalues, R, accuracy, method_name(method), rtol
    )


def _spread(t: Array, points: int) -> NDArray[np.intp]:
    """Indices of about so many times: half of them equally spaced in time, half in steps."""
    by_step = np.linspace(0, t.size - 1, max(2, points // 2)).round().astype(int)
    wanted = np.linspace(t[0], t[-1], max(2, points // 2))
    by_time = [int(np.argmin(np.abs(t - s))) for s in wanted]
    return np.unique(np.concatenate([by_step, by_time]))


def _limits(method: Any, eigenvalues: NDArray[np.complex128]) -> Array:
    decaying = _decays(eigenvalues)
    result = np.full(eigenvalues.shape[1], np.inf)
    known: dict[float, float] = {}  # the limit of h|λ| depends on the direction of λ alone
    for k in range(eigenvalues.shape[1]):
        for lam in eigenvalues[decaying[:, k], k]:
            angle = round(abs(math.atan2(lam.imag, lam.real)), 3)
            if angle not in known:
                known[angle] = stability_limit(method, complex(math.cos(angle), math.sin(angle)))
            result[k] = min(result[k], known[angle] / abs(lam))
    return result


def _accurate_step(run: Solution, k: int, order: int, rtol: float, atol: Any) -> float:
    """Longest h with |divided difference|·h^(p+1) below the tolerance, from the run's points."""
    t, y = run.t, run.y
    count = order + 2
    scale = np.asarray(atol) + rtol * np.abs(y[:, k])
    best = allowed = 0.0
    stride = 1
    while True:
        reach = (count - 1) * stride
        if k + reach < t.size:
            nodes = k + stride * np.arange(count)
        elif best:  # the interval ends before the tolerance is reached
            return min(allowed, float(abs(t[-1] - t[0])))
        elif t.size >= count:  # near the end: the last points stand for those that are missing
            nodes = np.arange(t.size - count, t.size)
        else:
            return float(abs(t[-1] - t[0]))
        d = _divided_difference(t[nodes], y[:, nodes])
        h = float(abs(t[nodes[-1]] - t[nodes[0]]))
        error = float(np.sqrt(np.mean((np.abs(d) * h ** (order + 1) / scale) ** 2)))
        allowed = h if error == 0.0 else h * error ** (-1 / (order + 1))
        if error >= 1.0:
            # Between the last stride, with a step that was still good, and this one.
            return max(best, allowed) if best else allowed
        best = h
        stride *= 2


def _divided_difference(t: Array, y: Array) -> Array:
    """y[t_0, …, t_q], for each component."""
    d = y.astype(float)
    for level in range(1, t.size):
        d = (d[:, 1:] - d[:, :-1]) / (t[level:] - t[:-level])
    return np.asarray(d[:, 0])
