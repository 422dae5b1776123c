"""Many runs that only ``solve`` can do: through modes, over switches, with kinks located.

What happens at an instant needs Python, so such runs leave the lanes; each is done by ``solve``,
and ``ManySolutions.engine`` says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import pass_on
from ..hybrid import Hybrid
from ..problem import IVP
from ..solve import solve
from ..stepping.state import Status

__all__ = ["run_each", "why_not_lanes"]

log = logging.getLogger(__name__)


def why_not_lanes(problem: IVP | Hybrid, kinks: str | None) -> str:
    """Why a problem is none for lanes; empty if it may be one."""
    if isinstance(problem, Hybrid):
        return "it has modes"
    if getattr(problem.f, "is_piecewise", False):
        return "f is a Switch"
    if problem.schedule is not None:
        return "it has a schedule of its own"
    return "kinks are located" if kinks is not None else ""


def run_each(
    problem: IVP | Hybrid, parameters: NDArray[np.float64], result: Any, options: Mapping[str, Any]
) -> bool:
    """Do every run by ``solve`` and enter what it finds; whether Ctrl-C was pressed.

    ``result`` is a ``ManySolutions`` with the initial states; states of modes with more components
    make its arrays wider, filled up with NaN.
    """
    log.info("%s one by one", problem)
    times = result.t_eval
    for k, (y0, p) in enumerate(zip(result.y.copy(), parameters)):
        run = problem.with_(y0=y0[: problem.n], params=p)
        try:
            solution = solve(run, on_interrupt="return", **options)
        except KeyboardInterrupt:
            return True
        except Exception as error:  # of this run's very start; the others go on
            result.status[k], result.message[k] = Status.FUNCTION_RAISED, str(error) or repr(error)
            continue
        except BaseException as stop:  # sys.exit and its like
            pass_on(stop, result)
        assert solution.reached is not None
        n = max(solution.y.shape[0], solution.reached[1].size)
        if n > result.y.shape[1]:
            _widen(result, n)
        result.t[k] = solution.reached[0]
        result.y[k] = np.nan
        result.y[k, : solution.reached[1].size] = solution.reached[1]
        result.nsteps[k], result.nrejected[k] = solution.nsteps, solution.nrejected
        if times.size:
            result.y_eval[k] = np.nan
            result.y_eval[k, : len(solution.y), : solution.t.size] = solution.y
        result.status[k], result.message[k] = solution.status, solution.ending
        result.t_events[k], result.y_events[k] = solution.t_events, solution.y_events
        if solution.status == Status.INTERRUPTED:
            return True
    return False


def _widen(result: Any, n: int) -> None:
    """Make room for states of n components."""
    more = n - result.y.shape[1]
    result.y = np.pad(result.y, ((0, 0), (0, more)), constant_values=np.nan)
    result.y_eval = np.pad(result.y_eval, ((0, 0), (0, more), (0, 0)), constant_values=np.nan)
