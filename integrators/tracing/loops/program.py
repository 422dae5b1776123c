"""Families of formulas as a program: evaluation, derivatives along a direction, dependence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..calculus import derivative
from ..calculus.dependence import dependence
from ..graph import Graph, Program
from .templates import Family, Slot, compact

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["LoopProgram"]

Integers = NDArray[np.int64]
TIME, STATE = 0, 1  # the first regions


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """What a large right-hand side does, as loops.

    Parameters
    ----------
    families
        In the order of evaluation.
    regions
        Names and lengths of the arrays of inputs: t, y, p, then further vectors.
    work
        Length of the work array, region ``len(regions)`` of the slots.
    size
        Number of outputs.
    """

    families: tuple[Family, ...]
    regions: tuple[tuple[str, int], ...]
    work: int
    size: int

    @property
    def shape(self) -> tuple[int]:
        """The shape of the value."""
        return (self.size,)

    @property
    def inputs(self) -> range:
        """One for each input."""
        return range(sum(length for _, length in self.regions))

    @property
    def ops(self) -> set[str]:
        """Which operations there are."""
        return {op for family in self.families for op in family.template.ops}

    def __call__(self, *arrays: Any) -> NDArray[np.float64]:
        """Evaluate on NumPy's arrays, one for each region."""
        memory = [np.atleast_1d(np.asarray(a, dtype=float)) for a in arrays]
        memory.append(np.empty(self.work))
        out = np.empty(self.size)
        for family in self.families:
            inputs = [memory[TIME][0]]
            for s in family.slots:
                inputs.append(s.places if s.region < 0 else memory[s.region][s.places])
            target = memory[-1] if family.is_kept else out
            target[family.target] = family.template.evaluate(inputs)[0]
        return out

    def evaluate(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """Evaluate on all inputs one after the other."""
        ends = np.cumsum([length for _, length in self.regions])
        return self(*np.split(np.asarray(inputs, dtype=float), ends[:-1]))

    @cached_property
    def digest(self) -> str:
        """A hash of what is computed: equal programs have equal digests."""
        h = hashlib.sha256(f"{self.regions} {self.work} {self.size}".encode())
        for family in self.families:
            h.update(f"{family.template.digest} {family.is_kept}".encode())
            h.update(family.target.tobytes())
            for slot in family.slots:
                h.update(str(slot.region).encode() + slot.places.tobytes())
        return h.hexdigest()

    def __len__(self) -> int:
        """Nodes of all templates."""
        return sum(len(family.template) for family in self.families)

    def operations(self) -> dict[str, int]:
        """How many operations of each kind one evaluation takes, and their ``total``."""
        counts: dict[str, int] = {}
        for family in self.families:
            for op, count in family.template.operations().items():
                counts[op] = counts.get(op, 0) + count * family.target.size
        total = counts.pop("total", 0)
        return {**dict(sorted(counts.items())), "total": total}

    def expanded(self) -> Program:
        """The same as straight-line code, a number at a time."""
        g = Graph()
        names, memory = list[str](), list[list[int]]()
        for name, length in self.regions:
            first = len(names)
            names += [name] if name == "t" else [f"{name}[{i}]" for i in range(length)]
            memory.append([g.input(first + i) for i in range(length)])
        memory.append([-1] * self.work)
        out = [-1] * self.size
        for family in self.families:
            target = memory[-1] if family.is_kept else out
            for j, place in enumerate(family.target):
                inputs = [memory[TIME][0]]
                for s in family.slots:
                    x = s.places[j]
                    inputs.append(g.const(x) if s.region < 0 else memory[s.region][int(x)])
                new = derivative.replay(g, family.template, inputs)
                target[place] = new[family.template.outputs[0]]
        return Program.from_graph(g, out, names)

    # ------------------------------------------------------------------------------ derivatives

    def along(self, region: int, name: str | None) -> LoopProgram:
        """The derivative with respect to a region along a direction v.

        The direction is a further region `name`; with respect to t there is none.
        """
        more = () if name is None else ((name, self.regions[region][1]),)
        old, work = len(self.regions), len(self.regions) + len(more)

        def moved(s: Slot) -> Slot:
            return Slot(work, s.places) if s.region == old else s

        def tangent(family: Family) -> Family:
            g = Graph()
            slots = [moved(s) for s in family.slots]
            columns, directions = list[int](), list[int]()

            def add(k: int, s: Slot) -> None:
                columns.append(k)
                slots.append(s)
                directions.append(g.input(len(slots)))

            if region == TIME:
                columns.append(0)
                directions.append(g.const(1.0))
            for k, s in enumerate(family.slots):
                if s.region == old:
                    add(1 + k, Slot(work, s.places + self.work))
                elif s.region == region:
                    add(1 + k, Slot(old, s.places))
            product = derivative.jvp(family.template, columns)
            own = [g.input(k) for k in range(1 + len(family.slots))]
            root = derivative.replay(g, product, [*own, *directions])[product.outputs[0]]
            template, used = compact(g, root, len(slots))
            target = family.target + (self.work if family.is_kept else 0)
            return Family(template, tuple(slots[k] for k in used), target, family.is_kept)

        made: list[Family] = []
        for family in self.families:
            if family.is_kept:
                slots = tuple(moved(s) for s in family.slots)
                made.append(replace(family, slots=slots))
            made.append(tangent(family))
        return LoopProgram(tuple(made), (*self.regions, *more), 2 * self.work, self.size)

    def dependence(self, region: int) -> scipy.sparse.csc_matrix:
        """Pattern of ∂(outputs)/∂(a region of inputs), True where it may not vanish."""
        from scipy.sparse import csr_matrix

        length = self.regions[region][1]
        kept = csr_matrix((self.work, length))
        result = csr_matrix((self.size, length))
        for family in self.families:
            rows = self.work if family.is_kept else self.size
            seen = dependence(family.template, 0, 1 + len(family.slots)).toarray()[0]
            pairs: dict[int, list[tuple[Integers, Any]]] = {region: [], len(self.regions): []}
            if seen[0] and region == TIME:
                pairs[TIME].append((family.target, np.zeros_like(family.target)))
            for s, matters in zip(family.slots, seen[1:]):
                if matters and s.region in pairs:
                    pairs[s.region].append((family.target, s.places))
            found = _pattern(pairs[region], rows, length)
            if pairs[len(self.regions)]:
                found = found + _pattern(pairs[len(self.regions)], rows, self.work) @ kept
            if family.is_kept:
                kept = kept + found
            else:
                result = result + found
        return (result.tocsc() != 0).astype(bool)


def _pattern(pairs: list[tuple[Integers, Any]], rows: int, columns: int) -> Any:
    from scipy.sparse import csr_matrix

    if not pairs:
        return csr_matrix((rows, columns))
    i, j = (np.concatenate(part) for part in zip(*pairs))
    return csr_matrix((np.ones(i.size), (i, j)), shape=(rows, columns))
