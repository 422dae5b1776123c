"""Lipschitz constants and logarithmic norms of a right-hand side on a box.

f is Lipschitz in y if ‖f(t, x) − f(t, y)‖ ≤ L ‖x − y‖ (notes, Eq 1.3). On a box, which is convex,
the smallest such L is the largest ‖∂f/∂y‖, and the smallest one-sided constant is the largest
logarithmic norm:

    L = sup ‖J(t, y)‖,        ν = sup μ(J(t, y)),        μ(J) ≤ ‖J‖ .

Two solutions move apart at most like e^{ν t}, and ν is negative where solutions approach each
other, which L cannot tell. Upper bounds are guaranteed if f can be traced: interval arithmetic
bounds the exact Jacobian on boxes, rounding included, and :mod:`.supremum` sharpens the bounds.
Lower bounds come from a search. Where the quotient ‖f(x) − f(y)‖/‖x − y‖ grows without end as x
approaches y, as for √|y| at 0 (notes, Examples 1.2 and 1.3), f is reported as not Lipschitz.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from .fields import Field, as_box, as_times, enclose, lasting_doubts
from .norms import Norm, as_norm
from .supremum import Supremum, search, supremum

__all__ = ["Constant", "Quotients", "difference_quotients", "lipschitz", "logarithmic_norm"]

Array = NDArray[np.float64]

GROWING = -0.03  # exponent of the quotient beyond which it counts as growing; y log y has −0.05
DISTANCES = tuple(10.0**-k for k in range(1, 10))  # below, rounding hides the differences of f


@dataclass(frozen=True)
class Quotients:
    """Difference quotients ‖f(t, y + d) − f(t, y)‖/‖d‖ for shrinking ‖d‖.

    Attributes
    ----------
    t, y
        The point.
    distances, values : array
        ‖d‖, and the largest quotient found at that distance.
    exponent : float
        s in "quotient ∼ ‖d‖ˢ", at the small end: 0 for a Lipschitz function, −1 at a jump.
    """

    t: float
    y: Array
    distances: Array
    values: Array
    exponent: float

    @property
    def growing(self) -> bool:
        """Whether the quotient grows without end."""
        return self.exponent < GROWING

    def __str__(self) -> str:
        if math.isinf(self.exponent):
            return f"f is not finite at y = {_point(self.y)}"
        middle = max(0, int(np.argmin(np.abs(self.distances - 1e-2))))
        shown = sorted({middle, int(np.argmin(np.abs(self.distances - 1e-6)))})
        some = ", ".join(f"{self.values[k]:.3g} at distance {self.distances[k]:.0e}" for k in shown)
        how = f"grows like d^({self.exponent:.2g})" if self.growing else "stays bounded"
        return f"the difference quotient at y = {_point(self.y)} {how}: {some}"


@dataclass(frozen=True)
class Constant:
    """What :func:`lipschitz` and :func:`logarithmic_norm` found: lower ≤ constant ≤ upper.

    Attributes
    ----------
    name : str
        "Lipschitz constant" or "logarithmic norm".
    lower, upper : float
        The bounds. ``upper`` is infinite where none was found.
    guaranteed : bool
        Whether ``upper`` is proved (by intervals, rounding included).
    t, y
        Where the lower bound is attained.
    quotients : Quotients or None
        How the difference quotient behaves at the worst point, where ``upper`` is infinite.
    notes : tuple of str
        What limits the result.
    boxes : int
        How many boxes were examined.
    """

    name: str
    norm: Norm
    lower: float
    upper: float
    guaranteed: bool
    t: float
    y: Array
    quotients: Quotients | None = None
    notes: tuple[str, ...] = ()
    boxes: int = 0

    @property
    def is_lipschitz(self) -> bool | None:
        """True if proved, False if the quotient grows without end, None if undecided."""
        if self.quotients is not None and self.quotients.growing:
            return False
        return True if self.guaranteed and math.isfinite(self.upper) else None

    @property
    def value(self) -> float:
        """The upper bound if it is guaranteed and finite, else the lower one."""
        return self.upper if self.guaranteed and math.isfinite(self.upper) else self.lower

    def __str__(self) -> str:
        where = f"near t = {self.t:.4g}, y = {_point(self.y)}"
        if self.is_lipschitz is False:
            lines = [f"not Lipschitz: {self.quotients}"]
        elif math.isfinite(self.upper):
            word = "guaranteed" if self.guaranteed else "not guaranteed"
            lines = [
                f"{self.name} in the {self.norm}: {self.lower:.6g} ≤ value ≤ {self.upper:.6g} "
                f"({word}); largest found {where}"
            ]
        else:
            lines = [
                f"{self.name} in the {self.norm}: at least {self.lower:.6g}, {where}; "
                "no upper bound"
            ]
        return "\n  ".join([*lines, *self.notes])


def lipschitz(
    f: Any,
    box: Any = None,
    norm: Any = 2,
    *,
    t: Any = None,
    params: Any = None,
    weights: Any = None,
    gap: float = 1e-3,
    budget: int = 2000,
) -> Constant:
    """Enclose the Lipschitz constant of f in y on a box.

    Parameters
    ----------
    f
        An :class:`~integrators.IVP`, a traced function, or a plain ``f(t, y[, p])``, which is
        traced if it can be. If it cannot, only a lower bound is found, from difference quotients.
    box
        (lo, hi): two vectors, or two numbers for a scalar problem.
    norm, weights
        1, 2 or inf, of Wy if weights W (n numbers or an n×n matrix) are given.
    t
        A time or a pair of times; ``t_span`` for an IVP, else 0.
    params
        Parameters p of f.
    gap
        Relative distance of the two bounds at which to stop.
    budget
        Most boxes to examine.

    Returns
    -------
    Constant
        ``lower``, ``upper``, ``guaranteed``, where the lower bound is attained, and words.

    Examples
    --------
    The pendulum, where ‖J‖₂ is largest at the bottom:

    >>> L = lipschitz(lambda t, y: [y[1], -9.81 * np.sin(y[0])], ([-1, -2], [1, 2]))
    >>> print(f"{L.lower:.3f} ≤ L ≤ {L.upper:.3f}, guaranteed: {L.guaranteed}")
    9.810 ≤ L ≤ 9.810, guaranteed: True

    A function that is not Lipschitz:

    >>> print(lipschitz(lambda t, y: np.sqrt(np.abs(y)), (-1, 1)))
    not Lipschitz: the difference quotient at y = 0 grows like d^(-0.5): 10 at distance 1e-02, \
1e+03 at distance 1e-06
    """
    return _constant("Lipschitz constant", f, box, norm, t, params, weights, gap, budget)


def logarithmic_norm(
    f: Any,
    box: Any = None,
    norm: Any = 2,
    *,
    t: Any = None,
    params: Any = None,
    weights: Any = None,
    gap: float = 1e-3,
    budget: int = 2000,
) -> Constant:
    """Enclose the largest logarithmic norm of ∂f/∂y on a box: the one-sided Lipschitz constant.

    Solutions that stay in the box satisfy ‖x(t) − y(t)‖ ≤ e^{ν(t−s)} ‖x(s) − y(s)‖ for t ≥ s.
    Parameters and result are those of :func:`lipschitz`.

    Examples
    --------
    For y' = −50 (y − cos t), L = 50 says that solutions part, ν = −50 that they meet:

    >>> nu = logarithmic_norm(lambda t, y: -50 * (y - np.cos(t)), (-2, 2), t=(0, 1.5))
    >>> round(nu.lower, 9), round(nu.upper, 9)
    (-50.0, -50.0)
    """
    return _constant("logarithmic norm", f, box, norm, t, params, weights, gap, budget)


def _constant(
    name: str,
    f: Any,
    box: Any,
    norm: Any,
    t: Any,
    params: Any,
    weights: Any,
    gap: float,
    budget: int,
) -> Constant:
    if box is None:
        raise ValueError("on which states? give box=(lo, hi), two vectors")
    lo, hi = as_box(box, f.n if isinstance(f, IVP) else None)
    if t is None:
        t = f.t_span if isinstance(f, IVP) else 0.0
    times = as_times(t)
    if not 0 < gap < math.inf:
        raise ValueError(f"gap must be a positive number, got {gap!r}")
    if not budget >= 1:
        raise ValueError(f"budget must be at least 1 box, got {budget!r}")
    size = as_norm(norm, lo.size, weights)
    field = Field(f, lo.size, params)
    field.check(sum(times) / 2, (lo + hi) / 2)
    lo, hi = np.concatenate([[times[0]], lo]), np.concatenate([[times[1]], hi])
    measure = size.matrix if name.startswith("Lipschitz") else size.logarithmic
    if field.traced is None:
        return _by_sampling(name, field, size, measure, lo, hi)
    return _by_intervals(name, field, size, measure, lo, hi, gap, budget)


def _by_intervals(
    name: str,
    field: Field,
    norm: Norm,
    measure: Callable[[Any], Any],
    lo: Array,
    hi: Array,
    gap: float,
    budget: int,
) -> Constant:
    assert field.traced is not None
    J = field.traced.jacobian().graph
    bound = norm.matrix_bound if name.startswith("Lipschitz") else norm.logarithmic_bound
    used = {a[0] for op, a in zip(J.ops, J.args) if op == "input"}
    result = supremum(
        lambda X: measure(field.jacobians(X[:, 0], X[:, 1:])),
        lambda a, b: bound(*enclose(J, field.inputs(a, b))),
        lo,
        hi,
        gap=gap,
        budget=budget,
        active=np.array([i in used for i in range(lo.size)]),
    )
    found = lasting_doubts(field, lo, hi)
    if math.isinf(result.upper):
        return _unbounded(name, field, norm, result, lo, hi, found)
    notes = []
    jumps = sorted(d for d in found if d.endswith("jump") or d.endswith("jumps"))
    undefined = sorted(d for d in found if d not in jumps)
    quotients = None
    if jumps:
        notes.append(f"the upper bound holds only between switches of f ({', '.join(jumps)})")
        quotients = _zoom(field, norm, result.at, lo, hi)
        quotients = quotients if quotients.growing else None
    if undefined:
        notes.append(f"f is perhaps not defined on the whole box ({', '.join(undefined)})")
    if result.upper > result.lower + 2 * gap * abs(result.lower):
        notes.append(f"budget of {budget} boxes spent: raise it for sharper bounds")
    t, y, upper = float(result.at[0]), result.at[1:], result.upper
    if quotients is not None:
        t, y, upper = quotients.t, quotients.y, math.inf
    return Constant(
        name,
        norm,
        result.lower,
        upper,
        not found,
        t,
        y,
        quotients,
        tuple(notes),
        result.boxes,
    )


def _unbounded(
    name: str, field: Field, norm: Norm, result: Supremum, lo: Array, hi: Array, found: set[str]
) -> Constant:
    """No finite bound: find out whether f is to blame or the interval arithmetic."""
    a, b = result.worst
    candidates = [_near_zero(x, hi - lo) for x in (a, (a + b) / 2, b)]
    tables = [
        difference_quotients(field, x[1:], t=float(x[0]), norm=norm, box=(lo[1:], hi[1:]))
        for x in candidates
    ]
    worst = min(tables, key=lambda q: q.exponent if q.growing else 0.0)
    notes = []
    if not worst.growing:
        where = _point(worst.y)
        notes.append(
            f"intervals give no bound near t = {worst.t:.4g}, y = {where}, though the difference "
            "quotient there stays bounded: exclude that point from the box or rewrite f"
        )
    if found:
        notes.append(f"on this box: {', '.join(sorted(found))}")
    lower, t, y = result.lower, float(result.at[0]), result.at[1:]
    if worst.growing:
        t, y = worst.t, worst.y
        if name.startswith("Lipschitz"):
            lower = max(lower, float(worst.values[np.isfinite(worst.values)].max(initial=lower)))
    return Constant(name, norm, lower, math.inf, False, t, y, worst, tuple(notes), result.boxes)


def _by_sampling(
    name: str, field: Field, norm: Norm, measure: Callable[[Any], Any], lo: Array, hi: Array
) -> Constant:
    """Lower bound only: Jacobians by differences, then quotients at the worst point."""
    lower, at = search(lambda X: measure(field.jacobians(X[:, 0], X[:, 1:])), lo, hi)
    quotients = _zoom(field, norm, at, lo, hi)
    notes = (
        f"sampling only, so no upper bound: f cannot be traced ({field.untraced})",
        "write f with NumPy and integrators.where for a guaranteed bound",
    )
    grows = quotients if quotients.growing else None
    if grows is not None:
        at, lower = np.concatenate([[grows.t], grows.y]), float(grows.values.max())
    return Constant(name, norm, lower, math.inf, False, float(at[0]), at[1:], grows, notes, boxes=0)


# ------------------------------------------------------------------------------ quotients


def difference_quotients(
    f: Any,
    y: Any,
    *,
    t: float = 0.0,
    norm: Any = 2,
    params: Any = None,
    distances: Any = None,
    box: Any = None,
) -> Quotients:
    """Return the largest difference quotients of f at a point, for shrinking distances.

    Parameters
    ----------
    f, norm, params
        As in :func:`lipschitz`.
    y, t
        The point.
    distances
        Decreasing distances; by default 0.1, 0.01, … 1e-9.
    box
        Stay in (lo, hi).

    Examples
    --------
    >>> q = difference_quotients(lambda t, y: np.sqrt(np.abs(y)), [0.0], distances=[1e-2, 1e-6])
    >>> q.values
    array([  10., 1000.])
    """
    point = np.atleast_1d(np.asarray(y, dtype=float))
    field = f if isinstance(f, Field) else Field(f, point.size, params)
    size = as_norm(norm, point.size)
    if not np.isfinite(point).all() or point.ndim != 1:
        raise ValueError(f"y must be a finite vector, got {y!r}")
    d = np.asarray(_distances(box) if distances is None else distances, dtype=float)
    if d.ndim != 1 or d.size < 2 or not (d > 0).all() or (np.diff(d) >= 0).any():
        raise ValueError(f"distances must be at least two decreasing numbers, got {distances!r}")
    directions = _directions(point.size)
    directions = directions / size.vector(directions)[:, None]
    base = field.values([t], [point])[0]
    values = np.empty(d.size)
    for k, distance in enumerate(d):
        others = point + distance * directions
        inside = np.ones(len(others), dtype=bool)
        if box is not None:
            inside = np.all((others >= box[0]) & (others <= box[1]), axis=1)
        others = others[inside] if inside.any() else others
        changes = size.vector(field.values(np.full(len(others), t), others) - base)
        actual = size.vector(others - point)
        quotient = np.where(np.isnan(changes), -np.inf, changes) / actual
        values[k] = float(np.max(quotient))
    return Quotients(float(t), point, d, values, _exponent(d, values))


def _distances(box: Any) -> Array:
    widest = 1.0 if box is None else float(np.max(np.subtract(box[1], box[0]))) or 1.0
    d = np.array(DISTANCES)
    return d if widest >= 0.2 else d * widest


def _directions(n: int) -> Array:
    axes = np.concatenate([np.eye(n), -np.eye(n)])
    if n == 1:
        return axes
    random = np.random.default_rng(31).standard_normal((8, n))  # any fixed seed
    return np.concatenate([axes, random / np.linalg.norm(random, axis=1)[:, None]])


def _exponent(d: Array, values: Array) -> float:
    """Slope of log(quotient) against log(distance) at the small half."""
    small = slice(d.size // 2 - 1, None) if d.size > 3 else slice(None)
    x, v = np.log(d[small]), values[small]
    if not (np.isfinite(v).all() and (v > 0).all()):
        return 0.0 if np.isfinite(v).all() else -math.inf
    return float(np.polyfit(x, np.log(v), 1)[0])


def _zoom(field: Field, norm: Norm, start: Array, lo: Array, hi: Array) -> Quotients:
    """Follow the largest difference quotient from large to small distances.

    A place where f jumps or has a vertical slope is a point that no sample hits. At each distance
    the neighbours of the best pair so far, and at the first distance the whole box, are tried.
    """
    distances = _distances((lo[1:], hi[1:]))
    directions = _directions(lo.size - 1)
    directions = directions / norm.vector(directions)[:, None]
    at = start
    values = np.empty(distances.size)
    for k, d in enumerate(distances):

        def largest(bases: Array, d: float = float(d)) -> Array:
            F = field.values(bases[:, 0], bases[:, 1:])
            best = np.full(len(bases), -np.inf)
            for direction in directions:
                others = np.clip(bases[:, 1:] + d * direction, lo[1:], hi[1:])
                gaps = norm.vector(others - bases[:, 1:])
                with np.errstate(all="ignore"):
                    q = norm.vector(field.values(bases[:, 0], others) - F) / gaps
                best = np.fmax(best, np.where(gaps > 0.99 * d, q, -np.inf))
            return best

        radius = (hi - lo) if k == 0 else np.minimum(hi - lo, 20 * d)
        found, place = search(
            largest, np.maximum(lo, at - radius), np.minimum(hi, at + radius), samples=64
        )
        values[k], at = max(found, 0.0), place
    at = _near_zero(at, hi - lo, 20 * float(distances[-1]))
    return Quotients(float(at[0]), at[1:], distances, values, _exponent(distances, values))


def _near_zero(x: Array, width: Array, small: float = 1e-9) -> Array:
    """Round to zero what is zero up to the resolution of the search."""
    return np.where(np.abs(x) <= small * np.maximum(width, 1e-300), 0.0, x)


def _point(y: Array) -> str:
    shown = [f"{x:.4g}" for x in y[:6]] + (["…"] if y.size > 6 else [])
    return shown[0] if y.size == 1 else f"({', '.join(shown)})"
