"""A mechanism to be simulated or compared: a model with a start and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from multibody.checks import Array
from multibody.dynamics.loops.assembly import assemble, consistent_velocity
from multibody.dynamics.loops.closed_loop import constraints
from multibody.io import FORMATS, ModelEvent, load_events, load_model, load_start
from multibody.mechanisms.registry import Entry, entry
from multibody.model import Model

from .reference import KNOWN, Known

__all__ = ["Mechanism", "find_mechanism", "started"]

WITH_MESHES = tuple(kind.ending for kind in FORMATS.values() if kind.root)
MODEL_FILES = tuple(kind.ending for kind in FORMATS.values())
CLOSED = 1e-9  # largest gap of loops that counts as none, in a start as it was typed


@dataclass(frozen=True)
class Mechanism:
    """A model, a start, and what is known of it.

    Attributes
    ----------
    model, q0, v0, t_end
        The model, position and velocity at the start, and until when it is simulated.
    tau
        Joint forces that belong to it, or None.
    description, source
        In words.
    known
        See :class:`~featherstep.mechanism_study.reference.Known`.
    events
        That its file has; they act in simulations, and comparisons refuse those that jump or end.
    """

    model: Model
    q0: Array
    v0: Array
    t_end: float = 10.0
    tau: Any = None
    description: str = ""
    source: str = ""
    known: Known = field(default_factory=Known)
    events: tuple[ModelEvent, ...] = ()


def find_mechanism(
    mechanism: str | Path | Model | Entry,
    parameters: Mapping[str, Any] | None = None,
    *,
    meshes: bool = False,
) -> Mechanism:
    """Return a mechanism with a start.

    Parameters
    ----------
    mechanism
        Name in the catalogue; a model file (``.toml``, ``.urdf`` or another format); or a model.
        A file may name its start (``docs/models.md``). Without one a model starts at rest in its
        neutral position, or the nearest in which its loops are closed.
    parameters
        Of a mechanism of the catalogue.
    meshes
        Whether meshes that a robot's file names are read, for pictures.

    Examples
    --------
    >>> find_mechanism("four bar").model.name
    'four-bar'
    """
    start: tuple[Any, ...] = ()
    events: tuple[ModelEvent, ...] = ()
    if isinstance(mechanism, Model):
        model = mechanism
    elif isinstance(mechanism, Path) or Path(str(mechanism)).suffix.lower() in MODEL_FILES:
        if not Path(str(mechanism)).is_file():
            raise ValueError(f"there is no model file {str(mechanism)!r}")
        drawn = meshes and Path(str(mechanism)).suffix.lower() in WITH_MESHES
        model = load_model(mechanism, **({"meshes": True} if drawn else {}))  # type: ignore[arg-type]
        start, events = load_start(str(mechanism)), load_events(str(mechanism))
    else:
        listed = mechanism if isinstance(mechanism, Entry) else entry(mechanism)
        model = listed.model(**dict(parameters or {}))
        known = KNOWN.get(listed.name, Known())
        q0, v0 = listed.start(model)
        told = listed.description, listed.source, known
        return Mechanism(model, q0, v0, listed.t_end, None, *told)
    if parameters:
        raise ValueError("parameters belong to a mechanism of the catalogue; change the model")
    what = Mechanism(model, model.neutral(), np.zeros(model.nv), events=events)
    return started(what, *start)


def started(what: Mechanism, q: Any = None, v: Any = None, t_end: float | None = None) -> Mechanism:
    """Return a mechanism with another start, closed and consistent, and another end."""
    model = what.model
    q0 = what.q0 if q is None else model.check("q", q)
    v0 = what.v0 if v is None else model.check("v", v)
    if model.bonds:
        if np.abs(constraints(model, q0).delta).max(initial=0.0) > CLOSED:
            q0 = assemble(model, q0).q
        v0 = consistent_velocity(model, q0, v0)
    return replace(what, q0=q0, v0=v0, t_end=what.t_end if t_end is None else t_end)
