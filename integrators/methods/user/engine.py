"""Methods written in Python, bound to a problem."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping import state as at
from ...stepping.engine import Engine, Options, checked_slope
from ...stepping.workspace import Custom
from .plain_function import step_parts
from .step import custom_dense, custom_step, nothing

__all__ = ["CustomEngine", "Method"]

NEARLY = 1e-3  # how close, relatively, the results of two methods are after a tiny step


@runtime_checkable
class Method(Protocol):
    """What a user's own one-step method must offer.

    ``step(f, t, y, h)`` returns the new state, or a pair (new state, error estimate).
    An attribute ``estimate_order`` gives the order of the estimate, if it is not ``order - 1``.
    What needs more than f has ``bound(problem)``, which returns the method for that problem.
    An attribute ``caution`` that is not empty goes into the message of the run.

    Examples
    --------
    >>> class Midpoint:
    ...     order = 2
    ...     def step(self, f, t, y, h):
    ...         return y + h * f(t + h / 2, y + h / 2 * f(t, y))
    >>> isinstance(Midpoint(), Method)
    True
    """

    order: int

    def step(self, f: Any, t: float, y: NDArray[Any], h: float) -> Any:
        """Advance y by one step of length h."""
        ...


def _name_of(method: Any) -> str:
    """Return what the user calls a step: a function's own name, or Class.step."""
    function = getattr(method, "function", None)
    return getattr(function, "__name__", "") or f"{type(method).__name__}.step"


class CustomEngine(Engine):
    """A method written in Python, bound to a problem."""

    _first: tuple[float, NDArray[Any], NDArray[Any]] | None = None  # the first t, y, f(t, y)
    _begins = True  # until f is asked for the first time

    def __init__(self, method: Method, problem: IVP, options: Options) -> None:
        self.method = method.bound(problem) if hasattr(method, "bound") else method
        if problem.mass is not None:
            raise ValueError(
                "a method given as a Python object solves y' = f(t, y) only; use an implicit "
                "tableau such as RADAU5 for a problem with a mass matrix"
            )
        super().__init__(problem, options)

    def _setup(self) -> None:
        self.order = int(self.method.order)
        self.estimates: bool | None = None  # known after the first step
        if self.options.fixed:
            self.state.estimate_kind = at.ESTIMATE_NONE
            self.estimate_order = self.order
            self.estimate = "none (fixed step)"
        elif self._first_step_estimates():
            self.state.estimate_kind = at.ESTIMATE_EMBEDDED
            self.estimate_order = int(getattr(self.method, "estimate_order", self.order - 1))
            self.estimate = "the method's own"
        else:
            self._use_doubling()
        self._use_hermite()

    def _first_step_estimates(self) -> bool:
        """Try a tiny step to see whether the method returns an error estimate."""
        t0, t1 = self.problem.t_span
        f = self.problem.bind(self.problem.f)
        h = 1e-6 * (t1 - t0) or 1e-6

        def slope(t: float, y: NDArray[Any]) -> NDArray[Any]:
            return checked_slope(f(t, y), self.problem.y0)

        y0 = self.problem.y0
        value, estimate = step_parts(self.method.step(slope, t0, y0.copy(), h), y0.size)
        if estimate is None:
            return False
        size, apart = (np.max(np.abs(x)) for x in (estimate, np.subtract(estimate, value)))
        if apart < NEARLY * size:  # as the second result of a pair is, but no error of a tiny step
            name = _name_of(self.method)
            raise TypeError(
                f"the second thing that {name} returned is close to the first, so it is a second "
                "result; adaptive steps need the estimate of the error, their difference: "
                "return y_new, y_new - y_hat"
            )
        return True

    def _kernels(self) -> tuple[Any, ...]:
        return Custom, custom_step, nothing, custom_dense, nothing

    def _workspace(self, shared: dict[str, Any]) -> Any:
        y, y_new, error = (self.from_real(shared[name]) for name in ("y", "y_new", "error"))
        state, method, slope = self.state, self.method, self.slope
        name = _name_of(method)

        def take_step(t: float) -> None:
            result = method.step(slope, t, y.copy(), float(state.h_tried))
            value, estimate = step_parts(result, y.size)
            if estimate is not None:
                error[:] = checked_slope(estimate, y, name, "the error of each component")
            y_new[:] = checked_slope(value, y, name, "the new value of each component")

        return Custom(**shared, stepper=self.trampoline(take_step))

    @property
    def caution(self) -> str:
        """What the method has to say of the run."""
        return str(getattr(self.method, "caution", ""))

    def slope(self, t: float, y: NDArray[Any]) -> NDArray[Any]:
        """f(t, y), counted; what the run has asked at its start is not asked again by a step."""
        y = np.asarray(y)
        known, self._first = self._first, None
        if known is not None and t == known[0] and np.array_equal(y, known[1]):
            return known[2]
        value = super().slope(t, y)
        if self._begins:
            self._first, self._begins = (t, y.copy(), value.copy()), False
        return value
