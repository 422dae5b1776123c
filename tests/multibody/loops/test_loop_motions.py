"""Motions of closed loops with known solutions: benchmarks A02 to A05 and their relatives.

Positions are compared, never energy alone: on the double four-bar a run can conserve energy and
closure and still be in the wrong place.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import multibody as mb
from integrators import Event, solve
from multibody import as_ivp, constraints, mechanisms
from multibody.runs.minimal import as_ivp_minimal

TIGHT = dict(method="DOP853", rtol=1e-12, atol=1e-13)


def start(name):
    entry = mechanisms.entry(name)
    model = entry.model()
    return (model, *entry.start(model))


def at(solution, times):
    """States at times where the run stopped, so that no interpolant is involved."""
    keep = [int(np.argmin(np.abs(solution.t - t))) for t in times]
    np.testing.assert_allclose(solution.t[keep], times, rtol=1e-14)
    return solution.y[:, keep]


# ---------------------------------------------------------------------- A02

# Tip of the first vertical of the double four-bar at 10 s, by elliptic functions.
A02 = np.array([0.3284581115408154, 0.944518538178601])


def tip_error(solution):
    angle = solution.y[0, -1]
    return float(np.abs([np.cos(angle), np.sin(angle)] - A02).max())


@pytest.mark.parametrize(
    ("step", "options", "tolerance"),
    [
        (1e-2, {}, 1e-6),
        (1e-2, {"stabilise": "projection"}, 1e-6),
        (1e-2, {"rank": "truncate"}, 1e-6),
        (1e-3, {}, 1e-10),
        (1e-3, {"T_stab": 0.05}, 1e-10),
        (1e-3, {"T_stab": 0.01}, 1e-10),
        # Passes within 2e-5 of singular positions, where less regular solutions were 3e-6 off.
        (3e-4, {"T_stab": 0.01}, 1e-9),
    ],
)
def test_double_four_bar_a02(step, options, tolerance):
    """Ten singular positions in ten seconds, with fixed steps that do not look at them closely.

    What rounding does at a passage depends on how near a step ends to it, and is magnified there:
    starts that differ by rounding scatter over two powers of ten with the shorter steps. So the
    middle one of several is judged.
    """
    model, q, v = start("n_four_bar")
    errors, changes = [], []
    for k in range(-3, 4) if step < 5e-3 else [0]:
        problem = as_ivp(model, q * (1.0 + 4e-16 * k), v, (0.0, 10.0), **options)
        solution = solve(problem, method="RK4", step=step)
        assert solution.success, solution.message
        errors.append(tip_error(solution))
        total = [mb.energy(model, x[:5], x[5:]).total for x in solution.y.T[::100]]
        assert total[0] == pytest.approx(35.835, abs=1e-12)
        changes.append(np.ptp(total))
    assert np.median(errors) < tolerance
    assert np.median(changes) < 1e-4 if step > 5e-3 else np.median(changes) < 1e-9


def parallelogram(n, t):
    """Tip of the first vertical of n four-bars at time t: a pendulum that turns over."""
    inertia, moment = (n + 1) / 3 + n, ((n + 1) / 2 + n) * 9.81
    stiffness = 4.0 * moment / inertia
    m, rate = stiffness / (1.0 + stiffness), np.sqrt(1.0 + stiffness) / 2.0
    sn, cn, _, _ = ellipj(rate * t - ellipk(m), m)
    return np.array([-2.0 * sn * cn, sn * sn - cn * cn])


def test_forty_four_bars_a02():
    """81 links and 80 constraints that act; ten singular positions with 40 more freedoms each."""
    np.testing.assert_allclose(parallelogram(2, 10.0), A02, atol=1e-13)
    model = mechanisms.n_four_bar(40)
    q, v = mechanisms.entry("n_four_bar").start(model)
    solution = solve(as_ivp(model, q, v, (0.0, 10.0)), method="RK4", step=1e-2)
    assert solution.success, solution.message
    angle = solution.y[0, -1]
    tip = [np.cos(angle), np.sin(angle)]
    np.testing.assert_allclose(tip, parallelogram(40, 10.0), rtol=0.0, atol=1e-6)
    assert "passed singular positions of the loops at t = 0.72" in solution.message


def test_double_four_bar_in_minimal_coordinates():
    """Without constraints nothing is singular."""
    model, q, v = start("n_four_bar")
    problem = as_ivp_minimal(model, lambda y: [y[0]] * 3 + [-y[0]] * 2, q[:1], v[:1], (0, 10))
    assert tip_error(solve(problem, **TIGHT)) < 1e-10


# ---------------------------------------------------------------------- A03

# Angles at 0.03 s, quadruple precision; β, Θ, γ, Φ, δ, Ω, ε.
A03 = [
    15.8107711951537070971,
    -15.7563710584118394697,
    0.0408222401196458048583,
    -0.534730116342079593770,
    0.524409965879954069372,
    0.534730116342079593770,
    1.04808074104193787307,
]


@pytest.mark.parametrize(
    "options",
    [{}, {"T_stab": 1e-3}, {"stabilise": "projection"}, {"stabilise": "none"}],
    ids=["baumgarte", "fast", "projection", "none"],
)
def test_andrews_a03(options):
    model, q, v = start("andrews")
    solution = solve(as_ivp(model, q, v, (0.0, 0.03), **options), **TIGHT)
    order = [model.number(f"K{k}") - 1 for k in range(1, 8)]
    end = solution.y[order, -1]
    assert abs(end[0] / A03[0] - 1.0) < 1e-10  # ten digits of β
    np.testing.assert_allclose(end, A03, atol=1e-9)


# ---------------------------------------------------------------------- A04

# t: P3 of Bricard's linkage; rods with a square section of 0.1.
A04 = {
    0.5: (0.774717808039, -0.979815047656, -0.199906158953),
    1.0: (0.274481319265, -0.886707938735, -0.462330002687),
    2.0: (-0.778135373033, -0.980352683443, -0.197252670617),
    4.0: (0.283551079082, -0.888022814123, -0.459799392776),
    5.0: (0.999932742302, -0.999999997738, -0.000067255436),
}
HALF_PERIOD = 2.49585575684415959


@pytest.mark.parametrize("options", [{}, {"stabilise": "projection"}, {"stabilise": "none"}])
def test_bricard_a04(options):
    model, q, v = start("bricard")
    problem = as_ivp(model, q, v, (0.0, 5.0), **options)
    # The linkage comes to rest where it started, and where it is turned by half a turn.
    rest = Event(lambda t, x: x[5], direction=np.sign(-problem.f(0.0, problem.y0)[5]))
    solution = solve(problem, tstops=list(A04), events=[rest], **TIGHT)
    states = at(solution, list(A04))
    found = [mb.point_position(model, x[:5], "rod2", (0, -1, 0)) for x in states.T]
    np.testing.assert_allclose(found, list(A04.values()), atol=1e-8)
    half = min(solution.t_events[0], key=lambda t: abs(t - HALF_PERIOD))
    assert half == pytest.approx(HALF_PERIOD, abs=1e-9)
    assert mb.mobility(model, states[:5, 1]).rank == 4


# ---------------------------------------------------------------------- slider-cranks


def test_planar_slider_crank():
    """Crank and slider after 1 s and 5 s, from the equation of the crank's angle alone."""
    model, q, v = start("slider_crank")
    assert mb.energy(model, q, v).total == pytest.approx(0.23552207375, abs=1e-14)
    one, five = at(solve(as_ivp(model, q, v, (0.0, 5.0)), tstops=[1.0, 5.0], **TIGHT), [1, 5]).T
    np.testing.assert_allclose(one[[0, 2]], [-1.56311361576, 0.260962572207], atol=1e-10)
    np.testing.assert_allclose(
        five[[0, 3, 2]], [-1.43175263493, -12.08746002633, 0.281427477689], atol=1e-9
    )


def slider_closure(y):
    """Spatial slider-crank by its crank angle."""
    tip = [0.0, 0.1 - 0.08 * np.sin(y[0]), 0.12 + 0.08 * np.cos(y[0])]
    slider = np.sqrt(0.09 - tip[1] ** 2 - tip[2] ** 2)
    return [y[0], slider, np.arctan2(-tip[1], tip[2]), np.arcsin(-slider / 0.3)]


def test_spatial_slider_crank_has_one_answer():
    """Baumgarte, projection, none and minimal coordinates agree to eight digits after 1 s."""
    model, q, v = start("spatial_slider_crank")
    ends = [
        solve(as_ivp(model, q, v, (0.0, 1.0), **options), **TIGHT).y[:, -1]
        for options in ({}, {"T_stab": 0.01}, {"stabilise": "projection"}, {"stabilise": "none"})
    ]
    minimal = solve(as_ivp_minimal(model, slider_closure, q[:1], v[:1], (0.0, 1.0)), **TIGHT)
    for end in ends:
        np.testing.assert_allclose(end, ends[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(end[[0, 4]], minimal.y[:, -1], rtol=1e-8)
        before, after = (mb.energy(model, x[:4], x[4:]).total for x in (np.append(q, v), end))
        assert after == pytest.approx(before, abs=1e-10)


# ---------------------------------------------------------------------- A05 and drift


def test_governor_has_one_answer():
    """Stiff (springs of 8e5 N/m with dampers): an implicit and an explicit method agree."""
    model, q, v = start("governor")
    problem = as_ivp(model, q, v, (0.0, 0.1))
    stiff = solve(problem, method="RADAU5", rtol=1e-11, atol=1e-13).y[:, -1]
    plain = solve(problem, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(stiff[:4], plain[:4], rtol=1e-8)
    assert plain[2] == pytest.approx(plain[3], abs=1e-12)  # symmetric arms
    height = plain[1]
    assert height != pytest.approx(0.5, abs=1e-4)


def test_stabilisation_stops_the_drift():
    """Without it the gap of a four-bar grows with every step; with it, it stays."""
    model, q, v = start("four_bar")
    drift = {}
    for kind in ("none", "baumgarte", "projection"):
        s = solve(as_ivp(model, q, v, (0.0, 10.0), stabilise=kind), method="RK4", step=0.02)
        drift[kind] = np.abs(constraints(model, s.y[:3, -1]).delta).max()
    assert drift["none"] > 1e-4
    assert drift["baumgarte"] < 0.1 * drift["none"]
    assert drift["projection"] < 1e-13
