"""ModelBuilder: put bodies, joints, loops and springs together, in any order, under any names."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from ._checks import Array, ArrayLike, real_array, real_scalar
from .connect import Connection, Entry, connect, moved
from .graph import BASE, regular_order
from .inertia import CentralInertia, RigidInertia
from .joints import REGISTRY, Joint
from .model import Body, Loop, Model, PointSpring
from .plucker import Plucker
from .se3 import Pose

__all__ = ["ModelBuilder"]

Placement = Any  # Pose, Plucker, a translation of three numbers, or None


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
        self._order: list[str] = []  # all bodies as they were added
        self._bodies: dict[str, Entry] = {}
        self._declared: dict[str, RigidInertia] = {}
        self._joints: dict[str, Connection] = {}
        self._loops: dict[str, Connection] = {}
        self._springs: dict[str, tuple[Any, ...]] = {}

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
        self._new_name(name)
        forces = self._forces(name, joint, armature, damping, stiffness, rest, limits)
        entry = Entry(
            self._reference(parent),
            joint,
            _plucker(placement, name),
            _inertia(inertia, name),
            bool(reverse),
            forces,
        )
        self._bodies[name] = entry
        self._order.append(name)
        return len(self._order)

    def declare_body(self, name: str, inertia: Any = None) -> int:
        """Add a body without saying how it hangs in the tree; `add_joint` connects it.

        Parameters
        ----------
        name, inertia
            As in `add_body`; the inertia is in the frame in which `add_joint` places joints.

        Returns
        -------
        int
            How many bodies there are now.
        """
        self._new_name(name)
        self._declared[name] = _inertia(inertia, name)
        self._order.append(name)
        return len(self._order)

    def add_joint(
        self,
        name: str,
        predecessor: str | int,
        successor: str | int,
        joint: Joint,
        X_P: Placement = None,
        X_S: Placement = None,
        *,
        tree: bool | None = None,
        armature: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        stiffness: ArrayLike = 0.0,
        rest: ArrayLike = 0.0,
        limits: Any = None,
    ) -> None:
        """Connect two bodies, or a body and the base, whichever way the tree runs.

        `build` chooses a spanning tree of least depth. Joints that it meets from their successor
        are reversed; joints that it leaves over close loops.

        Parameters
        ----------
        name
            Any name that no other joint has.
        predecessor, successor
            Names of the bodies, which may be added later; 0 or "base" for the base.
        joint
            A joint object.
        X_P, X_S
            Where the joint's frames sit on predecessor and successor, as `placement` of
            `add_body`. The frame on the side away from the base becomes the frame of that body
            in the model; `frame_shift` tells how they differ.
        tree
            True: must belong to the tree. False: must close a loop. None: whatever suits.
        armature, damping, stiffness, rest, limits
            As in `add_body`; only for joints of the tree.

        Examples
        --------
        A four-bar linkage, of which the builder decides where to cut it open:

        >>> from multibody import Revolute, rod
        >>> b = ModelBuilder(name="four-bar")
        >>> for body, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5)):
        ...     _ = b.declare_body(body, rod((0, 0, 0), (length, 0, 0), mass=length))
        >>> b.add_joint("A", 0, "crank", Revolute())
        >>> b.add_joint("B", "crank", "coupler", Revolute(), (1.0, 0, 0))
        >>> b.add_joint("C", "coupler", "rocker", Revolute(), (2.0, 0, 0), (1.5, 0, 0))
        >>> b.add_joint("D", 0, "rocker", Revolute(), (2.2, 0, 0))
        >>> print(b.build())
        four-bar: 3 bodies, nq = 3, nv = 3, 1 loop
        0 base
        ├─ 1 crank: Revolute(), 1 kg
        │  └─ 2 coupler: Revolute(), 2 kg
        └─ 3 rocker: Revolute(), 1.5 kg
        loop C: coupler to rocker by Revolute()
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"name: expected a non-empty string, received {name!r}")
        if name in self._joints or name in self._loops:
            raise ValueError(f"name: a joint {name!r} exists already; names must differ")
        forces = self._forces(name, joint, armature, damping, stiffness, rest, limits)
        self._joints[name] = Connection(
            self._reference(predecessor),
            self._reference(successor),
            joint,
            _plucker(X_P, name),
            _plucker(X_S, name),
            forces,
            tree,
        )

    def frame_shift(self, body: str | int) -> Pose:
        """Frame in which a body was described, seen from its frame in the model.

        The two differ only where `add_joint` placed the joint that carries the body away from the
        origin: a point p of the description is ``b.frame_shift(body).act(p)`` in the model.
        """
        name = self._reference(body)
        shifts = self._tree()[2]
        if name not in shifts:
            self._unknown(name, "frame_shift", list(shifts))
        back = shifts[name].inverse()
        return Pose._of(back.E.T, back.r)

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
        if name in self._loops or name in self._joints:
            raise ValueError(f"name: a loop or joint {name!r} exists already; names must differ")
        if not isinstance(joint, Joint):
            raise TypeError(f"{name}: expected a joint object, received {joint!r}")
        self._loops[name] = Connection(
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
        entries, loops, shifts = self._tree()
        order = regular_order({name: entry.parent for name, entry in entries.items()})
        number = {BASE: 0, **{name: i for i, name in enumerate(order, 1)}}

        def find(name: str, where: str) -> int:
            if name not in number:
                self._unknown(name, where, list(number))
            return number[name]

        bodies = []
        for name in order:
            e = entries[name]
            bodies.append(
                Body(
                    name,
                    number[e.parent],
                    e.joint,
                    e.placement,
                    e.inertia,
                    e.reverse,
                    **e.forces,
                )
            )
        closing = []
        for name, c in loops.items():
            ends = [find(body, f"loop {name!r}") for body in (c.predecessor, c.successor)]
            if ends[0] == ends[1]:
                raise ValueError(f"loop {name!r}: expected two different bodies, received one")
            X_P, X_S = moved(c.X_P, shifts[c.predecessor]), moved(c.X_S, shifts[c.successor])
            closing.append(Loop(name, ends[0], ends[1], c.joint, X_P, X_S))
        springs = []
        for name, (a, point_a, b, point_b, *constants) in self._springs.items():
            numbers = [find(body, f"spring {name!r}") for body in (a, b)]
            points = [
                shifts[body].E @ (p - shifts[body].r) for body, p in ((a, point_a), (b, point_b))
            ]
            springs.append(
                PointSpring(name, numbers[0], points[0], numbers[1], points[1], *constants)
            )
        model = Model(tuple(bodies), tuple(closing), tuple(springs), self.gravity, self.name)
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
        names = self._order
        if not 1 <= body <= len(names):
            raise ValueError(f"no body has number {body} yet; {len(names)} were added")
        return names[body - 1]

    def _new_name(self, name: str) -> None:
        if not isinstance(name, str) or not name or name == BASE:
            raise ValueError(
                f"name: expected a non-empty string other than 'base', received {name!r}"
            )
        if name in self._bodies or name in self._declared:
            raise ValueError(f"name: a body {name!r} exists already; names must differ")

    def _tree(self) -> tuple[dict[str, Entry], dict[str, Connection], dict[str, Plucker]]:
        """Bodies as a tree, loops, and the shifts of body frames."""
        given = {**self._loops}
        if not (self._joints or self._declared):
            same = Plucker.identity()
            return self._bodies, given, dict.fromkeys((BASE, *self._bodies), same)
        entries, loops, shifts = connect(self._bodies, self._declared, self._joints, self._order)
        return entries, {**loops, **given}, shifts

    @staticmethod
    def _unknown(name: str, where: str, known: list[str]) -> None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
        raise ValueError(f"{where}: no body is named {name!r}; {hint}")

    @staticmethod
    def _forces(
        name: str,
        joint: Joint,
        armature: ArrayLike,
        damping: ArrayLike,
        stiffness: ArrayLike,
        rest: ArrayLike,
        limits: Any,
    ) -> dict[str, Array]:
        """Check a joint and the numbers of its force elements."""
        if not isinstance(joint, Joint):
            known = isinstance(joint, str) and joint in REGISTRY
            hint = f"; write {REGISTRY[joint].__name__}()" if known else ""
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
        return forces


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
