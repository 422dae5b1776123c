"""Everything about a Rosenbrock method on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....tableau.rosenbrock import CONSTRAINED, WITH_MATRIX, F, G, Rosenbrock
from ....tableau.rosenbrock_extension import rosenbrock_extension
from ....tableau.trees import rooted_trees
from ..page import Page, headline
from ..stability.amplification import StabilityFunction, stability_function
from ..stability.linear import a_alpha, a_stability, i_stability, l_stability, stability_interval
from ..verdict import Measure, Verdict, as_rosenbrock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RosenbrockReport", "rosenbrock_report"]

MOST_ORDERS = 5  # whose conditions are listed; the next has 12,000


@dataclass(frozen=True, repr=False)
class RosenbrockReport(Page):
    """What :func:`rosenbrock_report` found; printed, it is a page of text.

    ``verdicts`` has the keys "A", "L" and "I", ``measures`` "real" and "alpha"; ``conditions``
    lists, for each order, how many conditions there are with the Jacobian, with any matrix, and
    for the components y and z of equations of index 1, and whether all of them hold.
    """

    method: Rosenbrock
    R: StabilityFunction
    verdicts: dict[str, Verdict]
    measures: dict[str, Measure]
    conditions: list[tuple[int, list[tuple[int, bool]]]]
    further_stages: int

    @property
    def title(self) -> str:
        """Name and order in one line."""
        return headline(self.method, "Rosenbrock")

    def figure(self) -> Figure:
        """Draw the stability region."""
        from ...plot.method import stability_region

        return stability_region(self.method.linear).figure  # type: ignore[return-value]

    def __str__(self) -> str:
        method = self.method
        page = [
            *self.heading(),
            "",
            "Order",
            "-----",
            f"order {method.order} with the Jacobian, {method.w_order} with any other matrix",
            f"order {method.dae_order} on differential-algebraic equations of index 1",
            f"dense output of order {method.order} by {self.further_stages} further stages",
            "",
            _line("order", ["trees", "any matrix", "index 1, y", "index 1, z"]),
        ]
        for order, counts in self.conditions:
            cells = [f"{count} {'ok' if holds else 'fail'}" for count, holds in counts]
            page.append(_line(str(order), cells))
        accurate = "" if method.is_stiffly_accurate else "not "
        page += [
            "",
            "Stability",
            "---------",
            f"γ = {float(method.gamma[0][0]):.12g};  R(∞) = {method.at_infinity:.4g};  "
            f"{accurate}stiffly accurate",
            *(str(self.measures[key]) for key in ("real", "alpha")),
            *(str(self.verdicts[key]) for key in ("A", "L", "I")),
        ]
        return "\n".join(page)


def _line(order: str, cells: list[str]) -> str:
    return f"{order:>5}  " + "  ".join(f"{cell:>12}" for cell in cells)


def rosenbrock_report(method: Any) -> RosenbrockReport:
    """Analyse a Rosenbrock method: its orders, condition by condition, and its stability.

    Parameters
    ----------
    method
        A :class:`~integrators.Rosenbrock` or the name of one.

    Examples
    --------
    >>> page = rosenbrock_report("Rodas4P")
    >>> bool(page.verdicts["L"]), page.method.dae_order, page.further_stages
    (True, 4, 5)
    """
    found = as_rosenbrock(method)
    if found is None:
        raise TypeError(
            f"expected a Rosenbrock method or the name of one, such as 'Rodas5P'; got {method!r}"
        )
    R, highest = stability_function(found), min(found.order + 1, MOST_ORDERS)
    return RosenbrockReport(
        method=found,
        R=R,
        verdicts={"A": a_stability(R), "L": l_stability(R), "I": i_stability(R)},
        measures={"real": stability_interval(R, "real"), "alpha": a_alpha(R)},
        conditions=[(p, _conditions(found, p)) for p in range(1, 1 + highest)],
        further_stages=len(rosenbrock_extension(found, found.order).nodes),
    )


def _conditions(method: Rosenbrock, p: int) -> list[tuple[int, bool]]:
    """How many conditions of order p there are, by kind, and whether they hold."""
    families = [(WITH_MATRIX, None), (CONSTRAINED, F), (CONSTRAINED, G)]
    found = [(len(rooted_trees(p)), p <= method.order)]
    for family, root in families:
        roots = (F, G) if root is None else (root,)
        count = sum(len(family.trees(p, colour)) for colour in roots)
        found.append((count, method.residual(family, p, root) <= 1))
    return found
