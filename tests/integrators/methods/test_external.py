"""Solvers from SciPy and Assimulo behind ``solve``: same problem, same Solution, same rules."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.integrate as si
import scipy.sparse

from integrators import IVP, PI, Event, IntegrationError, Status, solve, traced
from integrators.methods.external.assimulo import _assimulo
from integrators.runs.interrupts import Interrupts

SCIPY = [si.RK23, si.RK45, si.DOP853, si.Radau, si.BDF, si.LSODA]
ADAPTIVE = ["CVode", "Radau5ODE", "Dopri5", "RodasODE", "LSODAR", "RungeKutta34"]
FIXED = ["ExplicitEuler", "ImplicitEuler", "RungeKutta4"]
ASSIMULO = [f"assimulo:{name}" for name in ADAPTIVE]
ALL = SCIPY + ASSIMULO
WITH_FIXED_STEP = [f"assimulo:{name}" for name in FIXED]
MULTISTEP = {si.BDF, si.LSODA, "assimulo:CVode", "assimulo:LSODAR"}

G = 9.81
FALL = np.sqrt(2 / G)  # time to fall from height 1


def name(method):
    return method if isinstance(method, str) else method.__name__


def every(methods):
    return pytest.mark.parametrize("method", methods, ids=name)


def oscillator(t, y):
    return [y[1], -y[0]]


def rotation(t):
    return np.array([np.cos(t), -np.sin(t)])


def ball(t, y):
    return [y[1], -G]


def ground(t, y):
    return y[0]


# -------------------------------------------------------------------- accuracy


@every(ALL)
@pytest.mark.parametrize("end", [5.0, -5.0])
def test_exact_solution_both_directions(method, end):
    sol = solve(oscillator, (0, end), [1.0, 0.0], method=method, rtol=1e-7, dense_output=True)
    assert sol.status is Status.FINISHED
    assert sol.t[-1] == end
    assert np.max(np.abs(sol.y - rotation(sol.t))) < 5e-6
    times = np.linspace(0, end, 333)
    assert np.max(np.abs(sol.sol(times) - rotation(times))) < 5e-6
    assert np.array_equal(sol.h, np.diff(sol.t))
    assert sol.nsteps == len(sol.h)
    assert sol.error_estimate == "by the solver itself"
    assert sol.method == name(method)


@every(WITH_FIXED_STEP)
@pytest.mark.parametrize("end", [2.0, -2.0])
def test_fixed_step(method, end):
    twin = method.split(":")[1].replace("RungeKutta4", "RK4")
    options = {"step": 0.1, "rtol": 1e-12, "atol": 1e-13}  # for the Newton iteration
    theirs = solve(lambda t, y: [-2 * t * y[0] ** 2], (0, end), [1.0], method=method, **options)
    mine = solve(lambda t, y: [-2 * t * y[0] ** 2], (0, end), [1.0], method=twin, step=0.1)
    assert theirs.nsteps == 20  # 0.1 + 0.1 + … would make it 21
    assert np.array_equal(theirs.t, mine.t)
    assert np.allclose(theirs.y, mine.y, rtol=1e-10)


def test_stiff_problem_with_and_without_jacobian():
    mu = 1e3

    def f(t, y):
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    def jac(t, y):
        return [[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]]

    reference = solve(f, (0, 200), [2.0, 0.0], method="RADAU5", rtol=1e-9, atol=1e-12)
    for method in ("assimulo:CVode", "assimulo:Radau5ODE", "assimulo:RodasODE", si.Radau, si.BDF):
        for jacobian in (jac, lambda t, y: scipy.sparse.csc_matrix(jac(t, y))):
            sol = solve(f, (0, 200), [2.0, 0.0], method=method, jac=jacobian, rtol=1e-8)
            free = solve(f, (0, 200), [2.0, 0.0], method=method, rtol=1e-8)
            assert sol.y[0, -1] == pytest.approx(reference.y[0, -1], rel=1e-6)
            assert free.y[0, -1] == pytest.approx(reference.y[0, -1], rel=1e-6)
            assert sol.njev > 0
            assert sol.nfev < free.nfev  # no evaluations for differences


@every([si.Radau, si.LSODA, "assimulo:CVode", "assimulo:LSODAR", "assimulo:RodasODE"])
def test_constant_jacobian(method):
    A = np.array([[-1.0, 0.0], [0.0, -2000.0]])
    sol = solve(lambda t, y: A @ y, (0, 1), [1.0, 1.0], jac=A, method=method)
    assert sol.y[:, -1] == pytest.approx([np.exp(-1), 0.0], abs=1e-5)


@every([si.RK45, si.DOP853, si.BDF, *ASSIMULO])
def test_complex_state(method):
    problem = IVP(lambda t, y: 1j * y, [1.0 + 0j], (0, 3), jac=lambda t, y: [[1j]])
    sol = solve(problem, method=method, rtol=1e-8, dense_output=True)
    assert sol.y.dtype == np.complex128
    assert abs(sol.y[0, -1] - np.exp(3j)) < 1e-5
    assert abs(sol.sol(1.7)[0] - np.exp(1.7j)) < 1e-5


def test_complex_state_refused():
    with pytest.raises(ValueError, match="LSODA takes no complex states"):
        solve(lambda t, y: 1j * y, (0, 1), [1.0 + 0j], method=si.LSODA)


@every([si.RK45, *ASSIMULO])
def test_parameters(method):
    sol = solve(lambda t, y, p: -p[0] * y, (0, 1), [1.0], params=[2.0], method=method)
    assert sol.y[0, -1] == pytest.approx(np.exp(-2), rel=1e-4)


def test_default_arguments_are_left_alone():
    """LSODAR would take a default argument for its own and write into it."""
    sol = solve(lambda t, y, mu=5.0: -mu * y, (0, 1), [1.0], method="assimulo:LSODAR", rtol=1e-8)
    assert sol.y[0, -1] == pytest.approx(np.exp(-5), rel=1e-5)


# -------------------------------------------------------------------- what the solver does is kept


@every(SCIPY)
def test_same_steps_as_solve_ivp(method):
    def f(t, y):
        return [y[1], (1 - y[0] ** 2) * y[1] - y[0] + 0.1 * np.sin(t)]

    tolerances = {"rtol": 1e-6, "atol": 1e-9}
    theirs = si.solve_ivp(f, (0, 10), [2.0, 0.0], method=method, dense_output=True, **tolerances)
    ours = solve(f, (0, 10), [2.0, 0.0], method=method, dense_output=True, **tolerances)
    assert np.array_equal(ours.t, theirs.t)
    assert np.array_equal(ours.y, theirs.y)
    assert ours.njev == theirs.njev
    assert ours.nlu == theirs.nlu
    assert ours.nfev >= theirs.nfev  # SciPy does not count all of those for differences
    if issubclass(method, si.RK45.__bases__[0]):
        assert ours.nfev == theirs.nfev
    times = np.linspace(0, 10, 777)
    rounding = 1e-13 * np.max(np.abs(theirs.y))
    assert np.max(np.abs(ours.sol(times) - theirs.sol(times))) < rounding


@every(ALL)
def test_output_times_change_nothing(method):
    free = solve(oscillator, (0, 5), [1.0, 0.0], method=method)
    times = np.linspace(0, 5, 41)
    sol = solve(oscillator, (0, 5), [1.0, 0.0], method=method, t_eval=times, dense_output=True)
    assert np.array_equal(sol.t, times)
    assert np.array_equal(sol.h, free.h)
    assert np.array_equal(sol.y[:, -1], free.y[:, -1])
    assert np.allclose(sol.y, sol.sol(times), rtol=0, atol=1e-14)


@every(ALL)
def test_dense_output_is_continuous(method):
    sol = solve(oscillator, (0, 5), [1.0, 0.0], method=method, dense_output=True)
    ends = sol.sol.y[:-1] + np.sum(sol.sol.Q[:-1], axis=1)
    assert np.max(np.abs(ends - sol.sol.y[1:])) < 1e-14


def test_counters():
    for method in (si.RK45, "assimulo:Dopri5"):
        sol = solve(oscillator, (0, 20), [1.0, 0.0], method=method)
        assert sol.nfev == 2 + 6 * (sol.nsteps + sol.nrejected)
    sol = solve(oscillator, (0, 20), [1.0, 0.0], method="assimulo:Radau5ODE")
    assert min(sol.njev, sol.nlu) > 0
    sol = solve(oscillator, (0, 20), [1.0, 0.0], method="assimulo:CVode")
    assert min(sol.njev, sol.nnewton) > 0


@every(ALL)
def test_step_limits_and_stops(method):
    stops = [1.0, np.pi]
    limits = {"first_step": 1e-3, "max_step": 0.05, "tstops": stops}
    sol = solve(oscillator, (0, 5), [1.0, 0.0], method=method, **limits)
    assert sol.h[0] == pytest.approx(1e-3)
    assert np.max(sol.h) <= 0.05 * (1 + 1e-12)
    assert set(stops) <= set(sol.t)
    assert sol.y[:, -1] == pytest.approx(rotation(5.0), abs=1e-4)


@every(ALL)
def test_max_steps_and_min_step(method):
    sol = solve(oscillator, (0, 50), [1.0, 0.0], method=method, max_steps=7)
    assert sol.status is Status.TOO_MANY_STEPS
    assert 1 <= sol.nsteps <= 7
    assert "max_steps = 7" in sol.message
    sol = solve(oscillator, (0, 50), [1.0, 0.0], method=method, min_step=1.0, max_step=2.0)
    assert sol.status is Status.STEP_TOO_SMALL


# -------------------------------------------------------------------- events, callbacks, projection


@every(ALL)
def test_terminal_event(method):
    event = Event(ground, direction=-1, terminal=True, name="ground")
    sol = solve(ball, (0, 9), [1.0, 0.0], method=method, events=event, t_eval=np.linspace(0, 9, 91))
    assert sol.status is Status.EVENT
    assert "'ground'" in sol.message
    assert sol.t_events[0] == pytest.approx([FALL], abs=1e-6)
    assert abs(sol.y_events[0][0, 0]) < 1e-14
    assert sol.t[-1] == pytest.approx(0.4)


@every(ALL)
def test_bouncing_ball(method):
    bounce = Event(ground, direction=-1, reset=lambda t, y: [0.0, -0.8 * y[1]])
    sol = solve(ball, (0, 2), [1.0, 0.0], method=method, events=bounce, dense_output=True)
    bounces = FALL * (1 + 2 * np.cumsum([0, 0.8, 0.8**2]))
    assert sol.success
    assert sol.t_events[0] == pytest.approx(bounces[bounces < 2], abs=1e-5)
    late, speed = 2 - bounces[2], 0.8**3 * G * FALL
    assert sol.y[:, -1] == pytest.approx(
        [speed * late - G / 2 * late**2, speed - G * late], abs=1e-4
    )
    assert sol.sol(bounces[0] / 2)[0] == pytest.approx(1 - G / 2 * (bounces[0] / 2) ** 2, abs=1e-6)


@every([si.RK45, si.BDF, "assimulo:CVode", "assimulo:Dopri5", "assimulo:LSODAR"])
def test_event_backwards(method):
    sol = solve(ball, (FALL, -9), [0.0, -G * FALL], method=method, events=[lambda t, y: y[1]])
    assert sol.t_events[0] == pytest.approx([0.0], abs=1e-6)


@every(ALL)
def test_callback_stops(method):
    seen = []

    def callback(t, y):
        seen.append(t)
        return t > 1

    sol = solve(oscillator, (0, 9), [1.0, 0.0], method=method, callback=callback)
    assert sol.status is Status.STOPPED
    assert seen == list(sol.t[1:])
    assert sol.t[-2] <= 1 < sol.t[-1]


@every(ALL)
def test_projection(method):
    def onto_circle(t, y):
        return y / np.linalg.norm(y)

    sol = solve(oscillator, (0, 5), [1.0, 0.0], method=method, project=onto_circle, rtol=1e-5)
    assert np.max(np.abs(np.linalg.norm(sol.y, axis=0) - 1)) < 1e-15
    assert np.max(np.abs(sol.y - rotation(sol.t))) < 2e-3
    free = solve(oscillator, (0, 5), [1.0, 0.0], method=method, rtol=1e-5)
    assert sol.nsteps < (60 if method in MULTISTEP else 2) * free.nsteps


# -------------------------------------------------------------------- faults


@every([*ALL, *WITH_FIXED_STEP])
class TestFaults:
    @staticmethod
    def solve(f, method, end=2.0, **options):
        if method in WITH_FIXED_STEP:
            options["step"] = 0.01
        sol = solve(f, (0, end), [1.0, 0.5], method=method, **options)
        assert np.all(np.isfinite(sol.y))
        return sol

    def test_exception_midway(self, method, capfd):
        def f(t, y):
            if t > 0.5:
                raise RuntimeError("no more")
            return -y

        sol = self.solve(f, method)
        assert sol.status is Status.FUNCTION_RAISED
        assert "no more" in sol.message
        assert isinstance(sol.exception, RuntimeError)
        assert sol.t[-1] <= 0.51
        assert sol.y[0, -1] == pytest.approx(np.exp(-sol.t[-1]), rel=0.01)
        with pytest.raises(IntegrationError, match="no more"):
            sol.raise_for_status()
        assert capfd.readouterr() == ("", "")

    def test_exception_at_once(self, method):
        with pytest.raises(KeyError, match="surprise"):
            self.solve(lambda t, y: {}["surprise"], method)

    def test_nan_at_once(self, method):
        with pytest.raises(ValueError, match="component 1 is nan at t0 = 0"):
            self.solve(lambda t, y: [1.0, np.nan], method)

    def test_nan_midway(self, method, capfd):
        sol = self.solve(lambda t, y: -y if t < 0.5 else np.nan * y, method)
        assert sol.status is Status.NONFINITE
        assert 0.48 < sol.t[-1] <= 0.5
        assert capfd.readouterr() == ("", "")

    def test_nan_outside_the_domain_is_stepped_around(self, method):
        """f is defined for y ≥ 0 only, and y falls towards 0."""
        sol = self.solve(lambda t, y: -np.where(y < 0, np.nan, y), method)
        assert sol.status is Status.FINISHED
        assert sol.y[0, -1] == pytest.approx(np.exp(-2), rel=0.02)

    def test_wrong_shape_midway(self, method):
        sol = self.solve(lambda t, y: [1.0, 2.0] if t < 0.5 else [1.0], method)
        assert sol.status is Status.FUNCTION_RAISED
        assert "shape (1,)" in str(sol.exception)

    def test_interrupt(self, method, capfd):
        def f(t, y):
            if t > 0.5:
                signal.raise_signal(signal.SIGINT)
            return -y

        sol = self.solve(f, method, on_interrupt="return")
        assert sol.status is Status.INTERRUPTED
        assert 0 < sol.t[-1] <= 0.51
        assert capfd.readouterr() == ("", "")

    def test_interrupt_in_callback(self, method):
        def callback(t, y):
            if t > 0.5:
                raise KeyboardInterrupt

        sol = self.solve(oscillator, method, callback=callback, on_interrupt="return")
        assert sol.status is Status.INTERRUPTED
        assert sol.t[-1] > 0.5

    def test_faulty_callback_and_event(self, method):
        def fails_later(t, y):
            return 1 / int(t == 0)

        for fault in ({"callback": fails_later}, {"events": fails_later}):
            sol = self.solve(oscillator, method, **fault)
            assert sol.status is Status.FUNCTION_RAISED
            assert isinstance(sol.exception, ZeroDivisionError)

    def test_faulty_jacobian(self, method, capfd):
        sol = self.solve(oscillator, method, jac=lambda t, y: np.eye(3))
        assert sol.success or "2×2" in sol.message  # explicit methods do not ask for it
        assert capfd.readouterr() == ("", "")

    def test_blow_up(self, method, capfd):
        def f(t, y):
            with np.errstate(over="ignore"):
                return y * y

        sol = self.solve(f, method)
        assert sol.status in (Status.EXTERNAL_FAILED, Status.NONFINITE)
        assert 0.9 < sol.t[-1] < 1.2
        assert f"{sol.t[-1]:.9g}" in sol.message
        assert capfd.readouterr() == ("", "")

    def test_output_of_user_functions_gets_through(self, method, capfd):
        def f(t, y):
            print("f", flush=True)  # noqa: T201
            return -y

        sol = self.solve(f, method)
        assert capfd.readouterr().out == "f\n" * sol.nfev

    def test_zero_length(self, method):
        sol = self.solve(oscillator, method, end=0.0)
        assert sol.success
        assert sol.t.tolist() == [0.0]


def test_fortran_keeps_quiet_until_the_very_end():
    """Its buffer is emptied when the process ends."""
    code = """
        from integrators import solve
        for solver in ("Dopri5", "RodasODE", "LSODAR", "CVode"):
            sol = solve(lambda t, y: y * y, (0, 2), [1.0], method="assimulo:" + solver)
            print(solver, sol.success)
        """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "Dopri5 False\nRodasODE False\nLSODAR False\nCVode False\n"
    assert done.stderr == ""


def test_interrupt_outside_the_users_functions_waits():
    interrupts = Interrupts()
    with interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.waiting
        with pytest.raises(KeyboardInterrupt):
            interrupts.exposed(lambda: signal.raise_signal(signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress(capfd):
    for method in (si.RK45, "assimulo:Dopri5", "assimulo:CVode"):
        assert solve(oscillator, (0, 5), [1.0, 0.0], method=method, progress=True).success


# -------------------------------------------------------------------- bad input


def test_names():
    assert solve(oscillator, (0, 1), [1.0, 0.0], method="ASSIMULO:cvode").success
    with pytest.raises(ValueError, match="did you mean assimulo:CVode"):
        solve(oscillator, (0, 1), [1.0, 0.0], method="assimulo:CVodes")
    with pytest.raises(ValueError, match=r"no solver assimulo:xyz\. Known are CVode"):
        solve(oscillator, (0, 1), [1.0, 0.0], method="assimulo:xyz")


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "assimulo.solvers", None)
    _assimulo.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "featherstep\[assimulo\]"'):
        solve(oscillator, (0, 1), [1.0, 0.0], method="assimulo:CVode")


@every([si.BDF, "assimulo:CVode", "assimulo:RungeKutta4"])
def test_options_that_do_not_fit(method):
    fixed = {"step": 0.1} if method == "assimulo:RungeKutta4" else {}
    with pytest.raises(ValueError, match="RADAU5"):
        solve(oscillator, (0, 1), [1.0, 0.0], method=method, mass=np.eye(2), **fixed)
    with pytest.raises(ValueError, match="omit controller and norm"):
        solve(oscillator, (0, 1), [1.0, 0.0], method=method, norm="max", **fixed)
    if fixed:
        with pytest.raises(ValueError, match="give a fixed step"):
            solve(oscillator, (0, 1), [1.0, 0.0], method=method)
    else:
        with pytest.raises(ValueError, match="chooses its own steps"):
            solve(oscillator, (0, 1), [1.0, 0.0], method=method, step=0.1)
        with pytest.raises(ValueError, match="omit controller and norm"):
            solve(oscillator, (0, 1), [1.0, 0.0], method=method, controller=PI())


# -------------------------------------------------------------------- a user's own OdeSolver


class Midpoint(si.OdeSolver):
    """Takes no options and has no dense output."""

    def __init__(self, fun, t0, y0, t_bound, vectorized=False):
        super().__init__(fun, t0, y0, t_bound, vectorized)

    def _step_impl(self):
        h = self.direction * min(0.01, abs(self.t_bound - self.t))
        middle = self.y + h / 2 * self.fun(self.t, self.y)
        self.y = self.y + h * self.fun(self.t + h / 2, middle)
        self.t += h
        return True, None


class Cautious(si.RK45):
    """Passes its options on."""

    def __init__(self, *args, rtol=1e-3, **options):
        super().__init__(*args, rtol=rtol / 10, **options)


def test_user_class():
    sol = solve(oscillator, (0, 1), [1.0, 0.0], method=Midpoint, dense_output=True)
    times = np.linspace(0, 1, 50)
    assert np.max(np.abs(sol.sol(times) - rotation(times))) < 1e-4
    assert sol.dense_order == 3
    for option in ("max_step", "first_step"):
        with pytest.raises(ValueError, match=f"Midpoint takes no {option}"):
            solve(oscillator, (0, 1), [1.0, 0.0], method=Midpoint, **{option: 0.1})


def test_user_subclass_gets_all_options():
    sol = solve(oscillator, (0, 1), [1.0, 0.0], method=Cautious, rtol=1e-5, max_step=0.1)
    tight = solve(oscillator, (0, 1), [1.0, 0.0], method=si.RK45, rtol=1e-6, max_step=0.1)
    assert np.allclose(sol.y, tight.y, rtol=1e-12)
    assert sol.dense_order == 4


def test_solver_that_stumbles():
    class Stumbles(Midpoint):
        def _step_impl(self):
            if self.t > 0.5:
                raise FloatingPointError("ouch")
            return super()._step_impl()

    sol = solve(oscillator, (0, 1), [1.0, 0.0], method=Stumbles)
    assert sol.status is Status.EXTERNAL_FAILED
    assert "FloatingPointError: ouch" in sol.message
    assert isinstance(sol.exception, FloatingPointError)
    assert sol.t[-1] == pytest.approx(0.5)


@pytest.mark.parametrize("solver", ["RK45", "Radau", "DOP853", "LSODA"])
def test_an_event_that_is_due_at_the_start(solver):
    """The ball starts on the floor, moving down: it bounces before the first step."""
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.9 * y[1]])
    run = solve(lambda t, y: [y[1], -y[0]], (0, 3), [0.0, -1.0], method=f"scipy:{solver}",
                events=bounce, rtol=1e-8)  # fmt: skip
    assert run.success
    assert run.t_events[0][0] == 0.0
    assert run.y[0, -1] == pytest.approx(0.9 * np.sin(3.0), abs=1e-6)


def test_a_traced_function_without_a_size_for_a_dae_solver():
    pytest.importorskip("assimulo")
    f = traced(lambda t, y: np.array([y[1], -y[0]]))
    run = solve(f, (0, 1), [1.0, 0.0], method="assimulo:IDA", rtol=1e-8, atol=1e-10)
    assert run.y[0, -1] == pytest.approx(np.cos(1.0), abs=1e-5)
