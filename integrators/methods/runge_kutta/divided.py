"""Which mass matrices a method can treat, and M y' = f(t, y) as y' = M⁻¹ f(t, y) where it must be.

Explicit stages are slopes, and so are the coefficients of Taylor series: for these a regular M is
factorised once, and divided by. A singular M needs an implicit method that damps what is left in
the algebraic equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP, accepts_params
from ...tableau import Tableau

__all__ = ["check_damping", "divided_by_mass", "has_explicit_stage", "is_regular"]

Array = NDArray[Any]

ILL_CONDITIONED = 1e14  # such a matrix is singular, but for rounding errors
SINGULAR = 1e-12  # smallest over largest singular value of A: zero, but for rounding errors
LARGEST_DENSE = 500  # rows of a sparse matrix whose singular values are computed
LARGEST_TRACED = 40  # more components than these are divided in Python


def is_regular(mass: Any) -> bool:
    """Whether a mass matrix can be divided by.

    Examples
    --------
    >>> import numpy as np
    >>> is_regular(np.diag([2.0, 1.0])), is_regular(np.diag([2.0, 0.0]))
    (True, False)
    """
    sizes = abs(mass)
    empty = np.asarray(sizes.sum(axis=1)).ravel() == 0.0
    if empty.any():
        return False  # an algebraic equation: no need to factorise a large matrix
    if hasattr(mass, "tocsc") and mass.shape[0] > LARGEST_DENSE:
        return _is_regular_sparse(mass.tocsc())
    return bool(np.linalg.cond(_dense(mass)) < ILL_CONDITIONED)


def _is_regular_sparse(mass: Any) -> bool:
    """Whether the pivots of a sparse matrix, with its rows scaled, are far from zero."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import splu

    rows = 1.0 / np.asarray(abs(mass).max(axis=1).todense()).ravel()
    try:
        pivots = np.abs(splu((diags(rows) @ mass).tocsc()).U.diagonal())
    except RuntimeError:  # exactly singular
        return False
    return bool(pivots.max() < ILL_CONDITIONED * pivots.min())


def has_explicit_stage(tableau: Tableau) -> bool:
    """Whether A is singular: then a stage (or a combination of them) is a slope, M⁻¹ f."""
    # By singular values: the eigenvalue 0 of a Jordan block (Lobatto IIIC*) is off by 1e-4.
    sizes = np.linalg.svd(tableau.arrays[0], compute_uv=False)
    return bool(sizes[-1] < SINGULAR * sizes[0])


def check_damping(tableau: Tableau) -> None:
    """Refuse a method that does not damp what it leaves in algebraic equations (a singular M).

    Errors there are multiplied by R(∞) = 1 − bᵀA⁻¹1 in each step.
    """
    if has_explicit_stage(tableau):
        return  # refused for that
    A, b, _ = tableau.arrays
    limit = 1.0 - float(b @ np.linalg.solve(A, np.ones(len(b))))
    if abs(limit) > 1.0 - 1e-9:
        raise ValueError(
            f"{tableau.name or 'this tableau'} does not damp errors of algebraic equations "
            f"(|R(∞)| = {abs(limit):.3g}, it must be below 1), and its steps would become ever "
            "shorter: the mass matrix is singular; use RADAU5, Lobatto IIIC or an L-stable SDIRK"
        )


def divided_by_mass(problem: IVP) -> IVP:
    """Return the same problem without its mass matrix, which must be regular."""
    if problem.mass is None:
        return problem
    divide = _solver(problem.mass)
    jac = problem.jac
    if callable(jac):
        jac = _after(jac, lambda J: divide(_dense(J)))
    elif jac is not None:
        jac = divide(_dense(jac))
    return problem.with_(
        f=_divided_function(problem, divide), jac=jac, jac_sparsity=None, mass=None, index=None
    )


def _solver(mass: Any) -> Callable[[Array], Array]:
    """v → M⁻¹ v."""
    if hasattr(mass, "tocsc"):
        from scipy.sparse.linalg import splu

        solve: Callable[[Array], Array] = splu(mass.tocsc()).solve
        return solve
    from scipy.linalg import lu_factor, lu_solve

    factors = lu_factor(np.asarray(mass))
    return lambda v: np.asarray(lu_solve(factors, v))


def _divided_function(problem: IVP, divide: Callable[[Array], Array]) -> Callable[..., Any]:
    f: Any = problem.f
    if hasattr(f, "_derive") and problem.n <= LARGEST_TRACED and problem.y0.dtype.kind != "c":
        dense = np.asarray(_dense(problem.mass), dtype=float)
        problem.bind(f)(problem.t_span[0], problem.y0)  # tells it n, if it did not know
        key = ("divided by mass", dense.tobytes())
        return f._derive(key, lambda: _traced_division(f, dense))
    return _after(f, lambda slope: divide(np.asarray(slope)))


def _after(function: Callable[..., Any], action: Callable[[Any], Any]) -> Callable[..., Any]:
    """action(function(…)), with parameters if the function takes them."""
    if accepts_params(function):
        return lambda t, y, p: action(function(t, y, p))
    return lambda t, y: action(function(t, y))


def _traced_division(f: Any, mass: Array) -> Any:
    """M⁻¹ f as a traced function: forward and backward substitution with constants."""
    from scipy.linalg import lu

    from ...tracing import traced

    n = f.n
    permutation, lower, upper = lu(mass)

    def substitute(slope: Any) -> Any:
        rows = [slope[int(np.flatnonzero(permutation[:, i])[0])] for i in range(n)]
        for i in range(n):
            for j in range(i):
                rows[i] = rows[i] - lower[i, j] * rows[j]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                rows[i] = rows[i] - upper[i, j] * rows[j]
            rows[i] = rows[i] / upper[i, i]
        return np.array(rows)

    if f.k:
        return traced(lambda t, y, p: substitute(f(t, y, p)), n=n, params=f.k)
    return traced(lambda t, y: substitute(f(t, y)), n=n)


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
