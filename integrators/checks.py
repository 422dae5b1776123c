"""``check_method``: put any method, ours or a user's, through the same examination."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import problems
from .solve import method_name, named_method, solve
from .tableau import Tableau

__all__ = ["MethodReport", "check_method"]

EXAMINATION = ("order_rational", "order_trigonometric", "order_exponential")
"""Nonlinear, non-autonomous, coupled problems: y' = Ay would hide most mistakes."""

SLOPE_TOLERANCE = 0.5  # the observed slope, rounded, must not be less than the declared order
ROUND_OFF = 1e-12  # relative errors below this say nothing about the order
LINEAR_TOLERANCE = 1e-10  # y' = t: some coefficients are published to twelve digits only


@dataclass
class MethodReport:
    """What :func:`check_method` found."""

    name: str
    declared_order: int
    observed: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is as it should be."""
        return not self.failures

    def __str__(self) -> str:
        lines = [f"{self.name}: declared order {self.declared_order}"]
        for name, slope in self.observed.items():
            seen = "hidden by round-off" if np.isnan(slope) else f"{slope:.2f}"
            lines.append(f"  {name}: observed order {seen}")
        lines += [f"  FAILED: {failure}" for failure in self.failures] or ["  all checks passed"]
        return "\n".join(lines)


def check_method(method: Any, *, order: int | None = None) -> MethodReport:
    """Examine a method: order on nonlinear problems, both time directions, exact step counts.

    Parameters
    ----------
    method
        Anything that ``solve`` accepts.
    order
        The order it should have; by default what the method itself says.

    Examples
    --------
    >>> class Wrong:  # the second stage is evaluated at the wrong time
    ...     order = 2
    ...     def step(self, f, t, y, h):
    ...         k1 = h * f(t, y)
    ...         return y + (k1 + h * f(t, y + k1)) / 2
    >>> check_method(Wrong()).ok
    False
    """
    declared = order if order is not None else _declared_order(method)
    report = MethodReport(method_name(method), declared)
    short = []
    for name in EXAMINATION:
        slope = observed_order(problems.get(name), method, declared)
        report.observed[name] = slope
        if slope < declared - SLOPE_TOLERANCE:
            short.append(f"{slope:.2f} on {name}")
    if len(short) >= 2:  # a method of high order can look bad on one, before round-off sets in
        report.failures.append(f"order {' and '.join(short)} instead of {declared}")
    _check_times(method, report)
    _check_reversal(method, report, declared)
    return report


def observed_order(problem: Any, method: Any, order: int) -> float:
    """Slope of log(error) against log(h) at the finest pair of steps above round-off.

    The error is the largest over all components and steps, since at a single time its leading
    terms may happen to cancel. Steps are refined by √2 until the error nears round-off; NaN is
    returned if too few errors are above it (an order above ten hardly shows in doubles).
    """
    t0, t1 = problem.t_span
    errors: list[tuple[float, float]] = []
    most = 3000 if order <= 2 else 600
    intervals = 3.0
    while intervals <= most:
        count = round(intervals)
        solution = solve(problem, method=method, step=abs(t1 - t0) / count)
        exact = np.array([problem.exact(t) for t in solution.t]).T
        error = float(np.max(np.abs(solution.y - exact)) / np.max(np.abs(exact)))
        if error < ROUND_OFF:
            break
        if solution.success and np.isfinite(error):
            errors.append((count, error))
        intervals *= np.sqrt(2)
    if len(errors) < 3:
        return float("nan") if intervals < most else 0.0  # 0: it never came close
    (n1, e1), (n2, e2) = errors[-3], errors[-1]
    return float(np.log(e1 / e2) / np.log(n2 / n1))


def _declared_order(method: Any) -> int:
    if isinstance(method, str):
        method = named_method(method)
    if isinstance(method, Tableau) or hasattr(method, "order"):
        return int(method.order)
    raise TypeError(f"{method_name(method)} does not say its order; pass order=")


def _check_times(method: Any, report: MethodReport) -> None:
    solution = solve(lambda t, y: np.ones_like(y), (0.0, 1.0), [0.0], method=method, step=0.1)
    if solution.t.size != 11 or solution.t[-1] != 1.0:
        report.failures.append(f"ten steps of 0.1 from 0 to 1 gave {solution.t.size - 1} steps")
    elif np.max(np.abs(solution.y[0] - solution.t)) > LINEAR_TOLERANCE:
        report.failures.append("y' = 1 is not integrated exactly")


def _check_reversal(method: Any, report: MethodReport, order: int) -> None:
    problem = problems.get("order_rational")
    t0, t1 = problem.t_span
    there = solve(problem, method=method, step=(t1 - t0) / 128)
    back = solve(problem.f, (t1, t0), there.y[:, -1], method=method, step=(t1 - t0) / 128)
    error = float(np.max(np.abs(back.y[:, -1] - problem.y0)))
    forward = float(np.max(np.abs(there.y[:, -1] - problem.reference(t1))))
    if not error <= 100 * forward + 1e-11:
        report.failures.append(f"backward integration misses the start by {error:.2e}")
