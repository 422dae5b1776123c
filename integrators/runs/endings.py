"""How a run ended, in words: what happened, where, and what may help."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..stepping.limits import RESOLVED
from ..stepping.state import Status

__all__ = ["LARGE", "ending", "own_line", "remarks"]

BLOWN_UP = 1e30  # growth of the state that few problems mean …
BLOWN_UP_FIXED = 1e15  # … and that a fixed step often causes
FEW = 20  # numbers up to which Python is quicker than NumPy
LARGE = 1e6  # states below this have digits enough
OFTEN_SET_BACK = 0.1  # part of the steps after which a multistep method loses its past
MOSTLY, FEW_STIFF = 0.5, 50  # part and number of steps that make a run a stiff one
NEGATIVE = 1e-3  # part of the whole by which an amount below zero is worth a word
MATTERS = 1e3  # a motion by so many atol is one that the user wants to see


_HERE = Path(__file__).parents[2]  # our packages, and others beside them where we are installed
LIBRARIES = tuple(
    f"{folder}{os.sep}"
    for folder in (
        *(_HERE / name for name in ("integrators", "multibody", "featherstep")),
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        Path(np.__file__).parents[1],
    )
)


def ending(status: Status, engine: Any, exception: BaseException | None = None) -> str:
    """What became of a run; the engine's t, h, options and failure are asked."""
    if status == Status.FINISHED:
        return "reached the end of the interval"
    where = f"t = {engine.t:.9g}"
    noted = "; ".join(getattr(exception, "__notes__", ()))  # where it was raised
    if status == Status.STEP_TOO_SMALL:
        return _too_small(engine, where)
    solving = f"in the step of {engine.options.step:.3g} from" if engine.options.fixed else "at"
    texts = {
        Status.NONFINITE: (
            f"the solution or f became NaN or infinite just after {where}"
            + (
                " (is the fixed step too long for stability?)"
                if engine.options.fixed
                else ", however short the step"
            )
        ),
        Status.NEWTON_FAILED: (
            f"Newton's iteration did not converge {solving} {where}; check jac, shorten the step, "
            "look for a jump in f, or for constraints that become dependent there"
        ),
        Status.SINGULAR_MATRIX: (
            f"the matrix M − hλJ is singular at {where}; check mass and jac, and the index of "
            "a differential-algebraic problem"
        ),
        Status.TOO_MANY_STEPS: (
            f"gave up at {where} after max_steps = {engine.options.max_steps} attempts; raise "
            "max_steps, loosen the tolerances, or use an implicit method if the problem is "
            "stiff"
        ),
        Status.NEGATIVE: (
            f"a component that must not be negative becomes so after {where}, however short the "
            "step; check f there, and nonnegative"
        ),
        Status.FUNCTION_RAISED: (
            f"a function of the problem raised {exception!r} "
            f"{noted or f'after {where}'}{own_line(exception)}"
        ),
        Status.INTERRUPTED: f"interrupted at {where}",
        Status.EXTERNAL_FAILED: f"the solver gave up at {where}: {engine.failure}",
    }
    text = texts.get(status, status.name)
    if status == Status.TOO_MANY_STEPS and (stiff := _about_stiffness(engine)):
        return f"{text}; {stiff}"
    if status in (Status.TOO_MANY_STEPS, Status.NEWTON_FAILED):
        text += _about_jumps(engine)
    caution = getattr(engine, "caution", "")  # of a method that should not be trusted
    if caution and status in (Status.NONFINITE, Status.NEWTON_FAILED):
        text += f"; {caution}"
    if isinstance(exception, RecursionError):
        text += "; it calls itself without end (does it call its own name, or solve?)"
    return text


def own_line(exception: BaseException | None) -> str:
    """The line of the user's own code in which it happened; nothing if it was in a library."""
    frames = traceback.extract_tb(exception.__traceback__ if exception else None)
    for frame in reversed(frames):
        if not frame.filename.startswith(LIBRARIES):
            code = f": {frame.line}" if frame.line else ""
            return f" (line {frame.lineno} of {Path(frame.filename).name}{code})"
    return ""


def _too_small(engine: Any, where: str) -> str:
    """Why steps became too small, as far as that is known."""
    options, resolved, h = engine.options, RESOLVED * abs(engine.t), engine.h
    if options.max_step < resolved:
        return (
            f"stopped at {where}: max_step = {options.max_step:g} is too short there, since "
            f"times are rounded to {np.spacing(abs(engine.t)):.2g} in double precision; "
            "make it larger, or shift the clock so that t starts at 0"
        )
    text = f"the step size became too small (h = {h:.3g}) at {where}: "
    if options.min_step > max(h, resolved):
        text += f"the tolerance needs steps shorter than min_step = {options.min_step:g}; "
        return text + "lower min_step, or loosen rtol/atol"
    text += (
        "the solution may have a singularity there, or the tolerance cannot be met; loosen "
        "rtol/atol, or use an implicit method if the problem is stiff"
    )
    return text + _about_signs(engine) + _about_jumps(engine)


def _about_signs(engine: Any) -> str:
    """What helps if concentrations, say, became negative: atol allows that, f may not."""
    y0, y = engine.problem.y0, getattr(engine, "y", np.zeros(0))  # a lane has none
    if y0.shape != y.shape or y0.dtype.kind == "c" or np.any(y0 < 0.0) or not np.any(y < 0.0):
        return ""
    which = np.flatnonzero(y < 0.0)
    named = f"nonnegative={which.tolist()}" if which.size <= FEW else "nonnegative=…"
    return (
        f"; {which.size} of the components, none of which began below zero, have become negative: "
        f"if they cannot be, give {named}, or an atol far below their sizes"
    )


def _about_jumps(engine: Any) -> str:
    """What helps if f jumps: an explicit or implicit method chatters there without end."""
    f = engine.problem.f
    if not hasattr(f, "graph"):
        return "; if f jumps there (the sign of friction, an if), write it as integrators.Switch"
    from ..tracing.calculus.dependence import has_kinks  # loaded by whoever traced f

    known = f.is_traced and has_kinks(f.form)
    return "; f has branches (sign, where, abs, …): kinks='locate' steps on them" if known else ""


def remarks(
    ivp: IVP, engine: Any, slope: NDArray[Any] | None, y_end: NDArray[Any]
) -> Iterator[str]:
    """What should be said of a run that has reached its end; `slope` is f at its start.

    The engine's options and number of steps are asked.
    """
    options = engine.options
    if caution := getattr(engine, "caution", ""):  # of a method that should not be trusted
        yield caution
    if stiff := _about_stiffness(engine):
        yield stiff
    few = y_end.tolist() if y_end.size < FEW else None
    end = max(map(abs, few)) if few else float(abs(y_end).max())
    if end > LARGE:
        start = float(abs(ivp.y0).max())
        if end > (BLOWN_UP_FIXED if options.fixed else BLOWN_UP) * max(start, 1.0):
            cause = " (is the fixed step too long for stability?)" if options.fixed else ""
            yield f"the solution has grown to {end:.1g}: unless it is meant to, it blew up{cause}"
        if slope is not None and slope.shape == ivp.y0.shape:
            yield from _stuck(ivp, engine, slope, y_end)
    below = y_end.dtype.kind != "c" and (min(few) if few else y_end.min()) < 0.0
    if below and slope is not None and (left := _about_amounts(ivp, slope, y_end)):
        yield left
    if options.idle_tolerances:
        yield (
            "rtol and atol had no effect, since a fixed step has no error control; leave out step "
            "to have it"
        )
    set_back = getattr(engine, "set_back", 0)  # of multistep methods
    if set_back and set_back > OFTEN_SET_BACK * engine.statistics()["nsteps"]:
        yield (
            f"{engine.name} is a multistep method and began anew, at order 1, after {set_back:,} "
            f"of {engine.statistics()['nsteps']:,} steps, because the projection onto the "
            "constraints moved the state by more than the tolerance; one-step methods (DOPRI853, "
            "RADAU5, Taylor) keep their order"
        )


def _about_amounts(ivp: IVP, slope: NDArray[Any], y_end: NDArray[Any]) -> str:
    """What to say if amounts that f hands from one to another are what has become negative.

    Their sum is kept and none began below zero, so each has the whole as its bound.
    """
    y0 = ivp.y0
    if y0.size < 2 or ivp.mass is not None or y0.min() < 0.0:
        return ""
    whole, moved = float(y0.sum()), float(np.abs(slope).sum())
    kept = moved > 0.0 and abs(float(slope.sum())) <= 1e-14 * moved
    if not kept or y_end.min() > -NEGATIVE * whole or ivp.nonnegative.size:
        return ""
    total = float(y_end.sum())
    if abs(total - whole) > 1e-3 * whole + 1e-12 * float(np.abs(y_end).sum()):
        return ""
    i = int(y_end.argmin())
    return (
        f"f keeps the sum of all components, none of which began below zero, but y[{i}] has become "
        f"{y_end[i]:.3g}: if they are amounts, this is no solution; give nonnegative=True, or an "
        "atol far below their sizes"
    )


def _about_stiffness(engine: Any) -> str:
    """What explicit steps that stability limited say of the problem, and what helps."""
    state = getattr(engine, "state", None)
    if state is None or state.stiff_total < FEW_STIFF:
        return ""
    steps = int(state.nsteps)
    if state.stiff_total < MOSTLY * steps:
        return ""
    return (
        f"the problem is stiff: stability rather than accuracy kept {int(state.stiff_total):,} of "
        f"{steps:,} steps short; method='auto' or one for stiff problems (BDF, RADAU5) takes far "
        "fewer"
    )


def _stuck(ivp: IVP, engine: Any, slope: NDArray[Any], y_end: NDArray[Any]) -> Iterator[str]:
    """Components too large for their steps to change them."""
    steps = engine.statistics()["nsteps"]
    if ivp.mass is not None or engine.options.atol.shape != ivp.y0.shape or steps == 0:
        return
    length = abs(ivp.t_span[1] - ivp.t_span[0])
    digit, motion = np.spacing(np.abs(ivp.y0)), np.abs(slope) * length
    wanted = (motion > MATTERS * engine.options.atol) & (motion > digit / 4)
    for i in np.flatnonzero(wanted & (motion / steps < digit) & (y_end == ivp.y0)):
        yield (
            f"y[{i}] = {ivp.y0[i]:g} has not moved, though its derivative is {slope[i]:.3g}: "
            f"digits are lost, since numbers of this size are {digit[i]:.2g} apart; measure it "
            "from a place nearer to it"
        )
        return
