"""Kinds of checks: what is compared with what, and what is said about a wrong answer.

Truths are computed by the library from expressions in the lab's file, with the numbers of the
student. A wrong number gets a hint if it is a mistake that people make, and never a direction: too
large, too small would let a number be found by bisection. A function is called on problems that it
has not seen, through a pipe (:mod:`submission`), with numbers drawn from the seed of the lab.
``own = true`` is the business of :mod:`grading`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from integrators import IVP, Multistep, Tableau, analysis, catalogue, problems, solve, traced
from integrators.analysis import Grade
from integrators.analysis.method.order import failing_conditions
from integrators.methods.user.plain_function import tableau_of

from .definition import Lab, Task
from .serving import plain_data
from .submission import SubmissionError

__all__ = ["KINDS", "assess"]

CLOSE = 1e-3
SHOWN = 60  # characters of an answer that are repeated
VARIED = 0.02  # by which a start is changed, relative
STEPS = (0.2, 0.1, 0.05, 0.025)  # of a single step whose order is measured
SLOPE = 0.35  # by which a measured order may differ from an integer
DETERMINANT = 1e-6  # of a symplectic map, less 1, by differences


def assess(lab: Lab, task: str, value: Any, student: str = "") -> Grade:
    """Check the answer to a task.

    Parameters
    ----------
    lab, task
        The lab, and the name of one of its tasks.
    value
        A number, a list of numbers, a tableau, a multistep method, a function; None for no answer.
    student
        Whose numbers count.

    Examples
    --------
    >>> from featherstep.lab import load_lab
    >>> lab = load_lab("euler")
    >>> print(assess(lab, "bound", "big", "ada"))
    not yet: expected a number, got 'big'
    """
    question = lab.tasks[task]
    if (not callable(value) and not isinstance(value, dict)) or isinstance(
        value, Tableau | Multistep
    ):
        value = plain_data(value)
    if value is None:
        return Grade(False, f"no answer: {question.variable} is missing or None")
    if isinstance(value, dict) and "unknown" in value:
        return Grade(False, f"{question.variable} is a {value['unknown']}, which cannot be checked")
    try:
        return KINDS[question.check](Question(lab, question, student), value)
    except SubmissionError as error:
        return Grade(False, str(error))


class Question:
    """A task with the numbers of a student."""

    def __init__(self, lab: Lab, task: Task, student: str) -> None:
        self.lab, self.task, self.student = lab, task, student
        self.settings = task.settings
        self.numbers = lab.numbers(student)
        #: For what a check chooses: the same in every run, and nobody knows it beforehand.
        self.random = random.Random("\0".join((lab.seed, lab.name, task.name, student)))

    def truth(self, key: str = "answer", **more: Any) -> Any:
        """Evaluate an expression of the lab's file."""
        return self.evaluated(self.settings[key], **more)

    def evaluated(self, expression: Any, **more: Any) -> Any:
        """Evaluate text as Python; numbers stand for themselves."""
        if not isinstance(expression, str):
            return expression
        names = {"np": np, "math": math, "solve": solve, "problems": problems, "IVP": IVP,
                 "catalogue": catalogue, "analysis": analysis, "Tableau": Tableau,
                 "Multistep": Multistep, "traced": traced}  # fmt: skip
        return eval(self.lab.filled(expression, self.student), {**names, **self.numbers, **more})


# -------------------------------------------------------------------- numbers


def _number(question: Question, value: Any) -> Grade:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Grade(False, f"expected a number, got {str(value)[:SHOWN]!r}")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        return Grade(False, f"expected a finite number, got {value}")
    exact, tolerance = question.settings.get("exact", False), _tolerance(question)
    truth = float(question.truth())
    if _near(value, truth, exact, tolerance):
        return Grade(True, f"{value:.6g}")
    for expression, hint in question.settings.get("hints", {}).items():
        wrong = float(question.evaluated(expression))
        if _near(value, wrong, exact, tolerance):
            return Grade(False, str(hint))
    if truth and _near(-value, truth, exact, tolerance):
        return Grade(False, "right but for the sign")
    return Grade(False, f"{value:.6g} is not right")


def _numbers(question: Question, value: Any) -> Grade:
    truth = np.asarray(question.truth(), dtype=float)
    if callable(value) or isinstance(value, str | dict):
        return Grade(False, f"expected {truth.size} numbers")
    found = np.asarray(value, dtype=float)
    if found.shape != truth.shape:
        return Grade(False, f"expected numbers of shape {truth.shape}, got {found.shape}")
    wrong = np.abs(found - truth) > _tolerance(question) * np.maximum(np.abs(truth), 1e-300)
    if not np.any(wrong) and np.isfinite(found).all():
        return Grade(True, f"all {truth.size} numbers")
    return Grade(False, f"{int(np.sum(wrong))} of {truth.size} numbers are not right")


def _near(value: float, other: float, exact: bool, tolerance: float) -> bool:
    return value == other if exact else math.isclose(value, other, rel_tol=tolerance)


def _tolerance(question: Question) -> float:
    return float(question.settings.get("tolerance", CLOSE))


# -------------------------------------------------------------------- functions


def _function(question: Question, value: Any) -> Grade:
    """Compare a function with an expression at points that it has not seen."""
    if not callable(value):
        return Grade(False, f"expected a function {question.task.variable}(…), got {value!r}")
    tolerance = float(question.settings.get("tolerance", 1e-6))
    for arguments in question.truth("arguments"):
        truth = np.asarray(question.truth(x=arguments), dtype=float)
        try:
            found = np.asarray(value(*arguments), dtype=float)
        except (TypeError, ValueError) as error:
            return Grade(False, f"it returned something that is no number: {error}")
        if found.size != truth.size:
            return Grade(False, f"it returns {found.size} numbers in place of {truth.size}")
        off = np.max(np.abs(found.ravel() - truth.ravel()))
        if not off <= tolerance * max(1.0, float(np.max(np.abs(truth)))):
            shown = ", ".join(str(np.round(a, 4).tolist()) for a in arguments)
            return Grade(False, f"its value for {shown} is not right")
    return Grade(True, "right at all points")


def _step(question: Question, value: Any) -> Grade:
    """Read the coefficients of step(f, t, y, h) from outside, or measure its order."""
    if not callable(value):
        return Grade(False, f"expected a function {question.task.variable}(f, t, y, h)")
    order, most = int(question.truth("order")), question.settings.get("evaluations")
    counted = 0

    known = Known(question.random)

    def f(t: float, y: Any) -> Any:
        nonlocal counted
        counted += 1
        return known.slope(t, y)

    _shaped(value(f, 0.4, known.solution(0.4), 0.1))
    if counted == 0:
        return Grade(False, "a step does not call f")
    if most is not None and counted > int(question.truth("evaluations")):
        return Grade(False, f"a step calls f {counted} times; {most} are enough")
    if question.settings.get("damps"):
        end = _shaped(value(lambda t, y: -1e3 * (y - np.cos(t)), 0.0, np.array([2.0, -1.0]), 0.1))
        if not np.max(np.abs(end - 1.0)) < 0.1:
            return Grade(False, "on y' = −1000 (y − cos t) with h = 0.1 it does not damp")
    if question.settings.get("symplectic"):
        return _symplectic(question, value, order)
    tableau = tableau_of(value)
    if tableau is not None:
        if tableau.order < order:
            return Grade(False, f"its order is {tableau.order}: {_broken(tableau)}")
        if "weights" in question.settings:
            asked = np.asarray(question.truth("weights"), dtype=float)
            if tableau.stages != asked.size or np.max(np.abs(tableau.arrays[1] - asked)) > 1e-9:
                return Grade(False, f"of order {tableau.order}, but not the one that is asked for")
        return Grade(True, f"order {tableau.order} with {tableau.stages} stages")
    # Not a Runge–Kutta method of explicit stages: take steps and look at their errors.
    start = known.solution(0.4)
    errors = [_error(value(f, 0.4, start, h), known.solution(0.4 + h)) for h in STEPS]
    slopes = [math.log2(max(a, 1e-16) / max(b, 1e-16)) for a, b in pairwise(errors)]
    if slopes[-1] < order + 1 - SLOPE:
        return Grade(False, f"the error of a step falls like h^{slopes[-1]:.2f}, not h^{order + 1}")
    return Grade(True, f"the error of a step falls like h^{slopes[-1]:.2f}")


class Known:
    """A nonlinear problem with a known solution, on which steps are tried."""

    def __init__(self, chosen: random.Random) -> None:
        self.later = chosen.uniform(0.0, 0.3)
        self.centre = np.array([chosen.uniform(1.5, 2.5), chosen.uniform(1.5, 2.5)])

    def solution(self, t: float) -> Any:
        """An ellipse around the centre."""
        t += self.later
        return self.centre + np.array([math.sin(t), 3.0 * math.cos(t)])

    def slope(self, t: float, y: Any) -> Any:
        """f, which depends on t and on both components."""
        a, b = (y - self.centre) / (1.0, 3.0)
        size = a * a + b * b
        return np.array([b * size, -3.0 * a * size + (a - math.sin(t + self.later)) * y[1]])


def _shaped(value: Any) -> Any:
    return _state(value, (2,))


def _state(value: Any, shape: tuple[int, ...]) -> Any:
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise SubmissionError("it returned something that is no state") from None
    if found.shape != shape:
        raise SubmissionError(f"it returned shape {found.shape} for a state of shape {shape}")
    return found


def _error(value: Any, truth: Any) -> float:
    return float(np.max(np.abs(_shaped(value) - truth)))


def _broken(tableau: Tableau) -> str:
    if tableau.order == 0:
        return "the weights do not add up to 1"
    condition, formula = next(iter(failing_conditions(tableau)))
    return f"{formula}, but it is {float(condition.weight):.6g}"


def _symplectic(question: Question, value: Any, order: int) -> Grade:
    """Is the map of a pendulum's state area-preserving, and of its order?"""

    def pendulum(t: float, y: Any) -> Any:
        return np.array([y[1], -math.sin(y[0])])

    d = 1e-4
    for y in ([0.7, -0.4], [-1.3, 0.8]):
        columns = [
            (_shaped(value(pendulum, 0.0, np.array(y) + e, 0.3))
             - _shaped(value(pendulum, 0.0, np.array(y) - e, 0.3))) / (2 * d)
            for e in (np.array([d, 0.0]), np.array([0.0, d]))
        ]  # fmt: skip
        area = float(np.linalg.det(np.array(columns)))
        if abs(area - 1.0) > DETERMINANT:
            return Grade(False, f"a step multiplies areas by {area:.6g}: it is not symplectic")
    start = np.array([question.random.uniform(0.6, 0.8), -0.4])
    errors = []
    for h in STEPS:
        truth = solve(pendulum, (0.0, h), start, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        errors.append(_error(value(pendulum, 0.0, start, h), truth))
    slope = math.log2(max(errors[-2], 1e-16) / max(errors[-1], 1e-16))
    if slope < order + 1 - SLOPE:
        return Grade(False, f"symplectic, but its order is {slope - 1:.2f}")
    return Grade(True, f"symplectic, of order {slope - 1:.2f}")


def _program(question: Question, value: Any) -> Grade:
    """Run integrate(f, t0, y0, t1, tol) on a problem, and look at its error and its costs."""
    if not callable(value):
        return Grade(False, f"expected a function {question.task.variable}(f, t0, y0, t1, tol)")
    name = question.settings["problem"]
    problem = problems.get(name) if name in problems.names() else question.truth("problem")
    counted = 0

    def f(t: float, y: Any) -> Any:
        nonlocal counted
        counted += 1
        if counted > limit:
            raise SubmissionError(f"it calls f more than {limit} times")
        return problem.bind(problem.f)(t, y)

    t0, t1 = problem.t_span
    # Another start: what is known of the problem does not help.
    start = [x * (1.0 + question.random.uniform(-VARIED, VARIED)) for x in problem.y0]
    varied = problem.with_(y0=start, exact=None, references={})
    truth = solve(varied, rtol=1e-11, atol=1e-13).y[:, -1]
    said = []
    for tolerance in question.settings.get("tolerances", [1e-3, 1e-5]):
        limit = int(question.truth("evaluations", tol=tolerance))
        counted = 0
        end = _state(value(f, t0, varied.y0, t1, tolerance), truth.shape)
        error = float(np.max(np.abs(end - truth)))
        if not error <= question.settings.get("factor", 100.0) * tolerance:
            return Grade(False, f"with tol = {tolerance:g} the error is {error:.1e}")
        said.append(f"{error:.0e} with {counted} evaluations at tol = {tolerance:g}")
    return Grade(True, "error " + ", ".join(said))


# -------------------------------------------------------------------- tableaux, multistep methods


def _tableau(question: Question, value: Any) -> Grade:
    if not isinstance(value, dict) or value.get("kind") != "tableau":
        return Grade(False, "expected a Tableau")
    try:
        tableau = Tableau(value["A"], value["b"], value["c"])
    except (TypeError, ValueError) as error:
        return Grade(False, str(error))
    settings = question.settings
    stages = settings.get("stages")
    if stages is not None and tableau.stages > stages:
        return Grade(False, f"it has {tableau.stages} stages; {stages} are enough")
    if settings.get("explicit") and not tableau.is_explicit:
        return Grade(False, "it is not explicit")
    order = int(question.truth("order"))
    if tableau.order < order:
        return Grade(False, f"its order is {tableau.order}: {_broken(tableau)}")
    for index, expression in settings.get("nodes", {}).items():
        given = float(Fraction(str(question.evaluated(expression))))
        if abs(float(tableau.c[int(index) - 1]) - given) > 1e-12:
            return Grade(False, f"c{index} is not {question.numbers[expression]}")
    if "differs" in settings:
        other = question.truth("differs")
        different = _different(tableau, other)
        if different != settings.get("coefficients", 1):
            return Grade(False, f"it differs from the one given in {different} coefficients, "
                                f"not in {settings.get('coefficients', 1)}")  # fmt: skip
    if settings.get("new") and (name := _in_catalogue(tableau)):
        return Grade(False, f"that is {name} of the catalogue; find one of your own")
    for name in settings.get("stability", []):
        verdict = {"A": analysis.a_stability, "L": analysis.l_stability}[name](tableau)
        if not verdict:
            return Grade(False, str(verdict))
    return Grade(True, f"{tableau.stages} stages, order {tableau.order}")


def _different(one: Tableau, other: Tableau) -> int:
    """In how many entries of A and b two tableaux differ; nodes follow from A."""
    if one.stages != other.stages:
        return 99
    a, b = (np.vstack([np.array(t.arrays[0]), t.arrays[1]]) for t in (one, other))
    return int(np.sum(np.abs(a - b) > 1e-9))


def _in_catalogue(tableau: Tableau) -> str:
    for entry in catalogue.entries():
        if entry.stages == tableau.stages and _different(tableau, entry.tableau) == 0:
            return entry.name
    return ""


def _multistep(question: Question, value: Any) -> Grade:
    if not isinstance(value, dict) or value.get("kind") != "multistep":
        return Grade(False, "expected a Multistep method")
    try:
        method = Multistep(value["alpha"], value["beta"])
    except (TypeError, ValueError) as error:
        return Grade(False, str(error))
    settings, order = question.settings, int(question.truth("order"))
    if method.steps > settings.get("steps", 99):
        return Grade(False, f"it has {method.steps} steps; {settings['steps']} are enough")
    if settings.get("explicit") and not method.is_explicit:
        return Grade(False, "it is implicit")
    if method.order < order:
        return Grade(False, f"its order is {method.order}")
    for index, expression in settings.get("alpha", {}).items():
        given = float(Fraction(str(question.evaluated(expression))))
        if abs(float(method.alpha[int(index)] / method.alpha[-1]) - given) > 1e-12:
            return Grade(False, f"α{index}/α{method.steps} is not {question.numbers[expression]}")
    stable = analysis.zero_stability(method)
    if bool(stable) != settings.get("zero_stable", True):
        return Grade(False, str(stable))
    return Grade(True, f"{method.steps} steps, order {method.order}")


# -------------------------------------------------------------------- a teacher's own


def _python(question: Question, value: Any) -> Grade:
    """Call a function of the Python file that stands beside the lab."""
    import importlib.util

    path = question.lab.folder / (question.lab.checks or "checks.py")
    if not path.is_file():
        raise ValueError(f"{path} is missing: a check of kind 'python' is a function in it")
    spec = importlib.util.spec_from_file_location("lab_checks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name = question.settings.get("function", question.task.name)
    found = getattr(module, name)(value, **question.numbers)
    if isinstance(found, Grade):
        return found
    right, message = found if isinstance(found, tuple) else (found, "")
    return Grade(bool(right), str(message) or ("right" if right else "not right"))


KINDS: Mapping[str, Callable[[Question, Any], Grade]] = {
    "number": _number,
    "numbers": _numbers,
    "function": _function,
    "step": _step,
    "program": _program,
    "tableau": _tableau,
    "multistep": _multistep,
    "python": _python,
}
