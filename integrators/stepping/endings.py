"""How a run ended, in words: what happened, where, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from .limits import RESOLVED
from .state import Status

__all__ = ["ending"]


def ending(status: Status, engine: Any, exception: BaseException | None = None) -> str:
    """Say how a run ended; the engine's t, h, options and failure are asked."""
    if status == Status.FINISHED:
        return "reached the end of the interval"
    where = f"t = {engine.t:.9g}"
    cause, h = repr(exception), engine.h
    texts = {
        Status.STEP_TOO_SMALL: _too_small(engine, h, where),
        Status.NONFINITE: (
            f"the solution or f became NaN or infinite just after {where}"
            + ("" if engine.options.fixed else ", however short the step")
        ),
        Status.NEWTON_FAILED: (
            f"Newton's iteration did not converge at {where}; check jac, shorten the step, "
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
        Status.FUNCTION_RAISED: f"a function of the problem raised {cause} after {where}",
        Status.INTERRUPTED: f"interrupted at {where}",
        Status.EXTERNAL_FAILED: f"the solver gave up at {where}: {engine.failure}",
    }
    return texts.get(status, status.name)


def _too_small(engine: Any, h: float, where: str) -> str:
    """Why steps became too small, as far as that is known."""
    options, resolved = engine.options, RESOLVED * abs(engine.t)
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
    return text + (
        "the solution may have a singularity there, or the tolerance cannot be met; loosen "
        "rtol/atol, or use an implicit method if the problem is stiff"
    )
