"""Models written as URDF and MJCF are the same mechanism when read again; losses are listed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import multibody as mb
from multibody import Report, save_model
from multibody.io import dumps, loads
from multibody.io.shared.links import roll_pitch_yaw
from multibody.io.urdf.writer import roll_pitch_yaw_of

#: Parts of the largest entry: lost in digits of angles, quaternions and shifted moments.
SAME = 1e-13


def random_model(rng, kinds, n=8, free=False):
    """A tree of joints that a format knows, with frames, inertias and forces of all sorts."""
    b = mb.ModelBuilder(gravity=(0, 0, -9.81), name='a <robot> & "co"')
    for i in range(n):
        joint = kinds[rng.integers(len(kinds))](rng)
        parent = 0 if i == 0 else int(rng.integers(0, i + 1))
        place = mb.Pose(mb.rotations.exp(rng.normal(size=3)), rng.normal(size=3))
        if i == 0 and free:
            joint, parent, place = mb.Free(), 0, None
        inertia = mb.Inertia(
            rng.uniform(0.5, 3), rng.normal(size=3), np.diag(rng.uniform(1.0, 1.9, 3))
        )
        one = isinstance(joint, mb.Revolute | mb.Prismatic)
        forces = {"damping": rng.uniform(0, 1)} if one else {}
        reverse = bool(one and rng.integers(3) == 0)
        b.add_body(f"body {i}", parent, joint, place, inertia, reverse, **forces)
    return b


def axis(rng):
    return rng.normal(size=3) if rng.integers(2) else np.eye(3)[rng.integers(3)]


TREES = {
    "urdf": [
        lambda rng: mb.Revolute(axis(rng) / 1.0),
        lambda rng: mb.Prismatic(axis(rng)),
        lambda rng: mb.Fixed(),
        lambda rng: mb.Planar(axis(rng)),
        lambda rng: mb.Free(),
    ],
    "mjcf": [
        lambda rng: mb.Revolute(axis(rng)),
        lambda rng: mb.Prismatic(axis(rng)),
        lambda rng: mb.Fixed(),
        lambda rng: mb.Spherical(),
    ],
    "sdf": [
        lambda rng: mb.Revolute(axis(rng)),
        lambda rng: mb.Prismatic(axis(rng)),
        lambda rng: mb.Fixed(),
        lambda rng: mb.Spherical(),
        lambda rng: mb.Helical(rng.normal(), axis(rng)),
        lambda rng: mb.AngleSequence(("xy", "zx", "yz")[rng.integers(3)]),
    ],
}


def assert_same_dynamics(model, again, rng):
    """At random states, whatever the order of the bodies."""
    order = [again.number(body.name) - 1 for body in model.bodies]
    q_at = np.concatenate([np.arange(again.nq)[again.q_index[k]] for k in order])
    v_at = np.concatenate([np.arange(again.nv)[again.v_index[k]] for k in order])
    for _ in range(3):
        q, (v, a) = model.random(rng), rng.normal(size=(2, model.nv))
        states = [np.empty(again.nq), np.empty(again.nv), np.empty(again.nv)]
        for there, here, at in zip(states, (q, v, a), (q_at, v_at, v_at)):
            there[at] = here
        force, theirs = mb.ID(model, q, v, a), mb.ID(again, *states)[v_at]
        np.testing.assert_allclose(theirs, force, rtol=0, atol=SAME * abs(force).max())
        H, other = mb.crba(model, q), mb.crba(again, states[0])[np.ix_(v_at, v_at)]
        np.testing.assert_allclose(other, H, rtol=0, atol=SAME * abs(H).max())


@pytest.mark.parametrize("format", TREES)
@pytest.mark.parametrize("seed", range(12))
def test_trees_come_back_with_the_same_dynamics(format, seed):
    rng = np.random.default_rng(seed)
    builder = random_model(rng, TREES[format], free=format != "urdf" and seed % 2 == 0)
    model = builder.build()
    told = Report()
    text = dumps(model, format, report=told)
    assert not told, told
    again = loads(text, format, report=(read := Report()))
    # Ranges that the format wants for slides are no stops.
    assert {remark.text[:9] for remark in read.remarks} <= {"limits of"}
    assert again.name == model.name
    assert_same_dynamics(model, again, rng)


def four_bar():
    entry = mb.mechanisms.entry("four_bar")
    model = entry.model()
    return model, entry.start(model)


def test_loops_springs_and_gears_come_back_from_mjcf():
    model, (q, v) = four_bar()
    again = loads(dumps(model, "mjcf", report=(told := Report())), report=Report())
    assert not told
    assert len(again.loops) == 2  # two points of the axis
    np.testing.assert_allclose(mb.FD(again, q, v), mb.FD(model, q, v), rtol=1e-10)
    b = mb.ModelBuilder(gravity=(0, -1.5, 2), name="all")
    for k in range(3):
        b.add_body(f"b{k}", 0, mb.Revolute("y"), (k, 0, 0), mb.Inertia(1.0, (0, 0, -1), 0.3),
                   armature=0.1, stiffness=2.0, rest=0.3, damping=0.2)  # fmt: skip
    b.add_gear("teeth", "b1", {"b0": -2.5}, offset=0.1)
    b.add_spring("coil", "b1", (0, 0, -1), "b2", (0.1, 0, -0.5), 40.0, 3.0, rest=0.4)
    b.add_spring("tie", 0, (0, 1, 0), "b2", (0.1, 0, -0.5), 10.0)
    b.add_loop("weld", "b2", 0, mb.Fixed(), (0, 0, -1), (2, 0, -1))
    model = b.build()
    again = loads(dumps(model, "mjcf"), report=(read := Report()))
    assert not read
    rng = np.random.default_rng(1)
    assert_same_dynamics(model, again, rng)
    assert [c.recipe for c in again.constraints] == [c.recipe for c in model.constraints]
    assert [type(c.joint) for c in again.loops] == [mb.Fixed]


def test_gears_and_stops_come_back_from_urdf(tmp_path):
    b = mb.ModelBuilder(name="hand")
    b.add_body("a", 0, mb.Revolute("x"), None, mb.Inertia(1.0, (0, 0, 1), 0.2), limits=(-1, 2))
    b.add_body("b", "a", mb.Prismatic("x"), (0, 0, 1), mb.Inertia(1.0, (0, 0, 1), 0.2), True)
    b.add_gear("follow", "b", {"a": 0.5}, offset=-0.2)
    model = b.build()
    save_model(model, tmp_path / "hand.urdf")
    again = mb.load_model(tmp_path / "hand.urdf", limits=True, report=Report())
    assert again.constraints[0].recipe == {"driven": "b", "ratios": {"a": 0.5}, "offset": -0.2}
    np.testing.assert_array_equal(again.bodies[0].limits, model.bodies[0].limits)
    assert_same_dynamics(model, again, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(6))
def test_loops_gears_springs_and_stops_come_back_from_sdf(seed):
    """A ring that is closed where all positions are zero, under gravity of its own or not."""
    rng = np.random.default_rng(seed)
    earth = (0, 0, -9.81)
    b = mb.ModelBuilder(gravity=earth if seed % 2 else (0.1, -1.5, 2), name="ring")
    inertia = mb.Inertia(1.0, (0.1, 0, -0.3), np.diag([0.3, 0.25, 0.2]))
    places = [mb.Pose(mb.rotations.exp(rng.normal(size=3)), rng.normal(size=3)) for _ in range(4)]
    whole, parent = mb.Pose.identity(), 0
    for k, place in enumerate(places):
        joint = mb.Revolute(axis(rng)) if k % 2 else mb.Helical(0.1, axis(rng))
        limits = {"limits": (-1.0, 2.0)} if k == 1 else {}
        b.add_body(f"b{k}", parent, joint, place, inertia, damping=0.1 * k, stiffness=2.0 * k,
                   rest=0.2, **limits)  # fmt: skip
        whole, parent = whole.compose(place), f"b{k}"
    end = mb.Pose(mb.rotations.exp(rng.normal(size=3)), rng.normal(size=3))
    closing = (mb.Revolute(axis(rng)), mb.Spherical(), mb.Prismatic(axis(rng)))[seed % 3]
    b.add_loop("closing", 0, "b3", closing, whole.compose(end), end)
    b.add_gear("teeth", "b3", {"b1": -2.5}, offset=0.1)
    model = b.build()
    text = dumps(model, "sdf", report=(told := Report()))
    assert not told, told
    again = loads(text, limits=True, report=(read := Report()))
    assert not read, read
    prefix = "" if seed % 2 else "ring::"
    assert [body.name for body in again.bodies] == [prefix + body.name for body in model.bodies]
    np.testing.assert_array_equal(again.bodies[1].limits, model.bodies[1].limits)
    recipe = {"driven": f"{prefix}b3", "ratios": {f"{prefix}b1": -2.5}, "offset": 0.1}
    assert again.constraints[0].recipe == recipe
    q, v, a = model.random(rng), *rng.normal(size=(2, model.nv))
    force = mb.ID(model, q, v, a)
    np.testing.assert_allclose(mb.ID(again, q, v, a), force, rtol=0, atol=SAME * abs(force).max())
    q = np.zeros(model.nq)
    ours, theirs = mb.constraints(model, q, v), mb.constraints(again, q, v)
    assert abs(ours.delta[:-1]).max() < SAME * 10
    assert abs(theirs.delta[:-1]).max() < SAME * 10
    spans = [np.linalg.svd(c.K)[2][np.linalg.matrix_rank(c.K) :] for c in (ours, theirs)]
    assert np.linalg.matrix_rank(np.vstack(spans), tol=1e-10) == len(spans[0]) == len(spans[1])


def test_a_loop_that_sdf_would_close_elsewhere_is_lost():
    told = Report()
    dumps(four_bar()[0], "sdf", report=told)
    assert "open in the neutral position" in str(told)


def test_what_is_lost_is_listed():
    model, _ = four_bar()
    with pytest.warns(UserWarning, match="cannot be expressed"):
        dumps(model, "urdf")
    told = Report()
    dumps(model, "urdf", report=told)
    assert {remark.what for remark in told.remarks} == {"lost"}
    assert "loop" in str(told)
    assert "line 0" not in str(told)
    with pytest.raises(ValueError, match="cannot express"):
        dumps(model, "urdf", policy="strict")
    b = mb.ModelBuilder(gravity=(0, 0, 0))
    b.add_body("a", 0, mb.Revolute("x"), None, mb.Inertia(1.0, (0, 0, 1), 0.2), armature=1.0,
               stiffness=3.0, limits=(-np.inf, 1.0))  # fmt: skip
    b.add_body("world", "a", mb.Fixed(), None, mb.Inertia(1.0, (0, 0, 1), 0.2))
    b.add_contact("floor", 0, mb.HalfSpace(), "a", mb.Ball(0.1))
    b.add_constraint("odd", lambda q: q["a"] - 0.1)
    b.add_solid("a", "ring", (1.0, 0.1))
    told = Report()
    text = dumps(b.build(), "urdf", report=told)
    said = str(told)
    for word in ("armature", "stiffness", "stop", "contact", "constraint 'odd'", "ring", "gravity"):
        assert word in said
    assert "'world_'" in said
    assert loads(text, report=Report()).n_bodies == 2
    told = Report()
    dumps(b.build(), "mjcf", report=told)
    assert "armature" not in str(told)
    assert "contact" in str(told)


@pytest.mark.parametrize(
    ("format", "joint", "place"),
    [
        ("urdf", mb.Spherical(), None),
        ("urdf", mb.Universal(), None),
        ("mjcf", mb.Planar(), None),
        ("mjcf", mb.Free(), (1, 0, 0)),
        ("sdf", mb.Planar(), None),
        ("sdf", mb.AngleSequence("zyx"), None),
    ],
)
def test_joints_that_a_format_lacks_are_refused(format, joint, place):
    b = mb.ModelBuilder()
    b.add_body("odd", 0, joint, place, mb.Inertia(1.0, (0, 0, 0), 0.2))
    with pytest.raises(ValueError, match="'odd'"):
        dumps(b.build(), format)
    with pytest.raises(ValueError, match="can be written"):
        dumps(b.build(), "xacro")
    with pytest.raises(TypeError, match="expected a Model"):
        dumps(b, format)


def test_looks_come_back():
    b = mb.ModelBuilder(name="looks")
    b.add_body("a", 0, mb.Revolute("x"), None, mb.Inertia(1.0, (0, 0, 1), 0.2))
    place = mb.Pose(mb.rotations.exp([0.1, 0.2, 0.3]), [1.0, 2.0, 3.0])
    for shape, size in (("box", (1, 2, 3)), ("sphere", 2.0), ("cylinder", (1, 2)),
                        ("capsule", (0.5, 2))):  # fmt: skip
        b.add_solid("a", shape, size, place, (0.1, 0.2, 0.3, 0.5))
    model = b.build()
    b.add_solid("a", "ellipsoid", (1, 2, 3))
    tetrahedron = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    b.add_solid(
        "a", "mesh", vertices=tetrahedron, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    )
    for format, built, options in (("urdf", model, {}), ("sdf", model, {}),
                                   ("mjcf", b.build(), {"meshes": True})):  # fmt: skip
        again = loads(dumps(built, format), report=Report(), **options)
        assert len(again.solids) == len(built.solids)
        for one, other in zip(again.solids, built.solids):
            assert (one.shape, one.colour) == (other.shape, other.colour)
            np.testing.assert_allclose(one.size, other.size)
            np.testing.assert_allclose(one.placement.E, other.placement.E, atol=1e-15)
            np.testing.assert_allclose(one.placement.r, other.placement.r, atol=1e-15)


def test_angles_lose_no_digits_at_their_singularity():
    rng = np.random.default_rng(0)
    for gap in (0.0, 1e-16, 1e-12, 1e-8, 1e-4, 0.1):
        for sign in (-1, 1):
            R = roll_pitch_yaw(*rng.uniform(-3, 3, 1), sign * (np.pi / 2 - gap), rng.uniform(-3, 3))
            again = roll_pitch_yaw(*roll_pitch_yaw_of(R))
            np.testing.assert_allclose(again, R, atol=1e-15)


def test_mujoco_reads_what_is_written():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    model = random_model(rng, TREES["mjcf"][:3], n=6).build()
    theirs = mujoco.MjModel.from_xml_string(dumps(model, "mjcf"))
    data = mujoco.MjData(theirs)
    q = model.random(rng)
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    H = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(theirs, data, H)
    order = [model.number(theirs.body(int(theirs.jnt_bodyid[k])).name) for k in range(theirs.njnt)]
    moving = [i for i, body in enumerate(model.bodies, 1) if body.joint.nv]
    assert order == moving or sorted(order) == moving
    at = [model.v_index[k - 1].start for k in order]
    data.qpos[:] = q[at]
    mujoco.mj_forward(theirs, data)
    mujoco.mj_fullM(theirs, data, H)
    ours = mb.crba(model, q)[np.ix_(at, at)]
    np.testing.assert_allclose(H, ours, rtol=0, atol=1e-10 * abs(ours).max())


JOINTS_OF_MJCF = {mb.Revolute, mb.Prismatic, mb.Spherical, mb.Free, mb.Fixed}
WRITABLE = [
    name
    for name in mb.mechanisms.names()
    if {type(body.joint) for body in mb.mechanisms.get(name).bodies} <= JOINTS_OF_MJCF
]


@pytest.mark.parametrize("name", WRITABLE)
def test_mujoco_loads_the_catalogue_with_the_same_inertia(name):
    """Rods have none about their axis, which MuJoCo refuses: what is added is not felt, or told."""
    mujoco = pytest.importorskip("mujoco")
    model, told = mb.mechanisms.get(name), Report()
    theirs = mujoco.MjModel.from_xml_string(dumps(model, "mjcf", report=told))
    assert theirs.nv == model.nv
    rng = np.random.default_rng(0)
    if {type(body.joint) for body in model.bodies} & {mb.Free, mb.Spherical}:
        return  # other coordinates
    at = [model.v_index[model.number(theirs.joint(k).name) - 1].start for k in range(theirs.njnt)]
    q, data, H = model.random(rng), mujoco.MjData(theirs), np.zeros((model.nv, model.nv))
    data.qpos[:] = q[at]
    mujoco.mj_forward(theirs, data)
    mujoco.mj_fullM(theirs, data, H)
    ours = mb.crba(model, q)[np.ix_(at, at)]
    felt = sum(float(x) for x in re.findall(r"raised by (\S+)", str(told)))
    np.testing.assert_allclose(H, ours, rtol=0, atol=SAME * abs(ours).max() + felt)
