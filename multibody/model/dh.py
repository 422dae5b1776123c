"""Denavit–Hartenberg parameters: chains described by four numbers a link (book, §4.3).

Two conventions are in use, and their tables look alike. With q in θ (or in d, or in both):

=========  ===============================  ====================================================
modified   Rx(α) · shift(a, 0, d) · Rz(θ)   link frame i on the axis of joint i; a, α lead from
                                            axis i−1 to axis i (the book's, Springer Handbook,
                                            Craig): ⁱX_{i−1} = rotz(θ) xlt([a 0 d]) rotx(α)
standard   Rz(θ) · shift(a, 0, d) · Rx(α)   link frame i on the axis of joint i+1, at the far end
                                            of the link (Denavit and Hartenberg, Paul, Corke)
=========  ===============================  ====================================================

Both are poses of link frame i in link frame i−1. Splitting Rz(θ) shift(0, 0, d) off the standard
form turns a standard table into a modified one whose a and α move down a row; what is left at the
end is part of the tool. Models are made in the modified form: each body's frame is on its joint's
z axis, and each placement is a single screw about x for the kernels. For a standard chain link
frames and body frames differ by the constant :func:`link_frame`, and inertias given in link
frames are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.inertia import CentralInertia, RigidInertia
from ..algebra.orientation.rotations import Rx, Rz
from ..algebra.se3 import Pose
from ..checks import ArrayLike, one_of, real_array, real_scalar
from ..joints import REGISTRY, Fixed, Joint
from .builder import ModelBuilder
from .graph import BASE
from .model import Model

__all__ = ["Link", "add_chain", "chain", "forward", "link_frame", "to_modified", "transform"]

CONVENTIONS = ("modified", "standard")


@dataclass(frozen=True)
class Link:
    """A row of a Denavit–Hartenberg table.

    Parameters
    ----------
    a, alpha
        Distance and angle between neighbouring axes, along and about x.
    d, theta
        Shift along and angle about the joint's axis z, at q = 0. The joint adds to them: a
        revolute joint q to θ, a prismatic one q to d, a cylindrical one (θ, d), a helical one
        q to θ and pitch·q to d.
    joint
        "revolute", "prismatic", "cylindrical", "fixed", or a joint object such as
        ``Helical(0.01)``, with axis z.

    Examples
    --------
    >>> Link(a=0.4, alpha=np.pi / 2).joint
    Revolute()
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    joint: Any = "revolute"

    def __post_init__(self) -> None:
        for name in ("a", "alpha", "d", "theta"):
            object.__setattr__(self, name, real_scalar(getattr(self, name), name))
        object.__setattr__(self, "joint", _joint(self.joint))

    @property
    def _bend(self) -> Pose:
        """What x does: shift by a, rotate by α; the two commute."""
        return Pose._of(Rx(self.alpha), np.array([self.a, 0.0, 0.0]))

    def _screw(self, q: ArrayLike) -> Pose:
        """What z does: rotate by θ, shift by d, with the joint's part of both."""
        values = self.joint.check_position(q)
        angle, shift = self.theta, self.d
        if self.joint.nq:
            angle += float(self.joint.angle @ values)
            shift += float(self.joint.shift @ values)
        return Pose._of(Rz(angle), np.array([0.0, 0.0, shift]))


def _joint(joint: Any) -> Joint:
    if isinstance(joint, str):
        kind = REGISTRY.get(joint)
        if kind is None or not (kind.is_axial or kind is Fixed) or joint == "helical":
            hint = ", with its pitch: Helical(0.01)" if joint == "helical" else ""
            raise ValueError(
                f"joint: expected 'revolute', 'prismatic', 'cylindrical', 'fixed' or a joint "
                f"object{hint}; received {joint!r}"
            )
        return kind()
    if not isinstance(joint, Joint):
        raise TypeError(f"joint: expected a name or a joint object, received {joint!r:.80}")
    if not (joint.is_axial or isinstance(joint, Fixed)):
        raise ValueError(
            f"joint: a Denavit–Hartenberg joint turns about or slides along one axis, which "
            f"{type(joint).__name__} does not; build the model with ModelBuilder"
        )
    if not np.array_equal(joint.axis, (0.0, 0.0, 1.0)):
        raise ValueError(
            f"joint: the axis of a Denavit–Hartenberg joint is z, received {joint.axis.tolist()}; "
            "leave it out"
        )
    return joint


def _links(rows: Any) -> list[Link]:
    links = []
    for k, row in enumerate(rows, 1):
        try:
            if isinstance(row, Link):
                links.append(row)
            elif isinstance(row, dict):
                links.append(Link(**row))
            else:
                links.append(Link(*row))
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"row {k}: {error}; a row is (a, alpha, d, theta, joint), the joint may be left out"
            ) from None
    if not links:
        raise ValueError("rows: expected at least one link, received none")
    return links


def transform(link: Link, q: ArrayLike, convention: str) -> Pose:
    """Pose of link frame i in link frame i−1, straight from the definition.

    Examples
    --------
    >>> transform(Link(a=2.0, d=3.0), [np.pi / 2], "standard").p.round(12)
    array([0., 2., 3.])
    >>> transform(Link(a=2.0, d=3.0), [np.pi / 2], "modified").p.round(12)
    array([2., 0., 3.])
    """
    one_of(convention, "convention", CONVENTIONS)
    parts = [link._bend, link._screw(q)]
    first, second = parts if convention == "modified" else parts[::-1]
    return first.compose(second)


def forward(
    rows: Sequence[Any],
    q: ArrayLike,
    convention: str,
    *,
    base: Pose | None = None,
    tool: Pose | None = None,
) -> list[Pose]:
    """Poses of all link frames, and last of the tool, in base coordinates.

    Parameters
    ----------
    rows
        Links, or rows (a, alpha, d, theta, joint).
    q
        Position variables of all joints.
    convention
        "modified" or "standard".
    base
        Pose of link frame 0; for the book's θ₀ and d₀ a rotation about and a shift along z.
    tool
        Pose of the tool in the last link frame.

    Examples
    --------
    Two links in a plane, stretched out:

    >>> forward([(1.0,), (0.5,)], [0.0, 0.0], "standard")[-1].p
    array([1.5, 0. , 0. ])
    """
    links = _links(rows)
    values = np.atleast_1d(real_array(q, "q"))
    size = sum(link.joint.nq for link in links)
    if values.shape != (size,):
        raise ValueError(f"q: expected {size} numbers, received shape {values.shape}")
    at = 0
    place = Pose.identity() if base is None else base
    poses = []
    for link in links:
        n = link.joint.nq
        place = place.compose(transform(link, values[at : at + n], convention))
        poses.append(place)
        at += n
    return [*poses, place if tool is None else place.compose(tool)]


def to_modified(rows: Sequence[Any]) -> tuple[list[Link], Pose]:
    """Modified table of a standard one, and the pose of the last link frame on the last body.

    Examples
    --------
    >>> links, end = to_modified([(1.0, 0.5), (2.0, 0.0)])
    >>> [(link.a, link.alpha) for link in links], end.p
    ([(0.0, 0.0), (1.0, 0.5)], array([2., 0., 0.]))
    """
    links = _links(rows)
    before = [Link(), *links]
    shifted = [
        Link(last.a, last.alpha, link.d, link.theta, link.joint)
        for last, link in zip(before, links)
    ]
    return shifted, links[-1]._bend


def link_frame(link: Link, convention: str) -> Pose:
    """Pose of a link frame on the body's frame in the model; the identity for the modified form.

    Examples
    --------
    >>> link_frame(Link(a=0.4), "standard").p
    array([0.4, 0. , 0. ])
    """
    one_of(convention, "convention", CONVENTIONS)
    return link._bend if convention == "standard" else Pose.identity()


def add_chain(
    builder: ModelBuilder,
    rows: Sequence[Any],
    convention: str,
    *,
    inertias: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    parent: str | int = 0,
    base: Pose | None = None,
    tool: Pose | None = None,
    armature: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
) -> list[str]:
    """Add a chain to a builder; returns the names of its bodies.

    Parameters
    ----------
    builder
        Where the chain is added; other bodies may hang on the chain, and the chain on others.
    rows, convention, base, tool
        As in :func:`forward`. A tool becomes one more body, fixed and without mass.
    inertias
        Of each link, in its *link frame*: `Inertia(…)`, a shape, or None.
    names
        Of the bodies, and of the tool if there is one; "link 1", …, "tool" if not given.
    parent
        Body (its frame in the model) that carries the chain; 0 for the base.
    armature, damping
        One number for all joints, or one for each joint.

    Examples
    --------
    An arm of two links on a cart that rolls along x:

    >>> from multibody import Prismatic, sphere
    >>> b = ModelBuilder(name="cart with arm")
    >>> b.add_body("cart", 0, Prismatic("x"), inertia=sphere(0.1, mass=5.0))
    1
    >>> bob = sphere(0.1, mass=1.0)
    >>> add_chain(b, [(0.5,), (0.4,)], "standard", inertias=[bob, bob], parent="cart")
    ['link 1', 'link 2']
    >>> b.build().nv
    3
    """
    one_of(convention, "convention", CONVENTIONS)
    links = _links(rows)
    n = len(links)
    size = n + (tool is not None)
    if names is None:
        names = [*(f"link {k}" for k in range(1, n + 1)), "tool"][:size]
    given: Sequence[Any] = [None] * n if inertias is None else inertias
    for what, found, wanted in (("names", names, size), ("inertias", given, n)):
        if len(found) != wanted:
            raise ValueError(
                f"{what}: expected {wanted} for {n} links, received {len(found)}; give one each"
            )
    elements = {
        key: np.broadcast_to(_per_joint(value, key, n), (n,))
        for key, value in (("armature", armature), ("damping", damping))
    }
    shifted, end = to_modified(links) if convention == "standard" else (links, Pose.identity())
    above: str | int = BASE if parent == 0 else parent
    for k, (link, inertia) in enumerate(zip(shifted, given)):
        placement = link._bend.compose(link._screw(link.joint.neutral()))
        if k == 0 and base is not None:
            placement = base.compose(placement)
        builder.add_body(
            names[k],
            above,
            link.joint,
            placement,
            _moved(inertia, link_frame(links[k], convention), names[k]),
            armature=elements["armature"][k],
            damping=elements["damping"][k],
        )
        above = names[k]
    if tool is not None:
        builder.add_body(names[n], above, Fixed(), end.compose(tool))
    return list(names)


def _per_joint(value: ArrayLike, key: str, n: int) -> Any:
    array = real_array(value, key)
    if array.shape not in ((), (n,)):
        raise ValueError(
            f"{key}: expected one number or {n}, one for each joint, received shape {array.shape}"
        )
    return array


def _moved(inertia: Any, frame: Pose, name: str) -> RigidInertia | None:
    """Inertia of a link frame in the frame of the body."""
    if inertia is None:
        return None
    if isinstance(inertia, CentralInertia):
        inertia = inertia.rigid()
    if not isinstance(inertia, RigidInertia):
        try:
            inertia = RigidInertia.from_parameters(inertia)
        except TypeError:
            raise TypeError(
                f"{name}: expected Inertia(mass, com, I_com), a shape such as rod(…), or ten "
                f"parameters as inertia, received {inertia!r:.80}"
            ) from None
    moved: RigidInertia = frame.act(inertia)
    return moved


def chain(
    rows: Sequence[Any],
    convention: str,
    *,
    inertias: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    base: Pose | None = None,
    tool: Pose | None = None,
    armature: ArrayLike = 0.0,
    damping: ArrayLike = 0.0,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    name: str = "chain",
) -> Model:
    """Model of an unbranched chain from its Denavit–Hartenberg table.

    Parameters
    ----------
    rows, convention, base, tool
        As in :func:`forward`.
    inertias, names, armature, damping
        As in :func:`add_chain`; without inertias joints need an armature.
    gravity, name
        As in `ModelBuilder`.

    Examples
    --------
    Two rods in a vertical plane; in the standard convention the origin of a link is at its end:

    >>> from multibody import gravity_forces, rod
    >>> bars = [rod((-1, 0, 0), (0, 0, 0), mass=1.0)] * 2
    >>> arm = chain([(1.0,), (1.0,)], "standard", inertias=bars, gravity=(0, -10, 0))
    >>> gravity_forces(arm, [0.0, 0.0])
    array([20.,  5.])
    """
    builder = ModelBuilder(gravity, name)
    add_chain(
        builder,
        rows,
        convention,
        inertias=inertias,
        names=names,
        base=base,
        tool=tool,
        armature=armature,
        damping=damping,
    )
    return builder.build()
