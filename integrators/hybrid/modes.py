"""Hybrid problems: a motion that follows one law at a time, and what leads from one to the next.

A :class:`Mode` is an initial value problem without its start: a right-hand side of its own
dimension, with its own mass matrix, constraints, manifold and events. A :class:`Transition` is an
event at which the motion goes on in another mode, from a state that a map makes of the last one.
:class:`Hybrid` holds the modes, by name or as a function that makes them when they are entered
(contact states are too many to be written down), and says where the motion starts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP, Event, state_array, time_span

__all__ = ["AfterReset", "Exit", "Hybrid", "Mode", "Resumed", "Transition"]

#: Options of ``solve`` that a mode may have of its own.
OWN_OPTIONS = (
    *("method", "step", "rtol", "atol", "controller", "norm"),
    *("first_step", "max_step", "min_step", "kinks"),
)
MOST_TRANSITIONS = 100_000


@dataclass(frozen=True)
class Resumed(Event):
    """An event of a run that goes on: where g vanishes but for rounding, it has been left."""


@dataclass(frozen=True)
class Transition(Event):
    """An event at which the motion goes on in another mode.

    Parameters
    ----------
    function
        ``g(t, y)``, or ``g(t, y, p)`` if the mode has parameters.
    direction
        +1: where g rises through zero, −1: where it falls, 0: both.
    to
        The mode that follows: its key, or a function ``to(t, y)`` that returns it.
    map
        ``map(t, y)`` returns the state in which that mode is entered; by default y itself.
    jump
        In place of ``to`` and ``map``: ``jump(t, y)`` returns the key and the state together.
    at_entry
        A transition with a direction is a guard: if g is on the far side already when the mode is
        entered, or zero and on its way there, the transition is taken at once. False: only where g
        passes through zero later on.
    name
        For tables and plots.

    Examples
    --------
    >>> off = Transition(lambda t, y: y[0] - 22.0, direction=+1, to="cooling")
    """

    terminal: bool | int = True
    to: Any = None
    map: Callable[..., Any] | None = None
    jump: Callable[..., Any] | None = None
    at_entry: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terminal is not True or self.reset is not None:
            raise TypeError(
                "a Transition has no `terminal` and no `reset`: it ends its mode, and `map` makes "
                "the state in which the next one starts"
            )
        if (self.to is None) == (self.jump is None) or (self.jump and self.map):
            raise TypeError(
                "a Transition needs `to`, the key of the mode that follows, and perhaps `map`; or "
                f"`jump` alone, which returns both; got to={self.to!r}, map={self.map!r}, "
                f"jump={self.jump!r}"
            )
        for name in ("map", "jump"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function {name}(t, y), got {function!r}")

    def near_at_entry(self, t: float, y: NDArray[Any]) -> bool:
        """Whether g may vanish where a mode is entered; False saves looking at it there."""
        return True

    def follow(self, bind: Callable[..., Any], t: float, y: NDArray[Any]) -> tuple[Any, Any]:
        """Key and state of what follows; ``bind`` fills in the parameters of the mode."""
        label = f"transition {self.name!r}" if self.name else "a transition"
        if self.jump is not None:
            value = bind(self.jump)(t, y.copy())
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise TypeError(
                    f"the jump of {label} returned {value!r}; expected the key of a mode and a "
                    "state, (key, y)"
                )
            return hashable(value[0]), value[1]
        key = hashable(bind(self.to)(t, y.copy()) if callable(self.to) else self.to)
        state = y if self.map is None else bind(self.map)(t, y.copy())
        if state is None:
            raise TypeError(
                f"the map of {label} returned None; expected the state in which mode {key!r} is "
                "entered (is a return statement missing? changing y in place is not enough)"
            )
        return key, state


@dataclass(frozen=True)
class Exit(Transition):
    """A transition out of a mode that is known to have been entered on its right side.

    ``floor`` is how far g may be on the other side by errors of computation; by default rounding.
    """

    floor: float | None = None


@dataclass(frozen=True)
class AfterReset(Transition):
    """A transition that is taken after any reset: which law holds then must be looked at anew."""


class Mode:
    """One law of motion of a :class:`Hybrid`.

    Parameters
    ----------
    problem
        An :class:`IVP` (of ``as_ivp``, ``as_dae``, …), or a function f(t, y). Its t_span and y0
        are those of the run, except that a run starts with the y0 and t_span of its first mode if
        nothing else is given. Its events are those of the mode.
    transitions
        :class:`Transition` objects. If several are due at one instant, the first is taken.
    zeno
        Where the motion goes on after infinitely many events in finite time, as of a ball that
        bounces ever lower: the key of a mode, or (key, map), with a map of the limiting state.
    options
        Options of ``solve`` for this mode alone: method, step, rtol, atol, controller, norm,
        first_step, max_step, min_step, kinks.

    Examples
    --------
    >>> fall = Mode(lambda t, y: [y[1], -9.81], [Transition(lambda t, y: y[0], -1, to="rest")])
    """

    #: Whether the mode that `zeno` names looks itself at what piles up without a series.
    judges_piles: ClassVar[bool] = False

    def __init__(
        self,
        problem: IVP | Callable[..., Any],
        transitions: Sequence[Transition] | Transition = (),
        zeno: Any = None,
        **options: Any,
    ) -> None:
        if not isinstance(problem, IVP) and not callable(problem):
            raise TypeError(f"a mode is an IVP or a function f(t, y); got {problem!r}")
        if isinstance(transitions, Transition):
            transitions = (transitions,)
        for transition in transitions:
            if not isinstance(transition, Transition):
                raise TypeError(
                    f"transitions of a mode are Transition objects; got {transition!r} (other "
                    "events belong to its IVP)"
                )
        for name in options:
            if name not in OWN_OPTIONS:
                raise TypeError(
                    f"a mode has no option {name!r}; it may have its own {', '.join(OWN_OPTIONS)}, "
                    "everything else is given to solve"
                )
        self.problem, self.transitions, self.options = problem, tuple(transitions), options
        self.zeno = zeno

    def ivp(self, t: float, y: Any, t1: float, params: Any = None) -> IVP:
        """The problem of this mode from (t, y) on."""
        problem = self.problem
        changes: dict[str, Any] = {"y0": y, "t_span": (t, t1)}
        if params is not None:
            changes["params"] = params
        return problem.with_(**changes) if isinstance(problem, IVP) else IVP(problem, **changes)

    def __repr__(self) -> str:
        name = getattr(self.problem, "name", "") or getattr(self.problem, "__name__", "")
        return f"<Mode {name or 'unnamed'}: {len(self.transitions)} transitions>"


@dataclass(frozen=True, eq=False)
class Hybrid:
    """A motion through several modes, one after the other.

    Parameters
    ----------
    modes
        The modes: a dictionary of :class:`Mode` objects (or IVPs, or functions f(t, y): modes
        that nothing leads out of), or a function ``modes(key)`` that makes one when it is first
        entered.
    start
        Key of the first mode.
    y0, t_span
        Where the motion starts and for how long; by default those of the first mode's IVP.
    params
        Parameters for all modes; by default each has its own.
    events
        Events that are watched in every mode. They come first in ``Solution.t_events``.
    zeno
        As in :class:`Mode`, for all modes that do not say.
    max_transitions
        After so many transitions a run ends, with ``Status.TOO_MANY_STEPS``.
    name
        For tables and plots.

    Examples
    --------
    A thermostat: cooling by T' = −T, and heating by T' = 30 − T.

    >>> from integrators import solve
    >>> cooling = Mode(lambda t, y: -y, Transition(lambda t, y: y[0] - 18, -1, to="heating"))
    >>> heating = Mode(lambda t, y: 30 - y, Transition(lambda t, y: y[0] - 22, +1, to="cooling"))
    >>> room = Hybrid({"cooling": cooling, "heating": heating}, "cooling", [20.0], (0, 2))
    >>> sol = solve(room, rtol=1e-9)
    >>> [(run.mode, round(run.start, 6)) for run in sol.modes[:3]]
    [('cooling', 0.0), ('heating', 0.105361), ('cooling', 0.510826)]
    >>> sol.mode(0.2)
    'heating'
    """

    modes: Mapping[Hashable, Any] | Callable[[Any], Any]
    start: Any
    y0: Any = None
    t_span: Any = None
    params: Any = None
    events: Any = ()
    zeno: Any = None
    max_transitions: int = MOST_TRANSITIONS
    name: str = ""
    _made: dict[Any, Mode] = field(default_factory=dict, init=False, repr=False)

    #: Whether the solution lists transitions among its events.
    shows_transitions: ClassVar[bool] = True
    #: Whether states are continuous, so that one at each transition is enough.
    continuous: ClassVar[bool] = False
    #: What should be told at the end of a run.
    said: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        if not callable(self.modes) and not isinstance(self.modes, Mapping):
            raise TypeError(
                f"modes must be a dictionary of modes or a function that makes one from its key; "
                f"got {self.modes!r}"
            )
        if int(self.max_transitions) < 1:
            raise ValueError(f"max_transitions must be at least 1, got {self.max_transitions}")
        events = self.events
        if callable(events) or isinstance(events, Event):
            events = (events,)
        set_field = object.__setattr__
        set_field(self, "events", tuple(Event.of(event) for event in events or ()))
        given = np.atleast_1d(np.asarray(() if self.params is None else self.params, dtype=float))
        set_field(self, "params", given if given.size else None)
        if self.shows_transitions and any(isinstance(e, Transition) for e in self.events):
            raise TypeError("events of a Hybrid lead to no mode; a Transition belongs to a Mode")
        if isinstance(self.modes, Mapping):
            self._check_targets()
        first = self.mode(self.start).problem
        set_field(self, "y0", self._own("y0", first, state_array))
        set_field(self, "t_span", self._own("t_span", first, time_span))
        t0, t1 = self.t_span
        if t1 < t0:
            raise ValueError(
                f"t_span = ({t0:g}, {t1:g}) runs backwards, and maps between modes are not known "
                "backwards; write the problem in the time s = −t, with its transitions reversed"
            )

    def _own(self, name: str, problem: Any, check: Callable[[Any], Any]) -> Any:
        given = getattr(self, name)
        if given is None:
            given = getattr(problem, name, None)
        if given is None:
            raise TypeError(f"a Hybrid whose first mode is a function f(t, y) needs {name}")
        return check(given)

    def _check_targets(self) -> None:
        """Names that no mode has are told before anything runs."""
        assert isinstance(self.modes, Mapping)
        for key in self.modes:
            mode = self.mode(key)
            targets = [(t.to, "a transition") for t in mode.transitions if not callable(t.to)]
            targets = [(to, what) for to, what in targets if to is not None]
            for zeno in (mode.zeno, self.zeno):
                if zeno is not None:
                    targets.append((zeno_target(zeno)[0], "zeno"))
            for to, what in targets:
                if to not in self.modes:
                    raise ValueError(
                        f"{what} of mode {key!r} leads to {to!r}, which is no mode; the modes are "
                        f"{', '.join(map(repr, self.modes))}"
                    )

    def mode(self, key: Any) -> Mode:
        """The mode of a key, made now if it is entered for the first time."""
        if (found := self._made.get(hashable(key))) is not None:
            return found
        if callable(self.modes):
            made = self.modes(key)
        elif key in self.modes:
            made = self.modes[key]
        else:
            raise ValueError(
                f"there is no mode {key!r}; the modes are {', '.join(map(repr, self.modes))}"
            )
        if not isinstance(made, Mode):
            made = Mode(made)
        self._made[key] = made
        return made

    @property
    def n(self) -> int:
        """Dimension of the state at the start."""
        return int(self.y0.size)

    def with_(self, **changes: Any) -> Hybrid:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        t0, t1 = self.t_span
        count = "modes made on entry" if callable(self.modes) else f"{len(self.modes)} modes"
        name = self.name or "unnamed"
        return f"<Hybrid {name}: {count}, t from {t0:g} to {t1:g}, starts in {self.start!r}>"


def hashable(key: Any) -> Any:
    """A key, if it can be one."""
    try:
        hash(key)
    except TypeError:
        raise TypeError(
            f"the key of a mode must be hashable (a name, a number, a tuple); got {key!r}"
        ) from None
    return key


def zeno_target(zeno: Any) -> tuple[Any, Callable[..., Any] | None]:
    """Key and map of what follows an accumulation of events."""
    if isinstance(zeno, tuple) and len(zeno) == 2 and callable(zeno[1]):
        return zeno[0], zeno[1]
    return zeno, None
