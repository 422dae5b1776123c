"""What the catalogue says of a scheme, and how a name finds it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

from ..tableau import Tableau

__all__ = ["Entry", "definitions", "folded", "index", "nearest", "tables"]


@dataclass(frozen=True)
class Entry:
    """One scheme of the catalogue, as declared; its coefficients are built when first asked for.

    ``stability`` of an implicit method lists what holds of: A or L (A-stable with R(∞) = 0),
    B (algebraically stable), symplectic; "–" stands for none, and for explicit methods.
    ``declared`` is its table, where it has one.
    """

    name: str
    title: str
    family: str
    reference: str
    stages: int
    order: int
    embedded_order: int | None
    kind: str
    stability: str
    aliases: tuple[str, ...]
    _build: Callable[[], Any] = field(repr=False, compare=False)
    declared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_table(
        cls,
        family: str,
        name: str,
        data: dict[str, Any],
        build: Callable[[str, dict[str, Any]], Any],
        **more: Any,
    ) -> Entry:
        """Return the entry of a table of a file, with what the table leaves to the family."""
        said: dict[str, Any] = {
            "kind": data.get("kind", "explicit"),
            "stability": data.get("stability", "–"),
        }
        return cls(
            name=name,
            title=data["title"],
            family=family,
            reference=data["reference"],
            order=data["order"],
            embedded_order=data.get("embedded_order"),
            aliases=tuple(data.get("aliases", ())),
            _build=lambda: build(name, data),
            declared=data,
            **said | more,
        )

    @cached_property
    def method(self) -> Any:
        """The coefficients, as an object that ``solve`` takes for a method."""
        return self._build()

    @property
    def tableau(self) -> Tableau:
        """The Butcher tableau; an error for a scheme that has none."""
        if isinstance(self.method, Tableau):
            return self.method
        raise ValueError(
            f"expected a scheme with a Butcher tableau, and {self.name} is of the kind "
            f"{self.kind!r}: solve(…, method={self.name!r}) takes it by its name, and "
            f"integrators.catalogue.entry({self.name!r}).method is the object"
        )


def tables(family: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a file of the catalogue by their names."""
    text = (files(__package__) / f"{family}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def definitions(data: dict[str, Any]) -> Callable[[str], str]:
    """Return what puts the numbers that ``let`` of a table names into an expression."""
    let: dict[str, str] = {}

    def expand(expression: str) -> str:
        for symbol, value in let.items():
            expression = re.sub(rf"\b{symbol}\b", value, expression)
        return expression

    for symbol, expression in data.get("let", {}).items():
        let[symbol] = f"({expand(expression)})"
    return expand


def folded(name: str) -> str:
    """Return a name without what does not matter: case, spaces, hyphens, underscores."""
    return re.sub(r"[\s_-]", "", name).casefold()


def index(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return entries by their folded names and aliases, each of which belongs to one of them."""
    found: dict[str, Entry] = {}
    for e in entries:
        for name in (e.name, *e.aliases):
            if found.setdefault(folded(name), e) is not e:
                raise ValueError(f"catalogue: the name {name!r} of {e.name} is taken")
    return found


def nearest(name: str, known: dict[str, Entry]) -> list[str]:
    """Return up to three names of entries that a mistyped one may stand for."""
    near = difflib.get_close_matches(folded(name), known, n=6, cutoff=0.55)
    return list(dict.fromkeys(known[key].name for key in near))[:3]
