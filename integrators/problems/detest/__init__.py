"""DETEST: 25 non-stiff and 30 stiff problems by which ODE codes have been compared since 1972.

:func:`names` lists them, :func:`get` returns one, traced, with its solution at the end of the
interval to 15 digits. ``benchmarks/detest.py`` runs all methods on all of them.
"""

from __future__ import annotations

from functools import cache

from ...problem import IVP
from ...tracing import traced
from . import nonstiff, stiff
from .references import REFERENCES

__all__ = ["get", "names"]

_CLASSES = {"nonstiff": nonstiff.PROBLEMS, "stiff": stiff.PROBLEMS}
_SOURCES = {
    "nonstiff": "T. E. Hull, W. H. Enright, B. M. Fellen and A. E. Sedgwick, 1972",
    "stiff": "W. H. Enright, T. E. Hull and B. Lindberg, 1975",
}
_HOW = "references by Radau IIA of order 13 in 80-bit arithmetic on two meshes"


def names(kind: str | None = None) -> list[str]:
    """Return the names of the problems: "nonstiff A1", …, "stiff F5".

    Examples
    --------
    >>> len(names()), names("stiff")[:2]
    (55, ['stiff A1', 'stiff A2'])
    """
    return [f"{k} {name}" for k, table in _CLASSES.items() if kind in (None, k) for name in table]


@cache
def get(name: str) -> IVP:
    """Return a problem of DETEST by its name.

    Examples
    --------
    >>> problem = get("nonstiff A1")
    >>> problem
    <IVP detest nonstiff A1: n = 1, t from 0 to 20>
    >>> problem.references
    {20.0: array([2.06115362e-09])}
    """
    kind, _, short = name.partition(" ")
    if short not in _CLASSES.get(kind, {}):
        raise ValueError(f"there is no problem {name!r}; expected one of {', '.join(names())}")
    f, y0, t_end = _CLASSES[kind][short]
    return IVP(
        traced(f, n=len(y0)),
        y0,
        (0.0, t_end),
        references={t_end: REFERENCES[name]} if name in REFERENCES else {},
        source=f"{_SOURCES[kind]}; {_HOW}",
        name=f"detest {name}",
    )
