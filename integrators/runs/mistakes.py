"""Mistakes that everybody makes once, recognised and named."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..problem import IVP

__all__ = ["explained", "relative_tolerance", "warn_of_swapped"]

TIME_NAMES = ("t", "time")
SWAPPED = (
    "solve calls f(t, y), the time first; this f seems to take the state first, as SciPy's old "
    "odeint has it"
)

#: What Python says of mistakes that are common in a right-hand side, and what to say besides.
KNOWN = {
    "takes 1 positional argument but": "solve calls f(t, y): write t as the first argument, even "
    "if f does not use it",
    "can be converted to Python scalars": "functions of math take one number: use those of NumPy "
    "(np.sin for math.sin), or the components y[0], y[1]",
    "truth value of an array": "an if about y needs one number: use a component y[0], or "
    "np.where for all of them",
}


class explained:
    """Around the first call of f: if that fails for a reason that is known, the error says so.

    A class, because every run passes here, and a generator would take a microsecond.
    """

    def __init__(self, ivp: IVP) -> None:
        self.ivp = ivp

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, RecursionError):
            raise RecursionError(
                f"f calls itself without end ({error}); a right-hand side returns the derivative, "
                "it must not call its own name, nor solve with itself"
            ) from error
        if not isinstance(error, TypeError | ValueError | IndexError):
            return
        if _works_swapped(self.ivp):
            known = next(k for k in (TypeError, IndexError, ValueError) if isinstance(error, k))
            raise known(f"{error}; {SWAPPED}: write f(t, y)") from error
        for said, remedy in KNOWN.items():
            if said in str(error):
                raise type(error)(f"{error}; {remedy}") from error


def _works_swapped(ivp: IVP) -> bool:
    """Whether f(y, t) would have given what f(t, y) did not."""
    try:
        value = np.asarray(ivp.bind(ivp.f)(ivp.y0.copy(), ivp.t_span[0]))
        return value.dtype.kind in "iufc" and value.shape == ivp.y0.shape
    except Exception:  # whatever a function says to arguments of the wrong kind
        return False


def warn_of_swapped(f: Any) -> None:
    """Warn if the names of a function's arguments say that the state comes first.

    With one component f(y, t) gives a number for either order, and a wrong solution.
    """
    code = getattr(f, "__code__", None)
    if code is None:
        return
    first, second = (*code.co_varnames[: code.co_argcount], "", "")[:2]
    if second in TIME_NAMES and first not in (*TIME_NAMES, "self"):
        warnings.warn(
            f"f({first}, {second}): {SWAPPED}. If {second} is your unknown, rename it",
            stacklevel=4,
        )


def relative_tolerance(rtol: Any) -> float:
    """One number for all components; atol may differ between them."""
    if isinstance(rtol, float):
        return rtol
    try:
        values = np.unique(np.asarray(rtol, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"rtol must be a number, got {rtol!r}") from None
    if values.size != 1:
        raise ValueError(
            f"rtol must be one number for all components, got {rtol!r}; let atol be a list, one "
            "for each component, where they differ in size or importance"
        )
    return float(values[0])
