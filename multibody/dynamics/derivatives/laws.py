"""Derivatives of joint laws, exact by tracing, as functions that compiled code can call.

A joint whose S is constant in successor coordinates has none: displacing it along a velocity
variable displaces the body along the column of S. For all others the slopes of the law follow from
the traced law; where a law is a Python callback that cannot be traced, from differences of it.

Quaternions are divided by their norm first, so that a change of the norm alone, which is no
motion, has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...checks import Array
from ...joints import Joint
from ..loops.constraints.joint_law import constraint_count
from ..loops.constraints.stated import law_sizes
from ..storage.laws import law_function, rate_function

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "bond_sizes",
    "bond_slopes",
    "differences",
    "freedoms_are_constant",
    "rate_slope_count",
    "rate_slopes",
    "slope_count",
    "slope_law",
]

# Central differences of sixth order: offsets and weights. The step balances the rounding error ε/h
# and the truncation error h⁶.
WEIGHTS = ((1, 3.0 / 4.0), (2, -3.0 / 20.0), (3, 1.0 / 60.0))
STEP = float(np.finfo(float).eps ** (1.0 / 7.0))


def freedoms_are_constant(body: Any) -> bool:
    """Whether S and c_J do not depend on the position, and velocities reach every position."""
    joint = body.joint
    if joint.is_axial or joint.nq == 0:
        return True
    holonomic = joint.nq - len(joint.quaternion_places) == joint.nv
    constant = bool(joint.units) and not body.reverse and not joint.is_rheonomic
    return constant and holonomic


def slope_count(joint: Joint) -> int:
    """How many numbers :func:`slope_law` writes."""
    return joint.nq * (18 + 6 * joint.nv) + 6 * joint.nv


def slope_law(body: Any) -> Callable[..., None]:
    """Slopes of a law: for each position ψ, v_J′, c_J′, columns of S′; then ∂c_J/∂v by columns.

    ψ is the twist of the successor, in its own coordinates, while the position changes at unit
    rate.
    """
    joint, law = body.joint, law_function(body)
    nq, nv, m = joint.nq, joint.nv, 24 + 6 * body.joint.nv
    slopes = _slopes(joint, law, m)

    def slope(t: Any, x: Any, p: Any, out: Any) -> None:
        value, J = slopes(t, x, p)
        E = [value[3 * i : 3 * i + 3] for i in range(3)]
        flat: list[Any] = []
        for a in range(nq):
            flat += _twist(E, J[:12, a])
            flat += list(J[12:m, a])
        for k in range(nv):
            flat += list(J[18:24, nq + k])
        for k, number in enumerate(flat):
            out[k] = number

    return slope


def rate_slope_count(joint: Joint) -> int:
    """How many numbers :func:`rate_slopes` writes."""
    return joint.nq * (joint.nq + joint.nv + 6)


def rate_slopes(body: Any) -> Callable[..., None]:
    """∂q̇/∂q and ∂q̇/∂v row by row, then ψ of each position (:func:`slope_law`)."""
    joint = body.joint
    nq, nv = joint.nq, joint.nv
    rates = _slopes(joint, rate_function(joint), nq, normalise=False)
    poses = _slopes(joint, law_function(body), 24 + 6 * nv)

    def slope(t: Any, x: Any, p: Any, out: Any) -> None:
        _, J = rates(t, x, p)
        value, K = poses(t, x, p)
        E = [value[3 * i : 3 * i + 3] for i in range(3)]
        flat = [*J[:, :nq].ravel(), *J[:, nq : nq + nv].ravel()]
        for a in range(nq):
            flat += _twist(E, K[:12, a])
        for k, number in enumerate(flat):
            out[k] = number

    return slope


def bond_sizes(model: Model, l: int) -> tuple[int, int]:
    """How many numbers the law of a loop joint or constraint takes, and how many it returns."""
    if l < len(model.loops):
        return 18, 9 * constraint_count(model.loops[l].joint)
    return law_sizes(model, model.constraints[l - len(model.loops)])


def bond_slopes(law: Callable[..., None], n: int, k: int, size: int) -> Callable[..., None]:
    """Law of a loop joint or constraint, then its Jacobian by columns; made when first needed."""
    made: list[Any] = []

    def slope(t: Any, x: Any, p: Any, out: Any) -> None:
        from integrators.tracing import traced

        def values(t: Any, x: Any, p: Any = ()) -> Any:
            found = np.empty(size, dtype=object)
            law(t, x, p, found)
            return found

        if not made:
            made.append(
                traced(values, n=n, params=k, outputs=size)
                if k
                else traced(lambda t, x: values(t, x), n=n, outputs=size)
            )
        more = (p,) if k else ()
        out[:size] = made[0](t, x[:n], *more)
        out[size : size * (1 + n)] = np.asarray(made[0].jacobian()(t, x[:n], *more)).T.ravel()

    return slope


def _twist(E: Any, change: Any) -> list[Any]:
    """Velocity in successor coordinates from the derivative of [E, r]: Ė = −ω× E, and E ṙ."""
    dE, dr = [change[3 * i : 3 * i + 3] for i in range(3)], change[9:12]

    def entry(i: int, j: int) -> Any:  # of −Ė Eᵀ
        return -(dE[i][0] * E[j][0] + dE[i][1] * E[j][1] + dE[i][2] * E[j][2])

    turn = [entry(2, 1), entry(0, 2), entry(1, 0)]
    return turn + [E[i][0] * dr[0] + E[i][1] * dr[1] + E[i][2] * dr[2] for i in range(3)]


def _slopes(
    joint: Joint, function: Callable[..., None], size: int, normalise: bool = True
) -> Callable[..., Any]:
    """Function of t, x = [q; v] and p that returns `size` values and their Jacobian by x."""
    n, k = joint.nq + joint.nv, len(joint.parameters)
    places = joint.quaternion_places if normalise else ()

    def values(t: Any, x: Any, p: Any = ()) -> Any:
        x = np.array(x[:n])
        for at in places:
            square = sum(number * number for number in x[at : at + 4])
            x[at : at + 4] = x[at : at + 4] / np.sqrt(square)
        out = np.empty(size, dtype=x.dtype)
        function(t, x, p, out)
        return out

    if not joint.is_traceable:

        def numeric(t: float, x: Array, p: Any) -> tuple[Array, Array]:
            x = np.array(x[:n], dtype=float)
            return values(t, x, p), differences(lambda y: values(t, y, p), x)

        return numeric

    made: list[Any] = []

    def exact(t: Any, x: Any, p: Any) -> tuple[Any, Any]:
        from integrators.tracing import traced

        if not made:
            if k:
                made.append(traced(values, n=n, params=k, outputs=size))
            else:
                made.append(traced(lambda t, x: values(t, x), n=n, outputs=size))
        f, more = made[0], (p,) if k else ()
        return f(t, x[:n], *more), np.asarray(f.jacobian()(t, x[:n], *more)).reshape(size, n)

    return exact


def differences(function: Callable[[Array], Array], x: Array) -> Array:
    """Jacobian by central differences of sixth order: about twelve digits of a smooth function.

    Examples
    --------
    >>> J = differences(lambda x: np.array([np.sin(x[0]) * x[1]]), np.array([0.3, 2.0]))
    >>> bool(np.abs(J - [[2 * np.cos(0.3), np.sin(0.3)]]).max() < 1e-11)
    True
    """
    columns = []
    for k in range(x.size):
        step = STEP * max(1.0, abs(float(x[k])))
        total: Any = 0.0
        for offset, weight in WEIGHTS:
            ahead, behind = x.copy(), x.copy()
            ahead[k] += offset * step
            behind[k] -= offset * step
            distance = (ahead[k] - behind[k]) / (2 * offset)
            total = total + weight * (function(ahead) - function(behind)) / distance
        columns.append(total)
    return np.array(columns).T
