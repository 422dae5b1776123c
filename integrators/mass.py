"""Mass matrices of a problem: what is accepted, and M(t, y) y' = f(t, y) as a plain problem.

A constant M is kept: implicit methods solve with M − hγJ. One that depends on time or state is
divided by where it is regular,

    v = M(t, y)⁻¹ f(t, y) in rows that are not zero,      0 = f(t, y) in those that are,

so that every method, event, output and study that knows a constant M knows this one. If f is
traced, so is v, and its Jacobian is exact, with the part −M⁻¹ (∂M/∂y) v in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Divided", "check_mass", "divided"]

Array = NDArray[Any]

ILL_CONDITIONED = 1e14  # such a matrix is singular, but for rounding errors
PIVOTED = 3  # rows up to which traced functions choose pivots by value, see np.linalg.solve there
REMEDY = (
    "write the problem as a general one, integrators.DAE(F, …) with F(t, y, y') = M(t, y) y' − f"
)


def check_mass(mass: Any, y0: Array) -> None:
    """Refuse a constant mass matrix that does not fit the state."""
    n, shape = y0.size, getattr(mass, "shape", None) or np.shape(mass)
    if shape != (n, n):
        raise ValueError(f"mass must be a {n}×{n} matrix to match y0, got shape {shape}")
    if np.iscomplexobj(mass) and not np.iscomplexobj(y0):
        raise ValueError("a complex mass matrix needs complex states; give y0 as complex numbers")
    if np.iscomplexobj(y0) and hasattr(mass, "toarray"):
        raise ValueError("a sparse mass matrix serves real states only; give mass.toarray()")


class Divided:
    """M(t, y)⁻¹ f(t, y), with algebraic rows as they are.

    Where M is singular, the slope is NaN: steps that lead there are rejected.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        mass: Callable[..., Any],
        regular: Array,
        takes: tuple[bool, bool],
    ) -> None:
        self.f, self.mass, self.regular = f, mass, regular
        self.f_takes, self.mass_takes = takes

    def __call__(self, t: float, y: Array, *p: Any) -> Any:
        """Return the slope, and the residual of algebraic rows."""
        slope = np.asarray(self.f(t, y, *(p if self.f_takes else ())))
        M = dense(self.mass(t, y, *(p if self.mass_takes else ())))
        if self.regular.all():
            return self._solved(M, slope)
        if not is_algebraic(M, self.regular):
            raise ValueError(
                f"rows {np.flatnonzero(~self.regular).tolist()} and columns of mass(t, y) were "
                f"zero at the start, and are not at t = {t:.6g}: which equations are algebraic "
                f"must not change; {REMEDY}"
            )
        result = slope.astype(np.result_type(slope, M), copy=True)
        result[self.regular] = self._solved(
            M[np.ix_(self.regular, self.regular)], slope[self.regular]
        )
        return result

    @staticmethod
    def _solved(M: Array, slope: Array) -> Array:
        try:
            return np.linalg.solve(M, slope)
        except np.linalg.LinAlgError:
            return np.full(slope.shape, np.nan)


def divided(
    f: Callable[..., Any],
    mass: Callable[..., Any],
    t: float,
    y: Array,
    params: Array,
    takes: tuple[bool, bool],
) -> tuple[Callable[..., Any], Array | None]:
    """Return the divided f, and the constant mass matrix that is left: None, or ones and zeros.

    ``takes`` tells whether f and mass take parameters.

    Examples
    --------
    >>> M = lambda t, y: np.diag(1 + y)
    >>> f, left = divided(lambda t, y: 2 * y, M, 0.0, np.ones(2), np.zeros(0), (False, False))
    >>> f(0.0, np.array([1.0, 3.0])), left
    (array([1. , 1.5]), None)
    """
    M = dense(mass(t, y.copy(), *((params,) if takes[1] else ())))
    check_mass(M, y)
    if not np.all(np.isfinite(M)):
        raise ValueError(f"mass(t, y) is not finite at the start, t = {t:g}")
    regular = np.any(M != 0.0, axis=1)
    block = M[np.ix_(regular, regular)]
    if not is_algebraic(M, regular) or (
        regular.any() and not np.linalg.cond(block) < ILL_CONDITIONED
    ):
        raise ValueError(
            "mass(t, y) is singular at the start, and not because rows and the columns of the "
            f"same numbers are zero; {REMEDY}"
        )
    function: Any = Divided(f, mass, regular, takes)
    if hasattr(f, "_derive") and y.dtype.kind != "c":
        f(t, y, *((params,) if params.size else ()))  # tells it n, if it did not know
        function = _traced(f, function, block, params.size)
    return function, None if regular.all() else np.diag(regular.astype(float))


def is_algebraic(M: Array, regular: Array) -> bool:
    """Whether rows and columns that are not among the regular ones are zero."""
    return not (M[~regular].any() or M[:, ~regular].any())


def _traced(f: Any, function: Divided, block: Array, k: int) -> Any:
    """The divided function traced, where its matrix can be and needs no pivots; else as it is."""
    from .tracing import TracingError, traced
    from .tracing.symbols.numpy_functions import known_value

    if len(block) > PIVOTED and not is_definite(block):
        return function
    rows = np.flatnonzero(function.regular)
    algebraic = np.flatnonzero(~function.regular)

    def slope(t: Any, y: Any, p: Any) -> Any:
        values = f(t, y, *((p,) if function.f_takes else ()))
        M = function.mass(t, y, *((p,) if function.mass_takes else ()))
        crossed = [x for i in algebraic for j in range(f.n) for x in (M[i][j], M[j][i])]
        if any(known_value(x) != 0.0 for x in crossed):
            raise TypeError("rows that were zero at the start depend on something")
        found = np.linalg.solve([[M[i][j] for j in rows] for i in rows], [values[i] for i in rows])
        result = [values[i] for i in range(f.n)]
        for i, x in zip(rows, found):
            result[i] = x
        return np.array(result)

    def make() -> Any:
        try:
            if k:
                return traced(slope, n=f.n, params=k)
            return traced(lambda t, y: slope(t, y, None), n=f.n)
        except (TracingError, TypeError, ValueError, AttributeError):
            return function  # a matrix that cannot be traced

    return f._derive(("divided by mass", function.mass), make)


def is_definite(M: Array) -> bool:
    """Whether a matrix is symmetric and positive definite, so that no pivots need be looked for."""
    return bool(np.allclose(M, M.T, rtol=1e-12) and np.linalg.eigvalsh(M)[0] > 0.0)


def dense(matrix: Any) -> Array:
    """The matrix as an array, whatever it is."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
