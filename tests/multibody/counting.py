"""A number that counts the operations done with it: run a kernel on it to cost the kernel."""

from __future__ import annotations

import numpy as np


class Tally:
    """Multiplications, additions (or subtractions) and sign changes so far."""

    def __init__(self):
        self.m = self.a = self.sign = 0

    @property
    def cost(self):
        return self.m, self.a


class Counted:
    """A float that reports to a tally. Sign changes are free, as in the book's tables."""

    def __init__(self, value, tally):
        self.value, self.tally = float(value), tally

    @staticmethod
    def _value(other):
        return other.value if isinstance(other, Counted) else float(other)

    def __add__(self, other):
        self.tally.a += 1
        return Counted(self.value + self._value(other), self.tally)

    __radd__ = __add__

    def __sub__(self, other):
        self.tally.a += 1
        return Counted(self.value - self._value(other), self.tally)

    def __rsub__(self, other):
        self.tally.a += 1
        return Counted(self._value(other) - self.value, self.tally)

    def __mul__(self, other):
        self.tally.m += 1
        return Counted(self.value * self._value(other), self.tally)

    __rmul__ = __mul__

    def __neg__(self):
        self.tally.sign += 1
        return Counted(-self.value, self.tally)

    def __bool__(self):
        raise TypeError("a kernel tested a value that may be a symbol")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __bool__
    __hash__ = None

    def __float__(self):
        return self.value


def counted(array, tally):
    """Array of counted numbers."""
    array = np.asarray(array, dtype=float)
    out = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        out[index] = Counted(value, tally)
    return out


def cost(kernel, *args, outputs):
    """Run a kernel on counted copies of its arguments.

    Integers pass unchanged; outputs are shapes. Returns (m, a) and the outputs as floats.
    """
    tally = Tally()
    arguments = [a if isinstance(a, int | bool) else counted(a, tally) for a in args]
    arguments = [a[()] if isinstance(a, np.ndarray) and a.ndim == 0 else a for a in arguments]
    results = [np.full(shape, None, dtype=object) for shape in outputs]
    returned = kernel(*arguments, *results)
    values = [r.astype(float) for r in results]
    return tally.cost, values if outputs else [float(returned)]
