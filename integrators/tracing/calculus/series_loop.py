"""Taylor coefficients of large systems: LLVM code with loops over the order.

Straight-line code of all coefficients grows with the square of the order. Here the recurrences
of :mod:`.series` are written once, inside a loop over the order j, and their sums become calls of
two small functions

    dot(a, b, first, last, j) = Σ_{k=first}^{last} a_k b_{j−k},   wdot: the same with a factor k,

so the code has the size of the graph. Coefficients live in a work array, node after node.
"""

from __future__ import annotations

from ..errors import GraphTooLargeError
from ..graph import CONDITIONS, Program
from ..llvm.codegen import MachineCode, check_size, compile_ir
from ..llvm.emitter import Emitter
from .series import coefficient, lower

__all__ = ["Looped", "compile_series"]

#: Work arrays up to this many bytes live on the stack, larger ones on the heap.
LARGEST_ON_STACK = 64 * 1024
LARGEST_WORK = 1 << 30


class Looped:
    """Writes the series code of one program (implements the verbs of :mod:`.series`)."""

    def __init__(self, program: Program, n: int, order: int, lanes: int) -> None:
        self.low = lower(program, n)
        self.n, self.order = n, order
        self.e = Emitter(lanes)
        self.entry: list[str] = self.e.lines
        self.body: list[str] = []
        self.release = ""  # what gives memory back
        self.start: list[str] = []
        self.now: dict[int, str] = {}
        self.slot: dict[int, int] = {}
        self._reciprocals: dict[tuple[int, float], str] = {}
        low = self.low
        for i in [*range(len(low.ops)), *low.outputs]:
            if low.varying[i] or i in low.outputs:
                self.slot.setdefault(i, len(self.slot))
        self.stride = (order + 1) * lanes
        self.bytes = 8 * self.stride * len(self.slot)
        if self.bytes > LARGEST_WORK:
            raise GraphTooLargeError(
                f"the series needs {self.bytes:,} bytes for {len(self.slot):,} nodes at order "
                f"{order}. Remedy: lower the order, or leave the function untraced."
            )

    # --- the verbs ----------------------------------------------------------------------------

    def value(self, i: int) -> str:
        """Return the order-0 coefficient of node i."""
        return self.start[i]

    def coef(self, i: int) -> str:
        """Coefficient j of node i."""
        return self.now[i]

    def number(self, x: float) -> str:
        """Return a literal."""
        return self.e.const(x)

    def op(self, name: str, *xs: str) -> str:
        """Return an operation on coefficients."""
        return self.e.node(name, list(xs))

    def over_j(self, x: str) -> str:
        """Return x / j."""
        return self.e.mul(x, "%overj")

    def times_j(self, x: str) -> str:
        """Return x · j."""
        return self.e.mul(x, "%jreal")

    def reciprocal(self, i: int, factor: float) -> str:
        """Return factor / (order-0 coefficient), computed before the loop."""
        key = (i, factor)
        if key not in self._reciprocals:
            lines, self.e.lines = self.e.lines, self.entry
            self._reciprocals[key] = self.e.div(self.e.const(factor), self.value(i))
            self.e.lines = lines
        return self._reciprocals[key]

    def dot(self, a: int, b: int, first: int, last: int, weighted: bool) -> str:
        """Return the sum of [k] a_k b_(j−k) over k = first .. j + last."""
        top = "%j" if last == 0 else "%jless"
        name = "@wdot" if weighted else "@dot"
        return self.e.new(
            f"call {self.e.T} {name}(ptr {self.base(a)}, ptr {self.base(b)}, "
            f"i64 {first}, i64 {top}, i64 %j)"
        )

    # --- the code -----------------------------------------------------------------------------

    def base(self, i: int) -> str:
        """Return the address of coefficient 0 of node i."""
        offset = self.slot[i] * self.stride
        return self.e.new(f"getelementptr inbounds double, ptr %work, i64 {offset}")

    def _store(self, value: str, i: int, index: str) -> None:
        e = self.e
        at = e.new(f"getelementptr inbounds double, ptr {self.base(i)}, i64 {index}")
        e.do(f"store {e.T} {value}, ptr {at}, align 8")

    def _start(self) -> None:
        """Order 0, in the entry block."""
        e, low = self.e, self.low
        if self.bytes <= LARGEST_ON_STACK:
            e.do(f"%work = alloca [{self.bytes // 8} x double], align 32")
        else:
            self.release = e.outside("free")
            e.do(f"%work = call ptr {e.outside('malloc')}(i64 {self.bytes})")
        for i, (op, a) in enumerate(zip(low.ops, low.args)):
            if op == "const":
                value = e.const(a[0])
            elif op == "input":
                k = a[0]
                if k == 0:
                    value = e.time()
                else:
                    value = e.load("%y", k - 1) if k <= self.n else e.load("%p", k - 1 - self.n)
            else:
                args = [self.start[x] for x in a]
                for m in range({"and": 2, "or": 2, "not": 1, "select": 1}.get(op, 0)):
                    if low.ops[a[m]] not in CONDITIONS:
                        args[m] = e.compare("une", args[m], e.const(0.0))
                value = e.node(op, args)
            self.start.append(value)
            if i in self.slot:
                self._store(value, i, "0")
                if not low.varying[i]:  # a constant output: its higher coefficients are zero
                    for j in range(1, self.order + 1):
                        self._store(e.const(0.0), i, str(j * e.lanes))
        for k, s in enumerate(low.states):
            e.store(self.start[s], "%out", k)

    def _body(self) -> None:
        """Order j of everything, in the loop."""
        e, low = self.e, self.low
        e.lines = self.body
        T, L = e.T, e.lanes
        e.do("%jless = sub i64 %j, 1")
        e.do("%jone = sitofp i64 %j to double")
        splat = "%jone"
        if L > 1:
            first = e.new(f"insertelement {T} poison, double %jone, i64 0")
            splat = e.new(f"shufflevector {T} {first}, {T} poison, <{L} x i32> zeroinitializer")
        e.do(f"%jreal = fadd {T} {splat}, {e.const(-0.0)}")
        e.do(f"%overj = fdiv {T} {e.const(1.0)}, %jreal")
        e.do(f"%here = mul i64 %j, {L}")
        e.do(f"%before = mul i64 %jless, {L}")
        row = e.new(f"mul i64 %j, {self.n * L}")
        target = e.new(f"getelementptr inbounds double, ptr %out, i64 {row}")
        new = []
        for output in low.outputs:
            at = e.new(f"getelementptr inbounds double, ptr {self.base(output)}, i64 %before")
            new.append(self.over_j(e.new(f"load {T}, ptr {at}, align 8")))
        for k, (s, value) in enumerate(zip(low.states, new)):
            self.now[s] = value
            self._store(value, s, "%here")
            e.store(value, target, k)
        for i, op in enumerate(low.ops):
            if not low.varying[i] or i < self.n:
                continue
            if op == "input":
                first_order = e.new("icmp eq i64 %j, 1")
                one, zero = e.const(1.0), e.const(0.0)
                value = e.new(f"select i1 {first_order}, {T} {one}, {T} {zero}")
            else:
                value = coefficient(self, i)
            self.now[i] = value
            self._store(value, i, "%here")

    def module(self, name: str) -> str:
        """Return the whole module."""
        e = self.e
        self._start()
        self._body()
        release = [f"  call void {self.release}(ptr %work)"] if self.release else []
        lines = [
            *e.declarations.values(),
            _dot("dot", e, weighted=False),
            _dot("wdot", e, weighted=True),
            e.head(name),
            "entry:",
            *self.entry,
            "  br label %order",
            "order:",
            "  %j = phi i64 [ 1, %entry ], [ %jnext, %order ]",
            *self.body,
            "  %jnext = add i64 %j, 1",
            f"  %finished = icmp sgt i64 %jnext, {self.order}",
            "  br i1 %finished, label %exit, label %order",
            "exit:",
            *release,
            "  ret void",
            "}",
            "",
        ]
        return "\n".join(lines)


def _dot(name: str, e: Emitter, weighted: bool) -> str:
    """Return the function that adds up products of coefficients.

    ``reassoc`` lets LLVM use several partial sums: here the order of addition is ours to choose.
    """
    T, L = e.T, e.lanes
    lines = [
        f"define internal {T} @{name}(ptr nocapture readonly %a, ptr nocapture readonly %b, "
        "i64 %first, i64 %last, i64 %j) noinline nounwind {",
        "entry:",
        "  %none = icmp sgt i64 %first, %last",
        "  br i1 %none, label %exit, label %loop",
        "loop:",
        "  %k = phi i64 [ %first, %entry ], [ %knext, %loop ]",
        f"  %s = phi {T} [ {e.const(0.0)}, %entry ], [ %snext, %loop ]",
        f"  %ka = mul i64 %k, {L}",
        "  %jk = sub i64 %j, %k",
        f"  %kb = mul i64 %jk, {L}",
        "  %pa = getelementptr inbounds double, ptr %a, i64 %ka",
        "  %pb = getelementptr inbounds double, ptr %b, i64 %kb",
        f"  %x0 = load {T}, ptr %pa, align 8",
        f"  %y0 = load {T}, ptr %pb, align 8",
    ]
    factor = "%x0"
    if weighted:
        lines.append("  %kd = sitofp i64 %k to double")
        weight = "%kd"
        if L > 1:
            lines += [
                f"  %k0 = insertelement {T} poison, double %kd, i64 0",
                f"  %kv = shufflevector {T} %k0, {T} poison, <{L} x i32> zeroinitializer",
            ]
            weight = "%kv"
        lines.append(f"  %xw = fmul contract {T} %x0, {weight}")
        factor = "%xw"
    lines += [
        f"  %xy = fmul reassoc contract {T} {factor}, %y0",
        f"  %snext = fadd reassoc contract {T} %s, %xy",
        "  %knext = add i64 %k, 1",
        "  %end = icmp sgt i64 %knext, %last",
        "  br i1 %end, label %exit, label %loop",
        "exit:",
        f"  %r = phi {T} [ {e.const(0.0)}, %entry ], [ %snext, %loop ]",
        f"  ret {T} %r",
        "}",
    ]
    return "\n".join(lines)


def compile_series(program: Program, n: int, order: int, lanes: int = 1) -> MachineCode:
    """Machine code for the coefficients 0 .. order, with loops.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> code = compile_series(trace(lambda t, y: [y[0]], (), 1), n=1, order=4)
    >>> code(0.0, [24.0])
    array([24., 24., 12.,  4.,  1.])
    """
    check_size(len(program))
    return compile_ir(
        lambda name: Looped(program, n, order, lanes).module(name),
        f"series loop {n} {order} {program.digest}",
        lanes,
        (order + 1) * n,
        speed_level=2,
    )
