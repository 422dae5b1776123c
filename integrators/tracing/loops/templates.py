"""Formulas that hold for many components.

Components whose expressions are the same, but for the places of their operands, make up a
:class:`Family`: one small program, its *template*, whose inputs are found at places that depend on
the component. Expressions are compared from their results downwards, all components at a time;
where two differ, the family is divided.

Values that several others need, and that would cost more to compute again than to keep, are kept in
a work array, and so are parts of what would be a very long formula (a sum of all components).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..calculus.derivative import replay
from ..errors import GraphTooLargeError
from ..graph import CONDITIONS, Graph, Program
from ..simplify import RULES
from .columns import CODE, CONST, INPUT, NAMES, Columns

__all__ = ["Family", "Slot", "compact", "families", "is_even"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: What operations cost, in additions; most functions are calls of the C library.
COST = np.array(
    [
        0.0 if name in ("const", "input")
        else 1.0 if name in CONDITIONS | {"add", "sub", "mul", "neg", "abs", "min", "max", "select"}
        else 5.0 if name in ("div", "sqrt", "floor", "sign")
        else 20.0
        for name in NAMES
    ]
)  # fmt: skip
REPEATED = 12.0  # additions that are done again rather than kept
LONGEST = 150.0  # cost of a formula, beyond which parts of it are kept
FEW = 32  # components that are not worth a division
MOST = 0.75  # part of a family that is worth being separated
MOST_FAMILIES = 400

WORK = len(NAMES)  # code of a value that is kept; inputs of region r have code WORK + 1 + r


@dataclass(frozen=True, eq=False)
class Slot:
    """Where a template finds one of its inputs.

    Attributes
    ----------
    region
        Number of an array: the regions of the inputs, then the work array; −1 for a table.
    places
        The place for each component of the family; for a table, the numbers themselves.
    """

    region: int
    places: Integers | Floats


@dataclass(frozen=True, eq=False)
class Family:
    """A template and its components.

    Attributes
    ----------
    template
        Program with one output; its input 0 is t, the others are the slots.
    slots
        Where its inputs are found.
    target
        Where the results go, ascending.
    is_kept
        Whether they go to the work array, not to the outputs.
    """

    template: Program
    slots: tuple[Slot, ...]
    target: Integers
    is_kept: bool


class _Differ(Exception):
    """Components of a family differ: the key of each."""

    def __init__(self, keys: Integers) -> None:
        super().__init__()
        self.keys = keys


class _Nodes:
    """A graph by columns with what is kept of it."""

    def __init__(self, g: Columns, outputs: Integers, regions: list[int]) -> None:
        self.code, self.operands, self.number = g.columns()
        self.regions = regions
        self.bounds = np.cumsum([0, *regions])
        spans = list(zip(g.starts, [*g.starts[1:], g.size]))
        used = self._uses(outputs, spans)
        stage = self._keep(used, spans)
        is_input = self.code == INPUT
        region = np.searchsorted(self.bounds, np.arange(self.bounds[-1]), side="right") - 1
        self.leaf = self.code.astype(np.int64)
        self.leaf[is_input] = WORK + 1 + region[self.operands[is_input, 0]]
        kept = np.flatnonzero(self.kept)
        kept = kept[np.argsort(stage[kept], kind="stable")]
        self.leaf[kept] = WORK
        self.place = np.full(g.size, -1)
        self.place[kept] = np.arange(kept.size)
        self.place[is_input] = (
            self.operands[is_input, 0] - self.bounds[np.maximum(self.leaf[is_input] - WORK - 1, 0)]
        )
        ends = np.flatnonzero(np.diff(stage[kept], append=-1))
        self.stages = np.split(kept, ends[:-1] + 1) if kept.size else []

    def _uses(self, outputs: Integers, spans: list[tuple[int, int]]) -> Integers:
        """How often each node is needed."""
        used = np.bincount(outputs.ravel(), minlength=len(self.code))
        for start, end in reversed(spans):
            if self.code[start] in (CONST, INPUT):
                continue
            needed = self.operands[start:end][used[start:end] > 0].ravel()
            used += np.bincount(needed[needed >= 0], minlength=len(used)) if needed.size else 0
        return used

    def _keep(self, used: Integers, spans: list[tuple[int, int]]) -> Integers:
        """Decide which values are kept; returns how many kept ones each waits for."""
        cost, stage = np.zeros(len(self.code) + 1), np.zeros(len(self.code) + 1, dtype=np.int64)
        self.kept = np.zeros(len(self.code), dtype=bool)
        truth = np.isin(np.arange(len(NAMES)), [CODE[op] for op in CONDITIONS])
        for start, end in spans:
            code, args = self.code[start:end], self.operands[start:end]  # −1 is the last: zero
            whole = COST[code] + cost[args].sum(axis=1)
            uses = used[start:end]
            kept = (uses > 1) & (whole * (uses - 1.0) > REPEATED) | (whole > LONGEST)
            kept &= (uses > 0) & ~truth[code] & (code != CONST) & (code != INPUT)
            cost[start:end] = np.where(kept, 1.0, whole)
            stage[start:end] = stage[args].max(axis=1) + kept
            self.kept[start:end] = kept
        return stage


def families(g: Columns, outputs: Integers, regions: list[int]) -> tuple[list[Family], int]:
    """Return families in the order in which they can be evaluated, and the size of the work array.

    Parameters
    ----------
    g, outputs
        The graph, and its nodes that are asked for.
    regions
        Lengths of the arrays that make up the inputs; the first is t.
    """
    nodes = _Nodes(g, outputs, regions)
    found: list[Family] = []
    for kept in nodes.stages:
        found += _families(nodes, kept, nodes.place[kept], True)
        _check(found)
    found += _families(nodes, outputs, np.arange(outputs.size), False)
    _check(found)
    return found, int(nodes.kept.sum())


def _check(found: list[Family]) -> None:
    if len(found) > MOST_FAMILIES:
        raise GraphTooLargeError(
            f"the components follow more than {MOST_FAMILIES} different formulas, too many for "
            "loops. Remedy: leave the function untraced."
        )


def _families(nodes: _Nodes, ids: Integers, target: Integers, is_kept: bool) -> Iterator[Family]:
    order = np.argsort(target)
    waiting = [(ids[order], target[order])]
    count = 0
    while waiting:
        ids, target = waiting.pop()
        try:
            yield _family(nodes, ids, target, is_kept)
            count += 1
            if count > MOST_FAMILIES:
                return
        except _Differ as difference:
            _, group = np.unique(difference.keys, return_inverse=True)
            for k in range(group.max() + 1):
                waiting.append((ids[group == k], target[group == k]))


def _family(nodes: _Nodes, roots: Integers, target: Integers, is_kept: bool) -> Family:
    """The family of these components; raises _Differ where they are not one."""
    g = Graph()
    slots: list[Slot] = []
    seen: dict[bytes, int] = {}

    def slot(region: int, places: Integers | Floats) -> int:
        slots.append(Slot(region, places))
        return g.input(len(slots))

    def leaf(kind: int, ids: Integers) -> int | None:
        if kind == CONST:
            values = nodes.number[ids]
            same = np.all(values.view(np.int64) == values[:1].view(np.int64))
            return g.const(float(values[0])) if same else slot(-1, values)
        if kind < WORK:
            return None
        if kind == WORK + 1:
            return g.input(0)
        places = nodes.place[ids]
        _separate(places - target, places)
        return slot(len(nodes.regions) if kind == WORK else kind - WORK - 1, places)

    def node(ids: Integers, is_root: bool = False) -> int:
        key = ids.tobytes()
        if key in seen and not is_root:
            return seen[key]
        kinds = (nodes.code if is_root and is_kept else nodes.leaf)[ids]
        if np.any(kinds != kinds[0]):
            raise _Differ(kinds.astype(np.int64))
        made = leaf(int(kinds[0]), ids)
        if made is None:
            op, args = NAMES[kinds[0]], nodes.operands[ids]
            count = 3 if op == "select" else 1 + int(args[0, 1] >= 0)
            made = RULES[op](g, *(node(np.ascontiguousarray(args[:, k])) for k in range(count)))
        seen[key] = made
        return made

    root = node(roots, True)
    if g.ops[root] in CONDITIONS:
        root = RULES["select"](g, root, g.const(1.0), g.const(0.0))
    program, used = compact(g, root, len(slots))
    return Family(program, tuple(slots[k] for k in used), target, is_kept)


def compact(g: Graph, root: int, count: int) -> tuple[Program, list[int]]:
    """The program of a node, without inputs that were simplified away."""
    names = ("t", *(f"y[{k}]" for k in range(count)))
    whole = Program.from_graph(g, [root], names)
    used = sorted({a[0] - 1 for op, a in zip(whole.ops, whole.args) if op == "input" and a[0]})
    if len(used) == count:
        return whole, used
    new = Graph()
    inputs = [new.input(0)] * (1 + count)
    for k, s in enumerate(used):
        inputs[1 + s] = new.input(1 + k)
    copied = replay(new, whole, inputs)
    names = ("t", *(f"y[{k}]" for k in range(len(used))))
    return Program.from_graph(new, [copied[whole.outputs[0]]], names), used


def _separate(shift: Integers, places: Integers) -> None:
    """Divide a family where most of it, but not all, finds an operand at the same distance."""
    if shift.size < FEW or np.all(shift == shift[0]) or is_even(places):
        return
    values, counts = np.unique(shift, return_counts=True)
    if counts.max() >= MOST * shift.size or values.size <= 4:
        raise _Differ((shift == values[counts.argmax()]).astype(np.int64))


def is_even(places: Integers) -> bool:
    """Whether places are evenly spaced."""
    return places.size < 2 or bool(np.all(np.diff(places) == places[1] - places[0]))
