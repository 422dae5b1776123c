"""Sliders: each setting draws another picture, and what cannot be is said in place of it."""

import sys

import pytest

from integrators.analysis import plot
from integrators.analysis.plot.style import new_axes
from multibody import mechanisms, sliders

widgets = pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")


def parts(panel):
    """Controls by name, the line for what is wrong, the picture."""
    *controls, said, picture = panel.children
    return {control.description: control for control in controls}, said, picture


@pytest.mark.parametrize(
    ("made", "moved"),
    [
        (lambda: plot.step_slider("logistic", ["ExplicitEuler", "RK4"]), {"h": 1.0}),
        (lambda: plot.stability_slider(["ExplicitEuler", "Gauss2"]),
         {"h": 1.0, "frequency": 4.0, "growth": -1.0, "method": "Gauss2"}),
        (lambda: sliders.stabilisation(mechanisms.entry("four_bar"), t_end=0.1), {"T_stab": 0.02}),
    ],
    ids=["step", "stability", "stabilisation"],
)  # fmt: skip
def test_every_control_changes_the_picture(made, moved):
    controls, said, picture = parts(made())
    assert set(controls) == set(moved)
    assert bytes(picture.value).startswith(b"\x89PNG")
    for name, value in moved.items():
        before = picture.value
        controls[name].value = value
        assert picture.value != before, name
        assert said.value == ""


def test_a_setting_that_cannot_be_is_told():
    def draw(a):
        if a > 1:
            raise ValueError("a is too large")
        return new_axes(None).figure

    controls, said, picture = parts(plot.slider_panel(draw, {"a": (0.0, 2.0, 0.5)}))
    before = picture.value
    controls["a"].value = 1.5
    assert "a is too large" in said.value
    assert picture.value == before
    controls["a"].value = 0.7
    assert said.value == ""


def test_without_widgets_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"featherstep\[notebook\]"):
        plot.step_slider("logistic")


def test_a_tree_has_nothing_to_stabilise():
    with pytest.raises(ValueError, match="has no loops"):
        sliders.stabilisation(mechanisms.pendulum(), [0.1], [0.0])
