"""From a program to machine code through LLVM.

One LLVM instruction a node, in the order of the program. The code is a C function

- scalar: ``void f(double t, const double* y, const double* p, double* out)``;
- in L lanes: ``void f(const double* t, const double* y, const double* p, double* out)``, where
  component k of lane l is at ``[k*L + l]`` and t has L entries.

All inputs are read before anything is written: ``out`` may be ``y``.

Addition, subtraction and multiplication carry the ``contract`` flag: ``a*b + c`` may be rounded
once instead of twice (a fused multiply-add). A sum that cancels can therefore differ from
Python's by an ulp *of its largest term*; nothing else is reordered. Elementary functions in
scalar code are those of the C library; in lanes sin, cos, exp and log are our own vector code
(:mod:`.vectormath`), the others are called lane by lane. Scalar code takes the vector code too
where it needs several sines, cosines, exponentials or logarithms that do not wait for each other:
the angles of a robot arm.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import threading
from functools import cache
from typing import Any

import numpy as np

from ...kernels import cache as disk
from ...kernels.object_code import (
    TOGETHER,
    c_library,
    engine_of,
    initialised_llvm,
    shared_engine,
    stands_alone,
)
from ..errors import GraphTooLargeError
from ..graph import CONDITIONS, Program
from ..outside import CALL, RESULT
from . import vectormath
from .emitter import OUTSIDE, TABLE, Emitter

__all__ = [
    "CODE_VERSION",
    "LARGEST_GRAPH",
    "MachineCode",
    "compile_ir",
    "compile_program",
    "native_lanes",
]

#: Raise this when the code generator changes.
CODE_VERSION = 6

#: The same for what concerns code in lanes only.
LANES_VERSION = 1

#: Programs of more nodes are refused: LLVM would take minutes.
LARGEST_GRAPH = 200_000

#: LLVM's effort in generating code. Straight-line code comes out equally fast at 2 and 3, which
#: take twice as long.
CODE_GENERATION = 1

#: Constant results that are stored one by one; more are copied from a table.
MOST_CONSTANTS = 500

#: Calls of vector functions that are inlined. More gain nothing by it, and LLVM's time grows with
#: the square of their number: ten seconds for 800.
MOST_INLINED = 50

_lock = threading.Lock()


def emit_nodes(e: Emitter, program: Program, n: int) -> list[str]:
    """Write all nodes of a program; returns the value of each."""
    values = [""] * len(program)
    levels = _levels(program) if e.lanes == 1 else [0] * len(program)
    together: dict[int, list[int]] = {}  # elementary functions whose arguments are ready by then
    if e.lanes == 1:
        for j, op in enumerate(program.ops):
            if op in vectormath.FUNCTIONS:
                together.setdefault(levels[j], []).append(j)
    order = sorted(range(len(program)), key=lambda j: levels[j])  # stable: the program's otherwise

    def value(i: int) -> str:
        """Value of a node; an input is read where it is first used: no register waits with it."""
        if not values[i]:
            k = program.args[i][0]
            if k == 0:
                values[i] = e.time()
            else:
                values[i] = e.load("%y", k - 1) if k <= n else e.load("%p", k - 1 - n)
        return values[i]

    for j in order:
        op, a = program.ops[j], program.args[j]
        if levels[j] in together:
            group = together.pop(levels[j])
            wanted = [(program.ops[i], value(program.args[i][0])) for i in group]
            for i, found in zip(group, vectormath.call_together(e, wanted, native_lanes())):
                values[i] = found
        if values[j] or op == "input":
            continue
        if op == "const":
            values[j] = e.const(a[0])
        elif op.startswith(CALL):
            values[j] = e.call_address(int(op.split()[1]), *(value(i) for i in a))
        elif op.startswith(RESULT):
            values[j] = e.load(values[a[0]], int(op.split()[1]))
        else:
            args = [value(i) for i in a]
            if op in ("and", "or", "not") or op == "select":
                for m in range(len(a) if op != "select" else 1):
                    if program.ops[a[m]] not in CONDITIONS:  # a constant that was folded
                        args[m] = e.compare("une", args[m], e.const(0.0))
            values[j] = e.node(op, args)
    for o in program.outputs:
        value(o)
    return values


def _levels(program: Program) -> list[int]:
    """How many elementary functions lie between the inputs and each node, itself included."""
    levels: list[int] = []
    for op, a in zip(program.ops, program.args):
        below = 0 if op in ("const", "input") else max((levels[i] for i in a), default=0)
        levels.append(below + (op in vectormath.FUNCTIONS))
    return levels


def program_ir(program: Program, n: int, lanes: int, name: str) -> str:
    """Return the module of a program whose inputs are t, n states, then parameters."""
    e = Emitter(lanes)
    values = emit_nodes(e, program, n)
    constant = [program.ops[o] == "const" for o in program.outputs]
    filled = sum(constant) > MOST_CONSTANTS
    if filled:
        found = zip(constant, program.outputs)
        e.fill([program.args[o][0] if known else 0.0 for known, o in found], "%out")
    for k, o in enumerate(program.outputs):
        if not (filled and constant[k]):
            e.store(values[o], "%out", k)
    calls = sum(" @vector_" in line for line in e.lines)
    text = e.module(name)
    return text if calls <= MOST_INLINED else text.replace(" alwaysinline ", " noinline ")


# --- the compiler ---------------------------------------------------------------------------------


@cache
def _compiler() -> tuple[Any, Any, str]:
    """LLVM's binding, the target machine of this computer, and its description."""
    try:
        from llvmlite import __version__

        ll = initialised_llvm()
        features = ll.get_host_cpu_features().flatten()
        cpu = ll.get_host_cpu_name()
        machine = _machine(together=True)
    except (ImportError, OSError, RuntimeError) as error:
        raise RuntimeError(
            f"machine code cannot be made on this computer ({error}). Remedy: leave the function "
            "untraced."
        ) from error
    description = (
        f"{__version__} {ll.get_default_triple()} {cpu} {features} {CODE_GENERATION} {TOGETHER}"
    )
    return ll, machine, description


def _machine(together: bool) -> Any:
    """Return LLVM's description of this computer.

    With code and constants together, short addresses reach the constants: a fifth faster than what
    is usual for code made at run time, which may end up anywhere in memory (see `_loaded`).
    """
    from llvmlite import binding as ll

    return ll.Target.from_default_triple().create_target_machine(
        cpu=ll.get_host_cpu_name(),
        features=ll.get_host_cpu_features().flatten(),
        opt=CODE_GENERATION,
        **({"codemodel": "small", "reloc": "pic"} if together and TOGETHER else {}),
    )


@cache
def _outside_addresses() -> Any:
    """Table of the C library's functions."""
    return (ctypes.c_void_p * len(OUTSIDE))(*(_address_of(name) for name in OUTSIDE))


def _address_of(name: str) -> int:
    library = c_library()
    if not hasattr(library, name):  # malloc and free are not in a separate libm
        library = ctypes.CDLL(None)
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def native_lanes() -> int:
    """How many doubles one vector register of this CPU holds: 8, 4 or 2."""
    from llvmlite import binding as ll

    features = ll.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2


class MachineCode:
    """A compiled function.

    Attributes
    ----------
    address : int
        Where the code is; valid as long as this object lives.
    lanes : int
        1 for scalar code.
    size : int
        How many numbers it writes (in each lane).
    function : ctypes function
        Takes addresses instead of arrays.
    """

    def __init__(self, address: int, lanes: int, size: int, engine: Any) -> None:
        self.address = address
        self.lanes = lanes
        self.size = size
        self._engine = engine  # owns the memory of the code
        first = ctypes.c_double if lanes == 1 else ctypes.c_void_p
        self.function = ctypes.CFUNCTYPE(
            None, first, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(address)

    def __call__(self, t: Any, y: Any, p: Any = (), out: np.ndarray | None = None) -> np.ndarray:
        """Evaluate: scalars ``(t, y[n], p[k])``, or in lanes ``(t[L], y[n, L], p[k, L])``."""
        y = np.ascontiguousarray(y, dtype=np.float64)
        p = np.ascontiguousarray(p, dtype=np.float64)
        if self.lanes == 1:
            if out is None:
                out = np.empty(self.size)
            self.function(t, y.ctypes.data, p.ctypes.data, out.ctypes.data)
            return out
        times = np.ascontiguousarray(np.broadcast_to(np.asarray(t, dtype=float), (self.lanes,)))
        if out is None:
            out = np.empty((self.size, self.lanes))
        self.function(times.ctypes.data, y.ctypes.data, p.ctypes.data, out.ctypes.data)
        return out

    def __repr__(self) -> str:
        return f"MachineCode(address={self.address:#x}, lanes={self.lanes}, size={self.size})"


def compile_ir(
    source: Any, identity: str, lanes: int, size: int, speed_level: int, side_by_side: bool = False
) -> MachineCode:
    """Machine code of a module, from disk if it is there.

    Parameters
    ----------
    source
        A function of the symbol's name that returns the IR; called only if needed.
    identity
        What determines the code besides CPU and compiler.
    lanes, size
        For :class:`MachineCode`.
    speed_level
        LLVM's optimisation level for its middle end.
    side_by_side
        Let LLVM look for equal operations on neighbours in memory, and make vectors of them.
    """
    with _lock:
        ll, machine, description = _compiler()
        version = f"{CODE_VERSION}.{LANES_VERSION}" if lanes > 1 else CODE_VERSION
        key = hashlib.sha256(
            f"{version} {description} {identity} {lanes} {speed_level + side_by_side}".encode()
        ).hexdigest()[:40]
        name = f"featherstep_{key}"
        code = disk.load(key)
        if code is not None:
            try:
                with disk.loading(key):
                    engine, address = _loaded(code, name)
                if address:
                    return MachineCode(address, lanes, size, engine)
            except (ValueError, RuntimeError, struct.error):
                pass
            disk.forget(key, "it lacks its function")
        # Several modules share an engine, so that what they define bears their name.
        text = source(name).replace(f"@{TABLE}", f"@{name}_{TABLE}")
        module = ll.parse_assembly(text)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        if speed_level > 0 or "alwaysinline" in text:
            _optimise(ll, machine, module, speed_level, side_by_side)
        code = machine.emit_object(module)
        if not stands_alone(code):
            code = _machine(together=False).emit_object(module)
        disk.store(key, code)
        engine, address = _loaded(code, name)
        return MachineCode(address, lanes, size, engine)


def _optimise(ll: Any, machine: Any, module: Any, speed_level: int, side_by_side: bool) -> None:
    """Run LLVM's middle end; each time it keeps some kilobytes for itself."""
    options = ll.create_pipeline_tuning_options(speed_level=speed_level)
    options.loop_vectorization = speed_level > 1
    options.slp_vectorization = side_by_side
    passes = ll.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


def _loaded(code: bytes, name: str) -> tuple[Any, int]:
    """Bring code into memory: the engine that owns it, and the address of the function ``name``."""
    engine = shared_engine(code) if stands_alone(code) else engine_of(code)
    if table := engine.get_global_value_address(f"{name}_{TABLE}"):
        addresses = _outside_addresses()
        ctypes.memmove(table, addresses, ctypes.sizeof(addresses))
    return engine, engine.get_function_address(name)


def compile_program(program: Program, n: int, lanes: int = 1) -> MachineCode:
    """Machine code of a program whose inputs are t, n states, then parameters.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> code = compile_program(trace(lambda t, y, p: y * p[0] + t, (), 2, 1), n=2)
    >>> code(1.0, [3.0, 4.0], [10.0])
    array([31., 41.])
    """
    if not isinstance(lanes, int) or lanes not in (1, 2, 4, 8, 16):
        raise ValueError(f"lanes must be 1, 2, 4, 8 or 16, got {lanes!r}")
    check_size(len(program))
    # The graph leaves the middle end nothing to do, except around our vector functions.
    inlined = lanes > 1 and not vectormath.FUNCTIONS.isdisjoint(program.ops)
    # Around calls, components lie side by side in memory: sums over them become vectors.
    around = lanes == 1 and any(op.startswith(CALL) for op in program.ops)
    return compile_ir(
        lambda name: program_ir(program, n, lanes, name),
        f"program {n} {program.digest}",
        lanes,
        len(program.outputs),
        speed_level=2 if around else int(inlined),
        side_by_side=around,
    )


def check_size(nodes: int) -> None:
    """Refuse graphs that LLVM would chew on for minutes."""
    if nodes > LARGEST_GRAPH:
        raise GraphTooLargeError(
            f"the graph has {nodes:,} nodes; machine code is made for at most {LARGEST_GRAPH:,}. "
            "Remedy: leave the function untraced (for mechanisms, the generic kernels serve "
            "models of any size)."
        )
