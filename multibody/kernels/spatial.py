"""Spatial-vector kernels: products and Plücker transforms (book, Table A.4).

X = (E, r) maps A to B coordinates: E rotates A coordinates into B, r is the origin of B in A.

>>> import numpy as np
>>> out = np.empty(6)
>>> motion_transform(np.eye(3), np.array([0.0, 1.0, 0.0]), np.array([0, 0, 2.0, 0, 0, 0]), out)
>>> out  # spinning about z at 2 rad/s, the point (0, 1, 0) moves along −x
array([ 0.,  0.,  2., -2.,  0.,  0.])
"""

from __future__ import annotations

from typing import Any

from integrators.kernels import inline_kernel

from ..checks import Array
from .vectors import multiply_rotations

__all__ = [
    "add",
    "compose",
    "cross_force",
    "cross_motion",
    "dot",
    "force_transform",
    "force_transform_inverse",
    "invert",
    "motion_transform",
    "motion_transform_inverse",
    "scale",
]


@inline_kernel
def scale(alpha: Any, a: Array, out: Array) -> None:
    """Write α a for vectors (6m), rigid inertias (10m) and articulated ones (21m)."""
    for i in range(a.shape[0]):
        out[i] = alpha * a[i]


@inline_kernel
def add(a: Array, b: Array, out: Array) -> None:
    """Write a + b for two quantities of one kind: 6a, 10a or 21a."""
    for i in range(a.shape[0]):
        out[i] = a[i] + b[i]


@inline_kernel
def dot(v: Array, f: Array) -> Any:
    """Scalar product of a motion and a force: power if v is a velocity. 6m + 5a."""
    return v[0] * f[0] + v[1] * f[1] + v[2] * f[2] + v[3] * f[3] + v[4] * f[4] + v[5] * f[5]


@inline_kernel
def cross_motion(v: Array, m: Array, out: Array) -> None:
    """Write v × m = [ω × m; ω × m_O + v_O × m] (Eq 2.33). 18m + 12a."""
    w0, w1, w2, v0, v1, v2 = v[0], v[1], v[2], v[3], v[4], v[5]
    a0, a1, a2, b0, b1, b2 = m[0], m[1], m[2], m[3], m[4], m[5]
    out[0] = w1 * a2 - w2 * a1
    out[1] = w2 * a0 - w0 * a2
    out[2] = w0 * a1 - w1 * a0
    out[3] = (w1 * b2 - w2 * b1) + (v1 * a2 - v2 * a1)
    out[4] = (w2 * b0 - w0 * b2) + (v2 * a0 - v0 * a2)
    out[5] = (w0 * b1 - w1 * b0) + (v0 * a1 - v1 * a0)


@inline_kernel
def cross_force(v: Array, f: Array, out: Array) -> None:
    """Write v ×* f = [ω × n + v_O × f; ω × f] (Eq 2.34). 18m + 12a."""
    w0, w1, w2, v0, v1, v2 = v[0], v[1], v[2], v[3], v[4], v[5]
    n0, n1, n2, f0, f1, f2 = f[0], f[1], f[2], f[3], f[4], f[5]
    out[0] = (w1 * n2 - w2 * n1) + (v1 * f2 - v2 * f1)
    out[1] = (w2 * n0 - w0 * n2) + (v2 * f0 - v0 * f2)
    out[2] = (w0 * n1 - w1 * n0) + (v0 * f1 - v1 * f0)
    out[3] = w1 * f2 - w2 * f1
    out[4] = w2 * f0 - w0 * f2
    out[5] = w0 * f1 - w1 * f0


@inline_kernel
def motion_transform(E: Array, r: Array, v: Array, out: Array) -> None:
    """Write X v = [E ω; E (v − r × ω)]: from A to B. 24m + 18a."""
    w0, w1, w2 = v[0], v[1], v[2]
    u0 = v[3] - (r[1] * w2 - r[2] * w1)
    u1 = v[4] - (r[2] * w0 - r[0] * w2)
    u2 = v[5] - (r[0] * w1 - r[1] * w0)
    for i in range(3):
        out[i] = E[i, 0] * w0 + E[i, 1] * w1 + E[i, 2] * w2
        out[3 + i] = E[i, 0] * u0 + E[i, 1] * u1 + E[i, 2] * u2


@inline_kernel
def motion_transform_inverse(E: Array, r: Array, v: Array, out: Array) -> None:
    """Write X⁻¹ v = [Eᵀ ω; Eᵀ v + r × Eᵀ ω]: from B to A. 24m + 18a."""
    b0, b1, b2, c0, c1, c2 = v[0], v[1], v[2], v[3], v[4], v[5]
    w0 = E[0, 0] * b0 + E[1, 0] * b1 + E[2, 0] * b2
    w1 = E[0, 1] * b0 + E[1, 1] * b1 + E[2, 1] * b2
    w2 = E[0, 2] * b0 + E[1, 2] * b1 + E[2, 2] * b2
    out[0] = w0
    out[1] = w1
    out[2] = w2
    out[3] = E[0, 0] * c0 + E[1, 0] * c1 + E[2, 0] * c2 + (r[1] * w2 - r[2] * w1)
    out[4] = E[0, 1] * c0 + E[1, 1] * c1 + E[2, 1] * c2 + (r[2] * w0 - r[0] * w2)
    out[5] = E[0, 2] * c0 + E[1, 2] * c1 + E[2, 2] * c2 + (r[0] * w1 - r[1] * w0)


@inline_kernel
def force_transform(E: Array, r: Array, f: Array, out: Array) -> None:
    """Write X* f = [E (n − r × f); E f]: from A to B. 24m + 18a."""
    f0, f1, f2 = f[3], f[4], f[5]
    n0 = f[0] - (r[1] * f2 - r[2] * f1)
    n1 = f[1] - (r[2] * f0 - r[0] * f2)
    n2 = f[2] - (r[0] * f1 - r[1] * f0)
    for i in range(3):
        out[i] = E[i, 0] * n0 + E[i, 1] * n1 + E[i, 2] * n2
        out[3 + i] = E[i, 0] * f0 + E[i, 1] * f1 + E[i, 2] * f2


@inline_kernel
def force_transform_inverse(E: Array, r: Array, f: Array, out: Array) -> None:
    """Write Xᵀ f = [Eᵀ n + r × Eᵀ f; Eᵀ f]: from B to A. 24m + 18a."""
    b0, b1, b2, c0, c1, c2 = f[0], f[1], f[2], f[3], f[4], f[5]
    f0 = E[0, 0] * c0 + E[1, 0] * c1 + E[2, 0] * c2
    f1 = E[0, 1] * c0 + E[1, 1] * c1 + E[2, 1] * c2
    f2 = E[0, 2] * c0 + E[1, 2] * c1 + E[2, 2] * c2
    out[0] = E[0, 0] * b0 + E[1, 0] * b1 + E[2, 0] * b2 + (r[1] * f2 - r[2] * f1)
    out[1] = E[0, 1] * b0 + E[1, 1] * b1 + E[2, 1] * b2 + (r[2] * f0 - r[0] * f2)
    out[2] = E[0, 2] * b0 + E[1, 2] * b1 + E[2, 2] * b2 + (r[0] * f1 - r[1] * f0)
    out[3] = f0
    out[4] = f1
    out[5] = f2


@inline_kernel
def compose(E_CB: Array, r_CB: Array, E_BA: Array, r_BA: Array, E_CA: Array, r_CA: Array) -> None:
    """X_CA = X_CB X_BA: E_CA = E_CB E_BA, r_CA = r_BA + E_BAᵀ r_CB. 33m + 24a.

    `E_CA` must be another array than the inputs.
    """
    x, y, z = r_CB[0], r_CB[1], r_CB[2]
    multiply_rotations(E_CB, E_BA, E_CA)
    for i in range(3):
        r_CA[i] = r_BA[i] + (E_BA[0, i] * x + E_BA[1, i] * y + E_BA[2, i] * z)


@inline_kernel
def invert(E_BA: Array, r_BA: Array, E_AB: Array, r_AB: Array) -> None:
    """X_AB = X_BA⁻¹ = (Eᵀ, −E r). 9m + 6a. The outputs must be other arrays than the inputs."""
    for i in range(3):
        r_AB[i] = -(E_BA[i, 0] * r_BA[0] + E_BA[i, 1] * r_BA[1] + E_BA[i, 2] * r_BA[2])
        for j in range(3):
            E_AB[i, j] = E_BA[j, i]
