"""Why a method falls short of its order: experiments, each of which can name a cause.

Two questions come first. *Is it the method?* One step on the problems of :mod:`probes` measures
its order conditions, whatever it is written in; the pattern of those that fail tells a wrong
weight from a stage at the wrong time or a Newton iteration too few. *Is it the problem?* If all
conditions hold, the reference, stiffness and smoothness are looked at. Every finding carries its
evidence, so that it can be doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvals

from ... import catalogue
from ...methods.multistep import Multistep
from ...methods.multistep.engine import starter_of
from ...methods.precise import BRANCHES
from ...problem import IVP
from ...tableau import Tableau
from ..method.multistep import zero_stability
from ..method.probes import HIGHEST, MeasuredWeight, damping, measured_weights
from ..method.stability.linear import stability_interval
from ..problem.fields import Field
from .reference import SPREAD, TIGHT_RTOL, Reference, known_stiff, solved_tightly
from .runs import Row
from .slopes import OrderEstimate, estimate_order

__all__ = ["NO_CAUSE", "Case", "Finding", "diagnose", "diagnose_coefficients"]

Array = NDArray[np.float64]

SAMPLES, FEWEST_SAMPLES, LARGE = 33, 3, 1000  # times at which ∂f/∂y is looked at: LARGE/n
STIFF = 2.0  # h·|λ| beyond which a step of low order is governed by stiffness
CLASSICAL = 0.1  # h·|λ| below which it is not
MESH = 256  # intervals on which smoothness is tested, then twice as many
ABOUT, CLOSE_MESH, CLOSER = 6, 24, 5  # cells to each side of a rough place, their mesh, how often
ROUGH = 1.5  # growth of a scaled difference under refinement that a smooth function cannot show
ROUGHENING = BRANCHES | {"sqrt", "pow"}  # operations without which a formula is smooth
INFINITE = 1e14  # size of an eigenvalue of a pencil that is infinite but for rounding
DOMINANT = 3.0  # size of a decaying eigenvalue over the growth beside it that makes a problem stiff
FAR_LEFT = -1e3  # where implicit methods differ from explicit ones
NO_CAUSE = "no cause found"
MISPRINTS = 2  # coefficients in which a tableau may differ from one that it is taken for


@dataclass(frozen=True)
class Finding:
    """A likely cause, what speaks for it, and what to do."""

    cause: str
    evidence: str
    remedy: str = ""
    verdict: str = ""  # what it makes of a study without an order, in a word

    def __str__(self) -> str:
        return f"{self.cause}: {self.evidence}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Case:
    """What a diagnosis looks at: a method that was run on a problem with several step sizes."""

    problem: IVP
    method: Any
    expected: int
    estimate: OrderEstimate
    rows: tuple[Row, ...]
    ends: tuple[NDArray[Any] | None, ...] = field(repr=False)
    reference: Reference = field(repr=False)

    @property
    def steps(self) -> tuple[float, ...]:
        """Step sizes, longest first."""
        return tuple(row.step or 0.0 for row in self.rows)

    @property
    def errors(self) -> tuple[float | None, ...]:
        """The error at each; None at a gap."""
        return tuple(row.error if row.ok else None for row in self.rows)

    @property
    def considered(self) -> list[float]:
        """Steps of the asymptotic range, or all that ran if there is none."""
        used = [h for h, mark in zip(self.steps, self.estimate.marks) if mark == "used"]
        return used or [h for h, e in zip(self.steps, self.errors) if e is not None]


def diagnose(case: Case) -> tuple[Finding, ...]:
    """Look for the reasons why the observed order falls short; the likeliest first.

    Examples
    --------
    >>> from integrators.analysis import convergence
    >>> class Late:
    ...     order = 2
    ...     def step(self, f, t, y, h):  # the second stage belongs to t + h
    ...         k1 = h * f(t, y)
    ...         return y + (k1 + h * f(t, y + k1)) / 2
    >>> curve, = convergence("minus_2ty2", Late()).curves
    >>> curve.findings[0].cause
    'a stage is evaluated at the wrong time'
    """
    sound = isinstance(case.method, Tableau) and case.method.order >= case.expected
    for questions in (PROBLEM,) if sound else (METHOD, PROBLEM):
        findings = [found for question in questions if (found := question(case)) is not None]
        if findings:
            return tuple(findings)
    if not case.estimate.found:
        return ()
    return (
        Finding(
            NO_CAUSE,
            f"all order conditions up to {min(case.expected, HIGHEST)} hold, the reference agrees "
            "with a second computation, and f is neither stiff nor rough at these steps",
            "try shorter steps, and another problem",
        ),
    )


def diagnose_coefficients(case: Case) -> tuple[Finding, ...]:
    """Look at the coefficients alone, where no order was expected: is it nearly a known scheme?

    Examples
    --------
    >>> from integrators.analysis import convergence
    >>> def mine(f, t, y, h):
    ...     k1 = f(t, y)
    ...     k2 = f(t + h / 2, y + h / 2 * k1)
    ...     k3 = f(t + h / 2, y + h / 3 * k2)
    ...     k4 = f(t + h, y + h * k3)
    ...     return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    >>> curve, = convergence("minus_2ty2", mine).curves
    >>> print(curve.estimate, curve.findings[0].evidence)
    1.01 ± 0.05 RK4 of the catalogue, of order 4, differs only in this: a32 is 1/2 there, 1/3 here
    """
    found = (question(case) for question in (_misprint, _row_sums))
    return tuple(finding for finding in found if finding is not None)


def _tableau(case: Case) -> Tableau | None:
    """The tableau that the method is, or that was read from a student's function."""
    method = case.method
    read = method if isinstance(method, Tableau) else getattr(method, "tableau", None)
    return read if isinstance(read, Tableau) else None


# -------------------------------------------------------------------- is it the method?


def _misprint(case: Case) -> Finding | None:
    """Compare a tableau with the catalogue: the same but for a coefficient or two?"""
    tableau = _tableau(case)
    if tableau is None:
        return None
    ours = _coefficients(tableau)
    best: tuple[int, str, list[str]] | None = None
    for entry in catalogue.entries():
        if entry.stages != tableau.stages or entry.order < tableau.order:
            continue
        theirs = _coefficients(entry.tableau)
        different = [
            f"{name} is {_exact(theirs[name])} there, {_exact(ours[name])} here"
            for name in ours
            if abs(float(ours[name]) - float(theirs[name])) > 1e-9
        ]
        if not different:
            return None  # a scheme in its own right
        if entry.order == tableau.order:
            continue
        if len(different) <= MISPRINTS and (best is None or len(different) < best[0]):
            best = len(different), entry.name, different
    if best is None:
        return None
    _, name, different = best
    order = catalogue.entry(name).order
    return Finding(
        "a misprinted coefficient",
        f"{name} of the catalogue, of order {order}, differs only in this: {'; '.join(different)}",
        "check it against the source",
    )


def _coefficients(tableau: Tableau) -> dict[str, Any]:
    names = {f"b{i + 1}": x for i, x in enumerate(tableau.b)}
    for i, row in enumerate(tableau.A):
        names |= {f"a{i + 1}{j + 1}": x for j, x in enumerate(row)}
    return names


def _exact(x: Any) -> str:
    text = str(x)
    return text if len(text) <= 12 else f"{float(x):.6g}"


def _row_sums(case: Case) -> Finding | None:
    """Do the nodes of a tableau belong to its stages?"""
    tableau = _tableau(case)
    if tableau is None:
        return None
    A, _, c = tableau.arrays
    for i, (total, node) in enumerate(zip(A.sum(axis=1), c)):
        if abs(total - node) > 1e-9:
            exact = sum(tableau.A[i])
            return Finding(
                "a row of A does not add up to its node",
                f"row {i + 1} adds up to {_exact(exact)}, but c{i + 1} is "
                f"{_exact(tableau.c[i])}: the stage belongs to another time",
                "one of its coefficients, or the node, is wrong",
            )
    return None


def _conditions(case: Case) -> Finding | None:
    """Measure the order conditions by one step, and read the pattern of those that fail."""
    if isinstance(case.method, Multistep):
        return None  # one step alone would be its starter's
    highest = min(case.expected, HIGHEST)
    state = measured_weights(case.method, highest)
    time = measured_weights(case.method, highest, autonomous=False)
    if state is None or time is None:
        return None
    wrong = [w for w in state if not w.holds]
    late = [w for w in time if not w.holds]
    if not wrong and not late:
        return None
    single = min(w.order for w in wrong + late) - 1
    if case.estimate.found and case.estimate.low > single + 0.5:
        return Finding(
            "a start of low order",
            f"the first step has order {single} ({min(wrong + late, key=lambda w: w.order)}), "
            f"while the whole run shows {case.estimate.order:.2f}: later steps are better",
            f"an error of the first step limits the order to {single + 1}; "
            "start with a method that is at most one order below",
        )
    if not wrong or min(w.order for w in late or wrong) < min(w.order for w in wrong):
        first = min(late, key=lambda w: w.order)
        return Finding(
            "a stage is evaluated at the wrong time",
            f"with the time as a state all conditions of order {first.order} hold; with t in f, "
            f"{first}",
            "evaluate stage i at t + cᵢh, where cᵢ is the sum of row i of A",
        )
    return _pattern(case, wrong)


def _pattern(case: Case, wrong: Sequence[MeasuredWeight]) -> Finding:
    """Read which order conditions of an autonomous problem fail."""
    lowest = min(w.order for w in wrong)
    first = [w for w in wrong if w.order == lowest]
    evidence = f"order condition of order {lowest}: {first[0]}"
    if lowest == 1:
        return Finding(
            "the weights do not add up to 1",
            f"y' = 1 is integrated with slope {first[0].weight:.6g}",
            "divide the weights by their sum, or look for the one that is wrong",
        )
    implicit = _is_implicit(case)
    if implicit is False and _tall(wrong) and isinstance(case.method, Tableau) is False:
        sweeps = min(w.order for w in wrong if w.is_linear) - 1
        depth = [w for w in wrong if w.is_linear]
        if depth and abs(depth[0].weight) < 1e-9 and sweeps < case.expected:
            return Finding(
                f"no more than {sweeps} evaluations of f build on each other",
                f"{depth[0]}; one step of y' = λy is a polynomial in hλ of degree {sweeps}",
                f"order {case.expected} needs {case.expected} of them: a stage is missing, or the "
                "iteration for an implicit stage ended too early",
            )
    if not any(w.is_linear for w in wrong) and implicit:
        return Finding(
            "the stage equations are not solved to the end",
            f"all conditions that linear problems see hold, but {first[0]}",
            "iterate Newton's method until it has converged: one iteration is exact for linear "
            "problems only",
        )
    if any(w.is_quadrature for w in first):
        shown = next(w for w in first if w.is_quadrature)
        power = "²³⁴⁵"[lowest - 3] if lowest > 2 else ""
        return Finding(
            "wrong weights or nodes",
            f"order condition Σ bᵢ cᵢ{power} = {shown.target}: {shown.weight:.6g}",
            "bᵢ and cᵢ (the row sums of A) are no quadrature formula of this order",
        )
    return Finding(
        "wrong coefficients inside the stages",
        f"weights and nodes fit, but {evidence}",
        "look at the matrix A",
    )


def _tall(wrong: Sequence[MeasuredWeight]) -> bool:
    return any(w.is_linear for w in wrong)


def _is_implicit(case: Case) -> bool | None:
    """Whether one step stays bounded far left in the complex plane; None if it fails there."""
    factor = damping(case.method, FAR_LEFT)
    return None if factor is None else abs(factor) < 2.0


# -------------------------------------------------------------------- is it the problem?


def _wrong_reference(case: Case) -> Finding | None:
    """Do the solutions converge, but to something else?"""
    known = [
        (h, y) for h, y in zip(case.steps, case.ends) if y is not None and np.all(np.isfinite(y))
    ]
    if len(known) < 4 or case.reference.y is None:
        return None
    known.sort(key=lambda pair: -pair[0])
    scale = float(np.max(np.abs(known[-1][1]))) or 1.0
    differences = [float(np.max(np.abs(a - b))) / scale for (_, a), (_, b) in pairwise(known)]
    itself = estimate_order([h for h, _ in known[:-1]], differences, 1e-13)
    if not itself.found or itself.high < case.expected:
        return None
    gap = case.reference.error(known[-1][1])
    if gap is None or gap < 10 * differences[-1]:
        return None
    _, trusted = solved_tightly(case.problem, known_stiff(case.problem), SPREAD * TIGHT_RTOL)
    agrees = (
        trusted.success
        and float(np.max(np.abs(trusted.y[:, -1] - known[-1][1]))) / scale < gap / 10
    )
    evidence = (
        f"among themselves the solutions converge with order {itself}, but to a state that is "
        f"{gap:.1e} away from the reference"
    )
    if agrees:
        return Finding(
            "the reference is wrong or too inaccurate",
            f"{evidence}; an independent computation agrees with the method",
            "check the exact solution, or leave it out and have a reference computed",
        )
    return Finding("it converges to something else", evidence, "is this the same equation?")


def _order_reduction(case: Case) -> Finding | None:
    """Is the step governed by stiffness?"""
    eigenvalues = decaying_spectrum(case)
    if eigenvalues is None:
        return None
    left = float(np.max(np.abs(eigenvalues)))
    low, high = min(case.considered) * left, max(case.considered) * left
    if low < CLASSICAL or high < too_long(case):
        return None  # the shortest steps resolve λ: the order that they show is the classical one
    evidence = f"an eigenvalue λ of ∂f/∂y has size {left:.2g}, h|λ| is {low:.2g} to {high:.2g}"
    if isinstance(case.method, Tableau):
        stage_order = case.method.simplifying_assumptions()[1]
        evidence += f"; the stage order of {case.method.name or 'the method'} is {stage_order}"
    return Finding(
        "order reduction by stiffness",
        evidence,
        "the classical order appears for h|λ| well below 1 only; a method of higher stage order "
        "(Radau IIA, Lobatto IIIC) loses less",
    )


def too_long(case: Case) -> float:
    """Return h·|λ| beyond which a step is governed by stiffness.

    The first p terms of the exponential series follow exp(z) to |z| of about p: with high orders
    such steps are accuracy's.
    """
    return max(STIFF, float(case.expected))


def rough(case: Case) -> Finding | None:
    """Do scaled differences of f along the solution grow under refinement, however far it goes?

    A formula without branches is smooth. Otherwise differences on a mesh are compared with those
    on one of half the width, over the whole interval first and then closer and closer about the
    place where they are largest: those of a function that is steep, but smooth, stop growing.
    """
    k = min(case.expected, 4)
    span, intervals, where = sorted(case.problem.t_span), MESH, 0.0
    growths: list[float] = []
    for closer in range(CLOSER + 1):
        sizes = []
        for count in (intervals, 2 * intervals):
            times = np.linspace(span[0], span[1], count + 1)
            sampled = _along(case, times)
            if sampled is None:
                return None
            f = sampled[0]
            if f.traced is not None and not (ROUGHENING & set(f.graph.ops)):
                return None
            values = f.values(sampled[1], sampled[2])
            differences = np.max(np.abs(np.diff(values, k, axis=0)), axis=1)
            if not np.all(np.isfinite(differences)):
                return None
            sizes.append(float(np.max(differences)) * count**k)
            at = int(np.argmax(differences))
        if np.max(differences) < 1e3 * np.finfo(float).eps * np.max(np.abs(values)):
            if closer and f.traced is not None and BRANCHES & set(f.graph.ops):
                break  # noise from here on; f is known to have branches, and growth was seen
            return None
        growths.append(sizes[1] / max(sizes[0], np.finfo(float).tiny))
        if growths[-1] < ROUGH:
            return None
        where = float(times[at] + k / 2 * (times[1] - times[0]))
        near = ABOUT * (times[1] - times[0])
        first, last = sorted(case.problem.t_span)
        span = [max(first, where - near), min(last, where + near)]
        intervals = CLOSE_MESH
    growth = float(np.median(growths))  # a single one depends on where the mesh lies
    jumping = max(0, round(k - np.log2(growth)))
    what = "f itself jumps" if jumping == 0 else f"derivative {jumping} of f is not continuous"
    return Finding(
        "f is not smooth",
        f"{what} along the solution near t = {where:.4g}: differences of order {k} grow by "
        f"{growth:.2g} when the mesh is halved",
        f"let a step end there (tstops=[{where:.4g}], or an event); an order above "
        f"{jumping + 1} cannot be seen across it",
    )


def events_with_resets(case: Case) -> Finding | None:
    """Do events change the state?"""
    if not any(event.reset is not None for event in case.problem.events):
        return None
    return Finding(
        "events with resets",
        "the times of events are found by the dense output, which can be of lower order than a "
        "method of order 9 and more",
        "see Solution.dense_order",
    )


def _algebraic(case: Case) -> Finding | None:
    if case.problem.mass is None:
        return None
    index = 1 if case.problem.index is None else max(1, int(case.problem.index.max()))
    return Finding(
        "a differential-algebraic equation",
        f"its index is {index}; the order of algebraic components is below that of the method for "
        "most methods (Radau IIA with s stages: 2s−1 for index 1, s for the variables of index 2)",
        "measure a differential component: measure='y0'",
    )


def decaying_spectrum(case: Case) -> NDArray[np.complex128] | None:
    """Eigenvalues of ∂f/∂y along the solution that decay fast beside what grows; None without.

    Where components grow as fast as others decay, as in a close encounter of two bodies, the
    solution itself is fast: that takes short steps, and is not stiffness.
    """
    mass, index = case.problem.mass, case.problem.index
    if mass is not None and index is not None and np.max(index) > 1:
        return None
    few = max(FEWEST_SAMPLES, min(SAMPLES, LARGE // case.problem.n))
    sampled = _along(case, np.linspace(*case.problem.t_span, few), constrained=True)
    if sampled is None:
        return None
    jacobians = sampled[0].jacobians(sampled[1], sampled[2])
    jacobians = jacobians[np.isfinite(jacobians).all(axis=(1, 2))]
    if not len(jacobians):
        return None
    if mass is None:
        eigenvalues = np.asarray(np.linalg.eigvals(jacobians), dtype=np.complex128)
    else:  # of the pencil J − λM; algebraic components have infinite ones
        M = mass.toarray() if hasattr(mass, "toarray") else np.asarray(mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            eigenvalues = np.array([eigvals(J, M) for J in jacobians])
        eigenvalues[~(np.abs(eigenvalues) < INFINITE)] = 0.0
    growth = np.maximum(eigenvalues.real, 0.0).max(axis=1, keepdims=True)
    fast = (eigenvalues.real < 0) & (np.abs(eigenvalues) > DOMINANT * growth)
    return eigenvalues[fast] if fast.any() else None


def _along(
    case: Case, times: Array, constrained: bool = False
) -> tuple[Field, Array, Array] | None:
    """Return f and the reference at these times, if both are known and real."""
    problem = case.problem
    if (
        (problem.mass is not None and not constrained)
        or np.iscomplexobj(problem.y0)
        or case.reference.along is None
    ):
        return None
    try:
        states = case.reference.along(times).T
    except ValueError:
        return None
    slope = problem if problem.mass is None else problem.with_(mass=None, index=None)
    return Field(slope, problem.n), times, states


def _multistep(case: Case) -> Finding | None:
    """Is it the roots of ρ, or the start, of a multistep method?"""
    method = case.method
    if not isinstance(method, Multistep):
        return None
    stable = zero_stability(method)
    if not stable:
        return Finding("it is not zero-stable", stable.reason, "no step is short enough for it")
    order = getattr(starter_of(method), "order", None)
    if isinstance(order, int) and order < method.order - 1:
        return Finding(
            "the starter has too low an order",
            f"the first {method.steps - 1} steps have errors of order {order + 1} each",
            f"order {method.order} needs a starter of order {method.order - 1} at least",
        )
    on_circle = sum(abs(abs(root) - 1) < 1e-9 for root, _ in stable.certificate["roots"])
    if on_circle > 1 and not stability_interval(method):
        return Finding(
            "weak stability",
            f"ρ has {on_circle} roots on the unit circle, and no negative hλ is stable: where the "
            "solution decays, errors of the first steps and rounding errors grow",
            "shorter intervals, or a method whose other roots are inside, such as Adams'",
        )
    return None


Question = Callable[[Case], Finding | None]
METHOD: tuple[Question, ...] = (_misprint, _row_sums, _conditions, _multistep)
PROBLEM: tuple[Question, ...] = (
    _wrong_reference,
    _algebraic,
    _order_reduction,
    rough,
    events_with_resets,
)
