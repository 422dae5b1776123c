"""``solve_many``: thousands of runs of one problem, side by side and on all cores.

With a traced right-hand side and an explicit method, runs are integrated in the lanes of SIMD
registers (``integrators.methods.lanes``), a block of runs for each thread. Each run has its own
adaptive steps, and a run that fails stops nobody else. Other methods and untraceable functions
are run one by one through ``solve``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .control import Controller
from .kernels import compiled, interpreting
from .methods.fused import fused_step_function, outputs_size
from .methods.judge import NAMES, Block, judge
from .methods.lanes import LANES, run_lanes
from .methods.state import Status
from .methods.workspace import Lanes
from .problem import IVP
from .solve import named_method, solve
from .tableau import Tableau

__all__ = ["ManySolutions", "solve_many"]

BLOCK = 512  # runs that a thread takes at a time


@dataclass
class ManySolutions:
    """Results of many runs; row k belongs to run k.

    Attributes
    ----------
    y : ndarray, shape (m, n)
        Final states (the last good one where a run failed).
    t : ndarray, shape (m,)
        Times reached.
    status : ndarray of int
        A :class:`Status` for each run.
    nsteps, nrejected : ndarray of int
        Accepted and rejected steps.
    t_eval, y_eval : ndarray
        Output times and the states there, shape (m, n, len(t_eval)); NaN beyond a failure.
    engine : str
        How the runs were done.
    """

    y: NDArray[np.float64]
    t: NDArray[np.float64]
    status: NDArray[np.int64]
    nsteps: NDArray[np.int64]
    nrejected: NDArray[np.int64]
    t_eval: NDArray[np.float64]
    y_eval: NDArray[np.float64]
    engine: str

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each run reached its end."""
        return self.status >= 0

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        good = int(np.count_nonzero(self.success))
        return f"<ManySolutions: {good} of {len(self)} runs succeeded, {self.engine}>"

    def failures(self) -> dict[int, Status]:
        """Return the runs that failed, and how."""
        return {int(k): Status(int(self.status[k])) for k in np.flatnonzero(~self.success)}


def solve_many(
    problem: IVP | Callable[..., Any],
    t_span: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    *,
    params: ArrayLike | None = None,
    method: Any = "DOPRI5",
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    t_eval: ArrayLike | None = None,
    controller: Controller | None = None,
    norm: str = "rms",
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int = 1_000_000,
    workers: int | None = None,
) -> ManySolutions:
    """Solve a problem for many initial values, parameters, or both.

    Parameters
    ----------
    problem, t_span
        As in ``solve``. The function is traced if it is not yet.
    y0
        Initial states, shape (m, n), or one state for all, shape (n,).
    params
        Parameters, shape (m, k), or one set for all, shape (k,).
    method
        Explicit tableaux run in SIMD lanes; any other method one run at a time.
    rtol, atol, controller, norm, first_step, max_step, min_step, max_steps
        As in ``solve``; each run has its own steps.
    t_eval
        Output times, the same for all runs.
    workers
        Threads; by default one for each core.

    Examples
    --------
    >>> import numpy as np
    >>> decay = lambda t, y, p: -p[0] * y
    >>> many = solve_many(decay, (0, 1), [1.0], params=np.linspace(1, 3, 5)[:, None], rtol=1e-9)
    >>> bool(np.allclose(many.y[:, 0], np.exp(-np.linspace(1, 3, 5))))
    True
    """
    ivp, states, parameters = _runs(problem, t_span, y0, params)
    times = np.zeros(0) if t_eval is None else np.atleast_1d(np.asarray(t_eval, dtype=np.float64))
    # `solve` checks every option, and its first run shows whether the problem is sound.
    options: dict[str, Any] = dict(
        method=method,
        rtol=rtol,
        atol=atol,
        controller=controller,
        norm=norm,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
        t_eval=t_eval,
    )
    solve(ivp, max_steps=1, **options)
    lanes = None
    if not interpreting() and not (controller and controller.predictive):
        lanes = _lane_setup(ivp, method, times, norm == "max")
    if lanes is None:
        return _one_by_one(ivp, states, parameters, times, {**options, "max_steps": max_steps})
    options["max_steps"] = max_steps
    return _in_lanes(ivp, lanes, states, parameters, times, options, workers)


def _runs(
    problem: Any, t_span: Any, y0: Any, params: Any
) -> tuple[IVP, NDArray[np.float64], NDArray[np.float64]]:
    base_y0 = y0 if y0 is not None else getattr(problem, "y0", None)
    base_p = params if params is not None else getattr(problem, "params", ())
    if base_y0 is None:
        raise TypeError("solve_many needs initial states y0, of shape (m, n) or (n,)")
    if np.iscomplexobj(base_y0):
        raise TypeError("solve_many works on real states; split them into real and imaginary parts")
    states = np.asarray(base_y0, dtype=np.float64)
    parameters = np.asarray(base_p, dtype=np.float64)
    if states.ndim not in (1, 2) or parameters.ndim not in (1, 2):
        raise ValueError(
            f"expected y0 of shape (m, n) or (n,) and params of shape (m, k) or (k,), got "
            f"{states.shape} and {parameters.shape}"
        )
    counts = {a.shape[0] for a in (states, parameters) if a.ndim == 2}
    if len(counts) != 1:
        raise ValueError(
            "give y0 with m rows, params with m rows, or both with the same m; got shapes "
            f"{states.shape} and {parameters.shape}"
        )
    (m,) = counts
    if m == 0:
        raise ValueError("there are no runs: y0 or params has no rows")
    _check_finite("y0", states)
    _check_finite("params", parameters)
    states = np.ascontiguousarray(np.broadcast_to(states, (m, states.shape[-1])))
    parameters = np.ascontiguousarray(np.broadcast_to(parameters, (m, parameters.shape[-1])))
    if isinstance(problem, IVP):
        changes: dict[str, Any] = {"y0": states[0], "params": parameters[0]}
        if t_span is not None:
            changes["t_span"] = t_span
        ivp = problem.with_(**changes)
    else:
        if t_span is None:
            raise TypeError("solve_many(f, t_span, y0) needs the interval")
        ivp = IVP(problem, states[0], t_span, params=parameters[0])
    if ivp.events or ivp.project is not None or ivp.mass is not None:
        raise ValueError(
            "solve_many knows neither events, projections nor mass matrices; use solve in a loop"
        )
    return ivp, states, parameters


def _check_finite(name: str, values: NDArray[np.float64]) -> None:
    """Raise with the first NaN or infinity among what the runs start with."""
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    place = ", ".join(map(str, bad[0]))
    message = f"{name}[{place}] is {values[tuple(bad[0])]}; {name} must be finite"
    if values.ndim == 2:
        count = len(np.unique(bad[:, 0]))
        message += (
            f" in every row (here it is not in {count} of {len(values)}); leave such runs out: "
            f"np.isfinite({name}).all(axis=1) says which to keep"
        )
    raise ValueError(message)


def _lane_setup(
    ivp: IVP, method: Any, times: NDArray[np.float64], max_norm: bool
) -> tuple[Tableau, Any, Any, NDArray[np.float64]] | None:
    """Tableau, code of f and of a whole step, dense output; None if lanes are impossible."""
    from .methods.common import _hermite_matrix
    from .tracing import Traced, TracingError, traced

    if isinstance(method, str) and ":" not in method:
        method = named_method(method)
    if not isinstance(method, Tableau) or not method.is_explicit or method.b_hat is None:
        return None
    P = np.zeros((method.stages, 0))
    if times.size:
        if method.dense is not None and not method.dense.c_extra:
            P = np.ascontiguousarray(method.dense.P)
        elif method.fsal and method.dense is None:  # cubic Hermite from the stages
            value, start, end = _hermite_matrix([])
            P = np.outer(method.arrays[1], value)
            P[0] += start
            P[-1] += end
        else:
            return None
    f: Any = ivp.f
    if not isinstance(f, Traced):
        try:
            f = traced(f, n=ivp.n, params=ivp.params.size or None)
        except TracingError:
            return None
    kept = method.stages if times.size else int(method.fsal)
    step = fused_step_function(f, method, ivp.params.size, max_norm, kept)
    return method, f.machine_code(LANES), None if step is None else step.machine_code(LANES), P


def _in_lanes(
    ivp: IVP,
    setup: tuple[Tableau, Any, Any, NDArray[np.float64]],
    states: NDArray[np.float64],
    parameters: NDArray[np.float64],
    times: NDArray[np.float64],
    options: dict[str, Any],
    workers: int | None,
) -> ManySolutions:
    tableau, code, fused, P = setup
    m, n = states.shape
    k = parameters.shape[1]
    A, b, c = tableau.arrays
    s = tableau.stages
    two = tableau.low_error_weights is not None
    assert tableau.embedded_order is not None
    order = tableau.order - 1 if two else min(tableau.order, tableau.embedded_order)
    weights = np.zeros(n) + np.asarray(options["atol"], dtype=np.float64)
    weights = np.maximum(weights, np.finfo(float).tiny)
    switches = np.array(
        [s, tableau.fsal, two, options["norm"] == "max", P.shape[1]], dtype=np.int64
    )
    t0, t1 = ivp.t_span
    first = options["first_step"] or 0.0
    numbers = np.array([t0, first, options["rtol"], 1 / (order + 1)], dtype=np.float64)
    control = (options["controller"] or Controller()).to_array(order)
    constants = dict(
        zip(
            NAMES[NAMES.index("T_END") :],
            [t1, options["min_step"], options["max_step"], options["max_steps"], *control],
        )
    )
    rows = Block(n, k)
    kept = s if times.size or fused is None else int(tableau.fsal)
    verdict = judge(n, k, kept, tableau.fsal).machine_code(LANES)
    error, low = tableau.error_weights, tableau.low_error_weights
    y_eval = np.full((m, n, times.size), np.nan)
    if times.size and times[0] == t0:
        y_eval[:, :, 0] = states
    result = ManySolutions(
        np.empty((m, n)),
        np.full(m, t0),
        np.zeros(m, dtype=np.int64),
        np.zeros(m, dtype=np.int64),
        np.zeros(m, dtype=np.int64),
        times,
        y_eval,
        f"{LANES} lanes",
    )
    result.y[:] = states
    if t0 == t1:
        return result
    kernel = compiled(run_lanes, nogil=True)

    def integrate(first: int, last: int) -> None:
        block = np.zeros((rows.size, LANES))
        block[rows.rtol] = options["rtol"]
        block[rows.atol] = weights[:, None]
        lane = block[rows.lane]
        for name, value in constants.items():
            lane[NAMES.index(name)] = value
        results = np.zeros((outputs_size(n, kept), LANES))
        workspace = Lanes(
            f=code.address,
            fused=0 if fused is None else fused.address,
            judge=verdict.address,
            A=A.copy(),
            b=b.copy(),
            c=c.copy(),
            e=np.array(error),
            e_low=np.zeros(s) if low is None else np.array(low),
            P=P,
            switches=switches,
            numbers=numbers,
            atol=weights,
            y0=states,
            p0=parameters,
            t_eval=times,
            y_end=result.y,
            t_end=result.t,
            status=result.status,
            steps=result.nsteps,
            rejected=result.nrejected,
            y_eval=result.y_eval,
            run=np.zeros((3, LANES), dtype=np.int64),
            block=block,
            p=block[rows.p],
            f0=block[rows.f0],
            h=block[rows.h],
            y=block[rows.y],
            lane=lane,
            judged=block[rows.changing(tableau.fsal)],
            results=results,
            y_new=results[1 : 1 + n],
            K=results[1 + n :].reshape(kept, n, LANES),
            x=np.zeros((n, LANES)),
            dx=np.zeros((n, LANES)),
            first=np.zeros((3, LANES)),
        )
        kernel(workspace, first, last)

    threads = workers or os.cpu_count() or 1
    size = max(LANES, min(BLOCK, -(-m // threads)))
    edges = [*range(0, m, size), m]
    integrate(0, 0)  # compile before the threads start
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(integrate, *edge) for edge in pairwise(edges)]:
            future.result()
    result.engine = f"{LANES} lanes, {threads} threads"
    return result


def _one_by_one(
    ivp: IVP,
    states: NDArray[np.float64],
    parameters: NDArray[np.float64],
    times: NDArray[np.float64],
    options: dict[str, Any],
) -> ManySolutions:
    m, n = states.shape
    y_eval = np.full((m, n, times.size), np.nan)
    y, t = states.copy(), np.full(m, ivp.t_span[0])
    status, steps, rejected = (np.zeros(m, dtype=np.int64) for _ in range(3))
    forward = 1.0 if ivp.t_span[1] >= ivp.t_span[0] else -1.0
    options = {**options, "t_eval": None, "dense_output": times.size > 0}
    for k in range(m):
        run = ivp.with_(y0=states[k], params=parameters[k])
        try:
            solution = solve(run, **options)
        except Exception:  # f fails at this run's very start; the others go on
            status[k] = Status.FUNCTION_RAISED
            continue
        status[k], steps[k], rejected[k] = solution.status, solution.nsteps, solution.nrejected
        t[k], y[k] = solution.t[-1], solution.y[:, -1]
        reached = forward * times <= forward * t[k]
        if solution.sol is not None:
            y_eval[k][:, reached] = solution.sol(times[reached])
    return ManySolutions(y, t, status, steps, rejected, times, y_eval, "one by one")
