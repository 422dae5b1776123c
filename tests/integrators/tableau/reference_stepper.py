"""An independent Runge–Kutta step in extended or multiple precision, for any tableau.

Slow and simple on purpose: stages by fixed-point iteration. It shares no code with the library's
kernels.
"""

from fractions import Fraction

import numpy as np

EXTENDED = np.finfo(np.longdouble).eps < 1e-18


def coefficient(x, number):
    """A coefficient as another kind of number, without going through a double."""
    if isinstance(x, Fraction):
        return number(str(x.numerator)) / number(str(x.denominator))
    return number(str(x))


def integrate(f, y0, t0, t1, steps, tableau, number=np.longdouble):
    """Integrate with equal steps; returns the state at t1."""
    A = np.array([[coefficient(a, number) for a in row] for row in tableau.A])
    b = np.array([coefficient(x, number) for x in tableau.b])
    c = np.array([coefficient(x, number) for x in tableau.c])
    h = number(t1 - t0) / steps
    settled = 1e-18 if number is np.longdouble else number("1e-55")
    y = np.array([number(x) for x in y0])
    K = np.array([f(number(t0), y)] * tableau.stages)
    for k in range(steps):
        t = t0 + k * h
        for _ in range(200):
            before = K.copy()
            for i in range(tableau.stages):
                K[i] = f(t + c[i] * h, y + h * (A[i] @ K))
            if tableau.is_explicit or np.max(np.abs(K - before)) < settled:
                break
        y = y + h * (b @ K)
    return y
