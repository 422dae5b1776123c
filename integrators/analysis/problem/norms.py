"""Norms of vectors and matrices, logarithmic norms, and their bounds for interval matrices.

For a vector norm ‖·‖ the induced matrix norm and the logarithmic norm are

    ‖A‖ = sup ‖Ax‖/‖x‖,        μ(A) = lim_{h→0+} (‖I + hA‖ − 1)/h .

With ‖y‖ = ‖Wy‖_p they are those of W A W⁻¹ in the p-norm:

    =====  ==============================  ==================================
    p      ‖A‖                             μ(A)
    =====  ==============================  ==================================
    1      largest column sum of |a|       max_j (a_jj + Σ_{i≠j} |a_ij|)
    2      largest singular value          largest eigenvalue of (A + Aᵀ)/2
    inf    largest row sum of |a|          max_i (a_ii + Σ_{j≠i} |a_ij|)
    =====  ==============================  ==================================

An interval matrix is kept as centre C and radius Δ: all A with |A − C| ≤ Δ entry by entry. In the
1- and inf-norm the bounds below are attained by some such A; in the 2-norm they are the smaller of
‖C‖ + ‖Δ‖ and ‖|C| + Δ‖.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Norm", "as_norm"]

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)
LARGEST = 1e150  # entries beyond count as infinite: their squares would overflow


@dataclass(frozen=True, eq=False)
class Norm:
    """A vector norm ‖y‖ = ‖Wy‖_p with its matrix and logarithmic norms; made by :func:`as_norm`.

    Attributes
    ----------
    p : float
        1, 2 or infinity.
    W, W_inverse : array (n, n) or None
        The weights as a matrix; None stands for the identity.
    """

    p: float
    W: Array | None = None
    W_inverse: Array | None = field(default=None, repr=False)

    def __str__(self) -> str:
        name = "max-norm" if math.isinf(self.p) else f"{self.p:g}-norm"
        return name if self.W is None else f"weighted {name}"

    def vector(self, v: Any) -> Any:
        """‖v‖; the components are along the last axis."""
        v = np.asarray(v)
        if self.W is not None:
            v = v @ self.W.T
        return np.linalg.norm(v, ord=self.p, axis=-1)

    def _transformed(self, A: Array) -> Array:
        return A if self.W is None or self.W_inverse is None else self.W @ A @ self.W_inverse

    def matrix(self, A: Any) -> Any:
        """‖A‖; the matrices are along the last two axes."""
        A = self._transformed(np.asarray(A, dtype=float))
        finite = np.isfinite(A).all(axis=(-2, -1))
        value = _induced(np.where(finite[..., None, None], A, 0.0), self.p)
        return np.where(finite, value, np.inf)[()]

    def logarithmic(self, A: Any) -> Any:
        """μ(A); the matrices are along the last two axes."""
        A = self._transformed(np.asarray(A, dtype=float))
        finite = np.isfinite(A).all(axis=(-2, -1))
        value = _logarithmic(np.where(finite[..., None, None], A, 0.0), self.p)
        return np.where(finite, value, np.inf)[()]

    def matrix_bound(self, lo: Array, hi: Array) -> float:
        """Return a number ≥ ‖A‖ for every A between lo and hi, rounding included."""
        ball = self._ball(lo, hi)
        if ball is None:
            return math.inf
        C, D = ball
        largest = _induced(np.abs(C) + D, self.p)
        if self.p == 2:
            largest = min(largest, _induced(C, 2) + _induced(D, 2))
        return self._outward(float(largest), C, D)

    def logarithmic_bound(self, lo: Array, hi: Array) -> float:
        """Return a number ≥ μ(A) for every A between lo and hi, rounding included."""
        ball = self._ball(lo, hi)
        if ball is None:
            return math.inf
        C, D = ball
        if self.p == 2:
            largest = _logarithmic(C, 2) + _logarithmic(D, 2)  # μ(C + E) ≤ μ(C) + ‖sym E‖
        else:
            off = np.abs(C) + D
            np.fill_diagonal(off, np.diag(C + D))
            largest = np.max(off.sum(axis=0 if self.p == 1 else 1))
        return self._outward(float(largest), C, D)

    def _ball(self, lo: Array, hi: Array) -> tuple[Array, Array] | None:
        """Centre and radius in the weighted coordinates; None where there is no finite bound."""
        if not (np.abs(lo) < LARGEST).all() or not (np.abs(hi) < LARGEST).all():
            return None
        C = lo / 2 + hi / 2
        D = np.maximum(hi - C, C - lo)
        D = D + 2 * EPS * (np.abs(C) + D)
        if self.W is not None and self.W_inverse is not None:
            left, right = np.abs(self.W), np.abs(self.W_inverse)
            # W⁻¹ is known to a relative error of about n·eps·cond(W).
            slack = 4 * len(C) * EPS * (1 + np.linalg.cond(self.W))
            D = left @ D @ right + slack * (left @ (np.abs(C) + D) @ right)
            C = self.W @ C @ self.W_inverse
        return C, D

    @staticmethod
    def _outward(value: float, C: Array, D: Array) -> float:
        """Add what the sums and LAPACK's singular and eigenvalues may have lost to rounding."""
        return value + 8 * len(C) ** 2 * EPS * float(np.max(np.abs(C) + D))


def _induced(A: Array, p: float) -> Any:
    if p == 2:
        return np.linalg.norm(A, ord=2, axis=(-2, -1))
    return np.abs(A).sum(axis=-2 if p == 1 else -1).max(axis=-1)


def _logarithmic(A: Array, p: float) -> Any:
    if p == 2:
        return np.linalg.eigvalsh((A + np.swapaxes(A, -1, -2)) / 2)[..., -1]
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    sums = np.abs(A).sum(axis=-2 if p == 1 else -1)
    return (sums - np.abs(diagonal) + diagonal).max(axis=-1)


_NAMES = {1: 1.0, 2: 2.0, "1": 1.0, "2": 2.0, "inf": np.inf, "max": np.inf, np.inf: np.inf}


def as_norm(norm: Any, n: int, weights: Sequence[Any] | Array | None = None) -> Norm:
    """Return the norm ‖Wy‖_p.

    Parameters
    ----------
    norm
        1, 2, ``inf`` (or "1", "2", "inf", "max"), or a :class:`Norm`.
    n
        Number of components.
    weights
        n positive numbers (the diagonal of W) or an invertible n×n matrix W.

    Examples
    --------
    >>> as_norm("inf", 2, weights=[1.0, 0.5]).vector([3.0, 8.0])
    np.float64(4.0)
    >>> as_norm(2, 2).logarithmic([[0.0, 1.0], [-1.0, -3.0]])
    np.float64(0.0)
    """
    if isinstance(norm, Norm):
        if weights is not None:
            raise ValueError("give weights either in the Norm or in weights=, not in both")
        if norm.W is not None and norm.W.shape != (n, n):
            raise ValueError(f"the norm is for {len(norm.W)} components, the problem has {n}")
        return norm
    key = norm.lower() if isinstance(norm, str) else norm
    if isinstance(key, bool) or not isinstance(key, str | int | float) or key not in _NAMES:
        raise ValueError(f"norm must be 1, 2 or inf, got {norm!r}; weight components by weights=")
    p = _NAMES[key]
    if weights is None:
        return Norm(p)
    W = np.asarray(weights, dtype=float)
    if W.shape not in ((n,), (n, n)):
        raise ValueError(f"weights must be {n} numbers or an {n}×{n} matrix, got shape {W.shape}")
    if not np.isfinite(W).all() or (W.ndim == 1 and not (W > 0).all()):
        raise ValueError(f"weights must be positive and finite, got {weights!r}")
    if W.ndim == 1:
        return Norm(p, np.diag(W), np.diag(1 / W))
    if np.linalg.cond(W) > 1 / math.sqrt(EPS):
        raise ValueError("the weight matrix is singular, or nearly so: it gives no norm")
    return Norm(p, W, np.linalg.inv(W))
