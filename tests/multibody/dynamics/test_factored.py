"""Traced forward dynamics takes the cheaper of two ways; both lead to the same place."""

import numpy as np
import pytest

from multibody import FD, as_ivp, crba, mechanisms
from multibody.dynamics.storage.arrays import _shared_tree
from multibody.dynamics.trees.factored import factored_kernel, is_shallow
from multibody.mechanisms.random import random_tree
from multibody.runs import traced as module
from multibody.runs.ivp import traced_fd


@pytest.mark.parametrize("seed", range(12))
def test_factors_give_the_accelerations_of_articulated_bodies(seed):
    model = random_tree(6, seed=seed)
    rng = np.random.default_rng(seed)
    q, v, tau = model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    w = model.tree.symbolic()  # runs on plain numbers as well
    w.q[:], w.v[:], w.tau[:] = q, v, tau
    factored_kernel(w)
    expected = FD(model, q, v, tau, method="aba")
    scale = np.abs(expected).max(initial=1.0) * np.linalg.cond(crba(model, q))
    assert np.abs(w.a_q.astype(float) - expected).max(initial=0.0) <= 1e-14 * scale


@pytest.mark.parametrize("shallow", [True, False])
def test_both_ways_can_be_traced(shallow, monkeypatch):
    monkeypatch.setattr(module, "is_shallow", lambda parents: shallow)
    model = mechanisms.serial_arm(4, damping=0.2)
    q, v = np.linspace(0.1, 0.9, 4), np.linspace(-1.0, 1.0, 4)
    problem = as_ivp(model, q, v, (0.0, 1.0), tau=np.arange(4.0), traced=True)
    found = problem.f(0.0, np.concatenate([q, v]), problem.params)
    np.testing.assert_allclose(found[4:], FD(model, q, v, np.arange(4.0)), rtol=1e-12)


def test_the_way_with_fewer_operations_is_taken(monkeypatch):
    for n in (3, 9, 10, 13):
        counts = {}
        for shallow in (True, False):
            monkeypatch.setattr(module, "is_shallow", lambda parents, s=shallow: s)
            _shared_tree.cache_clear()  # equal models share what was traced
            counts[shallow] = traced_fd(mechanisms.serial_arm(n)).operations()["total"]
        parents = mechanisms.serial_arm(n).tree.arrays["parent_v"]
        assert counts[True] != counts[False]
        assert is_shallow(parents) == (counts[True] <= counts[False])
