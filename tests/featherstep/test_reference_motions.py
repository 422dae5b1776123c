"""Motions with known solutions: closed forms, elliptic functions, quadruple precision.

Everything runs through ``as_ivp``, traced, with tolerances near rounding. Where a number of
digits is asserted it is the number that was published or computed, less what a run of that
length loses to the growth of errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipj, ellipkinc

from integrators import Taylor, solve
from multibody import (
    FD,
    ID,
    as_ivp,
    crba,
    energy,
    gravity_forces,
    mechanisms,
    momentum,
    positions,
    quaternion_drift,
)
from multibody.algebra.orientation import quaternions, rotations
from multibody.mechanisms.robots import PUMA560, PUMA560_POSES

TIGHT = dict(rtol=1e-13, atol=1e-14)


def run(model, q0, v0, times, method="DOP853", **options):
    problem = as_ivp(model, q0, v0, (0.0, max(times)), traced=True)
    solution = solve(problem, method=method, tstops=times, throw=True, **TIGHT, **options)
    # Values at steps, so that the accuracy is that of the method and not of its interpolant.
    keep = [int(np.argmin(np.abs(solution.t - t))) for t in times]
    np.testing.assert_allclose(solution.t[keep], times, rtol=1e-15)
    return solution, keep


# ---------------------------------------------------------------------- pendulums

# t: x, y, vx, vy of A01, by Jacobi's elliptic functions with 40 digits.
A01 = {
    1.0: (0.986291751131875319, -0.165010853125541169, 0.296905515916315822, 1.77464364111265563),
    5.0: (-0.942305435043757335, -0.334754338414000581, 0.857904256885949073, -2.41492865437048862),
    10.0: (-0.27508746257611686, -0.961419205099125064, 4.17559810095172884, -1.19474905456047527),
}


@pytest.mark.parametrize(("method", "tolerance"), [("DOP853", 5e-12), (Taylor(), 2e-13)])
def test_simple_pendulum_a01(method, tolerance):
    """Ten seconds, four periods: local errors of 1e-13 add up in the phase."""
    model = mechanisms.pendulum()
    solution, keep = run(model, [np.pi / 2], [0.0], list(A01), method)
    place = positions(model, solution, "bob", (0, 0, -1))[:, keep]
    angle, speed = solution.y[0, keep], solution.y[1, keep]
    # x = −sin φ, z = −cos φ.
    found = np.array([place[0], place[2], -np.cos(angle) * speed, np.sin(angle) * speed]).T
    np.testing.assert_allclose(found, np.array(list(A01.values())), atol=tolerance, rtol=0)
    assert np.abs(place[1]).max() == 0.0


def test_simple_pendulum_agrees_with_elliptic_functions_at_any_amplitude():
    """sin(φ/2) = k sn(K + ω₀t, k), φ(0) = 2 asin k."""
    length, gravity = 0.7, 3.7
    for start in (0.1, 1.5, 3.1):
        k = np.sin(start / 2)
        model = mechanisms.pendulum(length, mass=2.0, gravity=gravity)
        solution, keep = run(model, [start], [0.0], [3.0])
        quarter = ellipkinc(np.pi / 2, k * k)
        sn = ellipj(quarter + np.sqrt(gravity / length) * 3.0, k * k)[0]
        # 3.1 rad is nearly upright: errors grow with exp(ω₀ t) there.
        assert np.sin(solution.y[0, keep[0]] / 2) == pytest.approx(k * sn, abs=1e-10)


# t: angles from the vertical and their rates; both bars horizontal, at rest. Quadruple precision.
DOUBLE = {
    1.0: (-0.625087699806390629954, -1.03458508568001234061,
          -3.92227957288797661687, -1.30309924869633124332),
    5.0: (-0.627186705066530730138, -1.30131555020981167791,
          2.12540867384291065065, 3.88188872726560743925),
}  # fmt: skip


@pytest.mark.parametrize("method", ["DOP853", Taylor()])
def test_double_pendulum_to_twelve_digits_at_five_seconds(method):
    model, times = mechanisms.double_pendulum(), list(DOUBLE)
    solution, keep = run(model, [np.pi / 2, 0.0], [0.0, 0.0], times, method)
    q1, q2, v1, v2 = solution.y[:, keep]
    absolute = np.array([q1, q1 + q2, v1, v1 + v2]).T  # the model's second angle is relative
    reference = np.array(list(DOUBLE.values()))
    np.testing.assert_allclose(absolute, reference, rtol=1e-12)


# Tip at t = 1 and 2 of N uniform rods (1 m, 1 kg) that start horizontally at rest, along +x.
TIPS = {
    2: ((-1.66211513582, -1.04146663719), (0.31352477645, -1.91474661756)),
    5: ((0.53356947514, -4.91970959757), (-4.59600157661, -0.75607643063)),
    10: ((7.52722901556, -4.90626231972), (-7.60005510842, -5.95615714063)),
}


@pytest.mark.parametrize("n", TIPS)
def test_chain_of_rods(n):
    """Tips to the eleven decimals printed (half a unit of the last, and rounding)."""
    model = mechanisms.n_pendulum(n)
    start = [-np.pi / 2] + [0.0] * (n - 1)
    solution, keep = run(model, start, None, [1.0, 2.0])
    tip = positions(model, solution, n, (0, 0, -1))[:, keep]
    np.testing.assert_allclose(tip[[0, 2]].T, TIPS[n], atol=6e-12, rtol=0)


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_spherical_pendulum_in_conical_motion(radius):
    """A cone of angle θ is swept at rate² = m g L / (I cos θ), I = m L² + 2/5 m r²."""
    length, theta, t = 0.8, 0.6, 3.0
    model = mechanisms.spherical_pendulum(length, mass=1.3, radius=radius)
    rate = np.sqrt(9.81 * length / ((length**2 + 0.4 * radius**2) * np.cos(theta)))
    if radius:  # turned about y; the angular velocity is across the bar, nothing spins about it
        q0 = [np.cos(theta / 2), 0.0, np.sin(theta / 2), 0.0]
        v0 = [-rate * np.sin(theta), 0.0, 0.0]
    else:
        q0, v0 = [0.0, theta], [-rate * np.tan(theta), 0.0]
    solution, keep = run(model, q0, v0, [t])
    place = positions(model, solution, "bob", (0, 0, -length))
    np.testing.assert_allclose(place[2], -length * np.cos(theta), atol=1e-11)
    around = -length * np.sin(theta) * np.exp(1j * rate * t)
    assert abs(complex(*place[:2, keep[0]]) - around) < 1e-10


@pytest.mark.parametrize("links", ["points", "rods"])
def test_cart_pole_oscillates_at_its_small_frequency(links):
    """Linearised: (M + m) ẍ + m l φ̈ = 0, I φ̈ + m l ẍ + m g l φ = 0."""
    M, m, L, amplitude = 2.0, 0.7, 0.9, 1e-4
    l, I = (L, m * L**2) if links == "points" else (L / 2, m * L**2 / 3)
    rate = np.sqrt(m * 9.81 * l / (I - (m * l) ** 2 / (M + m)))
    if links == "points":
        assert rate == pytest.approx(np.sqrt(9.81 / L * (M + m) / M))
    model = mechanisms.cart_pole(M, m, L, links)
    times = [np.pi / rate, 2 * np.pi / rate]
    solution, keep = run(model, [0.0, amplitude], [0.0, 0.0], times)
    # The period depends on the amplitude in second order only.
    np.testing.assert_allclose(solution.y[1, keep], [-amplitude, amplitude], atol=10 * amplitude**3)
    np.testing.assert_allclose(solution.y[3, keep], 0.0, atol=100 * amplitude**3)
    assert np.ptp(solution.y[0]) > amplitude * m * l / (M + m)  # the cart moves as well


# ---------------------------------------------------------------------- bodies that turn

# Angular velocity by Jacobi's elliptic functions with 30 digits: moments 1, 2, 3. The first body
# turns about its middle axis, where errors grow a hundredfold in each of its flips.
TUMBLING = {
    (0.01, 1.0, 0.01): {
        10.0: (-0.874573437891093646, 0.48499618734104845, 0.505001220547913341),
        20.0: (-0.00581383696218770923, -1.00003309910211327, 0.00882799902248333229),
        100.0: (0.00955041319675543005, -1.00000439479422851, 0.00985241750754199875),
    },
    (0.3, 0.4, 1.2): {
        10.0: (0.459386837148631666, 0.197392334842507422, 1.21669446536444575),
        100.0: (-0.208481869925895812, 0.454461560434105207, 1.19351926252962757),
    },
}


@pytest.mark.parametrize("start", TUMBLING)
def test_free_body_follows_the_elliptic_functions(start):
    reference = TUMBLING[start]
    model = mechanisms.free_body()
    solution, keep = run(model, None, [*start, 0.1, 0.2, 0.3], list(reference))
    found = solution.y[7:10, keep].T
    np.testing.assert_allclose(found, list(reference.values()), atol=1e-11, rtol=0)


def test_free_body_keeps_its_momentum_in_space():
    """Angular momentum and the velocity of the centre are constant in base axes."""
    model = mechanisms.free_body()
    v0 = [0.01, 1.0, 0.01, 0.1, 0.2, 0.3]
    solution, _ = run(model, None, v0, [20.0])
    h = np.array([momentum(model, x[:7], x[7:], about="com") for x in solution.y.T])
    np.testing.assert_allclose(
        h, np.tile([0.01, 2.0, 0.03, 0.1, 0.2, 0.3], (len(h), 1)), atol=1e-11
    )
    np.testing.assert_allclose(solution.y[4:7, -1], [2.0, 4.0, 6.0], atol=1e-11)


def test_spinning_top_has_the_closed_solution():
    """Body rates turn with s = (I − J)/I ω_z; the axis precesses about the angular momentum."""
    I, J, t = 0.04, 0.02, 0.9
    model = mechanisms.spinning_top(I, J)
    wx, wy, wz = 0.5, -0.3, 8.0
    solution, keep = run(model, None, [wx, wy, wz, 1.0, 0.0, 5.0], [t])
    x = solution.y[:, keep[0]]
    s = (I - J) / I * wz
    turned = [wx * np.cos(s * t) + wy * np.sin(s * t), -wx * np.sin(s * t) + wy * np.cos(s * t), wz]
    np.testing.assert_allclose(x[7:10], turned, atol=1e-12)
    # R(t) = exp(p t about h) · Rz(s t), with p h = (ω_x, ω_y, ω_z J/I) at the start.
    p = np.array([wx, wy, wz * J / I])
    expected = rotations.exp(p * t) @ rotations.Rz(s * t)
    np.testing.assert_allclose(quaternions.to_matrix(x[:4]), expected, atol=1e-12)
    np.testing.assert_allclose(x[4:7], [t, 0.0, 5.0 * t - 9.81 * t**2 / 2], atol=1e-12)


def top_numbers():
    m, l, I, J = 1.2, 0.25, 0.03, 0.012
    return m, l, I, J, mechanisms.heavy_top(m, l, I, J)


def test_heavy_top_keeps_energy_and_both_momenta():
    _, l, _, _, model = top_numbers()
    q0 = [np.cos(0.4), np.sin(0.4), 0.0, 0.0]
    solution, _ = run(model, q0, [0.5, -1.0, 60.0], [2.0])
    q, v = solution.y[:4], solution.y[4:]
    total = energy(model, solution).total
    assert np.ptp(total) < 1e-10 * np.max(np.abs(total))
    vertical = [momentum(model, a, b)[2] for a, b in zip(q.T, v.T)]
    assert np.ptp(vertical) < 1e-11
    assert np.ptp(v[2]) < 1e-11  # J ω_z, of an axisymmetric body
    assert np.ptp(positions(model, solution, "top", (0, 0, l))[2]) > 1e-3  # it does nutate


@pytest.mark.parametrize("branch", [-1, 1], ids=["slow", "fast"])
def test_heavy_top_precesses_steadily(branch):
    """I₀ cos θ Ω² − J ω_z Ω + m g l = 0, with I₀ = I + m l² about the pivot (two solutions)."""
    m, l, I, J, model = top_numbers()
    theta, wz, t = 0.7, 120.0, 1.5
    a, b, c = (I + m * l**2) * np.cos(theta), -J * wz, m * 9.81 * l
    rate = (-b + branch * np.sqrt(b * b - 4 * a * c)) / (2 * a)
    q0 = [np.cos(theta / 2), np.sin(theta / 2), 0.0, 0.0]
    solution, keep = run(model, q0, [0.0, rate * np.sin(theta), wz], [t])
    axis = positions(model, solution, "top", (0, 0, 1))
    np.testing.assert_allclose(axis[2], np.cos(theta), atol=1e-10)
    expected = -1j * np.sin(theta) * np.exp(1j * rate * t)
    assert abs(complex(*axis[:2, keep[0]]) - expected) < 1e-9


def test_sphere_rolls_with_five_sevenths():
    slope, t = 0.4, 1.7
    model = mechanisms.rolling_sphere(slope, radius=0.07, mass=3.0)
    solution, keep = run(model, None, None, [t])
    x, y, z = positions(model, solution, "sphere")[:, keep[0]]
    assert x == pytest.approx(5 / 7 * 9.81 * np.sin(slope) * t**2 / 2, rel=1e-12)
    assert (y, z) == pytest.approx((0.0, 0.07))
    # The point that touches the plane is at rest: ω = v/r about y.
    assert solution.y[7, keep[0]] == pytest.approx(5 / 7 * 9.81 * np.sin(slope) * t / 0.07)


def test_satellite_keeps_its_momenta_and_its_centre():
    entry = mechanisms.entry("satellite")
    model = entry.model(arms=3)
    q0, v0 = entry.start(model)
    v0[:6] = [0.1, -0.2, 0.3, 0.4, 0.5, 0.6]
    solution, _ = run(model, q0, v0, [5.0])
    h = np.array([momentum(model, x[: model.nq], x[model.nq :]) for x in solution.y.T])
    np.testing.assert_allclose(h, np.tile(h[0], (len(h), 1)), atol=1e-9 * np.abs(h[0]).max())
    total = energy(model, solution).total
    assert np.ptp(total) < 1e-10 * total[0]


# ---------------------------------------------------------------------- PUMA 560

# Corke's toolbox, executed with these parameters; ten decimals.
PUMA_GRAVITY = {
    "nominal": (0, 31.6398803784, 6.035138023, 0, 0.0282528, 0),
    "zero": (0, 37.48366665, 0.24892875, 0, 0, 0),
    "ready": (0, -0.77523525, 0.24892875, 0, 0, 0),
}
PUMA_INERTIA = {  # diagonal of the inertia matrix
    "nominal": (3.6593754122, 4.4137419336, 0.9378415752, 0.1925317061, 0.1713484517, 0.1941045057),
    "zero": (3.9611261043, 4.4566220955, 0.9386527304, 0.1924306261, 0.1713484517, 0.1941045057),
}
# At the nominal pose, all velocities and accelerations 1.
PUMA_FORCES = {
    "viscous": (7.7638582549, 47.2822984751, 10.6543633128,
                0.6029113461, 0.6331034305, 0.4101043275),
    "all friction": (32.4952427549, 60.8669884751, 17.7435949128,
                     1.4545190261, 1.2991104105, 0.7137808875),
}  # fmt: skip
TEN = dict(atol=1e-9, rtol=0)


@pytest.mark.parametrize("pose", PUMA_GRAVITY)
def test_puma_gravity_load(pose):
    found = gravity_forces(mechanisms.puma560(), PUMA560_POSES[pose])
    np.testing.assert_allclose(found, PUMA_GRAVITY[pose], **TEN)


def test_puma_inertia_matrix():
    model = mechanisms.puma560()
    H = {pose: crba(model, PUMA560_POSES[pose]) for pose in PUMA_INERTIA}
    for pose, diagonal in PUMA_INERTIA.items():
        np.testing.assert_allclose(np.diag(H[pose]), diagonal, **TEN)
    places = [
        ("nominal", 0, 1),
        ("nominal", 0, 2),
        ("nominal", 1, 2),
        ("zero", 0, 1),
        ("zero", 0, 2),
    ]
    off = [H[pose][i, j] for pose, i, j in places]
    printed = [-0.404361246, 0.1006136478, 0.350890665, -0.1626648105, -0.1389138105]
    np.testing.assert_allclose(off, printed, **TEN)


def test_puma_inverse_and_forward_dynamics():
    """The toolbox's "no friction" leaves viscous friction in; only Coulomb's is left out."""
    model, q = mechanisms.puma560(), PUMA560_POSES["nominal"]
    viscous = ID(model, q, np.ones(6), np.ones(6))
    np.testing.assert_allclose(viscous, PUMA_FORCES["viscous"], **TEN)
    coulomb = np.abs(PUMA560["gear"]) * np.array(PUMA560["coulomb"])[:, 0]
    np.testing.assert_allclose(viscous + coulomb, PUMA_FORCES["all friction"], **TEN)
    found = FD(model, q, np.zeros(6), np.zeros(6))
    printed = (-0.6619970387, -6.9292906973, -3.771483542, -0.0086542491, -0.0368875517, 1.2611e-6)
    np.testing.assert_allclose(found, printed, **TEN)


# ---------------------------------------------------------------------- quaternions


def test_quaternion_policies_agree_and_drift_as_they_say():
    """Fixed steps with an error that shows: only free quaternions go on leaving the sphere."""
    model = mechanisms.heavy_top()
    q0, v0 = mechanisms.entry("heavy top").start(model)
    drift, ends = {}, {}
    for policy in ("renormalise", "stabilise", "free"):
        problem = as_ivp(model, q0, v0, (0.0, 4.0), quaternions=policy)
        solution = solve(problem, method="RK4", step=2e-3)
        drift[policy] = np.abs(quaternion_drift(model, solution.y)[0])
        ends[policy] = positions(model, solution, "top", (0, 0, 1))[:, 500]
        assert (problem.project is None) == (policy != "renormalise")
    assert drift["renormalise"].max() < 1e-15
    assert drift["free"][2000] / drift["free"][500] == pytest.approx(4.0, rel=0.05)
    # The term in q̇ balances what the method adds; it settles within some tenths of a second.
    assert drift["stabilise"][2000] / drift["stabilise"][500] == pytest.approx(1.0, rel=0.05)
    exact, _ = run(model, q0, v0, [1.0])
    axis = positions(model, exact, "top", (0, 0, 1))[:, -1]
    for policy, end in ends.items():
        # RK4 with 10 steps a radian.
        assert np.linalg.norm(end - axis) < 1e-4, policy
