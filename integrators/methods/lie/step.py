"""One step of a Munthe-Kaas method, as kernels.

The Runge–Kutta step is that of ``explicit``, in the coordinates z about the centre y_n of a step:
``w.y`` and all other vectors of the method are m coordinates, ``w.f`` is ż = g(t, z), and the
centre is handed to it as the first part of its parameters. ``w.point`` is the solution itself. The
centre moves to it only when the next step begins, so that dense output still sees the chart of its
step.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ...kernels import kernel
from ...kernels.pointers import call
from ...stepping.dense import copy, slope_at_end
from ...stepping.norms import all_finite
from ...stepping.state import (
    DENSE_NATIVE,
    FUNCTION_RAISED,
    NONFINITE,
    OK,
)
from ..runge_kutta.explicit import explicit_accept, explicit_dense, explicit_step

MOVED = 0  # place in `chart`: 1 if the point has left the centre since the step was begun


@kernel
def recentre(w):
    """Make the current point the centre, where z = 0 and the slope is ξ, for dexp⁻¹(0) = 1."""
    if w.chart[MOVED] == 0:
        return
    w.chart[MOVED] = 0
    n = w.point.shape[0]
    copy(w.point, w.p)
    for i in range(w.y.shape[0]):
        w.y[i] = 0.0
        w.scale[i] = w.arrival[n + i]
    if w.have_f1 == 1:
        copy(w.velocity_end, w.f1)


@kernel
def lie_step(w, t, h):
    """z, its error, the point that it leads to, and the tolerances there."""
    recentre(w)
    if explicit_step(w, t, h) != OK:
        return FUNCTION_RAISED
    if not all_finite(w.y_new):
        return NONFINITE
    w.flag[0] = w.f_native
    call(w.arrive, t, w.y_new, w.p, w.arrival)
    if w.flag[0] != 1:
        return FUNCTION_RAISED
    if not all_finite(w.arrival):
        return NONFINITE
    n = w.point.shape[0]
    for i in range(w.y.shape[0]):
        w.atol[i] = w.atol_given[i] + w.rtol_given[0] * max(w.scale[i], w.arrival[n + i])
    return OK


@kernel
def lie_accept(w, t, h):
    """The point moves on; the last stage of an FSAL method has found the velocity there."""
    explicit_accept(w, t, h)
    if w.have_f1 == 1:
        copy(w.velocity, w.velocity_end)
    for i in range(w.point.shape[0]):
        w.point[i] = w.arrival[i]
    copy(w.point, w.points[w.taken])
    w.chart[MOVED] = 1
    return OK


@kernel
def lie_dense(w, t, h):
    """Coefficients Q of z(θ), still about the centre of the step that was accepted."""
    needs_end = w.dense_kind != DENSE_NATIVE or w.extra_is_slope == 1
    if needs_end and w.have_f1 == 0:
        if slope_at_end(w) != OK:
            return FUNCTION_RAISED
        copy(w.velocity, w.velocity_end)
    return explicit_dense(w, t, h)
