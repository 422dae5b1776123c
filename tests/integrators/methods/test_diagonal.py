"""Diagonally implicit methods: Newton's iteration, its tolerance, Jacobians, predictors."""

import numpy as np
import pytest

from integrators import catalogue, solve, traced
from integrators.methods.runge_kutta.implicit.predictor import stage_predictor
from integrators.problems import detest
from tests.integrators.methods.detest_stiff import PROBLEMS

ESDIRKS = ["Kvaerno5", "ESDIRK547", "SDIRK4", "TRBDF2"]


def reference(name, tolerance=1e-12, scale=1e-2):
    f, y0, end = PROBLEMS[name]
    solution = solve(
        traced(f, n=len(y0)), (0, end), y0, method="RADAU5", rtol=tolerance, atol=scale * tolerance
    )
    return solution.y[:, -1]


@pytest.mark.parametrize(("method", "most"), [("Kvaerno5", 600), ("ESDIRK547", 600)])
def test_newton_ends_at_rounding_errors(method, most):
    """F5 has rates of 1e11: rounding errors of y keep Newton's increments above its tolerance."""
    f, y0, end = PROBLEMS["F5"]
    solution = solve(traced(f, n=4), (0, end), y0, method=method, rtol=1e-10, atol=1e-18)
    assert solution.success
    assert solution.nsteps + solution.nrejected < most
    assert solution.nrejected < solution.nsteps / 2
    exact = reference("F5", scale=1e-8)
    assert np.max(np.abs(solution.y[:, -1] / exact - 1)) < 1e-9


@pytest.mark.parametrize("method", ESDIRKS)
@pytest.mark.parametrize("name", ["C5", "D2"])
def test_jacobians_serve_for_many_steps(method, name):
    f, y0, end = PROBLEMS[name]
    solution = solve(traced(f, n=len(y0)), (0, end), y0, method=method, rtol=1e-7, atol=1e-9)
    assert solution.success
    stages = {"Kvaerno5": 6, "ESDIRK547": 6, "SDIRK4": 5, "TRBDF2": 2}[method]
    assert solution.nnewton < 2.6 * stages * solution.nsteps
    if method in ("SDIRK4", "TRBDF2"):
        assert solution.njev < solution.nsteps / 5
    scale = 1e-7 * (np.abs(reference(name)) + 1e-2)
    assert np.max(np.abs(solution.y[:, -1] - reference(name)) / scale) < 20


@pytest.mark.parametrize("name", ["A1", "D2"])
def test_error_of_trbdf2_follows_the_tolerance(name):
    """Its estimate is that of the solution it propagates: per step, not at the end."""
    f, y0, end = PROBLEMS[name]
    exact = reference(name)
    ratios = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        options = dict(method="TRBDF2", rtol=tolerance, atol=1e-2 * tolerance)
        solution = solve(traced(f, n=len(y0)), (0, end), y0, **options)
        assert solution.success
        error = np.abs(solution.y[:, -1] - exact) / (tolerance * (np.abs(exact) + 1e-2))
        ratios.append(np.max(error))
    assert max(ratios) < 5
    assert max(ratios) < 3 * min(ratios)


def test_sdirk4_needs_the_steps_that_it_takes():
    """D2 at tight tolerances: order reduction (stage order 1), not a faulty estimate.

    The error of the fast component is the tolerance all along, however many steps that takes.
    """
    f, y0, end = PROBLEMS["D2"]
    for tolerance in (1e-6, 1e-8):
        solution = solve(
            traced(f, n=3), (0, end), y0, method="SDIRK4", rtol=tolerance, atol=1e-2 * tolerance
        )
        times = solution.t[:: max(1, len(solution.t) // 40)][1:]
        exact = solve(
            traced(f, n=3), (0, end), y0, method="RADAU5", rtol=1e-12, atol=1e-14, tstops=times
        )
        states = exact.y[1, np.isin(exact.t, times)]
        error = np.abs(solution.y[1, np.isin(solution.t, times)] - states)
        assert 0.1 < np.max(error / (tolerance * (np.abs(states) + 1e-2))) < 3


def test_stages_are_predicted_by_polynomials_through_earlier_ones():
    nodes = np.array([0.0, 0.52, 1.23, 0.9, 0.1, 1.0])
    weights = stage_predictor(nodes)
    for i in range(3, 6):
        for power in range(3):
            assert weights[i] @ nodes**power == pytest.approx(nodes[i] ** power, abs=1e-12)
    assert np.abs(weights).sum(axis=1).max() <= 6


def test_sdirk4_takes_the_steps_that_its_stage_order_asks_for():
    """Many steps on DETEST D2 (7,850 at 1e-9): its estimate is not too large, its error is.

    On y' = λ(y − t²) + 2t stages of order 1 leave an error of h²/(hλ); Kvaerno5's are of order 2.
    """
    tableau = catalogue.get("SDIRK4")
    A, b, c = tableau.arrays
    for z in (-10.0, -1e2, -1e3, -1e5):
        slopes = np.linalg.solve(np.eye(len(b)) - z * A, 2 * c - z * c**2)
        error, estimate = b @ slopes - 1, tableau.error_weights @ slopes / (1 - z * A[0, 0])
        assert 1 < abs(estimate / error) < 3
    problem = detest.get("stiff D2")
    exact = solve(problem, method="RadauIIA4", rtol=1e-12, atol=1e-14, dense_output=True).sol
    run = solve(problem, method="SDIRK4", rtol=1e-7, atol=1e-9)
    off = np.abs(run.y - exact(run.t)) / (1e-9 + 1e-7 * np.abs(run.y))
    assert 0.1 < off[1].max() < 10
