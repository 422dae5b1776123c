"""Mechanisms as FMUs: trees, quaternions and closed loops, with forces as inputs."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import multibody as mb
from integrators import Event, solve
from multibody import mechanisms

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)


@pytest.mark.parametrize("name", ["double_pendulum", "four_bar", "heavy_top"])
def test_mechanisms_move_as_here(name, tmp_path):
    entry = mechanisms.entry(name)
    model = entry.model()
    start = entry.start(model)
    file = mb.export_fmu(model, tmp_path / "it.fmu", *start, (0.0, 1.0), rtol=1e-9, atol=1e-11)
    torque = 0.3
    tau = np.zeros(model.nv)
    tau[0] = torque
    problem = mb.as_ivp(model, *start, (0.0, 1.0), tau=lambda t, q, v, p: p, params=tau)
    here = solve(problem, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    described = fmpy.read_model_description(str(file))
    first = next(v.name for v in described.modelVariables if v.causality == "input")
    states = [v.name for v in described.modelVariables if v.causality == "output"]
    assert states == [*model.q_names, *model.v_names]
    for kind in ("CoSimulation", "ModelExchange"):
        rows = fmpy.simulate_fmu(
            str(file), fmi_type=kind, stop_time=1.0, output_interval=0.1,
            start_values={first: torque}, relative_tolerance=1e-9,
        )  # fmt: skip
        there = [rows[s][-1] for s in states]
        np.testing.assert_allclose(there, here, atol=3e-6)
        for at in model.quaternion_places:
            assert np.linalg.norm(there[at : at + 4]) == pytest.approx(1.0, abs=1e-8)


def test_parameters_of_a_family_can_be_set(tmp_path):
    """All that follows from them follows: masses, and the start of a loop, which closes again."""
    family = mb.ModelFamily("four_bar", ["crank", "density"])
    entry = mechanisms.entry("four_bar")
    start = entry.start(entry.model())
    file = mb.export_fmu(family, tmp_path / "it.fmu", *start, (0.0, 1.0), rtol=1e-9, atol=1e-11)
    values = {"crank": 1.02, "density": 3.0}
    alone = family.problem(*start, (0.0, 1.0)).at(values, *start)
    here = solve(alone, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    torque = "tau(crank.angle)"
    for kind in ("CoSimulation", "ModelExchange"):
        there = fmpy.simulate_fmu(
            str(file), fmi_type=kind, stop_time=1.0, output_interval=0.1, start_values=values,
            relative_tolerance=1e-9,
        )[-1]  # fmt: skip
        there = np.array([there[s] for s in (*family.base.q_names, *family.base.v_names)])
        np.testing.assert_allclose(there, here, atol=1e-6)
        gap = mb.constraints(family.model(values), there[:3]).delta
        assert np.abs(gap).max() < (1e-12 if kind == "CoSimulation" else 1e-9)
    kinds = {v.name: v.causality for v in fmpy.read_model_description(str(file)).modelVariables}
    assert [kinds[s] for s in ("crank", "density", torque)] == ["parameter", "parameter", "input"]
    for wrong in ({"density": -1.0}, {"crank": 9.0}):  # no such model; loops that do not close
        with pytest.raises(Exception, match="fmi3"):
            fmpy.simulate_fmu(str(file), stop_time=1.0, start_values=wrong, fmi_type="CoSimulation")


def test_events_of_mechanisms_with_loops(tmp_path):
    """All velocities turn round where the crank passes a place: loops stay closed."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    start = entry.start(model)
    place = start[0][0] + 0.3 * np.sign(start[1][0] or 1.0)
    back = Event(lambda t, y: y[0] - place, reset=lambda t, y: [*y[:3], *(-0.9 * y[3:])])
    here = mb.simulate(model, *start, 1.0, method="DOP853", rtol=1e-11, atol=1e-12, events=[back])
    assert len(here.t_events[0]) > 0
    options = {"events": [back], "rtol": 1e-9, "atol": 1e-11}
    file = mb.export_fmu(model, tmp_path / "it.fmu", *start, (0.0, 1.0), **options)
    for kind in ("CoSimulation", "ModelExchange"):
        rows = fmpy.simulate_fmu(
            str(file), fmi_type=kind, stop_time=1.0, output_interval=0.1, relative_tolerance=1e-9
        )
        there = np.array([rows[s][-1] for s in (*model.q_names, *model.v_names)])
        np.testing.assert_allclose(there, here.y[:, -1], atol=3e-6)
        assert np.abs(mb.constraints(model, there[:3]).delta).max() < 1e-8


def test_a_file_starts_and_has_events_as_in_a_simulation(tmp_path, capsys):
    from featherstep.cli import main

    file, fmu = tmp_path / "cart.toml", tmp_path / "cart.fmu"
    file.write_text(CART)
    assert main(["model", str(file), "--convert", str(fmu)]) == 0
    rows = fmpy.simulate_fmu(str(fmu), fmi_type="ModelExchange", stop_time=3.0)
    assert rows["time"][-1] == pytest.approx(0.4 + 0.7 / 0.8, abs=1e-9)
    assert rows["cart.shift"][-1] == pytest.approx(-0.2, abs=1e-9)
    capsys.readouterr()
    assert main(["simulate", str(file)]) == 0
    said = capsys.readouterr().out
    assert "to t = 1.275:" in said
    assert "at the end cart.shift = -0.2\n" in said


def test_a_gear_that_is_not_closed_in_the_neutral_position(tmp_path):
    from featherstep.cli import main

    file, fmu = tmp_path / "gear.urdf", tmp_path / "gear.fmu"
    file.write_text(GEAR)
    assert main(["model", str(file), "--convert", str(fmu)]) == 0
    rows = fmpy.simulate_fmu(str(fmu), fmi_type="CoSimulation", stop_time=0.5)
    np.testing.assert_allclose(rows["b.angle"], 2 * rows["a.angle"] + 0.1, atol=1e-12)


CART = """
[[bodies]]
name = "cart"
parent = "base"
joint = { kind = "prismatic", axis = "x" }
inertia = { mass = 1.0 }

[[events]]
name = "end stop"
quantity = "cart"
level = 0.5
direction = "rising"
scale = { cart = -0.8 }

[[events]]
name = "derailed"
quantity = "cart"
level = -0.2
terminal = true

[start]
q = { cart = 0.1 }
v = { cart = 1.0 }
"""
LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>"""
PIN = """<joint name="{0}" type="continuous"><parent link="w"/><child link="{1}"/>
  <axis xyz="0 1 0"/>{2}</joint>"""
GEAR = f"""<robot name="gear"><link name="w"/>{LINK.format("a")}{LINK.format("b")}
{PIN.format("j", "a", "")}
{PIN.format("k", "b", '<mimic joint="j" multiplier="2" offset="0.1"/>')}</robot>"""


def test_a_factory_that_cannot_be_traced_is_refused(tmp_path):
    def secretive(length=1.0):
        return mechanisms.pendulum(length=float(str(length)))

    with pytest.raises(ValueError, match=r"cannot be traced.*family.model"):
        mb.export_fmu(mb.ModelFamily(secretive, ["length"]), tmp_path / "it.fmu")


def test_refusals_and_the_command(tmp_path, capsys):
    from featherstep.cli import main

    with pytest.raises(ValueError, match=r"rigid contacts.*law=…"):
        mb.export_fmu(mechanisms.get("bouncing_ball"), tmp_path / "ball.fmu")
    with pytest.raises(ValueError, match="inputs"):
        mb.export_fmu(mechanisms.pendulum(), tmp_path / "ball.fmu", inputs="all")
    mb.save_model(mechanisms.pendulum(), tmp_path / "pendulum.toml")
    fmu = tmp_path / "pendulum.fmu"
    assert main(["model", str(tmp_path / "pendulum.toml"), "--convert", str(fmu)]) == 0
    assert fmpy.read_model_description(str(fmu)).fmiVersion == "3.0"
    assert "wrote" in capsys.readouterr().err
