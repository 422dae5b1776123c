"""Additive (IMEX) methods on one page: coupled order conditions, and what each half is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....tableau.additive import TREES, Additive, additive_extension
from ..page import Page, headline
from ..stability.amplification import stability_function
from ..stability.linear import a_stability, l_stability, stability_interval
from ..verdict import Measure, Verdict, as_additive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AdditiveReport", "additive_report"]


@dataclass(frozen=True, repr=False)
class AdditiveReport(Page):
    """What :func:`additive_report` found; printed, it is a page of text.

    ``verdicts`` has the keys "A" and "L" of the implicit half, ``measures`` "real" and "imaginary"
    of the explicit one; ``conditions`` lists order, number of trees and largest residual.
    """

    method: Additive
    verdicts: dict[str, Verdict]
    measures: dict[str, Measure]
    conditions: list[tuple[int, int, float]]
    further_stages: int

    @property
    def title(self) -> str:
        """Name and order in one line."""
        return headline(self.method, "additive (IMEX)")

    def figure(self) -> Figure:
        """Draw the stability regions of both halves."""
        from ...plot.method import stability_region

        halves = [self.method.explicit, self.method.implicit]
        return stability_region(halves).figure  # type: ignore[return-value]

    def __str__(self) -> str:
        method = self.method
        page = [
            *self.heading(),
            "",
            f"{'order':>5}  {'coupled conditions':>18}  {'largest residual':>16}",
        ]
        for order, count, largest in self.conditions:
            page.append(f"{order:>5}  {count:>18}  {largest:>16.1e}")
        halves = (method.explicit.order, method.implicit.order)
        return "\n".join(
            [
                *page,
                "",
                f"alone, the explicit half has order {halves[0]}, the implicit one {halves[1]}",
                f"dense output of order {method.order} by {self.further_stages} further stages",
                *(f"explicit half: {measure}" for measure in self.measures.values()),
                *(f"implicit half: {verdict}" for verdict in self.verdicts.values()),
            ]
        )


def additive_report(method: Any) -> AdditiveReport:
    """Analyse an additive method.

    Parameters
    ----------
    method
        An :class:`~integrators.Additive`, or the name of one.

    Examples
    --------
    >>> page = additive_report("ARK436IMEX")
    >>> page.conditions[-1][:2], bool(page.verdicts["L"]), page.further_stages
    ((5, 214), True, 5)
    """
    found = as_additive(method)
    if found is None:
        raise TypeError(
            f"expected an Additive method or the name of one, such as 'ARK436IMEX'; got {method!r}"
        )
    weights = found.explicit.b, found.implicit.b
    R, explicit = stability_function(found.implicit), stability_function(found.explicit)
    return AdditiveReport(
        method=found,
        verdicts={"A": a_stability(R), "L": l_stability(R)},
        measures={axis: stability_interval(explicit, axis) for axis in ("real", "imaginary")},
        conditions=[
            (p, sum(len(TREES.trees(p, root)) for root in (0, 1)), found.residual(p, weights))
            for p in range(1, found.order + 2)
        ],
        further_stages=len(additive_extension(found, found.order).nodes),
    )
