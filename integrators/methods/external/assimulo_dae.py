"""Assimulo's solvers for differential-algebraic equations, by name: "assimulo:IDA" and its like.

They solve F(t, y, y') = M y' − f(t, y) = 0, and ODASSL also systems with more equations than
unknowns (the formulation "overdetermined" of a mechanical system). What they need to be told, and
nobody tells them elsewhere, follows from the ``index`` of the components:

- IDA and ODASSL must leave algebraic components out of their error test, and IDA and Radau5DAE need
  a large absolute tolerance on components of index 2 and 3, or they stop at once with a step size
  that is too small; accuracy is then that of the components that are left, the positions.
- GLIMDA solves index 1 only, and floods standard output.
- ODASSL and GLIMDA have no interpolant: dense output is a cubic through values and slopes.
"""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...runs.interrupts import Interrupts
from ...stepping.engine import Options, Take
from ...tracing import Traced
from .assimulo import KINDS, QUIET, AssimuloEngine, Kind, Silence, _assimulo
from .scipy import Array, External

__all__ = ["AssimuloDAEEngine", "assimulo_engine"]

DAE_KINDS = {
    "IDA": Kind(5, multistep=True, recovers=True),
    "Radau5DAE": Kind(3, needs_first_step=True, recovers=True, library="radau5"),
    "ODASSL": Kind(3, multistep=True, library="odassl"),
    "GLIMDA": Kind(3, multistep=True, needs_first_step=True, library="glimda"),
}
INTERPOLATES = ("IDA", "Radau5DAE")
NOT_TESTED = 1e8  # absolute tolerance that takes a component out of the error test
#: How often a multistep method that is stuck begins anew, and steps that make it worth while.
MOST_AFRESH, WORTH_IT = 5, 20


def assimulo_engine(name: str, problem: IVP, options: Options) -> External:
    """Bind one of Assimulo's solvers, for ordinary or differential-algebraic equations."""
    keys = {known.lower(): known for known in (*KINDS, *DAE_KINDS)}
    known = keys.get(name.lower())
    if known is None:
        near = difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.4)
        hint = f"; did you mean assimulo:{keys[near[0]]}?" if near else "."
        raise ValueError(
            f"there is no solver assimulo:{name}{hint} Known are {', '.join(keys.values())}"
        )
    if known in DAE_KINDS:
        return AssimuloDAEEngine(known, problem, options)
    return AssimuloEngine(known, problem, options)


class AssimuloDAEEngine(AssimuloEngine):
    """One of Assimulo's solvers for F(t, y, y') = 0, bound to a problem."""

    def __init__(self, name: str, problem: IVP, options: Options) -> None:
        self.kind, self.solver_name = DAE_KINDS[name], name
        highest = 1 if problem.index is None else int(np.max(problem.index))
        if name == "GLIMDA" and highest > 1:
            raise ValueError(
                f"assimulo:GLIMDA solves problems of index 1 only; this one has index {highest}. "
                "Take assimulo:IDA, assimulo:Radau5DAE or RADAU5, or for a mechanical system "
                'formulation("index1", multipliers=True)'
            )
        if isinstance(problem.f, Traced):  # a first call tells it the number of states
            problem.bind(problem.f)(problem.t_span[0], problem.y0)
        External.__init__(self, f"assimulo:{name}", problem.with_(mass=None), options)
        self.problem = problem
        if self.complex:
            raise ValueError(f"{self.name} takes no complex states; split them into two real ones")
        self.assimulo = _assimulo()
        self.solver_class = getattr(self.assimulo["solvers"], name)
        self.dense_order = self.kind.order
        self.silence = Silence(self.kind.library)
        self.interrupts = Interrupts()
        self.solver: Any = None
        self.base, self.index = self._t, 0
        self._code: int | None = None
        self._pending: BaseException | None = None
        self._proposed: float | None = None
        self._fruitless = 0
        self.multistep = self.kind.multistep
        self._mass = self._dense_mass()
        self._extra = getattr(problem, "extra", None)
        self._algebraic = np.all(self._mass == 0.0, axis=1)
        self._slope_before: Array | None = None
        self._exact = self._exact_jacobian()
        self._highest, self._afresh, self._stuck_at = highest, 0, 0

    def _dense_mass(self) -> Array:
        mass = self.problem.mass
        if mass is None:
            return np.eye(self.n)
        return np.asarray(mass.toarray() if hasattr(mass, "toarray") else mass, dtype=float)

    def _exact_jacobian(self) -> Any:
        """∂f/∂y, given or traced."""
        problem, f = self.problem, self.problem.f
        if problem.jac is not None:
            return lambda t, y: self.jacobian(t, y, dense=True)
        if not hasattr(f, "jacobian"):
            return None
        J = problem.bind(f.jacobian())
        return lambda t, y: self._guarded(lambda: J(t, y))

    # ------------------------------------------------------------ the problem as Assimulo sees it

    def _residual(self, s: float, y: Array, yd: Array) -> Array:
        """M dy/ds − f in mirrored time, and the equations beyond."""
        value = self._mass @ yd - self._rhs(s, y)
        if self._extra is None or self.solver_name != "ODASSL":
            return np.asarray(value)
        extra, t = self.problem.bind(self._extra), self.direction * s
        more = self._guarded(lambda: np.asarray(extra(t, y.copy()), dtype=float))
        return np.concatenate([value, more])

    def _first_slope(self) -> Array:
        """y' where the equations determine it directly, 0 elsewhere."""
        slope = self._rhs(self.direction * self._t, self._y.copy())
        rows = ~self._algebraic
        out = np.zeros(self.n)
        solved = np.linalg.lstsq(self._mass[rows], slope[rows], rcond=None)[0]
        out[:] = solved
        return out

    def _problem(self, t_stop: float, take: Take) -> Any:
        module = self.assimulo["problem"]
        overdetermined = self.solver_name == "ODASSL"
        kind = module.Overdetermined_Problem if overdetermined else module.Implicit_Problem
        slope = self._first_slope()
        self._slope_before = slope
        problem = kind(y0=self._y.copy(), yd0=slope, t0=self.direction * self._t)
        problem.res = self._residual
        problem.algvar = (~self._algebraic).astype(int).tolist()
        if self.solver_name == "IDA" and self._exact is not None:
            problem.jac = self._jacobian_of_residual
        problem.handle_result = lambda solver, s, y, yd: None
        problem.step_events = lambda solver: self._reported(solver, t_stop, take)
        problem.handle_event = self._terminate
        return problem

    def _jacobian_of_residual(self, c: float, s: float, y: Array, yd: Array) -> Array:
        """c M − ∂f/∂y."""
        J = self._exact(self.direction * s, np.array(y))
        return np.asarray(c * self._mass - self.direction * J)

    def _new_solver(self, t_stop: float, take: Take) -> Any:
        self._stale = False
        solver = self.solver_class(self._problem(t_stop, take))
        solver.verbosity = QUIET
        solver.display_progress = False
        solver.report_continuously = True
        solver.rtol = self.rtol
        atol = np.array(self.options.atol, dtype=float)
        if self.problem.index is not None:
            atol[self.problem.index > 1] = NOT_TESTED
        solver.atol = atol
        if self.solver_name == "IDA":
            solver.suppress_alg = True
            solver.usejac = self._exact is not None
        elif self.solver_name == "ODASSL":
            solver.state_event_info = lambda: []  # it has none, and is asked for it
        if hasattr(solver, "maxsteps"):
            solver.maxsteps = min(self._attempts_left(), 2**31 - 1)
        largest = self.options.max_step
        if np.isfinite(largest):
            if not hasattr(solver, "maxh"):
                raise ValueError(f"{self.name} takes no max_step")
            solver.maxh = largest
        if self._first is not None:
            solver.inith = min(self._first, largest, abs(t_stop - self._t))
        return solver

    # ------------------------------------------------------------ steps

    def _starts_afresh(self) -> bool:
        """Whether a multistep method that got stuck on a problem of higher index begins anew.

        Its history there contains errors of velocities and multipliers, which no error test sees;
        with order 1 and a short step it often goes on. If it does not get far, it has failed.
        """
        stuck = self._error is None and self._bad is None and self._attempts_left() > 0
        if not (stuck and self.multistep and self._highest > 1):
            return False
        if self._afresh >= MOST_AFRESH or self.counts["nsteps"] - self._stuck_at < WORTH_IT:
            return False
        self._afresh, self._stuck_at = self._afresh + 1, self.counts["nsteps"]
        if hasattr(self.problem, "onto_constraints"):
            self._y = self.problem.onto_constraints(self._t, self._y)
        self._stale = True
        return True

    def _words(self, failure: BaseException | None) -> str:
        words = super()._words(failure)
        if self._highest < 2:
            return words
        return (
            f"{words} This problem has index {self._highest}, and {self.name} controls errors as "
            "if it were 1: take RADAU5, a form of index 1 (index1, projected, baumgarte), or "
            "another tolerance"
        )

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one, if a fresh start is worth it.

        Multistep methods go on as long as the differential components are where they should be:
        λ is computed anew in each step anyway. ODASSL, with all equations, needs no projection.
        """
        if self.solver_name == "ODASSL" and self._extra is not None:
            return
        if self.multistep:
            new = np.array(self._y)
            new[~self._algebraic] = self.to_real(y)[~self._algebraic]
            y = self.from_real(new)
        super().replace_state(y)

    def _interpolant(self, t: float, y: Array) -> Array:
        if self.solver_name in INTERPOLATES:
            return super()._interpolant(t, y)
        h, end = t - self._t, self.direction * np.array(self.solver.yd, dtype=float)
        start = self.direction * self._slope_before if self._slope_before is not None else end
        self._slope_before = self.direction * end
        moved = y - self._y
        return np.array(
            [h * start, 3 * moved - h * (2 * start + end), h * (start + end) - 2 * moved]
        )
