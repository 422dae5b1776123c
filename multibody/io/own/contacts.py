"""Contacts in a file: tables ``[[contacts]]`` with shapes, restitution, friction, laws."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

from ...model import Contact
from ...model.builder import ModelBuilder
from ...model.contacts import LAWS
from ...model.surfaces import SHAPES
from ..shared.source import KeyPath, Source
from .table import Table, nearest, reference

__all__ = ["add_contact", "contact_data"]

KEYS = ("name", "body_a", "shape_a", "body_b", "shape_b", "restitution", "friction", "law")


def add_contact(
    source: Source, builder: ModelBuilder, path: KeyPath, data: Any, names: Collection[str]
) -> None:
    """Read a table ``[[contacts]]`` into a builder."""
    table = Table(source, path, data, KEYS)
    given = [
        value
        for side in ("a", "b")
        for value in (
            reference(table, f"body_{side}", names),
            _made(source, (*path, f"shape_{side}"), table.take(f"shape_{side}"), SHAPES, "shape"),
        )
    ]
    law = table.take("law", None)
    with source.at(path):
        builder.add_contact(
            table.text("name"),
            *given,
            restitution=table.numbers("restitution", default=0.0),
            friction=table.numbers("friction", default=0.0),
            law=None if law is None else _made(source, (*path, "law"), law, LAWS, "law"),
        )


def _made(source: Source, path: KeyPath, value: Any, known: dict[str, Any], what: str) -> Any:
    """Shape or law from its name, or from a table with its kind and arguments."""
    data = {"kind": value} if isinstance(value, str) else value
    kind = Table(source, path, data, data if isinstance(data, dict) else ()).text("kind")
    if kind not in known:
        where = path if isinstance(value, str) else (*path, "kind")
        raise source.error(where, f"no {what} is called {kind!r}; {nearest(kind, list(known))}")
    parameters = inspect.signature(known[kind]).parameters
    table = Table(source, path, data, ("kind", *parameters))
    given = {}
    for name, parameter in parameters.items():
        if name in table:
            given[name] = table.numbers(name, [(), (3,)])
        elif parameter.default is parameter.empty:
            table.take(name)  # says that it is missing
    with source.at(path):
        return known[kind](**given)


def contact_data(contact: Contact, names: list[str]) -> dict[str, Any]:
    """A contact as data for a file."""
    if contact.gap is not None:
        raise ValueError(
            f"contact {contact.name!r} is a Python function, which a file cannot hold; write the "
            "model without it, or use shapes"
        )
    data: dict[str, Any] = {"name": contact.name}
    for side in ("a", "b"):
        shape = getattr(contact, f"shape_{side}")
        arguments = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in shape.arguments.items()
        }
        data[f"body_{side}"] = names[getattr(contact, f"body_{side}")]
        data[f"shape_{side}"] = {"kind": shape.kind, **arguments}
    data["restitution"], data["friction"] = contact.restitution, contact.friction
    if contact.law is not None:
        law = contact.law
        arguments = {name: getattr(law, name) for name in law.__dataclass_fields__}
        data["law"] = {"kind": law.kind, **arguments}
    return data
