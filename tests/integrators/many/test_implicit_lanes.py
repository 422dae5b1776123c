"""Implicit steps in lanes: their answers are those of ``solve``, and right."""

import numpy as np
import pytest

from integrators import (
    IVP,
    Event,
    Status,
    catalogue,
    problems,
    solve,
    solve_many,
    traced,
    where,
)
from integrators.many import Integral, Largest
from integrators.many.lanes.small_inverse import inverse

RATES = np.array([0.04, 1e4, 3e7])


@traced(n=3, params=3)
def robertson(t, y, p):
    first, second, third = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] * y[1]
    return np.array([second - first, first - second - third, third])


@traced(n=2, params=1)
def oscillator(t, y, p):
    return np.array([y[1], ((1 - y[0] * y[0]) * y[1] - y[0]) / p[0]])


def chain(n):
    """A stiff nonlinear chain of n states, whose Jacobian is full enough to need pivots."""

    def f(t, y, p):
        left, right = np.roll(y, 1), np.roll(y, -1)
        return 50 * p[0] * (left - 2 * y + right) - y * y * y + np.sin(t) - 1e3 * (y - np.mean(y))

    return traced(f, n=n, params=1)


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA2", "RadauIIA4", "RadauIIA5"])
def test_robertson_with_many_rates(method):
    params = RATES * np.random.default_rng(1).uniform(0.5, 2.0, (21, 3))
    problem = IVP(robertson, [1.0, 0.0, 0.0], (0.0, 1e4), params=RATES)
    options = {"method": method, "rtol": 1e-7, "atol": 1e-12}
    many = solve_many(problem, params=params, **options)
    assert many.engine.startswith("8 lanes")
    assert many.success.all()
    for k in (0, 10, 20):
        alone = solve(problem.with_(params=params[k]), **options)
        exact = solve(problem.with_(params=params[k]), method="RADAU5", rtol=1e-11, atol=1e-16)
        assert many.y[k] == pytest.approx(exact.y[:, -1], rel=2e-6)
        assert many.nsteps[k] == alone.nsteps
        assert many.y[k] == pytest.approx(alone.y[:, -1], rel=1e-10)
    assert many.y.sum(axis=1) == pytest.approx(1.0, abs=1e-12)  # nothing is lost


@pytest.mark.parametrize("n", [1, 4, 7, 12])
def test_systems_of_every_size_for_lanes(n):
    """Inverses of few states are straight-line code, those of more a kernel."""
    f = chain(n)
    y0 = np.cos(np.arange(9.0)[:, None] + np.arange(n))
    params = np.linspace(0.1, 5.0, 9)[:, None]
    times = [0.0, 0.013, 0.5, 1.0]
    many = solve_many(f, (0, 1), y0, params=params, method="RADAU5", rtol=1e-8, t_eval=times)
    assert many.engine.startswith("8 lanes")
    for k in (0, 8):
        alone = solve(f, (0, 1), y0[k], params=params[k], method="RADAU5", rtol=1e-10, t_eval=times)
        assert many.y_eval[k] == pytest.approx(alone.y, rel=1e-6, abs=1e-8)


def test_what_is_too_large_or_of_another_kind_says_so():
    f = chain(21)
    many = solve_many(f, (0, 0.1), np.ones((2, 21)), params=[1.0], method="RADAU5")
    assert many.engine.endswith("implicit steps of more than 20 states have no place in lanes")
    for method, reason in {
        "SDIRK4": "fully implicit ones such as RADAU5, and Rosenbrock methods",
        "Gauss3": "f is looked at where steps of Gauss3 end",
        "LobattoIIIC4": "LobattoIIIC4 has no error estimate of its own",
    }.items():
        many = solve_many(robertson, (0, 1), [[1.0, 0, 0]] * 2, params=RATES, method=method)
        assert many.engine.endswith(reason)
        assert many.success.all()


@pytest.mark.parametrize("method", catalogue.names("Rosenbrock"))
def test_rosenbrock_steps_are_those_of_solve(method):
    """Also with time in f, with runs that fail beside them, backwards and in any partition.

    The W-method keeps its matrix for some steps, which has no place in lanes.
    """
    params = np.linspace(0.1, 5.0, 19)[:, None]
    keeps = method == "ROS34PW2"
    for n, span in ((1, (0.0, 1.0)), (3, (0.2, 1.0)), (4, (0.3, 0.299))):
        y0 = np.cos(np.arange(19.0)[:, None] + np.arange(n))
        y0[3] = 1e200  # its cube is not finite
        options = {"method": method, "rtol": 1e-5, "norm": "max" if n == 3 else "rms"}
        many = solve_many(chain(n), span, y0, params=params, **options)
        assert ("8 lanes" in many.engine, "keeps its matrix" in many.engine) == (not keeps, keeps)
        assert np.flatnonzero(~many.success).tolist() == [3]
        part = solve_many(chain(n), span, y0[9:12], params=params[9:12], **options)
        assert np.array_equal(part.y, many.y[9:12])
        for k in (0, 4, 18):
            alone = solve(chain(n), span, y0[k], params=params[k], **options)
            assert many.nsteps[k] == alone.nsteps
            assert many.y[k] == pytest.approx(alone.y[:, -1], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("method", ["RADAU5", "Rodas4"])
def test_components_that_begin_to_move_are_followed_as_by_solve(method):
    """Lanes allowed 52 tolerances between steps where ``solve`` had a rule for it."""

    def sudden(t, y, p):
        onset = where(t > p[0], np.sin(t - p[0]) ** 4, 0.0 * t)
        return np.array([-1e5 * (y[0] - onset), -0.1 * y[1]])

    params, times = np.linspace(2.5, 3.5, 9)[:, None], np.linspace(0.0, 12.0, 301)
    options = {"method": method, "rtol": 1e-5, "atol": 1e-5}
    if method == "RADAU5":  # the other leaves the lanes for outputs
        options["t_eval"] = times
    problem = IVP(traced(sudden, n=2, params=1), [0.0, 1.0], (0.0, 12.0), params=[3.0])
    many = solve_many(problem, params=params, **options)
    assert many.engine.startswith("8 lanes")
    for k in (0, 5, 8):
        alone = solve(problem.with_(params=params[k]), **options)
        assert many.nsteps[k] == alone.nsteps
        assert many.y[k] == pytest.approx(alone.y[:, -1], abs=1e-10)
        if method == "RADAU5":
            assert many.y_eval[k] == pytest.approx(alone.y, abs=1e-10)


def test_rosenbrock_methods_that_stay_alone_say_why():
    start = np.ones((2, 3))
    for options, reason in (
        ({"t_eval": [0.5]}, "dense output of Rodas5P is looked at step by step"),
        ({"reduce": {"top": Largest(lambda t, y: y[0])}}, "looked at step by step"),
    ):
        many = solve_many(chain(3), (0, 1), start, params=[1.0], method="Rodas5P", **options)
        assert many.engine.endswith(reason)
        assert many.success.all()
    many = solve_many(chain(11), (0, 1), np.ones((2, 11)), params=[1.0], method="Rodas5P")
    assert many.engine.endswith("a step of Rodas5P with 11 states is too long for machine code")
    fixed = solve_many(chain(3), (0, 1), start, params=[1.0], method="Rodas5P", step=0.01)
    alone = solve(chain(3), (0, 1), start[0], params=[1.0], method="Rodas5P", step=0.01)
    assert fixed.engine.startswith("8 lanes")
    assert fixed.y[0] == pytest.approx(alone.y[:, -1], rel=1e-12)


def test_tolerances_of_each_run():
    rtols = np.array([1e-3, 1e-5, 1e-7, 1e-9] * 3)
    many = solve_many(
        oscillator,
        (0, 2),
        np.tile([2.0, -0.66], (12, 1)),
        params=[1e-3],
        method="RADAU5",
        rtol=rtols,
        atol=rtols[:, None],
    )
    assert many.engine.startswith("8 lanes")
    assert np.array_equal(many.y[:4], many.y[4:8])
    assert np.all(np.diff(many.nsteps[:4]) > 20)
    for k in range(4):
        alone = solve(
            oscillator, (0, 2), [2.0, -0.66], params=[1e-3], method="RADAU5",
            rtol=rtols[k], atol=rtols[k],
        )  # fmt: skip
        assert many.nsteps[k] == alone.nsteps
        assert np.abs(many.y[k] - alone.y[:, -1]).max() < 1e-3 * rtols[k]


@pytest.mark.parametrize(
    ("method", "rtol"), [("RADAU5", 1e-2), ("RADAU5", 1e-6), ("RadauIIA5", 1e-4), ("Rodas4", 1e-4)]
)
def test_the_company_of_a_run_does_not_matter(method, rtol):
    """Lanes of other iterations and rejections beside it: a factor was lost while it waited."""
    params = 10 ** np.random.default_rng(3).uniform(-5, 0, (21, 1))
    options = {"method": method, "rtol": rtol, "atol": 1e-6, "first_step": 0.5}
    start = np.array([2.0, -0.66])
    times = {} if method == "Rodas4" else {"t_eval": np.linspace(0.0, 2.0, 9)}
    many = solve_many(oscillator, (0, 2), start, params=params, **options, **times)
    turned = solve_many(oscillator, (0, 2), start, params=params[::-1], **options, **times)
    assert np.array_equal(many.y, turned.y[::-1])
    assert np.array_equal(many.y_eval, turned.y_eval[::-1])
    for k in (0, 7, 20):
        single = solve_many(oscillator, (0, 2), start, params=params[k : k + 1], **options, **times)
        assert np.array_equal(single.y[0], many.y[k])
        alone = solve(oscillator, (0, 2), start, params=params[k], **options, **times)
        assert (many.nsteps[k], many.nrejected[k]) == (alone.nsteps, alone.nrejected)
        assert many.y[k] == pytest.approx(alone.y[:, -1], rel=1e-3 * rtol)
        if times:
            assert many.y_eval[k] == pytest.approx(alone.y, rel=1e-3 * rtol)


def test_jacobians_of_another_function_are_those_of_solve():
    """A matrix stays as it is; a function that is not the derivative is called as it is."""
    matrix = np.array([[0.0, 1.0], [-900.0, -900.0]])
    exact = oscillator.jacobian()
    for jac, lanes in ((matrix, False), (lambda t, y, p: matrix, False), (exact, True)):
        options = {"method": "RADAU5", "rtol": 1e-3, "jac": jac}
        many = solve_many(oscillator, (0, 0.5), [[2.0, -0.66]], params=[1e-2], **options)
        alone = solve(oscillator, (0, 0.5), [2.0, -0.66], params=[1e-2], **options)
        assert many.engine.startswith("8 lanes") == lanes
        assert many.nsteps[0] == alone.nsteps
        assert many.y[0] == pytest.approx(alone.y[:, -1], rel=1e-10)


def test_events_extremes_integrals_and_sensitivities():
    upper = Event(traced(lambda t, y, p: y[0] - 1.0, n=2, params=1, outputs=1), direction=-1)
    params = np.geomspace(1e-3, 1e-1, 10)[:, None]
    options = {"method": "RADAU5", "rtol": 1e-8, "atol": 1e-10}
    problem = IVP(oscillator, [2.0, -0.66], (0, 2), params=[1e-2], events=upper)
    kept = {"top": Largest(lambda t, y: y[1]), "area": Integral(lambda t, y: y[0] * y[0])}
    many = solve_many(problem, params=params, reduce=kept, **options)
    assert many.engine.startswith("8 lanes")
    derived = solve_many(problem, params=params, sensitivities=["p[0]"], **options)
    assert derived.engine.startswith("8 lanes")
    for k in (0, 5, 9):
        tight = {"method": "RADAU5", "rtol": 1e-10, "atol": 1e-12}
        run = problem.with_(params=params[k])
        alone = solve(run, **tight, dense_output=True)
        assert many.t_events[k][0] == pytest.approx(alone.t_events[0], abs=1e-7)
        fine = np.linspace(0, 2, 200_001)
        y = alone.sol(fine)
        assert many.reduced["top"][k] == pytest.approx(y[1].max(), rel=1e-4)
        assert many.reduced["area"][k] == pytest.approx(np.trapezoid(y[0] ** 2, fine), rel=1e-5)
        exact = solve(run, **tight, sensitivities=["p[0]"]).sensitivities["p[0]"][:, -1]
        assert derived.sensitivities["p[0]"][k] == pytest.approx(exact, rel=1e-4, abs=1e-6)


def test_failures_belong_to_their_runs():
    """A blow-up, a start outside the domain, too many steps: beside runs that are good."""
    f = traced(lambda t, y, p: np.array([p[0] * y[0] * y[0] - np.sqrt(y[0])]), n=1, params=1)
    starts = np.array([[1.0], [1.0], [-1.0], [2.0], [1.0]])
    rates = np.array([[0.1], [4.0], [0.1], [0.2], [0.0]])
    many = solve_many(f, (0, 1), starts, params=rates, method="RADAU5")
    assert many.engine.startswith("8 lanes")
    assert many.success.tolist() == [True, False, False, True, True]
    for k in range(5):
        if k == 2:
            assert many.status[k] == Status.NONFINITE
            assert "f(t0, y0)" in many.message[k] or "finite" in many.message[k]
            continue
        alone = solve(f, (0, 1), starts[k], params=rates[k], method="RADAU5")
        assert many.status[k] == alone.status
        assert many.message[k].partition(" t =")[0] == alone.ending.partition(" t =")[0]
    assert many.t[1] == pytest.approx(alone_blow_up(), rel=1e-3)
    few = solve_many(f, (0, 1), starts[:1], params=rates[:1], method="RADAU5", max_steps=3)
    assert few.status[0] == Status.TOO_MANY_STEPS


def alone_blow_up():
    """When y' = 4y² − √y from 1 becomes infinite, by separation of variables."""
    from scipy.integrate import quad

    return quad(lambda x: 1 / (4 / (x * x) - np.sqrt(1 / x)) / (x * x), 0, 1)[0]


def test_jacobians_that_cannot_be_inverted_at_first():
    """I − hλJ is singular for one h: shorter steps are tried, as ``solve`` does."""
    f = traced(lambda t, y, p: np.array([p[0] * (y[1] - y[0]), -y[1] + t]), n=2, params=1)
    many = solve_many(f, (0, 1), [1.0, 0.0], params=[[-3.6378], [2.0], [1e9]], method="RADAU5")
    assert many.success.all()


@pytest.mark.parametrize("name", ["hires", "van_der_pol_scaled", "oregonator"])
def test_problems_of_the_catalogue_keep_their_tolerance_in_lanes(name):
    problem = problems.get(name)
    many = solve_many(problem, y0=problem.y0[None], method="RADAU5", rtol=1e-7, atol=1e-10)
    alone = solve(problem, method="RADAU5", rtol=1e-7, atol=1e-10)
    assert many.nsteps[0] == alone.nsteps
    assert many.y[0] == pytest.approx(alone.y[:, -1], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("n", range(1, 6))
def test_inverses_with_pivots(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n, n))
    a[0, 0] = b[0, 0] = 0.0 if n > 1 else 1.0  # the first pivot is another
    re, _, sound = inverse(a, None)
    assert sound
    assert np.array(re, dtype=float) == pytest.approx(np.linalg.inv(a), rel=1e-9)
    re, im, sound = inverse(a, b)
    assert sound
    exact = np.linalg.inv(a + 1j * b)
    assert np.array(re, dtype=float) == pytest.approx(exact.real, rel=1e-9, abs=1e-12)
    assert np.array(im, dtype=float) == pytest.approx(exact.imag, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("method", ["ROS3P", "Rodas4P", "Rodas5P"])
def test_rosenbrock_steps_are_judged_inside_as_those_of_solve(method):
    """A stiff component alone, which steps of any length end on; tolerances of each run."""
    f = traced(lambda t, y, p: -p * (y - np.cos(2 * t)) - 2 * np.sin(2 * t), n=1, params=1)
    rates, rtols = np.repeat([1e4, 1e6], 4)[:, None], np.tile([1e-3, 1e-4, 1e-5, 1e-6], 2)
    tolerances = {"rtol": rtols, "atol": rtols[:, None]}
    many = solve_many(f, (0, 3), np.ones((8, 1)), params=rates, method=method, **tolerances)
    assert many.engine.startswith("8 lanes")
    for k, rtol in enumerate(rtols):
        options = {"method": method, "rtol": float(rtol), "atol": float(rtol)}
        alone = solve(f, (0, 3), [1.0], params=rates[k], **options)
        assert many.nsteps[k] == alone.nsteps
        assert many.y[k] == pytest.approx(alone.y[:, -1], abs=1e-10)
