"""The report as text and figure, the plots, and bad input."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from integrators import Tableau, analysis, catalogue
from integrators.analysis import dispersion, plot, report, stability_function, stability_interval
from integrators.analysis.plot import method as drawing

ENTRIES = catalogue.entries()


def misprinted():
    right = catalogue.get("RK38")
    return Tableau(
        [[], ["1/3"], ["-1/3", -1], [1, -1, 1]], right.b, right.c, name="as printed", check=False
    )


# ---------------------------------------------------------------------- the text


@pytest.mark.parametrize("entry", ENTRIES, ids=[e.name for e in ENTRIES])
def test_every_scheme_has_a_report(entry):
    page = report(entry.tableau)
    text = str(page)
    assert page.order == entry.order
    assert f"order {entry.order}" in page.title
    found = {key for key in ("B", "symplectic") if page.verdicts[key]}
    declared = entry.stability.split(", ")
    assert found == {key for key in ("B", "symplectic") if key in declared}
    assert len(text.splitlines()) <= 60  # a page
    limit = max(101, max(map(len, str(entry.tableau).splitlines())) + 3)
    assert max(map(len, text.splitlines())) <= limit
    for verdict in page.verdicts.values():
        assert verdict.reason


def test_report_of_the_misprinted_rule():
    page = report(misprinted())
    assert page.order == 1
    assert [formula for _, formula in page.failing] == ["Σ bᵢ aᵢⱼ = 1/2"]
    text = str(page)
    assert "row 3 of A adds up to -4/3, but c[3] = 2/3" in text
    assert "principal error: D = " in text  # no A: trees take the rows for nodes
    assert "Σ bᵢ aᵢⱼ = 1/2, but it is -1/4" in text
    assert not report("RK38").remarks


def test_report_of_a_mutation():
    """One coefficient + 1e-3: order, verdicts and stability function change."""
    right = catalogue.get("RadauIIA2")
    A = [list(row) for row in right.A]
    A[1][0] += Fraction(1, 1000)
    before, after = report(right), report(Tableau(A, right.b))
    assert (before.order, after.order) == (3, 1)
    assert before.verdicts["L"]
    assert before.verdicts["stiffly accurate"]
    assert not after.verdicts["L"]
    assert not after.verdicts["stiffly accurate"]
    assert before.R.numerator != after.R.numerator


def test_inconsistent_method():
    page = report(Tableau([[0]], [2]))
    assert page.order == 0
    assert "add up to 2" in str(page)


def test_float_coefficients():
    exact, rounded = report("Ralston"), report(Tableau([[], [2 / 3]], [0.25, 0.75]))
    assert rounded.order == exact.order
    assert rounded.measures["real"].value == pytest.approx(exact.measures["real"].value, rel=1e-14)
    assert not rounded.R.is_exact


# ---------------------------------------------------------------------- the figures


@pytest.mark.parametrize("name", ["RadauIIA3", "ESDIRK8516"])  # written, and drawn as a picture
def test_figure_of_the_report(name, tmp_path):
    figure = report(name).figure()
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "page.png", dpi=30)  # warnings, such as missing letters, are errors
    words = " ".join(t.get_text() for ax in figure.axes for t in ax.texts)
    assert "A-stable" in words
    assert "order" in words


def test_figure_of_the_misprinted_rule(tmp_path):
    figure = report(misprinted()).figure()
    figure.savefig(tmp_path / "page.png", dpi=30)
    words = " ".join(t.get_text() for t in figure.texts)
    assert "row 3 of A" in words


def boundary(ax):
    """Vertices of the lines drawn by `contour`."""
    paths = [p for c in ax.collections for p in c.get_paths()]
    return np.concatenate([p.vertices for p in paths if len(p.vertices)])


def test_region_has_the_right_size():
    ax = plot.stability_region("RK4", window=(-4, 1, -4, 4))
    assert isinstance(ax, Axes)
    leftmost = boundary(ax)[:, 0].min()
    cell = 5 / drawing.POINTS
    assert leftmost == pytest.approx(-stability_interval("RK4").value, abs=cell)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Re z", "Im z")


def test_region_changes_with_a_coefficient():
    right = catalogue.get("RK4")
    wrong = Tableau(right.A, [*right.b[:3], right.b[3] + Fraction(1, 5)])
    one, other = (
        boundary(plot.stability_region(t, window=(-4, 1, -4, 4)))[:, 0].min()
        for t in (right, wrong)
    )
    assert abs(one - other) > 0.05


def test_automatic_window_shows_the_whole_region():
    for name in ("ExplicitEuler", "RK4", "SSPRK104", "DOP853"):
        left, right, bottom, top = drawing._window([stability_function(name)], False)
        assert left < -stability_interval(name).value
        assert top > stability_interval(name, "imaginary").value
        assert right > 0 > bottom


def test_order_star_marks_poles_and_zeros():
    ax = plot.stability_region("RadauIIA3", order_star=True)
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels == ["poles of R", "zeros of R"]
    assert "Order star" in ax.get_title(loc="left")


def test_several_regions_have_a_legend():
    ax = plot.stability_region(["ExplicitEuler", "RK4"])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["ExplicitEuler", "RK4"]


def test_amplification_and_dispersion():
    own = Figure().add_subplot()
    assert plot.amplification("RK4", "real", own) is own
    texts = [t.get_text() for t in plot.amplification("RK4", "imaginary").texts]
    assert "2.8284" in texts
    ax = plot.dispersion_curves([dispersion("RK4"), "Gauss2"])
    assert len(ax.lines) == 3  # the Gauss method loses no amplitude
    y, phase = ax.lines[0].get_data()
    small = y < 0.1
    slope = np.polyfit(np.log(y[small]), np.log(phase[small]), 1)[0]
    assert slope == pytest.approx(5, abs=0.05)


# ---------------------------------------------------------------------- names and bad input


def test_public_names_are_there():
    for name in analysis.__all__:
        assert getattr(analysis, name) is not None
    for name in ("report", "dispersion", "bseries", "irreducible", "stability_function"):
        assert callable(getattr(analysis, name))
    for name in ("amplification", "dispersion_curves", "report_figure", "stability_region"):
        assert callable(getattr(plot, name))


EVERYTHING = [
    analysis.a_alpha,
    analysis.a_stability,
    analysis.adjoint,
    analysis.algebraic_stability,
    analysis.an_stability,
    analysis.dispersion,
    analysis.error_coefficients,
    analysis.failing_conditions,
    analysis.figures_of_merit,
    analysis.i_stability,
    analysis.irreducible,
    analysis.l_stability,
    analysis.quadratic_invariants,
    analysis.report,
    analysis.ssp_coefficient,
    analysis.stability_function,
    analysis.stability_interval,
    analysis.stage_order,
    analysis.stiff_accuracy,
    analysis.strong_a_stability,
    analysis.symmetry,
    analysis.symplecticity,
    plot.stability_region,
]


@pytest.mark.parametrize("function", EVERYTHING, ids=lambda f: f.__name__)
def test_what_is_no_method_is_refused(function):
    assert function("RK4") is not None  # names are welcome
    for wrong in (4, None, [[0.0]], catalogue.entry("RK4")):
        with pytest.raises((TypeError, ValueError), match="name of a scheme"):
            function(wrong)
    with pytest.raises(ValueError, match="did you mean"):
        function("DORPI5")


def test_coefficients_must_be_finite():
    with pytest.raises(ValueError, match="finite"):
        report(Tableau([[0]], [Decimal("NaN")]))
    with pytest.raises(ValueError, match="finite"):
        report(Tableau([[float("inf")]], [1]))


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="'real' or 'imaginary'"):
        stability_interval("RK4", "complex")
    with pytest.raises(ValueError, match="y_max"):
        dispersion("RK4", y_max=-1.0)
    with pytest.raises(ValueError, match="points"):
        dispersion("RK4", points=1)
    with pytest.raises(ValueError, match="empty list"):
        plot.stability_region([])
