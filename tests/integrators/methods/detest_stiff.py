"""Stiff problems of DETEST: Enright, Hull & Lindberg, BIT 15 (1975), 10-48, written from there.

Each entry is f(t, y), the initial state and the end of the interval (which starts at 0).
"""

import numpy as np


def a1(t, y):
    return np.array([-0.5 * y[0], -y[1], -100 * y[2], -90 * y[3]])


def b5(t, y):
    spiral = [-10 * y[0] + 100 * y[1], -100 * y[0] - 10 * y[1]]
    return np.array([*spiral, -4 * y[2], -y[3], -0.5 * y[4], -0.1 * y[5]])


def c5(t, y):
    a, b, c, d = y
    two = a**2 + b**2
    return np.array([2 - a, 20 * a**2 - 10 * b, 80 * two - 40 * c, 200 * (two + c**2) - 100 * d])


def d2(t, y):
    slow = -0.04 * y[0] + 0.01 * y[1] * y[2]
    return np.array([slow, 400 * y[0] - 100 * y[1] * y[2] - 3000 * y[1] ** 2, 30 * y[1] ** 2])


def d4(t, y):
    first, second = 0.013 * y[0] + 1000 * y[0] * y[2], 2500 * y[1] * y[2]
    return np.array([-first, -second, -first - second])


def e2(t, y):
    return np.array([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]])


def f5(t, y):
    exchange = 3 * y[0] * y[1] - 0.0012 * y[3] + 9 * y[0] * y[2]
    return np.array(
        [
            -1e11 * exchange,
            -3e11 * y[0] * y[1] + 2e7 * y[3],
            1e11 * (-9 * y[0] * y[2] + 0.001 * y[3]),
            1e11 * exchange,
        ]
    )


PROBLEMS = {
    "A1": (a1, [1.0, 1.0, 1.0, 1.0], 20.0),
    "B5": (b5, [1.0] * 6, 20.0),
    "C5": (c5, [1.0] * 4, 20.0),
    "D2": (d2, [1.0, 0.0, 0.0], 40.0),
    "D4": (d4, [1.0, 1.0, 0.0], 50.0),
    "E2": (e2, [2.0, 0.0], 1.0),
    "F5": (f5, [3.365e-7, 8.261e-3, 1.642e-3, 9.38e-6], 100.0),
}
