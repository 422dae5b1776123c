"""URDF: robots of other programs, against models built by hand, and what is refused."""

import numpy as np
import pytest

import multibody as mb
from multibody.io import ModelFileError, Report, loads

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="world"/>
  <joint name="stand" type="fixed">
    <parent link="world"/><child link="foot"/><origin xyz="0.1 0.2 0.3" rpy="0.1 -0.2 0.3"/>
  </joint>
  <link name="foot">
    <inertial><mass value="3"/><inertia ixx="0.02" iyy="0.02" izz="0.03"/></inertial>
  </link>
  <link name="upper">
    <inertial>
      <origin xyz="0.05 0.02 0.2" rpy="0.4 0.3 -0.5"/><mass value="2"/>
      <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.028" iyz="0.0005" izz="0.01"/>
    </inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="foot"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0.5 0 1.2"/>
    <axis xyz="0 2 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/>
    <dynamics damping="0.3" friction="0.1"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="upper"/><child link="tool"/><origin xyz="0 0 0.4" rpy="0 0.7 0"/>
    <axis xyz="1 1 0"/><limit lower="0" upper="1" effort="5" velocity="2"/>
    <mimic joint="shoulder" multiplier="0.1"/>
  </joint>
  <link name="tool">
    <inertial><mass value="0.5"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"/></inertial>
  </link>
</robot>
"""


def rpy(roll, pitch, yaw):
    """R = Rz(yaw) Ry(pitch) Rx(roll), from rotations of the algebra."""
    turns = mb.rotx(roll), mb.roty(pitch), mb.rotz(yaw)
    x, y, z = (X.E.T for X in turns)
    return z @ y @ x


def by_hand():
    build = mb.ModelBuilder(name="arm")

    def at(xyz, *angles):
        return mb.Plucker(rpy(*angles).T, xyz)

    def inertia(mass, centre, I, R):
        return mb.mcI(mass, centre, R @ I @ R.T)

    foot = inertia(3, np.zeros(3), np.diag([0.02, 0.02, 0.03]), np.eye(3))
    build.add_body("foot", 0, mb.Fixed(), at([0.1, 0.2, 0.3], 0.1, -0.2, 0.3), foot)
    I = np.array([[0.03, 0.001, -0.002], [0.001, 0.028, 0.0005], [-0.002, 0.0005, 0.01]])
    upper = inertia(2, [0.05, 0.02, 0.2], I, rpy(0.4, 0.3, -0.5))
    shoulder = mb.Revolute(axis=[0, 1, 0])
    build.add_body("upper", "foot", shoulder, at([0, 0, 0.1], 0.5, 0, 1.2), upper, damping=0.3)
    tool = inertia(0.5, np.zeros(3), 1e-3 * np.eye(3), np.eye(3))
    axis = np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    build.add_body("tool", "upper", mb.Prismatic(axis=axis), at([0, 0, 0.4], 0, 0.7, 0), tool)
    return build.build()


def test_dynamics_are_those_of_the_model_built_by_hand():
    report = Report()
    model, expected = loads(ARM, report=report), by_hand()
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v, a = rng.normal(size=(3, 2))
        np.testing.assert_allclose(mb.crba(model, q), mb.crba(expected, q), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(mb.ID(model, q, v, a), mb.ID(expected, q, v, a), rtol=1e-12)


def test_the_report_has_what_was_left_out_with_lines():
    report = Report()
    model = loads(ARM, name="arm.urdf", report=report)
    assert {remark.what for remark in report.remarks} == {"ignored"}
    lines = ARM.splitlines()
    for remark in report.remarks:
        assert remark.text.split()[0].rstrip("s") in lines[remark.line - 1]
    text = str(report)
    for piece in ("friction of joint 'shoulder'", "limits of joint 'slide'"):
        assert piece in text
    assert report.gears == {"tool": {"upper": 0.1}}
    assert [(c.name, c.description) for c in model.constraints] == [
        ("slide follows shoulder", "tool = 0.1 upper")
    ]
    closure = mb.gears(model, report.gears)
    np.testing.assert_allclose(closure.jacobian([0.3]).ravel(), [1.0, 0.1])


def test_without_a_report_a_warning_says_how_much_is_missing():
    with pytest.warns(UserWarning, match="things were left out or are doubtful, the first in line"):
        loads(ARM)


def test_limits_become_stops_where_asked_for():
    model = loads(ARM, report=Report(), limits=True)
    inside, outside = (mb.ID(model, [q, 0.5], [0, 0], [0, 0])[0] for q in (0.9, 1.1))
    free = loads(ARM, report=Report())
    assert inside == pytest.approx(mb.ID(free, [0.9, 0.5], [0, 0], [0, 0])[0])
    assert abs(outside - mb.ID(free, [1.1, 0.5], [0, 0], [0, 0])[0]) > 100  # 0.1 rad · 1e4


def test_a_robot_may_float():
    model = loads(ARM.replace('<link name="world"/>', '<link name="trunk"/>')
                  .replace('"world"', '"trunk"'), report=Report(), root="free")  # fmt: skip
    assert model.nv == 8
    assert model.nq == 9


def link(inertial):
    return f'<robot name="r"><link name="a">{inertial}</link></robot>'


THIN = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3"/></inertial>'


def test_moments_that_no_body_has_follow_the_policy():
    with pytest.raises(
        ModelFileError, match=r'principal moments of link .a.: 1, 1, 3; policy="rep'
    ):
        loads(link(THIN), policy="strict", report=Report(policy="strict"))
    kept, mended = Report(), Report(policy="repair")
    as_it_is = loads(link(THIN), report=kept).bodies[0].inertia
    nearest = loads(link(THIN), report=mended).bodies[0].inertia
    np.testing.assert_allclose(np.diag(as_it_is.rotational), [1, 1, 3])
    np.testing.assert_allclose(np.diag(nearest.rotational), [1.5, 1.5, 3])
    assert [r.what for r in (*kept.remarks, *mended.remarks)] == ["doubtful", "repaired"]


HAND = """<robot name="hand"><link name="arm">
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="finger"/><link name="tip"><inertial><mass value="0"/><inertia/></inertial></link>
  <joint name="a" type="revolute"><parent link="world"/><child link="arm"/></joint>
  <joint name="f" type="revolute"><parent link="arm"/><child link="finger"/>
    <limit lower="-1" upper="1"/></joint>
  <joint name="t" type="fixed"><parent link="finger"/><child link="tip"/>
    <mimic joint="f"/></joint>
  <link name="world"/></robot>
"""


def test_joints_that_move_no_mass_follow_the_policy():
    for policy in ("strict", "warn"):
        with pytest.raises(ModelFileError, match=r'r.urdf:5: joint .f. moves .*"repair" would hol'):
            loads(HAND, "urdf", "r.urdf", report=Report(policy=policy))
    report = Report(policy="repair")
    mended = loads(HAND.replace("fixed", "continuous"), report=report, limits=True)
    assert [body.joint.kind for body in mended.bodies] == ["revolute", "fixed", "fixed"]
    assert [r.line for r in report.remarks if r.what == "repaired"] == [5, 7]
    assert not mended.constraints
    heavy = HAND.replace('"0"/><inertia/>', '"1"/><inertia ixx="1" iyy="1" izz="1"/>')
    assert loads(heavy, report=Report(policy="strict")).nv == 2  # carried by a link without mass


def test_several_roots_are_refused_or_stand_on_the_base():
    one = link(THIN.replace("3", "2"))
    text = one.replace("</robot>", one.replace('"a"', '"b"').partition('"r">')[2])
    with pytest.raises(
        ModelFileError, match=r"2 links without a parent: 'a', 'b'; policy=\"repair"
    ):
        loads(text, report=Report())
    report = Report(policy="repair")
    assert [body.parent for body in loads(text, report=report).bodies] == [0, 0]
    assert [r.what for r in report.remarks] == ["repaired"]
    assert loads(text, report=Report(policy="repair"), root="free").nv == 12


SLIPS = """<robot name="r"><link name="a">
  <collision><geometry><sphere radius="0"/></geometry></collision></link>
  <transmission name="t"><joint name="j"/><actuator name="m">
    <mechanicalReduction>reduction</mechanicalReduction></actuator></transmission></robot>
"""


def test_slips_that_move_nothing_are_remarks():
    """As in public files: balls without radius, a word for a number."""
    report = Report()
    assert loads(SLIPS, report=report).solids == ()
    found = [(r.line, r.text) for r in report.remarks if r.what == "doubtful"]
    assert [line for line, _ in found] == [2, 4]
    assert "positive lengths, received [0.0]" in found[0][1]
    assert not report.reductions
    with pytest.raises(ModelFileError, match=":2: a shape, left out"):
        loads(SLIPS, report=Report(policy="strict"))


def test_digits_cut_off_are_no_fault():
    inertial = THIN.replace('izz="3"', 'izz="2.0000001"')
    report = Report(policy="strict")
    loads(link(inertial), report=report)
    assert not report.remarks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<sdf/>", "this is no URDF"),
        ("<robot name='r'/>", "there is no <link>"),
        ("<robot", "not valid XML"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot/>', "document type declaration"),
        ('<robot name="r"><xacro:macro/></robot>', "a macro"),
        ('<robot name="r"><link name="a"/><link name="a"/></robot>', "taken in line 1"),
        ('<robot name="r"><link name="a"/><link name="b"/></robot>', "2 links without a parent"),
        ("<a>" * 300, "nested deeper"),
        (link('<inertial><mass value="nan"/><inertia/></inertial>'), "a finite number"),
        (link('<inertial><mass value="1e999"/><inertia/></inertial>'), "a finite number"),
        (link('<inertial><mass value="-1"/><inertia/></inertial>'), "negative mass"),
        (link("<inertial/>"), "expected <mass"),
        (ARM.replace("revolute", "screw"), "type: expected one of revolute"),
        (ARM.replace('link="upper"', 'link="lower"', 1), "no link 'lower'"),
        (ARM.replace('xyz="0 2 0"', 'xyz="0 0 0"'), "expected a direction"),
        (ARM.replace('xyz="0 2 0"', 'xyz="0 2"'), "3 finite numbers, received '0 2'"),
        (ARM.replace('<parent link="world"/>', '<parent link="tool"/>'), "ring"),
    ],
)  # fmt: skip
def test_faults_are_refused_with_the_line(text, said):
    with pytest.raises(ModelFileError, match=rf"^r\.urdf:\d+: .*{said}"):
        loads(text, "urdf", "r.urdf", report=Report())


def test_options_and_policies_are_checked():
    with pytest.raises(TypeError, match="urdf files have no option of this name"):
        loads(ARM, rot="free", report=Report())
    with pytest.raises(ValueError, match="policy: expected"):
        loads(ARM, policy="lenient")
    with pytest.raises(ValueError, match="one that can be written"):
        mb.save_model(by_hand(), "arm.xacro")


def test_a_file_is_known_by_its_ending(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    report = Report()
    assert mb.load_model(file, report=report).nv == 2
    assert report.file == str(file)


XACRO = """<?xml version="1.0"?>
<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="chain">
  <xacro:arg name="length" default="0.5"/><xacro:property name="m" value="${2 * 1.5}"/>
  <link name="world"/>
  <xacro:macro name="rod" params="i parent">
    <link name="rod${i}"><inertial><origin xyz="0 0 -$(arg length)"/><mass value="${m}"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
    <joint name="j${i}" type="continuous"><parent link="${parent}"/><child link="rod${i}"/>
      <axis xyz="0 1 0"/></joint>
  </xacro:macro>
  <xacro:rod i="1" parent="world"/><xacro:rod i="2" parent="rod1"/>
</robot>
"""


def test_macros_are_run_for_who_trusts_them(tmp_path):
    pytest.importorskip("xacrodoc")
    file = tmp_path / "chain.xacro"
    file.write_text(XACRO)
    model = mb.load_model(file, macros=True, arguments={"length": 0.25}, report=Report())
    assert [body.name for body in model.bodies] == ["rod1", "rod2"]
    assert model.bodies[1].inertia.mass == 3.0
    assert model.bodies[0].inertia.centre[2] == -0.25
    assert loads(XACRO, "xacro", macros=True, report=Report()).nv == 2
    for text, options, said in (
        (XACRO, {}, "macros=True"),
        (XACRO.replace("2 * 1.5", "2 *"), {"macros": True}, "cannot be run"),
        (XACRO.replace("2 * 1.5", "-1"), {"macros": True}, "expanded.*negative mass"),
    ):
        with pytest.raises(mb.ModelFileError, match=said):
            loads(text, "xacro", "chain.xacro", report=Report(), **options)
    with pytest.raises(mb.ModelFileError, match='format="xacro"'):
        loads(XACRO, "urdf", report=Report())


FEET = """<robot name="feet"><link name="world"/><link name="body"><inertial><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1"/></inertial>
  <collision><origin xyz="0 0 -0.5"/><geometry><sphere radius="0.1"/></geometry></collision>
  <collision><geometry><box size="1 1 1"/></geometry></collision>
  <collision><origin rpy="0.1 0 0"/><geometry><box size="1 1 1"/></geometry></collision>
  <collision><geometry><cylinder radius="1" length="2"/></geometry></collision>
  <collision><geometry><capsule radius="1" length="2"/></geometry></collision>
  <collision><geometry><mesh filename="x.stl"/></geometry></collision></link>
  <joint name="up" type="prismatic"><parent link="world"/><child link="body"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
  <transmission name="t"><joint name="up"/><actuator name="m">
    <mechanicalReduction>50</mechanicalReduction></actuator></transmission></robot>"""


def test_collisions_touch_the_ground_where_asked_for():
    report = Report()
    model = loads(FEET, contacts="ground", friction=0.5, report=report)
    kinds = [type(contact.shape_b).__name__ for contact in model.contacts]
    assert kinds == ["Ball", "BoxCorners", *["Vertex"] * 8, "Disc", "Disc", "Capsule"]
    assert {contact.friction for contact in model.contacts} == {0.5}
    assert any("mesh" in remark.text for remark in report.remarks)
    assert report.reductions == {"up": 50.0}
    assert loads(FEET, report=Report()).contacts == ()
    with pytest.raises(ValueError, match="contacts: expected"):
        loads(FEET, contacts="all", report=Report())
    ball = model.contacts[0].shape_b
    assert (ball.radius, ball.centre) == (0.1, (0.0, 0.0, -0.5))
    ends = [contact.shape_b.centre[2] for contact in model.contacts if contact.name[5] == "3"]
    assert sorted(ends) == [-1.0, 1.0]


def test_transmissions_drive_their_joints_with_their_reduction():
    """An effort of the motor is 50 times itself in the joint; without one nothing acts."""
    assert loads(FEET, report=Report()).elements == ()
    model = loads(FEET, controls={"m": lambda t: 2.0 + t}, report=Report())
    for t in (0.0, 1.5):
        tau, _ = mb.element_forces(model, model.neutral(), [0.0], t=t)
        np.testing.assert_allclose(tau, [50.0 * (2.0 + t)], rtol=1e-15)
    with pytest.raises(ValueError, match=r"no transmission has the actuator 'n'.*\['m'\]"):
        loads(FEET, controls={"n": 1.0}, report=Report())
    fixed = FEET.replace('type="prismatic"', 'type="fixed"')
    with pytest.raises(ValueError, match="not one freedom to drive"):
        loads(fixed, controls={"m": 1.0}, report=Report())


def test_joints_that_follow_each_other_in_a_ring_are_told():
    """As gears they would hold each other still, whatever acts."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/>{inertia}</inertial></link>'
        for name in ("root", "a", "b", "c")
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="root"/><child link="{name[1]}"/>'
        f'<axis xyz="0 0 1"/><mimic joint="{leader}" multiplier="2"/></joint>'
        for name, leader in (("ja", "jb"), ("jb", "jc"), ("jc", "ja"))
    )
    report = Report()
    model = loads(f'<robot name="r">{links}{joints}</robot>', report=report)
    assert sum("in turn follows it" in remark.text for remark in report.remarks) == 1
    assert len(model.constraints) == 2  # the third would close the ring
    assert mb.mobility(model, model.neutral()).mobility == 1
    with pytest.raises(ModelFileError, match="in turn follows it"):
        loads(f'<robot name="r">{links}{joints}</robot>', policy="strict")
