"""Closed loops: constraints, accelerations, multipliers, mobility (book, chapter 8).

The tree of a model moves with v; its loop joints ask for K v = ν and K v̇ = γ, and answer with
joint forces Kᵀλ:

    H v̇ + C = τ + Kᵀλ.

Three ways to solve it give the same accelerations: the whole system at once (`"kkt"`), multipliers
first (`"lambda"`), and projection on the motions that the loops leave (`"projection"`). All decide
rank by singular values of K weighted with the inertia, K L⁻¹ with H = LᵀL, against an explicit
tolerance, and report it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.dae.partition import RANK_TOLERANCE
from integrators.kernels import OnWorkspace

from ...checks import Array, ArrayLike, check_rank_tolerance, one_of
from ..storage.loading import (
    ForcesLike,
    load,
    load_forces,
    load_given,
    load_vector,
    loaded_inertia,
)
from ..storage.workspace import TreeWorkspace
from ..trees.factor import check_pivots, l_solve, lt_solve, ltl
from .constraints.gaps import closure_kernel
from .multipliers import (
    ALPHA,
    BETA,
    EPSILON,
    constrained_as_given,
    constrained_kernel,
    rank_kernel,
    unconstrained_forces,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "RANK_TOLERANCE",
    "ClosedLoopSolution",
    "Constraints",
    "Mobility",
    "constrained_accelerations",
    "constraints",
    "independence",
    "mobility",
    "weighted",
]

#: Added to the diagonal of A, relative to its mean, by the path without a rank decision. After two
#: refinements a singular value σ of the weighted Jacobian acts as if it were wrong by (ε/σ²)³.
#: Constraints that are redundant where loops are closed have a σ as large as the gap where they
#: are not quite; it must stay without effect, so that ε has to be large against gap².
REGULARISATION = 1e-9

#: The same where no constraint is redundant: with it a mechanism may come as near to a singular
#: position as σ = 1e-4 before more than rounding is changed, while rounding of A itself, 1e-16, is
#: four digits away.
REGULARISATION_INDEPENDENT = 1e-12

_run_closure = OnWorkspace(closure_kernel, TreeWorkspace)
_run_forces = OnWorkspace(unconstrained_forces, TreeWorkspace)
_run_constrained = OnWorkspace(constrained_kernel, TreeWorkspace, returns=True)
_run_rank = OnWorkspace(rank_kernel, TreeWorkspace)
_run_as_given = OnWorkspace(constrained_as_given, TreeWorkspace, returns=True)


class Constraints(NamedTuple):
    """Constraints at one state: K v = ν, K v̇ = γ, and the gaps δ.

    `names` says for each row which loop joint, or which constraint by a function, it belongs to.
    """

    delta: Array
    K: Array
    nu: Array
    gamma: Array
    names: tuple[str, ...]


def _row_names(model: Model) -> tuple[str, ...]:
    kept = model.tree.traced
    if "row names" not in kept:
        at = model.tree.arrays["loop_at"]
        counts = [(loop.name, at[k + 1] - at[k]) for k, loop in enumerate(model.bonds)]
        kept["row names"] = tuple(f"{name}[{j}]" for name, count in counts for j in range(count))
    names: tuple[str, ...] = kept["row names"]
    return names


def need_loops(model: Model) -> None:
    """Raise if a model has neither loops nor constraints by functions."""
    if not model.bonds:
        raise ValueError(
            f"{model.name!r} has no loops and no constraints; add one with "
            "ModelBuilder.add_loop or add_constraint"
        )


def constraints(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, *, t: float = 0.0
) -> Constraints:
    """Evaluate the constraints of loop joints and of functions.

    Examples
    --------
    >>> from multibody import ModelBuilder, Prismatic, Revolute, point_mass
    >>> b = ModelBuilder(name="bead between walls")
    >>> _ = b.add_body("bead", 0, Prismatic("x"), inertia=point_mass(1.0))
    >>> b.add_loop("wall", 0, "bead", Revolute(), placement_predecessor=(2, 0, 0))
    >>> constraints(b.build(), [0.5]).delta + 0.0  # 1.5 away from where the hinge is
    array([ 0. ,  0. , -1.5,  0. ,  0. ])
    """
    need_loops(model)
    load_given(model, q, v, t)
    return loaded_constraints(model)


def constraints_at(model: Model, q: Array, v: Array | None, t: float) -> Constraints:
    """The same at a state of a run, whose quaternions are taken as they are."""
    load(model, q, v, t)
    return loaded_constraints(model)


def loaded_constraints(model: Model) -> Constraints:
    """The same at the state in the workspace.

    Entries of K that vanish at every position do so exactly: rank is not decided by rounding.
    """
    w = model.tree.workspace
    _run_closure(w)
    K = np.where(model.tree.reach, w.K, 0.0)
    return Constraints(w.delta.copy(), K, w.nu.copy(), w.gamma.copy(), _row_names(model))


@dataclass(frozen=True)
class ClosedLoopSolution:
    """Accelerations of a mechanism with loops, and what the loops do for it.

    Attributes
    ----------
    accelerations
        v̇.
    multipliers
        λ, one for each constraint: of all that give these accelerations the smallest.
    rank
        How many constraints are independent.
    singular_values
        Of the weighted Jacobian, largest first.
    """

    accelerations: Array
    multipliers: Array
    rank: int
    singular_values: Array


def constrained_accelerations(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    method: str = "lambda",
    alpha: float = 0.0,
    beta: float | None = None,
    rank_tolerance: float = RANK_TOLERANCE,
) -> ClosedLoopSolution:
    """Forward dynamics with loops.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As in :func:`~multibody.FD`.
    method
        "lambda", "kkt" or "projection": three ways to the same accelerations.
    alpha, beta
        Baumgarte's stabilisation k_stab = −2α(Kv − ν) − β²δ; β = α if not given.
    rank_tolerance
        Singular values below this part of the largest are taken for zero.

    Raises
    ------
    ValueError
        If α or β is negative.
    """
    need_loops(model)
    one_of(method, "method", ("lambda", "kkt", "projection"))
    alpha, beta = check_stabilisation(alpha, beta)
    tolerance = check_rank_tolerance(rank_tolerance)
    return solved(model, model.check("q", q), v, tau, f_ext, t, method, alpha, beta, tolerance)


def solved(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    f_ext: ForcesLike,
    t: float,
    method: str,
    alpha: float,
    beta: float,
    rank_tolerance: float,
) -> ClosedLoopSolution:
    """The same, unchecked; α is negative where time runs backwards."""
    z, H, c = _pieces(model, q, v, tau, f_ext, t)
    speed = model.check("v", v)
    target = c.gamma - 2.0 * alpha * (c.K @ speed - c.nu) - beta**2 * c.delta
    parent = model.tree.arrays["parent_v"]
    L = ltl(H, parent)
    # Y = L⁻ᵀ Kᵀ has the singular values of K weighted with the inertia.
    Y = lt_solve(L, parent, c.K.T)
    left, sizes, right = np.linalg.svd(Y.T, full_matrices=True)
    rank = int(np.sum(sizes > rank_tolerance * sizes.max(initial=0.0))) if sizes.size else 0
    free = lt_solve(L, parent, z)  # L v̇ without loops
    if method == "kkt":
        a, lam = _by_kkt(H, c.K, z, target, left, rank)
    elif method == "lambda":
        u, s, w = left[:, :rank], sizes[:rank], right[:rank]
        lam = u @ ((u.T @ target - s * (w @ free)) / s**2)
        a = l_solve(L, parent, free + Y @ lam)
    else:
        u, s, w, rest = left[:, :rank], sizes[:rank], right[:rank], right[rank:]
        x = w.T @ ((u.T @ target) / s) + rest.T @ (rest @ free)
        a = l_solve(L, parent, x)
        lam = u @ ((w @ (x - free)) / s)
    return ClosedLoopSolution(a, lam, rank, sizes)


def _by_kkt(
    H: Array, K: Array, z: Array, target: Array, left: Array, rank: int
) -> tuple[Array, Array]:
    """Solve [H, Kᵀ; K, 0][v̇; −λ] = [z; k] for as many combinations of rows as are independent."""
    u = left[:, :rank]
    rows = u.T @ K
    n = len(z)
    system = np.block([[H, rows.T], [rows, np.zeros((rank, rank))]])
    solution = np.linalg.solve(system, np.concatenate([z, u.T @ target]))
    return solution[:n], -(u @ solution[n:])


def _pieces(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, f_ext: ForcesLike, t: float
) -> tuple[Array, Array, Constraints]:
    """tau − C, H and the constraints, of a state whose quaternions are taken as they are."""
    w = load(model, q, v, t)
    z = loaded_forces(model, w, tau, f_ext)
    c = loaded_constraints(model)
    return z, loaded_inertia(w), c


def loaded_forces(
    model: Model, w: TreeWorkspace, tau: ArrayLike | None, f_ext: ForcesLike
) -> Array:
    """tau − C at the state in the workspace."""
    load_vector(model, "tau", tau, w.tau)
    load_forces(model, w, f_ext)
    _run_forces(w)
    return w.z.copy()


def check_stabilisation(alpha: float, beta: float | None) -> tuple[float, float]:
    """Baumgarte's numbers, checked."""
    beta = alpha if beta is None else beta
    if not (alpha >= 0.0 and beta >= 0.0 and np.isfinite(alpha + beta)):
        raise ValueError(
            f"stabilisation: expected alpha ≥ 0 and beta ≥ 0, received {alpha} and {beta}; "
            "negative numbers drive the loops apart"
        )
    return float(alpha), float(beta)


def constrained_function(w: TreeWorkspace) -> OnWorkspace:
    """Compiled accelerations of closed loops as `FD` gives them, for a workspace of its own."""
    w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = 0.0, 0.0, REGULARISATION
    return _run_as_given if len(w.quaternions) else _run_constrained


def fast_constrained_accelerations(
    w: TreeWorkspace, alpha: float, beta: float, epsilon: float = REGULARISATION
) -> tuple[Array, Array]:
    """v̇ and λ by the compiled path, for a loaded workspace."""
    w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = alpha, beta, epsilon
    _run_constrained(w)
    return w.a_q.copy(), w.lam.copy()


def independence(model: Model, t: ArrayLike, q: ArrayLike) -> Array:
    """How independent the constraints are at many positions: fast, and near enough to compare.

    Parameters
    ----------
    model
        A model with loops.
    t, q
        Times, and positions in columns.

    Returns
    -------
    array (m, k)
        For each position the square roots of the pivots of KH⁻¹Kᵀ over that of the first. They are
        of the size of the singular values of K weighted with the inertia, in parts of the largest:
        zero where a constraint follows from others.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> upright, level = [np.pi / 2] * 3 + [-np.pi / 2] * 2, [0.0] * 5
    >>> found = independence(mechanisms.n_four_bar(2), [0, 0], np.transpose([upright, level]))
    >>> (found > 1e-6).sum(axis=1).tolist()
    [4, 2]
    """
    need_loops(model)
    times, places = (np.ascontiguousarray(x, dtype=float) for x in (t, q))
    w = load(model, model.neutral(), None, 0.0)
    m = len(w.rows)
    found = np.zeros((len(times), m))
    for k in range(len(times)):
        w.t[0], w.q[:] = times[k], places[:, k]
        _run_rank(w)
        found[k] = w.rest[:m]
    largest = found[:, :1] if m else found
    return np.sqrt(found / np.where(largest > 0.0, largest, 1.0))


@dataclass(frozen=True)
class Mobility:
    """How many ways a mechanism can move at a position (book, §8.10).

    Attributes
    ----------
    freedoms
        n, of the tree.
    constraints
        n^c, of the loop joints.
    rank
        r, independent constraints.
    redundant
        Names of constraints that can be left out one after the other without changing anything.
    singular_values
        Of the weighted Jacobian.
    """

    freedoms: int
    constraints: int
    rank: int
    redundant: tuple[str, ...]
    singular_values: Array

    @property
    def mobility(self) -> int:
        """n − r: degrees of freedom at this position."""
        return self.freedoms - self.rank

    @property
    def overconstraint(self) -> int:
        """n^c − r: constraint forces that nothing determines."""
        return self.constraints - self.rank

    def __str__(self) -> str:
        text = (
            f"mobility {self.mobility} = {self.freedoms} freedoms of the tree − {self.rank} "
            f"independent of {self.constraints} constraints"
        )
        if self.redundant:
            text += f"; redundant: {', '.join(self.redundant)}"
        return text


def weighted(H: Array, K: Array) -> tuple[Array, Array]:
    """C with H = C Cᵀ, and C⁻¹Kᵀ: K in units in which lengths and angles mean something.

    Its singular values are the same for every factor of H. Of one position or of many at once.
    """
    try:
        C = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        C = np.zeros_like(H)
    diagonal = np.diagonal(H, axis1=-2, axis2=-1)
    check_pivots(np.diagonal(C, axis1=-2, axis2=-1) ** 2, diagonal)
    return C, np.linalg.solve(C, K.mT)


def mobility(
    model: Model, q: ArrayLike, *, t: float = 0.0, rank_tolerance: float = RANK_TOLERANCE
) -> Mobility:
    """Mobility, rank and redundant constraints at a position.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.four_bar()
    >>> q, v = mechanisms.entry("four_bar").start(model)
    >>> report = mobility(model, q)
    >>> report.freedoms, report.constraints, report.rank, report.mobility
    (3, 5, 2, 1)
    """
    import scipy.linalg

    rank_tolerance = check_rank_tolerance(rank_tolerance)
    c = constraints(model, q, t=t)
    bad = np.flatnonzero(~(np.isfinite(c.K).all(axis=1) & np.isfinite(c.delta)))
    if bad.size:
        raise ValueError(
            f"the constraint {c.names[bad[0]]} has no finite number at q = {np.asarray(q)}; start "
            "where it is defined, or write it so that it is (squares in place of roots)"
        )
    _, Y = weighted(loaded_inertia(load_given(model, q, None, t)), c.K)
    sizes = np.linalg.svd(Y, compute_uv=False)
    rank = int(np.sum(sizes > rank_tolerance * sizes.max(initial=0.0))) if sizes.size else 0
    pivots: Any = scipy.linalg.qr(Y, mode="r", pivoting=True)[1] if Y.size else np.zeros(0, int)
    redundant = tuple(c.names[k] for k in sorted(pivots[rank:]))
    return Mobility(model.nv, len(c.names), rank, redundant, sizes)
