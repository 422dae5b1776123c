"""Symbols: stand-ins for floats that record what is done to them.

A :class:`Symbol` is a node of a :class:`~.graph.Graph` that behaves like a float under Python's
operators and NumPy's scalar functions; a comparison gives a :class:`Condition`. Neither has a
value, so whatever needs one (``if``, ``float()``, ``range()``, ``math.sin``) raises a
:class:`~.errors.TracingError` that names the user's line.

:data:`ELEMENTWISE` maps each NumPy ufunc to a function of single elements, symbols or floats
mixed. Ufuncs without an own node are compositions: ``hypot(a, b) = √(a² + b²)`` (overflows
beyond 1e154, unlike NumPy's), ``exp2(x) = 2^x``, ``log2(x) = log(x)/log(2)`` and so on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Rational
from typing import Any, NoReturn

import numpy as np
from numpy._core import umath

from .errors import TracingError, tracing_error, user_location
from .graph import CONDITIONS, FLOATS, Graph
from .simplify import RULES, add, div, mul, neg, power, sub

__all__ = ["ELEMENTWISE", "Condition", "Symbol", "apply", "as_number", "symbol"]

_clip_ufunc: np.ufunc = vars(umath)["clip"]  # what ndarray.clip calls
_NUMBERS = (float, int, np.floating, np.integer, np.bool_)


class Symbol:
    """A traced number: node ``index`` of ``graph``."""

    __slots__ = ("graph", "index")
    __array_priority__ = 1000.0

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

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

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if _operand(self.graph, other) is None else _remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        return NotImplemented if _operand(self.graph, other) is None else _remainder(other, self)

    def __floordiv__(self, other: Any) -> Any:
        quotient = self.__truediv__(other)
        return quotient if quotient is NotImplemented else apply("floor", quotient)

    def __rfloordiv__(self, other: Any) -> Any:
        quotient = self.__rtruediv__(other)
        return quotient if quotient is NotImplemented else apply("floor", quotient)

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

    def _whole(self, *_: Any) -> NoReturn:
        raise tracing_error(
            "a traced value cannot become an integer: it was used in int(), round(), range() or "
            "as an index",
            "take sizes and indices from constants, or leave the function untraced",
        )

    __int__ = __index__ = __trunc__ = __round__ = _whole

    def __complex__(self) -> complex:
        raise tracing_error(
            "a traced value cannot become a complex number",
            "write real and imaginary parts as separate components",
        )

    # --- NumPy ------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .arrays import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        from .arrays import apply_function

        return apply_function(func, types, args, kwargs)

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


class Condition(Symbol):
    """A traced truth value; ``& | ~`` combine it, and in arithmetic it counts 0 or 1."""

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


def _numeric(name: str) -> Callable[..., Any]:
    original = getattr(Symbol, name)

    def method(self: Condition, *args: Any) -> Any:
        return original(Symbol(self.graph, as_number(self.graph, self.index)), *args)

    method.__name__ = name
    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "mod"):
    setattr(Condition, f"__{_name}__", _numeric(f"__{_name}__"))
    setattr(Condition, f"__r{_name}__", _numeric(f"__r{_name}__"))
for _name in ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Condition, f"__{_name}__", _numeric(f"__{_name}__"))
Condition.__hash__ = Symbol.__hash__  # type: ignore[method-assign]


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
    return symbol(g, RULES[op](g, *nodes))


# --- NumPy's ufuncs, element by element ---------------------------------------------------------


def _unary(op: str) -> Callable[[Any], Any]:
    return lambda x: apply(op, x)


def _binary(op: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: apply(op, x, y)


def _remainder(x: Any, y: Any) -> Any:
    """Return x − ⌊x/y⌋·y, the sign of y; a few ulp from NumPy's, which is exact."""
    return x - apply("floor", x / y) * y


def _heaviside(x: Any, half: Any) -> Any:
    return apply(
        "select", x < 0, 0.0, apply("select", x == 0, half, apply("select", x > 0, 1.0, x))
    )


def _copysign(x: Any, y: Any) -> Any:
    return apply("select", y < 0, -abs(x), abs(x))


def _fmin(op: str) -> Callable[[Any, Any], Any]:
    def choose(x: Any, y: Any) -> Any:
        inner = apply("select", apply("ne", y, y), x, apply(op, x, y))
        return apply("select", apply("ne", x, x), y, inner)

    return choose


def _same(x: Any) -> Any:
    return x


#: For each NumPy ufunc, the same function of single elements.
ELEMENTWISE: dict[np.ufunc, Callable[..., Any]] = {
    **{
        ufunc: _unary(op)
        for op, ufunc in FLOATS.items()
        if isinstance(ufunc, np.ufunc) and ufunc.nin == 1
    },
    **{
        ufunc: _binary(op)
        for op, ufunc in FLOATS.items()
        if isinstance(ufunc, np.ufunc) and ufunc.nin == 2
    },
    np.greater: lambda x, y: apply("lt", y, x),
    np.greater_equal: lambda x, y: apply("le", y, x),
    np.bitwise_and: _binary("and"),
    np.bitwise_or: _binary("or"),
    np.invert: _unary("not"),
    np.logical_xor: lambda x, y: apply("ne", apply("ne", x, 0.0) * 1.0, apply("ne", y, 0.0) * 1.0),
    np.positive: _same,
    np.conjugate: _same,
    np.fabs: _unary("abs"),
    np.square: lambda x: x * x,
    np.reciprocal: lambda x: 1.0 / x,
    np.float_power: _binary("pow"),
    np.hypot: lambda x, y: apply("sqrt", x * x + y * y),
    np.exp2: lambda x: apply("pow", 2.0, x),
    np.log2: lambda x: apply("log", x) / math.log(2.0),
    np.log10: lambda x: apply("log", x) / math.log(10.0),
    np.cbrt: lambda x: apply("sign", x) * apply("pow", apply("abs", x), 1.0 / 3.0),
    np.deg2rad: lambda x: x * (math.pi / 180.0),
    np.radians: lambda x: x * (math.pi / 180.0),
    np.rad2deg: lambda x: x * (180.0 / math.pi),
    np.degrees: lambda x: x * (180.0 / math.pi),
    np.ceil: lambda x: -apply("floor", -x),
    np.trunc: lambda x: apply("select", x < 0, -apply("floor", -x), apply("floor", x)),
    np.floor_divide: lambda x, y: apply("floor", x / y),
    np.remainder: _remainder,
    np.heaviside: _heaviside,
    np.copysign: _copysign,
    np.fmin: _fmin("min"),
    np.fmax: _fmin("max"),
    np.isnan: lambda x: apply("ne", x, x),
    np.isfinite: lambda x: apply("lt", apply("abs", x), math.inf),
    np.isinf: lambda x: apply("eq", apply("abs", x), math.inf),
    _clip_ufunc: lambda x, low, high: apply("min", apply("max", x, low), high),
}

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


def _install_methods() -> None:
    """Methods that NumPy calls for ufuncs on plain object arrays: ``x.sin()``, ``x.arctan2(y)``."""
    for ufunc, function in ELEMENTWISE.items():
        name = ufunc.__name__
        if "O" in "".join(ufunc.types) and not hasattr(Symbol, name):
            setattr(Symbol, name, function)


_install_methods()
