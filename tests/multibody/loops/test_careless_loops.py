"""Loops used carelessly: hidden singular positions, wrong starts, rows, tolerances, closures."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from integrators import Status, solve
from multibody import (
    CentralInertia,
    Fixed,
    ModelBuilder,
    Planar,
    Prismatic,
    Revolute,
    as_dae,
    as_ivp,
    assemble,
    consistent_velocity,
    mechanisms,
    point_mass,
)
from multibody.runs.dae import independent_rows
from multibody.runs.minimal import as_ivp_minimal
from multibody.runs.singularities.places import HIDDEN, _closing
from multibody.runs.singularities.review import singular_positions, singular_value_ratios

PARALLEL = np.array([1.0, 1.0, -1.0])
LOOSE = {"rtol": 1e-4, "atol": 1e-6}


@pytest.fixture(scope="module")
def parallelogram():
    return mechanisms.n_four_bar(1)


@pytest.fixture(scope="module")
def four_bar():
    entry = mechanisms.entry("four_bar")
    model = entry.model()
    return (model, *entry.start(model))


# ---------------------------------------------------------------------- hidden singular positions


def crank_at_end(model, speed, t_end):
    """Angle of the crank of a parallelogram, by one equation for one angle."""
    minimal = as_ivp_minimal(model, lambda y: [y[0], y[0], -y[0]], [1.3], [speed], (0.0, t_end))
    return solve(minimal, method="DOP853", rtol=1e-11, atol=1e-11).y[0, -1]


@pytest.mark.parametrize(
    ("speed", "form", "method"),
    [
        (-3.0, {"stabilise": "none"}, "DOPRI5"),
        (0.4, {"stabilise": "none"}, "DOPRI5"),
        (0.4, {"stabilise": "none"}, "DOP853"),
        (-1.0, {"stabilise": "none"}, "DOP853"),
        (-1.0, {"stabilise": "none", "rank": "truncate"}, "DOPRI5"),
        (0.4, {"formulation": "index1"}, "DOPRI5"),
    ],
)
def test_a_gap_does_not_hide_a_reversal(parallelogram, speed, form, method):
    """Drift of 1e-4 keeps the constraints from losing rank where the crank turns back."""
    start = (parallelogram, 1.3 * PARALLEL, speed * PARALLEL, (0.0, 4.0))
    run = solve(
        (as_dae if "formulation" in form else as_ivp)(*start, **form), method=method, **LOOSE
    )
    exact = crank_at_end(parallelogram, speed, 4.0)
    if run.success:  # whoever claims it must be there, within what a loose tolerance gives
        assert abs(run.y[0, -1] - exact) < 0.1
        return
    assert run.status == Status.SINGULAR_MATRIX
    assert abs(run.y[0, -1] - exact) > 0.5
    assert "lost rank at t = " in run.message
    assert "it turned back" in run.message or "another branch" in run.message
    assert "would if the loops were not open by " in run.message


def test_a_gap_hides_a_singular_position_as_theory_says():
    """At the bend of f = ε Newton's step leads half the way back and halves the singular value.

    The level parallelogram is lifted off its crossing by s along the eigenvector that separates
    the two branches, parallel motion (1, 1, −1) and folded motion (0, 1, 1), in the metric of the
    inertia. Without a gap nothing changes.
    """
    model = mechanisms.n_four_bar(1)
    H = mb.crba(model, np.zeros(3))
    branches = np.array([PARALLEL, [0.0, 1.0, 1.0]])
    units = [b / np.sqrt(b @ H @ b) for b in branches]
    for s in (1e-3, 1e-2):
        for sign in (1.0, -1.0):  # both bisectors are eigenvectors of A in the metric of H
            bend = s * (units[0] + sign * units[1])
            change, step = _closing(model, 0.0, bend, 2)
            assert change > 0.5 > HIDDEN  # of all of K, not of its last direction only
            before, after = singular_value_ratios(model, [0, 0], np.transpose([bend, bend + step]))
            # f = ε holds up to terms of third order in s.
            assert after[1] == pytest.approx(0.5 * before[1], rel=10 * s)
            np.testing.assert_allclose(step, -0.5 * bend, atol=2 * s**1.5)
    closed, _ = _closing(model, 0.0, 0.05 * PARALLEL, 2)
    assert closed < 1e-12 < HIDDEN


def test_a_regular_run_with_drift_is_not_accused(four_bar):
    """Drift without singular positions is told only where it is large, and is no failure."""
    model, q, v = four_bar
    mild = solve(as_ivp(model, q, v, (0.0, 3.0), stabilise="none"), method="DOPRI5", **LOOSE)
    assert mild.observed.drift.max() > 1e-6
    assert mild.ending == "reached the end of the interval"
    assert singular_positions(model, mild.t, mild.y[:3], mild.y[3:]).passages == ()
    wild = solve(as_ivp(model, q, v, (0.0, 5.0), stabilise="none"), method="Heun", step=0.02)
    assert wild.observed.drift.max() > 0.05
    assert wild.success
    assert "the loops have opened by 0.0" in wild.message


# ---------------------------------------------------------------------- half a turn the wrong way


@pytest.mark.parametrize("joint", [Fixed(), Prismatic("z"), Revolute("z")], ids=lambda j: j.kind)
def test_loops_closed_half_a_turn_off_are_refused(joint):
    """δ vanishes at half a turn, too, where the body would swing freely."""
    b = ModelBuilder(name="swing")
    inertia = CentralInertia(1.0, (0.5, 0, 0), 0.1 * np.eye(3))
    b.add_body("arm", 0, Revolute("x"), inertia=inertia)
    b.add_loop("weld", 0, "arm", joint)
    model = b.build()
    for make in (as_ivp, as_dae):
        with pytest.raises(ValueError, match=r"the loop 'weld' is closed half a turn the wrong"):
            make(model, [np.pi], [0.0], (0.0, 1.0))
    found = assemble(model, [2.5]).q
    assert abs(np.sin(found[0] / 2.0)) < 1e-9
    assert as_ivp(model, found, [0.0], (0.0, 1.0)).n == 2
    with pytest.raises(ValueError, match="has a gap of"):
        as_ivp(model, [2.0], [0.0], (0.0, 1.0))


# ---------------------------------------------------------------------- rank, rows, rank zero


@pytest.mark.parametrize("tolerance", [np.nan, -1.0, 0.0, 1.0, np.inf, "small"])
def test_rank_tolerances_are_checked(four_bar, tolerance):
    model, q, v = four_bar
    with pytest.raises((ValueError, TypeError), match="rank_tolerance: expected"):
        as_ivp(model, q, v, (0.0, 1.0), rank="truncate", rank_tolerance=tolerance)
    with pytest.raises((ValueError, TypeError), match="rank_tolerance: expected"):
        independent_rows(model, q, rank_tolerance=tolerance)


def test_rows_must_span_the_constraints(four_bar):
    model, q, v = four_bar
    with pytest.raises(ValueError, match=r"rows: \[2\] have rank 1 at the start.* rank 2") as told:
        as_dae(model, q, v, (0.0, 1.0), rows=[2])
    rows = independent_rows(model, q).tolist()
    assert str(rows) in str(told.value)
    run = solve(as_dae(model, q, v, (0.0, 0.1), formulation="index1", rows=rows), **LOOSE)
    drift = [np.abs(mb.constraints(model, x[:3]).delta).max() for x in run.y.T]
    np.testing.assert_array_equal(run.observed.drift, drift)


def test_drift_is_that_of_all_loops():
    """Bricard's equations are four combinations of five rows, whose drift says little."""
    entry = mechanisms.entry("bricard")
    model = entry.model()
    problem = as_dae(model, *entry.start(model), (0.0, 0.2), formulation="index2", traced=False)
    run = solve(problem, method="RADAU5", rtol=1e-4, atol=1e-5)
    seen = run.observed
    gaps = [np.abs(mb.constraints(model, x).delta).max() for x in seen.q.T]
    np.testing.assert_array_equal(seen.drift, gaps)
    assert len(seen.gap) == 4


def test_loops_that_impose_nothing():
    """A bead on a line that is kept in a plane which contains the line."""
    b = ModelBuilder(name="bead")
    b.add_body("bead", 0, Prismatic("x"), inertia=point_mass(1.0))
    b.add_loop("plane", 0, "bead", Planar("z"))
    model = b.build()
    run = solve(as_ivp(model, [0.0], [1.0], (0.0, 2.0)), **LOOSE)
    assert run.success
    assert run.y[0, -1] == pytest.approx(2.0)
    assert (run.observed.rank == 0).all()
    assert (run.observed.drift == 0.0).all()
    assert (run.observed.multipliers == 0.0).all()
    assert mb.observe(model, run.t, run.y[:1], run.y[1:]).rank == (0, 0)
    for form in ("index3", "index1", "baumgarte", "minimal"):
        with pytest.raises(ValueError, match=r"\['plane'\] impose nothing that the tree does not"):
            as_dae(model, [0.0], [1.0], (0.0, 2.0), formulation=form)


# ---------------------------------------------------------------------- loop-closure functions


def test_runs_in_minimal_coordinates_are_observed(parallelogram):
    model = parallelogram
    problem = as_ivp_minimal(model, lambda y: [y[0], y[0], -y[0]], [1.3], [-1.0], (0.0, 1.0))
    run = solve(problem, method="DOP853", rtol=1e-9, atol=1e-9)
    assert run.message == "reached the end of the interval"
    seen = run.observed
    assert seen.drift.max() < 1e-14
    assert seen.velocity_drift.max() < 1e-13
    assert seen.energy_error < 1e-7
    np.testing.assert_allclose(seen.q, np.outer(PARALLEL, run.y[0]), atol=1e-15)
    found = mb.constrained_accelerations(model, 1.3 * PARALLEL, -PARALLEL)
    np.testing.assert_allclose(seen.multipliers[:, 0], found.multipliers, atol=1e-10)
    # A tree with gears has nothing to drift.
    arm = mechanisms.n_pendulum(2)
    geared = as_ivp_minimal(arm, lambda y: [y[0], -2.0 * y[0]], [0.3], None, (0.0, 0.5))
    assert solve(geared).observed.multipliers.shape[0] == 0


def test_closure_functions_are_checked_along_the_run():
    """γ is right at the start with two derivatives, and opens the loop later."""
    model = mechanisms.n_four_bar(2)

    def opens(y):
        return [y[0], y[0], y[0], -y[0], -y[0] + (y[0] - 1.2) ** 3]

    run = solve(as_ivp_minimal(model, opens, [1.2], [-1.0], (0.0, 1.0)))
    assert not run.success
    assert run.status == Status.FUNCTION_RAISED
    assert "the loop-closure function" in run.message
    told = float(run.message.split("at t = ")[1].split(",")[0])
    assert 0.0 < told < 1.0


# ---------------------------------------------------------------------- assembly


@pytest.mark.parametrize("tolerance", [-1.0, 0.0, 1e9, np.nan, "tight"])
def test_tolerances_of_assembly_are_checked(four_bar, tolerance):
    with pytest.raises((ValueError, TypeError), match="tolerance: expected"):
        assemble(four_bar[0], tolerance=tolerance)


def test_one_fixed_body_is_a_list_of_one(four_bar):
    model, q, _ = four_bar
    guess = q + np.array([0.1, 0.0, 0.0])
    for one in ("crank", 1, np.int64(1), iter(["crank"])):
        found = assemble(model, guess, fixed=one)
        assert found.q[0] == guess[0]
        assert found.gap < 1e-12
    v = consistent_velocity(model, q, [1.0, 0.0, 0.0], fixed="crank")
    assert v[0] == 1.0
    with pytest.raises(TypeError, match="fixed: expected names or numbers of bodies"):
        assemble(model, guess, fixed=1.5)


@pytest.mark.parametrize(
    ("name", "method"), [("peaucellier", "DOPRI5"), ("spatial_slider_crank", "BS3")]
)
def test_turning_points_with_open_loops_are_no_reversals(name, method):
    """Never near a singular position, but at rest for a moment, and with loops a little open."""
    entry = mechanisms.entry(name)
    model = entry.model()
    problem = as_ivp(model, *entry.start(model), (0.0, entry.t_end), stabilise="none")
    run = solve(problem, method=method, rtol=1e-4, atol=1e-4)
    assert run.success, run.message
    assert "opened" in run.message


def test_a_run_that_explodes_is_not_said_to_pass_smoothly():
    entry = mechanisms.entry("spatial_slider_crank")
    model = entry.model()
    problem = as_ivp(model, *entry.start(model), (0.0, 5.0), stabilise="projection")
    run = solve(problem, method="RK4", step=0.05)  # far too long
    assert run.status == Status.FUNCTION_RAISED
    assert "cannot be closed at t = 0.3" in run.message
    assert "smoothly" not in run.message


def test_a_short_step_that_was_asked_for_is_no_collapse():
    entry = mechanisms.entry("n_four_bar")
    model = entry.model()
    problem = as_ivp(model, *entry.start(model), (0.0, 2.0), stabilise="projection")
    stops = [0.7145, 0.7145 + 1e-6]
    run = solve(problem, method="DOPRI5", rtol=1e-6, atol=1e-6, tstops=stops)
    assert run.success, run.message
