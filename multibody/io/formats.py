"""Files of models by format: one table, one reader and, where there is one, one writer for each.

A format is an entry of :data:`FORMATS`; CONTRIBUTING has the recipe.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from integrators.files import write_text

from ..checks import one_of
from ..model import Model
from .mjcf import read_mjcf, write_mjcf
from .own.reader import read_model
from .own.start import ModelStart
from .own.writer import write_model
from .sdf import read_sdf, write_sdf
from .shared.report import Report
from .shared.source import read_text
from .shared.xml import root_tag
from .urdf import read_urdf, read_xacro, write_urdf

__all__ = ["FORMATS", "Format", "dumps", "load_model", "loads", "save_model"]


@dataclass(frozen=True)
class Format:
    """How files of one kind are read and written.

    Attributes
    ----------
    read
        ``read(text, file, report, **options)`` returns a model; it raises
        :class:`ModelFileError` with the line, and enters what it leaves out into the report.
    write
        ``write(model, report)`` returns text, and enters into the report what is lost; None if
        there is no writer.
    ending
        Of the names of such files.
    begins
        How text of this kind begins, if that tells it from the others.
    root
        Tag of the root element, for formats that are XML.
    """

    read: Callable[..., Model]
    write: Callable[[Model, Report], str] | None
    ending: str
    begins: str = ""
    root: str = ""


FORMATS = {
    "toml": Format(
        lambda text, file, report: read_model(text, "toml", file),
        lambda model, report: write_model(model, "toml"),
        ".toml",
    ),
    "json": Format(
        lambda text, file, report: read_model(text, "json", file),
        lambda model, report: write_model(model, "json"),
        ".json",
        begins="{",
    ),
    "urdf": Format(read_urdf, write_urdf, ".urdf", begins="<", root="robot"),
    "xacro": Format(read_xacro, None, ".xacro"),
    "sdf": Format(read_sdf, write_sdf, ".sdf", begins="<", root="sdf"),
    "mjcf": Format(read_mjcf, write_mjcf, ".xml", begins="<", root="mujoco"),
}


def load_model(
    path: str | PathLike[str],
    format: str | None = None,
    *,
    policy: str = "warn",
    report: Report | None = None,
    **options: Any,
) -> Model:
    """Read a model from a file: this program's TOML or JSON, URDF, SDF or MJCF.

    Parameters
    ----------
    path
        The file; its ending says what it is.
    format
        "toml", "json", "urdf", "xacro", "sdf" or "mjcf", for files with another ending.
    policy
        What to do about impossible data in formats of other programs: "strict" refuses them,
        "warn" keeps them if a model can, "repair" mends them.
    report
        A :class:`~multibody.Report` to be filled with what was left out or repaired,
        line by line (its own policy counts); without one, a warning says how much there is.
    **options
        Of the format. URDF and SDF: ``root="free"`` for a robot that floats (the default of SDF)
        or ``root="fixed"``, ``limits=True`` for elastic stops at the limits of joints (MJCF too).
        SDF and MJCF: ``includes=FOLDER`` from which other files may be read. All three:
        ``meshes=True`` (or a folder, or several) to have meshes drawn, too; URDF:
        ``density=1000.0`` for links that do not say their mass. Xacro: ``macros=True`` to run the
        macros of a file that you trust, ``arguments=`` of it, and the options of URDF.

    Raises
    ------
    ModelFileError
        With file, line and key of what is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from multibody import mechanisms, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pendulum.toml"
    ...     save_model(mechanisms.pendulum(), file)
    ...     load_model(file) == mechanisms.pendulum()
    True
    """
    file = Path(path)
    kind = _format_of(file, format)
    return _read(read_text(file), kind, str(file), policy, report, options)


def loads(
    text: str,
    format: str | None = None,
    name: str = "<text>",
    *,
    policy: str = "warn",
    report: Report | None = None,
    **options: Any,
) -> Model:
    """Read a model from text.

    Parameters
    ----------
    text
        A model.
    format
        As in `load_model`; by default the first character tells: JSON begins with a brace, XML
        with an angle bracket, and there the root element tells URDF from SDF.
    name
        Stands for the file in messages.
    policy, report, **options
        As in `load_model`.

    Examples
    --------
    >>> model = loads('''
    ... name = "pendulum"
    ... [[bodies]]
    ... name = "rod"
    ... parent = "base"
    ... joint = { kind = "revolute", axis = "y" }
    ... inertia = { shape = "rod", start = [0, 0, 0], end = [0, 0, -1], mass = 2.0 }
    ... ''')
    >>> print(model)
    pendulum: 1 body, nq = 1, nv = 1
    0 base
    └─ 1 rod: Revolute(axis=[0.0, 1.0, 0.0]), 2 kg
    """
    if not isinstance(text, str):
        raise TypeError(f"text: expected a string, received {type(text).__name__}")
    if format is None:
        format = _format_of_text(text)
    return _read(text, one_of(format, "format", tuple(FORMATS)), name, policy, report, options)


def _format_of_text(text: str) -> str:
    start = text.lstrip("\ufeff \t\r\n")[:1]
    able = {name: kind for name, kind in FORMATS.items() if kind.begins and kind.begins == start}
    if len(able) > 1:
        root = root_tag(text)
        return next((name for name, kind in able.items() if kind.root == root), next(iter(able)))
    return next(iter(able), "toml")


def _read(
    text: str, kind: str, name: str, policy: str, report: Report | None, options: dict[str, Any]
) -> Model:
    told = Report(policy=policy) if report is None else report
    told.file = name
    try:
        model = FORMATS[kind].read(text, name, told, **options)
    except TypeError as error:
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if found is None or found[1] not in options:
            raise
        said = f"{kind} files have no option of this name: {found[1]!r}; see help(load_model)"
        raise TypeError(said) from None
    if told and report is None:
        warnings.warn(
            f"{name}: {len(told.remarks)} things were left out or are doubtful, the first in "
            f"{told.remarks[0]}; pass report=multibody.Report() to have all of them",
            stacklevel=3,
        )
    return model


def save_model(
    model: Model,
    path: str | PathLike[str],
    format: str | None = None,
    *,
    policy: str = "warn",
    report: Report | None = None,
    start: Sequence[Any] | None = None,
) -> None:
    """Write a model to a TOML, JSON, URDF, SDF or MJCF (``.xml``) file, by its ending or `format`.

    Parameters
    ----------
    model, path, format
        What, where, and as what.
    policy, report, start
        As in `dumps`: what becomes of things that URDF, SDF or MJCF cannot express; and where a
        first simulation starts.

    Raises
    ------
    ValueError
        For joints made from Python functions (`UserJoint`, `Driven` by one), and joints that the
        format does not have: a file cannot hold them.

    Examples
    --------
    >>> import tempfile
    >>> from multibody import mechanisms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pendulum.toml"
    ...     save_model(mechanisms.pendulum(), file)
    ...     file.read_text().splitlines()[1]
    'format = 1'
    """
    file = Path(path)
    text = dumps(model, _format_of(file, format), policy=policy, report=report, start=start)
    write_text(file, text)


def dumps(
    model: Model,
    format: str = "toml",
    *,
    policy: str = "warn",
    report: Report | None = None,
    start: Sequence[Any] | None = None,
) -> str:
    """Text of a model in "toml", "json", "urdf", "sdf" or "mjcf".

    Parameters
    ----------
    model, format
        What, and as what. TOML and JSON hold all of a model.
    policy
        "strict" refuses a format that would lose something; "warn" lists it.
    report
        Receives remarks on what was lost (its own policy counts); without one, a warning says how
        much there is.
    start
        Position, velocity and end (s) of a first simulation, as ``load_start`` reads them; the last
        may be left out. TOML and JSON only.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.double_pendulum()
    >>> loads(dumps(model, "json"), "json") == model
    True
    """
    kind = one_of(format, "format", tuple(FORMATS))
    write = FORMATS[kind].write
    if write is None:
        able = ", ".join(name for name, f in FORMATS.items() if f.write is not None)
        raise ValueError(f"format: expected one that can be written ({able}), received {kind!r}")
    if not isinstance(model, Model):
        raise TypeError(f"model: expected a Model, received {type(model).__name__}; build it first")
    told = Report(policy=policy) if report is None else report
    if start is not None and kind not in ("toml", "json"):
        raise ValueError(f"start: files in {kind!r} have none; write TOML or JSON, or leave it out")
    text = write(model, told) if start is None else write_model(model, kind, ModelStart(*start))
    if told and report is None:
        warnings.warn(
            f"{kind}: {len(told.remarks)} things cannot be expressed, the first is "
            f"{told.remarks[0].text}; pass report=multibody.Report() to have all of them",
            stacklevel=2,
        )
    return text


def _format_of(path: Path, format: str | None) -> str:
    """Format of a file, from its ending unless it is given."""
    if format is not None:
        return one_of(format, "format", tuple(FORMATS))
    for name, kind in FORMATS.items():
        if path.suffix.lower() == kind.ending:
            return name
    endings = ", ".join(kind.ending for kind in FORMATS.values())
    raise ValueError(
        f"path: expected a name that ends in one of {endings}, received {path.name!r}; or say "
        'format="toml"'
    )
