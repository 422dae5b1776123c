"""Dynamics of closed loops: methods agree, forces do no work, gears, actuators, sparse systems."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody import as_ivp, constrained_accelerations, constraints, mechanisms
from multibody.dynamics.acting import acting
from multibody.dynamics.book.sparse import SparseDynamics
from multibody.dynamics.loops.closure import LoopClosure, gears
from multibody.dynamics.loops.constraints.joints import (
    LoopElement,
    loop_elements,
    loop_joint_forces,
    loop_joint_state,
)
from multibody.dynamics.loops.independent import (
    independent_accelerations,
    independent_coordinates,
)
from multibody.dynamics.loops.loads.actuation import actuators, closed_loop_inverse_dynamics
from multibody.runs.minimal import as_ivp_minimal
from tests.multibody.loops.test_loops import (
    METHODS,
    YDOT,
    Y,
    rrpr,
    rrpr_closure,
    rrpr_state,
    tied_body,
)

LOOPED = [e for e in mechanisms.entries() if e.model().loops]


@pytest.fixture(params=LOOPED, ids=lambda e: e.name)
def moving(request):
    """A mechanism with loops in motion, away from its symmetric start."""
    entry = request.param
    model = entry.model()
    q, v = entry.start(model)
    rng = np.random.default_rng(3)
    scale = 1.0 if entry.name != "andrews" else 100.0
    v = mb.consistent_velocity(model, q, v + scale * rng.standard_normal(model.nv))
    tau = rng.standard_normal(model.nv) * (1e-2 if entry.name == "andrews" else 1.0)
    return model, q, v, tau


# ---------------------------------------------------------------------- one answer


def test_all_methods_give_the_same_accelerations(moving):
    """KKT, multipliers first, projection, elimination, sparse maximal coordinates, compiled."""
    model, q, v, tau = moving
    f_ext = np.zeros((model.n_bodies, 6))
    f_ext[-1] = np.array([0.1, -0.2, 0.3, 0.3, 0.2, -0.1]) * np.abs(tau).max()
    expected = constrained_accelerations(model, q, v, tau, f_ext)
    size = 1.0 + np.abs(expected.accelerations).max()
    found = {
        m: constrained_accelerations(model, q, v, tau, f_ext, method=m).accelerations
        for m in METHODS
    }
    found["elimination"] = independent_accelerations(model, q, v, tau, f_ext)
    found["sparse"] = SparseDynamics(model)(q, v, tau, f_ext).accelerations
    for name, a in found.items():
        # Rounding times the condition of H and K, which is below 1e3 for all of these.
        assert np.abs(a - expected.accelerations).max() < 1e-12 * size, name
    c = constraints(model, q, v)
    np.testing.assert_allclose(
        c.K @ expected.accelerations, c.gamma, atol=1e-11 * (1 + np.abs(c.gamma).max())
    )


def test_right_hand_sides_of_as_ivp_are_the_same(moving):
    model, q, v, tau = moving
    acted = acting(model, 0.0, q, v)  # zero where the model has no elements
    given = (tau + acted.joint_forces(), acted.wrenches())
    expected = constrained_accelerations(model, q, v, *given, alpha=10.0).accelerations
    x = np.concatenate([q, v])
    for traced in (True, False):
        problem = as_ivp(model, q, v, tau=tau, traced=traced)
        a = problem.f(0.0, x, tau)[model.nq :]
        # The path without a rank decision is refined to rounding, see dynamics/constrained.py.
        assert np.abs(a - expected).max() < 1e-10 * (1.0 + np.abs(expected).max()), traced


def test_constraint_forces_do_no_work_and_explain_the_motion(moving):
    model, q, v, tau = moving
    solution = constrained_accelerations(model, q, v, tau)
    c = constraints(model, q, v)
    lam = solution.multipliers
    size = np.abs(lam).max() * np.abs(v).max()
    assert abs(v @ c.K.T @ lam) < 1e-12 * size
    forces = mb.loop_forces(model, q, lam)
    # The tree alone, with the loop forces as external ones, moves in the same way.
    f_ext = np.zeros((model.n_bodies, 6))
    for loop in model.loops:
        if loop.successor:
            f_ext[loop.successor - 1] += forces[loop.name]
        if loop.predecessor:
            f_ext[loop.predecessor - 1] -= forces[loop.name]
    a = mb.FD(model, q, v, tau, f_ext, method="aba")
    np.testing.assert_allclose(
        a, solution.accelerations, atol=1e-10 * (1 + np.abs(solution.accelerations).max())
    )


def test_multipliers_are_the_smallest_that_do():
    """Adding what nothing feels changes no acceleration, and makes λ longer."""
    model = mechanisms.bricard()
    q, v = np.zeros(5), np.zeros(5)
    found = [constrained_accelerations(model, q, v, method=m) for m in METHODS]
    K = constraints(model, q).K
    for solution in found:
        assert solution.rank == 4
        np.testing.assert_allclose(solution.multipliers, found[0].multipliers, atol=1e-12)
        # λ lies in the range of K: it has no part that Kᵀ annihilates.
        silent = np.linalg.svd(K.T)[2][4]
        assert abs(silent @ solution.multipliers) < 1e-12
    np.testing.assert_allclose(found[0].singular_values[4], 0.0, atol=1e-14)


@pytest.mark.parametrize("name", ["four_bar", "bricard", "spatial_slider_crank", "delta_robot"])
def test_exact_jacobian_of_the_constrained_right_hand_side(name):
    entry = mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    v = mb.consistent_velocity(model, q, v + 0.5)
    problem = as_ivp(model, q, v, traced=True)
    x = np.concatenate([q, v])
    J = problem.f.jacobian()(0.0, x)
    f, h = problem.f, 1e-6
    # Central differences: h² times third derivatives, and rounding / h.
    tolerance = 3e-7 * (1.0 + np.abs(J).max())
    slope = f(0.0, x)
    along = (f(0.0, x + h * slope) - f(0.0, x - h * slope)) / (2 * h)
    np.testing.assert_allclose(J @ slope, along, atol=tolerance * (1.0 + np.abs(slope).max()))
    if name == "bricard":
        return  # off the closed positions its redundant constraint becomes one of the others
    expected = np.array([(f(0.0, x + d) - f(0.0, x - d)) / (2 * h) for d in h * np.eye(len(x))])
    np.testing.assert_allclose(J, expected.T, atol=tolerance)


# ---------------------------------------------------------------------- sparse systems


def test_sparse_system_of_the_rrpr_loop_has_49_unknowns_less_those_that_never_act():
    """Four bodies and 24 − 4 + 5 constraints make 49; three of the loop's can never act."""
    sparse = SparseDynamics(rrpr())
    assert sparse.size == 49 - 3
    q, v = rrpr_state(rrpr())
    a = constrained_accelerations(rrpr(), q, v).accelerations
    np.testing.assert_allclose(sparse(q, v).accelerations, a, rtol=1e-12)


def test_sparse_system_of_trees_and_force_elements():
    """Every joint type, reversed or not, armature, friction; and springs between points."""
    rng = np.random.default_rng(2)
    for seed in (0, 1):
        model = mechanisms.random_tree(12, seed)
        q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
        a = mb.FD(model, q, v, tau)
        sparse = SparseDynamics(model)
        np.testing.assert_allclose(
            sparse(q, v, tau).accelerations, a, atol=1e-11 * (1 + np.abs(a).max())
        )
    model = mechanisms.puma560()
    q, v = model.random(rng), rng.standard_normal(6)
    np.testing.assert_allclose(SparseDynamics(model)(q, v).accelerations, mb.FD(model, q, v))
    model = mechanisms.governor()
    q, v = [0.3, 0.45, 0.5, 0.55], [6.0, 0.2, 0.1, -0.1]
    np.testing.assert_allclose(SparseDynamics(model)(q, v).accelerations, mb.FD(model, q, v))


def test_sparse_system_keeps_its_ordering_and_stabilises():
    entry = mechanisms.entry("spatial_slider_crank")
    model = entry.model()
    sparse = SparseDynamics(model)
    q, v = entry.start(model)
    sparse(q, v)
    order = sparse._order
    open_q, torn_v = q + np.array([0.0, 1e-3, 0.02, -0.01]), v + np.array([0.0, 0.1, 0.0, 0.2])
    for alpha in (0.0, 10.0):
        expected = constrained_accelerations(model, open_q, torn_v, alpha=alpha)
        found = sparse(open_q, torn_v, alpha=alpha)
        np.testing.assert_allclose(found.accelerations, expected.accelerations, rtol=1e-11)
        np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-10)
    assert sparse._order is order


def test_sparse_factors_of_a_ladder_grow_linearly():
    """§8.13: the factors have O(n) entries; H of the spanning tree has O(n²)."""
    entry = mechanisms.entry("ladder")
    factors, dense = [], []
    for n in (8, 16, 32):
        model = entry.model(n=n)
        q, v = entry.start(model)
        sparse = SparseDynamics(model)
        sparse(q, v)
        factors.append(sparse.factor_nonzeros)
        dense.append(np.count_nonzero(np.abs(mb.crba(model, q)) > 0.0))
    assert np.log2(factors[2] / factors[1]) < 1.1
    assert np.log2(factors[1] / factors[0]) < 1.1
    assert np.log2(dense[2] / dense[1]) > 1.8


# ---------------------------------------------------------------------- minimal coordinates


def test_minimal_coordinates_follow_the_full_ones():
    """(y, ẏ) of the RRPR loop against Baumgarte's full set, and no gap at all."""
    model = rrpr()
    closure = LoopClosure(model, rrpr_closure(), 2)
    problem = as_ivp_minimal(model, closure, Y, YDOT, (0.0, 1.0), traced=True)
    tight = dict(method="DOP853", rtol=1e-11, atol=1e-12)
    small = solve(problem, **tight)
    states = closure.states(small.y)
    q, v = rrpr_state(model)
    full = solve(as_ivp(model, q, v, (0.0, 1.0)), **tight)
    off = states[:, -1] - full.y[:, -1]
    off[1] = np.remainder(off[1] + np.pi, 2 * np.pi) - np.pi  # γ knows its angle up to turns
    np.testing.assert_allclose(off, 0.0, atol=1e-8)
    gaps = [np.abs(constraints(model, x[:4]).delta).max() for x in states.T]
    assert max(gaps) < 1e-14
    along = [problem.invariants["energy"](t, x) for t, x in zip(small.t, small.y.T)]
    assert np.ptp(along) < 1e-9


def test_minimal_coordinates_accept_derivatives_and_forces():
    model = rrpr()
    exact = LoopClosure(model, rrpr_closure(), 2)
    given = LoopClosure(model, rrpr_closure(), 2, G=exact.jacobian, g=exact.bias)
    tau = np.array([0.5, -0.3, 0.2, 0.1])
    x = np.concatenate([Y, YDOT])
    q, v = rrpr_state(model)
    a = constrained_accelerations(model, q, v, tau).accelerations
    for closure, traced in ((exact, True), (exact, False), (given, False)):
        problem = as_ivp_minimal(model, closure, Y, YDOT, tau=tau, traced=traced)
        np.testing.assert_allclose(problem.f(0.0, x, tau)[2:], a[[0, 3]], rtol=1e-12)
    with pytest.raises(ValueError, match="has 2 variables"):
        as_ivp_minimal(model, exact, [0.1], [0.0])
    with pytest.raises(ValueError, match="leaves a gap"):
        as_ivp_minimal(model, lambda y: [y[0], y[0], y[0], y[1]], Y, YDOT)


def geared_arm(rho1=-80.0, rho2=50.0):
    """§9.6: two links and their rotors, λ = (0, 0, 1, 1)."""
    b = mb.ModelBuilder(gravity=(0.0, -9.81, 0.0), name="geared arm")
    b.add_body("link1", 0, mb.Revolute(), inertia=mb.Inertia(2.0, (0.5, 0, 0), (0.1, 0.2, 0.3)))
    b.add_body("rotor1", 0, mb.Revolute(), (0.0, 0.1, 0.0), mb.cylinder(0.05, 0.1, mass=0.3))
    b.add_body("link2", "link1", mb.Revolute(), (1, 0, 0), mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    rotor = mb.cylinder(0.03, 0.1, mass=0.2)
    b.add_body("rotor2", "link1", mb.Revolute(), (0.4, 0.0, 0.0), rotor)
    model = b.build()
    return model, gears(model, {"rotor1": {"link1": rho1}, "rotor2": {"link2": rho2}})


def test_gears_as_a_closure_function():
    """Eq 9.27: the inertia matrix of the geared arm, and forces on the rotors."""
    rho1, rho2 = -80.0, 50.0
    model, closure = geared_arm(rho1, rho2)
    y, ydot = np.array([0.4, -0.9]), np.array([1.0, 2.0])
    q, G = closure.position(y), closure.jacobian(y)
    np.testing.assert_allclose(q, [0.4, rho1 * 0.4, -0.9, rho2 * -0.9])
    H = mb.crba(model, q)
    expected = np.array(
        [
            [H[0, 0] + rho1**2 * H[1, 1], H[0, 2] + rho2 * H[0, 3]],
            [H[0, 2] + rho2 * H[0, 3], H[2, 2] + rho2**2 * H[3, 3]],
        ]
    )
    np.testing.assert_allclose(G.T @ H @ G, expected, rtol=1e-14)
    tau = np.array([0.0, 0.2, 0.0, -0.1])
    problem = as_ivp_minimal(model, closure, y, ydot, (0.0, 1.0), tau=tau)
    C = mb.bias_forces(model, q, G @ ydot)
    a = np.linalg.solve(expected, G.T @ (tau - C))
    np.testing.assert_allclose(problem.f(0.0, np.concatenate([y, ydot]), tau)[2:], a, rtol=1e-12)
    # Inverse dynamics of gears (§8.12): the rotors' forces are unique, those of all joints not.
    load = G.T @ mb.ID(model, q, G @ ydot, G @ a)
    np.testing.assert_allclose(np.linalg.solve(G[[1, 3]].T, load), tau[[1, 3]], rtol=1e-10)


def test_a_light_rotor_on_the_joints_axis_is_an_armature():
    """With the rotor's axis in the joint and ρ → large, only ρ² I remains: the shortcut of §9.6."""
    rho, spin = 200.0, 1e-5
    rod = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
    b = mb.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    b.add_body("link", 0, mb.Revolute(), inertia=rod)
    b.add_body("rotor", 0, mb.Revolute(), inertia=mb.Inertia(0.1, I_com=(spin, spin, spin)))
    model = b.build()
    problem = as_ivp_minimal(model, gears(model, {"rotor": {"link": rho}}), [0.3], [1.0])
    b = mb.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    b.add_body("link", 0, mb.Revolute(), inertia=rod, armature=rho**2 * spin)
    a = mb.FD(b.build(), [0.3], [1.0])
    np.testing.assert_allclose(problem.f(0.0, np.array([0.3, 1.0]))[1:], a, rtol=1e-13)


def test_bad_gears_are_refused():
    model, _ = geared_arm()
    with pytest.raises(ValueError, match="in a circle"):
        gears(model, {"rotor1": {"rotor2": 2.0}, "rotor2": {"rotor1": 3.0}})
    chain = gears(model, {"rotor1": {"rotor2": 2.0}, "rotor2": {"link2": 3.0}})
    order = [model.number(name) - 1 for name in ("link1", "link2", "rotor1", "rotor2")]
    np.testing.assert_allclose(chain.jacobian([0.0, 0.0])[order], [[1, 0], [0, 1], [0, 6], [0, 3]])
    with pytest.raises(ValueError, match="one freedom"):
        gears(mechanisms.free_body(), {"body": {"body": 1.0}})
    with pytest.raises(ValueError, match="no body is named 'motor'"):
        gears(model, {"motor": {"link1": 2.0}})
    differential = gears(model, {"rotor2": {"link1": 0.5, "link2": 0.5, "rotor1": 0.25}})
    np.testing.assert_allclose(differential.position([1.0, 2.0, 4.0]), [1.0, 2.0, 4.0, 3.0])


# ---------------------------------------------------------------------- actuators


def test_example_8_2():
    """u = [[1/u2, u1/u2, 1, 0], [0, 0, 0, 1]] τ_ID for actuators on joints 3 and 4."""
    model = rrpr()
    closure = LoopClosure(model, rrpr_closure(), 2)
    y = np.array([0.8, -0.3])
    q, G = np.asarray(closure.position(y)), closure.jacobian(y)
    v, a = G @ YDOT, G @ [3.0, -4.0] + closure.bias(y, YDOT)
    u1, u2 = G[1, 0], G[2, 0]
    d = np.sqrt(1.25 - np.cos(0.8))
    assert u2 == pytest.approx(0.5 * np.sin(0.8) / d)
    tau = mb.ID(model, q, v, a)
    expected = np.array([[1 / u2, u1 / u2, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]) @ tau
    found = closed_loop_inverse_dynamics(model, q, v, a, ["B3", "B4"])
    assert found.actuators.kind == "fully actuated"
    np.testing.assert_allclose(found.forces, expected, rtol=1e-11)
    back = constrained_accelerations(model, q, v, found.tau).accelerations
    np.testing.assert_allclose(back, a, rtol=1e-11)


def test_classes_of_actuator_sets():
    model = rrpr()
    q, v = rrpr_state(model)
    assert actuators(model, q, ["B3", "B4"]).kind == "fully actuated"
    assert actuators(model, q, ["B4"]).kind == "under-actuated"
    assert actuators(model, q, ["B1", "B3", "B4"]).kind == "redundantly actuated"
    # Joint 4 is in no loop: nothing else can move it.
    both = actuators(model, q, ["B1", "B2", "B3"])
    assert both.kind == "under- and redundantly actuated"
    assert str(both).endswith("3 actuators command 1 of 2 degrees of freedom")
    # u2 = 0 at y1 = 0: joint 3 is at its end and cannot move joint 1.
    closure = LoopClosure(model, rrpr_closure(), 2)
    dead = np.asarray(closure.position([0.0, 0.4]))
    assert actuators(model, dead, ["B3", "B4"]).rank == 1
    a = constrained_accelerations(model, q, v).accelerations
    with pytest.raises(ValueError, match=r"cannot cause this motion: .* is left over"):
        closed_loop_inverse_dynamics(model, q, v, a + closure.jacobian(Y) @ [1.0, 0.0], ["B4"])
    # The motion without any actuator needs none, few as they are.
    np.testing.assert_allclose(
        closed_loop_inverse_dynamics(model, q, v, a, ["B4"]).forces, 0.0, atol=1e-12
    )


def test_redundant_actuators_need_weights():
    model = rrpr()
    q, v = rrpr_state(model)
    found = independent_coordinates(model, q, v)
    a = found.G @ np.array([1.0, 2.0]) + found.g
    sets = ["B1", "B3", "B4"]
    with pytest.raises(ValueError, match=r"redundantly actuated.*minimum norm"):
        closed_loop_inverse_dynamics(model, q, v, a, sets)
    least = closed_loop_inverse_dynamics(model, q, v, a, sets, weights="minimum norm")
    w = np.array([1.0, 25.0, 1.0])
    weighted = closed_loop_inverse_dynamics(model, q, v, a, sets, weights=w)
    assert abs(weighted.forces[1]) < abs(least.forces[1])
    # What the actuators can do against each other is orthogonal to the solution, by weight.
    silent = np.linalg.svd(found.G[[0, 2, 3]].T)[2][-1]
    assert abs(silent @ least.forces) < 1e-12
    assert abs(silent @ (w * weighted.forces)) < 1e-12
    for solution in (least, weighted):
        back = constrained_accelerations(model, q, v, solution.tau).accelerations
        np.testing.assert_allclose(back, a, rtol=1e-11)
    for bad in ([1.0, 2.0], [1.0, -1.0, 1.0], "heavy"):
        with pytest.raises(ValueError, match="weights: expected"):
            closed_loop_inverse_dynamics(model, q, v, a, sets, weights=bad)


def test_motions_that_tear_the_loop_are_refused():
    model = rrpr()
    q, v = rrpr_state(model)
    a = constrained_accelerations(model, q, v).accelerations
    off = np.array([0.0, 0.1, 0.0, 0.0])
    for state, what in (((q + off, v, a), "position"), ((q, v + off, a), "velocity"),
                        ((q, v, a + off), "acceleration")):  # fmt: skip
        with pytest.raises(ValueError, match=f"the {what} violates the loop constraint 5"):
            closed_loop_inverse_dynamics(model, *state, ["B3", "B4"])
    with pytest.raises(ValueError, match="at least one"):
        actuators(model, q, [])


def test_stewart_platform_is_held_by_its_legs():
    """At rest the six leg forces carry the weight of platform and upper legs."""
    entry = mechanisms.entry("free_stewart_platform")
    model = entry.model(leg_mass=1e-6)
    q, v = entry.start(model)
    legs = [f"leg{k}_upper" for k in range(1, 7)]
    found = closed_loop_inverse_dynamics(model, q, v, np.zeros(24), legs)
    assert found.actuators.kind == "fully actuated"
    axes = [mb.kinematics(model, q).poses[model.number(leg)].R[:, 2] for leg in legs]
    lift = sum(f * axis for f, axis in zip(found.forces, axes))
    np.testing.assert_allclose(lift, [0.0, 0.0, 20.0 * 9.81], atol=1e-3)
    np.testing.assert_allclose(found.forces, found.forces[0], rtol=1e-9)  # by symmetry


# ---------------------------------------------------------------------- loop joints as joints

SAMPLE_JOINTS = [
    mb.Revolute("x"), mb.Prismatic((1.0, -2.0, 0.5)), mb.Helical(0.2, "y"), mb.Cylindrical("-z"),
    mb.Planar((1.0, -2.0, 0.5)), mb.Spherical(), mb.Free(),
]  # fmt: skip


@pytest.mark.parametrize("joint", SAMPLE_JOINTS, ids=lambda j: j.kind)
def test_position_and_velocity_of_a_loop_joint(joint):
    rng = np.random.default_rng(8)
    model, X_P, X_S = tied_body(joint, rng)
    q_J, v_J = joint.random(rng), rng.standard_normal(joint.nv)
    turns = 4 * np.pi if joint.kind in ("revolute", "helical", "cylindrical", "planar") else 0.0
    q_J[0] += turns
    motion = joint.motion(q_J, v_J)
    X = X_S.inverse() * motion.X * X_P
    q = np.concatenate([mb.quaternions.from_matrix(X.E.T), X.r])
    v = X_S.inverse().matrix() @ motion.v
    state = loop_joint_state(model, q, v, "tie", reference=turns)
    np.testing.assert_allclose(state.velocity, v_J, atol=1e-13)
    assert np.abs(joint.difference(state.position, q_J)).max() < 1e-13
    # Power of an active force in the joint, by its own variables and by those of the tree.
    force = rng.standard_normal(joint.nv)
    tau = loop_joint_forces(model, q, {"tie": force})
    assert tau @ v == pytest.approx(force @ v_J, rel=1e-12)


def test_forces_in_loop_joints_are_checked():
    model = rrpr()
    q, v = rrpr_state(model)
    with pytest.raises(ValueError, match="no loop is named '6'"):
        loop_joint_forces(model, q, {"6": [1.0]})
    with pytest.raises(ValueError, match=r"expected 1 forces \(angle\)"):
        loop_joint_forces(model, q, {"5": [1.0, 2.0]})
    with pytest.raises(ValueError, match="stiffness ≥ 0"):
        loop_elements(model, [LoopElement("5", stiffness=-1.0)])
    with pytest.raises(ValueError, match="no loop has number 3"):
        loop_joint_state(model, q, v, 3)
    ball, _, _ = tied_body(mb.Spherical(), np.random.default_rng(0))
    with pytest.raises(ValueError, match="springs need angles or shifts"):
        loop_elements(ball, [LoopElement("tie", stiffness=1.0)])


def cut_four_bar(cut, **elements):
    """The same four-bar, cut open at joint C or at joint D; springs in C if it is in the tree."""
    b = mb.ModelBuilder(gravity=(0.0, -9.81, 0.0), name=f"cut at {cut}")
    for body, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5)):
        b.declare_body(body, mb.rod((0, 0, 0), (length, 0, 0), mass=length))
    b.add_joint("A", 0, "crank", mb.Revolute(), tree=True)
    b.add_joint("B", "crank", "coupler", mb.Revolute(), (1.0, 0, 0), tree=True)
    C = ("coupler", "rocker", mb.Revolute(), (2.0, 0, 0), (1.5, 0, 0))
    b.add_joint("C", *C, tree=cut != "C", **(elements if cut != "C" else {}))
    b.add_joint("D", 0, "rocker", mb.Revolute(), (2.2, 0, 0), tree=cut != "D")
    return b.build()


def test_springs_in_a_loop_joint_act_as_in_a_tree_joint():
    """One mechanism, two spanning trees: the spring at C is in the loop, or in the tree."""
    numbers = dict(stiffness=7.0, damping=0.6, rest=0.4)
    looped, treed = cut_four_bar("C"), cut_four_bar("D", **numbers)
    q = mb.assemble(looped, [0.9, -0.7, 0.8], fixed=["crank"]).q
    v = mb.consistent_velocity(looped, q, [2.0, 0.0, 0.0], fixed=["crank"])
    turn, rate = q[2] - q[0] - q[1], v[2] - v[0] - v[1]
    state = loop_joint_state(looped, q, v, "C")
    assert (state.position[0], state.velocity[0]) == pytest.approx((turn, rate))
    tau = loop_elements(looped, [LoopElement("C", **numbers)])
    a = constrained_accelerations(looped, q, v, tau(0.0, q, v)).accelerations
    other = constrained_accelerations(treed, [q[0], q[1], turn], [v[0], v[1], rate])
    np.testing.assert_allclose(other.accelerations[:2], a[:2], rtol=1e-11)
    # Traced with the model, and without friction energy includes the spring's.
    tau = loop_elements(looped, [LoopElement("C", stiffness=7.0, rest=0.4)])
    problem = as_ivp(looped, q, v, (0.0, 1.0), tau=tau, traced=True)
    s = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)

    def total(x):
        stretch = loop_joint_state(looped, x[:3], loop="C", reference=0.4).position[0] - 0.4
        return mb.energy(looped, x[:3], x[3:]).total + 3.5 * stretch**2

    assert np.ptp([total(x) for x in s.y.T]) < 1e-7


def bennett(builder, length, mass):
    """Bennett's linkage: four revolute joints, skew, that move although they should not."""
    twist, other = 0.6, 1.1
    long = length * np.sin(other) / np.sin(twist)

    def link(size, angle):
        c, s = np.cos(angle), np.sin(angle)
        return mb.Pose([[1, 0, 0], [0, c, -s], [0, s, c]], [size, 0, 0])

    def inertia(size):
        central = mass * size**2 * np.diag([1 / 50, 1 / 12, 1 / 12])
        return mb.CentralInertia(mass, [size / 2, 0.1 * length, 0], central)

    builder.add_body("b1", 0, mb.Revolute("z"), inertia=inertia(length))
    builder.add_body("b2", "b1", mb.Revolute("z"), link(length, twist), inertia(long))
    builder.add_body("b3", "b2", mb.Revolute("z"), link(long, other), inertia(length))
    ground = link(long, other).inverse()
    builder.add_loop("b4", "b3", 0, mb.Revolute("z"), link(length, twist), ground)


def heavy_four_bar(builder, mass):
    for name, parent, place, size, heavy in (
        ("crank", 0, (0, 9, 0), 1.0, mass),
        ("coupler", "crank", (1, 0, 0), 2.2, 2 * mass),
        ("rocker", 0, (2, 9, 0), 1.5, mass),
    ):
        rod = mb.rod((0, 0, 0), (size, 0, 0), mass=heavy)
        builder.add_body(name, parent, mb.Revolute("y"), place, rod)
    builder.add_loop("pin", "coupler", "rocker", mb.Revolute("y"), (2.2, 0, 0), (1.5, 0, 0))


@pytest.mark.parametrize(("length", "mass", "heavy"), [(0.02, 0.005, 100.0), (0.01, 1e-3, 1e4)])
def test_a_light_redundant_loop_does_not_disturb_a_heavy_one(length, mass, heavy):
    """Loops that do not touch: the heavy one accelerates as it does alone."""
    both, alone = mb.ModelBuilder(), mb.ModelBuilder()
    bennett(both, length, mass)
    heavy_four_bar(both, heavy)
    heavy_four_bar(alone, heavy)
    both, alone = both.build(), alone.build()
    q = mb.assemble(both, [0.8, -3.4, -0.8, -1.0, 0.6, -1.6], fixed=["b1", "crank"]).q
    v = mb.consistent_velocity(both, q, [3.0, 0, 0, 3.0, 0, 0], fixed=["b1", "crank"])
    assert mb.mobility(both, q).mobility == 2
    expected = mb.FD(alone, q[3:], v[3:])
    for found in (mb.FD(both, q, v), as_ivp(both, q, v).f(0.0, np.concatenate([q, v]))[6:]):
        np.testing.assert_allclose(found[3:], expected, rtol=1e-9)


def test_observed_multipliers_follow_the_parameters_of_the_run():
    model = mechanisms.four_bar()
    q, v = mechanisms.entry("four_bar").start(model)
    problem = as_ivp(model, q, v, (0, 0.5), tau=[0.0, 0.0, 0.0], stabilise="projection")
    push = np.array([30.0, 0.0, 0.0])
    options = dict(method="DOP853", rtol=1e-9, atol=1e-9)
    for run in (
        solve(problem, params=push, **options),
        solve(problem.with_(params=push), **options),
    ):
        end = constrained_accelerations(model, run.y[:3, -1], run.y[3:, -1], push)
        np.testing.assert_allclose(run.observed.multipliers[:, -1], end.multipliers, atol=1e-7)


@pytest.mark.parametrize("bad", [np.nan, -1.0, 0.0, 2.0])
def test_rank_tolerance_is_checked_everywhere(bad):
    model = mechanisms.four_bar()
    q, v = mechanisms.entry("four_bar").start(model)
    for call in (
        lambda: constrained_accelerations(model, q, v, rank_tolerance=bad),
        lambda: mb.mobility(model, q, rank_tolerance=bad),
        lambda: independent_coordinates(model, q, rank_tolerance=bad),
        lambda: actuators(model, q, ["crank"], rank_tolerance=bad),
        lambda: as_ivp(model, q, v, rank="truncate", rank_tolerance=bad),
    ):
        with pytest.raises(ValueError, match="rank_tolerance"):
            call()


@pytest.mark.parametrize("options", [{}, {"traced": False}, {"rank": "truncate"}])
def test_stabilisation_follows_time_when_a_run_is_turned_round(options):
    """There and back again with the same problem: Baumgarte must not drive the loops apart."""
    model = mechanisms.four_bar()
    q, v = mechanisms.entry("four_bar").start(model)
    problem = as_ivp(model, q, v, (0.0, 1.0), stabilise="baumgarte", **options)
    method = dict(method="RK4", step=0.01)
    there = solve(problem, **method)
    back = solve(problem, (1.0, 0.0), there.y[:, -1], **method)
    np.testing.assert_allclose(back.y[:, -1], problem.y0, atol=2e-4)  # errors of RK4, twice
    assert np.max(np.abs(back.observed.drift)) < 1e-4
