"""What is kept of a run when nobody wants its trajectory: numbers, found while it runs.

``solve_many(…, reduce={"peak": Largest(g)})`` keeps for each run the largest value of g(t, y, p)
along it, not only at its steps: within each step g is sampled on the dense output, at the nodes of
a Gauss–Lobatto formula of degree 11, and the polynomial through the samples is maximised
(``lanes.hooks``). Integrals use the same samples. So ten thousand runs need no trajectories, and
their steps are those that they would take without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..runs.solution import polynomials
from .lanes.hooks import NODES, WEIGHTS, peak
from .lanes.rows import INTEGRAL, LARGEST, SMALLEST

if TYPE_CHECKING:
    from ..runs.solution import Solution
    from .results import ManySolutions

__all__ = [
    "EventTime",
    "Final",
    "Integral",
    "Largest",
    "Mean",
    "Reduction",
    "Reductions",
    "Smallest",
    "ValueAt",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reduction:
    """A number that a run is reduced to; ``function`` is g(t, y) or g(t, y, p)."""

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"{type(self).__name__}: expected a function g(t, y) or g(t, y, p), received "
                f"{self.function!r}"
            )


class Largest(Reduction):
    """Largest value along a run; ``ManySolutions.reduced_at`` says when."""


class Smallest(Reduction):
    """Smallest value along a run."""


class Integral(Reduction):
    """Integral over the time of a run."""


class Mean(Reduction):
    """Integral divided by the length of the interval that the run has covered."""


class Final(Reduction):
    """Value at the end of a run, also of one that an event has ended."""


@dataclass(frozen=True)
class ValueAt(Reduction):
    """Value at a time; NaN if the run ended before."""

    t: float = 0.0


@dataclass(frozen=True)
class EventTime:
    """When an event occurs, given by its number among the problem's; NaN if it does not.

    `occurrence` counts from 0; −1 is the last.
    """

    event: int = 0
    occurrence: int = 0


class Reductions:
    """All reductions of a call of ``solve_many``, ready to be used.

    Parameters
    ----------
    given
        By name.
    ivp
        The problem.
    t_eval
        Output times that the user wants.
    """

    def __init__(self, given: Mapping[str, Any], ivp: IVP, t_eval: Array) -> None:
        self.given, self.ivp = dict(given), ivp
        for name, reduction in self.given.items():
            if not isinstance(reduction, Reduction | EventTime):
                raise TypeError(
                    f"reduce[{name!r}]: expected Largest(g), Smallest(g), Integral(g), Mean(g), "
                    f"Final(g), ValueAt(g, t) or EventTime(number), received {reduction!r}"
                )
            if isinstance(reduction, EventTime) and not 0 <= reduction.event < len(ivp.events):
                raise ValueError(
                    f"reduce[{name!r}]: there is no event number {reduction.event}; the problem "
                    f"has {len(ivp.events)}"
                )
        wanted = [r.t for r in self.given.values() if isinstance(r, ValueAt)]
        low, high = min(ivp.t_span), max(ivp.t_span)
        for t in wanted:
            if not low <= t <= high:
                raise ValueError(f"ValueAt: t = {t!r} is not within t_span = {ivp.t_span}")
        times = np.union1d(t_eval, wanted)
        self.asked = t_eval
        self.times = times if ivp.t_span[1] >= ivp.t_span[0] else times[::-1].copy()
        if not wanted:
            self.times = t_eval

    @property
    def along(self) -> list[tuple[str, int, Any]]:
        """Names, kinds and functions of what has to be followed along a run."""
        kinds = {Largest: LARGEST, Smallest: SMALLEST, Integral: INTEGRAL, Mean: INTEGRAL}
        return [(k, kinds[type(r)], r.function) for k, r in self.given.items() if type(r) in kinds]

    def traced(self) -> list[tuple[int, Any]]:
        """The same for lanes: kinds and traced functions; raises where one cannot be traced."""
        from ..tracing import traced

        n, k = self.ivp.n, self.ivp.params.size
        found = []
        for _, kind, g in self.along:
            takes = _takes_p(self.ivp, g)

            def value(t: Any, y: Any, p: Any = (), g: Any = g, takes: bool = takes) -> Any:
                return np.ravel(np.asarray(g(t, y, p) if takes else g(t, y)))[:1]

            found.append((kind, traced(value, n=n, params=k, outputs=1)))
        return found

    def enter(self, result: ManySolutions, parameters: Array, spans: Array, kept: Any) -> None:
        """Enter what runs in lanes have kept; `kept` are values and times by run."""
        m = len(result)
        for name, reduction in self.given.items():
            result.reduced[name] = np.full(m, np.nan)
            if isinstance(reduction, Largest | Smallest):
                result.reduced_at[name] = np.full(m, np.nan)
        for j, (name, _, _) in enumerate(self.along):
            result.reduced[name][:] = kept[0][:, j]
            if name in result.reduced_at:
                result.reduced_at[name][:] = kept[1][:, j]
            if isinstance(self.given[name], Mean):
                starts = np.broadcast_to(spans, (m, 2))[:, 0]
                with np.errstate(all="ignore"):
                    result.reduced[name] /= result.t - starts
        if any(isinstance(r, Final | ValueAt | EventTime) for r in self.given.values()):
            for k in range(m):
                self._enter_ends(k, result, parameters[k])

    def _enter_ends(self, k: int, result: ManySolutions, p: Array) -> None:
        """Enter what depends on single states and on events of run k."""
        for name, reduction in self.given.items():
            if isinstance(reduction, Final):
                result.reduced[name][k] = self._value(reduction, float(result.t[k]), result.y[k], p)
            elif isinstance(reduction, ValueAt):
                at = int(np.flatnonzero(self.times == reduction.t)[0])
                state = result.y_eval[k, :, at]
                if np.isfinite(state).all():
                    result.reduced[name][k] = self._value(reduction, reduction.t, state, p)
            elif isinstance(reduction, EventTime):
                times = result.t_events[k][reduction.event] if result.t_events[k] else ()
                if -len(times) <= reduction.occurrence < len(times):
                    result.reduced[name][k] = times[reduction.occurrence]

    def _value(self, reduction: Reduction, t: float, y: Array, p: Array) -> float:
        g = reduction.function
        return _number(g(t, y.copy(), p) if _takes_p(self.ivp, g) else g(t, y.copy()))

    def enter_alone(
        self, k: int, result: ManySolutions, solution: Solution | None, p: Array
    ) -> None:
        """Enter what a run of ``solve`` with dense output gives."""
        for name, reduction in self.given.items():
            result.reduced.setdefault(name, np.full(len(result), np.nan))[k] = np.nan
            if isinstance(reduction, Largest | Smallest):
                result.reduced_at.setdefault(name, np.full(len(result), np.nan))[k] = np.nan
        if solution is None:
            return
        self._enter_ends(k, result, p)
        if not self.along:
            return
        run = self.ivp.with_(params=p)
        for name, kind, function in self.along:
            value, at = _followed(run.bind(function), kind, solution)
            if isinstance(self.given[name], Mean):
                length = result.t[k] - solution.problem.t_span[0]
                value = value / length if length else np.nan
            result.reduced[name][k] = value
            if name in result.reduced_at:
                result.reduced_at[name][k] = at

    def trim(self, result: ManySolutions) -> None:
        """Leave the output times that were asked for."""
        if self.times is not self.asked:
            keep = np.isin(self.times, self.asked)
            result.t_eval, result.y_eval = self.asked, result.y_eval[:, :, keep].copy()


def _followed(g: Callable[..., Any], kind: int, solution: Solution) -> tuple[float, float]:
    """Extreme value (and its time) or integral of g along a solution, as in ``lanes.hooks``.

    A step that an event cuts short counts up to there; at a jump both sides count.
    """
    dense: Any = solution.sol
    start = float(solution.problem.t_span[0])
    total, best, at = 0.0, _number(g(start, dense(start))), start
    sign = -1.0 if kind == SMALLEST else 1.0
    t = start
    for k, (t, end) in enumerate(zip(dense.t, np.append(dense.t[1:], dense.end))):
        h, step = end - t, np.full(len(NODES), k)
        places = np.array([t + theta * h for theta in NODES])
        states = polynomials(dense.t, dense.h, dense.y, dense.Q, step, places, dense.move)
        values = np.array([_number(g(float(s), y)) for s, y in zip(places, states)])
        total += h * float(np.dot(WEIGHTS, values))
        if kind != INTEGRAL:
            theta, value = peak(values.tolist(), sign)
            if value > sign * best:
                best, at = sign * value, float(t + theta * h)
    return (float(total), float(dense.end)) if kind == INTEGRAL else (best, at)


def _number(value: Any) -> float:
    return float(np.ravel(np.asarray(value))[0])


def _takes_p(ivp: IVP, g: Callable[..., Any]) -> bool:
    from ..problem import accepts_params

    return bool(ivp.params.size) and accepts_params(g)
