"""What the elements of a model have to do with the clock, as the schedule of a problem.

Tables have kinks, on which steps end. Sampled controllers act at instants: events of the problem,
whose times are known, and whose resets change own states only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import Event, Schedule

from ..checks import Array
from ..dynamics.acting import look
from ..elements import Sampled, SampledPID

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["is_sampled", "refuse_sampled", "scheduled"]


def is_sampled(model: Model) -> bool:
    """Whether some element acts at instants."""
    return any(isinstance(named.element, Sampled) for named in model.elements)


def refuse_sampled(model: Model, what: str) -> None:
    """Raise where instants would be passed over."""
    for named in model.elements:
        if isinstance(named.element, Sampled):
            raise ValueError(
                f"{what} does not know the instants of sampled elements such as {named.name!r}; "
                "use a continuous controller (PID) there"
            )


def _kinks(model: Model) -> Array:
    """Times at which tables in elements have kinks."""
    found = [np.zeros(0)]
    for named in model.elements:
        if is_dataclass(named.element):
            values = [getattr(named.element, f.name) for f in fields(named.element)]
            found += [np.ravel(value.kinks) for value in values if hasattr(value, "kinks")]
    return np.unique(np.concatenate(found))


def scheduled(problem: Any, model: Model, model_of: Callable[[Any], Model] | None = None) -> Any:
    """Return the problem with the schedule that the elements of its model make.

    Parameters
    ----------
    problem, model
        A problem of this model, in whatever variables.
    model_of
        Model of a run with the parameters p, for problems of families.
    """
    kinks = _kinks(model)
    sampled = [named for named in model.elements if isinstance(named.element, Sampled)]
    if not kinks.size and not sampled:
        return problem
    names = list(problem.state_names)
    places: dict[str, slice] = {}
    for named in sampled:
        if named.state_names[0] not in names:
            refuse_sampled(model, f"{problem!r}")
        at = names.index(named.state_names[0])
        places[named.name] = slice(at, at + len(named.state_names))

    def times(t0: float, t1: float) -> Array:
        found = [np.asarray(s.element.stops(t0, t1)) for s in sampled]  # type: ignore[attr-defined]
        return np.unique(np.concatenate([kinks, *found]))

    def start(t0: float, y0: Array) -> Array:
        y = y0.copy()
        for named in sampled:
            place, element = places[named.name], named.element
            y[place] = element.at_time(y[place], t0)  # type: ignore[attr-defined]
        return y

    events = []
    for named in sampled:
        for what, when, _ in named.element.instants():  # type: ignore[attr-defined]
            events.append(
                _instant(problem, model, model_of, named.name, what, when, places[named.name])
            )
    repeatable = all(isinstance(named.element, SampledPID) for named in sampled)
    return problem.with_(schedule=Schedule(times, tuple(events), start, repeatable))


def _instant(
    problem: Any,
    model: Model,
    model_of: Callable[[Any], Model] | None,
    name: str,
    what: str,
    when: Callable[[Any], float],
    place: slice,
) -> Event:
    """One kind of instant of an element, as an event."""
    split = getattr(problem, "split", None)
    nq = model.nq

    def due(t: float, y: Array, p: Any = ()) -> float:
        return t - when(y[place])

    def happens(t: float, y: Array, p: Any = ()) -> Array:
        own = model if model_of is None else model_of(p)
        q, v = (y[:nq], y[nq : nq + model.nv]) if split is None else split(t, y)
        here = look(own, t, np.array(q, dtype=float), np.array(v, dtype=float), name)
        element: Any = here.element
        out = np.array(y)
        out[place] = next(do for kind, _, do in element.instants() if kind == what)(here)
        return out

    return Event(due, 1, reset=happens, name=f"{name} {what}")
