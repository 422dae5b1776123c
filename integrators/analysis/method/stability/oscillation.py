"""Dispersion and dissipation: what a method does to an oscillation y' = iωy.

In a step the exact solution turns by the angle y = ωh and keeps its size. The method multiplies
by R(iy), so that (:cite:`vanderhouwen1972`)

    φ(y) = y − arg R(iy)    is the phase error (dispersion),
    δ(y) = 1 − |R(iy)|      the loss of amplitude (dissipation).

With log R(z) = z + Σ lₖ zᵏ, odd powers give φ and even ones δ, so their orders are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exact.polynomial import power
from .amplification import StabilityFunction, as_stability_function

__all__ = ["Dispersion", "dispersion"]


@dataclass(frozen=True)
class Dispersion:
    """Phase error and loss of amplitude per step, as curves and by their leading terms.

    ``phase_error`` ≈ phase_constant · y^(phase_order + 1), and likewise for ``amplitude_loss``,
    whose order is None if |R(iy)| = 1 for all y. A constant is None if it is too small for the
    digits of the coefficients.
    """

    name: str
    y: NDArray[np.float64]
    phase_error: NDArray[np.float64]
    amplitude_loss: NDArray[np.float64]
    phase_order: int
    phase_constant: Fraction | None
    amplitude_order: int | None
    amplitude_constant: Fraction | None

    def __str__(self) -> str:
        phase = f"phase error {_term(self.phase_constant, self.phase_order + 1)}"
        if self.amplitude_order is None:
            return f"{phase}, no loss of amplitude"
        loss = _term(self.amplitude_constant, self.amplitude_order + 1)
        return f"{phase}, loss of amplitude {loss}"


def _term(constant: Fraction | None, k: int) -> str:
    return (
        f"= O({power('y', k)})" if constant is None else f"≈ {float(constant):.4g} {power('y', k)}"
    )


def dispersion(method: Any, y_max: float = np.pi, points: int = 400) -> Dispersion:
    """Return phase error and loss of amplitude of a method, for y = ωh in (0, y_max].

    Parameters
    ----------
    method
        A tableau, the name of a scheme, or a stability function.
    y_max
        Largest angle of a step; π is the shortest wave that a grid can show.
    points
        Number of points of the curves.

    Examples
    --------
    >>> print(dispersion("RK4"))
    phase error ≈ 0.008333 y⁵, loss of amplitude ≈ 0.006944 y⁶
    >>> print(dispersion("ImplicitMidpoint"))
    phase error ≈ 0.08333 y³, no loss of amplitude
    """
    if not (np.isfinite(y_max) and y_max > 0):
        raise ValueError(f"expected a positive, finite y_max, got {y_max!r}")
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise ValueError(f"expected a number of points, at least 2, got {points!r}")
    R = as_stability_function(method)
    y = np.linspace(0.0, y_max, points + 1)
    values = R(1j * y)
    phase = np.unwrap(np.angle(values))
    phase_order, phase_constant = _leading(R, 1)
    amplitude_order, amplitude_constant = _leading(R, 0) if R.axis_polynomial else (None, None)
    return Dispersion(
        R.name,
        y[1:],
        (y - phase)[1:],
        1 - np.abs(values[1:]),
        phase_order,
        phase_constant,
        amplitude_order,
        amplitude_constant,
    )


def _leading(R: StabilityFunction, parity: int) -> tuple[int, Fraction | None]:
    """Order and constant of the first term of log R(iy) − iy that is odd, or even, in y."""
    count = 2 * (len(R.numerator) + len(R.denominator)) + 2
    r = R.series(count)
    logarithm = [Fraction(0)]
    for k in range(1, count):
        known = sum((j * logarithm[j] * r[k - j] for j in range(1, k)), Fraction(0))
        logarithm.append((k * r[k] - known) / k)
        room = 10 * k * max(R.series_room(j) for j in range(k + 1))
        deviation = logarithm[k] - (1 if k == 1 else 0)
        if k % 2 == parity and k > R.method_order and abs(deviation) > room:
            # (iy)ᵏ = ±y^k for even k (real part), ±i y^k for odd k; both errors count as losses.
            return k - 1, -deviation * (-1) ** (k // 2)
    least = R.method_order + 1
    return least - 1 + (least % 2 != parity), None
