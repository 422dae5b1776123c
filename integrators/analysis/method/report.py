"""Everything about a method on one page."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...tableau import MAX_ORDER, OrderCondition, Tableau
from ...tableau.tableau import _short, _sum
from ...tableau.trees import rooted_trees
from ..exact.polynomial import power
from .families.additive import additive_report
from .families.partitioned import partitioned_report
from .families.rosenbrock import rosenbrock_report
from .geometric import quadratic_invariants, symmetry, symplecticity
from .order import FiguresOfMerit, failing_conditions, figures_of_merit, stage_order
from .page import Page
from .stability.amplification import StabilityFunction, stability_function
from .stability.linear import (
    a_alpha,
    a_stability,
    i_stability,
    l_stability,
    stability_interval,
    stiff_accuracy,
    strong_a_stability,
)
from .stability.nonlinear import algebraic_stability, an_stability
from .stability.oscillation import Dispersion, dispersion
from .stability.ssp import ssp_coefficient
from .verdict import Measure, Verdict, as_additive, as_halves, as_rosenbrock, as_tableau

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report", "report"]

WIDTH = 100
"""Columns of the text."""

MOST_STAGES_SHOWN = 9
"""A larger tableau does not fit on a line of the page."""

MOST_CONDITIONS_SHOWN = 4


@dataclass(frozen=True, repr=False)
class Report(Page):
    """What :func:`report` found; printed, it is a page of text.

    ``verdicts`` has the keys "A", "strong A", "L", "I", "stiffly accurate", "B", "AN",
    "symplectic", "symmetric" and "quadratic invariants"; ``measures`` has "real", "imaginary",
    "alpha" and "SSP". ``failing`` lists the order conditions of order p + 1 that do not hold, with
    their formulae, and ``remarks`` what looks like a mistake.
    """

    tableau: Tableau
    order: int
    embedded_order: int | None
    stage_order: int
    assumptions: tuple[int, int, int]
    figures: FiguresOfMerit
    failing: list[tuple[OrderCondition, str]]
    R: StabilityFunction
    verdicts: dict[str, Verdict]
    measures: dict[str, Measure]
    dispersion: Dispersion
    remarks: list[str]

    @property
    def method(self) -> Tableau:
        """The tableau."""
        return self.tableau

    def order_lines(self) -> list[str]:
        """What there is to say about the order, one statement a line."""
        p, (quadrature, eta, zeta) = self.order, self.assumptions
        lines = [
            f"order {p}, stage order {self.stage_order}; B({quadrature}), C({eta}), D({zeta}) hold",
            f"principal error: {self.figures}",
            self._failures(),
        ]
        for condition, formula in self.failing[:MOST_CONDITIONS_SHOWN]:
            lines.append(f"    {formula}, but it is {_short(condition.weight)}")
        if len(self.failing) > MOST_CONDITIONS_SHOWN:
            lines.append(f"    … and {len(self.failing) - MOST_CONDITIONS_SHOWN} more")
        return lines

    def _failures(self) -> str:
        n, failed = self.order + 1, len({condition.tree for condition, _ in self.failing})
        if n > MAX_ORDER:
            return f"order {n} fails, for instance in"
        total = len(rooted_trees(n))
        return f"order {n} fails in {failed} of {total} condition{'s' if total > 1 else ''}:"

    def stability_lines(self) -> list[str]:
        """Stability function, intervals and verdicts."""
        value, _ = self.R.at_infinity
        constant = self.R.error_constant
        term = power("z", self.R.order + 1)
        if constant is None:
            difference = f"O({term})"
        elif constant.denominator < 10**9:
            difference = f"{constant} {term} + …"
        else:
            difference = f"{float(constant):.6g} {term} + …"
        limit = "∞" if value == float("inf") else f"{value:.6g}"
        return [
            f"R(z) = {self.R}",
            f"exp(z) − R(z) = {difference};  R(∞) = {limit}",
            str(self.measures["real"]),
            str(self.measures["imaginary"]),
            *(str(self.verdicts[key]) for key in ("A", "strong A", "L", "I")),
            str(self.measures["alpha"]),
            *(str(self.verdicts[key]) for key in ("stiffly accurate", "B", "AN")),
            str(self.measures["SSP"]),
            str(self.dispersion),
        ]

    def geometry_lines(self) -> list[str]:
        """Symplectic, symmetric, conserving."""
        return [
            str(self.verdicts[key]) for key in ("symplectic", "quadratic invariants", "symmetric")
        ]

    def figure(self) -> Figure:
        """Draw the report: tableau, stability region, order conditions and verdicts."""
        from ..plot.method import report_figure

        return report_figure(self)

    def __str__(self) -> str:
        page = [*self.heading(), *(_wrapped(f"! {remark}", 2) for remark in self.remarks)]
        if self.tableau.stages <= MOST_STAGES_SHOWN:
            page += ["", textwrap.indent(str(self.tableau), "  ")]
        for heading, lines in (
            ("Order", self.order_lines()),
            ("Stability", self.stability_lines()),
            ("Geometry", self.geometry_lines()),
        ):
            page += ["", heading, "-" * len(heading), *(_wrapped(line, 4) for line in lines)]
        return "\n".join(page)


def report(method: Any) -> Any:
    """Analyse a method completely.

    Parameters
    ----------
    method
        A tableau or the name of a scheme. A tableau whose nodes are not its row sums is analysed
        as it is (build it with ``check=False``); the report says so.

    Returns
    -------
    Report
        ``print`` shows a page of text, ``.figure()`` draws it. For a Rosenbrock method it is a
        :class:`RosenbrockReport`, for one of y = (q, v) a :class:`PartitionedReport`, for an
        additive method an :class:`AdditiveReport`.

    Examples
    --------
    >>> page = report("RadauIIA2")
    >>> page.order, bool(page.verdicts["L"]), bool(page.verdicts["B"])
    (3, True, True)
    >>> print(page.title)
    RadauIIA2: fully implicit, 2 stages, order 3
    """
    if as_additive(method) is not None:
        return additive_report(method)
    if as_halves(method) is not None:
        return partitioned_report(method)
    if as_rosenbrock(method) is not None:
        return rosenbrock_report(method)
    tableau = as_tableau(method)
    R = stability_function(tableau)
    return Report(
        tableau=tableau,
        order=tableau.order,
        embedded_order=tableau.embedded_order,
        stage_order=stage_order(tableau),
        assumptions=tableau.simplifying_assumptions(),
        figures=figures_of_merit(tableau),
        failing=failing_conditions(tableau),
        R=R,
        verdicts={
            "A": a_stability(R),
            "strong A": strong_a_stability(R),
            "L": l_stability(R),
            "I": i_stability(R),
            "stiffly accurate": stiff_accuracy(tableau),
            "B": algebraic_stability(tableau),
            "AN": an_stability(tableau),
            "symplectic": symplecticity(tableau),
            "quadratic invariants": quadratic_invariants(tableau),
            "symmetric": symmetry(tableau),
        },
        measures={
            "real": stability_interval(R, "real"),
            "imaginary": stability_interval(R, "imaginary"),
            "alpha": a_alpha(R),
            "SSP": ssp_coefficient(tableau),
        },
        dispersion=dispersion(R),
        remarks=_remarks(tableau),
    )


def _remarks(tableau: Tableau) -> list[str]:
    found = []
    for i, (row, node) in enumerate(zip(tableau.A, tableau.c), start=1):
        total = _sum(row)
        if len(tableau._leaves) > 1 and abs(float(total) - float(node)) > 1e-12:
            found.append(
                f"row {i} of A adds up to {_short(total)}, but c[{i}] = {_short(node)}: the stage "
                "is evaluated at one time with the state of another. Look for a wrong sign or "
                "number in this row"
            )
    if tableau.order == 0:
        found.append(f"the weights b add up to {_short(_sum(tableau.b))}, not 1: not consistent")
    return found


def _wrapped(line: str, indent: int) -> str:
    return textwrap.fill(
        line,
        WIDTH,
        subsequent_indent=" " * indent,
        drop_whitespace=True,
        break_long_words=False,
    )
