"""Every mechanism of the catalogue from a file: the same model, start and motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import multibody as mb
from featherstep.cli import main
from integrators import solve
from multibody import mechanisms
from multibody.io import dumps, load_start, loads


@pytest.mark.parametrize("name", mechanisms.names())
@pytest.mark.parametrize("format", ["toml", "json"])
def test_written_and_read(name, format, tmp_path):
    entry = mechanisms.entry(name)
    model = entry.model()
    q, v = entry.start(model)
    file = tmp_path / f"model.{format}"
    mb.save_model(model, file, start=(q, v, entry.t_end))
    again, start = mb.load_model(file), load_start(file)
    np.testing.assert_array_equal(start.q, q)
    np.testing.assert_array_equal(start.v, v)
    assert start.t_end == entry.t_end
    assert (again.q_names, again.v_names) == (model.q_names, model.v_names)
    bare = [replace(m, contacts=()) for m in (model, again)]
    x = np.concatenate([q, v])
    slopes = [mb.FD_x(m, x, t=0.1) for m in bare]
    np.testing.assert_allclose(*slopes, rtol=1e-12, atol=1e-12 * np.abs(slopes[0]).max())
    assert [c.name for c in again.contacts] == [c.name for c in model.contacts]


@pytest.mark.parametrize("name", ["car_axis", "stick_slip_oscillator", "servo_arm"])
def test_run_from_a_file_by_the_command(name, tmp_path, capsys):
    entry = mechanisms.entry(name)
    model = entry.model()
    file, body = tmp_path / f"{name}.toml", model.bodies[-1].name
    mb.save_model(model, file, start=entry.start(model))
    record = f"--record=tip=point:{body}:0.1:0:0"
    tables = []
    for what in (name, str(file)):
        assert main(["simulate", what, "--t-end", "0.2", "--fps", "50", record, "--csv", "-"]) == 0
        rows = capsys.readouterr().out.splitlines()
        tables.append(np.array([[float(x) for x in row.split(",")] for row in rows[1:]]))
        assert "tip" in rows[0]
    np.testing.assert_allclose(*tables, rtol=1e-9, atol=1e-12)


def test_motions_that_a_file_holds():
    kinds = {
        "formula": mb.Formula("0.3 * sin(2 * t) / (1 + t ** 2) - exp(-t)"),
        "wave": mb.Wave(0.2, 0.7, 0.1, 0.4),
    }
    for motion in kinds.values():
        b = mb.ModelBuilder()
        b.add_body("a", 0, mb.Driven(mb.Revolute("y"), motion), inertia=mb.point_mass(1.0))
        b.add_body("b", "a", mb.Prismatic("x"), inertia=mb.point_mass(1.0))
        model = b.build()
        again = loads(dumps(model))
        runs = [solve(mb.as_ivp(m, [0.1], [0.0], (0, 1))).y[:, -1] for m in (model, again)]
        np.testing.assert_array_equal(*runs)
    t = np.linspace(0.0, 2.0, 5)
    assert np.allclose(kinds["formula"](t), 0.3 * np.sin(2 * t) / (1 + t**2) - np.exp(-t))


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "t.real", "sin(t, t)", "x + 1", "1/0", "(-1)**0.5", "9**9**9", "t +"],
)
def test_formulae_execute_nothing_else(text):
    with pytest.raises(ValueError, match="Formula: "):
        mb.Formula(text)
    wrong = (
        '[[bodies]]\nname = "a"\nparent = "base"\ninertia = { shape = "point", mass = 1 }\n'
        f'joint = {{ kind = "driven", joint = "revolute", motion = {{ formula = "{text}" }} }}\n'
    )
    with pytest.raises(ValueError, match="Formula: "):
        loads("format = 1\n" + wrong)
