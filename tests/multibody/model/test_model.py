"""Models and their builder: numbering, places, printing, storage, and what is refused."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import multibody as mb
from multibody import FD, ID
from multibody.mechanisms.random import random_tree
from tests.multibody.joint_samples import POOL, SAMPLES

BODY = mb.Inertia(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.15))
ROUNDING = 1e-12


def one(**changes):
    """Model of one body, with some arguments of add_body changed."""
    b = mb.ModelBuilder(name="one")
    b.add_body(
        **{"name": "rod", "parent": 0, "joint": mb.Revolute("y"), "inertia": BODY, **changes}
    )
    return b.build()


def family():
    """A tree whose bodies are added in no particular order."""
    b = mb.ModelBuilder(name="family")
    b.add_body("hand", "arm", mb.Spherical(), (0, 0, -1), BODY)
    b.add_body("leg", "trunk", mb.Fixed(), (0, 0, -2), BODY)
    b.add_body("trunk", 0, mb.Free(), None, BODY)
    b.add_body("foot", "leg", mb.Universal(), (0, 0, -1), BODY, reverse=True)
    b.add_body("arm", "trunk", mb.Revolute("x"), (0, 1, 0), BODY)
    b.add_loop("grip", "hand", "foot", mb.Spherical())
    return b.build()


# --- numbering and places ----------------------------------------------------------------------


def test_bodies_are_numbered_with_parents_first():
    model = family()
    names = [body.name for body in model.bodies]
    assert sorted(names) == ["arm", "foot", "hand", "leg", "trunk"]
    for i, body in enumerate(model.bodies, 1):
        assert body.parent < i
    parents = {body.name: "base" if body.parent == 0 else names[body.parent - 1]
               for body in model.bodies}  # fmt: skip
    assert parents == {"trunk": "base", "arm": "trunk", "leg": "trunk", "hand": "arm",
                       "foot": "leg"}  # fmt: skip
    assert model.parents.tolist() == [body.parent for body in model.bodies]


def test_regular_order_is_kept():
    b = mb.ModelBuilder()
    for name, parent in (("c", 0), ("a", "c"), ("d", 0), ("b", "a")):
        b.add_body(name, parent, mb.Revolute(), None, BODY)
    assert [body.name for body in b.build().bodies] == ["c", "a", "d", "b"]


def test_parents_by_number_are_those_added():
    b = mb.ModelBuilder()
    assert b.add_body("first", 0, mb.Revolute(), None, BODY) == 1
    assert b.add_body("second", 1, mb.Revolute(), None, BODY) == 2
    b.add_body("third", np.int64(1), mb.Revolute(), None, BODY)
    assert b.build().parents.tolist() == [0, 1, 1]


def test_places_of_variables():
    model = family()
    assert (model.nq, model.nv) == (7 + 1 + 0 + 4 + 2, 6 + 1 + 0 + 3 + 2)
    assert len(model.q_names) == model.nq
    assert len(model.v_names) == model.nv
    at = model.q_index[model.number("arm") - 1]
    assert model.q_names[at] == ("arm.angle",)
    at = model.v_index[model.number("arm") - 1]
    assert model.v_names[at] == ("d(arm.angle)",)
    assert model.v_index[model.number("leg") - 1].start == model.v_index[
        model.number("leg") - 1].stop  # fmt: skip
    assert model.number("base") == 0
    assert model.number(3) == 3
    for at in model.quaternion_places:
        assert model.q_names[at].endswith(".w")
    assert len(model.quaternion_places) == 2


def test_positions():
    model = random_tree(12, 1, POOL)
    np.testing.assert_array_equal(model.random(4), model.random(np.random.default_rng(4)))
    assert (model.random(4) != model.random(5)).any()
    q = model.random(0)
    rng = np.random.default_rng(1)
    moved = model.integrate(q, rng.standard_normal(model.nv), 0.1)
    model.check("q", moved)  # still unit quaternions
    u = model.difference(q, moved)
    np.testing.assert_allclose(model.difference(q, q), 0.0, atol=1e-15)
    steps = [body.joint.difference(q[at], moved[at])
             for body, at in zip(model.bodies, model.q_index)]  # fmt: skip
    np.testing.assert_array_equal(u, np.concatenate(steps))
    double = q.copy()
    for at in model.quaternion_places:
        double[at : at + 4] *= 2.0
    np.testing.assert_allclose(model.normalise(double), q, atol=ROUNDING)
    assert model.neutral().shape == (model.nq,)


# --- placements and inertias -------------------------------------------------------------------


def test_placements_in_four_forms():
    R = mb.rotations.Rz(0.4)
    p = np.array([0.3, 0.2, 0.1])
    pose = mb.Pose(R, p)
    by_pose, by_transform = one(placement=pose), one(placement=pose.to_plucker())
    q, v = [0.3], [0.7]
    np.testing.assert_array_equal(FD(by_pose, q, v), FD(by_transform, q, v))
    found = mb.kinematics(by_pose, [0.0]).poses[1]
    assert found.isclose(pose)
    shifted = one(placement=(1, 2, 3))
    np.testing.assert_allclose(mb.kinematics(shifted, [0.0]).poses[1].p, [1, 2, 3])
    np.testing.assert_allclose(mb.kinematics(one(), [0.0]).poses[1].p, 0.0)


def test_inertias_in_three_forms():
    central = mb.CentralInertia.from_rigid(BODY)
    models = [one(), one(inertia=BODY.array), one(inertia=central)]
    expected = models[0].bodies[0].inertia.matrix()
    for model in models:
        np.testing.assert_allclose(model.bodies[0].inertia.matrix(), expected, atol=1e-15)


def test_a_reversed_joint_undoes_the_same_joint():
    """Body on a joint, and a second on the same joint reversed: the second stays where it was."""
    for joint in (mb.Revolute((1, 2, 3)), mb.Helical(0.3, "x"), mb.Planar(), mb.Free(),
                  mb.RackPinion(0.2), mb.AngleSequence("zyx")):  # fmt: skip
        b = mb.ModelBuilder()
        b.add_body("there", 0, joint, (1, 0, 0), BODY)
        b.add_body("back", "there", joint, None, BODY, reverse=True)
        model = b.build()
        q = joint.random(np.random.default_rng(0))
        pose = mb.kinematics(model, np.concatenate([q, q])).poses[2]
        np.testing.assert_allclose(pose.R, np.eye(3), atol=1e-14)
        np.testing.assert_allclose(pose.p, [1, 0, 0], atol=1e-14)


# --- storage and printing ----------------------------------------------------------------------


def test_model_is_a_value():
    model = family()
    assert model == family()
    assert hash(model) == hash(family())
    assert len({model, family()}) == 1
    assert model != one()
    assert (model == "family") is False
    assert one() != one(inertia=mb.Inertia(1.0, (0.1, 0.2, -0.5), (0.1, 0.1, 0.16)))
    assert one() != one(joint=mb.Revolute("x"))
    assert one() != one(reverse=True)
    assert one() != one(placement=(0, 0, 1e-9))
    assert one() != one(damping=0.1)
    assert one(joint=mb.Helical(0.1)) != one(joint=mb.Helical(0.2))


def test_model_is_frozen():
    model = one()
    with pytest.raises(AttributeError):
        model.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        model.gravity[2] = 0.0


@pytest.mark.parametrize("seed", range(3))
def test_pickles_and_copies_compute_the_same(seed):
    model = random_tree(8, seed, POOL)
    q, v = model.random(0), np.ones(model.nv)
    before = FD(model, q, v, t=0.2)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other == model
        assert hash(other) == hash(model)
        np.testing.assert_array_equal(FD(other, q, v, t=0.2), before)


def test_printing():
    text = str(family())
    lines = text.splitlines()
    assert lines[0] == "family: 5 bodies, nq = 14, nv = 12, 1 loop"
    assert lines[1] == "0 base"
    assert sum("reversed" in line for line in lines) == 1
    assert any("├─" in line and "leg: Fixed()" in line for line in lines)
    assert any("└─" in line and "hand: Spherical(), 1 kg" in line for line in lines)
    assert lines[-1] == "loop grip: hand to foot by Spherical()"
    assert repr(family()) == "<Model family: 5 bodies, nv = 12>"


def test_threads_have_their_own_workspaces():
    model = random_tree(10, 2, POOL)
    rng = np.random.default_rng(0)
    states = [(model.random(rng), rng.standard_normal(model.nv)) for _ in range(40)]
    for t in (0.0, 0.1):
        alone = [FD(model, q, v, t=t) for q, v in states]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda s, t=t: FD(model, *s, t=t), states))
        for a, b in zip(alone, together):
            np.testing.assert_array_equal(a, b)


def test_a_model_without_freedom():
    """Everything is welded to the ground: nothing to solve for, but forces can be asked for."""
    model = one(joint=mb.Fixed())
    for empty in ([], np.zeros(0)):
        assert FD(model, empty, empty).shape == (0,)
        assert FD(model, empty, empty, method="crba").shape == (0,)
        assert ID(model, empty, empty, empty).shape == (0,)
        assert mb.crba(model, empty).shape == (0, 0)
        assert mb.energy(model, empty, empty).kinetic == 0.0
    weight = mb.joint_forces(model, [], [], [])[0, 3:]
    np.testing.assert_allclose(weight, [0, 0, 9.81], atol=ROUNDING)


def test_python_law_works_and_its_errors_come_through():
    """A joint that cannot be traced is called back; what it raises is raised."""

    def law(t, q, v):
        if q[0] > 1.0:
            raise OverflowError("too far")
        c, s = np.cos(q[0]), np.sin(q[0])
        E = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        return E, np.zeros(3), np.eye(6)[:, 2:3], None, None

    by_law = one(joint=mb.UserJoint(None, ["angle"], law=law))
    np.testing.assert_allclose(
        FD(by_law, [0.4], [0.3]), FD(one(joint=mb.Revolute()), [0.4], [0.3]), atol=ROUNDING
    )
    with pytest.raises(OverflowError, match="too far"):
        FD(by_law, [2.0], [0.0])
    FD(by_law, [0.4], [0.3])  # and the model is usable again


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inertia": None}, "'rod'.*no inertia"),
        ({"inertia": mb.point_mass(1.0, (0, 1, 0))}, "'rod'.*no inertia"),  # on the axis
        ({"inertia": mb.point_mass(1.0), "joint": mb.Spherical()}, "'rod'.*no inertia"),
        ({"inertia": [1, 0, 0, 0, 1, 0, 1, 0, 0, 9]}, "none exceeds the sum"),
        ({"inertia": [1.0, 2.0]}, "10"),
        ({"inertia": [-1, 0, 0, 0, 1, 0, 1, 0, 0, 1]}, "mass ≥ 0"),
        ({"name": ""}, "non-empty"),
        ({"name": "base"}, "other than 'base'"),
        ({"parent": "bse"}, "did you mean 'base'"),
        ({"parent": "elephant"}, "use 0 for the base"),
        ({"parent": 3}, "no body has number 3"),
        ({"armature": -0.1}, "armature ≥ 0"),
        ({"damping": -0.1}, "damping ≥ 0"),
        ({"damping": (1, 2)}, "one number or 1 as damping"),
        ({"stiffness": 1.0, "joint": mb.Spherical()}, "Spherical"),
        ({"limits": (1.0, -1.0)}, "lower ≤ upper"),
        ({"limits": (1.0,)}, "limits"),
        ({"limits": (-1, 1), "joint": mb.Free()}, "Free"),
    ],
)
def test_bodies_that_cannot_be(change, words):
    with pytest.raises(ValueError, match=words):
        one(**change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joint": "revolute"}, r"write Revolute\(\)"),
        ({"joint": mb.Revolute}, "joint object"),
        ({"joint": 3}, "joint object"),
        ({"placement": "here"}, "Pose, a Plucker"),
        ({"placement": (1, 2)}, "translation"),
        ({"inertia": "heavy"}, r"Inertia\(mass, com, I_com\)"),
        ({"parent": 1.5}, "0 for the base"),
        ({"parent": True}, "0 for the base"),
        ({"armature": "big"}, "armature"),
    ],
)
def test_arguments_of_the_wrong_kind(change, words):
    with pytest.raises(TypeError, match=words):
        one(**change)


def test_massless_bodies_are_named_where_they_matter():
    """A massless body may carry others, but not where a freedom moves nothing at all."""
    b = mb.ModelBuilder()
    b.add_body("yoke", 0, mb.Revolute("x"))
    b.add_body("bob", "yoke", mb.Revolute("y"), None, mb.point_mass(1.0, (0, 0, -1)))
    model = b.build()  # a universal joint with a point mass is fine …
    assert np.isfinite(FD(model, [0.1, 0.2], [0.3, 0.4])).all()
    b = mb.ModelBuilder()
    b.add_body("yoke", 0, mb.Revolute("x"))
    b.add_body("bob", "yoke", mb.Prismatic("y"), None, mb.point_mass(1.0))
    model = b.build()  # … and so is a bob that slides, unless it sits on the yoke's axis
    assert np.isfinite(FD(model, [0.3, 0.1], [0.0, 0.0])).all()
    with pytest.raises(mb.SingularModelError, match="'yoke'"):
        FD(model, [0.3, 0.0], [0.0, 0.0], [1.0, 0.0])
    b = mb.ModelBuilder()
    b.add_body("first", 0, mb.Revolute("x"))
    b.add_body("second", "first", mb.Revolute("x"), None, BODY)
    with pytest.raises(ValueError, match="'first'"):  # two parallel axes, nothing between
        b.build()
    b = mb.ModelBuilder()
    b.add_body("arm", 0, mb.Revolute("x"), None, BODY)
    b.add_body("leaf", "arm", mb.Prismatic("y"))
    b.add_body("tip", "leaf", mb.Fixed())
    with pytest.raises(ValueError, match="'leaf'"):
        b.build()
    assert one(inertia=None, armature=0.1).nv == 1
    assert one(inertia=None, joint=mb.Fixed()).nv == 0


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ({"a": "c", "b": "a", "c": "b"}, "a → c → b → a"),
        ({"a": "a"}, "a → a"),
        ({"a": 0, "b": "c", "c": "b"}, "b → c → b"),
    ],
)
def test_cycles_are_shown(parents, words):
    b = mb.ModelBuilder()
    for name, parent in parents.items():
        b.add_body(name, parent, mb.Revolute(), None, BODY)
    with pytest.raises(ValueError, match=words):
        b.build()


def test_other_mistakes_of_builders():
    b = mb.ModelBuilder()
    with pytest.raises(ValueError, match="at least one body"):
        b.build()
    b.add_body("arm", 0, mb.Revolute(), None, BODY)
    with pytest.raises(ValueError, match="'arm' exists already"):
        b.add_body("arm", 0, mb.Revolute())
    b.add_loop("ring", "arm", "hnd", mb.Revolute())
    with pytest.raises(ValueError, match="'ring' exists already"):
        b.add_loop("ring", "arm", 0, mb.Revolute())
    with pytest.raises(TypeError, match="joint object"):
        b.add_loop("ring2", "arm", 0, "revolute")
    with pytest.raises(ValueError, match="'ring': no body is named 'hnd'"):
        b.build()
    b.add_body("hand", "arm", mb.Revolute(), None, BODY)
    with pytest.raises(ValueError, match="did you mean 'hand'"):
        b.build()
    b = mb.ModelBuilder()
    b.add_body("arm", 0, mb.Revolute(), None, BODY)
    b.add_loop("ring", "arm", "arm", mb.Revolute())
    with pytest.raises(ValueError, match="two different bodies"):
        b.build()
    b = mb.ModelBuilder()
    b.add_body("arm", 0, mb.Revolute(), None, BODY)
    with pytest.raises(ValueError, match="≥ 0"):
        b.add_spring("s", 0, (0, 0, 0), "arm", (0, 0, 0), -1.0)
    b.add_spring("s", 0, (0, 0, 0), "army", (0, 0, 1), 1.0)
    with pytest.raises(ValueError, match="exists already"):
        b.add_spring("s", 0, (0, 0, 0), "arm", (0, 0, 0), 1.0)
    with pytest.raises(ValueError, match="did you mean 'arm'"):
        b.build()
    for gravity in (9.81, (0, 0), (0, 0, np.inf)):
        with pytest.raises(ValueError, match="gravity"):
            mb.ModelBuilder(gravity=gravity)
    with pytest.raises(ValueError, match="parents must come before children"):
        mb.Model(tuple(reversed(family().bodies)))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: FD(m, [0.0, 0.0], [0.0]),
        lambda m: FD(m, np.zeros((1, 1)), [0.0]),
        lambda m: mb.crba(m, []),
        lambda m: m.integrate([0.0, 1.0], [1.0]),
    ],
)
def test_wrong_lengths_of_q(call):
    with pytest.raises(ValueError, match=r"q: expected 1 numbers \(rod.angle\), received shape"):
        call(one())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("v", lambda m: FD(m, [0.0], [0.0, 1.0])),
        ("v", lambda m: mb.energy(m, [0.0], [])),
        ("tau", lambda m: FD(m, [0.0], [0.0], [1.0, 2.0])),
        ("a", lambda m: ID(m, [0.0], [0.0], [1.0, 2.0])),
    ],
)
def test_wrong_lengths_of_rates_and_forces(name, call):
    with pytest.raises(ValueError, match=rf"{name}: expected 1 numbers .*received shape"):
        call(one())


def test_values_that_are_not_numbers():
    model = one()
    for q in ([np.nan], np.array([np.inf])):
        with pytest.raises(ValueError, match="finite"):
            FD(model, q, [0.0])
    with pytest.raises(TypeError, match="q: expected real numbers"):
        FD(model, "a", [0.0])


def test_unnormalised_quaternions_are_refused_with_a_remedy():
    model = family()
    q = model.neutral()
    q[model.quaternion_places[1]] = 1.02
    with pytest.raises(ValueError, match=r"'hand'.*norm 1.02.*model.normalise"):
        model.check("q", q)
    model.check("q", model.normalise(q))


def test_external_forces():
    model = family()
    q, v = model.random(0), np.zeros(model.nv)
    rows = np.zeros((5, 6))
    rows[model.number("foot") - 1] = [1, 2, 3, 4, 5, 6]
    a = FD(model, q, v, None, rows)
    np.testing.assert_array_equal(FD(model, q, v, None, {"foot": [1, 2, 3, 4, 5, 6]}), a)
    assert np.abs(a - FD(model, q, v)).max() > 0.1  # and they are not remembered
    with pytest.raises(ValueError, match="each of 5 bodies"):
        FD(model, q, v, None, np.zeros(6))
    with pytest.raises(ValueError, match="did you mean 'foot'"):
        FD(model, q, v, None, {"fot": np.zeros(6)})
    with pytest.raises(ValueError, match="moves nothing"):
        FD(model, q, v, None, {"base": np.zeros(6)})
    with pytest.raises(ValueError, match=r"f_ext\['foot'\]"):
        FD(model, q, v, None, {"foot": np.zeros(5)})


def test_unknown_bodies_and_methods():
    model = family()
    with pytest.raises(ValueError, match="did you mean 'trunk'"):
        model.number("trnk")
    with pytest.raises(ValueError, match="'trunk'"):
        model.number("zzz")
    with pytest.raises(ValueError, match="from 1 to 5"):
        model.number(6)
    with pytest.raises(ValueError, match="from 1 to 5"):
        model.number(-1)
    for bad in (1.0, True, None):
        with pytest.raises(TypeError, match="name or number"):
            model.number(bad)
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="'aba', 'crba'"):
        FD(model, q, v, method="lu")
    with pytest.raises(ValueError, match="'body', 'base'"):
        mb.body_jacobian(model, q, "hand", coordinates="world")


def test_inertia_and_shapes_refuse_what_no_body_has():
    for make in (
        lambda: mb.Inertia(-1.0),
        lambda: mb.Inertia(1.0, (0, 0, 0), (1, 1, 3)),
        lambda: mb.Inertia(1.0, (0, 0, 0), (-1, 1, 1)),
        lambda: mb.Inertia(1.0, (0, 0, 0), [[1, 2, 0], [0, 1, 0], [0, 0, 1]]),
        lambda: mb.Inertia(-1.0, check=False),
        lambda: mb.box((1, 1, 1), mass=-1.0),
        lambda: mb.rod((0, 0, 0), (0, 0, 0), mass=1.0),
    ):
        with pytest.raises(ValueError, match="expected"):
            make()
    for make in (lambda: mb.sphere(1.0), lambda: mb.sphere(1.0, mass=1.0, density=1.0)):
        with pytest.raises(TypeError, match="either mass or density"):
            make()


def test_shapes_by_integration():
    """Mass, centre and inertia of shapes against sums over many points."""
    n = 40
    grid = (np.arange(n) + 0.5) / n * 2.0 - 1.0
    x, y, z = np.meshgrid(grid, grid, grid, indexing="ij")
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    shapes = [
        (mb.box((2, 2, 2), density=3.0, com=(0.1, 0.2, 0.3)), np.ones(len(points), dtype=bool)),
        (mb.sphere(1.0, density=3.0, com=(0.1, 0.2, 0.3)), (points**2).sum(1) < 1.0),
        (mb.cylinder(1.0, 2.0, density=3.0, com=(0.1, 0.2, 0.3)), (points[:, :2] ** 2).sum(1) < 1),
        (
            mb.cylinder(1.0, 2.0, density=3.0, com=(0.1, 0.2, 0.3), axis=(1, 0, 0)),
            (points[:, 1:] ** 2).sum(1) < 1,
        ),
    ]
    for inertia, inside in shapes:
        p = points[inside] + np.array([0.1, 0.2, 0.3])
        m = 3.0 * (2.0 / n) ** 3
        I = m * ((p**2).sum() * np.eye(3) - p.T @ p)
        grid_error = 1e-2  # cells that the surface cuts, of 40³: less than one in a hundred astray
        assert inertia.mass == pytest.approx(m * len(p), rel=grid_error)
        np.testing.assert_allclose(inertia.moment, m * p.sum(axis=0), rtol=grid_error)
        np.testing.assert_allclose(inertia.rotational, I, atol=grid_error * np.abs(I).max())


def test_samples_work_as_single_joints():
    """One body on each joint of the samples, both ways round."""
    for joints in SAMPLES.values():
        for joint in joints[:2]:
            for reverse in (False, True):
                model = one(joint=joint, reverse=reverse)
                q, v = model.random(0), np.ones(model.nv)
                a = FD(model, q, v, t=0.2)
                np.testing.assert_allclose(ID(model, q, v, a, t=0.2), 0.0, atol=1e-11)
