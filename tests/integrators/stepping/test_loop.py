"""The compiled loop against its rules in plain Python: step by step, with every rejection."""

import numpy as np
import pytest

from integrators import PI, PID, Status, catalogue, solve, traced
from integrators.methods import textbook
from integrators.stepping.control import I

from .plain_loop import plain_run

PROBLEMS = {
    "swing": (lambda t, y: np.array([y[1], -np.sin(y[0]) + 0.1 * np.cos(3 * t)]), [1.0, 0.5]),
    "van der Pol": (lambda t, y: np.array([y[1], 8 * (1 - y[0] ** 2) * y[1] - y[0]]), [2.0, 0.0]),
    "complex": (lambda t, y: np.array([1j * y[0] * (1 + t), -y[1] + 1j * y[0]]), [1 + 1j, 0.5j]),
    "zero": (lambda t, y: np.array([np.sin(t) ** 3 * 1e-3, 0.0]), [0.0, 0.0]),
    "constant": (lambda t, y: np.zeros(2), [1.0, -2.0]),
    "flat at first": (lambda t, y: np.array([t**6 * 1e3, y[0]]), [1.0, 0.0]),
    "ramp": (lambda t, y: np.array([1e3 * np.cos(t), 1.0]), [1.0, 1.0]),
    "domain": (lambda t, y: np.array([np.sqrt(1.0 - y[0]) - 2 * t, 1.0]), [0.99, 0.0]),
}

OPTIONS = {
    "plain": {},
    "tight": {"rtol": 1e-9, "atol": 1e-12},
    "loose": {"rtol": 1e-2, "atol": 1e-4},
    "PI": {"controller": PI()},
    "PID": {"controller": PID(safety=0.8, max_factor=3.0), "rtol": 1e-5},
    "largest": {"norm": "max"},
    "first step too long": {"first_step": 1.5},
    "first step too short": {"first_step": 1e-9},
    "longest": {"max_step": 0.07},
    "shortest": {"min_step": 0.2, "rtol": 1e-3},
    "stops": {"tstops": [0.5, 0.5 + 1e-9, 1.7]},
    "few": {"max_steps": 7},
}

METHODS = ["DOPRI5", "BS23", "RK4", "ExplicitEuler", "Fehlberg45"]

#: Lengths of steps depend on the error, a difference of numbers that agree in some digits; states
#: are compared at times that differ by as much.
LENGTHS, STATES = 1e-6, 5e-6


def samples(count=60):
    rng = np.random.default_rng(13)
    for _ in range(count):
        name, how = str(rng.choice(list(PROBLEMS))), str(rng.choice(list(OPTIONS)))
        start = float(rng.choice([0.0, 0.7, -0.4])) if name != "domain" else 0.0
        yield name, how, str(rng.choice(METHODS)), bool(rng.integers(2)), start


@pytest.mark.parametrize(("name", "how", "method", "backwards", "start"), list(samples()))
def test_steps_are_those_of_the_rules(name, how, method, backwards, start):
    f, y0 = PROBLEMS[name]
    options = {"rtol": 1e-6, "atol": 1e-9, "controller": I(), **OPTIONS[how]}
    if method == "ExplicitEuler":  # there are limits to patience
        options["rtol"] = max(options["rtol"], 1e-4)
    sign = -1.0 if backwards and name != "domain" else 1.0
    stops = start + sign * np.array(options.pop("tstops", []))
    span = start, start + sign * 2.0
    with np.errstate(all="ignore"):
        # Nobody need ask for the elementary controller.
        asked = {key: value for key, value in options.items() if value != I()}
        run = solve(f, span, y0, method=method, tstops=stops, **asked)
        most = options.pop("max_steps", 10_000)
        tableau = catalogue.get(method)
        plain = plain_run(f, span, y0, tableau, stops=stops, most=most, **options)
    assert run.success == (not plain.failure)
    if plain.failure == "too many":
        assert run.status == Status.TOO_MANY_STEPS
    assert (run.nsteps, run.nrejected) == (len(plain.t) - 1, plain.rejected)
    np.testing.assert_allclose(run.t, plain.t, rtol=LENGTHS, atol=1e-15)
    np.testing.assert_allclose(run.y.T, plain.y, rtol=STATES, atol=1e-3 * options["atol"])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", ["DOPRI5", "BS23"])
def test_the_first_guess_is_hairers(name, method):
    f, y0 = PROBLEMS[name]
    for span in ((0.0, 2.0), (0.3, 0.3 + 1e-9), (0.5, -1e3)):
        with np.errstate(all="ignore"):
            first = solve(f, span, y0, method=method, max_steps=1).h
            tableau, rules = catalogue.get(method), dict(rtol=1e-6, atol=1e-9, controller=I())
            plain = plain_run(f, span, y0, tableau, most=1, **rules)
        assert len(first) == len(plain.t) - 1
        assert first == pytest.approx(np.diff(plain.t), rel=1e-9)


@pytest.mark.parametrize("span", [(0.3, 0.3 + 1e-9), (5.0, 5.0 - 1e-8), (-2.0, -2.0 + 1e-7)])
def test_the_first_guess_does_not_look_beyond_the_end(span):
    asked = []

    def f(t, y):
        asked.append(t)
        return [0.0, 1.0]

    assert solve(f, span, [0.0, 0.0]).success
    assert min(span) <= min(asked)
    assert max(asked) <= max(span)


def test_a_short_step_before_a_stop_says_nothing_against_longer_ones():
    f, y0 = PROBLEMS["swing"]
    plain = solve(f, (0, 4), y0)
    stopped = solve(f, (0, 4), y0, tstops=[1.0, 1.0 + 1e-10, 1.0 + 2e-10])
    assert stopped.nsteps <= plain.nsteps + 5


def test_a_real_problem_written_in_complex_numbers_takes_the_same_steps():
    for first_step in (None, 1e-3):
        real = solve(lambda t, y: -y * (1 + t), (0, 3), [2.0], first_step=first_step)
        other = solve(lambda t, y: -y * (1 + t), (0, 3), [2.0 + 0j], first_step=first_step)
        assert other.t == pytest.approx(real.t, rel=1e-12)
        assert (other.nsteps, other.nrejected) == (real.nsteps, real.nrejected)


@pytest.mark.parametrize("method", ["RK4", "ExplicitEuler", "Gauss2"])
@pytest.mark.parametrize(("t0", "t1", "step"), [(0.0, 1.0, 0.125), (2.0, 0.9, 0.3), (-1, 1, 0.7)])
def test_fixed_steps_are_multiples_of_their_length(method, t0, t1, step):
    """t_k = t0 ± kh, the last step shorter; a stop in between starts the count afresh."""
    f = PROBLEMS["swing"][0]
    sign, stop = np.sign(t1 - t0), t0 + 0.45 * (t1 - t0)
    for stops in ([], [stop]):
        run = solve(f, (t0, t1), [1.0, 0.5], method=method, step=step, tstops=stops)
        expected = []
        for a, b in zip([t0, *stops], [*stops, t1]):
            count = int(np.ceil(abs(b - a) / step - 1e-9))
            expected += [*(a + sign * step * np.arange(count)), b][bool(expected) :]
        np.testing.assert_allclose(run.t, expected, rtol=1e-15)
        assert (run.nsteps, run.nrejected) == (len(expected) - 1, 0)
    if method == "RK4":
        y = np.array([1.0, 0.5])
        for t, h in zip(run.t, np.diff(run.t)):
            y = textbook.rk4(f, t, y, h, 1)[1][-1]
        assert run.y[:, -1] == pytest.approx(y, rel=1e-13)


@pytest.mark.parametrize("method", ["DOPRI5", "RK4", "RADAU5", "Taylor"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_output_between_steps_and_events_of_a_cubic(method, sign):
    """y = t³: every interpolant is exact, so output and zeros are, at any place of any step."""
    f = traced(lambda t, y: 3 * t**2 + 0 * y, n=1)
    times = sign * np.sort(np.random.default_rng(7).uniform(0, 2, 300))
    g = [traced(lambda t, y, c=c: y[0] - sign * c, n=1, outputs=1) for c in (0.001, 1.0, 7.5)]
    run = solve(
        f, (0, 2 * sign), [0.0], method=method, t_eval=times, events=g, max_step=0.3,
        dense_output=True,
    )  # fmt: skip
    assert run.t.tolist() == times.tolist()
    np.testing.assert_allclose(run.y[0], times**3, atol=1e-13)
    np.testing.assert_allclose(run.sol(times)[0], times**3, atol=1e-13)
    for c, found in zip((0.001, 1.0, 7.5), run.t_events):
        assert found == pytest.approx([sign * c ** (1 / 3)], rel=1e-9)
    alone = solve(f, (0, 2 * sign), [0.0], method=method, events=g[1], max_step=0.3)
    assert alone.t_events[0] == pytest.approx([sign], rel=1e-9)
    plain = solve(f, (0, 2 * sign), [0.0], method=method, t_eval=times, max_step=0.3)
    assert plain.y.tolist() == run.y.tolist()
    assert plain.nsteps == run.nsteps


def test_a_component_that_must_not_be_negative_is_not():
    """y' = −√y reaches 0 at t = 2; a step beyond it is tried again, shorter."""
    run = solve(lambda t, y: -np.sqrt(np.abs(y)), (0, 1.9), [1.0], nonnegative=[0], first_step=1.9)
    assert run.success
    assert run.y.min() >= 0.0
    assert run.y[0, -1] == pytest.approx((1 - 1.9 / 2) ** 2, rel=1e-3)
    falling = solve(lambda t, y: [-1.0], (0, 2), [1.0], nonnegative=[0])
    assert falling.status == Status.NEGATIVE
    assert falling.t[-1] == pytest.approx(1.0, abs=1e-6)
