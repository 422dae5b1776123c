"""Kernels: values against dense 6×6 algebra, operation counts, compiled against interpreted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrators.kernels import compiled
from integrators.tracing import trace
from multibody.algebra.orientation.quaternions import to_matrix
from multibody.algebra.orientation.rotations import skew
from multibody.kernels import axial, inertia, planar, screw, spatial
from multibody.kernels import vectors as v3
from tests.multibody.counting import Counted, cost
from tests.multibody.mechanics_strategies import (
    angles,
    central_inertias,
    positive,
    rotation_matrices,
    vectors,
)

# Sums of up to twenty products of numbers of size ten: some hundreds of roundings.
ROUNDING = 1e-12
# Compiled code may fuse multiplications and additions; otherwise the order is the same.
CONTRACTION = 1e-14

LOWER = ([0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2])


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def call(kernel, *args, out):
    result = np.full(out, np.nan)
    kernel(*args, result)
    return result


def dense_motion(E, r):
    return np.block([[E, np.zeros((3, 3))], [-E @ skew(r), E]])


def dense_rigid(m, h, I):
    return np.block([[I, skew(h)], [-skew(h), m * np.eye(3)]])


def crm(v):
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def pack_rigid(m, h, I):
    return np.concatenate([[m], h, I[LOWER]])


def pack_articulated(A):
    return np.concatenate([A[3:, 3:][LOWER], A[:3, 3:].ravel(), A[:3, :3][LOWER]])


@st.composite
def transforms(draw):
    return draw(rotation_matrices), draw(vectors(3))


@st.composite
def rigid(draw):
    m, c, I = draw(positive), draw(vectors(3)), draw(central_inertias())
    return m, m * c, I + m * skew(c) @ skew(c).T


symmetric6 = vectors((6, 6)).map(lambda A: A + A.T)


# --- values -----------------------------------------------------------------------------------


@given(vectors(6), vectors(6), transforms())
def test_vector_kernels_equal_dense_algebra(a, b, X):
    E, r = X
    D = dense_motion(E, r)
    force = np.linalg.inv(D).T
    close(call(spatial.motion_transform, E, r, a, out=6), D @ a)
    close(call(spatial.motion_transform_inverse, E, r, a, out=6), np.linalg.solve(D, a))
    close(call(spatial.force_transform, E, r, a, out=6), force @ a)
    close(call(spatial.force_transform_inverse, E, r, a, out=6), D.T @ a)
    close(call(spatial.cross_motion, a, b, out=6), crm(a) @ b)
    close(call(spatial.cross_force, a, b, out=6), -crm(a).T @ b)
    close(spatial.dot(a, b), a @ b)
    close(call(spatial.scale, 1.5, a, out=6), 1.5 * a)
    close(call(spatial.add, a, b, out=6), a + b)


@given(transforms(), transforms())
def test_composition_and_inverse_equal_dense_algebra(X1, X2):
    E, r = np.empty((3, 3)), np.empty(3)
    spatial.compose(*X1, *X2, E, r)
    close(dense_motion(E, r), dense_motion(*X1) @ dense_motion(*X2))
    spatial.invert(*X1, E, r)
    close(dense_motion(E, r) @ dense_motion(*X1), np.eye(6))


@given(rotation_matrices, rotation_matrices, rotation_matrices, vectors((3, 3)))
def test_efficiency_tricks(F1, F2, G, A):
    close(call(v3.multiply_rotations, F1, G, out=(3, 3)), F1 @ G)
    close(call(v3.rotation_chain, np.stack([F1, F2]), G, out=(3, 3)), F1 @ F2 @ G)
    for kernel in (v3.rotate_general, v3.rotate_general_direct):
        close(call(kernel, F1, A.ravel(), out=9), (F1 @ A @ F1.T).ravel())
    close(call(v3.rotate_general_inverse, F1, A.ravel(), out=9), (F1.T @ A @ F1).ravel())
    S = A + A.T
    close(call(v3.rotate_symmetric, F1, S[LOWER], out=6), (F1 @ S @ F1.T)[LOWER])
    close(call(v3.rotate_symmetric_inverse, F1, S[LOWER], out=6), (F1.T @ S @ F1)[LOWER])


@given(transforms(), rigid(), vectors(6))
def test_rigid_inertia_kernels(X, body, v):
    E, r = X
    I, packed = dense_rigid(*body), pack_rigid(*body)
    D = dense_motion(E, r)
    inverse = np.linalg.inv(D)
    close(call(inertia.rigid_to_matrix, packed, out=(6, 6)), I)
    close(call(inertia.rigid_apply, packed, v, out=6), I @ v)
    close(call(inertia.rigid_bias, packed, v, out=6), -crm(v).T @ I @ v, 1e-11)
    moved = call(inertia.rigid_transform, E, r, packed, out=10)
    close(call(inertia.rigid_to_matrix, moved, out=(6, 6)), inverse.T @ I @ inverse, 1e-11)
    back = call(inertia.rigid_transform_inverse, E, r, packed, out=10)
    close(call(inertia.rigid_to_matrix, back, out=(6, 6)), D.T @ I @ D, 1e-11)
    m, h, _ = body
    c = h / m
    central = (I[:3, :3] + m * skew(c) @ skew(c))[LOWER]
    close(call(inertia.central_bias, m, c, central, v, out=6), -crm(v).T @ I @ v, 1e-11)
    spread = call(inertia.articulated_from_rigid, packed, out=21)
    close(call(inertia.articulated_to_matrix, spread, out=(6, 6)), I)


@given(transforms(), symmetric6, rigid(), vectors(6))
def test_articulated_inertia_kernels(X, A, body, a):
    E, r = X
    packed = pack_articulated(A)
    D = dense_motion(E, r)
    inverse = np.linalg.inv(D)
    close(call(inertia.articulated_to_matrix, packed, out=(6, 6)), A)
    close(call(inertia.articulated_apply, packed, a, out=6), A @ a)
    close(
        call(inertia.articulated_transform, E, r, packed, out=21),
        pack_articulated(inverse.T @ A @ inverse),
        1e-11,
    )
    close(
        call(inertia.articulated_transform_inverse, E, r, packed, out=21),
        pack_articulated(D.T @ A @ D),
        1e-11,
    )
    close(
        call(inertia.articulated_add_rigid, packed, pack_rigid(*body), out=21),
        pack_articulated(A + dense_rigid(*body)),
    )


def axial_pair(axis, theta, d):
    """Dense transform and stored screw."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    E = np.eye(3)
    E[i, i] = E[j, j] = np.cos(theta)
    E[i, j], E[j, i] = np.sin(theta), -np.sin(theta)
    return (
        dense_motion(E, d * np.eye(3)[axis]),
        E,
        call(axial.axial_screw, np.cos(theta), np.sin(theta), d, out=7),
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
@given(theta=angles, d=angles, a=vectors(6), body=rigid(), A=symmetric6, B=vectors((3, 3)))
def test_axial_screws_equal_general_transforms(axis, theta, d, a, body, A, B):
    D, E, packed = axial_pair(axis, theta, d)
    inverse = np.linalg.inv(D)
    close(call(axial.axial_motion, axis, packed, a, out=6), D @ a)
    close(call(axial.axial_force, axis, packed, a, out=6), inverse.T @ a)
    backwards = call(axial.axial_inverse, packed, out=7)
    close(call(axial.axial_motion, axis, backwards, a, out=6), inverse @ a)
    rotated = np.empty(9)
    axial.axial_rotate_general(axis, packed, B.ravel(), 0, rotated, 0)
    close(rotated, (E @ B @ E.T).ravel())
    I = dense_rigid(*body)
    moved = call(axial.axial_rigid, axis, packed, pack_rigid(*body), out=10)
    close(call(inertia.rigid_to_matrix, moved, out=(6, 6)), inverse.T @ I @ inverse, 1e-11)
    close(
        call(axial.axial_articulated, axis, packed, pack_articulated(A), out=21),
        pack_articulated(inverse.T @ A @ inverse),
        1e-11,
    )
    A = A.copy()
    A[2], A[:, 2] = 0.0, 0.0
    moved = call(axial.axial_articulated_z_free, axis, packed, pack_articulated(A), out=21)
    close(moved, pack_articulated(inverse.T @ A @ inverse), 1e-11)


def test_zeros_stay_along_z_only():
    A = np.random.default_rng(1).normal(size=(6, 6))
    A = A + A.T
    A[2], A[:, 2] = 0.0, 0.0
    for axis, stays in ((0, False), (1, False), (2, True)):
        _, _, packed = axial_pair(axis, 0.7, 0.3)
        moved = call(axial.axial_articulated_z_free, axis, packed, pack_articulated(A), out=21)
        row = call(inertia.articulated_to_matrix, moved, out=(6, 6))[2]
        assert np.all(row == 0.0) == stays


@given(transforms(), vectors(6), vectors(6))
def test_screw_kernels_are_the_linear_first_forms(X, a, b):
    R, r = X
    swap = np.roll(np.eye(6), 3, axis=0)
    Ad = np.block([[R, skew(r) @ R], [np.zeros((3, 3)), R]])
    close(call(screw.adjoint_action, R, r, a, out=6), Ad @ a)
    close(call(screw.coadjoint_action, R, r, a, out=6), np.linalg.inv(Ad).T @ a)
    close(Ad, swap @ np.linalg.inv(dense_motion(R.T, r)) @ swap)
    for axis in range(3):
        close(call(screw.prismatic_influence, R, r, axis, out=6), Ad[:, axis])
        close(call(screw.revolute_influence, R, r, axis, out=6), Ad[:, 3 + axis])


def test_outputs_may_be_the_inputs():
    """In-place use gives the same numbers for vectors and inertias."""
    rng = np.random.default_rng(2)
    E, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    E *= np.linalg.det(E)
    r, screw7 = rng.normal(size=3), axial_pair(1, 0.4, 0.2)[2]
    cases = [
        (k, 6)
        for k in (
            spatial.motion_transform,
            spatial.motion_transform_inverse,
            spatial.force_transform,
            spatial.force_transform_inverse,
        )
    ]
    cases += [
        (inertia.rigid_transform, 10),
        (inertia.rigid_transform_inverse, 10),
        (inertia.articulated_transform, 21),
        (inertia.articulated_transform_inverse, 21),
    ]
    for kernel, size in cases:
        x = rng.normal(size=size)
        expected = call(kernel, E, r, x, out=size)
        kernel(E, r, x, x)
        close(x, expected, 0.0)
    for kernel, size in (
        (axial.axial_motion, 6),
        (axial.axial_force, 6),
        (axial.axial_rigid, 10),
        (axial.axial_articulated, 21),
    ):
        x = rng.normal(size=size)
        expected = call(kernel, 1, screw7, x, out=size)
        kernel(1, screw7, x, x)
        close(x, expected, 0.0)
    for kernel, lead in (
        (spatial.cross_motion, 6),
        (spatial.cross_force, 6),
        (inertia.rigid_apply, 10),
        (inertia.articulated_apply, 21),
    ):
        a, x = rng.normal(size=lead), rng.normal(size=6)
        expected = call(kernel, a, x, out=6)
        kernel(a, x, x)
        close(x, expected, 0.0)


# --- operation counts -------------------------------------------------------------------------

RNG = np.random.default_rng(3)
ROTATION = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
ROTATION *= np.linalg.det(ROTATION)
R3, V6, W6, I10, A21 = (RNG.normal(size=n) for n in (3, 6, 6, 10, 21))
SCREW = axial_pair(2, 0.4, 0.2)[2]
Z_FREE = A21.copy()
Z_FREE[[12, 13, 14, 18, 19, 20]] = 0.0
X = (ROTATION, R3)

# name: kernel, arguments, shapes of the outputs, (multiplications, additions), source
COSTS = {
    "αv": (spatial.scale, (1.5, V6), [6], (6, 0), "Table A.4"),
    "αI": (spatial.scale, (1.5, I10), [10], (10, 0), "Table A.4"),
    "αI^A": (spatial.scale, (1.5, A21), [21], (21, 0), "Table A.4"),
    "v+v": (spatial.add, (V6, W6), [6], (0, 6), "Table A.4"),
    "I+I": (spatial.add, (I10, I10), [10], (0, 10), "Table A.4"),
    "I^A+I^A": (spatial.add, (A21, A21), [21], (0, 21), "Table A.4"),
    "I^A+I": (inertia.articulated_add_rigid, (A21, I10), [21], (0, 15), "Table A.4"),
    "v·f": (spatial.dot, (V6, W6), [], (6, 5), "Table A.4"),
    "v×v": (spatial.cross_motion, (V6, W6), [6], (18, 12), "Table A.4"),
    "v×*f": (spatial.cross_force, (V6, W6), [6], (18, 12), "Table A.4"),
    "Iv": (inertia.rigid_apply, (I10, V6), [6], (24, 18), "Table A.4"),
    "I^Av": (inertia.articulated_apply, (A21, V6), [6], (36, 30), "Table A.4"),
    "X1X2": (spatial.compose, (*X, *X), [(3, 3), 3], (33, 24), "Table A.4"),
    "X⁻¹": (spatial.invert, X, [(3, 3), 3], (9, 6), "Table A.4"),
    "Xv": (spatial.motion_transform, (*X, V6), [6], (24, 18), "Table A.4"),
    "X⁻¹v": (spatial.motion_transform_inverse, (*X, V6), [6], (24, 18), "Table A.4"),
    "X*f": (spatial.force_transform, (*X, V6), [6], (24, 18), "Table A.4"),
    "Xᵀf": (spatial.force_transform_inverse, (*X, V6), [6], (24, 18), "Table A.4"),
    "X*IX⁻¹": (inertia.rigid_transform, (*X, I10), [10], (52, 56), "Table A.4"),
    "XᵀIX": (inertia.rigid_transform_inverse, (*X, I10), [10], (52, 56), "Table A.4"),
    "X*I^AX⁻¹": (inertia.articulated_transform, (*X, A21), [21], (137, 137), "Table A.4"),
    "XᵀI^AX": (inertia.articulated_transform_inverse, (*X, A21), [21], (137, 137), "Table A.4"),
    "screw, one-time": (axial.axial_screw, (0.9, 0.4, 0.2), [7], (2, 3), "Table A.5"),
    "FG": (v3.multiply_rotations, (ROTATION, ROTATION), [(3, 3)], (24, 15), "§A.5"),
    "chain of 4": (
        v3.rotation_chain,
        (np.stack([ROTATION] * 4), ROTATION),
        [(3, 3)],
        (4 * 18 + 6, 4 * 12 + 3),
        "§A.5",
    ),
    "EAEᵀ": (v3.rotate_general, (ROTATION, RNG.normal(size=9)), [9], (40, 39), "§A.5"),
    "EAEᵀ, no trace": (
        v3.rotate_general_direct,
        (ROTATION, RNG.normal(size=9)),
        [9],
        (42, 37),
        "§A.5",
    ),
    "ESEᵀ": (v3.rotate_symmetric, (ROTATION, RNG.normal(size=6)), [6], (28, 29), "§A.5"),
    "EᵀSE": (v3.rotate_symmetric_inverse, (ROTATION, RNG.normal(size=6)), [6], (28, 29), "§A.5"),
    "a×b": (v3.cross, (R3, R3), [3], (6, 3), "screw notes, table 1"),
    "Ad·twist": (screw.adjoint_action, (*X, V6), [6], (24, 18), "screw notes, table 1"),
    "Ad*·wrench": (screw.coadjoint_action, (*X, V6), [6], (24, 18), "screw notes"),
    "β form": (
        inertia.central_bias,
        (2.0, R3, RNG.normal(size=6), V6),
        [6],
        (45, 30),
        "SE(3) notes §6: 5 cross, 3 additions, 2 scalings, 1 matrix–vector",
    ),
}
for _axis in range(3):
    COSTS |= {
        f"axial {_axis} v": (axial.axial_motion, (_axis, SCREW, V6), [6], (10, 6), "Table A.5"),
        f"axial {_axis} f": (axial.axial_force, (_axis, SCREW, V6), [6], (10, 6), "Table A.5"),
        f"axial {_axis} I": (axial.axial_rigid, (_axis, SCREW, I10), [10], (16, 15), "Table A.5"),
        f"axial {_axis} I^A": (
            axial.axial_articulated,
            (_axis, SCREW, A21),
            [21],
            (38, 40),
            "Table A.5",
        ),
        f"axial {_axis} I^a": (
            axial.axial_articulated_z_free,
            (_axis, SCREW, Z_FREE),
            [21],
            (28, 34) if _axis == 2 else (32, 28),
            "Table A.5",
        ),
        f"revolute {_axis}": (
            screw.revolute_influence,
            (*X, _axis),
            [6],
            (6, 3),
            "screw notes: 9 operations",
        ),
        f"prismatic {_axis}": (
            screw.prismatic_influence,
            (*X, _axis),
            [6],
            (0, 0),
            "screw notes: none",
        ),
    }


@pytest.mark.parametrize("name", COSTS)
def test_operation_counts_are_the_documents(name):
    kernel, args, outputs, expected, _ = COSTS[name]
    counts, values = cost(kernel, *args, outputs=outputs)
    assert counts == expected
    floats = [np.full(shape, np.nan) for shape in outputs]
    returned = kernel(*args, *floats)
    for counted, plain in zip(values, floats if outputs else [returned]):
        close(counted, plain, 0.0)  # the same operations in the same order


def test_axial_rotation_counts():
    for axis in range(3):
        for kernel, size, expected in (
            (axial.axial_rotate_symmetric, 6, (8, 7)),
            (axial.axial_rotate_general, 9, (12, 12)),
        ):
            counts, _ = cost(
                lambda a, s, A, out, k=kernel: k(a, s, A, 0, out, 0),
                axis,
                SCREW,
                RNG.normal(size=size),
                outputs=[size],
            )
            assert counts == expected


def test_denavit_hartenberg_pair_costs_62m_65a():
    """scrz with its one-time cost, then scrx with a constant angle (book, §A.4)."""

    def pair(c, s, d, constant, Ia, screw7, first, second):
        axial.axial_screw(c, s, d, screw7)
        axial.axial_articulated_z_free(2, screw7, Ia, first)
        axial.axial_articulated_z_free(0, constant, first, second)

    counts, _ = cost(pair, 0.9, 0.4, 0.2, SCREW, Z_FREE, outputs=[7, 21, 21])
    assert counts == (62, 65)


def test_dense_twist_transform_costs_63m_48a():
    """What the screw notes' second table counts: 66 % less memory and 62 % fewer operations."""

    def multiply(A, B, out):
        for i in range(A.shape[0]):
            for j in range(B.shape[1]):
                total = A[i, 0] * B[0, j]
                for k in range(1, A.shape[1]):
                    total = total + A[i, k] * B[k, j]
                out[i, j] = total

    corner, _ = cost(multiply, skew(R3), ROTATION, outputs=[(3, 3)])
    applied, _ = cost(multiply, np.eye(6), V6[:, None], outputs=[(6, 1)])
    dense = np.add(corner, applied)
    assert dense.tolist() == [63, 48]
    sparse, _ = cost(screw.adjoint_action, *X, V6, outputs=[6])
    assert round(100 * (1 - sum(sparse) / dense.sum())) == 62
    assert int(100 * (1 - 12 / 36)) == 66  # twelve numbers instead of thirty-six


def test_counting_numbers_refuse_to_be_tested():
    from tests.multibody.counting import Tally

    with pytest.raises(TypeError, match="tested a value"):
        bool(Counted(1.0, Tally()))


# --- compiled ---------------------------------------------------------------------------------


# The axis and the size are arguments of the same compiled code: one of each is enough.
ONCE = [
    n
    for n in COSTS
    if not n.startswith(("αI", "I+", "I^A+I^A")) and not {"0", "1"} & set(n.split())
]


@pytest.mark.parametrize("name", ONCE)
def test_compiled_equals_interpreted(name):
    kernel, args, outputs, _, _ = COSTS[name]
    expected = [np.full(shape, np.nan) for shape in outputs]
    found = [np.full(shape, np.nan) for shape in outputs]
    returned = kernel(*args, *expected)
    compiled_return = compiled(kernel)(*args, *found)
    for a, b in zip([*expected, returned], [*found, compiled_return]):
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=CONTRACTION, atol=CONTRACTION)


PLANAR_X = np.array([0.8, 0.6, 0.3, -0.2])
QUATERNION = np.array([0.5, -0.5, 0.5, 0.5])
UNPRINTED = {
    "planar X": (planar.planar_motion_transform, (PLANAR_X, R3), [3]),
    "planar X⁻¹": (planar.planar_motion_transform_inverse, (PLANAR_X, R3), [3]),
    "planar X*": (planar.planar_force_transform, (PLANAR_X, R3), [3]),
    "planar Xᵀ": (planar.planar_force_transform_inverse, (PLANAR_X, R3), [3]),
    "planar ×": (planar.planar_cross_motion, (R3, R3 + 1), [3]),
    "planar ×*": (planar.planar_cross_force, (R3, R3 + 1), [3]),
    "planar XX": (planar.planar_compose, (PLANAR_X, PLANAR_X), [4]),
    "planar I": (planar.planar_inertia_apply, (PLANAR_X, R3), [3]),
    "E v": (v3.transform_vector, (ROTATION, R3), [3]),
    "Eᵀ v": (v3.transform_vector_inverse, (ROTATION, R3), [3]),
    "E(q)": (v3.quaternion_to_transform, (QUATERNION,), [(3, 3)]),
    "bias": (inertia.rigid_bias, (I10, V6), [6]),
    "I 6×6": (inertia.rigid_to_matrix, (I10,), [(6, 6)]),
    "I^A 6×6": (inertia.articulated_to_matrix, (A21,), [(6, 6)]),
    "I as I^A": (inertia.articulated_from_rigid, (I10,), [21]),
    "screw⁻¹": (axial.axial_inverse, (SCREW,), [7]),
}


@pytest.mark.parametrize("name", UNPRINTED)
def test_compiled_and_counted_kernels_without_printed_cost(name):
    kernel, args, outputs = UNPRINTED[name]
    expected = [np.full(shape, np.nan) for shape in outputs]
    found = [np.full(shape, np.nan) for shape in outputs]
    kernel(*args, *expected)
    compiled(kernel)(*args, *found)
    _, values = cost(kernel, *args, outputs=outputs)
    for a, b, c in zip(expected, found, values):
        np.testing.assert_allclose(a, b, rtol=CONTRACTION, atol=CONTRACTION)
        close(a, c, 0.0)


def test_transforms_of_vectors_and_quaternions():
    close(call(v3.transform_vector, ROTATION, R3, out=3), ROTATION @ R3)
    close(call(v3.transform_vector_inverse, ROTATION, R3, out=3), ROTATION.T @ R3)
    close(call(v3.quaternion_to_transform, QUATERNION, out=(3, 3)), to_matrix(QUATERNION).T)


# --- traced -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COSTS)
def test_traced_equals_interpreted(name):
    """On symbols: the same numbers, and the documents' counts before any simplification."""
    kernel, args, outputs, expected, _ = COSTS[name]
    symbolic = [np.asarray(a, dtype=float) for a in args if not isinstance(a, int)]

    def run(*values):
        values = iter(values)
        arguments = [a if isinstance(a, int) else next(values) for a in args]
        results = [np.empty(shape, dtype=object) for shape in outputs]
        returned = kernel(*arguments, *results)
        if not outputs:
            return [returned]
        return [x for r in results for x in r.ravel()]

    shapes = [a.shape for a in symbolic]
    inputs = np.concatenate([a.ravel() for a in symbolic])
    floats = np.array([float(x) for x in run(*(a if a.ndim else a[()] for a in symbolic))])
    program = trace(run, *shapes)
    np.testing.assert_allclose(
        program.evaluate(inputs.tolist()), floats, rtol=CONTRACTION, atol=CONTRACTION
    )
    counted = trace(run, *shapes, simplify=False).operations()
    assert (counted.get("mul", 0), counted.get("add", 0) + counted.get("sub", 0)) == expected


# --- planar kernels ---------------------------------------------------------------------------

PLANE = [2, 3, 4]


@given(angles, vectors(2), vectors(3), vectors(3), angles, vectors(2))
def test_planar_kernels_are_rows_and_columns_3_4_5(theta, r, a, b, theta2, r2):
    def both(angle, place):
        c, s = np.cos(angle), np.sin(angle)
        E = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        return np.array([c, s, *place]), dense_motion(E, np.append(place, 0.0))

    def embed(x):
        return np.array([0, 0, *x, 0])

    Xp, D = both(theta, r)
    force = np.linalg.inv(D).T
    for kernel, M in (
        (planar.planar_motion_transform, D),
        (planar.planar_motion_transform_inverse, np.linalg.inv(D)),
        (planar.planar_force_transform, force),
        (planar.planar_force_transform_inverse, D.T),
    ):
        close(call(kernel, Xp, a, out=3), (M @ embed(a))[PLANE])
    close(call(planar.planar_cross_motion, a, b, out=3), (crm(embed(a)) @ embed(b))[PLANE])
    close(call(planar.planar_cross_force, a, b, out=3), (-crm(embed(a)).T @ embed(b))[PLANE])
    close(planar.planar_dot(a, b), a @ b)
    Xp2, D2 = both(theta2, r2)
    composed = call(planar.planar_compose, Xp, Xp2, out=4)
    close(call(planar.planar_motion_transform, composed, a, out=3), (D @ D2 @ embed(a))[PLANE])
    m, I = 2.0, 3.0
    full = dense_rigid(m, np.append(m * r, 0.0), np.diag([0, 0, I]))
    close(
        call(planar.planar_inertia_apply, np.array([m, *(m * r), I]), a, out=3),
        (full @ embed(a))[PLANE],
    )
