"""Loop joints: gaps, Jacobians and biases of every kind, and the worked loops of chapter 8."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody import (
    ModelBuilder,
    Plucker,
    Pose,
    constrained_accelerations,
    constraints,
    mechanisms,
    mobility,
)
from multibody.dynamics.loops.closed_loop import _pieces
from multibody.dynamics.loops.closure import LoopClosure
from multibody.dynamics.loops.constraints.joint_law import constraint_count
from multibody.dynamics.loops.independent import (
    independent_accelerations,
    independent_coordinates,
)
from multibody.joints import REGISTRY
from multibody.model.topology import Topology
from tests.multibody.joint_samples import SAMPLES

METHODS = ("lambda", "kkt", "projection")

LOOP_JOINTS = [
    pytest.param(joint, id=f"{kind}-{k}")
    for kind in REGISTRY
    for k, joint in enumerate(SAMPLES.get(kind, []))
    if joint.closure(0.0, np.eye(3), np.zeros(3), np.asarray(joint.parameters, float)) is not None
]


def random_pose(rng):
    rotation = mb.quaternions.to_matrix(mb.quaternions.normalise(rng.standard_normal(4)))
    return Pose(rotation, rng.uniform(-0.5, 0.5, 3))


def tied_body(joint, rng):
    """A floating body that a loop joint ties to the base, and the two placements."""
    b = ModelBuilder(name="tied body")
    b.add_body("body", 0, mb.Free(), inertia=mb.Inertia(1.5, (0.1, 0.2, -0.1), (0.2, 0.3, 0.4)))
    P, S = random_pose(rng), random_pose(rng)
    b.add_loop("tie", 0, "body", joint, P, S)
    return b.build(), P.to_plucker(), S.to_plucker()


def free_position(X):
    """Position of a Free joint with the transform X from base to body."""
    return np.concatenate([mb.quaternions.from_matrix(X.E.T), X.r])


# ---------------------------------------------------------------------- every joint


def test_every_registered_joint_is_tried():
    tried = {type(p.values[0]).kind for p in LOOP_JOINTS}
    # A user's joint closes loops only if it says when it is closed.
    assert tried >= set(REGISTRY) - {"user"}


@pytest.mark.parametrize("joint", LOOP_JOINTS)
def test_gap_vanishes_on_the_joints_own_manifold(joint):
    rng = np.random.default_rng(5)
    model, X_P, X_S = tied_body(joint, rng)
    assert len(constraints(model, model.neutral()).delta) == constraint_count(joint)
    for turns in (0.0, 3.0):
        q = joint.random(rng)
        if joint.kind in ("helical", "rack_pinion", "revolute"):
            q = q + 2 * np.pi * turns  # the thread goes on, so does the rack
        v, t = rng.standard_normal(joint.nv), 0.7
        motion = joint.motion(q, v, t)
        X = X_S.inverse() * motion.X * X_P
        v_body = X_S.inverse().matrix() @ motion.v
        c = constraints(model, free_position(X), v_body, t=t)
        # Products of a few rotations and shifts of size 1 to 20 m.
        np.testing.assert_allclose(c.delta, 0.0, atol=2e-14 * (1 + np.abs(X.r).max()))
        np.testing.assert_allclose(c.K @ v_body, c.nu, atol=1e-13 * (1 + np.abs(v_body).max()))


@pytest.mark.parametrize("joint", LOOP_JOINTS)
def test_rates_of_the_gap_are_exact_even_where_it_is_open(joint):
    """dδ/dt = K v − ν and d²δ/dt² = K v̇ − γ, against differences along a screw motion."""
    rng = np.random.default_rng(9)
    model, X_P, X_S = tied_body(joint, rng)
    motion = joint.motion(joint.random(rng), None, 0.3)
    X = X_S.inverse() * motion.X * X_P
    q = model.integrate(free_position(X), rng.uniform(-0.2, 0.2, 6))  # the loop is open now
    v, t = rng.standard_normal(6), 0.3
    holonomic = len(joint.closure(0.0, np.eye(3), np.zeros(3), joint.parameters))
    c = constraints(model, q, v, t=t)
    assert np.abs(c.delta).max(initial=1.0) > 1e-3

    def gap(s):
        return constraints(model, model.integrate(q, v, s), v, t=t + s)

    h = 1e-3
    ahead, behind = gap(h), gap(-h)
    far, back = gap(2 * h), gap(-2 * h)

    def slope(f):
        """Fourth-order difference: error h⁴/30 times the fifth derivative, about 1e-11."""
        return (8 * (f(ahead) - f(behind)) - (f(far) - f(back))) / (12 * h)

    np.testing.assert_allclose(
        slope(lambda x: x.delta)[:holonomic], (c.K @ v - c.nu)[:holonomic], atol=1e-8
    )
    # The body's v is constant along the motion: v̇ = 0.
    np.testing.assert_allclose(slope(lambda x: x.K @ v - x.nu), -c.gamma, atol=1e-7)


# ---------------------------------------------------------------------- the book's examples


def rrpr(l1=1.0, l2=0.5, swapped=False, shift=(0.0, 0.0, 0.0), gravity=(0.0, -9.81, 0.0)):
    """Figure 8.3: two hinged links, a slide on the second, held by the first; a fourth body."""
    b = ModelBuilder(gravity=gravity, name="RRPR")
    shift = np.asarray(shift, dtype=float)

    def lump(m, x, i):
        return mb.Inertia(m, (x, 0.1, 0.0), (i, i, 1.5 * i))

    b.add_body("B1", 0, mb.Revolute(), shift, lump(1.0, 0.3, 0.1))
    b.add_body("B2", 0, mb.Revolute(), shift + np.array([l1, 0.0, 0.0]), lump(0.8, 0.2, 0.05))
    b.add_body("B3", "B2", mb.Prismatic("x"), inertia=lump(0.5, 0.0, 0.02))
    b.add_body("B4", "B1", mb.Revolute(), (0.7, 0.0, 0.0), lump(0.6, 0.1, 0.03))
    ends = (("B3", (0.0, 0.0, 0.0)), ("B1", (l2, 0.0, 0.0)))
    (p, X_P), (s, X_S) = ends[::-1] if swapped else ends
    b.add_loop("5", p, s, mb.Revolute(), X_P, X_S)
    return b.build()


def rrpr_closure(l1=1.0, l2=0.5):
    def gamma(y):
        c, s = np.cos(y[0]), np.sin(y[0])
        d = np.sqrt(l1**2 + l2**2 - 2 * l1 * l2 * c)
        return [y[0], np.arctan2(l2 * s, l2 * c - l1), d, y[1]]

    return gamma


Y, YDOT = np.array([np.pi / 3, 0.4]), np.array([2.0, -1.0])


def rrpr_state(model, l1=1.0, l2=0.5):
    closure = LoopClosure(model, rrpr_closure(l1, l2), 2)
    return np.asarray(closure.position(Y)), closure.jacobian(Y) @ YDOT


def test_rrpr_ranks():
    """n = 4, n^c = 5, r = 2; the matrix of Eq 8.36 has rank n + r = 6."""
    model = rrpr()
    q, v = rrpr_state(model)
    report = mobility(model, q)
    found = (report.freedoms, report.constraints, report.rank, report.mobility)
    assert (*found, report.overconstraint) == (4, 5, 2, 2, 3)
    assert set(report.redundant) == {"5[0]", "5[1]", "5[4]"}
    _, H, c = _pieces(model, q, v, None, None, 0.0)
    system = np.block([[H, c.K.T], [c.K, np.zeros((5, 5))]])
    assert np.linalg.matrix_rank(system) == 6
    np.testing.assert_allclose(system, system.T, atol=0)
    assert np.linalg.eigvalsh(system).min() < 0 < np.linalg.eigvalsh(H).min()


def test_loop_closure_example_with_all_numbers():
    """§8.11 with l1 = 1, l2 = 0.5, y = π/3, ẏ = 2: θ2 = 5π/6, d = √3/2, u1 = 0, u2 = 0.5, …"""
    model = rrpr()
    closure = LoopClosure(model, rrpr_closure(), 2)
    np.testing.assert_allclose(
        closure.position(Y), [np.pi / 3, 5 * np.pi / 6, np.sqrt(3) / 2, 0.4], atol=1e-15
    )
    np.testing.assert_allclose(closure.jacobian(Y), [[1, 0], [0, 0], [0.5, 0], [0, 1]], atol=1e-15)
    u3 = (1.0 - 0.25) * 0.5 * np.sin(np.pi / 3) * 4.0 / (0.75) ** 2
    assert u3 == pytest.approx(2.3094011, abs=1e-7)
    np.testing.assert_allclose(closure.bias(Y, YDOT), [0.0, u3, 0.0, 0.0], atol=1e-14)
    closure.check(Y, YDOT)  # K G = 0 and K g = γ
    # G and g by elimination, with the same independent variables, are the same.
    q, v = rrpr_state(model)
    found = independent_coordinates(model, q, v, independent=["B1", "B4"])
    assert found.independent == (0, 3)
    np.testing.assert_allclose(found.G, closure.jacobian(Y), atol=1e-15)
    np.testing.assert_allclose(found.g, closure.bias(Y, YDOT), atol=1e-14)


def test_supplied_derivatives_of_a_closure_are_checked():
    model, gamma = rrpr(), rrpr_closure()
    exact = LoopClosure(model, gamma, 2)
    given = LoopClosure(model, gamma, 2, G=exact.jacobian, g=exact.bias)
    given.check(Y, YDOT)
    wrong = LoopClosure(model, gamma, 2, G=lambda y: 1.01 * exact.jacobian(y), g=exact.bias)
    with pytest.raises(ValueError, match="G of the loop-closure function differs"):
        wrong.check(Y, YDOT)
    wrong = LoopClosure(model, gamma, 2, G=exact.jacobian, g=lambda y, d: 0.0 * exact.bias(y, d))
    with pytest.raises(ValueError, match="g of the loop-closure function differs"):
        wrong.check(Y, YDOT)
    open_loop = LoopClosure(model, lambda y: [y[0], y[0], 0.5 + 0 * y[0], y[1]], 2)
    with pytest.raises(ValueError, match="leaves a gap"):
        open_loop.check(Y, YDOT)
    with pytest.raises(TypeError, match="both G and g"):
        LoopClosure(model, gamma, 2, G=exact.jacobian)
    with pytest.raises(ValueError, match=r"'body'.*derivatives of positions"):
        LoopClosure(mechanisms.free_body(), lambda y: y, 7)


@pytest.mark.parametrize("method", METHODS)
def test_swapping_predecessor_and_successor_changes_nothing(method):
    plain, swapped = rrpr(), rrpr(swapped=True)
    q, v = rrpr_state(plain)
    tau = [0.3, -0.2, 0.1, 0.4]
    found = [
        constrained_accelerations(m, q, v, tau, method=method).accelerations
        for m in (plain, swapped)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-12)


def test_a_distant_origin_costs_few_digits():
    """1e6 m away positions have 1e-10 m of rounding; accelerations must not lose more."""
    near, far = rrpr(), rrpr(shift=(1e6, -1e6, 0.0))
    q, v = rrpr_state(near)
    a = [constrained_accelerations(m, q, v).accelerations for m in (near, far)]
    np.testing.assert_allclose(a[1], a[0], rtol=1e-7)


def test_gap_decays_critically_damped():
    """δ(t) = δ₀ (1 + t/T) e^(−t/T) from rest with α = β = 1/T (Eq 8.27)."""
    model = rrpr(gravity=(0.0, 0.0, 0.0))
    q, _ = rrpr_state(model)
    q = q + np.array([0.0, 1e-4, 1.4e-4, 0.0])
    T, start = 0.1, constraints(model, q).delta
    assert 1e-4 < np.abs(start).max() < 2e-4

    def run(alpha):
        def f(t, x):
            a = constrained_accelerations(model, x[:4], x[4:], alpha=alpha).accelerations
            return np.concatenate([x[4:], a])

        times = [T, 3 * T, 5 * T]
        x0 = np.concatenate([q, np.zeros(4)])
        s = solve(f, (0.0, 5 * T), x0, method="DOP853", rtol=1e-10, atol=1e-13, tstops=times)
        keep = [int(np.argmin(np.abs(s.t - t))) for t in times]
        return np.array(times), np.array([constraints(model, x[:4]).delta for x in s.y.T[keep]])

    t, gaps = run(1 / T)
    # δ is differentiated exactly, so the law holds to the accuracy of the integration.
    expected = np.outer((1 + t / T) * np.exp(-t / T), start)
    np.testing.assert_allclose(gaps, expected, atol=1e-6 * np.abs(start).max())
    _, gaps = run(0.0)
    np.testing.assert_allclose(gaps, np.tile(start, (3, 1)), atol=1e-9 * np.abs(start).max())


# ---------------------------------------------------------------------- mobility and clusters


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("four_bar", (3, 5, 2, 1)),
        ("n_four_bar", (5, 10, 4, 1)),
        ("five_bar", (4, 5, 2, 2)),
        ("slider_crank", (3, 5, 2, 1)),
        ("bricard", (5, 5, 4, 1)),
        ("andrews", (7, 15, 6, 1)),
        ("spatial_slider_crank", (4, 3, 3, 1)),
        ("peaucellier", (7, 15, 6, 1)),
        ("scissor", (7, 15, 6, 1)),
        ("ladder", (8, 15, 6, 2)),
        ("free_stewart_platform", (24, 18, 18, 6)),
        ("delta_robot", (21, 18, 18, 3)),
    ],
)
def test_mobility_table(name, numbers):
    entry = mechanisms.entry(name)
    model = entry.model()
    report = mobility(model, entry.start(model)[0])
    found = (report.freedoms, report.constraints, report.rank, report.mobility)
    assert found == numbers
    assert len(report.redundant) == report.overconstraint


def test_mobility_jumps_at_a_singular_position():
    """§8.10: where all rods of an N-four-bar lie in one line, it has N + 1 freedoms."""
    for n in (1, 2, 4):
        model = mechanisms.n_four_bar(n)
        assert mobility(model, [1.0] * (n + 1) + [-1.0] * n).mobility == 1
        assert mobility(model, [0.0] * (2 * n + 1)).mobility == n + 1


def test_constraints_that_are_left_out_are_named_and_change_nothing():
    """Repair of an overconstrained loop: without the redundant rows, the same accelerations."""
    model = rrpr()
    q, v = rrpr_state(model)
    z, H, c = _pieces(model, q, v, None, None, 0.0)
    keep = [k for k, name in enumerate(c.names) if name not in mobility(model, q).redundant]
    K = c.K[keep]
    system = np.block([[H, K.T], [K, np.zeros((2, 2))]])
    a = np.linalg.solve(system, np.concatenate([z, c.gamma[keep]]))[:4]
    found = constrained_accelerations(model, q, v).accelerations
    np.testing.assert_allclose(a, found, rtol=1e-12)


def test_loop_clusters_of_figure_8_1():
    """20 bodies, four loops: clusters {1, 2} on joints 3–7, {3} on 10–12, {4} on 19–20."""
    parents = list(range(20))
    tree = Topology.from_parents(parents, loops=[(2, 5), (4, 7), (9, 12), (18, 20)])
    found = tree.loop_clusters()
    assert [c.loops for c in found] == [(1, 2), (3,), (4,)]
    assert [c.joints for c in found] == [(3, 4, 5, 6, 7), (10, 11, 12), (19, 20)]


def test_blocks_of_G_follow_the_clusters():
    """Two four-bars on a swinging carrier, and a pendulum outside of all loops."""
    b = ModelBuilder(gravity=(0.0, -9.81, 0.0), name="two loops")
    rod = mb.rod((0, 0, 0), (1.0, 0, 0), mass=1.0)
    b.add_body("carrier", 0, mb.Revolute(), inertia=rod)
    for name, x in (("a", 0.0), ("b", 5.0)):
        b.add_body(f"{name}1", "carrier", mb.Revolute(), (x, 0, 0), rod)
        b.add_body(f"{name}2", f"{name}1", mb.Revolute(), (1.0, 0, 0), rod)
        b.add_body(f"{name}3", "carrier", mb.Revolute(), (x + 1.0, 0, 0), rod)
        b.add_loop(name, f"{name}2", f"{name}3", mb.Revolute(), (1.0, 0, 0), (1.0, 0, 0))
    b.add_body("tail", "b3", mb.Revolute(), (1.0, 0, 0), rod)
    model = b.build()
    q = np.array([0.2, 0.9, -0.9, 0.9, 1.1, -1.1, 1.1, 0.5])
    v = mb.consistent_velocity(model, q, np.arange(1.0, 9.0))
    found = independent_coordinates(model, q, v)
    assert [block.loops for block in found.blocks] == [("a",), ("b",)]
    assert [block.columns for block in found.blocks] == [(1, 2, 3), (4, 5, 6)]
    assert found.rank == 4
    assert {0, 7} <= set(found.independent)
    # Zero outside of the blocks, the identity outside of the clusters.
    shape = np.zeros((8, 8), dtype=bool)
    for block in found.blocks:
        shape[np.ix_(block.columns, block.columns)] = True
    shape[0, 0] = shape[7, 7] = True
    assert not np.any(found.G[~shape[:, found.independent]])
    c = constraints(model, q, v)
    np.testing.assert_allclose(c.K @ found.G, 0.0, atol=1e-14)
    np.testing.assert_allclose(c.K @ found.g, c.gamma, atol=1e-12)
    np.testing.assert_allclose(found.G @ v[list(found.independent)], v, atol=1e-13)
    assert np.linalg.matrix_rank(found.G) == 4
    np.testing.assert_allclose(
        independent_accelerations(model, q, v),
        constrained_accelerations(model, q, v).accelerations,
        rtol=1e-12,
    )


def test_chosen_independent_coordinates_are_checked():
    model = rrpr()
    q, v = rrpr_state(model)
    for chosen in (["B1", "B4"], ["d(B3.shift)", "d(B4.angle)"], [2, 3]):
        np.testing.assert_allclose(
            independent_accelerations(model, q, v, independent=chosen),
            constrained_accelerations(model, q, v).accelerations,
            rtol=1e-11,
        )
    # u1 = 0 here: B2 does not move when B1 does, so it cannot drive it.
    with pytest.raises(ValueError, match="do not determine the motion"):
        independent_coordinates(model, q, v, independent=["B2", "B4"])
    with pytest.raises(ValueError, match="leave 1 degrees of freedom"):
        independent_coordinates(model, q, v, independent=["B1", "B3", "B4"])
    with pytest.raises(ValueError, match="no body is named 'B7'"):
        independent_coordinates(model, q, v, independent=["B7"])
    with pytest.raises(TypeError, match="places in v or names"):
        independent_coordinates(model, q, v, independent=[0.5])


# ---------------------------------------------------------------------- bad input


def test_a_loop_that_constrains_nothing_leaves_the_tree_alone():
    """K of rank zero: a hinge around a hinge's own axis, and a free joint without any rows."""
    b = ModelBuilder(name="hinge twice")
    b.add_body("rod", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (0, 0, -1), mass=1.0))
    b.add_loop("again", 0, "rod", mb.Revolute("y"))
    b.add_loop("nothing", 0, "rod", mb.Free())
    model = b.build()
    report = mobility(model, [0.4])
    assert (report.rank, report.mobility, report.constraints) == (0, 1, 5)
    for method in METHODS:
        found = constrained_accelerations(model, [0.4], [1.0], method=method)
        assert found.rank == 0
        free = mb.FD(model, [0.4], [1.0], method="aba")
        np.testing.assert_allclose(found.accelerations, free, rtol=1e-14)
        np.testing.assert_allclose(found.multipliers, 0.0, atol=0)
    assert solve(mb.as_ivp(model, [0.4], [1.0], (0, 0.1)), method="RK4", step=0.01).success


def test_a_model_without_loops_is_told_so():
    for call in (
        lambda m: constraints(m, [0.0]),
        lambda m: mobility(m, [0.0]),
        lambda m: constrained_accelerations(m, [0.0], [0.0]),
        lambda m: mb.assemble(m, [0.0]),
    ):
        with pytest.raises(
            ValueError,
            match=r"has no loops and no constraints; add one with ModelBuilder\.add_loop",
        ):
            call(mechanisms.pendulum())
    with pytest.raises(ValueError, match="no loops to stabilise"):
        mb.as_ivp(mechanisms.pendulum(), [0.0], [0.0], stabilise="baumgarte")


def test_bad_options_are_refused_with_numbers():
    model = rrpr()
    q, v = rrpr_state(model)
    with pytest.raises(ValueError, match="alpha ≥ 0 and beta ≥ 0, received -1"):
        constrained_accelerations(model, q, v, alpha=-1.0)
    with pytest.raises(ValueError, match=r"alpha must not be negative: .* got -2"):
        mb.as_ivp(model, q, v, alpha=-2.0)
    with pytest.raises(ValueError, match="T_stab must be positive, got 0"):
        mb.as_ivp(model, q, v, T_stab=0.0)
    with pytest.raises(ValueError, match="alpha and beta, or T_stab, not both"):
        mb.as_ivp(model, q, v, T_stab=0.1, alpha=3.0)
    with pytest.raises(ValueError, match="a multiple of the step size; give step"):
        mb.as_ivp(model, q, v, T_stab="auto")
    with pytest.raises(ValueError, match="takes no T_stab"):
        mb.as_ivp(model, q, v, stabilise="none", T_stab=0.1)
    with pytest.raises(ValueError, match="stabilise: expected one of"):
        mb.as_ivp(model, q, v, stabilise="glue")
    with pytest.raises(ValueError, match="rank: expected one of"):
        mb.as_ivp(model, q, v, rank="guess")
    with pytest.raises(ValueError, match="method: expected one of"):
        constrained_accelerations(model, q, v, method="magic")
    off = np.array([0.0, 0.1, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"rate of the gap of .*consistent_velocity"):
        mb.as_ivp(model, q, v + off)
    with pytest.raises(ValueError, match=r"has a gap of .*assemble"):
        mb.as_ivp(model, q + off, v)
    with pytest.raises(ValueError, match="multipliers: expected 5 numbers"):
        mb.loop_forces(model, q, [1.0, 2.0])


def test_a_user_joint_without_closure_cannot_close_a_loop():
    b = ModelBuilder()
    b.add_body("rod", 0, mb.Revolute(), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    b.add_loop("curve", 0, "rod", SAMPLES["user"][0])
    with pytest.raises(ValueError, match="does not say when it is closed"):
        constraints(b.build(), [0.0])


def test_plucker_helper_is_consistent():
    """`free_position` of a transform gives that transform back."""
    rng = np.random.default_rng(1)
    X = random_pose(rng).to_plucker()
    b = ModelBuilder()
    b.add_body("body", 0, mb.Free(), inertia=mb.sphere(0.1, mass=1.0))
    place = mb.kinematics(b.build(), free_position(X)).poses[1]
    np.testing.assert_allclose(place.R, X.E.T, atol=1e-15)
    assert isinstance(X, Plucker)


def test_automatic_time_constant_is_ten_steps():
    model = rrpr()
    q, v = rrpr_state(model)
    x = np.concatenate([q, v]) + 0.01  # a little open
    auto = mb.as_ivp(model, q, v, T_stab="auto", step=0.003)
    given = mb.as_ivp(model, q, v, T_stab=0.03)
    np.testing.assert_allclose(auto.f(0.0, x), given.f(0.0, x), rtol=1e-14)
    assert np.abs(auto.f(0.0, x) - mb.as_ivp(model, q, v).f(0.0, x)).max() > 1.0


def driven_crank_rocker():
    """A four-bar whose crank, in the tree, turns as −1 − 4t; and the same with a motor."""
    rods = {name: mb.rod((0, 0, 0), (length, 0, 0), mass=length)
            for name, length in (("crank", 0.3), ("coupler", 0.9), ("rocker", 0.7))}  # fmt: skip
    models = []
    for drive_in_tree in (True, False):
        motor = mb.Driven(mb.Revolute("y"), lambda t: [-1.0 - 4.0 * t])
        b = mb.ModelBuilder()
        b.add_body("crank", 0, motor if drive_in_tree else mb.Revolute("y"), inertia=rods["crank"])
        b.add_body("coupler", "crank", mb.Revolute("y"), (0.3, 0, 0), rods["coupler"])
        b.add_body("rocker", 0, mb.Revolute("y"), (1.0, 0, 0), rods["rocker"])
        b.add_loop("pin", "coupler", "rocker", mb.Revolute("y"), (0.9, 0, 0), (0.7, 0, 0))
        if not drive_in_tree:
            b.add_loop("motor", 0, "crank", motor)
        models.append(b.build())
    return models


def test_drives_in_the_tree_move_the_loops():
    """The velocity that a drive gives to a loop is in ν, and the motion is that of a motor."""
    driven, motor = driven_crank_rocker()
    q = mb.assemble(driven, [0.5, -2.0]).q
    e = 1e-6
    rate = (mb.assemble(driven, q, t=e).q - mb.assemble(driven, q, t=-e).q) / (2 * e)
    v = mb.consistent_velocity(driven, q, [0.0, 0.0])
    np.testing.assert_allclose(v, rate, rtol=1e-8)
    slope = (mb.constraints(driven, q, t=e).delta - mb.constraints(driven, q, t=-e).delta) / (2 * e)
    np.testing.assert_allclose(mb.constraints(driven, q, [0.3, 0.1]).nu, -slope, atol=1e-8)
    options = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-10}
    ours = solve(mb.as_ivp(driven, q, v, (0.0, 2.0)), **options)
    x = np.concatenate([[-1.0], q])
    u = mb.consistent_velocity(motor, x, [-4.0, *v])
    theirs = solve(mb.as_ivp(motor, x, u, (0.0, 2.0)), **options)
    np.testing.assert_allclose(ours.y[:2, -1], theirs.y[1:3, -1], rtol=1e-7)
    np.testing.assert_allclose(ours.y[2:, -1], theirs.y[4:, -1], rtol=1e-6)
    assert ours.observed.velocity_drift.max() < 1e-6
    for formulation, method in (("index1", "DOP853"), ("projected", "DOP853"), ("ggl", "RADAU5")):
        problem = mb.as_dae(driven, q, v, (0.0, 2.0), formulation=formulation)
        run = solve(problem, method=method, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(run.y[:4, -1], ours.y[:, -1], rtol=1e-4)
