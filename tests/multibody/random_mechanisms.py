"""Mechanisms drawn at random from everything that a model can have, in a state that is consistent.

Trees, floating bases, loops (several, redundant ones too), drives, reversed joints, springs,
dampers, stops, armature. A loop is closed where it is drawn: its frame on the successor is put
where the joint, at a position drawn at random, wants it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import multibody as mb
from multibody.algebra.plucker import Plucker
from multibody.mechanisms.random import random_joint, random_tree
from multibody.model import Loop, Model, PointSpring

TREE = ("revolute", "prismatic", "helical", "cylindrical", "spherical", "universal", "planar")
LOOPS = ("revolute", "spherical", "cylindrical", "universal", "prismatic", "planar")


def swing(t):
    return [0.4 * np.sin(2.0 * t)]


class Drawn(NamedTuple):
    """A model and a state in which its loops are closed and stay so."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray
    t: float


def draw(seed, *, floating=None, loops=None, driven=None, elements=None, n=None):
    """Draw a mechanism; what is None is drawn, too."""
    rng = np.random.default_rng(seed)

    def choose(given, chance):
        return bool(rng.random() < chance) if given is None else given

    floating, driven = choose(floating, 0.4), choose(driven, 0.3)
    loops = int(rng.integers(0, 3)) if loops is None else loops
    n = int(rng.integers(3, 7)) if n is None else n
    model = random_tree(n, rng, TREE, root="free" if floating else None)
    if driven:  # the last body, so that no loop loses its only freedom
        bodies = list(model.bodies)
        nothing = dict.fromkeys((*FORCES, "limits"), np.zeros(0))
        bodies[-1] = replace(bodies[-1], joint=mb.Driven(mb.Revolute("x"), swing), **nothing)
        model = replace(model, bodies=tuple(bodies))
    if choose(elements, 0.6):
        model = with_elements(model, rng)
    q, t = model.random(rng), float(rng.uniform(0.1, 1.0))
    for k in range(loops):
        model = with_loop(model, rng, q, t, f"loop{k}")
    v = rng.uniform(-1.0, 1.0, model.nv)
    if model.loops:
        try:
            v = mb.consistent_velocity(model, q, v, t=t)
        except mb.AssemblyError:  # the loops hold what the drive wants to move
            return draw(seed, floating=floating, loops=loops, driven=False, n=n)
    return Drawn(
        model, q, v, rng.uniform(-2, 2, model.nv), rng.uniform(-2, 2, (model.n_bodies, 6)), t
    )


FORCES = ("armature", "damping", "stiffness", "rest")


def with_elements(model, rng):
    """Armature, dampers, springs and stops at the joints, and a spring between points."""
    bodies = []
    for body in model.bodies:
        n = body.joint.nv
        given = {"damping": rng.uniform(0.0, 0.5, n)}
        if body.joint.rate_is_velocity and n:
            given["armature"] = rng.uniform(0.0, 0.5, n)
            given["stiffness"] = rng.uniform(0.0, 3.0, n)
            given["rest"] = rng.uniform(-1.0, 1.0, n)
            given["limits"] = np.tile([-0.3, 0.3, 20.0, 0.5], (n, 1))
        bodies.append(replace(body, **given))
    ends = int(rng.integers(0, model.n_bodies)), model.n_bodies
    points = rng.uniform(-0.5, 0.5, (2, 3))
    spring = PointSpring("spring", ends[0], points[0], ends[1], points[1], 5.0, 0.3, 0.2)
    return replace(model, bodies=tuple(bodies), springs=(spring,))


def with_loop(model, rng, q, t, name):
    """Close a loop between two bodies drawn at random (one may be the base), at this position."""
    ends = rng.choice(model.n_bodies + 1, 2, replace=False)
    joint = random_joint(LOOPS[int(rng.integers(len(LOOPS)))], rng)
    X_J = joint.motion(joint.random(rng)).X
    poses = mb.kinematics(model, q, t=t).poses
    X_p, X_s = (Plucker(poses[i].R.T, poses[i].p) for i in ends)
    X_P = Plucker(np.eye(3), rng.uniform(-0.5, 0.5, 3))
    X_S = X_J * X_P * X_p * X_s.inverse()
    loop = Loop(name, int(ends[0]), int(ends[1]), joint, X_P, X_S)
    return replace(model, loops=(*model.loops, loop))
