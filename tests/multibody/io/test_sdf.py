"""SDF: frames, joints, loops, includes against models built by hand, and what is refused."""

import math

import numpy as np
import pytest

import multibody as mb
from multibody.io import ModelFileError, Report, loads
from tests.multibody.io.test_urdf import rpy


def sdf(inside, version="1.7"):
    return f'<sdf version="{version}"><model name="m">{inside}</model></sdf>'


def read(text, **options):
    options.setdefault("report", Report())
    return loads(text, "sdf", "m.sdf", **options)


def link(name, pose="", mass=1.0, moments=(1, 1, 1), at="", attributes=""):
    inertia = "".join(
        f"<{t}>{x}</{t}>" for t, x in zip(("ixx", "iyy", "izz"), moments, strict=True)
    )
    placed = f"<pose {attributes}>{pose}</pose>" if pose else ""
    centre = f"<pose>{at}</pose>" if at else ""
    return (
        f'<link name="{name}">{placed}<inertial>{centre}<mass>{mass}</mass>'
        f"<inertia>{inertia}</inertia></inertial></link>"
    )


def joint(name, kind, parent, child, more="<axis><xyz>0 0 1</xyz></axis>"):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>'


def at(xyz, *angles):
    return mb.Pose(rpy(*angles), xyz)


def same_dynamics(model, expected, count=4):
    assert (model.nq, model.nv) == (expected.nq, expected.nv)
    rng = np.random.default_rng(2)
    for _ in range(count):
        q = model.integrate(model.neutral(), rng.normal(size=model.nv))
        v, a = rng.normal(size=(2, model.nv))
        np.testing.assert_allclose(mb.crba(model, q), mb.crba(expected, q), rtol=1e-12, atol=1e-13)
        forces, others = mb.ID(model, q, v, a), mb.ID(expected, q, v, a)
        np.testing.assert_allclose(forces, others, rtol=1e-11, atol=1e-11)


# ---------------------------------------------------------------------- frames and joints

UPPER = link("upper", "0.1 0.2 0.3 0.4 -0.5 0.6", 2, (0.3, 0.28, 0.1), "0.05 0.02 0.2 0.4 0.3 -0.5")
HAND = link("hand", "0.3 0 0.5 -0.2 0.1 0.9", 0.5, (1e-2, 1e-2, 1e-2), "0 0 0.1 0 0 0")
SPRING = """<axis><xyz>0 2 0</xyz><dynamics><damping>0.3</damping><friction>0.1</friction>
  <spring_stiffness>5</spring_stiffness><spring_reference>0.2</spring_reference></dynamics>
  <limit><lower>-1</lower><upper>1</upper></limit></axis>"""


def arm(tip, version="1.7"):
    shoulder = joint("shoulder", "revolute", "world", "upper", SPRING)
    return sdf(f"<pose>1 2 3 0.1 0.2 0.3</pose>{UPPER}{HAND}{shoulder}{tip}", version)


def by_hand(made, turn=None, axis_at=(0.05, 0.06, 0.07)):
    """The arm; the hand hangs on joint `made`, whose frame is turned in the axes of the hand."""
    model, upper, hand = (
        at([1, 2, 3], 0.1, 0.2, 0.3),
        at([0.1, 0.2, 0.3], 0.4, -0.5, 0.6),
        at([0.3, 0, 0.5], -0.2, 0.1, 0.9),
    )
    R = rpy(0.4, 0.3, -0.5)
    first = mb.mcI(2, [0.05, 0.02, 0.2], R @ np.diag([0.3, 0.28, 0.1]) @ R.T)
    second = mb.mcI(0.5, [0, 0, 0.1], 1e-2 * np.eye(3))
    build = mb.ModelBuilder(name="m")
    build.add_body(
        "upper", 0, mb.Revolute("y"), model * upper, first, damping=0.3, stiffness=5, rest=0.2
    )
    build.declare_body("hand", second)
    frame = mb.Pose(np.eye(3) if turn is None else turn, axis_at)
    build.add_joint("tip", "upper", "hand", made, upper.inverse() * hand * frame, frame)
    return build.build()


TILT = "<pose>0.05 0.06 0.07 0.3 0.2 -0.1</pose>"
AXIS = "<axis><xyz>1 2 0</xyz></axis>"
J = rpy(0.3, 0.2, -0.1)  # axes of the joint in those of the hand


def unit(x):
    return np.asarray(x) / np.linalg.norm(x)


@pytest.mark.parametrize(
    ("kind", "more", "made"),
    [
        ("revolute", AXIS, mb.Revolute(J @ unit([1, 2, 0]))),
        ("continuous", AXIS, mb.Revolute(J @ unit([1, 2, 0]))),
        ("prismatic", AXIS, mb.Prismatic(J @ unit([1, 2, 0]))),
        ("fixed", "", mb.Fixed()),
        ("ball", "", mb.Spherical()),
        (
            "screw",
            AXIS + "<screw_thread_pitch>0.1</screw_thread_pitch>",
            mb.Helical(0.1 / (2 * math.pi), J @ unit([1, 2, 0])),
        ),
        (
            "screw",
            AXIS + "<thread_pitch>-20</thread_pitch>",  # rad/m, positive: left-handed
            mb.Helical(0.05, J @ unit([1, 2, 0])),
        ),
    ],
)
def test_joints_are_those_of_the_model_built_by_hand(kind, more, made):
    text = arm(joint("tip", kind, "upper", "hand", TILT + more))
    same_dynamics(read(text), by_hand(made))


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
@pytest.mark.parametrize("second", [(0, 0, 1), (2, -1, 3), (1, 1, 1)])
def test_two_axes_are_two_hinges_in_a_row(kind, second):
    axes = (
        "<axis><xyz>1 2 0</xyz><dynamics><damping>0.1</damping></dynamics></axis>"
        f"<axis2><xyz>{' '.join(map(str, second))}</xyz>"
        "<dynamics><spring_stiffness>0.7</spring_stiffness></dynamics></axis2>"
    )
    model = read(arm(joint("tip", kind, "upper", "hand", TILT + axes)))
    assert len(model.bodies) == (3 if second == (1, 1, 1) else 2)  # not at right angles
    full = by_hand(mb.Fixed())
    build = mb.ModelBuilder(name="m")
    upper, hand = full.bodies
    forces = {"damping": 0.3, "stiffness": 5, "rest": 0.2}
    build.add_body("upper", 0, upper.joint, upper.placement, upper.inertia, **forces)
    first = mb.Revolute(J @ unit([1, 2, 0]))
    build.add_body("cross", "upper", first, hand.placement, damping=0.1)
    last = mb.Revolute(J @ unit(second))
    build.add_body("hand", "cross", last, inertia=hand.inertia, stiffness=0.7)
    same_dynamics(model, build.build())


def test_poses_may_be_relative_to_any_frame():
    """The same arm with its frames written in each other, as a URDF would have them."""
    hand = at([0.3, 0, 0.5], -0.2, 0.1, 0.9)
    frame = mb.Pose(J, [0.05, 0.06, 0.07])
    at_upper = at([0.1, 0.2, 0.3], 0.4, -0.5, 0.6).inverse() * hand * frame

    def written(pose):
        quaternion = mb.quaternions.from_matrix(pose.R)
        return " ".join(f"{x:.17g}" for x in (*pose.p, *quaternion[1:], quaternion[0]))

    how = 'rotation_format="quat_xyzw" relative_to='
    tip = joint("tip", "revolute", "grip", "hand", f'<pose {how}"grip">{written(at_upper)}</pose>'
                '<axis><xyz expressed_in="tilted">1 2 0</xyz></axis>')  # fmt: skip
    text = arm(
        '<frame name="grip" attached_to="upper"/><frame name="tilted" attached_to="tip"/>' + tip
    )
    text = text.replace(
        "<pose >0.3 0 0.5 -0.2 0.1 0.9<", f'<pose {how}"tip">{written(frame.inverse())}<'
    )
    assert 'relative_to="tip"' in text
    same_dynamics(read(text), by_hand(mb.Revolute(J @ unit([1, 2, 0]))))


def test_degrees():
    text = sdf('<link name="a"><pose degrees="true">0 0 0 0 0 90</pose></link>', "1.9")
    np.testing.assert_allclose(read(text).bodies[0].placement.E.T, rpy(0, 0, np.pi / 2), atol=1e-15)


@pytest.mark.parametrize(
    ("version", "flag", "in_model"),
    [
        ("1.4", "", True),
        ("1.5", "", False),
        ("1.6", "<use_parent_model_frame>1</use_parent_model_frame>", True),
        ("1.6", "<use_parent_model_frame>false</use_parent_model_frame>", False),
        ("1.11", "", False),
    ],
)
def test_each_version_has_its_axes(version, flag, in_model):
    tip = joint("tip", "revolute", "upper", "hand", f"{TILT}<axis><xyz>1 2 0</xyz>{flag}</axis>")
    text = arm(tip).replace("<xyz>0 2 0</xyz>", "<xyz>0 2 0</xyz>" + flag).replace("1.7", version)
    direction = rpy(-0.2, 0.1, 0.9).T if in_model else J
    expected = by_hand(mb.Revolute(direction @ unit([1, 2, 0])))
    model = read(text)
    np.testing.assert_allclose(
        model.bodies[1].joint.axis, expected.bodies[1].joint.axis, atol=1e-15
    )
    shoulder = rpy(0.4, -0.5, 0.6).T @ [0, 1, 0] if in_model else [0, 1, 0]
    np.testing.assert_allclose(model.bodies[0].joint.axis, shoulder, atol=1e-15)


def test_the_neutral_position_is_that_of_the_file():
    report = Report()
    model = read(arm(joint("tip", "ball", "upper", "hand", TILT)), report=report)
    np.testing.assert_allclose(report.frames["hand"].p, [-0.05, -0.06, -0.07], atol=1e-16)
    world = at([1, 2, 3], 0.1, 0.2, 0.3) * at([0.3, 0, 0.5], -0.2, 0.1, 0.9)
    origin = mb.point_position(model, model.neutral(), "hand", report.frames["hand"].p)
    np.testing.assert_allclose(origin, world.p, atol=1e-14)


def test_a_model_floats_unless_it_is_held():
    assert read(sdf(UPPER)).nv == 6
    assert read(sdf(UPPER + HAND)).nv == 12
    assert read(sdf(UPPER), root="fixed").nv == 0
    static = read(sdf("<static>true</static>" + UPPER + HAND + joint("j", "ball", "upper", "hand")))
    assert [body.joint.nv for body in static.bodies] == [0, 0]
    np.testing.assert_allclose(static.bodies[1].placement.r, [0.3, 0, 0.5])


# ---------------------------------------------------------------------- loops

#: Crank of 1, coupler of 2, rocker of 1.5 over a ground of 2.2; the crank stands at 1 rad.
CRANK = np.array([math.cos(1.0), math.sin(1.0)])
FAR = np.array([2.2, 0.0])


def four_bar_points():
    d = FAR - CRANK
    along = (4 - 2.25 + d @ d) / (2 * math.hypot(*d))
    across = math.sqrt(4 - along**2)
    e = d / math.hypot(*d)
    return CRANK + along * e + across * np.array([-e[1], e[0]])


def four_bar(order=(0, 1, 2, 3), damping=""):
    C = four_bar_points()
    coupler, rocker = math.atan2(*(C - CRANK)[::-1]), math.atan2(*(C - FAR)[::-1])

    def bar(name, p, angle, length):
        return link(name, f"{p[0]:.17g} {p[1]:.17g} 0 0 0 {angle:.17g}", length,
                    (1e-3, length**3 / 12, length**3 / 12), f"{length / 2} 0 0 0 0 0")  # fmt: skip

    bars = (
        bar("crank", (0, 0), 1.0, 1),
        bar("coupler", CRANK, coupler, 2),
        bar("rocker", FAR, rocker, 1.5),
    )
    joints = [
        joint("A", "revolute", "world", "crank"),
        joint("B", "revolute", "crank", "coupler"),
        joint("C", "revolute", "coupler", "rocker", "<pose>1.5 0 0 0 0 0</pose><axis>"
              f"<xyz>0 0 1</xyz>{damping}</axis>"),
        joint("D", "revolute", "world", "rocker"),
    ]  # fmt: skip
    gravity = "<world name='w'><gravity>0 -9.81 0</gravity>"
    inside = f"<model name='bars'>{''.join(bars)}{''.join(joints[k] for k in order)}</model>"
    return f"<sdf version='1.7'>{gravity}{inside}</world></sdf>"


def four_bar_by_hand():
    C = four_bar_points()
    b = mb.ModelBuilder((0, -9.81, 0))
    for body, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5)):
        moments = np.diag([1e-3, length**3 / 12, length**3 / 12])
        b.declare_body(body, mb.mcI(length, [length / 2, 0, 0], moments))
    b.add_joint("A", 0, "crank", mb.Revolute())
    b.add_joint("B", "crank", "coupler", mb.Revolute(), (1.0, 0, 0))
    b.add_joint("C", "coupler", "rocker", mb.Revolute(), (2.0, 0, 0), (1.5, 0, 0), tree=False)
    b.add_joint("D", 0, "rocker", mb.Revolute(), (2.2, 0, 0))
    coupler, rocker = math.atan2(*(C - CRANK)[::-1]), math.atan2(*(C - FAR)[::-1])
    return b.build(), np.array([1.0, coupler - 1.0, rocker])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_a_link_with_two_parents_closes_a_loop(order):
    report = Report()
    model = read(four_bar(order), report=report)
    assert len(model.loops) == 1
    assert model.loops[0].name == "bars::" + "ABCD"[order[-1]]  # the last in the file
    q = model.neutral()
    assert np.abs(mb.constraints(model, q).delta).max() < 1e-14
    assert mb.mobility(model, q).mobility == 1
    # how the coupler's middle accelerates does not depend on where the loop is cut
    expected, q_expected = four_bar_by_hand()
    np.testing.assert_allclose(
        middle_acceleration(model, q, "bars::coupler", report.frames.get("bars::coupler")),
        middle_acceleration(expected, q_expected, "coupler"),
        rtol=1e-11,
        atol=1e-12,
    )


def middle_acceleration(model, q, body, frame=None):
    zero = np.zeros(3)
    a = mb.constrained_accelerations(model, q, zero, zero).accelerations
    middle = np.array([1.0, 0, 0]) if frame is None else frame.act([1.0, 0, 0])
    return mb.point_acceleration(model, q, zero, a, body=body, point=middle)


def test_it_moves_with_its_loops_closed():
    model = read(four_bar())
    solution = mb.simulate(model, T=1.0, fps=10, stabilise="projection", rtol=1e-10, atol=1e-12)
    assert solution.success
    gaps = [np.abs(mb.constraints(model, q).delta).max() for q in solution.y[:3].T]
    assert max(gaps) < 1e-10
    energy = [sum(mb.energy(model, y[:3], y[3:])[:2]) for y in solution.y.T]
    np.testing.assert_allclose(energy, energy[0], atol=1e-8)
    assert np.ptp(solution.y[0]) > 0.1


def test_joints_with_forces_are_kept_in_the_tree():
    damping = "<dynamics><damping>0.5</damping></dynamics>"
    report = Report()
    model = read(four_bar(damping=damping).replace("<axis><xyz>0 0 1</xyz></axis>", "<axis/>"))
    assert [loop.name for loop in model.loops] == ["bars::D"]
    everywhere = four_bar().replace("</xyz>", "</xyz>" + damping)
    model = read(everywhere, report=report)
    assert "damping of joint 'bars::D', which closes a loop (ignored)" in str(report)
    assert mb.mobility(model, model.neutral()).mobility == 1


# ---------------------------------------------------------------------- gears


def test_gearboxes_and_mimics_are_gears():
    hinge = "<axis><xyz>0 0 {}</xyz></axis>"
    box = (
        hinge.format(1) + "<axis2><xyz>0 0 1</xyz></axis2>"
        "<gearbox_ratio>5</gearbox_ratio><gearbox_reference_body>a</gearbox_reference_body>"
    )
    mimic = '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>3</multiplier></mimic></axis>'
    text = sdf(
        "".join(map(link, "abcd"))
        + joint("i", "fixed", "world", "a")
        + joint("j", "revolute", "a", "b", hinge.format(-1))  # turns against the axis of the box
        + joint("k", "revolute", "a", "c", hinge.format(1))
        + joint("g", "gearbox", "b", "c", box)
        + joint("l", "prismatic", "c", "d", mimic)
    )
    report = Report()
    model = read(text, report=report)
    assert report.gears == {"c": {"b": 5.0}, "d": {"b": 3.0}}  # θ₂ = −5 θ₁, and θ₁ = −q
    assert mb.gears(model, report.gears).jacobian([0.0]).ravel().tolist() == [1.0, 5.0, 3.0]
    assert [c.description for c in model.constraints] == ["c = 5.0 b", "d = 3.0 b"]
    a = mb.FD(model, np.zeros(3), np.zeros(3), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(a, a[0] * np.array([1.0, 5.0, 3.0]), rtol=1e-9)


def test_joints_that_follow_each_other_in_a_ring_are_told():
    axis = '<axis><xyz>0 0 1</xyz><mimic joint="{}"><multiplier>2</multiplier></mimic></axis>'
    text = sdf(
        "".join(map(link, "abc"))
        + joint("i", "fixed", "world", "a")
        + joint("j", "revolute", "a", "b", axis.format("k"))
        + joint("k", "revolute", "a", "c", axis.format("j"))
    )
    report = Report()
    model = read(text, report=report)
    assert [r.text for r in report.remarks if "in turn follows it" in r.text]
    assert mb.mobility(model, model.neutral()).mobility == 1


# ---------------------------------------------------------------------- worlds, nested, included


def test_models_in_models_and_in_worlds():
    inner = f"<model name='in'><pose>0 0 1 0 0 0</pose>{link('a', '1 0 0 0 0 0')}</model>"
    outer = sdf(link("a") + inner + joint("j", "revolute", "a", "in::a"), "1.8")
    model = read(outer)
    assert [body.name for body in model.bodies] == ["a", "in::a"]
    np.testing.assert_allclose(model.bodies[1].placement.r, [1, 0, 1])
    # a model stands for its first link, and for its own frame as to where the joint is
    report = Report()
    by_model = read(outer.replace("<child>in::a", "<child>in"), report=report)
    np.testing.assert_allclose(by_model.bodies[1].placement.r, [0, 0, 1])
    np.testing.assert_allclose(report.frames["in::a"].p, [1, 0, 0])
    two = "".join(f"<model name='{m}'>{link('a')}</model>" for m in "mn")
    world = f"<sdf version='1.8'><world name='w'><gravity>0 0 -1</gravity>{two}</world></sdf>"
    model = read(world)
    assert [body.name for body in model.bodies] == ["m::a", "n::a"]
    np.testing.assert_array_equal(model.gravity, [0, 0, -1])


def test_a_model_may_be_placed_by_a_frame_in_it():
    inner = (
        "<model name='in' placement_frame='tip'><pose>0 0 1 0 0 0</pose>"
        f"{link('a', '1 0 0 0 0 0')}<frame name='tip' attached_to='a'><pose>2 0 0 0 0 1</pose>"
        "</frame></model>"
    )
    model = read(sdf(inner, "1.8"))
    pose = at([0, 0, 1], 0, 0, 0) * at([2, 0, 0], 0, 0, 1).inverse()
    np.testing.assert_allclose(model.bodies[0].placement.r, pose.p, atol=1e-15)
    np.testing.assert_allclose(model.bodies[0].placement.E.T, pose.R, atol=1e-15)


def including(uri, more=""):
    return sdf(f"<include><uri>{uri}</uri>{more}</include>", "1.8")


def test_other_files_are_read_from_a_folder_that_is_named(tmp_path):
    folder = tmp_path / "models"
    (folder / "arm").mkdir(parents=True)
    (folder / "arm" / "model.sdf").write_text(sdf("<plugin/>" + link("a", "1 0 0 0 0 0")))
    (folder / "other").mkdir()
    (folder / "other" / "model.config").write_text("<model><sdf>x.sdf</sdf></model>")
    (folder / "other" / "x.sdf").write_text(including("model://arm"))
    with pytest.raises(ModelFileError, match=r"m\.sdf:1: .*includes=FOLDER"):
        read(including("model://arm"))
    report = Report()
    placed = including("model://arm", "<name>left</name><pose>0 1 0 0 0 0</pose>")
    model = read(placed, includes=folder, report=report)
    assert [body.name for body in model.bodies] == ["left::a"]
    np.testing.assert_allclose(model.bodies[0].placement.r, [1, 1, 0])
    assert f"in {folder / 'arm' / 'model.sdf'}" in str(report)
    (folder / "thin.sdf").write_text(sdf("\n" + link("a", moments=(1, 1, 3))))
    with pytest.raises(ModelFileError, match=r"models/thin\.sdf:2: no body has"):
        read(including("thin.sdf"), includes=folder, report=Report(policy="strict"))
    nested = read(including("other"), includes=folder)
    assert [body.name for body in nested.bodies] == ["m::m::a"]
    file = tmp_path / "top.sdf"
    file.write_text(placed)
    assert mb.load_model(file, includes=folder, report=Report()) == model


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("../secret.sdf", "leads out"),
        ("model://../secret.sdf", "leads out"),
        ("file:///etc/passwd", "leads out"),
        ("/etc/passwd", "leads out"),
        ("link.sdf", "leads out"),
        ("linked", "leads out"),
        ("ring.sdf", "includes itself"),
        ("none.sdf", "there is no file"),
        ("https://example.org/a.sdf", "network"),
        ("a\\x00b", "no path|there is no file"),
        ("x" * 5000, "no path|there is no file"),
        ("flood0.sdf", "more than 1000 included files"),
    ],
)
def test_nothing_else_is_read(tmp_path, uri, said):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.sdf").write_text(sdf(link("a")))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "model.sdf").write_text(sdf(link("a")))
    (folder / "link.sdf").symlink_to(tmp_path / "secret.sdf")
    (folder / "linked").symlink_to(tmp_path / "secret")
    (folder / "ring.sdf").write_text(including("ring.sdf"))
    for k in range(12):
        twice = "".join(
            f"<include><name>{n}</name><uri>flood{k + 1}.sdf</uri></include>" for n in "abc"
        )
        (folder / f"flood{k}.sdf").write_text(sdf(twice))
    (folder / "flood12.sdf").write_text(sdf(link("a")))
    with pytest.raises(ModelFileError, match=said):
        read(including(uri), includes=folder)


# ---------------------------------------------------------------------- what is left out, refused


def test_the_report_has_what_was_left_out_with_lines():
    extra = "\n<plugin/>\n<link name='b'><sensor/><visual/>\n<collision/></link>\n"
    text = arm(extra + joint("tip", "revolute", "upper", "hand", TILT + AXIS))
    report = Report()
    read(text, report=report)
    lines = text.splitlines()
    words = {
        "<plugin> in <model>": "<plugin",
        "<sensor> in <link>": "<sensor",
        "1 × <collision>, the first here": "<collision",
        "link 'b' has no <inertial>: mass 1, moments 1": "name='b'",
        "friction of joint 'shoulder'": "<dynamics>",
        "limits of joint 'shoulder'": "<limit>",
    }
    assert {remark.text for remark in report.remarks} == set(words)
    for remark in report.remarks:
        assert words[remark.text] in lines[remark.line - 1]
    assert {remark.what for remark in report.remarks} == {"ignored", "assumed"}


def test_limits_become_stops_where_asked_for():
    text = sdf(
        link("a") + joint("j", "prismatic", "world", "a",
        "<axis><xyz>1 0 0</xyz><limit><lower>-inf</lower><upper>1</upper></limit></axis>")
    )  # fmt: skip
    model = read(text, limits=True)
    forces = [mb.ID(model, [q], [0], [0])[0] for q in (-1e6, 0.9, 1.1)]
    np.testing.assert_allclose(forces, [0, 0, 1e4 * 0.1], atol=1e-9)


def test_moments_that_no_body_has_follow_the_policy():
    thin = sdf(link("a", moments=(1, 1, 3)))
    with pytest.raises(ModelFileError, match="principal moments of link 'a': 1, 1, 3"):
        read(thin, report=Report(policy="strict"))
    nearest = read(thin, report=Report(policy="repair")).bodies[0].inertia
    np.testing.assert_allclose(np.diag(nearest.rotational), [1.5, 1.5, 3])
    np.testing.assert_allclose(np.diag(read(thin).bodies[0].inertia.rotational), [1, 1, 3])


def test_text_is_known_by_its_root_element(tmp_path):
    text = "<?xml version='1.0'?><!-- <robot> -->" + sdf(link("base"))
    report = Report()
    assert loads(text, report=report).bodies[0].name == "base(link)"
    file = tmp_path / "m.SDF"
    file.write_text(text)
    assert mb.load_model(file, report=report) == loads(text, report=report)


PAIR = link("a") + link("b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<robot/>", "this is no SDF"),
        ("<sdf/>", "expected an attribute version"),
        ("<sdf version='1.3'/>", "expected 1.4 to 1.11"),
        ("<sdf version='x'/>", "expected 1.4 to 1.11"),
        ("<sdf version='1.7'/>", "one <world>, or a <model>"),
        (sdf(""), "there is no <link>"),
        ("<sdf version='1.7'>" + "<model name='m'>" * 300, "nested deeper"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><sdf/>', "document type declaration"),
        (sdf(link("a") * 2), "taken in line 1"),
        (sdf(link("world")), "reserved"),
        (sdf(link("__model__")), "reserved"),
        (sdf(link("a", "0 0 0 0 0")), "6 finite numbers"),
        (sdf(link("a", "0 0 0 0 0 nan")), "6 finite numbers"),
        (sdf(link("a", "0 0 0 0 0 1e400")), "6 finite numbers"),
        (sdf(link("a", "0 0 0 0 0 0", attributes="relative_to='aa'")), "did you mean 'a'"),
        (sdf(link("a", "0 0 0 0 0 0", attributes="relative_to='a'")), "relative to it"),
        (sdf(link("a") + "<frame name='f' attached_to='f'/>"), "relative to it|ring"),
        (sdf(link("a", "0 0 0 0 0 0 0", attributes="rotation_format='quat_xyzw'")), "quaternion"),
        (sdf(link("a", "1e308 0 0 0 0 0")), r"farther than 1e\+100 m"),
        (sdf(link("a", at="1e200 0 0 0 0 0")), "too large for numbers"),
        (sdf(link("a", mass=-1)), "negative mass"),
        (sdf(link("a", mass="1_0")), "a finite number"),
        (sdf("<link name='a'><inertial auto='true'/></link>"), "no <collision>"),
        (sdf(PAIR + joint("j", "hinge", "a", "b")), "type: expected one of revolute"),
        (sdf(PAIR + joint("j", "revolute", "a", "c")), "no link or frame 'c'"),
        (sdf(PAIR + joint("j", "revolute", "a", "a")), "with itself"),
        (sdf(PAIR + joint("j", "revolute", "a", "b", "")), "expected <axis>"),
        (sdf(PAIR + joint("j", "screw", "a", "b")), "screw_thread_pitch"),
        (sdf(PAIR + joint("j", "universal", "a", "b")), "expected <axis2>"),
        (sdf(PAIR + joint("j", "universal", "a", "b", "<axis/><axis2/>")), "parallel"),
        (sdf(PAIR + joint("j", "revolute", "a", "b", "<axis><xyz>0 0 0</xyz></axis>")),
         "a direction"),
        (sdf(PAIR + joint("j", "revolute", "a", "b") * 2), "taken in line 1"),
        (sdf("<static>maybe</static>" + PAIR), "expected true or false"),
        (sdf("<include merge='true'><uri>a</uri></include>"), "merge"),
    ],
)  # fmt: skip
def test_faults_are_refused_with_the_line(text, said):
    with pytest.raises(ModelFileError, match=rf"^m\.sdf:\d+: .*({said})"):
        read(text)


def test_options_are_checked():
    with pytest.raises(TypeError, match="sdf files have no option of this name"):
        read(sdf(PAIR), include=".")
    with pytest.raises(ValueError, match="root: expected"):
        read(sdf(PAIR), root="floating")


def test_ten_thousand_frames_in_a_row_take_no_recursion():
    chain = "".join(
        f"<frame name='f{k}' attached_to='f{k + 1}'/>" for k in range(10_000)
    )  # each is found after the one that needs it
    text = sdf(f"{chain}<frame name='f10000'><pose>0 0 1 0 0 0</pose></frame>"
               + link("a", "1 0 0 0 0 0", attributes="relative_to='f0'"))  # fmt: skip
    np.testing.assert_allclose(read(text).bodies[0].placement.r, [1, 0, 1])


# ---------------------------------------------------------------------- drawn at random

MORE = {
    "universal": "<axis><xyz>1 2 0</xyz></axis><axis2><xyz>2 -1 3</xyz></axis2>",
    "revolute2": "<axis><xyz>1 2 0</xyz></axis><axis2><xyz>1 1 1</xyz></axis2>",
    "screw": AXIS + "<screw_thread_pitch>0.1</screw_thread_pitch>",
    "ball": "",
    "fixed": "",
}


@pytest.mark.parametrize("seed", range(8))
def test_neutral_positions_of_random_mechanisms_are_the_poses_of_their_files(seed):
    """Links written in random frames, joints of all kinds between random pairs of them."""
    rng = np.random.default_rng(seed)
    world, parts = {"__model__": at(rng.normal(size=3), *rng.normal(size=3))}, []
    inside = "<pose>" + " ".join(f"{x:.17g}" for x in numbers(world["__model__"])) + "</pose>"
    for k in range(6):
        other = str(rng.choice(list(world)))
        pose = at(rng.normal(size=3), *rng.normal(size=3))
        world[f"l{k}"] = world[other] * pose
        written = " ".join(f"{x:.17g}" for x in numbers(pose))
        parts.append(link(f"l{k}", written, attributes=f"relative_to='{other}'"))
    for k in range(8):
        parent, child = rng.choice([f"l{i}" for i in range(6)], 2, replace=False)
        kind = str(rng.choice(["revolute", "continuous", "prismatic", *MORE]))
        ends = ("world" if rng.random() < 0.2 else parent, child)
        parts.append(joint(f"j{k}", kind, *ends, TILT + MORE.get(kind, AXIS)))
    report = Report()
    model = read(sdf(inside + "".join(rng.permutation(parts))), report=report)
    q = model.neutral()
    for name, pose in world.items():
        if name == "__model__":
            continue
        frame = report.frames.get(name, mb.Pose.identity())
        for point in np.vstack([np.zeros(3), np.eye(3)]):
            found = mb.point_position(model, q, name, frame.act(point))
            np.testing.assert_allclose(found, pose.act(point), atol=1e-12)
    if model.loops:
        assert np.abs(mb.constraints(model, q).delta).max() < 1e-12
    assert sum(body.inertia.mass for body in model.bodies) == 6
    assert loads(mb.io.dumps(model)) == model


def numbers(pose):
    """Position, and roll, pitch and yaw of R = Rz Ry Rx."""
    R = pose.R
    roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    return (*pose.p, roll, math.asin(-R[2, 0]), yaw)


def test_friction_of_joints_is_an_element_on_request():
    """The same law from URDF and SDF, in joints of the tree and in one that closes a loop."""
    text = four_bar().replace("</xyz>", "</xyz><dynamics><friction>0.3</friction></dynamics>")
    report = Report()
    assert not loads(text, report=report).elements
    assert "friction of joint" in str(report)
    model = loads(text, report=Report(), joint_friction=True)
    assert len(model.elements) == 4
    assert {named.element.joint for named in model.elements} >= {loop.name for loop in model.loops}
    assert mb.element_forces(model, model.neutral(), np.ones(model.nv))
    arm = (
        '<robot name="r"><link name="base_link"/><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base_link"/><child link="a"/>'
        '<dynamics friction="{}"/></joint></robot>'
    )
    found = loads(arm.format(0.3), report=Report(), joint_friction=True).elements[0]
    assert (found.name, found.element.coulomb) == ("friction of a", 0.3)
    with pytest.raises(ModelFileError, match="negative friction"):
        loads(arm.format(-1), report=Report(policy="strict"), joint_friction=True)


def test_poses_of_frames_without_meaning_are_passed_over():
    report = Report()
    posed = "<link name='a'><pose frame='x'>0 0 1 0 0 0</pose></link>"
    loads(f"<sdf version='1.6'><model name='m'>{posed}</model></sdf>", report=report)
    assert any("never said what that means" in remark.text for remark in report.remarks)
