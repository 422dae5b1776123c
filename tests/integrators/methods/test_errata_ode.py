"""Formulae of the ODE notes that are printed wrong, and the right ones (docs/errata.md, E20–E30).

Each test evaluates the formula as printed, shows that it fails, and that the correction holds.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from integrators import Tableau, Taylor, catalogue, problems, solve, traced

ROUNDING = 1e-12  # closed forms on both sides


def test_e20_integral_remainder():
    """Taylor's remainder of eˣ after n = 2 terms at x₀ = 0.3, h = 0.5."""
    x0, h, n = 0.3, 0.5, 2
    true = math.exp(x0 + h) - sum(math.exp(x0) * h**k / math.factorial(k) for k in range(n + 1))
    right, _ = quad(lambda s: math.exp(s) * (x0 + h - s) ** n / math.factorial(n), x0, x0 + h)
    printed, _ = quad(lambda s: math.exp(s) * (s - h) ** n / math.factorial(n), x0, x0 + h)
    assert right == pytest.approx(true, abs=ROUNDING)
    assert abs(printed - true) > 1e-3


def test_e21_series_of_the_cosine():
    x = 0.7
    right = sum((-1) ** k * x ** (2 * k) / math.factorial(2 * k) for k in range(12))
    printed = sum(-(1**k) * x ** (2 * k) / (2 * math.factorial(k)) for k in range(12))
    assert right == pytest.approx(math.cos(x), abs=ROUNDING)
    assert abs(printed - math.cos(x)) > 1


def euler_error(N):
    problem = problems.get("linear_growth")  # y' = xy + x, y(0) = 1, on [0, 1]
    solution = solve(problem, (0, 1), method="ExplicitEuler", step=1 / N)
    return abs(solution.y[0, -1] - problem.exact(1.0)[0])


def test_e22_error_bound_of_euler():
    """With L = 1, M₂ = 4√e, N = 10: true error 0.2032 ≤ 0.5255 (Aᴺ) ≤ 0.5666 ≤ 0.8963."""
    N, L, M2 = 10, 1.0, 4 * math.sqrt(math.e)
    h = 1 / N
    A, B = 1 + h * L, h * h * M2 / 2
    error = euler_error(N)
    right = B * (A**N - 1) / (A - 1)
    printed = B * (A**h - 1) / (A - 1)
    assert error == pytest.approx(0.2032, abs=5e-5)
    assert right == pytest.approx(0.5255, abs=5e-5)
    assert B * (math.exp(L) - 1) / (h * L) == pytest.approx(0.5666, abs=5e-5)
    assert error <= right
    assert printed < 0.01 < error  # no bound at all


def test_e23_bound_needs_the_modulus_of_the_second_derivative():
    """For y = −eˣ, sup y″ is negative, and a negative number bounds no error."""
    second = [-math.exp(x) for x in np.linspace(0, 1, 11)]
    assert max(second) < 0
    M2, h = max(map(abs, second)), 0.1
    local = abs(-math.exp(h) - (-1 - h))
    assert local <= h * h * M2 / 2


@pytest.mark.parametrize(("power", "order"), [(2, 2.0), (1, 0.0)])
def test_e24_second_order_taylor(power, order):
    """Eq 1.18 with h²/2 converges with order 2; as printed, with h/2, it does not converge."""

    def f(x, y):
        return x * y + x

    def end(N):
        h, y = 1 / N, 1.0
        for k in range(N):
            x = k * h
            y += h * f(x, y) + h**power / 2 * (y + 1 + x * f(x, y))
        return y

    exact = 2 * math.exp(0.5) - 1
    coarse, fine = (abs(end(N) - exact) for N in (50, 100))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.1)


def test_e25_third_derivative():
    """For y' = y² at y = 2: y‴ = 6y⁴ = 96; the printed term f_yy·y·f gives 80."""
    y = 2.0
    f, fy, fyy = y * y, 2 * y, 2.0
    right = fyy * f * f + fy * fy * f
    printed = fyy * y * f + fy * fy * f
    assert right == 96.0
    assert printed == 80.0
    series = traced(lambda t, y: y * y, n=1).series(3)
    assert series(0.0, [2.0])[3, 0] * math.factorial(3) == pytest.approx(96.0)


def test_e26_general_line_of_the_economic_recursion():
    """D₄ for f = sin(xy) + y² at (0.3, 0.7) is 20.48; dropping the factors y⁽ʲ⁺¹⁾ gives another."""
    from mpmath import mp, mpf, taylor

    x0, y0 = 0.3, 0.7
    f = traced(lambda t, y: np.sin(t * y) + y * y, n=1)
    fourth = f.series(4)(x0, [y0])[4, 0] * 24
    assert fourth == pytest.approx(20.48, abs=5e-3)

    with mp.workdps(40):  # the same by Picard iteration on truncated series
        coefficients = [mpf(y0), *[mpf(0)] * 4]
        for _ in range(5):
            current = list(coefficients)

            def slope(s, c=current):
                y = sum(a * s**k for k, a in enumerate(c))
                return mp.sin((mpf(x0) + s) * y) + y * y

            rates = taylor(slope, 0, 3)
            coefficients = [mpf(y0), *(rate / (k + 1) for k, rate in enumerate(rates))]
        assert fourth == pytest.approx(float(coefficients[4] * 24), abs=1e-9)
    assert abs(fourth - 21.39) > 0.5  # the printed line


def test_e27_second_order_family_carries_the_step():
    """y₊ = y + hωf + hγf(…): without h the one-step map does not tend to the identity."""
    y, h, gamma = 1.0, 1e-3, 0.5

    def f(x, y):
        return -y

    inner = f(h / (2 * gamma), y + h / (2 * gamma) * f(0, y))
    right = y + h * (1 - gamma) * f(0, y) + h * gamma * inner
    printed = y + (1 - gamma) * f(0, y) + gamma * inner
    assert right == pytest.approx(math.exp(-h), abs=h**3)
    assert abs(printed - y) > 0.9


def test_e28_three_eighths_rule():
    right = catalogue.get("RK38")
    assert right.A[2][:2] == (Fraction(-1, 3), Fraction(1))
    assert right.order == 4
    printed = Tableau([[], ["1/3"], ["-1/3", -1], [1, -1, 1]], right.b, right.c, check=False)
    assert printed.order == 1
    one = [solve(lambda t, y: -y, (0, 0.1), [1.0], method=m, step=0.1) for m in (right, printed)]
    assert one[0].y[0, -1] == pytest.approx(0.9048375, abs=1e-12)
    assert one[1].y[0, -1] == pytest.approx(0.8978292, abs=5e-8)


def test_e29_stages_are_not_the_order():
    midpoint = catalogue.get("ImplicitMidpoint")
    assert (midpoint.stages, midpoint.order) == (1, 2)
    errors = []
    for h in (0.1, 0.05):  # one step: the local error is O(h^(p+1))
        solution = solve(lambda t, y: -y, (0, h), [1.0], method=midpoint, step=h)
        errors.append(abs(solution.y[0, -1] - math.exp(-h)))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.1)


def test_e30_equation_of_implicit_euler():
    """G(K) = K − h f(x + h, y + K) vanishes at the method's own increment; the printed one not."""
    h, y = 0.1, 1.0

    def f(x, y):
        return -2 * x * y * y

    step = solve(lambda t, y: f(t, y), (0.5, 0.6), [y], method="ImplicitEuler", step=h)
    K = step.y[0, -1] - y
    assert K - h * f(0.5 + h, y + K) == pytest.approx(0, abs=ROUNDING)
    printed = K - h * f(0.5 + h * y + K, y)  # read as f at the single argument x + h·y + K
    assert abs(printed) > 1e-3


def test_taylor_method_uses_the_right_factors():
    """The library's Taylor methods have the orders that the corrected formulae promise."""
    problem = problems.get("linear_growth")
    for order in (2, 3):
        coarse, fine = (
            abs(solve(problem, (0, 1), method=Taylor(order), step=1 / N).y[0, -1]
                - problem.exact(1.0)[0])
            for N in (20, 40)
        )  # fmt: skip
        assert math.log2(coarse / fine) == pytest.approx(order, abs=0.15)
