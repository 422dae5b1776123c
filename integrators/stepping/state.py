"""The state of a run, as the compiled loop sees it: a few arrays with named places.

Kernels cannot hold Python objects, so times live in one array of floats (``clock``) and counters
and switches in one array of integers (``count``). The names of the places are the constants here.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count as _count

# Places in `clock`.
_place = _count()
T = next(_place)  # current time
T_PREVIOUS = next(_place)  # start of the last accepted step
T_STOP = next(_place)  # the loop stops here: end of the span, or the next tstop
T_LIMIT = next(_place)  # f is not asked beyond: the last moment before a jump of f
T_BASE = next(_place)  # fixed step: t = T_BASE + STEP_INDEX * H_FIXED
H_FIXED = next(_place)
H = next(_place)  # proposed magnitude of the next step
H_LAST = next(_place)  # signed length of the last accepted step
H_FACTORED = next(_place)  # signed step for which the linear systems are factorised
DIRECTION = next(_place)  # +1 or -1
MIN_STEP = next(_place)
MAX_STEP = next(_place)
RTOL = next(_place)
ERROR = next(_place)  # error norm of the last accepted step (1 = tolerance)
ERROR_BEFORE = next(_place)  # of the one before
NEWTON_FACTOR = next(_place)  # by how much to shorten a step on which Newton failed
NEWTON_RATE = next(_place)  # contraction of the last Newton iteration
NEWTON_MEMORY = next(_place)  # theta/(1-theta), carried from step to step
NEWTON_TOLERANCE = next(_place)
ESTIMATE_WEIGHT = next(_place)  # weight of h f(t, y) in the estimate of implicit methods
H_TRIED = next(_place)  # step that a method written in Python is asked to take
DOUBLING_DIVISOR = next(_place)  # 2^p - 1
DENSE_WEIGHT = next(_place)  # γ of further implicit stages for dense output
NORM = next(_place)  # norm of the error estimate, if NORM_KNOWN
CLOCK_SIZE = next(_place)

# Places in `count`.
_place = _count()
NFEV = next(_place)
NJEV = next(_place)
NLU = next(_place)
NNEWTON = next(_place)
NSERIES = next(_place)  # Taylor series computed
NSTEPS = next(_place)
NREJECTED = next(_place)
MAX_STEPS = next(_place)  # allowed attempts, accepted or not
NEXT_OUTPUT = next(_place)  # first output time that has not been reached
TAKEN = next(_place)  # steps taken by the last call of `advance` …
KEPT = next(_place)  # … how many of them left their dense output in Qs …
LAST_KEPT = next(_place)  # … and whether the last did
STEP_INDEX = next(_place)
FIXED = next(_place)  # 1: fixed step, no error control
NATIVE = next(_place)  # 1: the right-hand side is machine code
JACOBIAN_NATIVE = next(_place)  # 1: the Jacobian is machine code
F0_CURRENT = next(_place)  # 1: `f0` is the slope at (t, y)
F0_KNOWN = next(_place)  # 1: `f0` is the slope at the start of the last accepted step
HAVE_F1 = next(_place)  # 1: `f1` is the slope at the end of the last step
LAST_REJECTED = next(_place)
LAST_REASON = next(_place)  # Status code of the last rejection
STAGES = next(_place)
NORM_KNOWN = next(_place)  # 1: the attempt has measured its error itself
EXTRA_STAGES = next(_place)  # stages that only dense output needs
EXTRA_IS_SLOPE = next(_place)  # 1: the first extra stage is the slope at the end of the step
FSAL = next(_place)
OWN_LENGTH = next(_place)  # 1: the method itself proposes the next step when it is told of success
ESTIMATE = next(_place)  # one of the ESTIMATE_… below
DENSE = next(_place)  # one of the DENSE_… below
WANT_DENSE = next(_place)
EVENTS = next(_place)  # how many events the loop watches
PROJECTING = next(_place)  # 1: the loop projects after each step, see stepping.projecting
MAX_NORM = next(_place)  # 1: largest component, 0: root mean square
PAIRS = next(_place)  # 1: components are (real, imaginary) pairs
JACOBIAN_CURRENT = next(_place)  # 1: the Jacobian was evaluated at the current (t, y)
HAVE_JACOBIAN = next(_place)
JACOBIAN_AGE = next(_place)  # accepted steps since it was evaluated
CONSTANT_JACOBIAN = next(_place)
HAVE_START = next(_place)  # 1: stage slopes of the previous step are there to extrapolate
MAX_NEWTON = next(_place)
NEWTON_LAST = next(_place)  # iterations of the last attempt
HAS_MASS = next(_place)
EXTERNAL_ALGEBRA = next(_place)  # 1: linear systems are solved by a Python callback
COUPLING = next(_place)  # one of the COUPLING_… below
VARIABLE_ORDER = next(_place)  # 1: the order may change from step to step
ORDER_WISH = next(_place)  # +1 or -1: a higher or lower order would serve better
LOWEST_ORDER = next(_place)  # of a Taylor method with variable order …
HIGHEST_ORDER = next(_place)  # … and the highest
STEPS_AT_ORDER = next(_place)  # accepted steps since the last change of order
ESTIMATE_BLOCK = next(_place)  # which real block filters the error estimate; -1: none
HALF_ROWS = next(_place)  # step doubling: stages of the first half that dense output needs, too
DENSE_BLOCK = next(_place)  # which real block solves for further stages for dense output
KINKS = next(_place)  # 1: f is known to have kinks; Taylor methods look inside their steps, too
END_BLOCK = next(_place)  # which one filters the slope at the end, if that is looked at; else -1
COUNT_SIZE = next(_place)

ESTIMATE_NONE, ESTIMATE_EMBEDDED, ESTIMATE_TWO, ESTIMATE_DOUBLING = range(4)
DENSE_NATIVE, DENSE_HERMITE = range(2)
COUPLING_DIAGONAL, COUPLING_TRANSFORMED, COUPLING_FULL = range(3)

# Outcomes of a kernel; negative ones end the run unless a shorter step helps.
OK = 0
REACHED = 1  # T_STOP was reached
FULL = 2  # as many steps were taken as asked for
SWITCH = 3  # another order would serve better
LOOK = 4  # an event may have occurred in the last step
UNPROJECTED = 5  # the last step waits for a projection


class Status(IntEnum):
    """How a run ended; ``Solution.status`` is one of these.

    Zero and one mean success with SciPy's meaning; negative values mean failure.
    """

    FINISHED = 0
    EVENT = 1
    STOPPED = 2  # by a callback
    STEP_TOO_SMALL = -1
    NONFINITE = -2
    NEWTON_FAILED = -3
    SINGULAR_MATRIX = -4
    TOO_MANY_STEPS = -5
    FUNCTION_RAISED = -6
    INTERRUPTED = -7
    ZENO = -8
    EXTERNAL_FAILED = -9
    HELD = -10  # an event's reset leaves the state on a surface that f leads it through
    NEGATIVE = -11  # a component that must not be


STEP_TOO_SMALL = int(Status.STEP_TOO_SMALL)
NONFINITE = int(Status.NONFINITE)
NEWTON_FAILED = int(Status.NEWTON_FAILED)
SINGULAR_MATRIX = int(Status.SINGULAR_MATRIX)
TOO_MANY_STEPS = int(Status.TOO_MANY_STEPS)
NEGATIVE = int(Status.NEGATIVE)
FUNCTION_RAISED = int(Status.FUNCTION_RAISED)
