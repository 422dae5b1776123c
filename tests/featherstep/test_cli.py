"""The command line and the comparisons under it."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import multibody
from featherstep import terminal
from featherstep.citations import _sources, authors_and_year, citation
from featherstep.cli import main
from featherstep.options import heed_ctrl_c
from featherstep.problem_study.compare import (
    Comparison,
    Reference,
    compare,
    default_methods,
    resolve,
)
from integrators import IVP, catalogue, problems, solve

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # the runner may set it; pipes have no width


def featherstep(capsys, command, *more):
    """Run a command in this process: exit code, standard output, standard error."""
    code = main([*command.split(), *more])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n") and "Traceback" not in text


# -------------------------------------------------------------------- help and errors


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from featherstep.cli import main; code = main(['--help']);"
        "heavy = {'numpy', 'scipy', 'numba', 'matplotlib', 'rich', 'integrators'};"
        "sys.exit(code or bool(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "command", ["", "compare", "converge", "workprecision", "methods", "problems"]
)
def test_help_teaches_by_example(capsys, command):
    code, out, _ = featherstep(capsys, f"{command} --help")
    examples = [line for line in out.splitlines() if line.startswith("  featherstep ")]
    assert code == 0
    assert len(examples) >= 4


def test_no_command_prints_help(capsys):
    code, out, _ = featherstep(capsys, "")
    assert code == 0
    assert "compare" in out


def test_version(capsys):
    code, out, _ = featherstep(capsys, "--version")
    assert code == 0
    assert out.startswith("featherstep ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("compar", "compare"),
        ("compare vanderpool", "van_der_pol"),
        ("compare --methods DORPI5", "DOPRI5"),
        ("compare --methods scipy:RK54", "RK45"),
        ("compare --methods ,", "commas"),
        ("compare --methods nosuch.toml", "nosuch.toml"),
        ("compare --param loop=3", "loops"),
        ("compare --param loops=many", "NAME=NUMBER"),
        ("compare --rtol tight", "numbers"),
        ("compare --rtol -1", "positive"),
        ("compare --rtol 1e-6 --step 0.1", "not allowed"),
        ("compare --step 0.1 --atol 1e-9", "--atol"),
        ("compare --rtol 1e-4,1e-6 --atol 1e-7,1e-8,1e-9", "atol"),
        ("compare --repeat 0", "repeat"),
        ("compare --plot picture.bmp", ".png"),
        ("compare --csv /no/such/folder/table.csv", "folder"),
        ("compare --csv - --json -", "share"),
        ("compare kepler --param e=2", "ellipse"),
        ("converge --steps 0.1,0.05", "at least 3"),
        ("converge --steps 0.1,0.05,x", "numbers"),
        ("converge --steps 0.1,0.05,0.01 --intervals 3,4,5", "not allowed"),
        ("converge --intervals 8,4,0", "positive"),
        ("converge kepler --measure enrgy --methods RK4", "energy"),
        ("converge --csv - --latex -", "share"),
        ("converge --plot picture.gif", ".png"),
        ("converge --html /no/such/folder/report.html", "folder"),
        ("workprecision --rtol 1e-4 --measure y99", "0 first"),
        ("workprecision --methods DOPRI55", "DOPRI5"),
        ("methods --kind explicitly", "explicit"),
        ("methods --show DOPRI", "DOPRI5"),
        ("methods --order 99", "filters"),
        ("methods --latex", "--show"),
        ("problems --show robertsen", "robertson"),
        ("problems --search nosuchthing", "filters"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(capsys, arguments, expected):
    code, out, err = featherstep(capsys, arguments)
    assert code == 2
    assert out == ""
    assert one_line(err)
    assert expected in err


def test_an_unexpected_failure_is_one_line_too(capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("featherstep.problem_study.compare.compare", broken)
    code, _, err = featherstep(capsys, "compare")
    assert code == 1
    assert one_line(err)
    code, _, err = featherstep(capsys, "--debug compare")
    assert code == 1
    assert "Traceback" in err


# -------------------------------------------------------------------- methods and problems


def test_methods_lists_the_catalogue(capsys):
    code, out, _ = featherstep(capsys, "methods")
    assert code == 0
    first_words = {line.split()[0] for line in out.splitlines() if line.strip()}
    assert set(catalogue.names("all")) <= first_words


def test_a_narrow_terminal_cuts_no_names(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = featherstep(capsys, "methods")[1]
    assert set(catalogue.names()) <= {line.split()[0] for line in out.splitlines() if line.strip()}
    out = featherstep(capsys, "compare jay --methods RadauIIA5,LobattoIIIC4 --rtol 1e-6")[1]
    assert "RadauIIA5 " in out
    assert max(map(len, out.splitlines()[2:])) <= 80


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        ("--kind explicit --min-order 6", lambda e: e.kind == "explicit" and e.order >= 6),
        ("--kind fully-implicit", lambda e: e.kind == "fully implicit"),
        ("--kind dirk --stability L", lambda e: "DIRK" in e.kind + "DIRK" and "L" in e.stability),
        ("--order 4 --embedded", lambda e: e.order == 4 and e.embedded_order is not None),
        ("--stability symplectic", lambda e: "symplectic" in e.stability),
        ("--stability A", lambda e: e.stability[0] in "AL"),
        ("--search dormand", lambda e: "ormand" in citation(e.reference) + e.title),
        ("--kind rosenbrock", lambda e: e.kind == "Rosenbrock"),
    ],
)
def test_filters_of_methods(capsys, filters, holds):
    code, out, _ = featherstep(capsys, f"methods {filters} --json")
    names = [record["name"] for record in json.loads(out)]
    assert code == 0
    assert names
    assert all(holds(catalogue.entry(name)) for name in names)


def test_kinds_partition_the_catalogue(capsys):
    def count(kind):
        return len(json.loads(featherstep(capsys, f"methods --kind {kind} --json")[1]))

    total = len(catalogue.entries())
    assert count("explicit") + count("implicit") == total
    assert count("dirk") + count("fully-implicit") == count("implicit")


def test_one_method_with_its_order_conditions(capsys):
    code, out, _ = featherstep(capsys, "methods --show dopri5")
    assert code == 0
    assert str(catalogue.get("DOPRI5")) in out
    counts = [line.split() for line in out.splitlines() if line.split()[:2] == ["5", "9"]]
    assert counts == [["5", "9", "9", "0", "0"]]  # all of 9 hold, none of the embedded method's


def test_one_method_as_latex_and_json(capsys):
    assert featherstep(capsys, "methods --show Gauss2 --latex")[1].startswith(r"\begin")
    data = json.loads(featherstep(capsys, "methods --show RK4 --json")[1])
    assert data["tableau"]["b"] == ["1/6", "1/3", "1/3", "1/6"]


def test_problems_lists_them_all(capsys):
    code, out, _ = featherstep(capsys, "problems --csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [row["name"] for row in rows] == problems.names()
    assert "lorenz" in featherstep(capsys, "problems")[1]


def test_filters_of_problems(capsys):
    stiff = json.loads(featherstep(capsys, "problems --stiff --json")[1])
    assert {row["name"] for row in stiff} == {e.name for e in problems.entries() if e.stiff}
    dae = json.loads(featherstep(capsys, "problems --kind dae --json")[1])
    assert dae
    assert all(row["kind"].startswith("DAE") for row in dae)


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_can_be_shown(capsys, name):
    code, out, _ = featherstep(capsys, f"problems --show {name}")
    assert code == 0
    assert out.startswith(f"{name}: ")


def test_sources_are_read_without_tex():
    assert len(_sources()) > 50
    for key in _sources():
        assert not set("{}\\") & set(citation(key)), citation(key)
    assert authors_and_year("hairer1993") == "Hairer, Nørsett, Wanner 1993"
    assert citation("no such key") == "no such key"


def test_every_reference_of_the_catalogue_is_listed():
    known = catalogue.entries("all")
    assert {e.reference for e in known} <= set(_sources())


# -------------------------------------------------------------------- compare


def test_errors_are_those_of_solve():
    result = compare("kepler", ["DOPRI5", "RK4"], rtol=1e-7, repeat=1)
    problem = problems.get("kepler")
    expected = problem.exact(problem.t_span[1])
    for row, method in zip(result.rows, ["DOPRI5", "RK4"]):
        sol = solve(problem, method=method, rtol=1e-7, atol=1e-10)
        error = np.max(np.abs(sol.y[:, -1] - expected)) / np.max(np.abs(expected))
        assert row.error == pytest.approx(error, rel=1e-12)
        assert (row.steps, row.rejected, row.nfev) == (sol.nsteps, sol.nrejected, sol.nfev)
        assert row.seconds > 0


def test_rows_run_over_settings_and_methods():
    result = compare("logistic", ["RK4", "Heun"], step=[0.2, 0.1], repeat=1)
    assert [(r.step, r.method) for r in result.rows] == [
        (0.2, "RK4"),
        (0.2, "Heun"),
        (0.1, "RK4"),
        (0.1, "Heun"),
    ]
    assert all(r.rtol is None and r.ok for r in result.rows)


def test_failures_are_rows(capsys):
    code, out, _ = featherstep(
        capsys,
        "compare vdp1000 --methods DOPRI5,RADAU5 --rtol 1e-6 --max-steps 1000 --repeat 1",
    )
    assert code == 0  # one of the two succeeded
    assert "too many steps" in out
    assert "implicit method" in out  # the message that names the remedy


def test_a_method_that_cannot_is_shown_as_refused(capsys):
    code, out, err = featherstep(capsys, "compare jay --methods RK4 --step 0.1")
    assert code == 1  # nothing succeeded
    assert "refused" in out
    assert "mass matrix" in out
    assert err == ""


def test_missing_libraries_are_shown(monkeypatch):
    def missing(*_, **__):
        raise ImportError("assimulo is not installed: pip install featherstep[assimulo]")

    monkeypatch.setattr("integrators.analysis.study.runs.solve", missing)
    (row,) = compare("kepler", ["assimulo:CVode"], rtol=1e-6).rows
    assert (row.method, row.status, row.error) == ("assimulo:CVode", "missing", None)
    assert "pip install" in row.message


@pytest.mark.parametrize("name", problems.names())
def test_default_methods_exist(name):
    entry = problems.entry(name)
    for method in default_methods(entry.problem(), entry.stiff):
        assert resolve(method)[0] == method


def test_a_tableau_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    catalogue.get("Heun").save(path)
    ours, theirs = compare("logistic", [str(path), "Heun"], step=0.1, repeat=1).rows
    assert ours.error == theirs.error


def test_a_problem_of_ones_own():
    problem = IVP(lambda t, y: -y, [1.0], (0.0, 1.0), exact=lambda t: np.exp(-t))
    (row,) = compare(problem, ["DOP853"], rtol=1e-10, repeat=1).rows
    assert row.error < 1e-8


def test_a_reference_is_computed_where_none_is_known():
    result = compare("lotka_volterra", ["DOP853"], parameters={"a": 2.0}, rtol=1e-8, repeat=1)
    assert "DOP853 with rtol" in result.reference.origin
    assert "confirms" in result.error_measure()
    assert result.rows[0].error < 1e-4


def test_a_stiff_reference_is_computed_by_an_implicit_method():
    result = compare("vdp", ["RADAU5"], parameters={"mu": 500.0}, rtol=1e-6, repeat=1)
    assert "RadauIIA5" in result.reference.origin
    assert result.rows[0].error < 1e-3


def test_a_solution_that_died_out_has_absolute_errors():
    result = compare("decay", ["ImplicitEuler"], step=0.01, repeat=1)
    assert not result.reference.relative
    assert result.error_measure().startswith("absolute")


def test_another_end_of_the_interval():
    result = compare("kepler", ["DOP853"], rtol=1e-10, t_end=3.0, repeat=1)
    assert result.problem.t_span == (0.0, 3.0)
    assert result.rows[0].error < 1e-8


def test_tracing_changes_times_not_results():
    plain = compare("lotka_volterra", ["DOPRI5"], rtol=1e-8, repeat=1).rows[0]
    fast = compare("lotka_volterra", ["DOPRI5"], rtol=1e-8, repeat=1, traced=True).rows[0]
    assert fast.nfev == plain.nfev
    assert fast.error == pytest.approx(plain.error, rel=1e-3)


def test_divergence_makes_no_noise(capsys):
    code, out, err = featherstep(
        capsys, "compare van_der_pol_1000 --methods ExplicitEuler --step 0.5 --repeat 1"
    )
    assert code == 1
    assert "nonfinite" in out
    assert err == ""


def test_table_as_data(capsys):
    command = "compare logistic --methods RK4,nosuchfamily --step 0.1"
    assert featherstep(capsys, command)[0] == 2
    command = "compare jay --methods RADAU5,RK4 --rtol 1e-6 --repeat 1"
    code, out, _ = featherstep(capsys, command, "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [row["status"] for row in rows] == ["ok", "refused"]
    assert float(rows[0]["error"]) < 1e-2
    assert rows[1]["error"] == ""
    data = json.loads(featherstep(capsys, command, "--json", "-")[1])
    assert data["rows"][1]["error"] is None
    assert data["problem"] == "jay"


def test_markdown():
    text = compare("logistic", ["RK4"], step=0.1, repeat=1).to_markdown()
    header, rule, row, *_ = text.splitlines()
    assert header.count("|") == rule.count("|") == row.count("|") == 10
    assert "exact" in text


def test_files_are_written(capsys, tmp_path):
    names = [tmp_path / name for name in ("table.csv", "table.json", "picture.png")]
    options = [x for o, n in zip(("--csv", "--json", "--plot"), names) for x in (o, str(n))]
    command = "compare kepler --methods DOPRI5,RK4 --rtol 1e-4,1e-6 --repeat 1"
    code, out, err = featherstep(capsys, command, *options)
    assert code == 0
    assert "DOPRI5" in out
    assert err.count("wrote") == 3
    assert names[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["robertson", "pleiades", "dahlquist", "brusselator_1d", "jay"])
def test_pictures_of_all_sorts(name):
    from featherstep.problem_study.figure import comparison_figure

    stiff = problems.entry(name).stiff or problems.get(name).mass is not None
    method = "RADAU5" if stiff else "DOPRI5"
    result = compare(name, [method, "RK4"], rtol=1e-5, repeat=1, max_steps=5000, illustrate=True)
    figure = comparison_figure(result)
    figure.canvas.draw()  # text and limits are only laid out now
    assert len(figure.axes) == 2


def test_picture_without_any_success():
    from featherstep.problem_study.figure import comparison_figure

    result = compare("jay", ["RK4"], step=0.1, illustrate=True)
    figure = comparison_figure(result)
    figure.canvas.draw()
    assert "no run succeeded" in {text.get_text() for text in figure.axes[0].texts}


# -------------------------------------------------------------------- studies


def test_converge_prints_orders(capsys):
    code, out, err = featherstep(
        capsys, "converge minus_2ty2 --methods Heun,RK4 --steps 0.1,0.05,0.025,0.0125"
    )
    assert code == 0
    assert err == ""
    assert out.count("as expected") == 2
    assert "0.0125" in out


def test_converge_shows_the_order_through_impacts(capsys):
    """Event-driven runs keep the order of the method; time stepping has order one."""
    line = "converge newtons_cradle --methods RK4 --t-end 1.2 --intervals 40,80,160,320"
    code, out, _ = featherstep(capsys, line)
    assert code == 0, out
    assert "as expected" in out
    row = next(line for line in out.splitlines() if line.startswith("RK4"))
    assert float(row.split()[2]) == pytest.approx(4.0, abs=0.1)
    line = "converge bouncing_ball --methods MoreauJean --t-end 3 --intervals"
    code, out, _ = featherstep(capsys, f"{line} 100,200,400,800,1600,3200")
    assert code == 0, out
    row = next(line for line in out.splitlines() if line.startswith("MoreauJean"))
    assert float(row.split()[2]) == pytest.approx(1.0, abs=0.4), out
    code, _, err = featherstep(capsys, "converge double_pendulum --methods MoreauJean")
    assert code == 2
    assert "models with contacts" in err


def test_converge_names_the_cause_and_fails(capsys):
    code, out, _ = featherstep(
        capsys,
        "converge prothero_robinson --methods SDIRK4 --t-end 1 --intervals 4,6,8,12,16,24 --all",
    )
    assert code == 1
    assert "order reduction by stiffness" in out
    assert "too low" in out


def test_a_tableau_from_a_file_is_judged(capsys, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nA = [[], ["1/2"]]\nb = ["1/4", "3/4"]\n')
    code, out, _ = featherstep(
        capsys, "converge minus_2ty2 --steps 0.02,0.01,0.005,0.0025 --order 2 --methods", str(path)
    )
    assert code == 1
    assert "wrong weights" in out


class Links(HTMLParser):
    """Collects what a page would fetch, its tables and its headings."""

    def __init__(self):
        super().__init__()
        self.fetched, self.tags = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.fetched.append(value)


@pytest.mark.parametrize(
    "command",
    [
        "converge logistic --methods Heun,RK4 --steps 0.4,0.2,0.1,0.05",
        "workprecision logistic --methods DOPRI5,scipy:RK45 --rtol 1e-4,1e-6 --repeat 1",
    ],
)
def test_studies_write_all_their_files(capsys, tmp_path, command):
    names = {
        option: tmp_path / f"study.{ending}"
        for option, ending in {
            "plot": "svg", "csv": "csv", "markdown": "md", "latex": "tex", "html": "html"
        }.items()
    }  # fmt: skip
    options = [word for option, path in names.items() for word in (f"--{option}", str(path))]
    code, _, err = featherstep(capsys, command, *options)
    assert code == 0
    assert err.count("wrote") == 5
    assert "<svg" in names["plot"].read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(names["csv"].read_text(encoding="utf-8"))))
    assert {row["method"] for row in rows} == set(command.split()[3].split(","))
    assert names["markdown"].read_text(encoding="utf-8").startswith("| method |")
    assert r"\end{tabular}" in names["latex"].read_text(encoding="utf-8")


def test_the_report_needs_nothing_but_itself(capsys, tmp_path):
    page = tmp_path / "report.html"
    featherstep(
        capsys,
        "converge logistic --methods Heun,RK4 --steps 0.4,0.2,0.1,0.05 --html",
        str(page),
    )
    text = page.read_text(encoding="utf-8")
    links = Links()
    links.feed(text)
    assert links.fetched == []
    assert "@import" not in text
    assert {"svg", "table", "script", "th"} <= set(links.tags)
    assert links.tags.count("table") == 2
    assert links.tags.count("tr") == (1 + 2) + (1 + 8)  # orders and runs, with their headings
    assert 'data-value="0.4"' in text


def test_data_alone_on_standard_output(capsys):
    command = "converge minus_2ty2 --methods RK4 --steps 0.1,0.05,0.025 --csv -"
    code, out, _ = featherstep(capsys, command)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [float(row["step"]) for row in rows] == [0.1, 0.05, 0.025]


def test_workprecision_shows_failures(capsys):
    code, out, _ = featherstep(
        capsys,
        "workprecision vdp1000 --methods DOPRI5,RADAU5 --rtol 1e-4 --max-steps 500 --repeat 1",
    )
    assert code == 0
    assert "too many steps" in out
    assert "error/rtol" in out


def test_ctrl_c_between_methods_of_a_study(capsys, monkeypatch):
    @contextmanager
    def interrupting(title):
        def report(done, total, label):
            if done == 1:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(terminal, "progress", interrupting)
    code, out, err = featherstep(
        capsys, "converge minus_2ty2 --methods RK4,Heun --steps 0.1,0.05,0.025"
    )
    assert code == 130
    assert "RK4" in out
    assert "Heun" not in out
    assert one_line(err)


# -------------------------------------------------------------------- interruptions


def test_ctrl_c_between_runs_keeps_what_was_done(capsys, monkeypatch):
    @contextmanager
    def interrupting(title):
        def report(done, total, label):
            if done == 1:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(terminal, "progress", interrupting)
    command = "compare kepler --methods RK4,DOPRI5 --step 0.1 --repeat 1"
    code, out, err = featherstep(capsys, command)
    assert code == 130
    assert "RK4" in out
    assert "DOPRI5" not in out
    assert one_line(err)


def test_ctrl_c_inside_a_run():
    calls = 0

    def f(t, y):
        nonlocal calls
        calls += 1
        if calls == 50:
            raise KeyboardInterrupt
        return -y

    problem = IVP(f, [1.0], (0.0, 1.0), exact=lambda t: np.exp(-t))
    result = compare(problem, ["RK4", "Heun"], step=0.01)
    assert result.interrupted
    assert [row.status for row in result.rows] == ["interrupted"]


def test_ctrl_c_during_a_simulation_shows_what_was_computed(capsys, monkeypatch):
    whole = multibody.simulate

    def interrupted(*arguments, on_interrupt, **options):
        assert on_interrupt == "return"

        def press(t, y):
            if t > 0.5:
                raise KeyboardInterrupt

        return whole(*arguments, on_interrupt=on_interrupt, callback=press, **options)

    monkeypatch.setattr(multibody, "simulate", interrupted)
    code, out, err = featherstep(capsys, "simulate pendulum --t-end 2")
    assert code == 130
    assert "to t = 0.5" in out
    assert "at the end" in out
    assert "interrupted at t = 0.5" in err
    assert one_line(err)


def test_ctrl_c_that_was_swallowed_is_heeded():
    before = signal.getsignal(signal.SIGINT)
    with heed_ctrl_c() as check:
        check()
        with suppress(KeyboardInterrupt):  # as a callback of the compiler would
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_reader_that_goes_away():
    command = [sys.executable, "-m", "featherstep", "methods"]
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_empty_comparison_is_still_text():
    problem = problems.get("kepler")
    empty = Comparison(problem, (), Reference(None, "interrupted"), interrupted=True)
    assert "interrupted" in empty.to_markdown()
    assert empty.to_csv().count("\n") == 1
