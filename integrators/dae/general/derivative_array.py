"""A system with its derivatives as functions: residuals, system Jacobian, full Jacobian.

The vector X holds the derivatives y_j^(k), k = 0 … d_j, of all unknowns: first the unknowns
themselves, then their first derivatives, and so on. The residuals are f_i^(q), q = 0 … c_i, stage
by stage: first the equation that is differentiated most often as given, …, last all leading ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tracing.calculus.derivative import sparse_jacobian
from ...tracing.function import Function
from ...tracing.graph import Graph, Program
from ...tracing.levels import Levels
from ...tracing.symbols.symbol import Symbol
from ...tracing.trace import output_nodes
from .equations import Key
from .jacobian import Singularity, SystemJacobian
from .pattern.structure import Structure
from .prolongation import MIXED, Coefficients, Prepared, factorials, program_values, symbol_places

__all__ = ["LARGEST_TRACED", "DerivativeArray", "Evaluated"]

Array = NDArray[np.float64]

#: Graphs up to this size become machine code, larger ones array operations, as do those in which
#: the same operations occur many times: code of thousands of lines takes seconds to compile.
LARGEST_MACHINE_CODE = 4_000
SMALL = 800
REPEATED = 0.05

#: States of a right-hand side that is traced, with a dense Jacobian; larger ones have a sparse one.
LARGEST_TRACED = 150


class Evaluated:
    """A program of t, X and p as a function on floats: machine code, or levels if it is large."""

    def __init__(self, program: Program, n: int, k: int) -> None:
        self.program, self.n, self.k = program, n, k
        self.levels = Levels(program) if len(program) > SMALL else None
        if len(program) <= LARGEST_MACHINE_CODE and self.levels is not None:
            if len(self.levels.groups) > REPEATED * len(program):
                self.levels = None  # no formula occurs again and again: straight-line code
        self.function = Function(program, n, k) if self.levels is None else None

    def __reduce__(self) -> Any:
        return Evaluated, (self.program, self.n, self.k)

    def __call__(self, t: float, X: Array, p: Any = ()) -> Array:
        """Return the values."""
        if self.function is not None:
            return self.function(t, X, p) if self.k else self.function(t, X)
        assert self.levels is not None
        return self.levels(np.concatenate([[t], X, np.asarray(p, dtype=float)[: self.k]]))


class DerivativeArray:
    """Residuals of all stages up to the leading one, and their Jacobians; functions of (t, X, p).

    Attributes
    ----------
    keys
        What the entries of X are: (unknown, order of derivative).
    rows
        What the residuals are: (equation, how often differentiated).
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.equations = structure.equations
        self.c, self.d = structure.c.tolist(), structure.d.tolist()
        n, k = self.equations.n, self.equations.parameters
        self.n, self.k = n, k
        top = max(self.d, default=0)
        self.keys: list[Key] = [(j, o) for o in range(top + 1) for j in range(n) if o <= self.d[j]]
        self.place = {key: i for i, key in enumerate(self.keys)}
        deepest = max(self.c, default=0)
        self.rows: list[tuple[int, int]] = [
            (i, stage + self.c[i])
            for stage in range(-deepest, 1)
            for i in range(n)
            if stage + self.c[i] >= 0
        ]
        self.prepared = Prepared(self.equations)
        self.system_jacobian = SystemJacobian(self.equations, structure.sigma, structure.known)
        self.nonlinear = self.system_jacobian.nonlinear(structure.known)
        self.symbol_places = symbol_places(self.equations.symbols, self.keys)

    @property
    def size(self) -> int:
        """Length of X."""
        return len(self.keys)

    @cached_property
    def names(self) -> list[str]:
        """Names of the entries of X."""
        return [self.equations.symbol_name(key) for key in self.keys]

    @cached_property
    def row_names(self) -> list[str]:
        """Names of the residuals."""
        return [self.structure.constraint_name(i, q) for i, q in self.rows]

    def series_of(self, X: Sequence[Any]) -> list[list[Any]]:
        """Taylor coefficients a_jk = y_j^(k)/k! of the unknowns, from X."""
        factor = factorials(max(self.d, default=0) + 1)
        a: list[list[Any]] = [[] for _ in range(self.n)]
        for (j, order), x in zip(self.keys, X):
            a[j].append(x if order < 2 else MIXED["mul"](1.0 / factor[order], x))
        return a

    def residuals_on(self, t: Any, X: Sequence[Any], p: Sequence[Any]) -> list[Any]:
        """Residuals of all stages, on numbers or symbols."""
        series = Coefficients(self.prepared, t, p, self.series_of(X), MIXED)
        factor = factorials(max(self.c, default=0) + 1)
        out = []
        for i, q in self.rows:
            value = series.equation(i, q)
            out.append(value if q < 2 else MIXED["mul"](factor[q], value))
        return out

    def entries_on(self, t: Any, X: Sequence[Any], p: Sequence[Any]) -> list[Any]:
        """Entries of the system Jacobian, on numbers or symbols."""
        symbols = [X[i] for i in self.symbol_places]
        return program_values(self.system_jacobian.program, t, symbols, p)

    def _program(self, function: Any) -> Program:
        """Trace a function of (t, X, p)."""
        g = Graph()
        symbols = [Symbol(g, g.input(i)) for i in range(1 + self.size + self.k)]
        values = function(symbols[0], symbols[1 : 1 + self.size], symbols[1 + self.size :])
        nodes, _ = output_nodes(g, values, "the equations")
        names = ["t", *self.names, *(f"p[{i}]" for i in range(self.k))]
        return Program.from_graph(g, nodes, names)

    @cached_property
    def program(self) -> Program:
        """The residuals as a program of t, X, p."""
        return self._program(self.residuals_on)

    @cached_property
    def residuals(self) -> Evaluated:
        """All residuals f_i^(q)."""
        return Evaluated(self.program, self.size, self.k)

    @cached_property
    def entries(self) -> Evaluated:
        """Entries of the system Jacobian."""
        return Evaluated(self._program(self.entries_on), self.size, self.k)

    @cached_property
    def _full(self) -> tuple[Evaluated, NDArray[np.int64], NDArray[np.int64]]:
        made, rows, columns = sparse_jacobian(self.program, range(1, 1 + self.size))
        return Evaluated(made, self.size, self.k), np.array(rows), np.array(columns)

    def full_jacobian(self, t: float, X: Array, p: Any = ()) -> Any:
        """∂(residuals)/∂X as a sparse matrix."""
        from scipy.sparse import csr_matrix

        function, rows, columns = self._full
        shape = (len(self.rows), self.size)
        return csr_matrix((function(t, X, p), (rows, columns)), shape=shape)

    def singular(self, t: float, X: Array, p: Any = ()) -> Singularity | None:
        """Return the block in which the system Jacobian has lost rank, or None."""
        return self.system_jacobian.singular(self.entries(t, X, p), self.structure.blocks)

    @cached_property
    def state_keys(self) -> list[Key]:
        """What a state consists of.

        Derivatives below the leading ones, algebraic unknowns, and leading derivatives that enter
        nonlinearly.
        """
        extra = set(self.nonlinear)
        return [
            (j, o) for j, o in self.keys if o < self.d[j] or self.d[j] == 0 or j in extra
        ]  # fmt: skip

    @cached_property
    def state_places(self) -> NDArray[np.int64]:
        """Where the state's entries are in X."""
        return np.array([self.place[key] for key in self.state_keys], dtype=np.int64)
