"""Meshes made coarser, for pictures: vertices of one cell of a grid become one.

(J. Rossignac and P. Borrel, 1993: vertex clustering.)
"""

from __future__ import annotations

import numpy as np

from ..checks import Array

__all__ = ["reduced"]


def reduced(vertices: Array, faces: Array, wanted: int) -> tuple[Array, Array]:
    """A mesh of at most about `wanted` triangles that looks like the given one.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)
    >>> v = np.array([[a, b, 0.0] for a in x for b in x])
    >>> i = (np.arange(100)[:, None] * 101 + np.arange(100)).ravel()
    >>> f = np.concatenate([np.stack([i, i + 1, i + 102], 1), np.stack([i, i + 102, i + 101], 1)])
    >>> len(f), 200 < len(reduced(v, f, 500)[1]) <= 500
    (20000, True)
    """
    if len(faces) <= wanted:
        return vertices, faces
    low, extent = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max()) or 1.0
    cells = 2 * max(2, round(np.sqrt(wanted)))
    while True:
        keys = np.floor((vertices - low) / extent * cells).astype(np.int64)
        _, group, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        triangles = group.reshape(-1)[faces]
        alive = (
            (triangles[:, 0] != triangles[:, 1])
            & (triangles[:, 1] != triangles[:, 2])
            & (triangles[:, 0] != triangles[:, 2])
        )
        triangles = triangles[alive]
        if len(triangles) <= max(wanted, 12) or cells <= 2:
            break
        cells = max(2, int(0.8 * cells))
    middle = np.zeros((len(count), 3))
    np.add.at(middle, group.reshape(-1), vertices)
    return middle / count[:, None], triangles
