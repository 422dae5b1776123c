"""Motions with known rotations, for the tests of groups and of Munthe-Kaas methods.

Truths: a rotation given by its angles, R(t) = Rz(a) Rx(b), whose angular velocity is known in
closed form; a heavy top; exponentials of matrices in 50 digits.
"""

import mpmath
import numpy as np

from integrators import IVP, groups, traced

ROUNDING = 4e-15  # a handful of operations with numbers of size 1 to 10

QUATERNION = groups.rotations_by_quaternion()
MATRIX = groups.rotations_by_matrix()
MOTION = groups.rigid_motions()


def exponential(matrix):
    with mpmath.workdps(50):
        E = mpmath.expm(mpmath.matrix(matrix.tolist()), method="taylor")
        return np.array(E.tolist(), dtype=float)


def hat(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def angles(t):
    """A motion that is neither periodic nor about a fixed axis, and its angular velocity."""
    return t + 0.3 * np.sin(2 * t), 0.5 * t * t


def body_velocity(t):
    _, b = angles(t)
    rate = 1.0 + 0.6 * np.cos(2 * t)  # of a; that of b is t
    return np.array([t, rate * np.sin(b), rate * np.cos(b)])


def exact_quaternion(t):
    a, b = angles(t)
    ca, sa, cb, sb = np.cos(a / 2), np.sin(a / 2), np.cos(b / 2), np.sin(b / 2)
    return np.array([ca * cb, ca * sb, sa * sb, sa * cb])


def exact_matrix(t):
    a, b = angles(t)
    Rz = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    Rx = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    return (Rz @ Rx).ravel()


def quaternion_rate(q, w):
    return 0.5 * np.array(
        [
            -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
            q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
            q[0] * w[1] - q[1] * w[2] + q[3] * w[0],
            q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
        ]
    )


def spin(t_span=(0.0, 2.0), form="quaternion"):
    """Ṙ = R ŵ(t)."""
    if form == "matrix":
        return IVP(
            lambda t, R: (R.reshape(3, 3) @ hat(body_velocity(t))).ravel(),
            exact_matrix(t_span[0]),
            t_span,
            exact=exact_matrix,
            manifold=MATRIX.manifold(lambda t, R: body_velocity(t)),
        )
    return IVP(
        lambda t, q: quaternion_rate(q, body_velocity(t)),
        exact_quaternion(t_span[0]),
        t_span,
        exact=exact_quaternion,
        manifold=QUATERNION.manifold(lambda t, q: body_velocity(t)),
    )


TOP = groups.product(QUATERNION, groups.euclidean(3))
INERTIA = np.array([1.0, 1.2, 0.5])


def top_velocity(t, y, p):
    """Euler's equations of a top under the weight p[0] at a distance 1 along its axis."""
    q, w = y[0:4], y[4:7]
    up = [  # in body axes: the last row of R
        2 * (q[1] * q[3] - q[0] * q[2]),
        2 * (q[2] * q[3] + q[0] * q[1]),
        q[0] * q[0] - q[1] * q[1] - q[2] * q[2] + q[3] * q[3],
    ]
    torque = p[0] * np.array([up[1], -up[0], 0.0])
    return np.concatenate([w, (np.cross(INERTIA * w, w) + torque) / INERTIA])


def top_rhs(t, y, p):
    v = top_velocity(t, y, p)
    return np.concatenate([quaternion_rate(y, v[0:3]), v[3:6]])


TOP_START = np.array([np.cos(0.3), np.sin(0.3), 0.0, 0.0, 0.1, 0.2, 5.0])
TOP_PROBLEM = IVP(top_rhs, TOP_START, (0.0, 2.0), [2.0], manifold=TOP.manifold(top_velocity))
TRACED_TOP = TOP_PROBLEM.with_(
    f=traced(top_rhs, n=7, params=1),
    manifold=TOP.manifold(traced(top_velocity, n=7, params=1, outputs=6)),
)
