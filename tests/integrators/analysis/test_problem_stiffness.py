"""Eigenvalues along solutions, and what limits the step."""

import math

import numpy as np
import pytest

from integrators import IVP, Taylor, analysis, problems, solve

RK4_REAL = 2.785293563405282  # Hairer & Wanner II, table IV.2.1
RK4_IMAGINARY = 2.8284271247461903


@pytest.mark.parametrize(
    ("method", "eigenvalue", "limit"),
    [
        ("ExplicitEuler", -50.0, 2 / 50),
        ("Heun", -1.0, 2.0),
        ("RK4", -1.0, RK4_REAL),
        (Taylor(4), -1.0, RK4_REAL),
        ("DOPRI5", -1.0, 3.3065678),
        ("ExplicitEuler", -1 + 1j, 1.0),  # |1 + hλ| = 1 at h = −2 Re λ/|λ|² = 1
        ("ImplicitEuler", -1e6, math.inf),
        ("RadauIIA3", -1 + 100j, math.inf),
    ],
)
def test_stability_limit(method, eigenvalue, limit):
    assert analysis.stability_limit(method, eigenvalue) == pytest.approx(limit, rel=1e-7)


def test_the_limit_on_the_imaginary_axis():
    assert analysis.stability_limit("RK4", -1e-9 + 1j) == pytest.approx(RK4_IMAGINARY, rel=1e-6)


def test_eigenvalues_and_ratio_of_a_linear_problem():
    A = np.array([[-1.0, 0.0, 0.0], [5.0, -1000.0, 2.0], [0.0, 0.0, -20.0]])
    problem = IVP(lambda t, y: A @ y, [1.0, 1.0, 1.0], (0, 2))
    found = analysis.stiffness(problem, "RK4")
    assert found.eigenvalues[:, 0] == pytest.approx([-1000, -20, -1])
    assert found.ratio == pytest.approx(np.full(found.t.size, 1000.0))
    assert found.fastest == pytest.approx(1000)
    assert found.h_stability == pytest.approx(np.full(found.t.size, RK4_REAL / 1000), rel=1e-7)
    assert found.stiff
    assert not found.limited_by_stability[0]  # the transient needs short steps anyway
    assert found.limited_by_stability[-1]


@pytest.mark.parametrize(
    ("name", "parameters"), [("curtiss_hirschfelder", {"lam": 2000.0}), ("hires", {"t_end": 50.0})]
)
def test_the_predicted_step_is_the_one_taken(name, parameters):
    """An explicit method with error control keeps to its stability boundary on a stiff problem."""
    problem = problems.get(name, **parameters)
    found = analysis.stiffness(problem, "DOPRI5")
    assert found.stiff
    assert found.share > 0.9
    run = solve(problem, method="DOPRI5")
    late = run.t[:-1] > 0.5 * run.t[-1]
    limit = np.median(found.h_stability[found.t > 0.5 * run.t[-1]])
    # The step control oscillates about the boundary.
    assert np.mean(run.h[late]) == pytest.approx(limit, rel=0.3)


def test_accuracy_limits_where_nothing_is_stiff():
    problem = problems.get("lotka_volterra")
    found = analysis.stiffness(problem, "DOPRI5")
    assert not found.stiff
    assert found.share < 0.1
    run = solve(problem, method="DOPRI5")
    # A rough estimate: the remainder of the Taylor polynomial stands for the method's error.
    assert 1 / 4 < np.median(found.h_accuracy) / np.median(run.h) < 4


def test_the_same_problem_for_an_l_stable_method():
    found = analysis.stiffness(problems.get("curtiss_hirschfelder", lam=2000.0), "RadauIIA3")
    assert not found.stiff
    assert np.isinf(found.h_stability).all()
    assert "never limits" in str(found)


def test_van_der_pol_becomes_stiff():
    verdicts = [
        analysis.stiffness(problems.get("van_der_pol", mu=mu), "DOPRI5") for mu in (1.0, 1000.0)
    ]
    assert [v.stiff for v in verdicts] == [False, True]
    assert verdicts[1].excess.max() > 1e3
    assert "stiff for DOPRI5" in str(verdicts[1])


def test_nothing_decays_in_an_oscillator():
    found = analysis.stiffness(problems.get("harmonic_oscillator"), "RK4")
    assert np.isnan(found.ratio).all()
    assert np.isinf(found.h_stability).all()


def test_a_solution_stands_for_its_problem():
    run = solve(problems.get("curtiss_hirschfelder"), method="RK4", step=0.01)
    assert analysis.stiffness(run, "RK4").h_stability[0] == pytest.approx(RK4_REAL / 50, rel=1e-6)


def test_bad_input():
    problem = problems.get("logistic")
    with pytest.raises(TypeError, match="IVP"):
        analysis.stiffness(lambda t, y: y)
    with pytest.raises(ValueError, match="points"):
        analysis.stiffness(problem, points=1)
    with pytest.raises(ValueError, match="mass"):
        analysis.stiffness(problems.get("robertson_dae"))
    with pytest.raises(ValueError, match="order"):
        analysis.stiffness(problem, "scipy:LSODA")
    with pytest.raises(ValueError, match="eigenvalue"):
        analysis.stability_limit("RK4", 0.0)
    with pytest.raises(ValueError, match="real"):
        analysis.stiffness(problems.get("dahlquist", lam=1j))
