"""Two tiers of kernels: a run takes the same steps in either, and where it goes over."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from integrators import Event, Status, Taylor, problems, solve, solve_many, traced
from integrators.kernels import OnArrays, OnWorkspace, kernel
from integrators.kernels.tiers.tiers import Tier, background
from integrators.stepping import tiers as loop_tiers
from integrators.stepping.workspace import Steps
from multibody import as_ivp, assemble, mechanisms

METHODS = [
    *("DOPRI5", "DOP853", "Verner76", "RK4", "Tsit5", "BS3"),
    *("RADAU5", "LobattoIIIC4", "Gauss2", "SDIRK4", "Kvaerno3", "TRBDF2"),
    Taylor(8),
]
VARIABLE = ["RadauVariable", "BDF", "Adams", "auto", Taylor("auto")]  # no fixed steps
METHODS += VARIABLE
NAMES = ["van_der_pol", "lorenz", "order_rational", "logistic", "two_body"]


def bits(solution):
    """Everything that a run found out, as bytes."""
    parts = [solution.t, solution.y, *solution.t_events]
    if solution.sol is not None:
        inside = np.linspace(solution.t[0], solution.t[-1], 23)
        parts.append(solution.sol(inside))
    counts = [solution.nfev, solution.njev, solution.nlu, solution.nsteps, solution.nrejected]
    return [np.ascontiguousarray(p).tobytes() for p in parts], counts, solution.status


@pytest.fixture
def goes_over(monkeypatch):
    """Have kernels interpreted until so many looks for machine code were taken."""

    def after(looks):
        left, really = [looks], Tier.look

        def look(self):
            left[0] -= 1
            return really(self) if left[0] < 0 else None

        monkeypatch.setattr(Tier, "look", look)
        monkeypatch.setattr(loop_tiers, "MOST_STEPS", 2)
        return left

    return after


def drawn(seed):
    """A problem, a method and options, by chance."""
    rng = np.random.default_rng(seed)
    method = METHODS[seed % len(METHODS)]
    problem = problems.get(str(rng.choice(NAMES)))
    t0, t1 = problem.t_span
    t1 = t0 + min(t1 - t0, 2.0)
    problem = problem.with_(t_span=(t0, t1))
    if rng.random() < 0.3:
        problem = problem.with_(f=traced(problem.f, n=problem.n, params=len(problem.params)))
    options = {"method": method, "rtol": 10.0 ** -rng.integers(4, 8), "max_steps": 4000}
    options["dense_output"] = bool(rng.random() < 0.5)
    if rng.random() < 0.2 and method not in VARIABLE:
        options["step"] = (t1 - t0) / 20
        del options["rtol"]
    if rng.random() < 0.3:
        options["t_eval"] = np.linspace(t0, t1, 7)
    if rng.random() < 0.3:
        options["events"] = Event(lambda t, y: y[0] - 0.5)
    return problem, options, int(rng.integers(1, 12))


@pytest.mark.parametrize("seed", range(2 * len(METHODS)))
def test_a_run_that_goes_over_equals_both(seed, goes_over, monkeypatch):
    """Bit for bit, whatever the method, and wherever it happens."""
    problem, options, looks = drawn(seed)
    compiled = solve(problem, **options)
    with monkeypatch.context() as patch:
        patch.setenv("FEATHERSTEP_INTERPRET", "1")
        interpreted = solve(problem, **options)
    left = goes_over(looks)
    problem, options, _ = drawn(seed)  # a new one: engines of the other are compiled
    both = solve(problem, **options)
    assert left[0] < looks
    assert bits(interpreted) == bits(compiled)
    assert bits(both) == bits(compiled)


# Runs that end badly, or nearly: f, span, start, options.
CORNERS = {
    "rest": (lambda t, y: 0 * y, (0, 1), [1.0, 2.0], {}),
    "from zero": (lambda t, y: y, (0, 1), [0.0], {}),
    "blows up": (lambda t, y: y * y, (0, 3), [1.0], {}),
    "overflow": (lambda t, y: 1e300 * y, (0, 1), [1.0], {}),
    "NaN from 0.5 on": (lambda t, y: np.where(t > 0.5, np.nan, -y), (0, 1), [1.0], {}),
    "raises from 0.5 on": (lambda t, y: -y if t < 0.5 else 1 / 0, (0, 1), [1.0], {}),
    "leaves its domain": (lambda t, y: -np.sqrt(y), (0, 5), [1.0], {}),
    "short": (lambda t, y: -y, (0, 1e-300), [1e-300], {}),
    "late": (lambda t, y: -y, (1e16, 1e16 + 100), [1.0], {}),
    "backwards": (lambda t, y: -y, (1, 0), [1.0], {}),
    "relative only": (lambda t, y: -y, (0, 1), [1.0], {"atol": 0.0}),
    "steps too long": (lambda t, y: -50 * y, (0, 1), [1.0], {"min_step": 0.1}),
    "too few": (lambda t, y: -y, (0, 100), [1.0], {"max_steps": 7}),
    "complex": (lambda t, y: 1j * y, (0, 3), [1 + 0j], {"norm": "max"}),
    "stiff": (lambda t, y: -1e8 * (y - np.cos(t)), (0, 1e-3), [2.0], {"max_steps": 300}),
    "jumps": (lambda t, y: np.sign(np.sin(3 * t)) + 0 * y, (0, 3), [0.0], {"tstops": [1.5]}),
}


@pytest.mark.parametrize("name", CORNERS)
def test_both_tiers_fail_alike(name, monkeypatch):
    """The same steps, status and words, also where Python would raise and C would not."""
    f, span, y0, options = CORNERS[name]
    rng = np.random.default_rng(len(name))
    for method in rng.choice(["DOPRI5", "DOP853", "RK4", "RADAU5", "SDIRK4", "Gauss2"], 3, False):
        found = []
        for interpret in ("0", "1"):
            monkeypatch.setenv("FEATHERSTEP_INTERPRET", interpret)
            with np.errstate(all="ignore"):
                run = solve(f, span, y0, method=str(method), **{"max_steps": 1000, **options})
            found.append((bits(run), run.message))
        assert found[0] == found[1], method


@pytest.mark.parametrize("seed", range(6))
def test_kernels_of_mechanisms_agree(seed):
    """Every kernel leaves the same numbers in every array of the workspace."""
    from integrators.kernels.as_python import interpret

    rng = np.random.default_rng(seed)
    some = ["puma560", "four_bar", "spinning_top", "slider_crank", "scissor", "satellite"]
    model = getattr(mechanisms, some[seed])()
    q, v = model.random(rng), rng.normal(size=model.nv)
    for kernels in OnWorkspace.instances:
        inside_loops = "loops" in kernels.function.__module__
        if kernels.family.__name__ != "TreeWorkspace" or (inside_loops and not model.loops):
            continue
        found = []
        for run in (kernels, lambda w, k=kernels: interpret(k.function, w)):
            w = model.tree.make_workspace()
            w.q[:], w.v[:], w.tau[:], w.a_q[:] = q, v, 0.3, 0.1
            run(w)
            arrays = [getattr(w, n) for n, kind in w.FIELDS.items() if kind != "a"]
            found.append(b"".join(np.asarray(a).tobytes() for a in arrays))
        assert found[0] == found[1], kernels.function.__name__


def test_it_really_goes_over_in_the_middle(goes_over, monkeypatch):
    goes_over(4)
    moments = []
    enter = loop_tiers.LoopKernels._goes_over

    def watched(self):
        found = enter(self)
        if found:
            moments.append(float(self._w.t))
        return found

    monkeypatch.setattr(loop_tiers.LoopKernels, "_goes_over", watched)
    solve(lambda t, y: -y * np.sin(t), (0, 20), [1.0])
    assert len(moments) == 1
    assert 0.0 < moments[0] < 20.0


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("how", ["traced", "generic"])
def test_mechanisms_go_over(how, loop, goes_over, monkeypatch):
    if loop:
        model = mechanisms.four_bar()
        q = assemble(model, [0.5, 0.3, 0.2]).q
    else:
        model, q = mechanisms.double_pendulum(), [1.0, 0.5]

    def run():
        problem = as_ivp(model, q, np.zeros(model.nv), (0, 0.5), traced=how == "traced")
        return solve(problem, rtol=1e-6)

    compiled = run()
    for kernels in list(OnWorkspace.instances):
        monkeypatch.setattr(kernels, "_code", None)
    goes_over(25)
    assert bits(run()) == bits(compiled)


def test_lanes_go_over(goes_over, monkeypatch):
    from integrators.many.lanes import runs as in_lanes

    f = traced(lambda t, y, p: np.array([y[1], -p[0] * np.sin(y[0])]), n=2, params=1)
    starts = np.random.default_rng(3).normal(size=(64, 2))

    def run():
        params = np.linspace(1, 2, 64)[:, None]
        return solve_many(f, (0, 3), starts, params=params, t_eval=[1.0, 3.0])

    compiled = run()
    assert "lanes" in compiled.engine
    monkeypatch.setattr(in_lanes._run_block, "_code", None)
    goes_over(3)
    both = run()
    assert in_lanes._run_block._code is not None
    for name in ("y", "y_eval", "nsteps", "nrejected", "status"):
        assert getattr(both, name).tobytes() == getattr(compiled, name).tobytes()


def test_threads_that_load_the_same_code_get_the_same_code(monkeypatch):
    """Code that two engines own would be gone with one of them."""
    from concurrent.futures import ThreadPoolExecutor

    from integrators.kernels import c_functions

    made, really = [], c_functions.kernel_engine
    barrier = threading.Barrier(6)

    def slowly(code):
        made.append(code)
        time.sleep(0.02)
        return really(code)

    solve(lambda t, y: -y, (0, 1), [1.0])  # so that it is in the cache
    monkeypatch.setattr(c_functions, "kernel_engine", slowly)
    function = c_functions.CFunction(loop_tiers.loop.advance, Steps, c_functions.STATUS)

    def find(_):
        barrier.wait()
        return function.find()

    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(find, range(6)))
    assert len(found) == 1
    assert 0 not in found
    if c_functions.object_code.KNOWN:
        assert len(made) == 1


# ---------------------------------------------------------------- manners of machine code


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")


def test_warnings_are_those_of_f_alone(interpreted):
    """Kernels overflow in silence, as machine code does; f warns as its author expects."""
    with np.errstate(all="raise"):
        solve(lambda t, y: np.array([1e200]), (0, 1e200), [1e250], atol=1e-300, max_steps=5)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        solve(lambda t, y: 1.0 / (1.0 - np.floor(t + 0.999)) - 1.0, (0, 1), [1.0], max_steps=5)


@pytest.mark.skipif(os.name == "nt", reason="sends a signal of POSIX")
@pytest.mark.parametrize("method", ["RK4", "DOP853", "RADAU5"])
def test_ctrl_c_keeps_whole_steps(interpreted, method):
    """Wherever it hits, what is kept is a part of the whole run."""
    calls, timers = [], []

    def f(t, y):
        calls.append(t)
        if timers and len(calls) == 30:  # the run is under way
            timers[-1].start()
        return np.array([y[1], -y[0]])

    options = {"method": method, "rtol": 1e-8}
    whole = solve(f, (0, 30), [1.0, 0.0], **options)
    for delay in np.random.default_rng(5).uniform(0.0, 0.1, 6):
        timers.append(threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT)))
        calls.clear()
        part = solve(f, (0, 3000), [1.0, 0.0], on_interrupt="return", **options)
        timers[-1].join()
        assert part.status == Status.INTERRUPTED
        many = part.t.size - 1  # the last step of the shorter run is cut at its end
        many = min(many, whole.t.size - 1)
        assert part.t[:many].tobytes() == whole.t[:many].tobytes()
        assert part.y[:, :many].tobytes() == whole.y[:, :many].tobytes()


def test_interpreted_arrays(monkeypatch):
    """Small kernels are compiled when they have cost a while."""
    monkeypatch.setenv("FEATHERSTEP_COMPILE", "beside")

    @kernel
    def slow(x):
        return x[0] / x[1]

    run = OnArrays(slow)
    assert run(np.array([1.0, 0.0])) == np.inf  # silently, as machine code
    assert run._seconds > 0.0
    monkeypatch.setattr(background, "ENOUGH_SECONDS", 0.0)
    assert run(np.array([1.0, 4.0])) == 0.25
