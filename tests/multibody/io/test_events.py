"""Events in model files: read with their lines, acting in runs and on the command line."""

import numpy as np
import pytest

from featherstep.cli import main
from multibody import file_events, load_model, mechanisms, simulate
from multibody.io import ModelEvent, ModelFileError, load_events

CART = """
name = "cart at a stop"

[[bodies]]
name = "cart"
parent = "base"
joint = { kind = "prismatic", axis = "x" }
inertia = { mass = 2.0 }

[[events]]
name = "stop"
quantity = "cart"
level = 0.5
direction = "rising"
scale = { cart = -0.8 }

[[events]]
name = "passing"
quantity = { position = ["cart", "x"] }

[[events]]
name = "gone"
quantity = "cart.shift"
level = -2.0
terminal = true

[start]
v = { cart = 1.0 }
t_end = 6.0
"""


def test_a_bounce_and_an_end(tmp_path, capsys):
    file = tmp_path / "cart.toml"
    file.write_text(CART)
    model = load_model(file)
    run = simulate(model, v0=[1.0], T=6.0, events=file_events(model, file))
    stop, passing, gone = run.t_events
    assert stop == pytest.approx([0.5], abs=1e-12)
    assert passing == pytest.approx([0.5 + 0.5 / 0.8], abs=1e-9)  # not the start itself
    assert gone == pytest.approx([0.5 + 2.5 / 0.8], abs=1e-9)
    assert main(["simulate", str(file)]) == 0
    said = capsys.readouterr().out
    assert "stop: t = 0.5\n" in said
    assert "gone: t = 3.625\n" in said
    assert main(["compare", str(file)]) != 0
    assert "events change the motion (stop, gone)" in capsys.readouterr().err


def test_a_loop_stays_closed_after_a_jump():
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    slow = ModelEvent("brake", "crank", level=2.0, direction=1, scale={"crank": 0.5})
    q0, v0 = entry.start(model)
    run = simulate(model, q0, v0, T=3.0, events=file_events(model, [slow]), fps=None)
    assert run.success
    assert len(run.t_events[0]) == 1
    assert run.observed.velocity_drift.max() < 1e-3  # a torn loop: of the order of one


def test_own_states_are_set():
    model = mechanisms.servo_arm()
    empty = ModelEvent("empty", "upper", level=0.3, set={"upper pid.integral": 0.0})
    (event,) = file_events(model, [empty])
    x = np.arange(1.0, model.nq + model.nv + 1.0)
    after = event.reset(0.0, x)
    place = model.q_names.index("upper pid.integral")
    assert after[place] == 0.0
    assert np.array_equal(np.delete(after, place), np.delete(x, place))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('direction = "rising"', 'direction = "up"', r"cart.toml:14: .*expected either, rising"),
        ("{ cart = -0.8 }", "{ crat = -0.8 }", r"cart.toml:15: .*nothing is named 'crat'"),
        ("terminal = true", "terminal = -1", r"expected true, false or a count"),
        ("level = 0.5", "levle = 0.5", r"levle"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, old, new, match):
    file = tmp_path / "cart.toml"
    file.write_text(CART.replace(old, new))
    with pytest.raises(ModelFileError, match=match):
        load_events(file)


@pytest.mark.parametrize(
    ("quantity", "match"),
    [("crat", "no state is named 'crat'"), ({"point": "cart"}, "expected one number")],
)
def test_quantities_that_cannot_be_meant(tmp_path, quantity, match):
    file = tmp_path / "cart.toml"
    file.write_text(CART)
    with pytest.raises(ValueError, match=match):
        file_events(load_model(file), [ModelEvent("e", quantity)])
