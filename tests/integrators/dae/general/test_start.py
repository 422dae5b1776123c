"""Consistent starts against values that can be computed by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from integrators import DAE
from integrators.dae.general import StructureError

from .test_structure import chain, pendulum


@pytest.fixture(scope="module")
def system():
    return DAE(pendulum, names=["x", "z", "lambda"])


def test_fixed_values(system):
    start = system.consistent(t=0, fixed={"x": 0.6, "x'": 2.0}, guess={"z": -1.0})
    z, speed = -0.8, 2.0 * 0.6 / 0.8
    assert start["z"] == pytest.approx(z, abs=1e-15)
    assert start["z'"] == pytest.approx(speed, abs=1e-14)
    tension = 2.0**2 + speed**2 - 9.81 * z  # λ = v² − g z on the unit circle
    assert start["lambda"] == pytest.approx(tension, abs=1e-13)
    assert max(map(abs, start.residuals.values())) < 1e-13
    assert set(start.residuals) == {"f0", "f1", "f2", "f2'", "f2''"}


def test_example_of_a_pendulum_at_rest(system):
    """x = 1 is the end of the circle: fixing it leaves z no choice, and nothing is divided by z."""
    start = system.consistent(t=0, fixed={"x": 1.0, "x'": 0.0}, guess={"lambda": 0.0})
    expected = {"x": 1.0, "z": 0.0, "lambda": 0.0, "x'": 0.0, "z'": 0.0, "x''": 0.0, "z''": -9.81}
    assert start.values == pytest.approx(expected, abs=1e-14)


def test_least_change(system):
    """Guesses for position and velocity: the point of all consistent ones that is nearest."""
    start = system.consistent(guess={"x": 3.0, "z": -4.0, "x'": 1.0, "z'": 1.0})

    def distance(angle):  # the velocity loses its normal part
        x, z = np.cos(angle), np.sin(angle)
        return (x - 3.0) ** 2 + (z + 4.0) ** 2 + (x + z) ** 2

    angle = minimize_scalar(distance, bounds=(-1.5, 0.0), method="bounded", options={"xatol": 1e-9})
    found = np.arctan2(start["z"], start["x"])
    assert found == pytest.approx(angle.x, abs=1e-3)
    assert start["x'"] == pytest.approx(1.0 - (start["x"] + start["z"]) * start["x"], abs=1e-3)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"x": 2.0}, r"f2 = 3 stays"),
        ({"x": 0.6, "z": 0.7}, r"f2 = -0.15 stays"),
        ({"x": 0.6, "z": 0.8, "x'": 1.0, "z'": 1.0}, r"f2' = 2.8 stays"),
        ({"x": 0.6, "z": -0.8, "x'": 0.0, "lambda": 1.0}, r"x = 0.6, .* fixed: residual"),
        ({"x'''": 1.0}, "highest derivative of x is x''"),
        ({"y": 1.0}, "no value of a start"),
        ({"x": np.nan}, "finite"),
        ({"x": "one"}, "x = 'one'; expected a finite number"),
        ([1.0] * 9, "9 values for 3 unknowns"),
    ],
)
def test_refusals(system, fixed, message):
    with pytest.raises(ValueError, match=message):
        system.consistent(fixed=fixed)


def test_fixed_and_guessed_at_once(system):
    with pytest.raises(ValueError, match="both fixed and guessed"):
        system.consistent(fixed={"x": 1.0}, guess={"x": 1.0})


def test_continuation_and_a_time_that_is_none(system):
    """z³ − 2z + 2 = 0: Newton's method from 0 goes back and forth between 0 and 1."""
    cycle = DAE(lambda t, y, d: [d[0] - y[1], y[1] ** 3 - 2 * y[1] + 2 - y[0]], names="x z")
    start = cycle.consistent(fixed={"x": 0.0}, guess={"z": 0.0})
    assert start["z"] == pytest.approx(-1.7692923542386314)
    assert "found by continuation" in str(start)
    with pytest.raises(ValueError, match="finite time"):
        system.consistent(t=np.nan, fixed={"x": 1.0})


def test_singular_point():
    """x ẋ = 1 has no derivative at x = 0; there, J = x is singular."""
    root = DAE(lambda t, y, d: [y[0] * d[0] - y[0]], names=["x"])
    with pytest.raises(StructureError, match=r"singular at the start.* f0 .* of x"):
        root.consistent(fixed={"x": 0.0})


def test_high_index():
    system = chain(3)
    start = system.consistent(fixed={"y0": 0.6, "y0'": 0.0, "y3": 0.5, "y3'": 0.1, "y6": 0.4},
                              guess={"y1": -0.8, "y4": -1.0, "y7": -1.0})  # fmt: skip
    assert max(map(abs, start.residuals.values())) < 1e-10
    assert start["y1"] == pytest.approx(-0.8, abs=1e-14)
    assert start["y4"] ** 2 + 0.25 == pytest.approx((1 + 0.1 * start["y2"]) ** 2)


def test_parameters():
    system = DAE(lambda t, y, d, p: [d[0] + p[0] * y[0], y[1] - y[0] ** 2], n=2, params=[2.0])
    assert system.consistent(fixed={"y0": 3.0})["y0'"] == pytest.approx(-6.0)
    assert system.consistent(fixed={"y0": 3.0}, params=[5.0])["y0'"] == pytest.approx(-15.0)
    with pytest.raises(ValueError, match="expected 1 parameters"):
        system.consistent(params=[1.0, 2.0])


def test_large_and_sparse():
    """A ladder of resistors and capacitors: sparse linear algebra, structure by levels."""
    n = 400

    def ladder(t, y, d):
        v, i = y[:n], y[n:]
        before = np.concatenate([[np.cos(t)], v[:-1]])
        after = np.concatenate([i[1:], [0.0]])
        return np.concatenate([d(v) - i + after, before - v - i])

    system = DAE(ladder, n=2 * n)
    assert (system.structure().index, system.structure().freedoms) == (1, n)
    start = system.consistent(fixed={f"y{k}": 0.0 for k in range(n)})
    assert start[f"y{n}"] == pytest.approx(1.0)
    assert start["y0'"] == pytest.approx(1.0)
