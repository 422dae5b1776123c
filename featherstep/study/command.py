"""The command ``featherstep study``: run, status, resume, retry, export, report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..options import FAILURE, INTERRUPTED, complain, text_block

if TYPE_CHECKING:
    from .study import Study

__all__ = ["add_study"]


def _folder(arguments: argparse.Namespace) -> Path:
    """Where the study is kept: as said, or beside its file."""
    if arguments.store is not None:
        return Path(arguments.store)
    given = Path(arguments.study)
    return given.with_suffix(".study") if given.suffix == ".toml" else given


def _study(arguments: argparse.Namespace, *, new: bool = False) -> Study:
    """The study of a file, or one that is kept in a folder."""
    from .keeping.store import Store
    from .study import Study

    folder = _folder(arguments)
    if Path(arguments.study).suffix != ".toml":
        return Study.open(folder, allow_code=arguments.allow_code)
    if not new and not Store.exists(folder):
        raise ValueError(f"{folder} holds no study yet: featherstep study run {arguments.study}")
    if not new and not arguments.runs:
        return Study.open(folder, allow_code=arguments.allow_code)
    return Study.from_file(arguments.study, allow_code=arguments.allow_code)


def _executor(arguments: argparse.Namespace) -> Any:
    chosen = arguments.executor
    if chosen is None or not chosen.startswith("dask"):
        return chosen
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--executor dask needs Dask: pip install 'featherstep[dask]'") from None
    address = chosen.partition(":")[2]
    return Client(address) if address else Client(n_workers=arguments.workers)


def _run(arguments: argparse.Namespace) -> int:
    """Run or resume."""
    from .working.running import StudyInterrupted

    study = _study(arguments, new=arguments.command == "run")
    folder = _folder(arguments)
    executor = _executor(arguments)
    try:
        study.run(
            folder, workers=arguments.workers, executor=executor, block=arguments.block,
            progress=True,
        )  # fmt: skip
    except StudyInterrupted:
        done = study_progress(folder)
        return complain(
            f"interrupted; {done.done:,} of {done.total:,} runs are kept in {folder}; go on by: "
            f"featherstep study resume {arguments.study}",
            INTERRUPTED,
            False,
        )
    finally:
        if hasattr(executor, "close"):
            executor.close()
    return _tell(study, folder)


def study_progress(folder: Path) -> Any:
    """How far a study in a folder is."""
    from .keeping.store import Store
    from .working.running import Progress

    store = Store.open(folder)
    done, failed, _ = store.counts()
    return Progress(done, store.n, failed, 0.0, float("nan"))


def _tell(study: Study, folder: Path) -> int:
    """Say how a study stands; the exit code is 1 if no run succeeded."""
    from ..terminal import Screen
    from .keeping.store import Store

    screen, store = Screen(), Store.open(folder)
    done, failed, kinds = store.counts()
    screen.say(f"{store.header['title']}: {folder}", "bold")
    screen.say(
        f"{done:,} of {store.n:,} runs are done, {failed:,} failed; {store.header['engine']}"
    )
    for kind, count in sorted(kinds.items(), key=lambda item: -item[1]):
        screen.say(f"{count:>9,}  {kind}", "red")
    shown = 0
    for part in store.rows() if failed else ():
        for k in part.failed[: 5 - shown]:
            screen.paragraph(f"run {part.first + int(k)}: {part.message[k]}", "yellow")
            shown += 1
        if shown >= 5:
            break
    values = store.header["plan"]["record"]
    if values and done > failed:
        _summary(screen, study)
    if done < store.n:
        screen.say(f"go on by: featherstep study resume {folder}")
    return 0 if done > failed or done == 0 else FAILURE


def _summary(screen: Any, study: Study) -> None:
    """Print percentiles of what was recorded."""
    import numpy as np

    columns = study.columns()
    good = columns["status"] == "ok"
    units = study._kept(None).header["value_units"]
    rows = []
    for name, unit in units.items():
        values = columns[name][good]
        values = values[np.isfinite(values)]
        if values.size:
            numbers = [values.min(), *np.percentile(values, [5, 50, 95]), values.max()]
            rows.append([name, *(f"{x:.5g}" for x in numbers), unit, f"{values.size:,}"])
    if rows:
        screen.say()
        headings = ("recorded", "least", "5 %", "median", "95 %", "most", "unit", "runs")
        screen.table(headings, rows, left=("recorded", "unit"), spare=("runs", "unit"))


def _status(arguments: argparse.Namespace) -> int:
    arguments.runs = False
    folder = _folder(arguments)
    code = _tell(_study(arguments), folder)
    return min(code, 0)


def _retry(arguments: argparse.Namespace) -> int:
    study = _study(arguments)
    folder = _folder(arguments)
    mended = study.retry(
        folder, workers=arguments.workers, executor=_executor(arguments), progress=True
    )
    sys.stderr.write(f"{mended:,} runs that had failed succeed now\n")
    study._store = study._kept(folder)
    return _tell(study, folder)


def _export(arguments: argparse.Namespace) -> int:
    arguments.runs = False
    path = _study(arguments).export(arguments.file)
    sys.stderr.write(f"wrote {path}\n")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    arguments.runs = False
    file = arguments.file or _folder(arguments).with_suffix(".html")
    path = _study(arguments).report(file, animations=arguments.animations)
    sys.stderr.write(f"wrote {path}\n")
    return 0


def add_study(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command ``study`` with its own commands."""
    parser = commands.add_parser(
        "study",
        parents=[shared],
        help="thousands of runs with varied parameters, kept on disk",
        description=text_block("""
            Run a mechanism or a problem with many parameters, as a file study.toml says; keep every
            run on disk; go on after an interruption; make a table and a report.
        """),
        epilog=text_block("""
            examples:
              featherstep study run study.toml --workers 2
              featherstep study status study.toml
              featherstep study resume study.toml          also: resume study.study
              featherstep study export study.toml table.csv
              featherstep study report study.toml

            a file:
              model = "four_bar"              # a mechanism, a problem, arm.toml, module:function
              n = 1000
              t_span = [0, 2]
              [vary]
              crank = { normal = [1.0, 0.05] }
              density = { uniform = [1.0, 1.1] }
              [record]
              pin = { max = { loop_force = "joint" } }
              end = { final = "crank" }

            Nothing in a file is run; module:function is imported with --allow-code only.
        """),
    )
    parser.set_defaults(run=lambda arguments: _help(parser), debug=False)
    parts = parser.add_subparsers(title="what to do", metavar="WHAT", dest="command")
    about = {
        "run": ("do the runs that are not done yet", _run),
        "resume": ("go on with a study", _run),
        "retry": ("do the runs that failed again", _retry),
        "status": ("say how many runs are done, and how they went", _status),
        "export": ("write the table to a file", _export),
        "report": ("write a report in one HTML file", _report),
    }
    for name, (text, function) in about.items():
        part = parts.add_parser(name, parents=[shared], help=text, description=text)
        part.add_argument("study", metavar="STUDY", help="study.toml, or the folder of a study")
        part.add_argument(
            "--store", metavar="FOLDER", help="where it is kept (default: study.study beside it)"
        )
        part.add_argument(
            "--allow-code", action="store_true", help="import a model given as module:function"
        )
        if name in ("run", "resume", "retry"):
            part.add_argument("--workers", metavar="N", type=int, help="default: one a processor")
            part.add_argument(
                "--executor", metavar="E", help="threads, processes, dask, or dask:tcp://HOST:PORT"
            )
        if name in ("run", "resume"):
            part.add_argument(
                "--block", metavar="N", type=int, help="most runs that a crash may lose"
            )
        if name == "export":
            part.add_argument("file", metavar="FILE", help="ending in .csv, .parquet or .npz")
        if name == "report":
            part.add_argument("file", metavar="FILE", nargs="?", help="default: study.html")
            part.add_argument(
                "--animations", metavar="N", type=int, default=3, help="of the worst runs"
            )
        part.set_defaults(run=function, debug=False, runs=True)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
