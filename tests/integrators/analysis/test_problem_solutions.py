"""Existence and uniqueness, Picard's iterates, reduction to first order."""

import math
import pickle

import numpy as np
import pytest

from integrators import IVP, analysis, problems, solve, traced

ROUNDING = 1e-12


# ------------------------------------------------------------------------------ existence


def test_picard_lindeloef_on_a_given_rectangle():
    """y' = y², y(0) = 1, |y − 1| ≤ 1: M = 4, L = 4, interval 1/4; the solution ends at t = 1."""
    found = analysis.existence(lambda t, y: y**2, 0.0, [1.0], a=1.0, b=1.0)
    assert found.verdict == "unique"
    assert found.M[0] == pytest.approx(4.0, rel=1e-12)
    assert found.interval == pytest.approx((-0.25, 0.25), rel=1e-12)
    assert found.interval[1] <= 0.25  # M is an upper bound
    assert found.lipschitz.upper == pytest.approx(4.0, rel=1e-3)
    assert "Picard–Lindelöf" in str(found)


def test_the_default_rectangle_is_a_good_one():
    """For y' = 1 + y² from 0, b/(1 + b²) is largest at b = 1: an interval of 1/2 (of π/2)."""
    found = analysis.existence(lambda t, y: 1 + y**2, 0.0, [0.0], a=10.0)
    assert found.verdict == "unique"
    assert found.b == pytest.approx([1.0])
    assert found.interval[1] == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("name", ["pendulum", "lorenz", "lotka_volterra", "van_der_pol", "kepler"])
def test_smooth_problems_have_one_solution(name):
    problem = problems.get(name)
    found = analysis.existence(problem)
    assert found.verdict == "unique"
    reach = found.interval[1] - found.t0
    assert reach > 0
    # The solution stays in the rectangle for as long as was promised.
    end = min(reach, problem.t_span[1] - problem.t_span[0])
    run = solve(problem, (found.t0, found.t0 + end), rtol=1e-9, atol=1e-12)
    assert np.all(np.abs(run.y - problem.y0[:, None]) <= found.b[:, None] * (1 + 1e-9))


def test_square_root_has_two_solutions():
    """Notes, Example 1.2: y = 0 and y = sign(t) t²/4."""
    found = analysis.existence(problems.get("square_root"))
    assert found.verdict == "not unique"
    assert "Osgood" in str(found)
    stays, leaves = found.solutions
    t = np.linspace(-2, 2, 41)
    assert np.all(stays(t) == 0.0)
    assert leaves(t) == pytest.approx(np.sign(t) * t**2 / 4, abs=1e-10)
    assert leaves(1.0) == pytest.approx(0.25, abs=1e-12)


@pytest.mark.parametrize(
    ("f", "t0", "y0", "leaving"),
    [
        (lambda t, y: 3 * np.abs(y) ** (2 / 3), 0.0, 0.0, lambda t: t**3),
        (lambda t, y: np.sqrt(np.abs(y - 1)), 2.0, 1.0, lambda t: 1 + abs(t - 2) * (t - 2) / 4),
        (lambda t, y: [math.sqrt(abs(y[0]))], 0.0, 0.0, lambda t: np.sign(t) * t**2 / 4),
    ],
)  # fmt: skip
def test_leaving_solutions_by_separation_of_variables(f, t0, y0, leaving):
    found = analysis.existence(f, t0, [y0])
    assert found.verdict == "not unique"
    t = t0 + np.array([-1.5, -0.2, 0.0, 0.3, 2.0])
    assert found.solutions[1](t) == pytest.approx(leaving(t), abs=1e-7)


def test_where_a_solution_returns_it_does_not_leave():
    """y' = −√|y| for y > 0 falls back to 0: to the right of t = 0 only y < 0 can leave."""
    found = analysis.existence(lambda t, y: -np.sqrt(np.abs(y)), 0.0, [0.0])
    t = np.array([-1.0, 1.0])
    assert found.solutions[1](t) == pytest.approx([0.25, -0.25], abs=1e-10)


def test_verdicts_without_a_lipschitz_constant():
    away = analysis.existence(lambda t, y: np.sqrt(np.abs(y)) + 1, 0.0, [0.0])
    assert away.verdict == "unique"  # f(y0) ≠ 0: separation of variables
    assert "separation" in str(away)
    moving = analysis.existence(lambda t, y: t + np.sqrt(np.abs(y)), 0.0, [0.0])
    assert moving.verdict == "exists"  # Peano, no more
    jump = analysis.existence(lambda t, y: np.sign(y), 0.0, [0.0])
    assert jump.verdict == "unknown"
    assert "jumps" in str(jump)
    pole = analysis.existence(lambda t, y: 1 / y, 0.0, [0.0])
    assert pole.verdict == "unknown"
    assert "not finite" in str(pole)
    smaller = analysis.existence(problems.get("square_root", y0=1.0))
    assert smaller.verdict == "unique"  # the default box keeps away from 0
    assert smaller.b[0] < 1


def test_nothing_is_proved_without_a_graph():
    found = analysis.existence(lambda t, y: [math.cos(y[0])], 0.0, [0.0])
    assert found.verdict == "unknown"
    assert found.interval == (0.0, 0.0)
    assert "nothing is proved" in str(found)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((lambda t, y: y,), {}, TypeError),
        ((lambda t, y: y, 0.0, [1.0]), {"a": 0.0}, ValueError),
        ((lambda t, y: y, 0.0, [1.0]), {"b": -1.0}, ValueError),
        ((lambda t, y: y, 0.0, [np.nan]), {}, ValueError),
        ((lambda t, y: y, np.inf, [1.0]), {}, ValueError),
        ((lambda t, y: y, 0.0, [1j]), {}, ValueError),
    ],
)
def test_existence_refuses_bad_input(arguments, options, error):
    with pytest.raises(error):
        analysis.existence(*arguments, **options)


# ------------------------------------------------------------------------------ Picard


def test_iterates_of_the_exponential_are_its_partial_sums():
    result = analysis.picard(lambda t, y: y, (0.0, 2.0), [1.0], 8)
    t = np.linspace(0, 2, 9)
    for k, iterate in enumerate(result.iterates):
        partial = sum(t**j / math.factorial(j) for j in range(k + 1))
        assert iterate(t)[0] == pytest.approx(partial, abs=ROUNDING)
        coefficients = iterate.powers()
        expected = [1 / math.factorial(j) for j in range(k + 1)]
        assert coefficients == pytest.approx(expected, abs=1e-10)


def test_iterates_of_the_notes_problem():
    """y' = ty + t, y(0) = 1: y_k = 1 + 2 Σ_{j=1..k} (t²/2)ʲ/j!."""
    result = analysis.picard(problems.get("linear_growth"), iterations=6)
    t = np.linspace(0, 1, 7)
    for k, iterate in enumerate(result.iterates):
        expected = 1 + 2 * sum((t**2 / 2) ** j / math.factorial(j) for j in range(1, k + 1))
        assert iterate(t)[0] == pytest.approx(expected, abs=ROUNDING)
        assert iterate.degree == 2 * k


def test_second_iterate_of_a_nonlinear_problem():
    """y' = y², y(1) = 1: y_1 = 1 + s, y_2 = 1 + s + s² + s³/3 with s = t − 1."""
    result = analysis.picard(lambda t, y: y**2, (1.0, 1.5), [1.0], 2)
    assert result.iterates[2].powers() == pytest.approx([1, 1, 1, 1 / 3], abs=1e-11)


@pytest.mark.parametrize(
    ("name", "span"), [("linear_growth", (0, 1)), ("logistic", (0, 1)), ("kepler", (0, 0.3)),
                       ("minus_2ty2", (0, 0.5)), ("harmonic_oscillator", (0, 1))],
)  # fmt: skip
def test_errors_stay_below_their_bounds(name, span):
    problem = problems.get(name)
    result = analysis.picard(problem, span, iterations=12)
    assert result.guaranteed
    t = np.linspace(*span, 31)
    exact = np.array([problem.exact(s) for s in t]).T
    errors = [np.max(np.abs(y(t) - exact), axis=0) for y in result.iterates]
    for k, error in enumerate(errors):
        assert np.all(error <= result.bound(k, t) + ROUNDING)
        if k:
            assert error.max() <= result.a_posteriori(k) + ROUNDING
    assert errors[12].max() < 1e-4 * errors[1].max()


def test_backwards_and_constant():
    result = analysis.picard(lambda t, y: y, (0.0, -1.0), [1.0], 20)
    assert result.iterates[-1](-1.0)[0] == pytest.approx(math.exp(-1), abs=ROUNDING)
    still = analysis.picard(lambda t, y: np.cos(t) + 0 * y, (0.0, 1.0), [0.0], 2)
    assert still.L == 0
    assert still.bound(1) == 0
    assert still.iterates[1](1.0)[0] == pytest.approx(math.sin(1), abs=ROUNDING)
    assert still.bound(0) >= math.sin(1)
    assert "degree" in str(still)


def test_picard_refuses():
    with pytest.raises(ValueError, match="shorter interval"):
        analysis.picard(lambda t, y: np.log(1 - y), (0.0, 3.0), [0.5], 6)
    with pytest.raises(ValueError, match="not smooth"):
        analysis.picard(lambda t, y: np.abs(t - 0.3) + y, (0.0, 1.0), [0.0], 2)
    with pytest.raises(ValueError, match="iterations"):
        analysis.picard(lambda t, y: y, (0.0, 1.0), [0.0], -1)
    with pytest.raises(ValueError, match="length"):
        analysis.picard(lambda t, y: y, (1.0, 1.0), [0.0])
    with pytest.raises(TypeError, match="needs"):
        analysis.picard(lambda t, y: y)
    result = analysis.picard(lambda t, y: y, (0.0, 1.0), [1.0], 2)
    with pytest.raises(ValueError, match="iterates 0"):
        result.bound(3)
    with pytest.raises(ValueError, match="predecessor"):
        result.a_posteriori(0)


# ------------------------------------------------------------------------------ reduction


def explicit(t, x, y):
    return [x[0] ** 2 + t - y[1], t**2 + 1 - x[0]]


def printed(t, x, y):
    """Example 1.1 as it stands in the notes, everything on one side."""
    return [x[3] + y[1] - x[0] ** 2 - t, y[2] + x[0] - t**2 - 1]


@pytest.mark.parametrize(("equations", "form"), [(explicit, "explicit"), (printed, "residual")])
def test_example_1_1(equations, form):
    f = analysis.first_order(equations, (3, 2), names=("x", "y"), form=form)
    assert f.names == ["x", "x'", "x''", "y", "y'"]
    problem = f.ivp([(0, 0, 2), (0, 2)], (0, 1))
    assert problem.y0.tolist() == [0, 0, 2, 0, 2]
    assert list(problem.state_names) == f.names
    # Taylor coefficients of the solution satisfy the third-order system: x‴ = x² + t − y′, …
    x0, x1, x2, _, y1 = state = np.array([0.3, -0.2, 0.5, 0.1, 0.7])
    t = 0.4
    coefficients = traced(f, n=5).series(3)(t, state)
    assert coefficients[3, 0] * 6 == pytest.approx(x0**2 + t - y1, abs=ROUNDING)
    assert coefficients[2, 3] * 2 == pytest.approx(t**2 + 1 - x0, abs=ROUNDING)
    assert coefficients[1, :2] == pytest.approx([x1, x2], abs=ROUNDING)
    # The power series from the initial values: x = t² − t³/3 + …, y = 2t + t²/2 + …
    start = traced(f, n=5).series(4)(0.0, problem.y0)
    assert start[:4, 0] == pytest.approx([0, 0, 1, -1 / 3], abs=ROUNDING)
    assert start[:3, 3] == pytest.approx([0, 2, 0.5], abs=ROUNDING)
    assert solve(problem, rtol=1e-10, atol=1e-12).success


def test_one_equation_of_high_order():
    beam = analysis.first_order(lambda t, y: 24.0, 4)
    run = solve(beam.ivp([(0, 0, 0, 0)], (0, 2)), rtol=1e-10, atol=1e-12)
    assert run.y[0, -1] == pytest.approx(16.0, rel=1e-9)
    assert beam.names == ["y", "y'", "y''", "y'''"]
    oscillator = analysis.first_order(lambda t, y, p: -p[0] * y[0], 2)
    problem = oscillator.ivp([(0, 3)], (0, 1), params=[9.0])
    assert solve(problem, rtol=1e-10, atol=1e-12).y[0, -1] == pytest.approx(math.sin(3), abs=1e-8)


def test_coupled_masses_in_residual_form():
    """M x'' + K x = 0 with a full mass matrix: eigenfrequencies of M⁻¹K."""
    M, K = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[5.0, -1.0], [-1.0, 4.0]])

    def equations(t, x, y):
        return M @ np.array([x[2], y[2]]) + K @ np.array([x[0], y[0]])

    f = analysis.first_order(equations, (2, 2), form="residual")
    state = np.array([1e8, 0.5, -2e8, 1.0])  # large states must not cost digits
    expected = np.linalg.solve(M, -K @ state[[0, 2]])
    assert f(0.0, state)[[1, 3]] == pytest.approx(expected, rel=1e-14)
    assert traced(f, n=4)(0.0, state)[[1, 3]] == pytest.approx(expected, rel=1e-14)
    assert [part.tolist() for part in f.split(state)] == [[1e8, 0.5], [-2e8, 1.0]]


def test_residual_form_of_what_cannot_be_traced():
    def equations(t, y):
        return 2.0 * y[2] + math.sin(float(y[0]))

    f = analysis.first_order(equations, 2, form="residual")
    assert f(0.0, np.array([1.0, 0.0])) == pytest.approx([0.0, -math.sin(1) / 2], abs=1e-14)


def reduced():
    return analysis.first_order(explicit, (3, 2))


def test_a_reduction_can_be_pickled():
    f = analysis.first_order(printed, (3, 2), form="residual")
    state = np.arange(5.0)
    before = f(0.5, state)
    assert pickle.loads(pickle.dumps(f))(0.5, state) == pytest.approx(before)


def test_reduction_refuses():
    with pytest.raises(ValueError, match="needs 3 initial values"):
        reduced().ivp([(0, 0), (0, 2)], (0, 1))
    with pytest.raises(ValueError, match="2 unknowns"):
        reduced().ivp([(0, 0, 0)], (0, 1))
    with pytest.raises(ValueError, match="at least 1"):
        analysis.first_order(explicit, (3, 0))
    with pytest.raises(ValueError, match="form"):
        analysis.first_order(explicit, (3, 2), form="implicit")
    with pytest.raises(ValueError, match="names"):
        analysis.first_order(explicit, (3, 2), names=("x",))
    with pytest.raises(TypeError, match="function"):
        analysis.first_order(3, 2)
    with pytest.raises(ValueError, match="returned 2 values"):
        analysis.first_order(lambda t, y: [1.0, 2.0], 2)(0.0, np.zeros(2))
    cubic = analysis.first_order(lambda t, y: y[2] ** 3 + y[2] - 2, 2, form="residual")
    with pytest.raises(ValueError, match="not linear"):
        cubic.ivp([(0, 0)], (0, 1))
    with pytest.raises(ValueError, match="differential-algebraic"):
        analysis.first_order(lambda t, y: y[1] + y[0], 2, form="residual").ivp([(0, 0)], (0, 1))
    with pytest.raises(ValueError, match="5 components"):
        reduced().split(np.zeros(4))
    assert isinstance(reduced().ivp([(0, 0, 2), (0, 2)], (0, 1)), IVP)


def test_no_smaller_box_helps_where_time_hides_the_growth():
    """y' = t√|y| at (0, 0): at t = 0 itself f is 0; y = 0 and y = t⁴/16 are solutions."""
    found = analysis.existence(lambda t, y: t * np.sqrt(np.abs(y)), 0.0, [0.0])
    assert found.verdict == "not unique"
    assert "smaller box for uniqueness" not in str(found)
    t = np.array([-0.8, 0.0, 0.5, 1.0])
    assert found.solutions[1](t) == pytest.approx(t**4 / 16, abs=1e-9)


def test_the_cube_root_has_two_solutions():
    found = analysis.existence(lambda t, y: np.cbrt(y), 0.0, [0.0])
    assert found.verdict == "not unique"
    assert found.solutions[1](0.75) == pytest.approx((2 / 3 * 0.75) ** 1.5, rel=1e-7)


def test_a_jump_is_no_separation_of_variables():
    """f = 1 above 0 and −1 at and below it: from 0 backwards there is no way."""
    found = analysis.existence(lambda t, y: [1.0 if y[0] > 0 else -1.0], 0.0, [0.0])
    assert found.verdict == "unknown"
    assert "backwards there is none" in str(found)
    assert "separation" not in str(found)
    assert "it can stay" in str(analysis.existence(lambda t, y: -np.sign(y), 0.0, [0.0]))


def test_logarithms_are_not_taken_for_powers():
    """y log|y|: ∫dy/f diverges, the solution is unique; numbers cannot prove that."""
    found = analysis.existence(lambda t, y: y * np.log(np.abs(y) + 1e-300), 0.0, [0.0])
    assert found.verdict == "exists"
