"""A numbered spanning tree and the sets that the algorithms use (book, §4.1.2–4.1.4, §8.9).

====  =====================================================================================
λ(i)  parent of body i
κ(i)  joints between the base and body i
μ(i)  children of body i
ν(i)  bodies that joint i carries: i and everything beyond
====  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..checks import Array, ArrayLike

if TYPE_CHECKING:
    from .model import Model

__all__ = ["BASE", "LoopCluster", "Topology", "expanded_parents"]

#: Name of the fixed body, number 0.
BASE = "base"


class LoopCluster(NamedTuple):
    """Loops that share joints, and all tree joints on them; numbers from 1."""

    loops: tuple[int, ...]
    joints: tuple[int, ...]


@dataclass(frozen=True)
class Topology:
    """A spanning tree with a regular numbering (book, §4.1.2–4.1.4).

    Attributes
    ----------
    bodies
        Names of bodies 1 … N_B.
    joints
        Names of joints 1 … N_J: first the tree joints, each with the number of the body that it
        connects to its parent, then the loop joints.
    predecessors, successors
        p and s of each joint.

    Examples
    --------
    >>> tree = Topology.from_parents([0, 1, 1, 2])
    >>> tree.kappa(4), tree.mu(1), tree.nu(2)
    ((1, 2, 4), (2, 3), (2, 4))
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    predecessors: tuple[int, ...]
    successors: tuple[int, ...]

    def __post_init__(self) -> None:
        n = len(self.bodies)
        sizes = {len(self.joints), len(self.predecessors), len(self.successors)}
        if len(sizes) != 1 or len(self.joints) < n or n == 0:
            raise ValueError(
                f"topology: expected at least one body and as many joints, each with predecessor "
                f"and successor; received {n} bodies, {len(self.joints)} joints, "
                f"{len(self.predecessors)} predecessors and {len(self.successors)} successors"
            )
        for k, (p, s) in enumerate(zip(self.predecessors, self.successors), 1):
            what = f"joint {k} ({self.joints[k - 1]!r}) connects bodies {p} and {s}"
            if not (0 <= p <= n and 0 <= s <= n) or p == s:
                raise ValueError(f"{what}; expected two different numbers between 0 and {n}")
            if k <= n and max(p, s) != k:
                raise ValueError(
                    f"{what}; in a regular numbering tree joint {k} connects body {k} with a body "
                    "of lower number"
                )

    @classmethod
    def from_parents(
        cls,
        parents: ArrayLike,
        loops: Iterable[tuple[int, int]] = (),
        reverse: Collection[int] = (),
    ) -> Topology:
        """From λ(1) … λ(N), loops as (predecessor, successor), and numbers of reversed joints."""
        above = [int(p) for p in np.asarray(parents)]
        ends = [(i, p) if i in reverse else (p, i) for i, p in enumerate(above, 1)]
        ends += [(int(p), int(s)) for p, s in loops]
        return cls(
            tuple(str(i) for i in range(1, len(above) + 1)),
            tuple(str(k) for k in range(1, len(ends) + 1)),
            tuple(p for p, _ in ends),
            tuple(s for _, s in ends),
        )

    @classmethod
    def of(cls, model: Model) -> Topology:
        """Topology of a model; tree joints are named after their bodies."""
        ends = []
        for i, body in enumerate(model.bodies, 1):
            ends.append((i, body.parent) if body.reverse else (body.parent, i))
        names = [body.name for body in model.bodies]
        loops = [(loop.predecessor, loop.successor) for loop in model.loops]
        taken = set(names)
        closing = [x.name if x.name not in taken else f"loop {x.name}" for x in model.loops]
        return cls(
            tuple(names),
            (*names, *closing),
            tuple(p for p, _ in ends + loops),
            tuple(s for _, s in ends + loops),
        )

    # ------------------------------------------------------------------ sets of the tree

    @property
    def n_bodies(self) -> int:
        """N_B."""
        return len(self.bodies)

    @property
    def n_loops(self) -> int:
        """N_L = N_J − N_B."""
        return len(self.joints) - len(self.bodies)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """λ(1) … λ(N): the lower of the two ends of each tree joint (Eq 4.2)."""
        return tuple(min(e) for e in zip(self.predecessors, self.successors))[: self.n_bodies]

    def parent(self, i: int) -> int:
        """λ(i)."""
        return self.parents[self._body(i) - 1]

    def is_reversed(self, i: int) -> bool:
        """Whether body i is the predecessor of its joint, s(i) ≠ i."""
        return self.successors[self._body(i) - 1] != i

    def kappa(self, i: int) -> tuple[int, ...]:
        """κ(i): joints on the path from the base to body i, in this order; none for the base."""
        path: list[int] = []
        at = self._body(i, base=True)
        while at:
            path.append(at)
            at = self.parents[at - 1]
        return tuple(reversed(path))

    def mu(self, i: int) -> tuple[int, ...]:
        """μ(i): children of body i (0: of the base)."""
        return self._children[self._body(i, base=True)]

    def nu(self, i: int) -> tuple[int, ...]:
        """ν(i): body i and all bodies beyond it; ν(0) is everything, the base included."""
        found = [self._body(i, base=True)]
        for j in found:
            found.extend(self._children[j])
        return tuple(sorted(found))

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        table: list[list[int]] = [[] for _ in range(self.n_bodies + 1)]
        for i, p in enumerate(self.parents, 1):
            table[p].append(i)
        return tuple(tuple(row) for row in table)

    def epsilon(self) -> Array:
        """ε_ij: 1 where joint j carries body i, so J_i = [ε_i1 S₁ … ε_iN S_N] (Eq 4.4, 4.6)."""
        table = np.zeros((self.n_bodies, self.n_bodies), dtype=np.int64)
        for i, p in enumerate(self.parents):
            if p:
                table[i] = table[p - 1]
            table[i, i] = 1
        return table

    def _body(self, i: int, base: bool = False) -> int:
        if not (0 if base else 1) <= i <= self.n_bodies:
            raise ValueError(f"no body has number {i}; they run from 1 to {self.n_bodies}")
        return int(i)

    # ------------------------------------------------------------------ branches

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """|κ(i)| of bodies 1 … N."""
        found = [0]
        for p in self.parents:
            found.append(found[p] + 1)
        return tuple(found[1:])

    @property
    def depth(self) -> int:
        """Depth of the tree: joints between the base and the farthest body."""
        return max(self.depths)

    @property
    def D0(self) -> int:
        """D₀ = N − |μ(0)|: bodies whose inertia is carried to a parent (§10.3)."""
        return self.n_bodies - len(self.mu(0))

    @property
    def D1(self) -> int:
        """D₁ = Σ (|κ(i)| − 1): entries below the diagonal of H, for joints of one freedom."""
        return sum(self.depths) - self.n_bodies

    def expanded_parents(self, freedoms: ArrayLike) -> Array:
        """λ′ for joints of several freedoms, or none; variables count from 1 (Table 6.4)."""
        numbers = np.asarray(freedoms)
        if numbers.shape != (self.n_bodies,):
            raise ValueError(
                f"freedoms: expected one number for each of {self.n_bodies} tree joints, received "
                f"shape {numbers.shape}"
            )
        return expanded_parents(self.parents, numbers)

    # ------------------------------------------------------------------ loops

    def loop_sides(self, loop: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tree joints of a loop between its root and its predecessor, and its successor.

        Loops count from 1; the loop is closed by joint N_B + loop.
        """
        i, j = self._ends(loop)
        sides: tuple[list[int], list[int]] = ([], [])
        while i != j:
            if i > j:
                sides[0].append(i)
                i = self.parents[i - 1]
            else:
                sides[1].append(j)
                j = self.parents[j - 1]
        return tuple(reversed(sides[0])), tuple(reversed(sides[1]))

    def loop_root(self, loop: int) -> int:
        """Root of a loop: the highest-numbered body that carries both of its ends."""
        i, j = self._ends(loop)
        while i != j:
            i, j = (self.parents[i - 1], j) if i > j else (i, self.parents[j - 1])
        return i

    def _ends(self, loop: int) -> tuple[int, int]:
        if not 1 <= loop <= self.n_loops:
            raise ValueError(f"no loop has number {loop}; there are {self.n_loops}")
        k = self.n_bodies + loop - 1
        return self.predecessors[k], self.successors[k]

    def loop_clusters(self, freedoms: ArrayLike | None = None) -> list[LoopCluster]:
        """Smallest groups of loops that have no joint in common with other groups (§8.9).

        Constraints of different clusters involve different variables, so their equations can be
        solved apart. With `freedoms` (one number for each tree joint) a joint without freedom
        couples nothing.
        """
        moving = None if freedoms is None else np.asarray(freedoms) > 0
        clusters: list[tuple[set[int], set[int]]] = []
        for loop in range(1, self.n_loops + 1):
            one, other = self.loop_sides(loop)
            joints = {j for j in one + other if moving is None or moving[j - 1]}
            loops = {loop}
            apart = []
            for cluster in clusters:
                if cluster[1] & joints:
                    loops |= cluster[0]
                    joints |= cluster[1]
                else:
                    apart.append(cluster)
            clusters = [*apart, (loops, joints)]
        found = [LoopCluster(tuple(sorted(a)), tuple(sorted(b))) for a, b in clusters]
        return sorted(found)


def expanded_parents(parents: ArrayLike, freedoms: ArrayLike) -> Array:
    """λ′ from the parents λ (0: base) and numbers of freedoms of joints 1 … N (Table 6.4).

    The result counts variables from 1, as the book does, with 0 for the base. A joint without
    freedom is passed over; the printed algorithm would give wrong parents there.

    Examples
    --------
    >>> expanded_parents([0, 1, 1, 2, 2, 3], [1, 3, 1, 1, 1, 1]).tolist()
    [0, 1, 2, 3, 1, 4, 4, 5]
    """
    last = [0]
    result: list[int] = []
    for i, (p, n) in enumerate(zip(np.asarray(parents), np.asarray(freedoms)), 1):
        if not 0 <= p < i:
            raise ValueError(f"parents: expected 0 ≤ parent < {i} for joint {i}, received {p}")
        above = last[int(p)]
        for _ in range(int(n)):
            result.append(above)
            above = len(result)
        last.append(above)
    return np.array(result, dtype=np.int64)
