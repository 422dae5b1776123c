"""Smooth vector problems with a closed solution, made to measure the order of a method.

They are nonlinear, coupled and depend on time explicitly, so that for each order up to six the
elementary differentials of the rooted trees are linearly independent along the solution (a test
checks it): a method that misses one order condition shows it. Linear problems cannot do this.
Solutions and right-hand sides also work in ``numpy.longdouble``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = [
    "order_exponential",
    "order_mechanical",
    "order_rational",
    "order_separable",
    "order_trigonometric",
]

_MADE = "Manufactured for this library"


@register("order_1")
def order_rational(t_end: float = 2.0) -> IVP:
    """Order test with products: y = (1/(1 + t²), exp(sin t)).

    Notes
    -----
    y₁' = −2 t y₁² y₂ exp(−sin t) and y₂' = (1 + t²) y₁ y₂ cos t.
    """

    def f(t: Any, y: Any) -> Any:
        y1, y2 = y
        return np.array(
            [-2 * t * y1 * y1 * y2 * np.exp(-np.sin(t)), (1 + t * t) * y1 * y2 * np.cos(t)]
        )

    def jac(t: Any, y: Any) -> Any:
        y1, y2 = y
        a, b = -2 * t * np.exp(-np.sin(t)), (1 + t * t) * np.cos(t)
        return np.array([[2 * a * y1 * y2, a * y1 * y1], [b * y2, b * y1]])

    def exact(t: Any) -> Any:
        return np.array([1 / (1 + t * t), np.exp(np.sin(t))])

    return IVP(f, [1.0, 1.0], (0.0, t_end), jac=jac, exact=exact, source=_MADE)


@register("order_2")
def order_trigonometric(t_end: float = 2.0) -> IVP:
    """Order test with sines and quotients: y = (cos t, sin 2t).

    Notes
    -----
    With N₁ = sin(y₁ y₂) + y₂/(2 + y₁²) and N₂ = y₁²/(1 + y₂²) − cos(y₁ + y₂), the equations are
    y' = g'(t) + N(y) − N(g(t)), where g is the solution.
    """

    def nonlinear(y1: Any, y2: Any) -> tuple[Any, Any]:
        return (
            np.sin(y1 * y2) + y2 / (2 + y1 * y1),
            y1 * y1 / (1 + y2 * y2) - np.cos(y1 + y2),
        )

    def exact(t: Any) -> Any:
        return np.array([np.cos(t), np.sin(2 * t)])

    def f(t: Any, y: Any) -> Any:
        n1, n2 = nonlinear(y[0], y[1])
        g1, g2 = nonlinear(np.cos(t), np.sin(2 * t))
        return np.array([n1 - g1 - np.sin(t), n2 - g2 + 2 * np.cos(2 * t)])

    def jac(t: Any, y: Any) -> Any:
        y1, y2 = y
        c, s = np.cos(y1 * y2), np.sin(y1 + y2)
        d1, d2 = 2 + y1 * y1, 1 + y2 * y2
        return np.array(
            [
                [y2 * c - 2 * y1 * y2 / (d1 * d1), y1 * c + 1 / d1],
                [2 * y1 / d2 + s, -2 * y1 * y1 * y2 / (d2 * d2) + s],
            ]
        )

    return IVP(f, exact(0.0), (0.0, t_end), jac=jac, exact=exact, source=_MADE)


@register("order_3")
def order_exponential(t_end: float = 2.0) -> IVP:
    """Order test in three components: y = (2 + sin t, 2 + cos t, exp(−t)).

    Notes
    -----
    y₁' = (y₂ − 2) y₃ eᵗ, y₂' = (2 − y₁) y₂/(2 + cos t), y₃' = −y₁ y₃²eᵗ/(2 + sin t).
    """

    def f(t: Any, y: Any) -> Any:
        y1, y2, y3 = y
        a = np.exp(t)
        return np.array(
            [
                (y2 - 2) * y3 * a,
                (2 - y1) * y2 / (2 + np.cos(t)),
                -y1 * y3 * y3 * a / (2 + np.sin(t)),
            ]
        )

    def jac(t: Any, y: Any) -> Any:
        y1, y2, y3 = y
        a, b, c = np.exp(t), 2 + np.cos(t), 2 + np.sin(t)
        return np.array(
            [
                [0.0, y3 * a, (y2 - 2) * a],
                [-y2 / b, (2 - y1) / b, 0.0],
                [-y3 * y3 * a / c, 0.0, -2 * y1 * y3 * a / c],
            ]
        )

    def exact(t: Any) -> Any:
        return np.array([2 + np.sin(t), 2 + np.cos(t), np.exp(-t)])

    return IVP(f, [2.0, 3.0, 1.0], (0.0, t_end), jac=jac, exact=exact, source=_MADE)


@register("order_4")
def order_mechanical(t_end: float = 2.0) -> IVP:
    """Order test for q'' = g(t, q), as y = (q, v): q = (cos t, sin 2t).

    Notes
    -----
    With N₁ = sin(q₁ q₂) + q₂/(2 + q₁²) and N₂ = q₁²/(1 + q₂²) − cos(q₁ + q₂) and the solution
    q*(t), q'' = q*''(t) + N(q) − N(q*(t)).
    """

    def force(q1: Any, q2: Any) -> tuple[Any, Any]:
        return (
            np.sin(q1 * q2) + q2 / (2 + q1 * q1),
            q1 * q1 / (1 + q2 * q2) - np.cos(q1 + q2),
        )

    def exact(t: Any) -> Any:
        return np.array([np.cos(t), np.sin(2 * t), -np.sin(t), 2 * np.cos(2 * t)])

    def f(t: Any, y: Any) -> Any:
        n1, n2 = force(y[0], y[1])
        g1, g2 = force(np.cos(t), np.sin(2 * t))
        return np.array([y[2], y[3], n1 - g1 - np.cos(t), n2 - g2 - 4 * np.sin(2 * t)])

    def jac(t: Any, y: Any) -> Any:
        q1, q2 = y[0], y[1]
        c, s = np.cos(q1 * q2), np.sin(q1 + q2)
        d1, d2 = 2 + q1 * q1, 1 + q2 * q2
        return np.array(
            [
                [0.0, 0.0, 1.0, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [q2 * c - 2 * q1 * q2 / (d1 * d1), q1 * c + 1 / d1, 0.0, 0.0],
                [2 * q1 / d2 + s, -2 * q1 * q1 * q2 / (d2 * d2) + s, 0.0, 0.0],
            ]
        )

    return IVP(f, exact(0.0), (0.0, t_end), jac=jac, exact=exact, source=_MADE)


@register("order_5")
def order_separable(t_end: float = 2.0) -> IVP:
    """Order test for q' = f(t, v), v' = g(t, q), as y = (q, v): q = 2 + sin t, v = exp(−t/2).

    Notes
    -----
    q' = cos t · v² eᵗ and v' = −q² exp(−t/2)/(2 (2 + sin t)²).
    """

    def f(t: Any, y: Any) -> Any:
        q, v = y
        c = 2 + np.sin(t)
        return np.array([np.cos(t) * v * v * np.exp(t), -q * q * np.exp(-t / 2) / (2 * c * c)])

    def jac(t: Any, y: Any) -> Any:
        q, v = y
        c = 2 + np.sin(t)
        return np.array(
            [[0.0, 2 * np.cos(t) * v * np.exp(t)], [-q * np.exp(-t / 2) / (c * c), 0.0]]
        )

    def exact(t: Any) -> Any:
        return np.array([2 + np.sin(t), np.exp(-t / 2)])

    return IVP(f, [2.0, 1.0], (0.0, t_end), jac=jac, exact=exact, source=_MADE)
