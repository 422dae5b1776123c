"""Inverse dynamics of closed loops: actuator forces that a motion needs (book, §8.12).

The loops carry a part of the load, so of τ only Gᵀτ = Gᵀτ_ID is determined (Eq 8.61). With
actuators on some joints, G_uᵀ u = Gᵀ τ_ID (8.62): solvable for every motion if G_u has full rank
n − r, and unique if there are no more actuators than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....checks import Array, ArrayLike, check_rank_tolerance, real_array
from ...functions import ID
from ...storage.loading import ForcesLike
from ..closed_loop import RANK_TOLERANCE, constraints
from ..independent import independent_coordinates, velocity_places

if TYPE_CHECKING:
    from ....model import Model

__all__ = ["Actuation", "ActuatorSet", "actuators", "closed_loop_inverse_dynamics"]

#: Part of the load that actuators cannot provide, above which a motion counts as impossible.
LOAD_TOLERANCE = 1e-8


@dataclass(frozen=True)
class ActuatorSet:
    """What a set of actuated joint variables can do at a position.

    Attributes
    ----------
    actuated
        Places in v.
    freedoms
        n − r, of the mechanism.
    rank
        Of G_u: how many of them the actuators command.
    """

    actuated: tuple[int, ...]
    freedoms: int
    rank: int
    G: Array

    @property
    def is_under_actuated(self) -> bool:
        """Whether some motions need forces that no actuator can give."""
        return self.rank < self.freedoms

    @property
    def is_redundant(self) -> bool:
        """Whether different actuator forces have the same effect."""
        return len(self.actuated) > self.rank

    @property
    def kind(self) -> str:
        """Say whether actuators are too few, enough, too many, or both too few and too many."""
        kinds = {
            (False, False): "fully actuated",
            (True, False): "under-actuated",
            (False, True): "redundantly actuated",
            (True, True): "under- and redundantly actuated",
        }
        return kinds[self.is_under_actuated, self.is_redundant]

    def __str__(self) -> str:
        return (
            f"{self.kind}: {len(self.actuated)} actuators command {self.rank} of {self.freedoms} "
            "degrees of freedom"
        )


def actuators(
    model: Model,
    q: ArrayLike,
    actuated: Sequence[int | str],
    *,
    t: float = 0.0,
    rank_tolerance: float = RANK_TOLERANCE,
) -> ActuatorSet:
    """Classify a set of actuators (book, §8.12).

    Parameters
    ----------
    actuated
        Velocity variables with actuators: places in v, names of variables or of bodies.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> entry = mechanisms.entry("five_bar")
    >>> model = entry.model()
    >>> q, _ = entry.start(model)
    >>> print(actuators(model, q, ["left", "right"]))
    fully actuated: 2 actuators command 2 of 2 degrees of freedom
    >>> print(actuators(model, q, ["left"]).kind)
    under-actuated
    """
    rank_tolerance = check_rank_tolerance(rank_tolerance)
    places = velocity_places(model, actuated)
    if not places:
        raise ValueError("actuated: expected at least one velocity variable, received none")
    G = _motions(model, q, t, rank_tolerance)
    sizes = np.linalg.svd(G[places], compute_uv=False)
    # G has ones on its independent rows, so its entries are relative to 1.
    rank = int(np.sum(sizes > rank_tolerance))
    return ActuatorSet(tuple(places), G.shape[1], rank, G)


def _motions(model: Model, q: ArrayLike, t: float, rank_tolerance: float) -> Array:
    if not model.bonds:
        return np.eye(model.nv)
    return independent_coordinates(model, q, t=t, rank_tolerance=rank_tolerance).G


@dataclass(frozen=True)
class Actuation:
    """Actuator forces for a motion.

    Attributes
    ----------
    forces
        u, one for each actuated variable, in the order in which they were given.
    tau
        The same as joint forces: zero where there is no actuator.
    actuators
        What the set can do.
    """

    forces: Array
    tau: Array
    actuators: ActuatorSet


def closed_loop_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    actuated: Sequence[int | str],
    f_ext: ForcesLike = None,
    *,
    weights: str | ArrayLike | None = None,
    t: float = 0.0,
    rank_tolerance: float = RANK_TOLERANCE,
) -> Actuation:
    """Actuator forces that make a mechanism with loops accelerate as given.

    Parameters
    ----------
    model, q, v, a
        The motion; it must be one that the loops allow.
    actuated
        Velocity variables with actuators: places in v, names of variables or of bodies.
    f_ext
        External forces, as in :func:`~multibody.ID`.
    weights
        For redundant actuators, which of the many solutions is meant: "minimum norm", or a
        positive number w for each actuator, to minimise Σ w u².

    Raises
    ------
    ValueError
        If the motion opens a loop, if the actuators cannot cause it, or if they are redundant and
        no weights were given.

    Examples
    --------
    >>> from multibody import constrained_accelerations, mechanisms
    >>> entry = mechanisms.entry("four_bar")
    >>> model = entry.model()
    >>> q, v = entry.start(model)
    >>> a = constrained_accelerations(model, q, v, [3.0, 0.0, 0.0]).accelerations
    >>> closed_loop_inverse_dynamics(model, q, v, a, ["crank"]).forces.round(9)
    array([3.])
    """
    q, v, a = model.check("q", q), model.check("v", v), model.check("a", a)
    _check_motion(model, q, v, a, t)
    found = actuators(model, q, actuated, t=t, rank_tolerance=rank_tolerance)
    places = list(found.actuated)
    load = found.G.T @ ID(model, q, v, a, f_ext, t=t)
    A = found.G[places].T
    scale = _weights(found, weights)
    # Minimise Σ w u² with A u = load: u = W^(−1/2) (A W^(−1/2))⁺ load.
    y = np.linalg.lstsq(A / scale, load, rcond=rank_tolerance)[0]
    u = y / scale
    missing = float(np.abs(A @ u - load).max(initial=0.0))
    if missing > LOAD_TOLERANCE * (1.0 + np.abs(load).max(initial=0.0)):
        raise ValueError(
            f"the actuators {[model.v_names[k] for k in places]} cannot cause this motion: "
            f"{missing:.3g} of the load is left over ({found}); actuate other joints, or ask for "
            "a motion that these can cause"
        )
    tau = np.zeros(model.nv)
    tau[places] = u
    return Actuation(u, tau, found)


def _weights(found: ActuatorSet, weights: str | ArrayLike | None) -> Array:
    """Square roots of the weights."""
    n = len(found.actuated)
    if weights is None:
        if found.is_redundant:
            raise ValueError(
                f"{found}: their forces are not determined; give weights='minimum norm', or a "
                "positive number for each actuator"
            )
        return np.ones(n)
    if isinstance(weights, str):
        if weights != "minimum norm":
            raise ValueError(f"weights: expected 'minimum norm' or numbers, received {weights!r}")
        return np.ones(n)
    w = real_array(weights, "weights").astype(float)
    if w.shape != (n,) or np.any(w <= 0.0):
        raise ValueError(f"weights: expected {n} positive numbers, received {weights!r}")
    return np.asarray(np.sqrt(w))


def _check_motion(model: Model, q: Array, v: Array, a: Array, t: float) -> None:
    if not model.bonds:
        return
    c = constraints(model, q, v, t=t)
    size = 1.0 + np.abs(a).max(initial=0.0) + np.abs(v).max(initial=0.0) ** 2
    for what, values in (
        ("position", c.delta),
        ("velocity", c.K @ v - c.nu),
        ("acceleration", c.K @ a - c.gamma),
    ):
        worst = int(np.argmax(np.abs(values))) if values.size else 0
        if values.size and abs(values[worst]) > 1e-6 * size:
            raise ValueError(
                f"the {what} violates the loop constraint {c.names[worst]} by {values[worst]:.3g}; "
                "use assemble, consistent_velocity, and accelerations with K a = γ (see "
                "`constraints`)"
            )
