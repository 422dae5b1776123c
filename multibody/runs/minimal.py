"""Minimal coordinates: a mechanism by a loop-closure function q = γ(y) as an initial value problem.

The state is (y, ẏ); GᵀHG ÿ = Gᵀ(τ − C − H g) with G = ∂γ/∂y and g = Ġẏ (book, §8.11, Eq 9.26).
Loops cannot drift apart, because no equation holds them together. Where γ is not known,
``as_dae(…, formulation="minimal")`` eliminates dependent coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.problem import from_recipe

from ..checks import Array, ArrayLike, real_array
from ..dynamics.loops.closed_loop import constraints
from ..dynamics.loops.closure import LoopClosure
from ..dynamics.motion import energy
from ..dynamics.trees.factor import l_solve_kernel, lt_solve_kernel, ltdl_kernel
from ..model.rules import refuse_contacts
from .observing.acted import Observing
from .observing.observe import observables_of_states
from .observing.watched import mechanism_distance, mechanism_watch

if TYPE_CHECKING:
    from integrators import IVP

    from ..model import Model

__all__ = ["as_ivp_minimal"]

#: Largest gap, and rate of a gap in parts of the velocities, that γ may leave along a run. At the
#: start it is checked more sharply; closed formulae lose some digits where they are steep.
LEFT_OPEN = 1e-6

#: States of a run at which γ is checked.
MOST_STATES = 400


@from_recipe
def as_ivp_minimal(
    model: Model,
    gamma: LoopClosure | Callable[..., Any],
    y0: ArrayLike,
    ydot0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    *,
    traced: bool | None = None,
) -> IVP:
    """Initial value problem in the independent variables of a loop-closure function.

    Parameters
    ----------
    model
        With or without loops; with gears, which are no loops, without.
    gamma
        A function that returns q for y, or a :class:`~multibody.LoopClosure`
        such as ``gears(…)`` makes.
    y0, ydot0
        Start; at rest if ẏ is not given.
    t_span, tau, f_ext
        As in :func:`~multibody.as_ivp`; forces are those of the joints, nv numbers.
    traced
        True: machine code, or an error that says why not. None: if possible.

    Returns
    -------
    IVP
        State (y, ẏ); ``LoopClosure.states(solution.y)`` gives positions and velocities of all
        joints, and ``solution.observed`` drift, energy and multipliers. That γ closes the loops
        is checked at the start and, when a run is over, along it: where it does not, the run
        fails with ``Status.FUNCTION_RAISED``.

    Examples
    --------
    >>> from integrators import solve
    >>> from multibody import mechanisms
    >>> model = mechanisms.n_four_bar(2)
    >>> def parallel(y):
    ...     return [y[0], y[0], y[0], -y[0], -y[0]]
    >>> problem = as_ivp_minimal(model, parallel, [np.pi / 2], [-1.0], (0, 10))
    >>> solution = solve(problem, method="DOP853", rtol=1e-12, atol=1e-12)
    >>> round(float(np.cos(solution.y[0, -1])), 8)  # exact: 0.3284581115408
    0.32845811
    """
    from integrators import IVP, TracingError
    from integrators import traced as trace

    from .forces import force_laws
    from .recursions import Recursions
    from .slopes import TRACED_BODIES

    start = np.atleast_1d(real_array(y0, "y0")).astype(float)
    size = start.size
    closure = gamma if isinstance(gamma, LoopClosure) else LoopClosure(model, gamma, size)
    if closure.model != model or closure.size != size:
        raise ValueError(
            f"y0: the loop-closure function has {closure.size} variables of {closure.model.name!r},"
            f" received {size} for {model.name!r}"
        )
    rate = np.zeros(size) if ydot0 is None else real_array(ydot0, "ydot0", (size,)).astype(float)
    refuse_contacts(model, "as_ivp_minimal")
    closure.check(start, rate, t=float(t_span[0]))
    tau_law, force_law, params = force_laws(model, tau, f_ext)
    parts = Recursions(model, tau_law, force_law, np.zeros(0, dtype=int))
    chain = np.arange(-1, size - 1)  # a dense matrix is that of a chain

    def slope(t: Any, x: Any, p: Any = params) -> Any:
        y, ydot = x[:size], x[size:]
        q, G, g = closure.position(y), closure.jacobian(y), closure.bias(y, ydot)
        H = parts.mass(t, q)
        A, b = G.T @ (H @ G), G.T @ (parts.force(t, q, G @ ydot, p) - H @ g)
        ltdl_kernel(A, chain)
        lt_solve_kernel(A, chain, b, True)
        for k in range(size):
            b[k] = b[k] / A[k, k]
        l_solve_kernel(A, chain, b, True)
        return np.concatenate([ydot, b])

    f: Any = slope if len(params) else lambda t, x: slope(t, x)
    wanted = traced is not False
    if traced is None and (
        model.n_bodies > TRACED_BODIES or not all(b.joint.is_traceable for b in model.bodies)
    ):
        wanted = False
    if wanted:
        try:
            f = trace(f, n=2 * size, params=len(params)) if len(params) else trace(f, n=2 * size)
        except TracingError:
            if traced:
                raise

    def total(t: float, x: Any) -> float:
        state = closure.states(x)
        return float(energy(model, state[: model.nq], state[model.nq :], t=t).total)

    def see(solution: Any, model: Any, *forces: Any) -> Any:
        q, v = np.split(closure.states(solution.y), [model.nq])
        return observables_of_states(model, solution, q, v, *forces)

    def states(problem: Any, t: Array, y: Array) -> tuple[Array, Array]:
        q, v = np.split(closure.states(y), [model.nq])
        return q, v

    undisturbed = tau is None and f_ext is None
    conservative = undisturbed and not model.is_rheonomic and not model.is_damped
    names = list(closure.names)
    return IVP(
        f,
        np.concatenate([start, rate]),
        (float(t_span[0]), float(t_span[1])),
        params,
        invariants={"energy": total} if conservative else {},
        name=f"{model.name}, minimal coordinates",
        state_names=(*names, *(f"d({name})" for name in names)),
        review=_closure_review(closure) if model.bonds else None,
        observe=Observing(see, model, tau, f_ext),
        watch=mechanism_watch(model, tau, f_ext, states),
        distance=mechanism_distance(model, states),
    )


def _closure_review(closure: LoopClosure) -> Callable[..., Any]:
    """Review of runs that says where γ leaves loops open; it was checked at the start only."""

    def review(problem: Any, t: Array, x: Array, rtol: float | None) -> Any:
        from integrators import Status

        states = np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST_STATES)).astype(int))
        for k in states:
            q, v = np.split(closure.states(x[:, k]), [closure.model.nq])
            if not np.isfinite(q).all() or not np.isfinite(v).all():
                continue
            c = constraints(closure.model, q, v, t=float(t[k]))
            for what, values, scale in (
                ("leaves a gap", c.delta, 1.0),
                ("moves the loops apart at a rate", c.K @ v - c.nu, 1.0 + np.abs(v).max()),
            ):
                worst = int(np.argmax(np.abs(values)))
                if not abs(values[worst]) <= LEFT_OPEN * scale:
                    return Status.FUNCTION_RAISED, (
                        f"the loop-closure function {what} of {abs(values[worst]):.3g} in "
                        f"{c.names[worst]} at t = {t[k]:.6g}, y = {x[: closure.size, k]}, so that "
                        "the run is not to be trusted from then on; check γ, or keep away from "
                        "where it is not defined"
                    )
        return None

    return review
