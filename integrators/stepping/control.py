"""Step-size control.

The next step is h·factor with

    factor = safety · err_n^(−β₁/k) · err_{n−1}^(−β₂/k) · err_{n−2}^(−β₃/k),

where err is the error norm (1 = tolerance) and k = 1 + the order of the error estimate
(:cite:`soderlind2003`). The controllers are data: an entry of :class:`Controller` for each of the
numbers. Implicit methods use :class:`Predictive` (:cite:`gustafsson1994`), which extrapolates how
the error grew in the last two steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..kernels.record import Record

__all__ = ["PI", "PID", "Controller", "I", "Predictive"]

SMALLEST_ERROR = 1e-10  # an error norm of zero would ask for an infinite step


class Control(Record):
    """What the time loop knows of a controller."""

    beta_1: float
    beta_2: float
    beta_3: float
    safety: float
    min_factor: float
    max_factor: float
    exponent: float  # 1/k
    predictive: float  # 1: Gustafsson's prediction is applied, too


@dataclass(frozen=True)
class Controller:
    """A step-size controller.

    Parameters
    ----------
    beta
        (β₁, β₂, β₃), weights of the last three errors.
    safety
        Aim at a step a little shorter than the estimate allows.
    min_factor, max_factor
        Limits of the change from one step to the next.
    predictive
        Also apply Gustafsson's prediction (for implicit methods).

    Examples
    --------
    >>> PI(safety=0.8).beta
    (0.7, -0.4, 0.0)
    """

    beta: tuple[float, float, float] = (1.0, 0.0, 0.0)
    safety: float = 0.9
    min_factor: float = 0.2
    max_factor: float = 10.0
    predictive: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.safety < 1:
            raise ValueError(f"safety must lie between 0 and 1, got {self.safety}")
        if not 0 < self.min_factor < 1 < self.max_factor:
            raise ValueError(
                "expected 0 < min_factor < 1 < max_factor, got "
                f"min_factor = {self.min_factor}, max_factor = {self.max_factor}"
            )
        if len(self.beta) != 3 or not np.all(np.isfinite(self.beta)):
            raise ValueError(f"beta must be three finite numbers, got {self.beta!r}")

    def to_array(self, estimate_order: int) -> NDArray[np.float64]:
        """Return the numbers that the compiled loop needs."""
        limits = (self.safety, self.min_factor, self.max_factor)
        return np.array([*self.beta, *limits, 1 / (estimate_order + 1), float(self.predictive)])


def I(safety: float = 0.9, min_factor: float = 0.2, max_factor: float = 10.0) -> Controller:
    """Return the elementary controller, which looks at the last error only."""
    return Controller((1.0, 0.0, 0.0), safety, min_factor, max_factor)


def PI(safety: float = 0.9, min_factor: float = 0.2, max_factor: float = 10.0) -> Controller:
    """Return a proportional-integral controller: smoother steps where stability limits them."""
    return Controller((0.7, -0.4, 0.0), safety, min_factor, max_factor)


def PID(safety: float = 0.9, min_factor: float = 0.2, max_factor: float = 10.0) -> Controller:
    """Return a controller that weighs the last three errors."""
    return Controller((0.49, -0.34, 0.10), safety, min_factor, max_factor)


def Predictive(safety: float = 0.9, min_factor: float = 0.2, max_factor: float = 8.0) -> Controller:
    """Return Gustafsson's predictive controller, the default of implicit methods."""
    return Controller((1.0, 0.0, 0.0), safety, min_factor, max_factor, predictive=True)


@kernel
def factor_after_success(w, error, h):
    """Return the factor for the next step after an accepted one of length h."""
    k = w.exponent
    error = max(error, SMALLEST_ERROR)
    factor = w.safety * error ** (-w.beta_1 * k)
    if w.nsteps >= 1 and w.beta_2 != 0.0:
        factor *= w.last_error ** (-w.beta_2 * k)
    if w.nsteps >= 2 and w.beta_3 != 0.0:
        factor *= w.error_before ** (-w.beta_3 * k)
    if w.predictive != 0.0:
        # RADAU5: many Newton iterations ask for a shorter step (Hairer & Wanner, IV.8).
        allowed = 2 * w.max_newton + 1
        factor *= allowed / (2 * w.max_newton + w.newton_last)
        if w.nsteps >= 1:
            growth = (error * error / max(w.last_error, 1e-2)) ** k
            prediction = w.safety * abs(h / w.h_last) / growth
            factor = min(factor, prediction)
    factor = min(w.max_factor, max(w.min_factor, factor))
    return min(factor, 1.0) if w.last_rejected == 1 else factor


@kernel
def factor_after_rejection(w, error):
    """Factor after a step whose error was too large: only that error counts."""
    factor = w.safety * error ** (-w.exponent)
    return min(1.0, max(w.min_factor, factor))
