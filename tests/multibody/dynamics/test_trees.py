"""Dynamics of random trees by every algorithm, and by physics.

Two hundred trees with every joint, reversed or not, without freedom, with n_q ≠ n_v, moved by
time. All comparisons are near rounding.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import multibody as mb
from multibody import FD, ID, crba
from multibody.algebra import planar
from multibody.dynamics.book.maximal import (
    forward_dynamics_maximal,
    forward_dynamics_projected,
    maximal_system,
)
from multibody.dynamics.book.oracles import (
    base_coordinates,
    body_joint,
    coriolis_matrix,
    inertia_by_definition,
    rnea_base,
    slope,
)
from multibody.dynamics.storage.workspace import HAVE_FORCES
from multibody.dynamics.trees.aba import aba_kernel
from multibody.dynamics.trees.crba import crba_kernel
from multibody.dynamics.trees.rnea import rnea_kernel
from multibody.joints import REGISTRY
from multibody.mechanisms.random import random_tree
from tests.multibody.joint_samples import POOL, STEADY

# A sum of up to a thousand products, relative to its largest term.
ROUNDING = 1e-12
# Solutions of H x = b inherit the condition of H; this is the factor in front of it.
SOLVED = 1e-13
# Differences with step 1e-3, extrapolated to sixth order; relative.
DIFFERENCES = 1e-8

BATCHES = range(10)
TREES_IN_BATCH = 20


class Case(NamedTuple):
    model: mb.Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f: np.ndarray
    t: float
    H: np.ndarray

    @property
    def condition(self):
        return np.linalg.cond(self.H) if self.model.nv else 1.0


@cache
def cases(batch):
    """Twenty trees of 1 to 12 bodies, with state, forces and time."""
    found = []
    for k in range(TREES_IN_BATCH):
        seed = TREES_IN_BATCH * batch + k
        found.append(case(random_tree(1 + seed % 12, seed, POOL), seed))
    return found


def case(model, seed):
    rng = np.random.default_rng(1000 + seed)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    f, t = rng.standard_normal((model.n_bodies, 6)), float(rng.uniform(0.1, 1.0))
    return Case(model, q, v, tau, f, t, crba(model, q, t=t))


def close(a, b, tolerance, scale=None):
    """Largest difference relative to the largest number (or to a given scale)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape
    if scale is None:
        scale = np.abs(b).max(initial=0.0)
    assert np.abs(a - b).max(initial=0.0) <= tolerance * max(scale, 1e-300), (a, b)


def force_scale(c):
    """Size of the forces that add up to tau: inertial, gravity, external."""
    w = base_coordinates(c.model, c.q, c.v, c.t)
    sizes = [np.abs(I).max() * (10.0 + np.abs(v).max() ** 2) for I, v in zip(w.inertia, w.v)]
    return sum(sizes) + np.abs(c.f).sum()


# --- algorithms against each other -------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
def test_forward_dynamics_agree(batch):
    for c in cases(batch):
        tolerance = SOLVED * c.condition
        a = FD(c.model, c.q, c.v, c.tau, c.f, t=c.t)
        args = (c.model, c.q, c.v, c.tau, c.f)
        close(FD(*args, t=c.t, method="crba"), a, tolerance)
        close(forward_dynamics_projected(*args, t=c.t), a, tolerance)
        # Six unknowns for each body: conditioned by the masses, too.
        found = forward_dynamics_maximal(*args, t=c.t)
        close(found.joint_accelerations, a, 10 * tolerance)
        bodies = mb.kinematics(c.model, c.q, c.v, a, t=c.t)
        w = base_coordinates(c.model, c.q, c.v, c.t)
        in_base = [np.linalg.solve(X, x) for X, x in zip(w.X, bodies.accelerations[1:])]
        scale = 10.0 + np.abs(in_base).max()  # gravity and velocities cancel where bodies rest
        close(found.accelerations, in_base, 100 * tolerance, scale)
        forces = mb.joint_forces(c.model, c.q, c.v, a, c.f, t=c.t)
        close(found.joint_forces, [X.T @ f for X, f in zip(w.X, forces)], 100 * tolerance)


@pytest.mark.parametrize("batch", BATCHES)
def test_inverse_undoes_forward(batch):
    for c in cases(batch):
        a = FD(c.model, c.q, c.v, c.tau, c.f, t=c.t)
        scale = force_scale(c)
        close(ID(c.model, c.q, c.v, a, c.f, t=c.t), c.tau, ROUNDING, scale)
        tau = ID(c.model, c.q, c.v, c.tau, c.f, t=c.t)  # any numbers will do as accelerations
        smallest = np.linalg.eigvalsh(c.H)[0] if c.model.nv else 1.0
        close(FD(c.model, c.q, c.v, tau, c.f, t=c.t), c.tau, ROUNDING, scale / smallest)


@pytest.mark.parametrize("batch", BATCHES)
def test_inertia_matrix_is_that_of_the_kinetic_energy(batch):
    for c in cases(batch):
        np.testing.assert_array_equal(c.H, c.H.T)
        if not c.model.nv:
            continue
        assert np.linalg.eigvalsh(c.H)[0] > 0.0
        still = mb.energy(c.model, c.q, np.zeros(c.model.nv), t=c.t).kinetic
        kinetic = mb.energy(c.model, c.q, c.v, t=c.t).kinetic
        back = mb.energy(c.model, c.q, -c.v, t=c.t).kinetic
        # Time-driven joints add terms linear in v and without v; the average has neither left.
        close(0.5 * c.v @ c.H @ c.v, 0.5 * (kinetic + back) - still, ROUNDING, kinetic + back)
        if not any(body.joint.is_rheonomic for body in c.model.bodies):
            close(0.5 * c.v @ c.H @ c.v, kinetic, ROUNDING)


@pytest.mark.parametrize("batch", BATCHES[:2])
def test_interpreted_kernels_equal_compiled_ones(batch):
    for c in cases(batch):
        w = c.model.tree.symbolic()
        w.q[:], w.v[:], w.tau[:], w.t[0], w.f_ext[:] = c.q, c.v, c.tau, c.t, c.f
        w.switches[HAVE_FORCES] = 1
        aba_kernel(w)
        a = FD(c.model, c.q, c.v, c.tau, c.f, t=c.t)
        close(w.a_q, a, SOLVED * c.condition)
        rnea_kernel(w)
        close(w.tau, c.tau, ROUNDING, force_scale(c))
        crba_kernel(w)
        close(w.H, c.H, ROUNDING)


def test_shortest_way_equals_the_general_one():
    """Without time and external forces a shorter way through compiled code is taken."""
    for c in [*cases(3), *cases(4)]:
        m = c.model
        general = FD(m, c.q, c.v, c.tau, np.zeros((m.n_bodies, 6)))
        tolerance = SOLVED * (np.linalg.cond(crba(m, c.q)) if m.nv else 1.0)
        close(FD(m, c.q, c.v, c.tau), general, tolerance)
        close(FD(m, c.q.tolist(), c.v.tolist(), c.tau.tolist()), general, tolerance)
        without = FD(m, c.q, c.v, None, np.zeros((m.n_bodies, 6)))
        close(FD(m, c.q, c.v), without, tolerance)


def test_every_kind_of_joint_occurs_and_many_are_reversed():
    bodies = [body for batch in BATCHES for c in cases(batch) for body in c.model.bodies]
    kinds = {type(body.joint) for body in bodies}
    own = {cls for cls in REGISTRY.values() if cls.__module__.startswith("multibody")}
    assert kinds >= own
    turned = {type(body.joint) for body in bodies if body.reverse}
    assert turned >= own
    assert any(c.model.nq != c.model.nv for c in cases(0))
    assert any(body.joint.is_rheonomic and body.joint.nv for body in bodies)


# --- physics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
def test_power_balance(batch):
    """dE/dt = τ·v + external power + power of the drives, f_J·σ."""
    for c in cases(batch):
        m = c.model
        a = FD(m, c.q, c.v, c.tau, c.f, t=c.t)
        q_dot = mb.position_rate(m, c.q, c.v, t=c.t)

        def total(h, c=c, m=m, a=a, q_dot=q_dot):
            return mb.energy(m, c.q + h * q_dot, c.v + h * a, t=c.t + h).total

        w = base_coordinates(m, c.q, c.v, c.t)
        power = c.tau @ c.v + sum(f @ v for f, v in zip(c.f, w.v))
        passed = mb.joint_forces(m, c.q, c.v, a, c.f, t=c.t)
        for i, body in enumerate(m.bodies):
            at_q, at_v = m.q_index[i], m.v_index[i]
            _, S, v_J, _ = body_joint(body, c.q[at_q], c.v[at_v], c.t)
            power += passed[i] @ (v_J - S @ c.v[at_v])
        scale = force_scale(c) * (1.0 + max(np.abs(v).max() for v in w.v))
        close(slope(total), power, DIFFERENCES, scale)


@pytest.mark.parametrize("seed", range(20))
def test_momentum_of_a_floating_tree(seed):
    """Without gravity, momentum changes only by external forces, in base coordinates."""
    pool = [entry for entry in POOL if isinstance(entry, str)]
    model = random_tree(2 + seed % 7, seed, pool, root="free", gravity=(0, 0, 0))
    c = case(model, seed)
    tau = c.tau.copy()
    tau[:6] = 0.0
    for forces in (None, c.f):
        a = FD(model, c.q, c.v, tau, forces)
        q_dot = mb.position_rate(model, c.q, c.v)
        rate = slope(lambda h, a=a, q_dot=q_dot: mb.momentum(model, c.q + h * q_dot, c.v + h * a))
        scale = np.abs(mb.momentum(model, c.q, c.v)).max() + force_scale(c)
        close(rate, np.zeros(6) if forces is None else forces.sum(axis=0), DIFFERENCES, scale)
        # The centre of mass moves with momentum / mass, and centroidal momentum is that about it.
        mass = sum(body.inertia.mass for body in model.bodies)
        centre = slope(lambda h, q_dot=q_dot: mb.centre_of_mass(model, c.q + h * q_dot))
        close(centre * mass, mb.momentum(model, c.q, c.v)[3:], DIFFERENCES, scale)
        about = mb.momentum(model, c.q, c.v, about="com")
        again = mb.momentum(model, c.q, c.v, about=mb.centre_of_mass(model, c.q))
        close(about, again, ROUNDING, scale)


@pytest.mark.parametrize("seed", range(20))
def test_coriolis_matrix(seed):
    """C v are the Coriolis forces, Ḣ − 2C is skew, and ½ vᵀḢv = vᵀC v."""
    model = random_tree(1 + seed % 6, 300 + seed, STEADY)
    c = case(model, seed)
    C = coriolis_matrix(model, c.q, c.v)
    scale = force_scale(c)
    close(C @ c.v, mb.coriolis_forces(model, c.q, c.v), DIFFERENCES, scale)
    q_dot = mb.position_rate(model, c.q, c.v)
    N = slope(lambda h: crba(model, c.q + h * q_dot)) - 2.0 * C
    close(N, -N.T, DIFFERENCES, scale)


def test_gravity_acts_like_forces_at_the_centres_of_mass():
    for c in cases(0):
        w = base_coordinates(c.model, c.q, None, c.t)
        weight = np.array([I @ np.concatenate([np.zeros(3), c.model.gravity]) for I in w.inertia])
        weightless = mb.Model(c.model.bodies, gravity=(0, 0, 0))
        args = (c.q, c.v, c.tau)
        a = FD(c.model, *args, c.f, t=c.t)
        close(FD(weightless, *args, c.f + weight, t=c.t), a, SOLVED * c.condition)


# --- invariance --------------------------------------------------------------------------------


def rebuilt(model, order=None, gravity=None, change=lambda body: {}):
    """The same model, added in another order, with some entries changed."""
    names = ["base", *[body.name for body in model.bodies]]
    b = mb.ModelBuilder(model.gravity if gravity is None else gravity)
    for i in range(model.n_bodies) if order is None else order:
        body = model.bodies[i]
        entries = dict(parent=names[body.parent], joint=body.joint, placement=body.placement,
                       inertia=body.inertia, reverse=body.reverse)  # fmt: skip
        entries.update(change(body))
        b.add_body(body.name, **entries)
    return b.build()


def by_name(model, other):
    """Places of model's position and velocity variables in other's vectors."""
    at = {name: k for k, name in enumerate(other.q_names)}
    av = {name: k for k, name in enumerate(other.v_names)}
    return [at[name] for name in model.q_names], [av[name] for name in model.v_names]


@pytest.mark.parametrize("batch", BATCHES[:3])
def test_numbering_does_not_matter(batch):
    rng = np.random.default_rng(batch)
    for c in cases(batch):
        other = rebuilt(c.model, rng.permutation(c.model.n_bodies))
        iq, iv = by_name(other, c.model)
        back_q, back_v = by_name(c.model, other)
        rows = [c.model.number(body.name) - 1 for body in other.bodies]
        a = FD(other, c.q[iq], c.v[iv], c.tau[iv], c.f[rows], t=c.t)
        close(a[back_v], FD(c.model, c.q, c.v, c.tau, c.f, t=c.t), SOLVED * c.condition)
        close(crba(other, c.q[iq], t=c.t)[np.ix_(back_v, back_v)], c.H, ROUNDING)
        assert sorted(back_q) == list(range(c.model.nq))


@pytest.mark.parametrize("batch", BATCHES[:3])
def test_base_frame_does_not_matter(batch):
    rng = np.random.default_rng(batch)
    for c in cases(batch):
        R = mb.quaternions.to_matrix(mb.quaternions.normalise(rng.standard_normal(4)))
        X = mb.Plucker(R, rng.uniform(-1, 1, 3))  # new base from old base coordinates

        def change(body, X=X):
            return {} if body.parent else {"placement": body.placement * X.inverse()}

        other = rebuilt(c.model, gravity=R @ c.model.gravity, change=change)
        f = c.f @ X.force_matrix().T
        a = FD(other, c.q, c.v, c.tau, f, t=c.t)
        close(a, FD(c.model, c.q, c.v, c.tau, c.f, t=c.t), SOLVED * c.condition)


@pytest.mark.parametrize("batch", BATCHES[:3])
def test_body_frames_do_not_matter(batch):
    """Each body becomes a massless carrier of the joint and a body welded to it, frame moved."""
    rng = np.random.default_rng(batch)
    for c in cases(batch):
        b = mb.ModelBuilder(c.model.gravity)
        shifts = [mb.Plucker.identity()]
        rows = []
        for i, body in enumerate(c.model.bodies, 1):
            R = mb.quaternions.to_matrix(mb.quaternions.normalise(rng.standard_normal(4)))
            shifts.append(mb.Plucker(R, rng.uniform(-1, 1, 3)))
            above = body.placement * shifts[body.parent].inverse()
            parent = f"moved{body.parent}" if body.parent else 0
            b.add_body(f"carrier{i}", parent, body.joint, above, None, body.reverse)
            b.add_body(f"moved{i}", f"carrier{i}", mb.Fixed(), shifts[i], shifts[i] * body.inertia)
            rows += [np.zeros(6), c.f[i - 1]]
        a = FD(b.build(), c.q, c.v, c.tau, np.array(rows), t=c.t)
        expected = FD(c.model, c.q, c.v, c.tau, c.f, t=c.t)
        close(a, expected, 10 * SOLVED * c.condition)


@pytest.mark.parametrize("seed", range(10))
def test_joint_frames_of_axial_joints_do_not_matter(seed):
    """Turn both frames of each joint, axis included: nothing but coordinates has changed."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "prismatic", "helical", "cylindrical"]
    model = random_tree(8, seed, kinds)
    c = case(model, seed)
    turns = [np.eye(3)]
    b = mb.ModelBuilder(model.gravity)
    for body in model.bodies:
        R = mb.quaternions.to_matrix(mb.quaternions.normalise(rng.standard_normal(4)))
        turns.append(R)
        X = mb.rot(R) * body.placement * mb.rot(turns[body.parent]).inverse()
        joint = type(body.joint)(**{**body.joint.specification(), "axis": R @ body.joint.axis})
        b.add_body(body.name, body.parent, joint, X, mb.rot(R) * body.inertia, body.reverse)
    other = b.build()
    close(crba(other, c.q), c.H, ROUNDING)
    a = FD(model, c.q, c.v, c.tau, c.f)
    close(FD(other, c.q, c.v, c.tau, c.f), a, SOLVED * c.condition)


# --- joints made of simpler joints -------------------------------------------------------------


@pytest.mark.parametrize(
    ("joint", "parts"),
    [
        (mb.Cylindrical("y"), [mb.Revolute("y"), mb.Prismatic("y")]),
        (mb.Universal(), [mb.Revolute("x"), mb.Revolute("y")]),
        (mb.AngleSequence("zyx"), [mb.Revolute("z"), mb.Revolute("y"), mb.Revolute("x")]),
        (mb.AngleSequence("zxz"), [mb.Revolute("z"), mb.Revolute("x"), mb.Revolute("z")]),
    ],
)
def test_a_joint_is_a_chain_of_its_parts(joint, parts):
    """With v = q̇ on both sides and massless bodies between the parts, all numbers agree."""
    inertia = mb.Inertia(2.0, (0.1, -0.2, 0.3), (0.3, 0.4, 0.5))
    whole, chain = mb.ModelBuilder(), mb.ModelBuilder()
    for b in (whole, chain):
        b.add_body("foot", 0, mb.Revolute("x"), inertia=inertia)
    whole.add_body("hand", "foot", joint, (0.3, 0.1, 0.2), inertia)
    above, place = "foot", (0.3, 0.1, 0.2)
    for k, part in enumerate(parts):
        last = k == len(parts) - 1
        name = "hand" if last else f"part{k}"
        chain.add_body(name, above, part, place, inertia if last else None)
        above, place = name, None
    one, other = whole.build(), chain.build()
    rng = np.random.default_rng(0)
    q, v, tau = (rng.standard_normal(one.nv) for _ in range(3))
    close(crba(other, q), crba(one, q), ROUNDING)
    close(FD(other, q, v, tau), FD(one, q, v, tau), SOLVED * np.linalg.cond(crba(one, q)))
    assert mb.energy(other, q, v).total == pytest.approx(mb.energy(one, q, v).total, rel=ROUNDING)


def test_free_joint_is_newton_and_euler():
    """A free body about its centre of mass: m p̈ = f + m g, I ω̇ + ω × Iω = n, in body axes."""
    moments = np.array([0.3, 0.5, 0.6])
    b = mb.ModelBuilder()
    b.add_body("stone", 0, mb.Free(), inertia=mb.Inertia(2.0, (0, 0, 0), moments))
    model = b.build()
    rng = np.random.default_rng(1)
    q, v, tau = model.random(rng), rng.standard_normal(6), rng.standard_normal(6)
    a = FD(model, q, v, tau)
    R = mb.quaternions.to_matrix(q[:4])
    w, u = v[:3], v[3:]
    euler = (tau[:3] - np.cross(w, moments * w)) / moments
    newton = tau[3:] / 2.0 + R.T @ model.gravity - np.cross(w, u)
    close(a, np.concatenate([euler, newton]), ROUNDING)


def planar_chain(n):
    """Links of length 1 that turn about z, as spatial bodies."""
    b = mb.ModelBuilder(gravity=(0.3, -9.81, 0.0))
    for i in range(n):
        b.add_body(f"link{i + 1}", i, mb.Revolute(), (1.0 if i else 0.0, 0, 0),
                   mb.rod((0, 0, 0), (1, 0, 0), mass=1.0 + i))  # fmt: skip
    return b.build()


def test_planar_chain_by_planar_vectors():
    """Lagrange's equations of a planar chain in absolute angles, written with sines and cosines."""
    n = 4
    model = planar_chain(n)
    rng = np.random.default_rng(2)
    q, v, tau = rng.uniform(-3, 3, n), rng.standard_normal(n), rng.standard_normal(n)
    theta, omega = np.cumsum(q), np.cumsum(v)
    mass = 1.0 + np.arange(n)
    # Centre k is Σ_j arm[k, j] (cos θ_j, sin θ_j).
    arm = np.where(np.arange(n)[:, None] > np.arange(n), 1.0, 0.0) + 0.5 * np.eye(n)
    weights = np.einsum("k,ki,kj->ij", mass, arm, arm)
    difference = theta[:, None] - theta
    M = weights * np.cos(difference) + np.diag(mass / 12.0)
    h = (weights * np.sin(difference)) @ omega**2
    gx, gy, _ = model.gravity
    first = mass @ arm
    load = first * (-gx * np.sin(theta) + gy * np.cos(theta))
    L = np.tril(np.ones((n, n)))  # θ = L q, so τ of the absolute angles is L⁻ᵀ τ
    alpha = np.linalg.solve(M, np.linalg.solve(L.T, tau) + load - h)
    close(crba(model, q), L.T @ M @ L, ROUNDING)
    close(FD(model, q, v, tau), np.linalg.solve(L, alpha), SOLVED * np.linalg.cond(M))


def test_planar_vectors_give_the_same_forces():
    """Newton–Euler in vectors of three numbers: rows and columns 3, 4, 5 of the spatial ones."""
    n = 5
    model = planar_chain(n)
    rng = np.random.default_rng(3)
    q, v, a = rng.uniform(-3, 3, n), rng.standard_normal(n), rng.standard_normal(n)
    e = np.array([1.0, 0.0, 0.0])
    velocity, acceleration = np.zeros(3), np.array([0.0, *(-model.gravity[:2])])
    X, f = [], []
    for i in range(n):
        X.append(planar.Xpln(q[i], (1.0 if i else 0.0, 0.0)))
        velocity = X[i] @ velocity + e * v[i]
        acceleration = X[i] @ acceleration + e * a[i] + planar.crm(velocity) @ e * v[i]
        I = planar.mcI(1.0 + i, (0.5, 0.0), (1.0 + i) / 12.0)
        f.append(I @ acceleration + planar.crf(velocity) @ I @ velocity)
    for i in range(n - 1, 0, -1):
        f[i - 1] = f[i - 1] + X[i].T @ f[i]
    close(ID(model, q, v, a), [force[0] for force in f], ROUNDING)


# --- placements with special cases -------------------------------------------------------------

TURNS = [0.0, np.pi / 2, np.pi, -np.pi / 2]


@pytest.mark.parametrize("bend", [*TURNS, 1e-16, 1e-14, 1e-9, 5e-3, 0.011, np.pi - 1e-3])
def test_placements_at_right_angles_and_nearly_parallel(bend):
    """Screws along z and x stand for a placement; they degenerate where axes are parallel."""
    inertia = mb.Inertia(1.0, (0.2, 0.3, 0.1), (0.1, 0.2, 0.25))
    # Screws reach far where axes are nearly parallel: by 1/sin, which enters inertias squared.
    lost = 1e-11
    for turn in TURNS:
        for place in ((0, 0, 0), (1, 0, 0), (0, 0, -2), (-1, 1, 3)):
            R = mb.rotations.Rz(turn) @ mb.rotations.Rx(bend) @ mb.rotations.Rz(0.7)
            b = mb.ModelBuilder()
            for k, joint in enumerate([mb.Revolute(), mb.Helical(0.2), mb.Prismatic()]):
                b.add_body(f"b{k}", k, joint, mb.Pose(R, place), inertia, reverse=k == 1)
            model = b.build()
            q, v = np.array([0.3, 0.4, 0.5]), np.array([0.6, 0.7, 0.8])
            close(crba(model, q), inertia_by_definition(model, q), lost)
            close(ID(model, q, v, v), rnea_base(model, q, v, v), lost, 10.0)


# --- force elements ----------------------------------------------------------------------------


def test_force_elements_in_maximal_coordinates_and_in_energy():
    inertia = mb.Inertia(1.0, (0.3, 0.1, 0.0), (0.1, 0.2, 0.25))
    b = mb.ModelBuilder()
    b.add_body("a", 0, mb.Revolute("y"), (0, 0, 1), inertia, stiffness=3.0, rest=0.2, damping=0.5)
    b.add_body("b", "a", mb.Cylindrical("x"), (0.4, 0, 0), inertia, armature=(0.3, 0.1),
               limits=[(-0.1, 0.1, 50.0, 2.0), (-9.0, 9.0, 50.0, 2.0)])  # fmt: skip
    b.add_body("c", "b", mb.Spherical(), (0.2, 0.2, 0), inertia, True, damping=0.4)
    b.add_body("d", "c", mb.Prismatic(), None, inertia, True, armature=0.5, stiffness=2.0)
    b.add_spring("s", 0, (1, 0, 0), "b", (0.1, 0.2, 0.3), 20.0, 1.5, 0.3)
    b.add_spring("r", "a", (0, 0.5, 0), "d", (0.1, 0.2, 0.3), 10.0, 0.0, 0.1)
    model = b.build()
    rng = np.random.default_rng(3)
    q, v, tau = model.random(rng), rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    q[1] = 0.4  # beyond its stop
    a = FD(model, q, v, tau)
    tolerance = 10 * SOLVED * np.linalg.cond(crba(model, q))
    close(forward_dynamics_maximal(model, q, v, tau).joint_accelerations, a, tolerance)
    close(forward_dynamics_projected(model, q, v, tau), a, tolerance)
    close(FD(model, q, v, tau, method="crba"), a, tolerance)
    close(ID(model, q, v, a), tau, 1e-10)
    # Energy: springs store it, dampers take it away.
    q_dot = mb.position_rate(model, q, v)
    rate = slope(lambda h: mb.energy(model, q + h * q_dot, v + h * a).total)
    d = np.array([0.5, 2.0, 0.0, 0.4, 0.4, 0.4, 0.0])
    w = base_coordinates(model, q, v)
    place = mb.point_position(model, q, "b", (0.1, 0.2, 0.3))
    line = place - np.array([1.0, 0, 0])
    speed = line @ (w.v[1][3:] + np.cross(w.v[1][:3], place)) / np.linalg.norm(line)
    close(rate, tau @ v - d @ v**2 - 1.5 * speed**2, DIFFERENCES, abs(rate) + 1.0)


def test_maximal_system_is_symmetric_indefinite_and_sparse_solves_it():
    model = random_tree(30, 5, ["revolute", "spherical", "fixed", "prismatic"])
    c = case(model, 5)
    system = maximal_system(model, c.q, c.v, c.tau, c.f)
    matrix = system.matrix
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(system.sparse().toarray(), matrix)
    values = np.linalg.eigvalsh(matrix)
    constraints = sum(6 - body.joint.nv for body in model.bodies)
    assert np.sum(values < 0) == constraints  # inertia of a saddle: as many as constraints
    args = (model, c.q, c.v, c.tau, c.f)
    dense = forward_dynamics_maximal(*args, sparse=False)
    sparse = forward_dynamics_maximal(*args)
    tolerance = 10 * SOLVED * c.condition
    close(sparse.joint_accelerations, dense.joint_accelerations, tolerance)
    close(dense.joint_accelerations, FD(*args), tolerance)
