"""The commands on mechanisms: compare, mechanisms, simulate."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import pytest

from featherstep.cli import main
from multibody import mechanisms, save_model

SHORT = "--t-end 0.2 --repeat 1 --rtol 1e-5"


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # the runner may set it; pipes have no width


def featherstep(capsys, command, *more):
    """Run a command in this process: exit code, standard output, standard error."""
    code = main([*command.split(), *map(str, more)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_compare_prints_a_verdict_for_every_pair(capsys):
    code, out, _ = featherstep(
        capsys, f"compare four_bar --methods DOP853,RADAU5 --formulations projected,index3 {SHORT}"
    )
    assert code == 0
    assert out.startswith("four-bar: Planar four-bar linkage")
    lines = [line for line in out.splitlines() if line.startswith(("projected", "index3"))]
    assert sum(line.rstrip().endswith("trust") for line in lines) == 3
    assert sum(line.rstrip().endswith("failed: refused") for line in lines) == 1
    assert "index3 by DOP853: DOP853 is explicit" in out


def test_compare_writes_figure_report_and_data(capsys, tmp_path):
    files = {kind: tmp_path / f"table.{kind}" for kind in ("csv", "json", "html", "png", "md")}
    code, _, err = featherstep(
        capsys,
        f"compare four_bar --methods DOP853 --formulations none,projected {SHORT} --csv",
        files["csv"], "--json", files["json"], "--html", files["html"], "--plot", files["png"],
        "--markdown", files["md"],
    )  # fmt: skip
    assert code == 0
    assert err.count("wrote") == 5
    read = list(csv.DictReader(io.StringIO(files["csv"].read_text("utf-8"))))
    assert [row["formulation"] for row in read] == ["index1", "projected"]
    assert float(read[0]["gap"]) > 1e3 * float(read[1]["gap"])
    data = json.loads(files["json"].read_text("utf-8"))
    assert [row["verdict"] for row in data["rows"]] == [row["verdict"] for row in read]
    page = files["html"].read_text("utf-8")
    assert "<svg" in page
    assert page.count("<tr>") == 3
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert files["md"].read_text("utf-8").startswith("| formulation | method |")


def test_compare_takes_a_model_file(capsys, tmp_path):
    """A file starts at rest in its neutral position: the pendulum that hangs stays."""
    path = tmp_path / "swing.toml"
    save_model(mechanisms.pendulum(), path)
    code, out, _ = featherstep(capsys, f"compare {path} --methods RK4 --step 0.1 --csv -")
    (row,) = csv.DictReader(io.StringIO(out))
    assert code == 0
    assert float(row["error"]) == 0.0
    assert row["verdict"] == "trust"


def test_a_name_that_is_both_is_a_mechanism_if_formulations_are_asked_for(capsys):
    common = "compare pendulum --methods DOPRI5 --rtol 1e-6 --t-end 0.5 --repeat 1"
    _, problem, _ = featherstep(capsys, common)
    _, mechanism, _ = featherstep(capsys, f"{common} --formulations ode")
    assert "verdict" not in problem
    assert "verdict" in mechanism


def test_mechanisms_lists_the_catalogue(capsys):
    code, out, _ = featherstep(capsys, "mechanisms --json")
    assert code == 0
    assert [record["name"] for record in json.loads(out)] == mechanisms.names()
    _, out, _ = featherstep(capsys, "mechanisms --kind loops")
    assert "four_bar" in out
    assert "cart_pole" not in out


def test_mechanisms_shows_the_tree(capsys):
    code, out, _ = featherstep(capsys, "mechanisms --show four_bar")
    assert code == 0
    assert "│  └─ 2 coupler" in out
    assert "mobility 1" in out
    assert "crank=1.0" in out


def test_simulate_writes_states_and_a_page(capsys, tmp_path):
    movie, table = tmp_path / "movie.html", tmp_path / "states.csv"
    code, out, _ = featherstep(
        capsys, "simulate four_bar --t-end 0.5 --fps 20 --out", movie, "--csv", table
    )
    assert code == 0
    assert "loops opened by at most" in out
    assert "<canvas" in movie.read_text("utf-8") or "<svg" in movie.read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(table.read_text("utf-8"))))
    assert len(rows) == 11
    assert float(rows[0]["crank.angle"]) == 0.9
    assert float(rows[-1]["t"]) == 0.5


def test_simulate_draws_curves_and_takes_a_stabilisation(capsys, tmp_path):
    picture = tmp_path / "curves.png"
    command = "simulate four_bar --t-end 2 --step 0.01 --fps 100 --method RK4 --stabilise"
    opened = {}
    for how in ("none", "projection", "baumgarte:T_stab=0.05"):
        code, out, err = featherstep(capsys, command, how, "--plot", picture)
        assert code == 0, err
        opened[how] = float(re.search(r"opened by at most (\S+),", out)[1])
    assert opened["projection"] < 1e-12 < opened["baumgarte:T_stab=0.05"] < opened["none"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_simulate_with_a_parameter_to_standard_output(capsys):
    code, out, _ = featherstep(
        capsys, "simulate n_pendulum --param n=3 --t-end 0.1 --fps 10 --csv -"
    )
    assert code == 0
    assert len(out.splitlines()) == 3
    assert out.splitlines()[0].count(",") == 6


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("compare fourbarr", "four_bar"),
        ("compare four_bar --formulations bamgarte", "baumgarte"),
        ("compare four_bar --methods DOPRY5", "DOPRI5"),
        ("compare four_bar --param cranck=2", "crank"),
        ("compare four_bar --traced", "--traced"),
        ("compare kepler --formulations index3", "goes with a mechanism"),
        ("compare nofile.toml", "nofile.toml"),
        ("compare nofile.toml --param a=1", "catalogue"),
        ("simulate fuor_bar", "four_bar"),
        ("simulate four_bar --out film.avi", ".html"),
        ("simulate four_bar --t-end -1", "positive"),
        ("simulate four_bar --plot curves.txt", ".png"),
        ("simulate four_bar --stabilise baumgart", "baumgarte"),
        ("simulate four_bar --stabilise baumgarte:gamma=1", "T_stab"),
        ("simulate pendulum --stabilise projection", "loops"),
        ("simulate four_bar --csv /no/such/folder/x.csv", "folder"),
        ("simulate four_bar --method DOPRY5", "DOPRI5"),
        ("mechanisms --show fuor_bar", "four_bar"),
        ("mechanisms --search nosuchthing", "filters"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(capsys, arguments, expected):
    code, out, err = featherstep(capsys, arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert expected in err


@pytest.mark.parametrize("command", ["mechanisms", "simulate"])
def test_help_teaches_by_example(capsys, command):
    code, out, _ = featherstep(capsys, f"{command} --help")
    examples = [line for line in out.splitlines() if line.startswith("  featherstep ")]
    assert code == 0
    assert len(examples) >= 4


def test_simulate_writes_a_film(capsys, tmp_path):
    movie = tmp_path / "movie.mp4"
    code, _, err = featherstep(capsys, "simulate pendulum --t-end 0.3 --fps 10 --out", movie)
    assert code == 0
    assert f"wrote {movie}" in err
    assert movie.read_bytes()[4:8] == b"ftyp"


def test_simulate_says_how_to_get_ffmpeg(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    movie = tmp_path / "movie.mp4"
    code, _, err = featherstep(capsys, "simulate pendulum --t-end 0.3 --fps 10 --out", movie)
    assert code != 0
    assert "pip install imageio-ffmpeg" in err
    assert "Traceback" not in err
