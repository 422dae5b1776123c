"""R(z) of what has no coefficients: a function R(z), or a step that can only be taken.

One step with h = 1 on y' = λy multiplies by R(λ). A program that knows real numbers alone is given
the equivalent system of two, whose matrix turns and stretches: (a −b; b a) for λ = a + bi.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....methods.names import method_name
from ....methods.user.plain_function import is_step_function, positional_arguments, tableau_of

__all__ = ["SampledStability", "as_sampled"]


class SampledStability:
    """R(z), known by its values.

    Examples
    --------
    >>> trapezoidal = as_sampled(lambda z: (1 + z / 2) / (1 - z / 2))
    >>> abs(trapezoidal(np.array([3j])))
    array([1.])
    """

    poles: NDArray[np.complex128] = np.zeros(0, dtype=complex)
    zeros: NDArray[np.complex128] = np.zeros(0, dtype=complex)
    is_polynomial = False

    def __init__(self, value: Callable[[complex], complex], name: str, quick: bool) -> None:
        self._value, self.name, self.quick = value, name, quick

    def __call__(self, z: Any) -> Any:
        """R at one or many points; NaN where it fails."""
        Z = np.asarray(z, dtype=complex)
        if self.quick:
            try:
                with np.errstate(all="ignore"):
                    found = np.asarray(self._value(Z)).astype(np.complex128)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                found = np.zeros(0, dtype=complex)  # written for one number
            if found.shape == Z.shape:
                return found
        return np.array([self._one(complex(x)) for x in Z.ravel()]).reshape(Z.shape)

    def _one(self, z: complex) -> complex:
        try:
            with np.errstate(all="ignore"):
                return complex(self._value(z))
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return complex("nan")


def as_sampled(method: Any) -> SampledStability | None:
    """Return R of a function R(z), or of a step that is not explicit Runge–Kutta; else None."""
    if not inspect.isroutine(method):
        return None
    name = method_name(method)
    if positional_arguments(method) == 1:
        return SampledStability(method, "R" if name == "<lambda>" else name, True)
    if is_step_function(method) and tableau_of(method) is None:
        return SampledStability(_by_steps(method), name, False)
    return None


def _by_steps(step: Callable[..., Any]) -> Callable[[complex], complex]:
    def value(z: complex) -> complex:
        matrix = np.array([[z.real, -z.imag], [z.imag, z.real]])
        end = np.asarray(step(lambda t, y: matrix @ y, 0.0, np.array([1.0, 0.0]), 1.0), dtype=float)
        return complex(end[0], end[1])

    return value
