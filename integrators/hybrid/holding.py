"""States that events hold on their surfaces: the motion goes on there, as the resets let it.

A ball that lands without a bounce is reset to rest, falls by nothing and is reset again: after
infinitely many resets in no time at all it moves along the surface, with

    y' = d/ds R∞(t + s, y + s f),     s = 0,

where R∞ applies the resets of the events that hold it until they change nothing more. It leaves the
surface of an event where g̈ along f, which led into it, leads away. Rates are differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP, Event
from .modes import Hybrid, Mode, Transition

__all__ = ["Holding", "Unheld", "holding", "why_not_held"]

Array = NDArray[np.float64]

FREE = "free"
MOST_RESETS = 1000  # of a state, until they change nothing more
SETTLED = 1e-15  # of its size at first
PART = 1e-3  # of the time in which the state changes by its size, or of the interval: differences
LEAVES = 1e-6  # of the acceleration into a surface: that off it with which a motion leaves
ROUNDING = 1e-13
ON_SURFACE = 1e-6  # of what f would move g by: how far a held motion may leave it


@dataclass(frozen=True)
class Unheld(Event):
    """An event of equations for sensitivities, which end where it holds the state."""


@dataclass(frozen=True, eq=False)
class Holding(Hybrid):
    """A problem whose events may hold the state."""

    shows_transitions: ClassVar[bool] = False
    surfaces: Any = None

    @property
    def said(self) -> Sequence[str]:  # type: ignore[override]
        """Which events held the state, and from when."""
        return self.surfaces.said if self.surfaces is not None else ()

    def hold(self, key: Any, k: int, t: float, y: Array) -> Any:
        """Key of the mode in which event k holds the state besides others; None if it cannot."""
        return self.surfaces.hold(key, k, t, y)


def why_not_held(ivp: IVP) -> str:
    """Why the motion cannot go on along a surface that an event holds it on; "" if it can."""
    if any(isinstance(event, Unheld) for event in ivp.events):
        return (
            "sensitivities are not known along it: end the run there (terminal=True, which leaves "
            "those of the time itself), or take differences of runs with other parameters"
        )
    if ivp.t_span[1] < ivp.t_span[0]:
        return "backwards in time its motion is not unique: from a state at rest no landing follows"
    if ivp.manifold is not None:
        return "resets are followed along surfaces in plain coordinates, not on a manifold"
    if ivp.y0.dtype.kind != "f" or hasattr(ivp, "complete") or type(ivp) is not IVP:
        return "resets are followed along surfaces for real problems M y' = f(t, y) only"
    return ""


def holding(ivp: IVP) -> Holding | None:
    """The same problem with modes for states that are held; None where that is not known."""
    quiet = any(hasattr(event.function, "is_quiet") for event in ivp.events)  # done already
    if quiet or why_not_held(ivp):
        return None
    surfaces = _Surfaces(ivp)
    return Holding(
        surfaces.mode, FREE, ivp.y0, ivp.t_span, events=surfaces.events, surfaces=surfaces
    )


class _Surfaces:
    """Makes the modes: "free", and one for each set of events that hold the state."""

    def __init__(self, ivp: IVP) -> None:
        self.ivp = ivp
        self.now: tuple[int, ...] = ()
        self.held: dict[str, tuple[int, ...]] = {FREE: ()}
        self.spans: dict[str, float] = {}
        self.first: dict[int, float] = {}  # of what tells whether f leads off the surface
        self.said: list[str] = []
        mass = ivp.mass.toarray() if hasattr(ivp.mass, "toarray") else ivp.mass
        self.mass = mass
        self.g = [ivp.bind(event.function) for event in ivp.events]
        self.resets = [event.reset and ivp.bind(event.reset) for event in ivp.events]
        self.events = [self._quiet(k, event) for k, event in enumerate(ivp.events)]

    def _quiet(self, k: int, event: Event) -> Event:
        """The event, which does not happen while it holds the state."""
        g = self.g[k]

        def function(t: float, y: Array, *p: Any) -> Any:
            return 1.0 if k in self.now else g(t, y)

        function.is_quiet = True  # type: ignore[attr-defined]
        return replace(event, function=function)

    def name(self, k: int) -> str:
        return repr(self.ivp.events[k].name or k)

    def hold(self, key: str, k: int, t: float, y: Array) -> str | None:
        """Key of the mode in which event k holds the state, too."""
        chosen = tuple(sorted({*self.held[key], k}))
        speed = float(np.abs(self.slope(t, y)).max(initial=0.0))
        t0, t1 = self.ivp.t_span
        span = PART * min(abs(t1 - t0), float(np.abs(y).max(initial=0.0)) / speed or np.inf)
        ahead = y + span * self.slope(t, y)
        after = self.settled(chosen, t + span, ahead)
        if after is None:
            return None
        for j in chosen:  # do the resets keep it on the surface?
            through, left = (
                abs(float(np.ravel(self.g[j](t + span, x))[0])) for x in (ahead, after)
            )
            if left > ON_SURFACE * through + ROUNDING * float(np.abs(ahead).max()):
                return None
        found = "on " + ", ".join(self.name(j) for j in chosen)
        self.held[found] = chosen
        self.spans.setdefault(found, span)
        self.said.append(f"event {self.name(k)} held the state on its surface from t = {t:.9g} on")
        return found

    def slope(self, t: float, y: Array) -> Array:
        """y' where nothing holds it."""
        slope = np.asarray(self.ivp.rhs(t, y))
        return slope if self.mass is None else np.linalg.solve(self.mass, slope)

    def settled(self, chosen: Sequence[int], t: float, y: Array) -> Array | None:
        """R∞: the state after all resets; None if they do not come to an end."""
        enough = SETTLED * float(np.abs(y).max(initial=0.0))
        for _ in range(MOST_RESETS):
            before = y
            for k in chosen:
                y = np.array(self.resets[k](t, y.copy()), dtype=float)
            if np.abs(y - before).max() <= enough:
                return y
        return None

    def mode(self, key: str) -> Mode:
        """Make a mode."""
        if not (chosen := self.held[key]):
            return _Entered(self.ivp.with_(events=()), (), self, chosen)
        h = self.spans[key]

        def field(t: float, y: Array, *p: Any) -> Array:
            slope = self.slope(t, y)
            ahead = [self.settled(chosen, t + j * h, y + j * h * slope) for j in range(5)]
            if any(x is None for x in ahead):
                raise ArithmeticError(f"resets of {key[3:]} do not come to an end at t = {t:.9g}")
            weights = np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / (12.0 * h)
            rate: Array = weights @ np.array(ahead)
            return rate

        def project(t: float, y: Array, *p: Any) -> Array:
            after = self.settled(chosen, t, y)
            return y if after is None else after

        leaving = []
        for k in chosen:
            rest = tuple(j for j in chosen if j != k)
            to = "on " + ", ".join(self.name(j) for j in rest) if rest else FREE
            self.held[to] = rest
            self.spans.setdefault(to, h)
            leaving.append(Transition(self._lead(k, h), -1, to=to, name=f"leaves {k}"))
        plain: dict[str, Any] = {"jac": None, "mass": None, "invariants": {}, "events": ()}
        problem = self.ivp.with_(f=field, project=project, **plain, jac_sparsity=None)
        return _Entered(problem, leaving, self, chosen)

    def _lead(self, k: int, h: float) -> Callable[..., float]:
        """One where the mode is entered; falls below zero where f leads off the surface of event k.

        g̈ along f, from a state on the surface, by a second difference, in parts of the first one.
        """
        g = self.g[k]

        def lead(t: float, y: Array, *p: Any) -> float:
            values = []
            for s in (-h, 0.0, h):
                middle = y + 0.5 * s * self.slope(t, y)
                there = y + s * self.slope(t + 0.5 * s, middle)
                values.append(float(np.ravel(g(t + s, there))[0]))
            second = values[0] - 2.0 * values[1] + values[2]
            first = self.first.setdefault(k, second)
            return second / first + LEAVES if first else 1.0

        return lead


class _Entered(Mode):
    """A mode that tells its events which of them hold the state."""

    def __init__(
        self, problem: IVP, transitions: Any, surfaces: _Surfaces, chosen: tuple[int, ...]
    ) -> None:
        super().__init__(problem, transitions)
        self.surfaces, self.chosen = surfaces, chosen

    def ivp(self, t: float, y: Any, t1: float, params: Any = None) -> IVP:
        """The problem of this mode from (t, y) on."""
        self.surfaces.now = self.chosen
        self.surfaces.first.clear()
        return super().ivp(t, y, t1, params)
