"""Studies of mechanisms in lanes: answers and refusals of a model for each run."""

import numpy as np
import pytest

from featherstep import (
    Assembled,
    At,
    EventTime,
    Final,
    Max,
    Mean,
    Min,
    Normal,
    Study,
    Uniform,
    energy,
    loop_force,
    position,
)
from featherstep.study.plan import RunFailed
from featherstep.study.working.sources import OneByOne, Shared
from multibody import mechanisms

from .models import same

VARY = {"crank": [1.0, 0.98, np.nan, 9.0, 1.03, 1.01], "density": [1, 1.1, 1, 1, 1.2, -1.0],
        "angle": [4.0, 4.1, 4.0, 4.0, 3.9, 4.0]}  # fmt: skip
START = Assembled(fixed={"crank": "angle"}, speeds={"crank": -0.5})
OPTIONS = {"t_span": (0, 0.3), "rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(scope="module")
def study():
    record = {
        "end": Final("crank"), "early": At("rocker", 0.1), "t": EventTime("crank", value=4.02),
        "energy": Final(energy()),
    }  # fmt: skip
    return Study("four_bar", VARY, start=START, record=record, outputs=4, **OPTIONS)


def test_lanes_agree_with_a_model_for_each_run(study, tmp_path):
    assert isinstance(study._source, Shared)
    assert study._source.lanes
    fast = study._source.run(0, study.design.rows(0, 6))
    slow = OneByOne(study.plan).run(0, study.design.rows(0, 6))
    assert (fast.status == "ok").tolist() == [True, True, False, False, True, False]
    assert fast.status.tolist() == slow.status.tolist()
    for name in study.plan.record:
        assert np.allclose(fast.values[name], slow.values[name], rtol=1e-7, equal_nan=True), name
    assert np.allclose(fast.states, slow.states, rtol=1e-7, atol=1e-8, equal_nan=True)
    assert "nan" in fast.message[2]
    assert "stays open" in fast.message[3]
    assert "positive density" in fast.message[5]


def test_a_run_is_the_same_in_any_part(study, tmp_path):
    whole = study.run(tmp_path / "a.study", workers=1).columns()
    parts = study.run(tmp_path / "b.study", workers=2, block=2).columns()
    assert same(whole, parts)
    for k in (0, 4):
        row = study.rerun(k).row
        assert all(repr(row[c]) == repr(whole[c][k].item()) for c in study.plan.record)
    again = study.rerun(1)
    assert again.model.bodies[0].inertia.mass == pytest.approx(0.98 * 1.1)
    assert again.solution.y[0, -1] == pytest.approx(whole["end"][1], abs=1e-12)
    with pytest.raises(RunFailed, match="stays open"):
        _ = study.rerun(3).solution


def test_what_needs_all_of_a_run_shares_the_problem(study):
    along = Study("four_bar", VARY, start=START, record={"top": Max(energy("kinetic"))}, **OPTIONS)
    rows = along.design.rows(0, 2)
    fast = along._source.run(0, rows)
    slow = OneByOne(along.plan).run(0, rows)
    assert isinstance(along._source, Shared)
    assert np.allclose(fast.values["top"], slow.values["top"], rtol=1e-7)


def test_starts_of_the_catalogue_and_given_ones():
    usual = Study("four_bar", {"crank": [1.0, 1.05]}, record={"end": Final("rocker")}, **OPTIONS)
    part = usual._source.run(0, usual.design.rows(0, 2))
    assert part.status.tolist() == ["ok", "ok"]
    entry = mechanisms.entry("four_bar")
    open_loop = np.concatenate(entry.start(entry.model()))
    given = Study("four_bar", {"crank": [1.0, 1.05]}, start=open_loop, **OPTIONS)
    part = given._source.run(0, given.design.rows(0, 2))
    assert part.status.tolist() == ["ok", "start"]  # these loops are closed for one length only
    assert "has a gap" in part.message[1]


def test_the_other_branch_is_told():
    """The mirror image of a linkage closes as well, but is another one."""
    from featherstep.study.working.suppliers import OfFamily

    study = Study(
        "four_bar", {"crank": [1.0, 1.0, 1.0], "elbow": [-0.6, -0.7, 2.6]},
        start=Assembled(fixed={"crank": 0.9}, guess={"coupler": "elbow", "rocker": "elbow"}),
        **OPTIONS,
    )  # fmt: skip
    assert isinstance(study._source.supplier, OfFamily)
    fast = study._source.run(0, study.design.rows(0, 3))
    slow = OneByOne(study.plan).run(0, study.design.rows(0, 3))
    assert fast.status.tolist() == slow.status.tolist()
    told = [m for m in fast.message if "another branch" in m]
    assert len(told) == sum("another branch" in m for m in slow.message)


def test_forces_of_the_parameters_in_lanes():
    def torque(t, q, v, p):
        return np.array([p[0] - p[1] * v[0]])

    study = Study(
        "pendulum", {"push": Uniform(1, 3), "drag": Uniform(0.2, 0.5), "mass": Normal(2, 0.1)},
        n=5, seed=4, tau=torque, fixed={"gravity": 0.0}, start=[0.0, 0.0],
        record={"v": Final("d(bob)")}, t_span=(0, 1), rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    assert study._source.lanes
    rows = study.design.rows(0, 5)
    found = study._source.run(0, rows).values["v"]
    exact = rows["push"] / rows["drag"] * (1 - np.exp(-rows["drag"] / rows["mass"]))
    assert np.allclose(found, exact, rtol=1e-8)


def test_other_structures_have_a_model_each():
    def chain(links):
        return mechanisms.get("n_pendulum", n=round(links))

    study = Study(chain, {"links": [1, 2]}, t_span=(0, 0.1), record={"end": Final(0)})
    assert isinstance(study._source, OneByOne)
    assert "model of its own" in study.engine
    part = study._source.run(0, study.design.rows(0, 2))
    assert part.status.tolist() == ["ok", "ok"]


def test_turning_points_of_a_slider_crank():
    """Extremes along a run, wherever they fall among its steps: √((b ± a)² − e²)."""
    a, b, e = np.array([0.15, 0.14978, 0.151]), 0.2997, np.array([0.0, -0.00085, 0.002])
    study = Study(
        "slider_crank", {"crank": a, "offset": e}, fixed={"rod_length": b}, t_span=(0, 0.08),
        start=Assembled(fixed={"crank": 0.2}, speeds={"crank": 100.0}), rtol=1e-9, atol=1e-11,
        record={"out": Max(position("slider", "x")), "in": Min(position("slider", "x")),
                "pin": Max(loop_force("pin")), "energy": Mean(energy("kinetic"))},
    )  # fmt: skip
    rows = study.design.rows(0, 3)
    part = study._source.run(0, rows)
    assert np.allclose(part.values["out"], np.sqrt((b + a) ** 2 - e**2), rtol=1e-8, atol=0.0)
    assert np.allclose(part.values["in"], np.sqrt((b - a) ** 2 - e**2), rtol=1e-8, atol=0.0)
    slow = OneByOne(study.plan).run(0, {name: column[:1] for name, column in rows.items()})
    for name in ("pin", "energy"):
        assert part.values[name][0] == pytest.approx(slow.values[name][0], rel=1e-6)
    traced = study._source.supplier.fast
    assert {type(quantity).__name__ for quantity in traced} == {"PointOf", "JointLoad", "EnergyOf"}
