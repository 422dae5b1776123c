"""Options of a study: what no run could do is refused at once, and each run has its own time."""

import time

import numpy as np
import pytest

from featherstep import Assembled, Final, Max, Min, Study, Uniform
from featherstep.study.starts import STRIDE
from integrators import IVP, Switch, traced
from multibody import mechanisms

DECAY = IVP(lambda t, y, p: -p[0] * y, [1.0], (0.0, 1.0), params=[1.0])


def study_of(ivp=DECAY, **options):
    return Study(
        ivp,
        {"rate": Uniform(1, 2)},
        n=3,
        parameters=["rate"],
        **{"record": {"end": Final(0)}, **options},
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "DOP835"}, "no scheme is called 'DOP835'; did you mean DOP853"),
        ({"method": "scipy:LSODAX"}, "did you mean LSODA"),
        ({"method": 3}, "method must be a name"),
        ({"rtol": -1}, "rtol must be a number"),
        ({"atol": [1e-9, 1e-9]}, "one for each of the 1 components"),
        ({"norm": "l2"}, "norm must be"),
        ({"step": -0.1}, "step must be a positive number"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"kinks": "find"}, "kinks must be"),
        ({"time_limit": -1}, "time_limit must be a positive number"),
        ({"linear_solver": "dense", "method": "DOPRI5"}, "solves no linear systems"),
        ({"sensitivities": ["p[0]"]}, "solve_many"),
        ({"precision": 20, "record": {"most": Max(0)}}, "many digits take no dense_output"),
        ({"rtoll": 1e-3}, "did you mean rtol"),
        ({"record": {"end": Final("x")}}, "record.end: there is no state 'x'"),
        ({"record": {"end": {"mx": 0}}}, "record.end: .*did you mean max"),
        ({"record": {"end": {"event_time": 0, "valeu": 4.5}}}, "'valeu'; did you mean value"),
    ],
)
def test_what_no_run_could_do_is_refused_at_once(options, message):
    """A wrong name of a method failed in every run, one by one."""
    with pytest.raises(ValueError, match=message):
        study_of(**options)


def test_a_method_that_needs_the_trace_is_not_refused(tmp_path):
    study = Study(
        "pendulum", {"length": [1.0, 1.1]}, method="Taylor", t_span=(0, 0.2),
        record={"end": Final(0)},
    )  # fmt: skip
    assert (study.run(tmp_path / "taylor.study", workers=1).columns()["status"] == "ok").all()


@pytest.mark.parametrize("way", ["kinks", "switch"])
def test_kinks_and_switches_are_followed_between_steps(way, tmp_path):
    """Coulomb friction: y is mu + (1 − mu) cos t up to π, then −mu + (1 − 3 mu) cos t."""
    if way == "kinks":
        f = traced(lambda t, y, p: [y[1], -y[0] - p[0] * np.sign(y[1])], n=2, params=1)
    else:
        f = Switch(
            lambda t, y, p: y[1],
            lambda t, y, p: [y[1], -y[0] - p[0]],
            lambda t, y, p: [y[1], -y[0] + p[0]],
        )
    study = Study(
        IVP(f, [1.0, 0.0], (0.0, 4.0), params=[0.1]), {"mu": [0.1, 0.2]}, parameters=["mu"],
        record={"least": Min(0), "end": Final(0)}, rtol=1e-9,
        kinks="locate" if way == "kinks" else None,
    )  # fmt: skip
    columns = study.run(tmp_path / f"{way}.study", executor="threads", workers=1).columns()
    assert (columns["status"] == "ok").all(), columns["message"]
    mu = columns["mu"]
    assert columns["least"] == pytest.approx(2 * mu - 1, abs=1e-7)
    assert columns["end"] == pytest.approx(-mu + (1 - 3 * mu) * np.cos(4.0), abs=1e-7)
    assert "one by one: " in study.engine


def test_each_run_has_the_time_limit(tmp_path):
    def slow(t, y, p):
        if p[0] > 1.5:
            time.sleep(0.3)
        return -p[0] * y

    problem = IVP(slow, [1.0], (0.0, 1.0), params=[1.0])
    study = Study(
        problem, {"rate": [1.0, 2.0, 1.2]}, parameters=["rate"], time_limit=1.0,
        record={"end": Final(0)},
    )  # fmt: skip
    columns = study.run(tmp_path / "slow.study", executor="threads", workers=1).columns()
    assert "time_limit" in study.engine
    assert columns["status"].tolist() == ["ok", "out_of_time", "ok"]
    assert np.isnan(columns["end"][1])
    assert columns["end"][[0, 2]] == pytest.approx(np.exp([-1.0, -1.2]), rel=1e-5)


def test_joints_are_led_in_mechanisms_with_quaternions():
    """From the usual start assembly throws the platform of a delta robot above its base."""
    robot = mechanisms.delta_robot()
    q, v = mechanisms.entry("delta_robot").start(robot)
    usual = np.concatenate([q, v])
    start = Assembled(fixed=dict.fromkeys(("arm1", "arm2", "arm3"), 2.0))
    height = robot.q_names.index("platform.p_z")
    assert usual[height] < 0.0
    assert start.closed(robot, {}, usual)[0][height] > 0.0
    led, _, _ = start.closed(robot, {}, start.led(robot, {}, usual))
    assert led[height] == pytest.approx(-0.8723, abs=1e-4)


def test_a_quaternion_is_led_the_short_way():
    stewart = mechanisms.stewart_platform()
    q, v = mechanisms.entry("stewart_platform").start(stewart)
    usual = np.concatenate([q, v])
    turned = np.array([np.cos(0.5), 0.0, 0.0, np.sin(0.5)])
    legs = []
    for sign in (1.0, -1.0):  # two quaternions for one orientation
        start = Assembled(fixed={"platform": [*(sign * turned), *q[4:7]]})
        led = start.led(stewart, {}, usual)
        assert np.abs(led[:4] @ turned) > np.cos(STRIDE)  # one before the end
        legs.append(start.closed(stewart, {}, led)[0][7:])
    assert legs[0] == pytest.approx(legs[1], abs=1e-9)
