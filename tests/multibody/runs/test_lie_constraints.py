"""Munthe-Kaas methods and generalized-α with a loop, a gear, a constraint and prescribed motion."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import solve


@pytest.fixture(scope="module")
def top():
    """A body on a ball joint whose tip stays level, with geared wheels and a rod in a loop."""
    b = mb.ModelBuilder(name="geared top")
    body = mb.Inertia(1.0, (0.1, 0, 0), (0.1, 0.12, 0.15))
    b.add_body("top", 0, mb.Spherical(), inertia=body)
    b.add_body("first", "top", mb.Revolute("x"), (0.5, 0, 0), body)
    b.add_body("second", "top", mb.Revolute("y"), (0, 0.5, 0), body)
    b.add_body("rod", "top", mb.Spherical(), (0, 0, 0.3), body)
    b.add_gear("gear", "second", {"first": -2.0})
    b.add_constraint("level", lambda q: q.point("top", (1, 0, 0))[2])
    b.add_loop("hinge", "top", "rod", mb.Revolute("z"), (0, 0, 0.3))
    model = b.build()
    q = mb.assemble(model, model.neutral()).q
    v = np.zeros(model.nv)
    v[:5] = 0.5, 0.0, 1.0, 2.0, -4.0
    return model, q, mb.consistent_velocity(model, q, v, fixed="first")


@pytest.fixture(scope="module")
def reference(top):
    problem = mb.as_ivp(*top, (0, 0.5), stabilise="projection")
    return solve(problem, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("kind", ["none", "projection"])
def test_munthe_kaas(top, reference, kind):
    """Fourth order, and quaternions of norm 1 without any help."""
    problem = mb.as_ivp(*top, (0, 0.5), stabilise=kind)
    runs = [solve(problem, method="RKMK4", step=h) for h in (0.02, 0.01)]
    assert all(run.success for run in runs)
    errors = [np.abs(run.y[:, -1] - reference).max() for run in runs]
    assert errors[1] < 1e-6
    assert np.log2(errors[0] / errors[1]) > 3.5
    assert abs(np.linalg.norm(runs[0].y[:4, -1]) - 1.0) < 1e-13


@pytest.mark.parametrize("formulation", ["index3", "ggl"])
def test_generalized_alpha(top, reference, formulation):
    model = top[0]
    problem = mb.as_dae(*top, (0, 0.5), formulation=formulation)
    runs = [solve(problem, method="generalized-alpha", step=h) for h in (0.01, 0.005)]
    n = model.nq
    errors = [np.abs(run.y[:n, -1] - reference[:n]).max() for run in runs]
    assert errors[1] < 1e-4
    assert np.log2(errors[0] / errors[1]) > 1.7  # second order


def test_prescribed_motion(top):
    model, q, v = top
    motion = {"first": lambda t: q[4] + 2.0 * t + 0.3 * t**2}
    problem = mb.as_ivp(model, q, v, (0, 0.3), prescribed=motion, stabilise="projection")
    exact = solve(problem, method="DOP853", rtol=1e-10, atol=1e-12)
    lie = solve(problem, method="RKMK4", step=0.005)
    np.testing.assert_allclose(lie.y[:, -1], exact.y[:, -1], atol=1e-7)
    assert lie.y[4, -1] == pytest.approx(q[4] + 0.6 + 0.027, abs=1e-8)
    assert lie.y[5, -1] == pytest.approx(-2.0 * lie.y[4, -1] + q[5] + 2.0 * q[4], abs=1e-8)
