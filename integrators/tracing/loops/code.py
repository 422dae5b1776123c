"""Machine code of families: a loop for each.

The results of a family go to places that are evenly spaced but for a few jumps (the ends of the
lines of a grid): a loop over stretches, and in it one over the components of a stretch. Operands
are found at a constant distance from the result, or evenly spaced as well, or by a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..llvm.codegen import MachineCode, check_size, compile_ir, emit_nodes
from ..llvm.emitter import Emitter, hexadecimal
from .program import LoopProgram
from .templates import Family, Slot, is_even

__all__ = ["compile_loops"]

#: Raise this when the code generator changes.
LOOPS_VERSION = 1


def compile_loops(program: LoopProgram) -> MachineCode:
    """Machine code of a program of loops, with the signature of all traced functions."""
    check_size(len(program))
    return compile_ir(
        lambda name: _module(program, name),
        f"loops {LOOPS_VERSION} {program.digest}",
        lanes=1,
        size=program.size,
        speed_level=2,
    )


class _LoopEmitter(Emitter):
    """Writes loops; inputs of a template are loaded from where its slots say."""

    def __init__(self, program: LoopProgram) -> None:
        super().__init__(1)
        self.program = program
        self.pointers = ["", "%y", "%p"]
        offset = 0
        for k, (_, length) in enumerate(program.regions[2:], start=2):
            if k > 2:
                self.pointers.append(self.new(f"getelementptr double, ptr %p, i64 {offset}"))
            offset += length
        self.pointers.append("%work")
        self.family: Any = None
        self.target = self.number = ""  # place of the result, and number of the component
        self.tables = 0

    def table(self, values: NDArray[Any]) -> str:
        """Return the name of an array of constants."""
        self.tables += 1
        name = f"@table{self.tables}"
        if values.dtype == float:
            text = ", ".join(f"double {hexadecimal(x)}" for x in values)
            kind = "double"
        else:
            text, kind = ", ".join(f"i64 {x}" for x in values), "i64"
        self.declarations[name] = (
            f"{name} = private unnamed_addr constant [{values.size} x {kind}] [{text}]"
        )
        return name

    def element(self, kind: str, pointer: str, index: str) -> str:
        """Load an element of an array."""
        address = self.new(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}")
        return self.new(f"load {kind}, ptr {address}, align 8")

    def load(self, pointer: str, k: int) -> str:
        """Input 1 + k of the template."""
        s: Slot = self.family.slots[k]
        places: Any = s.places
        if s.region < 0:
            return self.element("double", self.table(places), self.number)
        shift = places - self.family.target
        if np.all(shift == shift[0]):
            index = self.new(f"add i64 {self.target}, {shift[0]}")
        elif is_even(places):
            product = self.new(f"mul i64 {self.number}, {places[1] - places[0]}")
            index = self.new(f"add i64 {product}, {places[0]}")
        else:
            index = self.element("i64", self.table(places), self.number)
        return self.element("double", self.pointers[s.region], index)

    def loop(self, k: int, family: Family) -> None:
        """Write the loops of a family."""
        self.family, self.shared = family, {}
        target = family.target
        steps = np.diff(target)
        step = int(np.bincount(steps).argmax()) if steps.size else 1
        first = np.flatnonzero(np.r_[True, steps != step])
        stretches = np.stack([target[first], np.diff(np.r_[first, target.size]), first], axis=1)
        # A table of one row would hide its numbers from LLVM's middle end for no gain.
        rows = self.table(stretches.ravel())
        self.do(f"br label %before{k}")
        self.label(f"before{k}")
        self.do(f"br label %outer{k}")
        self.label(f"outer{k}")
        row = f"%row{k}"
        self.do(f"{row} = phi i64 [ 0, %before{k} ], [ %nextrow{k}, %rowend{k} ]")
        at = self.new(f"mul i64 {row}, 3")
        start = self.element("i64", rows, at)
        count = self.element("i64", rows, self.new(f"add i64 {at}, 1"))
        number = self.element("i64", rows, self.new(f"add i64 {at}, 2"))
        self.do(f"br label %inner{k}")
        self.label(f"inner{k}")
        i = f"%i{k}"
        self.do(f"{i} = phi i64 [ 0, %outer{k} ], [ %next{k}, %inner{k} ]")
        self.target = self.new(f"add i64 {start}, {self.new(f'mul i64 {i}, {step}')}")
        self.number = self.new(f"add i64 {number}, {i}")
        values = emit_nodes(self, family.template, len(family.slots))
        pointer = "%work" if family.is_kept else "%out"
        place = self.new(f"getelementptr inbounds double, ptr {pointer}, i64 {self.target}")
        self.do(f"store double {values[family.template.outputs[0]]}, ptr {place}, align 8")
        self.do(f"%next{k} = add i64 {i}, 1")
        self.do(f"%more{k} = icmp slt i64 %next{k}, {count}")
        self.do(f"br i1 %more{k}, label %inner{k}, label %rowend{k}")
        self.label(f"rowend{k}")
        self.do(f"%nextrow{k} = add i64 {row}, 1")
        self.do(f"%morerows{k} = icmp slt i64 %nextrow{k}, {len(stretches)}")
        self.do(f"br i1 %morerows{k}, label %outer{k}, label %after{k}")
        self.label(f"after{k}")


def _module(program: LoopProgram, name: str) -> str:
    """LLVM's code: all loops in a function that may assume its arrays are apart, and its caller.

    The caller brings the work array, and a copy of y where the results are to replace it.
    """
    body = _LoopEmitter(program)
    for k, family in enumerate(program.families):
        body.loop(k, family)
    states = program.regions[1][1]
    caller = Emitter(1)
    caller.declarations = body.declarations
    malloc, free = caller.outside("malloc"), caller.outside("free")
    size = 8 * (program.work + states)
    if program.work:
        memory = caller.new(f"call ptr {malloc}(i64 {size})")
        copy = caller.new(f"getelementptr double, ptr {memory}, i64 {program.work}")
    caller.do("%same = icmp eq ptr %y, %out")
    caller.do("br i1 %same, label %copied, label %apart")
    caller.label("apart")
    work = memory if program.work else "null"
    caller.do(f"call void @{name}_loops(double %t, ptr %y, ptr %p, ptr %out, ptr {work})")
    caller.do("br label %end")
    caller.label("copied")
    if not program.work:
        memory = copy = caller.new(f"call ptr {malloc}(i64 {size})")
    intrinsic = "@llvm.memcpy.p0.p0.i64"
    caller.declarations[intrinsic] = f"declare void {intrinsic}(ptr, ptr, i64, i1)"
    caller.do(f"call void {intrinsic}(ptr {copy}, ptr %y, i64 {8 * states}, i1 false)")
    caller.do(f"call void @{name}_loops(double %t, ptr {copy}, ptr %p, ptr %out, ptr {memory})")
    if not program.work:
        caller.do(f"call void {free}(ptr {memory})")
    caller.do("br label %end")
    caller.label("end")
    if program.work:
        caller.do(f"call void {free}(ptr {memory})")
    arguments = ("double %t", "ptr readonly %y", "ptr readonly %p", "ptr noalias %out")
    head = f"define private void @{name}_loops({', '.join(arguments)}, ptr noalias %work)"
    loops = "\n".join([f"{head} noinline nounwind {{", "entry:", *body.lines, "  ret void", "}"])
    return "\n".join([loops, caller.module(name)])
