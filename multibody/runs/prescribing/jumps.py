"""Motion that time prescribes: instants at which its velocity jumps.

Where a drive changes its velocity at once, the mechanism needs an impulse, which changes all of its
velocities at that instant. Forces at other times do not tell of it: a run that goes on with the old
velocities is wrong from there on, though nothing looks amiss. So a run says where that happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checks import Array
from ...dynamics.loops.closed_loop import _run_closure
from ...dynamics.motion import run_forward
from ...dynamics.storage.loading import load
from ...joints.driven import Driven
from ...joints.motions import PiecewiseMotion

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["VelocityJump", "check_tables", "drive_review", "velocity_jumps"]

#: Times at which a motion is looked at, and the intervals between them that are looked into.
SAMPLES, INTERVALS = 257, 8

#: A change that is left over within this part of a second (or of the time, if it is longer) …
INSTANT = 1e-9
#: … and larger than this part of the velocities is a jump. A smooth motion would have to change its
#: velocity a million times in a second to look like one.
JUMP = 1e-3


class VelocityJump(NamedTuple):
    """An instant at which a prescribed motion changes its velocity (rad/s, m/s) at once."""

    name: str
    t: float
    size: float


def velocity_jumps(model: Model, t0: float, t1: float) -> list[VelocityJump]:
    """Jumps of the velocities that time prescribes, in the tree and in loops, in order of time.

    Two jumps nearer to each other than 1/256 of the interval may be found as one.

    Examples
    --------
    A slide that turns round at t = 1:

    >>> from multibody import Driven, ModelBuilder, Prismatic, Revolute, point_mass
    >>> b = ModelBuilder()
    >>> turn = Driven(Prismatic("x"), lambda t: [abs(t - 1.0)])
    >>> _ = b.add_body("slide", 0, turn, inertia=point_mass(1.0))
    >>> _ = b.add_body("bob", "slide", Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
    >>> [(jump.name, round(jump.t, 6), jump.size) for jump in velocity_jumps(b.build(), 0.0, 3.0)]
    [('slide', 1.0, 2.0)]
    """
    if not model.is_rheonomic:
        return []
    names = [b.name for b in model.bodies for _ in range(6)]
    at = model.tree.arrays["loop_at"]
    names += [c.name for k, c in enumerate(model.bonds) for _ in range(at[k + 1] - at[k])]
    neutral = model.neutral()

    def velocity(t: float) -> Array:
        w = load(model, neutral, None, t)
        run_forward(w)
        moved = w.v_J.ravel().copy()
        if model.bonds:
            _run_closure(w)
        return np.concatenate([moved, w.nu])

    low, high = min(t0, t1), max(t0, t1)
    times = np.linspace(low, high, SAMPLES)
    with np.errstate(all="ignore"):
        along = np.array([velocity(t) for t in times])
        changes = np.abs(np.diff(along, axis=0)).max(axis=1)
        size = np.nanmax(np.abs(along), initial=0.0)
        found: list[VelocityJump] = []
        for k in np.sort(np.argsort(-np.nan_to_num(changes))[:INTERVALS]):
            jump = _narrowed(velocity, times[k], times[k + 1], along[k], along[k + 1])
            if jump is not None and np.abs(jump[1]).max() > JUMP * size:
                worst = int(np.argmax(np.abs(jump[1])))
                # The same instant may be the end of one interval and the start of the next.
                if not found or jump[0] - found[-1].t > 2 * INSTANT * max(1.0, abs(jump[0])):
                    found.append(VelocityJump(names[worst], jump[0], float(np.abs(jump[1][worst]))))
    return found


def _narrowed(
    velocity: Callable[[float], Array], a: float, b: float, at_a: Array, at_b: Array
) -> tuple[float, Array] | None:
    """Where between a and b the largest change is, and what is left of it within an instant."""
    while b - a > INSTANT * max(1.0, abs(a)):
        middle = 0.5 * (a + b)
        here = velocity(middle)
        if not np.isfinite(here).all():
            return None
        if np.abs(here - at_a).max() >= np.abs(at_b - here).max():
            b, at_b = middle, here
        else:
            a, at_a = middle, here
    return float(0.5 * (a + b)), at_b - at_a


def check_tables(model: Model, span: tuple[float, float]) -> None:
    """Raise if a run leaves the table or spline that drives a joint."""
    parts: list[Any] = [*model.bodies, *model.loops]
    for part in parts:
        motion = part.joint.function if isinstance(part.joint, Driven) else None
        if isinstance(motion, PiecewiseMotion):
            first, last = float(motion.knots[0]), float(motion.knots[-1])
            if min(span) < first or max(span) > last:
                raise ValueError(
                    f"the motion that drives {part.name!r} is known from t = {first:g} to "
                    f"{last:g}, and the run goes from {span[0]:g} to {span[1]:g}; give a longer "
                    "table"
                )


def drive_review(model: Model, review: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Review of runs (see :class:`integrators.IVP`): jumps, besides what another review says."""
    if not model.is_rheonomic:
        return review

    def told(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        status, text = (review and review(problem, t, y, rtol)) or (None, "")
        jumps = velocity_jumps(model, float(t[0]), float(t[-1])) if len(t) > 1 else []
        if not jumps:
            return (status, text) if text else None
        first = jumps[0]
        more = f" (and {len(jumps) - 1} more)" if len(jumps) > 1 else ""
        remark = (
            f"the motion that time prescribes in {first.name!r} jumps in velocity by "
            f"{first.size:.3g} at t = {first.t:.6g}{more}: an impulse acts there, which this run "
            "does not contain, so velocities are wrong from then on; prescribe a motion with a "
            "continuous velocity, or stop there and start again with velocities after the impulse"
        )
        return status, f"{text}; {remark}" if text else remark

    return told
