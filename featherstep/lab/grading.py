"""Marks for a folder of submissions: points, reports for each student, tables for the teacher."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from integrators.analysis import Grade
from integrators.analysis.study.tables import Column, Table
from integrators.files import write_text
from integrators.processors import available_processors

from ..report import html_page, listed
from .checks import assess
from .definition import Lab
from .notebook import handout
from .nursery import Nursery
from .submission import Submission, SubmissionError

__all__ = ["Marks", "StudentMarks", "file_name", "grade_file", "grade_folder"]

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a spreadsheet's begin
SECONDS = 30.0  # for one submission, with all its checks
LONGEST = 100  # characters of a file's name
LEAST = 5.0  # of which for work of one's own, whatever the rest took
SHARED = 3  # submissions from which on the code of the hand-out is run once for all
Told = Callable[[int, int, str], None]


@dataclass
class StudentMarks:
    """What one submission got."""

    student: str
    file: str
    grades: dict[str, Grade] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    printed: str = ""

    @property
    def total(self) -> float:
        """All points."""
        return sum(self.points.values())

    def __str__(self) -> str:
        tasks = "; ".join(f"{name} {self.points[name]:g}" for name in self.points)
        return f"{self.student}: {self.total:g} ({tasks})"


@dataclass
class Marks:
    """The marks of a class; print it, or write tables and pages."""

    lab: Lab
    students: list[StudentMarks]

    @property
    def table(self) -> Table:
        """One line for each student."""
        tasks = self.lab.tasks
        columns = (
            Column("student", "student", text=True),
            *(Column(f"{t.name} ({t.points:g})", name, "{:g}".format) for name, t in tasks.items()),
            Column(f"total ({self.lab.points:g})", "total", "{:g}".format),
            Column("seconds", "seconds", "{:.1f}".format),
            Column("remarks", "remarks", text=True),
        )
        rows = tuple(
            (s.student, *(s.points.get(name, 0.0) for name in tasks), s.total, s.seconds,
             "; ".join(s.remarks))
            for s in self.students
        )  # fmt: skip
        return Table(columns, rows, self.lab.title)

    def to_csv(self) -> str:
        """Return marks as comma-separated values, with the largest points in the first line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        tasks = self.lab.tasks
        writer.writerow(["student", *tasks, "total", "seconds", "file", "remarks"])
        writer.writerow(["(points)", *(f"{t.points:g}" for t in tasks.values()),
                         f"{self.lab.points:g}", "", "", ""])  # fmt: skip
        for s in self.students:
            points = (f"{s.points.get(name, 0.0):g}" for name in tasks)
            remarks = "; ".join(s.remarks)
            cells = [s.student, *points, f"{s.total:g}", f"{s.seconds:.2f}", s.file, remarks]
            # A cell that begins like a formula would be one in a spreadsheet.
            writer.writerow(["'" + c if c.startswith(FORMULA) and c != "-" else c for c in cells])
        return text.getvalue()

    def to_html(self, pages: str = "") -> str:
        """Return the page of the class; ``pages`` is the folder of the students' own pages."""
        came = [s for s in self.students if s.file]
        lead = [f"{len(came)} submissions, {self.lab.points:g} points"]
        if came:
            lead.append(f"mean {sum(s.total for s in came) / len(came):.3g}")
        sections = [self.table.to_html(), self._by_task()]
        if pages:
            links = "".join(
                f'<li><a href="{quote(pages)}/{quote(name)}">{html.escape(s.student)}</a></li>'
                for name, s in self.pages().items()
            )
            sections.append(f"<h2>Reports</h2><ul>{links}</ul>")
        return html_page(f"Marks: {self.lab.title}", lead, sections)

    def _by_task(self) -> str:
        """How many solved each task, and what went wrong most often."""
        parts = ["<h2>Tasks</h2>"]
        for name in self.lab.tasks:
            grades = [s.grades[name] for s in self.students if name in s.grades]
            right = sum(map(bool, grades))
            wrong = Counter(g.message for g in grades if not g).most_common(3)
            lines = [f"{count} × {message}" for message, count in wrong]
            parts.append(f"<h3>{html.escape(name)}: {right} of {len(grades)}</h3>{listed(lines)}")
        return "\n".join(parts)

    def pages(self) -> dict[str, StudentMarks]:
        """Return the submissions by the names of their pages; two by one student have two."""
        named: dict[str, StudentMarks] = {}
        for s in self.students:
            stem, count = file_name(s.student), 1
            name = f"{stem}.html"
            while name.lower() in map(str.lower, named):
                count += 1
                name = f"{stem}_{count}.html"
            if s.file:
                named[name] = s
        return named

    def write_pages(self, folder: Path) -> None:
        """Write the reports of all students into a folder, each whole or not at all."""
        for name, student in self.pages().items():
            write_text(folder / name, self.page(student))

    def page(self, student: StudentMarks) -> str:
        """Return the report for one student."""
        rows = tuple(
            (name, student.points.get(name, 0.0), task.points,
             str(student.grades.get(name, Grade(False, "not checked"))))
            for name, task in self.lab.tasks.items()
        )  # fmt: skip
        columns = (
            Column("task", "task", text=True),
            Column("points", "points", "{:g}".format),
            Column("of", "of", "{:g}".format),
            Column("", "message", text=True),
        )
        sections = [Table(columns, rows).to_html()]
        if student.remarks:
            sections.append("<h2>Remarks</h2>" + listed(student.remarks))
        if student.printed.strip():
            sections.append(f"<h2>Printed</h2><pre>{html.escape(student.printed)}</pre>")
        lead = [f"{student.total:g} of {self.lab.points:g} points"]
        return html_page(f"{self.lab.title}: {student.student}", lead, sections)

    def __str__(self) -> str:
        return self.table.to_text()


def grade_folder(
    folder: Path | str,
    lab: Lab,
    *,
    seconds: float = SECONDS,
    workers: int | None = None,
    report: Told | None = None,
) -> Marks:
    """Grade all submissions in a folder.

    Parameters
    ----------
    folder
        Notebooks and Python files, one for each student, or a folder with one for each.
    lab
        The lab with the seed of the hand-outs: ``load_lab("lab/lab.toml")``.
    seconds
        Time limit for each submission.
    workers
        How many at once; one for each processor by default.
    report
        Called as ``report(done, total, file)``.

    Returns
    -------
    Marks
        In alphabetical order of students.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"there is no folder {root} with submissions")
    files = [p for p in sorted(root.iterdir()) if p.suffix in (".ipynb", ".py") and p.is_file()]
    for inner in sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")):
        files += sorted(p for p in inner.iterdir() if p.suffix in (".ipynb", ".py"))[:1]
    if not files:
        raise ValueError(f"{root} has no notebooks and no Python files")
    # The nursery closes first: after Ctrl-C no thread waits for a submission.
    with (
        ThreadPoolExecutor(workers or available_processors()) as pool,
        _nursery(lab, files) as nursery,
    ):
        found = []
        graded = pool.map(lambda p: grade_file(p, lab, root, seconds, nursery=nursery), files)
        for k, marks in enumerate(graded):
            if report is not None:
                report(k, len(files), marks.file)
            found.append(marks)
    for student, count in Counter(m.student.lower() for m in found).items():
        for marks in found:
            if count > 1 and marks.student.lower() == student:
                marks.remarks.append(f"{count} submissions are by {marks.student}")
    came = {marks.student.lower() for marks in found}
    found += [
        StudentMarks(name, "", remarks=["nothing was handed in"])
        for name in lab.students
        if name.lower() not in came
    ]
    return Marks(lab, sorted(found, key=_as_counted))


def _as_counted(marks: StudentMarks) -> list[tuple[int, str]]:
    """Let student10 come after student9."""
    parts = re.split(r"(\d+)", marks.student.lower())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


@contextmanager
def _nursery(lab: Lab, files: list[Path]) -> Iterator[Nursery | None]:
    """Load what the hand-out loads once, if there are enough submissions to share it."""
    if not Nursery.available():
        yield None
        return
    cells = handout(lab)["cells"] if len(files) >= SHARED else []
    with Nursery([c["source"] for c in cells if c["cell_type"] == "code"]) as nursery:
        yield nursery


def grade_file(
    path: Path,
    lab: Lab,
    root: Path,
    seconds: float,
    form: bool = False,
    nursery: Nursery | None = None,
) -> StudentMarks:
    """Grade one submission; with ``form`` say only whether the answers are there.

    Work of one's own (``own = true``) is looked at in a second process without the libraries.
    """
    own = path.stem if path.parent == root else path.parent.name
    student, remark = _student(path, own, lab)
    marks = StudentMarks(student, path.name, remarks=[remark] * bool(remark))
    marks.points = dict.fromkeys(lab.tasks, 0.0)
    key = student if lab.students else ""  # one hand-out for all has the same numbers for all
    start = time.monotonic()
    closed = () if form else (root, lab.folder)
    own_work = [name for name, task in lab.tasks.items() if task.settings.get("own") and not form]
    try:
        with Submission(path, seconds, nursery, closed) as submission:
            marks.remarks += submission.errors
            marks.printed = submission.printed
            for name, task in lab.tasks.items():
                value = submission.value(task.variable)
                if form:
                    there = value is not None
                    marks.grades[name] = Grade(there, "there" if there else "no answer yet")
                elif name not in own_work or value is None:
                    marks.grades[name] = _assessed(marks, lab, name, value, key)
        answered = [name for name in own_work if name not in marks.grades]
        if answered:
            left = max(seconds - (time.monotonic() - start), LEAST)
            with Submission(path, left, nursery, closed, alone=True) as submission:
                for name in answered:
                    variable = lab.tasks[name].variable
                    value = submission.value(variable)
                    marks.grades[name] = (
                        Grade(False, f"{variable} needs a library; write it yourself")
                        if value is None
                        else _assessed(marks, lab, name, value, key)
                    )
    except (SubmissionError, OSError) as error:
        marks.remarks.append(str(error))
        for name in lab.tasks:
            marks.grades.setdefault(name, Grade(False, f"not checked: {error}"))
    if not form:
        marks.points = {n: task.points * bool(marks.grades[n]) for n, task in lab.tasks.items()}
    marks.grades = {name: marks.grades[name] for name in lab.tasks}
    marks.seconds = time.monotonic() - start
    return marks


def _assessed(marks: StudentMarks, lab: Lab, name: str, value: Any, key: str) -> Grade:
    """Check an answer; one that breaks the check must not cost the class its marks.

    Mistakes in a lab's own file come to light here as well: its test has them.
    """
    try:
        return assess(lab, name, value, key)
    except Exception as error:
        failed = f"the check of {name} failed: {type(error).__name__}: {error}"
        marks.remarks.append(failed)
        return Grade(False, failed)


def file_name(student: str) -> str:
    """Return the name of a student as that of a file; it may come from a submission."""
    return re.sub(r"[/\\:\x00-\x1f]", "_", student)[:LONGEST] or "_"


def _student(path: Path, own: str, lab: Lab) -> tuple[str, str]:
    """Whose submission it is, and what is odd about that."""
    student = own
    if path.suffix == ".ipynb":
        try:
            data = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("featherstep", {})
            lab_name, student = str(data.get("lab", lab.name)), str(data.get("student", "")) or own
        except (ValueError, LookupError, TypeError, AttributeError, OSError):
            return own, ""  # running it will say what is wrong with it
        if lab_name != lab.name:
            return student, f"this is a hand-out of the lab {lab_name!r}, not {lab.name!r}"
    if lab.students and student.lower() not in map(str.lower, lab.students):
        return student, f"{student!r} is not in the list of students"
    if student.lower() not in own.lower():
        return student, f"the hand-out of {student} came as {own!r}"
    return student, ""
