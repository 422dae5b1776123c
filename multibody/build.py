"""ModelBuilder: put bodies, joints, loops and springs together, in any order, under any names."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import Array, ArrayLike, real_array, real_scalar
from .inertia import CentralInertia, RigidInertia
from .joints import REGISTRY, Joint
from .model import Body, Loop, Model, PointSpring
from .plucker import Plucker
from .se3 import Pose

__all__ = ["ModelBuilder"]

Placement = Any  # Pose, Plucker, a translation of three numbers, or None


@dataclass
class _Entry:
    parent: str
    joint: Joint
    placement: Plucker
    inertia: RigidInertia
    reverse: bool
    forces: dict[str, Array]


class ModelBuilder:
    """Collects the parts of a model.

    Parameters
    ----------
    gravity
        Acceleration of gravity in base coordinates.
    name
        For printing.

    Examples
    --------
    A double pendulum of two rods that swing about y:

    >>> from multibody import Revolute, rod
    >>> b = ModelBuilder(name="double pendulum")
    >>> inertia = rod((0, 0, 0), (0, 0, -1), mass=1.0)
    >>> b.add_body("upper", 0, Revolute("y"), inertia=inertia)
    1
    >>> b.add_body("lower", "upper", Revolute("y"), (0, 0, -1), inertia)
    2
    >>> b.build().nv
    2
    """

    def __init__(self, gravity: ArrayLike = (0.0, 0.0, -9.81), name: str = "model") -> None:
        self.gravity = real_array(gravity, "gravity", (3,))
        self.name = name
        self._bodies: dict[str, _Entry] = {}
        self._loops: dict[str, tuple[str, str, Joint, Plucker, Plucker]] = {}
        self._springs: dict[str, tuple[str, Array, str, Array, float, float, float]] = {}

    def add_body(
        self,
        name: str,
        parent: str | int,
        joint: Joint,
        placement: Placement = None,
        inertia: Any = None,
        reverse: bool = False,
        *,
        armature: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        rest: ArrayLike = 0.0,
        limits: Any = None,
    ) -> int:
        """Add a body that hangs on `joint` from its parent.

        Parameters
        ----------
        name
            Any name that is not taken.
        parent
            Name of the parent, which may be added later, or 0 (or "base") for the base. A number
            means the body that was added as that one.
        joint
            A joint object, such as ``Revolute(axis="y")``.
        placement
            Where the joint sits on the parent: a `Pose` (parent from joint frame), a `Plucker`
            transform X_T, three numbers for a translation, or None for the parent's origin.
        inertia
            `RigidInertia`, `CentralInertia` or ten parameters; None for a body without mass.
        reverse
            Whether the joint was made with this body as its predecessor.
        armature, damping, stiffness, rest
            One number, or one for each velocity variable: rotor inertia seen at the joint,
            viscous damping, spring constant and the position where the spring is at rest.
        limits
            (lower, upper) or (lower, upper, stiffness, damping) of elastic stops; for joints
            with several freedoms a row for each. Stiffness defaults to 1e4, damping to 1e2.

        Returns
        -------
        int
            How many bodies there are now.
        """
        if not isinstance(name, str) or not name or name == "base":
            raise ValueError(
                f"name: expected a non-empty string other than 'base', received {name!r}"
            )
        if name in self._bodies:
            raise ValueError(f"name: a body {name!r} exists already; names must differ")
        if not isinstance(joint, Joint):
            hint = f"; write {REGISTRY[joint].__name__}()" if joint in REGISTRY else ""
            raise TypeError(f"{name}: expected a joint object, received {joint!r}{hint}")
        forces = {
            key: _per_freedom(value, joint, key, name)
            for key, value in dict(
                armature=armature, damping=damping, stiffness=stiffness, rest=rest
            ).items()
        }
        for key in ("armature", "damping"):
            if np.any(forces[key] < 0.0):
                raise ValueError(f"{name}: expected {key} ≥ 0, received {forces[key]}")
        if np.any(forces["stiffness"] != 0.0) and not joint.rate_is_velocity:
            raise ValueError(
                f"{name}: a joint spring needs velocities that are the derivatives of positions, "
                f"which those of {type(joint).__name__} are not; use add_spring between points, "
                "or a force function"
            )
        forces["limits"] = _limits(limits, joint, name)
        self._bodies[name] = _Entry(
            self._reference(parent),
            joint,
            _plucker(placement, name),
            _inertia(inertia, name),
            bool(reverse),
            forces,
        )
        return len(self._bodies)

    def add_loop(
        self,
        name: str,
        predecessor: str | int,
        successor: str | int,
        joint: Joint,
        placement_predecessor: Placement = None,
        placement_successor: Placement = None,
    ) -> None:
        """Close a loop: `joint` connects two bodies (or the base) that are in the tree already.

        The placements say where the joint's two frames sit on the two bodies.
        """
        if name in self._loops:
            raise ValueError(f"name: a loop {name!r} exists already; names must differ")
        if not isinstance(joint, Joint):
            raise TypeError(f"{name}: expected a joint object, received {joint!r}")
        self._loops[name] = (
            self._reference(predecessor),
            self._reference(successor),
            joint,
            _plucker(placement_predecessor, name),
            _plucker(placement_successor, name),
        )

    def add_spring(
        self,
        name: str,
        body_a: str | int,
        point_a: ArrayLike,
        body_b: str | int,
        point_b: ArrayLike,
        stiffness: float,
        damping: float = 0.0,
        rest: float = 0.0,
    ) -> None:
        """Connect a point of one body with a point of another by a spring and a damper."""
        if name in self._springs:
            raise ValueError(f"name: a spring {name!r} exists already; names must differ")
        numbers = [
            real_scalar(x, key)
            for key, x in (("stiffness", stiffness), ("damping", damping), ("rest", rest))
        ]
        if min(numbers) < 0.0:
            raise ValueError(
                f"{name}: expected stiffness, damping and rest length ≥ 0, received {numbers}"
            )
        self._springs[name] = (
            self._reference(body_a),
            real_array(point_a, "point_a", (3,)).astype(float),
            self._reference(body_b),
            real_array(point_b, "point_b", (3,)).astype(float),
            *numbers,
        )

    def build(self) -> Model:
        """Number the bodies regularly, check everything, and return the model.

        Raises
        ------
        ValueError
            Unknown parents (with the nearest name), cyclic parents, and bodies that a force
            could accelerate without limit, because nothing beyond their joint has mass.
        """
        order = self._order()
        number = {"base": 0, **{name: i for i, name in enumerate(order, 1)}}

        def find(name: str, where: str) -> int:
            if name not in number:
                near = difflib.get_close_matches(name, number, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {list(number)}"
                raise ValueError(f"{where}: no body is named {name!r}; {hint}")
            return number[name]

        bodies = []
        for name in order:
            e = self._bodies[name]
            bodies.append(
                Body(
                    name,
                    number[e.parent],
                    e.joint,
                    e.placement,
                    e.inertia,
                    e.reverse,
                    **e.forces,  # type: ignore[arg-type]
                )
            )
        loops = [
            Loop(name, find(p, f"loop {name!r}"), find(s, f"loop {name!r}"), *rest)
            for name, (p, s, *rest) in self._loops.items()
        ]
        for loop in loops:
            if loop.predecessor == loop.successor:
                raise ValueError(f"loop {loop.name!r}: expected two different bodies, received one")
        springs = [
            PointSpring(name, find(a, f"spring {name!r}"), pa, find(b, f"spring {name!r}"), *rest)
            for name, (a, pa, b, *rest) in self._springs.items()
        ]
        model = Model(tuple(bodies), tuple(loops), tuple(springs), self.gravity, self.name)
        _check_masses(model)
        return model

    # ------------------------------------------------------------------ helpers

    def _reference(self, body: str | int) -> str:
        """Name of a body given by name or by the number under which it was added."""
        if isinstance(body, str):
            return body
        if isinstance(body, bool) or not isinstance(body, int | np.integer):
            raise TypeError(f"expected a body's name, or 0 for the base, received {body!r}")
        if body == 0:
            return "base"
        names = list(self._bodies)
        if not 1 <= body <= len(names):
            raise ValueError(f"no body has number {body} yet; {len(names)} were added")
        return names[body - 1]

    def _order(self) -> list[str]:
        """Names with parents before children, otherwise as they were added."""
        order: list[str] = []
        done = {"base"}
        waiting = dict(self._bodies)
        while waiting:
            ready = [name for name, entry in waiting.items() if entry.parent in done]
            if not ready:
                self._explain_disorder(waiting)
            for name in ready:
                order.append(name)
                done.add(name)
                del waiting[name]
        return sorted(order, key=lambda name: _rank(name, self._bodies, list(self._bodies)))

    def _explain_disorder(self, waiting: dict[str, _Entry]) -> None:
        for name, entry in waiting.items():
            if entry.parent not in self._bodies:
                near = difflib.get_close_matches(entry.parent, ["base", *self._bodies], 1)
                hint = f"did you mean {near[0]!r}?" if near else "add it, or use 0 for the base"
                raise ValueError(f"{name}: its parent {entry.parent!r} does not exist; {hint}")
        name = next(iter(waiting))
        path = [name]
        while (name := self._bodies[name].parent) not in path:
            path.append(name)
        cycle = [*path[path.index(name) :], name]
        raise ValueError(
            f"parents form a cycle, {' → '.join(cycle)}; hang one of them on the base, and close "
            "the loop with add_loop"
        )


def _rank(name: str, bodies: dict[str, _Entry], added: list[str]) -> Any:
    """Order of addition where that is regular already; else depth first decides."""
    regular = all(
        entry.parent == "base" or added.index(entry.parent) < k
        for k, entry in enumerate(bodies.values())
    )
    if regular:
        return added.index(name)
    depth = 0
    at = name
    while at != "base":
        depth, at = depth + 1, bodies[at].parent
    return depth, added.index(name)


def _plucker(placement: Placement, name: str) -> Plucker:
    if placement is None:
        return Plucker.identity()
    if isinstance(placement, Plucker):
        return placement
    if isinstance(placement, Pose):
        return placement.to_plucker()
    try:
        return Plucker(np.eye(3), real_array(placement, "placement", (3,)))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected a Pose, a Plucker transform or a translation (x, y, z) as "
            f"placement, received {placement!r:.80}"
        ) from None


def _inertia(inertia: Any, name: str) -> RigidInertia:
    if inertia is None:
        return RigidInertia.zero()
    if isinstance(inertia, RigidInertia):
        return inertia
    if isinstance(inertia, CentralInertia):
        return inertia.to_rigid()
    try:
        return RigidInertia.from_parameters(inertia)
    except TypeError:
        raise TypeError(
            f"{name}: expected Inertia(mass, com, I_com), a shape such as rod(…), or ten "
            f"parameters as inertia, received {inertia!r:.80}"
        ) from None


def _per_freedom(value: ArrayLike, joint: Joint, key: str, name: str) -> Array:
    array = real_array(value, key).astype(float)
    if array.ndim == 0:
        array = np.full(joint.nv, float(array))
    if array.shape != (joint.nv,):
        raise ValueError(
            f"{name}: expected one number or {joint.nv} as {key}, received shape {array.shape}"
        )
    return array


def _limits(limits: Any, joint: Joint, name: str) -> Array:
    if limits is None:
        return np.tile([-np.inf, np.inf, 0.0, 0.0], (joint.nv, 1))
    if not joint.rate_is_velocity:
        raise ValueError(
            f"{name}: limits need velocities that are the derivatives of positions, which those "
            f"of {type(joint).__name__} are not"
        )
    rows = np.atleast_2d(np.asarray(limits, dtype=float))
    if rows.shape not in ((joint.nv, 2), (joint.nv, 4)) or np.isnan(rows).any():
        raise ValueError(
            f"{name}: expected limits (lower, upper) or (lower, upper, stiffness, damping) for "
            f"each of {joint.nv} freedoms, received shape {rows.shape}"
        )
    if rows.shape[1] == 2:
        rows = np.hstack([rows, np.tile([1e4, 1e2], (joint.nv, 1))])
    if np.any(rows[:, 0] > rows[:, 1]) or np.any(rows[:, 2:] < 0.0):
        raise ValueError(
            f"{name}: expected lower ≤ upper and stiffness, damping ≥ 0, received {rows.tolist()}"
        )
    return rows


def _check_masses(model: Model) -> None:
    """Raise if some freedom moves nothing: then no equation determines its acceleration."""
    from .dynamics.aba import find_singular_body

    rng = np.random.default_rng(0)
    # A singular position is possible by chance in one configuration, not in two.
    found = [find_singular_body(model, model.random(rng)) for _ in range(2)]
    if all(found):
        body = model.bodies[found[0] - 1]
        raise ValueError(
            f"body {body.name!r} moves freely at its joint {body.joint!r}, but has no inertia in "
            "that direction, and neither have the bodies that it carries; give it mass or "
            "rotational inertia, an armature, or a Fixed joint"
        )
