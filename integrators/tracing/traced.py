"""``traced(f)``: a right-hand side that is also its own graph.

:class:`Traced` behaves like the function f(t, y) or f(t, y, p) it was made from. What can be had
from the graph is offered by methods: machine code, operation counts, exact derivatives, Taylor
coefficients, interval bounds, readable source. Derived functions (a Jacobian, a series, ...) are
of the same kind, :class:`~.function.Function`, with machine code of the same signature.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .calculus import derivative
from .calculus.dependence import dependence
from .errors import GraphTooLargeError, TracingError
from .function import Function, Jacobian, Series
from .graph import OPERATIONS, Graph, Program
from .symbols.symbol import is_block
from .trace import input_array, output_nodes, run, twice

if TYPE_CHECKING:
    import scipy.sparse

    from .loops.program import LoopProgram

__all__ = ["Traced", "traced"]

log = logging.getLogger(__name__)

TIME, STATE = 0, 1  # regions of loops

LARGEST_BY_NUMBERS = 1000  # states up to which single numbers are traced unless n is given
LARGEST_STRAIGHT = 100  # states up to which the code is one straight line
SHORTEST = 8  # turns of a loop, on average
LONG = 2000  # nodes of a straight line that is looked at for loops


class Traced(Function):
    """A right-hand side f(t, y) or f(t, y, p), traced; made by :func:`traced`.

    Calling it evaluates f (by machine code where possible) and returns an array of n floats.
    Called with symbols it becomes part of another traced function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        n: int | None = None,
        params: Any = None,
        time: bool = True,
        outputs: int | None = None,
        pure: bool = False,
    ) -> None:
        if not callable(function):
            raise TypeError(f"expected a function f(t, y), got {type(function).__name__}")
        self.function = function
        self.name = getattr(function, "__name__", "f")
        self._time = time
        self._pure = pure  # made of traces alone: nothing can hide in it
        self._outputs = None if outputs is None else _count(outputs, "outputs")
        self._takes_p = _takes_parameters(function, time)
        self._size = None if n is None else _count(n, "n")
        self._parameters: int | None = None
        if params is not None:
            self._parameters = (
                _count(params, "params", least=0) if np.ndim(params) == 0 else len(params)
            )
            if self._parameters and not self._takes_p:
                raise ValueError(
                    f"{self.name} takes no parameters, but params={params!r} was given; write it "
                    f"as f({'t, ' if time else ''}y, p)"
                )
        elif not self._takes_p:
            self._parameters = 0
        self._derived: dict[Any, Any] = {}
        self._tracing = threading.RLock()
        self.extra = ()
        self._codes = {}
        self._lent: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._broken = False
        self._entry = None
        self._program: Program | None = None
        self._loops: LoopProgram | None = None
        functools.update_wrapper(self, function, updated=())
        if self._size is not None and self._parameters is not None:
            self._trace(self._size, self._parameters)

    @property
    def n(self) -> int:
        """Number of states."""
        if self._size is None:
            raise TracingError(
                f"the number of states of {self.name} is not known yet; give traced(f, n=...) or "
                "call it once"
            )
        return self._size

    @property
    def m(self) -> int:
        """Number of values returned: n for a right-hand side."""
        return self.n if self._outputs is None else self._outputs

    @property
    def k(self) -> int:
        """Number of parameters."""
        if self._parameters is None:
            raise TracingError(
                f"the number of parameters of {self.name} is not known yet; give "
                "traced(f, n=..., params=...) or call it once"
            )
        return self._parameters

    @property
    def graph(self) -> Program:
        """The simplified straight-line program of f."""
        if self._program is None:
            self._program = self.form if isinstance(self.form, Program) else self.form.expanded()
        return self._program

    @property
    def form(self) -> Program | LoopProgram:
        """What machine code is made of: a straight line, or loops."""
        if not self.is_traced:
            self._trace(self.n, self.k)
        form = self._program if self._loops is None else self._loops
        assert form is not None
        return form

    @property
    def is_traced(self) -> bool:
        """Whether the function has been traced already."""
        return self._program is not None or self._loops is not None

    def is_better_plain(self, n: int, k: int) -> bool:
        """Whether the function itself serves n states better, and nothing has been traced yet.

        That is so for many states, if the function cannot be traced by arrays: a trace by single
        numbers takes long.
        """
        if self.is_traced or n <= LARGEST_BY_NUMBERS:
            return False
        self._find_loops(n, k)
        return self._loops is None

    def _find_loops(self, n: int, k: int) -> None:
        """Trace by arrays, if that is possible."""
        from .loops.trace import trace_loops

        with self._tracing:
            if self._loops is None:
                try:
                    m = n if self._outputs is None else self._outputs
                    loops = trace_loops(self._call, (n, k), m)
                except Exception as error:  # if it is the user's, symbols will say so better
                    log.info("%s is not traced by arrays: %s", self.name, error)
                else:
                    self._size, self._parameters, self._loops = n, k, loops

    def _trace(self, n: int, k: int) -> None:
        """Trace for n states and k parameters; they are kept if it succeeds."""
        if n > LARGEST_STRAIGHT:
            self._find_loops(n, k)
            if self._loops is not None:
                return
        m = n if self._outputs is None else self._outputs
        names = ("t", *(f"y[{i}]" for i in range(n)), *(f"p[{i}]" for i in range(k)))

        def build() -> Program:
            g = Graph()
            t = input_array(g, 0, ())
            arguments = [t] if self._time else []
            arguments.append(input_array(g, 1, (n,)))
            if self._takes_p and (k or self._needs_p):
                arguments.append(input_array(g, 1 + n, (k,)))
            nodes, shape = output_nodes(g, run(self.function, arguments), self.name)
            if shape != (m,) and not (m == 1 and shape in ((), (1, 1))):
                remedy = ""
                if self._outputs is None and len(shape) < 2:
                    remedy = (
                        "; for what is no right-hand side, such as an event function, say how many "
                        f"values it returns: traced(f, n={n}, outputs={shape[0] if shape else 1})"
                    )
                raise ValueError(
                    f"{self.name} returned shape {shape} for {n} states; expected ({m},){remedy}"
                )
            return Program.from_graph(g, nodes, names)

        with self._tracing:
            if self._program is None:
                program = build() if self._pure else twice(build, self.name)
                if n > LARGEST_STRAIGHT and len(program) > LONG:
                    self._loops = _loops(program, n, k)
                self._size, self._parameters, self._program = n, k, program

    @property
    def _needs_p(self) -> bool:
        return _takes_parameters(self.function, self._time, required=True)

    def _evaluate(self, t: Any, y: Any, *more: Any) -> np.ndarray:
        if is_block(t) or is_block(y):  # part of a function that is traced by arrays
            return self._call(t, y, *more)
        if not self.is_traced:
            n, k = self._size, self._parameters
            if k is None:
                k = int(np.size(more[0])) if more else 0
            self._trace(max(1, int(np.size(y))) if n is None else n, k)
        return super()._evaluate(t, y, *more)

    def _call(self, t: Any, y: Any, p: Any = ()) -> Any:
        """Call the function itself."""
        arguments = [t, y] if self._time else [y]
        if self._takes_p and (np.size(p) or self._needs_p):
            arguments.append(p)
        return self.function(*arguments)

    def _interpret(self, t: float, *arrays: np.ndarray) -> np.ndarray:
        return np.asarray(self._call(t, *arrays), dtype=float).reshape(self.m)

    def _evaluate_complex(self, t: complex, *arrays: np.ndarray) -> np.ndarray:
        return np.asarray(self._call(t, *arrays), dtype=complex).reshape(self.m)

    def __reduce__(self) -> Any:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", "")
        if getattr(sys.modules.get(module or ""), name, None) is self:
            return name  # a decorated function of a module: found there by its name
        return Traced, (
            self.function,
            self._size,
            self._parameters,
            self._time,
            self._outputs,
        )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise TracingError(
            f"{self.name} is a method; trace the bound method, traced(object.{self.name}), for "
            "its result depends on the object"
        )

    def __repr__(self) -> str:
        size = "?" if self._size is None else self._size
        return f"<traced {self.name}, n={size}, k={self._parameters}>"

    def with_parameters(self, count: int) -> Traced:
        """Return the same function as one of parameters as well, if it takes none."""
        own = self.function
        if not count or self._takes_p:
            return self

        def ignoring(t: Any, y: Any, p: Any) -> Any:
            return own(t, y)

        ignoring.__name__ = self.name
        return self._derive(
            ("ignoring", count), lambda: Traced(ignoring, self._size, count, True, self._outputs)
        )

    def code_alone(self, lanes: int = 1) -> Any:
        """Machine code that lives as long as its users; the graph is traced again if need be."""
        code = self._lent.get(lanes)
        if code is None:
            code = self._lent[lanes] = self._compile(lanes)
            self._program = self._loops = None
        return code

    def _derive(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    @property
    def _states(self) -> range:
        return range(1, 1 + self.n)

    def jacobian(self) -> Jacobian:
        """Return the exact ∂f/∂y, a function of (t, y, p) with value (n, n) and ``sparsity``.

        Examples
        --------
        >>> J = traced(lambda t, y: [y[1], -np.sin(y[0])], n=2).jacobian()
        >>> J(0.0, [0.0, 0.0])
        array([[ 0.,  1.],
               [-1.,  0.]])
        >>> J.sparsity.nnz
        2
        """
        return self._derive(
            "jacobian",
            lambda: Jacobian(derivative.jacobian(self.graph, self._states), self.n, self.k),
        )

    def parameter_jacobian(self) -> Jacobian:
        """Return the exact ∂f/∂p, a function of (t, y, p) with value (n, k)."""
        columns = range(1 + self.n, 1 + self.n + self.k)
        return self._derive(
            "parameters",
            lambda: Jacobian(derivative.jacobian(self.graph, columns), self.n, self.k),
        )

    def time_derivative(self) -> Function:
        """Return the exact ∂f/∂t at fixed y, a function of (t, y, p) with value (n,)."""

        def make() -> Function:
            if self._loops is not None:
                return Function(self._loops.along(TIME, None), self.n, self.k)
            column = derivative.jacobian(self.graph, [0])
            program = Program(column.ops, column.args, column.inputs, column.outputs, (self.m,))
            return Function(program, self.n, self.k)

        return self._derive("time", make)

    def jvp(self) -> Function:
        """(∂f/∂y)·v: a function of (t, y, v, p)."""

        def make() -> Function:
            if isinstance(self.form, Program):
                product: Any = derivative.jvp(self.form, self._states)
            else:
                product = self.form.along(STATE, "v")
            return Function(product, self.n, self.k, (self.n,))

        return self._derive("jvp", make)

    def dependence(self, on: str = "y") -> scipy.sparse.csc_matrix:
        """Where ∂f/∂y, or with ``on="t"`` ∂f/∂t, may be different from zero.

        Examples
        --------
        >>> traced(lambda t, y: [y[1], -y[0] + t], n=2).dependence().toarray().astype(int)
        array([[0, 1],
               [1, 0]])
        """
        first, count = (1, self.n) if on == "y" else (0, 1)
        if isinstance(self.form, Program):
            return dependence(self.form, first, count)
        return self.form.dependence(first)

    def vjp(self) -> Function:
        """wᵀ·(∂f/∂y): a function of (t, y, w, p)."""
        return self._derive(
            "vjp",
            lambda: Function(derivative.vjp(self.graph, self._states), self.n, self.k, (self.m,)),
        )

    def hvp(self) -> Function:
        """(Σ w_i ∇²f_i)·v: a function of (t, y, w, v, p)."""
        return self._derive(
            "hvp",
            lambda: Function(
                derivative.hvp(self.graph, self._states), self.n, self.k, (self.m, self.n)
            ),
        )

    def series(self, order: int) -> Series:
        """Taylor coefficients 0 .. order of the solution through (t, y).

        Examples
        --------
        >>> traced(lambda t, y: y, n=1).series(4)(0.0, [24.0]).ravel()
        array([24., 24., 12.,  4.,  1.])
        """
        order = _count(order, "order")
        if self.m != self.n:
            raise ValueError(
                f"{self.name} returns {self.m} values for {self.n} states; only a right-hand side "
                "y' = f(t, y) has a series"
            )
        return self._derive(("series", order), lambda: Series(self.graph, self.n, self.k, order))


def _loops(program: Program, n: int, k: int) -> LoopProgram | None:
    """The loops of a long straight line, if there are some that are worth their name."""
    from .loops.trace import loops_of

    if not OPERATIONS.issuperset(set(program.ops) - {"const", "input"}):
        return None  # calls of other code
    try:
        loops = loops_of(program, n, k)
    except GraphTooLargeError:
        return None
    return loops if SHORTEST * len(loops.families) <= loops.size + loops.work else None


def _count(x: Any, name: str, least: int = 1) -> int:
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {x!r}")
    return int(x)


def traced_rhs(f: Callable[..., Any], n: int, params: int) -> Traced:
    """Trace f of a problem, whose parameters may be for its events alone: f ignores them then."""
    takes = isinstance(f, Traced) or _takes_parameters(f, True)
    return traced(f, n=n, params=params if takes else 0).with_parameters(params)


def _takes_parameters(function: Callable[..., Any], time: bool, required: bool = False) -> bool:
    """Whether the function has an argument p after t and y."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [
        a
        for a in arguments
        if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)
        and not (required and a.default is not a.empty)
    ]
    expected = 2 if time else 1
    without_default = [a for a in positional if a.default is a.empty]
    if len(without_default) > expected + 1:
        shape = "f(t, y) or f(t, y, p)" if time else "f(y) or f(y, p)"
        raise TypeError(
            f"expected {shape}, got a function of {len(without_default)} arguments; collect the "
            "parameters in one vector p"
        )
    return len(positional) > expected


@overload
def traced(
    f: Callable[..., Any],
    *,
    n: int | None = None,
    params: Any = None,
    time: bool = True,
    outputs: int | None = None,
) -> Traced: ...


@overload
def traced(
    f: None = None,
    *,
    n: int | None = None,
    params: Any = None,
    time: bool = True,
    outputs: int | None = None,
) -> Callable[[Callable[..., Any]], Traced]: ...


def traced(
    f: Callable[..., Any] | None = None,
    *,
    n: int | None = None,
    params: Any = None,
    time: bool = True,
    outputs: int | None = None,
) -> Traced | Callable[[Callable[..., Any]], Traced]:
    """Trace a right-hand side: run it once on symbols and keep the graph.

    Parameters
    ----------
    f
        ``f(t, y)`` or ``f(t, y, p)``, written with NumPy; returns n numbers (a list, tuple or
        array; a scalar if n = 1). Without it, ``traced(...)`` is a decorator.
    n
        Number of states; found at the first call if not given.
    params
        Number of parameters, or example values; found at the first call if not given.
    time
        False for functions ``f(y)`` or ``f(y, p)`` without time.
    outputs
        Number of values returned, if it is not n: for event functions and invariants.

    Returns
    -------
    Traced
        Behaves like f, and has ``jacobian()``, ``series(order)``, ``machine_code(lanes)``,
        ``operations()`` and more.

    Raises
    ------
    TracingError
        Where the function cannot be traced: it names the line and the remedy.

    Examples
    --------
    >>> @traced(n=2)
    ... def pendulum(t, y):
    ...     return [y[1], -9.81 * np.sin(y[0])]
    >>> pendulum(0.0, [0.0, 1.5])
    array([ 1.5, -0. ])
    >>> pendulum.operations()
    {'mul': 1, 'sin': 1, 'total': 2}
    >>> print(pendulum.to_python())
    def f(t, y):
        return np.array([y[1], -9.81 * np.sin(y[0])])
    """
    if f is None:
        return lambda function: Traced(function, n, params, time, outputs)
    if isinstance(f, Traced):
        return f
    return Traced(f, n, params, time, outputs)
