"""A run in your own hands: one step at a time.

``solve`` runs to the end. :func:`stepper` gives the same method, loop and step-size control as an
object with a ``step``: for lessons that look at every step, for co-simulation, and for programs
that have a loop of their own (``integrators.scipy`` puts it behind SciPy's ``solve_ivp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import IntegrationError
from .given import as_problem
from .methods.names import chosen_method
from .options import USUAL_ATOL, USUAL_RTOL, Settings, bound_engine
from .problem import IVP
from .runs.consistency import check_consistent
from .runs.endings import ending
from .runs.mistakes import explained
from .runs.solution import DenseOutput
from .stepping.state import Status

__all__ = ["Stepwise", "stepper"]

CUT = 1e-9  # relative: a fixed step shorter by more than this was cut short by a stop


def stepper(
    problem: Any,
    t_span: Sequence[float] | str | None = None,
    y0: ArrayLike | None = None,
    *,
    method: Any = "auto",
    step: float | None = None,
    rtol: float = USUAL_RTOL,
    atol: ArrayLike = USUAL_ATOL,
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int | None = None,
    norm: str = "rms",
    controller: Any = None,
    linear_solver: str | None = None,
    preconditioner: Any = "auto",
    bandwidth: Any = None,
    **fields: Any,
) -> Stepwise:
    """Start a run that is taken step by step.

    Parameters
    ----------
    problem, t_span, y0
        As in :func:`solve`. Events and projections belong to a run as a whole: problems that have
        them are refused. A name in place of t_span is the method: ``stepper(problem, "RADAU5")``.
    method, step, rtol, atol, first_step, max_step, min_step, max_steps, norm, controller, \
    linear_solver, preconditioner, bandwidth
        As in :func:`solve`.
    **fields
        Further fields of the problem, such as ``params`` or ``jac``.

    Examples
    --------
    >>> run = stepper(lambda t, y: -y, (0, 1), [1.0], method="RK4", step=0.25)
    >>> while run.step():
    ...     print(f"{run.t:.2f} {run.y[0]:.6f}")
    0.25 0.778809
    0.50 0.606543
    0.75 0.472381
    1.00 0.367894
    >>> print(f"{run.interpolate(0.9)[0]:.4f}")
    0.4066
    """
    if isinstance(t_span, str):  # stepper(problem, "RADAU5")
        t_span, method = None, t_span
    ivp = as_problem(problem, t_span, y0, fields).for_run()
    if ivp.schedule is not None and len(np.ravel(ivp.schedule.times(*ivp.t_span))):
        raise ValueError(
            "the problem has times to step on (schedule), which belong to a run as a whole; use "
            "solve, or drop them by problem.with_(schedule=None)"
        )
    has = "events" if ivp.events else "a projection" if ivp.project is not None else ""
    if has:
        raise ValueError(
            f"the problem has {has}, which belong to a run as a whole; use solve, or drop them by "
            "problem.with_(events=(), project=None) and do it between the steps (`restart`)"
        )
    how = Settings(
        method=method, step=step, rtol=rtol, atol=atol, dense_output=True, controller=controller,
        norm=norm, first_step=first_step, max_step=max_step, min_step=min_step,
        max_steps=max_steps, linear_solver=linear_solver, preconditioner=preconditioner,
        bandwidth=bandwidth,
    )  # fmt: skip
    engine, first = bound_engine(chosen_method(method), ivp, how, None, may_end_early=True)
    return Stepwise(ivp, engine, first)


class Stepwise:
    """A run that waits between its steps; see :func:`stepper`.

    Attributes
    ----------
    t, y
        Where it is.
    t_old, y_old
        Where the last step began.
    h
        Magnitude proposed for the next step.
    status
        None while there is more to do, else how the run ended.
    message
        The same in words.
    """

    def __init__(self, ivp: IVP, engine: Any, first_step: float | None) -> None:
        self.problem = ivp
        self._engine = engine
        self.t, self.y = ivp.t_span[0], ivp.y0.copy()
        self.t_old, self.y_old = self.t, self.y
        self.status: Status | None = None
        self.message = ""
        self._polynomial: DenseOutput | None = None
        if ivp.t_span[0] == ivp.t_span[1]:
            self._end(Status.FINISHED)
            return
        with explained(ivp):
            slope = engine.slope(ivp.t_span[0], ivp.y0)
        if not np.isfinite(slope).all():
            raise ValueError(f"f(t0, y0) is not finite at t0 = {self.t:g}: {slope}")
        if ivp.mass is not None:
            check_consistent(ivp, slope, engine.options)
        engine.begin(slope, first_step)

    def __repr__(self) -> str:
        how = "under way" if self.status is None else self.status.name
        return f"<Stepwise at t = {self.t:.9g}, {how}, {self.statistics['nsteps']} steps>"

    @property
    def h(self) -> float:
        """Magnitude proposed for the next step."""
        return float(self._engine.h)

    @property
    def statistics(self) -> dict[str, int]:
        """Counters, under the names that they have in a solution."""
        return dict(self._engine.statistics())

    def step(self, t_stop: float | None = None) -> bool:
        """Take one step; whether there was one to take.

        Parameters
        ----------
        t_stop
            Do not step beyond this time, which must lie ahead; by default the end of the interval.

        Raises
        ------
        IntegrationError
            If no step can be taken: f fails, or steps would become too small. `status` says how.
        """
        if self.status is not None:
            return False
        end = self.problem.t_span[1]
        forward = 1.0 if end >= self.problem.t_span[0] else -1.0
        stop = end if t_stop is None else float(t_stop)
        if not (stop - self.t) * forward > 0 or (stop - end) * forward > 0:
            raise ValueError(f"t_stop must lie between t = {self.t:g} and {end:g}, got {t_stop}")
        code = self._engine.march(stop, self._take, True)
        if code < 0:
            error = self._engine.error()
            self._end(Status(code), error)
            raise IntegrationError(
                self.message, t=self.t, h=self.t - self.t_old, y=self.y
            ) from error
        if self.t == end:
            self._end(Status.FINISHED)
        elif self._was_cut_short():
            self._engine.restart(self.t, self.y)  # the fixed steps are counted from here
        return True

    def _was_cut_short(self) -> bool:
        """Whether t_stop has made the last of fixed steps a shorter one."""
        step = self._engine.options.step
        return step is not None and abs(self.t - self.t_old) < (1 - CUT) * step

    def _take(
        self,
        t: float,
        y: NDArray[Any],
        ends: NDArray[np.float64],
        states: NDArray[Any],
        Q: NDArray[Any] | None,
    ) -> bool:
        engine = self._engine
        assert Q is not None
        self.t_old, self.y_old = t, engine.from_real(y.copy())
        self.t, self.y = float(ends[-1]), engine.from_real(states[-1].copy())
        self._polynomial = DenseOutput(
            np.array([t]),
            np.array([self.t - t]),
            engine.from_real(y.copy())[None],
            engine.from_real(Q[-1:]),
            engine.dense_order,
            end=self.t,
            move=engine.move,
        )
        return True

    def _end(self, status: Status, error: BaseException | None = None) -> None:
        self.status = status
        self.message = ending(status, self._engine, error)

    def interpolate(self, t: ArrayLike) -> NDArray[Any]:
        """Return y at times within the last step."""
        if self._polynomial is None:
            raise ValueError("there is no step yet; call step() first")
        return self._polynomial(t)

    @property
    def last_step(self) -> DenseOutput:
        """The solution over the last step, as a function of time."""
        if self._polynomial is None:
            raise ValueError("there is no step yet; call step() first")
        return self._polynomial

    def restart(self, y: ArrayLike, t: float | None = None) -> None:
        """Go on from another state: after an impulse, a new set-point, data from elsewhere.

        Parameters
        ----------
        y
            The state.
        t
            Its time; by default the present one.
        """
        if self.status is not None:
            raise ValueError(f"the run has ended ({self.message}); start another one")
        state = np.asarray(y, dtype=self.problem.y0.dtype)
        if state.shape != self.problem.y0.shape or not np.isfinite(state).all():
            raise ValueError(
                f"expected a finite state of shape {self.problem.y0.shape}, received {y!r}"
            )
        self.t = self.t if t is None else float(t)
        self.y = state.copy()
        self._engine.restart(self.t, state)
