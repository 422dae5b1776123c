"""The Python blocks of the documentation run, and the commands it tells are the ones in use."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURE_BYTES = 150_000


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def with_python(page: Path) -> bool:
    return bool(blocks(page, "python"))


@pytest.mark.parametrize("page", list(filter(with_python, PAGES)), ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path):
    script = tmp_path / "blocks.py"  # a file, because compiled kernels are cached by file
    script.write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    run = subprocess.run(
        command, cwd=tmp_path, env=_environment(), capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr


def _environment() -> dict[str, str]:
    import os

    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def test_toml_blocks_of_contributing_are_the_catalogue():
    from integrators import catalogue

    (block,) = blocks(ROOT / "CONTRIBUTING.md", "toml")
    for name, table in tomllib.loads(block).items():
        entry = catalogue.entry(name)
        assert (entry.order, entry.reference) == (table["order"], table["reference"])
        assert [str(b) for b in entry.tableau.b] == table["b"].split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_readme_commands_are_valid():
    """The README's two commands: the first parses, the second is what CI runs."""
    from featherstep.cli import _parser

    first, second = blocks(ROOT / "README.md", "sh")
    words = shlex.split(first)
    job = words[words.index(".venv/bin/featherstep") + 1 :]
    assert _parser().parse_args(job).methods
    assert second.split("&&")[-1].strip().removeprefix(".venv/bin/python ") in (
        ROOT / ".ci" / "run"
    ).read_text(encoding="utf-8")


def test_all_mechanisms_are_in_the_tables():
    from multibody import mechanisms

    text = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, flags=re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(
        entry.name
        for entry in mechanisms.entries()
        if entry.build.__module__.startswith("multibody.")
    )


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "pictures").glob("*.[pg][ni][gf]"):
        assert picture.stat().st_size < PICTURE_BYTES, picture


def test_notebooks_carry_no_output():
    import json

    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path
