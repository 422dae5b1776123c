"""Events that a model file describes, as events of a run."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.problem import Event

from ...checks import Array
from ...dynamics.loops.assembly import consistent_velocity
from ...io.own.events import ModelEvent, load_events
from ...io.own.start import named_values
from .quantities import Seen
from .recorded import quantity_of

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["file_events"]


def file_events(
    model: Model, given: str | PathLike[str] | Sequence[ModelEvent], tau: Any = None
) -> tuple[Event, ...]:
    r"""Events of a model file, for ``simulate(…, events=…)`` and runs of ``as_ivp``.

    Parameters
    ----------
    model
        The model that the file describes.
    given
        The file, or what ``multibody.io.load_events`` read from it.
    tau
        Joint forces of the run, where an event looks at a reaction.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> from multibody.io import ModelEvent
    >>> model = mechanisms.pendulum()
    >>> low = ModelEvent("low", "bob", terminal=True)
    >>> run = simulate(model, [0.5], T=5.0, events=file_events(model, [low]))
    >>> f"{run.t_events[0][0]:.3f}"  # a quarter of a swing
    '0.509'
    """
    known = load_events(given) if isinstance(given, str | PathLike) else given
    return tuple(_event(model, event, tau) for event in known)


def _event(model: Model, given: ModelEvent, tau: Any) -> Event:
    jumps = given.scale or given.set
    return Event(
        _function(model, given, tau),
        direction=given.direction,
        terminal=given.terminal,
        reset=_reset(model, given) if jumps else None,
        name=given.name,
    )


def _function(model: Model, given: ModelEvent, tau: Any) -> Any:
    what, level = given.quantity, given.level
    if isinstance(what, str):
        names = (*model.q_names, *model.v_names)
        short = [i for i, name in enumerate(model.q_names) if name.partition(".")[0] == what]
        place = names.index(what) if what in names else short[0] if len(short) == 1 else None
        if place is None:
            raise ValueError(
                f"event {given.name!r}: no state is named {what!r}, nor a body whose joint has one "
                f"variable; states are {', '.join(names)}"
            )
        return lambda t, x: x[place] - level
    quantity = quantity_of(what)
    seen = Seen(None, model, tau)
    quantity.check(seen)
    if quantity.rows != 1:
        raise ValueError(
            f"event {given.name!r}: expected one number, but {what!r} has {quantity.rows}; name a "
            "component, as in {position = ['arm', 'z']}"
        )

    def value(t: float, x: Array) -> float:
        y = np.asarray(x, dtype=float)[:, None]
        return float(quantity.along(seen, np.array([float(t)]), y)[0]) - level

    return value


def _reset(model: Model, given: ModelEvent) -> Any:
    factor = np.ones(model.nv)
    for name, value in given.scale.items():
        marked = named_values(model, "v", {name: 1.0}) != 0.0
        factor[marked] = value

    def reset(t: float, x: Array) -> Array:
        q, v = np.array(x[: model.nq]), factor * x[model.nq :]
        for name, value in given.set.items():
            target, kind = (v, "v") if name.startswith("d(") else (q, "q")
            ones = named_values(model, kind, {name: 1.0}) != named_values(model, kind, {name: 0.0})
            target[ones] = value
        if model.bonds:
            v = consistent_velocity(model, q, v)
        return np.concatenate([q, v])

    return reset
