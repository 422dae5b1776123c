"""Picard's iteration: y_{k+1}(t) = y₀ + ∫_{t₀}^{t} f(s, y_k(s)) ds, from y_0(t) = y₀.

Iterates are kept as Chebyshev polynomials on the interval, of a degree that is raised until the
coefficients of f(s, y_k(s)) have decayed to rounding; integration is then exact. With
M = max ‖f(t, y₀)‖ and the Lipschitz constant L (notes, Eq 1.3),

    ‖y_{k+1}(t) − y_k(t)‖ ≤ M L^k |t − t₀|^{k+1}/(k+1)!
    ‖y(t) − y_k(t)‖ ≤ (M/L) Σ_{j>k} (L |t − t₀|)^j/j!                  (a priori)
    ‖y(t) − y_k(t)‖ ≤ (e^{L|t − t₀|} − 1) max_s ‖y_k(s) − y_{k−1}(s)‖    (a posteriori)

so the iteration converges on the whole interval, faster than any geometric series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import ArrayLike, NDArray

from ...problem import IVP, state_array, time_span
from .fields import Field
from .lipschitz import lipschitz
from .norms import as_norm

__all__ = ["Iterate", "Picard", "picard"]

Array = NDArray[np.float64]

LARGEST_DEGREE = 1024
DECAYED = 1e-14  # size of the last coefficients against the largest


@dataclass(frozen=True, eq=False)
class Iterate:
    """One iterate, a function of time with a polynomial for each component."""

    polynomials: tuple[Chebyshev, ...]
    t0: float

    def __call__(self, t: Any) -> Any:
        """Return y_k(t), shape (n,) for one time and (n, m) for m times."""
        return np.array([p(np.asarray(t, dtype=float)) for p in self.polynomials])

    @property
    def degree(self) -> int:
        """Largest degree of a component, up to rounding."""
        return max(_trimmed(p).degree() for p in self.polynomials)

    def powers(self, component: int = 0) -> Array:
        """Coefficients in powers of t − t0, for low degrees: 1, t, t²/2, … for y' = y.

        Examples
        --------
        >>> result = picard(lambda t, y: y, (0.0, 1.0), [1.0], 3)
        >>> np.round(result.iterates[3].powers() * [1, 1, 2, 6], 12)
        array([1., 1., 1., 1.])
        """
        p = _trimmed(self.polynomials[component])
        shifted = Chebyshev(p.coef, domain=[p.domain[0] - self.t0, p.domain[1] - self.t0])
        return np.asarray(shifted.convert(kind=Polynomial, domain=[-1, 1]).coef)


@dataclass(frozen=True, eq=False)
class Picard:
    """What :func:`picard` returns.

    Attributes
    ----------
    iterates : list of Iterate
        y_0, y_1, …; each is a function of time.
    M, L : float
        max ‖f(t, y0)‖, and the Lipschitz constant on a box that holds the iterates; max-norm.
    guaranteed : bool
        Whether L is proved on that box. The bounds hold if the solution stays in it.
    """

    t_span: tuple[float, float]
    iterates: list[Iterate]
    M: float
    L: float
    guaranteed: bool

    def changes(self) -> Array:
        """max_t ‖y_k(t) − y_{k−1}(t)‖ in the max-norm, for k = 1, 2, …"""
        t = np.linspace(*self.t_span, 401)
        values = [y(t) for y in self.iterates]
        return np.array([np.max(np.abs(b - a)) for a, b in pairwise(values)])

    def bound(self, k: int, t: Any = None) -> Any:
        """Return the a-priori bound of ‖y(t) − y_k(t)‖; at the end of the interval by default.

        Examples
        --------
        >>> result = picard(lambda t, y: y, (0.0, 1.0), [1.0], 8)
        >>> true = np.e - float(result.iterates[8](1.0)[0])
        >>> bool(0 < true <= result.bound(8) <= 4 * true)
        True
        """
        k = _checked(k, len(self.iterates))
        z = self.L * np.abs(np.asarray(self.t_span[1] if t is None else t) - self.t_span[0])
        if self.L == 0:
            tail = np.abs(np.asarray(self.t_span[1] if t is None else t) - self.t_span[0])
            return (self.M * tail if k == 0 else 0.0 * tail)[()]
        return (self.M / self.L * _tail(z, k))[()]

    def a_posteriori(self, k: int) -> float:
        """(e^{L(b−a)} − 1)·max‖y_k − y_{k−1}‖, which bounds the error of y_k, k ≥ 1."""
        k = _checked(k, len(self.iterates))
        if k == 0:
            raise ValueError("the first iterate has no predecessor; k must be at least 1")
        length = abs(self.t_span[1] - self.t_span[0])
        return float(np.expm1(self.L * length) * self.changes()[k - 1])

    def __str__(self) -> str:
        lines = ["  k   degree   change from k−1   error at most"]
        changes = ["", *(f"{c:.3e}" for c in self.changes())]
        for k, y in enumerate(self.iterates):
            lines.append(f"{k:3d}{y.degree:9d}{changes[k]:>18}{self.bound(k):16.3e}")
        return "\n".join(lines)


def picard(
    f: Any,
    t_span: Sequence[float] | None = None,
    y0: ArrayLike | None = None,
    iterations: int = 10,
    *,
    params: Any = None,
) -> Picard:
    """Compute Picard's iterates of an initial value problem.

    Parameters
    ----------
    f
        An IVP, or ``f(t, y[, p])``; then ``t_span`` and ``y0`` follow.
    t_span, y0
        Interval and initial state.
    iterations
        How many iterates after y_0 = y0.
    params
        Parameters p of f.

    Returns
    -------
    Picard
        The iterates, callable, with their error bounds.

    Raises
    ------
    ValueError
        If an iterate leaves the region where f is finite, or cannot be resolved by a polynomial:
        take a shorter interval.

    Examples
    --------
    The notes' y' = ty + t, whose first iterate is 1 + t²:

    >>> from integrators import problems
    >>> result = picard(problems.get("linear_growth"), iterations=3)
    >>> np.round(result.iterates[1].powers(), 12) + 0.0
    array([1., 0., 1.])
    """
    if isinstance(f, IVP):
        t_span = f.t_span if t_span is None else t_span
        y0 = f.y0 if y0 is None else y0
    if t_span is None or y0 is None:
        raise TypeError("picard(f, t_span, y0) needs the interval and the initial state")
    span, state = time_span(t_span), state_array(y0)
    if np.iscomplexobj(state):
        raise ValueError("the state must be real; split it into real and imaginary parts")
    if span[0] == span[1]:
        raise ValueError(f"t_span must have a length, got {t_span!r}")
    if isinstance(iterations, bool) or int(iterations) != iterations or iterations < 0:
        raise ValueError(f"iterations must be a whole number ≥ 0, got {iterations!r}")
    field = Field(f, state.size, params)
    field.check(span[0], state)
    domain = sorted(span)
    constant = tuple(Chebyshev([c], domain=domain) for c in state)
    iterates = [Iterate(constant, span[0])]
    for k in range(int(iterations)):
        iterates.append(_next(field, iterates[-1], state, span[0], domain, k + 1))
    t = np.linspace(*span, 201)
    tube = np.concatenate([y(t) for y in iterates], axis=1)
    first = field.values(t, np.tile(state, (t.size, 1)))
    M = float(np.max(as_norm(np.inf, state.size).vector(first)))
    # The solution and later iterates are as far from the last ones as these from each other.
    margin = np.max(np.abs(iterates[-1](t) - iterates[max(0, len(iterates) - 2)](t)), axis=1)
    box = (tube.min(axis=1) - margin, tube.max(axis=1) + margin)
    L = lipschitz(field.function, box, np.inf, t=span, params=field.p)
    return Picard(span, iterates, M, L.value, L.guaranteed)


def _next(field: Field, y: Iterate, y0: Array, t0: float, domain: list[float], k: int) -> Iterate:
    """Integrate f along an iterate, with as many Chebyshev nodes as it needs."""
    degree = 16
    while True:
        nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        t = (domain[0] + domain[1]) / 2 + (domain[1] - domain[0]) / 2 * nodes
        F = field.values(t, y(t).T)
        if not np.isfinite(F).all():
            bad = t[~np.isfinite(F).all(axis=1)][0]
            raise ValueError(
                f"f is not finite along iterate {k - 1} at t = {bad:.4g}; take a shorter interval"
            )
        C = np.polynomial.chebyshev.chebfit(nodes, F, degree) if degree <= 16 else _dct(F)
        size = np.max(np.abs(C), axis=0)
        if np.all(np.max(np.abs(C[-3:]), axis=0) <= DECAYED * np.maximum(size, 1e-300) * degree):
            break
        degree *= 2
        if degree > LARGEST_DEGREE:
            raise ValueError(
                f"iterate {k} is not resolved by a polynomial of degree {LARGEST_DEGREE}: f is "
                "not smooth along it, or the interval is too long"
            )
    rates = [Chebyshev(c, domain=domain) for c in C.T]
    return Iterate(tuple(a + r.integ(lbnd=t0) for a, r in zip(y0, rates)), t0)


def _dct(F: Array) -> Array:
    """Chebyshev coefficients from values at the Chebyshev nodes."""
    from scipy.fft import dct

    C = dct(F, type=2, axis=0) / len(F)
    C[0] /= 2
    return np.asarray(C)


def _tail(z: Any, k: int) -> Any:
    """Σ_{j>k} z^j/j!, without cancellation."""
    z = np.asarray(z, dtype=float)
    term = np.ones_like(z)
    for j in range(1, k + 1):
        term = term * z / j
    total = np.zeros_like(z)
    j = k
    while True:
        j += 1
        term = term * z / j
        total = total + term
        if j > np.max(z) and np.all(term <= 1e-17 * total + 1e-320):
            return total


def _trimmed(p: Chebyshev) -> Chebyshev:
    size = float(np.max(np.abs(p.coef)))
    return p.trim(1e-15 * size * max(1, len(p.coef))) if size else p.trim()


def _checked(k: int, count: int) -> int:
    if not 0 <= k < count:
        raise ValueError(f"there are iterates 0 … {count - 1}, not {k}")
    return int(k)
