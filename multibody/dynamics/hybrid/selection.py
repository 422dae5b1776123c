"""Which freedoms are forward and which are prescribed, as arrays for kernels.

*Forward* freedoms have a known force and an unknown acceleration, as in forward dynamics;
*prescribed* ones the other way round, as in inverse dynamics. Freedoms of one joint may differ.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...checks import Array
from ..storage.workspace import TreeWorkspace

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["HybridTree", "HybridWorkspace", "hybrid_tree"]

EXTRA = {
    "is_forward": "i1",  # 1 for a freedom whose force is known
    "moved": "i1",  # ν(fd): 1 for a body that some forward freedom moves
    "parent_f": "i1",  # λ′ of the forward freedoms, in the numbering of all; −1 for prescribed ones
    "tau_known": "f1",  # forces of forward freedoms, else zero
    "a_known": "f1",  # accelerations of prescribed freedoms, else zero
    "held": "f1",  # C′: joint forces if forward freedoms did not accelerate
}


class HybridWorkspace(TreeWorkspace):
    """Arrays of a tree, and which of its freedoms are forward."""

    FIELDS: ClassVar[dict[str, str]] = {**TreeWorkspace.FIELDS, **EXTRA}


class HybridTree:
    """What hybrid dynamics of a model needs besides its tree; made at its first use."""

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, model.tree
        self._local = threading.local()

    def tables(self, forward: Array) -> dict[str, Array]:
        """Return the tables that follow from a choice of forward freedoms, one truth value each.

        Examples
        --------
        The book's Figure 9.1: of a tree of seven joints the first two are prescribed.

        >>> from multibody import ModelBuilder, Revolute, point_mass
        >>> b = ModelBuilder()
        >>> for i, parent in enumerate([0, 1, 1, 2, 2, 3, 3]):
        ...     _ = b.add_body(f"b{i + 1}", parent, Revolute(), inertia=point_mass(1.0, (1, 0, 0)))
        >>> tables = HybridTree(b.build()).tables(np.arange(7) >= 2)
        >>> tables["parent_f"].tolist(), tables["moved"].tolist()
        ([-1, -1, -1, -1, -1, 2, 2], [0, 0, 1, 1, 1, 1, 1])
        """
        a = self.tree.arrays
        moved = np.zeros(len(a["parent"]), dtype=np.int64)
        z_free = a["z_free"].copy()
        for i, p in enumerate(a["parent"]):
            own = forward[a["v_at"][i] : a["v_at"][i + 1]]
            moved[i] = own.any() or (p >= 0 and moved[p])
            z_free[i] = z_free[i] and own.all()
        # The nearest forward freedom at or below k, on the way to the root.
        nearest: list[int] = []
        parent_f = np.full(len(forward), -1)
        for k, p in enumerate(a["parent_v"]):
            below = nearest[p] if p >= 0 else -1
            parent_f[k] = below if forward[k] else -1
            nearest.append(k if forward[k] else below)
        return {
            "is_forward": forward.astype(np.int64),
            "moved": moved,
            "parent_f": parent_f.astype(np.int64),
            "z_free": z_free,
        }

    def workspace(self, forward: Array) -> HybridWorkspace:
        """Workspace of the calling thread, for compiled kernels, with these freedoms forward."""
        w = getattr(self._local, "workspace", None)
        if w is None:
            w = self._local.workspace = self._make_workspace(forward)
        elif not np.array_equal(w.is_forward, forward):
            for name, table in self.tables(forward).items():
                getattr(w, name)[:] = table
        return w

    def _make_workspace(self, forward: Array) -> HybridWorkspace:
        base = self.tree.make_workspace()
        fields = {name: getattr(base, name) for name in TreeWorkspace.FIELDS}
        return HybridWorkspace(**(fields | self.tables(forward) | self._variables(float)))

    def symbolic(self, forward: Array) -> SimpleNamespace:
        """Return a workspace of objects, for kernels run on symbols (or interpreted)."""
        base = vars(self.tree.symbolic())
        return SimpleNamespace(**(base | self.tables(forward) | self._variables(object)))

    def _variables(self, dtype: type) -> dict[str, Array]:
        names = [name for name, kind in EXTRA.items() if kind == "f1"]
        return {name: np.full(self.model.nv, 0.0, dtype=dtype) for name in names}


def hybrid_tree(model: Model) -> HybridTree:
    """The arrays of a model for hybrid dynamics; made once."""
    kept: dict[Any, Any] = model.tree.traced
    if "hybrid" not in kept:
        kept["hybrid"] = HybridTree(model)
    found: HybridTree = kept["hybrid"]
    return found
