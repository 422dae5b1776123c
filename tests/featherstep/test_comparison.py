"""Comparisons of formulations and methods: errors against closed forms, verdicts, failures."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

from featherstep.mechanism_study.compare import compare
from featherstep.mechanism_study.mechanism import find_mechanism
from featherstep.mechanism_study.reference import Measure, ReferenceMotion
from featherstep.mechanism_study.table import KEYS, verdict
from integrators import solve
from multibody import as_ivp, as_mechanical, mechanisms
from multibody.runs.observing.observe import NEAR_SINGULAR, Observed, observe


def parallelogram(t, n=2):
    """Angle of A02 from the upright position: a rotating pendulum, θ = 2 am(t/(k…)), exactly.

    θ'' = (c g / I) sin θ, θ'(0) = 1 from the top; with φ = θ − π it is a pendulum that turns over.
    """
    inertia, moment = (n + 1) / 3 + n, (n + 1) / 2 + n
    rate = moment * 9.81 / inertia  # φ'' = −rate sin φ
    lowest = np.sqrt(1.0 + 4.0 * rate)  # φ' at the bottom
    m = 4.0 * rate / lowest**2
    # φ/2 = am(lowest (t − t_bottom)/2, m), and t_bottom = 2 K(m)/lowest from the top.
    amplitude = ellipj(lowest * t / 2 - ellipk(m), m)[3]
    return np.pi + 2.0 * amplitude


@pytest.fixture(scope="module")
def double_four_bar():
    return compare(
        "n_four_bar",
        ["RK4"],
        ["baumgarte", "projected"],
        steps=0.01,
        repeat=1,
        measure="v0:1,0,0",
    )


def test_position_of_a02_against_elliptic_functions(double_four_bar):
    """RK4 with h = 0.01 is 5.3e-7 off at t = 10; the reference agrees with the closed form."""
    theta = parallelogram(10.0)
    exact = np.array([[np.sin(theta), np.cos(theta), 0.0]])
    assert exact[0, 0] == pytest.approx(0.3284581115408154, abs=1e-12)  # published with 16 digits
    np.testing.assert_allclose(double_four_bar.reference.values, exact, atol=2e-10)
    for row in double_four_bar.rows:
        assert row.error == pytest.approx(5.3e-7, rel=0.02)
        assert row.trusted


def test_every_passage_through_a_singular_position_is_told(double_four_bar):
    """All rods lie in a line whenever θ is an odd multiple of π/2: ten times in ten seconds."""
    times = np.linspace(0.0, 10.0, 200_001)
    crossings = times[1:][np.diff(np.sign(np.cos(parallelogram(times)))) != 0]
    assert len(crossings) == 10
    for row in double_four_bar.rows:
        np.testing.assert_allclose(row.seen.passages, crossings, atol=1e-4)
        assert row.seen.closest < 1e-6
        assert "passed 10 singular positions from t = 0.714 on" in row.verdict
    assert any("branch" in note for note in double_four_bar.notes())


def test_energy_and_closure_do_not_make_a_run_right():
    """Unstabilised and adaptive on A02: wrong by a metre, with loops and energy in order.

    Which of the runs go astray depends on rounding; not that some do.
    """
    result = compare(
        "n_four_bar", ["DOP853", "DOPRI5"], "none", tolerances=[1e-7, 1e-8, 1e-9, 1e-10], repeat=1
    )
    said = "wrong although energy and closure are kept"
    deceptive = [row for row in result.rows if row.verdict.startswith(said)]
    assert deceptive
    worst = max(deceptive, key=lambda row: row.error)
    assert worst.error > 0.1
    assert worst.seen.gap < 1e-4
    assert worst.seen.energy < 1e-3
    assert not worst.trusted


@pytest.fixture(scope="module")
def four_bar():
    return compare(
        "four_bar",
        ["DOP853", "RADAU5"],
        ["none", "baumgarte", "projected", "index3"],
        tolerances=[1e-5, 1e-8],
        t_end=1.0,
        repeat=1,
    )


def test_all_formulations_agree_and_tight_runs_are_better(four_bar):
    for formulation in four_bar.formulations:
        for method in four_bar.methods:
            rows = four_bar[formulation, method]
            if not rows[0].ok:
                continue
            loose, tight = rows
            assert tight.error < loose.error < 1e-3
            assert tight.run.nfev > loose.run.nfev
            assert tight.seen.rank == (2, 2)
            assert not tight.seen.singular


def test_only_what_drifts_is_said_to_drift(four_bar):
    assert four_bar["index1", "DOP853"][0].verdict == "drifts slowly"
    assert four_bar["projected", "DOP853"][0].verdict == "trust"
    assert four_bar["projected", "DOP853"][0].seen.gap < 1e-13  # projected to rounding
    assert four_bar["index1", "DOP853"][0].seen.gap > 1e-7


def test_what_cannot_be_solved_is_a_row_once(four_bar):
    """An explicit method on index 3: one row for all tolerances, and the reason below."""
    (row,) = four_bar["index3", "DOP853"]
    assert row.verdict == "failed: refused"
    assert row.error is None
    assert any("index3 by DOP853: DOP853 is explicit" in text for text in four_bar.complaints())


def test_text_markdown_csv_and_json_say_the_same(four_bar):
    text = four_bar.to_text()
    assert text.count("drifts slowly") == sum(r.verdict == "drifts slowly" for r in four_bar.rows)
    assert four_bar.to_markdown().count("\n| ") >= len(four_bar.rows)
    read = list(csv.DictReader(io.StringIO(four_bar.to_csv())))
    assert list(read[0]) == list(KEYS)
    assert [float(r["error"]) for r in read if r["error"]] == [
        row.error for row in four_bar.rows if row.error is not None
    ]
    assert '"uncertainty"' in four_bar.to_json()


def test_defaults_pair_methods_with_what_suits_them():
    result = compare("four_bar", tolerances=1e-4, t_end=0.05, repeat=1)
    pairs = {(row.formulation, row.method) for row in result.rows}
    explicit = {"index1", "baumgarte", "projected", "minimal", "augmented"}
    assert {f for f, m in pairs if m == "DOP853"} == explicit
    assert {f for f, m in pairs if m == "RADAU5"} == {"index2", "index3", "ggl", "overdetermined"}
    assert all(row.ok for row in result.rows)


def test_bricard_is_overconstrained_and_moves_all_the_same():
    """P3 of A04, beyond the place (1.25 s) where the four rows independent at the start are not.

    P3(2) has twelve published decimals.
    """
    result = compare("bricard", "DOP853", ["baumgarte", "projected"], tolerances=1e-9, t_end=2.0,
                     measure="rod2:0,-1,0", repeat=1)  # fmt: skip
    published = [[-0.778135373033, -0.980352683443, -0.197252670617]]
    np.testing.assert_allclose(result.reference.values, published, atol=1e-10)
    for row in result.rows:
        assert row.error < 1e-7
        assert row.trusted
        assert row.seen.rank == (4, 4)
        assert not row.seen.singular


def test_trees_have_one_formulation():
    """The pendulum of A01 at one second, to the published position."""
    result = compare("pendulum", ["DOP853", "RK4"], tolerances=1e-9, t_end=1.0,
                     measure=("bob", (0, 0, -1)), repeat=1)  # fmt: skip
    np.testing.assert_allclose(
        result.reference.values, [[0.986291751131875319, 0.0, -0.165010853125541169]], atol=1e-11
    )
    assert result.formulations == ["ode"]
    assert all(row.seen.gap is None and row.trusted for row in result.rows)


def test_failures_are_kept():
    result = compare("n_four_bar", "DOP853", "baumgarte", tolerances=1e-12, max_steps=300, repeat=1)
    (row,) = result.rows
    assert row.verdict.startswith("failed: too many steps")
    assert row.error is None
    assert row.run.steps > 0
    assert "max_steps" in result.complaints()[0]


def test_a_reference_of_ones_own_decides():
    """Compared with a position that is a radian off, every run is wrong."""
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    wrong = entry.start(model)[0] + 1.0
    result = compare("four_bar", "DOP853", "projected", tolerances=1e-6, t_end=0.2,
                     reference=wrong, repeat=1)  # fmt: skip
    assert result.rows[0].verdict.startswith("wrong although")


def test_observed_drift_is_that_of_the_dae_package():
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    system = as_mechanical(model, *entry.start(model), (0.0, 1.0))
    run = solve(system.formulation("index1"), method="DOPRI5", rtol=1e-5)
    theirs = system.observables(run)
    ours = observe(model, run.t, run.y[:3], run.y[3:])
    assert ours.gap == pytest.approx(theirs.drift.max(), rel=1e-9)
    assert ours.speed == pytest.approx(theirs.velocity_drift.max(), rel=1e-9)
    # Multipliers differ by the rows left out, singular values do not for a planar loop.
    assert ours.closest <= theirs.singularity.min() * (1 + 1e-9)
    assert ours.closest > NEAR_SINGULAR


def test_multiplier_of_a_hanging_loop_is_its_weight():
    """A bar at rest between two hinges: the loop's hinge carries half of the weight."""
    from multibody import ModelBuilder, Revolute, rod

    b = ModelBuilder(gravity=(0.0, -9.81, 0.0), name="bar")
    b.add_body("bar", 0, Revolute(), inertia=rod((0, 0, 0), (2, 0, 0), mass=3.0))
    b.add_loop("end", 0, "bar", Revolute(), (2, 0, 0), (2, 0, 0))
    model = b.build()
    seen = observe(model, np.array([0.0]), np.zeros((1, 1)), np.zeros((1, 1)))
    assert seen.multiplier == pytest.approx(3.0 * 9.81 / 2, rel=1e-12)


def test_energy_is_none_where_something_drives():
    what = find_mechanism("andrews")  # its motor is an element
    states = np.array([0.0]), what.q0[:, None], what.v0[:, None]
    assert observe(what.model, *states).energy is None
    model = mechanisms.pendulum()
    run = solve(as_ivp(model, [1.0], [0.0], (0, 1), tau=[0.1]), method="DOPRI5")
    assert observe(model, run.t, run.y[:1], run.y[1:], [0.1]).energy is None


def test_verdicts():
    good = Observed(1e-12, 1e-12, 1e-9, 1.0, (2, 2), 0.3, 0.1)
    assert verdict("ggl", 5e-8, good, 1.0, 1e-12, 1e-9) == "trust"
    late = verdict("ode", 5e-5, good, 1.0, 1e-12, 1e-9)
    assert late == "right to 5e-05 only, 5e+04 tolerances"
    assert verdict("ode", 5e-5, good, 1.0, 4e-5, 1e-9) == "trust"  # the reference is no better
    assert verdict("ggl", 1e-9, good, 1.0, 1e-12) == "trust"
    assert verdict("ggl", None, good, 1.0, None) == "cannot be judged"
    assert verdict("ggl", 1e-9, good, 1.0, float("nan")) == "cannot be judged"
    assert verdict("ggl", 1e-9, good, 1.0, 0.1) == "cannot be judged"
    assert verdict("ggl", 1e-9, Observed(0.1, 0.1, 1e-9), 1.0, 1e-12) == "drifts"
    assert verdict("index1", 1e-9, Observed(1e-7, 0.1, 1e-9), 1.0, 1e-12) == "drifts slowly"
    assert verdict("ggl", 1e-5, Observed(0.0, 0.0, 0.01), 1.0, 1e-12) == "loses energy"
    assert verdict("ode", 0.1, Observed(energy=1e-9), 1.0, 0.0) == "wrong although energy is kept"
    assert verdict("ode", 0.1, Observed(energy=0.1), 1.0, 0.0) == "wrong"


def test_the_figure_has_a_colour_for_each_formulation_and_names_failures(four_bar):
    from featherstep.mechanism_study.figure import comparison

    ax = comparison(four_bar)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["index1", "baumgarte", "projected", "index3", "DOP853", "RADAU5",
                      "not to trust"]  # fmt: skip
    lines = [
        line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() == "None"
    ]
    assert len({line.get_color() for line in lines if line.get_linestyle() == "-"}) == 4
    assert "index3 by DOP853" in ax.texts[0].get_text()
    assert comparison(four_bar, "seconds").get_xlabel().startswith("time")
    with pytest.raises(ValueError, match="against"):
        comparison(four_bar, "steps")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (dict(mechanism="four_bra"), "four_bar"),
        (dict(mechanism="nowhere.toml"), "nowhere.toml"),
        (dict(mechanism="four_bar", formulations="bamgarte"), "baumgarte"),
        (dict(mechanism="four_bar", formulations="baumgarte:T_stab"), "T_stab=0.01"),
        (dict(mechanism="four_bar", formulations=[]), "no formulation"),
        (dict(mechanism="pendulum", formulations="index3"), "no loops"),
        (dict(mechanism="four_bar", methods="DOPRY5"), "DOPRI5"),
        (dict(mechanism="four_bar", tolerances=1e-3, steps=0.1), "not both"),
        (dict(mechanism="four_bar", tolerances=[1e-3, 1e-4], atol=[1, 2, 3]), "atol"),
        (dict(mechanism="four_bar", tolerances=-1.0), "positive"),
        (dict(mechanism="four_bar", t_end=-1.0), "t_end"),
        (dict(mechanism="four_bar", repeat=0), "repeat"),
        (dict(mechanism="four_bar", measure="rokcer"), "rocker"),
        (dict(mechanism="four_bar", measure="rocker:1,x,2"), "three numbers"),
        (dict(mechanism=mechanisms.pendulum(), parameters={"length": 2.0}), "catalogue"),
    ],
)
def test_bad_input(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        compare(**arguments)


def test_a_bad_option_of_a_formulation_is_told_in_its_row():
    result = compare("four_bar", "DOP853", "baumgarte:T_stab=-1", t_end=0.1, tolerances=1e-4,
                     reference=[0.9, 0.0, 0.0], repeat=1)  # fmt: skip
    assert result.rows[0].verdict == "failed: refused"
    assert "positive" in result.complaints()[0]


def test_references_that_contradict_each_other_judge_nobody(monkeypatch):
    monkeypatch.setattr(
        "featherstep.mechanism_study.compare.reference_motion",
        lambda *a: ReferenceMotion(np.zeros((1, 3)), "a guess", 0.5),
    )
    result = compare("four_bar", "DOP853", "projected", tolerances=1e-6, t_end=0.1,
                     measure="coupler", repeat=1)  # fmt: skip
    assert result.rows[0].verdict == "cannot be judged"
    assert any("contradict" in note for note in result.notes())


def test_measures():
    model = mechanisms.four_bar()
    q = [0.3, 0.2, 1.0]
    tip = Measure.of(("crank", (1.0, 0.0, 0.0)), model).values(0.0, q)
    np.testing.assert_allclose(tip, [[np.cos(0.3), np.sin(0.3), 0.0]])
    np.testing.assert_allclose(Measure.of("coupler", model).values(0.0, q), tip)
    np.testing.assert_allclose(Measure.of("coordinates", model).values(0.0, q)[:, 0], q)
    with pytest.raises(TypeError, match="measure"):
        Measure.of(1.5, model)


def test_a_reference_is_found_where_explicit_methods_give_up():
    """The governor is stiff: DOP853 needs too many steps with the tightest tolerance."""
    result = compare("governor", "RADAU5", tolerances=1e-6, repeat=1)
    assert result.reference.uncertainty < 1e-8
    assert result.rows[0].trusted


def test_cost_at_equal_error():
    result = compare(
        "pendulum", ["DOPRI5", "DOP853"], tolerances=[1e-3, 1e-10], t_end=2.0, repeat=1
    )
    ranked = result.ranking(1e-6)
    assert {row.method for row in ranked} == {"DOPRI5", "DOP853"}
    assert all(row.error <= 1e-6 for row in ranked)
    seconds = [row.run.as_dict()["seconds"] for row in ranked]
    assert seconds == sorted(seconds)
    assert result.ranking(0.0) == []
