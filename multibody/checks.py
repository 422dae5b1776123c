"""Checks of user input: every message says what was expected, what came, and what to do.

Only the typed layer and the vectorised functions call these. Kernels check nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "INERTIA_TOLERANCE",
    "QUATERNION_TOLERANCE",
    "ROTATION_TOLERANCE",
    "UNIT_TOLERANCE",
    "Array",
    "ArrayLike",
    "assume",
    "blank",
    "check_rank_tolerance",
    "check_rotation",
    "check_symmetric",
    "check_unit",
    "direction",
    "exact_array",
    "floats",
    "has_symbols",
    "number",
    "one_of",
    "one_precision",
    "real_array",
    "real_scalar",
    "unit_quaternion",
]

Array = npt.NDArray[Any]
ArrayLike = npt.ArrayLike

#: Largest |‖q‖ − 1| accepted for a unit vector or quaternion. An integrator that renormalises
#: after each step stays far below; data typed with seven digits (float32) passes.
UNIT_TOLERANCE = 1e-6

#: Largest |‖p‖ − 1| of a quaternion p in a position q. Within it the direction counts, and p is
#: divided by its norm; beyond, no rotation can have been meant. Digits left out by hand (0.707),
#: dense output between steps and runs that let quaternions drift stay within it.
QUATERNION_TOLERANCE = 1e-2

#: Squares of norms between these are within the tolerance, and nearer to 1 than the last, unit but
#: for rounding: such quaternions keep their digits.
SQUARE_MIN, SQUARE_MAX = (1.0 - QUATERNION_TOLERANCE) ** 2, (1.0 + QUATERNION_TOLERANCE) ** 2
SQUARE_ROUNDING = 8 * float(np.finfo(float).eps)

#: Largest entry of RᵀR − 1 accepted for a rotation matrix; twice the unit tolerance, because the
#: norm of a column enters squared.
ROTATION_TOLERANCE = 2e-6

#: Relative size of rounding forgiven in symmetry, definiteness and triangle checks of inertias.
INERTIA_TOLERANCE = 1e-9


def has_symbols(array: Array) -> bool:
    """Whether an array holds symbols of a function that is being traced (``integrators.tracing``).

    What depends on them is not known yet: checks of a model's numbers are then noted, and looked
    at when the numbers are known (``multibody.runs.families.family``).
    """
    if array.dtype != object or "integrators.tracing.symbols.symbol" not in sys.modules:
        return False
    from integrators.tracing.symbols.symbol import Symbol

    return any(isinstance(x, Symbol) for x in array.flat)


def floats(array: Array) -> Array:
    """Array of double precision, or as it is if it holds symbols."""
    return array if has_symbols(array) else array.astype(np.float64)


def one_precision(*values: Any) -> list[Array]:
    """Arrays of one precision: single if all arrays given are, double otherwise; symbols stay.

    Lists and numbers follow the arrays.
    """
    given = [np.asarray(v) for v in values]
    kinds = {v.dtype for v in values if isinstance(v, np.ndarray | np.floating)}
    dtype = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
    return [a if has_symbols(a) else a.astype(dtype) for a in given]


def number(value: Any) -> Any:
    """A float, or a symbol as it is."""
    if isinstance(value, np.ndarray):
        value = value[()]
    return value if hasattr(value, "graph") else float(value)


def assume(holds: Callable[[Array], Array], values: Array) -> None:
    """Note a check of values with symbols, ``holds(values of many models)``, for later."""
    from integrators.tracing.decisions import assume

    assume(holds, values)


def blank(shape: tuple[int, ...], symbols: bool) -> Array:
    """Array of zeros, which can hold symbols if it is to."""
    return np.full(shape, 0.0, dtype=object if symbols else float)


def real_array(
    value: ArrayLike, name: str, shape: tuple[int, ...] = (), *, finite: bool = True
) -> Array:
    """Return finite floating-point data whose last axes have the given shape.

    float32 and float64 are kept, integers become float64. This is for functions that work on
    many vectors at once; those that take one vector use :func:`exact_array`.

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
            if has_symbols(array):
                finite = False
            elif array.dtype.kind not in "biuf":
                raise TypeError
            else:
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
    if finite and not np.isfinite(array).all():
        raise ValueError(
            f"{name}: expected finite numbers, received NaN or infinity in {array!r:.120}; "
            "find where they come from before they spread"
        )
    return array


def exact_array(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    """Return a fresh float array of exactly the given shape: one point, one vector, one matrix.

    Examples
    --------
    >>> exact_array([1, 2, 3], "point", (3,))
    array([1., 2., 3.])
    >>> exact_array(np.eye(3), "point", (3,))
    Traceback (most recent call last):
        ...
    ValueError: point: expected 3 numbers, received shape (3, 3); give one at a time
    """
    array = real_array(value, name)
    if array.shape != shape:
        wanted = f"{shape[0]} numbers" if len(shape) == 1 else f"an array of shape {shape}"
        remedy = "give one at a time" if array.ndim > len(shape) else "check the argument"
        raise ValueError(f"{name}: expected {wanted}, received shape {array.shape}; {remedy}")
    return floats(np.array(array))


def direction(value: ArrayLike, name: str) -> Array:
    """Return the unit vector along three numbers of any size; raise if all are zero.

    A vector that is a unit vector already keeps its last digits, so that files give it back.

    Examples
    --------
    >>> direction((3e200, 0, 4e200), "axis")
    array([0.6, 0. , 0.8])
    """
    a = exact_array(value, name, (3,))
    largest = np.abs(a).max()
    if largest == 0.0:
        raise ValueError(f"{name}: expected three numbers that are not all zero, received zeros")
    if not 1e-150 < largest < 1e150:  # squares would leave the range of doubles
        a = a / largest
    norm = np.linalg.norm(a)
    return (a if abs(norm - 1.0) <= 4 * np.finfo(float).eps else a / norm) + 0.0


def real_scalar(value: ArrayLike, name: str) -> float:
    """Return one finite number as a float."""
    array = real_array(value, name)
    if array.ndim != 0:
        raise ValueError(
            f"{name}: expected one number, received shape {array.shape}; pass a scalar"
        )
    value_alone: Any = array[()]
    return value_alone if array.dtype == object else float(value_alone)


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


def unit_quaternion(p: Array) -> bool:
    """Divide four numbers of a position by their norm, in place; False if it is too far from 1.

    Examples
    --------
    >>> p = np.array([1.001, 0.0, 0.0, 0.0])
    >>> unit_quaternion(p), p, unit_quaternion(2 * p)
    (True, array([1., 0., 0., 0.]), False)
    """
    square = float(p @ p)
    if not SQUARE_MIN <= square <= SQUARE_MAX:
        return False
    if abs(square - 1.0) > SQUARE_ROUNDING:
        p /= np.sqrt(square)
    return True


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
    worst = gap.ravel().max(initial=0.0)
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
    """Return a symmetric matrix, or raise with the largest difference across the diagonal."""
    A = exact_array(value, name, (size, size))
    gap = np.abs(A - A.T)
    if np.any(gap > INERTIA_TOLERANCE * np.abs(A).ravel().max(initial=0.0)):
        raise ValueError(
            f"{name}: expected a symmetric matrix, received one with max|A − Aᵀ| = "
            f"{gap.max():.3g}; use (A + Aᵀ)/2 if the difference is only rounding"
        )
    return A


def check_rank_tolerance(value: float) -> float:
    """Return a tolerance for ratios of singular values; raise if it cannot be one.

    Examples
    --------
    >>> check_rank_tolerance(1e-6)
    1e-06
    """
    tolerance = real_scalar(value, "rank_tolerance")
    if not 0.0 < tolerance < 1.0:
        raise ValueError(
            f"rank_tolerance: expected a number between 0 and 1, received {value!r}; singular "
            "values below this part of the largest count as zero"
        )
    return tolerance
