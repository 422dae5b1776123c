"""What a submission may not do while it runs, enforced by an audit hook that Python cannot remove.

It starts no processes, sends no signals, opens no connections, searches no memory for what belongs
to the process that serves it, does not read in the folders of the lab and of other submissions, and
writes into its own folder only. Where work of one's own is asked for, libraries that solve the
task cannot be imported either. This stops what is written in Python; it is no prison.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["LIBRARIES", "guard", "hide_libraries"]

LIBRARIES = ("integrators", "scipy", "featherstep", "multibody")
REFUSED = {
    **dict.fromkeys(
        ("os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system",
         "os.startfile", "pty.spawn"), "start processes",
    ),
    **dict.fromkeys(("os.kill", "os.killpg", "signal.pthread_kill"), "send signals"),
    **dict.fromkeys(("socket.connect", "socket.bind", "socket.sendto"), "open connections"),
    **dict.fromkeys(
        ("gc.get_objects", "gc.get_referrers", "gc.get_referents"), "search the memory"
    ),
    **dict.fromkeys(("os.symlink", "os.link"), "make links"),
}  # fmt: skip
READS = ("open", "os.listdir", "os.scandir", "os.chdir")
CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
BUILDER = "integrators.kernels.tiers.builder"  # the library's own process, which compiles


def guard(closed: Sequence[str], writable: Sequence[str], alone: bool) -> None:
    """Refuse from now on, in this process.

    Parameters
    ----------
    closed
        Folders in which nothing is read but code of installed packages.
    writable
        Folders in which files may be written.
    alone
        Whether :data:`LIBRARIES` are refused.
    """
    real: Callable[[Any], str] = os.path.realpath
    shut, free = tuple(map(real, closed)), tuple(map(real, writable))
    code = tuple(map(real, (sys.prefix, sys.base_prefix, PACKAGES)))  # perhaps inside a closed one

    def depth(path: Any, folders: tuple[str, ...]) -> int:
        """Length of the innermost of some folders that holds a path; 0 if none does."""
        place = real(os.fsdecode(path))
        within = (f for f in folders if place == f or place.startswith(f.rstrip(os.sep) + os.sep))
        return max(map(len, within), default=0)

    def may_read(path: Any) -> None:
        if depth(path, shut) > max(depth(path, code), depth(path, free)):
            raise PermissionError(f"a submission may not read {os.fsdecode(path)}")

    def may_write(path: Any) -> None:
        if not depth(path, free) and os.fsdecode(path) != os.devnull:
            raise PermissionError(f"a submission may not write {os.fsdecode(path)}")

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event in REFUSED:
            raise PermissionError(f"a submission may not {REFUSED[event]} ({event})")
        if event == "subprocess.Popen" and list(given[1])[-2:] != ["-m", BUILDER]:
            raise PermissionError("a submission may not start processes (subprocess)")
        if event == "import" and alone and str(given[0]).partition(".")[0] in LIBRARIES:
            raise ImportError(f"{given[0]} is not there where work of one's own is asked for")
        if event in READS and given[0] is not None and not isinstance(given[0], int):
            may_read(given[0])
            if event == "open" and _writes(given[1], given[2]):
                may_write(given[0])
        elif event in CHANGES:
            for path in given[:2]:
                if isinstance(path, str | bytes | os.PathLike):
                    may_write(path)

    sys.addaudithook(hook)


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(flags, int) and flags & WRITING:
        return True
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def hide_libraries() -> None:
    """Forget the modules of libraries that are loaded already."""
    for name in list(sys.modules):
        if name.partition(".")[0] in LIBRARIES:
            del sys.modules[name]
