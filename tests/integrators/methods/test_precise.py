"""Runs with many digits against closed forms, mpmath, and runs with doubles."""

import pickle
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from integrators import Event, IntegrationInterrupted, Status, catalogue, problems, solve, traced
from integrators.methods.precise.decimals import DECIMALS, with_digits


def swing(t, y):
    return [y[1], -np.sin(y[0])]


def difference(x, y):
    return abs(float(Decimal(str(x)) - Decimal(str(y))))


def test_thirty_digits_by_one_keyword():
    """The pendulum from rest: sin(θ/2) = k cd(t)."""
    run = solve(swing, (0, 5), ["1.5", 0], precision=34, t_eval=[1, 2.5, 5])
    assert run.success
    with mpmath.workdps(50):
        k = mpmath.sin(mpmath.mpf("0.75"))
        for t, angle in zip(run.t, run.y[0]):
            exact = 2 * mpmath.asin(k * mpmath.ellipfun("cd", mpmath.mpf(t), m=k * k))
            assert difference(angle, exact) < 1e-29


@pytest.mark.parametrize("name", ["DOP853", "Verner98", "Gauss6", "RadauIIA5", "SDIRK4"])
def test_any_tableau(name):
    rtol = 1e-12 if name == "SDIRK4" else 1e-18
    reference = solve(swing, (0, 1), ["1.5", 0], precision=34)
    run = solve(swing, (0, 1), ["1.5", 0], method=name, precision=25, rtol=rtol, atol=rtol)
    assert run.success
    assert difference(run.y[0, -1], reference.y[0, -1]) < 100 * rtol
    back = solve(swing, (1, 0), run.y[:, -1], method=name, precision=25, rtol=rtol, atol=rtol)
    assert difference(back.y[0, -1], "1.5") < 100 * rtol


@pytest.mark.parametrize("name", ["RK4", "Gauss3", "TRBDF2", "Taylor"])
def test_fixed_steps_are_those_of_doubles(name):
    options = dict(method=name, step=0.1)
    run = solve(swing, (0, 1), [1.5, 0], **options, precision=20)
    twin = solve(swing, (0, 1), [1.5, 0], **options)
    assert run.nsteps == twin.nsteps == 10
    np.testing.assert_allclose(run.y.astype(float), twin.y, atol=1e-14)


def test_orders_show_down_to_the_last_digit():
    exact = solve(swing, (0, 1), [1.5, 0], precision=45).y[0, -1]
    for name in ("DOP853", "Gauss4"):
        errors = []
        for step in ("1/60", "1/120"):
            run = solve(swing, (0, 1), [1.5, 0], method=name, step=step, precision=45)
            errors.append(difference(run.y[0, -1], exact))
        order = catalogue.get(name).order
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


def test_stiff_problems_by_implicit_methods():
    def stiff(t, y):
        return -1000 * (y - np.cos(t))

    run = solve(stiff, (0, 1), [0], method="RadauIIA7", precision=20, rtol=1e-14, atol=1e-14)
    assert run.success
    with mpmath.workdps(30):
        lam, t = mpmath.mpf(1000), mpmath.mpf(1)
        particular = lam * (lam * mpmath.cos(t) + mpmath.sin(t)) / (lam**2 + 1)
        exact = particular - lam**2 / (lam**2 + 1) * mpmath.exp(-lam * t)
    assert difference(run.y[0, -1], exact) < 1e-12


def test_numbers_that_doubles_do_not_hold():
    third = solve(lambda t, y: 0 * y, (0, 1), [Fraction(1, 3)], precision=30).y[0, -1]
    assert abs(third - Decimal(1) / 3) < Decimal("1e-27")
    grown = solve(lambda t, y: y, (0, "0.1"), ["1"], precision=30).y[0, -1]
    assert abs(grown - Decimal("0.1").exp()) < Decimal("1e-25")
    long = np.array([1, 0], dtype=np.longdouble) / np.longdouble(3)
    if np.finfo(np.longdouble).eps < np.finfo(float).eps:
        kept = solve(lambda t, y: 0 * y, (0, 1), long, precision=25).y[0, 0]
        assert abs(kept - Decimal(1) / 3) < Decimal("1e-19")
        with pytest.raises(TypeError, match="precision=20"):
            solve(lambda t, y: 0 * y, (0, 1), long)
    number = mpmath.mpf(1) / 8
    assert solve(lambda t, y: 0 * y, (0, 1), [number], precision=25).y[0, 0] == Decimal("0.125")


def test_branches_parameters_and_problems():
    fall = solve(lambda t, y: -np.abs(y), (0, 1), [1.0], method="DOP853", precision=20, rtol=1e-12)
    assert difference(fall.y[0, -1], Decimal(-1).exp()) < 1e-11
    with pytest.raises(ValueError, match=r"branches \(abs\)"):
        solve(lambda t, y: -np.abs(y), (0, 1), [1.0], precision=20)
    run = solve(traced(lambda t, y, p: p[0] * y), (0, 1), [1], params=[0.5], precision=30)
    assert difference(run.y[0, -1], Decimal("0.5").exp()) < 1e-26
    problem = problems.get("arenstorf")
    orbit = solve(problem, precision=20, rtol=1e-14, atol=1e-14)
    assert np.abs(orbit.y[:, -1].astype(float) - problem.y0).max() < 1e-9
    assert pickle.loads(pickle.dumps(run.y))[0, -1] == run.y[0, -1]


def test_what_cannot_be_is_said(tmp_path):
    for options, words in (
        ({"precision": 10}, "from 17 to 50"),
        (
            {"precision": 34, "events": [lambda t, y: float(y[0])]},
            "event function cannot be traced",
        ),
        ({"precision": 34, "mass": np.eye(1)}, "take no mass"),
        ({"precision": 34, "dense_output": True}, "take no dense_output"),
        ({"precision": 34, "method": "BDF"}, "for tableaux and Taylor methods"),
        ({"precision": 20, "rtol": 1e-25}, "down to rtol = 1e-16"),
        ({"precision": 20, "t_eval": [2.0]}, "t_eval must lie within"),
    ):
        with pytest.raises(ValueError, match=words):
            solve(lambda t, y: -y, (0, 1), [1.0], **options)
    with pytest.raises(ValueError, match="cannot be traced"):
        solve(lambda t, y: [float(y[0])], (0, 1), [1.0], precision=20)
    run = solve(lambda t, y: -y, (0, 1), [1.0], precision=20)
    with pytest.raises(ValueError, match="Python objects"):
        run.save(tmp_path / "a")
    pole = solve(lambda t, y: y**2, (0, 2), [1], precision=20, max_steps=300)
    assert not pole.success
    assert pole.t[-1] <= 1
    few = solve(swing, (0, 50), [1.5, 0], method="DOP853", precision=20, max_steps=5)
    assert few.status == Status.TOO_MANY_STEPS


def test_elementary_functions():
    rng = np.random.default_rng(3)
    names = "sin cos tan asin acos atan sinh cosh tanh asinh atanh exp expm1 log1p"
    with with_digits(46), mpmath.workdps(70):
        for name in names.split():
            for x in [*rng.uniform(-0.99, 0.99, 4), 1e-20, -3e-7]:
                exact = getattr(mpmath, name)(mpmath.mpf(float(x)))
                found = mpmath.mpf(str(DECIMALS[name](Decimal(float(x)))))
                assert abs(found / exact - 1) < 1e-43, (name, x)
        for y, x in [(1, 2), (1, -2), (-1, -2), (0, -1), (1, 0), (-5, 0)]:
            exact = mpmath.atan2(y, x)
            assert abs(mpmath.mpf(str(DECIMALS["atan2"](Decimal(y), Decimal(x)))) - exact) < 1e-43
        assert abs(mpmath.mpf(str(DECIMALS["acosh"](Decimal(3)))) - mpmath.acosh(3)) < 1e-43


@pytest.mark.parametrize("method", ["auto", "DOP853"])
def test_ctrl_c_loses_nothing(method):
    def pressed(t, y):
        if t > 0.5:
            raise KeyboardInterrupt

    options = dict(method=method, precision=20, rtol=1e-12, atol=1e-12, callback=pressed)
    with pytest.raises(IntegrationInterrupted) as raised:
        solve(swing, (0, 9), [1.5, 0], **options)
    found = raised.value.solution
    assert found.status == Status.INTERRUPTED
    assert found.t[0] == 0.0
    assert 0.5 < found.t[-1] < 9.0
    assert found.y.shape == (2, found.t.size)
    assert solve(swing, (0, 9), [1.5, 0], on_interrupt="return", **options).t[-1] == found.t[-1]


@pytest.mark.parametrize("method", ["auto", "DOP853", "Gauss4"])
def test_events_have_all_digits(method):
    """cos t and its turning points, both ways of time; a third zero ends the run."""
    oscillator = lambda t, y: [y[1], -y[0]]  # noqa: E731
    zeros = Event(lambda t, y: y[0], terminal=3)
    rising = Event(lambda t, y: y[0], direction=1)
    digits = 30 if method == "auto" else 20
    for end in (20, -20):
        run = solve(
            oscillator, (0, end), [1, 0], precision=digits, method=method, events=[zeros, rising]
        )
        with mpmath.workdps(40):
            exact = [str(k * mpmath.pi / 2 * (1 if end > 0 else -1)) for k in (1, 3, 5)]
        assert run.status == Status.EVENT
        assert len(run.t_events[0]) == 3
        assert max(difference(*p) for p in zip(run.t_events[0], exact)) < 10.0 ** (6 - digits)
        assert difference(run.t_events[1][0], exact[1]) < 10.0 ** (6 - digits)
        assert len(run.t_events[1]) == 1
        assert abs(run.y_events[0][2, 0]) < Decimal(10) ** (6 - digits)
        assert run.t[-1] == float(run.t_events[0][-1])


def test_events_agree_with_doubles_and_steps_end_on_tstops():
    f = traced(lambda t, y, p: [y[1], -p[0] * np.sin(y[0])], n=2, params=1)
    options = dict(params=[2.0], events=[lambda t, y: y[1] + 0.3], tstops=[0.7, 2.5])
    run = solve(f, (0, 5), [1.0, 0.0], precision=20, **options)
    same = solve(f, (0, 5), [1.0, 0.0], rtol=1e-12, atol=1e-12, **options)
    assert {0.7, 2.5} <= set(run.t)
    assert np.allclose(run.t_events[0].astype(float), same.t_events[0], atol=1e-9)
    again = Event(lambda t, y: y[0], reset=lambda t, y: y)
    with pytest.raises(ValueError, match="resets are run with doubles"):
        solve(f, (0, 5), [1.0, 0.0], precision=20, params=[2.0], events=[again])
    with pytest.raises(ValueError, match="tstops must lie within"):
        solve(f, (0, 5), [1.0, 0.0], precision=20, params=[2.0], tstops=[7])


def test_the_usual_tolerance_is_obeyed_if_it_is_asked_for():
    digits, asked = (
        solve(problems.get("lotka_volterra"), (0, 1), precision=20, **rtol)
        for rtol in ({}, {"rtol": 1e-6})
    )
    assert asked.nsteps < digits.nsteps
