"""Taylor-series methods of any order.

The coefficients of the solution's Taylor series come from the traced right-hand side, by
recurrences (``Traced.series``); nobody has to differentiate by hand. Where the derivatives are at
hand, the "economic" form of the course notes takes them: :meth:`Taylor.from_derivatives`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..control import Controller
from ..problem import IVP
from . import state as at
from .custom import nothing
from .engine import Engine, Options
from .series_step import series_accept, series_dense, series_step
from .workspace import Series

__all__ = ["Taylor"]

LARGEST_ORDER = 60


class Taylor:
    """A Taylor-series method.

    Parameters
    ----------
    order
        Degree of the Taylor polynomial. By default it is chosen from the tolerance so that the
        work per unit of time is near its minimum: about −½ ln(rtol) + 1.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators import solve
    >>> sol = solve(lambda t, y: np.array([y[1], -np.sin(y[0])]), (0, 1), [np.pi / 2, 0],
    ...             method=Taylor(), rtol=1e-12, atol=1e-12)
    >>> print(f"{sol.y[0, -1]:.10f}")
    1.0749116844
    """

    def __init__(self, order: int | None = None) -> None:
        if order is not None and not 1 <= int(order) <= LARGEST_ORDER:
            raise ValueError(f"order must lie between 1 and {LARGEST_ORDER}, got {order}")
        self.fixed_order = None if order is None else int(order)
        self.name = "Taylor" if order is None else f"Taylor({order})"

    @property
    def order(self) -> int:
        """The order, if it was given."""
        if self.fixed_order is None:
            raise AttributeError("the order of Taylor() is chosen from the tolerance")
        return self.fixed_order

    def order_for(self, rtol: float, fixed_step: bool) -> int:
        """Order used at this tolerance (Jorba & Zou 2005); 20 for fixed steps."""
        if self.fixed_order is not None:
            return self.fixed_order
        if fixed_step:
            return 20
        return max(4, math.ceil(-0.5 * math.log(max(rtol, 1e-16))) + 1)

    def bind(self, problem: IVP, options: Options) -> Engine:
        """Bind the method to a problem; f is traced if it is not yet."""
        return TaylorEngine(self, problem, options)

    @staticmethod
    def from_derivatives(derivatives: Sequence[Callable[..., Any]]) -> DerivativeTaylor:
        """Return the Taylor method with derivatives given as functions of (t, y).

        Parameters
        ----------
        derivatives
            ``[f, f2, f3, …]``: y', y'', y''', … along the solution (the D₁, D₂, … of the notes).

        Examples
        --------
        >>> from integrators import solve
        >>> f = lambda t, y: t * y + t
        >>> f2 = lambda t, y: y + t * f(t, y) + 1
        >>> method = Taylor.from_derivatives([f, f2])
        >>> sol = solve(f, (0, 0.1), [1.0], method=method, step=0.1)
        >>> print(f"{sol.y[0, -1]:.4f}")
        1.0100
        """
        return DerivativeTaylor(derivatives)

    def __repr__(self) -> str:
        return self.name if self.fixed_order is not None else "Taylor()"


class DerivativeTaylor:
    """y₊ = y + Σ hᵏ/k! D_k(t, y) with user-supplied D_k (notes, "economic" Taylor)."""

    def __init__(self, derivatives: Sequence[Callable[..., Any]]) -> None:
        self.derivatives = list(derivatives)
        if not self.derivatives or not all(callable(d) for d in self.derivatives):
            raise TypeError("from_derivatives expects a list of functions [f, f2, …] of (t, y)")
        self.order = len(self.derivatives)
        self.name = f"Taylor.from_derivatives({self.order})"

    def step(self, f: Any, t: float, y: NDArray[Any], h: float) -> NDArray[Any]:
        """Advance y by one step of length h."""
        result = y.copy()
        factor = 1.0
        for k, derivative in enumerate(self.derivatives, start=1):
            factor *= h / k
            value = np.asarray(f(t, y) if k == 1 else derivative(t, y))
            result = result + factor * value.reshape(y.shape)
        return result


class TaylorEngine(Engine):
    """A Taylor method bound to a problem."""

    default_controller = Controller(safety=0.85, min_factor=0.1, max_factor=10.0)

    def __init__(self, method: Taylor, problem: IVP, options: Options) -> None:
        from ..tracing import Traced, traced

        if problem.y0.dtype.kind == "c":
            raise ValueError("Taylor methods need a real state; split it into real and imaginary")
        if problem.mass is not None:
            raise ValueError("Taylor methods solve y' = f(t, y) only, without a mass matrix")
        f = problem.f
        if not isinstance(f, Traced):
            f = traced(f, n=problem.n, params=problem.params.size or None)
        self.method = method
        super().__init__(problem.with_(f=f), options)

    def _setup(self) -> None:
        self.order = self.method.order_for(self.options.rtol, self.options.fixed)
        self.estimate_order = self.order
        self.dense_order = self.degree = self.order
        self.count[at.STAGES] = self.order + 1  # rows of K: the coefficients
        if self.options.fixed:
            self.count[at.ESTIMATE] = at.ESTIMATE_NONE
            self.estimate = "none (fixed step)"
        else:
            self.count[at.ESTIMATE] = at.ESTIMATE_EMBEDDED
            self.estimate = "defect of the Taylor polynomial at the end of the step"

    def _kernels(self) -> tuple[Any, ...]:
        return Series, series_step, series_accept, series_dense, nothing

    def _workspace(self, shared: dict[str, Any]) -> Series:
        f: Any = self.problem.f  # traced by now
        self._series = f.series(self.order).machine_code()
        return Series(**shared, series=int(self._series.address))
