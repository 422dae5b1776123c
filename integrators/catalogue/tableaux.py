"""Runge–Kutta schemes: the tables of Butcher tableaux, and the families made on demand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ..tableau import ContinuousExtension, Tableau
from ..tableau.exact import Number, as_float, parse, to_decimal
from .collocation import FAMILIES
from .entry import Entry, definitions, folded, tables

__all__ = ["generated", "schemes"]

_FILES = ("explicit", "ssp", "pairs", "pairs_high", "dirk", "ark")


@cache
def schemes() -> tuple[Entry, ...]:
    """Return all entries, in the order of the files, the families with a few sizes each."""
    declared = [
        Entry.of_table(family, name, data, _build, stages=len(data["b"].split()))
        for family in _FILES
        for name, data in tables(family).items()
    ]
    members = [_generated(family, s) for family, sizes in _SHOWN.items() for s in sizes]
    return (*declared, *members)


def generated(key: str) -> Entry | None:
    """Return the member of a generated family with this folded name, of any size."""
    match = _GENERATED.fullmatch(key)
    return None if match is None else _generated(_FAMILY_KEYS[match[1]], int(match[2]))


# ---------------------------------------------------------------------- reading the files


def _build(name: str, data: dict[str, Any]) -> Tableau:
    expand = definitions(data)
    digits: int | None = data.get("digits")

    def row(text: str) -> list[Number]:
        numbers = [parse(expand(item)) for item in text.split()]
        return [_rounded(x, digits) for x in numbers] if digits else numbers

    def optional(key: str) -> list[Number] | None:
        return row(data[key]) if key in data else None

    A = [row(line) for line in data["A"].strip().splitlines()]
    if data.get("kind", "explicit") == "explicit":
        A.insert(0, [])
    return Tableau(
        A,
        row(data["b"]),
        optional("c"),
        optional("b_hat"),
        name,
        data["reference"],
        b_low=optional("b_low"),
        dense=_extension(data["dense"], row) if "dense" in data else None,
    )


def _rounded(x: Number, digits: int) -> Number:
    """Mark a number as known to so many digits; integers stay exact."""
    if not isinstance(x, Fraction) or x.denominator == 1:
        return x
    with localcontext(prec=digits):
        value = +to_decimal(x)
        return value.quantize(Decimal((0, (1,), value.adjusted() - digits + 1)))


def _extension(data: dict[str, Any], row: Callable[[str], list[Number]]) -> ContinuousExtension:
    def rows(key: str) -> list[tuple[float, ...]]:
        lines = data.get(key, "").strip().splitlines()
        return [tuple(as_float(x) for x in row(line)) for line in lines]

    P = np.array(rows("P"))
    P.setflags(write=False)
    nodes = tuple(as_float(x) for x in row(data.get("c_extra", "")))
    return ContinuousExtension(P, data["order"], tuple(rows("A_extra")), nodes)


# ---------------------------------------------------------------------- generated families


@dataclass(frozen=True)
class _Family:
    """What all members of a generated family share: order 2s − deficit."""

    title: str
    deficit: int
    stability: str
    reference: str


_ABOUT = {
    "Gauss": _Family("Gauss", 0, "A, B, symplectic", "butcher1964implicit"),
    "RadauIA": _Family("Radau IA", 1, "L, B", "ehle1969"),
    "RadauIIA": _Family("Radau IIA", 1, "L, B", "ehle1969"),
    "LobattoIIIA": _Family("Lobatto IIIA", 2, "A", "ehle1969"),
    "LobattoIIIB": _Family("Lobatto IIIB", 2, "A", "ehle1969"),
    "LobattoIIIC": _Family("Lobatto IIIC", 2, "L, B", "ehle1969"),
    "LobattoIIICStar": _Family("Lobatto IIIC*", 2, "–", "butcher1964integration"),
    "LobattoIIID": _Family("Lobatto IIID", 2, "A, B, symplectic", "norsett1981"),
}

_SHOWN = {
    "Gauss": range(1, 7),
    "RadauIA": range(1, 6),
    "RadauIIA": range(1, 6),
    "LobattoIIIA": range(2, 6),
    "LobattoIIIB": range(2, 6),
    "LobattoIIIC": range(2, 6),
    "LobattoIIICStar": range(2, 5),
    "LobattoIIID": range(2, 6),
}
"""The sizes that a listing shows; any other is found by name."""

_KINDS = {
    "LobattoIIIA2": "ESDIRK",
    "LobattoIIIB2": "DIRK",
    "LobattoIIICStar2": "explicit",
    "LobattoIIICStar3": "DIRK",
}
"""Small members that need no fully implicit solve."""

_ALIASES = {
    "Gauss1": ("GaussLegendre2",),
    "Gauss2": ("HammerHollingsworth", "GaussLegendre4"),
    "Gauss3": ("GaussLegendre6", "KuntzmannButcher6"),
    "RadauIIA3": ("RADAU5", "Radau"),
}

_FAMILY_KEYS = {folded(name): name for name in FAMILIES} | {"lobattoiiic*": "LobattoIIICStar"}

_GENERATED = re.compile("(" + "|".join(map(re.escape, _FAMILY_KEYS)) + r")(\d+)")


@cache
def _generated(family: str, s: int) -> Entry:
    about, name = _ABOUT[family], f"{family}{s}"
    return Entry(
        name=name,
        title=f"{about.title} with {s} stage{'s' if s != 1 else ''}",
        family=family,
        reference=about.reference,
        stages=s,
        order=2 * s - about.deficit,
        embedded_order=None,
        kind=_KINDS.get(name, "implicit" if s == 1 else "fully implicit"),
        stability=about.stability,
        aliases=_ALIASES.get(name, ()),
        _build=lambda: FAMILIES[family](s),
    )
