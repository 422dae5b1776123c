"""``solve_lcp``: linear complementarity problems of contact (book, §11.5)."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array, ArrayLike, one_of, real_array
from .pivoting import (
    FOUND,
    NO_SOLUTION,
    RESIDUAL,
    TOO_LONG,
    LemkeWorkspace,
    PivotWorkspace,
    active_set,
    lemke,
    pivots_or_active_set,
)

__all__ = ["LCPError", "LCPSolution", "enumerate_lcp", "smallest_forces", "solve_lcp"]

_symmetric = OnWorkspace(pivots_or_active_set, PivotWorkspace, returns=True)
_active_set = OnWorkspace(active_set, PivotWorkspace, returns=True)
_lemke = OnWorkspace(lemke, LemkeWorkspace, returns=True)
_local = threading.local()


class LCPError(ArithmeticError):
    """No z ≥ 0 with M z + d ≥ 0 and zᵀ(M z + d) = 0 exists, or none was found."""


class LCPSolution(NamedTuple):
    """z ≥ 0 and w = M z + d ≥ 0 with zᵀw = 0.

    Attributes
    ----------
    z, w
        Contact forces and the accelerations of the gaps.
    active
        Where z may be positive: a `start` for a neighbouring problem.
    method, steps
        Which algorithm found it, and in how many factorisations or pivots.
    residual
        What w lacks to be complementary, in parts of the largest |d|.
    unique
        Whether z is the only solution: False where there may be others, None if that was not asked
        for (``smallest=True`` asks).
        w is unique whenever M is symmetric and semidefinite.
    """

    z: Array
    w: Array
    active: Array
    method: str
    steps: int
    residual: float
    unique: bool | None


def solve_lcp(
    M: ArrayLike,
    d: ArrayLike,
    *,
    start: ArrayLike | None = None,
    method: str = "auto",
    smallest: bool = False,
) -> LCPSolution:
    """Solve z ≥ 0, w = M z + d ≥ 0, zᵀw = 0.

    Parameters
    ----------
    M, d
        Square matrix and vector.
    start
        Which z_i are expected to be positive (booleans): the `active` of an earlier answer.
    method
        "auto": for a symmetric M principal pivoting, and the active set where that meets
        dependent columns; Lemke for all others. Or "active set" or "lemke".
    smallest
        Of several solutions (a table on four legs) return the one of least norm, and say whether
        there are several; costs a singular value decomposition.

    Raises
    ------
    LCPError
        If there is no solution, or (M neither semidefinite nor copositive) none was found.

    Examples
    --------
    A box of weight 4 on four legs; three of the forces determine the fourth:

    >>> x, y = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    >>> T = np.array([np.ones(4), y, -x])  # vertical motion and two tilts, for each leg
    >>> found = solve_lcp(T.T @ T, np.full(4, -4.0), smallest=True)
    >>> found.z.round(12), found.unique
    (array([1., 1., 1., 1.]), False)
    """
    matrix, vector, guess = _checked(M, d, start)
    values: Any
    if method == "auto":
        status, w = _on_pivots(_symmetric, matrix, vector, guess)
        if status == FOUND:
            steps, by_set = w.steps.tolist()
            name, residual = "active set" if by_set else "pivoting", w.residual.item()
            z, slack, active = w.z.copy(), w.slack.copy(), w.active.astype(bool)
            found = LCPSolution(z, slack, active, name, steps, residual, None)
            return _smallest(matrix, vector, found) if smallest else found
        first = status
        status, *values = _by_lemke(matrix, vector)  # a second opinion, if it is symmetric
        if first == NO_SOLUTION and _judged(matrix, vector, values[0])[1] > RESIDUAL:
            status = NO_SOLUTION
        method = "lemke"
    elif method == "lemke":
        status, *values = _by_lemke(matrix, vector)
    else:
        one_of(method, "method", ("auto", "active set", "lemke"))
        if not (matrix == matrix.T).all():
            raise ValueError("M: the active set needs a symmetric matrix; use method='lemke'")
        status, w = _on_pivots(_active_set, matrix, vector, guess)
        values = [w.z.copy(), w.active != 0, int(w.steps[0])]
    if status == FOUND:
        z, active, steps = values
        slack, residual = _judged(matrix, vector, z)
        if residual > RESIDUAL:
            z = polished(matrix, vector, z)
            slack, residual = _judged(matrix, vector, z)
        if residual <= RESIDUAL:
            found = LCPSolution(z, slack, active, method, steps, residual, None)
            return _smallest(matrix, vector, found) if smallest else found
        status = TOO_LONG
    raise LCPError(_complaint(int(status), len(vector), bool((matrix == matrix.T).all())))


def _smallest(M: Array, d: Array, found: LCPSolution) -> LCPSolution:
    z = smallest_forces(M, d, found.z)
    w, residual = _judged(M, d, z)
    if residual > RESIDUAL:  # rather another one than a worse one
        z, w, residual = found.z, found.w, found.residual
    return found._replace(z=z, w=w, residual=residual, unique=_is_unique(M, d, z, w))


def _complaint(status: int, n: int, symmetric: bool) -> str:
    if status == NO_SOLUTION and symmetric:
        return (
            f"the {n} contacts cannot be kept from penetrating by any forces: the LCP has no "
            "solution (two bodies squeeze a third, or constraints contradict each other)"
        )
    if status == NO_SOLUTION:
        return (
            f"Lemke's algorithm ended on a ray: no forces at the {n} contacts were found. With "
            "friction this is Painlevé's paradox, or contacts that contradict each other"
        )
    return (
        f"no forces at the {n} contacts were found within rounding; scale the problem, or look "
        "for contacts that nearly coincide"
    )


def _checked(
    M: ArrayLike, d: ArrayLike, start: ArrayLike | None
) -> tuple[Array, Array, Array | None]:
    matrix = M if _plain(M) else real_array(M, "M").astype(float)
    vector = d if _plain(d) else real_array(d, "d").astype(float)
    n = len(vector) if vector.ndim == 1 else -1
    if matrix.shape != (n, n):
        raise ValueError(
            f"expected a square M and a vector d of its size, received shapes {matrix.shape} and "
            f"{vector.shape}"
        )
    if start is None:
        return matrix, vector, None
    guess = np.asarray(start)
    if guess.shape != (n,):
        raise ValueError(f"start: expected {n} booleans, received shape {guess.shape}")
    return matrix, vector, guess.astype(bool).astype(np.int64)


def _plain(array: ArrayLike) -> TypeGuard[Array]:
    """Whether it is an array of doubles; what is not finite shows in the residual."""
    return type(array) is np.ndarray and array.dtype.char == "d"


def _workspace(kind: Any, n: int) -> Any:
    """Workspace of the calling thread for n unknowns."""
    kept: dict[Any, Any] = _local.__dict__
    found = kept.get((kind, n))
    if found is None:
        found = kept[kind, n] = kind.of_size(n)
    return found


def _on_pivots(run: Any, M: Array, d: Array, guess: Array | None) -> tuple[float, Any]:
    w = _workspace(PivotWorkspace, len(d))
    w.M[...], w.d[...] = M, d
    w.active.fill(0) if guess is None else np.copyto(w.active, guess)
    return run(w), w


def _by_lemke(M: Array, d: Array) -> tuple[float, Array, Array, int]:
    """Lemke; where rounding leads it astray, a second time from a slightly regular matrix."""
    w = _workspace(LemkeWorkspace, len(d))
    size = float(np.abs(np.diag(M)).max(initial=0.0))
    status, z = float(TOO_LONG), np.zeros(len(d))
    for epsilon in (0.0, 1e-9):
        w.M[...], w.d[...] = M, d
        w.M[np.diag_indices(len(d))] += epsilon * size
        status = _lemke(w)
        if status == FOUND:
            z = w.z.copy()
            if _judged(M, d, z)[1] > RESIDUAL:
                z = polished(M, d, z)
            if _judged(M, d, z)[1] <= RESIDUAL:
                break
    return status, z, z > 0.0, int(w.steps[0])


def polished(M: Array, d: Array, z: Array) -> Array:
    """The same set of positive forces, with rounding errors of the way to it taken away."""
    held = z > 0.0
    out = np.zeros_like(z)
    out[held] = np.linalg.lstsq(M[np.ix_(held, held)], -d[held], rcond=1e-13)[0]
    return np.maximum(out, 0.0)


def _judged(M: Array, d: Array, z: Array) -> tuple[Array, float]:
    """w, and how far z and w are from complementary, in parts of the largest |d|."""
    if not len(d):
        return d, 0.0
    w = M @ z + d
    kept = np.maximum(w, 0.0)
    kept[z > 0.0] = 0.0
    wrong = float(np.abs(w - kept).max())  # negative, or positive where there is a force
    size = float(np.abs(d).max())
    return kept, wrong / size if size > 0.0 else wrong


def _is_unique(M: Array, d: Array, z: Array, w: Array) -> bool:
    """Whether the columns of all contacts that may carry a force are independent."""
    held = (z > 0.0) | (w <= 1e-9 * np.abs(d).max(initial=0.0))
    values = np.linalg.svd(M[np.ix_(held, held)], compute_uv=False)
    return not values.size or bool(values[-1] > 1e-10 * values[0])


def smallest_forces(M: Array, d: Array, z: Array) -> Array:
    """Of all solutions with the w of z the one of least |z|.

    They are the z ≥ 0 with M z = M z₀ that vanish where w > 0: a polyhedron. The smallest of them
    solves a regularised problem, M + εI, for ε → 0; its support follows from a small ε, and its
    values from the pseudoinverse on that support.
    """
    slack, _ = _judged(M, d, z)
    held = np.flatnonzero((z > 0.0) | (slack <= 1e-10 * np.abs(d).max(initial=0.0)))
    if not held.size:
        return z
    block, target = M[np.ix_(held, held)], -d[held]
    size = float(np.abs(np.diag(block)).max(initial=0.0))
    rank_tolerance = 1e-10
    plain = np.linalg.lstsq(block, target, rcond=rank_tolerance)[0]
    if (plain >= 0.0).all():
        found = plain
    else:
        regular = block + 1e-7 * size * np.eye(len(held))
        status, w = _on_pivots(_symmetric, regular, -target, z[held] > 0.0)
        if status != FOUND:
            return z
        near = w.z
        support = near > 1e-6 * near.max(initial=0.0)
        found = np.zeros(len(held))
        found[support] = np.linalg.lstsq(block[:, support], target, rcond=rank_tolerance)[0]
        if (found < 0.0).any() or np.abs(block @ found - target).max() > 1e-9 * np.abs(d).max():
            return z
    out = np.zeros_like(z)
    out[held] = found
    return out


def enumerate_lcp(M: ArrayLike, d: ArrayLike, tolerance: float = 1e-9) -> list[Array]:
    """All basic solutions, by trying each of the 2ⁿ sets of positive z_i: a test oracle.

    Examples
    --------
    >>> enumerate_lcp([[2.0]], [-4.0])
    [array([2.])]
    """
    matrix, vector, _ = _checked(M, d, None)
    n = len(vector)
    if n > 16:
        raise ValueError(f"enumeration takes 2ⁿ trials; expected n ≤ 16, received {n}")
    found: list[Array] = []
    size = max(float(np.abs(vector).max(initial=0.0)), 1e-300)
    for code in range(2**n):
        chosen = np.array([bool(code >> i & 1) for i in range(n)], dtype=bool)
        z = np.zeros(n)
        if chosen.any():
            z[chosen] = np.linalg.lstsq(matrix[np.ix_(chosen, chosen)], -vector[chosen])[0]
        w = matrix @ z + vector
        fits = np.abs(w[chosen]).max(initial=0.0) <= tolerance * size
        if fits and z.min(initial=0.0) >= -tolerance * max(1.0, np.abs(z).max(initial=0.0)):
            if w.min(initial=0.0) >= -tolerance * size:
                found.append(np.maximum(z, 0.0))
    return found
