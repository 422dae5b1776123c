"""A whole explicit step as vector code around calls of f.

Where a right-hand side is too large to be traced into one step (``fused``), the step still need not
be a loop over a tableau: this writes it out, coefficients as constants, zeros left out, components
side by side in vector registers, with a call of f's machine code for each stage. The code depends
on the tableau and the sizes only; f comes as an address. Arguments and results are those of
``fused``; the address of f follows h as the bits of one more argument.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...tableau import Tableau
from ...tracing.llvm.codegen import MachineCode, compile_ir, native_lanes
from ...tracing.llvm.emitter import Emitter
from .fused import LOW_WEIGHT

__all__ = ["LARGEST_STEP", "step_code"]

#: Vector instructions for sums; a tableau with more, or a longer state, is left to the loop.
LARGEST_STEP = 20_000


def step_code(tableau: Tableau, n: int, k: int, max_norm: bool) -> MachineCode | None:
    """Machine code for steps of a tableau with n states and k parameters; None if too large.

    The function takes (t, y, q, out): q = (p, rtol, atol, f(t, y), h, address of f) and out =
    (norm, y_new, K₁ … K_s). Only FSAL methods are given f(t, y); the others evaluate it.
    """
    width = native_lanes()
    sums = np.count_nonzero(tableau.arrays[0]) + 4 * tableau.stages
    if sums * (n // width + 3) > LARGEST_STEP:
        return None
    writer = _StepWriter(tableau, n, k, max_norm, width)
    parts = [*tableau.arrays, tableau.error_weights, tableau.low_error_weights]
    numbers = hashlib.sha256(b"|".join(np.asarray(x).tobytes() for x in parts if x is not None))
    return compile_ir(
        writer.module,
        f"step {numbers.hexdigest()} {tableau.fsal} {n} {k} {max_norm} {width}",
        lanes=1,
        size=1 + n + tableau.stages * n,
        speed_level=0,
    )


class _StepWriter:
    """Writes the step; vectors are pairs (pointer, place of their first component)."""

    def __init__(self, tableau: Tableau, n: int, k: int, max_norm: bool, width: int) -> None:
        self.tableau, self.n, self.k, self.max_norm = tableau, n, k, max_norm
        self.e = Emitter(1)
        self.chunks = []  # (first component, writer of that many lanes)
        first = 0
        while first < n:
            lanes = next(w for w in (width, 2, 1) if first + w <= n)
            self.chunks.append((first, self.e.widened(lanes)))
            first += lanes

    def module(self, name: str) -> str:
        e, n, k, tableau = self.e, self.n, self.k, self.tableau
        A, b, c = tableau.arrays
        s = tableau.stages
        y, x = ("%y", 0), (e.new(f"alloca double, i64 {n}, align 32"), 0)
        stages = [("%out", 1 + n + i * n) for i in range(s)]
        h = e.load("%p", k + 1 + 2 * n)
        address = e.new(f"getelementptr inbounds double, ptr %p, i64 {k + 2 + 2 * n}")
        f = e.new(f"load ptr, ptr {address}, align 8")

        def slope(t: str, state: tuple[str, int], i: int) -> None:
            into = self.pointer(stages[i])
            e.do(f"call void {f}(double {t}, ptr {self.pointer(state)}, ptr %p, ptr {into})")

        if tableau.fsal:
            for first, v in self.chunks:
                self.store(v, self.load(v, ("%p", k + 1 + n), first), stages[0], first)
        else:
            slope("%t", y, 0)
        for i in range(1, s):
            self.advance(y, h, A[i, :i], stages, x)
            slope(e.add("%t", e.mul(e.const(c[i]), h)), x, i)
        self.advance(y, h, b, stages, ("%out", 1))
        norm = self.norm(h, stages)
        e.store(norm, "%out", 0)
        return e.module(name)

    # ------------------------------------------------------------------ parts

    def advance(
        self,
        y: tuple[str, int],
        h: str,
        weights: NDArray[Any],
        stages: Sequence[tuple[str, int]],
        to: tuple[str, int],
    ) -> None:
        """to = y + h Σ weights·K."""
        for first, v in self.chunks:
            total = self.combination(v, weights, stages, first)
            value = self.load(v, y, first)
            if total is not None:
                value = v.add(value, v.mul(self.spread(v, h), total))
            self.store(v, value, to, first)

    def norm(self, h: str, stages: Sequence[tuple[str, int]]) -> str:
        """Norm of the error estimate, as in ``common.error_norm`` and ``loop.measured_error``."""
        e, tableau = self.e, self.tableau
        if tableau.error_weights is None:
            return e.const(0.0)
        squares = self.mean_square(h, tableau.error_weights, stages)
        if tableau.low_error_weights is None:
            return e.intrinsic("sqrt", squares)
        low = self.mean_square(h, tableau.low_error_weights, stages)
        both = e.intrinsic("sqrt", e.add(squares, e.mul(e.const(LOW_WEIGHT), low)))
        none = e.compare("oeq", squares, e.const(0.0))
        return e.select(none, squares, e.div(squares, both))

    def mean_square(self, h: str, weights: NDArray[Any], stages: Sequence[tuple[str, int]]) -> str:
        e, k, n = self.e, self.k, self.n
        rtol = e.load("%p", k)
        together = None
        for first, v in self.chunks:
            total = self.combination(v, weights, stages, first)
            sizes = [
                v.intrinsic("fabs", self.load(v, start, first))
                for start in (("%y", 0), ("%out", 1))
            ]
            largest = v.intrinsic("maximum", *sizes)
            atol = self.load(v, ("%p", k + 1), first)
            allowed = v.add(atol, v.mul(self.spread(v, rtol), largest))
            scaled = v.div(v.mul(self.spread(v, h), total or v.const(0.0)), allowed)
            square = v.mul(scaled, scaled)
            for l in range(v.lanes):
                part = square
                if v.lanes > 1:
                    part = e.new(f"extractelement {v.T} {square}, i64 {l}")
                if together is None:
                    together = part
                elif self.max_norm:
                    together = e.intrinsic("maximum", together, part)
                else:
                    together = e.add(together, part)
        assert together is not None
        return together if self.max_norm else e.mul(together, e.const(1.0 / n))

    def combination(
        self, v: Emitter, weights: NDArray[Any], stages: Sequence[tuple[str, int]], first: int
    ) -> str | None:
        """Σ weights·K for one chunk of components; None if all weights are zero."""
        total = None
        for a, stage in zip(weights, stages):
            if a != 0:
                term = v.mul(v.const(float(a)), self.load(v, stage, first))
                total = term if total is None else v.add(total, term)
        return total

    # ------------------------------------------------------------------ memory

    def pointer(self, vector: tuple[str, int], first: int = 0) -> str:
        base, place = vector
        return self.e.new(f"getelementptr inbounds double, ptr {base}, i64 {place + first}")

    def load(self, v: Emitter, vector: tuple[str, int], first: int) -> str:
        return v.new(f"load {v.T}, ptr {self.pointer(vector, first)}, align 8")

    def store(self, v: Emitter, value: str, vector: tuple[str, int], first: int) -> None:
        v.do(f"store {v.T} {value}, ptr {self.pointer(vector, first)}, align 8")

    def spread(self, v: Emitter, x: str) -> str:
        """Return a number in all lanes."""
        if v.lanes == 1:
            return x
        one = v.new(f"insertelement {v.T} poison, double {x}, i64 0")
        return v.new(f"shufflevector {v.T} {one}, {v.T} poison, <{v.lanes} x i32> zeroinitializer")
