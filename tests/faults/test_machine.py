"""What a machine leaves a process: processors, and where nothing is installed but the package."""

import ast
import os
import re
import runpy
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


def test_a_page_of_an_index_has_no_links_into_the_repository():
    described = runpy.run_path(str(HERE / "setup.py"))["description"]()
    assert "# featherstep" in described
    assert "Documentation (`docs/index.md`)" in described
    assert not re.search(r"\]\((?!https?://|#)", described)
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    assert "readme" in project["dynamic"]


def test_the_source_is_packed_whole():
    """Tests, documentation and notebooks belong to it, and every page that README names exists."""
    packed = (HERE / "MANIFEST.in").read_text()
    for folder in ("tests", "docs", "notebooks", "benchmarks", ".ci"):
        assert f"graft {folder}" in packed
    named = re.findall(r"\]\((?!https?://|#)([^)]*)\)", (HERE / "README.md").read_text())
    assert len(named) > 10
    assert all((HERE / name.partition("#")[0]).exists() for name in named)


def test_messages_name_no_page_that_is_not_installed():
    """Docstrings may name pages of the documentation; what is raised or printed may not."""
    for package in ("integrators", "multibody", "featherstep"):
        for path in (HERE / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            docstrings = [
                node.body[0].value
                for node in ast.walk(tree)
                if isinstance(node, documented) and ast.get_docstring(node, clean=False)
            ]
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert "docs/" not in node.value or node in docstrings, (path, node.value)


def test_the_project_says_what_it_needs():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    assert "numba>=0.62" in project["dependencies"]
    # .ci/versions installs each of these as the oldest version.
    assert all(re.fullmatch(r"[a-z]+>=[0-9.]+", package) for package in project["dependencies"])
    (assimulo,) = project["optional-dependencies"]["assimulo"]
    assert "sys_platform != 'darwin'" in assimulo
