"""Where there is neither numba nor LLVM, everything works, interpreted."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from integrators.tracing import trace
from integrators.tracing.interpreted_code import InterpretedCode
from integrators.tracing.llvm.codegen import compile_program
from tests.integrators.tracing.random_programs import BINARY, UNARY

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import numpy as np
import integrators, multibody
from integrators import *
from multibody import *
from multibody import mechanisms

f = lambda t, y: np.array([y[1], -np.sin(y[0])])
at_2 = [-0.3062009540, -0.9090470640]
"""

SAMPLES = {
    "methods": """
ours = [Taylor(8), Taylor("auto")]
ours += ["BDF", "Adams"]
for method in ["DOP853", "RK4", "RADAU5", "RadauVariable", "Gauss2", "SDIRK4", *ours]:
    s = solve(f, (0, 2), [1, 0], method=method, dense_output=True, rtol=1e-7, atol=1e-9)
    assert s.success, s
    assert np.allclose(s.y[:, -1], at_2, atol=1e-5), (method, s.y[:, -1])
    assert np.allclose(s.sol(1.0), [0.60008535, -0.75496375], atol=1e-4)
euler = solve(f, (0, 2), [1, 0], method=lambda f, t, y, h: y + h * f(t, y), step=0.01)
assert np.allclose(euler.y[:, -1], at_2, atol=0.05)
""",
    "traced": """
g = traced(f, n=2)
for method in ("DOPRI5", "DOP853", "RADAU5", Taylor(6)):
    hit = Event(traced(lambda t, y: [y[0]], n=2, outputs=1))
    s = solve(g, (0, 2), [1, 0], method=method, events=hit, rtol=1e-7)
    assert np.allclose(s.y[:, -1], at_2, atol=1e-5), s
    assert len(s.t_events[0]) == 1
back = solve(g, (2, 0), at_2)
assert np.allclose(back.y[:, -1], [1, 0], atol=1e-4)
assert np.allclose(g.jacobian()(0.0, [1.0, 2.0]), [[0, 1], [-np.cos(1), 0]])
many = solve_many(g, (0, 2), [[1, 0], [1, 0]], rtol=1e-7)
assert np.allclose(many.y, at_2, atol=1e-5)
""",
    "trees": """
model = mechanisms.double_pendulum()
q, v = [1.0, 0.5], [0.0, 0.0]
a = FD(model, q, v)
assert np.allclose(ID(model, q, v, a), 0.0)
s = solve(as_ivp(model, q, v, (0, 1)), method="DOP853", rtol=1e-9)
energy = s.problem.invariants["energy"]
assert np.ptp([energy(t, y) for t, y in zip(s.t, s.y.T)]) < 1e-6
by_q, by_v, by_tau = FD_derivatives(model, q, v)
step = 1e-6
assert np.allclose(by_q[:, 0], (FD(model, [1 + step, 0.5], v) - a) / step, atol=1e-4)
top = mechanisms.spinning_top()
assert solve(as_ivp(top, t_span=(0, 0.1)), method="RKMK5").success
""",
    "loops": """
model = mechanisms.four_bar()
q = assemble(model, [0.5, 0.3, 0.2]).q
ends = []
for problem, method in (
    (as_ivp(model, q, np.zeros(3), (0, 0.3)), "DOPRI5"),
    (as_ivp(model, q, np.zeros(3), (0, 0.3), stabilise="projection"), "DOP853"),
    (as_dae(model, q, np.zeros(3), (0, 0.3)), "RADAU5"),
):
    s = solve(problem, method=method, rtol=1e-7, atol=1e-9)
    assert s.success, s
    ends.append(s.y[:3, -1])
assert np.ptp(ends, axis=0).max() < 1e-4, ends
""",
    "commands": """
from featherstep.cli import main
assert main(["compare", "lorenz", "--methods", "DOP853", "--rtol", "1e-4", "--t-end", "0.5",
             "--repeat", "1"]) == 0
assert main(["simulate", "double_pendulum", "--t-end", "0.2", "--out", sys.argv[1]]) == 0
assert main(["warmup"]) == 1
""",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_without_numba(name, tmp_path):
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path / "cache")}
    environment.pop("FEATHERSTEP_COMPILE", None)
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + SAMPLES[name], str(tmp_path / "motion.html")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[3],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("numba is not installed: kernels are interpreted") == 1


def test_numba_that_cannot_be_imported(tmp_path):
    """Installed, but broken: found out when it is needed, said once, and lived with."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(
        "raise ImportError('numba needs another NumPy')"
    )
    script = """
import numpy as np
from integrators import solve
for _ in range(2):
    assert solve(lambda t, y: -y, (0, 1), [1.0]).success
"""
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path), "FEATHERSTEP_COMPILE": "first"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("numba needs another NumPy") == 1


@pytest.mark.parametrize("seed", range(20))
def test_programs_as_python_equal_machine_code(seed):
    """Up to the rounding of a·b + c and of elementary functions."""
    rng = np.random.default_rng(seed)
    chosen = [(*rng.integers(0, 4 + np.arange(2) + k, 2), rng.random()) for k in range(25)]
    unary, binary = ([d[str(k)] for k in rng.choice(list(d), 25)] for d in (UNARY, BINARY))

    def f(t, y, p):
        values = [t, *y, p[0]]
        for k, (i, j, way) in enumerate(chosen):
            a, b = values[i], values[min(j, len(values) - 1)]
            values.append(unary[k](a) if way < 0.5 else binary[k](a, b))
        return values[-3:]

    program, n = trace(f, (), 2, 1), 2
    python, machine = InterpretedCode(program, n), compile_program(program, n)
    y, p = rng.normal(size=2), rng.normal(size=1)
    found, wanted = python(0.3, y, p), machine(0.3, y, p)
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)
    out = np.empty(python.size)
    python.function(0.3, y.ctypes.data, p.ctypes.data, out.ctypes.data)
    assert out.tobytes() == found.tobytes()


def test_large_programs_are_run_node_by_node(monkeypatch):
    from integrators.tracing import interpreted_code

    program = trace(lambda t, y, p: [y[0] / y[1] + p[0], np.sin(t)], (), 2, 1)
    whole = InterpretedCode(program, 2)
    monkeypatch.setattr(interpreted_code, "LARGEST_FUNCTION", 1)
    nodes = InterpretedCode(program, 2)
    assert whole(1.0, [1.0, 0.0], [2.0]).tolist() == nodes(1.0, [1.0, 0.0], [2.0]).tolist()
    assert whole(1.0, [1.0, 0.0], [2.0])[0] == np.inf
