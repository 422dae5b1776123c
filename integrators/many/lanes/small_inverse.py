"""Inverses of small matrices as straight-line code, real or complex, with pivots.

Gauss–Jordan elimination in place. Which row is the pivot differs from lane to lane, so rows change
places by selection: each candidate that is larger than the pivot so far is swapped with it, and the
columns of the inverse are swapped back in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["inverse"]

LARGEST_PIVOT = 1e300  # as in ``linear.lu``


def inverse(re: Any, im: Any) -> tuple[Any, Any, Any]:
    """Inverse of re + i·im (im may be None), and whether all pivots were sound.

    Arrays of symbols, or of floats.
    """
    from ...tracing import where

    parts = [np.array(part, dtype=object) for part in (re, im) if part is not None]
    n = len(parts[0])
    swaps = []
    sound: Any = True
    for k in range(n):
        best = _square(parts, k, k)
        for i in range(k + 1, n):
            size = _square(parts, i, k)
            larger = size > best
            best = where(larger, size, best)
            swaps.append((k, i, larger))
            for part in parts:
                for j in range(n):
                    a, b = part[k, j], part[i, j]
                    part[k, j], part[i, j] = where(larger, b, a), where(larger, a, b)
        sound = sound & (best > 0.0) & (best < LARGEST_PIVOT)
        _eliminate(parts, k, best)
    for k, i, larger in reversed(swaps):
        for part in parts:
            for j in range(n):
                a, b = part[j, k], part[j, i]
                part[j, k], part[j, i] = where(larger, b, a), where(larger, a, b)
    return parts[0], parts[1] if len(parts) > 1 else None, sound


def _square(parts: list[Any], i: int, j: int) -> Any:
    """Square of the modulus of an entry; of a real one, its modulus."""
    if len(parts) == 1:
        return np.abs(parts[0][i, j])
    return parts[0][i, j] * parts[0][i, j] + parts[1][i, j] * parts[1][i, j]


def _eliminate(parts: list[Any], k: int, size: Any) -> None:
    """One step: row k is divided by its pivot, and subtracted from all others."""
    n = len(parts[0])
    others = [i for i in range(n) if i != k]
    if len(parts) == 1:
        (a,) = parts
        pivot = 1.0 / a[k, k]
        a[k, k] = 1.0
        a[k] = a[k] * pivot
        for i in others:
            factor = a[i, k]
            a[i, k] = 0.0
            a[i] = a[i] - factor * a[k]
        return
    re, im = parts
    scale = 1.0 / size
    pivot_re, pivot_im = re[k, k] * scale, -im[k, k] * scale
    re[k, k], im[k, k] = 1.0, 0.0
    re[k], im[k] = re[k] * pivot_re - im[k] * pivot_im, re[k] * pivot_im + im[k] * pivot_re
    for i in others:
        f_re, f_im = re[i, k], im[i, k]
        re[i, k], im[i, k] = 0.0, 0.0
        re[i], im[i] = re[i] - (f_re * re[k] - f_im * im[k]), im[i] - (f_re * im[k] + f_im * re[k])
