"""Runs leave nothing behind: a few of each family, in a process of its own."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from integrators import Split, problems, solve
from integrators.analysis.error.measure import ErrorMeasure
from integrators.analysis.study.convergence_runs import StudyRuns

from .memory_families import FAMILIES, allocated

COUNT = 25

# Bytes and objects for each run: some remain of what is kept on purpose, a leak of a solution or of
# a workspace would be thousands.
BYTES, OBJECTS = 400.0, 20.0
#: LLVM keeps some of each function that it optimises, and the middle of a step is optimised.
NEW_FUNCTION = 12_000.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how large a process is"),
    pytest.mark.skipif(allocated() < 0, reason="glibc tells what is allocated"),
]


@pytest.fixture(scope="module")
def measured():
    command = [sys.executable, "-m", "tests.faults.memory_families", str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = (line.split(maxsplit=3) for line in done.stdout.splitlines())
    return {name: (float(size), float(objects)) for size, objects, _, name in rows}


@pytest.mark.parametrize("name", FAMILIES)
def test_runs_leave_nothing_behind(name, measured):
    size, objects = measured[name]
    assert size < (NEW_FUNCTION if name.startswith("new") else BYTES)
    assert objects < OBJECTS


def test_a_study_keeps_the_ends_of_its_runs_and_no_trajectories():
    """Views of the last column kept all columns: 15 GB after 2,800 studies in one process."""
    problem = problems.get("van_der_pol")
    study = StudyRuns(problem, ErrorMeasure.of("end", problem, "end"), None, 2e-16, None, 1)
    study.find_reference()
    study.curve("RK4", "RK4", [0.04, 0.02, 0.01], 4, False)
    assert len(study.ends) == 3
    for end in (*study.ends.values(), study.reference.y):
        assert end.shape == (2,)
        assert end.base is None


def decay(t, y):
    return -np.arange(1.0, 61.0) * y


CHOICES = {
    "explicit": dict(),
    **{name: dict(method=name) for name in ("RADAU5", "SDIRK4", "BDF", "RadauVariable", "Rodas5P")},
    **{name: dict(method=name, step=0.01) for name in ("Gauss2", "AB3", "BDF2", "AM3")},
    "IMEX": dict(method="ARK436IMEX"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_workspaces_do_not_wait_for_the_garbage_collector(name):
    """It counts objects and not bytes: megabytes of matrices waited after each run."""
    f = Split(lambda t, y: -y, decay) if name == "IMEX" else decay
    found = []
    for _ in range(3):  # what the first one keeps on purpose is there then
        gc.collect()
        gc.disable()
        try:
            assert solve(f, (0, 0.1), np.ones(60), **CHOICES[name]).success
            found.append(gc.collect())
        finally:
            gc.enable()
    assert min(found) < 20
