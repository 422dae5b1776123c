"""Methods of ours behind SciPy's solve_ivp, and runs taken step by step."""

import numpy as np
import pytest
from scipy.integrate import OdeSolver, solve_ivp

import integrators.scipy
from integrators import (
    IVP,
    Event,
    IntegrationError,
    Status,
    Taylor,
    catalogue,
    solve,
    stepper,
    traced,
)
from integrators.scipy import solver

METHODS = [
    "DOPRI5",
    "DOP853",
    "RADAU5",
    "Kvaerno5",
    "Verner98",
    "BS23",
    "RadauVariable",
    "BDF",
    "Adams",
    "Taylor(10)",
]


def rational(t, y):
    """SciPy's own test problem, y = (t/(t+10), 10t/(t+10)²), from its definition."""
    return [y[1] / t, y[1] * (y[0] + 2 * y[1] - 1) / (t * (y[0] - 1))]


def exact(t):
    return np.array([t / (t + 10), 10 * t / (t + 10) ** 2])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("span", [(5.0, 9.0), (5.0, 1.0)])
def test_a_run_with_everything_that_solve_ivp_offers(method, span):
    times = np.linspace(*span, 7)
    crossing = 5.0 + 0.5 * (span[1] - span[0])

    def event(t, y):
        return t - crossing

    run = solve_ivp(
        rational, span, exact(5.0), method=solver(method), rtol=1e-6, atol=1e-9,
        t_eval=times, dense_output=True, events=event,
    )  # fmt: skip
    assert run.status == 0
    assert run.success
    np.testing.assert_array_equal(run.t, times)
    np.testing.assert_allclose(run.y, exact(times), rtol=3e-5, atol=1e-7)
    within = np.linspace(*span, 41)
    np.testing.assert_allclose(run.sol(within), exact(within), rtol=3e-5, atol=1e-7)
    np.testing.assert_allclose(run.t_events[0], [crossing], rtol=1e-10)
    assert run.nfev > 0


def test_every_family_of_the_catalogue():
    """Symplectic ones with the step that they ask for; IMEX, which need f in two parts, say so.

    Of families that share one engine two are enough: the smallest and the largest.
    """

    def swing(t, y):
        return [y[1], -y[0]]

    families: dict[str, list] = {}
    for entry in catalogue.entries("all"):
        families.setdefault(entry.family, []).append(entry)
    for entry in (found[k] for found in families.values() for k in (0, -1)):
        options = {"rtol": 1e-4, "atol": 1e-6, "dense_output": True, "method": solver(entry.name)}
        try:
            run = solve_ivp(swing, (0.0, 0.5), [1.0, 0.0], **options)
        except ValueError as refused:
            if "integrators.Split" in str(refused):
                continue
            if "give step=h" not in str(refused):
                raise
            run = solve_ivp(swing, (0.0, 0.5), [1.0, 0.0], step=0.01, **options)
            np.testing.assert_allclose(np.diff(run.t), 0.01, rtol=1e-9)
        assert run.success, entry.name
        for t, y in ((run.t[-1], run.y[:, -1]), (0.2, run.sol(0.2))):
            # Steps of 0.01 by methods of order 1, and tolerances of 1e-4.
            np.testing.assert_allclose(y, [np.cos(t), -np.sin(t)], atol=5e-3, err_msg=entry.name)


@pytest.mark.parametrize("method", ["DOP853", "RADAU5"])
def test_the_steps_are_those_of_solve(method):
    ours = solve(rational, (5, 9), exact(5.0), method=method, rtol=1e-7, atol=1e-9)
    theirs = solve_ivp(rational, (5, 9), exact(5.0), method=solver(method), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(theirs.t, ours.t)
    np.testing.assert_array_equal(theirs.y, ours.y)


def test_options_of_scipy():
    run = solve_ivp(rational, (5, 9), exact(5.0), method=solver("DOPRI5"), max_step=0.5)
    assert np.diff(run.t).max() <= 0.5 + 1e-12
    run = solve_ivp(rational, (5, 9), exact(5.0), method=solver("DOPRI5"), first_step=0.1)
    assert run.t[1] == pytest.approx(5.1)
    run = solve_ivp(
        lambda t, y, a: a * y,
        (0, 1),
        [1.0],
        method=solver("RK4"),
        args=(-2.0,),
        atol=1e-10,
        rtol=1e-8,
    )
    assert run.y[0, -1] == pytest.approx(np.exp(-2), rel=1e-6)
    vectorized = solve_ivp(
        lambda t, y: -y, (0, 1), [1.0, 2.0], method=solver("RADAU5"), vectorized=True
    )
    np.testing.assert_allclose(vectorized.y[:, -1], np.exp(-1) * np.array([1, 2]), rtol=1e-3)
    turning = solve_ivp(
        lambda t, y: 1j * y, (0, np.pi), [1 + 0j], method=solver("DOP853"), rtol=1e-9
    )
    assert abs(turning.y[0, -1] + 1) < 1e-6
    jac = solve_ivp(
        lambda t, y: [-1000 * y[0]], (0, 1), [1.0], method=solver("RADAU5"), jac=[[-1000.0]]
    )
    assert jac.njev <= 1
    with pytest.warns(UserWarning, match="no effect for a chosen solver: `bogus`"):
        solve_ivp(rational, (5, 6), exact(5.0), method=solver("DOPRI5"), bogus=1)


def test_terminal_events_and_failures():
    def ground(t, y):
        return y[0]

    ground.terminal = True
    ground.direction = -1
    run = solve_ivp(
        lambda t, y: [y[1], -10], (0, 9), [5.0, 0.0], method=solver("DOPRI5"), events=ground
    )
    assert run.status == 1
    assert run.t[-1] == pytest.approx(1.0, rel=1e-6)
    blown = solve_ivp(lambda t, y: y**2, (0, 2), [1.0], method=solver("DOPRI5"))
    assert blown.status == -1
    assert blown.t[-1] == pytest.approx(1.0, rel=1e-3)

    def raises(t, y):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return -y

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve_ivp(raises, (0, 1), [1.0], method=solver("DOPRI5"))


def test_names_and_empty_intervals():
    assert issubclass(integrators.scipy.RADAU5, OdeSolver)
    assert integrators.scipy.RADAU5 is solver("RADAU5")
    with pytest.raises(AttributeError, match="no method 'RADAU55'"):
        integrators.scipy.RADAU55  # noqa: B018
    run = solve_ivp(rational, (5, 5), exact(5.0), method=solver("RADAU5"))
    own = solve_ivp(rational, (5, 5), exact(5.0), method="RK45")
    np.testing.assert_array_equal(run.t, own.t)
    np.testing.assert_array_equal(run.y, own.y)
    run = solve_ivp(
        traced(lambda t, y: -y, n=1), (0, 1), [1.0], method=solver(Taylor(12)), rtol=1e-10
    )
    assert run.y[0, -1] == pytest.approx(np.exp(-1), rel=1e-6)


# ---------------------------------------------------------------- step by step


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5", "Gauss2", "RadauVariable"])
def test_stepwise_takes_the_steps_of_solve(method):
    whole = solve(rational, (5, 1), exact(5.0), method=method, rtol=1e-8, dense_output=True)
    run = stepper(rational, (5, 1), exact(5.0), method=method, rtol=1e-8)
    seen = [(run.t, *run.y)]
    while run.step():
        seen.append((run.t, *run.y))
        middle = (run.t_old + run.t) / 2
        np.testing.assert_allclose(run.interpolate(middle), exact(middle), rtol=1e-6)
    np.testing.assert_array_equal(np.array(seen).T, np.vstack([whole.t, whole.y]))
    assert run.status is Status.FINISHED
    assert not run.step()
    assert run.statistics["nfev"] == whole.nfev


def test_a_loop_of_ones_own_may_stop_and_change_the_state():
    run = stepper(lambda t, y: [-y[0]], (0, 2), [1.0], rtol=1e-10, atol=1e-12)
    while run.t < 1.0:
        run.step(t_stop=1.0)
    assert run.t == 1.0
    run.restart([5.0])
    while run.step():
        pass
    assert run.y[0] == pytest.approx(5 * np.exp(-1), rel=1e-8)
    with pytest.raises(ValueError, match="has ended"):
        run.restart([1.0])


def test_stepwise_says_what_is_wrong():
    with pytest.raises(ValueError, match="has events, which belong to a run as a whole"):
        stepper(IVP(rational, exact(5.0), (5, 9), events=Event(lambda t, y: y[0])))
    run = stepper(lambda t, y: y**2, (0, 2), [1.0])
    with pytest.raises(ValueError, match="no step yet"):
        run.interpolate(0.0)
    with pytest.raises(ValueError, match="t_stop must lie between"):
        run.step(t_stop=-1.0)
    with pytest.raises(IntegrationError):
        list(iter(run.step, False))
    assert run.status < 0
    assert run.t == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(ValueError, match="not finite"):
        stepper(lambda t, y: [np.nan], (0, 1), [1.0])
