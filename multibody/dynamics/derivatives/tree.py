"""Workspaces for derivatives: those of a tree, with directions, slopes and results."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...checks import Array
from ..storage.laws import Fresh, law_callback, law_code, stated_key
from ..storage.tables import starts
from ..storage.workspace import TreeWorkspace
from .articulated import is_deep, leaf_slots
from .laws import (
    bond_sizes,
    bond_slopes,
    freedoms_are_constant,
    rate_slope_count,
    rate_slopes,
    slope_count,
    slope_law,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["DEEP_TREE", "RANK_BY_VALUES", "TILE", "DerivativeTree", "DerivativeWorkspace"]

# Places in `switches`, behind those of ``tree``: whether H is inverted by articulated inertias, and
# whether the rank of constraints is decided upon, which cannot be done on symbols.
DEEP_TREE, RANK_BY_VALUES = 3, 4

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
    "gain": "f1",  # at which quaternions are pulled back to unit norm
    # Of loops and constraints, see ``derivatives.closed``.
    "bond_at": "i1",  # first number of each bond in `bond_out`
    "bond_size": "i1",  # how many numbers its law returns
    "bond_slopes": "i1",  # addresses of the laws of bonds with their slopes,
    "bond_x": "f1",  # their arguments,
    "bond_out": "f1",  # and what they write
    "bond_dx": "f1",
    "bond_change": "f1",
    "wrench": "f2",  # of each loop joint on its successor, about P
    "arms": "f2",  # to P, for the predecessor's side and the successor's
    "ends": "f2",  # velocity and acceleration of both sides
    "relative": "f2",  # v_J and ρ, in base axes and in joint axes
    "answer": "f2",
    "still": "f1",  # zeros
    "between": "f2",  # freedoms that move one side, about P
    "point_arm": "f2",
    "point_force": "f2",
    "point_moved": "f2",  # change of place and acceleration
    "bond_force": "f2",  # −∂(Kᵀλ), by directions and by velocities,
    "bond_acceleration": "f2",  # ∂(K v̇ − γ) at constant v̇,
    "bond_speed": "f2",  # ∂(K v − ν),
    "bond_gap": "f2",  # and ∂δ
    "bond_rest": "f2",
    "basis": "f2",
    "bond_C": "f2",
    "bond_S": "f2",
    "K_inverse": "f2",  # rows of K⁺ᵀ
    "rank_tolerance": "f1",
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
        bonds = [bond_sizes(model, l) for l in range(len(model.bonds))]
        self.tables["bond_at"] = starts(size * (1 + n) for n, size in bonds)
        self.tables["bond_size"] = np.array([size for _, size in bonds], dtype=np.int64)
        self.bond_sizes = bonds
        self.bond_functions = [
            bond_slopes(f, n, k, size)
            for f, (n, size), k in zip(self.tree.loop_functions, bonds, self._bond_numbers())
        ]
        self._local = threading.local()
        self._kept: list[Any] = []

    def _bond_numbers(self) -> list[int]:
        """How many parameters the law of each loop joint or constraint has."""
        return np.diff(self.tree.arrays["loop_q_at"]).tolist()

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
        fields["switches"] = np.append(base.switches, [int(self.is_deep), 1])
        return DerivativeWorkspace(
            **fields,
            **self.tables,
            task=np.zeros(1, dtype=np.int64),
            slopes=self._addresses(self.slope_functions, "slopes", slope_count),
            rate_slopes=self._addresses(self.rate_functions, "rates", rate_slope_count),
            bond_slopes=np.array(self._bond_addresses(), dtype=np.int64),
            **self._variables(float),
        )

    def symbolic(self) -> SimpleNamespace:
        """Return a workspace of objects, for kernels run on symbols (or interpreted)."""
        base = self.tree.symbolic()
        base.switches = [*base.switches, int(self.is_deep), 0]
        return SimpleNamespace(
            **vars(base),
            **self.tables,
            task=[0],
            slopes=self.slope_functions,
            rate_slopes=self.rate_functions,
            bond_slopes=self.bond_functions,
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
            **self._of_bonds(nd),
        }  # fmt: skip
        return {name: np.zeros(shape, dtype=dtype) for name, shape in shapes.items()}

    def _of_bonds(self, nd: int) -> dict[str, tuple[int, ...]]:
        model, arrays = self.model, self.tree.arrays
        nv, m, points = model.nv, int(arrays["loop_at"][-1]), len(arrays["points"])
        argument = max((n for n, _ in self.bond_sizes), default=0)
        value = max((size for _, size in self.bond_sizes), default=0)
        some = bool(model.bonds)
        return {
            "bond_x": (argument,), "bond_out": (int(self.tables["bond_at"][-1]),),
            "bond_dx": (18,), "bond_change": (value,), "wrench": (len(model.loops), 6),
            "arms": (2, 3), "ends": (2, 12), "relative": (4, 6), "answer": (6, 6), "still": (6,),
            "between": (nv * some, 6), "point_arm": (points, 3), "point_force": (points, 3),
            "point_moved": (points, 6), "bond_force": (nv * some, nd + nv),
            "bond_acceleration": (m, nd + nv), "bond_speed": (m, nd + nv),
            "bond_gap": (m, nd + nv), "bond_rest": (m, nd + 2 * nv), "basis": (m, nv),
            "bond_C": (m, m), "bond_S": (m, m), "K_inverse": (m, nv), "rank_tolerance": (1,),
        }  # fmt: skip

    def _bond_addresses(self) -> list[int]:
        """Addresses of the laws of loop joints and constraints, with their slopes."""
        model, loops, found = self.model, len(self.model.loops), []
        for l, f in enumerate(self.bond_functions):
            n, size = self.bond_sizes[l]
            if size == 0:
                found.append(0)
                continue
            if l < loops:
                key = ("loop", model.loops[l].joint.law_key())
            else:
                key = stated_key(model, model.constraints[l - loops])
            numbers = self._bond_numbers()[l]
            code = law_code(("slopes", key), Fresh(f), n, numbers, size * (1 + n))
            self._kept.append(code)
            found.append(int(code.address))
        return found

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
