"""The automatic choice: when it changes, that it is right and cheap, and what comes with it."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from integrators import IVP, Event, Solution, catalogue, problems, solve, stepper, traced
from integrators.methods.automatic.choice import decays, oscillates
from integrators.methods.runge_kutta.stability_limit import end_stage, real_boundary
from integrators.problems import detest

# Errors over tolerances at the end; see benchmarks/detest.py for all of them.
WORST = {"stiff": 30.0, "nonstiff": 500.0}


def decay_to_cosine(rate, trace=True):
    """y' = −k (y − cos t), stiff for large k as soon as the start is forgotten."""
    f = lambda t, y: np.array([-rate * (y[0] - np.cos(t))])  # noqa: E731
    return traced(f, n=1) if trace else f


def cosine(rate, t):
    """Where solutions of the same lead."""
    return rate * (rate * np.cos(t) + np.sin(t)) / (1 + rate**2)


def methods(sol):
    return [phase.method for phase in sol.phases]


@pytest.mark.parametrize("kind", ["stiff", "nonstiff"])
def test_detest(kind):
    """Every problem, each at one of three tolerances: right, and in one run."""
    for i, name in enumerate(detest.names(kind)):
        problem, rtol = detest.get(name), (1e-4, 1e-6, 1e-9)[i % 3]
        scale = max(np.abs(problem.y0).max(), 1e-6)
        sol = solve(problem, rtol=rtol, atol=1e-3 * rtol * scale)
        assert sol.success, (name, sol.message)
        (end,) = problem.references.values()
        size = np.abs(sol.y).max(axis=1)
        error = np.max(np.abs(sol.y[:, -1] - end) / (rtol * size + 1e-3 * rtol * scale))
        assert error < WORST[kind] * (10 if name == "nonstiff D5" else 1), (name, error)
        assert sum(phase.nfev for phase in sol.phases) == sol.nfev
        assert sum(phase.nsteps for phase in sol.phases) == sol.nsteps


@pytest.mark.parametrize("trace", [True, False])
def test_it_becomes_stiff_and_mild_again(trace):
    """A rate that rises to 1e4 and falls again: both changes, in one run."""

    def f(t, y):
        rate = 1.0 + 1e4 * np.exp(-(((t - 5.0) / 0.8) ** 4))
        return np.array([-rate * (y[0] - np.cos(t)), y[2], -400.0 * y[1]])

    problem = IVP(traced(f, n=3) if trace else f, [1.0, 1.0, 0.0], (0.0, 60.0))
    sol = solve(problem, rtol=1e-7, atol=1e-9)
    assert methods(sol)[0] == "DOP853"
    assert len(sol.phases) >= 2
    assert methods(sol)[1] == "RadauVariable"
    times = [(phase.start, phase.end) for phase in sol.phases]
    assert times[0][0] == 0.0
    assert times[-1][1] == 60.0
    assert all(a[1] == b[0] for a, b in pairwise(times))
    right = solve(problem, method="RadauVariable", rtol=1e-11, atol=1e-12)
    assert np.allclose(sol.y[:, -1], right.y[:, -1], rtol=0, atol=2e-4)  # 190 oscillations
    explicit = solve(problem, method="DOP853", rtol=1e-7, atol=1e-9)
    assert sol.nfev < explicit.nfev


def test_a_traced_problem_that_must_be_stiff_begins_so():
    sol = solve(decay_to_cosine(1e6), (0, 10), [2.0])
    assert methods(sol) == ["RadauVariable"]
    assert sol.nfev < 400
    assert methods(solve(decay_to_cosine(1e6), (0, 10), [2.0], rtol=1e-4)) == ["BDF"]
    assert sol.y[0, -1] == pytest.approx(cosine(1e6, 10.0), abs=1e-5)
    plain = solve(decay_to_cosine(1e6, trace=False), (0, 10), [2.0])
    assert methods(plain) == ["DOP853", "RadauVariable"]
    assert plain.y[0, -1] == pytest.approx(cosine(1e6, 10.0), abs=1e-5)


def test_what_is_stiff_soon_or_while_it_swings_begins_so():
    # D2 has no fast eigenvalue before its first products are there; those of B4 and B5 are
    # -10 ± 50i and -10 ± 100i, gone after a tenth of the interval (1,111 and 2,145 evaluations by
    # DOP853 and RADAU5, one after the other).
    for name, most in (("D2", 560), ("B4", 500), ("B5", 1200)):
        problem = detest.get(f"stiff {name}")
        sol = solve(problem, rtol=1e-7, atol=1e-9)
        assert methods(sol) == ["RadauVariable"], name
        assert sol.phases[0].nfev == sol.nfev < most, name


def test_many_differences_and_insides_of_steps_are_for_bdf():
    n = 20
    A = -1e5 * np.eye(n) + np.eye(n, k=1)
    plain = solve(lambda t, y: A @ y, (0, 1), np.ones(n))
    assert methods(plain)[-1] == "BDF"
    assert methods(solve(IVP(lambda t, y: A @ y, np.ones(n), (0, 1), jac=A))) == ["RadauVariable"]
    assert methods(solve(decay_to_cosine(1e6), (0, 10), [2.0], dense_output=True)) == ["BDF"]


def test_problems_that_are_not_stiff_stay_explicit():
    for name in ("kepler", "lorenz", "lotka_volterra", "pleiades", "arenstorf"):
        for rtol, chosen in ((1e-4, "Tsit5"), (1e-6, "DOP853")):
            sol = solve(problems.get(name), rtol=rtol, atol=1e-3 * rtol)
            assert methods(sol) == [chosen], name
            same = solve(problems.get(name), method=chosen, rtol=rtol, atol=1e-3 * rtol)
            assert np.array_equal(sol.y, same.y), name
            assert sol.nfev == same.nfev, name


def test_events_and_dense_output_in_every_phase():
    f = decay_to_cosine(1e5, trace=False)
    for g in (lambda t, y: y[0], traced(lambda t, y: y[0], n=1, outputs=1)):
        sol = solve(f, (0, 20), [3.0], events=g, dense_output=True, rtol=1e-6, atol=1e-9)
        assert len(sol.phases) == 2
        zeros = np.pi / 2 + np.arange(6) * np.pi + 1e-5  # the solution lags behind by 1/k
        assert np.allclose(sol.t_events[0], zeros, rtol=0, atol=1e-5)
        times = np.linspace(0.01, 20.0, 500)
        assert np.abs(sol.sol(times)[0] - cosine(1e5, times)).max() < 1e-5
        assert np.allclose(sol.sol(sol.t), sol.y, rtol=0, atol=1e-10)


def test_outputs_resets_and_backwards():
    times = np.linspace(0.0, 5.0, 33)
    sol = solve(decay_to_cosine(1e5, trace=False), (0, 5), [3.0], t_eval=times)
    assert np.array_equal(sol.t, times)
    assert np.abs(sol.y[0, 1:] - cosine(1e5, times[1:])).max() < 1e-5
    back = solve(lambda t, y: np.array([1e5 * (y[0] - np.cos(t))]), (0, -5), [3.0], t_eval=-times)
    assert methods(back) == ["DOP853", "BDF"]
    assert np.abs(back.y[0, 1:] - cosine(1e5, -times[1:])).max() < 1e-4
    kick = Event(lambda t, y: t - 2.0, reset=lambda t, y: y + 1.0)
    kicked = solve(decay_to_cosine(1e5, trace=False), (0, 5), [3.0], events=kick)
    assert kicked.t_events[0] == pytest.approx([2.0])
    assert kicked.y[0, -1] == pytest.approx(cosine(1e5, 5.0), abs=1e-5)


def test_projection_bounds_parameters_and_complex_states():
    def f(t, y, p):
        return np.array([-p[0] * (y[0] - np.cos(t)), -y[2], y[1]])

    def project(t, y):
        r = np.sqrt(y[1] * y[1] + y[2] * y[2])
        return np.array([y[0], y[1] / r, y[2] / r])

    sol = solve(
        f, (0, 10), [2.0, 1.0, 0.0], params=[1e5], project=lambda t, y, p: project(t, y), rtol=1e-6
    )
    assert len(sol.phases) == 2
    assert np.allclose(sol.y[1, -1], np.cos(10.0), atol=1e-4)
    assert np.abs(np.hypot(sol.y[1], sol.y[2]) - 1).max() < 1e-14
    kinetics = problems.get("robertson", t_end=1e4)
    bounded = solve(kinetics, nonnegative=[0, 1, 2], rtol=1e-6, atol=1e-12)
    assert bounded.success
    assert bounded.y.min() >= 0
    turning = solve(lambda t, y: -1e4 * (y - np.exp(1j * t)), (0, 6), np.array([2.0 + 0j]))
    assert turning.y[0, -1] == pytest.approx(1e4 * np.exp(6j) / (1e4 + 1j), abs=1e-5)


def test_mass_matrices_and_indices():
    dae = problems.get("robertson_dae", t_end=40.0)
    right = solve(dae, method="RADAU5", rtol=1e-10, atol=1e-13).y[:, -1]
    for rtol, chosen in ((1e-5, "RADAU5"), (1e-9, "RadauVariable")):
        sol = solve(dae, rtol=rtol, atol=1e-4 * rtol)
        assert np.allclose(sol.y[:, -1], right, rtol=20 * rtol, atol=0)
        direct = solve(dae, method=chosen, rtol=rtol, atol=1e-4 * rtol)
        assert sol.nfev == direct.nfev
    pendulum = problems.get("pendulum_index2")
    assert solve(pendulum, rtol=1e-6, atol=1e-8).success
    M = np.array([[2.0, 0.0], [1.0, 1.0]])
    regular = solve(
        lambda t, y: M @ np.array([-1e5 * (y[0] - np.cos(t)), -y[1]]), (0, 5), [2.0, 1.0], mass=M
    )
    assert regular.y[:, -1] == pytest.approx([cosine(1e5, 5.0), np.exp(-5.0)], abs=1e-5)


def test_large_systems():
    n = 80
    f = lambda t, y: 500.0 * n * (np.roll(y, 1) - 2 * y + np.roll(y, -1))  # noqa: E731
    y0 = np.cos(2 * np.pi * np.arange(n) / n) + 0.1 * np.cos(np.arange(n))
    sol = solve(f, (0, 1.0), y0, rtol=1e-5, atol=1e-8)
    assert "BDF" in methods(sol)
    assert sol.y[:, -1] == pytest.approx(np.full(n, y0.mean()), abs=1e-4)


def test_a_named_explicit_method_says_that_the_problem_is_stiff():
    sol = solve(decay_to_cosine(1e4), (0, 1), [2.0], method="DOPRI5")
    assert sol.success
    assert "stiff" in sol.message
    assert "method='auto'" in sol.message
    failed = solve(decay_to_cosine(1e4), (0, 10), [2.0], method="DOP853", max_steps=500)
    assert "the problem is stiff" in failed.message
    for name in ("kepler", "lorenz"):
        assert "stiff" not in solve(problems.get(name), method="DOPRI5").message


def test_phases_are_kept(tmp_path):
    sol = solve(decay_to_cosine(1e5, trace=False), (0, 5), [3.0], dense_output=True)
    assert "auto (Tsit5, BDF)" in repr(sol)
    sol.save(tmp_path / "run.npz")
    loaded = Solution.load(tmp_path / "run.npz")
    assert loaded.phases == sol.phases
    assert np.array_equal(loaded.sol(2.0), sol.sol(2.0))
    assert pickle.loads(pickle.dumps(sol)).phases == sol.phases


def test_names_and_fixed_steps():
    f = decay_to_cosine(2.0)
    runs = [solve(f, (0, 1), [1.0], method=m) for m in (None, "auto", "Automatic")]
    assert all(np.array_equal(run.y, runs[0].y) for run in runs)
    fixed = solve(f, (0, 1), [1.0], step=0.1)
    assert np.array_equal(fixed.y, solve(f, (0, 1), [1.0], method="DOPRI5", step=0.1).y)
    run = stepper(decay_to_cosine(1e5, trace=False), (0, 1), [2.0])
    while run.step():
        pass
    assert run.y[0] == pytest.approx(cosine(1e5, 1.0), abs=1e-5)
    assert run.statistics["nfev"] < 1000


def test_callbacks_and_limits():
    seen = []
    sol = solve(
        decay_to_cosine(1e5, trace=False), (0, 5), [2.0], callback=lambda t, y: seen.append(t),
        max_step=0.1,
    )  # fmt: skip
    assert len(seen) == sol.nsteps
    assert np.abs(sol.h).max() <= 0.1 * (1 + 1e-9)
    stopped = solve(decay_to_cosine(1e5, trace=False), (0, 5), [2.0], max_steps=20)
    assert stopped.nsteps + stopped.nrejected == 20
    assert stopped.status.name == "TOO_MANY_STEPS"


def test_what_the_choice_is_made_from():
    assert [round(real_boundary(catalogue.get(m)), 1) for m in ("RK4", "DOP853")] == [2.8, 6.4]
    assert end_stage(catalogue.get("BS23")) == -1
    assert not oscillates(np.array([-1e3, -1.0, 2.0]))
    assert oscillates(np.array([-10 + 100j, -10 - 100j]))
    assert decays(np.array([-1e4, -1.0]), 0.0, 1.0, 1e-6)
    assert not decays(np.array([-1e4, 1e4]), 0.0, 1.0, 1e-6)  # a saddle
    assert decays(np.array([1e4]), 0.0, -1.0, 1e-6)  # backwards
    assert not decays(np.array([1e4j, -1e4j]), 0.0, 1.0, 1e-6)


def test_combinations_drawn_at_random():
    """Everything a run can have, on a problem that becomes stiff, against its closed solution."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        rate, backward = 10.0 ** rng.uniform(0, 6), rng.random() < 0.4
        keys = ("traced", "events", "dense", "t_eval", "max_step", "mass", "nonnegative")
        use = {key: bool(rng.random() < 0.4) for key in keys}
        sign = -1.0 if backward else 1.0
        M = np.array([[1.0, 0.0], [0.3, 2.0]]) if use["mass"] else np.eye(2)

        def f(t, y, p, sign=sign, M=M):
            return M @ np.array([-sign * p[0] * (y[0] - 2 - np.cos(t)), sign * y[1] * 0.1])

        def exact(t, rate=rate, sign=sign):
            t = np.asarray(t)
            wave = 2 + rate * (rate * np.cos(t) + sign * np.sin(t)) / (1 + rate**2)
            start = 3.0 - 2 - rate**2 / (1 + rate**2)
            return np.array([wave + start * np.exp(-rate * np.abs(t)), np.exp(0.1 * np.abs(t))])

        span = (0.0, sign * 8.0)
        g = lambda t, y, p: y[1] - 1.5  # noqa: E731
        if use["traced"]:
            f, g = traced(f, n=2, params=1), traced(g, n=2, params=1, outputs=1)
        given = {}
        if use["t_eval"]:
            given["t_eval"] = np.linspace(*span, 20)
        if use["max_step"]:
            given["max_step"] = 0.5
        sol = solve(
            f, span, [3.0, 1.0], params=[rate], mass=M if use["mass"] else None,
            events=[g] if use["events"] else None, dense_output=use["dense"],
            nonnegative=[0, 1] if use["nonnegative"] else None, rtol=1e-6, atol=1e-9, **given,
        )  # fmt: skip
        told = (rate, backward, use, methods(sol))
        assert sol.success, (told, sol.message)
        assert np.abs(sol.y - exact(sol.t)).max() < 1e-4, told
        if use["dense"]:
            times = np.linspace(*span, 50)
            assert np.abs(sol.sol(times) - exact(times)).max() < 1e-4, told
        if use["events"]:
            assert sol.t_events[0] == pytest.approx([sign * 10 * np.log(1.5)], abs=1e-3), told


def test_output_between_steps_is_as_good_as_the_steps():
    """A very stiff problem at a tight tolerance: long steps must not spoil what lies inside."""
    times = np.linspace(0.0, 10.0, 201)
    f = traced(lambda t, y: -1e4 * (y - np.cos(2 * t)) - 2 * np.sin(2 * t), n=1)
    sol = solve(f, (0, 10), [1.0], rtol=1e-9, atol=1e-10, t_eval=times)
    assert sol.success, sol.message
    assert np.abs(sol.y[0] - np.cos(2 * times)).max() < 1e-8


def test_orders_kept_from_run_to_run_change_nothing():
    def f(t, y, p):
        return np.array([y[1], p[0] * (1 - y[0] ** 2) * y[1] - y[0]])

    kept = traced(f, n=2, params=1)
    for rate, options in ((50.0, {}), (5.0, {"max_step": 0.5}), (200.0, {"dense_output": True})):
        for _ in range(2):
            again, first = (
                solve(
                    IVP(g, [2.0, 0.0], (0, 20), [rate]),
                    method="RadauVariable",
                    rtol=1e-8,
                    **options,
                )
                for g in (kept, traced(f, n=2, params=1))
            )
            assert again.nfev == first.nfev
            assert np.array_equal(again.y, first.y)
