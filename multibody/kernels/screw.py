"""Linear-first kernels after the screw notes: twists, wrenches, influence coefficients.

Here 6-vectors are (v, ω) and (f, τ), as in the notes; the rest of the library is angular first.
(R, r) is a displacement: a_A = R a_B + r.

>>> import numpy as np
>>> out = np.empty(6)
>>> adjoint_action(np.eye(3), np.array([1.0, 0, 0]), np.array([0, 0, 0, 0, 0, 1.0]), out)
>>> out
array([ 0., -1.,  0.,  0.,  0.,  1.])
"""

from __future__ import annotations

from integrators.kernels import inline_kernel

from ..checks import Array

__all__ = [
    "adjoint_action",
    "coadjoint_action",
    "prismatic_influence",
    "revolute_influence",
]


@inline_kernel
def adjoint_action(R: Array, r: Array, twist: Array, out: Array) -> None:
    """Write [Ad] (v, ω) = (R v + r × R ω, R ω) (label twist_end_result). 24m + 18a."""
    v0, v1, v2, w0, w1, w2 = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    a0 = R[0, 0] * w0 + R[0, 1] * w1 + R[0, 2] * w2
    a1 = R[1, 0] * w0 + R[1, 1] * w1 + R[1, 2] * w2
    a2 = R[2, 0] * w0 + R[2, 1] * w1 + R[2, 2] * w2
    out[0] = R[0, 0] * v0 + R[0, 1] * v1 + R[0, 2] * v2 + (r[1] * a2 - r[2] * a1)
    out[1] = R[1, 0] * v0 + R[1, 1] * v1 + R[1, 2] * v2 + (r[2] * a0 - r[0] * a2)
    out[2] = R[2, 0] * v0 + R[2, 1] * v1 + R[2, 2] * v2 + (r[0] * a1 - r[1] * a0)
    out[3] = a0
    out[4] = a1
    out[5] = a2


@inline_kernel
def coadjoint_action(R: Array, r: Array, wrench: Array, out: Array) -> None:
    """Write [Ad]* (f, τ) = (R f, R τ + r × R f) (label coadjoint_matrix). 24m + 18a."""
    f0, f1, f2, t0, t1, t2 = wrench[0], wrench[1], wrench[2], wrench[3], wrench[4], wrench[5]
    a0 = R[0, 0] * f0 + R[0, 1] * f1 + R[0, 2] * f2
    a1 = R[1, 0] * f0 + R[1, 1] * f1 + R[1, 2] * f2
    a2 = R[2, 0] * f0 + R[2, 1] * f1 + R[2, 2] * f2
    out[3] = R[0, 0] * t0 + R[0, 1] * t1 + R[0, 2] * t2 + (r[1] * a2 - r[2] * a1)
    out[4] = R[1, 0] * t0 + R[1, 1] * t1 + R[1, 2] * t2 + (r[2] * a0 - r[0] * a2)
    out[5] = R[2, 0] * t0 + R[2, 1] * t1 + R[2, 2] * t2 + (r[0] * a1 - r[1] * a0)
    out[0] = a0
    out[1] = a1
    out[2] = a2


@inline_kernel
def revolute_influence(R: Array, r: Array, axis: int, out: Array) -> None:
    """Column of [Ad] for rotation about a joint axis: (r × n, n), n = R e_axis. 6m + 3a."""
    n0, n1, n2 = R[0, axis], R[1, axis], R[2, axis]
    out[0] = r[1] * n2 - r[2] * n1
    out[1] = r[2] * n0 - r[0] * n2
    out[2] = r[0] * n1 - r[1] * n0
    out[3] = n0
    out[4] = n1
    out[5] = n2


@inline_kernel
def prismatic_influence(R: Array, r: Array, axis: int, out: Array) -> None:
    """Column of [Ad] for translation along a joint axis: (n, 0). No operations."""
    for i in range(3):
        out[i] = R[i, axis]
        out[3 + i] = 0.0
