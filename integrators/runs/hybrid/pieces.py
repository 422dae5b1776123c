"""One Solution out of the runs in several modes.

Modes may have states of different lengths. States are then kept in arrays for the longest, and
components that a mode does not have are NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..solution import DenseOutput, Solution

__all__ = ["PiecewiseOutput", "bridge", "joined_output", "padded"]


def padded(states: Sequence[NDArray[Any]], n: int) -> NDArray[Any]:
    """Arrays whose last axis is the state, one after the other, NaN beyond each one's own length.

    >>> padded([np.zeros((1, 1)), np.ones((1, 2))], 2).tolist()
    [[0.0, nan], [1.0, 1.0]]
    """
    kind = np.result_type(np.float64, *(part.dtype for part in states))
    rows = [np.full((len(part), n), np.nan, dtype=kind) for part in states]
    for row, part in zip(rows, states):
        if part.size:
            row[:, : part.shape[-1]] = part
    return np.concatenate(rows) if rows else np.zeros((0, n))


class PiecewiseOutput:
    """The solution as a function of time, from dense outputs one after the other.

    Used where modes live on manifolds, so that their steps do not fit into one
    :class:`DenseOutput`; called as that is.
    """

    def __init__(self, pieces: Sequence[DenseOutput], n: int) -> None:
        self.pieces, self.n = list(pieces), n
        self.order = min(piece.order for piece in pieces)
        self.starts = np.array([float(piece.t[0]) for piece in pieces])
        self.t_min, self.t_max = float(self.starts[0]), float(self.pieces[-1].end)

    def __call__(self, t: ArrayLike) -> NDArray[Any]:
        """Return y(t), shape (n,) for a scalar t and (n, m) for m times."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        which = np.searchsorted(self.starts, times, side="right") - 1
        which = np.clip(which, 0, len(self.pieces) - 1)
        values = np.full((self.n, len(times)), np.nan, dtype=self.pieces[0].y.dtype)
        for k in np.unique(which):
            inside = which == k
            piece = self.pieces[k]
            values[: piece.y.shape[1], inside] = piece(times[inside])
        return values[:, 0] if np.ndim(t) == 0 else values

    def __repr__(self) -> str:
        return (
            f"<PiecewiseOutput: {len(self.pieces)} pieces on [{self.t_min:g}, {self.t_max:g}], "
            f"order {self.order}>"
        )


def joined_output(pieces: Sequence[DenseOutput], n: int) -> DenseOutput | PiecewiseOutput:
    """One dense output out of those of the runs in each mode; at a jump the value after it."""
    if any(piece.move is not operator.add for piece in pieces):
        return PiecewiseOutput(pieces, n)
    degree = max(piece.Q.shape[1] for piece in pieces)
    steps = sum(len(piece.t) for piece in pieces)
    kind = np.result_type(*(piece.Q.dtype for piece in pieces))
    Q = np.zeros((steps, degree, n), dtype=kind)
    row = 0
    for piece in pieces:
        count, own, m = piece.Q.shape
        Q[row : row + count, :own, :m] = piece.Q
        row += count
    return DenseOutput(
        np.concatenate([piece.t for piece in pieces]),
        np.concatenate([piece.h for piece in pieces]),
        padded([piece.y for piece in pieces], n),
        Q,
        min(piece.order for piece in pieces),
        end=pieces[-1].end,
    )


def bridge(
    t: float, y: NDArray[Any], end: float, y_end: NDArray[Any], times: NDArray[np.float64] | None
) -> Solution:
    """A straight line from (t, y) to its end, as a run of one step."""
    line = DenseOutput(
        np.array([t]), np.array([end - t]), y[None, :], (y_end - y)[None, None, :], 1, end=end
    )
    at = np.array([end]) if times is None else times[(times > t) & (times <= end)]
    states = line(at) if at.size else np.zeros((y.size, 0))
    return Solution(at, states, sol=line, h=np.array([end - t]), reached=(end, y_end))
