"""Munthe-Kaas methods in ``solve``: events, stops, tracing, callbacks; and all kinds of trouble."""

import numpy as np
import pytest

from integrators import (
    IVP,
    Event,
    Manifold,
    MuntheKaas,
    Status,
    Tableau,
    groups,
    solve,
    solve_many,
    traced,
)
from tests.integrators.methods.rotating import (
    QUATERNION,
    ROUNDING,
    TOP_PROBLEM,
    TOP_START,
    TRACED_TOP,
    body_velocity,
    exact_quaternion,
    spin,
)


def test_events():
    """The third axis is level where b = t²/2 = π/2; later b passes −1/2 = cos b."""

    def level(t, q):
        return q[0] ** 2 - q[1] ** 2 - q[2] ** 2 + q[3] ** 2  # R₃₃ = cos b

    def low(t, q):
        return level(t, q) + 0.5

    run = solve(
        spin((0.0, 3.0)),
        method="RKMK8",
        rtol=1e-11,
        atol=1e-11,
        events=[level, Event(low, terminal=True, direction=-1)],
    )
    assert run.status == Status.EVENT
    assert np.allclose(run.t_events[0], [np.sqrt(np.pi)], rtol=1e-9)
    assert np.allclose(run.t_events[1], [np.sqrt(4 * np.pi / 3)], rtol=1e-9)
    assert run.t[-1] == run.t_events[1][0]
    norms = [np.linalg.norm(q) for events in run.y_events for q in events]
    assert np.allclose(norms, 1.0, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("problem", [TOP_PROBLEM, TRACED_TOP], ids=["plain", "traced"])
def test_resets_and_projections_start_a_new_chart(problem):
    """A kick of the top at t = 1: as if the run were two."""
    kick = np.array([0, 0, 0, 0, 0.5, -1.0, 0.0])
    clock = Event(lambda t, y: t - 1.0, reset=lambda t, y: y + kick)
    options = dict(method="RKMK5", rtol=1e-9, atol=1e-9)
    once = solve(problem, events=clock, **options)
    first = solve(problem, t_span=(0.0, 1.0), **options)
    second = solve(problem, t_span=(1.0, 2.0), y0=first.y[:, -1] + kick, **options)
    assert np.allclose(once.y[:, -1], second.y[:, -1], rtol=0, atol=1e-7)
    calls = []

    def unit(t, y):
        calls.append(t)
        return np.concatenate([y[:4] / np.linalg.norm(y[:4]), y[4:]])

    projected = solve(problem, project=unit, **options)
    free = solve(problem, **options)
    assert np.allclose(projected.y[:, -1], free.y[:, -1], rtol=0, atol=1e-11)
    assert calls == list(projected.t[1:])
    assert projected.nfev > free.nfev  # a projection costs the slope that FSAL would save


def test_tstops_do_not_look_beyond_a_jump():
    """ω jumps at t = 1: stepping on it makes the run exact, for ω is constant on both sides."""

    def velocity(t, q):
        return np.array([0.4, 0.0, 0.0]) if t < 1.0 else np.array([0.0, 0.7, 0.0])

    problem = IVP(lambda t, q: 0 * q, [1, 0, 0, 0], (0, 2), manifold=QUATERNION.manifold(velocity))
    run = solve(problem, method="RKMK5", tstops=[1.0])
    half = QUATERNION.retract(np.array([1.0, 0, 0, 0]), np.array([0.4, 0, 0]))
    end = QUATERNION.retract(half, np.array([0.0, 0.7, 0.0]))
    assert 1.0 in run.t
    assert np.allclose(run.y[:, -1], end, rtol=0, atol=ROUNDING)
    assert run.nrejected == 0


def test_backward_and_forth():
    there = solve(TRACED_TOP, method="RKMK8", rtol=1e-12, atol=1e-12)
    back = solve(TRACED_TOP, (2.0, 0.0), there.y[:, -1], method="RKMK8", rtol=1e-12, atol=1e-12)
    assert np.all(np.diff(back.t) < 0)
    assert np.allclose(back.y[:, -1], TOP_START, rtol=0, atol=1e-9)
    fixed = solve(spin((2.0, 0.0)), method="RKMK4", step=0.01, dense_output=True)
    assert np.allclose(fixed.sol(1.234), exact_quaternion(1.234), rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", ["RKMK4", "RKMK5", "RKMK8", "MuntheKaas(BS45)"])
@pytest.mark.parametrize("options", [{}, {"step": 0.05}, {"dense_output": True}])
def test_traced_and_untraced_take_the_same_steps(method, options):
    slow, fast = (solve(p, method=method, **options) for p in (TOP_PROBLEM, TRACED_TOP))
    assert (slow.nfev, slow.nsteps, slow.nrejected) == (fast.nfev, fast.nsteps, fast.nrejected)
    assert np.allclose(slow.t, fast.t, rtol=1e-7)  # error estimates cancel: their rounding shows
    assert np.allclose(slow.y[:, -1], fast.y[:, -1], rtol=0, atol=1e-10)
    if "step" in options:
        assert np.allclose(slow.y, fast.y, rtol=0, atol=1e-13)


def test_what_cannot_be_traced_still_runs():
    def retract(y, z):
        return QUATERNION.retract(y, z) if z[0] * z[0] >= 0.0 else y  # a branch on a value

    velocity = traced(lambda t, q: [np.cos(t), q[0], 1.0], n=4, outputs=3)
    problem = spin().with_(manifold=Manifold(3, velocity, retract, QUATERNION.rate))
    whole = spin().with_(manifold=QUATERNION.manifold(velocity))
    a, b = (solve(p, method="RKMK5").y[:, -1] for p in (problem, whole))
    assert np.allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["RKMK4", "RKMK5", "RKMK8"])
@pytest.mark.parametrize("options", [{"dense_output": True}, {"step": 0.1}, {"rtol": 1e-4}])
def test_interpreted_equals_compiled(method, options, monkeypatch):
    fast = solve(TRACED_TOP, method=method, **options)
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")
    slow = solve(TRACED_TOP, method=method, **options)
    assert (slow.nfev, slow.nsteps, slow.nrejected) == (fast.nfev, fast.nsteps, fast.nrejected)
    assert np.allclose(slow.y[:, -1], fast.y[:, -1], rtol=0, atol=1e-10)


def test_fsal_saves_an_evaluation():
    run = solve(TRACED_TOP, method="RKMK5", step=0.1)
    assert run.nfev == 1 + 6 * run.nsteps
    dense = solve(TRACED_TOP, method="RKMK8", step=0.1, dense_output=True)
    assert dense.nfev == 1 + (12 + 8) * dense.nsteps  # its slope at the end serves the next step


def test_callback_limits_and_many_runs():
    seen = []
    run = solve(spin(), method="RKMK5", callback=lambda t, q: seen.append(q) or t > 1.0)
    assert run.status == Status.STOPPED
    assert np.array_equal(np.array(seen).T, run.y[:, 1:])
    assert solve(spin(), method="RKMK5", max_steps=5).status == Status.TOO_MANY_STEPS
    starts = [QUATERNION.retract(exact_quaternion(0.0), np.array([0, 0, a])) for a in (0.0, 0.5)]
    many = solve_many(spin(), y0=np.array(starts), method="RKMK5", rtol=1e-9)
    assert np.allclose(many.y[0], exact_quaternion(2.0), rtol=0, atol=1e-6)
    assert np.all(many.success)


# -------------------------------------------------------------------- trouble


def test_names():
    assert MuntheKaas("RK4").name == "MuntheKaas(RK4)"
    by_name = solve(spin(), method="munthe-kaas(rk4)", step=0.1).y
    assert np.array_equal(by_name, solve(spin(), method="RKMK4", step=0.1).y)
    own = Tableau([[], ["2/3"]], ["1/4", "3/4"], name="mine")
    assert MuntheKaas(own).order == 2
    assert "MuntheKaas(mine)" in repr(solve(spin(), method=MuntheKaas(own), step=0.1))
    with pytest.raises(ValueError, match="RKMK1, RKMK2"):
        solve(spin(), method="RKMK7")
    with pytest.raises(ValueError, match="write 'MuntheKaas"):
        solve(spin(), method="MuntheKaas")
    with pytest.raises(ValueError, match="did you mean"):
        MuntheKaas("DOPRI55")


def test_what_a_method_needs():
    plain = IVP(lambda t, y: -y, [1.0], (0, 1))
    with pytest.raises(ValueError, match="needs a problem with a manifold"):
        solve(plain, method="RKMK4")
    with pytest.raises(ValueError, match="RadauIIA3 is implicit"):
        MuntheKaas("RADAU5")
    with pytest.raises(TypeError, match="explicit tableau or its name"):
        MuntheKaas(4)
    with pytest.raises(ValueError, match="mass matrix"):
        solve(spin(), method="RKMK4", mass=np.eye(4))
    line = groups.euclidean(1).manifold(lambda t, y: -y)
    with pytest.raises(ValueError, match="real state"):
        solve(plain.with_(y0=[1j], manifold=line), method="RKMK4")
    with pytest.raises(ValueError, match="order 0"):
        solve(plain.with_(manifold=line), method=MuntheKaas(Tableau([[]], ["1/2"])))
    with pytest.raises(TypeError, match=r"group\.manifold\(velocity\)"):
        plain.with_(manifold=QUATERNION)


def test_what_a_manifold_needs():
    good = dict(velocity=lambda t, y: y, retract=lambda y, z: y + z, rate=lambda z, xi: xi)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        Manifold(0, **good)
    with pytest.raises(TypeError, match=r"function rate\(z, xi\)"):
        Manifold(1, **{**good, "rate": None})
    with pytest.raises(TypeError, match=r"function scale\(y\) or None"):
        Manifold(1, **good, scale=1.0)
    with pytest.raises(ValueError, match="got 0"):
        groups.euclidean(0)
    with pytest.raises(TypeError, match="product takes groups"):
        groups.product(3)


@pytest.mark.parametrize("wrap", [lambda f, **sizes: f, traced], ids=["plain", "traced"])
def test_wrong_shapes_are_named(wrap):
    q = [1.0, 0, 0, 0]

    def run(**changes):
        parts = dict(velocity=lambda t, y: np.array([y[0], 0.0, 1.0]), retract=QUATERNION.retract)
        parts = {**parts, "rate": QUATERNION.rate, **changes}
        parts["velocity"] = wrap(parts["velocity"], n=4, outputs=len(parts["velocity"](0, q)))
        solve(lambda t, y: y, (0, 1), q, manifold=Manifold(3, **parts), method="RKMK4")

    run()
    with pytest.raises(ValueError, match=r"velocity returned an array of shape \(2,\); expected 3"):
        run(velocity=lambda t, y: np.array([y[0], 0.0]))
    with pytest.raises(ValueError, match=r"retract returned .* \(3,\); expected 4"):
        run(retract=lambda y, z: z)
    with pytest.raises(ValueError, match=r"rate returned .* \(4,\); expected 3"):
        run(rate=lambda z, xi: np.concatenate([xi, xi[:1]]))
    with pytest.raises(ValueError, match=r"scale returned .* \(4,\); expected 3"):
        run(scale=lambda y: y)
    with pytest.raises(ValueError, match=r"retract\(y0, 0\) must be y0"):
        run(retract=lambda y, z: 2.0 * y)
    with pytest.raises(ValueError, match=r"rate\(0, ξ\) must be ξ"):
        run(rate=lambda z, xi: -xi)


def test_values_that_are_no_numbers():
    for value, error in ((None, "returned None"), ("no", "returned 'no'"), ([1j, 0, 0], "1j")):
        problem = spin().with_(manifold=QUATERNION.manifold(lambda t, q, v=value: v))
        with pytest.raises(TypeError, match=error):
            solve(problem, method="RKMK4")
    nan = spin().with_(manifold=QUATERNION.manifold(lambda t, q: [0.0, np.nan, 0.0]))
    with pytest.raises(ValueError, match="velocity is not finite: component 1 is nan"):
        solve(nan, method="RKMK4")


@pytest.mark.parametrize("options", [{}, {"step": 0.1}])
def test_nan_on_the_way_ends_the_run(options):
    def velocity(t, q):
        return np.array([0.0, 0.0, 1.0]) if t < 1.0 else np.full(3, np.nan)

    run = solve(spin().with_(manifold=QUATERNION.manifold(velocity)), method="RKMK5", **options)
    assert run.status == Status.NONFINITE
    assert 0.8 < run.t[-1] <= 1.0
    assert np.all(np.isfinite(run.y))


def test_a_point_that_is_not_finite_is_refused():
    """The coordinates z are fine, the point that they lead to is not."""

    def retract(y, z):
        return np.where(np.abs(y + z) < 2.0, y + z, np.inf)

    edge = Manifold(1, lambda t, y: [1.0], retract, lambda z, xi: xi, scale=lambda y: [1.0])
    run = solve(lambda t, y: y, (0, 5), [0.0], manifold=edge, method="RKMK5")
    assert run.status == Status.NONFINITE
    assert run.y[0, -1] < 2.0
    assert run.y[0, -1] > 1.999


def test_what_a_function_raises_is_kept():
    whole = dict(
        velocity=lambda t, q: body_velocity(t), retract=QUATERNION.retract, rate=QUATERNION.rate
    )
    for name, function in whole.items():
        left = iter(range(40))

        def fails(*arguments, left=left, function=function):
            if next(left, None) is None:
                raise ZeroDivisionError
            return function(*arguments)

        run = solve(spin().with_(manifold=Manifold(3, **{**whole, name: fails})), method="RKMK5")
        assert run.status == Status.FUNCTION_RAISED
        assert isinstance(run.exception, ZeroDivisionError)
        assert np.allclose(run.y[:, -1], exact_quaternion(run.t[-1]), rtol=0, atol=1e-4)
