"""Jacobians, and linear systems that the kernels leave to LAPACK or SuperLU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.pointers import SingularMatrixError
from .implicit import TASK_FACTOR, TASK_JACOBIAN, TASK_MASS, TASK_SOLVE_COMPLEX, TASK_SOLVE_REAL

if TYPE_CHECKING:
    from .engine import ImplicitEngine

__all__ = ["LARGEST_OWN_LU", "JacobianSource", "LinearAlgebra", "column_groups"]

Array = NDArray[np.float64]

LARGEST_OWN_LU = 40  # above this dimension LAPACK is faster than our kernel
DIFFERENCE = float(np.sqrt(np.finfo(float).eps))
# A traced f whose Jacobian has fewer entries than this part of all is solved with sparse matrices;
# above, LAPACK is faster.
SPARSE = 0.1


class JacobianSource:
    """∂f/∂y of a problem: the user's function or constant, tracing, or finite differences."""

    def __init__(self, engine: ImplicitEngine) -> None:
        self.engine = engine
        problem = engine.problem
        jac = problem.jac
        self.constant: Any = None
        self.function: Any = None
        if callable(jac):
            self.function = problem.bind(jac)
        elif jac is not None:
            self.constant = jac if _is_sparse(jac) else np.asarray(jac)
            engine.state.constant_jacobian = 1
            self._check(self.constant)
        sparsity = problem.jac_sparsity
        self.groups: list[NDArray[np.int64]] | None = None
        self.pattern: Any = None
        if sparsity is not None:
            from scipy.sparse import csc_matrix

            self.pattern = csc_matrix(sparsity).astype(bool)
            self._check(self.pattern)
            if engine.complex:
                raise ValueError("jac_sparsity is for real problems; give jac for a complex one")
            self.groups = column_groups(self.pattern)
        self.directions = self._traced_directions()
        self.is_sparse = self.pattern is not None or _is_sparse(jac) or _is_sparse(problem.mass)
        if self.function is not None and not self.is_sparse:
            t0 = problem.t_span[0]
            first = self.function(t0, problem.y0.copy())
            self._check(first)
            self.is_sparse = _is_sparse(first)

    def _traced_directions(self) -> Any:
        """Exact J·v of a traced f that is large or sparse, as a function of (t, y, v).

        Small systems evaluate the whole of J as one piece of machine code. For large ones that
        would compile for long, and J·v is exact as well: a few of them give all columns.
        """
        engine = self.engine
        problem, f = engine.problem, engine.problem.f
        if problem.jac is not None or engine.state.f_native == 0 or engine.is_fully_coupled:
            return None
        sparse = self.pattern is not None or _is_sparse(problem.mass)
        if engine.n <= LARGEST_OWN_LU and not sparse:
            return None
        from ...tracing import GraphTooLargeError
        from ...tracing.calculus.dependence import dependence

        traced: Any = f
        if self.pattern is None:
            pattern = dependence(traced.graph, 1, engine.n)
            if pattern.nnz <= SPARSE * engine.n**2:
                self.pattern, self.groups = pattern, column_groups(pattern)
        try:
            product = traced.jvp()
            product.machine_code()
        except GraphTooLargeError:
            return None
        if traced.k == 0:
            return product
        return lambda t, y, v: product(t, y, v, engine.problem.params)

    def _check(self, matrix: Any) -> None:
        n = self.engine.problem.n
        shape = getattr(matrix, "shape", None) or np.shape(matrix)
        if shape == () and n == 1:
            return
        if shape != (n, n):
            raise ValueError(f"jac must give a {n}×{n} matrix, got shape {shape}")

    def dense_mass(self) -> Array:
        """The mass matrix as a dense array of the real problem."""
        return self._real(_dense(self.engine.problem.mass))

    def address(self, J: Array, algebra: LinearAlgebra | None) -> int:
        """Address of a function that evaluates the Jacobian at engine.x."""
        engine = self.engine
        problem = engine.problem
        if algebra is None and problem.jac is None and engine.state.f_native == 1:
            engine.state.jacobian_native = 1
            f: Any = problem.f
            self._code = f.jacobian().machine_code()
            return int(self._code.address)
        if algebra is None and hasattr(problem.jac, "machine_code") and not engine.complex:
            engine.state.jacobian_native = 1
            self._code = problem.jac.machine_code()
            return int(self._code.address)

        def evaluate(t: float) -> None:
            matrix = self.evaluate(t)
            if algebra is not None:
                algebra.use(matrix)
            else:
                J[:] = matrix

        return engine.trampoline(evaluate)

    def evaluate(self, t: float) -> Any:
        """Jacobian at (t, engine.x), real, dense or sparse."""
        x, _ = self.engine.buffer_views()
        if self.constant is not None:
            matrix = self.constant
        elif self.function is not None:
            matrix = self.function(t, x.copy())
            self._check(matrix)
        elif self.directions is not None:
            return self._exact_columns(t)
        else:
            return self._differences(t)
        if self.is_sparse and not self.engine.complex:
            from scipy.sparse import csc_matrix

            return csc_matrix(matrix)
        dense = np.atleast_2d(_dense(matrix))
        if not np.all(np.isfinite(dense)):
            raise ValueError(f"jac returned NaN or infinity at t = {t:.9g}")
        return self._real(dense)

    def _real(self, matrix: NDArray[Any]) -> Array:
        """Real form of a complex-linear map: each entry becomes a 2×2 block."""
        if not self.engine.complex:
            return np.ascontiguousarray(matrix, dtype=np.float64)
        n = matrix.shape[0]
        real = np.zeros((2 * n, 2 * n))
        real[0::2, 0::2] = real[1::2, 1::2] = matrix.real
        real[1::2, 0::2], real[0::2, 1::2] = matrix.imag, -matrix.imag
        return real

    def _exact_columns(self, t: float) -> Any:
        """The Jacobian of a traced f, a group of columns at a time."""
        x = self.engine.x.copy()

        def column(columns: NDArray[np.int64]) -> Array:
            direction = np.zeros(len(x))
            direction[columns] = 1.0
            change: Array = self.directions(t, x, direction)
            if not np.all(np.isfinite(change)):
                raise FloatingPointError
            return change

        try:
            return self._assembled(column)
        except FloatingPointError:  # a slope is infinite; differences are not
            return self._differences(t)

    def _differences(self, t: float) -> Any:
        """Forward differences, a group of columns at a time.

        The increment of each component is √ε times the larger of its size and of the size at
        which it starts to matter (atol/rtol of the run, at least 1e-6 of the state's norm); it
        depends on nothing that earlier evaluations found, so it cannot run away.
        """
        engine = self.engine
        x = engine.x.copy()
        base = self._raw_rhs(t, x)
        if not np.all(np.isfinite(base)):
            raise FloatingPointError(
                f"f is not finite at t = {t:.9g}, where its Jacobian is needed"
            )
        floor = np.maximum(engine.typical_size(), 1e-6 * np.max(np.abs(x), initial=0.0))
        increments = DIFFERENCE * np.maximum(np.abs(x), np.where(floor > 0, floor, 1.0))
        increments = (x + increments) - x  # exactly representable
        return self._assembled(lambda j: self._column(t, x, base, j, increments), increments)

    def _assembled(
        self, column: Callable[[NDArray[np.int64]], Array], lengths: Array | None = None
    ) -> Any:
        """J from J·(sum of some of its columns' directions, of these lengths)."""
        n, pattern = self.engine.n, self.pattern
        lengths = np.ones(n) if lengths is None else lengths
        if pattern is None:
            J = np.empty((n, n))
            for j in range(n):
                J[:, j] = column(np.array([j])) / lengths[j]
            return J
        from scipy.sparse import csc_matrix

        data = np.empty(pattern.nnz)
        assert self.groups is not None
        for group in self.groups:
            change = column(group)
            for j in group:
                places = slice(pattern.indptr[j], pattern.indptr[j + 1])
                data[places] = change[pattern.indices[places]] / lengths[j]
        return csc_matrix((data, pattern.indices, pattern.indptr), shape=pattern.shape)

    def _column(
        self, t: float, x: Array, base: Array, columns: NDArray[np.int64], increments: Array
    ) -> Array:
        """f(x + δ) − f(x), backwards if f is not finite forwards."""
        shifted = x.copy()
        shifted[columns] += increments[columns]
        change = self._raw_rhs(t, shifted) - base
        if np.all(np.isfinite(change)):
            return change
        shifted[columns] = x[columns] - increments[columns]
        change = base - self._raw_rhs(t, shifted)
        if not np.all(np.isfinite(change)):
            raise FloatingPointError(
                f"the Jacobian cannot be found by differences at t = {t:.9g}: f is not finite "
                f"on either side of component {int(columns[0])}; give jac"
            )
        return change

    def _raw_rhs(self, t: float, x: Array) -> Array:
        return self.engine.to_real(self.engine.slope(t, self.engine.from_real(x)))


class LinearAlgebra:
    """Factorisations and solves for large or sparse systems, called back from the loop."""

    def __init__(self, engine: ImplicitEngine, arrays: dict[str, Any]) -> None:
        self.engine = engine
        self.arrays = arrays
        self.J: Any = None
        self.sparse = engine.jacobian.is_sparse
        mass = engine.problem.mass
        n = engine.n
        if self.sparse:
            from scipy.sparse import csc_matrix, identity

            self.M = identity(n, format="csc") if mass is None else csc_matrix(mass)
        else:
            self.M = np.eye(n) if mass is None else engine.jacobian.dense_mass()
        self.real: list[Any] = []
        self.complex: list[Any] = []

    def use(self, J: Any) -> None:
        """Take a new Jacobian, in the form that the solves need."""
        if self.sparse and not _is_sparse(J):
            from scipy.sparse import csc_matrix

            J = csc_matrix(J)
        self.J = J

    def address(self) -> int:
        """Address of the callback; the task comes in place of the time."""
        engine = self.engine

        def run(task: float) -> None:
            if task == TASK_FACTOR:
                self._factor()
            elif task == TASK_MASS:
                engine.dx[:] = self.M @ engine.x
            elif task == TASK_JACOBIAN:
                engine.dx[:] = self.J @ engine.x
            elif task >= TASK_SOLVE_COMPLEX:
                rhs = self.arrays["complex_rhs"]
                rhs[:] = self.complex[int(task - TASK_SOLVE_COMPLEX)](rhs)
            else:
                rhs = self.arrays["real_rhs"]
                rhs[:] = self.real[int(task - TASK_SOLVE_REAL)](rhs)

        return engine.trampoline(run)

    def _factor(self) -> None:
        h = float(self.engine.state.h_factored)
        self.real = [self._solver(h * shift) for shift in self.arrays["real_shift"]]
        self.complex = [self._solver(h * shift) for shift in self.arrays["complex_shift"]]

    def _solver(self, shift: Any) -> Any:
        matrix = self.M - shift * self.J
        if self.sparse:
            from scipy.sparse.linalg import splu

            try:
                return splu(matrix.tocsc()).solve
            except RuntimeError as error:  # SuperLU: exactly singular
                raise SingularMatrixError(str(error)) from None
        from scipy.linalg import lapack, lu_solve

        (getrf,) = lapack.get_lapack_funcs(("getrf",), (matrix,))
        *factors, info = getrf(matrix)
        if info != 0 or not np.all(np.isfinite(factors[0])):
            raise SingularMatrixError("a pivot is zero")
        return lambda rhs: lu_solve(factors, rhs, check_finite=False)


def column_groups(pattern: Any) -> list[NDArray[np.int64]]:
    """Group columns that share no row, greedily: one evaluation of f serves a whole group.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_matrix
    >>> tridiagonal = np.tri(100, k=1) - np.tri(100, k=-2)
    >>> len(column_groups(csc_matrix(tridiagonal)))
    3
    """
    n = pattern.shape[1]
    groups: list[list[int]] = []
    taken: list[NDArray[np.bool_]] = []
    for j in range(n):
        rows = pattern.indices[pattern.indptr[j] : pattern.indptr[j + 1]]
        for group, used in zip(groups, taken):
            if not used[rows].any():
                group.append(j)
                used[rows] = True
                break
        else:
            used = np.zeros(pattern.shape[0], dtype=bool)
            used[rows] = True
            groups.append([j])
            taken.append(used)
    return [np.array(group) for group in groups]


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsc")


def _dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if _is_sparse(matrix) else matrix)
