"""Mass matrices: regular ones for every method, singular ones for those that can."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csc_matrix

from integrators import IVP, solve, traced

MASS = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
STIFFNESS = np.array([[-3.0, 1.0, 0.0], [1.0, -2.0, 1.0], [0.0, 1.0, -4.0]])
START = [1.0, 0.5, -0.3]
EXACT = expm(2 * np.linalg.solve(MASS, STIFFNESS)) @ START

EXPLICIT_PARTS = ["DOPRI5", "RK4", "Kvaerno5", "TRBDF2", "LobattoIIIA3", "LobattoIIIB3", "Taylor"]


def linear(t, y):
    return np.array([row @ y for row in STIFFNESS])


@pytest.mark.parametrize("method", [*EXPLICIT_PARTS, "RADAU5", "Gauss4", "SDIRK4"])
@pytest.mark.parametrize("f", [linear, traced(linear, n=3)], ids=["function", "traced"])
def test_a_regular_mass_matrix_is_no_obstacle(method, f):
    solution = solve(IVP(f, START, (0, 2), mass=MASS), method=method, rtol=1e-7, atol=1e-9)
    assert solution.success
    assert solution.y[:, -1] == pytest.approx(EXACT, abs=1e-5)


@pytest.mark.parametrize("method", ["DOPRI5", "Kvaerno5"])
@pytest.mark.parametrize("jac", [None, STIFFNESS, lambda t, y, p: p[0] * STIFFNESS])
def test_with_parameters_jacobians_and_sparse_matrices(method, jac):
    problem = IVP(
        lambda t, y, p: p[0] * (STIFFNESS @ y), START, (0, 2), params=[1.0],
        mass=csc_matrix(MASS), jac=jac,
    )  # fmt: skip
    solution = solve(problem, method=method, rtol=1e-7, atol=1e-9, dense_output=True)
    assert solution.y[:, -1] == pytest.approx(EXACT, abs=1e-5)
    middle = expm(np.linalg.solve(MASS, STIFFNESS)) @ START
    assert solution.sol(1.0) == pytest.approx(middle, abs=1e-4)


def circle(t, y):
    """y₀' = y₁ with y₁ = −y₀ as an algebraic equation of index 1: y₀ = exp(−t)."""
    return np.array([y[1], y[0] + y[1]])


@pytest.mark.parametrize("method", ["Gauss2", "Gauss4", "ImplicitMidpoint", "LobattoIIID3"])
def test_methods_that_do_not_damp_are_refused_at_index_one(method):
    problem = IVP(circle, [1.0, -1.0], (0, 1), mass=np.diag([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"R\(∞\).*use RADAU5"):
        solve(problem, method=method)
    fixed = solve(problem, method=method, step=0.01)  # to study them
    assert fixed.y[0, -1] == pytest.approx(np.exp(-1), abs=1e-4)
    good = solve(problem, method="RADAU5", rtol=1e-8)
    assert good.y[:, -1] == pytest.approx([np.exp(-1), -np.exp(-1)], abs=1e-6)


@pytest.mark.parametrize("method", ["DOPRI5", "Kvaerno5", "LobattoIIIA3", "Taylor"])
def test_a_singular_one_is_refused_by_methods_that_need_slopes(method):
    problem = IVP(circle, [1.0, -1.0], (0, 1), mass=np.diag([1.0, 0.0]))
    with pytest.raises(ValueError, match="mass matrix"):
        solve(problem, method=method)
