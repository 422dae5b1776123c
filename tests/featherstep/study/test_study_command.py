"""``featherstep study``: from a file to a report; interrupted; nothing in a file runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from featherstep.cli import main

ROOT = Path(__file__).parents[3]

FILE = """
model = "pendulum"
n = 20
seed = 2
t_span = [0, 1]
rtol = 1e-7
outputs = 5
[vary]
length = { uniform = [0.9, 1.1] }
mass = { choice = [1.0, 2.0] }
[start]
bob = 1.0
[record]
end = { final = "bob" }
pull = { max = { reaction = "bob" } }
"""


def test_from_a_file_to_a_report(tmp_path, capsys):
    file = tmp_path / "study.toml"
    file.write_text(FILE)
    assert main(["study", "status", str(file)]) == 2
    assert "featherstep study run" in capsys.readouterr().err
    assert main(["study", "run", str(file), "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "20 of 20 runs are done, 0 failed" in said
    assert "pull" in said
    assert "one problem for all models" in said
    assert main(["study", "status", str(tmp_path / "study.study")]) == 0
    assert main(["study", "resume", str(file), "--workers", "1"]) == 0
    assert main(["study", "retry", str(file), "--workers", "1"]) == 0
    assert main(["study", "export", str(file), str(tmp_path / "t.csv")]) == 0
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 21
    assert main(["study", "report", str(file), "--animations", "0"]) == 0
    assert (tmp_path / "study.html").is_file()
    assert main(["study"]) == 0
    assert "study.toml" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"pendulum"', '"pendulm"'), "did you mean pendulum"),
        (('"pendulum"', '"os:system"'), "--allow-code"),
        (('"pendulum"', '"none.toml"'), "does not exist"),
        (('"pendulum"', "3"), "expected a name"),
        (("rtol", "rtl"), "did you mean rtol"),
        (("uniform", "unform"), "did you mean uniform"),
        (("n = 20", ""), "how many runs"),
        (("[record]", "[recrd]"), "did you mean record"),
        (('final = "bob"', 'final = "rob"'), "there is no state"),
        (("n = 20", "n = "), "study.toml"),
        (("[vary]", "[other]"), "key vary"),
    ],
)
def test_mistakes_in_a_file(change, words, tmp_path, capsys):
    file = tmp_path / "study.toml"
    file.write_text(FILE.replace(*change))
    assert main(["study", "run", str(file), "--workers", "1"]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "study.study").exists()


def test_code_only_where_it_is_allowed(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_models.py").write_text(
        "from multibody import mechanisms\n"
        "def make(length, mass):\n"
        "    return mechanisms.pendulum(length=length, mass=mass)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(FILE.replace('"pendulum"', '"my_models:make"'))
    assert main(["study", "run", str(file)]) == 2
    assert "my_models" not in sys.modules
    capsys.readouterr()
    assert main(["study", "run", str(file), "--workers", "1", "--allow-code"]) == 0
    assert main(["study", "status", str(tmp_path / "study.study")]) == 0
    assert main(["study", "resume", str(tmp_path / "study.study")]) == 2
    assert "my_models:make" in capsys.readouterr().err


def test_a_table_beside_the_file(tmp_path, capsys):
    file = tmp_path / "study.toml"
    text = FILE.replace("n = 20", 'vary = "rows.csv"')
    file.write_text(text[: text.index("[vary]")] + text[text.index("[start]") :])
    (tmp_path / "rows.csv").write_text("length,mass\n1.0,1\n1.1,nan\n")
    assert main(["study", "run", str(file), "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 runs are done, 1 failed" in said
    assert "run 1: mass: expected a finite number" in said


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a signal")
def test_ctrl_c_stops_and_says_how_to_go_on(tmp_path):
    (tmp_path / "slow_models.py").write_text(
        "import time\n"
        "from integrators import IVP\n"
        "def make(length, mass):\n"
        "    time.sleep(0.05)\n"
        "    return IVP(lambda t, y: -length * y, [1.0], (0, 1), state_names=('bob',))\n"
    )
    file = tmp_path / "study.toml"
    text = FILE.replace('"pendulum"', '"slow_models:make"').replace("n = 20", "n = 400")
    file.write_text(text.replace("reaction =", "state ="))
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "featherstep", "study", "run", str(file), "--allow-code"]
    process = subprocess.Popen(
        [*command, "--workers", "1", "--block", "4"], env=environment, text=True,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    parts = tmp_path / "study.study" / "parts"
    deadline = time.monotonic() + 60.0
    while process.poll() is None and time.monotonic() < deadline:
        if parts.is_dir() and any(parts.glob("0*.npz")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, (out, said)
    assert "of 400 runs are kept in" in said
    assert "featherstep study resume" in said
    assert "Traceback" not in said
