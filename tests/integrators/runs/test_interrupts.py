"""Ctrl-C, sys.exit and processes: nothing computed is lost, and the script does stop."""

import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from integrators import (
    IntegrationError,
    IntegrationInterrupted,
    Status,
    solve,
    solve_many,
    traced,
)

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
METHODS = ["DOPRI5", "RADAU5", "RadauVariable", "BDF", "scipy:RK45", "scipy:LSODA"]


def stops_with(error, at=0.5):
    def f(t, y):
        if t > at:
            raise error
        return -y

    return f


def failing(rate):
    """A run that fails, as a task for another process."""
    return solve(lambda t, y: rate * y**2, (0, 2), [1.0], throw=True)


def fine(rate):
    return solve(
        lambda t, y: -rate * y, (0, 2), [1.0], dense_output=True, events=lambda t, y: y - 0.5
    )


# ---------------------------------------------------------------- processes


def test_a_failure_survives_pickling():
    with pytest.raises(IntegrationError) as caught:
        failing(1.0)
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is IntegrationError
    assert str(again) == str(error)
    assert (again.t, again.h) == (error.t, error.h)
    assert np.array_equal(again.y, error.y)
    assert again.solution.status == error.solution.status
    assert np.array_equal(again.solution.y, error.solution.y)


def test_a_failure_does_not_break_a_pool_of_processes():
    with ProcessPoolExecutor(1) as pool:
        failure, success = pool.submit(failing, 1.0), pool.submit(fine, 1.0)
        with pytest.raises(IntegrationError, match="t = 1") as caught:
            failure.result()
        assert caught.value.solution.t.size > 3
        assert success.result().sol(1.0) == pytest.approx(np.exp(-1), rel=1e-5)


def test_an_interruption_survives_pickling():
    with pytest.raises(IntegrationInterrupted) as caught:
        solve(stops_with(KeyboardInterrupt), (0, 1), [1.0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert np.array_equal(again.solution.t, caught.value.solution.t)


# ---------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_stops_the_script_and_keeps_the_solution(method):
    done = []

    def script():
        for k in range(5):
            solve(stops_with(KeyboardInterrupt), (0, 1), [1.0], method=method)
            done.append(k)

    with pytest.raises(IntegrationInterrupted, match="interrupted at t = 0") as caught:
        script()
    assert isinstance(caught.value, KeyboardInterrupt)
    assert done == []
    solution = caught.value.solution
    assert solution.status == Status.INTERRUPTED
    assert 0 < solution.t[-1] <= 0.5
    assert solution.method == method
    assert solution.y[0, -1] == pytest.approx(np.exp(-solution.t[-1]), rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_returns_the_solution_if_asked_to(method):
    solution = solve(
        stops_with(KeyboardInterrupt), (0, 1), [1.0], method=method, on_interrupt="return"
    )
    assert solution.status == Status.INTERRUPTED


def test_what_to_do_at_ctrl_c_is_one_of_two():
    for call, y0 in ((solve, [1.0]), (solve_many, [[1.0]])):
        with pytest.raises(
            ValueError, match="on_interrupt must be 'raise' or 'return', got 'stop'"
        ):
            call(lambda t, y: -y, (0, 1), y0, on_interrupt="stop")


@posix
@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_ctrl_c_stops_many_machine_code_runs(method):
    f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    options = dict(method=method, max_steps=10**9, workers=2)
    solve_many(f, (0, 1), [[1.0, 0.0]], **options)  # compiles
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(IntegrationInterrupted) as caught:
        solve_many(f, (0, 1e9), np.ones((3, 2)), **options)
    many = caught.value.solution
    assert np.all(many.status == Status.INTERRUPTED)
    assert np.all(many.t[:2] > 0)


def test_ctrl_c_in_a_callback_of_python_itself_is_not_lost():
    """Python prints and forgets what is raised there; garbage collection is the usual place."""

    class Trap:
        def __del__(self):
            raise KeyboardInterrupt

    calls = []

    def f(t, y):
        calls.append(t)
        if len(calls) == 40:
            Trap()
        return -y

    with pytest.raises(IntegrationInterrupted) as caught:
        solve(f, (0, 1000), [1.0], max_step=0.1)
    assert 0 < caught.value.solution.t[-1] < 500  # at the next look, after some thousand steps


@posix
def test_ctrl_c_at_any_moment_leaves_no_stray_lines():
    """One traceback, of the interruption; never "Exception ignored in …"."""
    script = textwrap.dedent(
        """
        import os, random, signal, sys, threading, time
        import numpy as np
        from integrators import IntegrationInterrupted, solve
        def f(t, y):
            return np.array([y[1], -y[0]])
        random.seed(int(sys.argv[1]))
        before = signal.getsignal(signal.SIGINT)
        for method in ("DOPRI5", "RADAU5"):
            solve(f, (0, 1), [1.0, 0.0], method=method)
            for _ in range(15):
                timer = threading.Timer(random.uniform(0.0, 0.02), os.kill, (os.getpid(), 2))
                try:
                    timer.start()
                    while True:  # also between runs, and while one begins or ends
                        solve(f, (0, 1), [1.0, 0.0], method=method)
                except KeyboardInterrupt as stop:
                    assert not hasattr(stop, "solution") or stop.solution.t.size > 0
                timer.join()
                assert signal.getsignal(signal.SIGINT) is before
        print("done")
        """
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(random.Random(5).randrange(1000))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.strip() == "done", run.stderr
    assert run.stderr == ""


@posix
def test_ctrl_c_ends_a_script_with_one_traceback():
    script = textwrap.dedent(
        """
        from integrators import solve
        solve(lambda t, y: -y, (0, 1), [1.0])
        print("ready", flush=True)
        for k in range(100):
            solve(lambda t, y: -y, (0, 1e9), [1.0], max_step=1.0, max_steps=10**9)
            print("next run")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "next run" not in out
    assert process.returncode in (1, -signal.SIGINT)
    assert "IntegrationInterrupted: interrupted at t = " in err
    assert "ignored" not in err


# ---------------------------------------------------------------- sys.exit


@pytest.mark.parametrize("method", METHODS)
def test_sys_exit_in_f_ends_the_script_with_the_solution(method):
    with pytest.raises(SystemExit) as caught:
        solve(stops_with(SystemExit(3)), (0, 1), [1.0], method=method)
    assert caught.value.code == 3
    assert 0 < caught.value.solution.t[-1] <= 0.5


def test_sys_exit_elsewhere():
    def stop(t, y):
        if t > 0.5:
            sys.exit(4)
        return 1.0

    for name in ("callback", "events"):
        with pytest.raises(SystemExit) as caught:
            solve(lambda t, y: -y, (0, 1), [1.0], max_step=0.1, **{name: stop})
        assert 0.3 < caught.value.solution.t[-1] < 0.7
    with pytest.raises(SystemExit):  # in the first trial, when nothing is computed yet
        solve(stops_with(SystemExit(5), at=0), (0, 1), [1.0])
    with pytest.raises(SystemExit) as caught:
        solve_many(stops_with(SystemExit(6)), (0, 1), [[1.0], [2.0]], method="RADAU5")
    assert len(caught.value.solution) == 2
