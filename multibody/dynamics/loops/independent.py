"""Independent coordinates of closed loops: G and g, loop clusters, loop-closure functions.

The loops leave v̇ = G ÿ + g, with ÿ a part of v̇, K G = 0 and K g = γ + k_stab (book, Eq 8.48–8.51).
Loops that share no joint form *clusters* whose equations are solved apart, so that G is
block-diagonal, with the identity for joints outside of all loops (§8.9). Projected on G, the
equations of motion lose their multipliers: GᵀHG ÿ = Gᵀ(τ − C − H g).

A *loop-closure function* q = γ(y) gives the same without any constraint equation (§8.11): G = ∂γ/∂y
and g = Ġẏ. Gears are such functions, too (§9.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array, ArrayLike, check_rank_tolerance, real_array, real_scalar
from ...model.topology import Topology
from ..loading import ForcesLike
from .closed_loop import RANK_TOLERANCE, _pieces, check_stabilisation, constraints, need_loops

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "Block",
    "IndependentCoordinates",
    "LoopClosure",
    "gears",
    "independent_accelerations",
    "independent_coordinates",
    "velocity_places",
]

#: Largest error of derivatives that a user supplies, against central differences of step 1e-5:
#: these are right to the square of the step for functions of ordinary size.
DERIVATIVE_TOLERANCE = 1e-6
#: Largest gap that a loop-closure function may leave, and largest K G.
CLOSURE_TOLERANCE = 1e-8


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
                names, rows, columns = cluster[0] + names, cluster[1] + rows, columns | {*cluster[2]}
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


# ---------------------------------------------------------------------- loop-closure functions


class LoopClosure:
    """q = γ(y): positions from independent variables, with first and second derivatives.

    Parameters
    ----------
    model
        A model with or without loops, whose velocities are the derivatives of its positions.
    gamma
        ``gamma(y)`` returns q; written with NumPy and without branches it is traced, and its
        derivatives are exact.
    size
        How many numbers y has.
    G, g
        ``G(y)`` = ∂γ/∂y and ``g(y, ydot)`` = Ġẏ, if γ cannot be traced; both or none. They are
        compared with differences of γ by :meth:`check`.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.n_four_bar(1)
    >>> closure = LoopClosure(model, lambda y: [y[0], y[0], -y[0]], 1)
    >>> closure.jacobian([0.3]).T
    array([[ 1.,  1., -1.]])
    >>> closure.check([0.3], [1.0])
    """

    def __init__(
        self,
        model: Model,
        gamma: Callable[..., Any],
        size: int,
        G: Callable[..., Any] | None = None,
        g: Callable[..., Any] | None = None,
    ) -> None:
        for body in model.bodies:
            if not body.joint.rate_is_velocity:
                raise ValueError(
                    f"body {body.name!r}: a loop-closure function needs velocities that are the "
                    f"derivatives of positions, which those of {type(body.joint).__name__} are not"
                )
        if (G is None) != (g is None):
            raise TypeError("give both G and g, or none of them to have γ traced")
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"size: expected a whole number ≥ 1, received {size!r}")
        self.model, self.size, self.is_traced = model, int(size), G is None
        #: How it was made: pickled in place of the functions, if they can be.
        self.recipe: tuple[Callable[..., Any], tuple[Any, ...]] = (
            LoopClosure,
            (model, gamma, size, G, g),
        )
        if G is None:
            self._position, self._jacobian, self._speed, self._curvature = _derivatives(
                gamma, self.size, model.nq
            )
        else:
            assert g is not None
            self._gamma, self._G, self._g = gamma, G, g

    def __reduce__(self) -> Any:
        return self.recipe

    def position(self, y: Any) -> Any:
        """γ(y); of numbers or of symbols."""
        return self._position(0.0, y) if self.is_traced else np.asarray(self._gamma(y))

    def jacobian(self, y: Any) -> Any:
        """G = ∂γ/∂y, nv × size."""
        if self.is_traced:
            J = np.asarray(self._jacobian(0.0, y))
        else:
            J = np.asarray(self._G(y))
        return J.reshape(self.model.nv, self.size)

    def bias(self, y: Any, ydot: Any) -> Any:
        """g = Ġẏ."""
        if not self.is_traced:
            return np.asarray(self._g(y, ydot))
        x = np.concatenate([np.asarray(y), np.asarray(ydot)])
        return self._curvature(0.0, x)

    def states(self, x: ArrayLike) -> Array:
        """[q; v] from [y; ẏ], of one state or of states in columns, such as ``solution.y``."""
        x = np.asarray(x, dtype=float)
        columns = x.reshape(2 * self.size, -1).T
        made = [
            np.concatenate(
                [
                    np.asarray(self.position(c[: self.size]), dtype=float),
                    np.asarray(self.jacobian(c[: self.size]), dtype=float) @ c[self.size :],
                ]
            )
            for c in columns
        ]
        return np.array(made).T.reshape(-1, *x.shape[1:])

    def check(self, y: ArrayLike, ydot: ArrayLike, *, t: float = 0.0) -> None:
        """Raise where γ opens a loop, or where G or g contradict γ or the constraints.

        K G = 0 and K g = γ_acc are compared with the constraints of the loops; derivatives that
        the user supplied also with central differences.
        """
        y = real_array(y, "y", (self.size,)).astype(float)
        ydot = real_array(ydot, "ydot", (self.size,)).astype(float)
        q = self.model.check("q", np.asarray(self.position(y), dtype=float))
        G = np.asarray(self.jacobian(y), dtype=float)
        g = np.asarray(self.bias(y, ydot), dtype=float)
        if not self.is_traced:
            self._compare(y, ydot, G, g)
        if not self.model.bonds:
            return
        v = G @ ydot
        c = constraints(self.model, q, v, t=t)
        size = 1.0 + np.abs(v).max(initial=0.0) ** 2
        for what, values, scale in (
            ("leaves a gap", c.delta, 1.0),
            ("moves the loops apart, K G", c.K @ G, size),
            ("accelerates the loops apart, K g − γ", c.K @ g - c.gamma, size),
        ):
            worst = float(np.abs(values).max(initial=0.0))
            if not worst <= CLOSURE_TOLERANCE * scale:
                raise ValueError(
                    f"the loop-closure function {what} of {worst:.3g} at y = {y}; check it, or "
                    "keep away from where it is not defined"
                )

    def _compare(self, y: Array, ydot: Array, G: Array, g: Array) -> None:
        h = 1e-5
        steps = h * np.eye(self.size)

        def difference(f: Callable[[Array], Any], step: Array) -> Array:
            return (np.asarray(f(y + step), float) - np.asarray(f(y - step), float)) / (2 * h)

        expected = np.array([difference(self.position, s) for s in steps]).T
        bent = difference(lambda z: self.jacobian(z) @ ydot, h * ydot)
        for name, given, right in (("G", G, expected), ("g", g, bent)):
            worst = float(np.abs(given - right).max(initial=0.0))
            if not worst <= DERIVATIVE_TOLERANCE * (1.0 + np.abs(right).max(initial=0.0)):
                raise ValueError(
                    f"{name} of the loop-closure function differs by {worst:.3g} from differences "
                    f"of γ at y = {y}; correct it, or leave G and g out to have γ traced"
                )


def _derivatives(gamma: Callable[..., Any], size: int, n: int) -> tuple[Any, Any, Any, Any]:
    """γ, ∂γ/∂y, (∂γ/∂y)ẏ and its change along ẏ, all traced."""
    from integrators.tracing import TracingError, traced

    def position(t: Any, y: Any) -> Any:
        return np.array(list(gamma(y)))

    try:
        where = traced(position, n=size, outputs=n)
        J = where.jacobian()
        speed = traced(
            lambda t, x: J(t, x[:size]).reshape(n, size) @ x[size:], n=2 * size, outputs=n
        )
        D = speed.jacobian()
        bend = traced(
            lambda t, x: D(t, x).reshape(n, 2 * size)[:, :size] @ x[size:], n=2 * size, outputs=n
        )
    except TracingError as error:
        raise TracingError(
            f"the loop-closure function cannot be traced ({error}); write it without branches, or "
            "give its derivatives G and g"
        ) from error
    return where, J, speed, bend


def gears(model: Model, ratios: Mapping[str, Mapping[str, float]]) -> LoopClosure:
    """Gears as a loop-closure function: positions that are multiples, or sums, of others (§9.6).

    Parameters
    ----------
    model
        Joints that gears connect must have one freedom.
    ratios
        For each driven body the bodies that drive it, with their ratios:
        ``{"rotor": {"link": 100.0}}``; several for a differential. All other variables of the
        model are independent, in their order.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> arm = mechanisms.n_pendulum(3)
    >>> gears(arm, {"link3": {"link1": -2.0}}).jacobian([0.0, 0.0]).T
    array([[ 1.,  0., -2.],
           [ 0.,  1.,  0.]])
    """
    driven: dict[int, dict[int, float]] = {}
    for name, drivers in ratios.items():
        driven[_single(model, name)] = {
            _single(model, other): real_scalar(ratio, f"ratio of {other!r}")
            for other, ratio in drivers.items()
        }
    kept = [j for j in range(model.nv) if j not in driven]
    R = np.zeros((model.nv, len(kept)))
    R[kept, np.arange(len(kept))] = 1.0
    for j, drivers_of in driven.items():
        for other, ratio in drivers_of.items():
            if other in driven:
                raise ValueError(
                    f"gears: {model.v_names[other]!r} drives and is driven; multiply the ratios "
                    "and name the variable that drives it"
                )
            R[j, kept.index(other)] += ratio
    zero = np.zeros(model.nv)
    closure = LoopClosure(
        model, lambda y: R @ np.asarray(y), len(kept), lambda y: R, lambda y, d: zero
    )
    closure.recipe = gears, (model, {name: dict(drivers) for name, drivers in ratios.items()})
    return closure


def _single(model: Model, body: str) -> int:
    i = model.number(body)
    at = model.v_index[i - 1] if i else slice(0, 0)
    if at.stop - at.start != 1:
        raise ValueError(f"gears: expected a body on a joint of one freedom, received {body!r}")
    return int(at.start)
