"""What a machine leaves a process: processors, and where nothing is installed but the package."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from integrators.processors import available_processors

HERE = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="affinity is Linux's")
def test_processors_left_by_quotas_and_affinity(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)))
    assert available_processors(tmp_path) == 16  # nothing is said
    own = tmp_path / "proc/self"
    own.mkdir(parents=True)
    (own / "cgroup").write_text("0::/outer/inner\n")
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "outer/inner").mkdir(parents=True)
    (groups / "outer/inner/cpu.max").write_text("max 100000\n")
    assert available_processors(tmp_path) == 16
    (groups / "outer/cpu.max").write_text("250000 100000\n")  # around it: two and a half
    assert available_processors(tmp_path) == 3
    (groups / "outer/inner/cpu.max").write_text("50000 100000\n")
    assert available_processors(tmp_path) == 1
    (own / "cgroup").write_text("4:cpu,cpuacct:/job\n1:name=systemd:/\n")  # version 1
    (groups / "cpu/job").mkdir(parents=True)
    (groups / "cpu/job/cpu.cfs_quota_us").write_text("400000\n")
    (groups / "cpu/job/cpu.cfs_period_us").write_text("100000\n")
    assert available_processors(tmp_path) == 4
    (groups / "cpu/job/cpu.cfs_quota_us").write_text("-1\n")
    assert available_processors(tmp_path) == 16
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert available_processors(tmp_path) == 1


DESCRIPTIONS = """
from integrators import problems
from multibody import mechanisms
for entry in (*problems.entries(), *mechanisms.entries()):
    print(entry.name, entry.description)
"""


def test_descriptions_survive_without_docstrings():
    """``python -OO`` drops docstrings, which the commands list problems and mechanisms by."""
    plain, bare = (
        subprocess.run(
            [sys.executable, *flags, "-c", DESCRIPTIONS], capture_output=True, text=True, check=True
        ).stdout
        for flags in ([], ["-OO"])
    )
    assert plain == bare


def test_the_project_says_what_it_needs():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    assert "numba>=0.62" in project["dependencies"]
    (assimulo,) = project["optional-dependencies"]["assimulo"]
    assert "sys_platform != 'darwin'" in assimulo
