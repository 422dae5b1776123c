"""Global error estimates against true errors, and Richardson extrapolation."""

import math

import numpy as np
import pytest

from integrators import IVP, Event, Tableau, analysis, problems, solve

LADDER = 0.1  # a run with a hundredth of the tolerance still has a few per cent of the error
TIGHT = 0.02  # corrections and variational equations are solved to many digits

PROBLEMS = [
    "linear_growth", "minus_2ty2", "logistic", "curtiss_hirschfelder", "kepler",
    "harmonic_oscillator", "rigid_body", "pendulum", "order_rational", "order_trigonometric",
]  # fmt: skip


def true_error(problem, run):
    return np.array([problem.exact(t) for t in run.t]).T - run.y


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("how", ["ladder", "defect", "variational"])
def test_estimates_are_the_true_errors(name, how):
    problem = problems.get(name)
    run = solve(problem, method="DOPRI5", rtol=1e-6, atol=1e-9)
    estimate = analysis.global_error(run, how, rtol=1e-6, atol=1e-9)
    true = true_error(problem, run)
    tolerance = LADDER if how == "ladder" else TIGHT
    assert np.max(np.abs(estimate.error - true)) <= tolerance * np.max(np.abs(true))
    assert estimate.corrected == pytest.approx(
        run.y + true, abs=tolerance * np.max(np.abs(true)), rel=0
    )


@pytest.mark.parametrize("how", ["ladder", "defect", "variational"])
@pytest.mark.parametrize("method", ["RK4", "Heun", "ImplicitMidpoint", "ExplicitEuler"])
def test_fixed_steps(how, method):
    problem = problems.get("order_rational")
    run = solve(problem, method=method, step=0.02)
    estimate = analysis.global_error(run, how)
    true = true_error(problem, run)
    assert np.max(np.abs(estimate.error - true)) <= LADDER * np.max(np.abs(true))
    assert estimate.step == pytest.approx(0.02)
    assert math.isnan(estimate.ratio)
    assert str(estimate).startswith("fixed step 0.02, estimated global error")


@pytest.mark.parametrize("how", ["ladder", "defect", "variational"])
def test_implicit_methods_on_a_stiff_problem(how):
    problem = problems.get("prothero_robinson")
    run = solve(problem, method="RADAU5", rtol=1e-4, atol=1e-7)
    estimate = analysis.global_error(run, how, rtol=1e-4, atol=1e-7)
    true = np.max(np.abs(true_error(problem, run)))
    assert estimate.largest == pytest.approx(true, rel=LADDER)


def test_the_sentence():
    """An orbit loses what the tolerance promised: errors add up."""
    problem = problems.get("kepler")
    run = solve(problem, rtol=1e-6, atol=1e-9)
    estimate = analysis.global_error(run)  # the default tolerances are recognised
    size = np.max(np.abs(run.y), axis=1)[:, None] + 1e-3
    true = np.max(np.abs(true_error(problem, run)) / size)
    assert estimate.relative == pytest.approx(true, rel=LADDER)
    assert estimate.ratio == pytest.approx(true / 1e-6, rel=LADDER)
    assert str(estimate) == f"asked for 1e-06, estimated global error {estimate.relative:.1e}"
    assert estimate.ratio > 30


def test_the_other_tolerances_must_be_told():
    problem = problems.get("kepler")
    with pytest.raises(ValueError, match="say what was asked for"):
        analysis.global_error(solve(problem, rtol=1e-8))


def test_defects_and_their_bound():
    """With the logarithmic norm the defect bounds the error, sharply where solutions meet."""
    problem = problems.get("curtiss_hirschfelder")
    run = solve(problem, method="RK4", step=0.015)
    estimate = analysis.global_error(run, "defect")
    true = np.max(np.abs(true_error(problem, run)), axis=0)
    assert estimate.defect.shape == run.h.shape
    assert np.all(true[1:] <= estimate.bound[1:])
    assert np.all(estimate.bound[1:] <= 3 * true[1:])
    growing = problems.get("linear_growth")
    run = solve(growing, method="RK4", step=0.1)
    estimate = analysis.global_error(run, "defect")
    assert np.all(np.max(np.abs(true_error(growing, run)), axis=0) <= estimate.bound)


def test_local_errors_of_the_variational_estimate():
    problem = problems.get("linear_growth")
    run = solve(problem, method="Heun", step=0.1)
    estimate = analysis.global_error(run, "variational")
    measured = analysis.local_errors(run)
    assert estimate.local == pytest.approx(measured.errors, abs=1e-12)


def test_output_times_and_unnamed_methods():
    problem = problems.get("harmonic_oscillator")
    t = np.linspace(*problem.t_span, 7)
    run = solve(problem, method="DOP853", t_eval=t)
    estimate = analysis.global_error(run, rtol=1e-6, atol=1e-9)
    true = true_error(problem, run)
    assert estimate.error == pytest.approx(true, abs=LADDER * np.max(np.abs(true)))
    mine = Tableau([[], ["2/3"]], ["1/4", "3/4"])
    run = solve(problem, method=mine, step=0.05)
    with pytest.raises(ValueError, match="Tableau"):
        analysis.global_error(run)
    assert analysis.global_error(run, method=mine).largest == pytest.approx(
        np.max(np.abs(true_error(problem, run))), rel=LADDER
    )


def test_chaos_is_reported():
    lorenz = problems.get("lorenz", t_end=40.0)
    run = solve(lorenz, rtol=1e-4, atol=1e-6)
    estimate = analysis.global_error(run, rtol=1e-4, atol=1e-6)
    assert "rungs of the ladder differ" in str(estimate)


def test_a_ladder_for_differential_algebraic_equations():
    problem = problems.get("robertson_dae", t_end=4.0)
    run = solve(problem, method="RADAU5", rtol=1e-4, atol=1e-8)
    estimate = analysis.global_error(run, rtol=1e-4, atol=1e-8)
    assert 0 < estimate.relative < 1e-2
    with pytest.raises(ValueError, match="mass"):
        analysis.global_error(run, "defect", rtol=1e-4, atol=1e-8)


def test_global_error_refuses(tmp_path):
    problem = problems.get("linear_growth")
    run = solve(problem)
    with pytest.raises(ValueError, match="how"):
        analysis.global_error(run, "guess")
    with pytest.raises(TypeError, match="Solution"):
        analysis.global_error(problem)
    with pytest.raises(ValueError, match="does not know its problem"):
        analysis.global_error(type(run).load(run.save(tmp_path / "run")))
    failed = solve(lambda t, y: y**2, (0, 2), [1.0])
    assert not failed.success
    with pytest.raises(ValueError, match="failed"):
        analysis.global_error(failed)
    with pytest.raises(ValueError, match="include t0"):
        analysis.global_error(solve(problem, t_eval=[0.5, 1.0]))
    jump = Event(lambda t, y: y[0] - 1.5, reset=lambda t, y: [1.0])
    bouncing = solve(problem.with_(events=(jump,)))
    with pytest.raises(ValueError, match="jumps"):
        analysis.global_error(bouncing)


# ------------------------------------------------------------------------------ Richardson


@pytest.mark.parametrize(
    ("method", "order", "levels"),
    [("ExplicitEuler", 1, 8), ("Heun", 2, 6), ("Kutta3", 3, 5), ("RK4", 4, 4)],
)
def test_columns_gain_an_order_each(method, order, levels):
    problem = problems.get("minus_2ty2")
    result = analysis.richardson(problem, method, step=0.1, levels=levels)
    exact = problem.exact(problem.t_span[1])
    assert result.observed_order == pytest.approx(order, abs=0.1)
    assert result.observed_orders(1)[-1] == pytest.approx(order + 1, abs=0.25)
    errors = [np.max(np.abs(entry - exact)) for entry in result.table[-1][:3]]
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert np.max(np.abs(result.value - exact)) <= result.error_estimate + 1e-13
    assert result.unextrapolated_error == pytest.approx(errors[0], rel=1e-2)


def test_symmetric_methods_gain_two():
    problem = problems.get("order_rational")
    result = analysis.richardson(problem, "ImplicitMidpoint", step=0.1, levels=5)
    assert result.exponents == (2, 4, 6, 8)
    assert result.observed_orders(1)[-1] == pytest.approx(4, abs=0.2)
    assert analysis.richardson(problem, "ImplicitEuler", step=0.1).exponents == (1, 2)


def test_polynomials_are_extrapolated_exactly():
    values = [3.0 + 2 * h + 5 * h**2 for h in (0.4, 0.2, 0.1)]
    table = analysis.extrapolation_table(values, (1, 2))
    assert table[2][2] == pytest.approx(3.0, abs=1e-14)
    thirds = [3.0 + 2 * h**2 for h in (0.9, 0.3)]
    assert analysis.extrapolation_table(thirds, (2,), ratio=3.0)[1][1] == pytest.approx(3.0)


def test_any_function_of_the_step():
    """Romberg's integration of eˣ: trapezoidal sums, an expansion in h²."""

    def trapezoid(h):
        x = np.linspace(0, 1, round(1 / h) + 1)
        return h * (np.exp(x).sum() - (1 + math.e) / 2)

    result = analysis.richardson(trapezoid, step=0.5, levels=5, exponents=(2, 4, 6, 8))
    assert float(result.value) == pytest.approx(math.e - 1, abs=1e-12)
    assert "observed order 2.00" in str(result)


def test_rounding_is_not_an_order():
    problem = problems.get("linear_growth")
    result = analysis.richardson(problem, "DOP853", step=0.05, levels=4)
    assert np.isnan(result.observed_orders(0)).any()


def test_richardson_refuses():
    problem = problems.get("linear_growth")
    with pytest.raises(ValueError, match="multiple"):
        analysis.richardson(problem, "RK4", step=0.3)
    with pytest.raises(ValueError, match="step"):
        analysis.richardson(problem, "RK4", step=0.0)
    with pytest.raises(ValueError, match="levels"):
        analysis.richardson(problem, "RK4", step=0.1, levels=1)
    with pytest.raises(TypeError, match="order"):
        analysis.richardson(lambda h: h, step=0.1)
    with pytest.raises(ValueError, match="exponents"):
        analysis.extrapolation_table([1.0, 2.0, 3.0], (1,))
    with pytest.raises(ValueError, match="NaN"):
        analysis.extrapolation_table([1.0, np.nan], (1,))
    blow = IVP(lambda t, y: y**2, [1.0], (0, 4))
    with pytest.raises(ValueError, match="failed"):
        analysis.richardson(blow, "ImplicitEuler", step=1.0)
    with pytest.raises(TypeError, match="needs both"):
        analysis.richardson(lambda t, y: y, "RK4", step=0.1)
    by_function = analysis.richardson(lambda t, y: y, "RK4", 0.1, t_span=(0, 1), y0=[1.0])
    assert by_function.value[0] == pytest.approx(math.e, abs=1e-7)
