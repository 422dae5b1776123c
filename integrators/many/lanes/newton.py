"""Attempts of implicit steps in all lanes at once, as kernels around ``newton_code``.

A lane that has converged, or cannot, waits for the others; nothing that it does depends on them.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...stepping.state import NEWTON_FAILED, SINGULAR_MATRIX
from .rows import (
    LANES,
    NEWTON_COUNT,
    NEWTON_FACTOR,
    NEWTON_STATUS,
    NEWTON_TOLERANCE,
    NO_JACOBIAN,
    PLACES,
    WORN_JACOBIAN,
    T,
)

__all__ = ["implicit_attempt", "newton_forgets"]

ACTIVE, VERDICT, COUNT = PLACES["ACTIVE"], PLACES["VERDICT"], PLACES["COUNT"]
MEMORY, EXPECTED = PLACES["MEMORY"], PLACES["EXPECTED"]
THETA, AGE = PLACES["THETA"], PLACES["AGE"]
LARGEST_PIVOT = 1e300


@kernel
def newton_forgets(w, l):
    """A lane starts afresh: there is no step before, and no Jacobian."""
    w.newton[w.memory, l] = 1.0
    w.newton[w.memory - MEMORY + AGE, l] = NO_JACOBIAN


@kernel
def implicit_attempt(w):
    """Norms of error estimates and new states of a step in all lanes, as ``implicit_step``."""
    newton, lane, results = w.newton, w.lane, w.results
    at = w.memory - MEMORY
    solve_stages(w, at, False)
    solved = 0.0
    for l in range(LANES):
        lane[NEWTON_STATUS, l] = 0.0
        solved += newton[at + VERDICT, l]
    if solved != LANES and blame_jacobians(w, at):
        solve_stages(w, at, True)
        put_back_others(w, at)
        solved = 0.0
        for l in range(LANES):
            solved += newton[at + VERDICT, l]
    for l in range(LANES):
        lane[NEWTON_COUNT, l] = newton[at + COUNT, l]
    call_lanes(w.finish, lane[T], newton, w.block, results)
    if solved != LANES:
        give_up(w, at)
    large = False
    for l in range(LANES):
        large = large or results[0, l] >= 1.0
    if large:
        refine(w)


@kernel
def solve_stages(w, at, second):
    """Newton's iteration, until each lane has converged or cannot.

    In a second trial others than the lanes that ask for it stand still.
    """
    newton, times = w.newton, w.lane[T]
    call_lanes(w.prepare, times, newton, w.block, w.prepared)
    if w.unrolled == 0:
        call_lanes(w.jac, times, w.y, w.p, w.J_here)
        for i in range(w.J.shape[0]):
            for l in range(LANES):
                if newton[at + AGE, l] == 0.0:
                    w.J[i, l] = w.J_here[i, l]
        invert_blocks(w)
    if second:
        for l in range(LANES):
            if w.newton_aside[at + AGE, l] != WORN_JACOBIAN:
                newton[at + ACTIVE, l] = 0.0
    iterate, iterated = w.iterate, w.iterated
    while True:
        active = 0.0
        for l in range(LANES):
            active += newton[at + ACTIVE, l]
        if active == 0.0:
            break
        call_lanes(iterate, times, newton, w.block, iterated)


@kernel
def blame_jacobians(w, at):
    """Whether lanes failed with an old Jacobian; all others are set aside, to be put back."""
    call_lanes(w.rounding, w.lane[T], w.newton, w.block, w.norm)
    blamed = False
    for l in range(LANES):
        failed = w.newton[at + VERDICT, l] != 1.0 and w.newton[w.singular, l] == 0.0
        old = w.newton[at + AGE, l] > 0.0
        if failed and old and w.norm[0, l] == NEWTON_FAILED:
            w.newton[at + AGE, l] = WORN_JACOBIAN
            blamed = True
    if blamed:
        for i in range(w.newton.shape[0]):
            for l in range(LANES):
                w.newton_aside[i, l] = w.newton[i, l]
    return blamed


@kernel
def put_back_others(w, at):
    """Undo the second trial in the lanes that did not ask for it."""
    for l in range(LANES):
        if w.newton_aside[at + AGE, l] != WORN_JACOBIAN:
            for i in range(w.newton.shape[0]):
                w.newton[i, l] = w.newton_aside[i, l]


@kernel
def refine(w):
    """A second look at steps that would be rejected: as ``implicit_refine``."""
    call_lanes(w.again, w.lane[T], w.newton, w.block, w.norm)
    for l in range(LANES):
        if w.results[0, l] >= 1.0 and w.results[0, l] < np.inf:
            w.results[0, l] = w.norm[0, l]
            w.results[1 + w.y.shape[0], l] = w.norm[1, l]


@kernel
def give_up(w, at):
    """Say why lanes have no solution, and how much shorter the next step should be."""
    call_lanes(w.rounding, w.lane[T], w.newton, w.block, w.norm)
    for l in range(LANES):
        if w.newton[at + VERDICT, l] == 1.0:
            continue
        w.lane[NEWTON_FACTOR, l] = 0.5
        status = w.norm[0, l]
        if w.newton[w.singular, l] != 0.0:  # if h is not finite, the judge ends the run
            status = float(SINGULAR_MATRIX) if np.isfinite(w.h[l]) else 0.0
            w.results[0, l] = np.inf
        elif status == 0.0:
            w.newton[w.memory, l] = 1.0
            w.newton[at + THETA, l] = 0.0  # which says nothing about the Jacobian now
        expected = w.newton[at + EXPECTED, l] / w.lane[NEWTON_TOLERANCE, l]
        if status == NEWTON_FAILED and expected >= 1.0:
            left = w.max_newton - w.newton[at + COUNT, l]
            w.lane[NEWTON_FACTOR, l] = 0.8 * min(20.0, expected) ** (-1.0 / (4.0 + left))
        if status != 0.0:
            w.results[0, l] = np.inf
        w.lane[NEWTON_STATUS, l] = status


# ---------------------------------------------------------------------- inverses


@kernel
def invert_blocks(w):
    """(I − hλJ)⁻¹ of all blocks, by Gauss–Jordan elimination in each lane.

    A lane whose matrix has no inverse takes no part in what follows.
    """
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
    for l in range(LANES):
        if w.newton[w.singular, l] != 0.0:
            w.newton[w.memory - MEMORY + ACTIVE, l] = 0.0


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
