"""A submission in a process of its own: it runs the student's cells and answers questions.

The process that grades asks for variables, and calls functions through a pipe: a student's
``step(f, t, y, h)`` runs over there, while the f that it calls runs over here. So nothing that a
submission does (new meanings for names of the library, printing, leaving early) touches what is
right or counted. Messages are JSON: nothing that comes from a submission is executed here. What
runs over there is in :mod:`serving`.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .nursery import Nursery
from .serving import PRINTED, serve

__all__ = ["Submission", "SubmissionError", "code_cells"]

LARGEST = 1 << 26  # bytes of an answer


class SubmissionError(Exception):
    """A submission, or a function in it, failed; the text is for the student."""


def code_cells(path: Path) -> list[str]:
    """Return the code of a notebook cell by cell, or of a Python file as one cell.

    Lines that begin with % or ! are for Jupyter and are left out.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".ipynb":
        return [text]
    try:
        cells = json.loads(text)["cells"]
        found = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise SubmissionError(f"{path.name} is not a notebook: {error!r}") from None
    return ["\n".join(_plain(line) for line in cell.splitlines()) for cell in found]


def _plain(line: str) -> str:
    return "" if line.lstrip().startswith(("%", "!")) else line


class Submission:
    """A running submission; use it in a ``with``.

    Parameters
    ----------
    path
        A notebook or a Python file.
    seconds
        Time limit for everything together.
    nursery
        The process to fork it from; without one it begins with one of its own.
    closed
        Folders in which it may not read.
    alone
        Run it without libraries that solve tasks, and leave out what needs them.
    """

    def __init__(
        self,
        path: Path,
        seconds: float = 30.0,
        nursery: Nursery | None = None,
        closed: Sequence[Path] = (),
        alone: bool = False,
    ) -> None:
        self.path, self.seconds, self._nursery = path, seconds, nursery
        self._own = nursery is None and Nursery.available()
        self._first = {"cells": code_cells(path), "alone": alone, "closed": [*map(str, closed)]}
        self.errors: list[str] = []
        self.printed = ""

    def __enter__(self) -> Submission:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._pipe, theirs = multiprocessing.Pipe()
        if self._own:
            self._nursery = Nursery()
        if self._nursery is not None:
            self._number = self._nursery.begin(theirs)
        else:
            context = multiprocessing.get_context("spawn")
            self._process = context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
        theirs.close()
        self._end = time.monotonic() + self.seconds
        self._watch = threading.Timer(self.seconds, self._hang_up)
        self._watch.start()
        try:
            self._send({**self._first, "folder": self._folder.name})
            first = self._receive()
        except SubmissionError:
            self.__exit__()
            raise
        except OSError:
            self.__exit__()
            raise SubmissionError("its process could not be started") from None
        errors = first.get("errors")
        self.errors = list(map(str, errors)) if isinstance(errors, list) else []
        self.printed = str(first.get("printed", ""))[:PRINTED]
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.cancel()
        self._watch.join()
        self._pipe.close()  # which ends it, if it listens
        if self._nursery is not None:
            self._nursery.end(self._number)
            if self._own:
                self._nursery.close()
        else:
            self._process.join(0.2)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._folder.cleanup()

    def _hang_up(self) -> None:
        """Let nobody wait for the rest of a message: half of one may be all that comes."""
        if hasattr(socket, "AF_UNIX"):
            with contextlib.suppress(OSError), socket.socket(fileno=_copied(self._pipe)) as line:
                line.shutdown(socket.SHUT_RDWR)

    def value(self, name: str) -> Any:
        """Return a variable as plain data: None if it is missing or None.

        Numbers and lists of them come as they are, tableaux and multistep methods as dictionaries
        of strings, a function as :class:`Function`, anything else as {"unknown": its type}.
        """
        found = self._ask({"ask": "value", "name": name})
        if isinstance(found, dict) and found.get("kind") == "function":
            return Function(self, name, found.get("arguments"))
        return found

    def call(self, name: str, arguments: Sequence[Any], f: Callable[..., Any] | None = None) -> Any:
        """Call a function of the submission; ``f`` stands for the string "f" among arguments."""
        return self._ask({"ask": "call", "name": name, "arguments": list(arguments)}, f)

    def _ask(self, question: dict[str, Any], f: Callable[..., Any] | None = None) -> Any:
        self._send(question)
        ended: Exception | None = None  # what f raised: it ends the call over there first
        while True:
            answer = self._receive()
            if "slope" in answer:
                try:
                    if f is None:
                        raise SubmissionError("it called f where there is none")
                    t, y = answer["slope"]
                    value = np.asarray(f(float(t), np.asarray(y, dtype=float)), dtype=float)
                    self._send({"slope": value.tolist()})
                except Exception as error:
                    ended = error
                    self._send({"ended": True})
            elif ended is not None:
                raise ended
            elif "error" in answer:
                raise SubmissionError(str(answer["error"]))
            else:
                return answer.get("value")

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._pipe.send_bytes(json.dumps(message).encode())
        except OSError:
            raise SubmissionError(self._why_it_ended()) from None

    def _why_it_ended(self) -> str:
        if time.monotonic() >= self._end:
            return f"it took longer than {self.seconds:g} s and was ended"
        return "its process ended by itself (exit, too much memory)"

    def _receive(self) -> dict[str, Any]:
        try:
            if not self._pipe.poll(max(0.0, self._end - time.monotonic())):
                raise EOFError
            message = json.loads(self._pipe.recv_bytes(LARGEST))
        except (EOFError, OSError):
            raise SubmissionError(self._why_it_ended()) from None
        except ValueError:
            raise SubmissionError("it wrote into the pipe that is for answers") from None
        if not isinstance(message, dict):
            raise SubmissionError("it wrote into the pipe that is for answers")
        return message


def _copied(pipe: Any) -> int:
    """Return a descriptor of its own for a pipe."""
    return os.dup(pipe.fileno())


class Function:
    """A function of a submission, to be called from here as if it were ours."""

    def __init__(self, submission: Submission, name: str, arguments: int | None) -> None:
        self._submission, self.__name__, self.arguments = submission, name, arguments

    def __call__(self, *arguments: Any) -> Any:
        """Call it; a function among the arguments is called back."""
        f = next((x for x in arguments if callable(x)), None)
        plain = ["f" if callable(x) else np.asarray(x).tolist() for x in arguments]
        found = self._submission.call(self.__name__, plain, f)
        return np.asarray(found, dtype=float) if isinstance(found, list) else found
