"""Derivatives of the dynamics: how accelerations and forces answer to small changes.

:func:`FD_derivatives` and :func:`ID_derivatives` are analytical: recursions along the tree,
compiled once for all models (``dynamics.derivatives.kernels``). :class:`StateJacobian` is the
Jacobian of ẋ = [q̇; v̇] that implicit integrators are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array, ArrayLike
from ..dynamics.acting import own_rates
from ..dynamics.derivatives.closed import (
    CLOSED_ALONG,
    CLOSED_BY,
    GIVEN_MULTIPLIERS_ALONG,
    GIVEN_MULTIPLIERS_BY,
    closed_derivatives,
)
from ..dynamics.derivatives.results import (
    FORWARD_ALONG,
    FORWARD_BY,
    INVERSE_ALONG,
    INVERSE_BY,
    derivatives,
)
from ..dynamics.derivatives.tree import DerivativeTree, DerivativeWorkspace
from ..dynamics.functions import explain
from ..dynamics.loops.multipliers import ALPHA, BETA, EPSILON
from ..dynamics.storage.loading import ForcesLike, load, load_forces, load_vector
from ..dynamics.storage.workspace import HAVE_FORCES
from .closed import Stabilisation

if TYPE_CHECKING:
    from integrators.tracing import Traced

    from ..model import Model

__all__ = [
    "FD_derivatives",
    "ID_derivatives",
    "StateJacobian",
    "derivative_tree",
    "traced_derivatives",
]

_run = OnWorkspace(derivatives, DerivativeWorkspace, returns=True)
_run_closed = OnWorkspace(closed_derivatives, DerivativeWorkspace, returns=True)

#: Step of the differences of a force law that cannot be traced, in parts of max(1, |x|).
LAW_STEP = float(np.finfo(float).eps ** (1.0 / 3.0))

#: Traced functions of models with loops that have at most so many operations have their Jacobian
#: traced, too; that of a larger one takes more than a second to compile.
TRACED_JACOBIAN_OPERATIONS = 1500

Three = tuple[Array, Array, Array]


def derivative_tree(model: Model) -> DerivativeTree:
    """What the derivatives of a model need, made once."""
    kept = model.tree.traced
    if "derivatives" not in kept:
        kept["derivatives"] = DerivativeTree(model)
    found: DerivativeTree = kept["derivatives"]
    return found


def FD_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    f_ext: ForcesLike = None,
    t: float = 0.0,
    tangent: bool = True,
) -> Three:
    """Exact derivatives of FD with respect to position, velocity and joint forces.

    Parameters
    ----------
    model, q, v, tau, f_ext, t
        As in :func:`~multibody.FD`. External forces are constant in base coordinates.
    tangent
        True: the first matrix is nv × nv, derivatives along the directions that the velocity
        variables stand for. False: nv × nq, derivatives by the numbers in q, with quaternions
        divided by their norm: a change of the norm alone has no effect.

    Returns
    -------
    dq, dv, dtau
        dtau is H⁻¹ for a tree; with loops it is what they leave of it.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> dq, dv, dtau = FD_derivatives(mechanisms.pendulum(), [0.0], [0.0])
    >>> dq.round(6), dtau
    (array([[-9.81]]), array([[1.]]))
    """
    if tangent and t == 0.0 and f_ext is None:
        tree = model.tree
        run = tree.traced.get("FD_derivatives") or _shortest_way(model)
        found = run(q, v, tree.zeros if tau is None else tau)
        return found[0], found[1], found[2]
    return _forward(model, q, v, tau, f_ext, t, tangent)


def _forward(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    f_ext: ForcesLike,
    t: float,
    tangent: bool,
) -> Three:
    q, v = model.check("q", q), model.check("v", v)
    if model.nv == 0:
        return _no_derivatives(model, tangent)
    w = _loaded(model, q, v, t)
    if model.bonds:
        _with_loops(model, w, tau, f_ext, Stabilisation(), tangent)
        return _results(w, tangent)
    load_vector(model, "tau", tau, w.tau)
    load_forces(model, w, f_ext)
    w.task[0] = FORWARD_ALONG if tangent else FORWARD_BY
    total = _run(w)
    if total - total != 0.0:
        load_vector(model, "tau", tau, w.tau)
        explain(model, w)
    return _results(w, tangent)


def _results(w: DerivativeWorkspace, tangent: bool) -> Three:
    """Copies of the three matrices."""
    if tangent:
        found = w.result.copy()
        return found[0], found[1], found[2]
    nq, nd, nv = len(w.q), len(w.psi), len(w.v)
    by_v, last = w.slope[:, nd : nd + nv], w.slope[:, nd + nv :]
    return w.jacobian[nq:, :nq].copy(), by_v.copy(), last.copy()


def _loaded(model: Model, q: Array, v: Array, t: float) -> DerivativeWorkspace:
    w = derivative_tree(model).workspace
    w.q[:], w.v[:], w.t[0] = q, v, t
    w.gain[0] = 0.0
    return w


def _no_derivatives(model: Model, tangent: bool) -> Three:
    """Derivatives of a model without freedoms: no rows."""
    return np.zeros((0, 0 if tangent else model.nq)), np.zeros((0, 0)), np.zeros((0, 0))


def _shortest_way(model: Model) -> Any:
    """Return a function (q, v, tau) → three matrices, made once, with its own workspace.

    As in ``functions``: a builtin where that is possible, which leaves to the long way whatever it
    does not understand.
    """
    from integrators.kernels import interpreting
    from integrators.tracing import entry as native

    def ordinary(q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Any:
        return _forward(model, q, v, tau, None, 0.0, True)

    run: Any = ordinary
    compiled = native.available() and not interpreting()
    compiled = compiled and all(body.joint.is_traceable for body in model.bodies)
    # Springs between points need external forces that are cleared, quaternions are checked.
    plain = not (model.springs or model.quaternion_places)
    if compiled and plain and model.nv:
        kernel = _run_closed if model.bonds else _run
        if not kernel.is_compiled:
            return ordinary  # for the time being
        w = derivative_tree(model).make_workspace()
        if model.bonds:
            w.switches[HAVE_FORCES], w.task[0] = 1, CLOSED_ALONG
            stabilise(w, Stabilisation())
        address, inputs = kernel.address, (w.q, w.v, w.tau)
        run = native.workspace_entry(address, w.address, inputs, w.result, ordinary, w)
    model.tree.traced["FD_derivatives"] = run
    return run


def _with_loops(
    model: Model,
    w: DerivativeWorkspace,
    tau: ArrayLike | None,
    f_ext: ForcesLike,
    keep: Stabilisation,
    along: bool,
) -> None:
    """Derivatives of a model with loops (``derivatives.closed``); w has t, q and v."""
    load_vector(model, "tau", tau, w.tau)
    load_bound_forces(model, w, f_ext)
    stabilise(w, keep)
    if keep.rank == "regular":
        w.task[0] = CLOSED_ALONG if along else CLOSED_BY
    else:
        base = load(model, w.q, w.v, float(w.t[0]))
        load_vector(model, "tau", tau, base.tau)
        load_forces(model, base, f_ext)
        w.a_q[:], w.lam[:] = keep.solution(model, base, f_ext)
        w.K[:] = base.K
        w.task[0] = GIVEN_MULTIPLIERS_ALONG if along else GIVEN_MULTIPLIERS_BY
    total = _run_closed(w)
    if total - total != 0.0:
        load_vector(model, "tau", tau, w.tau)
        explain(model, w)


def load_bound_forces(model: Model, w: DerivativeWorkspace, f_ext: ForcesLike) -> None:
    """Enter external forces, which are switched on for the sake of those of the constraints."""
    load_forces(model, w, f_ext)
    if not w.switches[HAVE_FORCES]:
        w.f_ext[:] = 0.0
        w.switches[HAVE_FORCES] = 1


def stabilise(w: Any, keep: Stabilisation) -> None:
    """Enter what is fed back, and how rank is decided."""
    w.stabilise[ALPHA], w.stabilise[BETA], w.stabilise[EPSILON] = (
        keep.alpha,
        keep.beta,
        keep.epsilon,
    )
    w.rank_tolerance[0] = keep.rank_tolerance


def ID_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: ForcesLike = None,
    t: float = 0.0,
    tangent: bool = True,
) -> Three:
    """Exact derivatives of ID with respect to position, velocity and acceleration.

    The last one is H; `f_ext` and `tangent` as in :func:`FD_derivatives`.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> dq, dv, da = ID_derivatives(mechanisms.pendulum(), [0.0], [0.0], [0.0])
    >>> dq.round(6), da
    (array([[9.81]]), array([[1.]]))
    """
    q, v, a = model.check("q", q), model.check("v", v), model.check("a", a)
    if model.nv == 0:
        return _no_derivatives(model, tangent)
    w = _loaded(model, q, v, t)
    w.a_q[:] = a
    load_forces(model, w, f_ext)
    w.task[0] = INVERSE_ALONG if tangent else INVERSE_BY
    total = _run(w)
    if total - total != 0.0:
        explain(model, w, "a_q")
    return _results(w, tangent)


# ---------------------------------------------------------------------- right-hand sides


class StateJacobian:
    """∂ẋ/∂x of ẋ = [q̇; v̇], x = [q; v], as a function of (t, x, *params).

    By the numbers in q, as an integrator sees them. A change of a quaternion's norm is followed in
    q̇ exactly; in v̇ it has no effect.

    Parameters
    ----------
    model
        A tree, with or without loops.
    tau_law, force_law
        Joint forces and external forces as functions of (t, q, v, p), or None.
    depends
        Whether they depend on q and v.
    gain
        Rate at which quaternions are pulled back to unit norm.
    trace
        Whether laws may be traced; otherwise they are differentiated numerically.
    keep
        How loops are kept closed; None for a tree.
    n_params
        Number of the parameters p.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> J = StateJacobian(mechanisms.pendulum())
    >>> J(0.0, np.array([0.0, 0.0])).round(6) + 0.0
    array([[ 0.  ,  1.  ],
           [-9.81,  0.  ]])
    """

    def __init__(
        self,
        model: Model,
        tau_law: Callable[..., Any] | None = None,
        force_law: Callable[..., Any] | None = None,
        depends: tuple[bool, bool] = (False, False),
        gain: float = 0.0,
        trace: bool = True,
        keep: Stabilisation | None = None,
        n_params: int = 0,
    ) -> None:
        self.model, self.tau_law, self.force_law, self.gain = model, tau_law, force_law, gain
        self.keep = keep
        nq, nx, nb = model.nq, model.nq + model.nv, model.n_bodies
        self._tau_slope: Any = None
        self._force_slope: Any = None
        if tau_law is not None and depends[0]:
            law = tau_law
            self._tau_slope = _law_slope(
                lambda t, x, p=(): np.asarray(law(t, x[:nq], x[nq:], p)),
                (nx, n_params),
                model.nv,
                trace,
            )
        if force_law is not None and depends[1]:
            outer = force_law
            self._force_slope = _law_slope(
                lambda t, x, p=(): np.asarray(outer(t, x[:nq], x[nq:], p)).ravel(),
                (nx, n_params),
                6 * nb,
                trace,
            )
        self._rate_slope: Any = None
        if model.n_states:
            self._rate_slope = _law_slope(
                lambda t, x, p=(): own_rates(model, t, x[:nq], x[nq:]),
                (nx, n_params),
                model.n_states,
                trace,
            )

    def __call__(self, t: float, x: ArrayLike, *params: Any) -> Array:
        """Evaluate the Jacobian."""
        model, nq = self.model, self.model.nq
        x = np.asarray(x, dtype=float)
        q, v = x[:nq], x[nq:]
        w = _loaded(model, q, v, t)
        w.gain[0] = self.gain
        p = params[0] if params else ()
        tau = None if self.tau_law is None else self.tau_law(t, q, v, p)
        forces = None if self.force_law is None else self.force_law(t, q, v, p)
        if self.keep is not None:
            _with_loops(model, w, tau, forces, self.keep, False)
        else:
            load_vector(model, "tau", tau, w.tau)
            load_forces(model, w, forces)
            w.task[0] = FORWARD_BY
            total = _run(w)
            if total - total != 0.0:
                load_vector(model, "tau", tau, w.tau)
                explain(model, w)
        J = w.jacobian.copy()
        more = self.of_forces(w, t, x, p)
        if more is not None:
            J[nq:] += w.slope[:, w.slope.shape[1] - model.nv :] @ more
        self.enter_own_rates(J, t, x, p)
        return J

    def of_forces(self, w: DerivativeWorkspace, t: float, x: Array, p: Any) -> Any:
        """Derivatives of the forces that are laws, as joint forces, by x; None if there are none.

        Needs `J` in the workspace, which every task but the given ones leaves there.
        """
        more: Any = None
        if self._tau_slope is not None:
            more = self._tau_slope(t, x, p)
        if self._force_slope is not None:
            along = body_jacobians(self.model, w) @ self._force_slope(t, x, p)
            more = along if more is None else more + along
        return more

    def enter_own_rates(self, J: Array, t: float, x: Array, p: Any) -> None:
        """Rows of the elements' own states."""
        if self._rate_slope is not None:
            nq = self.model.nq
            J[nq - self.model.n_states : nq, : len(x)] = self._rate_slope(t, x, p)


def body_jacobians(model: Model, w: DerivativeWorkspace) -> Array:
    """Joint forces of unit external forces, nv × 6·bodies: base axes, about the base's origin."""
    table = np.zeros((model.nv, model.n_bodies, 6))
    for i, body in enumerate(model.bodies):
        if body.parent:
            table[:, i] = table[:, body.parent - 1] * 1.0
        place = model.v_index[i]
        table[place, i] = w.J[place]
    arms = w.r_0[w.root]  # from the base's origin to the reference points
    table[:, :, 3:] += np.cross(arms[None], table[:, :, :3])
    return table.reshape(model.nv, -1)


def _law_slope(
    law: Callable[..., Any], sizes: tuple[int, int], outputs: int, trace: bool
) -> Callable[..., Any]:
    """Jacobian of law(t, x, p) by x: exact where it can be traced, else by central differences.

    `sizes` are those of x and p.
    """
    from integrators import TracingError, traced

    n, k = sizes
    if trace:
        try:
            exact = traced(law, n=n, params=k, outputs=outputs).jacobian()
            return lambda t, x, p: np.asarray(exact(t, x, *([p] if k else []))).reshape(outputs, n)
        except TracingError:
            pass

    def slope(t: float, x: Array, p: Any) -> Array:
        J = np.empty((outputs, n))
        for k in range(n):
            ahead, behind = x.copy(), x.copy()
            step = LAW_STEP * max(1.0, abs(float(x[k])))
            ahead[k] += step
            behind[k] -= step
            J[:, k] = (law(t, ahead, p) - law(t, behind, p)) / (ahead[k] - behind[k])
        return J

    return slope


# ---------------------------------------------------------------------- traced


def traced_derivatives(model: Model) -> Traced:
    """The matrices of :func:`FD_derivatives` as a traced function of t, x = [q; v] and p = tau.

    The same recursions run on symbols: machine code for this one model, without loops or indices.
    For small models and many evaluations (also in lanes); compiling takes about a second for each
    five joints. The result has 3·nv² numbers: dq (along velocities), dv and dtau, row by row.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> f = traced_derivatives(mechanisms.pendulum())
    >>> f(0.0, np.array([0.0, 1.0]), np.array([2.0])).round(6) + 0.0
    array([-9.81,  0.  ,  1.  ])
    """
    from integrators import traced

    nq, nv = model.nq, model.nv
    tree = derivative_tree(model)

    def symbolic(t: Any, x: Any, p: Any) -> Any:
        w = tree.symbolic()
        w.t[0], w.task[0] = t, CLOSED_ALONG if model.bonds else FORWARD_ALONG
        w.q[:], w.v[:], w.tau[:] = x[:nq], x[nq:], p
        w.switches[HAVE_FORCES] = int(len(model.springs) + len(model.bonds) > 0)
        if model.bonds:
            stabilise(w, Stabilisation())
            closed_derivatives(w)
        else:
            derivatives(w)
        return w.result.ravel()

    kept = model.tree.traced
    if "traced derivatives" not in kept:
        kept["traced derivatives"] = traced(symbolic, n=nq + nv, params=nv, outputs=3 * nv * nv)
    found: Traced = kept["traced derivatives"]
    return found
