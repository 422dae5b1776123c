"""Every formulation of a mechanical system leads to the same motion."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from integrators import solve, traced
from integrators.dae import FORMULATIONS, Mechanical, consistent
from integrators.tracing import Traced
from tests.integrators.dae.systems import (
    FOUR_BARS_END,
    driven,
    driven_reference,
    four_bars,
    pendulum,
    pendulum_exact,
    squeezer,
    top,
    top_reference,
)

IMPLICIT = ("index3", "index2", "ggl", "overdetermined")
SOFT = ("baumgarte", "augmented")  # with feedback, which needs steps of its own


def run(problem, tol=1e-9):
    method = "RadauVariable" if problem.mass is not None else "DOP853"
    return solve(problem, method=method, rtol=tol, atol=tol, throw=True)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_pendulum(name):
    system = pendulum()
    solution = run(system.formulation(name))
    seen = system.observables(solution)
    exact = pendulum_exact(2.0)
    # A tolerance of 1e-9 leaves 1e-7: index 3 has fewer digits, and errors grow along the motion.
    np.testing.assert_allclose(seen.q[:, -1], exact[:2], atol=1e-7)
    np.testing.assert_allclose(seen.v[:, -1], exact[2:4], atol=1e-6)
    np.testing.assert_allclose(seen.multipliers[0, -1], exact[4], atol=1e-5)
    assert np.all(seen.rank == 1)
    assert seen.energy_error < 1e-6
    if seen.state_multipliers is not None:
        # λ of index 3 has an error of about tolerance/h².
        atol = 1e-2 if name == "index3" else 1e-4
        np.testing.assert_allclose(seen.state_multipliers[0, -1], exact[4], atol=atol)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_constraint_that_depends_on_time(name):
    system = driven(t_end=1.0)
    seen = system.observables(run(system.formulation(name)))
    end = np.concatenate([seen.q[:, -1], seen.v[:, -1]])
    np.testing.assert_allclose(end, driven_reference(1.0), atol=1e-6)


@pytest.mark.parametrize("name", [n for n in FORMULATIONS if n not in IMPLICIT])
@pytest.mark.parametrize("make", [driven, squeezer, top], ids=lambda f: f.__name__)
def test_python_and_machine_code_agree(make, name):
    fast, slow = make(trace=True).formulation(name), make(trace=False).formulation(name)
    if name != "minimal":
        assert isinstance(fast.f, Traced)
        assert not isinstance(slow.f, Traced)
    a, b = fast.rhs(0.0, fast.y0), slow.rhs(0.0, slow.y0)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("name", IMPLICIT)
def test_python_and_machine_code_agree_with_multipliers(name):
    fast, slow = (squeezer(trace).formulation(name) for trace in (True, False))
    assert isinstance(fast.f, Traced)
    rng = np.random.default_rng(3)
    y = fast.y0 + 1e-3 * rng.standard_normal(fast.n)
    np.testing.assert_allclose(fast.rhs(0.0, y), slow.rhs(0.0, y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["index1", "baumgarte", "ggl"])
def test_exact_jacobian_of_the_constrained_right_hand_side(name):
    problem = squeezer().formulation(name)
    J = problem.f.jacobian()(0.0, problem.y0)
    rng = np.random.default_rng(5)
    for _ in range(3):
        d = rng.standard_normal(problem.n)
        d[7:14] *= 100  # velocities of this mechanism are that large
        h = 1e-6
        difference = (
            problem.rhs(0.0, problem.y0 + h * d) - problem.rhs(0.0, problem.y0 - h * d)
        ) / (2 * h)
        np.testing.assert_allclose(
            J @ d, difference, rtol=1e-5, atol=1e-5 * np.abs(difference).max()
        )


def test_rotations_by_quaternion_with_fewer_velocities():
    reference = top_reference()
    system = top()
    for name in ("index1", "projected", "baumgarte", "minimal", "ggl"):
        seen = system.observables(run(system.formulation(name)))
        end = np.concatenate([seen.q[:3, -1], seen.v[3:, -1]])
        np.testing.assert_allclose(end, reference, atol=2e-6, err_msg=name)
        assert abs(np.linalg.norm(seen.q[3:, -1]) - 1) < 1e-8


def test_derived_terms_are_those_of_the_publication():
    derived, given = squeezer(derive=True), squeezer()
    rng = np.random.default_rng(1)
    q, v = given.q0 + 0.1 * rng.standard_normal(7), rng.standard_normal(7)
    a, b = derived.terms(0.0, q, v), given.terms(0.0, q, v)
    np.testing.assert_allclose(a.G, b.G, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(a.gamma, b.gamma, rtol=1e-12, atol=1e-15)
    assert np.all(a.nu == 0)


def test_derived_terms_of_a_moving_constraint():
    """G, γ and ν against differences of g along a motion q(t) with constant acceleration."""
    system, t0 = driven(), 0.4
    q, v, a = np.array([0.3, -0.8]), np.array([0.7, -0.2]), np.array([1.5, 0.6])
    now = system.terms(t0, q, v)
    h = 1e-4

    def g(s):
        return system.terms(t0 + s, q + v * s + a * s * s / 2, v).g

    first, second = (g(h) - g(-h)) / (2 * h), (g(h) - 2 * g(0.0) + g(-h)) / h**2
    np.testing.assert_allclose(now.G @ v - now.nu, first, atol=1e-7)
    np.testing.assert_allclose(now.G @ a - now.gamma, second, atol=1e-6)


def test_parts_may_be_given_traced():
    system = Mechanical(
        np.eye(2),
        traced(lambda t, q, v: np.array([0.0, -9.81]), n=2, params=2, outputs=2),
        traced(lambda t, q: (q[0] ** 2 + q[1] ** 2 - 1) / 2, n=2, outputs=1),
        q0=[1.0, 0.0],
        v0=[0.0, 0.0],
        t_span=(0.0, 1.0),
    )
    assert system.is_traced
    end = run(system.formulation("projected")).y[:, -1]
    np.testing.assert_allclose(end, pendulum_exact(1.0)[:4], atol=1e-7)


def test_parameters_reach_every_function():
    def system(p):
        return Mechanical(
            lambda t, q, p: p[0] * np.eye(2),
            lambda t, q, v, p: np.array([0.0, -p[0] * p[1]]),
            lambda t, q, p: np.array([q[0] ** 2 + q[1] ** 2 - p[2] ** 2]),
            q0=[p[2], 0.0],
            v0=[0.0, 0.0],
            t_span=(0.0, 1.0),
            params=p,
            trace=True,
        )

    p = [3.0, 9.81, 1.0]
    end = run(system(p).formulation("projected")).y[:, -1]
    np.testing.assert_allclose(end, pendulum_exact(1.0)[:4], atol=1e-7)
    weak = run(system([3.0, 1.0, 1.0]).formulation("projected")).y[:, -1]
    changed = run(system(p).formulation("projected").with_(params=[3.0, 1.0, 1.0])).y[:, -1]
    np.testing.assert_allclose(changed, weak, atol=1e-12)
    assert np.abs(changed - end).max() > 0.1


# -------------------------------------------------------------------- Andrews' squeezer (A03)

REFERENCE_BETA = 15.8107711951537070971  # quadruple precision; the published one has 10 digits


@pytest.mark.parametrize(
    ("name", "method", "tol"),
    [
        ("index1", "DOP853", 1e-11),
        ("projected", "DOP853", 1e-11),
        ("baumgarte", "DOP853", 1e-11),
        ("minimal", "DOP853", 1e-11),
        ("augmented", "DOP853", 1e-11),
        ("ggl", "RADAU5", 1e-10),
        ("index2", "RADAU5", 1e-10),
        ("index3", "RadauVariable", 1e-10),
    ],
)
def test_squeezer(name, method, tol, capsys):
    system = squeezer()
    options = {"T_stab": 1e-3} if name in SOFT else {}  # it turns 170 times a second
    solution = solve(system.formulation(name, **options), method=method, rtol=tol, atol=tol)
    seen = system.observables(solution)
    digits = -np.log10(abs(seen.q[0, -1] / REFERENCE_BETA - 1))
    with capsys.disabled():
        print(  # noqa: T201
            f"\n  {name} by {method}: {solution.nsteps} steps, {solution.nrejected} rejected, "
            f"β to {digits:.1f} digits, {seen.summary()}"
        )
    assert solution.success
    assert digits >= 8
    assert np.all(seen.rank == 6)


def test_the_summary_tells_what_there_is():
    def system(constraint, q0):
        return Mechanical(
            np.eye(2), lambda t, q, v: np.array([0.0, -2.0]), constraint, q0=q0, v0=[0.0, 0.0],
            t_span=(0.0, 1.0), invariants={"energy": lambda t, q, v: v @ v / 2 + 2.0 * q[1]},
        )  # fmt: skip

    slope = system(lambda t, q: np.array([q[0] - q[1]]), [0.0, 0.0]).formulation("index1")
    seen = solve(slope, method="ExplicitEuler", step=0.5).observed
    # Down a slope of 45° with a = −1 in x and y: after two steps of Euler v = −1 and y = −1/4.
    assert seen.energy_error == pytest.approx(0.5)
    assert re.fullmatch(
        r"drift \S+, velocity drift \S+, rank 1, energy error 5\.00e-01 \(absolute\)",
        seen.summary(),
    )
    turned = replace(seen, rank=np.arange(1, 1 + len(seen.t)))
    assert f"rank 1 to {len(seen.t)}, " in turned.summary()
    empty = np.zeros((0, len(seen.t)))
    tree = replace(seen, gap=empty, speed=empty, multipliers=empty, rank=0 * seen.rank)
    assert tree.summary() == "no constraints, energy error 5.00e-01 (absolute)"
    assert replace(tree, invariants={}).summary() == "no constraints"


def test_squeezer_starts_with_the_published_multipliers():
    system = squeezer()
    now = system.acceleration(0.0, system.q0, system.v0)
    np.testing.assert_allclose(now.v_dot[:2], [14222.4439199541, -10666.8329399655], rtol=1e-12)
    np.testing.assert_allclose(now.multipliers[:2], [-98.56687039624, 6.12268834425], rtol=1e-11)


# -------------------------------------------------------------------- stabilisation


def test_drift_without_stabilisation_grows():
    system = pendulum(t_end=10.0)

    def drift(name):
        solution = solve(system.formulation(name), method="RK4", step=0.01)
        seen = system.observables(solution)
        middle = len(seen.t) // 10
        return seen.drift[middle], seen.drift[-1], seen.velocity_drift[-1]

    early, late, _ = drift("index1")
    assert late > 20 * early > 1e-10
    for name in ("baumgarte", "projected"):
        _, stable, speed = drift(name)
        assert stable < 0.05 * late, name  # feedback leaves what comes in during T_stab
        if name != "baumgarte":
            assert stable < 1e-14
            assert speed < 1e-14


@pytest.mark.parametrize("trace", [True, False])
def test_gap_decays_as_baumgarte_says(trace):
    gap, T = 1e-3, 0.1
    system = Mechanical(
        np.diag([1.0, 3.0]),
        lambda t, q, v: np.array([-q[0], -9.81]),
        lambda t, q: np.array([q[1] - 2 * q[0]]),
        q0=[0.0, gap],
        v0=[1.0, 2.0],
        t_span=(0.0, 0.5),
        trace=trace,
    )
    problem = system.formulation("baumgarte", T_stab=T, allow_inconsistent=True)
    seen = system.observables(solve(problem, method="DOP853", rtol=1e-12, atol=1e-12))
    exact = gap * (1 + seen.t / T) * np.exp(-seen.t / T)
    np.testing.assert_allclose(seen.gap[0], exact, atol=1e-11)


def test_gains():
    from integrators.dae.formulations import T_STAB, gains

    assert gains(None, None, None, None) == (1 / T_STAB, 1 / T_STAB)
    assert gains(None, None, 0.02, None) == (50.0, 50.0)
    assert gains(3.0, None, None, None) == (3.0, 3.0)
    assert gains(3.0, 5.0, None, None) == (3.0, 5.0)
    alpha, beta = gains(None, None, "auto", 1e-3)
    assert alpha == beta == pytest.approx(100.0)


def test_the_automatic_time_constant_serves_its_step():
    system = pendulum(t_end=5.0)
    for step in (0.04, 0.02, 0.01):  # T_stab from 0.4 to 0.1
        drifts, errors = [], []
        for problem in (
            system.formulation("index1"),
            system.formulation("baumgarte", T_stab="auto", step=step),
        ):
            solution = solve(problem, method="RK4", step=step)
            drifts.append(system.observables(solution).drift.max())
            errors.append(np.abs(solution.y[:2, -1] - pendulum_exact(5.0)[:2]).max())
        assert drifts[1] < 0.1 * drifts[0]
        assert errors[1] < errors[0]


# -------------------------------------------------------------------- dependent constraints


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("name", ["index1", "baumgarte", "projected", "minimal", "augmented"])
def test_repeated_constraints(name, trace):
    system = pendulum(trace, rows=(1.0, 2.0, -1.0))
    assert system.rank() == 1
    seen = system.observables(run(system.formulation(name)))
    exact = pendulum_exact(2.0)
    np.testing.assert_allclose(seen.q[:, -1], exact[:2], atol=1e-7)
    # Least norm: proportional to the rows, and the same force as that of one constraint.
    factors = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(seen.multipliers[:, -1], exact[4] * factors / 6, atol=1e-5)
    assert np.all(seen.rank == 1)


def test_multipliers_that_are_not_unique_are_refused():
    system = pendulum(rows=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"rank 1 of 2.*without_redundant"):
        system.formulation("index3")
    reduced = system.without_redundant()
    assert (reduced.m, reduced.multiplier_names) == (1, ("λ1",))  # the larger row is kept
    seen = reduced.observables(run(reduced.formulation("ggl")))
    np.testing.assert_allclose(seen.q[:, -1], pendulum_exact(2.0)[:2], atol=1e-7)


def test_closure_function():
    system = pendulum()

    def closure(y):
        return np.array([np.sin(y[0]), -np.cos(y[0])])

    problem = system.formulation("minimal", closure=closure, y0=[np.pi / 2])
    assert isinstance(problem.f, Traced)
    seen = system.observables(run(problem))
    np.testing.assert_allclose(seen.q[:, -1], pendulum_exact(2.0)[:2], atol=1e-8)
    assert seen.drift.max() < 1e-14
    assert problem.invariants["energy"](0.0, problem.y0) == pytest.approx(0.0, abs=1e-14)


def test_independent_coordinates_change_along_the_way():
    system = pendulum()
    problem = system.formulation("minimal")
    first, second = run(problem), run(problem)
    changes = first.problem.f.work.changes
    assert first.success
    assert len(changes) >= 3
    assert second.problem.f.work.changes == changes  # every run starts alike
    np.testing.assert_array_equal(first.y, second.y)


# -------------------------------------------------------------------- singular positions (A02)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("baumgarte", {"alpha": 10.0, "solver": "svd"}),
        ("projected", {"solver": "svd"}),
        ("projected", {}),
    ],
)
def test_double_four_bar_through_its_singular_positions(name, options):
    """Position against the exact solution; energy and closure would prove nothing here."""
    system = four_bars()
    assert system.rank() == 4
    assert system.rank(0.0, [np.pi / 2] * 3 + [0.0] * 2) == 2  # all links in one line
    solution = solve(system.formulation(name, **options), method="RK4", step=1e-2, throw=True)
    angle = solution.y[0, -1]
    error = np.abs(np.array([np.sin(angle), np.cos(angle)]) - FOUR_BARS_END).max()
    assert error < 1e-6  # 5e-7 is what RK4 can do with this step


def test_a_run_gone_astray_ends_with_a_status():
    system = four_bars()
    solution = solve(system.formulation("index1", solver="svd"), method="RK4", step=1e-2)
    angle = solution.y[0, -1]
    error = np.abs(np.array([np.sin(angle), np.cos(angle)]) - FOUR_BARS_END).max()
    assert not solution.success or error > 0.1  # without stabilisation it cannot be right
    assert np.all(np.isfinite(solution.y))


def test_a_consistent_start_says_how_far_it_is_from_the_guess():
    """On a circle: the nearest place, and the velocity without its radial part."""
    circle = Mechanical(
        np.eye(2),
        lambda t, q, v: [0.0, -1.0],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1],
        q0=[0.7, 0.7],
        v0=[1.0, 0.25],
        t_span=(0, 1),
    )
    start = consistent(circle)
    assert start.q == pytest.approx(np.sqrt([0.5, 0.5]), rel=1e-12)
    assert start.v == pytest.approx([0.375, -0.375], rel=1e-12)
    assert start.moved == pytest.approx(np.sqrt(0.5) - 0.7, rel=1e-9)
    assert start.changed == pytest.approx(0.625, rel=1e-12)
    assert start.gap < 1e-15
    assert start.speed < 1e-15
    assert (start.rank, start.system.q0.tolist()) == (1, start.q.tolist())
    assert start.iterations in (2, 3, 4)
    again = consistent(start.system)
    assert (again.moved, again.iterations) == (0.0, 0) or again.moved < 1e-15
    assert again.changed < 1e-15


def on_a_line(gap, x):
    return Mechanical(
        np.eye(2), lambda t, q, v: [0.0, 0.0], gap, q0=[x, 0.0], v0=[0.0, 0.0], t_span=(0, 1)
    )


def test_closing_may_begin_with_a_step_too_far():
    """x³ = 8 from 1.2: Newton's first step leads to 2.65, where the gap is larger."""
    start = consistent(on_a_line(lambda t, q: [q[0] ** 3 - 8.0], 1.2))
    assert start.q == pytest.approx([2.0, 0.0], abs=1e-12)
    assert start.moved == pytest.approx(0.8)


def test_constraints_that_cannot_be_closed_say_how_near_they_came():
    """x² + 1 from x = 1: the gap is 2 at first, and never less than 1."""
    with pytest.raises(
        ValueError, match=r"came down from 2 to no less than 1(\.\d+)? \(constraint"
    ):
        consistent(on_a_line(lambda t, q: [q[0] ** 2 + 1.0], 1.0))
