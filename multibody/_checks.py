"""Checks of user input: every message says what was expected, what came, and what to do.

Only the typed layer and the vectorised functions call these. Kernels check nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "INERTIA_TOLERANCE",
    "ROTATION_TOLERANCE",
    "UNIT_TOLERANCE",
    "Array",
    "ArrayLike",
    "check_rotation",
    "check_symmetric",
    "check_unit",
    "one_of",
    "real_array",
    "real_scalar",
]

Array = npt.NDArray[Any]
ArrayLike = npt.ArrayLike

#: Largest |‖q‖ − 1| accepted for a unit vector or quaternion. An integrator that renormalises
#: after each step stays far below; data typed with seven digits (float32) passes.
UNIT_TOLERANCE = 1e-6

#: Largest entry of RᵀR − 1 accepted for a rotation matrix; twice the unit tolerance, because the
#: norm of a column enters squared.
ROTATION_TOLERANCE = 2e-6

#: Relative size of rounding forgiven in symmetry, definiteness and triangle checks of inertias.
INERTIA_TOLERANCE = 1e-9


def real_array(value: ArrayLike, name: str, shape: tuple[int, ...] = ()) -> Array:
    """Return finite floating-point data whose last axes have the given shape.

    float32 and float64 are kept, integers become float64.

    Examples
    --------
    >>> real_array([1, 2, 3], "r", (3,))
    array([1., 2., 3.])
    >>> real_array([1, 2], "r", (3,))
    Traceback (most recent call last):
        ...
    ValueError: r: expected an array of shape (..., 3), received shape (2,); check the argument
    """
    try:
        array = np.asarray(value)
        if array.dtype not in (np.float32, np.float64):
            if array.dtype.kind not in "biuf":
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected real numbers, received {type(value).__name__} {value!r:.80}; "
            "pass numbers or an array of them"
        ) from None
    if shape and array.shape[-len(shape) :] != shape:
        wanted = ", ".join(str(n) for n in shape)
        raise ValueError(
            f"{name}: expected an array of shape (..., {wanted}), received shape {array.shape}; "
            "check the argument"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name}: expected finite numbers, received NaN or infinity in {array!r:.120}; "
            "find where they come from before they spread"
        )
    return array


def real_scalar(value: ArrayLike, name: str) -> float:
    """Return one finite number as a float."""
    array = real_array(value, name)
    if array.ndim != 0:
        raise ValueError(
            f"{name}: expected one number, received shape {array.shape}; pass a scalar"
        )
    return float(array)


def one_of(value: str, name: str, choices: tuple[str, ...]) -> str:
    """Return the value if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}: expected one of {choices}, received {value!r}; choose one")
    return value


def check_unit(value: ArrayLike, name: str, size: int, remedy: str) -> Array:
    """Return unit vectors, or raise when a norm is farther than the tolerance from 1."""
    array = real_array(value, name, (size,))
    norm = np.sqrt(np.sum(np.square(array, dtype=np.float64), axis=-1))
    if np.any(np.abs(norm - 1.0) > UNIT_TOLERANCE):
        worst = norm.flat[int(np.argmax(np.abs(norm - 1.0)))]
        raise ValueError(
            f"{name}: expected norm 1 within {UNIT_TOLERANCE:g}, received norm {worst:.9g}; "
            f"{remedy}"
        )
    return array


def check_rotation(value: ArrayLike, name: str = "R") -> Array:
    """Return rotation matrices, or raise: not orthogonal, or a reflection (determinant −1).

    Examples
    --------
    >>> check_rotation(np.diag([1.0, 1.0, -1.0]))
    Traceback (most recent call last):
        ...
    ValueError: R: expected determinant +1, received −1 (a reflection); the axes are left-handed: \
swap two columns or change the sign of one
    """
    R = real_array(value, name, (3, 3))
    gap = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3))
    worst = float(gap.max(initial=0.0))
    if worst > ROTATION_TOLERANCE:
        raise ValueError(
            f"{name}: expected an orthogonal matrix within {ROTATION_TOLERANCE:g}, received one "
            f"with max|RᵀR − 1| = {worst:.3g}; project it with rotations.nearest_rotation"
        )
    if np.any(np.linalg.det(R) < 0.0):
        raise ValueError(
            f"{name}: expected determinant +1, received −1 (a reflection); "
            "the axes are left-handed: swap two columns or change the sign of one"
        )
    return R


def check_symmetric(value: ArrayLike, name: str, size: int) -> Array:
    """Return symmetric matrices, or raise with the largest difference across the diagonal."""
    A = real_array(value, name, (size, size))
    gap = np.abs(A - np.swapaxes(A, -1, -2))
    if np.any(gap > INERTIA_TOLERANCE * np.abs(A).max(initial=0.0)):
        raise ValueError(
            f"{name}: expected a symmetric matrix, received one with max|A − Aᵀ| = "
            f"{gap.max():.3g}; use (A + Aᵀ)/2 if the difference is only rounding"
        )
    return A
