"""FMUs, run by FMPy: the same motion as here, inputs, parameters, kept states, refusals."""

from __future__ import annotations

import shutil
import zipfile

import numpy as np
import pytest

from integrators import IVP, solve
from integrators.fmi import export_fmu

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
KINDS = ("CoSimulation", "ModelExchange")


def van_der_pol():
    def f(t, y, p):
        return [y[1], p[0] * (1 - y[0] ** 2) * y[1] - y[0] + p[1]]

    return IVP(f, [2.0, 0.0], (0.0, 5.0), [1.0, 0.0], name="van der Pol 2")


@pytest.fixture(scope="module")
def oscillator(tmp_path_factory):
    file = tmp_path_factory.mktemp("fmu") / "oscillator.fmu"
    laws = {
        "energy": lambda t, y: 0.5 * (y[0] ** 2 + y[1] ** 2),
        "power": lambda t, y, p: p[1] * y[1],
    }
    return export_fmu(
        van_der_pol(), file, parameters=["mu", "u"], inputs=["u"], outputs=laws, rtol=1e-9,
        atol=1e-11, units={"energy": "J"},
    )  # fmt: skip


def test_it_is_valid(oscillator):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(oscillator)) == []
    described = fmpy.read_model_description(str(oscillator))
    kinds = {v.name: v.causality for v in described.modelVariables}
    assert kinds["mu"] == "parameter"
    assert kinds["u"] == "input"
    assert kinds["y[0]"] == kinds["energy"] == "output"
    assert described.modelName == "van der Pol 2"
    assert described.coSimulation.modelIdentifier == "van_der_Pol_2"
    assert "sources/van_der_Pol_2.c" in zipfile.ZipFile(oscillator).namelist()


@pytest.mark.parametrize("kind", KINDS)
def test_it_moves_as_here(oscillator, kind):
    """With another parameter and start, and an input (which FMPy holds between its steps)."""
    given = np.array([(0.0, 0.4), (5.0, 0.4)], dtype=[("time", "f8"), ("u", "f8")])
    rows = fmpy.simulate_fmu(
        str(oscillator), fmi_type=kind, stop_time=5.0, output_interval=0.01, input=given,
        start_values={"mu": 2.0, "y[0]": 1.5}, relative_tolerance=1e-9,
    )  # fmt: skip
    problem = van_der_pol()

    def f(t, y):
        return problem.f(t, y, [2.0, 0.4])

    there = solve(f, (0.0, 5.0), [1.5, 0.0], method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([rows["y[0]"][-1], rows["y[1]"][-1]], there, atol=1e-6)
    np.testing.assert_allclose(rows["power"], 0.4 * rows["y[1]"], rtol=1e-12)
    energy = 0.5 * (rows["y[0]"] ** 2 + rows["y[1]"] ** 2)
    np.testing.assert_allclose(rows["energy"], energy, rtol=1e-12)


def test_states_are_kept_and_steps_repeated(oscillator, tmp_path):
    from fmpy.fmi3 import FMU3Slave

    described = fmpy.read_model_description(str(oscillator))
    folder = fmpy.extract(str(oscillator), str(tmp_path))
    fmu = FMU3Slave(
        guid=described.guid, unzipDirectory=folder, instanceName="one",
        modelIdentifier=described.coSimulation.modelIdentifier,
    )  # fmt: skip
    fmu.instantiate()
    fmu.enterInitializationMode(startTime=0.0)
    fmu.exitInitializationMode()
    fmu.doStep(0.0, 1.0)
    kept = fmu.getFMUState()
    fmu.doStep(1.0, 1.0)
    first = fmu.getFloat64([0, 1, 2])
    fmu.setFMUState(kept)
    assert fmu.getFloat64([0])[0] == 1.0
    fmu.doStep(1.0, 1.0)
    assert fmu.getFloat64([0, 1, 2]) == first
    again = fmu.deserializeFMUState(fmu.serializeFMUState(kept))
    fmu.setFMUState(again)
    fmu.doStep(1.0, 1.0)
    assert fmu.getFloat64([0, 1, 2]) == first
    fmu.freeFMUState(kept)
    fmu.freeFMUState(again)
    reference = solve(van_der_pol(), (0.0, 2.0), rtol=1e-11, atol=1e-12, method="DOP853").y[:, -1]
    np.testing.assert_allclose(first[1:], reference, atol=1e-7)
    fmu.reset()
    assert fmu.getFloat64([1, 2]) == [2.0, 0.0]
    for wrong in (lambda: fmu.getFloat64([99]), lambda: fmu.setFloat64([1], [float("nan")])):
        with pytest.raises(Exception, match="fmi3"):
            wrong()
    fmu.terminate()
    fmu.freeInstance()


def test_a_blow_up_is_an_error(tmp_path):
    file = export_fmu(IVP(lambda t, y: [y[0] ** 2], [1.0], (0.0, 2.0)), tmp_path / "blow.fmu")
    with pytest.raises(Exception, match="fmi3DoStep"):
        fmpy.simulate_fmu(str(file), fmi_type="CoSimulation", stop_time=2.0, output_interval=2.0)


def test_what_is_refused(tmp_path, monkeypatch):
    problem = van_der_pol()
    file = tmp_path / "x.fmu"
    for wrong, words in (
        (lambda: export_fmu(problem, tmp_path / "x.zip"), "ends in .fmu"),
        (lambda: export_fmu(problem, file, parameters=["a"]), "2 names"),
        (lambda: export_fmu(problem, file, inputs=["a"]), "no parameter"),
        (lambda: export_fmu(problem, file, parameters=["y[0]", "b"]), "two variables"),
        (lambda: export_fmu(problem, file, rtol=0.0), "rtol"),
        (lambda: export_fmu(problem, file, units={"y[0]": "furlong"}), "units"),
        (lambda: export_fmu(problem, file, outputs={"g": lambda t, y: y}), "one number"),
        (lambda: export_fmu(problem, file, compiler="no-such-compiler"), "no program"),
        (lambda: export_fmu(problem.with_(project=lambda t, y, p: y), file), "cannot be traced"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()
    with pytest.raises(TypeError, match="expected an IVP"):
        export_fmu(lambda t, y: y, file)
    assert not file.exists()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.warns(UserWarning, match="source only"):
        export_fmu(problem, file)
    assert not any("binaries" in name for name in zipfile.ZipFile(file).namelist())
