"""Bad input and faults: a clear message or status, nothing lost, never a NaN as success."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrators import IVP, Controller, IntegrationError, Status, solve, traced


def decay(t, y):
    return -y


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (((0, 1), [[1.0, 2.0]]), {}, ValueError, "one-dimensional"),
        (((0, 1), []), {}, ValueError, "empty"),
        (((0, 1), [1.0, np.nan]), {}, ValueError, r"y0\[1\] is nan"),
        (((0, 1), ["a"]), {}, TypeError, "list of numbers"),
        (((0, np.inf), [1.0]), {}, ValueError, "t_span must be finite"),
        (((0, 1, 2), [1.0]), {}, ValueError, "two times"),
        (((0, 1), [1.0]), {"rtol": 0, "atol": 0}, ValueError, "some error must be allowed"),
        (((0, 1), [1.0]), {"rtol": -1}, ValueError, "rtol must be"),
        (((0, 1), [1.0]), {"rtol": 1e-17}, ValueError, "double precision"),
        (((0, 1), [1.0]), {"atol": [1e-6, 1e-6]}, ValueError, "one for each of the 1"),
        (((0, 1), [1.0]), {"atol": -1}, ValueError, "must not be negative"),
        (((0, 1), [1.0]), {"step": -0.1}, ValueError, "step must be a positive number"),
        (((0, 1), [1.0]), {"step": 0}, ValueError, "step must be a positive number"),
        (((0, 1), [1.0]), {"step": np.nan}, ValueError, "step must be a positive number"),
        (((0, 1), [1.0]), {"step": 1e-12}, ValueError, "more than"),
        (((0, 1), [1.0]), {"method": "DOPRY5"}, ValueError, "DOPRI5"),
        (((0, 1), [1.0]), {"method": 5}, TypeError, "method must be"),
        (((0, 1), [1.0]), {"t_eval": [0.5, 0.2]}, ValueError, "sorted"),
        (((0, 1), [1.0]), {"t_eval": [0.5, 2.0]}, ValueError, "within t_span"),
        (((0, 1), [1.0]), {"norm": "two"}, ValueError, "'rms' or 'max'"),
        (((0, 1), [1.0]), {"max_step": 0}, ValueError, "max_step"),
        (((0, 1), [1.0]), {"min_step": 2, "max_step": 1}, ValueError, "larger than max_step"),
        (((0, 1), [1.0]), {"first_step": 3}, ValueError, "longer than the interval"),
        (((0, 1), [1.0]), {"max_steps": 0}, ValueError, "max_steps"),
        (((0, 1), [1.0]), {"controller": "PI"}, TypeError, "controller must be"),
        (((0, 1), [1.0]), {"mass": np.eye(2)}, ValueError, "1×1 matrix"),
        (((0, 1), [1.0]), {"mass": np.zeros((1, 1)), "method": "RK4"}, ValueError, "explicit"),
        (((0, 1), [1.0]), {"method": "RADAU5", "jac": np.eye(2)}, ValueError, "1×1 matrix"),
    ],
)
def test_wrong_arguments_raise_at_once(arguments, options, error, message):
    with pytest.raises(error, match=message):
        solve(decay, *arguments, **options)


def test_missing_and_wrong_problems():
    with pytest.raises(TypeError, match="needs the interval"):
        solve(decay)
    with pytest.raises(TypeError, match="expected an IVP"):
        solve("decay", (0, 1), [1.0])
    with pytest.raises(TypeError, match="f must be a function"):
        IVP(3, [1.0], (0, 1))
    with pytest.raises(ValueError, match="safety"):
        Controller(safety=2)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda t, y: [1.0, 2.0], ValueError, r"shape \(2,\) for a state of shape \(1,\)"),
        (lambda t, y: None, TypeError, "return statement"),
        (lambda t, y: "fast", TypeError, "expected 1 numbers"),
        (lambda t, y: [1j], TypeError, "complex y0"),
        (lambda t, y: [np.nan], ValueError, "not finite"),
        (lambda t, y: 1 / 0, ZeroDivisionError, "division"),
    ],
)
@pytest.mark.parametrize("method", ["DOPRI5", "RadauIIA3", "RK4"])
def test_faulty_f_is_told_at_once_and_as_itself(f, error, message, method):
    with pytest.raises(error, match=message):
        solve(f, (0, 1), [1.0], method=method)


def test_integers_and_zero_length():
    assert solve(lambda t, y: [1], (0, 1), [0]).y[0, -1] == pytest.approx(1.0)
    still = solve(decay, (1, 1), [2.0])
    assert still.success
    assert still.t.tolist() == [1.0]
    assert still.y[0, 0] == 2.0


@pytest.mark.parametrize("method", ["DOPRI5", "RadauIIA3", "SDIRK4", "RK4"])
@pytest.mark.parametrize("options", [{}, {"step": 0.01}])
def test_f_that_raises_half_way_keeps_what_was_computed(method, options):
    def fragile(t, y):
        if t > 0.5:
            raise OSError("sensor unplugged")
        return -y

    solution = solve(fragile, (0, 1), [1.0], method=method, **options)
    assert solution.status == Status.FUNCTION_RAISED
    assert not solution.success
    assert isinstance(solution.exception, OSError)
    assert "sensor unplugged" in solution.message
    assert 0.2 < solution.t[-1] <= 0.5
    assert solution.y[0, -1] == pytest.approx(np.exp(-solution.t[-1]), rel=1e-2)
    with pytest.raises(IntegrationError) as raised:
        solve(fragile, (0, 1), [1.0], method=method, throw=True, **options)
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.t == solution.t[-1]


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RadauIIA3", "SDIRK4", "RK4", "BS23"])
def test_nan_half_way_ends_with_a_status(method):
    def breaks(t, y):
        return np.where(t > 0.5, np.nan, -y)

    solution = solve(breaks, (0, 1), [1.0], method=method)
    assert solution.status in (Status.NONFINITE, Status.NEWTON_FAILED)
    assert solution.t[-1] <= 0.5
    assert solution.t[-1] > 0.49
    assert np.all(np.isfinite(solution.y))
    fixed = solve(breaks, (0, 1), [1.0], method=method, step=0.1)
    assert not fixed.success
    assert np.all(np.isfinite(fixed.y))


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "RadauIIA3", "RK4"])
def test_blow_up_is_located(method):
    solution = solve(lambda t, y: y**2, (0, 2), [1.0], method=method)
    assert not solution.success
    assert solution.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert np.all(np.isfinite(solution.y))
    assert "t = " in solution.message


def test_projection_and_callback_that_raise_keep_the_run():
    def broken(t, y):
        if t > 0.5:
            raise KeyError("mass")
        return y

    for options in ({"project": broken}, {"callback": broken}):
        solution = solve(decay, (0, 1), [1.0], step=0.1, **options)
        assert solution.status == Status.FUNCTION_RAISED
        assert isinstance(solution.exception, KeyError)
        assert solution.t[-1] >= 0.5


@pytest.mark.parametrize("method", ["RADAU5", "SDIRK4", "RadauVariable", "DOP853", "BDF", "Adams"])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_whichever_evaluation_raises_ends_the_run(method, error):
    """Also those for differences in a Jacobian, where evaluations before and after it succeed."""
    for number in range(3, 90):  # the second is a trial, which may be outside of f's domain
        calls = []

        def van_der_pol(t, y, number=number, calls=calls):
            calls.append(t)
            if len(calls) == number:
                raise error
            return np.array([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]])

        run = solve(van_der_pol, (0, 20), [2.0, 0.0], method=method, on_interrupt="return")
        assert isinstance(run.exception, error), number
        assert len(calls) == number
        expected = Status.INTERRUPTED if error is KeyboardInterrupt else Status.FUNCTION_RAISED
        assert run.status == expected


def test_control_c_in_the_trial_of_the_first_step():
    calls = []

    def decay(t, y):
        calls.append(t)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return -y

    with pytest.raises(KeyboardInterrupt):
        solve(decay, (0, 1), [1.0])


@pytest.mark.parametrize("seconds", [0.6])
@pytest.mark.parametrize("method", ["DOPRI5", "RadauIIA3"])
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_control_c_returns_what_was_computed(seconds, method):
    script = textwrap.dedent(
        f"""
        import numpy as np
        from integrators import Status, solve
        solve(lambda t, y: -y, (0, 1), [1.0], method={method!r}, max_steps=10)
        print("ready", flush=True)
        s = solve(lambda t, y: np.array([y[1], -y[0]]), (0, 1e9), [1.0, 0.0], method={method!r},
                  max_steps=10**9, on_interrupt="return")
        assert s.status == Status.INTERRUPTED, s
        assert s.t.size > 10 and s.t[-1] > 0
        print("interrupted after", s.nsteps > 10)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()  # a run that cannot be interrupted would go on for ever
    assert process.returncode == 0, err
    assert "interrupted after True" in out
    assert err == ""


def test_interrupting_machine_code_loses_no_step():
    """Ctrl-C waits until the steps under way are put away; all numbers agree."""
    f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    problem = IVP(f, [1.0, 0.0], (0.0, 1e9))
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    solve(problem, t_span=(0.0, 1.0), method="DOP853")  # compiles
    timer.start()
    run = solve(problem, method="DOP853", max_steps=10**9, on_interrupt="return")
    assert run.status == Status.INTERRUPTED
    assert len(run.t) == run.nsteps + 1 > 1
    assert run.message == f"interrupted at t = {run.t[-1]:.9g}"
    assert signal.getsignal(signal.SIGINT) is handler


# ---------------------------------------------------------------- a hammer

numbers = st.one_of(
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 1e-300, 1e300, -1e300, 1e-8, np.nan, np.inf]),
)
methods = st.sampled_from(
    ["DOPRI5", "BS23", "RK4", "ExplicitEuler", "RadauIIA3", "ImplicitEuler", "SDIRK4", "Gauss2"]
)
fields = st.sampled_from(
    [
        lambda t, y: -y,
        lambda t, y: y**2,
        lambda t, y: np.full_like(y, np.nan) if t > 0.3 else y,
        lambda t, y: np.sqrt(np.abs(y)),
        lambda t, y: 1e6 * (np.cos(t) - y),
        lambda t, y: np.exp(y),
        lambda t, y: np.sign(y) * -1.0,
        lambda t, y: y / (t - 0.5),
        lambda t, y: 1 / y,
        lambda t, y: np.zeros_like(y),
        lambda t, y: y[:1],
        lambda t, y: [None],
    ]
)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    f=fields,
    y0=st.lists(numbers, min_size=0, max_size=3),
    t0=numbers,
    t1=numbers,
    method=methods,
    rtol=st.sampled_from([1e-3, 1e-8, 0.0, -1.0, 1e-20]),
    atol=st.sampled_from([1e-6, 0.0, 1e-30]),
    step=st.sampled_from([None, 0.1, 10.0, -0.1]),
)
def test_hostile_input_always_ends_and_never_returns_nan_as_success(
    f, y0, t0, t1, method, rtol, atol, step
):
    with np.errstate(all="ignore"):
        try:
            if step is not None and abs(t1 - t0) > 1e3:
                step = abs(t1 - t0) / 100
            solution = solve(
                f, (t0, t1), y0, method=method, rtol=rtol, atol=atol, step=step, max_steps=2000
            )
        except (ValueError, TypeError, OverflowError, FloatingPointError):
            return
        assert solution.message
        assert np.all(np.isfinite(solution.t))
        assert np.all(np.isfinite(solution.y))
        if solution.status == Status.FINISHED:
            assert solution.t[-1] == t1


def test_complex_mass_matrices_are_not_halved_in_silence():
    with pytest.raises(ValueError, match="needs complex states"):
        IVP(lambda t, y: -y, [1.0, 1.0], (0, 1), mass=np.diag([1 + 1j, 1.0]))
    with pytest.raises(ValueError, match=r"give mass\.toarray\(\)"):
        IVP(lambda t, y: -y, [1j, 1.0], (0, 1), mass=scipy.sparse.identity(2))
