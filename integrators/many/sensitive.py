"""Sensitivities of many runs: variational equations beside each of them, in lanes if they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..runs.sensitivities.forward import Sensitivities, _direction, with_sensitivities
from ..runs.sensitivities.jumps import REMEDY, first_jump, reset_times
from .results import ManySolutions

__all__ = ["many_with_sensitivities"]

Array = NDArray[np.float64]


def many_with_sensitivities(
    ivp: IVP,
    states: Array,
    parameters: Array,
    names: Any,
    atol: Any,
    starts: Array,
    run: Callable[..., ManySolutions],
) -> ManySolutions:
    """Solve augmented problems by ``run(problem, y0=…, params=…, atol=…)`` and take them apart.

    ``starts`` has the time at which each run starts, or one for all.
    """
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
    _withdraw_behind_jumps(task, states, parameters, np.broadcast_to(starts, m), found)
    found.y_events = [[y[:, :n] if len(y) else y for y in of] for of in found.y_events]
    return found


def _withdraw_behind_jumps(
    task: Sensitivities, states: Array, parameters: Array, starts: Array, found: ManySolutions
) -> None:
    """Make NaN of the sensitivities of runs along which f jumps, and say so."""
    for k in range(len(states)):
        known = np.isfinite(found.y_eval[k]).all(axis=0)
        columns = [states[k][:, None], found.y_eval[k][:, known], found.y[k][:, None]]
        times = np.concatenate([starts[k : k + 1], found.t_eval[known], found.t[k : k + 1]])
        resets = reset_times(task.problem.events, found.t_events[k] if found.t_events else ())
        jump = first_jump(task.f, times, np.hstack(columns), parameters[k], resets)
        if jump is not None:
            found.message[k] = f"{found.message[k]}; but no sensitivities, as f jumps: {REMEDY}"
            for values in (found.sensitivities, found.sensitivities_eval):
                for of_all in values.values():
                    of_all[k] = np.nan
