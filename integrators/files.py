"""Files are written whole or not at all, and read with limits.

What is to be written goes to a temporary file beside the target, is brought to the disk, and takes
the target's name in one step. A full disk, an exception or a killed process leaves the file that
was there before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["refuse_long_keys", "replacing", "write_bytes", "write_text"]

#: Parts of a TOML key with dots; the parser's time grows with the square of their number.
MOST_PARTS = 100

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(
    rf"(?:^|[\[{{,])[ \t]*+{_PART}(?:\.[ \t]*+{_PART}){{{MOST_PARTS}}}", re.MULTILINE
)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Name of a file to write, which takes the place of `path` if nothing is raised.

    It has the ending of `path`, and exists already. Links are followed; a pipe or a device
    (``/dev/stdout``) is written as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "numbers.txt"
    ...     write_text(file, "1 2 3")
    ...     try:
    ...         with replacing(file) as temporary:
    ...             _ = temporary.write_text("4")
    ...             raise OSError("the disk is full")
    ...     except OSError:
    ...         file.read_text()
    '1 2 3'
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        yield target
        return
    temporary = target.with_name(f".featherstep-{secrets.token_hex(6)}{target.suffix}")
    try:
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "expected the name of a file, received a folder")
        # As open() would create it, so that the user's mask counts.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise _about(error, path) from None
    try:
        yield temporary
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        _to_disk(temporary)
        os.replace(temporary, target)
    except OSError as error:
        # The user knows nothing of the temporary file.
        if error.filename is None or str(error.filename) == str(temporary):
            raise _about(error, path) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    with contextlib.suppress(OSError):  # Windows opens no folders
        _to_disk(target.parent)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _about(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """Return the same error, with the name of the file that was to be written."""
    if error.errno is None:
        return OSError(f"cannot write {path}: {error}")
    return type(error)(error.errno, error.strerror, str(path))


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8 with the line ends of the text, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def refuse_long_keys(text: str) -> None:
    """Refuse TOML whose keys have very many parts, before the parser takes seconds for them.

    Examples
    --------
    >>> refuse_long_keys("a.b.c = 1")
    >>> refuse_long_keys(".".join("a" * 5000) + " = 1")
    Traceback (most recent call last):
        ...
    ValueError: expected keys of at most 100 parts, received a longer one in line 1
    """
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start() + 1) + 1
        raise ValueError(
            f"expected keys of at most {MOST_PARTS} parts, received a longer one in line {line}"
        )
