"""Zeros of event functions in runs with many digits.

There is no dense output to look for them in: a step is taken again, shorter and shorter, until its
end lies on the zero to the last digits (regula falsi, with a bisection now and then).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext
from typing import Any

from ...problem import IVP, Event, accepts_params
from ...tracing import TracingError, traced
from ...tracing.graph import evaluate
from .decimals import DECIMALS, NotAvailable

__all__ = ["Watch"]

State = list[Decimal]

LOOKED_AT = [Decimal(k) / 4 for k in range(1, 5)]  # parts of a step: two zeros in one are seen
MOST = 400  # iterations; bisections alone need 3.3 for a digit
BISECT_EVERY = 3


class Watch:
    """The events of a run: what has been found of them, and their values where the run is."""

    def __init__(self, problem: IVP, parameters: State) -> None:
        self.events = problem.events
        if any(event.reset is not None for event in self.events):
            raise NotAvailable("resets are run with doubles only; leave out precision")
        self.parameters = parameters
        self.programs = [_traced(event, problem) for event in self.events]
        self.times: list[list[Decimal]] = [[] for _ in self.events]
        self.states: list[list[State]] = [[] for _ in self.events]
        self.values: State = []

    def begin(self, t: Decimal, y: State) -> None:
        """Note the values at the start, which is no event."""
        self.values = self._at(t, y)

    def _at(self, t: Decimal, y: State) -> State:
        inputs = [t, *y, *self.parameters]
        return [
            evaluate(p.ops, p.args, p.outputs, inputs, DECIMALS, Decimal)[0] for p in self.programs
        ]

    def look(
        self, t: Decimal, h: Decimal, state: Callable[[Decimal], State]
    ) -> tuple[Decimal, State] | None:
        """Record the zeros of a step from t; where a terminal one ends the run, if it does."""
        found: list[tuple[Decimal, int, State]] = []
        values, start = self.values, Decimal(0)
        for part in LOOKED_AT:
            end = part * h
            new = self._at(t + end, state(end))
            for k, event in enumerate(self.events):
                if _crosses(values[k], new[k], event.direction):
                    at = self._locate(k, t, state, (start, values[k]), (end, new[k]))
                    found.append((at, k, state(at)))
            values, start = new, end
        self.values = values
        for at, k, y in sorted(found, key=lambda zero: abs(zero[0])):
            self.times[k].append(t + at)
            self.states[k].append(y)
            terminal = self.events[k].terminal
            if terminal and len(self.times[k]) >= int(terminal):
                return t + at, y
        return None

    def _locate(
        self,
        k: int,
        t: Decimal,
        state: Callable[[Decimal], State],
        low: tuple[Decimal, Decimal],
        high: tuple[Decimal, Decimal],
    ) -> Decimal:
        (a, at_a), (b, at_b) = low, high
        if at_b == 0:
            return b
        least = abs(b) * Decimal(10) ** (2 - getcontext().prec)
        moved = 0  # the end that moved last: the other one counts half if that moves again
        for iteration in range(1, MOST):
            if abs(b - a) <= least:
                break
            c = (a + b) / 2 if iteration % BISECT_EVERY == 0 else b - at_b * (b - a) / (at_b - at_a)
            value = self._at(t + c, state(c))[k]
            if value == 0:
                return c
            if (value > 0) == (at_b > 0):
                b, at_b, at_a, moved = c, value, (at_a / 2 if moved == 1 else at_a), 1
            else:
                a, at_a, at_b, moved = c, value, (at_b / 2 if moved == -1 else at_b), -1
        return b


def _crosses(before: Decimal, after: Decimal, direction: float) -> bool:
    """Whether there is a zero between two values, the first one excluded."""
    if before == 0 or (after != 0 and (before > 0) == (after > 0)):
        return False
    return direction == 0 or (direction > 0) == (before < 0)


def _traced(event: Event, problem: IVP) -> Any:
    """The program of an event function."""
    g: Any = event.function
    try:
        count = problem.params.size if accepts_params(g) else 0
        found = traced(g, n=problem.n, params=count, outputs=1).graph
    except TracingError as error:
        reason = str(error).strip().splitlines()[-1]
        raise NotAvailable(f"an event function cannot be traced: {reason}") from None
    unknown = {op for op in found.ops if op not in ("const", "input", *DECIMALS)}
    if unknown:
        raise NotAvailable(f"{', '.join(sorted(unknown))} is not known with many digits")
    return found
