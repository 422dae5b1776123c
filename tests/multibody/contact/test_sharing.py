"""Forces that are not determined: the smallest in the cones, and the instant at which none is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import multibody as mb
from integrators import solve
from multibody.contact.sharing import changes_of_forces, force_columns, inside, share

G = 9.81


def by_clarabel(start, B, mu, sticks, margin):
    """Forces start + B z with the largest margin s ≤ max|start|, or of least norm; and s."""
    clarabel = pytest.importorskip("clarabel")
    n, d = len(mu), B.shape[1]
    rows, values, cones = [], [], []
    for i in range(n):
        rows.append([*-B[3 * i], float(margin)])
        values.append(start[i, 0])
        for k in (1, 2) if sticks[i] else ():
            rows.append([*(-B[3 * i + k] / mu[i]), 0.0])
            values.append(start[i, k] / mu[i])
        cones.append(clarabel.SecondOrderConeT(3) if sticks[i] else clarabel.NonnegativeConeT(1))
    rows.append([*np.zeros(d), 1.0])
    values.append(np.abs(start).max())
    cones.append(clarabel.NonnegativeConeT(1))
    P = np.zeros((d + 1, d + 1))
    goal = np.zeros(d + 1)
    goal[-1] = -1.0
    if not margin:
        P[:d, :d], goal = B.T @ B, np.array([*(B.T @ start.ravel()), 0.0])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    A = scipy.sparse.csc_matrix(np.array(rows))
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(P)), goal, A, np.array(values), cones, settings
    )
    x = np.array(solver.solve().x)
    return (start.ravel() + B @ x[:d]).reshape(n, 3), x[-1]


def test_the_smallest_forces_in_the_cones_are_those_of_another_solver():
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(40):
        n = int(rng.integers(3, 7))
        rows = []
        for place in np.column_stack([rng.uniform(-1, 1, (n, 2)), np.zeros(n)]):
            turn = np.cross(np.eye(3), place)  # of a rigid body on a plane
            rows.append(np.hstack([turn, np.eye(3)])[[2, 0, 1]])
        T = np.concatenate(rows)
        mu, sticks, every = rng.uniform(0.1, 1, n), rng.random(n) < 0.8, np.ones(n, dtype=bool)
        r = np.column_stack([rng.uniform(0, 1, n), rng.uniform(-0.4, 0.4, (n, 2))])
        W = T @ T.T
        B = changes_of_forces(W, force_columns(r, mu, every, sticks))
        found = share(r, B, mu, sticks)
        np.testing.assert_allclose(W @ (found.forces - r).ravel(), 0.0, atol=1e-12)
        if inside(found.forces, mu, sticks) >= 0.0 and found.margin > 1e-6:
            least, _ = by_clarabel(r, B, mu, sticks, margin=False)
            np.testing.assert_allclose(found.forces, least, atol=2e-5)
            assert inside(found.forces, mu, sticks) >= 0.0
            compared += 1
        elif B.shape[1]:
            _, margin = by_clarabel(r, B, mu, sticks, margin=True)
            assert found.margin == pytest.approx(margin, abs=1e-8)
            compared += 1
    assert compared > 20


def on_a_platform(size, mu, turn):
    """A box that stands on a platform which turns about the y axis, and its start."""
    b = mb.ModelBuilder(name="box on a platform")
    b.add_body("platform", 0, mb.Driven(mb.Revolute("y"), lambda t: [turn * t]))
    b.add_body("box", 0, mb.Free(), inertia=mb.box(size, mass=2.0))
    b.add_contact("floor", "platform", mb.HalfSpace(), "box", mb.BoxCorners(size), friction=mu)
    model = b.build()
    q, v = model.neutral(), np.zeros(6)
    q[6] = 0.5 * size[2]
    v[1], v[3] = turn, turn * q[6]
    return model, q, v


@pytest.mark.parametrize("height", [2.6])
def test_a_box_slides_when_all_its_corners_must(height):
    """Evenly shared, friction would leave the cones of the upper corners long before."""
    mu, turn = 0.3, 0.5
    model, q, v = on_a_platform((1.0, 1.0, height), mu, turn)
    problem = mb.as_ivp(model, q, v, (0.0, 0.585))
    solution = solve(problem, method="DOP853", rtol=1e-9, atol=1e-11)
    assert solution.success, solution.message
    angle = turn * solution.modes[1].start
    rest = 1.0 - turn**2 * 0.5 * height / (G * np.cos(angle))  # the floor falls away a little
    assert np.tan(angle) == pytest.approx(mu * rest, rel=1e-8)
    assert "slides" in solution.modes[1].mode
    assert solution.modes[0].mode.count("sticks") == 4
    seen = mb.contact_forces(model, solution)
    assert (seen.friction <= mu * seen.normal_force + 1e-9).all()
    assert seen.normal_force.min() >= 0.0


def test_a_tall_box_tips_about_two_corners():
    model, q, v = on_a_platform((1.0, 1.0, 3.0), 0.5, 0.1)
    solution = solve(mb.as_ivp(model, q, v, (0.0, 3.4)), method="DOP853", rtol=1e-9, atol=1e-11)
    assert solution.success, solution.message
    angle = 0.1 * solution.modes[1].start
    rest = 1.0 - 0.1**2 * 1.5 / (G * np.cos(angle))
    assert np.tan(angle) == pytest.approx(rest / 3.0, rel=1e-7)
    assert solution.modes[1].mode.count("sticks") == 2
    seen = mb.contact_forces(model, solution)
    assert (seen.friction <= 0.5 * seen.normal_force + 1e-9).all()


def test_forces_at_one_state_lie_in_the_cones():
    """The floor of a tall box on an incline that it hardly sticks to."""
    b = mb.ModelBuilder(name="tall box", gravity=(G * np.sin(0.28), 0.0, -G * np.cos(0.28)))
    size = (1.0, 1.0, 3.0)
    b.add_body("box", 0, mb.Free(), inertia=mb.box(size, mass=2.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "box", mb.BoxCorners(size), friction=0.3)
    model = b.build()
    q = model.neutral()
    q[6] = 1.5
    found = mb.contact_accelerations(model, q, np.zeros(6))
    np.testing.assert_allclose(found.accelerations, 0.0, atol=1e-9)
    assert not found.unique
    slope = np.hypot(found.forces[:, 1], found.forces[:, 2])
    assert (slope <= 0.3 * found.forces[:, 0] + 1e-12).all()
    pairs = found.forces[[0, 2, 4, 6], 0].reshape(2, 2)  # two on the left, two on the right
    np.testing.assert_allclose(pairs[:, 0], pairs[:, 1], rtol=1e-6)  # shared evenly
