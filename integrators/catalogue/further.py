"""Schemes that are data as well, but not Butcher tableaux: one file of tables for each family.

    rosenbrock  Rosenbrock and W-methods
    splitting   symplectic splittings of separable problems, compositions of Störmer–Verlet
    nystrom     Runge–Kutta–Nyström pairs for q'' = g(t, q)
    imex        additive methods for f = f_E + f_I

and the symplectic pairs Lobatto IIIA–IIIB with 2 to 4 stages are generated: "LobattoIIIAB3".
Tables have the keys ``title``, ``reference``, ``order`` and, where they apply, ``embedded_order``,
``stability``, ``aliases``, ``let`` as in the catalogue of tableaux; the coefficients are those of
the class that the family is made of. What is declared is derived by the tests.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from ..tableau import Tableau
from ..tableau.additive import Additive
from ..tableau.partitioned import Nystrom, Partitioned, Splitting
from ..tableau.rosenbrock import Rosenbrock
from . import _expand, _key
from . import get as get_tableau
from .collocation import FAMILIES

__all__ = ["Scheme", "entries", "find", "get", "names"]


@dataclass(frozen=True)
class Scheme:
    """One scheme as declared; ``method`` is built when first asked for."""

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
    declared: dict[str, Any] = field(repr=False, compare=False)
    _build: Callable[[], Any] = field(repr=False, compare=False)

    @cached_property
    def method(self) -> Any:
        """The coefficients, as an object that ``solve`` takes for a method."""
        return self._build()


def entries() -> list[Scheme]:
    """Return all schemes, family by family.

    Examples
    --------
    >>> [e.name for e in entries() if e.kind == "Rosenbrock"][:2]
    ['ROS3P', 'ROS34PW2']
    """
    return list(_entries())


def names() -> list[str]:
    """Return the names of all schemes."""
    return [e.name for e in entries()]


def find(name: str) -> Scheme | None:
    """Return the scheme with this name or alias; None if there is none."""
    key = _key(name)
    if key not in _index() and (match := _LOBATTO.fullmatch(key)) is not None:
        return _lobatto(int(match[1]))
    return _index().get(key)


def get(name: str) -> Any:
    """Return the method with this name.

    Examples
    --------
    >>> get("rodas5p")
    <Rosenbrock Rodas5P: 8 stages, order 5(4)>
    """
    found = find(name)
    if found is None:
        raise ValueError(f"no scheme is called {name!r}; there are {', '.join(names())}")
    return found.method


@cache
def _entries() -> tuple[Scheme, ...]:
    declared = [
        _declared(family, name, data)
        for family in _FAMILIES
        for name, data in tomllib.loads(_text(family)).items()
    ]
    return (*declared, *(_lobatto(s) for s in (2, 3, 4)))


@cache
def _index() -> dict[str, Scheme]:
    index: dict[str, Scheme] = {}
    for e in _entries():
        for name in (e.name, *e.aliases):
            if index.setdefault(_key(name), e) is not e:
                raise ValueError(f"catalogue: the name {name!r} of {e.name} is taken")
    return index


def _text(family: str) -> str:
    return (files(__package__) / f"{family}.toml").read_text(encoding="utf-8")


def _declared(family: str, name: str, data: dict[str, Any]) -> Scheme:
    kind, build, stages = _FAMILIES[family]
    return Scheme(
        name=name,
        title=data["title"],
        family=family,
        reference=data["reference"],
        stages=stages(data),
        order=data["order"],
        embedded_order=data.get("embedded_order"),
        kind=kind,
        stability="symplectic" if family == "splitting" else data.get("stability", "–"),
        aliases=tuple(data.get("aliases", ())),
        declared=data,
        _build=lambda: build(name, data),
    )


# ---------------------------------------------------------------------- families


def _reader(data: dict[str, Any]) -> Callable[[str], Any]:
    """What replaces the names of ``let`` in a row, or in the rows, of coefficients."""
    let: dict[str, str] = {}
    for symbol, expression in data.get("let", {}).items():
        let[symbol] = f"({_expand(expression, let)})"
    return lambda key: _expand(data[key], let)


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
        first, second = (get_tableau(half) for half in data["halves"])
        return Additive(first, second, name, data["reference"])
    read = _reader(data)
    b_hat = read("b_hat")
    explicit = Tableau(read("explicit"), read("b"), b_hat=b_hat, name=f"{name}, explicit part")
    part = read("b_implicit")
    implicit = Tableau(read("implicit"), part, b_hat=b_hat, name=f"{name}, implicit part")
    return Additive(explicit, implicit, name, data["reference"])


@cache
def _lobatto(s: int) -> Scheme:
    """Lobatto IIIA for q, IIIB for v: symplectic and symmetric, of order 2s − 2."""
    name = f"LobattoIIIAB{s}"

    def build() -> Partitioned:
        first, second = (FAMILIES[f"LobattoIII{letter}"](s) for letter in "AB")
        return Partitioned(first.A, second.A, first.b, name, "jay1996")

    return Scheme(
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
        declared={},
        _build=build,
    )


_LOBATTO = re.compile(r"lobattoiiiab([2-4])")


def _weights(data: dict[str, Any]) -> int:
    return len(data.get("m", data.get("b", "")).split())


_FAMILIES: dict[str, tuple[str, Callable[..., Any], Callable[[dict[str, Any]], int]]] = {
    "rosenbrock": ("Rosenbrock", _rosenbrock, _weights),
    "splitting": ("splitting", _splitting, lambda data: _splitting("", data).stages),
    "nystrom": ("Nyström", _nystrom, _weights),
    "imex": ("IMEX", _additive, lambda data: _additive("", data).stages),
}
