"""Base parameters: the smallest set of numbers that inertia contributes to the dynamics (§9.7).

Joint forces are Y φ, and where columns of Y depend on each other, only combinations of parameters
act. Those are all that any experiment can identify. With W the regressors of many states one above
the other, and its columns split into independent and dependent ones, W_d = W_i B,

    W φ = W_i (φ_i + B φ_d),

so that π = φ_i + B φ_d are the base parameters. Which columns count as dependent is a choice; here
it is the book's: bodies far from the base give away first, masses before moments.

With loops the forces that can be told are those that move the mechanism, Nᵀτ with K N = 0, at
positions where the loops are closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...checks import Array, ArrayLike
from ..loops.assembly import AssemblyError, assemble, consistent_velocity
from ..loops.closed_loop import constraints
from .equivalence import GIVEN_AWAY, STATES, echelon, null_space
from .regressor import parameter_names, parameter_values, regressor

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["BaseParameters", "base_parameters"]

#: Coefficients of combinations below this are rounding.
NEGLIGIBLE = 1e-9

#: Positions drawn at random in search of one at which the loops close.
ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The minimal inertia parameters of a model: π = matrix @ φ.

    Attributes
    ----------
    names
        Of all parameters φ: ten of each body, and armatures if they were asked for.
    independent
        Places in φ of those that the base parameters are named after.
    matrix
        (rank, len(φ)); has a unit column for each independent parameter.
    values
        π of the model.
    """

    names: tuple[str, ...]
    independent: tuple[int, ...]
    matrix: Array
    values: Array

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.independent)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Parameters that act in no motion of the mechanism, and cannot be identified."""
        acting = np.abs(self.matrix).max(axis=0, initial=0.0) > 0.0
        return tuple(name for name, acts in zip(self.names, acting) if not acts)

    @property
    def identifiable(self) -> tuple[str, ...]:
        """Parameters that are base parameters by themselves."""
        alone = np.count_nonzero(self.matrix, axis=1) == 1
        return tuple(self.names[k] for k, single in zip(self.independent, alone) if single)

    @property
    def combinations(self) -> tuple[str, ...]:
        """The base parameters in words, such as ``arm.I_yy + 0.25 hand.m``."""
        rows = zip(self.independent, self.matrix)
        return tuple(_combination(row, k, self.names) for k, row in rows)

    def __str__(self) -> str:
        head = (
            f"{self.rank} base parameters of {len(self.names)}; {len(self.without_effect)} have no "
            f"effect, {len(self.identifiable)} can be identified by themselves"
        )
        rows = [f"  {value:12.6g}  {text}" for value, text in zip(self.values, self.combinations)]
        return "\n".join([head, *rows])


def base_parameters(
    model: Model, *, q: ArrayLike | None = None, armature: bool = False, seed: int = 0
) -> BaseParameters:
    """Base parameters of a model: which combinations of inertia parameters its motion depends on.

    Parameters
    ----------
    model
        Joints, placements and gravity decide; inertias only enter `values`.
    q
        With loops: a closed position, around which others are looked for. Without it they are
        assembled from random ones.
    armature
        Whether rotor inertias count as parameters to be identified, too.
    seed
        Of the states that are drawn.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> print(base_parameters(mechanisms.double_pendulum()))
    6 base parameters of 20; 13 have no effect, 4 can be identified by themselves
                 0  upper.h_x
                -2  upper.h_z − lower.m
                 2  upper.I_yy + lower.m
                 0  lower.h_x
                -1  lower.h_z
                 1  lower.I_yy
    """
    names = parameter_names(model, armature)
    W = _forces_told(model, q, armature, np.random.default_rng(seed))
    order = [10 * i + p for i in range(model.n_bodies - 1, -1, -1) for p in GIVEN_AWAY]
    order += range(10 * model.n_bodies, len(names))
    dependent = echelon(null_space(W), order)
    given = [pivot for pivot, _ in dependent]
    independent = tuple(k for k in range(len(names)) if k not in set(given))
    matrix = np.zeros((len(independent), len(names)))
    matrix[np.arange(len(independent)), list(independent)] = 1.0
    for pivot, row in dependent:  # W row = 0 and row[pivot] = 1: W_pivot = −Σ row_i W_i
        matrix[:, pivot] = -row[list(independent)]
    matrix[np.abs(matrix) < NEGLIGIBLE * np.abs(matrix).max(initial=1.0)] = 0.0
    return BaseParameters(names, independent, matrix, matrix @ parameter_values(model, armature))


def _forces_told(
    model: Model, q: ArrayLike | None, armature: bool, rng: np.random.Generator
) -> Array:
    """Regressors of many states, one above the other."""
    rows: list[Array] = []
    start = None if q is None else model.check("q", q)
    for _ in range(STATES if not model.bonds else STATES * max(1, model.n_bodies)):
        t = rng.uniform() if model.is_rheonomic else 0.0
        v, a = rng.standard_normal((2, model.nv))
        if not model.bonds:
            rows.append(regressor(model, model.random(rng), v, a, t=t, armature=armature))
            continue
        at = _closed(model, start, rng, t)
        v = consistent_velocity(model, at, v, t=t)
        c = constraints(model, at, v, t=t)
        _, sizes, right = np.linalg.svd(c.K, full_matrices=True)
        free = right[int(np.sum(sizes > 1e-9 * sizes.max(initial=0.0))) :]
        a = np.linalg.lstsq(c.K, c.gamma, rcond=1e-9)[0] + free.T @ (free @ a)
        rows.append(free @ regressor(model, at, v, a, t=t, armature=armature))
    return np.vstack(rows)


def _closed(model: Model, start: Array | None, rng: np.random.Generator, t: float) -> Array:
    """A position with closed loops, drawn at random."""
    for _ in range(ATTEMPTS):
        step = 0.5 * rng.standard_normal(model.nv)
        guess = model.random(rng) if start is None else model.integrate(start, step)
        try:
            return assemble(model, guess, t=t).q
        except AssemblyError as error:
            last = error
    raise AssemblyError(
        f"base_parameters: no position with closed loops was found in {ATTEMPTS} attempts "
        f"({last}); give one as q"
    )


def _combination(row: Array, own: int, names: tuple[str, ...]) -> str:
    text = names[own]
    for k in np.flatnonzero(row):
        if k == own:
            continue
        size = "" if abs(abs(row[k]) - 1.0) < NEGLIGIBLE else f"{abs(row[k]):.6g} "
        text += f" {'−' if row[k] < 0 else '+'} {size}{names[k]}"
    return text
