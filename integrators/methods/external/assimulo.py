"""Assimulo's solvers for y' = f(t, y), by name: "assimulo:CVode" and its like.

They drive themselves and report each accepted step. They run in mirrored time s = −t when
integrating backwards, because most of them only run forwards, and see complex states as pairs of
real numbers. Those with a fixed step are driven step by step, so that t = t₀ + k·h.

What these solvers do in silence elsewhere is stopped here: Radau5ODE and LSODAR accept NaN,
RodasODE never returns from it, RungeKutta34 goes on when f has failed, and LSODAR takes a default
argument of f for its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...runs.interrupts import Interrupts
from ...stepping import state as at
from ...stepping.engine import Options, Take
from .scipy import EPS, HIGHEST_DEGREE, Abort, Array, External

__all__ = ["AssimuloEngine"]

QUIET = 50  # Assimulo's verbosity
GROWTH = 1.5  # first step of a fresh solver after the last of the one before
SNAP = 100 * EPS  # Assimulo's own tolerance for having reached the end
FRUITLESS = 100  # attempts at one step, each of n + 20 evaluations: nobody needs as many
STRETCH = 1e-9  # a fixed step that ends just short of the end is stretched to it


@dataclass(frozen=True)
class Kind:
    """What is to be known of one solver: its interpolant, and its habits."""

    order: int  # of the interpolant, also its degree; with a fixed step, of the method
    fixed: bool = False
    multistep: bool = False
    needs_first_step: bool = False  # its own default is a constant
    recovers: bool = False  # it tries a shorter step if f asks for it
    library: str = ""  # in Fortran, which prints


KINDS = {
    "CVode": Kind(5, multistep=True, recovers=True),
    "Radau5ODE": Kind(3, needs_first_step=True, recovers=True),
    "Dopri5": Kind(4, library="dopri5"),
    "RodasODE": Kind(3, needs_first_step=True, library="rodas"),
    "LSODAR": Kind(HIGHEST_DEGREE, multistep=True, library="odepack"),
    "RungeKutta34": Kind(3, needs_first_step=True),
    "ExplicitEuler": Kind(1, fixed=True),
    "ImplicitEuler": Kind(1, fixed=True),
    "RungeKutta4": Kind(4, fixed=True),
}
FLAGS = {  # what the Fortran codes mean by "failed with flag …"
    "dopri5": {"-3": "the step size became too small", "-4": "the problem seems to be stiff"},
    "rodas": {"-3": "the step size became too small", "-4": "the matrix is singular"},
    "odepack": {
        "-2": "too much accuracy was asked for",
        "-4": "the error test failed again and again",
        "-5": "Newton's iteration failed again and again",
    },
}
TOO_MANY = re.compile(r"(Dopri5|Rodas) failed with flag -2|LSODAR failed with flag -1|steps")


class AssimuloEngine(External):
    """One of Assimulo's solvers, bound to a problem.

    Parameters
    ----------
    name
        A key of ``KINDS``, in any case.
    problem, options
        As for every method.
    """

    def __init__(self, name: str, problem: IVP, options: Options) -> None:
        name = _known_name(name)
        self.kind = KINDS[name]
        super().__init__(f"assimulo:{name}", problem, options, self.kind.fixed)
        self.assimulo = _assimulo()
        self.solver_class = getattr(self.assimulo["solvers"], name)
        self.dense_order = self.kind.order
        self.silence = Silence(self.kind.library)
        self.interrupts = Interrupts()
        self.solver: Any = None
        self.base, self.index = self._t, 0  # fixed step: t = base + index·h
        self._code: int | None = None
        self._pending: BaseException | None = None
        self._proposed: float | None = None  # the next step, where the solver tells
        self._fruitless = 0  # evaluations of f since the last accepted step
        self.multistep = self.kind.multistep

    # ------------------------------------------------------------ what a run asks for

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember f(t0, y0); choose the first step where the solver would not."""
        if first_step is None and self.kind.needs_first_step:
            first_step = self.initial_step(slope, self.kind.order, self.rtol)
        super().begin(slope, first_step)

    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Let a fresh solver start from (t, y)."""
        super().restart(t, y, h)
        self.base, self.index = t, 0

    def statistics(self) -> dict[str, int]:
        """Counters, with those of the solver at work."""
        self._tally()
        return self.counts

    # ------------------------------------------------------------ the problem as Assimulo sees it

    def _problem(self, t_stop: float, take: Take) -> Any:
        problem = self.assimulo["problem"].Explicit_Problem(
            y0=self._y.copy(), t0=self.direction * self._t
        )
        problem.rhs = lambda s, y: self._rhs(s, y)
        if self.problem.jac is not None:
            problem.jac = lambda s, y: self._real_jacobian(s, y)
        problem.handle_result = lambda solver, s, y: None
        problem.step_events = lambda solver: self._reported(solver, t_stop, take)
        problem.handle_event = self._terminate
        return problem

    def _rhs(self, s: float, y: Array) -> Array:
        """dy/ds in mirrored time."""
        self._fruitless += 1
        if self._gave_up:
            self._abort()
        slope = self.evaluate(self.direction * s, self.from_real(y))
        return self.direction * self.to_real(slope)

    @property
    def _gave_up(self) -> bool:
        """Whether the solver evaluates f again and again without getting anywhere."""
        return self._fruitless > FRUITLESS * (self.n + 20)

    def _real_jacobian(self, s: float, y: Array) -> Array:
        """Its Jacobian, a complex entry as a 2×2 block."""
        try:
            J = self.jacobian(self.direction * s, self.from_real(y), dense=True)
        except Abort:
            if not self.kind.recovers:
                raise
            raise self._recoverable() from None  # anything else CVode would print
        if self.complex:
            J = np.kron(J.real, np.eye(2)) + np.kron(J.imag, [[0.0, -1.0], [1.0, 0.0]])
        return np.asarray(self.direction * J)

    def _on_nonfinite(self) -> None:
        if self.kind.recovers:
            raise self._recoverable()
        self._abort()  # NaN leads these solvers astray

    def _recoverable(self) -> Exception:
        error: Exception = self.assimulo["exception"].AssimuloRecoverableError()
        return error

    def _guarded(self, call: Callable[[], Any]) -> Any:
        if self.interrupts.waiting:
            self._error = KeyboardInterrupt()
            self._abort()
        return super()._guarded(lambda: self.interrupts.exposed(call))

    def _abort(self) -> NoReturn:
        self.silence.mute_errors()  # the Fortran wrapper would complain
        raise Abort

    def _terminate(self, solver: Any, event_info: Any) -> NoReturn:
        raise self.assimulo["exception"].TerminateSimulation

    def _new_solver(self, t_stop: float, take: Take) -> Any:
        self._stale = False
        solver = self.solver_class(self._problem(t_stop, take))
        solver.verbosity = QUIET
        solver.display_progress = False
        if hasattr(solver, "usejac"):
            solver.usejac = self.problem.jac is not None
        if hasattr(solver, "rtol"):
            weights = self.to_real_weights(self.options.atol)
            solver.rtol = self.rtol
            solver.atol = weights if self.n > 1 else float(weights[0])
        if self.fixed:
            return solver
        solver.report_continuously = True
        solver.maxsteps = min(self._attempts_left(), 2**31 - 1)
        largest = self.options.max_step
        if not hasattr(solver, "maxh"):
            self._watch_runge_kutta34(solver)
        elif np.isfinite(largest):
            solver.maxh = largest
        if self._first is not None:
            first = min(self._first, largest, abs(t_stop - self._t))
            if hasattr(solver, "inith"):
                solver.inith = first
            else:
                _set_first_step_of_lsodar(solver, first)
        return solver

    def _watch_runge_kutta34(self, solver: Any) -> None:
        """Keep its steps below ``max_step``, and learn what it makes of each error."""
        adjust, step, largest = solver.adjust_stepsize, solver._step, self.options.max_step

        def watched_step(s: float, y: Array, h: float) -> tuple[float, Array, float]:
            s, y, error = step(s, y, h)
            self._proposed = min(adjust(h, error), largest)
            return s, y, error

        solver.adjust_stepsize = lambda h, error: self._proposed
        solver._step = watched_step

    # ------------------------------------------------------------ steps

    def _advance(self, t_stop: float, take: Take) -> int | None:
        self._code, self._pending = None, None
        steps = self.counts["nsteps"]
        failure: BaseException | None = None
        with self.interrupts, self.silence, np.errstate(all="ignore"):
            try:
                if self._stale or not self.fixed:
                    self._tally()
                    self.solver = self._new_solver(t_stop, take)
            except Abort as error:  # f failed; anything else is for the user to know
                failure = error
            try:
                if failure is None and self.fixed:
                    self._fixed_step(t_stop, take)
                elif failure is None:
                    self.solver.simulate(self.direction * t_stop)
            except (Abort, Exception) as error:
                failure = error
        if not self.fixed:
            self._tally()
        if self._pending is None and self.interrupts.waiting:
            self._pending = KeyboardInterrupt()
        if self._pending is not None:
            raise self._pending
        if self._code is not None:
            return self._code
        if self._gave_up and self._error is None:
            return self._failed(
                f"no step was accepted in {self._fruitless} evaluations of f; loosen rtol and atol "
                "or take another solver"
            )
        if failure is None and self._bad is None and self.counts["nsteps"] > steps:
            return None  # at the end, or stopped for a fresh start
        words = self._words(failure)
        if self._starts_afresh():
            return None
        if TOO_MANY.search(words) and self._error is None and self._bad is None:
            return at.TOO_MANY_STEPS
        return self._failed(words, failure)

    def _starts_afresh(self) -> bool:
        """Whether to go on, after a failure, with a solver that has no history."""
        return False

    def _fixed_step(self, t_stop: float, take: Take) -> None:
        """One step to base + (index + 1)·h, or to ``t_stop`` if that comes first."""
        h = self.direction * float(self.options.step or 0.0)
        t = self.base + (self.index + 1) * h
        if (t_stop - t) * self.direction <= STRETCH * abs(h):
            t = t_stop
        self.solver.h = 2 * abs(h)  # it is cut to what remains, which is our step
        d, options = self.direction, {"initialize": True, "report_continuously": 0}
        _, _, states = self.solver.integrate(d * self._t, self._y.copy(), d * t, options)
        self.index += 1
        self.interrupts.exposed(lambda: self._accept(t, np.array(states[-1]), t_stop, take))

    def _reported(self, solver: Any, t_stop: float, take: Take) -> bool:
        """Deal with a step that the solver reports; True stops it."""
        try:
            t = self.direction * float(solver.t)
            if abs(t - t_stop) <= SNAP * max(abs(t), abs(t_stop)):
                t = t_stop
            if self._stands_still(t):  # some report the start, too
                return False
            self.interrupts.exposed(lambda: self._accept(t, np.array(solver.y), t_stop, take))
        except Exception as error:
            self._code = self._failed(str(error), error)
        except BaseException as error:
            self._pending = error
        return self._stale or self._code is not None or self._pending is not None

    def _accept(self, t: float, y: Array, t_stop: float, take: Take) -> None:
        if not np.all(np.isfinite(y)):
            self._bad, self._stale = t, True
            return
        self._fruitless = 0
        Q = self._interpolant(t, y) if self.options.want_dense else None
        proposed = self._proposed or (1.0 if self.fixed else GROWTH) * abs(t - self._t)
        self._code = self._hand_over(t, y, Q, proposed, t_stop, take)
        if self._code is None and self._attempts_left() <= 0 and t != t_stop:
            self._code = at.TOO_MANY_STEPS

    def _interpolant(self, t: float, y: Array) -> Array:
        if self.fixed:
            return self._hermite(self.kind.order, t, y)
        d, interpolate = self.direction, self.solver.interpolate
        return self._fitted(
            self.kind.order, t, y, lambda times: np.array([interpolate(d * s) for s in times])
        )

    def _tally(self) -> None:
        """Add what the solver has counted, and leave it."""
        if self.solver is None:
            return
        said = self.solver.statistics
        self.counts["njev"] += int(said["njacs"])
        self.counts["nlu"] += int(said["nlus"])
        self.counts["nnewton"] += int(said["nniters"])
        if not self.fixed:
            self.counts["nrejected"] += int(said["nerrfails"]) + int(said["nnfails"])
        self.solver = None

    def _words(self, failure: BaseException | None) -> str:
        text = "no progress" if failure is None else str(failure).strip("'\" ")
        flag = re.search(r"flag (-\d+)", text)
        meaning = FLAGS.get(self.kind.library, {}).get(flag.group(1) if flag else "")
        return f"{text} ({meaning})" if meaning else text


def _known_name(name: str) -> str:
    keys = {known.lower(): known for known in KINDS}
    if name.lower() in keys:
        return keys[name.lower()]
    near = difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.4)
    hint = f"; did you mean assimulo:{keys[near[0]]}?" if near else "."
    raise ValueError(f"there is no solver assimulo:{name}{hint} Known are {', '.join(KINDS)}")


@cache
def _assimulo() -> dict[str, Any]:
    """Import the parts of Assimulo that we use."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = ("solvers", "problem", "exception")
            return {part: import_module(f"assimulo.{part}") for part in parts}
    except ImportError as error:
        raise ImportError(
            'Assimulo is not installed: pip install "featherstep[assimulo]"'
        ) from error


def _set_first_step_of_lsodar(solver: Any, first: float) -> None:
    """Fill the place of the work array that LSODAR has for it but Assimulo does not offer."""
    start = solver.integrate_start

    def integrate_start(t: float, y: Array) -> tuple[int, Array, Any]:
        state, work, integers = start(t, y)
        work[4] = first
        return state, work, integers

    solver.integrate_start = integrate_start


# -------------------------------------------------------------------- peace and quiet


class Silence:
    """Keeps away what Assimulo prints; what Python code prints meanwhile gets through.

    CVode warns through Python's ``print`` whatever its verbosity, Fortran writes to file
    descriptor 1 (and late, from its own buffer), and its wrapper complains on descriptor 2 when
    f raises. As a context manager, this object takes the place of ``sys.stdout``.
    """

    def __init__(self, library: str) -> None:
        self.library = library
        self.stream: Any = None
        self.saved: dict[int, int] = {}
        self.null = -1
        self.dropping = False

    def __enter__(self) -> None:
        self.stream = sys.stdout
        if self.library:
            self.null = os.open(os.devnull, os.O_WRONLY)
            if self.stream is not None:
                self.stream.flush()
            self._mute(1)
        if self.stream is not None:
            sys.stdout = self

    def __exit__(self, *exception: object) -> None:
        if sys.stdout is self:
            sys.stdout = self.stream
        if self.library:
            _flush_fortran(self.library)
            for descriptor, copy in self.saved.items():
                os.dup2(copy, descriptor)
                os.close(copy)
            os.close(self.null)
        self.saved.clear()
        self.null = -1

    def mute_errors(self) -> None:
        """Mute descriptor 2 until the end."""
        if self.null >= 0 and 2 not in self.saved:
            if sys.stderr is not None:
                sys.stderr.flush()
            self._mute(2)

    def _mute(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):  # it may be closed
            self.saved[descriptor] = os.dup(descriptor)
            os.dup2(self.null, descriptor)

    def write(self, text: str) -> int:
        """Write to the real stream, but for CVode's warnings."""
        if text == "[CVode Warning]":
            self.dropping = True
        if self.dropping:  # up to the end of the line
            self.dropping = not text.endswith("\n")
            return len(text)
        if 1 in self.saved:
            os.dup2(self.saved[1], 1)
        written = self.stream.write(text)
        self.stream.flush()
        if 1 in self.saved:
            os.dup2(self.null, 1)
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _flush_fortran(library: str) -> None:
    """Empty the buffer of Fortran's standard output."""
    with contextlib.suppress(OSError, AttributeError):  # where there is no libgfortran
        file = import_module(f"assimulo.lib.{library}").__file__
        ctypes.CDLL(file)._gfortran_flush_i4(None)
