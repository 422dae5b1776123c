"""Planar kernels: motions (ω, vx, vy), forces (n, fx, fy), transforms (c, s, x, y) (book, §2.16).

A planar transform A → B is stored as cosine and sine of the angle of B in A, and the place of
B's origin in A. A planar inertia is four numbers: m, h = m c (2), rotational inertia at the
origin.

>>> import numpy as np
>>> out = np.empty(3)
>>> planar_motion_transform(np.array([1.0, 0, 0, 1.0]), np.array([2.0, 0, 0]), out)
>>> out
array([ 2., -2.,  0.])
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel

from ..checks import Array

__all__ = [
    "planar_compose",
    "planar_cross_force",
    "planar_cross_motion",
    "planar_dot",
    "planar_force_transform",
    "planar_force_transform_inverse",
    "planar_inertia_apply",
    "planar_motion_transform",
    "planar_motion_transform_inverse",
]


@inline_kernel
def planar_dot(v: Array, f: Array) -> Any:
    """Scalar product of a motion and a force."""
    return v[0] * f[0] + v[1] * f[1] + v[2] * f[2]


@inline_kernel
def planar_cross_motion(v: Array, m: Array, out: Array) -> None:
    """Write v × m: the first component is zero, angular velocities in a plane commute."""
    w, vx, vy = v[0], v[1], v[2]
    u, mx, my = m[0], m[1], m[2]
    out[0] = 0.0
    out[1] = vy * u - w * my
    out[2] = w * mx - vx * u


@inline_kernel
def planar_cross_force(v: Array, f: Array, out: Array) -> None:
    """Write v ×* f."""
    w, vx, vy = v[0], v[1], v[2]
    fx, fy = f[1], f[2]
    out[0] = vx * fy - vy * fx
    out[1] = -(w * fy)
    out[2] = w * fx


@inline_kernel
def planar_motion_transform(X: Array, v: Array, out: Array) -> None:
    """Write X v: from A to B (Eq 2.77)."""
    c, s, x, y = X[0], X[1], X[2], X[3]
    w = v[0]
    ux = v[1] - w * y
    uy = v[2] + w * x
    out[0] = w
    out[1] = c * ux + s * uy
    out[2] = c * uy - s * ux


@inline_kernel
def planar_motion_transform_inverse(X: Array, v: Array, out: Array) -> None:
    """Write X⁻¹ v: from B to A."""
    c, s, x, y = X[0], X[1], X[2], X[3]
    w, vx, vy = v[0], v[1], v[2]
    out[0] = w
    out[1] = c * vx - s * vy + w * y
    out[2] = c * vy + s * vx - w * x


@inline_kernel
def planar_force_transform(X: Array, f: Array, out: Array) -> None:
    """Write X* f: from A to B."""
    c, s, x, y = X[0], X[1], X[2], X[3]
    fx, fy = f[1], f[2]
    out[0] = f[0] - (x * fy - y * fx)
    out[1] = c * fx + s * fy
    out[2] = c * fy - s * fx


@inline_kernel
def planar_force_transform_inverse(X: Array, f: Array, out: Array) -> None:
    """Write Xᵀ f: from B to A."""
    c, s, x, y = X[0], X[1], X[2], X[3]
    n = f[0]
    fx = c * f[1] - s * f[2]
    fy = c * f[2] + s * f[1]
    out[0] = n + (x * fy - y * fx)
    out[1] = fx
    out[2] = fy


@inline_kernel
def planar_compose(X_CB: Array, X_BA: Array, X_CA: Array) -> None:
    """X_CA = X_CB X_BA."""
    c1, s1, x1, y1 = X_CB[0], X_CB[1], X_CB[2], X_CB[3]
    c2, s2, x2, y2 = X_BA[0], X_BA[1], X_BA[2], X_BA[3]
    X_CA[0] = c1 * c2 - s1 * s2
    X_CA[1] = s1 * c2 + c1 * s2
    X_CA[2] = x2 + (c2 * x1 - s2 * y1)
    X_CA[3] = y2 + (s2 * x1 + c2 * y1)


@inline_kernel
def planar_inertia_apply(inertia: Array, v: Array, out: Array) -> None:
    """Write I v for (m, h, I_O) (Eq 2.78)."""
    m, hx, hy, I = inertia[0], inertia[1], inertia[2], inertia[3]
    w, vx, vy = v[0], v[1], v[2]
    out[0] = I * w + (hx * vy - hy * vx)
    out[1] = m * vx - hy * w
    out[2] = m * vy + hx * w
