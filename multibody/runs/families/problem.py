"""One problem for a family of models: as ``as_ivp`` makes it, with p in place of numbers.

The problem of the nominal model is made first. Its traced functions are run again on symbols, now
with symbols in the tables as well, so that there is no second account of how a mechanism becomes a
right-hand side. What is computed on floats, beside the run (review, energy, observables), belongs
to the model of the run at hand, which p tells.

A function that had kept numbers of the nominal model would give answers that look right. So the
traced function is compared, once, with what the kernels say of other models of the family.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, TracingError
from integrators.dae.projection import TracedProjection
from integrators.problem import direction
from integrators.tracing import Traced, traced

from ...checks import Array
from ...dynamics.loops.assembly import assemble, consistent_velocity
from ..closed import gap_invariants, loop_projection
from ..forces import driven_variables, lock_review, takes_parameters, with_parameters
from ..ivp import as_ivp
from ..observing.conserved import invariants as conserved_quantities
from ..observing.observe import observables
from ..observing.watched import mechanism_watch
from ..prescribing.jumps import drive_review
from ..scheduled import scheduled
from ..singularities.review import loop_review
from ..singularities.screen import LoopScreen
from ..slopes import TracedJacobian

if TYPE_CHECKING:
    from .family import ModelFamily

__all__ = ["FamilyProblem", "family_problem"]

#: Largest difference, in parts of the largest slope, between the traced function and the kernels:
#: both are exact but for rounding, which closed loops near singular positions enlarge.
AGREEMENT = 1e-7
#: How fast gaps of loops may grow with a parameter by rounding errors.
OPENED = 1e-7

#: Velocities of the nominal start are moved by this much for the comparison.
MOVED = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class FamilyProblem(IVP):
    """An IVP of a :class:`~multibody.ModelFamily`; its ``params`` are a row of p."""

    family: ModelFamily | None = None
    start: tuple[tuple[Any, ...], dict[str, Any]] | None = None  # how y0 follows from p
    made_by: tuple[Any, ...] = ()  # arguments of `family_problem`

    def __reduce__(self) -> Any:
        changes = {"y0": self.y0, "params": self.params, "t_span": self.t_span}
        return _again, (self.made_by, {**changes, "events": self.events, "start": self.start})

    def at(self, values: Any, *arguments: Any, **options: Any) -> FamilyProblem:
        """Return the problem of one model, with the start that :meth:`ModelFamily.starts` finds.

        Sensitivities with respect to the parameters then take into account that the start moves
        with them.

        Parameters
        ----------
        values
            Parameters, by name or in order.
        arguments, options
            Of :func:`~multibody.runs.families.starts.starts`, after the rows.
        """
        assert self.family is not None
        found = self.family.starts(self.family.rows(values), *arguments, **options)
        if not found.good.all():
            raise ValueError(found.messages[0])
        forces = self.params[self.family.size :]
        params = np.concatenate([found.p[0], forces])
        problem = self.with_(y0=found.y0[0], params=params, start=(arguments, options))
        assert isinstance(problem, FamilyProblem)
        return problem

    def with_values(self, values: dict[str, float]) -> FamilyProblem:
        """Return the problem with other values of some parameters, and a start that follows."""
        assert self.family is not None
        here = dict(zip(self.family.names, map(float, self.params)))
        if self.start is not None:
            arguments, options = self.start
            return self.at({**here, **values}, *arguments, **options)
        found = self.family.parameters(self.family.rows({**here, **values}))
        if not found.good.all():
            raise ValueError(found.messages[0])
        params = np.concatenate([found.p[0], self.params[self.family.size :]])
        problem = self.with_(params=params)
        assert isinstance(problem, FamilyProblem)
        return problem

    def by_names(self) -> IVP:
        """Return the same problem as a function of the named parameters (then forces) alone.

        All other numbers follow from them inside its functions, which are not numbers where there
        is no such model. It is slower than this one, and for programs that set parameters.
        """
        family = self.family
        assert family is not None
        rule, forces = family._rule, self.params[family.size :]
        if rule is None:
            raise ValueError(
                f"the factory of {family.name} cannot be traced, so that its numbers follow from "
                f"{', '.join(family.names)} in Python only; write one model, "
                "as_ivp(family.model(values), …)"
            )
        k = family.k

        def of_names(f: Any) -> Traced:
            def named(t: Any, y: Any, p: Any) -> Any:
                numbers = rule.on_symbols(list(p[:k]))
                return f(t, y, np.array([*p[:k], *(numbers[at] for at in family.source), *p[k:]]))

            return traced(named, n=self.n, params=k + len(forces), outputs=f._outputs)

        project = self.project
        if isinstance(project, TracedProjection) and project.codes is not None:
            project = TracedProjection(
                (of_names(project.codes[0]), of_names(project.codes[1])), project.n, _no_projection
            )
        return IVP(
            of_names(self.f),
            self.y0,
            self.t_span,
            np.concatenate([self.params[:k], forces]),
            project=project,
            name=self.name,
            state_names=self.state_names,
        )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the user's parameters."""
        return () if self.family is None else self.family.names

    def sensitivity_direction(self, name: str) -> tuple[Array, Array] | None:
        """How p and y0 change with a parameter of the family (``runs.sensitivities.forward``)."""
        family = self.family
        if family is None or name not in family.names:
            return None
        values = self.params[: family.k]
        dp = np.zeros(self.params.size)
        dp[: family.size] = family.gradient(values, name, lambda rows: family.parameters(rows).p)
        dy0 = np.zeros(self.n)
        if self.start is not None:
            arguments, options = self.start
            dy0 = family.gradient(
                values, name, lambda rows: family.starts(rows, *arguments, **options).y0
            )
        elif family.base.bonds:
            gaps = family.gradient(values, name, self._gaps_at_start)
            if np.abs(gaps).max(initial=0.0) > OPENED:
                raise ValueError(
                    f"sensitivities: with {name} the start of {family.name} has to change, or its "
                    "loops open, and how is not known; let problem.at(values, …) find it, as "
                    "family.starts does for many runs: solve_many(problem.at(…), y0=…, params=…)"
                )
        return dp, dy0

    def _gaps_at_start(self, rows: Array) -> Array:
        """Gaps of the loops at the start and their rates, of models with these parameters."""
        from .starts import binds_positions, closure_program

        family = self.family
        assert family is not None
        closure, p = closure_program(family), family.parameters(rows).p
        count, nv = len(family.tree.acting_rows), family.base.nv
        found = np.array([closure(self.t_span[0], self.y0, row) for row in p])
        K = found[:, 2 * count : (2 + nv) * count].reshape(-1, count, nv)
        rates = K @ self.y0[family.base.nq :] - found[:, count : 2 * count]
        gaps = found[:, :count][:, binds_positions(family.base)[family.tree.acting_rows]]
        return np.hstack([gaps, rates])


def family_problem(
    family: ModelFamily,
    q0: Any,
    v0: Any,
    t_span: Sequence[float],
    tau: Any,
    f_ext: Any,
    options: dict[str, Any],
) -> FamilyProblem:
    """Return the problem of the nominal model, with p for what differs; see the module."""
    given = np.array([family.nominal[name] for name in family.names])
    own = takes_parameters(tau) or takes_parameters(f_ext)
    if options.get("traced") is False:
        raise ValueError("a family is traced, so that its models share machine code; leave traced")
    if family.base.rigid_contacts:
        raise ValueError(
            f"{family.name} has contacts, whose modes are followed for each model by itself; use "
            "as_ivp(family.model(row), …), or a Study, which does so"
        )
    if "params" in options:
        raise ValueError(
            "params: forces of (t, q, v, p) receive the parameters of the family "
            f"({', '.join(family.names)}) as p; add what else they need to `vary`"
        )
    arguments = {**options, "traced": True, **({"params": given} if own else {})}
    base = as_ivp(family.base, q0, v0, t_span, tau, f_ext, **arguments)
    forces = np.zeros(0) if own else base.params  # constant joint forces
    pieces = _Pieces(family, tau, f_ext, own, len(forces))

    def directed(way: int) -> dict[str, Any]:
        t0, t1 = base.t_span
        turned = base if direction((t0, t1)) == way else base.with_(t_span=(t1, t0))
        f = pieces.lifted(turned.f)
        space = turned.manifold
        if space is not None:
            space = replace(space, velocity=pieces.lifted(space.velocity))
        return {"f": f, "jac": TracedJacobian(f), "manifold": space}

    parts = directed(direction(base.t_span))
    _check_agreement(family, base, parts["f"], tau, f_ext, own, options)
    names = set(base.invariants)
    problem = FamilyProblem(
        **parts,
        y0=base.y0,
        t_span=base.t_span,
        params=np.concatenate([family.parameters(given[None]).p[0], forces]),
        project=None if base.project is None else pieces.projection(base.project),
        invariants={name: pieces.invariant(name) for name in sorted(names)},
        name=base.name,
        state_names=base.state_names,
        review=None if base.review is None else _FamilyReview(pieces, base.review),
        observe=pieces.observe,
        watch=pieces.watch,
        family=family,
        made_by=(family, q0, v0, t_span, tau, f_ext, options),
        directed=directed,
    )
    made: FamilyProblem = scheduled(problem, family.base, family.model)
    return made


def _no_projection(t: float, y: Array, p: Array) -> Array:
    raise ValueError("the loops cannot be closed from this state; start nearer to a closed one")


def _again(made_by: tuple[Any, ...], changes: dict[str, Any]) -> IVP:
    """Make a problem anew, in another process."""
    return family_problem(*made_by).with_(**changes)


class _Pieces:
    """What the fields of the problem are made of."""

    def __init__(self, family: ModelFamily, tau: Any, f_ext: Any, own: bool, n_forces: int) -> None:
        self.family, self.tau, self.f_ext, self.own = family, tau, f_ext, own
        self.n_forces = n_forces

    def lifted(self, f: Any) -> Traced:
        """Trace a function of the nominal model once more, with symbols in its tables."""
        family = self.family
        if not isinstance(f, Traced):
            raise TracingError(
                f"the right-hand side of {family.name} is not traced, and a family needs it; use "
                "another stabilise, or solve for each model, as_ivp(family.model(row), …)"
            )
        size = family.size + self.n_forces

        def with_numbers(t: Any, x: Any, p: Any) -> Any:
            with family.symbols(p):
                if self.own:
                    return f.function(t, x, p[: family.k])
                if self.n_forces:
                    return f.function(t, x, p[family.size :])
                return f.function(t, x)

        n = family.base.nq + family.base.nv
        outputs = f._outputs
        return traced(with_numbers, n=n, params=size, outputs=outputs)

    # ------------------------------------------------------------------ of the run's own model

    def forces(self, p: Array) -> tuple[Any, Any]:
        """Joint forces and external forces of one run."""
        k = self.family.k
        tau = p[self.family.size :] if self.n_forces else with_parameters(self.tau, p[:k])
        return tau, with_parameters(self.f_ext, p[:k])

    def projection(self, nominal: Callable[..., Array]) -> Callable[..., Array]:
        """Project states onto the constraints of the run's own model."""
        family = self.family
        if not isinstance(nominal, TracedProjection):  # quaternions know nothing of numbers
            return nominal

        def otherwise(t: float, y: Array, p: Array) -> Array:
            return loop_projection(family.model(p))(t, y)

        if nominal.codes is None:
            return TracedProjection(None, nominal.n, otherwise)
        closing, settling = nominal.codes
        codes = self.lifted(closing), self.lifted(settling)
        return TracedProjection(codes, nominal.n, otherwise)

    def invariant(self, name: str) -> Callable[..., float]:
        """Evaluate a conserved quantity of the run's own model."""

        def value(t: float, x: Array, p: Array) -> float:
            model = self.family.model(p)
            found = model.tree.traced.get("family invariants")
            if found is None:
                driven = driven_variables(model, self.tau)
                found = conserved_quantities(model, driven)
                found |= gap_invariants(model) if model.bonds else {}
                model.tree.traced["family invariants"] = found
            if name not in found:
                raise ValueError(
                    f"{name!r} is conserved by the nominal model, but not by that of this run"
                )
            return found[name](t, x)

        return value

    def observe(self, solution: Any) -> Any:
        """Observables of the run's own model."""
        model = self.family.model(solution.problem.params)
        return observables(model, solution, *self.forces(solution.problem.params))

    def watch(self, problem: Any, t: Array, y: Array) -> Any:
        """What should not drift."""
        model = self.family.model(problem.params)
        seen = copy.copy(problem)
        tau, f_ext = self.forces(problem.params)
        if self.n_forces:  # `mechanism_watch` takes them from the problem's parameters
            fixed = np.array(tau)
            tau = lambda t, q, v: fixed  # noqa: E731
        return mechanism_watch(model, tau, f_ext)(seen, t, y)


class _FamilyReview:
    """Looks at a run as ``as_ivp`` has it looked at, with the run's own model."""

    def __init__(self, pieces: _Pieces, nominal: Callable[..., Any]) -> None:
        self.pieces = pieces
        family = pieces.family
        if hasattr(nominal, "screen"):
            size = family.size + pieces.n_forces
            self.screen = LoopScreen(family.base, family.symbols, size)

    def __call__(self, problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        model = self.pieces.family.model(problem.params)
        undisturbed = self.pieces.f_ext is None and "energy" in problem.invariants
        judged = loop_review(model, undisturbed) if model.bonds else None
        judged = drive_review(model, lock_review(model, judged))
        return None if judged is None else judged(problem, t, y, rtol)


def _check_agreement(
    family: ModelFamily,
    base: IVP,
    f: Traced,
    tau: Any,
    f_ext: Any,
    own: bool,
    options: dict[str, Any],
) -> None:
    """Raise if the traced function is not the dynamics of another model of the family."""
    row = family._samples[-1]
    model, p = family.model(row), family.parameters(row[None]).p[0]
    q, v, (t, _) = base.y0[: model.nq], base.y0[model.nq :], base.t_span
    v = v + MOVED * np.random.default_rng(0).standard_normal(model.nv)
    if model.bonds:
        q = assemble(model, q, t=t).q
        v = consistent_velocity(model, q, v, t=t)
    forces = np.zeros(0) if own else base.params
    torque = forces if forces.size else with_parameters(tau, row)
    alone = as_ivp(
        model, q, v, base.t_span, torque, with_parameters(f_ext, row), **options, traced=False
    )
    expected = alone.rhs(t, alone.y0)
    found = f(t, alone.y0, np.concatenate([p, forces]))
    scale = np.abs(expected).max(initial=0.0) + np.abs(alone.y0).max(initial=0.0)
    gap = float(np.abs(found - expected).max(initial=0.0))
    if not gap <= AGREEMENT * scale:
        raise AssertionError(
            f"the traced function of the family {family.name} differs from the dynamics of its "
            f"model at {dict(zip(family.names, row.tolist()))} by {gap:.3g} (of {scale:.3g}): part "
            "of it does not follow the tables; please report this, and build each model by itself"
        )
