"""Figures of the problem and of the error: they show what was computed, and touch nothing else."""

import subprocess
import sys
import types
from importlib import import_module

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from integrators import analysis, problems, solve
from integrators.analysis import plot

OURS = [
    "difference_quotients", "eigenvalues", "euler_bounds", "global_error", "local_errors",
    "picard_iterates", "richardson_table", "several_solutions", "step_limits",
    "taylor_polynomials",
]  # fmt: skip


def root(t, y):
    return np.sqrt(np.abs(y))


@pytest.fixture(scope="module")
def results():
    growth = problems.get("linear_growth")
    run = solve(growth, method="RK4", step=0.1)
    stiff = analysis.stiffness(problems.get("curtiss_hirschfelder", lam=500.0), "RK4", points=20)
    return {
        "difference_quotients": (analysis.lipschitz(root, (-1, 1)),),
        "eigenvalues": (stiff,),
        "euler_bounds": (analysis.euler_bounds(growth, 10),),
        "global_error": (analysis.global_error(run),),
        "local_errors": (analysis.local_errors(growth, "RK4", 0.1),),
        "picard_iterates": (analysis.picard(growth, iterations=3),),
        "richardson_table": (analysis.richardson(growth, "ExplicitEuler", 0.1),),
        "several_solutions": (analysis.existence(problems.get("square_root")),),
        "step_limits": (stiff,),
        "taylor_polynomials": (analysis.taylor(np.cos, 0.0, 4), np.linspace(-1, 1, 11)),
    }


@pytest.mark.parametrize("name", OURS)
def test_every_figure(name, results, tmp_path):
    draw = getattr(plot, name)
    ax = draw(*results[name])
    assert isinstance(ax, Axes)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_title(loc="left")
    labels = ax.get_legend_handles_labels()[1]
    assert labels
    ax.figure.savefig(tmp_path / "figure.png")
    given = Figure().add_subplot()
    assert draw(*results[name], ax=given) is given
    with pytest.raises((TypeError, ValueError)):
        draw(3, *results[name][1:])


def test_curves_are_the_results(results):
    (bounds,) = results["euler_bounds"]
    ax = plot.euler_bounds(bounds)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert drawn["true error: 0.2032"][1:] == pytest.approx(bounds.error[1:])
    assert "geometric (A^N): 0.5255" in drawn
    assert "exponential: 0.5666" in drawn
    assert "exponential, coarse: 0.8963" in drawn
    (existence,) = results["several_solutions"]
    stays, leaves, start = plot.several_solutions(existence, np.array([-1.0, 0.0, 2.0])).lines
    assert stays.get_ydata() == pytest.approx([0, 0, 0])
    assert leaves.get_ydata() == pytest.approx([-0.25, 0, 1], abs=1e-9)
    assert start.get_xdata() == pytest.approx([0])
    (constant,) = results["difference_quotients"]
    (line,) = plot.difference_quotients(constant).lines
    assert line.get_ydata()[1] == pytest.approx(10)
    assert line.get_ydata()[5] == pytest.approx(1000)
    growth = problems.get("linear_growth")
    ax = plot.global_error(results["global_error"], exact=growth.exact)
    true, ladder = (line.get_ydata() for line in ax.lines)
    assert ladder[1:] == pytest.approx(true[1:], rel=0.05)  # the next term of the expansion
    ax = plot.step_limits(results["step_limits"][0])
    assert ax.lines[0].get_ydata()[0] == pytest.approx(2.785293563 / 500)


def test_figures_refuse_what_they_cannot_show():
    with pytest.raises(ValueError, match="no quotients"):
        plot.difference_quotients(analysis.lipschitz(lambda t, y: y, (0, 1)))
    with pytest.raises(ValueError, match="no second solution"):
        plot.several_solutions(analysis.existence(lambda t, y: y, 0.0, [1.0]))
    with pytest.raises(ValueError, match="one variable"):
        plot.taylor_polynomials(analysis.taylor(lambda x: x[0] * x[1], [0.0, 0.0], 2), [0.0, 1.0])
    with pytest.raises(ValueError, match="component"):
        plot.picard_iterates(analysis.picard(lambda t, y: y, (0, 1), [1.0], 1), 3)


def test_no_public_name_is_hidden_by_a_module():
    """`import integrators.analysis.x` makes x an attribute: no module may be called like a name."""
    for package in (analysis, plot):
        for module in set(package._WHERE.values()):
            import_module(f"{package.__name__}.{module}")
        for name in package._WHERE:
            assert not isinstance(getattr(package, name), types.ModuleType), name


def test_matplotlib_is_loaded_for_figures_only():
    code = (
        "import sys; from integrators import analysis, problems; "
        "analysis.euler_bounds(problems.get('linear_growth'), 10); analysis.plot; "
        "assert not any(m.startswith('matplotlib') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
