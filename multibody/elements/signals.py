"""Inputs over time: numbers, functions, and tables that are held, joined by lines, or by a spline.

A signal is whatever gives a number at a time. Tables are written as sums of pieces that each end
with their interval, so that they need no branches and can be traced.
"""

from __future__ import annotations

import ast
import csv
import operator
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import Array, number, one_of, real_array

__all__ = ["Formula", "Table", "Wave", "value_of"]

LONGEST_FORMULA = 400  # characters


@dataclass(frozen=True, eq=False)
class Table:
    """A number over time, from a table; constant before its first and after its last time.

    Parameters
    ----------
    times, values
        Rising times, and a number for each.
    kind
        "linear", "hold" (each value until the next time) or "spline" (cubic, twice differentiable).

    Examples
    --------
    >>> voltage = Table([0.0, 1.0, 2.0], [0.0, 6.0, 4.0])
    >>> float(voltage(0.5)), float(voltage(9.0))
    (3.0, 4.0)
    >>> float(Table([0, 1, 2], [0, 6, 4], kind="hold")(0.999))
    0.0
    """

    times: Any
    values: Any
    kind: str = "linear"

    def __post_init__(self) -> None:
        one_of(self.kind, "kind", ("linear", "hold", "spline"))
        times = real_array(self.times, "times").astype(float)
        values = real_array(self.values, "values").astype(float)
        if times.ndim != 1 or values.shape != times.shape or len(times) < 2:
            raise ValueError(
                f"Table: expected at least two times and a number for each, received times of "
                f"shape {times.shape} and values of shape {values.shape}"
            )
        if np.any(np.diff(times) <= 0.0):
            k = int(np.argmax(np.diff(times) <= 0.0))
            raise ValueError(
                f"Table: expected rising times, received {times[k]:g} before {times[k + 1]:g}"
            )
        for name, array in (("times", times), ("values", values)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_pieces", self._polynomials())

    def _polynomials(self) -> Array:
        """Coefficients of s, s², s³ on each interval."""
        t, x = self.times, self.values
        if self.kind == "spline" and len(t) > 2:
            from scipy.interpolate import CubicSpline

            return np.asarray(CubicSpline(t, x).c[2::-1])
        slopes = np.diff(x) / np.diff(t)
        return np.array([slopes, np.zeros_like(slopes), np.zeros_like(slopes)])

    def __call__(self, t: Any) -> Any:
        """Value at a time, of a number or a symbol."""
        times, values = self.times, self.values
        if self.kind == "hold":
            steps = np.diff(values)
            return values[0] + sum(step * (t >= at) for step, at in zip(steps, times[1:]))
        s = np.clip(t - times[:-1], 0.0, np.diff(times))
        a, b, c = self._pieces  # type: ignore[attr-defined]
        return values[0] + np.sum(s * (a + s * (b + s * c)))

    def _identity(self) -> Any:
        return self.times.tobytes(), self.values.tobytes(), self.kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def kinks(self) -> Array:
        """Times at which it, or a derivative of it, jumps."""
        return np.asarray(self.times)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        column: str | int = 1,
        time: str | int = 0,
        kind: str = "linear",
    ) -> Table:
        """Read a table from a file of comma-separated values.

        Parameters
        ----------
        path
            Of the file; lines that begin with # are left out.
        column, time
            Name in the first line, or number from 0, of the columns of values and times.
        kind
            As above.
        """
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        rows = list(csv.reader(x for x in lines if x.strip() and x.strip()[0] != "#"))
        if not rows:
            raise ValueError(f"{path}: expected a table of times and values, found no lines")
        names = [cell.strip() for cell in rows[0]]
        headed = not all(_is_number(cell) for cell in names)

        def place(which: str | int) -> int:
            if isinstance(which, str):
                if not headed or which not in names:
                    known = ", ".join(names) if headed else "none: the first line has numbers"
                    raise ValueError(f"{path}: there is no column {which!r}; there are {known}")
                return names.index(which)
            if not 0 <= which < len(names):
                raise ValueError(f"{path}: there is no column {which}; there are {len(names)}")
            return which

        at, of = place(time), place(column)
        found = []
        for line, row in enumerate(rows[headed:], start=1 + headed):
            try:
                found.append((float(row[at]), float(row[of])))
            except (IndexError, ValueError):
                raise ValueError(
                    f"{path}: expected numbers in columns {at} and {of} of row {line}, received "
                    f"{row!r:.80}"
                ) from None
        times, values = np.array(found).reshape(-1, 2).T
        return cls(times, values, kind)


@dataclass(frozen=True)
class Wave:
    """A sine over time: amplitude · sin(2π frequency t + phase) + offset.

    Examples
    --------
    >>> float(Wave(0.03, 1.0)(0.25)), round(float(Wave(0.03, 1.0).rate(0.0)), 6)
    (0.03, 0.188496)
    """

    amplitude: float
    frequency: float
    phase: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("amplitude", "frequency", "phase", "offset"):
            value = number(getattr(self, name))
            object.__setattr__(self, name, value)

    def __call__(self, t: Any) -> Any:
        """Value at a time, of a number or a symbol."""
        angle = 2.0 * np.pi * self.frequency * t + self.phase
        return self.amplitude * np.sin(angle) + self.offset

    def rate(self, t: Any) -> Any:
        """Its derivative."""
        omega = 2.0 * np.pi * self.frequency
        return self.amplitude * omega * np.cos(omega * t + self.phase)


#: What a formula may consist of, besides numbers and t.
FUNCTIONS: dict[str, Any] = {
    f.__name__: f
    for f in (np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh)
} | {"exp": np.exp, "log": np.log, "sqrt": np.sqrt}
OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


@dataclass(frozen=True)
class Formula:
    """A function of time as text, which a model file can hold.

    It may consist of numbers, t, pi, + − * / ** and sin, cos, tan, arcsin, arccos, arctan, sinh,
    cosh, tanh, exp, log, sqrt; nothing else is executed.

    Examples
    --------
    >>> float(Formula("0.5 * sin(2 * pi * t) + 1")(0.25))
    1.5
    """

    text: str

    def __post_init__(self) -> None:
        try:
            value = self(1.0)  # says what is wrong with it
        except ArithmeticError as error:
            raise ValueError(f"Formula: {self.text!r} at t = 1: {error}") from None
        if isinstance(value, complex):
            raise ValueError(f"Formula: {self.text!r} is not real at t = 1")

    def __call__(self, t: Any) -> Any:
        """Value at a time, of a number or a symbol."""
        return _evaluated(_parsed(self.text), t, self.text)


@cache
def _parsed(text: str) -> ast.expr:
    try:
        if len(text) > LONGEST_FORMULA:
            raise ValueError(f"of more than {LONGEST_FORMULA} characters")
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"Formula: expected one such as '0.1 * sin(10 * t)'; {error}") from None


def _evaluated(part: ast.expr, t: Any, text: str) -> Any:
    match part:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id="t"):
            return t
        case ast.Name(id="pi"):
            return np.pi
        case ast.UnaryOp() if type(part.op) in OPERATIONS:
            return OPERATIONS[type(part.op)](_evaluated(part.operand, t, text))
        case ast.BinOp() if type(part.op) in OPERATIONS:
            sides = (_evaluated(side, t, text) for side in (part.left, part.right))
            return OPERATIONS[type(part.op)](*sides)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](_evaluated(inner, t, text))
    known = ", ".join(("t", "pi", *FUNCTIONS))
    raise ValueError(f"Formula: {ast.unparse(part)!r} in {text!r} is not known; there are {known}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def value_of(signal: Any, t: Any) -> Any:
    """Value of a signal at a time: of a number, a table, or a function of time.

    Examples
    --------
    >>> value_of(3.0, 0.5), value_of(lambda t: 2 * t, 0.5)
    (3.0, 1.0)
    """
    return signal(t) if callable(signal) else signal
