"""Order of methods on a mechanism, through its impacts if it has contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, Hybrid, solve
from integrators.analysis.study.runs import Program, declared_order, resolve
from integrators.methods.mechanical.generalized_alpha import GeneralizedAlpha
from integrators.methods.mechanical.half_explicit import HalfExplicit
from multibody import as_dae, as_ivp

if TYPE_CHECKING:
    from .mechanism import Mechanism

__all__ = ["for_convergence"]

#: The reference of a run through impacts: as sharp as doubles allow.
SHARP: dict[str, Any] = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}

#: Scheme that only models with contacts know, and its order through impacts.
STEPPED, STEPPED_ORDER = "MoreauJean", 1

#: Methods that take a system with its constraints, not just f.
FOR_CONSTRAINTS = GeneralizedAlpha, HalfExplicit


def for_convergence(
    what: Mechanism, t_end: float | None, methods: list[str]
) -> tuple[IVP, list[Any], Any]:
    """Return a problem, methods and a measure for :func:`~integrators.analysis.convergence`.

    A motion through impacts is no initial value problem with one right-hand side. The problem then
    stands for it with the first mode, and with a sharp event-driven run as its exact solution; each
    method is a program that solves the whole. Errors are those of positions: velocities jump, and
    impacts of two runs are never quite at the same time.
    """
    length = what.t_end if t_end is None else t_end
    problem = as_ivp(what.model, what.q0, what.v0, (0.0, length), tau=what.tau)
    if not isinstance(problem, Hybrid):
        if STEPPED in methods:
            raise ValueError(
                f"{STEPPED} is for models with contacts, which {what.model.name!r} has not"
            )
        return problem, [_of_the_loops(what, problem, name) for name in methods], None
    reference: Any = solve(problem, dense_output=True, **SHARP)
    if not reference.success:
        raise ValueError(f"the reference run of {what.model.name!r} failed: {reference.message}")

    def exact(t: Any) -> Any:
        return reference.sol(np.asarray(t, dtype=float))

    free: Any = problem.mode(problem.start).ivp(0.0, problem.y0, length)
    ivp = IVP(free.f, problem.y0, (0.0, length), free.params, exact=exact, name=what.model.name)

    def positions(t: Any, y: Any) -> Any:
        return y[: what.model.nq]

    return ivp, [_program(problem, name) for name in methods], positions


def _of_the_loops(what: Mechanism, problem: IVP, name: str) -> Any:
    """Return the method, or for one that takes M, f, g and G a program on the form with g = 0."""
    if not what.model.bonds or not isinstance(resolve(name)[1], FOR_CONSTRAINTS):
        return name
    form = "index3" if isinstance(resolve(name)[1], GeneralizedAlpha) else "projected"
    closed = as_dae(*(what.model, what.q0, what.v0, problem.t_span, what.tau), formulation=form)
    return _program(closed, name, problem.n)


def _program(problem: Any, name: str, states: int | None = None) -> Program:
    """Return a program that solves the problem by a method; its results are the first states."""
    if name == STEPPED:
        label, method, order = name, name, STEPPED_ORDER
    else:
        label, method = resolve(name)
        order = declared_order(method)  # type: ignore[assignment]

    def run(_: IVP, step: float) -> Any:
        solution = solve(problem, method=method, step=step)
        if not solution.success:
            raise ArithmeticError(solution.message)
        later = np.append(True, np.diff(solution.t) > 0.0)  # one state at each instant
        return solution.t[later], solution.y[:states, later]

    return Program(run, label, order)
