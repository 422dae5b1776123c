"""Complementarity: kernels against enumeration, daqp and clarabel; degenerate, redundant, none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from multibody.contact.cones import coulomb, friction_lcp
from multibody.contact.lcp import LCPError, enumerate_lcp, solve_lcp

ROOT = Path(__file__).parents[3]


def test_random_instances_agree_with_enumeration():
    """A seeded part of the ten thousand of benchmarks/contact_lcp.py, by all algorithms."""
    place = ROOT / "benchmarks" / "contact_lcp.py"
    spec = importlib.util.spec_from_file_location("contact_lcp", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["contact_lcp"] = module
    spec.loader.exec_module(module)
    assert module.random_instances(150) == 0


@pytest.mark.parametrize("n", [1, 7, 30])
def test_complementarity_of_larger_problems(n):
    rng = np.random.default_rng(3)
    for rank in (n, max(1, n // 2)):
        T = rng.standard_normal((rank, n))
        M, d = T.T @ T, T.T @ rng.standard_normal(rank)
        for method in ("auto", "active set", "lemke"):
            found = solve_lcp(M, d, method=method)
            assert found.z.min() >= 0.0
            assert found.w.min() >= 0.0
            assert found.z @ found.w == 0.0
            np.testing.assert_allclose(M @ found.z + d, found.w, atol=1e-10 * np.abs(d).max())


def test_a_guess_changes_the_way_not_the_answer():
    rng = np.random.default_rng(4)
    T = rng.standard_normal((24, 20))
    M, d = T.T @ T, rng.standard_normal(20)
    cold = solve_lcp(M, d)
    warm = solve_lcp(M, d, start=cold.active)
    assert warm.steps == 1 < cold.steps
    wrong = solve_lcp(M, d, start=~cold.active)
    for other in (warm, wrong):
        np.testing.assert_allclose(other.z, cold.z, rtol=1e-9, atol=1e-12)


def test_daqp_and_clarabel_find_the_same():
    daqp = pytest.importorskip("daqp")
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    rng = np.random.default_rng(5)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for n in (4, 12):
        T = rng.standard_normal((n + 3, n))
        M, d = T.T @ T, rng.standard_normal(n)
        z = solve_lcp(M, d).z
        none = np.zeros(n, dtype=np.int32)
        peer = daqp.solve(M, d, np.zeros((0, n)), np.full(n, 1e30), np.zeros(n), none)[0]
        np.testing.assert_allclose(z, peer, atol=1e-9 * z.max())
        cones = [clarabel.NonnegativeConeT(n)]
        given = (sparse.csc_matrix(np.triu(M)), d, sparse.csc_matrix(-np.eye(n)), np.zeros(n))
        other = clarabel.DefaultSolver(*given, cones, settings).solve()
        np.testing.assert_allclose(z, other.x, atol=1e-6 * z.max())


def test_squeezed_between_two_walls_there_is_no_solution():
    """Book, example 11.1: n₂ = −n₁ has none exactly if d₁ + d₂ < 0."""
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert solve_lcp(M, [-1.0, 1.0]).z.tolist() == [1.0, 0.0]
    for method in ("auto", "active set", "lemke"):
        with pytest.raises(LCPError, match=r"no|ray"):
            solve_lcp(M, [-1.0, 0.5], method=method)
    assert enumerate_lcp(M, [-1.0, 0.5]) == []


def test_smallest_of_several():
    """Minimum norm among z ≥ 0: by the pseudoinverse where that is positive, else on its face."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        n = int(rng.integers(2, 6))
        T = rng.standard_normal((2, n))
        z = np.maximum(rng.standard_normal(n), 0.0)
        M, d = T.T @ T, -T.T @ T @ z
        found = solve_lcp(M, d, smallest=True)
        np.testing.assert_allclose(found.w, 0.0, atol=1e-9)
        assert np.linalg.norm(found.z) <= np.linalg.norm(z) * (1 + 1e-9)
        assert found.unique == (np.linalg.matrix_rank(M) == n)
        best = min(np.linalg.norm(x) for x in enumerate_lcp(M, d))
        assert np.linalg.norm(found.z) <= best * (1 + 1e-7)


def test_careless_input():
    with pytest.raises(ValueError, match="square"):
        solve_lcp(np.eye(2), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="start: expected 2 booleans"):
        solve_lcp(np.eye(2), [1.0, 2.0], start=[True])
    with pytest.raises((ValueError, LCPError)):
        solve_lcp(np.full((2, 2), np.nan), np.array([-1.0, -1.0]))
    with pytest.raises(ValueError, match="method"):
        solve_lcp(np.eye(2), [1.0, 2.0], method="guess")
    with pytest.raises(ValueError, match="symmetric"):
        solve_lcp([[1.0, 2.0], [0.0, 1.0]], [1.0, 2.0], method="active set")
    assert solve_lcp(np.zeros((0, 0)), np.zeros(0)).z.shape == (0,)


# ---------------------------------------------------------------------- friction cones


def cone_instance(rng, n, nv, mu=0.4):
    """Points of a heap: weakly coupled normals and tangents, so that the answer is unique."""
    T = rng.standard_normal((nv, 3 * n)) * 0.3
    T[:, ::3] += np.eye(nv, 3 * n)[:, ::3]
    W = T.T @ T + 0.5 * np.eye(3 * n)
    return W, rng.standard_normal(3 * n), np.full(n, mu)


def test_coulomb_by_its_own_definition():
    rng = np.random.default_rng(7)
    for _ in range(40):
        n = int(rng.integers(1, 5))
        W, b, mu = cone_instance(rng, n, 3 * n)
        found = coulomb(W, b, mu)
        r, u = found.r, (W @ found.r.ravel() + b).reshape(-1, 3)
        np.testing.assert_allclose(found.u, u, atol=1e-12)
        assert (r[:, 0] >= 0).all()
        assert (u[:, 0] >= -1e-10).all()
        np.testing.assert_allclose(r[:, 0] * u[:, 0], 0.0, atol=1e-9)
        friction, slip = np.linalg.norm(r[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
        assert (friction <= mu * r[:, 0] + 1e-9).all()
        np.testing.assert_allclose(
            r[:, 1:] * slip[:, None], -(mu * r[:, 0])[:, None] * u[:, 1:], atol=1e-9
        )


def test_coulomb_agrees_with_second_order_cone_programs():
    """De Saxcé: for the right s = |u_t| the forces minimise ½ rᵀWr + rᵀ(b + μ s n) in the cone."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    rng = np.random.default_rng(8)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for _ in range(6):
        n = int(rng.integers(1, 4))
        W, b, mu = cone_instance(rng, n, 3 * n)
        found = coulomb(W, b, mu)
        shifted = b.copy()
        shifted[::3] += mu * np.linalg.norm(found.u[:, 1:], axis=1)
        A = -np.kron(np.eye(n), np.diag([mu[0], 1.0, 1.0]))
        cones = [clarabel.SecondOrderConeT(3)] * n
        given = (sparse.csc_matrix(np.triu(W)), shifted, sparse.csc_matrix(A), np.zeros(3 * n))
        other = clarabel.DefaultSolver(*given, cones, settings).solve()
        np.testing.assert_allclose(found.r.ravel(), other.x, atol=1e-5)


def test_pyramids_approach_the_cone_and_are_exact_in_a_plane():
    rng = np.random.default_rng(9)
    errors = np.zeros(3)
    for _ in range(8):
        W, b, mu = cone_instance(rng, 2, 6)
        exact = coulomb(W, b, mu).r
        errors += [np.abs(friction_lcp(W, b, mu, facets).r - exact).max() for facets in (4, 16, 64)]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    for row in (2, 5):  # nothing moves along the second tangent
        W[row], W[:, row], b[row] = 0.0, 0.0, 0.0
    np.testing.assert_allclose(
        friction_lcp(W, b, mu, 4).r[:, :2], coulomb(W, b, mu).r[:, :2], atol=1e-9
    )


def test_interpreted_kernels_find_the_same(monkeypatch):
    """Kernels as the plain Python that they are, against machine code."""
    from multibody.contact import cones, lcp

    rng = np.random.default_rng(10)
    T = rng.standard_normal((4, 6))  # redundant
    M, d = T.T @ T, T.T @ rng.standard_normal(4)
    W, b, mu = cone_instance(rng, 2, 6)
    methods = ("auto", "active set", "lemke")
    compiled = [solve_lcp(M, d, method=method) for method in methods]
    cone = coulomb(W, b, mu)
    for module, names in ((lcp, ("_symmetric", "_active_set", "_lemke")), (cones, ("_sweeps",))):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name).function)
    for method, found in zip(methods, compiled):
        plain = solve_lcp(M, d, method=method)
        np.testing.assert_allclose(plain.w, found.w, atol=1e-12)
        assert plain.steps == found.steps
    np.testing.assert_allclose(coulomb(W, b, mu).r, cone.r, atol=1e-12)
