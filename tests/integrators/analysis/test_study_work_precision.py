"""Work-precision studies, tables, figures, and the exercises."""

import csv
import io
import json

import numpy as np
import pytest

from integrators import IVP, Tableau, catalogue, problems, solve
from integrators.analysis import (
    convergence,
    exercises,
    find_reference,
    grade,
    number_check,
    plot,
    register_exercise,
    work_precision,
)
from integrators.analysis.study.tables import Column, Table, number

# -------------------------------------------------------------------- work and precision


@pytest.fixture(scope="module")
def kepler():
    methods = ["DOPRI5", "scipy:RK45", "assimulo:CVode"]
    return work_precision("kepler", methods, [1e-4, 1e-6, 1e-8], repeat=1)


def test_rows_are_those_of_solve(kepler):
    problem = problems.get("kepler")
    end = problem.exact(problem.t_span[1])
    for row in kepler.rows[:2]:
        method = "DOPRI5" if row.method == "DOPRI5" else "scipy:RK45"
        sol = solve(problem, method=method, rtol=1e-4, atol=1e-7)
        error = np.max(np.abs(sol.y[:, -1] - end)) / np.max(np.abs(end))
        assert row.error == pytest.approx(error, rel=1e-12)
        assert (row.nfev, row.steps) == (sol.nfev, sol.nsteps)
        assert row.seconds > 0


def test_achieved_beside_requested(kepler):
    table = kepler.table
    column = [c.key for c in table.columns].index("achieved_over_requested")
    for values, row in zip(table.rows, kepler.rows):
        assert values[column] == pytest.approx(row.error / row.rtol)
    assert "error/rtol" in str(kepler)


def test_tighter_tolerances_give_smaller_errors(kepler):
    for method in kepler.methods:
        errors = [row.error for row in kepler.rows if row.method == method]
        assert len(errors) == 3
        assert errors[0] > errors[1] > errors[2]


def test_the_measure_can_be_an_invariant():
    result = work_precision("kepler", "DOPRI5", [1e-5, 1e-8], measure="energy", repeat=1)
    problem = problems.get("kepler")
    sol = solve(problem, method="DOPRI5", rtol=1e-5, atol=1e-8)
    values = np.array([problem.invariants["energy"](t, y) for t, y in zip(sol.t, sol.y.T)])
    drift = np.max(np.abs(values - values[0])) / abs(values[0])
    assert result.rows[0].error == pytest.approx(drift, rel=1e-12)
    assert "drift of energy" in result.error_measure()


def test_failures_are_shown_with_their_reason():
    result = work_precision(
        "van_der_pol_1000", ["DOPRI5", "RADAU5"], 1e-5, max_steps=2000, repeat=1
    )
    failed, fine = result.rows
    assert (failed.status, failed.error, failed.seconds) == ("too many steps", None, None)
    assert fine.ok
    assert "DOPRI5 (rtol = 1e-05)" in result.complaints()[0]
    assert "too many steps" in result.to_markdown()


def test_errors_below_the_reference_are_pointed_out():
    mine = IVP(lambda t, y: np.array([y[1], -np.sin(y[0])]), [1.0, 0.0], (0.0, 10.0))
    result = work_precision(mine, "DOP853", [1e-6, 1e-13], repeat=1)
    assert result.uncertainty > 0
    assert "below the uncertainty of the reference" in " ".join(result.notes())


def test_data():
    result = work_precision("logistic", "RK4", steps=[0.2, 0.1], repeat=1)
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert [float(row["step"]) for row in rows] == [0.2, 0.1]
    assert json.loads(result.to_json())["rows"][1]["error"] == result.rows[1].error
    assert r"\toprule" in result.to_latex()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerances": -1.0}, "rtol must be positive"),
        ({"tolerances": []}, "no value"),
        ({"tolerances": [1e-3, 1e-4], "atol": [1e-6, 1e-7, 1e-8]}, "one for each rtol"),
        ({"tolerances": 1e-3, "steps": 0.1}, "not both"),
        ({"tolerances": 1e-3, "repeat": 0}, "repeat"),
    ],
)
def test_bad_settings(options, words):
    with pytest.raises(ValueError, match=words):
        work_precision("logistic", "RK4", **options)


def test_references_say_how_good_they_are():
    exact = find_reference(problems.get("kepler"))
    assert exact.uncertainty == 0.0
    assert find_reference(problems.get("arenstorf")).uncertainty < 1e-10
    mine = IVP(lambda t, y: -(y**3), [1.0], (0.0, 1.0))
    made = find_reference(mine)
    true = made.error(np.array([3**-0.5]))
    assert true <= made.uncertainty + 1e-15 < 1e-9
    times = np.linspace(0, 1, 7)
    assert np.allclose(made.along(times)[0], (1 + 2 * times) ** -0.5, rtol=1e-11)


# -------------------------------------------------------------------- tables


def test_cells_are_escaped():
    table = Table((Column("a|b", "a", text=True), Column("x", "x", number)), (("<&_|", 1.5e-7),))
    assert r"\|" in table.to_markdown()
    assert "&lt;&amp;" in table.to_html()
    assert r"\&\_" in table.to_latex()
    assert r"$1.5\cdot 10^{-7}$" in table.to_latex()
    assert table.records() == [{"a": "<&_|", "x": 1.5e-7}]


# -------------------------------------------------------------------- figures


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


def test_the_convergence_figure_has_triangles_and_gaps():
    steps = [1.0, 0.5, 0.02, 0.01, 0.005, 0.0025]
    study = convergence("van_der_pol", ["RK4", "Heun"], steps)
    ax = drawn(plot.convergence(study))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    triangles = {text.get_text() for text in ax.texts}
    assert triangles == {"2", "4"}
    corners = [patch.get_xy() for patch in ax.patches]
    for xy, order in zip(corners, (4, 2)):
        width, height = np.ptp(np.log10(xy), axis=0)
        assert height / width == pytest.approx(order)
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    assert [len(line.get_xdata()) for line in crosses] == [2, 2, 0]  # the last for the legend
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "RK4: 4.0" in legend[0]
    assert legend[-1] == "failed run, no error"


def test_no_triangle_without_an_order():
    study = convergence("minus_2ty2", "Gauss6", [0.05, 0.02, 0.01, 0.005])
    ax = drawn(plot.convergence(study))
    assert not ax.patches
    assert "no order" in ax.get_legend().get_texts()[0].get_text()


def test_a_mutated_method_changes_the_figure():
    A, b, _ = catalogue.get("RK4").arrays
    mutated = A.copy()
    mutated[2, 1] += 1e-3
    steps = [2.0 / n for n in (128, 256, 512, 1024)]
    methods = ["RK4", Tableau(mutated, b, name="mutated")]
    ax = drawn(plot.convergence(convergence("order_rational", methods, steps)))
    assert {text.get_text() for text in ax.texts} == {"4", "1"}


def test_nothing_succeeded():
    ax = drawn(plot.convergence(convergence("jay", "RK4", [0.1, 0.05, 0.025])))
    assert ax.texts[0].get_text() == "no run succeeded"


def test_work_precision_figures(kepler):
    ax = drawn(plot.work_precision(kepler))
    assert len(ax.lines) == 3
    assert list(ax.lines[0].get_xdata()) == [r.nfev for r in kepler.rows if r.method == "DOPRI5"]
    assert drawn(plot.work_precision(kepler, "seconds")).get_xlabel().startswith("time")
    assert len(drawn(plot.tolerance(kepler)).lines) == 4  # and the diagonal
    with pytest.raises(ValueError, match="nfev"):
        plot.work_precision(kepler, "effort")
    fixed = work_precision("logistic", "RK4", steps=[0.1], repeat=1)
    with pytest.raises(ValueError, match="fixed steps"):
        plot.tolerance(fixed)


# -------------------------------------------------------------------- exercises


class Heun:
    order = 2

    def step(self, f, t, y, h):
        k1 = h * f(t, y)
        return y + (k1 + h * f(t + h, y + k1)) / 2


class Late(Heun):
    def step(self, f, t, y, h):
        k1 = h * f(t, y)
        return y + (k1 + h * f(t, y + k1)) / 2


def three_eighths(sign):
    rows = [[], ["1/3"], ["-1/3", sign], [1, -1, 1]]
    return Tableau(rows, ["1/8", "3/8", "3/8", "1/8"], [0, "1/3", "2/3", 1], check=sign > 0)


# Right answers from outside: closed forms, the literature, or counting by hand.
RIGHT = {
    "euler-bound": 4 * np.sqrt(np.e) / 80 * (np.e - 1),
    "second-order-step": Heun(),
    "best-gamma": 0.75,
    "third-order": catalogue.get("Kutta3"),
    "repair": three_eighths(1),
    "rk4-step": 2.785293563405282 / 50,
    "l-stable": 1 - np.sqrt(0.5),
    "a-not-l": "Gauss3",
}
WRONG = {
    "euler-steps": [(0, "is not right"), (500, "is not right"), ("many", "expected a number")],
    "euler-bound": [(4 * np.sqrt(np.e) / 80 * np.e, "without −1"), (-1.0, "is not right")],
    "second-order-step": [(Late, "wrong time"), (3, "method must be")],
    "best-gamma": [(0.5, "0.1863"), (float("nan"), "finite")],
    "third-order": [
        (catalogue.get("Heun"), "Σ bᵢ aᵢⱼ cⱼ = 1/6, but it is 0"),
        (catalogue.get("RK4"), "3 are enough"),
        (catalogue.get("RadauIIA2"), "not explicit"),
        ("Kutta3", "expected a Tableau"),
    ],
    "repair": [(three_eighths(-1), "its order is 1")],
    "rk4-step": [(0.04, "is not right"), (0.06, "R(-3) = 1.375")],
    "l-stable": [(0.5, "order is 1"), ("gamma", "cannot read")],
    "a-not-l": [("RadauIIA3", "L-stable: yes"), ("RK4", "A-stable: no"), (3, "name of a scheme")],
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    verdict = grade(name, RIGHT[name])
    assert verdict, str(verdict)
    assert str(verdict).startswith("right")


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [(name, answer, words) for name, cases in WRONG.items() for answer, words in cases],
)
def test_wrong_answers_get_a_hint(name, answer, words):
    verdict = grade(name, answer)
    assert not verdict
    assert words in str(verdict)


def test_the_number_of_euler_steps():
    """Count by hand: the error is largest at the end."""

    def error(steps):
        y, h = 1.0, 1.0 / steps
        for k in range(steps):
            y += h * (k * h * y + k * h)
        return 2 * np.exp(0.5) - 1 - y

    steps = next(n for n in range(1, 1000) if error(n) <= 1e-2)
    assert grade("euler-steps", steps)
    assert not grade("euler-steps", steps - 1)


def test_every_exercise_has_a_question_and_takes_no_answer():
    for exercise in exercises():
        assert exercise.question.strip().endswith((".", "?", "'."))
        assert "no answer yet" in str(grade(exercise.name, None))
    with pytest.raises(ValueError, match="euler-steps"):
        grade("euler-step", 1)


def test_teachers_can_add_exercises():
    @register_exercise("stages", "How many stages has DOPRI5?")
    def stages(answer):
        return number_check(answer, catalogue.get("DOPRI5").stages, exact=True)

    assert grade("stages", 7)
    assert "right but for the sign" in str(grade("stages", -7))
