"""The catalogue of schemes.

Schemes are data: each is a table in one of the TOML files beside this module, with its
coefficients as exact numbers and the key of its source in ``references.bib``. The files are

    explicit    explicit methods without an embedded one
    ssp         strong-stability-preserving methods
    pairs       explicit pairs and continuous methods up to order 5
    pairs_high  explicit pairs of higher order
    dirk        diagonally implicit methods
    ark         the two halves of additive methods

for those with a Butcher tableau, and for others (:mod:`.beyond_tableaux`)

    rosenbrock  Rosenbrock and W-methods
    splitting   symplectic splittings of separable problems, compositions of Störmer–Verlet
    nystrom     Runge–Kutta–Nyström pairs for q'' = g(t, q)
    imex        additive methods for f = f_E + f_I

The Gauss, Radau and Lobatto families are generated with any number of stages
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

from decimal import localcontext
from functools import cache
from typing import Any

from ..tableau import Tableau
from ..tableau.exact import DIGITS, parse
from . import beyond_tableaux, tableaux
from .entry import Entry, folded, index, nearest

__all__ = [
    "Entry",
    "entries",
    "entry",
    "find",
    "from_name_or_file",
    "get",
    "method_of",
    "names",
    "rk2",
]


def get(name: str) -> Tableau:
    """Return the Runge–Kutta scheme with this name.

    Parameters
    ----------
    name
        A name or an alias; case, spaces, hyphens and underscores do not matter. The generated
        families take any number of stages: "Gauss7", "Lobatto IIIC 4".

    Raises
    ------
    ValueError
        If there is no such scheme, and the message suggests the nearest names; or if it has no
        Butcher tableau: :func:`entry` finds those.

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
    return Tableau.load(name) if _is_file(name) else get(name)


def method_of(name: str) -> Any:
    """Return the scheme with this name, of any kind, or the tableau in the file of this name."""
    return Tableau.load(name) if _is_file(name) else entry(name).method


def entry(name: str) -> Entry:
    """Return the entry with this name, of any kind of scheme, found as by :func:`get`.

    Examples
    --------
    >>> entry("RADAU5").stability
    'L, B'
    >>> entry("rodas5p").method
    <Rosenbrock Rodas5P: 8 stages, order 5(4)>
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a scheme, got {type(name).__name__}: {name!r}")
    if (found := find(name)) is not None:
        return found
    near = nearest(name, _index())
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(
        f"no scheme is called {name!r}; {hint}integrators.catalogue.names('all') lists them all"
    )


def find(name: str) -> Entry | None:
    """Return the entry with this name, found as by :func:`entry`; None if there is none."""
    key = folded(name)
    return _index().get(key) or tableaux.generated(key)


def names(kind: str = "tableau") -> list[str]:
    """Return the names of the schemes of a kind, as :func:`entries` has them.

    Examples
    --------
    >>> "DOPRI5" in names(), "Gauss3" in names(), "Rodas5P" in names("all")
    (True, True, True)
    """
    return [e.name for e in entries(kind)]


def entries(kind: str = "tableau") -> list[Entry]:
    """Return the entries of a kind, in the order of the files.

    Parameters
    ----------
    kind
        "tableau": whatever has a Butcher tableau, the generated families with a few sizes each;
        "all": the other families, too; else the kind that the entries state: "explicit", "SDIRK",
        "Rosenbrock", "splitting", "IMEX", ….

    Examples
    --------
    >>> [e.name for e in entries() if e.kind == "explicit" and e.order >= 9]
    ['Verner98']
    >>> [e.name for e in entries("Rosenbrock")][:2]
    ['ROS3P', 'ROS34PW2']
    """
    if kind == "tableau":
        return list(tableaux.schemes())
    if kind == "all":
        return list(_all())
    known = dict.fromkeys(e.kind for e in _all())
    if kind not in known:
        raise ValueError(
            f"expected 'tableau', 'all' or one of {', '.join(map(repr, known))} as kind of scheme, "
            f"got {kind!r}"
        )
    return [e for e in _all() if e.kind == kind]


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


def _is_file(name: str) -> bool:
    return name.endswith((".toml", ".json"))


@cache
def _all() -> tuple[Entry, ...]:
    return (*tableaux.schemes(), *beyond_tableaux.schemes())


@cache
def _index() -> dict[str, Entry]:
    return index(_all())
