"""Connectivity: which bodies the joints connect, a spanning tree, a numbering (book, §4.1).

A :class:`Graph` has bodies as nodes and joints as edges, under any names and in any order. A
spanning tree reaches every body from the base; the joints that it leaves over close loops, one
each, N_L = N_J − N_B. With the bodies numbered so that parents come before children it is a
:class:`~multibody.model.topology.Topology`.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import factorial, prod
from typing import TYPE_CHECKING

from .topology import BASE, LoopCluster, Topology

if TYPE_CHECKING:
    from .model import Model

__all__ = ["BASE", "Graph", "LoopCluster", "Topology", "count_numberings", "regular_order"]


# ---------------------------------------------------------------------- numbering


def regular_order(parents: Mapping[str, str]) -> list[str]:
    """Names with parents before children; the order of the mapping is kept where it can be.

    Parameters
    ----------
    parents
        Parent of each body, "base" for those that hang on the base.

    Raises
    ------
    ValueError
        Where a parent does not exist (with the nearest name), or parents form a cycle.

    Examples
    --------
    >>> regular_order({"hand": "arm", "leg": "base", "arm": "base"})
    ['leg', 'arm', 'hand']
    """
    place = {name: k for k, name in enumerate(parents)}
    children: dict[str, list[str]] = {name: [] for name in (BASE, *parents)}
    for name, parent in parents.items():
        if parent not in children:
            near = difflib.get_close_matches(parent, children, 1)
            hint = f"did you mean {near[0]!r}?" if near else "add it, or use 0 for the base"
            raise ValueError(f"{name}: its parent {parent!r} does not exist; {hint}")
        children[parent].append(name)
    ready = [place[name] for name in children[BASE]]
    names = list(parents)
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for child in children[name]:
            heapq.heappush(ready, place[child])
    if len(order) < len(parents):
        path = [next(name for name in parents if name not in set(order))]
        while (name := parents[path[-1]]) not in path:
            path.append(name)
        cycle = [*path[path.index(name) :], name]
        raise ValueError(
            f"parents form a cycle, {' → '.join(cycle)}; hang one of them on the base, and close "
            "the loop with add_loop"
        )
    return order


def _orders(parents: Mapping[str, str], done: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if len(done) == len(parents):
        yield done
    for name, parent in parents.items():
        if name not in done and (parent == BASE or parent in done):
            yield from _orders(parents, (*done, name))


def count_numberings(parents: Mapping[str, str]) -> int:
    """How many regular numberings a tree has: N!/∏ |ν(i)|.

    Examples
    --------
    >>> count_numberings({"crank": "base", "rod": "crank", "slider": "base"})
    3
    """
    sizes = dict.fromkeys(parents, 1)
    for name in reversed(regular_order(parents)):
        if parents[name] != BASE:
            sizes[parents[name]] += sizes[name]
    return factorial(len(sizes)) // prod(sizes.values())


# ---------------------------------------------------------------------- graphs


class Graph:
    """Bodies and the joints between them.

    Parameters
    ----------
    joints
        Predecessor and successor of each joint, by name; "base" is the fixed body.
    bodies
        Names of the bodies; without it all that joints mention, in that order.

    Raises
    ------
    ValueError
        Joints between a body and itself, unknown bodies, bodies that no chain of joints connects
        with the base.

    Examples
    --------
    A crank-slider: three bodies in a ring with the base.

    >>> ring = {"a": ("base", "crank"), "b": ("crank", "rod"), "c": ("rod", "slider"),
    ...         "d": ("base", "slider")}
    >>> graph = Graph(ring)
    >>> graph.n_loops, graph.count_spanning_trees(), len(list(graph.numberings()))
    (1, 4, 8)
    >>> graph.spanning_tree().depth
    2
    """

    def __init__(
        self, joints: Mapping[str, tuple[str, str]], bodies: Iterable[str] | None = None
    ) -> None:
        self.joints = {name: (str(p), str(s)) for name, (p, s) in joints.items()}
        mentioned = dict.fromkeys(body for ends in self.joints.values() for body in ends)
        mentioned.pop(BASE, None)
        self.bodies = tuple(mentioned if bodies is None else dict.fromkeys(bodies))
        known = {BASE, *self.bodies}
        for name, ends in self.joints.items():
            for body in ends:
                if body not in known:
                    near = difflib.get_close_matches(body, known, 1)
                    hint = f"did you mean {near[0]!r}?" if near else "declare it first"
                    raise ValueError(f"joint {name!r}: no body is named {body!r}; {hint}")
            if ends[0] == ends[1]:
                raise ValueError(
                    f"joint {name!r}: expected two different bodies, received {ends[0]!r} twice"
                )
        if not self.bodies:
            raise ValueError("graph: expected at least one body, received none")
        self._check_connected()

    @classmethod
    def of(cls, model: Model) -> Graph:
        """Graph of a model; each tree joint has the name of its body."""
        tree = Topology.of(model)
        names = (BASE, *tree.bodies)
        ends = zip(tree.predecessors, tree.successors)
        return cls({j: (names[p], names[s]) for j, (p, s) in zip(tree.joints, ends)}, names[1:])

    @property
    def n_loops(self) -> int:
        """N_L = N_J − N_B: loops of any spanning tree (Eq 4.1)."""
        return len(self.joints) - len(self.bodies)

    def neighbours(self, body: str) -> list[tuple[str, str]]:
        """Joints at a body and the bodies at their other ends."""
        return self._adjacent[body]

    @cached_property
    def _adjacent(self) -> dict[str, list[tuple[str, str]]]:
        table: dict[str, list[tuple[str, str]]] = {name: [] for name in (BASE, *self.bodies)}
        for name, (p, s) in self.joints.items():
            table[p].append((name, s))
            table[s].append((name, p))
        return table

    def _reached(self, start: str, joints: Collection[str]) -> dict[str, tuple[str, str]]:
        """Bodies that can be reached over `joints`, each with the joint and body before it."""
        found = {start: ("", "")}
        queue = [start]
        for body in queue:
            for joint, other in self._adjacent[body]:
                if joint in joints and other not in found:
                    found[other] = (joint, body)
                    queue.append(other)
        return found

    def _check_connected(self) -> None:
        reached = self._reached(BASE, self.joints)
        loose = [name for name in self.bodies if name not in reached]
        if loose:
            names = ", ".join(repr(name) for name in loose[:8]) + (" …" if len(loose) > 8 else "")
            verb = "hangs" if len(loose) == 1 else "hang"
            raise ValueError(
                f"{names} {verb} in the air: no chain of joints leads to the base; add the missing "
                f"joint, or let {loose[0]!r} float on a Free joint from the base"
            )

    # ------------------------------------------------------------------ spanning trees

    def spanning_tree(
        self,
        tree: Collection[str] = (),
        loops: Collection[str] = (),
        order: Sequence[str] | None = None,
    ) -> Topology:
        """Choose a spanning tree and number the bodies regularly.

        Parameters
        ----------
        tree
            Joints that must belong to the tree; the rest is chosen so that every body is as few
            joints as possible away from the base, because a deep tree has an ill-conditioned
            inertia matrix (§10.2).
        loops
            Joints that must close loops.
        order
            Bodies in the order of their numbers; by default the graph's order as far as it is
            regular.

        Notes
        -----
        Breadth first from the base: the depth of each body is the least possible. Where joints
        are prescribed, the bodies that they hold together are entered as one, at the first of
        them that is reached.
        """
        for name in (*tree, *loops):
            if name not in self.joints:
                near = difflib.get_close_matches(name, self.joints, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {list(self.joints)}"
                raise ValueError(f"no joint is named {name!r}; {hint}")
        both = set(tree) & set(loops)
        if both:
            raise ValueError(f"joint {min(both)!r} cannot be in the tree and close a loop as well")
        self._check_forest(tree)
        wanted = set(tree)
        above: dict[str, tuple[str, str]] = {}  # joint and parent of each body
        depth = {BASE: 0}
        front: list[tuple[int, int, str]] = []

        def enter(body: str) -> None:
            """Reach a body and all that prescribed joints hold together with it."""
            for at, (joint, before) in self._reached(body, wanted).items():
                if joint:
                    above[at], depth[at] = (joint, before), depth[before] + 1
                heapq.heappush(front, (depth[at], len(depth), at))

        enter(BASE)
        while front:
            body = heapq.heappop(front)[2]
            for joint, other in self._adjacent[body]:
                if other not in depth and joint not in loops:
                    above[other], depth[other] = (joint, body), depth[body] + 1
                    enter(other)
        missing = [name for name in self.bodies if name not in depth]
        if missing:
            raise ValueError(
                f"without the joints {sorted(loops)} no tree reaches {missing[0]!r}; a joint that "
                "is the only way to a body cannot close a loop"
            )
        return self._numbered(above, order)

    def _check_forest(self, tree: Collection[str]) -> None:
        group = {name: name for name in (BASE, *self.bodies)}  # union-find

        def find(body: str) -> str:
            while group[body] != body:
                group[body] = body = group[group[body]]
            return body

        taken: set[str] = set()
        for name in tree:
            p, s = self.joints[name]
            if find(p) == find(s):
                path = self._reached(p, taken)
                ring, at = [name], s
                while at != p:
                    joint, at = path[at]
                    ring.append(joint)
                raise ValueError(
                    f"the joints {ring} form a ring, so they cannot all be in the tree; let one "
                    "of them close the loop"
                )
            group[find(p)] = find(s)
            taken.add(name)

    def _numbered(
        self, above: Mapping[str, tuple[str, str]], order: Sequence[str] | None
    ) -> Topology:
        if order is None:
            order = regular_order({name: above[name][1] for name in self.bodies})
        elif sorted(order) != sorted(self.bodies):
            raise ValueError(f"order: expected each of {list(self.bodies)} once, received {order}")
        used = {joint for joint, _ in above.values()}
        names = [above[body][0] for body in order] + [j for j in self.joints if j not in used]
        number = {BASE: 0, **{name: i for i, name in enumerate(order, 1)}}
        ends = [tuple(number[body] for body in self.joints[name]) for name in names]
        return Topology(
            tuple(order), tuple(names), tuple(p for p, _ in ends), tuple(s for _, s in ends)
        )

    def spanning_trees(self) -> Iterator[tuple[str, ...]]:
        """All spanning trees, each as the names of its joints. For small graphs: there are many."""
        names = list(self.joints)
        size = len(self.bodies)

        def extend(k: int, chosen: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            if len(chosen) == size:
                yield chosen
                return
            if len(self._reached(BASE, {*chosen, *names[k:]})) <= size:
                return  # what is left cannot connect all
            p, s = self.joints[names[k]]
            if s not in self._reached(p, chosen):
                yield from extend(k + 1, (*chosen, names[k]))
            yield from extend(k + 1, chosen)

        return extend(0, ())

    def count_spanning_trees(self) -> int:
        """Number of spanning trees: a minor of the Laplacian (Kirchhoff), in exact integers."""
        number = {name: k for k, name in enumerate(self.bodies)}
        n = len(number)
        L = [[0] * n for _ in range(n)]
        for p, s in self.joints.values():
            for a, b in ((p, s), (s, p)):
                if a != BASE:
                    L[number[a]][number[a]] += 1
                    if b != BASE:
                        L[number[a]][number[b]] -= 1
        last = 1
        for k in range(n - 1):  # Bareiss; L is positive definite, so no pivot vanishes
            for i in range(k + 1, n):
                for j in range(k + 1, n):
                    L[i][j] = (L[i][j] * L[k][k] - L[i][k] * L[k][j]) // last
            last = L[k][k]
        return L[n - 1][n - 1]

    def numberings(self) -> Iterator[Topology]:
        """All regular numberings over all spanning trees; loop joints keep their order."""
        for tree in self.spanning_trees():
            found = self._reached(BASE, set(tree))
            above = {body: found[body] for body in self.bodies}
            for order in _orders({body: parent for body, (_, parent) in above.items()}):
                yield self._numbered(above, order)
