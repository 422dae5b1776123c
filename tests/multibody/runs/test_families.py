"""Families of models: one traced problem for all, and the same answers as each model by itself."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

from integrators import solve, solve_many
from multibody import (
    PID,
    Driven,
    Inertia,
    ModelBuilder,
    ModelFamily,
    Prismatic,
    Revolute,
    Spherical,
    StructureError,
    as_ivp,
    assemble,
    consistent_velocity,
    mechanisms,
    point_mass,
    rod,
    save_model,
)

ROUNDING = 1e-12


def workbench(
    mass=1.0, length=0.8, stiffness=30.0, damping=0.3, rest=0.2, armature=0.05, g=9.81,
    tilt=0.3, spring=20.0, radius=0.4, limit=0.5, gear=3.0,
):  # fmt: skip
    """One of each: rods, rotor, joint spring, damper, stop, spring between points, tilted axis."""
    b = ModelBuilder(gravity=(0, 0, -g), name="workbench")
    b.add_body(
        "arm", 0, Revolute("y"), (0, 0, tilt), rod((0, 0, 0), (0, 0, -length), mass=mass),
        stiffness=stiffness, rest=rest, damping=damping, armature=gear**2 * armature,
        limits=(-limit, limit),
    )  # fmt: skip
    placement = (0.1, radius, -length)
    b.add_body("slide", "arm", Prismatic((0.0, np.sin(tilt), np.cos(tilt))), placement,
               Inertia(0.5 * mass, (0, 0.1, 0), (0.01, 0.02, 0.02)), damping=0.1)  # fmt: skip
    b.add_spring("pull", "slide", (0, 0, 0.1), 0, (0.5, 0, 0), spring, 0.2, 0.3)
    return b.build()


WORKBENCH = list(inspect.signature(workbench).parameters)


def start_of(name, model):
    q, v = mechanisms.entry(name).start(model)
    return np.concatenate([q, v])


@pytest.fixture(scope="module")
def four_bars():
    family = ModelFamily("four_bar", ["crank", "coupler", "rocker", "density"])
    start = start_of("four_bar", family.base)
    return family, family.problem(start[:3], start[3:], (0.0, 1.0))


@pytest.fixture(scope="module")
def benches():
    family = ModelFamily(workbench, WORKBENCH)
    return family, family.problem([0.3, 0.1], [1.0, -0.5], (0.0, 0.5))


# ---------------------------------------------------------------------- the right-hand side


def test_the_right_hand_side_is_bitwise_that_of_the_constant_model(four_bars):
    family, problem = four_bars
    rng = np.random.default_rng(5)
    for _ in range(3):
        row = np.array([1.0, 2.0, 1.5, 1.0]) * rng.uniform(0.9, 1.1, 4)
        model = family.model(row)
        y = start_of("four_bar", model)
        alone = as_ivp(model, y[:3], y[3:], (0.0, 1.0))
        p = family.parameters(row[None]).p[0]
        assert np.array_equal(problem.f(0.0, y, p), alone.f(0.0, y))
        assert problem.f.operations()["total"] <= alone.f.operations()["total"] + 2


def test_every_number_of_a_model_can_vary(benches):
    family, problem = benches
    rng = np.random.default_rng(2)
    nominal = np.array([family.nominal[name] for name in family.names])
    for _ in range(4):
        row = nominal * rng.uniform(0.8, 1.2, len(nominal))
        p = family.parameters(row[None])
        assert p.messages[0] == ""
        y = rng.uniform(-0.6, 0.6, 4)
        model = workbench(**dict(zip(WORKBENCH, row)))
        alone = as_ivp(model, y[:2], y[2:], (0.0, 0.5), traced=False)
        expected = alone.rhs(0.0, y)
        assert np.abs(problem.f(0.0, y, p.p[0]) - expected).max() < ROUNDING * 1e3 * (
            1 + np.abs(expected).max()
        )


def test_a_number_that_is_zero_in_some_models_is_a_parameter_like_others():
    def spring_loaded(stiffness=0.0, damping=0.0, armature=0.0, rest=0.0):
        b = ModelBuilder(name="loaded")
        b.add_body("arm", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)),
                   stiffness=stiffness, damping=damping, armature=armature, rest=rest)  # fmt: skip
        return b.build()

    family = ModelFamily(spring_loaded, ["stiffness", "damping", "armature", "rest"])
    problem = family.problem([0.4], [0.2], (0.0, 1.0))
    rows = family.parameters([[0.0, 0.0, 0.0, 0.0], [3.0, 0.5, 0.25, 0.1]])
    assert rows.good.all()
    for row, p in zip(([0.0] * 4, [3.0, 0.5, 0.25, 0.1]), rows.p):
        k, c, rotor, rest = row
        torque = -9.81 * np.sin(0.4) - k * (0.4 - rest) - c * 0.2
        assert problem.f(0.0, [0.4, 0.2], p)[1] == pytest.approx(torque / (1.0 + rotor), rel=1e-13)


@pytest.mark.parametrize("name", ["slider_crank", "bricard", "spinning_top", "cart_pole"])
def test_mechanisms_of_the_catalogue(name):
    entry = mechanisms.entry(name)
    numbers = [
        key
        for key, value in inspect.signature(entry.build).parameters.items()
        if isinstance(value.default, float)
    ]
    family = ModelFamily(name, numbers[:3])
    start = start_of(name, family.base)
    nq = family.base.nq
    problem = family.problem(start[:nq], start[nq:], (0.0, 0.2))
    row = family._samples[2]
    y = start_of(name, family.model(row))
    alone = as_ivp(family.model(row), y[:nq], y[nq:], (0.0, 0.2))
    p = family.parameters(row[None]).p[0]
    together = solve(problem.with_(y0=y, params=p), method="DOP853", rtol=1e-9)
    by_itself = solve(alone, method="DOP853", rtol=1e-9)
    assert np.abs(together.y[:, -1] - by_itself.y[:, -1]).max() < 1e-9


# ---------------------------------------------------------------------- rows


def test_rows_by_the_traced_factory_are_those_of_models_built_one_by_one(four_bars, benches):
    rng = np.random.default_rng(7)
    for family, tolerance in ((four_bars[0], 0.0), (benches[0], 4e-16)):
        nominal = np.array([family.nominal[name] for name in family.names])
        rows = nominal * rng.uniform(0.9, 1.1, (20, len(nominal)))
        assert family._rule is not None
        numbers, known = family._by_rule(family._rule, rows)
        assert known.all()
        built = np.array([family._row(row) for row in rows])
        assert (np.abs(numbers - built) <= tolerance * (1.0 + np.abs(built))).all()


def test_a_row_without_a_model_fails_alone_and_says_why(four_bars):
    family, _ = four_bars
    rows = family.parameters(
        [[1.0, 2.0, 1.5, 1.0], [-1.0, 2.0, 1.5, 1.0], [np.nan, 2.0, 1.5, 1.0], [1, 2, 1.5, 0.0]]
    )
    assert rows.good.tolist() == [True, False, False, False]
    assert "positive lengths" in rows.messages[1]
    assert "finite" in rows.messages[2]
    assert np.isnan(rows.p[1:]).all()
    assert np.isfinite(rows.p[0]).all()


def test_a_factory_that_cannot_be_traced_is_called_for_each_row():
    import math

    def stubborn(angle=0.2, mass=1.0):
        tip = (math.sin(angle), 0.0, -math.cos(angle))  # math wants floats
        b = ModelBuilder(name="stubborn")
        b.add_body("arm", 0, Revolute("y"), inertia=point_mass(mass, tip))
        return b.build()

    family = ModelFamily(stubborn, ["angle", "mass"])
    assert family._rule is None
    problem = family.problem([0.0], [0.0], (0.0, 1.0))
    p = family.parameters({"angle": [0.1, 0.7], "mass": 2.0}).p
    for angle, row in zip((0.1, 0.7), p):
        assert problem.f(0.0, [0.0, 0.0], row)[1] == pytest.approx(9.81 * np.sin(angle), abs=1e-12)


def test_a_factory_that_decides_by_value_is_asked_where_it_decides_otherwise():
    def doubled_above_two(mass=1.0):
        b = ModelBuilder(name="steps")
        heavy = 2.0 * mass if mass > 2.0 else mass
        b.add_body("arm", 0, Revolute("y"), inertia=point_mass(heavy, (0, 0, -1)))
        return b.build()

    family = ModelFamily(doubled_above_two, ["mass"])
    p = family.parameters([[1.5], [3.0]]).p
    masses = [family.model([m]).bodies[0].inertia.mass for m in (1.5, 3.0)]
    assert masses == [1.5, 6.0]
    problem = family.problem([0.5], [0.0], (0.0, 1.0), tau=[1.0])
    for mass, row in zip(masses, p):
        f = problem.f(0.0, [0.5, 0.0], np.append(row, 1.0))
        assert f[1] == pytest.approx(1.0 / mass - 9.81 * np.sin(0.5), rel=1e-13)


def test_other_structure_is_refused_with_what_differs():
    with pytest.raises(StructureError, match="different joints"):
        ModelFamily("spherical_pendulum", ["radius"])

    def driven(speed=1.0):
        b = ModelBuilder(name="driven")
        b.add_body("motor", 0, Driven(Revolute(), lambda t: [speed * t]), inertia=point_mass(1.0))
        b.add_body("arm", "motor", Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
        return b.build()

    with pytest.raises(StructureError, match=r"'motor'.*function"):
        ModelFamily(driven, ["speed"])
    with pytest.raises(ValueError, match="no parameter 'crnk'"):
        ModelFamily("four_bar", {"crnk": 1.0})
    with pytest.raises(ValueError, match="contacts, whose modes are followed for each model"):
        ModelFamily("bouncing_ball", ["mass"]).problem()


def test_placements_may_turn_through_right_angles():
    def turned(angle=0.7, offset=0.0):
        from multibody import Pose, rotations

        b = ModelBuilder(name="turned")
        b.add_body("first", 0, Revolute("z"), inertia=point_mass(1.0, (1, 0, 0)))
        pose = Pose(rotations.Rx(angle), (1.0, offset, 0.2))
        b.add_body("second", "first", Revolute("z"), pose, point_mass(0.7, (0.4, 0.1, 0)))
        return b.build()

    family = ModelFamily(turned, {"angle": 0.7, "offset": 0.0})
    problem = family.problem([0.3, 0.2], [1.0, 0.5], (0.0, 1.0))
    x = np.array([0.3, 0.2, 1.0, 0.5])
    for row in ([0.9, 0.3], [1.9, -0.2], [-2.4, 0.1], [0.7, 0.0]):
        p = family.parameters(np.array([row]))
        assert p.messages[0] == ""
        expected = as_ivp(turned(*row), x[:2], x[2:], (0.0, 1.0), traced=False).rhs(0.0, x)
        assert np.abs(problem.f(0.0, x, p.p[0]) - expected).max() < 1e-11


# ---------------------------------------------------------------------- starts


def test_starts_are_those_of_assemble_in_any_partition(four_bars):
    family, _ = four_bars
    rng = np.random.default_rng(3)
    rows = np.array([1.0, 2.0, 1.5, 1.0]) * rng.uniform(0.92, 1.08, (9, 4))
    rows[4] = [1.0, 9.0, 1.5, 1.0]  # does not close
    keywords = dict(positions={"crank": 0.9}, speeds={"crank": 4.0})
    found = family.starts(rows, [0.9, -0.7, 0.8], **keywords)
    assert found.good.sum() == 8
    assert "stays open" in found.messages[4]
    model = family.model(rows[2])
    q = assemble(model, [0.9, -0.7, 0.8], fixed=["crank"]).q
    v = consistent_velocity(model, q, [4.0, 0.0, 0.0], fixed=["crank"])
    assert np.abs(found.y0[2] - np.concatenate([q, v])).max() < ROUNDING
    for size in (1, 4):
        parts = [
            family.starts(rows[k : k + size], [0.9, -0.7, 0.8], **keywords).y0
            for k in range(0, 9, size)
        ]
        assert np.array_equal(np.concatenate(parts), found.y0, equal_nan=True)


def test_starts_with_quaternions():
    def hung(length=1.0):
        b = ModelBuilder(name="hung")
        b.add_body("bar", 0, Spherical(), inertia=Inertia(1.0, (length / 2, 0, 0), (0.1, 0.2, 0.2)))
        b.add_body("other", 0, Revolute("y"), (2, 0, 0), rod((0, 0, 0), (0, 0, -1), mass=1.0))
        b.add_loop("tip", "bar", "other", Spherical(), (length, 0, 0), (0, 0, -1))
        return b.build()

    family = ModelFamily(hung, {"length": 1.5})
    found = family.starts([[1.5], [1.6]])
    assert found.good.all()
    for row, y in zip(([1.5], [1.6]), found.y0):
        model = family.model(row)
        as_ivp(model, y[: model.nq], y[model.nq :], (0.0, 1.0))  # refuses what is not consistent


# ---------------------------------------------------------------------- runs


def test_runs_in_lanes_are_those_of_each_model_by_itself(four_bars):
    family, problem = four_bars
    rng = np.random.default_rng(11)
    rows = np.array([1.0, 2.0, 1.5, 1.0]) * rng.uniform(0.95, 1.05, (11, 4))
    found = family.starts(rows, [0.9, -0.7, 0.8], positions={"crank": 0.9}, speeds={"crank": 4.0})
    many = solve_many(problem, y0=found.y0, params=found.p, method="DOP853", rtol=1e-9, workers=1)
    assert many.success.all()
    assert "lanes" in many.engine
    for k in (0, 7):
        y = found.y0[k]
        alone = solve(as_ivp(family.model(rows[k]), y[:3], y[3:], (0.0, 1.0)),
                      method="DOP853", rtol=1e-9)  # fmt: skip
        assert np.abs(many.y[k] - alone.y[:, -1]).max() < 1e-10


def test_what_is_said_about_a_run_is_said_of_its_own_model(four_bars):
    family, problem = four_bars
    row = np.array([1.05, 2.1, 1.45, 1.3])
    found = family.starts(row[None], [0.9, -0.7, 0.8], speeds={"crank": 4.0})
    y, model = found.y0[0], family.model(row)
    run = solve(problem.with_(y0=y, params=found.p[0]), method="DOP853", rtol=1e-9)
    alone = solve(as_ivp(model, y[:3], y[3:], (0.0, 1.0)), method="DOP853", rtol=1e-9)
    energy = [s.problem.bind(s.problem.invariants["energy"])(0.0, y) for s in (run, alone)]
    assert energy[0] == energy[1]
    drift = [s.observed.drift for s in (run, alone)]
    assert np.allclose(drift[0], drift[1], rtol=0, atol=1e-15)
    assert run.quality.verdict == alone.quality.verdict


def test_controller_gains_reach_forces_as_parameters():
    def arm(mass=1.0, gain=2.0):  # the factory need not use what forces use
        b = ModelBuilder(name="arm", gravity=(0, 0, 0))
        b.add_body("arm", 0, Revolute("y"), inertia=point_mass(mass, (0, 0, -1)))
        return b.build()

    family = ModelFamily(arm, ["mass", "gain"])
    problem = family.problem(
        [1.0], [0.0], (0.0, 2.0), tau=lambda t, q, v, p: [-p[1] * q[0] - 0.0 * v[0]]
    )
    p = family.parameters([[1.0, 4.0], [4.0, 1.0]]).p
    many = solve_many(problem, params=p, rtol=1e-10, atol=1e-12, method="DOP853")
    assert many.y[:, 0] == pytest.approx([np.cos(4.0), np.cos(1.0)], abs=1e-9)


def test_forces_with_parameters_of_one_model():
    model = mechanisms.pendulum()
    problem = as_ivp(
        model, [0.3], [0.0], (0.0, 1.0), lambda t, q, v, p: [-p[0] * v[0]], params=[0.5]
    )
    runs = [solve(problem.with_(params=[c]), rtol=1e-10) for c in (0.0, 0.5)]
    assert abs(runs[1].y[1, -1]) < abs(runs[0].y[1, -1])
    fixed = as_ivp(model, [0.3], [0.0], (0.0, 1.0), lambda t, q, v: [-0.5 * v[0]])
    assert np.abs(runs[1].y[:, -1] - solve(fixed, rtol=1e-10).y[:, -1]).max() < 1e-12
    stiff = solve(problem, method="RADAU5", rtol=1e-8)
    assert np.abs(stiff.y[:, -1] - runs[1].y[:, -1]).max() < 1e-6
    with pytest.raises(ValueError, match=r"params=\[…\]"):
        as_ivp(model, [0.3], [0.0], (0.0, 1.0), lambda t, q, v, p: [-p[0] * v[0]])


def test_backwards_in_time_the_stabilisation_turns_round(four_bars):
    family, problem = four_bars
    p = family.parameters([[1.0, 2.0, 1.5, 1.2]]).p[0]
    there = solve(problem.with_(params=p), method="DOP853", rtol=1e-10)
    start = problem.with_(t_span=(1.0, 0.0), y0=there.y[:, -1], params=p)
    back = solve(start, method="DOP853", rtol=1e-10)
    assert np.abs(back.y[:, -1] - problem.y0).max() < 1e-6


def test_families_and_their_problems_go_to_other_processes():
    family = ModelFamily("pendulum", ["length"])
    problem = family.problem([1.0], [0.0], (0.0, 1.0)).with_values({"length": 1.3})
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(solve(again, rtol=1e-9).y, solve(problem, rtol=1e-9).y)
    assert again.family.names == ("length",)


@pytest.mark.parametrize("stabilise", ["projected", "augmented", "none"])
def test_other_ways_to_keep_loops_closed(stabilise):
    family = ModelFamily("four_bar", ["crank", "density"])
    start = start_of("four_bar", family.base)
    problem = family.problem(start[:3], start[3:], (0.0, 0.3), stabilise=stabilise)
    row = np.array([1.03, 1.1])
    y, p = start_of("four_bar", family.model(row)), family.parameters(row[None]).p
    alone = as_ivp(family.model(row), y[:3], y[3:], (0.0, 0.3), stabilise=stabilise)
    expected = solve(alone, method="DOP853", rtol=1e-9).y[:, -1]
    many = solve_many(problem, y0=y[None], params=p, method="DOP853", rtol=1e-9)
    assert many.engine.startswith("8 lanes")
    assert np.abs(many.y[0] - expected).max() < 1e-10


def test_model_files_are_families_of_their_numbers(tmp_path):
    path = tmp_path / "pendulum.toml"
    save_model(mechanisms.pendulum(), path)
    family = ModelFamily(path, ["gravity.2"])
    problem = family.problem([1.0], [0.0], (0.0, 1.0))
    p = family.parameters([[-1.62]]).p[0]
    assert problem.f(0.0, [1.0, 0.0], p)[1] == pytest.approx(-1.62 * np.sin(1.0), rel=1e-14)
    with pytest.raises(ValueError, match="did you mean 'gravity'"):
        ModelFamily(path, ["gravitty.2"])


def test_the_screen_lets_no_run_pass_that_the_review_remarks_on():
    family = ModelFamily("n_four_bar", ["length"])
    start = start_of("n_four_bar", family.base)
    nq = family.base.nq
    problem = family.problem(start[:nq], start[nq:], (0.0, 2.0))
    rows = family.parameters(np.linspace(0.98, 1.02, 3)[:, None])
    keep = [start_of("n_four_bar", family.model(p)) for p in rows.p]
    many = solve_many(problem, y0=np.array(keep), params=rows.p, method="DOP853", rtol=1e-10)
    for k, y in enumerate(keep):
        alone = solve(problem.with_(y0=y, params=rows.p[k]), method="DOP853", rtol=1e-10)
        assert many.status[k] == alone.status
        assert many.message[k] == alone.ending


@pytest.mark.parametrize("given", [(0.2, 0.4), (0.2, 0.4, 0.1)])
def test_starts_with_own_states_of_elements(given):
    """Gears are closed, own states stay, or have their start values where they are left out."""

    def geared(ratio=2.0, kp=1.0):
        b = ModelBuilder(name="geared")
        for name in ("arm", "motor"):
            b.add_body(name, 0, Revolute("y"), inertia=Inertia(1.0, (0, 0, 0), (1, 1, 1)))
        b.add_gear("gear", "motor", {"arm": ratio})
        b.add_element("pid", PID("arm", target=0.5, kp=kp, ki=1.0))
        return b.build()

    family = ModelFamily(geared, ["ratio", "kp"])
    rows = [[2.5, 1.0], [3.0, 2.0]]
    found = family.starts(rows, given, positions={"arm": 0.2}, speeds={"arm": 1.0})
    own = given[2] if len(given) == 3 else 0.0
    expected = [[0.2, 0.2 * n, own, 1.0, n] for n, _ in rows]
    np.testing.assert_allclose(found.y0, expected, atol=1e-12)
