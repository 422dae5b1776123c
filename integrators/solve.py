"""``solve``: one function for every problem and every method.

It makes a problem of what it was given (:mod:`.given`), checks how the run is to be done
(:mod:`.options`) and binds the method to the problem; a :class:`~integrators.runs.run.Run` does
the rest. Whatever goes wrong on the way, what was computed up to then is returned, or goes
with the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import IntegrationInterrupted, check_on_interrupt, pass_on
from .given import as_hybrid, as_problem, as_switched, by_own_method, for_many_digits
from .hybrid import Hybrid
from .hybrid.holding import holding
from .manifold import Manifold
from .methods.names import check_with_sensitivities, chosen_method, method_name
from .options import (
    USUAL_ATOL,
    USUAL_RTOL,
    Settings,
    absolute_tolerances,
    bound_engine,
    output_times_of,
    stops_of,
)
from .problem import IVP
from .runs.deadline import deadline
from .runs.hybrid.hybrid_run import HybridRun
from .runs.judging import global_error, without_records
from .runs.mistakes import relative_tolerance
from .runs.run import Run
from .runs.scipy_names import with_args
from .runs.sensitivities.forward import with_sensitivities
from .runs.solution import Solution
from .stepping.control import Controller
from .stepping.state import Status

__all__ = ["solve"]


def solve(
    problem: IVP | Hybrid | Callable[..., Any],
    t_span: Sequence[float] | None = None,
    y0: ArrayLike | None = None,
    *,
    method: Any = "auto",
    step: float | None = None,
    rtol: float = USUAL_RTOL,
    atol: ArrayLike = USUAL_ATOL,
    t_eval: ArrayLike | None = None,
    tstops: ArrayLike = (),
    dense_output: bool = False,
    events: Any = None,
    params: Any = (),
    jac: Any = None,
    jac_sparsity: Any = None,
    mass: Any = None,
    index: Any = None,
    project: Callable[..., Any] | None = None,
    nonnegative: Any = None,
    manifold: Manifold | None = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[float, NDArray[Any]], Any] | None = None,
    progress: bool = False,
    throw: bool = False,
    check: str | None = None,
    kinks: str | None = None,
    sensitivities: Any = None,
    on_interrupt: str = "raise",
    args: Any = None,
    vectorized: bool = False,
    linear_solver: str | None = None,
    preconditioner: Any = "auto",
    bandwidth: Any = None,
    precision: int | None = None,
) -> Solution:
    """Solve an initial value problem.

    Parameters
    ----------
    problem
        An :class:`IVP`, a :class:`Hybrid`, or the function ``f(t, y)``; then ``t_span`` and ``y0``
        follow, as in SciPy's ``solve_ivp``.
    t_span, y0
        Interval (t0, t1), backwards if t1 < t0, and initial state; with an IVP they replace its
        own.
    method
        "auto" (or None) chooses by the problem, and changes between an explicit and a stiff method
        on the way (``Solution.phases``). Or a name of the catalogue ("DOPRI5", "RADAU5", "Gauss4";
        SciPy's names work too),
        "RadauVariable", "BDF", "NDF" or "Adams" (multistep with variable order: :class:`BDF`,
        :class:`Adams`), "Rodas5P", "ROS34PW2" and their like (:class:`Rosenbrock`), "Taylor",
        "StormerVerlet", "KahanLi8", "DPRKN6" and their like for y = (q, v) (:class:`Splitting`,
        :class:`Nystrom`, :class:`Partitioned`), "ARK436IMEX" and its like for f = f_E + f_I
        (:class:`Split`, :class:`Additive`), "RKMK4" and its like for a problem with a manifold
        (:class:`MuntheKaas`), "AB3", "BDF2" and other multistep methods (:class:`Multistep`) with
        a fixed step, a :class:`Tableau` or the name of a file with one, an object with a
        ``step`` method (:class:`Method`), a ``scipy.integrate.OdeSolver`` class or "scipy:LSODA",
        or "assimulo:CVode" and its like.
    step
        A fixed step size, without error control. Otherwise steps are adaptive.
    rtol, atol
        Tolerances: the local error of each component is kept below atol + rtol·|y|. ``atol``
        may be a list, one for each component.
    t_eval
        Times at which to return the solution; they never change the steps. By default every
        accepted step is returned. Between steps, and at the times of events, the error is about
        that at the steps: dense output has the order of the method (``Solution.dense_order``),
        for some evaluations of f in each step that holds an output time.
    tstops
        Times to step on exactly, for instance where f jumps.
    dense_output
        Return ``sol``, the solution as a function of time.
    events
        Event functions ``g(t, y)`` or :class:`Event` objects.
    params
        Parameters p; f and everything else is then called as ``f(t, y, p)``.
    jac, jac_sparsity, mass, index, project, nonnegative, manifold
        As in :class:`IVP`.
    controller
        Step-size controller: ``I()``, ``PI()``, ``PID()``, ``Predictive()``.
    norm
        "rms" or "max": how the errors of the components are combined.
    first_step, max_step, min_step
        Limits of the adaptive step; falling below ``min_step`` ends the run. ``max_step`` is
        never exceeded, and no stop is ever passed: the last step before the end of the interval
        or one of ``tstops`` may be shorter than ``min_step``.
    max_steps
        Most attempts, rejected ones included; a million by default for adaptive steps.
    time_limit
        Most seconds on the clock: the run ends between two steps, with what was computed and
        ``Status.OUT_OF_TIME``. A single call of f is not cut short.
    callback
        ``callback(t, y)`` after each accepted step; returning True stops the run.
    progress
        Show a progress bar.
    throw
        Raise :class:`IntegrationError` on failure instead of returning a failed Solution.
    check
        "global": estimate the global error along the run by a second one with a tolerance tighter
        by 100 (a step shorter by 2), as ``Solution.quality.global_error``.
    kinks
        "locate": where a traced f has a kink or a jump (``abs``, ``minimum``, ``maximum``,
        ``sign``, ``where``), it is located as an event and stepped on; where both sides of a jump
        lead into it, the motion slides on it, as with :class:`Switch`. By default the error control
        has to find its way across; that serves kinks that are rare or weak.
    sensitivities
        Names of parameters and initial values, such as ``["p[0]", "y0[1]"]`` or names of states:
        ``Solution.sensitivities`` has dy/d(name) at all times, ``event_sensitivities`` the
        derivatives of the times of events. f, events, resets and projections must be traceable.
    on_interrupt
        What Ctrl-C does: "raise" :class:`IntegrationInterrupted`, a KeyboardInterrupt with what was
        computed as its ``solution``, so that the script stops; or "return" that solution.
    args, vectorized
        As in SciPy's ``solve_ivp``: f, jac and events are called as ``f(t, y, *args)``; whether f
        could take several states at once makes no difference here. New programs use ``params``,
        which traced functions know as well.
    linear_solver
        How an implicit method solves its linear systems: "dense", "band", "sparse" (LU) or "gmres";
        by default what is fastest for the size and the pattern of the Jacobian. The pattern is that
        of ``jac_sparsity``, of a sparse ``jac``, of a traced f; else f is probed for it.
        ``Solution.linear_solver`` tells what was done; see ``docs/large.md``.
    preconditioner
        For "gmres": "ilu" (the default where the pattern is known), "band", None,
        :class:`BlockJacobi`, :class:`BandedPart`, or a function ``(t, y, gamma)`` that returns a
        function r → z with (M − γ ∂f/∂y) z ≈ r.
    bandwidth
        (lower, upper), the diagonals of the Jacobian below and above the main one that are not
        zero: in place of ``jac_sparsity``.
    precision
        Digits, 17 to 50, of a run in decimal arithmetic: ``Solution.y`` are Decimals. f must be
        traceable; any tableau and Taylor methods serve, "auto" is Taylor's. In place of the
        defaults above, rtol is four digits less than the arithmetic, and atol is rtol. ``y0`` and
        ``t_span`` may be Decimals, fractions, text or long doubles; numbers inside f are the
        doubles that they are. See ``docs/precision.md``.

    Returns
    -------
    Solution
        With everything computed up to the end of the run, also of one that failed; look at
        ``success``. If a function calls ``sys.exit``, it is the ``solution`` of the SystemExit.

    Examples
    --------
    >>> sol = solve(lambda t, y: -y, (0, 1), [1.0], rtol=1e-9)
    >>> round(float(sol.y[0, -1]), 8)  # e⁻¹
    0.36787944
    """
    check_on_interrupt(on_interrupt)
    how = Settings(
        method=method, step=step, rtol=rtol, atol=atol, t_eval=t_eval, tstops=tstops,
        dense_output=dense_output, controller=controller, norm=norm, first_step=first_step,
        max_step=max_step, min_step=min_step, max_steps=max_steps,
        time_limit=deadline(time_limit), callback=callback, progress=progress,
        linear_solver=linear_solver, preconditioner=preconditioner,
        bandwidth=bandwidth,
    )  # fmt: skip
    if args is not None and precision is None:
        problem, jac, events = with_args(args, problem, jac, events, params)
    changes = {
        "params": params,
        "jac": jac,
        "jac_sparsity": jac_sparsity,
        "mass": mass,
        "index": index,
        "events": events,
        "project": project,
        "nonnegative": nonnegative,
        "manifold": manifold,
    }
    if precision is not None:
        others = dict(args=args, check=check, kinks=kinks, sensitivities=sensitivities)
        solution = _precise_run(problem, t_span, y0, precision, how, changes, others)
        return _delivered(solution, False, throw, on_interrupt)
    if check not in (None, "global"):
        raise ValueError(f"check must be 'global' or None, got {check!r}")
    given: Any
    task: IVP | Hybrid
    if isinstance(problem, Hybrid):
        given, how = by_own_method(problem, how)
        task = as_hybrid(given, t_span, y0, changes, check, kinks)
    else:
        given = as_problem(problem, t_span, y0, changes)
        task = as_switched(given, kinks)
    if sensitivities is not None:
        return _run_with_sensitivities(task, sensitivities, how, throw, on_interrupt)
    pressed = False
    if isinstance(task, Hybrid):
        times = output_times_of(t_eval, task.t_span)
        solution = HybridRun(task, solve, how._replace(t_eval=times)._asdict()).run()
        solution.problem = task if isinstance(given, Hybrid) else given
    else:
        solution, pressed = _plain_run(task, how)
        if solution.status == Status.HELD and (modes := holding(task)) is not None:
            times = output_times_of(t_eval, task.t_span)
            options = how._replace(t_eval=times)._asdict()
            solution = HybridRun(modes, solve, options, solution).run()
            solution.problem = given
        if isinstance(problem, Hybrid):  # by a scheme of its own
            solution.problem = problem.whole(task)  # type: ignore[attr-defined]
    solution.method = method_name(how.method)

    def again(factor: float, times: Any, most: int | None = None) -> Solution:
        finer = how.finer(factor, times)
        if most is not None:  # unasked: it has to be cheap, and other packages step in Python
            mine = "auto" if ":" in method_name(how.method) else how.method
            finer = finer._replace(max_steps=most, method=mine)
        return solve(without_records(given), **finer._asdict(), kinks=kinks)

    asked = None if step is not None else relative_tolerance(rtol)
    looked = check is not None and solution.success and solution.t.size > 0
    error = global_error(solution, again, asked) if looked else None
    solution.judge(asked, error, again, atol)
    return _delivered(solution, pressed, throw, on_interrupt)


def _plain_run(ivp: IVP, how: Settings) -> tuple[Solution, bool]:
    """Solve one problem by one method; the second value tells of a Ctrl-C, at the end perhaps."""
    ivp = ivp.for_run()
    chosen = chosen_method(how.method)
    untraced = not hasattr(chosen, "order_for") and _is_better_plain(ivp)  # Taylor needs the trace
    if untraced:
        ivp = replace(ivp, f=ivp.f.function)  # type: ignore[attr-defined]
    output_times = output_times_of(how.t_eval, ivp.t_span)
    tstops = how.tstops
    if ivp.schedule is not None:
        tstops = [*np.atleast_1d(tstops), *np.ravel(ivp.schedule.times(*ivp.t_span))]
    stops = stops_of(tstops, ivp.t_span)
    engine, first = bound_engine(chosen, ivp, how, output_times, bool(ivp.events))
    keep, until = how.dense_output, how.time_limit
    run = Run(engine, ivp, output_times, stops, keep, how.callback, how.progress, until)
    solution = run.run(first)
    if untraced:
        solution.remark(
            f"f was left untraced: it cannot be traced by arrays, and {ivp.n} states are better "
            f"served by NumPy than by single numbers; traced(f, n={ivp.n}) insists"
        )
    engine.release()
    return solution, run.interrupts.waiting


def _is_better_plain(ivp: IVP) -> bool:
    """Whether f was to be traced, but has too many states for that to pay."""
    f: Any = ivp.f
    return hasattr(f, "is_better_plain") and bool(f.is_better_plain(ivp.n, ivp.params.size))


def _run_with_sensitivities(
    ivp: IVP | Hybrid, sensitivities: Any, how: Settings, throw: bool, on_interrupt: str
) -> Solution:
    """Solve a problem together with the variational equations of what is asked for."""
    if isinstance(ivp, Hybrid):
        raise ValueError(
            "sensitivities are for problems without modes and switches; events with resets carry "
            "them across jumps"
        )
    check_with_sensitivities(chosen_method(how.method))
    task, callback = with_sensitivities(ivp, sensitivities), how.callback
    if callback is not None:
        how = how._replace(callback=lambda t, z: callback(t, z[: ivp.n]))
    pressed = False

    def run(atol: Any) -> Solution:
        nonlocal pressed
        try:
            return solve(task.augmented, **how._replace(atol=atol)._asdict())
        except IntegrationInterrupted as stop:
            pressed = True
            return stop.solution

    asked = np.inf if how.step is not None else relative_tolerance(how.rtol)
    own = absolute_tolerances(how.atol, ivp.n)[1]
    solution = task.solve(run, asked, own, how.t_eval is not None)
    return _delivered(solution, pressed, throw, on_interrupt)


def _precise_run(
    problem: Any,
    t_span: Any,
    y0: Any,
    precision: int,
    how: Settings,
    changes: dict[str, Any],
    others: dict[str, Any],
) -> Solution:
    """Solve a problem in decimal arithmetic."""
    from .methods.precise import solve_precisely
    from .methods.taylor import Taylor

    ivp, numbers = for_many_digits(problem, t_span, y0, how, changes | others)
    solution = solve_precisely(
        ivp,
        Taylor() if how.method in (None, "auto") else chosen_method(how.method),
        precision,
        rtol=None if how.rtol is USUAL_RTOL else relative_tolerance(how.rtol),
        atol=None if how.atol is USUAL_ATOL else how.atol,
        step=how.step,
        t_eval=how.t_eval,
        tstops=how.tstops,
        max_steps=how.max_steps,
        callback=how.callback,
        **numbers,
    )
    solution.problem = ivp
    return solution


def _delivered(solution: Solution, pressed: bool, throw: bool, on_interrupt: str) -> Solution:
    """Return a solution, or raise with it; `pressed` tells of a Ctrl-C, at the very end perhaps."""
    error = solution.exception
    if solution.status == Status.INTERRUPTED or pressed:
        if on_interrupt == "raise":
            raise IntegrationInterrupted(solution.message, solution) from error
        return solution
    if error is not None and not isinstance(error, Exception):
        pass_on(error, solution)
    return solution.raise_for_status() if throw else solution
