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
from collections.abc import Callable, Collection
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.plucker import Plucker
from ...checks import Array, blank
from ...joints import Joint
from ...kernels.axial import axial_inverse, axial_screw
from ...kernels.inertia import rigid_transform
from ...model.constraints import constraint_numbers
from ...model.rules import FROM_DYNAMICS
from ...model.topology import expanded_parents
from ..loops.constraints.gaps import closure_kernel
from ..loops.constraints.joint_law import constraint_count
from ..loops.constraints.stated import law_sizes, rows_of_constraint
from .laws import (
    Fresh,
    law_callback,
    law_code,
    law_function,
    loop_function,
    rate_function,
    stated_function,
    stated_key,
)
from .tables import (
    as_kind,
    cos_sin,
    decompose,
    doubtful_pivots,
    is_symbolic,
    joint_elements,
    joint_turn,
    numbers,
    quarter_turns,
    reference_points,
    starts,
)
from .workspace import STRUCTURE, TreeWorkspace, variables

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["Tree"]

MOST_TREES = 16  # that are kept for other models that are equal

# Entries of K smaller than this part of the largest are rounding.
ROUNDING = 1e-12


class Tree:
    """A model's arrays, with workspaces to compute on them.

    A workspace holds one computation; each thread has its own (:attr:`workspace`).

    Parameters
    ----------
    model
        The model.
    general
        Bodies (counted from 0) whose joints are not to be taken as axial, though they are.
    every_element
        Whether every freedom has a row in the table of springs, dampers and stops, though none
        has any: such tables of several models can be compared (``multibody.runs.families.family``).
    """

    def __init__(
        self, model: Model, *, general: Collection[int] = (), every_element: bool = False
    ) -> None:
        self.model = model
        self._general = general
        bodies = model.bodies
        nb, nv = len(bodies), model.nv
        symbols = is_symbolic(model)  # then tables of objects, see runs.families.family
        self.turn = np.array([joint_turn(b.joint, b.reverse) for b in bodies])  # C of each body
        self._kept: list[Any] = []  # callbacks and machine code must outlive their addresses
        self._local = threading.local()
        self.traced: dict[Any, Any] = {}  # functions made from the model, see multibody.runs.ivp
        self.zeros = np.zeros(model.nv)

        a: dict[str, Any] = {}
        a["parent"] = np.array([b.parent - 1 for b in bodies])
        a["q_at"] = starts(b.joint.nq for b in bodies)
        a["v_at"] = starts(b.joint.nv for b in bodies)
        a["p_at"] = starts(len(b.joint.parameters) for b in bodies)
        own = [x for named in model.elements for x in named.element.numbers]
        a["p"] = numbers([*(x for b in bodies for x in b.joint.parameters), *own])
        a["armature"] = np.concatenate([np.zeros(0), *[b.armature for b in bodies]])
        a["gravity"] = np.concatenate([np.zeros(3), -model.gravity])
        a["inertia"] = blank((nb, 10), symbols)
        a["E_T"], a["r_T"] = blank((nb, 3, 3), symbols), blank((nb, 3), symbols)
        a["offset"] = blank((nb, 2), symbols)
        for name in ("axial", "pre", "bend", "z_free", "quarters"):
            a[name] = np.zeros(nb, dtype=np.int64)
        a["unit"] = np.full(nv, -1)
        a["angle"], a["shift"] = blank((model.nq,), symbols), blank((model.nq,), symbols)
        self.S = blank((nv, 6), symbols)
        self.screws = blank((nb, 3, 7), symbols)
        for i, body in enumerate(bodies):
            self._place(i, body, a)
        a["doubtful"], a["frail"] = doubtful_pivots(a)
        a["reach"], a["moments"] = reference_points(a)
        a["elements"] = joint_elements(model, every_element)
        a["springs"], a["spring_bodies"] = self._springs(model)
        self.is_driven = any(b.joint.is_rheonomic for b in bodies)
        self.has_elements = len(joint_elements(model)) + len(a["springs"]) > 0
        self._loops(model, a)
        parents, freedoms = [b.parent for b in bodies], [b.joint.nv for b in bodies]
        a["parent_v"] = expanded_parents(parents, freedoms) - 1
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
        screws = decompose(X) if joint.is_axial and i not in self._general else None
        rigid_transform(self.turn[i], np.zeros(3), body.inertia.array, a["inertia"][i])
        if joint.units and not (body.reverse and not joint.is_axial):
            a["unit"][at : at + joint.nv] = joint.units
            self.S[np.arange(at, at + joint.nv), list(joint.units)] = 1.0
        a["E_T"][i], a["r_T"][i] = X.E, X.r
        if screws is None:
            return
        (theta2, d2), (alpha, shift), (theta1, d1) = screws
        a["axial"][i] = 1
        a["z_free"][i] = bool(joint.units == (2,) and body.armature[0] == 0.0)
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
        numbers = blank((len(model.springs), 9), is_symbolic(model))
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
        given = [list(c.joint.parameters) for c in loops]
        given += [constraint_numbers(model, c) for c in model.constraints]
        counts = [constraint_count(c.joint) for c in loops] + [c.count for c in model.constraints]
        a["loop_at"] = starts(counts)
        a["loop_q_at"] = starts(len(p) for p in given)
        a["loop_q"] = numbers(x for p in given for x in p)
        for name in ("P", "S"):
            a[f"loop_E_{name}"] = blank((len(loops), 3, 3), is_symbolic(model))
            a[f"loop_r_{name}"] = blank((len(loops), 3), is_symbolic(model))
        for k, loop in enumerate(loops):
            sides = (
                ("P", loop.predecessor, loop.placement_predecessor),
                ("S", loop.successor, loop.placement_successor),
            )
            for name, body, X in sides:
                C = self.turn[body - 1] if body else np.eye(3)
                a[f"loop_E_{name}"][k] = loop.joint.frame @ X.E @ C.T
                a[f"loop_r_{name}"][k] = C @ X.r
        points = [point for c in model.constraints for point in c.points]
        a["point_at"] = starts(len(c.points) for c in model.constraints)
        a["point_body"] = np.array([body - 1 for body, _ in points], dtype=np.int64)
        a["points"] = np.zeros((len(points), 3))
        for k, (body, point) in enumerate(points):
            a["points"][k] = self.turn[body - 1] @ np.array(point) if body else point
        self.loop_functions = [loop_function(c.joint) for c in loops]
        self.loop_functions += [stated_function(model, c) for c in model.constraints]

    @staticmethod
    def whole_numbers() -> list[str]:
        """Names of the tables of whole numbers that models of one structure share."""
        made = {"by_screws", "laws", "rates", "switches", "loop_laws", "rows"}  # by workspaces
        return [name for name in STRUCTURE if name not in made]

    # ------------------------------------------------------------------ workspaces

    @property
    def workspace(self) -> TreeWorkspace:
        """Workspace of the calling thread, for compiled kernels."""
        found = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = self.make_workspace()
        return found

    def make_workspace(self, rows: Array | None = None) -> TreeWorkspace:
        """Return a new workspace."""
        laws = [self._address(f, b, True) for f, b in self._functions(self.law_functions)]
        rates = [self._address(f, b, False) for f, b in self._functions(self.rate_functions)]
        return TreeWorkspace(
            **self.arrays,
            rows=self.acting_rows if rows is None else rows,
            by_screws=np.zeros(self.model.n_bodies, dtype=np.int64),
            laws=np.array(laws, dtype=np.int64),
            rates=np.array(rates, dtype=np.int64),
            loop_laws=np.array(self._bond_addresses(), dtype=np.int64),
            switches=np.array([0, self.has_elements, self.is_driven], dtype=np.int64),
            **self._variables(float),
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
            **self._variables(object),
        )

    def _variables(self, dtype: type) -> dict[str, Any]:
        model = self.model
        nb, nq, nv = model.n_bodies, model.nq, model.nv
        nc = int(self.arrays["loop_at"][-1])
        most = max((b.joint.nq + b.joint.nv for b in model.bodies), default=1)
        sizes = {"nb": nb, "nq": nq, "nv": nv, "nc": nc, "nx": max(most, 1)}
        laws = [law_sizes(model, c) for c in model.constraints] or [(0, 0)]
        sizes |= {"nx_state": max(n for n, _ in laws), "n_stated": max(m for _, m in laws)}
        sizes["n_points"] = len(self.arrays["points"])
        arrays = variables(sizes, dtype)
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

    def _bond_addresses(self) -> list[int]:
        """Addresses of the laws of loop joints, then of those of constraints by functions."""
        model, functions = self.model, self.loop_functions
        found = [self._loop_address(f, c.joint) for f, c in zip(functions, model.loops)]
        for f, c in zip(functions[len(model.loops) :], model.constraints):
            n, size = law_sizes(model, c)
            k = len(constraint_numbers(model, c))
            code = law_code(stated_key(model, c), Fresh(f), n, k, size, pure=True)
            self._kept.append(code)
            found.append(int(code.address))
        return found

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
        return np.flatnonzero(self.reach.any(axis=1)).astype(np.int64)

    @cached_property
    def reach(self) -> Array:
        """Which entries of K are not zero at every position.

        A constraint may be defined at some positions only: where it has no number, it counts.
        What is left of terms that cancel, such as motions that both sides share, is rounding.
        """
        if not self.model.bonds:
            return np.zeros((0, self.model.nv), dtype=bool)
        rng = np.random.default_rng(0)
        w = self.make_workspace(rows=np.arange(self.arrays["loop_at"][-1]))
        largest = np.zeros((len(w.delta), self.model.nv))
        terms = np.zeros((len(w.delta), 1))
        undefined = np.zeros(largest.shape, dtype=bool)
        for _ in range(3):
            w.q[:] = self.model.random(rng)
            w.t[0] = float(rng.uniform())
            with np.errstate(all="ignore"):
                closure_kernel(w)
                K = np.abs(w.K)
            undefined |= ~np.isfinite(K)
            largest = np.fmax(largest, np.where(np.isfinite(K), K, 0.0))
            with np.errstate(all="ignore"):
                terms = np.fmax(terms, self._terms_of_rows(w))
        self.error = None  # of a law at a position that nobody has asked for
        return undefined | (largest > ROUNDING * np.maximum(terms, largest.max(initial=0.0)))

    def _terms_of_rows(self, w: TreeWorkspace) -> Array:
        """Size of what is summed up in each row of K: the force of a unit multiplier."""
        loops, at = len(self.model.loops), self.arrays["loop_at"]
        T = np.abs(w.T_0)
        couple, force = T[:, :3].max(axis=1, initial=0.0), T[:, 3:].max(axis=1, initial=0.0)
        found = np.where(force > 0.0, force, couple)  # couples grow with the distance
        for l in range(loops, len(at) - 1):
            rows_of_constraint(w, l)
            m = at[l + 1] - at[l]
            first, size = m * (3 + self.model.nv), 3 * len(self.model.constraints[l - loops].points)
            push = w.stated_out[first : first + m * size].reshape(m, size)
            found[at[l] : at[l + 1]] = np.abs(push).max(axis=1, initial=0.0)
        return np.where(np.isfinite(found), found, 0.0)[:, None]

    # ------------------------------------------------------------------ body coordinates

    def to_body(self, vectors: Array) -> Array:
        """Turn motions or forces, a row for each body, into the bodies' own coordinates."""
        out = np.empty_like(vectors)
        out[:, :3] = np.einsum("iba,ib->ia", self.turn, vectors[:, :3])
        out[:, 3:] = np.einsum("iba,ib->ia", self.turn, vectors[:, 3:])
        return out


def tree_of(model: Model) -> Tree:
    """The tree of a model; equal models share one, and what was traced and compiled with it.

    A model that consists of more than numbers has its own: functions may read what has changed.
    """
    joints = [body.joint for body in model.bodies] + [loop.joint for loop in model.loops]
    numbers = not model.rigid_contacts and not is_symbolic(model)
    numbers = numbers and all(named.element.is_numbers for named in model.elements)
    if numbers and all(map(_is_numbers, joints)):
        return _shared_tree(model)
    return Tree(model)


def _is_numbers(joint: Joint) -> bool:
    """Whether a joint is one of the library's, without a function of the user's."""

    def plain(value: Any) -> bool:
        if isinstance(value, tuple):
            return all(map(plain, value))
        if isinstance(value, Joint):
            return _is_numbers(value)
        return isinstance(value, type) or not callable(value)

    return type(joint).__module__.startswith("multibody.joints.") and plain(joint.law_key())


@lru_cache(maxsize=MOST_TREES)
def _shared_tree(model: Model) -> Tree:
    return Tree(model)


FROM_DYNAMICS["tree"] = tree_of
