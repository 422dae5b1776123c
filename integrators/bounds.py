"""What a problem promises about its solution, held against a run that has ended.

Components declared non-negative, and quantities declared to be conserved: a run that leaves them
by far more than its tolerance has gone astray, however well each step looked.
"""

from __future__ import annotations

import numpy as np

from .methods.stepper import Options
from .problem import IVP
from .solution import Solution

__all__ = ["broken_promises"]

DRIFT = 1e3  # tolerances that a conserved quantity may drift before it is worth a sentence
LOOKS = 4  # states that are looked at, the last one among them


def broken_promises(ivp: IVP, solution: Solution, options: Options) -> str:
    """Sentences for the solution's message, or an empty text."""
    if not len(solution.t) or not np.all(np.isfinite(solution.y[:, -1])):
        return ""
    sentences = []
    below = [int(i) for i in ivp.nonnegative if np.min(solution.y[i]) < 0]
    if below:
        names = ", ".join(f"y[{i}]" for i in below)
        least = float(np.min(solution.y[below]))
        sentences.append(
            f"{names} must not be negative but comes down to {least:.3g} between steps, by "
            "interpolation, or by a reset or a projection"
        )
    if not options.fixed:
        sentences += [_drift(ivp, solution, options, name) for name in ivp.invariants]
    return "".join(f"; warning: {sentence}" for sentence in sentences if sentence)


def _drift(ivp: IVP, solution: Solution, options: Options, name: str) -> str:
    """A sentence on an invariant that is not kept."""
    function = ivp.bind(ivp.invariants[name])
    places = np.unique(np.linspace(0, len(solution.t) - 1, LOOKS + 1).astype(int))[1:]
    try:
        start = np.asarray(function(ivp.t_span[0], ivp.y0), dtype=float)
        values = [
            np.asarray(function(solution.t[k], solution.y[:, k]), dtype=float) for k in places
        ]
    except Exception:  # an invariant that fails says nothing about the run
        return ""
    drift = max((float(np.max(np.abs(value - start))) for value in values), default=0.0)
    size = max((float(np.max(np.abs(value))) for value in (start, *values)), default=0.0)
    if drift <= DRIFT * (options.rtol * size + float(np.max(options.atol))):
        return ""
    return f"the conserved quantity {name!r} has changed by {drift:.3g} (it started at {start:.6g})"
