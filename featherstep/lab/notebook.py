"""Notebooks of a lab: hand-outs without answers, solutions, and forms for other graders."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from integrators.files import write_text

from .definition import FOLDER, Lab, Task, load_lab

__all__ = ["EXPORTS", "export_lab", "handout", "solution", "write_lab"]

HAND_IN = """\
Before you hand in: *Kernel → Restart and run all*, save, and look with

```sh
featherstep lab check {name}.ipynb
```

whether every answer is there and can be read. It does not tell whether it is right."""

TEST = '''\
"""The solution of the lab gets all points, the hand-out none: python -m pytest test_lab.py."""

from pathlib import Path

from featherstep.lab import grade_folder, load_lab

HERE = Path(__file__).parent


def test_solutions_get_all_points():
    marks = grade_folder(HERE / "solution", load_lab(HERE))
    assert all(student.total == marks.lab.points for student in marks.students), marks


def test_handouts_get_none():
    marks = grade_folder(HERE / "handout", load_lab(HERE))
    assert all(student.total == 0 for student in marks.students), marks
'''


def handout(lab: Lab, student: str = "") -> dict[str, Any]:
    """Return a hand-out as a notebook: text, figures and stubs, no answers.

    Examples
    --------
    >>> cells = handout(load_lab("euler"), "ada")["cells"]
    >>> cells[0]["source"].splitlines()[0]
    '# Euler and its error'
    """
    cells = list(_cells(lab, student, solved=False))
    cells.append(_text(HAND_IN.format(name=student or lab.name)))
    return _notebook(lab, student, cells)


def solution(lab: Lab, student: str = "") -> dict[str, Any]:
    """Return the notebook with all tasks solved, for the teacher."""
    return _notebook(lab, student, list(_cells(lab, student, solved=True)))


def _cells(lab: Lab, student: str, solved: bool) -> Iterator[dict[str, Any]]:
    drawn = lab.numbers(student).items()
    numbers = ", ".join(f"{name} = {value}" for name, value in drawn if not isinstance(value, list))
    yours = f"Your numbers: {numbers}." if numbers else ""
    whose = f"\n\n*{student}*" if student else ""
    tasks = f"{len(lab.tasks)} tasks, {lab.points:g} points, about {lab.minutes} minutes."
    yield _text(f"# {lab.title}{whose}\n\n{tasks} {yours}".rstrip())
    for cell in lab.cells:
        if cell.task is not None:
            yield _text(_question(lab, cell.task, student))
            code = cell.task.solution if solved else cell.task.stub
            yield _code(lab.filled(code, student))
            continue
        if cell.text:
            yield _text(lab.filled(cell.text, student))
        if cell.code:
            yield _code(lab.filled(cell.code, student))


def _question(lab: Lab, task: Task, student: str) -> str:
    points = f"{task.points:g} point{'s' * (task.points != 1)}"
    return f"### Task: {task.name} ({points})\n\n{lab.filled(task.text, student)}"


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
            "source": source}  # fmt: skip


def _raw(source: str) -> dict[str, Any]:
    return {"cell_type": "raw", "metadata": {}, "source": source}


def _notebook(lab: Lab, student: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    for k, cell in enumerate(cells):
        cell["id"] = f"cell-{k}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": kernel,
            "language_info": {"name": "python"},
            "featherstep": {"lab": lab.name, "student": student},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _write(path: Path, notebook: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(str(path), json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return path


def write_lab(
    lab: Lab, out: Path, students: Sequence[str] = (), seed: str | None = None
) -> list[Path]:
    """Write the folder of a lab: hand-outs, solutions, a test of both, and the lab itself.

    Parameters
    ----------
    lab
        What :func:`load_lab` returned.
    out
        A new or empty folder. ``handout/`` is for students; the rest is for the teacher:
        ``lab.toml`` holds the seed.
    students
        One hand-out for each, with numbers of their own; one for all if there are none.
    seed
        What numbers are drawn from; by default a new secret.

    Returns
    -------
    list of Path
        What was written.
    """
    names = [_checked(name) for name in students] or [""]
    if len({name.lower() for name in names}) < len(names):
        raise ValueError("two students have the same name")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty; name a new folder")
    out.mkdir(parents=True, exist_ok=True)
    seed = secrets.token_hex(8) if seed is None else seed
    source = re.sub(r"(?m)^seed *=.*\n", "", lab.source)
    source = re.sub(r"(?m)^students *=.*\n", "", source)
    listed = f"students = {json.dumps([n for n in names if n], ensure_ascii=False)}\n"
    write_text(str(out / "lab.toml"), f"seed = {json.dumps(seed)}\n{listed}{source}")
    beside = lab.folder / (lab.checks or "checks.py")
    if beside.is_file():
        shutil.copy(beside, out / beside.name)
    kept = load_lab(out)
    written = [out / "lab.toml", out / "test_lab.py"]
    write_text(str(written[1]), TEST)
    for name in names:
        file = f"{name or lab.name}.ipynb"
        written.append(_write(out / "handout" / file, handout(kept, name)))
        written.append(_write(out / "solution" / file, solution(kept, name)))
    return written


def _checked(name: str) -> str:
    name = name.strip()
    if not name or re.search(r'[/\\:*?"<>|\x00-\x1f]', name) or name.startswith("."):
        raise ValueError(f"{name!r} cannot be the name of a file; use letters, digits, - and _")
    return name


# -------------------------------------------------------------------- other graders


def _nbgrader(lab: Lab) -> list[dict[str, Any]]:
    """A source notebook of nbgrader: solutions between marks, hidden tests, points in metadata."""
    cells = []
    for cell in lab.cells:
        if cell.task is None:
            cells += [_text(lab.filled(cell.text))] * bool(cell.text)
            cells += [_code(lab.filled(cell.code))] * bool(cell.code)
            continue
        task = cell.task
        cells.append(_text(_question(lab, task, "")))
        answer = _code("### BEGIN SOLUTION\n" + lab.filled(task.solution) + "\n### END SOLUTION")
        answer["metadata"]["nbgrader"] = _grading(f"{lab.name}-{task.name}", solution=True)
        tests = _code("### BEGIN HIDDEN TESTS\n" + _test(lab, task) + "\n### END HIDDEN TESTS")
        tests["metadata"]["nbgrader"] = _grading(
            f"test-{lab.name}-{task.name}", grade=True, locked=True, points=task.points
        )
        cells += [answer, tests]
    return [_text(f"# {lab.title}"), *cells]


def _grading(name: str, **given: Any) -> dict[str, Any]:
    usual = {"grade": False, "locked": False, "solution": False, "task": False}
    return {**usual, "schema_version": 3, "grade_id": name, **given}


def _otter(lab: Lab) -> list[dict[str, Any]]:
    """The master notebook of ``otter assign``: questions between raw cells."""
    cells = [_raw(f"# ASSIGNMENT CONFIG\nname: {lab.name}\nsolutions_pdf: false"),
             _text(f"# {lab.title}")]  # fmt: skip
    for cell in lab.cells:
        if cell.task is None:
            cells += [_text(lab.filled(cell.text))] * bool(cell.text)
            cells += [_code(lab.filled(cell.code))] * bool(cell.code)
            continue
        task = cell.task
        lines = "\n".join(f"{line} # SOLUTION" for line in lab.filled(task.solution).splitlines())
        prompt = '""" # BEGIN PROMPT\n' + lab.filled(task.stub) + '\n""" # END PROMPT\n'
        cells += [
            _raw(f"# BEGIN QUESTION\nname: {task.name}\npoints: {task.points:g}"),
            _text(_question(lab, task, "")),
            _raw("# BEGIN SOLUTION"),
            _code(prompt + lines),
            _raw("# END SOLUTION"),
            _raw("# BEGIN TESTS"),
            _code("# HIDDEN\n" + _test(lab, task)),
            _raw("# END TESTS"),
            _raw("# END QUESTION"),
        ]
    return cells


def _test(lab: Lab, task: Task) -> str:
    """Code that passes if an answer is right; truths are computed, not written down."""
    where = lab.name if lab.folder == FOLDER else f"{lab.name}.toml"
    return (
        "from featherstep.lab import assess, load_lab\n"
        f"grade = assess(load_lab({where!r}), {task.name!r}, {task.variable})\n"
        "assert grade, grade.message"
    )


EXPORTS = {"nbgrader": _nbgrader, "otter": _otter}


def export_lab(lab: Lab, kind: str, out: Path) -> Path:
    """Write a lab in the form of another grader: "nbgrader" or "otter".

    All students have the same numbers there. A lab of one's own is written beside its notebook,
    because the tests read it.
    """
    if lab.folder != FOLDER:
        out.mkdir(parents=True, exist_ok=True)
        write_text(str(out / f"{lab.name}.toml"), lab.source)
    return _write(out / f"{lab.name}.ipynb", _notebook(lab, "", EXPORTS[kind](lab)))
