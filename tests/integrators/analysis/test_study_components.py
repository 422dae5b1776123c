"""The order of each component, drift, and what is said of methods that projections set back."""

import numpy as np
import pytest

from integrators import DAE, IVP, solve
from integrators.analysis import component_orders, drift, plot
from integrators.problems.dae_systems import system


@pytest.fixture(scope="module")
def pendulum():
    return system("pendulum_chain")


@pytest.mark.parametrize("stages", [2, 3])
def test_radau_iia_of_index_3(pendulum, stages):
    """Hairer, Lubich & Roche: 2s − 1, s and s − 1 for positions, velocities and multipliers."""
    found = component_orders(
        pendulum.problem("given", 2.0).with_(project=None), f"RadauIIA{stages}"
    )
    expected = dict(zip(["x1", "z1", "lambda1", "x1'", "z1'"],
                        [2 * stages - 1] * 2 + [stages - 1] + [stages] * 2))  # fmt: skip
    assert found.index == {"x1": 1, "z1": 1, "lambda1": 3, "x1'": 2, "z1'": 2}
    for name, order in expected.items():
        if found[name].estimate.found:  # positions may not have settled; they never show less
            assert found.orders[name] == pytest.approx(order, abs=0.1), name
    assert found.lost == {"lambda1": stages, "x1'": stages - 1, "z1'": stages - 1}
    assert f"loses {stages} orders" in str(found)
    assert plot.convergence(found).get_legend() is not None
    # Put onto the hidden constraints after each step, all have the order of the method.
    restored = component_orders(pendulum.problem("given", 2.0), f"RadauIIA{stages}")
    assert list(restored.orders.values()) == pytest.approx([2 * stages - 1] * 5, abs=0.1)


@pytest.mark.parametrize(
    ("method", "differential", "algebraic"),
    [("RadauIIA2", 3, 2), ("LobattoIIIC3", 4, 2)],
)
def test_index_2(method, differential, algebraic):
    """Radau IIA: 2s − 1 and s; Lobatto IIIC: 2s − 2 and s − 1 (Hairer, Lubich & Roche, table)."""

    def F(t, y, d):
        x, z, lam = y
        push = 0.5 * np.cos(t)
        return [d(x) + z - lam * x - push, d(z) - x - lam * z * (1 + z / 4), x**2 + z**2 - 1]

    circle = DAE(F, names=["x", "z", "lambda"])
    start = circle.consistent(fixed={"x": 1.0})
    found = component_orders(circle.problem(start, (0.0, 2.0), "given").with_(project=None), method)
    assert circle.structure().index == 2
    assert found.orders["lambda"] == pytest.approx(algebraic, abs=0.15)
    for name in ("x", "z"):
        if found[name].estimate.found:
            assert found.orders[name] >= differential - 0.15


def test_reduced_roads_lose_nothing(pendulum):
    found = component_orders(pendulum.problem("underlying", 2.0), "RK4")
    assert found.lost == {}
    assert list(found.orders.values()) == pytest.approx([4.0] * 5, abs=0.1)
    backwards = component_orders(pendulum.problem("underlying", -2.0), "Heun", over="end")
    assert backwards.lost == {}
    assert max(backwards.orders.values()) == pytest.approx(2.0, abs=0.2)


def test_any_problem_has_components():
    """Against the exact solution; a component that is exact shows no order, and none is claimed."""
    problem = IVP(
        lambda t, y: np.array([-y[0], 1.0]),
        [1.0, 0.0],
        (0.0, 1.0),
        exact=lambda t: np.array([np.exp(-t), t]),
    )
    found = component_orders(problem, "RK4", [0.1, 0.05, 0.025])
    assert found.orders["y0"] == pytest.approx(4.0, abs=0.1)
    assert not found["y1"].estimate.found
    assert found.origin == "the exact solution"
    assert "round-off" in str(found)


def test_refusals(pendulum):
    problem = pendulum.problem("given", 1.0)
    with pytest.raises(ValueError, match="at least 3"):
        component_orders(problem, "RadauIIA2", [0.1, 0.05])
    with pytest.raises(ValueError, match="longer than the interval"):
        component_orders(problem, "RadauIIA2", [2.0, 0.1, 0.05])
    with pytest.raises(ValueError, match="'max' or 'end'"):
        component_orders(problem, "RadauIIA2", over="middle")
    with pytest.raises(KeyError, match="not among the components"):
        component_orders(problem, "RadauIIA2", [0.2, 0.1, 0.05])["q"]
    with pytest.raises(ValueError, match="nothing to observe"):
        drift(solve(IVP(lambda t, y: -y, [1.0], (0.0, 1.0))))
    ladder = system("ladder", sections=2).problem("given", 0.1)
    with pytest.raises(ValueError, match="no constraint"):
        drift(solve(ladder, method="RADAU5"))
    with pytest.raises(TypeError, match="expected a solution"):
        drift({"a": 3})


def test_drift_grows_as_theory_says(pendulum):
    """Without projection g drifts as t² and ġ as t; with it both stay at rounding."""
    projected = pendulum.problem("underlying", 50.0)
    problems = {"projected": projected, "free": projected.with_(project=None)}
    found = drift({name: solve(p, method="RK4", step=0.1) for name, p in problems.items()})
    assert found["free", "f2"].growth == pytest.approx(2.0, abs=0.1)
    assert found["free", "f2'"].growth == pytest.approx(1.0, abs=0.1)
    assert found.largest["projected"] < 1e-14
    assert np.isnan(found["projected", "f2"].growth)
    sol = solve(problems["free"], method="RK4", step=0.1)
    x, z = sol.y[:2]
    assert found["free", "f2"].residual == pytest.approx(x**2 + z**2 - 1, abs=1e-14)
    axes = plot.drift(found)
    assert len(axes.lines) == 8
    assert axes.get_yscale() == "log"


def test_drift_of_a_mechanism():
    from integrators.dae import Mechanical

    bob = Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -9.81]),
        lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
        q0=[1.0, 0.0],
        v0=[0.0, 0.0],
        t_span=(0.0, 2.0),
    )
    found = drift(solve(bob.formulation("projected"), method="RK4", step=0.05))
    assert [curve.constraint for curve in found.curves] == ["max |g|", "max |G v − ν|"]
    assert max(found.largest.values()) < 1e-10


def test_multistep_methods_that_projections_set_back_say_so(pendulum):
    problem = pendulum.problem("underlying", 2.0)
    sol = solve(problem, method="scipy:LSODA", rtol=1e-8, atol=1e-8)
    assert sol.success
    assert "LSODA is a multistep method and began anew, at order 1" in sol.message
    assert "DOPRI853" in sol.message
    for method in ("scipy:DOP853", "scipy:Radau"):
        assert "began anew" not in solve(problem, method=method, rtol=1e-6, atol=1e-6).message
    free = problem.with_(project=None)
    assert "began anew" not in solve(free, method="scipy:LSODA", rtol=1e-8, atol=1e-8).message
