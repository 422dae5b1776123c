"""Minimal coordinates: only as many as there are degrees of freedom are integrated.

By *partition* (book §8.8; Wehage and Haug, 1982): the right-hand side looks at the independent
components of the state only. It computes the dependent positions from g = 0, by Newton's method
from those in the state, the dependent velocities from G v = ν, and the accelerations by projection.
After each accepted step the dependent part of the state is put in its place. The choice of
independent components is frozen during a step; a new one is made when the system with which the
dependent ones are computed has become ill-conditioned. Components are those of v: where positions
are no vectors, dependent displacements take the place of dependent positions.

By *loop closure* (book §8.11): the user knows q = γ(y). Then q̇ = J ẏ with J = ∂γ/∂y, and

    JᵀMJ ÿ = Jᵀ (f − M J̇ẏ),

without constraints, drift, or rank decisions. γ is traced; its derivatives are exact.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...tracing import Traced, TracingError
from ..acceleration import Factor
from ..completed import shaped, underlying
from ..consistency import CONSISTENCY_TOLERANCE
from ..options import finite_vector, index_list
from ..partition import Partition, partition
from ..problem import Formulation, make_problem, traced_or
from .placing import Placing
from .table import EXPLICIT, register

if TYPE_CHECKING:
    from ..system import Mechanical, Terms

__all__ = ["Partitioned", "minimal"]

Array = NDArray[np.float64]

WORSE = 3.0
"""Another choice is made when some dependent velocity changes by more than this, for a unit change
of an independent one, relative to the best choice (where it hardly exceeds 1)."""
NEWTON_STEPS = 12
NEWTON_SETTLED = 1e-11  # relative size of the last correction; the next would be its square
LINEAR = 1e-8  # G J = 0 must hold to this at the start


@register(
    "minimal",
    index=0,
    unknowns="q, v",
    eliminates="λ, dependent coordinates",
    methods=(EXPLICIT,),
    meaning="exact: only independent coordinates are integrated; or y, ẏ with q = `closure`(y)",
)
def minimal(
    mechanical: Mechanical,
    independent: Sequence[int] | None = None,
    closure: Callable[..., Any] | None = None,
    y0: ArrayLike | None = None,
    dy0: ArrayLike | None = None,
) -> Formulation:
    """Return the problem in minimal coordinates; the arguments are options of "minimal".

    Parameters
    ----------
    mechanical
        The system.
    independent
        Velocity components that stay independent; by default they are chosen, and changed, by
        elimination with complete pivoting.
    closure
        ``closure(y)`` -> q, or ``closure(y, p)``; the state is then (y, ẏ).
    y0, dy0
        Initial y, and ẏ (by default the one that gives v0).
    """
    if closure is not None:
        if independent is not None:
            raise ValueError("give independent or closure, not both")
        return _closed(mechanical, closure, y0, dy0)
    if y0 is not None or dy0 is not None:
        raise ValueError("y0 and dy0 belong to a closure function; give that, too")

    work = Partitioned(mechanical, independent)
    return make_problem(
        mechanical,
        "minimal",
        y0=np.concatenate([mechanical.q0, mechanical.v0]),
        names=mechanical.position_names + mechanical.velocity_names,
        **work.functions(),
        fresh=lambda problem: work.fresh(problem).functions(),
    )


class Partitioned:
    """The right-hand side by coordinate partitioning, with its current choice of components.

    Each run has its own (:meth:`fresh`); machine code for the choices is shared.

    Attributes
    ----------
    split
        The current partition.
    changes
        Times at which another one was chosen.
    """

    def __init__(self, mechanical: Mechanical, independent: Sequence[int] | None) -> None:
        self.mechanical = mechanical
        if independent is not None:
            independent = index_list("independent", independent, mechanical.nv, "velocities")
        self.wanted = independent
        self._may_place = mechanical.is_traced
        kept = mechanical.kept.setdefault("minimal", ({}, {}))
        self._known: dict[Any, Placing | None] = kept[0]
        self.shared: dict[Any, Any] = kept[1]  # what engines keep with f for the next run
        now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
        self.split = self._best(now)
        self.starts: dict[Any, Partition] = {}
        self.changes: list[float] = []
        if independent is not None and len(list(independent)) != mechanical.nv - self.split.rank:
            raise ValueError(
                f"the constraints have rank {self.split.rank}, so {mechanical.nv} − "
                f"{self.split.rank} = {mechanical.nv - self.split.rank} components are "
                f"independent; got {list(independent)}"
            )

    def fresh(self, problem: Formulation) -> Partitioned:
        """The same for another run, with the choice that suits its start."""
        made = copy(self)
        t0, nq = problem.t_span[0], self.mechanical.nq
        key = (t0, problem.y0.tobytes(), problem.params.tobytes())
        if key not in self.starts:
            now = self.mechanical.terms(t0, problem.y0[:nq], problem.y0[nq:], problem.params)
            self.starts.clear()
            self.starts[key] = self._best(now)
        made.split, made.changes = self.starts[key], []
        return made

    def functions(self) -> dict[str, Any]:
        """f and project, and the Jacobian; machine code for the current choice where possible."""
        fast = self.placing()
        kept, key = self.mechanical.kept, "slopes of minimal coordinates"
        if key not in kept:
            kept[key] = self.mechanical.ways.exact_slopes("minimal", fast and fast.slope)
        self._exact = kept[key]
        if fast is None:
            made = {"f": self.slope, "project": self.project}
            return made if self._exact is None else {**made, "jac": self.jacobian}
        return {"f": _Slope(self), "project": _Place(self), "jac": self.jacobian}

    def _best(self, now: Terms) -> Partition:
        tolerance = self.mechanical.rank_tolerance
        return partition(now.G, independent=self.wanted, tolerance=tolerance)

    def placing(self) -> Placing | None:
        """Machine code for the current choice, made when it is first needed."""
        if not self._may_place:
            return None
        worst = WORSE if self.wanted is None else np.inf
        key = (tuple(self.split.rows.tolist()), tuple(self.split.dependent.tolist()), worst)
        if key not in self._known:
            self._known[key] = Placing.made(self.mechanical, self.split, worst)
        return self._known[key]

    def _here(self, now: Terms) -> Partition:
        """The current choice of components with G at another place."""
        return replace(self.split, G=now.G)

    def placed(self, t: float, y: Array, p: Any) -> tuple[Array, Array, Terms] | None:
        """Positions and velocities from the independent part of the state; None if it fails."""
        mechanical, split = self.mechanical, self.split
        nq, nv = mechanical.nq, mechanical.nv
        q, v = mechanical.normalised(y[:nq].copy(), p), y[nq : nq + nv].copy()
        rows, dependent = split.rows, split.dependent
        if not rows.size:
            return q, v, mechanical.terms(t, q, v, p)
        u = np.zeros(nv)
        try:
            for _ in range(NEWTON_STEPS):
                now = mechanical.terms(t, q, v, p)
                if not now.finite:
                    return None
                u[dependent] = np.linalg.solve(now.G[rows][:, dependent], -now.g[rows])
                size = float(np.abs(u).max())
                if not np.isfinite(size):
                    return None
                q = mechanical.moved(t, q, u, p)
                if size <= NEWTON_SETTLED * max(1.0, float(np.abs(q).max())):
                    break
            else:
                return None
            now = mechanical.terms(t, q, v, p)
            G = now.G[rows]
            v[dependent] += np.linalg.solve(G[:, dependent], now.nu[rows] - G @ v)
        except np.linalg.LinAlgError:
            return None
        return q, v, mechanical.terms(t, q, v, p)

    def slope(self, t: float, y: Any, p: Any = None) -> Array:
        """[q̇; v̇] as a function of the independent part of the state.

        With v̇ = N v̇ᵢ + v̇₀, G N = 0 and G v̇₀ = γ (8.50) the constraint forces drop out of
        Nᵀ M v̇ = Nᵀ f.
        """
        mechanical, split = self.mechanical, self.split
        p = mechanical.params if p is None else p
        if np.asarray(y).dtype == object:
            raise TracingError(
                "minimal: the independent coordinates are chosen along the run, by numbers, so the "
                "equations have no traced form (for Taylor methods, sensitivities, many digits). "
                "Remedy: take 'projected' or 'baumgarte', or minimal coordinates with a closure"
            )
        y = np.asarray(y, dtype=float)
        fast = self.placing()
        found = None if fast is None else fast(t, y, p)
        if found is not None:
            return found[2]
        placed = self.placed(t, y, p)
        if placed is None:  # the step was too long: it will be repeated with a shorter one
            return np.full(y.size, np.nan)
        _, _, now = placed
        free = split.independent
        N = np.zeros((mechanical.nv, free.size + 1))  # the last column is v̇₀
        N[free, np.arange(free.size)] = 1.0
        if split.rank:
            G = now.G[split.rows]
            sides = np.column_stack([-G[:, free], now.gamma[split.rows]])
            N[split.dependent] = np.linalg.solve(G[:, split.dependent], sides)
        v_dot = N[:, -1]
        if free.size:
            basis = N[:, :-1]
            load = basis.T @ (now.f - now.M @ v_dot)
            v_dot = v_dot + basis @ np.linalg.solve(basis.T @ (now.M @ basis), load)
        return np.concatenate([now.q_dot, v_dot])

    def project(self, t: float, y: Any, p: Any = None) -> Array:
        """Put the dependent part in its place; choose anew where that has become difficult."""
        p = self.mechanical.params if p is None else p
        y = np.asarray(y, dtype=float)
        fast = self.placing()
        found = None if fast is None else fast(t, y, p)
        if found is None:
            placed = self.placed(t, y, p)
        else:
            placed = *found[:2], self.mechanical.terms(t, *found[:2], p)
        if placed is None:
            raise ValueError(
                f"the dependent coordinates cannot be computed at t = {t:.9g}: the mechanism is "
                "at a singular position, or the step was too long"
            )
        q, v, now = placed
        best = self._best(now)
        worse = fast is not None and best.rank == self.split.rank and fast.is_worn(now.G)
        if self.wanted is None and not worse:
            limit = WORSE * max(1.0, best.sensitivity)
            worse = best.rank != self.split.rank or self._here(now).sensitivity > limit
        if worse:
            self.split = best
            self.changes.append(t)
        return np.concatenate([q, v])

    def jacobian(self, t: float, y: Any, p: Any = None) -> Array:
        """∂f/∂y for the current choice; exact."""
        fast, p = self.placing(), self.mechanical.params if p is None else p
        y = np.asarray(y, dtype=float)
        if self._exact is None:
            assert fast is not None
            return fast.slope.jacobian()(t, y, p)
        found = None if fast is None else fast(t, y, p)
        placed = self.placed(t, y, p) if found is None else found
        if placed is None:
            return np.full((y.size, y.size), np.nan)
        return np.asarray(self._exact(t, placed[0], placed[1], self.split, p))


class _Slope:
    """The right-hand side of one run as the engine sees it: machine code that may be replaced.

    Whoever changes the choice of components calls for new addresses (``Engine.renew``). So a step
    may not be made one piece of code with it.
    """

    is_replaced = True

    def __init__(self, work: Partitioned) -> None:
        self.work, self.n = work, work.mechanical.nq + work.mechanical.nv
        self.m, self.k = self.n, work.mechanical.params.size

    def __call__(self, t: float, y: Any, p: Any = None) -> Array:
        return self.work.slope(t, y, p)

    def machine_code(self) -> Any:
        """For the current choice."""
        fast = self.work.placing()
        assert fast is not None  # all choices are of a size
        return fast.slope.machine_code()

    def operations(self) -> dict[str, float]:
        """Too many to be part of a step."""
        return {"total": np.inf}

    def _derive(self, key: Any, make: Callable[[], Any]) -> Any:
        kept = self.work.shared
        if key not in kept:
            kept[key] = make()
        return kept[key]


class _Place:
    """The projection of one run: dependent components in their place, or another choice."""

    def __init__(self, work: Partitioned) -> None:
        self.work, self.n = work, work.mechanical.nq + work.mechanical.nv

    def __call__(self, t: float, y: Any, p: Any = None) -> Array:
        return self.work.project(t, y, p)

    def machine_codes(self) -> tuple[Any, None] | None:
        """For the current choice, in one step."""
        fast = self.work.placing()
        return None if fast is None else (fast.place.machine_code(), None)


# -------------------------------------------------------------------- q = γ(y)


def _closed(mechanical: Mechanical, closure: Callable[..., Any], y0: Any, dy0: Any) -> Formulation:

    if y0 is None:
        raise ValueError("closure needs y0, the initial independent coordinates")
    if mechanical.given["rate"] is not None or mechanical.nq != mechanical.nv:
        raise ValueError("closure is for systems with q̇ = v; this one has a rate of its own")
    if not callable(closure):
        raise TypeError(f"closure must be a function closure(y) -> q, got {closure!r}")
    first = finite_vector("y0", y0)
    size, n, k = first.size, mechanical.nv, mechanical.params.size
    inner = underlying(closure)
    takes_p = len(inspect.signature(inner).parameters) > 1

    def gamma(t: Any, y: Any, p: Any) -> Any:
        return shaped("closure", inner(y, p) if takes_p else inner(y), (n,))

    try:
        position = Traced(gamma, n=size, params=k, outputs=n)
        J = position.jacobian()
        speed = Traced(
            lambda t, x, p: J(t, x[:size], p) @ x[size:], n=2 * size, params=k, outputs=n
        )
        curvature = speed.jvp()
    except TracingError as error:
        raise TracingError(f"closure must be written so that it can be traced: {error}") from error
    parts, params, t0 = mechanical.parts, mechanical.params, mechanical.t_span[0]
    _check_closure(mechanical, position, J, first)
    slope0 = J(t0, first, params)
    rates = np.linalg.lstsq(slope0, mechanical.v0, rcond=None)[0] if dy0 is None else dy0
    rates = finite_vector("dy0", rates, size)
    if dy0 is None:
        missed = float(np.abs(slope0 @ rates - mechanical.v0).max())
        if missed > CONSISTENCY_TOLERANCE * max(1.0, float(np.abs(mechanical.v0).max())):
            raise ValueError(f"no ẏ gives v0 by this closure function: it misses by {missed:.3g}")

    def terms(t: Any, x: Any, p: Any) -> tuple[Any, ...]:
        y, rate = x[:size], x[size:]
        direction = np.concatenate([np.asarray(rate), np.zeros(size)])
        return position(t, y, p), speed(t, x, p), J(t, y, p), curvature(t, x, direction, p)

    def f(t: Any, x: Any, p: Any = params) -> Any:
        q, v, slope, bent = terms(t, x, p)
        M = np.asarray(parts.mass(t, q, p))
        inertia = slope.T @ (M @ slope)
        load = slope.T @ (parts.force(t, q, v, p) - M @ bent)
        return np.concatenate([x[size:], Factor(inertia).solve(load)])

    def to_qv(t: float, x: Any, p: Any = params) -> tuple[Array, Array]:
        x = np.asarray(x, dtype=float)
        return position(t, x[:size], p), speed(t, x, p)

    names = [f"y{i}" for i in range(size)]
    return make_problem(
        mechanical,
        "minimal",
        traced_or(mechanical, parts.traceable, f, 2 * size, f),
        np.concatenate([first, rates]),
        names + [f"{name}'" for name in names],
        to_qv=to_qv,
        project=None,
    )


def _check_closure(mechanical: Mechanical, position: Any, J: Any, y0: Array) -> None:
    """γ(y0) must satisfy the constraints, and so must the velocities J ẏ."""
    t0, p = mechanical.t_span[0], mechanical.params
    q, slope = position(t0, y0, p), J(t0, y0, p)
    now = mechanical.terms(t0, q, mechanical.v0)
    gap = float(np.abs(now.g).max())
    if gap > CONSISTENCY_TOLERANCE:
        raise ValueError(
            f"closure(y0) violates the constraints: max |g| = {gap:.3g} at q = {q}; check the "
            "function and y0"
        )
    product = float(np.abs(now.G @ slope).max())
    if product > LINEAR * max(1.0, float(np.abs(now.G).max() * np.abs(slope).max())):
        raise ValueError(
            f"the velocities of this closure function violate the constraints: max |G ∂γ/∂y| = "
            f"{product:.3g} at y0"
        )
    rank = mechanical.rank(t0, q)
    if slope.shape[1] != mechanical.nv - rank or np.linalg.matrix_rank(slope) < slope.shape[1]:
        raise ValueError(
            f"the constraints leave {mechanical.nv} − {rank} degrees of freedom, but closure has "
            f"{slope.shape[1]} coordinates (∂γ/∂y of rank {np.linalg.matrix_rank(slope)})"
        )
