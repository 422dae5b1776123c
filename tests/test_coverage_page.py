"""docs/coverage.md and docs/cost.md say what is there: names, tests, figures."""

import re
import runpy
from functools import reduce
from pathlib import Path

import pytest

import multibody

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| `([^|]+)` \|$", PAGE, flags=re.MULTILINE)


def test_every_row_is_read():
    tables = [line for line in PAGE.splitlines() if line.startswith("|")]
    heads = [line for line in tables if line.startswith(("| section", "|---"))]
    assert len(ROWS) == len(tables) - len(heads) > 60


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_names_and_tests_exist(row):
    *_, names, test = row
    for name in re.findall(r"`([\w.]+)`", names):
        reduce(getattr, name.split("."), multibody)  # raises where there is none
    file, _, function = test.partition("::")
    source = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {function}\(", source, flags=re.MULTILINE), test


def test_the_tables_of_costs_are_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "pictures" / "make_cost.py"))
    page = made["PAGE"].read_text(encoding="utf-8")
    assert made["page"](page) == page
