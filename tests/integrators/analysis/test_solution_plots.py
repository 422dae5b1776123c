"""Pictures of solutions, trees and regions of functions; figures for papers."""

import numpy as np
import pytest

from integrators import problems, solve
from integrators.analysis import convergence, plot


@pytest.fixture(scope="module")
def ball():
    return solve(problems.get("bouncing_ball"), rtol=1e-6, dense_output=True)


def test_solutions(ball):
    ax = ball.plot(["y0"], steps=True)
    assert ax.figure.axes[1].get_yscale() == "log"  # lengths of the steps
    assert any(line.get_marker() == "o" for line in ax.lines)  # events
    with pytest.raises(ValueError, match="no component 'height'"):
        ball.plot(["height"])
    with pytest.raises(ValueError, match="no component 7"):
        ball.plot([7])
    with pytest.raises(TypeError, match="what solve returned"):
        plot.plot_error("kepler")
    with pytest.raises(ValueError, match="two components"):
        plot.phase_portrait(problems.get("kepler"))
    with pytest.raises(ValueError, match="one component"):
        plot.slope_field(problems.get("kepler"))


def test_the_error_drawn_is_the_error():
    problem = problems.get("logistic")
    run = solve(problem, method="RK4", step=0.5)
    drawn = plot.plot_error(run).lines[0].get_ydata()
    exact = np.array([problem.exact(t) for t in run.t]).T
    assert drawn[1:] == pytest.approx(np.max(np.abs(run.y - exact), axis=0)[1:], rel=1e-12)


def test_trees_show_what_a_method_misses():
    """Kutta's third-order method fails conditions of order 4 only: not all hold, not all fail."""
    texts = [text.get_text() for text in plot.rooted_trees(4, "Kutta3").texts]
    assert len(texts) == 16
    wrong = [text for text in texts if "neq" in text]
    assert 0 < len(wrong) < 4
    assert not any("neq" in text.get_text() for text in plot.rooted_trees(4, "RK4").texts)
    with pytest.raises(ValueError, match="from 1 to 6"):
        plot.rooted_trees(9)


def boundary(ax):
    """Where the drawn boundary of a region crosses the negative real axis."""
    paths = [c for c in ax.collections if len(c.get_paths())]
    points = np.concatenate([p.vertices for c in paths for p in c.get_paths() if len(p.vertices)])
    near = points[np.abs(points[:, 1]) < 0.05]
    return near[:, 0].min()


def test_regions_of_functions():
    """R(z) and a step that cannot be read give the region of the tableau: RK4 ends at −2.785."""

    def R(z):
        return 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24

    assert boundary(plot.stability_region(R)) == pytest.approx(-2.785, abs=0.03)

    def implicit_euler(f, t, y, h):
        base = f(t + h, y)
        J = np.array([(f(t + h, y + 1e-6 * e) - base) / 1e-6 for e in np.eye(len(y))]).T
        return y + np.linalg.solve(np.eye(len(y)) - h * J, h * base)

    ax = plot.stability_region([implicit_euler, "RK4"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["implicit_euler", "RK4"]
    with pytest.raises(ValueError, match="by themselves"):
        plot.stability_region([R, "BDF2"])


def test_figures_for_papers(tmp_path):
    study = convergence("minus_2ty2", ["Heun", "RK4"], [0.1, 0.05, 0.025, 0.0125])
    ax = plot.convergence(study)
    path = plot.save_figure(ax, tmp_path / "a.pdf", style="paper")
    assert ax.figure.get_size_inches()[0] == pytest.approx(3.35)
    assert b"/Type3" not in path.read_bytes()  # no bitmapped type
    assert {text.get_fontsize() for text in (ax.title, ax.xaxis.label, ax.yaxis.label)} == {8.0}
    assert "claimed 4" in ax.get_legend().get_texts()[1].get_text()
    wide = plot.save_figure(ax, tmp_path / "b.svg", style="paper", width="page", height=3.0)
    assert "<text" in wide.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="style must be"):
        plot.save_figure(ax, tmp_path / "c.pdf", style="poster")
    with pytest.raises(ValueError, match="width must be"):
        plot.save_figure(ax, tmp_path / "c.pdf", style="paper", width="wall")


def test_orbits_of_a_portrait_are_smooth_and_begin_at_their_start():
    """No corner is sharper than a few degrees; both ways leave from the same point."""
    ax = plot.phase_portrait(problems.get("pendulum"))
    ahead, back = (np.array(line.get_xydata()) for line in ax.lines[14:16])
    np.testing.assert_allclose(ahead[0], back[0])
    for orbit in (ahead, back):
        moves = np.diff(orbit, axis=0) / np.ptp(orbit, axis=0)
        moves /= np.linalg.norm(moves, axis=1)[:, None]
        assert np.min(np.sum(moves[1:] * moves[:-1], axis=1)) > np.cos(np.radians(12.0))


def test_a_portrait_of_a_plain_function_is_told_what_to_do():
    with pytest.raises(TypeError, match=r"got function; make it one by IVP\(f, y0, t_span\)"):
        plot.phase_portrait(lambda t, y: [y[1], -y[0]])
    with pytest.raises(TypeError, match="expected an IVP, or one or several solutions, got list"):
        plot.phase_portrait([])
