"""Sensitivities of many runs: variational equations beside each of them, in lanes if they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import IntegrationInterrupted
from ..options import absolute_tolerances
from ..problem import IVP
from ..runs.sensitivities.forward import Sensitivities, _direction, with_sensitivities
from ..runs.sensitivities.jumps import REMEDY, first_jump, reset_times
from ..runs.sensitivities.tolerances import REPEATED, first_tolerances, tightened
from .results import Each, ManySolutions

__all__ = ["many_with_sensitivities"]

Array = NDArray[np.float64]


def many_with_sensitivities(
    ivp: IVP,
    states: Array,
    parameters: Array,
    names: Any,
    each: Each,
    fixed: bool,
    run: Callable[..., ManySolutions],
) -> tuple[ManySolutions, bool]:
    """Solve augmented problems by ``run(problem, t_span, y0, …)`` and take them apart.

    Also returns whether Ctrl-C was pressed. Steps that are `fixed` have no tolerance.
    """
    task = with_sensitivities(ivp, names)
    n, (m, k) = ivp.n, parameters.shape
    dp, dy0 = np.empty((m, len(task.names), k)), np.empty((m, task.dy0.size))
    own = getattr(ivp, "sensitivity_direction", None)
    if own is None:
        dp[:], dy0[:] = task.dp, task.dy0.ravel()
    else:  # directions that follow from the parameters of each run
        for i in range(m):
            member = ivp.with_(y0=states[i], params=parameters[i])
            rows = [_direction(member, name) for name in task.names]
            dp[i] = [r[0] for r in rows]
            dy0[i] = np.concatenate([r[1] for r in rows])
    spans, rtols = np.broadcast_to(each.spans, (m, 2)), np.broadcast_to(each.rtols, m)
    if np.ndim(each.atol) < 2:
        absolute_tolerances(each.atol, n)  # refuses what is none
    atols = np.broadcast_to(each.atols, (m, n))
    used = np.array([first_tolerances(*row) for row in zip(atols, dp, parameters)])

    pressed = False

    def do(rows: Any) -> ManySolutions:
        nonlocal pressed
        try:
            return run(
                task.augmented,
                spans[rows],
                np.hstack([states, dy0])[rows],
                params=np.hstack([parameters, dp.reshape(m, -1)])[rows] if k else None,
                rtol=rtols[rows],
                atol=used[rows],
            )
        except IntegrationInterrupted as stop:
            pressed = True
            return stop.solution

    found = do(slice(None))
    again = np.flatnonzero(found.success)
    for done in range(0 if fixed else REPEATED):
        tighter: dict[int, Array] = {}
        for one in map(int, again):
            seen = np.column_stack([found.y_eval[one], found.y[one]])
            wanted = tightened(used[one], atols[one], rtols[one], seen, done)
            if wanted is not None:
                tighter[one] = wanted
        if not tighter or pressed:
            break
        again = np.array(list(tighter))
        used[again] = list(tighter.values())
        found.replace(again, do(again))
        again = again[found.success[again]]
    for j, name in enumerate(task.names):
        part = slice(n * (j + 1), n * (j + 2))
        found.sensitivities[name] = found.y[:, part].copy()
        found.sensitivities_eval[name] = found.y_eval[:, part].copy()
    found.y, found.y_eval = found.y[:, :n].copy(), found.y_eval[:, :n].copy()
    _withdraw_behind_jumps(task, states, parameters, spans[:, 0], found)
    found.y_events = [[y[:, :n] if len(y) else y for y in of] for of in found.y_events]
    return found, pressed


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
