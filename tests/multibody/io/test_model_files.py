"""Model files: every joint and loop comes back bit for bit; every mistake is told with its line."""

from __future__ import annotations

import json
import pickle
import re
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multibody
from multibody import (
    AngleSequence,
    Driven,
    Fixed,
    Free,
    Inertia,
    ModelBuilder,
    ModelFileError,
    Pose,
    Revolute,
    Spherical,
    UserJoint,
    box,
    cylinder,
    joints,
    load_model,
    point_mass,
    rod,
    save_model,
    sphere,
)
from multibody.algebra.orientation import rotations
from multibody.io import dumps, loads
from multibody.io.own import writer
from multibody.io.own.parts import is_fileable
from multibody.io.shared import source

DOCS = Path(__file__).parents[3] / "docs" / "models.md"
FORMATS = ("toml", "json")
# Rotations computed from angles and from closed forms differ by rounding.
ROUNDING = 1e-15

#: Arguments of joints that cannot be made without; the test below finds out if one is missing.
NEEDED = {
    "helical": {"pitch": 0.1},
    "rack_pinion": {"radius": 0.2},
    "rolling_balls": {"radius": 1 / 3, "ground": 0.7},
    "rolling_disc": {"radius": 1 / 3},
    "rolling_sphere": {"radius": 1 / 3},
}
FILEABLE = [cls for cls in joints.REGISTRY.values() if is_fileable(cls)]


def random_pose(rng):
    return Pose(rotations.exp(rng.normal(size=3)), rng.normal(size=3))


def random_inertia(rng):
    second = rng.uniform(0.1, 1.0, 3)
    R = rotations.exp(rng.normal(size=3))
    I = R @ np.diag(second.sum() - second) @ R.T
    return Inertia(rng.uniform(0.5, 2.0), rng.normal(size=3), (I + I.T) / 2)


def everything(seed):
    """A model with each joint a file can hold, in the tree and as a loop, and all elements."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder(rng.normal(size=3), "all “joints”, \\ and \t\n\x7f 你好")
    previous = "base"
    for k, cls in enumerate(FILEABLE):
        given = dict(NEEDED.get(cls.kind, {}))
        if "axis" in cls.arguments and k % 3:
            given["axis"] = rng.normal(size=3)
        joint = cls(**given)
        n = joint.nv
        forces = {"armature": rng.uniform(0, 1, n), "damping": rng.uniform(0, 1, n)}
        if not joint.rate_is_velocity:
            del forces["armature"]  # would need gyroscopic terms
        if joint.rate_is_velocity and n:
            forces |= {"stiffness": rng.normal(size=n), "rest": rng.normal(size=n)}
            lower = np.where(rng.uniform(size=n) < 0.5, -np.inf, -rng.uniform(size=n))
            forces["limits"] = np.stack([lower, rng.uniform(size=n)], axis=1)
        b.add_body(cls.kind, previous, joint, random_pose(rng), random_inertia(rng),
                   reverse=bool(k % 2), **forces)  # fmt: skip
        b.add_loop(f"loop {k}", cls.kind, previous, joint, random_pose(rng), rng.normal(size=3))
        previous = cls.kind if rng.uniform() < 0.7 else "base"
    b.add_spring("spring", cls.kind, rng.normal(size=3), 0, (0, 0, -0.0), 1 / 3, 0.1, 0.7)
    return b.build()


# ---------------------------------------------------------------------- round trips


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_every_joint_comes_back(format, seed, tmp_path):
    model = everything(seed)
    path = tmp_path / f"model.{format}"
    save_model(model, path)
    again = load_model(path)
    assert again == model
    assert hash(again) == hash(model)
    assert [body.joint for body in again.bodies] == [body.joint for body in model.bodies]
    assert dumps(again, format) == path.read_text(encoding="utf-8")


def test_toml_and_json_hold_the_same_data():
    model = everything(7)
    one, other = tomllib.loads(dumps(model)), json.loads(dumps(model, "json"))
    assert dumps(loads(dumps(model, "json"), "json")) == dumps(model)
    for body in one["bodies"]:  # JSON writes infinity as a string
        if "limits" in body:
            body["limits"] = [[str(x) if np.isinf(x) else x for x in row] for row in body["limits"]]
    assert one == other
    assert "NaN" not in dumps(model, "json")


def test_extreme_numbers_come_back():
    numbers = [1e-300, 1.7976931348623157e308, 0.1 + 0.2, -0.0, 5e-324, 1 / 3]
    b = ModelBuilder(numbers[3:6])
    b.add_body("a", 0, Revolute(), numbers[:3], Inertia(1 / 3, (0.1, -0.0, 0.3), 1 / 7))
    model = b.build()
    for format in FORMATS:
        assert loads(dumps(model, format), format) == model


def test_inertia_that_no_body_has():
    """Published data may break the triangle inequality; the file says that it is on purpose."""
    b = ModelBuilder()
    b.add_body("a", 0, Revolute("y"), inertia=Inertia(1, (0, 0, 0), (0, 0.35, 0), check=False))
    text = dumps(b.build())
    assert "check = false" in text
    assert loads(text) == b.build()
    with pytest.raises(
        ModelFileError, match=r"<text>:\d+: bodies\['a'\].inertia: .*triangle|exceed"
    ):
        loads(text.replace(", check = false", ""))


def test_order_of_bodies_is_kept():
    b = ModelBuilder()
    for name, parent in (("z", 0), ("a", "z"), ("m", 0), ("b", "a")):
        b.add_body(name, parent, Revolute(), inertia=sphere(1.0, mass=1.0))
    assert [x.name for x in loads(dumps(b.build())).bodies] == ["z", "a", "m", "b"]


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda s: s != "base")


@given(st.lists(names, min_size=3, max_size=3, unique=True))
def test_any_name_comes_back(given_names):
    data = {
        "format": 1,
        "name": given_names[0],
        "units": "SI",
        "gravity": [0.0, 0.0, -9.81],
        "bodies": [{"name": given_names[1], "parent": given_names[2], "limits": [[-np.inf, 1.0]]}],
    }
    assert tomllib.loads(writer._toml(data)) == data
    data["bodies"][0]["limits"] = [["-inf", 1.0]]
    assert json.loads(writer._json(data)) == data


def test_functions_cannot_be_written():
    for joint in (
        UserJoint(lambda q: (np.eye(3), np.zeros(3) + q[0]), ["x"]),
        Driven(Revolute(), lambda t: [t]),
    ):
        b = ModelBuilder()
        b.add_body("a", 0, joint, inertia=sphere(1.0, mass=1.0))
        with pytest.raises(ValueError, match=r"body 'a': .* is made from Python functions"):
            dumps(b.build())

    class Mine(Revolute):
        kind = "mine"

    b = ModelBuilder()
    b.add_body("a", 0, Revolute(), inertia=sphere(1.0, mass=1.0))
    b.add_loop("l", 0, "a", Mine())
    with pytest.raises(ValueError, match="loop 'l': Mine is not registered"):
        dumps(b.build())
    with pytest.raises(TypeError, match="expected a Model"):
        dumps("model")


# ---------------------------------------------------------------------- ways to write things


def one_body(**keys):
    body = {"name": "a", "parent": "base", "joint": "revolute", "inertia": {"mass": 1, "I_com": 1}}
    return loads(json.dumps({"bodies": [{**body, **keys}]}), "json").bodies[0]


def test_rotations():
    half = np.sqrt(0.5)
    quarter = rotations.Rz(np.pi / 2)
    for rotation in (
        {"matrix": [[0, -1, 0], [1, 0, 0], [0, 0, 1]]},
        {"quaternion": [half, 0, 0, half]},
        {"axis": "z", "angle": np.pi / 2},
        {"axis": [0, 0, 2], "degrees": 90},
        {"axis": "-z", "degrees": -90},
        {"sequence": "zxz", "angles": [np.pi / 2, 0, 0]},
        {"sequence": "zyx", "degrees": [90, 0, 0]},
    ):
        body = one_body(placement={"translation": [1, 2, 3], "rotation": rotation})
        np.testing.assert_allclose(body.placement.E, quarter.T, rtol=0, atol=ROUNDING)
        assert body.placement.r.tolist() == [1, 2, 3]
    np.testing.assert_allclose(
        one_body(
            placement={"rotation": {"sequence": "zyx", "angles": [0.1, 0.2, 0.3]}}
        ).placement.E.T,
        rotations.Rz(0.1) @ rotations.Ry(0.2) @ rotations.Rx(0.3),
        atol=ROUNDING,
    )
    assert one_body(placement=[1, 2, 3]).placement.r.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"mass": 2, "com": [1, 0, 0], "I_com": [1, 2, 2]}, Inertia(2, (1, 0, 0), (1, 2, 2))),
        ({"mass": 2, "I_com": np.eye(3).tolist()}, Inertia(2, I_com=1.0)),
        ({"parameters": [2, 0, 0, 0, 1, 0, 1, 0, 0, 1]}, Inertia(2, I_com=1.0)),
        ({"shape": "box", "size": [1, 2, 3], "density": 4}, box((1, 2, 3), density=4)),
        (
            {"shape": "cylinder", "radius": 1, "length": 2, "mass": 3, "axis": [1, 0, 0]},
            cylinder(1, 2, mass=3, axis=(1, 0, 0)),
        ),
        (
            {"shape": "rod", "start": [0, 1, 0], "end": [1, 0, 0], "mass": 2},
            rod((0, 1, 0), (1, 0, 0), mass=2),
        ),
        (
            {"shape": "sphere", "radius": 2, "mass": 1, "com": [0, 0, 1]},
            sphere(2, mass=1, com=(0, 0, 1)),
        ),
        ({"shape": "point", "mass": 2, "com": [0, 1, 0]}, point_mass(2, (0, 1, 0))),
    ],
)
def test_inertias(data, expected):
    body = one_body(inertia=data)
    np.testing.assert_array_equal(body.inertia.array, expected.array)


def test_joints_and_elements():
    assert one_body(joint={"kind": "angles", "sequence": "zxz"}).joint == AngleSequence("zxz")
    assert one_body(joint="fixed").joint == Fixed()
    assert one_body(parent=0, joint="free").joint == Free()
    body = one_body(limits=[-1, "inf", 5, 6], damping=3, stiffness=[2], rest=0.5, armature=[0.25])
    assert body.limits.tolist() == [[-1, np.inf, 5, 6]]
    assert (body.damping, body.stiffness, body.rest, body.armature) == ([3], [2], [0.5], [0.25])
    assert one_body(reverse=True).reverse


def test_bodies_connected_by_joints():
    """A graph in a file, as ModelBuilder.add_joint builds it."""
    text = """
    [[bodies]]
    name = "coupler"
    inertia = { mass = 1.0, I_com = 1.0 }
    [[bodies]]
    name = "crank"
    inertia = { mass = 1.0, I_com = 1.0 }
    [[joints]]
    name = "A"
    predecessor = "base"
    successor = "crank"
    joint = "revolute"
    armature = 0.5
    [[joints]]
    name = "B"
    predecessor = "coupler"
    successor = "crank"
    joint = { kind = "revolute" }
    placement_predecessor = [0.5, 0, 0]
    placement_successor = { translation = [1, 0, 0] }
    tree = true
    [[joints]]
    name = "C"
    predecessor = "coupler"
    successor = "base"
    joint = "spherical"
    """
    model = loads(textwrap.dedent(text))
    assert [(b.name, b.reverse, b.armature.tolist()) for b in model.bodies] == [
        ("crank", False, [0.5]),
        ("coupler", True, [0.0]),
    ]
    assert model.loops[0].joint == Spherical()
    assert model.loops[0].placement_predecessor.r.tolist() == [-0.5, 0, 0]
    assert loads(dumps(model)) == model


# ---------------------------------------------------------------------- lines


TOML = textwrap.dedent(
    '''\
    # comment with [brackets] = and "quotes
    name = "a # b" # 2
    gravity = [ # 3
      0, # four, ]
      -9.81,
      0 ]

    [[bodies]] # 8
    name = """multi
    line "" ] = \\""" """
    parent = 'ba"se' # 11
    joint = { kind = "revolute", axis = [
      0, 1,
      0 ] }
    inertia.mass = 1 # 15
    inertia."I_com" = [ 1,
      2, 3]
    [bodies.placement] # 18
    translation = [1, 2, 3]
    [[bodies]] # 20
    name = \'\'\'x
    \'\'\'
    placement = { rotation = { matrix = [
        [1, 0, 0],
        [0, 1, 0], [0, 0, 1] ] } }
    '''
)


def test_lines_of_toml():
    found = source.Source(TOML, "toml", "f")
    expected = {
        ("name",): 2,
        ("gravity",): 3,
        ("gravity", 0): 4,
        ("gravity", 2): 6,
        ("bodies",): 8,
        ("bodies", 0): 8,
        ("bodies", 0, "name"): 9,
        ("bodies", 0, "parent"): 11,
        ("bodies", 0, "joint", "axis"): 12,
        ("bodies", 0, "joint", "axis", 2): 14,
        ("bodies", 0, "inertia", "mass"): 15,
        ("bodies", 0, "inertia", "I_com", 2): 17,
        ("bodies", 0, "placement"): 18,
        ("bodies", 0, "placement", "translation"): 19,
        ("bodies", 1): 20,
        ("bodies", 1, "name"): 21,
        ("bodies", 1, "placement", "rotation", "matrix", 1, 2): 25,
    }
    assert {path: found.line(path) for path in expected} == expected
    assert found.line(("bodies", 1, "nothing", "here")) == 20


def every_path(data, path=()):
    yield path
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data if isinstance(data, list) else ())
    )
    for key, value in items:
        yield from every_path(value, (*path, key))


@pytest.mark.parametrize("format", FORMATS)
def test_every_key_of_a_large_file_has_its_line(format):
    """The line that is noted for a key with a name contains that name."""
    text = dumps(everything(3), format)
    found = source.Source(text, format, "f")
    lines = text.split("\n")
    for path in every_path(found.data):
        assert path in found.lines
        if path and isinstance(path[-1], str):
            assert path[-1] in lines[found.lines[path] - 1]


def test_lines_with_carriage_returns():
    found = source.Source(TOML.replace("\n", "\r\n"), "toml", "f")
    assert found.line(("bodies", 1, "name")) == 21


# ---------------------------------------------------------------------- mistakes

GOOD = """\
name = "arm"
gravity = [0, 0, -9.81]

[[bodies]]
name = "upper"
parent = "base"
joint = { kind = "revolute", axis = "y" }
inertia = { mass = 1.0, com = [0, 0, -0.5], I_com = [0.1, 0.1, 0.01] }
damping = 0.1

[[bodies]]
name = "lower"
parent = "upper"
joint = { kind = "helical", pitch = 0.1 }
placement = { translation = [0, 0, -1], rotation = { axis = "x", angle = 0.5 } }
inertia = { shape = "sphere", radius = 0.1, density = 1000 }
limits = [-1, 1]

[[loops]]
name = "ring"
predecessor = "base"
successor = "lower"
joint = "revolute"

[[springs]]
name = "coil"
body_a = "upper"
body_b = "base"
stiffness = 10
"""


UPPER, LOWER = "bodies['upper']", "bodies['lower']"
ROTATION = LOWER + ".placement.rotation"
MISTAKES = [
    # old text, new text, line, key, message
    ('name = "arm"', 'nmae = "arm"', 1, "nmae", "unknown key; did you mean 'name'"),
    ('name = "arm"', "name = 3", 1, "name", "expected a string that is not empty, received 3"),
    ("[0, 0, -9.81]", "[0, 0]", 2, "gravity", r"expected 3 numbers, received a list of 2"),
    ("[0, 0, -9.81]", '[0, 0, "g"]', 2, "gravity[2]", "expected a number, received the string 'g'"),
    ("[0, 0, -9.81]", "[0, 0, nan]", 2, "gravity[2]", "expected a finite number, received nan"),
    ("[0, 0, -9.81]", "[0, 0, 1e999]", 2, "gravity[2]", "expected a finite number, received inf"),
    ("[0, 0, -9.81]", f"[0, 0, 1{400 * '0'}]", 2, "gravity[2]", "expected a finite number"),
    ("[0, 0, -9.81]", "[0, 0, true]", 2, "gravity[2]", "expected a number, received true"),
    ("[0, 0, -9.81]", "9.81", 2, "gravity", "expected 3 numbers, received 9.81"),
    ("[0, 0, -9.81]", "[0, [1], 2]", 2, "gravity", "rows of equal length"),
    ('parent = "base"', 'parant = "base"', 6, UPPER + ".parant", "did you mean 'parent'"),
    ('parent = "base"', 'parent = "bass"', 6, UPPER + ".parent", "did you mean 'base'"),
    ('parent = "base"', "parent = 1", 6, UPPER + ".parent", "expected the name of a body"),
    ('parent = "base"', "", 4, UPPER, "the key 'parent' is missing"),
    ('parent = "base"', 'parent = "lower"', 4, UPPER, "parents form a cycle"),
    ('"revolute", axis', '"revolut", axis', 7, UPPER + ".joint.kind", "did you mean 'revolute'"),
    ('kind = "revolute"', 'kind = ["revolute"]', 7, UPPER + ".joint.kind", "expected a string"),
    ('kind = "revolute", ', "", 7, UPPER + ".joint", "the key 'kind' is missing"),
    ('axis = "y"', 'axes = "y"', 7, UPPER + ".joint.axes", "did you mean 'axis'"),
    ('axis = "y"', 'axis = "w"', 7, UPPER + ".joint", "axis: expected 'x', 'y', 'z'"),
    ('axis = "y"', "axis = [0, 0, 0]", 7, UPPER + ".joint", "not all zero"),
    ('axis = "y"', "axis = [0, true, 0]", 7, UPPER + ".joint.axis[1]", "expected numbers"),
    ('axis = "y"', "axis = 2024-01-01", 7, UPPER + ".joint.axis", "expected numbers"),
    ('{ kind = "revolute", axis = "y" }', "7", 7, UPPER + ".joint", "expected a table"),
    (
        '{ kind = "revolute", axis = "y" }',
        '{ kind = "user", pose = "f" }',
        7,
        UPPER + ".joint",
        "Python functions",
    ),
    ('{ kind = "revolute", axis = "y" }', '"driven"', 7, UPPER + ".joint", "'joint' is missing"),
    ("mass = 1.0, com", "mas = 1.0, com", 8, UPPER + ".inertia.mas", "did you mean 'mass'"),
    ("mass = 1.0, com", "com", 8, UPPER + ".inertia", "the key 'mass' is missing"),
    ("mass = 1.0, com", "mass = -1.0, com", 8, UPPER + ".inertia", "mass"),
    ("mass = 1.0, com", "density = 1.0, com", 8, UPPER + ".inertia.density", "needs a shape"),
    ("[0.1, 0.1, 0.01]", "[0.1, 0.1, 9]", 8, UPPER + ".inertia", "triangle|exceed"),
    ("damping = 0.1", "damping = -0.1", 4, UPPER, "expected damping ≥ 0"),
    ("damping = 0.1", "damping = [1, 2]", 9, UPPER + ".damping", "one number or 1 numbers"),
    ('name = "lower"', 'name = "upper"', 12, UPPER + ".name", "taken in line 5"),
    ('name = "lower"', 'name = "base"', 11, "bodies['base']", "other than 'base'"),
    ('name = "lower"', "name = 1", 12, "bodies[1].name", "expected a string"),
    (", pitch = 0.1", "", 14, LOWER + ".joint", "the key 'pitch' is missing"),
    ("pitch = 0.1", 'pitch = "steep"', 14, LOWER + ".joint", "pitch: expected real numbers"),
    (
        "translation = [0, 0, -1]",
        "translate = [0]",
        15,
        LOWER + ".placement.translate",
        "did you mean 'translation'",
    ),
    ('axis = "x", angle = 0.5', 'axis = "x"', 15, ROTATION, "either angle in radians or degrees"),
    ('axis = "x", angle = 0.5', "quaternion = [1, 0, 0, 1]", 15, ROTATION, "norm"),
    (
        'axis = "x", angle = 0.5',
        "matrix = [[1, 0, 0], [0, 1, 0], [0, 0, -1]]",
        15,
        ROTATION,
        "reflection",
    ),
    ('axis = "x", angle = 0.5', 'sequence = "zzx", angles = [1, 2, 3]', 15, ROTATION, "sequence"),
    ('axis = "x", angle = 0.5', "angle = 0.5", 15, ROTATION, "expected either matrix"),
    (
        'axis = "x", angle = 0.5',
        'axis = "x", angles = 1',
        15,
        ROTATION + ".angles",
        "did you mean 'angle'",
    ),
    ('shape = "sphere"', 'shape = "spere"', 16, LOWER + ".inertia.shape", "did you mean 'sphere'"),
    ("radius = 0.1, ", "", 16, LOWER + ".inertia", "the key 'radius' is missing"),
    (
        "density = 1000",
        "density = 1000, mass = 2",
        16,
        LOWER + ".inertia",
        "either mass or density",
    ),
    ("limits = [-1, 1]", "limits = [1, -1]", 11, LOWER, "lower ≤ upper"),
    ("limits = [-1, 1]", "limits = [1, 2, 3]", 17, LOWER + ".limits", "rows of 2 numbers"),
    ("limits = [-1, 1]", "reverse = 1", 17, LOWER + ".reverse", "expected true or false"),
    (
        'successor = "lower"',
        'successor = "lowr"',
        22,
        "loops['ring'].successor",
        "did you mean 'lower'",
    ),
    ('successor = "lower"', 'successor = "base"', 19, "loops['ring']", "two different bodies"),
    (
        'joint = "revolute"',
        'joint = "revolt"',
        23,
        "loops['ring'].joint",
        "did you mean 'revolute'",
    ),
    (
        "stiffness = 10",
        "stiffness = -10",
        25,
        "springs['coil']",
        "stiffness, damping and rest length ≥ 0",
    ),
    ("stiffness = 10", "", 25, "springs['coil']", "the key 'stiffness' is missing"),
    ("[[springs]]", "[springs]", 25, "springs", "expected an array of tables, received a table"),
    ("[[springs]]", "[[spring]]", 25, "spring", "did you mean 'springs'"),
    ('name = "arm"', "format = 9", 1, "format", "this version reads format 1, the file has 9"),
    ('name = "arm"', 'units = "mm"', 1, "units", "expected 'SI'"),
    ('name = "arm"', "joints = [3]", 1, "joints[0]", "expected a table of keys, received 3"),
    ('name = "arm"', "name = ", 1, "", "not valid TOML: Invalid value"),
    ("damping = 0.1", "damping = 0.1\ndamping = 2", 10, "", "not valid TOML: Cannot overwrite"),
]


def test_the_good_file_is_good():
    assert loads(GOOD).nv == 2


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"), MISTAKES, ids=[f"{m[3]}: {m[4]}" for m in MISTAKES]
)
def test_mistakes(old, new, line, key, message):
    assert old in GOOD
    with pytest.raises(ModelFileError) as caught:
        loads(GOOD.replace(old, new, 1), name="arm.toml")
    error = caught.value
    assert re.search(message, error.message), error.message
    assert (error.file, error.line, error.key) == ("arm.toml", line, key)
    assert str(error).startswith(f"arm.toml:{line}: ")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line) == (str(error), line)


JSON_GOOD = json.dumps(tomllib.loads(GOOD), indent=1)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ('"parent": "upper"', '"parent": "uper"', "bodies['lower'].parent", "did you mean 'upper'"),
        ('"pitch": 0.1', '"pitch": 0.1, "pitch": 2', "pitch", "the key is there twice"),
        ('"pitch": 0.1', '"pitch": NaN', "bodies['lower'].joint", "finite"),
        ('"pitch": 0.1', '"pitch": 0.1,', "", "not valid JSON"),
        ('"stiffness": 10', '"stifness": 10', "springs['coil'].stifness", "did you mean 'stiff"),
    ],
)
def test_mistakes_in_json(old, new, key, message):
    assert old in JSON_GOOD
    text = JSON_GOOD.replace(old, new, 1)
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        loads(text, "json")
    assert caught.value.key == key
    line = text[: text.index(new)].count("\n") + 1
    # A syntax error is where the parser notices it; a joint's arguments are judged together.
    assert (
        caught.value.line in (line, line + 1) if not key else line - 3 <= caught.value.line <= line
    )


def test_a_massless_body_is_told_with_its_line():
    with pytest.raises(ModelFileError, match="'a' moves freely") as caught:
        loads('[[bodies]]\nname = "a"\nparent = "base"\njoint = "revolute"\n')
    assert caught.value.line == 1
    with pytest.raises(ModelFileError, match="'b' hangs in the air") as caught:
        loads('[[bodies]]\nname = "a"\nparent = "base"\njoint = "fixed"\n[[bodies]]\nname = "b"\n')
    assert caught.value.line == 5


def test_files_that_are_none(tmp_path, monkeypatch):
    def refused(name, content, message):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ModelFileError, match=message) as caught:
            load_model(path)
        assert caught.value.file == str(path)
        return caught.value

    refused("missing.toml", None, "does not exist")
    refused("x" * 5000 + ".toml", None, "cannot be read: File name too long")
    refused("empty.toml", b"", "the file is empty")
    refused("blank.json", b" \n\n", "the file is empty")
    refused("comment.toml", b"# nothing\n", "no bodies")
    assert refused("latin.toml", b'a = 1\nname = "\xe9"', "expected UTF-8 text.*0xe9").line == 2
    refused("list.json", b"[1, 2]", "expected a table of keys, received a list of 2")
    refused("deep.json", b"[" * 100_000 + b"]" * 100_000, "nested too deep")
    refused("deep.toml", b"a = " + b"[" * 100_000 + b"]" * 100_000, "nested too deep")
    (tmp_path / "folder.toml").mkdir()
    refused("folder.toml", None, "is a directory")
    with pytest.raises(ValueError, match=r"ends in one of .toml, .json, .urdf"):
        load_model(tmp_path / "model.yaml")
    with pytest.raises(ValueError, match="format: expected one of"):
        load_model(tmp_path / "model.yaml", format="yaml")
    with pytest.raises(TypeError, match="expected a string"):
        loads(b"")
    monkeypatch.setattr(source, "MAX_BYTES", 10)
    refused("huge.toml", b"#" * 11, "expected at most")


def test_byte_order_mark_and_other_endings(tmp_path):
    path = tmp_path / "arm.txt"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_model(path, format="toml") == loads(GOOD)
    save_model(loads(GOOD), path, format="json")
    assert json.loads(path.read_text(encoding="utf-8"))["name"] == "arm"


# ---------------------------------------------------------------------- documentation


def test_the_documented_file_is_valid():
    """Each TOML block of the page is a model; together they show every key there is."""
    text = DOCS.read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        model = loads(block)
        assert loads(dumps(model)) == model
    for cls in FILEABLE:
        assert f"`{cls.kind}`" in text, cls.kind


def test_public_names():
    assert multibody.io.loads is loads
    assert multibody.load_model is load_model


def test_matrices_with_few_digits_become_rotations():
    rows = rotations.matrix_from_axis_angle([0, 0, 1], 0.4).round(7).tolist()
    text = f"""
[[bodies]]
name = "rod"
parent = "base"
joint = "revolute"
placement = {{ rotation = {{ matrix = {rows} }} }}
inertia = {{ mass = 1.0, I_com = 1.0 }}
"""
    model = loads(text)
    E = model.bodies[0].placement.E
    np.testing.assert_allclose(E @ E.T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(E.T, rows, atol=1e-7)
    assert loads(dumps(model, "json"), "json") == model
