"""Baumgarte's feedback: the gap and its rate are fed back into the accelerations.

    g̈ + 2 s α ġ + β² g = 0,    s = +1 forwards in time, −1 backwards.

Both solutions decay in the direction of the integration: with τ = s t the equation is the same in
either direction. Without s a run backwards drives the constraints apart like exp(α t).
"""

from __future__ import annotations

from typing import Any

from .options import number

__all__ = ["T_STAB", "gains", "positive"]

T_STAB = 0.1
"""Default time constant (s) of Baumgarte's stabilisation: for machines of the size of a robot 1 is
too long, 0.01 still works, and a factor of 2 hardly matters (book §8.3). It shall be about as long
as the interval after which a snapshot of the motion looks different."""

STEPS_PER_T_STAB = 10.0
"""T_stab = "auto" is this many steps: far inside the stability region of every method."""


def gains(alpha: Any, beta: Any, T_stab: Any, step: Any) -> tuple[float, float]:
    """α and β of Baumgarte's stabilisation: given, or both 1/T_stab."""
    if T_stab is not None and (alpha is not None or beta is not None):
        raise ValueError("give alpha and beta, or T_stab, not both")
    if T_stab == "auto":
        if step is None:
            raise ValueError('T_stab="auto" is a multiple of the step size; give step, too')
        T_stab = STEPS_PER_T_STAB * positive("step", step)
    elif step is not None:
        raise ValueError('step is for T_stab="auto" only')
    if T_stab is None:
        T_stab = T_STAB
    rate = 1.0 / positive("T_stab", T_stab)
    first = rate if alpha is None else number("alpha", alpha, "a rate in 1/s")
    second = (rate if alpha is None else first) if beta is None else number("beta", beta, "a rate")
    if alpha is None and beta is not None:
        first = second
    for name, value in (("alpha", first), ("beta", second)):
        if value < 0:
            raise ValueError(
                f"{name} must not be negative: the gap would grow instead of decaying; got {value}"
            )
    return first, second


def positive(name: str, value: Any, what: str = 'a time in seconds or "auto"') -> float:
    """Return a positive float, or say what was expected."""
    found = number(name, value, what)
    if found <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return found
