"""A process that has loaded the library once; each submission is forked from it.

Loading NumPy, Matplotlib, the library and its compiled kernels takes seconds, running the answers
of a student a fraction of one. So one process does the former, by running the code of the hand-out
once, and every submission begins as its copy: a process of its own, which shares the pages that
nobody changes. What it inherits is what students were given; neither solutions nor the seed.

The process that grades (:class:`Nursery`) sends one end of a pipe for each submission and gets a
number back. Only the nursery ends submissions, with everything that they started: it is their
parent, so a process id cannot have passed on to a stranger. When its socket closes it ends all.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Nursery"]

PRELOADED = ("numpy", "integrators", "integrators.analysis", "featherstep.lab.serving")
LOADING = 120.0  # seconds for the code of the hand-out; on an empty cache it compiles
LARGEST = 1 << 24  # bytes of a message


class Nursery:
    """Processes for submissions; use it in a ``with``.

    Parameters
    ----------
    cells
        Code of the hand-out, run once before anything is forked. Its errors are ignored: each
        submission runs the same cells and reports them.
    """

    def __init__(self, cells: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._start(cells)
        if not self._ready():  # the hand-out itself does not end: begin without it
            self.close()
            self._start(())
            self._ready()

    @staticmethod
    def available() -> bool:
        """Whether processes can be forked here."""
        return hasattr(os, "fork") and hasattr(socket, "send_fds")

    def _start(self, cells: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair()
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        if cells:
            environment["FEATHERSTEP_COMPILE"] = "first"  # once here, not thirty times beside
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for the process that grades
            env=environment,
        )
        theirs.close()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(json.dumps(list(cells)).encode())

    def _ready(self) -> bool:
        return bool(select.select([self._socket], [], [], LOADING)[0]) and bool(
            self._socket.recv(LARGEST)
        )

    def begin(self, theirs: Connection) -> int:
        """Fork a process that answers at the other end of a pipe; return its number."""
        return self._told({"begin": True}, theirs.fileno())

    def end(self, number: int) -> None:
        """End a process, if it still runs."""
        with contextlib.suppress(OSError, RuntimeError):
            self._told({"end": number})

    def _told(self, message: dict[str, Any], descriptor: int | None = None) -> int:
        with self._lock:
            text = json.dumps(message).encode()
            socket.send_fds(self._socket, [text], [] if descriptor is None else [descriptor])
            answer = self._socket.recv(LARGEST)
        if not answer:
            raise RuntimeError("the process from which submissions are forked has ended")
        return int(json.loads(answer))

    def close(self) -> None:
        """End all submissions and the process itself."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:  # the hand-out's own code does not end
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -------------------------------------------------------------------- over there


def _load(cells: Sequence[str]) -> None:
    """Import the library and run the code of the hand-out, whatever it prints or raises."""
    for name in PRELOADED:
        __import__(name)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            with contextlib.suppress(Exception):
                exec(compile(cell, "hand-out", "exec"), namespace)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    namespace.clear()
    gc.collect()
    gc.freeze()  # pages that the collector does not touch stay shared


def _main(descriptor: int) -> None:
    """Fork on request until the socket closes; in a fork, serve a submission."""
    _load(json.loads(sys.stdin.buffer.read()))
    control = socket.socket(fileno=descriptor)
    control.send(b"0")
    children: set[int] = set()
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, LARGEST, 1)
        if not text:
            break
        message = json.loads(text)
        if "end" in message:
            _end(message["end"], children)
            control.send(b"0")
            continue
        number = os.fork()
        if number == 0:
            control.close()
            os.setsid()  # what it starts belongs to it and ends with it
            from .serving import serve

            try:
                serve(Connection(descriptors[0]))
            finally:
                os._exit(0)
        os.close(descriptors[0])
        children.add(number)
        control.send(str(number).encode())
    for number in list(children):
        _end(number, children)


def _end(number: int, children: set[int]) -> None:
    if number not in children:
        return
    children.remove(number)
    # Its session may outlive it: as long as it has not been waited for, its id is not given away.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
