"""Two tiers of kernels: a run takes the same steps in either, and where it goes over."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from integrators import Event, Status, Taylor, problems, solve, solve_many, traced
from integrators.kernels import OnArrays, OnWorkspace, background, kernel
from integrators.kernels.tiers import Tier
from integrators.stepping import tiers as loop_tiers
from integrators.stepping.workspace import Steps
from multibody import as_ivp, assemble, mechanisms

METHODS = [
    *("DOPRI5", "DOP853", "Verner76", "RK4", "Tsit5", "BS3"),
    *("RADAU5", "RadauVariable", "LobattoIIIC4", "Gauss2", "SDIRK4", "Kvaerno3", "TRBDF2"),
    Taylor(8),
    Taylor("auto"),
]
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
    if rng.random() < 0.2 and "Variable" not in str(method) and method is not METHODS[-1]:
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
    from integrators.many import in_lanes

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
@pytest.mark.parametrize("method", ["RK4", "DOP853", "RADAU5", "RK4, step doubling"])
def test_ctrl_c_keeps_whole_steps(interpreted, method):
    """Wherever it hits, what is kept is a part of the whole run."""
    method = method.split(",")[0]

    def f(t, y):
        return np.array([y[1], -y[0]])

    options = {"method": method, "rtol": 1e-8}
    whole = solve(f, (0, 30), [1.0, 0.0], **options)
    for delay in np.random.default_rng(5).uniform(0.01, 0.1, 6):
        timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        part = solve(f, (0, 3000), [1.0, 0.0], on_interrupt="return", **options)
        timer.join()
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


# ---------------------------------------------------------------- when, and by whom


def test_a_typing_error_is_told(monkeypatch):
    monkeypatch.setenv("FEATHERSTEP_COMPILE", "frist")
    with pytest.raises(ValueError, match=r"expected 'beside' .* or 'first' .*, received 'frist'"):
        solve(lambda t, y: -y, (0, 1), [1.0])


@kernel
def of_this_module(w, t, h):
    return 0


def test_kernels_of_functions_cannot_be_compiled_elsewhere():
    from integrators.kernels.c_functions import STATUS, c_function, from_text

    here = c_function(of_this_module, Steps, STATUS)
    assert from_text(here.text) is here

    @kernel
    def local(w, t, h):
        return 0

    assert c_function(local, Steps, STATUS).text is None


SHORT = """
import numpy as np
from integrators import solve
f = lambda t, y: np.array([y[1], -9.81 * np.sin(y[0])])
solve(f, (0, 3), [1.0, 0.0], method="DOP853")
"""


@pytest.fixture
def cold(tmp_path):
    """Run a script with an empty cache; returns its output and the folder of compiled code."""
    folder = tmp_path / "cache" / "compiled"

    def run(script):
        environment = {**os.environ, "FEATHERSTEP_COMPILE": "beside"}
        environment["FEATHERSTEP_CACHE"] = str(tmp_path / "cache")
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=100,
            cwd=Path(__file__).parents[3],
        )
        assert done.returncode == 0, done.stderr
        return done, folder

    return run


def test_a_short_run_starts_nothing(cold):
    done, folder = cold("import time; start = time.perf_counter()" + SHORT +
                        "import sys; assert 'numba' not in sys.modules")  # fmt: skip
    assert done.stderr == ""
    assert not (folder / "builder.lock").exists()
    assert not list(folder.glob("*.code"))


# What the process beside is told is written to its log instead of being compiled.
LISTENER = """
import sys
from integrators.kernels import builder
def note(requests):
    for line in requests:
        print(line.split("\\t")[2], file=sys.stderr, flush=True)
    return 0
builder.compile_all = note
builder.PATIENCE = 0.2
import os
os._exit(builder.main())
"""


def listening(script):
    """Put a listener in the place of the process beside."""
    return f"""
import subprocess, sys
really = subprocess.Popen
def started(arguments, **more):
    print("started", arguments[1:], flush=True)
    return really([sys.executable, "-c", {LISTENER!r}], **more)
subprocess.Popen = started
{script}
import time
from integrators.kernels import background
while background._builder.process is not None and background._builder.process.poll() is None:
    time.sleep(0.02)
"""


def test_the_second_run_has_its_kernels_compiled(cold):
    twice = SHORT + "solve(f, (0, 3), [1.0, 0.0], method='DOP853')\n"
    done, folder = cold(listening(twice))
    assert done.stdout == "started ['-P', '-m', 'integrators.kernels.builder']\n"
    assert done.stderr == ""
    told = (folder / "builder.log").read_text().split()
    assert sorted(told) == sorted(
        ["advance", "first_step", "explicit_step", "explicit_accept", "explicit_dense", "nothing"]
    )


def test_a_long_run_has_its_kernels_compiled(cold):
    long = """
from integrators.kernels import background
background.ENOUGH_SECONDS = 0.1
import numpy as np
from integrators import solve
solve(lambda t, y: np.array([y[1], -y[0]]), (0, 100), [1.0, 0.0], rtol=1e-8, method="RK4")
"""
    done, folder = cold(listening(long))
    assert done.stdout.count("started") == 1
    assert "advance" in (folder / "builder.log").read_text()


def test_nobody_starts_a_second_one(cold, tmp_path):
    """A lock that another process holds is respected; when that is killed it is free."""
    from integrators.kernels.file_lock import locked

    def is_locked(path):
        with locked(path) as ours:
            return not ours

    _, folder = cold(SHORT)
    lock = folder / "builder.lock"
    assert not is_locked(lock)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path\n"
            "from integrators.kernels.file_lock import locked\n"
            "with locked(Path(sys.argv[1])) as ours:\n"
            "    print(ours, flush=True); time.sleep(60)",
            str(lock),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "True\n"
        assert is_locked(lock)
        done, _ = cold(listening(SHORT + SHORT))
        assert done.stdout == ""
        beside = [sys.executable, "-m", "integrators.kernels.builder"]
        environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path / "cache")}
        assert subprocess.run(beside, env=environment, check=False).returncode == background.BUSY
    finally:
        holder.kill()
        holder.communicate()
    assert not is_locked(lock)


def test_one_that_fails_is_given_up(cold):
    """It is tried some times; then kernels are compiled here, since nobody else can."""
    failing = """
import subprocess, sys
really = subprocess.Popen
started = []
def start(arguments, **more):
    started.append(1)
    return really([sys.executable, "-c", "raise SystemExit(9)"], **more)
subprocess.Popen = start
"""
    after = """
start = time.monotonic()
while not run_double.is_compiled and time.monotonic() < start + 60:
    time.sleep(0.02)
run_double(w)
print(len(started), run_double._code is not None, "numba" in sys.modules)
"""
    done, _ = cold(failing + ASKED + after)
    assert done.stdout == f"{background.MOST_STARTS} True True\n"
    assert done.stderr.count("could not be compiled beside the run (double of Tiny)") == 1


def test_a_compiler_that_fails_is_lived_with(cold):
    """Where no process can be started and numba fails, the run goes on as it is."""
    script = """
import subprocess, sys
def start(*arguments, **more):
    raise OSError("no more processes")
subprocess.Popen = start
from integrators.kernels.c_functions import CFunction
def build(self):
    raise RuntimeError("a compiler's bug")
CFunction.build = build
"""
    after = """
for _ in range(5):
    time.sleep(0.11)
    run_double(w)
print(w.x[0])
"""
    done, _ = cold(script + ASKED + after)
    assert done.stdout == "64.0\n"
    assert done.stderr.count("no more processes") == 1
    assert done.stderr.count("stays interpreted, which is slow: a compiler's bug") == 1


def test_an_embedded_python_starts_nothing(monkeypatch):
    """Its program is the application, which would be started once more."""
    assert background.is_possible()
    for name in ("blender", "", "maya.bin"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", name)
            assert not background.is_possible()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not background.is_possible()


# In earnest, with a kernel that is compiled in a moment.
ASKED = """
import os, sys, time
from integrators.kernels import background
from tests.integrators.kernels.tiny import run_double, workspace
background.demand.runs = 2
background.PAUSE = 0.0
w = workspace()
run_double(w)
assert w.x[0] == 2.0
assert not run_double._code
"""
UNTIL_COMPILED = """
start = time.monotonic()
while not run_double.is_compiled and time.monotonic() < start + 60:
    time.sleep(0.02)
run_double(w)
assert run_double._code and w.x[0] == 4.0
assert "numba" not in sys.modules
"""


def test_the_process_beside_compiles_and_leaves_nothing_behind(cold):
    script = ASKED + UNTIL_COMPILED
    script += """
process = background._builder.process
process.stdin.close()
while process.returncode is None:  # the thread that waits for it has seen its end
    time.sleep(0.02)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""
    done, folder = cold(script)
    assert done.stdout == "no child\n"
    assert done.stderr == ""
    assert len(list(folder.glob("*.code"))) == 1
    assert (folder / "builder.log").read_text() == ""
    cold(ASKED.replace("not run_double._code", "run_double._code").replace("= 2\n", "= 0\n"))


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_a_process_that_was_killed_is_replaced(cold):
    killed = """
process = background._builder.process
process.kill()
process.wait()
"""
    cold(ASKED + killed + UNTIL_COMPILED)


def test_it_goes_on_when_the_script_has_ended(cold):
    done, folder = cold(ASKED)
    assert done.stderr == ""
    deadline = time.monotonic() + 60
    while not list(folder.glob("*.code")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_begins_anew(cold):
    script = (
        ASKED
        + """
import warnings
assert background._builder.process is not None
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    child = os.fork()
if child == 0:
    os._exit(0 if background._builder.process is None else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    cold(script)


def test_where_nothing_can_be_kept_kernels_are_compiled_here(monkeypatch):
    from integrators.kernels import cache

    from . import tiny

    monkeypatch.setenv("FEATHERSTEP_COMPILE", "beside")
    monkeypatch.setattr(cache, "_private_place", lambda directory: None)
    run, w = OnWorkspace(tiny.double, tiny.Tiny), tiny.workspace()
    run(w)
    assert run._code is not None
    assert w.x.tolist() == [2.0, 2.0, 2.0]


def test_a_word_to_who_waits(monkeypatch, capsys):
    from integrators.kernels import waiting

    monkeypatch.setattr(waiting, "_waited", False)
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    with waiting.told("advance"):
        time.sleep(0.1)
    with waiting.told("another"):
        time.sleep(0.1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "compiling advance" in said
    assert "once: the code is kept" in said
    monkeypatch.setattr(waiting, "_waited", False)
    with waiting.told("fast"):
        pass
    time.sleep(0.05)
    assert capsys.readouterr().err == ""
