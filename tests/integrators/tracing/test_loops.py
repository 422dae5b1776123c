"""Right-hand sides of many states: traced by arrays, run as loops."""

import numpy as np
import pytest
import scipy.sparse

from integrators import TracingError, solve, traced
from integrators.tracing.graph import Program
from integrators.tracing.loops.trace import loops_of

# --- random functions of arrays -----------------------------------------------------------------

UNARY = (np.sin, np.exp, np.tanh, np.square, np.abs, np.sign, np.negative, lambda a: 1 / (2 + a**2))
BINARY = (np.add, np.subtract, np.multiply, np.minimum, np.arctan2, lambda a, b: a / (1.5 + b * b))


def shifted(a, r):
    """Neighbours, with ends of all kinds."""
    end = np.array([r.normal()])
    how = r.integers(8)
    if how == 0:
        return np.roll(a, int(r.integers(-3, 4)))
    if how == 1:
        return np.concatenate([end, a[:-1]])
    if how == 2:
        return np.diff(a, prepend=a[:1])
    if how == 3:
        return np.pad(a, 1, ("edge", "wrap", "reflect")[r.integers(3)])[2:]
    if how == 4:
        out = np.zeros_like(a)
        out[1:-1] = a[2:] - 2 * a[1:-1] + a[:-2]
        out[0] += a[3]
        out[-1] = float(end[0]) * a[-2]
        return out
    if how == 5:
        matrix = scipy.sparse.diags_array([np.ones(a.size - 1), -np.ones(a.size)], offsets=[1, 0])
        return (matrix if r.integers(2) else matrix.toarray()) @ a
    if how == 6:
        return a[::-1]
    out = a.copy()
    out[::2] *= end[0]
    out[a.size // 3 : a.size // 2] = np.where(a > 0.4, a, 0.3)[a.size // 3 : a.size // 2]
    return out


def on_grid(a, r):
    """The same on a grid of two dimensions."""
    rows = next(k for k in (7, 6, 5, 4, 3, 2, 1) if a.size % k == 0)
    u = a.reshape(rows, -1)
    how = r.integers(4)
    if how == 0:
        u = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=1)
    elif how == 1:
        inside = np.pad(u, 1)
        u = inside[2:, 1:-1] + inside[:-2, 1:-1] + inside[1:-1, 2:] + inside[1:-1, :-2] - 4 * u
    elif how == 2:
        u = u - u.mean(axis=int(r.integers(2)), keepdims=True)
    else:
        u = np.stack([u, u * u.max()], axis=2)[..., int(r.integers(2))]
    return u.ravel()


def drawn(seed):
    """A function of (t, y, p), the same at each call."""

    def f(t, y, p):
        r = np.random.default_rng(seed)
        known = [y, shifted(y, r)]
        for _ in range(r.integers(4, 9)):
            a, b = (known[k] for k in r.integers(len(known), size=2))
            how = r.integers(7)
            if how == 0:
                known.append(UNARY[r.integers(len(UNARY))](a))
            elif how <= 2:
                known.append(BINARY[r.integers(len(BINARY))](a, b))
            elif how == 3:
                known.append(shifted(a, r))
            elif how == 4:
                known.append(on_grid(a, r))
            elif how == 5:
                known.append(np.where((a < b) & (b > 0.2), a * r.normal(size=y.size), p[1] * b))
            else:
                known.append(a + p[0] * np.cos(t) * np.sum(b * b) / y.size)
        return known[-1] + known[-2] * t

    return f


def at_random(seed):
    """A function, its loops, and a point with a direction."""
    r = np.random.default_rng(1000 + seed)
    n, p = int(r.integers(101, 180)), np.array([0.7, -1.3])
    own = drawn(seed)
    f = traced(own, n=n, params=2)
    assert not isinstance(f.form, Program)
    return own, f, (0.4, 0.2 + r.random(n), p), r.normal(size=n)


@pytest.mark.parametrize("seed", range(40))
def test_random_functions_of_arrays(seed):
    """Values, derivatives and patterns against the function itself, without machine code."""
    own, f, (t, y, p), v = at_random(seed)
    loops, expected = f.form, own(t, y, p)
    close = dict(rtol=1e-12, atol=1e-12 * (1 + np.abs(expected).max()))
    np.testing.assert_allclose(loops(t, y, p), expected, **close)
    line = loops.expanded()
    values = np.array(line.evaluate([t, *y, *p]), dtype=float)
    np.testing.assert_allclose(values, expected, **close)
    np.testing.assert_allclose(loops_of(line, len(y), 2)(t, y, p), expected, **close)
    h = 1e-6
    along = f.jvp().form(t, y, p, v)
    difference = (own(t, y + h * v, p) - own(t, y - h * v, p)) / (2 * h)
    size = 1 + np.abs(difference).max()
    assert np.mean(np.abs(along - difference) < 1e-6 * size) > 0.95  # kinks may lie between
    by_time = (own(t + h, y, p) - own(t - h, y, p)) / (2 * h)
    found = f.time_derivative().form(t, y, p)
    np.testing.assert_allclose(found, by_time, rtol=1e-6, atol=1e-7 * size)
    # What the function sees is in the pattern.
    pattern = f.dependence().toarray()
    for j in range(0, len(y), 25):
        moved = y.copy()
        moved[j] += 1e-3
        touched = np.abs(own(t, moved, p) - expected) > 1e-13 * (1 + np.abs(expected))
        assert not np.any(touched & ~pattern[:, j])


@pytest.mark.parametrize("seed", range(100, 106))
def test_machine_code_of_random_functions(seed):
    own, f, (t, y, p), v = at_random(seed)
    expected = own(t, y, p)
    close = dict(rtol=1e-12, atol=1e-12 * (1 + np.abs(expected).max()))
    np.testing.assert_allclose(f(t, y, p), expected, **close)
    product = f.jvp()
    along = product.form(t, y, p, v)
    close = dict(rtol=1e-12, atol=1e-12 * (1 + np.abs(along).max()))
    np.testing.assert_allclose(product(t, y, v, p), along, **close)


def heat(t, y):
    out = np.zeros_like(y)
    out[1:-1] = (y[2:] - 2 * y[1:-1] + y[:-2]) * 1e4
    return out


def test_few_formulas_for_many_states():
    f = traced(heat, n=20_000)
    assert len(f.form.families) <= 4
    assert len(f.form) < 40
    assert f.operations()["total"] == 4 * 19_998
    assert f.dependence().nnz == 3 * 19_998


def test_results_may_replace_the_state():
    f = traced(heat, n=500)
    y = np.random.default_rng(1).random(500)
    expected = f(0.0, y)
    code = f.machine_code()
    code.function(0.0, y.ctypes.data, y.ctypes.data, y.ctypes.data)
    assert np.array_equal(y, expected)


def test_loops_of_single_numbers():
    """A function that takes element by element is traced by symbols, and has loops as well."""

    def f(t, y):
        n = len(y)
        return [np.sin(y[i]) * y[(i + 1) % n] - y[i - 1] ** 2 * t for i in range(n)]

    g = traced(f, n=700)
    y = np.random.default_rng(2).random(700)
    assert not isinstance(g.form, Program)
    assert len(g.form.families) < 8
    np.testing.assert_allclose(g(0.3, y), f(0.3, y), rtol=1e-12)


def test_what_arrays_do_not_know_goes_by_numbers():
    f = traced(lambda t, y: np.cumsum(y)[::-1], n=120)
    assert f(0.0, np.ones(120)).tolist() == list(range(120, 0, -1))


def test_careless_functions_are_refused_by_name():
    with pytest.raises(TracingError, match="truth value"):
        traced(lambda t, y: np.concatenate([np.zeros(3), y[3:]]) if y[0] > 0 else y, n=200)

    def into_floats(t, y):
        out = np.zeros(200)
        out[1:] = y[:-1]
        return out

    with pytest.raises(TracingError, match="zeros_like"):
        traced(into_floats, n=200)


def test_hidden_state_is_noticed():
    random = np.random.default_rng(0)
    with pytest.raises(TracingError, match="differ"):
        traced(lambda t, y: y * random.random(), n=300)


@pytest.mark.parametrize("method", ["auto", "BDF", "RADAU5", "Rodas5P"])
def test_runs_equal_those_of_the_function(method):
    """One f, traced by arrays and as it is."""
    n = 110
    x = np.linspace(0.0, 1.0, n)

    def f(t, y, p):
        ends = np.concatenate([np.array([0.0]), y, y[-1:]])
        return p[0] * np.diff(ends, 2) + np.sin(t) * y * (1 - y)

    settings = dict(method=method, rtol=1e-7, atol=1e-9, params=[200.0])
    y0 = np.exp(-30 * (x - 0.5) ** 2)
    ours, plain = (solve(g, (0.0, 0.1), y0, **settings) for g in (traced(f), f))
    assert ours.success
    assert plain.success
    np.testing.assert_allclose(ours.y[:, -1], plain.y[:, -1], rtol=1e-5, atol=1e-7)
