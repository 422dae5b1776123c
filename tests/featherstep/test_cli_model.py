"""``featherstep model``: what is in a file, as text and as data."""

import json

import pytest

import multibody as mb
from featherstep.cli import main
from featherstep.mechanism_study import command, mechanism
from multibody.io import load_start
from tests.multibody.io.test_sdf import four_bar
from tests.multibody.io.test_urdf import ARM


@pytest.fixture
def files(tmp_path):
    (tmp_path / "bars.sdf").write_text(four_bar())
    (tmp_path / "arm.urdf").write_text(ARM)
    mb.save_model(mb.mechanisms.four_bar(), tmp_path / "open.toml")
    return tmp_path


def test_a_mechanism_with_loops(files, capsys):
    assert main(["model", str(files / "bars.sdf")]) == 0
    said = capsys.readouterr().out
    for piece in (
        "w: 3 bodies, nq = 3, nv = 3, 1 loop",
        "loop bars::D: base to bars::rocker",
        "mobility      1\n",
        "that is       3 freedoms of the tree − 2 independent of 5 constraints",
        "mass          4.5 kg",
        "closed        in the neutral position, to ",
    ):
        assert piece in said


def test_as_data_and_converted(files, capsys):
    out = files / "arm.toml"
    assert main(["model", str(files / "arm.urdf"), "--json", "--convert", str(out)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["freedoms"], data["mobility"], data["loops"]) == (2, 1, 0)
    assert data["masses"] == {"foot": 3.0, "upper": 2.0, "tool": 0.5}
    assert data["gears"] == {"tool": {"upper": 0.1}}
    assert {"line": 20, "what": "ignored", "text": "friction of joint 'shoulder'"} in data[
        "remarks"
    ]
    assert mb.load_model(out) == mb.load_model(files / "arm.urdf", report=mb.Report())


def test_loops_that_are_open_in_the_neutral_position(files, capsys):
    assert main(["model", str(files / "open.toml")]) == 0
    said = capsys.readouterr().out
    assert "closed        not in the neutral position (gap" in said
    assert "mobility      1\n" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.sdf"], "does not exist"),
        (["open.toml", "--root", "free"], "no option of this name"),
        (["arm.urdf", "--includes", "."], "no option of this name"),
        (["arm.txt"], "ends in one of .toml, .json, .urdf, .xacro, .sdf, .xml"),
    ],
)
def test_faults_are_one_line(files, arguments, said, capsys):
    assert main(["model", str(files / arguments[0]), *arguments[1:]]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_files_of_other_programs_are_mechanisms_for_all_commands(files):
    assert command.MODEL_FILES == mechanism.MODEL_FILES
    assert command.is_mechanism("robot.sdf")
    found = mechanism.find_mechanism(str(files / "bars.sdf"))
    assert found.model.nv == 3


def test_conversion_keeps_the_start_and_tells_what_is_lost(tmp_path, capsys):
    file, other = tmp_path / "p.toml", tmp_path / "p.json"
    mb.save_model(mb.mechanisms.get("pendulum"), file, start=([0.4], [0.1], 3.0))
    with file.open("a") as out:
        out.write('\n[[events]]\nname = "down"\nquantity = "rod"\n')
    assert main(["model", str(file), "--convert", str(other)]) == 0
    assert "1 events (lost)" in capsys.readouterr().err
    kept = load_start(other)
    assert (kept.q, kept.v, kept.t_end) == (0.4, 0.1, 3.0)
    assert main(["model", str(file), "--convert", str(tmp_path / "p.urdf")]) == 0
    assert "where a first simulation starts" in capsys.readouterr().err
    assert main(["model", str(file), "--convert", str(other), "--policy", "strict"]) == 2
    assert main(["model", str(file), "--convert", str(file)]) == 2
    assert "is the file itself" in capsys.readouterr().err
