"""A mechanical system with constraints, as functions: one object, every formulation.

    q̇ = rate(t, q, v),    M(t, q) v̇ = f(t, q, v) + G(t, q)ᵀ λ,    0 = g(t, q),

with G v = ν where the constraints hold, and G v̇ = γ. The sign of λ is that of the book (8.3):
Gᵀλ is the force that the constraints *exert*, and f collects everything else (τ − C there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..problem import Recipe, state_array, time_span
from ..tracing import GraphTooLargeError, Traced, TracingError
from .acceleration import RANK_TOLERANCE, Acceleration, Weighted
from .check import check_derivatives as differentiated
from .completed import ARGUMENTS, Parts, adapt, complete, shaped, underlying
from .elimination import Elimination
from .options import finite_vector, index_list, number

if TYPE_CHECKING:
    from ..runs.solution import Solution
    from .observe import Observables
    from .problem import Formulation

__all__ = ["BUILT_ON", "Mechanical", "Terms"]

Array = NDArray[np.float64]

#: What is made of systems elsewhere and belongs among their methods; entered where it is defined.
BUILT_ON: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Terms:
    """M, f, g, G, γ, ν and q̇ at one instant, as numbers."""

    M: Array
    f: Array
    g: Array
    G: Array
    gamma: Array
    nu: Array
    q_dot: Array

    @property
    def finite(self) -> bool:
        """Whether the equations of motion can be solved at all."""
        return all(bool(np.isfinite(x).all()) for x in (self.M, self.f, self.G, self.gamma))


class Mechanical:
    """A mechanical system with constraints, given by functions.

    Parameters
    ----------
    mass
        ``mass(t, q)`` -> M, n_v×n_v, symmetric and positive definite; or a constant matrix.
    force
        ``force(t, q, v)`` -> f, n_v numbers: everything but the forces of the constraints.
    constraint
        ``constraint(t, q)`` -> g, m numbers that are zero where the constraints hold.
    jacobian
        ``jacobian(t, q)`` -> G, m×n_v, with ġ = G v − ν. Derived from g if missing.
    bias
        ``bias(t, q, v)`` -> γ, m numbers: g̈ = 0 means G v̇ = γ. Derived from g if missing.
    velocity_target
        ``velocity_target(t, q)`` -> ν = −∂g/∂t: the constraints ask for G v = ν. If missing it
        is derived from g, or zero where both `jacobian` and `bias` are given.
    q0, v0, t_span
        Initial position and velocity, and the interval of time.
    rate
        ``rate(t, q, v)`` -> q̇, n_q numbers, affine in v; by default q̇ = v.
    retract
        ``retract(q, u)`` -> the position reached from q by the small displacement u (n_v numbers,
        a velocity times a time); by default q + q̇(u). Needed where positions are no vectors.
    normalise
        ``normalise(q)`` -> q, for coordinates with a redundancy of their own such as unit
        quaternions; applied after each accepted step.
    own_states
        How many of the last positions are states of their own (of a motor, a filter): `rate` says
        how they change, in whatever way, and displacements leave them as they are.
    velocity_only
        Numbers of constraints that restrict velocities but no position, such as rolling: there
        `constraint` returns 0 and `jacobian`, `bias` and, if they depend on time,
        `velocity_target` say what G v = ν asks for. Forms with g = 0 use G v = ν in these rows.
    params
        Parameters p; a function that takes one more argument gets them there.
    multiplier_names, position_names, velocity_names
        For tables and plots.
    invariants
        Named functions ``(t, q, v)`` that are constant along exact solutions, such as "energy".
    trace
        True: the functions are written so that they can be traced, and everything runs as
        machine code; False: nothing is traced but what must be differentiated; None: as True if
        all functions were given traced.
    rank_tolerance
        Relative tolerance for the rank of G (:data:`~integrators.dae.RANK_TOLERANCE`).
    check_derivatives
        Compare `jacobian`, `bias` and `velocity_target`, where given, with differences of g at the
        start and near by (:mod:`.derivatives`). False accepts them as they are.
    recursions
        An object that knows the equations as a whole, with the methods of
        :class:`~integrators.dae.elimination.Elimination`, on numbers and on symbols; mechanisms
        have recursions along their tree.
    observing
        ``observing(observables, solution)`` returns observables that tell more.
    name
        For tables and plots.

    Notes
    -----
    The functions may be given traced: ``traced(force, n=n_q, params=n_v, outputs=n_v)`` and so
    on; matrices may then be flat, row by row.

    Examples
    --------
    A pendulum of unit mass and length in Cartesian coordinates; G, γ and ν follow from g.

    >>> import numpy as np
    >>> from integrators import solve
    >>> from integrators.dae import Mechanical
    >>> pendulum = Mechanical(
    ...     np.eye(2),
    ...     lambda t, q, v: np.array([0.0, -9.81]),
    ...     lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
    ...     q0=[1.0, 0.0], v0=[0.0, 0.0], t_span=(0, 1), trace=True,
    ... )
    >>> sol = solve(pendulum.formulation("projected"), method="DOP853", rtol=1e-10, atol=1e-12)
    >>> print(f"{sol.y[0, -1]:.8f}")
    -0.98629175
    """

    def __init__(
        self,
        mass: Callable[..., Any] | ArrayLike,
        force: Callable[..., Any],
        constraint: Callable[..., Any],
        jacobian: Callable[..., Any] | None = None,
        bias: Callable[..., Any] | None = None,
        *,
        q0: ArrayLike,
        v0: ArrayLike,
        t_span: Sequence[float],
        velocity_target: Callable[..., Any] | None = None,
        rate: Callable[..., Any] | None = None,
        retract: Callable[..., Any] | None = None,
        normalise: Callable[..., Any] | None = None,
        own_states: int = 0,
        velocity_only: Sequence[int] = (),
        params: Any = (),
        multiplier_names: Sequence[str] = (),
        position_names: Sequence[str] = (),
        velocity_names: Sequence[str] = (),
        invariants: Mapping[str, Callable[..., Any]] | None = None,
        trace: bool | None = None,
        rank_tolerance: float = RANK_TOLERANCE,
        check_derivatives: bool = True,
        recursions: Any = None,
        observing: Callable[[Any, Any], Any] | None = None,
        name: str = "",
    ) -> None:
        self.given = {
            "mass": mass,
            "force": force,
            "constraint": constraint,
            "jacobian": jacobian,
            "bias": bias,
            "velocity_target": velocity_target,
            "rate": rate,
            "retract": retract,
            "normalise": normalise,
        }
        self.settings = {
            "q0": q0,
            "v0": v0,
            "t_span": t_span,
            "own_states": own_states,
            "velocity_only": velocity_only,
            "params": params,
            "multiplier_names": multiplier_names,
            "position_names": position_names,
            "velocity_names": velocity_names,
            "invariants": invariants,
            "trace": trace,
            "rank_tolerance": rank_tolerance,
            "check_derivatives": check_derivatives,
            "recursions": recursions,
            "observing": observing,
            "name": name,
        }
        self.q0, self.v0 = _vector("q0", q0), _vector("v0", v0)
        self.t_span = time_span(t_span)
        self.params = finite_vector("params", params)
        self.name, self.recursions, self.observing = name, recursions, observing
        self.recipe: Recipe | None = None
        self.rank_tolerance = number("rank_tolerance", rank_tolerance)
        if not 0 < self.rank_tolerance < 1:
            raise ValueError(f"rank_tolerance must be between 0 and 1, got {rank_tolerance}")
        self.nq, self.nv = self.q0.size, self.v0.size
        self.own_states = int(own_states)
        if not 0 <= self.own_states <= self.nq:
            raise ValueError(f"own_states: expected 0 to {self.nq}, received {own_states!r}")
        if rate is None and self.nq != self.nv:
            raise ValueError(
                f"there are {self.nq} positions and {self.nv} velocities; give rate(t, q, v), "
                "which says how the positions change, and retract(q, u)"
            )
        self.m = self._count_constraints()
        self.holonomic: NDArray[np.bool_] = self._holonomic(velocity_only)
        self.parts: Parts = complete(
            self.given, self.nq, self.nv, self.m, self.params.size, self._traceable(trace)
        )
        #: Traced functions of formulations; recursions share them among systems that are alike.
        self.kept: dict[Any, Any] = getattr(recursions, "kept", {})
        self.ways = Elimination(self.parts, self.nv) if recursions is None else recursions
        self._check_terms()
        if not isinstance(check_derivatives, bool | np.bool_):
            raise TypeError(f"check_derivatives must be True or False, got {check_derivatives!r}")
        if check_derivatives:
            differentiated(self)
        self.multiplier_names = _names(multiplier_names, self.m, "multiplier_names", "λ")
        self.position_names = _names(position_names, self.nq, "position_names", "q")
        self.velocity_names = _names(velocity_names, self.nv, "velocity_names", "v")
        self.invariants = {
            key: adapt_invariant(key, function) for key, function in (invariants or {}).items()
        }

    # ------------------------------------------------------------ checks

    def _count_constraints(self) -> int:
        constraint = adapt("constraint", self.given["constraint"])
        g = np.atleast_1d(np.asarray(constraint(self.t_span[0], self.q0.copy(), self.params)))
        if g.ndim != 1 or g.size == 0:
            raise ValueError(
                f"constraint must return m ≥ 1 numbers, got shape {g.shape}; a system without "
                "constraints is an IVP"
            )
        return int(g.size)

    def _holonomic(self, velocity_only: Sequence[int]) -> NDArray[np.bool_]:
        """Which constraints restrict positions."""
        listed = index_list("velocity_only", velocity_only, self.m, "constraints")
        if listed and (self.given["jacobian"] is None or self.given["bias"] is None):
            raise ValueError(
                "constraints on velocities only cannot be derived from g; give jacobian and bias"
            )
        return np.array([i not in listed for i in range(self.m)])

    def _traceable(self, trace: bool | None) -> bool | None:
        if trace is not None and not isinstance(trace, bool | np.bool_):
            raise TypeError(f"trace must be True, False or None, got {trace!r}")
        self._retract, self._normalise = (
            None if self.given[name] is None else adapt(name, self.given[name])
            for name in ("retract", "normalise")
        )
        mass = self.given["mass"]
        if not callable(mass):
            matrix = np.asarray(mass, dtype=float)
            if matrix.shape != (self.nv, self.nv):
                raise ValueError(
                    f"mass must be {self.nv}×{self.nv} to match v0, got shape {matrix.shape}"
                )
        return None if trace is None else bool(trace)

    def _check_terms(self) -> None:
        """Evaluate everything once, so that a faulty function is told at once."""
        t0, parts, p = self.t_span[0], self.parts, self.params
        q, v = self.q0.copy(), self.v0.copy()
        values = {
            "mass": parts.mass(t0, q, p),
            "force": parts.force(t0, q, v, p),
            "constraint": parts.constraint(t0, q, p),
            "jacobian": parts.jacobian(t0, q, p),
            "bias": parts.bias(t0, q, v, p),
            "velocity_target": parts.target(t0, q, p),
            "rate": parts.rate(t0, q, v, p),
        }
        for name, value in values.items():
            if not np.all(np.isfinite(np.asarray(value, dtype=float))):
                raise ValueError(f"{name} is not finite at the start: {value}")
        worst = np.abs(np.asarray(values["constraint"], dtype=float)[~self.holonomic])
        if worst.max(initial=0.0) != 0.0:
            raise ValueError(
                "constraint must return 0 for those on velocities only (velocity_only = "
                f"{np.flatnonzero(~self.holonomic).tolist()}), got {values['constraint']}"
            )
        M = np.asarray(values["mass"], dtype=float)
        if not np.allclose(M, M.T, rtol=1e-9, atol=1e-12 * np.abs(M).max()):
            worst = float(np.abs(M - M.T).max())
            raise ValueError(f"mass must be symmetric; M and Mᵀ differ by {worst:.3g} at the start")
        Weighted(M, np.asarray(values["jacobian"], dtype=float))  # positive definite

    def with_(self, **changes: Any) -> Mechanical:
        """Return a copy with some arguments replaced."""
        recipe = changes.pop("recipe", None) or (self.recipe and self.recipe.changed(changes))
        if not changes:
            made = copy(self)
            made.recipe = recipe
            return made
        arguments: dict[str, Any] = {**self.given, **self.settings, **changes}
        made = Mechanical(**arguments)
        made.recipe = recipe
        return made

    def __reduce__(self) -> Any:
        if self.recipe is not None:
            return Recipe.follow, (self.recipe,)
        return Recipe.follow, (Recipe(Mechanical, (), {**self.given, **self.settings}),)

    # ------------------------------------------------------------ values

    @cached_property
    def _bundle(self) -> Traced | None:
        """All terms as one traced function of t, x = [q; v] and p, if they can be traced."""
        if not self.parts.traceable or self.recursions is not None:
            return None
        parts, nq = self.parts, self.nq

        def terms(t: Any, x: Any, p: Any) -> Any:
            q, v = x[:nq], x[nq:]
            values = (*self.ways.terms(t, q, v, p), parts.rate(t, q, v, p))
            return np.concatenate([np.asarray(value).ravel() for value in values])

        n, m = self.nv, self.m
        outputs = n * n + n + m + m * n + m + m + nq
        try:
            bundle = Traced(terms, n=nq + n, params=self.params.size, outputs=outputs)
            bundle.machine_code()
        except GraphTooLargeError:
            return None
        except TracingError as error:
            raise TracingError(f"{self.name or 'the system'} cannot be traced: {error}") from error
        return bundle

    def terms(self, t: float, q: ArrayLike, v: ArrayLike, p: Any = None) -> Terms:
        """Return M, f, g, G, γ, ν and q̇."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        p = self.params if p is None else p
        bundle, parts, n, m = self._bundle, self.parts, self.nv, self.m
        if self.recursions is not None:
            M, f, g, G, gamma, nu = self.recursions.terms(t, q, v, p)
            return Terms(M, f, g, G, gamma, nu, parts.rate(t, q, v, p))
        if bundle is None:
            if parts.derived is not None:
                flat = parts.derived(t, np.concatenate([q, v]), p)
                G, gamma, nu = flat[: m * n].reshape(m, n), flat[m * n : -m], flat[-m:]
            else:
                G, gamma = parts.jacobian(t, q, p), parts.bias(t, q, v, p)
                nu = parts.target(t, q, p)
            values = [parts.mass(t, q, p), parts.force(t, q, v, p), parts.constraint(t, q, p)]
            values += [G, gamma, nu, parts.rate(t, q, v, p)]
            return Terms(*(np.asarray(x, dtype=float) for x in values))
        flat = bundle(t, np.concatenate([q, v]), p)
        sizes = (n * n, n, m, m * n, m, m)
        M, f, g, G, gamma, nu, q_dot = np.split(flat, np.cumsum(sizes))
        return Terms(M.reshape(n, n), f, g, G.reshape(m, n), gamma, nu, q_dot)

    @property
    def is_traced(self) -> bool:
        """Whether the functions run as machine code."""
        return self._bundle is not None or (self.recursions is not None and self.parts.traceable)

    def moved(self, t: Any, q: Any, u: Any, p: Any = None) -> Any:
        """Position reached from q by the displacement u; on symbols if `retract` can be traced."""
        p = self.params if p is None else p
        if self._retract is None:
            return np.asarray(self.displaced(t, q, u, p))
        return np.asarray(shaped("retract", self._retract(q, u, p), (self.nq,)))

    def displaced(self, t: Any, q: Any, u: Any, p: Any) -> Any:
        """The same to first order, without `retract`, on numbers or symbols."""
        if self.given["rate"] is None:
            return self.normalised(q + u, p)
        still = self.parts.rate(t, q, np.zeros(self.nv), p)
        change = self.parts.rate(t, q, u, p) - still
        if self.own_states:
            change = np.concatenate([change[: -self.own_states], np.zeros(self.own_states)])
        return self.normalised(q + change, p)

    def normalised(self, q: Any, p: Any = None) -> Any:
        """The position with its own redundancy removed, as `normalise` says."""
        if self._normalise is None:
            return q
        return shaped("normalise", self._normalise(q, self.params if p is None else p), (self.nq,))

    def acceleration(
        self, t: float, q: ArrayLike, v: ArrayLike, *, method: str = "svd", p: Any = None
    ) -> Acceleration:
        """Return v̇ and λ without stabilisation, by any of the methods of :func:`accelerations`."""
        from .acceleration import accelerations

        now = self.terms(t, q, v, p)
        return accelerations(
            now.M, now.f, now.G, now.gamma, method=method, tolerance=self.rank_tolerance
        )

    def rank(self, t: float | None = None, q: ArrayLike | None = None) -> int:
        """Rank of G, by default at the start."""
        t = self.t_span[0] if t is None else t
        now = self.terms(t, self.q0 if q is None else q, self.v0)
        return Weighted(now.M, now.G, self.rank_tolerance).rank

    # ------------------------------------------------------------ what it is for

    def formulation(self, name: str = "projected", **options: Any) -> Formulation:
        """Return the initial value problem of one formulation; see :mod:`.formulations`."""
        return BUILT_ON["formulate"](self, name, **options)

    def consistent(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        *,
        fixed: Sequence[int] = (),
        t: float | None = None,
    ) -> Mechanical:
        """Return a copy that starts from the nearest consistent position and velocity."""
        from .consistency import consistent

        return consistent(self, q, v, fixed=fixed, t=t).system

    def without_redundant(self) -> Mechanical:
        """Return a copy without the constraints that depend on others at the start.

        Examples
        --------
        >>> twice = Mechanical(
        ...     np.eye(2), lambda t, q, v: [0.0, -1.0], lambda t, q: [q[1], 2 * q[1]],
        ...     q0=[0.0, 0.0], v0=[1.0, 0.0], t_span=(0, 1),
        ... )
        >>> twice.without_redundant().m
        1
        """
        now = self.terms(self.t_span[0], self.q0, self.v0)
        left_out = Weighted(now.M, now.G, self.rank_tolerance).redundant()
        rows = [i for i in range(self.m) if i not in left_out]
        if not rows:
            raise ValueError("G is zero at the start: no constraint would be left")
        given = dict(self.given)
        expected = {"constraint": 2, "jacobian": 2, "bias": 3, "velocity_target": 2}
        for key in expected:
            if given[key] is not None:
                given[key] = _rows_of(key, given[key], rows, self.m)
        settings = {
            **self.settings,
            "multiplier_names": [self.multiplier_names[i] for i in rows],
            "velocity_only": [k for k, i in enumerate(rows) if not self.holonomic[i]],
            "trace": self.parts.traceable,
            "recursions": None,  # they have all rows
        }
        return Mechanical(**{**given, **settings})

    def observables(self, solution: Solution) -> Observables:
        """Return drift, multipliers, rank and invariants along a solution."""
        seen = BUILT_ON["observe"](self, solution)
        return seen if self.observing is None else self.observing(seen, solution)

    def __repr__(self) -> str:
        speed = "traced" if self.parts.traceable else "Python"
        return (
            f"<Mechanical {self.name or 'unnamed'}: {self.nq} positions, {self.nv} velocities, "
            f"{self.m} constraints, {speed}>"
        )


def _rows_of(name: str, function: Any, rows: list[int], m: int) -> Callable[..., Any]:
    """Return the function with only some rows of its value."""
    full = adapt(name, underlying(function))

    def with_p(*arguments: Any) -> Any:
        value = np.asarray(full(*arguments))
        return value.reshape(m, -1)[rows] if name == "jacobian" else value[rows]

    if len(ARGUMENTS[name].split(",")) == 3:
        return lambda t, q, v, p=(): with_p(t, q, v, p)
    return lambda t, q, p=(): with_p(t, q, p)


def adapt_invariant(name: str, function: Any) -> Callable[..., Any]:
    """Return an invariant as a function of (t, q, v, p)."""
    import inspect

    if not callable(function):
        raise TypeError(f"the invariant {name} must be a function (t, q, v), got {function!r}")
    if len(inspect.signature(function).parameters) > 3:
        return function
    return lambda t, q, v, p: function(t, q, v)


def _vector(name: str, value: ArrayLike) -> Array:
    try:
        array = state_array(value)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("y0", name)) from None
    if array.dtype.kind == "c":
        raise TypeError(f"{name} must be real")
    return array


def _names(given: Sequence[str], count: int, argument: str, letter: str) -> tuple[str, ...]:
    names = tuple(given)
    if names and len(names) != count:
        raise ValueError(f"{argument} must have {count} names, got {len(names)}")
    return names or tuple(f"{letter}{i}" for i in range(count))
