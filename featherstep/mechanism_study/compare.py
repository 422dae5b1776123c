"""One mechanism, every formulation, every integrator: which result can be trusted?

:func:`compare` solves a mechanism by several methods in several formulations and tabulates the
error of *positions*, what it cost, how far loops opened, what became of the energy, how near the
run came to a singular position, and a verdict in words. Failures are results like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from integrators import IVP, Solution, Tableau, solve
from integrators.analysis.error.measure import ErrorMeasure
from integrators.analysis.study.reference import Reference
from integrators.analysis.study.runs import Program, Report, attempt, resolve
from integrators.analysis.study.runs import Row as Run
from integrators.analysis.study.work_precision import positive_numbers
from integrators.dae.formulations.table import FORMULATIONS, formulation_key
from multibody.checks import Array, ArrayLike
from multibody.mechanisms.registry import Entry
from multibody.model import Model
from multibody.runs.dae import as_mechanical, independent_rows
from multibody.runs.ivp import as_ivp
from multibody.runs.observing.observe import observe

from .mechanism import Mechanism, find_mechanism
from .reference import Measure, ReferenceMotion, reference_motion
from .table import Comparison, Row, verdict

__all__ = ["Comparison", "compare"]

TOLERANCES = (1e-6, 1e-9)
ATOL_OVER_RTOL = 1e-3
ENOUGH = 10.0  # tolerances: an uncertainty of the reference with which runs can be judged
AT_ONCE = 1e-3  # of the interval: a run that ends so near to a singular position failed there
MOST_STEPS = 50_000  # attempts of an adaptive run: one that stalls must not stall the table
METHODS = {True: ("DOP853", "RADAU5"), False: ("DOPRI5", "DOP853", "RADAU5")}  # loops, or not

Split = Callable[[float, Any], tuple[Array, Array]]


def compare(
    mechanism: str | Path | Model | Entry | Mechanism,
    methods: Any = None,
    formulations: Any = None,
    *,
    tolerances: float | Sequence[float] | None = None,
    atol: float | Sequence[float] | None = None,
    steps: float | Sequence[float] | None = None,
    t_end: float | None = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    tau: Any = None,
    f_ext: Any = None,
    parameters: Mapping[str, Any] | None = None,
    measure: Any = None,
    reference: Any = None,
    repeat: int | None = None,
    max_steps: int | None = None,
    report: Report | None = None,
) -> Comparison:
    """Solve a mechanism by every method in every formulation and say which to trust.

    Parameters
    ----------
    mechanism
        Name in the catalogue, a model file, a model, or a :class:`Mechanism`.
    methods
        What ``solve`` accepts, "scipy:RK45" and "assimulo:IDA" among it. By default DOP853 and
        RADAU5.
    formulations
        Names such as "baumgarte", "projected", "index3", "ggl"; "none" for no stabilisation. With
        options: "baumgarte:T_stab=0.01". By default all that a method can solve, and for implicit
        Runge–Kutta methods those with multipliers as unknowns. Trees have one only, "ode".
    tolerances, atol
        Relative tolerances, one run each (default 1e-6 and 1e-9), and absolute ones.
    steps
        Fixed steps, in place of tolerances.
    t_end, q0, v0, tau, f_ext
        In place of those that the mechanism has.
    parameters
        Of a mechanism of the catalogue, such as ``{"n": 3}``.
    measure
        What the error is the error of: "points" of all bodies (those of the stick figure; the
        default), a body's origin ("rocker"), a point ("rocker:1.5,0,0" or ("rocker", point)), or
        "coordinates".
    reference
        Position q at the end, or a function ``q(t)``, if it is known; else it is computed.
    repeat
        Timed runs, of which the median counts; by default five or as many as fit into a second.
    max_steps
        Most attempts of an adaptive run; 50,000 by default.
    report
        Called as ``report(done, total, label)`` before each run.

    Returns
    -------
    Comparison
        With a row for every run, failed ones included.

    Examples
    --------
    >>> result = compare("four_bar", "DOP853", ["none", "baumgarte", "projected"],
    ...                  tolerances=1e-6, t_end=1.0, repeat=1)
    >>> [row.formulation for row in result.rows if row.trusted]
    ['baumgarte', 'projected']
    >>> result["index1", "DOP853"][0].verdict
    'drifts slowly'
    """
    what = mechanism if isinstance(mechanism, Mechanism) else find_mechanism(mechanism, parameters)
    model = what.model
    acts = [event.name for event in what.events if event.terminal or event.scale or event.set]
    if acts:
        raise ValueError(
            f"events change the motion ({', '.join(acts)}), and formulations with multipliers have "
            "other states than they know: compare the model without its [[events]], or simulate it"
        )
    given = {
        "q0": None if q0 is None else model.check("q", q0),
        "v0": None if v0 is None else model.check("v", v0),
        "tau": tau,
        "t_end": t_end,
    }
    what = replace(what, **{key: value for key, value in given.items() if value is not None})
    span = (0.0, float(what.t_end))
    if not span[1] > 0.0:
        raise ValueError(f"t_end: expected a positive time, received {t_end!r}")
    if repeat is not None and repeat < 1:
        raise ValueError(f"repeat must be at least 1, got {repeat}")
    how = Measure.of(measure, model)
    listed = methods if isinstance(methods, list | tuple) else [methods]
    if methods is None:
        listed = METHODS[bool(model.bonds)]
    chosen = [resolve(method) for method in listed]
    settings = _settings(tolerances, atol, steps, max_steps)
    named = None if formulations is None else _names(model, formulations)

    study = _Study(what, span, f_ext, how, _size(what, how), repeat)
    tell = report or (lambda done, total, label: None)
    rows: list[Row] = []
    left_out: list[str] = []
    interrupted = False
    try:
        tell(0, 1, "reference")
        asked = min((options.get("rtol") or 1.0 for options in settings), default=1.0)
        study.find_reference(reference, ENOUGH * asked * study.size)
        pairs, left_out = study.pairs(named, chosen)
        for name, label, method in pairs:
            for options in settings:
                tell(len(rows), len(pairs) * len(settings), f"{name} by {label}")
                rows.append(study.run(name, label, method, options))
                if rows[-1].run.status == "interrupted":
                    raise KeyboardInterrupt
                if rows[-1].run.status == "refused":
                    break  # it would be refused with other tolerances, too
    except KeyboardInterrupt:
        interrupted = True
    return Comparison(
        model, span, tuple(rows), study.reference, how, study.size, interrupted, tuple(left_out)
    )


def _names(model: Model, formulations: Any) -> list[str]:
    """Check names of formulations, with or without options; the canonical spelling."""
    listed = [formulations] if isinstance(formulations, str) else list(formulations)
    found = []
    for item in listed:
        name, *options = str(item).strip().split(":")
        key = formulation_key(name) if model.bonds else name.lower()
        if not model.bonds and key != "ode":
            raise ValueError(
                f"there is no formulation {name!r}: {model.name!r} has no loops (known: ode)"
            )
        found.append(":".join([key, *options]))
        formulation_options(found[-1])
    if not found:
        raise ValueError("no formulation was given; name at least one")
    return found


def formulation_options(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a formulation as it is written in tables and on the command line.

    Examples
    --------
    >>> formulation_options("baumgarte:T_stab=0.01")
    ('baumgarte', {'T_stab': 0.01})
    """
    name, *parts = text.split(":")
    options: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(
                f"expected options of a formulation as in baumgarte:T_stab=0.01, received {text!r}"
            )
        try:
            options[key.strip()] = int(value) if value.strip().isdigit() else float(value)
        except ValueError:
            options[key.strip()] = {"True": True, "False": False}.get(value, value)
    return name, options


def _settings(rtol: Any, atol: Any, step: Any, max_steps: int | None) -> list[dict[str, Any]]:
    if step is not None:
        if rtol is not None or atol is not None:
            raise ValueError("give tolerances or fixed steps, not both")
        limit = {} if max_steps is None else {"max_steps": max_steps}
        return [{"step": h} | limit for h in positive_numbers("steps", step)]
    relative = positive_numbers("tolerances", TOLERANCES if rtol is None else rtol)
    absolute = [ATOL_OVER_RTOL * r for r in relative]
    if atol is not None:
        absolute = positive_numbers("atol", atol)
        absolute = absolute * len(relative) if len(absolute) == 1 else absolute
    if len(absolute) != len(relative):
        raise ValueError(
            f"got {len(relative)} tolerances and {len(absolute)} values of atol; give one atol, or "
            "one for each tolerance"
        )
    shared: dict[str, Any] = {"max_steps": max_steps or MOST_STEPS, "step": None}
    return [{"rtol": r, "atol": a} | shared for r, a in zip(relative, absolute)]


def _size(what: Mechanism, measure: Measure) -> float:
    """Diagonal of the box around the mechanism at its start; 1 for coordinates."""
    if not measure.unit:
        return 1.0
    values = Measure.of("points", what.model).values(0.0, what.q0)
    return float(np.linalg.norm(np.ptp(np.vstack([values, np.zeros((1, 3))]), axis=0))) or 1.0


# ---------------------------------------------------------------------- runs


@dataclass(frozen=True)
class _Solver(Program):
    """``solve`` with a method and options; keeps its last solution, that of a failed run, too."""

    options: Mapping[str, Any] = field(default_factory=dict)
    found: list[Solution] = field(default_factory=list)

    def solve(self, problem: IVP, step: float) -> Solution:
        found = solve(problem, method=self.run, on_interrupt="return", **self.options)
        self.found[:] = [found]
        return self.found[0]


class _Study:
    """What the runs of a comparison share: problems, made once for each formulation; the reference.

    Tracing and compiling a formulation takes longer than most runs of it.
    """

    def __init__(
        self,
        what: Mechanism,
        span: tuple[float, float],
        f_ext: Any,
        measure: Measure,
        size: float,
        repeat: int | None,
    ) -> None:
        self.what, self.span, self.f_ext = what, span, f_ext
        self.measure, self.size, self.repeat = measure, size, repeat
        self.reference = ReferenceMotion(None, "interrupted before a reference was found")
        self.made: dict[str, tuple[IVP, Split] | Exception] = {}
        self.systems: dict[str, Any] = {}

    def problem(self, name: str) -> tuple[IVP, Split] | Exception:
        """The problem of a formulation and how its states split; or why there is none."""
        if name not in self.made:
            try:
                self.made[name] = self._make(name)
            except (ValueError, TypeError, ArithmeticError) as error:
                self.made[name] = error
        return self.made[name]

    def _make(self, name: str) -> tuple[IVP, Split]:
        w = self.what
        if not w.model.bonds:
            nq = w.model.nq
            problem = as_ivp(w.model, w.q0, w.v0, self.span, w.tau, self.f_ext)
            return problem, lambda t, y: (y[:nq], y[nq:])
        key, options = formulation_options(name)
        independent = FORMULATIONS[key].keeps_multipliers or bool(options.get("multipliers"))
        formulation = self._system(independent).formulation(key, **options)
        return formulation, formulation.split

    def _system(self, independent: bool) -> Any:
        """The mechanical system, with constraints that are independent at the start, or with all.

        An overconstrained mechanism keeps its rank while any choice of independent constraints
        may lose it on the way. Where multipliers are eliminated, redundant ones do no harm.
        """
        w = self.what
        acting = w.model.tree.acting_rows
        if independent or len(independent_rows(w.model, w.q0)) == len(acting):
            rows, key = None, "independent"
        else:
            rows, key = acting, "all"
        if key not in self.systems:
            self.systems[key] = as_mechanical(
                w.model, w.q0, w.v0, self.span, w.tau, self.f_ext, rows=rows
            )
        return self.systems[key]

    def find_reference(self, given: Any, wanted: float = 0.0) -> None:
        """Take the reference that was given, or compute one, if possible as exact as wanted."""
        if given is not None:
            q = given(self.span[1]) if callable(given) else given
            values = self.measure.values(self.span[1], self.what.model.check("q", q))
            self.reference = ReferenceMotion(values, "the reference given")
            return

        def formulated(name: str) -> tuple[IVP, Split] | None:
            made = self.problem(name)
            return None if isinstance(made, Exception) else made

        self.reference = reference_motion(
            formulated, self.measure, bool(self.what.model.bonds), self._minimal(), wanted
        )

    def _minimal(self) -> tuple[IVP, Split] | None:
        """The problem in minimal coordinates, if the loop-closure function is known."""
        w = self.what
        if w.known.closure is None or self.f_ext is not None:
            return None
        from multibody.dynamics.loops.closure import LoopClosure
        from multibody.runs.minimal import as_ivp_minimal

        gamma, y0, ydot0 = w.known.closure(w.model, w.q0, w.v0)
        closure = LoopClosure(w.model, gamma, len(y0))
        start = closure.states(np.concatenate([y0, ydot0]))
        if not np.allclose(start, np.concatenate([w.q0, w.v0]), atol=1e-9):
            return None  # started elsewhere than on the branch that is known
        problem = as_ivp_minimal(w.model, closure, y0, ydot0, self.span, w.tau)

        def split(t: float, y: Any) -> tuple[Array, Array]:
            x = closure.states(y)
            return x[: w.model.nq], x[w.model.nq :]

        return problem, split

    def pairs(
        self, named: Sequence[str] | None, methods: Sequence[tuple[str, Any]]
    ) -> tuple[list[tuple[str, str, Any]], list[str]]:
        """What is run: all that was asked for by name, or what suits each method."""
        if named is not None:
            return [(name, *method) for name in named for method in methods], []
        pairs, left_out = [], []
        for name in FORMULATIONS if self.what.model.bonds else ("ode",):
            made = self.problem(name)
            if isinstance(made, Exception):
                left_out.append(f"{name} is left out: {made}")
                continue
            pairs += [(name, *m) for m in methods if _suits(m, made[0]) or name == "ode"]
        return pairs, left_out

    def run(self, name: str, label: str, method: Any, options: dict[str, Any]) -> Row:
        """One run, looked at from all sides."""
        made = self.problem(name)
        if isinstance(made, Exception):
            return _refused(name, Run(label, None, None, None, message=str(made), exception=made))
        problem, split = made
        solver = _Solver(method, label, options=options)
        nothing = Reference(None, "positions are compared, not states")
        run, _ = attempt(
            problem, label, solver, options, nothing, ErrorMeasure(), repeat=self.repeat
        )
        if run.status == "refused" or not solver.found:
            return _refused(name, replace(run, rtol=None, atol=None, step=None))
        solution = solver.found[0]
        good = np.all(np.isfinite(solution.y), axis=0)
        times, states = solution.t[good], solution.y.T[good]
        parts = [split(float(t), y) for t, y in zip(times, states)]
        q, v = np.array([x[0] for x in parts]).T, np.array([x[1] for x in parts]).T
        w = self.what
        seen = observe(w.model, times, q, v, w.tau, self.f_ext)
        if not run.ok:
            stuck = any(abs(x - times[-1]) < AT_ONCE * self.span[1] for x in seen.passages)
            near = f", at a singular position (t = {times[-1]:.3g})" if stuck else ""
            return Row(name, run, None, seen, f"failed: {run.status}{near}")
        known = self.reference
        error = None
        if known.values is not None:
            error = self.measure.distance(self.measure.values(float(times[-1]), q[:, -1]),
                                          known.values)  # fmt: skip
        uncertainty = None if known.values is None else known.uncertainty
        rtol = None if options.get("step") is not None else options.get("rtol")
        words = verdict(name.partition(":")[0], error, seen, self.size, uncertainty, rtol)
        return Row(name, run, error, seen, words)


def _refused(name: str, run: Run) -> Row:
    """A row without a setting: other tolerances would not help."""
    run = replace(run, status="refused" if run.ok else run.status)
    return Row(name, run, verdict=f"failed: {run.status}")


def _suits(labelled: tuple[str, Any], problem: IVP) -> bool:
    """Whether to pair them unasked: implicit Runge–Kutta with multipliers, others without."""
    label, method = labelled
    explicit = not isinstance(method, Tableau) or method.is_explicit
    if label.lower() in ("assimulo:ida", "assimulo:radau5dae", "assimulo:odassl"):
        explicit = False
    return explicit == (problem.mass is None)
