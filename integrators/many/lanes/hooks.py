"""What happens after each step in lanes: events, projection, and what is kept of a run.

``loop.run_lanes`` calls :func:`after_step` if a problem needs any of it. By then the judge has
decided; ``old`` and ``y_old`` hold time, length and state at the start of the step. For lanes whose
step was accepted

* event functions are sampled on the dense output at the places of ``stepping.watch``; a change of
  sign is narrowed down there, noted, and ends the run if the event is terminal;
* the state is projected, and the slope that an FSAL method carries on computed again;
* functions of the state are sampled at the nodes of a Gauss–Lobatto formula: their integrals, and
  their extreme values, on the polynomial through these samples.

Whatever is not plain is left to ``solve``: a lane that meets it ends with the outcome AGAIN. That
is so where an event function is zero or dips towards zero without changing its sign, where it
changes it twice in a step, where two events that act happen at once, and where a projection does
not succeed in the steps that it has.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from ...kernels import kernel
from ...kernels.pointers import call_lanes
from ...stepping.watch import SAMPLES, dips, flat
from .rows import (
    AGAIN,
    ENDED_BY_EVENT,
    IDLE,
    INTEGRAL,
    LANES,
    LARGEST,
    LEAVING,
    NEXT_OUTPUT,
    OUTCOME,
    REJECTED,
    RUN,
    STARTING,
    T,
)

__all__ = ["NODES", "WEIGHTS", "after_step", "at_start", "peak"]

# Gauss–Lobatto, seven nodes on [0, 1], exact up to degree 11 (Abramowitz & Stegun, Table 25.6).
_INNER = (0.830223896278566929872, 0.468848793470714213804)
_OUTER_WEIGHT = 1.0 / 21.0
_INNER_WEIGHTS = (0.276826047361565948011, 0.431745381209862623417, 0.487619047619047619048)
NODES = (
    0.0,
    0.5 - _INNER[0] / 2,
    0.5 - _INNER[1] / 2,
    0.5,
    0.5 + _INNER[1] / 2,
    0.5 + _INNER[0] / 2,
    1.0,
)
WEIGHTS = (
    _OUTER_WEIGHT / 2,
    _INNER_WEIGHTS[0] / 2,
    _INNER_WEIGHTS[1] / 2,
    _INNER_WEIGHTS[2] / 2,
    _INNER_WEIGHTS[1] / 2,
    _INNER_WEIGHTS[0] / 2,
    _OUTER_WEIGHT / 2,
)

NARROWINGS = 240  # steps of the search for a zero …
NARROWEST = 1e-17  # … and the part of a step that no time tells from none
TOGETHER = 1e-9  # parts of a step within which two events happen at one instant
GOLDEN = 0.3819660112501051
SHORTENINGS = (
    40  # of the bracket of an extreme value: to 1e-8 of its width, and its square in value
)


@kernel
def at_start(w):
    """Values of all functions at the starts of newly loaded lanes."""
    if w.n_events > 0:
        call_lanes(w.events, w.lane[T], w.y, w.p, w.g)
        for l in range(LANES):
            if w.run[STARTING, l] == 1:
                for e in range(w.g.shape[0]):
                    w.g_last[e, l] = w.g[e, l]
    if w.kept_kind.shape[0] > 0:
        call_lanes(w.kept, w.lane[T], w.y, w.p, w.value)
        for l in range(LANES):
            if w.run[STARTING, l] == 1:
                run = w.run[RUN, l]
                for k in range(w.kept_kind.shape[0]):
                    w.seen[0, k, l] = w.value[k, l]
                    w.kept_value[run, k] = 0.0 if w.kept_kind[k] == INTEGRAL else w.value[k, l]
                    w.kept_time[run, k] = w.lane[T, l]


@kernel
def after_step(w):
    """See the module."""
    any_accepted = False
    for l in range(LANES):
        w.end[l] = 1.0  # part of the step that counts
        if w.lane[IDLE, l] == 0.0 and w.lane[REJECTED, l] == 0.0:
            any_accepted = True
    if not any_accepted:
        return
    if w.n_events > 0:
        look_for_events(w)
    if w.projects > 0:
        project(w)
    if w.kept_kind.shape[0] > 0:
        keep(w)


@kernel
def accepted(w, l):
    """Whether the step of a lane was accepted, and its run goes on under its own power."""
    going = w.lane[IDLE, l] == 0.0 and w.lane[REJECTED, l] == 0.0
    return going and w.lane[OUTCOME, l] != AGAIN


@kernel
def states_at(w, theta):
    """Times into first[0] and states into x, at parts theta[l] of the step of each lane."""
    for l in range(LANES):
        w.first[0, l] = w.old[0, l] + theta[l] * w.old[1, l]
    call_lanes(w.interpolate, theta, w.Q, w.y_old, w.x)


# ---------------------------------------------------------------------- events


@kernel
def look_for_events(w):
    """Sample the event functions, and deal with those that change their sign."""
    last = len(SAMPLES) - 1
    events = w.g.shape[0]
    for i in range(1, last + 1):
        if i == last:
            call_lanes(w.events, w.lane[T], w.y, w.p, w.g)
        else:
            for l in range(LANES):
                w.theta[l] = SAMPLES[i]
            states_at(w, w.theta)
            call_lanes(w.events, w.first[0], w.x, w.p, w.g)
        for e in range(events):
            for l in range(LANES):
                w.g_samples[i, e, l] = w.g[e, l]
    for e in range(events):
        for l in range(LANES):
            w.g_samples[0, e, l] = w.g_last[e, l]
            w.zero[e, l] = -1.0
    for e in range(events):
        bracketed = False
        for l in range(LANES):
            w.bracket[0, l], w.bracket[1, l] = 0.0, 0.0
            if accepted(w, l):
                if bracket(w, e, l):
                    bracketed = True
                w.g_last[e, l] = w.g_samples[last, e, l]
        if bracketed:
            narrow(w, e)
    for l in range(LANES):
        if accepted(w, l):
            happen(w, l)


@kernel
def bracket(w, e, l):
    """Whether event e changes its sign once, the right way, in the step of a lane; and where."""
    last = len(SAMPLES) - 1
    g = w.g_samples
    changes = 0
    for i in range(1, last + 1):
        product = g[i - 1, e, l] * g[i, e, l]
        if not product > 0.0:
            if product < 0.0:
                changes += 1
                if i == 1 and abs(g[0, e, l]) == LEAVING:  # back at once: `solve` has a look
                    w.lane[OUTCOME, l] = AGAIN
                    return False
                rising = 1.0 if g[i, e, l] > 0.0 else -1.0
                if w.direction[e] == 0.0 or rising * w.direction[e] > 0.0:
                    w.bracket[0, l], w.bracket[1, l] = SAMPLES[i - 1], SAMPLES[i]
                    w.bracket[2, l], w.bracket[3, l] = g[i - 1, e, l], g[i, e, l]
            else:  # zero or not a number
                w.lane[OUTCOME, l] = AGAIN
                return False
    if changes == 0 and flat(g[:, e, l]):
        return False
    for i in range(1, last):
        before, here, after = abs(g[i - 1, e, l]), abs(g[i, e, l]), abs(g[i + 1, e, l])
        same_side = g[i - 1, e, l] * g[i, e, l] > 0.0 and g[i, e, l] * g[i + 1, e, l] > 0.0
        if same_side and here <= min(before, after):
            w.lane[OUTCOME, l] = AGAIN
            return False
    at_start = g[0, e, l] * g[1, e, l] > 0.0 and dips(
        g[0, e, l], g[1, e, l], g[2, e, l], g[3, e, l], g[4, e, l]
    )
    at_end = g[last, e, l] * g[last - 1, e, l] > 0.0 and dips(
        g[4, e, l], g[3, e, l], g[2, e, l], g[1, e, l], g[0, e, l]
    )
    if changes > 1 or at_start or at_end:
        w.lane[OUTCOME, l] = AGAIN
        return False
    return w.bracket[1, l] > 0.0


@kernel
def is_wide(a, b):
    """Whether a bracket can be narrowed.

    One that a projection after the step before has made has no zero inside: it ends at its start.
    """
    return b - a > max(4e-16 * b, NARROWEST)


@kernel
def narrow(w, e):
    """Zeros of event e between the brackets of all lanes, by the Illinois method, and halving."""
    for l in range(LANES):
        w.bracket[4, l] = 0.0
    for step in range(NARROWINGS):
        open_ = False
        for l in range(LANES):
            a, b = w.bracket[0, l], w.bracket[1, l]
            w.theta[l] = b
            if is_wide(a, b):
                open_ = True
                ga, gb = w.bracket[2, l], w.bracket[3, l]
                middle = 0.5 * (a + b)
                guess = b - gb * (b - a) / (gb - ga)
                if step % 4 == 3 or not (a < guess < b):
                    guess = middle
                w.theta[l] = guess
        if not open_:
            break
        states_at(w, w.theta)
        call_lanes(w.events, w.first[0], w.x, w.p, w.g)
        for l in range(LANES):
            a, b = w.bracket[0, l], w.bracket[1, l]
            if not is_wide(a, b):
                continue
            value, theta = w.g[e, l], w.theta[l]
            if theta <= a or theta >= b or value == 0.0:
                w.bracket[0, l], w.bracket[1, l] = theta, theta
            elif value * w.bracket[2, l] > 0.0:
                w.bracket[0, l], w.bracket[2, l] = theta, value
                if w.bracket[4, l] == 1.0:  # the other end has stayed twice
                    w.bracket[3, l] *= 0.5
                w.bracket[4, l] = 1.0
            else:
                w.bracket[1, l], w.bracket[3, l] = theta, value
                if w.bracket[4, l] == -1.0:
                    w.bracket[2, l] *= 0.5
                w.bracket[4, l] = -1.0
    for l in range(LANES):
        if w.bracket[1, l] > 0.0:
            w.zero[e, l] = w.bracket[1, l]


@kernel
def happen(w, l):
    """Note the events in the step of a lane up to the first that ends its run."""
    events = w.g.shape[0]
    run = w.run[RUN, l]
    first = 2.0
    for e in range(events):
        if w.zero[e, l] > 0.0 and (w.has_reset[e] == 1 or ends(w, l, e)):
            first = min(first, w.zero[e, l])
    together = max(TOGETHER, w.rtol[l]) if w.jumps == 1 else TOGETHER
    for e in range(events):  # what happens with it at one instant is for `solve` to sort out
        near = abs(w.zero[e, l] - first)
        if w.zero[e, l] > 0.0 and 0.0 < near < together:
            w.lane[OUTCOME, l] = AGAIN
            return
    alike = 0
    for e in range(events):
        if w.zero[e, l] == first:
            alike += 1
    if alike > 1:
        w.lane[OUTCOME, l] = AGAIN
        return
    for e in range(events):
        theta = w.zero[e, l]
        if theta > 0.0 and theta <= first:
            at = w.event_count[run, e]
            if at == w.event_t.shape[2]:  # no room
                w.lane[OUTCOME, l] = AGAIN
                return
            for k in range(LANES):
                w.theta[k] = theta
            states_at(w, w.theta)
            w.event_t[run, e, at] = w.first[0, l]
            for m in range(w.y.shape[0]):
                w.event_y[run, e * w.event_t.shape[2] + at, m] = w.x[m, l]
            ended = ends(w, l, e)
            w.event_count[run, e] += 1
            if theta == first:
                go_to(w, l, theta)
                if ended:
                    stop_at(w, l)
                else:
                    w.jump[l] = e  # see ``jumps``


@kernel
def ends(w, l, e):
    """Whether the next occurrence of an event ends the run of a lane."""
    return w.terminal[e] > 0 and w.event_count[w.run[RUN, l], e] + 1 >= w.terminal[e]


@kernel
def go_to(w, l, theta):
    """Let the step of a lane end at part theta of it; the state there is in x."""
    w.end[l] = theta
    w.lane[T, l] = w.first[0, l]
    for m in range(w.y.shape[0]):
        w.y[m, l] = w.x[m, l]


@kernel
def stop_at(w, l):
    """End the run of a lane inside its last step."""
    w.lane[OUTCOME, l] = ENDED_BY_EVENT
    run = w.run[RUN, l]
    for k in range(w.t_eval.shape[0]):  # outputs of the step that lie behind it
        if (w.t_eval[k] - w.lane[T, l]) * w.old[1, l] > 0.0:
            for m in range(w.y.shape[0]):
                w.y_eval[run, m, k] = np.nan


# ---------------------------------------------------------------------- projection


@kernel
def project(w):
    """Put projected states in the place of new ones; slopes there are computed afresh."""
    n = w.y.shape[0]
    call_lanes(w.project, w.lane[T], w.y, w.p, w.projected)
    for l in range(LANES):
        if not accepted(w, l) or w.lane[OUTCOME, l] == ENDED_BY_EVENT or w.jump[l] >= 0:
            continue
        good = w.projected[n, l] <= 1.0  # not so for NaN
        for m in range(n):
            good = good and np.isfinite(w.projected[m, l])
        if not good:
            w.lane[OUTCOME, l] = AGAIN
            continue
        for m in range(n):
            w.y[m, l] = w.projected[m, l]
        run, k = w.run[RUN, l], w.run[NEXT_OUTPUT, l] - 1
        if 0 <= k < w.t_eval.shape[0] and w.t_eval[k] == w.lane[T, l]:
            for m in range(n):
                w.y_eval[run, m, k] = w.y[m, l]
    call_lanes(w.f, w.lane[T], w.y, w.p, w.dx)
    for l in range(LANES):
        if accepted(w, l):
            for m in range(n):
                w.f0[m, l] = w.dx[m, l]


# ---------------------------------------------------------------------- what is kept


@kernel
def keep(w):
    """Integrals and extreme values of functions over the steps just taken."""
    nodes = len(NODES)
    count = w.kept_kind.shape[0]
    for i in range(1, nodes):
        if i == nodes - 1:
            call_lanes(w.kept, w.lane[T], w.y, w.p, w.value)
        else:
            for l in range(LANES):
                w.theta[l] = NODES[i] * w.end[l]
            states_at(w, w.theta)
            call_lanes(w.kept, w.first[0], w.x, w.p, w.value)
        for k in range(count):
            for l in range(LANES):
                w.seen[i, k, l] = w.value[k, l]
    for l in range(LANES):
        if not accepted(w, l):
            continue
        run = w.run[RUN, l]
        for k in range(count):
            if w.kept_kind[k] == INTEGRAL:
                total = 0.0
                for i in range(nodes):
                    total += WEIGHTS[i] * w.seen[i, k, l]
                w.kept_value[run, k] += total * w.old[1, l] * w.end[l]
            else:
                extreme(w, l, run, k)
            w.seen[0, k, l] = w.seen[nodes - 1, k, l]


@kernel
def extreme(w, l, run, k):
    """Compare the extreme value of function k in a step with that of its run."""
    sign = 1.0 if w.kept_kind[k] == LARGEST else -1.0
    low = sign * w.seen[0, k, l]
    top = low
    for i in range(1, len(NODES)):
        low = min(low, sign * w.seen[i, k, l])
        top = max(top, sign * w.seen[i, k, l])
    known = sign * w.kept_value[run, k]
    if top + (top - low) > known:
        theta, top = peak(w.seen[:, k, l], sign)
        if top > known:
            w.kept_value[run, k] = sign * top
            w.kept_time[run, k] = w.old[0, l] + theta * w.end[l] * w.old[1, l]


@kernel
def peak(values, sign):
    """Where sign times the polynomial through values at NODES is largest, and how large.

    It is looked for on both sides of the largest value, also beside the first and the last one:
    the extreme value may lie between it and the next one, or in the next step.
    """
    nodes = len(NODES)
    best = 0
    for i in range(1, nodes):
        if sign * values[i] > sign * values[best]:
            best = i
    a, b = NODES[max(best - 1, 0)], NODES[min(best + 1, nodes - 1)]
    left = b - (1.0 - GOLDEN) * (b - a)
    right = a + (1.0 - GOLDEN) * (b - a)
    at_left = sign * interpolated(values, left)
    at_right = sign * interpolated(values, right)
    for _ in range(SHORTENINGS):
        if at_left >= at_right:
            b, right, at_right = right, left, at_left
            left = b - (1.0 - GOLDEN) * (b - a)
            at_left = sign * interpolated(values, left)
        else:
            a, left, at_left = left, right, at_right
            right = a + (1.0 - GOLDEN) * (b - a)
            at_right = sign * interpolated(values, right)
    middle = 0.5 * (a + b)
    value = sign * interpolated(values, middle)
    top = sign * values[best]
    if value > top:
        return middle, value
    return NODES[best], top


@kernel
def interpolated(values, theta):
    """Polynomial through values at NODES, at a part of the step that counts."""
    total = 0.0
    for i in range(len(NODES)):
        basis = 1.0
        for j in range(len(NODES)):
            if j != i:
                basis *= (theta - NODES[j]) / (NODES[i] - NODES[j])
        total += basis * values[i]
    return total
