"""Traced functions as C: compiled by the machine's own compiler, and compared."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from integrators import traced, where
from integrators.tracing.c_source import to_c
from integrators.tracing.graph import FLOATS, UNARY, Graph, Program

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
#: Elementary functions of two libraries differ by an ulp or two, and some follow each other.
ELEMENTARY = 1e-14
UNROUNDED = ("neg", "abs", "floor", "sign")


def compiled(source, folder, name="f"):
    """The function of a C file, called with arrays."""
    file, library = folder / f"{name}.c", folder / f"{name}.so"
    file.write_text(source)
    subprocess.run([COMPILER, *STRICT, "-o", library, file, "-lm"], check=True)
    entry = getattr(ctypes.CDLL(str(library)), name)
    pointer = ctypes.POINTER(ctypes.c_double)
    entry.argtypes, entry.restype = [ctypes.c_double, pointer, pointer, pointer], None

    def call(t, y, p, size):
        arrays = [np.ascontiguousarray([*values, 0.0], dtype=float) for values in (y, p)]
        out = np.full(size, np.nan)
        entry(t, *(a.ctypes.data_as(pointer) for a in (*arrays, out)))
        return out

    return call


@needs_compiler
def test_arithmetic_has_the_same_bits(tmp_path):
    """Sums, products, quotients and roots are rounded alike everywhere: no bit may differ."""
    rng = np.random.default_rng(1)
    graph = Graph()
    nodes = [graph.input(i) for i in range(6)] + [graph.const(c) for c in (-2.5, 1e-300, 0.1, 3e8)]
    for _ in range(400):
        op = rng.choice([*UNROUNDED, "add", "sub", "mul", "div", "min", "max", "sqrt"])
        args = rng.choice(nodes, size=1 if op in UNARY else 2)
        nodes.append(graph.node(str(op), *map(int, args)))
    a, b = nodes[-2:]
    apart = graph.node("not", graph.node("eq", a, nodes[3]))
    truth = graph.node("and", graph.node("lt", a, b), apart)
    nodes.append(graph.node("select", graph.node("or", truth, graph.node("ne", b, b)), a, b))
    program = Program.from_graph(graph, nodes[-40:], [f"x[{i}]" for i in range(6)])
    run = compiled(to_c(program, 3, 2), tmp_path)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])
    for trial in range(300):
        x = rng.standard_normal(6) if trial % 2 else rng.choice(special, 6)
        expected = np.array(program.evaluate(list(x)), dtype=float)
        assert np.array_equal(run(x[0], x[1:4], x[4:], 40), expected, equal_nan=True)


@needs_compiler
def test_every_operation(tmp_path):
    names = sorted(set(FLOATS) - {"and", "or", "not", "select"})
    graph = Graph()
    inputs = [graph.input(k) for k in range(2)]
    nodes = [graph.node(op, *inputs[: 1 if op in UNARY else 2]) for op in names]
    program = Program.from_graph(graph, nodes, "ty")
    run = compiled(to_c(program, 1, 0), tmp_path)
    for t, y in ((0.3, 0.7), (0.9, 0.2), (1.5, 2.5), (0.3, 0.3), (-0.4, 2.0)):
        found = run(t, [y], [], len(names))
        for op, x, expected in zip(names, found, program.evaluate([t, y]), strict=True):
            close = np.isclose(x, float(expected), rtol=ELEMENTARY, atol=0, equal_nan=True)
            assert close, (op, t, y, x, expected)


@needs_compiler
def test_mechanism_and_its_jacobian(tmp_path):
    """Forward dynamics of an arm as a C file, against the machine code of the same graph."""
    from multibody import mechanisms
    from multibody.runs.ivp import traced_fd

    model = mechanisms.serial_arm(3)
    f = traced_fd(model)
    rng = np.random.default_rng(3)
    run = compiled(f.to_c("arm", "Forward dynamics of an arm */"), tmp_path, "arm")
    J = f.jacobian()
    slopes = compiled(J.to_c("slopes"), tmp_path, "slopes")
    for _ in range(5):
        x, tau = rng.standard_normal(6), rng.standard_normal(3)
        expected = f(0.2, x, tau)
        slack = 100 * ELEMENTARY * np.abs(expected).max()
        assert np.allclose(run(0.2, x, tau, 6), expected, rtol=0, atol=slack)
        matrix = J(0.2, x, tau)
        found = slopes(0.2, x, tau, 36).reshape(6, 6)
        assert np.allclose(found, matrix, rtol=0, atol=100 * ELEMENTARY * np.abs(matrix).max())


@needs_compiler
def test_directions_follow_the_parameters(tmp_path):
    """A Jacobian-vector product has its direction after the parameters in p."""

    def g(t, y, p):
        return np.array([p[0] * y[0] * y[1], where(y[0] > t, y[1], -y[1])])

    f = traced(g, n=2, params=1)
    product = f.jvp()
    run = compiled(product.to_c(), tmp_path)
    assert np.array_equal(
        run(0.1, [0.5, 2.0], [3.0, 1.0, -1.0], 2), product(0.1, [0.5, 2.0], [1.0, -1.0], [3.0])
    )


def test_refusals():
    f = traced(lambda t, y: -y, n=1)
    for name in ("1f", "f g", "out", "", "größe"):
        with pytest.raises(ValueError, match="name of a C function"):
            f.to_c(name)
    assert "*/ x" not in f.to_c(title="*/ x").split("#include")[0].replace(" */\n", "")
    graph = Graph()
    program = Program.from_graph(graph, [graph.node("called", graph.input(0))], ["t"])
    with pytest.raises(ValueError, match="without C source"):
        to_c(program, 0, 0)
