"""Fits of a power law with its next terms: the slope at h → 0, and how far it can be trusted.

Errors follow e(h) = C hᵖ (1 + D hᵐ + …), with m = 1, or 2 for methods whose error has only even
powers. For a fixed p this is linear in its coefficients,

    C hᵖ/e + C' hᵖ⁺ᵐ/e + C'' hᵖ⁺²ᵐ/e = 1 ,

so that least squares of the *relative* misfit leave one unknown, p, over which to search. Each
point weighs as much as it is known: its noise (round-off, reference) against its error. A wide
transition, say from slope 5 to slope 4, is described as well as a straight line is.

The half-width of the interval has three parts: what the scatter of the points gives (Student's t),
how far p moves when a term is admitted that the points support as well, and how far it moves when
the longer half of the steps is left out. Where they all agree the number deserves its digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["PowerFit", "fit_power", "student"]

Array = NDArray[np.float64]

CONFIDENCE = 0.95
JITTER = 1e-3  # relative misfit that any error may have: norms that change their component
WIDTHS = 0.2, 0.02, 0.002  # of the grids on which p is looked for, about the straight line's slope
SEARCH = 15  # points of a grid to each side
FEWEST_CURVED, TWICE = 4, 8  # points for a curve, and for a second one through half of them
NEGLIGIBLE = 1e-3  # misfits (in units of JITTER) below this are all the same
NARROWEST = 0.02, 0.01  # of the half-width, however well a curve fits: this, and 1 % of the slope
PARSIMONY = 1.5  # a further term must make the misfit smaller by this factor to be believed


@dataclass(frozen=True)
class PowerFit:
    """A slope with the half-width of its interval, and the misfit that is left."""

    order: float
    half: float
    misfit: float


@dataclass(frozen=True)
class _Model:
    """A fit with some terms: slope, its standard error times Student's t, and the misfit."""

    order: float
    scatter: float
    misfit: float
    sound: bool


def fit_power(h: Array, e: Array, noise: Array) -> PowerFit:
    """Fit a power law to errors in a window.

    Parameters
    ----------
    h, e
        Step sizes, longest first, and errors; three at least.
    noise
        Relative uncertainty of each error.

    Examples
    --------
    >>> h = 2.0 ** -np.arange(8.0)
    >>> fit = fit_power(h, h**4 * (3 + 20 * h), np.zeros(8))  # slopes fall from 4.75 to 4.05
    >>> abs(fit.order - 4) < 0.01, fit.half < 0.2
    (True, True)
    """
    weights = 1.0 / np.sqrt(JITTER**2 + noise**2)
    straight = _fit(h, e, weights, ())
    if len(h) == 3:
        # Not enough to fit the next term: let the two slopes tell how far they still move. With
        # s(h) = p + D h and steps in the ratio r, their mean is off by (s₁−s₂)(r+1)/(2(r−1)).
        first, last = np.diff(np.log(e)) / np.diff(np.log(h))
        ratio = float(np.sqrt(h[0] / h[-1]))
        factor = max(2.0, (ratio + 1) / (2 * (ratio - 1)))
        moved = factor * abs(float(last - first))
        return PowerFit(straight.order, straight.scatter + moved + least(straight.order), 0.0)
    chosen, moved = _choose(h, e, weights)
    if len(h) >= TWICE:
        later = slice(len(h) // 2, None)
        fine, _ = _choose(h[later], e[later], weights[later])
        moved = max(moved, abs(fine.order - chosen.order))
    return PowerFit(chosen.order, chosen.scatter + moved + least(chosen.order), chosen.misfit)


def least(order: float) -> float:
    """Return the narrowest half-width that is claimed for an order."""
    return NARROWEST[0] + NARROWEST[1] * abs(order)


def _choose(h: Array, e: Array, weights: Array) -> tuple[_Model, float]:
    """Return the simplest model that describes the points, and how far others move its slope."""
    straight = _fit(h, e, weights, ())
    one = [m for m in (_fit(h, e, weights, (1,)), _fit(h, e, weights, (2,))) if m.sound]
    if not one:
        return straight, 0.0
    curved = min(one, key=lambda m: m.misfit)
    # The other power is a rival if it describes the points about as well.
    near = [m for m in one if m.misfit <= PARSIMONY * curved.misfit]
    apart = max(abs(m.order - curved.order) for m in near)
    bent = curved.misfit * PARSIMONY < straight.misfit
    if len(h) == FEWEST_CURVED:
        # One degree of freedom: that a curve goes through four points proves little.
        return (curved if bent else straight), max(apart, abs(curved.order - straight.order))
    if not bent:
        return straight, min(abs(curved.order - straight.order), straight.scatter + apart)
    if len(h) == FEWEST_CURVED + 1:
        return curved, apart  # nor that one with two bends goes through five
    two = _fit(h, e, weights, (1, 2))
    if two.sound and two.misfit * PARSIMONY < curved.misfit:
        return two, abs(two.order - curved.order) / 2
    return curved, apart


def _fit(h: Array, e: Array, weights: Array, powers: tuple[int, ...]) -> _Model:
    """Fit e = hᵖ (c₀ + Σ cₖ h^powers) with relative weights, searching over p."""
    x = np.log(h / h[0])
    y = np.log(e / e[0])
    freedom = max(1, len(h) - 2 - len(powers))
    centred = x - np.average(x, weights=weights**2)
    bend = float(np.sum((weights * centred) ** 2))
    slope = float(np.sum(weights**2 * centred * y)) / bend
    if not powers:
        residual = weights * (y - np.average(y, weights=weights**2) - slope * centred)
        return _model(slope, float(residual @ residual), bend, freedom, True)
    terms = np.column_stack([np.ones_like(x), *(np.exp(m * x) for m in powers)])

    def misfits(orders: Array, anywhere: bool = False) -> Array:
        """Return the sum of squares for each order, infinite where the leading term does not lead.

        It must be there, be the largest at the shortest step, and the bracket must not vanish
        within the window: else p would not be what was seen but what is imagined beyond.
        """
        leading = weights * np.exp(np.outer(orders, x) - y)
        basis, triangle = np.linalg.qr(leading[:, :, None] * terms)
        inside = np.einsum("pkq,k->pq", basis, weights)
        residual = weights - np.einsum("pkq,pq->pk", basis, inside)
        sums = np.einsum("pk,pk->p", residual, residual)
        found = np.linalg.solve(triangle, inside[:, :, None])[:, :, 0]
        further = np.abs(found[:, 1:] @ terms[-1, 1:])
        sound = (further <= found[:, 0]) & np.all(found @ terms.T > 0, axis=1)
        return np.where(sound | anywhere, sums, np.inf)

    p, k, values = slope, 0, np.zeros(1)
    for width in WIDTHS:
        orders: Array = p + width * np.arange(-SEARCH, SEARCH + 1, dtype=np.float64)
        values = misfits(orders)
        k = int(np.argmin(values))
        if k in (0, 2 * SEARCH) or not np.isfinite(values[k - 1 : k + 2]).all():
            return _Model(slope, float("inf"), float("inf"), False)
        p = float(orders[k])
    left, here, right = values[k - 1 : k + 2]
    turn = float(left - 2 * here + right)
    if turn > 0:
        p += float(np.clip(WIDTHS[-1] * (left - right) / (2 * turn), -WIDTHS[-1], WIDTHS[-1]))
    probe = WIDTHS[1]
    low, chi, high = misfits(np.array([p - probe, p, p + probe]), anywhere=True)
    return _model(p, float(chi), float(low - 2 * chi + high) / (2 * probe**2), freedom, True)


def _model(p: float, chi: float, bend: float, freedom: int, sound: bool) -> _Model:
    if not bend > 0:
        return _Model(p, float("inf"), float("inf"), False)
    variance = chi / freedom
    scatter = student(freedom) * float(np.sqrt(variance / bend))
    return _Model(p, scatter, max(float(np.sqrt(variance)), NEGLIGIBLE), sound)


@cache
def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return Student's t, within whose multiple of a standard error a value lies."""
    from scipy.special import stdtrit  # not scipy.stats, which takes a second to import

    return float(stdtrit(freedom, 0.5 + confidence / 2))
