"""BDF, NDF and Adams with variable order and step: weights, formulas, DETEST, combinations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import BDF, IVP, Adams, Event, problems, solve, traced
from integrators.methods.multistep.names import adams_moulton, bdf
from integrators.methods.multistep.variable import interpolation
from integrators.problems import detest

METHODS = ["BDF", "NDF", "Adams"]
NAMES = {kind: detest.names(kind) for kind in ("stiff", "nonstiff")}
# Errors over tolerances at the end of DETEST's intervals, where errors of single steps have added
# up; orbits and pursuit magnify them.
WORST = {"stiff": 30.0, "nonstiff": 300.0}


def test_weights_are_those_of_interpolation():
    rng = np.random.default_rng(1)
    for k in range(1, 13):
        times = np.sort(rng.uniform(0.0, 1.0, k + 1))[::-1].copy()
        coefficients, t, h = rng.normal(size=k + 1), 1.2, 0.2
        values = np.polyval(coefficients, times)
        weights, slopes = np.zeros(k + 1), np.zeros(k + 1)
        interpolation.begin_lagrange(times, k, t, weights)
        interpolation.slope_weights(times, k, t, h, weights, slopes)
        size = np.abs(weights * values).sum()  # what rounding errors are measured by
        assert abs(weights @ values - np.polyval(coefficients, t)) <= 1e-12 * size
        slope = h * np.polyval(np.polyder(coefficients), t)
        assert abs(slopes @ values - slope) <= 1e-11 * np.abs(slopes * values).sum()


@pytest.mark.parametrize("order", range(1, 6))
def test_equal_steps_are_the_fixed_formula(order):
    """One more step of y' = λy on an equidistant past is that of the fixed formula, exactly."""
    rate, h = -0.7, 0.1
    f = traced(lambda t, y: rate * y, n=1)
    run = BDF(order).bind(IVP(f, [1.0], (0.0, 1.0)), _options(1e-9))
    w = run.w
    w.have_start, w.order_now, w.past_known = 1, order, order + 2
    past = np.exp(rate * -h * np.arange(order + 2)) + 0.1 * np.cos(np.arange(order + 2))
    w.past_t[:], w.past[:, 0], w.y[0] = -h * np.arange(order + 2), past, past[0]
    from integrators.methods.multistep.variable.bdf import bdf_step

    w.f0[0], w.f0_current = rate * past[0], 1
    assert _interpreted(bdf_step, w, 0.0, h) == 0
    fixed = bdf(order)
    alpha, beta = (np.array([float(x) for x in row]) for row in (fixed.alpha, fixed.beta))
    expected = -alpha[:-1] @ past[:order][::-1] / (alpha[-1] - h * rate * beta[-1])
    assert abs(w.y_new[0] - expected) < 1e-10


@pytest.mark.parametrize("order", range(1, 12))
def test_equal_steps_are_moultons_formula(order):
    """The corrector is Adams–Moulton of one order more, evaluated at the predicted value."""
    from integrators.methods.multistep.variable.adams import adams_step

    h, rng = 0.1, np.random.default_rng(order)
    f = traced(lambda t, y: np.array([np.cos(t) + 0 * y[0]]), n=1)  # no matter what is predicted
    run = Adams(12).bind(IVP(f, [0.0], (0.0, 1.0)), _options(1e-9))
    w = run.w
    w.have_start, w.order_now, w.past_known = 1, order, order
    slopes = rng.normal(size=order)
    w.past_t[:order], w.past[:order, 0] = -h * np.arange(order), slopes
    w.f0[0], w.f0_current = slopes[0], 1
    assert _interpreted(adams_step, w, 0.0, h) == 0
    beta = np.array([float(x) for x in adams_moulton(order + 1).beta][::-1])
    assert abs(w.y_new[0] - h * (beta @ [np.cos(h), *slopes])) < 1e-11


def _options(rtol):
    from integrators.stepping.engine import Options

    return Options(
        rtol=rtol, atol=np.array([rtol]), step=None, controller=None, max_norm=False, min_step=0.0,
        max_step=np.inf, max_steps=1000, want_dense=False, outputs=np.zeros(0),
    )  # fmt: skip


def _interpreted(kernel, w, t, h):
    from integrators.kernels.as_python import interpret

    return interpret(kernel, w, np.float64(t), np.float64(h))


def _error(problem, sol, rtol, atol):
    (end,) = problem.references.values()
    largest = np.abs(sol.y).max(axis=1)  # of what the run has passed through
    return np.max(np.abs(sol.y[:, -1] - end) / (atol + rtol * largest))


@pytest.mark.parametrize(
    ("method", "kind"), [("BDF", "stiff"), ("NDF", "stiff"), ("Adams", "nonstiff")]
)
def test_detest(method, kind):
    """Every problem, each at one of three tolerances."""
    for i, name in enumerate(NAMES[kind]):
        problem, rtol = detest.get(name), (1e-3, 1e-5, 1e-7)[i % 3]
        atol = 1e-3 * rtol * max(np.abs(problem.y0).max(), 1e-6)
        sol = solve(problem, method=method, rtol=rtol, atol=atol)
        assert sol.success, (name, sol.message)
        worst = 5e3 if name in ("nonstiff D4", "nonstiff D5") else WORST[kind]  # close to the sun
        assert _error(problem, sol, rtol, atol) < worst, name


def test_no_more_evaluations_than_scipys_bdf_at_equal_error():
    """Both with the exact Jacobian, which costs SciPy nothing then; equal errors by tolerances."""
    ours, theirs = [], []
    for name in ("stiff A3", "stiff C5", "stiff D2", "stiff E4", "stiff F4"):
        problem = detest.get(name)
        jac, f = problem.f.jacobian(), problem.f
        work = {}
        for rtol in (1e-4, 1e-6):
            a = solve(problem, method="BDF", rtol=rtol, atol=1e-3 * rtol)
            b = solve_ivp(f, problem.t_span, problem.y0, method="BDF", jac=jac, rtol=rtol,
                          atol=1e-3 * rtol)  # fmt: skip
            work[rtol] = [np.log([_error(problem, s, 1.0, 0.0), s.nfev]) for s in (a, b)]
        x, y = (np.array([work[rtol][k] for rtol in work]) for k in (0, 1))
        at = min(x[:, 0].max(), y[:, 0].max())  # an error that both have
        ours.append(np.interp(-at, -x[:, 0], x[:, 1]))
        theirs.append(np.interp(-at, -y[:, 0], y[:, 1]))
    assert np.mean(ours) <= np.mean(theirs)


@pytest.mark.parametrize("method", METHODS)
def test_errors_follow_the_tolerance(method):
    f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    problem = IVP(f, [1.0, 0.0], (0.0, 10.0))
    end = solve(problem, method="Taylor", rtol=1e-13, atol=1e-13).y[:, -1]
    tolerances = np.array([1e-4, 1e-6, 1e-8])
    errors = [
        np.abs(solve(problem, method=method, rtol=t, atol=t).y[:, -1] - end).max()
        for t in tolerances
    ]
    assert np.all(np.diff(errors) < 0)
    assert np.all(errors < 100 * tolerances), errors


@pytest.mark.parametrize("method", METHODS)
def test_between_the_steps(method):
    f = traced(lambda t, y: np.array([y[1], -y[0]]), n=2)
    times = np.linspace(0.0, 20.0, 777)
    sol = solve(f, (0, 20), [0.0, 1.0], method=method, rtol=1e-8, atol=1e-8, dense_output=True)
    at_steps = np.abs(sol.y[0] - np.sin(sol.t)).max()
    between = np.abs(sol.sol(times)[0] - np.sin(times)).max()
    assert between <= 10 * at_steps
    assert np.allclose(sol.sol(sol.t), sol.y, rtol=0, atol=1e-12)  # the pieces meet


@pytest.mark.parametrize("method", ["BDF", "NDF"])
@pytest.mark.parametrize("size", [2, 3], ids=["regular", "singular"])
def test_first_steps_with_a_mass_matrix_see_their_error(method, size):
    """A fast transient from the start, and again after a jump, of a linear problem."""
    M = np.zeros((size, size))
    M[:2, :2] = [[2.0, 1.0], [0.5, 1.0]]

    def f(t, y):
        rates = M[:2, :2] @ np.array([-1000.0 * y[0], -y[1]])
        return np.append(rates, (y[2:] - y[0] - y[1])[: size - 2])

    jump = Event(lambda t, y: t - 0.5, reset=lambda t, y: y + [0.6, 0.0, 0.6][:size])
    start = [1.0, 1.0, 2.0][:size]
    sol = solve(f, (0, 1), start, method=method, mass=M, rtol=1e-6, atol=1e-8, events=jump)
    t, late = sol.t, sol.t > 0.5
    fast = np.exp(-1000 * t) + np.where(late, 0.6 * np.exp(-1000 * np.abs(t - 0.5)), 0.0)
    assert sol.success, sol.message
    assert late.sum() > 20
    apart = np.abs(sol.y[0] - fast)[t != 0.5]
    assert apart.max() < 3e-5  # the local error is kept below 1e-6, and there are a few dozen steps


@pytest.mark.parametrize("method", ["BDF", "NDF"])
def test_singular_mass_matrix(method):
    problem = problems.get("robertson_dae", t_end=40.0)
    right = solve(problem, method="RADAU5", rtol=1e-10, atol=1e-13)
    sol = solve(problem, method=method, rtol=1e-6, atol=1e-10)
    assert sol.success, sol.message
    assert np.allclose(sol.y[:, -1], right.y[:, -1], rtol=1e-5, atol=1e-9)
    assert abs(sol.y.sum(axis=0) - 1).max() < 1e-9  # the constraint


def test_highest_order_is_kept():
    f = traced(lambda t, y: np.array([y[1], -y[0]]), n=2)
    steps = [
        solve(f, (0, 10), [0.0, 1.0], method=BDF(order), rtol=1e-6, atol=1e-6).nsteps
        for order in (1, 2, 3, 5)
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 50 * steps[-1]  # ε^(1/2) against ε^(1/6)


def test_a_large_system_keeps_its_factors():
    n = 60
    f = traced(lambda t, y: (np.roll(y, 1) - 2 * y + np.roll(y, -1)) * n**2, n=n)
    y0 = np.cos(2 * np.pi * np.arange(n) / n)
    sol = solve(f, (0, 0.1), y0, method="BDF", rtol=1e-6, atol=1e-9)
    rate = -4 * n**2 * np.sin(np.pi / n) ** 2
    assert np.allclose(sol.y[:, -1], y0 * np.exp(rate * 0.1), rtol=0, atol=1e-5)
    assert sol.nlu < 0.6 * sol.nsteps


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(method="BDF", step=0.1), "BDF3"),
        (dict(method="Adams", step=0.1), "ABM4"),
        (dict(method="Adams", mass=np.diag([1.0, 0.0])), "singular"),
        (dict(method="NDF", mass=np.diag([1.0, 0.0]), index=[1, 2]), "RADAU5"),
    ],
)
def test_refusals_name_the_remedy(wrong, message):
    with pytest.raises(ValueError, match=message):
        solve(lambda t, y: -y, (0, 1), [1.0, 0.0], **wrong)


def test_orders_that_do_not_exist():
    for make, order in ((BDF, 6), (BDF, 0), (Adams, 13), (BDF, 2.5), (Adams, True)):
        with pytest.raises(ValueError, match="whole number"):
            make(order)


MASS = np.array([[2.0, 0.5], [0.0, 1.0]])


def test_combinations_drawn_at_random():
    """An oscillator p₀ with everything a run can have, against its closed solution."""
    rng = np.random.default_rng(21)
    for trial in range(40):
        method = METHODS[trial % 3]
        omega, backward = rng.uniform(0.5, 2.0), rng.random() < 0.5
        use = {key: rng.random() < 0.5 for key in ("traced", "mass", "events", "dense", "t_eval",
                                                   "max_step", "project", "complex")}  # fmt: skip
        span = (3.0, -1.0) if backward else (-1.0, 3.0)
        if use["complex"]:
            problem, exact, what = _turning(omega, span, use)
        else:
            problem, exact, what = _swinging(omega, span, use)
        given = dict(rtol=1e-7, atol=1e-9, dense_output=bool(use["dense"]))
        if use["t_eval"]:
            given["t_eval"] = np.linspace(*span, 23)
        if use["max_step"]:
            given["max_step"] = 0.3
        sol = solve(problem, method=method, **given)
        told = (method, use, omega, backward)
        assert sol.success, (told, sol.message)
        assert np.abs(sol.y - exact(sol.t)).max() < 2e-5, told
        if use["max_step"]:
            assert np.abs(sol.h).max() <= 0.3 * (1 + 1e-9), told
        if use["dense"]:
            times = np.linspace(*span, 57)
            assert np.abs(sol.sol(times) - exact(times)).max() < 2e-5, told
        if use["events"]:
            assert len(sol.t_events[0]) == len(what), told
            assert np.abs(np.sort(sol.t_events[0]) - np.sort(what)).max(initial=0.0) < 2e-5, told
        assert sol.reached[0] == span[1]


def _swinging(omega, span, use):
    M = MASS if use["mass"] else np.eye(2)

    def f(t, y, p):
        rate = np.array([y[1], -(p[0] ** 2) * y[0]])
        return M @ rate

    def exact(t):
        s = omega * (np.asarray(t) - span[0])
        return np.array([np.cos(s), -omega * np.sin(s)])

    def project(t, y, p):
        size = np.sqrt(y[0] * y[0] + (y[1] / p[0]) ** 2)
        return np.array([y[0] / size, y[1] / size])

    zeros = [span[0] + (k + 0.5) * np.pi / omega for k in range(-10, 10)]
    zeros = [t for t in zeros if min(span) < t < max(span)]
    g = (
        traced(lambda t, y, p: y[0], n=2, params=1, outputs=1)
        if use["traced"]
        else (lambda t, y, p: y[0])
    )
    problem = IVP(
        traced(f, n=2, params=1) if use["traced"] else f,
        [1.0, 0.0],
        span,
        params=[omega],
        mass=M if use["mass"] else None,
        events=[Event(g)] if use["events"] else (),
        project=project if use["project"] else None,
    )
    return problem, exact, zeros


def _turning(omega, span, use):
    def exact(t):
        return np.exp(1j * omega * (np.asarray(t) - span[0]))[None, :]

    zeros = [span[0] + (k + 0.5) * np.pi / omega for k in range(-10, 10)]
    events = [Event(lambda t, y: y[0].real)] if use["events"] else ()
    problem = IVP(lambda t, y: 1j * omega * y, np.array([1 + 0j]), span, events=events)
    return problem, exact, [t for t in zeros if min(span) < t < max(span)]
