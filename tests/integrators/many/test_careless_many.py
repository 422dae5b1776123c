"""Many runs under careless use: bad first rows, untraceable functions, Ctrl-C, odd numbers."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

from integrators import Event, IntegrationInterrupted, Status, Taylor, solve, solve_many, traced
from integrators.tracing import GraphTooLargeError

TIGHT = {"rtol": 1e-9, "atol": 1e-11}

# In lanes, and one by one with dense output, with Newton's iteration, with series.
WAYS = [
    {"method": "DOPRI5"},
    {"method": "DOPRI5", "t_eval": [0.0, 0.5, 1.0]},
    {"method": "BS23"},
    {"method": "DOP853", "t_eval": [0.0, 0.5, 1.0]},
    {"method": "RADAU5"},
    {"method": Taylor(12)},
]


def power(t, y, p):
    """y' = log(p) y: y(t) = y(0) pᵗ, and NaN for p < 0."""
    return [np.log(p[0]) * y[0]]


def oscillation(t, y, p):
    return [p[0] * y[1], -p[0] * y[0]]


def branching(t, y, p):
    """y' = −p y, in code that cannot be traced."""
    if p[0] < 0:
        raise ValueError("negative rate")
    return -p[0] * y


# -------------------------------------------------------------------- a run that cannot begin


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("options", WAYS)
def test_a_run_that_is_nan_at_its_start_fails_alone(options, bad):
    bases = np.insert([2.0, 3.0], bad, -1.0)
    many = solve_many(
        traced(power, n=1, params=1), (0, 1), [1.0], params=bases[:, None], **TIGHT, **options
    )
    assert many.failures() == {bad: Status.NONFINITE}
    assert (many.t[bad], many.y[bad, 0]) == (0.0, 1.0)
    assert many.nsteps[bad] == many.nrejected[bad] == 0
    good = many.success
    assert many.y[good, 0] == pytest.approx(bases[good], rel=1e-6)
    if "t_eval" in options:
        assert many.y_eval[good, 0] == pytest.approx(bases[good, None] ** [0.0, 0.5, 1.0], rel=1e-6)
        assert np.isnan(many.y_eval[bad, 0]).tolist() == [False, True, True]


@pytest.mark.parametrize("options", WAYS)
def test_an_infinite_slope_at_the_start_is_not_finite_either(options):
    f = traced(lambda t, y, p: y / p[0], n=1, params=1)
    many = solve_many(f, (0, 1), [0.3], params=[[0.0], [1.0]], **TIGHT, **options)
    assert many.failures() == {0: Status.NONFINITE}
    assert many.y[1, 0] == pytest.approx(0.3 * np.e, rel=1e-6)


@pytest.mark.parametrize("bad", [0, 1])
@pytest.mark.parametrize("options", [w for w in WAYS if not isinstance(w["method"], Taylor)])
def test_a_function_that_raises_for_one_run_stops_nobody(options, bad):
    rates = np.insert([2.0, 3.0], bad, -1.0)
    many = solve_many(branching, (0, 1), [1.0], params=rates[:, None], **TIGHT, **options)
    assert many.failures() == {bad: Status.FUNCTION_RAISED}
    assert many.y[many.success, 0] == pytest.approx(np.exp([-2.0, -3.0]), rel=1e-6)


def test_a_plain_function_that_is_nan_for_one_run():
    """NumPy warns of the logarithm; that is no reason to say that f raised."""
    many = solve_many(power, (0, 1), [1.0], params=[[-1.0], [2.0]], **TIGHT)
    assert many.failures() == {0: Status.NONFINITE}
    assert many.y[1, 0] == pytest.approx(2.0, rel=1e-6)


def test_where_all_runs_fail():
    f = traced(power, n=1, params=1)
    for options in WAYS:
        many = solve_many(f, (0, 1), [1.0], params=[[-1.0], [-2.0]], **options)
        assert many.failures() == {0: Status.NONFINITE, 1: Status.NONFINITE}
        with pytest.raises(ValueError, match="rtol"):
            solve_many(f, (0, 1), [1.0], params=[[-1.0], [-2.0]], **{**options, "rtol": -1.0})
    with pytest.raises(ValueError, match="negative rate"):  # then f itself is to blame
        solve_many(branching, (0, 1), [1.0], params=[[-1.0], [-2.0]])


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda t, y: None, TypeError, "f returned None"),
        (lambda t, y: np.ones(3), ValueError, r"shape \(3,\)"),
        (lambda t, y: "fast", TypeError, "expected 1 numbers"),
        (lambda t, y: missing * y, NameError, "missing"),  # noqa: F821
        (traced(lambda t, y: -y, n=2), ValueError, r"expected y of shape \(2,\)"),
    ],
)
def test_what_is_wrong_for_all_runs_is_raised(f, error, message):
    with pytest.raises(error, match=message):
        solve_many(f, (0, 1), np.ones((3, 1)))


# -------------------------------------------------------------------- no step is short enough


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "BS23", "CashKarp"])
def test_a_slope_that_exists_at_the_start_only(method):
    """From y = 0 at t = 0, where steps may shrink until they vanish; the end is that of solve."""
    f = traced(lambda t, y: -1.0 - np.sqrt(y), n=1)
    one = solve(f, (0, 1), [0.0], method=method)
    many = solve_many(f, (0, 1), [[0.0]], method=method)
    assert Status(int(many.status[0])) == one.status == Status.NONFINITE
    assert many.nrejected[0] == one.nrejected < 1000
    assert (many.t[0], many.y[0, 0]) == (0.0, 0.0)


@pytest.mark.parametrize("options", [{}, {"min_step": 1e-8}])
def test_leaving_the_domain_ends_as_in_a_single_run(options):
    """y' = −√y − 1 from 1 leaves the domain at t = 2 − 2 ln 2 (with u = √y: t = ∫ 2u/(u+1) du)."""
    f = traced(lambda t, y: -np.sqrt(y) - 1.0, n=1)
    many = solve_many(f, (0, 3), [[1.0], [100.0]], **TIGHT, **options)
    assert many.failures() == {0: Status.NONFINITE}
    assert many.t[0] == pytest.approx(2 - 2 * np.log(2), abs=1e-5)
    assert solve(f, (0, 3), [1.0], **TIGHT, **options).status == Status.NONFINITE


# -------------------------------------------------------------------- what cannot be traced


def masked(t, y):
    slope = -y.copy()
    slope[y < 0] = 0.0
    return slope


def masked_sum(t, y):
    return -y * np.sum(y, where=np.array([True, False])) / y[0]


@pytest.mark.parametrize(
    ("f", "end"),
    [(masked, [np.exp(-1), -1.0]), (masked_sum, [np.exp(-1), -np.exp(-1)])],
)
def test_untraceable_functions_of_any_kind_still_run(f, end):
    many = solve_many(f, (0, 1), [[1.0, -1.0], [2.0, -2.0]], **TIGHT)
    assert many.success.all()
    assert many.y == pytest.approx(np.outer([1.0, 2.0], end), rel=1e-7)


def test_a_graph_too_large_for_machine_code(monkeypatch):
    monkeypatch.setattr("integrators.tracing.llvm.codegen.LARGEST_GRAPH", 3)
    many = solve_many(lambda t, y: -y * np.cos(t) * 2.5, (0, 1), np.ones((2, 3)), **TIGHT)
    assert many.engine.startswith("one by one: ")
    assert many.y == pytest.approx(np.exp(-2.5 * np.sin(1.0)), rel=1e-6)
    f = traced(lambda t, y: -y * np.cos(t) * 3.5, n=3)
    with pytest.raises(GraphTooLargeError, match="nodes"):
        solve_many(f, (0, 1), np.ones((2, 3)))


def test_no_compiler(monkeypatch):
    def no_target(*arguments):
        raise RuntimeError("No available targets are compatible with this triple")

    monkeypatch.setattr("integrators.tracing.llvm.codegen.compile_program", no_target)
    many = solve_many(lambda t, y: -y * np.cos(t) * 4.5, (0, 1), np.ones((2, 3)), **TIGHT)
    assert many.engine.startswith("one by one: ")
    assert many.y == pytest.approx(np.exp(-4.5 * np.sin(1.0)), rel=1e-6)
    f = traced(lambda t, y: -y * np.cos(t) * 5.5, n=3)
    with pytest.raises(RuntimeError, match="No available targets"):
        solve_many(f, (0, 1), np.ones((2, 3)))


# -------------------------------------------------------------------- Ctrl-C

# Nobody waits for the end of the fast oscillations; the still one is there at once.
SPEEDS = np.array([0.0] + 19 * [1.0])[:, None]
FAR = 1e7


def control_c_during(run):
    """Press Ctrl-C when machine code has been running for a while."""
    before = signal.getsignal(signal.SIGINT)

    def press():
        held = 0
        while held < 3:  # the handler is replaced while machine code runs
            time.sleep(0.1)
            held = held + 1 if signal.getsignal(signal.SIGINT) is not before else 0
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        result = run()
    finally:
        presser.join()
    assert signal.getsignal(signal.SIGINT) is before
    return result


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("method", "workers", "begun"),
    [
        ("DOPRI5", 1, 8),
        ("RADAU5", 1, 8),
        ("SDIRK4", 2, 2),
        (Taylor("auto"), 2, 2),
    ],  # lanes, threads
)
def test_control_c_returns_what_was_computed(method, workers, begun):
    f = traced(oscillation, n=2, params=1)
    times = [0.0, 1.0, FAR]
    options = {"params": SPEEDS, "method": method, "workers": workers, "max_steps": 10**9}
    options["on_interrupt"] = "return"
    hook = sys.unraisablehook
    many = control_c_during(
        lambda: solve_many(f, (0, FAR), [1.0, 0.0], t_eval=times, **TIGHT, **options)
    )
    assert many.status.tolist() == [Status.FINISHED] + 19 * [Status.INTERRUPTED]
    assert many.t[0] == FAR
    under_way, queued = slice(1, 1 + begun), slice(1 + begun, None)
    assert np.all((many.t[under_way] > 1.0) & (many.t[under_way] < FAR))
    assert np.all(many.nsteps[under_way] > 10)
    # A circle, with the tolerance's error in each of a great many steps.
    assert np.hypot(*many.y[under_way].T) == pytest.approx(1.0, abs=0.1)
    assert many.y_eval[under_way, 0, 1] == pytest.approx(np.cos(1.0), rel=1e-6)
    assert np.isnan(many.y_eval[1:, :, 2]).all()
    assert np.all(many.t[queued] == 0.0)
    assert np.all(many.y[queued] == [1.0, 0.0])
    assert np.all(many.nsteps[queued] == 0)
    assert sys.unraisablehook is hook


def test_control_c_in_a_python_function_ends_all_runs():
    def f(t, y, p):
        if p[0] == 2.0 and t > 0.5:
            raise KeyboardInterrupt
        return -p[0] * y

    with pytest.raises(IntegrationInterrupted, match="1 of 3 runs succeeded") as stopped:
        solve_many(f, (0, 1), [1.0], params=[[1.0], [2.0], [3.0]], method="RADAU5")
    many = stopped.value.solution
    assert many.status.tolist() == [Status.FINISHED, Status.INTERRUPTED, Status.INTERRUPTED]
    assert 0.0 < many.t[1] <= 0.5
    assert many.y[1, 0] == pytest.approx(np.exp(-2.0 * many.t[1]), rel=1e-4)
    assert (many.t[2], many.y[2, 0]) == (0.0, 1.0)

    def at_once(t, y, p):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_many(at_once, (0, 1), [1.0], params=[[1.0], [2.0]])


# -------------------------------------------------------------------- interpreted kernels


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_interpreted_loops_watch_traced_events(method, monkeypatch):
    fall = traced(lambda t, y: [y[1], -9.81 + 0.0 * y[0]], n=2)
    height = traced(lambda t, y: y[0], n=2, outputs=1)
    options = {"method": method, "events": Event(height, terminal=True)}
    fast = solve(fall, (0, 5), [3.0, 1.0], **options)
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")
    slow = solve(fall, (0, 5), [3.0, 1.0], **options)
    assert slow.status == fast.status == Status.EVENT
    assert slow.nsteps == fast.nsteps
    landing = (1.0 + np.sqrt(1.0 + 2 * 9.81 * 3.0)) / 9.81
    assert slow.t_events[0] == pytest.approx([landing], rel=1e-9)


# -------------------------------------------------------------------- one by one on all cores


@pytest.mark.parametrize(
    ("method", "t_eval"),
    [
        ("Kvaerno5", None),
        ("Kvaerno5", [0.0, 0.3, 2.0]),
        ("SDIRK4", None),
        ("RadauVariable", None),
        ("BDF", [0.0, 0.3, 2.0]),
        ("Adams", None),
        ("RK4", [0.0, 0.3, 2.0]),
        (Taylor(), [0.3]),
        (Taylor("auto"), None),
    ],
)
def test_threads_change_nothing(method, t_eval):
    f = traced(lambda t, y, p: [y[1], p[0] * (1 - y[0] ** 2) * y[1] - y[0]], n=2, params=1)
    stiffness = np.linspace(0.0, 20.0, 23)
    runs = [
        solve_many(
            f,
            (0, 2),
            [2.0, 0.0],
            params=stiffness[:, None],
            method=method,
            t_eval=t_eval,
            workers=w,
        )
        for w in (1, 4)
    ]
    engines = [run.engine.partition(":")[0] for run in runs]
    assert engines == ["one by one, 1 threads", "one by one, 4 threads"]
    for name in ("y", "t", "status", "nsteps", "nrejected", "y_eval"):
        assert np.array_equal(getattr(runs[0], name), getattr(runs[1], name)), name
    for k in (0, 11, 22):
        one = solve(f, (0, 2), [2.0, 0.0], params=[stiffness[k]], method=method, t_eval=[2.0])
        assert runs[1].nsteps[k] == one.nsteps
        assert np.array_equal(runs[1].y[k], one.y[:, -1])


def test_functions_of_python_stay_in_the_calling_thread():
    seen = set()

    def f(t, y, p):
        seen.add(threading.current_thread())
        return -p[0] * y

    many = solve_many(f, (0, 1), [1.0], params=np.ones((6, 1)), method="SDIRK4", workers=3)
    assert many.engine.startswith("one by one: ")
    assert seen == {threading.current_thread()}


def test_methods_that_trace_do_so_once():
    calls = []

    def f(t, y, p):
        calls.append(t)
        return -p[0] * y

    counts = []
    for m in (2, 12):
        calls.clear()
        many = solve_many(f, (0, 1), [1.0], params=np.ones((m, 1)), method=Taylor(8))
        assert many.y[:, 0] == pytest.approx(np.exp(-1.0), rel=1e-5)
        counts.append(len(calls))
    assert counts[0] == counts[1]


# -------------------------------------------------------------------- odd numbers


@pytest.mark.parametrize("order", [2.7, 5.0, True, np.True_, [3], np.array([1, 2]), 2j])
def test_orders_that_are_no_integers(order):
    with pytest.raises(TypeError, match="order must be an integer"):
        Taylor(order)


@pytest.mark.parametrize("order", [0, -1, 251, np.int64(1000)])
def test_orders_out_of_range(order):
    with pytest.raises(ValueError, match="between 1 and 250"):
        Taylor(order)


def test_orders_of_other_integer_types():
    assert Taylor(np.int32(7)).order == 7
    assert repr(Taylor(np.uint8(7))) == "Taylor(7)"


@pytest.mark.parametrize("workers", [0, -1, 1.5, 2.0, True, "2", [2]])
@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_workers_that_make_no_sense(method, workers):
    with pytest.raises(ValueError, match="workers must be a number of threads"):
        solve_many(lambda t, y: -y, (0, 1), [[1.0]], method=method, workers=workers)


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_no_steps_allowed(method):
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        solve_many(lambda t, y: -y, (0, 1), [[1.0]], method=method, max_steps=0)


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_an_interval_without_length(method):
    many = solve_many(lambda t, y: -y, (1, 1), [[1.0], [2.0]], method=method, t_eval=[1.0])
    assert many.success.all()
    assert many.y_eval[:, 0, 0].tolist() == [1.0, 2.0]


def test_options_of_solve_are_taken_or_refused_in_words():
    decay = traced(lambda t, y, p: -p[0] * y, n=3, params=1)
    runs = {"t_span": (0, 1), "y0": [1.0, 2.0, 3.0], "params": [[1.0], [2.0]]}
    for name in ("precision", "dense_output", "callback", "progress", "throw", "check", "args"):
        with pytest.raises(TypeError, match=f"no {name}, which is for one run: .+"):
            solve_many(decay, **runs, **{name: 30})
    with pytest.raises(TypeError, match="unexpected keyword argument 'stepsize'; help"):
        solve_many(decay, **runs, stepsize=1)
    given = {
        "mass": 2 * np.eye(3),
        "nonnegative": [0],
        "bandwidth": (0, 0),
        "jac_sparsity": np.eye(3),
    }
    for name, value in given.items():
        many = solve_many(decay, **runs, method="RADAU5", **{name: value})
        alone = solve(
            decay, (0, 1), [1.0, 2.0, 3.0], params=[2.0], method="RADAU5", **{name: value}
        )
        assert many.y[1] == pytest.approx(alone.y[:, -1], rel=1e-14), many.engine
