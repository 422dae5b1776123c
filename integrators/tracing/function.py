"""Functions with a graph: what a right-hand side, its Jacobian and its series have in common.

A :class:`Function` is a program of t, y, p (and further vectors) that can be called on floats, by
machine code where there is a compiler, and on symbols. :class:`Jacobian` adds a sparsity pattern,
:class:`Series` the choice between straight-line code and loops.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.object_code import has_llvm
from . import entry as native
from . import printing
from .calculus import derivative
from .errors import GraphTooLargeError
from .graph import Program
from .symbols.arrays import SymbolArray
from .symbols.symbol import Symbol
from .trace import program_on_symbols

if TYPE_CHECKING:
    import scipy.sparse

    from .interpreted_code import InterpretedCode
    from .llvm.codegen import MachineCode
    from .loops.program import LoopProgram

__all__ = ["Function", "Jacobian", "Series"]

log = logging.getLogger(__name__)


class Function:
    """A traced function of t, y and p (and further vectors), with its graph.

    Attributes
    ----------
    n, k : int
        Number of states and of parameters.
    graph : Program
        The simplified straight-line program; inputs are t, y, p, then the further vectors.
    form : Program or LoopProgram
        What machine code is made of: the graph, or loops that do the same.
    extra : tuple of int
        Lengths of the further vectors, such as the direction of a Jacobian-vector product.
    """

    def __init__(
        self, graph: Program | LoopProgram, n: int, k: int, extra: Sequence[int] = ()
    ) -> None:
        self._form = graph
        self._n = n
        self._k = k
        self.extra = tuple(extra)
        self._codes: dict[int, MachineCode | InterpretedCode] = {}
        self._broken = False
        self._entry: Any = None

    def __reduce__(self) -> Any:
        return type(self), (self._form, self._n, self._k, self.extra)

    @property
    def form(self) -> Program | LoopProgram:
        """What machine code is made of."""
        return self._form

    @functools.cached_property
    def _expanded(self) -> Program:
        form = self.form
        return form if isinstance(form, Program) else form.expanded()

    @property
    def graph(self) -> Program:
        """The simplified straight-line program."""
        return self._expanded

    @property
    def n(self) -> int:
        """Number of states."""
        return self._n

    @property
    def k(self) -> int:
        """Number of parameters."""
        return self._k

    def __call__(self, t: Any, y: Any, *more: Any) -> np.ndarray:
        """Evaluate: ``(t, y, *further vectors, p)``; p only if there are parameters."""
        if self._entry is not None:
            if more and not self.k and isinstance(more[0], np.ndarray) and not more[0].size:
                return self._entry(t, y)  # no parameters, given as an empty vector
            return self._entry(t, y, *more)
        return self._evaluate(t, y, *more)

    def _evaluate(self, t: Any, y: Any, *more: Any) -> np.ndarray:
        """Evaluate with arguments of any kind."""
        vectors, p = more[: len(self.extra)], more[len(self.extra) :]
        if len(vectors) < len(self.extra) or len(p) > 1:
            raise TypeError(
                f"expected t, y, {len(self.extra)} further vectors and optionally p; "
                f"got {2 + len(more)} arguments"
            )
        t = _scalar(t)
        arrays = [
            _vector(y, self.n, "y"),
            _vector(p[0] if p else (), self.k, "p"),
            *(_vector(x, size, "vector") for x, size in zip(vectors, self.extra)),
        ]
        kinds = {a.dtype.kind for a in arrays}
        if "O" in kinds or isinstance(t, Symbol):
            flat = program_on_symbols(self.graph, [t, *(e for a in arrays for e in a)])
            out = np.empty(len(flat), dtype=object)
            out[:] = flat
            return out.reshape(self.graph.shape).view(SymbolArray)
        if "c" in kinds or isinstance(t, complex):
            return self._evaluate_complex(t, *arrays)
        code = self._code()
        if code is None:
            return self._interpret(t, *arrays)
        if self._entry is None and not self.extra and native.available():
            self._entry = native.slope_entry(
                code.address, self.n, self.k, self.form.shape, self._evaluate, code
            )
        return code(t, arrays[0], np.concatenate(arrays[1:])).reshape(self.form.shape)

    def _evaluate_complex(self, t: complex, *arrays: np.ndarray) -> np.ndarray:
        """Evaluate with complex arguments, which the graph does not know."""
        raise TypeError(
            f"{type(self).__name__} got complex arguments: what is derived from a graph is for "
            "real numbers (the traced function itself takes complex ones). Remedy: split them into "
            "real and imaginary parts, or derive it from the function by other means"
        )

    def _interpret(self, t: float, *arrays: np.ndarray) -> np.ndarray:
        """Return the same without machine code."""
        values = self.form.evaluate([t, *(float(e) for a in arrays for e in a)])
        return np.array(values, dtype=float).reshape(self.form.shape)

    def _code(self) -> MachineCode | InterpretedCode | None:
        """Scalar machine code, or None where there is no compiler or the graph is too large."""
        if 1 not in self._codes and not self._broken:
            try:
                self.machine_code()
            except (ImportError, OSError, RuntimeError, GraphTooLargeError) as error:
                log.warning("running without machine code: %s", error)
                self._broken = True
        return self._codes.get(1)

    def machine_code(self, lanes: int = 1) -> MachineCode | InterpretedCode:
        """Machine code, compiled at the first call and cached on disk.

        Parameters
        ----------
        lanes
            1 for scalar code; 2, 4, 8 or 16 evaluate that many (t, y, p) side by side.

        Returns
        -------
        MachineCode
            Its ``address`` is that of a C function: ``void f(double t, const double* y,
            const double* p, double* out)``, or in L lanes ``void f(const double* t, ...)`` with
            component k of lane l at ``[k*L + l]``. Further vectors follow p in ``p``.
        """
        if lanes not in self._codes:
            self._codes[lanes] = self._compile(lanes)
        return self._codes[lanes]

    def _compile(self, lanes: int) -> MachineCode | InterpretedCode:
        if not has_llvm() and lanes == 1:
            from .interpreted_code import InterpretedCode

            return InterpretedCode(self.form, self.n)
        if lanes == 1 and not isinstance(self.form, Program):
            from .loops.code import compile_loops

            return compile_loops(self.form)
        from .llvm.codegen import compile_program

        return compile_program(self.graph, self.n, lanes)

    def operations(self) -> dict[str, int]:
        """How many operations of each kind one evaluation takes, and their ``total``."""
        return self.form.operations()

    def interval(self, box: Any, t: Any = 0.0, p: Any = ()) -> tuple[np.ndarray, np.ndarray]:
        """Guaranteed bounds of all values on a box.

        Parameters
        ----------
        box
            ``(lo, hi)``, two vectors that bound y.
        t
            A time, or a pair (earliest, latest).
        p
            Parameter values, or a pair of vectors (lo, hi) that bound them.

        Returns
        -------
        lo, hi : array
            Bounds in the shape of the function's value.
        """
        from .calculus.interval import bounds

        if self.extra:
            raise TypeError("interval bounds are for functions of t, y and p only")
        return bounds(self.graph, self.n, self.k, box, t, p)

    def to_python(self) -> str:
        """Readable straight-line Python source."""
        arguments = ["t", "y", *(["p"] if self.k else [])]
        for name in self.graph.inputs[1 + self.n + self.k :]:
            if (base := name.split("[")[0]) not in arguments:
                arguments.append(base)
        return printing.to_python(self.graph, arguments=", ".join(arguments))

    def to_c(self, name: str = "f", title: str = "") -> str:
        """C source of one file without dependencies, to be compiled elsewhere.

        Parameters
        ----------
        name
            Name of the C function.
        title
            First line of the comment at the top of the file.

        Returns
        -------
        str
            A file that defines ``void f(double t, const double *y, const double *p, double *out)``;
            further vectors follow the parameters in p, matrices are stored row by row.

        Examples
        --------
        >>> from integrators import traced
        >>> print(traced(lambda t, y: [y[1], -y[0]], n=2).to_c("oscillator").split("*/")[1].strip())
        #include <math.h>
        <BLANKLINE>
        void oscillator(double t, const double *y, const double *p, double *out);
        <BLANKLINE>
        void oscillator(double t, const double *y, const double *p, double *out)
        {
            (void)t;
            (void)p;
            out[0] = y[1];
            out[1] = -y[0];
        }
        """
        from .c_source import to_c

        return to_c(self.graph, self.n, self.k, name, title)

    def to_latex(self, largest: int = 200) -> str:
        """LaTeX formulas of the components, for small graphs."""
        return printing.to_latex(self.graph, largest)


class Jacobian(Function):
    """A traced matrix with its pattern: ∂f/∂y or ∂f/∂p, as a function of (t, y, p)."""

    @functools.cached_property
    def sparsity(self) -> scipy.sparse.csr_array:
        """Where the matrix can be nonzero."""
        return derivative.sparsity(self.graph)


class Series(Function):
    """Taylor coefficients of the solution through (t, y): a function of (t, y, p).

    The value has shape (order + 1, n): row j is the j-th coefficient. Small systems become
    straight-line code, large ones code with loops over the order.
    """

    #: Straight-line programs up to this size are compiled; beyond, loops.
    LARGEST_UNROLLED = 12_000

    def __init__(self, rhs: Program, n: int, k: int, order: int) -> None:
        from .calculus.series import unrolled_size

        self.rhs = rhs
        self.order = order
        self.unrolled = unrolled_size(rhs, n, order) <= self.LARGEST_UNROLLED
        super().__init__(rhs, n, k)

    def __reduce__(self) -> Any:
        return Series, (self.rhs, self.n, self.k, self.order)

    @functools.cached_property
    def _program(self) -> Program:
        from .calculus.series import series_program

        return series_program(self.rhs, self.n, self.order)

    @property
    def graph(self) -> Program:
        """All coefficients as one straight-line program (large, where there are loops)."""
        return self._program

    @property
    def form(self) -> Program:
        """The same: loops over the order are made of the right-hand side."""
        return self.graph

    def _compile(self, lanes: int) -> MachineCode | InterpretedCode:
        if self.unrolled or not has_llvm():
            return super()._compile(lanes)
        from .calculus.series_loop import compile_series

        return compile_series(self.rhs, self.n, self.order, lanes)

    def _evaluate(self, t: Any, y: Any, *more: Any) -> np.ndarray:
        if self.unrolled:
            return super()._evaluate(t, y, *more)
        t, y = _scalar(t), _vector(y, self.n, "y")
        p = _vector(more[0] if more else (), self.k, "p")
        real = isinstance(t, float) and y.dtype == p.dtype == float
        code = self._code() if real else None
        if code is None:
            return super()._evaluate(t, y, *more)
        return code(t, y, p).reshape(self.order + 1, self.n)


def _scalar(t: Any) -> Any:
    """Return t as a float, a complex number or a symbol."""
    if isinstance(t, np.ndarray) and t.ndim == 0:
        t = t[()]
    if isinstance(t, Symbol):
        return t
    if isinstance(t, float | int | np.floating | np.integer | Rational):
        return float(t)
    if isinstance(t, complex | np.complexfloating):
        return complex(t)
    what = f"an array of shape {t.shape}" if isinstance(t, np.ndarray) else f"{t!r}"
    raise TypeError(f"expected a number for t, got {what}; call f(t, y)")


def _vector(x: Any, size: int, name: str) -> np.ndarray:
    """Return a vector of the right length: floats, complex numbers, or objects with symbols."""
    if isinstance(x, Symbol):
        x = [x]
    array = np.asarray(x)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.shape != (size,):
        missing = name == "p" and array.size == 0
        hint = "; call f(t, y, p), or solve with params=..." if missing else ""
        raise ValueError(f"expected {name} of shape ({size},), got shape {array.shape}{hint}")
    if array.dtype == object:
        if any(isinstance(e, Symbol) for e in array):
            return array
        if any(isinstance(e, str | bytes) for e in array):
            raise TypeError(f"expected numbers in {name}, got {x!r}")
    elif array.dtype.kind not in "fiubc":
        raise TypeError(f"expected numbers in {name}, got {x!r}")
    return np.ascontiguousarray(array, dtype=complex if array.dtype.kind == "c" else float)
