"""Half-explicit Runge–Kutta, generalized-α, and Assimulo's solvers for constrained systems."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import IVP, Event, Status, problems, solve
from integrators.methods.mechanical.generalized_alpha import GeneralizedAlpha
from integrators.methods.mechanical.half_explicit import (
    HEM3,
    HEM4,
    HalfExplicit,
    _trees,
    half_explicit_order,
)
from integrators.methods.names import named_method
from tests.integrators.dae.systems import (
    driven,
    driven_reference,
    pendulum,
    pendulum_exact,
    squeezer,
    top,
    top_reference,
)


def slope(error, steps):
    """Observed order on the two finest grids."""
    errors = [error(n) for n in steps]
    return np.log2(errors[-2] / errors[-1])


# -------------------------------------------------------------------- order conditions


def test_orders_from_the_coefficients():
    expected = {"ExplicitEuler": 1, "Midpoint": 2, "Heun2": 2, "Kutta3": 3, "Ralston3": 2, "RK4": 3}
    assert {name: HalfExplicit(name).order for name in expected} == expected
    assert half_explicit_order(HEM3) == 3
    assert half_explicit_order(HEM4) == 4


def test_classical_trees_are_among_the_trees():
    """1, 1, 2, 4, 9 rooted trees without λ; those with λ come on top."""
    plain = [sum(_without_z(tree) for tree in _trees(order)) for order in range(1, 6)]
    assert plain == [1, 1, 2, 4, 9]
    assert len(_trees(2)) == 3  # y'' = f_y f + f_z z' with the two terms of z'
    assert HEM4.order == 4


def _without_z(tree):
    return tree[0] == "y" and all(_without_z(son) for son in tree[1])


@pytest.mark.parametrize("name", ["ExplicitEuler", "Heun2", "Ralston3", "RK4", "HEM3", "HEM4"])
def test_half_explicit_orders_are_observed(name):
    method, reference = HalfExplicit(name), driven_reference()
    system = driven()
    problem = system.formulation("index1")

    def error(n):
        y = solve(problem, method=method, step=3.0 / n, throw=True).y[:, -1]
        return np.abs(y - reference).max()

    grids = {1: (1500, 3000), 2: (800, 1600), 3: (300, 600), 4: (200, 400)}[method.order]
    # Ralston3 has a small error constant of order 2, and still looks like 2.2 here.
    assert slope(error, grids) == pytest.approx(method.order, abs=0.25)


def test_half_explicit_methods_keep_the_velocity_constraint():
    system = driven()
    for method in ("HEM4", "HalfExplicitEuler"):
        seen = system.observables(solve(system.formulation("index2"), method=method, step=0.05))
        assert seen.velocity_drift.max() < 1e-14
        assert seen.drift.max() > 1e-12  # positions drift …
        seen = system.observables(solve(system.formulation("projected"), method=method, step=0.05))
        assert seen.drift.max() < 1e-14  # … unless projected


def test_half_explicit_methods_fill_in_the_multipliers():
    system = pendulum()
    solution = solve(system.formulation("index2"), method="HEM4", rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solution.y[:, -1], pendulum_exact(2.0), rtol=1e-4)
    dense = solve(
        system.formulation("index2"), method="HEM4", rtol=1e-8, atol=1e-8, t_eval=[0.77, 1.3]
    )
    for t, y in zip(dense.t, dense.y.T):
        np.testing.assert_allclose(y, pendulum_exact(t), atol=2e-4)


@pytest.mark.parametrize(
    "method", ["HalfExplicit(DOPRI5)", "HEM4", "HalfExplicit(BogackiShampine)"]
)
def test_adaptive_half_explicit_methods(method):
    system = pendulum()
    solution = solve(system.formulation("projected"), method=method, rtol=1e-6, atol=1e-6)
    assert solution.success
    np.testing.assert_allclose(solution.y[:, -1], pendulum_exact(2.0)[:4], atol=2e-4)


# -------------------------------------------------------------------- generalized-α


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_generalized_alpha_has_order_two(rho):
    system = pendulum()
    problem, exact = system.formulation("index3"), pendulum_exact(2.0)

    def final(n):
        return solve(problem, method=GeneralizedAlpha(rho), step=2.0 / n, throw=True).y[:, -1]

    states = {n: final(n) for n in (400, 800)}
    for part in (slice(0, 2), slice(2, 4), slice(4, 5)):  # q, v, λ
        rate = slope(lambda n, part=part: np.abs(states[n] - exact)[part].max(), (400, 800))
        assert rate == pytest.approx(2.0, abs=0.15)
    seen = system.observables(solve(problem, method=GeneralizedAlpha(rho), step=0.01))
    assert seen.drift.max() < 1e-12


def test_generalized_alpha_parameters():
    for rho in (0.0, 0.5, 0.9):
        method = GeneralizedAlpha(rho)
        # Amplification matrix of q'' = −ω²q for ωh → ∞, from M v̇ = −ω²q: its radius is ρ∞.
        huge = 1e10
        b, g, m, f = method.beta, method.gamma, method.alpha_m, method.alpha_f
        # unknowns (q₁, v₁, a₁), h = 1; v̇ = −huge·q
        left = np.array([[1, 0, -b], [0, 1, -g], [(1 - f) * huge, 0, 1 - m]])
        right = np.array([[1, 1, 0.5 - b], [0, 1, 1 - g], [-f * huge, 0, -m]])
        radius = np.abs(np.linalg.eigvals(np.linalg.solve(left, right))).max()
        assert radius == pytest.approx(rho, abs=2e-3)


@pytest.mark.parametrize("trace", [True, False])
def test_generalized_alpha_on_rotations(trace):
    reference = top_reference()
    system = top(trace)
    problem = system.formulation("index3")

    def error(n):
        y = solve(problem, method="GeneralizedAlpha(0.9)", step=1.0 / n, throw=True).y[:, -1]
        assert abs(np.linalg.norm(y[3:7]) - 1) < 1e-12
        return np.abs(np.concatenate([y[:3], y[10:13]]) - reference).max()

    grids = (200, 400) if trace else (100, 200)
    assert slope(error, grids) == pytest.approx(2.0, abs=0.2)


def test_half_explicit_methods_on_rotations():
    reference, problem = top_reference(), top().formulation("projected")

    def error(n):
        y = solve(problem, method="HEM4", step=1.0 / n, throw=True).y[:, -1]
        return np.abs(np.concatenate([y[:3], y[10:13]]) - reference).max()

    assert slope(error, (50, 100)) == pytest.approx(4.0, abs=0.4)


def test_adaptive_generalized_alpha():
    system = pendulum()
    solution = solve(
        system.formulation("index3"), method="GeneralizedAlpha", rtol=1e-5, atol=1e-5, throw=True
    )
    np.testing.assert_allclose(solution.y[:4, -1], pendulum_exact(2.0)[:4], atol=2e-3)
    assert solution.nrejected < 0.2 * solution.nsteps


@pytest.mark.parametrize("method", ["GeneralizedAlpha", "HEM3"])
def test_dependent_constraints(method):
    once, twice = pendulum(), pendulum(rows=(1.0, 2.0))
    a, b = (solve(s.formulation("projected"), method=method, step=0.01) for s in (once, twice))
    np.testing.assert_allclose(a.y[:, -1], b.y[:, -1], atol=1e-9)


def test_squeezer_by_generalized_alpha():
    system = squeezer()
    solution = solve(system.formulation("index3"), method="GeneralizedAlpha(0.8)", step=1e-5)
    assert solution.success
    assert solution.y[0, -1] == pytest.approx(15.8107711951537, abs=0.02)  # h² of a fast motion


@pytest.mark.parametrize(
    ("method", "name", "options", "tolerance"),
    [
        ("HEM4", "index2", {"rtol": 1e-9, "atol": 1e-9}, 1e-7),
        ("GeneralizedAlpha", "index3", {"step": 0.002}, 2e-5),
        ("DOP853", "projected", {"rtol": 1e-9, "atol": 1e-9}, 1e-8),
        ("RADAU5", "ggl", {"rtol": 1e-9, "atol": 1e-9}, 1e-8),
    ],
)
def test_events(method, name, options, tolerance):
    """Released at rest from the horizontal, it passes the lowest point after a quarter period."""
    lowest = Event(lambda t, y: y[0], terminal=True)
    solution = solve(pendulum().formulation(name), method=method, events=lowest, **options)
    assert solution.status == Status.EVENT
    assert solution.t[-1] == pytest.approx(2.36784194757623744930 / 4, abs=tolerance)


@pytest.mark.parametrize(("method", "tolerance"), [("HEM4", 1e-9), ("GeneralizedAlpha", 1e-4)])
def test_backwards_in_time(method, tolerance):
    end = pendulum_exact(2.0)
    system = pendulum().with_(t_span=(2.0, 0.0), q0=end[:2], v0=end[2:4])
    solution = solve(system.formulation("index3"), method=method, step=0.002)
    assert solution.t[-1] == 0.0
    np.testing.assert_allclose(solution.y[:2, -1], [1.0, 0.0], atol=tolerance)


# -------------------------------------------------------------------- names, refusals


def test_names():
    assert named_method("HEM4").order == 4
    assert named_method("half-explicit euler").order == 1
    assert named_method("HalfExplicit(RK4)").name == "HalfExplicit(RK4)"
    assert named_method("generalized-alpha(0.5)").rho_inf == 0.5
    assert named_method("GeneralisedAlpha").rho_inf == 0.8


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HEM7", "HEM3 and HEM4"),
        ("HalfExplicit", "does not say which tableau"),
        ("HalfExplicit(RADAU5)", "explicit tableau"),
        ("GeneralizedAlpha(1.5)", "between 0 and 1"),
        ("GeneralizedAlpha(1)", "never decay"),
        ("GeneralizedAlpha(many)", "spectral radius"),
    ],
)
def test_bad_names(name, message):
    with pytest.raises(ValueError, match=message):
        named_method(name)


@pytest.mark.parametrize("method", ["HEM4", "GeneralizedAlpha"])
def test_a_plain_problem_is_refused(method):
    with pytest.raises(ValueError, match=r"needs M, f, g and G"):
        solve(problems.get("kepler"), method=method, step=0.1)
    with pytest.raises(ValueError, match="got baumgarte"):
        solve(pendulum().formulation("baumgarte"), method=method, step=0.1)


def test_a_step_without_solution():
    """In a step of 2 s the pendulum would have to jump further than the constraint allows."""
    solution = solve(pendulum(t_end=4.0).formulation("index3"), method="GeneralizedAlpha", step=2.0)
    assert not solution.success
    assert "did not converge in the step of 2" in solution.message


# -------------------------------------------------------------------- Assimulo

pytest.importorskip("assimulo", exc_type=ImportError)


@pytest.mark.parametrize(
    ("solver", "name", "tolerance"),
    [
        ("IDA", "index1", 1e-4),
        ("IDA", "index2", 1e-4),
        ("IDA", "ggl", 1e-4),
        ("Radau5DAE", "index1", 1e-5),
        ("Radau5DAE", "index2", 1e-5),
        ("Radau5DAE", "index3", 1e-5),
        ("Radau5DAE", "ggl", 1e-5),
        ("Radau5DAE", "overdetermined", 1e-5),
        ("ODASSL", "index1", 1e-4),
        ("ODASSL", "index2", 1e-4),
        ("ODASSL", "index3", 1e-3),
        ("ODASSL", "overdetermined", 1e-4),
        ("GLIMDA", "index1", 1e-4),
    ],
)
def test_assimulo(solver, name, tolerance, capfd):
    system = pendulum()
    options = {"multipliers": True} if name == "index1" else {}
    problem = system.formulation(name, **options)
    times = [0.5, 1.25, 2.0]
    solution = solve(problem, method=f"assimulo:{solver}", rtol=1e-7, atol=1e-7, t_eval=times)
    assert solution.success, solution.message
    for t, y in zip(solution.t, solution.y.T):
        np.testing.assert_allclose(y[:2], pendulum_exact(t)[:2], atol=tolerance)
    assert capfd.readouterr().out == ""


def test_assimulo_backwards():
    system = pendulum().with_(
        t_span=(2.0, 0.0), q0=pendulum_exact(2.0)[:2], v0=pendulum_exact(2.0)[2:4]
    )
    solution = solve(system.formulation("ggl"), method="assimulo:Radau5DAE", rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solution.y[:2, -1], [1.0, 0.0], atol=1e-5)


def test_assimulo_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="index 1 only; this one has index 3"):
        solve(pendulum().formulation("index3"), method="assimulo:GLIMDA")
    with pytest.raises(ValueError, match="did you mean assimulo:Radau5DAE"):
        solve(pendulum().formulation("index3"), method="assimulo:Radau5DAEE")
    with pytest.raises(ValueError, match="mass matrix"):
        solve(pendulum().formulation("index3"), method="assimulo:CVode")


def test_explicit_methods_name_what_they_can_solve():
    with pytest.raises(ValueError, match=r"singular.*differential-algebraic.*'projected'"):
        solve(pendulum().formulation("index3"), method="DOPRI5")
    assert solve(pendulum().formulation("projected"), (0.0, 0.1), method="DOPRI5").success
    regular = IVP(lambda t, y: -y, [1.0, 1.0], (0, 1), mass=np.diag([1.0, 2.0]))
    assert solve(regular, method="DOPRI5").y[1, -1] == pytest.approx(np.exp(-0.5), abs=1e-6)
