"""Accelerations of closed loops along a run, and what a start must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array
from ..dynamics.loops.assembly import binds_positions, project_state, wrong_way_round
from ..dynamics.loops.closed_loop import (
    RANK_TOLERANCE,
    REGULARISATION,
    REGULARISATION_INDEPENDENT,
    constraints,
    constraints_at,
    fast_constrained_accelerations,
    mobility,
    solved,
)
from ..dynamics.loops.multipliers import ALPHA, BETA, EPSILON, constrained_kernel
from ..dynamics.loops.projection import projected

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["Stabilisation", "check_consistent", "gap_invariants", "loop_projection"]

#: Constraints up to which a closed loop is traced; beyond, compiling takes too long.
TRACED_CONSTRAINTS = 30

#: Largest gap and rate of the gap of an initial state.
CONSISTENT = 1e-6


@dataclass(frozen=True)
class Stabilisation:
    """How the accelerations of closed loops are found, and what is fed back into them.

    Attributes
    ----------
    alpha, beta
        Of Baumgarte's term −2α(Kv − ν) − β²δ; α is negative where time runs backwards.
    rank
        "regular": constraints that are redundant stay so (fast, traced). "truncate": singular
        values are looked at in every evaluation, which passes through singular positions.
    rank_tolerance
        Of "truncate".
    epsilon
        Of "regular": what is added to the diagonal of KH⁻¹Kᵀ, in parts of its mean.
    """

    alpha: float = 0.0
    beta: float = 0.0
    rank: str = "regular"
    rank_tolerance: float = RANK_TOLERANCE
    epsilon: float = REGULARISATION

    def fed_back(self, alpha: float, beta: float) -> Stabilisation:
        """Return the same with other gains."""
        return replace(self, alpha=alpha, beta=beta)

    def starting_at(self, model: Model, q: Array, t: float) -> Stabilisation:
        """Return the same with the least regularisation that the constraints at a position need."""
        if mobility(model, q, t=t).rank < len(model.tree.acting_rows):
            return self
        return replace(self, epsilon=REGULARISATION_INDEPENDENT)

    def symbolic(self, w: Any) -> None:
        """Accelerations on a workspace of symbols."""
        w.stabilise[ALPHA], w.stabilise[BETA] = self.alpha, self.beta
        w.stabilise[EPSILON] = self.epsilon
        constrained_kernel(w)

    def solution(self, model: Model, w: Any, f_ext: Any) -> tuple[Array, Array]:
        """Accelerations and multipliers for a loaded workspace, which holds T afterwards."""
        if self.rank == "regular":
            return fast_constrained_accelerations(w, self.alpha, self.beta, self.epsilon)
        state = (w.q.copy(), w.v.copy(), w.tau.copy(), f_ext, float(w.t[0]))
        feedback = (self.alpha, self.beta, self.rank_tolerance)
        found = solved(model, *state, "projection", *feedback)
        return found.accelerations, found.multipliers


def check_consistent(model: Model, q: Array, v: Array, t: float) -> None:
    """Raise if an initial state leaves loops open, closes them askew or tears them apart."""
    c = constraints(model, q, v, t=t)
    wrong = wrong_way_round(model, q, t)
    if wrong is not None and np.abs(c.delta).max(initial=0.0) <= CONSISTENT:
        raise ValueError(
            f"initial state: the loop {wrong!r} is closed half a turn the wrong way (its gap is 0, "
            "but its frames are half a turn off or its axes antiparallel, expected aligned); use "
            "assemble(model, q0).q"
        )
    for name, values, remedy in (
        ("gap", c.delta, "use assemble(model, q0).q"),
        ("rate of the gap", c.K @ v - c.nu, "use consistent_velocity(model, q0, v0)"),
    ):
        if not values.size:
            continue
        worst = int(np.argmax(np.abs(values)))
        if abs(values[worst]) > CONSISTENT * (1.0 + np.abs(v).max(initial=0.0)):
            raise ValueError(
                f"initial state: the loop constraint {c.names[worst]} has a {name} of "
                f"{values[worst]:.3g}, expected 0 within {CONSISTENT:g}; {remedy}"
            )


def loop_projection(model: Model) -> Callable[[float, Array], Array]:
    """Projection of position and velocity onto the loops of a model, without tracing it."""
    fast = bool(binds_positions(model).all())

    def project(t: float, x: Array) -> Array:
        q, v = model.normalise(x[: model.nq]), x[model.nq :]
        found = projected(model, q, v, t) if fast else None
        q, v = project_state(model, q, v, t=t) if found is None else found
        return np.concatenate([model.normalise(q), v])

    return project


def gap_invariants(model: Model) -> dict[str, Callable[..., float]]:
    """Largest gap and largest rate of a gap, which stay zero."""
    nq = model.nq

    def gap(t: float, x: Array) -> float:
        return float(np.abs(constraints_at(model, x[:nq], None, t).delta).max(initial=0.0))

    def rate(t: float, x: Array) -> float:
        c = constraints_at(model, x[:nq], x[nq:], t)
        return float(np.abs(c.K @ x[nq:] - c.nu).max(initial=0.0))

    return {"loop gap": gap, "loop gap rate": rate}
