"""Local truncation errors, their propagation, and the bounds of the notes."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import IVP, Tableau, analysis, catalogue, problems, solve

FOUR_DIGITS = 5e-5


# ------------------------------------------------------------------------------ truncation


@pytest.mark.parametrize(
    ("method", "name", "slope"),
    [
        ("ExplicitEuler", "linear_growth", 2),
        ("RK38", "linear_growth", 5),
        ("ImplicitEuler", "order_trigonometric", 2),
        ("Heun", "order_trigonometric", 3),
        ("RK4", "order_trigonometric", 5),
        ("RK38", "order_trigonometric", 5),
        ("Gauss2", "order_trigonometric", 5),
        ("Heun", "lotka_volterra", 3),
    ],
)
def test_local_errors_fall_like_h_to_the_p_plus_one(method, name, slope):
    """Notes, §1.3.2, with E29: slopes 2 for Euler, 5 for the 3/8 rule."""
    found, steps, errors = analysis.truncation_order(problems.get(name), method)
    assert found == pytest.approx(slope, abs=0.1)
    assert slope in found
    assert found.high - found.low < 0.5
    assert steps.size == errors.size == 6


def test_two_local_errors_have_a_slope_and_no_interval():
    found, _, _ = analysis.truncation_order(problems.get("lotka_volterra"), "Heun", [1.5, 0.75])
    assert 3 in found
    assert math.isinf(found.high)


def test_the_misprinted_three_eighths_rule():
    right = catalogue.get("RK38")
    printed = Tableau([[], ["1/3"], ["-1/3", -1], [1, -1, 1]], right.b, right.c, check=False)
    slope, _, _ = analysis.truncation_order(problems.get("minus_2ty2"), printed)
    assert slope == pytest.approx(2, abs=0.2)  # order 1


def test_euler_truncation_in_closed_form():
    """τ = y(t + h) − y − h(ty + t) with y = 2 exp(t²/2) − 1."""
    problem = problems.get("linear_growth")
    found = analysis.local_errors(problem, "ExplicitEuler", 0.1)
    t = np.arange(10) * 0.1
    y, after = 2 * np.exp(t**2 / 2) - 1, 2 * np.exp((t + 0.1) ** 2 / 2) - 1
    assert found.errors[0] == pytest.approx(after - y - 0.1 * t * (y + 1), abs=1e-14)
    assert found.t == pytest.approx(t)
    assert "ExplicitEuler" in str(found)


@pytest.mark.parametrize("how", ["doubling", "embedded"])
def test_estimates_approach_the_measured_errors(how):
    problem = problems.get("order_rational")
    method = "RK4" if how == "doubling" else "HeunEuler21"
    found = analysis.local_errors(problem, method, 0.02, how=how)
    # The estimate of a pair is for the method of lower order.
    compared = "RK4" if how == "doubling" else "ExplicitEuler"
    true = analysis.local_errors(problem, compared, 0.02)
    assert found.norms == pytest.approx(true.norms, rel=0.15)


def test_errors_along_a_computed_solution():
    problem = problems.get("lotka_volterra")  # no exact solution: the flow is computed
    run = solve(problem, rtol=1e-5, atol=1e-8)
    found = analysis.local_errors(run)
    assert found.along == "numerical"
    assert found.h == pytest.approx(run.h)
    for k in (0, 10, found.t.size - 1):  # the same flow by another package
        flow = solve_ivp(
            problem.rhs, (run.t[k], run.t[k + 1]), run.y[:, k], method="DOP853", rtol=1e-13,
            atol=1e-14,
        )  # fmt: skip
        assert found.errors[:, k] == pytest.approx(flow.y[:, -1] - run.y[:, k + 1], abs=1e-11)


def test_local_errors_refuse():
    problem = problems.get("linear_growth")
    with pytest.raises(ValueError, match="how"):
        analysis.local_errors(problem, "RK4", 0.1, how="guess")
    with pytest.raises(ValueError, match="along"):
        analysis.local_errors(problem, "RK4", 0.1, along="both")
    with pytest.raises(ValueError, match="step"):
        analysis.local_errors(problem, "RK4", -0.1)
    with pytest.raises(TypeError, match="needs"):
        analysis.local_errors(problem, "RK4")
    with pytest.raises(ValueError, match="no embedded"):
        analysis.local_errors(problem, "RK4", 0.1, how="embedded")
    with pytest.raises(ValueError, match="t_eval"):
        analysis.local_errors(solve(problem, t_eval=[0.5, 1.0]))
    with pytest.raises(ValueError, match="rounding"):
        analysis.truncation_order(problem, "DOP853", [1e-3, 5e-4])
    with pytest.raises(ValueError, match="decreasing"):
        analysis.truncation_order(problem, "RK4", [0.1, 0.2])
    with pytest.raises(ValueError, match="outside"):
        analysis.truncation_order(problem, "RK4", t=7.0)


# ------------------------------------------------------------------------------ propagation


def test_the_recursion_is_sharp_for_a_linear_problem():
    """For y' = y Euler's errors satisfy ε₊ = (1 + h) ε + τ with equality."""
    h, N = 0.1, 20
    t = h * np.arange(N + 1)
    computed = (1 + h) ** np.arange(N + 1)
    tau = np.exp(t[:-1]) * (math.exp(h) - 1 - h)
    bound = analysis.error_recursion(tau, h, 1.0)
    assert bound == pytest.approx(np.exp(t) - computed, rel=1e-12)


def test_the_recursion_bounds_the_error_of_any_tableau():
    problem = problems.get("minus_2ty2")
    box = (0.0, 1.1)
    L = analysis.lipschitz(problem, box).upper
    for method in ("ExplicitEuler", "Heun", "RK4", "ImplicitMidpoint"):
        h = 0.05
        tau = analysis.local_errors(problem, method, h).norms
        rate = analysis.increment_lipschitz(method, L, h)
        bound = analysis.error_recursion(tau, h, rate)
        run = solve(problem, method=method, step=h)
        error = np.abs(run.y[0] - 1 / (1 + run.t**2))
        assert np.all(error <= bound * (1 + 1e-9) + 1e-14)


def test_increment_constants():
    """Heun: L(1 + hL/2); RK4: L(1 + z/2 + z²/6 + z³/24)."""
    L, h = 3.0, 0.1
    z = h * L
    assert analysis.increment_lipschitz("Heun", L, h) == pytest.approx(L * (1 + z / 2))
    rk4 = L * (1 + z / 2 + z**2 / 6 + z**3 / 24)
    assert analysis.increment_lipschitz("RK4", L, h) == pytest.approx(rk4)
    assert analysis.increment_lipschitz("ImplicitEuler", L, h) == pytest.approx(L / (1 - z))
    assert analysis.increment_lipschitz("ImplicitEuler", 20.0, h) == math.inf


def test_propagation_refuses():
    with pytest.raises(ValueError, match="finite"):
        analysis.error_recursion([0.1, np.nan], 0.1, 1.0)
    with pytest.raises(ValueError, match="negative"):
        analysis.error_recursion([0.1], 0.1, -20.0)
    with pytest.raises(ValueError, match="initial"):
        analysis.error_recursion([0.1], 0.1, 1.0, initial=-1)
    with pytest.raises(ValueError, match="L must"):
        analysis.increment_lipschitz("RK4", -1.0, 0.1)


# ------------------------------------------------------------------------------ Euler's bounds


def test_the_notes_example():
    """y' = xy + x on [0, 1], N = 10: 0.2032 ≤ 0.5255 ≤ 0.5666 ≤ 0.8963 (docs/errata.md, E22)."""
    found = analysis.euler_bounds(problems.get("linear_growth"), 10)
    assert pytest.approx(1.0, rel=1e-12) == found.L
    assert found.lipschitz.guaranteed
    assert pytest.approx(4 * math.sqrt(math.e), rel=1e-12) == found.M2
    values = [found.largest_error, *found.final.values()]
    assert list(found.final) == [
        "logarithmic norm",
        "geometric (A^N)",
        "exponential",
        "exponential, coarse",
    ]
    assert values == sorted(values)
    assert found.largest_error == pytest.approx(0.2032, abs=FOUR_DIGITS)
    assert found.final["geometric (A^N)"] == pytest.approx(0.5255, abs=FOUR_DIGITS)
    assert found.final["exponential"] == pytest.approx(0.5666, abs=FOUR_DIGITS)
    assert found.final["exponential, coarse"] == pytest.approx(0.8963, abs=FOUR_DIGITS)
    for values in found.curves.values():  # on the whole grid, not only at its end
        assert np.all(found.error <= values + 1e-15)


def test_bounds_shrink_like_h():
    coarse, fine = (analysis.euler_bounds(problems.get("linear_growth"), N) for N in (50, 100))
    for name in coarse.final:
        assert coarse.final[name] / fine.final[name] == pytest.approx(2, abs=0.1)


def test_limit_for_L_equal_to_zero():
    """y' = cos t: L = 0, and the bounds become (b − a) M₂ h/2; the coarse form says nothing."""
    problem = IVP(lambda t, y: np.cos(t) + 0 * y, [0.0], (0, 2), exact=lambda t: np.sin([t]))
    found = analysis.euler_bounds(problem, 20)
    assert found.L == 0
    assert pytest.approx(1.0, rel=1e-6) == found.M2  # |y″| = |sin t| reaches 1 at π/2
    expected = 2 * found.M2 * found.h / 2
    assert found.final["geometric (A^N)"] == pytest.approx(expected)
    assert found.final["exponential"] == pytest.approx(expected)
    assert found.final["exponential, coarse"] == math.inf
    assert found.largest_error <= found.final["logarithmic norm"] <= expected
    near = analysis.euler_bounds(problem, 20, L=1e-9)  # the limit is continuous
    assert near.final["geometric (A^N)"] == pytest.approx(expected, rel=1e-6)


def test_the_logarithmic_norm_sees_that_solutions_meet():
    """y' = −λ(y − cos t): with L the bound grows like e^{λt}, with μ = −λ it stays put."""
    problem = problems.get("curtiss_hirschfelder", lam=10.0)
    found = analysis.euler_bounds(problem, 100)
    assert found.logarithmic_norm.upper == pytest.approx(-10.0, rel=1e-9)
    assert found.mu == pytest.approx(np.full(100, -10.0), rel=1e-9)
    assert found.largest_error <= found.largest["logarithmic norm"] < 1.2 * found.largest_error
    for name, values in found.curves.items():
        assert found.final[name] == values[-1]  # where the curve ends: solutions have met by then
    assert found.error[-1] <= found.final["logarithmic norm"] < found.largest["logarithmic norm"]
    assert found.final["geometric (A^N)"] > 1e5 * found.largest_error


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_systems(norm):
    problem = problems.get("order_rational")
    found = analysis.euler_bounds(problem, 40, norm=norm)
    assert found.lipschitz.guaranteed
    for values in found.curves.values():
        assert np.all(found.error <= values * (1 + 1e-9) + 1e-14)
    assert np.all(found.truncation <= found.h**2 * found.M2 / 2 * (1 + 1e-6))


def test_without_exact_solution_and_backwards():
    forward = analysis.euler_bounds(problems.get("lotka_volterra").with_(t_span=(0.0, 1.0)), 50)
    for values in forward.curves.values():
        assert np.all(forward.error <= values * (1 + 1e-9) + 1e-14)
    problem = problems.get("linear_growth")
    start = problem.exact(1.0)
    back = analysis.euler_bounds(problem.with_(y0=start, t_span=(1.0, 0.0)), 10)
    assert back.t[-1] == 0.0
    for values in back.curves.values():
        assert np.all(back.error <= values * (1 + 1e-9) + 1e-14)


def test_an_untraceable_problem_says_so():
    def f(t, y):
        return [math.sin(t) * float(y[0])]

    problem = IVP(f, [1.0], (0, 1), exact=lambda t: [math.exp(1 - math.cos(t))])
    found = analysis.euler_bounds(problem, 10)
    assert not found.lipschitz.guaranteed
    assert "not a guaranteed bound" in str(found)
    assert pytest.approx(math.sin(1), rel=1e-6) == found.L


def test_bounds_refuse():
    problem = problems.get("linear_growth")
    with pytest.raises(ValueError, match="N must"):
        analysis.euler_bounds(problem, 0)
    with pytest.raises(ValueError, match="N must"):
        analysis.euler_bounds(problem, 2.5)
    with pytest.raises(ValueError, match="M2"):
        analysis.euler_bounds(problem, 10, M2=-1.0)
    root = problems.get("square_root").with_(exact=lambda t: [t**2 / 4])
    with pytest.raises(ValueError, match="Lipschitz"):
        analysis.euler_bounds(root, 10)
    with pytest.raises(TypeError, match="IVP"):
        analysis.euler_bounds(lambda t, y: y, 10)
    with pytest.raises(ValueError, match="norm"):
        analysis.euler_bounds(problem, 10, norm=3)
