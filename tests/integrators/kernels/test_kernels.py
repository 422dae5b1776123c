"""Kernels: one source, interpreted and compiled; the cache of compiled code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from integrators import Event, Taylor, problems, solve
from integrators.kernels import cache_directory, compiled, kernel
from integrators.methods.linear.lu import lu_factor, lu_solve

CASES = [
    ("DOPRI5", {}),
    ("DOP853", {"dense_output": True}),
    ("RK4", {}),
    ("RK4", {"step": 0.1, "dense_output": True}),
    ("Verner76", {"dense_output": True}),
    ("RadauIIA3", {"dense_output": True}),
    ("Gauss2", {"step": 0.1}),
    ("LobattoIIIA3", {}),
    ("SDIRK4", {}),
    ("Kvaerno3", {"step": 0.1, "dense_output": True}),
    ("RadauVariable", {"rtol": 1e-9}),
    ("BDF", {"rtol": 1e-6}),
    ("Adams", {"rtol": 1e-8}),
    (Taylor(8), {"dense_output": True}),
]


@pytest.mark.parametrize(("method", "options"), CASES)
@pytest.mark.parametrize("name", ["order_rational", "logistic"])
def test_interpreted_equals_compiled(method, options, name, monkeypatch):
    """The same steps; a scalar problem too, where an index out of range would hide."""
    problem = problems.get(name)
    fast = solve(problem, method=method, **options)
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")
    slow = solve(problem, method=method, **options)
    assert slow.success
    for counter in ("nfev", "njev", "nlu", "nnewton", "nsteps", "nrejected"):
        assert getattr(slow, counter) == getattr(fast, counter), counter
    assert np.allclose(slow.t, fast.t, rtol=1e-6)
    assert np.allclose(slow.y[:, -1], fast.y[:, -1], rtol=1e-9, atol=1e-12)


def test_interpreted_events_and_constraints(monkeypatch):
    monkeypatch.setenv("FEATHERSTEP_INTERPRET", "1")
    bounce = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.5 * y[1]])
    ball = solve(lambda t, y: np.array([y[1], -9.81]), (0, 1), [1.0, 0.0], events=bounce)
    assert len(ball.t_events[0]) >= 2
    dae = problems.get("robertson_dae").with_(t_span=(0.0, 40.0))
    solution = solve(dae, method="RADAU5", rtol=1e-6, atol=1e-10)
    assert np.allclose(solution.y[:, -1], problems.get("robertson").reference(40.0), rtol=1e-4)


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_lu_against_numpy(kind):
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 20):
        matrix = rng.normal(size=(n, n)).astype(kind)
        if kind is np.complex128:
            matrix += 1j * rng.normal(size=(n, n))
        right = rng.normal(size=n).astype(kind)
        expected = np.linalg.solve(matrix, right)
        factors, pivots, x = matrix.copy(), np.zeros(n, dtype=np.int64), right.copy()
        assert compiled(lu_factor)(factors, pivots)
        compiled(lu_solve)(factors, pivots, x)
        assert np.allclose(x, expected, rtol=1e-9)
    singular = np.ones((2, 2), dtype=kind)
    assert not compiled(lu_factor)(singular, np.zeros(2, dtype=np.int64))


def test_kernel_stays_a_plain_function():
    @kernel
    def double(x):
        return 2 * x

    assert double(3) == 6
    assert double("ab") == "abab"


def test_cache_directory_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("FEATHERSTEP_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path


PROBE = """
import sys
import integrators, multibody
heavy = {"numba", "llvmlite", "matplotlib", "assimulo", "scipy.integrate"} & set(sys.modules)
assert not heavy, heavy
"""


def test_import_is_light():
    subprocess.run([sys.executable, "-c", PROBE], check=True)


@pytest.mark.skipif(os.name == "nt", reason="uses a POSIX path that cannot be created")
def test_works_without_a_cache(tmp_path):
    script = """
import logging
logging.disable(logging.CRITICAL)
from integrators.kernels import compiled, kernel
@kernel
def twice(x):
    return x + x
assert compiled(twice)(2.0) == 4.0
"""
    environment = {**os.environ, "FEATHERSTEP_CACHE": "/proc/nowhere"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


KERNELS = """
from integrators.kernels import OnWorkspace, compiled, kernel
from integrators.stepping.workspace import Steps

@kernel
def twice(x):
    return 2.0 * x

print(compiled(twice)(21.0))
"""


@pytest.mark.parametrize("damage", ["truncated", "empty", "foreign", "one bit"])
def test_damaged_compiled_code_is_built_again(tmp_path, damage):
    script = tmp_path / "script.py"
    script.write_text(KERNELS)
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path / "cache")}

    def run():
        return subprocess.run(
            [sys.executable, script], capture_output=True, text=True, env=environment, check=True
        ).stdout

    assert run() == "42.0\n"
    files = list((tmp_path / "cache" / "compiled").glob("*.code"))
    assert files
    for file in files:
        content = file.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
        spoiled = {"truncated": content[:middle], "empty": b"", "one bit": flipped}
        spoiled["foreign"] = b"x" * 999
        file.write_bytes(spoiled[damage])
    assert run() == "42.0\n"
    assert run() == "42.0\n"  # and what was built then is sound


def test_the_name_of_cached_code_depends_on_the_code_and_on_nothing_else():
    """Comments, docstrings and neighbours may change; constants and helpers may not."""
    import linecache
    import types

    from integrators.kernels import compiler as kernels

    def made(body: str, scale: float = 2.0) -> str:
        source = f"SCALE = {scale}\n" + body
        module = types.ModuleType("written")
        filename = f"<written {hash(source)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), {**vars(module), "kernel": kernel}, module.__dict__)
        functions = {k: v for k, v in module.__dict__.items() if callable(v)}
        for function in functions.values():
            function.__globals__.update(module.__dict__)
        return kernels.source_hash(functions["whole"])

    plain = "@kernel\ndef part(x):\n    return SCALE * x\n"
    plain += "@kernel\ndef whole(x):\n    return part(x)\n"
    name = made(plain)
    assert made(plain.replace("def part(x):\n", "def part(x):\n    '''Say more.'''\n")) == name
    assert made("# a remark\n\n\n" + plain) == name
    assert made(plain + "\n\ndef another(x):\n    return x\n") == name
    assert made(plain, scale=3.0) != name
    assert made(plain.replace("SCALE * x", "SCALE / x")) != name
    assert made(plain.replace("return part(x)", "return part(x) + 1")) != name
