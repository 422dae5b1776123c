"""The model as arrays: what the kernels of the dynamics algorithms see.

Internally every joint with an axis turns about or slides along z: the body's frame is rotated by
the joint's constant rotation C, its inertia and the placements of its children with it. Where a
result is in body coordinates, :meth:`Tree.to_body` turns it back.

Joints come in two forms.

- *Axial* joints (revolute, prismatic, helical, cylindrical) rotate about z by θ and shift along z
  by d. The transform from the parent is then a product of axial screws (book, §A.4),

      X_λ = scrz(θ + θ₂, d + d₂) · scrx(α, a) · scrz(θ₁, d₁),

  where the last factor is missing if the placement is that of Denavit and Hartenberg. On symbols
  the transforms are made from these screws, at half the operations of a general transform; the
  compiled kernels use (E, r), because a processor takes one long formula faster than three short
  ones that wait for each other.
- All others have a *law* (``multibody.joints.base``), called through its address.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from integrators.kernels.workspace import Workspace

from ..algebra.plucker import Plucker
from ..checks import Array
from ..joints import Joint
from ..kernels.axial import axial_inverse, axial_screw
from ..kernels.inertia import rigid_transform
from .laws import Fresh, law_callback, law_code, law_function, loop_function, rate_function
from .loops.joint_law import constraint_count
from .tables import (
    as_kind,
    cos_sin,
    decompose,
    doubtful_pivots,
    expanded_parents,
    joint_elements,
    joint_turn,
    quarter_turns,
    reference_points,
    starts,
)

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["DRIVEN", "HAVE_ELEMENTS", "HAVE_FORCES", "Tree", "TreeWorkspace"]

# Places in `switches`: whether external forces act, whether the model has force elements, and
# whether time moves joints of its tree.
HAVE_FORCES, HAVE_ELEMENTS, DRIVEN = 0, 1, 2

# Entries of K smaller than this part of the largest are rounding.
ROUNDING = 1e-12

# Fields of the workspace; kinds as in integrators.stepping.workspace.
STRUCTURE = {
    "parent": "i1",  # of body i (counted from 0), −1 for the base
    "q_at": "i1",  # first position variable of each joint, and their number
    "v_at": "i1",
    "p_at": "i1",
    "axial": "i1",  # 1 if the joint is axial …
    "by_screws": "i1",  # … and 1 if its transforms are made as products of screws
    "pre": "i1",  # 1 if the placement has a screw about the parent's z
    "bend": "i1",  # 1 if it has a screw about x
    "z_free": "i1",  # 1 for a revolute joint without armature: I^a has an empty third row
    "quarters": "i1",  # quarter turns in θ₂, made without rounding
    "doubtful": "i1",  # 1 if nothing but rounding may be left of a freedom's pivot …
    "frail": "i1",  # … and 1 if a body has such a freedom because it lacks inertia
    "unit": "i1",  # row of the unit vector that a column of S is, or −1
    "parent_v": "i1",  # expanded parent array λ′ of the velocity variables
    "laws": "i1",  # addresses of the laws, 0 for axial joints
    "rates": "i1",  # addresses of q̇ …
    "plain": "i1",  # … and 1 where q̇ = v
    "quaternions": "i1",  # where in q unit quaternions begin
    "switches": "i1",
    "spring_bodies": "i2",
    "loop_p": "i1",  # predecessor and successor of each loop joint
    "loop_s": "i1",
    "loop_at": "i1",  # first constraint of each loop
    "loop_q_at": "i1",  # first parameter of each loop joint
    "loop_laws": "i1",
    "rows": "i1",  # constraints that can act at all
}
CONSTANTS = {
    "p": "f1",  # parameters of the laws
    "angle": "f1",  # θ = Σ angle·q
    "shift": "f1",  # d = d₂ + Σ shift·q
    "offset": "f2",  # θ₂ without its quarter turns, d₂
    "E_T": "f3",  # placement; of axial joints without its last screw
    "r_T": "f2",
    "inertia": "f2",
    "reach": "f2",  # from the parent's reference point, see multibody.dynamics.newton_euler …
    "moments": "f2",  # … and m, h, second moments about it
    "gravity": "f1",  # acceleration of the base that has the effect of gravity, −a_g
    "armature": "f1",
    "elements": "f2",  # springs, dampers and stops of the joints; empty if there are none
    "springs": "f2",  # springs between points
    "loop_q": "f1",  # parameters of the loop joints
    "loop_E_P": "f3",  # placements of their frames
    "loop_r_P": "f2",
    "loop_E_S": "f3",
    "loop_r_S": "f2",
}
VARIABLES = {
    "t": "f1",
    "q": "f1",
    "v": "f1",
    "a_q": "f1",  # joint accelerations, v̇
    "tau": "f1",
    "q_dot": "f1",
    "f_ext": "f2",  # external forces in base coordinates
    "x": "f1",  # argument and value of a law
    "law": "f1",
    "E_J": "f2",
    "r_J": "f1",
    "screws": "f3",  # scrz(θ…), scrx, scrz(θ₁…) of each axial joint
    "back": "f3",  # their inverses
    "E": "f3",  # X_λ
    "r": "f2",
    "E_0": "f3",  # X_0, from base to body coordinates
    "r_0": "f2",
    "S": "f2",  # a row for each velocity variable
    "v_J": "f2",
    "c_J": "f2",
    "vel": "f2",  # velocity of each body
    "c": "f2",  # c_J + v × v_J
    "acc": "f2",
    "force": "f2",
    "U_matrix": "f3",  # α× + ω×ω×
    "I_c": "f2",  # composite inertia
    "I_A": "f2",  # articulated inertia …
    "p_A": "f2",  # … and bias force
    "U": "f2",
    "D_inverse": "f1",
    "u": "f1",
    "H": "f2",
    "spare6": "f1",
    "other6": "f1",
    "point_a": "f1",
    "point_b": "f1",
    "totals": "f1",  # energies, mass, first moment and momentum of all bodies
    "spare10": "f1",
    "spare21": "f1",
    "loop_x": "f1",  # argument and value of a loop joint's law
    "loop_out": "f1",
    "end_p": "f1",  # velocity and acceleration of the two sides of a loop joint, and poses
    "end_s": "f1",
    "E_p": "f2",
    "r_p": "f1",
    "E_s": "f2",
    "r_s": "f1",
    "E_rel": "f2",
    "r_rel": "f1",
    "S_0": "f2",  # freedoms in base coordinates
    "T_0": "f2",  # constraint forces in base coordinates
    "delta": "f1",
    "K": "f2",
    "nu": "f1",
    "gamma": "f1",
    "stabilise": "f1",  # α, β, ε, see multibody.dynamics.loops.multipliers
    "b": "f1",
    "z": "f1",
    "Y": "f2",  # rows of K through L⁻ᵀ
    "scaled": "f1",
    "A": "f2",
    "A_factor": "f2",
    "lam": "f1",  # multipliers
    "rest": "f1",
}


class TreeWorkspace(Workspace):
    """Arrays of a tree and of everything computed on it."""

    FIELDS: ClassVar[dict[str, str]] = {**STRUCTURE, **CONSTANTS, **VARIABLES}


class Tree:
    """A model's arrays, with workspaces to compute on them.

    A workspace holds one computation; each thread has its own (:attr:`workspace`).
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        bodies = model.bodies
        nb, nv = len(bodies), model.nv
        self.turn = np.array([joint_turn(b.joint, b.reverse) for b in bodies])  # C of each body
        self._kept: list[Any] = []  # callbacks and machine code must outlive their addresses
        self._local = threading.local()
        self.traced: dict[str, Any] = {}  # functions made from the model, see multibody.runs.ivp
        self.zeros = np.zeros(model.nv)

        a: dict[str, Any] = {}
        a["parent"] = np.array([b.parent - 1 for b in bodies])
        a["q_at"] = starts(b.joint.nq for b in bodies)
        a["v_at"] = starts(b.joint.nv for b in bodies)
        a["p_at"] = starts(len(b.joint.parameters) for b in bodies)
        a["p"] = np.array([x for b in bodies for x in b.joint.parameters], dtype=float)
        a["armature"] = np.concatenate([np.zeros(0), *[b.armature for b in bodies]])
        a["gravity"] = np.concatenate([np.zeros(3), -model.gravity])
        a["inertia"] = np.empty((nb, 10))
        a["E_T"], a["r_T"] = np.empty((nb, 3, 3)), np.empty((nb, 3))
        a["offset"] = np.zeros((nb, 2))
        for name in ("axial", "pre", "bend", "z_free", "quarters"):
            a[name] = np.zeros(nb, dtype=np.int64)
        a["unit"] = np.full(nv, -1)
        a["angle"], a["shift"] = np.zeros(model.nq), np.zeros(model.nq)
        self.S = np.zeros((nv, 6))
        self.screws = np.zeros((nb, 3, 7))
        for i, body in enumerate(bodies):
            self._place(i, body, a)
        a["doubtful"], a["frail"] = doubtful_pivots(a)
        a["reach"], a["moments"] = reference_points(a)
        a["elements"] = joint_elements(model)
        a["springs"], a["spring_bodies"] = self._springs(model)
        self.is_driven = any(b.joint.is_rheonomic for b in bodies)
        self.has_elements = len(a["elements"]) + len(a["springs"]) > 0
        self._loops(model, a)
        a["parent_v"] = expanded_parents(model)
        self.arrays = {k: as_kind(v, TreeWorkspace.FIELDS[k]) for k, v in a.items()}
        self.arrays["plain"] = np.array([b.joint.rate_is_velocity for b in bodies], dtype=np.int64)
        self.arrays["quaternions"] = np.array(model.quaternion_places, dtype=np.int64)
        self.law_functions = [
            None if a["axial"][i] else law_function(b) for i, b in enumerate(bodies)
        ]
        self.rate_functions = [
            None if plain else rate_function(b.joint)
            for b, plain in zip(bodies, self.arrays["plain"])
        ]

    def _place(self, i: int, body: Any, a: dict[str, Any]) -> None:
        parent_C = self.turn[body.parent - 1] if body.parent else np.eye(3)
        X = Plucker._of(self.turn[i] @ body.placement.E @ parent_C.T, parent_C @ body.placement.r)
        joint, at = body.joint, a["v_at"][i]
        screws = decompose(X) if joint.is_axial else None
        rigid_transform(self.turn[i], np.zeros(3), body.inertia.array, a["inertia"][i])
        if joint.units and not (body.reverse and not joint.is_axial):
            a["unit"][at : at + joint.nv] = joint.units
            self.S[np.arange(at, at + joint.nv), list(joint.units)] = 1.0
        a["E_T"][i], a["r_T"][i] = X.E, X.r
        if screws is None:
            return
        (theta2, d2), (alpha, shift), (theta1, d1) = screws
        a["axial"][i] = 1
        a["z_free"][i] = joint.units == (2,) and body.armature[0] == 0.0
        a["quarters"][i], theta = quarter_turns(theta2)
        a["offset"][i] = theta, d2
        a["pre"][i], a["bend"][i] = (theta1, d1) != (0.0, 0.0), (alpha, shift) != (0.0, 0.0)
        (ca, sa), (c, s) = cos_sin(alpha), cos_sin(theta1)
        axial_screw(ca, sa, shift, self.screws[i, 1])
        axial_screw(c, s, d1, self.screws[i, 2])
        # scrx(α, a) · scrz(θ₁, d₁)
        a["E_T"][i] = [[c, s, 0.0], [-ca * s, ca * c, sa], [sa * s, -sa * c, ca]]
        a["r_T"][i] = shift * c, shift * s, d1
        at_q = a["q_at"][i]
        a["angle"][at_q : at_q + joint.nq] = joint.angle
        a["shift"][at_q : at_q + joint.nq] = joint.shift
        self.S[at : at + joint.nv, 2] = joint.angle
        self.S[at : at + joint.nv, 5] = joint.shift

    def _springs(self, model: Model) -> tuple[Array, Array]:
        """Springs between points, with the points in internal body coordinates."""
        numbers = np.empty((len(model.springs), 9))
        bodies = np.empty((len(model.springs), 2), dtype=np.int64)
        for s, spring in enumerate(model.springs):
            ends = ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b))
            for k, (body, point) in enumerate(ends):
                bodies[s, k] = body - 1
                turned = self.turn[body - 1] @ point if body else point
                numbers[s, 3 * k : 3 * k + 3] = turned
            numbers[s, 6:] = spring.stiffness, spring.damping, spring.rest
        return numbers, bodies

    def _loops(self, model: Model, a: dict[str, Any]) -> None:
        """Loop joints: their frames are turned so that the joint's axis is z."""
        loops = model.loops
        a["loop_p"] = np.array([c.predecessor - 1 for c in loops], dtype=np.int64)
        a["loop_s"] = np.array([c.successor - 1 for c in loops], dtype=np.int64)
        a["loop_at"] = starts(constraint_count(c.joint) for c in loops)
        a["loop_q_at"] = starts(len(c.joint.parameters) for c in loops)
        a["loop_q"] = np.array([x for c in loops for x in c.joint.parameters], dtype=float)
        for name in ("P", "S"):
            a[f"loop_E_{name}"] = np.empty((len(loops), 3, 3))
            a[f"loop_r_{name}"] = np.empty((len(loops), 3))
        for k, loop in enumerate(loops):
            sides = (
                ("P", loop.predecessor, loop.placement_predecessor),
                ("S", loop.successor, loop.placement_successor),
            )
            for name, body, X in sides:
                C = self.turn[body - 1] if body else np.eye(3)
                a[f"loop_E_{name}"][k] = loop.joint.frame @ X.E @ C.T
                a[f"loop_r_{name}"][k] = C @ X.r
        self.loop_functions = [loop_function(c.joint) for c in loops]

    # ------------------------------------------------------------------ workspaces

    @property
    def workspace(self) -> TreeWorkspace:
        """Workspace of the calling thread, for compiled kernels."""
        found = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = self.make_workspace()
        return found

    def make_workspace(self) -> TreeWorkspace:
        """Return a new workspace."""
        laws = [self._address(f, b, True) for f, b in self._functions(self.law_functions)]
        rates = [self._address(f, b, False) for f, b in self._functions(self.rate_functions)]
        return TreeWorkspace(
            **self.arrays,
            rows=self.acting_rows,
            by_screws=np.zeros(self.model.n_bodies, dtype=np.int64),
            laws=np.array(laws, dtype=np.int64),
            rates=np.array(rates, dtype=np.int64),
            loop_laws=np.array(
                [
                    self._loop_address(f, c.joint)
                    for f, c in zip(self.loop_functions, self.model.loops)
                ],
                dtype=np.int64,
            ),
            switches=np.array([0, self.has_elements, self.is_driven], dtype=np.int64),
            **self._variables(float, 0.0),
        )

    def symbolic(self, rows: Array | None = None) -> SimpleNamespace:
        """Return a workspace of objects, for kernels run on symbols (or interpreted)."""
        return SimpleNamespace(
            **self.arrays,
            rows=self.acting_rows if rows is None else rows,
            by_screws=self.arrays["axial"],
            laws=self.law_functions,
            rates=self.rate_functions,
            loop_laws=self.loop_functions,
            switches=[0, int(self.has_elements), int(self.is_driven)],
            status=[0],
            **self._variables(object, 0.0),
        )

    def _variables(self, dtype: type, zero: float) -> dict[str, Any]:
        model = self.model
        nb, nq, nv = model.n_bodies, model.nq, model.nv
        nc = int(self.arrays["loop_at"][-1])
        most = max((b.joint.nq + b.joint.nv for b in model.bodies), default=1)
        shapes: dict[str, tuple[int, ...]] = {
            "t": (1,), "q": (nq,), "v": (nv,), "a_q": (nv,), "tau": (nv,), "q_dot": (nq,),
            "f_ext": (nb, 6), "x": (max(most, 1),), "law": (24 + 36,), "E_J": (3, 3), "r_J": (3,),
            "screws": (nb, 3, 7), "back": (nb, 3, 7), "E": (nb, 3, 3), "r": (nb, 3),
            "E_0": (nb, 3, 3), "r_0": (nb, 3), "S": (nv, 6), "v_J": (nb, 6), "c_J": (nb, 6),
            "vel": (nb, 6), "c": (nb, 6), "acc": (nb, 6), "force": (nb, 6),
            "U_matrix": (nb, 3, 3), "I_c": (nb, 10),
            "I_A": (nb, 21), "p_A": (nb, 6), "U": (nv, 6), "D_inverse": (nv,), "u": (nv,),
            "H": (nv, nv), "spare6": (6,), "other6": (6,), "point_a": (6,), "point_b": (6,),
            "totals": (12,), "loop_x": (18,), "loop_out": (54,), "end_p": (12,), "end_s": (12,),
            "E_p": (3, 3), "r_p": (3,), "E_s": (3, 3), "r_s": (3,), "E_rel": (3, 3), "r_rel": (3,),
            "S_0": (nv, 6), "T_0": (nc, 6), "delta": (nc,), "K": (nc, nv), "nu": (nc,),
            "gamma": (nc,), "stabilise": (3,), "b": (nc,), "z": (nv,), "Y": (nc, nv),
            "scaled": (nv,), "A": (nc, nc), "A_factor": (nc, nc), "lam": (nc,), "rest": (nc,),
            "spare10": (10,), "spare21": (21,),
        }  # fmt: skip
        arrays: dict[str, Array] = {
            name: np.full(shape, zero, dtype=dtype) for name, shape in shapes.items()
        }
        arrays["screws"][...] = self.screws
        for i in range(nb):
            for k in range(3):
                axial_inverse(self.screws[i, k], arrays["back"][i, k])
        arrays["S"][...] = self.S
        return arrays

    def _functions(self, functions: list[Any]) -> list[tuple[Any, Any]]:
        return list(zip(functions, self.model.bodies))

    def _address(self, function: Callable[..., Any] | None, body: Any, law: bool) -> int:
        """Address of machine code for a law, or of a callback where it cannot be traced."""
        if function is None:
            return 0
        joint = body.joint
        size = 24 + 6 * joint.nv if law else joint.nq
        if joint.is_traceable:
            key = (joint.law_key(), body.reverse if law else None)
            code = law_code(key, Fresh(function), max(1, joint.nq + joint.nv),
                                 len(joint.parameters), size)  # fmt: skip
            self._kept.append(code)
            return int(code.address)
        callback = law_callback(function, joint.nq + joint.nv, len(joint.parameters), size, self)
        self._kept.append(callback)
        return int(ctypes.cast(callback, ctypes.c_void_p).value or 0)

    def _loop_address(self, function: Callable[..., Any], joint: Joint) -> int:
        m = constraint_count(joint)
        if m == 0:
            return 0
        key = ("loop", joint.law_key())
        code = law_code(key, Fresh(function), 18, len(joint.parameters), 9 * m)
        self._kept.append(code)
        return int(code.address)

    error: BaseException | None = None  # what a Python law raised

    @cached_property
    def acting_rows(self) -> Array:
        """Constraints whose row of K is not zero at every position."""
        from .loops.gaps import closure_kernel

        rng = np.random.default_rng(0)
        w = self.symbolic(rows=np.arange(self.arrays["loop_at"][-1]))
        largest = np.zeros(len(w.delta))
        for _ in range(3):
            w.q[:] = self.model.random(rng)
            w.t[0] = float(rng.uniform())
            closure_kernel(w)
            largest = np.maximum(largest, np.abs(w.K.astype(float)).max(axis=1, initial=0.0))
        return np.flatnonzero(largest > ROUNDING * largest.max(initial=0.0)).astype(np.int64)

    # ------------------------------------------------------------------ body coordinates

    def to_body(self, vectors: Array) -> Array:
        """Turn motions or forces, a row for each body, into the bodies' own coordinates."""
        out = np.empty_like(vectors)
        out[:, :3] = np.einsum("iba,ib->ia", self.turn, vectors[:, :3])
        out[:, 3:] = np.einsum("iba,ib->ia", self.turn, vectors[:, 3:])
        return out
