"""Where a solution lives, if that is not a vector space: data only.

A rotation is no vector: adding increments to a quaternion or to a rotation matrix leaves the set of
rotations. On a manifold that is (locally) a group, points near y are written y ⊞ z = y·exp(z) with
a vector z of the tangent space, and the differential equation says with which ξ the solution moves:

    d/dt y = y·ξ(t, y)            (body form: ξ is multiplied from the right).

In the coordinates z about a fixed centre y₀ this is an ordinary differential equation,

    ż = dexp⁻¹(z) ξ(t, y₀ ⊞ z) = ξ + ½ [z, ξ] + 1/12 [z, [z, ξ]] + …,

which :class:`~integrators.MuntheKaas` hands to a Runge–Kutta method, step by step with a new
centre (:cite:`hairer2006`, IV.8). ``integrators.groups`` has such manifolds
ready to use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Manifold", "Retraction", "refuse_to_leave"]


@dataclass(frozen=True, eq=False)
class Manifold:
    """A manifold in coordinates y (n numbers), with tangent vectors ξ (m numbers), and a motion.

    Parameters
    ----------
    dimension
        m, of the tangent space; often smaller than n = len(y).
    velocity
        ``velocity(t, y)`` or ``velocity(t, y, p)`` -> ξ, m numbers: the right-hand side as a
        tangent vector in body form. If it is traced, the other functions are traced along with it,
        and everything runs as machine code; they must then be free of hidden state.
    retract
        ``retract(y, z)`` -> y ⊞ z, n numbers; y ⊞ 0 = y.
    rate
        ``rate(z, xi)`` -> ż, m numbers: how fast z changes while y₀ ⊞ z moves with ξ; this is ξ
        itself at z = 0.
    difference
        ``difference(y, y1)`` -> the smallest z with y ⊞ z = y1, m numbers. No method needs it; it
        is there to measure distances.
    scale
        ``scale(y)`` -> sizes of the m tangent components that relative tolerances refer to: the
        error of component i is kept below atol + rtol·scale_i. By default all are ‖y‖, which is 1
        for unit quaternions, unit vectors and the like.

    Examples
    --------
    A turntable: points (cos φ, sin φ) on a circle, turning at the rate 1 + t.

    >>> import numpy as np
    >>> from integrators import IVP, Manifold, solve
    >>> def turned(y, z):
    ...     c, s = np.cos(z[0]), np.sin(z[0])
    ...     return np.array([c * y[0] - s * y[1], s * y[0] + c * y[1]])
    >>> circle = Manifold(1, lambda t, y: [1 + t], turned, lambda z, xi: xi)
    >>> f = lambda t, y: (1 + t) * np.array([-y[1], y[0]])
    >>> sol = solve(IVP(f, [1.0, 0.0], (0, 2), manifold=circle), method="RKMK4", step=0.1)
    >>> print(f"{np.arctan2(sol.y[1, -1], sol.y[0, -1]) + 2 * np.pi:.12f}")
    4.000000000000
    """

    dimension: int
    velocity: Callable[..., Any]
    retract: Callable[..., Any]
    rate: Callable[..., Any]
    difference: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        m = self.dimension
        if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
            raise ValueError(
                f"dimension must be the number of tangent components, at least 1; got {m!r}"
            )
        needed = {"velocity": "(t, y)", "retract": "(y, z)", "rate": "(z, xi)"}
        for name, arguments in needed.items():
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"{name} must be a function {name}{arguments}, got {getattr(self, name)!r}"
                )
        for name, arguments in {"difference": "(y, y1)", "scale": "(y)"}.items():
            if (value := getattr(self, name)) is not None and not callable(value):
                raise TypeError(
                    f"{name} must be a function {name}{arguments} or None, got {value!r}"
                )


def refuse_to_leave(problem: Any, method: str) -> None:
    """Raise if a method that adds states would leave the problem's manifold for good.

    Where there are as many tangent components as coordinates, every state is on it; else a
    projection, such as that of quaternions in mechanics, brings states back.
    """
    manifold = problem.manifold
    if manifold is None or problem.project is not None or manifold.dimension == problem.n:
        return
    raise ValueError(
        f"{method} adds states, which leaves a manifold; use RKMK4 or its like, give a projection "
        "onto it (project=…), or leave the manifold out"
    )


@dataclass(frozen=True)
class Retraction:
    """y ⊞ z for one point, or row by row for many; takes the place of y + z in dense output."""

    retract: Callable[..., Any]

    def __call__(self, y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        """Return y ⊞ z, an array of the shape of y."""
        if y.ndim == 1:
            return np.asarray(self.retract(y, z), dtype=np.float64)
        rows = [self.retract(one, step) for one, step in zip(y, z)]
        return np.array(rows, dtype=np.float64).reshape(y.shape)


def lost(y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Stand in for the retraction of a solution that was saved or pickled without it."""
    raise ValueError(
        "this solution lives on a manifold, whose functions no file keeps; give the problem "
        "again: Solution.load(path, problem=...) or, of a pickle, solution.with_problem(...)"
    )


def kept(move: Callable[..., Any]) -> Callable[..., Any]:
    """Return what can be kept in a file in place of `move`: addition, or the stand-in."""
    return operator.add if move is operator.add else lost
