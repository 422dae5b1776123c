"""The runs of a convergence study: which steps are taken, when there are enough, what they show.

:class:`StudyRuns` runs methods on one problem: with steps that are given, or chosen from the
longest that follows the solution down to where round-off begins, and below it with many digits
(:mod:`finer_runs`) where doubles leave the order open. A :class:`Curve` is what came of one method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import problems
from ...methods.precise import DIGITS, NotAvailable
from ...problem import IVP
from ...tableau import Tableau
from ...tracing import traced_rhs
from ..error.measure import ErrorMeasure
from .diagnosis import NO_CAUSE, Case, Finding, diagnose, diagnose_coefficients
from .finer_runs import RATIO, SMALLEST, FinerRuns
from .obstacles import explain, explain_higher
from .reference import Reference, error_growth, find_reference
from .runs import Report, Row, attempt
from .slopes import (
    COARSE,
    FEWEST,
    GAP,
    OPEN,
    REFERENCE,
    ROUND_OFF,
    ROUNDING,
    SHORTFALL,
    STALLED,
    USED,
    OrderEstimate,
    average_slope,
    estimate_order,
    round_off_floor,
)

__all__ = ["Curve", "StudyRuns"]

FIRST = 4  # intervals with which an automatic study starts
FOLLOWS = 0.3  # relative error below which a run is said to follow the solution
MOST_STEPS = 200_000
IN_VAIN, UNMOVED = 5, 0.05  # this many runs in a row within so much of each other: it stays there
RATIOS = ((5, np.sqrt(2.0)), (99, 2.0**0.25))  # of steps, up to which order
FINER = ((3, 1024), (99, 160))  # finest step over the first that follows, up to which order
FURTHER = 16  # times finer, where that leaves the order open
SETTLING = 32  # from this refinement on, stop when the order is narrowly known:
NARROW = 0.06, 0.01  # half-width below this and this part of the order
WELL_CLEAR = 1e4  # errors above this multiple of the floor do not know that they are of doubles
FEWEST_FINER, MANY_FINER = 5, 8  # runs with many digits before they may be called enough
SHORT = 6  # points of a range that may lie on a detour on the way to the order
STEEPER = 1.0  # by which a slope just before the range exceeds it where an error changes sign
SHARP = 0.5  # width of an interval that tells integers apart
APART = 0.1  # part of their error by which runs may differ that have come to rest
UNDAMPED = 0.99  # |R(∞)| above which errors of algebraic components stay
UNCERTAIN = 30.0  # floor in units of the relative uncertainty of a tableau's coefficients


IN_THE_WAY = {
    COARSE: "not yet asymptotic",
    ROUNDING: "round-off",
    REFERENCE: "reference too coarse",
    STALLED: "no convergence",
    GAP: "runs failed",
}


@dataclass(frozen=True, repr=False)
class Curve:
    """One method of a study.

    Attributes
    ----------
    method : str
        Label of the method.
    rows : tuple of Row
        Its runs, longest step first.
    estimate : OrderEstimate
        The order that its errors show, and which of them count.
    expected : int or None
        The order that it should have.
    findings : tuple of Finding
        Likely causes if it falls short.
    finer : int
        How many of the shortest steps were run with many digits, because the round-off of doubles
        left too few points.
    """

    method: str
    rows: tuple[Row, ...]
    estimate: OrderEstimate
    expected: int | None = None
    findings: tuple[Finding, ...] = ()
    finer: int = 0

    @property
    def verdict(self) -> str:
        """How the observed order compares with the expected one.

        "as expected", "too low", "higher", "order found" if nothing was expected; or, where the
        errors do not show an order, what is in the way: "stiff", "not smooth", "refused", "exact"
        (all errors are rounding), each with a finding that has the evidence; or "not yet
        asymptotic", "round-off", "reference too coarse", "no convergence", "runs failed".
        """
        if not self.estimate.found:
            named = [finding.verdict for finding in self.findings if finding.verdict]
            return (named or [IN_THE_WAY.get(self.estimate.obstacle, "no order")])[0]
        if self.expected is None:
            return "order found"
        if self.expected in self.estimate:
            return "as expected"
        return "too low" if self.estimate.high < self.expected else "higher"

    def __repr__(self) -> str:
        order = f"{self.estimate}, " if self.estimate.found else ""
        return f"<Curve of {self.method}: {order}{self.verdict}>"

    @property
    def ok(self) -> bool:
        """Whether an order was found and does not fall short."""
        return self.verdict in ("as expected", "higher", "order found")

    @property
    def steps(self) -> tuple[float, ...]:
        """Step sizes, longest first."""
        return tuple(row.step or 0.0 for row in self.rows)

    @property
    def errors(self) -> tuple[float | None, ...]:
        """The error at each; None at a gap."""
        return tuple(row.error if row.ok else None for row in self.rows)


class StudyRuns:
    """The runs of one problem, with what they share."""

    def __init__(
        self,
        problem: IVP,
        measure: ErrorMeasure,
        stiff: bool | None,
        precision: float,
        report: Report | None,
        methods: int,
    ) -> None:
        self.problem, self.measure, self.stiff = _traced(problem), measure, stiff
        self.reference = Reference(None, "interrupted before a reference was found")
        self.uncertainty: float | None = None
        self.ends: dict[tuple[str, float], NDArray[Any]] = {}
        self._grids: dict[bytes, NDArray[Any]] = {}
        self._precision = precision
        self.growth = 1.0
        self._many_digits: FinerRuns | None = None
        self._exactly: set[tuple[str, float]] = set()  # runs with many digits
        self._report, self._methods, self._done = report, methods, 0

    def tell(self, label: str) -> None:
        """Report what is being done."""
        if self._report is not None:
            self._report(self._done, self._methods, label)

    def find_reference(self) -> None:
        """Find it once; states along the same grid are computed once, too."""
        self.tell("reference")
        found = find_reference(self.problem, stiff=self.stiff)
        along = found.along
        if found.y is None and not self.measure.constant:
            raise ValueError(f"{found.origin}; give the problem exact or references")

        def remembered(times: NDArray[np.float64]) -> NDArray[Any]:
            assert along is not None
            if times.dtype == object:  # numbers of another arithmetic: their bytes are pointers
                return along(times)
            key = times.tobytes()
            if key not in self._grids:
                self._grids[key] = along(times)
            return self._grids[key]

        self.growth = error_growth(self.problem, self.stiff)
        self.reference = Reference(
            found.y, found.origin, found.relative, found.uncertainty, remembered, found.doubt
        )

    def curve(
        self, label: str, method: Any, steps: list[float] | None, expected: int | None, why: bool
    ) -> Curve:
        """Run one method, with given or chosen steps, and look for causes if ``why``."""
        if steps is None:
            rows = self._automatic(label, method, expected)
        else:
            rows = [self._run(label, method, h) for h in steps]
        estimate = self._estimate(method, rows)
        finer: list[Row] = []
        if steps is None and _calls_for_digits(estimate, expected):
            rows, finer = self._finer(label, method, rows, expected)
            estimate = self._estimate(method, rows)
        estimate = _doubted(estimate, expected, bool(finer))
        known = [row.error for row in rows if row.ok and row.error is not None]
        lost = min(known, default=0.0) > FOLLOWS or self._apart(rows)
        if estimate.obstacle == STALLED and lost and self._must_converge(method):
            estimate = _lost(estimate, rows)
        curve = Curve(label, tuple(rows), estimate, expected, finer=len(finer))
        sharp = estimate.high - estimate.low < SHARP
        between = curve.verdict == "too low" and not (_whole(estimate) and sharp)
        if why or between:
            curve = replace(curve, findings=self._findings(curve, method))
        if between and [finding.cause for finding in curve.findings] == [NO_CAUSE]:
            curve = replace(curve, estimate=_taken_back(estimate, "up"), findings=())
        if curve.verdict == IN_THE_WAY[GAP] and known and lost and self._must_converge(method):
            curve = replace(curve, estimate=_lost(estimate, rows))  # nothing else is in the way
        self._done += 1
        return curve

    def _must_converge(self, method: Any) -> bool:
        """Whether the method is consistent, and the problem an ODE."""
        return isinstance(method, Tableau) and method.order > 0 and self.problem.mass is None

    def _apart(self, rows: list[Row]) -> bool:
        """Whether the last two runs still differ by as much as they are wrong.

        Then their errors do not stay where they are for good, as with a wrong reference, which
        runs that agree among themselves all miss by the same.
        """
        last = [row for row in rows[-2:] if row.ok and row.error is not None]
        keys = [(row.method, row.step or 0.0) for row in last]
        ends = [self.ends[key] for key in keys if key in self.ends]
        if len(ends) < 2:
            return False
        moved, size = np.max(np.abs(ends[1] - ends[0])), np.max(np.abs(ends[1]))
        return bool(moved > APART * size * min(row.error or 0.0 for row in last))

    def _findings(self, curve: Curve, method: Any) -> tuple[Finding, ...]:
        """Look for what is in the way of an order, or for what is wrong with it."""
        if curve.verdict == "as expected":
            return ()
        self.tell(f"{curve.method}: looking for the cause")
        ends = tuple(self.ends.get((curve.method, h)) for h in curve.steps)
        case = Case(
            self.problem, method, curve.expected or 1, curve.estimate, curve.rows, ends,
            self.reference,
        )  # fmt: skip
        if curve.verdict == "order found":  # nothing is missed, but coefficients may look wrong
            return diagnose_coefficients(case)
        if curve.verdict == "higher":
            found = explain_higher(case)
        else:
            found = None if curve.estimate.found else explain(case)
        if found is not None:
            return (found,)
        unexpected = curve.expected is None and curve.verdict == IN_THE_WAY[STALLED]
        if unexpected and (coefficients := diagnose_coefficients(case)):
            return coefficients
        return diagnose(case) if unexpected or _suspicious(curve) else ()

    def _run(self, label: str, method: Any, step: float) -> Row:
        self.tell(f"{label}, h = {step:.3g}")
        options = {"step": step}
        row, solution = attempt(self.problem, label, method, options, self.reference, self.measure)
        if row.status == "interrupted":
            raise KeyboardInterrupt
        if solution is not None:
            kind = complex if np.iscomplexobj(solution.y) else float
            # A copy: a view would keep the whole trajectory.
            self.ends[label, step] = np.array(solution.y[:, -1], dtype=kind)
            if self.uncertainty is None:
                self.uncertainty = self.measure.uncertainty(self.problem, solution, self.reference)
        return row

    def _floor(self, method: Any, row: Row) -> float:
        if (row.method, row.step) in self._exactly:
            given = method._relative_uncertainty if isinstance(method, Tableau) else 0.0
            return ROUND_OFF * self.growth * max(SMALLEST, given)
        floor = round_off_floor(row.steps) * self._precision / float(np.finfo(float).eps)
        floor *= self.growth
        index = 0 if self.problem.index is None else int(np.max(self.problem.index))
        if index > 1 and row.step:  # multipliers are differences of velocities, divided by h
            floor *= max(1.0, 1.0 / row.step) ** (index - 1)
            if isinstance(method, Tableau) and not _damps(method):
                floor *= max(row.steps, 1)  # and what is not damped accumulates
        if isinstance(method, Tableau):  # some coefficients are published with few digits
            floor = max(floor, UNCERTAIN * method._relative_uncertainty)
        return floor

    def _automatic(self, label: str, method: Any, expected: int | None) -> list[Row]:
        """Refine from the longest step that follows the solution until round-off is reached."""
        length = abs(self.problem.t_span[1] - self.problem.t_span[0])
        rows: list[Row] = []
        count = FIRST
        while count <= MOST_STEPS:
            rows.append(self._run(label, method, length / count))
            if rows[-1].ok and rows[-1].error is not None and rows[-1].error < FOLLOWS:
                break
            if rows[-1].status in ("refused", "missing") or _in_vain(rows):
                return rows
            count *= 2
        order = expected or 4
        ratio = next(r for limit, r in RATIOS if order < limit)
        finest = count * next(n for limit, n in FINER if order < limit)
        exactly = count * ratio
        for limit in (finest, FURTHER * finest):
            while round(exactly) <= min(limit, MOST_STEPS):
                row = self._run(label, method, length / round(exactly))
                rows.append(row)
                if row.ok and row.error is not None and row.error < self._stop(method, row):
                    return rows
                if row.steps >= SETTLING * count and self._settled(method, rows, expected):
                    return rows
                exactly *= ratio
                if round(exactly) == rows[-1].steps:  # short intervals: two counts may round to one
                    exactly = rows[-1].steps + 1
            if _doubted(self._estimate(method, rows), expected).obstacle != COARSE:
                break
        return rows

    def _finer(
        self, label: str, method: Any, rows: list[Row], expected: int | None
    ) -> tuple[list[Row], list[Row]]:
        """Go on with many digits from where doubles are still clear of round-off, if possible."""
        clear = [
            row for row in rows
            if row.ok and row.error is not None and row.error > WELL_CLEAR * self._stop(method, row)
        ]  # fmt: skip
        kept = rows[: rows.index(clear[-1]) + 1] if clear else []
        finer: list[Row] = []
        try:
            if self._many_digits is None:
                self._many_digits = FinerRuns(self.problem, self.measure, self.reference)
            count = round(RATIO * kept[-1].steps) if kept else FIRST
            for row in self._many_digits.rows(label, method, count, MOST_STEPS):
                self.tell(f"{label}, {row.steps} steps with {DIGITS} digits")
                finer.append(row)
                self._exactly.add((label, row.step or 0.0))
                if row.error is None or row.error < self._stop(method, row):
                    break
                many = len(finer) >= MANY_FINER
                enough = len(finer) >= FEWEST_FINER and _whole(self._estimate(method, kept + finer))
                if enough and self._settled(method, kept + finer, expected, many):
                    break
        except NotAvailable:
            pass
        if len(finer) >= FEWEST:
            return kept + finer, finer
        # Doubles have taken these steps, too: what is known of them is theirs.
        self._exactly -= {(label, row.step or 0.0) for row in finer}
        return rows, []

    def _settled(
        self, method: Any, rows: list[Row], expected: int | None, many: bool = False
    ) -> bool:
        """Whether shorter steps would hardly change the answer.

        The order is narrowly known, and either as expected or a lower one, four steps ago
        already. A slope above the order is trusted after many runs with many digits only, if it was
        the same integer four steps ago: a small leading term may still come into sight.
        """
        latest, before = (self._estimate(method, part) for part in (rows, rows[:-4]))
        if not latest.found:
            return False
        if latest.high - latest.low > 2 * (NARROW[0] + NARROW[1] * abs(latest.order)):
            return False
        if expected is None:
            return round(latest.order) in latest and round(latest.order) in before
        if many and latest.low > expected:
            return round(latest.order) in latest and round(latest.order) in before
        lower = _whole(latest) and latest.high < expected and before.high < expected
        return expected in latest or lower

    def _estimate(self, method: Any, rows: list[Row]) -> OrderEstimate:
        return estimate_order(
            [row.step or 0.0 for row in rows],
            [row.error if row.ok else None for row in rows],
            [self._floor(method, row) for row in rows],
            uncertainty=0.0 if self._doubles(rows) < len(rows) else self.uncertainty or 0.0,
        )

    def _doubles(self, rows: list[Row]) -> int:
        return sum((row.method, row.step) not in self._exactly for row in rows)

    def _stop(self, method: Any, row: Row) -> float:
        exactly = (row.method, row.step) in self._exactly
        return max(self._floor(method, row), 0.0 if exactly else self.uncertainty or 0.0) / 2


def _traced(problem: IVP) -> IVP:
    """Trace f of a problem of the library, which is written for it; a user's own is left alone."""
    inside = str(getattr(problem.f, "__module__", "")).startswith(problems.__name__)
    if not inside or np.iscomplexobj(problem.y0):
        return problem
    return problem.with_(f=traced_rhs(problem.f, problem.n, problem.params.size))


def _damps(tableau: Tableau) -> bool:
    """Whether |R(∞)| = |1 − bᵀA⁻¹𝟙| is clearly below 1: errors of multipliers are forgotten."""
    A, b, _ = tableau.arrays
    try:
        return bool(abs(1.0 - b @ np.linalg.solve(A, np.ones(b.size))) < UNDAMPED)
    except np.linalg.LinAlgError:  # an explicit first stage: the others have it from there
        return True


def _calls_for_digits(estimate: OrderEstimate, expected: int | None) -> bool:
    """Whether doubles have left the order open: none was found, it is none, or seems too high.

    Orders are integers unless the solution is not smooth, and where a leading error term is small
    the next one may rule down to round-off.
    """
    whole = _whole(estimate)
    if np.isfinite(estimate.stalled_at):
        return False  # something else than the arithmetic keeps the order from being seen
    if not {ROUNDING, REFERENCE} & set(estimate.marks):
        return bool(estimate.found and not whole)
    if not estimate.found:
        return True
    if not whole or expected is None:
        return not whole
    return bool(estimate.low > expected or (estimate.high < expected and _detour(estimate)))


def _detour(estimate: OrderEstimate) -> bool:
    """Whether the range is short and comes after a much steeper part.

    So it is where two error terms of opposite sign have just balanced: beyond, the slope comes
    from below and takes long to reach the order.
    """
    used = [k for k, mark in enumerate(estimate.marks) if mark == USED]
    before = [s for s in estimate.slopes[max(0, used[0] - 2) : used[0]] if np.isfinite(s)]
    steep = bool(before) and max(before) > estimate.high + STEEPER
    return steep and len(used) <= SHORT


def _whole(estimate: OrderEstimate) -> bool:
    """Whether there is an integer in the interval."""
    return bool(np.floor(estimate.high) >= np.ceil(estimate.low))


def _doubted(estimate: OrderEstimate, expected: int | None, smooth: bool = False) -> OrderEstimate:
    """Take back an order that is on its way: down, as long as it is no integer; or up.

    Below the order a fraction may be what a rough solution leaves of it, unless f is ``smooth``.
    """
    if expected is None or not estimate.found:
        return estimate
    between = not _whole(estimate)
    if estimate.low > expected and between:
        return _taken_back(estimate, "down")
    if estimate.high < expected and between and smooth:
        return _taken_back(estimate, "up")
    if estimate.high < expected and _detour(estimate):
        return _taken_back(estimate, "up", "the error has just changed its sign")
    return estimate


def _lost(estimate: OrderEstimate, rows: list[Row]) -> OrderEstimate:
    """Say that all steps are too long."""
    shortest = f"the shortest is {rows[-1].step:.3g}"
    reason = f"no step is short enough to follow the solution ({shortest})"
    return replace(estimate, reason=reason, obstacle=COARSE)


def _taken_back(estimate: OrderEstimate, way: str, why: str = "") -> OrderEstimate:
    """Claim no order: the slope is on its way up or down."""
    seen = f"{estimate} so far" + (", after steeper ones" if why else "")
    reason = f"the slope is still on its way {way} ({seen})" + (f": {why}" if why else "")
    if not why:
        reason += "; take shorter steps"
    nothing = float("nan")
    marks = tuple(OPEN if mark == USED else mark for mark in estimate.marks)
    return replace(
        estimate, order=nothing, low=nothing, high=nothing, marks=marks, reason=reason,
        obstacle=COARSE,
    )  # fmt: skip


def _in_vain(rows: list[Row]) -> bool:
    """Whether halving the step, again and again, leaves the error where it is."""
    last = [row.error for row in rows[-IN_VAIN:] if row.ok and row.error is not None]
    return len(last) == IN_VAIN and max(last) < (1 + UNMOVED) * min(last)


def _suspicious(curve: Curve) -> bool:
    """Whether to look for a cause: the order is too low, or the error falls too slowly for one."""
    if curve.expected is None or curve.verdict == "too low":
        return curve.expected is not None
    known = [(h, e) for h, e in zip(curve.steps, curve.errors) if e]
    if curve.estimate.found or len(known) < FEWEST or _below_floor(curve):
        return False
    return average_slope(known) < curve.expected - SHORTFALL


def _below_floor(curve: Curve) -> bool:
    """Whether the data end where round-off or the reference does: nothing is wrong with that."""
    return bool({ROUNDING, REFERENCE} & set(curve.estimate.marks))
