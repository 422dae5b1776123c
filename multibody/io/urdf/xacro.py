"""Xacro, the macros of URDF: expanded by xacrodoc, if the caller says so, then read as URDF.

A xacro file is a program: its expressions are evaluated, and it names other files. So nothing of it
is run unless `macros=True` says that it is trusted. Lines in messages are those of the expanded
text, which `Report.file` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...model import Model
from ..shared.report import Report
from ..shared.source import MAX_BYTES, ModelFileError
from .reader import read_urdf

__all__ = ["read_xacro"]


def read_xacro(
    text: str,
    file: str,
    report: Report,
    *,
    macros: bool = False,
    arguments: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """Read a model from the text of a xacro file.

    Parameters
    ----------
    text, file, report
        As in `read_urdf`.
    macros
        Whether the file is trusted, and its macros are run.
    arguments
        Values of its ``<xacro:arg>``.
    **options
        Of `read_urdf`.
    """
    if macros is not True:
        raise ModelFileError(
            "a xacro file is a program, whose expressions are run; if you trust it, say "
            "load_model(…, macros=True), or expand it first (`xacro FILE > robot.urdf`)",
            file,
        )
    try:
        from xacrodoc import XacroDoc
    except ImportError:
        raise ModelFileError(
            'macros need the package xacrodoc: pip install "featherstep[meshes]", or expand the '
            "file first (`xacro FILE > robot.urdf`)",
            file,
        ) from None
    given = {key: str(value) for key, value in (arguments or {}).items()}
    try:
        if Path(file).is_file():
            document = XacroDoc.from_file(file, subargs=given)
        else:
            document = XacroDoc.from_string(text, subargs=given)
        expanded = document.to_urdf_string()
    except Exception as error:  # whatever the program does wrong
        raise ModelFileError(f"the macros cannot be run: {error!r:.300}", file) from None
    if len(expanded) > MAX_BYTES:
        raise ModelFileError("the expanded text is too large for a model", file)
    report.file = f"{file} (expanded)"
    return read_urdf(expanded, report.file, report, **options)
