"""A lock between processes that is free again when its holder is gone, however it ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["locked"]


def _lock(descriptor: int) -> bool:
    """Lock an open file if nobody else has; True also where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt  # type: ignore[import-not-found,unused-ignore]

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a file's lock; yields False, at once, if another process has it.

    Examples
    --------
    >>> with locked(Path("no such folder") / "lock") as ours:
    ...     ours
    False
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # nothing can be written there
        yield False
        return
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)  # which frees the lock
