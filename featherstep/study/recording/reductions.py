"""What a run is reduced to: numbers for the table.

``Max(loop_force("joint"))`` is the largest value of a quantity along a run. Between its steps a run
is the polynomial of its dense output. There, maxima and minima are looked for at a few points of
each step and refined from the best ones on; integrals are Gauss–Legendre sums over each step. At a
jump of the state both sides count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from integrators import Event, Solution
from integrators.errors import suggest
from integrators.runs.solution import polynomials
from multibody.runs.observing.quantities import Quantity, Seen, State
from multibody.runs.observing.recorded import quantity_of

__all__ = [
    "At",
    "EventTime",
    "Final",
    "Integral",
    "Max",
    "Mean",
    "Min",
    "Reduction",
    "Span",
    "reduction_of",
    "reductions_of",
]

Array = NDArray[np.float64]

POINTS = 5  # of each step, its ends included, at which extrema are looked for
PEAKS = 4  # highest samples from which they are refined
REFINEMENTS = 60  # most evaluations that refine one
NODES = 6  # of Gauss' formula on each step: exact for polynomials of degree 11


class Span:
    """A finished run as a function of time.

    Parameters
    ----------
    seen
        Problem and model.
    solution
        With dense output.
    """

    def __init__(self, seen: Seen, solution: Solution) -> None:
        self.seen, self.solution = seen, solution

    @property
    def end(self) -> tuple[float, Array]:
        """Time and state at the end."""
        assert self.solution.reached is not None
        return self.solution.reached

    @cached_property
    def pieces(self) -> tuple[Array, Array]:
        """Start and end of each step, as far as the solution follows it."""
        sol = self.solution.sol
        assert sol is not None
        # A step that an event cuts short is followed up to where the next one begins.
        return sol.t, np.append(sol.t[1:], sol.end)

    def states(self, step: NDArray[np.int64], t: Array) -> Array:
        """States at times in given steps, in columns; at a jump the step says which side."""
        sol = self.solution.sol
        assert sol is not None
        return polynomials(sol.t, sol.h, sol.y, sol.Q, step, t, sol.move).T

    def values(self, quantity: Quantity, step: NDArray[np.int64], t: Array) -> Array:
        """Values of a quantity at times in given steps."""
        return quantity.quickly(self.seen, t, np.ascontiguousarray(self.states(step, t)))

    def places(self, points: Array) -> tuple[NDArray[np.int64], Array]:
        """The same points, given in parts of a step, in every step: their steps and times."""
        start, end = self.pieces
        step = np.repeat(np.arange(len(start)), len(points))
        part = np.tile(points, len(start))
        # Exact at both ends, so that no time lies outside the run.
        return step, (1.0 - part) * start[step] + part * end[step]


@dataclass(frozen=True)
class Reduction:
    """A number that a run is reduced to.

    Parameters
    ----------
    quantity
        The name of a state, a quantity such as ``loop_force("joint")``, or a function of (t, y).
    """

    quantity: Any
    kind: ClassVar[str] = ""
    #: Whether it needs the run between its steps.
    dense: ClassVar[bool] = True

    def __post_init__(self) -> None:
        quantity = quantity_of(self.quantity)
        if quantity.rows != 1:
            raise ValueError(
                f"{quantity!r} has {quantity.rows} numbers at each time, and a study records one; "
                "name a component, as position(body, 'x') and reaction(body, 'fx') do"
            )
        object.__setattr__(self, "quantity", quantity)

    def of(self, span: Span) -> float:
        """Value for one run."""
        raise TypeError(f"{type(self).__name__} reduces nothing")

    def check(self, seen: Seen, t_span: tuple[float, float]) -> None:
        """Raise what is wrong with it before anything is run."""
        self.quantity.check(seen)

    def unit(self, seen: Seen) -> str:
        """Unit of the value."""
        return str(self.quantity.unit_in(seen))

    def plain(self) -> dict[str, Any]:
        """The reduction as it stands in a file."""
        return {self.kind: self.quantity.plain()}


@dataclass(frozen=True)
class Final(Reduction):
    """Value at the end of the run."""

    kind: ClassVar[str] = "final"
    dense: ClassVar[bool] = False

    def of(self, span: Span) -> float:
        """Value for one run."""
        t, y = span.end
        return float(self.quantity.quickly(span.seen, np.array([t]), np.asarray(y)[:, None])[0])


@dataclass(frozen=True)
class At(Reduction):
    """Value at a time; NaN where a run ended before."""

    time: float
    kind: ClassVar[str] = "at"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "time", float(self.time))

    def check(self, seen: Seen, t_span: tuple[float, float]) -> None:
        """Raise if the time lies outside the interval."""
        super().check(seen, t_span)
        if not min(t_span) <= self.time <= max(t_span):
            raise ValueError(f"At: expected a time in {t_span}, received {self.time:g}")

    def of(self, span: Span) -> float:
        """Value for one run."""
        sol = span.solution.sol
        assert sol is not None
        if not sol.t_min <= self.time <= sol.t_max:
            return np.nan
        y = np.asarray(sol(self.time))
        return float(self.quantity.quickly(span.seen, np.array([self.time]), y[:, None])[0])

    def plain(self) -> dict[str, Any]:
        """The reduction as it stands in a file."""
        return {**super().plain(), "time": self.time}


@dataclass(frozen=True)
class Max(Reduction):
    """Largest value along the run."""

    kind: ClassVar[str] = "max"
    sign: ClassVar[float] = 1.0

    def of(self, span: Span) -> float:
        """Value for one run."""
        step, t = span.places(np.linspace(0.0, 1.0, POINTS))
        values = self.sign * span.values(self.quantity, step, t)
        if np.isnan(values).any():
            return np.nan
        best = float(values.max())
        for k in _peaks(values):
            best = max(best, self._refined(span, int(step[k]), float(t[k]), best))
        return self.sign * best

    def _refined(self, span: Span, step: int, t: float, found: float) -> float:
        """Largest value within one point's distance, in the same step."""
        from scipy.optimize import minimize_scalar

        start, end = (float(side[step]) for side in span.pieces)
        low, high = min(start, end), max(start, end)
        reach = (high - low) / (POINTS - 1)
        low, high = max(low, t - reach), min(high, t + reach)
        if not high > low:
            return found
        place = np.array([step])

        def opposite(x: float) -> float:
            return -self.sign * float(span.values(self.quantity, place, np.array([x]))[0])

        refined = minimize_scalar(
            opposite, bounds=(low, high), method="bounded",
            options={"xatol": 1e-9 * (high - low), "maxiter": REFINEMENTS},
        )  # fmt: skip
        return max(float(found), -float(refined.fun))


def _peaks(values: Array) -> NDArray[np.int64]:
    """Highest samples that none beside them exceeds.

    The end of a step and the start of the next are two samples, equal but for rounding: the peak
    may lie on either side.
    """
    rounding = 1e-9 * np.abs(values).max()
    left = np.append(-np.inf, values[:-1] - rounding)
    right = np.append(values[1:] - rounding, -np.inf)
    peaks = np.flatnonzero((values >= left) & (values >= right))
    order = np.argsort(-values[peaks], kind="stable")
    return peaks[order][:PEAKS]


@dataclass(frozen=True)
class Min(Max):
    """Smallest value along the run."""

    kind: ClassVar[str] = "min"
    sign: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Integral(Reduction):
    """Integral over time, from the start to the end of the run (negative backwards in time)."""

    kind: ClassVar[str] = "integral"

    def of(self, span: Span) -> float:
        """Value for one run."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        step, t = span.places(0.5 * (nodes + 1.0))
        values = span.values(self.quantity, step, t).reshape(-1, NODES)
        start, end = span.pieces
        return float(np.sum(0.5 * (end - start) * (values @ weights)))

    def unit(self, seen: Seen) -> str:
        """Unit of the value."""
        unit = super().unit(seen)
        return f"{unit} s" if unit else ""


@dataclass(frozen=True)
class Mean(Integral):
    """Mean over time."""

    kind: ClassVar[str] = "mean"

    def of(self, span: Span) -> float:
        """Value for one run."""
        start, end = span.pieces
        return super().of(span) / float(end[-1] - start[0])

    def unit(self, seen: Seen) -> str:
        """Unit of the value."""
        return Reduction.unit(self, seen)


@dataclass(frozen=True)
class EventTime(Reduction):
    """Time at which a quantity passes a value; NaN where it does not.

    Parameters
    ----------
    quantity
        As everywhere; or an :class:`~integrators.Event` without reset, which also tells the
        direction and whether it is terminal.
    value
        That it passes, 0 by default.
    direction
        +1: rising only, −1: falling only, 0: both.
    count
        The first time, the second, …
    terminal
        Whether the run ends there.

    Examples
    --------
    >>> EventTime("crank", value=6.28, direction=1).plain()
    {'event_time': 'crank', 'value': 6.28, 'direction': 1.0, 'count': 1, 'terminal': False}
    """

    value: float = 0.0
    direction: float = 0.0
    count: int = 1
    terminal: bool = False
    kind: ClassVar[str] = "event_time"
    dense: ClassVar[bool] = False

    def __post_init__(self) -> None:
        event: Any = self.quantity
        if isinstance(event, Event):
            if event.reset is not None:
                raise ValueError(
                    "EventTime only watches, and this Event has a reset; give the reset to the "
                    "problem's own events, and its function here"
                )
            object.__setattr__(self, "quantity", event.function)
            object.__setattr__(self, "direction", self.direction or event.direction)
            object.__setattr__(self, "terminal", self.terminal or bool(event.terminal))
            if event.terminal and self.count == 1:
                object.__setattr__(self, "count", int(event.terminal))
        super().__post_init__()
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise ValueError(f"EventTime: expected count ≥ 1, received {self.count!r}")
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "direction", float(self.direction))

    def event(self, seen: Seen) -> Event:
        """What ``solve`` is to look for."""
        value, quantity = self.value, self.quantity
        function: Callable[..., Any]
        if isinstance(quantity, State):
            i = quantity.number(seen)

            def function(t: float, y: Any) -> Any:
                return y[i] - value
        else:

            def function(t: float, y: Any) -> Any:
                return quantity.quickly(seen, np.array([t]), np.array(y)[:, None])[0] - value

        return Event(function, self.direction, self.count if self.terminal else False)

    def time(self, times: Array) -> float:
        """Value for one run, from the times at which its event happened."""
        return float(times[self.count - 1]) if len(times) >= self.count else np.nan

    def unit(self, seen: Seen) -> str:
        """Unit of the value."""
        return "s"

    def plain(self) -> dict[str, Any]:
        """The reduction as it stands in a file."""
        own = ("value", "direction", "count", "terminal")
        return {**super().plain(), **{name: getattr(self, name) for name in own}}


KINDS: dict[str, type[Reduction]] = {
    kind.kind: kind for kind in (Final, At, Max, Min, Mean, Integral, EventTime)
}


def reductions_of(record: Mapping[str, Any]) -> dict[str, Reduction]:
    """Reductions by their names."""
    found = {}
    for name, given in record.items():
        try:
            found[str(name)] = reduction_of(given)
        except ValueError as error:
            raise ValueError(f"record.{name}: {error}") from error
    return found


def reduction_of(given: Any) -> Reduction:
    """Reduction from what users and files give; a mere quantity stands for its final value.

    Examples
    --------
    >>> reduction_of({"max": {"loop_force": "joint"}}).kind
    'max'
    >>> reduction_of("crank")
    Final(quantity=State(name='crank'))
    """
    if isinstance(given, Reduction):
        return given
    if not isinstance(given, Mapping):
        return Final(given)
    kinds = [key for key in given if key in KINDS]
    if len(kinds) != 1:
        hint = suggest(str(next(iter(given), "")), KINDS)
        raise ValueError(
            f"expected one of {', '.join(KINDS)}, such as {{max = 'crank'}}, received "
            f"{dict(given)!r}{hint}"
        )
    (kind,) = kinds
    options = {key: value for key, value in given.items() if key != kind}
    known = [part.name for part in fields(KINDS[kind]) if part.name != "quantity"]
    for key in options:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ValueError(f"{kind} has no option {key!r}{suggest(key, known)}; {takes}")
    try:
        return KINDS[kind](given[kind], **options)
    except TypeError as error:
        text = str(error).rpartition("() ")[2]
        raise ValueError(f"{kind}: {text}; received {dict(given)!r}") from None
