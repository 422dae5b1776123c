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
from multibody.dynamics.book.handles import handle_dynamics
from multibody.dynamics.book.maximal import forward_dynamics_maximal, forward_dynamics_projected
from multibody.dynamics.loops.independent import independent_accelerations
from multibody.dynamics.loops.multipliers import EPSILON, constrained_kernel
from multibody.dynamics.with_elements import forward_dynamics
from multibody.runs.traced import traced_fd
from tests.multibody.random_mechanisms import draw

#: Two algorithms, relative to the largest number, where constraints are far from dependent.
ROUNDING = 1e-7
#: Central differences of step 1e-6, relative to the largest entry.
DIFFERENCES = 1e-4
#: Smallest singular value of the constraints, in parts of the largest, below which rank itself is
#: in doubt: then different algorithms may decide differently.
CLEAR = 1e-3
#: What :func:`~multibody.hybrid_dynamics` refuses, as documented.
NOT_DETERMINED = "not determined"


class Doubtful(Exception):
    """A mechanism next to a singular position, on which nothing is asserted."""


def close(what, found, expected, tolerance=ROUNDING):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=what)


def check(seed, traced=False, run=True):
    """Raise where two roads differ."""
    c = draw(seed, stated=None, laws=seed % 2 == 1)
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
        a = mb.FD(*args, t=c.t)

    def forward(q=None, v=None, tau=None, f_ext=None):
        given = [x if y is None else y for x, y in zip(args[1:], (q, v, tau, f_ext))]
        if bonds:
            return mb.constrained_accelerations(model, *given, t=c.t).accelerations
        return mb.FD(model, *given, t=c.t)

    roads = {
        "FD": mb.FD(*args, t=c.t),
        "sparse": mb.SparseDynamics(model)(*args[1:], t=c.t).accelerations,
        "maximal": forward_dynamics_maximal(*args, t=c.t).joint_accelerations,
        "projected": forward_dynamics_projected(*args, t=c.t),
        "interpreted": _interpreted(c),
    }
    if bonds:
        for method in ("kkt", "projection"):
            roads[method] = mb.constrained_accelerations(*args, t=c.t, method=method).accelerations
        roads["independent"] = independent_accelerations(*args, t=c.t)
    else:
        roads["crba"] = mb.FD(*args, t=c.t, method="crba")
    if traced:
        x = np.concatenate([c.q, c.v])
        quiet = mb.FD(model, c.q, c.v, c.tau, t=c.t)
        close("traced", traced_fd(model)(c.t, x, c.tau)[model.nq :], quiet)
        _lanes(c)
    for name, value in roads.items():
        close(name, value, a)
    close("ID", mb.ID(model, c.q, c.v, a, c.f_ext, t=c.t), c.tau + K.T @ lam)
    _hybrid(c, a)
    _handle(c, forward)
    if regular:
        _derivatives(c, forward)
    _right_hand_sides(c, regular)
    if run:
        _ledger(c)
    mb.joint_reactions(*args, t=c.t)
    return model


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


def _handle(c, forward):
    """Φ against unit forces on a body."""
    body = 1 + c.model.n_bodies // 2
    form = handle_dynamics(c.model, c.q, body, c.v, c.tau, c.f_ext, t=c.t)
    pose = mb.kinematics(c.model, c.q, t=c.t).poses[body]

    def acceleration(wrench):
        couple, force = pose.R @ wrench[:3], pose.R @ wrench[3:]
        f = c.f_ext.copy()
        f[body - 1] += [*(couple + np.cross(pose.p, force)), *force]
        moved = mb.kinematics(c.model, c.q, c.v, forward(f_ext=f), t=c.t)
        return moved.accelerations[body]

    bias = acceleration(np.zeros(6))
    close("b", form.b, bias, 1e-6)
    close("Φ", form.Phi, np.array([acceleration(e) - bias for e in np.eye(6)]).T, 1e-6)


def _derivatives(c, forward):
    dq, dv, dtau = mb.FD_derivatives(c.model, c.q, c.v, c.tau, f_ext=c.f_ext, t=c.t)
    h, units = 1e-6, np.eye(c.model.nv)

    def slope(f):
        return np.array([(f(h * e) - f(-h * e)) / (2 * h) for e in units]).T

    by_q = slope(lambda u: forward(q=c.model.integrate(c.q, u)))
    close("∂q", dq, by_q, DIFFERENCES)
    close("∂v", dv, slope(lambda u: forward(v=c.v + u)), DIFFERENCES)
    close("∂τ", dtau, slope(lambda u: forward(tau=c.tau + u)), DIFFERENCES)


def _right_hand_sides(c, regular):
    """With elements, too: ẋ and its Jacobian, and those of formulations with multipliers."""
    model = c.model
    acted = acting(model, c.t, c.q, c.v)
    tau, forces = c.tau + acted.joint_forces(), c.f_ext + acted.wrenches()
    a = mb.FD(model, c.q, c.v, tau, forces, t=c.t)
    still = {"stabilise": "none"} if model.bonds else {}
    given = (model, c.q, c.v, (c.t, c.t + 0.01), c.tau, c.f_ext)
    problem = mb.as_ivp(*given, traced=False, **still)
    found = problem.f(c.t, problem.y0, problem.params)
    close("as_ivp", found[model.nq :], a)
    if model.n_states:
        close("own states", found[model.nq - model.n_states : model.nq], acted.rates())
    if regular:
        _slopes("as_ivp", problem, c.t, problem.y0)
    if not model.bonds or not len(model.tree.acting_rows):
        return
    rng = np.random.default_rng(model.nv)
    for form in ("index1", "index2", "index3", "ggl"):
        more = {"multipliers": True} if form == "index1" else {}
        problem = mb.as_dae(*given, formulation=form, traced=False, **more)
        y, n = problem.y0.copy(), model.nq + model.nv
        close(form, problem.f(c.t, y, problem.params)[model.nq : n], a)
        y[n:] += rng.standard_normal(len(y) - n)
        _slopes(form, problem, c.t, y)


def _slopes(name, problem, t, y):
    h, units = 1e-6, np.eye(len(y))

    def f(y):
        return problem.f(t, y, problem.params)

    differences = np.array([(f(y + h * e) - f(y - h * e)) / (2 * h) for e in units]).T
    close(f"∂f of {name}", problem.jac(t, y, problem.params), differences, DIFFERENCES)


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
        raise AssertionError(result.message)
    books = mb.energy_ledger(c.model, result, c.tau)
    size = 1.0 + np.abs(books.energy).max() + sum(np.abs(w).max() for w in books.work.values())
    close("ledger", books.balance / size, 0.0 * books.balance, 1e-6 + books.quadrature_error / size)


if __name__ == "__main__":
    first, last = (int(x) for x in sys.argv[1:3])
    bad, doubtful = 0, 0
    for seed in range(first, last):
        try:
            check(seed, traced=seed % 50 == 0, run=seed % 5 == 0)
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
