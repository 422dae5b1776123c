"""Accelerations under constraints, partitions, consistent starts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import IVP, TracingError, solve
from integrators.dae import Mechanical, accelerations, consistent, partition
from integrators.dae.acceleration import SOLVERS, Eliminated, Factor
from tests.integrators.dae.systems import driven, pendulum, pendulum_exact, squeezer


def random_system(n, m, rank, seed):
    """M, f, G of a given rank, and γ in the range of G; masses from 1e-3 to 1e3."""
    rng = np.random.default_rng(seed)
    scale = np.diag(10.0 ** rng.uniform(-1.5, 1.5, n))
    B = rng.standard_normal((n, n))
    M = scale @ (B @ B.T + n * np.eye(n)) @ scale
    G = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return M, rng.standard_normal(n), G, G @ rng.standard_normal(n)


@pytest.mark.parametrize("shape", [(5, 3, 3), (6, 4, 2), (4, 4, 4), (7, 6, 5), (3, 5, 1)])
def test_all_methods_agree(shape):
    n, m, rank = shape
    for seed in range(5):
        M, f, G, gamma = random_system(n, m, rank, seed)
        results = {name: accelerations(M, f, G, gamma, method=name) for name in SOLVERS}
        best = results["svd"]
        for name, found in results.items():
            scale = np.abs(best.v_dot).max()
            np.testing.assert_allclose(found.v_dot, best.v_dot, atol=1e-10 * scale, err_msg=name)
            force = G.T @ best.multipliers
            np.testing.assert_allclose(G.T @ found.multipliers, force, atol=1e-9 * np.abs(M).max())
            np.testing.assert_allclose(
                found.multipliers, best.multipliers, rtol=1e-6, atol=1e-6 * np.abs(force).max()
            )
            assert found.rank == rank
            assert len(found.redundant) == m - rank
        np.testing.assert_allclose(G @ best.v_dot, gamma, atol=1e-10 * np.abs(gamma).max())
        left = M @ best.v_dot - f - G.T @ best.multipliers
        np.testing.assert_allclose(left, 0, atol=1e-10 * max(1, np.abs(M @ best.v_dot).max()))
        kept = [i for i in range(m) if i not in best.redundant]
        assert np.linalg.matrix_rank(G[kept]) == rank


def test_elimination_without_pivots():
    M, f, G, gamma = random_system(6, 3, 3, 11)
    v_dot, multipliers = Eliminated(M, G).accelerate(f, gamma)
    exact = accelerations(M, f, G, gamma)
    np.testing.assert_allclose(v_dot.astype(float), exact.v_dot, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(multipliers.astype(float), exact.multipliers, rtol=1e-9, atol=1e-12)


def test_elimination_keeps_the_zeros_of_a_tree():
    """A chain of four bodies with two branches each: leaves first, no fill-in."""
    parents = [-1, 0, 1, 1, 0, 4]
    n = len(parents)
    M = 10.0 * np.eye(n)
    for i in range(n):
        j = parents[i]
        while j >= 0:
            M[i, j] = M[j, i] = 1.0 / (1 + i + j)
            j = parents[j]
    factor = Factor(M)
    assert sum(len(row) for row in factor.L) == np.count_nonzero(np.tril(M, -1))
    x = np.arange(1.0, n + 1)
    np.testing.assert_allclose(factor.solve(M @ x).astype(float), x, rtol=1e-13)


@pytest.mark.parametrize("shape", [(3, 6, 3), (4, 5, 2), (2, 2, 2)])
def test_partition(shape):
    m, n, rank = shape
    rng = np.random.default_rng(7)
    G = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    k = G @ rng.standard_normal(n)
    split = partition(G)
    assert split.rank == rank
    assert sorted([*split.dependent, *split.independent]) == list(range(n))
    np.testing.assert_allclose(G @ split.basis, 0, atol=1e-12)
    np.testing.assert_allclose(G @ split.offset(k), k, atol=1e-12)
    np.testing.assert_array_equal(split.basis[split.independent], np.eye(n - rank))
    if rank < n:
        chosen = [int(split.independent[0])]
        assert chosen[0] in partition(G, independent=chosen).independent


def test_partition_refuses_too_many():
    with pytest.raises(ValueError, match="only 1 of 3 components are independent"):
        partition(np.eye(3)[:2], independent=[0, 2])
    with pytest.raises(ValueError, match="different columns 0 to 2"):
        partition(np.eye(3)[:2], independent=[3])


# -------------------------------------------------------------------- consistent starts


def test_consistent_start_is_the_nearest():
    system = pendulum(q0=[1.2, 0.9], v0=[1.0, 1.0])
    start = consistent(system)
    np.testing.assert_allclose(start.q, [0.8, 0.6], atol=1e-12)  # straight to the circle
    np.testing.assert_allclose(start.v, [1 - 0.8 * 1.4, 1 - 0.6 * 1.4], atol=1e-12)
    assert start.gap < 1e-14
    assert start.rank == 1
    again = system.consistent()
    assert again.formulation("index1").y0[0] == start.q[0]


def test_consistent_start_with_a_fixed_coordinate():
    guess = squeezer().q0 + 0.05 * np.eye(7)[0]
    start = consistent(squeezer(), guess, np.ones(7), fixed=[0])
    assert start.q[0] == squeezer().q0[0] + 0.05
    assert start.v[0] == 1.0
    now = start.system.terms(0.0, start.q, start.v)
    assert np.abs(now.g).max() < 1e-15
    assert np.abs(now.G @ start.v).max() < 1e-15


def test_consistent_start_of_a_moving_constraint():
    start = consistent(driven(), v=[0.0, 0.0])
    now = driven().terms(0.0, start.q, start.v)
    assert np.abs(now.nu).max() > 0.1
    np.testing.assert_allclose(now.G @ start.v, now.nu, atol=1e-14)


def test_a_loop_that_cannot_close():
    far = Mechanical(
        np.eye(1),
        lambda t, q, v: [0.0],
        lambda t, q: [np.cos(q[0]) - 1.5],
        q0=[0.3],
        v0=[0.0],
        t_span=(0, 1),
    )
    with pytest.raises(ValueError, match=r"cannot be closed at t = 0.*no less than 0\.5"):
        far.consistent()


# -------------------------------------------------------------------- what is refused


def test_an_inconsistent_start_is_refused_with_numbers_and_the_remedy():
    with pytest.raises(ValueError, match=r"max \|g\| = 0\.\d+ .*consistent\(\)"):
        pendulum(q0=[1.1, 0.0]).formulation("index1")
    with pytest.raises(ValueError, match=r"max \|G v − ν\| = 0\.5"):
        pendulum(v0=[0.5, 0.0]).formulation("projected")
    pendulum(v0=[0.5, 0.0]).formulation("baumgarte", allow_inconsistent=True)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("baumgart", {}, "did you mean baumgarte"),
        ("baumgarte", {"alpha": -1.0}, "alpha must not be negative"),
        ("baumgarte", {"alpha": 1.0, "T_stab": 1.0}, "not both"),
        ("baumgarte", {"T_stab": 0.0}, "T_stab must be positive"),
        ("baumgarte", {"T_stab": "auto"}, "give step"),
        ("index1", {"solver": "svdd"}, "did you mean svd"),
        ("augmented", {"iterations": 0}, "at least 1"),
        ("minimal", {"independent": [0, 1]}, "rank 1"),
        ("minimal", {"closure": lambda y: y}, "needs y0"),
        ("minimal", {"closure": lambda y: [y[0], y[0]], "y0": [0.3]}, "violates the constraints"),
    ],
)
def test_bad_formulations(name, options, message):
    with pytest.raises(ValueError, match=message):
        pendulum().formulation(name, **options)


def test_unknown_options():
    with pytest.raises(TypeError, match="'index3' has no option 'alpha'"):
        pendulum().formulation("index3", alpha=1.0)


def test_a_jacobian_of_rank_zero():
    with pytest.raises(ValueError, match="rank 0"):
        pendulum(q0=[0.0, 0.0]).formulation("index1", allow_inconsistent=True)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"mass": np.eye(3)}, ValueError, "mass must be 2×2"),
        ({"mass": np.diag([1.0, 0.0])}, ValueError, "smallest eigenvalue is 0"),
        ({"mass": lambda t, q: np.array([[1.0, 0.5], [0.0, 1.0]])}, ValueError, "symmetric"),
        ({"force": lambda t, q, v: [1.0]}, ValueError, r"force returned shape \(1,\)"),
        ({"force": lambda t: [1.0, 0.0]}, TypeError, r"force\(t, q, v\)"),
        ({"force": 3.0}, TypeError, "force must be a function"),
        ({"force": lambda t, q, v: [np.nan, 0.0]}, ValueError, "not finite"),
        ({"constraint": lambda t, q: []}, ValueError, "m ≥ 1"),
        ({"jacobian": lambda t, q: np.eye(2)}, ValueError, "jacobian returned shape"),
        ({"q0": [1.0, 0.0, 0.0]}, ValueError, "give rate"),
        ({"q0": [np.inf, 0.0]}, ValueError, r"q0\[0\] is inf"),
        ({"rank_tolerance": 2.0}, ValueError, "between 0 and 1"),
        ({"multiplier_names": ["a", "b"]}, ValueError, "1 names"),
        ({"trace": "yes"}, TypeError, "trace must be True"),
    ],
)
def test_bad_systems(changes, error, message):
    with pytest.raises(error, match=message):
        pendulum().with_(**changes)


def test_a_constraint_that_cannot_be_differentiated():
    with pytest.raises(TracingError, match="give all three"):
        pendulum().with_(constraint=lambda t, q: [float(q[0]) - 1.0])


def test_observables_need_a_formulation():
    solution = solve(IVP(lambda t, y: -y, [1.0], (0, 1)))
    with pytest.raises(TypeError, match="formulation"):
        pendulum().observables(solution)


@pytest.mark.parametrize("trace", [True, False])
def test_a_run_that_goes_beyond_a_dead_point_says_so(trace):
    """q₀ = 1.5 t is driven, cos q₁ = q₀ follows until q₀ = 1, at t = 2/3."""
    system = Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, 0.0]),
        lambda t, q: np.array([q[0] - 1.5 * t, np.cos(q[1]) - q[0]]),
        q0=[0.0, np.pi / 2],
        v0=[1.5, -1.5],
        t_span=(0.0, 1.0),
        trace=trace,
    )
    solution = solve(system.formulation("projected"), method="RK4", step=0.1)
    assert not solution.success
    assert "cannot be closed at t = 0.7" in solution.message
    assert solution.t[-1] == pytest.approx(0.6)
    np.testing.assert_allclose(solution.y[1, -1], np.arccos(0.9), atol=1e-13)


def test_exact_reference_is_the_pendulum():
    np.testing.assert_allclose(
        pendulum_exact(10.0)[:2], [0.27508746257611686005, -0.96141920509912506427], atol=1e-13
    )
