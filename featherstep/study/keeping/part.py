"""Results of some runs: rows of the table, and their trajectories."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..plan import Plan

__all__ = ["OK", "Part"]

Array = NDArray[np.float64]

OK = "ok"
LONGEST_MESSAGE = 2000


@dataclass
class Part:
    """Rows of the table.

    Attributes
    ----------
    first
        Number of the first run.
    parameters, values
        Columns by name: what was varied, and what was recorded (NaN where a run failed).
    status
        "ok", or how a run failed: "build" and "start" before it began, the name of its
        :class:`~integrators.Status`, "record" after its end, "worker" if a process died of it.
    message
        The same in words.
    nsteps, t_end
        Accepted steps, and how far the run came.
    states
        Shape (runs, states, times), NaN where a run had ended; None if none are kept.
    """

    first: int
    parameters: dict[str, Array]
    values: dict[str, Array]
    status: NDArray[np.object_]
    message: NDArray[np.object_]
    nsteps: NDArray[np.int64]
    t_end: Array
    states: Array | None = field(default=None, repr=False)

    @classmethod
    def empty(cls, first: int, columns: Mapping[str, Array], plan: Plan) -> Part:
        """Rows without results."""
        m = len(next(iter(columns.values())))
        return cls(
            first,
            {name: np.array(column, dtype=np.float64) for name, column in columns.items()},
            {name: np.full(m, np.nan) for name in plan.record},
            np.full(m, "", dtype=object),
            np.full(m, "", dtype=object),
            np.zeros(m, dtype=np.int64),
            np.full(m, np.nan),
            np.full((m, 0, plan.times.size), np.nan) if plan.times.size else None,
        )

    def __len__(self) -> int:
        return len(self.status)

    @property
    def stop(self) -> int:
        """Number of the run after the last."""
        return self.first + len(self)

    @property
    def failed(self) -> NDArray[np.int64]:
        """Places in this part of the runs that failed."""
        return np.flatnonzero(self.status != OK)

    def fail(self, k: int, stage: str, message: str) -> None:
        """Enter a failure."""
        self.status[k], self.message[k] = stage, message[:LONGEST_MESSAGE]
        for column in self.values.values():
            column[k] = np.nan

    def keep_states(self, k: int, y: Array) -> None:
        """Enter the states of a run at the output times that it reached."""
        assert self.states is not None
        if self.states.shape[1] == 0:
            self.states = np.full((len(self), len(y), self.states.shape[2]), np.nan)
        self.states[k, :, : y.shape[1]] = y

    def rows(self, first: int, stop: int) -> Part:
        """Some of the rows, by numbers of runs."""
        cut = slice(first - self.first, stop - self.first)
        return Part(
            first,
            {name: column[cut] for name, column in self.parameters.items()},
            {name: column[cut] for name, column in self.values.items()},
            self.status[cut],
            self.message[cut],
            self.nsteps[cut],
            self.t_end[cut],
            None if self.states is None else self.states[cut],
        )

    @classmethod
    def joined(cls, parts: list[Part]) -> Part:
        """Parts that follow each other as one."""
        first = parts[0]

        def column(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        def columns(name: str) -> dict[str, Array]:
            return {
                key: np.concatenate([getattr(part, name)[key] for part in parts])
                for key in getattr(first, name)
            }

        states = None
        if first.states is not None:
            count = max(part.states.shape[1] for part in parts if part.states is not None)
            states = np.concatenate([part.states_of(count) for part in parts])
        return cls(
            first.first, columns("parameters"), columns("values"), column("status"),
            column("message"), column("nsteps"), column("t_end"), states,
        )  # fmt: skip

    def states_of(self, count: int) -> Array:
        """States with this number of components, though no run may have begun."""
        assert self.states is not None
        if self.states.shape[1] == count:
            return self.states
        return np.full((len(self), count, self.states.shape[2]), np.nan)

    # ------------------------------------------------------------ files

    def to_bytes(self) -> bytes:
        """The table's rows as an ``.npz`` file; the trajectories have files of their own."""
        arrays: dict[str, Any] = {"first": np.array(self.first)}
        arrays |= {f"parameter {name}": column for name, column in self.parameters.items()}
        arrays |= {f"value {name}": column for name, column in self.values.items()}
        for name in ("status", "message"):
            texts, codes = np.unique(getattr(self, name).astype(str), return_inverse=True)
            arrays[f"{name} texts"], arrays[name] = texts, codes.astype(np.int32)
        arrays["nsteps"], arrays["t_end"] = self.nsteps, self.t_end
        file = io.BytesIO()
        np.savez(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_file(cls, path: Any) -> Part:
        """Read what :meth:`to_bytes` wrote; nothing in it is run."""
        content = io.BytesIO(Path(path).read_bytes())
        with np.load(content, allow_pickle=False) as data:

            def named(prefix: str) -> dict[str, Array]:
                return {
                    key.removeprefix(prefix): data[key] for key in data if key.startswith(prefix)
                }

            texts = {
                name: data[f"{name} texts"].astype(object)[data[name]]
                for name in ("status", "message")
            }
            return cls(
                int(data["first"]), named("parameter "), named("value "), texts["status"],
                texts["message"], data["nsteps"], data["t_end"],
            )  # fmt: skip
