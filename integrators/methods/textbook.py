"""The methods of the first lectures, written out. Start reading here.

Each function takes N equal steps of length h from (t0, y0) and returns the times and the states,
row k being the state at t0 + k·h. They are for reading and for checking: ``solve`` does the same,
faster and with everything else. As in the course notes, the stages k **include** the factor h.

Only NumPy is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["backward_euler", "euler", "heun", "rk4"]

RHS = Callable[[float, NDArray[Any]], Any]
Result = tuple[NDArray[Any], NDArray[Any]]


def euler(f: RHS, t0: float, y0: ArrayLike, h: float, N: int) -> Result:
    """Forward (explicit) Euler, order 1 (notes, Eqs 1.12–1.13).

    y₊ = y + h f(t, y)
    """
    t = t0 + h * np.arange(N + 1)
    y = np.array([np.asarray(y0, dtype=float)] * (N + 1))
    for k in range(N):
        y[k + 1] = y[k] + h * np.asarray(f(t[k], y[k]))
    return t, y


def heun(f: RHS, t0: float, y0: ArrayLike, h: float, N: int) -> Result:
    """Heun's method, order 2: the mean of the slopes at both ends (notes, Eq 1.19, γ = 1/2).

    k₁ = h f(t, y),  k₂ = h f(t + h, y + k₁),  y₊ = y + (k₁ + k₂)/2
    """
    t = t0 + h * np.arange(N + 1)
    y = np.array([np.asarray(y0, dtype=float)] * (N + 1))
    for k in range(N):
        k1 = h * np.asarray(f(t[k], y[k]))
        k2 = h * np.asarray(f(t[k] + h, y[k] + k1))
        y[k + 1] = y[k] + (k1 + k2) / 2
    return t, y


def rk4(f: RHS, t0: float, y0: ArrayLike, h: float, N: int) -> Result:
    """The classical Runge–Kutta method, order 4 (notes, Eqs 1.20–1.22).

    k₁ = h f(t, y)
    k₂ = h f(t + h/2, y + k₁/2)
    k₃ = h f(t + h/2, y + k₂/2)
    k₄ = h f(t + h,   y + k₃)
    y₊ = y + (k₁ + 2k₂ + 2k₃ + k₄)/6
    """
    t = t0 + h * np.arange(N + 1)
    y = np.array([np.asarray(y0, dtype=float)] * (N + 1))
    for k in range(N):
        k1 = h * np.asarray(f(t[k], y[k]))
        k2 = h * np.asarray(f(t[k] + h / 2, y[k] + k1 / 2))
        k3 = h * np.asarray(f(t[k] + h / 2, y[k] + k2 / 2))
        k4 = h * np.asarray(f(t[k] + h, y[k] + k3))
        y[k + 1] = y[k] + (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return t, y


def backward_euler(
    f: RHS,
    t0: float,
    y0: ArrayLike,
    h: float,
    N: int,
    *,
    tolerance: float = 1e-13,
    max_iterations: int = 50,
) -> Result:
    """Backward (implicit) Euler, order 1 (notes, Eq 1.17): y₊ = y + h f(t + h, y₊).

    With the increment K = y₊ − y this is the equation G(K) = K − h f(t + h, y + K) = 0, solved by
    Newton's method: K ← K − (I − h J)⁻¹ G(K). J is found by differences.
    """
    t = t0 + h * np.arange(N + 1)
    y = np.array([np.atleast_1d(np.asarray(y0, dtype=float))] * (N + 1))
    for k in range(N):
        K = np.zeros_like(y[k])
        for _ in range(max_iterations):
            G = K - h * np.asarray(f(t[k + 1], y[k] + K))
            J = _jacobian(f, t[k + 1], y[k] + K)
            correction = np.linalg.solve(np.eye(K.size) - h * J, G)
            K = K - correction
            if np.max(np.abs(correction)) <= tolerance * (1 + np.max(np.abs(y[k]))):
                break
        else:
            raise RuntimeError(f"Newton's method did not converge at t = {t[k + 1]:g}; reduce h")
        y[k + 1] = y[k] + K
    return t, y


def _jacobian(f: RHS, t: float, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """∂f/∂y by forward differences."""
    base = np.asarray(f(t, y))
    J = np.empty((y.size, y.size))
    for j in range(y.size):
        step = np.sqrt(np.finfo(float).eps) * max(1.0, abs(y[j]))
        shifted = y.copy()
        shifted[j] += step
        J[:, j] = (np.asarray(f(t, shifted)) - base) / step
    return J
