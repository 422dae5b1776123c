"""Coefficients of tableaux: reading them in, exact sums and differences, how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import DIGITS, Number, is_finite, parse, to_decimal

__all__: list[str] = []  # private to tableau.py and to the analysis of tableaux


def _vector(values: Any, label: str, length: int | None) -> tuple[Number, ...]:
    if isinstance(values, str):
        values = values.split()
    try:
        numbers = tuple(_finite(parse(x), f"{label}[{i}]") for i, x in enumerate(values, start=1))
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from None
    if length is not None and len(numbers) != length:
        raise ValueError(f"{label} has {len(numbers)} entries, but b has {length}")
    return numbers


def _matrix(A: Any, s: int) -> tuple[tuple[Number, ...], ...]:
    if isinstance(A, str):  # a line for each row; an explicit method leaves out the first
        A = A.strip().splitlines()
        A = ["", *A] if len(A) == s - 1 else A
    rows = [list(row.split()) if isinstance(row, str) else list(row) for row in A]
    if len(rows) != s:
        raise ValueError(f"A has {len(rows)} rows, but b has {s} entries: one row per stage")
    result = []
    for i, row in enumerate(rows, start=1):
        if len(row) > s:
            raise ValueError(
                f"row {i} of A has {len(row)} entries; a tableau of {s} stages has {s}"
            )
        if i - 1 > len(row) and len(row) != 0 and any(len(r) == s for r in rows):
            raise ValueError(f"row {i} of A has {len(row)} entries, other rows have {s}")
        numbers = [_finite(parse(x), f"A[{i}, {j}]") for j, x in enumerate(row, start=1)]
        result.append(tuple(numbers + [Fraction(0)] * (s - len(row))))
    return tuple(result)


def _finite(x: Number, label: str) -> Number:
    if not is_finite(x):
        raise ValueError(f"{label} is {x!s:.30}; coefficients must be finite doubles")
    return x


def _sum(row: Sequence[Number]) -> Number:
    if all(isinstance(x, Fraction) for x in row):
        return sum((Fraction(x) for x in row), Fraction(0))
    if any(isinstance(x, float) for x in row):
        return float(sum(to_decimal(x) for x in row))
    with localcontext(prec=DIGITS + 10):
        return sum((to_decimal(x) for x in row), Decimal(0))


def _power(x: Any, k: int) -> Any:
    return x**k if k else 1  # 0⁰ = 1 here; Decimal calls it invalid


def _difference(x: Number, y: Number) -> float:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return float(x - y)
    with localcontext(prec=DIGITS + 10):
        return float(to_decimal(x) - to_decimal(y))


def _weight_difference(b: Sequence[Number], b_hat: Sequence[Number]) -> NDArray[np.float64]:
    return _floats([_difference(x, y) for x, y in zip(b, b_hat)])


def _floats(values: Any) -> NDArray[np.float64]:
    nested = [[float(x) for x in v] if isinstance(v, tuple | list) else float(v) for v in values]
    array = np.array(nested, dtype=np.float64)
    array.setflags(write=False)
    return array


def _text(x: Number) -> str | float:
    return x if isinstance(x, float) else str(x)


def _short(x: Number) -> str:
    if isinstance(x, Fraction):
        return str(x)
    return f"{float(x):.6g}"
