"""Sensitivities of many runs: variational equations beside each of them, in lanes if they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..runs.sensitivity import _direction, with_sensitivities
from .results import ManySolutions

__all__ = ["many_with_sensitivities"]

Array = NDArray[np.float64]


def many_with_sensitivities(
    ivp: IVP,
    states: Array,
    parameters: Array,
    names: Any,
    atol: Any,
    run: Callable[..., ManySolutions],
) -> ManySolutions:
    """Solve augmented problems by ``run(problem, y0=…, params=…, atol=…)`` and take them apart."""
    task = with_sensitivities(ivp, names)
    n, m = ivp.n, len(states)
    dp, dy0 = np.empty((m, task.dp.size)), np.empty((m, task.dy0.size))
    own = getattr(ivp, "sensitivity_direction", None)
    if own is None:
        dp[:], dy0[:] = task.dp.ravel(), task.dy0.ravel()
    else:  # directions that follow from the parameters of each run
        for k in range(m):
            member = ivp.with_(y0=states[k], params=parameters[k])
            rows = [_direction(member, name) for name in task.names]
            dp[k] = np.concatenate([r[0] for r in rows])
            dy0[k] = np.concatenate([r[1] for r in rows])
    found = run(
        task.augmented,
        y0=np.hstack([states, dy0]),
        params=np.hstack([parameters, dp]) if parameters.shape[1] else None,
        atol=task.tolerances(atol),
    )
    for j, name in enumerate(task.names):
        part = slice(n * (j + 1), n * (j + 2))
        found.sensitivities[name] = found.y[:, part].copy()
        found.sensitivities_eval[name] = found.y_eval[:, part].copy()
    found.y, found.y_eval = found.y[:, :n].copy(), found.y_eval[:, :n].copy()
    found.y_events = [[y[:, :n] if len(y) else y for y in of] for of in found.y_events]
    return found
