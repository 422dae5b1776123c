"""Studies from files: ``study.toml`` as a user writes it, ``study.json`` as a store keeps it.

Nothing that a file says is run. A model ``module:function`` is imported only where the caller
allows it.
"""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from integrators.errors import FileError, suggest
from integrators.files import refuse_long_keys

from .keeping.store import Store
from .plan import Plan, option_names
from .recording.reductions import reductions_of
from .sampling.design import Design
from .sampling.distributions import Distribution, distribution_of
from .starts import start_of
from .subjects import MODEL_FILES, ModelFile, Subject, subject_of

__all__ = ["design_from", "plan_from", "read_study"]

KEYS = ("model", "vary", "n", "seed", "sampling", "start", "t_span", "method", "record",
        "outputs", "fixed")  # fmt: skip
LARGEST_FILE = 10_000_000
LARGEST_TABLE = 2_000_000_000


def read_study(path: str | Path, *, allow_code: bool = False) -> dict[str, Any]:
    """Arguments of :class:`~featherstep.study.Study` from a TOML file.

    Model files and tables that it names are looked for in its own folder.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(path, "the file does not exist; expected a study, such as study.toml")
    if path.stat().st_size > LARGEST_FILE:
        raise FileError(path, f"expected at most {LARGEST_FILE // 10**6} MB; is it a study?")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        refuse_long_keys(text)
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise FileError(path, str(error)) from error
    for key in ("model", "vary"):
        if key not in data:
            raise FileError(path, f"expected a key {key}")
    given: dict[str, Any] = {**data}
    for key in data:
        if key not in KEYS and key not in option_names():
            known = [*KEYS, *option_names()]
            raise FileError(path, f"{key}: unknown key{suggest(key, known)}")
    try:
        given["model"] = _model(path, data["model"], allow_code)
        if isinstance(data["vary"], str):
            given["vary"] = read_columns(path.parent / data["vary"])
    except FileError:
        raise
    except ValueError as error:
        raise FileError(path, f"model: {error}") from error
    return given


def _model(path: Path, name: Any, allow_code: bool) -> Subject:
    if not isinstance(name, str):
        raise ValueError(f"expected a name, received {name!r}")
    if name.endswith(MODEL_FILES):
        return subject_of(path.parent / name)
    return subject_of(name, allow_code=allow_code)


def read_columns(path: str | Path) -> dict[str, Any]:
    r"""Columns of a CSV file, by the names in its first line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "design.csv"
    ...     _ = file.write_text("a,b\n1,2\n3,4\n")
    ...     read_columns(file)["b"]
    array([2., 4.])
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(path, "the table does not exist")
    if path.stat().st_size > LARGEST_TABLE:
        raise FileError(path, f"expected at most {LARGEST_TABLE // 10**9} GB")
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        names = [name.strip() for name in next(rows, [])]
        if not names or len(set(names)) != len(names):
            raise FileError(path, "expected different names of parameters in the first line")
        values = []
        for row in rows:
            if not row:
                continue
            try:
                values.append([float(cell) for cell in row])
            except ValueError:
                raise FileError(path, f"line {rows.line_num}: expected numbers, {row!r}") from None
            if len(row) != len(names):
                raise FileError(path, f"line {rows.line_num}: expected {len(names)} numbers")
    columns = np.array(values, dtype=np.float64).reshape(-1, len(names)).T
    return {name: np.ascontiguousarray(column) for name, column in zip(names, columns)}


# ---------------------------------------------------------------------- from a store


def design_from(store: Store) -> Design:
    """Parameters of a study that was kept."""
    plain = store.header["plan"]["design"]
    if plain["sampling"] == "table":
        return Design({}, plain["n"], 0, "table", store.design_table())
    laws: dict[str, Distribution] = {n: distribution_of(p) for n, p in plain["vary"].items()}
    return Design(laws, plain["n"], plain.get("seed", 0), plain["sampling"])


def plan_from(store: Store, what: Any, allow_code: bool) -> Plan | None:
    """Plan of a study that was kept; None if it needs code that is not given."""
    plain = store.header["plan"]
    if _has_code({**plain, "subject": None}):
        return None
    subject = _subject_from(plain["subject"], what, allow_code)
    if subject is None:
        return None
    plan = Plan(
        subject,
        design_from(store),
        start_of(plain["start"] or None),
        (float(plain["t_span"][0]), float(plain["t_span"][1])),
        plain["method"],
        plain["fixed"],
        {key: _value(value) for key, value in plain["options"].items()},
        {key: _value(value) for key, value in plain["model_options"].items()},
        reductions_of(plain["record"]),
        np.array(plain["times"], dtype=np.float64),
    )
    return plan


def _subject_from(plain: dict[str, Any], what: Any, allow_code: bool) -> Subject | None:
    if "file" in plain:
        return ModelFile(plain["file"], plain["text"])
    if "code" not in plain:
        return subject_of(next(iter(plain.values())))
    if what is None and allow_code and "factory" in plain:
        what = plain["factory"]
    if what is None:
        return None
    return subject_of(what, tuple(plain.get("parameters", ())), allow_code)


def _has_code(plain: Any) -> bool:
    """Whether a plain form stands for functions or objects that it does not hold."""
    if isinstance(plain, dict):
        return "function" in plain or "object" in plain or any(map(_has_code, plain.values()))
    return isinstance(plain, list) and any(map(_has_code, plain))


def _value(value: Any) -> Any:
    """Numbers that JSON has as text."""
    return float(value) if value in ("inf", "-inf", "nan") else value
