"""Tableaux as text: printed, in LaTeX, as plain data, and in JSON or TOML files.

Fractions and long decimals are written as strings, so that a file gives back the same numbers.
"""

from __future__ import annotations

import json
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import refuse_long_keys, write_text
from .coefficients import _short, _text
from .exact import Number

if TYPE_CHECKING:
    from .tableau import Tableau

__all__ = ["latex", "plain_data", "read", "table", "write"]

KEYS = {"A", "b", "c", "b_hat", "b_low", "name", "reference"}

#: Bytes of a file; a scheme of 35 stages with 60 digits has 80 thousand.
LARGEST_FILE = 5_000_000

#: What an entry of the catalogue says besides the coefficients.
REMARKS = ("title", "order", "embedded_order", "aliases", "kind", "stability")


def table(tableau: Tableau) -> str:
    """Coefficients in columns: c to the left of A, the weights below."""
    rows = [[_short(a) if a != 0 else "" for a in row] for row in tableau.A]
    weights = [[_short(x) for x in w] for w in (tableau.b, tableau.b_hat, tableau.b_low) if w]
    nodes = [_short(x) for x in tableau.c]
    left = max(map(len, nodes))
    widths = [max(len(r[j]) for r in rows + weights) for j in range(tableau.stages)]

    def line(head: str, cells: list[str]) -> str:
        body = " ".join(f"{cell:>{w}}" for cell, w in zip(cells, widths))
        return f"{head:>{left}} | {body}".rstrip()

    rule = "-" * (left + 1) + "+" + "-" * (sum(widths) + len(widths))
    return "\n".join(
        [
            *(line(h, r) for h, r in zip(nodes, rows)),
            rule,
            *(line("", w) for w in weights),
        ]
    )


def latex(tableau: Tableau) -> str:
    """LaTeX ``array`` of a tableau."""

    def cell(x: Number) -> str:
        if isinstance(x, Fraction) and x.denominator != 1:
            sign = "-" if x < 0 else ""
            return rf"{sign}\tfrac{{{abs(x.numerator)}}}{{{x.denominator}}}"
        return _short(x)

    lines = [
        " & ".join([cell(ci), *(cell(a) if a != 0 else "" for a in row)])
        for ci, row in zip(tableau.c, tableau.A)
    ]
    known = (tableau.b, tableau.b_hat, tableau.b_low)
    weights = [" & ".join(["", *map(cell, w)]) for w in known if w]
    body = " \\\\\n".join(lines) + " \\\\ \\hline\n" + " \\\\\n".join(weights)
    return rf"\begin{{array}}{{c|{'c' * tableau.stages}}}" + f"\n{body}\n" + r"\end{array}"


def plain_data(tableau: Tableau) -> dict[str, Any]:
    """Arguments that make the tableau again; fractions and long decimals as strings."""
    data: dict[str, Any] = {"name": tableau.name, "reference": tableau.reference}
    data["A"] = [[_text(a) for a in row] for row in tableau.A]
    for key in ("b", "c", "b_hat", "b_low"):
        value = getattr(tableau, key)
        if value is not None:
            data[key] = [_text(x) for x in value]
    return data


def write(tableau: Tableau, path: Path) -> None:
    """Write a tableau to a ``.json`` or ``.toml`` file."""
    data = tableau.to_dict()
    if path.suffix == ".json":
        text = json.dumps(data, indent=1) + "\n"
    elif path.suffix == ".toml":
        # JSON strings, floats and lists are TOML as well.
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in data.items())
    else:
        raise ValueError(f"expected a file name ending in .json or .toml, got {path.name!r}")
    write_text(path, text)


def read(path: Path) -> dict[str, Any]:
    """Arguments of the tableau in a file, which may be written like an entry of the catalogue."""
    if path.suffix not in (".json", ".toml"):
        raise ValueError(f"expected a file name ending in .json or .toml, got {path.name!r}")
    if (size := path.stat().st_size) > LARGEST_FILE:
        limit = f"{LARGEST_FILE // 1000:,} kB"
        raise ValueError(f"expected at most {limit}, received {size // 1000:,} kB")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        refuse_long_keys(text)
    data: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    if not isinstance(data, dict):
        raise ValueError(f"expected keys such as A and b, received {data!r:.60}")
    if len(data) == 1 and isinstance(next(iter(data.values())), dict):
        ((name, entry),) = data.items()
        data = {"name": name, **{k: v for k, v in entry.items() if k not in REMARKS}}
    if unknown := set(data) - KEYS:
        expected = ", ".join(sorted(KEYS))
        raise ValueError(f"unknown key {sorted(unknown)[0][:60]!r}; expected {expected}")
    if missing := {"A", "b"} - set(data):
        raise ValueError(f"the key {sorted(missing)[0]!r} is missing")
    return data
