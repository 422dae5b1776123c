"""Pictures and reports say what the table says; Sobol's indices against what is known exactly."""

import re

import numpy as np
import pytest

from featherstep import EventTime, Final, Max, Study, Uniform, reaction
from integrators import IVP


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    study = Study(
        "pendulum", {"length": Uniform(0.9, 1.1), "mass": Uniform(1, 2)}, n=64, seed=1,
        sampling="saltelli", start={"bob": 2.0}, t_span=(0, 1), rtol=1e-7,
        record={"pull": Max(reaction("bob")), "t": EventTime("bob", direction=-1)}, outputs=20,
    )  # fmt: skip
    return study.run(tmp_path_factory.mktemp("a") / "a.study", workers=1)


@pytest.mark.parametrize("kind", ["overview", "marginals", "scatter", "sobol", "bands", "worst"])
def test_every_kind_is_drawn(study, kind, tmp_path):
    figure = study.plot(kind)
    figure.savefig(tmp_path / "a.png", dpi=40)
    labels = " ".join(ax.get_xlabel() + ax.get_ylabel() for ax in figure.axes)
    expected = {"bands": "bob.angle in rad", "worst": "t in s", "sobol": "variance\nof pull"}
    assert expected.get(kind, "pull in N") in labels


def test_pictures_of_failures(tmp_path):
    def f(t, y, p):
        return y * p[0]

    ivp = IVP(f, [1.0], (0, 1), params=[1.0])
    study = Study(ivp, {"p[0]": [1.0, np.nan, 2.0], "x": [1.0, 2.0, np.nan]}, start=["x"],
                  record={"end": Final(0)}).run(tmp_path / "a.study", workers=1)  # fmt: skip
    figure = study.plot()
    assert "2 failed" in figure.get_suptitle()
    marks = [line for ax in figure.axes for line in ax.lines if line.get_marker() == "x"]
    assert [len(line.get_xdata()) for line in marks] == [1, 1]  # where the parameter is known


def test_the_report_stands_alone(study, tmp_path):
    path = study.report(tmp_path / "pendulum.html", animations=1)
    text = path.read_text(encoding="utf-8")
    worst = study.worst("pull", 1)[0]
    assert f'<a href="pendulum_runs/run_{worst}.html">{worst}</a>' in text
    assert (tmp_path / "pendulum_runs" / f"run_{worst}.html").is_file()
    assert not re.search(r'(src|href)="http', text)
    assert study.hash in text
    with pytest.raises(ValueError, match="HTML file"):
        study.report(tmp_path / "a.pdf")


def test_indices_of_a_pendulum(study):
    """The pull is m·g·(3 − 2 cos 2), whatever the length; the time is ∝ √L, whatever the mass."""
    pull, t = study.sobol("pull"), study.sobol("t")
    assert np.abs(pull.total[0]) < 1e-9 < pull.total[1]
    assert np.abs(t.total[1]) < 1e-9 < t.total[0]
    with pytest.raises(ValueError, match="no recorded value"):
        study.sobol("pul")


def test_indices_of_ishigami(tmp_path):
    """Ishigami and Homma 1990: a = 7, b = 0.1; V and its parts in closed form."""

    def f(t, y, p):
        return np.array([np.sin(p[0]) + 7 * np.sin(p[1]) ** 2 + 0.1 * p[2] ** 4 * np.sin(p[0])])

    law = Uniform(-np.pi, np.pi)
    study = Study(
        IVP(f, [0.0], (0, 1), params=[0.0, 0.0, 0.0]), {f"p[{i}]": law for i in range(3)},
        n=5 * 1024, seed=2, sampling="saltelli", record={"y": Final(0)}, rtol=1e-6,
    ).run(tmp_path / "a.study", workers=1)  # fmt: skip
    found = study.sobol("y")
    a, b = 7.0, 0.1
    v1 = 0.5 * (1 + b * np.pi**4 / 5) ** 2
    v2, v13 = a**2 / 8, b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    total = v1 + v2 + v13
    assert np.allclose(found.first, np.array([v1, v2, 0.0]) / total, atol=0.03)
    assert np.allclose(found.total, np.array([v1 + v13, v2, v13]) / total, atol=0.03)
    assert (found.total_error < 0.1).all()
    SALib = pytest.importorskip("SALib.analyze.sobol")
    problem = {"num_vars": 3, "names": list("abc"), "bounds": [[-np.pi, np.pi]] * 3}
    theirs = SALib.analyze(problem, study.columns()["y"], calc_second_order=False, seed=1)
    assert np.allclose(found.total, theirs["ST"], atol=0.01)


def test_indices_need_their_design(tmp_path):
    study = Study("pendulum", {"mass": [1.0, 2.0]}, t_span=(0, 0.1), traced=False,
                  record={"end": Final("bob")}).run(tmp_path / "a.study", workers=1)  # fmt: skip
    with pytest.raises(ValueError, match="sampling='saltelli'"):
        study.sobol("end")
    with pytest.raises(ValueError, match="did you mean marginals"):
        study.plot("marginal")
    with pytest.raises(ValueError, match="no trajectories"):
        study.plot("bands")
