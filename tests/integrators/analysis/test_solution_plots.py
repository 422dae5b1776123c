"""Pictures of solutions, trees and regions of functions; figures for papers."""

import numpy as np
import pytest

from integrators import IVP, Tableau, catalogue, problems, solve
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


# ---------------------------------------------------------------- what covers what


def points_of(ax):
    """All points of the curves, in pixels."""
    lines = [line for line in ax.lines if line.get_transform().contains_branch(ax.transData)]
    return np.concatenate([ax.transData.transform(line.get_xydata()) for line in lines])


@pytest.fixture(scope="module")
def many_methods():
    """Seven curves, of which two pairs coincide, one does not converge, and one has failures."""
    heun, never = catalogue.get("Heun"), Tableau([[]], ["3/2"], name="never", check=False)
    methods = [
        heun,
        Tableau(heun.A, heun.b, name="mine"),
        never,
        "ExplicitEuler",
        "RK4",
        "AB3",
        "RK38",
    ]
    return convergence("minus_2ty2", methods, [0.4, 0.2, 0.1, 0.05, 0.025, 0.0125])


def test_the_legend_of_a_study_covers_no_point(many_methods):
    ax = plot.convergence(many_methods)
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    inside = points_of(ax)
    inside = inside[np.isfinite(inside).all(axis=1)]
    assert len(inside) > 40
    assert not any(box.contains(*point) for point in inside)


def test_a_curve_on_another_one_has_rings_around_its_markers(many_methods):
    ax = plot.convergence(many_methods)
    by_label = {line.get_label().split(":")[0]: line for line in ax.lines}
    under, over = by_label["Heun"], by_label["mine"]
    assert over.get_markerfacecolor() == "none"
    assert over.get_markersize() > under.get_markersize() + 2
    assert by_label["RK4"].get_markerfacecolor() != "none"


def test_the_legend_of_a_paper_stands_below_the_label(many_methods, tmp_path):
    ax = plot.convergence(many_methods)
    plot.save_figure(ax, tmp_path / "a.pdf", style="paper")
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y1 < ax.xaxis.label.get_window_extent().y0
    assert ax.bbox.height > 0.4 * ax.bbox.width


def test_a_portrait_shows_whole_orbits():
    """In half a swing the velocity has one sign; the orbit on which it lies has both."""
    ax = plot.phase_portrait(problems.get("pendulum", t_end=0.5))
    low, high = ax.get_ylim()
    assert -0.5 < (low + high) / (high - low) < 0.5
    decaying = IVP(lambda t, y: [-9 * y[0], -y[1]], [1.0, 1.0], (0, 2))  # backwards it runs away
    assert plot.phase_portrait(decaying).get_xlim()[1] < 1.2


def test_components_of_very_different_sizes_are_divided_by_them():
    run = solve(lambda t, y: [-y[0], 1000 * np.cos(t)], (0, 3), [1.0, 0.0])
    ax = run.plot()
    assert ax.lines[1].get_label().startswith("y1 / ")
    assert abs(ax.lines[1].get_ydata()).max() == pytest.approx(1.0)
    assert abs(run.plot([1]).lines[0].get_ydata()).max() == pytest.approx(1000, rel=0.01)


def test_few_steps_make_no_corners_and_stiff_ones_no_waves():
    swing = solve(problems.get("pendulum"), method="DOP853", rtol=1e-6)
    t, y = swing.plot([0]).lines[0].get_data()
    assert t.size > 4 * swing.t.size
    assert np.max(np.abs(y - [problems.get("pendulum").exact(s)[0] for s in t])) < 0.02
    fast = solve(
        lambda t, y: -1e3 * (y - np.cos(t)), (0, 1), [0.0], method="ImplicitEuler", step=0.1
    )
    assert fast.plot().lines[0].get_xdata().size == fast.t.size
