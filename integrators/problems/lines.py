"""Partial differential equations by the method of lines: large, banded, moderately stiff."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.methods.imex import Split
from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["brusselator_1d", "brusselator_2d", "heat_1d", "heat_2d"]


@register("bruss", stiff=True)
def brusselator_1d(n: int = 100, alpha: float = 0.02, t_end: float = 10.0) -> IVP:
    """Brusselator with diffusion on a line of n points: 2n equations, banded Jacobian.

    Notes
    -----
    u_t = 1 + u² v − 4u + α u_xx, v_t = 3u − u² v + α v_xx on 0 < x < 1 with u = 1, v = 3 at the
    ends and at the start u = 1 + sin 2πx, v = 3; central differences on xᵢ = i/(n + 1). State
    (u₁, v₁, u₂, v₂, …). f is a :class:`Split` of reaction and diffusion. ``jac`` returns a sparse
    matrix; the largest eigenvalue of diffusion is about −4 α n².

    Examples
    --------
    >>> brusselator_1d(n=500).n
    1000
    """
    from scipy import sparse

    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}")
    x = np.arange(1, n + 1) / (n + 1)
    k = alpha * (n + 1) ** 2
    u_end, v_end = np.array([1.0]), np.array([3.0])
    start = np.stack([1 + np.sin(2 * np.pi * x), np.full(n, 3.0)], axis=1).ravel()

    def reaction(t: Any, y: Any) -> Any:
        u, v = y[0::2], y[1::2]
        r = u * u * v
        return np.stack([1 + r - 4 * u, 3 * u - r], axis=1).ravel()

    def diffusion(t: Any, y: Any) -> Any:
        u, v = y[0::2], y[1::2]
        padded_u = np.concatenate([u_end, u, u_end])
        padded_v = np.concatenate([v_end, v, v_end])
        du = k * (padded_u[:-2] - 2 * u + padded_u[2:])
        dv = k * (padded_v[:-2] - 2 * v + padded_v[2:])
        return np.stack([du, dv], axis=1).ravel()

    neighbours = np.full(2 * n - 2, k)

    def jac(t: Any, y: Any) -> Any:
        u, v = y[0::2], y[1::2]
        square, product = u * u, 2 * u * v
        main = np.stack([product - 4 - 2 * k, -square - 2 * k], axis=1).ravel()
        upper = np.stack([square, np.zeros(n)], axis=1).ravel()[:-1]
        lower = np.stack([3 - product, np.zeros(n)], axis=1).ravel()[:-1]
        bands = [neighbours, lower, main, upper, neighbours]
        return sparse.diags_array(bands, offsets=[-2, -1, 0, 1, 2], format="csc")

    pattern = sparse.diags_array(
        [np.ones(2 * n - abs(j)) for j in range(-2, 3)], offsets=[-2, -1, 0, 1, 2], format="csc"
    )
    bands = [neighbours, np.full(2 * n, -2 * k), neighbours]
    of_diffusion = sparse.diags_array(bands, offsets=[-2, 0, 2], format="csc")
    return IVP(
        Split(reaction, diffusion, jac=of_diffusion),
        start,
        (0.0, t_end),
        jac=jac,
        jac_sparsity=pattern,
        source="E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, IV.10",
    )


def _modes(t: float, decay: Any, shapes: Any) -> Any:
    """Σ of shapes that each decay at their own rate."""
    return sum(np.exp(-rate * t) * shape for rate, shape in zip(decay, shapes))


@register(stiff=True)
def heat_1d(n: int = 50, t_end: float = 0.2) -> IVP:
    """Heat conduction along a rod of n points, cold at its ends; exact for the discrete rod.

    Notes
    -----
    u_t = u_xx on 0 < x < 1, u = 0 at the ends, from sin πx + ½ sin 3πx; central differences on
    xᵢ = i/(n + 1). Discrete sines stay eigenvectors, with the rates (4/Δx²) sin²(kπΔx/2).
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}")
    dx = 1 / (n + 1)
    x = dx * np.arange(1, n + 1)
    shapes = [np.sin(np.pi * x), 0.5 * np.sin(3 * np.pi * x)]
    rates = [(2 / dx * np.sin(k * np.pi * dx / 2)) ** 2 for k in (1, 3)]
    end = np.zeros(1)

    def f(t: Any, u: Any) -> Any:
        padded = np.concatenate([end, u, end])
        return (padded[:-2] - 2 * u + padded[2:]) / dx**2

    return IVP(
        f,
        sum(shapes),
        (0.0, t_end),
        exact=lambda t: _modes(t, rates, shapes),
        source="exact for the differences: separation of variables",
    )


@register(stiff=True)
def heat_2d(n: int = 8, t_end: float = 0.1) -> IVP:
    """Heat conduction in a square of n × n points, cold at its rim; exact for the discrete square.

    Notes
    -----
    u_t = Δu on the unit square, u = 0 on the rim, from sin πx sin πy + ½ sin 2πx sin 3πy;
    five-point differences, row by row.
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}")
    dx = 1 / (n + 1)
    x = dx * np.arange(1, n + 1)
    waves = [np.sin(k * np.pi * x) for k in (1, 2, 3)]
    rates = [(2 / dx * np.sin(k * np.pi * dx / 2)) ** 2 for k in (1, 2, 3)]
    shapes = [np.outer(waves[0], waves[0]).ravel(), 0.5 * np.outer(waves[1], waves[2]).ravel()]
    side, above = np.zeros((n, 1)), np.zeros((1, n))

    def f(t: Any, y: Any) -> Any:
        u = y.reshape(n, n)
        across = np.concatenate([side, u, side], axis=1)
        along = np.concatenate([above, u, above], axis=0)
        around = across[:, :-2] + across[:, 2:] + along[:-2] + along[2:]
        return ((around - 4 * u) / dx**2).ravel()

    return IVP(
        f,
        sum(shapes),
        (0.0, t_end),
        exact=lambda t: _modes(t, (2 * rates[0], rates[1] + rates[2]), shapes),
        source="exact for the differences: separation of variables",
    )


@register("bruss_2d", stiff=True)
def brusselator_2d(n: int = 6, alpha: float = 0.1, t_end: float = 1.0) -> IVP:
    """Brusselator with diffusion on a torus of n × n points: 2n² equations.

    Notes
    -----
    u_t = 1 + u² v − 4.4u + α Δu, v_t = 3.4u − u² v + α Δv on the unit square with periodic
    ends, from u = 22 y (1 − y)^{3/2}, v = 27 x (1 − x)^{3/2}; xᵢ = i/n. State: all u, then all v.
    """
    if n < 3:
        raise ValueError(f"n must be at least 3, got {n}")
    x = np.arange(n) / n
    k = alpha * n**2
    start = np.stack(
        [
            np.broadcast_to(22 * x * (1 - x) ** 1.5, (n, n)),
            np.broadcast_to((27 * x * (1 - x) ** 1.5)[:, None], (n, n)),
        ]
    ).ravel()

    def spread(u: Any) -> Any:
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        return k * (around - 4 * u)

    def f(t: Any, y: Any) -> Any:
        u, v = y[: n * n].reshape(n, n), y[n * n :].reshape(n, n)
        r = u * u * v
        du = 1 + r - 4.4 * u + spread(u)
        dv = 3.4 * u - r + spread(v)
        return np.concatenate([du.ravel(), dv.ravel()])

    return IVP(
        f,
        start,
        (0.0, t_end),
        source="E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, IV.10 "
        "(without its source term)",
    )
