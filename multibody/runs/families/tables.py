"""The numbers of a model in one vector, and what has to be equal before two vectors compare.

Kernels see a model as tables (``dynamics.storage``). Their whole numbers are its *structure*: which
body hangs on which, by what kind of joint. Their floats are its *numbers*: placements, inertias,
springs, gravity. Models of one structure differ in numbers only, so that one traced function serves
them all: the numbers that differ are its parameters, and all others stay constants, which cost
nothing.

A few whole numbers say only where a number happens to be zero or a right angle (``pre``, ``bend``,
``quarters``, …). Where they differ between models, the general case is taken for all.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...dynamics.storage.arrays import Tree
from ...dynamics.storage.workspace import CONSTANTS
from ...kernels.axial import axial_inverse

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "FamilyTree",
    "StructureError",
    "common_structure",
    "numbers_of",
    "place_name",
    "places",
    "table_of",
    "table_sizes",
]

#: What of the general case includes the special one: 1 where any model has 1 …
GENERAL_IS_ONE = ("pre", "bend", "doubtful", "frail")
#: … and 0 where any has 0.
GENERAL_IS_ZERO = ("z_free",)
FLEXIBLE = (*GENERAL_IS_ONE, *GENERAL_IS_ZERO, "quarters")

#: Tables of floats, in the order of the vector.
NUMBERS = (*CONSTANTS, "screws", "S")


class StructureError(ValueError):
    """Two models differ in more than numbers."""


def table_of(model: Model, general: Collection[int] = ()) -> Tree:
    """Tables of a model, with a row of joint elements for every freedom."""
    return Tree(model, general=general, every_element=True)


def numbers_of(tree: Tree) -> Array:
    """All numbers of a model, one after the other; quarter turns are part of the angles."""
    arrays = {**tree.arrays, "screws": tree.screws, "S": tree.S}
    offset = arrays["offset"].copy()
    turned = tree.arrays["quarters"] != 0
    if turned.any():
        offset[:, 0] = offset[:, 0] + tree.arrays["quarters"] * (np.pi / 2)
        arrays["offset"] = offset
    return np.concatenate([arrays[name].ravel() for name in NUMBERS])


def places(tree: Tree) -> list[tuple[str, int]]:
    """Table and place in it of each number of the vector."""
    arrays = {**tree.arrays, "screws": tree.screws, "S": tree.S}
    return [(name, k) for name in NUMBERS for k in range(arrays[name].size)]


def table_sizes(tree: Tree, numbers: Array) -> Array:
    """Largest finite number of the table that each number belongs to."""
    arrays = {**tree.arrays, "screws": tree.screws, "S": tree.S}
    out, at = np.zeros_like(numbers), 0
    for name in NUMBERS:
        part = numbers[at : at + arrays[name].size]
        out[at : at + part.size] = np.abs(part[np.isfinite(part)]).max(initial=0.0)
        at += part.size
    return out


def place_name(tree: Tree, name: str, k: int) -> str:
    """Where a number of the vector is, for messages."""
    array = {**tree.arrays, "screws": tree.screws, "S": tree.S}[name]
    index = np.unravel_index(k, array.shape)
    by_body = ("inertia", "E_T", "r_T", "offset", "reach", "moments", "screws")
    own = int(tree.arrays["p_at"][-1])
    if name == "p" and k >= own:
        for named in tree.model.elements:
            for number in named.element.number_names():
                if own == k:
                    return f"{number} of element {named.name!r}"
                own += 1
    if name in by_body:
        return f"{name} of body {tree.model.bodies[int(index[0])].name!r}"
    return f"{name}[{', '.join(map(str, index))}]"


# ---------------------------------------------------------------------- structure


def common_structure(models: Sequence[Model]) -> list[Tree]:
    """Tables of models whose whole numbers agree, or which can be made to agree.

    Raises
    ------
    StructureError
        With the first thing in which two models differ.
    """
    first = models[0]
    for other in models[1:]:
        _compare(first, other)
    trees = [table_of(model) for model in models]
    axial = np.array([tree.arrays["axial"] for tree in trees])
    general = np.flatnonzero((axial != axial[0]).any(axis=0))
    if general.size:  # placements that are screws about z in some of the models only
        trees = [table_of(model, general.tolist()) for model in models]
    for tree in trees[1:]:
        for name in Tree.whole_numbers():
            if name in FLEXIBLE:
                continue
            mine, its = trees[0].arrays[name], tree.arrays[name]
            if mine.shape != its.shape or not np.array_equal(mine, its):
                raise StructureError(
                    f"the models differ in structure ({name}: {mine.tolist()} and "
                    f"{its.tolist()}), not in numbers only; vary what keeps it, or make a family "
                    f"of each"
                )
    return trees


def merged(trees: Iterable[Tree]) -> dict[str, Array]:
    """Whole numbers that fit all trees."""
    trees = list(trees)
    found: dict[str, Array] = {}
    for name in GENERAL_IS_ONE:
        found[name] = np.max([t.arrays[name] for t in trees], axis=0)
    for name in GENERAL_IS_ZERO:
        found[name] = np.min([t.arrays[name] for t in trees], axis=0)
    found["quarters"] = np.zeros_like(trees[0].arrays["quarters"])
    return found


def _compare(first: Model, other: Model) -> None:
    """Raise with the first difference in structure, in the words of a user."""
    for what, mine, its in (
        ("bodies", first.bodies, other.bodies),
        ("loops", first.loops, other.loops),
        ("constraints", first.constraints, other.constraints),
        ("springs", first.springs, other.springs),
        ("elements", first.elements, other.elements),
    ):
        names = [part.name for part in mine], [part.name for part in its]
        if names[0] != names[1]:
            raise StructureError(
                f"the models differ in their {what}: {names[0]!r:.200} and {names[1]!r:.200}; a "
                f"family has one structure, so vary numbers that keep it"
            )
    for a, b in zip(first.bodies, other.bodies):
        if a.parent != b.parent or a.reverse != b.reverse:
            raise StructureError(
                f"body {a.name!r} hangs on different bodies ({a.parent} and {b.parent})"
            )
        _compare_joints(f"body {a.name!r}", a.joint, b.joint)
    for c, d in zip(first.loops, other.loops):
        if (c.predecessor, c.successor) != (d.predecessor, d.successor):
            raise StructureError(f"loop {c.name!r} connects different bodies")
        _compare_joints(f"loop {c.name!r}", c.joint, d.joint)
    for f, g in zip(first.constraints, other.constraints):
        if f.key() != g.key():
            raise StructureError(
                f"constraint {f.name!r}: its functions compute different things; numbers that "
                "vary between models are to be its parameters: add_constraint(…, parameters=[…])"
            )
    for e, made in zip(first.elements, other.elements):
        if e.element.shape() != made.element.shape():
            raise StructureError(
                f"element {e.name!r} differs in more than numbers: {e.element!r:.200} and "
                f"{made.element!r:.200}"
            )
    for s, r in zip(first.springs, other.springs):
        if (s.body_a, s.body_b) != (r.body_a, r.body_b):
            raise StructureError(f"spring {s.name!r} connects different bodies")


def _compare_joints(where: str, a: Any, b: Any) -> None:
    if type(a) is not type(b):
        raise StructureError(f"{where} has different joints: {a!r} and {b!r}")
    if a.law_key() != b.law_key() or a.coordinates != b.coordinates or a.speeds != b.speeds:
        function = getattr(a, "function", None) is not None
        remedy = (
            "what its function computes must not depend on varied parameters: let a joint force "
            "tau(t, q, v, p) do it, or make a family of each"
            if function
            else "a family has one structure, so vary numbers that keep it"
        )
        raise StructureError(f"{where}: the law of {a!r} differs from that of {b!r}; {remedy}")
    if not np.array_equal(a.neutral(), b.neutral()):
        raise StructureError(f"{where}: the neutral positions of {a!r} and {b!r} differ")


# ---------------------------------------------------------------------- on symbols


class FamilyTree(Tree):
    """Tables of a model in which some numbers are parameters while a function is traced.

    Outside of :meth:`bound` it is the tree of the nominal model.
    """

    def __init__(self, model: Model, trees: Sequence[Tree], general: Collection[int]) -> None:
        super().__init__(model, general=general, every_element=True)
        nominal = numbers_of(self)
        self._enter(nominal)
        self.arrays |= {
            name: np.ascontiguousarray(value, dtype=np.int64)
            for name, value in merged(trees).items()
        }
        self.has_elements = any(tree.has_elements for tree in trees)
        rows = [tree.acting_rows for tree in trees]
        self.__dict__["acting_rows"] = np.unique(np.concatenate(rows)).astype(np.int64)
        self._symbols = threading.local()

    def _enter(self, numbers: Array) -> None:
        """Put the numbers of a vector into the tables."""
        at = 0
        for name in NUMBERS:
            old = getattr(self, name) if name in ("screws", "S") else self.arrays[name]
            new = np.array(numbers[at : at + old.size]).reshape(old.shape)
            at += old.size
            if name in ("screws", "S"):
                setattr(self, name, new)
            else:
                self.arrays[name] = np.ascontiguousarray(new)

    @contextmanager
    def bound(self, at: Array, values: Sequence[Any]) -> Iterator[None]:
        """Let the numbers at some places of the vector be these symbols, in this thread."""
        before = getattr(self._symbols, "given", None)
        self._symbols.given = at, values
        try:
            yield
        finally:
            self._symbols.given = before

    def symbolic(self, rows: Array | None = None) -> Any:
        """Return a workspace of objects, with the symbols of :meth:`bound` in their places."""
        w = super().symbolic(rows)
        given = getattr(self._symbols, "given", None)
        if given is None:
            return w
        where = places(self)
        for place, symbol in zip(*given):
            name, k = where[place]
            table = getattr(w, name)
            if table.dtype != object:
                table = np.array(table, dtype=object)
                setattr(w, name, table)
            table.reshape(-1)[k] = symbol
        for i in range(self.model.n_bodies):
            for k in range(3):
                axial_inverse(w.screws[i, k], w.back[i, k])
        return w
