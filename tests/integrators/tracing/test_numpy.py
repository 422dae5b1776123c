"""What NumPy code works on symbols, checked against the same function on floats."""

import math
from fractions import Fraction

import numpy as np
import pytest

from integrators.tracing import TracingError, trace, traced, where

# Fused multiply-adds and our compositions differ from NumPy by a few ulp of the largest term.
FEW_ULP = 1e-14

Y = np.array([0.3, 0.7, -0.2, 0.55])
A = np.array([[4.0, 1.0], [0.5, 3.0]])

CASES = {
    "list": lambda t, y: [y[0] + t, 2, y[2] ** 2, -y[3]],
    "tuple": lambda t, y: (y[0], y[1], y[2], y[3]),
    "whole array": lambda t, y: np.sin(y) * np.cos(t) + y**2 - 1 / (2 + y),
    "zeros_like": lambda t, y: _assign(np.zeros_like(y), y),
    "empty object": lambda t, y: _assign(np.empty(4, dtype=object), y),
    "concatenate": lambda t, y: np.concatenate([y[2:], -y[:2]]),
    "stack": lambda t, y: np.stack([y[:2], y[2:]]).T.ravel(),
    "hstack": lambda t, y: np.hstack([y[:2] * 2, np.array([1.0, t])]),
    "matmul": lambda t, y: np.concatenate([A @ y[:2], y[2:] @ A]),
    "dot": lambda t, y: np.array([np.dot(y, y), y @ y, np.dot(A, y[:2])[0], np.inner(y, y)]),
    "sum": lambda t, y: [np.sum(y), y.sum(), np.prod(y), np.mean(y)],
    "outer": lambda t, y: np.outer(y[:2], y[2:]).ravel(),
    "cross": lambda t, y: np.append(np.cross(y[:3], [1.0, 2.0, 3.0]), y[0]),
    "norm": lambda t, y: y / np.linalg.norm(y[:3]) ** 3,
    "norm of list": lambda t, y: y * np.linalg.norm(np.array([y[0], y[1] + 1])),
    "arctan2": lambda t, y: [np.arctan2(y[0], y[1]), np.arctan2(y, 2.0)[1], *np.arctan2(y[:2], 1)],
    "hypot": lambda t, y: np.hypot(y, y[::-1]),
    "minimum": lambda t, y: np.minimum(y, 0.4) + np.maximum(y[0], y),
    "min of array": lambda t, y: np.minimum(np.array([y[0], y[1], 0.1, y[3]]), 0.2),
    "max": lambda t, y: [np.max(y), y.min(), np.amax(y), np.maximum.reduce(y)],
    "sign abs": lambda t, y: np.sign(y) + abs(y) + np.fabs(y),
    "where": lambda t, y: np.where(y > 0.1, y, -1.0),
    "our where": lambda t, y: where(np.array([y[0], y[1], y[2], t]) > 0.5, 1.0, y),
    "where scalar": lambda t, y: [where(y[0] < y[1], y[2], y[3]), where(t > 5, 1, 2), y[0], y[1]],
    "clip": lambda t, y: np.clip(y, -0.1, 0.5) + y.clip(0, 0.6),
    "conditions": lambda t, y: where((y > 0) & ~(y > 0.5) | (y < -0.1), y, 0.0),
    "condition as number": lambda t, y: (y > 0) * y + 2.0 * (y[0] < y[1]),
    "heaviside": lambda t, y: np.heaviside(y, 0.5) + np.exp2(y) + np.cbrt(y),
    "logs": lambda t, y: np.log2(y + 1) + np.log10(y + 1) + np.log1p(y) + np.expm1(y),
    "degrees": lambda t, y: np.deg2rad(y) + np.degrees(y) + np.floor(3 * y) + np.ceil(3 * y),
    "mod": lambda t, y: np.mod(y, 0.25) + y % 0.4 + np.trunc(5 * y),
    "powers": lambda t, y: (y + 1) ** 3 + (y + 1) ** -2 + (y + 1) ** 1.5 + (y + 1) ** 0.3 + 2**y,
    "np.power": lambda t, y: np.power(y + 1, y) + np.square(y) + np.sqrt(y + 1) + np.reciprocal(y),
    "hyperbolic": lambda t, y: np.sinh(y) + np.cosh(y) + np.tanh(y) + np.arcsinh(y) + np.arctanh(y),
    "inverse": lambda t, y: np.arcsin(y) + np.arccos(y) + np.arctan(y) + np.tan(y),
    "arccosh": lambda t, y: np.arccosh(y + 2),
    "solve": lambda t, y: np.concatenate([np.linalg.solve(_matrix(y), y[:2]), y[2:]]),
    "inverse matrix": lambda t, y: np.linalg.inv(_matrix(y)).ravel() * np.linalg.det(_matrix(y)),
    "einsum": lambda t, y: np.append(np.einsum("ij,j->i", A, y[:2]), y[2:]),
    "in place": lambda t, y: _in_place(y),
    "fraction": lambda t, y: y * Fraction(1, 3).__float__() + np.float64(2) * y[0] + np.int64(3),
    "diff": lambda t, y: np.append(np.diff(y), y[-1] - y[0]),
    "roll": lambda t, y: np.roll(y, 1) - 2 * y + np.roll(y, -1),
    "select": lambda t, y: np.select([y > 0.5, y > 0], [y, 2 * y], 3.0),
    "copysign": lambda t, y: np.copysign(2.0, y) + np.fmin(y, 0.1) + np.fmax(y, 0.1),
    "isfinite": lambda t, y: np.where(np.isfinite(y), y, 0.0),
    "polyval": lambda t, y: np.polyval([1.0, 2.0, 3.0], y),
    "unpack": lambda t, y: _unpack(*y),
}


def _unpack(a, b, c, d):
    return [b, a * c, d, a]


def _assign(out, y):
    out[0] = y[1]
    out[1:3] = y[:2] * 2
    out[3] = 1.0
    return out


def _in_place(y):
    z = y * 1.0
    z += 1
    z[1:] *= y[0]
    z -= y
    return z


def _matrix(y):
    return np.array([[3.0 + y[0] ** 2, y[1]], [y[1], 2.0 + np.cos(y[2])]])


@pytest.mark.parametrize("name", CASES)
def test_same_as_on_floats(name):
    f = CASES[name]
    expected = np.asarray(f(0.4, Y), dtype=float)
    F = traced(f, n=4)
    np.testing.assert_allclose(F(0.4, Y), expected, rtol=FEW_ULP, atol=FEW_ULP)
    interpreted = F.graph.evaluate([0.4, *Y])
    np.testing.assert_allclose(interpreted, expected, rtol=FEW_ULP, atol=FEW_ULP)
    scope = {"np": np}
    exec(F.to_python(), scope)
    np.testing.assert_allclose(scope["f"](0.4, Y), interpreted, rtol=0, atol=0)


def test_numpy_is_left_as_it_was():
    before = np.array, np.asarray
    traced(CASES["where"], n=4)
    with pytest.raises(TracingError):
        traced(lambda t, y: [1.0 if y[0] > 0 else 2.0], n=1)
    assert (np.array, np.asarray) == before


def test_structural_zero_needs_a_row_exchange():
    f = traced(lambda t, y: np.linalg.solve(np.array([[0.0, y[0]], [2.0, 1.0]]), y), n=2)
    y = np.array([3.0, 5.0])
    np.testing.assert_allclose(f(0, y), np.linalg.solve([[0, 3.0], [2, 1]], y), rtol=FEW_ULP)


def test_singular_structure():
    with pytest.raises(TracingError, match="singular"):
        traced(lambda t, y: np.linalg.solve(np.array([[0.0, y[0]], [0.0, 1.0]]), y), n=2)


class TestErrorsNameTheLine:
    """The message names this file, the offending line, and a remedy."""

    def check(self, f, n, text, remedy):
        with pytest.raises(TracingError) as info:
            traced(f, n=n)
        message = str(info.value)
        assert __file__ in message
        assert text in message
        assert remedy in message

    def test_if(self):
        def f(t, y):
            if y[0] > 0:  # the culprit
                return [1.0]
            return [2.0]

        self.check(f, 1, "# the culprit", "integrators.where")

    def test_builtin_max(self):
        self.check(lambda t, y: [max(y[0], 1.0)], 1, "max(y[0], 1.0)", "np.maximum")

    def test_math(self):
        self.check(lambda t, y: [math.sin(y[0])], 1, "math.sin(y[0])", "np.sin")
        self.check(lambda t, y: [math.atan2(y[0], 1.0)], 1, "math.atan2", "np.arctan2")

    def test_float_and_int(self):
        self.check(lambda t, y: [float(y[0])], 1, "float(y[0])", "np.array")
        self.check(lambda t, y: [int(y[0])], 1, "int(y[0])", "untraced")
        self.check(lambda t, y: [sum(range(y[0]))], 1, "range(y[0])", "untraced")
        self.check(lambda t, y: [[1, 2][y[0]]], 1, "[1, 2][y[0]]", "untraced")

    def test_array_of_floats(self):
        def f(t, y):
            out = np.empty(1)
            out[0] = y[0]  # into floats
            return out

        self.check(f, 1, "# into floats", "np.zeros_like(y)")

        def g(t, y):
            out = np.zeros(1)
            out += y  # in place
            return out

        self.check(g, 1, "# in place", "np.zeros_like(y)")

    def test_unknown_function(self):
        self.check(lambda t, y: np.sort(y), 2, "np.sort(y)", "untraced")
        self.check(lambda t, y: np.linalg.eigvalsh(np.outer(y, y)), 2, "eigvalsh", "untraced")
        self.check(lambda t, y: np.nextafter(y, 1.0), 2, "nextafter", "untraced")

    def test_complex(self):
        self.check(lambda t, y: [y[0] * 1j], 1, "1j", "real and imaginary")

    def test_hidden_counter(self):
        calls = []

        def f(t, y):
            calls.append(1)
            return [len(calls) * y[0]]

        with pytest.raises(TracingError, match="two traces of f differ"):
            traced(f, n=1)

    def test_hidden_randomness(self):
        rng = np.random.default_rng(1)
        with pytest.raises(TracingError, match="hidden state"):
            traced(lambda t, y: [y[0] + rng.normal()], n=1)

    def test_kept_symbol(self):
        kept = []

        def f(t, y):
            kept.append(y[0])
            return [y[0] + kept[0]]

        with pytest.raises(TracingError, match="between calls"):
            traced(f, n=1)


class TestTraced:
    def test_decorator_finds_n(self):
        @traced
        def f(t, y, p):
            """Decay."""
            return [-p[0] * y[0], p[1] * t]

        assert f.__name__ == "f"
        assert f.__doc__ == "Decay."
        with pytest.raises(TracingError, match="not known yet"):
            _ = f.n
        assert f(2.0, [1.0, 0.0], [3.0, 4.0]).tolist() == [-3.0, 8.0]
        assert (f.n, f.k) == (2, 2)

    def test_within_another(self):
        inner = traced(lambda t, y: [y[1], -y[0] * t], n=2)
        outer = traced(lambda t, y: 2.0 * inner(t, y) + inner.jacobian()(t, y) @ y, n=2)
        assert outer(3.0, [1.0, 2.0]).tolist() == [6.0, -9.0]

    def test_without_time(self):
        assert traced(lambda y: [y[0] ** 2], n=1, time=False)(0.0, [3.0]).tolist() == [9.0]

    def test_event_function(self):
        g = traced(lambda t, y: y[0] * y[1] - t, n=2, outputs=1)
        assert g(1.0, [2.0, 3.0]).tolist() == [5.0]
        assert g.jacobian()(1.0, [2.0, 3.0]).tolist() == [[3.0, 2.0]]
        assert g.vjp()(1.0, [2.0, 3.0], [1.0]).tolist() == [3.0, 2.0]
        assert g.hvp()(1.0, [2.0, 3.0], [1.0], [1.0, 0.0]).tolist() == [0.0, 1.0]
        assert g.time_derivative()(1.0, [2.0, 3.0]).tolist() == [-1.0]
        with pytest.raises(ValueError, match="right-hand side"):
            g.series(3)

    def test_scalar_result(self):
        assert traced(lambda t, y: -y[0], n=1)(0.0, [3.0]).tolist() == [-3.0]
        assert traced(lambda t, y: -y, n=1)(0.0, 3.0).tolist() == [-3.0]

    def test_default_parameters(self):
        f = traced(lambda t, y, p=(2.0,): [p[0] * y[0]], n=1, params=0)
        assert f(0.0, [3.0]).tolist() == [6.0]

    def test_wrong_lengths(self):
        with pytest.raises(ValueError, match=r"returned shape \(2,\) for 3 states"):
            traced(lambda t, y: [y[0], y[1]], n=3)
        f = traced(lambda t, y: y, n=3)
        with pytest.raises(ValueError, match=r"expected y of shape \(3,\)"):
            f(0.0, [1.0, 2.0])
        with pytest.raises(ValueError, match="params"):
            traced(lambda t, y: y, n=3, params=2)
        with pytest.raises(ValueError, match="n must be"):
            traced(lambda t, y: y, n=0)
        with pytest.raises(TypeError, match="collect the parameters"):
            traced(lambda t, y, a, b: y, n=1)
        with pytest.raises(TracingError, match="returned None"):
            traced(lambda t, y: None, n=1)
        with pytest.raises(TracingError, match="returned str"):
            traced(lambda t, y: ["a"], n=1)

    def test_where_on_floats(self):
        assert where(True, 1.0, 2.0) == 1.0
        assert where(np.array([True, False]), 1.0, 2.0).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda t, y: [np.where(y[0] > 0, -1.0, 1.0) * y[0]],
        lambda t, y: [np.where(t > 1, y[0], 2.0)],
        lambda t, y: np.where(t > 1, y, -y[0]),
        lambda t, y: [np.where(True, y[0], t)],
        lambda t, y: [np.clip(y[0], -1, 1)],
        lambda t, y: [np.clip(y[0], None, 1.0)],
        lambda t, y: [np.clip(0.2, y[0], 1.0)],
        lambda t, y: np.clip(y, -t, t),
        lambda t, y: np.clip(y, -1.0, 1.0, out=np.zeros_like(y)),
        lambda t, y: [np.select([t > 1, y[0] > 0], [1.0, y[0]], 3.0)],
        # What NumPy does by itself with single symbols, alone and beside arrays.
        lambda t, y: np.append(y, t)[1:] * np.dot(t, y),
        lambda t, y: np.concatenate([np.atleast_1d(t), y])[:1] + np.stack([t, y[0]])[1],
        lambda t, y: [np.sum(y[0]) + np.ndim(t) + len(np.shape(y[0])) + np.outer(y, t)[0, 0]],
    ],
)
def test_functions_of_single_symbols(f):
    g = traced(f, n=1)
    for t in (0.3, 1.7):
        for y in (0.5, -2.0, 3.0, 0.0):
            state = np.array([y])
            np.testing.assert_allclose(g(t, state), np.asarray(f(t, state)), rtol=1e-15)


def test_a_function_of_a_single_symbol_that_needs_values_is_refused():
    with pytest.raises(TracingError, match=r"np.interp"):
        traced(lambda t, y: [np.interp(t, [0.0, 1.0], [2.0, 3.0])], n=1)


class TestSimplification:
    def count(self, f, n=2, **kwargs):
        return trace(f, n, **kwargs).operations()

    def test_book_example(self):
        """Featherstone §10.4: τ = (v × I v)·s with diagonal I and s = e₃: 29 → 5 operations."""
        I, s = np.diag([1.5, 1.6, 1.7]), np.array([0.0, 0.0, 1.0])

        def tau(v):
            return np.cross(v, I @ v) @ s

        assert self.count(tau, 3, simplify=False) == {"add": 8, "mul": 18, "sub": 3, "total": 29}
        assert self.count(tau, 3) == {"mul": 4, "sub": 1, "total": 5}

    @pytest.mark.parametrize(
        ("f", "total"),
        [
            (lambda x: 0 * x[0], 0),
            (lambda x: 1 * x[0] + 0, 0),
            (lambda x: x[0] - 0.0, 0),
            (lambda x: x[0] - x[0], 0),
            (lambda x: x[0] / 1, 0),
            (lambda x: x[0] / x[0], 1),
            (lambda x: x[0] / 3.0, 1),
            (lambda x: np.negative(-x[0]), 0),
            (lambda x: x[0] + (-x[1]), 1),
            (lambda x: (-x[0]) * (-x[1]), 1),
            (lambda x: x[0] * x[1] + x[1] * x[0], 2),
            (lambda x: [x[0] + x[1], x[1] + x[0]], 1),
            (lambda x: np.sin(2.0) * np.exp(1.0) * x[0], 1),
            (lambda x: x[0] ** 2, 1),
            (lambda x: x[0] ** 5, 3),
            (lambda x: x[0] ** 0, 0),
            (lambda x: x[0] ** 0.5, 1),
            (lambda x: [x[0], np.sin(x[1])][0], 0),
            (lambda x: where(x[0] > 0, x[1], x[1]), 0),
            (lambda x: where(x[0] - x[0] > 1, x[0], x[1]), 0),
        ],
    )
    def test_rule(self, f, total):
        assert self.count(f)["total"] == total

    def test_constants_fold_as_in_python(self):
        program = trace(lambda x: x[0] + (0.1 + 0.2) / 3.0 - (0.1 + 0.2) * x[0] ** 0, 1)
        assert program.evaluate([1.0])[0] == 1.0 + (0.1 + 0.2) / 3.0 - (0.1 + 0.2)


def test_printing():
    f = traced(lambda t, y: [y[1], -np.sin(y[0]) / (1 + t**2)], n=2)
    assert "np.sin(y[0])" in f.to_python()
    latex = f.to_latex()
    assert r"\frac{\sin\left(y_{0}\right)}" in latex
    with pytest.raises(ValueError, match="more than largest=1"):
        f.to_latex(largest=1)
