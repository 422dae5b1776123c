"""Dynamic equivalence: the same motion from fewer inertia parameters (book, §9.7).

Of the ten numbers of a body some make no difference at all: moments of inertia about axes that it
never turns about. Others can be handed on to the parent: the mass of a body on a ball joint acts
as a particle there, which the parent may carry as well. Body i may give I_Δ to its parent if, with
P the regressor's columns of a body,

    P_i(q, v, v̇) I_Δ = P_λ(q, v, v̇) I_Δ′     for all q, v, v̇,

a linear condition on twenty numbers. It contains the book's three (I_Δ S = 0, invariance under
X_J, no gyroscopic force), those of the printed Table 9.7, the transform by X_T that the printed
listing leaves out, and what a fixed base, gravity along an axis, or planar motion allow besides.
It holds for every joint, for nonholonomic ones and for those that time moves, because it is solved
as it stands, on states drawn at random: twenty unknowns in some hundred equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.inertia import RigidInertia
from ...checks import Array, has_symbols
from .regressor import body_regressors

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["simplify"]

#: Singular values below this part of the largest are rounding: the parameters have no effect.
RANK_TOLERANCE = 1e-9

#: Entries of such a row below this part of its largest are zero, and no pivots.
PIVOT_TOLERANCE = 1e-7

#: States at which conditions are written down; each gives an equation for every freedom on the
#: way to the base, and twenty numbers are unknown.
STATES = 32

#: Order in which parameters are given away, as far as they can be: masses first, then moments of
#: inertia; first moments, in which gravity acts, and the moment about the axis stay if they can.
GIVEN_AWAY = (0, 3, 4, 6, 5, 7, 8, 1, 2, 9)


def simplify(model: Model) -> Model:
    """Equivalent model with fewer inertia parameters: same H, `ID`, `FD`, and so the same motion.

    From the tips inwards every body hands on to its parent what the parent can carry as well, and
    drops what has no effect. On a revolute joint three of ten numbers go, on a prismatic one six,
    on a ball joint the mass; more near a fixed base. Zeros cost nothing in traced functions
    (`cost` counts them); compiled kernels for any model gain nothing.

    Returns
    -------
    Model
        With the same bodies, joints, loops, springs, contacts and names; only inertias differ.
        They may belong to no real body (negative masses are common), so what looks at single bodies
        has another meaning there: `joint_reactions`, `momentum`, `centre_of_mass`, and the zero of
        the potential energy. Kinetic energy, forces, accelerations and impacts are the same.

    See Also
    --------
    base_parameters : the smallest set of numbers that determine the dynamics.

    Examples
    --------
    Of a pendulum about y only one moment of inertia and the place of its mass in the plane act:

    >>> from multibody import FD, ModelBuilder, Revolute, Inertia
    >>> b = ModelBuilder()
    >>> inertia = Inertia(2.0, (0.1, 0.2, -1.0), ((3, 0.1, 0.2), (0.1, 4, 0.3), (0.2, 0.3, 5)))
    >>> _ = b.add_body("bob", 0, Revolute("y"), inertia=inertia)
    >>> model = b.build()
    >>> less = simplify(model)
    >>> [int(np.count_nonzero(m.bodies[0].inertia.array)) for m in (model, less)]
    [10, 3]
    >>> bool(abs(FD(model, [0.3], [1.0]) - FD(less, [0.3], [1.0])) < 1e-12)
    True
    """
    parameters = np.array([body.inertia.array for body in model.bodies])
    if has_symbols(parameters):
        raise TypeError(
            "simplify: expected a model of numbers, received one with symbols; simplify the model "
            "of each run, or trace with the inertias as they are"
        )
    columns = sampled_regressor(model)
    for i in range(model.n_bodies, 0, -1):
        body = model.bodies[i - 1]
        turn = _turned(body.joint.frame)  # parameters in the joint's axes, where zeros count
        own = columns[i - 1] @ np.linalg.inv(turn)
        above = columns[body.parent - 1] if body.parent else np.zeros((len(own), 0))
        numbers = turn @ parameters[i - 1]
        for pivot, give, take in _exchanges(own, above):
            amount = numbers[pivot]
            numbers = numbers - amount * give
            numbers[pivot] = 0.0
            if body.parent:
                parameters[body.parent - 1] += amount * take
        parameters[i - 1] = np.linalg.solve(turn, numbers)
    bodies = [
        replace(body, inertia=RigidInertia._of(numbers))
        for body, numbers in zip(model.bodies, parameters)
    ]
    return replace(model, bodies=tuple(bodies))


def sampled_regressor(model: Model, seed: int = 0) -> Array:
    """Ten columns for each body, (n_bodies, rows, 10), at states drawn at random."""
    rng = np.random.default_rng(seed)
    rows: list[Array] = []
    for _ in range(STATES):
        q, (v, a) = model.random(rng), rng.standard_normal((2, model.nv))
        t = rng.uniform() if model.is_rheonomic else 0.0
        rows.append(np.array([block for _, block in body_regressors(model, q, v, a, t)]))
    return np.concatenate(rows, axis=1)


def _exchanges(own: Array, above: Array) -> list[tuple[int, Array, Array]]:
    """What a body can give away: (number that vanishes, what it gives, what its parent takes)."""
    null = null_space(np.hstack([own, -above]))
    return [(pivot, row[:10], row[10:]) for pivot, row in echelon(null, GIVEN_AWAY)]


def echelon(null: Array, order: Sequence[int]) -> list[tuple[int, Array]]:
    """Rows of a null space, each with a 1 at a place of its own, where the others have 0.

    The places are the first in `order` at which that is possible.
    """
    null = null.copy()
    found: list[tuple[int, int]] = []
    left = np.ones(len(null), dtype=bool)
    for pivot in order:
        sizes = np.where(left, np.abs(null[:, pivot]), 0.0)
        largest = np.abs(null).max(axis=1, initial=0.0)
        if not left.any() or sizes.max() <= PIVOT_TOLERANCE * largest[np.argmax(sizes)]:
            continue
        row = int(np.argmax(sizes))
        null[row] /= null[row, pivot]
        others = np.arange(len(null)) != row
        null[others] -= np.outer(null[others, pivot], null[row])
        left[row] = False
        found.append((pivot, row))
    return [(pivot, null[row].copy()) for pivot, row in found]


def null_space(columns: Array) -> Array:
    """Rows that span the null space, in columns brought to one size."""
    sizes = np.linalg.norm(columns, axis=0)
    sizes = np.where(sizes > RANK_TOLERANCE * sizes.max(initial=0.0), sizes, 1.0)
    triangle = np.linalg.qr(columns / sizes, mode="r")
    _, values, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))
    return np.asarray(right[rank:] / sizes)


def _turned(C: Array) -> Array:
    """10×10 matrix that turns the parameters of a body into other axes."""
    from ...algebra.plucker import Plucker

    X = Plucker._of(C, np.zeros(3))
    return np.array([(X * RigidInertia._of(row)).array for row in np.eye(10)]).T
