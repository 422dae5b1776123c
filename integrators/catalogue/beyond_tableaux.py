"""Schemes that are data as well, but have no Butcher tableau: a file of tables for each family.

Tables have the keys ``title``, ``reference``, ``order`` and, where they apply, ``embedded_order``,
``stability``, ``aliases``, ``let`` as those of tableaux; the coefficients are those of the class
that the family is made of. What is declared is derived by the tests. The symplectic pairs
Lobatto IIIA–IIIB with 2 to 4 stages are generated: "LobattoIIIAB3".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..tableau import Tableau
from ..tableau.additive import Additive
from ..tableau.partitioned import Nystrom, Partitioned, Splitting
from ..tableau.rosenbrock import Rosenbrock
from . import tableaux
from .collocation import FAMILIES
from .entry import Entry, definitions, folded, index, tables

__all__ = ["schemes"]


@cache
def schemes() -> tuple[Entry, ...]:
    """Return all entries, family by family."""
    declared = [
        Entry.of_table(family, name, data, build, **more(data))
        for family, (build, more) in _FAMILIES.items()
        for name, data in tables(family).items()
    ]
    return (*declared, *(_lobatto(s) for s in (2, 3, 4)))


# ---------------------------------------------------------------------- families


def _reader(data: dict[str, Any]) -> Callable[[str], str]:
    """What replaces the names of ``let`` in a row, or in the rows, of coefficients."""
    expand = definitions(data)
    return lambda key: expand(data[key])


def _rosenbrock(name: str, data: dict[str, Any]) -> Rosenbrock:
    read = _reader(data)
    defined = ("alpha", "gamma", "b", "b_hat")
    keys = defined if "alpha" in data else ("A", "C", "gamma", "m", "m_hat")
    given: dict[str, Any] = {key: read(key) for key in keys if key in data}
    build = Rosenbrock if "alpha" in data else Rosenbrock.transformed
    return build(**given, name=name, reference=data["reference"])


def _splitting(name: str, data: dict[str, Any]) -> Splitting:
    read = _reader(data)
    if "half" in data:
        return Splitting.composition(read("half"), name, data["reference"], symmetric=True)
    found = Splitting(read("kicks"), read("drifts"), name, data["reference"])
    if "digits" in data:  # fractions that stand for decimals
        found.slack = max(found.slack, 10.0 ** -data["digits"])
    return found


def _nystrom(name: str, data: dict[str, Any]) -> Nystrom:
    read = _reader(data)
    keys = ("A", "b", "b_rate", "c", "b_hat", "b_rate_hat")
    given: dict[str, Any] = {key: read(key) for key in keys if key in data}
    return Nystrom(**given, name=name, reference=data["reference"])


def _additive(name: str, data: dict[str, Any]) -> Additive:
    if "halves" in data:
        known = index(tableaux.schemes())
        first, second = (known[folded(half)].tableau for half in data["halves"])
        return Additive(first, second, name, data["reference"])
    read = _reader(data)
    b_hat = read("b_hat")
    explicit = Tableau(read("explicit"), read("b"), b_hat=b_hat, name=f"{name}, explicit part")
    part = read("b_implicit")
    implicit = Tableau(read("implicit"), part, b_hat=b_hat, name=f"{name}, implicit part")
    return Additive(explicit, implicit, name, data["reference"])


def _lobatto(s: int) -> Entry:
    """Lobatto IIIA for q, IIIB for v: symplectic and symmetric, of order 2s − 2."""
    name = f"LobattoIIIAB{s}"

    def build() -> Partitioned:
        first, second = (FAMILIES[f"LobattoIII{letter}"](s) for letter in "AB")
        return Partitioned(first.A, second.A, first.b, name, "jay1996")

    return Entry(
        name=name,
        title=f"Lobatto IIIA–IIIB with {s} stages",
        family="LobattoIIIAB",
        reference="jay1996",
        stages=s,
        order=2 * s - 2,
        embedded_order=None,
        kind="partitioned",
        stability="symplectic",
        aliases=(),
        _build=build,
    )


def _weights(data: dict[str, Any]) -> int:
    return len(data.get("m", data.get("b", "")).split())


#: How a family is built from a table, and what its tables leave to it.
_FAMILIES: dict[str, tuple[Callable[..., Any], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "rosenbrock": (_rosenbrock, lambda data: {"kind": "Rosenbrock", "stages": _weights(data)}),
    "splitting": (
        _splitting,
        lambda data: {
            "kind": "splitting",
            "stages": _splitting("", data).stages,
            "stability": "symplectic",
        },
    ),
    "nystrom": (_nystrom, lambda data: {"kind": "Nyström", "stages": _weights(data)}),
    "imex": (_additive, lambda data: {"kind": "IMEX", "stages": _additive("", data).stages}),
}
