"""Gaps and their motion as functions of a model (book, §11.3–11.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array, ArrayLike
from ..dynamics.storage.loading import load, load_given
from ..dynamics.storage.workspace import TreeWorkspace
from ..dynamics.with_elements import accelerations_kernel
from .geometry import contact_kernel
from .workspace import ContactWorkspace, contacts_of

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["ContactKinematics", "contact_kinematics", "kinematics_at"]

# Kernels of the tree are compiled for its own workspace, once for all; see contact.workspace.
_bodies = OnWorkspace(accelerations_kernel, TreeWorkspace)
_contacts = OnWorkspace(contact_kernel, ContactWorkspace)


class ContactKinematics(NamedTuple):
    """All contact points of a model at one state; arrays with an entry for each.

    Attributes
    ----------
    names
        Of the points.
    gap
        φ, positive where the surfaces are apart.
    gap_rate, slip
        ζ = φ̇, and the velocity of b against a along the two tangents.
    normal, tangents, point
        In base coordinates; the normal points from a to b.
    T
        (n, 3, nv): rows of the normal and of the tangents, so that T v is (ζ, slip), but for what
        time moves; Tᵀ λ are the joint forces of contact forces λ.
    bias
        (n, 3): what T v̇ lacks to the derivative of (ζ, slip).
    """

    names: tuple[str, ...]
    gap: Array
    gap_rate: Array
    slip: Array
    normal: Array
    tangents: Array
    point: Array
    T: Array
    bias: Array


def need_contacts(model: Model, every: bool = False) -> None:
    """Raise if a model has no rigid contacts, or none at all."""
    if not (model.contacts if every else model.rigid_contacts):
        kind = "" if every else "rigid "
        raise ValueError(
            f"{model.name!r} has no {kind}contacts; add one with ModelBuilder.add_contact"
        )


def contact_kinematics(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, *, t: float = 0.0
) -> ContactKinematics:
    """Gaps of all contact points, how they change, and where they are.

    Examples
    --------
    >>> import multibody as mb
    >>> b = mb.ModelBuilder()
    >>> _ = b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=1.0, radius=0.1))
    >>> b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1))
    >>> found = contact_kinematics(b.build(), [0.3], [-2.0])
    >>> found.gap.round(12), found.gap_rate
    (array([0.2]), array([-2.]))
    """
    need_contacts(model, every=True)
    load_given(model, q, v, t)
    return _loaded(model, every=True)


def kinematics_at(model: Model, q: Array, v: Array | None, t: float) -> ContactKinematics:
    """The same of rigid contacts at a state of a run, whose quaternions are taken as they are."""
    load(model, q, v, t)
    return _loaded(model)


def run_contacts(model: Model, moved: bool = False, every: bool = False) -> Any:
    """Workspace of contact, computed at the state that is loaded.

    `moved` says that the bodies have been moved already, with a_q = 0; `every`, that compliant
    contacts count, too.
    """
    tree = model.tree.workspace
    if not moved:
        tree.a_q[:] = 0.0
        _bodies(tree)
    w: Any = contacts_of(model, every).workspace
    _contacts(w)
    return w


def _loaded(model: Model, every: bool = False) -> ContactKinematics:
    contacts = contacts_of(model, every)
    w = run_contacts(model, every=every)
    n = contacts.n
    frames, speed = w.normal.reshape(n, 3, 3), w.speed.reshape(n, 3)
    return ContactKinematics(
        tuple(contacts.names),
        w.phi.copy(),
        speed[:, 0].copy(),
        speed[:, 1:].copy(),
        frames[:, 0].copy(),
        frames[:, 1:].copy(),
        w.point.copy(),
        w.T.reshape(n, 3, model.nv).copy(),
        w.bias.reshape(n, 3).copy(),
    )


def gaps_at(model: Model, q: Array, v: Array | None, t: float) -> tuple[Array, Array]:
    """Gaps and their rates only."""
    load(model, q, v, t)
    w = run_contacts(model)
    return w.phi.copy(), np.ascontiguousarray(w.speed[::3])
