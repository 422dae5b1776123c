"""The equations as they are, with the order reduced: M ż = f(t, z) for implicit methods.

The components of z are the unknowns and their derivatives below the highest that occurs. Where a
highest derivative enters with constant coefficients, these are entries of M; where it enters in any
other way, it becomes a component v of its own, ẏ^(k) = v and 0 = F(…, v): Runge–Kutta methods then
do just what collocation does to F(t, y, ẏ) = 0 directly.

The index of each component tells implicit methods how to weigh its error: y_j^(k) follows after
max c + k + 1 − d_j differentiations, where the maximum is over the equations connected with it.
Components that no constraint binds, open or hidden, are weighed as they are, whatever acts on them:
nothing would put their errors right.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tracing import Traced
from ....tracing.calculus.derivative import sparse_jacobian
from ....tracing.graph import Graph, Program
from ....tracing.symbols.symbol import Symbol
from ....tracing.trace import output_nodes
from ..derivative_array import LARGEST_TRACED, DerivativeArray, Evaluated
from ..equations import Equations, Key
from ..prolongation import as_array, program_values
from .dummy import groups

__all__ = ["AsGiven"]

HIGHEST_INDEX = 3
LARGEST_DENSE = 200


class AsGiven:
    """A DAE as M ż = f(t, z).

    Parameters
    ----------
    array
        The equations with their derivatives, after conversions.
    written
        The equations as they were written. They are taken wherever conversions only combined them:
        a combination in which large terms cancel is what the analysis needs, and worse to solve.
    """

    def __init__(self, array: DerivativeArray, written: Equations) -> None:
        self.array, self.written = array, written
        self.equations = written if _merely_combined(array, written) else array.equations
        equations = self.equations
        self.top = [0] * array.n
        for j, o in equations.symbols:
            self.top[j] = max(self.top[j], o)
        self._linear_part()
        keys: list[Key] = []
        for o in range(max(self.top, default=0) + 1):
            for j in range(array.n):
                if o < self.top[j] or (o == self.top[j] and (o == 0 or j in self.implicit)):
                    keys.append((j, o))
        self.keys = keys
        self.place = {key: i for i, key in enumerate(keys)}
        self.names = [equations.symbol_name(key) for key in keys]
        self.in_array = np.array([array.place[key] for key in keys], dtype=np.int64)
        self.size = len(keys)
        self.index = self._index()
        self._rows()

    def __reduce__(self) -> Any:
        return AsGiven, (self.array, self.written)

    def _linear_part(self) -> None:
        """Find coefficients of highest derivatives: constant ones belong to M."""
        program, symbols = self.equations.program, self.equations.symbols
        place = {key: 1 + i for i, key in enumerate(symbols)}
        tops = [(j, o) for j, o in enumerate(self.top) if o > 0]
        made, rows, columns = sparse_jacobian(program, [place[key] for key in tops])
        coefficients: list[tuple[int, int, float]] = []
        self.implicit: set[int] = set()
        for row, column, output in zip(rows, columns, made.outputs):
            j = tops[column][0]
            if made.ops[output] == "const":
                coefficients.append((row, j, float(made.args[output][0])))
            else:
                self.implicit.add(j)
        self.coefficients = [c for c in coefficients if c[1] not in self.implicit]

    def _index(self) -> NDArray[np.int64] | None:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        array, sigma = self.array, self.array.structure.sigma
        n = array.n
        pattern = csr_matrix(
            (np.ones(sigma.rows.size), (sigma.columns, n + sigma.rows)), (2 * n, 2 * n)
        )
        count, label = connected_components(pattern, directed=False)
        deepest = np.zeros(count, dtype=np.int64)
        np.maximum.at(deepest, label[n:], np.array(array.c, dtype=np.int64))
        unbound = {key for group in groups(array) if not group.equations for key in group.keys}
        index = np.array(
            [
                0 if (j, o) in unbound else deepest[label[j]] + o + 1 - array.d[j]
                for j, o in self.keys
            ]
        )
        highest = int(index.max(initial=0))
        if highest > HIGHEST_INDEX:
            worst = self.names[int(np.argmax(index))]
            raise ValueError(
                f"as given the system has index {highest} ({worst}); methods are known to converge "
                f"up to index {HIGHEST_INDEX}: take road='dummy', 'underlying' or 'taylor'"
            )
        return index if highest > 1 else None

    def _rows(self) -> None:
        """Give every component an equation: its own derivative's where it has one."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import maximum_bipartite_matching

        n = self.array.n
        self.chained = [
            (self.place[j, o], self.place[j, o + 1])
            for j, o in self.keys
            if (j, o + 1) in self.place
        ]
        taken = {row for row, _ in self.chained}
        left = [i for i in range(self.size) if i not in taken]
        column = {i: k for k, i in enumerate(left)}
        entries = [(i, column[self.place[j, self.top[j] - 1]]) for i, j, _ in self.coefficients]
        pattern = csr_matrix(
            (np.ones(len(entries)), ([i for i, _ in entries], [k for _, k in entries])),
            shape=(n, len(left)),
        )
        partner = maximum_bipartite_matching(pattern, perm_type="column").tolist()
        free = iter(sorted(set(range(len(left))) - {k for k in partner if k >= 0}))
        self.row_of = [left[k] if k >= 0 else left[next(free)] for k in partner]

    @cached_property
    def mass(self) -> Any:
        """The matrix M."""
        from scipy.sparse import csc_matrix

        entries = [(row, row, 1.0) for row, _ in self.chained]
        entries += [
            (self.row_of[i], self.place[j, self.top[j] - 1], x) for i, j, x in self.coefficients
        ]
        rows, columns, values = zip(*entries) if entries else ((), (), ())
        M = csc_matrix((values, (rows, columns)), shape=(self.size, self.size), dtype=float)
        return M.toarray() if self.size <= LARGEST_DENSE else M

    def right_hand_side(self, t: Any, z: Any, p: Any) -> list[Any]:
        """f(t, z, p) on numbers or symbols."""
        z = list(z)
        program, symbols = self.equations.program, self.equations.symbols
        at = [z[self.place[key]] if key in self.place else 0.0 for key in symbols]
        out: list[Any] = [0.0] * self.size
        for row, source in self.chained:
            out[row] = z[source]
        for i, value in enumerate(program_values(program, t, at, list(p))):
            out[self.row_of[i]] = -value
        return out

    @cached_property
    def rhs(self) -> Any:
        """The right-hand side as a function of (t, z, p): traced, or by levels if it is large."""
        if self.size <= LARGEST_TRACED:
            return Traced(_Given(self), n=self.size, params=self.array.k)
        return Evaluated(self._program, self.size, self.array.k)

    @cached_property
    def jac(self) -> Any:
        """∂f/∂z where the right-hand side is not traced: a function with sparse matrices."""
        if isinstance(self.rhs, Traced):
            return None
        return _SparseJacobian(self._program, self.size, self.array.k)

    @cached_property
    def _program(self) -> Program:
        g = Graph()
        k = self.array.k
        inputs = [Symbol(g, g.input(i)) for i in range(1 + self.size + k)]
        values = self.right_hand_side(inputs[0], inputs[1 : 1 + self.size], inputs[1 + self.size :])
        nodes, _ = output_nodes(g, values, "the equations")
        names = ["t", *self.names, *(f"p[{i}]" for i in range(k))]
        return Program.from_graph(g, nodes, names)

    def state(self, t: float, X: Any, p: Any = ()) -> Any:
        """Return z from all derivatives."""
        return np.asarray(X)[self.in_array]


def _merely_combined(array: DerivativeArray, written: Equations) -> bool:
    """Whether conversions left the unknowns, their derivatives and the index as they were."""
    return (
        written.n == array.n
        and all(key in array.place for key in written.symbols)
        and not any(max(c.times.values(), default=0) for c in array.structure.conversions)
    )


class _Given:
    """The right-hand side, to be traced."""

    __name__ = "equations as given"

    def __init__(self, given: AsGiven) -> None:
        self.given = given

    def __call__(self, t: Any, y: Any, p: Any = ()) -> Any:
        """Return f(t, z, p)."""
        out = as_array(self.given.right_hand_side(t, y, p))
        return out if isinstance(y[0], Symbol) else out.astype(float)


class _SparseJacobian:
    """∂f/∂z(t, z, p) as sparse matrices."""

    def __init__(self, program: Program, n: int, k: int) -> None:
        self.arguments = program, n, k
        made, rows, columns = sparse_jacobian(program, range(1, 1 + n))
        self.entries = Evaluated(made, n, k)
        self.rows, self.columns = np.array(rows), np.array(columns)
        self.n = n

    def __reduce__(self) -> Any:
        return _SparseJacobian, self.arguments

    def __call__(self, t: float, y: Any, p: Any = ()) -> Any:
        """Return the matrix."""
        from scipy.sparse import csc_matrix

        values = self.entries(t, np.asarray(y, dtype=float), p)
        return csc_matrix((values, (self.rows, self.columns)), shape=(self.n, self.n))
