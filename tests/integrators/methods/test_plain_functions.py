"""A plain function is a method: steps (f, t, y, h), loops (f, t0, y0, h, N), no order declared."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from integrators import IVP, Tableau, catalogue, solve
from integrators.analysis import convergence, report, stability_function
from integrators.methods import textbook
from integrators.methods.user.plain_function import StepFunction, tableau_of


def my_rk4(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def wrong_weight(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h, y + h * k1)
    return y + h * (0.4 * k1 + 0.6 * k2)


def implicit_euler(f, t, y, h):
    new = y
    for _ in range(100):
        new = y + h * f(t + h, new)
    return new


def scaled(f, t, y, h):
    k = f(t, y)
    return y + h * k * np.linalg.norm(k)


def test_it_solves_with_fixed_steps_as_its_tableau_does():
    problem = IVP(lambda t, y: np.array([y[1], -np.sin(y[0])]), [1.0, 0.0], (0.0, 2.0))
    mine, twin = solve(problem, method=my_rk4, step=0.1), solve(problem, method="RK4", step=0.1)
    np.testing.assert_allclose(mine.y, twin.y, rtol=0, atol=1e-14)


def test_it_costs_what_its_tableau_costs():
    runs = [
        solve(lambda t, y: -y, (0, 1), [1.0], method=method, step=0.1) for method in (my_rk4, "RK4")
    ]
    assert [run.nfev for run in runs] == [40, 40]


def test_it_solves_with_a_tolerance_too():
    sol = solve(lambda t, y: -y, (0, 1), [1.0], method=my_rk4, rtol=1e-8, atol=1e-10)
    assert abs(sol.y[0, -1] - np.exp(-1.0)) < 1e-7


def test_its_order_is_found_not_declared():
    study = convergence("minus_2ty2", [my_rk4, wrong_weight, textbook.rk4, textbook.heun])
    orders = [4, 1, 4, 2]
    for curve, order in zip(study.curves, orders):
        assert curve.expected is None
        assert curve.verdict == "order found"
        assert order in curve.estimate
    assert [curve.method for curve in study.curves] == ["my_rk4", "wrong_weight", "rk4", "heun"]


def test_an_expected_order_brings_the_diagnosis():
    (curve,) = convergence("minus_2ty2", wrong_weight, order=2).curves
    assert curve.verdict == "too low"
    assert curve.findings


@pytest.mark.parametrize("name", ["ExplicitEuler", "Heun", "Kutta3", "RK4", "DOPRI5", "DOP853"])
def test_coefficients_are_read_from_what_it_does(name):
    A, b, c = catalogue.get(name).arrays

    def step(f, t, y, h):
        k = []
        for row, node in zip(A, c):
            k.append(f(t + node * h, y + h * sum(a * x for a, x in zip(row, k))))
        return y + h * sum(w * x for w, x in zip(b, k))

    found = tableau_of(step)
    np.testing.assert_allclose(found.arrays[0], A, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.arrays[1], b, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.arrays[2], c, rtol=0, atol=1e-15)


def test_simple_fractions_are_exact():
    assert tableau_of(my_rk4).b == (Fraction(1, 6), Fraction(1, 3), Fraction(1, 3), Fraction(1, 6))
    assert str(stability_function(my_rk4)) == str(stability_function("RK4"))
    assert "order 4" in str(report(my_rk4))


@pytest.mark.parametrize("function", [implicit_euler, scaled])
def test_what_is_no_explicit_method_has_no_coefficients(function):
    assert tableau_of(function) is None
    with pytest.raises(TypeError, match=f"{function.__name__} is not an explicit"):
        stability_function(function)


def test_the_order_of_an_iterated_step_is_measured():
    assert StepFunction(implicit_euler).order == 1


def test_a_forgotten_return_is_told_by_its_name():
    def forgetful(f, t, y, h):
        y + h * f(t, y)

    sol = solve(lambda t, y: -y, (0, 1), [1.0], method=forgetful, step=0.1)
    assert not sol.success
    assert "forgetful returned None" in sol.message


def test_an_error_inside_shows_the_students_line():
    def broken(f, t, y, h):
        slopes = [f(t, y)]
        return y + h * slopes[7]

    sol = solve(lambda t, y: -y, (0, 1), [1.0], method=broken, step=0.1)
    assert isinstance(sol.exception, IndexError)
    last = sol.exception.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    assert last.tb_frame.f_code.co_name == "broken"
    line = broken.__code__.co_firstlineno + 2
    assert f"(line {line} of {Path(__file__).name}: return y + h * slopes[7])" in sol.message


def test_wrong_arguments_are_still_refused():
    with pytest.raises(TypeError, match=r"step\(f, t, y, h\)"):
        solve(lambda t, y: -y, (0, 1), [1.0], method=lambda y: y, step=0.1)


def test_the_diagnosis_is_the_same_whether_an_order_is_expected_or_not():
    def midpoint(f, t, y, h):
        return y + h * f(t + h / 2, y + h * f(t, y))

    for order in (None, 2):
        (curve,) = convergence("order_trigonometric", midpoint, order=order).curves
        causes = [finding.cause for finding in curve.findings]
        assert causes[:2] == ["a misprinted coefficient", "a row of A does not add up to its node"]
        assert "a21 is 1/2 there, 1 here" in curve.findings[0].evidence


def test_arguments_in_another_order_are_told():
    def mine(t, y, h, f):
        return y + h * f(t, y)

    with pytest.raises(TypeError, match=r"mine\(t, y, h, f\): a step is called as mine\(f, t, y"):
        solve(lambda t, y: -y, (0, 1), [1.0], method=mine, step=0.1)


# ---------------------------------------------------------------- pairs


def heun_euler(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h, y + h * k1)
    return y + h / 2 * (k1 + k2), h / 2 * (k2 - k1)


def test_a_pair_of_state_and_error_is_as_good_as_its_tableau():
    mine = StepFunction(heun_euler)
    assert (mine.order, mine.estimate_order) == (2, 1)
    assert mine.tableau.b == catalogue.get("Heun").b
    table = Tableau([[], [1]], ["1/2", "1/2"], b_hat=[1, 0], name="pair")
    runs = [
        solve(lambda t, y: [y[1], -np.sin(y[0])], (0, 3), [1.0, 0.0], method=method, rtol=1e-5)
        for method in (heun_euler, table)
    ]
    assert runs[0].nsteps == runs[1].nsteps > 20
    assert np.max(np.abs(runs[0].y[:, -1] - runs[1].y[:, -1])) < 1e-12


@pytest.mark.parametrize("y0", [[1.0, 0.0], [0.0, 0.0]])
def test_a_second_result_in_place_of_the_error_is_told(y0):
    def both(f, t, y, h):
        k1 = f(t, y)
        k2 = f(t + h, y + h * k1)
        return y + h / 2 * (k1 + k2), y + h * k1

    with pytest.raises(TypeError, match="return y_new, y_new - y_hat"):
        solve(lambda t, y: [y[1], 1 - np.sin(y[0])], (0, 3), y0, method=both, rtol=1e-6)


def test_components_returned_one_by_one_are_the_state():
    def euler(f, t, y, h):
        k = f(t, y)
        return y[0] + h * k[0], y[1] + h * k[1]

    run = solve(lambda t, y: [y[1], -y[0]], (0, 1), [1.0, 0.0], method=euler, step=0.1)
    usual = solve(lambda t, y: [y[1], -y[0]], (0, 1), [1.0, 0.0], method="ExplicitEuler", step=0.1)
    assert np.allclose(run.y, usual.y, rtol=0, atol=1e-15)


# ---------------------------------------------------------------- loops


def swinging(t, y):
    return [y[1], -np.sin(y[0])]  # a list, as students write it


def loop(returned):
    def rk4(f, t0, y0, h, N):
        t, y = t0, y0
        times, states = [t], [y]
        for _ in range(N):
            y, t = my_rk4(f, t, y, h), t + h
            times.append(t)
            states.append(y)
        return returned(times, states)

    return rk4


@pytest.mark.parametrize(
    "returned",
    [
        lambda t, y: y[-1],
        lambda t, y: (t[-1], y[-1]),
        lambda t, y: (t, y),
        lambda t, y: np.array(y).T,
        lambda t, y: tuple(y[-1]),
    ],
    ids=["end", "time and end", "all", "columns", "components"],
)
def test_a_loop_may_return_the_end_or_all(returned):
    problem = IVP(swinging, [1.0, 0.0], (0, 3))
    steps = [0.3, 0.15, 0.075, 0.0375]
    curve, usual = convergence(problem, [loop(returned), "RK4"], steps, measure="end").curves
    assert 4 in curve.estimate
    assert np.allclose(curve.errors, usual.errors, rtol=1e-6)


def test_a_loop_that_returns_something_else_is_told_what_to_return():
    problem = IVP(swinging, [1.0, 0.0], (0, 3))
    for returned, came in (
        (lambda t, y: None, "None (is a return"),
        (lambda t, y: 1.0, "shape ()"),
    ):
        (remark,) = convergence(problem, loop(returned)).remarks()
        assert "must return the state at the end, 2 numbers, or N + 1 times" in remark
        assert came in remark


def test_an_error_inside_a_loop_shows_the_students_line():
    def broken(f, t0, y0, h, N):
        return y0 + h * undefined  # noqa: F821

    study = convergence(IVP(swinging, [1.0, 0.0], (0, 3)), broken)
    assert any("return y0 + h * undefined" in remark for remark in study.remarks())
