"""What stiff and algebraic components do inside a step, which its end does not tell.

Stiffly accurate methods find such components from the others, z = G(t, y), at the end of a step of
any length: an estimate of the error there lets steps grow beyond what a polynomial follows, and
dense output and events would be wrong by any amount. So the *defect* of the step's own polynomial u
is looked at in one point c inside it. One iteration of Newton's,

    δ = γ (M − hγJ)⁻¹ (h f(t + ch, u(c)) − M h u'(c)),

leads from u(c) to a state that fits f, and of that the stiff part δ − (M − hγJ)⁻¹ M δ counts;
the rest is what the estimate at the end is for. (Defects as errors: W. H. Enright, ACM Trans. Math.
Software 12 (1986).) The point and the polynomial are tables, :class:`.InnerCheck`, of the stages
(:func:`.inner_check`), of those of a Rosenbrock method, or of both halves of an additive one.

More of a defect is allowed than of an error, because dense output is of higher order than u. That
holds where the solution is smooth, and there the defect grows from step to step as a power of h.
One that grows by far more was announced by nothing (a component that was constant and begins to
move): it must be as small as an error.
"""

from __future__ import annotations

from ....kernels import kernel
from ....stepping.dense import combine, copy, evaluate
from ....stepping.state import ESTIMATE_EMBEDDED, FUNCTION_RAISED, OK, State
from ....tableau.implicit_extension import InnerCheck
from .step import (
    ROUNDING_SAFETY,
    UNIT,
    estimate_error,
    implicit_norm,
    solve_real,
    times_mass,
)

__all__ = ["FADING", "implicit_refine", "is_sudden", "look_inside", "watch_inside"]

SUDDEN = 100.0  # growth of a defect, beyond that with a power of h, which nothing announced
FADING = 0.1  # what is left of earlier defects after a step: one may have vanished by chance


def watch_inside(state: State, found: InnerCheck, asked: float, filters: int = 1) -> None:
    """Enter what is looked at inside steps, for an rtol that was asked for; the weight apart."""
    state.inside_node, state.inside_filters = found.node, filters
    state.inside_strict = state.rtol / asked if asked > 0 else 0.0
    state.inside_power, state.inside_now = found.order + 1.0, -1.0
    state.inside_steps = -1


@kernel
def implicit_refine(w, t, h):
    """Correct the norm of the estimate; 1 if that was done.

    One that is too large is made again; one that is small enough must be so inside the step, too.
    """
    corrected = 0
    if w.norm >= 1.0:
        if not second_estimate_is_due(w) or estimate_error(w, t, h, True) != OK:
            return 0
        corrected = 1
    if w.norm < 1.0 and w.inside_weight > 0.0:
        inside = look_inside(w, t, h)
        if inside < 0.0:
            return FUNCTION_RAISED
        if inside > w.norm and not is_rounding(w, t, h, inside):
            w.norm = inside
            w.norm_known = 1
            return 1
    return corrected


@kernel
def is_rounding(w, t, h, inside):
    """Whether a defect that no shorter step made small is what f loses by cancellation.

    Diodes, and what is left of equations after several differentiations, magnify rounding errors
    by any factor; no step is short enough then, and the estimate at the end must do. As
    :func:`.coupled.rounding_norm`, units in the last place with alternating signs tell.
    """
    if inside < 1.0 or w.last_rejected == 0:
        return False
    length = w.h_factored
    node = state_inside(w, t, h)
    if evaluate(w, node) != OK:
        return False
    copy(w.dx, w.residual[0])
    state_inside(w, t, h)
    for m in range(w.y.shape[0]):
        w.x[m] *= 1.0 + (UNIT if m % 2 == 0 else -UNIT)
    if evaluate(w, node) != OK:
        return False
    for m in range(w.y.shape[0]):
        w.real_rhs[m] = length * w.real_shift[w.inside_block] * (w.dx[m] - w.residual[0, m])
    if solve_real(w, w.inside_block) != OK:
        return False
    limit = w.inside_used * implicit_norm(w, w.real_rhs, length)
    return inside <= ROUNDING_SAFETY * limit


@kernel
def state_inside(w, t, h):
    """x = u(c), the state where the defect is looked at; returns the time there.

    After two half steps, the second one is looked at.
    """
    length = w.h_factored
    rows = w.b.shape[0]
    combine(w.b, w.K, rows, w.real_rhs)
    combine(w.inside_value, w.K, rows, w.x)
    for m in range(w.y.shape[0]):
        w.x[m] += w.y_new[m] - w.real_rhs[m]
    return t + (h - length) + w.inside_node * length


@kernel
def second_estimate_is_due(w):
    """Whether RADAU5 makes its estimate again: on the first step and after a rejection.

    Not with a Jacobian from elsewhere: filtered twice by the stiffness of a contact, even a wrong
    bounce of a body that still flies looks harmless.
    """
    if w.jacobian_current == 0 and w.constant_jacobian == 0:
        return False
    if w.estimate_kind != ESTIMATE_EMBEDDED or w.estimate_weight == 0.0:
        return False
    return w.nsteps == 0 or w.last_rejected == 1


@kernel
def look_inside(w, t, h):
    """Norm of the stiff part of the defect; negative if f raised an exception."""
    length = w.h_factored
    if length == 0.0:
        return 0.0
    if evaluate(w, state_inside(w, t, h)) != OK:
        return -1.0
    copy(w.dx, w.residual[0])  # external algebra writes to dx
    combine(w.inside_slope, w.K, w.b.shape[0], w.big)
    if stiff_part(w, w.residual[0], length, w.inside_block) != OK:
        return 0.0
    return weighted(w, implicit_norm(w, w.big, length), length)


@kernel
def weighted(w, defect, h):
    """Return a defect in what is allowed of it; one that is sudden counts as an error."""
    if w.nsteps != w.inside_steps:  # the last attempt that was looked at became a step
        faded = FADING * w.inside_before if w.inside_now >= 0.0 else -1.0
        w.inside_before = max(w.inside_now, faded)
        w.inside_length = w.inside_last_length
    w.inside_now, w.inside_steps = defect, w.nsteps
    w.inside_last_length = abs(h)
    w.inside_used = w.inside_weight
    if w.inside_before >= 0.0 and w.inside_strict * defect > 1.0:
        growth = (abs(h) / w.inside_length) ** w.inside_power
        if is_sudden(defect, w.inside_strict, w.inside_before, growth):
            w.inside_used = w.inside_strict
    return w.inside_used * defect


@kernel
def is_sudden(defect, strict, before, growth):
    """Whether a defect too large for an error was announced by none of the steps before.

    `before` is what these had, negative if there were none, `growth` what a longer step makes of
    it.
    """
    return (before >= 0.0) & (strict * defect > 1.0) & (defect > SUDDEN * before * growth)


@kernel
def stiff_part(w, slope, h, block):
    """big, which is h u', becomes the stiff part of Newton's δ above; `slope` is f(u)."""
    n = w.y.shape[0]
    status = times_mass(w, w.big, w.saved)
    if status != OK:
        return status
    for m in range(n):
        w.real_rhs[m] = w.real_shift[block] * (h * slope[m] - w.saved[m])
    status = solve_real(w, block)
    if status != OK:
        return status
    copy(w.real_rhs, w.big)
    for _ in range(w.inside_filters):
        status = times_mass(w, w.big, w.real_rhs)
        if status == OK:
            status = solve_real(w, block)
        if status != OK:
            return status
        for m in range(n):
            w.big[m] -= w.real_rhs[m]
    return OK
