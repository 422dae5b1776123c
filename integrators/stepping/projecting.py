"""Projecting from inside the loop: after each accepted step the state is put in its place.

A projection that is machine code comes as two functions of (t, y, p): *closing* (if there is one)
returns a better state and, behind it, how much it changed, and is repeated until that is little;
*settling* (if there is one) finishes it. A traced function is all settling. Where they do not
succeed the loop stops, and Python projects that one step.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ..kernels import kernel
from ..kernels.pointers import call
from .dense import copy

__all__ = ["MOST_CLOSINGS", "SETTLED", "TOO_LARGE", "project"]

MOST_CLOSINGS = 6
SETTLED = 1e-9  # relative size of the last correction; the next would be its square
TOO_LARGE = 0.1  # relative size of a correction that is not to be trusted without pivots


@kernel
def project(w):
    """Put the projection of y in its place; False if that did not succeed, and y is as it was."""
    n = w.y.shape[0]
    copy(w.y, w.x)
    size = 0.0 if w.projection[0] == 0 else 1.0
    closings = 0
    while size > SETTLED:
        if closings == MOST_CLOSINGS:
            return False
        closings += 1
        call(w.projection[0], w.t, w.x, w.p, w.projected)
        size = w.projected[n]
        if not size <= TOO_LARGE:
            return False
        for m in range(n):
            w.x[m] = w.projected[m]
    if w.projection[1] == 0:
        copy(w.x, w.y)
    else:
        call(w.projection[1], w.t, w.x, w.p, w.y)
    w.f0_current = 0
    w.have_f1 = 0
    return True
