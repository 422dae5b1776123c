"""Operation counts of the traced algorithms against the best that the book lists (Table 10.1)."""

import numpy as np
import pytest

from integrators import traced
from multibody import Inertia, ModelBuilder, Plucker, Revolute, rotx
from multibody.dynamics.trees.aba import aba_kernel
from multibody.dynamics.trees.crba import crba_kernel
from multibody.runs.ivp import traced_fd, traced_id


def chain(n):
    """GU(n): unbranched chain of revolute joints with general parameters."""
    rng = np.random.default_rng(n)
    b = ModelBuilder()
    for i in range(n):
        alpha, a, d = rng.uniform(0.3, 1.2, 3)
        E = rotx(alpha).E
        X = Plucker(E, np.array([a, 0, 0]) + E.T @ [0, 0, d]) if i else Plucker.identity()
        points = rng.standard_normal((5, 3))
        points -= points.mean(axis=0)
        I = np.trace(points.T @ points) * np.eye(3) - points.T @ points
        b.add_body(f"link {i}", i, Revolute(), X, Inertia(1.0, rng.standard_normal(3), I))
    return b.build()


def counts(operations):
    """Multiplications with divisions, additions with subtractions; sines and cosines apart."""
    m = operations.get("mul", 0) + operations.get("div", 0)
    return m, operations.get("add", 0) + operations.get("sub", 0)


def articulated(model):
    """Forward dynamics by articulated bodies, whatever is cheapest for this model."""
    n = model.nv

    def fd(t, x, tau):
        w = model.tree.symbolic()
        w.q[:], w.v[:], w.tau[:] = x[:n], x[n:], tau
        aba_kernel(w)
        return w.a_q

    return counts(traced(fd, n=2 * n, params=n, outputs=n).operations())


@pytest.mark.parametrize("n", [2, 3, 6, 7, 12])
def test_no_more_than_the_best_published(n):
    model = chain(n)

    def H(t, q):
        w = model.tree.symbolic()
        w.q[:] = q
        crba_kernel(w)
        return np.array([w.H[i, j] for i in range(n) for j in range(i + 1)])

    found = {
        "RNEA": counts(traced_id(model).operations()),
        "CRBA": counts(traced(H, n=n, outputs=n * (n + 1) // 2).operations()),
        "ABA": articulated(model),
    }
    book = {
        "RNEA": (93 * n - 108, 81 * n - 100),
        "CRBA": (10 * n**2 + 22 * n - 32, 6 * n**2 + 37 * n - 43),
        "ABA": (224 * n - 259, 205 * n - 248),
    }
    for name, (m, a) in found.items():
        assert m <= book[name][0], name
        assert a <= book[name][1], name
    assert sum(counts(traced_fd(model).operations())) <= sum(found["ABA"])


def test_each_link_costs_the_same():
    """The growth from link to link, which no first or last link can hide."""
    five, six, seven = (articulated(chain(n)) for n in (5, 6, 7))
    step = tuple(x - y for x, y in zip(seven, six))
    assert step == tuple(x - y for x, y in zip(six, five))
    assert sum(step) <= 224 + 205
