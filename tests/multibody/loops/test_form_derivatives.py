"""Jacobians of the formulations of closed loops by recursions, against differences."""

import numpy as np
import pytest

import multibody as mb
from integrators import solve
from multibody import mechanisms
from multibody.runs.derivatives import StateJacobian
from multibody.runs.form_derivatives import MinimalJacobian, MultiplierJacobian
from tests.multibody.random_mechanisms import draw

#: Central differences, relative to the largest entry. Their step is long where the penalty of the
#: augmented Lagrangian enlarges rounding a thousandfold.
DIFFERENCES, STEPS = 1e-6, {"augmented": 1e-4}


def differences(problem, t, y, h=1e-6):
    def f(y):
        return problem.f(t, y, problem.params)

    return np.array([(f(y + h * e) - f(y - h * e)) / (2 * h) for e in np.eye(len(y))]).T


@pytest.mark.parametrize("form", ["minimal", "augmented"])
@pytest.mark.parametrize("seed", [1, 4, 7, 12])
def test_forms_without_multipliers(form, seed):
    c = draw(seed, loops=1, stated=1, laws=True, n=3)
    given = (c.model, c.q, c.v, (c.t, 2.0), c.tau, c.f_ext)
    problem = mb.as_dae(*given, formulation=form, traced=False)
    J = problem.jac(c.t, problem.y0, problem.params)
    D = differences(problem, c.t, problem.y0, STEPS.get(form, 1e-6))
    assert np.abs(J - D).max() < DIFFERENCES * (1 + np.abs(D).max())


def test_large_ones_are_not_traced():
    """Recursions serve where tracing a Jacobian would take long, and small ones are traced."""
    entry = mechanisms.entry("bricard")
    model = entry.model()
    start = entry.start(model)
    kinds = {"augmented": StateJacobian, "minimal": MinimalJacobian}
    for form in ("index1", "augmented", "minimal"):
        more = {"multipliers": True} if form == "index1" else {}
        problem = mb.as_dae(model, *start, (0, 0.1), formulation=form, **more)
        own = problem.jac if form != "minimal" else problem.jac.__self__._exact
        assert isinstance(own, kinds.get(form, MultiplierJacobian))
        assert solve(problem, method="RADAU5", rtol=1e-6).success
    small = mechanisms.entry("four_bar")
    model = small.model()
    assert mb.as_dae(model, *small.start(model), (0, 1), formulation="index3").jac is None
