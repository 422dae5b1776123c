r"""sin, cos, exp and log as vector code, for simulations in SIMD lanes.

Each function reduces its argument to a small interval and sums a Taylor polynomial there, with
fused multiply-adds, to within about one ulp:

- sin and cos together: x = n·π/2 + r with π/2 in three parts (Cody and Waite 1980), |r| ≤ π/4, r
  as a sum of two doubles; then the quadrant n mod 4 selects and signs the two polynomials;
- exp: x = n·ln 2 + r, |r| ≤ ln(2)/2, and the factor 2ⁿ is put into the exponent bits;
- log: x = 2ᵉ·m with √½ ≤ m ≤ √2 and log m = 2 artanh(s), s = (m − 1)/(m + 1).

Lanes outside the range where this holds (huge arguments, overflow, zero or negative numbers for
log, NaN) take the C library's function: correct, rare, slower. The others keep their values, so
that no run depends on which runs are beside it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["FUNCTIONS", "call", "call_together"]

#: The operations that have vector code.
FUNCTIONS = frozenset({"sin", "cos", "exp", "log"})

HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
LOG2 = (0.6931471805599453, 2.3190468138462996e-17)
#: ln 2 cut to 32 bits, so that its product with an exponent is exact, and the rest.
LOG2_SHORT = (0.6931471803691238, 1.9082149292705877e-10)
#: n = x·2/π stays exact in the reduction, and in 32 bits, up to here.
LARGEST_ANGLE = 2.0**28
LARGEST_EXPONENT = 708.0
SMALLEST_NORMAL = 2.0**-1022

# Taylor coefficients; the first omitted term is below 2⁻⁵⁸ of the sum on the reduced interval.
SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9)]
COS = [(-1) ** k / math.factorial(2 * k) for k in range(2, 10)]
EXP = [1.0 / math.factorial(k) for k in range(2, 14)]
ARTANH = [2.0 / (2 * k + 1) for k in range(1, 12)]


def call(e: Emitter, op: str, x: str) -> str:
    """Write a call of the vector function; sin and cos of one argument share their work."""
    if op in ("sin", "cos"):
        pair = e.shared.get(x)
        if pair is None:
            _define(e, "sincos", _sincos, ("sin", "cos"))
            pair = e.shared[x] = e.new(f"call {_pair(e)} @vector_sincos_{e.lanes}({e.T} {x})")
        return e.new(f"extractvalue {_pair(e)} {pair}, {0 if op == 'sin' else 1}")
    _define(e, op, _exp if op == "exp" else _log, (op,))
    return e.new(f"call {e.T} @vector_{op}_{e.lanes}({e.T} {x})")


def call_together(e: Emitter, wanted: list[tuple[str, str]], width: int) -> list[str]:
    """Write scalar code for many (op, x), `width` arguments at a time; returns their values.

    An argument that is left over, or alone, takes the C library's functions.
    """
    values: dict[tuple[str, str], str] = {}
    for ops in (("sin", "cos"), ("exp",), ("log",)):
        arguments = list(dict.fromkeys(x for op, x in wanted if op in ops))
        for first in range(0, len(arguments), width):
            few = arguments[first : first + width]
            if len(few) == 1:
                break
            lanes = 2 if len(few) == 2 else width
            vector = e.widened(lanes)
            packed = "poison"
            for l in range(lanes):
                x = few[min(l, len(few) - 1)]
                packed = e.new(f"insertelement {vector.T} {packed}, double {x}, i64 {l}")
            for op in ops:
                if any((op, x) in wanted for x in few):
                    result = call(vector, op, packed)
                    for l, x in enumerate(few):
                        values[op, x] = e.new(f"extractelement {vector.T} {result}, i64 {l}")
    return [values[key] if key in values else e.libm(*key) for key in wanted]


def _pair(e: Emitter) -> str:
    return f"{{ {e.T}, {e.T} }}"


def _define(e: Emitter, name: str, body: object, slow: tuple[str, ...]) -> None:
    """Add the vector function and its slow path to the module, once."""
    key = f"@vector_{name}_{e.lanes}"
    if key in e.declarations:
        return
    inner = type(e)(e.lanes)
    inner.declarations = e.declarations
    result = _pair(e) if len(slow) == 2 else e.T
    for op in slow:
        library = type(e)(e.lanes)
        library.declarations = e.declarations
        value = library.libm(op, "%x")
        e.declarations[f"@slow_{op}_{e.lanes}"] = "\n".join(
            [
                f"define internal {e.T} @slow_{op}_{e.lanes}({e.T} %x) noinline cold nounwind {{",
                *library.lines,
                f"  ret {e.T} {value}",
                "}",
            ]
        )
    assert callable(body)
    fast = body(inner)
    outside = inner.new(f"call i1 @llvm.vector.reduce.or.v{e.lanes}i1({e.B} {fast[0]})")
    e.declarations[f"reduce {e.lanes}"] = (
        f"declare i1 @llvm.vector.reduce.or.v{e.lanes}i1(<{e.lanes} x i1>)"
    )
    inner.do(f"br i1 {outside}, label %slow, label %fast, !prof !0")
    inner.label("fast")
    inner.do(f"ret {result} {_pack(inner, fast[1:])}")
    inner.label("slow")
    careful = [inner.new(f"call {e.T} @slow_{op}_{e.lanes}({e.T} %x)") for op in slow]
    rare = [inner.select(fast[0], c, value) for c, value in zip(careful, fast[1:])]
    inner.do(f"ret {result} {_pack(inner, rare)}")
    e.declarations["profile"] = '!0 = !{!"branch_weights", i32 1, i32 1000000}'
    e.declarations[key] = "\n".join(
        [f"define internal {result} {key}({e.T} %x) alwaysinline nounwind {{", *inner.lines, "}"]
    )


def _pack(e: Emitter, values: list[str]) -> str:
    if len(values) == 1:
        return values[0]
    first = e.new(f"insertvalue {_pair(e)} poison, {e.T} {values[0]}, 0")
    return e.new(f"insertvalue {_pair(e)} {first}, {e.T} {values[1]}, 1")


def _fma(e: Emitter, a: str, b: str, c: str) -> str:
    return e.intrinsic("fma", a, b, c)


def _horner(e: Emitter, x: str, coefficients: list[float]) -> str:
    value = e.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = _fma(e, value, x, e.const(c))
    return value


def _sub(e: Emitter, a: str, b: str) -> str:
    """Subtract exactly as written: no contraction inside error terms."""
    return e.new(f"fsub {e.T} {a}, {b}")


def _reduced(e: Emitter, scale: float, parts: tuple[float, ...]) -> tuple[str, str, str]:
    """Return n, r, δ with x = n·(parts) + r + δ, n the nearest integer to x·scale."""
    n = e.intrinsic("rint", e.mul("%x", e.const(scale)))
    minus = e.neg(n)
    exact = _fma(e, minus, e.const(parts[0]), "%x")  # no rounding: both are multiples of an ulp
    # exact − n·parts[1] without loss: product and difference each as a value and its error
    w = e.new(f"fmul {e.T} {n}, {e.const(parts[1])}")
    w_rest = _fma(e, n, e.const(parts[1]), e.neg(w))
    r = _sub(e, exact, w)
    moved = _sub(e, r, exact)
    rest = _sub(e, _sub(e, exact, _sub(e, r, moved)), e.new(f"fadd {e.T} {w}, {moved}"))
    rest = _sub(e, rest, w_rest)
    if len(parts) == 3:
        rest = _fma(e, minus, e.const(parts[2]), rest)
    return n, r, rest


def _sincos(e: Emitter) -> list[str]:
    outside = e.compare("ugt", e.intrinsic("fabs", "%x"), e.const(LARGEST_ANGLE))
    n, r, rest = _reduced(e, 2.0 / math.pi, HALF_PI)
    z = e.mul(r, r)
    half = e.mul(z, e.const(0.5))
    w = _sub(e, e.const(1.0), half)
    # sin(r + δ) = r + (r³·S(r²) + δ·(1 − r²/2))
    tail = _fma(e, e.mul(r, z), _horner(e, z, SIN), e.mul(rest, w))
    sine = e.new(f"fadd {e.T} {r}, {tail}")
    # cos(r + δ) = w + ((1 − w) − r²/2 + (r⁴·C(r²) − r·δ)), w = 1 − r²/2 rounded
    lost = _sub(e, _sub(e, e.const(1.0), w), half)
    tail = _fma(e, e.mul(z, z), _horner(e, z, COS), _fma(e, e.neg(r), rest, lost))
    cosine = e.new(f"fadd {e.T} {w}, {tail}")
    return [outside, *_quadrant(e, n, sine, cosine)]


def _quadrant(e: Emitter, n: str, sine: str, cosine: str) -> tuple[str, str]:
    """Turn (sin r, cos r) by n right angles."""
    integers = f"<{e.lanes} x i32>"

    def bits(value: int) -> str:
        return "<" + ", ".join([f"i32 {value}"] * e.lanes) + ">"

    q = e.new(f"fptosi {e.T} {n} to {integers}")
    odd = e.new(f"trunc {integers} {q} to {e.B}")
    second = e.new(f"and {integers} {q}, {bits(2)}")
    following = e.new(f"add {integers} {q}, {bits(1)}")
    third = e.new(f"and {integers} {following}, {bits(2)}")
    s, c = e.select(odd, cosine, sine), e.select(odd, sine, cosine)
    sine_down = e.new(f"icmp ne {integers} {second}, zeroinitializer")
    cosine_down = e.new(f"icmp ne {integers} {third}, zeroinitializer")
    return e.select(sine_down, e.neg(s), s), e.select(cosine_down, e.neg(c), c)


def _exp(e: Emitter) -> list[str]:
    outside = e.compare("ugt", e.intrinsic("fabs", "%x"), e.const(LARGEST_EXPONENT))
    n, r, rest = _reduced(e, 1.0 / LOG2[0], LOG2)
    # e^(r + δ) = 1 + (r + (r²·E(r) + δ))
    tail = _fma(e, e.mul(r, r), _horner(e, r, EXP), rest)
    value = e.new(f"fadd {e.T} {e.const(1.0)}, {e.new(f'fadd {e.T} {r}, {tail}')}")
    long = f"<{e.lanes} x i64>"
    exponent = e.new(f"fptosi {e.T} {n} to <{e.lanes} x i32>")
    wide = e.new(f"sext <{e.lanes} x i32> {exponent} to {long}")
    shift = e.new(f"shl {long} {wide}, <{', '.join(['i64 52'] * e.lanes)}>")
    bits = e.new(f"bitcast {e.T} {value} to {long}")
    return [outside, e.new(f"bitcast {long} {e.new(f'add {long} {bits}, {shift}')} to {e.T}")]


def _log(e: Emitter) -> list[str]:
    long, short = f"<{e.lanes} x i64>", f"<{e.lanes} x i32>"

    def every(value: int, kind: str = "i64") -> str:
        return "<" + ", ".join([f"{kind} {value}"] * e.lanes) + ">"

    low = e.compare("ult", "%x", e.const(SMALLEST_NORMAL))
    high = e.compare("ugt", "%x", e.const(1.7976931348623157e308))
    outside = e.new(f"or {e.B} {low}, {high}")
    bits = e.new(f"bitcast {e.T} %x to {long}")
    # exponent relative to √½: subtracting the bits of √½ carries into the exponent field
    shifted = e.new(f"sub {long} {bits}, {every(0x3FE6A09E667F3BCD)}")
    power = e.new(f"ashr {long} {shifted}, {every(52)}")
    lifted = e.new(f"shl {long} {power}, {every(52)}")
    m = e.new(f"bitcast {long} {e.new(f'sub {long} {bits}, {lifted}')} to {e.T}")
    k = e.new(f"sitofp {short} {e.new(f'trunc {long} {power} to {short}')} to {e.T}")
    f = _sub(e, m, e.const(1.0))
    s = e.div(f, e.new(f"fadd {e.T} {f}, {e.const(2.0)}"))
    z = e.mul(s, s)
    series = e.mul(z, _horner(e, z, ARTANH))
    half = e.new(f"fmul {e.T} {e.new(f'fmul {e.T} {f}, {e.const(0.5)}')}, {f}")
    # log m = f − (f²/2 − s·(f²/2 + R)); the large terms are added last
    tail = _fma(e, s, e.new(f"fadd {e.T} {half}, {series}"), e.mul(k, e.const(LOG2_SHORT[1])))
    small = _sub(e, f, _sub(e, half, tail))
    return [outside, _fma(e, k, e.const(LOG2_SHORT[0]), small)]
