"""Is the step as short as it is for the sake of accuracy, or of stability? Kernels that watch.

The steps of an explicit method that stability limits are such that h|λ| lies near the boundary of
its region of stability, where λ is the largest eigenvalue of the Jacobian. Two states at the same
time that differ by errors alone differ mostly along its eigenvector, so that the quotient of their
slopes' distance and their own estimates |λ| at no cost (:cite:`hairer1996`, IV.2); here these are
the last stage of a step and the start of the next. In implicit methods the Jacobian is there: one
multiplication a step follows its largest eigenvalue.

``watch_stiffness`` says what comes of it: 1, the run tells of it at its end; 2, the loop returns as
soon as the other kind of method would serve better (``integrators.methods.automatic``).
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ..kernels import kernel
from .dense import combine, copy

__all__ = ["watch_explicit", "watch_implicit"]

NEAR = 0.8  # of the boundary: steps beyond are taken for limited by it
CALM = 4  # so many steps in a row that are not say that it has passed
SELDOM = 16  # a run that only tells at its end looks at one step of so many, until one was limited


@kernel
def watch_explicit(w, h):
    """After an accepted step of an explicit method with a stage at its end."""
    if w.watch_stiffness == 0 or w.stiff_stage < 0:
        return
    if w.watch_stiffness == 1 and w.stiff_steps == 0 and w.nsteps % SELDOM > 1:
        w.have_start = 0  # to look takes two steps in a row, and a fifth of a small step's time
        return
    if w.have_start == 1 and w.f0_known == 1:
        radius = quotient_of_distances(w)
        if radius >= 0.0:
            w.spectral_radius = radius
            judge_explicit(w, abs(h) * radius)
    copy(w.K[w.stiff_stage], w.stage_slope)
    combine(w.A[w.stiff_stage], w.K, w.stiff_stage, w.stage_state)
    for m in range(w.y.shape[0]):
        w.stage_state[m] = w.y_old[m] + h * w.stage_state[m]
    w.have_start = 1


@kernel
def quotient_of_distances(w):
    """|f(y) − f(z)|/|y − z| at the start of the step, z the last stage before; −1 if y = z."""
    difference = 0.0
    distance = 0.0
    for m in range(w.y.shape[0]):
        scale = 1.0 / (w.atol[m] + w.rtol * abs(w.y_old[m]))
        a = (w.f0[m] - w.stage_slope[m]) * scale
        b = (w.y_old[m] - w.stage_state[m]) * scale
        difference += a * a
        distance += b * b
    if not (distance > 0.0 and np.isfinite(difference)):
        return -1.0
    return np.sqrt(difference / distance)


@kernel
def judge_explicit(w, product):
    """Count steps at the boundary of stability; wish for a stiff method after several."""
    if product > NEAR * w.stability_boundary:
        w.stiff_steps += 1
        w.stiff_total += 1
        w.mild_steps = 0
        if w.stiff_steps >= w.stiff_patience and w.watch_stiffness == 2:
            w.family_wish = 1
    else:
        w.mild_steps += 1
        if w.mild_steps >= CALM:
            w.stiff_steps = 0


@kernel
def watch_implicit(w, h):
    """After an accepted step of an implicit method: wish for an explicit one if that would do."""
    if w.watch_stiffness != 2 or w.external_algebra == 1:
        return
    n = w.y.shape[0]
    before = 0.0
    after = 0.0
    for m in range(n):
        before += w.eigenvector[m] * w.eigenvector[m]
    if not (before > 0.0 and np.isfinite(before)):
        before = n
        for m in range(n):
            w.eigenvector[m] = 1.0 if m % 2 == 0 else -0.7
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += w.J[i, j] * w.eigenvector[j]
        w.x[i] = total
        after += total * total
    w.spectral_radius = np.sqrt(after / before)
    scale = 1.0 / np.sqrt(after) if after > 0.0 else 0.0
    for m in range(n):
        w.eigenvector[m] = w.x[m] * scale
    if abs(h) * w.spectral_radius < w.stability_boundary:
        w.mild_steps += 1
        if w.mild_steps >= w.stiff_patience:
            w.family_wish = -1
    else:
        w.mild_steps = 0
