"""Equations as text: what they mean, what is refused, and that nothing is executed."""

import html

import numpy as np
import pytest

from featherstep.cli import main
from featherstep.equations import read_problem
from integrators import problems, solve, traced


def test_the_library_s_problems_as_text():
    """The same slopes as the problem of the library, at random states."""
    rng = np.random.default_rng(4)
    mine = read_problem("y'' = mu*(1 - y^2)*y' - y; mu = 5; y(0) = 2; y'(0) = 0; t = 0 .. 12")
    theirs = problems.get("van_der_pol", mu=5.0)
    assert mine.y0.tolist() == [2.0, 0.0]
    assert mine.t_span == (0.0, 12.0)
    for y in rng.standard_normal((5, 2)):
        expected = theirs.bind(theirs.f)(0.3, y)
        assert mine.bind(mine.f)(0.3, y) == pytest.approx(expected, rel=1e-14)


def test_systems_functions_and_signs():
    text = """
    # two unknowns of different orders
    x'' = -x + exp(-t)*z^2
    z' = −2*z + sin(x') / (1 + abs(z)) + pi
    """
    problem = read_problem(text, [0.3, -0.7, 1.5], 2.0)
    x, v, z, t = 0.3, -0.7, 1.5, 0.4
    expected = [v, -x + np.exp(-t) * z**2, -2 * z + np.sin(v) / (1 + abs(z)) + np.pi]
    assert problem.f(t, [x, v, z]) == pytest.approx(expected, rel=1e-15)
    run = solve(problem, method="RADAU5", rtol=1e-9)
    again = solve(problem.with_(f=traced(problem.f, n=3)), method="DOP853", rtol=1e-9)
    assert run.y[:, -1] == pytest.approx(again.y[:, -1], abs=1e-7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y' = __import__('os').system('true')", "not an expression"),
        ("y' = (lambda: 1)()", "more in it"),
        ("y' = y.__class__", "more in it"),
        ("y' = [y for y in y]", "more in it"),
        ("y' = y if y else 1", "more in it"),
        ("y' = 'text'", "not an expression"),
        ("y' = 2y", "write a \\* b"),
        ("y' = sn(y)", "did you mean"),
        ("y' = k*y", "k = 1"),
        ("y' = y; y' = 2*y", "two equations"),
        ("t' = 1", "meaning of its own"),
        ("y = 3", "no equation"),
        ("y' == y", "no statement"),
        ("y' = sin", "needs an argument"),
        ("y' = sin(y, y)", "one argument"),
        ("y' = y; y(0) = 1/0", "not a number"),
        ("y' = y; y(0) = 1; t = 1 .. 2", "interval begins"),
        ("y' = y; z(0) = 1", "not among the unknowns"),
        ("y' = y", "initial values are missing"),
        ("y' = " + "-" * 100 + "y", "nested too deeply"),
        ("y' = y" + " " * 30000, "characters"),
        ("no.ode", "no file"),
    ],
)
def test_what_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        read_problem(text)
    with pytest.raises(ValueError, match="needs 2 numbers, for y, y'"):
        read_problem("y'' = -y", [1.0])
    with pytest.raises(ValueError, match="no parameter 'nu'"):
        read_problem("y' = mu*y; mu = 2", [1.0], parameters={"nu": 3.0})


def test_on_the_command_line(tmp_path, capsys):
    file = tmp_path / "oscillator.ode"
    file.write_text("y'' = -w^2*y\nw = 2\ny(0) = 1\nt = 0 .. 3\n", encoding="utf-8")
    page = tmp_path / "page.html"
    options = ["--methods", "DOPRI5", "--rtol", "1e-6", "--repeat", "1", "--html", str(page)]
    assert main(["compare", str(file), *options]) == 0
    assert "DOPRI5" in capsys.readouterr().out
    assert "<svg" in page.read_text(encoding="utf-8")
    options[-1] = str(tmp_path / "other.html")
    assert main(["compare", "y'' = -y", "--y0", "1,0", *options]) == 0
    other = html.unescape((tmp_path / "other.html").read_text(encoding="utf-8"))
    assert """featherstep compare "y'' = -y" --y0 1,0""" in other
    steps = ["--methods", "RK4", "--steps", "0.1,0.05,0.025"]
    assert main(["converge", str(file), "--param", "w=1", *steps]) == 0
    assert main(["converge", "y'' = -w^2*y", "--y0", "1,0", "--param", "w=1", *steps]) == 0
    assert main(["compare", "y' = 2y", "--y0", "1"]) == 2
    assert "write a * b" in capsys.readouterr().err


def test_methods_on_the_command_line(tmp_path, capsys):
    picture = tmp_path / "region.png"
    assert main(["stability", "RK4,BDF2", "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "R(z) = 1 + z + 1/2 z²" in said
    assert "zero-stable: yes" in said
    assert said.count("real stability interval") == 2
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert main(["report", "Heun"]) == 0
    assert "order 2" in capsys.readouterr().out
    assert main(["stability", "DOPRY5"]) == 2
    assert "did you mean" in capsys.readouterr().err
