"""Events in a model file: tables ``[[events]]``, as data; ``multibody.file_events`` makes them act.

An event is a quantity that passes a level: by default it is recorded, with ``terminal`` the run
ends there, with ``scale`` and ``set`` velocities and states jump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..shared.source import FORMATS, KeyPath, Source
from .reader import format_of, model_of
from .start import named_values
from .table import Table

__all__ = ["ModelEvent", "load_events"]

KEYS = ("name", "quantity", "level", "direction", "terminal", "scale", "set")
DIRECTIONS = {"either": 0, "rising": 1, "falling": -1}


@dataclass(frozen=True)
class ModelEvent:
    """What a file says of an event.

    Attributes
    ----------
    name
        For tables and plots.
    quantity
        What is looked at: the name of a state or of a body (whose joint has one variable), or a
        table of one entry such as ``{position = ["arm", "z"]}``; see ``docs/models.md``.
    level, direction
        The value that it passes, and how: 1 rising, −1 falling, 0 either way.
    terminal
        Whether the run ends, or at which time it does.
    scale
        Velocities by name, and what they are multiplied with.
    set
        Positions and velocities by name, and the values that they are given.
    """

    name: str
    quantity: Any
    level: float = 0.0
    direction: int = 0
    terminal: bool | int = False
    scale: Mapping[str, float] = field(default_factory=dict)
    set: Mapping[str, float] = field(default_factory=dict)


def load_events(path: str | PathLike[str]) -> tuple[ModelEvent, ...]:
    r"""Events that a model file has; of formats that have none, nothing.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from multibody import mechanisms, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "pendulum.toml"
    ...     save_model(mechanisms.pendulum(), file)
    ...     more = '[[events]]\nname = "low"\nquantity = "bob"\nterminal = true\n'
    ...     _ = file.write_text(file.read_text() + more)
    ...     load_events(file)[0].quantity
    'bob'
    """
    file = Path(path)
    if file.suffix.lower().removeprefix(".") not in FORMATS:
        return ()
    source = Source(file.read_text(encoding="utf-8"), format_of(file, None), str(file))
    if not isinstance(source.data, dict) or "events" not in source.data:
        return ()
    model = model_of(source)
    top = Table(source, (), source.data, tuple(source.data))
    return tuple(_event(source, model, key, data) for key, data in top.items("events"))


def _event(source: Source, model: Any, path: KeyPath, data: Any) -> ModelEvent:
    table = Table(source, path, data, KEYS)
    way = table.text("direction", "either")
    if way not in DIRECTIONS:
        raise table.error("direction", f"expected {', '.join(DIRECTIONS)}; received {way!r}")
    terminal = table.take("terminal", False)
    if not isinstance(terminal, bool | int) or terminal < 0:
        raise table.error("terminal", f"expected true, false or a count; received {terminal!r}")
    jumps = {}
    for key in ("scale", "set"):
        jumps[key] = dict(table.take(key, {}))
        for name, value in jumps[key].items():
            kind = "q" if key == "set" and not name.startswith("d(") else "v"
            with source.at((*path, key)):
                named_values(model, kind, {name: value})
    return ModelEvent(
        table.text("name"),
        table.take("quantity"),
        float(table.numbers("level", default=0.0)),
        DIRECTIONS[way],
        terminal,
        **jumps,
    )
