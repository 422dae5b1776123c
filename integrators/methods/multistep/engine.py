"""A multistep method bound to a problem.

The first k − 1 steps, and one that is cut short by the end of the interval or a stop, are taken
by a one-step method, the *starter*; so are the first steps after a jump. It is bound to the same
problem as an engine of its own, and what it costs is counted.

Between the steps, methods that use slopes have Hermite interpolation; the BDF have the polynomial
through the last k + 1 values, from which they are made: slopes of a stiff problem would magnify
its errors.
"""

from __future__ import annotations

import copy
import weakref
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...manifold import refuse_to_leave
from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Engine, Options
from ...stepping.stepper import Stepper
from ...stepping.workspace import Custom
from ...tableau import Tableau
from ..user.step import nothing
from .implicit import FixedPoint, Newton
from .step import multistep_dense, multistep_step

if TYPE_CHECKING:
    from .method import Multistep

__all__ = ["MultistepEngine", "starter_of"]

Array = NDArray[np.float64]

EXPLICIT = ((1, "ExplicitEuler"), (2, "Heun"), (3, "Kutta3"), (4, "RK4"), (5, "DOPRI5"))
HIGHEST_EXPLICIT = "DOP853"
IMPLICIT_STAGES = 2  # Radau IIA of s stages has order 2s − 1
SAME_TIME = 1e-9  # of a step: the past must be where the step before left it


class MultistepEngine(Engine):
    """A multistep method bound to a problem."""

    is_fully_coupled = False  # what JacobianSource asks of an implicit engine
    jacobian: Any = None
    iterates: Newton | FixedPoint | None = None
    caution = ""

    def __init__(self, method: Multistep, problem: IVP, options: Options) -> None:
        self.method = method
        self.label = method.name or "a multistep method"
        self._refuse(problem, options)
        super().__init__(problem, options)

    def _refuse(self, problem: IVP, options: Options) -> None:
        if not options.fixed:
            raise ValueError(
                f"{self.label} takes fixed steps: give step=h. Methods that choose their own steps "
                "are DOPRI5 or DOP853, RADAU5 for stiff problems, and 'Adams' or 'BDF' as "
                "multistep methods"
            )
        if problem.mass is not None:
            raise ValueError(
                f"{self.label} solves y' = f(t, y) only; use an implicit tableau such as RADAU5 "
                "for a problem with a mass matrix"
            )
        refuse_to_leave(problem, self.label)

    def _setup(self) -> None:
        method = self.method
        self.order = self.estimate_order = method.order
        self.estimate = "none (fixed step)"
        self.state.estimate_kind = at.ESTIMATE_NONE
        self.state.stages = int(method.uses_slopes)
        self.starter = self._bind_starter()
        self._use_hermite()
        self.by_values = self.options.want_dense and not method.uses_slopes
        if self.by_values:
            self.dense_order = method.steps
        if self.options.want_dense:
            self.degree = max(self.degree, method.steps, getattr(self.starter, "degree", 0))
        depth = method.steps
        self.Y, self.F = np.zeros((depth, self.n)), np.zeros((depth, self.n))
        self.known = 0  # how many values of the past there are, the newest included
        self.t_next = np.nan  # where they end
        self._read_coefficients()

    def _read_coefficients(self) -> None:
        """Rows of doubles, for the newest value first."""
        method = self.method
        if not method.is_zero_stable:
            self.caution = (
                f"{self.label} is not zero-stable: its errors grow the more the shorter the step; "
                "analysis.zero_stability says why"
            )
        elif not method.is_consistent:
            self.caution = (
                f"{self.label} is not consistent: it does not converge to the solution; "
                "check its coefficients"
            )
        self.past = _rows(method)
        self.predicts = None if method.predictor is None else _rows(method.predictor)
        self.beta = float(method.beta[-1])
        k = method.steps
        self.extrapolates = np.array([(-1.0) ** j * comb(k, j + 1) for j in range(k)])
        self.through_values = _through_values(k) if self.by_values else None

    def _bind_starter(self) -> Stepper:
        from ..runge_kutta.engine import engine_for

        chosen = starter_of(self.method)
        options = copy.copy(self.options)
        options.outputs = np.zeros(0)
        plain = self.problem.with_(events=(), project=None)
        self.shares_slope = isinstance(chosen, Tableau)  # others keep more than the slope
        if isinstance(chosen, Tableau):
            return engine_for(chosen, plain, options)
        if not hasattr(chosen, "bind") or getattr(chosen, "steps", 1) != 1:
            raise TypeError(
                "the starter must be a one-step method: a Tableau, a name of the catalogue, or "
                f"Taylor(p); got {chosen!r}"
            )
        bound: Stepper = chosen.bind(plain, options)
        return bound

    def _kernels(self) -> tuple[Any, ...]:
        return Custom, multistep_step, nothing, multistep_dense, nothing

    def _workspace(self, shared: dict[str, Any]) -> Custom:
        self.y_now, self.y_new, self.f_now = shared["y"], shared["y_new"], shared["f0"]
        self.Q = shared["Q"]
        if not self.method.is_explicit:
            kind = Newton if self.method.iteration == "newton" else FixedPoint
            self.iterates = kind(weakref.proxy(self), self.beta)
        engine = weakref.proxy(self)  # a bound method of its own would make a cycle
        return Custom(**shared, stepper=self.trampoline(lambda t: engine._take_step(t)))

    # ------------------------------------------------------------ a step

    def _take_step(self, t: float) -> None:
        h = float(self.state.h_tried)
        self.state.last_reason, self.state.half_rows = at.OK, 0
        self._remember(t, h)
        if self.known < self.method.steps or h != self.state.h_fixed:
            self._start(t, h)
            return
        if self.predicts is not None:
            self._correct(t + h, h)
        else:
            self.y_new[:] = self._from_past(self.past, h)
            if self.iterates is not None:
                self._iterate(t + h, h)
        if self.through_values is not None:
            self._interpolate()

    def _remember(self, t: float, h: float) -> None:
        """Enter the current value, which may have been projected since it was computed."""
        if abs(t - self.t_next) > SAME_TIME * abs(h):
            self.known = 0
        if self.known:
            self.Y[1:], self.F[1:] = self.Y[:-1].copy(), self.F[:-1].copy()
        self.Y[0] = self.y_now
        if self.state.stages:
            self.F[0] = self.f_now
        self.known = min(self.known + 1, len(self.Y))
        self.t_next = t + h

    def _from_past(self, rows: tuple[Array, Array], h: float) -> Array:
        a, b = rows
        with np.errstate(over="ignore", invalid="ignore"):  # the loop says that it blew up
            value: Array = a @ self.Y[: len(a)]
            if self.state.stages:
                value += h * (b @ self.F[: len(b)])
        return value

    def _correct(self, t: float, h: float) -> None:
        """P(EC)ᵐ; the last evaluation is the first of the next step."""
        assert self.predicts is not None
        known = self._from_past(self.past, h)
        self.y_new[:] = self._from_past(self.predicts, h)
        for _ in range(self.method.corrections):
            self.y_new[:] = known + h * self.beta * self.limited_slope(t, self.y_new)

    def _iterate(self, t: float, h: float) -> None:
        """Solve for the new value, from where the last values point to."""
        assert self.iterates is not None
        known = self.y_new.copy()
        y = self.extrapolates @ self.Y
        status = self.iterates.solve(t, y, known, h, self.beta)
        if status != at.OK:  # once more, from the last value and with nothing kept
            self.iterates.forget()
            y = self.Y[0].copy()
            status = self.iterates.solve(t, y, known, h, self.beta)
        self.y_new[:] = y
        self.state.last_reason = status

    def _start(self, t: float, h: float) -> None:
        """Let the starter take the step."""
        starter = self.starter
        starter.restart(t, self.from_real(self.y_now.copy()))
        if self.state.stages and self.shares_slope:
            starter.begin(self.from_real(self.f_now.copy()), None)

        def take(t: float, y: Array, ends: Array, states: Array, Q: Array | None) -> bool:
            self.y_new[:] = states[-1]
            if Q is not None:
                self.Q[:] = 0.0
                self.Q[: len(Q[-1])] = Q[-1]
                self.state.half_rows = 1
            return True

        end = float(self.state.t_stop)
        near = abs(end - (t + h)) <= SAME_TIME * abs(h)
        code = starter.march(end if near else t + h, take, True)
        if code < 0:
            error = starter.error()
            if error is not None:
                raise error
            self.state.last_reason = code

    def _interpolate(self) -> None:
        """Q of the polynomial through the new and the last k values."""
        values = np.vstack([self.y_new, self.Y]) - self.Y[0]
        self.Q[:] = 0.0
        self.Q[: self.method.steps] = self.through_values @ values
        self.state.half_rows = 1

    def past_sizes(self) -> Array:
        """Sizes that the components have had in the values the step starts from."""
        return np.asarray(np.abs(self.Y).max(axis=0))

    def limited_slope(self, t: float, y: Array) -> Array:
        """f(t, y) as a real vector, counted; not asked beyond a jump that is ahead."""
        state = self.state
        if state.limited and (state.t_limit - t) * state.direction < 0.0:
            t = float(state.t_limit)
        return self.to_real(self.slope(t, self.from_real(y)))

    # ------------------------------------------------------------ the run

    def forget(self) -> None:
        """Use nothing of the past: the starter takes the next steps."""
        super().forget()
        self.known = 0
        if self.iterates is not None:
            self.iterates.forget()

    def stop(self) -> None:
        """End before the next step."""
        super().stop()
        self.starter.stop()

    def release(self) -> None:
        """Told at the end of a run."""
        self.starter.release()

    def statistics(self) -> dict[str, int]:
        """Counters, with the starter's work; its steps are counted once."""
        own, starter = super().statistics(), self.starter.statistics()
        work = ("nfev", "njev", "nlu", "nnewton")
        return {name: n + (starter[name] if name in work else 0) for name, n in own.items()}


def starter_of(method: Multistep) -> Any:
    """Return the one-step method of the first steps: the one given, or the default."""
    chosen = default_starter(method) if method.starter is None else method.starter
    if not isinstance(chosen, str):
        return chosen
    from ...catalogue import from_name_or_file

    return from_name_or_file(chosen)


def default_starter(method: Multistep) -> str:
    """Name of a Runge–Kutta method of at least the same order, implicit if the method is."""
    p = method.order
    if method.is_explicit:
        return next((name for order, name in EXPLICIT if order >= p), HIGHEST_EXPLICIT)
    return f"RadauIIA{max(IMPLICIT_STAGES, p // 2 + 1)}"


def _rows(method: Multistep) -> tuple[Array, Array]:
    """Weights of past values and slopes in the new value."""
    a = np.array([-float(x) for x in method.alpha[-2::-1]])
    b = np.array([float(x) for x in method.beta[-2::-1]])
    return a, b


def _through_values(k: int) -> Array:
    """Coefficients of θ, …, θᵏ from values at θ = 1, 0, −1, …, 1 − k, less the one at 0."""
    nodes = np.arange(1.0, -k, -1.0)
    powers = nodes[:, None] ** np.arange(k + 1.0)
    return np.asarray(np.linalg.inv(powers)[1:])
