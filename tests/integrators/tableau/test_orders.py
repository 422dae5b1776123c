"""Orders, proved twice: by order conditions (test_catalogue) and here by observed slopes."""

from itertools import pairwise

import numpy as np
import pytest

from integrators import catalogue, check_method, problems, solve
from integrators.methods import textbook
from tests.integrators.tableau.reference_stepper import EXTENDED, integrate

ORDER_PROBLEMS = ("order_rational", "order_trigonometric", "order_exponential", "minus_2ty2")

SLOPE_TOLERANCE = 0.15  # finest pair; see docs: orders are integers, 0.15 excludes neighbours
EXTENDED_FLOOR = 2e-17  # longdouble rounding, accumulated over some hundred steps
NAMES = [*catalogue.names(), "Gauss4", "Gauss5", "Gauss6", "RadauIIA4", "RadauIIA5"]
NAMES += ["RadauIA3", "LobattoIIIA4", "LobattoIIIB4", "LobattoIIIC4", "LobattoIIID4"]
NAMES = list(dict.fromkeys(NAMES))


def declared_digits(tableau):
    """Error that the published digits of the coefficients leave."""
    return 1e3 * tableau._relative_uncertainty


def extended_slopes(name, problem_name):
    """Observed slopes over pairs of step sizes a factor two apart, finest last."""
    tableau = catalogue.get(name)
    problem = problems.get(problem_name)
    t0, t1 = problem.t_span
    exact = np.asarray(problem.exact(np.longdouble(t1)))
    floor = max(EXTENDED_FLOOR, declared_digits(tableau))
    slopes, errors, steps = [], [], []
    count = 4.0 if tableau.order >= 8 else 12.0
    while count < 450:
        y = integrate(problem.f, problem.y0, t0, t1, round(count), tableau)
        error = float(np.max(np.abs(y - exact)))
        if error < floor:
            break
        steps.append(round(count))
        errors.append(error)
        if len(errors) >= 3:
            slopes.append(np.log(errors[-3] / errors[-1]) / np.log(steps[-1] / steps[-3]))
        count *= np.sqrt(2)
    return slopes


@pytest.mark.skipif(not EXTENDED, reason="needs an 80-bit or wider long double")
@pytest.mark.parametrize("name", NAMES)
def test_observed_order_in_extended_precision(name):
    """On one of the problems the slope settles at the order; leading terms may cancel on others."""
    order = catalogue.get(name).order
    seen = {}
    for problem_name in ORDER_PROBLEMS:
        seen[problem_name] = extended_slopes(name, problem_name)[-3:]
        if any(abs(slope - order) < SLOPE_TOLERANCE for slope in seen[problem_name]):
            return
    slope = many_digit_slope(name)  # round-off came first
    assert abs(slope - order) < SLOPE_TOLERANCE, f"{name} of order {order}: {slope}, {seen}"


def many_digit_slope(name):
    """Slope of a rational, non-autonomous, coupled problem in 60 digits, by self-convergence."""
    from mpmath import mp, mpf

    def f(t, y):
        return np.array([t * y[1] - y[0] * y[1], y[0] * y[0] / (1 + t * t) - y[1] * y[0] * t])

    with mp.workdps(60):
        ends = [
            integrate(f, [mpf(1), mpf("0.5")], mpf(0), mpf(1), steps, catalogue.get(name), mpf)
            for steps in (16, 32, 64)
        ]
        coarse, fine = (max(abs(a - b)) for a, b in pairwise(ends))
        return float(mp.log(coarse / fine) / mp.log(2))


@pytest.mark.parametrize(("name", "order"), [("Gauss6", 12), ("RadauIIA5", 9), ("Verner98", 9)])
def test_high_orders_in_sixty_digits(name, order):
    assert abs(many_digit_slope(name) - order) < SLOPE_TOLERANCE


ENGINE_TOLERANCE = 2e-13  # some hundred steps of double arithmetic on values of size one


@pytest.mark.skipif(not EXTENDED, reason="needs an 80-bit or wider long double")
@pytest.mark.parametrize("name", NAMES)
def test_compiled_loop_takes_the_steps_of_the_tableau(name):
    """The library's steps equal those of an independent implementation, to double rounding."""
    tableau = catalogue.get(name)
    problem = problems.get("order_rational")
    t0, t1 = problem.t_span
    ours = solve(problem, method=name, step=(t1 - t0) / 30)
    theirs = integrate(problem.f, problem.y0, t0, t1, 30, tableau)
    assert ours.success
    assert ours.nsteps == 30
    difference = np.max(np.abs(ours.y[:, -1] - theirs.astype(float)))
    assert difference < ENGINE_TOLERANCE * np.max(np.abs(ours.y))


@pytest.mark.parametrize("name", ["ExplicitEuler", "RK4", "DOPRI5", "RadauIIA3", "SDIRK4"])
def test_check_method_accepts_good_methods(name):
    report = check_method(name)
    assert report.ok, str(report)


def test_check_method_names_a_wrong_method():
    class Lagging:
        """Heun with the second stage at the wrong time."""

        order = 2

        def step(self, f, t, y, h):
            k1 = h * f(t, y)
            return y + (k1 + h * f(t, y + k1)) / 2

    report = check_method(Lagging())
    assert not report.ok
    assert "instead of 2" in report.failures[0]
    assert all(slope < 1.5 for slope in report.observed.values())


# ---------------------------------------------------------------- textbook = generic


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (textbook.euler, "ExplicitEuler"),
        (textbook.heun, "Heun"),
        (textbook.rk4, "RK4"),
        (textbook.backward_euler, "ImplicitEuler"),
    ],
)
def test_textbook_equals_generic(function, name):
    problem = problems.get("order_trigonometric")
    t0, t1 = problem.t_span
    h = (t1 - t0) / 40
    t, y = function(problem.f, t0, problem.y0, h, 40)
    solution = solve(problem, method=name, step=h)
    assert np.allclose(solution.t, t, rtol=0, atol=1e-15)
    assert np.allclose(solution.y.T, y, rtol=1e-12, atol=1e-12)  # Newton to round-off


def test_golden_values_of_the_course_notes():
    # 3/8 rule on y' = -y, one step of 0.1; explicit and implicit Euler on y' = -50 y.
    decay = solve(lambda t, y: -y, (0, 0.1), [1.0], method="RK38", step=0.1)
    assert decay.y[0, -1] == pytest.approx(0.9048375, abs=1e-15)
    stiff = problems.get("decay").with_(t_span=(0.0, 2.0))
    assert abs(solve(stiff, method="ExplicitEuler", step=0.05).y[0, -1]) > 1e6
    assert abs(solve(stiff, method="ImplicitEuler", step=0.05).y[0, -1]) < 1e-21


@pytest.mark.parametrize("gamma", ["1/4", "1/2", "3/4", 1, 2, -1])
def test_rk2_family(gamma):
    tableau = catalogue.rk2(gamma)
    assert tableau.order == 2
    assert check_method(tableau).ok
