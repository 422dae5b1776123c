"""Parts of a model, checked: the rules that `ModelBuilder`, model files and `Model` share.

Each function takes what a user may give and returns what a `Model` holds, or raises with the name
of the part, what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.inertia import CentralInertia, RigidInertia
from ..algebra.plucker import Plucker
from ..algebra.se3 import Pose
from ..checks import (
    INERTIA_TOLERANCE,
    ROTATION_TOLERANCE,
    Array,
    ArrayLike,
    assume,
    exact_array,
    floats,
    has_symbols,
    real_array,
    real_scalar,
)
from ..joints import REGISTRY, Driven, Joint
from .graph import BASE

if TYPE_CHECKING:
    from .model import Model

__all__ = [
    "FORCES",
    "FROM_DYNAMICS",
    "check_joint_object",
    "check_masses",
    "check_name",
    "force_elements",
    "gravity_vector",
    "inertia_of",
    "placement_of",
    "refuse_contacts",
    "spring_numbers",
    "two_bodies",
]

#: What dynamics makes of a model. It is built on models, and enters here what they hand on.
FROM_DYNAMICS: dict[str, Callable[..., Any]] = {}

#: Numbers of the force elements of a joint, one for each freedom.
FORCES = ("armature", "damping", "stiffness", "rest")

#: Stops of a joint without stops: (lower, upper, stiffness, damping).
NO_STOPS = (-np.inf, np.inf, 0.0, 0.0)

#: Stiffness and damping of stops of which only the places are given.
STOP_STIFFNESS, STOP_DAMPING = 1e4, 1e2

#: Part of the largest moment of inertia (or of the mass) that is no result of rounding.
BEYOND_DOUBT = 1e-6

#: Times at which a prescribed motion is looked at; a mistake shows at any of them.
SAMPLE_TIMES = (0.0, 0.3, 1.0)


def gravity_vector(value: ArrayLike) -> Array:
    """Acceleration of gravity, three numbers."""
    if np.ndim(value) == 0:
        raise ValueError(
            f"gravity: expected a vector such as (0, 0, -9.81), received {value!r}; say which way "
            "it points"
        )
    return exact_array(value, "gravity", (3,))


def check_name(name: Any, taken: Collection[str], what: str) -> str:
    """Name of a body, joint, loop or spring, if it is one and not taken."""
    if not isinstance(name, str) or not name or (what == "body" and name == BASE):
        other = " other than 'base'" if what == "body" else ""
        raise ValueError(f"name: expected a non-empty string{other}, received {name!r}")
    if name in taken:
        raise ValueError(f"name: a {what} {name!r} exists already; names must differ")
    return name


def two_bodies(where: str, a: Any, b: Any) -> None:
    """Refuse a loop or spring that connects a body with itself."""
    if a == b:
        raise ValueError(
            f"{where}: expected two different bodies, received one ({a!r}) twice; what connects "
            "a body with itself does nothing"
        )


def refuse_contacts(model: Model, what: str) -> None:
    """Raise for a model with rigid contacts, where they would be passed over in silence."""
    if model.rigid_contacts:
        raise ValueError(
            f"{what}: {model.name!r} has rigid contacts ({model.rigid_contacts[0].name!r}, …), "
            "which this form does not know; use as_ivp, give them a law (SpringDamper), or take a "
            "copy without them: dataclasses.replace(model, contacts=())"
        )


# ---------------------------------------------------------------------- joints


def check_joint_object(joint: Any, name: str) -> Joint:
    """A joint, which must not be driven to poses that are no rotations."""
    if not isinstance(joint, Joint):
        known = isinstance(joint, str) and joint in REGISTRY
        hint = f"; write {REGISTRY[joint].__name__}()" if known else ""
        raise TypeError(f"{name}: expected a joint object, received {joint!r}{hint}")
    if joint.is_rheonomic and joint.nq == 0:
        for t in SAMPLE_TIMES:
            with np.errstate(all="ignore"):
                E = joint.motion((), (), t).X.E
            gap = np.abs(E @ E.T - np.eye(3)).max()
            if isinstance(joint, Driven):  # a joint takes the direction of a quaternion only
                gap = max([gap, *(abs(norm - 1.0) for norm in joint.quaternion_norms(t))])
            if gap > ROTATION_TOLERANCE:  # a motion may be undefined at some time, hence NaN
                raise ValueError(
                    f"{name}: {joint!r} is moved to a pose that is no rotation at t = {t:g} "
                    f"(off by {gap:.3g}); let its function return unit quaternions"
                )
    return joint


def force_elements(
    name: str,
    joint: Joint,
    armature: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
    stiffness: ArrayLike = 0.0,
    rest: ArrayLike = 0.0,
    limits: Any = None,
) -> dict[str, Array]:
    """Numbers of a joint's rotor, damper, spring and stops, for each freedom."""
    given = (armature, damping, stiffness, rest)
    forces = {key: _per_freedom(value, joint, key, name) for key, value in zip(FORCES, given)}
    for key in ("armature", "damping"):
        if np.any(forces[key] < 0.0):
            raise ValueError(f"{name}: expected {key} ≥ 0, received {forces[key]}")
    if np.any(forces["armature"] != 0.0) and joint.nv > 1 and not joint.rate_is_velocity:
        raise ValueError(
            f"{name}: armature stands for rotors that turn with the derivatives of positions, "
            f"which the {joint.nv} velocities of {type(joint).__name__} are not; a rotor there "
            "needs gyroscopic terms, so add it to the body's inertia, make it a body of its own, "
            "or use joints of one freedom, or AngleSequence"
        )
    if np.any(forces["stiffness"] != 0.0) and not joint.rate_is_velocity:
        raise ValueError(
            f"{name}: a joint spring needs velocities that are the derivatives of positions, "
            f"which those of {type(joint).__name__} are not; use add_spring between points, "
            "or a force function"
        )
    forces["limits"] = _limits(limits, joint, name)
    return forces


def _per_freedom(value: ArrayLike, joint: Joint, key: str, name: str) -> Array:
    array = floats(real_array(value, f"{name}: {key}"))
    if array.ndim == 0:
        array = np.full(joint.nv, array[()])
    if array.shape != (joint.nv,):
        raise ValueError(
            f"{name}: expected one number or {joint.nv} as {key}, received shape {array.shape}"
        )
    return array


def _limits(limits: Any, joint: Joint, name: str) -> Array:
    """Rows (lower, upper, stiffness, damping)."""
    if limits is None:
        return np.tile(NO_STOPS, (joint.nv, 1))
    rows = floats(np.atleast_2d(real_array(limits, f"{name}: limits", finite=False)))
    if rows.shape not in ((joint.nv, 2), (joint.nv, 4)) or np.isnan(rows).any():
        if not joint.rate_is_velocity:
            _refuse_limits(joint, name)
        raise ValueError(
            f"{name}: expected limits (lower, upper) or (lower, upper, stiffness, damping) for "
            f"each of {joint.nv} freedoms, received {limits!r:.80} of shape {np.shape(limits)}"
        )
    if rows.shape[1] == 2:
        rows = np.hstack([rows, np.tile([STOP_STIFFNESS, STOP_DAMPING], (joint.nv, 1))])
    if np.isfinite(rows[:, :2]).any() and not joint.rate_is_velocity:
        _refuse_limits(joint, name)
    lower, upper, elements = rows[:, 0], rows[:, 1], rows[:, 2:]
    if np.any(lower > upper) or np.any(lower == np.inf) or np.any(upper == -np.inf):
        raise ValueError(f"{name}: expected lower ≤ upper as limits, received {rows.tolist()}")
    if np.any(elements < 0.0) or not np.isfinite(elements).all():
        raise ValueError(
            f"{name}: expected finite stiffness and damping ≥ 0 of the stops, received "
            f"{elements.tolist()}; for a hard stop take a large stiffness, such as 1e6"
        )
    return rows


def _refuse_limits(joint: Joint, name: str) -> None:
    raise ValueError(
        f"{name}: limits need velocities that are the derivatives of positions, which those "
        f"of {type(joint).__name__} are not"
    )


# ---------------------------------------------------------------------- bodies and springs


def placement_of(placement: Any, name: str) -> Plucker:
    """Transform X_T from a pose, a transform, a translation or nothing."""
    if placement is None:
        return Plucker.identity()
    if isinstance(placement, Plucker):
        return placement
    if isinstance(placement, Pose):
        return placement.to_plucker()
    try:
        return Plucker(np.eye(3), exact_array(placement, "placement", (3,)))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected a Pose, a Plucker transform or a translation (x, y, z) as "
            f"placement, received {placement!r:.80}"
        ) from None


def inertia_of(inertia: Any, name: str) -> RigidInertia:
    """Inertia of a body from any of its forms; None is a body without mass."""
    if inertia is None:
        return RigidInertia.zero()
    if isinstance(inertia, RigidInertia):
        return inertia
    if isinstance(inertia, CentralInertia):
        return inertia.rigid()
    try:
        return RigidInertia.from_parameters(inertia)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except TypeError:
        raise TypeError(
            f"{name}: expected Inertia(mass, com, I_com), a shape such as rod(…), or ten "
            f"parameters as inertia, received {inertia!r:.80}"
        ) from None


def spring_numbers(
    name: str,
    point_a: ArrayLike,
    point_b: ArrayLike,
    stiffness: Any,
    damping: Any,
    rest: Any,
) -> tuple[Array, Array, float, float, float]:
    """Points and constants of a spring between points."""
    constants = (("stiffness", stiffness), ("damping", damping), ("rest", rest))
    k, d, length = (real_scalar(x, f"{name}: {key}") for key, x in constants)
    if min(k, d, length) < 0.0:
        raise ValueError(
            f"{name}: expected stiffness, damping and rest length ≥ 0, received {[k, d, length]}"
        )
    points = (("point_a", point_a), ("point_b", point_b))
    a, b = (exact_array(x, f"{name}: {key}", (3,)) for key, x in points)
    return a, b, k, d, length


# ---------------------------------------------------------------------- the model as a whole


def check_masses(model: Model) -> None:
    """Raise if some freedom moves nothing: then no equation determines its acceleration."""
    check_closures(model)
    if _every_body_has_inertia(model):
        return
    find_singular_body = FROM_DYNAMICS["singular body"]
    rng = np.random.default_rng(0)
    # A singular position is possible by chance in one configuration, not in two.
    found = [find_singular_body(model, model.random(rng)) for _ in range(2)]
    if not all(found):
        return
    body = model.bodies[found[0] - 1]
    for other in _carried(model, found[0]):
        values = np.linalg.eigvalsh(model.bodies[other - 1].inertia.matrix())
        if values[0] < -INERTIA_TOLERANCE * values[-1]:  # a point mass has zeros, but for rounding
            whose = model.bodies[other - 1]
            raise ValueError(
                f"body {body.name!r} has no positive inertia at its joint {body.joint!r}, because "
                f"the inertia of body {whose.name!r} has a negative eigenvalue ({values[0]:.3g}); "
                "no body has one, and Inertia(…, check=False) let it pass: correct the moments "
                f"{whose.inertia.rotational.diagonal().tolist()} and products of inertia"
            )
    raise ValueError(
        f"body {body.name!r} moves freely at its joint {body.joint!r}, but has no inertia in "
        "that direction, and neither have the bodies that it carries; give it mass or "
        "rotational inertia, an armature, or a Fixed joint"
    )


def check_closures(model: Model) -> None:
    """Raise if a loop joint made from functions closes with too few or too many constraints.

    Those of the library are known to close; to look at them would take numbers for parameters.
    """
    for loop in model.loops:
        home = type(loop.joint).__module__
        if not home.startswith("multibody.joints.") or home.endswith(
            (".from_functions", ".driven")
        ):
            FROM_DYNAMICS["constraint count"](loop.joint)


def _every_body_has_inertia(model: Model) -> bool:
    """Whether each body by itself resists the motions that its joint allows, beyond any doubt.

    What it carries only adds to that, as long as no inertia is negative; so there is no need to
    compute anything at some position, which takes longer than all other checks.
    """
    for body in model.bodies:
        inertia, resists = body.inertia.matrix(), partial(_resists, body.joint)
        if has_symbols(inertia):
            assume(resists, inertia)
        elif not resists(inertia[None])[0]:
            return False
    return True


def _resists(joint: Joint, inertias: Array) -> Array:
    """Whether each of some inertias is not negative, and positive in the freedoms of a joint."""
    finite: Any = np.isfinite(inertias).all(axis=(1, 2))
    inertias = np.where(finite[:, None, None], inertias, 0.0)
    sizes = np.linalg.eigvalsh(inertias)
    good = finite & (sizes[:, 0] >= -INERTIA_TOLERANCE * sizes[:, -1])
    if joint.nv == 0:
        return good
    if len(joint.units) == joint.nv == 1:
        half = slice(0, 3) if joint.units[0] < 3 else slice(3, 6)
        axis, part = joint.frame[joint.units[0] % 3], inertias[:, half, half]
        own = np.einsum("a,mab,b->m", axis, part, axis)
        return np.asarray(good & (own > BEYOND_DOUBT * np.abs(part).max(axis=(1, 2))))
    return np.asarray(good & (sizes[:, 0] > BEYOND_DOUBT * sizes[:, -1]))


def _carried(model: Model, body: int) -> list[int]:
    """Numbers of a body and of all that it carries."""
    found = [body]
    for i, other in enumerate(model.bodies, 1):
        if other.parent in found:
            found.append(i)
    return found
