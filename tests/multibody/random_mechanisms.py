"""Mechanisms drawn at random from everything that a model can have, in a state that is consistent.

Trees, floating bases, loops (several, redundant ones too), gears, constraints by functions,
drives, reversed joints, joints made from functions, springs, dampers, stops, armature, and elements
such as bushings and motors, some of which have states of their own. A loop is
closed where it is drawn: its frame on the successor is put where the joint, at a position drawn at
random, wants it. So are gears (by their offset) and constraints (by a parameter).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import multibody as mb
from multibody.algebra.plucker import Plucker
from multibody.elements import NamedElement
from multibody.joints import joint_names
from multibody.mechanisms.random import needs_only_numbers, random_joint, random_tree
from multibody.model import Constraint, Loop, Model, PointSpring
from multibody.model.gearing import gear_constraint

TREE = ("revolute", "prismatic", "helical", "cylindrical", "spherical", "universal", "planar")
LOOPS = ("revolute", "spherical", "cylindrical", "universal", "prismatic", "planar")
#: Every joint that a tree, and that a loop, can have without a function of one's own.
EVERY = tuple(kind for kind in joint_names() if needs_only_numbers(kind))


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


def bent_slide(q):
    """A joint of one variable along a curve, which turns as it goes."""
    c, s = np.cos(0.5 * q[0]), np.sin(0.5 * q[0])
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array(
        [q[0], 0.2 * q[0] ** 2, s]
    )


def draw(
    seed, *, floating=None, loops=None, driven=None, elements=None, n=None, stated=0, laws=False,
    every=False,
):  # fmt: skip
    """Draw a mechanism; what is None is drawn, too, `stated` gears and constraints among it.

    With `laws` it also has bushings, motors and the like; with `every`, joints of every kind.
    """
    rng = np.random.default_rng(seed)

    def choose(given, chance):
        return bool(rng.random() < chance) if given is None else given

    floating, driven = choose(floating, 0.4), choose(driven, 0.3)
    loops = int(rng.integers(0, 3)) if loops is None else loops
    n = int(rng.integers(3, 7)) if n is None else n
    tree = random_tree(n, rng, EVERY if every else TREE, root="free" if floating else None)
    bodies = list(tree.bodies)
    nothing = dict.fromkeys((*FORCES, "limits"), np.zeros(0))
    if driven:  # the last body, so that no loop loses its only freedom
        bodies[-1] = replace(bodies[-1], joint=mb.Driven(mb.Revolute("x"), swing), **nothing)
    if stated is None and rng.random() < 0.3:
        k = int(rng.integers(n))
        bodies[k] = replace(bodies[k], joint=mb.UserJoint(bent_slide, ["x"]), **nothing)
    if choose(elements, 0.6):
        tree = with_elements(tree, bodies, rng)
    else:
        tree = replace(tree, bodies=tuple(bodies))
    q, t = tree.random(rng), float(rng.uniform(0.1, 1.0))
    poses = mb.kinematics(tree, q, t=t).poses
    closed = tuple(
        loop(tree, rng, poses, EVERY if every else LOOPS, f"loop{k}") for k in range(loops)
    )
    count = int(rng.integers(0, 3)) if stated is None else stated
    count = count if tree.nv else 0
    held = tuple(constraint(tree, rng, q, t, poses, f"stated{k}") for k in range(count))
    v, tau = rng.uniform(-1.0, 1.0, tree.nv), rng.uniform(-2, 2, tree.nv)
    f_ext = rng.uniform(-2, 2, (n, 6))
    acting = random_laws(tree, rng) if laws else ()
    model = tree
    if closed or held or acting:
        model = replace(tree, loops=closed, constraints=held, elements=acting)
    q = np.concatenate([q, rng.uniform(-0.2, 0.2, model.n_states)])
    if model.bonds:
        try:
            v = mb.consistent_velocity(model, q, v, t=t)
        except mb.AssemblyError:  # the loops hold what the drive wants to move
            again = {"floating": floating, "loops": loops, "driven": False, "n": n}
            again |= {"laws": laws, "every": every}
            if not driven:  # or constraints contradict each other
                return draw(seed, **again)
            return draw(seed, **again, stated=stated)
    return Drawn(model, q, v, tau, f_ext, t)


FORCES = ("armature", "damping", "stiffness", "rest")


def with_elements(model, bodies, rng):
    """Armature, dampers, springs and stops at the joints, and a spring between points."""
    for k, body in enumerate(bodies):
        n = body.joint.nv
        given = {"damping": rng.uniform(0.0, 0.5, n)}
        if body.joint.rate_is_velocity and n:
            given["armature"] = rng.uniform(0.0, 0.5, n)
            given["stiffness"] = rng.uniform(0.0, 3.0, n)
            given["rest"] = rng.uniform(-1.0, 1.0, n)
            given["limits"] = np.tile([-0.3, 0.3, 20.0, 0.5], (n, 1))
        bodies[k] = replace(body, **given)
    ends = int(rng.integers(0, model.n_bodies)), model.n_bodies
    points = rng.uniform(-0.5, 0.5, (2, 3))
    spring = PointSpring("spring", ends[0], points[0], ends[1], points[1], 5.0, 0.3, 0.2)
    return replace(model, bodies=tuple(bodies), springs=(spring,))


def cubic(x, v):
    return 3.0 * x + 2.0 * x**3 + 0.4 * v


def random_laws(model, rng):
    """One to three elements between bodies or at joints of one freedom, some with own states."""
    names = ["base", *[body.name for body in model.bodies]]
    singles = [body.name for body in model.bodies if body.joint.nv == 1]
    found = []
    for k in range(int(rng.integers(1, 4))):
        kinds = [
            "bushing",
            "spring",
            "force",
            *["joint", "motor", "pid", "friction"][: 4 * len(singles)],
        ]
        kind = str(rng.choice(kinds))
        a, b = (names[int(i)] for i in rng.permutation(len(names))[:2])
        points = [tuple(rng.uniform(-0.5, 0.5, 3)) for _ in range(2)]
        one = singles[int(rng.integers(len(singles)))] if singles else ""
        if kind == "bushing":
            square = rng.standard_normal((6, 6))
            made = mb.Bushing(a, points[0], b, points[1], square @ square.T, 0.1 * np.eye(6))
        elif kind == "spring":
            made = mb.SpringLaw(a, points[0], b, points[1], cubic)
        elif kind == "force":
            made = mb.PointForce(b if b != "base" else a, points[0], (0.5, -1.0, 2.0))
        elif kind == "joint":
            made = mb.JointSpring(one, cubic)
        elif kind == "motor":
            made = mb.DCMotor(one, 2.0, 1.2, 0.5, 0.4, ratio=1.5)
        elif kind == "pid":
            made = mb.PID(one, 0.3, 2.0, 1.0, 0.5)
        else:
            made = mb.BristleFriction(one, 0.3, 0.5, 0.1, 0.1, 50.0, 2.0)
        found.append(NamedElement(f"law{k}", made))
    return tuple(found)


def loop(model, rng, poses, kinds, name):
    """Close a loop between two bodies drawn at random (one may be the base), at this position."""
    ends = rng.choice(model.n_bodies + 1, 2, replace=False)
    joint = random_joint(kinds[int(rng.integers(len(kinds)))], rng)
    X_J = joint.motion(joint.random(rng)).X
    X_p, X_s = (Plucker(poses[i].R.T, poses[i].p) for i in ends)
    X_P = Plucker(np.eye(3), rng.uniform(-0.5, 0.5, 3))
    X_S = X_J * X_P * X_p * X_s.inverse()
    return Loop(name, int(ends[0]), int(ends[1]), joint, X_P, X_S)


# ---------------------------------------------------------------------- constraints by functions


class Coupling:
    """q_b − ρ sin q_a − p, and with time if it is to be."""

    def __init__(self, a, b, moves):
        self.a, self.b, self.moves = a, b, moves

    def __call__(self, t, q, p):
        moved = 0.1 * np.sin(3.0 * t) if self.moves else 0.0
        return q[self.b] - p[0] * np.sin(q[self.a]) - p[1] - moved


class String:
    """A taut string between points of two bodies: |x|² − p."""

    def __init__(self, ends, points):
        self.ends, self.points = ends, points

    def __call__(self, t, q, p):
        x = q.point(self.ends[0], self.points[0]) - q.point(self.ends[1], self.points[1])
        return x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - p[0]


class Skate:
    """A point that moves in a plane only, as far as its velocity is concerned."""

    def __init__(self, body, point, normal):
        self.body, self.point, self.normal = body, point, normal

    def __call__(self, t, q, v, p):
        u = v.point(self.body, self.point)
        return sum(float(n) * x for n, x in zip(self.normal, u)) + p[0] * v[0]


def constraint(model, rng, q, t, poses, name):
    """Return a gear, a coupling, a string or a skate that holds at this position."""
    singles = [
        (at, place)
        for at, place in enumerate(model.q_names)
        if any(
            b.joint.rate_is_velocity and iq.start <= at < iq.stop
            for b, iq in zip(model.bodies, model.q_index)
        )
    ]
    kind = rng.choice(["gear", "coupling", "string", "skate"])
    if kind in ("gear", "coupling") and len(singles) < 2:
        kind = "string"
    parameters, function, speeds = (), None, False
    if kind == "gear":
        chosen = rng.permutation(len(singles))[: int(rng.integers(2, min(4, len(singles) + 1)))]
        (b, driven), *drivers = [singles[k] for k in chosen]
        ratios = {place: float(rng.uniform(-3, 3)) for _, place in drivers}
        offset = q[b] - sum(r * q[a] for (a, _), r in zip(drivers, ratios.values()))
        return gear_constraint(name, driven, ratios, float(offset), None, ())
    if kind == "coupling":
        (b, driven), (a, leader) = [singles[k] for k in rng.permutation(len(singles))[:2]]
        moves, ratio = bool(rng.random() < 0.3), float(rng.uniform(-1, 1))
        function = Coupling(leader, driven, moves)
        moved = 0.1 * np.sin(3.0 * t) if moves else 0.0
        parameters = (ratio, float(q[b] - ratio * np.sin(q[a]) - moved))
    else:
        ends = [int(k) for k in rng.choice(model.n_bodies + 1, 2, replace=False)]
        points = rng.uniform(-0.5, 0.5, (2, 3))
        if kind == "string":
            function = String(ends, points)
            x = [poses[i].R @ r + poses[i].p for i, r in zip(ends, points)]
            parameters = (float(np.sum((x[0] - x[1]) ** 2)),)
        else:
            function, speeds = Skate(max(ends), points[0], rng.standard_normal(3)), True
            parameters = (float(rng.uniform(-0.5, 0.5)),)
    return Constraint(name, function, parameters, of_velocities=speeds)
