"""Reduction of equations of higher order to a first-order system (notes, Example 1.1).

An unknown x of order m enters the state with its derivatives below the highest,
(x, x', …, x^(m−1)); all but the last line of the new system say "the derivative of x^(j) is
x^(j+1)", the last is the equation itself. Unknowns follow one after the other:

    x''' + y' = x² + t,   y'' + x = t² + 1     →     state (x, x', x'', y, y'), five equations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP, time_span
from ...tracing import Traced, TracingError, traced

__all__ = ["FirstOrder", "first_order"]

NONLINEAR = 1e-8  # relative residual beyond which the equations are not linear in x^(m)


class FirstOrder:
    """A first-order right-hand side f(t, state[, p]) made by :func:`first_order`.

    Attributes
    ----------
    orders : tuple of int
        Order of each unknown.
    n : int
        Length of the state, the sum of the orders.
    names : list of str
        Names of the components of the state, such as "x", "x'", "y".
    """

    def __init__(
        self,
        equations: Callable[..., Any],
        orders: Sequence[int],
        names: Sequence[str],
        residual: bool,
    ) -> None:
        self.equations, self.orders, self.residual = equations, tuple(orders), residual
        self.unknowns = tuple(names)
        self.n = sum(self.orders)
        self.starts = tuple(np.concatenate([[0], np.cumsum(self.orders)[:-1]]).tolist())
        self.names = [
            name + (chr(0x27) * j if j <= 3 else f"^({j})")
            for name, m in zip(names, self.orders)
            for j in range(m)
        ]
        self.__name__ = "first_order"
        # Tracing and IVP ask the signature whether f takes parameters.
        arguments = ["t", "state", *(["p"] if _takes_parameters(equations, len(names)) else [])]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(a, kind) for a in arguments])

    def __call__(self, t: Any, state: Any, *p: Any) -> Any:
        """Return the derivative of the state: shifted, with the highest derivatives filled in."""
        parts = [state[s : s + m] for s, m in zip(self.starts, self.orders)]
        highest = self._solved(t, parts, p) if self.residual else self._called(t, parts, p)
        rows: list[Any] = []
        for part, top in zip(parts, highest):
            rows += [*part[1:], top]
        return np.array(rows)

    def _called(self, t: Any, parts: list[Any], p: tuple[Any, ...]) -> list[Any]:
        result = self.equations(t, *parts, *p)
        values = [result] if np.ndim(result) == 0 else list(result)
        if len(values) != len(self.orders):
            raise ValueError(
                f"the equations returned {len(values)} values for {len(self.orders)} unknowns"
            )
        return values

    def _solved(self, t: Any, parts: list[Any], p: tuple[Any, ...]) -> Any:
        """Solve the equations, which are linear in the highest derivatives, for these."""
        z = np.array([x for part in parts for x in (*part, 0.0)])
        top = np.cumsum([m + 1 for m in self.orders]) - 1
        try:
            constant = self._traced(t, z, *p)
            matrix = self._traced.jacobian()(t, z, *p)[:, top]
        except TracingError:
            constant = self._stacked(t, z, *p)
            units = np.eye(len(z))[top]
            matrix = np.stack([self._stacked(t, z + e, *p) - constant for e in units], axis=1)
        return np.linalg.solve(matrix, -constant)

    def _stacked(self, t: Any, z: Any, *p: Any) -> Any:
        """Return the residual as a function of one vector (x, …, x^(m), y, …)."""
        ends = np.cumsum([m + 1 for m in self.orders])
        full = [z[end - m - 1 : end] for end, m in zip(ends, self.orders)]
        return np.array(self._called(t, full, p))

    @cached_property
    def _traced(self) -> Traced:
        """The residual with its exact derivatives: differences would lose digits."""
        size, m = self.n + len(self.orders), len(self.orders)
        if "p" in self.__signature__.parameters:
            return traced(lambda t, z, p: self._stacked(t, z, p), n=size, outputs=m)
        return traced(lambda t, z: self._stacked(t, z), n=size, outputs=m)

    def join(self, initial: Sequence[Any]) -> NDArray[np.float64]:
        """Return the state from one sequence (x, x', …) for each unknown."""
        given = [np.atleast_1d(np.asarray(part, dtype=float)) for part in initial]
        if len(given) != len(self.orders):
            raise ValueError(
                f"expected initial values for {len(self.orders)} unknowns, got {len(given)}"
            )
        for name, part, m in zip(self.unknowns, given, self.orders):
            if part.shape != (m,):
                raise ValueError(
                    f"{name} is of order {m} and needs {m} initial values "
                    f"({', '.join(self.names[: min(m, 3)])}, …), got {part.size}"
                )
        return np.concatenate(given)

    def split(self, state: Any) -> list[Any]:
        """Return (x, x', …) of each unknown from a state, or from states of shape (n, m)."""
        if len(state) != self.n:
            raise ValueError(f"expected a state of {self.n} components, got {len(state)}")
        return [state[s : s + m] for s, m in zip(self.starts, self.orders)]

    def ivp(self, initial: Sequence[Any], t_span: Sequence[float], **options: Any) -> IVP:
        """Return the initial value problem; options are those of :class:`~integrators.IVP`."""
        options.setdefault("state_names", self.names)
        problem = IVP(self, self.join(initial), time_span(t_span), **options)
        if self.residual:
            self._check_linear(problem)
        return problem

    def _check_linear(self, problem: IVP) -> None:
        t, p = problem.t_span[0], ((problem.params,) if problem.params.size else ())
        parts = self.split(problem.y0)
        try:
            highest = np.asarray(self._solved(t, parts, p), dtype=float)
        except np.linalg.LinAlgError:
            raise ValueError(
                "the equations cannot be solved for the highest derivatives at the start: this is "
                "a differential-algebraic system, or an order is too high"
            ) from None
        full = [np.array([*part, top]) for part, top in zip(parts, highest)]
        left = np.asarray(self._called(t, full, p), dtype=float)
        scale = 1 + np.max(np.abs(highest))
        if np.max(np.abs(left)) > NONLINEAR * scale:
            raise ValueError(
                "the equations are not linear in the highest derivatives; solve them for these "
                "by hand and pass form='explicit'"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the trace, which is made again when needed."""
        return {k: v for k, v in self.__dict__.items() if k != "_traced"}

    def __repr__(self) -> str:
        return f"<first-order form of {', '.join(self.unknowns)}: state ({', '.join(self.names)})>"


def first_order(
    equations: Callable[..., Any],
    orders: int | Sequence[int],
    *,
    names: Sequence[str] | None = None,
    form: str = "explicit",
) -> FirstOrder:
    """Turn equations of any order into a first-order right-hand side.

    Parameters
    ----------
    equations
        ``equations(t, x, y, …[, p])`` with one array (x, x', …) for each unknown. In explicit form
        it returns the highest derivative of each unknown; in residual form the arrays contain the
        highest derivative too, and it returns what must be zero, one number for each unknown.
    orders
        Order of each unknown.
    names
        Names of the unknowns.
    form
        "explicit", or "residual" for equations that are linear in the highest derivatives, such as
        M x'' + C x' + K x = 0.

    Returns
    -------
    FirstOrder
        A right-hand side f(t, state[, p]), which can be traced, with ``ivp(initial, t_span)``.

    Examples
    --------
    Example 1.1 of the notes, with x(0) = x'(0) = 0, x''(0) = 2, y(0) = 0, y'(0) = 2:

    >>> f = first_order(lambda t, x, y: [x[0]**2 + t - y[1], t**2 + 1 - x[0]], (3, 2),
    ...                 names=("x", "y"))
    >>> f
    <first-order form of x, y: state (x, x', x'', y, y')>
    >>> problem = f.ivp([(0, 0, 2), (0, 2)], (0, 1))
    >>> problem.rhs(0.0, problem.y0)
    array([ 0.,  2., -2.,  2.,  1.])

    The same, typed as it is printed:

    >>> g = first_order(
    ...     lambda t, x, y: [x[3] + y[1] - x[0]**2 - t, y[2] + x[0] - t**2 - 1], (3, 2),
    ...     form="residual")
    >>> g(0.0, problem.y0)
    array([ 0.,  2., -2.,  2.,  1.])
    """
    if not callable(equations):
        raise TypeError(f"expected a function of t and the unknowns, got {equations!r}")
    listed = [orders] if isinstance(orders, int | np.integer) else list(orders)
    if not listed:
        raise ValueError("there must be at least one unknown; orders is empty")
    for m in listed:
        if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
            raise ValueError(f"orders must be whole numbers of at least 1, got {orders!r}")
    if names is None:
        names = ["y"] if len(listed) == 1 else [f"y{i}" for i in range(len(listed))]
    if len(names) != len(listed):
        raise ValueError(f"there are {len(listed)} unknowns but {len(names)} names")
    if form not in ("explicit", "residual"):
        raise ValueError(f"form must be 'explicit' or 'residual', got {form!r}")
    reduced = FirstOrder(equations, [int(m) for m in listed], list(names), form == "residual")
    return reduced


def _takes_parameters(equations: Callable[..., Any], unknowns: int) -> bool:
    """Whether the equations have an argument p after t and the unknowns."""
    try:
        arguments = inspect.signature(equations).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 + unknowns
