"""Machine code as a builtin function of Python: arrays in, a new array out.

A call through ctypes or numba's dispatcher costs one or two microseconds, as much as the forward
dynamics of a robot arm. Here the code that Python calls is itself machine code, written once in
LLVM's language: it looks at the arguments (float64 vectors of the right lengths, contiguous), hands
their memory to the compiled function and returns a fresh array. Whatever it does not like (lists,
other types, wrong lengths) goes to an ordinary Python function, which knows the error messages.

Two kinds of compiled functions can be entered:

- :func:`slope_entry`: ``void f(double t, const double* y, const double* p, double* out)``, as made
  by tracing;
- :func:`workspace_entry`: ``double f(int64 workspace)`` on arrays of a workspace; it fails by
  returning something that is not finite.

The code relies on how CPython and NumPy lay out objects, which extension modules do as well. Where
it is not known to hold, :func:`available` says so and callers take their ordinary way.
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..kernels.object_code import has_llvm

__all__ = ["available", "slope_entry", "workspace_entry"]

# Where CPython keeps things, in bytes: value of a float; data, dimensions and so on of an array.
FLOAT_VALUE, DATA, NDIM, SHAPE, DTYPE, FLAGS = 16, 16, 24, 32, 56, 64
PLAIN = 0x0001 | 0x0100  # an array that is C-contiguous and aligned
DOUBLE = 12  # NumPy's number of the type float64
NEW_ARRAY = 93  # place of PyArray_New in NumPy's table of functions
FASTCALL = 0x0080  # a builtin that takes (self, arguments, how many)

# Places in the description that each builtin carries as its `self`.
FUNCTION, FALLBACK, CALL, NEW, ARRAY_TYPE, DOUBLE_TYPE, FLOAT_TYPE, OTHER_FLOAT = range(8)
DIMENSIONS, OUT_SHAPE, SIZE, CONTEXT, RESULT, FIRST = range(8, 14)
# From FIRST on, for each array: its length, and where a workspace wants it.


@cache
def available() -> bool:
    """Whether objects are laid out as this module expects, and there is a compiler."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16:
        return False
    if sys.byteorder != "little" or platform.architecture()[0] != "64bit":
        return False
    x = np.arange(3.0)
    here = id(x)
    expected = {
        DATA: (ctypes.c_int64, x.ctypes.data),
        NDIM: (ctypes.c_int32, 1),
        DTYPE: (ctypes.c_int64, id(x.dtype)),
    }
    for place, (kind, value) in expected.items():
        if kind.from_address(here + place).value != value:
            return False
    if ctypes.c_int64.from_address(ctypes.c_int64.from_address(here + SHAPE).value).value != 3:
        return False
    if ctypes.c_int32.from_address(here + FLAGS).value & PLAIN != PLAIN:
        return False
    try:
        _numpy_function(NEW_ARRAY)
    except (ImportError, AttributeError, ValueError):
        return False
    return has_llvm()


def slope_entry(
    address: int, n: int, k: int, shape: tuple[int, ...], fallback: Callable[..., Any], *keep: Any
) -> Any:
    """Return a builtin (t, y, p) → array for code made by tracing; (t, y) if k is zero.

    Parameters
    ----------
    address
        Of the code.
    n, k
        Lengths of y and p.
    shape
        Of the result.
    fallback
        Called with the same arguments where they are not plain floats and vectors.
    keep
        What must live as long as the builtin.
    """
    lengths = [n, k] if k else [n]
    nothing = np.empty(1)
    return _builtin(
        _code(time=True, arrays=len(lengths)),
        address,
        fallback,
        shape,
        [(length, nothing.ctypes.data) for length in lengths],
        (*keep, nothing),
        context=nothing.ctypes.data,
    )


def workspace_entry(
    address: int,
    context: int,
    inputs: Sequence[np.ndarray],
    result: np.ndarray,
    fallback: Callable[..., Any],
    *keep: Any,
) -> Any:
    """Return a builtin of as many vectors as there are `inputs`, which are copied there.

    Parameters
    ----------
    address
        Of a function of the workspace's address; returns something finite if all went well.
    context
        The workspace's address.
    inputs, result
        Vectors of the workspace.
    fallback
        Called with the same arguments where they are not plain vectors, or the function failed.
    keep
        What must live as long as the builtin.
    """
    return _builtin(
        _code(time=False, arrays=len(inputs)),
        address,
        fallback,
        result.shape,
        [(x.size, x.ctypes.data) for x in inputs],
        (*keep, *inputs, result),
        context=context,
        result=result.ctypes.data,
    )


# ---------------------------------------------------------------------- the builtin


class _Description(np.ndarray):
    """Numbers that the code reads, and the objects they belong to."""

    keep: Any


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _builtin(
    code: Any,
    address: int,
    fallback: Callable[..., Any],
    shape: tuple[int, ...],
    arrays: list[tuple[int, int]],
    keep: tuple[Any, ...],
    context: int,
    result: int = 0,
) -> Any:
    numbers = np.zeros(FIRST + 2 * len(arrays), dtype=np.int64).view(_Description)
    dimensions = np.array(shape, dtype=np.int64)
    method = _Method(b"compiled", code.address, FASTCALL, None)
    numbers.keep = (fallback, keep, dimensions, method, code)
    numbers[:FIRST] = [
        address,
        id(fallback),
        _of_python("PyObject_Vectorcall"),
        _numpy_function(NEW_ARRAY),
        id(np.ndarray),
        id(np.dtype(np.float64)),
        id(float),
        id(np.float64),
        len(shape),
        dimensions.ctypes.data,
        dimensions.prod(),
        context,
        result,
    ]
    for i, (length, place) in enumerate(arrays):
        numbers[FIRST + 2 * i : FIRST + 2 * i + 2] = length, place
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.addressof(method), numbers, None)


def _of_python(name: str) -> int:
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


@cache
def _numpy_function(place: int) -> int:
    """Address of a function of NumPy's C interface."""
    module = importlib.import_module("numpy._core._multiarray_umath")
    unpack = ctypes.pythonapi.PyCapsule_GetPointer
    unpack.restype = ctypes.c_void_p
    unpack.argtypes = (ctypes.py_object, ctypes.c_char_p)
    table = unpack(module._ARRAY_API, None)
    return int(ctypes.c_int64.from_address(table + 8 * place).value)


# ---------------------------------------------------------------------- the code that Python calls


@cache
def _code(time: bool, arrays: int) -> Any:
    from .llvm.codegen import compile_ir

    def source(name: str) -> str:
        return _source(name, time, arrays)

    return compile_ir(source, f"entry {time} {arrays}", lanes=1, size=0, speed_level=1)


def _source(name: str, time: bool, arrays: int) -> str:
    """LLVM code of ``PyObject* entry(self, arguments, how many)``."""
    lines: list[str] = []
    numbers = iter(range(1_000_000))

    def new(instruction: str) -> str:
        value = f"%v{next(numbers)}"
        lines.append(f"  {value} = {instruction}")
        return value

    def at(base: str, offset: int, kind: str) -> str:
        place = new(f"getelementptr i8, ptr {base}, i64 {offset}")
        return new(f"load {kind}, ptr {place}, align {4 if kind == 'i32' else 8}")

    def need(condition: str) -> None:
        """Go the ordinary way unless a condition holds."""
        following = f"next{next(numbers)}"
        lines.append(f"  br i1 {condition}, label %{following}, label %ordinary")
        lines.append(f"{following}:")

    def equal(a: str, b: str, kind: str = "ptr") -> str:
        return new(f"icmp eq {kind} {a}, {b}")

    def described(place: int, kind: str = "ptr") -> str:
        return at(description, 8 * place, kind)

    def copied(source: str, target: str, count: str) -> None:
        """Copy doubles, in a loop."""
        start, body, end = (f"{part}{next(numbers)}" for part in ("copy", "body", "copied"))
        before = f"before{next(numbers)}"
        lines.extend([f"  br label %{before}", f"{before}:", f"  br label %{start}", f"{start}:"])
        i, following = f"%i{next(numbers)}", f"%i{next(numbers)}"
        lines.append(f"  {i} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
        more = new(f"icmp slt i64 {i}, {count}")
        lines.append(f"  br i1 {more}, label %{body}, label %{end}")
        lines.append(f"{body}:")
        value = new(f"load double, ptr {new(f'getelementptr double, ptr {source}, i64 {i}')}")
        lines.append(
            f"  store double {value}, ptr {new(f'getelementptr double, ptr {target}, i64 {i}')}"
        )
        lines.append(f"  {following} = add i64 {i}, 1")
        lines.append(f"  br label %{start}")
        lines.append(f"{end}:")

    description = at("%self", DATA, "ptr")
    need(equal("%count", str(arrays + time), "i64"))
    t = ""
    if time:
        number = at("%arguments", 0, "ptr")
        kind = at(number, 8, "ptr")
        plain = equal(kind, described(FLOAT_TYPE))
        need(new(f"or i1 {plain}, {equal(kind, described(OTHER_FLOAT))}"))
        t = at(number, FLOAT_VALUE, "double")
    data, lengths = [], []
    for i in range(arrays):
        array = at("%arguments", 8 * (i + time), "ptr")
        need(equal(at(array, 8, "ptr"), described(ARRAY_TYPE)))
        need(equal(at(array, DTYPE, "ptr"), described(DOUBLE_TYPE)))
        need(equal(at(array, NDIM, "i32"), "1", "i32"))
        flags = new(f"and i32 {at(array, FLAGS, 'i32')}, {PLAIN}")
        need(equal(flags, str(PLAIN), "i32"))
        lengths.append(described(FIRST + 2 * i, "i64"))
        need(equal(at(at(array, SHAPE, "ptr"), 0, "i64"), lengths[-1], "i64"))
        data.append(at(array, DATA, "ptr"))
    function = described(FUNCTION)
    if not time:
        for i in range(arrays):
            copied(data[i], described(FIRST + 2 * i + 1), lengths[i])
        total = new(f"call double {function}(i64 {described(CONTEXT, 'i64')})")
        rest = new(f"fsub double {total}, {total}")
        need(new(f"fcmp oeq double {rest}, 0.0"))
    dimensions = new(f"trunc i64 {described(DIMENSIONS, 'i64')} to i32")
    out = new(
        f"call ptr {described(NEW)}(ptr {described(ARRAY_TYPE)}, i32 {dimensions}, "
        f"ptr {described(OUT_SHAPE)}, i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)"
    )
    failed = equal(out, "null")
    lines.append(f"  br i1 {failed}, label %end, label %fill")
    lines.append("fill:")
    memory = at(out, DATA, "ptr")
    if time:
        p = data[1] if arrays > 1 else described(CONTEXT)
        lines.append(f"  call void {function}(double {t}, ptr {data[0]}, ptr {p}, ptr {memory})")
    else:
        copied(described(RESULT), memory, described(SIZE, "i64"))
    lines += ["  br label %end", "end:", f"  ret ptr {out}", "ordinary:"]
    result = new(
        f"call ptr {described(CALL)}(ptr {described(FALLBACK)}, ptr %arguments, "
        "i64 %count, ptr null)"
    )
    lines.append(f"  ret ptr {result}")
    head = f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count) nounwind {{"
    return "\n".join([head, "entry:", *lines, "}", ""])
