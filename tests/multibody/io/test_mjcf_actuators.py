"""Actuators, fixed tendons, gravity compensation and keyframes of MJCF: MuJoCo's own forces."""

import pickle

import numpy as np
import pytest

import multibody as mb
from multibody.dynamics.acting import acting
from multibody.io import ModelFileError, Report, dumps, load_start, loads

mujoco = pytest.importorskip("mujoco")

DRIVEN = """
<mujoco model="driven">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0.4 -0.3 -9.7"/>
  <default>
    <motor ctrllimited="true" ctrlrange="-1.5 1.5"/>
    <default class="servo"><position kp="30" kv="2" forcerange="-8 9"/></default>
    <tendon damping="0.2"/>
  </default>
  <worldbody>
    <body name="one" pos="0 0 1" gravcomp="0.7">
      <joint name="j1" axis="0 1 0.2" ref="0.3"/>
      <geom type="capsule" size="0.05 0.2" pos="0.1 0 -0.2"/>
      <site name="nozzle" pos="0.1 0.2 0.3" euler="0.3 0.4 0.5"/>
      <body name="two" pos="0 0.1 -0.5">
        <joint name="j2" type="slide" axis="1 0 0.4" ref="-0.1" pos="0.1 0 0"/>
        <geom type="box" size="0.1 0.2 0.1" pos="0 0.1 0"/>
        <body name="three" pos="0 0 -0.3">
          <joint name="j3" axis="0 1 0"/>
          <joint name="j4" axis="1 0 0" damping="0.3"/>
          <geom type="sphere" size="0.1" pos="0 0 -0.2"/>
          <body name="four" pos="0 0.2 0">
            <joint name="ball" type="ball"/><geom type="box" size="0.1 0.02 0.1" pos="0.1 0 0"/>
          </body>
        </body>
      </body>
    </body>
    <body name="five"><joint name="j5" axis="1 2 0" actuatorfrcrange="-3 2.5"/>
      <geom type="sphere" size="0.1" pos="0.2 0 0"/></body>
  </worldbody>
  <tendon>
    <fixed name="over" stiffness="12" springlength="0.1 0.4">
      <joint joint="j1" coef="0.7"/><joint joint="j2" coef="-1.3"/>
    </fixed>
    <fixed name="own" stiffness="5" damping="1.1">
      <joint joint="j3" coef="0.5"/><joint joint="j4" coef="1"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="three" joint="j1" gear="3"/>
    <position name="p" class="servo" joint="j2" gear="2"/>
    <velocity name="v" joint="j3" kv="4" ctrlrange="-0.3 0.6"/>
    <general name="g" joint="j4" gaintype="affine" gainprm="2 0.3 -0.4" biastype="affine"
      biasprm="0.5 -0.6 0.2" dyntype="filter" dynprm="0.2"/>
    <general name="t" tendon="own" dyntype="integrator" gainprm="7" actlimited="true"
      actrange="-0.5 0.9"/>
    <position name="lag" tendon="over" kp="11" timeconst="0.05"/>
    <intvelocity name="i" joint="j2" kp="3" actrange="-1 1"/>
    <damper name="d" joint="j4" kv="0.8" ctrlrange="0 2"/>
    <cylinder name="c" joint="j2" timeconst="0.3" diameter="0.2" bias="0.1 -0.2 -0.3"/>
    <motor name="jet" site="nozzle" gear="0.1 0.2 3 0.4 0.5 0.6"/>
    <motor name="turn" joint="ball" gear="0.3 0.4 0.5"/>
    <position name="lone" joint="j5" gear="-2" kp="3" forcerange="-1.4 8"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="0.2 0.1 0.4 0.5 0.5 0.5 0.5 0.5 0.9" qvel="1 2 3 4 5 6 7 8"
      ctrl="1 2 3 4 5 6 7 8 9 10 11 12" act="0.1 0.2 0.3 0.4 0.5"/>
  </keyframe>
</mujoco>
"""
CLOSE = 1e-12  # sums of some dozens of products
STATES = ("g", "t", "lag", "i", "c")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_forces_and_rates_are_those_of_mujoco(seed):
    rng = np.random.default_rng(seed)
    theirs = mujoco.MjModel.from_xml_string(DRIVEN)
    names = [theirs.actuator(k).name for k in range(theirs.nu)]
    controls = dict(zip(names, 2.0 * rng.standard_normal(theirs.nu)))
    ours = loads(DRIVEN, controls=controls, report=Report())
    data = mujoco.MjData(theirs)
    turn = rng.standard_normal(4)
    q = np.concatenate([rng.standard_normal(4), turn / np.linalg.norm(turn), [2.0 - seed]])
    act = rng.uniform(-1.0, 1.0, theirs.na)
    data.qpos = q + theirs.qpos0 * (np.arange(9) < 4)
    data.qvel, data.act = rng.standard_normal(8), act
    data.ctrl = list(controls.values())
    mujoco.mj_forward(theirs, data)
    at = ours.neutral()
    own = {name: k for k, name in enumerate(ours.q_names[9:])}
    at[:9] = q
    for name, value in zip(STATES, act):
        at[9 + own[f"{name}.activation"]] = value
    acted = acting(ours, 0.0, at, data.qvel.copy())
    mass, bias = mb.crba(ours, at), mb.gravity_forces(ours, at)
    bias = bias + mb.coriolis_forces(ours, at, data.qvel.copy())
    assert abs(bias - data.qfrc_bias).max() < CLOSE * 100
    problem = mb.as_ivp(ours, at, data.qvel.copy(), (0.0, 1.0))
    y_dot = problem.f(0.0, problem.y0)
    applied = mass @ y_dot[-8:] + data.qfrc_bias
    expected = data.qfrc_actuator + data.qfrc_passive
    assert abs(applied - expected).max() < 1e-11 * max(1.0, abs(expected).max())
    rates = acted.rates()
    for name, rate, value in zip(STATES, data.act_dot, act):
        limits = {"t": (-0.5, 0.9), "i": (-1.0, 1.0)}.get(name, (-np.inf, np.inf))
        stands = (value >= limits[1] and rate > 0) or (value <= limits[0] and rate < 0)
        assert rates[own[f"{name}.activation"]] == pytest.approx(0.0 if stands else rate, rel=1e-12)


def test_they_run_are_saved_and_pickled(tmp_path):
    """A servo through a file of our own and through a pickle: the same run, bit for bit."""
    file = tmp_path / "driven.xml"
    file.write_text(DRIVEN)
    report = Report()
    model = mb.load_model(file, report=report, controls={"p": mb.Table([0.0, 1.0], [0.0, 0.3])})
    start = load_start(file, "home")
    assert start.q is not None
    assert start.v is not None
    assert start.q[:4] == pytest.approx([-0.1, 0.2, 0.4, 0.5])
    assert start.q[-5:].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert report.controls["home"]["jet"] == 10.0
    run = mb.simulate(model, start.q, start.v, T=0.2)
    assert run.success
    for twin in (loads(dumps(model)), pickle.loads(pickle.dumps(model))):
        assert twin == model
        assert np.array_equal(mb.simulate(twin, start.q, start.v, T=0.2).y, run.y)
    with pytest.raises(ValueError, match="no keyframe 'away'"):
        load_start(file, "away")


def test_they_come_back_from_mjcf():
    """Written and read again: the same forces and rates at random states."""
    rng = np.random.default_rng(9)
    model = loads(DRIVEN.replace('gravcomp="0.7"', ""), report=Report())
    text = dumps(model, "mjcf", report=(told := Report()))
    assert not told
    again = loads(text, report=Report())
    mujoco.MjModel.from_xml_string(text)
    assert again.q_names[:9] == model.q_names[:9]
    for _ in range(3):
        q, v = model.random(rng), rng.standard_normal(model.nv)
        there = again.neutral()
        there[:9] = q[:9]
        there[9:] = [q[model.q_names.index(name)] for name in again.q_names[9:]]
        ours, theirs = (acting(m, 0.0, x, v) for m, x in ((model, q), (again, there)))
        assert abs(ours.joint_forces() - theirs.joint_forces()).max() < CLOSE
        assert abs(ours.wrenches() - theirs.wrenches()).max() < CLOSE


def test_coupled_tendons_and_joints_can_be_pickled_and_move_together():
    text = DRIVEN.replace(
        "<actuator>",
        """<equality>
        <tendon tendon1="over" tendon2="own" polycoef="0.05 0.4"/>
        <joint name="held" joint1="j3" polycoef="0.1"/>
        </equality><actuator>""",
    )
    model = pickle.loads(pickle.dumps(loads(text, report=Report())))
    q = mb.assemble(model, model.neutral()).q
    run = mb.simulate(model, q, T=0.1)
    q1, q2, q3, q4 = run.y[:4]
    assert abs(0.7 * q1 - 1.3 * q2 - 0.05 - 0.4 * (0.5 * q3 + q4)).max() < 1e-7
    assert abs(q3 - 0.1).max() < 1e-7


def test_friction_of_joints_and_limits_of_tendons_are_options():
    text = DRIVEN.replace('name="j3"', 'name="j3" frictionloss="0.2"').replace(
        'name="own"', 'name="own" range="-1 1"'
    )
    report = Report()
    loads(text, report=report)
    said = " ".join(str(remark) for remark in report.remarks)
    assert "frictionloss" in said
    assert "range of own" in said
    model = loads(text, report=Report(), joint_friction=True, limits=True)
    names = {named.name for named in model.elements}
    assert {"friction of three(j3)", "range of tendon own"} <= names
    assert not loads(text, report=Report(), actuators=False).n_states


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('joint="j1" gear="3"', 'joint="j9"', "there is no joint 'j9'"),
        ('gear="3"', 'gear=" "', "gear: expected one to six numbers, received none"),
        ('coef="0.7"', 'coef="nan"', "finite number"),
        ('forcerange="-8 9"', 'forcerange="9 -8"', "force_range as \\(lower, upper\\)"),
        ('kv="4"', 'kv="-4"', "kv: expected a number ≥ 0"),
        ('dynprm="0.2"', 'dynprm="1e400"', "finite number"),
        ('<joint joint="j3" coef="0.5"/>', '<joint joint="ball" coef="1"/>', "have one freedom"),
    ],
)
def test_nonsense_is_refused(old, new, said):
    assert old in DRIVEN
    with pytest.raises(ModelFileError, match=said):
        loads(DRIVEN.replace(old, new), report=Report())


def test_what_is_no_linear_law_is_listed():
    more = """<muscle name="muscle" joint="j1"/><general name="odd" joint="j1" biastype="muscle"/>
    <position name="ratio" joint="j5" dampratio="1"/></actuator>"""
    report = Report()
    model = loads(DRIVEN.replace("</actuator>", more).replace("ctrl=", "info="), report=report)
    said = " ".join(str(remark) for remark in report.remarks)
    for what in ("muscle muscle", "odd, biastype muscle", "dampratio of ratio"):
        assert what in said
    assert "actuatorfrcrange" in said  # two actuators share the joint now
    assert "ratio" in {named.name for named in model.elements}


def test_unknown_inputs_are_refused():
    with pytest.raises(ValueError, match="there is no actuator 'q'"):
        loads(DRIVEN, report=Report(), controls={"q": 1.0})
    with pytest.raises(ValueError, match="actuators=False"):
        loads(DRIVEN, report=Report(), controls={"three": 1.0}, actuators=False)
