"""Machine code on disk, so that a second process starts at once.

An entry is a file named after its key, a hash of everything that determines the code: the graph,
the lanes, the CPU, the compiler and :data:`CODE_VERSION`. It holds a header line with the key
and the SHA-256 of the object code, then the object code. Whatever does not fit (truncated,
changed, foreign) is ignored and rebuilt. Entries are written to a temporary file and renamed, so
that no reader sees half of one; where nothing can be written, everything works without.

The folder does not grow for ever: a process that adds to it first drops what nobody has used for
:data:`LONGEST_UNUSED` and then, if the rest is larger than :data:`LARGEST_TOTAL`, the entries
used longest ago. The time of the last use is the time stamp of the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from functools import cache
from pathlib import Path

from ..kernels import cache_directory

__all__ = ["CODE_VERSION", "entry_path", "load", "prune", "store"]

#: Raise this when the code generator changes.
CODE_VERSION = 4

#: The same for what concerns code in lanes only.
LANES_VERSION = 1

#: Bytes of object code that are kept …
LARGEST_TOTAL = 256 * 1024**2
#: … and seconds that an entry is kept without being used.
LONGEST_UNUSED = 120 * 24 * 3600.0

#: Renew the time stamp of an entry that is read only if it is older than this.
_STALE = 24 * 3600.0

log = logging.getLogger(__name__)


def entry_path(key: str) -> Path:
    """Return the file of a key.

    Examples
    --------
    >>> entry_path("00ff").name
    '00ff.obj'
    """
    return cache_directory() / "objects" / f"{key}.obj"


def _header(key: str, code: bytes) -> bytes:
    return f"featherstep object {key} {hashlib.sha256(code).hexdigest()}\n".encode()


def load(key: str) -> bytes | None:
    """Return the object code of a key, or None if there is no sound entry."""
    try:
        data = entry_path(key).read_bytes()
    except OSError:
        return None
    header, _, code = data.partition(b"\n")
    if header + b"\n" != _header(key, code):
        log.warning("the cache entry %s is damaged and will be rebuilt", entry_path(key))
        return None
    _note_use(entry_path(key))
    return code


def _note_use(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _STALE:
            os.utime(path)


def store(key: str, code: bytes) -> None:
    """Write an entry; trouble is logged and otherwise ignored."""
    path = entry_path(key)
    _prune_once(path.parent)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_header(key, code) + code)
        os.replace(temporary, path)
    except OSError as error:
        log.warning("machine code is not cached (%s); set FEATHERSTEP_CACHE", error)
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


@cache
def _prune_once(folder: Path) -> None:
    prune(folder)


def prune(folder: Path) -> int:
    """Drop entries that were not used for long, or are too many; returns how many went.

    Other processes may read, add and prune at the same time; what cannot be read or deleted is
    passed over.

    Examples
    --------
    >>> prune(Path("no such folder"))
    0
    """
    entries: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix not in (".obj", ".part"):
                continue
            with contextlib.suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
    entries.sort(key=lambda entry: entry[0])
    total = sum(size for _, size, _ in entries)
    oldest = time.time() - LONGEST_UNUSED
    dropped = 0
    for used, size, path in entries:
        if used >= oldest and total <= LARGEST_TOTAL:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            dropped += 1
        total -= size
    return dropped
