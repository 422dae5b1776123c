"""``traced(f)``: a right-hand side that is also its own graph.

:class:`Traced` behaves like the function f(t, y) or f(t, y, p) it was made from. What can be had
from the graph is offered by methods: machine code, operation counts, exact derivatives, Taylor
coefficients, interval bounds, readable source. Derived functions (a Jacobian, a series, ...) are
of the same kind, :class:`~.function.Function`, with machine code of the same signature.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from .calculus import derivative
from .errors import TracingError
from .function import Function, Jacobian, Series
from .graph import Graph, Program
from .trace import input_array, output_nodes, run, twice

__all__ = ["Traced", "traced"]

LARGEST_BY_NUMBERS = 1000  # states up to which single numbers are traced unless n is given


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
            self._trace(self.n, self.k)
        assert self._program is not None
        return self._program

    def is_better_plain(self, n: int) -> bool:
        """Whether the function itself serves n states better, and nothing has been traced yet.

        A trace is one of single numbers: for thousands of them it takes long, and what comes out
        is no faster than NumPy's arrays.
        """
        return self._program is None and n > LARGEST_BY_NUMBERS

    def _trace(self, n: int, k: int) -> None:
        """Trace for n states and k parameters; they are kept if it succeeds."""
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
                self._size, self._parameters, self._program = n, k, program

    @property
    def _needs_p(self) -> bool:
        return _takes_parameters(self.function, self._time, required=True)

    def _evaluate(self, t: Any, y: Any, *more: Any) -> np.ndarray:
        if self._program is None:
            n, k = self._size, self._parameters
            if k is None:
                k = int(np.size(more[0])) if more else 0
            self._trace(max(1, int(np.size(y))) if n is None else n, k)
        return super()._evaluate(t, y, *more)

    def _call(self, t: Any, y: np.ndarray, p: np.ndarray) -> Any:
        """Call the function itself."""
        arguments: list[Any] = [t] if self._time else []
        arguments.append(y)
        if self._takes_p and (self.k or self._needs_p):
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

    def code_alone(self, lanes: int = 1) -> Any:
        """Machine code that lives as long as its users; the graph is traced again if need be."""
        code = self._lent.get(lanes)
        if code is None:
            code = self._lent[lanes] = self._compile(lanes)
            self._program = None
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
            column = derivative.jacobian(self.graph, [0])
            program = Program(column.ops, column.args, column.inputs, column.outputs, (self.m,))
            return Function(program, self.n, self.k)

        return self._derive("time", make)

    def jvp(self) -> Function:
        """(∂f/∂y)·v: a function of (t, y, v, p)."""
        return self._derive(
            "jvp",
            lambda: Function(derivative.jvp(self.graph, self._states), self.n, self.k, (self.n,)),
        )

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


def _count(x: Any, name: str, least: int = 1) -> int:
    if isinstance(x, bool) or not isinstance(x, int | np.integer) or x < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {x!r}")
    return int(x)


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
