"""Workspaces for derivatives: those of a tree, with directions, slopes and results."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...checks import Array
from ..laws import Fresh, law_callback, law_code
from ..tables import starts
from ..workspace import TreeWorkspace
from .articulated import is_deep, leaf_slots
from .laws import (
    freedoms_are_constant,
    rate_slope_count,
    rate_slopes,
    slope_count,
    slope_law,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["DEEP_TREE", "TILE", "DerivativeTree", "DerivativeWorkspace"]

# Place in `switches`, behind those of ``tree``: whether H is inverted by articulated inertias.
DEEP_TREE = 3

#: Columns that are solved for together: as many as stay in the fastest memory.
TILE = 64

EXTRA = {
    "task": "i1",  # see ``derivative_results``
    "root": "i1",  # root body of the tree that each body is in
    "varies": "i1",  # 1 if the law of a joint has slopes
    "d_at": "i1",  # first direction of each joint, and their number
    "above": "i1",  # nearest velocity variable and direction that a joint rides on, −1 for none
    "above_d": "i1",
    "parent_d": "i1",  # expanded parent array of the directions
    "run": "i1",  # first of the variables that lead to this one without a gap in their numbers
    "vary_at": "i1",  # first row of a joint in `S_slope`
    "slopes": "i1",  # addresses of the slopes of laws …
    "rate_slopes": "i1",  # … and of q̇, 0 where q̇ = v
    "law_slope": "f1",  # what they write
    "arm": "f2",  # from the origin of the root body to that of each body
    "I_0": "f2",  # inertia in base axes
    "IJ": "f2",
    "more": "f2",
    "J": "f2",  # freedoms in base axes
    "joint_v": "f2",  # v_J in base axes
    "psi": "f2",  # see ``derivative_kernels``
    "xi": "f2",
    "zeta": "f2",
    "chi": "f2",
    "S_slope": "f2",
    "coriolis": "f2",
    "momentum": "f2",
    "outer": "f2",
    "push": "f1",
    "turned": "f1",
    "spring": "f1",
    "slot": "i1",  # see ``derivative_articulated``
    "is_leaf": "i1",
    "swing": "f3",
    "slope": "f2",  # by directions, by velocities, and by joint forces
    "result": "f3",  # along velocities, by velocities, by joint forces (or accelerations)
    "jacobian": "f2",  # of [q̇; v̇] by [q; v]
    "gain": "f1",  # at which quaternions are pulled back to unit norm …
}


class DerivativeWorkspace(TreeWorkspace):
    """Arrays of a tree, and of the derivatives of its dynamics."""

    FIELDS: ClassVar[dict[str, str]] = {**TreeWorkspace.FIELDS, **EXTRA}


def _expanded(parents: Array, sizes: list[int]) -> tuple[Array, Array]:
    """Variable that each joint rides on, and that each variable rides on; −1 for none."""
    at = starts(sizes)
    above: list[int] = []
    last: list[int] = []
    expanded: list[int] = []
    for i, (parent, n) in enumerate(zip(parents, sizes)):
        nearest = last[parent - 1] if parent else -1
        above.append(nearest)
        expanded += [nearest if k == 0 else at[i] + k - 1 for k in range(n)]
        last.append(at[i] + n - 1 if n else nearest)
    return np.array(above, dtype=np.int64), np.array(expanded, dtype=np.int64)


class DerivativeTree:
    """What a model's derivatives need besides its tree; made at their first use.

    The *directions* of a joint are its velocity variables where S is constant, else the numbers
    in q. (Nonholonomic joints have positions that no velocity reaches directly.)
    """

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, model.tree
        bodies = model.bodies
        self.varies = np.array([not freedoms_are_constant(b) for b in bodies], dtype=np.int64)
        sizes = [b.joint.nq if varies else b.joint.nv for b, varies in zip(bodies, self.varies)]
        vary = [b.joint.nv * n if varies else 0 for b, n, varies in zip(bodies, sizes, self.varies)]
        root: list[int] = []
        for i, b in enumerate(bodies):
            root.append(root[b.parent - 1] if b.parent else i)
        parent_v = self.tree.arrays["parent_v"]
        above, _ = _expanded(model.parents, [b.joint.nv for b in bodies])
        above_d, parent_d = _expanded(model.parents, sizes)
        run: list[int] = []
        for k, parent in enumerate(parent_v):
            run.append(run[k - 1] if parent == k - 1 and k > 0 else k)
        self.is_deep = is_deep(parent_v)
        slots = leaf_slots([b.parent - 1 for b in bodies])
        self.leaves = max(slots) + 1 if self.is_deep else 0
        leaf = [1] * len(bodies)
        for b in bodies:
            if b.parent:
                leaf[b.parent - 1] = 0
        self.tables = {
            "slot": np.array(slots, dtype=np.int64),
            "is_leaf": np.array(leaf, dtype=np.int64),
            "above": above,
            "above_d": above_d,
            "parent_d": parent_d,
            "run": np.array(run, dtype=np.int64),
            "root": np.array(root, dtype=np.int64),
            "varies": self.varies,
            "d_at": starts(sizes),
            "vary_at": starts(vary),
        }
        self.slope_functions = [
            slope_law(b) if varies else None for b, varies in zip(bodies, self.varies)
        ]
        self.rate_functions = [None if b.joint.rate_is_velocity else rate_slopes(b) for b in bodies]
        self._local = threading.local()
        self._kept: list[Any] = []

    @property
    def workspace(self) -> DerivativeWorkspace:
        """Workspace of the calling thread, for compiled kernels."""
        found = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = self.make_workspace()
        return found

    def make_workspace(self) -> DerivativeWorkspace:
        """Return a new workspace."""
        base = self.tree.make_workspace()
        fields = {name: getattr(base, name) for name in TreeWorkspace.FIELDS}
        fields["switches"] = np.append(base.switches, int(self.is_deep))
        return DerivativeWorkspace(
            **fields,
            **self.tables,
            task=np.zeros(1, dtype=np.int64),
            slopes=self._addresses(self.slope_functions, "slopes", slope_count),
            rate_slopes=self._addresses(self.rate_functions, "rates", rate_slope_count),
            **self._variables(float),
        )

    def symbolic(self) -> SimpleNamespace:
        """Return a workspace of objects, for kernels run on symbols (or interpreted)."""
        base = self.tree.symbolic()
        base.switches = [*base.switches, int(self.is_deep)]
        return SimpleNamespace(
            **vars(base),
            **self.tables,
            task=[0],
            slopes=self.slope_functions,
            rate_slopes=self.rate_functions,
            **self._variables(object),
        )

    def _variables(self, dtype: type) -> dict[str, Array]:
        model = self.model
        nb, nv, nq = model.n_bodies, model.nv, model.nq
        nd = int(self.tables["d_at"][-1])
        most = [slope_count(b.joint) for b, f in zip(model.bodies, self.slope_functions) if f]
        most += [rate_slope_count(b.joint) for b, f in zip(model.bodies, self.rate_functions) if f]
        shapes: dict[str, tuple[int, ...]] = {
            "law_slope": (max(most, default=1),),
            "arm": (nb, 3), "I_0": (nb, 10), "more": (nb, 6), "joint_v": (nb, 6),
            "J": (nv, 6), "IJ": (nv, 6),
            "psi": (nd, 6), "xi": (nd, 6), "zeta": (nd, 6), "chi": (nv, 6),
            "S_slope": (int(self.tables["vary_at"][-1]), 6),
            "coriolis": (nb, 9), "momentum": (nb, 3), "outer": (nb, 6),
            "push": (6,), "turned": (3,), "spring": (19,),
            "slope": (nv, nd + 2 * nv), "result": (3, nv, nv),
            "swing": (self.leaves, 6, TILE), "jacobian": (nq + nv, nq + nv),
            "gain": (1,),
        }  # fmt: skip
        return {name: np.zeros(shape, dtype=dtype) for name, shape in shapes.items()}

    def _addresses(self, functions: list[Any], name: str, count: Any) -> Array:
        return np.array(
            [self._address(f, b, name, count) for f, b in zip(functions, self.model.bodies)],
            dtype=np.int64,
        )

    def _address(self, function: Any, body: Any, name: str, count: Any) -> int:
        """Address of machine code for slopes, or of a callback where a law cannot be traced."""
        if function is None:
            return 0
        joint = body.joint
        n, k, size = joint.nq + joint.nv, len(joint.parameters), count(joint)
        if joint.is_traceable:
            key = (name, joint.law_key(), joint.quaternion_places, body.reverse)
            code = law_code(key, Fresh(function), n, k, size)
            self._kept.append(code)
            return int(code.address)
        callback = law_callback(function, n, k, size, self.tree)
        self._kept.append(callback)
        return int(ctypes.cast(callback, ctypes.c_void_p).value or 0)
