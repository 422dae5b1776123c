"""The arrays of a run: those that the time loop shares with every method, and each family's own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..kernels.record import Record
from ..kernels.workspace import Workspace
from .control import Control
from .state import State

__all__ = [
    "Common",
    "Constrained",
    "Custom",
    "Explicit",
    "Implicit",
    "Lanes",
    "LinearlyImplicit",
    "Multivalue",
    "Series",
    "Steps",
    "TwoHalves",
    "TwoParts",
    "empty_fields",
]

SHARED: dict[str, Any] = {
    "attempt": "a",  # the method's kernels, see integrators.stepping.loop
    "accepted": "a",
    "dense": "a",
    "refine": "a",
    "f": "a",  # the right-hand side
    "state": State,  # times, counters and switches
    "control": Control,  # numbers of the step-size controller
    "flag": "i1",  # set by a Python callback that succeeded
    "x": "f1",  # argument of f …
    "dx": "f1",  # … and its value
    "p": "f1",  # parameters
    "atol": "f1",
    "index": "i1",  # differentiation index of each component; empty for an ODE
    "nonnegative": "i1",  # components that must not become negative
    "y": "f1",  # current state
    "y_old": "f1",  # state at the start of the last accepted step
    "y_new": "f1",  # result of the current attempt
    "f0": "f1",  # slope at the start of the step
    "f1": "f1",  # slope at its end
    "error": "f1",
    "error_low": "f1",  # second estimate, where there is one
    "K": "f2",  # stages, without h for explicit methods, with h for implicit ones
    "P": "f2",  # native dense output: polynomial coefficients of each stage's weight
    "basis": "f2",  # from the polynomials that P and hermite_P refer to to powers; may be empty
    "outputs": "f1",  # output times; if empty, dense output is made for every step
    "Q": "f2",  # dense output of the last step, row j multiplies θ^(j+1)
    "ts": "f1",  # steps taken by one call of the loop: where they ended …
    "ys": "f2",  # … the states there …
    "Qs": "f3",  # … and dense output, for steps that hold an output time
    "event_codes": "i1",  # addresses of the event functions that the loop watches …
    "event_values": "f1",  # … their values at the current time …
    "event_samples": "f2",  # … and within the step, see integrators.stepping.watch
    "projection": "i1",  # addresses of closing and settling, see integrators.stepping.projecting …
    "projected": "f1",  # … and what closing returns
    "hermite_nodes": "f1",  # see integrators.stepping.dense.hermite_tables
    "hermite_points": "f2",
    "hermite_P": "f2",
    "hermite_data": "f2",
    "big": "f1",  # step doubling: result of the undivided step …
    "saved": "f1",  # … and the state that it started from
}

TABLEAU = {
    "A": "f2",  # for explicit methods followed by the rows of extra stages
    "b": "f1",
    "c": "f1",
    "e": "f1",  # weights of the error estimate
}


class Steps(Workspace):
    """What the time loop knows of every method: the fields with which each family begins."""

    FIELDS: ClassVar[dict[str, Any]] = SHARED


class Explicit(Workspace, begins_as=Steps):
    """Arrays of an explicit Runge–Kutta method."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        **TABLEAU,
        "e_low": "f1",  # weights of the second estimate
        "end_weights": "f1",  # of the stages in the extrapolated slope at the end
        "stage_state": "f1",  # the last stage of the last step, see stepping.stiffness …
        "stage_slope": "f1",  # … and its slope
        "fused": "a",  # a whole step as machine code, see integrators.methods.runge_kutta.fused …
        "fused_in": "f1",  # … its parameters; p, atol and maybe f0 are views of them …
        "fused_out": "f1",  # … and its results, of which y_new and K are views
    }


class Implicit(Workspace, begins_as=Steps):
    """Arrays of an implicit Runge–Kutta method; K holds the stage increments W = h k."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        **TABLEAU,
        "solve_stages": "a",  # kernel that solves for the stage increments
        "jac": "a",  # the Jacobian: writes J row by row
        "algebra": "a",  # external linear algebra
        "J": "f2",
        "M": "f2",
        "eigenvector": "f1",  # of J's largest eigenvalue, nearly; see stepping.stiffness
        "extra_c": "f1",  # further stages for dense output, see runge_kutta.implicit.extra_stages …
        "extra_A": "f2",  # … weights of their states …
        "extra_start": "f2",  # … and of first guesses of their increments
        "plain_P": "f2",  # dense output without them
        "inside_value": "f1",  # weights of increments in the state where the defect is looked at …
        "inside_slope": "f1",  # … and in h times its slope; see runge_kutta.implicit.inside
        "W_last": "f2",  # increments of the previous step …
        "lagrange": "f3",  # … and ℓⱼ(θ) through the last 1, 2, … of them, coefficients of θᵏ
        "predictor": "f2",  # DIRK: weights of earlier stages where a stage's iteration starts
        "end_weights": "f1",  # of f(t, y) and the stages in the extrapolated slope at the end
        "newton": "f1",  # size and rate of the last Newton increment
        "residual": "f2",
        "increment": "f2",
        "real_shift": "f1",  # λ of the real blocks M − hλJ
        "real_LU": "f3",
        "real_pivots": "i2",
        "real_rhs": "f1",
        "complex_shift": "c1",
        "complex_LU": "c3",
        "complex_pivots": "i2",
        "complex_rhs": "c1",
        "block_of": "i1",  # DIRK: block of each stage, -1 for an explicit stage
        "T_real": "f2",
        "T_real_inverse": "f2",
        "T_complex": "c2",
        "T_complex_inverse": "c2",
        "full_LU": "f2",
        "full_pivots": "i1",
        "full_rhs": "f1",
    }


class Multivalue(Workspace, begins_as=Steps):
    """Arrays of a multistep method with variable order and step; those of its matrices as above."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **Implicit.FIELDS,
        "past": "f2",  # earlier values (or slopes), newest first …
        "past_t": "f1",  # … and their times
        "predicted": "f1",
        "predicted_rate": "f1",
        "value_weights": "f1",  # of the past in the predictor …
        "rate_weights": "f1",  # … and in h times its derivative
        "powers": "f1",  # coefficients of a polynomial …
        "nodes": "f1",  # … and where it has its zeros
        "gauss_c": "f1",  # nodes and weights of a quadrature
        "gauss_b": "f1",
        "kappa": "f1",  # of the numerical differentiation formulas, by order
    }


class LinearlyImplicit(Workspace, begins_as=Steps):
    """Arrays of a Rosenbrock method; those of its matrices as above, K holds the u = Γk."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **Implicit.FIELDS,
        "f_by_t": "a",  # ∂f/∂t, if there is machine code for it …
        "f_t": "f1",  # … and its value at the start of the step
        "C": "f2",  # weights of earlier stages on the right-hand sides …
        "d": "f1",  # … and of ∂f/∂t
        "slope": "f1",  # f at a stage
        "repeats": "i1",  # 1 for a stage whose f is that of the stage before
    }


class TwoHalves(Workspace, begins_as=Steps):
    """Arrays of a method that treats the halves of y = (q, v) differently."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        **TABLEAU,
        "drift": "f1",  # lengths of drifts; those of kicks are b
        "A_second": "f2",  # coefficients of v; those of q are A …
        "b_second": "f1",  # … and so on
        "e_second": "f1",
        "slope": "f1",  # the last f that a kick or a stage has used
        "end_weights": "f1",  # of the stages in the extrapolated slope at the end
    }


class TwoParts(Workspace, begins_as=Steps):
    """Arrays of an additive method; those of its matrices as above.

    K holds h f_E at the stages, then h f_I, and A, b, e and the predictor weigh both.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        **Implicit.FIELDS,
        "f_explicit": "a",  # the two parts of f …
        "f_implicit": "a",
        "of_explicit": "f1",  # … and their values at the start of the step
        "of_implicit": "f1",
        "end_explicit": "f1",  # … and at its end
        "end_implicit": "f1",
        "base": "f1",  # what a stage consists of, but for its own implicit slope
    }


class Series(Workspace, begins_as=Steps):
    """Arrays of a Taylor method; K holds the coefficients."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        "series": "a",  # machine code that fills K
        "fused": "a",  # a whole step as machine code, see integrators.methods.taylor.fused …
        "fused_in": "f1",  # … its parameters, of which p, atol and K are views …
        "fused_out": "f1",  # … and its results: norm, proposal, the next K
    }


class Common(Record):
    """What all lanes of all threads share."""

    stop: int  # 1: store what there is and end (set from outside)
    stages: int
    first_step: float  # 0: a guess
    exponent: float  # of the first guess
    fixed: int  # 1: steps have a fixed length
    tasks: int  # 1: something happens after each step (``integrators.many.lanes.hooks``):
    n_events: int  # … events are looked for …
    projects: int  # … or states projected …
    jumps: int  # … or reset by events (``lanes.jumps``)
    looks_inside: int  # 1: every step's dense output is needed
    implicit: int  # 1: steps are those of an implicit method (``lanes.newton``)
    unrolled: int  # 1: the inverses of its matrices are made by straight-line code
    max_newton: int  # most iterations of its stages
    memory: int  # rows of Newton's block: what is remembered of the last step's convergence …
    singular: int  # … whether a matrix has no inverse, then all inverses …
    dense_inverse: int  # … and that which further stages need


class Lanes(Workspace):
    """Arrays of many runs side by side (``integrators.many.lanes``), which has its own loop."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "f": "a",  # the right-hand side in lanes
        "fused": "a",  # a whole step in lanes
        "judge": "a",  # what follows from it
        "dense": "a",  # the polynomials of steps, Q …
        "interpolate": "a",  # … and their values at parts theta of the steps
        "due": "a",  # which steps hold outputs
        "values": "a",  # states at the next output of each lane
        "common": Common,
        "y0": "f2",  # initial states and parameters, a row for each run
        "p0": "f2",
        "spans": "f2",  # times and tolerances, a row for each run or one for all
        "rtols": "f1",
        "atols": "f2",
        "t_eval": "f1",
        "y_end": "f2",  # results, a row for each run
        "t_end": "f1",
        "status": "i1",
        "ending": "f1",  # the outcome of the lane
        "steps": "i1",
        "rejected": "i1",
        "h_end": "f1",  # the step that came next
        "y_eval": "f3",
        "all_outputs": "f1",  # the same numbers, one behind the other
        "trail_at": "i1",  # where the steps of each run begin in the next two, if they are kept
        "trail_t": "f1",
        "trail_y": "f2",
        "run": "i2",  # from here on the lane is the last axis
        "block": "f2",  # see integrators.many.lanes.judge; the next are views of it
        "p": "f2",
        "f0": "f2",
        "h": "f1",
        "y": "f2",
        "lane": "f2",
        "judged": "f2",  # rows that the judge writes
        "results": "f2",  # norm, new state, stages; the next are views of it
        "y_new": "f2",
        "x": "f2",
        "dx": "f2",
        "first": "f2",
        "rtol": "f1",
        "atol": "f2",
        "next_time": "f1",  # the next output of each lane, a row of `lane`
        "dense_results": "f2",  # Q, and the sum of its rows
        "Q": "f2",  # a view of it
        # Implicit steps: see integrators.many.lanes.newton.
        "prepare": "a",
        "jac": "a",
        "iterate": "a",
        "rounding": "a",
        "finish": "a",
        "again": "a",
        "further": "a",
        "newton_tolerances": "f1",  # by run, or one for all
        "inside_weights": "f1",
        "inside_stricts": "f1",
        "newton": "f2",  # the next are views of it
        "prepared": "f2",
        "iterated": "f2",
        "J": "f2",
        "newton_aside": "f2",  # a copy of it, for lanes that wait
        "J_here": "f2",
        "norm": "f2",
        "pivots": "i2",
        "real_shift": "f1",
        "complex_shift": "c1",
        "extra_c": "f1",  # further stages of dense output
        "extra_A": "f2",
        "extra_start": "f2",
        "step_rows": "f2",
        "stage": "f2",
        "stage_found": "f2",  # a view of it
        # What happens after each step: see integrators.many.lanes.hooks.
        "old": "f2",  # time and length of the step, and the state it started from
        "y_old": "f2",
        "theta": "f1",
        "end": "f1",
        "project": "a",
        "projected": "f2",
        "events": "a",
        "direction": "f1",
        "terminal": "i1",
        "g": "f2",
        "g_last": "f2",
        "g_samples": "f3",
        "zero": "f2",
        "bracket": "f2",
        "event_count": "i2",  # by run
        "event_t": "f3",
        "event_y": "f3",
        "rates": "a",  # of the event functions along the motion
        "resets": "a",  # states after all events, one behind the other …
        "after": "f2",  # … and where they go
        "has_reset": "i1",
        "jump": "i1",  # the event whose reset a lane has come to, or −1
        "reset_time": "f1",  # of the last one
        "kept": "a",
        "kept_kind": "i1",
        "value": "f2",
        "seen": "f3",
        "kept_value": "f2",  # by run
        "kept_time": "f2",
    }


class Constrained(Workspace, begins_as=Steps):
    """Arrays of the generalized-α method, see integrators.methods.mechanical.alpha_step."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        "codes": "i1",  # addresses of the functions of the system …
        "native": "i1",  # … and which of them are machine code
        "numbers": "f1",
        "holonomic": "i1",  # 1 for constraints on positions
        "point": "f1",  # (q, z, v, λ) at the end of a step …
        "value": "f1",  # … the equations of index 3 there …
        "J": "f2",  # … and their Jacobian
        "place": "f1",  # a position and a displacement …
        "moved": "f1",  # … and where it leads
        "base": "f1",  # (q, z, v) at the start of a step …
        "accelerated": "f1",  # … slopes and multipliers there …
        "settled": "f1",  # … or the nearest velocities that keep the constraints
        "kept_base": "f1",
        "begin": "f1",  # (q, z, v) at the start of two half steps …
        "end": "f1",  # … and at the end of the last or of the undivided step
        "s_start": "f1",  # slopes of (z, v) at the start of a step …
        "s": "f1",  # … and at its end
        "a": "f1",  # the auxiliary accelerations at its start …
        "a_end": "f1",  # … and at its end
        "force": "f1",  # multipliers
        "matrix": "f2",  # Newton's matrix, factorised
        "pivots": "i1",
        "change": "f1",  # of slopes and multipliers
    }


class Custom(Workspace, begins_as=Steps):
    """Arrays of a method written in Python."""

    FIELDS: ClassVar[dict[str, Any]] = {
        **SHARED,
        "stepper": "a",  # callback that fills y_new and error
    }


def empty_fields(family: type[Workspace], known: dict[str, Any]) -> dict[str, Any]:
    """Arrays without elements for fields that only others of a family use."""
    kinds = {"f": np.float64, "i": np.int64, "c": np.complex128}
    return {
        name: np.zeros((0,) * int(kind[1]), dtype=kinds[kind[0]])
        for name, kind in family.FIELDS.items()
        if name not in known and isinstance(kind, str) and kind != "a"
    }
