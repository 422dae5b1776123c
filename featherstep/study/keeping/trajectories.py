"""States of all runs at output times, on disk: Zarr, version 2, uncompressed.

A chunk is a file of plain numbers, so that no other package is needed to write or to read it, and
``xarray.open_zarr`` reads the folder where Zarr is installed. Chunks that are not there are NaN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.files import write_bytes, write_text

__all__ = ["Trajectories", "dataset"]

Array = NDArray[np.float64]


class Trajectories:
    """States, of shape (runs, states, times), in chunks of some runs.

    Parameters
    ----------
    path
        The folder.
    n, chunk
        Runs in all, and in one file.
    names, units
        Of the states.
    times
        Output times.
    """

    def __init__(
        self,
        path: Path,
        n: int,
        chunk: int,
        names: Sequence[str],
        units: Sequence[str],
        times: Array,
    ) -> None:
        self.path, self.n, self.chunk = path, n, chunk
        self.names, self.units, self.times = list(names), list(units), times

    @property
    def shape(self) -> tuple[int, int, int]:
        """Runs, states, times."""
        return self.n, len(self.names), self.times.size

    def create(self) -> None:
        """Write what describes the chunks, and the axes."""
        (self.path / "y").mkdir(parents=True, exist_ok=True)
        names = np.array(self.names, dtype="<U")
        described: dict[str, Any] = {".zgroup": {"zarr_format": 2}, ".zattrs": {}}
        described |= self._array(
            "y", self.shape, (self.chunk, *self.shape[1:]), "<f8", "NaN",
            ["run", "state", "time"], {"units": json.dumps(dict(zip(self.names, self.units)))},
        )  # fmt: skip
        described |= self._array(
            "time", self.times.shape, self.times.shape, "<f8", "NaN", ["time"], {"units": "s"}
        )
        described |= self._array("state", names.shape, names.shape, names.dtype.str, "", ["state"])
        for name, content in described.items():
            file = self.path / name
            file.parent.mkdir(exist_ok=True)
            write_text(file, json.dumps(content))
        write_bytes(self.path / "time" / "0", self.times.astype("<f8").tobytes())
        write_bytes(self.path / "state" / "0", names.tobytes())
        consolidated = {"zarr_consolidated_format": 1, "metadata": described}
        write_text(self.path / ".zmetadata", json.dumps(consolidated))

    @staticmethod
    def _array(
        name: str,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        dtype: str,
        fill: Any,
        dimensions: list[str],
        attributes: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {
            f"{name}/.zarray": {
                "zarr_format": 2,
                "shape": shape,
                "chunks": chunks,
                "dtype": dtype,
                "compressor": None,
                "fill_value": fill,
                "order": "C",
                "filters": None,
            },
            f"{name}/.zattrs": {"_ARRAY_DIMENSIONS": dimensions, **(attributes or {})},
        }

    def _file(self, number: int) -> Path:
        return self.path / "y" / f"{number}.0.0"

    def write(self, first: int, states: Array) -> None:
        """Keep the states of some runs: whole chunks, but for the last of the study."""
        if first % self.chunk or (len(states) % self.chunk and first + len(states) != self.n):
            raise ValueError(f"expected whole chunks of {self.chunk} runs")
        for at in range(0, len(states), self.chunk):
            block = np.full((self.chunk, *self.shape[1:]), np.nan)
            rows = states[at : at + self.chunk]
            block[: len(rows)] = rows
            write_bytes(self._file((first + at) // self.chunk), block.astype("<f8").tobytes())

    def chunk_of(self, number: int) -> Array | None:
        """States in one file, read as they are asked for; None if it is not there."""
        try:
            return np.memmap(self._file(number), "<f8", "r", shape=(self.chunk, *self.shape[1:]))
        except FileNotFoundError:
            return None

    def read(self, first: int, stop: int) -> Array:
        """States of the runs first, …, stop − 1."""
        return self.pick(np.arange(first, stop), slice(None), slice(None))

    def pick(self, runs: NDArray[np.int64], states: Any, times: Any) -> Array:
        """States of some runs, some components and some times."""
        sample = np.empty((0, *self.shape[1:]))[:, states][..., times]
        found = np.full((len(runs), *sample.shape[1:]), np.nan)
        numbers = runs // self.chunk
        for number in np.unique(numbers):
            block = self.chunk_of(int(number))
            if block is not None:
                here = numbers == number
                found[here] = block[runs[here] % self.chunk][:, states][..., times]
        return found


def dataset(kept: Trajectories, coordinates: dict[str, Array]) -> Any:
    """Return an xarray Dataset that reads from disk what is asked for, when it is asked for.

    Parameters
    ----------
    kept
        The trajectories.
    coordinates
        Numbers that belong to each run: its parameters.
    """
    try:
        import xarray as xr
        from xarray.backends import BackendArray
        from xarray.core import indexing
    except ImportError:
        raise ImportError("trajectories() needs xarray: pip install xarray") from None

    class OnDisk(BackendArray):
        """One component of the state in all runs, as xarray wants to index it."""

        dtype = np.dtype(np.float64)

        def __init__(self, state: int) -> None:
            self.state, self.shape = state, (kept.n, kept.times.size)

        def __getitem__(self, key: Any) -> Any:
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.OUTER, self._read
            )

        def _read(self, key: tuple[Any, ...]) -> Array:
            runs = np.arange(kept.n)[key[0]]
            found = kept.pick(np.atleast_1d(runs), self.state, key[1])
            return found if np.ndim(runs) else found[0]

    variables = {
        name: xr.Variable(
            ("run", "time"),
            indexing.LazilyIndexedArray(OnDisk(i)),
            {"units": unit} if unit else {},
        )
        for i, (name, unit) in enumerate(zip(kept.names, kept.units))
    }
    axes = {"time": ("time", kept.times, {"units": "s"}), "run": np.arange(kept.n)}
    along = {name: ("run", column) for name, column in coordinates.items() if name not in variables}
    return xr.Dataset(variables, {**axes, **along})
