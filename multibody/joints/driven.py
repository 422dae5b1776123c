"""Joints whose position time prescribes."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from ..checks import Array
from . import sample_functions as sample
from .axial import Cylindrical, Revolute
from .base import Joint, register
from .from_functions import _FromPose, _frozen, _twist
from .motions import PiecewiseMotion, as_motion, time_slopes

__all__ = ["Driven"]

log = logging.getLogger(__name__)


@register
class Driven(_FromPose):
    """A joint whose position time prescribes: rheonomic, no freedom left.

    Parameters
    ----------
    joint
        The joint that is driven.
    motion
        ``motion(t) -> q``, written with NumPy and without branches, so that velocity and
        acceleration follow by exact differentiation. For a joint with one variable q may be a
        number. Or a table ``(times, positions)``, through which a cubic spline is laid, or a spline
        of SciPy; both must cover the run. A function that cannot be traced, because it branches or
        looks things up, is called as it is (slower), and differentiated by differences: nine to
        eleven digits, fewer within a millisecond of a kink. It cannot close a loop.

    Examples
    --------
    A motor at 3 rad/s:

    >>> from multibody import Revolute
    >>> motor = Driven(Revolute(), lambda t: [3.0 * t])
    >>> motor.nv, motor.motion([], [], 0.2).v
    (0, array([0., 0., 3., 0., 0., 0.]))

    From measured angles:

    >>> swing = Driven(Revolute(), ([0.0, 0.5, 1.0], [0.0, 0.25, 1.0]))
    >>> round(float(swing.motion([], [], 0.5).v[2]), 9)
    1.0
    """

    kind = "driven"
    arguments = ("joint", "function")
    is_rheonomic = True

    @classmethod
    def samples(cls) -> list[Joint]:
        """One driven freedom, and two."""
        return [
            cls(Revolute("x"), sample.swing),
            cls(Cylindrical((1.0, -2.0, 0.5)), sample.screw_in),
        ]

    def __init__(self, joint: Joint, motion: Any) -> None:
        from integrators.tracing import TracingError

        if not isinstance(joint, Joint):
            raise TypeError(f"Driven: expected a joint, received {type(joint).__name__}")
        super().__init__(joint.axis)
        self.joint, self.function = joint, as_motion(motion, joint.nq)
        first = self.function.knots[0] if isinstance(self.function, PiecewiseMotion) else 0.0
        joint.check_position(self._prescribed(float(first)))
        try:
            self._position, key = _frozen(lambda t, x: self._prescribed(t), 0, joint.nq)
        except TracingError as error:
            self.is_traceable, key = False, self.function
            self._position = lambda t, x: np.asarray(self._prescribed(t), dtype=float)
            log.warning(
                "Driven(%r): the motion is called as a Python function and differentiated by "
                "differences, because it cannot be traced (%s); a table (times, positions) is "
                "faster",
                joint,
                " ".join(str(error).split())[:200],
            )
        self._key = Driven, joint, key

    def law(self, t: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """The prescribed pose, velocity and acceleration."""
        if self.is_traceable:
            return super().law(t, q, v, p)

        def pose(t: float) -> Array:
            E, r = self.pose(t, (), ())
            return np.concatenate([np.ravel(E), r]).astype(float)

        now, first, second = time_slopes(pose, float(t))
        E, E1, E2 = (x[:9].reshape(3, 3) for x in (now, first, second))
        turn = -(E2 @ E.T + E1 @ E1.T)  # derivative of ω× = −Ė Eᵀ
        c = [turn[2, 1], turn[0, 2], turn[1, 0], *(E1 @ first[9:] + E @ second[9:])]
        return E, now[9:], np.zeros((6, 0)), np.array(c), _twist(E, E1, first[9:])

    def law_key(self) -> Any:
        """The driven joint, and what the motion computes."""
        return self._key

    def _prescribed(self, t: Any) -> Any:
        """What the motion prescribes, floats or symbols, one for each variable of the joint."""
        prescribed, names = self.function(t), self.joint.coordinates
        if prescribed is None:
            raise ValueError(
                f"Driven: expected motion(t) to return {len(names)} numbers ({', '.join(names)}), "
                "but it returned None; is its `return` missing?"
            )
        position = np.asarray(prescribed)
        position = position.reshape(1) if position.ndim == 0 else position
        if position.shape != (len(names),):
            raise ValueError(
                f"Driven: expected motion(t) to return {len(names)} numbers ({', '.join(names)}), "
                f"received shape {np.shape(prescribed)}"
            )
        return position

    def quaternion_norms(self, t: float) -> list[float]:
        """Norms of the quaternions in the prescribed position."""
        position = np.asarray(self._position(t, ()), dtype=float)
        return [float(np.linalg.norm(position[k : k + 4])) for k in self.joint.quaternion_places]

    def pose(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        """Pose of the driven joint at its prescribed position."""
        inner, position = self.joint, self._position(t, ())
        E, r, *_ = inner.law(t, position, np.zeros(inner.nv), np.asarray(inner.parameters))
        return np.asarray(E), np.asarray(r)

    def closure(self, t: Any, E: Any, r: Any, p: Any) -> list[Any]:
        """The pose of the bodies is the prescribed one."""
        if not self.is_traceable:
            raise ValueError(
                f"{self!r} cannot close a loop, because its motion cannot be traced; give a table "
                "(times, positions), or use it in the tree and cut the loop elsewhere"
            )
        E_t, r_t = self.pose(t, (), ())
        F = E @ E_t.T
        turn = [0.5 * (F[1][2] - F[2][1]), 0.5 * (F[2][0] - F[0][2]), 0.5 * (F[0][1] - F[1][0])]
        return [*turn, *(r - r_t)]

    def closure_side(self, t: Any, E: Any) -> Any:
        """The prescribed rotation, not half a turn from it."""
        F = E @ self.pose(t, (), ())[0].T
        return F[0][0] + F[1][1] + F[2][2] - 1.0

    def __reduce__(self) -> Any:
        return Driven, (self.joint, self.function)
