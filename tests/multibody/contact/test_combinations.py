"""Contacts beside everything else that a model may have, drawn at random; checks that know nothing
of modes: gaps, complementarity, cones, equations of motion, the energy ledger.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import multibody as mb
from integrators import Solution, Status, solve, solve_many
from multibody.dynamics.acting import acting

G = 9.81
#: Of the draws 0 to 20, all of which were checked so, six that have everything among them and
#: take a second each.
SEEDS = (2, 3, 8, 14, 16, 18)
OPTIONS = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11, "dense_output": True}


def on_the_floor(b, rng, name, parent=0):
    """A body above the floor: a ball, a box, a rod in its plane, or a slider."""
    kind = rng.choice(["ball", "box", "rod", "slider"])
    law = {"restitution": float(rng.choice([0.0, 0.4])), "friction": float(rng.choice([0.0, 0.35]))}
    if kind == "ball":
        b.add_body(name, parent, mb.Free(), inertia=mb.sphere(mass=1.5, radius=0.2))
        shape, start = mb.Ball(0.2), [1, 0, 0, 0, 0, 0, 0.5]
    elif kind == "box":
        size = (0.4, 0.3, 0.2)
        b.add_body(name, parent, mb.Free(), inertia=mb.box(size, mass=2.0))
        turn = rng.normal(size=4) * [0, 0.2, 0.2, 0.2] + [1, 0, 0, 0]
        shape, start = mb.BoxCorners(size), [*turn / np.linalg.norm(turn), 0, 0, 0.5]
    else:
        b.add_body(f"{name} x", parent, mb.Prismatic("x"))
        b.add_body(f"{name} z", f"{name} x", mb.Prismatic("z"))
        rod = mb.rod((-0.3, 0, 0), (0.3, 0, 0), mass=1.0)
        joint = mb.Revolute("y") if kind == "rod" else mb.Prismatic("y")
        b.add_body(name, f"{name} z", joint, inertia=rod)
        shape, start = mb.Capsule((-0.3, 0, 0), (0.3, 0, 0), 0.05), [0.0, 0.4, 0.0]
    return shape, law, start


def drawn(seed):
    """A model, its start, τ and f_ext, and what it has."""
    rng = np.random.default_rng(seed)
    b, has = mb.ModelBuilder(name=f"drawn {seed}"), set()
    floor, start = 0, []
    if rng.random() < 0.4:
        has.add("drive")
        shaken = mb.Driven(mb.Prismatic("z"), lambda t: [0.03 * np.sin(7 * t)])
        b.add_body("floor", 0, shaken, inertia=mb.point_mass(1.0))
        floor = "floor"
    shape, law, q = on_the_floor(b, rng, "body")
    b.add_contact("ground", floor, mb.HalfSpace(), "body", shape, **law)
    start += q
    more = rng.permutation(["arm", "loop", "spring", "element", "gear", "tau", "f_ext"])[:3]
    if "arm" in more or "element" in more or "tau" in more:
        has.add("arm")
        damping = float(rng.choice([0.0, 0.2]))
        b.add_body(
            "arm", 0, mb.Revolute("y"), (0, 2, 0.6), mb.rod((0, 0, 0), (0.8, 0, 0), mass=1.0),
            damping=damping,
        )  # fmt: skip
        b.add_contact(
            "stop", 0, mb.HalfSpace((0, 0, 1), (0, 0, 0.1)), "arm", mb.Vertex((0.8, 0, 0)),
            restitution=0.3, friction=float(rng.choice([0.0, 0.2])),
        )  # fmt: skip
        start += [-0.3]
    if "element" in more:
        has.add("element")
        which = int(rng.integers(4))
        has.add(("motor", "PID", "joint spring", "follower")[which])
        made = (
            lambda: mb.DCMotor("arm", 6.0, 1.2, 0.05, 0.3),
            lambda: mb.PID("arm", 0.2, kp=4.0, ki=3.0, kd=0.5),
            lambda: mb.JointSpring("arm", lambda x, v: -3.0 * x),
            lambda: mb.PID("arm", lambda t: 0.3 * np.sin(3 * t), kp=6.0, kd=0.4),
        )[which]()
        b.add_element("law", made)
    if "loop" in more:
        has.add("loop")
        rods = [mb.rod((0, 0, 0), (x, 0, 0), mass=x) for x in (0.5, 1.0, 0.75)]
        b.add_body("crank", 0, mb.Revolute("y"), (0, -2, 1.0), rods[0])
        b.add_body("coupler", "crank", mb.Revolute("y"), (0.5, 0, 0), rods[1])
        b.add_body("rocker", 0, mb.Revolute("y"), (1.1, -2, 1.0), rods[2])
        b.add_loop("C", "coupler", "rocker", mb.Revolute("y"), (1, 0, 0), (0.75, 0, 0))
        plane = mb.HalfSpace((0, 0, 1), (0, 0, 0.75))
        b.add_contact("bar", 0, plane, "coupler", mb.Vertex((0.5, 0, 0)), restitution=0.5)
        start += [0.3, -0.8, -1.2]
    if "gear" in more:
        has.add("gear")
        wheel = mb.rod((0, 0, 0), (0.3, 0, 0), mass=0.5)
        b.add_body("small", 0, mb.Revolute("y"), (0, 4, 0.5), wheel)
        b.add_body("large", 0, mb.Revolute("y"), (1, 4, 0.5), wheel)
        b.add_gear("teeth", "small", {"large": -2.0})
        plane = mb.HalfSpace((0, 0, 1), (0, 0, 0.3))
        b.add_contact("pawl", 0, plane, "small", mb.Vertex((0.3, 0, 0)), restitution=0.2)
        start += [0.0, 0.0]
    if "spring" in more:
        has.add("spring")
        b.add_spring("string", 0, (0.3, 0, 1.2), "body", (0, 0, 0), 20.0, rest=0.7)
    model = b.build()
    tau = f_ext = None
    if "tau" in more:
        has.add("tau")
        at = model.v_index[model.number("arm") - 1]

        def tau(t, q, v):
            return 0.5 * np.sin(5 * t) * (np.arange(model.nv) == at.start)

    if "f_ext" in more:
        has.add("f_ext")

        sideways = np.zeros((model.n_bodies, 6))
        sideways[model.number("body") - 1, 3] = 1.0

        def f_ext(t, q, v):
            return 3.0 * np.sin(4 * t) * sideways

    q = np.array([*start, *np.zeros(model.n_states)])
    if "loop" in has or "gear" in has:
        q = mb.assemble(model, q).q
    return model, q, tau, f_ext, has


def check(model, solution, tau, f_ext, tolerance=1e-7):
    """What holds for every run, from states and forces alone."""
    seen = mb.contact_forces(model, solution)
    mu = np.array([c.friction for c in model.contacts for _ in c.points() or [0]])
    size = max(1.0, float(np.abs(seen.force).max(initial=0.0)))
    assert seen.gap.min() > -1e-8
    assert seen.normal_force.min() >= -1e-9 * size
    assert np.abs(seen.gap * seen.normal_force).max() < tolerance * size  # complementarity
    assert (seen.friction <= mu[:, None] * seen.normal_force + 1e-8 * size).all()
    for part, stay in zip(solution.parts, solution.modes):
        if stay.end - stay.start < 1e-3:
            continue
        t = 0.5 * (stay.start + stay.end)
        y = part.sol(t)
        h = 1e-5 * (stay.end - stay.start)
        rate = (part.sol(t + h) - part.sol(t - h))[model.nq :] / (2 * h)
        q, v = y[: model.nq], y[model.nq :]

        here = SimpleNamespace(t=np.array([t]), y=y[:, None])
        wrenches = np.zeros((model.n_bodies, 6)) if f_ext is None else f_ext(t, q, v)
        there = mb.contact_forces(model, solution, here)
        k = mb.contact_kinematics(model, q, v, t=t)
        point = 0
        for contact in model.contacts:
            for _, turned, *_ in contact.points():
                force = there.force[0, point]
                wrench = np.concatenate([np.cross(k.point[point], force), force])
                a, b = (contact.body_a, contact.body_b)[:: -1 if turned else 1]
                if b:
                    wrenches[b - 1] += wrench
                if a:
                    wrenches[a - 1] -= wrench
                point += 1
        given = np.zeros(model.nv) if tau is None else tau(t, q, v)
        if model.elements:  # which FD leaves out
            acted = acting(model, t, q, v)
            given, wrenches = given + acted.joint_forces(), wrenches + acted.wrenches()
        if model.bonds:
            a = mb.constrained_accelerations(model, q, v, given, wrenches, t=t).accelerations
        else:
            a = mb.FD(model, q, v, given, wrenches, t=t)
        np.testing.assert_allclose(rate, a, atol=2e-4 * (1.0 + np.abs(a).max()))
    ledger = mb.energy_ledger(model, solution, tau, f_ext)
    scale = max(1.0, float(np.abs(ledger.energy).max()))
    allowed = tolerance * scale + 10 * ledger.quadrature_error
    assert np.abs(ledger.balance).max() < allowed, (np.abs(ledger.balance).max(), allowed)


@pytest.mark.parametrize("seed", SEEDS)
def test_contacts_beside_everything_else(seed):
    model, q, tau, f_ext, _ = drawn(seed)
    problem = mb.as_ivp(model, q, None, (0.0, 0.7), tau, f_ext, restitution_law="poisson")
    solution = solve(problem, **OPTIONS)
    assert solution.success, solution.message
    assert len(solution.modes) > 1
    check(model, solution, tau, f_ext)


@pytest.mark.parametrize("seed", [2, 14, 18])
@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_both_roads_lead_to_one_place(seed, law):
    """Impacts are late by up to a step, at speeds of a few metres a second."""
    model, q, tau, f_ext, _ = drawn(seed)
    problem = mb.as_ivp(model, q, None, (0.0, 0.5), tau, f_ext, restitution_law=law)
    right = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11).y[: model.nq, -1]
    for step in (2e-3, 2.5e-4):
        run = solve(problem, method="MoreauJean", step=step)
        assert run.success, run.message
        assert np.abs(run.y[: model.nq, -1] - right).max() < 4.0 * step


def test_steps_that_cannot_tell_one_instant_from_two_say_so():
    """A box falls from an edge onto its face: both corners at once, had the edge not been stopped
    at two depths. Runs by ever shorter steps stay 2 cm away from the one by modes.
    """
    model, q, tau, f_ext, _ = drawn(5000)
    problem = mb.as_ivp(model, q, None, (0.0, 0.34), tau, f_ext)
    run = solve(problem, method="MoreauJean", step=2.5e-4)
    assert "'ground[0]' and 'ground[4]' landed within 3 steps at t = 0.32" in run.message
    ball = solve(mb.mechanisms.entry("bouncing_ball").problem(), method="MoreauJean", step=2e-3)
    assert ball.message == "reached the end of the interval"


def thrown(params):
    """A ball on a rough lane that a force pushes; parameters are its size and frequency."""
    entry = mb.mechanisms.entry("bowling_ball")
    model = entry.model()

    def tau(t, q, v, p):
        return p[0] * np.sin(p[1] * t) * np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])

    q, v = entry.start(model)
    return mb.as_ivp(model, q, v, (0.0, 1.2), tau, params=params)


def test_many_runs_files_and_copies_see_the_same_instants(tmp_path):
    problem = thrown([2.0, 3.0])
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11}
    alone = [solve(problem.with_(params=p), **options) for p in ([2.0, 3.0], [-4.0, 5.0])]
    assert [stay.mode for stay in alone[0].modes] != ["free"]
    many = solve_many(problem, params=[[2.0, 3.0], [-4.0, 5.0]], **options)
    for k, solution in enumerate(alone):
        assert solution.success
        np.testing.assert_array_equal(many.y[k], solution.y[:, -1])
    alone[0].save(tmp_path / "run.npz")
    kept = Solution.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(kept.y, alone[0].y)
    assert [stay.mode for stay in kept.modes] == [stay.mode for stay in alone[0].modes]


def test_an_interrupt_keeps_what_was_reached():
    entry = mb.mechanisms.entry("bouncing_ball")
    model = entry.model()
    calls = []

    def tau(t, q, v):
        calls.append(t)
        if len(calls) > 400:
            raise KeyboardInterrupt
        return np.zeros(1)

    problem = mb.as_ivp(model, *entry.start(model), (0.0, 4.0), tau, traced=False)
    calls.clear()
    solution = solve(problem, method="DOP853", rtol=1e-9, on_interrupt="return")
    assert solution.status == Status.INTERRUPTED
    assert 0.4 < solution.t[-1] < 4.0
    assert len(solution.modes) > 1
    assert mb.contact_kinematics(model, solution.y[:1, -1]).gap[0] > -1e-8
