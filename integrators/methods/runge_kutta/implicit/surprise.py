"""A look at f where a step ends, for implicit methods none of whose stages lies there.

All stages of a step may fly above the ground while its end is far below: then neither the stages
nor an estimate that is made of them sees the contact. f at the end does, and the next step needs
it anyway. The step is refused if that slope is further from where the stages point than slopes
differ within the step, and by more than the tolerance once the Jacobian has filtered it (which
alone would not do: it may be that of a contact long ago).
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ....kernels import kernel
from ....stepping.dense import copy, evaluate, slope_at_start
from ....stepping.norms import error_norm
from ....stepping.state import (
    COUPLING_DIAGONAL,
    ESTIMATE_EMBEDDED,
    FUNCTION_RAISED,
    NEWTON_FAILED,
    OK,
)
from .coupled import coupled_accept
from .diagonal import diagonal_accept
from .step import implicit_step, solve_real

# Where the estimate is made of the stages, the extrapolation from them is of higher order than it:
# on smooth solutions it is off by less than this part of what slopes differ by. (With step doubling
# stages may be of low order, and nothing is known of how well they point.)
SHARE = 0.1


@kernel
def checked_step(w, t, h):
    """``implicit_step``, refused if f at its end comes as a surprise."""
    if slope_at_start(w, t) != OK:
        return FUNCTION_RAISED
    status = implicit_step(w, t, h)
    if status != OK:
        return status
    w.have_f1 = 0
    copy(w.y_new, w.x)
    if evaluate(w, t + h) != OK:
        return FUNCTION_RAISED
    copy(w.dx, w.f1)
    w.have_f1 = 1
    plain = end_surprise(w, h)
    share = SHARE if w.estimate_kind == ESTIMATE_EMBEDDED else 1.0
    if plain <= max(1.0, share * slope_spread(w, h)):
        return OK
    # What stiff components contribute is damped by the method, and does not count.
    if np.isfinite(plain):
        if solve_real(w, w.end_block) != OK:
            return FUNCTION_RAISED
        if error_norm(w, w.real_rhs, h) <= 1.0:
            return OK
    w.have_f1 = 0
    w.newton_factor = 0.5
    return NEWTON_FAILED


@kernel
def end_surprise(w, h):
    """How far h f at the end is from the extrapolation of the stages, in tolerances (→ real_rhs).

    Infinite where f is not finite.
    """
    for m in range(w.y.shape[0]):
        predicted = w.end_weights[0] * h * w.f0[m]
        for i in range(w.stages):
            predicted += w.end_weights[1 + i] * w.K[i, m]
        w.real_rhs[m] = h * w.f1[m] - predicted
    return error_norm(w, w.real_rhs, h)


@kernel
def slope_spread(w, h):
    """Largest difference between a stage's h k and h f at the start, in tolerances."""
    greatest = 0.0
    for i in range(w.stages):
        for m in range(w.y.shape[0]):
            w.error_low[m] = w.K[i, m] - h * w.f0[m]
        greatest = max(greatest, error_norm(w, w.error_low, h))
    return greatest


@kernel
def checked_accept(w, t, h):
    """After an accepted step: the slope at its end is known."""
    if w.coupling == COUPLING_DIAGONAL:
        status = diagonal_accept(w, t, h)
    else:
        status = coupled_accept(w, t, h)
    w.have_f1 = 1
    return status
