"""Mechanisms as FMUs: trees, quaternions and closed loops, with forces as inputs."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import multibody as mb
from integrators import solve
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


def test_refusals_and_the_command(tmp_path, capsys):
    from featherstep.cli import main

    with pytest.raises(ValueError, match="contacts"):
        mb.export_fmu(mechanisms.get("bouncing_ball"), tmp_path / "ball.fmu")
    with pytest.raises(ValueError, match="inputs"):
        mb.export_fmu(mechanisms.pendulum(), tmp_path / "ball.fmu", inputs="all")
    mb.save_model(mechanisms.pendulum(), tmp_path / "pendulum.toml")
    fmu = tmp_path / "pendulum.fmu"
    assert main(["model", str(tmp_path / "pendulum.toml"), "--convert", str(fmu)]) == 0
    assert fmpy.read_model_description(str(fmu)).fmiVersion == "3.0"
    assert "wrote" in capsys.readouterr().err
