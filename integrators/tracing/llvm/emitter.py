"""LLVM IR as text, an instruction at a time.

Text is several times faster to make than objects, for thousands of instructions.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

from ..graph import UNARY
from . import vectormath

__all__ = ["OUTSIDE", "TABLE", "Emitter", "hexadecimal"]

_LIBM = sorted((set(UNARY) | {"pow", "atan2"}) - {"neg", "sqrt", "abs", "sign", "floor"})
_INTRINSIC = {
    "sqrt": "sqrt",
    "abs": "fabs",
    "floor": "floor",
    "min": "minimum",
    "max": "maximum",
}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
#: Functions of the C library that code may call, in the order of its table of their addresses.
OUTSIDE = (*_LIBM, "malloc", "free")
TABLE = "featherstep_outside"


def hexadecimal(x: float) -> str:
    """Return a double as LLVM writes it, exactly.

    Examples
    --------
    >>> hexadecimal(1.0)
    '0x3FF0000000000000'
    """
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Emitter:
    """Writes LLVM IR for one module: instructions of the current function, and declarations.

    Values are strings: ``%12`` or a literal constant. ``T`` is the type of a number: ``double``
    or a vector of lanes.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.T = "double" if lanes == 1 else f"<{lanes} x double>"
        self.B = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.shared: dict[str, str] = {}  # sine and cosine of a value, computed together
        self._numbers = itertools.count(1)

    def widened(self, lanes: int) -> Emitter:
        """Return a writer of vector instructions into the same function."""
        other = Emitter(lanes)
        other.lines, other.declarations = self.lines, self.declarations
        other._numbers = self._numbers
        return other

    def const(self, x: float) -> str:
        """Return a literal, the same in all lanes."""
        h = hexadecimal(x)
        if self.lanes == 1:
            return h
        return "<" + ", ".join([f"double {h}"] * self.lanes) + ">"

    def new(self, instruction: str) -> str:
        """Append an instruction; returns the name of its value."""
        name = f"%v{next(self._numbers)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a value."""
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{name}:")

    def add(self, a: str, b: str) -> str:
        """Return the sum a + b."""
        return self.new(f"fadd contract {self.T} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        """Return the difference a − b."""
        return self.new(f"fsub contract {self.T} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        """Return the product a · b."""
        return self.new(f"fmul contract {self.T} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        """Return the quotient a / b."""
        return self.new(f"fdiv {self.T} {a}, {b}")

    def neg(self, a: str) -> str:
        """Return the negative of a."""
        return self.new(f"fneg {self.T} {a}")

    def compare(self, predicate: str, a: str, b: str) -> str:
        """Return a floating-point comparison."""
        return self.new(f"fcmp {predicate} {self.T} {a}, {b}")

    def select(self, c: str, a: str, b: str) -> str:
        """Return the value a where c holds, b elsewhere."""
        return self.new(f"select {self.B} {c}, {self.T} {a}, {self.T} {b}")

    def intrinsic(self, name: str, *args: str) -> str:
        """Return a call of ``llvm.name`` on numbers."""
        suffix = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
        full = f"@llvm.{name}.{suffix}"
        self.declarations[full] = f"declare {self.T} {full}({', '.join([self.T] * len(args))})"
        return self.new(f"call {self.T} {full}({', '.join(f'{self.T} {a}' for a in args)})")

    def outside(self, name: str) -> str:
        """Return the address of a function of the C library.

        It stands in a table that is filled when the code is loaded: code that names no symbol
        outside itself can be put anywhere.
        """
        size = len(OUTSIDE)
        self.declarations["nothing"] = "!1 = !{}"
        self.declarations[TABLE] = f"@{TABLE} = dso_local global [{size} x ptr] zeroinitializer"
        place = f"getelementptr ([{size} x ptr], ptr @{TABLE}, i64 0, i64 {OUTSIDE.index(name)})"
        return self.new(f"load ptr, ptr {place}, align 8, !invariant.load !1")

    def libm(self, name: str, *args: str) -> str:
        """Return a call of the C library, lane by lane."""
        function = self.outside(name)
        if self.lanes == 1:
            return self._call(function, args)
        result = "poison"
        for l in range(self.lanes):
            parts = [self.new(f"extractelement {self.T} {a}, i64 {l}") for a in args]
            value = self._call(function, parts)
            result = self.new(f"insertelement {self.T} {result}, double {value}, i64 {l}")
        return result

    def _call(self, function: str, args: Sequence[str]) -> str:
        given = ", ".join(f"double {a}" for a in args)
        return self.new(f"call double {function}({given}) nounwind willreturn memory(none)")

    def call_address(self, place: int, t: str, *x: str) -> str:
        """Call the function whose address is parameter `place`; returns where its results are."""
        size = len(x) * self.lanes
        state, results = (self.new(f"alloca double, i64 {size}, align 64") for _ in range(2))
        for k, value in enumerate(x):
            self.store(value, state, k)
        time = f"double {t}"
        if self.lanes > 1:
            times = self.new(f"alloca double, i64 {self.lanes}, align 64")
            self.store(t, times, 0)
            time = f"ptr {times}"
        where = self.new(f"getelementptr inbounds double, ptr %p, i64 {place * self.lanes}")
        function = self.new(f"load ptr, ptr {where}, align 8")
        self.do(f"call void {function}({time}, ptr {state}, ptr %p, ptr {results})")
        return results

    def load(self, pointer: str, k: int) -> str:
        """Component k of an argument vector."""
        address = self.new(f"getelementptr inbounds double, ptr {pointer}, i64 {k * self.lanes}")
        return self.new(f"load {self.T}, ptr {address}, align 8")

    def store(self, value: str, pointer: str, k: int) -> None:
        """Set component k of the result vector."""
        address = self.new(f"getelementptr inbounds double, ptr {pointer}, i64 {k * self.lanes}")
        self.do(f"store {self.T} {value}, ptr {address}, align 8")

    def fill(self, constants: Sequence[float], pointer: str) -> None:
        """Set the whole result vector from a table.

        A Jacobian may have thousands of constant entries, and LLVM takes seconds over as many
        stores in one block.
        """
        size, T = len(constants), self.T
        numbers = ", ".join(f"double {hexadecimal(x)}" for x in constants)
        value, splat = "%x", ""
        if self.lanes > 1:
            value = "%all"
            splat = f"""
  %one = insertelement {T} poison, double %x, i64 0
  %all = shufflevector {T} %one, {T} poison, <{self.lanes} x i32> zeroinitializer"""
        self.declarations["fill"] = f"""\
@constants = private unnamed_addr constant [{size} x double] [{numbers}]
define private void @fill(ptr %out) noinline {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %from = getelementptr inbounds double, ptr @constants, i64 %i
  %x = load double, ptr %from, align 8{splat}
  %to = getelementptr inbounds {T}, ptr %out, i64 %i
  store {T} {value}, ptr %to, align 8
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, {size}
  br i1 %more, label %next, label %end
end:
  ret void
}}"""
        self.do(f"call void @fill(ptr {pointer})")

    def node(self, op: str, args: list[str]) -> str:
        """Return the value of an operation."""
        if op == "add":
            return self.add(*args)
        if op == "sub":
            return self.sub(*args)
        if op == "mul":
            return self.mul(*args)
        if op == "div":
            return self.div(*args)
        if op == "neg":
            return self.neg(*args)
        if op in _INTRINSIC:
            return self.intrinsic(_INTRINSIC[op], *args)
        if op in _COMPARE:
            return self.compare(_COMPARE[op], *args)
        if op in ("and", "or"):
            return self.new(f"{op} {self.B} {args[0]}, {args[1]}")
        if op == "not":
            return self.new(f"xor {self.B} {args[0]}, {self.all_true()}")
        if op == "select":
            return self.select(*args)
        if op == "sign":
            x, zero = args[0], self.const(0.0)
            below = self.select(self.compare("olt", x, zero), self.const(-1.0), x)
            return self.select(self.compare("ogt", x, zero), self.const(1.0), below)
        if self.lanes > 1 and op in vectormath.FUNCTIONS:
            return vectormath.call(self, op, args[0])
        return self.libm(op, *args)

    def all_true(self) -> str:
        """Return the condition that holds in all lanes."""
        return "true" if self.lanes == 1 else "<" + ", ".join(["i1 true"] * self.lanes) + ">"

    def head(self, name: str) -> str:
        """Return the first line of a function with the signature of this module."""
        t = "double %t" if self.lanes == 1 else "ptr nocapture readonly %t"
        return (
            f"define void @{name}({t}, ptr nocapture readonly %y, ptr nocapture readonly %p, "
            "ptr nocapture %out) nounwind {"
        )

    def time(self) -> str:
        """Return the value of the argument t."""
        return "%t" if self.lanes == 1 else self.load("%t", 0)

    def module(self, name: str) -> str:
        """Return the whole module: the function ``name`` and what it needs."""
        body = "\n".join([self.head(name), "entry:", *self.lines, "  ret void", "}"])
        return "\n".join([*self.declarations.values(), body, ""])
