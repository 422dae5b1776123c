"""Compare methods on a problem whose solution is known, and see what each digit costs.

:func:`compare` is :func:`integrators.analysis.work_precision` for the command line: problems by
name with their parameters, a choice of methods that suits them, and what a picture needs besides.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from integrators import IVP, Solution, problems
from integrators.analysis.study.reference import Reference, solved_tightly
from integrators.analysis.study.runs import Report, Row, resolve
from integrators.analysis.study.work_precision import work_precision

from ..equations import is_equation, read_problem
from .table import Comparison, Illustration

__all__ = [
    "Comparison",
    "Illustration",
    "Reference",
    "Row",
    "compare",
    "default_methods",
    "named_problem",
    "resolve",
    "with_machine_code",
]

POINTS = 2000  # of an illustration's curve
ILLUSTRATION_RTOL = 1e-9
VISIBLE = 0.05  # an error that the eye sees in a picture


def compare(
    problem: str | IVP,
    methods: Sequence[Any] | None = None,
    *,
    rtol: float | Sequence[float] = 1e-6,
    atol: float | Sequence[float] | None = None,
    step: float | Sequence[float] | None = None,
    t_end: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    repeat: int | None = None,
    max_steps: int | None = None,
    traced: bool = False,
    measure: Any = None,
    illustrate: bool = False,
    stiff: bool | None = None,
    report: Report | None = None,
) -> Comparison:
    """Solve a problem by several methods and tabulate what each digit cost.

    Parameters
    ----------
    problem
        Name of a reference problem, or an :class:`~integrators.IVP`.
    methods
        What ``solve`` accepts as a method, and "scipy:RK45"; see :func:`resolve`. By default a
        choice that suits the problem.
    rtol, atol
        Relative tolerances, one run each, and absolute ones: one for all, or as many as there
        are relative ones. By default atol = rtol/1000.
    step
        Fixed step sizes, in place of tolerances.
    t_end
        Another end of the interval.
    parameters
        Parameters of a named problem, ``{"mu": 1000}``.
    repeat
        Number of timed runs, after a first one that is not timed because it may compile. By
        default five, or as many as fit into a second.
    max_steps
        Most attempts of a run; 200,000 by default for adaptive ones.
    traced
        Trace f and run its machine code.
    measure
        How errors are measured, see :class:`integrators.analysis.ErrorMeasure`.
    illustrate
        Also compute what a picture needs.
    stiff
        Whether the problem is; by default what is known of a problem with a name.
    report
        Called as ``report(done, total, label)`` before each run.

    Returns
    -------
    Comparison
        With a row for every run, failed ones included. Ctrl-C ends it early.

    Raises
    ------
    ValueError
        For an unknown problem, method or parameter, and for settings that make no sense.

    Examples
    --------
    >>> result = compare("logistic", ["RK4", "DOPRI5"], step=[0.1, 0.05], repeat=1)
    >>> [row.nfev for row in result.rows]
    [400, 601, 800, 1201]
    >>> result.rows[0].error / result.rows[2].error > 15  # order 4: 2⁴ = 16
    True
    """
    ivp, known_stiff = named_problem(problem, parameters, t_end)
    stiff = known_stiff if stiff is None else stiff
    if traced:
        ivp = with_machine_code(ivp)
    shown: tuple[Row, Solution] | None = None

    def keep(row: Row, solution: Solution) -> None:
        nonlocal shown
        if illustrate and _better(row, shown):
            shown = row, solution

    result = work_precision(
        ivp,
        default_methods(ivp, stiff) if methods is None else list(methods),
        None if step is not None else rtol,
        atol=atol,
        steps=step,
        measure=measure,
        repeat=repeat,
        max_steps=max_steps,
        stiff=stiff,
        report=report,
        keep=keep,
    )
    illustration, interrupted = None, result.interrupted
    if shown is not None and not interrupted:
        try:
            illustration = _illustration(ivp, stiff, *shown)
        except KeyboardInterrupt:
            interrupted = True
    return Comparison(**(vars(result) | {"interrupted": interrupted, "illustration": illustration}))


# -------------------------------------------------------------------- what is compared


def default_methods(problem: IVP, stiff: bool = False) -> list[str]:
    """Return a choice of methods that suits a problem.

    Examples
    --------
    >>> default_methods(problems.get("kepler"))
    ['DOPRI5', 'DOP853', 'Tsit5', 'BS23', 'scipy:RK45']
    """
    if problem.mass is not None:
        return ["RadauIIA2", "RADAU5", "RadauIIA5", "LobattoIIIC4"]
    if stiff:
        return ["RADAU5", "RadauIIA5", "Kvaerno5", "SDIRK4", "scipy:Radau", "scipy:BDF"]
    return ["DOPRI5", "DOP853", "Tsit5", "BS23", "scipy:RK45"]


def named_problem(
    problem: str | IVP,
    parameters: Mapping[str, Any] | None,
    t_end: float | None,
    y0: Sequence[float] | None = None,
) -> tuple[IVP, bool]:
    """Return the problem, and whether it is known to be stiff."""
    if isinstance(problem, str) and is_equation(problem):
        return read_problem(problem, y0, t_end, parameters), False
    if isinstance(problem, str):
        entry = problems.entry(problem)
        known = list(inspect.signature(entry.build).parameters)
        given = dict(parameters or {})
        for key in given:
            if key not in known:
                raise ValueError(
                    f"problem {entry.name!r} has no parameter {key!r}{_nearest(key, known)}; "
                    f"it has {', '.join(known) or 'none'}"
                )
        if t_end is not None and "t_end" in known:
            given["t_end"] = t_end
        ivp, stiff = entry.problem(**given), entry.stiff
    else:
        if parameters:
            raise ValueError("parameters belong to a problem given by name; change the IVP itself")
        ivp, stiff = problem, False
    if y0 is not None:
        ivp = ivp.with_(y0=y0, exact=None, references=None)
    if t_end is not None:
        ivp = ivp.with_(t_span=(ivp.t_span[0], t_end))
    return ivp, stiff


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), folded, n=2, cutoff=0.5)
    return f" (did you mean {' or '.join(folded[k] for k in near)}?)" if near else ""


def with_machine_code(ivp: IVP) -> IVP:
    """Return the problem with f traced."""
    from integrators.tracing.traced import traced

    params = ivp.params if ivp.params.size else None
    function = traced(ivp.f, n=ivp.n) if params is None else traced(ivp.f, n=ivp.n, params=params)
    return ivp.with_(f=function)


# -------------------------------------------------------------------- the picture


def _better(row: Row, shown: tuple[Row, Solution] | None) -> bool:
    """Show the steps of the first run that followed the solution, or else of the first one."""
    if shown is None:
        return True
    lost = shown[0].error is None or shown[0].error > VISIBLE
    return lost and row.error is not None and row.error <= VISIBLE


def _illustration(ivp: IVP, stiff: bool, row: Row, shown: Solution) -> Illustration | None:
    t0, t1 = ivp.t_span
    steps = shown.t if len(shown.t) <= POINTS else shown.t[:: len(shown.t) // POINTS]
    # Even in time, and fine where the steps are short: neither spikes nor decades are missed.
    between = (steps[:-1, None] + np.diff(steps)[:, None] * np.array([0.25, 0.5, 0.75])).ravel()
    times = np.unique(np.concatenate([np.linspace(t0, t1, POINTS), steps, between]))
    times = times if t1 >= t0 else times[::-1]
    _, curve = solved_tightly(ivp, stiff, ILLUSTRATION_RTOL, t_eval=times)
    if not curve.success:
        return None
    return Illustration(curve.t, curve.y, shown.t, shown.y, row)
