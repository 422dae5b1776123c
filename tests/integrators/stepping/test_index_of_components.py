"""The differentiation index of components weighs their errors: complex ones, engines used again."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import solve, traced


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_index_of_complex_components(method):
    start = np.array([1.0, 0.5j])
    sol = solve(lambda t, y: 1j * y, (0, 1), start, index=[1, 2], method=method)
    assert sol.success
    assert np.abs(sol.y[:, -1] - np.exp(1j) * start).max() < 1e-5
    # The same equations in real and imaginary parts take the same steps but for the mean.
    real = solve(
        lambda t, y: np.array([-y[1], y[0], -y[3], y[2]]),
        (0, 1), [1.0, 0.0, 0.0, 0.5], index=[1, 1, 2, 2], method=method, norm="max",
    )  # fmt: skip
    assert np.abs(real.y[::2, -1] + 1j * real.y[1::2, -1] - sol.y[:, -1]).max() < 1e-5


@pytest.mark.parametrize("method", ["DOPRI5", "RADAU5"])
def test_engines_are_not_used_again_with_another_index(method):
    def f(t, y):
        return np.array([-y[0], np.sin(9 * y[0]) - y[1]])

    def steps(function, index):
        return solve(function, (0, 5), [1.0, 0.0], index=index, method=method).t

    one, other = traced(f, n=2), traced(f, n=2)
    steps(one, [1, 2])
    assert np.array_equal(steps(one, [1, 1]), steps(other, [1, 1]))
