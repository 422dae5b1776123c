"""Algebraic equations of M y' = f(t, y) with a singular M: are initial values consistent with them?

With N spanning the null space of Mᵀ, the equations are g(t, y) = Nᵀ f(t, y) = 0. Those that contain
no algebraic variable, L g = 0, bind the others more than once: their derivative along the solution,

    L (∂g/∂t + ∂g/∂y M⁺ f),

must vanish as well. Where that contains an algebraic variable, it determines it (index 2). Where it
does not (index 3), it is a hidden constraint on the initial values: velocities tangent to a
constraint on positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..stepping.state import Status
from ..stepping.stepper import Options

__all__ = ["about_the_index", "check_consistent"]

Array = NDArray[Any]
Function = Callable[[float, Array], Array]

NEGLIGIBLE = 1e-6  # a derivative by differences that is smaller than this part of all is zero
LARGEST_DENSE = 500  # components, for what needs null spaces
HIDDEN = 1e-6  # hidden constraints may be violated by this part of the terms that cancel


def check_consistent(ivp: IVP, slope: Array, options: Options) -> None:
    """Refuse a start that violates the algebraic equations, open or hidden."""
    system = _Algebraic(ivp)
    if system.is_regular:
        return
    residual = system.left.T @ slope
    allowed = 1e3 * max(float(np.max(options.atol)), options.rtol * 1e-3)
    scale = max(1.0, float(np.max(np.abs(ivp.y0))))
    if np.max(np.abs(residual)) > allowed * scale:
        raise ValueError(
            f"inconsistent initial values: the algebraic equations of M y' = f(t, y) are violated "
            f"by {np.max(np.abs(residual)):.3g} at t0; correct y0 so that f(t0, y0) vanishes there"
        )
    if ivp.index is not None and np.max(ivp.index) >= 3 and ivp.n <= LARGEST_DENSE:
        violation, size = system.hidden(ivp.t_span[0], ivp.y0)
        if violation > max(allowed, HIDDEN) * max(1.0, size):
            raise ValueError(
                "inconsistent initial values: a hidden constraint, the time derivative of an "
                f"algebraic equation of M y' = f(t, y), is violated by {violation:.3g} at t0; "
                "correct y0 so that it moves along the constraints (velocities tangent to those "
                "on positions)"
            )


def about_the_index(ivp: IVP, status: Status, t: float, y: Array) -> str:
    """What a run that failed at (t, y) may have to do with the index of its problem."""
    stuck = (Status.STEP_TOO_SMALL, Status.NEWTON_FAILED, Status.SINGULAR_MATRIX)
    if ivp.mass is None or status not in (*stuck, Status.TOO_MANY_STEPS):
        return ""
    advice = getattr(ivp, "advice", None)  # of a problem that knows its index
    if advice is not None:
        return str(advice)
    if ivp.n > LARGEST_DENSE:
        return ""
    if ivp.index is not None and np.max(ivp.index) >= 2:
        return ""
    free = _free_components(ivp, t, y)
    if not free:
        return ""
    names = ", ".join(f"y[{i}]" for i in free)
    return (
        f". The likely cause: the algebraic equations leave {names} free, so the index is 2 or "
        "more; declare it for each component (index=[...]: 3 for multipliers of constraints on "
        "positions, 2 for multipliers of constraints on velocities and for velocities)"
    )


def _free_components(ivp: IVP, t: float, y: Array) -> list[int]:
    """Components that the algebraic equations leave free: a sign of index 2 or more.

    Empty where M is regular or the equations determine all algebraic variables (index 1).
    """
    system = _Algebraic(ivp)
    if system.is_regular or not np.all(np.isfinite(y)):
        return []
    try:
        free = system.free_directions(t, y)
    except Exception:  # f may fail where the run did
        return []
    return [int(i) for i in np.flatnonzero(np.max(np.abs(free), axis=1, initial=0.0) > 1e-3)]


class _Algebraic:
    """The algebraic part of M y' = f."""

    def __init__(self, ivp: IVP) -> None:
        from scipy.linalg import null_space

        self.f: Function = lambda t, y: np.asarray(ivp.bind(ivp.f)(t, y), dtype=ivp.y0.dtype)
        self.jvp = _exact_products(ivp)
        diagonal = _diagonal(ivp.mass)
        if diagonal is not None:
            from scipy.sparse import eye

            zero = diagonal == 0.0
            self.is_regular = not zero.any()
            self.left = self.right = eye(ivp.n, format="csc")[:, np.flatnonzero(zero)]
            if ivp.n <= LARGEST_DENSE:
                self.left = self.right = self.left.toarray()
                self.inverse = np.diag(np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, diagonal)))
            return
        mass = ivp.mass.toarray() if hasattr(ivp.mass, "toarray") else np.asarray(ivp.mass)
        self.is_regular = bool(np.linalg.matrix_rank(mass) == ivp.n)
        if not self.is_regular:
            self.left = null_space(mass.T.conj())
            self.right = null_space(mass)
            self.inverse = np.linalg.pinv(mass)

    def product(self, t: float, y: Array, v: Array) -> Array:
        """(∂f/∂y) v: exact if f is traced, else by central differences."""
        if self.jvp is not None:
            return self.jvp(t, y, v)
        length = float(np.max(np.abs(v)))
        if length == 0.0:
            return np.zeros_like(y)
        step = 6e-6 * max(1.0, float(np.max(np.abs(y)))) / length
        return np.asarray((self.f(t, y + step * v) - self.f(t, y - step * v)) / (2 * step))

    def free_directions(self, t: float, y: Array) -> Array:
        """Directions of algebraic variables that g does not depend on, as columns."""
        return self.right @ _null(self._dependence(t, y))

    def _dependence(self, t: float, y: Array) -> Array:
        """∂g/∂z: how the algebraic equations depend on the algebraic variables."""
        columns = [self.left.T @ self.product(t, y, z) for z in self.right.T]
        return np.array(columns).T

    def hidden(self, t: float, y: Array) -> tuple[float, float]:
        """By how much hidden constraints are violated, and the size of the terms in them."""
        rows = _null(self._dependence(t, y).T).T  # combinations without algebraic variables
        if not len(rows):
            return 0.0, 0.0
        rate, size = self._rate(rows, t, y)
        change = []  # of the rate, with the algebraic variables
        for z in self.right.T:
            step = 1e-3 * max(1.0, float(np.max(np.abs(y))))
            change.append((self._rate(rows, t, y + step * z)[0] - rate) / step)
        bound = _null(np.array(change)).T  # combinations that do not determine one
        violation = np.abs(bound @ rate)
        return float(np.max(violation, initial=0.0)), size

    def _rate(self, rows: Array, t: float, y: Array) -> tuple[Array, float]:
        """rows · dg/dt along the solution, and the size of its terms."""
        velocity = self.inverse @ self.f(t, y)
        step = 6e-6 * max(1.0, abs(t))
        explicit = (self.f(t + step, y) - self.f(t - step, y)) / (2 * step)
        by_state = self.product(t, y, velocity)
        terms = [np.max(np.abs(self.left.T @ part)) for part in (explicit, by_state)]
        speed = float(np.max(np.abs(velocity)))
        return rows @ (self.left.T @ (explicit + by_state)), max(*map(float, terms), speed)


def _diagonal(mass: Any) -> Array | None:
    """Return the diagonal of a matrix that has no other entries, else None."""
    diagonal = np.asarray(mass.diagonal())
    entries = int(mass.count_nonzero()) if hasattr(mass, "tocsc") else np.count_nonzero(mass)
    return diagonal if entries == np.count_nonzero(diagonal) else None


def _null(matrix: Array) -> Array:
    """Null space of a matrix that may hold errors of differences."""
    if matrix.size == 0 or np.max(np.abs(matrix)) == 0.0:
        return np.eye(matrix.shape[1])
    _, values, vectors = np.linalg.svd(matrix)
    rank = int(np.sum(values > NEGLIGIBLE * max(1.0, values[0])))
    return np.asarray(vectors[rank:].conj().T)


def _exact_products(ivp: IVP) -> Callable[[float, Array, Array], Array] | None:
    """J·v of a traced f."""
    f: Any = ivp.f
    if not hasattr(f, "jvp") or ivp.y0.dtype.kind == "c":
        return None
    f_bound = ivp.bind(ivp.f)
    f_bound(ivp.t_span[0], ivp.y0)  # tells it n, if it did not know
    product = f.jvp()
    if f.k == 0:
        return lambda t, y, v: np.asarray(product(t, y, v))
    return lambda t, y, v: np.asarray(product(t, y, v, ivp.params))
