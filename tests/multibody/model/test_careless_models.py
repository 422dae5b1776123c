"""What careless users do to models: refused where it is done, and never computed with in silence.

And force elements: every algorithm that accepts a model with springs, dampers and stops agrees
with `FD` and `ID` on them.
"""

from __future__ import annotations

import copy
import functools
import pickle
from dataclasses import replace

import numpy as np
import pytest

import multibody as mb
from multibody import FD, ID, Body, Model
from multibody.dynamics.book.floating import (
    floating_equation,
    floating_forward_dynamics,
    floating_inverse_dynamics,
)
from multibody.dynamics.book.handles import articulated_bodies, handle_dynamics, subtree_dynamics
from multibody.dynamics.book.oracles import (
    closed_form,
    element_forces,
    luh_walker_paul,
    rnea_base,
)
from multibody.io import ModelFileError, dumps, loads
from multibody.mechanisms.random import random_tree
from multibody.model import Loop, PointSpring
from tests.multibody.joint_samples import STEADY

INERTIA = mb.Inertia(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.15))
HERE = mb.Plucker.identity()

# Solutions with inertia matrices of condition up to some thousand.
ROUNDING = 1e-11


def close(found, expected, scale=0.0, tolerance=ROUNDING):
    size = max(np.abs(expected).max(initial=0.0), scale)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(size, 1e-300))


# --- force elements ----------------------------------------------------------------------------


def with_elements(model, seed):
    """The same tree with a damper, a spring and stops wherever possible, and two point springs."""
    rng = np.random.default_rng(seed)
    bodies = []
    for body in model.bodies:
        n = body.joint.nv
        elements = {"damping": rng.uniform(0.1, 1.0, n)}
        if body.joint.rate_is_velocity and n:
            stops = [(-0.2, 0.2, 30.0, 2.0)] * n  # most positions are beyond
            elements |= {
                "stiffness": rng.uniform(0.5, 2.0, n),
                "rest": rng.uniform(-1.0, 1.0, n),
                "limits": np.array(stops),
            }
        bodies.append(replace(body, **elements))
    last = model.n_bodies
    springs = [PointSpring("up", 0, rng.normal(size=3), last, rng.normal(size=3), 20.0, 3.0, 0.3)]
    if last > 2:
        springs.append(
            PointSpring("across", 2, rng.normal(size=3), last, rng.normal(size=3), 15.0, 0.0, 0.0)
        )
    return Model(tuple(bodies), springs=tuple(springs), gravity=model.gravity)


def state(model, seed):
    rng = np.random.default_rng(100 + seed)
    q, v, tau, a = (
        model.random(rng),
        rng.standard_normal(model.nv),
        rng.standard_normal(model.nv),
        rng.standard_normal(model.nv),
    )
    return q, v, tau, a, rng.standard_normal((model.n_bodies, 6))


@pytest.mark.parametrize("seed", range(5))
def test_inverse_dynamics_in_base_coordinates_has_force_elements(seed):
    model = with_elements(random_tree(3 + seed, seed, STEADY), seed)
    q, v, _, a, f = state(model, seed)
    close(rnea_base(model, q, v, a, f), ID(model, q, v, a, f), 10.0)


@pytest.mark.parametrize("seed", range(5))
def test_handles_feel_force_elements(seed):
    """b^A without a push is the acceleration of the handles that `FD` finds."""
    model = with_elements(random_tree(4 + seed, seed, STEADY), seed)
    q, v, tau, _, f = state(model, seed)
    handles = [model.n_bodies, 2]
    found = handle_dynamics(model, q, handles, v, tau, f)
    moving = mb.kinematics(model, q, v, FD(model, q, v, tau, f))
    close(found.b, np.concatenate([moving.accelerations[k] for k in handles]), 10.0)


@pytest.mark.parametrize("seed", range(4))
def test_articulated_bodies_have_force_elements(seed):
    """On a free base without gravity a₀ = −(I^A)⁻¹ p^A; projection and assembly agree."""
    tree = random_tree(3 + seed, seed, STEADY, root="free", gravity=(0, 0, 0))
    undamped = with_elements(tree, seed).bodies[0]
    root = replace(undamped, damping=np.zeros(6))  # the joint of a cut-off body is not in p^A
    model = with_elements(tree, seed)
    model = Model((root, *model.bodies[1:]), springs=model.springs, gravity=(0, 0, 0))
    q, v, tau, _, f = state(model, seed)
    tau[:6] = 0.0
    for found in (
        articulated_bodies(model, q, v, tau, f)[0],
        subtree_dynamics(model, q, 1, v, tau, f),
    ):
        close(-np.linalg.solve(found.I, found.p), FD(model, q, v, tau, f)[:6], 10.0)


@pytest.mark.parametrize("seed", range(5))
def test_floating_bases_have_force_elements(seed):
    model = with_elements(random_tree(2 + seed, seed, STEADY, root="free"), seed)
    assert model.bodies[0].damping.all()  # the base itself is damped, too
    q, v, tau, _, f = state(model, seed)
    tau[:6] = 0.0
    expected = FD(model, q, v, tau, f)
    for form in ("aba", "crba"):
        close(floating_forward_dynamics(model, q, v, tau[6:], f, form=form).array, expected, 10.0)
    base, joints = floating_inverse_dynamics(model, q, v, expected[6:], f)
    close(base, expected[:6], 10.0)
    close(joints, tau[6:], np.abs(expected).max())
    e = floating_equation(model, q, v, f)
    close(np.concatenate([e.p_c, e.C]), mb.bias_forces(model, q, v, f), 10.0)


def test_three_dimensional_newton_euler_has_force_elements():
    model = with_elements(random_tree(5, 3, "revolute", branching=0.0, reverse=0.0), 3)
    q, v, _, a, _ = state(model, 3)
    close(luh_walker_paul(model, q, v, a), ID(model, q, v, a))


def test_closed_form_has_force_elements():
    bare = random_tree(3, 1, ["revolute", "prismatic", "universal"])
    model = with_elements(bare, 1)
    q, v, _, a, _ = state(model, 1)
    with pytest.raises(
        ValueError, match=r"closed_form: .* a damped stop that body 'body1' touches"
    ):
        closed_form(model, q)  # stops do not pull, so their forces are not linear in v
    q = 0.05 * q  # between the stops
    form = closed_form(model, q)
    close(form.forces(v, a), ID(model, q, v, a), tolerance=1e-8)  # of differences
    close(form.g, mb.gravity_forces(bare, q), tolerance=1e-8)
    damped = 0.5 * (form.D + form.D.T)
    assert np.linalg.eigvalsh(damped)[0] > 0.0  # dampers take energy away


def hanging(stiffness=10.0, damping=0.0, rest=0.0):
    b = mb.ModelBuilder()
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(1.0, mass=1.0))
    b.add_spring("cord", "ball", (0, 0, 0), 0, (0, 0, 0), stiffness, damping, rest)
    return b.build()


def test_springs_of_no_length():
    """Without rest length and damping nothing is undefined where the ends meet."""
    model = hanging()
    tau, forces = element_forces(model, model.neutral(), np.ones(6))
    assert not tau.any()
    assert not forces.any()
    close(rnea_base(model, model.neutral(), np.zeros(6), np.zeros(6))[3:], [0, 0, 9.81])
    for constants in ({"damping": 1.0}, {"rest": 0.5}):
        model = hanging(**constants)
        with pytest.raises(ValueError, match=r"'cord'.*ends meet.*start elsewhere"):
            element_forces(model, model.neutral(), np.zeros(6))


# --- one vector, not several -------------------------------------------------------------------


def pendulum():
    return mb.mechanisms.double_pendulum()


BATCHES = [np.zeros((2, 3)), np.eye(3), np.zeros((1, 3)), np.zeros(2), 1.0]

ONE_VECTOR = {
    "point_acceleration": lambda x: mb.point_acceleration(
        pendulum(), [0.1, 0.2], [1.0, 2.0], body=1, point=x
    ),
    "point_jacobian": lambda x: mb.point_jacobian(pendulum(), [0.1, 0.2], 1, x),
    "operational_space_inertia": lambda x: mb.operational_space_inertia(
        pendulum(), [0.1, 0.2], 1, x
    ),
    "momentum": lambda x: mb.momentum(pendulum(), [0.1, 0.2], [1.0, 2.0], about=x),
    "gravity": lambda x: mb.ModelBuilder(gravity=x),
    "Model": lambda x: Model(pendulum().bodies, gravity=x),
    "rod start": lambda x: mb.rod(x, (1, 2, 3), mass=1.0),
    "rod end": lambda x: mb.rod((1, 2, 3), x, mass=1.0),
    "box": lambda x: mb.box(x, mass=1.0),
    "point_mass": lambda x: mb.point_mass(1.0, x),
    "cylinder": lambda x: mb.cylinder(1.0, 1.0, mass=1.0, axis=x),
    "com": lambda x: mb.Inertia(1.0, x, 1.0),
    "com unchecked": lambda x: mb.Inertia(1.0, x, 1.0, check=False),
    "mcI": lambda x: mb.mcI(1.0, x, np.eye(3)),
    "RigidInertia": lambda x: mb.RigidInertia(1.0, x, np.eye(3)),
    "CentralInertia": lambda x: mb.CentralInertia.checked(1.0, x, np.eye(3)),
    "axis": lambda x: mb.Revolute(x),
    "spring": lambda x: mb.ModelBuilder().add_spring("s", "a", x, 0, (0, 0, 0), 1.0),
    "spring's other end": lambda x: mb.ModelBuilder().add_spring("s", "a", (0, 0, 0), 0, x, 1.0),
    "PointSpring": lambda x: Model(
        pendulum().bodies, springs=(PointSpring("s", 0, x, 1, np.zeros(3), 1.0, 0.0, 0.0),)
    ),
}


@pytest.mark.parametrize("where", ONE_VECTOR)
def test_several_vectors_where_one_is_meant(where):
    for value in BATCHES:
        with pytest.raises(ValueError, match=r"expected (3 numbers|a vector).*(received)"):
            ONE_VECTOR[where](value)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: mb.RigidInertia(1.0, (0, 0, 0), x),
        lambda x: mb.mcI(1.0, (0, 0, 0), x),
        lambda x: mb.InverseInertia(np.stack([np.eye(6)] * 2)),
        lambda x: mb.RigidInertia.from_matrix(np.stack([np.eye(6)] * 2)),
        lambda x: mb.ArticulatedInertia(np.eye(3), x, np.eye(3)),
    ],
)
def test_several_matrices_where_one_is_meant(make):
    with pytest.raises(ValueError, match=r"expected an array of shape \(., .\).*one at a time"):
        make(np.stack([np.eye(3)] * 2))
    with pytest.raises(ValueError, match="expected 10 numbers"):
        mb.RigidInertia.from_parameters(np.ones((2, 10)))


def test_several_points_where_several_are_meant():
    model, q = pendulum(), [0.1, 0.2]
    points = np.arange(6.0).reshape(2, 3)
    found = mb.point_position(model, q, 2, points)
    np.testing.assert_array_equal(found, [mb.point_position(model, q, 2, p) for p in points])


# --- poses that are no rotations ---------------------------------------------------------------


def test_driven_to_what_is_no_rotation():
    with pytest.raises(ValueError, match=r"unit quaternion.*norm 2"):
        mb.Driven(mb.Spherical(), lambda t: [2.0, 0 * t, 0, 0])
    with pytest.raises(ValueError, match="unit quaternion"):
        mb.Spherical().motion([2.0, 0, 0, 0])
    with pytest.raises(ValueError, match="unit quaternion"):
        mb.Free().integrate([1.0, 1, 0, 0, 0, 0, 0], np.zeros(6))
    growing = mb.Driven(mb.Spherical(), lambda t: [1.0 + t, 0, 0, 0])  # a rotation at t = 0 only
    b = mb.ModelBuilder()
    with pytest.raises(ValueError, match=r"gimbal: .*no rotation at t = 0.3.*unit quaternions"):
        b.add_body("gimbal", 0, growing, inertia=INERTIA)
    with pytest.raises(ValueError, match="no rotation"):
        Model((Body("gimbal", 0, growing, HERE, INERTIA),))
    turning = mb.Driven(mb.Spherical(), lambda t: [np.cos(t), 0, 0, np.sin(t)])
    b.add_body("gimbal", 0, turning, inertia=INERTIA)
    b.build()


def test_a_little_off_the_sphere_is_brought_back():
    q = np.array([1.0005, 0.0, 0.0, 0.0])
    assert mb.Spherical().position_rate(q, [1.0, 0, 0])[1] == 0.5


# --- identity ----------------------------------------------------------------------------------


def first_law(t, q, v):
    return np.eye(3), np.array([0.0, 0.0, q[0]]), np.eye(6)[:, 5:6], None, None


def second_law(t, q, v):
    return np.eye(3), np.array([q[0], 0.0, 0.0]), np.eye(6)[:, 3:4], None, None


def along(scale, q):
    return np.eye(3), np.array([scale * q[0], 0.0, 0.0])


def carriage(joint):
    b = mb.ModelBuilder()
    b.add_body("cart", 0, joint, inertia=INERTIA)
    return b.build()


def test_models_differ_if_the_functions_of_their_joints_do():
    first = carriage(mb.UserJoint(None, ["x"], law=first_law))
    second = carriage(mb.UserJoint(None, ["x"], law=second_law))
    assert (FD(first, [0.0], [0.0]) != FD(second, [0.0], [0.0])).all()
    assert first != second
    assert first == carriage(mb.UserJoint(None, ["x"], law=first_law))
    assert hash(first) == hash(carriage(mb.UserJoint(None, ["x"], law=first_law)))
    named = carriage(mb.UserJoint(None, ["y"], law=first_law))
    assert first != named
    # Also where the joint with the function is inside another.
    moved = [
        carriage(mb.Driven(mb.UserJoint(None, ["x"], law=law), np.sin))
        for law in (first_law, second_law)
    ]
    assert moved[0] != moved[1]


def test_copies_are_equal():
    """Functions stay what they are in copies; a partial application is made again, equal."""
    pose = functools.partial(along, 2.0)
    for joint in (
        mb.UserJoint(None, ["x"], law=first_law),
        mb.UserJoint(pose, ["x"]),
        mb.Driven(mb.Prismatic(), np.sin),
    ):
        model = carriage(joint)
        for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert other == model
            assert hash(other) == hash(model)
    half = carriage(mb.UserJoint(functools.partial(along, 0.5), ["x"]))
    assert half != carriage(mb.UserJoint(pose, ["x"]))


# --- models made without a builder -------------------------------------------------------------


def single(**changes):
    given = {"name": "a", "parent": 0, "joint": mb.Revolute(), "placement": HERE,
             "inertia": INERTIA}  # fmt: skip
    return Model((Body(**{**given, **changes}),))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"damping": np.array([1.0, 2.0])}, r"one number or 1 as damping.*\(2,\)"),
        ({"damping": -1.0}, "damping ≥ 0"),
        ({"armature": np.array([np.nan])}, "armature: expected finite"),
        ({"stiffness": np.ones(3), "joint": mb.Spherical()}, "Spherical"),
        ({"limits": np.array([[1.0, -1.0, 1.0, 1.0]])}, "lower ≤ upper"),
        ({"limits": np.array([[-1.0, 1.0]]), "joint": mb.Free()}, "Free"),
        ({"inertia": None}, "no inertia"),
        ({"inertia": [1.0, 2.0]}, "10 numbers"),
        ({"name": ""}, "non-empty"),
        ({"name": "base"}, "other than 'base'"),
        ({"parent": 1}, "parents must come before children"),
        ({"parent": 7}, "0 to 1, received 7"),
        ({"parent": "a"}, "0 to 1, received 'a'"),
    ],
)
def test_bodies_that_cannot_be(change, words):
    with pytest.raises(ValueError, match=words):
        single(**change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joint": "revolute"}, r"write Revolute\(\)"),
        ({"placement": "here"}, "Pose, a Plucker"),
        ({"inertia": "heavy"}, r"Inertia\(mass, com, I_com\)"),
        ({"damping": "much"}, "a: damping: expected real numbers"),
    ],
)
def test_arguments_of_the_wrong_kind(change, words):
    with pytest.raises(TypeError, match=words):
        single(**change)
    with pytest.raises(TypeError, match="expected Body objects"):
        Model(("a",))


def test_numbers_stand_for_arrays():
    model = single(damping=0.5, armature=[0.25], limits=(-1, 1))
    np.testing.assert_array_equal(model.bodies[0].damping, [0.5])
    np.testing.assert_array_equal(model.bodies[0].armature, [0.25])
    np.testing.assert_array_equal(model.bodies[0].limits, [[-1, 1, 1e4, 1e2]])
    b = mb.ModelBuilder()
    b.add_body("a", 0, mb.Revolute(), None, INERTIA, damping=0.5, armature=0.25, limits=(-1, 1))
    assert model == b.build()
    # np.int64 numbers bodies as int does
    assert single(parent=np.int64(0)) == single()


def test_names_must_differ():
    one, other = (Body("a", k, mb.Revolute(), HERE, INERTIA) for k in (0, 1))
    with pytest.raises(ValueError, match="'a' exists already"):
        Model((one, other))
    two = replace(other, name="b")
    loops = (Loop("l", 0, 2, mb.Spherical(), HERE, HERE),) * 2
    with pytest.raises(ValueError, match="loop 'l' exists already"):
        Model((one, two), loops)
    springs = (PointSpring("s", 0, np.ones(3), 2, np.ones(3), 1.0, 0.0, 0.0),) * 2
    with pytest.raises(ValueError, match="spring 's' exists already"):
        Model((one, two), springs=springs)


@pytest.mark.parametrize(
    ("spring", "words"),
    [
        (PointSpring("s", 0, np.ones(3), 3, np.ones(3), 1.0, 0.0, 0.0), "'s'.*0 to 1, received 3"),
        (PointSpring("s", 1, np.ones(3), 1, np.zeros(3), 1.0, 0.0, 0.0), "'s'.*two different"),
        (PointSpring("s", 0, np.ones(3), 1, np.ones(3), -1.0, 0.0, 0.0), "s: .*≥ 0"),
        (PointSpring("s", 0, np.ones(3), 1, np.ones(3), np.nan, 0.0, 0.0), "s: stiffness.*finite"),
    ],
)
def test_springs_that_cannot_be(spring, words):
    with pytest.raises(ValueError, match=words):
        Model(single().bodies, springs=(spring,))


def test_loops_that_cannot_be():
    bodies = single().bodies
    with pytest.raises(ValueError, match=r"'l'.*two different bodies"):
        Model(bodies, (Loop("l", 1, 1, mb.Revolute(), HERE, HERE),))
    with pytest.raises(ValueError, match=r"'l'.*0 to 1"):
        Model(bodies, (Loop("l", 0, 2, mb.Revolute(), HERE, HERE),))
    with pytest.raises(TypeError, match="joint object"):
        Model(bodies, (Loop("l", 0, 1, "revolute", HERE, HERE),))


# --- frozen ------------------------------------------------------------------------------------


def furnished():
    b = mb.ModelBuilder()
    b.add_body("a", 0, mb.Revolute("y"), (0, 0, 1), INERTIA, armature=0.1, damping=0.2,
               stiffness=0.3, rest=0.4, limits=(-1, 1))  # fmt: skip
    b.add_body("b", "a", mb.Revolute("y"), (0, 0, 1), INERTIA)
    b.add_loop("l", 0, "b", mb.Spherical(), (0, 0, 2))
    b.add_spring("s", 0, (1, 0, 0), "b", (0, 1, 0), 1.0)
    return b.build()


def arrays_of(model):
    a, loop, spring = model.bodies[0], model.loops[0], model.springs[0]
    return {
        "gravity": model.gravity,
        "inertia": a.inertia.array,
        "placement.E": a.placement.E,
        "placement.r": a.placement.r,
        "axis": a.joint.axis,
        **{key: getattr(a, key) for key in ("armature", "damping", "stiffness", "rest", "limits")},
        "X_P": loop.placement_predecessor.r,
        "X_S": loop.placement_successor.E,
        "point_a": spring.point_a,
        "point_b": spring.point_b,
    }


@pytest.mark.parametrize("how", ["built", "pickled", "copied"])
def test_no_number_of_a_model_can_be_changed(how):
    """Equality, hash and accelerations are computed once: a change would not be noticed."""
    model = furnished()
    if how == "pickled":
        model = pickle.loads(pickle.dumps(model))
    elif how == "copied":
        model = copy.deepcopy(model)
    for name, array in arrays_of(model).items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 5.0
        assert array.size, name


def test_the_users_own_arrays_stay_writable():
    damping, point, gravity = np.array([0.5]), np.ones(3), np.array([0.0, 0.0, -9.81])
    X = mb.Plucker(np.eye(3), (1, 2, 3))
    I = mb.Inertia(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.15))
    b = mb.ModelBuilder(gravity)
    b.add_body("a", 0, mb.Revolute(), X, I, damping=damping)
    b.add_spring("s", 0, point, "a", point, 1.0)
    built = b.build()
    spring = PointSpring("s", 0, point, 1, point, 1.0, 0.0, 0.0)
    direct = Model((Body("a", 0, mb.Revolute(), X, I, damping=damping),), (), (spring,), gravity)
    assert built == direct
    before = FD(built, [0.1], [0.2])
    for array in (damping, point, gravity, X.r, X.E, I.array):
        array[...] = 7.0
    for model in (built, direct):
        np.testing.assert_array_equal(FD(model, [0.1], [0.2]), before)
        np.testing.assert_array_equal(model.bodies[0].damping, [0.5])
        np.testing.assert_array_equal(model.springs[0].point_a, 1.0)


# --- smaller things ----------------------------------------------------------------------------


def test_whole_turns_in_the_plane():
    turn = 2 * np.pi
    np.testing.assert_allclose(
        mb.Planar().difference([0, 1, 2], [turn, 1, 2]), [turn, 0, 0], atol=1e-12
    )
    # What rounding leaves of a turn about a far centre is no shift.
    q = np.array([0.3, 1e3, -2e3])
    there = mb.Planar().integrate(q, [-2 * turn, 0.7, 0.2])
    np.testing.assert_allclose(mb.Planar().difference(q, there), [-2 * turn, 0, 0], atol=1e-9)
    with pytest.raises(ValueError, match="whole turns"):
        mb.Planar().difference([0, 0, 0], [turn, 1, 0])


def test_momentum_about_the_centre_of_nothing():
    b = mb.ModelBuilder()
    b.add_body("rotor", 0, mb.Revolute(), armature=0.1)
    model = b.build()
    for call in (
        lambda: mb.momentum(model, [0.0], [1.0], about="com"),
        lambda: mb.centre_of_mass(model, [0.0]),
    ):
        with pytest.raises(ValueError, match="no mass"):
            call()
    np.testing.assert_array_equal(mb.momentum(model, [0.0], [1.0]), 0.0)


@pytest.mark.parametrize("axis", ["+-y", "--x", "-", "", "xy", "- x"])
def test_axes_that_are_none(axis):
    with pytest.raises(ValueError, match="'x', 'y', 'z'"):
        mb.Revolute(axis)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-3, 1.0, 1e200, 1e308])
def test_axes_of_any_length(scale):
    found = mb.Revolute((scale, scale, 0)).axis
    np.testing.assert_allclose(found, [np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-15)
    same = mb.cylinder(1.0, 3.0, mass=2.0, axis=(scale, scale, 0)).array
    np.testing.assert_allclose(same, mb.cylinder(1.0, 3.0, mass=2.0, axis=(1, 1, 0)).array)


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        ("x", TypeError, "rod: limits: expected real numbers.*'x'"),
        ((0, 1, np.inf, 2), ValueError, r"rod: expected finite stiffness and damping.*inf"),
        ((0, 1, -1, 2), ValueError, "≥ 0 of the stops"),
        ((0, np.nan), ValueError, "rod: expected limits"),
        ((1, 2, 3), ValueError, r"\(1, 2, 3\)"),
        ((np.inf, np.inf), ValueError, "lower ≤ upper"),
        ({"lower": 1}, TypeError, "real numbers"),
    ],
)
def test_limits_that_cannot_be(limits, kind, words):
    with pytest.raises(kind, match=words):
        mb.ModelBuilder().add_body("rod", 0, mb.Revolute(), None, INERTIA, limits=limits)


def test_springs_that_hold_a_body_by_itself():
    b = mb.ModelBuilder()
    b.add_body("a", 0, mb.Revolute(), None, INERTIA)
    for ends in (("a", "a"), (1, "a"), (0, "base")):
        with pytest.raises(ValueError, match=r"spring 's': expected two different bodies"):
            b.add_spring("s", ends[0], (0, 0, 0), ends[1], (0, 0, 1), 1.0)
    with pytest.raises(ValueError, match="non-empty string"):
        b.add_spring("", 0, (0, 0, 0), "a", (0, 0, 1), 1.0)


def test_negative_inertias_are_called_by_their_name():
    b = mb.ModelBuilder()
    b.add_body("arm", 0, mb.Revolute("y"))
    wrong = mb.Inertia(1.0, (0, 0, 0), (-1, -1, -1), check=False)
    b.add_body("disc", "arm", mb.Fixed(), None, wrong)
    with pytest.raises(ValueError, match=r"'arm'.*'disc' has a negative eigenvalue.*check=False"):
        b.build()


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: mb.cylinder("1", 1.0, mass=1.0), TypeError, "cylinder: radius.*real numbers"),
        (lambda: mb.cylinder(np.inf, 1.0, mass=1.0), ValueError, "cylinder: radius.*finite"),
        (lambda: mb.cylinder(1.0, np.nan, mass=1.0), ValueError, "cylinder: length.*finite"),
        (lambda: mb.sphere(np.inf, density=1.0), ValueError, "sphere: radius.*finite"),
        (lambda: mb.sphere([1.0, 2.0], mass=1.0), ValueError, "sphere: radius: expected one"),
        (lambda: mb.sphere(-1.0, mass=1.0), ValueError, "sphere: expected a positive radius"),
        (lambda: mb.sphere(1.0, density="heavy"), TypeError, "sphere: density.*real numbers"),
        (lambda: mb.sphere(1.0, density=-1.0), ValueError, "a positive density, received -1"),
        (lambda: mb.box((1, 0, 1), mass=1.0), ValueError, "box: expected a positive size"),
        (lambda: mb.rod((1, 1, 1), (1, 1, 1), density=1.0), ValueError, "the same twice"),
    ],
)
def test_shapes_that_cannot_be(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_text_without_a_format():
    model = mb.mechanisms.double_pendulum()
    for format in ("json", "toml"):
        assert loads(dumps(model, format)) == model
        assert loads("\n " + dumps(model, format)) == model
    with pytest.raises(ModelFileError, match="not valid JSON"):
        loads('  {"bodies": [,]}')
    with pytest.raises(ModelFileError, match="not valid TOML"):
        loads("bodies = [,]")
    with pytest.raises(ModelFileError, match="not valid TOML"):
        loads('{"bodies": []}', "toml")


def test_files_say_how_to_pickle():
    model = carriage(mb.UserJoint(lambda q: (np.eye(3), np.array([q[0], 0.0, 0.0])), ["x"]))
    with pytest.raises(ValueError, match="defined at the top of a module"):
        dumps(model)
