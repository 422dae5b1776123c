"""The start of a first simulation in a model file: the table ``[start]``.

``q`` and ``v`` are lists of numbers, or tables of names of variables or bodies (whose joint has one
variable) with numbers; what is left out is neutral, or at rest. ``t_end`` says until when.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...checks import Array
from ...model import Model
from ..shared.report import Report
from ..shared.source import FORMATS, Source
from .reader import format_of, model_of
from .table import Table, nearest

__all__ = ["ModelStart", "load_start", "named_values"]


class ModelStart(NamedTuple):
    """Position, velocity and end of a first simulation; None where a file does not say."""

    q: Array | None = None
    v: Array | None = None
    t_end: float | None = None


def load_start(path: str | PathLike[str], keyframe: str = "start") -> ModelStart:
    r"""Start that a model file names; of formats that have none, nothing.

    Parameters
    ----------
    path
        The file.
    keyframe
        Of MJCF: which of its keyframes; "start" is where its bodies stand.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from multibody import mechanisms, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "pendulum.toml"
    ...     save_model(mechanisms.pendulum(), file)
    ...     _ = file.write_text(file.read_text() + "[start]\nq = { bob = 0.5 }\nt_end = 3.0\n")
    ...     load_start(file)
    ModelStart(q=array([0.5]), v=None, t_end=3.0)
    """
    file = Path(path)
    if file.suffix.lower().removeprefix(".") not in FORMATS:
        return _start_of_mjcf(file, keyframe)
    source = Source(file.read_text(encoding="utf-8"), format_of(file, None), str(file))
    if not isinstance(source.data, dict) or "start" not in source.data:
        return ModelStart()
    model = model_of(source)
    table = Table(source, ("start",), source.data["start"], ("q", "v", "t_end"))
    found: list[Array | None] = []
    for key in ("q", "v"):
        value = table.take(key, None)
        with source.at(("start", key)):
            found.append(None if value is None else named_values(model, key, value))
    t_end = table.numbers("t_end", default=None)
    if t_end is not None and not t_end > 0.0:
        raise table.error("t_end", f"expected a time after 0, received {t_end:g}")
    return ModelStart(found[0], found[1], t_end)


def _start_of_mjcf(file: Path, keyframe: str) -> ModelStart:
    from ..formats import load_model

    report = Report()
    if file.suffix.lower() == ".xml":
        load_model(file, report=report)
    if keyframe not in report.positions and keyframe != "start":
        known = list(report.positions)
        raise ValueError(f"{file}: there is no keyframe {keyframe!r}; there are {known}")
    return ModelStart(report.positions.get(keyframe), report.velocities.get(keyframe))


def named_values(model: Model, kind: str, given: Any) -> Array:
    """Positions ("q") or velocities ("v") from numbers in order, or by names.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> named_values(mechanisms.cart_pole(), "q", {"pole": 0.5})
    array([0. , 0.5])
    """
    if not isinstance(given, Mapping):
        return model.check(kind, given)
    names = model.q_names if kind == "q" else model.v_names
    values = model.neutral() if kind == "q" else np.zeros(model.nv)
    short: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        short.setdefault(name.removeprefix("d(").partition(".")[0], []).append(i)
    for name, value in given.items():
        places = [names.index(name)] if name in names else short.get(name, [])
        if not places:
            raise ValueError(f"{kind}: nothing is named {name!r}; {nearest(name, [*names])}")
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
        if numbers.shape != (len(places),):
            listed = ", ".join(names[i] for i in places)
            raise ValueError(
                f"{kind}: expected {len(places)} numbers for {name!r} ({listed}), received "
                f"{numbers.size}"
            )
        values[places] = numbers
    return model.check(kind, values)
