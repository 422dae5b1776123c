"""The folder in which a study is kept.

::

    four_bar.study/
        study.json              what is computed, its hash, versions, names and units
        design.npz              the parameters, where they came as a table
        parts/0000000000-0000000016.npz     rows of the table, a file for some runs
        trajectories.zarr/      states at output times (Zarr, version 2, uncompressed)
        table.parquet, .csv     the whole table, made when all runs are done

A file appears whole or not at all (:mod:`integrators.files`), trajectories before the part that
speaks of them: a part that is there is done. Nothing in the folder is ever run, or unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import platform
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.errors import FileError
from integrators.files import write_bytes, write_text

from .part import OK, Part
from .trajectories import Trajectories

__all__ = ["FORMAT", "Store", "hash_of", "missing_ranges", "versions"]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)

#: Version of the folder's form.
FORMAT = 1
LARGEST_HEADER = 50_000_000

_PART = re.compile(r"(\d{10})-(\d{10})\.npz")


def hash_of(plain: Mapping[str, Any]) -> str:
    """Hash of a plan in plain form."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Of everything that decides about the last bits."""
    import numba
    import scipy

    import featherstep

    return {
        "featherstep": featherstep.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
    }


class Store:
    """A study's folder.

    Parameters
    ----------
    path
        The folder.
    header
        What ``study.json`` says.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        self.path, self.header = Path(path), dict(header)
        self.n = int(header["n"])
        self.chunk = int(header["chunk"])
        times = np.array(header["plan"]["times"], dtype=np.float64)
        self.trajectories: Trajectories | None = None
        if times.size:
            self.trajectories = Trajectories(
                self.path / "trajectories.zarr", self.n, self.chunk,
                header["states"], header["units"], times,
            )  # fmt: skip

    # ------------------------------------------------------------ the folder

    @classmethod
    def create(
        cls, path: str | Path, header: Mapping[str, Any], table: Mapping[str, Array] | None = None
    ) -> Store:
        """Make a new folder; the header comes last, so that a folder with one is complete."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            unfinished = {"parts", "design.npz", "trajectories.zarr", "lock"}
            if not path.is_dir() or not {p.name for p in path.iterdir()} <= unfinished:
                raise FileError(path, "expected a new folder, or one with a study in it")
        (path / "parts").mkdir(parents=True, exist_ok=True)
        store = cls(path, header)
        if table:
            file = io.BytesIO()
            arrays: dict[str, Any] = {f"parameter {name}": c for name, c in table.items()}
            np.savez(file, **arrays)
            write_bytes(path / "design.npz", file.getvalue())
        if store.trajectories is not None:
            store.trajectories.create()
        text = json.dumps(dict(header), indent=1, ensure_ascii=False, allow_nan=False)
        write_text(path / "study.json", text + "\n")
        return store

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a folder that :meth:`create` made."""
        file = Path(path) / "study.json"
        if not file.is_file():
            raise FileError(path, "expected a folder of a study; there is no study.json in it")
        if file.stat().st_size > LARGEST_HEADER:
            raise FileError(file, f"expected at most {LARGEST_HEADER // 10**6} MB")
        try:
            header = json.loads(file.read_text(encoding="utf-8"))
            if header["format"] != FORMAT:
                raise FileError(file, f"expected format {FORMAT}, received {header['format']!r}")
            if hash_of(header["plan"]) != header["hash"]:
                raise FileError(file, "what it says does not have the hash that it says")
            return cls(path, header)
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise FileError(file, f"expected the header of a study: {error}") from error

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Whether there is a study in a folder."""
        return (Path(path) / "study.json").is_file()

    def design_table(self) -> dict[str, Array]:
        """Parameters that came as a table."""
        with np.load(self.path / "design.npz", allow_pickle=False) as data:
            return {key.removeprefix("parameter "): data[key] for key in data}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing; the system ends the lock with the process."""
        with open(self.path / "lock", "a+") as file:
            try:
                import fcntl
            except ImportError:  # Windows: two that write do the same work twice, no harm
                yield
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FileError(
                    self.path, "another process is running this study; wait for it, or stop it"
                ) from None
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove what a killed process was about to write."""
        for folder in ("parts", "trajectories.zarr/y", "."):
            for file in (self.path / folder).glob(".featherstep-*"):
                with contextlib.suppress(OSError):
                    file.unlink()

    # ------------------------------------------------------------ parts

    def done(self) -> list[tuple[int, int]]:
        """Ranges of runs that are done, in order."""
        found = []
        for entry in os.scandir(self.path / "parts"):
            if match := _PART.fullmatch(entry.name):
                first, stop = int(match[1]), int(match[2])
                if 0 <= first < stop <= self.n:
                    found.append((first, stop))
        found.sort()
        for (_, stop), (first, _) in pairwise(found):
            if first < stop:
                raise FileError(self.path, f"two parts hold run {first}; remove one of them")
        return found

    def file_of(self, first: int, stop: int) -> Path:
        """File of a part."""
        return self.path / "parts" / f"{first:010d}-{stop:010d}.npz"

    def write(self, part: Part) -> None:
        """Keep a part: its trajectories, then its rows."""
        if self.trajectories is not None and part.states is not None:
            states = part.states_of(len(self.header["states"]))
            self.trajectories.write(part.first, states)
        write_bytes(self.file_of(part.first, part.stop), part.to_bytes())

    def read(self, first: int, stop: int) -> Part:
        """Read a part, with its trajectories if there are any."""
        part = self._read_rows(first, stop)
        if self.trajectories is not None:
            part.states = self.trajectories.read(first, stop)
        return part

    def _read_rows(self, first: int, stop: int) -> Part:
        file = self.file_of(first, stop)
        try:
            part = Part.from_file(file)
        except Exception as error:
            raise FileError(
                file, f"expected rows of a study, {error}; remove the file and run again"
            ) from error
        if part.first != first or part.stop != stop:
            raise FileError(file, "its name does not tell which runs it holds; remove it")
        return part

    def rows(self, ranges: list[tuple[int, int]] | None = None) -> Iterator[Part]:
        """Parts in order, without trajectories."""
        for first, stop in self.done() if ranges is None else ranges:
            yield self._read_rows(first, stop)

    def counts(self) -> tuple[int, int, dict[str, int]]:
        """Runs that are done, those of them that failed, and how many failed how."""
        done, failed = 0, dict[str, int]()
        for part in self.rows():
            done += len(part)
            for status in part.status[part.failed]:
                failed[str(status)] = failed.get(str(status), 0) + 1
        return done, sum(failed.values()), failed


def missing_ranges(
    done: list[tuple[int, int]], n: int, size: int, unit: int
) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` runs that are not done, beginning at multiples of `unit`.

    Examples
    --------
    >>> list(missing_ranges([(4, 8)], 14, 4, 2))
    [(0, 4), (8, 12), (12, 14)]
    """
    size = max(unit, size // unit * unit)
    at = 0
    for first, stop in [*done, (n, n)]:
        while at < first:
            yield at, min(at + size, first)
            at = min(at + size, first)
        at = max(at, stop)


def is_ok(part: Part) -> NDArray[np.bool_]:
    """Whether each run of a part succeeded."""
    return np.asarray(part.status == OK)
