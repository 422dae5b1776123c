"""Numbers that are zero in a good run, where they are not: their values, not their size."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import multibody as mb
from multibody.runs.closed import gap_invariants


def pulled_apart():
    """A four-bar whose velocities tear its loop."""
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    return model, q, v + np.array([0.3, -0.2, 0.4])


def test_loop_gap_rate_is_the_rate_of_the_gap():
    """Against differences of δ along the motion."""
    model, q, v = pulled_apart()
    h = 1e-6
    gaps = [mb.constraints(model, model.integrate(q, v, s)).delta for s in (h, -h)]
    expected = np.abs(gaps[0] - gaps[1]).max() / (2 * h)
    found = gap_invariants(model)
    assert expected > 0.1
    assert found["loop gap rate"](0.0, np.concatenate([q, v])) == pytest.approx(expected, rel=1e-7)
    apart = model.integrate(q, v, 0.01)
    gap = np.abs(mb.constraints(model, apart).delta).max()
    assert found["loop gap"](0.0, np.concatenate([apart, v])) == pytest.approx(gap)
    assert gap > 1e-3


def test_power_of_constraints_is_what_the_energy_gains_where_loops_open():
    """dE/dt by differences along the motion; nothing else acts on this mechanism."""
    model, q, v = pulled_apart()
    a = mb.constrained_accelerations(model, q, v).accelerations
    h = 1e-6
    ends = [mb.energy(model, model.integrate(q, v, s), v + s * a).total for s in (h, -h)]
    expected = (ends[0] - ends[1]) / (2 * h)
    state = SimpleNamespace(t=np.zeros(1), y=np.concatenate([q, v])[:, None])
    power = mb.energy_ledger(model, state).power
    assert abs(expected) > 0.1
    assert power["constraints"][0] == pytest.approx(expected, rel=1e-6)
    assert all(np.abs(x).max() < 1e-12 for name, x in power.items() if name != "constraints")


def test_assembly_takes_back_turns_of_every_coordinate_of_a_joint():
    """A sleeve that can turn and slide: the angle is unwound, the shift is not, wherever it is."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    inertia = mb.Inertia(1.0, (0.2, 0, 0), (1, 1, 1))
    b.add_body("post", 0, mb.Prismatic("x"), inertia=inertia)
    b.add_body("sleeve", "post", mb.Cylindrical("z"), inertia=inertia)
    b.add_loop("pin", 0, "sleeve", mb.Fixed(), (0.0, 0.0, 8.0))
    found = mb.assemble(b.build(), [0.0, 2.5, 0.0])
    np.testing.assert_allclose(found.q[[0, 2]], [0.0, 8.0], atol=1e-10)
    assert abs(found.q[1]) < 1e-10
    assert found.gap < 1e-12


def test_assembly_of_a_rolling_loop_closes_what_positions_tell():
    """A ball on a plane: its height is a gap, its rolling none; velocities follow rolling."""
    radius = 0.3
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Free(), None, mb.sphere(radius, mass=1.0))
    b.add_loop("ground", 0, "ball", mb.RollingSphere(radius))
    model = b.build()
    guess = model.neutral()
    guess[4:] = 0.7, -0.4, 0.9
    found = mb.assemble(model, guess)
    np.testing.assert_allclose(mb.point_position(model, found.q, "ball"), [0.7, -0.4, radius],
                               atol=1e-10)  # fmt: skip
    v = mb.consistent_velocity(model, found.q, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    pose, velocity = (x[1] for x in mb.kinematics(model, found.q, v)[:2])
    touching = pose.R @ (velocity[3:] + np.cross(velocity[:3], pose.R.T @ [0, 0, -radius]))
    np.testing.assert_allclose(touching, 0.0, atol=1e-12)
    assert np.linalg.norm(v) > 0.1
