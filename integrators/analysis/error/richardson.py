"""Richardson extrapolation: better values, an error estimate and the order, from fixed steps.

If the computed value depends on the step like y(h) = y + c₁h^{p₁} + c₂h^{p₂} + …, then from steps
h, h/r, h/r², …

    T_{j,0} = y(h/rʲ),    T_{j,k} = T_{j,k−1} + (T_{j,k−1} − T_{j−1,k−1})/(r^{p_k} − 1)

removes one term with each column. The exponents are p, p + 1, p + 2, … for a method of order p, and
p, p + 2, p + 4, … for a symmetric one (its error expansion is even). The order is observed from
three steps: r^{p} = ‖T_{0,0} − T_{1,0}‖/‖T_{1,0} − T_{2,0}‖, and likewise in each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...methods.names import method_name
from ...problem import IVP, time_span
from ...solve import solve
from ...tableau import Tableau
from .one_step import method_order, resolve

__all__ = ["Richardson", "extrapolation_table", "richardson"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Richardson:
    """A table of extrapolated values; made by :func:`richardson`.

    Attributes
    ----------
    steps : array (m,)
        Step sizes, from the largest.
    table : list of list of array
        T[j][k]: after k eliminations, from the steps 0 … j.
    exponents : tuple of float
        p₁, p₂, … that were eliminated.
    ratio : float
        r, by which the step was divided.
    method : str
        Whose values were extrapolated.
    """

    steps: Array
    table: list[list[Array]]
    exponents: tuple[float, ...]
    ratio: float
    method: str = ""

    @property
    def value(self) -> Array:
        """The extrapolated value, the last entry of the table."""
        return self.table[-1][-1]

    @property
    def error_estimate(self) -> float:
        """‖last entry − its neighbour‖∞: an estimate for the neighbour, cautious for ``value``."""
        row = self.table[-1]
        return float(np.max(np.abs(row[-1] - row[-2])))

    @property
    def unextrapolated_error(self) -> float:
        """‖value − y(h_min)‖∞: the estimated error of the finest run."""
        return float(np.max(np.abs(self.value - self.table[-1][0])))

    def observed_orders(self, column: int = 0) -> Array:
        """Orders observed from successive triples in a column; NaN where rounding hides them.

        Examples
        --------
        >>> from integrators import problems
        >>> r = richardson(problems.get("minus_2ty2"), "RK4", step=0.1, levels=4)
        >>> np.round(r.observed_orders(0), 1), np.round(r.observed_orders(1), 1)
        (array([4., 4.]), array([4.9]))
        """
        if not 0 <= column < len(self.table):
            raise ValueError(f"the table has columns 0 … {len(self.table) - 1}, not {column}")
        entries = [row[column] for row in self.table[column:]]
        changes = np.array([np.max(np.abs(b - a)) for a, b in pairwise(entries)])
        noise = 1e-14 * max(1.0, float(np.max(np.abs(self.value))))
        with np.errstate(divide="ignore", invalid="ignore"):
            orders = np.log(changes[:-1] / changes[1:]) / np.log(self.ratio)
        return np.where(changes[1:] > noise, orders, np.nan)

    @property
    def observed_order(self) -> float:
        """Order observed from the finest runs above rounding; NaN if there are too few."""
        orders = self.observed_orders(0) if len(self.table) > 2 else np.array([])
        visible = orders[np.isfinite(orders)]
        return float(visible[-1]) if visible.size else float("nan")

    def __str__(self) -> str:
        lines = [f"{'h':>10}" + "".join(f"   changed by, k={k:<3}" for k in range(len(self.table)))]
        for j, row in enumerate(self.table):
            cells = []
            for k, entry in enumerate(row):
                before = self.table[j - 1][k] if j > k else None
                cells.append("" if before is None else f"{np.max(np.abs(entry - before)):.3e}")
            lines.append(f"{self.steps[j]:10.4g}" + "".join(f"{c:>19}" for c in cells))
        shown = ", ".join(f"{v:.12g}" for v in np.atleast_1d(self.value)[:4])
        lines.append(
            f"value ({shown}) ± {self.error_estimate:.1e}, observed order {self.observed_order:.2f}"
        )
        return "\n".join(lines)


def extrapolation_table(
    values: Sequence[ArrayLike], exponents: Sequence[float], ratio: float = 2.0
) -> list[list[Array]]:
    """Extrapolate values that belong to steps h, h/r, h/r², ….

    Parameters
    ----------
    values
        At least two values, numbers or arrays of one shape, from the largest step on.
    exponents
        Exponents of the error expansion, one fewer than values are used.
    ratio
        r.

    Examples
    --------
    Archimedes' perimeters of the inscribed hexagon, 12-gon and 24-gon, an expansion in h²:

    >>> sides = [n * np.sin(np.pi / n) for n in (6, 12, 24)]
    >>> table = extrapolation_table(sides, (2, 4))
    >>> print(f"{float(sides[-1]):.6f} {float(table[-1][-1]):.6f}")
    3.132629 3.141592
    """
    arrays = [np.asarray(v) for v in values]
    if len(arrays) < 2 or any(a.shape != arrays[0].shape for a in arrays):
        raise ValueError("values must be at least two numbers or arrays of one shape")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError("values contain NaN or infinity; take smaller steps")
    if not ratio > 1:
        raise ValueError(f"ratio must be larger than 1, got {ratio!r}")
    if len(exponents) < len(arrays) - 1 or not all(p > 0 for p in exponents):
        raise ValueError(
            f"{len(arrays)} values need {len(arrays) - 1} positive exponents, got {exponents!r}"
        )
    table: list[list[Array]] = []
    for j, start in enumerate(arrays):
        row = [start]
        for k in range(1, j + 1):
            factor = ratio ** exponents[k - 1] - 1
            row.append(row[-1] + (row[-1] - table[j - 1][k - 1]) / factor)
        table.append(row)
    return table


def richardson(
    problem: Any,
    method: Any = None,
    step: float = 0.0,
    *,
    t_span: Sequence[float] | None = None,
    y0: ArrayLike | None = None,
    levels: int = 3,
    order: float | None = None,
    exponents: Sequence[float] | None = None,
) -> Richardson:
    """Solve with steps h, h/2, h/4, … and extrapolate the values at the end of the interval.

    Parameters
    ----------
    problem
        An IVP, or ``f(t, y)`` with ``t_span`` and ``y0``; or any function of the step alone,
        ``value(h)``, with ``method=None``.
    method
        Anything that ``solve`` accepts with a fixed step.
    step
        The largest step. The interval should be a multiple of it.
    levels
        How many steps: 2 or more; 3 to observe an order.
    order
        Order of the method, if it does not say so itself.
    exponents
        Exponents of the error expansion, if they are not order, order + 1, … (order + 2, … for a
        symmetric tableau).

    Returns
    -------
    Richardson
        Extrapolated value, error estimate, observed orders, the whole table.

    Examples
    --------
    >>> from integrators import problems
    >>> r = richardson(problems.get("linear_growth"), "ExplicitEuler", step=0.1, levels=5)
    >>> exact = 2 * np.exp(0.5) - 1
    >>> bool(abs(r.value[0] - exact) < r.error_estimate < 1e-3), round(r.observed_order, 1)
    (True, 1.0)
    """
    if isinstance(levels, bool) or int(levels) != levels or not 2 <= levels <= 20:
        raise ValueError(f"levels must be a whole number from 2 to 20, got {levels!r}")
    h = float(step)
    if not (np.isfinite(h) and h > 0):
        raise ValueError(f"step must be a positive number, got {step!r}")
    steps = h / 2.0 ** np.arange(int(levels))
    if method is None:
        if not callable(problem) or (order is None and exponents is None):
            raise TypeError("without a method, give a function of h and order= or exponents=")
        values = [np.asarray(problem(float(s)), dtype=float) for s in steps]
        name = "the function"
    else:
        values, name = _runs(problem, method, t_span, y0, steps), method_name(method)
    if exponents is None:
        p = method_order(method) if order is None else order
        gain = 2 if _symmetric(method) else 1
        exponents = tuple(p + gain * k for k in range(int(levels) - 1))
    return Richardson(steps, extrapolation_table(values, exponents), tuple(exponents), 2.0, name)


def _runs(problem: Any, method: Any, t_span: Any, y0: Any, steps: Array) -> list[Array]:
    if not isinstance(problem, IVP):
        if t_span is None or y0 is None:
            raise TypeError("richardson(f, method, step, t_span=..., y0=...) needs both")
        problem = IVP(problem, y0, time_span(t_span))
    ivp = problem.with_(
        t_span=problem.t_span if t_span is None else t_span, y0=problem.y0 if y0 is None else y0
    )
    length = abs(ivp.t_span[1] - ivp.t_span[0])
    count = length / steps[0]
    if length == 0 or abs(count - round(count)) > 1e-9 * max(1.0, count) or round(count) < 1:
        raise ValueError(
            f"the interval, of length {length:g}, must be a multiple of the step {steps[0]:g}: a "
            "shorter last step breaks the error expansion"
        )
    values = []
    for k in range(steps.size):
        parts = round(count) * 2**k
        run = solve(ivp, method=method, step=length / parts)
        if not run.success:
            raise ValueError(f"the run with step {steps[k]:g} failed: {run.message}")
        values.append(run.y[:, -1].copy())
    return values


def _symmetric(method: Any) -> bool:
    """Whether a method is a symmetric tableau."""
    from ..method.geometric import symmetry

    found = resolve(method) if method is not None else None
    return isinstance(found, Tableau) and bool(symmetry(found))
