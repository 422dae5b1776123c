"""Subspaces of motions and forces, dual bases, active forces (book, §2.1, §3.3, §3.5).

Motions and forces live in spaces that are dual to each other, m·f = mᵀf. So what is orthogonal to
a subspace of motions is a subspace of *forces*, and the other way round; two motions have no
angle. :class:`Subspace` knows which of the two it is in. The matrix S of its basis stands for the
same subspace as S A, for any regular A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Array, ArrayLike, exact_array, one_of, real_array

__all__ = [
    "Subspace",
    "active_forces",
    "constraint_forces",
    "dual_basis",
    "dual_transform",
    "dyads",
    "split_force",
]

#: Singular values below this part of the largest count as zero.
RANK_TOLERANCE = 1e-10


def _orthonormal(A: Array) -> tuple[Array, Array]:
    """Bases of the range of A and of what is orthogonal to it."""
    left, sizes, _ = np.linalg.svd(A, full_matrices=True)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
    return left[:, :rank], left[:, rank:]


def _columns(value: ArrayLike, name: str) -> Array:
    A = real_array(value, name).astype(float)
    if A.ndim == 1:
        A = A[:, None]
    if A.ndim != 2:
        raise ValueError(f"{name}: expected a matrix of columns, received shape {A.shape}")
    return A


@dataclass(frozen=True, eq=False)
class Subspace:
    """Subspace spanned by the columns of a matrix, of motions or of forces (§3.3).

    Parameters
    ----------
    basis
        Columns that span it; dependent ones are allowed.
    kind
        "motion" or "force".

    Examples
    --------
    What a hinge allows, and the forces that it resists:

    >>> hinge = Subspace([0, 0, 1, 0, 0, 0])
    >>> hinge.dimension, hinge.complement().kind, hinge.complement().dimension
    (1, 'force', 5)
    >>> [0, 0, 2, 0, 0, 0] in hinge
    True
    """

    basis: Any
    kind: str = "motion"

    def __post_init__(self) -> None:
        one_of(self.kind, "kind", ("motion", "force"))
        object.__setattr__(self, "basis", _columns(self.basis, "basis"))

    @property
    def size(self) -> int:
        """n of the space that it lies in."""
        return int(self.basis.shape[0])

    @property
    def dimension(self) -> int:
        """Rank of the basis."""
        return int(_orthonormal(self.basis)[0].shape[1])

    @property
    def parameters(self) -> int:
        """m(n − m): how many numbers tell a subspace of this dimension from others."""
        return self.dimension * (self.size - self.dimension)

    def _like(self, other: Subspace, what: str) -> None:
        if not isinstance(other, Subspace):
            raise TypeError(f"{what}: expected a Subspace, received {type(other).__name__}")
        if (self.kind, self.size) != (other.kind, other.size):
            raise TypeError(
                f"{what}: expected two subspaces of one space, received {self.kind}s of "
                f"{self.size} and {other.kind}s of {other.size} numbers; the complement of motions "
                "are forces"
            )

    def complement(self) -> Subspace:
        """S^⊥: everything of the dual space that does no work on it, {f: Sᵀf = 0}."""
        dual = "force" if self.kind == "motion" else "motion"
        return Subspace(_orthonormal(self.basis)[1], dual)

    def __add__(self, other: Subspace) -> Subspace:
        """S₁ + S₂: all sums."""
        self._like(other, "+")
        return Subspace(_orthonormal(np.hstack([self.basis, other.basis]))[0], self.kind)

    def __and__(self, other: Subspace) -> Subspace:
        """S₁ ∩ S₂ = (S₁^⊥ + S₂^⊥)^⊥."""
        self._like(other, "&")
        return (self.complement() + other.complement()).complement()

    def is_direct(self, other: Subspace) -> bool:
        """Whether the sum is direct: only zero lies in both."""
        return (self + other).dimension == self.dimension + other.dimension

    def fills_with(self, other: Subspace) -> bool:
        """Whether S₁ ⊕ S₂ is the whole space, so that vectors split uniquely."""
        return self.is_direct(other) and self.dimension + other.dimension == self.size

    def split(self, vector: ArrayLike, other: Subspace) -> tuple[Array, Array]:
        """Parts of a vector in this subspace and in another: v = v₁ + v₂ (Eq 3.24).

        Raises
        ------
        ValueError
            If the two do not fill the space, so that parts are missing or not unique.
        """
        if not self.fills_with(other):
            raise ValueError(
                f"split: expected two subspaces that fill {self.size} dimensions uniquely, "
                f"received dimensions {self.dimension} and {other.dimension} whose sum has "
                f"{(self + other).dimension}"
            )
        v = exact_array(vector, "vector", (self.size,))
        both = [_orthonormal(part.basis)[0] for part in (self, other)]
        y = np.linalg.solve(np.hstack(both), v)
        first = both[0] @ y[: both[0].shape[1]]
        return first, v - first

    def __contains__(self, vector: ArrayLike) -> bool:
        v = exact_array(vector, "vector", (self.size,))
        out = _orthonormal(self.basis)[1]
        return bool(np.linalg.norm(out.T @ v) <= RANK_TOLERANCE * np.linalg.norm(v))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subspace) or (self.kind, self.size) != (other.kind, other.size):
            return False
        return self.dimension == other.dimension == (self + other).dimension

    __hash__ = None  # type: ignore[assignment]

    def transform(self, X: ArrayLike) -> Subspace:
        """The same subspace in other coordinates, X the transform of motions."""
        A = exact_array(X, "X", (self.size, self.size))
        return Subspace((A if self.kind == "motion" else dual_transform(A)) @ self.basis, self.kind)


def constraint_forces(S: ArrayLike) -> Array:
    """T: orthonormal columns that span the forces which do no work on S, TᵀS = 0.

    Examples
    --------
    >>> T = constraint_forces([0, 0, 1, 0, 0, 0.2])  # a screw
    >>> T.shape, bool(abs(T.T @ [0, 0, 1, 0, 0, 0.2]).max() < 1e-15)
    ((6, 5), True)
    """
    return _orthonormal(_columns(S, "S"))[1]


def active_forces(S: ArrayLike, along: ArrayLike | None = None) -> Array:
    """T_a: basis of the forces that a joint's actuators exert, T_aᵀS = 1 (Eq 3.35).

    Parameters
    ----------
    S
        Freedoms of the joint, independent columns.
    along
        Columns that span the forces that the actuators really exert; whatever they are,
        accelerations are the same, but not the constraint forces. By default those nearest to S.

    Examples
    --------
    Example 3.2: a belt pulls at (−r, 0, 0) along y on a wheel that turns about z:

    >>> r = 0.5
    >>> active_forces([0, 0, 1, 0, 0, 0], [0, 0, -r, 0, 1, 0])[:, 0]
    array([ 0.,  0.,  1.,  0., -2.,  0.])
    """
    S = _columns(S, "S")
    F = S if along is None else _columns(along, "along")
    if F.shape != S.shape:
        raise ValueError(f"along: expected {S.shape[1]} columns, one a freedom, received {F.shape}")
    if not S.shape[1]:
        return np.zeros(S.shape)
    power = S.T @ F
    if np.linalg.cond(power) > 1.0 / RANK_TOLERANCE:
        raise ValueError(
            "active_forces: expected forces that do work on every freedom (SᵀF regular), received "
            f"SᵀF = {power.tolist()}; an actuator pulls where the joint does not give way"
        )
    return np.asarray(F @ np.linalg.inv(power)) + 0.0


def split_force(I: ArrayLike, S: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
    """Parts of a force on a body with freedoms S: what moves it, what the joint takes (Eq 3.28).

    f_a = I S (SᵀIS)⁻¹ Sᵀ f and f_c = f − f_a, whatever the basis S.

    Examples
    --------
    >>> split_force(np.diag([1.0, 1, 1, 2, 2, 2]), [0, 0, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6])
    (array([0., 0., 3., 0., 0., 0.]), array([1., 2., 0., 4., 5., 6.]))
    """
    S = _columns(S, "S")
    n = len(S)
    I, f = exact_array(I, "I", (n, n)), exact_array(f, "f", (n,))
    U = I @ S
    moving = U @ np.linalg.solve(S.T @ U, S.T @ f) if S.shape[1] else np.zeros(n)
    return moving + 0.0, f - moving


# ---------------------------------------------------------------------- dual bases (§2.1)


def dual_basis(basis: ArrayLike) -> Array:
    """Basis E of the dual space with EᵀD = 1: e_i·d_j is 1 for i = j, else 0 (Eq 2.2).

    Coordinates are then found by products: m = Σ m_i d_i with m_i = e_i·m.

    Examples
    --------
    >>> D = np.array([[1.0, 1.0], [0.0, 2.0]])
    >>> dual_basis(D).T @ [3.0, 4.0]  # coordinates of (3, 4) in the columns of D
    array([1., 2.])
    """
    D = _columns(basis, "basis")
    if D.shape[0] != D.shape[1] or np.linalg.matrix_rank(D) < len(D):
        raise ValueError(
            f"basis: expected as many independent columns as rows, received shape {D.shape} of "
            f"rank {np.linalg.matrix_rank(D)}"
        )
    return np.asarray(np.linalg.inv(D).T)


def dual_transform(X: ArrayLike) -> Array:
    """X* = X⁻ᵀ: transform of forces to a transform of motions, so that m·f stays what it is.

    Examples
    --------
    >>> from multibody import rotx
    >>> X = rotx(0.3).matrix()
    >>> np.allclose(dual_transform(X).T @ X, np.eye(6))
    True
    """
    return dual_basis(X)


def dyads(A: ArrayLike) -> list[tuple[Array, Array]]:
    """Tell pairs (a, b) with A = Σ a bᵀ, as few as possible: the rank of A (§2.1).

    Examples
    --------
    >>> pairs = dyads(np.diag([1.0, 2.0, 0.0]))
    >>> len(pairs), np.allclose(sum(np.outer(a, b) for a, b in pairs), np.diag([1, 2, 0]))
    (2, True)
    """
    left, sizes, right = np.linalg.svd(_columns(A, "A"), full_matrices=False)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes.max(initial=0.0)))
    return [(left[:, k] * sizes[k], right[k]) for k in range(rank)]
