"""Absolute tolerances of sensitivities.

A change of a parameter p by its own size moves the solution by S p, so that an error of S below
atol/|p| is none of the solution's (as CVODES has it). Of S itself it may be all there is: for
p = 1e-12 it is a thousand, whatever S is. How large S is only a run can tell. One whose S turns out
to be small against its tolerance is done again with a tighter one, until errors are allowed to be
at most about atol + rtol max |S|. A tolerance below that from the beginning would ask for digits
that are lost by cancellation where S is large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["REPEATED", "first_tolerances", "tightened"]

Array = NDArray[np.float64]

SLACK = 4.0  # a run is not repeated for less
REPEATED = 3  # at most; the last time atol itself is the tolerance


def first_tolerances(own: Array, dp: Array, params: Array) -> Array:
    """Tolerances of [y; S₁; S₂; …]: those of y, and these in units of each parameter.

    ``dp`` has a row for each direction in the space of the parameters.
    """
    scales = []
    for row in dp:
        size = float(np.abs(params[row != 0.0]).max(initial=0.0))
        scale = float(np.abs(row).max(initial=0.0)) / size if size > 0.0 else 1.0
        scales.append(max(scale, 1e-300))
    return np.concatenate([own, *(own * scale for scale in scales)])


def tightened(used: Array, own: Array, rtol: float, states: Array, done: int) -> Array | None:
    """Tolerances for a repetition of a run; None if those that it had were good.

    Parameters
    ----------
    used
        Tolerances of the run, for [y; S₁; S₂; …].
    own
        Tolerances of y.
    rtol
        Relative tolerance.
    states
        What the run gave: a column [y; S₁; S₂; …] for each time.
    done
        How many repetitions there were already.
    """
    n, last = own.size, done == REPEATED - 1
    wanted = used.copy()
    for j in range(n, used.size, n):
        found = np.abs(states[j : j + n])
        size = 0.0 if last else float(found[np.isfinite(found)].max(initial=0.0))
        wanted[j : j + n] = np.minimum(used[j : j + n], own + rtol * size)
    return wanted if done < REPEATED and (used > SLACK * wanted).any() else None
