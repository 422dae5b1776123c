"""Initial values of differential-algebraic problems, and what is said about their index."""

import numpy as np
import pytest

from integrators import IVP, solve, traced

MASS = np.diag([1.0, 1.0, 1.0, 1.0, 0.0])
INDEX = [1, 1, 2, 2, 3]


def pendulum(t, y):
    """A point on a circle of radius 1, gravity 9.81 along −y; the multiplier is the tension."""
    x, z, vx, vz, tension = y
    return np.array([vx, vz, -tension * x, -tension * z - 9.81, x**2 + z**2 - 1])


def start(vx, vz):
    """At (1, 0); the multiplier balances the centripetal force."""
    return [1.0, 0.0, vx, vz, vx**2 + vz**2]


@pytest.mark.parametrize("f", [pendulum, traced(pendulum, n=5)], ids=["function", "traced"])
def test_a_velocity_off_the_constraint_is_refused_with_its_residual(f):
    problem = IVP(f, start(3.0, 0.0), (0, 1), mass=MASS, index=INDEX)
    with pytest.raises(ValueError, match=r"hidden constraint.*violated by 6"):  # 2 x·v
        solve(problem, method="RADAU5")
    good = solve(problem, y0=start(0.0, 3.0), method="RADAU5", rtol=1e-8, atol=1e-8)
    assert good.success
    x, z, vx, vz, _ = good.y[:, -1]
    assert x**2 + z**2 == pytest.approx(1, abs=1e-6)
    assert (vx**2 + vz**2) / 2 + 9.81 * z == pytest.approx(4.5, abs=1e-5)


def test_a_constraint_that_moves_asks_for_its_velocity():
    """x = sin t on a slider: at t = 0 the velocity must be 1."""

    def slider(t, y):
        return np.array([y[1], y[2], y[0] - np.sin(t)])

    problem = IVP(slider, [0.0, 1.0, 0.0], (0, 1), mass=np.diag([1.0, 1, 0]), index=[1, 2, 3])
    solution = solve(problem, method="RADAU5", rtol=1e-7, atol=1e-9)
    assert solution.success
    assert solution.y[1, -1] == pytest.approx(np.cos(1.0), abs=1e-4)
    with pytest.raises(ValueError, match=r"hidden constraint.*violated by 0.5"):
        solve(problem, y0=[0.0, 0.5, 0.0], method="RADAU5")


def test_a_wrong_multiplier_is_no_violation():
    """It is determined anew by the first step."""
    problem = IVP(pendulum, [*start(0.0, 3.0)[:4], 8.9], (0, 0.5), mass=MASS, index=INDEX)
    assert solve(problem, method="RADAU5", rtol=1e-6, atol=1e-6).success


def test_a_failure_for_want_of_the_index_says_so():
    problem = IVP(pendulum, start(0.0, 3.0), (0, 2), mass=MASS)
    solution = solve(problem, method="RADAU5", rtol=1e-10, atol=1e-10)
    assert not solution.success
    assert "y[4] free" in solution.message
    assert "index=" in solution.message


def test_index_one_is_left_in_peace():
    """y₂ = y₁² is determined by its equation; a failure there has other causes."""

    def square(t, y):
        return np.array([y[1], y[1] - y[0] ** 2])  # y' = y²: infinite at t = 1

    problem = IVP(square, [1.0, 1.0], (0, 2), mass=np.diag([1.0, 0.0]))
    solution = solve(problem, method="RADAU5")
    assert not solution.success
    assert "index is 2" not in solution.message
