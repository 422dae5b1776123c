"""Arrays of a time step, beside those of a tree and of its contacts.

Only contacts that take part in a step have rows, and of a row only the velocity variables that the
two bodies ride on are ever looked at: so a heap of a hundred balls, with five thousand pairs that
might touch, costs what the few hundred pairs cost that do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from integrators.kernels.workspace import Workspace

from ...checks import Array
from ...model.surfaces import BALL_BALL, BALL_PLANE
from ..workspace import Contacts, ContactWorkspace

if TYPE_CHECKING:
    from ...joints import Joint

__all__ = [
    "ALIKE",
    "BALLS",
    "OVER_PLANE",
    "PLANE",
    "RIGID",
    "ROTATION",
    "StepWorkspace",
    "dense_rows",
    "make_room",
    "step_workspace",
]

# How the position of a joint follows its velocity: q̇ at the middle of the step, or on the group.
ALIKE, ROTATION, RIGID, PLANE = 0, 1, 2, 3
GROUPS: dict[tuple[str, ...], int] = {("SO3",): ROTATION, ("SE3",): RIGID, ("SE2",): PLANE}

#: Contacts that have room at first; more is made when it is needed.
ROOM = 16

#: Which quick look tells whether a gap is closed: none, two balls, or a ball over a fixed plane.
LOOK, BALLS, OVER_PLANE = 0, 1, 2


class StepWorkspace(Workspace, begins_as=ContactWorkspace):
    """Arrays of a tree, its contacts, and a step; `na` contacts take part, there is room for nr."""

    FIELDS: ClassVar[dict[str, str]] = {
        **ContactWorkspace.FIELDS,
        "group": "i1",  # of each joint
        "q_start": "f1",
        "q_middle": "f1",
        "v_start": "f1",
        "v_end": "f1",  # without contact, then with it
        "given_tau": "f1",  # joint forces that a user gives
        "span": "f1",  # h
        "look": "i1",  # of each contact: kind of quick look …
        "ball_a": "i1",  # … and the two balls it asks
        "ball_b": "i1",
        "ball_body": "i1",
        "ball_place": "f2",  # centre in the body
        "ball_at": "f2",  # and in the base
        "friction": "f1",  # of each contact …
        "kept": "f1",  # … and its impulse in the step before
        "active": "i1",  # numbers of the contacts that take part
        "counts": "i1",  # how many do, and sweeps
        "columns": "i2",  # velocity variables of each …
        "width": "i1",  # … and how many
        "whitened": "f2",  # rows D^(−½) L⁻ᵀ Tᵀ of each, on its columns …
        "loop_rows": "f2",  # … and of the loops, orthonormal
        "rows_3": "f2",  # the three rows of one contact, on all columns
        "before": "f1",  # speeds of the points before the step, …
        "free_speed": "f1",  # … and after it without impulses, less what they are to be
        "rough": "f1",  # friction
        "impulse": "f1",
        "last_impulse": "f1",
        "search": "f1",  # direction of the conjugate gradients
        "own": "f2",  # what an impulse does to its own point, along the normal and the tangents
        "summed": "f1",  # Σ rows · impulses
    }


def _group_of(joint: Joint) -> int:
    from ...joints import Joint as Base

    plain = type(joint).group_velocity is Base.group_velocity
    return GROUPS.get(tuple(joint.groups), ALIKE) if plain else ALIKE


def _quick_looks(contacts: Contacts) -> dict[str, Array]:
    """Balls of all contacts, each once, and which two each contact asks."""
    balls: dict[tuple[float, ...], int] = {}

    def ball(body: int, centre: Array) -> int:
        return balls.setdefault((body, *map(float, centre)), len(balls))

    look = np.zeros(contacts.n, dtype=np.int64)
    pairs = np.zeros((2, contacts.n), dtype=np.int64)
    for c, (kind, (a, b), x) in enumerate(zip(contacts.kinds, contacts.bodies, contacts.numbers)):
        if kind == BALL_BALL:
            look[c] = BALLS
            pairs[:, c] = ball(a, x[0:3]), ball(b, x[4:7])
        elif kind == BALL_PLANE and a < 0:
            look[c] = OVER_PLANE
            pairs[:, c] = 0, ball(b, x[6:9])
    places = np.array([key[1:] for key in balls], dtype=float).reshape(-1, 3)
    return {
        "look": look,
        "ball_a": np.ascontiguousarray(pairs[0]),
        "ball_b": np.ascontiguousarray(pairs[1]),
        "ball_body": np.array([key[0] for key in balls], dtype=np.int64),
        "ball_place": places,
        "ball_at": np.zeros_like(places),
    }


def step_workspace(contacts: Contacts) -> StepWorkspace:
    """Workspace of the calling thread."""
    begin = contacts.workspace
    model = contacts.model
    shared = {name: getattr(begin, name) for name in ContactWorkspace.FIELDS}
    nv, room = model.nv, min(ROOM, contacts.n)
    vectors = {name: np.zeros(nv) for name in ("v_start", "v_end", "given_tau", "summed")}
    return StepWorkspace(
        **shared,
        **vectors,
        **_quick_looks(contacts),
        **_rows(room, widest(contacts)),
        rows_3=np.zeros((3, nv)),
        group=np.array([_group_of(body.joint) for body in model.bodies], dtype=np.int64),
        q_start=np.zeros(model.nq),
        q_middle=np.zeros(model.nq),
        span=np.zeros(1),
        friction=contacts.friction.astype(float),
        kept=np.zeros(3 * contacts.n),
        active=np.zeros(contacts.n, dtype=np.int64),
        counts=np.zeros(2, dtype=np.int64),
        loop_rows=np.zeros((len(begin.rows), nv)),
    )


def widest(contacts: Contacts) -> int:
    """Columns that a contact has at most."""
    model = contacts.model
    if model.bonds or any(function is not None for function in contacts.functions):
        return model.nv
    tree = model.tree.arrays
    below = np.diff(tree["v_at"])
    for i, parent in enumerate(tree["parent"]):  # variables between a body and the base
        below[i] += below[parent] if parent >= 0 else 0
    ends = [below[pair[pair >= 0]].sum() for pair in contacts.bodies]
    return int(min(model.nv, max(ends, default=0)))


def _rows(room: int, width: int) -> dict[str, Any]:
    """Arrays for so many contacts that take part."""
    names = ("before", "free_speed", "impulse", "last_impulse", "search")
    return {
        **{name: np.zeros(3 * room) for name in names},
        "columns": np.zeros((room, width), dtype=np.int64),
        "width": np.zeros(room, dtype=np.int64),
        "whitened": np.zeros((3 * room, width)),
        "rough": np.zeros(room),
        "own": np.zeros((room, 2)),
    }


def make_room(w: StepWorkspace, needed: int) -> None:
    """Let so many contacts take part."""
    if needed > len(w.width):
        for name, array in _rows(2 * needed, w.columns.shape[1]).items():
            w.replace(name, array)


def dense_rows(w: StepWorkspace) -> Array:
    """Whitened rows of the contacts that take part, on all columns."""
    n = int(w.counts[0])
    Y = np.zeros((3 * n, len(w.v)))
    for s in range(n):
        columns = w.columns[s, : w.width[s]]
        Y[3 * s : 3 * s + 3, columns] = w.whitened[3 * s : 3 * s + 3, : w.width[s]]
    return Y
