"""Mechanical systems with independent solutions, for the tests of ``integrators.dae``."""

from __future__ import annotations

from functools import cache

import numpy as np

from integrators import groups, solve
from integrators.dae import Mechanical
from integrators.problems.andrews import (
    _force,
    andrews,
    constraint_jacobian,
    constraints,
    mass_matrix,
)
from integrators.problems.constrained import pendulum_dae

GRAVITY = 9.81


def pendulum(trace=True, t_end=2.0, rows=(1.0,), **changes):
    """Unit pendulum in Cartesian coordinates; each row repeats the constraint with a factor."""
    factors = np.array(rows)
    arguments = dict(
        q0=[1.0, 0.0],
        v0=[0.0, 0.0],
        t_span=(0.0, t_end),
        trace=trace,
        invariants={"energy": lambda t, q, v: (v[0] ** 2 + v[1] ** 2) / 2 + GRAVITY * q[1]},
        name="pendulum",
    )
    return Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -GRAVITY]),
        lambda t, q: factors * ((q[0] ** 2 + q[1] ** 2 - 1) / 2),
        **{**arguments, **changes},
    )


def pendulum_exact(t):
    """x, y, their rates, and λ of g = (x² + y² − 1)/2 (with our sign)."""
    state = pendulum_dae().exact(t)
    return np.array([*state[:4], -state[4]])


ENERGY = andrews().invariants["energy"]


def squeezer(trace=True, derive=False):
    """Andrews' squeezer from the published M, f, g and G; γ is derived from g."""
    start = andrews().y0
    return Mechanical(
        lambda t, q: mass_matrix(q),
        lambda t, q, v: _force(q, v),
        lambda t, q: constraints(q),
        None if derive else lambda t, q: constraint_jacobian(q),
        q0=start[:7],
        v0=start[7:14],
        t_span=(0.0, 0.03),
        trace=trace,
        invariants={"energy": lambda t, q, v: ENERGY(t, np.concatenate([q, v]))},
        name="squeezer",
    )


AMPLITUDE, FREQUENCY = 0.3, 4.0


def driven(trace=True, t_end=3.0):
    """Pendulum whose pivot moves along x as a sin ωt: a constraint that depends on time."""

    def g(t, q):
        x = q[0] - AMPLITUDE * np.sin(FREQUENCY * t)
        return np.array([(x * x + q[1] * q[1] - 1) / 2])

    return Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -GRAVITY]),
        g,
        q0=[np.sin(0.5), -np.cos(0.5)],
        v0=[AMPLITUDE * FREQUENCY, 0.0],
        t_span=(0.0, t_end),
        trace=trace,
        name="driven",
    )


@cache
def driven_reference(t_end=3.0):
    """End state by the angle: θ'' = −(g sin θ + X'' cos θ)."""

    def f(t, y):
        pivot = -AMPLITUDE * FREQUENCY**2 * np.sin(FREQUENCY * t)
        return [y[1], -GRAVITY * np.sin(y[0]) - pivot * np.cos(y[0])]

    s = solve(f, (0.0, t_end), [0.5, 0.0], method="DOP853", rtol=1e-13, atol=1e-13)
    angle, rate = s.y[:, -1]
    x, speed = AMPLITUDE * np.sin(FREQUENCY * t_end), AMPLITUDE * FREQUENCY
    return np.array(
        [
            x + np.sin(angle),
            -np.cos(angle),
            speed * np.cos(FREQUENCY * t_end) + rate * np.cos(angle),
            rate * np.sin(angle),
        ]
    )


ARM = np.array([0.1, -0.2, 0.5])  # from the pivot to the centre of mass, in the body
INERTIA = np.diag([0.3, 0.4, 0.2])  # about the centre of mass
MASS = 2.0
ROTATIONS = groups.rotations_by_quaternion()


def rotation_matrix(q):
    w, x, y, z = q[0], q[1], q[2], q[3]
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_rate(q, w):
    return 0.5 * np.array(
        [
            -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
            q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
            q[0] * w[1] + q[3] * w[0] - q[1] * w[2],
            q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
        ]
    )


def top(trace=True, t_end=1.0):
    """A free body (position, quaternion; velocity, body rates) held at one of its points."""
    spin = np.array([0.4, -0.3, 5.0])
    identity = np.array([1.0, 0.0, 0.0, 0.0])

    def force(t, q, v):
        w = v[3:]
        return np.concatenate([np.array([0.0, 0.0, -MASS * GRAVITY]), -np.cross(w, INERTIA @ w)])

    def retract(q, u):
        return np.concatenate([q[:3] + u[:3], ROTATIONS.retract(q[3:], u[3:])])

    def normalise(q):
        return np.concatenate([q[:3], q[3:] / np.sqrt(np.sum(q[3:] * q[3:]))])

    return Mechanical(
        np.diag([MASS] * 3 + [0.0] * 3) + np.pad(INERTIA, ((3, 0), (3, 0))),
        force,
        lambda t, q: q[:3] - rotation_matrix(q[3:]) @ ARM,
        q0=np.concatenate([ARM, identity]),
        v0=np.concatenate([np.cross(spin, ARM), spin]),
        t_span=(0.0, t_end),
        rate=lambda t, q, v: np.concatenate([v[:3], quaternion_rate(q[3:], v[3:])]),
        retract=retract,
        normalise=normalise,
        trace=trace,
        name="top",
    )


@cache
def top_reference(t_end=1.0):
    """Centre of mass at the end, from Euler's equations about the fixed point."""
    about = INERTIA + MASS * (ARM @ ARM * np.eye(3) - np.outer(ARM, ARM))

    def f(t, y):
        w = y[4:]
        weight = rotation_matrix(y[:4]).T @ np.array([0.0, 0.0, -MASS * GRAVITY])
        slope = np.linalg.solve(about, np.cross(ARM, weight) - np.cross(w, about @ w))
        return np.concatenate([quaternion_rate(y[:4], w), slope])

    y0 = np.array([1.0, 0.0, 0.0, 0.0, 0.4, -0.3, 5.0])
    y = solve(f, (0.0, t_end), y0, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return np.concatenate([rotation_matrix(y[:4] / np.linalg.norm(y[:4])) @ ARM, y[4:]])


def four_bars(trace=True, t_end=10.0):
    """A02 with N = 2: five unit links, singular whenever they lie flat; see the reference below.

    Angles θ₀, θ₁, θ₂ of the uprights from the vertical, φ₀, φ₁ of the bars on top of them.
    """

    def mass(t, q):
        M = np.diag([4 / 3, 4 / 3, 1 / 3, 1 / 3, 1 / 3]) + 0 * q[0]
        for j in range(2):
            M[j, 3 + j] = M[3 + j, j] = -np.sin(q[j] + q[3 + j]) / 2
        return M

    def force(t, q, v):
        c = [np.cos(q[j] + q[3 + j]) / 2 for j in range(2)]
        uprights = [GRAVITY * w * np.sin(q[i]) for i, w in enumerate((1.5, 1.5, 0.5))]
        return np.array(
            [
                uprights[0] + c[0] * v[3] ** 2,
                uprights[1] + c[1] * v[4] ** 2,
                uprights[2],
                c[0] * v[0] ** 2 - GRAVITY * np.cos(q[3]) / 2,
                c[1] * v[1] ** 2 - GRAVITY * np.cos(q[4]) / 2,
            ]
        )

    def closure(t, q):
        gaps = []
        for j in range(2):
            gaps.append(np.sin(q[j]) + np.cos(q[3 + j]) - 1 - np.sin(q[j + 1]))
            gaps.append(np.cos(q[j]) + np.sin(q[3 + j]) - np.cos(q[j + 1]))
        return np.array(gaps)

    return Mechanical(
        mass,
        force,
        closure,
        q0=np.zeros(5),
        v0=[1.0, 1.0, 1.0, 0.0, 0.0],
        t_span=(0.0, t_end),
        trace=trace,
        name="double four-bar",
    )


FOUR_BARS_END = np.array([0.3284581115408154, 0.944518538178601])  # B0 at t = 10, exact
