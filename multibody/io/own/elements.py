"""Elements in a file: tables ``[[elements]]`` with the kind and the fields of an element."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ...elements import ELEMENTS, Element, Formula, NamedElement, Table, Wave
from ...model.builder import ModelBuilder
from ..shared.source import KeyPath, Source
from .table import Table as FileTable
from .table import nearest, plain

__all__ = ["add_element", "element_data", "value_data", "value_from"]

SIGNAL = ("times", "values", "kind")
WAVE = ("amplitude", "frequency", "phase", "offset")


def add_element(source: Source, builder: ModelBuilder, path: KeyPath, data: Any) -> None:
    """Read a table ``[[elements]]`` into a builder."""
    any_key = data if isinstance(data, dict) else ()
    kind = FileTable(source, path, data, any_key).text("kind")
    if kind not in ELEMENTS:
        hint = nearest(kind, sorted(ELEMENTS))
        raise source.error((*path, "kind"), f"no element is called {kind!r}; {hint}")
    cls: Any = ELEMENTS[kind]
    known = {f.name: f for f in fields(cls)}
    table = FileTable(source, path, data, ("name", "kind", *known))
    given = {}
    for name, field in known.items():
        if name in table:
            given[name] = value_from(source, (*path, name), table.take(name))
        elif field.default is MISSING and field.default_factory is MISSING:
            table.take(name)  # says that it is missing
    with source.at(path):
        builder.add_element(table.text("name"), cls(**given))


def value_from(source: Source, path: KeyPath, value: Any) -> Any:
    """A number, text, flag or list; a table of times and values, a wave, a formula."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        return plain(source, path, value)
    if "formula" in value:
        text = FileTable(source, path, value, ("formula",)).text("formula")
        with source.at(path):
            return Formula(text)
    if "amplitude" in value:
        wave = FileTable(source, path, value, WAVE)
        given = [wave.numbers(key) for key in WAVE[:2]]
        return Wave(*given, *(wave.numbers(key, default=0.0) for key in WAVE[2:]))
    table = FileTable(source, path, value, SIGNAL)
    times, values = (plain(source, (*path, key), table.take(key)) for key in SIGNAL[:2])
    with source.at(path):
        return Table(times, values, table.text("kind", "linear"))


def element_data(named: NamedElement) -> dict[str, Any]:
    """An element as data for a file."""
    element: Element = named.element
    if ELEMENTS.get(element.kind) is not type(element):
        raise ValueError(
            f"element {named.name!r}: {type(element).__name__} is made in Python, and no file can "
            "name it; decorate its class with multibody.elements.element_kind and give it a kind, "
            "or keep the code that builds the model"
        )
    data: dict[str, Any] = {"name": named.name, "kind": element.kind}
    for field in fields(element):  # type: ignore[arg-type]
        value = getattr(element, field.name)
        if value is None or (field.default is not MISSING and value is field.default):
            continue
        data[field.name] = value_data(value, f"element {named.name!r}: {field.name}")
    return data


def value_data(value: Any, where: str) -> Any:
    """A value of an element or of a motion as data for a file."""
    if isinstance(value, Table):
        return {"times": value.times.tolist(), "values": value.values.tolist(), "kind": value.kind}
    if isinstance(value, Wave):
        return {key: float(getattr(value, key)) for key in WAVE}
    if isinstance(value, Formula):
        return {"formula": value.text}
    if callable(value):
        raise ValueError(
            f"{where} is a Python function, which a file cannot hold; use a number, a Table, a "
            "Wave or a Formula"
        )
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple | list) and all(isinstance(x, str) for x in value):
        return list(value)
    return np.asarray(value, dtype=float).tolist()
