"""Elastic stops of joints push and never pull: restitution in closed form, energy in the books."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody.dynamics.book.base_view import element_forces
from multibody.dynamics.book.oracles import closed_form

MASS, STIFFNESS = 2.0, 800.0


def slider(damping, limits=(-np.inf, 0.0), **others):
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    stop = (*limits, STIFFNESS, damping)
    b.add_body("mass", 0, mb.Prismatic("x"), inertia=mb.point_mass(MASS), limits=stop, **others)
    return b.build()


def bounce(model, q0, v0):
    """Speed after the stop is left, with the run."""
    problem = mb.as_ivp(model, [q0], [v0], (0.0, 0.5))
    return solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("zeta", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_restitution(zeta, side):
    """Contact ends when the force is zero: e = exp(−2ζ acos ζ/√(1 − ζ²)), 0.57174 at ζ = 0.2.

    A stop that held on until the joint is back would give exp(−πζ/√(1 − ζ²)) = 0.527.
    """
    damping = 2.0 * zeta * np.sqrt(STIFFNESS * MASS)
    limits = (-np.inf, 0.0) if side > 0 else (0.0, np.inf)
    run = bounce(slider(damping, limits), 1e-12 * side, side)
    expected = np.exp(-2.0 * zeta * np.arccos(zeta) / np.sqrt(1.0 - zeta**2))
    assert run.y[1, -1] == pytest.approx(-side * expected, rel=1e-6)
    if zeta == 0.2:
        assert expected == pytest.approx(0.57174, abs=5e-6)


def test_stops_push_away_whatever_the_speed():
    """Compiled, interpreted on symbols and plain: the same force, never towards the stop."""
    model = slider(100.0, (-0.1, 0.2))
    for q in (-0.2, -0.11, 0.0, 0.15, 0.21, 0.4):
        for v in (-50.0, -1.0, 0.0, 1.0, 50.0):
            force = MASS * mb.FD(model, [q], [v])[0]
            depth = -0.1 - q if q < 0 else q - 0.2
            inwards = -v if q < 0 else v
            push = max(0.0, STIFFNESS * depth + 100.0 * inwards) if depth > 0.0 else 0.0
            assert force == pytest.approx(push if q < 0 else -push, abs=1e-9)
            assert element_forces(model, [q], [v])[0][0] == pytest.approx(force, abs=1e-9)
            traced = mb.as_ivp(model, [q], [v], traced=True).f(0.0, np.array([q, v]))[1]
            assert MASS * traced == pytest.approx(force, abs=1e-9)


@pytest.mark.parametrize(("q", "v"), [(0.1, 2.0), (0.1, -1.0), (0.1, -3.0), (-0.3, 5.0), (-0.3, 1)])
def test_what_the_spring_gives_back_to_nobody_is_in_the_books(q, v):
    """dE/dt by differences along the motion is the dampers' power, also where the stop lets go."""
    model = slider(40.0, (-0.2, 0.0))
    a, h = mb.FD(model, [q], [v])[0], 1e-6
    ends = [mb.energy(model, [q + s * v], [v + s * a]).total for s in (h, -h)]
    state = SimpleNamespace(t=np.zeros(1), y=np.array([[q], [v]]))
    power = mb.energy_ledger(model, state).power["dampers"][0]
    assert power == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7)
    assert power < 0.0


def test_the_closed_form_does_not_call_a_damped_stop_linear():
    with pytest.raises(ValueError, match=r"linear in v.*'mass' touches"):
        closed_form(slider(40.0), [0.1])
    assert closed_form(slider(0.0), [0.1]).s[0] == pytest.approx(-0.1 * STIFFNESS)


def ball(stiffness, damping, **others):
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    stop = (0.0, np.inf, stiffness, damping)
    b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.point_mass(1.0), limits=stop, **others)
    return b.build()


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RADAU5"])
@pytest.mark.parametrize(("stiffness", "damping"), [(1e3, 1.0), (1e4, 10.0), (1e6, 1e3)])
def test_steps_across_a_stop_raise_no_alarm(method, stiffness, damping):
    """Powers jump inside a step that touches a stop: the books are wrong there, not the run."""
    model = ball(stiffness, damping)
    for rtol in (1e-6, 1e-8, 1e-10):
        run = solve(mb.as_ivp(model, [1.0], [0.0], (0, 1)), method=method, rtol=rtol)
        assert run.success
        assert all(watch.ok for watch in run.quality.watches), (rtol, run.message)


def test_the_books_know_what_a_stop_costs_them():
    """Work of dampers against the energy that is lost, at coarse times and with dense output."""
    model = ball(1e4, 20.0)
    problem = mb.as_ivp(model, [1.0], [0.0], (0, 1))
    options = dict(method="DOP853", rtol=1e-10, atol=1e-12)
    for run in (
        solve(problem, t_eval=np.linspace(0, 1, 41), **options),
        solve(problem, dense_output=True, **options),
    ):
        books = mb.energy_ledger(model, run)
        assert books.work["dampers"][-1] < -1.0
        assert np.abs(books.balance).max() < 4.0 * books.quadrature_error


def test_a_method_that_loses_energy_is_still_told():
    """A damped pendulum by a method of order one: that is no matter of books."""
    b = mb.ModelBuilder(gravity=(0, 0, -9.81))
    b.add_body("bob", 0, mb.Revolute("y"), inertia=mb.point_mass(1.0, (0, 0, -1)), damping=[0.01])
    problem = mb.as_ivp(b.build(), [1.0], [0.0], (0, 5))
    run = solve(problem, method="ImplicitEuler", step=0.02)
    assert "balance of the energy drifted" in run.message


def test_derivatives_of_a_stop_that_is_left_faster_than_it_follows():
    """Beyond the stop, but on the way out at 3 m/s: nothing pushes, so nothing has a slope."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    stop = (-1.0, 1.0, 100.0, 50.0)
    b.add_body("slide", 0, mb.Prismatic("x"), inertia=mb.point_mass(2.0), limits=stop)
    model = b.build()
    for v, expected in ((-3.0, [0.0, 0.0]), (0.5, [-50.0, -25.0])):
        dq, dv, _ = mb.FD_derivatives(model, [1.2], [v])
        np.testing.assert_allclose([dq[0, 0], dv[0, 0]], expected, atol=1e-12)
