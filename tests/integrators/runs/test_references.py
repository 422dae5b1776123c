"""The reference problems are solved to the accuracy asked for, with as few steps as published."""

import numpy as np
import pytest

from integrators import problems, solve
from integrators.problems import dae_systems

ASKED = 1e-8
ALLOWED = 1e-6  # true relative error at rtol = 1e-8: global errors exceed local tolerances

EXPLICIT = {
    "van_der_pol": {},
    "pleiades": {},
    "kepler": {},
    "pendulum": {},
    "rigid_body": {},
    "lotka_volterra": {},
    "brusselator": {},
    "order_rational": {},
    "order_trigonometric": {},
    "order_exponential": {},
    "logistic": {},
    "linear_growth": {},
}

STIFF = {
    "van_der_pol_100": {},
    "van_der_pol_1000": {},
    "hires": {"atol": 1e-13},  # components down to 5e-5
    "robertson": {"atol": 1e-21},  # the smallest component ends at 8e-14
    "oregonator": {},
    "curtiss_hirschfelder": {},
    "prothero_robinson": {},
}

CONSTRAINED = ["robertson_dae", "pendulum_index1", "pendulum_index2", "pendulum_ggl"]


def relative_error(problem, solution, components=slice(None)):
    reference = problem.reference(solution.t[-1])
    assert reference is not None
    difference = np.abs(solution.y[components, -1] - reference[components])
    return np.max(difference) / np.max(np.abs(reference[components]))


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "Tsit5", "Verner98"])
def test_explicit_methods(name, method):
    problem = problems.get(name)
    solution = solve(problem, method=method, rtol=ASKED, atol=1e-10)
    assert solution.success
    assert relative_error(problem, solution) < ALLOWED


@pytest.mark.parametrize("name", STIFF)
@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA5", "RadauVariable", "Kvaerno5", "NDF"])
def test_stiff_problems(name, method):
    problem = problems.get(name)
    options = {"atol": 1e-10, **STIFF[name]}
    solution = solve(problem, method=method, rtol=ASKED, **options)
    assert solution.success, solution.message
    assert relative_error(problem, solution) < ALLOWED


def test_stiff_problem_componentwise():
    problem = problems.get("robertson")
    solution = solve(problem, method="RADAU5", rtol=ASKED, atol=1e-21)
    reference = problem.reference(solution.t[-1])
    assert np.max(np.abs(solution.y[:, -1] / reference - 1)) < ALLOWED


@pytest.mark.parametrize("name", CONSTRAINED)
def test_differential_algebraic_problems(name):
    problem = problems.get(name)
    solution = solve(problem, method="RADAU5", rtol=ASKED, atol=1e-10)
    assert solution.success, solution.message
    assert relative_error(problem, solution, slice(0, 2)) < ALLOWED


def test_pendulum_of_index_three():
    problem = problems.get("pendulum_dae")
    solution = solve(problem, method="RADAU5", rtol=1e-9, atol=1e-9)
    assert relative_error(problem, solution, slice(0, 2)) < ALLOWED


def test_jay_of_index_three():
    problem = problems.get("jay")
    solution = solve(problem, method="RADAU5", rtol=ASKED, atol=1e-10)
    assert relative_error(problem, solution, slice(0, 2)) < ALLOWED


def test_andrews_squeezing_mechanism():
    problem = problems.get("andrews")
    solution = solve(problem, method="RADAU5", rtol=ASKED, atol=1e-10)
    assert solution.success, solution.message
    assert relative_error(problem, solution, slice(0, 7)) < ALLOWED


def test_lorenz_before_chaos():
    problem = problems.get("lorenz").with_(t_span=(0.0, 10.0))
    solution = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12)
    assert relative_error(problem, solution) < ALLOWED


def test_arenstorf_orbit_closes():
    problem = problems.get("arenstorf")
    solution = solve(problem, method="DOP853", rtol=1e-12, atol=1e-12)
    assert np.max(np.abs(solution.y[:2, -1] - problem.y0[:2])) < ALLOWED


# ---------------------------------------------------------------- published step counts

# IVP Test Set 2.4, code RADAU (orders 5, 9, 13): problem, tolerance, atol factor, first step,
# steps taken (rejected ones included).
PUBLISHED = [
    ("van_der_pol_1000", 1e-4, 1.0, 210),
    ("van_der_pol_1000", 1e-7, 1.0, 240),
    ("van_der_pol_1000", 1e-10, 1.0, 209),
    ("hires", 1e-7, 1.0, 51),
    ("hires", 1e-10, 1.0, 69),
    ("robertson", 1e-7, 1e-4, 112),
]


@pytest.mark.parametrize(("name", "tolerance", "factor", "published"), PUBLISHED)
def test_variable_order_radau_needs_no_more_steps_than_published(
    name, tolerance, factor, published
):
    problem = problems.get(name)
    solution = solve(problem, method="RadauVariable", rtol=tolerance, atol=factor * tolerance)
    assert solution.success
    assert solution.nsteps + solution.nrejected <= 1.2 * published


@pytest.mark.parametrize(
    ("name", "tolerance", "most"),
    [
        ("andrews", 1e-7, 130),  # 141 by RadauIIA5 when a long step's guesses were still useless
        ("andrews", 1e-10, 130),  # 169
        ("pendulum_dae", 1e-10, 737),  # 788
        ("slider_crank", 1e-10, 120),  # 167
    ],
)
def test_variable_order_radau_keeps_its_order_at_higher_index(name, tolerance, most):
    """A single slow rate of Newton's iteration, or a bad first guess, must not cost the order."""
    problem = problems.get(name)
    solution = solve(problem, method="RadauVariable", rtol=tolerance, atol=tolerance)
    assert solution.success
    assert solution.nsteps + solution.nrejected <= most
    positions = np.asarray(problem.index) == 1
    t = problem.t_span[1]
    exact = problem.reference(t) if problem.exact is None else problem.exact(t)
    error = np.abs(solution.y[:, -1] - exact) / (1 + np.abs(exact))
    assert error[positions].max() < 2 * tolerance


def test_variable_order_radau_on_the_car_axis_needs_no_more_steps_than_published():
    """IVP Test Set 2.4: 289 by RADAU at 1e-7."""
    case = dae_systems.system("car_axis")
    solution = solve(case.problem("given"), method="RadauVariable", rtol=1e-7, atol=1e-7)
    end = list(case.reference[1].values())[:4]
    assert np.abs(solution.y[:4, -1] - end).max() < 1e-7
    assert solution.nsteps + solution.nrejected <= 289


@pytest.mark.parametrize("method", ["Kvaerno3", "Kvaerno5", "TRBDF2", "ARK436", "ESDIRK547"])
def test_esdirk_methods_take_long_steps_on_very_stiff_problems(method):
    """Their explicit first stage must not magnify what Newton's iteration left over."""
    problem = problems.get("robertson")
    solution = solve(problem, method=method, rtol=1e-4, atol=1e-10)
    assert solution.success
    assert solution.nsteps + solution.nrejected < 600
    assert relative_error(problem, solution) < 1e-4


def test_methods_of_low_stage_order_are_refused_at_index_three():
    with pytest.raises(ValueError, match="stage order"):
        solve(problems.get("pendulum_dae"), method="SDIRK4")
