"""Symbols: stand-ins for floats that record what is done to them.

A :class:`Symbol` is a node of a :class:`~.graph.Graph` that behaves like a float under Python's
operators and NumPy's scalar functions; a comparison gives a :class:`Condition`. Neither has a
value, so whatever needs one (``if``, ``float()``, ``range()``, ``math.sin``) raises a
:class:`~.errors.TracingError` that names the user's line.

Python's numbers and NumPy's differ in one thing that a formula can show: ``True + True`` is 2,
and True for ``np.bool_``. Elements of arrays are NumPy's, so a :class:`Condition` is NumPy's; a
scalar argument such as t is a :class:`PythonFloat`, whose comparisons give a :class:`PythonBool`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Rational
from typing import Any, NoReturn

import numpy as np

from ..errors import TracingError, too_large, tracing_error, user_location
from ..graph import CONDITIONS, FLOATS, Graph
from ..simplify import RULES, add, div, mul, neg, power, sub

__all__ = [
    "Condition",
    "PythonBool",
    "PythonFloat",
    "Symbol",
    "apply",
    "as_node",
    "as_number",
    "is_block",
    "symbol",
]

#: A trace stops when it has made so many nodes: more than twice as many as become machine code,
#: because some of them may turn out not to be needed.
LARGEST_TRACE = 500_000

_NUMBERS = (float, int, np.floating, np.integer, np.bool_)

_NUMPY_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "pow": "power",
    "fabs": "abs",
}

# How NumPy's functions act on symbols: entered by ``elementwise`` and ``arrays``, which are
# written with symbols.
NUMPY_RULES: dict[str, Callable[..., Any]] = {}

# The same for arrays that are traced as a whole: entered by ``tracing.loops.blocks``.
BLOCK_RULES: dict[str, Any] = {}


class Symbol:
    """A traced number: node ``index`` of ``graph``."""

    __slots__ = ("graph", "index")
    __array_priority__ = 1000.0

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index
        if len(graph.ops) > LARGEST_TRACE:
            raise too_large(LARGEST_TRACE)

    # --- arithmetic -------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        g = self.graph
        j = other.index if type(other) is Symbol and other.graph is g else _operand(g, other)
        return NotImplemented if j is None else Symbol(g, add(g, self.index, j))

    def __radd__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, add(g, j, self.index))

    def __sub__(self, other: Any) -> Any:
        g = self.graph
        j = other.index if type(other) is Symbol and other.graph is g else _operand(g, other)
        return NotImplemented if j is None else Symbol(g, sub(g, self.index, j))

    def __rsub__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, sub(g, j, self.index))

    def __mul__(self, other: Any) -> Any:
        g = self.graph
        j = other.index if type(other) is Symbol and other.graph is g else _operand(g, other)
        return NotImplemented if j is None else Symbol(g, mul(g, self.index, j))

    def __rmul__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, mul(g, j, self.index))

    def __truediv__(self, other: Any) -> Any:
        g = self.graph
        j = other.index if type(other) is Symbol and other.graph is g else _operand(g, other)
        return NotImplemented if j is None else Symbol(g, div(g, self.index, j))

    def __rtruediv__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, div(g, j, self.index))

    def __pow__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, power(g, self.index, j))

    def __rpow__(self, other: Any) -> Any:
        g = self.graph
        j = _operand(g, other)
        return NotImplemented if j is None else Symbol(g, power(g, j, self.index))

    def _divided(self, other: Any, swap: bool = False) -> Any:
        if _operand(self.graph, other) is None:
            return NotImplemented, NotImplemented
        return NUMPY_RULES["divmod"](*((other, self) if swap else (self, other)))

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(other, swap=True)[0]

    def __mod__(self, other: Any) -> Any:
        return self._divided(other)[1]

    def __rmod__(self, other: Any) -> Any:
        return self._divided(other, swap=True)[1]

    def __divmod__(self, other: Any) -> Any:
        both = self._divided(other)
        return NotImplemented if both[0] is NotImplemented else both

    def __rdivmod__(self, other: Any) -> Any:
        both = self._divided(other, swap=True)
        return NotImplemented if both[0] is NotImplemented else both

    def __neg__(self) -> Symbol:
        return Symbol(self.graph, neg(self.graph, self.index))

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    # --- comparisons ------------------------------------------------------------------------

    def _compare(self, op: str, other: Any, swap: bool = False) -> Any:
        if _operand(self.graph, other) is None:
            return NotImplemented
        return apply(op, other, self) if swap else apply(op, self, other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("lt", other, swap=True)

    def __ge__(self, other: Any) -> Any:
        return self._compare("le", other, swap=True)

    def __eq__(self, other: Any) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("ne", other)

    def __hash__(self) -> int:
        return hash((id(self.graph), self.index))

    # --- what needs a value -----------------------------------------------------------------

    def __bool__(self) -> bool:
        value = self.graph.values[self.index]
        if value is not None:
            return bool(value)
        if self.graph.decisions is not None:
            return bool(self.graph.decisions.truth(self.index))
        raise tracing_error(
            "a traced value has no truth value: it was used in `if`, `while`, `and`, `or`, "
            "`not`, min(), max() or a comparison of several values",
            "choose between two values with integrators.where(condition, a, b), combine "
            "conditions with & | ~, use np.minimum and np.maximum, or leave the function "
            "untraced",
        )

    def __float__(self) -> float:
        value = self.graph.values[self.index]
        if value is not None:
            return value
        location = user_location()
        called = re.search(r"\bmath\.(\w+)", location.rpartition(": ")[2])
        if called:
            name = _NUMPY_NAMES.get(called[1], called[1])
            remedy = f"use np.{name} instead of math.{called[1]}"
        else:
            remedy = (
                "collect results with np.array([...]) without dtype=float, or in np.zeros_like(y) "
                "or np.empty(n, dtype=object); use NumPy's functions instead of those of math; "
                "or leave the function untraced"
            )
        raise TracingError(
            f"{location}\na traced value cannot become a float: it was passed to float() or "
            f"math, or stored in an array of floats. Remedy: {remedy}."
        )

    def __round__(self, digits: int | None = None) -> int:
        if self.graph.decisions is not None and digits is None:
            return int(self.graph.decisions.whole(self))
        self._whole()

    def _whole(self, *_: Any) -> NoReturn:
        raise tracing_error(
            "a traced value cannot become an integer: it was used in int(), round(), range() or "
            "as an index",
            "take sizes and indices from constants, or leave the function untraced",
        )

    __int__ = __index__ = __trunc__ = _whole

    def __complex__(self) -> complex:
        raise tracing_error(
            "a traced value cannot become a complex number",
            "write real and imaginary parts as separate components",
        )

    # --- NumPy ------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NUMPY_RULES["ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return NUMPY_RULES["function"](func, types, args, kwargs)

    @property
    def real(self) -> Symbol:
        """The value itself: traced numbers are real."""
        return self

    @property
    def imag(self) -> float:
        """Zero."""
        return 0.0

    def conjugate(self) -> Symbol:
        """Return the value itself: traced numbers are real."""
        return self

    def __repr__(self) -> str:
        value = self.graph.values[self.index]
        if value is not None:
            return f"<symbol {value!r}>"
        op, args = self.graph.ops[self.index], self.graph.args[self.index]
        return f"<symbol {self.index}: {op}{args}>"


#: What NumPy's arithmetic means between truth values.
_OF_TRUTHS = {"add": "or", "mul": "and", "max": "or", "min": "and"}


def _is_truth(x: Any) -> bool:
    return isinstance(x, Condition | bool | np.bool_)


class Condition(Symbol):
    """A traced truth value, NumPy's: ``& | ~`` combine it, as do ``+`` (or) and ``*`` (and).

    Beside a number it counts 0 or 1.
    """

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return apply("and", self, other)

    def __or__(self, other: Any) -> Any:
        return apply("or", self, other)

    def __xor__(self, other: Any) -> Any:
        return apply("ne", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return apply("not", self)


class PythonFloat(Symbol):
    """A traced number that is Python's float, as t is, until it meets one of NumPy's."""

    __slots__ = ()


class PythonBool(Condition):
    """A comparison of Python's floats: sums of these count."""

    __slots__ = ()


def _is_python(x: Any) -> bool:
    return isinstance(x, PythonFloat | PythonBool) or (
        isinstance(x, float | int) and not isinstance(x, np.generic)
    )


def _numeric(name: str) -> Callable[..., Any]:
    """Return the method of numbers for truth values, which count 0 or 1."""
    original = getattr(Symbol, name)

    def method(self: Condition, *others: Any) -> Any:
        return original(Symbol(self.graph, as_number(self.graph, self.index)), *others)

    return method


def _logical(op: str, numeric: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that is logical between truth values and numeric otherwise."""

    def method(self: Condition, other: Any) -> Any:
        return apply(op, self, other) if _is_truth(other) else numeric(self, other)

    return method


def _pythonic(
    among_python: Callable[..., Any], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the method whose result is Python's if all operands are."""

    def method(self: Symbol, *others: Any) -> Any:
        if not all(_is_python(x) for x in others):
            return otherwise(self, *others)
        result = among_python(self, *others)
        if not isinstance(result, Symbol):
            return result
        kind = PythonBool if isinstance(result, Condition) else PythonFloat
        return kind(result.graph, result.index)

    return method


def _install_operators() -> None:
    both = ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv")
    one = ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne")
    for plain in (*both, *(f"r{name}" for name in both), *one):
        name = f"__{plain}__"
        numeric = _numeric(name)
        op = _OF_TRUTHS.get(plain.removeprefix("r"))
        of_truths = numeric if op is None else _logical(op, numeric)
        setattr(Condition, name, of_truths)
        setattr(PythonBool, name, _pythonic(numeric, of_truths))
        setattr(PythonFloat, name, _pythonic(getattr(Symbol, name), getattr(Symbol, name)))
    for plain in ("and", "or", "xor", "rand", "ror", "rxor"):
        name = f"__{plain}__"
        combine = getattr(Condition, name)
        setattr(PythonBool, name, _pythonic(combine, combine))
    for kind in (Condition, PythonBool):
        for name in ("__divmod__", "__rdivmod__"):
            setattr(kind, name, _numeric(name))


_install_operators()


def is_block(x: Any) -> bool:
    """Whether x is an array that is traced as a whole."""
    return isinstance(x, Symbol) and type(x.graph) is not Graph


def symbol(graph: Graph, index: int) -> Symbol:
    """Return the symbol of a node: a :class:`Condition` where the node is one."""
    return (Condition if graph.ops[index] in CONDITIONS else Symbol)(graph, index)


def as_number(g: Graph, i: int) -> int:
    """Return a condition as 0 or 1; other nodes unchanged."""
    if g.ops[i] in CONDITIONS:
        return g.node("select", i, g.const(1.0), g.const(0.0))
    return i


def _as_condition(g: Graph, i: int) -> int:
    """Return a number as the condition ≠ 0; conditions and constants unchanged."""
    if g.ops[i] in CONDITIONS or g.values[i] is not None:
        return i
    return RULES["ne"](g, i, g.const(0.0))


def as_node(g: Graph, x: Any) -> int:
    """Return the node of a number or a symbol."""
    node = _operand(g, x)
    if node is None:
        raise TracingError(f"expected a number or a traced value, got {x!r}")
    return node


def _operand(g: Graph, x: Any) -> int | None:
    """Return the node of a number or a symbol; None for what is neither."""
    if isinstance(x, Symbol):
        if x.graph is not g:
            raise tracing_error(
                "a traced value of another trace was used: the function keeps values between calls",
                "keep no state between calls, or leave the function untraced",
            )
        return as_number(g, x.index)
    if isinstance(x, _NUMBERS):
        return g.const(float(x))
    if isinstance(x, Rational):
        return g.const(float(x))
    if isinstance(x, np.ndarray):
        return _operand(g, x[()]) if x.ndim == 0 else None
    if isinstance(x, complex | np.complexfloating):
        raise tracing_error(
            "complex numbers cannot be traced",
            "write real and imaginary parts as separate components",
        )
    return None


def apply(op: str, *xs: Any) -> Any:
    """Return an operation on elements: a symbol if any is one, otherwise a float.

    Examples
    --------
    >>> g = Graph()
    >>> apply("mul", Symbol(g, g.input(0)), 0.0)
    <symbol 0.0>
    >>> float(apply("sin", 0.0))
    0.0
    """
    for x in xs:
        if isinstance(x, Symbol):
            g = x.graph
            break
    else:
        return FLOATS[op](*xs)
    if type(g) is not Graph:
        return BLOCK_RULES["apply"](op, *xs)
    if op in _OF_TRUTHS and all(_is_truth(x) for x in xs):
        op = _OF_TRUTHS[op]
    elif op == "select" and _is_truth(xs[1]) and _is_truth(xs[2]):
        chosen, other = apply("and", xs[0], xs[1]), apply("and", apply("not", xs[0]), xs[2])
        return apply("or", chosen, other)
    nodes = []
    for k, x in enumerate(xs):
        i = _operand(g, x) if not isinstance(x, Condition) or x.graph is not g else x.index
        if i is None:
            raise tracing_error(
                f"{op} of a traced value and {type(x).__name__} is unknown",
                "use floats and traced values only, or leave the function untraced",
            )
        if op in ("and", "or", "not") or (op == "select" and k == 0):
            i = _as_condition(g, i)
        else:
            i = as_number(g, i)
        nodes.append(i)
    return (Condition if op in CONDITIONS else Symbol)(g, RULES[op](g, *nodes))
