"""Do we and Pinocchio compute the same? Largest relative differences on models built on both sides.

    pip install -e ".[bench-pinocchio]"
    python benchmarks/agree_pinocchio.py [--trees 60]

Random trees with revolute, prismatic, spherical and free joints, and a humanoid of 30 joints on a
floating base. Pinocchio's vectors are linear first, its quaternions have the scalar last; positions
and velocities of all four joints otherwise mean the same in both libraries. Pinocchio's crba and
Jacobians take for granted that the joints of a subtree are numbered without gaps, so trees are
renumbered depth first before they are handed over. Differences are relative to the largest number
of each result.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pinocchio as pin

import multibody as mb
from multibody.mechanisms.random import random_tree

KINDS = ("revolute", "prismatic", "spherical", "free")
#: What agreement means: 1e-10, the project's criterion; typical differences are far below.
CRITERION = 1e-10


def pinocchio_of(model: mb.Model) -> pin.Model:
    """The same model in Pinocchio."""
    theirs = pin.Model()
    theirs.gravity = pin.Motion(np.concatenate([model.gravity, np.zeros(3)]))
    makers = {
        mb.Revolute: lambda j: pin.JointModelRevoluteUnaligned(j.axis),
        mb.Prismatic: lambda j: pin.JointModelPrismaticUnaligned(j.axis),
        mb.Spherical: lambda j: pin.JointModelSpherical(),
        mb.Free: lambda j: pin.JointModelFreeFlyer(),
    }
    for body in model.bodies:
        place = pin.SE3(body.placement.E.T, body.placement.r)
        number = theirs.addJoint(
            body.parent, makers[type(body.joint)](body.joint), place, body.name
        )
        I = body.inertia
        theirs.appendBodyToJoint(
            number, pin.Inertia(I.mass, I.centre, I.central), pin.SE3.Identity()
        )
    return theirs


def depth_first(model: mb.Model) -> mb.Model:
    """The same model, with every subtree numbered without gaps."""
    order: list[int] = []

    def visit(body: int) -> None:
        if body:
            order.append(body - 1)
        for child in np.flatnonzero(model.parents == body):
            visit(int(child) + 1)

    visit(0)
    new = {0: 0, **{old + 1: k + 1 for k, old in enumerate(order)}}
    bodies = [replace(model.bodies[i], parent=new[model.bodies[i].parent]) for i in order]
    return mb.Model(tuple(bodies), gravity=model.gravity, name=model.name)


def orders(model: mb.Model) -> tuple[np.ndarray, np.ndarray]:
    """Permutations with q_theirs = q[iq] and v_theirs = v[iv]."""
    iq, iv = [], []
    for body, at_q, at_v in zip(model.bodies, model.q_index, model.v_index):
        q, v = list(range(at_q.start, at_q.stop)), list(range(at_v.start, at_v.stop))
        if isinstance(body.joint, mb.Spherical):
            q = [*q[1:], q[0]]
        elif isinstance(body.joint, mb.Free):  # position, then quaternion; linear velocity first
            q, v = [*q[4:], *q[1:4], q[0]], [*v[3:], *v[:3]]
        iq += q
        iv += v
    return np.array(iq), np.array(iv)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300))


def compare(model: mb.Model, seed: int) -> dict[str, float]:
    """Relative differences of one random state."""
    model = depth_first(model)
    theirs = pinocchio_of(model)
    data = theirs.createData()
    iq, iv = orders(model)
    rng = np.random.default_rng(seed)
    q, v, tau, a = model.random(rng), *(rng.standard_normal(model.nv) for _ in range(3))
    f = rng.standard_normal((model.n_bodies, 6))
    poses = mb.kinematics(model, q).poses
    pushes = pin.StdVec_Force()
    pushes.append(pin.Force.Zero())
    for i, pose in enumerate(poses[1:]):  # ours in base coordinates, theirs in the body's
        local = pose.to_plucker() * mb.Force(f[i])
        pushes.append(pin.Force(local.array[3:], local.array[:3]))

    H = mb.crba(model, q)
    upper = np.triu(pin.crba(theirs, data, q[iq]))
    full = upper + np.triu(upper, 1).T
    forward = np.array(pin.aba(theirs, data, q[iq], v[iv], tau[iv], pushes))
    inverse = np.array(pin.rnea(theirs, data, q[iq], v[iv], a[iv], pushes))
    found = {
        "FD (aba)": difference(mb.FD(model, q, v, tau, f)[iv], forward),
        "FD (crba)": difference(mb.FD(model, q, v, tau, f, method="crba")[iv], forward),
        "ID": difference(mb.ID(model, q, v, a, f)[iv], inverse),
        "CRBA": difference(H[np.ix_(iv, iv)], full),
    }
    jacobians = []
    swap = [3, 4, 5, 0, 1, 2]
    pin.computeJointJacobians(theirs, data, q[iq])
    for i in range(1, model.n_bodies + 1):
        for frame, coordinates in (("LOCAL", "body"), ("WORLD", "base")):
            J = pin.getJointJacobian(theirs, data, i, getattr(pin.ReferenceFrame, frame))
            ours = mb.body_jacobian(model, q, i, coordinates=coordinates)
            # One column comes back as a vector.
            jacobians.append(difference(ours[swap][:, iv], np.reshape(J, (6, -1))))
    found["Jacobians"] = max(jacobians)
    energy = mb.energy(model, q, v)
    kinetic = pin.computeKineticEnergy(theirs, data, q[iq], v[iv])
    potential = pin.computePotentialEnergy(theirs, data, q[iq])
    found["energy"] = difference(np.array([*energy]), np.array([kinetic, potential]))
    centre = np.array(pin.centerOfMass(theirs, data, q[iq]))
    found["centre of mass"] = difference(mb.centre_of_mass(model, q), centre)
    pin.ccrba(theirs, data, q[iq], v[iv])
    h = np.concatenate([data.hg.angular, data.hg.linear])
    found["centroidal momentum"] = difference(mb.momentum(model, q, v, about="com"), h)
    return found


def humanoid() -> mb.Model:
    """Trunk on a free joint; two legs of 6, two arms of 7, a neck of 4 revolute joints."""
    rng = np.random.default_rng(7)
    b = mb.ModelBuilder(name="humanoid")

    def inertia(mass: float, length: float) -> mb.RigidInertia:
        second = mass * length**2 * rng.uniform(0.02, 0.08, 3)
        centre = rng.uniform(-0.2, 0.2, 3) * length
        return mb.Inertia(mass, centre, second.sum() - second)

    b.add_body("trunk", 0, mb.Free(), None, inertia(30.0, 0.6))
    limbs = {
        "left leg": ((0.0, 0.1, -0.3), "zxyyyx", (5.0, 0.4)),
        "right leg": ((0.0, -0.1, -0.3), "zxyyyx", (5.0, 0.4)),
        "left arm": ((0.0, 0.2, 0.3), "yxzyzyx", (1.5, 0.3)),
        "right arm": ((0.0, -0.2, 0.3), "yxzyzyx", (1.5, 0.3)),
        "neck": ((0.0, 0.0, 0.35), "zyxy", (1.0, 0.1)),
    }
    for limb, (start, axes, (mass, length)) in limbs.items():
        parent, place = "trunk", start
        for k, axis in enumerate(axes):
            name = f"{limb} {k + 1}"
            b.add_body(name, parent, mb.Revolute(axis), place, inertia(mass / (k + 1), length))
            parent, place = name, (0.0, 0.0, -length / 2 if k % 2 else 0.0)
    return b.build()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=60)
    trees = parser.parse_args().trees
    worst: dict[str, dict[str, float]] = {}

    def note(group: str, found: dict[str, float]) -> None:
        kept = worst.setdefault(group, {})
        for name, value in found.items():
            kept[name] = max(kept.get(name, 0.0), value)

    for seed in range(trees):
        size = 1 + seed % 20
        note("random trees", compare(random_tree(size, seed, KINDS, reverse=0.0), seed))
        floating = random_tree(size, seed, "revolute", root="free", reverse=0.0)
        note("floating revolute trees", compare(floating, seed))
    model = humanoid()
    for seed in range(20):
        note(f"humanoid, nv = {model.nv}", compare(model, seed))
    print(f"largest relative differences from Pinocchio {pin.__version__}, {trees} seeds")
    groups = list(worst)
    print(f"{'':22}" + "".join(f"{group:>26}" for group in groups))
    for name in worst[groups[0]]:
        print(f"{name:22}" + "".join(f"{worst[group][name]:26.1e}" for group in groups))
    largest = max(max(found.values()) for found in worst.values())
    verdict = "agree" if largest < CRITERION else "DO NOT AGREE"
    print(f"{verdict} within {CRITERION:g}")


if __name__ == "__main__":
    main()
