"""Simulation for the impatient: from a model to its motion in one call, and what to read off it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike, real_array, real_scalar
from ..dynamics.motion import Energy, energy, run_forward
from ..dynamics.storage.loading import load
from .observing.states import states_of

if TYPE_CHECKING:
    from integrators import Solution

    from ..model import Model

__all__ = ["energies", "poses", "positions", "simulate"]


def simulate(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    T: float | ArrayLike = 10.0,
    *,
    tau: Any = None,
    f_ext: Any = None,
    prescribed: Any = None,
    method: Any = "DOP853",
    rtol: float = 1e-8,
    atol: ArrayLike = 1e-10,
    fps: float | None = 60.0,
    t_eval: ArrayLike | None = None,
    record: Mapping[str, Any] | None = None,
    quaternions: str = "renormalise",
    traced: bool | None = None,
    stabilise: str | None = None,
    T_stab: float | str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    rank: str = "regular",
    **options: Any,
) -> Solution:
    """Let a mechanism move.

    Parameters
    ----------
    model
        A kinematic tree, with or without loops.
    q0, v0
        Position (neutral if not given) and velocity (at rest if not given) at the start.
    T
        Until when, in seconds from 0; or a pair (t0, t1).
    tau, f_ext, prescribed, quaternions, traced, stabilise, T_stab, alpha, beta, rank
        As in :func:`multibody.as_ivp`. The times of a table of joint forces or of a prescribed
        motion are stepped on exactly, because the forces have kinks there. ``T_stab="auto"`` goes
        by the `step` of a method with a fixed one. `stabilise` also takes the names that
        :func:`multibody.as_dae` has for "projection" and "none": "projected" and "index1".
    method, rtol, atol, options
        As in :func:`integrators.solve`; `options` may be any other of its arguments.
    fps
        How many times a second the solution is returned; None: at every step of the method.
    t_eval
        Times at which to return the solution, in place of `fps`.
    record
        Quantities to be read off, by name; they are in ``solution.recorded``. See
        :func:`multibody.record`.

    Returns
    -------
    Solution
        ``y`` holds a state [q; v] in each column, ``t`` the times; ``success`` says whether the
        end was reached, and ``message`` whether loops passed singular positions on the way.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> solution = simulate(mechanisms.double_pendulum(), [1.0, 0.5], T=2.0, fps=10)
    >>> solution.y.shape
    (4, 21)
    """
    from integrators import solve

    from .ivp import as_ivp
    from .observing.recorded import record as recorded

    t_span = _span(T)
    problem = as_ivp(
        model,
        q0,
        v0,
        t_span,
        tau,
        f_ext,
        prescribed=prescribed,
        quaternions=quaternions,
        traced=traced,
        stabilise=stabilise,
        T_stab=T_stab,
        alpha=alpha,
        beta=beta,
        step=options.get("step") if T_stab == "auto" else None,
        rank=rank,
    )
    if t_eval is None and fps is not None:
        t_eval = _frame_times(t_span, fps)
    tables = [tau, *(prescribed.values() if prescribed else ())]
    kinks = [_kinks(table, t_span) for table in tables]
    stops = np.concatenate([np.atleast_1d(options.pop("tstops", ())), *kinks])
    if options.get("step") is None:  # a fixed step has no error control
        options |= {"rtol": rtol, "atol": atol}
    solution = solve(
        problem,
        method=method,
        t_eval=t_eval,
        tstops=np.unique(stops),
        **options,
    )
    if record is not None:
        solution.recorded = recorded(model, solution, record)
    return solution


def _span(T: Any) -> tuple[float, float]:
    array = real_array(T, "T")
    if array.shape not in ((), (2,)):
        raise ValueError(f"T: expected an end time or a pair (t0, t1), received {T!r}")
    t0, t1 = (0.0, float(array)) if array.ndim == 0 else (float(array[0]), float(array[1]))
    if t0 == t1:
        raise ValueError(
            f"T: expected an end time or a pair (t0, t1) of two different times, received {T!r}; "
            "nothing moves in no time"
        )
    return t0, t1


def _frame_times(t_span: tuple[float, float], fps: float) -> Array:
    """Even times from start to end, as near to the wanted rate as fits."""
    rate = real_scalar(fps, "fps")
    if rate <= 0.0:
        raise ValueError(f"fps: expected a positive number of frames a second, received {fps!r}")
    return np.linspace(*t_span, max(1, round(abs(t_span[1] - t_span[0]) * rate)) + 1)


def _kinks(table: Any, t_span: tuple[float, float]) -> Array:
    """Times of a table (times, values) of forces or positions that lie inside the interval."""
    if not (isinstance(table, tuple) and len(table) == 2 and np.ndim(table[0]) == 1):
        return np.zeros(0)
    times = np.asarray(table[0], dtype=float)
    return times[(times > min(t_span)) & (times < max(t_span))]


def poses(model: Model, solution: Any) -> tuple[Array, Array]:
    """Where all bodies are at all times of a solution.

    Parameters
    ----------
    model, solution
        A model, and a solution of it (anything with the fields ``t`` and ``y``).

    Returns
    -------
    R : array (m, n_bodies + 1, 3, 3)
        Rotation of each body at each time: its columns are the body's axes. Entry 0 is the base.
    p : array (m, n_bodies + 1, 3)
        Origin of each body, in base coordinates.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.double_pendulum()
    >>> R, p = poses(model, simulate(model, T=1.0, fps=1))
    >>> p.shape, p[0, 2].round(6) + 0.0
    ((2, 3, 3), array([ 0.,  0., -1.]))
    """
    times, states = states_of(model, solution)
    n, nq, turn = model.n_bodies, model.nq, model.tree.turn
    R = np.broadcast_to(np.eye(3), (len(times), n + 1, 3, 3)).copy()
    p = np.zeros((len(times), n + 1, 3))
    for k, t in enumerate(times):
        w = load(model, model.normalise(states[:nq, k]), None, float(t))
        run_forward(w)
        R[k, 1:] = np.swapaxes(w.E_0, 1, 2) @ turn
        p[k, 1:] = w.r_0
    return R, p


def positions(
    model: Model, solution: Any, body: str | int, point: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """Path of a body-fixed point.

    Parameters
    ----------
    model, solution
        A model, and a solution of it.
    body
        Name or number of the body.
    point
        In body coordinates.

    Returns
    -------
    array (3, m)
        Position in base coordinates at each time of the solution.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.pendulum()
    >>> path = positions(model, simulate(model, [0.3], T=1.0), "bob", (0, 0, -1))
    >>> np.allclose(np.linalg.norm(path, axis=0), 1.0)
    True
    """
    i = model.number(body)
    place = real_array(point, "point", (3,))
    R, p = poses(model, solution)
    return np.ascontiguousarray((R[:, i] @ place + p[:, i]).T)


def energies(model: Model, solution: Any) -> Energy:
    """Kinetic and potential energy along a solution, as arrays.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> model = mechanisms.pendulum()
    >>> along = energies(model, simulate(model, [1.0], T=5.0))
    >>> bool(np.ptp(along.total) < 1e-6)
    True
    """
    t, y = states_of(model, solution)
    return energy(model, SimpleNamespace(t=t, y=y))
