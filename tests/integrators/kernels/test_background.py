"""The process beside: when it is started, what it is told, and that nothing depends on it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integrators import solve
from integrators.kernels import OnWorkspace, kernel
from integrators.kernels.tiers import background
from integrators.stepping.workspace import Steps


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
from integrators.kernels.tiers import builder
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
from integrators.kernels.tiers import background
while background._builder.process is not None and background._builder.process.poll() is None:
    time.sleep(0.02)
"""


def test_the_second_run_has_its_kernels_compiled(cold):
    twice = SHORT + "solve(f, (0, 3), [1.0, 0.0], method='DOP853')\n"
    done, folder = cold(listening(twice))
    assert done.stdout == "started ['-P', '-m', 'integrators.kernels.tiers.builder']\n"
    assert done.stderr == ""
    told = (folder / "builder.log").read_text().split()
    kernels = [f"explicit_{name}" for name in ("step", "accept", "dense", "refine")]
    assert sorted(told) == sorted(["advance", "first_step", *kernels])


def test_a_long_run_has_its_kernels_compiled(cold):
    long = """
from integrators.kernels.tiers import background
background.ENOUGH_SECONDS = 0.1
background.PAUSE = 1000.0  # the listener compiles nothing; a slow run would start another
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
        beside = [sys.executable, "-m", "integrators.kernels.tiers.builder"]
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
from integrators.kernels.tiers import background
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
    from integrators.kernels.tiers import waiting

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
