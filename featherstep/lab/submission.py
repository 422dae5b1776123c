"""A submission in a process of its own: it runs the student's cells and answers questions.

The process that grades asks for variables, and calls functions through a pipe: a student's
``step(f, t, y, h)`` runs over there, while the f that it calls runs over here. So nothing that a
submission does (new meanings for names of the library, printing, leaving early) touches what is
right or counted. Messages are JSON: nothing that comes from a submission is executed here. A
process is no prison: it can read files and use the network as the account that grades can.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from .nursery import Nursery

__all__ = ["Submission", "SubmissionError", "code_cells"]

MEMORY = 4 << 30  # bytes that a submission may take
PRINTED = 4000  # characters of what it prints that are kept


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
    """

    def __init__(self, path: Path, seconds: float = 30.0, nursery: Nursery | None = None) -> None:
        self.path, self.seconds, self._nursery = path, seconds, nursery
        self._own = nursery is None and Nursery.available()
        self.source = "\n".join(code_cells(path))
        self.errors: list[str] = []
        self.printed = ""

    def __enter__(self) -> Submission:
        self._pipe, theirs = multiprocessing.Pipe()
        if self._own:
            self._nursery = Nursery()
        if self._nursery is not None:
            self._number = self._nursery.begin(theirs)
        else:
            context = multiprocessing.get_context("spawn")
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
        theirs.close()
        self._end = time.monotonic() + self.seconds
        try:
            self._send({"cells": code_cells(self.path)})
            first = self._receive()
        except SubmissionError:
            self.__exit__()
            raise
        except OSError:
            self.__exit__()
            raise SubmissionError("its process could not be started") from None
        self.errors, self.printed = first["errors"], first["printed"]
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()  # which ends it, if it listens
        if self._nursery is not None:
            self._nursery.end(self._number)
            if self._own:
                self._nursery.close()
            return
        self._process.join(0.2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def value(self, name: str) -> Any:
        """Return a variable as plain data: None if it is missing or None.

        Numbers and lists of them come as they are, tableaux and multistep methods as dictionaries
        of strings, a function as :class:`Function`, anything else as {"unknown": its type}.
        """
        found = self._ask({"ask": "value", "name": name})
        if isinstance(found, dict) and found.get("kind") == "function":
            return Function(self, name, found["arguments"])
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
        self._pipe.send_bytes(json.dumps(message).encode())

    def _receive(self) -> dict[str, Any]:
        try:
            if not self._pipe.poll(max(0.0, self._end - time.monotonic())):
                raise SubmissionError(f"it took longer than {self.seconds:g} s and was ended")
            message = json.loads(self._pipe.recv_bytes(64 << 20))
        except (EOFError, OSError):
            raise SubmissionError("its process ended by itself (exit, too much memory)") from None
        except ValueError:
            raise SubmissionError("it wrote into the pipe that is for answers") from None
        if not isinstance(message, dict):
            raise SubmissionError("it wrote into the pipe that is for answers")
        return message


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


# -------------------------------------------------------------------- over there


def _serve(pipe: Connection) -> None:
    """Run the cells that the first message brings, then answer questions until the pipe closes."""
    _limit_memory()
    os.environ["MPLBACKEND"] = "Agg"
    cells = json.loads(pipe.recv_bytes())["cells"]
    printed = io.StringIO()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    send = _sender(pipe)
    sys.stdin = io.StringIO()  # input() ends at once instead of waiting
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        errors = [e for k, cell in enumerate(cells, 1) if (e := _executed(cell, k, namespace))]
        send({"errors": errors, "printed": printed.getvalue()[:PRINTED]})
        while True:
            try:
                question = json.loads(pipe.recv_bytes())
            except EOFError:
                return
            try:
                send({"value": _answer(question, namespace, pipe, send)})
            except BaseException as error:
                send({"error": f"{type(error).__name__}: {error}{_line(error)}"})


def _sender(pipe: Connection) -> Callable[[dict[str, Any]], None]:
    dumps = json.dumps

    def send(message: dict[str, Any]) -> None:
        pipe.send_bytes(dumps(message, default=str).encode())

    return send


def _executed(cell: str, k: int, namespace: dict[str, Any]) -> str:
    try:
        exec(compile(cell, f"cell {k}", "exec"), namespace)
    except BaseException as error:
        if isinstance(error, SyntaxError):
            return f"cell {k}, line {error.lineno}: {error.msg}"
        where = _line(error) or f" (cell {k})"
        return f"{type(error).__name__}: {error}{where}"
    return ""


def _line(error: BaseException) -> str:
    """Say in which line of the submission it went wrong."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("cell")]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _answer(question: dict[str, Any], namespace: dict[str, Any], pipe: Any, send: Any) -> Any:
    name = question["name"]
    if question["ask"] == "value":
        return _plain_data(namespace.get(name))

    def f(t: Any, y: Any) -> Any:
        send({"slope": [float(t), np.asarray(y, dtype=float).tolist()]})
        answer = json.loads(pipe.recv_bytes())
        if "ended" in answer:
            raise RuntimeError("f cannot be called any more")
        return np.asarray(answer["slope"], dtype=float)

    arguments = [f if a == "f" else _array(a) for a in question["arguments"]]
    result = namespace[name](*arguments)
    if result is None:
        raise TypeError(f"{name} returned None (is a return missing?)")
    return _plain_data(result)


def _array(value: Any) -> Any:
    return np.asarray(value, dtype=float) if isinstance(value, list) else value


def _plain_data(value: Any) -> Any:
    """Return a value as JSON can have it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    if kind == "Tableau":
        rows = [[str(x) for x in row] for row in value.A]
        return {"kind": "tableau", "A": rows, "b": [str(x) for x in value.b],
                "c": [str(x) for x in value.c]}  # fmt: skip
    if kind == "Multistep":
        return {"kind": "multistep", "alpha": [str(x) for x in value.alpha],
                "beta": [str(x) for x in value.beta]}  # fmt: skip
    if isinstance(value, complex | np.complexfloating):
        return {"kind": "complex", "parts": [float(value.real), float(value.imag)]}
    if callable(value):
        code = getattr(value, "__code__", None)
        return {"kind": "function", "arguments": None if code is None else code.co_argcount}
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return {"unknown": kind}
    return found.tolist()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
