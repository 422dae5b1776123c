"""Methods written in Python: one function that takes a step, driven by the same loop.

A user's own method is any object with

    order: int
    def step(self, f, t, y, h): ...        # returns y_new, or (y_new, error_estimate)

Without an error estimate, adaptive runs use step doubling.
"""

from __future__ import annotations

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import hermite_dense
from ...stepping.state import FUNCTION_RAISED, OK


@kernel
def custom_step(w, t, h):
    """Let the Python method take one step."""
    w.h_tried = h
    w.flag[0] = 0
    call(w.stepper, t, w.y, w.p, w.y_new)
    return OK if w.flag[0] == 1 else FUNCTION_RAISED


@kernel
def nothing(w, t, h):
    """For a method that has nothing to do on acceptance, and no better estimate."""
    return OK


@kernel
def custom_dense(w, t, h):
    """Hermite interpolation."""
    return hermite_dense(w)
