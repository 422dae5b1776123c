"""A plain function as a method: ``def my_rk4(f, t, y, h): return y_new``.

:class:`StepFunction` makes of it what ``solve`` and the studies take. No order need be declared: if
the function is an explicit Runge–Kutta method, its coefficients can be read from outside.
:func:`tableau_of` runs it once on numbers that stand for "the state" and "slope number i": the
function only ever forms linear combinations of them, so the arguments of f and the result *are*
rows of A and b. A second run, on a nonlinear problem, confirms what was read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tableau import Tableau

__all__ = ["StepFunction", "is_step_function", "positional_arguments", "step_parts", "tableau_of"]

MOST_STAGES = 40
LARGEST_DENOMINATOR = 100_000  # coefficients that close to such a fraction are taken for it
SAME = 4e-16
AGREES = 1e-11
STEPS = 0.25, 0.125, 0.0625  # with which the order of any other function is measured
ARGUMENTS = ("f", "t", "y", "h")


def positional_arguments(function: Any) -> int | None:
    """Return how many arguments a function must be given by position; None if unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


def is_step_function(method: Any) -> bool:
    """Whether this is a function step(f, t, y, h), and not an object with such a method."""
    return inspect.isroutine(method) and positional_arguments(method) == 4


def step_parts(result: Any, n: int) -> tuple[Any, Any]:
    """Return the new state and the error estimate (or None) of what a step returned.

    A tuple is a pair of both, unless it is the n components themselves.
    """
    if not isinstance(result, tuple) or (len(result) == n > 1 and not any(map(np.ndim, result))):
        return result, None
    if len(result) != 2:
        raise TypeError(
            f"a step returned {len(result)} things; it returns the new state, or the new state and "
            "an estimate of its error"
        )
    return result


class StepFunction:
    """A function step(f, t, y, h) that returns the new state, as a method.

    It may return a pair: the new state, and an estimate of its error for adaptive steps.

    Examples
    --------
    >>> def half_step(f, t, y, h):
    ...     return y + h * f(t + h / 2, y + h / 2 * f(t, y))
    >>> StepFunction(half_step).order
    2
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "") or "step"
        _check_arguments(function, self.name)
        tableau = self.tableau
        shown, estimated = _measured(function)
        #: The order that its coefficients have, or else that its first steps show; at least 1.
        self.order = max(1, shown if tableau is None else tableau.order)
        #: Order of the method behind its error estimate, if it returns one.
        self.estimate_order = max(1, self.order - 1) if estimated is None else estimated

    def step(self, f: Any, t: float, y: NDArray[Any], h: float) -> Any:
        """Advance y by one step of length h."""
        return self.function(f, t, y, h)

    @property
    def tableau(self) -> Tableau | None:
        """The Butcher tableau of the function, if it is an explicit Runge–Kutta method."""
        return tableau_of(self.function)


def tableau_of(function: Callable[..., Any]) -> Tableau | None:
    """Read the coefficients of a function step(f, t, y, h); None if it is no explicit method.

    Examples
    --------
    >>> def heun(f, t, y, h):
    ...     k1 = f(t, y)
    ...     k2 = f(t + h, y + h * k1)
    ...     return y + h / 2 * (k1 + k2)
    >>> print(tableau_of(heun).b)
    (Fraction(1, 2), Fraction(1, 2))
    """
    rows: list[NDArray[np.float64]] = []
    times: list[float] = []
    unit = np.eye(MOST_STAGES + 1)

    def slope(t: Any, y: Any) -> NDArray[np.float64]:
        if len(rows) == MOST_STAGES:
            raise _NoTableauError
        rows.append(np.array(y, dtype=float))
        times.append(float(t))
        return unit[len(rows)].copy()

    try:
        with np.errstate(all="ignore"):
            returned = function(slope, 0.0, unit[0].copy(), 1.0)
            result = np.asarray(step_parts(returned, MOST_STAGES + 1)[0], dtype=float)
    except Exception:  # whatever the function cannot do with these numbers
        return None
    s = len(rows)
    shapes = {row.shape for row in rows} | {result.shape}
    if not s or shapes != {(MOST_STAGES + 1,)}:
        return None
    A, b = np.array(rows)[:, 1 : s + 1], result[1 : s + 1]
    whole = np.array([*rows, result])
    if not np.isfinite(whole).all() or np.max(np.abs(whole[:, 0] - 1.0)) > AGREES:
        return None
    tableau = Tableau(
        [[_recognised(x) for x in row] for row in A],
        [_recognised(x) for x in b],
        [_recognised(x) for x in times],
        name=getattr(function, "__name__", ""),
        check=False,  # as it is written, with a mistake that is to be found
    )
    return tableau if _confirmed(function, tableau) else None


class _NoTableauError(Exception):
    """Too many evaluations of f for a Runge–Kutta method."""


def _recognised(x: float) -> Fraction | float:
    """Return the simple fraction that a float stands for, if there is one."""
    near = Fraction(float(x)).limit_denominator(LARGEST_DENOMINATOR)
    return near if abs(float(near) - x) <= SAME * max(1.0, abs(x)) else float(x)


def _problem(t: float, y: NDArray[Any]) -> NDArray[Any]:
    """Return the slope of (2 + sin t, 2 + 3 cos t), nonlinear, coupled and with the time in it."""
    a, b = y[0] - 2.0, (y[1] - 2.0) / 3.0
    size = a * a + b * b
    return np.array([b * size, -3.0 * a * size + (a - np.sin(t)) * y[1]])


def _start(t: float) -> NDArray[np.float64]:
    return np.array([2.0 + np.sin(t), 2.0 + 3.0 * np.cos(t)])


def _confirmed(function: Callable[..., Any], tableau: Tableau) -> bool:
    """Whether a step on a nonlinear problem is the one that the coefficients give."""
    A, b, c = tableau.arrays
    t, h = 0.3, 0.25
    y = _start(t)
    slopes = np.zeros((len(b), 2))
    for i, row in enumerate(A):
        slopes[i] = _problem(t + c[i] * h, y + h * row @ slopes)
    try:
        value = np.asarray(step_parts(function(_problem, t, y.copy(), h), 2)[0], dtype=float)
    except Exception:
        return False
    return value.shape == y.shape and bool(np.max(np.abs(value - y - h * b @ slopes)) < AGREES)


def _measured(function: Callable[..., Any]) -> tuple[int, int | None]:
    """Order of a step by the errors of three steps, as far as doubles tell; that of its estimate.

    The estimate, if there is one, falls like the error of a step: with h to its order plus one.
    """
    t, errors, estimates = 0.3, [], []
    try:
        for h in STEPS:
            value, estimate = step_parts(function(_problem, t, _start(t), h), 2)
            errors.append(np.asarray(value, dtype=float) - _start(t + h))
            estimates.append(np.asarray(0.0 if estimate is None else estimate, dtype=float))
    except Exception:  # the run itself will say what is wrong, at the user's own line
        return 1, None
    return _slope(errors) or 1, _slope(estimates)


def _slope(steps: list[NDArray[np.float64]]) -> int | None:
    sizes = [float(np.max(np.abs(error))) for error in steps]
    slopes = [np.log2(a / b) for a, b in pairwise(sizes) if b > 1e-14]
    return max(1, round(float(slopes[-1])) - 1) if slopes else None


def _check_arguments(function: Callable[..., Any], name: str) -> None:
    """Say if the names of the arguments are those of a step, but in another order."""
    given = tuple(inspect.signature(function).parameters)[: len(ARGUMENTS)]
    if given != ARGUMENTS and sorted(given) == sorted(ARGUMENTS):
        raise TypeError(
            f"{name}({', '.join(given)}): a step is called as {name}(f, t, y, h); write its "
            "arguments in this order"
        )
