"""Denavit–Hartenberg tables: 4×4 products, both conventions against each other, PUMA 560."""

from __future__ import annotations

import re

import numpy as np
import pytest

from multibody import (
    FD,
    ID,
    Cylindrical,
    Fixed,
    Helical,
    Inertia,
    ModelBuilder,
    Pose,
    Prismatic,
    Revolute,
    Spherical,
    crba,
    gravity_forces,
    kinematics,
)
from multibody.algebra import plucker
from multibody.algebra.orientation.rotations import exp
from multibody.model import dh

# Products of half a dozen transforms with entries of order one.
ROUNDING = 1e-13
# Digits of the printed reference values: ten decimals.
PRINTED = 6e-11

PI = np.pi
RNG = np.random.default_rng(4)
JOINTS = [Revolute(), Prismatic(), Cylindrical(), Helical(0.3), Fixed(), Revolute()]
# Angles that are neither small nor right, of both signs.
TABLE = [
    dh.Link(a, alpha, d, theta, joint)
    for (a, d, theta), alpha, joint in zip(
        RNG.normal(size=(6, 3)), (0.7, -1.1, 2.0, -2.5, 0.4, 1.4), JOINTS
    )
]
BASE = Pose(exp([0.1, -0.4, 0.2]), [1.0, 2.0, 3.0])
TOOL = Pose(exp([0.5, 0.1, -0.3]), [0.2, -0.1, 0.4])


def matrices(theta, d, a, alpha):
    """Elementary 4×4 matrices, written out: Rz, Tz, Tx, Rx."""
    c, s = np.cos(theta), np.sin(theta)
    cos, sin = np.cos(alpha), np.sin(alpha)
    Rz = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    Rx = np.array([[1, 0, 0, 0], [0, cos, -sin, 0], [0, sin, cos, 0], [0, 0, 0, 1.0]])
    Tz, Tx = np.eye(4), np.eye(4)
    Tz[2, 3], Tx[0, 3] = d, a
    return Rz, Tz, Tx, Rx


def products(q, convention):
    """Link frames by products of 4×4 matrices, from q given joint by joint."""
    T = BASE.homogeneous()
    frames = []
    for link, values in zip(TABLE, q):
        theta, d = link.theta, link.d
        match link.joint.kind:
            case "revolute":
                theta += values[0]
            case "prismatic":
                d += values[0]
            case "cylindrical":
                theta, d = theta + values[0], d + values[1]
            case "helical":
                theta, d = theta + values[0], d + 0.3 * values[0]
        Rz, Tz, Tx, Rx = matrices(theta, d, link.a, link.alpha)
        T = T @ Rz @ Tz @ Tx @ Rx if convention == "standard" else T @ Rx @ Tx @ Rz @ Tz
        frames.append(T)
    return [*frames, T @ TOOL.homogeneous()]


@pytest.mark.parametrize("convention", dh.CONVENTIONS)
def test_forward_kinematics(convention):
    """The direct formula and the model agree with matrix products, all joint kinds, base, tool."""
    model = dh.chain(TABLE, convention, base=BASE, tool=TOOL, armature=1.0)
    assert model.bodies[-1].name == "tool"
    for _ in range(5):
        q = model.random(RNG)
        expected = products([q[i] for i in model.q_index], convention)
        direct = dh.forward(TABLE, q, convention, base=BASE, tool=TOOL)
        poses = kinematics(model, q).poses[1:]
        placed = [p.compose(dh.link_frame(link, convention)) for p, link in zip(poses, TABLE)]
        for T, one, other in zip(expected, direct, [*placed, poses[-1]]):
            np.testing.assert_allclose(one.homogeneous(), T, atol=ROUNDING)
            np.testing.assert_allclose(other.homogeneous(), T, atol=10 * ROUNDING)


def test_modified_form_is_the_books():
    """ⁱX_{i−1} = rotz(θ) xlt([a 0 d]) rotx(α) (§4.3)."""
    link = TABLE[0]
    q = 0.7
    X = plucker.rotz(link.theta + q) * plucker.xlt([link.a, 0.0, link.d]) * plucker.rotx(link.alpha)
    assert dh.transform(link, [q], "modified").to_plucker().isclose(X, ROUNDING)


def test_models_keep_the_axis_z_and_one_screw():
    """Kernels are cheapest for joints about z without a screw about the parent's z."""
    for convention in dh.CONVENTIONS:
        arrays = dh.chain(TABLE, convention, armature=1.0).tree.arrays
        axial = [joint.is_axial for joint in JOINTS]
        assert arrays["axial"].tolist() == axial
        assert not arrays["pre"].any()


def test_standard_and_modified_describe_the_same_robot():
    inertias = [Inertia(m, RNG.normal(size=3), 0.1 * m) for m in (1, 2, 3, 1, 2, 1)]
    standard = dh.chain(TABLE, "standard", inertias=inertias, tool=TOOL)
    rows, end = dh.to_modified(TABLE)
    moved = [dh.link_frame(link, "standard").act(inertia) for link, inertia in zip(TABLE, inertias)]
    modified = dh.chain(rows, "modified", inertias=moved, tool=end.compose(TOOL))
    q = standard.random(RNG)
    v, tau = RNG.normal(size=(2, standard.nv))
    np.testing.assert_array_equal(FD(standard, q, v, tau), FD(modified, q, v, tau))


# ---------------------------------------------------------------------- PUMA 560


def puma(**options):
    """Armstrong's and Corke's data, standard convention. Link 1's inertia is not physical."""
    d = (0.67183, 0, 0.15005, 0.4318, 0, 0)
    a = (0, 0.4318, 0.0203, 0, 0, 0)
    alpha = (PI / 2, 0, -PI / 2, PI / 2, -PI / 2, 0)
    mass = (0, 17.4, 4.8, 0.82, 0.34, 0.09)
    com = [
        (0, 0, 0),
        (-0.3638, 0.006, 0.2275),
        (-0.0203, -0.0141, 0.07),
        (0, 0.019, 0),
        (0, 0, 0),
        (0, 0, 0.032),
    ]
    I = [
        (0, 0.35, 0),
        (0.13, 0.524, 0.539),
        (0.066, 0.086, 0.0125),
        (0.0018, 0.0013, 0.0018),
        (0.0003, 0.0004, 0.0003),
        (0.00015, 0.00015, 4e-5),
    ]
    return dh.chain(
        list(zip(a, alpha, d)),
        "standard",
        inertias=[Inertia(*row, check=False) for row in zip(mass, com, I)],
        armature=G**2 * np.array([2e-4, 2e-4, 2e-4, 3.3e-5, 3.3e-5, 3.3e-5]),
        name="PUMA 560",
        **options,
    )


G = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])  # gear ratios
VISCOUS = np.array([0.00148, 0.000817, 0.00138, 7.12e-5, 8.26e-5, 3.67e-5])
QN = np.array([0, PI / 4, -PI, 0, PI / 4, 0])
QZ = np.zeros(6)
QR = np.array([0, PI / 2, -PI / 2, 0, 0, 0])


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (QN, [0, 31.6398803784, 6.035138023, 0, 0.0282528, 0]),
        (QZ, [0, 37.48366665, 0.24892875, 0, 0, 0]),
        (QR, [0, -0.77523525, 0.24892875, 0, 0, 0]),
    ],
    ids=["qn", "qz", "qr"],
)
def test_puma_gravity(q, expected):
    np.testing.assert_allclose(gravity_forces(puma(), q), expected, rtol=0, atol=PRINTED)


def test_puma_inertia_matrix():
    H = crba(puma(), QN)
    diagonal = [3.6593754122, 4.4137419336, 0.9378415752, 0.1925317061, 0.1713484517, 0.1941045057]
    np.testing.assert_allclose(np.diag(H), diagonal, rtol=0, atol=PRINTED)
    off = [H[0, 1], H[0, 2], H[1, 2]]
    np.testing.assert_allclose(off, [-0.404361246, 0.1006136478, 0.350890665], atol=PRINTED)
    H = crba(puma(), QZ)
    diagonal = [3.9611261043, 4.4566220955, 0.9386527304, 0.1924306261, 0.1713484517, 0.1941045057]
    np.testing.assert_allclose(np.diag(H), diagonal, rtol=0, atol=PRINTED)
    np.testing.assert_allclose([H[0, 1], H[0, 2]], [-0.1626648105, -0.1389138105], atol=PRINTED)


def test_puma_inverse_and_forward_dynamics():
    """Motors turn G times as fast as joints: their damping counts G² times."""
    one = np.ones(6)
    torque = [7.7638582549, 47.2822984751, 10.6543633128, 0.6029113461, 0.6331034305, 0.4101043275]
    model = puma(damping=G**2 * VISCOUS)
    np.testing.assert_allclose(ID(model, QN, one, one), torque, rtol=0, atol=PRINTED)
    with_coulomb = np.array(
        [32.4952427549, 60.8669884751, 17.7435949128, 1.4545190261, 1.2991104105, 0.7137808875]
    )
    coulomb = np.array([0.395, 0.126, 0.132, 0.0112, 0.00926, 0.00396])
    np.testing.assert_allclose(
        ID(model, QN, one, one) + np.abs(G) * coulomb, with_coulomb, rtol=0, atol=PRINTED
    )
    acceleration = [
        -0.6619970387,
        -6.9292906973,
        -3.771483542,
        -0.0086542491,
        -0.0368875517,
        1.2611e-6,
    ]
    np.testing.assert_allclose(FD(model, QN, 0 * QN), acceleration, rtol=0, atol=PRINTED)


# ---------------------------------------------------------------------- building and refusing


def test_two_chains_on_one_torso():
    b = ModelBuilder()
    b.add_body("torso", 0, Revolute(), inertia=Inertia(5, I_com=1.0))
    rows = [(0.3,), (0.2, 0, 0, 0, "prismatic")]
    bars = [Inertia(1, (-0.1, 0, 0), 0.01)] * 2
    for side, y in (("left", 0.2), ("right", -0.2)):
        names = [f"{side} {part}" for part in ("arm", "hand", "grip")]
        added = dh.add_chain(
            b,
            rows,
            "standard",
            inertias=bars,
            names=names,
            parent="torso",
            base=Pose(np.eye(3), (0, y, 0.5)),
            tool=Pose.identity(),
        )
        assert added == names
    model = b.build()
    assert [body.parent for body in model.bodies] == [0, 1, 2, 3, 1, 5, 6]
    left = kinematics(model, model.neutral()).poses[model.number("left grip")]
    np.testing.assert_allclose(left.p, [0.5, 0.2, 0.5], atol=ROUNDING)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "at least one link"),
        ([(1, 2, 3, 4, "ball")], {}, "row 1: joint: expected 'revolute'"),
        ([(0,), (1, 2, 3, 4, "helical")], {}, "row 2: joint: .*with its pitch: Helical"),
        ([dict(a=1, beta=2)], {}, "row 1: .*beta"),
        ([(0, 0, 0, 0, Spherical())], {}, "one axis, which Spherical does not"),
        ([(0, 0, 0, 0, Revolute("x"))], {}, "joint is z"),
        ([("long",)], {}, "row 1: a: expected real numbers"),
        ([(float("nan"),)], {}, "a: expected finite numbers"),
        ([(1,)], {"inertias": []}, "inertias: expected 1 for 1 links, received 0"),
        ([(1,)], {"names": ["a", "b"]}, "names: expected 1"),
        ([(1,)], {"inertias": ["heavy"]}, "link 1: expected Inertia"),
        ([(1,)], {"armature": [1, 2]}, "armature: expected one number or 1"),
        ([(1,)], {"convention": "craig"}, "convention: expected one of"),
        ([(1,)], {}, "'link 1' moves freely"),
    ],
)
def test_bad_tables(rows, options, message):
    convention = options.pop("convention", "standard")
    with pytest.raises((ValueError, TypeError), match=re.compile(message, re.DOTALL)):
        dh.chain(rows, convention, **options)


def test_bad_positions():
    with pytest.raises(ValueError, match="q: expected 2 numbers"):
        dh.forward([(1,), (1,)], [0.0], "standard")
