"""The command ``featherstep lab``: hand-outs, marks, forms for other graders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..options import FAILURE, shown_progress, text_block, write

__all__ = ["add_lab"]


def add_lab(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``lab`` with its own commands."""
    parser = commands.add_parser(
        "lab",
        parents=[shared],
        help="labs that grade themselves: hand-outs, solutions, marks",
        description=text_block("""
            Write the hand-outs of a lab, with numbers of their own for each student, and grade
            what comes back: each submission in a process of its own, with a time limit.
        """),
        epilog=text_block("""
            examples:
              featherstep lab list
              featherstep lab new convergence --out lab/ --students names.txt
              featherstep lab grade submissions/ --lab lab/ --csv marks.csv --html report.html
              featherstep lab check ada.ipynb
                  for students: are all answers there?
              featherstep lab export stiffness --form nbgrader --out course/source/stiffness

            lab/handout/ is for students; lab.toml, with the seed of their numbers, is not. An own
            lab is such a file (the page Labs tells). A process is no prison: grade what you do not
            trust in a container.
        """),
    )
    parser.set_defaults(run=lambda arguments: _help(parser), debug=False)
    parts = parser.add_subparsers(title="what to do", metavar="WHAT", dest="what")

    def part(name: str, text: str, run: Any) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = parts.add_parser(
            name, parents=[shared], help=text, description=text
        )
        made.set_defaults(run=run, debug=False)
        return made

    part("list", "list the labs that come with the package", _list)
    new = part("new", "write hand-outs, solutions and tests of a lab", _new)
    new.add_argument("lab", metavar="LAB", help="a name that `lab list` has, or a file")
    new.add_argument("--out", metavar="FOLDER", required=True, help="a new folder")
    new.add_argument(
        "--students", metavar="FILE", help="names, one a line; without it one hand-out for all"
    )
    new.add_argument("--seed", metavar="TEXT", help="of the numbers (default: a new secret)")
    grade = part("grade", "grade a folder of submissions", _grade)
    grade.add_argument("folder", metavar="DIR", help="notebooks or Python files, one a student")
    grade.add_argument("--lab", metavar="LAB", help="folder or file of the lab (default: near DIR)")
    grade.add_argument("--csv", metavar="FILE", help="marks; - for standard output")
    grade.add_argument("--html", metavar="FILE", help="the class on a page, and one a student")
    grade.add_argument(
        "--seconds", metavar="S", type=float, default=30.0, help="for a submission (default 30)"
    )
    grade.add_argument("--workers", metavar="N", type=int, help="default: one a processor")
    check = part("check", "say whether a submission can be read and has all answers", _check)
    check.add_argument("file", metavar="FILE", help="the notebook to hand in")
    check.add_argument("--lab", metavar="LAB", help="default: what the notebook says")
    export = part("export", "write a lab for nbgrader or otter-grader", _export)
    export.add_argument("lab", metavar="LAB")
    export.add_argument("--form", choices=["nbgrader", "otter"], required=True)
    export.add_argument("--out", metavar="FOLDER", required=True)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from .definition import labs

    for name, title in labs().items():
        sys.stdout.write(f"{name:12} {title}\n")
    return 0


def _new(arguments: argparse.Namespace) -> int:
    from .definition import load_lab
    from .notebook import write_lab

    students = []
    if arguments.students is not None:
        path = Path(arguments.students)
        if not path.exists() or path.is_dir():
            raise ValueError(f"there is no file {path} with names")
        lines = path.read_text(encoding="utf-8").splitlines()
        students = [line.strip() for line in lines if line.strip() and line[0] != "#"]
    lab = load_lab(arguments.lab)
    written = write_lab(lab, Path(arguments.out), students, arguments.seed)
    handouts = sum(path.parent.name == "handout" for path in written)
    sys.stdout.write(
        f"{lab.title}: {handouts} hand-out{'s' * (handouts != 1)} in "
        f"{Path(arguments.out) / 'handout'}, solutions beside\n"
        f"keep lab.toml to yourself; grade with\n"
        f"  featherstep lab grade SUBMISSIONS --lab {arguments.out} --csv marks.csv\n"
    )
    return 0


def _grade(arguments: argparse.Namespace) -> int:
    from .definition import load_lab
    from .grading import grade_folder

    if not arguments.seconds > 0:
        raise ValueError(f"--seconds must be positive, got {arguments.seconds:g}")
    folder = Path(arguments.folder)
    place = Path(arguments.lab) if arguments.lab else None
    if place is None:
        near = [p for p in (folder, folder.parent) if (p / "lab.toml").is_file()]
        if not near:
            raise ValueError(f"there is no lab.toml in {folder} or beside it; name it by --lab")
        place = near[0]
    lab = load_lab(place if place.exists() else str(arguments.lab))
    with shown_progress(f"grading {folder}") as report:
        marks = grade_folder(
            folder, lab, seconds=arguments.seconds, workers=arguments.workers, report=report
        )
    if arguments.csv != "-":
        sys.stdout.write(f"{marks}\n")
    write(arguments.csv, marks.to_csv)
    if arguments.html is not None:
        pages = Path(arguments.html).with_suffix("")
        pages.mkdir(exist_ok=True)
        marks.write_pages(pages)
        write(arguments.html, lambda: marks.to_html(pages.name))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    import json

    from .definition import load_lab
    from .grading import grade_file

    path = Path(arguments.file)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    name = arguments.lab
    if name is None:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            name = data["metadata"]["featherstep"]["lab"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} does not say which lab it is of; name it by --lab") from None
    lab = load_lab(name)
    marks = grade_file(path, lab, path.parent, 120.0, form=True)
    for task, found in marks.grades.items():
        sys.stdout.write(f"{task:16} {found.message}\n")
    for remark in marks.remarks:
        sys.stdout.write(f"{remark}\n")
    return 0 if all(marks.grades.values()) and not marks.remarks else FAILURE


def _export(arguments: argparse.Namespace) -> int:
    from .definition import load_lab
    from .notebook import export_lab

    written = export_lab(load_lab(arguments.lab), arguments.form, Path(arguments.out))
    sys.stdout.write(f"wrote {written}\n")
    return 0
