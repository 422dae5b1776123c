"""What a lab is: cells of text and code, tasks among them, and numbers drawn for each student.

In the file ``«name»`` stands for a number of the student's own; in solutions and answers it is a
Python literal. Numbers are drawn from a hash of seed, lab and student, so that grading needs no
list of them and nobody can guess a neighbour's.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from integrators.errors import suggest
from integrators.files import refuse_long_keys

__all__ = ["Cell", "Lab", "Task", "labs", "load_lab"]

FOLDER = Path(__file__).parent / "labs"
PLACE = re.compile(r"«(\w+)»")
LAB_KEYS = {"name", "title", "minutes", "numbers", "cell", "seed", "checks", "students"}
TASK_KEYS = {"task", "points", "text", "stub", "solution", "check", "variable"}
CELL_KEYS = {"text", "code"}


@dataclass(frozen=True)
class Task:
    """A question with points.

    Attributes
    ----------
    name, points
        What it is called in tables, and what it is worth.
    text, stub, solution
        The question in Markdown, the cell that students fill in, and the cell that is right.
    variable
        Name of the variable or function that is looked at; ``name`` by default.
    check
        Kind of check, see :mod:`checks`.
    settings
        Everything else that the file says about the check.
    """

    name: str
    points: float
    text: str
    stub: str
    solution: str
    variable: str
    check: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A cell of text, or of code that is handed out as it is, or a task."""

    text: str = ""
    code: str = ""
    task: Task | None = None


@dataclass(frozen=True)
class Lab:
    """A lab as its file describes it; made by :func:`load_lab`."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    choices: dict[str, list[Any]]
    minutes: int = 90
    seed: str = "0"
    source: str = ""
    folder: Path = FOLDER
    checks: str = ""
    students: tuple[str, ...] = ()

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The tasks by name, in their order."""
        return {cell.task.name: cell.task for cell in self.cells if cell.task is not None}

    @property
    def points(self) -> float:
        """What all tasks together are worth."""
        return sum(task.points for task in self.tasks.values())

    def numbers(self, student: str = "") -> dict[str, Any]:
        """Return the numbers of a student.

        Examples
        --------
        >>> lab = load_lab("euler")
        >>> lab.numbers("ada") == lab.numbers("ada"), lab.numbers("ada") == lab.numbers("bob")
        (True, False)
        """
        drawn = {}
        for name, choices in self.choices.items():
            text = "\0".join((self.seed, self.name, student.strip().lower(), name))
            digest = hashlib.sha256(text.encode()).digest()
            drawn[name] = choices[int.from_bytes(digest[:8], "big") % len(choices)]
        return drawn

    def filled(self, text: str, student: str = "") -> str:
        """Return text with the student's numbers in their places."""
        numbers = self.numbers(student)

        def number(match: re.Match[str]) -> str:
            return _literal(numbers[match[1]])

        return PLACE.sub(number, text)


def _literal(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def labs() -> dict[str, str]:
    """Return names and titles of the labs that come with the package.

    Examples
    --------
    >>> len(labs())
    8
    """
    found = [load_lab(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {lab.name: lab.title for lab in found}


def load_lab(name: str | Path) -> Lab:
    """Read a lab: one that comes with the package, by its name, or a file.

    Parameters
    ----------
    name
        A name that :func:`labs` lists, a TOML file, or a folder with a ``lab.toml``.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest one, and for files that are no lab, with the place.
    """
    path = Path(name)
    if path.is_dir():
        path = path / "lab.toml"
    if not path.is_file() and "/" not in str(name) and path.suffix == "":
        known = {p.stem.partition("_")[2]: p for p in FOLDER.glob("*.toml")}
        other = {"convergence": "taylor", **{key: key for key in known}}
        if other.get(str(name)) not in known:
            raise ValueError(f"there is no lab {str(name)!r}{suggest(str(name), list(other))}")
        path = known[other[str(name)]]
    if not path.is_file():
        raise ValueError(f"there is no file {path} with a lab")
    text = path.read_text(encoding="utf-8")
    try:
        refuse_long_keys(text)
        data = tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    return _lab(data, text, path)


def _lab(data: Mapping[str, Any], text: str, path: Path) -> Lab:
    for key in data:
        if key not in LAB_KEYS:
            raise ValueError(f"{path}: unknown key {key!r}{suggest(key, sorted(LAB_KEYS))}")
    cells = tuple(_cell(cell, k, path) for k, cell in enumerate(data.get("cell", []), start=1))
    numbers = data.get("numbers", {})
    for name, choices in numbers.items():
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"{path}: numbers.{name} must be a list of choices, got {choices!r}")
    lab = Lab(
        str(data.get("name", path.stem)), str(data.get("title", path.stem)), cells, numbers,
        int(data.get("minutes", 90)), str(data.get("seed", "0")), text, path.parent,
        str(data.get("checks", "")), tuple(map(str, data.get("students", ()))),
    )  # fmt: skip
    if not lab.tasks:
        raise ValueError(f"{path} has no tasks: a [[cell]] with task, points, text, check …")
    if len(lab.tasks) < sum(cell.task is not None for cell in cells):
        raise ValueError(f"{path}: two tasks have the same name")
    for used in sorted(set(PLACE.findall(text)) - set(numbers)):
        raise ValueError(f"{path}: «{used}» is not among [numbers]{suggest(used, list(numbers))}")
    return lab


def _cell(data: Mapping[str, Any], k: int, path: Path) -> Cell:
    where = f"{path}, cell {k}"
    if "task" not in data:
        for key in data:
            if key not in CELL_KEYS:
                known = sorted(CELL_KEYS | {"task"})
                raise ValueError(f"{where}: unknown key {key!r}{suggest(key, known)}")
        return Cell(str(data.get("text", "")).strip(), str(data.get("code", "")).strip())
    missing = sorted({"points", "text", "check", "solution"} - set(data))
    if missing:
        raise ValueError(f"{where}: the task {data['task']!r} lacks {', '.join(missing)}")
    if not data["points"] > 0:
        raise ValueError(f"{where}: points must be positive, got {data['points']!r}")
    from .checks import KINDS

    if data["check"] not in KINDS:
        known = sorted(KINDS)
        raise ValueError(f"{where}: unknown check {data['check']!r}{suggest(data['check'], known)}")
    name = str(data["task"])
    variable = str(data.get("variable", name))
    task = Task(
        name, float(data["points"]), str(data["text"]).strip(),
        str(data.get("stub", f"{variable} = None  # your answer")).strip(),
        str(data["solution"]).strip(), variable, str(data["check"]),
        {key: value for key, value in data.items() if key not in TASK_KEYS},
    )  # fmt: skip
    return Cell(task=task)
