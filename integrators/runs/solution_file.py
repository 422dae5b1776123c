"""Solutions in ``.npz`` files: what is written, and what is believed when it is read.

A file comes from a disk, a colleague, or a stranger. So nothing is expanded before its size is
known to be bearable, nor beyond that size, nothing is unpickled, and what comes out is held to what
a solution is: times in order, shapes that agree, counters that count, states that are numbers where
the run is a success. Whatever is wrong is a :class:`FileError` with the file's name.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..files import replacing
from ..stepping.state import Status

__all__ = ["COUNTERS", "FORMAT", "LARGEST", "TEXTS", "read", "refusal", "write"]

#: Version of the format.
FORMAT = 1

#: Bytes that a file may expand to, unless the reader is told otherwise.
LARGEST = 2**30

#: Bytes that are expanded at a time: an archive may hold more than it claims.
_PIECE = 2**20

COUNTERS: Sequence[str] = ("nfev", "njev", "nlu", "nnewton", "nsteps", "nrejected")
TEXTS: Sequence[str] = ("message", "error_estimate", "method")

_ARRAYS = re.compile(
    r"(?:t|y|h|header|(?:reached|zeno)_[ty]|modes_t|sol_(?:t|h|y|Q|end)|[ty]_events_\d{1,6})\.npy"
)
_HEADER_KEYS = {"format", "status", "problem", "dense_order", "events", *COUNTERS, *TEXTS}
#: What only some solutions have.
_OPTIONAL: dict[str, Any] = {"manifold": False, "ended_by": None, "modes": [], "event_names": []}
_OPTIONAL |= {"phases": [], "linear_solver": "", "state_names": []}
#: What zipfile, zlib, NumPy and json raise for files that somebody spoiled.
_DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def write(path: str | PathLike[str], arrays: dict[str, Any], header: dict[str, Any]) -> None:
    """Write arrays and header, whole or not at all."""
    arrays = {**arrays, "header": np.array(json.dumps({"format": FORMAT, **header}))}
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def read(
    path: str | PathLike[str], largest: int = LARGEST
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and the header of a file, checked.

    Parameters
    ----------
    path
        The file.
    largest
        Bytes that it may expand to.

    Raises
    ------
    FileError
        If it is not what :func:`write` writes.
    """
    try:
        with open(path, "rb") as stream:  # raises OSError if there is none
            arrays = _expand(stream, largest, path)
        header = _header(arrays, path)
        _check_arrays(arrays, header)
    except (FileError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except _DAMAGE as error:
        raise refusal(path, str(error) or type(error).__name__) from None
    return arrays, header


def refusal(path: str | PathLike[str], received: str) -> FileError:
    """What is raised of a file that holds something else."""
    return FileError(
        path,
        "not a saved Solution: expected a .npz file that Solution.save wrote, received "
        f"{received[:200]}",
    )


# ---------------------------------------------------------------------- from bytes to arrays


def _expand(stream: Any, largest: int, path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(stream):
        raise refusal(path, "another kind of file")
    stream.seek(0)
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if not {"t.npy", "y.npy", "header.npy"} <= {member.filename for member in members}:
                raise refusal(path, "an archive of other data")
            total = sum(member.file_size for member in members)
            if total > largest:
                raise FileError(
                    path,
                    f"it would expand to {total / 1e6:,.0f} MB; expected at most "
                    f"{largest / 1e6:,.0f}. If you trust it, say Solution.load(path, "
                    f"largest={total})",
                )
            for member in members:
                if not _ARRAYS.fullmatch(member.filename):
                    raise refusal(path, f"an archive with {member.filename[:60]!r} in it")
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise refusal(path, f"an archive with {name!r} twice")
                arrays[name] = _array(_content(archive, member), name)
    except FileError:
        raise
    except (EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise refusal(path, f"a damaged archive ({error})") from None
    return arrays


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """What a member holds, up to the size that it claims; more fails the archive's checksum."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("compressed in a way that Solution.save does not use")
    with archive.open(member) as file:
        return b"".join(iter(lambda: file.read(_PIECE), b""))


def _array(data: bytes, name: str) -> NDArray[Any]:
    """Array from the text of a ``.npy`` file, whose size must be that which its header claims."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"{name} in a format that is not known, {version}")
    shape, _, kind = read_header(stream)
    claimed = math.prod(shape) * kind.itemsize
    if kind.hasobject or claimed != len(data) - stream.tell() or min(shape, default=0) < 0:
        raise ValueError(f"{name} whose size is not that of its header")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


# ---------------------------------------------------------------------- what a solution is


def _header(arrays: dict[str, Any], path: str | PathLike[str]) -> dict[str, Any]:
    text = arrays.pop("header")
    if text.shape != () or text.dtype.kind != "U":
        raise ValueError("a header that is no text")
    header = json.loads(str(text))
    if not isinstance(header, dict) or "format" not in header:
        raise refusal(path, "an archive of other data")
    if header["format"] != FORMAT:
        raise FileError(path, "it was written by a newer version; update featherstep")
    further = {key: header.pop(key, absent) for key, absent in _OPTIONAL.items()}
    if missing := sorted(_HEADER_KEYS - set(header)):
        raise ValueError(f"a header without {missing[0]!r}")
    if unknown := sorted(set(header) - _HEADER_KEYS):
        raise ValueError(f"a header with the unknown key {unknown[0][:60]!r}")
    for key in (*COUNTERS, "dense_order", "events"):
        if type(header[key]) is not int or header[key] < 0:
            raise ValueError(f"a header whose {key} is {header[key]!r:.60}, no count")
    for key in (*TEXTS, "problem"):
        if not isinstance(header[key], str):
            raise ValueError(f"a header whose {key} is {header[key]!r:.60}, no text")
    if type(header["status"]) is not int or header["status"] not in [int(s) for s in Status]:
        raise ValueError(f"a header whose status is {header['status']!r:.60}")
    if not isinstance(further["manifold"], bool):
        raise ValueError(f"a header whose manifold is {further['manifold']!r:.60}")
    if not isinstance(further["linear_solver"], str):
        raise ValueError(f"a header whose linear_solver is {further['linear_solver']!r:.60}")
    ended_by, names = further["ended_by"], further["event_names"]
    if ended_by is not None and not (type(ended_by) is int and 0 <= ended_by < header["events"]):
        raise ValueError(f"a header whose ended_by is {ended_by!r:.60}")
    if not isinstance(names, list) or len(names) not in (0, header["events"]):
        raise ValueError(f"a header whose event_names are {names!r:.60}")
    if any(not isinstance(name, list) or len(name) != 2 for name in names):
        raise ValueError(f"a header whose event_names are {names!r:.60}")
    states = further["state_names"]
    if not (isinstance(states, list) and all(isinstance(name, str) for name in states)):
        raise ValueError(f"a header whose state_names are {states!r:.60}")
    return {**header, **further}


def _check_arrays(arrays: dict[str, Any], header: dict[str, Any]) -> None:
    t, y = _times(arrays["t"], "t"), arrays["y"]
    if y.ndim != 2 or y.shape[1] != len(t) or y.dtype not in (np.float64, np.complex128):
        raise ValueError(f"y of shape {y.shape} and kind {y.dtype} at {len(t)} times")
    h = arrays["h"]
    if h.ndim != 1 or h.dtype != np.float64 or not np.all(np.isfinite(h)):
        raise ValueError(f"step lengths of shape {h.shape} and kind {h.dtype}, or not finite")
    _check_states(y.T, "y", header)
    names = {"t", "y", "h"}
    lengths = range(1, len(y) + 1) if header["modes"] else [len(y)]  # modes may have fewer
    for single in ("reached", "zeno"):
        if f"{single}_t" in arrays:
            time, state = arrays[f"{single}_t"], arrays[f"{single}_y"]
            if time.shape != () or state.ndim != 1 or state.size not in lengths:
                raise ValueError(f"a run that {single} no single state")
            _check_states(state[None, :], f"{single}_y", header)
            names |= {f"{single}_t", f"{single}_y"}
    if header["modes"]:
        if "modes_t" not in arrays:
            raise ValueError("modes without times")
        names.add("modes_t")
    for k in range(header["events"]):
        times, states = _times(arrays[f"t_events_{k}"], f"t_events_{k}"), arrays[f"y_events_{k}"]
        shapes = [(0,), *((len(times), n) for n in lengths)]
        if len(states) != len(times) or states.shape not in shapes:
            raise ValueError(f"{len(times)} occurrences of event {k}, states {states.shape}")
        _check_states(states, f"y_events_{k}", header)
        names |= {f"t_events_{k}", f"y_events_{k}"}
    if "sol_t" in arrays:
        _check_dense(arrays, len(y), header)
        names |= {f"sol_{name}" for name in ("t", "h", "y", "Q", "end")}
    if surplus := sorted(set(arrays) - names):
        raise ValueError(f"an archive with {surplus[0]!r}, which belongs to nothing")


def _times(t: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Times, in order: all forward or all backward; a jump has the same time twice."""
    if t.ndim != 1 or t.dtype != np.float64 or not np.all(np.isfinite(t)):
        raise ValueError(f"{name} that is no list of times")
    ahead = np.diff(t)
    if np.any(ahead < 0) and np.any(ahead > 0):
        raise ValueError(f"{name} with times out of order")
    return t


def _check_states(states: NDArray[Any], name: str, header: dict[str, Any]) -> None:
    """States in rows are finite where the run is a success; modes leave out the last components."""
    left_out = np.isnan(states) & bool(header["modes"])
    left_out[..., :1] = False
    ended = left_out[..., :-1] & ~left_out[..., 1:]  # a number after what was left out
    if header["status"] >= 0 and (ended.any() or not np.all(np.isfinite(states) | left_out)):
        raise ValueError(f"{name} that is not finite, of a run that calls itself a success")


def _check_dense(arrays: dict[str, Any], n: int, header: dict[str, Any]) -> None:
    t, h, y, Q, end = (arrays[f"sol_{name}"] for name in ("t", "h", "y", "Q", "end"))
    steps = len(_times(t, "sol_t"))
    directed = h.dtype == np.float64 and (np.all(h > 0) or np.all(h < 0)) and np.isfinite(h).all()
    if steps == 0 or h.shape != (steps,) or not directed:
        raise ValueError("dense output without steps, or with steps of no length")
    fits = Q.ndim == 3 and Q.shape[0] == steps and (header["manifold"] or Q.shape[2] == n)
    if y.shape != (steps, n) or not fits or Q.dtype.kind not in "fc" or y.dtype.kind not in "fc":
        raise ValueError(f"dense output of shapes {y.shape} and {Q.shape} for {steps} steps")
    if end.shape != () or end.dtype != np.float64 or not np.isfinite(end):
        raise ValueError("dense output without an end")
    _check_states(y, "sol_y", header)
    if header["status"] >= 0 and not np.all(np.isfinite(Q)):
        raise ValueError("sol_Q that is not finite, of a run that calls itself a success")
    # One step after the other, without holes, and every state of the solution on one of them.
    direction = np.sign(h[0])
    slack = 1e-12 * max(abs(t[0]), abs(t[-1]), abs(end))
    ahead = direction * np.append(np.diff(t), end - t[-1])
    if np.any(ahead < 0) or np.any(ahead > np.abs(h) + slack):
        raise ValueError("dense output whose steps do not follow one another")
    for name in ("t", *(name for name in arrays if name.startswith("t_events"))):
        times = direction * arrays[name]
        outside = (times < direction * t[0] - slack) | (times > direction * end + slack)
        if np.any(outside) or np.any(np.diff(times) < 0):
            raise ValueError(f"{name} that contradicts the dense output from {t[0]:g} to {end:g}")
