"""The walker, stick and slip, and a joint with clearance; their energy, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import IVP, Event, solve
from multibody import mechanisms
from multibody.mechanisms.contact_machines import COMPASS_GAIT

G = 9.81
SHARP = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "dense_output": True}


def run(name, t_end=None, options=SHARP, **parameters):
    entry = mechanisms.entry(name)
    model = entry.model(**parameters)
    problem = mb.as_ivp(model, *entry.start(model), (0.0, t_end or entry.t_end))
    solution = solve(problem, **options)
    assert solution.success, solution.message
    return model, solution


def momentum_is_balanced(model, solution):
    """Impulses of `impacts` explain every jump of the run's own velocities."""
    nq, count = model.nq, 0
    hits = {hit.t: hit for hit in mb.impacts(model, solution)}
    following = [stay.mode for stay in solution.modes[1:]]
    for before, after, after_mode in zip(solution.parts, solution.parts[1:], following):
        t, y = before.reached
        if t not in hits or "last bounces" in after_mode:
            continue  # bounces that are too low to be seen are summed with the last one
        k = mb.contact_kinematics(model, y[:nq], y[nq:], t=t)
        impulse = np.einsum("nkv,nk->v", k.T, hits[t].result.impulses)
        change = mb.crba(model, y[:nq]) @ (after.y[nq:, 0] - y[nq:])
        np.testing.assert_allclose(change, impulse, atol=1e-12)
        count += 1
    return count


def test_a_slider_crank_with_clearance_keeps_its_books():
    model, solution = run("loose_slider_crank", 0.12)
    assert momentum_is_balanced(model, solution) >= 5
    for part in solution.parts:
        total = mb.energy(model, part).total
        assert np.ptp(total) < 1e-10 * np.abs(total).max()
    assert solution.observed.gap.min() > -1e-8
    ledger = mb.energy_ledger(model, solution)
    assert np.abs(ledger.balance).max() < 1e-9
    assert ledger.work["impacts"][-1] < -1e-3
    assert "work of impacts" in ledger.summary()
    assert (np.diff(ledger.work["impacts"]) <= 1e-12).all()


def test_the_rimless_wheel_finds_its_speed():
    """McGeer's ratio at every impact, the descent between impacts, and so the speed in the end."""
    spokes, slope = 8, 0.1
    model, solution = run("rimless_wheel", spokes=spokes, slope=slope)
    ratio = (np.cos(2 * np.pi / spokes) + 0.1) / 1.1
    gain = 4 * G * np.sin(np.pi / spokes) * np.sin(slope) / 1.1
    hits = mb.impacts(model, solution)
    assert len(hits) >= 6
    before = [
        part.reached[1][5] for part in solution.parts if part.reached[0] in {h.t for h in hits}
    ]
    after = [hit.result.velocities[2] for hit in hits]
    np.testing.assert_allclose(np.divide(after, before), ratio, rtol=1e-9)
    np.testing.assert_allclose(np.square(before[1:]) - np.square(after[:-1]), gain, rtol=1e-8)
    assert before[-1] == pytest.approx(np.sqrt(gain / (1 - ratio**2)), rel=5e-3)
    ledger = mb.energy_ledger(model, solution)
    assert np.abs(ledger.balance).max() < 1e-8
    assert momentum_is_balanced(model, solution) == len(hits)


def compass_step(x, slope=0.0525, m=5.0, hip=10.0, a=0.5, b=0.5, g=9.8):
    """State after a step, and its time, by the equations of Goswami, Thuilot and Espiau.

    x has the angles of the leg that swings and of the one that stands, then their rates.
    """
    length = a + b

    def f(t, x):
        n, s, dn, ds = x
        mixed = m * length * b
        M = [
            [m * b**2, -mixed * np.cos(s - n)],
            [-mixed * np.cos(s - n), (hip + m) * length**2 + m * a**2],
        ]
        turn = mixed * np.sin(s - n) * np.array([ds**2, -(dn**2)])
        weight = np.array([m * b * np.sin(n), -(hip * length + m * a + m * length) * np.sin(s)])
        return np.concatenate([[dn, ds], np.linalg.solve(M, -turn - g * weight)])

    sharp = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
    landing = Event(lambda t, x: x[0] + x[1] + 2 * slope, terminal=True)
    begun = solve(IVP(f, x, (0.0, 0.5)), **sharp).y[:, -1]  # past the place where feet scuff
    found = solve(IVP(f, begun, (0.5, 2.0), events=landing), **sharp)
    n, s, dn, ds = found.y[:, -1]
    c = np.cos(s - n)
    before = [
        [-m * a * b, -m * a * b + (hip * length**2 + 2 * m * a * length) * c],
        [0, -m * a * b],
    ]
    after = [
        [m * b * (b - length * c), (m + hip) * length**2 + m * a**2 - m * b * length * c],
        [m * b**2, -m * b * length * c],
    ]
    return [s, n, *np.linalg.solve(after, np.dot(before, [dn, ds]))], found.t[-1]


def test_the_compass_walker_repeats_its_step():
    """Contact and impact against the equations of the literature, and the figures in it."""
    stance, swing, stance_rate, swing_rate = COMPASS_GAIT
    state = [-swing, -stance, -swing_rate, -stance_rate]
    np.testing.assert_allclose(state, [-0.3234, 0.2187, -0.3772, -1.0918], atol=1.5e-3)  # printed
    again, period = compass_step(state)
    np.testing.assert_allclose(again, state, atol=1e-10)
    model, solution = run("compass_walker")
    assert [stay.mode for stay in solution.modes] == [f"stone{k} sticks" for k in range(6)]
    starts = [stay.start for stay in solution.modes]
    np.testing.assert_allclose(np.diff(starts), period, atol=1e-9)
    for k, part in enumerate(solution.parts):
        legs = part.y[[2, 3, 6, 7], 0][[0, 1, 2, 3] if k % 2 == 0 else [1, 0, 3, 2]]
        np.testing.assert_allclose(legs, COMPASS_GAIT, atol=1e-8)
    ledger = mb.energy_ledger(model, solution)
    assert np.abs(ledger.balance).max() < 1e-8
    assert momentum_is_balanced(model, solution) == 5
    # What a step descends pays for its impact.
    down = 20.0 * 9.8 * 2 * np.sin(0.5 * (swing - stance)) * np.sin(0.0525)
    loss = [hit.result.energy_loss for hit in mb.impacts(model, solution)]
    np.testing.assert_allclose(loss, down, rtol=1e-9)


def test_stick_and_slip_and_the_work_of_the_belt():
    """The belt's drive pays for the friction and for what the spring stores."""
    k, mu, speed = 100.0, 0.4, 0.2
    model, solution = run("stick_slip_oscillator")
    omega, rest = 10.0, mu * G / k
    assert [stay.mode.split()[1] for stay in solution.modes] == ["slides", "sticks", "slides"]
    amplitude = 0.1 - rest
    caught = (np.pi + np.arcsin(speed / (amplitude * omega))) / omega
    x = rest + amplitude * np.cos(omega * caught)
    freed = caught + (rest - x) / speed
    starts = [stay.start for stay in solution.modes[1:]]
    np.testing.assert_allclose(starts, [caught, freed], atol=1e-9)
    swing = speed / omega * np.sin(omega * (1.0 - freed))
    assert solution.y[0, -1] == pytest.approx(rest + swing, abs=1e-8)
    ledger = mb.energy_ledger(model, solution)
    assert np.abs(ledger.balance).max() < 1e-9
    # μmg times the way of the belt past the block, which it does not pass while the block sticks.
    passed = (speed * caught - (x - 0.1)) + (speed * (1.0 - freed) - swing)
    assert ledger.work["friction"][-1] == pytest.approx(-mu * G * passed, rel=1e-8)


@pytest.mark.parametrize(("restitution", "friction"), [(0.5, 0.3), (0.0, 0.3)])
def test_drives_work_against_impulses(restitution, friction):
    """A table that is shaken, with an arm that hits a stop and a ball that falls on it.

    The ledger was off by the work of the table's drive at every impact.
    """
    b = mb.ModelBuilder(name="shaken table")
    shaken = mb.Driven(mb.Prismatic("z"), lambda t: [0.1 * np.sin(5 * t)])
    b.add_body("table", 0, shaken, inertia=mb.point_mass(1.0))
    b.add_body("arm", "table", mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (1, 0, 0), mass=1.0))
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("ball", "x", mb.Prismatic("z"), inertia=mb.sphere(mass=2.0, radius=0.1))
    law = {"restitution": restitution, "friction": friction}
    b.add_contact("top", "table", mb.HalfSpace(), "ball", mb.Ball(0.1), **law)
    stop = mb.HalfSpace((0, 0, 1), (0, 0, -0.7))
    b.add_contact("stop", 0, stop, "arm", mb.Ball(0.05, (1, 0, 0)), **law)
    model = b.build()
    problem = mb.as_ivp(model, [0.2, 0, 0.4], [0, 0.3, 0], (0.0, 1.0))
    solution = solve(problem, **SHARP)
    assert solution.success, solution.message
    hits = mb.impacts(model, solution)
    assert {name for hit in hits for name in hit.names} == {"top", "stop"}
    ledger = mb.energy_ledger(model, solution)
    assert np.abs(ledger.balance).max() < 1e-9
    assert max(abs(hit.result.drive_work) for hit in hits) > 0.1
    assert min(hit.result.energy_loss for hit in hits) >= 0.0


def test_books_without_dense_output_and_of_other_runs():
    model, solution = run("bouncing_ball", 0.9, {"method": "RK4", "step": 0.02}, restitution=0.2)
    ledger = mb.energy_ledger(model, solution)
    first = mb.impacts(model, solution)[0]
    assert first.result.energy_loss == pytest.approx(0.96 * G, rel=1e-9)
    assert ledger.work["impacts"][-1] == pytest.approx(-G, abs=1e-8)
    assert np.abs(ledger.balance).max() < 1e-8
    problem = mechanisms.entry("bouncing_ball").problem()
    stepped = solve(problem, method="MoreauJean", step=0.01)
    with pytest.raises(ValueError, match="event-driven"):
        mb.energy_ledger(problem.model, stepped)
    sampled = solve(problem.with_(t_span=(0.0, 1.5)), t_eval=[0.0, 0.7, 1.4])
    with pytest.raises(ValueError, match="dense_output=True"):
        mb.energy_ledger(problem.model, sampled)
