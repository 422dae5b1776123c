"""Consistent positions and velocities: projection onto the constraints, mass-weighted.

Position: Gauss–Newton, each step the smallest displacement u in the norm uᵀMu that closes the
linearised constraints. Velocity: the nearest v, in the same norm, with G v = ν, in one step. In
this metric the result does not depend on the choice of coordinates, and no momentum is created
along the directions in which the system is free to move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .acceleration import Weighted
from .options import finite_vector, index_list

if TYPE_CHECKING:
    from .system import Mechanical

__all__ = [
    "CONSISTENCY_TOLERANCE",
    "Consistent",
    "check_start",
    "consistent",
    "nearest",
    "projected",
]

Array = NDArray[np.float64]

CONSISTENCY_TOLERANCE = 1e-7
"""Largest |g| and |G v − ν| that a start may have, in the units of the constraints: what is left
of values given to eight digits."""

CLOSED = 64 * float(np.finfo(float).eps)  # a correction this small, relative to q, is rounding
MOST_ITERATIONS = 50
LARGEST_GAP = 1e-9  # of a position that counts as closed, beside rounding errors
ROUNDING = 1e3 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Consistent:
    """A consistent start, and how it was found.

    Attributes
    ----------
    q, v
        Position and velocity.
    system
        A copy of the system that starts there.
    iterations
        Gauss–Newton iterations for the position.
    gap, speed
        max |g| and max |G v − ν| that are left.
    moved, changed
        Largest changes of position coordinates and of velocities.
    rank
        Rank of G there.
    """

    q: Array
    v: Array
    system: Mechanical
    iterations: int
    gap: float
    speed: float
    moved: float
    changed: float
    rank: int


def consistent(
    mechanical: Mechanical,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    fixed: Sequence[int] = (),
    t: float | None = None,
) -> Consistent:
    """Find the consistent position and velocity nearest to a guess.

    Parameters
    ----------
    mechanical
        The system.
    q, v
        Guess; by default the system's own start.
    fixed
        Indices of velocity coordinates that keep their value, in the position, too (a crank
        angle that is given, say).
    t
        Time, by default the start.

    Raises
    ------
    ValueError
        If the constraints cannot be closed, with the gap that is left.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators.dae import Mechanical, consistent
    >>> circle = Mechanical(np.eye(2), lambda t, q, v: [0.0, -1.0],
    ...                     lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1],
    ...                     q0=[0.7, 0.7], v0=[1.0, 0.0], t_span=(0, 1))
    >>> start = consistent(circle, fixed=[0])
    >>> start.q.round(6), start.v.round(6)
    (array([0.7     , 0.714143]), array([ 1.      , -0.980196]))
    """
    t = mechanical.t_span[0] if t is None else float(t)
    first_q = finite_vector("q", mechanical.q0 if q is None else q, mechanical.nq)
    first_v = finite_vector("v", mechanical.v0 if v is None else v, mechanical.nv)
    held = index_list("fixed", fixed, mechanical.nv, "velocities")
    found, iterations, gap = close_position(mechanical, t, first_q, held=held)
    speeds, left = close_velocity(mechanical, t, found, first_v, held=held)
    if left > CONSISTENCY_TOLERANCE * max(1.0, float(np.abs(first_v).max())):
        raise ValueError(
            f"no velocity satisfies the constraints: |G v − ν| stays at {left:.3g}"
            + (f" with the components {held} fixed; fix fewer" if held else "")
        )
    now = mechanical.terms(t, found, speeds)
    return Consistent(
        found,
        speeds,
        mechanical.with_(q0=found, v0=speeds),
        iterations,
        gap,
        left,
        float(np.abs(found - first_q).max()),
        float(np.abs(speeds - first_v).max()),
        Weighted(now.M, now.G, mechanical.rank_tolerance).rank,
    )


def _free(M: Array, G: Array, held: Sequence[int]) -> tuple[Array, Array, list[int]]:
    free = [i for i in range(len(M)) if i not in set(held)]
    return M[np.ix_(free, free)], G[:, free], free


def close_position(
    mechanical: Mechanical,
    t: float,
    q: Array,
    p: Any = None,
    held: Sequence[int] = (),
) -> tuple[Array, int, float]:
    """Position with g = 0 nearest to q, number of iterations, gap left; raises if there is none."""
    still = np.zeros(mechanical.nv)
    q = mechanical.normalised(q, p)
    first = best = np.inf
    for iteration in range(MOST_ITERATIONS + 1):
        now = mechanical.terms(t, q, still, p)
        gap = float(np.abs(now.g).max())
        first = gap if iteration == 0 else first
        if gap == 0.0:
            return q, iteration, gap
        M, G, free = _free(now.M, now.G, held)
        u = np.zeros(mechanical.nv)
        u[free] = Weighted(M, G, mechanical.rank_tolerance).correction(-now.g)
        size = float(np.abs(u).max())
        stalled = gap >= 0.5 * best and iteration > 2
        small = size <= CLOSED * max(1.0, float(np.abs(q).max()))
        if not np.isfinite(size) or small or stalled:
            break
        best = min(best, gap)
        q = mechanical.moved(t, q, u, p)
    rounding = ROUNDING * float(np.abs(now.G).max() * np.abs(q).max())
    if not gap <= LARGEST_GAP + rounding:
        raise ValueError(
            f"the constraints cannot be closed at t = {t:.9g}: in {iteration} iterations "
            f"max |g| came down from {first:.3g} to no less than {min(best, gap):.3g} (constraint "
            f"{int(np.argmax(np.abs(now.g)))}); start closer, or fix fewer coordinates"
        )
    return q, iteration, gap


def close_velocity(
    mechanical: Mechanical,
    t: float,
    q: Array,
    v: Array,
    p: Any = None,
    held: Sequence[int] = (),
) -> tuple[Array, float]:
    """Velocity with G v = ν nearest to v, and max |G v − ν| that is left."""
    now = mechanical.terms(t, q, v, p)
    M, G, free = _free(now.M, now.G, held)
    v = v.copy()
    v[free] += Weighted(M, G, mechanical.rank_tolerance).correction(now.nu - now.G @ v)
    return v, float(np.abs(now.G @ v - now.nu).max())


def projected(mechanical: Mechanical, t: float, x: Array, p: Any = None) -> Array:
    """Project a state [q; v] onto the constraints; what follows in x is left as it is."""
    nq, nv = mechanical.nq, mechanical.nv
    q, _, _ = close_position(mechanical, t, x[:nq].copy(), p)
    v, _ = close_velocity(mechanical, t, q, x[nq : nq + nv], p)
    return np.concatenate([q, v, x[nq + nv :]])


def nearest(mechanical: Mechanical, t: float, x: Array, p: Any = None) -> Array:
    """`projected` of a state near the constraints: by a compiled kernel, where there is one."""
    nq = mechanical.nq
    ways: Any = mechanical.ways
    quick = ways.projected if ways.solves else None
    found = None if quick is None else quick(t, x[:nq], x[nq : nq + mechanical.nv])
    return projected(mechanical, t, x, p) if found is None else np.concatenate(found)


def check_start(mechanical: Mechanical, tolerance: float = CONSISTENCY_TOLERANCE) -> None:
    """Refuse a start that violates the constraints or their first derivative."""
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    gap = float(np.abs(now.g).max())
    speed = float(np.abs(now.G @ mechanical.v0 - now.nu).max())
    if gap > tolerance or speed > tolerance:
        raise ValueError(
            f"inconsistent initial values: max |g| = {gap:.3g} (constraint "
            f"{int(np.argmax(np.abs(now.g)))}), max |G v − ν| = {speed:.3g}, where {tolerance:g} "
            "is allowed; mechanical.consistent() gives the nearest start that satisfies the "
            "constraints, and formulation(..., allow_inconsistent=True) starts here all the same"
        )
