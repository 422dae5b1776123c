"""Exercises whose answers the library can check, and say what is wrong with them.

Nothing here knows an answer by heart: each check computes what is asked for with the library, so
that the exercises of the notebooks stay right when their numbers are changed. A wrong answer gets
a hint, taken from what the analysis found, rather than the solution.

Checks are functions from an answer to a :class:`Grade`. :func:`number_check`, :func:`tableau_check`
and :func:`method_check` make them; teachers can register exercises of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import catalogue, problems
from ..errors import suggest
from ..solve import solve
from ..tableau import Tableau
from .error.euler_bounds import euler_bounds
from .method.order import error_norm, failing_conditions
from .method.stability.amplification import stability_function
from .method.stability.linear import a_stability, l_stability, stability_interval
from .study.convergence import convergence

__all__ = [
    "Exercise",
    "Grade",
    "exercises",
    "grade",
    "method_check",
    "number_check",
    "register_exercise",
    "tableau_check",
]

CLOSE = 1e-3  # relative: an answer with three digits is an answer


@dataclass(frozen=True)
class Grade:
    """Whether an answer is right, and what to say about it; true in an ``if`` when it is."""

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{'right' if self.passed else 'not yet'}: {self.message}"


Check = Callable[[Any], Grade]


@dataclass(frozen=True)
class Exercise:
    """A question and the function that checks its answer."""

    name: str
    question: str
    check: Check

    def __str__(self) -> str:
        return f"{self.name}: {self.question}"


_EXERCISES: dict[str, Exercise] = {}


def register_exercise(
    name: str, question: str, *, replace: bool = False
) -> Callable[[Check], Check]:
    """Make the decorated check an exercise.

    Examples
    --------
    >>> @register_exercise("two", "How many stages has Heun's method?")
    ... def two(answer):
    ...     return number_check(answer, 2, exact=True)
    >>> print(grade("two", 3))
    not yet: 3 is not right
    """
    if name in _EXERCISES and not replace:
        raise ValueError(f"there is an exercise {name!r} already; replace=True overwrites it")

    def add(check: Check) -> Check:
        _EXERCISES[name] = Exercise(name, question, check)
        return check

    return add


def exercises() -> list[Exercise]:
    """Return all exercises."""
    return list(_EXERCISES.values())


def grade(exercise: str, answer: Any) -> Grade:
    """Check an answer.

    Parameters
    ----------
    exercise
        Its name; :func:`exercises` lists them.
    answer
        A number, a tableau, a method; None if you have none yet.

    Returns
    -------
    Grade
        True or false in an ``if``; printed, it says why.

    Examples
    --------
    >>> print(grade("rk4-step", 0.06))
    not yet: 0.06 is not right; with it one step multiplies the solution by R(-3) = 1.375
    >>> bool(grade("rk4-step", 0.0557))
    True
    """
    if exercise not in _EXERCISES:
        known = list(_EXERCISES)
        raise ValueError(f"there is no exercise {exercise!r}{suggest(exercise, known)}")
    found = _EXERCISES[exercise]
    if answer is None:
        return Grade(False, f"no answer yet. {found.question}")
    return found.check(answer)


# -------------------------------------------------------------------- kinds of checks


def number_check(
    answer: Any, truth: float, *, exact: bool = False, hints: Mapping[float, str] | None = None
) -> Grade:
    """Compare a number with the right one.

    Parameters
    ----------
    answer, truth
        What was given, and what is right.
    exact
        Whether it must be equal; otherwise three digits are enough.
    hints
        Wrong answers that people give, and what to say about them.
    """
    try:
        value = float(answer)
    except (TypeError, ValueError):
        return Grade(False, f"expected a number, got {answer!r}")
    if not math.isfinite(value):
        return Grade(False, f"expected a finite number, got {value}")

    def equal(x: float) -> bool:
        return value == x if exact else math.isclose(value, x, rel_tol=CLOSE)

    if equal(truth):
        return Grade(True, f"{truth:.6g}")
    for wrong, hint in (hints or {}).items():
        if equal(wrong):
            return Grade(False, hint)
    if math.isclose(value, -truth, rel_tol=CLOSE):
        return Grade(False, "right but for the sign")
    # No direction: it would let a number be found by bisection.
    return Grade(False, f"{value:g} is not right")


def tableau_check(
    answer: Any,
    *,
    order: int,
    stages: int | None = None,
    explicit: bool | None = None,
    properties: Sequence[Callable[[Any], Any]] = (),
) -> Grade:
    """Judge a tableau: order, number of stages, class, and verdicts such as ``l_stability``."""
    if not isinstance(answer, Tableau):
        return Grade(False, f"expected a Tableau, got {type(answer).__name__}")
    if stages is not None and answer.stages > stages:
        return Grade(False, f"it has {answer.stages} stages; {stages} are enough")
    if explicit and not answer.is_explicit:
        return Grade(False, "it is not explicit: A must be zero on and above the diagonal")
    if answer.order < order:
        broken = [
            f"{formula}, but it is {float(condition.weight):.6g}"
            for condition, formula in failing_conditions(answer)
        ]
        return Grade(False, f"its order is {answer.order}: {broken[0]}")
    for judge in properties:
        verdict = judge(answer)
        if not verdict:
            return Grade(False, str(verdict))
    words = "".join(f", {judge(answer).name}" for judge in properties)
    return Grade(True, f"{answer.stages} stages, order {answer.order}{words}")


def method_check(answer: Any, *, order: int) -> Grade:
    """Measure the order of a method of one's own on a nonlinear, non-autonomous problem."""
    try:
        (curve,) = convergence("order_rational", answer, order=order).curves
    except (TypeError, ValueError) as error:
        return Grade(False, str(error))
    if curve.ok and curve.estimate.high >= order:
        return Grade(True, f"observed order {curve.estimate}")
    failed = [row.message for row in curve.rows if not row.ok]
    if curve.findings:
        return Grade(False, f"observed order {curve.estimate}; {curve.findings[0]}")
    return Grade(False, failed[0] if failed else str(curve.estimate))


def _is_number(answer: Any) -> bool:
    return isinstance(answer, int | float) and math.isfinite(answer)


# -------------------------------------------------------------------- Euler and its error

EULER_TOLERANCE = 1e-2


def _euler_error(steps: int) -> float:
    problem = problems.get("linear_growth")
    solution = solve(problem, method="ExplicitEuler", step=1.0 / steps)
    exact: Any = problem.exact
    return float(np.max(np.abs(solution.y - exact(solution.t))))


def _smallest(holds: Callable[[int], bool]) -> int:
    """The smallest n ≥ 1 for which something holds that then goes on to hold."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@register_exercise(
    "euler-steps",
    "What is the smallest number of Euler steps with which y' = ty + t, y(0) = 1, has an error "
    f"of at most {EULER_TOLERANCE:g} everywhere on [0, 1]?",
)
def _euler_steps(answer: Any) -> Grade:
    truth = _smallest(lambda n: _euler_error(n) <= EULER_TOLERANCE)
    problem = problems.get("linear_growth")
    safe = _smallest(
        lambda n: euler_bounds(problem, n, L=1.0).largest["exponential"] <= EULER_TOLERANCE
    )
    hint = "so many are enough by the bound; the true error is smaller, look at that"
    verdict = number_check(answer, truth, exact=True, hints={safe: hint})
    if verdict or verdict.message == hint or not isinstance(answer, int) or answer < 1:
        return verdict
    return Grade(False, f"{verdict.message}; with it the error is {_euler_error(answer):.3g}")


@register_exercise(
    "euler-bound",
    "Which bound (e^{L(b−a)} − 1 form) of Euler's error does y' = ty + t on [0, 1] have for "
    "N = 40, with L = 1?",
)
def _euler_bound(answer: Any) -> Grade:
    bounds = euler_bounds(problems.get("linear_growth"), 40, L=1.0).largest
    hints = {
        bounds["geometric (A^N)"]: "this is the form with A^N; (1 + hL)^N ≤ e^{L(b−a)}",
        bounds["exponential, coarse"]: "this is the form without −1; the one asked for is sharper",
    }
    return number_check(answer, bounds["exponential"], hints=hints)


@register_exercise(
    "second-order-step",
    "Write a class with `order = 2` and `step(self, f, t, y, h)` that has order 2.",
)
def _second_order(answer: Any) -> Grade:
    return method_check(answer() if isinstance(answer, type) else answer, order=2)


# -------------------------------------------------------------------- Runge–Kutta


@register_exercise(
    "best-gamma",
    "Which γ of the two-stage family has the smallest principal error norm A⁽³⁾?",
)
def _best_gamma(answer: Any) -> Grade:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda g: error_norm(catalogue.rk2(float(g))), bounds=(0.3, 2.0), method="bounded",
        options={"xatol": 1e-6},
    )  # fmt: skip
    verdict = number_check(answer, float(found.x))
    if verdict or not _is_number(answer) or answer == 0:
        return verdict
    norm = error_norm(catalogue.rk2(answer))
    return Grade(False, f"its A⁽³⁾ is {norm:.4f}; the smallest is {found.fun:.4f}")


@register_exercise(
    "third-order",
    "Design an explicit tableau with three stages and order 3.",
)
def _third_order(answer: Any) -> Grade:
    return tableau_check(answer, order=3, stages=3, explicit=True)


MISPRINTED = ((), ("1/3",), ("-1/3", -1), (1, -1, 1))  # the 3/8 rule, with −1 in place of 1


@register_exercise(
    "repair",
    "Change one coefficient of the misprinted 3/8 rule so that it has order 4.",
)
def _repair(answer: Any) -> Grade:
    verdict = tableau_check(answer, order=4, stages=4, explicit=True)
    if not verdict:
        return verdict
    given = [float(Fraction(x)) for row in MISPRINTED for x in row] + [1 / 8, 3 / 8, 3 / 8, 1 / 8]
    A, b, _ = answer.arrays
    yours = [A[i, j] for i in range(4) for j in range(i)] + list(b)
    changed = sum(abs(x - y) > 1e-9 for x, y in zip(given, yours))
    if changed != 1:
        return Grade(False, f"of order 4, but {changed} coefficients of the 3/8 rule are changed")
    return verdict


# -------------------------------------------------------------------- stiffness

DECAY = 50.0


@register_exercise(
    "rk4-step",
    f"What is the longest step with which RK4 is stable on y' = −{DECAY:g} y?",
)
def _rk4_step(answer: Any) -> Grade:
    truth = stability_interval("RK4").value / DECAY
    verdict = number_check(answer, truth)
    if verdict or not _is_number(answer):
        return verdict
    z = -DECAY * float(answer)
    factor = stability_function("RK4")(z)
    return Grade(
        False,
        f"{verdict.message}; with it one step multiplies the solution by "
        f"R({z:.4g}) = {complex(factor).real:.4g}",
    )


@register_exercise(
    "l-stable",
    "Find γ for which the tableau A = [[γ, 0], [1−γ, γ]], b = [1−γ, γ] has order 2 and is "
    "L-stable. Pass it as a number, or as a string such as '(3-sqrt(3))/6'.",
)
def _l_stable(answer: Any) -> Grade:
    # Σ bᵢ cᵢ = 1/2 reads γ² − 2γ + 1/2 = 0: a decimal number near a root stands for the root.
    roots = ("1-sqrt(1/2)", "1+sqrt(1/2)")
    if _is_number(answer):
        near = [r for r, x in zip(roots, (1 - 0.5**0.5, 1 + 0.5**0.5)) if abs(answer - x) < CLOSE]
        answer = near[0] if near else answer
    try:
        text = f"({answer})"
        tableau = Tableau([[text], [f"1-{text}", text]], [f"1-{text}", text], name="yours")
    except (TypeError, ValueError) as error:
        return Grade(False, str(error))
    if tableau.order < 2:
        return tableau_check(tableau, order=2)
    verdict = l_stability(tableau)
    return Grade(bool(verdict), str(verdict))


@register_exercise(
    "a-not-l",
    "Name a scheme of the catalogue, of order 4 or more, that is A-stable but not L-stable.",
)
def _a_not_l(answer: Any) -> Grade:
    if not isinstance(answer, str | Tableau):
        return Grade(False, f"expected the name of a scheme, got {answer!r}")
    try:
        tableau = catalogue.get(answer) if isinstance(answer, str) else answer
    except ValueError as error:
        return Grade(False, str(error))
    if tableau.order < 4:
        return Grade(False, f"its order is {tableau.order}")
    stable, damped = a_stability(tableau), l_stability(tableau)
    return Grade(bool(stable) and not damped, f"{stable}; {damped}")
