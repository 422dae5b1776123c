"""Planar vectors: the spatial algebra restricted to a plane (book, §2.16, Table A.1).

Motions are (ω, vx, vy), forces (n, fx, fy): rows 3, 4, 5 of the spatial vectors. Functions carry
the book's names and return 3×3 arrays; `embed_*` puts planar quantities into the spatial algebra
and `restrict` takes them out. Array kernels are in `multibody.kernels.planar`.
"""

from __future__ import annotations

import numpy as np

from ..checks import (
    INERTIA_TOLERANCE,
    Array,
    ArrayLike,
    check_symmetric,
    real_array,
    real_scalar,
)
from .inertia import RigidInertia
from .inertia import mcI as _spatial_mcI
from .plucker import Plucker, rz
from .spatial import Force, Motion

__all__ = [
    "PLANE",
    "ArticulatedInertia",
    "Xpln",
    "XtoV",
    "XtoV_simple",
    "crf",
    "crm",
    "embed_force",
    "embed_inertia",
    "embed_motion",
    "embed_transform",
    "mcI",
    "restrict",
]

#: Places of (rotation about z, translation x, translation y) in a spatial vector.
PLANE = np.array([2, 3, 4])


def Xpln(theta: float, r: ArrayLike) -> Array:
    """Motion transform A → B, where B sits at r in A, turned by θ (Eq 2.77).

    The force transform is the inverse transpose.

    Examples
    --------
    >>> Xpln(0.0, [0.0, 1.0]) @ [2.0, 0.0, 0.0]
    array([ 2., -2.,  0.])
    """
    theta = real_scalar(theta, "theta")
    x, y = real_array(r, "r", (2,))
    c, s = np.cos(theta), np.sin(theta)
    rows = [[1, 0, 0], [s * x - c * y, c, s], [c * x + s * y, -s, c]]
    return np.array(rows, dtype=np.asarray(x).dtype)


def crm(v: ArrayLike) -> Array:
    """3×3 matrix of v × for planar motions (Eq 2.75).

    Examples
    --------
    >>> crm([1.0, 2.0, 3.0])
    array([[ 0.,  0.,  0.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    w, x, y = real_array(v, "v", (3,))
    return np.array([[0, 0, 0], [y, 0, -w], [-x, w, 0]], dtype=np.asarray(w).dtype)


def crf(v: ArrayLike) -> Array:
    """3×3 matrix of v ×* for planar forces, −crm(v)ᵀ (Eq 2.76).

    Examples
    --------
    >>> np.array_equal(crf([1.0, 2.0, 3.0]), -crm([1.0, 2.0, 3.0]).T)
    True
    """
    return -crm(v).T


def mcI(m: float, c: ArrayLike, I_C: float) -> Array:
    """Planar rigid inertia, 3×3, from four parameters (Eq 2.78).

    Examples
    --------
    >>> mcI(2.0, [1.0, 1.0], 0.5)
    array([[ 4.5, -2. ,  2. ],
           [-2. ,  2. ,  0. ],
           [ 2. ,  0. ,  2. ]])
    """
    m, I_C = real_scalar(m, "m"), real_scalar(I_C, "I_C")
    if m < 0.0 or I_C < 0.0:
        raise ValueError(
            f"m, I_C: expected numbers ≥ 0, received {m} and {I_C}; check signs and units"
        )
    x, y = real_array(c, "c", (2,))
    top = I_C + m * (x * x + y * y)
    return np.array([[top, -m * y, m * x], [-m * y, m, 0.0], [m * x, 0.0, m]])


class ArticulatedInertia:
    """Planar articulated-body inertia: a symmetric 3×3 matrix, six numbers (book, §7.1).

    It maps accelerations of a handle to forces on it, and has no momentum or kinetic energy. (A
    rigid body in the plane has four numbers, a spatial articulated one 21.)

    Parameters
    ----------
    matrix
        Symmetric and positive semidefinite, such as `mcI(…)` of a rigid body.

    Examples
    --------
    A trolley of 3 kg on rails along x, from which 2 kg hang on a rope of 1 m that points down, felt
    at the trolley: along x the load does not resist, upwards it does.

    >>> load = ArticulatedInertia(mcI(2.0, [0.0, -1.0], 0.0))
    >>> trolley = ArticulatedInertia(mcI(3.0, [0.0, 0.0], 0.1))
    >>> (trolley + load.across([1.0, 0.0, 0.0])).matrix.diagonal()
    array([0.1, 3. , 5. ])
    """

    __slots__ = ("matrix",)
    __array_ufunc__ = None

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix: Array = check_symmetric(matrix, "matrix", 3)
        values = np.linalg.eigvalsh(self.matrix)
        if values[0] < -INERTIA_TOLERANCE * max(values[-1], 0.0) or values[-1] < 0.0:
            raise ValueError(
                f"I^A: expected a positive semidefinite matrix, received smallest eigenvalue "
                f"{values[0]:.3g}"
            )

    def __mul__(self, acceleration: ArrayLike) -> Array:
        """Force (n, fx, fy) that gives the handle an acceleration (ω̇, ax, ay)."""
        return np.asarray(self.matrix @ real_array(acceleration, "acceleration", (3,)))

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        """Two bodies whose handles are glued together."""
        if not isinstance(other, ArticulatedInertia):
            raise TypeError(f"+: expected an ArticulatedInertia, received {type(other).__name__}")
        return ArticulatedInertia(self.matrix + other.matrix)

    def transformed(self, X: ArrayLike) -> ArticulatedInertia:
        """X* I X⁻¹: from A to B coordinates, with X = `Xpln(…)`."""
        back = np.linalg.inv(real_array(X, "X", (3, 3)))
        A = back.T @ self.matrix @ back
        return ArticulatedInertia((A + A.T) / 2)

    def across(self, S: ArrayLike) -> ArticulatedInertia:
        """I^a = I − I S (SᵀIS)⁻¹ SᵀI: what is felt on the other side of a joint (Eq 7.23)."""
        S = real_array(S, "S")
        S = S[:, None] if S.ndim == 1 else S
        U = self.matrix @ real_array(S, "S", (3, S.shape[-1]))
        A = self.matrix - U @ np.linalg.solve(S.T @ U, U.T)
        return ArticulatedInertia((A + A.T) / 2)

    def __repr__(self) -> str:
        return f"planar.ArticulatedInertia({self.matrix.tolist()})"


def XtoV_simple(X: ArrayLike) -> Array:
    """Small-error velocity that carries A to B in unit time; error O(θ) (Table A.1, first).

    Examples
    --------
    >>> XtoV_simple(Xpln(0.0, [1.0, 2.0]))
    array([0., 1., 2.])
    """
    X = real_array(X, "X", (3, 3))
    return np.array([X[1, 2], X[2, 0], -X[1, 0]])


def XtoV(X: ArrayLike) -> Array:
    """Small-error velocity that carries A to B in unit time; error O(θ²) (Table A.1, second).

    Invariant (X v = v) and parallel to the exact velocity u = v·asin(X₂₃)/X₂₃, |θ| < 90°.

    Examples
    --------
    >>> v = XtoV(Xpln(0.3, [1.0, 2.0]))
    >>> np.allclose(Xpln(0.3, [1.0, 2.0]) @ v, v)
    True
    """
    X = real_array(X, "X", (3, 3))
    return np.array(
        [
            X[1, 2],
            (X[2, 0] + X[1, 1] * X[2, 0] + X[1, 2] * X[1, 0]) / 2,
            (-X[1, 0] - X[1, 1] * X[1, 0] + X[1, 2] * X[2, 0]) / 2,
        ]
    )


def embed_motion(v: ArrayLike) -> Motion:
    """Write a planar motion as a spatial one.

    Examples
    --------
    >>> embed_motion([1, 2, 3])
    Motion([0.0, 0.0, 1.0], [2.0, 3.0, 0.0])
    """
    w, x, y = real_array(v, "v", (3,))
    return Motion([0.0, 0.0, w], [x, y, 0.0])


def embed_force(f: ArrayLike) -> Force:
    """Write a planar force as a spatial one.

    Examples
    --------
    >>> embed_force([1, 2, 3])
    Force([0.0, 0.0, 1.0], [2.0, 3.0, 0.0])
    """
    n, x, y = real_array(f, "f", (3,))
    return Force([0.0, 0.0, n], [x, y, 0.0])


def embed_transform(theta: float, r: ArrayLike) -> Plucker:
    """Plücker transform of a planar displacement.

    Examples
    --------
    >>> np.allclose(restrict(embed_transform(0.3, [1, 2]).matrix()), Xpln(0.3, [1, 2]))
    True
    """
    x, y = real_array(r, "r", (2,))
    return Plucker(rz(theta), [x, y, 0.0])


def embed_inertia(m: float, c: ArrayLike, I_C: float) -> RigidInertia:
    """Spatial inertia of a planar body: all mass in the plane, spread equally along x and y.

    Examples
    --------
    >>> np.allclose(restrict(embed_inertia(2.0, [1, 3], 0.5).matrix()), mcI(2.0, [1, 3], 0.5))
    True
    """
    x, y = real_array(c, "c", (2,))
    return _spatial_mcI(m, [x, y, 0.0], np.diag([I_C / 2, I_C / 2, I_C]))


def restrict(quantity: ArrayLike | Motion | Force) -> Array:
    """Planar part of a spatial vector (6) or matrix (6×6): rows and columns 3, 4, 5.

    Examples
    --------
    >>> restrict(Motion([7, 8, 1], [2, 3, 9]))
    array([1., 2., 3.])
    """
    if isinstance(quantity, Motion | Force):
        return quantity.array[PLANE]
    A = real_array(quantity, "quantity", (6,))
    return A[PLANE] if A.ndim == 1 else A[np.ix_(PLANE, PLANE)]
