"""What is to be solved: data only.

An :class:`IVP` is M y' = f(t, y), y(t₀) = y₀, together with what is known about it: Jacobian,
events, projection, invariants, exact solution. ``solve`` accepts it; so does every tool that
compares methods.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .manifold import Manifold
from .mass import check_mass, divided

__all__ = ["IVP", "Event", "Schedule"]

RHS = Callable[..., Any]
P = ParamSpec("P")
T = TypeVar("T")
EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Event:
    """A function whose zeros along the solution are found and, if wished, acted on.

    Parameters
    ----------
    function
        ``g(t, y)`` (or ``g(t, y, p)`` if the problem has parameters), a real scalar.
    direction
        +1: only zeros where g rises along the integration, −1: only where it falls, 0: both. As in
        SciPy, this is the sense in which the run goes: backwards, g(t) itself falls at a zero of
        direction +1.
    terminal
        False: record and go on; True: stop at the first; n: stop at the n-th.
    reset
        ``reset(t, y) -> y_new``: the state jumps and the integration goes on from there. Events
        whose zeros lie closer together than rtol times the step (1e-9 of it, if the step is fixed)
        belong to one instant; their resets see each other's states, in the order of the list,
        until none is due. With a direction, a start on the surface that leads into it counts.
    name
        For tables and plots.

    Examples
    --------
    >>> bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.9 * y[1]])
    """

    function: Callable[..., Any]
    direction: float = 0.0
    terminal: bool | int = False
    reset: Callable[..., Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.terminal is None:  # as in SciPy
            object.__setattr__(self, "terminal", False)
        if self.direction is None:
            object.__setattr__(self, "direction", 0.0)
        if not callable(self.function):
            raise TypeError(f"an event is a function g(t, y); got {self.function!r}")
        if not isinstance(self.terminal, bool | int | np.integer) or self.terminal < 0:
            raise ValueError(
                f"terminal must be True, False or a positive count, got {self.terminal!r}"
            )
        if not isinstance(self.direction, int | float | np.number):
            raise ValueError(f"direction must be 1, -1 or 0, got {self.direction!r}")

    @classmethod
    def of(cls, event: Any) -> Event:
        """Accept an Event, or a function with SciPy's ``terminal`` and ``direction`` attributes."""
        if isinstance(event, Event):
            return event
        return cls(
            event,
            direction=float(getattr(event, "direction", None) or 0.0),
            terminal=getattr(event, "terminal", False),
            reset=getattr(event, "reset", None),
            name=getattr(event, "__name__", ""),
        )


@dataclass(frozen=True)
class Schedule:
    """What a problem has to do with the clock: times to step on, and what happens at instants.

    Parameters
    ----------
    times
        ``times(t0, t1)``: the times between them that steps end on, because f jumps there or has a
        kink, or because something is sampled.
    events
        Events of the problem itself. Unlike ``IVP.events`` they stay when other events are asked
        for; in a solution they come after these.
    start
        ``start(t0, y0)``: the state with which a run begins at t0.
    repeatable
        Whether the events compute, and do nothing else: only then is a run repeated unasked.
    """

    times: Callable[[float, float], Any]
    events: tuple[Event, ...] = ()
    start: Callable[[float, Any], Any] | None = None
    repeatable: bool = True


@dataclass(frozen=True)
class Recipe:
    """How an object was made: ``make(*arguments, **options)``, and what was changed afterwards.

    A problem made by tracing consists of functions that cannot be pickled. A recipe can, if its
    arguments can: forces given as functions must be found by their name, in a module.
    """

    make: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, changes: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a copy with further fields replaced."""
        return replace(self, changes={**self.changes, **changes})

    def follow(self) -> Any:
        """Make the object anew."""
        made = self.make(*self.arguments, **self.options)
        return made.with_(**self.changes) if self.changes else made


def from_recipe(make: Callable[P, T]) -> Callable[P, T]:
    """Let a function that makes problems remember how, so that they can be pickled.

    What it returns has ``with_(recipe=…)``. The function must be found by its name, in a module.

    Examples
    --------
    >>> @from_recipe
    ... def decay(rate):
    ...     return IVP(lambda t, y: -rate * y, [1.0], (0.0, 1.0), name="decay")
    >>> problem = decay(2.0).with_(t_span=(0, 3))
    >>> problem.recipe.arguments, problem.recipe.changes, problem.recipe.follow()
    ((2.0,), {'t_span': (0, 3)}, <IVP decay: n = 1, t from 0 to 3>)
    """

    @wraps(make)
    def remembered(*arguments: P.args, **options: P.kwargs) -> T:
        made: Any = make(*arguments, **options)
        if not hasattr(made, "recipe"):  # a problem of another kind
            return made
        return made.with_(recipe=Recipe(remembered, _own(arguments), _own(options)))

    return remembered


def _own(value: Any) -> Any:
    """Arguments that nobody else will change: arrays, and what holds them, copied."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    if type(value) is dict:
        return {key: _own(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, eq=False)
class IVP:
    """An initial value problem M y' = f(t, y [, p]), y(t0) = y0.

    Parameters
    ----------
    f
        ``f(t, y)`` or, with parameters, ``f(t, y, p)``; returns dy/dt of the shape of y0.
        A traced function is used at full speed.
    y0
        Initial state, real or complex, one-dimensional.
    t_span
        (t0, t1); t1 < t0 integrates backwards.
    params
        Passed to f as one array p, if not empty.
    jac
        ∂f/∂y: a function of the arguments of f, a constant matrix, dense or sparse, or None.
    jac_sparsity
        Pattern of ∂f/∂y; finite differences then group columns.
    mass
        Constant matrix M, possibly singular (a differential-algebraic equation), or a function
        M(t, y) or M(t, y, p), regular but for rows and columns that are always zero; f is then
        divided by it (:mod:`integrators.mass`). None: y' = f.
    index
        For a singular M: differentiation index (1, 2 or 3) of each component; higher-index
        components are scaled in the error test as in RADAU5.
    events
        :class:`Event` objects or SciPy-style event functions.
    project
        ``project(t, y) -> y`` is applied after each accepted step.
    nonnegative
        Components that are never negative (concentrations, populations): True for all, or their
        numbers. Adaptive steps that would make one negative are rejected and tried shorter; nothing
        is clipped.
    invariants
        Named functions ``g(t, y)`` that are constant along the exact solution.
    exact
        ``exact(t) -> y``, where the solution is known.
    references
        Many-digit solution values at some times, ``{t: y}``.
    name, source
        For tables and plots; ``source`` says where the problem and its references come from.
    state_names
        Names of the components, for plots; y[0], y[1], … if not given.
    units
        Units of components by name, for tables.
    admit
        ``admit(y0) -> y0`` looks at every state that a run is to start with, here, in
        :meth:`with_`, ``solve`` and ``solve_many``: it brings it to its proper form (unit
        quaternions), or raises ValueError.
    manifold
        A :class:`Manifold`, if the solution lives on one; :class:`MuntheKaas` methods solve the
        problem there. All other methods use f.
    review
        ``review(problem, t, y, rtol)`` looks at a run after its end: the times t and states y
        (in columns) of its steps; rtol is None for a fixed step. It returns None, or a
        :class:`Status` (or None to leave it) and a text that is added to the solution's message.
        For what only shows afterwards, and what the problem knows better than the method.
    watch
        ``watch(problem, t, y)`` returns what should not drift along a run, for
        :attr:`Solution.quality`: a dictionary of (times, values there, scale, factor), where the
        scale is what a change is compared with and the factor multiplies what the tolerance
        allows. By default the invariants.
    distance
        ``distance(problem, t, y, z)`` returns how far apart two states are, in parts of the size of
        what moves; by default that of the component that is furthest apart, in parts of its size.
    observe
        ``observe(solution)`` returns what :attr:`Solution.observed` shows: drift of constraints,
        multipliers, energy, … along a run.
    directed
        ``directed(±1)`` returns the fields (f, jac, …) for time that runs forwards or backwards,
        where they differ: what pulls errors down as time grows lets them grow as it runs back. The
        fields given are those of `t_span`; :meth:`with_` follows when another one turns round.
    schedule
        A :class:`Schedule`: times that every run steps on, events that belong to the problem.
    recipe
        How the problem was made, a function with its arguments: pickled in place of the problem's
        own functions; see :func:`from_recipe`.
    """

    f: RHS
    y0: Any
    t_span: tuple[float, float]
    params: Any = ()
    jac: Any = None
    jac_sparsity: Any = None
    mass: Any = None
    index: Any = None
    events: Any = ()
    project: Callable[..., Any] | None = None
    nonnegative: Any = ()
    invariants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    exact: Callable[[float], Any] | None = None
    references: Mapping[float, Any] = field(default_factory=dict)
    name: str = ""
    source: str = ""
    manifold: Manifold | None = None
    state_names: Sequence[str] = ()
    review: Callable[..., Any] | None = None
    observe: Callable[[Any], Any] | None = None
    watch: Callable[..., Any] | None = None
    distance: Callable[..., Any] | None = None
    directed: Callable[[int], Mapping[str, Any]] | None = None
    recipe: Recipe | None = None
    schedule: Schedule | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    admit: Callable[[NDArray[Any]], Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise TypeError(f"f must be a function f(t, y); got {self.f!r}")
        if self.manifold is not None and not isinstance(self.manifold, Manifold):
            raise TypeError(
                f"manifold must be an integrators.Manifold, got {self.manifold!r}; a group becomes "
                "one by group.manifold(velocity)"
            )
        functions = {
            "review": "problem, t, y, rtol",
            "observe": "solution",
            "watch": "problem, t, y",
            "distance": "problem, t, y, z",
        }
        for name, arguments in functions.items():
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function {name}({arguments}), got {function!r}")
        t_span, given = in_order(self.t_span, self.y0)
        y0 = state_array(given)
        if self.admit is not None:
            y0 = state_array(self.admit(y0))
        span = time_span(t_span)
        params = np.atleast_1d(np.asarray(self.params, dtype=np.float64))
        if params.ndim != 1:
            raise ValueError(f"params must be a scalar or a flat list, got shape {params.shape}")
        events = self.events
        if callable(events) or isinstance(events, Event):
            events = (events,)
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "y0", y0)
        set_field(self, "t_span", span)
        set_field(self, "params", params)
        set_field(self, "nonnegative", _component_numbers(self.nonnegative, y0))
        set_field(self, "events", tuple(Event.of(e) for e in events or ()))
        set_field(self, "invariants", dict(self.invariants))
        set_field(self, "references", {float(t): np.array(y) for t, y in self.references.items()})
        set_field(self, "state_names", tuple(self.state_names))
        if self.state_names and len(self.state_names) != y0.size:
            raise ValueError(
                f"state_names must have one name per component ({y0.size}), got "
                f"{len(self.state_names)}"
            )
        if self.index is not None:
            set_field(self, "index", _index_array(self.index, y0.size))
        if callable(self.mass):
            if self.jac is not None or self.jac_sparsity is not None:
                raise ValueError(
                    "jac and jac_sparsity speak of f, but with mass(t, y) the slope is M⁻¹ f: "
                    "leave them out (exact ones are found if f is traced, others by differences)"
                )
            takes = (accepts_params(self.f), accepts_params(self.mass))
            f, left = divided(self.f, self.mass, span[0], y0, params, takes)
            set_field(self, "f", f)
            set_field(self, "mass", left)
        elif self.mass is not None:
            check_mass(self.mass, y0)
        if hasattr(self.f, "with_parameters"):  # a traced f, and parameters of events alone
            set_field(self, "f", self.f.with_parameters(params.size))

    @property
    def n(self) -> int:
        """Dimension of the state."""
        return int(self.y0.size)

    def rhs(self, t: float, y: ArrayLike) -> NDArray[Any]:
        """Evaluate f with the problem's parameters."""
        return np.asarray(self.bind(self.f)(t, np.asarray(y)))

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function(t, y)`` with the parameters filled in, if it takes them."""
        if self.params.size == 0 or not accepts_params(function):
            return function
        p = self.params
        return lambda t, y: function(t, y, p)

    def with_(self, **changes: Any) -> IVP:
        """Return a copy with some fields replaced; what depends on the way of time follows it."""
        asked = dict(changes)
        if "f" in changes:
            changes.setdefault("directed", None)  # it knew the ways of another f
        elif self.directed is not None and "t_span" in changes:
            way = direction(time_span(changes["t_span"]))
            if way != direction(self.t_span):
                changes = {**self.directed(way), **changes}
        if self.recipe is not None and "recipe" not in changes:
            changes["recipe"] = self.recipe.changed(asked)
        return replace(self, **changes)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.recipe is None:
            return super().__reduce_ex__(protocol)
        return Recipe.follow, (self.recipe,)

    def __copy__(self) -> IVP:
        return replace(self)

    def __deepcopy__(self, memo: Any) -> IVP:
        return replace(self)  # arrays are copied, functions never are

    def for_run(self) -> IVP:
        """Return the problem for one run, with its own events among the others.

        Those whose f remembers something return a copy.
        """
        if self.schedule is None or not self.schedule.events:
            return self
        if self.t_span[1] < self.t_span[0]:
            raise ValueError(
                f"t_span = ({self.t_span[0]:g}, {self.t_span[1]:g}) runs backwards, but what is "
                "sampled forgets what was held before; run forwards"
            )
        events = (*self.events, *self.schedule.events)
        begin = self.schedule.start
        y0 = self.y0 if begin is None else begin(self.t_span[0], self.y0)
        rest = replace(self.schedule, events=(), start=None)
        return replace(self, y0=y0, events=events, schedule=rest)

    def reference(self, t: float) -> NDArray[Any] | None:
        """Solution at time t: exact if known, else from the table of references, else None."""
        if self.exact is not None:
            return np.atleast_1d(np.asarray(self.exact(t)))
        for known, y in self.references.items():
            if np.isclose(known, t, rtol=4e-16, atol=0.0):
                return np.asarray(y)
        return self.y0 if t == self.t_span[0] else None

    def __repr__(self) -> str:
        t0, t1 = self.t_span
        return f"<IVP {self.name or 'unnamed'}: n = {self.n}, t from {t0:g} to {t1:g}>"


def state_array(y0: Any) -> NDArray[Any]:
    """Check an initial state and return it as a fresh float or complex vector."""
    try:
        array = np.array(y0)
        if has_text(array):
            raise TypeError
        if array.dtype.kind not in "biufc":
            array = np.array(y0, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"y0 must be a list of numbers, got {y0!r}") from None
    if array.dtype in (np.longdouble, np.clongdouble) and np.finfo(array.dtype).eps < EPS:
        raise TypeError(
            f"y0 is of type {array.dtype}, and runs are in double precision: its further digits "
            "would be lost; solve(f, t_span, y0, precision=20) keeps them, y0.astype(float) drops "
            "them"
        )
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(
            f"y0 must be one-dimensional, got shape {array.shape}; flatten it and reshape inside f"
        )
    if array.size == 0:
        raise ValueError("y0 is empty; expected at least one component")
    array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    if not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"y0[{bad}] is {array[bad]}; the initial state must be finite")
    array.setflags(write=False)
    return array


def has_text(array: NDArray[Any]) -> bool:
    """Whether there are strings where numbers should be; NumPy would read them."""
    if array.dtype.kind == "O":
        return any(isinstance(x, str | bytes) for x in array.ravel())
    return array.dtype.kind in "US"


def in_order(t_span: Any, y0: Any) -> tuple[Any, Any]:
    """Return (t_span, y0), exchanged where only the other way round makes sense.

    ``IVP(f, y0, t_span)`` and ``solve(f, t_span, y0)`` differ in the order of their arguments, and
    everyone confuses them sooner or later. An interval is two numbers: if the state has two and the
    interval has not, each is taken for the other. Two components and two times cannot be told
    apart; then the documented order counts, with a warning if the state is written as intervals
    mostly are, and the interval as states are.

    Examples
    --------
    >>> in_order([1.0, 0.0, 2.0], (0.0, 10.0))
    ((0.0, 10.0), [1.0, 0.0, 2.0])
    """
    if isinstance(t_span, tuple) and len(t_span) == 2:
        return t_span, y0
    try:
        exchanged = np.shape(t_span) != (2,) and np.shape(y0) == (2,)
    except ValueError:  # ragged: whoever needs it says so
        exchanged = False
    if isinstance(y0, tuple) and len(y0) == 2 and not exchanged:
        warnings.warn(
            f"y0 = {y0!r} is written like an interval, and t_span = {t_span!r} like a state; the "
            "order of arguments is solve(f, t_span, y0) and IVP(f, y0, t_span). If it is meant so, "
            "write the state as a list, or the interval as a tuple",
            stacklevel=3,
        )
    return (y0, t_span) if exchanged else (t_span, y0)


def time_span(t_span: Sequence[float]) -> tuple[float, float]:
    """Check (t0, t1)."""
    try:
        t0, t1 = (float(t) for t in t_span)
    except (TypeError, ValueError):
        raise ValueError(
            f"t_span must be two times (t0, t1), got {t_span!r}; the order of arguments is "
            "solve(f, t_span, y0) and IVP(f, y0, t_span)"
        ) from None
    if not (np.isfinite(t0) and np.isfinite(t1)):
        raise ValueError(
            f"t_span must be finite, got ({t0}, {t1}); give a time that is late enough, and an "
            "event with terminal=True or a callback to end the run before"
        )
    return t0, t1


def direction(t_span: Sequence[float]) -> int:
    """+1 forwards in time, −1 backwards.

    Examples
    --------
    >>> direction((0.0, 1.0)), direction((1.0, 0.0))
    (1, -1)
    """
    return -1 if t_span[1] < t_span[0] else 1


def accepts_params(function: Callable[..., Any]) -> bool:
    """Whether a function takes a third positional argument (the parameters)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # a compiled function that does not tell
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= 3 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _index_array(index: Any, n: int) -> NDArray[np.int64]:
    array = np.asarray(index, dtype=np.int64)
    if array.shape != (n,):
        raise ValueError(f"index must have one entry per component ({n}), got shape {array.shape}")
    if array.min() < 0 or array.max() > 3:
        raise ValueError(f"index entries must be 0 (differential), 1, 2 or 3; got {index!r}")
    return array


def _component_numbers(nonnegative: Any, y0: NDArray[Any]) -> NDArray[np.int64]:
    """Check which components are never negative; return their numbers."""
    n = y0.size
    if nonnegative is None or nonnegative is False:
        nonnegative = ()
    given = np.arange(n) if nonnegative is True else np.atleast_1d(np.asarray(nonnegative))
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, dtype=np.int64)
    plain = given.ndim == 1 and given.dtype.kind in "iuf"
    numbers = given.astype(np.int64) if plain else np.zeros(0, dtype=np.int64)
    if not plain or np.any(numbers != given):
        raise ValueError(
            f"nonnegative must be True or the numbers of components, got {nonnegative!r}"
        )
    if numbers.size and (y0.dtype.kind == "c" or not -n <= numbers.min() <= numbers.max() < n):
        raise ValueError(
            f"nonnegative must name components 0 … {n - 1} of a real state, got {nonnegative!r}"
        )
    numbers = np.unique(numbers % n)
    for i in numbers:
        if y0[i] < 0:
            raise ValueError(f"y0[{i}] = {y0[i]:g} is negative, but component {i} must never be")
    return numbers
