"""Exact derivatives against multiprecision differences and against each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, seed, settings

from integrators.tracing import traced, where
from tests.integrators.tracing.random_programs import ELEMENTARY, N, function, states, steps

# Two exact derivatives differ by rounding only.
EXACT = 1e-12


def _multiprecision():
    """The arithmetic of mpmath, for Program.evaluate."""
    m = mpmath
    algebra = {
        name: getattr(m, name)
        for name in [
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "exp",
            "log",
            "sqrt",
            "expm1",
            "log1p",
            "sign",
            "floor",
        ]
    }
    algebra |= {
        "neg": lambda x: -x,
        "abs": abs,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "pow": lambda x, y: x**y,
        "atan2": m.atan2,
        "min": min,
        "max": max,
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "and": lambda x, y: x and y,
        "or": lambda x, y: x or y,
        "not": lambda x: not x,
        "select": lambda c, x, y: x if c else y,
    }
    return algebra


MP = _multiprecision()


def differences(f, t, y, p=()):
    """∂f/∂(y, p) by central differences with 60 digits: right to about 1e-38."""
    with mpmath.workdps(60):
        point = [mpmath.mpf(float(v)) for v in (t, *y, *p)]
        h = mpmath.mpf(10) ** -20
        columns = []
        for k in range(1, len(point)):
            sides = []
            for s in (h, -h):
                moved = list(point)
                moved[k] += s
                sides.append(f.graph.evaluate(moved, MP, mpmath.mpf))
            columns.append([float((a - b) / (2 * h)) for a, b in zip(*sides)])
        return np.array(columns).T


CASES = {
    "lorenz": (
        lambda t, y, p: [
            p[0] * (y[1] - y[0]),
            y[0] * (p[1] - y[2]) - y[1],
            y[0] * y[1] - p[2] * y[2],
        ],
        3,
        [10.0, 28.0, 2.5],
    ),
    "two bodies": (
        lambda t, y, p: np.concatenate([y[2:], -p[0] * y[:2] / np.linalg.norm(y[:2]) ** 3]),
        4,
        [1.3],
    ),
    "elementary": (
        lambda t, y, p: [
            np.sin(y[0]) * np.exp(-y[1]) + np.tan(0.3 * y[2]) ** 2,
            np.arctan2(y[0], y[1]) + np.hypot(y[1], p[0]) + np.arcsin(0.1 * y[2]),
            y[0] ** y[1]
            + np.log1p(y[2] ** 2) / np.sqrt(y[0])
            + np.arccosh(2 + y[1])
            + p[0] ** y[0],
        ],
        3,
        [0.8],
    ),
    "branches": (
        lambda t, y, p: [
            where(y[0] > y[1], y[0] ** 2, y[1] * p[0]),
            np.minimum(y[0], y[1] ** 2),
            abs(y[2]) * np.sign(y[0]) + np.maximum(y[0], p[0] * y[2]),
        ],
        3,
        [0.8],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_jacobians(name):
    f, n, p = CASES[name]
    F = traced(f, n=n, params=len(p))
    rng = np.random.default_rng(5)
    for _ in range(3):
        y = rng.uniform(0.3, 1.5, n)
        both = differences(F, 0.3, y, p)
        scale = 1.0 + np.abs(both).max()
        J, P = F.jacobian()(0.3, y, p), F.parameter_jacobian()(0.3, y, p)
        assert np.abs(J - both[:, :n]).max() <= EXACT * scale
        assert np.abs(P - both[:, n:]).max() <= EXACT * scale
        v, w = rng.normal(size=(2, n))
        np.testing.assert_allclose(F.jvp()(0.3, y, v, p), J @ v, rtol=EXACT, atol=EXACT * scale)
        np.testing.assert_allclose(F.vjp()(0.3, y, w, p), w @ J, rtol=EXACT, atol=EXACT * scale)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name):
    """First derivatives in both modes, and second ones, against 60-digit differences."""
    F = traced(lambda t, y: [ELEMENTARY[name](y[0])], n=1)
    G = traced(lambda t, y: F.jacobian()(t, y)[0], n=1)
    for y in (0.3, 0.6, 0.9):
        first, second = differences(F, 0.0, [y])[0, 0], differences(G, 0.0, [y])[0, 0]
        assert F.jacobian()(0.0, [y])[0, 0] == pytest.approx(first, rel=EXACT, abs=EXACT)
        assert F.vjp()(0.0, [y], [1.0])[0] == pytest.approx(first, rel=EXACT, abs=EXACT)
        assert F.hvp()(0.0, [y], [1.0], [1.0])[0] == pytest.approx(second, rel=EXACT, abs=EXACT)


@seed(2)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps, states)
def test_random_graphs(recipe, y):
    """Interpreted, so that kinks hit exactly by both sides are the only exclusion."""
    F = traced(function(recipe), n=N, params=1)
    t, p = 0.7, [0.4]
    y = y + np.array([0.01234567, 0.0076543, 0.0045678])  # off the kinks
    expected = differences(F, t, y, p)[:, :N]
    J = np.array(F.jacobian().graph.evaluate([t, *y, *p]), dtype=float).reshape(N, N)
    W = np.array([F.vjp().graph.evaluate([t, *y, *p, *row]) for row in np.eye(N)], dtype=float)
    scale = 1.0 + np.abs(expected).max()
    assert np.abs(J - expected).max() <= EXACT * scale
    assert np.abs(W - expected).max() <= EXACT * scale


def test_hessian_vector_product():
    F = traced(lambda t, y: [y[0] ** 2 * y[1], np.sin(y[0] * y[1])], n=2)
    y, w, v = np.array([0.7, -0.4]), np.array([2.0, 3.0]), np.array([0.5, -1.5])
    h = 1e-5
    gradient = F.vjp()
    numeric = (gradient(0, y + h * v, w) - gradient(0, y - h * v, w)) / (2 * h)
    # central differences: h² + ulp/h
    np.testing.assert_allclose(F.hvp()(0, y, w, v), numeric, rtol=1e-8)


def test_time_derivative():
    F = traced(lambda t, y: [t**2 * y[0], y[1]], n=2)
    assert F.time_derivative()(3.0, [2.0, 1.0]).tolist() == [12.0, 0.0]


def test_sparsity_of_a_chain():
    n = 50

    def heat(t, y):
        padded = np.concatenate([[0.0], y, [0.0]])
        return padded[:-2] - 2 * padded[1:-1] + padded[2:] ** 2

    J = traced(heat, n=n).jacobian()
    pattern = J.sparsity.toarray()
    i, j = np.indices((n, n))
    np.testing.assert_array_equal(pattern, abs(i - j) <= 1)
    assert J.operations()["total"] <= n


def test_branch_not_taken_does_not_poison():
    F = traced(lambda t, y: [where(y[0] > 0, np.sqrt(y[0]), 0.0)], n=1)
    assert F.jacobian()(0.0, [-1.0]).tolist() == [[0.0]]
    assert F.vjp()(0.0, [4.0], [1.0]).tolist() == [0.25]
