"""What the time loop calls for a multistep method; the step itself is taken in Python."""

from __future__ import annotations

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import hermite_dense, slope_at_start
from ...stepping.state import FUNCTION_RAISED, OK


@kernel
def multistep_step(w, t, h):
    """Find the slope at (t, y) if the method uses slopes, and let Python take the step."""
    if w.stages > 0 and slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    w.h_tried = h
    w.flag[0] = 0
    call(w.stepper, t, w.y, w.p, w.y_new)
    return w.last_reason if w.flag[0] == 1 else FUNCTION_RAISED


@kernel
def multistep_dense(w, t, h):
    """Nothing where the step has filled Q itself; else Hermite interpolation."""
    return OK if w.half_rows == 1 else hermite_dense(w)
