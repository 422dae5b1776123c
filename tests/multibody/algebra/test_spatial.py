"""Spatial and planar vectors: the book's tables as properties, types that refuse nonsense."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multibody.algebra import planar, se3
from multibody.algebra.inertia import (
    ArticulatedInertia,
    CentralInertia,
    InverseInertia,
    RigidInertia,
    mcI,
)
from multibody.algebra.orientation.rotations import skew
from multibody.algebra.plucker import (
    Plucker,
    XtoV,
    rot,
    rotx,
    roty,
    rotz,
    rx,
    ry,
    rz,
    scrx,
    scry,
    scrz,
    transform_dyadic,
    xlt,
)
from multibody.algebra.spatial import (
    Force,
    Motion,
    classical_from_spatial,
    crf,
    crm,
    spatial_from_classical,
)
from tests.multibody.mechanics_strategies import (
    angles,
    central_inertias,
    positive,
    rotation_matrices,
    vectors,
)

# Products of a few 6×6 matrices with entries up to about ten.
ROUNDING = 1e-11

motions = vectors(6).map(Motion)
forces = vectors(6).map(Force)
transforms = st.builds(Plucker, rotation_matrices, vectors(3))
bodies = st.builds(mcI, positive, vectors(3), central_inertias())


@st.composite
def articulated_inertias(draw):
    A = draw(vectors((6, 6)))
    return ArticulatedInertia.from_matrix(A @ A.T + np.eye(6))


articulated = articulated_inertias()


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


# --- Table 2.2 and the group ------------------------------------------------------------------


def test_table_2_2_printed_matrices():
    c, s = np.cos(0.3), np.sin(0.3)
    close(rx(0.3), [[1, 0, 0], [0, c, s], [0, -s, c]])
    close(ry(0.3), [[c, 0, -s], [0, 1, 0], [s, 0, c]])
    close(rz(0.3), [[c, s, 0], [-s, c, 0], [0, 0, 1]])
    E, Z = rz(0.3), np.zeros((3, 3))
    close(rot(E).matrix(), np.block([[E, Z], [Z, E]]))
    close(xlt([1, 2, 3]).matrix(), np.block([[np.eye(3), Z], [-skew([1.0, 2, 3]), np.eye(3)]]))
    for rotation, screw, e in (
        (rotx, scrx, [1, 0, 0]),
        (roty, scry, [0, 1, 0]),
        (rotz, scrz, [0, 0, 1]),
    ):
        step = 0.7 * np.array(e)
        assert screw(0.3, 0.7).isclose(rotation(0.3) * xlt(step))
        assert screw(0.3, 0.7).isclose(xlt(step) * rotation(0.3))


@given(transforms, transforms, transforms)
def test_group_laws(X, Y, Z):
    close(((X * Y) * Z).matrix(), (X * (Y * Z)).matrix())
    assert (X * X.inverse()).isclose(Plucker.identity(), ROUNDING)
    assert (X.inverse() * X).isclose(Plucker.identity(), ROUNDING)
    assert X.apply_inverse(Y).isclose(X.inverse() * Y, ROUNDING)
    close((X * Y).matrix(), X.matrix() @ Y.matrix())
    close(np.linalg.det(X.matrix()), 1.0)
    assert Plucker.from_matrix(X.matrix()).isclose(X, ROUNDING)


@given(transforms, motions, forces)
def test_duality(X, m, f):
    close(X.force_matrix(), np.linalg.inv(X.matrix()).T)
    close((X * m).dot(X * f), m.dot(f))
    close((X * m).array, X.matrix() @ m.array)
    close((X * f).array, X.force_matrix() @ f.array)
    close(X.apply_inverse(X * m).array, m.array)
    close(X.apply_inverse(X * f).array, f.array)
    close(f.dot(m), m.dot(f))


@given(transforms, vectors(3), motions, forces)
def test_transform_moves_the_point_of_reference(X, P, v, f):
    """The same velocity field and the same moment, seen from both frames."""
    P_B = (X.homogeneous() @ np.append(P, 1.0))[:3]
    close((X * v).velocity_at(P_B), X.E @ v.velocity_at(P))
    close((X * f).moment_about(P_B), X.E @ f.moment_about(P))


def test_example_2_2():
    """Plücker basis seen from P = (r, 0, 0)."""
    r = 0.7
    d = {name: Motion(np.eye(6)[n]) for n, name in enumerate(["Ox", "Oy", "Oz", "x", "y", "z"])}
    seen = {name: (xlt([r, 0, 0]).inverse() * v).array for name, v in d.items()}
    close(seen["Ox"], d["Ox"].array)
    close(seen["Oy"], (d["Oy"] + r * d["z"]).array)
    close(seen["Oz"], (d["Oz"] - r * d["y"]).array)


# --- cross products: Table 2.3, Figure 2.5 ----------------------------------------------------


@given(motions, motions, motions, forces, transforms)
def test_table_2_3_spatial_cross_operators(u, v, w, f, X):
    close(crf(v), -crm(v).T)
    close(crm(1.5 * v), 1.5 * crm(v))
    close(crf(1.5 * v), 1.5 * crf(v))
    close(crm(u + v), crm(u) + crm(v))
    close(crf(u + v), crf(u) + crf(v))
    close(crm(X * v), X.matrix() @ crm(v) @ np.linalg.inv(X.matrix()))
    close(crf(X * v), X.force_matrix() @ crf(v) @ np.linalg.inv(X.force_matrix()))
    close(u.cross(v).array, -v.cross(u).array)
    close(u.cross(v).array, crm(u) @ v.array)
    close(u.cross(f).array, crf(u) @ f.array)
    close(u.cross(v).dot(f), -v.dot(u.cross(f)))  # (u×v)· = −v· u×*
    close(u.cross(f).dot(v), -f.dot(u.cross(v)))  # (u×*f)· = −f· u×
    close(crm(u.cross(v)), crm(u) @ crm(v) - crm(v) @ crm(u))  # Jacobi
    close(crf(u.cross(v)), crf(u) @ crf(v) - crf(v) @ crf(u))
    jacobi = u.cross(v.cross(w)) + v.cross(w.cross(u)) + w.cross(u.cross(v))
    close(jacobi.array, np.zeros(6))


def test_figure_2_5_basis_tables():
    """Entry (row, column): rate of the column's basis vector when it moves with the row's."""
    motion_names = ["Ox", "Oy", "Oz", "x", "y", "z"]
    d = [Motion(np.eye(6)[n]) for n in range(6)]
    e = [Force(np.eye(6)[n]) for n in range(6)]  # couples x, y, z, then forces Ox, Oy, Oz
    assert motion_names[0] == "Ox"
    assert d[0].cross(d[1]) == d[2]  # d_Ox × d_Oy = d_Oz
    assert d[3].cross(d[1]) == d[5]  # d_x × d_Oy = d_z
    assert d[3].cross(d[4]) == Motion.zero()  # d_x × d_y = 0
    levi = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        levi[i, j, k], levi[j, i, k] = 1, -1
    for i in range(3):
        for j in range(3):
            same, zero = levi[i, j], np.zeros(3)
            close(d[i].cross(d[j]).array, [*same, *zero])
            close(d[i].cross(d[3 + j]).array, [*zero, *same])
            close(d[3 + i].cross(d[j]).array, [*zero, *same])
            close(d[3 + i].cross(d[3 + j]).array, np.zeros(6))
            close(d[i].cross(e[j]).array, [*same, *zero])
            close(d[i].cross(e[3 + j]).array, [*zero, *same])
            close(d[3 + i].cross(e[j]).array, np.zeros(6))
            close(d[3 + i].cross(e[3 + j]).array, [*same, *zero])


@given(vectors(6), vectors(6))
def test_derivative_of_a_transform_is_the_cross_operator(v_A, v_B):
    """Ex 2.4: d/dt X_BA = (v_A − v_B)× X_BA in B coordinates; hence dX_J/dt = −v_J× X_J."""
    X_BA = Plucker(rz(0.4) @ rx(-0.7), [0.3, -0.2, 0.5])
    v_A_in_A = X_BA.apply_inverse(Motion(v_A)).array

    def moved(s):
        """Both frames after a short time s at constant velocity."""
        forward, back = se3.exp(s * v_B).to_plucker(), se3.exp(s * v_A_in_A).to_plucker()
        return (forward * X_BA * back.inverse()).matrix()

    h = 1e-6
    rate = (moved(h) - moved(-h)) / (2 * h)
    close(rate, crm(Motion(v_A) - Motion(v_B)) @ X_BA.matrix(), 1e-8)  # h² and eps/h


@given(vectors(6), vectors(6), vectors(6), vectors(6), angles, angles)
def test_table_2_4_differentiation(u0, u1, v0, v1, a, b):
    """Product rules. Straight lines make every product quadratic: the difference is exact."""
    u, du, v, dv = Motion(u0), Motion(u1), Motion(v0), Motion(v1)
    f, df = Force(v0), Force(v1)
    at = {s: (u + s * du, v + s * dv, f + s * df, a + s * b) for s in (-1.0, 1.0)}

    def rate(function):
        return (np.asarray(function(*at[1.0])) - np.asarray(function(*at[-1.0]))) / 2

    close(rate(lambda u, v, f, c: u.dot(f)), du.dot(f) + u.dot(df))
    close(rate(lambda u, v, f, c: u.cross(v).array), (du.cross(v) + u.cross(dv)).array)
    close(rate(lambda u, v, f, c: u.cross(f).array), (du.cross(f) + u.cross(df)).array)
    close(rate(lambda u, v, f, c: crm(u)), crm(du))
    close(rate(lambda u, v, f, c: crf(u)), crf(du))
    close(rate(lambda u, v, f, c: np.outer(u.array, v.array)), np.outer(u1, v0) + np.outer(u0, v1))
    close(rate(lambda u, v, f, c: (c * v).array), (b * v + a * dv).array)


@given(vectors(6), vectors(6), vectors(6))
def test_differentiation_in_a_moving_frame(v_A, m, dm):
    """Eqs 2.39–2.45: the rate of a vector is its rate in the frame plus v_A × (or ×*) it."""
    h = 1e-6
    for kind, cross in ((Motion, crm), (Force, crf)):
        # Coordinates in the frame that A was at time 0, which stands still.
        def fixed(s, kind=kind):
            return se3.exp(s * v_A).act(kind(m + s * dm)).array

        rate = (fixed(h) - fixed(-h)) / (2 * h)
        close(rate, dm + cross(Motion(v_A)) @ m, 1e-8)  # h² and eps/h


# --- types ------------------------------------------------------------------------------------


def test_meaningless_operations_raise():
    m, f, X = Motion([1, 0, 0], [0, 1, 0]), Force([1, 0, 0], [0, 1, 0]), xlt([1, 2, 3])
    body = mcI(1.0, [0, 0, 0], np.eye(3))
    IA = ArticulatedInertia.from_rigid(body)
    bad = {
        "m·m": lambda: m.dot(m),
        "f·f": lambda: f.dot(f),
        "m+f": lambda: m + f,
        "f−m": lambda: f - m,
        "f×f": lambda: f.cross(f),
        "f×m": lambda: f.cross(m),
        "m m": lambda: m * m,
        "m f": lambda: m * f,
        "I f": lambda: body * f,
        "I^A f": lambda: IA * f,
        "Φ m": lambda: body.inverse() * m,
        "X array": lambda: X * np.ones(6),
        "array+m": lambda: np.ones(6) + m,
        "m+array": lambda: m + np.ones(6),
        "I+m": lambda: body + m,
        "I^A+m": lambda: IA + m,
        "crm(f)": lambda: crm(f),
    }
    for name, operation in bad.items():
        with pytest.raises(TypeError):
            pytest.fail(f"{name} gave {operation()}")
    assert not hasattr(IA, "kinetic_energy")
    assert not hasattr(IA, "momentum")


def test_messages_say_expected_received_remedy():
    m, f = Motion.zero(), Force.zero()
    with pytest.raises(TypeError, match="expected two of Motion, received Motion and Force; mot"):
        m + f
    with pytest.raises(TypeError, match="expected a Force, received Motion; motions multiply only"):
        m.dot(m)
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 6\), received shape \(5,\)"):
        Motion(np.ones(5))
    with pytest.raises(ValueError, match="one transform at a time"):
        Plucker(np.stack([np.eye(3)] * 2))
    with pytest.raises(ValueError, match="another 6×6"):
        Plucker.from_matrix(np.diag([1.0, 1, 1, 1, 1, -1]))


@given(motions, motions, forces)
def test_vector_space(u, v, f):
    close((u + v - v).array, u.array)
    close((2.0 * u).array, (u + u).array)
    close((u / 2.0).array, (u * 0.5).array)
    assert (-u) + u == Motion.zero()
    assert np.float64(2.0) * u == u + u
    assert u != f
    assert u.isclose(u)


# --- lines, free vectors, pitch (§2.5) --------------------------------------------------------


@given(st.sampled_from([Motion, Force]), vectors(3), vectors(3), angles)
def test_axis_recovers_point_direction_and_pitch(kind, point, direction, pitch):
    size = np.linalg.norm(direction)
    if size < 0.1:
        direction, size = np.array([0.0, 0, 1]), 1.0
    moment = np.cross(point, direction) + pitch * direction
    vector = kind(direction, moment) if kind is Motion else kind(moment, direction)
    axis = vector.axis()
    close(axis.direction, direction / size)
    close(axis.pitch, pitch)
    close(axis.magnitude, size)
    close(np.cross(axis.point - point, direction), 0.0)  # on the same line
    close(axis.point @ direction, 0.0)  # nearest to the origin
    line, free = vector.split()
    close((line + free).array, vector.array)
    assert free.is_free
    close(line.axis().pitch, 0.0)
    if pitch == 0.0:
        assert vector.is_line


def test_free_vectors_have_infinite_pitch_and_no_axis():
    for vector in (Motion([0, 0, 0], [0, 3, 4]), Force([0, 3, 4], [0, 0, 0])):
        assert vector.is_free
        assert not vector.is_line
        axis = vector.axis()
        assert axis.point is None
        assert axis.pitch == np.inf
        assert axis.magnitude == 5.0
    assert Motion.zero().is_free


def test_line_contains_exactly_the_points_with_op_cross_s():
    v = Motion([0, 0, 2], np.cross([1.0, 2, 5], [0, 0, 2]))
    assert v.is_line
    close(np.cross([1.0, 2, -7], v.angular), v.linear)
    close(v.velocity_at([1.0, 2, -7]), 0.0)


# --- accelerations (§2.11) --------------------------------------------------------------------


@given(motions, vectors(3), vectors(3))
def test_spatial_and_classical_acceleration_are_inverse(v, alpha, a):
    spatial = spatial_from_classical(v, alpha, a)
    for found, expected in zip(classical_from_spatial(v, spatial), (alpha, a)):
        close(found, expected)


def test_steady_rotation_has_zero_spatial_acceleration():
    v = Motion([0, 0, 2], -2 * np.cross([0, 0, 1.0], [3.0, 1, 0]))
    classical = np.cross(v.angular, v.linear)  # centripetal acceleration of the point at O
    assert np.linalg.norm(classical) > 1
    assert spatial_from_classical(v, [0, 0, 0], classical).isclose(Motion.zero())


def test_chain_of_velocities_and_accelerations_three_ways():
    """Ex 2.3 and 2.5: recursion, sum, and J q̈ + J̇ q̇ agree, in base coordinates."""
    rng = np.random.default_rng(5)
    S = [Motion(rng.normal(size=6)) for _ in range(4)]
    qd, qdd = rng.normal(size=4), rng.normal(size=4)
    v, a, velocities = Motion.zero(), Motion.zero(), []
    for s, rate, second in zip(S, qd, qdd):
        v = v + rate * s
        a = a + second * s + v.cross(rate * s)
        velocities.append(v)
    J = np.column_stack([s.array for s in S])
    close(J @ qd, v.array)
    J_dot = np.column_stack([w.cross(s).array for w, s in zip(velocities, S)])
    close(J @ qdd + J_dot @ qd, a.array)
    double = sum(
        (qd[i] * qd[j] * S[j].cross(S[i]).array for i in range(4) for j in range(i)), np.zeros(6)
    )
    close(J @ qdd + double, a.array)


# --- inertia (§2.12–2.15) ---------------------------------------------------------------------


@given(bodies, motions, transforms)
def test_rigid_inertia(body, v, X):
    I = body.matrix()
    m, c, C = body.mass, body.centre, body.central
    dense = np.block([[C + m * skew(c) @ skew(c).T, m * skew(c)], [m * skew(c).T, m * np.eye(3)]])
    close(I, dense)
    assert np.linalg.eigvalsh(I)[0] > 0
    close((body * v).array, I @ v.array)
    close(body.kinetic_energy(v), 0.5 * v.array @ I @ v.array, 1e-10)
    close(body.bias(v).array, (crf(v) @ I) @ v.array, 1e-10)
    close(CentralInertia.from_rigid(body).bias(v).array, body.bias(v).array, 1e-10)
    moved = X * body
    close(moved.matrix(), X.force_matrix() @ I @ np.linalg.inv(X.matrix()), 1e-9)
    close(moved.kinetic_energy(X * v), body.kinetic_energy(v), 1e-9)
    assert X.apply_inverse(moved).isclose(body, atol=1e-9)
    assert RigidInertia.from_matrix(I).isclose(body, atol=1e-10)
    assert RigidInertia.from_parameters(body.array).isclose(body)
    assert CentralInertia.from_rigid(body).rigid().isclose(body, atol=1e-10)


@given(bodies, bodies, motions, transforms)
def test_sums_of_inertias(a, b, v, X):
    close((a + b).matrix(), a.matrix() + b.matrix())
    triplet = CentralInertia.from_rigid(a) + CentralInertia.from_rigid(b)
    close(triplet.rigid().matrix(), a.matrix() + b.matrix(), 1e-9)
    close((X * (a + b)).array, (X * a + X * b).array, 1e-9)
    close(((a + b) * v).array, (a * v + b * v).array)
    close((2.0 * a).matrix(), (a + a).matrix())


@given(articulated, bodies, motions, transforms)
def test_articulated_inertia(IA, body, a, X):
    close((IA * a).array, IA.matrix() @ a.array)
    for total in (IA + body, body + IA):
        close(total.matrix(), IA.matrix() + body.matrix())
    close((IA + IA).matrix(), 2 * IA.matrix())
    moved = X * IA
    inverse = np.linalg.inv(X.matrix())
    scale = 1e-12 * np.abs(moved.matrix()).max()
    close(moved.matrix(), inverse.T @ IA.matrix() @ inverse, scale)
    close(X.apply_inverse(moved).matrix(), IA.matrix(), 10 * scale)
    close((X * ArticulatedInertia.from_rigid(body)).matrix(), (X * body).matrix(), 1e-9)


@given(bodies, transforms)
def test_inverse_inertia(body, X):
    Phi = body.inverse()
    close(Phi.matrix @ body.matrix(), np.eye(6), 1e-9)
    assert Phi.freedom == 6
    close((X * Phi).matrix, (X * body).inverse().matrix, 1e-8)
    close(X.apply_inverse(X * Phi).matrix, Phi.matrix, 1e-8)


@given(bodies, motions)
def test_inverse_inertia_of_a_constrained_body(body, s):
    """Φ = S (SᵀIS)⁻¹Sᵀ: rank 1, range S, ΦIΦ = Φ."""
    if np.linalg.norm(s.array) < 0.1:
        s = Motion([0, 0, 1], [0, 0, 0])
    Phi = InverseInertia(np.outer(s.array, s.array) / (s.array @ body.matrix() @ s.array))
    assert Phi.freedom == 1
    close(Phi.matrix @ body.matrix() @ Phi.matrix, Phi.matrix)


@given(bodies, motions, motions)
def test_equation_of_motion_at_the_centre_of_mass(body, v, a):
    """Ex 2.6: f = Ia + v×*Iv gives Newton and Euler at the centre of mass."""
    X = xlt(body.centre)
    I, v, a = X * body, X * v, X * a
    f = I * a + v.cross(I * v)
    classical = a.linear + np.cross(v.angular, v.linear)
    close(f.force, body.mass * classical, 1e-9)
    C = body.central
    close(f.moment, C @ a.angular + np.cross(v.angular, C @ v.angular), 1e-9)


@given(bodies, motions, transforms)
def test_rate_of_inertia(body, v, X):
    """dI/dt = v×*I − I v× for a body moving at v (Eq 2.65), by moving it a little."""
    h = 1e-6

    def move(s):
        return (se3.exp(s * v.array).to_plucker().inverse() * body).matrix()

    rate = crf(v) @ body.matrix() - body.matrix() @ crm(v)
    scale = 1 + np.abs(body.matrix()).max() * (1 + np.abs(v.array).max()) ** 3
    close((move(h) - move(-h)) / (2 * h), rate, 1e-8 * scale)


@given(transforms, vectors((6, 6)), st.sampled_from(["MM", "FF", "MF", "FM"]))
def test_table_2_5_dyadics(X, D, mapping):
    moved = transform_dyadic(X, D, mapping)
    back = transform_dyadic(X.inverse(), moved, mapping)
    close(back, D, 1e-9)
    if mapping in ("MM", "FF"):  # similarity: the characteristic polynomial stays
        close(np.trace(moved), np.trace(D), 1e-10)
        close(np.trace(moved @ moved), np.trace(D @ D), 1e-8)
    else:  # congruence: symmetry and definiteness stay
        S = transform_dyadic(X, D @ D.T + np.eye(6), mapping)
        close(S, S.T, 1e-9)
        assert np.linalg.eigvalsh((S + S.T) / 2)[0] > 0
    rank_one = transform_dyadic(X, np.outer(D[0], D[1]), mapping)
    values = np.linalg.svd(rank_one, compute_uv=False)
    assert values[1] <= 1e-10 * max(values[0], 1.0)


def test_unphysical_inertias_are_refused():
    with pytest.raises(ValueError, match="symmetric matrix"):
        mcI(1.0, [0, 0, 0], [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="sum of the other two"):
        mcI(1.0, [0, 0, 0], np.diag([1.0, 1.0, 2.5]))
    with pytest.raises(ValueError, match="positive semidefinite"):
        mcI(1.0, [0, 0, 0], np.diag([1.0, 1.0, -0.5]))
    with pytest.raises(ValueError, match="mass ≥ 0, received -1"):
        mcI(-1.0, [0, 0, 0], np.eye(3))
    with pytest.raises(ValueError, match="about the centre of mass"):
        RigidInertia(1.0, [2, 0, 0], np.eye(3))  # I_O smaller than the mass at that place gives
    with pytest.raises(ValueError, match="without mass"):
        RigidInertia(0.0, [1, 0, 0], np.eye(3))
    with pytest.raises(ValueError, match="positive semidefinite"):
        ArticulatedInertia(np.eye(3), 5 * np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="has no inverse"):
        mcI(1.0, [0, 0, 0], np.zeros((3, 3))).inverse()
    with pytest.raises(ValueError, match="another structure"):
        RigidInertia.from_matrix(np.diag([1.0, 1, 1, 2, 2, 3]))


# --- XtoV (Table A.2) -------------------------------------------------------------------------


@given(rotation_matrices, vectors(3))
def test_XtoV_is_invariant(E, r):
    X = Plucker(E, r)
    v = XtoV(X)
    close((X * v).array, v.array)


@given(vectors(3), vectors(3))
def test_XtoV_is_exact_for_translations_and_second_order_in_the_angle(r, phi):
    assert XtoV(xlt(r)).isclose(Motion(np.zeros(3), r))
    if np.linalg.norm(phi) < 0.1:
        return
    errors = []
    for size in (1e-2, 5e-3):
        u = np.concatenate([size * phi, r])
        X_BA = se3.exp(u).to_plucker()  # A travels at u for unit time and arrives at B
        errors.append(np.linalg.norm(XtoV(X_BA).array - u))
    assert errors[1] <= errors[0] / 3.5 + 1e-14


def test_XtoV_of_an_axial_screw():
    for theta in (0.3, 2.0, np.pi):
        close(XtoV(scrz(theta, 0.7)).array, [0, 0, np.sin(theta), 0, 0, 0.7 * np.cos(theta)])


# --- planar (§2.16) ---------------------------------------------------------------------------


@given(angles, vectors(2), vectors(3), vectors(3))
def test_planar_is_the_embedded_spatial_algebra(theta, r, v, f):
    X, Xp = planar.embed_transform(theta, r), planar.Xpln(theta, r)
    motion, force = planar.embed_motion(v), planar.embed_force(f)
    close(planar.restrict(X.matrix()), Xp)
    close(planar.restrict(X.force_matrix()), np.linalg.inv(Xp).T)
    close(planar.restrict(X * motion), Xp @ v)
    close(planar.restrict(X * force), np.linalg.inv(Xp).T @ f)
    close((X * motion).array[[0, 1, 5]], 0.0)  # stays in the plane
    close(planar.restrict(crm(motion)), planar.crm(v))
    close(planar.restrict(crf(motion)), planar.crf(v))
    close(planar.crf(v), -planar.crm(v).T)
    close(motion.dot(force), v @ f)
    body = planar.embed_inertia(2.0, r, 1.5)
    close(planar.restrict(body.matrix()), planar.mcI(2.0, r, 1.5))
    close(planar.restrict(body * motion), planar.mcI(2.0, r, 1.5) @ v)
    close((body * motion).array[[0, 1, 5]], 0.0)
    assert planar.restrict(motion).tolist() == v.tolist()


@given(st.integers(-1500, 1500).map(lambda n: n / 1000), vectors(2))
def test_planar_XtoV(theta, r):
    X = planar.Xpln(theta, r)
    v = planar.XtoV(X)
    close(X @ v, v)
    sine = X[1, 2]
    u = v * (np.arcsin(sine) / sine if sine else 1.0)
    # Travelling at u for unit time: the exponential of the planar motion is the displacement.
    pose = se3.exp(planar.embed_motion(u).array)
    close(pose.p[:2], r, 1e-10)
    close(pose.R[:2, :2], rz(theta)[:2, :2].T, 1e-10)
    close(planar.XtoV_simple(planar.Xpln(0.0, r)), [0, *r])


def test_planar_XtoV_orders():
    def exact(X):
        return planar.XtoV(X) * np.arcsin(X[1, 2]) / X[1, 2]

    for function, factor in ((planar.XtoV_simple, 1.8), (planar.XtoV, 3.6)):
        errors = [
            np.linalg.norm(function(X) - exact(X))
            for X in (planar.Xpln(1e-2, [1, 2]), planar.Xpln(5e-3, [1, 2]))
        ]
        assert errors[0] / errors[1] > factor


def test_planar_refuses_negative_mass():
    with pytest.raises(ValueError, match="≥ 0"):
        planar.mcI(-1.0, [0, 0], 1.0)


def test_transform_of_a_moving_point_in_forty_digits():
    """Xv really is the velocity field seen from B: differentiate a body point's position."""
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -15
        v = Motion([0.3, -0.7, 1.1], [0.4, 0.2, -0.5])
        K = mpmath.matrix(4, 4)
        K[:3, :3] = mpmath.matrix(skew(v.angular).tolist())
        for i in range(3):
            K[i, 3] = mpmath.mpf(float(v.linear[i]))
        P = mpmath.matrix([0.5, 1.5, -0.25, 1])
        rate = (mpmath.expm(h * K) * P - mpmath.expm(-h * K) * P) / (2 * h)
        rate = np.array([float(rate[i]) for i in range(3)])
    close(v.velocity_at([0.5, 1.5, -0.25]), rate, 1e-14)
