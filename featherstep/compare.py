"""Compare methods on a problem whose solution is known, and see what each digit costs.

:func:`compare` solves one problem by several methods, each at several tolerances or step sizes,
and returns a table: error, steps, evaluations, time. A run that fails is a row like any other,
with its message.

The error of a run is taken at the end of the interval,

    error = max_i |y_i − ŷ_i| / max_i |ŷ_i| ,

with ŷ the exact solution or a reference of many digits. Where ŷ has died out the error is not
divided, and the table says so. Without any reference one is computed, twice, and the difference
of the two tells how far to trust it.
"""

from __future__ import annotations

import difflib
import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators import IVP, Solution, Status, Tableau, problems, solve
from integrators.solve import method_name, named_method

from .comparison import Comparison, Illustration, Reference, Row

__all__ = [
    "Comparison",
    "Illustration",
    "Reference",
    "Row",
    "compare",
    "default_methods",
    "resolve",
]

VANISHED = 1e-12  # a solution that has shrunk by this factor makes relative errors meaningless
ATOL_OVER_RTOL = 1e-3  # the ratio of solve's own defaults
MAX_STEPS = 200_000  # attempts of an adaptive run: a stiff problem must not stall the table
MAX_REPEATS, REPEAT_SECONDS = 5, 1.0  # timed runs, unless a number is asked for
REFERENCE_RTOL = 1e-12
REFERENCE_SPREAD = 30  # the second run of a computed reference is looser by this factor
POINTS = 2000  # of an illustration's curve
ILLUSTRATION_RTOL = 1e-9
VISIBLE = 0.05  # an error that the eye sees in a picture

Report = Callable[[int, int, str], None]


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
    illustrate: bool = False,
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
    illustrate
        Also compute what a picture needs.
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
    ivp, stiff = _problem(problem, parameters, t_end)
    chosen = [resolve(m) for m in (default_methods(ivp, stiff) if methods is None else methods)]
    if not chosen:
        raise ValueError("no method was given; name at least one")
    settings = _settings(rtol, atol, step, max_steps)
    if repeat is not None and repeat < 1:
        raise ValueError(f"repeat must be at least 1, got {repeat}")
    if traced:
        ivp = _traced(ivp)

    rows: list[Row] = []
    reference = Reference(None, "interrupted before a reference was found")
    illustration, interrupted = None, False
    total = len(settings) * len(chosen)
    tell = report or (lambda done, total, label: None)
    shown: tuple[Row, Solution] | None = None
    try:
        tell(0, total, "reference")
        reference = _reference(ivp, problem, stiff)
        for setting in settings:
            for label, method in chosen:
                tell(len(rows), total, f"{label}, {setting.text}")
                row, solution = _run(ivp, label, method, setting, reference, repeat)
                rows.append(row)
                if row.status == "interrupted":
                    raise KeyboardInterrupt
                if illustrate and solution is not None and _better(row, shown):
                    shown = row, solution
        tell(total, total, "")
        if illustrate and shown is not None:
            illustration = _illustration(ivp, stiff, *shown)
    except KeyboardInterrupt:
        interrupted = True
    return Comparison(ivp, tuple(rows), reference, interrupted, illustration)


# -------------------------------------------------------------------- what is compared


def resolve(method: Any) -> tuple[str, Any]:
    """Return a label and what ``solve`` takes as a method.

    Parameters
    ----------
    method
        A name of the catalogue; "scipy:RK45" for a class of ``scipy.integrate``;
        "assimulo:CVode"; the name of a ``.toml`` or ``.json`` file with a tableau; or anything
        else that ``solve`` accepts, which is returned as it is.

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


def _problem(
    problem: str | IVP, parameters: Mapping[str, Any] | None, t_end: float | None
) -> tuple[IVP, bool]:
    """Return the problem, and whether it is known to be stiff."""
    if isinstance(problem, str):
        import inspect

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
    if t_end is not None:
        ivp = ivp.with_(t_span=(ivp.t_span[0], t_end))
    return ivp, stiff


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), folded, n=2, cutoff=0.5)
    return f" (did you mean {' or '.join(folded[k] for k in near)}?)" if near else ""


def _traced(ivp: IVP) -> IVP:
    from integrators.tracing.traced import traced

    params = ivp.params if ivp.params.size else None
    function = traced(ivp.f, n=ivp.n) if params is None else traced(ivp.f, n=ivp.n, params=params)
    return ivp.with_(f=function)


@dataclass(frozen=True)
class _Setting:
    rtol: float | None
    atol: float | None
    step: float | None
    max_steps: int | None

    @property
    def options(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value is not None}

    @property
    def text(self) -> str:
        return f"rtol = {self.rtol:g}" if self.step is None else f"step = {self.step:g}"


def _settings(rtol: Any, atol: Any, step: Any, max_steps: int | None) -> list[_Setting]:
    if step is not None:
        return [_Setting(None, None, h, max_steps) for h in _numbers("step", step)]
    relative = _numbers("rtol", rtol)
    if atol is None:
        absolute = [ATOL_OVER_RTOL * r for r in relative]
    else:
        absolute = _numbers("atol", atol)
        if len(absolute) == 1:
            absolute *= len(relative)
        if len(absolute) != len(relative):
            raise ValueError(
                f"got {len(relative)} values of rtol and {len(absolute)} of atol; give one atol, "
                "or one for each rtol"
            )
    return [_Setting(r, a, None, max_steps or MAX_STEPS) for r, a in zip(relative, absolute)]


def _numbers(name: str, values: Any) -> list[float]:
    numbers = [float(x) for x in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    for x in numbers:
        if not (math.isfinite(x) and x > 0):
            raise ValueError(f"{name} must be positive, got {x:g}")
    if not numbers:
        raise ValueError(f"no value of {name} was given")
    return numbers


# -------------------------------------------------------------------- runs


def _run(
    ivp: IVP,
    label: str,
    method: Any,
    setting: _Setting,
    reference: Reference,
    repeat: int | None,
) -> tuple[Row, Solution | None]:
    """Run one method once for its result and some more times for the clock."""
    given: dict[str, Any] = {"method": label}
    given |= {"rtol": setting.rtol, "atol": setting.atol, "step": setting.step}

    def once() -> Solution:
        return solve(ivp, method=method, **setting.options)

    # Overflow in a run that diverges is part of the result, not news for the terminal.
    with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
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
        seconds = _timed(once, repeat)
    notes = list(dict.fromkeys(str(w.message) for w in caught))
    error_at_end = _error(ivp, solution, reference, notes)
    return Row(**given, error=error_at_end, seconds=seconds, notes=tuple(notes)), solution


def _in_words(error: Exception) -> tuple[str, str]:
    if isinstance(error, ImportError):
        return "missing", str(error)
    if isinstance(error, ValueError | TypeError):
        return "refused", str(error)
    return "raised", repr(error)


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


def _error(ivp: IVP, solution: Solution, reference: Reference, notes: list[str]) -> float | None:
    t, t_end = float(solution.t[-1]), ivp.t_span[1]
    if t == t_end:
        return reference.error(solution.y[:, -1])
    notes.append(f"stopped at t = {t:.6g} ({solution.message}); the error is taken there")
    there = ivp.exact(t) if ivp.exact is not None else None
    return None if there is None else _as_reference(ivp, there, "").error(solution.y[:, -1])


# -------------------------------------------------------------------- references


def _reference(ivp: IVP, problem: str | IVP, stiff: bool) -> Reference:
    known = ivp.reference(ivp.t_span[1])
    if known is not None:
        if ivp.exact is not None:
            return _as_reference(ivp, known, "the exact solution")
        digits = f" of {problems.entry(problem).digits} digits" if isinstance(problem, str) else ""
        return _as_reference(ivp, known, f"a reference{digits}")
    return _computed_reference(ivp, stiff)


def _as_reference(ivp: IVP, y: Any, origin: str) -> Reference:
    y = np.atleast_1d(np.asarray(y))
    size, start = float(np.max(np.abs(y))), float(np.max(np.abs(ivp.y0)))
    return Reference(y, origin, relative=size > VANISHED * start)


def _computed_reference(ivp: IVP, stiff: bool) -> Reference:
    """Solve with a tight tolerance, twice; explicit first, unless the problem is stiff."""
    name, fine = _solved_tightly(ivp, stiff, REFERENCE_RTOL)
    if not fine.success:
        return Reference(None, f"no reference is known and none could be computed: {fine.message}")
    _, coarse = _solved_tightly(ivp, name != "DOP853", REFERENCE_SPREAD * REFERENCE_RTOL)
    found = _as_reference(ivp, fine.y[:, -1], "")
    difference = found.error(coarse.y[:, -1]) if coarse.success else None
    trust = "with no second run to check it"
    if difference is not None:
        trust = f"which a second run confirms to {max(difference, 1e-15):.0e}"
    origin = f"a solution by {name} with rtol = {REFERENCE_RTOL:g}, {trust} (none is tabulated)"
    return Reference(found.y, origin, found.relative)


def _solved_tightly(
    ivp: IVP, stiff: bool, rtol: float, t_eval: NDArray[np.float64] | None = None
) -> tuple[str, Solution]:
    size = float(np.max(np.abs(ivp.y0))) or 1.0
    options: dict[str, Any] = {"rtol": rtol, "atol": 0.1 * rtol * size, "t_eval": t_eval}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ivp.mass is None and not stiff:
            solution = solve(ivp, method="DOP853", max_steps=MAX_STEPS // 2, **options)
            if solution.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if solution.success:
                return "DOP853", solution
        solution = solve(ivp, method="RadauIIA5", max_steps=MAX_STEPS, **options)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return "RadauIIA5", solution


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
    _, curve = _solved_tightly(ivp, stiff, ILLUSTRATION_RTOL, times)
    if not curve.success:
        return None
    return Illustration(curve.t, curve.y, shown.t, shown.y, row)
