"""Machine code: interpreted = scalar = lanes; the cache on disk."""

import ctypes
import logging
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from integrators.kernels import cache
from integrators.tracing import GraphTooLargeError, Traced, trace, traced
from integrators.tracing.graph import UNARY
from integrators.tracing.llvm import codegen as llvm
from tests.integrators.tracing.random_programs import N, function, states, steps

# Twelve nested operations, each a few ulp (fused multiply-adds, library functions) and none
# magnifying an error by more than about 4: 12 · 4 ulp · small factor.
RANDOM_GRAPH = 2e-13

quick = settings(max_examples=60, deadline=None, derandomize=True)


@seed(1)
@quick
@given(steps, states, st.sampled_from([2, 4, 8]))
def test_plain_interpreted_scalar_and_lanes_agree(recipe, y, lanes):
    f = traced(function(recipe), n=N, params=1)
    t, p = 0.7, np.array([0.4])
    expected = np.array(f.graph.evaluate([t, *y, *p]), dtype=float)
    tolerance = RANDOM_GRAPH * (1.0 + np.abs(expected))
    plain = np.array([float(v) for v in function(recipe)(t, y, p)])
    assert np.all(np.abs(plain - expected) <= tolerance)
    assert np.all(np.abs(f(t, y, p) - expected) <= tolerance)
    shift = 1.0 + 0.01 * np.arange(lanes)
    out = f.machine_code(lanes)(t * shift, y[:, None] * shift, p[:, None] * shift)
    for l in range(lanes):
        alone = np.array(f.graph.evaluate([t * shift[l], *(y * shift[l]), *(p * shift[l])]))
        assert np.all(np.abs(out[:, l] - alone) <= RANDOM_GRAPH * (1.0 + np.abs(alone)))


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-300,
    -1e-310,
    1e300,
    np.inf,
    -np.inf,
    np.nan,
    710.0,
    -746.0,
]
LARGE = [1e5, 1e6, -3e7, 1e10, 1e22, 0.785398, 1.5707963267948966, 3.141592653589793, 100.0]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("op", sorted(UNARY))
def test_every_function(op, lanes):
    """Each elementary function against NumPy: random, special, and large arguments."""
    rng = np.random.default_rng(3)
    x = np.concatenate([SPECIAL, LARGE, rng.normal(size=20), 50 * rng.normal(size=19)])
    x = np.concatenate([x, 10.0 ** rng.uniform(-8, 4, 3)])
    assert len(x) % 4 == 0
    code = llvm.compile_program(trace(lambda t, y: UNARY[op](y[0]), (), 1), 1, lanes)
    if lanes == 1:
        got = np.array([code(0.0, [v])[0] for v in x])
    else:
        got = np.concatenate([code(0.0, part[None, :])[0] for part in x.reshape(-1, lanes)])
    with np.errstate(all="ignore"):
        expected = UNARY[op](x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    with np.errstate(all="ignore"):
        ulps = np.abs(got - expected)[finite] / np.spacing(np.abs(expected[finite]))
    assert np.max(ulps) <= 2.0  # NumPy and the C library each promise about one


@pytest.mark.parametrize("lanes", [1, 4])
def test_special_values_of_comparisons(lanes):
    def f(t, y):
        a, b = y
        return [
            np.minimum(a, b),
            np.maximum(a, b),
            1.0 * (a < b),
            1.0 * (a <= b),
            1.0 * (a == b),
            1.0 * (a != b),
            np.sign(a),
        ]

    code = llvm.compile_program(trace(f, (), 2), 2, lanes)
    for a in (0.0, 1.0, -2.0, np.inf, np.nan):
        for b in (0.0, 1.0, -np.inf, np.nan):
            y = np.array([a, b])
            out = code(0.0, y if lanes == 1 else np.repeat(y[:, None], lanes, axis=1))
            expected = np.array([float(v) for v in f(0.0, y)])
            np.testing.assert_array_equal(out.reshape(7, -1)[:, 0], expected)


def test_constant_and_dead_outputs():
    f = traced(lambda t, y: [1.5, y[0], t], n=3)
    assert f(2.0, [7.0, 8.0, 9.0]).tolist() == [1.5, 7.0, 2.0]


def test_result_may_overwrite_the_state():
    f = traced(lambda t, y: [y[1] + t, y[2] * y[0], y[0], y[1] - y[3]], n=4)
    for lanes in (1, 4):
        y = np.arange(4.0 * lanes).reshape(4, lanes) + 1.0
        y = y[:, 0].copy() if lanes == 1 else y
        code = f.machine_code(lanes)
        expected = code(2.0, y.copy())
        np.testing.assert_array_equal(code(2.0, y, out=y), expected)


def test_lanes_of_jacobian():
    f = traced(lambda t, y: [y[0] * y[1], t * y[0]], n=2)
    out = f.jacobian().machine_code(4)(np.arange(4.0), np.arange(8.0).reshape(2, 4))
    assert out.shape == (4, 4)
    assert out[:, 2].tolist() == [6.0, 2.0, 2.0, 0.0]


def test_bad_lanes():
    with pytest.raises(ValueError, match="lanes"):
        traced(lambda t, y: y, n=1).machine_code(3)


def test_too_large(monkeypatch):
    monkeypatch.setattr(llvm, "LARGEST_GRAPH", 5)
    f = traced(lambda t, y: [np.sin(y[0]) + np.cos(y[0]) * np.exp(y[0])], n=1)
    with pytest.raises(GraphTooLargeError, match=r"6 nodes.*untraced"):
        f.machine_code()
    assert f(0.0, [0.0]).tolist() == [1.0]  # the function itself still runs


def test_without_compiler(monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no target for this triple")

    monkeypatch.setattr(llvm, "_compiler", broken)
    f = traced(lambda t, y: [2 * y[0]], n=1)
    with caplog.at_level(logging.WARNING):
        assert f(0.0, [3.0]).tolist() == [6.0]
        assert f.jacobian()(0.0, [3.0]).tolist() == [[2.0]]
    assert "no target" in caplog.text


def sealed_for_another_name(entry):
    """What the cache holds for another name: a sound entry that was renamed must not do."""
    cache.store("0" * 40, cache.load(entry.stem))
    return (entry.parent / ("0" * 40)).with_suffix(".code").read_bytes()


class TestCache:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        self.f()(0.0, [1.0])  # what makes functions builtins is made once for the process
        monkeypatch.setenv("FEATHERSTEP_CACHE", str(tmp_path))
        return tmp_path / "compiled"

    def f(self):
        return traced(lambda t, y: [3.0 * y[0] + np.sin(t)], n=1)

    def test_one_entry_a_graph(self, folder):
        self.f()(0.0, [1.0])
        self.f()(0.0, [1.0])
        assert len(list(folder.glob("*.code"))) == 1
        assert not list(folder.glob("*.part"))
        self.f().machine_code(4)
        assert len(list(folder.glob("*.code"))) == 2

    def test_what_nobody_uses_is_dropped(self, folder, monkeypatch):
        self.f()(0.0, [1.0])
        (entry,) = folder.glob("*.code")
        assert cache.prune(folder) == 0
        long_ago = entry.stat().st_mtime - 2 * cache.LONGEST_UNUSED
        os.utime(entry, (long_ago, long_ago))
        self.f()(0.0, [1.0])  # used: its time stamp is renewed
        assert cache.prune(folder) == 0
        os.utime(entry, (long_ago, long_ago))
        assert cache.prune(folder) == 1
        assert not list(folder.glob("*.code"))
        self.f()(0.0, [1.0])

    def test_the_oldest_entries_make_room(self, folder, monkeypatch):
        folder.mkdir(parents=True)
        for k in range(10):
            (folder / f"{k}.code").write_bytes(bytes(1000))
            os.utime(folder / f"{k}.code", (1e9 + k, 1e9 + k))
        (folder / "notes.txt").write_text("not ours")
        monkeypatch.setattr(cache, "LONGEST_UNUSED", 1e12)
        monkeypatch.setattr(cache, "LARGEST_TOTAL", 3500)
        assert cache.prune(folder) == 7
        assert sorted(p.name for p in folder.glob("*")) == [
            "7.code",
            "8.code",
            "9.code",
            "notes.txt",
        ]
        assert cache.prune(folder / "missing") == 0

    @pytest.mark.parametrize(
        "damage", ["truncate", "flip", "empty", "foreign", "other key", "junk"]
    )
    def test_damaged_entries_are_rebuilt(self, folder, damage):
        self.f()(0.0, [1.0])
        (entry,) = folder.glob("*.code")
        good = entry.read_bytes()
        bad = {
            "truncate": good[: len(good) // 2],
            "flip": good[:-10] + bytes([good[-10] ^ 255]) + good[-9:],
            "empty": b"",
            "foreign": b"\x7fELF nonsense\n" * 10,
            "other key": sealed_for_another_name(entry),
        }.get(damage)
        if damage == "junk":  # sealed, but no object code
            cache.store(entry.stem, b"junk" * 50)
        else:
            entry.write_bytes(bad)
        assert self.f()(0.0, [1.0]).tolist() == [3.0]
        assert entry.read_bytes() == good

    def test_no_compiler(self, folder, monkeypatch):
        """Calls work all the same; where there must be machine code, the error has a remedy."""

        def none(together):
            raise RuntimeError("No available targets")

        llvm._compiler.cache_clear()
        monkeypatch.setattr(llvm, "_machine", none)
        f = self.f()
        assert f(0.0, [1.0]).tolist() == [3.0]
        with pytest.raises(RuntimeError, match="leave the function untraced"):
            f.machine_code()

    def test_unwritable(self, folder, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("not a directory")
        monkeypatch.setenv("FEATHERSTEP_CACHE", str(tmp_path / "file"))
        assert self.f()(0.0, [1.0]).tolist() == [3.0]

    def test_second_process_reads_it(self, folder):
        program = (
            "import numpy as np, sys\n"
            "from integrators.kernels import cache\n"
            "from integrators.tracing import traced\n"
            "stored = []\n"
            "original = cache.store\n"
            "cache.store = lambda *a: (stored.append(1), original(*a))\n"
            "f = traced(lambda t, y: [y[1], -np.sin(y[0])], n=2)\n"
            "assert 'llvmlite' not in sys.modules and 'numba' not in sys.modules\n"
            "assert f(0.0, [0.0, 2.0])[0] == 2.0\n"
            "sys.exit(len(stored))\n"
        )
        codes = [
            subprocess.run([sys.executable, "-c", program], env=os.environ, check=False).returncode
            for _ in range(2)
        ]
        assert codes == [2, 0]  # the function, and what makes it a builtin

    def test_key_depends_on_version(self, folder, monkeypatch):
        self.f()(0.0, [1.0])
        monkeypatch.setattr(llvm, "CODE_VERSION", -1)
        self.f()(0.0, [1.0])
        assert len(list(folder.glob("*.code"))) == 2


@traced(n=2)
def decorated(t, y):
    return [y[1], -np.sin(y[0])]


def plain(t, y):
    return [y[1], -np.sin(y[0])]


def test_pickling():
    """Workers of a batch get their own copy."""
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    y = np.array([0.5, 0.2])
    copy = pickle.loads(pickle.dumps(traced(plain, n=2)))
    np.testing.assert_array_equal(copy(0.0, y), decorated(0.0, y))
    for make in (Traced.jacobian, Traced.time_derivative, lambda f: f.series(5)):
        one = make(decorated)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(one))(0.0, y), one(0.0, y))


def test_threads():
    """Tracing, compiling and calling from several threads at once."""
    y = np.array([0.5, 0.2])
    expected = decorated(0.0, y)

    def work(k):
        f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]) * (1.0 + k), n=2)
        results = [f(0.0, y) / (1.0 + k) for _ in range(50)]
        shared = [decorated(0.0, y * (1.0 + k))[0] for _ in range(50)]
        return results[-1], shared == [y[1] * (1.0 + k)] * 50

    with ThreadPoolExecutor(4) as pool:
        for value, same in pool.map(work, range(8)):
            np.testing.assert_allclose(value, expected, rtol=1e-14)
            assert same
    assert np.array is np._core.multiarray.array


@pytest.mark.parametrize("lanes", [1, 4])
def test_many_constant_results_come_from_a_table(lanes):
    """The Jacobian of a linear system with little else: 870 of 900 entries are constant."""
    n = 30
    rng = np.random.default_rng(5)
    A, y = rng.normal(size=(n, n)), rng.normal(size=(n, lanes))
    J = traced(lambda t, x: A @ x - x**3, n=n).jacobian()
    assert "@fill" in llvm.program_ir(J.graph, n, lanes, "f")
    code = J.machine_code(lanes)
    if lanes == 1:
        found = [code(0.0, y[:, 0]).reshape(n, n)]
    else:
        t, p, out = np.zeros(lanes), np.zeros(1), np.zeros((n * n, lanes))
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address)
        call(*(x.ctypes.data for x in (t, y, p, out)))
        found = out.T.reshape(lanes, n, n)
    for l in range(lanes):
        np.testing.assert_allclose(found[l], A - np.diag(3.0 * y[:, l] ** 2), rtol=0, atol=1e-14)


def test_inputs_are_read_where_they_are_first_used():
    """Loads in front of everything would keep a hundred parameters in sixteen registers."""

    def chain(t, y, p):
        total = y[0]
        for k in range(100):
            total = np.sin(total) * p[k]
        return np.array([total])

    f = traced(chain, n=1, params=100)
    lines = llvm.program_ir(f.graph, 1, 8, "f").splitlines()
    loads = [k for k, line in enumerate(lines) if " = load " in line and "ptr %" in line]
    products = [k for k, line in enumerate(lines) if "fmul" in line]
    assert len(loads) >= 101
    assert sum(load > products[len(products) // 2] for load in loads) >= 40
    assert f(0.0, [0.3], np.linspace(0.5, 1.5, 100)) == pytest.approx(
        f.machine_code(8)(
            np.zeros(8), np.full((1, 8), 0.3), np.linspace(0.5, 1.5, 100)[:, None] * np.ones(8)
        )[0, 0],
        rel=1e-12,
    )
