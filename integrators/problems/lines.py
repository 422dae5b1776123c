"""Partial differential equations by the method of lines: large, banded, moderately stiff."""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.methods.imex import Split
from integrators.problem import IVP
from integrators.problems.registry import register

__all__ = ["brusselator_1d"]


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
