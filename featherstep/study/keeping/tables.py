"""The table of a study in one piece: in memory, or written to a file part by part."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.files import replacing

from ..sampling.design import Design
from .part import Part
from .store import Store

__all__ = ["table_of_part", "whole_table", "write_table"]

#: Runs in each piece of a Parquet file.
GROUP = 65_536

MISSING = "missing"


def table_of_part(part: Part) -> dict[str, NDArray[Any]]:
    """Columns of a part: parameters, values, how the runs went."""
    return {
        **part.parameters,
        **part.values,
        "status": part.status,
        "message": part.message,
        "nsteps": part.nsteps,
        "t_end": part.t_end,
    }


def whole_table(store: Store, design: Design) -> dict[str, NDArray[Any]]:
    """All rows, those that are missing included."""
    n, plan = store.n, store.header["plan"]
    columns: dict[str, NDArray[Any]] = dict(design.rows(0, n))
    columns = {name: np.array(column) for name, column in columns.items()}
    columns |= {name: np.full(n, np.nan) for name in plan["record"]}
    columns["status"] = np.full(n, MISSING, dtype=object)
    columns["message"] = np.full(n, "", dtype=object)
    columns["nsteps"] = np.zeros(n, dtype=np.int64)
    columns["t_end"] = np.full(n, np.nan)
    for part in store.rows():
        for name, column in table_of_part(part).items():
            columns[name][part.first : part.stop] = column
    return columns


def write_table(store: Store, path: str | Path | None = None) -> Path:
    """Write the rows that are done to one file, a part at a time.

    Parameters
    ----------
    store
        The study.
    path
        A file .parquet, .csv or .npz; by default ``table.parquet`` in the study's folder where
        pyarrow is installed, else ``table.csv``.
    """
    if path is None:
        parquet = importlib.util.find_spec("pyarrow") is not None
        path = store.path / ("table.parquet" if parquet else "table.csv")
    path = Path(path)
    writers = {".parquet": _parquet, ".csv": _csv, ".npz": _npz}
    if path.suffix not in writers:
        raise ValueError(
            f"expected the name of a file {', '.join(writers)}, received {str(path)!r}"
        )
    with replacing(path) as temporary:
        writers[path.suffix](store, temporary)
    return path


def _rows(store: Store) -> Iterator[dict[str, NDArray[Any]]]:
    """Columns of each part, with the numbers of the runs."""
    for part in store.rows():
        yield {"run": np.arange(part.first, part.stop), **table_of_part(part)}


def _csv(store: Store, path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        heading: list[str] = []
        for columns in _rows(store):
            if not heading:
                heading = list(columns)
                writer.writerow(heading)
            writer.writerows(zip(*(column.tolist() for column in columns.values())))


def _npz(store: Store, path: Path) -> None:
    parts = list(_rows(store))
    columns = {
        name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())
    }
    arrays: dict[str, Any] = {
        f"column {name}": column.astype(str) if column.dtype == object else column
        for name, column in columns.items()
    }
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def _parquet(store: Store, path: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from None

    def table(columns: list[dict[str, NDArray[Any]]]) -> Any:
        joined = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
        return pa.table(
            {n: pa.array(c.tolist() if c.dtype == object else c) for n, c in joined.items()}
        )

    writer, kept, count = None, [], 0
    try:
        for columns in _rows(store):
            kept.append(columns)
            count += len(columns["run"])
            if count >= GROUP:
                piece = table(kept)
                writer = writer or pq.ParquetWriter(path, piece.schema)
                writer.write_table(piece)
                kept, count = [], 0
        if kept:
            piece = table(kept)
            writer = writer or pq.ParquetWriter(path, piece.schema)
            writer.write_table(piece)
    finally:
        if writer is not None:
            writer.close()
