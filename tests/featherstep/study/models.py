"""What the tests of studies run: cheap things that fail in every way."""

import os

import numpy as np

from integrators import IVP


def decay(rate=1.0, start=1.0):
    """y' = −rate·y; some rates fail, and each call leaves a mark if it is asked to."""
    marks = os.environ.get("STUDY_MARKS")
    if marks:
        with open(marks, "a") as file:
            file.write(f"{float(rate)!r}\n")
    if rate > 100.0:
        raise ArithmeticError("this rate raises")
    if rate > 50.0:
        os.kill(os.getpid(), 9)
    return IVP(lambda t, y: -rate * y, [start], (0.0, 1.0), state_names=("y",))


def problem():
    """The same with its rate as a parameter of one traced problem."""
    return IVP(lambda t, y, p: -p[0] * y, [1.0], (0.0, 1.0), params=[1.0], state_names=("y",))


def blow_up(level=1.0):
    """y' = y²: infinite at t = 1/level."""
    return IVP(lambda t, y: y**2, [level], (0.0, 1.0))


def same(a, b):
    """Whether two tables are equal bit for bit."""
    return list(a) == list(b) and all(
        np.array_equal(a[name].astype(str), b[name].astype(str))
        if a[name].dtype == object
        else a[name].tobytes() == b[name].tobytes()
        for name in a
    )
