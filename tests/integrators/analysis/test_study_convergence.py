"""Convergence studies: the order, the verdict, the named cause, the tables."""

import csv
import io
from itertools import pairwise

import numpy as np
import pytest

from integrators import IVP, Event, Tableau, catalogue, problems
from integrators.analysis import ErrorMeasure, Program, convergence, measured_weights
from integrators.analysis.plot import study as plots
from integrators.methods import textbook

STEPS = [0.1, 0.05, 0.025, 0.0125, 0.00625]


def curve_of(problem, method, steps=None, **options):
    (curve,) = convergence(problem, method, steps, **options).curves
    return curve


# -------------------------------------------------------------------- orders and verdicts


def test_errors_are_those_of_the_formula():
    """Explicit Euler on y' = -y: y_N = (1 - h)^N, to be compared with e^-1."""
    problem = IVP(lambda t, y: -y, [1.0], (0.0, 1.0), exact=lambda t: np.array([np.exp(-t)]))
    curve = curve_of(problem, "ExplicitEuler", STEPS, measure="end")
    expected = [abs((1 - h) ** round(1 / h) - np.exp(-1)) / np.exp(-1) for h in STEPS]
    assert curve.errors == pytest.approx(expected, rel=1e-9)
    assert 1 in curve.estimate
    assert curve.verdict == "as expected"


def test_a_method_that_does_better_is_not_called_wrong():
    """Order 2 for y' = f(t): the midpoint rule integrates t with a higher order by symmetry."""
    curve = curve_of("minus_2ty2", Tableau([[], ["1/2"]], [0, 1], name="mid"), STEPS, order=1)
    assert curve.verdict == "higher"
    assert curve.ok
    assert not curve.findings


def test_an_unknown_order_is_just_found():
    def euler(problem, step):
        t, y = textbook.euler(problem.f, 0.0, problem.y0, step, round(2.0 / step))
        return t, y.T

    curve = curve_of("minus_2ty2", euler, [0.02, 0.01, 0.005, 0.0025])
    assert curve.method == "euler"
    assert curve.verdict == "order found"
    assert 1 in curve.estimate


def test_a_reference_is_made_where_none_is_known():
    mine = IVP(lambda t, y: np.array([y[1], -np.sin(y[0])]), [1.0, 0.0], (0.0, 3.0))
    study = convergence(mine, "RK4", STEPS)
    assert "which a second run confirms" in study.error_measure()
    assert 4 in study["RK4"].estimate
    along = convergence(mine, "RK4", STEPS, measure="max")
    assert 4 in along["RK4"].estimate


def test_steps_below_the_accuracy_of_the_reference_do_not_count():
    mine = IVP(lambda t, y: np.array([y[1], -np.sin(y[0])]), [1.0, 0.0], (0.0, 3.0))
    curve = curve_of(mine, "DOP853", [3.0 / n for n in (4, 6, 8, 12, 16, 24, 32, 48, 64, 96)])
    assert "reference" in curve.estimate.marks or "round-off" in curve.estimate.marks
    assert curve.verdict in ("as expected", "not yet asymptotic", "round-off")


def test_backwards_in_time():
    problem = problems.get("minus_2ty2")
    back = problem.with_(t_span=(2.0, 0.0), y0=[0.2])
    assert 4 in curve_of(back, "RK4", STEPS).estimate


def test_complex_states():
    assert 2 in curve_of(problems.get("dahlquist", lam=1j), "Heun", STEPS).estimate


# -------------------------------------------------------------------- measures


def test_measures_choose_what_is_compared():
    problem = problems.get("kepler", t_end=3.0)
    errors = {
        measure: curve_of(problem, "RK4", STEPS, measure=measure).errors[0]
        for measure in ("end", "max", "y0", 0, "max y1")
    }
    assert errors["y0"] == errors[0]
    assert errors["max"] != errors["end"]
    assert 4 in curve_of(problem, "RK4", STEPS, measure="y3").estimate


def test_an_invariant_needs_no_reference():
    """RK4 loses energy with h⁵ on Hamiltonian problems, Gauss2 (symplectic) with h⁴."""
    study = convergence("kepler", "Gauss2", [0.05, 0.025, 0.0125, 0.00625], measure="energy")
    assert 4 in study["Gauss2"].estimate
    assert "its value at the start" in study.error_measure()


def test_a_function_of_the_state():
    def radius(t, y):
        return np.hypot(y[0], y[1])

    problem = problems.get("kepler", t_end=3.0)
    study = convergence(problem, "RK4", STEPS, measure=radius)
    assert study.measure.name == "radius"
    assert 4 in study["RK4"].estimate
    absolute = ErrorMeasure("radius", radius, relative=False)
    ours = convergence(problem, "RK4", STEPS, measure=absolute)["RK4"].errors[0]
    r = radius(3.0, problem.exact(3.0))
    assert study["RK4"].errors[0] == pytest.approx(ours / r, rel=1e-9)


@pytest.mark.parametrize(
    ("measure", "error", "words"),
    [
        ("enrgy", ValueError, "energy"),
        ("y9", ValueError, "0 first"),
        (7, ValueError, "component 7"),
        (1.5, TypeError, "measure must be"),
    ],
)
def test_unknown_measures(measure, error, words):
    with pytest.raises(error, match=words):
        convergence("kepler", "RK4", STEPS, measure=measure)


# -------------------------------------------------------------------- the named cause


class Late:
    """Heun, the second stage at the wrong time."""

    order = 2

    def step(self, f, t, y, h):
        k1 = h * f(t, y)
        return y + (k1 + h * f(t, y + k1)) / 2


class Light:
    """Heun with weights that add up to 0.95."""

    order = 2

    def step(self, f, t, y, h):
        k1 = h * f(t, y)
        return y + 0.45 * k1 + 0.5 * h * f(t + h, y + k1)


class Lopsided:
    """Heun with weights 0.45 and 0.55."""

    order = 2

    def step(self, f, t, y, h):
        k1 = h * f(t, y)
        return y + 0.45 * k1 + 0.55 * h * f(t + h, y + k1)


class OneNewtonIteration:
    """Gauss with two stages, whose Newton iteration ends after the first one."""

    order = 4

    def step(self, f, t, y, h):
        A, b, c = catalogue.get("Gauss2").arrays
        n, e = len(y), 1e-6
        columns = [(f(t, y + d) - f(t, y - d)) / (2 * e) for d in e * np.eye(n)]
        M = np.eye(2 * n) - h * np.kron(A, np.array(columns).T)
        K = np.linalg.solve(M, np.concatenate([h * f(t + ci * h, y) for ci in c]))
        return y + b @ K.reshape(2, n)


class TwoSweeps:
    """Gauss with two stages by fixed-point iteration, two sweeps of it."""

    order = 4

    def step(self, f, t, y, h):
        A, b, c = catalogue.get("Gauss2").arrays
        K = np.array([f(t, y)] * 2)
        for _ in range(2):
            K = np.array([f(t + c[i] * h, y + h * A[i] @ K) for i in range(2)])
        return y + h * b @ K


class AdamsBashforth3:
    """The three-step method, started by Euler."""

    order = 3

    def __init__(self):
        self.slopes, self.t = [], np.inf

    def step(self, f, t, y, h):
        if t < self.t:
            self.slopes = []
        self.t = t
        self.slopes = [f(t, y), *self.slopes[:2]]
        if len(self.slopes) < 3:
            return y + h * self.slopes[0]
        return y + h * np.array([23, -16, 5]) / 12 @ np.array(self.slopes)


@pytest.mark.parametrize(
    ("method", "order", "cause", "evidence"),
    [
        (Late(), 1, "wrong time", "[τ] has weight 0 instead of 1/2"),
        (Light(), None, "do not add up to 1", "0.95"),
        (Lopsided(), 1, "weights", "0.55"),
        (OneNewtonIteration(), 2, "not solved to the end", "linear problems"),
        (TwoSweeps(), 3, "no more than 3 evaluations", "degree 3"),
        (AdamsBashforth3(), 2, "start of low order", "the first step has order 1"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "step") else None,
)
def test_the_likely_bug_is_named(method, order, cause, evidence):
    curve = curve_of("order_rational", method)
    assert not curve.ok
    if order is None:
        assert "does not fall" in curve.estimate.reason
    else:
        assert order in curve.estimate
    assert cause in curve.findings[0].cause
    assert evidence in curve.findings[0].evidence


def misprinted():
    return Tableau(
        [[], ["1/3"], ["-1/3", -1], [1, -1, 1]],
        ["1/8", "3/8", "3/8", "1/8"],
        [0, "1/3", "2/3", 1],
        name="misprinted",
        check=False,
    )


def test_the_misprinted_three_eighths_rule():
    curve = curve_of("minus_2ty2", misprinted(), order=4)
    assert 1 in curve.estimate
    first, second, *_ = curve.findings
    assert "RK38" in first.evidence
    assert "a32 is 1 there, -1 here" in first.evidence
    assert "row 3 adds up to -4/3, but c3 is 2/3" in second.evidence


@pytest.mark.parametrize("place", [(1, 0), (2, 1), (3, 2)])
def test_a_coefficient_off_by_a_thousandth_changes_the_verdict(place):
    A, b, _ = catalogue.get("RK4").arrays
    mutated = A.copy()
    mutated[place] += 1e-3
    method = Tableau(mutated, b, name="mutated")
    curve = curve_of(
        "order_rational", method, [2.0 / n for n in (64, 128, 256, 512, 1024)], order=4
    )
    assert method.order < 4
    assert curve.verdict == "too low"
    assert "RK4" in curve.findings[0].evidence


def test_a_wrong_exact_solution_is_told_from_a_wrong_method():
    problem = problems.get("minus_2ty2")
    wrong = problem.with_(exact=lambda t: (1 + 1e-5 * t) / (1 + t * t) * np.ones(1))
    curve = curve_of(wrong, "RK4", measure="end")
    assert "the reference is wrong" in curve.findings[0].cause
    assert "agrees with the method" in curve.findings[0].evidence


def test_a_kink_is_found():
    problem = IVP(lambda t, y: np.abs(t - 0.6171) * y, [1.0], (0.0, 2.0))
    curve = curve_of(problem, "RK4")
    (finding,) = curve.findings
    assert finding.cause == "f is not smooth"
    assert "derivative 1" in finding.evidence
    where = float(finding.evidence.split("t = ")[1].split(":")[0])
    assert abs(where - 0.6171) < 0.02


def test_events_with_resets_are_pointed_at():
    ball = IVP(
        lambda t, y: np.array([y[1], -1.0 - 0.3 * np.sin(5 * t) * y[1] ** 2]),
        [1.0, 0.0],
        (0.0, 3.0),
        events=Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.9 * y[1]]),
    )
    curve = curve_of(ball, "DOP853", [3.0 / n for n in (8, 16, 32, 64, 128)])
    assert curve.verdict in ("reference too coarse", "as expected", "too low")
    assert curve.verdict != "too low" or curve.findings


@pytest.mark.parametrize(
    ("name", "stage_order"), [("SDIRK4", 1), ("LobattoIIIC3", 2), ("RadauIIA3", 3)]
)
def test_order_reduction_on_prothero_robinson(name, stage_order):
    """λ = -10⁶: little more than the stage order is left, and the study says why."""
    stiff = curve_of("prothero_robinson", name, [1 / n for n in (4, 6, 8, 12, 16, 24, 32)])
    assert stage_order in stiff.estimate
    assert stiff.verdict == "too low"
    assert stiff.findings[0].cause == "order reduction by stiffness"
    assert f"stage order of {name} is {stage_order}" in stiff.findings[0].evidence
    mild = problems.get("prothero_robinson", lam=-1.0, t_end=2.0)
    assert curve_of(mild, name).verdict == "as expected"


def test_diagnosis_can_be_left_out():
    assert curve_of("order_rational", Late(), STEPS, diagnosis=False).findings == ()


# -------------------------------------------------------------------- measured order conditions


@pytest.mark.parametrize("name", ["RK4", "DOPRI5", "Gauss3", "SDIRK4", "LobattoIIIC3", "TRBDF2"])
def test_measured_weights_are_the_elementary_weights(name):
    """One step of the compiled method gives what exact arithmetic gives for the tableau."""
    tableau = catalogue.get(name)
    exact = [float(c.weight) for p in range(1, 6) for c in tableau.order_conditions(p)]
    for autonomous in (True, False):
        measured = measured_weights(tableau, 5, autonomous=autonomous)
        assert [w.weight for w in measured] == pytest.approx(exact, abs=1e-10)


def test_methods_that_choose_their_steps_cannot_be_measured():
    assert measured_weights("scipy:RK45") is None


# -------------------------------------------------------------------- bad input, gaps, interruption


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([0.1, 0.05], "at least 3 different"),
        ([0.1, 0.1, 0.1], "at least 3 different"),
        ([0.1, 0.05, -0.1], "positive"),
        ([0.1, 0.05, float("nan")], "positive"),
        ([5.0, 0.05, 0.1], "longer than the interval"),
    ],
)
def test_bad_steps(steps, words):
    with pytest.raises(ValueError, match=words):
        convergence("minus_2ty2", "RK4", steps)


def test_bad_problem_and_methods():
    with pytest.raises(TypeError, match="IVP or the name"):
        convergence(lambda t, y: -y, "RK4", STEPS)
    with pytest.raises(ValueError, match="no method"):
        convergence("minus_2ty2", [], STEPS)
    with pytest.raises(ValueError, match="RungeKuta"):
        convergence("minus_2ty2", "RungeKuta", STEPS)


def test_a_problem_that_cannot_be_solved_says_so():
    hopeless = IVP(lambda t, y: y * y, [1.0], (0.0, 2.0))  # ends at t = 1
    with pytest.raises(ValueError, match="none could be computed"):
        convergence(hopeless, "RK4", STEPS)


def test_failures_are_gaps():
    study = convergence("van_der_pol", "RK4", [1.0, 0.5, 0.02, 0.01, 0.005, 0.0025])
    curve = study["RK4"]
    assert curve.errors[:2] == (None, None)
    assert curve.estimate.marks[:2] == ("failed", "failed")
    assert 4 in curve.estimate
    assert "RK4 failed at h = 1 to 0.5" in study.remarks()[0]
    assert "nonfinite" in study.table.to_text()


def test_failures_are_drawn_inside_the_axes_and_explained():
    """Euler overflows at long steps, RK4 at the longest only, and one method fails always."""

    def broken(problem, step):
        raise RuntimeError("out of order")

    problem = IVP(lambda t, y: -(y**3), [3.0], (0.0, 10.0),
                  exact=lambda t: np.array([3.0 / np.sqrt(1.0 + 18.0 * t)]))  # fmt: skip
    steps = [1.0, 0.5, 0.25, 0.05, 0.025, 0.0125]
    study = convergence(problem, ["ExplicitEuler", "RK4", broken], steps)
    failed = {c.method: [h for h, e in zip(steps, c.errors) if e is None] for c in study.curves}
    assert failed["ExplicitEuler"]
    assert failed["broken"] == steps
    ax = plots.convergence(study)
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    crosses = [line for line in ax.lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in crosses] == [f for f in failed.values() if f]
    legend = ax.get_legend().get_window_extent()
    for line in crosses:
        for point in line.get_transform().transform(line.get_xydata()):
            assert box.contains(*point)
            assert not legend.contains(*point)
    rows = {line.get_ydata()[0] for line in crosses}
    assert len(rows) == len(crosses)  # one method does not hide another
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "failed run, no error" in texts
    assert "broken: all runs failed" in texts
    good = convergence("minus_2ty2", "RK4", STEPS)
    texts = [text.get_text() for text in plots.convergence(good).get_legend().get_texts()]
    assert len(texts) == 1


def test_methods_that_choose_their_steps_are_refused_in_the_table():
    study = convergence("minus_2ty2", ["scipy:RK45", "RK4"], STEPS)
    assert study["scipy:RK45"].verdict == "refused"
    assert not study.ok
    assert "chooses its own steps" in " ".join(study.remarks())
    assert study["RK4"].verdict == "as expected"


def test_round_off_from_the_start():
    study = convergence("minus_2ty2", "Gauss6", [0.05, 0.02, 0.01, 0.005])
    assert "round-off" in study["Gauss6"].estimate.reason
    assert study["Gauss6"].verdict == "round-off"


def test_programs_are_checked():
    study = convergence("minus_2ty2", Program(lambda p, h: np.zeros(3), "short"), STEPS)
    assert "shape (3,)" in study["short"].rows[0].message
    nan = convergence("minus_2ty2", Program(lambda p, h: [np.nan], "nan"), STEPS)
    assert nan["nan"].rows[0].status == "nonfinite"


def test_interruption_keeps_what_was_done():
    def report(done, total, label):
        if label.startswith("Heun"):
            raise KeyboardInterrupt

    study = convergence("minus_2ty2", ["RK4", "Heun"], STEPS, report=report)
    assert study.interrupted
    assert [curve.method for curve in study.curves] == ["RK4"]


def test_unknown_curve():
    with pytest.raises(KeyError, match="not among RK4"):
        convergence("minus_2ty2", "RK4", STEPS)["Heun"]


# -------------------------------------------------------------------- tables


def test_all_formats_have_all_runs():
    study = convergence("minus_2ty2", ["RK4", "Heun"], STEPS)
    rows = list(csv.DictReader(io.StringIO(study.to_csv())))
    assert len(rows) == 2 * len(STEPS)
    assert float(rows[0]["error"]) == study["RK4"].errors[0]
    assert [row["verdict"] for row in rows[:5]] == ["as expected"] * 5
    assert float(rows[0]["observed"]) == study["RK4"].estimate.order
    markdown = study.to_markdown()
    assert markdown.count("| RK4 |") == len(STEPS) + 1
    latex = study.to_latex()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    assert r"10^{" in latex
    assert str(study) == study.to_text()
    slopes = [float(row["slope"]) for row in rows[1:5]]
    e = study["RK4"].errors
    assert slopes == pytest.approx([np.log2(a / b) for a, b in pairwise(e)], rel=1e-9)
