"""Attempts of implicit steps in all lanes at once, as kernels around ``newton_code``.

A lane that has converged, or cannot, waits for the others; nothing that it does depends on them.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...stepping.state import NEWTON_FAILED, SINGULAR_MATRIX
from .newton_code import PLACES
from .rows import (
    H_LAST,
    IDLE,
    LANES,
    NEWTON_COUNT,
    NEWTON_FACTOR,
    NEWTON_STATUS,
    NSTEPS,
    REJECTED,
    T,
)

__all__ = ["implicit_attempt", "newton_forgets", "step_is_over"]

ACTIVE, VERDICT, COUNT = PLACES["ACTIVE"], PLACES["VERDICT"], PLACES["COUNT"]
MEMORY, EXPECTED = PLACES["MEMORY"], PLACES["EXPECTED"]
LARGEST_PIVOT = 1e300


@kernel
def newton_forgets(w, l):
    """A lane starts afresh: there is no step before."""
    w.lane[H_LAST, l] = 0.0
    w.newton[w.memory, l] = 1.0


@kernel
def implicit_attempt(w):
    """Norms of error estimates and new states of a step in all lanes, as ``implicit_step``."""
    newton = w.newton
    at = w.memory - MEMORY
    ratio = newton.shape[0] - 1
    for l in range(LANES):
        last = w.lane[H_LAST, l]
        newton[ratio, l] = w.h[l] / last if last != 0.0 else 0.0
    call_lanes(w.prepare, w.lane[T], newton, w.block, w.prepared)
    if w.unrolled == 0:
        call_lanes(w.jac, w.lane[T], w.y, w.p, w.J)
        invert_blocks(w)
    active = False
    for l in range(LANES):
        w.lane[NEWTON_STATUS, l] = 0.0
        w.lane[NEWTON_FACTOR, l] = 0.5
        if newton[w.singular, l] != 0.0 and newton[at + ACTIVE, l] != 0.0:
            newton[at + ACTIVE, l] = 0.0
            if np.isfinite(w.h[l]):  # else the judge ends the run
                w.lane[NEWTON_STATUS, l] = SINGULAR_MATRIX
        active = active or newton[at + ACTIVE, l] != 0.0
    while active:
        call_lanes(w.iterate, w.lane[T], newton, w.block, w.iterated)
        active = False
        for l in range(LANES):
            active = active or newton[at + ACTIVE, l] != 0.0
    lost = False
    for l in range(LANES):
        w.lane[NEWTON_COUNT, l] = newton[at + COUNT, l]
        lost = lost or newton[at + VERDICT, l] < 0.0
    if lost:
        give_up(w, at)
    call_lanes(w.finish, w.lane[T], newton, w.block, w.results)
    refine = False
    for l in range(LANES):
        if w.lane[NEWTON_STATUS, l] != 0.0:
            w.results[0, l] = np.inf
        refine = refine or may_be_refined(w, l)
    if refine:
        call_lanes(w.again, w.lane[T], newton, w.block, w.norm)
        for l in range(LANES):
            if may_be_refined(w, l):
                w.results[0, l] = w.norm[0, l]


@kernel
def may_be_refined(w, l):
    """Whether RADAU5's second estimate is due: as ``implicit_refine``."""
    norm = w.results[0, l]
    due = w.lane[NSTEPS, l] == 0.0 or w.lane[REJECTED, l] != 0.0
    return w.lane[IDLE, l] == 0.0 and due and norm >= 1.0 and norm < np.inf


@kernel
def give_up(w, at):
    """Say why iterations have failed, and how much shorter the next step should be."""
    call_lanes(w.rounding, w.lane[T], w.newton, w.block, w.norm)
    for l in range(LANES):
        if w.newton[at + VERDICT, l] < 0.0:
            status = w.norm[0, l]
            w.lane[NEWTON_STATUS, l] = status
            if status == 0.0:
                w.newton[w.memory, l] = 1.0
            expected = w.newton[at + EXPECTED, l]
            if status == NEWTON_FAILED and expected >= 1.0:
                left = w.max_newton - w.newton[at + COUNT, l]
                w.lane[NEWTON_FACTOR, l] = 0.8 * min(20.0, expected) ** (-1.0 / (4.0 + left))


@kernel
def step_is_over(w):
    """Keep what the next step starts from, of lanes whose step was accepted."""
    size = w.stages * w.y.shape[0]
    first = w.newton.shape[0] - 1 - size
    for l in range(LANES):
        if w.lane[IDLE, l] == 0.0 and w.lane[REJECTED, l] == 0.0:
            w.lane[H_LAST, l] = w.old[1, l]
            for j in range(size):
                w.newton[first + j, l] = w.newton[j, l]


# ---------------------------------------------------------------------- inverses


@kernel
def invert_blocks(w):
    """(I − hλJ)⁻¹ of all blocks, by Gauss–Jordan elimination in each lane."""
    n = w.y.shape[0]
    size = n * n
    place = w.singular + 1
    for l in range(LANES):
        w.newton[w.singular, l] = 0.0
    for k in range(w.real_shift.shape[0]):
        for i in range(size):
            unit = 1.0 if i // n == i % n else 0.0
            for l in range(LANES):
                w.newton[place + i, l] = unit - w.h[l] * w.real_shift[k] * w.J[i, l]
        invert_real(w, place, n)
        place += size
    for k in range(w.complex_shift.shape[0]):
        for i in range(size):
            unit = 1.0 if i // n == i % n else 0.0
            for l in range(LANES):
                w.newton[place + i, l] = unit - w.h[l] * w.complex_shift[k].real * w.J[i, l]
                w.newton[place + size + i, l] = -w.h[l] * w.complex_shift[k].imag * w.J[i, l]
        invert_complex(w, place, n)
        place += 2 * size


@kernel
def bring_up(a, place, n, k, best, l):
    """Swap the rows k and best of one lane's matrix."""
    for j in range(n):
        swapped = a[place + k * n + j, l]
        a[place + k * n + j, l] = a[place + best * n + j, l]
        a[place + best * n + j, l] = swapped


@kernel
def put_back(a, place, n, k, best, l):
    """Swap the columns k and best of one lane's matrix."""
    for i in range(n):
        swapped = a[place + i * n + k, l]
        a[place + i * n + k, l] = a[place + i * n + best, l]
        a[place + i * n + best, l] = swapped


@kernel
def invert_real(w, place, n):
    """Overwrite a matrix in each lane with its inverse."""
    a, factor, pivot = w.newton, w.theta, w.pivots
    for k in range(n):
        for l in range(LANES):
            best = k
            for i in range(k + 1, n):
                if abs(a[place + i * n + k, l]) > abs(a[place + best * n + k, l]):
                    best = i
            pivot[k, l] = best
            if best != k:
                bring_up(a, place, n, k, best, l)
            size = abs(a[place + k * n + k, l])
            if not (size > 0.0 and size < LARGEST_PIVOT):
                w.newton[w.singular, l] = 1.0
            factor[l] = 1.0 / a[place + k * n + k, l]
            a[place + k * n + k, l] = 1.0
        for j in range(n):
            for l in range(LANES):
                a[place + k * n + j, l] *= factor[l]
        for i in range(n):
            if i != k:
                for l in range(LANES):
                    factor[l] = a[place + i * n + k, l]
                    a[place + i * n + k, l] = 0.0
                for j in range(n):
                    for l in range(LANES):
                        a[place + i * n + j, l] -= factor[l] * a[place + k * n + j, l]
    for k in range(n - 1, -1, -1):
        for l in range(LANES):
            if pivot[k, l] != k:
                put_back(a, place, n, k, pivot[k, l], l)


@kernel
def invert_complex(w, place, n):
    """The same for a complex matrix, whose imaginary part follows the real one."""
    a, u, v, pivot = w.newton, w.theta, w.end, w.pivots
    other = place + n * n
    for k in range(n):
        for l in range(LANES):
            best = k
            most = -1.0
            for i in range(k, n):
                re, im = a[place + i * n + k, l], a[other + i * n + k, l]
                if re * re + im * im > most:
                    best, most = i, re * re + im * im
            pivot[k, l] = best
            if best != k:
                bring_up(a, place, n, k, best, l)
                bring_up(a, other, n, k, best, l)
            if not (most > 0.0 and most < LARGEST_PIVOT):
                w.newton[w.singular, l] = 1.0
            u[l] = a[place + k * n + k, l] / most
            v[l] = -a[other + k * n + k, l] / most
            a[place + k * n + k, l], a[other + k * n + k, l] = 1.0, 0.0
        for j in range(n):
            for l in range(LANES):
                re, im = a[place + k * n + j, l], a[other + k * n + j, l]
                a[place + k * n + j, l] = re * u[l] - im * v[l]
                a[other + k * n + j, l] = re * v[l] + im * u[l]
        for i in range(n):
            if i != k:
                for l in range(LANES):
                    u[l], v[l] = a[place + i * n + k, l], a[other + i * n + k, l]
                    a[place + i * n + k, l], a[other + i * n + k, l] = 0.0, 0.0
                for j in range(n):
                    for l in range(LANES):
                        re, im = a[place + k * n + j, l], a[other + k * n + j, l]
                        a[place + i * n + j, l] -= u[l] * re - v[l] * im
                        a[other + i * n + j, l] -= u[l] * im + v[l] * re
    for k in range(n - 1, -1, -1):
        for l in range(LANES):
            if pivot[k, l] != k:
                put_back(a, place, n, k, pivot[k, l], l)
                put_back(a, other, n, k, pivot[k, l], l)
