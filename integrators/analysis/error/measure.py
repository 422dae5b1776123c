"""How the error of a run is measured: where, and of what.

By default the error is that of the whole state at the end of the interval, or the largest along
the way, in the maximum norm and relative to the size of the solution,

    error = max_t ‖g(t, y) − g(t, ŷ)‖ / max_t ‖g(t, ŷ)‖ ,

with ŷ the reference and g the state itself, one of its components, or any function of it. An
*invariant* g needs no reference: it is compared with its value at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import suggest
from ...problem import IVP
from ...runs.solution import Solution
from ..study.reference import VANISHED, Reference

__all__ = ["ErrorMeasure"]


@dataclass(frozen=True)
class ErrorMeasure:
    """How the error of a run is measured.

    Parameters
    ----------
    name
        What it is the error of, for tables and figures: "solution", "y0", "energy".
    observable
        g(t, y), a number or a vector; None for the state itself.
    over
        "end": at the end of the interval; "max": the largest at all steps.
    constant
        Whether g is constant along the exact solution; then no reference is needed.
    relative
        Whether to divide by the size of g along the reference, where it has not died out.

    Examples
    --------
    >>> radius = ErrorMeasure("radius", lambda t, y: np.hypot(y[0], y[1]), over="max")
    >>> radius.label
    'largest relative error of radius'
    """

    name: str = "the solution"
    observable: Callable[[float, NDArray[Any]], Any] | None = None
    over: str = "end"
    constant: bool = False
    relative: bool = True

    def __post_init__(self) -> None:
        if self.over not in ("end", "max"):
            raise ValueError(f"over must be 'end' or 'max', got {self.over!r}")
        if self.constant and self.observable is None:
            raise ValueError("a constant measure needs the observable that is constant")

    @classmethod
    def of(cls, choice: Any, problem: IVP, default: str = "end") -> ErrorMeasure:
        """Return the measure that a user means.

        Parameters
        ----------
        choice
            An ErrorMeasure; "end" or "max"; the number of a component or its name ("y0"); the
            name of an invariant of the problem; a function g(t, y); None for the default. "max"
            may precede a name: "max y0".
        problem
            Whose components and invariants are meant.
        default
            "end" or "max".
        """
        if isinstance(choice, ErrorMeasure):
            return choice
        if choice is None:
            return cls(over=default)
        if callable(choice):
            name = getattr(choice, "__name__", "g")
            return cls("g" if name == "<lambda>" else name, choice)
        if isinstance(choice, int | np.integer) and not isinstance(choice, bool):
            return _component(int(choice), problem, "end")
        if isinstance(choice, str):
            return _named(choice, problem)
        raise TypeError(
            "measure must be 'end', 'max', a component, an invariant's name or a function "
            f"g(t, y); got {choice!r}"
        )

    @property
    def label(self) -> str:
        """What an axis or a column of such errors is called."""
        kind = "relative " if self.relative else ""
        if self.constant:
            return f"largest {kind}drift of {self.name}"
        where = "largest " if self.over == "max" else ""
        end = " at the end" if self.over == "end" else ""
        return f"{where}{kind}error{'' if self.observable is None else f' of {self.name}'}{end}"

    def error(self, problem: IVP, solution: Solution, reference: Reference) -> float | None:
        """Error of a run that succeeded; None if there is nothing to compare with."""
        if self.constant:
            return self._drift(problem, solution)
        t, y = self._states(solution)
        expected = self._expected(problem, t, reference)
        return None if expected is None else self._difference(problem, t, y, expected)

    def uncertainty(self, problem: IVP, solution: Solution, reference: Reference) -> float:
        """How far the reference itself may be off, in this measure."""
        if self.constant:
            return 0.0
        tabulated = self.over == "end" and self.observable is None
        if tabulated or reference.doubt is None or reference.along is None:
            return reference.uncertainty
        t = self._states(solution)[0]
        return self._difference(problem, t, reference.doubt(t), reference.along(t))

    # ------------------------------------------------------------ the pieces

    def _states(self, solution: Solution) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """The states that are compared; not those at a jump, whose time is not known exactly."""
        if self.over == "end":
            return solution.t[-1:], solution.y[:, -1:]
        again = np.diff(solution.t) == 0.0
        smooth = ~(np.append(again, False) | np.append(False, again))
        return solution.t[smooth], solution.y[:, smooth]

    def _expected(
        self, problem: IVP, t: NDArray[np.float64], reference: Reference
    ) -> NDArray[Any] | None:
        if reference.y is None:
            return None
        if t.size == 1 and t[0] == problem.t_span[1]:
            return reference.y[:, None]
        if t.size == 1 and problem.exact is None:
            return None  # an event ended the run early: nothing is known there
        return None if reference.along is None else reference.along(t)

    def _values(self, problem: IVP, t: NDArray[np.float64], y: NDArray[Any]) -> NDArray[Any]:
        if self.observable is None:
            return y
        g = problem.bind(self.observable)
        return np.array([np.ravel(g(tk, y[:, k])) for k, tk in enumerate(t)]).T

    def _difference(
        self, problem: IVP, t: NDArray[np.float64], y: NDArray[Any], expected: NDArray[Any]
    ) -> float:
        ours, theirs = self._values(problem, t, y), self._values(problem, t, expected)
        scale = float(np.max(np.abs(theirs))) if self.relative else 1.0
        if self.relative and not scale > VANISHED * self._start(problem):
            scale = 1.0
        return float(np.max(np.abs(ours - theirs))) / scale

    def _start(self, problem: IVP) -> float:
        first = self._values(problem, np.array([problem.t_span[0]]), problem.y0[:, None])
        return float(np.max(np.abs(first)))

    def _drift(self, problem: IVP, solution: Solution) -> float:
        values = self._values(problem, solution.t, solution.y)
        scale = float(np.max(np.abs(values[:, 0]))) if self.relative else 1.0
        return float(np.max(np.abs(values - values[:, :1]))) / (scale or 1.0)


def _component(k: int, problem: IVP, over: str) -> ErrorMeasure:
    if not -problem.n <= k < problem.n:
        raise ValueError(f"component {k} is not among the {problem.n} of the problem, 0 first")
    k %= problem.n
    return ErrorMeasure(f"y{k}", lambda t, y: y[k], over)


def _named(choice: str, problem: IVP) -> ErrorMeasure:
    words = choice.split()
    over = words.pop(0) if words and words[0] in ("end", "max") else "end"
    name = " ".join(words)
    if not name:
        return ErrorMeasure(over=over)
    if name in problem.invariants:
        return ErrorMeasure(name, problem.invariants[name], "max", constant=True)
    if name[0] == "y" and name[1:].isdigit():
        return _component(int(name[1:]), problem, over)
    known = ["end", "max", *(f"y{i}" for i in range(min(problem.n, 4))), *problem.invariants]
    raise ValueError(
        f"unknown measure {choice!r}{suggest(name, known)}; it can be end, max, a component "
        f"(y0 to y{problem.n - 1})"
        + (f" or an invariant ({', '.join(problem.invariants)})" if problem.invariants else "")
    )
