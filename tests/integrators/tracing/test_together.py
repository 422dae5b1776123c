"""Scalar code computes independent sines, cosines, exponentials and logarithms as vectors."""

import numpy as np
import pytest

from integrators import traced
from integrators.tracing.llvm.codegen import native_lanes, program_ir


def expected_and_found(f, y):
    return f(0.0, y), traced(f, n=len(y))(0.0, y)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 17])
def test_any_number_of_arguments(n):
    def f(t, y):
        return np.sin(y) * np.cos(y[::-1]) + np.exp(-y) + np.log(2.0 + y * y)

    rng = np.random.default_rng(n)
    for scale in (1.0, 1e3):
        y = scale * rng.uniform(-0.5, 0.5, n)
        a, b = expected_and_found(f, y)
        size = 1.0 + np.exp(-y) + np.log(2.0 + y * y)
        assert (np.abs(a - b) <= 4e-16 * size).all()


def test_functions_of_functions_wait_for_each_other():
    def f(t, y):
        inner = np.sin(y)
        outer = np.cos(inner + y[::-1])
        return np.exp(outer) * np.log(3.0 + inner)

    a, b = expected_and_found(f, np.linspace(-2.0, 3.0, 6))
    np.testing.assert_allclose(b, a, rtol=1e-15)


def test_one_huge_or_undefined_argument_does_not_spoil_the_others():
    y = np.array([0.3, 1e12, -0.7, np.nan, np.inf])
    with np.errstate(invalid="ignore"):
        a, b = expected_and_found(lambda t, y: np.sin(y) + np.cos(y), y)
    np.testing.assert_allclose(b[:3], a[:3], rtol=1e-15)
    assert np.isnan(b[3:]).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.array([0.0, 2.0, -1.0, 1e-310])
        a, b = expected_and_found(lambda t, y: np.log(y), y)
    np.testing.assert_allclose(b, a, rtol=1e-15)


def test_one_call_serves_a_whole_vector():
    f = traced(lambda t, y: np.sin(y) + np.cos(y), n=4)
    lines = program_ir(f.graph, 4, 1, "f").splitlines()
    calls = sum("= call" in line and "@vector_sincos" in line for line in lines)
    assert calls == 4 // min(4, native_lanes())
