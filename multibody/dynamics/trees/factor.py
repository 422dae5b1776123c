"""Factorisations that use branch-induced sparsity: LTL, LTDL and their products (book, §6.4–6.5).

H has an entry between two velocity variables only if one rides on the other. The factors of
H = LᵀL and H = LᵀDL have the same pattern, given by the expanded parent array λ′; nothing fills in.
``parent[k]`` is the variable that k rides on, −1 for none (``model.tree.arrays["parent_v"]``).

Because H = LᵀL, and not LLᵀ, a system is solved with Lᵀ first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from integrators.kernels import OnArrays, kernel

from ...checks import Array, ArrayLike
from ...model.topology import expanded_parents

__all__ = [
    "density",
    "depth_counts",
    "expanded_parents",
    "inertia_multiply",
    "l_multiply",
    "l_solve",
    "lt_multiply",
    "lt_solve",
    "ltdl",
    "ltdl_solve",
    "ltl",
    "ltl_solve",
]


# ---------------------------------------------------------------------- kernels (Tables 6.3, 6.5)


@kernel
def ltl_kernel(H: Any, parent: Any) -> None:
    """Overwrite the lower triangle of H with L, H = LᵀL."""
    for k in range(H.shape[0] - 1, -1, -1):
        H[k, k] = np.sqrt(H[k, k])
        i = parent[k]
        while i >= 0:
            H[k, i] = H[k, i] / H[k, k]
            i = parent[i]
        i = parent[k]
        while i >= 0:
            j = i
            while j >= 0:
                H[i, j] = H[i, j] - H[k, i] * H[k, j]
                j = parent[j]
            i = parent[i]


@kernel
def ltdl_kernel(H: Any, parent: Any) -> None:
    """Overwrite H with D on the diagonal and the unit lower L below it, H = LᵀDL."""
    for k in range(H.shape[0] - 1, -1, -1):
        i = parent[k]
        while i >= 0:
            a = H[k, i] / H[k, k]
            j = i
            while j >= 0:
                H[i, j] = H[i, j] - a * H[k, j]
                j = parent[j]
            H[k, i] = a
            i = parent[i]


@kernel
def lt_solve_kernel(L: Any, parent: Any, x: Any, unit: bool) -> None:
    """x ← L⁻ᵀ x."""
    for i in range(x.shape[0] - 1, -1, -1):
        if not unit:
            x[i] = x[i] / L[i, i]
        j = parent[i]
        while j >= 0:
            x[j] = x[j] - L[i, j] * x[i]
            j = parent[j]


@kernel
def l_solve_kernel(L: Any, parent: Any, x: Any, unit: bool) -> None:
    """x ← L⁻¹ x."""
    for i in range(x.shape[0]):
        j = parent[i]
        while j >= 0:
            x[i] = x[i] - L[i, j] * x[j]
            j = parent[j]
        if not unit:
            x[i] = x[i] / L[i, i]


@kernel
def l_multiply_kernel(L: Any, parent: Any, x: Any, unit: bool) -> None:
    """x ← L x, from the last row up, so that it can be done in place."""
    for i in range(x.shape[0] - 1, -1, -1):
        if not unit:
            x[i] = L[i, i] * x[i]
        j = parent[i]
        while j >= 0:
            x[i] = x[i] + L[i, j] * x[j]
            j = parent[j]


@kernel
def lt_multiply_kernel(L: Any, parent: Any, x: Any, unit: bool) -> None:
    """x ← Lᵀ x, in place from the first row down."""
    for i in range(x.shape[0]):
        j = parent[i]
        while j >= 0:
            x[j] = x[j] + L[i, j] * x[i]
            j = parent[j]
        if not unit:
            x[i] = L[i, i] * x[i]


@kernel
def inertia_multiply_kernel(H: Any, parent: Any, x: Any, y: Any) -> None:
    """y = H x from the lower triangle; not in place."""
    for i in range(x.shape[0]):
        y[i] = H[i, i] * x[i]
    for i in range(x.shape[0]):
        j = parent[i]
        while j >= 0:
            y[i] = y[i] + H[i, j] * x[j]
            y[j] = y[j] + H[i, j] * x[i]
            j = parent[j]


# ---------------------------------------------------------------------- functions


def _inputs(H: ArrayLike, parent: ArrayLike) -> tuple[Array, Array]:
    matrix = np.array(H, dtype=float)
    tree = np.ascontiguousarray(parent, dtype=np.int64)
    n = tree.size
    if matrix.shape != (n, n):
        raise ValueError(f"H: expected shape {(n, n)} to match parent, received {matrix.shape}")
    if n and (np.any(tree >= np.arange(n)) or tree.min() < -1):
        raise ValueError("parent: expected −1 ≤ parent[k] < k, received " + str(tree.tolist()))
    return matrix, tree


def _rows(x: ArrayLike, n: int) -> Array:
    """Fresh vector of n numbers, or matrix of n rows."""
    out = np.array(x, dtype=float)
    if out.ndim not in (1, 2) or out.shape[0] != n:
        raise ValueError(f"x: expected {n} numbers, or {n} rows of them, received {out.shape}")
    return out


_run_ltl, _run_ltdl = OnArrays(ltl_kernel), OnArrays(ltdl_kernel)
_run_l_solve, _run_lt_solve = OnArrays(l_solve_kernel), OnArrays(lt_solve_kernel)
_run_l_multiply, _run_lt_multiply = OnArrays(l_multiply_kernel), OnArrays(lt_multiply_kernel)
_run_multiply = OnArrays(inertia_multiply_kernel)


def check_pivots(pivots: Array, diagonal: Array) -> None:
    """Raise if H is not positive definite, as far as its digits can tell; or one of many.

    Up to n products are subtracted from a diagonal entry; each may be wrong by ε of that entry.
    """
    rounding = diagonal.shape[-1] * np.finfo(float).eps
    if not np.all(pivots > rounding * np.maximum(diagonal, 0.0)):  # false for NaN, too
        raise np.linalg.LinAlgError("H is not positive definite; some freedom moves no inertia")


def ltl(H: ArrayLike, parent: ArrayLike) -> Array:
    """Lower triangular L with H = LᵀL and the sparsity of H.

    Examples
    --------
    >>> L = ltl([[2.0, 1.0], [1.0, 1.0]], [-1, 0])
    >>> L.T @ L
    array([[2., 1.],
           [1., 1.]])
    """
    L, tree = _inputs(H, parent)
    diagonal = np.diag(L).copy()
    _run_ltl(L, tree)
    check_pivots(np.diag(L) ** 2, diagonal)
    return np.tril(L)


def ltdl(H: ArrayLike, parent: ArrayLike) -> tuple[Array, Array]:
    """Unit lower L and the diagonal of D, with H = LᵀDL; no square roots."""
    L, tree = _inputs(H, parent)
    diagonal = np.diag(L).copy()
    _run_ltdl(L, tree)
    d = np.diag(L).copy()
    check_pivots(d, diagonal)
    L = np.tril(L)
    np.fill_diagonal(L, 1.0)
    return L, d


def _in_place(operation: Any, L: Array, parent: ArrayLike, x: ArrayLike, unit: bool) -> Array:
    matrix, tree = _inputs(L, parent)
    out = _rows(x, tree.size)
    columns = out if out.ndim == 2 else out[:, None]
    for k in range(columns.shape[1]):
        column = np.ascontiguousarray(columns[:, k])
        operation(matrix, tree, column, unit)
        columns[:, k] = column
    return out


def l_solve(L: Array, parent: ArrayLike, x: ArrayLike, *, unit: bool = False) -> Array:
    """L⁻¹ x for a vector or the columns of a matrix; `unit` for a unit diagonal."""
    return _in_place(_run_l_solve, L, parent, x, unit)


def lt_solve(L: Array, parent: ArrayLike, x: ArrayLike, *, unit: bool = False) -> Array:
    """L⁻ᵀ x."""
    return _in_place(_run_lt_solve, L, parent, x, unit)


def l_multiply(L: Array, parent: ArrayLike, x: ArrayLike, *, unit: bool = False) -> Array:
    """L x."""
    return _in_place(_run_l_multiply, L, parent, x, unit)


def lt_multiply(L: Array, parent: ArrayLike, x: ArrayLike, *, unit: bool = False) -> Array:
    """Lᵀ x."""
    return _in_place(_run_lt_multiply, L, parent, x, unit)


def inertia_multiply(H: ArrayLike, parent: ArrayLike, x: ArrayLike) -> Array:
    """H x, reading the lower triangle where branches allow an entry."""
    matrix, tree = _inputs(H, parent)
    vector = _rows(x, tree.size)
    if vector.ndim != 1:
        raise ValueError(f"x: expected a vector, received shape {vector.shape}")
    out = np.empty_like(vector)
    _run_multiply(matrix, tree, vector, out)
    return out


def ltl_solve(L: Array, parent: ArrayLike, b: ArrayLike) -> Array:
    """H⁻¹ b from L: L⁻ᵀ first, then L⁻¹."""
    return l_solve(L, parent, lt_solve(L, parent, b))


def ltdl_solve(L: Array, d: Array, parent: ArrayLike, b: ArrayLike) -> Array:
    """H⁻¹ b from L and D."""
    x = lt_solve(L, parent, b, unit=True)
    return l_solve(L, parent, (x.T / d).T, unit=True)


# ---------------------------------------------------------------------- structure


def depth_counts(parent: ArrayLike) -> tuple[int, int]:
    """D₁ = Σ (d_k − 1) and D₂ = Σ d_k (d_k − 1)/2, d_k the depth of variable k (Eq 6.26–6.29).

    Examples
    --------
    >>> depth_counts([-1, 0, 0, 1, 1, 2, 2])  # binary tree of seven
    (10, 14)
    """
    depth: list[int] = []
    for p in np.asarray(parent):
        depth.append(1 if p < 0 else depth[int(p)] + 1)
    return sum(d - 1 for d in depth), sum(d * (d - 1) // 2 for d in depth)


def density(parent: ArrayLike) -> float:
    """Part of H that is not zero by structure, ρ = (n + 2 D₁)/n²."""
    n = len(np.asarray(parent))
    return (n + 2 * depth_counts(parent)[0]) / n**2
