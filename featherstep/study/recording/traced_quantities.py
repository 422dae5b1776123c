"""Quantities of a family of models as machine code: functions of (t, y, p), p a row of its problem.

What ``quantities`` computes for one model at a time, with all checks, is here traced once for all
models. So it can be followed along runs in lanes, and costs microseconds elsewhere. Before it is
used it is compared with the former on models and states of the study.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from integrators import traced
from multibody.dynamics.motion import energy_kernel
from multibody.dynamics.trees.kinematics import forward
from multibody.runs.closed import Stabilisation
from multibody.runs.forces import external_force_law, joint_force_law, takes_parameters
from multibody.runs.observing.quantities import (
    EnergyOf,
    Function,
    JointLoad,
    PointOf,
    Quantity,
    Seen,
    State,
)
from multibody.runs.traced import set_forces, symbolic_state

if TYPE_CHECKING:
    from multibody import ModelFamily

__all__ = ["agrees", "followed", "traced_quantity"]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)

AGREEMENT = 1e-6  # largest relative difference from the quantity of a single model


class _Forces:
    """Forces on symbols: tau and f_ext as the family's problem has them."""

    def __init__(self, family: ModelFamily, tau: Any, f_ext: Any) -> None:
        self.own = takes_parameters(tau) or takes_parameters(f_ext)
        self.family = family
        self.tau, constant = joint_force_law(family.base, tau)
        self.f_ext = external_force_law(family.base, f_ext)
        self.with_p = takes_parameters(f_ext)
        self.constant = len(constant)

    def enter(self, w: Any, t: Any, x: Any, p: Any) -> None:
        """Put them into a workspace."""
        nq, k = self.family.base.nq, self.family.k
        given = p[:k] if self.own else p[self.family.size :]
        tau = None if self.tau is None else self.tau(t, x[:nq], x[nq:], given)
        arguments = (t, x[:nq], x[nq:], *((p[:k],) if self.with_p else ()))
        outside = None if self.f_ext is None else self.f_ext(*arguments)
        set_forces(self.family.base, w, tau, outside)


def _symbolic(
    quantity: Quantity, family: ModelFamily, tau: Any, f_ext: Any
) -> Callable[..., Any] | None:
    """Function of symbols (t, y, p); None if there is none for this quantity."""
    model = family.base
    if isinstance(quantity, EnergyOf):
        kind = quantity.kind

        def of_energy(w: Any, t: Any, x: Any, p: Any) -> Any:
            energy_kernel(w)
            kinetic, potential = w.totals[0], w.totals[1]
            return {"kinetic": kinetic, "potential": potential, "total": kinetic + potential}[kind]

        return of_energy
    if isinstance(quantity, PointOf):
        i, axis = model.number(quantity.body) - 1, "xyz".index(quantity.axis)
        point = np.array(quantity.point)

        def of_point(w: Any, t: Any, x: Any, p: Any) -> Any:
            forward(w)
            if i < 0:
                return point[axis]
            turned = model.tree.turn[i] @ point
            return w.r_0[i, axis] + sum(w.E_0[i, k, axis] * turned[k] for k in range(3))

        return of_point
    if isinstance(quantity, JointLoad) and quantity.component == "force":
        if quantity.kind != "loop_force":
            return None
        forces = _Forces(family, tau, f_ext)
        names = [loop.name for loop in model.loops]
        start, stop = model.tree.arrays["loop_at"][names.index(quantity.name) :][:2]

        def of_force(w: Any, t: Any, x: Any, p: Any) -> Any:
            forces.enter(w, t, x, p)
            Stabilisation().symbolic(w)
            total = 0.0
            for a in range(3, 6):
                part = 0.0
                for r in range(start, stop):
                    part = part + w.lam[r] * w.T_0[r, a]
                total = total + part * part
            return np.sqrt(total)

        return of_force
    return None


def traced_quantity(
    quantity: Quantity, family: ModelFamily, tau: Any, f_ext: Any, size: int
) -> Any | None:
    """Quantity as a traced function of (t, y, p); None if there is none.

    Parameters
    ----------
    quantity, family
        What is recorded, and of which models.
    tau, f_ext
        Forces that act.
    size
        Length of p.
    """
    model = family.base
    function = _symbolic(quantity, family, tau, f_ext)
    if function is None:
        return None

    def value(t: Any, x: Any, p: Any) -> Any:
        with family.symbols(p):
            return np.array([function(symbolic_state(model, t, x), t, x, p)])

    try:
        return traced(value, n=model.nq + model.nv, params=size, outputs=1)
    except Exception as error:
        log.info("%r is not traced: %s", quantity, error)
        return None


def agrees(quantity: Quantity, program: Any, samples: Sequence[tuple[Seen, float, Array]]) -> bool:
    """Whether a traced quantity is that of single models, at some states of theirs."""
    for seen, t, y in samples:
        slow = float(quantity.along(seen, np.array([t]), y[:, None])[0])
        fast = float(program(t, y, seen.problem.params)[0])
        if not abs(fast - slow) <= AGREEMENT * max(abs(slow), abs(fast), 1e-9):
            log.info("%r is not traced: %.9g instead of %.9g", quantity, fast, slow)
            return False
    return bool(samples)


def followed(quantity: Quantity, program: Any | None, seen: Seen, names: Sequence[str]) -> Any:
    """Function g(t, y, p) that lanes can follow; None if there is none.

    Parameters
    ----------
    quantity
        What is recorded.
    program
        It as a traced function, if there is one.
    seen
        Names of the states.
    names
        Of the first entries of p, where those are the study's parameters.
    """
    if isinstance(quantity, State):
        i = quantity.number(seen)
        return lambda t, y: y[i]
    if program is not None:
        return program
    if isinstance(quantity, Function):
        return quantity.for_lanes(seen, len(names))
    return None
