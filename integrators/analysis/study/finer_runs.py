"""The rest of a convergence study below the round-off of doubles.

Where doubles leave too few points for an order, :class:`FinerRuns` goes on with the same method at
shorter steps and sixty digits (``methods.precise``), against a reference of the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...methods.precise import ManyDigits, NotAvailable
from ...methods.taylor import Taylor
from ...problem import IVP
from ...tableau import Tableau
from ..error.measure import ErrorMeasure
from .reference import Reference
from .runs import Program, Row, attempt
from .slopes import FEWEST

__all__ = ["RATIO", "SMALLEST", "FinerRuns"]

SMALLEST = 1e-48  # relative error that still means something, for a problem that magnifies none
SAME = 1e-9  # references that differ by more are not of the same solution
RATIO = 2.0**0.5  # of steps: with many digits few points are enough


class FinerRuns:
    """Runs of one problem with many digits.

    Parameters
    ----------
    problem, measure
        What is solved, and how errors are measured: of the whole state or one component.
    known
        The reference of the runs with doubles, which must be the same within their accuracy.
    """

    def __init__(self, problem: IVP, measure: ErrorMeasure, known: Reference) -> None:
        self._problem, self._measure, self._known = problem, measure, known
        self._grids: dict[int, NDArray[Any]] = {}
        self._reference: Reference | None = None
        self._refused = ""
        if measure.observable is not None and not measure.name[1:].isdigit():
            self._refused = "functions of the state are evaluated with doubles only"
        elif problem.events:
            self._refused = "events are located with doubles only"

    @cached_property
    def _digits(self) -> ManyDigits:
        digits = ManyDigits(self._problem)
        digits.check_for_study()
        return digits

    def _find_reference(self) -> Reference:
        end = self._digits.along(np.array([self._digits.t_span[1]], dtype=object))
        apart = self._known.error(end[:, 0].astype(float))
        if apart is None or apart > max(SAME, 10 * self._known.uncertainty):
            raise NotAvailable("the reference of the problem is another one")
        return Reference(end[:, 0], "a Taylor series with many digits", along=self._along)

    def _along(self, times: NDArray[Any]) -> NDArray[Any]:
        """Return the reference on an equidistant grid; methods share it."""
        if times.size not in self._grids:
            self._grids[times.size] = self._digits.along(times)
        return self._grids[times.size]

    def _run(self, method: Any, count: int, problem: IVP, step: float) -> Any:
        """Take the steps of a row; their number says all that there is to say."""
        return self._digits.run(method, count)

    def rows(self, label: str, method: Any, count: int, most: int) -> Iterator[Row]:
        """Run a method with count intervals, then more, while that is affordable.

        Raises
        ------
        NotAvailable
            Where that cannot be done; see ``methods.precise``. What the problem is refused for is
            found out once.
        """
        if not isinstance(method, Tableau | Taylor):
            raise NotAvailable("only tableaux and Taylor methods are run with many digits")
        if self._refused:
            raise NotAvailable(self._refused)
        try:
            most = min(most, self._digits.affordable(method))
            if count * RATIO ** (FEWEST - 1) > most:
                return  # too few to be of use: the reference is not worth its price
            if self._reference is None:
                self._reference = self._find_reference()
        except NotAvailable as error:
            self._refused = str(error)  # for other methods as well
            raise
        exactly = float(count)
        length = abs(self._problem.t_span[1] - self._problem.t_span[0])
        while round(exactly) <= most:
            count = round(exactly)
            program = Program(partial(self._run, method, count), label)
            row, _ = attempt(
                self._problem, label, program, {"step": length / count}, self._reference,
                self._measure,
            )  # fmt: skip
            if isinstance(row.exception, NotAvailable):
                raise row.exception
            yield row
            exactly = max(exactly * RATIO, count + 1)
