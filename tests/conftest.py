"""What all tests share."""

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def control_c_works():
    """A shell that starts the tests in the background makes them ignore Ctrl-C; undo that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
