"""What tests, examples in docstrings and notebooks share."""

import os
import subprocess
import sys

# What a test takes and finds must not depend on when a process beside has compiled something. The
# tests of that process say so themselves; processes that tests start inherit it.
os.environ["FEATHERSTEP_COMPILE"] = "first"


def pytest_sessionstart(session):
    """Before several processes test: let all processors compile, each kernel once.

    They come to the same kernel at the same time, and would each compile it.
    """
    config = session.config
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", 0):
        return
    command = [sys.executable, "-m", "featherstep", "warmup"]
    environment = {**os.environ, "FEATHERSTEP_COMPILE": ""}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
