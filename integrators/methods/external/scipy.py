"""Solvers from elsewhere behind our ``solve``: SciPy's here, Assimulo's in ``assimulo.py``.

Each solver chooses its own steps and estimates its own errors. We count its evaluations of f and
take each accepted step from it together with its interpolant; ``Run`` then treats the step like
one of ours. After a jump or a projection a fresh solver starts from the new state. A multistep
method then begins again at order 1; so that not every projection does this to it, it goes on from
its own state as long as that is within the tolerance of the projected one, which is the output.

Interpolants are sampled at Chebyshev points and rewritten as polynomials in θ. That is exact:
those of SciPy and Assimulo are polynomials of known degree.
"""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping import state as at
from ...stepping.dense import hermite_order, hermite_tables
from ...stepping.engine import Options, Stepper, Take, checked_slope
from ...tableau.extension import hermite_extension

__all__ = ["Abort", "External", "ScipyEngine"]

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
SMALLEST_RTOL = 100 * EPS  # SciPy warns below it, Assimulo refuses 0
HIGHEST_DEGREE = 12  # Adams methods go up to this order
MOST_NONFINITE = 2_000  # such values of f in one step before the solver is stopped
MOST_IDLE = 100  # steps that do not move the clock before a solver is stopped
RETRY_FACTOR = 0.25  # a step that gave NaN or Inf is shortened by this much


class Abort(BaseException):
    """Stops a solver from inside f; none takes it for an error that a shorter step would cure."""


class External(Stepper):
    """What all solvers from elsewhere share: f and its Jacobian, the current state, counters."""

    estimate = "by the solver itself"
    multistep = False

    def __init__(self, name: str, problem: IVP, options: Options, fixed: bool = False) -> None:
        if problem.mass is not None:
            raise ValueError(
                f"{name} solves y' = f(t, y) only; for a problem with a mass matrix use one of our "
                "implicit methods, such as RADAU5"
            )
        if options.fixed and not fixed:
            raise ValueError(f"{name} chooses its own steps; leave out step, or give max_step")
        if fixed and not options.fixed:
            raise ValueError(f"{name} has no error control; give a fixed step, for instance 0.01")
        if options.controller is not None or options.max_norm:
            raise ValueError(f"{name} controls errors by its own rules; omit controller and norm")
        super().__init__(problem, options)
        self.name, self.fixed = name, fixed
        t0, t1 = problem.t_span
        self.direction = 1.0 if t1 >= t0 else -1.0
        self.rtol = max(options.rtol, SMALLEST_RTOL)
        self.counts = dict.fromkeys(("nfev", "njev", "nlu", "nsteps", "nrejected", "nnewton"), 0)
        self._t, self._y, self._h = t0, self.to_real(problem.y0).copy(), 0.0
        self._first: float | None = None  # first step of the next solver; None: its own choice
        self._stale = True  # a fresh solver is needed
        self._f = problem.bind(problem.f)
        self._jac = problem.bind(problem.jac) if callable(problem.jac) else lambda t, y: problem.jac
        self._known: tuple[float, NDArray[Any], NDArray[Any]] | None = None
        self._error: BaseException | None = None
        self._bad: float | None = None  # where f was first NaN or infinite in this step
        self._nonfinite = self._idle = 0
        self.set_back = 0  # how often a projection made a multistep method begin anew
        self._reporting = np.geterr()  # how the user's functions are to report overflow and such

    # ------------------------------------------------------------ the problem's functions

    def evaluate(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y) for the solver; what f raises is kept, and stops it."""
        if self._error is not None:  # it tries again in spite of it
            self._abort()
        known = self._known
        if known is not None and known[0] == t and np.array_equal(known[1], y):
            return known[2].copy()
        slope = self._value(t, y)
        if not np.all(np.isfinite(slope)):
            self._bad = t if self._bad is None else self._bad
            self._nonfinite += 1
            if self._nonfinite > MOST_NONFINITE or not np.isfinite(t):
                self._abort()
            self._on_nonfinite()
        return slope

    def _value(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y), checked and counted."""
        self.counts["nfev"] += 1
        slope = self._guarded(lambda: np.array(checked_slope(self._f(t, y.copy()), y), y.dtype))
        return np.asarray(slope)

    def jacobian(self, t: float, y: NDArray[Any], dense: bool = False) -> Any:
        """∂f/∂y; if wished, a sparse one is made dense."""

        def matrix() -> Any:
            J = self._jac(t, y.copy())
            J = J.toarray() if dense and hasattr(J, "toarray") else J
            J = J if hasattr(J, "toarray") else np.asarray(J, dtype=y.dtype)
            if J.shape != (y.size, y.size):
                raise ValueError(f"jac must give a {y.size}×{y.size} matrix, got shape {J.shape}")
            return J

        return self._guarded(matrix)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            with np.errstate(**self._reporting):
                return call()
        except BaseException as error:
            self._error = error
        self._abort()

    def _on_nonfinite(self) -> None:
        """Most solvers shorten the step by themselves."""

    def _abort(self) -> NoReturn:
        raise Abort

    # ------------------------------------------------------------ what a run asks for

    @property
    def t(self) -> float:
        """Current time."""
        return self._t

    @property
    def y(self) -> NDArray[Any]:
        """Current state, a copy."""
        return self.from_real(self._y.copy())

    @property
    def h(self) -> float:
        """Magnitude proposed for the next step."""
        return self._h

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y), counted; raises what f raises."""
        try:
            return self._value(t, np.asarray(y))
        except Abort:
            error = self.error()
        assert error is not None
        raise error

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember f(t0, y0), and the user's first step."""
        self._known, self._first = (self._t, self.problem.y0, slope), first_step
        self._bad, self._nonfinite = None, 0

    def replace_state(self, y: NDArray[Any]) -> None:
        """Put another state in place of the current one, if a fresh start is worth it."""
        moved = np.abs(self.to_real(y) - self._y)
        weights = self.to_real_weights(self.options.atol) + self.rtol * np.abs(self._y)
        if np.any(moved > (weights if self.multistep else 0.0)):
            self.set_back += self.multistep
            self.restart(self._t, y)

    def restart(self, t: float, y: NDArray[Any], h: float | None = None) -> None:
        """Let a fresh solver start from (t, y); one-step methods keep the step size proposed."""
        self._t, self._y, self._stale = t, self.to_real(y).copy(), True
        self._first = h or (None if self.multistep else self._h or None)  # 0 before the first

    def error(self) -> BaseException | None:
        """Return what a function of the problem raised, once."""
        error, self._error = self._error, None
        return error

    def statistics(self) -> dict[str, int]:
        """Counters under their public names."""
        return self.counts

    # ------------------------------------------------------------ steps

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Take steps up to ``t_stop``; each is handed over as it comes."""
        while (t_stop - self._t) * self.direction > 0:
            if self._attempts_left() <= 0:
                return at.TOO_MANY_STEPS
            code = self._advance(t_stop, take)
            if code is not None:
                return code
        return at.REACHED

    def _attempts_left(self) -> int:
        return self.options.max_steps - self.counts["nsteps"] - self.counts["nrejected"]

    @abstractmethod
    def _advance(self, t_stop: float, take: Take) -> int | None:
        """Take one step or more; a code if the march ends."""

    def _stands_still(self, t: float) -> bool:
        """Whether a step did not move the clock; raises if that happens again and again."""
        if (t - self._t) * self.direction > 0:
            return False
        self._idle += 1
        if self._idle > MOST_IDLE:
            raise ArithmeticError("no progress, t + h = t in the machine")
        return True

    def _hand_over(
        self, t: float, y: Array, Q: Array | None, proposed: float, t_stop: float, take: Take
    ) -> int | None:
        """Make (t, y) the current state and let the run deal with it; a code if that ends it."""
        t_old, y_old, step = self._t, self._y, abs(t - self._t)
        self._t, self._y = t, y.copy()
        self._h = max(self._h, proposed) if t == t_stop else proposed  # a last step is cut short
        self._first, self._stale, self._bad = None, False, None
        self._nonfinite = self._idle = 0
        self.counts["nsteps"] += 1
        with np.errstate(**self._reporting):
            if take(t_old, y_old, np.array([t]), y[None].copy(), None if Q is None else Q[None]):
                return at.OK
        too_short = not self.fixed and step < self.options.min_step and t != t_stop
        return at.STEP_TOO_SMALL if too_short else None

    def _failed(self, reason: str, error: BaseException | None = None) -> int | None:
        """Tell why a step failed; None if a shorter one is to be tried."""
        if self._error is not None:
            return at.FUNCTION_RAISED
        if self._bad is None:
            self.failure, self._error = reason, error
            return int(at.Status.EXTERNAL_FAILED)
        tried = [h for h in (abs(self._bad - self._t), self._first, self._h) if h]
        shorter = RETRY_FACTOR * min(tried, default=0.0)
        t0, t1 = self.problem.t_span
        rounding = 16 * EPS * max(abs(self._t), EPS * abs(t1 - t0))
        hopeless = self.fixed or self._nonfinite > MOST_NONFINITE
        if hopeless or shorter <= max(rounding, self.options.min_step):
            return at.NONFINITE
        self.counts["nrejected"] += 1
        self._bad, self._nonfinite = None, 0
        self.restart(self._t, self.y, shorter)
        return None

    def _fitted(self, degree: int, t: float, y: Array, values: Callable[[Array], Any]) -> Array:
        """Coefficients of the step to (t, y) whose interpolant is ``values(times)``, one a row."""
        nodes, to_chebyshev, to_powers = _fit_tables(degree)
        data = np.zeros((degree + 1, self.n))
        data[-1] = y - self._y
        if degree > 1:
            data[1:-1] = values(self._t + nodes[1:-1] * (t - self._t)) - self._y
        return (to_powers @ (to_chebyshev @ data))[1:]  # the constant is data[0] = 0

    def _hermite(self, order: int, t: float, y: Array) -> Array:
        """Coefficients of the step to (t, y) from slopes, for a solver without interpolant."""
        tables = hermite_tables(hermite_extension(hermite_order(order)), self.n)
        data, points, h = tables["hermite_data"], tables["hermite_points"], t - self._t

        def slope(time: float, state: Array) -> NDArray[Any]:
            return self.evaluate(time, self.from_real(state))

        data[0], data[1] = y - self._y, h * self.to_real(slope(self._t, self._y))
        end = slope(t, y)
        self._known = (t, self.from_real(y.copy()), end)  # the next step starts with it
        data[2] = h * self.to_real(end)
        for k, node in enumerate(tables["hermite_nodes"]):
            point = self._y + points[k, : 3 + k] @ data[: 3 + k]
            data[3 + k] = h * self.to_real(slope(self._t + node * h, point))
        return np.asarray(tables["basis"] @ (tables["hermite_P"].T @ data))


@cache
def _fit_tables(degree: int) -> tuple[Array, Array, Array]:
    """Chebyshev points θ on [0, 1]; values there → Chebyshev coefficients → powers of θ.

    In two stages, because the product of the two matrices is ill-conditioned, while Chebyshev
    coefficients of a step decay faster than the entries of the second matrix grow.
    """
    j = np.arange(degree + 1)
    to_chebyshev = (-1.0) ** j[:, None] * np.cos(np.pi * np.outer(j, j) / degree) * 2 / degree
    to_chebyshev[[0, -1]] /= 2
    to_chebyshev[:, [0, -1]] /= 2
    to_powers = np.zeros((degree + 1, degree + 1))
    to_powers[0, 0] = 1.0
    to_powers[:2, 1] = -1.0, 2.0
    for k in range(2, degree + 1):  # T*ₖ = (4θ − 2) T*ₖ₋₁ − T*ₖ₋₂
        to_powers[:, k] = -2 * to_powers[:, k - 1] - to_powers[:, k - 2]
        to_powers[1:, k] += 4 * to_powers[:-1, k - 1]
    return (1 - np.cos(np.pi * j / degree)) / 2, to_chebyshev, to_powers


# -------------------------------------------------------------------- SciPy


class ScipyEngine(External):
    """A ``scipy.integrate.OdeSolver`` class, or a user's subclass, bound to a problem."""

    def __init__(self, solver_class: Any, problem: IVP, options: Options) -> None:
        from scipy.integrate import BDF, DOP853, LSODA, RK45, Radau

        super().__init__(solver_class.__name__, problem, options)
        self.solver_class = solver_class
        self.solver: Any = None
        self.accepts = _options_of(solver_class)
        if np.isfinite(options.max_step) and "max_step" not in self.accepts:
            raise ValueError(f"{self.name} takes no max_step")
        runge_kutta = RK45.__bases__[0]
        self.stages = solver_class.n_stages if issubclass(solver_class, runge_kutta) else 0
        self.multistep = not issubclass(solver_class, (runge_kutta, Radau))
        self.needs_function = issubclass(solver_class, LSODA)  # and a dense matrix, as jac
        degrees = {DOP853: 7, Radau: 3, BDF: 5, LSODA: HIGHEST_DEGREE}
        known = [degree for kind, degree in degrees.items() if issubclass(solver_class, kind)]
        if not known and self.stages:
            known = [getattr(solver_class.P, "shape", (0, 0))[1]]
        self.dense_order = known[0] if known else 0  # of a user's class it is not known
        self.degree = known[0] if known else HIGHEST_DEGREE  # 0: it has no interpolant

    def begin(self, slope: NDArray[Any], first_step: float | None) -> None:
        """Remember f(t0, y0); refuse a first step that the class would ignore."""
        if first_step is not None and "first_step" not in self.accepts:
            raise ValueError(f"{self.name} takes no first_step")
        super().begin(slope, first_step)

    def statistics(self) -> dict[str, int]:
        """Counters, with those of the solver at work."""
        self._retire()
        return self.counts

    def _retire(self) -> None:
        if self.solver is not None:
            self.counts["njev"] += int(self.solver.njev)
            self.counts["nlu"] += int(self.solver.nlu)
        self.solver = None

    def _new(self, t_stop: float) -> Any:
        self._retire()
        options = {
            "rtol": self.rtol,
            "atol": self.options.atol,
            "max_step": self.options.max_step,
            "jac": None if self.problem.jac is None else self._scipy_jacobian(),
            "jac_sparsity": None if self.problem.jac is not None else self.problem.jac_sparsity,
        }
        if self._first is not None:
            options["first_step"] = min(self._first, self.options.max_step, abs(t_stop - self._t))
        given = {k: v for k, v in options.items() if k in self.accepts and v is not None}
        try:
            return self.solver_class(self.evaluate, self._t, self.y, t_stop, **given)
        except ValueError as error:
            if not (self.complex and "complex" in str(error)):
                raise
            raise ValueError(
                f"{self.name} takes no complex states; use a class that does, such as RK45 or BDF"
            ) from None

    def _scipy_jacobian(self) -> Any:
        if callable(self.problem.jac) or self.needs_function:
            return lambda t, y: self.jacobian(t, y, dense=self.needs_function)
        return self.problem.jac

    def march(self, t_stop: float, take: Take, one_by_one: bool) -> int:
        """Take steps; LSODA's way of telling of failure is made an exception."""
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="lsoda: ", category=UserWarning)
            return super().march(t_stop, take, one_by_one)

    def _advance(self, t_stop: float, take: Take) -> int | None:
        try:
            with np.errstate(all="ignore"):
                if self._stale:
                    self.solver = self._new(t_stop)
                    self._stale = False
                solver, before = self.solver, self.solver.nfev
                reason = solver.step()
                rejected = (solver.nfev - before) // self.stages - 1 if self.stages else 0
                self.counts["nrejected"] += rejected
                if solver.status == "failed":
                    return at.NONFINITE if self._bad is not None else self._failed(reason)
                t, y = float(solver.t), self.to_real(solver.y)
                if self._stands_still(t):
                    return None
                if not np.all(np.isfinite(y)):
                    self._bad = t
                    return self._failed("")
                Q = self._interpolant(t, y) if self.options.want_dense else None
        except Abort:
            return self._failed("")
        except Exception as error:  # the solver itself stumbled
            if self.solver is None and self.counts["nsteps"] == 0:
                raise  # it does not take this problem
            return self._failed(f"{type(error).__name__}: {error}", error)
        proposed = float(getattr(solver, "h_abs", abs(t - self._t)))
        return self._hand_over(t, y, Q, proposed, t_stop, take)

    def _interpolant(self, t: float, y: Array) -> Array:
        try:
            values = self.solver.dense_output() if self.degree else None
        except NotImplementedError:
            values, self.degree = None, 0
        if values is None:
            self.dense_order = 3
            return self._hermite(3, t, y)
        return self._fitted(self.degree, t, y, lambda times: self.to_real(values(times).T))


def _options_of(solver_class: type) -> set[str]:
    """Names of the options that a solver class takes, its base classes' included."""
    names: set[str] = set()
    for base in solver_class.__mro__[:-1]:
        if "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            names |= {p.name for p in parameters}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return names
