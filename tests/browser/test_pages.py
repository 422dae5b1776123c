"""Each kind of page that we write, opened: nothing in the console, tables sort, figures grow."""

import random

import pytest

from featherstep import Max, Study, Uniform, reaction
from featherstep.cli import main

pytest.importorskip("selenium", reason="selenium is not installed")

COMMANDS = {
    "compare": ["compare", "logistic", "--methods", "DOPRI5,scipy:RK45", "--rtol", "1e-3,1e-5",
                "--repeat", "1"],
    "converge": ["converge", "minus_2ty2", "--methods", "Heun,RK4"],
    "mechanism": ["compare", "double_pendulum", "--t-end", "0.1", "--methods", "RK4",
                  "--step", "0.05"],
}  # fmt: skip
KINDS = (*COMMANDS, "marks", "student", "study")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, driver):
    """Written as users write them."""
    folder = tmp_path_factory.mktemp("pages")
    for name, command in COMMANDS.items():
        assert main([*command, "--html", str(folder / f"{name}.html")]) == 0
    (folder / "work").mkdir()
    for name, text in {"ada": "steps = 1", "bob": "bound = 1"}.items():
        (folder / "work" / f"{name}.py").write_text(text, encoding="utf-8")
    written = ["--lab", "euler", "--html", str(folder / "marks.html")]
    assert main(["lab", "grade", str(folder / "work"), *written]) == 0
    study = Study("pendulum", {"length": Uniform(0.9, 1.1)}, n=8, start={"bob": 2.0}, t_span=(0, 1),
                  record={"pull": Max(reaction("bob"))})  # fmt: skip
    study.run(folder / "a.study", workers=1).report(folder / "study.html", animations=1)
    found = {name: folder / f"{name}.html" for name in (*COMMANDS, "marks", "study")}
    return {**found, "student": folder / "marks" / "bob.html"}


def column_of(browser, table, k):
    return browser.execute_script(
        "return [...document.querySelectorAll('table')[arguments[0]].tBodies[0].rows]"
        ".map(row => row.cells[arguments[1]].dataset.value)",
        table,
        k,
    )


def clicked(browser, table, k):
    browser.execute_script(
        "document.querySelectorAll('table')[arguments[0]].querySelectorAll('th')[arguments[1]]"
        ".click()",
        table,
        k,
    )


def in_order(values):
    """Numbers as numbers, text as text; what is missing comes last either way."""
    there = [value for value in values if value != ""]
    try:
        there = [float(value) for value in there]
    except ValueError:
        there = [value.lower() for value in there]
    return there, [""] * (len(values) - len(there))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_opens_and_its_tables_sort(pages, opened, kind):
    browser = opened(pages[kind])
    counts = browser.execute_script(
        "return [...document.querySelectorAll('table')].map(t => t.querySelectorAll('th').length)"
    )
    assert counts
    table = max(range(len(counts)), key=counts.__getitem__)
    for k in random.Random(1).sample(range(counts[table]), min(4, counts[table])):
        before = column_of(browser, table, k)
        for direction in (1, -1):
            clicked(browser, table, k)
            after = column_of(browser, table, k)
            there, missing = in_order(after)
            assert sorted(after) == sorted(before)  # no row is lost
            if all(isinstance(value, float) for value in there):
                assert there == sorted(there, reverse=direction < 0)
            assert after[len(there) :] == missing


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_off(pages, opened, kind):
    """At 1000 pixels the page does not scroll sideways; headings stand over their columns."""
    browser = opened(pages[kind])
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window
    hidden = browser.execute_script(
        "return [...document.querySelectorAll('table')].map(t => t.scrollWidth - t.clientWidth)"
    )
    assert max(hidden) <= 1, "a table has to be scrolled to be read"
    assert browser.execute_script("""
        return [...document.querySelectorAll('table')].every(table =>
          [...table.querySelectorAll('th')].every((heading, k) => table.tBodies[0].rows.length == 0
            || getComputedStyle(heading).textAlign
               == getComputedStyle(table.tBodies[0].rows[0].cells[k]).textAlign))
    """)


@pytest.mark.parametrize("kind", ["compare", "study"])
def test_a_figure_fills_the_window_and_goes_back(pages, opened, kind):
    browser = opened(pages[kind])
    width = "return document.querySelector('figure svg').getBoundingClientRect().width"
    small = browser.execute_script(width)
    browser.execute_script("document.querySelector('figure').click()")
    inside = browser.execute_script(
        "const box = document.querySelector('figure').getBoundingClientRect();"
        "return [box.width == document.documentElement.clientWidth, box.height == innerHeight]"
    )
    assert all(inside)
    assert browser.execute_script(width) >= small
    browser.execute_script("window.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    assert browser.execute_script(width) == small


def test_pages_say_how_they_came_about(pages):
    text = pages["converge"].read_text(encoding="utf-8")
    assert "<code>featherstep converge minus_2ty2 --methods Heun,RK4 --html" in text
    assert "numpy " in text
