"""Robot arms: PUMA 560, a lightweight arm of seven joints, and arms of any length by seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Array
from ..model import Model
from ..model.dh import chain
from ..model.shapes import Inertia
from .registry import register

__all__ = ["PUMA560", "PUMA560_POSES", "lightweight_arm", "puma560", "serial_arm"]

#: Parameters of the PUMA 560 in the standard Denavit–Hartenberg convention: Armstrong, Khatib and
#: Burdick (1986) as revised by Corke and Armstrong-Hélouvry (1994). Lengths in m, masses in kg;
#: centres of mass and inertias about them in link frames. `rotor`, `viscous` and the two values of
#: `coulomb` are on the motor side: seen at the joints they are multiplied by gear², gear², |gear|.
PUMA560: dict[str, Any] = {
    "d": (0.67183, 0.0, 0.15005, 0.4318, 0.0, 0.0),
    "a": (0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0),
    "alpha": (np.pi / 2, 0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, 0.0),
    "mass": (0.0, 17.4, 4.8, 0.82, 0.34, 0.09),
    "com": (
        (0.0, 0.0, 0.0),
        (-0.3638, 0.006, 0.2275),
        (-0.0203, -0.0141, 0.07),
        (0.0, 0.019, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 0.0, 0.032),
    ),
    "moments": (
        (0.0, 0.35, 0.0),
        (0.13, 0.524, 0.539),
        (0.066, 0.086, 0.0125),
        (1.8e-3, 1.3e-3, 1.8e-3),
        (3e-4, 4e-4, 3e-4),
        (1.5e-4, 1.5e-4, 4e-5),
    ),
    "gear": (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686),
    "rotor": (2e-4, 2e-4, 2e-4, 3.3e-5, 3.3e-5, 3.3e-5),
    "viscous": (1.48e-3, 8.17e-4, 1.38e-3, 7.12e-5, 8.26e-5, 3.67e-5),
    "coulomb": (
        (0.395, -0.435),
        (0.126, -0.071),
        (0.132, -0.105),
        (0.0112, -0.0169),
        (0.00926, -0.0145),
        (0.00396, -0.0105),
    ),
}

#: Positions that publications refer to: zero, ready (upright), stretched, nominal.
PUMA560_POSES: dict[str, Array] = {
    "zero": np.zeros(6),
    "ready": np.array([0.0, np.pi / 2, -np.pi / 2, 0.0, 0.0, 0.0]),
    "stretched": np.array([0.0, 0.0, -np.pi / 2, 0.0, 0.0, 0.0]),
    "nominal": np.array([0.0, np.pi / 4, -np.pi, 0.0, np.pi / 4, 0.0]),
}


@register(
    q0=PUMA560_POSES["nominal"],
    t_end=2.0,
    source="gravity loads, inertia matrix and accelerations as printed in robotics textbooks",
)
def puma560(friction: bool = True, rotors: bool = True, gravity: float = 9.81) -> Model:
    """Unimation PUMA 560: six revolute joints, standard Denavit–Hartenberg parameters.

    Parameters
    ----------
    friction
        Whether joints have the motors' viscous friction. Coulomb friction jumps and is left to a
        force function; the values are in ``PUMA560["coulomb"]``.
    rotors
        Whether the motors' rotors count, gear² times their inertia on each joint.
    gravity
        In m/s², along −z of the base.

    Examples
    --------
    >>> from multibody import gravity_forces
    >>> gravity_forces(puma560(), PUMA560_POSES["zero"])[1:3].round(4)
    array([37.4837,  0.2489])
    """
    p = PUMA560
    square = np.square(p["gear"])
    return chain(
        [(a, alpha, d) for a, alpha, d in zip(p["a"], p["alpha"], p["d"])],
        "standard",
        # Published for link 1 is only the moment that acts; alone it is that of no body.
        inertias=[
            Inertia(m, c, I, check=False) for m, c, I in zip(p["mass"], p["com"], p["moments"])
        ],
        names=[f"link{k}" for k in range(1, 7)],
        armature=square * p["rotor"] if rotors else 0.0,
        damping=square * p["viscous"] if friction else 0.0,
        gravity=(0.0, 0.0, -gravity),
        name="PUMA 560",
    )


#: Links of the lightweight arm: twist and offset of the joint before it (modified convention),
#: mass, centre of mass, principal moments about it. Our own round numbers, of the size of common
#: arms of this build.
LIGHTWEIGHT_ARM = (
    (0.0, 0.36, 4.0, (0.0, -0.03, -0.12), (0.1, 0.09, 0.02)),
    (-np.pi / 2, 0.0, 4.0, (0.0, -0.06, 0.04), (0.05, 0.02, 0.045)),
    (np.pi / 2, 0.42, 3.0, (0.0, 0.03, -0.13), (0.08, 0.075, 0.01)),
    (np.pi / 2, 0.0, 2.7, (0.0, 0.07, 0.03), (0.03, 0.01, 0.03)),
    (-np.pi / 2, 0.4, 1.7, (0.0, 0.02, -0.13), (0.02, 0.018, 0.005)),
    (-np.pi / 2, 0.0, 1.8, (0.0, 0.0, 0.01), (0.005, 0.0036, 0.0047)),
    (np.pi / 2, 0.13, 0.3, (0.0, 0.0, 0.02), (0.001, 0.001, 0.001)),
)


@register(q0=np.full(7, 0.3), t_end=2.0, source="conserved: energy (without friction)")
def lightweight_arm(damping: float = 0.0, gravity: float = 9.81) -> Model:
    """Arm of seven joints as in common lightweight robots: shoulder, elbow and wrist.

    Axes stand alternately along and across the links and meet in a shoulder and a wrist.

    Parameters
    ----------
    damping
        Viscous friction of each joint, in N m s. Without it, long motions are chaotic.
    gravity
        In m/s², along −z of the base.

    Examples
    --------
    >>> lightweight_arm().nv
    7
    """
    return chain(
        [(0.0, twist, offset) for twist, offset, *_ in LIGHTWEIGHT_ARM],
        "modified",
        inertias=[Inertia(m, c, np.diag(I)) for _, _, m, c, I in LIGHTWEIGHT_ARM],
        names=[f"link{k}" for k in range(1, 8)],
        damping=damping,
        gravity=(0.0, 0.0, -gravity),
        name="lightweight arm",
    )


@register(t_end=2.0, source="conserved: energy")
def serial_arm(n: int = 7, seed: int = 0, damping: float = 0.0, gravity: float = 9.81) -> Model:
    """Arm of n revolute joints with generic geometry and inertias, for benchmarks.

    No length, angle or moment of inertia is zero, and axes are neither parallel nor at right
    angles, so that nothing can be simplified away. Links get lighter towards the end.

    Parameters
    ----------
    n
        Number of joints.
    seed
        The same seed gives the same arm.
    damping
        Viscous friction of each joint, in N m s. Without it, long motions are chaotic.
    gravity
        In m/s², along −z of the base.

    Examples
    --------
    >>> serial_arm().nv
    7
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a whole number of joints ≥ 1, received {n!r}")
    rng = np.random.default_rng(seed)
    rows, inertias = [], []
    for k in range(n):
        turn = rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 1.4)
        rows.append((rng.uniform(0.02, 0.1), turn, rng.uniform(0.1, 0.3), rng.uniform(-1.0, 1.0)))
        mass = 4.0 * (1.0 - 0.8 * k / n) * rng.uniform(0.8, 1.2)
        second = mass * rng.uniform(1e-3, 4e-3, 3)  # ∫x² dm along the principal axes
        R, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        I = R @ np.diag(second.sum() - second) @ R.T
        com = np.array([0.0, 0.0, 0.1]) + rng.uniform(-0.05, 0.05, 3)
        inertias.append(Inertia(mass, com, (I + I.T) / 2))
    return chain(
        rows,
        "modified",
        inertias=inertias,
        names=[f"link{k}" for k in range(1, n + 1)],
        damping=damping,
        gravity=(0.0, 0.0, -gravity),
        name=f"serial arm of {n}, seed {seed}",
    )
