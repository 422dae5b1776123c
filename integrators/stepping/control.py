"""Step-size control.

The next step is h·factor with

    factor = safety · err_n^(−β₁/k) · err_{n−1}^(−β₂/k) · err_{n−2}^(−β₃/k),

where err is the error norm (1 = tolerance) and k = 1 + the order of the error estimate
(:cite:`soderlind2003`). The controllers are data: an entry of :class:`Controller` for each of the
numbers, used by the loop of a single run and, traced, by the judge of many in lanes
(``integrators.many.judge``): whatever is not a matter of Newton's iteration is decided by the same
functions. Implicit methods use :class:`Predictive` (:cite:`gustafsson1994`), which extrapolates how
the error grew in the last two steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..kernels.elementary import exp, log
from ..kernels.record import Record

__all__ = ["PI", "PID", "Controller", "I", "Predictive"]

EPS = 2.220446049250313e-16
RESOLVED = 16 * EPS  # steps shorter than this fraction of |t| are not told apart from rounding
SMALLEST_ERROR = 1e-10
LOG_NO_LESS = -4.605170185988091  # log 0.01: as if the last error had been no less
NO_LIMIT = 1e300  # of the ratio of two lengths, as long as there was one step only
KEEP_STEP = 1.2  # implicit methods keep h (and their factorisations) if it would grow by less
NONFINITE_FACTOR = 0.25  # a step that gave NaN or Inf is shortened by this much
STRETCH = 1.01  # a step that ends just short of t_stop is stretched to it …
LEEWAY = 1 + 1e-9  # … unless it becomes longer than max_step, but for the rounding of times


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
def factor_by_errors(c, log_error, log_last, log_before):
    """Return the factor of the formula above, from the logarithms of the errors."""
    memory = c.beta_2 * log_last + c.beta_3 * log_before
    return c.safety * exp(-c.exponent * (c.beta_1 * log_error + memory))


@kernel
def within_limits(c, factor, most):
    """Return a factor that is neither too small nor larger than `most`."""
    return np.minimum(most, np.maximum(c.min_factor, factor))


@kernel
def predicted_factor(c, factor, log_error, log_last, most, iterations, stretch):
    """Gustafsson's prediction: what a factor becomes with the growth of the error in mind.

    `stretch` is the ratio of the last two lengths, or NO_LIMIT if there are no two. As in RADAU5,
    many of the `most` Newton iterations ask for a shorter step, too (Hairer & Wanner, IV.8).
    """
    factor = factor * ((2 * most + 1) / (2 * most + iterations))
    growth = exp(c.exponent * (2.0 * log_error - np.maximum(log_last, LOG_NO_LESS)))
    return np.minimum(factor, c.safety * stretch / growth)


@kernel
def factor_after_success(w, log_error, h):
    """Return the factor for the next step after an accepted one of length h."""
    factor = factor_by_errors(w, log_error, w.log_error, w.log_before)
    if w.predictive != 0.0:
        stretch = abs(h / w.h_last) if w.nsteps >= 1 else NO_LIMIT
        factor = predicted_factor(
            w, factor, log_error, w.log_error, w.max_newton, w.newton_last, stretch
        )
    return within_limits(w, factor, w.max_factor if w.last_rejected == 0 else 1.0)


@kernel
def factor_after_rejection(w, log_error):
    """Factor after a step whose error was too large: only that error counts."""
    return within_limits(w, w.safety * exp(-w.exponent * log_error), 1.0)


# -------------------------------------------------------------------- lengths of steps


@kernel
def log_of_error(norm):
    """Logarithm of an error norm; one of zero would ask for an infinite step."""
    return log(np.maximum(norm, SMALLEST_ERROR))


@kernel
def shortest_step(min_step, t):
    """Return the shortest step that is tried at t: shorter ones are lost in its rounding."""
    return np.maximum(min_step, RESOLVED * np.abs(t))


@kernel
def reach(proposed, max_step):
    """How far the end may be for a step of the proposed length to be stretched to it."""
    return np.minimum(STRETCH * proposed, LEEWAY * max_step)


@kernel
def trial_length(state, slope, length):
    """Length of the Euler step by which :func:`first_length` feels its way.

    `state` and `slope` are norms of y and f in units of the tolerance.
    """
    h = 1e-6 if state < 1e-5 or slope < 1e-5 else 0.01 * state / slope
    return min(h, length)


@kernel
def first_length(h, slope, curvature, exponent, length):
    """First guess of the step (Hairer, Nørsett & Wanner II.4): an Euler step changes little there.

    `curvature` is the norm of the change of f over the trial of length h, divided by h.
    """
    if not np.isfinite(curvature):
        return 1e-3 * h
    largest = max(slope, curvature)
    guess = (0.01 / largest) ** exponent if largest > 1e-15 else max(1e-6, h * 1e-3)
    return min(100 * h, guess, length)


@kernel
def cheaper(w, stages):
    """How much cheaper steps of Radau IIA become, by length and stages, with two stages more.

    The estimate of s stages is of order s, so that steps of s + 2 may be longer by about
    rtol^(1/(s + 3) − 1/(s + 1)).
    """
    longer = max(w.rtol, EPS) ** (1.0 / (stages + 3) - 1.0 / (stages + 1))
    return longer * stages / (stages + 2)
