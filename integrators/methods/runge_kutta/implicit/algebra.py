"""Jacobians, and linear systems that the kernels leave to LAPACK or SuperLU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...linear.choice import LinearChoice, best_kind, check_preconditioner
from ...linear.direct import BandLU, DenseLU, SparseLU
from ...linear.pattern import Pattern, band_pattern, column_groups
from ...linear.probing import found_pattern
from ...linear.projected import Directional, KrylovSolver
from .step import TASK_FACTOR, TASK_JACOBIAN, TASK_MASS, TASK_SOLVE_COMPLEX, TASK_SOLVE_REAL

if TYPE_CHECKING:
    from .engine import ImplicitEngine

__all__ = ["LARGEST_OWN_LU", "JacobianSource", "LinearAlgebra", "column_groups"]

Array = NDArray[np.float64]

LARGEST_OWN_LU = 40  # above this dimension LAPACK is faster than our kernel
DIFFERENCE = float(np.sqrt(np.finfo(float).eps))
LOOK_AGAIN = 10  # Jacobians between two looks whether a pattern that was found still holds
SEEN = 0.02  # relative difference of J·v from one of f that a wrong pattern makes, at the least


class JacobianSource:
    """∂f/∂y of a problem: the user's function or constant, tracing, or finite differences.

    Parameters
    ----------
    engine
        Whose it is, by a weak reference: workspaces in cycles would wait for the garbage collector,
        which counts objects and not bytes.

    Attributes
    ----------
    pattern
        Where it may be different from zero, if that is known and worth knowing.
    kind
        How systems with it are solved: "dense", "band", "sparse" or "gmres".
    is_sparse
        Whether even a small system is left to :class:`LinearAlgebra`.
    """

    def __init__(self, engine: ImplicitEngine) -> None:
        self.engine = engine
        problem = engine.problem
        jac = problem.jac
        self.constant: Any = None
        self.function: Any = None
        self.choice: LinearChoice = engine.options.linear or LinearChoice()
        self.is_asked = engine.options.linear is not None
        if callable(jac):
            self.function = problem.bind(jac)
        elif jac is not None:
            self.constant = jac if _is_sparse(jac) else np.asarray(jac)
            engine.state.constant_jacobian = 1
            self._check(self.constant)
        self.pattern: Pattern | None = None
        self.is_found = False  # by probing, which can err
        self.evaluations = 0
        self.seen_as = ""  # where the pattern comes from
        if problem.jac_sparsity is not None:
            if engine.complex:
                raise ValueError("jac_sparsity is for real problems; give jac for a complex one")
            self._check(problem.jac_sparsity)
            self.pattern, self.seen_as = Pattern(problem.jac_sparsity), "given"
        elif self.choice.bandwidth is not None and not engine.complex:
            self.pattern, self.seen_as = band_pattern(engine.n, *self.choice.bandwidth), "given"
        first = self._first_value()
        self.directions = self._traced_directions()
        if self.pattern is None and not engine.complex:
            self._look_for_pattern(first)
        self._choose_kind(first)

    def _first_value(self) -> Any:
        """The user's Jacobian at the start, to see what it is."""
        if self.function is None:
            return self.constant
        problem = self.engine.problem
        first = self.function(problem.t_span[0], problem.y0.copy())
        self._check(first)
        return first

    def _look_for_pattern(self, first: Any) -> None:
        """The pattern of a Jacobian that is returned sparse, or of a large f, traced or not."""
        engine = self.engine
        if _is_sparse(first):
            self.pattern, self.seen_as = Pattern(first), "jac"
        if self.pattern is not None or first is not None or self.choice.kind == "dense":
            return
        if engine.n <= LARGEST_OWN_LU and not self.is_asked:
            return
        if engine.state.f_native == 1:
            traced: Any = engine.problem.f
            self.pattern, self.seen_as = traced.kept("pattern", _traced_pattern), "traced"
            return
        t0, f = engine.problem.t_span[0], engine.problem.bind(engine.problem.f)

        def slope(y: Array) -> Any:
            engine.state.nfev += 1
            return f(t0, y)

        self.pattern = found_pattern(slope, engine.problem.y0)
        self.is_found, self.seen_as = self.pattern is not None, "found"

    def _choose_kind(self, first: Any) -> None:
        """How systems with M − γJ are solved."""
        engine, kind, mass = self.engine, self.choice.kind, self.engine.problem.mass
        if kind != "auto" and (engine.complex or engine.is_fully_coupled) and kind != "dense":
            what = "complex states" if engine.complex else "a tableau whose stages stay coupled"
            raise ValueError(f"linear_solver={kind!r} does not serve {what}; leave it out")
        small = engine.n <= LARGEST_OWN_LU
        if kind == "auto":
            kind = "dense"
            if not (small or engine.complex or engine.is_fully_coupled):
                both = self.pattern
                if both is not None and mass is not None:
                    both = Pattern(abs(both.matrix(np.ones(both.nnz))) + abs(_sparse(mass)))
                constrained = mass is not None and not np.all(_sparse(mass).diagonal())
                kind = best_kind(engine.n, both, first is None, constrained)
        if kind in ("band", "sparse") and self.pattern is None:
            if first is None and self.choice.kind != "auto":
                raise ValueError(
                    f"linear_solver={kind!r} needs to know where the Jacobian vanishes, and "
                    "looking at f did not show it; give jac_sparsity, a sparse jac, "
                    "bandwidth=(lower, upper), or trace f"
                )
            self.pattern, self.seen_as = Pattern(_sparse(first)), "jac"
        if kind == "gmres":
            check_preconditioner(self.choice.preconditioner, engine.n, self.pattern is not None)
        self.kind = kind
        self.is_sparse = kind != "dense"
        if kind == "dense" and not (small and self.seen_as == "given"):
            self.pattern = None  # of no use

    def _traced_directions(self) -> Any:
        """Exact J·v of a traced f that is large or sparse, as a function of (t, y, v).

        Small systems evaluate the whole of J as one piece of machine code. For large ones that
        would compile for long, and J·v is exact as well: a few of them give all columns.
        """
        engine = self.engine
        problem, f = engine.problem, engine.problem.f
        if problem.jac is not None or engine.state.f_native == 0 or engine.is_fully_coupled:
            return None
        if engine.n <= LARGEST_OWN_LU and not (self.is_asked or self.pattern is not None):
            return None
        from ....tracing import GraphTooLargeError

        traced: Any = f
        try:
            product = traced.jvp()
            product.machine_code()
        except GraphTooLargeError:
            return None
        if traced.k == 0:
            return product
        return lambda t, y, v: product(t, y, v, engine.problem.params)

    @property
    def description(self) -> str:
        """How it is evaluated, in words."""
        if self.constant is not None:
            return "constant"
        if self.function is not None:
            return "by jac"
        exact = self.directions is not None
        what = "exact products" if exact else "differences of f"
        if self.kind == "gmres" and self.pattern is None:
            return f"never formed, {what} instead"
        if self.pattern is None:
            return f"by {self.engine.n} {what}"
        return f"by {len(self.pattern.groups)} {what}, pattern {self.seen_as}"

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
                J[:] = _dense(matrix)

        return engine.trampoline(evaluate)

    def evaluate(self, t: float) -> Any:
        """Jacobian at (t, engine.x), real: dense, sparse, or a :class:`Directional`."""
        x, _ = self.engine.buffer_views()
        if self.constant is not None:
            matrix = self.constant
        elif self.function is not None:
            matrix = self.function(t, x.copy())
            self._check(matrix)
        elif self.kind == "gmres" and self.pattern is None:
            return Directional(self._products(t))
        elif self.directions is not None:
            return self._exact_columns(t)
        else:
            return self._differences(t)
        if self.is_sparse and not self.engine.complex:
            return _sparse(matrix)
        dense = np.atleast_2d(_dense(matrix))
        if not np.all(np.isfinite(dense)):
            raise ValueError(f"jac returned NaN or infinity at t = {t:.9g}")
        return self._real(dense)

    def _products(self, t: float) -> Callable[[Array], Array]:
        """v → J·v at (t, engine.x)."""
        x = self.engine.x.copy()
        if self.directions is not None:
            return lambda v: self.directions(t, x, v)
        base = self._raw_rhs(t, x)
        unit = self.engine.typical_size()
        size = np.maximum(np.abs(x), np.where(unit > 0, unit, 1.0))

        def product(v: Array) -> Array:
            length = float(np.sqrt(np.mean((v / size) ** 2)))
            if length == 0.0:
                return np.zeros_like(v)
            small = DIFFERENCE / length
            return (self._raw_rhs(t, x + small * v) - base) / small

        return product

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
        J = self._assembled(lambda j: self._column(t, x, base, j, increments), increments)
        if self._holds(J, t, x, base, increments):
            return J
        return self._without_pattern(t)

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
        data = np.empty(pattern.nnz)
        for group, (places, rows) in zip(pattern.groups, pattern.entries):
            data[places] = column(group)[rows]
        data /= lengths[pattern.columns]
        return pattern.matrix(data)

    def _holds(self, J: Any, t: float, x: Array, base: Array, increments: Array) -> bool:
        """Whether J·v agrees with a difference of f, for a pattern that was found by probing."""
        self.evaluations += 1
        if not self.is_found or self.evaluations % LOOK_AGAIN != 1:
            return True
        signs = np.where(np.cos(np.arange(x.size) ** 2 + self.evaluations) > 0, 1.0, -1.0)
        v = signs * increments
        change, linear = self._raw_rhs(t, x + v) - base, J @ v
        size = abs(J) @ np.abs(v)
        wrong = np.abs(change - linear) > SEEN * (size + np.abs(change)) + _noise(base)
        # Curvature makes differences, too; a wrong pattern is wrong in both directions.
        if not wrong.any():
            return True
        back = base - self._raw_rhs(t, x - v)
        return not np.any(wrong & (np.abs(back - linear) > SEEN * (size + np.abs(back))))

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

    def _without_pattern(self, t: float) -> Any:
        """The pattern that was found is wrong: go on without."""
        self.pattern, self.is_found = None, False
        return Directional(self._products(t)) if self.kind == "gmres" else self._differences(t)

    def _raw_rhs(self, t: float, x: Array) -> Array:
        return self.engine.to_real(self.engine.slope(t, self.engine.from_real(x)))


class LinearAlgebra:
    """Factorisations and solves for large or sparse systems, called back from the loop."""

    def __init__(self, engine: ImplicitEngine, arrays: dict[str, Any]) -> None:
        self.engine = engine
        self.arrays = arrays
        source, n, mass = engine.jacobian, engine.n, engine.problem.mass
        self._J: Any = None
        self.system: Any
        if source.kind == "band":
            self.system = BandLU(mass, n, reorder=source.choice.bandwidth is None)
        elif source.kind == "sparse":
            self.system = SparseLU(mass, n)
        elif source.kind == "gmres":
            self.system = KrylovSolver(mass, n, self, source.choice.preconditioner)
        else:
            self.system = DenseLU(None if mass is None else source.dense_mass(), n)
        self.real: list[Any] = []
        self.complex: list[Any] = []

    @property
    def description(self) -> str:
        """How systems are solved and where the Jacobian comes from, in words."""
        return f"{self.system.name}; Jacobian {self.engine.jacobian.description}"

    @property
    def J(self) -> Any:
        """The Jacobian."""
        return self._J

    @J.setter
    def J(self, J: Any) -> None:
        self.use(J)

    def use(self, J: Any) -> None:
        """Take a new Jacobian, in the form that the solves need."""
        self._J = J
        if J is not None:
            self.system.use(J)

    def address(self) -> int:
        """Address of the callback; the task comes in place of the time."""
        engine = self.engine

        def run(task: float) -> None:
            if task == TASK_FACTOR:
                self._factor()
            elif task == TASK_MASS:
                engine.dx[:] = self.system.times_mass(engine.x)
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
        solver = self.system.solver
        self.real = [solver(h * shift) for shift in self.arrays["real_shift"]]
        self.complex = [solver(h * shift) for shift in self.arrays["complex_shift"]]

    # ------------------------------------------------------------ what GMRES asks of the run

    def weights(self) -> Array:
        """Tolerance of each component; its size, with fixed steps."""
        engine = self.engine
        sizes = np.abs(engine.w.y)
        if engine.options.fixed:
            return np.maximum(sizes, 1e-8 * sizes.max(initial=0.0) + np.finfo(float).tiny)
        return np.asarray(engine.w.atol + float(engine.state.rtol) * sizes)

    def limit(self) -> float:
        """How far Newton's iteration goes, in tolerances; 0 for fixed steps."""
        return 0.0 if self.engine.options.fixed else float(self.engine.state.newton_tolerance)

    def where(self) -> tuple[float, Array]:
        """Time and state of the run."""
        return self.engine.t, self.engine.y


def _noise(base: Array) -> Array:
    """Rounding errors that differences of f may have, at the least."""
    return 1e-10 * (np.abs(base) + np.abs(base).max(initial=0.0))


def _traced_pattern(traced: Any) -> Pattern:
    return Pattern(traced.dependence())


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsc")


def _sparse(matrix: Any) -> Any:
    from scipy.sparse import csc_matrix

    return csc_matrix(matrix)


def _dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if _is_sparse(matrix) else matrix)
