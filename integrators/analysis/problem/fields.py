"""The right-hand side under analysis: f(t, y) with its graph, where it has one.

:class:`Field` is what the analyses of a problem work on. From a function that can be traced come
its exact Jacobian and guaranteed bounds on boxes; of any other only values are known, and
:attr:`Field.untraced` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP, accepts_params
from ...tracing import Traced, TracingError, traced_rhs
from ...tracing.calculus.interval import INTERVALS, Interval
from ...tracing.graph import Program

__all__ = ["Field", "as_box", "as_times", "doubts", "enclose", "lasting_doubts"]

Array = NDArray[np.float64]

LARGEST_TRACED = 100  # states up to which Jacobians are dense programs; beyond, too much memory


class Field:
    """A right-hand side with its parameters filled in.

    Parameters
    ----------
    f
        An :class:`IVP`, a traced function, or ``f(t, y)`` or ``f(t, y, p)``. A plain function is
        traced if it can be.
    n
        Number of states.
    params
        Parameters p; those of an IVP by default.

    Attributes
    ----------
    untraced : str
        Empty, or why there is no graph: then nothing below is exact or guaranteed.

    Examples
    --------
    >>> field = Field(lambda t, y: [y[1], -np.sin(y[0])], 2)
    >>> field.jacobian(0.0, [0.0, 1.0])
    array([[ 0.,  1.],
           [-1.,  0.]])
    """

    def __init__(self, f: Any, n: int, params: Any = None) -> None:
        jac: Any = None
        if isinstance(f, IVP):
            if f.mass is not None:
                raise ValueError("expected y' = f(t, y); this problem has a mass matrix")
            if params is None:
                params = f.params
            if f.n != n:
                raise ValueError(f"the problem has {f.n} components, not {n}")
            f, jac = f.f, f.jac
        if not callable(f):
            raise TypeError(f"expected an IVP or a function f(t, y), got {f!r}")
        self.n = n
        self.p = np.atleast_1d(np.asarray(() if params is None else params, dtype=float))
        if self.p.ndim != 1 or not np.isfinite(self.p).all():
            raise ValueError(f"params must be a flat list of finite numbers, got {params!r}")
        self.function = f
        self._jac = jac
        self.traced: Traced | None = None
        self.untraced = ""
        try:
            self.traced = traced_rhs(f, n, self.p.size)
            if self.traced.n != n:
                raise ValueError(f"f was traced for {self.traced.n} states, the box has {n}")
            _ = self.traced.graph
        except TracingError as error:
            self.traced, self.untraced = None, str(error).strip().splitlines()[-1]

    def __call__(self, t: float, y: Any) -> Array:
        """f(t, y) as n floats."""
        extra = (self.p,) if self.p.size and accepts_params(self.function) else ()
        with np.errstate(all="ignore"):
            value = np.asarray(self.function(float(t), np.asarray(y, dtype=float), *extra))
        if value.size != self.n or value.ndim > 1:
            raise ValueError(f"f returned shape {value.shape} for {self.n} states")
        return value.reshape(self.n).astype(float)

    def check(self, t: float, y: Any) -> None:
        """Evaluate f once, so that a faulty f is told at once."""
        value = self(t, y)
        if np.isnan(value).any():
            point = ", ".join(f"{x:.6g}" for x in np.ravel(y))
            raise ValueError(f"f is not a number at t = {t:g}, y = ({point}); move the box")

    @property
    def graph(self) -> Program:
        """The program of f; only where it was traced."""
        assert self.traced is not None
        return self.traced.graph

    def _many(self, program: Program, T: Array, Y: Array) -> Array:
        """Evaluate a program at m points, shape (m, *shape)."""
        inputs = [T, *Y.T, *(np.full(len(T), p) for p in self.p)]
        columns = [np.broadcast_to(v, T.shape) for v in program.evaluate(inputs)]
        return np.stack(columns, axis=-1).astype(float).reshape(len(T), *program.shape)

    def values(self, T: Any, Y: Any) -> Array:
        """f at m points, shape (m, n)."""
        T, Y = np.asarray(T, dtype=float), np.asarray(Y, dtype=float)
        if self.traced is not None:
            return self._many(self.graph, T, Y)
        return np.array([self(t, y) for t, y in zip(T, Y)]).reshape(len(T), self.n)

    def jacobian(self, t: float, y: Any) -> Array:
        """∂f/∂y at one point: exact, the user's own, or by central differences."""
        return self.jacobians([t], [y])[0]

    def jacobians(self, T: Any, Y: Any) -> Array:
        """∂f/∂y at m points, shape (m, n, n)."""
        T, Y = np.asarray(T, dtype=float), np.asarray(Y, dtype=float)
        if self.traced is not None and self.n <= LARGEST_TRACED:
            return self._many(self.traced.jacobian().graph, T, Y)
        return np.array([self._one_jacobian(t, y) for t, y in zip(T, Y)])

    def _one_jacobian(self, t: float, y: Array) -> Array:
        if callable(self._jac):
            extra = (self.p,) if self.p.size and accepts_params(self._jac) else ()
            J = self._jac(t, y, *extra)
            return np.asarray(J.toarray() if hasattr(J, "toarray") else J, dtype=float)
        J = np.empty((self.n, self.n))
        for j in range(self.n):
            d = float(np.cbrt(np.finfo(float).eps)) * max(1.0, abs(y[j]))
            up, down = y.copy(), y.copy()
            up[j] += d
            down[j] -= d
            J[:, j] = (self(t, up) - self(t, down)) / (up[j] - down[j])
        return J

    def acceleration(self, T: Any, Y: Any) -> Array:
        """y″ = ∂f/∂t + (∂f/∂y) f at m points of solutions, shape (m, n)."""
        T, Y = np.asarray(T, dtype=float), np.asarray(Y, dtype=float)
        F, J = self.values(T, Y), self.jacobians(T, Y)
        if self.traced is not None:
            slope = self._many(self.traced.time_derivative().graph, T, Y)
        else:
            d = float(np.cbrt(np.finfo(float).eps)) * np.maximum(1.0, np.abs(T))
            slope = (self.values(T + d, Y) - self.values(T - d, Y)) / (2 * d)[:, None]
        return slope + np.einsum("mij,mj->mi", J, F)

    def inputs(self, lo: Array, hi: Array) -> list[Interval]:
        """Intervals of t and y (the coordinates of a box) and the parameters."""
        box = [(float(a), float(b)) for a, b in zip(lo, hi)]
        return box + [(float(p), float(p)) for p in self.p]


# ------------------------------------------------------------------------------ interval bounds


def enclose(
    program: Program, inputs: Sequence[Interval], shape: tuple[int, ...] | None = None
) -> tuple[Array, Array]:
    """Bounds of a program's outputs on a box; where none is known they are infinite."""
    result = program.evaluate(list(inputs), INTERVALS, lambda c: (c, c))
    lo = np.array([r[0] for r in result], dtype=float).reshape(shape or program.shape)
    hi = np.array([r[1] for r in result], dtype=float).reshape(shape or program.shape)
    bad = np.isnan(lo) | np.isnan(hi)
    return np.where(bad, -np.inf, lo), np.where(bad, np.inf, hi)


#: Operations that are not defined everywhere, with their domains.
_DOMAINS: dict[str, Interval] = {
    "sqrt": (0.0, math.inf),
    "log": (0.0, math.inf),
    "log1p": (-1.0, math.inf),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "acosh": (1.0, math.inf),
    "atanh": (-1.0, 1.0),
}
_SUSPECT = frozenset(_DOMAINS) | {"sign", "floor", "select", "div", "tan", "atan2", "pow"}


def doubts(program: Program, inputs: Sequence[Interval]) -> set[str]:
    """Return why a program may fail to be a continuous function on a box; empty if it is one.

    Sums, products and elementary functions of continuous functions are continuous where they are
    defined. So a set without doubts is a proof of continuity; a doubt may still be unfounded.

    Examples
    --------
    >>> step = Field(lambda t, y: np.sign(y), 1)
    >>> sorted(doubts(step.graph, [(0.0, 0.0), (-1.0, 1.0)]))
    ['sign jumps']
    >>> doubts(step.graph, [(0.0, 0.0), (0.5, 1.0)])
    set()
    """
    if not _SUSPECT & set(program.ops):
        return set()
    found: set[str] = set()
    algebra = dict(INTERVALS)

    def watch(op: str, doubt: Callable[..., str]) -> None:
        plain = INTERVALS[op]

        def watched(*args: Interval) -> Interval:
            result = plain(*args)
            if reason := doubt(result, *args):
                found.add(reason)
            return result

        algebra[op] = watched

    for op, (least, most) in _DOMAINS.items():
        watch(
            op,
            lambda r, a, op=op, least=least, most=most: (
                "" if least <= a[0] and a[1] <= most else f"{op} is not defined everywhere"
            ),
        )
    for op in ("sign", "floor"):
        watch(op, lambda r, a, op=op: "" if r[0] == r[1] else f"{op} jumps")
    watch("select", lambda r, c, a, b: "" if c[0] == c[1] else "where may jump")
    watch("div", lambda r, a, b: "division by zero" if b[0] <= 0.0 <= b[1] else "")
    watch("tan", lambda r, a: "tan has a pole" if math.isinf(r[0]) else "")
    watch("atan2", lambda r, y, x: "" if x[0] > 0 or y[0] > 0 or y[1] < 0 else "atan2 jumps")
    watch("pow", _doubt_power)
    result = program.evaluate(list(inputs), algebra, lambda c: (c, c))
    if any(math.isnan(r[0]) or math.isnan(r[1]) for r in result):
        found.add("not a number")
    if any(math.isinf(r[0]) or math.isinf(r[1]) for r in result):
        found.add("no finite bound")
    return found


def _doubt_power(r: Interval, a: Interval, b: Interval) -> str:
    whole = b[0] == b[1] and b[0] == math.floor(b[0])
    if a[0] < 0.0 and not whole:
        return "power of a negative number"
    return "division by zero" if b[0] < 0.0 and a[0] <= 0.0 <= a[1] else ""


def lasting_doubts(field: Field, lo: Array, hi: Array, cuts: int = 200) -> set[str]:
    """Return the doubts about the continuity of f on a box that remain when it is cut to pieces.

    Examples
    --------
    >>> f = Field(lambda t, y: 1 / (y**2 - y + 1), 1)  # the denominator is at least 3/4
    >>> lo, hi = np.array([0.0, 0.0]), np.array([0.0, 2.0])
    >>> bool(doubts(f.graph, f.inputs(lo, hi))), lasting_doubts(f, lo, hi)
    (True, set())
    """
    queue = [(lo, hi)]
    width = np.where(hi > lo, hi - lo, np.inf)
    for _ in range(cuts):
        if not queue:
            return set()
        a, b = queue.pop(0)
        if not doubts(field.graph, field.inputs(a, b)):
            continue
        i = int(np.argmax((b - a) / width))
        left, right = b.copy(), a.copy()
        left[i] = right[i] = (a[i] + b[i]) / 2
        queue += [(a, left), (right, b)]
    return set().union(*(doubts(field.graph, field.inputs(a, b)) for a, b in queue))


# ------------------------------------------------------------------------------ boxes


def as_box(box: Any, n: int | None = None) -> tuple[Array, Array]:
    """Check a box of states and return its corners (lo, hi).

    Parameters
    ----------
    box
        ``(lo, hi)``, two vectors; two numbers for a scalar problem.

    Examples
    --------
    >>> as_box((-1, 2))
    (array([-1.]), array([2.]))
    """
    try:
        corners = np.asarray(box, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"expected a box (lo, hi) of two vectors, got {box!r}") from None
    if corners.ndim == 1:
        corners = corners.reshape(-1, 1)
    if corners.ndim != 2 or len(corners) != 2 or corners.size == 0:
        raise ValueError(f"expected a box (lo, hi) of two vectors, got shape {np.shape(box)}")
    lo, hi = corners
    if n is not None and lo.size != n:
        raise ValueError(f"the box has {lo.size} components, the problem has {n}")
    if not np.isfinite(corners).all():
        raise ValueError(f"the box must be bounded and without NaN, got lo = {lo}, hi = {hi}")
    if (lo > hi).any():
        i = int(np.flatnonzero(lo > hi)[0])
        raise ValueError(
            f"the box is reversed in component {i}: {lo[i]:g} > {hi[i]:g}; give (lo, hi)"
        )
    return lo.copy(), hi.copy()


def as_times(t: Any) -> tuple[float, float]:
    """Check a time or an interval of times and return (earliest, latest)."""
    times = np.asarray(t, dtype=float).reshape(-1)
    if times.size not in (1, 2) or not np.isfinite(times).all():
        raise ValueError(f"t must be a time or a pair (earliest, latest), got {t!r}")
    return float(times.min()), float(times.max())
