"""Features that meet: loops, floating bases, drives, springs, dampers, stops, armature, gears.

Random mechanisms with all of them (``random_mechanisms``), and every function that takes one,
against computations that share little with it: the principle of virtual power with differences of
the gaps, unit forces, other algorithms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import multibody as mb
from multibody.dynamics.book.floating import (
    floating_equation,
    floating_forward_dynamics,
    floating_inverse_dynamics,
    floating_jacobian,
)
from multibody.dynamics.book.handles import (
    articulated_bodies,
    handle_dynamics,
    operational_space_inertia,
    subtree_dynamics,
)
from multibody.dynamics.book.maximal import forward_dynamics_maximal, forward_dynamics_projected
from multibody.dynamics.book.oracles import inertia_by_definition, rnea_base
from multibody.dynamics.loops.closed_loop import constraints
from multibody.dynamics.loops.independent import independent_accelerations
from multibody.dynamics.loops.response import loops_to_the_ground
from multibody.runs.minimal import as_ivp_minimal
from tests.multibody.random_mechanisms import draw

SEEDS = range(24)

#: Two algorithms, relative to the largest number: rounding, times the condition of the mechanism.
ROUNDING = 1e-9
#: Differences of the gap along the motion, h = 1e-3 and one extrapolation.
DIFFERENCES = 1e-6


def close(found, expected, tolerance=ROUNDING):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * scale)


def forward(c, tau=None, f_ext=None):
    """Accelerations, by the rank-revealing way if there are loops."""
    tau, f_ext = c.tau if tau is None else tau, c.f_ext if f_ext is None else f_ext
    if not c.model.loops:
        return mb.FD(c.model, c.q, c.v, tau, f_ext, t=c.t)
    return mb.constrained_accelerations(c.model, c.q, c.v, tau, f_ext, t=c.t).accelerations


def position_after(c, a, h):
    """Position after a time h along v(t) = v + a t: one step of Runge and Kutta."""

    def rate(q, s):
        return mb.position_rate(c.model, c.model.normalise(q), c.v + s * a, t=c.t + s)

    k1 = rate(c.q, 0.0)
    k2 = rate(c.q + h / 2 * k1, h / 2)
    k3 = rate(c.q + h / 2 * k2, h / 2)
    k4 = rate(c.q + h * k3, h)
    return c.model.normalise(c.q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


def gap_curvature(c, a):
    """d²δ/dt² along the motion, by differences."""

    def second(h):
        gaps = [
            constraints(c.model, position_after(c, a, s), t=c.t + s).delta for s in (-h, 0.0, h)
        ]
        return (gaps[0] - 2 * gaps[1] + gaps[2]) / h**2

    return (4 * second(1e-3) - second(2e-3)) / 3


def motions_left(c):
    """Null space of dδ along the velocity variables, by differences."""

    def gap(u):
        return constraints(c.model, c.model.integrate(c.q, u), t=c.t).delta

    h = 1e-5
    K = np.array([(gap(h * e) - gap(-h * e)) / (2 * h) for e in np.eye(c.model.nv)]).T
    _, sizes, rows = np.linalg.svd(K.reshape(-1, c.model.nv))
    rank = int(np.sum(sizes > 1e-6 * sizes.max(initial=1e-300)))
    return rows[rank:].T


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations_obey_virtual_power_and_keep_loops_closed(seed):
    """Nᵀ(Ha + C − τ) = 0 for all motions N that the gaps allow, and d²δ/dt² = 0: one a only."""
    c = draw(seed)
    a = forward(c)
    H = inertia_by_definition(c.model, c.q, c.t)
    C = rnea_base(c.model, c.q, c.v, np.zeros(c.model.nv), c.f_ext, c.t)
    load = H @ a + C - c.tau
    if c.model.loops:
        close(motions_left(c).T @ load, 0.0, 1e-7)
        close(gap_curvature(c, a), 0.0 * constraints(c.model, c.q, t=c.t).delta, DIFFERENCES)
    else:
        close(load, np.zeros(c.model.nv))


@pytest.mark.parametrize("seed", SEEDS[:8])  # ``test_everything`` draws more
def test_all_forward_dynamics_agree(seed):
    c = draw(seed)
    args = (c.model, c.q, c.v, c.tau, c.f_ext)
    a = forward(c)
    by_name = {body.name: f for body, f in zip(c.model.bodies, c.f_ext)}
    found = {
        "FD": mb.FD(*args, t=c.t),
        "FD, forces by name": mb.FD(*args[:4], by_name, t=c.t),
        "FD_x": mb.FD_x(c.model, np.concatenate([c.q, c.v]), c.tau, c.f_ext, t=c.t)[c.model.nq :],
        "FD_x, by name": mb.FD_x(c.model, [*c.q, *c.v], c.tau, by_name, t=c.t)[c.model.nq :],
        "sparse": mb.SparseDynamics(c.model)(*args[1:], t=c.t).accelerations,
        "maximal": forward_dynamics_maximal(*args, t=c.t).joint_accelerations,
        "maximal, by name": forward_dynamics_maximal(*args[:4], by_name, t=c.t)[1],
        "projected": forward_dynamics_projected(*args, t=c.t),
    }
    if c.model.loops:
        for method in ("kkt", "projection"):
            found[method] = mb.constrained_accelerations(*args, t=c.t, method=method).accelerations
        found["independent"] = independent_accelerations(*args, t=c.t)
    if isinstance(c.model.bodies[0].joint, mb.Free):
        joint_forces = c.tau[6:]
        # Forces at the base's own joint are external forces on the base.
        pushed = c.f_ext.copy()
        pushed[0] += to_base(c, 1, c.tau[:6])
        for form in ("aba", "crba"):
            for name, f in (("", pushed), (", by name", dict(zip(by_name, pushed)))):
                found[f"floating {form}{name}"] = floating_forward_dynamics(
                    c.model, c.q, c.v, joint_forces, f, t=c.t, form=form
                ).array
    problem = mb.as_ivp(
        c.model, c.q, c.v, (c.t, 2.0), c.tau, by_name, traced=False,
        **({"stabilise": "none"} if c.model.loops else {}),
    )  # fmt: skip
    x = np.concatenate([c.q, c.v])
    found["as_ivp"] = problem.f(c.t, x, problem.params)[c.model.nq :]
    for name, value in found.items():
        np.testing.assert_allclose(
            value, a, rtol=0.0, atol=1e-7 * (1 + np.abs(a).max(initial=0)), err_msg=name
        )


def to_base(c, body, wrench):
    """Wrench in coordinates of a body, in base coordinates."""
    pose = mb.kinematics(c.model, c.q, t=c.t).poses[body]
    couple, force = pose.R @ wrench[:3], pose.R @ wrench[3:]
    return np.concatenate([couple + np.cross(pose.p, force), force])


@pytest.mark.parametrize("seed", SEEDS[:8])  # ``test_everything`` draws more
def test_handles_answer_as_unit_forces_do(seed):
    """Columns of Φ from accelerations with and without a unit force; so the apparent mass."""
    c = draw(seed)
    rng = np.random.default_rng(seed)
    handle = int(rng.integers(1, c.model.n_bodies + 1))
    by_name = {body.name: f for body, f in zip(c.model.bodies, c.f_ext)}
    form = handle_dynamics(c.model, c.q, handle, c.v, c.tau, by_name, t=c.t)

    def acceleration(wrench):
        f = c.f_ext.copy()
        f[handle - 1] += to_base(c, handle, wrench)
        return mb.kinematics(c.model, c.q, c.v, forward(c, f_ext=f), t=c.t).accelerations[handle]

    bias = acceleration(np.zeros(6))
    Phi = np.array([acceleration(e) - bias for e in np.eye(6)]).T
    close(form.b, bias, 1e-7)
    close(form.Phi, Phi, 1e-7)
    if np.linalg.matrix_rank(Phi, tol=1e-5) == 6:
        found = operational_space_inertia(c.model, c.q, handle, t=c.t)
        close(found @ Phi, np.eye(6), 1e-5)
    point = rng.uniform(-0.3, 0.3, 3)
    R = mb.kinematics(c.model, c.q, t=c.t).poses[handle].R
    G = np.hstack([-np.array([np.cross(point, e) for e in np.eye(3)]).T, np.eye(3)])
    at_point = R @ G @ Phi @ G.T @ R.T  # answer of the point in base axes
    if np.linalg.matrix_rank(at_point, tol=1e-5) == 3:
        close(
            operational_space_inertia(c.model, c.q, handle, point, t=c.t) @ at_point,
            np.eye(3),
            1e-5,
        )


def test_apparent_mass_and_freedoms_of_the_delta_robots_platform():
    """Against unit forces on the platform; a platform that loops hold has three freedoms."""
    entry = mb.mechanisms.entry("delta_robot")
    model = entry.model()
    q, v = entry.start(model)

    def acceleration(force):
        place = mb.point_position(model, q, "platform")
        wrench = {"platform": [*np.cross(place, force), *force]}
        a = mb.constrained_accelerations(model, q, v, None, wrench).accelerations
        return mb.point_acceleration(model, q, v, a, body="platform")

    still = acceleration(np.zeros(3))
    Phi = np.array([acceleration(e) - still for e in np.eye(3)])
    mass = operational_space_inertia(model, q, "platform", (0, 0, 0))
    np.testing.assert_allclose(mass, np.linalg.inv(Phi), rtol=0, atol=1e-10)
    np.testing.assert_allclose(mass.diagonal(), [0.737023, 0.737023, 1.046380], atol=1e-6)
    assert handle_dynamics(model, q, "platform", v).rank == mb.mobility(model, q).mobility == 3
    with pytest.raises(ValueError, match="6 freedoms, received 3"):
        operational_space_inertia(model, q, "platform")


@pytest.mark.parametrize("seed", range(10))
def test_floating_bases_with_loops(seed):
    """Inverse dynamics and Jacobian where nothing holds the mechanism; refusals elsewhere."""
    c = draw(seed, floating=True, loops=1 + seed % 2)
    model = c.model
    if loops_to_the_ground(model):
        with pytest.raises(ValueError, match=r"floating_jacobian: .* to the ground"):
            floating_jacobian(model, c.q, 1, t=c.t)
        with pytest.raises(ValueError, match=r"floating_inverse_dynamics: .* to the ground"):
            floating_inverse_dynamics(model, c.q, c.v, np.zeros(model.nv - 6))
        return
    tau = np.concatenate([np.zeros(6), c.tau[6:]])
    a = forward(c, tau)
    base, joints = floating_inverse_dynamics(model, c.q, c.v, a[6:], c.f_ext, t=c.t)
    close(base, a[:6], 1e-8)
    close(joints, mb.ID(model, c.q, c.v, a, c.f_ext, t=c.t)[6:], 1e-8)
    # Joint velocities that the loops allow, while the momentum is zero; drives stand still.
    e = floating_equation(model, c.q, c.v, t=c.t)
    left = motions_left(c)[6:]
    velocities = left @ np.ones(left.shape[1])
    v = np.concatenate([-np.linalg.solve(e.I_c, e.F @ velocities), velocities])
    for body in range(1, model.n_bodies + 1):
        expected = mb.body_jacobian(model, c.q, body, t=c.t) @ v
        close(floating_jacobian(model, c.q, body, t=c.t) @ velocities, expected)


def test_parts_of_a_mechanism_that_loops_hold_are_refused():
    """An articulated body is one of a tree; a subtree that no loop touches still is one."""
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    q, _ = entry.start(model)
    with pytest.raises(ValueError, match=r"articulated_bodies: .*'joint'.*use handle_dynamics"):
        articulated_bodies(model, q)
    with pytest.raises(ValueError, match=r"subtree_dynamics: .*'joint'.*use handle_dynamics"):
        subtree_dynamics(model, q, 1)
    b = mb.ModelBuilder()
    b.add_body("a", 0, mb.Revolute("y"), None, mb.Inertia(1.0, (0.5, 0, 0)))
    b.add_body("b", "a", mb.Revolute("y"), (1, 0, 0), mb.Inertia(1.0, (0.5, 0, 0)))
    load = mb.Inertia(1.0, (0.5, 0, 0), (0.1, 0.2, 0.2))
    b.add_body("load", "b", mb.Revolute("y"), (1, 0, 0), load)
    b.add_loop("slot", 0, "b", mb.Planar("y"))
    held = b.build()
    found = subtree_dynamics(held, [0.3, 0.2, 0.1], "load")
    np.testing.assert_allclose(found.I, load.matrix(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_gears_with_everything(seed):
    """Accelerations of a geared mechanism against the equations with a row for each gear."""
    rng = np.random.default_rng(seed)
    b = mb.ModelBuilder()
    for k, joint in enumerate((mb.Revolute("y"), mb.Prismatic("x"), mb.Revolute("x"))):
        b.add_body(
            f"b{k}", k, joint, (0.3, 0.1, 0.2), mb.Inertia(1.0, (0.2, 0.1, 0), (1, 2, 2.5)),
            bool(seed % 2), armature=0.3, damping=0.2, stiffness=1.5, limits=(-0.2, 0.2, 9.0, 0.4),
        )  # fmt: skip
    b.add_body(
        "moved", "b2", mb.Driven(mb.Revolute("z"), np.sin), None, mb.Inertia(0.5, (0.3, 0, 0))
    )
    b.add_spring("rope", "moved", (0.1, 0, 0), 0, (0, 0, 3.0), 4.0, 0.2, 1.0)
    model = b.build()
    gear = mb.gears(model, {"b2": {"b0": -2.0, "b1": 0.5}})
    y, ydot = rng.uniform(-1, 1, (2, 2))
    tau, f_ext = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (4, 6))
    problem = as_ivp_minimal(model, gear, y, ydot, (0.0, 1.0), tau, f_ext, traced=False)
    t = 0.7
    found = problem.f(t, np.concatenate([y, ydot]), problem.params)[2:]
    q = np.array([*y, -2.0 * y[0] + 0.5 * y[1]])
    v = np.array([*ydot, -2.0 * ydot[0] + 0.5 * ydot[1]])
    row = np.array([[2.0, -0.5, 1.0]])
    H = inertia_by_definition(model, q, t)
    C = rnea_base(model, q, v, np.zeros(3), f_ext, t)
    system = np.block([[H, row.T], [row, np.zeros((1, 1))]])
    expected = np.linalg.solve(system, [*(tau - C), 0.0])
    close(found, expected[:2])


@pytest.mark.parametrize("joint", [mb.Planar(), mb.Spherical(), mb.Free(), mb.RollingSphere(0.1)])
def test_rotors_at_joints_that_would_need_gyroscopic_terms_are_refused(joint):
    """A v̇ is the whole of Lagrange's term only where v = q̇, or v is a single number."""
    b = mb.ModelBuilder()
    with pytest.raises(ValueError, match=r"armature .* gyroscopic terms"):
        b.add_body("a", 0, joint, None, mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)), armature=0.1)
    b.add_body("a", 0, joint, None, mb.Inertia(1.0, (0, 0, 0), (1, 1, 1)), armature=0.0)
    assert b.build().nv == joint.nv


@pytest.mark.parametrize(
    "joint", [mb.ConstantVelocity(), mb.AngleSequence("zyx"), mb.Cylindrical()]
)
def test_rotors_at_joints_with_derivatives_as_velocities_obey_lagrange(joint):
    """d/dt ∂T/∂q̇ − ∂T/∂q with T = ½ Σ A q̇² + T of the body, by differences of the energy."""
    A = np.arange(1.0, joint.nv + 1.0)
    models = []
    for armature in (0.0, A):
        b = mb.ModelBuilder()
        b.add_body(
            "a", 0, joint, None, mb.Inertia(1.0, (0.3, 0.2, 0), (1, 2, 2.5)), armature=armature
        )
        models.append(b.build())
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1, 1, (3, joint.nv))
    without, rotors = (mb.ID(model, q, v, a) for model in models)
    close(rotors - without, A * a)  # of a term ½ Σ A q̇² of the Lagrangian
    more = mb.energy(models[1], q, v).kinetic - mb.energy(models[0], q, v).kinetic
    close(more, 0.5 * A @ v**2)


def test_a_body_without_inertia_about_its_axis_is_not_told_to_have_a_negative_one():
    """Eigenvalues of a point mass's inertia are zero up to rounding, −1.64e-17 for example."""
    for place in ((0.1, 0.2, 0.3), (0.7, -0.2, 0.1), (0.3, 0.3, 0.3)):
        b = mb.ModelBuilder()
        b.add_body("bead", 0, mb.Revolute(place), None, mb.point_mass(0.3, place))
        with pytest.raises(ValueError, match="no inertia in that direction"):
            b.build()


def moved_by_time(c):
    """Whether constraints ask for velocities, so that nothing can stand still."""
    still = np.zeros(c.model.nv)
    return bool(c.model.bonds) and np.abs(constraints(c.model, c.q, still, t=0.0).nu).max() > 0


@pytest.mark.parametrize("seed", range(30))
def test_contacts_with_rotors_gears_and_loops(seed):
    """A joint that rests at a stop: force and acceleration complement each other, as FD says."""
    options = {"driven": False, "elements": seed % 3 > 0, "stated": seed % 2}
    drawn = (draw(seed + more, **options) for more in (0, 1000, 2000, 3000))
    c = next(c for c in drawn if not moved_by_time(c))
    places = [
        (iq.start, iv.start)
        for b, iq, iv in zip(c.model.bodies, c.model.q_index, c.model.v_index)
        if b.joint.rate_is_velocity
    ]
    still = np.zeros(c.model.nv)
    for at, k in places[:3]:  # joints that loops hold among them
        start = float(c.q[at])
        stop = mb.Contact("stop", gap=lambda q, at=at, start=start: q[at] - start)
        model = replace(c.model, contacts=(stop,))
        found = mb.contact_accelerations(model, c.q, still, c.tau, c.f_ext)
        force, answer = found.forces[0, 0], found.accelerations[k]
        scale = 1.0 + np.abs(found.accelerations).max()
        assert force >= 0.0
        assert answer >= -1e-8 * scale
        assert abs(force * answer) <= 1e-8 * scale * (1.0 + force)
        pushed = c.tau.copy()
        pushed[k] += force
        close(found.accelerations, mb.FD(c.model, c.q, still, pushed, c.f_ext), 1e-7)
