"""Runs leave nothing behind: a few of each family, in a process of its own."""

import subprocess
import sys

import pytest

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
