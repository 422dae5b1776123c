"""Our vector sin, cos, exp and log against 40 digits."""

import mpmath
import numpy as np
import pytest

from integrators.tracing import trace
from integrators.tracing.graph import UNARY
from integrators.tracing.llvm import codegen as llvm
from integrators.tracing.llvm.vectormath import FUNCTIONS

# Half an ulp is the best possible; reduction and polynomial add about a quarter.
ULPS = 0.85


def arguments(op):
    rng = np.random.default_rng(12)
    if op == "log":
        return np.concatenate(
            [
                10.0 ** rng.uniform(-300, 300, 400),
                rng.uniform(0.5, 2.0, 400),
                1 + rng.normal(size=200) * 1e-6,
            ]
        )
    if op == "exp":
        return np.concatenate([rng.uniform(-708, 708, 600), rng.normal(size=400)])
    near_zeros = np.pi / 2 * rng.integers(-(10**6), 10**6, 300)
    spread = rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-10, 8.4, 400)
    return np.concatenate([rng.uniform(-10, 10, 300), near_zeros, spread])


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("op", sorted(FUNCTIONS))
def test_accuracy(op, lanes):
    x = arguments(op)
    assert len(x) % lanes == 0
    code = llvm.compile_program(trace(lambda t, y: UNARY[op](y[0]), (), 1), 1, lanes)
    got = np.concatenate([code(0.0, part[None, :])[0] for part in x.reshape(-1, lanes)])
    with mpmath.workdps(40):
        exact = [getattr(mpmath, op)(mpmath.mpf(float(v))) for v in x]
        error = [abs(mpmath.mpf(float(g)) - e) for g, e in zip(got, exact)]
    ulps = np.array([float(d) for d in error]) / np.spacing(np.abs([float(e) for e in exact]))
    assert ulps.max() <= ULPS


def test_one_lane_outside_the_range():
    """A huge or invalid lane sends all lanes to the C library; nobody is spoiled."""
    for op, odd in (("sin", 1e22), ("cos", np.inf), ("exp", 800.0), ("log", -1.0), ("log", 5e-324)):
        code = llvm.compile_program(trace(lambda t, y, op=op: UNARY[op](y[0]), (), 1), 1, 4)
        x = np.array([0.3, odd, 1.7, 0.9])
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(code(0.0, x[None, :])[0], UNARY[op](x), rtol=1e-15)


def test_sine_and_cosine_are_computed_together():
    text = llvm.program_ir(trace(lambda t, y: [np.sin(y[0]), np.cos(y[0])], (), 1), 1, 4, "f")
    body = text[text.index("@f(") :]
    assert body.count("@vector_sincos") == 1


@pytest.mark.parametrize("lanes", [1, 8])
def test_many_calls_are_not_inlined(lanes, monkeypatch):
    """LLVM would take minutes for some thousand of them; the values are the same to the bit."""

    def sums(t, y):
        return [sum(np.sin((k + 1) * y[0]) * np.exp(-k * y[0]) for k in range(5))]

    program = trace(sums, (), 1)
    y = np.linspace(0.1, 1.0, lanes)[None, :] if lanes > 1 else [0.3]
    found = []
    for most in (4, 50):
        monkeypatch.setattr(llvm, "MOST_INLINED", most if lanes == 8 else most // 4)
        text = llvm.program_ir(program, 1, lanes, "f")
        assert ("alwaysinline" in text) == (most == 50)
        code = llvm.compile_ir(
            lambda name: llvm.program_ir(program, 1, lanes, name),
            f"inlined {most}",
            lanes,
            1,
            speed_level=1,
        )
        found.append(code(0.0, y))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(np.ravel(found[0])[-1], sums(0.0, [np.ravel(y)[-1]])[0], rtol=1e-14)
