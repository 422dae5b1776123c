"""Taylor expansions of functions of one and of several variables, with their remainders.

One variable (notes, Eqs 1.4–1.6; the integral remainder with the correction E20):

    f(x₀ + h) = Σ_{k≤m} f⁽ᵏ⁾(x₀) hᵏ/k! + R_m,
    R_m = ∫_{x₀}^{x₀+h} f⁽ᵐ⁺¹⁾(s) (x₀ + h − s)ᵐ/m! ds
        = f⁽ᵐ⁺¹⁾(ζ) hᵐ⁺¹/(m+1)!,    ζ between x₀ and x₀ + h.

Several variables (notes, Eqs 1.8–1.11): the slice g(s) = f(x₀ + s h) is a function of one variable,
g⁽ᵏ⁾(0)/k! = Σ_{|α|=k} ∂_α f(x₀) h^α/α!, and its remainders at s = 1 are those of f.

Derivatives along a line come from the recurrences of ``tracing.calculus.series``, mixed ones
by differentiating the graph; on intervals both give guaranteed bounds of the remainder.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tracing import Traced, TracingError, traced
from ...tracing.calculus.derivative import jacobian
from ...tracing.calculus.interval import INTERVALS, Interval
from ...tracing.calculus.series import Unrolled
from ...tracing.graph import Program

__all__ = ["Expansion", "multi_indices", "taylor"]

Array = NDArray[np.float64]
Index = tuple[int, ...]

LARGEST_ORDER = 250
MOST_TERMS = 5000


def multi_indices(n: int, order: int) -> Iterator[Index]:
    """Return all α with |α| = α₁ + … + α_n = order, in lexicographic order, largest α₁ first.

    Examples
    --------
    >>> list(multi_indices(2, 2))
    [(2, 0), (1, 1), (0, 2)]
    """
    if n == 1:
        yield (order,)
        return
    for first in range(order, -1, -1):
        for rest in multi_indices(n - 1, order - first):
            yield (first, *rest)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A Taylor polynomial Σ c_α (x − x₀)^α; made by :func:`taylor`.

    Attributes
    ----------
    x0 : array (n,)
        The point.
    order : int
        Highest degree m.
    coefficients : dict
        c_α = ∂_α f(x₀)/α! for each multi-index α, |α| ≤ m, as a tuple of n integers.
    exact : bool
        Whether the derivatives are exact up to rounding; otherwise f could not be traced, they
        were fitted to samples, and there are no guaranteed remainders.
    """

    function: Callable[..., Any]
    x0: Array
    order: int
    coefficients: dict[Index, float]
    exact: bool = True
    scalar: bool = False
    note: str = ""
    _slice: Traced | None = field(default=None, repr=False)

    def __call__(self, x: Any) -> float:
        """Value of the polynomial at x."""
        h = self._step(x)
        return float(sum(c * math.prod(h ** np.array(a)) for a, c in self.coefficients.items()))

    def _step(self, x: Any) -> Array:
        point = np.atleast_1d(np.asarray(x, dtype=float))
        if point.shape != self.x0.shape:
            raise ValueError(f"expected x with {self.x0.size} components, got shape {np.shape(x)}")
        if not np.isfinite(point).all():
            raise ValueError(f"x must be finite, got {x!r}")
        return np.asarray(point - self.x0)

    def derivative(self, alpha: Any) -> float:
        """∂_α f(x₀); for one variable alpha is the order."""
        index = (int(alpha),) if np.ndim(alpha) == 0 else tuple(int(a) for a in alpha)
        if index not in self.coefficients:
            raise ValueError(f"the expansion has no term {alpha!r}; raise its order")
        return self.coefficients[index] * math.prod(map(math.factorial, index))

    @property
    def gradient(self) -> Array:
        """∇f(x₀), shape (n,)."""
        self._need(1)
        return np.array([self.derivative(row) for row in np.eye(self.x0.size, dtype=int)])

    @property
    def hessian(self) -> Array:
        """∇²f(x₀), shape (n, n)."""
        self._need(2)
        unit = np.eye(self.x0.size, dtype=int)
        return np.array([[self.derivative(a + b) for b in unit] for a in unit])

    def _need(self, order: int) -> None:
        if self.order < order:
            raise ValueError(f"this expansion has order {self.order}; make one of order {order}")

    # ------------------------------------------------------------------ remainders

    def remainder(self, x: Any) -> float:
        """R_m = f(x) − polynomial, by evaluating both."""
        h = self._step(x)
        return _value(self.function, self.x0 + h, self.scalar) - self(x)

    def _traced_slice(self) -> Traced:
        if self._slice is None:
            raise ValueError(f"remainders need the derivatives of f: {self.note}")
        return self._slice

    def _line(self, h: Array) -> Array:
        return np.concatenate([self.x0, h])

    def slice_derivative(self, x: Any, s: float, order: int) -> float:
        """g⁽ᵏ⁾(s) of the slice g(s) = f(x₀ + s (x − x₀)), 0 ≤ s ≤ 1, of order k."""
        g = self._traced_slice()
        rows = g.series(order + 1)(float(s), [0.0], self._line(self._step(x)))
        return float(rows[order + 1, 0]) * math.factorial(order + 1)

    def integral_remainder(self, x: Any) -> float:
        """R_m by its integral form, ∫₀¹ g⁽ᵐ⁺¹⁾(s) (1 − s)ᵐ/m! ds, with adaptive quadrature."""
        from scipy.integrate import quad

        m = self.order
        value, _ = quad(
            lambda s: self.slice_derivative(x, s, m + 1) * (1 - s) ** m / math.factorial(m),
            0.0,
            1.0,
            epsabs=0.0,
            epsrel=1e-12,
            limit=200,
        )
        return float(value)

    def lagrange_point(self, x: Any) -> float:
        """Return a number θ, 0 < θ < 1, for which R_m = g⁽ᵐ⁺¹⁾(θ)/(m+1)!, so ζ = x₀ + θ(x − x₀)."""
        from scipy.optimize import brentq

        m = self.order
        target = self.integral_remainder(x) * math.factorial(m + 1)

        def miss(s: float) -> float:
            return self.slice_derivative(x, s, m + 1) - target

        grid = np.linspace(0.0, 1.0, 65)
        values = np.array([miss(s) for s in grid])
        if np.max(np.abs(values)) <= 1e-12 * abs(target) + 1e-300:
            return 0.5  # the derivative is constant: every point serves
        crossing = np.flatnonzero(values[:-1] * values[1:] <= 0)
        if not crossing.size:
            raise ValueError("no intermediate point found: f is not smooth enough on the segment")
        k = int(crossing[0])
        return float(brentq(miss, grid[k], grid[k + 1], xtol=1e-14))

    def remainder_bounds(self, x: Any, pieces: int = 16) -> tuple[float, float]:
        """Guaranteed bounds (lo, hi) of R_m at x, from its integral form on intervals.

        Parameters
        ----------
        x
            The point.
        pieces
            The segment from x₀ to x is cut into that many parts. One gives Lagrange's form, many
            approach the remainder itself.
        """
        g = self._traced_slice()
        p: list[Interval] = [(float(v), float(v)) for v in self._line(self._step(x))]
        return _enclosed(g, p, self.order, pieces)

    def largest_remainder(self, radius: Any, pieces: int = 16) -> float:
        """Return a guaranteed bound of |R_m| for all x with |x_i − x0_i| ≤ radius_i."""
        r = np.broadcast_to(np.asarray(radius, dtype=float), self.x0.shape)
        if not (np.isfinite(r).all() and (r >= 0).all()):
            raise ValueError(f"radius must be finite and not negative, got {radius!r}")
        p: list[Interval] = [(float(v), float(v)) for v in self.x0]
        p += [(-float(v), float(v)) for v in r]
        lo, hi = _enclosed(self._traced_slice(), p, self.order, pieces)
        return max(-lo, hi)

    def __str__(self) -> str:
        names = ["h"] if self.scalar else [f"h{i}" for i in range(self.x0.size)]
        terms = []
        for alpha, c in self.coefficients.items():
            if c == 0.0:
                continue
            powers = [f"{v}^{a}" if a > 1 else v for v, a in zip(names, alpha) if a]
            terms.append(" ".join([f"{c:+.6g}", *powers]))
        return (" ".join(terms) or "0").removeprefix("+")


def taylor(f: Callable[..., Any], x0: Any, order: int) -> Expansion:
    """Expand a function about a point.

    Parameters
    ----------
    f
        ``f(x)``, a number; x is a number if x0 is one, else an array of n numbers. Written with
        NumPy it is traced, and derivatives are exact. If it cannot be traced they are fitted to
        samples: less accurate, and without bounds.
    x0
        The point.
    order
        Highest degree m.

    Examples
    --------
    >>> cosine = taylor(np.cos, 0.0, 4)
    >>> print(cosine)
    1 -0.5 h^2 +0.0416667 h^4
    >>> lo, hi = cosine.remainder_bounds(0.5)
    >>> bool(lo <= np.cos(0.5) - cosine(0.5) <= hi)
    True

    Gradient and Hessian of a function of two variables:

    >>> saddle = taylor(lambda x: x[0]**2 * np.exp(x[1]), [1.0, 0.0], 2)
    >>> saddle.gradient
    array([2., 1.])
    >>> saddle.hessian
    array([[2., 2.],
           [2., 1.]])
    """
    if not callable(f):
        raise TypeError(f"expected a function f(x), got {f!r}")
    point = np.asarray(x0, dtype=float)
    if point.ndim > 1 or point.size == 0 or not np.isfinite(point).all():
        raise ValueError(f"x0 must be a finite number or vector, got {x0!r}")
    if isinstance(order, bool) or int(order) != order or not 0 <= order <= LARGEST_ORDER:
        raise ValueError(f"order must be a whole number from 0 to {LARGEST_ORDER}, got {order!r}")
    scalar, centre, n = point.ndim == 0, np.atleast_1d(point), int(point.size)
    if math.comb(n + int(order), n) > MOST_TERMS:
        raise ValueError(
            f"order {order} in {n} variables has {math.comb(n + int(order), n)} terms; "
            f"at most {MOST_TERMS} are computed"
        )
    value = _value(f, centre, scalar)
    if not math.isfinite(value):
        raise ValueError(f"f(x0) = {value}: there is nothing to expand at x0 = {x0!r}")
    try:
        line = _slice(f, n, scalar)
        coefficients = _along(line, centre, order) if n == 1 else _mixed(f, centre, order)
    except TracingError as error:
        note = "f cannot be traced (" + str(error).strip().splitlines()[-1] + ")"
        fitted = _fitted(f, centre, int(order), scalar)
        return Expansion(f, centre, int(order), fitted, False, scalar, note)
    bad = [a for a, c in coefficients.items() if not math.isfinite(c)]
    if bad:
        raise ValueError(
            f"the derivative {bad[0] if n > 1 else bad[0][0]} of f does not exist or is not finite "
            f"at x0 = {x0!r}; expand about another point"
        )
    return Expansion(f, centre, int(order), coefficients, True, scalar, "", line)


def _value(f: Callable[..., Any], x: Array, scalar: bool) -> float:
    with np.errstate(all="ignore"):
        value = np.asarray(f(float(x[0]) if scalar else x), dtype=float)
    if value.size != 1:
        raise ValueError(f"f must return one number, got shape {value.shape}")
    return float(value.reshape(-1)[0])


def _slice(f: Callable[..., Any], n: int, scalar: bool) -> Traced:
    """Trace y' = f(p₀ + t p₁): its Taylor coefficients are those of the slice, integrated."""

    def along(t: Any, y: Any, p: Any) -> Any:
        x = p[0] + t * p[1] if scalar else p[:n] + t * p[n:]
        return np.array([np.asarray(f(x), dtype=object).reshape(-1)[0]])

    return traced(along, n=1, params=2 * n)


def _along(line: Traced, x0: Array, order: int) -> dict[Index, float]:
    rows = line.series(order + 1)(0.0, [0.0], np.concatenate([x0, [1.0]]))
    return {(k,): float((k + 1) * rows[k + 1, 0]) for k in range(order + 1)}


def _mixed(f: Callable[..., Any], x0: Array, order: int) -> dict[Index, float]:
    """All partial derivatives by differentiating the graph, each multi-index once."""
    from ...tracing import trace

    n = x0.size
    program = trace(lambda x: np.asarray(f(x), dtype=object).reshape(-1)[0], n)
    program = Program(program.ops, program.args, program.inputs, program.outputs, (1,))
    level: list[Index] = [()]  # derivatives as non-decreasing lists of variables
    result: dict[Index, float] = {}
    for k in range(order + 1):
        values = program.evaluate([float(x) for x in x0])
        for variables, value in zip(level, values):
            alpha = tuple(variables.count(i) for i in range(n))
            result[alpha] = float(value) / math.prod(map(math.factorial, alpha))
        if k == order:
            break
        rows = jacobian(program, range(n))
        keep = [
            (r, i)
            for r, variables in enumerate(level)
            for i in range(variables[-1] if variables else 0, n)
        ]
        level = [(*level[r], i) for r, i in keep]
        outputs = tuple(rows.outputs[r * n + i] for r, i in keep)
        program = Program(rows.ops, rows.args, rows.inputs, outputs, (len(outputs),))
    return {a: result[a] for k in range(order + 1) for a in multi_indices(n, k)}


def _enclosed(line: Traced, p: list[Interval], order: int, pieces: int) -> tuple[float, float]:
    """Bounds of ∫₀¹ g⁽ᵐ⁺¹⁾(s) (1 − s)ᵐ/m! ds, from those of g⁽ᵐ⁺¹⁾/(m+1)! = c on each piece.

    The piece from a to b contributes c·((1 − a)ᵐ⁺¹ − (1 − b)ᵐ⁺¹). With one piece this is Lagrange's
    form.
    """
    if not pieces >= 1:
        raise ValueError(f"pieces must be at least 1, got {pieces!r}")
    one, power = (1.0, 1.0), (order + 1.0, order + 1.0)
    total: Interval = (0.0, 0.0)
    edges = [k / pieces for k in range(pieces + 1)]
    tails = [INTERVALS["pow"](INTERVALS["sub"](one, (s, s)), power) for s in edges[:-1]]
    tails = [one, *tails[1:], (0.0, 0.0)]
    for k, s in enumerate(itertools.pairwise(edges)):
        inputs = [s, (0.0, 0.0), *((a, b) for a, b in p)]
        run = Unrolled(line.graph, 1, inputs, INTERVALS, _constant).run(order + 2)
        c = INTERVALS["mul"](run[order + 2][0], (order + 2.0, order + 2.0))
        weight = INTERVALS["sub"](tails[k], tails[k + 1])
        total = INTERVALS["add"](total, INTERVALS["mul"](c, weight))
    if math.isnan(total[0]) or math.isnan(total[1]):
        return -math.inf, math.inf
    return total


def _constant(c: float) -> Interval:
    """Enclose a constant: the recurrences contain 1/j, which is known up to rounding only."""
    if c.is_integer():
        return c, c
    return math.nextafter(c, -math.inf), math.nextafter(c, math.inf)


def _fitted(f: Callable[..., Any], x0: Array, order: int, scalar: bool) -> dict[Index, float]:
    """Fit a polynomial two degrees higher to samples near x0 (least squares)."""
    n = x0.size
    indices = [a for k in range(order + 3) for a in multi_indices(n, k)]
    # The optimal radius balances the next term, r^(m+3), against rounding, eps/r^m.
    radius = float(np.finfo(float).eps) ** (1 / (order + 3)) * np.maximum(1.0, np.abs(x0))
    if n == 1:
        count = 2 * len(indices) + 1
        u = np.cos(np.pi * (np.arange(count) + 0.5) / count)[:, None]
    else:
        u = np.random.default_rng(11).uniform(-1, 1, (4 * len(indices) + 8, n))
    powers = np.stack([np.prod(u ** np.array(a), axis=1) for a in indices], axis=1)
    values = np.array([_value(f, x0 + radius * row, scalar) for row in u])
    if not np.isfinite(values).all():
        raise ValueError("f is not finite near x0, so it cannot be expanded there")
    fitted = np.linalg.lstsq(powers, values, rcond=None)[0]
    return {
        a: float(c / np.prod(radius ** np.array(a)))
        for a, c in zip(indices, fitted)
        if sum(a) <= order
    }
