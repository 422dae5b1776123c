"""Dummy derivatives with dynamic state selection: an index-1 system for implicit methods.

All derivatives X up to the leading ones are unknowns, and all residuals f_i^(q), q ≤ c_i, are
equations; what is missing are as many differential equations d/dt y_j^(k) = y_j^(k+1) as there are
freedoms (Mattsson & Söderlind, SIAM J. Sci. Comput. 14 (1993) 677–692). Where equations bind a
group of derivatives, some of the group are states and the others, the dummies, follow from the
equations; which are which must change along a run, for no choice is good everywhere (on a circle,
z follows from x except near its ends).

To keep one problem for a whole run, the choice is part of its state: for each such freedom there is
a component s with ṡ = the rate of the derivative chosen, 0 = s − that derivative, and a component
that holds the number of the choice and does not change by itself. After each step the choice is
looked at, and where another one is much better conditioned, these components jump; the derivatives
of the unknowns do not notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tracing import where
from ...tracing.symbol import Symbol
from .derivative_array import DerivativeArray
from .equations import Key
from .projection import Projection

__all__ = ["DummyDerivatives", "Group"]

Array = NDArray[np.float64]

WORSE = 0.7  # a choice is left when its condition is less than this part of the best one


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

    The state is Z = (X, s, choice): all derivatives, then for each freedom of a bound group the
    chosen derivative and its number in the group.
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
        self.size = array.size + 2 * self.count

    def __reduce__(self) -> Any:
        return DummyDerivatives, (self.array,)

    @cached_property
    def names(self) -> list[str]:
        """Names of the components of Z."""
        states = [f"state {r + 1}" for r in range(self.count)]
        choices = [f"choice {r + 1}" for r in range(self.count)]
        return [*self.array.names, *states, *choices]

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
        r = array.size
        for group in self.bound:
            here = [Z[array.place[key]] for key in group.keys]
            rate = [Z[array.place[j, o + 1]] for j, o in group.keys]
            for _ in range(group.states):
                choice = Z[r + self.count]
                out[r] = _chosen(choice, rate)
                algebraic.append(_chosen(choice, here) - Z[r])
                r += 1
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

    # ------------------------------------------------------------ choices

    def start(self, t: float, X: Array, p: Any) -> Array:
        """Return a state with the best choice at X."""
        entries = self.array.entries(t, X, p)
        numbers = [k for group in self.bound for k in self._best(group, entries)]
        return self._with_choice(X, numbers)

    def derivatives(self, t: float, z: Any, p: Any = ()) -> Array:
        """Return all derivatives, which are the first components of a state."""
        return np.asarray(z, dtype=float)[: self.array.size]

    def _with_choice(self, X: Array, numbers: list[int]) -> Array:
        values, r = [], 0
        for group in self.bound:
            for _ in range(group.states):
                values.append(X[self.array.place[group.keys[numbers[r]]]])
                r += 1
        return np.concatenate([X, values, np.array(numbers, dtype=float)])

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

    def _best(self, group: Group, entries: Array) -> list[int]:
        """Return the states that leave the best-conditioned dummies, by pivoting."""
        from scipy.linalg import qr

        A = self._matrix(group, entries)
        order = qr(A, mode="r", pivoting=True)[1]
        return sorted(int(k) for k in order[len(group.equations) :])

    def _condition(self, group: Group, entries: Array, states: list[int]) -> float:
        A = self._matrix(group, entries)
        dummies = [k for k in range(len(group.unknowns)) if k not in states]
        return float(np.linalg.svd(A[:, dummies], compute_uv=False)[-1])

    def project(self, t: float, z: Any, p: Any = ()) -> Array:
        """Return a state on all constraints, with a choice that is good there.

        States stay, for they have the accuracy of the method; dummies follow from them.
        """
        array = self.array
        z = np.asarray(z, dtype=float)
        numbers = [round(x) for x in z[array.size + self.count :]]
        keep = np.zeros(array.size, dtype=bool)
        r = 0
        for group in self.bound:
            for _ in range(group.states):
                keep[array.place[group.keys[numbers[r]]]] = True
                r += 1
        X = self.projection.all_derivatives(t, z[array.state_places], p, keep)
        if self.bound:
            entries = array.entries(t, X, p)
            r = 0
            for group in self.bound:
                now = numbers[r : r + group.states]
                best = self._best(group, entries)
                if best != now and self._condition(group, entries, now) < WORSE * self._condition(
                    group, entries, best
                ):
                    numbers[r : r + group.states] = best
                r += group.states
        return self._with_choice(X, numbers)


def _chosen(choice: Any, values: list[Any]) -> Any:
    """Return the value whose number is the choice."""
    out = values[0]
    for k, value in enumerate(values[1:], start=1):
        out = where(choice == float(k), value, out)
    return out
