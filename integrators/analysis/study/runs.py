"""One run of a study: any method, any setting; what it cost, what it missed, or why it failed.

A run that fails is a result like any other. :func:`attempt` never raises for it: the row has a
status in a word or two, and the message.
"""

from __future__ import annotations

import contextlib
import inspect
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import compiled_first
from ...methods.names import method_name, named_method
from ...methods.user.plain_function import StepFunction, positional_arguments
from ...problem import IVP
from ...runs.endings import own_line
from ...runs.solution import Solution, Status
from ...solve import solve
from ...stepping.stepper import checked_slope
from ...tableau import Tableau
from ..error.measure import ErrorMeasure
from .reference import Reference
from .tables import plain

__all__ = ["Program", "Report", "Row", "attempt", "declared_order", "merged", "resolve"]

STEP_ARGUMENTS, LOOP_ARGUMENTS = 4, 5  # of step(f, t, y, h) and loop(f, t0, y0, h, N)
MAX_REPEATS, REPEAT_SECONDS = 5, 1.0  # timed runs, unless a number is asked for

Report = Callable[[int, int, str], None]
"""Called as ``report(done, total, label)`` before each run of a study."""


@dataclass(frozen=True)
class Program:
    """A program of one's own that solves a problem with a given step.

    Parameters
    ----------
    run
        ``run(problem, step)`` returns the state at the end, or times and states (t, y) with y of
        shape (n, m).
    name
        For tables.
    order
        What it should have, if that is known.
    """

    run: Callable[[IVP, float], Any]
    name: str = ""
    order: int | None = None

    def solve(self, problem: IVP, step: float) -> Solution:
        """Run it and check what comes back."""
        result = self.run(problem, step)
        if isinstance(result, tuple) and len(result) == 2:
            t, y = (np.asarray(part) for part in result)
        else:
            end = np.atleast_1d(np.asarray(result))
            t = np.array(problem.t_span, dtype=float)
            y = np.column_stack([problem.y0, end]) if end.shape == (problem.n,) else end
        if y.shape != (problem.n, t.size):
            raise ValueError(
                f"the program must return the state at the end, shape ({problem.n},), or (t, y) "
                f"with y of shape ({problem.n}, {t.size}); got shape {y.shape}"
            )
        finite = bool(np.all(np.isfinite(np.asarray(y, dtype=complex))))
        status = Status.FINISHED if finite else Status.NONFINITE
        return Solution(
            t, y, nsteps=t.size - 1, status=status, message="" if finite else "NaN or infinity"
        )


@dataclass(frozen=True)
class Row:
    """One run: a method with one tolerance or step.

    Attributes
    ----------
    method : str
        Label of the method.
    rtol, atol, step : float or None
        What was asked for; ``step`` is None for an adaptive run and the others for a fixed one.
    error : float or None
        Error of the run; None if it failed or nothing is known to compare with.
    steps, rejected, nfev, njev : int
        Accepted and rejected steps, evaluations of f and of its Jacobian.
    seconds : float or None
        Median over the timed runs; None for a failed one.
    status : str
        "ok", or what went wrong in a word or two.
    message : str
        What went wrong in a sentence.
    notes : tuple of str
        Warnings given during the run.
    exception : BaseException or None
        The exception behind a failure, if there is one.
    """

    method: str
    rtol: float | None
    atol: float | None
    step: float | None
    error: float | None = None
    steps: int = 0
    rejected: int = 0
    nfev: int = 0
    njev: int = 0
    seconds: float | None = None
    status: str = "ok"
    message: str = ""
    notes: tuple[str, ...] = ()
    exception: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the run reached its end."""
        return self.status == "ok"

    @property
    def setting(self) -> str:
        """The tolerance or the step, in words."""
        return f"rtol = {self.rtol:g}" if self.step is None else f"step = {self.step:g}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in the order of the table's columns."""
        names = ("method", "rtol", "atol", "step", "error", "steps", "rejected", "nfev", "njev")
        values = {name: getattr(self, name) for name in (*names, "seconds", "status", "message")}
        return {name: plain(value) for name, value in values.items()}


# -------------------------------------------------------------------- methods


def resolve(method: Any) -> tuple[str, Any]:
    """Return a label and what :func:`attempt` takes as a method.

    Parameters
    ----------
    method
        A name of the catalogue; "scipy:RK45" for a class of ``scipy.integrate``;
        "assimulo:CVode"; the name of a ``.toml`` or ``.json`` file with a tableau; a function
        ``step(f, t, y, h)`` that returns the new state, one ``loop(f, t0, y0, h, N)`` that returns
        the state after N steps, or N + 1 times and states, or ``run(problem, step)``, see
        :class:`Program`; or anything else that ``solve`` accepts, which is returned as it is.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known ones.

    Examples
    --------
    >>> label, method = resolve("scipy:rk45")
    >>> label, method.__name__
    ('scipy:RK45', 'RK45')
    """
    if inspect.isroutine(method):
        method = _of_function(method)
    if not isinstance(method, str):
        return method_name(method), method
    name = method.strip()
    library, _, inner = name.partition(":")
    if inner and library.lower() == "scipy":
        found = named_method(name)
        return f"scipy:{found.__name__}", found
    if inner and library.lower() == "assimulo":
        return f"assimulo:{inner}", f"assimulo:{inner}"
    if Path(name).suffix in (".toml", ".json"):
        if not Path(name).is_file():
            raise ValueError(f"there is no file {name!r} with a tableau")
        tableau = Tableau.load(name)
        return tableau.name or Path(name).stem, tableau
    return name, named_method(name)


def _of_function(function: Callable[..., Any]) -> Any:
    """Tell by its arguments what a function is: one step, N steps, or a whole program."""
    name, arguments = method_name(function), positional_arguments(function)
    if arguments == STEP_ARGUMENTS:
        return StepFunction(function)
    if arguments == LOOP_ARGUMENTS:

        def run(problem: IVP, step: float) -> Any:
            t0, t1 = problem.t_span
            count = max(1, round(abs(t1 - t0) / step))
            f = problem.bind(problem.f)

            def slope(t: float, y: Any) -> Any:
                return checked_slope(f(t, y), problem.y0)

            h = (t1 - t0) / count
            return _of_loop(function(slope, t0, problem.y0.copy(), h, count), count, problem, name)

        return Program(run, name)
    return Program(function, name)


def _of_loop(result: Any, count: int, problem: IVP, name: str) -> Any:
    """Make of what N steps returned what a program returns: times and states, or the end."""
    n = problem.n
    pair = isinstance(result, tuple) and len(result) == 2 and (n == 1 or np.ndim(result[1]) > 0)
    t, y = result if pair else ((), result)
    states = np.asarray(y)
    if states.shape == (n, count + 1) and n > 1 and n != count + 1:
        states = states.T
    if states.size == (count + 1) * n:
        times = np.linspace(*problem.t_span, count + 1)
        if np.size(t) == count + 1 and np.abs(np.ravel(t) - times).max() > 1e-6 * abs(
            times[1] - times[0]
        ):
            raise ValueError(f"the times that {name} returned are not t0, t0 + h, …, t0 + N h")
        return times, states.reshape(count + 1, n).T
    if states.size == n and states.dtype.kind in "biufc":
        return states.reshape(n)
    came = f"an array of shape {states.shape}"
    raise ValueError(
        f"{name}(f, t0, y0, h, N) must return the state at the end, {n} numbers, or N + 1 times "
        f"and states (t, y); for N = {count} it returned "
        + ("None (is a return statement missing?)" if result is None else came)
    )


def declared_order(method: Any) -> int | None:
    """Order that a method says it has, or that its coefficients give it; None if unknown."""
    if isinstance(method, StepFunction):
        return None  # it is what a study is to find out
    order = getattr(method, "order", None)
    return int(order) if isinstance(order, int | np.integer) else None


# -------------------------------------------------------------------- runs


def attempt(
    problem: IVP,
    label: str,
    method: Any,
    options: Mapping[str, Any],
    reference: Reference,
    measure: ErrorMeasure,
    *,
    repeat: int | None = 0,
) -> tuple[Row, Solution | None]:
    """Run one method once for its result and some more times for the clock.

    Parameters
    ----------
    problem, label, method
        What is solved, and by what; see :func:`resolve`.
    options
        ``step``, or ``rtol`` and ``atol``, and others of ``solve``.
    reference, measure
        What errors are measured against, and how.
    repeat
        Number of timed runs after the first one; None for five, or as many as fit into a second.

    Returns
    -------
    row, solution
        The solution is None for a run that failed.
    """
    given: dict[str, Any] = {key: options.get(key) for key in ("rtol", "atol", "step")}
    given["method"] = label

    def once() -> Solution:
        if isinstance(method, Program):
            return method.solve(problem, options["step"])
        return solve(problem, method=method, on_interrupt="return", **options)

    # Times of kernels that are still interpreted would say nothing of the method.
    kernels = compiled_first() if repeat != 0 else contextlib.nullcontext()
    # Overflow in a run that diverges is part of the result, not news for the terminal.
    with kernels, np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            solution = once()
        except Exception as error:  # a method that cannot treat the problem is a row, too
            status, message = _in_words(error)
            return Row(**given, status=status, message=message, exception=error), None
        given |= {"steps": solution.nsteps, "rejected": solution.nrejected}
        given |= {"nfev": solution.nfev, "njev": solution.njev}
        if not solution.success:
            words = solution.status.name.lower().replace("_", " ")
            failed = Row(
                **given, status=words, message=solution.message, exception=solution.exception
            )
            return failed, None
        seconds = None if repeat == 0 else _timed(once, repeat)
    notes = list(dict.fromkeys(str(w.message) for w in caught))
    t = float(solution.t[-1])
    if t != problem.t_span[1]:
        notes.append(f"stopped at t = {t:.6g} ({solution.message}); the error is taken there")
    error_of_run = measure.error(problem, solution, reference)
    return Row(**given, error=error_of_run, seconds=seconds, notes=tuple(notes)), solution


def _in_words(error: Exception) -> tuple[str, str]:
    if isinstance(error, ImportError):
        return "missing", str(error)
    line = own_line(error)
    if isinstance(error, ValueError | TypeError):
        return "refused", f"{error}{line}"
    return "raised", f"{error!r}{line}"


def _timed(once: Callable[[], Solution], repeat: int | None) -> float:
    durations: list[float] = []
    while len(durations) < (repeat or MAX_REPEATS):
        start = time.perf_counter()
        if once().status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        durations.append(time.perf_counter() - start)
        if repeat is None and sum(durations) > REPEAT_SECONDS:
            break
    return statistics.median(durations)


def merged(remarks: list[tuple[Row, str]]) -> list[str]:
    """Join what is said of one method at several settings."""
    said: dict[tuple[str, str], list[str]] = {}
    for row, text in remarks:
        said.setdefault((row.method, text), []).append(row.setting)
    return [f"{method} ({'; '.join(where)}): {text}" for (method, text), where in said.items()]
