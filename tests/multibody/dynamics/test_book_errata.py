"""Errata of the dynamics book, chapters 3–11: the printed form fails, the corrected one holds."""

import numpy as np
import pytest

import multibody as mb
from multibody.joints.formulae import quaternion_rate, quaternion_transform, rz
from multibody.model.topology import expanded_parents

#: A printed formula is off by more than this; a right one by rounding.
OFF, ROUNDING = 0.05, 1e-11


def test_B07_constraint_force_of_the_explicit_form():
    """Eq 3.19: with +H⁻¹ at the top left ÿ is right and τ_c has the wrong sign."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((4, 4))
    H, G = A @ A.T + np.eye(4), rng.standard_normal((4, 2))
    free, g = rng.standard_normal((2, 4))  # τ − C, and Ġẏ
    found = {}
    for sign in (1.0, -1.0):
        matrix = np.block([[sign * np.linalg.inv(H), G], [G.T, np.zeros((2, 2))]])
        found[sign] = np.linalg.solve(matrix, np.append(np.linalg.solve(H, free) - g, [0, 0]))
    assert np.allclose(found[1.0][4:], found[-1.0][4:], atol=ROUNDING)
    assert np.allclose(found[1.0][:4], -found[-1.0][:4], atol=ROUNDING)
    accelerations = G @ found[-1.0][4:] + g
    assert np.allclose(H @ accelerations, free + found[-1.0][:4], atol=1e-10)
    assert np.abs(H @ accelerations - (free + found[1.0][:4])).max() > OFF


def printed_planar(t, q, v):
    E = rz(q[0])
    return E, E.T @ [q[1], q[2], 0.0], np.eye(6)[:, [2, 3, 4]], None, None


def test_B08_planar_joint_of_table_4_1():
    """Positions Eᵀ(q₂, q₃, 0) with a constant S do not have q̇ = v."""
    printed = mb.UserJoint(None, ["angle", "x", "y"], law=printed_planar)
    report = mb.check_joint(printed)
    assert not report
    assert max(report.residuals.values()) > OFF
    repaired = mb.UserJoint(
        None,
        ["angle", "x", "y"],
        law=printed_planar,
        rate=lambda q, v: [v[0], v[1] + q[2] * v[0], v[2] - q[1] * v[0]],
    )
    assert mb.check_joint(repaired)
    assert mb.check_joint(mb.Planar())


def printed_free(t, q, v):
    E = quaternion_transform(q[:4])
    return E, E.T @ q[4:], np.eye(6), None, None


def test_B09_free_joint_of_table_4_1():
    """The rate of the printed position is v − ω × q₅₋₇, not v."""
    names, speeds = mb.Free.coordinates, mb.Free.speeds
    reports = []
    for correct in (False, True):

        def rate(q, v, correct=correct):
            linear = v[3:] - np.cross(v[:3], q[4:]) if correct else v[3:]
            return np.array([*quaternion_rate(q[:4], v[:3]), *linear])

        joint = mb.UserJoint(
            None, names, speeds, rate, printed_free, [1, 0, 0, 0, 0, 0, 0], ["SO3", "R", "R", "R"]
        )
        reports.append(mb.check_joint(joint))
    assert max(reports[0].residuals.values()) > OFF
    assert reports[1]
    assert mb.check_joint(mb.Free())


def test_B10_reversed_joint_needs_the_force_transform():
    """Table 4.2: −ᵖXₛ T is no constraint force of the reversed joint, ᵖXₛ* T is."""
    move = mb.Cylindrical((1.0, -2.0, 0.5)).motion([0.4, 0.7])
    T = mb.Cylindrical((1.0, -2.0, 0.5)).constraint_basis([0.4, 0.7])
    back = move.X.inverse()
    tilted = mb.Plucker(np.eye(3), [0.3, -0.2, 0.4]).matrix()  # a frame off the axis
    S, T = tilted @ move.S, np.linalg.inv(tilted).T @ T
    X = back.matrix() @ np.linalg.inv(tilted)
    reversed_S = -X @ S
    assert np.abs((-X @ T).T @ reversed_S).max() > OFF
    assert np.abs((np.linalg.inv(X).T @ T).T @ reversed_S).max() < ROUNDING


def test_B11_bias_of_yaw_pitch_roll():
    """Eq 4.9, of which a row is spurious in the scan: the three rows that are right."""
    (a, b, c), (x, y, z) = [0.3, 0.7, -0.4], [1.1, -0.6, 0.8]
    found = mb.AngleSequence("zyx").motion([a, b, c], [x, y, z]).c
    s2, c2, s3, c3 = np.sin(b), np.cos(b), np.sin(c), np.cos(c)
    expected = [
        -c2 * x * y,
        -s2 * s3 * x * y + c2 * c3 * x * z - s3 * y * z,
        -s2 * c3 * x * y - c2 * s3 * x * z - c3 * y * z,
    ]
    assert np.allclose(found[:3], expected, atol=ROUNDING)


def printed_expansion(parents, freedoms):
    """Table 6.4 as printed: λ′(map(i−1) + 1) = map(λ(i)), counted from 1."""
    at = np.concatenate([[0], np.cumsum(freedoms)])
    found = list(range(at[-1]))
    for i, parent in enumerate(parents, 1):
        if at[i - 1] < len(found):
            found[at[i - 1]] = int(at[parent])
    return found


def test_B12_expanded_parents_with_joints_without_freedom():
    """λ = (0, 0, 1, 3, 2), n = (1, 1, 0, 1, 1): variable 3 hangs on variable 1, not 2."""
    parents, freedoms = [0, 0, 1, 3, 2], [1, 1, 0, 1, 1]
    right = expanded_parents(parents, freedoms).tolist()
    assert right == [0, 0, 1, 2]
    assert printed_expansion(parents, freedoms) != right
    assert printed_expansion([0, 1, 1, 2, 2, 3], [1, 3, 1, 1, 1, 1]) == [0, 1, 2, 3, 1, 4, 4, 5]
    b = mb.ModelBuilder()
    joints = [mb.Revolute("y"), mb.Revolute("y"), mb.Fixed(), mb.Revolute("y"), mb.Revolute("y")]
    for i, (parent, joint) in enumerate(zip(parents, joints), 1):
        b.add_body(f"b{i}", parent, joint, (0.5, 0, 0), mb.box((1, 0.2, 0.1), mass=1.0))
    H = mb.crba(b.build(), [0.1, 0.2, 0.3, 0.4])
    L = mb.ltl(H, np.array(right) - 1)
    assert np.allclose(L.T @ L, H, atol=ROUNDING)
    wrong = mb.ltl(H, np.array(printed_expansion(parents, freedoms)) - 1)
    assert np.abs(wrong.T @ wrong - H).max() > OFF


def test_B13_bias_is_not_the_apparent_derivative_of_the_velocity():
    """§3.5: c_J is the derivative of v_J in the successor only while q̈ = 0."""
    joint, q, v, a = (
        mb.Universal(),
        np.array([0.3, 0.5]),
        np.array([1.0, -0.7]),
        np.array([2.0, 1.0]),
    )
    h = 1e-6

    def velocity(s, accelerated):
        return joint.motion(q + s * v + s * s / 2 * a * accelerated, v + s * a * accelerated).v

    slopes = [(velocity(h, k) - velocity(-h, k)) / (2 * h) for k in (0.0, 1.0)]
    move = joint.motion(q, v)
    assert np.allclose(slopes[0], move.c, atol=1e-8)  # of differences
    assert np.allclose(slopes[1], move.S @ a + move.c, atol=1e-8)
    assert np.abs(slopes[1] - move.c).max() > OFF


def test_B14_cylindrical_transform_of_example_8_1():
    """The lower-left block of X_J for a turn by θ and a shift z: [−sz, cz; −cz, −sz]."""
    theta, z = 0.6, 0.8
    X = mb.Cylindrical().motion([theta, z]).X.matrix()
    s, c = np.sin(theta), np.cos(theta)
    assert np.allclose(X[3:5, :2], [[-s * z, c * z], [-c * z, -s * z]], atol=ROUNDING)
    assert np.abs(X[3:5, :2] - [[0, z], [-z, 0]]).max() > OFF


def test_B15_loop_joints_whose_T_turns():
    """Table 8.4 takes T̊ = 0; a sphere in a tilted cylinder needs the term with its rate."""
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("bore", 0, mb.Spherical(), inertia=mb.sphere(mass=1.0, radius=1.0))
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.1))
    b.add_loop("slide", "bore", "ball", mb.SphereInCylinder())
    model = b.build()
    rng = np.random.default_rng(3)
    q = mb.assemble(model, model.random(rng), fixed=["bore"]).q
    v = mb.consistent_velocity(model, q, rng.standard_normal(model.nv))
    c = mb.constraints(model, q, v)
    h = 1e-6
    rate = [mb.constraints(model, model.integrate(q, v, s), v).K @ v for s in (h, -h)]
    assert np.allclose((rate[0] - rate[1]) / (2 * h), -c.gamma, atol=1e-7)
    assert np.abs(c.gamma).max() > OFF


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_B16_minus_signs_of_the_multiplier_method(sign):
    """§8.5: b = k − Yᵀz with τ′ = τ − C; the scan has lost both minus signs."""
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    q, v = entry.start(model)
    tau = np.array([1.0, -2.0, 0.5])
    H, c = mb.crba(model, q), mb.constraints(model, q, v)
    L = np.linalg.cholesky(H)  # any factor: Y = L⁻¹Kᵀ, z = L⁻¹τ′
    force = tau + sign * mb.bias_forces(model, q, v)
    Y, z = np.linalg.solve(L, c.K.T), np.linalg.solve(L, force)
    lam = np.linalg.lstsq(Y.T @ Y, c.gamma + sign * Y.T @ z, rcond=1e-9)[0]
    found = np.linalg.solve(H, force + c.K.T @ lam)
    off = np.abs(found - mb.FD(model, q, v, tau)).max()
    assert off < 1e-9 if sign < 0 else off > OFF
