"""What is to be done after each step in lanes, as code and arrays: see ``hooks``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping.watch import SAMPLES
from .hooks import NODES
from .rows import LANES

__all__ = ["LaneTasks", "Noted", "lane_tasks"]

MOST_EVENTS = 64  # occurrences of an event that are kept in lanes; runs with more are done alone

Array = NDArray[np.float64]


@dataclass
class LaneTasks:
    """Events, projection and functions to keep, in lanes.

    Attributes
    ----------
    events, project, kept
        Machine code: all event functions; the projected state with a number that is at most 1 if
        the projection is good; all functions that are kept. None where there is none.
    rates, resets
        Machine code: how fast event functions change along the motion, and the states after all
        events, one behind the other. None where no event has a reset.
    directions, terminals, has_reset
        Of the events; terminal 0 means that they end nothing.
    kinds
        Of what is kept: one of ``hooks.LARGEST``, … for each function.
    """

    events: Any = None
    project: Any = None
    kept: Any = None
    rates: Any = None
    resets: Any = None
    directions: Array = field(default_factory=lambda: np.zeros(0))
    terminals: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    has_reset: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kinds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __bool__(self) -> bool:
        return any(code is not None for code in (self.events, self.project, self.kept))

    @property
    def needs_dense(self) -> bool:
        """Whether states inside of steps are asked for."""
        return self.events is not None or self.kept is not None

    def notes(self, m: int, n: int) -> Noted:
        """Room for what m runs note."""
        return Noted(m, n, len(self.directions), len(self.kinds))

    def fields(self, n: int, notes: Noted) -> dict[str, Any]:
        """Fields of the workspace of one thread."""
        ne, nk = len(self.directions), len(self.kinds)
        address = {
            name: 0 if code is None else code.address
            for name, code in (
                ("events", self.events),
                ("project", self.project),
                ("kept", self.kept),
                ("rates", self.rates),
                ("resets", self.resets),
            )
        }
        return dict(
            **address,
            old=np.zeros((2, LANES)),
            y_old=np.zeros((n, LANES)),
            theta=np.zeros(LANES),
            end=np.ones(LANES),
            projected=np.zeros((n + 1, LANES)),
            direction=self.directions,
            terminal=self.terminals,
            has_reset=self.has_reset,
            after=np.zeros((max(ne * n, ne), LANES)),
            jump=np.full(LANES, -1, dtype=np.int64),
            reset_time=np.full(LANES, np.nan),
            g=np.zeros((ne, LANES)),
            g_last=np.zeros((ne, LANES)),
            g_samples=np.zeros((len(SAMPLES), ne, LANES)),
            zero=np.zeros((ne, LANES)),
            bracket=np.zeros((5, LANES)),
            event_count=notes.counts,
            event_t=notes.times,
            event_y=notes.states,
            kept_kind=self.kinds,
            value=np.zeros((nk, LANES)),
            seen=np.zeros((len(NODES), nk, LANES)),
            kept_value=notes.values,
            kept_time=notes.value_times,
        )


class Noted:
    """What runs in lanes note: occurrences of events, and values of functions."""

    def __init__(self, m: int, n: int, events: int, kept: int) -> None:
        self.counts = np.zeros((m if events else 0, events), dtype=np.int64)
        self.times = np.zeros((m if events else 0, events, MOST_EVENTS))
        self.states = np.zeros((m if events else 0, events * MOST_EVENTS, n))
        self.values = np.zeros((m if kept else 0, kept))
        self.value_times = np.zeros((m if kept else 0, kept))

    def occurrences(self, run: int) -> tuple[list[Array], list[Array]]:
        """Times and states of the events of one run, as in a Solution."""
        counts = self.counts[run] if self.counts.size else []
        times = [self.times[run, e, :c].copy() for e, c in enumerate(counts)]
        states = [
            self.states[run, e * MOST_EVENTS : e * MOST_EVENTS + c].copy()
            for e, c in enumerate(counts)
        ]
        return times, [s if len(s) else np.zeros((0,)) for s in states]


def lane_tasks(ivp: IVP, kept: Sequence[tuple[int, Any]] = ()) -> LaneTasks | str:
    """Compile what a problem asks for after each step; or say why that has no place in lanes.

    `kept` are pairs of a kind and a traced function g(t, y [, p]) of one value.
    """
    from ...tracing import Traced, traced

    n, k = ivp.n, ivp.params.size
    tasks = LaneTasks()
    functions = [event.function for event in ivp.events]
    if not all(isinstance(g, Traced) for g in functions):
        return "an event function is not traced"
    if functions:
        tasks.events = _together(functions, n, k).machine_code(LANES)
        tasks.directions = np.array([float(e.direction) for e in ivp.events])
        tasks.terminals = np.array([int(e.terminal) for e in ivp.events], dtype=np.int64)
        tasks.has_reset = np.array([int(e.reset is not None) for e in ivp.events], dtype=np.int64)
    if tasks.has_reset.any():
        if not all(e.reset is None or isinstance(e.reset, Traced) for e in ivp.events):
            return "the reset of an event is not traced"
        tasks.resets = _resets(ivp, n, k).machine_code(LANES)
        tasks.rates = _rates(ivp.f, functions, n, k).machine_code(LANES)
    if ivp.project is not None:
        unrolled = getattr(ivp.project, "unrolled", None)
        code = None if unrolled is None else unrolled()
        if code is not None and code.k != k:
            code = _with_parameters(code, n, k)
        if isinstance(ivp.project, Traced):
            project = ivp.project

            def checked(t: Any, y: Any, p: Any = ()) -> Any:
                return np.array([*(project(t, y, p) if project.k else project(t, y)), 0.0])

            code = traced(checked, n=n, params=k, outputs=n + 1)
        if code is None:
            return "its projection is not traced"
        tasks.project = code.machine_code(LANES)
    if kept:
        tasks.kept = _together([g for _, g in kept], n, k).machine_code(LANES)
        tasks.kinds = np.array([kind for kind, _ in kept], dtype=np.int64)
    return tasks


def _together(functions: Sequence[Any], n: int, k: int) -> Any:
    """Several traced functions of one value as one."""
    from ...tracing import traced

    def values(t: Any, y: Any, p: Any = ()) -> Any:
        return np.array(
            [np.ravel(g(t, y, p) if _parameters(g, k) else g(t, y))[0] for g in functions]
        )

    return traced(values, n=n, params=k, outputs=len(functions))


def _resets(ivp: IVP, n: int, k: int) -> Any:
    """States after all events, one behind the other; the same state where there is no reset."""
    from ...tracing import traced

    def states(t: Any, y: Any, p: Any = ()) -> Any:
        after = []
        for reset in (event.reset for event in ivp.events):
            if reset is None:
                after.append(y)
            else:
                after.append(np.ravel(reset(t, y, p) if _parameters(reset, k) else reset(t, y)))
        return np.concatenate(after)

    return traced(states, n=n, params=k, outputs=n * len(ivp.events))


def _rates(f: Any, functions: Sequence[Any], n: int, k: int) -> Any:
    """How fast event functions change along the motion: ∂g/∂t + ∂g/∂y f."""
    from ...tracing import traced

    slope, values = traced(f, n=n, params=k or None), _together(functions, n, k)

    def rates(t: Any, y: Any, p: Any = ()) -> Any:
        more = (p,) if k else ()
        along = values.jacobian()(t, y, *more) @ slope(t, y, *more)
        return along + values.time_derivative()(t, y, *more)

    return traced(rates, n=n, params=k, outputs=len(functions))


def _parameters(g: Any, k: int) -> bool:
    """Whether a traced function wants the parameters; one that was not called yet may not know."""
    if g._parameters is not None:
        return bool(g._parameters)
    return bool(k and g._takes_p)


def _with_parameters(code: Any, n: int, k: int) -> Any:
    """A traced function without parameters as one of k, which it does not use."""
    from ...tracing import traced

    return traced(lambda t, y, p: code(t, y), n=n, params=k, outputs=code.m)
