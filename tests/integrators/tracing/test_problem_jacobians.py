"""Exact Jacobians of every problem of the library, and implicit methods that use them."""

import numpy as np
import pytest

from integrators import Switch, problems, solve, traced
from tests.integrators.problems.test_problems import NAMES, jacobian, small, states

EXACT = 1e-12  # demanded; the truth, dual numbers through f itself, has a few ulp like the graph


def trace_of(problem):
    return traced(problem.f, n=problem.n, params=problem.params.size or None)


@pytest.mark.parametrize("name", NAMES)
def test_jacobian_of_every_problem(name):
    problem = small(name)
    if problem.y0.dtype.kind == "c":
        problem = problem.with_(y0=problem.y0.real)
    if isinstance(problem.f, Switch):  # each side is a function of its own
        problem = problem.with_(f=problem.f.plus)
    J = trace_of(problem).jacobian()
    parameters = (problem.params,) if problem.params.size else ()
    for y in states(problem, name):
        expected = jacobian(problem, 0.3, y)
        scale = np.abs(expected).max()
        found = J(0.3, y, *parameters)
        np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT * scale)
        assert not np.any(expected[J.sparsity.toarray() == 0])


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA5", "SDIRK4", "RadauVariable", "BDF"])
@pytest.mark.parametrize("name", ["hires", "oregonator", "van_der_pol_100", "robertson"])
def test_implicit_methods_take_no_differences(name, method):
    """With the exact Jacobian f is evaluated by Newton's iteration only, whoever supplies it."""
    problem = problems.get(name)
    t0, t1 = problem.t_span
    problem = problem.with_(f=trace_of(problem), jac=None, t_span=(t0, t0 + 0.01 * (t1 - t0)))
    exact = problem.f.jacobian()
    options = dict(method=method, rtol=1e-6, atol=1e-10)
    automatic = solve(problem, **options)
    given = solve(problem.with_(jac=lambda *arguments: exact(*arguments)), **options)
    # Without f's graph, the same run has to pay n evaluations for each Jacobian.
    plain = lambda *arguments: problem.f(*arguments)  # noqa: E731
    differences = solve(problem.with_(f=plain), **options)
    assert automatic.success
    assert automatic.njev > 0
    assert automatic.nfev == given.nfev
    assert differences.nfev >= automatic.nfev + problem.n * (differences.njev // 2)
