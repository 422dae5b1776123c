"""Tables on narrow screens: every number that is shown is the one of the wide table.

The wide table is the truth. A narrow one may leave out columns, run texts over several lines, or
stack its rows; what it shows must read the same, and what it leaves out must be named.
"""

import io
import re

import pytest

from featherstep import cli, terminal
from featherstep.fitting import fit

WIDTHS = (60, 80, 100)
COMMANDS = {
    "compare": "compare logistic --methods DOPRI5,DOP853,scipy:RK45 --rtol 1e-6,1e-9 --repeat 1",
    "steps": "compare logistic --methods DOPRI5,RK4 --step 0.0125,0.00625 --repeat 1",
    "failures": "compare kepler --methods DOPRI5,scipy:RK45 --rtol 1e-12 --max-steps 9 --repeat 1",
    "converge": "converge minus_2ty2 --methods Heun,RK4 --steps 0.1,0.05,0.025,0.0125 --all",
    "workprecision": "workprecision logistic --methods DOPRI5 --rtol 1e-4,1e-5,1e-11 --repeat 1",
    "methods": "methods",
    "conditions": "methods --show DOPRI5",
    "problems": "problems",
    "mechanisms": "mechanisms",
    "mechanism": "compare four_bar --formulations projected --methods DOPRI5 --t-end 0.05",
}


@pytest.fixture
def tables(monkeypatch):
    """Each table that a command prints at a width: headings, rows, and the printed text."""

    def printed(command, width):
        monkeypatch.setenv("COLUMNS", str(width))
        text = io.StringIO()
        seen = []
        plain = terminal.Screen.table

        def watched(self, headings, rows, **options):
            start = text.tell()
            plain(self, headings, rows, **options)
            seen.append((list(headings), [list(row) for row in rows], text.getvalue()[start:]))

        with monkeypatch.context() as patch:
            patch.setattr(terminal.Screen, "table", watched)
            patch.setattr("sys.stdout", text)
            cli.main(command.split())
        assert seen, "the command prints no table"
        return seen

    return printed


def cells_of(text, headings):
    """Read a printed table back: for each row of cells its columns, lines of a cell joined."""
    lines = text.splitlines()
    rule = next(k for k, line in enumerate(lines) if set(line.strip()) == {"─"})
    body = []
    for line in lines[rule + 1 :]:
        if line.startswith("Left out"):
            break
        body.append(line)
    # Columns are separated by two blanks in every line, the heading's included.
    table = lines[:rule] + body
    wide = max(map(len, table))
    blank = [all(len(line) <= k or line[k] == " " for line in table) for k in range(wide)]
    starts, k = [], 0
    while k < wide:
        if not blank[k]:
            starts.append(k)
            while k < wide and not (blank[k] and (k + 1 >= wide or blank[k + 1])):
                k += 1
        k += 1
    bounds = list(zip(starts, [*starts[1:], wide]))
    heads = [" ".join(line[a:b].strip() for line in lines[:rule]).strip() for a, b in bounds]
    return heads, [[line[a:b].strip() for a, b in bounds] for line in body]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut(tables, command, width):
    for headings, rows, text in tables(COMMANDS[command], width):
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        left_out = re.search(r"Left out for want of room: ([^(]*)", " ".join(text.split()))
        missing = [name.strip() for name in left_out[1].split(",")] if left_out else []
        shown = [k for k, heading in enumerate(headings) if heading not in missing]
        assert [headings[k] for k in range(len(headings)) if k not in shown] == missing
        heads, lines = cells_of(text, headings)
        assert heads == [headings[k] for k in shown]
        for place, k in enumerate(shown):  # the words of a column, in order, whatever its folds
            wanted = " ".join(row[k] for row in rows).split()
            assert " ".join(line[place] for line in lines).split() == wanted


@pytest.mark.parametrize("width", WIDTHS)
def test_what_matters_most_stays(tables, width):
    kept = {
        "compare": ("method", "rtol", "error", "time", "status"),
        "converge": ("method", "h", "error", "slope"),
        "mechanism": ("formulation", "method", "rtol", "verdict"),
        "methods": ("name", "stages", "order"),
    }
    for command, names in kept.items():
        _, _, text = tables(COMMANDS[command], width)[0]
        heading = " ".join(text.split("─")[0].split())
        for name in names:
            assert name in heading


def test_a_screen_too_narrow_for_any_table_stacks_its_rows(tables):
    for headings, rows, text in tables(COMMANDS["compare"], 20):
        found = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
        assert [name for name, _ in found] == headings * len(rows)
        assert [value for _, value in found] == [cell for row in rows for cell in row]


def test_texts_fold_before_columns_go():
    headings, rows = ["name", "n", "about"], [["kepler", "1,234", "a planet around a sun"]]
    layout = fit(headings, rows, 25, folded={"about": 8}, spare=["n"])
    assert layout.left_out == ()
    assert layout.widths[1] == 5
    assert sum(layout.widths) + 4 == 25
    layout = fit(headings, rows, 18, folded={"about": 8}, spare=["n"])
    assert layout.left_out == (1,)


def test_a_word_is_never_folded_inside():
    headings, rows = ["a", "b"], [["1", "superconvergence x"]]
    assert fit(headings, rows, 19, folded={"b": 1}).widths == (1, 16)
    assert fit(headings, rows, 18, folded={"b": 1}).stacked
