"""The slider-crank with an elastic rod: closed forms of its matrices, energy, reference."""

import numpy as np
import pytest

from integrators import solve
from integrators.problems.flexible_crank import flexible_crank

CRANK, ROD, MASS = 0.15, 0.3, 7870.0 * 0.008**2 * 0.3

#: At t = 0.02; "projected" by DOP853 with 1e-10 and "ggl" by RADAU5 with 1e-8 differ by 6e-14.
END = [
    *(2.511436102445, -0.2990884585248, 0.165478088864),
    *(-3.284075486e-04, 2.24527127e-05, -8.1224606e-06, -1.3878532e-05),
]


def test_matrices_of_the_rod_in_closed_form():
    system = flexible_crank()
    q = np.array([0.7, -0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    M = system.terms(0.0, q, np.zeros(7)).M
    assert M[1, 1] == pytest.approx(MASS * ROD**2 / 3)
    assert M[0, 1] == pytest.approx(MASS * CRANK * ROD / 2 * np.cos(1.1))
    assert M[3, 3] == pytest.approx(MASS / 2)
    assert M[4, 4] == pytest.approx(MASS / 2)
    assert abs(M[3, 4]) < 1e-12
    assert M[5, 5] == pytest.approx(MASS * 16 / 30)
    assert M[6, 6] == pytest.approx(MASS * (4 / 5 - 4 / 4 + 1 / 3))
    # A beam on two supports swings with k² π² √(EI/ρA)/l².
    q[3:5] = 1e-3
    stiffness = -system.terms(0.0, q, np.zeros(7)).f[3:5] / 1e-3
    known = np.array([1, 4]) * np.pi**2 * np.sqrt(2e11 * 0.008**2 / 12 / 7870.0) / ROD**2
    assert np.sqrt(stiffness / (MASS / 2)) == pytest.approx(known)


def test_motion_keeps_its_energy_and_ends_at_the_reference():
    run = solve(flexible_crank().formulation("projected"), method="DOP853", rtol=1e-9, atol=1e-12)
    assert run.success
    assert run.quality.ok, run.quality.verdict
    assert np.abs(run.y[:7, -1] - END).max() < 1e-9


def test_a_stiff_rod_moves_as_a_rigid_one():
    """The speed of the rigid crank follows from its energy alone."""
    system = flexible_crank(youngs_modulus=2e13, t_end=0.002)
    run = solve(system.formulation("projected"), method="DOP853", rtol=1e-9, atol=1e-12)
    q, v = run.y[:7, -1], run.y[7:, -1]
    angle, lean = q[0], np.arcsin(-CRANK / ROD * np.sin(q[0]))
    turn = -CRANK * np.cos(angle) / (ROD * np.cos(lean))
    slide = -CRANK * np.sin(angle) - ROD * np.sin(lean) * turn
    rates = np.array([1.0, turn, slide, 0.0, 0.0, 0.0, 0.0])
    at = np.array([angle, lean, 0.0, 0.0, 0.0, 0.0, 0.0])
    inertia = rates @ system.terms(0.0, at, np.zeros(7)).M @ rates
    energy = run.problem.invariants["energy"](0.0, run.y[:, 0])
    assert v[0] == pytest.approx(np.sqrt(2.0 * energy / inertia), rel=2e-3)
