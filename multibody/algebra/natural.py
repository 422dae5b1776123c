"""Natural coordinates: a body described by coordinates of its points and unit vectors.

Sources: course notes, §4.1.5 (errata E45, E46) for the planar body with two points. For the
spatial body the notes stop at the idea; the constraints here are the standard ones: constant
scalar products between a basis of the body's segments and unit vectors, and constant
coefficients for every further point or vector. All are at most quadratic in q.
"""

from __future__ import annotations

import numpy as np

from ..checks import Array, ArrayLike, check_rotation, check_unit, real_array, real_scalar

__all__ = ["NaturalBody", "TwoPoints"]

#: Relative size of a direction's independent part below which it adds nothing to a basis.
RANK_TOLERANCE = 1e-9


class TwoPoints:
    """Planar body by two points: q = (x1, y1, x2, y2), one constraint ‖P1P2‖² = L².

    The body frame has its origin at P1 and its x axis along P1P2.

    Examples
    --------
    >>> body = TwoPoints(2.0)
    >>> float(body.constraint([0.0, 0.0, 0.0, 2.0])), float(body.heading([0.0, 0.0, 0.0, 2.0]))
    (0.0, 1.5707963267948966)
    """

    def __init__(self, length: float) -> None:
        self.length = real_scalar(length, "length")
        if self.length <= 0.0:
            raise ValueError(
                f"length: expected a positive distance, received {length}; "
                "choose two different points"
            )

    def constraint(self, q: ArrayLike) -> Array:
        """(x2−x1)² + (y2−y1)² − L², shape (...)."""
        q = real_array(q, "q", (4,))
        d = q[..., 2:] - q[..., :2]
        return np.asarray(np.sum(d * d, axis=-1) - self.length**2)

    def jacobian(self, q: ArrayLike) -> Array:
        """Gradient of the constraint, shape (..., 4)."""
        q = real_array(q, "q", (4,))
        d = 2 * (q[..., 2:] - q[..., :2])
        return np.concatenate([-d, d], axis=-1)

    def rotation(self, q: ArrayLike) -> Array:
        """2×2 rotation body → world; its second column is (−i_y, i_x), with no division.

        The notes' second matrix has determinant −1 and is discarded (erratum E45).
        """
        q = real_array(q, "q", (4,))
        c, s = np.moveaxis((q[..., 2:] - q[..., :2]) / self.length, -1, 0)
        return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)

    def heading(self, q: ArrayLike) -> Array:
        """Angle of the body's x axis, by atan2 in all four quadrants (erratum E46)."""
        q = real_array(q, "q", (4,))
        return np.asarray(np.arctan2(q[..., 3] - q[..., 1], q[..., 2] - q[..., 0]))

    def point(self, q: ArrayLike, local: ArrayLike) -> Array:
        """World coordinates of a point given in the body frame."""
        q = real_array(q, "q", (4,))
        local = real_array(local, "local", (2,))
        return q[..., :2] + (self.rotation(q) @ local[..., None])[..., 0]

    def coordinates(self, origin: ArrayLike, heading: ArrayLike) -> Array:
        """Natural coordinates of the body at a given place and heading."""
        origin = real_array(origin, "origin", (2,))
        angle = real_array(heading, "heading")
        tip = origin + self.length * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return np.concatenate([np.broadcast_to(origin, tip.shape), tip], axis=-1)


class NaturalBody:
    """Spatial body by points and unit vectors: q stacks their world coordinates.

    Parameters
    ----------
    points
        Local coordinates of the basic points, shape (n, 3), n ≥ 1; the first is the origin of
        the segments.
    vectors
        Local components of the unit vectors, shape (m, 3).

    Notes
    -----
    Let g be the segments from the first point and the unit vectors. The first independent ones
    (two or three) form a basis; their Gram matrix is constant (3 or 6 quadratic constraints).
    Every further g is a constant combination of the basis (3 linear constraints each). So the
    number of constraints is 3(n + m) − 6. With three basis directions the Gram matrix does not
    exclude the mirrored body; `rotation` does, and raises.

    Examples
    --------
    >>> body = NaturalBody([[0, 0, 0], [1, 0, 0]], [[0, 0, 1]])
    >>> body.size, body.number_of_constraints
    (9, 3)
    """

    def __init__(self, points: ArrayLike, vectors: ArrayLike = ()) -> None:
        self.points = np.atleast_2d(real_array(points, "points", (3,)))
        empty = np.zeros((0, 3))
        self.vectors = (
            check_unit(vectors, "vectors", 3, "divide each by its norm")
            if np.size(vectors)
            else empty
        )
        self._local = np.concatenate([self.points[1:] - self.points[:1], self.vectors])
        basis: list[int] = []
        for n, g in enumerate(self._local):
            rest = g.copy()
            if basis:
                A = self._local[basis].T
                rest = g - A @ np.linalg.lstsq(A, g, rcond=None)[0]
            if len(basis) < 3 and np.linalg.norm(rest) > RANK_TOLERANCE * (
                np.linalg.norm(g) or 1.0
            ):
                basis.append(n)
        if len(basis) < 2:
            raise ValueError(
                "points, vectors: expected at least two independent directions, received "
                f"{len(basis)}; a body on one line has no defined rotation: add a unit vector"
            )
        self._basis = basis
        self._others = [n for n in range(len(self._local)) if n not in basis]
        A = self._local[basis].T
        self._coefficients = np.linalg.lstsq(A, self._local[self._others].T, rcond=None)[0].T
        self._gram = self._local[basis] @ self._local[basis].T
        self._pairs = [(a, b) for a in range(len(basis)) for b in range(a + 1)]

    @property
    def size(self) -> int:
        """Number of coordinates, 3(n + m)."""
        return 3 * (len(self.points) + len(self.vectors))

    @property
    def number_of_constraints(self) -> int:
        """3(n + m) − 6."""
        return len(self._pairs) + 3 * len(self._others)

    def _directions(self, q: ArrayLike) -> Array:
        q = real_array(q, "q", (self.size,))
        triples = q.reshape(*q.shape[:-1], -1, 3)
        n = len(self.points)
        return np.concatenate(
            [triples[..., 1:n, :] - triples[..., :1, :], triples[..., n:, :]], axis=-2
        )

    def constraints(self, q: ArrayLike) -> Array:
        """Residuals: the quadratic ones of the basis, then the linear ones; zero on the body."""
        g = self._directions(q)
        basis = g[..., self._basis, :]
        gram = basis @ np.swapaxes(basis, -1, -2) - self._gram
        quadratic = np.stack([gram[..., a, b] for a, b in self._pairs], axis=-1)
        linear = g[..., self._others, :] - self._coefficients @ basis
        return np.concatenate([quadratic, linear.reshape(*linear.shape[:-2], -1)], axis=-1)

    def jacobian(self, q: ArrayLike) -> Array:
        """Jacobian of the constraints, shape (..., constraints, size); linear in q."""
        g = self._directions(q)
        count = len(self._pairs)
        lead = g.shape[:-2]
        dg = np.zeros((*lead, self.number_of_constraints, len(self._local), 3))
        for row, (a, b) in enumerate(self._pairs):
            dg[..., row, self._basis[a], :] += g[..., self._basis[b], :]
            dg[..., row, self._basis[b], :] += g[..., self._basis[a], :]
        for n, other in enumerate(self._others):
            for axis in range(3):
                row = count + 3 * n + axis
                dg[..., row, other, axis] = 1.0
                dg[..., row, self._basis, axis] -= self._coefficients[n]
        # Segments depend on their own end and, negatively, on the first point.
        segments = len(self.points) - 1
        first = -dg[..., :segments, :].sum(axis=-2, keepdims=True)
        return np.concatenate([first, dg], axis=-2).reshape(*lead, -1, self.size)

    def rotation(self, q: ArrayLike) -> Array:
        """Rotation body → world of coordinates that satisfy the constraints."""
        world = self._complete(self._directions(q)[..., self._basis, :])
        local = self._complete(self._local[self._basis])
        # world = R local, with directions as columns: R = world local⁻¹
        return check_rotation(np.swapaxes(np.linalg.solve(local, world), -1, -2), "rotation of q")

    @staticmethod
    def _complete(basis: Array) -> Array:
        """Add the cross product where the basis has only two directions; rows are directions."""
        if basis.shape[-2] == 3:
            return basis
        third = np.cross(basis[..., 0, :], basis[..., 1, :])
        return np.concatenate([basis, third[..., None, :]], axis=-2)

    def origin(self, q: ArrayLike) -> Array:
        """World position of the body frame's origin."""
        q = real_array(q, "q", (self.size,))
        return q[..., :3] - (self.rotation(q) @ self.points[0])

    def coordinates(self, R: ArrayLike, origin: ArrayLike) -> Array:
        """Natural coordinates of the body with rotation R (body → world) and origin."""
        R = check_rotation(R)
        origin = real_array(origin, "origin", (3,))
        lead = np.broadcast_shapes(R.shape[:-2], origin.shape[:-1])
        R = np.broadcast_to(R, (*lead, 3, 3))
        points = origin[..., None, :] + self.points @ np.swapaxes(R, -1, -2)
        vectors = self.vectors @ np.swapaxes(R, -1, -2)
        stacked = np.concatenate([points, vectors], axis=-2)
        return stacked.reshape(*stacked.shape[:-2], -1)
