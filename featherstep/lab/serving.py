"""The process of a submission: it runs the student's cells and answers questions about them.

Where work of one's own is asked for the cells run without the libraries that solve the task, one
statement after the other: those that need a library fail and are left out, functions that do not
are there. See :mod:`submission` for the other end of the pipe and :mod:`guard` for what is refused.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .guard import LIBRARIES, guard, hide_libraries

__all__ = ["plain_data", "serve"]

MEMORY = 4 << 30  # bytes that a submission may take
FILE = 1 << 28  # bytes of a file that it may write
PRINTED = 4000  # characters of what it prints that are kept

Namespace = dict[str, Any]


class Shortened(io.StringIO):
    """What is printed, as far as anybody will read it."""

    def write(self, text: str) -> int:
        """Keep the beginning."""
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


class Borrowed:
    """Stands for a part of a library where work of one's own is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"it uses {self._name} of a library; write it yourself")

    __call__ = __getattr__ = __getitem__ = __iter__ = __array__ = _refuse


def serve(pipe: Connection) -> None:
    """Run the cells that the first message brings, then answer questions until the pipe closes."""
    os.environ["MPLBACKEND"] = "Agg"
    first = json.loads(pipe.recv_bytes())
    cells, alone = first["cells"], first["alone"]
    send, receive = _ends(pipe)
    printed = Shortened()
    namespace: Namespace = {"__name__": "__main__"}
    sys.stdin = io.StringIO()  # input() ends at once instead of waiting
    answer, run = _answer, _run_alone if alone else _run
    os.chdir(first["folder"])
    _limit()
    if alone:
        hide_libraries()
    guard(first["closed"], [first["folder"], *_caches()], alone)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        errors = [e for k, cell in enumerate(cells, 1) for e in run(cell, k, namespace)]
        send({"errors": errors, "printed": printed.getvalue()})
        while True:
            try:
                question = receive()
            except EOFError:
                return
            try:
                send({"value": answer(question, namespace, send, receive)})
            except BaseException as error:
                send({"error": f"{type(error).__name__}: {error}{_line(error)}"})


def _caches() -> list[str]:
    """Folders in which libraries keep what they have compiled or found."""
    home = os.path.expanduser("~")
    found = [os.environ.get(name, "") for name in ("FEATHERSTEP_CACHE", "XDG_CACHE_HOME",
             "MPLCONFIGDIR", "LOCALAPPDATA")]  # fmt: skip
    found += [os.path.join(home, part) for part in (".cache", ".config/matplotlib", "Library")]
    return [path for path in found if path]


def _ends(pipe: Connection) -> tuple[Callable[[dict[str, Any]], None], Callable[[], Any]]:
    dumps, loads = json.dumps, json.loads

    def send(message: dict[str, Any]) -> None:
        pipe.send_bytes(dumps(message, default=str).encode())

    return send, lambda: loads(pipe.recv_bytes())


def _run(cell: str, k: int, namespace: Namespace) -> Iterator[str]:
    """Run a cell; yield what went wrong."""
    try:
        exec(compile(cell, f"cell {k}", "exec"), namespace)
    except BaseException as error:
        if isinstance(error, SyntaxError):
            yield f"cell {k}, line {error.lineno}: {error.msg}"
        else:
            yield f"{type(error).__name__}: {error}{_line(error) or f' (cell {k})'}"


def _run_alone(cell: str, k: int, namespace: Namespace) -> Iterator[str]:
    """Run the statements of a cell that need no library."""
    with contextlib.suppress(SyntaxError):
        for statement in ast.parse(cell).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                namespace |= _borrowed(statement)
            part = ast.Module([statement], [])
            with contextlib.suppress(BaseException):
                exec(compile(part, f"cell {k}", "exec"), namespace)
    yield from ()


def _borrowed(statement: ast.Import | ast.ImportFrom) -> Namespace:
    """Take what comes from libraries out of an import; return the names that it would bind."""
    if isinstance(statement, ast.Import):
        found = {a: (a.asname or a.name.partition(".")[0], a.name) for a in statement.names}
    else:
        module = statement.module or ""
        found = {a: (a.asname or a.name, f"{module}.{a.name}") for a in statement.names}
    taken = {a for a, (_, full) in found.items() if full.partition(".")[0] in LIBRARIES}
    statement.names = [a for a in statement.names if a not in taken]
    return {found[a][0]: Borrowed(found[a][1]) for a in taken}


def _line(error: BaseException) -> str:
    """Say in which line of the submission it went wrong."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("cell")]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _answer(question: dict[str, Any], namespace: Namespace, send: Any, receive: Any) -> Any:
    name = question["name"]
    if question["ask"] == "value":
        return plain_data(namespace.get(name))

    def f(t: Any, y: Any) -> Any:
        send({"slope": [float(t), np.asarray(y, dtype=float).tolist()]})
        answer = receive()
        if "ended" in answer:
            raise RuntimeError("f cannot be called any more")
        return np.asarray(answer["slope"], dtype=float)

    arguments = [f if a == "f" else _array(a) for a in question["arguments"]]
    result = namespace[name](*arguments)
    if result is None:
        raise TypeError(f"{name} returned None (is a return missing?)")
    return plain_data(result)


def _array(value: Any) -> Any:
    return np.asarray(value, dtype=float) if isinstance(value, list) else value


def plain_data(value: Any) -> Any:
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


def _limit() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
