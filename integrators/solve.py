"""``solve``: one function for every problem and every method.

It checks the input and binds the method to the problem; a :class:`~integrators.runs.run.Run`
does the rest. Whatever goes wrong on the way, what was computed up to then is returned, or goes
with the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import IntegrationInterrupted, check_choice, pass_on, suggest
from .hybrid import Hybrid
from .manifold import Manifold
from .problem import IVP, in_order
from .runs.hybrid_run import HybridRun
from .runs.mistakes import relative_tolerance, warn_of_swapped
from .runs.quality import global_error
from .runs.run import Run
from .runs.scipy_names import with_args
from .runs.sensitivity import with_sensitivities
from .runs.solution import Solution
from .stepping.control import Controller
from .stepping.engine import Options, Stepper
from .stepping.limits import attempts, step_limits, step_size
from .stepping.state import Status
from .tableau import Tableau

__all__ = ["solve"]

SMALLEST_RTOL = 100 * np.finfo(float).eps
SMALLEST_ATOL = np.finfo(float).tiny
NO_TIMES = np.zeros(0)


def solve(
    problem: IVP | Hybrid | Callable[..., Any],
    t_span: Sequence[float] | None = None,
    y0: ArrayLike | None = None,
    *,
    method: Any = "DOPRI5",
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
        A name of the catalogue ("DOPRI5", "RADAU5", "Gauss4"; SciPy's names work too),
        "RadauVariable", "Taylor", "RKMK4" and its like for a problem with a manifold
        (:class:`MuntheKaas`), "AB3", "BDF2" and other multistep methods (:class:`Multistep`) with
        a fixed step, a :class:`Tableau` or the name of a file with one, an object
        with a ``step`` method (:class:`Method`), a ``scipy.integrate.OdeSolver`` class or
        "scipy:LSODA", or "assimulo:CVode" and its like.
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
    if check not in (None, "global"):
        raise ValueError(f"check must be 'global' or None, got {check!r}")
    if args is not None:
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

    def again(factor: float, times: NDArray[np.float64]) -> Solution:
        return solve(
            ivp,
            method=method,
            step=None if step is None else step / factor,
            rtol=max(relative_tolerance(rtol) / factor, SMALLEST_RTOL),
            atol=np.asarray(atol, dtype=np.float64) / factor,
            t_eval=times,
            tstops=tstops,
            controller=controller,
            norm=norm,
            max_step=max_step,
            max_steps=max_steps,
            kinks=kinks,
        )

    hybrid: Hybrid | None
    if isinstance(problem, Hybrid) and isinstance(method, str):
        own = getattr(problem, "by_own_method", None)
        replaced = None if own is None else own(method)
        if replaced is not None:  # a scheme that only this kind of problem has
            problem, method = replaced
    if isinstance(problem, Hybrid):
        hybrid = _as_hybrid(problem, t_span, y0, changes, check, kinks)
    else:
        ivp = _as_ivp(problem, t_span, y0, changes)
        hybrid = _as_switched(ivp, kinks)
    if hybrid is not None and sensitivities is not None:
        raise ValueError(
            "sensitivities are for problems without modes and switches; events with resets carry "
            "them across jumps"
        )
    if hybrid is not None:
        for_modes: dict[str, Any] = dict(
            method=method,
            step=step,
            rtol=rtol,
            atol=atol,
            t_eval=_output_times(t_eval, hybrid.t_span),
            tstops=tstops,
            dense_output=dense_output,
            controller=controller,
            norm=norm,
            first_step=first_step,
            max_step=max_step,
            min_step=min_step,
            max_steps=max_steps,
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
        task = with_sensitivities(ivp, sensitivities)
        together = solve(
            task.augmented,
            method=method,
            step=step,
            rtol=rtol,
            atol=task.tolerances(atol),
            t_eval=t_eval,
            tstops=tstops,
            dense_output=dense_output,
            controller=controller,
            norm=norm,
            first_step=first_step,
            max_step=max_step,
            min_step=min_step,
            max_steps=max_steps,
            callback=None if callback is None else lambda t, z: callback(t, z[: ivp.n]),
            progress=progress,
            throw=throw,
            on_interrupt=on_interrupt,
        )
        return task.unpack(together)
    ivp = ivp.for_run()
    chosen = _chosen(method)
    n = chosen.error_components(ivp) if hasattr(chosen, "error_components") else ivp.n
    output_times = _output_times(t_eval, ivp.t_span)
    options = _options(
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
    )
    stops = _stops(tstops, ivp.t_span)
    first = _first_step(first_step, ivp.t_span, options)
    engine = _bind(chosen, ivp, options)
    if ivp.nonnegative.size:
        _check_rejects(engine, options, method)
    run = Run(engine, ivp, output_times, stops, dense_output, callback, progress)
    solution = run.run(first)
    solution.method = method_name(method)
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


def _as_ivp(problem: Any, t_span: Sequence[float] | None, y0: Any, changes: dict[str, Any]) -> IVP:
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


def _options(
    ivp: IVP,
    n: int,
    rtol: Any,
    atol: Any,
    step: Any,
    controller: Any,
    norm: str,
    min_step: Any,
    max_step: Any,
    max_steps: int | None,
    dense_output: bool,
    output_times: NDArray[np.float64] | None,
    may_end_early: bool,
) -> Options:
    rtol = relative_tolerance(rtol)
    if not (0 <= rtol < np.inf):
        raise ValueError(f"rtol must be a number ≥ 0, got {rtol}")
    least, weights = _tolerances(atol, n)
    if rtol == 0 and least == 0:
        raise ValueError("rtol = 0 needs atol > 0 for every component: some error must be allowed")
    if 0 < rtol < SMALLEST_RTOL:
        raise ValueError(
            f"rtol = {rtol:g} is below what double precision can deliver; "
            f"use at least {SMALLEST_RTOL:.2g}"
        )
    if step is not None:
        step = step_size(step, ivp.t_span)
        if controller is not None:
            raise ValueError("a fixed step takes no controller; leave out one of the two")
    if controller is not None and not isinstance(controller, Controller):
        raise TypeError(f"controller must be I(), PI(), PID() or Predictive(), got {controller!r}")
    if norm not in ("rms", "max"):
        raise ValueError(f"norm must be 'rms' or 'max', got {norm!r}")
    shortest, longest = step_limits(min_step, max_step, ivp.t_span, may_end_early)
    every_step = bool(dense_output) or len(ivp.events) > 0
    want_dense = every_step or output_times is not None
    return Options(
        rtol=rtol,
        atol=weights,
        step=step,
        controller=controller,
        max_norm=norm == "max",
        min_step=shortest,
        max_step=longest,
        max_steps=attempts(max_steps, step is not None),
        want_dense=want_dense,
        outputs=NO_TIMES if every_step or output_times is None else output_times,
    )


def _tolerances(atol: Any, n: int) -> tuple[float, NDArray[np.float64]]:
    """Smallest absolute tolerance, and one for each component.

    A component that starts at zero with atol = 0 would have to be exact, so none is below
    SMALLEST_ATOL.
    """
    if isinstance(atol, float):
        least = largest = atol
        weights = np.full(n, max(atol, SMALLEST_ATOL))
    else:
        given = np.asarray(atol, dtype=np.float64)
        if given.shape not in ((), (1,), (n,)):
            raise ValueError(
                f"atol must be a number or one for each of the {n} components, "
                f"got shape {given.shape}"
            )
        least, largest = float(given.min()), float(given.max())
        weights = np.maximum(np.broadcast_to(given, n), SMALLEST_ATOL)
    if not (least >= 0 and largest < np.inf):  # nor NaN
        raise ValueError(f"atol must not be negative, NaN or infinite, got {atol!r}")
    return least, weights


def _positive(name: str, value: Any) -> float:
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return number


def _check_rejects(engine: Stepper, options: Options, method: Any) -> None:
    """Steps that make a component negative can only be rejected where the loop is ours."""
    if options.fixed:
        raise ValueError("nonnegative rejects steps, which a fixed step does not allow")
    if not engine.keeps_bounds:
        raise ValueError(f"nonnegative cannot be given to {method_name(method)}; use RADAU5, say")


def _first_step(first_step: Any, span: tuple[float, float], options: Options) -> float | None:
    if first_step is None:
        return None
    if options.fixed:
        raise ValueError("a fixed step takes no first_step; leave out one of the two")
    number = _positive("first_step", first_step)
    length = abs(span[1] - span[0])
    if length > 0 and number > length:
        raise ValueError(f"first_step = {number:g} is longer than the interval ({length:g})")
    return number


def _output_times(t_eval: Any, span: tuple[float, float]) -> NDArray[np.float64] | None:
    if t_eval is None:
        return None
    times = np.array(t_eval, dtype=np.float64, ndmin=1)
    low, high = min(span), max(span)
    if times.ndim != 1:
        raise ValueError(f"t_eval must be a flat list of times, got shape {times.shape}")
    if not ((times >= low) & (times <= high)).all():
        if not np.all(np.isfinite(times)):
            raise ValueError("t_eval contains NaN or infinity")
        raise ValueError(f"t_eval must lie within t_span = {span}")
    earlier, later = (times[:-1], times[1:]) if span[1] >= span[0] else (times[1:], times[:-1])
    if not (later > earlier).all():
        raise ValueError("t_eval must be strictly sorted in the direction of the integration")
    return times


def _stops(tstops: Any, span: tuple[float, float]) -> list[float]:
    if isinstance(tstops, tuple | list) and not tstops:
        return [span[1]]
    times = np.atleast_1d(np.asarray(tstops, dtype=np.float64))
    if not np.all(np.isfinite(times)):
        raise ValueError("tstops contains NaN or infinity")
    inside = np.unique(times[(times > min(span)) & (times < max(span))])
    ordered = inside if span[1] >= span[0] else inside[::-1]
    return [*map(float, ordered), span[1]]


def method_name(method: Any) -> str:
    """Return a name for tables and messages."""
    if isinstance(method, str):
        return method
    return getattr(method, "name", "") or getattr(method, "__name__", "") or type(method).__name__


def _chosen(method: Any) -> Any:
    """Return the method behind a name; Assimulo's are known by their names only."""
    if not isinstance(method, str) or method.lower().startswith("assimulo:"):
        return method
    if method in _tableaux:
        return _tableaux[method]
    chosen = named_method(method)
    if isinstance(chosen, Tableau) and not method.endswith((".toml", ".json")):
        _tableaux[method] = chosen  # a file may change, the catalogue does not
    return chosen


_tableaux: dict[str, Tableau] = {}


def _bind(method: Any, ivp: IVP, options: Options) -> Stepper:
    """Bind whatever the user calls a method to the problem."""
    from .methods.runge_kutta.engine import engine_for

    if isinstance(method, str):
        from .methods.external.assimulo_dae import assimulo_engine

        return assimulo_engine(method.split(":", 1)[1], ivp, options)
    if isinstance(method, Tableau):
        return engine_for(method, ivp, options)
    if isinstance(method, type) and _is_scipy_solver(method):
        from .methods.external.scipy import ScipyEngine

        return ScipyEngine(method, ivp, options)
    if isinstance(method, type):
        raise TypeError(f"{method.__name__} is a class; pass an instance, {method.__name__}()")
    if hasattr(method, "bind"):
        return method.bind(ivp, options)
    if callable(getattr(method, "step", None)) and hasattr(method, "order"):
        from .methods.user import CustomEngine

        return CustomEngine(method, ivp, options)
    from .methods.user.plain_function import StepFunction, is_step_function

    if is_step_function(method):
        from .methods.user import CustomEngine

        return CustomEngine(StepFunction(method), ivp, options)
    raise TypeError(
        f"method must be a name, a Tableau, a function step(f, t, y, h), an object with `order` "
        f"and `step(f, t, y, h)`, or a SciPy OdeSolver class; got {method!r}"
    )


def named_method(name: str) -> Any:
    """Return a method by name: one of the catalogue, or one that is no tableau."""
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    if plain == "radauvariable":
        from .methods.runge_kutta.radau_variable import VariableRadau

        return VariableRadau()
    order = plain[6:].strip("()")
    if plain.startswith("taylor") and (order.isdigit() or order in ("", "auto")):
        from .methods.taylor import Taylor

        return Taylor(int(order) if order.isdigit() else order or None)
    if plain.startswith(("munthekaas", "rkmk")):
        from .methods.lie import MuntheKaas

        return MuntheKaas.from_name(name)
    if plain.startswith(("hem", "halfexplicit", "generalizedalpha", "generalisedalpha")):
        from .methods.mechanical.names import constrained_method

        return constrained_method(name)
    if plain.startswith("scipy:"):
        return _scipy_solver(name.split(":", 1)[1].strip())
    if plain != "bdf1":  # that is the catalogue's implicit Euler method, which controls its steps
        from .methods.multistep.names import find_multistep

        if (found := find_multistep(name)) is not None:
            return found
    from .catalogue import from_name_or_file

    return from_name_or_file(name)


def _scipy_solver(name: str) -> type:
    """Return a solver class of scipy.integrate, whatever the case of the name."""
    import scipy.integrate

    known = {
        key: value
        for key, value in vars(scipy.integrate).items()
        if isinstance(value, type) and _is_scipy_solver(value)
    }
    known.pop("OdeSolver")
    for key, value in known.items():
        if key.lower() == name.lower():
            return value
    raise ValueError(
        f"scipy.integrate has no solver class {name!r}{suggest(name, list(known))} "
        f"(it has {', '.join(sorted(known))})"
    )


def _is_scipy_solver(method: type) -> bool:
    from scipy.integrate import OdeSolver

    return issubclass(method, OdeSolver)


__all__ += ["method_name", "named_method"]
