"""``kill -9`` at any moment: at most one block is done again, and the table is the same."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from featherstep import Final, Max, Study, Uniform

from .models import decay, problem, same

ROOT = Path(__file__).parents[3]
BLOCK = 8
N = 64

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")


def make(kind):
    options = {"n": N, "seed": 3, "rtol": 1e-9, "atol": 1e-12, "outputs": 4, "t_span": (0, 1)}
    vary = {"rate": Uniform(1, 2)}
    if kind == "lanes":
        return Study(problem(), vary, parameters=["rate"], record={"end": Final("y")}, **options)
    return Study(decay, vary, record={"end": Final("y"), "top": Max("y")}, **options)


def run_in_a_fork(study, folder):
    """Begin the study in a child of this process; return its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's of threads beside a fork: none of them is used
        child = os.fork()
    if child == 0:
        try:
            study.run(folder, workers=1, block=BLOCK)
        finally:
            os._exit(0)
    return child


@pytest.mark.parametrize("kind", ["lanes", "one by one"])
def test_killed_at_random_moments(kind, tmp_path, monkeypatch):
    study = make(kind)
    whole = study.run(tmp_path / "whole.study", workers=1, block=BLOCK).columns()
    states = np.asarray(study.trajectories()["y"])
    began = time.monotonic()
    study.run(tmp_path / "warm.study", workers=1, block=BLOCK)  # children find it compiled
    lasts = time.monotonic() - began
    marks = tmp_path / "marks"
    monkeypatch.setenv("STUDY_MARKS", str(marks))
    rng = np.random.default_rng(7)
    kills = 0
    for moment in rng.random(4):
        child = run_in_a_fork(study, tmp_path / "a.study")
        time.sleep(moment * lasts / 2.0)
        os.kill(child, signal.SIGKILL)
        kills += os.waitpid(child, 0)[1] == signal.SIGKILL
    study.run(tmp_path / "a.study", workers=1, block=BLOCK)
    assert same(study.columns(), whole)
    assert np.array_equal(study.trajectories()["y"], states)
    for name in ("table.csv", "table.parquet"):
        files = [tmp_path / f / name for f in ("whole.study", "a.study")]
        if files[0].is_file():
            assert files[0].read_bytes() == files[1].read_bytes()
    if kind == "one by one" and kills:
        rates = {repr(float(rate)) for rate in whole["rate"]}
        made = [line for line in marks.read_text().split() if line in rates]
        assert set(made) == rates
        assert len(made) - N <= BLOCK * kills
    assert not list((tmp_path / "a.study").rglob(".featherstep-*"))


SCRIPT = """
import sys
from tests.featherstep.study.test_killed import make
if __name__ == "__main__":
    make("one by one").run(sys.argv[1], workers=2, executor="processes", block=8)
"""


@pytest.mark.slow
def test_killed_with_processes(tmp_path):
    """The whole family of processes is killed in the middle; nothing is lost but what they did."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "a.study")], env=environment,
        start_new_session=True, stderr=subprocess.PIPE,
    )  # fmt: skip
    parts = tmp_path / "a.study" / "parts"
    deadline = time.monotonic() + 100.0
    while process.poll() is None and time.monotonic() < deadline:
        if parts.is_dir() and len(list(parts.glob("0*.npz"))) >= 3:
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    _, said = process.communicate()
    done = Study.open(tmp_path / "a.study").status().done
    assert done >= 3 * BLOCK // 2, said
    study = make("one by one").run(tmp_path / "a.study", workers=1)
    whole = make("one by one").run(tmp_path / "whole.study", workers=1)
    assert same(study.columns(), whole.columns())
