"""``check_method``: put any method, ours or a user's, through the same examination."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import problems
from ...methods.imex import Split
from ...methods.names import method_name
from ...problem import IVP
from ...solve import solve
from ...tableau.additive import Additive
from ...tableau.partitioned import Nystrom, Partitioned, Splitting
from ..study.convergence import Curve, convergence
from ..study.runs import declared_order, resolve

__all__ = ["MethodReport", "check_method"]

EXAMINATION = ("order_rational", "order_trigonometric", "order_exponential")
"""Nonlinear, non-autonomous, coupled problems: y' = Ay would hide most mistakes."""

SEPARABLE, SECOND_ORDER = ("order_mechanical", "order_separable"), ("order_mechanical",)
"""For methods that are made for y = (q, v)."""

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
            seen = "not to be seen in doubles" if np.isnan(slope) else f"{slope:.2f}"
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
    label, resolved = resolve(method)
    declared = order if order is not None else declared_order(resolved)
    if declared is None:
        raise TypeError(f"{method_name(method)} does not say its order; pass order=")
    report = MethodReport(label, declared)
    short: list[Curve] = []
    seen = []
    examination = _examination(resolved)
    for name in examination:
        problem = _as_taken(problems.get(name), resolved)
        (curve,) = convergence(problem, resolved, order=declared).curves
        report.observed[name] = curve.estimate.order
        if curve.verdict == "too low" or curve.findings:
            short.append(curve)
            what = f"{curve.estimate.order:.2f}" if curve.estimate.found else "none"
            seen.append(f"{what} on {name}")
    # A method of high order can look bad on one, before round-off sets in.
    if len(short) >= min(2, len(examination)):
        report.failures.append(f"order {' and '.join(seen)} instead of {declared}")
        causes = dict.fromkeys(str(finding) for curve in short for finding in curve.findings)
        report.failures += [f"likely cause: {cause}" for cause in causes]
    _check_times(method, report)
    _check_reversal(method, report, declared)
    return report


def _examination(method: Any) -> tuple[str, ...]:
    """What a method is examined with: problems that it is for."""
    if isinstance(method, Nystrom):
        return SECOND_ORDER
    return SEPARABLE if isinstance(method, Splitting | Partitioned) else EXAMINATION


def _as_taken(problem: IVP, method: Any, coupled: bool = True) -> IVP:
    """The problem as a method takes it: additive ones need two parts, any two will do."""
    if not isinstance(method, Additive):
        return problem
    f = problem.bind(problem.f)

    def share(t: Any, y: Any) -> Any:
        return np.sin(y[::-1] + t) if coupled else f(t, y) / 2

    parts = Split(lambda t, y: f(t, y) / 2 + share(t, y), lambda t, y: f(t, y) / 2 - share(t, y))
    return problem.with_(f=parts, jac=None)


def _check_times(method: Any, report: MethodReport) -> None:
    problem = IVP(lambda t, y: np.array([y[1], 0.0]), [0.0, 1.0], (0.0, 1.0))
    taken = _as_taken(problem, resolve(method)[1], coupled=False)
    solution = solve(taken, method=method, step=0.1)
    if solution.t.size != 11 or solution.t[-1] != 1.0:
        report.failures.append(f"ten steps of 0.1 from 0 to 1 gave {solution.t.size - 1} steps")
    elif np.max(np.abs(solution.y[0] - solution.t)) > LINEAR_TOLERANCE:
        report.failures.append("y' = 1 (as y'' = 0) is not integrated exactly")


def _check_reversal(method: Any, report: MethodReport, order: int) -> None:
    resolved = resolve(method)[1]
    problem = _as_taken(problems.get(_examination(resolved)[0]), resolved)
    t0, t1 = problem.t_span
    there = solve(problem, method=method, step=(t1 - t0) / 128)
    back = solve(problem.f, (t1, t0), there.y[:, -1], method=method, step=(t1 - t0) / 128)
    error = float(np.max(np.abs(back.y[:, -1] - problem.y0)))
    forward = float(np.max(np.abs(there.y[:, -1] - problem.reference(t1))))
    if not error <= 100 * forward + 1e-11:
        report.failures.append(f"backward integration misses the start by {error:.2e}")
