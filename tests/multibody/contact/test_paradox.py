"""Painlevé's paradox: rigid bodies with friction that have no motion, or several."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import multibody as mb
from integrators import Status, solve
from multibody.contact.cones import judged
from multibody.contact.lcp import LCPError
from multibody.contact.paradox import another_motion, any_motion


def motions(W, b, mu, slip):
    """All motions in a plane (second tangents do not move): every state of every point, solved."""
    n, found = len(mu), []
    choices = [["apart", "along"] if s.any() else ["apart", "stick", "along", "back"] for s in slip]
    for states in product(*choices):
        forces, still = [], []
        for i, state in enumerate(states):
            normal, line = np.eye(3 * n)[3 * i], np.eye(3 * n)[3 * i + 1]
            line = -line if state == "back" or slip[i, 0] < 0.0 else line
            if state == "stick":
                forces += [normal, line]
                still += [normal, line]
            elif state != "apart":
                forces.append(normal - mu[i] * line)
                still.append(normal)
        r = np.zeros(3 * n)
        if forces:
            A = np.array(still) @ W @ np.array(forces).T
            r = np.linalg.lstsq(A, -np.array(still) @ b, rcond=1e-12)[0] @ np.array(forces)
        answer = judged(W, b, mu, r, slip)
        if answer.residual < 1e-9 and all(np.abs(answer.u - u).max() > 1e-6 for u in found):
            found.append(answer.u)
    return found


@pytest.mark.parametrize("sliding", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_whether_there_is_one_motion(n, sliding):
    """Against all states, one by one; random mechanisms in a plane with much friction."""
    rng, seen = np.random.default_rng(10 + n), [0, 0, 0]
    for _ in range(40):
        J = np.zeros((3 * n, 4))
        J.reshape(n, 3, 4)[:, :2] = rng.normal(size=(n, 2, 4))
        W, b, mu = J @ J.T, J @ rng.normal(size=4), rng.choice([0.3, 2.0, 4.0], size=n)
        slip = np.zeros((n, 2))
        slip[:, 0] = rng.choice([-1.0, 1.0], size=n) * (sliding & (rng.random(n) < 0.8))
        count = min(len(motions(W, b, mu, slip)), 2)
        seen[count] += 1
        try:
            found = any_motion(W, b, mu, slip)
        except LCPError:
            assert count == 0
            continue
        other = another_motion(W, b, mu, slip, found)
        assert count == (1 if other is None else 2)
        assert other is None or judged(W, b, mu, other.r.ravel(), slip).residual < 1e-9
    assert min(seen[1:]) > 0
    assert seen[0] > 0 or not sliding


def rod_on_its_tip(mu):
    b = mb.ModelBuilder(name="rod")
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"))
    b.add_body("rod", "z", mb.Revolute("y"), inertia=mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0))
    b.add_contact("tip", 0, mb.HalfSpace(), "rod", mb.Vertex((0, 0, -0.5)), friction=mu)
    return b.build()


def test_a_rod_that_may_lean_or_lift_is_told():
    """At rest, and turned by a moment: its tip sticks, or leaves, and both obey Coulomb's law."""
    angle = 0.6
    q, still, moment = [0.0, 0.5 * np.cos(angle), angle], np.zeros(3), [0.0, 0.0, 3.0]
    with pytest.raises(mb.PainleveError, match=r"'tip' stands where .* several motions"):
        mb.contact_accelerations(rod_on_its_tip(2.0), q, still, moment)
    with pytest.raises(mb.PainleveError, match="several motions"):
        mb.as_ivp(rod_on_its_tip(2.0), q, still, (0.0, 1.0), lambda t, q, v: np.array(moment))
    assert mb.contact_accelerations(rod_on_its_tip(0.5), q, still, moment).states == ("apart",)
    assert mb.contact_accelerations(rod_on_its_tip(2.0), q, still).states == ("sticks",)


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_a_ball_that_just_fits_between_two_walls(mu):
    """With friction any force may squeeze it: it falls, or slower, or not at all."""
    b = mb.ModelBuilder(name="ball in a slit")
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.1))
    for name, side in (("left", 1), ("right", -1)):
        wall = mb.HalfSpace((side, 0, 0), (-0.1 * side, 0, 0))
        b.add_contact(name, 0, wall, "ball", mb.Ball(0.1), friction=mu)
    model = b.build()
    if mu == 0.0:
        found = mb.contact_accelerations(model, model.neutral(), np.zeros(6))
        np.testing.assert_allclose(found.accelerations, [0, 0, 0, 0, 0, -9.81], atol=1e-12)
        return
    with pytest.raises(mb.PainleveError, match=r"and 1 more stand where .* several motions"):
        mb.contact_accelerations(model, model.neutral(), np.zeros(6))


def test_a_rocking_block_comes_to_rest():
    """Its rocks shrink by Housner's factor; the last ones are summed, and it stands to the end."""
    problem = mb.mechanisms.entry("rocking_block").problem().with_(t_span=(0.0, 10.0))
    solution = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)
    assert solution.success, solution.message
    assert solution.t[-1] == 10.0
    *_, before, last, bounces, rest = solution.modes
    assert bounces.mode == "left sticks, right sticks, after the last bounces that can be seen"
    assert rest.mode == "left sticks, right sticks"
    factor = 1.0 - 1.5 * np.sin(np.arctan2(0.2, 0.8)) ** 2
    assert last.end - last.start == pytest.approx(factor * (before.end - before.start), rel=1e-4)
    series = (last.end - last.start) * factor / (1.0 - factor)
    assert bounces.end - bounces.start == pytest.approx(series, rel=1e-4)
    np.testing.assert_allclose(solution.y[:, -1], [0, 0.4, 0, 0, 0, 0], atol=1e-9)


def test_both_roads_refuse_energy_that_an_impact_would_make():
    """Kane's example: a rod thrown on its tip with friction would gain 4 % of its energy."""
    b = mb.ModelBuilder(name="rod", gravity=(0.0, 0.0, 0.0))
    b.add_body("rod", 0, mb.Planar("y"), inertia=mb.rod((0, 0, -0.5), (0, 0, 0.5), mass=1.0))
    end = mb.Vertex((0.0, 0.0, -0.5))
    b.add_contact("tip", 0, mb.HalfSpace(), "rod", end, restitution=0.9, friction=0.6)
    model = b.build()
    q, v = np.array([-0.532, 0.0, 0.0]), [-0.879, -1.188, -2.454]
    q[1] = 1e-3 - mb.contact_kinematics(model, q).gap[0]
    problem = mb.as_ivp(model, q, v, (0.0, 0.1))
    for how in ({"method": "DOP853"}, {"method": "MoreauJean", "step": 1e-4}):
        run = solve(problem, **how)
        assert run.status == Status.FUNCTION_RAISED
        assert isinstance(run.exception, mb.EnergyGainError)
        assert "'tip': Newton's restitution with friction would make 0.15" in str(run.exception)
        sound = mb.as_ivp(model, q, v, (0.0, 0.1), restitution_law="poisson")
        assert solve(sound, **how).success
