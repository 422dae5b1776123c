"""`featherstep model`: other programs, pictures, other formats; `simulate` with ghosts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import multibody as mb
from featherstep.cli import main
from featherstep.model_check import check_file
from multibody import Report, load_model, save_model


@pytest.fixture
def arm(tmp_path):
    """A floating tree with a ball joint, hinges with armature and damping, and a slide."""
    b = mb.ModelBuilder(name="arm")
    b.add_body("torso", 0, mb.Free(), None, mb.Inertia(3.0, (0.1, 0, 0), (0.3, 0.2, 0.4)))
    part = mb.Inertia(1.0, (0.1, 0.2, -0.3), (0.03, 0.02, 0.04))
    b.add_body("upper", "torso", mb.Spherical(), (0, 0.2, 0.5), part)
    b.add_body("lower", "upper", mb.Revolute((1, 2, 3)), (0, 0, -0.4), part, armature=0.2,
               damping=0.3, stiffness=2.0)  # fmt: skip
    b.add_body("hand", "lower", mb.Prismatic("y"), (0.1, 0, -0.4), part)
    file = tmp_path / "arm.xml"
    save_model(b.build(), file)
    return file


def test_mujoco_agrees_and_a_changed_model_does_not(arm):
    pytest.importorskip("mujoco")
    model = load_model(arm)
    (check,) = check_file(arm, model)
    assert (check.nq, check.nv, check.problem) == (model.nq, model.nv, "")
    assert check.mass == pytest.approx(6.0)
    assert max(check.inertia, check.forces) < 1e-13
    other = load_model(arm)
    bodies = list(other.bodies)
    from dataclasses import replace

    bodies[2] = replace(bodies[2], inertia=mb.Inertia(1.0, (0.1, 0.2, -0.31), 0.05))
    (check,) = check_file(arm, replace(other, bodies=tuple(bodies)))
    assert min(check.inertia, check.forces) > 1e-4
    arm.write_text(arm.read_text().replace('type="slide"', 'type="free"'))
    (check,) = check_file(arm, model)
    assert "cannot read it" in check.problem


def test_pinocchio_agrees(tmp_path):
    pytest.importorskip("pinocchio")
    b = mb.ModelBuilder(name="arm")
    part = mb.Inertia(1.0, (0.1, 0.2, -0.3), (0.03, 0.02, 0.04))
    b.add_body("torso", 0, mb.Revolute("z"), None, part)
    b.add_body("left", "torso", mb.Revolute((1, 2, 3)), (0, 0, -0.4), part, limits=(-1, 1))
    b.add_body("ball", "torso", mb.Free(), (0, 1, 0), part)
    b.add_body("hand", "left", mb.Prismatic("y"), (0.1, 0, -0.4), part, damping=3.0)
    file = tmp_path / "arm.urdf"
    save_model(b.build(), file)
    check = check_file(file, load_model(file, report=Report()))[0]
    assert check.peer == "pinocchio"
    assert max(check.inertia, check.forces) < 1e-13


def test_command_shows_checks_and_writes(arm, tmp_path, capsys):
    pytest.importorskip("mujoco")
    page, picture, urdf = (tmp_path / name for name in ("arm.html", "arm.png", "arm.urdf"))
    told = ["--check", "--json", "--picture", str(page)]
    assert main(["model", str(arm), *told]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["forces"] < 1e-13
    assert "const scene" in page.read_text()
    assert main(["model", str(arm), "--check", "--picture", str(picture)]) == 0
    assert "H differs by" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    assert main(["model", str(arm), "--convert", str(urdf)]) != 0
    assert "'upper'" in capsys.readouterr().err
    other = tmp_path / "four_bar.toml"
    save_model(mb.mechanisms.get("four_bar"), other)
    assert main(["model", str(other), "--convert", str(urdf)]) == 0
    assert "(lost)" in capsys.readouterr().err
    assert main(["model", str(other), "--check"]) != 0
    assert "--check: neither" in capsys.readouterr().err


def test_simulate_shows_ghosts(tmp_path, capsys):
    page = tmp_path / "both.html"
    run = ["simulate", "pendulum", "--t-end", "1", "--method", "RK4", "--step", "0.05"]
    assert main([*run, "--against", "Euler", "--reactions", "--out", str(page)]) == 0
    line = next(x for x in page.read_text().splitlines() if x.startswith("const scene = "))
    scene = json.loads(line.removeprefix("const scene = ").rstrip(";"))
    assert [one["name"] for one in scene["runs"]] == ["RK4", "Euler"]
    assert {arrow["what"] for arrow in scene["arrows"]} == {"joint"}
    assert main([*run, "--against", "Euler"]) != 0
    assert "--out NAME.html" in capsys.readouterr().err
    assert np.isfinite(scene["size"])
