"""Compiled code on disk: private, verified before it is used, and never in the way.

Machine code is the one kind of file that this package runs instead of reading. So it is kept in a
folder of the user's own, ``compiled`` in :func:`cache_directory`, created with mode 0700; a folder
that another user owns or may write is refused. Every entry carries a keyed hash (HMAC-SHA256 with
the file ``key`` of that folder, mode 0600) over its name and content, which is verified before a
byte of it is unpickled or loaded. An entry that fails is deleted, and its code built again.

Who loads an entry says so in a file beside it (:func:`loading`). Where the process dies while
loading, that file stays, and the next process deletes the entry instead of dying too; after a
second death the entry is left alone for a day and its code built in each process.

Entries are written to a temporary file and renamed, so that no reader sees half of one. Where the
folder cannot be used, a private one in the system's folder for temporary files takes its place;
where there is none either, nothing is kept. Both are said once. What has not been used for long is
dropped, and if the rest is too large, what was used longest ago (:func:`prune`).
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import secrets
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["cache_directory", "entry_path", "forget", "load", "loading", "place", "prune", "store"]

#: Bytes that are kept, …
LARGEST_TOTAL = 256 * 1024**2
#: … entries that are kept, …
MOST_ENTRIES = 10_000
#: … and seconds that an entry is kept without being used.
LONGEST_UNUSED = 120 * 24 * 3600.0

#: Look at these limits at the first entry that a process adds, and after so many more.
_PRUNE_EVERY = 500
#: Renew the time stamp of an entry that is read only if it is older than this.
_STALE = 24 * 3600.0
#: How long code that killed two processes is not loaded again, in seconds.
_REST = 24 * 3600.0
#: Unfinished files of other processes are left alone for so long, in seconds.
_UNFINISHED = 3600.0

_MAGIC = b"featherstep code 1\n"
_HASH = "sha256"
_HASH_BYTES = 32
_KEY_BYTES = 32
#: Endings of the files in the folder: entries, unfinished ones, marks of loading and of crashes.
_ENDINGS = (".code", ".part", ".loading", ".crashed")
#: What earlier versions left beside the folder.
_FORMER = ("objects/*.obj", "objects/*.part", "kernels-*/*/*.nb[ic]")

log = logging.getLogger(__name__)
_lock = threading.Lock()
_said: set[str] = set()
_added = 0  # entries that this process stored


def cache_directory() -> Path:
    """Where compiled code is kept: ``$FEATHERSTEP_CACHE``, else the user's cache folder.

    An empty variable counts as none, and so does a relative one of the system's. Where the user has
    no home (some containers), it is a folder among the temporary files.
    """
    try:
        if chosen := os.environ.get("FEATHERSTEP_CACHE"):
            return _expanded(chosen).absolute()
        windows = sys.platform == "win32"
        base = Path(os.environ.get("LOCALAPPDATA" if windows else "XDG_CACHE_HOME", ""))
        # XDG's rule: a relative path is no path. A cache in the current folder could be anyone's.
        if not str(base).startswith("~") and not base.is_absolute():
            base = Path("~", "AppData", "Local") if windows else Path("~", ".cache")
        return _expanded(str(base)) / "featherstep"
    except RuntimeError:  # neither $HOME nor an entry of this user
        return _temporary_directory()


def _expanded(path: str) -> Path:
    """The path with the user's home for ``~``, which is not looked for in the current folder."""
    if (
        path[:2] in ("~", "~/")
        and os.name != "nt"
        and not os.environ.get("HOME", "").startswith("/")
    ):
        import pwd

        try:
            path = pwd.getpwuid(os.getuid()).pw_dir + path[1:]
        except KeyError:
            raise RuntimeError("no entry of this user") from None
    expanded = Path(path).expanduser()
    if path.startswith("~") and not expanded.is_absolute():
        raise RuntimeError("a home in the current folder")
    return expanded


def _temporary_directory() -> Path:
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"featherstep-{user}"


# ---------------------------------------------------------------------- the folder and its key


def place() -> Path | None:
    """Return the private folder of entries, created if need be; None where nothing can be kept."""
    found = _private_place(cache_directory())
    return found[0] if found else None


@cache
def _private_place(directory: Path) -> tuple[Path, bytes] | None:
    """Folder and key; the first of the directory and its substitute that will do."""
    for candidate in dict.fromkeys((directory, _temporary_directory())):
        folder = candidate / "compiled"
        try:
            return folder, _key_of(_private(folder))
        except OSError as error:
            reason = error.strerror or str(error)
            _say(f"{folder} cannot hold compiled code: {reason}; set FEATHERSTEP_CACHE")
    _say("compiled code is not kept: each process builds it anew")
    return None


def _say(message: str) -> None:
    """Log a warning, once in a process."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", message)


def _private(folder: Path) -> Path:
    """Create a folder for this user alone, or make sure that it is one; raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(0, "expected a folder, received a file or a link")
    if hasattr(os, "geteuid"):
        if status.st_uid != os.geteuid():
            raise PermissionError(0, f"it belongs to another user (number {status.st_uid})")
        if status.st_mode & 0o022:
            raise PermissionError(
                0, f"others may write there (mode {status.st_mode & 0o777:o}); chmod 700 it"
            )
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(descriptor)
    os.unlink(name)
    return folder


def _key_of(folder: Path) -> bytes:
    """Read the folder's key; make one where there is none, or none of use."""
    path = folder / "key"
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            private = os.name == "nt" or not status.st_mode & 0o077
            key = path.read_bytes() if stat.S_ISREG(status.st_mode) and private else b""
            if len(key) == _KEY_BYTES:
                return key
            path.unlink()
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            # A link appears whole or not at all, and never over another process's key.
            with contextlib.suppress(FileExistsError):
                os.link(name, path)
        except OSError:
            os.replace(name, path)  # a file system without links; the last process wins
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)
    raise PermissionError(0, "its key can be neither read nor made")


# ---------------------------------------------------------------------- entries


def entry_path(name: str) -> Path | None:
    """Return the file of an entry; None where nothing is kept.

    Examples
    --------
    >>> path = entry_path("00ff")
    >>> path is None or path.name == "00ff.code"
    True
    """
    folder = place()
    return None if folder is None else folder / f"{name}.code"


def _seal(key: bytes, name: str, data: bytes) -> bytes:
    return hmac.digest(key, _MAGIC + name.encode() + b"\n" + data, _HASH)


def load(name: str) -> bytes | None:
    """Return the content of an entry, verified; None if there is no sound one."""
    found = _private_place(cache_directory())
    if found is None:
        return None
    folder, key = found
    path = folder / f"{name}.code"
    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _HASH_BYTES
    seal, data = content[len(_MAGIC) : start], content[start:]
    if not content.startswith(_MAGIC) or not hmac.compare_digest(seal, _seal(key, name, data)):
        forget(name, "it is damaged, or not from here")
        return None
    if _crashed(path):
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _STALE:
            os.utime(path)
    return data


def store(name: str, data: bytes) -> None:
    """Write an entry; trouble is logged and otherwise ignored."""
    found = _private_place(cache_directory())
    if found is None:
        return
    folder, key = found
    path = folder / f"{name}.code"
    if _resting(path):
        return
    _prune_now_and_then(folder)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + _seal(key, name, data) + data)
        os.replace(temporary, path)
    except FileNotFoundError:
        _private_place.cache_clear()  # somebody deleted the folder: the next entry makes it anew
    except OSError as error:
        _say(f"compiled code is not kept in {folder} ({error.strerror}); set FEATHERSTEP_CACHE")
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def forget(name: str, reason: str) -> None:
    """Delete an entry that cannot be used."""
    path = entry_path(name)
    if path is not None:
        log.warning("the compiled code %s is deleted and built again: %s", path, reason)
        with contextlib.suppress(OSError):
            path.unlink()


# ---------------------------------------------------------------------- crashes


@contextlib.contextmanager
def loading(name: str) -> Iterator[None]:
    """Mark an entry while it is brought into memory, so that a crash there is remembered."""
    path = entry_path(name)
    mark = None if path is None else path.with_suffix(".loading")
    if mark is not None:
        try:
            with open(mark, "x") as file:
                file.write(f"{socket.gethostname()} {os.getpid()}")
        except OSError:
            mark = None  # another process is at it; or the disk is full, and the risk is ours
    try:
        yield
    finally:
        if mark is not None:
            with contextlib.suppress(OSError):
                mark.unlink()


def _crashed(path: Path) -> bool:
    """Whether loading an entry killed a process; the entry is then deleted."""
    if _resting(path):
        return True
    mark = path.with_suffix(".loading")
    try:
        host, _, process = mark.read_text().partition(" ")
        if _alive(host, process, time.time() - mark.stat().st_mtime):
            return False
        with open(path.with_suffix(".crashed"), "a") as file:
            file.write("x")
        forget(path.stem, "a process died while it loaded it")
        mark.unlink()
    except OSError:
        return False  # no mark, the usual case
    return True


def _alive(host: str, process: str, age: float) -> bool:
    """Whether who left a mark may still be loading."""
    if not process.isdecimal():
        return age < 60.0  # about to write it
    if host != socket.gethostname():
        return age < _UNFINISHED
    if int(process) == os.getpid():
        return age < 60.0  # another thread; else a number used again
    if os.name == "nt":
        return age < 60.0
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return age < _UNFINISHED


def _resting(path: Path) -> bool:
    """Whether code has crashed twice of late, so that it is neither loaded nor kept."""
    try:
        status = path.with_suffix(".crashed").stat()
    except OSError:
        return False
    return status.st_size >= 2 and time.time() - status.st_mtime < _REST


# ---------------------------------------------------------------------- room


def _prune_now_and_then(folder: Path) -> None:
    global _added
    with _lock:
        now = _added % _PRUNE_EVERY == 0
        _added += 1
    if now:
        prune(folder)


def prune(folder: Path) -> int:
    """Drop entries that were not used for long, or are too many; returns how many files went.

    Other processes may read, add and prune at the same time; what cannot be read or deleted is
    passed over. What earlier versions kept beside the folder counts too.

    Examples
    --------
    >>> prune(Path("no such folder"))
    0
    """
    entries: list[tuple[float, int, Path]] = []
    files = [path for pattern in _FORMER for path in folder.parent.glob(pattern)]
    with contextlib.suppress(OSError):
        files += [path for path in folder.iterdir() if path.suffix in _ENDINGS]
    now = time.time()
    dropped = 0
    for path in files:
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.suffix == ".part" and now - status.st_mtime > _UNFINISHED:
                path.unlink()  # of a process that was killed
                dropped += 1
            else:
                entries.append((status.st_mtime, status.st_size, path))
    entries.sort(key=lambda entry: entry[0])
    total, many = sum(size for _, size, _ in entries), len(entries)
    for used, size, path in entries:
        if now - used <= LONGEST_UNUSED and total <= LARGEST_TOTAL and many <= MOST_ENTRIES:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            dropped += 1
        total, many = total - size, many - 1
    return dropped
