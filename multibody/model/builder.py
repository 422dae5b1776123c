"""ModelBuilder: put bodies, joints, loops and springs together, in any order, under any names."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..algebra.inertia import RigidInertia
from ..algebra.plucker import Plucker
from ..algebra.se3 import Pose
from ..checks import ArrayLike, one_of
from ..elements import Element, NamedElement
from ..joints import Joint
from .connect import Connection, Entry, connect, floating, moved
from .constraints import Constraint
from .contacts import Contact
from .gearing import gear_constraint
from .graph import BASE, regular_order
from .model import Body, Loop, Model, PointSpring, Solid
from .rules import (
    check_joint_object,
    check_name,
    force_elements,
    gravity_vector,
    inertia_of,
    placement_of,
    spring_numbers,
    two_bodies,
)

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
    unconnected
        What becomes of declared bodies that no joint connects with the base: "refuse" them, or
        let each such group float by a `Free` joint of the body that was declared first ("free").

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

    def __init__(
        self,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        name: str = "model",
        *,
        unconnected: str = "refuse",
    ) -> None:
        self.unconnected = one_of(unconnected, "unconnected", ("refuse", "free"))
        self.gravity = gravity_vector(gravity)
        self.name = name
        self._order: list[str] = []  # all bodies as they were added
        self._bodies: dict[str, Entry] = {}
        self._declared: dict[str, RigidInertia] = {}
        self._joints: dict[str, Connection] = {}
        self._loops: dict[str, Connection] = {}
        self._springs: dict[str, tuple[Any, ...]] = {}
        self._constraints: dict[str, Constraint] = {}
        self._contacts: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self._elements: dict[str, Element] = {}
        self._solids: list[tuple[str, Plucker, dict[str, Any]]] = []

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
            Armature and springs need velocities that are derivatives of positions (armature only
            where the joint has several): not those of Planar, Spherical, Free, RollingSphere.
        limits
            (lower, upper) or (lower, upper, stiffness, damping) of elastic stops; for joints
            with several freedoms a row for each. Stiffness defaults to 1e4, damping to 1e2.

        Returns
        -------
        int
            How many bodies there are now.
        """
        check_name(name, ChainMap[str, Any](self._bodies, self._declared), "body")
        check_joint_object(joint, name)
        forces = force_elements(name, joint, armature, damping, stiffness, rest, limits)
        entry = Entry(
            self._reference(parent),
            joint,
            placement_of(placement, name),
            inertia_of(inertia, name),
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
        check_name(name, ChainMap[str, Any](self._bodies, self._declared), "body")
        self._declared[name] = inertia_of(inertia, name)
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
        taken = ChainMap[str, Any](self._joints, self._loops, self._constraints)
        check_name(name, taken, "joint")
        check_joint_object(joint, name)
        forces = force_elements(name, joint, armature, damping, stiffness, rest, limits)
        self._joints[name] = Connection(
            self._reference(predecessor),
            self._reference(successor),
            joint,
            placement_of(X_P, name),
            placement_of(X_S, name),
            forces,
            tree,
        )

    def frame_shift(self, body: str | int) -> Pose:
        """Frame in which a body was described, seen from its frame in the model.

        The two differ only where `add_joint` placed the joint that carries the body away from the
        origin: a point p of the description is ``b.frame_shift(body).act(p)`` in the model.
        """
        name = self._reference(body)
        shifts = self.frame_shifts()
        if name not in shifts:
            self._unknown(name, "frame_shift", list(shifts))
        return shifts[name]

    def frame_shifts(self) -> dict[str, Pose]:
        """`frame_shift` of all bodies, the base included, by name."""
        backs = {name: shift.inverse() for name, shift in self._tree()[2].items()}
        return {name: Pose._of(back.E.T, back.r) for name, back in backs.items()}

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
        taken = ChainMap[str, Any](self._joints, self._loops, self._constraints)
        check_name(name, taken, "loop or joint")
        check_joint_object(joint, name)
        self._loops[name] = Connection(
            self._reference(predecessor),
            self._reference(successor),
            joint,
            placement_of(placement_predecessor, name),
            placement_of(placement_successor, name),
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
        check_name(name, self._springs, "spring")
        a, b = self._reference(body_a), self._reference(body_b)
        two_bodies(f"spring {name!r}", a, b)
        self._springs[name] = (
            (a, b),
            *spring_numbers(name, point_a, point_b, stiffness, damping, rest),
        )

    def add_contact(
        self,
        name: str,
        body_a: str | int = 0,
        shape_a: Any = None,
        body_b: str | int = 0,
        shape_b: Any = None,
        *,
        restitution: float = 0.0,
        friction: float = 0.0,
        law: Any = None,
        gap: Any = None,
    ) -> None:
        """Let a surface of one body touch a surface of another; see ``docs/contact.md``.

        Parameters
        ----------
        name
            Any name that no other contact has.
        body_a, shape_a, body_b, shape_b
            Bodies, and the shapes that they touch with, in the coordinates of the bodies:
            `HalfSpace` with `Vertex`, `Ball`, `BoxCorners`, `Capsule` or `Disc`; balls and
            capsules with each other; what is round in a `Bowl`.
        restitution
            e of Newton's law: 0 ≤ e ≤ 1.
        friction
            μ of Coulomb's law.
        law
            None for rigid bodies; `SpringDamper` or `HuntCrossley` for surfaces that yield.
        gap
            In place of shapes a function φ(q) of all position variables, positive apart.

        Examples
        --------
        >>> from multibody import Ball, Free, HalfSpace, ModelBuilder, sphere
        >>> b = ModelBuilder(name="ball")
        >>> _ = b.add_body("ball", 0, Free(), inertia=sphere(mass=1.0, radius=0.1))
        >>> b.add_contact("floor", 0, HalfSpace(), "ball", Ball(0.1), restitution=0.9)
        >>> print(b.build())
        ball: 1 body, nq = 7, nv = 6
        0 base
        └─ 1 ball: Free(), 1 kg
        contact floor: base with ball
        """
        check_name(name, self._contacts, "contact")
        given = {"shape_a": shape_a, "shape_b": shape_b, "law": law, "gap": gap}
        given |= {"restitution": restitution, "friction": friction}
        self._contacts[name] = (self._reference(body_a), self._reference(body_b), given)

    def add_constraint(
        self,
        name: str,
        phi: Callable[..., Any] | None = None,
        *,
        velocity: Callable[..., Any] | None = None,
        parameters: ArrayLike = (),
    ) -> None:
        """Let a function of the positions (or velocities) vanish along every motion.

        Parameters
        ----------
        name
            Any name that no loop and no other constraint has.
        phi
            φ(q), φ(t, q) or φ(t, q, p): one number or several, written with NumPy and without
            branches. ``q["arm"]``, ``q["arm.angle"]`` and ``q[2]`` are positions of joints;
            ``q.point("arm", (1, 0, 0))`` is a point of a body in base coordinates.
        velocity
            In place of φ: ψ(q, v), ψ(t, q, v) or ψ(t, q, v, p), linear in v, for constraints that
            bind velocities only, such as those of skates.
        parameters
            p: numbers that the models of a `ModelFamily` may differ in.

        See Also
        --------
        add_gear : constraints between joints.

        Examples
        --------
        A bead on a taut string of 2 m, as a free point mass:

        >>> from multibody import FD, Prismatic, point_mass
        >>> b = ModelBuilder(name="bead")
        >>> _ = b.add_body("x", 0, Prismatic("x"))
        >>> _ = b.add_body("z", "x", Prismatic("z"), inertia=point_mass(1.0))
        >>> b.add_constraint("string", lambda q: q["x"] ** 2 + q["z"] ** 2 - 4.0)
        >>> FD(b.build(), [2.0, 0.0], [0.0, 3.0]).round(9) + 0.0  # towards the middle: v²/r
        array([-4.5 , -9.81])
        """
        if (phi is None) == (velocity is None):
            raise TypeError(f"constraint {name!r}: give either φ(t, q), or velocity=ψ(t, q, v)")
        self._add_constraint(
            Constraint(name, phi or velocity, parameters, of_velocities=phi is None)  # type: ignore[arg-type]
        )

    def add_gear(
        self,
        name: str,
        driven: str,
        ratios: Mapping[str, float] | None = None,
        *,
        offset: float = 0.0,
        gamma: Callable[..., Any] | None = None,
        parameters: ArrayLike = (),
    ) -> None:
        """Let the position of one joint follow those of others; see ``docs/gears.md``.

        Parameters
        ----------
        name
            Any name that no loop and no other constraint has.
        driven
            A body whose joint has one variable (or a variable, such as "cart.x").
        ratios
            ``{"link": 100.0}``: driven = Σ ratio · position + offset. Two or more make a
            differential. Drivers may be driven themselves.
        offset
            Position of the driven joint where all drivers are at zero.
        gamma
            In place of ratios: γ(q), γ(t, q) or γ(t, q, p), the position of the driven joint.
        parameters
            p of γ.

        Examples
        --------
        A wheel that turns twice as fast as another, and the other way:

        >>> from multibody import FD, Revolute, Inertia
        >>> b = ModelBuilder(gravity=(0, 0, 0))
        >>> for name, size in (("large", 4.0), ("small", 1.0)):
        ...     inertia = Inertia(1.0, (0, 0, 0), (size, size, size))
        ...     _ = b.add_body(name, 0, Revolute(), inertia=inertia)
        >>> b.add_gear("teeth", "small", {"large": -2.0})
        >>> FD(b.build(), [0.0, 0.0], [0.0, 0.0], [8.0, 0.0])  # 4 + (−2)²·1 = 8 kg m²
        array([ 1., -2.])
        """
        parts = (name, driven, ratios, offset, gamma, parameters)
        self._add_constraint(gear_constraint(*parts))

    def _add_constraint(self, constraint: Constraint) -> None:
        taken = ChainMap[str, Any](self._joints, self._loops, self._constraints)
        check_name(constraint.name, taken, "loop, joint or constraint")
        self._constraints[constraint.name] = constraint

    def add_element(self, name: str, element: Element) -> None:
        """Add a force law, such as a motor, a bushing or a controller; see ``docs/elements.md``.

        Elements name the bodies and joints on which they act; points are in the coordinates that
        bodies have in the model. An element may have states of its own, which become the last
        entries of q.

        Examples
        --------
        >>> from multibody import ForceLaw, ModelBuilder, Revolute, point_mass
        >>> b = ModelBuilder(name="wound up")
        >>> _ = b.add_body("arm", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
        >>> b.add_element("spring", ForceLaw(lambda here: here.push_joint("arm", -0.5)))
        >>> b.build().elements[0].name
        'spring'
        """
        check_name(
            name, ChainMap[str, Any](self._elements, self._bodies, self._declared), "element"
        )
        self._elements[name] = element

    def add_solid(
        self, body: str | int, shape: str, size: ArrayLike = (), placement: Placement = None,
        colour: ArrayLike = (), **mesh: Any,
    ) -> None:  # fmt: skip
        """Say how a body looks; it changes pictures only.

        Parameters
        ----------
        body
            Name of the body; 0 or "base" for the base. It may have several solids.
        shape, size
            "box" (edges), "sphere" (radius), "cylinder" and "capsule" (radius, length), "ellipsoid"
            (half axes), "ring" (radius, thickness), or "mesh" with ``vertices=`` and ``faces=``.
            Cylinders, capsules and rings have z as their axis.
        placement
            Where the middle of the shape is on the body, as in `add_body`.
        colour
            Red, green, blue and opacity, from 0 to 1.

        Examples
        --------
        >>> from multibody import ModelBuilder, Revolute, box
        >>> b = ModelBuilder(name="door")
        >>> _ = b.add_body("leaf", 0, Revolute(), inertia=box((0.9, 0.04, 2), mass=20.0))
        >>> b.add_solid("leaf", "box", (0.9, 0.04, 2.0), (0.45, 0, 1.0), colour=(0.6, 0.4, 0.2))
        >>> b.build().solids[0].size
        (0.9, 0.04, 2.0)
        """
        given = {"shape": shape, "size": size, "colour": colour, **mesh}
        self._solids.append((self._reference(body), placement_of(placement, "solid"), given))

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
            first, second = (find(body, f"loop {name!r}") for body in (c.predecessor, c.successor))
            X_P, X_S = moved(c.X_P, shifts[c.predecessor]), moved(c.X_S, shifts[c.successor])
            closing.append(Loop(name, first, second, c.joint, X_P, X_S))
        springs = []
        for name, (ends, *points, stiffness, damping, rest) in self._springs.items():
            a, b = (find(body, f"spring {name!r}") for body in ends)
            at_a, at_b = (
                shifts[body].E @ (p - shifts[body].r) for body, p in zip(ends, points, strict=True)
            )
            springs.append(PointSpring(name, a, at_a, b, at_b, stiffness, damping, rest))
        contacts = []
        for name, (first_body, second_body, given) in self._contacts.items():
            a, b = (find(body, f"contact {name!r}") for body in (first_body, second_body))
            for body in (first_body, second_body):
                if not _is_identity(shifts[body]):
                    raise ValueError(
                        f"contact {name!r}: the frame of body {body!r} was moved by add_joint; "
                        "place its joint at its origin (X_S), or add it by add_body"
                    )
            contacts.append(Contact(name, body_a=a, body_b=b, **given))
        parts = (tuple(bodies), tuple(closing), tuple(springs))
        elements = tuple(NamedElement(name, element) for name, element in self._elements.items())
        stated = tuple(self._constraints.values())
        solids = tuple(
            Solid(find(body, "solid"), placement=moved(X, shifts[body]), **given)
            for body, X, given in self._solids
        )
        return Model(*parts, self.gravity, self.name, tuple(contacts), elements, stated, solids)

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

    def _tree(self) -> tuple[dict[str, Entry], dict[str, Connection], dict[str, Plucker]]:
        """Bodies as a tree, loops, and the shifts of body frames."""
        given = {**self._loops}
        if not (self._joints or self._declared):
            same = Plucker.identity()
            return self._bodies, given, dict.fromkeys((BASE, *self._bodies), same)
        joints = self._joints
        if self.unconnected == "free":
            joints = {**joints, **floating(self._bodies, joints, self._order)}
        entries, loops, shifts = connect(self._bodies, self._declared, joints, self._order)
        return entries, {**loops, **given}, shifts

    @staticmethod
    def _unknown(name: str, where: str, known: list[str]) -> None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
        raise ValueError(f"{where}: no body is named {name!r}; {hint}")


def _is_identity(X: Plucker) -> bool:
    return bool((np.eye(3) == X.E).all() and (X.r == 0.0).all())
