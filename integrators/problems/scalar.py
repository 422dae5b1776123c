"""Scalar problems: those of the course notes, and the linear tests of stability theory.

Each has a closed solution. Parameters that one would vary are in ``params``, so that f is
f(t, y, p).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = [
    "blow_up",
    "curtiss_hirschfelder",
    "dahlquist",
    "decay",
    "linear_growth",
    "logistic",
    "minus_2ty2",
    "prothero_robinson",
    "square_root",
]


@register("notes_example_1_4", "xy_plus_x")
def linear_growth(t_end: float = 1.0) -> IVP:
    """Linear y' = ty + t, the worked example of the course notes.

    Notes
    -----
    y(0) = 1 gives y = 2 exp(t²/2) − 1.

    Examples
    --------
    >>> round(float(linear_growth().exact(1.0)[0]), 6)
    2.297443
    """

    def f(t: Any, y: Any) -> Any:
        return np.array([t * y[0] + t])

    def jac(t: Any, y: Any) -> Any:
        return np.array([[t]])

    def exact(t: Any) -> Any:
        return np.array([2 * np.exp(t * t / 2) - 1])

    source = "Course notes, example 1.4"
    return IVP(f, [1.0], (0.0, t_end), jac=jac, exact=exact, source=source)


@register(stiff=True)
def decay(rate: float = 50.0, t_end: float = 2.0) -> IVP:
    """Fast decay y' = −50 y of the course notes.

    Explicit Euler with h = 0.05 grows by 1.5 a step; implicit Euler decays.
    """

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([-p[0] * y[0]])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[-p[0]]])

    def exact(t: Any) -> Any:
        return np.array([np.exp(-rate * t)])

    source = "Course notes, implicit Euler"
    return IVP(f, [1.0], (0.0, t_end), [rate], jac=jac, exact=exact, source=source)


@register("sqrt_abs", "nonuniqueness")
def square_root(y0: float = 0.0, t_end: float = 2.0) -> IVP:
    """Non-unique y' = √|y|, which is not Lipschitz at 0.

    Notes
    -----
    From y(0) = 0 both y = 0 and y = sign(t) t²/4 are solutions. ``exact`` is the zero solution,
    to which every Runge–Kutta method keeps; from y0 > 0 it is the unique (t/2 + √y0)², for t to
    the right of −2√y0.
    """
    if y0 < 0:
        raise ValueError(f"y0 must not be negative, got {y0}; the solution from there crosses 0")

    def f(t: Any, y: Any) -> Any:
        return np.sqrt(np.abs(np.array([y[0]])))

    def exact(t: Any) -> Any:
        return np.array([(t / 2 + np.sqrt(y0)) ** 2 if y0 > 0 else 0.0 * t])

    source = "Course notes, example 1.3"
    return IVP(f, [y0], (0.0, t_end), exact=exact, source=source)


@register("y_squared")
def blow_up(y0: float = 1.0, t_end: float = 0.9) -> IVP:
    """Finite-time blow-up: y' = y², whose solution y0/(1 − y0 t) leaves every bound at t = 1/y0."""
    if y0 * t_end >= 1:
        raise ValueError(f"the solution ends at t = {1 / y0:g}; t_end = {t_end:g} is beyond it")

    def f(t: Any, y: Any) -> Any:
        return np.array([y[0] * y[0]])

    def jac(t: Any, y: Any) -> Any:
        return np.array([[2 * y[0]]])

    def exact(t: Any) -> Any:
        return np.array([y0 / (1 - y0 * t)])

    source = "Standard example of a solution that does not exist for all times"
    return IVP(f, [y0], (0.0, t_end), jac=jac, exact=exact, source=source)


@register("hyperbola")
def minus_2ty2(t_end: float = 2.0) -> IVP:
    """Nonlinear, non-autonomous y' = −2 t y², y = 1/(1 + t²): shows wrong nodes at once."""

    def f(t: Any, y: Any) -> Any:
        return np.array([-2 * t * y[0] * y[0]])

    def jac(t: Any, y: Any) -> Any:
        return np.array([[-4 * t * y[0]]])

    def exact(t: Any) -> Any:
        return np.array([1 / (1 + t * t)])

    source = "Standard example for order tests"
    return IVP(f, [1.0], (0.0, t_end), jac=jac, exact=exact, source=source)


@register("verhulst")
def logistic(rate: float = 1.0, capacity: float = 1.0, y0: float = 0.1, t_end: float = 10.0) -> IVP:
    """Logistic growth y' = r y (1 − y/K)."""

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([p[0] * y[0] * (1 - y[0] / p[1])])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[p[0] * (1 - 2 * y[0] / p[1])]])

    def exact(t: Any) -> Any:
        return np.array([capacity / (1 + (capacity / y0 - 1) * np.exp(-rate * t))])

    source = "P.-F. Verhulst, 1838"
    return IVP(f, [y0], (0.0, t_end), [rate, capacity], jac=jac, exact=exact, source=source)


@register("test_equation")
def dahlquist(lam: complex = -1.0, y0: complex = 1.0, t_end: float = 5.0) -> IVP:
    """Dahlquist's test equation y' = λ y, with λ real or complex.

    Examples
    --------
    >>> dahlquist(lam=2j).y0
    array([1.+0.j])
    """
    is_complex = isinstance(lam, complex) or isinstance(y0, complex)
    start = complex(y0) if is_complex else y0

    def f(t: Any, y: Any) -> Any:
        return np.array([lam * y[0]])

    def jac(t: Any, y: Any) -> Any:
        return np.array([[lam]])

    def exact(t: Any) -> Any:
        return np.array([start * np.exp(lam * t)])

    source = "G. Dahlquist, 1963"
    return IVP(f, [start], (0.0, t_end), jac=jac, exact=exact, source=source)


@register(stiff=True)
def prothero_robinson(lam: float = -1e6, t_end: float = 10.0) -> IVP:
    """Prothero–Robinson problem y' = λ (y − φ) + φ' with φ = sin(t + π/4).

    The solution is φ whatever λ; the observed order falls to the stage order as λ → −∞.
    """

    def phi(t: Any) -> Any:
        return np.sin(t + np.pi / 4)

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([p[0] * (y[0] - phi(t)) + np.cos(t + np.pi / 4)])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[p[0]]])

    def exact(t: Any) -> Any:
        return np.array([phi(t)])

    source = "A. Prothero and A. Robinson, Math. Comp. 28 (1974) 145-162"
    return IVP(f, [phi(0.0)], (0.0, t_end), [lam], jac=jac, exact=exact, source=source)


@register(stiff=True)
def curtiss_hirschfelder(lam: float = 50.0, y0: float = 0.0, t_end: float = 1.5) -> IVP:
    """Curtiss–Hirschfelder problem y' = −λ (y − cos t): a fast transient onto a smooth curve."""

    def f(t: Any, y: Any, p: Any) -> Any:
        return np.array([-p[0] * (y[0] - np.cos(t))])

    def jac(t: Any, y: Any, p: Any) -> Any:
        return np.array([[-p[0]]])

    def smooth(t: Any) -> Any:
        return lam * (lam * np.cos(t) + np.sin(t)) / (1 + lam * lam)

    def exact(t: Any) -> Any:
        return np.array([smooth(t) + (y0 - smooth(0.0)) * np.exp(-lam * t)])

    source = "C. F. Curtiss and J. O. Hirschfelder, Proc. Nat. Acad. Sci. 38 (1952) 235-243"
    return IVP(f, [y0], (0.0, t_end), [lam], jac=jac, exact=exact, source=source)
