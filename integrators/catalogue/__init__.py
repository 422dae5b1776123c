"""The catalogue of Runge–Kutta schemes.

Schemes are data: each is a table in one of the TOML files beside this module, with its
coefficients as exact numbers and the key of its source in ``references.bib``. The files are

    explicit    explicit methods without an embedded one
    ssp         strong-stability-preserving methods
    pairs       explicit pairs and continuous methods up to order 5
    pairs_high  explicit pairs of higher order
    dirk        diagonally implicit methods
    ark         the two halves of additive methods

and the Gauss, Radau and Lobatto families are generated with any number of stages
(:mod:`.collocation`): "Gauss4", "RadauIIA5".

To add a scheme, add a table. Its keys: ``title``, ``reference``, ``order``, ``A`` (rows of the
lower triangle; an explicit method leaves out the empty first row, an implicit one gives the
diagonal), ``b``; where they apply ``c`` (else the row sums), ``b_hat`` with ``embedded_order``,
``b_low``, ``dense`` (P, order, A_extra, c_extra), ``aliases``, ``kind`` and ``stability`` for
implicit ones. ``let`` names numbers that recur in the expressions. ``digits`` says that the
published numbers, even if written as fractions, are approximations good to so many digits.
Orders, kinds and stability are declared here so that listing is quick; the tests derive them.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from ..tableau import ContinuousExtension, Tableau
from ..tableau.exact import DIGITS, Number, as_float, parse, to_decimal
from .collocation import FAMILIES

__all__ = ["Entry", "entries", "entry", "from_name_or_file", "get", "names", "rk2"]

_FILES = ("explicit", "ssp", "pairs", "pairs_high", "dirk", "ark")


@dataclass(frozen=True)
class Entry:
    """One scheme of the catalogue, as declared; its tableau is built when first asked for.

    ``stability`` of an implicit method lists what holds of: A or L (A-stable with R(∞) = 0),
    B (algebraically stable), symplectic; "–" stands for none, and for explicit methods.
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
    _build: Callable[[], Tableau] = field(repr=False, compare=False)

    @cached_property
    def tableau(self) -> Tableau:
        """The Butcher tableau."""
        return self._build()


def get(name: str) -> Tableau:
    """Return the scheme with this name.

    Parameters
    ----------
    name
        A name or an alias; case, spaces, hyphens and underscores do not matter. The generated
        families take any number of stages: "Gauss7", "Lobatto IIIC 4".

    Raises
    ------
    ValueError
        If there is no such scheme; the message suggests the nearest names.

    Examples
    --------
    >>> print(get("rk4"))
      0 |
    1/2 | 1/2
    1/2 |     1/2
      1 |           1
    ----+----------------
        | 1/6 1/3 1/3 1/6
    >>> get("RK45").name, get("Radau").name
    ('DOPRI5', 'RadauIIA3')
    """
    return entry(name).tableau


def from_name_or_file(name: str) -> Tableau:
    """Return the scheme with this name, or the one in the file of this name (TOML or JSON)."""
    return Tableau.load(name) if name.endswith((".toml", ".json")) else get(name)


def entry(name: str) -> Entry:
    """Return the catalogue entry with this name, found as by :func:`get`.

    Examples
    --------
    >>> entry("RADAU5").stability
    'L, B'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a scheme, got {type(name).__name__}: {name!r}")
    key = _key(name)
    if (found := _index().get(key)) is not None:
        return found
    if (match := _GENERATED.fullmatch(key)) is not None:
        return _generated(_FAMILY_KEYS[match[1]], int(match[2]))
    if key == _key("MoreauJean"):
        raise ValueError(
            "MoreauJean steps models with rigid contacts (multibody.as_ivp of a model with "
            "add_contact), and this problem has none; name another method"
        )
    near = difflib.get_close_matches(key, _index(), n=6, cutoff=0.55)
    suggestions = list(dict.fromkeys(_index()[k].name for k in near))[:3]
    hint = f"did you mean {' or '.join(suggestions)}? " if suggestions else ""
    raise ValueError(
        f"no scheme is called {name!r}; {hint}integrators.catalogue.names() lists them all"
    )


def names() -> list[str]:
    """Return the names of all schemes, the generated families with a few sizes each.

    Examples
    --------
    >>> "DOPRI5" in names(), "Gauss3" in names()
    (True, True)
    """
    return [e.name for e in entries()]


def entries() -> list[Entry]:
    """Return all entries, in the order of the files, generated families last.

    Examples
    --------
    >>> [e.name for e in entries() if e.kind == "explicit" and e.order >= 9]
    ['Verner98']
    """
    return list(_entries())


def rk2(gamma: Any) -> Tableau:
    """Return a member of the family of explicit two-stage methods of order 2.

    Parameters
    ----------
    gamma
        Weight of the second stage, γ ≠ 0. γ = 1/2 is Heun's method, 3/4 Ralston's, 1 the
        midpoint rule.

    Notes
    -----
    In the convention of the course notes, b = (1 − γ, γ) and c₂ = a₂₁ = 1/(2γ).

    Examples
    --------
    >>> rk2("3/4") == get("Ralston")
    True
    """
    g: Any = parse(gamma)
    if g == 0:
        raise ValueError(
            "rk2 needs γ ≠ 0: the second stage sits at c = 1/(2γ) and carries the weight γ"
        )
    with localcontext(prec=DIGITS + 10):
        return Tableau(
            [[], [1 / (2 * g)]], [1 - g, g], name=f"RK2(γ={gamma})", reference="hairer1993"
        )


# ---------------------------------------------------------------------- finding names


def _key(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


@cache
def _entries() -> tuple[Entry, ...]:
    declared = [
        _declared(family, name, data)
        for family in _FILES
        for name, data in tomllib.loads(_text(family)).items()
    ]
    generated = [_generated(family, s) for family, sizes in _SHOWN.items() for s in sizes]
    return (*declared, *generated)


@cache
def _index() -> dict[str, Entry]:
    index: dict[str, Entry] = {}
    for e in _entries():
        for name in (e.name, *e.aliases):
            if index.setdefault(_key(name), e) is not e:
                raise ValueError(f"catalogue: the name {name!r} of {e.name} is taken")
    return index


def _text(family: str) -> str:
    return (files(__package__) / f"{family}.toml").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- reading the files


def _declared(family: str, name: str, data: dict[str, Any]) -> Entry:
    return Entry(
        name=name,
        title=data["title"],
        family=family,
        reference=data["reference"],
        stages=len(data["b"].split()),
        order=data["order"],
        embedded_order=data.get("embedded_order"),
        kind=data.get("kind", "explicit"),
        stability=data.get("stability", "–"),
        aliases=tuple(data.get("aliases", ())),
        _build=lambda: _build(name, data),
    )


def _build(name: str, data: dict[str, Any]) -> Tableau:
    let: dict[str, str] = {}
    for symbol, expression in data.get("let", {}).items():
        let[symbol] = f"({_expand(expression, let)})"
    digits: int | None = data.get("digits")

    def row(text: str) -> list[Number]:
        numbers = [parse(_expand(item, let)) for item in text.split()]
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


def _expand(expression: str, let: dict[str, str]) -> str:
    for symbol, value in let.items():
        expression = re.sub(rf"\b{symbol}\b", value, expression)
    return expression


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

_FAMILY_KEYS = {_key(name): name for name in FAMILIES} | {"lobattoiiic*": "LobattoIIICStar"}

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
