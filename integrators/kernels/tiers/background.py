"""The process beside that compiles kernels while they are interpreted here.

:func:`want` notes which kernels it should compile, and starts it when that pays. The process is
:mod:`.builder`; it answers through the cache alone. There is at most one for a cache, whoever
started it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .. import cache as disk
from ..c_functions import CFunction
from ..file_lock import locked

__all__ = ["BUSY", "demand", "is_possible", "lock_path", "want"]

#: Compiling pays when so many seconds were spent interpreting, …
ENOUGH_SECONDS = 0.5
#: … or with this run.
ENOUGH_RUNS = 2
#: How often the process is started again if it ends without having compiled what it should.
MOST_STARTS = 3
#: Seconds between two starts for a cache, by whomever.
PAUSE = 2.0
#: Exit code of a process that found another one at work.
BUSY = 3
#: What the process says goes here, in the folder of compiled code.
LOG = "builder.log"
LARGEST_LOG = 1_000_000  # bytes


@dataclass
class Demand:
    """What interpreting has cost in this process."""

    seconds: float = 0.0
    runs: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether compiling pays."""
        return self.seconds >= ENOUGH_SECONDS or self.runs >= ENOUGH_RUNS


demand = Demand()


def is_possible() -> bool:
    """Whether another process can compile for this one."""
    if sys.platform in ("emscripten", "wasi") or getattr(sys, "frozen", False):
        return False
    if _builder.given_up:
        return False
    program = Path(sys.executable or "").stem.lower()
    # An application that has Python inside would be started a second time.
    return program.startswith(("python", "pypy")) and disk.place() is not None


def lock_path() -> Path | None:
    """Return the file that the process beside holds locked."""
    folder = disk.place()
    return None if folder is None else folder / "builder.lock"


class _Builder:
    """What this process knows of the process beside."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: dict[CFunction, int] = {}  # and how often the process was told
        self.process: subprocess.Popen[str] | None = None
        self.told: set[CFunction] = set()  # what the process that runs was told
        self.given_up = False

    def want(self, functions: Iterable[CFunction]) -> None:
        with self.lock:
            for function in functions:
                self.waiting.setdefault(function, 0)
            if demand.is_enough and not self.given_up:
                self._tell()

    def _tell(self) -> None:
        """Hand over what is still to be compiled."""
        self.waiting = {f: told for f, told in self.waiting.items() if not f.is_kept}
        if self.process is not None and (code := self.process.poll()) is not None:
            self.process = None
            if code == BUSY:
                for function in self.told & self.waiting.keys():
                    self.waiting[function] -= 1
        if self.process is None:
            self.told.clear()
        new = [function for function in self.waiting if function not in self.told]
        if not new:
            return
        if max(self.waiting[function] for function in new) >= MOST_STARTS:
            self._give_up(new)
            return
        if self.process is None:
            self._start_unless_there()
        if self.process is None:
            return
        try:
            assert self.process.stdin is not None
            for function in new:
                self.process.stdin.write(f"{function.text}\n")
                self.told.add(function)
                self.waiting[function] += 1
            self.process.stdin.flush()
        except (OSError, ValueError):  # it has just ended
            self.process = None

    def _start_unless_there(self) -> None:
        """Start the process, unless somebody's is at work, or is about to be."""
        path = lock_path()
        if path is None:
            return
        started = path.with_name("builder.started")
        with locked(path) as ours:
            if not ours:
                return  # perhaps on the very same kernels
            with contextlib.suppress(OSError):
                if 0.0 <= time.time() - started.stat().st_mtime < PAUSE:
                    return
            with contextlib.suppress(OSError):
                started.touch()
            self._start()

    def _start(self) -> None:
        environment = {**os.environ, "FEATHERSTEP_COMPILE": "first", "FEATHERSTEP_INTERPRET": ""}
        environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
        environment.pop("PYTHONINSPECT", None)
        folder = disk.place()
        assert folder is not None
        environment["FEATHERSTEP_CACHE"] = str(folder.parent)
        detached: dict[str, Any] = {"start_new_session": True}  # Ctrl-C is for this process
        if sys.platform == "win32":
            detached = {
                "creationflags": subprocess.CREATE_NO_WINDOW
                | subprocess.CREATE_NEW_PROCESS_GROUP
                | subprocess.BELOW_NORMAL_PRIORITY_CLASS
            }
        log: IO[Any] | int = subprocess.DEVNULL
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                path = folder / LOG  # shared by all processes, so what others wrote stays
                full = path.exists() and path.stat().st_size > LARGEST_LOG
                log = stack.enter_context(open(path, "w" if full else "a"))
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "integrators.kernels.tiers.builder"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    text=True,
                    env=environment,
                    cwd=folder,
                    **detached,
                )
            except OSError as error:  # no more processes, perhaps
                self._give_up(list(self.waiting), str(error))
                return
        # Somebody must ask for its end, or it would stay in the table of processes.
        threading.Thread(target=self.process.wait, name="builder's end", daemon=True).start()

    def _give_up(self, functions: list[CFunction], reason: str = "") -> None:
        self.given_up = True
        found = reason or f"see {(disk.place() or Path()) / LOG}"
        disk.log.warning(
            "kernels could not be compiled beside the run (%s): %s; from now on they are compiled "
            "before they run",
            ", ".join(map(repr, functions)),
            found,
        )

    def leave(self) -> None:
        """Forget the process: it goes on by itself and ends when it is done."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(OSError, ValueError):
                assert process.stdin is not None
                process.stdin.close()
            process.returncode = process.returncode or 0  # no complaint that it is still running


_builder = _Builder()


def want(functions: Iterable[CFunction]) -> None:
    """Have kernels compiled beside, now or as soon as that pays."""
    _builder.want(functions)


def _after_fork() -> None:
    """Begin anew in a forked process: the process beside is not its child."""
    global _builder
    _builder.leave()
    _builder = _Builder()


atexit.register(lambda: _builder.leave())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
