"""How long the next step may be, at this order or another: what BDF and Adams share."""
# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ....kernels import kernel
from ....kernels.elementary import exp, log

__all__ = ["growth", "propose"]

SMALLEST_ERROR = 1e-14
MOST_SHRUNK = 0.5


@kernel
def growth(error, bias, q):
    """By how much the step may grow at order q; errors are taken for `bias` times larger."""
    return exp(-log(max(bias * error, SMALLEST_ERROR)) / (q + 1))


@kernel
def propose(w, h, q, best, factor, most, worthwhile):
    """Set length and order of the next step after one of length h and order q.

    Longer steps by less than `worthwhile` are not taken, nor longer ones than `most`, nor any
    after a rejection; then no higher order is, either.
    """
    factor = min(factor, most)
    if w.last_rejected == 1:
        factor = min(factor, 1.0)
        best = min(best, q)
    if 1.0 <= factor < worthwhile:
        factor = 1.0
    if best < q or (best > q and factor >= 1.0):
        w.order_now = best
        w.steps_at_order = 0
    length = abs(h) * max(factor, MOST_SHRUNK)
    # A step cut short by t_stop says nothing against the step that was proposed.
    w.h = max(length, w.h) if w.t == w.t_stop and factor >= 1.0 else length
