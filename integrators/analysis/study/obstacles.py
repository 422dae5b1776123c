"""What keeps an order from being seen, where nothing is wrong with the method.

A study that finds no order says why, and says it with evidence: the problem was refused; every run
is exact up to rounding; the steps that are short enough to be *stable* are so short that the error
is rounding already (stiffness, shown by |R(hλ)| for the eigenvalues λ of ∂f/∂y along the solution);
f jumps or bends along the solution. What is left is a slope that has not settled. Where an order is
*higher* than the method's, one step tells whether its leading error term vanishes on the problem
altogether, or only cancels over the interval, as over the period of a periodic solution.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...tableau import Tableau
from ..error.local import truncation_order
from ..error.one_step import is_implicit
from ..method.stability.amplification import StabilityFunction, as_stability_function
from ..problem.fields import Field
from .diagnosis import (
    CLASSICAL,
    Case,
    Finding,
    decaying_spectrum,
    events_with_resets,
    rough,
    too_long,
)
from .slopes import COARSE, GAP, REFERENCE, ROUNDING, SHORTFALL, average_slope

__all__ = ["explain", "explain_higher"]

FOLLOWS = 0.3  # relative error below which a run follows the solution
TINY = 1e-11  # relative error below which a run may be exact but for rounding
LONG = 0.125  # part of the interval that a step must have to prove that even long ones are exact
ENOUGH = 8  # stable steps that leave room for an order
ACCURATE = 1e-3  # relative error below which only stability asks for a shorter step
UNSTABLE = 1.01  # factor of a step beyond which a decaying component grows noticeably
PLACES = (0.15, 0.4, 0.65)  # parts of the interval at which a single step is looked at
FEW_DIGITS = 1e-25  # relative uncertainty of coefficients that many digits do not overcome
PERIODIC = 1e-6  # relative distance of the ends of a solution that has come back


def explain(case: Case) -> Finding | None:
    """Name what keeps the order of a study from being seen, with the evidence.

    Examples
    --------
    >>> from integrators.analysis import convergence
    >>> curve, = convergence("robertson", "RK4").curves
    >>> curve.verdict
    'stiff'
    """
    questions = [_refused, _exact, _unstable, _unresolved]
    if case.estimate.obstacle != REFERENCE:
        questions += [_not_smooth, _few_digits]
    for question in questions:
        found = question(case)
        if found is not None:
            return found
    return None


def _refused(case: Case) -> Finding | None:
    refused = [row for row in case.rows if row.status in ("refused", "missing")]
    if not refused or any(row.ok for row in case.rows):
        return None
    return Finding(
        "the method cannot treat this problem", refused[0].message, verdict=refused[0].status
    )


def _exact(case: Case) -> Finding | None:
    """Are all errors rounding, with long steps as with short ones?"""
    known = [e for e in case.errors if e is not None]
    length = abs(case.problem.t_span[1] - case.problem.t_span[0])
    if len(known) < len(case.errors) or not known or max(case.steps) < LONG * length:
        return None
    fallen = max(known) / max(known[-1], np.finfo(float).tiny)
    asked = (max(case.steps) / min(case.steps)) ** (case.expected / 2)
    rounding = set(case.estimate.marks) == {ROUNDING}
    if not rounding and (max(known) > TINY or fallen > asked):
        return None
    return Finding(
        "the method is exact on this problem",
        f"from h = {max(case.steps):.3g} to {min(case.steps):.3g} no error exceeds "
        f"{max(known):.1e}, which is rounding: all its error terms vanish here",
        "take a problem on which they do not",
        verdict="exact",
    )


def _unstable(case: Case) -> Finding | None:
    """Are the steps that fail those for which a decaying component is multiplied by |R| > 1?"""
    amplification, decaying = _amplification(case), decaying_spectrum(case)
    if amplification is None or decaying is None:
        return None
    lost = [row for row in case.rows if not row.ok or row.error is None or row.error > FOLLOWS]
    if not lost:
        return None
    shortest = min(row.step or 0.0 for row in lost)
    if case.problem.t_span[1] < case.problem.t_span[0]:
        return None
    factors = np.abs(amplification(shortest * decaying))
    k = int(np.argmax(factors))
    if not factors[k] > UNSTABLE:
        return None
    evidence = (
        f"∂f/∂y has an eigenvalue λ of size {abs(decaying[k]):.2g} along the solution; at "
        f"h = {shortest:.3g} a step multiplies its component, which should decay, by "
        f"|R(hλ)| = {factors[k]:.3g}"
    )
    left = [e for e in case.errors if e is not None and e <= FOLLOWS]
    if len(left) > ENOUGH and (case.estimate.obstacle == COARSE or left[0] > ACCURATE):
        return None  # there are stable steps in plenty, and something else in the way
    if left:
        evidence += (
            f"; at the longest stable step the error is {left[0]:.1e} already: "
            "stability limits the step, not accuracy"
        )
    return Finding(
        "stiffness", evidence, "take an implicit method, such as RADAU5", verdict="stiff"
    )


def _amplification(case: Case) -> StabilityFunction | None:
    if is_implicit(case.method):
        return None
    try:
        return as_stability_function(case.method)
    except (TypeError, ValueError):
        return None


def _unresolved(case: Case) -> Finding | None:
    """Is even the shortest step long beside the fast components?"""
    runs = zip(case.steps, case.errors, case.estimate.marks)
    known = [(h, e) for h, e, mark in runs if e and e <= FOLLOWS and mark != ROUNDING]
    slopes = [average_slope(pair) for pair in pairwise(known)]
    fell = bool(slopes) and np.median(slopes) >= case.expected - SHORTFALL
    if fell and case.estimate.obstacle != GAP:
        return None  # it is not in the way
    eigenvalues = decaying_spectrum(case)
    if eigenvalues is None:
        return None
    fastest = float(np.max(np.abs(eigenvalues)))
    steps = case.considered or list(case.steps)
    low, high = min(steps) * fastest, max(steps) * fastest
    if low < CLASSICAL or high < too_long(case):
        return None
    failed = next((row.message for row in reversed(case.rows) if not row.ok), "")
    evidence = (
        f"∂f/∂y has an eigenvalue λ of size {fastest:.2g} along the solution, so that h|λ| is "
        f"{low:.2g} to {high:.2g}: no step resolves the fast component"
    )
    return Finding(
        "stiffness",
        evidence + (f" ({failed})" if failed else ""),
        "a classical order shows for h|λ| well below 1; fixed steps that short are too many over "
        "this interval, an adaptive run is not",
        verdict="stiff",
    )


def _not_smooth(case: Case) -> Finding | None:
    found = events_with_resets(case) or _steep(case) or rough(case)
    if found is None:
        return None
    return Finding(found.cause, found.evidence, found.remedy, verdict="not smooth")


def _steep(case: Case) -> Finding | None:
    """Is ∂f/∂y infinite where the solution starts?"""
    problem = case.problem
    if problem.mass is not None or np.iscomplexobj(problem.y0):
        return None
    jacobian = Field(problem, problem.n).jacobian(problem.t_span[0], problem.y0)
    if np.all(np.isfinite(jacobian)):
        return None
    return Finding(
        "f is not smooth",
        f"∂f/∂y is infinite at t = {problem.t_span[0]:g}, where the solution starts: f has no "
        "Lipschitz constant there, and no Newton iteration begins",
        "start beside it",
    )


def _few_digits(case: Case) -> Finding | None:
    """Are the coefficients known too coarsely for runs with many digits?"""
    given = case.method._relative_uncertainty if isinstance(case.method, Tableau) else 0.0
    if case.estimate.obstacle != ROUNDING or given < FEW_DIGITS:
        return None
    return Finding(
        "coefficients of few digits",
        f"those of {case.method.name or 'the tableau'} are known to {given:.0e} only: errors near "
        "that are not the method's, however exact the arithmetic",
        "see whether longer steps show the order, or find more digits",
        verdict=ROUNDING,
    )


# -------------------------------------------------------------------- orders that are too high


def explain_higher(case: Case) -> Finding | None:
    """Say why errors fall faster than the order of the method lets expect; None if it has more."""
    if getattr(case.method, "order", 0) > case.expected:
        return None
    local = _local_slopes(case)
    shown = ", ".join(f"{slope}" for slope in local)
    if local and all(slope.low > case.expected + 1.25 for slope in local):
        return Finding(
            "the leading error term vanishes on this problem",
            f"the error of a single step falls like h to the power {shown}, where "
            f"{case.expected + 1} is the rule for order {case.expected}",
            "another problem, with more components or with t in f, shows the order of the method",
        )
    if any(case.expected + 1 in slope for slope in local):
        ends = [case.problem.y0, case.reference.y]
        periodic = ends[1] is not None and np.max(np.abs(ends[0] - ends[1])) <= PERIODIC * np.max(
            np.abs(ends[0])
        )
        return Finding(
            "periodic superconvergence" if periodic else "leading error terms cancel",
            f"the error of a single step falls like h to the power {shown}, as it should; over "
            + ("the period" if periodic else "the interval")
            + " the leading terms cancel, or nearly so",
            "look at the error along the way (measure='max'), and at shorter steps, which may "
            "show them",
        )
    return Finding(
        "the leading error term is small or vanishes on this problem",
        "the errors fall faster than with the order of the method in the whole range",
        "take shorter steps, which may show it",
    )


def _local_slopes(case: Case) -> list:
    (t0, t1), found = case.problem.t_span, []
    used = case.considered
    if case.problem.mass is not None or case.problem.events or len(used) < 2:
        return []
    longest = min(4 * max(used), 0.3 * abs(t1 - t0))
    steps = np.sign(t1 - t0) * longest * 2.0 ** (-np.arange(7) / 2)
    for place in PLACES:
        try:
            slope, _, _ = truncation_order(
                case.problem, case.method, steps, t=t0 + place * (t1 - t0)
            )
        except (ValueError, TypeError, RuntimeError):
            continue
        if slope.half <= 0.75:
            found.append(slope)
    return found
