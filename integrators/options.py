"""Options of a run, checked before it starts: tolerances, steps, output times."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .methods.linear import check_linear, linear_choice
from .methods.names import bound, method_name
from .problem import IVP
from .runs.mistakes import relative_tolerance
from .stepping.control import Controller
from .stepping.engine import Options, Stepper
from .stepping.limits import attempts, step_limits, step_size

__all__ = [
    "SMALLEST_RTOL",
    "USUAL_ATOL",
    "USUAL_RTOL",
    "Settings",
    "bound_engine",
    "output_times_of",
    "stops_of",
]

#: What tolerances are without being given. They are known by identity, not by value: whoever writes
#: rtol=1e-6 has asked for it.
USUAL_RTOL, USUAL_ATOL = 1e-6, 1e-9
SMALLEST_RTOL = 100 * np.finfo(float).eps
SMALLEST_ATOL = np.finfo(float).tiny
NO_TIMES = np.zeros(0)


class Settings(NamedTuple):
    """How a run is to be done: keywords of ``solve``, as they were given."""

    method: Any = "auto"
    step: Any = None
    rtol: Any = USUAL_RTOL
    atol: Any = USUAL_ATOL
    t_eval: Any = None
    tstops: Any = ()
    dense_output: bool = False
    controller: Controller | None = None
    norm: str = "rms"
    first_step: float | None = None
    max_step: Any = np.inf
    min_step: Any = 0.0
    max_steps: int | None = None
    time_limit: Any = None
    callback: Any = None
    progress: bool = False
    linear_solver: str | None = None
    preconditioner: Any = "auto"
    bandwidth: Any = None

    def named(self) -> list[str]:
        """Return the names of those that differ from what they are without being given."""
        return [
            name
            for name, default in self._field_defaults.items()
            if (value := getattr(self, name)) is not default
            and not (isinstance(value, int | float | str | tuple) and value == default)
        ]

    def finer(self, factor: float, times: NDArray[np.float64] | None) -> Settings:
        """Return what asks for an error smaller by a factor, at these times alone, or all steps."""
        return self._replace(
            step=None if self.step is None else self.step / factor,
            rtol=max(relative_tolerance(self.rtol) / factor, SMALLEST_RTOL),
            atol=np.asarray(self.atol, dtype=np.float64) / factor,
            t_eval=times,
            dense_output=False,
            first_step=None,
            min_step=0.0,
            time_limit=None,
            callback=None,
            progress=False,
        )


def bound_engine(
    method: Any,
    ivp: IVP,
    how: Settings,
    output_times: NDArray[np.float64] | None,
    may_end_early: bool,
) -> tuple[Any, float | None]:
    """Return a method bound to a problem, and the length of its first step if it was given."""
    n = method.error_components(ivp) if hasattr(method, "error_components") else ivp.n
    linear = linear_choice(how.linear_solver, how.preconditioner, how.bandwidth)
    options = _run_options(ivp, n, how, output_times, may_end_early, linear)
    first = _first_step_length(how.first_step, ivp.t_span, options)
    engine = bound(method, ivp, options)
    check_linear(linear, engine.linear_solver, method_name(how.method))
    if ivp.nonnegative.size:
        _check_rejects(engine, options, method_name(how.method))
    return engine, first


def _run_options(
    ivp: IVP,
    n: int,
    how: Settings,
    output_times: NDArray[np.float64] | None,
    may_end_early: bool,
    linear: Any = None,
) -> Options:
    """What a method is told of a run; `n` is the number of components with an error."""
    step, controller = how.step, how.controller
    rtol = relative_tolerance(how.rtol)
    if not (0 <= rtol < np.inf):
        raise ValueError(f"rtol must be a number ≥ 0, got {rtol}")
    least, weights = absolute_tolerances(how.atol, n)
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
    if how.norm not in ("rms", "max"):
        raise ValueError(f"norm must be 'rms' or 'max', got {how.norm!r}")
    may_end_early = may_end_early or how.callback is not None
    shortest, longest = step_limits(how.min_step, how.max_step, ivp.t_span, may_end_early)
    every_step = bool(how.dense_output) or len(ivp.events) > 0
    want_dense = every_step or output_times is not None
    return Options(
        rtol=rtol,
        atol=weights,
        step=step,
        idle_tolerances=step is not None
        and (how.rtol is not USUAL_RTOL or how.atol is not USUAL_ATOL),
        controller=controller,
        max_norm=how.norm == "max",
        min_step=shortest,
        max_step=longest,
        max_steps=attempts(how.max_steps, step is not None),
        want_dense=want_dense,
        outputs=NO_TIMES if every_step or output_times is None else output_times,
        linear=linear,
    )


def absolute_tolerances(atol: Any, n: int) -> tuple[float, NDArray[np.float64]]:
    """Smallest absolute tolerance, and one for each component.

    A component that starts at zero with atol = 0 would have to be exact, so none is below
    SMALLEST_ATOL.
    """
    if isinstance(atol, float):
        least = largest = atol
        weights = _equal_weights(max(atol, SMALLEST_ATOL), n)
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


@lru_cache(maxsize=64)
def _equal_weights(atol: float, n: int) -> NDArray[np.float64]:
    weights = np.full(n, atol)
    weights.flags.writeable = False
    return weights


def _positive(name: str, value: Any) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value}")
    return number


def _check_rejects(engine: Stepper, options: Options, name: str) -> None:
    """Steps that make a component negative can only be rejected where the loop is ours."""
    if options.fixed:
        raise ValueError("nonnegative rejects steps, which a fixed step does not allow")
    if not engine.keeps_bounds:
        raise ValueError(f"nonnegative cannot be given to {name}; use RADAU5, say")


def _first_step_length(
    first_step: Any, span: tuple[float, float], options: Options
) -> float | None:
    """Length of the first step, if it was given."""
    if first_step is None:
        return None
    if options.fixed:
        raise ValueError("a fixed step takes no first_step; leave out one of the two")
    number = _positive("first_step", first_step)
    length = abs(span[1] - span[0])
    if length > 0 and number > length:
        raise ValueError(f"first_step = {number:g} is longer than the interval ({length:g})")
    return number


def output_times_of(t_eval: Any, span: tuple[float, float]) -> NDArray[np.float64] | None:
    """Times of output, in order; None for all steps."""
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


def stops_of(tstops: Any, span: tuple[float, float]) -> list[float]:
    """Times to step on, in order, the end among them."""
    if isinstance(tstops, (tuple, list)) and not tstops:
        return [span[1]]
    times = np.atleast_1d(np.asarray(tstops, dtype=np.float64))
    if not np.all(np.isfinite(times)):
        raise ValueError("tstops contains NaN or infinity")
    inside = np.unique(times[(times > min(span)) & (times < max(span))])
    ordered = inside if span[1] >= span[0] else inside[::-1]
    return [*map(float, ordered), span[1]]
