"""``solve``: one function for every problem and every method.

It checks the input and binds the method to the problem; a :class:`~integrators.runs.run.Run`
does the rest. Whatever goes wrong on the way, what was computed up to then is returned, or goes
with the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import IntegrationInterrupted, check_choice, pass_on
from .hybrid import Hybrid
from .manifold import Manifold
from .methods.linear import check_linear, linear_choice
from .methods.names import bound, check_with_sensitivities, chosen_method, method_name
from .options import (
    SMALLEST_RTOL,
    check_rejects,
    first_step_length,
    output_times_of,
    run_options,
    stops_of,
)
from .problem import IVP, in_order
from .runs.hybrid.hybrid_run import HybridRun
from .runs.mistakes import relative_tolerance, warn_of_swapped
from .runs.quality import global_error
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
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
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
    check_choice(on_interrupt)
    if precision is not None:
        from .methods.precise import solve_precisely
        from .methods.taylor import Taylor

        refused = dict(
            dense_output=dense_output, jac=jac, args=args, mass=mass,
            jac_sparsity=jac_sparsity, index=index, project=project, nonnegative=nonnegative,
            manifold=manifold, controller=controller, first_step=first_step, check=check,
            kinks=kinks, sensitivities=sensitivities, linear_solver=linear_solver,
            bandwidth=bandwidth,
        )  # fmt: skip
        ivp, numbers = _for_many_digits(problem, t_span, y0, params, refused, max_step, min_step)
        if events is not None:
            ivp = ivp.with_(events=events)
        solution = solve_precisely(
            ivp,
            Taylor() if method in (None, "auto") else chosen_method(method),
            precision,
            rtol=None if rtol == 1e-6 else relative_tolerance(rtol),
            atol=None if isinstance(atol, float) and atol == 1e-9 else atol,
            step=step,
            t_eval=t_eval,
            tstops=tstops,
            max_steps=max_steps,
            callback=callback,
            **numbers,
        )
        solution.problem = ivp
        return _delivered(solution, False, throw, on_interrupt)
    if check not in (None, "global"):
        raise ValueError(f"check must be 'global' or None, got {check!r}")
    if args is not None:
        problem, jac, events = with_args(args, problem, jac, events, params)
    linear = linear_choice(linear_solver, preconditioner, bandwidth)
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

    def settings(**others: Any) -> dict[str, Any]:
        """How the run is done, for other runs on its behalf."""
        own = dict(method=method, step=step, rtol=rtol, atol=atol, tstops=tstops, norm=norm)
        steps = dict(controller=controller, max_step=max_step, max_steps=max_steps)
        systems = {}
        if linear is not None:
            systems = dict(linear_solver=linear_solver, bandwidth=bandwidth)
            systems["preconditioner"] = preconditioner
        return {**own, **steps, **systems, **others}

    def again(factor: float, times: NDArray[np.float64]) -> Solution:
        finer = {
            "step": None if step is None else step / factor,
            "rtol": max(relative_tolerance(rtol) / factor, SMALLEST_RTOL),
            "atol": np.asarray(atol, dtype=np.float64) / factor,
        }
        return solve(ivp, **settings(**finer, t_eval=times, kinks=kinks))

    hybrid: Hybrid | None
    if isinstance(problem, Hybrid) and isinstance(method, str):
        own = getattr(problem, "by_own_method", None)
        replaced = None if own is None else own(method)
        if replaced is not None:  # a scheme that only this kind of problem has
            if step is None:
                raise ValueError(f"{method} has no error estimate; give a fixed step, step=h")
            problem, method = replaced
    if isinstance(problem, Hybrid):
        hybrid = _as_hybrid(problem, t_span, y0, changes, check, kinks)
    else:
        ivp = as_problem(problem, t_span, y0, changes)
        hybrid = _as_switched(ivp, kinks)
    if hybrid is not None and sensitivities is not None:
        raise ValueError(
            "sensitivities are for problems without modes and switches; events with resets carry "
            "them across jumps"
        )
    if hybrid is not None:
        for_modes = settings(
            t_eval=output_times_of(t_eval, hybrid.t_span),
            dense_output=dense_output,
            first_step=first_step,
            min_step=min_step,
            callback=callback,
            progress=progress,
        )
        solution = HybridRun(hybrid, solve, for_modes).run()
        solution.method = method_name(method)
        solution.problem = problem if isinstance(problem, Hybrid) else ivp
        asked = None if step is not None else relative_tolerance(rtol)
        looked = check is not None and solution.success and solution.t.size > 0
        solution.judge(asked, global_error(solution, again, asked) if looked else None)
        return _delivered(solution, False, throw, on_interrupt)
    if sensitivities is not None:
        check_with_sensitivities(chosen_method(method))
        task = with_sensitivities(ivp, sensitivities)
        for_all = settings(
            atol=task.tolerances(atol),
            t_eval=t_eval,
            dense_output=dense_output,
            first_step=first_step,
            min_step=min_step,
            callback=None if callback is None else lambda t, z: callback(t, z[: ivp.n]),
            progress=progress,
            throw=throw,
            on_interrupt=on_interrupt,
        )
        return task.unpack(solve(task.augmented, **for_all))
    ivp = ivp.for_run()
    chosen = chosen_method(method)
    untraced = not hasattr(chosen, "order_for") and _is_better_plain(ivp)  # Taylor needs the trace
    if untraced:
        ivp = replace(ivp, f=ivp.f.function)  # type: ignore[attr-defined]
    n = chosen.error_components(ivp) if hasattr(chosen, "error_components") else ivp.n
    output_times = output_times_of(t_eval, ivp.t_span)
    options = run_options(
        ivp,
        n,
        rtol,
        atol,
        step,
        controller,
        norm,
        min_step,
        max_step,
        max_steps,
        dense_output,
        output_times,
        may_end_early=len(ivp.events) > 0 or callback is not None,
        linear=linear,
    )
    if ivp.schedule is not None:
        tstops = [*np.atleast_1d(tstops), *np.ravel(ivp.schedule.times(*ivp.t_span))]
    stops = stops_of(tstops, ivp.t_span)
    first = first_step_length(first_step, ivp.t_span, options)
    engine = bound(chosen, ivp, options)
    check_linear(linear, engine.linear_solver, method_name(method))
    if ivp.nonnegative.size:
        check_rejects(engine, options, method_name(method))
    run = Run(engine, ivp, output_times, stops, dense_output, callback, progress)
    solution = run.run(first)
    solution.method = method_name(method)
    if untraced:
        solution.remark(
            f"f was left untraced: {ivp.n} states are better served by NumPy's arrays; "
            f"traced(f, n={ivp.n}) insists"
        )
    engine.release()
    asked = None if options.fixed else options.rtol
    estimate = None
    if check is not None and solution.success and solution.t.size:
        estimate = global_error(solution, again, asked)
    solution.judge(asked, estimate)
    return _delivered(solution, run.interrupts.waiting, throw, on_interrupt)


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


# -------------------------------------------------------------------- checking the input


def as_problem(
    problem: Any, t_span: Sequence[float] | None, y0: Any, changes: dict[str, Any]
) -> IVP:
    """The problem that solve was given, with what it was given in place of its own."""
    given = {
        name: value
        for name, value in changes.items()
        if value is not None and not (isinstance(value, tuple) and value == ())
    }
    if isinstance(problem, IVP):
        if t_span is not None:
            given["t_span"] = t_span
        if y0 is not None:
            given["y0"] = y0
        return problem.with_(**given) if given else problem
    if not callable(problem):
        raise TypeError(f"expected an IVP or a function f(t, y), got {problem!r}")
    if t_span is None or y0 is None:
        raise TypeError("solve(f, t_span, y0) needs the interval and the initial state")
    warn_of_swapped(problem)
    interval, start = in_order(t_span, y0)
    return IVP(problem, start, interval, **given)


def _is_better_plain(ivp: IVP) -> bool:
    """Whether f was to be traced, but has too many states for that to pay."""
    f: Any = ivp.f
    return hasattr(f, "is_better_plain") and bool(f.is_better_plain(ivp.n))


def _for_many_digits(
    problem: Any,
    t_span: Any,
    y0: Any,
    params: Any,
    refused: dict[str, Any],
    max_step: float,
    min_step: float,
) -> tuple[IVP, dict[str, Any]]:
    """The problem of a run with many digits, and its numbers that doubles do not hold."""
    names = [
        name
        for name, value in refused.items()
        if not (value is None or value is False or (isinstance(value, tuple) and value == ()))
    ]
    names += ["max_step"] * (max_step != np.inf) + ["min_step"] * (min_step != 0)
    from .methods.precise import exact_numbers

    asked: dict[str, Any] = {}
    if y0 is not None:
        asked["y0"] = exact_numbers(y0)
        y0 = [float(x) for x in asked["y0"]]
    if t_span is not None:
        asked["t_span"] = exact_numbers(t_span)
        t_span = tuple(float(x) for x in asked["t_span"])
    ivp = as_problem(problem, t_span, y0, {"params": params})
    own = dict(project=ivp.project, manifold=ivp.manifold, mass=ivp.mass)
    names += [name for name, value in own.items() if not (value is None or value == ())]
    if ivp.nonnegative.size:
        names.append("nonnegative")
    if names:
        raise ValueError(
            f"runs with many digits take no {', '.join(sorted(set(names)))}; leave that out (of a "
            "problem by problem.with_), or leave out precision"
        )
    return ivp, asked


def _as_hybrid(
    problem: Hybrid,
    t_span: Sequence[float] | None,
    y0: Any,
    changes: dict[str, Any],
    check: str | None,
    kinks: str | None,
) -> Hybrid:
    """The hybrid problem with what solve was given in place of its own."""
    given = {
        name: value for name, value in {"t_span": t_span, "y0": y0}.items() if value is not None
    }
    for name, value in changes.items():
        if value is None or (isinstance(value, tuple) and value == ()):
            continue
        if name not in ("params", "events"):
            raise ValueError(
                f"{name} belongs to one problem, and a Hybrid has one in each mode; give it to "
                "the IVP of the mode"
            )
        given[name] = value
    if check is not None:
        raise ValueError(
            "check='global' compares states at equal times, which means nothing near a jump whose "
            "time differs; solve the Hybrid again with a tighter rtol and compare what matters"
        )
    if kinks is not None:
        raise ValueError("kinks belongs to one right-hand side; give it to the Mode that has it")
    return problem.with_(**given) if given else problem


def _as_switched(ivp: IVP, kinks: str | None) -> Hybrid | None:
    """The modes of a right-hand side that is a Switch, or whose kinks are to be located."""
    if kinks not in (None, "locate"):
        raise ValueError(f"kinks must be 'locate' or None, got {kinks!r}")
    if kinks is None and not getattr(ivp.f, "is_piecewise", False):
        return None
    from .hybrid.filippov import switched

    return switched(ivp, kinks is not None)
