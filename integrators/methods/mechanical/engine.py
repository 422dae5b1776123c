"""What the one-step methods for mechanical systems with constraints share.

They take their own steps with M, f, g and G of the system behind a
:class:`~integrators.dae.Formulation`, and leave everything else (time, output, events, step sizes)
to the loop that all methods have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dae.acceleration import Weighted
from ...dae.formulations.table import FORMULATIONS, MECHANICAL, formulate
from ...dae.problem import Formulation
from ...dae.system import Mechanical
from ...problem import IVP
from ...stepping.engine import Engine, Options
from ..user import CustomEngine
from .functions import SystemFunctions

__all__ = ["ConstrainedEngine", "ConstrainedStep", "system_of"]

Array = NDArray[np.float64]

DIFFERENCE = 1e-7  # of the interval: increment of time for the rate of λ, needed by dense output


def system_of(problem: IVP, method: str) -> Formulation:
    """Return the problem as a formulation that the method can use, or say what to give."""
    usable = [name for name, form in FORMULATIONS.items() if MECHANICAL in form.methods]
    if not isinstance(problem, Formulation) or problem.formulation not in usable:
        given = problem.formulation if isinstance(problem, Formulation) else repr(problem)
        raise ValueError(
            f"{method} needs M, f, g and G, not just f: give it Mechanical(...).formulation(name) "
            f"with a name of {', '.join(usable)}; got {given}"
        )
    return problem


class ConstrainedStep(ABC):
    """A method bound to a system: what :class:`ConstrainedEngine` drives.

    Attributes
    ----------
    order, estimate_order
        Order of the method and of its error estimate.
    evaluations
        Evaluations of the system's functions so far.
    """

    order: int
    estimate_order: int

    def __init__(self, problem: Formulation, options: Options) -> None:
        self.system: Mechanical = problem.mechanical
        self.p = problem.params
        self.fixed = options.fixed
        self.evaluations = 0
        self.full_rank = self.system.rank() == self.system.m

    @abstractmethod
    def advance(
        self, t: float, q: Array, v: Array, multipliers: Array | None, h: float
    ) -> tuple[Array, Array, Array, Array | None]:
        """One step: new q, v and λ, and an error estimate of [q; v] or None."""

    def step(self, f: Any, t: float, y: Array, h: float) -> Any:
        """Advance a state by one step, as the protocol of :class:`Method` asks for."""
        nq, nv, m = self.system.nq, self.system.nv, self.system.m
        inside = y.size > nq + nv
        multipliers = y[nq + nv : nq + nv + m] if inside else None
        q, v, found, estimate = self.advance(t, y[:nq], y[nq : nq + nv], multipliers, h)
        new = np.zeros(y.size)  # μ is zero
        new[: nq + nv] = np.concatenate([q, v])
        if inside:
            new[nq + nv : nq + nv + m] = found
        if estimate is None:
            return new
        error = np.zeros(y.size)
        error[: nq + nv] = estimate
        return new, error

    def terms(self, t: float, q: Array, v: Array) -> Any:
        """M, f, g, G, γ, ν and q̇, counted."""
        self.evaluations += 1
        return self.system.terms(t, q, v, self.p)

    def acceleration(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """v̇ and λ from G v̇ = γ."""
        now = self.terms(t, q, v)
        return Weighted(now.M, now.G, self.system.rank_tolerance).accelerate(now.f, now.gamma)


class ConstrainedEngine(CustomEngine):
    """A method for systems with constraints bound to a problem."""

    method: Any

    def __init__(self, method: Any, problem: Formulation, options: Options) -> None:
        self.method, self.system = method, problem.mechanical
        plain = problem.with_(f=_slope(problem), mass=None, index=None, jac=None)
        Engine.__init__(self, plain, options)

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """ẏ without the rates of λ, which are no part of the equations."""
        slope = super().slope(t, y)
        slope[self.system.nq + self.system.nv :] = 0.0
        return slope

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember the first slope, with the rates of λ; choose the first step."""
        super().begin(CustomEngine.slope(self, self.t, self.problem.y0), first_step)

    def statistics(self) -> dict[str, int]:
        """Counters; an evaluation of the system counts as one of f."""
        more = getattr(self.method, "evaluations", 0)
        return {**super().statistics(), "nfev": int(self.state.nfev) + more}


def _slope(problem: Formulation) -> Any:
    """ẏ of every component of the state, for first steps and dense output."""
    system: Mechanical = problem.mechanical
    base = formulate(system, "index1", allow_inconsistent=True).f
    n = system.nq + system.nv
    if problem.n == n:
        return base
    t0, t1 = problem.t_span
    ahead, accelerate = DIFFERENCE * (t1 - t0), SystemFunctions(system).accelerate

    def slope(t: float, y: Any, p: Any = problem.params) -> Any:
        arguments = (p,) if problem.params.size else ()
        x = np.asarray(y, dtype=float)[:n]
        rate = np.asarray(base(t, x, *arguments))
        there = x + ahead * rate
        now, then = (accelerate(s, z, p) for s, z in ((t, x), (t + ahead, there)))
        out = np.zeros(problem.n)
        out[:n] = rate
        out[n : n + system.m] = (then - now)[-system.m :] / ahead
        return out

    return slope
