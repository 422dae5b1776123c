"""The model: a validated, frozen kinematic tree, with loop joints if it has any (book, §4.6).

Bodies are numbered 1 … N in an order where parents come before children; the base is 0. Each body
hangs on one tree joint of the same number. A :class:`Model` is data only: make one with
:class:`~multibody.model.builder.ModelBuilder` or read it from a file.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.inertia import RigidInertia
from ..algebra.plucker import Plucker
from ..checks import (
    QUATERNION_TOLERANCE,
    Array,
    ArrayLike,
    floats,
    has_symbols,
    real_array,
    unit_quaternion,
)
from ..elements import Element, NamedElement
from ..joints import Joint
from .constraints import Constraint, bound
from .contacts import Contact, check_duplicates, checked_contact
from .rules import (
    FORCES,
    FROM_DYNAMICS,
    check_joint_object,
    check_masses,
    check_name,
    force_elements,
    gravity_vector,
    inertia_of,
    placement_of,
    spring_numbers,
    two_bodies,
)
from .soft import SoftContact, soft_elements
from .solids import Solid, checked_solid

if TYPE_CHECKING:
    from ..dynamics.storage.arrays import Tree

__all__ = ["Body", "Constraint", "Contact", "Loop", "Model", "PointSpring", "Solid"]


#: Characters before a body in the tree as text: a chain of thousands moves no further right.
WIDEST = 120


@dataclass(frozen=True, eq=False)
class Body:
    """A body and the joint that connects it to its parent.

    Attributes
    ----------
    name, parent
        Name, and number of the parent body (0 for the base).
    joint, reverse
        The joint; reversed if the body is its predecessor and the parent its successor.
    placement
        X_T: from parent coordinates to those of the joint's frame on the parent.
    inertia
        In the body's own frame.
    armature, damping, stiffness, rest, limits
        For each velocity variable: rotor inertia (gear ratio² × inertia), viscous damping,
        spring, its rest position, and (lower, upper, stiffness, damping) of elastic stops. Empty
        arrays mean that there are none.
    """

    name: str
    parent: int
    joint: Joint
    placement: Plucker
    inertia: RigidInertia
    reverse: bool = False
    armature: Array = field(default_factory=lambda: np.zeros(0))
    damping: Array = field(default_factory=lambda: np.zeros(0))
    stiffness: Array = field(default_factory=lambda: np.zeros(0))
    rest: Array = field(default_factory=lambda: np.zeros(0))
    limits: Array = field(default_factory=lambda: np.zeros((0, 4)))


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop between two bodies of the tree (book, Table 4.3).

    `placement_predecessor` is X_P, from the predecessor body's to the joint's coordinates;
    `placement_successor` is X_S likewise.
    """

    name: str
    predecessor: int
    successor: int
    joint: Joint
    placement_predecessor: Plucker
    placement_successor: Plucker


@dataclass(frozen=True, eq=False)
class PointSpring:
    """Spring and damper between a point of one body and a point of another (0: the base)."""

    name: str
    body_a: int
    point_a: Array
    body_b: int
    point_b: Array
    stiffness: float
    damping: float
    rest: float


@dataclass(frozen=True, eq=False)
class Model:
    """A multibody system.

    Examples
    --------
    >>> from multibody import ModelBuilder, Revolute, Inertia
    >>> b = ModelBuilder(name="pendulum")
    >>> b.add_body("rod", 0, Revolute(axis="y"), inertia=Inertia(1.0, (0, 0, -0.5)))
    1
    >>> model = b.build()
    >>> print(model)
    pendulum: 1 body, nq = 1, nv = 1
    0 base
    └─ 1 rod: Revolute(axis=[0.0, 1.0, 0.0]), 1 kg
    """

    bodies: tuple[Body, ...]
    loops: tuple[Loop, ...] = ()
    springs: tuple[PointSpring, ...] = ()
    gravity: Any = (0.0, 0.0, -9.81)
    name: str = "model"
    contacts: tuple[Contact, ...] = ()
    elements: tuple[NamedElement, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    solids: tuple[Solid, ...] = ()

    def __post_init__(self) -> None:
        """Check everything, whoever made the parts, and keep copies that nobody can change."""
        bodies = tuple(self.bodies)
        if not bodies:
            raise ValueError("model: expected at least one body, received none; use add_body")
        given = {
            "bodies": _checked(bodies, Body, _body, len(bodies)),
            "loops": _checked(self.loops, Loop, _loop, len(bodies)),
            "springs": _checked(self.springs, PointSpring, _spring, len(bodies)),
            "gravity": gravity_vector(self.gravity),
            "solids": tuple(checked_solid(solid, len(bodies)) for solid in self.solids),
        }
        touching = _checked(self.contacts, Contact, checked_contact, len(bodies))
        check_duplicates(touching)
        given["contacts"] = touching
        own = (e for e in self.elements if not isinstance(getattr(e, "element", e), SoftContact))
        acting = (*own, *soft_elements(touching))
        given["elements"] = _checked(acting, NamedElement, _element, len(bodies))
        for name, value in given.items():
            object.__setattr__(self, name, value)
        for i, body in enumerate(self.bodies, 1):
            if not 0 <= body.parent < i:
                raise ValueError(
                    f"model: body {i} ({body.name!r}) has parent {body.parent}; parents must come "
                    "before children (0 is the base)"
                )
        self._freeze()
        stated = _checked(self.constraints, Constraint, lambda c, n: bound(c, self), len(bodies))
        object.__setattr__(self, "constraints", stated)
        closing = {loop.name for loop in self.loops}
        for c in stated:
            check_name(c.name, closing, "loop")
        check_masses(self)
        if self.elements and not has_symbols(
            np.concatenate([e.element.numbers for e in self.elements])
        ):
            FROM_DYNAMICS["check elements"](self)

    @cached_property
    def rigid_contacts(self) -> tuple[Contact, ...]:
        """Contacts without a law of their surfaces; those with one are elements, too."""
        return tuple(contact for contact in self.contacts if contact.law is None)

    @property
    def bonds(self) -> tuple[Loop | Constraint, ...]:
        """What binds the motions of the tree: loop joints, then constraints by functions."""
        return (*self.loops, *self.constraints)

    def _freeze(self) -> None:
        """Make all arrays read-only: hash, tables and machine code are made from them once."""
        arrays = [self.gravity]
        for b in self.bodies:
            arrays += [b.placement.E, b.placement.r, b.inertia.array, b.joint.axis, b.limits]
            arrays += [getattr(b, key) for key in FORCES]
        for c in self.loops:
            arrays.append(c.joint.axis)
            for X in (c.placement_predecessor, c.placement_successor):
                arrays += [X.E, X.r]
        for s in self.springs:
            arrays += [s.point_a, s.point_b]
        for array in arrays:
            array.setflags(write=False)

    # ------------------------------------------------------------------ sizes and places

    @property
    def n_bodies(self) -> int:
        """Number of bodies, N_B; the base is not counted."""
        return len(self.bodies)

    @cached_property
    def q_index(self) -> tuple[slice, ...]:
        """Places of each joint's positions in q; entry i belongs to body i + 1."""
        return _slices(body.joint.nq for body in self.bodies)

    @cached_property
    def v_index(self) -> tuple[slice, ...]:
        """Places of each joint's velocities in v."""
        return _slices(body.joint.nv for body in self.bodies)

    @cached_property
    def nq(self) -> int:
        """Number of position variables: those of joints, then the own states of elements."""
        return sum(body.joint.nq for body in self.bodies) + self.n_states

    @cached_property
    def n_states(self) -> int:
        """Number of own states of the elements, which are the last entries of q."""
        return sum(len(named.element.states) for named in self.elements)

    @cached_property
    def nv(self) -> int:
        """Number of velocity variables: degrees of freedom of the tree."""
        return sum(body.joint.nv for body in self.bodies)

    @cached_property
    def parents(self) -> Array:
        """λ(1) … λ(N)."""
        return np.array([body.parent for body in self.bodies])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {"base": 0, **{body.name: i for i, body in enumerate(self.bodies, 1)}}

    def number(self, body: str | int) -> int:
        """Number of a body given by name (or number).

        Raises
        ------
        ValueError
            With the nearest name, if there is no such body.
        """
        if isinstance(body, str):
            if body in self._numbers:
                return self._numbers[body]
            near = difflib.get_close_matches(body, self._numbers, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {list(self._numbers)}"
            raise ValueError(f"no body is named {body!r}; {hint}")
        if isinstance(body, bool) or not isinstance(body, int | np.integer):
            raise TypeError(f"expected a body's name or number, received {body!r}")
        if not 0 <= body <= self.n_bodies:
            raise ValueError(f"no body has number {body}; they run from 1 to {self.n_bodies}")
        return int(body)

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        """Names of the position variables, such as ``arm.angle``."""
        joints = tuple(f"{b.name}.{c}" for b in self.bodies for c in b.joint.coordinates)
        return joints + tuple(name for named in self.elements for name in named.state_names)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        """Names of the velocity variables, such as ``d(arm.angle)``."""
        return tuple(
            f"d({b.name}.{s})" if s in b.joint.coordinates else f"{b.name}.{s}"
            for b in self.bodies
            for s in b.joint.speeds
        )

    @cached_property
    def variable_places(self) -> tuple[dict[str, int | slice], dict[str, int | slice]]:
        """Where positions and velocities are, by their names or those of their bodies."""
        found: list[dict[str, int | slice]] = []
        for names, index in ((self.q_names, self.q_index), (self.v_names, self.v_index)):
            bodies = {body.name: place for body, place in zip(self.bodies, index)}
            last = index[-1].stop  # own states of elements are no joint variables
            found.append(bodies | {name: k for k, name in enumerate(names[:last])})
        return found[0], found[1]

    # ------------------------------------------------------------------ positions

    @cached_property
    def trial_position(self) -> Array:
        """A random position, always the same, on which functions of positions are tried."""
        return self.random(0)

    def neutral(self) -> Array:
        """Position with every joint in its neutral position, and own states at their start."""
        own = [named.element.start_values() for named in self.elements]
        return np.concatenate([*(body.joint.neutral() for body in self.bodies), *own])

    def random(self, rng: np.random.Generator | int | None = None) -> Array:
        """Random position; give a generator or a seed to get the same again."""
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(rng)
        own = rng.uniform(-1.0, 1.0, self.n_states)
        return np.concatenate([*(body.joint.random(rng) for body in self.bodies), own])

    def integrate(
        self, q: ArrayLike, v: ArrayLike, h: float = 1.0, *, t: float | None = None
    ) -> Array:
        """Position after a time h at constant joint velocities v, on every joint's manifold.

        With `t`, what time does to q̇ by itself counts, too; without, v = 0 stays in place.
        """
        q, v = self.check("q", q), self.check("v", v)
        when = {} if t is None else {"t": t}
        joints = zip(self.bodies, self.q_index, self.v_index)
        moved = [b.joint.integrate(q[i], v[k], h, **when) for b, i, k in joints]
        return np.concatenate([*moved, self._own(q)])

    def difference(self, q: ArrayLike, q1: ArrayLike) -> Array:
        """Tangent vector that leads from q to q1, joint by joint."""
        q, q1 = self.check("q", q), self.check("q", q1)
        joints = zip(self.bodies, self.q_index)
        return np.concatenate([b.joint.difference(q[i], q1[i]) for b, i in joints])

    def normalise(self, q: ArrayLike) -> Array:
        """Position with unit quaternions."""
        q = self.check("q", q, unit=False)
        joints = [b.joint.normalise(q[i]) for b, i in zip(self.bodies, self.q_index)]
        return np.concatenate([*joints, self._own(q)])

    def _own(self, q: Array) -> Array:
        """Own states of elements in q."""
        return q[self.nq - self.n_states :]

    @property
    def is_rheonomic(self) -> bool:
        """Whether time moves some joint."""
        tree = any(body.joint.is_rheonomic for body in self.bodies)
        stated = any(c.is_rheonomic for c in self.constraints)
        return tree or stated or any(loop.joint.is_rheonomic for loop in self.loops)

    @property
    def is_damped(self) -> bool:
        """Whether some joint, stop or spring takes energy away, or elements may do so."""
        joints = bool(self.elements) or any(
            b.damping.any() or b.limits[:, 3].any() for b in self.bodies
        )
        return joints or any(spring.damping > 0.0 for spring in self.springs)

    @cached_property
    def quaternion_places(self) -> tuple[int, ...]:
        """Where in q unit quaternions begin."""
        return tuple(
            place.start + at
            for body, place in zip(self.bodies, self.q_index)
            for at in body.joint.quaternion_places
        )

    def check(self, name: str, value: ArrayLike, unit: bool = True) -> Array:
        """Return q, v, tau or a as a fresh float vector; raise with what is expected otherwise.

        Own states of elements that are left out of q have their start values.

        Quaternions in q that are a little off the unit sphere are brought back, others refused,
        unless `unit` is False; see ``docs/conventions.md``.
        """
        names = self.q_names if name == "q" else self.v_names
        array = np.atleast_1d(real_array(value, name)).astype(float)
        if name == "q" and self.n_states and array.shape == (self.nq - self.n_states,):
            array = np.append(array, self._own(self.neutral()))
        if array.shape != (len(names),):
            listed = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
            raise ValueError(
                f"{name}: expected {len(names)} numbers ({listed}), received shape "
                f"{np.shape(value)}"
            )
        return self.unit(array) if name == "q" and unit else array

    def unit(self, x: ArrayLike) -> Array:
        """Return a position or a state [q; v] with unit quaternions, by the rule of `check`."""
        array = np.array(x, dtype=float)
        for at in self.quaternion_places:
            if not unit_quaternion(array[at : at + 4]):
                raise ValueError(
                    f"q: the quaternion of {self.q_names[at].rsplit('.', 1)[0]!r} "
                    f"(q[{at}:{at + 4}]) has norm {np.linalg.norm(array[at : at + 4]):.9g}, "
                    f"expected 1 within {QUATERNION_TOLERANCE:g}; use model.normalise(q)"
                )
        return array

    # ------------------------------------------------------------------ numbers for kernels

    @cached_property
    def tree(self) -> Tree:
        """The model as arrays, as the dynamics kernels want it; made at the first use."""
        return FROM_DYNAMICS["tree"](self)

    # ------------------------------------------------------------------ identity and printing

    def _state(self) -> Any:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __getstate__(self) -> Any:
        return self._state()

    def __setstate__(self, state: Any) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._freeze()  # arrays come back from a pickle writable
        object.__setattr__(self, "constraints", tuple(bound(c, self) for c in self.constraints))

    @cached_property
    def _digest(self) -> str:
        parts: list[Any] = [self.name, self.gravity.tobytes()]
        for b in self.bodies:
            numbers: tuple[Array, ...] = (
                b.placement.E,
                b.placement.r,
                b.inertia.array,
                b.armature,
                b.damping,
            )
            numbers += (b.stiffness, b.rest, b.limits)
            parts += [b.name, b.parent, b.reverse, _identity(b.joint)]
            parts += [x.tobytes() for x in numbers]
        for c in self.loops:
            parts += [c.name, c.predecessor, c.successor, _identity(c.joint)]
            for X in (c.placement_predecessor, c.placement_successor):
                parts += [X.E.tobytes(), X.r.tobytes()]
        for stated in self.constraints:
            parts += [stated.name, stated.key(), stated.parameters]
        for s in self.springs:
            parts += [s.name, s.body_a, s.point_a.tobytes(), s.body_b, s.point_b.tobytes()]
            parts += [s.stiffness, s.damping, s.rest]
        for contact in self.contacts:
            parts += contact.identity()
        parts += [(named.name, named.element.identity()) for named in self.elements]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {_plural(self.n_bodies, 'body')}, nv = {self.nv}>"

    def __str__(self) -> str:
        closed = f", {_plural(len(self.loops), 'loop')}" if self.loops else ""
        if self.constraints:
            closed += f", {_plural(len(self.constraints), 'constraint')}"
        size = f"{_plural(self.n_bodies, 'body')}, nq = {self.nq}, nv = {self.nv}"
        lines = [f"{self.name}: {size}{closed}", "0 base"]
        lines += self._branches()
        for loop in self.loops:
            names = [self._name(loop.predecessor), self._name(loop.successor)]
            lines.append(f"loop {loop.name}: {names[0]} to {names[1]} by {loop.joint!r}")
        for stated in self.constraints:
            lines.append(f"constraint {stated.name}: {stated.description}")
        for contact in self.contacts:
            names = [self._name(contact.body_a), self._name(contact.body_b)]
            pair = "by a function" if contact.gap else f"{names[0]} with {names[1]}"
            lines.append(f"contact {contact.name}: {pair}")
        lines += [f"element {named.name}: {named.element!r}" for named in self.elements]
        return "\n".join(lines)

    def _name(self, i: int) -> str:
        return "base" if i == 0 else self.bodies[i - 1].name

    def _branches(self) -> Iterator[str]:
        """Lines of the tree, by a stack: a chain may have more bodies than Python has frames."""
        children: dict[int, list[int]] = {}
        for i, body in enumerate(self.bodies, 1):
            children.setdefault(body.parent, []).append(i)
        waiting = [(i, "") for i in reversed(children.get(0, []))]
        while waiting:
            i, indent = waiting.pop()
            body = self.bodies[i - 1]
            last = i == children[body.parent][-1]
            turned = ", reversed" if body.reverse else ""
            mass = body.inertia.array[0]
            yield (
                f"{indent}{'└─' if last else '├─'} {i} {body.name}: {body.joint!r}{turned}, "
                f"{mass:g} kg"
            )
            inner = (indent + ("   " if last else "│  "))[-WIDEST:]
            waiting += [(child, inner) for child in reversed(children.get(i, []))]


def _checked(parts: Any, kind: Any, check: Callable[[Any, int], Any], n: int) -> tuple[Any, ...]:
    """Parts of one kind, checked, under names that differ."""
    what = {Body: "body", Loop: "loop", PointSpring: "spring", Contact: "contact"}.get(
        kind, "constraint" if kind is Constraint else "element"
    )
    names: set[str] = set()
    found = []
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"model: expected {kind.__name__} objects, received {part!r:.80}")
        names.add(check_name(part.name, names, what))
        found.append(check(part, n))
    return tuple(found)


def _number(body: Any, n: int, where: str) -> int:
    if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body <= n:
        raise ValueError(f"{where}: expected the number of a body, 0 to {n}, received {body!r}")
    return int(body)


def _copied(X: Plucker) -> Plucker:
    return Plucker._of(floats(X.E).copy(), floats(X.r).copy())


def _body(body: Body, n: int) -> Body:
    """Body with an entry in each force array for each freedom."""
    joint = check_joint_object(body.joint, body.name)
    given = {key: getattr(body, key) for key in (*FORCES, "limits")}
    given = {key: value for key, value in given.items() if np.size(value)}
    return Body(
        body.name,
        _number(body.parent, n, f"body {body.name!r}: parent"),
        joint,
        _copied(placement_of(body.placement, body.name)),
        RigidInertia._of(floats(inertia_of(body.inertia, body.name).array).copy()),
        bool(body.reverse),
        **force_elements(body.name, joint, **given),
    )


def _loop(loop: Loop, n: int) -> Loop:
    where = f"loop {loop.name!r}"
    first, second = (_number(body, n, where) for body in (loop.predecessor, loop.successor))
    two_bodies(where, first, second)
    frames = (loop.placement_predecessor, loop.placement_successor)
    X_P, X_S = (_copied(placement_of(X, loop.name)) for X in frames)
    return Loop(loop.name, first, second, check_joint_object(loop.joint, loop.name), X_P, X_S)


def _spring(spring: PointSpring, n: int) -> PointSpring:
    where = f"spring {spring.name!r}"
    a, b = (_number(body, n, where) for body in (spring.body_a, spring.body_b))
    two_bodies(where, a, b)
    point_a, point_b, *constants = spring_numbers(
        spring.name,
        spring.point_a,
        spring.point_b,
        spring.stiffness,
        spring.damping,
        spring.rest,
    )
    return PointSpring(spring.name, a, point_a, b, point_b, *constants)


def _element(named: NamedElement, n: int) -> NamedElement:
    if not isinstance(named.element, Element):
        raise TypeError(
            f"element {named.name!r}: expected an Element, such as ForceLaw(law), received "
            f"{named.element!r:.80}"
        )
    return named


def _identity(joint: Joint) -> str:
    """Everything that tells joints apart, functions included; joints inside joints, too."""

    def plain(value: Any) -> Any:
        if isinstance(value, Joint):
            return plain(value._identity())
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    return repr(plain(joint))


def _slices(sizes: Iterable[int]) -> tuple[slice, ...]:
    places, at = [], 0
    for n in sizes:
        places.append(slice(at, at + n))
        at += n
    return tuple(places)


def _plural(n: int, noun: str) -> str:
    if n == 1:
        return f"1 {noun}"
    return f"{n} {noun[:-1]}ies" if noun.endswith("y") else f"{n} {noun}s"
