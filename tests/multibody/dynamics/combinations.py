"""Everything with everything: one random mechanism, and every road to the same numbers.

Trees, floating bases, loops, gears, constraints by functions, drives, springs, armature, reversed
joints, joints from functions and elements with states of their own, as ``random_mechanisms`` draws
them. Thousands of them:

    python -m tests.multibody.dynamics.combinations 0 2000
"""

from __future__ import annotations

import sys

import numpy as np

import multibody as mb
from integrators import solve, solve_many
from multibody.dynamics.acting import acting
from multibody.dynamics.book.floating import floating_forward_dynamics
from multibody.dynamics.book.handles import handle_dynamics
from multibody.dynamics.book.maximal import forward_dynamics_maximal, forward_dynamics_projected
from multibody.dynamics.loops.independent import independent_accelerations
from multibody.dynamics.loops.multipliers import EPSILON, constrained_kernel
from multibody.dynamics.with_elements import forward_dynamics
from multibody.runs.derivatives import traced_derivatives
from multibody.runs.traced import traced_fd
from tests.multibody.random_mechanisms import draw

#: Two algorithms, relative to the largest number, where constraints are far from dependent.
ROUNDING = 1e-7
#: Central differences of step 1e-6, relative to the largest entry.
DIFFERENCES = 1e-4
#: Smallest singular value of the constraints, in parts of the largest, below which rank itself is
#: in doubt: then different algorithms may decide differently.
CLEAR = 1e-3
FORMS = ("index1", "index2", "index3", "ggl")
#: What :func:`~multibody.hybrid_dynamics` refuses, as documented.
NOT_DETERMINED = "not determined"


class Doubtful(Exception):
    """A mechanism next to a singular position, on which nothing is asserted."""


def close(what, found, expected, tolerance=ROUNDING):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=what)


#: Groups of checks beyond those that every draw goes through; all but the last take milliseconds.
CHEAP = (
    "hybrid", "handle", "derivatives", "interpreted", "prescribed", "floating", "roads", "state",
    "form",
)  # fmt: skip
PARTS = (*CHEAP, "ledger")


def check(seed, parts=PARTS, traced=False):
    """Raise where two roads differ."""
    c = draw(seed, stated=None, laws=seed % 2 == 1, every=seed % 4 > 1)
    model, args = c.model, (c.model, c.q, c.v, c.tau, c.f_ext)
    n, bonds = model.nv, len(model.bonds) > 0
    K, lam = np.zeros((0, n)), np.zeros(0)
    regular = True
    if bonds:
        found = mb.constrained_accelerations(*args, t=c.t)
        sizes = found.singular_values
        if found.rank and sizes[found.rank - 1] < CLEAR * sizes[0]:
            raise Doubtful
        a, lam = found.accelerations, found.multipliers
        constraints = mb.constraints(model, c.q, c.v, t=c.t)
        K, regular = constraints.K, found.rank == len(lam)
        close("K a = γ", K @ a, constraints.gamma)
        close("K v = ν", K @ c.v, constraints.nu)
    else:
        a = mb.FD(*args, t=c.t, method="crba")
    close("FD", mb.FD(*args, t=c.t), a)
    close("ID", mb.ID(model, c.q, c.v, a, c.f_ext, t=c.t), c.tau + K.T @ lam)

    def forward(q=None, v=None, tau=None, f_ext=None):
        given = [x if y is None else y for x, y in zip(args[1:], (q, v, tau, f_ext))]
        if bonds:
            return mb.constrained_accelerations(model, *given, t=c.t).accelerations
        return mb.FD(model, *given, t=c.t)

    if "roads" in parts:
        _roads(c, a)
    if "interpreted" in parts:
        close("interpreted", _interpreted(c), a)
    if traced:
        x = np.concatenate([c.q, c.v])
        quiet = mb.FD(model, c.q, c.v, c.tau, t=c.t)
        close("traced", traced_fd(model)(c.t, x, c.tau)[model.nq :], quiet)
        _lanes(c)
    if "hybrid" in parts:
        _hybrid(c, a)
    if "handle" in parts:
        _handle(c, forward, seed)
    if "derivatives" in parts and regular:
        _derivatives(c, forward, seed)
        if traced:
            _traced_derivatives(c)
    if "state" in parts:
        _right_hand_side(c, regular, seed)
    if "form" in parts and len(model.tree.acting_rows):
        for form in FORMS if len(parts) == len(PARTS) else FORMS[seed // len(PARTS) % 4 :][:1]:
            _form(c, form, seed)
    if "ledger" in parts:
        _ledger(c)
    if "prescribed" in parts:
        _prescribed(c)
    root, *others = model.bodies
    floats = isinstance(root.joint, mb.Free) and not root.reverse and all(b.parent for b in others)
    if "floating" in parts and floats:
        _floating(c, a)
    return model


def _roads(c, a):
    """Algorithms that share little with each other."""
    args, model = (c.model, c.q, c.v, c.tau, c.f_ext), c.model
    roads = {
        "sparse": mb.SparseDynamics(model)(*args[1:], t=c.t).accelerations,
        "maximal": forward_dynamics_maximal(*args, t=c.t).joint_accelerations,
        "projected": forward_dynamics_projected(*args, t=c.t),
    }
    if model.bonds:
        for method in ("kkt", "projection"):
            roads[method] = mb.constrained_accelerations(*args, t=c.t, method=method).accelerations
        roads["independent"] = independent_accelerations(*args, t=c.t)
    for name, value in roads.items():
        close(name, value, a)
    mb.joint_reactions(*args, t=c.t)


def _interpreted(c):
    w = c.model.tree.symbolic()
    w.t[0], w.q[:], w.v[:], w.tau[:], w.f_ext[:] = c.t, c.q, c.v, c.tau, c.f_ext
    w.switches[0] = 1
    if c.model.bonds:
        w.stabilise[EPSILON] = 1e-9
        constrained_kernel(w)
    else:
        forward_dynamics(w)
    return w.a_q.astype(float)


def _hybrid(c, a):
    """Forces of prescribed freedoms cause what was prescribed, the others are as in FD."""
    rng = np.random.default_rng(c.model.nv)
    held = [k for k in range(c.model.nv) if rng.random() < 0.4]
    prescribed = {k: float(a[k]) for k in held}
    try:
        found = mb.hybrid_dynamics(c.model, c.q, c.v, c.tau, prescribed, None, c.f_ext, t=c.t)
    except ValueError as error:
        if NOT_DETERMINED not in str(error):
            raise
        return
    close("hybrid", found.a, a, 1e-6)
    again = mb.FD(c.model, c.q, c.v, found.tau, c.f_ext, t=c.t)
    close("FD of hybrid", again, a, 1e-6)


def _prescribed(c):
    """A run in which freedoms have given accelerations: what FD does under the forces they take.

    In a mechanism with constraints those that it has anyway, for others may not be possible.
    """
    model, rng = c.model, np.random.default_rng(c.model.nv)
    a, _ = _acted(c)
    wanted = a if model.bonds else a + rng.uniform(-1.0, 1.0, model.nv)
    held = [k for k in range(model.nv) if rng.random() < 0.4] or [0]
    laws = {k: lambda t, q, v, value=float(wanted[k]): value for k in held}
    still = {"stabilise": "none"} if model.bonds else {}
    given = (model, c.q, c.v, (c.t, c.t + 0.01), c.tau, c.f_ext)
    try:
        problem = mb.as_ivp(*given, traced=False, prescribed=laws, **still)
        found = problem.f(c.t, problem.y0, problem.params)[model.nq :]
    except ValueError as error:
        if NOT_DETERMINED not in str(error):
            raise
        return
    close("prescribed", found[held], wanted[held], 1e-6)
    acted = acting(model, c.t, c.q, c.v)
    tau, forces = c.tau + acted.joint_forces(), c.f_ext + acted.wrenches()
    taken = mb.hybrid_dynamics(
        model, c.q, c.v, tau, {k: float(wanted[k]) for k in held}, None, forces, t=c.t
    ).tau
    close("as prescribed", mb.FD(model, c.q, c.v, taken, forces, t=c.t), found, 1e-6)


def _floating(c, a):
    """Chapter 9's equations of a floating base, on which forces at its own joint are external."""
    pose, pushed = mb.kinematics(c.model, c.q, t=c.t).poses[1], c.f_ext.copy()
    couple, force = pose.R @ c.tau[:3], pose.R @ c.tau[3:6]
    pushed[0] += [*(couple + np.cross(pose.p, force)), *force]
    for form in ("aba", "crba"):
        given = (c.model, c.q, c.v, c.tau[6:], pushed)
        found = floating_forward_dynamics(*given, t=c.t, form=form)
        close(f"floating {form}", found.array, a)


def _handle(c, forward, seed):
    """Φ against a force drawn at random on a body."""
    body = 1 + c.model.n_bodies // 2
    form = handle_dynamics(c.model, c.q, body, c.v, c.tau, c.f_ext, t=c.t)
    pose = mb.kinematics(c.model, c.q, t=c.t).poses[body]

    def acceleration(wrench):
        couple, force = pose.R @ wrench[:3], pose.R @ wrench[3:]
        f = c.f_ext.copy()
        f[body - 1] += [*(couple + np.cross(pose.p, force)), *force]
        moved = mb.kinematics(c.model, c.q, c.v, forward(f_ext=f), t=c.t)
        return moved.accelerations[body]

    bias, wrench = acceleration(np.zeros(6)), np.random.default_rng(seed).standard_normal(6)
    close("b", form.b, bias, 1e-6)
    close("Φ", form.Phi @ wrench, acceleration(wrench) - bias, 1e-6)


def slope(f, u, h=1e-6):
    """Derivative along a direction: as good as a matrix, for no wrong entry is blind to it."""
    return (f(h * u) - f(-h * u)) / (2 * h)


def _derivatives(c, forward, seed):
    found = mb.FD_derivatives(c.model, c.q, c.v, c.tau, f_ext=c.f_ext, t=c.t)
    u = np.random.default_rng(seed).standard_normal(c.model.nv)
    moved = {
        "∂q": lambda x: forward(q=c.model.integrate(c.q, x)),
        "∂v": lambda x: forward(v=c.v + x),
        "∂τ": lambda x: forward(tau=c.tau + x),
    }
    for J, (name, f) in zip(found, moved.items()):
        scale = 1.0 + np.abs(J).max(initial=0.0)
        close(name, J @ u / scale, slope(f, u) / scale, DIFFERENCES)


def _traced_derivatives(c):
    model = c.model
    found = traced_derivatives(model)(c.t, np.concatenate([c.q, c.v]), c.tau)
    expected = np.array(mb.FD_derivatives(model, c.q, c.v, c.tau, t=c.t))
    close("traced derivatives", found.reshape(expected.shape), expected, 1e-6)


def _acted(c):
    """Accelerations with the forces of elements, and the rates of their own states."""
    acted = acting(c.model, c.t, c.q, c.v)
    tau, forces = c.tau + acted.joint_forces(), c.f_ext + acted.wrenches()
    return mb.FD(c.model, c.q, c.v, tau, forces, t=c.t), acted.rates()


def _right_hand_side(c, regular, seed):
    """ẋ with elements, too, and its Jacobian."""
    model = c.model
    a, rates = _acted(c)
    still = {"stabilise": "none"} if model.bonds else {}
    given = (model, c.q, c.v, (c.t, c.t + 0.01), c.tau, c.f_ext)
    problem = mb.as_ivp(*given, traced=False, **still)
    found = problem.f(c.t, problem.y0, problem.params)
    close("as_ivp", found[model.nq :], a)
    if model.n_states:
        close("own states", found[model.nq - model.n_states : model.nq], rates)
    if regular:
        _slopes("as_ivp", problem, c.t, problem.y0, seed)


def _form(c, form, seed):
    """A formulation with multipliers, and its Jacobian."""
    given = (c.model, c.q, c.v, (c.t, c.t + 0.01), c.tau, c.f_ext)
    more = {"multipliers": True} if form == "index1" else {}
    problem = mb.as_dae(*given, formulation=form, traced=False, **more)
    y, n = problem.y0.copy(), c.model.nq + c.model.nv
    close(form, problem.f(c.t, y, problem.params)[c.model.nq : n], _acted(c)[0])
    y[n:] += np.random.default_rng(seed).standard_normal(len(y) - n)
    _slopes(form, problem, c.t, y, seed)


def _slopes(name, problem, t, y, seed):
    u = np.random.default_rng(seed).standard_normal(len(y))
    J = problem.jac(t, y, problem.params)
    scale = 1.0 + np.abs(J).max(initial=0.0)
    expected = slope(lambda x: problem.f(t, y + x, problem.params), u)
    close(f"∂f of {name}", J @ u / scale, expected / scale, DIFFERENCES)


def _lanes(c):
    """Side by side as one by one, traced as untraced."""
    still = {"stabilise": "none"} if c.model.bonds else {}
    given = (c.model, c.q, c.v, (c.t, c.t + 4e-3), c.tau)
    problem = mb.as_ivp(*given, traced=True, **still)
    starts = np.array([problem.y0] * 3)
    starts[:, c.model.nq :] *= np.array([[1.0], [1.01], [0.99]])
    how = {"method": "RK4", "step": 1e-3}
    many = solve_many(problem, y0=starts, **how)
    if "lane" not in many.engine:
        raise AssertionError(f"no lanes: {many.engine}")
    slow = mb.as_ivp(*given, traced=False, **still)
    for k, start in enumerate(starts):
        close("lanes", many.y[k], solve(slow, y0=start, **how).y[:, -1])


def _ledger(c):
    """Energy that comes and goes is booked."""
    span, stated = (c.t, c.t + 0.02), {"stabilise": "none"} if c.model.bonds else {}
    problem = mb.as_ivp(c.model, c.q, c.v, span, c.tau, traced=False, **stated)
    times = np.linspace(*span, 9)  # enough for the work to be known
    result = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11, t_eval=times)
    if not result.success:
        if "lost rank" in result.message:  # it runs into a singular position, and says so
            raise Doubtful
        raise AssertionError(result.message)
    books = mb.energy_ledger(c.model, result, c.tau)
    size = 1.0 + np.abs(books.energy).max() + sum(np.abs(w).max() for w in books.work.values())
    close("ledger", books.balance / size, 0.0 * books.balance, 1e-6 + books.quadrature_error / size)


if __name__ == "__main__":
    first, last = (int(x) for x in sys.argv[1:3])
    bad, doubtful = 0, 0
    for seed in range(first, last):
        try:
            check(seed, traced=seed % 50 == 0)
        except Doubtful:
            doubtful += 1
        except Exception as error:
            bad += 1
            said = " ".join(str(error).split())[:300]
            sys.stdout.write(f"{seed}: {type(error).__name__}: {said}\n")
        if (seed + 1) % 50 == 0:
            sys.stdout.write(f"up to {seed}: {bad} with differences\n")
            sys.stdout.flush()
    count = f"{last - first} mechanisms, {doubtful} next to singular positions"
    sys.stdout.write(f"{count}, {bad} with differences\n")
