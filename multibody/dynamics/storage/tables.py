"""Tables of a model that the kernels read, made once (see ``tree``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.plucker import Plucker, scrx, scrz
from ...checks import Array, blank, number
from ...joints import Joint
from ...kernels.inertia import rigid_transform

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "as_kind",
    "cos_sin",
    "decompose",
    "doubtful_pivots",
    "is_symbolic",
    "joint_elements",
    "joint_turn",
    "numbers",
    "quarter_turns",
    "reference_points",
    "starts",
]


def is_symbolic(model: Model) -> bool:
    """Whether some number of a model is a symbol of a function that is being traced."""
    found = [model.gravity]
    for b in model.bodies:
        found += [b.placement.E, b.placement.r, b.inertia.array, b.limits]
        found += [b.armature, b.damping, b.stiffness, b.rest]
        found += [np.asarray(b.joint.parameters), b.joint.axis]
    for c in model.loops:
        found += [np.asarray(c.joint.parameters), c.joint.axis]
        for X in (c.placement_predecessor, c.placement_successor):
            found += [X.E, X.r]
    found += [np.asarray(c.parameters) for c in model.constraints]
    for s in model.springs:
        found += [s.point_a, s.point_b, np.asarray([s.stiffness, s.damping, s.rest])]
    found += [named.element.numbers for named in model.elements]
    return any(array.dtype == object for array in found)


def numbers(values: Iterable[Any]) -> Array:
    """Floats, or symbols, in an array."""
    listed = list(values)
    return np.array(listed) if listed else np.zeros(0)


def reference_points(a: dict[str, Any]) -> tuple[Array, Array]:
    """Constants of the three-dimensional inverse dynamics (``newton_euler``)."""
    nb = len(a["parent"])
    symbols = a["inertia"].dtype == object
    reach, moments = a["r_T"].copy(), blank((nb, 10), symbols)
    for i in range(nb):
        p = a["parent"][i]
        if p >= 0:
            reach[i, 2] += a["offset"][p, 1]
        shifted = blank((10,), symbols)
        rigid_transform(
            np.eye(3), np.array([0.0, 0.0, -a["offset"][i, 1]]), a["inertia"][i], shifted
        )
        xx, _, yy, _, _, zz = shifted[4:]
        second = -shifted[4:]
        second[[0, 2, 5]] += (xx + yy + zz) / 2  # J = ½ tr(I) 1 − I
        moments[i] = [*shifted[:4], *second]
    return reach, moments


def joint_elements(model: Model, every: bool = False) -> Array:
    """Stiffness, rest, damping, and the stops of each freedom (``multibody.dynamics.forces``).

    Empty if there are none, unless `every` row is wanted.
    """
    rows = [
        [b.stiffness[k], b.rest[k], b.damping[k], *b.limits[k]]
        for b in model.bodies
        for k in range(b.joint.nv)
    ]
    table = numbers(rows).reshape(-1, 7)
    return table if every or np.any(table[:, [0, 2, 5, 6]] != 0.0) else np.empty((0, 7))


def starts(sizes: Any) -> Array:
    """Where pieces of these sizes start when put one behind the other, and their total."""
    return np.concatenate([[0], np.cumsum([*sizes])]).astype(np.int64)


def as_kind(array: Any, kind: str) -> Array:
    """Array of integers or of floats, as a workspace wants it."""
    if kind[0] != "i" and np.asarray(array).dtype == object:
        return np.asarray(array)
    dtype = np.int64 if kind[0] == "i" else np.float64
    return np.ascontiguousarray(array, dtype=dtype)


def joint_turn(joint: Joint, reverse: bool) -> Array:
    """C of a body; a reversed axial joint is the same joint about the opposite axis."""
    C = joint.frame
    if reverse and joint.is_axial:
        C = np.diag([1.0, -1.0, -1.0]) @ C + 0.0
    return C


def quarter_turns(angle: float) -> tuple[int, float]:
    """Quarter turns nearest to an angle, and the rest of it; no rest where it is only rounding."""
    quarters = round(angle / (np.pi / 2))
    rest = angle - quarters * (np.pi / 2)
    return quarters % 4, 0.0 if abs(rest) < 1e-14 else rest


def cos_sin(angle: float) -> tuple[float, float]:
    """Exact at multiples of a quarter turn, so that right angles cost nothing when traced."""
    quarters, rest = quarter_turns(angle)
    if rest == 0.0:
        return [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][quarters]
    return number(np.cos(angle)), number(np.sin(angle))


# Below this sine of the angle between the axes the screw distances would lose digits.
SMALLEST_BEND = 0.1


def decompose(X: Plucker) -> tuple[tuple[float, float], ...] | None:
    """Screws (θ₂, d₂), (α, a), (θ₁, d₁) with X = scrz(θ₂, d₂) scrx(α, a) scrz(θ₁, d₁).

    None where z and z′ are nearly, but not exactly, parallel.
    """
    E, r = X.E, X.r
    sine = number(np.hypot(E[2, 0], E[2, 1]))
    if sine < 1e-14:  # parallel: one screw along z is enough
        alpha = 0.0 if E[2, 2] > 0 else np.pi
        a = number(np.hypot(r[0], r[1]))
        theta1 = number(np.arctan2(r[1], r[0])) if a > 0.0 else 0.0
        # E = rz(θ₂) rx(α) rz(θ₁): the first row of rz(θ₂) follows from the rest.
        rest = scrx(alpha, 0.0).E @ scrz(theta1, 0.0).E
        turn = E @ rest.T
        theta2 = number(np.arctan2(turn[0, 1], turn[0, 0]))
        d1 = number(r[2])
        if a == 0.0 and alpha == 0.0:  # one screw: leave it to the joint's
            return (theta2, d1), (0.0, 0.0), (0.0, 0.0)
        if theta1 == 0.0:  # as Denavit and Hartenberg have it
            return (theta2, d1 if alpha == 0.0 else -d1), (alpha, a), (0.0, 0.0)
        return (theta2, 0.0), (alpha, a), (theta1, d1)
    if sine < SMALLEST_BEND:
        return None
    alpha = number(np.arctan2(sine, E[2, 2]))
    theta2 = number(np.arctan2(E[0, 2], E[1, 2]))
    theta1 = number(np.arctan2(E[2, 0], -E[2, 1]))
    if abs(abs(theta1) - np.pi) < 1e-14:  # the same with the x axis turned round
        alpha, theta1 = -alpha, 0.0
        theta2 = number(np.arctan2(-E[0, 2], -E[1, 2]))
    x = np.array([np.cos(theta1), np.sin(theta1), 0.0])
    a = number(x @ r)
    d2 = number((r - a * x)[:2] @ E[2, :2]) / sine**2
    d1 = number(r[2] - d2 * E[2, 2])
    tiny = 1e-15 * (1.0 + number(np.abs(r).max()))
    a, d1, d2 = (0.0 if abs(z) < tiny else z for z in (a, d1, d2))
    theta1, theta2 = (0.0 if abs(z) < 1e-15 else z for z in (theta1, theta2))
    return (theta2, d2), (alpha, a), (theta1, d1)


def doubtful_pivots(a: dict[str, Any]) -> tuple[Array, Array]:
    """Freedoms whose pivot may be nothing but the rest of a subtraction; bodies without inertia.

    Not if the body itself has inertia in this direction: then the pivot is at least that. But
    where S depends on the position, several freedoms of a joint may become dependent.
    """
    nb, nv = len(a["parent"]), len(a["unit"])
    doubtful, frail = np.zeros(nv, dtype=np.int64), np.zeros(nb, dtype=np.int64)
    for i, inertia in enumerate(a["inertia"]):
        empty = not any(inertia[k] != 0.0 for k in (0, 4, 6, 9))
        freedoms = range(a["v_at"][i], a["v_at"][i + 1])
        frail[i] = empty and not freedoms
        for k in freedoms:
            unit = a["unit"][k]
            if a["armature"][k] != 0.0:
                light = False
            elif unit < 0:
                light = empty
            else:
                light = inertia[4 + unit * (unit + 3) // 2 if unit < 3 else 0] == 0.0
            light = bool(light)
            frail[i] |= light
            doubtful[k] = light or (unit < 0 and len(freedoms) > 1)
    return doubtful, frail
