"""The master test of a joint: do position, freedoms, bias and rates belong together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algebra.spatial import Motion, crm
from ..checks import Array
from .base import Joint

__all__ = ["JointReport", "check_joint"]

#: Step of the central differences; with extrapolation their error is about 1e-10.
STEP = 1e-3
#: Largest accepted difference: a thousand times the error of the differences.
TOLERANCE = 1e-7


@dataclass(frozen=True)
class JointReport:
    """Largest residual of each law that a joint must obey; bool() says whether all hold."""

    joint: Joint
    residuals: dict[str, float]

    def __bool__(self) -> bool:
        return all(value <= TOLERANCE for value in self.residuals.values())

    def __str__(self) -> str:
        lines = [f"{self.joint!r}: {'consistent' if self else 'NOT consistent'}"]
        for law, value in self.residuals.items():
            lines.append(f"  {'ok  ' if value <= TOLERANCE else 'FAIL'} {law}: {value:.1e}")
        return "\n".join(lines)


def check_joint(joint: Joint, samples: int = 5, seed: int = 0) -> JointReport:
    """Test a joint on random positions and velocities, by differences along its own motion.

    Checked are dX_J/dt = −crm(v_J) X_J, c_J = dv_J/dt at constant v, Tᵀ S = 0 with T of full
    rank, the derivative of integrate(q, v, t) against q̇, difference ∘ retract, and that
    quaternions keep their norm.

    Examples
    --------
    >>> from multibody import Planar
    >>> bool(check_joint(Planar()))
    True
    """
    rng = np.random.default_rng(seed)
    worst: dict[str, float] = {}

    def note(law: str, residual: Array | float) -> None:
        worst[law] = max(worst.get(law, 0.0), float(np.max(np.abs(residual), initial=0.0)))

    for _ in range(samples):
        q, v, t = joint.random(rng), rng.standard_normal(joint.nv), float(rng.uniform(0.1, 1.0))
        now = joint.motion(q, v, t)

        def along(h: float, q: Array = q, v: Array = v, t: float = t) -> Array:
            """Position after h, to fourth order in h."""
            k1 = joint.position_rate(q, v, t)
            k2 = joint.position_rate(q + h / 2 * k1, v, t + h / 2)
            k3 = joint.position_rate(q + h / 2 * k2, v, t + h / 2)
            k4 = joint.position_rate(q + h * k3, v, t + h)
            return np.asarray(q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))

        def transform(h: float, v: Array = v, t: float = t) -> Array:
            return joint.motion(along(h), v, t + h).X.matrix()

        def velocity(h: float, v: Array = v, t: float = t) -> Array:
            return joint.motion(along(h), v, t + h).v

        note("dX_J/dt = −crm(v_J) X_J", _slope(transform) + crm(Motion(now.v)) @ now.X.matrix())
        note("c_J = dv_J/dt at constant v", _slope(velocity) - now.c)
        T = joint.constraint_basis(q, t)
        note("TᵀS = 0", T.T @ now.S)
        missing = 6 - joint.nv - np.linalg.matrix_rank(T) if T.size else 6 - joint.nv
        note("T has full rank", float(missing))
        missing = joint.nv - np.linalg.matrix_rank(now.S) if now.S.size else joint.nv
        note("S has full rank", float(missing))
        when = {"t": t} if joint.is_rheonomic else {}
        moved = _slope(lambda h, q=q, v=v, when=when: joint.integrate(q, v, h, **when))
        note("d integrate/dt = q̇", moved - joint.position_rate(q, v, t))
        size = len(np.asarray(joint.group_velocity(t, q, v)))
        u = rng.uniform(-0.5, 0.5, size)
        note("difference(q, retract(q, u)) = u", joint.difference(q, joint.retract(q, u)) - u)
        for at in joint.quaternion_places:
            note("q·q̇ = 0", q[at : at + 4] @ joint.position_rate(q, v, t)[at : at + 4])
    return JointReport(joint, worst)


def _slope(g) -> Array:  # type: ignore[no-untyped-def]
    """Derivative at 0 by central differences, extrapolated once."""
    h = STEP
    coarse = (np.asarray(g(h)) - np.asarray(g(-h))) / (2 * h)
    fine = (np.asarray(g(h / 2)) - np.asarray(g(-h / 2))) / h
    return np.asarray((4 * fine - coarse) / 3)
