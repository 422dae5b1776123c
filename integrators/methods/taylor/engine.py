"""Taylor-series methods of any order.

The coefficients of the solution's Taylor series come from the traced right-hand side, by
recurrences (``Traced.series``); nobody has to differentiate by hand. Where the derivatives are at
hand, the "economic" form of the course notes takes them: :meth:`Taylor.from_derivatives`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...stepping import state as at
from ...stepping.control import Controller
from ...stepping.engine import Engine, Options, Stepper
from ...stepping.workspace import Series
from ...tracing.calculus.dependence import has_kinks
from ..runge_kutta.divided import divided_by_mass, is_regular
from ..runge_kutta.switching import Ladder
from ..user.plain_function import positional_arguments
from ..user.step import nothing
from .fused import fused_series_function, inputs_size, outputs_size
from .step import (
    ORDER_STEP,
    fused_series_accept,
    fused_series_step,
    series_accept,
    series_dense,
    series_step,
)

__all__ = ["Taylor"]

LARGEST_ORDER = 250  # coefficients of a series that converges for |t| < 0.05 overflow there

# Variable order: how far it may go below and above the order that the tolerance suggests.
BELOW, ABOVE = 10, 16
LOWEST_VARIABLE = 4


class Taylor:
    """A Taylor-series method.

    Parameters
    ----------
    order
        Degree of the Taylor polynomial. By default it is chosen from the tolerance so that the
        work per unit of time is near its minimum: −½ ln(rtol) + 4, rounded up. With "auto" it
        starts there and follows the solution from step to step: up where the series converges
        everywhere, down where the tolerance is loose for the size of the solution.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators import solve
    >>> sol = solve(lambda t, y: np.array([y[1], -np.sin(y[0])]), (0, 1), [np.pi / 2, 0],
    ...             method=Taylor(), rtol=1e-12, atol=1e-12)
    >>> print(f"{sol.y[0, -1]:.10f}")
    1.0749116844
    """

    def __init__(self, order: int | str | None = None) -> None:
        self.variable = isinstance(order, str) and order.lower() == "auto"
        if isinstance(order, str):
            if not self.variable:
                raise ValueError(f'order must be a number, "auto" or None, got {order!r}')
            order = None
        self.fixed_order = None if order is None else _checked_order(order)
        self.name = "Taylor" if order is None else f"Taylor({order})"
        if self.variable:
            self.name = "Taylor(auto)"

    @property
    def order(self) -> int:
        """The order, if it was given."""
        if self.fixed_order is None:
            raise AttributeError("the order of Taylor() is chosen from the tolerance")
        return self.fixed_order

    def order_for(self, rtol: float, fixed_step: bool) -> int:
        """Order used at this tolerance; 20 for fixed steps.

        Jorba & Zou (2005) find −½ ln(tol) + 1 if the work grows with the square of the order.
        For small systems the rest of a step costs as much, and a higher order is faster.
        """
        if self.fixed_order is not None:
            return self.fixed_order
        if fixed_step:
            return 20
        return max(4, math.ceil(-0.5 * math.log(max(rtol, 1e-16))) + 4)

    def bind(self, problem: IVP, options: Options) -> Stepper:
        """Bind the method to a problem; f is traced if it is not yet."""
        order = self.order_for(options.rtol, options.fixed)
        if problem.mass is not None and is_regular(problem.mass):
            problem = divided_by_mass(_traced_problem(problem))
        if self.variable:
            if options.fixed:
                raise ValueError("variable order needs error control; give fixed steps an order")
            return VariableTaylorEngine(order, problem, options)
        return TaylorEngine.reused(
            (order,), problem, options, lambda: TaylorEngine(order, problem, options)
        )

    @staticmethod
    def from_derivatives(derivatives: Sequence[Callable[..., Any]]) -> DerivativeTaylor:
        """Return the Taylor method with derivatives given as functions.

        Parameters
        ----------
        derivatives
            ``[f, f2, f3, …]``: y', y'', y''', … along the solution. The k-th is a function of
            (t, y), or in the economic form of (t, y, y', …, y⁽ᵏ⁻¹⁾): it may use the derivatives
            that were computed before it, so that nothing is substituted by hand.

        Examples
        --------
        y' = ty + t, whose derivatives are y⁽ᵏ⁾ = (k−1) y⁽ᵏ⁻²⁾ + t y⁽ᵏ⁻¹⁾ from the third on:

        >>> from integrators import solve
        >>> f = lambda t, y: t * y + t
        >>> second = lambda t, y, y1: y + t * y1 + 1
        >>> third = lambda t, y, y1, y2: 2 * y1 + t * y2
        >>> fourth = lambda t, y, y1, y2, y3: 3 * y2 + t * y3
        >>> method = Taylor.from_derivatives([f, second, third, fourth])
        >>> sol = solve(f, (0, 0.2), [1.0], method=method, step=0.1)
        >>> print(f"{sol.y[0, -1]:.12f}")
        1.040402341160
        """
        return DerivativeTaylor(derivatives)

    def __repr__(self) -> str:
        if self.variable:
            return 'Taylor("auto")'
        return self.name if self.fixed_order is not None else "Taylor()"


def _traced_problem(problem: IVP) -> IVP:
    """Return the problem with a traced f."""
    from ...tracing import traced_rhs

    return problem.with_(f=traced_rhs(problem.f, problem.n, problem.params.size))


def _checked_order(order: Any) -> int:
    """Return an order as an integer; neither 2.7 nor True is one."""
    try:
        whole = None if isinstance(order, bool) else operator.index(order)
    except TypeError:
        whole = None
    if whole is None:
        raise TypeError(f'order must be an integer, "auto" or None, got {order!r}')
    if not 1 <= whole <= LARGEST_ORDER:
        raise ValueError(f"order must lie between 1 and {LARGEST_ORDER}, got {order}")
    return whole


class DerivativeTaylor:
    """y₊ = y + Σ hᵏ/k! D_k(t, y, y', …) with user-supplied D_k ("economic" Taylor)."""

    def __init__(self, derivatives: Sequence[Callable[..., Any]]) -> None:
        self.derivatives = [] if callable(derivatives) else list(derivatives)
        if not self.derivatives or not all(callable(d) for d in self.derivatives):
            raise TypeError(
                "from_derivatives expects a list of functions [f, f2, …] of (t, y), or of "
                "(t, y, y', …) with the derivatives before each"
            )
        self.order = len(self.derivatives)
        self.name = f"Taylor.from_derivatives({self.order})"
        self._economic = [_takes_derivatives(d, k) for k, d in enumerate(self.derivatives, start=1)]

    def step(self, f: Any, t: float, y: NDArray[Any], h: float) -> NDArray[Any]:
        """Advance y by one step of length h."""
        known = [np.asarray(f(t, y)).reshape(y.shape)]
        for derivative, economic in zip(self.derivatives[1:], self._economic[1:]):
            value = derivative(t, y, *known) if economic else derivative(t, y)
            if value is None:
                raise TypeError(f"derivative {len(known) + 1} returned None; is a return missing?")
            known.append(np.asarray(value).reshape(y.shape))
        result, factor = y.copy(), 1.0
        for k, value in enumerate(known, start=1):
            factor *= h / k
            result = result + factor * value
        return result


def _takes_derivatives(function: Callable[..., Any], k: int) -> bool:
    """Whether D_k is written with (t, y, y', …, y⁽ᵏ⁻¹⁾) rather than with (t, y)."""
    count = positional_arguments(function)
    if k == 1 or count == 2:
        return False
    if count == k + 1 or count is None:
        return True
    names = ", ".join(["t", "y", *(f"y^({i})" for i in range(1, k))])
    raise TypeError(
        f"derivative {k} takes {count} arguments; it must be a function of (t, y) or of ({names})"
    )


class TaylorEngine(Engine):
    """A Taylor method bound to a problem."""

    default_controller = Controller(safety=0.85, min_factor=0.1, max_factor=10.0)

    def __init__(self, order: int, problem: IVP, options: Options) -> None:
        if problem.y0.dtype.kind == "c":
            raise ValueError("Taylor methods need a real state; split it into real and imaginary")
        if problem.mass is not None:
            raise ValueError(
                "Taylor methods cannot treat a singular mass matrix (a differential-algebraic "
                "equation); use RADAU5"
            )
        self.order = order
        super().__init__(_traced_problem(problem), options)

    def _setup(self) -> None:
        self.estimate_order = self.order
        self.dense_order = self.degree = self.order
        self.state.stages = self.order + 1  # rows of K: the coefficients
        self.state.own_length = 1
        if self.options.fixed:
            self.state.estimate_kind = at.ESTIMATE_NONE
            self.estimate = "none (fixed step)"
        else:
            self.state.estimate_kind = at.ESTIMATE_EMBEDDED
            self.estimate = "defect of the Taylor polynomial at the end of the step"

    def _kernels(self) -> tuple[Any, ...]:
        f: Any = self.problem.f  # traced by now
        self._series = f.series(self.order).machine_code()
        self._fused: Any = None
        self.state.kinks = int(has_kinks(f.graph))
        plain = self.state.variable_order == 0 and self.problem.index is None
        plain = plain and self.state.kinks == 0  # the fused step looks at its end only
        if not self.options.fixed and plain:
            k, max_norm = self.problem.params.size, self.options.max_norm
            function = fused_series_function(f, self.order, k, max_norm)
            self._fused = None if function is None else function.code_alone()
        if self._fused is None:
            return Series, series_step, series_accept, series_dense, nothing
        return Series, fused_series_step, fused_series_accept, series_dense, nothing

    def _workspace(self, shared: dict[str, Any]) -> Series:
        address = int(self._series.address)
        fused = self._fused_arrays(shared)
        code = address if self._fused is None else int(self._fused.address)
        return Series(**shared, **fused, series=address, fused=code)

    def _fused_arrays(self, shared: dict[str, Any]) -> dict[str, Any]:
        """Arguments and results of a fused step; other fields become views of them."""
        if self._fused is None:
            return {"fused_in": np.zeros(0), "fused_out": np.zeros(0)}
        n, k, order = self.n, self.problem.params.size, self.order
        fused_in = np.zeros(inputs_size(n, k, order))
        fused_out = np.zeros(outputs_size(n, order))
        views = {
            "p": fused_in[:k],
            "atol": fused_in[k + 1 : k + 1 + n],
            "K": fused_in[k + 2 + n :].reshape(order + 1, n),
            "y_new": fused_out[2 : 2 + n],
        }
        for name, view in views.items():
            view[:] = shared[name]
            shared[name] = view
        return {"fused_in": fused_in, "fused_out": fused_out}


class _OneOrder(TaylorEngine):
    """One of the orders; all of them hand over polynomials of the same degree."""

    def __init__(self, order: int, ladder: Sequence[int], problem: IVP, options: Options) -> None:
        self.limits = ladder[0], ladder[-1]
        super().__init__(order, problem, options)

    def _setup(self) -> None:
        super()._setup()
        self.degree = self.limits[1]
        self.state.variable_order = 1
        self.state.lowest_order, self.state.highest_order = self.limits


class VariableTaylorEngine(Ladder):
    """One of the orders after the other."""

    def __init__(self, order: int, problem: IVP, options: Options) -> None:
        lowest, highest = max(LOWEST_VARIABLE, order - BELOW), min(order + ABOVE, LARGEST_ORDER)
        ladder = range(order - (order - lowest) // 2 * 2, highest + 1, ORDER_STEP)
        super().__init__(ladder, order, problem, options)

    def _make(self, rung: int) -> Engine:
        return _OneOrder(rung, self.rungs, self.problem, self.options)

    def _hand_over(self, before: Any, after: Any) -> None:
        super()._hand_over(before, after)
        after.state.f0_current = 0  # the coefficients there belong to another state
