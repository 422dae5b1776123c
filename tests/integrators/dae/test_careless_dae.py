"""Careless use of ``integrators.dae``: backward time, wrong derivatives, singular positions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from integrators import IVP, Status, solve
from integrators.dae import Mechanical
from tests.integrators.dae.systems import driven, pendulum, squeezer

# -------------------------------------------------------------------- backward time


def backwards(**changes):
    """The pendulum from where it is at t = 1, back to where it started."""
    run = solve(pendulum(t_end=1.0).formulation("projected"), method="DOP853", rtol=1e-12)
    return pendulum(
        **{"q0": run.y[:2, -1], "v0": run.y[2:, -1], "t_span": (1.0, 0.0), **changes}
    ).consistent()


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("name", ["baumgarte", "augmented"])
def test_feedback_closes_gaps_backwards_in_time(name, trace):
    """In τ = t₁ − t a gap follows the same law forwards and backwards: (1 + τ/T) exp(−τ/T)."""
    gap, T = 1e-3, 0.1
    system = Mechanical(
        np.diag([1.0, 3.0]),
        lambda t, q, v: np.array([-q[0], -9.81]),
        lambda t, q: np.array([q[1] - 2 * q[0]]),
        q0=[0.0, gap],
        v0=[1.0, 2.0],
        t_span=(0.5, 0.0),
        trace=trace,
    )
    problem = system.formulation(name, T_stab=T, allow_inconsistent=True)
    seen = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12).observed
    tau = 0.5 - seen.t
    np.testing.assert_allclose(seen.gap[0], gap * (1 + tau / T) * np.exp(-tau / T), atol=1e-10)


@pytest.mark.parametrize("name", ["baumgarte", "augmented"])
def test_a_run_backwards_drifts_less_than_without_feedback(name):
    system = backwards()
    drift = {
        key: solve(system.formulation(key), method="RK4", step=0.01).observed.drift[-1]
        for key in (name, "index1")
    }
    assert drift[name] < drift["index1"] < 1e-5  # was 5e-3 with the sign of forward time


@pytest.mark.parametrize("name", ["baumgarte", "augmented"])
def test_feedback_follows_a_time_span_given_to_solve(name):
    system = backwards()
    expected = solve(system.formulation(name), method="RK4", step=0.01).y[:, -1]
    forward = system.with_(t_span=(0.0, 1.0)).formulation(name)
    turned = solve(forward, t_span=(1.0, 0.0), method="RK4", step=0.01)
    np.testing.assert_array_equal(turned.y[:, -1], expected)
    again = forward.with_(t_span=(1.0, 0.0)).with_(t_span=(0.0, 1.0))
    y = np.concatenate([system.q0 * 1.01, system.v0 + 0.1])  # where feedback matters
    np.testing.assert_array_equal(again.rhs(0.0, y), forward.rhs(0.0, y))
    assert np.abs(forward.with_(t_span=(1.0, 0.0)).rhs(0.0, y) - forward.rhs(0.0, y)).max() > 0.1


def test_a_right_hand_side_of_ones_own_is_not_replaced():
    problem = pendulum().formulation("baumgarte")
    f = lambda t, y: -y  # noqa: E731
    assert problem.with_(t_span=(1.0, 0.0), f=f).f is f
    assert problem.with_(t_span=(3.0, 4.0)).f is problem.f


# -------------------------------------------------------------------- derivatives that are wrong

Q0, V0 = [1.0, 0.0], [0.0, 0.0]


def gap(t, q):
    return np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2])


def slope(t, q):
    return np.array([[q[0], q[1]]])


def bias(t, q, v):
    return np.array([-(v[0] ** 2) - v[1] ** 2])


def given(constraint=gap, jacobian=slope, gamma=bias, **changes):
    arguments = dict(q0=Q0, v0=V0, t_span=(0.0, 1.0))
    return Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -9.81]),
        constraint,
        jacobian,
        gamma,
        **{**arguments, **changes},
    )


@pytest.mark.parametrize("trace", [True, False])
def test_right_derivatives_pass_and_serve(trace):
    run = solve(given(trace=trace).formulation("projected"), method="DOP853", rtol=1e-9, atol=1e-9)
    derived = solve(pendulum(t_end=1.0).formulation("projected"), method="DOP853", rtol=1e-9,
                    atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(run.y[:, -1], derived.y[:, -1], atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": lambda t, q, v: -bias(t, q, v)}, r"bias contradicts .* γ\[0\] .*sign is rev"),
        ({"gamma": lambda t, q, v: bias(t, q, v) * 1.01}, r"bias contradicts jacobian"),
        ({"gamma": lambda t, q, v: np.zeros(1)}, r"bias contradicts .* γ\[0\] is 0 "),
        ({"jacobian": lambda t, q: [[q[1], q[0]]]}, r"jacobian .* G\[0, 0\] is 0 .* give 1,"),
        ({"jacobian": lambda t, q: -slope(t, q)}, r"G\[0, 0\] is -1 .* give 1 \(its sign is rev"),
        # right at the start, where y = 0, and wrong from then on
        ({"jacobian": lambda t, q: [[q[0], -q[1]]]}, r"jacobian .* G\[0, 1\] .*sign is reversed"),
        ({"jacobian": lambda t, q: [[q[0], -q[1]]], "gamma": None}, r"jacobian .* G\[0, 1\]"),
        ({"velocity_target": lambda t, q: [0.1]}, r"velocity_target .* ν\[0\] is 0.1 .* give -?0"),
    ],
)
def test_wrong_derivatives_are_told(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        given(**changes)
    assert "check_derivatives=False" in str(caught.value)
    assert given(**changes, check_derivatives=False).m == 1


def test_small_systems_are_judged_at_their_own_size():
    size = 1e-6
    here = dict(constraint=lambda t, q: [(q[0] ** 2 + q[1] ** 2 - size**2) / 2], q0=[size, 0.0])
    assert given(**here).m == 1
    # The same with rounding errors of numbers of size 1: nothing can be said.
    assert given(lambda t, q: gap(t, q) + (1 - size**2) / 2, q0=[size, 0.0]).m == 1
    with pytest.raises(ValueError, match="bias contradicts"):
        given(**here, gamma=lambda t, q, v: -bias(t, q, v))


def moving(target=True, **changes):
    """The pendulum of ``systems.driven``, with derivatives of a user."""
    a, w = 0.3, 4.0

    def pivot(t):
        return a * np.sin(w * t), a * w * np.cos(w * t), -a * w * w * np.sin(w * t)

    def nu(t, q):
        x, speed, _ = pivot(t)
        return np.array([(q[0] - x) * speed])

    def gamma(t, q, v):
        x, speed, acceleration = pivot(t)
        return np.array([-((v[0] - speed) ** 2) - v[1] ** 2 + (q[0] - x) * acceleration])

    arguments = dict(
        constraint=lambda t, q: gap(t, [q[0] - pivot(t)[0], q[1]]),
        jacobian=lambda t, q: np.array([[q[0] - pivot(t)[0], q[1]]]),
        gamma=gamma,
        velocity_target=nu if target else None,
        q0=[np.sin(0.5), -np.cos(0.5)],
        v0=[a * w, 0.0],
    )
    return given(**{**arguments, **changes})


def test_constraints_that_depend_on_time():
    exact = driven().terms(0.0, [0.6, -0.8], [1.0, 2.0])
    mine = moving().terms(0.0, [0.6, -0.8], [1.0, 2.0])
    np.testing.assert_allclose(mine.gamma, exact.gamma, rtol=1e-12)
    np.testing.assert_allclose(mine.nu, exact.nu, rtol=1e-12)
    with pytest.raises(ValueError, match=r"constraint depends on time.*Give velocity_target"):
        moving(target=False)
    with pytest.raises(ValueError, match=r"velocity_target .* ν\[0\].*sign is reversed"):
        moving(velocity_target=lambda t, q: -1.2 * np.cos(4 * t) * (q[0] - 0.3 * np.sin(4 * t)))
    with pytest.raises(ValueError, match="bias contradicts"):  # the pivot's speed is forgotten
        moving(gamma=bias)


def test_derivatives_may_use_the_constraints_themselves():
    """g = |q| − 1 has G = q/|q|, which is q where the constraint holds; from off there, too."""
    for q0 in ([1.0, 0.0], [1.2, 0.1]):
        assert given(lambda t, q: [np.hypot(q[0], q[1]) - 1], q0=q0, v0=[0.0, 0.3]).m == 1


def test_motions_that_begin_with_a_jump_pass():
    """A drive that is still before t = 0: central differences see half of its speed."""

    def drive(power):
        return given(
            lambda t, q: [q[0] - max(t, 0.0) ** power / power],
            lambda t, q: [[1.0, 0.0]],
            lambda t, q, v: [power - 1.0],
            velocity_target=lambda t, q: [max(t, 0.0) ** (power - 1) if t else 2.0 - power],
            q0=[0.0, 0.0],
            v0=[2.0 - power, 0.0],
        )

    assert drive(1).m == 1  # the speed jumps to 1
    assert drive(2).m == 1  # the acceleration does


def test_functions_that_are_not_defined_near_by_pass():
    def narrow(t, q):  # defined on the constraint only, up to rounding
        if abs(math.hypot(q[0], q[1]) - 1) > 1e-12:
            raise ArithmeticError("outside")
        return gap(t, q)

    assert given(narrow).m == 1


def test_velocity_only_constraints_are_compared_with_their_jacobian():
    def skate(sign):
        return Mechanical(
            np.diag([2.0, 2.0, 0.5]),
            lambda t, q, v: np.zeros(3),
            lambda t, q: np.zeros(1),
            lambda t, q: np.array([[np.sin(q[2]), -np.cos(q[2]), 0.0]]),
            lambda t, q, v: sign * np.array([-v[2] * (np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1])]),
            velocity_only=[0],
            q0=np.zeros(3),
            v0=[1.0, 0.0, 0.0],
            t_span=(0.0, 1.0),
        )

    assert skate(1.0).m == 1
    with pytest.raises(ValueError, match=r"bias contradicts jacobian.*Correct it; check"):
        skate(-1.0)


def test_rates_enter_the_comparison():
    """v = 2 q̇: G is half of ∂g/∂q."""
    half = dict(rate=lambda t, q, v: v / 2, gamma=lambda t, q, v: bias(t, q, v) / 4)
    assert given(jacobian=lambda t, q: slope(t, q) / 2, **half).m == 1
    with pytest.raises(ValueError, match=r"jacobian .* G\[0, 0\] is 1 .* give 0.5"):
        given(**half)


def test_a_large_published_system_passes_and_a_slip_in_it_does_not():
    system = squeezer(trace=False)
    G = system.given["jacobian"]
    entry = tuple(np.argwhere(np.abs(G(0.0, system.q0)) > 1e-3)[-1])

    def slip(t, q):
        changed = np.array(G(t, q))
        changed[entry] *= -1.0
        return changed

    with pytest.raises(ValueError, match=rf"G\[{entry[0]}, {entry[1]}\].*sign is reversed"):
        system.with_(jacobian=slip)


def test_the_switch_is_checked():
    with pytest.raises(TypeError, match="check_derivatives must be True or False"):
        given(check_derivatives="no")


# -------------------------------------------------------------------- singular positions


def parallelogram(trace=True, t_end=4.0):
    """Two cranks of length 1 and the bar between them: flat, and singular, where θ = 0.

    Without gravity it turns on with θ̇ = −1, as the two cranks and the bar have constant inertia.
    """

    def closure(t, q):
        return np.array(
            [
                np.cos(q[0]) + 2 * np.cos(q[1]) - 2 - np.cos(q[2]),
                np.sin(q[0]) + 2 * np.sin(q[1]) - np.sin(q[2]),
            ]
        )

    return Mechanical(
        lambda t, q: np.diag([1.5, 1.0, 0.5]),
        lambda t, q, v: np.zeros(3),
        closure,
        q0=[1.0, 0.0, 1.0],
        v0=[-1.0, 0.0, -1.0],
        t_span=(0.0, t_end),
        trace=trace,
        name="parallelogram",
    )


@pytest.mark.parametrize("name", ["ggl", "overdetermined"])
def test_a_run_that_fails_at_a_singular_position_says_so(name):
    run = solve(parallelogram().formulation(name), method="RADAU5", rtol=1e-8, atol=1e-8,
                max_steps=5000)  # fmt: skip
    assert not run.success
    assert run.t[-1] == pytest.approx(1.0, abs=0.05)
    assert "the constraints become dependent there (a singular position)" in run.message


def test_other_failures_and_events_are_not_blamed_on_the_constraints():
    system = pendulum(t_end=10.0)
    stopped = solve(system.formulation("index1"), method="DOP853", max_steps=3)
    assert not stopped.success
    assert "dependent there" not in stopped.message
    event = solve(parallelogram().formulation("index1"), method="DOP853", rtol=1e-8,
                  events=_near_flat)  # fmt: skip
    assert event.status == Status.EVENT
    assert "dependent there" not in event.message


def _near_flat(t, y):
    return y[0] - 0.01


_near_flat.terminal = True


@pytest.mark.parametrize("rtol", [1e-8, 1e-10])
def test_an_iteration_that_does_not_converge_is_no_success(rtol):
    """The double four-bar of ``systems`` goes flat; a penalty of the start does not do there."""
    from tests.integrators.dae.systems import FOUR_BARS_END, four_bars

    system = four_bars()
    run = solve(system.formulation("augmented"), method="DOP853", rtol=rtol, atol=rtol)
    error = np.abs([np.sin(run.y[0, -1]), np.cos(run.y[0, -1])] - FOUR_BARS_END).max()
    assert error > 1e3 * rtol  # the fault is real, and what the run says about itself is
    assert run.status == Status.SINGULAR_MATRIX
    assert "augmented Lagrangian did not converge around t = " in run.message


def test_iterations_that_converge_raise_no_doubt():
    for system in (pendulum(rows=(1.0, 2.0), trace=False), driven()):
        for rtol in (1e-5, 1e-12):
            run = solve(system.formulation("augmented"), method="DOP853", rtol=rtol, atol=rtol)
            assert run.success, run.message
            assert run.message == "reached the end of the interval"


def test_a_further_review_comes_in_addition():
    def remark(problem, t, y, rtol):
        return None, "looked at by me"

    soft = pendulum(t_end=0.5).formulation("augmented").with_(review=remark)
    assert solve(soft).message.endswith("looked at by me")
    assert isinstance(soft, IVP)
    from tests.integrators.dae.systems import four_bars

    both = four_bars().formulation("augmented").with_(review=remark)
    run = solve(both, method="DOP853", rtol=1e-8, atol=1e-8)
    assert run.status == Status.SINGULAR_MATRIX
    assert "did not converge" in run.message
    assert run.message.endswith("looked at by me")
    plain = solve(both.with_(review=None), method="DOP853", rtol=1e-8, atol=1e-8)
    assert plain.ending == "reached the end of the interval"


@pytest.mark.parametrize("far", [1e4, 1e6])
@pytest.mark.parametrize("angle", [0.3, np.pi])
def test_right_derivatives_far_from_the_origin_are_not_accused(far, angle):
    """A pendulum of 1 m in the coordinates of a map."""
    ox, oy = far, -0.7 * far

    def arm(q):
        x, y = q[0] - ox, q[1] - oy
        return x, y, np.hypot(x, y)

    def gamma(t, q, v):
        x, y, r = arm(q)
        return [-(v[0] ** 2 + v[1] ** 2) / r + (x * v[0] + y * v[1]) ** 2 / r**3]

    Mechanical(
        np.eye(2),
        lambda t, q, v: [0.0, -9.81],
        lambda t, q: [arm(q)[2] - 1.0],
        lambda t, q: [[arm(q)[0] / arm(q)[2], arm(q)[1] / arm(q)[2]]],
        gamma,
        q0=[ox + np.sin(angle), oy - np.cos(angle)],
        v0=[0.0, 0.0],
        t_span=(0, 1),
    )


@pytest.mark.parametrize(("rate", "span"), [(100.0, 1e4), (1e4, 100.0), (1e6, 1.0)])
def test_right_derivatives_of_fast_drives_are_not_accused(rate, span):
    def make(sign):
        return Mechanical(
            np.eye(2),
            lambda t, q, v: [0.0, 0.0],
            lambda t, q: [q[0] - 0.01 * np.sin(rate * t + 0.3)],
            lambda t, q: [[1.0, 0.0]],
            lambda t, q, v: [-0.01 * rate**2 * np.sin(rate * t + 0.3)],
            velocity_target=lambda t, q: [sign * 0.01 * rate * np.cos(rate * t + 0.3)],
            q0=[0.01 * np.sin(0.3), 0.0],
            v0=[0.01 * rate * np.cos(0.3), 0.0],
            t_span=(0, span),
        )

    make(1.0)
    with pytest.raises(ValueError, match="velocity_target contradicts"):
        make(-1.0)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-9])
def test_augmented_runs_at_rest_are_trusted(rtol):
    """Nothing moves; what rounding leaves of the iteration is not to be divided by that."""
    system = Mechanical(
        2 * np.eye(2), lambda t, q, v: np.array([0, -19.62]),
        lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
        q0=[0.0, -1.0], v0=[0.0, 0.0], t_span=(0, 5),
    )  # fmt: skip
    run = solve(system.formulation("augmented"), rtol=rtol, atol=1e-12)
    assert run.success, run.message
