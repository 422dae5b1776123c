"""Object code in memory: what LLVM made, now or in an earlier process.

Object code names what it needs from outside: functions of the C library, of Python, of numba. LLVM
ends the process if it cannot find one of them, so they are looked up first
(:func:`missing_symbols`).

Kernels that numba compiled refer to numba for one thing only: to report an exception, which they
never raise. For these few functions there is a stand-in (:data:`STAND_IN`); so the kernels of an
earlier process run without numba, whose import takes longer than most runs.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib.util
import platform
import struct
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "KNOWN",
    "TOGETHER",
    "c_library",
    "compiler_versions",
    "engine_of",
    "has_llvm",
    "initialised_llvm",
    "kernel_engine",
    "missing_symbols",
    "shared_engine",
    "stands_alone",
    "symbols_from_outside",
]

#: Whether object code is of the kind that can be looked into here: 64-bit ELF.
KNOWN = sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 2**32

#: Where code and constants can be kept together in memory.
TOGETHER = sys.platform == "linux" and platform.machine() == "x86_64"

#: How many pieces of code share an engine: the engine's own memory hardly counts then, and few
#: pieces that nobody needs any more wait for the last one of their engine.
SHARED = 16

#: Bytes of the largest piece that shares one: a larger one, such as a step made for one function,
#: should leave memory without waiting for others.
LARGEST_SHARED = 4_096

#: numba's part in reporting an exception, for kernels that run without numba.
STAND_IN = """
@text = internal constant [75 x i8] c"a compiled kernel raised an exception; \
FEATHERSTEP_INTERPRET=1 shows where\\00"
@PyExc_RuntimeError = external global ptr
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @PyErr_SetString(ptr, ptr)
define void @numba_gil_ensure(ptr %state) {
  %held = call i32 @PyGILState_Ensure()
  store i32 %held, ptr %state
  ret void
}
define void @numba_gil_release(ptr %state) {
  %held = load i32, ptr %state
  call void @PyGILState_Release(i32 %held)
  ret void
}
define ptr @numba_unpickle(ptr %data, i32 %size, ptr %hash) {
  %kind = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %kind, ptr @text)
  ret ptr null
}
define i32 @numba_do_raise(ptr %exception) {
  ret i32 0
}
define ptr @numba_runtime_build_excinfo_struct(ptr %structure, ptr %arguments) {
  ret ptr %structure
}
define void @NRT_Free(ptr %memory) {
  ret void
}
define void @NRT_MemInfo_call_dtor(ptr %memory) {
  ret void
}
"""


@cache
def has_llvm() -> bool:
    """Whether there is a compiler for machine code; it is not imported."""
    try:
        return importlib.util.find_spec("llvmlite") is not None
    except (ImportError, ValueError):
        return False


@cache
def initialised_llvm() -> Any:
    """Return LLVM's binding, ready to make code for this computer."""
    from llvmlite import binding as ll

    ll.initialize_native_target()
    ll.initialize_native_asmprinter()
    return ll


@cache
def compiler_versions() -> str:
    """What made the machine code, and for which CPU; numba is not imported."""
    import llvmlite

    ll = initialised_llvm()
    found = importlib.util.find_spec("numba")
    file = Path(found.origin or "").with_name("_version.py") if found else None
    version = file.read_text() if file and file.exists() else __import__("numba").__version__
    features = ll.get_host_cpu_features().flatten()
    return (
        f"{sys.version_info[:2]} {version} {llvmlite.__version__} {ll.get_default_triple()} "
        f"{ll.get_host_cpu_name()} {features}"
    )


def _empty_engine(together: bool = False) -> Any:
    ll = initialised_llvm()
    machine = ll.Target.from_default_triple().create_target_machine()  # the engine owns it
    return ll.create_mcjit_compiler(ll.parse_assembly(""), machine, use_lmm=together or None)


def _add(engine: Any, *codes: bytes) -> Any:
    for code in codes:
        engine.add_object_file(initialised_llvm().ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def engine_of(code: bytes, *more: bytes) -> Any:
    """Bring object code into memory, with more for symbols that it lacks; the engine owns it."""
    return _add(_empty_engine(), *more, code)


@dataclass
class _Filling:
    """The engine that takes the next code, as long as somebody uses what it has."""

    engine: Callable[[], Any] = lambda: None
    holds: set[bytes] = field(default_factory=set)


_filling = _Filling()


def shared_engine(code: bytes) -> Any:
    """Bring object code that stands alone into memory, in an engine with other such code.

    An engine takes 50 kB for itself and a piece of code for a small function 14, so that the next
    :data:`SHARED` small pieces share one; they leave memory together. Code and constants lie close
    to each other, as short addresses need. What a piece defines must bear a name of its own. Not
    to be called by two threads at once.
    """
    if len(code) > LARGEST_SHARED:
        return _add(_empty_engine(together=True), code)
    digest = hashlib.sha256(code).digest()
    engine = _filling.engine()
    if engine is not None and digest in _filling.holds:
        return engine
    if engine is None or len(_filling.holds) >= SHARED:
        engine = _empty_engine(together=True)
        _filling.engine, _filling.holds = weakref.ref(engine), set()
    _filling.holds.add(digest)
    return _add(engine, code)


def kernel_engine(code: bytes) -> Any:
    """Bring the object code of a kernel that numba compiled into memory, without numba."""
    return engine_of(code, _stand_in())


@cache
def _stand_in() -> bytes:
    ll = initialised_llvm()
    options = {"reloc": "static"} if platform.machine() == "x86_64" else {}
    machine = ll.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", jit=True, **options
    )
    return bytes(machine.emit_object(ll.parse_assembly(STAND_IN)))


# ---------------------------------------------------------------------- symbols

# Entries of the tables of sections and of symbols in a 64-bit ELF file.
_SECTION = np.dtype("u4, u4, u8, u8, u8, u8, u4, u4, u8, u8")
_SYMBOL = np.dtype("u4, u1, u1, u2, u8, u8")
_SECTION.names = ("name", "kind", "flags", "address", "start", "size", "names", "b", "c", "d")
_SYMBOL.names = ("name", "info", "other", "section", "value", "size")
_SYMBOL_TABLE = 2


def symbols_from_outside(code: bytes) -> list[str]:
    """Names that object code (64-bit ELF) refers to without defining them."""
    start, count = struct.unpack_from("<Q", code, 0x28)[0], struct.unpack_from("<H", code, 0x3C)[0]
    sections = np.frombuffer(code, _SECTION, count, start)
    names: list[str] = []
    for section in sections[sections["kind"] == _SYMBOL_TABLE]:
        many = int(section["size"]) // _SYMBOL.itemsize
        symbols = np.frombuffer(code, _SYMBOL, many, int(section["start"]))
        texts = int(sections[int(section["names"])]["start"])
        for symbol in symbols[(symbols["section"] == 0) & (symbols["name"] != 0)]:
            place = texts + int(symbol["name"])
            names.append(code[place : code.index(b"\0", place)].decode())
    return names


def stands_alone(code: bytes) -> bool:
    """Whether object code needs no symbol from outside, such as a ``memset`` of LLVM's own.

    The memory manager that keeps sections together has no room for links to such symbols.
    """
    return TOGETHER and not symbols_from_outside(code)


def missing_symbols(code: bytes) -> list[str]:
    """Names that a kernel's object code needs and that neither the process nor we provide."""
    ll = initialised_llvm()
    missing = []
    for name in symbols_from_outside(code):
        if f"@{name}(" in STAND_IN or ll.address_of_symbol(name):
            continue
        for library in (ctypes.pythonapi, c_library()):
            try:
                ll.add_symbol(name, ctypes.addressof(ctypes.c_byte.in_dll(library, name)))
                break
            except ValueError:  # not in this one
                continue
        else:
            missing.append(name)
    return missing


@cache
def c_library() -> ctypes.CDLL:
    """Return the library of elementary functions."""
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    return ctypes.CDLL(ctypes.util.find_library("m") or None)
