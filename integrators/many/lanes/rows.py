"""Where the numbers of a lane are, and how its run may end: shared by the kernels of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .judge import ROWS

LANES = 8  # two AVX registers, or one AVX-512 register, of doubles

# Rows of `lane`.
T, H, IDLE = ROWS["T"], ROWS["H"], ROWS["IDLE"]
LOG_LAST, LOG_BEFORE, OUTCOME = ROWS["LOG_LAST"], ROWS["LOG_BEFORE"], ROWS["OUTCOME"]
NSTEPS, NREJECTED, REJECTED = ROWS["NSTEPS"], ROWS["NREJECTED"], ROWS["REJECTED"]
T_END, MIN_STEP, MAX_STEP = ROWS["T_END"], ROWS["MIN_STEP"], ROWS["MAX_STEP"]
T_BASE, H_FIXED = ROWS["T_BASE"], ROWS["H_FIXED"]
NEXT_TIME = ROWS["NEXT_TIME"]

NEWTON_STATUS, NEWTON_FACTOR = ROWS["NEWTON_STATUS"], ROWS["NEWTON_FACTOR"]
NEWTON_COUNT, NEWTON_TOLERANCE = ROWS["NEWTON_COUNT"], ROWS["NEWTON_TOLERANCE"]
INSIDE_BEFORE, INSIDE_WEIGHT = ROWS["INSIDE_BEFORE"], ROWS["INSIDE_WEIGHT"]
INSIDE_STRICT = ROWS["INSIDE_STRICT"]
H_LAST = ROWS["H_LAST"]

# Rows of `run` (integers).
RUN, STARTING, NEXT_OUTPUT = range(3)

# Kinds of what is kept of a function.
LARGEST, SMALLEST, INTEGRAL = range(3)

LEAVING = 1e-280  # stands for an event function's zero that is being left; with a sign: where to

# Outcomes beside those of the judge (0: goes on, 1: finished, negative: a Status).
ENDED_BY_EVENT = 2.0
AGAIN = 3.0  # to be done once more, by `solve`

# Rows of a lane in Newton's iteration, behind the increments of the stages. RATE is that of the
# last two increments, THETA the mean of two rates; AGE counts the steps that J has served.
NEWTON_NAMES = ("ACTIVE", "VERDICT", "COUNT", "NORM", "RATE", "THETA", "MEMORY", "EXPECTED", "AGE")
PLACES = {name: place for place, name in enumerate(NEWTON_NAMES)}
NO_JACOBIAN, WORN_JACOBIAN = (
    -1.0,
    -2.0,
)  # ages: there is none yet; the attempt failed with an old one


class NewtonBlock:
    """Places of rows: W, those named above, f(t, y), W before, weights, singularity, inverses, J.

    Weights are those of the components in norms of Newton's increments.
    """

    def __init__(self, n: int, s: int, real: int, pairs: int) -> None:
        self.n, self.s = n, s
        self.W = slice(0, s * n)
        self.lane = slice(self.W.stop, self.W.stop + len(NEWTON_NAMES))
        self.f0 = slice(self.lane.stop, self.lane.stop + n)
        self.W_last = slice(self.f0.stop, self.f0.stop + s * n)
        self.weights = slice(self.W_last.stop, self.W_last.stop + n)
        self.singular = self.weights.stop
        self.real = slice(self.singular + 1, self.singular + 1 + real * n * n)
        self.complex = slice(self.real.stop, self.real.stop + 2 * pairs * n * n)
        self.J = slice(self.complex.stop, self.complex.stop + n * n)
        self.size = self.J.stop

    @classmethod
    def nothing(cls, n: int) -> NewtonBlock:
        """Rows of explicit steps, which have no use for them."""
        return cls(n, 0, 0, 0)

    def matrices(self, x: Any) -> tuple[list[Any], list[Any]]:
        """Inverses in rows x: real ones, and real and imaginary parts of complex ones."""
        n = self.n
        real = np.asarray(x[self.real]).reshape(-1, n, n)
        pairs = np.asarray(x[self.complex]).reshape(-1, 2, n, n)
        return list(real), list(pairs)
