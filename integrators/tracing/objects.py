"""Machine code on disk, so that a second process starts at once.

An entry is a file named after its key, a hash of everything that determines the code: the graph,
the lanes, the CPU, the compiler and :data:`CODE_VERSION`. It holds a header line with the key
and the SHA-256 of the object code, then the object code. Whatever does not fit (truncated,
changed, foreign) is ignored and rebuilt. Entries are written to a temporary file and renamed, so
that no reader sees half of one; where nothing can be written, everything works without.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from pathlib import Path

from ..kernels import cache_directory

__all__ = ["CODE_VERSION", "entry_path", "load", "store"]

#: Raise this when the code generator changes.
CODE_VERSION = 1

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
    return code


def store(key: str, code: bytes) -> None:
    """Write an entry; trouble is logged and otherwise ignored."""
    path = entry_path(key)
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
