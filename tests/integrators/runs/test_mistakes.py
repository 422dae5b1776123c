"""Mistakes that students make, and what SciPy's users expect: each gets a sentence that helps."""

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import IVP, Event, Status, Taylor, solve, solve_many


def decay(t, y):
    return -y


# ---------------------------------------------------------------- f


def test_f_with_its_arguments_swapped_is_warned_of():
    with pytest.warns(UserWarning, match=r"f\(y, t\): solve calls f\(t, y\), the time first"):
        solve(lambda y, t: -y, (0, 1), [1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(lambda x, y: -y, (0, 1), [1.0])
        solve(lambda time, t: -t, (0, 1), [1.0])


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda u, s: [u[1], -u[0]], TypeError),  # a float has no components
        (lambda u, s: -u, ValueError),  # one number for two
    ],
)
def test_f_with_its_arguments_swapped_is_told_where_it_fails(f, error):
    with pytest.raises(error, match=r"seems to take the state first.*write f\(t, y\)"):
        solve(f, (0, 1), [1.0, 2.0])


def test_other_faults_of_f_are_not_taken_for_swapped_arguments():
    for f in (lambda t, y: y[5], lambda t, y: ["a", "b"], lambda t, y: None):
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            solve(f, (0, 1), [1.0, 2.0])
        assert "state first" not in str(caught.value)


@pytest.mark.parametrize("value", [["1.0", "2.0"], np.array(["1", "2"]), [b"1", 2.0]])
def test_strings_are_no_numbers(value):
    with pytest.raises(TypeError, match=r"f returned .*; expected 2 numbers"):
        solve(lambda t, y: value, (0, 1), [1.0, 2.0])
    with pytest.raises(TypeError, match="y0 must be a list of numbers"):
        solve(decay, (0, 1), value)


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5", "scipy:RK45"])
def test_an_f_that_calls_itself_is_told_as_such(method):
    def at_once(t, y):
        return at_once(t, y)

    def later(t, y):
        return later(t, y) if t > 0.5 else -y

    with pytest.raises(RecursionError, match="f calls itself without end"):
        solve(at_once, (0, 1), [1.0], method=method)
    with pytest.raises(RecursionError, match="f calls itself without end"):
        solve_many(at_once, (0, 1), [[1.0], [2.0]], method=method)
    run = solve(later, (0, 1), [1.0], method=method)
    assert run.status == Status.FUNCTION_RAISED
    assert isinstance(run.exception, RecursionError)
    assert "it calls itself without end" in run.message


# ---------------------------------------------------------------- numbers


def test_a_solution_that_blew_up_says_so():
    fixed = solve(lambda t, y: -50 * y, (0, 30), [1.0], method="ExplicitEuler", step=0.1)
    assert fixed.status == Status.FINISHED
    assert abs(fixed.y[0, -1]) > 1e150
    assert "it blew up (is the fixed step too long for stability?)" in fixed.message
    adaptive = solve(lambda t, y: y, (0, 100), [1.0])
    assert "grown to 3e+43" in adaptive.message
    assert solve(lambda t, y: y, (0, 10), [1.0]).message == "reached the end of the interval"


def test_tolerances_beside_a_fixed_step_are_told_to_do_nothing():
    for tolerance in ({"rtol": 1e-8}, {"atol": 1e-12}, {"rtol": 1e-6}):  # the usual one, too
        run = solve(decay, (0, 1), [1.0], step=0.1, **tolerance)
        assert "rtol and atol had no effect" in run.message
    plain = solve(decay, (0, 1), [1.0], step=0.1)
    assert plain.message == "reached the end of the interval"


def test_an_angle_too_large_to_move_is_told():
    run = solve(lambda t, y: [1.0, 1.0], (0, 1), [1.0, 1e16])
    assert run.y[1, -1] == 1e16
    assert "y[1] = 1e+16 has not moved, though its derivative is 1: digits are lost" in run.message
    for f, y0 in ((lambda t, y: [1.0], [1e6]), (lambda t, y: 0 * y, [1e16]), (decay, [1e16])):
        assert solve(f, (0, 1), y0).message == "reached the end of the interval"


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="is double here")
@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_digits_beyond_double_precision_are_not_dropped_in_silence(kind):
    with pytest.raises(TypeError, match=r"double precision.*y0.astype"):
        solve(decay, (0, 1), np.ones(2, dtype=kind))


def test_one_relative_tolerance_for_all():
    assert solve(decay, (0, 1), [1.0, 2.0], rtol=np.array([1e-5, 1e-5])).success
    with pytest.raises(ValueError, match=r"rtol must be one number.*let atol be a list"):
        solve(decay, (0, 1), [1.0, 2.0], rtol=[1e-5, 1e-6])
    with pytest.raises(ValueError, match="rows"):  # one for each run, and there is one run only
        solve_many(decay, (0, 1), [[1.0, 2.0]], rtol=[1e-5, 1e-6])
    with pytest.raises(TypeError, match="rtol must be a number, got 'tight'"):
        solve(decay, (0, 1), [1.0], rtol="tight")


def test_an_empty_interval_has_dense_output():
    for dtype in (float, complex):
        run = solve(decay, (2, 2), np.array([1, 3], dtype=dtype), dense_output=True)
        assert run.sol(2.0).tolist() == [1.0, 3.0]
        assert run.sol([2.0]).shape == (2, 1)
        with pytest.raises(ValueError, match="outside"):
            run.sol(2.5)


# ---------------------------------------------------------------- programs written for SciPy


def driven(t, y, rate, drive):
    return [-rate * y[0] + drive["size"] * np.cos(t)]


def half(t, y, rate, drive):
    return y[0] - 0.5


half.terminal, half.direction = None, -1


def test_args_are_those_of_scipy():
    call = dict(args=(2.0, {"size": 0.1}), events=half, vectorized=False, rtol=1e-9, atol=1e-12)
    ours, theirs = (one(driven, (0, 3), [1.0], **call) for one in (solve, solve_ivp))
    assert ours.y[0, -1] == pytest.approx(theirs.y[0, -1], abs=1e-8)
    assert ours.t_events[0] == pytest.approx(theirs.t_events[0], abs=1e-8)
    slope = lambda t, y, rate, drive: [[-rate]]  # noqa: E731
    stiff = solve(driven, (0, 3), [1.0], method="Radau", jac=slope, **call)
    assert stiff.y[0, -1] == pytest.approx(theirs.y[0, -1], abs=1e-6)
    bounce = Event(half, reset=lambda t, y, rate, drive: [1.0])
    assert solve(driven, (0, 3), [1.0], **call | {"events": bounce}).t_events[0].size > 3


def test_args_that_cannot_be_meant():
    with pytest.raises(TypeError, match=r"write args=\(2.0,\)"):
        solve(driven, (0, 1), [1.0], args=2.0)
    with pytest.raises(ValueError, match="either params"):
        solve(driven, (0, 1), [1.0], args=(1.0,), params=[1.0])


def test_an_event_without_terminal_or_direction():
    event = Event(lambda t, y: y[0] - 0.5, direction=None, terminal=None)
    assert solve(decay, (0, 1), [1.0], events=event).t_events[0] == pytest.approx([np.log(2)])


@pytest.mark.parametrize("span", [(0, np.inf), (-np.inf, 0), (0, np.nan)])
def test_an_interval_without_end_is_refused_with_a_remedy(span):
    with pytest.raises(ValueError, match=r"t_span must be finite.*terminal=True"):
        solve(decay, span, [1.0])


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", [".", "..", ""])
def test_a_folder_is_no_file_to_save_to(tmp_path, name):
    run = solve(decay, (0, 1), [1.0])
    with pytest.raises(ValueError, match="names a folder"):
        run.save(f"{tmp_path}/sub/{name}")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- pictures


def test_dollar_signs_in_names_are_no_formulae():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from integrators import IVP
    from integrators.analysis.plot import study as pictures
    from integrators.analysis.study.convergence import convergence

    costs = "costs $ and \\undefined$"
    problem = IVP(decay, [1.0], (0.0, 1.0), exact=lambda t: np.exp(-t), name=costs)
    found = convergence(problem, ["RK4"], steps=[0.2, 0.1, 0.05, 0.025])
    ax = pictures.convergence(found)
    FigureCanvasAgg(ax.figure).draw()  # a formula that cannot be read would raise
    assert ax.get_title(loc="left") == costs.replace("$", "\\$")


# -------------------------------------------------------------------- the order of arguments


@pytest.mark.parametrize("y0", [[1.0, 2.0, 3.0], 1.0, [2.0]])
def test_interval_and_state_are_told_apart(y0):
    expected = np.atleast_1d(y0) * np.exp(-1.0)
    for given in (
        solve(decay, (0, 1), y0, rtol=1e-9),
        solve(decay, y0, (0, 1), rtol=1e-9),
        solve(IVP(decay, y0, (0, 1)), rtol=1e-9),
        solve(IVP(decay, (0, 1), y0), rtol=1e-9),
    ):
        np.testing.assert_allclose(given.y[:, -1], expected, rtol=1e-8)


def test_rows_of_states_are_told_from_an_interval():
    starts = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])
    a = solve_many(decay, (0, 1), starts)
    b = solve_many(decay, starts, (0, 1))
    c = solve_many(IVP(decay, starts[0], (0, 1)), starts)
    assert np.array_equal(a.y, b.y)
    assert np.array_equal(a.y, c.y)


def test_two_components_keep_the_documented_order():
    forwards = solve(decay, (0, 1), [5.0, 7.0])
    assert forwards.t[-1] == 1.0
    assert forwards.y[0, 0] == 5.0


def test_a_state_written_like_an_interval_is_told():
    with pytest.warns(UserWarning, match="written like an interval"):
        assert IVP(decay, (0, 1), [5.0, 7.0]).t_span == (5.0, 7.0)
    with pytest.warns(UserWarning, match="written like an interval"):
        solve(decay, [5.0, 7.0], (0, 1))
    solve(decay, (0, 1), (5.0, 7.0))  # plain, and so are arrays and lists alone
    solve(decay, [0, 1], [5.0, 7.0])


def test_an_interval_that_is_none_is_told_the_order():
    with pytest.raises(ValueError, match=r"solve\(f, t_span, y0\) and IVP\(f, y0, t_span\)"):
        solve(decay, 3.0, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("f", "remedy"),
    [
        (lambda y: -y, "write t as the first argument"),
        (lambda t, y: math.sin(y), "np.sin for math.sin"),
        (lambda t, y: -y if y > 0 else y, "np.where for all of them"),
    ],
)
def test_what_python_says_is_followed_by_what_to_do(f, remedy):
    with pytest.raises((TypeError, ValueError), match=remedy):
        solve(f, (0.0, 1.0), [1.0, 2.0])


def test_a_name_is_told_where_problems_are():
    with pytest.raises(TypeError, match=r"problems.get\('logistic'\) gets one of the library"):
        solve("logistic")


def test_a_method_of_ones_own_is_named_where_it_returns_something_else():
    def mine(f, t, y, h):
        return y[:1]

    said = solve(lambda t, y: -y, (0, 1), [1.0, 2.0], method=mine, step=0.1).message
    assert "mine returned an array of shape (1,)" in said
    assert "the new value of each component" in said


def test_one_derivative_is_no_list_of_them():
    with pytest.raises(TypeError, match=r"a list of functions \[f, f2, …\]"):
        Taylor.from_derivatives(decay)


def test_a_fixed_step_that_explodes_is_asked_about():
    with np.errstate(all="ignore"):
        stiff = solve(lambda t, y: -1e9 * y**3, (0, 1), [1.0], method="RK4", step=0.01)
    assert "is the fixed step too long for stability?" in stiff.message
