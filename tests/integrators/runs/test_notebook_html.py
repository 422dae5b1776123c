"""What a notebook shows: short lines, and HTML that is well formed and escaped."""

from xml.etree import ElementTree

import pytest

from integrators import Tableau, catalogue, solve
from integrators.analysis import convergence, report, work_precision


def study():
    return convergence("minus_2ty2", ["Heun", "RK4"], [0.1, 0.05, 0.025, 0.0125])


def work():
    return work_precision("logistic", ["DOPRI5", "scipy:RK45"], [1e-4, 1e-6], repeat=1)


def solution():
    return solve(lambda t, y: -y, (0, 1), [1.0, 2.0], method="RK4", step=0.1)


MADE = {
    "tableau": lambda: catalogue.get("DOPRI5"),
    "report": lambda: report("RK4"),
    "solution": solution,
    "convergence": study,
    "curve": lambda: study().curves[0],
    "work": work,
}


@pytest.mark.parametrize("name", MADE)
def test_a_line_is_a_line(name):
    text = repr(MADE[name]())
    assert len(text) < 200
    assert "\n" not in text
    assert text.startswith("<")


@pytest.mark.parametrize("name", [name for name in MADE if name != "curve"])
def test_html_is_well_formed(name):
    page = ElementTree.fromstring(f"<div>{MADE[name]()._repr_html_()}</div>")
    assert "".join(page.itertext()).strip()


def test_a_tableau_shows_its_fractions():
    words = list(ElementTree.fromstring(catalogue.get("RK4")._repr_html_()).itertext())
    assert words.count("1/6") == 2
    assert words.count("1/3") == 2


def test_names_are_escaped():
    text = Tableau([[]], [1], name="<b>x</b>")._repr_html_()
    assert "<b>" not in text


def test_embedded_weights_must_add_up_to_one():
    with pytest.raises(ValueError, match="b_hat adds up to 5/6 in place of 1"):
        Tableau([[], [1]], ["1/2", "1/2"], b_hat=["1/2", "1/3"])
    assert Tableau([[], [1]], ["1/2", "1/2"], b_hat=["1/2", "1/3"], check=False).b_hat is not None
    assert Tableau([[], [1]], ["1/2", "1/2"], b_hat=[0.3, 0.7]).b_hat == (0.3, 0.7)
