"""Models of MuJoCo: the same inertia matrix and forces as MuJoCo itself, and clear refusals."""

import numpy as np
import pytest

import multibody as mb
from multibody.algebra.orientation import quaternions
from multibody.io import ModelFileError, Report, dumps, loads

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file where it runs."""
    monkeypatch.chdir(tmp_path)


CLOSE = 1e-13  # of the largest entry: sums of some dozens of products

EVERYTHING = """
<mujoco model="everything">
  <compiler angle="degree" eulerseq="zYx" {compiler}/>
  <option gravity="0.3 -0.2 -9.7"/>
  <default>
    <joint damping="0.1" armature="0.02"/>
    <geom density="800"/>
    <default class="leg">
      <geom type="capsule" size="0.05 0.2"/>
      <joint axis="0 1 0" range="-40 70"/>
      <default class="foot"><geom density="2000"/></default>
    </default>
  </default>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 0.1"/>
    <body name="torso" pos="0.1 0.2 1.3" euler="20 -30 40">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.3" pos="0.02 0 0.1" axisangle="1 2 3 50"/>
      <geom type="ellipsoid" size="0.1 0.2 0.15" zaxis="1 0 1" mass="2.5"/>
      <body name="thigh" pos="0 0.1 -0.3" xyaxes="1 0.2 0 0 1 0.3" childclass="leg">
        <joint name="hip x" axis="1 0 0.1" pos="0.01 0.02 0.03"/>
        <joint name="hip y" pos="0.01 0 0.05" ref="15" stiffness="3" springref="25"/>
        <joint name="slip" type="slide" axis="0 0 1" ref="0.02" damping="0.4"/>
        <geom pos="0 0 -0.2"/>
        <frame pos="0 0 -0.4" euler="5 10 15">
          <geom type="cylinder" fromto="0 0 0 0.1 0.1 -0.2" size="0.03"/>
          <body name="foot" pos="0 0 -0.1">
            <joint name="ankle" type="ball" pos="0 0 0.02" armature="0" range="0 90"/>
            <geom class="foot" fromto="-0.1 0 0 0.2 0 0" size="0.04"/>
            <geom type="sphere" size="0.05" pos="0.2 0 0"/>
          </body>
        </frame>
      </body>
      <body name="box" pos="0.3 0 0">
        <inertial pos="0.1 0 0" mass="1.5" fullinertia="0.1 0.12 0.14 0.01 0.02 -0.01"/>
        <joint name="lid" axis="0 0 2"/>
        <geom type="mesh" mesh="nowhere" contype="0" mass="0"/>
        <body name="welded" pos="0 0 0.1">
          <inertial pos="0 0.1 0" quat="1 2 3 4" mass="0.5" diaginertia="0.1 0.12 0.14"/>
        </body>
      </body>
    </body>
  </worldbody>
  <keyframe><key name="home" qpos="1 2 3 1 0 0 0 0.1 0.2 0.3 0.5 0.5 0.5 0.5 0.6"/></keyframe>
</mujoco>
"""


def theirs_of(text):
    asset = '<asset><mesh name="nowhere" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    return mujoco.MjModel.from_xml_string(text.replace("<worldbody>", asset + "<worldbody>", 1))


def at_random(theirs, rng):
    """MuJoCo's positions, ours, and the matrix from our velocities to MuJoCo's."""
    qpos, q = np.zeros(theirs.nq), np.zeros(theirs.nq)
    T = np.eye(theirs.nv)
    for j, kind in enumerate(theirs.jnt_type):
        a, v = theirs.jnt_qposadr[j], theirs.jnt_dofadr[j]
        turn = quaternions.normalise(rng.standard_normal(4))
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            p = rng.standard_normal(3)
            qpos[a : a + 7], q[a : a + 7] = [*p, *turn], [*turn, *p]
            T[v : v + 6, v : v + 6] = 0.0
            T[v : v + 3, v + 3 : v + 6] = quaternions.to_matrix(turn)
            T[v + 3 : v + 6, v : v + 3] = np.eye(3)
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            qpos[a : a + 4] = q[a : a + 4] = turn
        else:
            q[a] = rng.standard_normal()
            qpos[a] = q[a] + theirs.qpos0[a]
    return qpos, q, T


def inertia_matrix(theirs, data):
    H = np.zeros((theirs.nv, theirs.nv))
    for k, unit in enumerate(np.eye(theirs.nv)):
        mujoco.mj_mulM(theirs, data, H[k], unit)
    return H


@pytest.mark.parametrize("compiler", ["", 'settotalmass="7"', 'boundmass="3" boundinertia="0.05"'])
def test_dynamics_are_those_of_mujoco(compiler):
    text = EVERYTHING.replace("{compiler}", compiler)
    report = Report()
    ours, theirs = loads(text, report=report), theirs_of(text)
    assert (ours.nq, ours.nv) == (theirs.nq, theirs.nv)
    rng = np.random.default_rng(3)
    for _ in range(5):
        qpos, q, T = at_random(theirs, rng)
        data = mujoco.MjData(theirs)
        data.qpos = qpos
        mujoco.mj_forward(theirs, data)
        H = T.T @ inertia_matrix(theirs, data) @ T
        assert abs(mb.crba(ours, q) - H).max() < CLOSE * abs(H).max()
        gravity = T.T @ data.qfrc_bias
        assert abs(mb.gravity_forces(ours, q) - gravity).max() < CLOSE * abs(gravity).max()
        passive = T.T @ data.qfrc_spring
        found = mb.ID(ours, q, np.zeros(ours.nv), np.zeros(ours.nv)) - gravity
        assert abs(found + passive).max() < 1e-12 * max(1.0, abs(passive).max())


def test_bias_forces_of_a_tree_on_the_ground():
    text = EVERYTHING.replace("{compiler}", "").replace("<freejoint/>", '<joint axis="1 1 0"/>')
    text = text[: text.index("<keyframe>")] + "</mujoco>"
    ours, theirs = loads(text, report=Report()), theirs_of(text)
    rng = np.random.default_rng(5)
    for _ in range(5):
        qpos, q, _ = at_random(theirs, rng)
        data = mujoco.MjData(theirs)
        data.qpos, data.qvel = qpos, rng.standard_normal(theirs.nv)
        mujoco.mj_forward(theirs, data)
        bias = mb.gravity_forces(ours, q) + mb.coriolis_forces(ours, q, data.qvel.copy())
        assert abs(bias - data.qfrc_bias).max() < CLOSE * abs(bias).max() * 10


def test_places_starts_and_keyframes():
    text = EVERYTHING.replace("{compiler}", "")
    report = Report()
    ours, theirs = loads(text, report=report), theirs_of(text)
    data = mujoco.MjData(theirs)
    for key, qpos in (("start", theirs.qpos0), ("home", theirs.key_qpos[0])):
        q = report.positions[key]
        data.qpos = qpos
        mujoco.mj_forward(theirs, data)
        for body in ("torso", "thigh", "foot", "box", "welded"):
            frame = report.frames.get(body)
            point = np.zeros(3) if frame is None else frame.p
            found = mb.point_position(ours, q, body, point)
            assert np.allclose(found, data.body(body).xpos, rtol=0, atol=1e-13)
    assert any("range" in remark.text for remark in report.remarks)
    stops = loads(text, report=Report(), limits=True)
    low, high = stops.bodies[stops.number("thigh(hip y)") - 1].limits[0, :2]
    assert (low, high) == pytest.approx(np.deg2rad([-40 - 15, 70 - 15]))  # from ref


LINKED = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="crank">
      <joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      <body name="rod" pos="0 0 0.3">
        <joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 1 0 0" size="0.02"/>
      </body>
    </body>
    <body name="rocker" pos="1 0 -0.2">
      <joint name="c" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02"/>
    </body>
    <body name="wheel" pos="0 1 0"><joint name="d" axis="0 1 0"/><geom size="0.1"/></body>
    <body name="lid" pos="0 2 0"><joint name="e" axis="0 1 0"/><geom size="0.1"/></body>
    <body name="stuck" pos="0 3 0"><freejoint/><geom size="0.1"/></body>
  </worldbody>
  <equality>
    <connect name="pin" body1="rod" body2="rocker" anchor="1 0 0"/>
    <joint name="gear" joint1="d" joint2="a" polycoef="0.1 -2"/>
    <joint name="cam" joint1="e" joint2="a" polycoef="0 1 0.5 0 -0.25"/>
    <weld name="glue" body1="stuck"/>
    <connect name="off" body1="rod" anchor="0 0 0" active="false"/>
  </equality>
</mujoco>
"""


def test_equalities_are_constraints():
    report = Report()
    model = loads(LINKED, report=report)
    assert [loop.name for loop in model.loops] == ["pin", "glue"]
    assert any("off: not active" in remark.text for remark in report.remarks)
    q = report.positions["start"]
    found = mb.assemble(model, q).q
    assert mb.mobility(model, found).mobility == 1
    a, wheel, lid = found[0], found[3], found[4]
    assert wheel == pytest.approx(0.1 - 2.0 * a, abs=1e-12)
    assert lid == pytest.approx(a + 0.5 * a**2 - 0.25 * a**4, abs=1e-12)
    solution = mb.simulate(model, found, np.zeros(model.nv), 0.5)
    assert solution.success
    assert np.allclose(solution.y[3], 0.1 - 2.0 * solution.y[0], atol=1e-6)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<replicate count='3'/>", "mj_saveLastXML"),
        ("<body><joint type='screw'/></body>", "hinge, slide, ball or free"),
        ("<body><joint axis='0 0 0'/></body>", "direction"),
        ("<body><geom type='cone' size='1'/></body>", "expected one of"),
        ("<body><geom size='-1'/></body>", "positive"),
        ("<body><geom size='1 nan'/></body>", "finite"),
        ("<body><geom type='mesh' mesh='x'/></body>", "no mesh 'x'"),
        ("<body><geom class='none' size='1'/></body>", "no class 'none'"),
        ("<body quat='0 0 0 0'/>", "direction"),
        ("<body euler='1 2 3' zaxis='0 0 1'/>", "one orientation"),
        ("<body name='a'/><body name='a'/>", "taken"),
        ("<body><geom size='1'/><body><freejoint/><geom size='1'/></body></body>", "stands alone"),
        ("<body><inertial mass='-1' pos='0 0 0'/></body>", "negative mass"),
        ("<body><geom type='capsule' size='1e-308 1e-308'/></body>", "too small to have a volume"),
        ("<body><geom size='1e-308' mass='1'/></body>", "too small to have a volume"),
        ("<body><geom type='capsule' size='' fromto='0 0 0 0 0 1'/></body>", "expected a radius"),
        ("<include file='other.xml'/>", "includes=FOLDER"),
        ("<body><joint name='j'/><joint name='j'/><geom size='1'/></body>", "name 'j' is taken"),
        ("<body><geom size='1'/><site name='s'/><site name='s'/></body>", "name 's' is taken"),
        ("<body><geom size='\u0663'/></body>", "finite"),
        ("<body><joint damping='-1'/><geom size='1'/></body>", 'policy="repair" would take none'),
    ],
)
def test_what_is_refused_says_why_and_where(inside, expected):
    text = f"<mujoco>\n<worldbody>\n{inside}\n</worldbody></mujoco>"
    with pytest.raises(ModelFileError, match=expected) as caught:
        loads(text, "mjcf", report=Report())
    assert caught.value.line == 3


def test_included_files(tmp_path):
    (tmp_path / "main.xml").write_text(
        "<mujoco><include file='common.xml'/>"
        "<worldbody><include file='arm.xml'/></worldbody></mujoco>"
    )
    (tmp_path / "common.xml").write_text("<mujoco><compiler angle='radian'/></mujoco>")
    (tmp_path / "arm.xml").write_text(
        "<mujocoinclude><body name='arm'><joint ref='0.5'/><geom size='0.1'/></body>"
        "</mujocoinclude>"
    )
    report = Report()
    model = mb.load_model(tmp_path / "main.xml", report=report, includes=tmp_path)
    assert [body.name for body in model.bodies] == ["arm"]
    with pytest.raises(ModelFileError, match=r"main.xml:1: <include>: .* --includes FOLDER"):
        mb.load_model(tmp_path / "main.xml", report=Report())
    (tmp_path / "arm.xml").write_text("<mujocoinclude><include file='arm.xml'/></mujocoinclude>")
    with pytest.raises(ModelFileError, match="includes itself"):
        mb.load_model(tmp_path / "main.xml", report=Report(), includes=tmp_path)


@pytest.mark.parametrize("closing", ["", "</body>"])
def test_thousands_of_bodies_in_a_chain_or_side_by_side(closing):
    count = 1200  # more than Python has frames
    one = f'<body pos="0.1 0 0"><joint/><geom size="0.1"/>{closing}'
    text = one * count
    text += "" if closing else "</body>" * count
    model = loads(f"<mujoco><worldbody>{text}</worldbody></mujoco>", report=Report())
    assert model.n_bodies == count


ARMS = "".join(f"<body><joint name='j{k}'/><geom size='1'/></body>" for k in range(500))
OF_ALL = "".join(f"<joint joint='j{k}' coef='1'/>" for k in range(500))
DEEP = "".join(f"<default class='c{k}'>" for k in range(100)) + "</default>" * 100


@pytest.mark.parametrize(
    ("world", "rest", "expected"),
    [
        ("<frame>" * 100 + "</frame>" * 100, "", "frames are nested deeper"),
        ("", f"<default>{DEEP}</default>", "defaults are nested deeper"),
        (
            ARMS,
            f"<tendon><fixed name='t'>{OF_ALL}</fixed></tendon>"
            "<equality>" + "<tendon tendon1='t'/>" * 500 + "</equality>",
            "tendons stand for more",
        ),
    ],
    ids=["frames", "defaults", "tendons"],
)
def test_what_grows_out_of_little_text_is_bounded(world, rest, expected):
    with pytest.raises(ModelFileError, match=expected):
        loads(f"<mujoco>{rest}<worldbody>{world}</worldbody></mujoco>", report=Report())


def test_equalities_without_names_may_share_a_line():
    arms = "".join(f"<body name='b{k}'><joint/><geom size='1'/></body>" for k in range(2))
    held = "".join(f"<connect body1='b{k}' anchor='0 0 0'/>" for k in range(2))
    text = f"<mujoco><worldbody>{arms}</worldbody><equality>{held}</equality></mujoco>"
    assert [loop.name for loop in loads(text).loops] == ["connect 0", "connect 1"]


@pytest.mark.parametrize("shape", ["sphere", "capsule", "cylinder", "box", "ellipsoid"])
def test_shapes_too_large_for_numbers_are_refused(shape):
    body = f'<body><joint/><geom type="{shape}" size="1e200 1e200 1e200"/></body>'
    with pytest.raises(ModelFileError, match="nothing is larger"):
        loads(f"<mujoco><worldbody>{body}</worldbody></mujoco>", report=Report())


def test_what_is_not_read_is_told():
    text = """<mujoco><compiler balanceinertia="true"/>
      <option actuatorgroupdisable="1"><flag spring="disable" gravity="disable"/></option>
      <worldbody><body name="b"><freejoint align="true"/><geom size="0.1"/>
        <body name="c"><joint name="j"/><geom size="0.1"/></body></body></worldbody>
      <equality><weld body1="c" relpose="0 0 0 1 0 0 0" anchor="0 0 1"/></equality>
      <actuator><motor name="m" joint="j" armature="0.5" damping="0"/></actuator></mujoco>"""
    report = Report()
    loads(text, report=report)
    told = " ".join(remark.text for remark in report.remarks)
    for said in (
        *("balanceinertia='true'", "actuatorgroupdisable='1'", "spring is disabled"),
        *("align='true'", "anchor beside relpose", "armature='0.5'"),
    ):
        assert said in told
    assert "damping" not in told
    assert "gravity" not in told


def test_a_joint_without_mass_that_carries_two_bodies_is_written_as_a_body():
    """Of one child it may be a second joint; the other of two would hang on the world."""
    b = mb.ModelBuilder()
    b.add_body("yoke", 0, mb.Revolute("z"))
    for name, place in (("a", (1, 0, 0)), ("b", (0, 2, 0))):
        inertia = mb.Inertia(1.0, (0, 0.1, 0), (0.2, 0.2, 0.3))
        b.add_body(name, "yoke", mb.Revolute("x"), place, inertia)
    model = b.build()
    again = loads(dumps(model, "mjcf", report=(told := Report())))
    assert "yoke" in str(told)  # MuJoCo wants some mass of it
    names = [body.name for body in again.bodies]
    order = [names.index(body.name) for body in model.bodies]
    q = np.array([0.3, 0.5, -0.2])
    H = mb.crba(again, q[np.argsort(order)])
    np.testing.assert_allclose(H[np.ix_(order, order)], mb.crba(model, q), atol=1e-14)
