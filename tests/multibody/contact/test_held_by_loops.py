"""Contacts at points that loops hold: nothing moves there, and no force is needed."""

import numpy as np
import pytest

import multibody as mb
from integrators import solve

START = [0.6, 2.5, 0.2]


def truss(floor=None, friction=0.0):
    """Two rods with a common apex, which cannot move, and a third that swings from one of them."""
    b = mb.ModelBuilder(gravity=(0, 0, -9.81), name="truss")
    rod = mb.rod((0, 0, 0), (1, 0, 0), mass=1.0)
    b.add_body("left", 0, mb.Revolute("y"), (0, 0, 1), rod)
    b.add_body("right", 0, mb.Revolute("y"), (1.3, 0, 1.1), rod)
    ends = {"placement_predecessor": (1, 0, 0), "placement_successor": (1, 0, 0)}
    b.add_loop("apex", "left", "right", mb.Revolute("y"), **ends)
    pendulum = mb.rod((0, 0, 0), (0, 0, -0.3), mass=0.2)
    b.add_body("swing", "left", mb.Revolute("y"), (0.5, 0, 0), pendulum)
    if floor is not None:
        space = mb.HalfSpace(point=(0, 0, floor))
        b.add_contact("tip", 0, space, "left", mb.Vertex((1, 0, 0)), friction=friction)
        b.add_contact("foot", 0, mb.HalfSpace(point=(0, 0, -9)), "swing", mb.Ball(0.05))
    return b.build()


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_a_point_that_loops_hold_rests_without_a_force(friction):
    free = truss()
    q = mb.assemble(free, START).q
    floor = mb.point_position(free, q, "left", (1, 0, 0))[2]
    model, v = truss(floor, friction), np.array([0.0, 0.0, 1.5])
    found = mb.contact_accelerations(model, q, v)
    expected = mb.constrained_accelerations(free, q, v)
    assert found.states == ("sticks" if friction else "rests", "apart")
    np.testing.assert_allclose(found.accelerations, expected.accelerations, atol=1e-12)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-9, atol=1e-9)
    assert not found.forces.any()


def test_a_run_goes_on_beside_it():
    free = truss()
    q = mb.assemble(free, START).q
    floor = mb.point_position(free, q, "left", (1, 0, 0))[2]
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11}
    run = solve(mb.as_ivp(truss(floor), q, [0, 0, 1.5], (0, 1)), **options)
    alone = solve(mb.as_ivp(free, q, [0, 0, 1.5], (0, 1)), **options)
    assert run.success, run.message
    np.testing.assert_allclose(run.y[:, -1], alone.y[:, -1], atol=1e-7)
