"""Interval evaluation: bounds that hold for every point of a box.

An interval is a pair (lo, hi) of floats. Each operation returns an interval that contains every
value it can take, rounding included: results of ``+ − · / √`` are widened by one ulp on each side,
those of library functions by :data:`FUNCTION_ULPS`. Conditions are (lo, hi) too: (0, 0) false
everywhere, (1, 1) true everywhere, (0, 1) unknown.

Where a function is not defined on the whole interval (``sqrt``, ``log``, ``asin``, ... and broken
powers of negative numbers) the bounds hold for the part where it is; if there is none, they are
NaN, and so are those of what is computed from it. A division by an interval that contains 0 gives
(−∞, ∞).

The bounds enclose real values, also those too large for a double: where a lower bound overflows, it
stays at the largest double.

Bounds are as wide as interval arithmetic makes them: a variable that occurs twice is treated as
two (except x·x). Split the box to sharpen them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import Program

__all__ = ["FUNCTION_ULPS", "INTERVALS", "Interval", "bounds"]

Interval = tuple[float, float]

#: Libraries promise elementary functions to within 4 ulp.
FUNCTION_ULPS = 4
_INF = math.inf
_LARGEST = sys.float_info.max
_EVERYTHING = (-_INF, _INF)
_NOTHING = (math.nan, math.nan)


def _inside(lo: float, hi: float) -> Interval:
    """Replace a lower bound that overflowed to ∞ by the largest double, and an upper one at −∞."""
    return min(lo, _LARGEST), max(hi, -_LARGEST)


def _out(lo: float, hi: float) -> Interval:
    return math.nextafter(lo, -_INF), math.nextafter(hi, _INF)


def _wide(lo: float, hi: float) -> Interval:
    lo, hi = _inside(lo, hi)
    return lo - FUNCTION_ULPS * math.ulp(lo), hi + FUNCTION_ULPS * math.ulp(hi)


def _clip(x: Interval, lo: float, hi: float) -> Interval:
    return max(x[0], lo), min(x[1], hi)


def _empty(*xs: Interval) -> bool:
    return any(x[0] != x[0] for x in xs)


def _hull(*xs: Interval) -> Interval:
    """Return the smallest interval that contains all, without those that are empty."""
    some = [x for x in xs if not _empty(x)]
    return (min(x[0] for x in some), max(x[1] for x in some)) if some else _NOTHING


def _sum(x: float, y: float, unknown: float) -> float:
    return unknown if abs(x) == abs(y) == _INF and x != y else x + y


def _add(a: Interval, b: Interval) -> Interval:
    if _empty(a, b):
        return _NOTHING
    return _out(_sum(a[0], b[0], -_INF), _sum(a[1], b[1], _INF))


def _sub(a: Interval, b: Interval) -> Interval:
    return _add(a, _neg(b))


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0.0 or y == 0.0 else x * y


def _mul(a: Interval, b: Interval) -> Interval:
    if _empty(a, b):
        return _NOTHING
    corners = [_times(x, y) for x in a for y in b]
    return _out(min(corners), max(corners))


def _square(a: Interval) -> Interval:
    if _empty(a):
        return _NOTHING
    lo, hi = _abs(a)
    return max(0.0, math.nextafter(lo * lo, -_INF)), math.nextafter(hi * hi, _INF)


def _quotient(x: float, y: float) -> float:
    if abs(x) == _INF and abs(y) == _INF:
        return 0.0  # covered by the other corners
    return x / y


def _div(a: Interval, b: Interval) -> Interval:
    if _empty(a, b):
        return _NOTHING
    if b[0] <= 0.0 <= b[1]:
        return _EVERYTHING
    corners = [_quotient(x, y) for x in a for y in b]
    return _out(min(corners), max(corners))


def _neg(a: Interval) -> Interval:
    return -a[1], -a[0]


def _abs(a: Interval) -> Interval:
    if _empty(a):
        return _NOTHING
    if a[0] >= 0.0:
        return a
    if a[1] <= 0.0:
        return -a[1], -a[0]
    return 0.0, max(-a[0], a[1])


def _increasing(
    f: Callable[[Any], Any],
    domain: Interval = _EVERYTHING,
    values: Interval = _EVERYTHING,
) -> Callable[[Interval], Interval]:
    """Return the interval version of an increasing function with the given domain and range."""

    def enclosure(a: Interval) -> Interval:
        lo, hi = max(a[0], domain[0]), min(a[1], domain[1])
        if _empty(a) or lo > hi:
            return _NOTHING
        with np.errstate(all="ignore"):
            ends = float(f(np.float64(lo))), float(f(np.float64(hi)))
        return _clip(_wide(*ends), *values)

    return enclosure


def _acos(a: Interval) -> Interval:
    lo, hi = _asin(a)
    if _empty((lo, hi)):
        return _NOTHING
    return _clip(_wide(math.pi / 2 - hi, math.pi / 2 - lo), 0.0, 3.1415926535897936)


_asin = _increasing(np.arcsin, (-1.0, 1.0))


def _meets(a: Interval, offset: float, period: float) -> bool:
    """Whether offset + k·period, k an integer, may lie in the interval."""
    x, y = (a[0] - offset) / period, (a[1] - offset) / period
    slack = 1e-15 * (1.0 + max(abs(x), abs(y)))
    return math.ceil(x - slack) <= math.floor(y + slack)


def _sine(f: Callable[[float], float], top: float) -> Callable[[Interval], Interval]:
    """Range of sin or cos, whose maxima are at top + 2kπ."""

    def enclosure(a: Interval) -> Interval:
        if _empty(a):
            return _NOTHING
        if not (abs(a[0]) < 1e15 and abs(a[1]) < 1e15) or a[1] - a[0] >= 2 * math.pi:
            return -1.0, 1.0
        ends = f(a[0]), f(a[1])
        lo, hi = _wide(min(ends), max(ends))
        if _meets(a, top, 2 * math.pi):
            hi = 1.0
        if _meets(a, top + math.pi, 2 * math.pi):
            lo = -1.0
        return _clip((lo, hi), -1.0, 1.0)

    return enclosure


def _tan(a: Interval) -> Interval:
    if _empty(a):
        return _NOTHING
    if not (abs(a[0]) < 1e15 and abs(a[1]) < 1e15) or _meets(a, math.pi / 2, math.pi):
        return _EVERYTHING
    return _wide(math.tan(a[0]), math.tan(a[1]))


_cosh_up = _increasing(np.cosh)


def _cosh(a: Interval) -> Interval:
    lo, hi = _cosh_up(_abs(a))
    return max(lo, 1.0), hi


def _sign(a: Interval) -> Interval:
    if _empty(a):
        return _NOTHING
    return float(a[0] > 0) - float(a[0] < 0), float(a[1] > 0) - float(a[1] < 0)


def _floor(a: Interval) -> Interval:
    lo, hi = (float(math.floor(x)) if math.isfinite(x) else x for x in a)
    return lo, hi


def _either(f: Callable[[float, float], float]) -> Callable[[Interval, Interval], Interval]:
    """Return the interval version of ``min`` or ``max``."""

    def enclosure(a: Interval, b: Interval) -> Interval:
        return _NOTHING if _empty(a, b) else (f(a[0], b[0]), f(a[1], b[1]))

    return enclosure


def _pow(a: Interval, b: Interval) -> Interval:
    if _empty(a, b):
        return _NOTHING
    parts = []
    if a[1] >= 0.0:
        parts.append(_positive_pow((max(a[0], 0.0), a[1]), b))
    if a[0] < 0.0:  # only whole exponents: |x|^n for even n, −|x|^n for odd n
        size = (max(-a[1], 0.0), -a[0])
        if (even := _whole(b, 0)) is not None:
            parts.append(_positive_pow(size, even))
        if (odd := _whole(b, 1)) is not None:
            parts.append(_neg(_positive_pow(size, odd)))
    return _hull(*parts)


def _positive_pow(a: Interval, b: Interval) -> Interval:
    """Range of x^y, x ≥ 0: y·log x is bilinear, so that its extremes are at corners."""
    with np.errstate(all="ignore"):
        corners = [float(np.power(np.float64(abs(x)), np.float64(y))) for x in a for y in b]
    lo, hi = _wide(min(corners), max(corners))
    return max(lo, 0.0), hi


def _whole(b: Interval, parity: int) -> Interval | None:
    """Return bounds of the even (parity 0) or odd (1) numbers in an interval; None without any."""
    if max(-b[0], b[1]) > 2.0**53:  # no double tells such neighbours apart
        return b
    lo, hi = math.ceil(b[0]), math.floor(b[1])
    lo, hi = lo + (lo + parity) % 2, hi - (hi + parity) % 2
    return (float(lo), float(hi)) if lo <= hi else None


def _atan2(y: Interval, x: Interval) -> Interval:
    if _empty(x, y):
        return _NOTHING
    pi = math.nextafter(math.pi, 4.0)
    if x[0] <= 0.0 and y[0] <= 0.0 <= y[1]:
        return -pi, pi
    corners = [math.atan2(u, v) for u in y for v in x]
    return _clip(_wide(min(corners), max(corners)), -pi, pi)


def _condition(never: bool, always: bool) -> Interval:
    return float(always), float(not never)


def _lt(a: Interval, b: Interval) -> Interval:
    return _condition(never=a[0] >= b[1], always=a[1] < b[0])


def _le(a: Interval, b: Interval) -> Interval:
    return _condition(never=a[0] > b[1], always=a[1] <= b[0])


def _eq(a: Interval, b: Interval) -> Interval:
    point = a[0] == a[1] == b[0] == b[1]
    return _condition(never=a[1] < b[0] or b[1] < a[0], always=point)


def _ne(a: Interval, b: Interval) -> Interval:
    return _not(_eq(a, b))


def _not(a: Interval) -> Interval:
    return 1.0 - a[1], 1.0 - a[0]


def _select(c: Interval, a: Interval, b: Interval) -> Interval:
    if c[0] == 1.0:
        return a
    return b if c[1] == 0.0 else _hull(a, b)


#: Every operation on intervals.
INTERVALS: dict[str, Callable[..., Interval]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "square": _square,
    "div": _div,
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "floor": _floor,
    "sqrt": _increasing(np.sqrt, (0.0, _INF), (0.0, _INF)),
    "exp": _increasing(np.exp, values=(0.0, _INF)),
    "expm1": _increasing(np.expm1, values=(-1.0, _INF)),
    "log": _increasing(np.log, (0.0, _INF)),
    "log1p": _increasing(np.log1p, (-1.0, _INF)),
    "sin": _sine(math.sin, math.pi / 2),
    "cos": _sine(math.cos, 0.0),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": _increasing(np.arctan),
    "sinh": _increasing(np.sinh),
    "cosh": _cosh,
    "tanh": _increasing(np.tanh, values=(-1.0, 1.0)),
    "asinh": _increasing(np.arcsinh),
    "acosh": _increasing(np.arccosh, (1.0, _INF), (0.0, _INF)),
    "atanh": _increasing(np.arctanh, (-1.0, 1.0)),
    "pow": _pow,
    "atan2": _atan2,
    "min": _either(min),
    "max": _either(max),
    "lt": _lt,
    "le": _le,
    "eq": _eq,
    "ne": _ne,
    "and": _either(min),
    "or": _either(max),
    "not": _not,
    "select": _select,
}


def _box(x: Any, size: int, name: str) -> list[Interval]:
    """Intervals from values, or from a pair of vectors (lo, hi)."""
    array = np.asarray(x, dtype=float)
    if array.shape == (size,):
        array = np.stack([array, array])
    if array.shape != (2, size):
        raise ValueError(
            f"expected {name} as (lo, hi), two vectors of length {size}; got shape {array.shape}"
        )
    if not np.all(array[0] <= array[1]):
        raise ValueError(f"{name}: the lower bound exceeds the upper one, or is NaN: {x!r}")
    return [(float(lo), float(hi)) for lo, hi in array.T]


def bounds(
    program: Program, n: int, k: int, box: Any, t: Any = 0.0, p: Any = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (lo, hi) of a program's outputs on a box of states, times and parameters.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> lo, hi = bounds(trace(lambda t, y: y[0] * y[0], (), 1), 1, 0, ([-1.0], [2.0]))
    >>> bool(lo <= 0.0 and 4.0 <= hi < 4.0001)
    True
    """
    box = np.asarray(box, dtype=float)
    if box.shape != (2, n):
        raise ValueError(
            f"expected a box (lo, hi) of two vectors of length {n}; got shape {box.shape}"
        )
    times = np.asarray(t, dtype=float).reshape(-1)
    if times.size == 1:
        times = np.repeat(times, 2)
    inputs = [*_box(times.reshape(2, 1), 1, "t"), *_box(box, n, "the box"), *_box(p, k, "p")]
    result = program.evaluate(inputs, INTERVALS, lambda c: (c, c))
    lo = np.array([r[0] for r in result], dtype=float).reshape(program.shape)
    hi = np.array([r[1] for r in result], dtype=float).reshape(program.shape)
    return lo, hi
