"""Where the numbers of a lane are, and how its run may end: shared by the kernels of lanes."""

from __future__ import annotations

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
