"""Inertias of bodies: from mass, centre and central inertia, or from a shape of even density.

Every function returns a :class:`~multibody.RigidInertia` in the frame in which the centre
`com` is given. Give either `mass` or `density`.
"""

from __future__ import annotations

import numpy as np

from ..algebra.inertia import RigidInertia, mcI
from ..algebra.orientation.rotations import skew
from ..checks import ArrayLike, direction, exact_array, floats, number, real_array, real_scalar

__all__ = ["Inertia", "box", "cylinder", "point_mass", "rod", "sphere"]

ORIGIN = (0.0, 0.0, 0.0)


def Inertia(
    mass: float, com: ArrayLike = ORIGIN, I_com: ArrayLike = 0.0, *, check: bool = True
) -> RigidInertia:
    """Inertia of a body from mass, centre of mass and inertia about it.

    Parameters
    ----------
    mass
        In kg.
    com
        Centre of mass in the body's frame.
    I_com
        Inertia about the centre of mass: 3×3 matrix, three principal moments, or 0 for a point.
    check
        False accepts numbers that no body can have (moments that break the triangle inequality),
        as published robot data sometimes are; symmetry and mass ≥ 0 are still required.

    Examples
    --------
    >>> Inertia(2.0, (0.5, 0, 0), (0.01, 0.02, 0.02)).array[:4]
    array([2., 1., 0., 0.])
    """
    I = floats(real_array(I_com, "I_com"))
    if I.ndim == 0:
        I = I * np.eye(3)
    elif I.shape == (3,):
        I = np.diag(I)
    if check:
        return mcI(mass, com, I)
    m, c = real_scalar(mass, "mass"), exact_array(com, "com", (3,))
    if m < 0.0 or I.shape != (3, 3) or not np.allclose(I, I.T):
        raise ValueError(f"Inertia: expected mass ≥ 0 and a symmetric I_com, received {m}, {I}")
    I_O = I - m * skew(c) @ skew(c)
    return RigidInertia._of(np.concatenate([[m], m * c, I_O[np.tril_indices(3)]]))


def _positive(shape: str, **sizes: ArrayLike) -> list[float]:
    """Sizes as numbers, each of which must be finite and positive."""
    values = []
    for name, size in sizes.items():
        values.append(real_scalar(size, f"{shape}: {name}"))
        if values[-1] <= 0.0:
            raise ValueError(f"{shape}: expected a positive {name}, received {size!r}")
    return values


def _mass(volume: float, mass: float | None, density: float | None, shape: str) -> float:
    given = {name: x for name, x in (("mass", mass), ("density", density)) if x is not None}
    if len(given) != 1:
        raise TypeError(f"{shape}: expected either mass or density, received both or neither")
    (value,) = _positive(shape, **given)
    return value if density is None else value * volume


def box(
    size: ArrayLike,
    *,
    mass: float | None = None,
    density: float | None = None,
    com: ArrayLike = ORIGIN,
) -> RigidInertia:
    """Box with edges `size` along the axes.

    Examples
    --------
    >>> box((1, 2, 3), mass=12.0).array[4:]
    array([13.,  0., 10.,  0.,  0.,  5.])
    """
    a, b, c = exact_array(size, "box: size", (3,))
    _positive("box", size=min(a, b, c))
    m = _mass(a * b * c, mass, density, "box")
    return mcI(m, com, m / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b]))


def cylinder(
    radius: float,
    length: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    axis: ArrayLike = (0.0, 0.0, 1.0),
    com: ArrayLike = ORIGIN,
) -> RigidInertia:
    """Solid cylinder along `axis`.

    Examples
    --------
    >>> cylinder(1.0, 2.0, mass=6.0).array[4:]
    array([3.5, 0. , 3.5, 0. , 0. , 3. ])
    """
    radius, length = _positive("cylinder", radius=radius, length=length)
    m = _mass(np.pi * radius**2 * length, mass, density, "cylinder")
    return _about_axis(m, 0.5 * m * radius**2, m * (3 * radius**2 + length**2) / 12, axis, com)


def rod(
    start: ArrayLike, end: ArrayLike, *, mass: float | None = None, density: float | None = None
) -> RigidInertia:
    """Thin rod between two points; `density` is mass per length.

    Examples
    --------
    >>> rod((0, 0, 0), (0, 0, -2), mass=3.0).array
    array([ 3.,  0.,  0., -3.,  4.,  0.,  4.,  0.,  0.,  0.])
    """
    p, q = exact_array(start, "rod: start", (3,)), exact_array(end, "rod: end", (3,))
    length = number(np.linalg.norm(q - p))
    if length == 0.0:
        raise ValueError("rod: expected two different points, received the same twice")
    m = _mass(length, mass, density, "rod")
    return _about_axis(m, 0.0, m * length**2 / 12, q - p, (p + q) / 2)


def sphere(
    radius: float,
    *,
    mass: float | None = None,
    density: float | None = None,
    com: ArrayLike = ORIGIN,
) -> RigidInertia:
    """Solid sphere.

    Examples
    --------
    >>> sphere(1.0, mass=5.0).array[4:]
    array([2., 0., 2., 0., 0., 2.])
    """
    (radius,) = _positive("sphere", radius=radius)
    m = _mass(4 / 3 * np.pi * radius**3, mass, density, "sphere")
    return mcI(m, com, 0.4 * m * radius**2 * np.eye(3))


def point_mass(mass: float, com: ArrayLike = ORIGIN) -> RigidInertia:
    """All mass in one point.

    Examples
    --------
    >>> point_mass(2.0, (0, 0, -1)).array[:4]
    array([ 2.,  0.,  0., -2.])
    """
    return mcI(mass, com, np.zeros((3, 3)))


def _about_axis(
    m: float, along: float, across: float, axis: ArrayLike, com: ArrayLike
) -> RigidInertia:
    a = direction(axis, "axis")
    return mcI(m, com, across * np.eye(3) + (along - across) * np.outer(a, a))
