"""Independent coordinates of closed loops: G and g, loop clusters, loop-closure functions.

The loops leave v̇ = G ÿ + g, with ÿ a part of v̇, K G = 0 and K g = γ + k_stab (book, Eq 8.48–8.51).
Loops that share no joint form *clusters* whose equations are solved apart, so that G is
block-diagonal, with the identity for joints outside of all loops (§8.9). Projected on G, the
equations of motion lose their multipliers: GᵀHG ÿ = Gᵀ(τ − C − H g).

Where the closed positions are known as a function q = γ(y), see ``closure``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array, ArrayLike, check_rank_tolerance
from ...model.topology import Topology
from ..storage.loading import ForcesLike
from .closed_loop import RANK_TOLERANCE, _pieces, check_stabilisation, constraints, need_loops

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "Block",
    "IndependentCoordinates",
    "independent_accelerations",
    "independent_coordinates",
    "velocity_places",
]


@dataclass(frozen=True)
class Block:
    """One cluster of loops: its constraints, its velocity variables, and which of them follow.

    All are places: `rows` in K, the others in v.
    """

    loops: tuple[str, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    dependent: tuple[int, ...]
    rank: int


@dataclass(frozen=True)
class IndependentCoordinates:
    """Velocities and accelerations of a mechanism by as many numbers as it has freedoms.

    Attributes
    ----------
    G, g
        v̇ = G ÿ + g.
    offset
        v = G ẏ + offset; zero unless time moves a loop joint.
    independent, dependent
        Places in v; ẏ is ``v[independent]``.
    rank
        Number of dependent ones.
    blocks
        The clusters.
    """

    G: Array
    g: Array
    offset: Array
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    rank: int
    blocks: tuple[Block, ...]


def velocity_places(model: Model, chosen: Sequence[int | str]) -> list[int]:
    """Places in v of variables given by place, by name in ``model.v_names``, or by body.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> velocity_places(mechanisms.four_bar(), ["crank", 2])
    [0, 2]
    """
    if isinstance(chosen, str):
        chosen = [chosen]
    places: list[int] = []
    for item in chosen:
        if isinstance(item, str) and item in model.v_names:
            places.append(model.v_names.index(item))
        elif isinstance(item, str):
            at = model.v_index[model.number(item) - 1] if model.number(item) else slice(0, 0)
            places += range(at.start, at.stop)
        elif isinstance(item, bool) or not isinstance(item, int | np.integer):
            raise TypeError(f"expected places in v or names, received {item!r}")
        elif not 0 <= item < model.nv:
            raise ValueError(f"no velocity variable has place {item}; they run to {model.nv - 1}")
        else:
            places.append(int(item))
    if len(set(places)) < len(places):
        raise ValueError(f"expected different velocity variables, received {list(chosen)}")
    return places


def independent_coordinates(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    t: float = 0.0,
    independent: Sequence[int | str] | None = None,
    alpha: float = 0.0,
    beta: float | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
) -> IndependentCoordinates:
    """G and g by elimination with complete pivoting, cluster by cluster.

    Parameters
    ----------
    model, q, v, t
        A model with loops and its state.
    independent
        Velocity variables that must be independent: as many as there are degrees of freedom in
        each cluster, by place, name or body. By default the pivots choose. Joints outside of all
        loops always are.
    alpha, beta
        Baumgarte's stabilisation, which goes into g.
    rank_tolerance
        Pivots below this part of the first count as zero.

    Raises
    ------
    ValueError
        If the variables chosen do not determine the rest.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> q, v = entry.start(model)
    >>> found = independent_coordinates(model, q, v, independent=["crank"])
    >>> np.allclose(found.G[:, 0] * v[0], v), found.rank
    (True, 2)
    """
    from integrators.dae.partition import partition

    need_loops(model)
    alpha, beta = check_stabilisation(alpha, beta)
    rank_tolerance = check_rank_tolerance(rank_tolerance)
    c = constraints(model, q, v, t=t)
    speed = np.zeros(model.nv) if v is None else model.check("v", v)
    target = c.gamma - 2.0 * alpha * (c.K @ speed - c.nu) - beta**2 * c.delta
    chosen = None if independent is None else velocity_places(model, independent)
    g, offset = np.zeros(model.nv), np.zeros(model.nv)
    N = np.eye(model.nv)
    blocks = []
    for loops, rows, columns in _clusters(model):
        K = c.K[np.ix_(rows, columns)]
        split = partition(K, tolerance=rank_tolerance)
        if chosen is not None:
            split = _chosen(model, split, loops, columns, chosen, rank_tolerance)
        N[np.ix_(columns, columns)] = 0.0
        places = np.array(columns)
        N[places[:, None], places[split.independent]] = split.basis
        g[columns] = split.offset(target[rows])
        offset[columns] = split.offset(c.nu[rows])
        dependent = tuple(sorted(columns[k] for k in split.dependent))
        blocks.append(Block(loops, tuple(rows), tuple(columns), dependent, split.rank))
    gone = tuple(sorted(j for block in blocks for j in block.dependent))
    kept = tuple(j for j in range(model.nv) if j not in gone)
    return IndependentCoordinates(N[:, kept], g, offset, kept, gone, len(gone), tuple(blocks))


def _chosen(
    model: Model,
    best: Any,
    loops: tuple[str, ...],
    columns: list[int],
    chosen: list[int],
    tolerance: float,
) -> Any:
    """Partition with the independent variables that the user chose; `best` knows the rank."""
    from integrators.dae.partition import partition

    wanted = [k for k, j in enumerate(columns) if j in chosen]
    free = len(columns) - best.rank
    names = [model.v_names[columns[k]] for k in wanted]
    remedy = f"choose {free} of {[model.v_names[j] for j in columns]} that determine the rest"
    if len(wanted) != free:
        raise ValueError(
            f"independent: the loops {list(loops)} leave {free} degrees of freedom, received "
            f"{names}; {remedy}"
        )
    try:
        return partition(best.G, rank=best.rank, independent=wanted, tolerance=tolerance)
    except ValueError:
        raise ValueError(
            f"independent: {names} do not determine the motion of the loops {list(loops)} at this "
            f"position; {remedy}"
        ) from None


def _clusters(model: Model) -> list[tuple[tuple[str, ...], list[int], list[int]]]:
    """Names of the loops, rows of K and columns of K of each cluster that has any freedom."""
    at = model.tree.arrays["loop_at"]
    found = []
    clusters = Topology.of(model).loop_clusters([body.joint.nv for body in model.bodies])
    for cluster in clusters:
        rows = [r for k in cluster.loops for r in range(at[k - 1], at[k])]
        columns = [
            j
            for i in cluster.joints
            for j in range(model.v_index[i - 1].start, model.v_index[i - 1].stop)
        ]
        if rows and columns:
            names = tuple(model.loops[k - 1].name for k in cluster.loops)
            found.append((names, rows, sorted(columns)))
    return _with_constraints(model, found)


def _with_constraints(
    model: Model, clusters: list[tuple[tuple[str, ...], list[int], list[int]]]
) -> list[tuple[tuple[str, ...], list[int], list[int]]]:
    """Clusters with the constraints by functions, which join those that they share joints with."""
    if not model.constraints:
        return clusters
    at = model.tree.arrays["loop_at"]
    for k, constraint in enumerate(model.constraints, len(model.loops)):
        rows = list(range(at[k], at[k + 1]))
        columns = set(np.flatnonzero(model.tree.reach[rows].any(axis=0)).tolist())
        if not columns:
            continue
        names: tuple[str, ...] = (constraint.name,)
        apart = []
        for cluster in clusters:
            if columns.isdisjoint(cluster[2]):
                apart.append(cluster)
            else:
                names, rows, columns = (
                    cluster[0] + names,
                    cluster[1] + rows,
                    columns | {*cluster[2]},
                )
        clusters = [*apart, (names, rows, sorted(columns))]
    return clusters


def independent_accelerations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    independent: Sequence[int | str] | None = None,
    alpha: float = 0.0,
    beta: float | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
) -> Array:
    """v̇ by projection on G: GᵀHG ÿ = Gᵀ(τ − C − H g); parameters as above."""
    z, H, _ = _pieces(model, q, v, tau, f_ext, t)
    found = independent_coordinates(
        model,
        q,
        v,
        t=t,
        independent=independent,
        alpha=alpha,
        beta=beta,
        rank_tolerance=rank_tolerance,
    )
    G, g = found.G, found.g
    if not G.shape[1]:
        return g
    return np.asarray(G @ np.linalg.solve(G.T @ H @ G, G.T @ (z - H @ g)) + g)
