"""Trees by seed: planar ones here; spatial ones with every joint in ``random.py``."""

from __future__ import annotations

import numpy as np

from ..algebra.orientation.rotations import Ry
from ..algebra.se3 import Pose
from ..checks import real_scalar
from ..joints import Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import rod
from .random import generator, random_tree
from .registry import register

__all__ = ["planar_tree", "random_tree"]

register(
    q0=lambda model: model.random(0),
    t_end=1.0,
    source="identities between algorithms",
    settings={"n": 8},
)(random_tree)


@register(q0=lambda model: 0.1 * model.random(0), t_end=2.0, source="conserved: energy")
def planar_tree(n: int = 8, seed: int = 0, branching: float = 0.5, gravity: float = 9.81) -> Model:
    """Tree of uniform rods in the xz plane, joined by hinges about y; the seed draws its shape.

    Parameters
    ----------
    n
        Number of rods.
    seed
        The same seed gives the same tree.
    branching
        Probability that a rod hangs on any earlier rod's end and not on that of the last one.
    gravity
        In m/s².

    Examples
    --------
    >>> planar_tree(20, seed=1) == planar_tree(20, seed=1) != planar_tree(20, seed=2)
    True
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a whole number of rods ≥ 1, received {n!r}")
    if not 0.0 <= real_scalar(branching, "branching") <= 1.0:
        raise ValueError(f"branching: expected a probability, 0 to 1, received {branching!r}")
    rng = generator(seed)
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity), name=f"planar tree of {n}, seed {seed}")
    lengths = rng.uniform(0.3, 1.0, n)
    for i in range(n):
        parent = int(rng.integers(1, i + 1)) if i and rng.random() < branching else i
        # Rods are made of the same material, and spread out around the direction of their parent.
        place = Pose(Ry(rng.uniform(-0.9, 0.9)), (0.0, 0.0, -lengths[parent - 1] if parent else 0))
        end = (0.0, 0.0, -lengths[i])
        b.add_body(f"rod{i + 1}", parent, Revolute("y"), place, rod((0, 0, 0), end, density=1.0))
    return b.build()
