"""NumPy's ufuncs, element by element.

:data:`ELEMENTWISE` maps each NumPy ufunc to a function of single elements, symbols or floats
mixed. Ufuncs without an own node are compositions: ``hypot(a, b) = √(a² + b²)`` (overflows
beyond 1e154, unlike NumPy's), ``exp2(x) = 2^x``, ``log2(x) = log(x)/log(2)`` and so on.

``x // y`` and ``x % y`` are exact, as NumPy's are. There q = ⌊x/y⌋ alone does not do: the quotient
may be rounded up to a whole number (1.0/0.1 is 10.0, though 0.1 is larger than a tenth), and
x − q·y loses what matters when q·y is rounded. :func:`_whole_and_rest` takes the product apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import umath

from ..graph import FLOATS
from .symbol import NUMPY_RULES, Condition, Symbol, apply

__all__ = ["ELEMENTWISE", "quotient_and_remainder"]

_clip_ufunc: np.ufunc = vars(umath)["clip"]  # what ndarray.clip calls


def _unary(op: str) -> Callable[[Any], Any]:
    return lambda x: apply(op, x)


def _binary(op: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: apply(op, x, y)


# --- quotients and remainders -------------------------------------------------------------------

#: A factor is cut into a part of at most 26 bits and the rest, so that products of parts are exact.
_CUT = 2.0**27
_PIECE = 2.0**26
#: Largest quotient whose remainder is computed; beyond, it is NaN.
LARGEST_QUOTIENT = 2.0**50


def _known(x: Any) -> float | None:
    """Return the value of an element that is known while tracing."""
    return x.graph.values[x.index] if isinstance(x, Symbol) else float(x)


def _magnitude(x: Any) -> Any:
    """Return |x|, with slope 1 at zero (``abs`` has slope 0 there)."""
    return apply("select", x < 0.0, -x, x)


def _cut(y: Any) -> tuple[Any, Any]:
    """y = high + low, high of at most 26 bits (Veltkamp).

    The first product is by a power of two, hence exact: nothing changes if machine code joins it
    with the sum.
    """
    if _known(y) == math.inf:
        return y, 0.0
    c = y * _CUT + y
    high = c - (c - y)
    return high, y - high


def _whole_and_rest(x: Any, y: Any) -> tuple[Any, Any]:
    """Return ⌊|x|/|y|⌋ and what remains of |x|, both exact.

    q = ⌊|x|/|y|⌋ as computed is right or one too large, for rounding is monotonic. The rest
    |x| − q·|y| is a float; it is reached by subtracting exact products of parts, largest first, so
    that every difference is exact too. Where it comes out negative, q was too large.
    """
    x, y = _magnitude(x), _magnitude(y)
    quotient = apply("floor", x / y)
    large = apply("floor", quotient * (1.0 / _PIECE)) * _PIECE
    small = quotient - large
    high, low = _cut(y)
    rest = x - large * high - large * low - small * high - small * low
    too_large = rest < 0.0
    rest = apply("select", too_large, rest + y, rest)
    rest = apply("select", quotient == 0.0, x, rest)  # also where y is infinite
    rest = apply("select", quotient < LARGEST_QUOTIENT, rest, math.nan)
    return apply("select", too_large, quotient - 1.0, quotient), rest


def quotient_and_remainder(x: Any, y: Any) -> tuple[Any, Any]:
    """(⌊x/y⌋, x − ⌊x/y⌋·y) as NumPy has them; the remainder has the sign of y.

    Derivatives are those of the formula: 0, and (1, −⌊x/y⌋).

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> program = trace(lambda x: divmod(x[0], x[1]), 2)
    >>> [float(v) for v in program.evaluate([1.0, 0.1])] == list(divmod(1.0, 0.1))
    True
    """
    x, y = (z + 0.0 if isinstance(z, Condition) else z for z in (x, y))
    if not isinstance(x, Symbol) and not isinstance(y, Symbol):
        return np.floor_divide(x, y), np.remainder(x, y)
    known = _known(y)
    if known is not None and math.isfinite(known) and abs(math.frexp(known)[0]) == 0.5:
        quotient = apply("floor", x / y)  # by a power of two: all exact
        return quotient, x - quotient * y
    whole, rest = _whole_and_rest(x, y)
    if known is None:
        opposite = apply("ne", 1.0 * (x < 0.0), 1.0 * (y < 0.0))
    else:
        opposite = x >= 0.0 if known < 0.0 else x < 0.0
    exact = rest == 0.0
    down = -apply("select", exact, whole, whole + 1.0)
    completed = apply("select", exact, -rest, _magnitude(y) - rest)
    size = apply("select", opposite, completed, rest)
    return apply("select", opposite, down, whole), apply("select", y < 0.0, -size, size)


def _fmod(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of x, as C's fmod."""
    if not isinstance(x, Symbol) and not isinstance(y, Symbol):
        return np.fmod(x, y)
    rest = _whole_and_rest(x + 0.0, y + 0.0)[1]
    return apply("select", x < 0.0, -rest, rest)


# --- other compositions -------------------------------------------------------------------------


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
    np.floor_divide: lambda x, y: quotient_and_remainder(x, y)[0],
    np.remainder: lambda x, y: quotient_and_remainder(x, y)[1],
    np.divmod: quotient_and_remainder,
    np.fmod: _fmod,
    np.heaviside: _heaviside,
    np.copysign: _copysign,
    np.fmin: _fmin("min"),
    np.fmax: _fmin("max"),
    np.isnan: lambda x: apply("ne", x, x),
    np.isfinite: lambda x: apply("lt", apply("abs", x), math.inf),
    np.isinf: lambda x: apply("eq", apply("abs", x), math.inf),
    _clip_ufunc: lambda x, low, high: apply("min", apply("max", x, low), high),
}


def _install_methods() -> None:
    """Methods that NumPy calls for ufuncs on plain object arrays: ``x.sin()``, ``x.arctan2(y)``."""
    for ufunc, function in ELEMENTWISE.items():
        name = ufunc.__name__
        if "O" in "".join(ufunc.types) and not hasattr(Symbol, name):
            setattr(Symbol, name, function)


_install_methods()


NUMPY_RULES["divmod"] = quotient_and_remainder
