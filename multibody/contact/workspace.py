"""Contacts of a model as arrays, beside those of its tree.

The workspace begins with the fields of the tree's, and shares its arrays: kernels of the tree run
on the one, kernels of contact on the other, and see the same positions.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from integrators.kernels.workspace import Workspace

from ..checks import Array
from ..dynamics.storage.workspace import TreeWorkspace
from ..model.surfaces import (
    BALL_BALL,
    BALL_BOWL,
    BALL_PLANE,
    CAPSULES,
    DISC_PLANE,
    GAP_FUNCTION,
)
from .scales import length_of, speed_of

if TYPE_CHECKING:
    from ..model import Contact, Model

__all__ = ["SLOW", "ContactWorkspace", "Contacts", "contacts_of"]

#: Numbers of an elementary contact, at most: two segments with radii.
MOST_NUMBERS = 14

#: Below this slip, in parts of the mechanism's speed, the direction goes over to the one that was
#: last known: at the very end of sliding friction would turn ever faster, and smaller than any
#: error that an integrator allows.
SLOW = 1e-5

#: Rows of contacts that there is room for at first; more is made when they are held.
HELD_ROWS = 96

# Where in the numbers of each kind points and directions are: of body a, then of body b.
POINTS = {
    BALL_PLANE: (((3,), (6,)), ((0,), ())),
    DISC_PLANE: (((3,), (6,)), ((0,), (9,))),
    BALL_BALL: (((0,), (4,)), ((), ())),
    BALL_BOWL: (((0,), (4,)), ((), ())),
    CAPSULES: (((0, 3), (7, 10)), ((), ())),
}


class ContactWorkspace(Workspace, begins_as=TreeWorkspace):
    """Arrays of a tree and of its contacts; shapes are of nc points and nv velocities."""

    FIELDS: ClassVar[dict[str, str]] = {
        **TreeWorkspace.FIELDS,
        "kind": "i1",
        "body_a": "i1",  # counted from 0, the base is −1
        "body_b": "i1",
        "numbers": "f2",
        "gap_laws": "i1",  # addresses of user functions
        "gap_out": "f1",
        "state": "f1",  # [q; v], for them
        "phi": "f1",  # gaps
        "normal": "f2",  # of each point, then its two tangents: rows 3i, 3i + 1, 3i + 2
        "point": "f2",
        "normal_rate": "f2",
        "point_rate": "f2",
        "T": "f2",  # rows of the normal and the two tangents of each point
        "speed": "f1",  # rate of the gap and slip: T v, and what time adds
        "bias": "f1",  # their derivatives where v̇ = 0
        "motion_a": "f1",  # ω, v, α, a, r of the two bodies, in base axes at their origins
        "motion_b": "f1",
        "spare3": "f2",
        # Contacts that are held, see multibody.contact.held_kernel.
        "held_count": "i1",
        "held_row": "i1",  # rows of T that must not accelerate
        "held_mu": "f1",  # friction that a normal force drags along, 0 if none
        "held_slow": "f1",  # speed below which slip has no direction of its own
        "held_known": "f2",  # direction of slip where it was last known …
        "held_slip": "f2",  # … and as it is
        "R_rows": "f2",
        "G_rows": "f2",
        "system": "f2",
        "system_factor": "f2",
        "pivots": "i1",
        "rhs": "f1",
        "held_x": "f1",
        "held_step": "f1",
        "contact_force": "f1",  # normal and tangential, of all points
        "slope": "f1",
    }


class _Loaded(threading.local):
    """What the rows of the calling thread's workspace hold, see `contact.held`."""

    held: Any = None


class Contacts:
    """Elementary contacts of a model, and workspaces to compute on.

    Attributes
    ----------
    names
        Of the points.
    contacts
        The contact that each point belongs to.
    restitution, friction
        Of each point.
    length, speed
        What thresholds are parts of, see `contact.scales`.
    """

    def __init__(self, model: Model, contacts: tuple[Contact, ...]) -> None:
        self.model = model
        self.names: list[str] = []
        self.contacts: list[Contact] = []
        kinds, bodies, numbers = [], [], []
        functions: list[Any] = []
        for contact in contacts:
            if contact.gap is not None:
                self.names.append(contact.name)
                self.contacts.append(contact)
                kinds.append(GAP_FUNCTION)
                bodies.append((-1, -1))
                numbers.append(np.zeros(MOST_NUMBERS))
                functions.append(contact.gap)
                continue
            for name, turned, kind, given in contact.points():
                pair = (contact.body_a, contact.body_b)
                pair = pair[::-1] if turned else pair
                self.names.append(name)
                self.contacts.append(contact)
                kinds.append(kind)
                bodies.append((pair[0] - 1, pair[1] - 1))
                numbers.append(self._internal(kind, given, pair))
                functions.append(None)
        n = len(self.names)
        self.n = n
        self.kinds = np.array(kinds, dtype=np.int64)
        self.bodies = np.array(bodies, dtype=np.int64).reshape(n, 2)
        self.numbers = np.array(numbers, dtype=float).reshape(n, MOST_NUMBERS)
        self.functions = functions
        self.restitution = np.array([c.restitution for c in self.contacts])
        self.friction = np.array([c.friction for c in self.contacts])
        self.length = length_of(model)
        self.speed = speed_of(model, self.length)
        self._local = threading.local()
        self.loaded = _Loaded()
        self._kept: list[Any] = []

    def _internal(self, kind: int, given: list[float], pair: tuple[int, int]) -> Array:
        """Numbers with points and directions in the internal coordinates of the bodies."""
        out = np.zeros(MOST_NUMBERS)
        out[: len(given)] = given
        turn = self.model.tree.turn
        for group in POINTS[kind]:
            for body, places in zip(pair, group):
                for at in places if body else ():
                    out[at : at + 3] = turn[body - 1] @ out[at : at + 3]
        return out

    @property
    def workspace(self) -> ContactWorkspace:
        """Workspace of the calling thread."""
        tree = self.model.tree.workspace
        found = getattr(self._local, "workspace", None)
        if found is None or found.q is not tree.q:
            found = self._local.workspace = self._make(tree)
            self.loaded.held = None
        return found

    def _make(self, tree: TreeWorkspace) -> ContactWorkspace:
        n, nv = self.n, self.model.nv
        shared = {name: getattr(tree, name) for name in TreeWorkspace.FIELDS}
        return ContactWorkspace(
            **shared,
            kind=self.kinds,
            body_a=np.ascontiguousarray(self.bodies[:, 0]),
            body_b=np.ascontiguousarray(self.bodies[:, 1]),
            numbers=self.numbers,
            gap_laws=np.array([self._law(f) for f in self.functions], dtype=np.int64),
            gap_out=np.zeros(nv + 3),
            state=np.zeros(self.model.nq + nv),
            phi=np.zeros(n),
            normal=np.zeros((3 * n, 3)),
            point=np.zeros((n, 3)),
            normal_rate=np.zeros((n, 3)),
            point_rate=np.zeros((n, 3)),
            T=np.zeros((3 * n, nv)),
            speed=np.zeros(3 * n),
            bias=np.zeros(3 * n),
            motion_a=np.zeros(15),
            motion_b=np.zeros(15),
            spare3=np.zeros((12, 3)),
            held_count=np.zeros(1, dtype=np.int64),
            held_slow=np.array([SLOW * self.speed]),
            contact_force=np.zeros(3 * n),
            **self._held(min(3 * n, HELD_ROWS), len(tree.rows)),
        )

    def make_room(self, w: ContactWorkspace, rows: int) -> None:
        """Let so many rows be held."""
        if rows > len(w.held_row):
            for name, array in self._held(2 * rows, len(w.rows)).items():
                w.replace(name, array)
            self.loaded.held = None

    def _held(self, n: int, loops: int) -> dict[str, Array]:
        """Arrays for n rows of contacts that are held, beside those of the loops."""
        nv, m = self.model.nv, n + loops
        return {
            "held_row": np.zeros(n, dtype=np.int64),
            "held_mu": np.zeros(n),
            "held_known": np.zeros((n, 2)),
            "held_slip": np.zeros((n, 2)),
            "R_rows": np.zeros((m, nv)),
            "G_rows": np.zeros((m, nv)),
            "system": np.zeros((m, m)),
            "system_factor": np.zeros((m, m)),
            "pivots": np.zeros(m, dtype=np.int64),
            "rhs": np.zeros(m),
            "held_x": np.zeros(m),
            "held_step": np.zeros(m),
            "slope": np.zeros(n),
        }

    def _law(self, function: Any) -> int:
        """Address of the machine code of a user's gap: φ, φ̇, bias and the row T."""
        if function is None:
            return 0
        from .user_gap import gap_law

        code = gap_law(self.model, function).machine_code()
        self._kept.append(code)
        return int(code.address)


def contacts_of(model: Model, every: bool = False) -> Contacts:
    """Rigid contacts of a model as arrays, or those with a law as well; made once."""
    kept, chosen = model.tree.traced, model.contacts if every else model.rigid_contacts
    key = "contacts", len(chosen)
    if key not in kept:
        kept[key] = Contacts(model, chosen)
    found: Contacts = kept[key]
    return found
