"""Branch-induced sparsity: LTL, LTDL, their products and solves, operation counts, λ′."""

from __future__ import annotations

import numpy as np
import pytest

import multibody as mb
from multibody.dynamics.trees import factor
from multibody.mechanisms.random import random_tree
from tests.multibody.counting import Counted, Tally, counted
from tests.multibody.joint_samples import POOL

# Factors of matrices with condition up to 1e4 and entries of size one.
ROUNDING = 1e-12


def tree_of(seed, n=12):
    rng = np.random.default_rng(seed)
    return np.array([-1] + [int(rng.integers(-1, k)) for k in range(1, n)])


def ancestors(parent, k):
    found = []
    while k >= 0:
        found.append(k)
        k = parent[k]
    return found


def pattern(parent):
    n = len(parent)
    allowed = np.zeros((n, n), dtype=bool)
    for k in range(n):
        for j in ancestors(parent, k):
            allowed[k, j] = allowed[j, k] = True
    return allowed


def matrix_of(parent, seed=0):
    """Positive definite matrix with the sparsity that the branches allow: LᵀL."""
    rng = np.random.default_rng(seed)
    n = len(parent)
    L = np.where(np.tril(pattern(parent)), rng.standard_normal((n, n)), 0.0)
    L[np.diag_indices(n)] = rng.uniform(1.0, 2.0, n)
    return L.T @ L


SHAPES = {
    "chain": [-1, 0, 1, 2, 3, 4],
    "star": [-1, -1, -1, -1],
    "binary": [-1, 0, 0, 1, 1, 2, 2],
    "one": [-1],
    **{f"random{seed}": tree_of(seed).tolist() for seed in range(8)},
}


@pytest.mark.parametrize("name", SHAPES)
def test_factors_and_everything_done_with_them(name):
    parent = np.array(SHAPES[name])
    H = matrix_of(parent)
    L = factor.ltl(H, parent)
    np.testing.assert_allclose(L.T @ L, H, atol=ROUNDING)
    assert not L[~pattern(parent)].any()  # nothing fills in
    U, d = factor.ltdl(H, parent)
    np.testing.assert_allclose(U.T @ np.diag(d) @ U, H, atol=ROUNDING)
    np.testing.assert_array_equal(np.diag(U), 1.0)
    assert not U[~pattern(parent)].any()
    np.testing.assert_allclose(L, np.sqrt(d)[:, None] * U, atol=ROUNDING)

    rng = np.random.default_rng(1)
    for x in (rng.standard_normal(len(parent)), rng.standard_normal((len(parent), 3))):
        kept = x.copy()
        for matrix, unit in ((L, False), (U, True)):
            for operation, expected in (
                (factor.l_multiply, matrix @ x),
                (factor.lt_multiply, matrix.T @ x),
                (factor.l_solve, np.linalg.solve(matrix, x)),
                (factor.lt_solve, np.linalg.solve(matrix.T, x)),
            ):
                found = operation(matrix, parent, x, unit=unit)
                np.testing.assert_allclose(found, expected, atol=1e3 * ROUNDING)
        np.testing.assert_array_equal(x, kept)
        np.testing.assert_allclose(H @ factor.ltl_solve(L, parent, x), x, atol=1e3 * ROUNDING)
        np.testing.assert_allclose(H @ factor.ltdl_solve(U, d, parent, x), x, atol=1e3 * ROUNDING)
        if x.ndim == 1:
            found = factor.inertia_multiply(H, parent, x)
            np.testing.assert_allclose(found, H @ x, atol=ROUNDING)


def test_unit_diagonal_is_not_read():
    """LTDL stores D on the diagonal: with `unit` the diagonal must not matter."""
    parent = np.array(SHAPES["binary"])
    U, _ = factor.ltdl(matrix_of(parent), parent)
    packed = U + np.diag(np.full(len(parent), 7.0))
    x = np.arange(1.0, len(parent) + 1)
    for operation in (factor.l_multiply, factor.lt_multiply, factor.l_solve, factor.lt_solve):
        a, b = operation(U, parent, x, unit=True), operation(packed, parent, x, unit=True)
        np.testing.assert_array_equal(a, b)


# --- operation counts (Table 6.6) --------------------------------------------------------------


class DividingTally(Tally):
    def __init__(self):
        super().__init__()
        self.d = self.root = 0


class Divided(Counted):
    """Counts divisions and roots as well."""

    def __truediv__(self, other):
        self.tally.d += 1
        return Divided(self.value / self._value(other), self.tally)

    def sqrt(self):  # np.sqrt on object arrays' elements calls this
        self.tally.root += 1
        return Divided(np.sqrt(self.value), self.tally)

    def __add__(self, other):
        return Divided(super().__add__(other).value, self.tally)

    def __sub__(self, other):
        return Divided(super().__sub__(other).value, self.tally)

    def __mul__(self, other):
        return Divided(super().__mul__(other).value, self.tally)


def count(kernel, *arrays):
    """Operations of a kernel: (√, d, m, a)."""
    tally = DividingTally()
    passed = []
    for array in arrays:
        if isinstance(array, np.ndarray) and array.dtype == float:
            array = counted(array, tally)
            for index, value in np.ndenumerate(array):
                array[index] = Divided(value.value, tally)
        passed.append(array)
    kernel(*passed)
    return tally.root, tally.d, tally.m, tally.a


def depths(parent):
    return [len(ancestors(parent, k)) for k in range(len(parent))]


@pytest.mark.parametrize("name", SHAPES)
def test_operation_counts_are_those_of_the_book(name):
    parent = np.array(SHAPES[name])
    n = len(parent)
    D1 = sum(d - 1 for d in depths(parent))
    D2 = sum(d * (d - 1) // 2 for d in depths(parent))
    assert factor.depth_counts(parent) == (D1, D2)
    H, x = matrix_of(parent), np.ones(n)
    assert count(factor.ltl_kernel, H, parent) == (n, D1, D2, D2)
    assert count(factor.ltdl_kernel, H, parent) == (0, D1, D2, D2)
    for solve in (factor.l_solve_kernel, factor.lt_solve_kernel):
        assert count(solve, H, parent, x, False) == (0, n, D1, D1)
        assert count(solve, H, parent, x, True) == (0, 0, D1, D1)
    for multiply in (factor.l_multiply_kernel, factor.lt_multiply_kernel):
        assert count(multiply, H, parent, x, False) == (0, 0, n + D1, D1)
        assert count(multiply, H, parent, x, True) == (0, 0, D1, D1)
    multiply = factor.inertia_multiply_kernel
    assert count(multiply, H, parent, x, np.empty(n)) == (0, 0, n + 2 * D1, 2 * D1)


def test_counts_of_dense_and_bounded_trees():
    """Eq 6.26–6.29: a chain is dense, a depth d bounds D₁ and D₂."""
    for n in (1, 5, 12):
        chain = np.arange(-1, n - 1)
        assert factor.depth_counts(chain) == ((n * n - n) // 2, (n**3 - n) // 6)
        assert factor.density(chain) == 1.0
        star = np.full(n, -1)
        assert factor.depth_counts(star) == (0, 0)
        assert factor.density(star) == 1 / n
    for seed in range(8):
        parent = tree_of(seed)
        n, d = len(parent), max(depths(parent))
        D1, D2 = factor.depth_counts(parent)
        assert n * (d - 1) >= D1
        assert n * d * (d - 1) / 2 >= D2
        assert factor.density(parent) == pytest.approx(pattern(parent).mean())
    assert factor.density(SHAPES["binary"]) == pytest.approx(27 / 49)


# --- λ′ ----------------------------------------------------------------------------------------


def test_expanded_parents_of_the_book():
    """§6.5's example: joint 2 has three freedoms."""
    found = factor.expanded_parents([0, 1, 1, 2, 2, 3], [1, 3, 1, 1, 1, 1])
    assert found.tolist() == [0, 1, 2, 3, 1, 4, 4, 5]


def test_expanded_parents_pass_over_joints_without_freedom():
    """The printed algorithm makes 2, not 1, the parent of variable 3 here."""
    found = factor.expanded_parents([0, 0, 1, 3, 2], [1, 1, 0, 1, 1])
    assert found.tolist() == [0, 0, 1, 2]


def test_model_and_function_give_the_same_parents():
    for seed in range(20):
        model = random_tree(10, seed, POOL)
        freedoms = [body.joint.nv for body in model.bodies]
        expected = factor.expanded_parents(model.parents, freedoms) - 1
        np.testing.assert_array_equal(model.tree.arrays["parent_v"], expected)


def test_inertia_matrix_has_the_sparsity_of_its_tree():
    for seed in range(10):
        model = random_tree(10, seed, [*POOL, "fixed", "fixed"], branching=0.9)
        H = mb.crba(model, model.random(seed), t=0.3)
        parent = model.tree.arrays["parent_v"]
        assert not H[~pattern(parent)].any()
        L = factor.ltl(H, parent)
        np.testing.assert_allclose(L.T @ L, H, atol=ROUNDING * np.abs(H).max(initial=0.0))


def test_wrong_parents_would_be_noticed():
    """With the parents that the printed algorithm finds, LᵀL is not H, and nothing is raised."""
    b = mb.ModelBuilder()
    inertia = mb.Inertia(1.0, (0.2, 0.3, 0.1), (0.1, 0.2, 0.25))
    joints = [mb.Revolute("x"), mb.Revolute("y"), mb.Fixed(), mb.Revolute("z"), mb.Revolute("y")]
    for i, (joint, above) in enumerate(zip(joints, (0, 0, 1, 3, 2)), 1):
        b.add_body(f"b{i}", above, joint, (0.3, 0.1, 0.2), inertia)
    model = b.build()
    H = mb.crba(model, [0.1, 0.2, 0.3, 0.4])
    right, printed = np.array([-1, -1, 0, 1]), np.array([-1, -1, 1, 1])
    np.testing.assert_array_equal(model.tree.arrays["parent_v"], right)
    L = factor.ltl(H, right)
    np.testing.assert_allclose(L.T @ L, H, atol=ROUNDING)
    wrong = factor.ltl(H, printed)
    assert np.abs(wrong.T @ wrong - H).max() > 1e-2


# --- bad input ---------------------------------------------------------------------------------


def test_bad_input():
    H = np.eye(2)
    with pytest.raises(ValueError, match="to match parent"):
        factor.ltl(H, [-1, 0, 1])
    with pytest.raises(ValueError, match=r"−1 ≤ parent\[k\] < k"):
        factor.ltl(H, [-1, 1])
    with pytest.raises(ValueError, match="expected 0 ≤ parent < 2"):
        factor.expanded_parents([0, 2], [1, 1])
    for x in (np.ones(4), np.ones(1), np.ones((3, 2))):
        with pytest.raises(ValueError, match="2 rows"):
            factor.l_solve(H, [-1, 0], x)
        with pytest.raises(ValueError, match="2 rows"):
            factor.inertia_multiply(H, [-1, 0], x)
    for factorise in (factor.ltl, factor.ltdl):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            factorise([[1.0, 2.0], [2.0, 1.0]], [-1, 0])
    # A singular H, which rounding makes neither: the pivot is exactly zero.
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factor.ltdl([[1.0, 1.0], [1.0, 1.0]], [-1, 0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factor.ltl([[1.0, 1.0], [1.0, 1.0]], [-1, 0])


def test_nothing_to_factorise():
    L = factor.ltl(np.zeros((0, 0)), [])
    assert factor.ltl_solve(L, [], []).shape == (0,)
