"""Right-hand sides as people write them without thinking of tracing.

Either the traced function gives what NumPy gives, or an error says why not, where, and what to do.
The truth is always the same function on floats, or a closed form.
"""

import math
import re
import warnings

import numpy as np
import pytest

from integrators import solve
from integrators.tracing import GraphTooLargeError, TracingError, traced, where
from integrators.tracing.llvm.codegen import LARGEST_GRAPH
from integrators.tracing.symbols import symbol

# Fused multiply-adds round once instead of twice: an ulp of the largest term, a few times over.
FEW_ULP = 1e-14


def assert_same(f, n, states, *, outputs=None, rtol=FEW_ULP, t=0.4):
    """Machine code and graph give what the function gives on floats."""
    F = traced(f, n=n, outputs=outputs)
    for y in np.asarray(states, dtype=float).reshape(-1, n):
        expected = np.asarray(f(t, y), dtype=float).ravel()
        np.testing.assert_allclose(F(t, y), expected, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(F.graph.evaluate([t, *y]), expected, rtol=rtol, atol=rtol)
    return F


class TestComplexArguments:
    def test_complex_step_differentiation(self):
        F = traced(lambda t, y: np.sin(y) * t, n=1)
        F(2.0, np.array([1.0]))  # the fast entry exists from here on
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            slope = F(2.0, np.array([1.0 + 1e-20j])).imag / 1e-20
            by_time = F(2.0 + 1e-20j, np.array([1.0])).imag / 1e-20
        assert slope == pytest.approx(2.0 * math.cos(1.0), rel=1e-15)
        assert by_time == pytest.approx(math.sin(1.0), rel=1e-15)

    def test_complex_parameters(self):
        F = traced(lambda t, y, p: p[0] * y, n=1, params=1)
        assert F(0.0, [2.0], [1j]).tolist() == [2j]

    @pytest.mark.slow  # the loops for complex states are compiled
    @pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
    def test_solve(self, method):
        """y' = y² from 1 + 1j is y₀/(1 − y₀ t)."""
        y0, t_end = 1 + 1j, 0.5
        F = traced(lambda t, y: y * y, n=1)
        result = solve(F, (0, t_end), np.array([y0]), method=method, rtol=1e-9, atol=1e-9)
        assert result.y[0, -1] == pytest.approx(y0 / (1 - y0 * t_end), rel=1e-7)

    @pytest.mark.parametrize("name", ["jacobian", "parameter_jacobian", "time_derivative"])
    def test_derivatives_refuse(self, name):
        F = traced(lambda t, y, p: p[0] * np.sin(y), n=1, params=1)
        derived = getattr(F, name)()
        for arguments in [(0.0, [1j], [1.0]), (0.0, [1.0], [1j]), (1j, [1.0], [1.0])]:
            with pytest.raises(TypeError, match="complex arguments"):
                derived(*arguments)

    def test_products_and_series_refuse(self):
        F = traced(lambda t, y: np.sin(y), n=1)
        with pytest.raises(TypeError, match="complex arguments"):
            F.jvp()(0.0, [1.0], [1j])
        with pytest.raises(TypeError, match="complex arguments"):
            F.series(3)(0.0, [1j])
        loops = F.series(400)
        assert not loops.unrolled
        with pytest.raises(TypeError, match="complex arguments"):
            loops(0.0, [1j])


class TestArguments:
    @pytest.mark.parametrize("t", ["a", None, np.array([1.0, 2.0]), [1.0]])
    def test_time_that_is_no_number(self, t):
        with pytest.raises(TypeError, match="expected a number for t"):
            traced(lambda t, y: y * t, n=1)(t, [1.0])

    @pytest.mark.parametrize(
        "t", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.float64(2)]
    )
    def test_time_that_is_one(self, t):
        assert traced(lambda t, y: y * t, n=1)(t, [3.0]).tolist() == [6.0]

    @pytest.mark.parametrize("y", [["1", "2"], np.array(["1", 2], dtype=object), "ab"])
    def test_text_is_no_state(self, y):
        with pytest.raises((TypeError, ValueError), match="expected"):
            traced(lambda t, y: -y, n=2)(0.0, y)

    @pytest.mark.parametrize(
        "value", ["1.5", np.str_("2"), b"1", 1 + 2j, np.complex128(1 + 0j), np.complex64(1j)]
    )
    def test_outputs_that_are_no_real_numbers(self, value):
        with pytest.raises(TracingError, match=f"returned {type(value).__name__}"):
            traced(lambda t, y: [value, y[0]], n=2)

    def test_a_failed_call_leaves_no_trace(self):
        f = traced(lambda t, y: [y[1], -y[0]])
        with pytest.raises(IndexError):
            f(0, [1.0])
        assert f(0, [1.0, 2.0]).tolist() == [2.0, -1.0]
        g = traced(lambda t, y, p: [p[1] * y[0]], n=1)
        with pytest.raises(IndexError):
            g(0, [1.0], [3.0])
        assert g(0, [1.0], [3.0, 4.0]).tolist() == [4.0]
        h = traced(lambda t, y: y[:2])
        with pytest.raises(ValueError, match="returned shape"):
            h(0, [1.0, 2.0, 3.0])
        assert h(0, [1.0, 2.0]).tolist() == [1.0, 2.0]


# --- linear systems -------------------------------------------------------------------------------


def _dense(y, n):
    return np.array([[y[n * i + j] for j in range(n)] for i in range(n)])


class TestLinearSystems:
    def test_tiny_constant_beside_a_large_diagonal(self):
        """Symmetric positive definite, n = 2 and (beyond value pivoting) n = 4."""
        eps = 1e-17

        def f(t, y):
            return np.linalg.solve(np.array([[y[0], eps], [eps, y[1]]]), np.array([1.0, 1.0]))

        assert_same(f, 2, [[1.0, 2.0], [0.3, 0.05]])

        def g(t, y):
            M = np.diag(y) + eps * (1.0 - np.eye(4))
            return np.linalg.solve(M, np.ones(4))

        assert_same(g, 4, [[1.0, 2.0, 3.0, 0.5]])

    @pytest.mark.parametrize("n", [2, 3])
    def test_general_matrices(self, n):
        """Every order of pivots occurs, exact zeros on the diagonal among them."""
        rng = np.random.default_rng(n)
        states = [rng.normal(size=n * n) for _ in range(20)]
        for y in states[:10]:
            y[0] = 0.0
        states += [np.eye(n)[::-1].ravel(), np.roll(np.eye(n), 1, axis=0).ravel()]

        def f(t, y):
            A, b = _dense(y, n), np.arange(1.0, n + 1.0)
            return np.concatenate([np.linalg.solve(A, b), [np.linalg.det(A)]])

        # A condition number of some hundreds is among these.
        F = assert_same(f, n * n, states, outputs=n + 1, rtol=1e-12)
        for y in states:  # ∂x/∂A_ij = −A⁻¹ e_i x_j
            A = y.reshape(n, n)
            x, inverse = np.linalg.solve(A, np.arange(1.0, n + 1.0)), np.linalg.inv(A)
            expected = -np.einsum("ki,j->kij", inverse, x).reshape(n, n * n)
            scale = np.abs(expected).max()
            difference = F.jacobian()(0.0, y)[:n] - expected
            assert np.abs(difference).max() < 1e-12 * max(1.0, scale) * np.linalg.cond(A)

    def test_series_through_an_exchange(self):
        """(0 1; 1 t) x = (t, 1) gives x = (1 − t², t); y' = x₁, and y' = t for the other."""

        def f(t, y):
            return np.linalg.solve(np.array([[y[2], 1.0], [1.0, t]]), np.array([t, 1.0]))

        F = traced(lambda t, y: [*f(t, y), 0.0], n=3)
        coefficients = F.series(4)(0.0, [0.0, 0.0, 0.0])
        np.testing.assert_allclose(coefficients[:, 0], [0, 1, 0, -1 / 3, 0], atol=1e-15)
        np.testing.assert_allclose(coefficients[:, 1], [0, 0, 0.5, 0, 0], atol=1e-15)

    def test_structural_zeros_of_a_large_matrix(self):
        """The diagonal is zero; the first entry below may vanish, the second not."""

        def f(t, y):
            z = 0.0
            A = np.array([[z, 1.0, z, z], [y[0], z, 2.0, z], [y[1], z, z, y[2]], [1e-9, z, z, 1.0]])
            return np.linalg.solve(A, y)

        assert_same(f, 4, [[0.0, 2.0, 3.0, 4.0], [5.0, 0.0, 3.0, 4.0], [0.1, -7.0, 3.0, 4.0]])

    def test_constant_matrix_is_pivoted_by_value(self):
        A = np.random.default_rng(5).normal(size=(6, 6))
        A[0, 0] = 1e-18
        F = assert_same(lambda t, y: np.linalg.solve(A, y), 6, [np.arange(6.0)], rtol=1e-12)
        assert set(F.operations()) <= {"add", "sub", "mul", "div", "neg", "total"}

    def test_no_exchange_where_the_structure_says_so(self):
        """Triangular, and larger than 3: nothing is chosen at run time."""
        lower = traced(lambda t, y: np.linalg.solve(np.array([[y[0], 0], [1, y[1]]]), y).T, n=2)
        upper = traced(lambda t, y: np.linalg.solve(np.array([[y[0], 1], [0, y[1]]]), y), n=2)
        assert "select" not in upper.operations()
        assert lower(0.0, [2.0, 4.0]).tolist() == [1.0, 0.75]
        four = traced(lambda t, y: np.linalg.solve(np.outer(y, y) + np.eye(4), y), n=4)
        assert "select" not in four.operations()


# --- truth values ---------------------------------------------------------------------------------

SIGNS = [[1.0, 2.0], [1.0, -2.0], [-1.0, 0.5], [-1.0, -1.0], [0.5, 0.0]]


@pytest.mark.parametrize(
    "f",
    [
        lambda t, y: [(y[0] > 0) + (y[1] > 0), (y[0] > 0) * (y[1] > 0)],
        lambda t, y: (y > 0) + (y < 1),
        lambda t, y: np.add(y > 0, y > 1),
        lambda t, y: [np.dot(y > 0, y > -5), (y > 0) @ (y < 5)],
        lambda t, y: [np.sum(y > 0), (y > 0).sum()],
        lambda t, y: [np.prod(y > 0) + np.prod(y > -5), np.mean(y > 0)],
        lambda t, y: np.cumsum(y > 0),
        lambda t, y: [sum([y[0] > 0, y[1] > 0]), (y[0] > 0) + 1],
        lambda t, y: [(y[0] > 0) + True, (y[0] > 0) + np.bool_(False)],
        lambda t, y: [(y[0] > 0) + 1.0 * (y[1] > 0), (y[0] > 0) + y[1]],
        lambda t, y: np.maximum(y > 0, y > 1) + (y > 0),
        lambda t, y: np.where(y > 0, y > 1, y < -1) + (y > 0),
        lambda t, y: [(y[0] - y[0] >= 0) + (y[1] > 0), ~(y[0] - y[0] >= 0) + (y[1] > 0)],
        lambda t, y: ((y > 0) + (y > 1)) * 2.0,
        lambda t, y: [np.sum(y > 0, dtype=int), np.any(y > 0) + np.all(y > 0)],
        # Python's own floats and bools: t is one of these.
        lambda t, y: [(t > 0.1) + (t > 0.2), (t > 0.1) - (2 * t - 1 > 0)],
        lambda t, y: [(t > 0.1) + (y[0] > 0), (t > 0.1) + (np.sin(t) > 0)],
        lambda t, y: [((t > 0.1) & (t < 2)) + (t > 0.2), -(t > 0.1) + y[0]],
        lambda t, y: [t // 0.1, abs(t - 1) % 0.3],
    ],
)
def test_truth_values_in_arithmetic(f):
    assert_same(f, 2, SIGNS)


# --- quotients and remainders ---------------------------------------------------------------------


class TestRemainders:
    def test_exact_for_any_divisor(self):
        """Multiples and their neighbours, quotients up to 2⁵⁰, all signs: bit by bit NumPy's."""
        rng = np.random.default_rng(1)
        divisor = rng.normal(size=4000) * 10.0 ** rng.integers(-5, 6, size=4000)
        turns = np.floor(2.0 ** rng.uniform(0, 49, size=4000)) * rng.choice([-1, 1], size=4000)
        x = divisor * turns
        x[::4] = np.nextafter(x[::4], np.inf)
        x[1::4] = np.nextafter(x[1::4], -np.inf)
        x[2::4] += (divisor * rng.random(4000))[2::4]
        edges = [(1.0, 0.1), (-1.0, 0.1), (0.0, 3.0), (1.0, math.inf), (-1.0, math.inf), (2.0, 0.0)]
        x, divisor = np.append(x, [e[0] for e in edges]), np.append(divisor, [e[1] for e in edges])
        F = traced(
            lambda t, y: [y[0] // y[1], y[0] % y[1], np.fmod(y[0], y[1]), *np.divmod(y[0], y[1])],
            n=2,
            outputs=5,
        )
        with np.errstate(all="ignore"):
            q, r = np.floor_divide(x, divisor), np.remainder(x, divisor)
            expected = np.array([q, r, np.fmod(x, divisor), q, r])
        compiled = np.array([F(0.0, np.array(pair)) for pair in zip(x, divisor)]).T
        np.testing.assert_array_equal(compiled, expected)
        interpreted = F.graph.evaluate([np.zeros_like(x), x, divisor])
        np.testing.assert_array_equal(interpreted, expected)

    @pytest.mark.parametrize("divisor", [0.1, -0.1, 2 * math.pi, 3.0, 0.25, -4.0])
    def test_constant_divisor(self, divisor):
        F = assert_same(
            lambda t, y: [y[0] // divisor, y[0] % divisor, *divmod(y[0], divisor)],
            1,
            [*np.linspace(-20, 20, 101), *(divisor * np.arange(-20.0, 20.0))],
            outputs=4,
            rtol=0.0,
        )
        for y in (0.0, 1.7, -1.7, divisor, -divisor):
            assert F.jacobian()(0.0, [y]).ravel().tolist() == [0.0, 1.0, 0.0, 1.0]

    def test_derivative_by_the_divisor(self):
        """∂(x − ⌊x/y⌋ y)/∂y = −⌊x/y⌋."""
        F = traced(lambda t, y: y[0] % y[1], n=2, outputs=1)
        for y in ([7.3, 2.1], [-7.3, 2.1], [7.3, -2.1], [-7.3, -2.1]):
            assert F.jacobian()(0.0, y).tolist() == [[1.0, -np.floor_divide(*y)]]

    def test_too_many_turns(self):
        """No digit would be right without more work: not a number, rather than another one."""
        F = traced(lambda t, y: y % 3.0, n=1)
        assert np.isnan(F(0.0, [2.0**60]))


@pytest.mark.parametrize(
    "f",
    [
        lambda t, y: np.nan_to_num(y),
        lambda t, y: np.nan_to_num(y, nan=3.0, posinf=1.0, neginf=-2.0),
        lambda t, y: [np.nan_to_num(y[0]), np.nan_to_num(np.array([y[1], 1.0]))[0]],
        lambda t, y: np.nan_to_num(y * 1.0, copy=False),
    ],
)
def test_nan_to_num(f):
    assert_same(f, 2, [[1.0, math.nan], [math.inf, -math.inf], [-2.0, math.inf]], rtol=0.0)


# --- arrays, lists, masks -------------------------------------------------------------------------


def _mask_assignment(y):
    d = y * 1.0
    d[y < 0] = 0.0
    d[d > 1] = y[0]
    d[y[0] > 5] = -1.0
    return d


STATES = [[1.0, -2.0, 3.0], [-0.5, 0.25, 0.0], [6.0, 1.0, -1.0]]


@pytest.mark.parametrize(
    "f",
    [
        lambda t, y: y + [y[0], 1.0, 2.0],  # noqa: RUF005
        lambda t, y: [1.0, y[1], t] * y,
        lambda t, y: np.maximum([y[0], 1.0, t], y),
        lambda t, y: np.linalg.solve([[1, y[0], 0], [0, 1, 2], [y[1], 0, 7]], [y[2], 1.0, 0.0]),
        lambda t, y: y * np.linalg.norm([y[0], 1.0]) + np.linalg.det([[y[0], 1.0], [2.0, y[1]]]),
        lambda t, y: np.linalg.inv([[1.0, y[0], 0], [0, 1, 0], [0, 0, 1]])[0],
        lambda t, y: np.cross(y, [1.0, 2.0, 3.0], axis=-1),
        lambda t, y: np.cross(np.array([y, 2 * y]), y[::-1])[1],
        lambda t, y: np.cross(np.array([y, y]).T, np.array([y[::-1], y]).T, axis=0)[:, 0],
        lambda t, y: np.linalg.cross(y, np.array([1.0, 2.0, 3.0])),
        lambda t, y: y * np.linalg.norm(np.outer(y, [1, 2]), "fro") + np.linalg.norm(y, 1),
        lambda t, y: np.linalg.norm(np.outer(y, y + 1), axis=0, ord=np.inf),
        lambda t, y: (
            np.linalg.norm(np.outer(y, y + 1), 1) + np.linalg.norm(np.outer(y, y), np.inf) * y
        ),
        lambda t, y: np.linalg.norm(np.array([np.outer(y, y)] * 3), axis=(1, 2), ord="fro"),
        lambda t, y: [np.sum(y, where=y > 0), np.prod(y, where=y > 0), y.sum(dtype=float)],
        lambda t, y: y * np.max(y, where=y > 0, initial=0.5) + np.any(y > 2, where=y < 5),
        lambda t, y: _mask_assignment(y),
    ],
)
def test_valid_numpy(f):
    assert_same(f, 3, STATES)


class TestErrors:
    """Each names this file, the offending code and the remedy."""

    @pytest.mark.parametrize(
        ("f", "code", "remedy"),
        [
            (lambda t, y: [np.sum(y[y > 0]), 1.0], "y[y > 0]", "integrators.where"),
            (lambda t, y: [y[y[0]], 1.0], "y[y[0]]", "integrators.where"),
            (lambda t, y: [np.arange(3.0)[y[0]], 1.0], "np.arange(3.0)[y[0]]", "integrators.where"),
            (lambda t, y: [np.max(y, where=y > 0), 1.0], "np.max(y, where=y > 0)", "initial="),
            (lambda t, y: np.sin(y, where=y > 0), "np.sin(y, where=y > 0)", "integrators.where"),
            (lambda t, y: [y.sum(dtype=int), 1.0], "y.sum(dtype=int)", "leave dtype out"),
            (lambda t, y: np.add(y, 1, dtype=np.float32), "dtype=np.float32", "leave dtype out"),
            (lambda t, y: np.cross(y, y), "np.cross(y, y)", "three components"),
            (lambda t, y: y * np.linalg.norm(np.outer(y, y), 2), "norm", "untraced"),
        ],
    )
    def test_line_and_remedy(self, f, code, remedy):
        with pytest.raises(TracingError) as info:
            traced(f, n=2)
        message = str(info.value)
        assert re.search(re.escape(__file__) + r'", line \d+: ', message)
        assert code in message
        assert remedy in message

    @pytest.mark.parametrize(
        "assign", [lambda d, y: d.__setitem__(y[:2] < 0, 0.0), lambda d, y: d.__setitem__(y < 0, y)]
    )
    def test_assignment_by_other_masks(self, assign):
        def f(t, y):
            d = np.zeros_like(y)
            assign(d, y)
            return d

        with pytest.raises(TracingError, match=r"integrators.where\(mask, new, old\)"):
            traced(f, n=3)

    def test_the_users_own_index_error_stays(self):
        with pytest.raises(IndexError, match="out of bounds"):
            traced(lambda t, y: [y[5]], n=1)

    def test_numpy_is_left_as_it_was(self):
        before = np.linalg.solve, np.linalg.norm
        with pytest.raises(TracingError):
            traced(lambda t, y: y[y > 0], n=2)
        assert (np.linalg.solve, np.linalg.norm) == before
        assert np.linalg.solve([[2.0]], [4.0]) == [2.0]


class TestSize:
    def test_a_trace_without_end_is_stopped(self, monkeypatch):
        """Long before the whole of it: a matrix product of many operations."""
        monkeypatch.setattr(symbol, "LARGEST_TRACE", 1500)
        A = np.random.default_rng(1).normal(size=(90, 90))
        done = []

        def f(t, y):
            rows = []
            for row in A:
                rows.append(row @ y)
                done.append(1)
            return rows

        with pytest.raises(GraphTooLargeError, match="leave the function untraced") as info:
            traced(f, n=90)
        assert "rows.append(row @ y)" in str(info.value)
        assert len(done) < 12

    def test_whatever_can_be_compiled_can_be_traced(self):
        assert symbol.LARGEST_TRACE >= 2 * LARGEST_GRAPH

    def test_unlucky_number_of_states_is_forgotten(self, monkeypatch):
        monkeypatch.setattr(symbol, "LARGEST_TRACE", 100)
        f = traced(lambda t, y: where(np.sum(y) > 0, y, -y))
        with pytest.raises(GraphTooLargeError):
            f(0.0, np.ones(90))
        assert f(0.0, [1.0]).tolist() == [1.0]


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1], [0, 1]],
        [[0, 0], [0, 0]],
        [[1, 2, 3], [2, 4, 6], [0, 0, 1]],
        [[2, 1, 0], [1, 3, 1], [0, 1, 4]],
    ],
)
def test_determinants_of_singular_matrices(matrix):
    A = np.array(matrix, dtype=float)
    n = len(A)
    det = traced(lambda t, y: [np.linalg.det(y.reshape(n, n))], n=n * n, outputs=1)
    assert det(0.0, A.ravel())[0] == pytest.approx(np.linalg.det(A), abs=1e-14)
    cofactors = [
        (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(A, i, 0), j, 1))
        for i in range(n)
        for j in range(n)
    ]
    np.testing.assert_allclose(det.jacobian()(0.0, A.ravel())[0], cofactors, atol=1e-14)


def test_nan_to_num_looks_into_lists():
    f = traced(lambda t, y: np.nan_to_num([y[0], y[1]]), n=2)
    assert f(0.0, [np.nan, 1.0]).tolist() == [0.0, 1.0]
