"""Runs judge themselves: what drifts out of proportion, and what no tolerance can deliver."""

import pickle

import numpy as np
import pytest

from integrators import IVP, Event, Solution, solve, traced
from integrators.dae import Mechanical
from multibody import (
    Free,
    ModelBuilder,
    Prismatic,
    Revolute,
    SampledLaw,
    Spherical,
    as_dae,
    as_ivp,
    box,
    mechanisms,
    point_mass,
)
from multibody.dynamics.loops.closed_loop import constraints

SWING = traced(lambda t, y: [y[1], -y[0]], n=2)


def energy(t, y):
    return 0.5 * (y[0] ** 2 + y[1] ** 2)


def swing(**changes):
    return IVP(SWING, [1.0, 0.0], (0.0, 20.0), invariants={"energy": energy}, **changes)


def mechanism(name, formulation=None, t_end=None, speed=1.0, **parameters):
    entry = mechanisms.entry(name)
    model = entry.model(**parameters)
    q0, v0 = entry.start(model)
    span = (0.0, t_end or entry.t_end)
    if formulation is None:
        return as_ivp(model, q0, speed * v0, span)
    return as_dae(model, q0, speed * v0, span, formulation=formulation)


# -------------------------------------------------------------------- what is said


def test_a_good_run_has_nothing_to_say():
    run = solve(swing(), method="DOP853", rtol=1e-9)
    assert run.message == "reached the end of the interval"
    assert run.quality.ok
    assert run.quality.verdict == "nothing speaks against it"
    (watch,) = run.quality.watches
    assert watch.name == "energy"
    assert watch.scale == pytest.approx(1.0, rel=1e-5)  # Σ |∂E/∂yᵢ| |yᵢ| = y₀² + y₁²
    assert watch.drift == pytest.approx(np.ptp(energy(0, run.y)), rel=0.5)
    assert watch.allowed == pytest.approx(10e-9)


def test_a_drift_out_of_proportion_is_told_and_the_status_stays():
    run = solve(swing(), method="Euler", step=0.01)
    exact = 0.5 * (1.0 + 0.01**2) ** 2000 - 0.5  # each step multiplies the energy by 1 + h²
    assert run.success
    assert not run.quality.ok
    assert run.quality.watches[0].drift == pytest.approx(exact, rel=1e-9)
    assert run.message == f"reached the end of the interval; but {run.quality.watches[0]}"
    assert "energy drifted by 0.11, 0.1 of its scale" in run.message


def test_nothing_is_watched_where_nothing_is_known():
    run = solve(lambda t, y: -y, (0, 1), [1.0])
    assert run.quality.watches == ()
    assert run.quality.ok
    assert run.quality.verdict == "nothing is known that could be watched"
    assert run.message == "reached the end of the interval"


def test_what_was_said_survives_files_and_pickles(tmp_path):
    run = solve(swing(), method="Euler", step=0.01)
    for other in (
        pickle.loads(pickle.dumps(run)),
        Solution.load(run.save(tmp_path / "run.npz")),
    ):
        assert other.message == run.message
        with pytest.raises(ValueError, match="its message tells"):
            _ = other.quality


def test_runs_that_nobody_asks_about_cost_nothing():
    calls = []

    def counted(t, y):
        calls.append(t)
        return y[0] ** 2 + y[1] ** 2

    run = solve(swing().with_(invariants={"counted": counted}), rtol=1e-6)
    assert run.success
    assert calls == []
    assert run.message
    assert 0 < len(calls) < 80


def test_a_second_run_calls_nothing_that_is_not_traced():
    """Looking at a message may repeat the run, but not what its author's functions do."""
    calls = []

    def event(t, y):
        calls.append(t)
        return y[0] - 0.5

    def sampled(here, memory):
        calls.append(here.t)
        return 2.0, memory

    recorded = solve(mechanism("double_pendulum"), method="DOPRI5", rtol=1e-3, events=[event])
    ended = solve(swing(), method="DOPRI5", rtol=1e-2, events=[Event(event, terminal=99)])
    b = ModelBuilder(name="cart")
    b.add_body("cart", 0, Prismatic("x"), inertia=point_mass(2.0))
    b.add_element("relay", SampledLaw(sampled, period=0.5, joint="cart"))
    held = solve(as_ivp(b.build(), [0.0], [0.0], (0.0, 1.0)), rtol=1e-2)
    so_far = len(calls)
    assert "a second run" in recorded.message  # without an event that changes nothing
    assert "energy drifted" in ended.message
    assert ended.quality.error_at_end is None
    assert held.quality.error_at_end is None
    assert len(calls) == so_far


def test_runs_of_other_packages_are_repeated_by_our_own():
    """Repeated by themselves they took 12 s, of whoever read the message."""
    problem = mechanism("pendulum", t_end=2.0)
    run, right = solve(problem, method="scipy:RK45", rtol=1e-3), solve(problem, rtol=1e-11)
    off = problem.distance(problem, 2.0, run.y[:, -1], right.y[:, -1])
    assert run.quality.error_at_end == pytest.approx(off, rel=0.1)
    asked = []
    run.judge(1e-3, None, lambda factor, times, most: asked.append(most) or right)
    assert "reached" in run.message
    assert asked == [20 * (run.nsteps + 50)]


def test_a_mechanism_is_repeated_though_nothing_drifts():
    """A step may miss its tolerance where energy and loops are kept: a second run sees it."""
    problem = mechanism("slider_crank", "projected", t_end=1.0)
    run = solve(problem, method="SDIRK4", rtol=1e-5)
    right = solve(problem, method="DOP853", rtol=1e-11, atol=1e-13)
    off = problem.distance(problem, 1.0, run.y[:, -1], right.y[:, -1])
    assert run.quality.ok
    assert run.quality.error_at_end == pytest.approx(off, rel=0.1)


def test_what_growth_would_tell_is_looked_at_first():
    """Errors grow like eᵗ, each is 0.8 % of the start: no digit is sure, and the run has three."""
    fading = traced(lambda t, y: [y[1], y[0]], n=2)
    run = solve(fading, (0.0, 5.0), [1.0, -1.0], method="DOP853", rtol=8e-3, atol=8e-6)
    assert 0.1 / 8e-3 < run.quality.sensitivity < 50.0
    assert run.quality.error_at_end == pytest.approx(abs(run.y[0, -1] - np.exp(-5.0)), rel=0.1)
    assert run.quality.ok


def test_tight_tolerances_are_repeated_with_what_is_left():
    run = solve(mechanism("light_cart_pole"), rtol=5e-11, atol=5e-14)
    assert run.quality.error_at_end is not None
    assert solve(mechanism("light_cart_pole"), rtol=5e-12, atol=5e-15).quality.error_at_end is None


def test_runs_with_contacts_are_looked_at_twice():
    """Nothing is kept through impacts, and nothing was said of what they make of errors."""
    fall = mechanism("sliding_ladder")
    rough, good = (solve(fall, method="DOPRI5", rtol=r, atol=1e-3 * r) for r in (2e-2, 1e-6))
    right = solve(fall, method="DOP853", rtol=1e-10, atol=1e-13)
    off = fall.distance(fall, rough.t[-1], rough.y[:, -1], right.y[:, -1])
    assert rough.quality.error_at_end == pytest.approx(off, rel=0.1)
    assert good.quality.ok


def test_watch_of_ones_own():
    def watch(problem, t, y):
        return {"radius": (t, np.hypot(*y), 1.0, 1.0)}

    run = solve(swing().with_(watch=watch), method="Euler", step=0.01)
    assert [w.name for w in run.quality.watches] == ["radius"]
    assert run.quality.watches[0].drift == pytest.approx((1 + 1e-4) ** 1000 - 1, rel=1e-9)
    with pytest.raises(TypeError, match="watch must be a function"):
        swing(watch=3)


# -------------------------------------------------------------------- growth and global errors


def test_sensitivity_is_that_of_the_exact_flow():
    """y' = y multiplies the first step's error by e^T; the rest adds up to as much."""
    f = traced(lambda t, y: [y[0], 0 * y[1]], n=2)
    growing = IVP(f, [1e-6, 1.0], (0.0, 10.0), jac=lambda t, y: np.diag([1.0, 0.0]))
    run = solve(growing, rtol=1e-6, atol=1e-12)
    assert 0.1 < run.quality.sensitivity < 100.0  # relative errors do not grow
    swung = IVP(  # y = (sin t, cos 2t), beside which errors grow like eᵗ
        traced(
            lambda t, y: [
                y[1] - np.cos(2 * t) + np.cos(t),
                y[0] - np.sin(t) - 2 * np.sin(2 * t),
            ],
            n=2,
        ),
        [0.0, 1.0],
        (0.0, 12.0),
        jac=lambda t, y: np.array([[0.0, 1.0], [1.0, 0.0]]),
    )
    for rtol in (1e-3, 1e-6, 1e-9):
        run = solve(swung, method="DOP853", rtol=rtol, atol=1e-3 * rtol)
        assert 1e4 < run.quality.sensitivity < 1e7  # e¹² = 1.6e5
        error = np.abs(run.y[:, -1] - [np.sin(12.0), np.cos(24.0)]).max()
        assert run.quality.error_at_end == pytest.approx(error, rel=0.5)  # a second run decides
        assert not run.quality.ok
        assert "its error at the end is about" in run.message


def test_global_error_by_a_second_run():
    run = solve(swing(), method="DOPRI5", rtol=1e-5, check="global")
    error = run.quality.global_error
    exact = np.array([np.cos(run.t), -np.sin(run.t)])
    assert np.array_equal(error.t, run.t)
    assert np.allclose(error.error, run.y - exact, atol=0.05 * np.abs(run.y - exact).max())
    assert error.end == pytest.approx(np.abs(run.y - exact)[:, -1].max(), rel=0.1)
    fixed = solve(swing(), method="RK4", step=0.1, check="global", t_eval=[5.0, 20.0])
    exact = np.array([np.cos(fixed.t), -np.sin(fixed.t)])
    assert np.allclose(fixed.quality.global_error.error, fixed.y - exact, rtol=0.1)
    backwards = solve(swing(), (20.0, 0.0), rtol=1e-5, check="global")
    assert backwards.quality.global_error.t[-1] == 0.0
    with pytest.raises(ValueError, match="check must be 'global'"):
        solve(swing(), check="local")


def test_global_error_through_jumps():
    falling = IVP(
        lambda t, y: [y[1], -9.81],
        [1.0, 0.0],
        (0.0, 1.0),
        events=Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.5 * y[1]]),
    )
    run = solve(falling, rtol=1e-6, check="global")
    assert run.quality.global_error.end < 1e-5


# -------------------------------------------------------------------- runs that passed in silence


@pytest.mark.parametrize(
    ("name", "formulation", "method", "rtol", "said"),
    [
        ("spatial_slider_crank", "index3", "assimulo:IDA", 1e-4, "energy drifted"),
        ("lightweight_arm", None, "assimulo:CVode", 1e-6, "its error at the end is about"),
        ("n_four_bar", "index3", "assimulo:IDA", 1e-4, "lost rank"),
    ],
)
def test_runs_of_other_packages_that_passed_in_silence(name, formulation, method, rtol, said):
    pytest.importorskip("assimulo")
    run = solve(mechanism(name, formulation), method=method, rtol=rtol)
    assert said in run.message
    assert not run.quality.ok


@pytest.mark.parametrize(("formulation", "method"), [("index3", "RADAU5"), ("projected", "DOP853")])
def test_a_wrong_energy_is_a_wrong_place(formulation, method):
    """0.04 m and 0.03 m off, with an energy that is kept to six tolerances and closed loops."""
    problem = mechanism("n_four_bar", formulation)
    run = solve(problem, method=method, rtol=1e-4, atol=1e-7)
    assert run.success
    assert not run.quality.ok
    assert "the place along the path drifted" in run.message
    assert run.quality.sensitivity < 1e4  # with errors that tear the loops it would be 7e8
    ahead = next(w for w in run.quality.watches if w.name == "the place along the path")
    exact = solve(problem, method="DOP853", rtol=1e-10) if method == "DOP853" else None
    if exact is not None:
        off = np.abs(run.y[0, -1] - exact.y[0, -1])
        assert 0.3 < ahead.relative / off < 5.0


def test_errors_grow_on_constraints_as_they_do_without():
    """Sensitivity of a system with multipliers is that of its motion, not of torn constraints."""
    growth = {}
    for formulation, method in (("ggl", "RADAU5"), ("projected", "DOP853"), (None, "DOP853")):
        problem = mechanism("spatial_slider_crank", formulation, t_end=2.0)
        growth[formulation] = solve(problem, method=method, rtol=1e-5, atol=1e-8).quality
    found = [quality.sensitivity for quality in growth.values()]
    assert max(found) < 10.0 * min(found)


def test_cvode_projected_on_the_spatial_slider_crank():
    pytest.importorskip("assimulo")
    problem = mechanism("spatial_slider_crank", "projected", t_end=2.0)
    assert "energy drifted" in solve(problem, method="assimulo:CVode", rtol=1e-4).message
    assert solve(problem, method="DOP853", rtol=1e-4).quality.ok


def test_a_light_cart_pole_at_a_loose_tolerance():
    model = mechanisms.cart_pole(cart_mass=0.05, pole_mass=1.0)
    problem = as_ivp(model, [0.0, 3.0], [0.0, 0.0], (0.0, 10.0))
    loose, tight = (solve(problem, method="DOPRI5", rtol=r) for r in (1e-3, 1e-9))
    assert "energy drifted" in loose.message
    drifts = [run.quality.watches[0].relative for run in (loose, tight)]
    assert drifts[0] > 0.05
    assert drifts[1] < 1e-6


def test_the_books_are_kept_where_forces_act():
    """A damped pendulum by a method that takes energy, beside the damper's."""
    b = ModelBuilder(name="damped")
    b.add_body("rod", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)), damping=0.1)
    problem = as_ivp(b.build(), [1.0], [0.0], (0.0, 5.0), tau=lambda t, q, v: [0.2 * np.sin(t)])
    bad, good = solve(problem, method="ImplicitEuler", step=0.02), solve(problem, rtol=1e-6)
    assert [w.name for w in good.quality.watches] == ["balance of the energy"]
    assert good.quality.ok
    assert "balance of the energy drifted" in bad.message


def test_momentum_is_watched():
    good = solve(mechanism("satellite"), rtol=1e-8).quality
    bad = solve(mechanism("satellite"), method="Euler", step=0.01).quality
    assert [w.name for w in good.watches] == [
        "energy",
        "the place along the path",
        *(f"momentum {name}" for name in ("h_x", "h_y", "h_z", "p_x", "p_y", "p_z")),
    ]
    assert good.ok
    assert bad.watches[-1].drift > 1e4 * good.watches[-1].drift


def test_constraints_of_a_system_of_ones_own_are_watched():
    def hanging(formulation, **options):
        system = Mechanical(
            np.eye(2),
            lambda t, q, v: np.array([0.0, -9.81]),
            lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
            q0=[1.0, 0.0],
            v0=[0.0, 0.0],
            t_span=(0.0, 10.0),
        )
        return solve(system.formulation(formulation), **options)

    drifting = hanging("index1", method="DOPRI5", rtol=1e-3)
    assert "the constraints drifted" in drifting.message
    assert hanging("projected", method="DOPRI5", rtol=1e-6).quality.ok


@pytest.fixture(scope="module")
def ball_joint():
    """A free body on a ball joint: model and a start."""
    b = ModelBuilder(name="ball")
    b.add_body("top", 0, Free(), inertia=box((0.2, 0.3, 0.6), mass=2.0))
    b.add_loop("ball", 0, "top", Spherical(), None, (0.0, 0.0, -0.5))
    model = b.build()
    q0 = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    K = constraints(model, q0).K
    v0 = np.array([1.0, 0.5, 3.0, 0.0, 0.0, 0.0])
    v0 -= np.linalg.pinv(K) @ (K @ v0)
    return model, q0, v0, (0.0, 2.0)


def test_a_free_body_on_a_ball_joint(ball_joint):
    """Generalized-α with a step that is too long is off by 4e-3, its energy by 4e-4."""
    problem = as_dae(*ball_joint, formulation="index3")
    bad = solve(problem, method="GeneralizedAlpha", step=0.01)
    good = solve(as_dae(*ball_joint, formulation="projected"), method="DOPRI5", rtol=1e-6)
    assert "energy drifted" in bad.message
    assert good.message == "reached the end of the interval"


@pytest.mark.parametrize("formulation", ["index3", "index2", "ggl", "index1"])
def test_ida_carries_a_free_body_on_a_ball_joint_to_the_end(ball_joint, formulation):
    """In "ggl" it gets stuck at 0.79, off the constraints, and begins anew on them."""
    pytest.importorskip("assimulo")
    problem = as_dae(*ball_joint, formulation=formulation)
    run = solve(problem, method="assimulo:IDA", rtol=1e-6, atol=1e-9)
    right = solve(as_dae(*ball_joint, formulation="projected"), method="DOP853", rtol=1e-10)
    assert run.success
    assert np.abs(run.y[:7, -1] - right.y[:7, -1]).max() < 1e-3


@pytest.mark.parametrize("t_eval", [None, np.linspace(0, 3, 40)])
@pytest.mark.parametrize("backwards", [False, True])
def test_what_a_reset_changes_is_no_drift(t_eval, backwards):
    """A ball that loses a third of its speed at each bounce keeps its energy between bounces."""
    sign = -1.0 if backwards else 1.0
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.7 * y[1]])
    energy = {"energy": lambda t, y: 9.81 * y[0] + 0.5 * y[1] ** 2}
    ball = IVP(
        lambda t, y: [y[1], -9.81], [1.0, 0.0], (0, 1.5 * sign), events=bounce, invariants=energy
    )
    times = None if t_eval is None else sign * t_eval / 2
    run = solve(ball, rtol=1e-8, t_eval=times)
    assert len(run.t_events[0]) == 2
    assert run.message == "reached the end of the interval"
    (watch,) = run.quality.watches
    assert watch.drift < 1e-12
    assert watch.scale > 9.0
    losing = ball.with_(f=lambda t, y: [y[1], -9.81 - 0.1 * y[1]])  # what loses energy is told
    assert "energy drifted" in solve(losing, rtol=1e-8, t_eval=times).message


def test_a_drift_before_a_jump_is_seen_after_it():
    """y' = 1 claims to keep y: the drift is that of the longest part, wherever it is."""
    jumps = Event(lambda t, y: (t - 1.0) * (t - 3.0), reset=lambda t, y: y + 100.0)
    problem = IVP(lambda t, y: [1.0], [5.0], (0, 4), events=jumps, invariants={"y": lambda t, y: y})
    (watch,) = solve(problem).quality.watches
    assert watch.drift == pytest.approx(2.0)


def test_an_invariant_that_becomes_nan_between_jumps_is_told():
    jumps = Event(lambda t, y: (t - 1.0) * (t - 2.0), reset=lambda t, y: y + 1.0)
    for at in (0.5, 1.5, 2.5):  # before, between and after them
        broken = {"y": lambda t, y, at=at: np.nan if abs(t - at) < 0.2 else 1.0}
        problem = IVP(lambda t, y: [0.0], [5.0], (0, 3), events=jumps, invariants=broken)
        run = solve(problem, max_step=0.1)
        assert "y became NaN or infinite" in run.message


def test_an_invariant_that_raises_loses_no_run(tmp_path):
    def raises(t, y):
        raise RuntimeError("no such thing")

    swing = IVP(lambda t, y: [y[1], -y[0]], [1.0, 0.0], (0, 1), invariants={"e": raises})
    run = solve(swing)
    assert "no such thing" in run.message
    run.save(tmp_path / "a.npz")
    assert Solution.load(tmp_path / "a.npz").success
