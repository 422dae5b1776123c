"""Dummy derivatives with dynamic state selection: an index-1 system for implicit methods.

All derivatives X up to the leading ones are unknowns, and all residuals f_i^(q), q ≤ c_i, are
equations; what is missing are as many differential equations d/dt y_j^(k) = y_j^(k+1) as there are
freedoms (Mattsson & Söderlind, SIAM J. Sci. Comput. 14 (1993) 677–692). Where equations bind a
group of derivatives, some of the group are states and the others, the dummies, follow from the
equations; which are which must change along a run, for no choice is good everywhere (on a circle,
z follows from x except near its ends).

States need not be single derivatives. Here they are combinations s = V·(derivatives of the group)
with orthonormal rows V that span, where they were chosen, the directions that the equations leave
free: the best choice there is, and one that stays good over the length of a step. Pivoting among
single derivatives leaves angles of 45° and more between states and free directions; towards the end
of a long step that may become 90°, where errors of dummies are larger than any estimate made with
the Jacobian of its beginning.

To keep one problem for a whole run, V is part of its state: ṡ = V·(their rates),
0 = V·(derivatives) − s, V̇ = 0. After each step the angles are looked at, and where one has become
large, V and s jump; the derivatives of the unknowns do not notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tracing.symbols.symbol import Symbol
from ..derivative_array import DerivativeArray
from ..equations import Key
from .projection import Projection
from .restored import Reaction

__all__ = ["DummyDerivatives", "DummyProjection", "Group"]

Array = NDArray[np.float64]

TILTED = 0.9  # cosine of the angle between states and free directions at which V is renewed


@dataclass(frozen=True)
class Group:
    """Derivatives of one stage that equations bind together.

    Attributes
    ----------
    equations, unknowns
        Rows and columns of the system Jacobian that connect them.
    keys
        The derivatives.
    """

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]
    keys: tuple[Key, ...]

    @property
    def states(self) -> int:
        """How many of the derivatives are states."""
        return len(self.unknowns) - len(self.equations)


def groups(array: DerivativeArray) -> list[Group]:
    """Find the groups of all stages below the leading one."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n, jacobian = array.n, array.system_jacobian
    c, d = np.array(array.c), np.array(array.d)
    found = []
    for k in range(-int(d.max(initial=0)), 0):
        active, unknown = c + k >= 0, d + k >= 0
        both = active[jacobian.rows] & unknown[jacobian.columns]
        pattern = csr_matrix(
            (np.ones(int(both.sum())), (jacobian.columns[both], n + jacobian.rows[both])),
            (2 * n, 2 * n),
        )
        _, label = connected_components(pattern, directed=False)
        members: dict[int, tuple[list[int], list[int]]] = {}
        for j in np.flatnonzero(unknown).tolist():
            members.setdefault(int(label[j]), ([], []))[1].append(j)
        for i in np.flatnonzero(active).tolist():
            members.setdefault(int(label[n + i]), ([], []))[0].append(i)
        for equations, unknowns in members.values():
            keys = tuple((j, int(d[j]) + k) for j in unknowns)
            found.append(Group(tuple(equations), tuple(unknowns), keys))
    return found


class DummyDerivatives:
    """The index-1 system: right-hand side, mass matrix, names, choices.

    The state is Z = (X, s, V): all derivatives, then the states of the bound groups, then the rows
    that make them.
    """

    def __init__(self, array: DerivativeArray) -> None:
        self.array = array
        self.projection = Projection(array)
        self.free: list[Key] = []
        self.bound: list[Group] = []
        for group in groups(array):
            if not group.equations:
                self.free += group.keys
            elif group.states:
                self.bound.append(group)
        self.count = sum(group.states for group in self.bound)
        directions = sum(group.states * len(group.keys) for group in self.bound)
        self.size = array.size + self.count + directions

    def __reduce__(self) -> Any:
        return DummyDerivatives, (self.array,)

    @cached_property
    def names(self) -> list[str]:
        """Names of the components of Z."""
        states = [f"state {r + 1}" for r in range(self.count)]
        parts, r = [], 0
        for group in self.bound:
            for _ in range(group.states):
                r += 1
                parts += [
                    f"state {r} along {self.array.equations.symbol_name(key)}" for key in group.keys
                ]
        return [*self.array.names, *states, *parts]

    @cached_property
    def differential(self) -> list[int]:
        """Components with a differential equation."""
        n = self.array.size
        return [*(self.array.place[key] for key in self.free), *range(n, self.size)]

    @cached_property
    def _algebraic(self) -> list[int]:
        own = set(self.differential)
        return [i for i in range(self.size) if i not in own]

    def mass(self) -> Any:
        """Return the mass matrix: ones for differential components."""
        diagonal = np.zeros(self.size)
        diagonal[self.differential] = 1.0
        if self.size <= 200:
            return np.diag(diagonal)
        from scipy.sparse import diags

        return diags(diagonal, format="csc")

    def assemble(self, residuals: Any, Z: Any) -> list[Any]:
        """Return the right-hand side of M Ż = f from the residuals of all stages."""
        array = self.array
        out: list[Any] = [0.0] * self.size
        for j, o in self.free:
            out[array.place[j, o]] = Z[array.place[j, o + 1]]
        algebraic = list(residuals)
        r, v = array.size, array.size + self.count
        for group in self.bound:
            here = [Z[array.place[key]] for key in group.keys]
            rate = [Z[array.place[j, o + 1]] for j, o in group.keys]
            for _ in range(group.states):
                row = Z[v : v + len(here)]
                out[r] = sum((x * y for x, y in zip(row, rate)), start=0.0)
                algebraic.append(sum((x * y for x, y in zip(row, here)), start=-Z[r]))
                r, v = r + 1, v + len(here)
        for place, value in zip(self._algebraic, algebraic):
            out[place] = value
        return out

    def __call__(self, t: Any, y: Any, p: Any = ()) -> Any:
        """Return the right-hand side, on numbers or symbols."""
        X = list(y[: self.array.size])
        if isinstance(y[0], Symbol) or isinstance(t, Symbol):
            residuals: Any = self.array.residuals_on(t, X, list(p))
        else:
            residuals = self.array.residuals(t, np.array(X, dtype=float), p)
        values = self.assemble(residuals, list(y))
        out = np.empty(self.size, dtype=object)
        out[:] = values
        return out if isinstance(y[0], Symbol) else out.astype(float)

    def jacobian(self, t: float, y: Any, p: Any = ()) -> Any:
        """Return ∂f/∂Z as a sparse matrix."""
        from scipy.sparse import coo_matrix, csc_matrix

        array = self.array
        z = np.asarray(y, dtype=float)
        own = array.full_jacobian(t, z[: array.size], p).tocoo()
        algebraic = np.array(self._algebraic)
        rows, columns, values = [algebraic[own.row]], [own.col], [own.data]
        more: list[tuple[int, int, float]] = [
            (array.place[j, o], array.place[j, o + 1], 1.0) for j, o in self.free
        ]
        r, v, line = array.size, array.size + self.count, len(array.rows)
        for group in self.bound:
            for _ in range(group.states):
                binding = int(algebraic[line])
                more.append((binding, r, -1.0))
                for j, o in group.keys:
                    here, rate = array.place[j, o], array.place[j, o + 1]
                    more += [(r, rate, z[v]), (r, v, z[rate])]
                    more += [(binding, here, z[v]), (binding, v, z[here])]
                    v += 1
                r, line = r + 1, line + 1
        if more:
            i, k, x = zip(*more)
            rows.append(np.array(i))
            columns.append(np.array(k))
            values.append(np.array(x))
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return csc_matrix(coo_matrix(entries, shape=(self.size, self.size)))

    # ------------------------------------------------------------ choices

    def start(self, t: float, X: Array, p: Any) -> Array:
        """Return a state with the best choice at X."""
        entries = self.array.entries(t, X, p)
        return self._with_rows(X, [self._free_rows(group, entries) for group in self.bound])

    def derivatives(self, t: float, z: Any, p: Any = ()) -> Array:
        """Return all derivatives, which are the first components of a state."""
        return np.asarray(z, dtype=float)[: self.array.size]

    def _with_rows(self, X: Array, rows: list[Array]) -> Array:
        """Return the state for X and the rows V of each group."""
        values = [V @ X[self._group_places(group)] for group, V in zip(self.bound, rows)]
        return np.concatenate([X, *values, *(V.ravel() for V in rows)])

    def _rows_of(self, z: Array) -> list[Array]:
        """Return the rows V of each group in a state."""
        v, rows = self.array.size + self.count, []
        for group in self.bound:
            shape = group.states, len(group.keys)
            rows.append(z[v : v + shape[0] * shape[1]].reshape(shape))
            v += shape[0] * shape[1]
        return rows

    def _group_places(self, group: Group) -> list[int]:
        return [self.array.place[key] for key in group.keys]

    def _matrix(self, group: Group, entries: Array) -> Array:
        jacobian = self.array.system_jacobian
        A = np.zeros((len(group.equations), len(group.unknowns)))
        row = {i: k for k, i in enumerate(group.equations)}
        column = {j: k for k, j in enumerate(group.unknowns)}
        for e, i, j in self._entries_of(group, jacobian):
            A[row[i], column[j]] = entries[e]
        size = np.abs(A).max(axis=1, initial=0.0)
        size[size == 0.0] = 1.0
        return A / size[:, None]

    @cached_property
    def _members(self) -> dict[Group, list[tuple[int, int, int]]]:
        return {}

    def _entries_of(self, group: Group, jacobian: Any) -> list[tuple[int, int, int]]:
        if group not in self._members:
            rows, columns = set(group.equations), set(group.unknowns)
            self._members[group] = [
                (e, i, j)
                for e, (i, j) in enumerate(zip(jacobian.rows.tolist(), jacobian.columns.tolist()))
                if i in rows and j in columns
            ]
        return self._members[group]

    def _free_rows(self, group: Group, entries: Array) -> Array:
        """Return orthonormal rows that span what the equations of a group leave free."""
        A = self._matrix(group, entries)
        if len(A) == 1 and A.shape[1] == 2:
            return np.array([[-A[0, 1], A[0, 0]]]) / np.hypot(A[0, 0], A[0, 1])
        return np.asarray(np.linalg.svd(A)[2][len(A) :])

    def project(self, t: float, z: Any, p: Any, reaction: Reaction) -> Array:
        """Return a state on all constraints, with a choice that is good there.

        States stay, for they have the accuracy of the method; dummies follow from them.
        """
        array = self.array
        z = np.asarray(z, dtype=float)
        rows = self._rows_of(z)
        keep = [(np.array(self._group_places(g)), V) for g, V in zip(self.bound, rows)]
        X = self.projection.all_derivatives(t, z[array.state_places], p, keep)
        reaction.settle(t, X, z[: array.size], p, keep)
        if rows:
            entries = array.entries(t, X, p)
            for k, group in enumerate(self.bound):
                free = self._free_rows(group, entries)
                if _smallest(rows[k] @ free.T) < TILTED:
                    rows[k] = free
        return self._with_rows(X, rows)


class DummyProjection:
    """``project(t, z, p)`` of :class:`DummyDerivatives`, for a run with some tolerances."""

    def __init__(self, dummy: DummyDerivatives, **tolerances: Any) -> None:
        self.dummy = dummy
        self.reaction = Reaction(dummy.projection, np.arange(dummy.array.size), **tolerances)

    def within(self, rtol: float, atol: Any) -> DummyProjection:
        """Return a copy for a run with these tolerances."""
        return DummyProjection(self.dummy, rtol=rtol, atol=atol)

    def __call__(self, t: float, z: Any, p: Any = ()) -> Array:
        """Return the state."""
        return self.dummy.project(t, z, p, self.reaction)


def _smallest(A: Array) -> float:
    """Return the smallest singular value."""
    if A.size == 1:
        return float(abs(A[0, 0]))
    return float(np.linalg.svd(A, compute_uv=False)[-1])
