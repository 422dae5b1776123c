"""Multistep methods: coefficients against published ones, runs against closed forms."""

from __future__ import annotations

import pickle
from fractions import Fraction as F

import numpy as np
import pytest

from integrators import (
    Event,
    Multistep,
    Solution,
    Status,
    Tableau,
    Taylor,
    catalogue,
    solve,
    solve_many,
    stepper,
    traced,
)
from integrators.methods.multistep import multistep, multistep_names
from integrators.methods.multistep.names import bdf, find_multistep
from integrators.methods.multistep.root_condition import inside_circle, root_condition

NAMES = multistep_names()
SEED = 20240611

# Hairer, Nørsett, Wanner I, III.1 and III.2; error constants with α_k = 1.
PUBLISHED = {
    "AB2": ([-F(1, 2), F(3, 2), 0], F(5, 12)),
    "AB3": ([F(5, 12), -F(16, 12), F(23, 12), 0], F(3, 8)),
    "AB4": ([-F(9, 24), F(37, 24), -F(59, 24), F(55, 24), 0], F(251, 720)),
    "AM2": ([F(1, 2), F(1, 2)], -F(1, 12)),
    "AM3": ([-F(1, 12), F(8, 12), F(5, 12)], -F(1, 24)),
    "AM4": ([F(1, 24), -F(5, 24), F(19, 24), F(9, 24)], -F(19, 720)),
    "BDF2": ([0, 0, F(2, 3)], -F(2, 9)),
    "BDF3": ([0, 0, 0, F(6, 11)], -F(3, 22)),
    "Leapfrog": ([0, 2, 0], F(1, 3)),
    "NY3": ([F(1, 3), -F(2, 3), F(7, 3), 0], F(1, 3)),
    "Milne": ([F(1, 3), F(4, 3), F(1, 3)], -F(1, 90)),
}


def circle(t, y):
    return np.array([y[1], -y[0]])


def on_circle(t):
    return np.array([np.cos(t), -np.sin(t)])


def pendulum(t, y):
    return np.array([y[1], -np.sin(y[0]) + 0.1 * np.cos(t)])


@pytest.fixture(scope="module")
def pendulum_end():
    return solve(pendulum, (0, 2), [1.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


# ------------------------------------------------------------ data


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_coefficients(name):
    beta, constant = PUBLISHED[name]
    method = multistep(name)
    assert list(method.beta) == beta
    assert method.error_constant == constant


@pytest.mark.parametrize("name", NAMES)
def test_order_says_which_polynomials_are_integrated_exactly(name):
    """Independent of the order conditions: Σ αⱼ q(j) = Σ βⱼ q′(j) for q = (x − 2)^m."""
    method = multistep(name)
    for m in range(method.own_order + 2):
        values = sum(a * (j - 2) ** m for j, a in enumerate(method.alpha))
        slopes = sum(m * b * F(j - 2) ** max(m - 1, 0) for j, b in enumerate(method.beta))
        assert (values == slopes) == (m <= method.own_order)
    assert method.is_convergent
    assert method.order == (4 if "Milne" in name else int(name[-1]) if name[-1].isdigit() else 2)


def test_bdf_constants_and_zero_stability():
    for k in range(1, 7):
        assert bdf(k).global_error_constant == F(-1, k + 1)
        assert bdf(k).is_zero_stable
    assert not bdf(7).is_zero_stable
    with pytest.raises(ValueError, match="no BDF beyond 6 is zero-stable"):
        multistep("BDF7")


def test_root_condition_against_numerical_roots():
    rng = np.random.default_rng(SEED)
    for _ in range(60):
        p = [F(int(c), 4) for c in rng.integers(-6, 7, size=rng.integers(2, 6))]
        if p[-1] == 0 or p[0] == 0:
            continue
        sizes = np.abs(np.roots([float(c) for c in p[::-1]]))
        if np.all(np.abs(sizes - 1) > 1e-6):  # the others are decided below
            assert inside_circle(p) == root_condition(p) == bool(np.all(sizes < 1))


@pytest.mark.parametrize(
    ("p", "holds"),
    [
        ([-1, 0, 1], True),
        ([1, -2, 1], False),  # (ζ − 1)²
        ([-1, 1, -1, 1], True),  # (ζ − 1)(ζ² + 1)
        ([1, 0, 2, 0, 1], False),  # (ζ² + 1)²
        ([1, F(-5, 2), 1], False),  # 2 and 1/2: a pair that mirrors itself
        ([0, 0, -1, 1], True),  # ζ²(ζ − 1)
        ([F(-1, 4), F(5, 4), -2, 1], True),  # (ζ − 1)(ζ − 1/2)²
    ],
)
def test_root_condition_on_the_circle(p, holds):
    assert root_condition([F(c) for c in p]) is holds


def test_what_is_no_method_is_refused_with_the_remedy():
    for alpha, beta, message in (
        ([-1, 1], [1], "same length"),
        ([-1, 0], [1, 0], "last alpha"),
        ([0, -1, 1], [0, 1, 0], "fewer steps"),
        ([-1, 1], [1 / 3, 2 / 3], "'1/3'"),
        ([-1, 1], ["sqrt(2)", 0], "exact fraction"),
        ([1], [1], "1 to 30 steps"),
    ):
        with pytest.raises(ValueError, match=message):
            Multistep(alpha, beta)
    trapezoid = Multistep("-1 1", "1/2 1/2")
    assert trapezoid == multistep("AM2")
    assert hash(trapezoid) == hash(multistep("AM2"))
    assert Multistep([-2, 2], [1.0, 1.0]) == trapezoid
    with pytest.raises(ValueError, match="must be explicit"):
        trapezoid.with_(predictor=trapezoid)
    with pytest.raises(ValueError, match="needs no predictor"):
        multistep("AB2").with_(predictor=multistep("AB1"))
    assert pickle.loads(pickle.dumps(multistep("ABM4"))) == multistep("ABM4")


def test_order_of_a_pair_follows_from_its_parts():
    corrector = multistep("AM4")
    for p, m, order in ((1, 1, 2), (1, 2, 3), (2, 1, 3), (3, 1, 4), (4, 1, 4), (1, 5, 4)):
        pair = corrector.with_(predictor=multistep(f"AB{p}"), corrections=m)
        assert pair.order == order
        assert (pair.error_constant is None) == (p + m <= 4)


def test_names_do_not_hide_schemes_of_the_catalogue():
    known = [n for e in catalogue.entries() for n in (e.name, *e.aliases)]
    assert [n for n in known if find_multistep(n) is not None] == ["BDF1"]
    assert solve(circle, (0, 1), [1.0, 0.0], method="BDF1").success  # it still controls its steps


# ------------------------------------------------------------ runs


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("NY5", "NY6")])
def test_convergence_with_the_order(name, pendulum_end):
    """NY5 and NY6 are so weakly stable that their slopes wander; their equations are tested."""
    method = multistep(name)
    errors = []
    for n in (80, 160):
        run = solve(pendulum, (0, 2), [1.0, 0.0], method=method, step=2 / n, throw=True)
        errors.append(np.abs(run.y[:, -1] - pendulum_end).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(method.order, abs=0.45)


@pytest.mark.parametrize("name", NAMES)
def test_every_step_satisfies_the_equation(name):
    """The definition itself, at every step after the start."""
    method = multistep(name)
    h = 0.05
    run = solve(pendulum, (0, 1), [1.0, 0.0], method=method, step=h)
    f = np.array([pendulum(t, y) for t, y in zip(run.t, run.y.T)])
    y, k = run.y.T, method.steps

    def combined(formula, n, last):
        m = len(formula.alpha) - 1
        past = sum(-float(a) * y[n - m + j] for j, a in enumerate(formula.alpha[:-1]))
        past = past + h * sum(float(b) * f[n - m + j] for j, b in enumerate(formula.beta[:-1]))
        return past + h * float(formula.beta[-1]) * last

    for n in range(k, len(run.t)):
        last = f[n]
        if method.predictor is not None:
            last = pendulum(run.t[n], combined(method.predictor, n, 0.0))
        assert combined(method, n, last) == pytest.approx(y[n], abs=2e-14)


def test_evaluations_are_counted_the_starters_too():
    asked = 0

    def counted(t, y):
        nonlocal asked
        asked += 1
        return circle(t, y)

    for name in NAMES:
        asked = 0
        run = solve(counted, (0, 1), [1.0, 0.0], method=multistep(name), step=0.05, t_eval=[0.33])
        assert run.nfev == asked
        assert run.nsteps == 20
    run = solve(circle, (0, 1), [1.0, 0.0], method="AB4", step=0.05)
    assert run.nfev == 20 + 3 * 3  # one a step, and three more for each step of RK4
    assert solve(circle, (0, 1), [1.0, 0.0], method="ABM4", step=0.05).nfev == 20 + 17 + 9


def test_random_combinations():
    """Direction, kind of f, dense output, output times and a last short step, drawn at random."""
    rng = np.random.default_rng(SEED)
    machine = traced(circle, n=2)
    for name in rng.permutation(NAMES):
        method = multistep(str(name))
        f = machine if rng.random() < 0.5 else circle
        t0, length = rng.uniform(-2, 2), rng.uniform(0.9, 1.6)
        span = (t0, t0 + length * rng.choice([-1, 1]))
        stops = [t0 + (span[1] - t0) * 0.37] if rng.random() < 0.5 else []
        times = np.sort(rng.uniform(*sorted(span), 7))[:: 1 if span[1] > t0 else -1]
        run = solve(
            f, span, on_circle(t0), method=method, step=0.02, t_eval=times, dense_output=True,
            tstops=stops, throw=True,
        )  # fmt: skip
        plain = solve(f, span, on_circle(t0), method=method, step=0.02, tstops=stops, throw=True)
        at_steps = np.abs(plain.y - on_circle(plain.t)).max()
        assert np.abs(run.y - on_circle(times)).max() < 1.5 * at_steps + 2e-12
        assert run.sol(plain.t[1:-1]) == pytest.approx(plain.y[:, 1:-1], abs=1e-13)
        assert run.sol(times) == pytest.approx(run.y, abs=1e-13)
        assert at_steps < 2.0 * 0.02 ** min(method.order, 4)


@pytest.mark.parametrize("name", ["AB3", "AM4", "ABM4", "BDF3", "Leapfrog"])
def test_complex_states_are_the_real_ones(name):
    run = solve(lambda t, y: -1j * y, (0, 1), np.array([1 + 0j]), method=name, step=0.03)
    real = solve(circle, (0, 1), [1.0, 0.0], method=name, step=0.03)
    # y = cos t − i sin t
    assert run.y[0].real == pytest.approx(real.y[0], abs=1e-14)
    assert run.y[0].imag == pytest.approx(real.y[1], abs=1e-14)


@pytest.mark.parametrize("name", ["AB4", "AM3", "ABM3", "BDF2", "BDF6", "Milne"])
def test_restart_after_a_reset(name):
    """Parabolas are exact for order 2, so bounces are those of the closed form."""
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: np.array([0.0, -0.8 * y[1]]))
    run = solve(
        lambda t, y: np.array([y[1], -9.81]), (0, 1.9), [1.0, 0.0], method=name, step=0.02,
        events=[bounce],
    )  # fmt: skip
    first = np.sqrt(2 / 9.81)
    expected = [first, first * (1 + 2 * 0.8), first * (1 + 2 * 0.8 + 2 * 0.64)]
    assert run.t_events[0] == pytest.approx(expected, abs=1e-12)


def test_a_stop_where_f_jumps():
    def f(t, y):
        return np.array([1.0 if t < 0.5 else -1.0])

    for name in ("AB4", "AM4", "BDF3", "ABM4"):
        run = solve(f, (0, 1), [0.0], method=name, step=0.03, tstops=[0.5])
        assert abs(run.y[0, -1]) < 1e-14


@pytest.mark.parametrize("name", ["AM1", "AM2", "BDF2", "BDF4", "BDF6"])
def test_stiff_runs_and_their_output_between_steps(name):
    """Prothero and Robinson's problem with λ = −10⁵ and steps of 0.05: y = cos t."""
    times = np.linspace(0, 1, 41)

    def f(t, y):
        return -1e5 * (y - np.cos(t)) - np.sin(t)

    run = solve(f, (0, 1), [1.0], method=name, step=0.05, t_eval=times, throw=True)
    assert np.abs(run.y[0] - np.cos(times)).max() < (1e-3 if name == "AM1" else 1e-4)
    longer = solve(f, (0, np.pi), [1.0], method=name, step=np.pi / 60, t_eval=times, throw=True)
    assert longer.nlu == run.nlu  # matrices are kept, also where y passes through 0


def test_jacobians_of_every_kind_give_the_same_steps():
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]])
    runs = [
        solve(f, (0, 1), [1.0, 0.0], method="BDF3", step=0.05, **given)
        for f, given in (
            (circle, {}),
            (circle, {"jac": lambda t, y: matrix}),
            (circle, {"jac": matrix}),
            (circle, {"jac_sparsity": matrix != 0}),
            (traced(circle, n=2), {}),
            (circle, {}),
        )
    ]
    for run in runs[1:]:
        assert run.y == pytest.approx(runs[0].y, abs=1e-14)
    fixed = multistep("BDF3").with_(iteration="fixed-point")
    assert solve(circle, (0, 1), [1.0, 0.0], method=fixed, step=0.05).y == pytest.approx(
        runs[0].y, abs=1e-14
    )


def test_starters():
    """With Euler's method at the start, the whole is of order 2 only; Taylor series are fine."""
    machine = traced(circle, n=2)

    def error(starter, h):
        method = multistep("AB4").with_(starter=starter)
        return np.abs(solve(machine, (0, 1), [1.0, 0.0], method=method, step=h).y[:, -1]
                      - on_circle(1.0)).max()  # fmt: skip

    assert np.log2(error("ExplicitEuler", 0.02) / error("ExplicitEuler", 0.01)) < 2.5
    for starter in (None, "Gauss2", Taylor(5), catalogue.get("RK4")):
        assert np.log2(error(starter, 0.02) / error(starter, 0.01)) == pytest.approx(4, abs=0.3)
    assert isinstance(catalogue.get("RK4"), Tableau)
    with pytest.raises(TypeError, match="one-step method"):
        error(multistep("AB2"), 0.1)


def test_refusals_and_failures_say_what_helps():
    with pytest.raises(ValueError, match="give step=h"):
        solve(circle, (0, 1), [1.0, 0.0], method="AB3")
    with pytest.raises(ValueError, match="RADAU5"):
        solve(circle, (0, 1), [1.0, 0.0], method="BDF2", step=0.1, mass=np.eye(2))
    fixed = multistep("BDF2").with_(iteration="fixed-point")
    run = solve(lambda t, y: -100.0 * y, (0, 1), [1.0], method=fixed, step=0.1)
    assert run.status == Status.EXTERNAL_FAILED
    assert "iteration='newton'" in run.message
    run = solve(circle, (0, 2), [1.0, 0.0], method=bdf(7), step=0.05)
    assert "not zero-stable" in run.message
    run = solve(circle, (0, 1), [1.0, 0.0], method=Multistep([-1, 1], [2, 0]), step=0.1)
    assert "not consistent" in run.message

    def fails(t, y):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return -y

    for name in ("AB3", "BDF2", "ABM2"):
        run = solve(fails, (0, 1), [1.0], method=name, step=0.1)
        assert run.status == Status.FUNCTION_RAISED
        assert isinstance(run.exception, ZeroDivisionError)


def test_projection_keeps_the_order():
    """The projected values are the past of later steps, be it Python or machine code."""
    runs = []
    for f, project in (
        (circle, lambda t, y: y / np.linalg.norm(y)),
        (traced(circle, n=2), traced(lambda t, y: y / np.sqrt(y[0] ** 2 + y[1] ** 2), n=2)),
    ):
        run = solve(f, (0, 5), [1.0, 0.0], method="AB3", step=0.05, project=project)
        assert np.abs((run.y**2).sum(axis=0) - 1).max() < 1e-14
        assert np.abs(run.y - on_circle(run.t)).max() < 1e-4
        runs.append(run)
    assert runs[0].y == pytest.approx(runs[1].y, abs=1e-13)


def test_saved_stepwise_and_many(tmp_path):
    run = solve(circle, (0, 1), [1.0, 0.0], method="BDF3", step=0.1, dense_output=True)
    run.save(tmp_path / "run.npz")
    assert np.array_equal(Solution.load(tmp_path / "run.npz").sol(0.33), run.sol(0.33))
    steps = stepper(circle, (0, 1), [1.0, 0.0], method="BDF3", step=0.1)
    while steps.step():
        pass
    assert steps.y == pytest.approx(run.y[:, -1], abs=1e-15)
    many = solve_many(
        traced(circle, n=2), (0, 1), y0=[[1.0, 0.0], [2.0, 0.0]], method="BDF3", step=0.1
    )
    assert many.y == pytest.approx(np.outer([1, 2], run.y[:, -1]), abs=1e-14)


@pytest.mark.parametrize("method", ["RK4", "AB3"])
def test_a_stepwise_run_that_was_cut_short_goes_on_with_its_step(method):
    """The step after a t_stop off the grid had the full length, but not the full time."""
    run = stepper(circle, (0, 1), [1.0, 0.0], method=method, step=0.1)
    run.step()
    run.step(0.15)
    run.step()
    assert run.t == pytest.approx(0.25)
    assert run.y == pytest.approx(on_circle(0.25), abs=1e-4)
