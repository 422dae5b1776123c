"""Studies from the first run to the last: table, store, resuming, failures, files."""

import csv
import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from featherstep import Assembled, At, EventTime, Final, LogUniform, Max, Normal, Study, Uniform
from featherstep.study import StudyInterrupted
from featherstep.study.keeping.store import Store, missing_ranges
from integrators import IVP, solve
from integrators.errors import FileError
from multibody import as_ivp, assemble, mechanisms

from .models import blow_up, decay, problem, same


def lanes(n=300, **options):
    options = {"rtol": 1e-9, "atol": 1e-12, "record": {"end": Final("y")}, **options}
    return Study(problem(), {"rate": Uniform(1, 2)}, parameters=["rate"], n=n, seed=1, **options)


def one_by_one(n=40, **options):
    options = {"rtol": 1e-9, "atol": 1e-12, "record": {"end": Final("y")}, **options}
    options.setdefault("t_span", (0, 1))
    return Study(decay, {"rate": Uniform(1, 2)}, n=n, seed=1, **options)


# ---------------------------------------------------------------------- results


@pytest.mark.parametrize("make", [lanes, one_by_one])
def test_table_has_a_row_for_each_run(make, tmp_path):
    pd = pytest.importorskip("pandas")
    study = make(outputs=5).run(tmp_path / "a.study", workers=1, block=16)
    table = study.table()
    assert list(table.columns) == ["rate", "end", "status", "message", "nsteps", "t_end"]
    assert table.index.equals(pd.RangeIndex(study.n, name="run"))
    assert np.allclose(table["end"], np.exp(-table["rate"]), rtol=1e-8)
    assert (table["status"] == "ok").all()
    assert (table["nsteps"] > 0).all()
    opened = Study.open(tmp_path / "a.study", decay if make is one_by_one else problem())
    assert opened.table().equals(table)
    assert same(opened.columns(), study.columns())
    for k in (0, 17, study.n - 1):
        again = study.rerun(k).row
        assert [repr(again[c]) for c in ("rate", "end")] == [
            repr(table[c][k].item()) for c in ("rate", "end")
        ]
        assert again["nsteps"] == table["nsteps"][k]


def test_trajectories_are_read_when_asked(tmp_path):
    xr = pytest.importorskip("xarray")
    study = lanes(outputs=11).run(tmp_path / "a.study", workers=1)
    data = study.trajectories()
    assert dict(data.sizes) == {"run": 300, "time": 11}
    some = data["y"].isel(run=[3, 250, 7], time=slice(2, 5))
    exact = np.exp(-np.outer(some["rate"], some["time"]))
    assert np.allclose(some, exact, rtol=1e-7)
    assert float(data["y"].sel(run=12, time=0.0)) == 1.0
    assert data["y"].mean("run").shape == (11,)
    assert isinstance(data, xr.Dataset)
    assert data["time"].attrs["units"] == "s"
    zarr = pytest.importorskip("zarr")
    kept = xr.open_zarr(tmp_path / "a.study" / "trajectories.zarr")
    assert zarr.__version__
    assert np.array_equal(kept["y"].sel(state="y").values, data["y"].values)


def test_export(tmp_path):
    pd = pytest.importorskip("pandas")
    study = lanes().run(tmp_path / "a.study", workers=1)
    table = study.table()
    with open(study.export(tmp_path / "a.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["end"]) for row in rows] == table["end"].tolist()
    with np.load(study.export(tmp_path / "a.npz")) as npz:
        assert np.array_equal(npz["column end"], table["end"])
    assert any((tmp_path / "a.study" / f"table.{end}").is_file() for end in ("csv", "parquet"))
    pytest.importorskip("pyarrow")
    parquet = pd.read_parquet(study.export(tmp_path / "a.parquet"))
    assert np.array_equal(parquet["end"], table["end"])
    assert list(parquet["status"]) == list(table["status"])
    with pytest.raises(ValueError, match=r"\.parquet, \.csv, \.npz"):
        study.export(tmp_path / "a.xls")


def test_a_mechanism_with_units(tmp_path):
    study = Study(
        "four_bar", {"crank": Normal(1, 0.02), "angle": Uniform(3.9, 4.1)}, n=3, seed=1,
        start=Assembled(fixed={"crank": "angle"}, speeds={"crank": 1.0}), t_span=(0, 0.1),
        record={"end": Final("crank"), "t": EventTime("crank", value=4.15)}, outputs=3,
        traced=False, rtol=1e-7,
    ).run(tmp_path / "a.study", workers=1)  # fmt: skip
    assert study.failures() == {}
    data = study.trajectories()
    assert data["d(crank.angle)"].attrs["units"] == "rad/s"
    columns = study.columns()
    assert np.allclose(data["crank.angle"][:, 0], columns["angle"])
    assert np.allclose(data["d(crank.angle)"][:, 0], 1.0)
    assert np.array_equal(data["crank.angle"][:, -1], columns["end"])
    assert study.table().attrs["units"] == {"end": "rad", "t": "s"}


# ---------------------------------------------------------------------- failures


BAD = {"rate": [1.0, np.nan, 2.0, 200.0, 3.0, np.inf]}


@pytest.mark.parametrize("what", [decay, problem()])
def test_one_bad_row_fails_alone(what, tmp_path):
    rates = dict(BAD)
    names = {"parameters": ["rate"]} if isinstance(what, IVP) else {}
    study = Study(
        what, rates, t_span=(0, 1), record={"end": Final("y")}, rtol=1e-9, atol=1e-12, **names
    )
    study.run(tmp_path / "a.study", workers=1)
    columns = study.columns()
    good = columns["status"] == "ok"
    expected = [True, False, True, isinstance(what, IVP), True, False]
    assert good.tolist() == expected
    assert np.allclose(columns["end"][good], np.exp(-columns["rate"][good]), rtol=1e-7, atol=1e-11)
    assert np.isnan(columns["end"][~good]).all()
    assert "nan" in study.failures()[1]
    if what is decay:
        assert study.failures()[3] == "build: ArithmeticError: this rate raises"


def test_a_run_that_fails_on_its_way_keeps_what_it_has(tmp_path):
    study = Study(
        blow_up, {"level": [0.5, 2.0]}, t_span=(0, 1), record={"m": Max(0)}, outputs=5,
        max_steps=2000,
    )  # fmt: skip
    study.run(tmp_path / "a.study", workers=1)
    columns = study.columns()
    assert columns["m"][0] == pytest.approx(1.0, rel=1e-4)
    assert columns["status"][1] in ("step_too_small", "nonfinite", "too_many_steps")
    assert columns["nsteps"][1] > 10
    assert columns["t_end"][1] == pytest.approx(0.5, abs=1e-3)
    states = np.asarray(study.trajectories()["y[0]"])
    assert states[1, 1] == pytest.approx(2.0 / (1 - 2.0 * 0.25), rel=1e-3)
    assert np.isnan(states[1, 3:]).all()


def test_a_loop_that_cannot_close_and_a_quantity_that_raises(tmp_path):
    def moody(t, y):
        if y[0] > 3.99:
            raise RuntimeError("not this one")
        return y[0]

    study = Study(
        "four_bar", {"crank": [1.0, 9.0, 1.01], "angle": [3.9, 3.9, 4.0]},
        start=Assembled(fixed={"crank": "angle"}), t_span=(0, 0.05), traced=False,
        record={"m": Final(moody)}, rtol=1e-6,
    ).run(tmp_path / "a.study", workers=1)  # fmt: skip
    columns = study.columns()
    assert columns["status"].tolist() == ["ok", "start", "record"]
    assert "stays open" in columns["message"][1]
    assert "RuntimeError: not this one" in columns["message"][2]


def test_lanes_where_everything_raises_fail_one_by_one(tmp_path):
    def f(t, y, p):
        if p[0] > 1.5:
            raise RuntimeError(f"no {p[0]}")
        return -p[0] * y

    study = Study(
        IVP(f, [1.0], (0, 1), params=[1.0]), {"p[0]": [2.0, 1.0, 3.0]}, record={"end": Final(0)}
    ).run(tmp_path / "a.study", workers=1)  # fmt: skip
    columns = study.columns()
    assert (columns["status"] == "ok").tolist() == [False, True, False]
    assert "no 3.0" in columns["message"][2]


# ---------------------------------------------------------------------- resuming


def test_the_same_call_goes_on(tmp_path):
    whole = one_by_one(outputs=3).run(tmp_path / "whole.study", workers=1, block=7).columns()
    study = one_by_one(outputs=3)
    seen = []

    def stop(progress):
        seen.append(progress.done)
        if progress.done >= 14:
            raise KeyboardInterrupt

    with pytest.raises(StudyInterrupted, match="14 of 40 runs are kept"):
        study.run(tmp_path / "a.study", workers=1, block=7, progress=stop)
    half = Study.open(tmp_path / "a.study")
    assert half.status().done == 14
    assert (half.columns()["status"][14:] == "missing").all()
    assert np.isnan(half.trajectories()["y"][14:]).all()
    again = one_by_one(outputs=3)
    again.run(tmp_path / "a.study", workers=1, block=16, progress=lambda p: seen.append(p.done))
    assert same(again.columns(), whole)
    assert seen[:3] == [0, 7, 14]
    assert seen[-1] == 40
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "a.study" / "parts").iterdir()}
    one_by_one(outputs=3).run(tmp_path / "a.study", workers=1)
    assert before == {f: f.stat().st_mtime_ns for f in (tmp_path / "a.study" / "parts").iterdir()}


def test_another_study_is_refused(tmp_path):
    one_by_one(n=4).run(tmp_path / "a.study", workers=1)
    for other in (one_by_one(n=5), one_by_one(n=4, max_steps=77), one_by_one(n=4, record={})):
        with pytest.raises(ValueError, match="holds another study: "):
            other.run(tmp_path / "a.study", workers=1)
    changed = Study(
        lambda rate: decay(rate), {"rate": Uniform(1, 2)}, n=4, seed=1,
        record={"end": Final("y")}, rtol=1e-9, atol=1e-12, t_span=(0, 1),
    )  # fmt: skip
    with pytest.raises(ValueError, match="subject differ"):
        changed.run(tmp_path / "a.study", workers=1)


def test_two_at_a_time_are_refused(tmp_path):
    study = one_by_one(n=4)
    study.run(tmp_path / "a.study", workers=1)
    with Store.open(tmp_path / "a.study").locked(), pytest.raises(FileError, match="another proc"):
        study.run(tmp_path / "a.study", workers=1)


def test_other_versions_are_told(tmp_path, caplog):
    study = one_by_one(n=2).run(tmp_path / "a.study", workers=1)
    file = tmp_path / "a.study" / "study.json"
    header = json.loads(file.read_text())
    header["versions"]["numpy"] = "0.9"
    file.write_text(json.dumps(header))
    study.run(tmp_path / "a.study", workers=1)
    assert "numpy 0.9" in caplog.text


def test_damaged_folders_are_refused(tmp_path):
    study = one_by_one(n=20).run(tmp_path / "a.study", workers=1, block=10)
    part = sorted((tmp_path / "a.study" / "parts").iterdir())[0]
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(FileError, match="remove the file"):
        study.columns()
    part.unlink()
    assert same(study.run(tmp_path / "a.study", workers=1).columns(), study.columns())
    header = tmp_path / "a.study" / "study.json"
    text = header.read_text()
    for bad, words in ((text[:-30], "header"), (text.replace('"rate"', '"rote"'), "hash")):
        header.write_text(bad)
        with pytest.raises(FileError, match=words):
            Study.open(tmp_path / "a.study")
    with pytest.raises(FileError, match=r"no study\.json"):
        Study.open(tmp_path)


def test_retry_does_what_failed_again(tmp_path, monkeypatch):
    from featherstep.study.working import sources

    with monkeypatch.context() as patch:
        real = sources.OneByOne.made

        def unlucky(self, columns):
            if columns["rate"][0] > 1.5:
                raise MemoryError
            return real(self, columns)

        patch.setattr(sources.OneByOne, "made", unlucky)
        study = one_by_one(outputs=3).run(tmp_path / "a.study", workers=1, block=16)
    failed = (study.columns()["rate"] > 1.5).sum()
    assert study.status().failed == failed > 0
    assert study.failures()[int(np.argmax(study.columns()["rate"]))] == "run: MemoryError"
    assert study.retry(workers=1) == failed
    whole = one_by_one(outputs=3).run(tmp_path / "whole.study", workers=1)
    assert same(study.columns(), whole.columns())
    assert np.array_equal(study.trajectories()["y"], whole.trajectories()["y"])
    assert study.retry(workers=1) == 0


def test_missing_ranges_are_whole():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, unit = int(rng.integers(1, 100)), int(rng.integers(1, 9))
        units = -(-n // unit)
        there = np.flatnonzero(rng.random(units) < 0.5)
        done = [(int(u) * unit, min((int(u) + 1) * unit, n)) for u in there]
        size = int(rng.integers(1, 40))
        found = list(missing_ranges(done, n, size, unit))
        covered = sorted([*done, *found])
        assert covered[0][0] == 0
        assert covered[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(covered))
        assert all(first % unit == 0 and stop - first <= max(size, unit) for first, stop in found)


def test_memory_does_not_grow_with_the_runs(tmp_path):
    """Trajectories of 8 MB in all are written with less than 4 MB."""
    study = lanes(n=20_000, outputs=50, record={"end": Final("y"), "half": At("y", 0.5)})
    study._source.run(0, study.design.rows(0, 64))  # whatever is loaded once
    store = study._open_or_create(tmp_path / "a.study", study._source, 1024)
    from featherstep.study.working.executors import Here
    from featherstep.study.working.running import do_runs

    # Only what is kept and handed on: the runs themselves are replaced by the first ones.
    part = study._source.run(0, study.design.rows(0, 1024))

    class Quick(Here):
        def submit(self, task, plan, key, first, columns):
            from concurrent.futures import Future

            future = Future()
            piece = part.rows(0, len(columns["rate"]))
            piece.first = first
            future.set_result(piece)
            return future

    tracemalloc.start(1)
    do_runs(study.plan, study.hash, store, Quick(), 1024, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert store.counts()[0] == 20_000
    assert peak < 4e6


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("what", "options", "words"),
    [
        ("four_bra", {}, "did you mean four_bar"),
        ("four_bar", {"vary": {"crnk": [1.0]}}, "did you mean crank"),
        ("four_bar", {"rtoll": 1e-8}, "did you mean rtol"),
        ("four_bar", {"events": []}, "record EventTime"),
        ("four_bar", {"t_eval": [1]}, "outputs"),
        ("four_bar", {"fixed": {"crank": 1.0}}, "is varied, too"),
        ("four_bar", {"fixed": {"crnk": 1.0}}, "no parameter 'crnk'"),
        ("four_bar", {"start": Assembled(fixed={"crank": "phi"})}, "no parameter that is varied"),
        ("four_bar", {"outputs": 1}, "≥ 2"),
        ("four_bar", {"outputs": [0.5, 0.2]}, "in order"),
        ("four_bar", {"t_span": (1, 1)}, "two different times"),
        ("four_bar", {"vary": {"crank": [100.0]}}, "do not meet"),
        (3, {}, "a mechanism's name"),
        ("os:system", {}, "would run code"),
        (lambda crank: 3, {"t_span": 1}, "returns a Model or an IVP"),
        (problem(), {"vary": {"p[1]": [1.0]}}, r"it has p\[0\]"),
        (problem(), {"parameters": ["a", "b"], "vary": {"a": [1.0]}}, "expected 1 names"),
        (problem(), {"vary": {"p[0]": [1.0]}, "start": Assembled()}, "is for mechanisms"),
    ],
)
def test_refusals_say_what_to_do(what, options, words):
    options = {"vary": {"crank": [1.0]}, **options}
    with pytest.raises(ValueError, match=words):
        Study(what, **options)


def test_code_that_a_folder_does_not_hold_is_named(tmp_path):
    study = Study(
        "pendulum", {"length": [1.0, 2.0]}, t_span=1, record={"top": Max(lambda t, y: y[0])}
    )
    with pytest.raises(ValueError, match="expected a folder to keep the runs in"):
        study.run()
    study.run(tmp_path / "a.study", workers=1)
    with pytest.raises(ValueError, match=r"code \(top\) that its folder does not hold; say again"):
        Study.open(tmp_path / "a.study").rerun(1)


def test_contacts_are_followed_for_each_model(tmp_path):
    study = Study("bouncing_ball", {"mass": [1.0, 2.0]}, t_span=0.1)
    assert study.engine.endswith("modes of contacts are followed for each model")


def test_a_start_does_not_depend_on_the_other_runs(tmp_path):
    """The crank is kept far from its usual place: Newton's iteration alone takes either branch."""
    ends = []
    for number, cranks in enumerate(([1.0], [1.0, 1.2], [1.0, 1.01, 9.0])):
        study = Study(
            "four_bar",
            {"crank": cranks},
            start=Assembled(fixed={"crank": 4.0}),
            t_span=(0, 0.1),
            record={"end": Final("rocker")},
        )
        study.run(tmp_path / f"{number}.study", workers=1)
        ends.append(study.table().end[0])
    assert np.ptp(ends) < 1e-11  # assembly closes loops to 1e-12, from where the middle one is
    model = mechanisms.four_bar()
    by_hand = np.array(mechanisms.entry("four_bar").start(model)[0])
    for angle in np.linspace(by_hand[0], 4.0, 300):
        by_hand = assemble(model, [angle, *by_hand[1:]], ["crank"]).q
    run = solve(as_ivp(model, by_hand, np.zeros(3), (0, 0.1)), rtol=1e-10)
    assert ends[0] == pytest.approx(run.y[2, -1], abs=1e-5)


def test_one_way_of_closing_a_loop():
    """Assembly from a guess beyond the other branch is told, not taken."""
    study = Study(
        "four_bar", {"elbow": [-0.75, -0.75, 2.5]}, traced=False, t_span=(0, 0.1), rtol=1e-6,
        start=Assembled(fixed={"crank": 0.9}, guess={"coupler": "elbow", "rocker": 0.8}),
    )  # fmt: skip
    rows = [study.rerun(k).row for k in range(3)]
    assert [r["status"] for r in rows[:2]] == ["ok", "ok"]
    assert rows[2]["status"] in ("ok", "start")


def test_entries_of_vectors(tmp_path):
    study = Study(
        "double_pendulum", {"mass[0]": Uniform(1, 2), "mass[1]": LogUniform(1, 2)}, n=3,
        t_span=(0, 0.1), traced=False, rtol=1e-6,
    )  # fmt: skip
    again = study.rerun(2)
    masses = [body.inertia.mass for body in again.model.bodies]
    assert masses == [again.parameters["mass[0]"], again.parameters["mass[1]"]]


def test_model_files_have_their_numbers_as_parameters(tmp_path):
    from multibody import mechanisms, save_model

    save_model(mechanisms.pendulum(), tmp_path / "p.toml")
    name = "bodies.bob.inertia.parameters.0"
    study = Study(str(tmp_path / "p.toml"), {name: [1.0, 2.0]}, t_span=(0, 0.1), traced=False)
    study.run(tmp_path / "a.study", workers=1)
    assert study.rerun(1).model.bodies[0].inertia.mass == 2.0
    (tmp_path / "p.toml").unlink()
    assert Study.open(tmp_path / "a.study").rerun(1).model.bodies[0].inertia.mass == 2.0
    with pytest.raises(ValueError, match="no parameter"):
        Study(study.plan.subject, {"bodies.bob.mas": [1.0]}, t_span=(0, 0.1))


def test_model_files_start_where_they_say_and_events_are_refused(tmp_path):
    from multibody import mechanisms, save_model

    file = tmp_path / "p.toml"
    save_model(mechanisms.pendulum(), file, start=([0.7], [0.2]))
    study = Study(str(file), {"gravity.2": [-9.0, -10.0]}, t_span=(0, 0.1), traced=False)
    assert study.rerun(1).solution.y[:, 0].tolist() == [0.7, 0.2]
    with pytest.raises(ValueError, match=r"no parameter 'start.q"):
        Study(str(file), {"start.q.0": [1.0]}, t_span=(0, 0.1))
    file.write_text(
        f'{file.read_text()}\n[[events]]\nname = "low"\nquantity = "bob"\nterminal = 1\n'
    )
    with pytest.raises(ValueError, match=r"event 'low' .* EventTime"):
        Study(str(file), {"gravity.2": [-9.0]}, t_span=(0, 0.1))


def test_files_of_robots_have_their_numbers_as_parameters(tmp_path):
    file = tmp_path / "box.xml"
    file.write_text(
        "<mujoco><worldbody><body name='box' pos='0 0 2'><freejoint/><geom size='0.1'/></body>"
        "</worldbody></mujoco>"
    )
    study = Study(
        str(file), {"gravity.2": [-9.0, -10.0]}, t_span=(0, 0.1), record={"z": Final("box.p_z")},
        traced=False,
    )  # fmt: skip
    study.run(tmp_path / "a.study", workers=1)
    np.testing.assert_allclose(study.columns()["z"], 2.0 - 0.005 * np.array([9.0, 10.0]))


def test_forces_take_the_parameters():
    def torque(t, q, v, p):
        return np.array([p[0] - p[1] * v[0]])

    study = Study(
        "pendulum", {"push": [3.0], "drag": [0.5], "mass": [2.0]}, tau=torque,
        fixed={"gravity": 0.0}, t_span=(0, 1), start=[0.0, 0.0], record={"v": Final("d(bob)")},
        rtol=1e-10, atol=1e-12, traced=False,
    )  # fmt: skip
    exact = 3.0 / 0.5 * (1.0 - np.exp(-0.5 / 2.0))  # m L² dv/dt = push − drag·v
    assert study.rerun(0).row["v"] == pytest.approx(exact, rel=1e-8)
