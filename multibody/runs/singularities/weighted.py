"""Constraints at many states: a kernel for each of them, and linear algebra for all at once.

Singular values are those of K weighted with the inertia, K C⁻ᵀ with H = C Cᵀ, which are the same
for every factor of H.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...dynamics.loops.closed_loop import (
    RANK_TOLERANCE,
    loaded_constraints,
    loaded_forces,
    weighted,
)
from ...dynamics.storage.loading import load_given, loaded_inertia

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ConstraintsAlong", "constraints_along", "singular_value_ratios"]

TINY = float(np.finfo(float).tiny)  # in place of a largest singular value that is zero

Law = Callable[[float, Array, Array], Any]


class ConstraintsAlong(NamedTuple):
    """What holds at n states, in columns but for the rank: gaps δ, K v − ν, λ."""

    gap: Array
    speed: Array
    multipliers: Array
    rank: Array


def constraints_along(
    model: Model, t: Array, q: Array, v: Array, tau: Law | None = None, f_ext: Law | None = None
) -> ConstraintsAlong:
    """Gaps, their rates, multipliers and rank at states in rows.

    Of all multipliers that give the accelerations, the smallest; `tau` and `f_ext` are laws of
    (t, q, v), or None.
    """
    gaps, speeds, aims, K, H, free = [], [], [], [], [], []
    for time, position, velocity in zip(map(float, t), q, v):
        given = [law and law(time, position, velocity) for law in (tau, f_ext)]
        w = load_given(model, position, velocity, time)  # after the laws, which may use it, too
        free.append(loaded_forces(model, w, *given))
        H.append(loaded_inertia(w))
        c = loaded_constraints(model)
        gaps.append(c.delta)
        speeds.append(c.K @ velocity - c.nu)
        aims.append(c.gamma)
        K.append(c.K)
    factor, Y = weighted(np.array(H), np.array(K))
    unloaded = np.linalg.solve(factor, np.array(free)[..., None])[..., 0]
    left, sizes, right = np.linalg.svd(Y.mT, full_matrices=False)
    independent = sizes > RANK_TOLERANCE * sizes.max(axis=1, initial=0.0, keepdims=True)
    lacking = np.einsum("nmk,nm->nk", left, aims) - sizes * np.einsum("nkv,nv->nk", right, unloaded)
    pulls = np.where(independent, lacking, 0.0) / np.where(independent, sizes, 1.0) ** 2
    multipliers = np.einsum("nmk,nk->mn", left, pulls)
    rank = independent.sum(axis=1)
    return ConstraintsAlong(np.array(gaps).T, np.array(speeds).T, multipliers, rank)


def singular_value_ratios(model: Model, t: Any, q: Array) -> Array:
    """Singular values of K weighted with the inertia, in parts of the largest; as independence."""
    rows = model.tree.acting_rows
    found = np.zeros((len(t), len(rows)))  # no rows: nothing can act
    if not found.size:
        return found
    H, K = [], []
    for time, place in zip(t, q.T):
        H.append(loaded_inertia(load_given(model, place, None, float(time))))
        K.append(loaded_constraints(model).K[rows])
    sizes = np.linalg.svd(weighted(np.array(H), np.array(K))[1], compute_uv=False)
    largest = np.maximum(sizes.max(axis=1, keepdims=True), TINY)
    found[:, : sizes.shape[1]] = sizes / largest
    return found
