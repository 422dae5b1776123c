"""Threads, processes and Dask: the same table, and a worker that dies loses nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from featherstep import Final, Max, Study, Uniform
from featherstep.study.working.executors import executor_of, pickled

from .models import decay, problem, same

ROOT = Path(__file__).parents[3]


def make(n=64, **vary):
    return Study(
        decay, vary or {"rate": Uniform(1, 2)}, n=None if vary else n, seed=3, t_span=(0, 1),
        record={"end": Final("y"), "top": Max("y")}, rtol=1e-9, atol=1e-12, outputs=3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return make().run(tmp_path_factory.mktemp("whole") / "a.study", workers=1).columns()


def test_threads_give_the_same_table(expected, tmp_path):
    found = make().run(tmp_path / "a.study", workers=3, executor="threads", block=12)
    assert same(found.columns(), expected)
    lanes = Study(problem(), {"p[0]": Uniform(1, 2)}, n=500, record={"end": Final("y")})
    two = lanes.run(tmp_path / "b.study", workers=2, block=50).columns()
    assert same(lanes.run(tmp_path / "c.study", workers=1, block=7).columns(), two)


@pytest.mark.slow
def test_processes_give_the_same_table_and_survive_a_run_that_kills(expected, tmp_path):
    """Rates above 50 kill their process: those runs fail, all others are done."""
    rates = [*expected["rate"][:6], 60.0, *expected["rate"][6:12]]
    study = make(rate=rates)
    study.run(tmp_path / "a.study", workers=2, executor="processes", block=8)
    columns = study.columns()
    assert columns["status"].tolist() == ["ok"] * 6 + ["worker"] + ["ok"] * 6
    assert "died" in columns["message"][6]
    kept = np.delete(columns["end"], 6)
    assert np.array_equal(kept, expected["end"][:12])


def test_what_cannot_be_sent_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    study = Study(lambda rate: decay(rate), {"rate": [1.0]}, t_span=(0, 1))
    with pytest.raises(ValueError, match="top of a module"):
        pickled(study.plan)


def test_a_script_without_a_guard_is_told(tmp_path):
    """Processes that begin by running the script again would end in confusion: threads do it."""
    script = tmp_path / "script.py"
    script.write_text(
        "from featherstep import Final, Study\n"
        "from integrators import IVP\n"
        "def make(rate):\n"
        "    return IVP(lambda t, y: -rate * y, [1.0], (0, 1))\n"
        "study = Study(make, {'rate': [1.0, 2.0]}, t_span=(0, 1), record={'end': Final(0)})\n"
        f"study.run({str(tmp_path / 'a.study')!r}, workers=2)\n"
        "assert study.status().failed == 0\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("executor", "workers", "words"),
    [("thread", 2, "'threads', 'processes'"), (None, 0, "≥ 1"), (None, True, "≥ 1")],
)
def test_refusals(executor, workers, words):
    with pytest.raises(ValueError, match=words), executor_of(executor, workers, True):
        pass


# ---------------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_dask_that_is_killed_loses_nothing(cluster, expected, tmp_path):
    pids = list(cluster.run(os.getpid).values())
    killed = []

    def kill(progress):
        if progress.done and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    study = make().run(tmp_path / "a.study", executor=cluster, block=8, progress=kill)
    assert killed
    assert same(study.columns(), expected)


SCRIPT = """
import sys
from distributed import Client
from tests.featherstep.study.test_executors import make
if __name__ == "__main__":
    with Client(sys.argv[2]) as client:
        make().run(sys.argv[1], executor=client, block=8)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_desk_killed_with_dask(cluster, expected, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "a.study"), cluster.scheduler.address],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    parts = tmp_path / "a.study" / "parts"
    deadline = time.monotonic() + 100.0
    while process.poll() is None and time.monotonic() < deadline:
        if parts.is_dir() and any(parts.glob("0*.npz")):
            break
        time.sleep(0.01)
    process.kill()
    process.wait()
    study = make().run(tmp_path / "a.study", executor=cluster, block=8)
    assert same(study.columns(), expected)
