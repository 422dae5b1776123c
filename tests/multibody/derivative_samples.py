"""Helpers of the tests of derivatives: force elements for any model, and comparison of matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multibody import Model
from multibody.model import PointSpring


def with_elements(model, seed=0):
    """The same with springs and dampers, in joints and between points, and rotors."""
    rng = np.random.default_rng(seed)
    n = model.n_bodies
    bodies = []
    for b in model.bodies:
        new = {"damping": rng.uniform(0.1, 1.0, b.joint.nv)}
        if b.joint.rate_is_velocity:
            new["stiffness"] = rng.uniform(1.0, 2.0, b.joint.nv)
            new["limits"] = np.tile([-0.1, 0.1, 3.0, 0.5], (b.joint.nv, 1))
        if b.joint.nv == 1:
            new["armature"] = rng.uniform(0.1, 0.2, 1)
        bodies.append(replace(b, **new))
    ends = ((0, n), (1, n), (n, 2), (2, 0))
    springs = [
        PointSpring(f"s{k}", a, rng.normal(size=3), b, rng.normal(size=3), 2.0, 0.7, 0.4 * (k % 2))
        for k, (a, b) in enumerate(ends)
    ]
    return Model(
        tuple(bodies), model.loops, tuple(springs), model.gravity, model.name + " on springs"
    )


def assert_near(found, expected, tolerance):
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * size)
