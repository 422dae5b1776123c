"""Taylor coefficients against known series and against multiprecision arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, seed, settings

from integrators.tracing import traced
from integrators.tracing.calculus.series import Unrolled
from integrators.tracing.calculus.series_loop import compile_series
from tests.integrators.tracing.random_programs import ELEMENTARY, N, function, states, steps
from tests.integrators.tracing.test_derivatives import MP

# Recurrences of order 20 add up some 20 rounding errors per coefficient, and more where sums
# cancel; relative to the largest coefficient of the same order.
ROUNDING = 1e-12


def lorenz(t, y):
    return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]


def test_exponential():
    c = traced(lambda t, y: y, n=1).series(20)(0.0, [1.0])[:, 0]
    np.testing.assert_allclose(c, [1 / math.factorial(k) for k in range(21)], rtol=1e-15 * 20)


def test_time_is_a_variable():
    """y' = −2 t y² from y(1) = 1/2: y = 1/(1 + t²)."""
    c = traced(lambda t, y: [-2 * t * y[0] ** 2], n=1).series(15)(1.0, [0.5])[:, 0]
    expected = [float(x) for x in mpmath.taylor(lambda t: 1 / (1 + t**2), 1, 15)]
    np.testing.assert_allclose(c, expected, atol=ROUNDING)


def test_constant_right_hand_side():
    f = traced(lambda t, y, p: [3.0, p[0]], n=2, params=1)
    for c in (f.series(3)(0.0, [1.0, 2.0], [5.0]), _looped(f, 3, 0.0, [1.0, 2.0], [5.0])):
        assert c.tolist() == [[1, 2], [3, 5], [0, 0], [0, 0]]


def _looped(f, order, t, y, p=()):
    return compile_series(f.graph, f.n, order)(t, y, p).reshape(order + 1, f.n)


def reference(f, order, t, y, p=()):
    """The same recurrences with 60 digits; they are checked against known series above."""
    with mpmath.workdps(60):
        inputs = [mpmath.mpf(float(v)) for v in (t, *y, *p)]
        rows = Unrolled(f.graph, f.n, inputs, MP, mpmath.mpf).run(order)
        return np.array([[float(v) for v in row] for row in rows])


def assert_close(got, expected):
    scale = np.abs(expected).max(axis=1, keepdims=True) + 1e-300
    assert np.max(np.abs(got - expected) / scale) <= ROUNDING


@pytest.mark.parametrize("order", [1, 2, 5, 20])
def test_lorenz(order):
    f = traced(lorenz, n=3)
    y = np.array([1.0, 2.0, 20.0])
    expected = reference(f, order, 0.0, y)
    assert_close(f.series(order)(0.0, y), expected)
    assert_close(_looped(f, order, 0.0, y), expected)


def test_lorenz_step_against_odefun():
    """The polynomial at s = 0.02 is the solution: independent multiprecision integrator."""
    f = traced(lorenz, n=3)
    y, s = [1.0, 2.0, 20.0], 0.02
    with mpmath.workdps(30):

        def rhs(t, y):
            return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 * y[2] / 3]

        exact = [float(v) for v in mpmath.odefun(rhs, 0, y)(mpmath.mpf("0.02"))]
    value = np.polynomial.polynomial.polyval(s, f.series(20)(0.0, y))
    np.testing.assert_allclose(value, exact, rtol=1e-14)


def test_pendulum_from_a_right_angle():
    """θ(1) with repeated order-20 steps, against the elliptic function."""
    f = traced(lambda t, y: [y[1], -np.sin(y[0])], n=2)
    c = f.series(20)
    y = np.array([np.pi / 2, 0.0])
    for _ in range(10):
        y = np.polynomial.polynomial.polyval(0.1, c(0.0, y))
    k = mpmath.sin(mpmath.pi / 4)
    exact = 2 * mpmath.asin(k * mpmath.ellipfun("cd", mpmath.mpf(1), k=k))
    assert abs(y[0] - float(exact)) < 1e-14


MPMATH = {
    "acosh": lambda x: mpmath.acosh(1 + x),
    "log1p": lambda x: mpmath.log(1 + x),
    "expm1": lambda x: mpmath.exp(x) - 1,
    "pow": lambda x: x ** mpmath.mpf(0.3),
    "negative pow": lambda x: x ** mpmath.mpf(-2.7),
    "x to the x": lambda x: x**x,
    "2 to the x": lambda x: mpmath.mpf(2) ** x,
    "atan2": lambda x: mpmath.atan(x / (1 + x * x)),
    "atan2 of constant": lambda x: mpmath.atan(2 / x) + mpmath.atan(x / 2),
    "quotient": lambda x: x / (1 + x) + 2 / x + x / 3,
    "abs": lambda x: x * x,
    "where": lambda x: x * x + x + x,
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name):
    """y' = g(t): the series of g itself, known independently from mpmath.taylor."""
    order, t = 12, 0.6
    f = traced(lambda t, y: [ELEMENTARY[name](t)], n=1)
    with mpmath.workdps(60):
        function = MPMATH.get(name) or getattr(mpmath, name)
        g = mpmath.taylor(function, mpmath.mpf(t), order - 1)
        expected = np.array([0.0] + [float(c / (k + 1)) for k, c in enumerate(g)])
    scale = 2.0 ** np.arange(order + 1)  # the nearest singularity is at least 0.4 away
    for got in (f.series(order)(t, [0.0]), _looped(f, order, t, [0.0])):
        assert np.max(np.abs(got[:, 0] - expected) / (scale + np.abs(expected))) <= ROUNDING


@seed(3)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(steps, states)
def test_random_graphs(recipe, y):
    f = traced(function(recipe), n=N, params=1)
    y = y + np.array([0.01234567, 0.0076543, 0.0045678])  # off the kinks
    expected = reference(f, 6, 0.7, y, [0.4])
    rows = Unrolled(f.graph, N, [0.7, *y, 0.4]).run(6)
    scale = 1.0 + np.abs(expected)
    assert np.max(np.abs(np.array(rows, dtype=float) - expected) / scale) <= 1e-10
    assert np.max(np.abs(_looped(f, 6, 0.7, y, [0.4]) - expected) / scale) <= 1e-10


@pytest.mark.parametrize("unrolled", [True, False])
def test_lanes(unrolled):
    f = traced(lambda t, y, p: [y[1], -p[0] * np.sin(y[0]) + t], n=2, params=1)
    order, L = 8, 4
    rng = np.random.default_rng(0)
    t, y, p = rng.normal(size=L), rng.normal(size=(2, L)), rng.normal(size=(1, L))
    code = f.series(order).machine_code(L) if unrolled else compile_series(f.graph, 2, order, L)
    out = code(t, y, p).reshape(order + 1, 2, L)
    for l in range(L):
        assert_close(out[:, :, l], f.series(order)(t[l], y[:, l], p[:, l]))


def test_large_systems_use_loops():
    def ring(t, y):
        return [np.sin(y[i - 1]) * y[i] / (1.0 + y[i] ** 2) for i in range(100)]

    f = traced(ring, n=100)
    s = f.series(20)
    assert not s.unrolled
    y = np.random.default_rng(1).normal(size=100)
    assert_close(s(0.0, y), np.array(Unrolled(f.graph, 100, [0.0, *y]).run(20), dtype=float))


def test_bad_order():
    with pytest.raises(ValueError, match="order"):
        traced(lorenz, n=3).series(0)
