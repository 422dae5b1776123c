"""Runs with contact against closed solutions: event-driven, in time steps, compliant."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import Solution, solve, solve_many
from multibody import mechanisms
from multibody.io import dumps, loads

from .test_instants import four_bar_with_stop

G = 9.81
SHARP = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def run(name, t_end=None, options=SHARP, **parameters):
    entry = mechanisms.entry(name)
    model = entry.model(**parameters)
    problem = mb.as_ivp(model, *entry.start(model), (0.0, t_end or entry.t_end))
    solution = solve(problem, **options)
    assert solution.success, solution.message
    return model, solution


def test_every_bounce_and_the_rest_after_infinitely_many():
    e, first = 0.8, np.sqrt(2 / G)
    model, solution = run("bouncing_ball", 6.0, {**SHARP, "rtol": 1e-12}, restitution=e)
    starts = [stay.start for stay in solution.modes if stay.mode == "free"][1:]
    assert len(starts) > 30
    exact = first + 2 * first * np.cumsum([0.0, *(e**k for k in range(1, len(starts)))])
    np.testing.assert_allclose(starts, exact, atol=1e-11, rtol=0)
    rest = solution.modes[-1]
    assert rest.mode == "floor rests"
    assert rest.start == pytest.approx(first * (1 + e) / (1 - e), abs=1e-10)
    np.testing.assert_allclose(solution.y[:, -1], [0.1, 0.0], atol=1e-15, rtol=0)
    forces = mb.contact_forces(model, solution)
    assert forces.normal_force[0, -1] == pytest.approx(G, rel=1e-12)
    assert abs(solution.observed.gap[0, -1]) < 1e-15
    hits = mb.impacts(model, solution)
    np.testing.assert_allclose([hit.t for hit in hits[:5]], exact[:5], atol=1e-11)


def test_without_restitution_it_stays_where_it_lands():
    _, solution = run("bouncing_ball", 2.0, restitution=0.0)
    assert [stay.mode for stay in solution.modes] == ["free", "floor rests"]
    assert solution.y[0, -1] == pytest.approx(0.1, abs=1e-15)


def test_a_bead_leaves_a_sphere():
    _, solution = run("bead_on_sphere")
    _, y = solution.parts[0].reached
    assert y[1] == pytest.approx(2 / 3 * np.cos(0.1), abs=1e-9)
    assert [stay.mode for stay in solution.modes] == ["sphere rests", "free"]


def test_a_ladder_leaves_the_wall():
    _, solution = run("sliding_ladder", 0.8)
    _, y = solution.parts[0].reached
    assert y[1] + 0.5 * np.cos(y[2]) == pytest.approx(2 / 3 * np.cos(0.2), abs=1e-9)
    assert [stay.mode for stay in solution.modes] == ["floor rests, wall rests", "floor rests"]


def test_a_bowling_ball_slides_and_rolls():
    v0, mu = 5.0, 0.2
    model, solution = run("bowling_ball", 1.0)
    assert solution.modes[1].start == pytest.approx(2 * v0 / (7 * mu * G), abs=1e-9)
    speed = mb.point_jacobian(model, solution.y[:7, -1], "ball") @ solution.y[7:, -1]
    np.testing.assert_allclose(speed, [5 * v0 / 7, 0, 0], atol=1e-9)
    assert [stay.mode for stay in solution.modes] == ["lane slides 0°", "lane sticks"]


def test_slip_that_turns_keeps_its_direction_in_the_plane():
    """Of a ball thrown with spin about another axis the slip is straight all the same."""
    entry = mechanisms.entry("bowling_ball")
    model = entry.model()
    q, v = entry.start(model)
    v[:] = 20.0, 0.0, 5.0, 3.0, 4.0, 0.0
    solution = solve(mb.as_ivp(model, q, v, (0.0, 1.0)), **SHARP)
    rolling = mb.point_jacobian(model, solution.y[:7, -1], "ball") @ solution.y[7:, -1]
    # (5 v + 2 ω × r)/7, whatever happens on the way: angular momentum about the track is kept.
    expected = (5 * np.array([3.0, 4.0]) + 2 * 0.1 * np.array([0.0, -20.0])) / 7
    np.testing.assert_allclose(rolling[:2], expected, atol=1e-9)


@pytest.mark.parametrize("friction", [0.35, 0.25])
def test_a_block_on_an_incline_sticks_or_slides(friction):
    _, solution = run("block_on_incline", friction=friction)
    way = np.linalg.norm(solution.y[4:7, -1] - solution.y[4:7, 0])
    pull = G * (np.sin(0.3) - friction * np.cos(0.3))
    assert way == pytest.approx(0.5 * max(pull, 0.0) * 2.0**2, abs=1e-11)
    if pull < 0:  # zero creep
        assert np.abs(solution.y[7:]).max() < 1e-14


def test_housners_rocking_block():
    _, solution = run("rocking_block", 1.6)
    alpha = np.arctan2(0.2, 0.8)
    for before, after in zip(solution.parts[:3], solution.parts[1:4]):
        ratio = after.y[5, 0] / before.reached[1][5]
        assert ratio == pytest.approx(1 - 1.5 * np.sin(alpha) ** 2, rel=1e-9)
    # A quarter of the first period, by quadrature of energy: I ω²/2 = m g R (cos(α−θ₀) − cos(α−θ)).
    from scipy.integrate import quad

    R = np.hypot(0.1, 0.4)
    start = 0.5 * alpha

    def slowness(x):  # θ = θ₀ (1 − x²) takes the root out of the integrand
        fall = np.cos(alpha - start) - np.cos(alpha - start * (1 - x * x))
        return 2 * start * x / np.sqrt(1.5 * G / R * fall)

    quarter = quad(slowness, 0.0, 1.0, epsabs=1e-12)[0]  # nodes lie inside
    assert solution.modes[1].start == pytest.approx(quarter, rel=1e-7)
    assert solution.modes[1].mode == "left sticks"


def test_a_level_rod_and_a_tilted_one_move_alike():
    entry = mechanisms.entry("dropped_rod")
    model = entry.model()
    ends = []
    for tilt in (0.0, 1e-9):
        solution = solve(mb.as_ivp(model, [0.0, 1.0, tilt], None, (0.0, 3.0)), **SHARP)
        assert solution.success
        assert solution.modes[-1].mode == "left rests, right rests"
        ends.append([stay.start for stay in solution.modes])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


def test_the_cradle_swings_at_its_ends():
    model, solution = run("newtons_cradle", 3.0)
    hits = mb.impacts(model, solution)
    assert len(hits) == 3
    assert np.abs(solution.y[1:4]).max() < 1e-8
    assert solution.y[4].min() < -0.4 or solution.y[4].max() > 0.4


def test_the_uppermost_box_of_a_stack_slides_and_stops():
    _, solution = run("box_stack")
    assert len(solution.modes) == 2
    assert solution.y[3, -1] - solution.y[0, -1] == pytest.approx(1 / (2 * 0.5 * G), abs=1e-9)
    assert np.abs(solution.y[:3, -1] - solution.y[:3, 0]).max() < 1e-12
    assert np.abs(solution.y[6:, -1]).max() < 1e-12


def test_stick_and_slip_on_a_belt():
    """A block on a spring rides with the belt until k x = μ m g, and then swings about there."""
    k, mu, speed = 100.0, 0.4, 0.2
    b = mb.ModelBuilder(name="stick-slip")
    b.add_body("belt", 0, mb.Driven(mb.Prismatic("x"), lambda t: [speed * t]))
    b.add_body("x", 0, mb.Prismatic("x"), stiffness=k)
    b.add_body("block", "x", mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_contact("belt", "belt", mb.HalfSpace(), "block", mb.Vertex(), friction=mu)
    solution = solve(mb.as_ivp(b.build(), None, [speed, 0.0], (0.0, 0.8)), **SHARP)
    assert [stay.mode.split()[1] for stay in solution.modes[:2]] == ["sticks", "slides"]
    begin, rest = mu * G / (k * speed), mu * G / k
    assert solution.modes[1].start == pytest.approx(begin, abs=1e-9)
    swing = rest + speed / 10.0 * np.sin(10.0 * (0.8 - begin))
    assert solution.y[0, -1] == pytest.approx(swing, abs=1e-8)


def test_a_four_bar_that_hits_a_stop_keeps_its_books():
    """Energy between impacts, momentum at impacts, and the loop all along."""
    model, q = four_bar_with_stop(0.2)
    solution = solve(mb.as_ivp(model, q, None, (0.0, 1.2)), **SHARP)
    hits = mb.impacts(model, solution)
    assert len(hits) >= 2
    for part in solution.parts[:3]:
        total = mb.energy(model, part).total
        assert np.ptp(total) < 1e-10 * np.abs(total).max()
    for hit, before, after in zip(hits[:2], solution.parts, solution.parts[1:]):
        y, v = before.reached[1], after.y[3:, 0]
        k, c = mb.contact_kinematics(model, y[:3]), mb.constraints(model, y[:3])
        change = mb.crba(model, y[:3]) @ (v - y[3:])
        impulse = k.T[0].T @ hit.result.impulses[0] + c.K.T @ hit.result.loop_impulses
        np.testing.assert_allclose(change, impulse, atol=1e-12)
        np.testing.assert_allclose(c.K @ v, 0.0, atol=1e-12)


# ---------------------------------------------------------------------- order, roads, combinations


def pendulum_at_a_wall():
    b = mb.ModelBuilder(name="pendulum at a wall")
    end = (0, 0, -1)
    b.add_body("bob", 0, mb.Revolute("y"), inertia=mb.point_mass(1.0, end))
    wall = mb.HalfSpace((1, 0, 0), (-0.2, 0, 0))
    b.add_contact("wall", 0, wall, "bob", mb.Ball(0.1, end), restitution=0.8)
    return mb.as_ivp(b.build(), [-0.8], None, (0.0, 3.0))


def test_orders_through_impacts():
    problem = pendulum_at_a_wall()
    exact = solve(problem, method="DOP853", rtol=1e-13, atol=1e-14)
    assert len(exact.modes) > 3
    end = exact.y[:, -1]

    def errors(method, steps):
        return [np.abs(solve(problem, method=method, step=h).y[:, -1] - end).max() for h in steps]

    fourth = errors("RK4", (0.04, 0.02, 0.01))
    np.testing.assert_allclose(np.log2(np.divide(fourth[:-1], fourth[1:])), 4.0, atol=0.3)
    # Impacts fall anywhere in a step: only the mean over several steps shows the order.
    coarse = np.mean(errors("MoreauJean", 3.0 / np.arange(200, 300, 20)))
    fine = np.mean(errors("MoreauJean", 3.0 / np.arange(800, 1200, 80)))
    assert 0.6 < np.log(coarse / fine) / np.log(4.0) < 1.4
    for tolerance in (1e-6, 1e-9):
        found = solve(problem, method="DOP853", rtol=tolerance, atol=tolerance)
        assert np.abs(found.y[:, -1] - end).max() < 100 * tolerance


def test_time_steps_pass_accumulations_and_stick():
    with pytest.raises(ValueError, match="give a fixed step"):
        solve(mechanisms.entry("bouncing_ball").problem(), method="MoreauJean")
    _, solution = run("bouncing_ball", 10.0, {"method": "MoreauJean", "step": 4e-3})
    assert abs(solution.y[0, -1] - 0.1) < 1e-3
    assert solution.y[1, -1] == pytest.approx(0.0, abs=1e-12)
    options = {"method": "MoreauJean", "step": 0.02}
    _, solution = run("block_on_incline", 0.5, options, friction=0.35)
    assert np.abs(solution.y[7:]).max() < 1e-12
    _, solution = run("block_on_incline", 0.5, options)
    way = np.linalg.norm(solution.y[4:7, -1] - solution.y[4:7, 0])
    assert way == pytest.approx(0.125 * G * (np.sin(0.3) - 0.25 * np.cos(0.3)), rel=1e-9)


@pytest.mark.parametrize("method", ["RADAU5", "RK4", "DOPRI5", "Gauss2"])
def test_any_method_follows_modes(method):
    options = {"step": 0.01} if method in ("RK4", "Gauss2") else {"rtol": 1e-7, "atol": 1e-9}
    _, solution = run("sliding_ladder", 0.8, {"method": method, **options})
    assert solution.modes[1].mode == "floor rests"
    assert solution.modes[1].start == pytest.approx(0.5623026162, abs=1e-6)


def test_dense_output_output_times_files_and_forces(tmp_path):
    entry = mechanisms.entry("bouncing_ball")
    model = entry.model()
    times = np.linspace(0.0, 2.0, 41)
    solution = mb.simulate(model, [1.1], T=2.0, t_eval=times, dense_output=True)
    np.testing.assert_allclose(solution.sol(times)[0], solution.y[0], atol=1e-12)
    assert solution.mode(1.0) == "free"
    solution.save(tmp_path / "run.npz")
    from integrators import Solution

    again = Solution.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(again.y, solution.y)
    assert mb.positions(model, solution, "ball").shape == (3, 41)
    assert mb.energy(model, solution).total[-1] < 0.95 * mb.energy(model, solution).total[0]


def test_another_start_starts_in_its_own_mode():
    problem = mechanisms.entry("bouncing_ball").problem()
    resting = solve(problem, (0.0, 1.0), [0.1, 0.0])
    assert resting.modes[0].mode == "floor rests"
    landing = solve(problem, (0.0, 0.1), [0.1, -1.0])
    assert landing.y[1, 0] == pytest.approx(0.9)
    with pytest.raises(ValueError, match="runs backwards"):
        solve(problem, (1.0, 0.0))
    with pytest.raises(ValueError, match=r"penetrate by 0\.05 m"):
        solve(problem, (0.0, 1.0), [0.05, 0.0])


def test_joint_forces_and_time_move_what_touches():
    """A block pulled by a growing force starts to slide when the force reaches μ m g."""
    b = mb.ModelBuilder(name="pulled block")
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("block", "x", mb.Prismatic("z"), inertia=mb.point_mass(2.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "block", mb.Vertex(), friction=0.5)
    problem = mb.as_ivp(b.build(), None, None, (0, 3), tau=lambda t, q, v: [6.0 * t, 0.0 * t])
    solution = solve(problem, **SHARP)
    assert [stay.mode for stay in solution.modes] == ["floor sticks", "floor slides 0°"]
    begin = 0.5 * 2.0 * G / 6.0
    assert solution.modes[1].start == pytest.approx(begin, abs=1e-9)
    assert solution.y[0, -1] == pytest.approx((3 - begin) ** 3 / 2, abs=1e-8)
    assert np.abs(solution.parts[0].y[0]).max() == 0.0


def test_a_mode_that_jams_is_no_success():
    """A rod that slides tip first into Painlevé's region: the run ends, and says why."""
    rod = mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0)
    b = mb.ModelBuilder()
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"))
    b.add_body("rod", "z", mb.Revolute("y"), inertia=rod)
    b.add_contact("tip", 0, mb.HalfSpace(), "rod", mb.Vertex((0, 0, -0.5)), friction=2.0)
    model = b.build()
    for angle in np.linspace(-1.3, -0.2, 5):
        q = [0.0, 0.5 * np.cos(angle), angle]
        try:
            solution = solve(mb.as_ivp(model, q, [3.0, 0.0, 0.0], (0.0, 0.3)), rtol=1e-8)
        except mb.PainleveError:  # at the start already
            continue
        gap = mb.contact_kinematics(model, solution.y[:3, -1]).gap[0]
        assert (solution.success and gap > -1e-9) or "Painlevé" in solution.message


# ---------------------------------------------------------------------- compliant surfaces


@pytest.mark.parametrize("ratio", [0.2, 0.5])
def test_a_bounce_on_a_spring_and_damper(ratio):
    """Eq 11.8: e = exp(−2ζ acos ζ/√(1 − ζ²)); and the joint stop, which is the same surface."""
    exact = np.exp(-2 * ratio * np.arccos(ratio) / np.sqrt(1 - ratio**2))
    K, mass = 1e4, 2.0
    D = 2 * ratio * np.sqrt(K * mass)
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.point_mass(mass))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Vertex(), law=mb.SpringDamper(K, D))
    problem = mb.as_ivp(b.build(), [0.01], [-1.0], (0.0, 0.1))
    assert problem.state_names == ("ball.shift", "floor.depth", "d(ball.shift)")
    solution = solve(problem, method="DOPRI5", rtol=1e-8, atol=1e-11)
    assert solution.y[2, -1] == pytest.approx(exact, abs=1e-6)
    assert solution.observed.force[:, 0, 2].min() >= 0.0
    stop = mb.ModelBuilder(gravity=(0, 0, 0))
    limits = (0.0, np.inf, K, D)
    stop.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.point_mass(mass), limits=limits)
    other = solve(mb.as_ivp(stop.build(), [0.01], [-1.0], (0.0, 0.1)), rtol=1e-10, atol=1e-13)
    assert other.y[1, -1] == pytest.approx(exact, abs=1e-6)


def test_bristles_hold_a_block_and_regularised_friction_creeps():
    """μ above the slope: displacements stay at those of the springs; below it slides."""
    moved = {}
    laws = {"bristles": mb.SpringDamper(2e3, 60.0), "smooth": mb.HuntCrossley(1e4, 1.0, 1.0, 1e-2)}
    for name, law in laws.items():
        b = mb.ModelBuilder(gravity=(G * np.sin(0.3), 0, -G * np.cos(0.3)))
        b.add_body("x", 0, mb.Prismatic("x"))
        b.add_body("block", "x", mb.Prismatic("z"), inertia=mb.point_mass(2.0))
        b.add_contact("floor", 0, mb.HalfSpace(), "block", mb.Vertex(), friction=0.5, law=law)
        solution = solve(mb.as_ivp(b.build(), None, None, (0.0, 1.5)), rtol=1e-5, atol=1e-8)
        assert solution.success
        moved[name] = solution.y[0]
    spring = 2.0 * G * np.sin(0.3) / 2e3
    assert moved["bristles"][-1] == pytest.approx(spring, rel=1e-3)
    assert moved["smooth"][-1] > 3 * spring


def test_hertz_without_dissipation_gives_everything_back():
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), law=mb.HuntCrossley(1e5))
    solution = solve(mb.as_ivp(b.build(), [0.11], [-1.0], (0.0, 0.1)), rtol=1e-10, atol=1e-13)
    assert solution.y[1, -1] == pytest.approx(1.0, abs=1e-8)
    deepest = (1.25 / 1e5) ** 0.4  # ½ m v² = k δ^(5/2) / (5/2)
    assert -solution.observed.gap.min() == pytest.approx(deepest, rel=1e-2)


def on_soft_ground(seed):
    """Compliant contacts of any shape and law beside whatever else a model may have."""
    rng = np.random.default_rng(seed)
    laws = (mb.SpringDamper(3e3, 40.0), mb.HuntCrossley(2e4, 1.5, 0.2))
    b = mb.ModelBuilder(name=f"soft {seed}")
    ground = {"friction": float(rng.choice([0.0, 0.4])), "law": laws[seed % 2]}
    b.add_body("body", 0, mb.Free(), inertia=mb.box((0.4, 0.3, 0.2), mass=2.0))
    shape = (mb.BoxCorners((0.4, 0.3, 0.2)), mb.Ball(0.2), mb.Disc(0.2, (1, 0, 0)))[seed % 3]
    b.add_contact("ground", 0, mb.HalfSpace(), "body", shape, **ground)
    start = [1, 0, 0, 0, 0, 0, 0.22]
    b.add_body("arm", 0, mb.Revolute("y"), (0, 2, 0.6), mb.rod((0, 0, 0), (0.8, 0, 0), mass=1.0))
    start += [0.0]
    if seed % 4 == 0:
        b.add_element("motor", mb.DCMotor("arm", 6.0, 1.2, 0.05, 0.3))
    if seed % 4 == 1:
        b.add_body("rocker", 0, mb.Revolute("y"), (0.8, 2, 1.4), mb.point_mass(1.0, (0, 0, -0.8)))
        b.add_loop("pin", "arm", "rocker", mb.Revolute("y"), (0.8, 0, 0), (0, 0, -0.8))
        start += [0.0]
    if seed % 4 == 2:
        b.add_spring("string", 0, (0.3, 0, 1.2), "body", (0, 0, 0), 20.0, rest=0.7)
    tip, stop = mb.Ball(0.05, (0.8, 0, 0)), mb.HalfSpace((0, 0, 1), (0, 0, 0.5))
    rigid = seed >= 4
    b.add_contact("stop", 0, stop, "arm", tip, law=None if rigid else laws[0])
    return b.build(), start, rigid


@pytest.mark.parametrize("seed", [2, 4, 5])  # of 0 to 5, all of which were checked so
def test_compliant_contacts_are_elements(seed, tmp_path):
    """They are traced, keep books, go into files, and stand beside rigid contacts."""
    model, start, rigid = on_soft_ground(seed)
    options = {"method": "RADAU5", "rtol": 1e-7, "atol": 1e-9, "dense_output": True}
    problem = mb.as_ivp(model, start, None, (0.0, 0.3))
    run = solve(problem, **options)
    assert run.success, run.message
    seen = mb.contact_forces(model, run)
    assert seen.normal_force.min() >= 0.0
    assert seen.normal_force[:, -1].max() > 1.0
    assert (seen.friction <= 0.4 * seen.normal_force + 1e-9).all()
    ledger = mb.energy_ledger(model, run)
    assert np.abs(ledger.balance).max() < 1e-4 + 10 * ledger.quadrature_error
    again = loads(dumps(model, "toml"), "toml")
    assert [c.law for c in again.contacts] == [c.law for c in model.contacts]
    assert again.q_names == model.q_names
    run.save(tmp_path / "run.npz")
    assert np.array_equal(Solution.load(tmp_path / "run.npz").y, run.y)
    del options["dense_output"]
    many = solve_many(problem, y0=np.array([problem.y0] * 2), **options)
    assert np.abs(many.y - run.y[:, -1]).max() < 1e-5
    if not rigid:
        plain = mb.as_ivp(again, start, None, (0.0, 0.3), traced=False).f
        for k in np.linspace(0, len(run.t) - 1, 9).astype(int):
            there = run.t[k], np.ascontiguousarray(run.y[:, k])
            slope = plain(*there)
            assert np.abs(problem.f(*there) - slope).max() < 1e-9 * np.abs(slope).max()
        with pytest.raises(ValueError, match="runs backwards"):
            solve(problem, (0.3, 0.0))


def test_elastic_contacts_run_backwards_and_bristles_do_not():
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.point_mass(1.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), law=mb.HuntCrossley(1e4))
    problem = mb.as_ivp(b.build(), [0.2], None, (0.0, 0.3))
    options = {"rtol": 1e-10, "atol": 1e-12}
    there = solve(problem, **options)
    back = solve(problem, (0.3, 0.0), there.y[:, -1], **options)
    assert back.y[:, -1] == pytest.approx(problem.y0, abs=1e-7)


# ---------------------------------------------------------------------- drawn at random


@pytest.mark.parametrize("seed", range(6))
def test_what_holds_for_every_run(seed):
    """Plates thrown in a plane: no penetration, no energy made, laws kept, both roads near."""
    rng = np.random.default_rng(100 + seed)
    size = rng.uniform(0.1, 0.5, 2)
    friction, restitution = rng.choice([0.0, 0.3, 0.8]), rng.choice([0.0, 0.4, 0.7])
    b = mb.ModelBuilder(name="plate")
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"))
    b.add_body("plate", "z", mb.Revolute("y"), inertia=mb.box((*size, 0.1), mass=1.0))
    for k, (i, j) in enumerate(((-1, -1), (1, -1), (-1, 1), (1, 1))):
        corner = mb.Vertex((0.5 * i * size[0], 0.0, 0.5 * j * size[1]))
        given = {"friction": friction, "restitution": restitution}
        b.add_contact(f"corner{k}", 0, mb.HalfSpace(), "plate", corner, **given)
    model = b.build()
    q, v = [0.0, 0.8, rng.uniform(-3, 3)], rng.uniform(-2, 2, 3)
    method = str(rng.choice(["DOP853", "DOPRI5", "RADAU5"]))
    problem = mb.as_ivp(model, q, v, (0.0, 0.8), restitution_law="poisson")
    solution = solve(problem, method=method, rtol=1e-8, atol=1e-10)
    assert solution.success, solution.message
    total = mb.energy(model, solution).total
    assert np.diff(total).max() < 1e-6 * np.abs(total).max()
    seen = mb.contact_forces(model, solution)
    assert seen.gap.min() > -1e-8
    assert seen.normal_force.min() > -1e-6
    assert (seen.friction <= friction * seen.normal_force + 1e-6).all()
    for stay in solution.modes:
        assert stay.mode == "free" or "corner" in stay.mode
    stepped = solve(problem, method="MoreauJean", step=4e-3)
    assert stepped.success
    fastest = np.abs(solution.y[3:]).max()  # what penetrates in a step before it is seen
    assert mb.contact_kinematics(model, stepped.y[:3, -1]).gap.min() > -4e-3 * fastest
    if len(solution.modes) <= 3 and restitution == 0.0:
        np.testing.assert_allclose(stepped.y[:3, -1], solution.y[:3, -1], atol=0.1)


@pytest.mark.parametrize("method", ["BDF", "Rodas5P", "Adams"])
def test_a_free_ball_comes_to_rest_by_methods_that_know_no_manifold(method):
    """Its last bounces are below what BDF's tolerance tells: they form no series."""
    b = mb.ModelBuilder(name="ball")
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.1))
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), restitution=0.3, friction=0.3)
    problem = mb.as_ivp(b.build(), [1, 0, 0, 0, 0, 0, 0.3], [1, 2, 0, 1, 0, 0], (0.0, 0.6))
    right = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    run = solve(problem, method=method, rtol=1e-8, atol=1e-10)
    assert run.success, run.message
    assert run.modes[-1].mode == "floor sticks"
    np.testing.assert_allclose(run.y[:, -1], right, atol=1e-5)


def test_names_of_modes_do_not_depend_on_earlier_runs():
    problem = mb.as_ivp(mechanisms.bouncing_ball(restitution=0.3), [1.1], [0.0], (0.0, 1.0))
    runs = [solve(problem, method="DOP853", rtol=tol, atol=1e-2 * tol) for tol in (1e-9, 1e-6)]
    names = [[stay.mode for stay in run.modes] for run in runs]
    assert names[0] == names[1]
    assert names[0][-2:] == ["floor rests, after the last bounces that can be seen", "floor rests"]


def test_what_goes_with_one_kind_of_problem_only_is_said():
    with pytest.raises(ValueError, match="models with rigid contacts"):
        solve(lambda t, y: -y, (0, 1), [1.0], method="MoreauJean", step=0.1)
    with pytest.raises(TypeError, match="many digits take no modes"):
        solve(mechanisms.entry("bouncing_ball").problem(), precision=20)
