"""Singular positions: found where they are, passed or reported, never turned back in silence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipkinc

import multibody as mb
from integrators import IVP, Event, IntegrationError, Status, solve
from multibody import as_ivp, constrained_accelerations, mechanisms
from multibody.dynamics.loops.closed_loop import independence
from multibody.runs.singularities.review import singular_positions

# Tip of the first vertical of the double four-bar at 10 s, by elliptic functions.
A02 = np.array([0.3284581115408154, 0.944518538178601])


def start(name, **parameters):
    entry = mechanisms.entry(name)
    model = entry.model(**parameters)
    return (model, *entry.start(model))


def level_times(t_end):
    """When the rods of the double four-bar lie in one line: θ = π/2, 3π/2, … from upright."""
    stiffness = 4.0 * 3.5 * 9.81 / 3.0
    m, rate = stiffness / (1.0 + stiffness), np.sqrt(1.0 + stiffness) / 2.0
    angles = np.arange(0.5, 20.0) * np.pi
    times = (ellipkinc((angles - np.pi) / 2.0, m) + ellipkinc(np.pi / 2.0, m)) / rate
    return times[times < t_end]


def error(solution):
    angle = solution.y[0, -1]
    return float(np.abs([np.cos(angle), np.sin(angle)] - A02).max())


@pytest.fixture(scope="module")
def double():
    return start("n_four_bar")


def test_independence_agrees_with_singular_values():
    """Pivots bound the smallest singular value from above, within the square root of their number
    times what pivoting may lose; both vanish together."""
    rng = np.random.default_rng(1)
    for name in ("four_bar", "n_four_bar", "free_stewart_platform", "bricard"):
        model, q, _ = start(name)
        places = [q, model.integrate(q, 0.05 * rng.standard_normal(model.nv))]
        found = independence(model, [0.0, 0.0], np.transpose(places))
        for place, ratios in zip(places, found):
            sizes = mb.mobility(model, place).singular_values
            rank = int(np.sum(sizes > 1e-9 * sizes[0]))
            assert np.sum(ratios > 1e-9) == rank
            exact = sizes[rank - 1] / sizes[0]
            assert exact <= ratios[rank - 1] * (1 + 1e-9) < 10.0 * exact
    model = mechanisms.n_four_bar(3)
    level = independence(model, [0.0], np.zeros((7, 1)))
    assert np.sum(level > 1e-9) == 3  # three of six are left


@pytest.mark.parametrize("step", [1e-3, 1e-2, 3e-2])
def test_passages_are_found_at_their_times(double, step):
    model, q, v = double
    run = solve(as_ivp(model, q, v, (0.0, 5.0)), method="RK4", step=step)
    for exact, tolerance in ((False, 2 * step), (True, 2e-4)):
        found = singular_positions(model, run.t, run.y[:5], run.y[5:], exact=exact)
        assert found.rank == 4
        np.testing.assert_allclose([p.t for p in found.passages], level_times(5.0), atol=tolerance)


@pytest.mark.parametrize("method", ["DOP853", "DOPRI5", "RadauIIA5"])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_adaptive_methods_get_there_or_say_why(double, method, rtol):
    """A run that is called a success is right within what its tolerance promises."""
    model, q, v = double
    problem = as_ivp(model, q, v, (0.0, 10.0))
    options = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol}
    for t_eval in (None, [0.0, 5.0, 10.0]):  # steps are reviewed whatever is returned
        solution = solve(problem, t_eval=t_eval, **options)
        if solution.success:
            assert error(solution) < 2e3 * rtol
            assert "passed singular positions of the loops at t = 0.71" in solution.message
            continue
        assert solution.status == Status.SINGULAR_MATRIX
        assert "lost rank at t = " in solution.message
        told = float(solution.message.split("lost rank at t = ")[1].split()[0])
        assert 0.7 < told < 10.0
        with pytest.raises(IntegrationError, match="singular position"):
            solution.raise_for_status()


def test_a_reversal_is_told(double):
    """A run that turns back at a singular position keeps energy and closed loops."""
    model, q, v = double
    problem = as_ivp(model, q, v, (0.0, 2.0))
    right = solve(problem, method="RK4", step=1e-3)
    assert problem.review(problem, right.t, right.y, None)[0] is None
    turn = int(np.searchsorted(right.t, level_times(2.0)[0]))
    y = right.y.copy()
    back = 2 * turn - np.arange(turn, 2 * turn)  # the same way back
    y[:5, turn : 2 * turn] = right.y[:5, back]
    y[5:, turn : 2 * turn] = -right.y[5:, back]
    t, y = right.t[: 2 * turn], y[:, : 2 * turn]
    energies = [mb.energy(model, x[:5], x[5:]).total for x in y.T]
    assert np.ptp(energies) < 1e-6
    status, text = problem.review(problem, t, y, None)
    assert status == Status.SINGULAR_MATRIX
    assert f"at t = {level_times(2.0)[0]:.2f}" in text
    assert "it turned back" in text


def test_every_fault_at_a_passage_is_told_by_its_name(double):
    """Runs that were changed after (or at) a passage: each change has its own words."""
    model, q, v = double
    problem = as_ivp(model, q, v, (0.0, 1.2))
    right = solve(problem, method="RK4", step=1e-3, dense_output=True)
    passage = level_times(1.2)[0]
    after = right.t > passage

    def told(t, y, rtol=None):
        status, text = problem.review(problem, t, y, rtol) or (None, "")
        faults = {
            "energy": "its energy changed by" in text,
            "branch": "it left on another branch" in text,
            "back": "it turned back" in text,
            "steps": "its steps shrank to" in text,
        }
        assert (status == Status.SINGULAR_MATRIX) == any(faults.values())
        return {name for name, found in faults.items() if found}

    assert told(right.t, right.y) == set()
    faster, slightly = right.y.copy(), right.y.copy()
    faster[5:, after] *= 1.02  # by less than velocities may change, but 4 % of the energy
    assert told(right.t, faster) == {"energy"}
    slightly[5:, after] *= 1.001  # 0.2 %: of a fixed step that may be, of a tight tolerance not
    assert told(right.t, slightly) == set()
    assert told(right.t, slightly, rtol=1e-8) == {"energy"}
    other = right.y.copy()
    other[5:, after] *= 1.5
    assert told(right.t, other) == {"energy", "branch"}
    back = right.y.copy()
    back[5:, after] *= -1.0
    assert told(right.t, back) == {"back"}
    close = passage + 1e-9 * np.arange(-3, 4)
    t = np.sort(np.concatenate([right.t, close]))
    assert told(t, right.sol(t), rtol=1e-6) == {"steps"}
    assert told(t, right.sol(t)) == set()  # steps that are fixed do not shrink
    one = np.sort(np.append(right.t, right.t[right.t < passage][-1] + 1e-9))
    assert told(one, right.sol(one), rtol=1e-6) == set()  # a single one may be wanted
    two = np.sort(np.concatenate([right.t, close[3:6]]))
    assert told(two, right.sol(two), rtol=1e-6) == {"steps"}
    # A run that ends, or starts, at the passage has nothing to compare.
    for part in (right.t <= passage + 2e-3, right.t >= passage - 2e-3):
        assert told(right.t[part], back[:, part]) == set()


@pytest.mark.parametrize(
    "name",
    ["four_bar", "bricard", "slider_crank", "five_bar", "peaucellier", "spatial_slider_crank"],
)
def test_regular_motions_are_not_accused(name):
    """Bricard's linkage is overconstrained everywhere, which is not a singular position."""
    model, q, v = start(name)
    t_end = mechanisms.entry(name).t_end
    for options in ({"method": "DOP853", "rtol": 1e-6}, {"method": "RK4", "step": 2e-3}):
        solution = solve(as_ivp(model, q, v, (0.0, min(t_end, 3.0))), **options)
        assert solution.status == Status.FINISHED
        assert solution.ending == "reached the end of the interval"


def test_simulate_tells_too(double):
    model, q, v = double
    wrong = mb.simulate(model, q, v, 10.0, rtol=1e-10, atol=1e-12)
    right = mb.simulate(model, q, v, 10.0, method="RK4", step=1e-2, fps=None)
    assert not wrong.success
    assert "singular position" in wrong.message
    assert right.success
    assert error(right) < 1e-6
    # Whether a step happens to end on a singular position is a matter of rounding; these do not.
    kept = mb.simulate(model, q, v, 10.0, stabilise="projection", fps=None, rtol=1e-9)
    assert kept.success
    assert error(kept) < 1e-5


def test_delta_robot_falls_through_its_stretched_position():
    """Without motors arms and rods stretch out, which is regular; later all rods are parallel."""
    model, q, v = start("delta_robot")
    solution = solve(as_ivp(model, q, v, (0.0, 0.3)), method="DOP853", rtol=1e-9, atol=1e-11)
    assert solution.success, solution.message
    arm = model.q_index[model.number("arm1") - 1]
    assert solution.y[arm, -1][0] > 1.9  # beyond 1.738, where it is stretched
    total = [mb.energy(model, x[: model.nq], x[model.nq :]).total for x in solution.y.T]
    assert np.ptp(total) < 1e-6
    parallel = mechanisms.parallel.delta_position(model, 2.0 * np.pi / 3.0)
    assert mb.mobility(model, parallel).mobility == 4
    longer = solve(as_ivp(model, q, v, (0.0, 0.4)), method="DOP853", rtol=1e-9)
    assert "singular position" in longer.message  # passed, or not
    assert "at t = 0.308" in longer.message


def test_backwards_and_with_resets(double):
    """The same positions on the way back; an event that changes nothing changes nothing."""
    model, q, v = double
    there = solve(as_ivp(model, q, v, (0.0, 2.0)), method="RK4", step=1e-2)
    back = as_ivp(model, there.y[:5, -1], there.y[5:, -1], (2.0, 0.0))
    # Baumgarte's terms push loops apart when time runs backwards.
    again = solve(back.with_(f=as_ivp(model, q, v, stabilise="none").f), method="RK4", step=1e-2)
    assert again.success, again.message
    np.testing.assert_allclose(again.y[:, -1], np.append(q, v), atol=1e-5)
    assert "positions of the loops at t = 1.2" in again.message
    nothing = Event(lambda t, x: t - 0.3, reset=lambda t, x: x)
    stopped = solve(as_ivp(model, q, v, (0.0, 2.0)), method="DOP853", rtol=1e-8, events=[nothing])
    assert np.sum(np.diff(stopped.t) == 0.0) == 1
    assert "singular position" in stopped.message


# ---------------------------------------------------------------------- the mechanism of reviews


def test_reviews_of_any_problem():
    seen = []

    def review(problem, t, y, rtol):
        seen.append((t.copy(), y.copy(), rtol))
        return Status.SINGULAR_MATRIX if y[0, -1] < 0.2 else None, f"ended at {y[0, -1]:.3f}"

    problem = IVP(lambda t, y: -y, [1.0], (0.0, 1.0), review=review)
    first = solve(problem, method="RK4", step=0.25)
    assert first.success
    assert first.message == "reached the end of the interval; ended at 0.368"
    second = solve(problem, t_span=(0.0, 2.0), t_eval=[0.5, 2.0], rtol=1e-7)
    assert second.status == Status.SINGULAR_MATRIX
    assert len(second.t) == 2
    times, states, rtol = seen[1]
    assert (len(times), rtol) == (second.nsteps + 1, 1e-7)
    np.testing.assert_allclose(states[0], np.exp(-times), rtol=1e-5)
    assert seen[0][2] is None
    quiet = solve(problem.with_(review=lambda problem, t, y, rtol: None), rtol=1e-7)
    assert quiet.message == "reached the end of the interval"


def test_a_review_that_raises_or_is_none():
    problem = IVP(lambda t, y: -y, [1.0], (0.0, 1.0), review=lambda *run: 1 / 0)
    solution = solve(problem)
    assert solution.status == Status.FUNCTION_RAISED
    assert isinstance(solution.exception, ZeroDivisionError)
    assert solution.t[-1] == 1.0
    with pytest.raises(TypeError, match="review must be a function"):
        IVP(lambda t, y: -y, [1.0], (0.0, 1.0), review="all of it")


def test_every_solution_shows_drift_energy_multipliers_and_rank():
    """Along the run, whatever the form: as_ivp, as_dae, and trees without constraints."""
    from multibody import as_dae

    entry = mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-9}
    ode = solve(as_ivp(model, q, v, (0.0, 1.0)), **options)
    dae = solve(as_dae(model, q, v, (0.0, 1.0), formulation="index1"), **options)
    for run in (ode, dae):
        seen = run.observed
        assert seen is run.observed  # computed once
        assert seen.drift.shape == seen.rank.shape == run.t.shape
        assert seen.drift.max() < 1e-7
        assert (seen.rank == 2).all()
        assert seen.energy_error < 1e-6
    # The multipliers are those that the accelerations at the start need.
    found = constrained_accelerations(model, q, v)
    np.testing.assert_allclose(ode.observed.multipliers[:, 0], found.multipliers, atol=1e-12)
    tree = solve(as_ivp(mechanisms.pendulum(), [1.0], [0.0], (0.0, 1.0)), **options)
    assert tree.observed.multipliers.shape == (0, len(tree.t))
    assert tree.observed.energy_error < 1e-7
    empty = solve(as_ivp(model, q, v, (0.0, 1.0)), t_eval=[], **options)
    assert empty.observed.multipliers.shape == (5, 0)
    with pytest.raises(TypeError, match=r"observe must be a function observe\(solution\)"):
        IVP(lambda t, y: -y, [1.0], (0.0, 1.0), observe="energy")
    plain = solve(lambda t, y: -y, (0.0, 1.0), [1.0])
    with pytest.raises(ValueError, match="nothing to observe"):
        plain.observed  # noqa: B018


@pytest.mark.parametrize(
    ("formulation", "method", "options"),
    [
        ("baumgarte", "RK4", {"step": 0.01}),
        ("baumgarte", "DOP853", {"rtol": 1e-10, "atol": 1e-10}),
        ("projected", "DOP853", {"rtol": 1e-8, "atol": 1e-8}),
        ("minimal", "DOP853", {"rtol": 1e-8, "atol": 1e-8}),
        ("index3", "RADAU5", {"rtol": 1e-6, "atol": 1e-8}),
        ("augmented", "RK4", {"step": 0.01}),
    ],
)
def test_runs_of_every_form_are_reviewed(formulation, method, options):
    """Whoever claims success through ten singular positions is right, or tells how wrong it is.

    At a singular position a gap is of the second order in what opens it: where only g = 0 is
    asked for, what the tolerance leaves of it lets positions be wrong by the root of that, in
    another way after each change of the last digits (index 3: 2e-5 to 2e-4 with tolerances
    about 1e-6). Such a run is ahead or behind, and says so; rods are 1 m long.
    """
    entry = mechanisms.entry("n_four_bar")
    model = entry.model()
    problem = mb.as_dae(model, *entry.start(model), (0.0, 10.0), formulation=formulation)
    run = solve(problem, method=method, **options)
    error = abs(np.cos(run.y[0, -1]) - 0.3284581115408154)
    if run.success:
        assert "passed singular positions" in run.message
        told = {watch.name: watch for watch in run.quality.watches}
        if run.quality.ok:
            assert error < 2e-5
        else:
            assert error < told["the place along the path"].drift < 1e-3
            assert "the place along the path drifted" in run.message
    else:
        assert "lost rank at t = " in run.message
