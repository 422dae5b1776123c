"""Contacts of any size behave alike; problems with contacts can be copied, pickled and shared."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import multibody as mb
from integrators import solve

G = 9.81


def dropped_rod(size, unit=1.0):
    """A rod of a length of `size` metres that is dropped, in units of `unit` metres."""
    L, g = size / unit, G / unit
    b = mb.ModelBuilder(name="rod", gravity=(0, 0, -g))
    b.add_body("x", 0, mb.Prismatic("x"))
    b.add_body("z", "x", mb.Prismatic("z"))
    b.add_body(
        "rod", "z", mb.Revolute("y"), inertia=mb.rod((-L / 2, 0, 0), (L / 2, 0, 0), mass=1.0)
    )
    for name, x in (("left", -L / 2), ("right", L / 2)):
        rough = {"restitution": 0.4, "friction": 0.3}
        b.add_contact(name, 0, mb.HalfSpace(), "rod", mb.Vertex((x, 0, 0)), **rough)
    model, time = b.build(), np.sqrt(size)
    speed = L / time
    atol = 1e-10 * np.array([L, L, 1.0, speed, speed, 1.0 / time])
    start = [0.0, 0.8 * L, 0.3], [0.4 * speed, 0.0, 0.2 / time]
    problem = mb.as_ivp(model, *start, (0.0, 3.0 * time), restitution_law="poisson")
    return problem, solve(problem, method="DOP853", rtol=1e-9, atol=atol), time, L


@pytest.mark.parametrize(("size", "unit"), [(1e-3, 1.0), (1e3, 1.0), (1.0, 1e-3), (1e-4, 1e-3)])
def test_a_mechanism_of_any_size_in_any_unit_behaves_alike(size, unit):
    _, usual, _, _ = dropped_rod(1.0)
    _, solution, time, L = dropped_rod(size, unit)
    assert usual.success
    assert solution.success, solution.message
    words = [[stay.mode.split("°")[0][:12] for stay in s.modes] for s in (usual, solution)]
    assert words[0] == words[1]
    assert "rests" in words[0][-1] or "sticks" in words[0][-1]
    starts = [[stay.start for stay in s.modes] for s in (usual, solution)]
    np.testing.assert_allclose(np.divide(starts[1], time), starts[0], atol=1e-7)
    np.testing.assert_allclose(solution.y[0, -1] / L, usual.y[0, -1], atol=1e-6)


def test_problems_do_not_disturb_each_other():
    """What is on its edge where a run starts belongs to the run, not to the problem."""
    problem = mb.mechanisms.entry("bowling_ball").problem()
    first = solve(problem, method="DOP853", rtol=1e-9)
    other = problem.with_(y0=np.where(np.arange(13) == 6, problem.y0 + 1.0, problem.y0))
    assert other.start == "free"
    again, thrown = (solve(p, method="DOP853", rtol=1e-9) for p in (problem, other))
    np.testing.assert_array_equal(again.y, first.y)
    assert thrown.modes[0].mode == "free"
    copied = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(solve(copied, method="DOP853", rtol=1e-9).y, first.y)
