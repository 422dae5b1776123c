"""Subspaces, dual bases, planar poses, screws as numbers, sequences of any length, precision."""

import numpy as np
import pytest

import multibody as mb
from multibody import angles, planar, rotations, se2, se3
from multibody.algebra.subspaces import Subspace

ROUNDING = 1e-12


def columns(rng, n, m):
    return rng.standard_normal((n, m))


@pytest.mark.parametrize("seed", range(6))
def test_table_3_1(seed):
    """Identities of sums, intersections and complements, on subspaces drawn at random."""
    rng = np.random.default_rng(seed)
    m1, m2 = rng.integers(0, 7, 2)
    S1, S2 = Subspace(columns(rng, 6, m1)), Subspace(columns(rng, 6, m2))
    assert S1.dimension == m1
    assert S1.complement().kind == "force"
    assert S1.complement().dimension == 6 - m1
    assert S1.complement().complement() == S1
    assert S1.parameters == m1 * (6 - m1)
    assert (S1 + S2).complement() == (S1.complement() & S2.complement())
    assert (S1 & S2).dimension == m1 + m2 - (S1 + S2).dimension
    A = columns(rng, m1, m1)
    assert Subspace(S1.basis @ A) == S1
    # S₁ ⊕ S₂^⊥ is everything exactly where S₁ᵀS₂ is regular.
    F = Subspace(columns(rng, 6, m1), "force")
    regular = np.linalg.matrix_rank(S1.basis.T @ F.basis) == m1
    assert S1.fills_with(F.complement()) == regular
    X = mb.rotx(0.3).matrix() @ mb.xlt([1, 2, 3]).matrix()
    assert S1.transform(X).complement() == S1.complement().transform(X)


def test_split_is_unique_or_refused():
    rng = np.random.default_rng(1)
    S1, S2 = Subspace(columns(rng, 6, 2)), Subspace(columns(rng, 6, 4))
    v = rng.standard_normal(6)
    first, second = S1.split(v, S2)
    assert np.allclose(first + second, v, atol=ROUNDING)
    assert first in S1
    assert second in S2
    assert (v in S1) is False
    with pytest.raises(ValueError, match="fill 6 dimensions"):
        S1.split(v, Subspace(columns(rng, 6, 3)))
    with pytest.raises(TypeError, match="complement of motions"):
        S1 + S2.complement()
    with pytest.raises(ValueError, match="kind"):
        Subspace(np.eye(6), "velocity")


def test_example_3_1_and_the_choice_of_active_forces():
    """f splits independently of the basis; T_a changes constraint forces, never accelerations."""
    rng = np.random.default_rng(2)
    B = rng.standard_normal((6, 6))
    I, S, f = B @ B.T, rng.standard_normal((6, 2)), rng.standard_normal(6)
    moving, taken = mb.split_force(I, S, f)
    assert np.allclose(S.T @ taken, 0, atol=ROUNDING)
    again, _ = mb.split_force(I, S @ rng.standard_normal((2, 2)), f)
    assert np.allclose(moving, again, atol=1e-10)
    T = mb.subspaces.constraint_forces(S)
    assert np.allclose(T.T @ S, 0, atol=ROUNDING)
    accelerations, constraint = [], []
    for along in (None, rng.standard_normal((6, 2))):
        T_a = mb.active_forces(S, along)
        assert np.allclose(T_a.T @ S, np.eye(2), atol=ROUNDING)
        matrix = np.block([[I, -T], [T.T, np.zeros((4, 4))]])
        found = np.linalg.solve(matrix, np.concatenate([T_a @ [1.0, -2.0], np.zeros(4)]))
        accelerations.append(found[:6])
        constraint.append(found[6:])
    assert np.allclose(*accelerations, atol=1e-9)
    assert np.abs(constraint[0] - constraint[1]).max() > 1e-3
    with pytest.raises(ValueError, match="does not give way"):
        mb.active_forces([0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0])


def test_dual_bases():
    rng = np.random.default_rng(3)
    D, m, f = columns(rng, 6, 6), rng.standard_normal(6), rng.standard_normal(6)
    E = mb.dual_basis(D)
    assert np.allclose(E.T @ D, np.eye(6), atol=1e-10)
    assert np.isclose((E.T @ m) @ (D.T @ f), m @ f)  # the product in coordinates of either
    X = se3.exp(rng.standard_normal(6)).to_plucker()
    assert np.allclose(mb.dual_transform(X.matrix()), X.force_matrix(), atol=ROUNDING)
    A = columns(rng, 6, 2) @ columns(rng, 2, 6)
    assert len(mb.dyads(A)) == 2
    assert np.allclose(sum(np.outer(a, b) for a, b in mb.dyads(A)), A, atol=ROUNDING)
    with pytest.raises(ValueError, match="independent columns"):
        mb.dual_basis(np.ones((3, 3)))


# ---------------------------------------------------------------------- the plane


@pytest.mark.parametrize("seed", range(4))
def test_planar_poses_are_spatial_ones(seed):
    rng = np.random.default_rng(seed)
    A, B = (mb.PlanarPose(rng.uniform(-4, 4), rng.standard_normal(2)) for _ in range(2))
    points = rng.standard_normal((5, 2))
    assert np.allclose((A @ B).homogeneous(), A.homogeneous() @ B.homogeneous(), atol=ROUNDING)
    assert (A @ B).embedded().isclose(A.embedded() @ B.embedded())
    assert np.allclose(A.act_inverse(A @ points), points, atol=ROUNDING)
    assert (A.act_inverse(B)).isclose(A.inverse() @ B)
    assert mb.PlanarPose.from_homogeneous(A.homogeneous()).isclose(A)
    assert np.allclose(np.linalg.inv(A.adjoint()), planar.Xpln(A.angle, A.p), atol=ROUNDING)
    xi = rng.standard_normal(3)
    turned = A @ se2.exp(xi) @ A.inverse()
    assert turned.isclose(se2.exp(A.adjoint() @ xi), atol=1e-11)
    assert np.allclose(se2.log(se2.exp(xi)), xi, atol=1e-11)
    spatial = se3.exp([0, 0, xi[0], xi[1], xi[2], 0])
    assert se2.exp(xi).embedded().isclose(spatial)


def test_planar_poses_refuse():
    with pytest.raises(ValueError, match="it mirrors"):
        mb.PlanarPose.from_matrix([[1, 0], [0, -1]])
    with pytest.raises(ValueError, match="R·Rᵀ = 1"):
        mb.PlanarPose.from_matrix([[1, 0.1], [0, 1]])
    with pytest.raises(ValueError, match="two steps"):
        se2.log(mb.PlanarPose(2 * np.pi, [1, 0]))
    with pytest.raises(ValueError, match="2 numbers"):
        mb.PlanarPose(0.1, [1, 2, 3])
    assert np.array_equal(se2.log(mb.PlanarPose(0.0)), np.zeros(3))


def test_planar_articulated_inertia_is_the_spatial_one():
    """Felt through a hinge, in another frame, glued to another body."""
    rng = np.random.default_rng(5)
    m, c, I = 2.0, rng.standard_normal(2), 0.7
    flat = planar.ArticulatedInertia(planar.mcI(m, c, I))
    solid = mb.handles.ForwardForm(planar.embed_inertia(m, c, I).matrix(), np.zeros(6))
    nothing = mb.handles.ForwardForm(np.zeros((6, 6)), np.zeros(6))
    S, S6 = np.array([1.0, 0.2, -0.4]), np.zeros((6, 1))
    S6[planar.PLANE, 0] = S
    joined = mb.handles.assemble(nothing, solid, S6, np.zeros(6), np.zeros(1))
    assert np.allclose(flat.across(S).matrix, planar.restrict(joined.I), atol=ROUNDING)
    assert np.allclose(flat.across(S) * S, 0, atol=ROUNDING)
    X = planar.Xpln(0.4, [1.0, -2.0])
    force = flat.transformed(X) * (X @ [1.0, 2.0, 3.0])
    assert np.allclose(force, np.linalg.inv(X).T @ (flat * [1.0, 2.0, 3.0]), atol=1e-11)
    with pytest.raises(ValueError, match="positive semidefinite"):
        planar.ArticulatedInertia(np.diag([1.0, -1.0, 1.0]))
    with pytest.raises(TypeError, match="ArticulatedInertia"):
        flat + planar.mcI(m, c, I)


# ---------------------------------------------------------------------- screws, sequences


def test_screws_add_and_scale():
    a, b = mb.Twist([1, 2, 3], [4, 5, 6]), mb.Twist([0, 1, 0], [1, 0, 1])
    w = mb.Wrench([1, 0, 2], [0, 3, 0])
    assert (2 * a - b / 2).motion() == 2 * a.motion() - b.motion() / 2
    assert np.isclose((a + b).dot(w), a.dot(w) + b.dot(w))
    assert np.isclose(a.dot(-3 * w), -3 * a.dot(w))
    assert a == mb.Twist(a.linear, a.angular)
    assert w == mb.Wrench(w.linear, w.torque)
    X = se3.exp([0.1, 0.2, 0.3, 1, 2, 3])
    assert (a + b).transformed(X).isclose(a.transformed(X) + b.transformed(X))
    for bad in (lambda: a + w, lambda: a * b, lambda: w - a, lambda: a.isclose(w)):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.parametrize("name", ["z", "xy", "zyzx", "xyzxy"])
@pytest.mark.parametrize("fixed", ["", "extrinsic "])
def test_sequences_of_any_length(name, fixed):
    rng = np.random.default_rng(len(name))
    u, u_dot = rng.standard_normal((2, len(name)))
    turns = [rotations.primitive("xyz".index(k), x) for k, x in zip(name, u)]
    expected = np.eye(3)
    for R in turns:
        expected = R @ expected if fixed else expected @ R
    found = angles.to_matrix(u, fixed + name)
    assert np.allclose(found, expected, atol=ROUNDING)
    q = angles.to_quaternion(u, fixed + name)
    assert np.allclose(mb.quaternions.to_matrix(q), expected, atol=ROUNDING)
    back, other = angles.inverse_sequence(u, fixed + name)
    assert np.allclose(angles.to_matrix(back, other), expected.T, atol=ROUNDING)
    h = 1e-6
    rate = angles.to_matrix(u + h * u_dot, fixed + name) - angles.to_matrix(
        u - h * u_dot, fixed + name
    )
    spin = rate / (2 * h)
    for axes, W in (("body", expected.T @ spin), ("world", spin @ expected.T)):
        omega = angles.rate_matrix(u, fixed + name, axes) @ u_dot
        assert np.allclose(rotations.vex(W), omega, atol=1e-8)  # of differences


def test_extrinsic_angles_come_back():
    for name in angles.SEQUENCES:
        u = np.array([0.3, 0.7, -0.4])
        R = angles.to_matrix(u, "extrinsic " + name)
        assert np.allclose(angles.from_matrix(R, "extrinsic " + name).values, u, atol=ROUNDING)
        other = angles.other_branch(u, "extrinsic " + name)
        assert np.allclose(angles.to_matrix(other, "extrinsic " + name), R, atol=ROUNDING)
        E = angles.rate_matrix(u, "extrinsic " + name)
        inverse = angles.rate_matrix_inverse(u, "extrinsic " + name)
        assert np.allclose(inverse @ E, np.eye(3), atol=1e-11)


def test_sequences_refuse():
    for bad in ("", "extrinsic ", "xya", "XYZ", "extrinsicxyz", "zzx"):
        with pytest.raises(ValueError, match="sequence"):
            angles.to_matrix([0.1, 0.2, 0.3], bad)
    with pytest.raises(ValueError, match="three axes"):
        angles.from_matrix(np.eye(3), "xy")
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\)"):
        angles.to_matrix([0.1, 0.2, 0.3], "xy")


# ---------------------------------------------------------------------- precision, names of axes


def test_single_precision_stays():
    f = np.float32
    v, six = np.array([0.1, 0.2, 0.3], f), np.arange(6).astype(f)
    R = rotations.exp(v)
    assert R.dtype == f
    pose, m, I = mb.Pose(R, v), mb.Motion(six), mb.mcI(2.0, v, np.eye(3, dtype=f))
    X, twist = pose.to_plucker(), mb.Twist(v, v)
    singles = [
        pose.R, pose.inverse().p, (pose @ pose).R, pose @ v, (pose @ mb.Point(v)).array,
        pose.homogeneous(), pose.adjoint(), pose.coadjoint(), X.matrix(), (X * m).array,
        (X * mb.Force(six)).array, (X * X).E, X.inverse().r, m.cross(m).array, (2 * m).array,
        twist.transformed(pose).array, twist.motion().array, (I * m).array, (X * I).array,
        se3.exp(six).p, se3.log(pose), planar.crm(v), planar.Xpln(f(0.1), v[:2]),
        mb.PlanarPose(0.3, v[:2]).homogeneous(), angles.to_matrix(v, "xyz"),
    ]  # fmt: skip
    assert [k for k, x in enumerate(singles) if x.dtype != f] == []
    assert mb.Pose(R.astype(float), v).R.dtype == mb.Pose(R.astype(float), v).p.dtype == float


def test_models_compute_in_double_precision():
    f = np.float32
    b = mb.ModelBuilder()
    inertia = mb.mcI(1.0, np.array([0.5, 0, 0], f), np.eye(3, dtype=f))
    b.add_body("rod", 0, mb.Revolute("y"), mb.Pose(np.eye(3, dtype=f), np.ones(3, f)), inertia)
    model = b.build()
    assert model.bodies[0].placement.r.dtype == model.bodies[0].inertia.array.dtype == float
    assert mb.FD(model, [0.1], [0.2]).dtype == float


def test_joints_say_which_axis_is_which():
    assert mb.Helical("z", 0.3) == mb.Helical(0.3, "z") == mb.Helical((0, 0, 1), 0.3)
    assert repr(mb.Helical("x", 0.3)) == "Helical(pitch=0.3, axis=[1.0, 0.0, 0.0])"
    with pytest.raises(TypeError, match="only the axis"):
        mb.Helical("z")
    assert repr(mb.Planar()) == "Planar()"
    assert repr(mb.Planar("x")) == "Planar(axis=[1.0, 0.0, 0.0], x along y, y along z)"
    for axis in ("x", "y", "-z", (1.0, -2.0, 0.5)):
        joint = mb.Planar(axis)
        shift = joint.motion([0.0, 1.0, 0.0]).X.r
        assert np.allclose(shift, joint.frame[0], atol=ROUNDING)
