"""The state of a run, as the time loop and the methods' kernels see it: numbers with names.

A kernel says ``w.t`` and ``w.nsteps += 1``; behind it is a :class:`State`, one for each run.
"""

from __future__ import annotations

from enum import IntEnum

from ..kernels.record import Record


class State(Record):
    """Times, counters and switches of a run. Switches are 1 or 0."""

    # Time.
    t: float  # current time
    t_previous: float  # start of the last accepted step
    t_stop: float  # the loop stops here: end of the span, or the next tstop
    limited: int  # 1: f is not asked beyond …
    t_limit: float  # … this, the last moment before a jump of f
    direction: float  # +1 or -1

    # Step lengths.
    h: float  # proposed magnitude of the next step
    h_last: float  # signed length of the last accepted step
    min_step: float
    max_step: float
    fixed: int  # 1: fixed step, no error control: t = t_base + step_index * h_fixed
    h_fixed: float
    t_base: float
    step_index: int
    own_length: int  # 1: the method itself proposes the next step when it is told of success

    # What the loop was asked for, and what it left.
    stop: int  # 1: end before the next step (set from another thread)
    max_steps: int  # allowed attempts, accepted or not
    taken: int  # steps taken by the last call of `advance` …
    kept: int  # … how many of them left their dense output in Qs …
    last_kept: int  # … and whether the last did
    want_dense: int
    next_output: int  # first output time that has not been reached
    watched: int  # how many events the loop watches
    projecting: int  # 1: the loop projects after each step, see stepping.projecting

    # Counters.
    nfev: int
    njev: int
    nlu: int
    nnewton: int
    nseries: int  # Taylor series computed
    nsteps: int
    nrejected: int

    # Error control.
    rtol: float
    max_norm: int  # 1: largest component, 0: root mean square
    pairs: int  # 1: components are (real, imaginary) pairs
    estimate_kind: int  # one of the ESTIMATE_… below
    norm: float  # norm of the error estimate, if the attempt has measured it itself …
    norm_known: int  # … as this says
    log_error: float  # logarithm of the error norm of the last accepted step (0 = tolerance)
    log_before: float  # of the one before
    last_rejected: int
    last_reason: int  # Status code of the last rejection
    doubling_divisor: float  # step doubling: 2^p - 1 …
    half_rows: int  # … and stages of the first half that dense output needs, too

    # What is known of f.
    f_native: int  # 1: the right-hand side is machine code
    kinks: int  # 1: f is known to have kinks; Taylor methods look inside their steps, too
    f0_current: int  # 1: `f0` is the slope at (t, y)
    f0_known: int  # 1: `f0` is the slope at the start of the last accepted step
    have_f1: int  # 1: `f1` is the slope at the end of the last step
    h_tried: float  # step that a method written in Python is asked to take

    # The tableau.
    stages: int
    fsal: int
    dense_kind: int  # one of the DENSE_… below
    extra_stages: int  # stages that only dense output needs
    extra_is_slope: int  # 1: the first extra stage is the slope at the end of the step

    second_order: int  # 1: the halves of y are q and q'

    # Variable order.
    variable_order: int  # 1: the order may change from step to step
    order_wish: int  # +1 or -1: a higher or lower order would serve better
    lowest_order: int  # of a Taylor method …
    highest_order: int  # … and the highest
    steps_at_order: int  # accepted steps since the last change of order
    order_now: int  # multistep methods: order of the next step …
    step_order: int  # … and of the last one
    past_known: int  # values of the past that are there to be used
    starting: int  # 1: the order is raised with every step
    failures: int  # rejections since the last accepted step

    # Stiffness, see stepping.stiffness.
    watch_stiffness: int  # 1: the run tells of it at its end; 2: another method takes over
    family_wish: int  # +1 for a method for stiff problems, -1 for an explicit one
    stiff_stage: int  # a stage at the end of the step; -1: there is none
    stability_boundary: float  # h times the largest eigenvalue at which the other method serves
    stiff_patience: int  # steps in a row before it is wished for
    spectral_radius: float  # estimate of the largest eigenvalue's modulus
    stiff_steps: int  # recent steps that stability limited …
    stiff_total: int  # … and all of them
    mild_steps: int  # steps in a row that it did not

    # Implicit methods: Newton's iteration …
    max_newton: int  # allowed iterations
    newton_last: int  # iterations of the last attempt
    newton_tolerance: float
    newton_rate: float  # contraction of the last iteration
    newton_memory: float  # theta/(1-theta), carried from step to step
    newton_floor: float  # its tolerance is never below this, where rounding errors begin
    matrix_slack: float  # relative change of h for which a multistep method keeps its factors
    newton_factor: float  # by how much to shorten a step on which it failed
    have_start: int  # 1: stage slopes of the previous step are there to extrapolate
    # … its matrices …
    jacobian_native: int  # 1: the Jacobian is machine code
    have_jacobian: int
    jacobian_current: int  # 1: it was evaluated at the current (t, y)
    jacobian_age: int  # accepted steps since it was evaluated
    constant_jacobian: int
    has_mass: int
    keeps_matrix: int  # Rosenbrock methods: 1 if J may be one of an earlier step …
    time_slope: int  # … and how ∂f/∂t is found, see methods.rosenbrock.step
    h_factored: float  # signed step for which the linear systems are factorised
    external_algebra: int  # 1: linear systems are solved by a Python callback
    coupling: int  # one of the COUPLING_… below
    # … and what else uses them.
    estimate_block: int  # which real block filters the error estimate; -1: none
    estimate_weight: float  # weight of h f(t, y) in the estimate
    end_block: int  # which one filters the slope at the end, if that is looked at; else -1
    dense_block: int  # which one solves for further stages for dense output …
    dense_weight: float  # … and their γ
    inside_block: int  # which one solves for the defect inside a step …
    inside_node: float  # … and where that is looked at, as a fraction of the step …
    inside_weight: float  # … with such a weight; 0: not at all
    inside_filters: int  # how often all but its stiff part is taken away
    inside_strict: float  # … and the weight of one that nothing before it announced
    inside_used: float  # which of the two weights was used last
    inside_power: float  # power of h with which it grows where the solution is smooth
    inside_now: float  # what was found in the last attempt, in tolerances; -1: nothing yet …
    inside_steps: int  # … which had so many steps before it
    inside_before: float  # … and in steps before that, of the length …
    inside_length: float  # … of the last of them
    inside_last_length: float  # length of the last attempt


ESTIMATE_NONE, ESTIMATE_EMBEDDED, ESTIMATE_TWO, ESTIMATE_DOUBLING = range(4)
DENSE_NATIVE, DENSE_HERMITE = range(2)
COUPLING_DIAGONAL, COUPLING_TRANSFORMED, COUPLING_FULL = range(3)

# Outcomes of a kernel; negative ones end the run unless a shorter step helps.
OK = 0
REACHED = 1  # t_stop was reached
FULL = 2  # as many steps were taken as asked for
SWITCH = 3  # another order would serve better
LOOK = 4  # an event may have occurred in the last step
UNPROJECTED = 5  # the last step waits for a projection
CHANGE = 6  # a method of another kind would serve better


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
    OUT_OF_TIME = -12  # the limit of the clock on the wall


STEP_TOO_SMALL = int(Status.STEP_TOO_SMALL)
NONFINITE = int(Status.NONFINITE)
NEWTON_FAILED = int(Status.NEWTON_FAILED)
SINGULAR_MATRIX = int(Status.SINGULAR_MATRIX)
TOO_MANY_STEPS = int(Status.TOO_MANY_STEPS)
INTERRUPTED = int(Status.INTERRUPTED)
NEGATIVE = int(Status.NEGATIVE)
FUNCTION_RAISED = int(Status.FUNCTION_RAISED)
