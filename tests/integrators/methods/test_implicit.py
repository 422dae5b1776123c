"""Implicit methods: Jacobians, linear algebra, mass matrices, couplings of the stages."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csc_matrix, diags_array, issparse

from integrators import Status, Tableau, catalogue, problems, solve, traced
from integrators.methods.runge_kutta.implicit.algebra import column_groups
from integrators.methods.runge_kutta.implicit.inside import weighted

FAMILIES = ["RadauIIA3", "Gauss2", "LobattoIIIC3", "RadauIA2", "SDIRK4", "Kvaerno5", "TRBDF2"]


def heat(n):
    """y' = n² (second difference of y): linear, sparse, stiff."""
    matrix = n * n * diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsc()
    return matrix, np.sin(np.pi * np.arange(1, n + 1) / (n + 1))


@pytest.mark.parametrize("method", FAMILIES)
@pytest.mark.parametrize("n", [20, 60])  # our own LU, and LAPACK through the callback
def test_dense_sparse_given_and_found_jacobians_agree(method, n):
    matrix, y0 = heat(n)
    options = dict(method=method, rtol=1e-6, atol=1e-9)
    variants = {
        "differences": {"linear_solver": "dense"},  # else the pattern would be found
        "groups": {"jac_sparsity": matrix},
        "dense": {"jac": matrix.toarray()},
        "sparse": {"jac": matrix},
        "function": {"jac": lambda t, y: matrix},
    }
    ends = {}
    for name, extra in variants.items():
        solution = solve(lambda t, y: matrix @ y, (0, 0.1), y0, **options, **extra)
        assert solution.success, (name, solution.message)
        ends[name] = solution
    rate = 4 * n * n * np.sin(np.pi / (2 * (n + 1))) ** 2
    exact = np.exp(-0.1 * rate) * y0
    for name, solution in ends.items():
        assert np.max(np.abs(solution.y[:, -1] - exact)) < 1e-4, name
        assert abs(solution.nsteps - ends["dense"].nsteps) <= 2, name
    # Three groups of columns instead of n columns.
    saved = ends["differences"].nfev - ends["groups"].nfev
    assert saved > (n - 10) * ends["differences"].njev


def test_groups_of_columns_share_no_row():
    rng = np.random.default_rng(0)
    pattern = csc_matrix(rng.random((40, 40)) < 0.08)
    groups = column_groups(pattern)
    assert sorted(np.concatenate(groups)) == list(range(40))
    dense = pattern.toarray()
    for group in groups:
        assert dense[:, group].sum(axis=1).max() <= 1


def test_large_sparse_problem():
    problem = problems.get("brusselator_1d", n=500)
    solution = solve(problem, (0, 1), method="RADAU5", rtol=1e-5, atol=1e-7)
    again = solve(problem, (0, 1), method="RADAU5", rtol=1e-8, atol=1e-10)
    assert solution.success
    assert issparse(problem.jac(0.0, problem.y0))
    assert np.max(np.abs(solution.y[:, -1] - again.y[:, -1])) < 1e-3


def test_cyclic_coordinate_does_not_overflow_the_differences():
    # f does not depend on y[0], whose finite-difference quotients are exactly zero.
    solution = solve(
        lambda t, y: np.array([y[1], -1000 * (y[1] - np.cos(t))]), (0, 500), [0.0, 1.0],
        method="RADAU5", rtol=1e-5, atol=1e-7,
    )  # fmt: skip
    assert solution.success
    assert solution.y[0, -1] == pytest.approx(np.sin(500.0), abs=1e-2)


def test_differences_step_back_from_the_edge_of_the_domain():
    # √(1 − y): the forward difference at y = 1 is NaN, the backward one is not.
    def edge(t, y):
        return np.array([-np.sqrt(1 - y[0]) - 1.0 + 0 * y[0]]) if y[0] <= 1 else np.array([np.nan])

    solution = solve(edge, (0, 0.5), [1.0], method="RADAU5", rtol=1e-5)
    assert solution.success


@pytest.mark.parametrize("method", ["RadauIIA3", "LobattoIIIC3", "SDIRK4", "Gauss2"])
def test_regular_mass_matrix(method):
    mass = np.array([[2.0, 1.0], [0.0, 4.0]])
    A = np.array([[-1.0, 3.0], [-3.0, -1.0]])
    with_mass = solve(
        lambda t, y: A @ y, (0, 2), [1.0, 0.0], method=method, mass=mass, rtol=1e-8, atol=1e-10
    )
    B = np.linalg.solve(mass, A)
    plain = solve(lambda t, y: B @ y, (0, 2), [1.0, 0.0], method="DOP853", rtol=1e-10, atol=1e-12)
    assert np.allclose(with_mass.y[:, -1], plain.y[:, -1], atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_singular_mass_matrix_is_a_dae(sparse):
    problem = problems.get("robertson_dae").with_(t_span=(0.0, 40.0))
    mass = csc_matrix(problem.mass) if sparse else problem.mass
    solution = solve(problem.with_(mass=mass), method="RADAU5", rtol=1e-8, atol=1e-12)
    reference = problems.get("robertson").reference(40.0)
    assert np.allclose(solution.y[:, -1], reference, rtol=1e-6)
    assert abs(np.sum(solution.y[:, -1]) - 1) < 1e-12


def test_inconsistent_start_is_refused():
    problem = problems.get("robertson_dae")
    with pytest.raises(ValueError, match=r"inconsistent initial values.*violated by 0\.5"):
        solve(problem, y0=[1.0, 0.0, 0.5], method="RADAU5")


@pytest.mark.parametrize("name", ["LobattoIIIA3", "LobattoIIICStar4", "TRBDF2"])
def test_explicit_stages_do_not_go_with_a_singular_mass_matrix(name):
    """Also where the eigenvalue 0 of A is that of a Jordan block, and off by rounding."""
    with pytest.raises(ValueError, match="explicit stage"):
        solve(problems.get("robertson_dae"), method=name)


def test_tableau_that_cannot_be_diagonalised():
    # Two equal stages of implicit Euler type coupled by a Jordan block; order 1.
    jordan = Tableau([["1/2", "1/2"], [0, "1/2"]], ["1/2", "1/2"], name="Jordan")
    assert jordan.is_fully_implicit
    problem = problems.get("order_rational")
    t0, t1 = problem.t_span
    exact = problem.exact(t1)
    errors = [
        np.max(np.abs(solve(problem, method=jordan, step=(t1 - t0) / k).y[:, -1] - exact))
        for k in (100, 200)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(jordan.order, abs=0.2)


def test_twelve_stages():
    problem = problems.get("kepler")
    solution = solve(problem, method="Gauss12", step=0.5)
    assert solution.success
    assert np.max(np.abs(solution.y[:, -1] - problem.exact(problem.t_span[1]))) < 1e-9


def test_singular_newton_matrix_is_reported():
    # M = 0 and f independent of y: no equation for y at all.
    solution = solve(
        lambda t, y: np.zeros(1), (0, 1), [1.0], method="RADAU5", mass=np.zeros((1, 1))
    )
    assert solution.status == Status.SINGULAR_MATRIX
    assert "singular" in solution.message


def test_jacobian_that_returns_nonsense():
    with pytest.raises(ValueError, match="1×1 matrix"):
        solve(lambda t, y: -y, (0, 1), [1.0], method="RADAU5", jac=lambda t, y: np.ones((2, 2)))
    solution = solve(lambda t, y: -y, (0, 1), [1.0], method="RADAU5", jac=lambda t, y: [[np.nan]])
    assert solution.status == Status.FUNCTION_RAISED
    assert "NaN" in str(solution.exception)


@pytest.mark.parametrize("s", [2, 3, 4, 5])
def test_error_estimates_of_fully_implicit_families_work(s):
    problem = problems.get("order_trigonometric")
    exact = problem.exact(problem.t_span[1])
    for family in ("Gauss", "RadauIA", "RadauIIA", "LobattoIIIA", "LobattoIIIC", "LobattoIIID"):
        solution = solve(problem, method=f"{family}{s}", rtol=1e-7, atol=1e-9)
        assert solution.success
        assert solution.error_estimate
        assert np.max(np.abs(solution.y[:, -1] - exact)) < 1e-4, family
    assert catalogue.get(f"RadauIIA{s}").order == 2 * s - 1


@pytest.mark.parametrize("method", ["RADAU5", "SDIRK4", "RadauVariable", "BDF"])
def test_sparse_mass_with_a_dense_jacobian(method):
    mass = csc_matrix(np.diag([2.0, 1.0]))
    solution = solve(
        lambda t, y: np.array([2 * y[1], -y[0]]), (0, 1), [1.0, 0.0], mass=mass, method=method,
        rtol=1e-8,
    )  # fmt: skip
    assert solution.success, solution.message
    assert solution.y[0, -1] == pytest.approx(np.cos(1), abs=1e-6)


def test_order_zero_is_refused_with_adaptive_steps():
    wrong = Tableau([[], ["1/2"]], ["1", "1"], name="wrong")
    with pytest.raises(ValueError, match="order 0"):
        solve(lambda t, y: -y, (0, 1), [1.0], method=wrong)
    assert solve(lambda t, y: -y, (0, 1), [1.0], method=wrong, step=0.1).nsteps == 10


def reaction_chain(t, y):
    return -1e3 * y**3 + np.roll(y, 1)


@pytest.mark.parametrize("method", ["RADAU5", "SDIRK4", "RadauVariable", "LobattoIIIC3", "BDF"])
@pytest.mark.parametrize("n", [40, 41])
def test_large_traced_systems_have_exact_jacobians(method, n):
    """No evaluation of f is spent on differences, on either side of where LAPACK takes over."""
    y0 = np.linspace(0.5, 1, n)
    plain = solve(reaction_chain, (0, 0.01), y0, method=method, linear_solver="dense")
    exact = solve(traced(reaction_chain, n=n), (0, 0.01), y0, method=method)
    assert (exact.nsteps, exact.njev) == (plain.nsteps, plain.njev)
    assert exact.nfev == plain.nfev - plain.njev * (n + 1)
    np.testing.assert_allclose(exact.y[:, -1], plain.y[:, -1], rtol=1e-12)


@pytest.mark.parametrize(
    "how", [{"jac_sparsity": np.ones((3, 3))}, {"mass": csc_matrix(np.eye(3))}]
)
def test_sparse_traced_systems_have_exact_jacobians(how):
    f, y0 = traced(reaction_chain, n=3), [0.5, 0.7, 1.0]
    plain = solve(reaction_chain, (0, 0.01), y0, method="RADAU5", rtol=1e-10, atol=1e-12)
    exact = solve(f, (0, 0.01), y0, method="RADAU5", rtol=1e-10, atol=1e-12, **how)
    assert exact.nfev < plain.nfev - 3 * exact.njev
    np.testing.assert_allclose(exact.y[:, -1], plain.y[:, -1], rtol=1e-9)


def test_exact_columns_follow_the_parameters():
    f = traced(lambda t, y, p: -p[0] * y**3 + np.roll(y, 1), n=60, params=1)
    y0 = np.linspace(0.5, 1, 60)
    for k in (1.0, 1e3):
        options = dict(method="RADAU5", rtol=1e-10, atol=1e-12)
        exact = solve(f, (0, 0.01), y0, params=[k], **options)
        plain = solve(lambda t, y, k=k: -k * y**3 + np.roll(y, 1), (0, 0.01), y0, **options)
        np.testing.assert_allclose(exact.y[:, -1], plain.y[:, -1], rtol=1e-12)
        assert exact.njev == plain.njev


@pytest.mark.parametrize("n", [41, 120])
def test_infinite_slopes_of_large_traced_systems(n):
    """Where a slope is infinite, differences serve as they do for a plain function."""
    y0 = np.linspace(0, 1, n)
    run = solve(
        traced(lambda t, y: -np.sqrt(np.abs(y)), n=n), (0, 0.5), y0, method="RADAU5", rtol=1e-5
    )
    assert run.success, run.message
    above = y0 > 0.1  # until √y = √y₀ − t/2 comes to zero it is exact
    exact = np.maximum(np.sqrt(y0) - 0.25, 0.0) ** 2
    np.testing.assert_allclose(run.y[above, -1], exact[above], atol=1e-4)


def test_defects_after_a_rejection_are_compared_with_those_of_the_last_step():
    """An attempt whose estimate is too large has no look inside; the step before it counts."""
    seen = SimpleNamespace(inside_now=-1.0, inside_steps=-1, inside_before=0.0, nsteps=0)
    seen.inside_length = seen.inside_last_length = 0.0
    seen.inside_weight, seen.inside_strict, seen.inside_power = 1.0, 1.0, 2.0
    weighted(seen, 0.5, 0.1)  # becomes a step
    seen.nsteps, seen.last_rejected = 1, 1  # and the next attempt was rejected before any look
    weighted(seen, 0.2, 0.05)
    assert (seen.inside_before, seen.inside_length) == (0.5, 0.1)
    seen.last_rejected = 0
    weighted(seen, 0.3, 0.05)  # the same step once more
    assert seen.inside_before == 0.5
