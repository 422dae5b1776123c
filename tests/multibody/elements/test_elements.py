"""Elements against closed forms, against each other, and drawn at random with everything else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import multibody as mb
from integrators import solve, solve_many
from integrators.dae import FORMULATIONS
from multibody.dynamics.acting import acting
from multibody.elements import NamedElement

TIGHT = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13}


def cart(*elements, mass=2.0, gravity=(0, 0, 0)):
    b = mb.ModelBuilder(gravity=gravity, name="cart")
    b.add_body("cart", 0, mb.Prismatic("x"), inertia=mb.point_mass(mass))
    for k, element in enumerate(elements):
        b.add_element(f"e{k}", element)
    return b.build()


def linear_end(A, b, y0, t):
    """End of y' = A y + b."""
    n = len(y0)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n], M[:n, n] = A, b
    return (expm(M * t) @ [*y0, 1.0])[:n]


def end(model, q0, v0, t, **options):
    return solve(mb.as_ivp(model, q0, v0, (0.0, t)), **{**TIGHT, **options}).y[:, -1]


def test_motor_is_a_linear_system():
    R, L, k, n, u, m = 1.2, 0.1, 0.5, 3.0, 6.0, 2.0
    model = cart(mb.DCMotor("cart", u, R, L, k, ratio=n))
    A = [[0, 0, 1], [0, -R / L, -k * n / L], [0, n * k / m, 0]]
    expected = linear_end(A, [0, u / L, 0], [0.1, 0.0, 0.2], 1.5)
    assert np.allclose(end(model, [0.1], [0.2], 1.5), expected, rtol=1e-9, atol=1e-10)


def test_warm_motor_has_more_resistance():
    warm = mb.DCMotor("cart", 6.0, 1.2, 0.1, 0.5, 1.0, 5.0, 2.0, 0.004)
    model = cart(warm)
    assert model.q_names == ("cart.shift", "e0.current", "e0.temperature")
    run = solve(mb.as_ivp(model, [0.0], [0.0], (0, 3)), **TIGHT)
    rate = mb.FD_x(model, run.y[:, -1])
    i, T = run.y[1:3, -1]
    R = 1.2 * (1 + 0.004 * T)
    assert np.isclose(rate[2], (R * i**2 - T / 2.0) / 5.0)
    assert np.isclose(rate[1], (6.0 - R * i - 0.5 * run.y[3, -1]) / 0.1)


def test_pid_and_filter_are_linear_systems():
    kp, ki, kd, m, T = 30.0, 20.0, 8.0, 2.0, 0.2
    model = cart(
        mb.PID("cart", 1.0, kp, ki, kd, acts=False), mb.FirstOrderFilter("e0", T, 0.3, "cart")
    )
    # y = (x, integral, filter, v)
    A = np.array(
        [[0, 0, 0, 1], [-1, 0, 0, 0], [-kp / T, ki / T, -1 / T, -kd / T], [0, 0, 1 / m, 0]]
    )
    expected = linear_end(A, [0, 1, kp / T, 0], [0.0, 0.0, 0.3, 0.0], 2.0)
    assert np.allclose(end(model, [0.0], [0.0], 2.0), expected, rtol=1e-9, atol=1e-10)


def test_integral_stands_still_at_the_limit():
    model = cart(mb.PID("cart", 10.0, 5.0, 1.0, 0.0, limit=2.0))
    x = end(model, [0.0], [0.0], 1.0)
    assert x[1] == 0.0
    assert np.isclose(x[0], 0.5)


def test_cylinder_is_a_spring_of_oil():
    A, s, V0, E, m = 1e-3, 1.0, 1e-4, 1e6, 2.0
    model = cart(mb.HydraulicCylinder("cart", 0.0, A, A, s, V0, E, pressure=2e5))
    q0 = [0.5]
    eps = 1e-5  # small: pressures change by ∓E A x/V
    run = solve(mb.as_ivp(model, q0, [eps], (0, 0.2)), **TIGHT)
    omega = np.sqrt(2 * E * A**2 / (V0 + A * 0.5) / m)
    assert np.isclose(run.y[3, -1], eps * np.cos(omega * 0.2), rtol=1e-4)
    ledger = mb.energy_ledger(model, replace_dense(model, q0, [eps], 0.2))
    assert np.abs(ledger.balance).max() < 1e-12 * 2e5


def replace_dense(model, q0, v0, t):
    return solve(mb.as_ivp(model, q0, v0, (0, t)), dense_output=True, **TIGHT)


@pytest.fixture(scope="module")
def two_bodies():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((6, 6))
    K = 40 * np.eye(6) + 3 * (A @ A.T)
    b = mb.ModelBuilder(name="two")
    for name in ("a", "b"):
        b.add_body(name, 0, mb.Free(), inertia=mb.box(mass=1.5, size=(0.3, 0.5, 0.7)))
    bush = mb.Bushing("a", (0.1, 0.2, 0.3), "b", (-0.2, 0.1, 0.0), K)
    b.add_element("bush", bush)
    rope = mb.SpringLaw("a", (0, 0.1, 0), "b", (0, 0, 0.3), lambda x, u: 4 * x**3 + 0.2 * u)
    b.add_element("rope", rope)
    return b.build()


def test_bushing_is_conservative_and_acts_equally_on_both(two_bodies):
    model, rng = two_bodies, np.random.default_rng(3)
    q, v = model.random(rng), rng.standard_normal(12)
    acted = acting(model, 0.0, q, v)
    for name in ("bush", "rope"):
        wrenches = acted.wrenches(name)
        assert np.abs(wrenches).max() > 1.0
        assert np.abs(wrenches.sum(axis=0)).max() < 1e-12 * np.abs(wrenches).max()
    # What the bushing gives to the bodies it takes from its store.
    h = 1e-5
    ahead, behind = (
        acting(model, 0.0, model.integrate(q, v, s), v).parts["bush"].energy for s in (h, -h)
    )
    velocities = mb.kinematics(model, q, v)
    power = 0.0
    for i, wrench in enumerate(acted.wrenches("bush"), start=1):
        pose, speed = velocities.poses[i], velocities.velocities[i]
        omega = pose.R @ speed[:3]
        power += wrench[:3] @ omega + wrench[3:] @ (pose.R @ speed[3:] + np.cross(pose.p, omega))
    assert abs(power) > 1.0
    assert np.isclose(power, -(ahead - behind) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("traced", [False, True])
def test_a_bushing_turns_through_half_a_turn(traced):
    """About one axis the couple is −k sin φ, at half a turn as well, where it was NaN."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("rotor", 0, mb.Revolute((1, 2, 2)), inertia=mb.Inertia(1.0, (0, 0, 0), (2, 2, 2)))
    b.add_element("mount", mb.Bushing(0, (0, 0, 0), "rotor", (0, 0, 0), [5.0] * 3 + [9.0] * 3))
    model = b.build()
    f = mb.as_ivp(model, traced=traced).f
    for angle in (0.4, 3.0, np.pi - 1e-9, np.pi, np.pi + 1e-9, 4.0, -np.pi):
        assert abs(f(0.0, np.array([angle, 1.0]))[1] + 2.5 * np.sin(angle)) < 1e-14


def test_elements_that_run_in_python_unasked_are_told(caplog):
    b = mb.ModelBuilder(name="crowd")
    for k in range(41):
        b.add_body(f"ball {k}", 0, mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball 3", mb.Ball(0.1), law=mb.HuntCrossley(1e4))
    model = b.build()
    mb.as_ivp(model, traced=False)
    assert not caplog.messages
    mb.as_ivp(model)
    assert "traced=True" in caplog.messages[0]


def test_bushing_keeps_momentum(two_bodies):
    model = replace(two_bodies, gravity=(0, 0, 0))
    rng = np.random.default_rng(1)
    q, v = model.random(rng), rng.standard_normal(12)
    run = solve(mb.as_ivp(model, q, v, (0, 0.2)), **TIGHT)
    before, after = (
        np.concatenate([np.ravel(x) for x in mb.momentum(model, y[:14], y[14:])])
        for y in (run.y[:, 0], run.y[:, -1])
    )
    assert np.allclose(before, after, atol=1e-9)


def test_friction_slows_as_it_should():
    model = cart(mb.Friction("cart", coulomb=3.0, viscous=0.0, slip_speed=1e-9))
    x = end(model, [0.0], [2.0], 1.0, method="RADAU5", rtol=1e-8)
    assert np.isclose(x[1], 2.0 - 1.5, atol=1e-7)
    stribeck = mb.Friction("cart", 2.0, 5.0, 0.5, 0.1)
    for v in (0.02, 0.3):
        force = acting(cart(stribeck), 0.0, [0.0], [v]).joint_forces()[0]
        assert np.isclose(force, -0.5 * v - (2 + 3 * np.exp(-((v / 0.1) ** 2))))


def test_bristles_bend_and_then_slip():
    model = cart(mb.BristleFriction("cart", 2.0, 3.0, stiffness=1e4, damping=50.0))
    pulled = mb.as_ivp(model, [0.0], [0.0], (0, 1), tau=lambda t, q, v: np.array([1.2]))
    held = solve(pulled, method="RADAU5", rtol=1e-8, atol=1e-12).y[:, -1]
    assert abs(held[1] - 1.2e-4) < 1e-9  # what the bristles hold by
    assert abs(held[0]) < 1e-3
    assert abs(held[2]) < 1e-5
    pulled = mb.as_ivp(model, [0.0], [0.0], (0, 1), tau=lambda t, q, v: np.array([3.5]))
    assert solve(pulled, method="RADAU5", rtol=1e-8, atol=1e-12).y[2, -1] > 0.3


def test_a_bearing_rubs_as_much_as_it_carries():
    """A falling rod: its pin's reaction and its acceleration from Newton's equations by hand."""
    mass, mu, radius, angle, speed = 2.0, 0.3, 0.1, 0.7, 1.3
    b = mb.ModelBuilder(name="rod")
    b.add_body("rod", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (0, 0, -1), mass=mass))
    b.add_element("pin", mb.BearingFriction("rod", mu, radius))
    weight = np.array([0.0, 0.0, -9.81 * mass])
    centre = np.array([-0.5 * np.sin(angle), 0.0, -0.5 * np.cos(angle)])
    omega = np.array([0.0, speed, 0.0])

    def torque_left(a):
        moving = np.cross([0.0, a, 0.0], centre) + np.cross(omega, np.cross(omega, centre))
        reaction = mass * moving - weight
        rubs = mu * radius * np.linalg.norm(reaction)
        return mass / 3.0 * a - np.cross(centre, weight)[1] + rubs

    found = mb.FD_x(b.build(), [angle, speed])[1]
    assert found == pytest.approx(brentq(torque_left, -50.0, 50.0, xtol=1e-14), rel=1e-12)


def test_bearings_of_a_loop_keep_the_books_and_agree_among_formulations():
    entry = mb.mechanisms.entry("slider_crank")
    guide = NamedElement("guide", mb.BearingFriction("slider", 0.2))
    pin = NamedElement("pin", mb.BearingFriction("pin", 0.1, 0.02))
    model = replace(entry.model(), elements=(guide, pin))
    start = entry.start(model)
    first = mb.as_ivp(model, *start, (0.0, 0.3))
    second = mb.as_dae(model, *start, (0.0, 0.3), formulation="projected")
    runs = [solve(p, method="DOPRI5", rtol=1e-9, atol=1e-11) for p in (first, second)]
    assert np.abs(runs[0].y[:, -1] - runs[1].y[:, -1]).max() < 1e-6
    untraced = mb.as_ivp(model, *start, (0.0, 0.3), traced=False)
    for t, x in zip(runs[0].t[::40], runs[0].y.T[::40]):
        slow = untraced.rhs(t, x)
        assert np.abs(first.rhs(t, x) - slow).max() < 1e-12 * np.abs(slow).max()
    short = solve(first.with_(t_span=(0.0, 0.02)), method="DOPRI5", rtol=1e-8, atol=1e-10)
    ledger = mb.energy_ledger(model, short)
    assert ledger.work["elements"][-1] < -1e-6
    assert np.abs(ledger.balance).max() < 1e-7
    with pytest.raises(ValueError, match="'guide' feels the reaction"):
        mb.as_ivp(model, *start, (0.0, 1.0), tau=[1.0, 0.0, 0.0])


@pytest.mark.parametrize("traced", [True, False])
def test_friction_that_locks_ends_the_run_and_says_so(traced):
    """A block that a spinning lever presses against its guide: Painlevé's paradox."""
    b = mb.ModelBuilder(gravity=(0, 0, 0), name="wedged")
    b.add_body("block", 0, mb.Prismatic("x"), inertia=mb.point_mass(0.1))
    b.add_body("lever", "block", mb.Revolute("y"), inertia=mb.point_mass(1.0, (0.7, 0, 0.7)))
    b.add_element("guide", mb.BearingFriction("block", 1.5))
    model = b.build()
    problem = mb.as_ivp(model, [0.0, -2.0], [1.0, 2.0], (0.0, 2.0), traced=traced)
    run = solve(problem, max_steps=None if traced else 1000)  # enough to get there
    assert not run.success
    assert run.t[-1] == pytest.approx(0.141, abs=1e-3)
    assert "friction of 'guide' grows" in run.message
    with pytest.raises(ValueError, match="initial state: friction of 'guide' grows"):
        mb.as_ivp(model, [0.0, 0.0], [1.0, 2.0], (0.0, 2.0), traced=traced)


def test_a_wheel_rolls_out_under_what_it_carries():
    """A disc upright on the ground: m v̇ (1 + ½) = −f m g/r, whatever its mass."""
    radius, arm, mass = 0.5, 0.01, 3.0
    b = mb.ModelBuilder(name="disc")
    disc = mb.Inertia(mass, (0, 0, 0), mass * radius**2 * np.array([0.25, 0.5, 0.25]))
    b.add_body("disc", 0, mb.Free(), inertia=disc)
    b.add_loop("ground", 0, "disc", mb.RollingDisc(radius))
    b.add_element("tyre", mb.RollingResistance("disc", arm, "ground"))
    model = b.build()
    q = model.neutral()
    q[6] = radius
    v = np.array([0.0, 2.0 / radius, 0.0, 2.0, 0.0, 0.0])
    a = mb.FD_x(model, np.concatenate([q, v]))[model.nq :]
    assert a[3] == pytest.approx(-arm * 9.81 / radius / 1.5, rel=1e-5)  # slip_speed is smoothed


def test_dry_friction_sticks_exactly():
    """Two masses on springs, each loses 2F/k of its swing at each turn, until it sticks."""
    b = mb.ModelBuilder(gravity=(0, 0, 0), name="two")
    for name, k, F in (("a", 1.0, 1.0), ("b", 4.0, 2.0)):
        b.add_body(name, 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0), stiffness=k)
        b.add_element(f"floor {name}", mb.Friction(name, coulomb=F))
    problem = mb.stick_slip(b.build(), [5.3, 2.2], [0.0, 0.0], (0, 12))
    run = solve(problem, rtol=1e-10, atol=1e-12)
    assert np.allclose(run.y[:, -1], [0.7, 0.2, 0.0, 0.0], atol=1e-9)  # 5.3 − 2·3 …, 2.2 − 1·2
    starts = [stay.start for stay in run.modes]
    assert min(abs(t - 3 * np.pi) for t in starts) < 1e-8
    assert min(abs(t - np.pi) for t in starts) < 1e-8  # b turns every π/2
    with pytest.raises(ValueError, match="expected elements Friction"):
        mb.stick_slip(mb.mechanisms.pendulum())


def test_stiction_holds_an_arm_that_coulomb_would_not():
    b = mb.ModelBuilder(name="arm")
    b.add_body("arm", 0, mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)))
    b.add_element("hinge", mb.Friction("arm", coulomb=2.0, stiction=6.0, stribeck_speed=0.1))
    model = b.build()
    for angle, held in ((0.6, True), (0.7, False)):  # 9.81 sin: 5.54 and 6.32
        run = solve(mb.stick_slip(model, [angle], [0.0], (0, 3)), rtol=1e-9, atol=1e-11)
        assert (abs(run.y[0] - angle).max() < 1e-9) == held
        assert run.y[1, -1] == 0.0 or abs(run.y[1, -1]) < 1e-9


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.07, 0.1, 0.13])
def test_sampled_pid_is_the_discrete_solution(delay):
    m, h, kp, ki, kd, T = 2.0, 0.05, 30.0, 2.0, 8.0, 1.52
    model = cart(mb.SampledPID("cart", 1.0, h, kp, ki, kd, delay), mass=m)
    run = solve(mb.as_ivp(model, [0.0], [0.0], (0, T)), rtol=1e-9)
    names = list(run.problem.state_names)
    found = run.y[[names.index("cart.shift"), names.index("d(cart.shift)")], -1]
    ks = range(int(T / h) + 1)
    instants = [(k * h, 1, k) for k in ks] + [(k * h + delay, 0 if delay else 2, k) for k in ks]
    t = x = v = u = total = 0.0
    last, us = None, {}
    for s, what, k in sorted(i for i in instants if i[0] <= T):
        x, v, t = x + v * (s - t) + u / m * (s - t) ** 2 / 2, v + u / m * (s - t), s
        if what == 1:
            e = 1.0 - x
            total += e * h
            us[k] = kp * e + ki * total + (0.0 if last is None else kd * (e - last) / h)
            last = e
        else:
            u = us[k]
    x, v = x + v * (T - t) + u / m * (T - t) ** 2 / 2, v + u / m * (T - t)
    assert np.allclose(found, [x, v], atol=1e-13)


def test_sampled_goes_on_from_any_time_and_in_families():
    def make(kp=30.0):
        return cart(mb.SampledPID("cart", 1.0, 0.05, kp, 0.0, 8.0, 0.02))

    problem = mb.as_ivp(make(), [0.0], [0.0], (0, 1))
    whole = solve(problem).y[:, -1]
    half = solve(problem, t_span=(0, 0.43)).y[:, -1]
    assert np.allclose(solve(problem, t_span=(0.43, 1), y0=half).y[:, -1], whole, atol=1e-12)
    late = solve(problem, t_span=(7.01, 8))
    assert len(late.t_events[0]) == 20  # 7.05, …, 8.00
    family = mb.ModelFamily(make, ["kp"])
    rows = family.parameters([[20.0], [30.0]]).p
    many = solve_many(family.problem([0.0], [0.0], (0, 1)), params=rows)
    assert np.allclose(many.y[1], whole, atol=1e-12)
    assert abs(many.y[0, 0] - whole[0]) > 1e-3
    with pytest.raises(ValueError, match="backwards"):
        solve(problem, t_span=(1, 0))
    with pytest.raises(mb.StructureError, match="more than numbers"):
        mb.ModelFamily(lambda h=0.1: cart(mb.SampledPID("cart", 1.0, h, 1.0)), ["h"])


def test_own_sampled_law_may_branch():
    def bang(here, memory):
        q, _ = here.joint("cart")
        return (1.0 if q[0] < 0.5 else -1.0), [memory[0] + 1]

    run = solve(mb.as_ivp(cart(mb.SampledLaw(bang, 0.1, 0.0, "cart", ("n",))), t_span=(0, 5.05)))
    assert run.y[1, -1] == 51.0


def test_tables():
    t, x = np.array([0.0, 1.0, 1.5, 4.0]), np.array([1.0, -2.0, 0.5, 3.0])
    at = np.linspace(-1, 5, 61)
    from scipy.interpolate import CubicSpline

    clipped = np.clip(at, 0, 4)
    linear = mb.Table(t, x)
    assert np.allclose([linear(s) for s in at], np.interp(at, t, x))
    assert np.allclose([mb.Table(t, x, "spline")(s) for s in at], CubicSpline(t, x)(clipped))
    hold = x[np.clip(np.searchsorted(t, at, "right") - 1, 0, 3)]
    assert np.allclose([mb.Table(t, x, "hold")(s) for s in at], hold)
    model = cart(mb.PointForce("cart", (0, 0, 0), (0.0, 0, 0)), mb.FirstOrderFilter(linear, 0.5))
    run = solve(mb.as_ivp(model, [0.0], [0.0], (0, 3)), rtol=1e-6)
    assert {1.0, 1.5} <= set(run.t.tolist())


def test_table_from_file(tmp_path):
    file = tmp_path / "u.csv"
    file.write_text("# volts\nt,u,i\n0,0,1\n1,6,2\n\n2,4,3\n")
    assert mb.Table.from_file(file, "u")(0.5) == 3.0
    assert mb.Table.from_file(file, 2, "t")(2.0) == 3.0
    with pytest.raises(ValueError, match="there are t, u, i"):
        mb.Table.from_file(file, "v")
    file.write_text("0,0\n1,x\n")
    with pytest.raises(ValueError, match="of row 2"):
        mb.Table.from_file(file)


# ---------------------------------------------------------------------- combinations


@dataclass(frozen=True)
class Mixed(mb.Element):
    """Everything that an element can do at once."""

    body: str
    joint: str
    k: float = 3.0
    states = ("s", "r")

    def act(self, here):
        x, u = here.point(self.body, (0.1, 0.2, 0.3))
        here.push(self.body, -self.k * (x + 0.3 * u), (0.1, 0.2, 0.3), 0.1 * u)
        _q, v = here.joint(self.joint)
        here.push_joint(self.joint, -0.7 * v + 0.2 * here.z[1])
        here.rates([np.sin(v[0]) - here.z[0] * u[0], here.z[0] + np.cos(here.t)])
        here.energy(0.5 * self.k * (x @ x))
        here.output("u", here.z[0] + x[0])


def with_mixed(name):
    entry = mb.mechanisms.entry(name)
    model = entry.model()
    last = model.bodies[-1].name
    joint = model.loops[0].name if model.loops else last
    return replace(model, elements=(NamedElement("mix", Mixed(last, joint)),)), entry.start(model)


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar", "heavy_top", "slider_crank"])
def test_traced_untraced_jacobian_ledger(name):
    model, (q0, v0) = with_mixed(name)
    fast = mb.as_ivp(model, q0, v0, (0, 0.3))
    slow = mb.as_ivp(model, q0, v0, (0, 0.3), traced=False)
    assert hasattr(fast.f, "machine_code")
    assert not hasattr(slow.f, "machine_code")
    rng = np.random.default_rng(2)
    y = fast.y0 + 0.1 * rng.standard_normal(fast.n)
    nq = model.nq
    y[:nq] = model.normalise(y[:nq])
    f = fast.f(0.2, y)
    assert np.allclose(f, slow.f(0.2, y), rtol=1e-10, atol=1e-10)
    J = np.asarray(fast.jac(0.2, y))
    size = np.abs(J).max()
    assert np.allclose(J, slow.jac(0.2, y), rtol=1e-6, atol=1e-7 * size)
    step = 1e-6
    for k in range(fast.n):
        if k in [p + i for p in model.quaternion_places for i in range(4)]:
            continue
        e = step * np.eye(fast.n)[k]
        column = (fast.f(0.2, y + e) - fast.f(0.2, y - e)) / (2 * step)
        assert np.abs(J[:, k] - column).max() < 1e-6 * size
    start = mb.as_ivp(
        model, q0, v0, (0, 0.3), **({"stabilise": "projection"} if model.loops else {})
    )
    run = solve(start, dense_output=True, **TIGHT)
    ledger = mb.energy_ledger(model, run)
    assert np.abs(ledger.work["elements"]).max() > 1e-3
    assert np.abs(ledger.balance).max() < 1e-8 * np.abs(ledger.energy).max()
    assert np.isclose(sum(ledger.elements.values())[-1], ledger.power["elements"][-1])


def test_every_formulation_has_own_states():
    model, (q0, v0) = with_mixed("four_bar")
    right = solve(mb.as_ivp(model, q0, v0, (0, 0.3), stabilise="projection"), **TIGHT)
    for name, form in FORMULATIONS.items():
        problem = mb.as_dae(model, q0, v0, (0, 0.3), formulation=name)
        method = "DOP853" if form.is_explicit else "RADAU5"
        run = solve(problem, method=method, rtol=1e-7, atol=1e-9)
        seen = run.observed
        assert np.abs(seen.q[:, -1] - right.y[: model.nq, -1]).max() < 1e-6, name
    # Generalized-α treats own states as it does velocities: order 2 in all of them.
    problem = mb.as_dae(model, q0, v0, (0, 0.3))
    runs = [solve(problem, method="GeneralizedAlpha(0.8)", step=0.3 / n) for n in (100, 200)]
    off = [np.abs(run.y[: len(right.y), -1] - right.y[:, -1]) for run in runs]
    own = slice(model.nq - model.n_states, model.nq)
    for part in (slice(None), own):
        assert 3.5 < off[0][part].max() / off[1][part].max() < 4.5


def test_reactions_hold_the_bodies_with_elements():
    """Newton's law of the last body, from its reaction, gravity and what the element does."""
    model, (q0, v0) = with_mixed("double_pendulum")
    v0 = np.array([0.3, -0.2])
    run = solve(mb.as_ivp(model, q0, v0, (0, 0.2)), **TIGHT)
    found = mb.reactions_along(model, run, coordinates="base")
    q, v = run.y[: model.nq, -1], run.y[model.nq :, -1]
    a = mb.as_ivp(model, q0, v0).f(0.2, run.y[:, -1])[model.nq :]
    body = model.bodies[-1]
    centre = body.inertia.array[1:4] / body.inertia.array[0]
    acceleration = mb.point_acceleration(model, q, v, a, body=body.name, point=centre, t=0.2)
    push = acting(model, 0.2, q, v).wrenches()[-1, 3:]
    force = found[body.name][3:, -1] + body.inertia.array[0] * model.gravity + push
    assert np.allclose(force, body.inertia.array[0] * acceleration, atol=1e-9)


def test_prescribed_motion_with_elements():
    model, _ = with_mixed("double_pendulum")
    first = model.bodies[0].name
    problem = mb.as_ivp(
        model, t_span=(0, 0.5), prescribed={first: lambda t: 0.3 * np.sin(t) + 0 * t}
    )
    run = solve(problem, **TIGHT)
    assert np.abs(run.y[0] - 0.3 * np.sin(run.t)).max() < 1e-9
    torque = run.observed.tau[0, -1]
    x = run.y[:, -1]
    acted = acting(model, 0.5, x[:4], x[4:])
    tau = np.array([torque, 0.0]) + acted.joint_forces()
    a = mb.FD(model, x[:4], x[4:], tau, acted.wrenches(), t=0.5)
    assert np.isclose(a[0], -0.3 * np.sin(0.5), atol=1e-8)


def test_lanes_and_pickles():
    import pickle

    model = cart(mb.DCMotor("cart", 6.0, 1.2, 0.1, 0.5))
    problem = mb.as_ivp(model, [0.1], [0.0], (0, 1))
    many = solve_many(problem, y0=[[0.1, 0, 0], [0.2, 1.0, 0.3]], rtol=1e-9)
    assert "lane" in many.engine
    alone = solve(pickle.loads(pickle.dumps(problem)), y0=[0.2, 1.0, 0.3], rtol=1e-9)
    assert np.allclose(many.y[1], alone.y[:, -1], atol=1e-9)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("element", "match"),
    [
        (lambda: mb.PID("kart", 1.0), "did you mean 'cart'"),
        (lambda: mb.ForceLaw(lambda here: here.push_joint("cart", [1, 2])), "expected 1 numbers"),
        (lambda: mb.ForceLaw(lambda here: None, {"z": 0.0}), "says no here.rates"),
        (lambda: mb.ForceLaw(lambda here: here.push_joint(0, 1.0)), "hangs on no joint"),
        (lambda: mb.FirstOrderFilter("pid", 1.0), "there is no element 'pid'"),
        (lambda: mb.Friction("cart", -1.0), "coulomb ≥ 0"),
        (lambda: mb.Friction("cart", 2.0, 1.0), "stiction ≥ coulomb"),
        (lambda: mb.Bushing(0, (0, 0, 0), "cart", (0, 0, 0), np.ones(5)), "6×6"),
        (lambda: mb.Table([0, 1], [1, 2, 3]), "a number for each"),
        (lambda: mb.Table([0, 0], [1, 2]), "rising times"),
        (lambda: mb.SampledPID("cart", 1.0, 0.0), "period > 0"),
        (lambda: "pid", "expected an Element"),
    ],
)
def test_mistakes_are_told_at_once(element, match):
    with pytest.raises((ValueError, TypeError), match=match):
        cart(element())


def test_names_do_not_clash():
    b = mb.ModelBuilder()
    b.add_body("arm", 0, mb.Revolute(), inertia=mb.point_mass(1.0, (1, 0, 0)))
    with pytest.raises(ValueError, match="exists already"):
        b.add_element("arm", mb.PID("arm"))


def test_a_stiff_bushing_far_away_feels_the_same_small_stretch():
    """The way between its frames is summed along the tree, not taken between distant places."""
    b = mb.ModelBuilder()
    part = mb.Inertia(2.0, (0.1, 0.05, 0.0), (1.0, 1.2, 1.4))
    b.add_body("carrier", 0, mb.Free(), None, part)
    b.add_body("a", "carrier", mb.Revolute("y"), (0.4, 0, 0), part)
    b.add_body("b", "carrier", mb.Free(), (0.4, 0.3, 0), part)
    mount = mb.Bushing("a", (0, 0.3, 0), "b", (0, 0, 0), [2e3] * 3 + [1e7] * 3, 20.0)
    b.add_element("mount", mount)
    b.add_element("rope", mb.SpringLaw("carrier", (0, 0, 0), "b", (0, 1, 0), lambda x, u: 9 * x))
    model = b.build()
    near = model.neutral()
    near[-3:] = 1e-6, -2e-6, 3e-6
    far = near.copy()
    far[4:7] = 1e6, -2e6, 3e6
    one, other = (mb.FD_x(model, [*q, *np.zeros(model.nv)])[model.nq :] for q in (near, far))
    # What is left is the rounding of the couple about the base's origin.
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-8 * np.abs(one).max())


@pytest.mark.parametrize("law", [mb.SpringDamper(1e4, 20.0), mb.HuntCrossley(1e5, 1.5, 0.1)])
def test_a_soft_contact_far_away_has_the_same_force(law):
    """Its gap is measured along the tree; between places 1,000 km away it was off by 1e-10 m."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("a", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.1))
    b.add_body("b", "a", mb.Free(), inertia=mb.sphere(mass=2.0, radius=0.1))
    b.add_contact("touch", "a", mb.Ball(0.1), "b", mb.Ball(0.1), law=law, friction=0.3)
    model = b.build()
    v = 0.1 * np.random.default_rng(1).standard_normal(model.nv)
    near = model.neutral()
    near[11:14] = 0.11, 0.1, 0.12
    far = near.copy()
    far[4:7] = 1e6, -2e6, 3e6
    one, other = (mb.element_forces(model, q, v)[1][:, 3:] for q in (near, far))
    assert np.abs(one).max() > 1.0
    np.testing.assert_allclose(other, one, rtol=1e-14)


@pytest.mark.parametrize("formulation", ["index2", "index3", "ggl"])
def test_a_sampled_controller_acts_in_every_formulation(formulation):
    """Its first sample is due at the start, where multipliers leave y' open."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("x", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_body("y", "x", mb.Prismatic("y"), inertia=mb.point_mass(0.5))
    b.add_loop("rail", 0, "y", mb.Prismatic((1.0, 1.0, 0.0)))
    b.add_element("control", mb.SampledPID("x", 1.0, 0.1, kp=4, kd=3))
    model, start = b.build(), ([0.0, 0.0], [0.0, 0.0], (0, 2.0))
    right = solve(mb.as_ivp(model, *start), rtol=1e-9, atol=1e-12)
    assert right.y[0, -1] > 1.0
    run = solve(mb.as_dae(model, *start, formulation=formulation), method="RADAU5", rtol=1e-8)
    assert run.success
    np.testing.assert_allclose(run.y[:2, -1], right.y[:2, -1], atol=1e-6)


def test_a_sampled_controller_that_begins_later_has_no_kick():
    """k_d times a difference needs two samples, whatever the clock says at the start."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("x", 0, mb.Prismatic("x"), inertia=mb.point_mass(1.0))
    b.add_element("control", mb.SampledPID("x", 1.0, 0.1, kp=4, kd=3))
    model = b.build()
    ends = [
        solve(mb.as_ivp(model, [0.0], [0.0], (t0, t0 + 0.55)), rtol=1e-10).y[0, -1]
        for t0 in (0.0, 1.0)
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-8)
