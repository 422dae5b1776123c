"""Trees drawn at random from a seed, to test and to time algorithms on."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..algebra.inertia import RigidInertia
from ..algebra.orientation import quaternions
from ..algebra.se3 import Pose
from ..checks import Array, ArrayLike, real_scalar
from ..joints import REGISTRY, Joint, joint_names
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia

__all__ = ["random_joint", "random_tree"]

#: Sequences from which a joint of kind "angles" is drawn.
SEQUENCES = ("zyx", "zxz", "xyz", "yz")


def random_tree(
    n: int,
    seed: int | np.random.Generator = 0,
    joints: str | Joint | Sequence[str | Joint] | None = None,
    *,
    root: str | Joint | None = None,
    branching: float = 0.5,
    reverse: float = 0.2,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Model:
    """Random kinematic tree: placements, inertias, joints and connections follow from the seed.

    Parameters
    ----------
    n
        Number of bodies.
    seed
        A number, or a generator to go on drawing from. The same seed gives the same tree.
    joints
        What to draw from: names of registered joints (axis and parameters are then drawn, too)
        or joint objects (used as they are). By default all registered joints that need no
        functions.
    root
        Joint of the first body, if it is to be a particular one: ``root="free"`` makes a
        floating base, on which all other bodies hang.
    branching
        Probability that a body hangs on any earlier body (or the base) and not on the last one:
        0 makes a chain.
    reverse
        Probability that a joint is reversed.
    gravity
        In base coordinates.

    Examples
    --------
    >>> model = random_tree(12, seed=1, joints=["revolute", "spherical"])
    >>> model.n_bodies, model == random_tree(12, seed=1, joints=["revolute", "spherical"])
    (12, True)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a whole number of bodies ≥ 1, received {n!r}")
    for name, value in (("branching", branching), ("reverse", reverse)):
        if not 0.0 <= real_scalar(value, name) <= 1.0:
            raise ValueError(f"{name}: expected a probability, 0 to 1, received {value!r}")
    rng = generator(seed)
    if joints is None:
        pool: list[str | Joint] = [kind for kind in joint_names() if needs_only_numbers(kind)]
    else:
        pool = [joints] if isinstance(joints, str | Joint) else list(joints)
    if not pool:
        raise ValueError("joints: expected at least one joint, received none; leave it out for all")
    label = f", seed {seed}" if isinstance(seed, int | np.integer) else ""
    builder = ModelBuilder(gravity, name=f"random tree of {n}{label}")
    for i in range(1, n + 1):
        anywhere = rng.random() < branching
        lowest = 0 if root is None else min(1, i - 1)
        parent = int(rng.integers(lowest, i)) if anywhere else i - 1
        kind = root if root is not None and i == 1 else pool[int(rng.integers(len(pool)))]
        joint = kind if isinstance(kind, Joint) else random_joint(kind, rng)
        turned = rng.random() < reverse and not (root is not None and i == 1)
        builder.add_body(
            f"body{i}", parent, joint, _random_pose(rng), _random_inertia(rng), bool(turned)
        )
    return builder.build()


def generator(seed: Any) -> np.random.Generator:
    """Return a generator for a seed: a whole number ≥ 0, or a generator, which goes on.

    Examples
    --------
    >>> generator(1).random() == generator(1).random()
    True
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(
            f"seed: expected a whole number ≥ 0 or a numpy.random.Generator, received {seed!r}"
        )
    return np.random.default_rng(seed)


def random_joint(kind: str, rng: np.random.Generator) -> Joint:
    """Joint of a registered kind, with axis and parameters drawn at random.

    Examples
    --------
    >>> random_joint("cylindrical", np.random.default_rng(0)).nv
    2
    """
    if kind not in REGISTRY:
        near = difflib.get_close_matches(kind, REGISTRY, 1) if isinstance(kind, str) else []
        hint = f"did you mean {near[0]!r}?" if near else f"there are {joint_names()}"
        raise ValueError(f"joints: no joint is named {kind!r}; {hint}")
    if not needs_only_numbers(kind):
        raise ValueError(
            f"joints: {kind!r} needs more than numbers; give a joint object in place of its name"
        )
    arguments: dict[str, Any] = {name: float(rng.uniform(0.1, 0.5)) for name in _required(kind)}
    names = REGISTRY[kind].arguments
    if "sequence" in names:
        arguments["sequence"] = SEQUENCES[int(rng.integers(len(SEQUENCES)))]
    if "axis" in names:
        # Every third axis is a coordinate axis: there the general formulae have special cases.
        along = np.eye(3)[int(rng.integers(3))] * rng.choice([-1.0, 1.0])
        arguments["axis"] = along if rng.random() < 1 / 3 else rng.standard_normal(3)
    return REGISTRY[kind](**arguments)


def needs_only_numbers(kind: str) -> bool:
    """Whether axis and numbers suffice to make a joint of this kind.

    Examples
    --------
    >>> needs_only_numbers("helical"), needs_only_numbers("driven")
    (True, False)
    """
    required = _required(kind).values()
    return all(p.annotation == "float" for p in required)


def _required(kind: str) -> dict[str, inspect.Parameter]:
    """Arguments that a joint of this kind cannot do without."""
    parameters = inspect.signature(REGISTRY[kind]).parameters
    return {name: p for name, p in parameters.items() if p.default is p.empty}


def _random_pose(rng: np.random.Generator) -> Pose:
    R: Array = quaternions.to_matrix(quaternions.normalise(rng.standard_normal(4)))
    return Pose(R, rng.uniform(-0.5, 0.5, 3))


def _random_inertia(rng: np.random.Generator) -> RigidInertia:
    """Body of about 1 kg and 0.3 m: second moments of mass along turned principal axes."""
    mass = float(rng.uniform(0.5, 2.0))
    second = mass * rng.uniform(0.02, 0.1, 3)
    R = quaternions.to_matrix(quaternions.normalise(rng.standard_normal(4)))
    I_com = R @ np.diag(second.sum() - second) @ R.T
    return Inertia(mass, rng.uniform(-0.3, 0.3, 3), (I_com + I_com.T) / 2)
