"""Labs that grade themselves: hand-outs with numbers of their own for each student, and marks.

A lab is a TOML file (:mod:`definition`): text with formulae, code that draws figures, and tasks
with a stub, a solution and a check (:mod:`checks`). One engine makes notebooks of it
(:mod:`notebook`), runs submissions in processes of their own (:mod:`submission`), and writes marks
and reports (:mod:`grading`). ``featherstep lab --help`` has the commands, ``docs/labs.md`` an own
lab.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name → module of this package that defines it; loaded on first use, for a quick --help.
_WHERE = {
    "Lab": "definition",
    "Marks": "grading",
    "Task": "definition",
    "assess": "checks",
    "grade_folder": "grading",
    "labs": "definition",
    "load_lab": "definition",
    "write_lab": "notebook",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
