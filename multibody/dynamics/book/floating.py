"""Floating bases: satellites, walkers, anything not fixed to the ground (book, §9.3–9.5).

A model whose roots hang on `Free` or `Planar` joints can be treated as an ordinary tree. Here the
variables of these joints are an unknown acceleration a₀ that no force acts on:

    [ I₀^c  F ] [ a₀ ]   [ p₀^c ]   [ 0 ]
    [ Fᵀ    H ] [ q̈  ] + [ C    ] = [ τ ]            (Eq 9.13)

q, v and results are those of the model with its joints at the ground. The six velocities of a
`Free` joint are v₀ in body coordinates, and because v₀ × v₀ = 0 their derivatives are the *spatial*
acceleration a₀; so the blocks are those of the inertia matrix and of the bias forces, and the
tables of the book are what the kernels of `FD`, `ID`, `crba` and `hybrid_dynamics` do with such a
joint. Several roots are several such blocks. Springs, dampers and stops act as in `FD`.

Loops and constraints are kept by forward and hybrid dynamics, as by `FD`. The other functions say
what holds for the tree, as `crba` and `ID` do; where a loop or a constraint holds the mechanism to
the ground, its base does not give way freely, and inverse dynamics and Jacobian are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...checks import Array, ArrayLike, one_of
from ..functions import FD, ID, crba
from ..hybrid.functions import hybrid_dynamics
from ..loops.closed_loop import constraints
from ..loops.response import loops_to_the_ground
from ..motion import body_jacobian, kinematics
from ..storage.loading import ForcesLike

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "FloatingEquation",
    "FloatingHybrid",
    "FloatingMotion",
    "floating_equation",
    "floating_forward_dynamics",
    "floating_hybrid_dynamics",
    "floating_inverse_dynamics",
    "floating_jacobian",
]

#: What is left of a constraint's row under a motion of everything, in parts of its entries, if it
#: does not hold the mechanism to the ground: rounding.
HELD = 1e-9


class FloatingMotion(NamedTuple):
    """Acceleration of the base (spatial, in its coordinates) and of the joints."""

    base: Array
    joints: Array

    @property
    def array(self) -> Array:
        """Both, as `FD` returns them for one root; of several roots, all of these first."""
        return np.concatenate([self.base, self.joints])


class FloatingHybrid(NamedTuple):
    """Accelerations of base and joints, and joint forces, known and found."""

    base: Array
    joints: Array
    tau: Array


class FloatingEquation(NamedTuple):
    """Blocks of Eq 9.13, in floating-base coordinates; p and C contain gravity and springs."""

    I_c: Array
    F: Array
    H: Array
    p_c: Array
    C: Array
    places: tuple[int, ...]  # in the model's v of the variables of the base, then of the joints

    @property
    def H_fl(self) -> Array:
        """H^fl = H − Fᵀ (I₀^c)⁻¹ F: inertia of the joints when the base gives way (Eq 9.15)."""
        return self.H - self.F.T @ np.linalg.solve(self.I_c, self.F)

    @property
    def C_fl(self) -> Array:
        """C^fl = C − Fᵀ (I₀^c)⁻¹ p₀^c (Eq 9.16), so that H^fl q̈ + C^fl = τ (Eq 9.14)."""
        return self.C - self.F.T @ np.linalg.solve(self.I_c, self.p_c)

    @property
    def matrix(self) -> Array:
        """The matrix of Eq 9.13: the inertia matrix of the model, in the order of `places`."""
        return np.block([[self.I_c, self.F], [self.F.T, self.H]])

    def momentum(self, v: Array) -> Array:
        """Spatial momentum I₀^c v₀ + F q̇ (Ex 9.3), in base coordinates, v as in the model."""
        n, ordered = len(self.I_c), np.asarray(v)[list(self.places)]
        return self.I_c @ ordered[:n] + self.F @ ordered[n:]

    def kinetic_energy(self, v: Array) -> float:
        """½ vᵀ [I₀^c F; Fᵀ H] v (Ex 9.3), v as in the model."""
        ordered = np.asarray(v)[list(self.places)]
        return 0.5 * float(ordered @ self.matrix @ ordered)


def _places(model: Model) -> tuple[list[int], list[int]]:
    """Places in v of the variables of the base, and of all others."""
    from ...joints import Free, Planar

    base: list[int] = []
    for body, place in zip(model.bodies, model.v_index):
        if body.parent:
            continue
        if not isinstance(body.joint, Free | Planar) or body.reverse:
            if not base:
                raise ValueError(
                    "floating base: expected roots on Free joints (or Planar ones) that are not "
                    f"reversed, received {body.joint!r}; use FD and ID for trees on the ground"
                )
            raise ValueError(
                f"floating base: expected all bodies to hang on {model.bodies[0].name!r} and other "
                f"floating roots, received {body.name!r} on the ground"
            )
        base += range(place.start, place.stop)
    return base, [k for k in range(model.nv) if k not in set(base)]


def _check_afloat(model: Model, where: str, q: Array, t: float) -> None:
    held = loops_to_the_ground(model)
    if not held and model.constraints:
        first = model.tree.arrays["loop_at"][len(model.loops)]
        c = constraints(model, q, t=t)
        moved = _rigid_motions(model, q, t)
        left = np.abs(c.K[first:] @ moved).max(axis=1, initial=0.0)
        size = np.abs(c.K[first:]).max(axis=1, initial=0.0)
        held = [name for name, x, s in zip(c.names[first:], left, size) if x > HELD * s]
    if held:
        raise ValueError(
            f"{where}: expected a mechanism that floats, received one that {held[0]!r} "
            "holds to the ground, so that its base does not give way freely; use ID, body_jacobian "
            "and closed_loop_inverse_dynamics"
        )


def _rigid_motions(model: Model, q: Array, t: float) -> Array:
    """Velocities v while everything moves as one body, a column for each motion of the base."""
    moved = np.zeros((model.nv, 6))
    for i, body in enumerate(model.bodies, 1):
        if body.parent == 0:
            J = body_jacobian(model, q, i, t=t)[:, model.v_index[i - 1]]
            moved[model.v_index[i - 1]] = np.linalg.pinv(J) @ _from_base(model, q, i, t)
    return moved


def _from_base(model: Model, q: Array, body: int, t: float) -> Array:
    pose = kinematics(model, q, t=t).poses[body]
    return np.asarray(pose.to_plucker().matrix())


def _joint_vector(model: Model, name: str, value: ArrayLike | None) -> tuple[Array, list[int]]:
    """nv numbers from those of the joints without the base (zeros for None), and their places."""
    base, joints = _places(model)
    full = np.zeros(model.nv)
    if value is not None:
        array = np.atleast_1d(np.asarray(value, dtype=float))
        if array.shape != (len(joints),):
            count = "six" if len(base) == 6 else str(len(base))
            raise ValueError(
                f"{name}: expected {len(joints)} numbers, one for each joint variable without the "
                f"{count} of the base, received shape {array.shape}"
            )
        full[joints] = array
    return full, joints


def floating_equation(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> FloatingEquation:
    """Coefficients of Eq 9.13 by composite bodies and Newton–Euler (first half of Table 9.5).

    They are those of the tree: with loops, the multipliers' Kᵀλ are added to the right-hand side.

    Examples
    --------
    A reaction wheel of 1 kg m² in a satellite of 3 kg m²: the motor feels 3/4 kg m².

    >>> from multibody import Free, Inertia, ModelBuilder, Revolute
    >>> b = ModelBuilder()
    >>> _ = b.add_body("satellite", 0, Free(), inertia=Inertia(5.0, (0, 0, 0), (3, 3, 3)))
    >>> _ = b.add_body("wheel", "satellite", Revolute(), inertia=Inertia(1.0, I_com=(1, 1, 1)))
    >>> model = b.build()
    >>> floating_equation(model, model.neutral(), np.zeros(7)).H_fl
    array([[0.75]])
    """
    base, joints = _places(model)
    H = crba(model, q, t=t)
    C = ID(model, q, v, np.zeros(model.nv), f_ext, t=t)
    return FloatingEquation(
        H[np.ix_(base, base)],
        H[np.ix_(base, joints)],
        H[np.ix_(joints, joints)],
        C[base],
        C[joints],
        (*base, *joints),
    )


def floating_forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
    form: str = "aba",
) -> FloatingMotion:
    """Forward dynamics with a floating base.

    Parameters
    ----------
    model
        All roots on `Free` or `Planar` joints; loops and constraints, if any, are kept.
    q, v
        As for `FD`.
    tau
        Joint forces, one for each variable that is not of the base: nv − 6 for one `Free` root.
    f_ext
        External forces in ground coordinates: an array (n_bodies, 6), or a dictionary by names of
        bodies.
    form
        "aba" (Table 9.4) or "crba" (Table 9.5); with loops and constraints there is one way.

    Examples
    --------
    In free fall joints do not feel gravity:

    >>> from multibody.mechanisms.random import random_tree
    >>> model = random_tree(4, 3, "revolute", root="free")
    >>> found = floating_forward_dynamics(model, model.random(0), np.zeros(model.nv))
    >>> np.abs(found.joints).max() < 1e-12
    np.True_
    """
    one_of(form, "form", ("aba", "crba"))
    full, joints = _joint_vector(model, "tau", tau)
    base, _ = _places(model)
    a = FD(model, q, v, full, f_ext, t=t, method="loops" if model.bonds else form)
    return FloatingMotion(a[base], a[joints])


def floating_hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | Mapping[str | int, ArrayLike] | None = None,
    a: Mapping[str | int, ArrayLike] | None = None,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> FloatingHybrid:
    """Hybrid dynamics while the base gives way: some joints prescribed, the others forward.

    Parameters
    ----------
    tau
        Forces of the joints that are not prescribed, as in :func:`~multibody.hybrid_dynamics`.
    a
        Accelerations of the prescribed joints, by bodies, variables or places in v.

    Examples
    --------
    A man walks in a boat with 1 m/s²; the boat of 30 kg goes back:

    >>> from multibody import Free, Inertia, ModelBuilder, Prismatic
    >>> b = ModelBuilder(gravity=(0, 0, 0))
    >>> _ = b.add_body("boat", 0, Free(), inertia=Inertia(30.0, (0, 0, 0), (1, 1, 1)))
    >>> _ = b.add_body("man", "boat", Prismatic("x"), inertia=Inertia(10.0))
    >>> model = b.build()
    >>> found = floating_hybrid_dynamics(model, model.neutral(), np.zeros(7), a={"man": 1.0})
    >>> found.base[3], found.tau
    (np.float64(-0.25), array([7.5]))
    """
    base, joints = _places(model)
    names = {model.bodies[i].name for i, b in enumerate(model.bodies) if b.parent == 0}
    for given in (a or {}, tau if isinstance(tau, Mapping) else {}):
        wrong = [key for key in given if key in names or key in base]
        if wrong:
            raise ValueError(
                f"floating_hybrid_dynamics: {wrong[0]!r} is the base, which nothing pushes and "
                "nothing prescribes; use hybrid_dynamics"
            )
    found = hybrid_dynamics(model, q, v, tau, a or {}, None, f_ext, t=t)
    return FloatingHybrid(found.a[base], found.a[joints], found.tau[joints])


def floating_inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ForcesLike = None,
    *,
    t: float = 0.0,
) -> tuple[Array, Array]:
    """Joint forces for given joint accelerations, while the base moves as it must (Table 9.6).

    Parameters
    ----------
    a
        Accelerations of all variables but those of the base; with loops, ones that these allow.

    Returns
    -------
    a_0, tau
        Spatial acceleration of the base in its coordinates; joint forces, nv − 6 numbers. Loops
        inside the mechanism do not change a_0; the forces are those of the tree, as of `ID`.

    Raises
    ------
    ValueError
        If a loop or a constraint holds the mechanism to the ground.
    """
    full, joints = _joint_vector(model, "a", a)
    base, _ = _places(model)
    _check_afloat(model, "floating_inverse_dynamics", model.check("q", q), t)
    # Composite inertia of the base, and the force that it would take to hold it.
    I_c = crba(model, q, t=t)[np.ix_(base, base)]
    full[base] = -np.linalg.solve(I_c, ID(model, q, v, full, f_ext, t=t)[base])
    return full[base], ID(model, q, v, full, f_ext, t=t)[joints]


def floating_jacobian(model: Model, q: ArrayLike, body: str | int, *, t: float = 0.0) -> Array:
    """J_i^fl = J_i − ⁱX₀ (I₀^c)⁻¹ F (Ex 9.4): what joints do to a body when the base gives way.

    J^fl q̇ is the velocity of the body, in its coordinates, while the momentum of the whole is zero;
    with loops inside the mechanism, for those q̇ that they allow.

    Examples
    --------
    >>> from multibody import Free, Inertia, ModelBuilder, Prismatic
    >>> b = ModelBuilder()
    >>> _ = b.add_body("boat", 0, Free(), inertia=Inertia(3.0, (0, 0, 0), (1, 1, 1)))
    >>> _ = b.add_body("man", "boat", Prismatic("x"), inertia=Inertia(1.0))
    >>> model = b.build()
    >>> floating_jacobian(model, model.neutral(), "boat")[3]
    array([-0.25])
    """
    base, joints = _places(model)
    _check_afloat(model, "floating_jacobian", model.check("q", q), t)
    if model.number(body) == 0:
        raise ValueError("body: expected a moving body, received the ground")
    H, J = crba(model, q, t=t), body_jacobian(model, q, body, t=t)
    gives_way = np.linalg.solve(H[np.ix_(base, base)], H[np.ix_(base, joints)])
    return np.asarray(J[:, joints] - J[:, base] @ gives_way)
