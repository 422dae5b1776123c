"""What all tests share."""

import os
import signal

import pytest

# What a test takes and finds must not depend on when a process beside has compiled something. The
# tests of that process say so themselves; those that tests start inherit it.
os.environ["FEATHERSTEP_COMPILE"] = "first"


@pytest.fixture(scope="session", autouse=True)
def control_c_works():
    """A shell that starts the tests in the background makes them ignore Ctrl-C; undo that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
