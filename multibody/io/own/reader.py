"""Model files to models: every complaint says file, line and key."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ...checks import one_of
from ...model import Model
from ...model.builder import ModelBuilder
from ...model.solids import SIZES, Solid, checked_solid
from ..shared.source import FORMATS, KeyPath, Source
from .contacts import add_contact
from .elements import add_element
from .parts import FORCES, forces_from, inertia_from, joint_from, placement_from
from .table import Table, nearest, reference, said

__all__ = ["FORMAT", "format_of", "model_of", "read_model"]

#: Version of the schema.
FORMAT = 1

#: Keys of a file; "start" and "events" are read by files of these names.
KEYS = (
    *("format", "name", "units", "gravity", "bodies", "joints", "loops", "springs", "contacts"),
    *("gears", "elements", "solids", "start", "events"),
)

LOOP = ("predecessor", "successor", "joint", "placement_predecessor", "placement_successor")


def read_model(text: str, format: str, file: str) -> Model:
    """Read a model from text in "toml" or "json"; `file` stands for it in messages."""
    return model_of(Source(text, format, file))


def format_of(path: Path, format: str | None) -> str:
    """Format of a file of our own, from its ending unless it is given."""
    if format is not None:
        return one_of(format, "format", FORMATS)
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(
            f"path: expected a name that ends in .toml or .json, received {path.name!r}; or say "
            'format="toml"'
        )
    return ending


# ---------------------------------------------------------------------- the model


def model_of(source: Source) -> Model:
    """Build what a file describes."""
    top = Table(
        source,
        (),
        source.data,
        KEYS,
    )
    if top.take("format", FORMAT) != FORMAT:
        raise top.error(
            "format",
            f"this version reads format {FORMAT}, the file has {said(top.take('format'))}; get a "
            "newer version of the program",
        )
    if top.text("units", "SI") != "SI":
        raise top.error("units", "expected 'SI': metres, kilograms, seconds, radians")
    gravity = top.numbers("gravity", [(3,)], (0.0, 0.0, -9.81))
    builder = ModelBuilder(gravity, top.text("name", "model"))
    bodies = top.items("bodies")
    if not bodies:
        raise source.error((), "the file has no bodies; write at least one table [[bodies]]")
    names = _names(source, bodies)
    for path, data in bodies:
        _add_body(source, builder, path, data, names)
    bonds = [*top.items("joints"), *top.items("loops"), *top.items("gears")]
    taken = _names(source, bonds)
    for path, data in top.items("joints"):
        _add_joint(source, builder, path, data, names)
    for path, data in top.items("loops"):
        table = Table(source, path, data, ("name", *LOOP))
        with source.at(path):
            builder.add_loop(table.text("name"), *_ends(source, table, names))
    for path, data in top.items("gears"):
        _add_gear(source, builder, path, data)
    _names(source, top.items("springs"))
    for path, data in top.items("springs"):
        _add_spring(source, builder, path, data, names)
    touching = _names(source, top.items("contacts"))
    for path, data in top.items("contacts"):
        add_contact(source, builder, path, data, names)
    acting = _names(source, top.items("elements"))
    for path, data in top.items("elements"):
        add_element(source, builder, path, data)
    for path, data in top.items("solids"):
        _add_solid(source, builder, path, data, names)
    try:
        return builder.build()
    except (TypeError, ValueError) as error:
        # The message names what is wrong; the line is that of the first name in it.
        quoted = re.findall(r"'([^']*)'", str(error)) + re.split(r"[: ,→]+", str(error))
        known = {**touching, **taken, **names, **acting}
        raise source.error(
            next((known[word] for word in quoted if word in known), ()), str(error)
        ) from error


def _names(source: Source, items: list[tuple[KeyPath, Any]]) -> dict[str, KeyPath]:
    """Names of tables, which must differ, with their places."""
    found: dict[str, KeyPath] = {}
    for path, data in items:
        name = data.get("name") if isinstance(data, dict) else None
        if not isinstance(name, str):
            continue  # complained about where the table is read
        if name in found:
            line = source.line((*found[name], "name"))
            raise source.error(
                (*path, "name"), f"the name {name!r} is taken in line {line}; choose another"
            )
        found[name] = path
    return found


def _add_body(
    source: Source, builder: ModelBuilder, path: KeyPath, data: Any, names: Collection[str]
) -> None:
    known = ("name", "inertia", "parent", "joint", "placement", "reverse", *FORCES)
    table = Table(source, path, data, known)
    name = table.text("name")
    inertia = inertia_from(source, (*path, "inertia"), table.take("inertia", None))
    if not set(table.data) - {"name", "inertia"}:  # connected by [[joints]]
        with source.at(path):
            builder.declare_body(name, inertia)
        return
    parent = reference(table, "parent", names)
    joint = joint_from(source, (*path, "joint"), table.take("joint"))
    placement = placement_from(source, (*path, "placement"), table.take("placement", None))
    reverse = table.flag("reverse", False)
    with source.at(path):
        builder.add_body(
            name, parent, joint, placement, inertia, reverse, **forces_from(table, joint)
        )


def _ends(source: Source, table: Table, names: Collection[str]) -> tuple[Any, ...]:
    path = table.path
    return (
        reference(table, "predecessor", names),
        reference(table, "successor", names),
        joint_from(source, (*path, "joint"), table.take("joint")),
        *(placement_from(source, (*path, key), table.take(key, None)) for key in LOOP[3:]),
    )


def _add_joint(
    source: Source, builder: ModelBuilder, path: KeyPath, data: Any, names: Collection[str]
) -> None:
    table = Table(source, path, data, ("name", *LOOP, "tree", *FORCES))
    ends = _ends(source, table, names)
    with source.at(path):
        builder.add_joint(
            table.text("name"), *ends, tree=table.flag("tree", None), **forces_from(table, ends[2])
        )


def _add_gear(source: Source, builder: ModelBuilder, path: KeyPath, data: Any) -> None:
    table = Table(source, path, data, ("name", "driven", "ratios", "offset"))
    given = table.take("ratios")
    ratios = Table(source, (*path, "ratios"), given, given if isinstance(given, dict) else ())
    with source.at(path):
        builder.add_gear(
            table.text("name"),
            table.text("driven"),
            {name: ratios.numbers(name) for name in ratios.data},
            offset=table.numbers("offset", default=0.0),
        )


def _add_spring(
    source: Source, builder: ModelBuilder, path: KeyPath, data: Any, names: Collection[str]
) -> None:
    known = ("name", "body_a", "point_a", "body_b", "point_b", "stiffness", "damping", "rest")
    table = Table(source, path, data, known)
    with source.at(path):
        builder.add_spring(
            table.text("name"),
            reference(table, "body_a", names),
            table.numbers("point_a", [(3,)], np.zeros(3)),
            reference(table, "body_b", names),
            table.numbers("point_b", [(3,)], np.zeros(3)),
            table.numbers("stiffness"),
            table.numbers("damping", default=0.0),
            table.numbers("rest", default=0.0),
        )


def _add_solid(
    source: Source, builder: ModelBuilder, path: KeyPath, data: Any, names: Collection[str]
) -> None:
    known = ("body", "shape", "size", "placement", "colour", "vertices", "faces")
    table = Table(source, path, data, known)
    shape = table.text("shape")
    if shape not in SIZES:
        hint = nearest(shape, list(SIZES))
        raise source.error((*path, "shape"), f"no solid is called {shape!r}; {hint}")
    given: dict[str, Any] = {}
    for key in set(table.data) & {"vertices", "faces"}:
        rows = table.take(key)
        count = len(rows) if isinstance(rows, list) else 0
        given[key] = table.numbers(key, [(count, 3)])
    if "faces" in given and np.array_equal(given["faces"], np.round(given["faces"])):
        given["faces"] = given["faces"].astype(np.int64)
    sides = len(SIZES[shape])
    solid = Solid(
        0,
        shape,
        table.numbers("size", [(sides,), ()] if sides == 1 else [(sides,)], ()),
        colour=table.numbers("colour", [(3,), (4,)], ()),
        **given,
    )
    body = reference(table, "body", names)
    placement = placement_from(source, (*path, "placement"), table.take("placement", None))
    with source.at(path):
        solid = checked_solid(solid, 0)
        builder.add_solid(body, shape, solid.size, placement, solid.colour, **given)
