"""Additive (IMEX) methods: coupled order conditions, steps, runs in combination."""

import pickle
from functools import cache

import numpy as np
import pytest

from integrators import (
    IVP,
    Additive,
    Event,
    Split,
    Status,
    Tableau,
    analysis,
    catalogue,
    check_method,
    problems,
    solve,
    solve_many,
    stepper,
    traced,
)
from integrators.tableau.additive import additive_check

SCHEMES = catalogue.entries("IMEX")
NAMES = [e.name for e in SCHEMES]
each = pytest.mark.parametrize("name", NAMES)


def fast(t, y):
    return np.array([np.cos(t) - y[0] * y[1], np.sin(y[0] * t)])


def slow(t, y):
    return np.array([-3 * y[0] + 0.3 * y[1] ** 2, -2 * y[1] + y[0] * np.cos(2 * t)])


START = [0.7, 0.4]


@cache
def best():
    return solve(lambda t, y: fast(t, y) + slow(t, y), (0, 3), START, method="DOP853", rtol=3e-14,
                 atol=1e-15, dense_output=True)  # fmt: skip


# -------------------------------------------------------------------- coefficients


@pytest.mark.parametrize("entry", SCHEMES, ids=NAMES)
def test_declared_is_derived(entry):
    method = entry.method
    assert (method.name, method.reference) == (entry.name, entry.reference)
    assert (method.order, method.embedded_order) == (entry.order, entry.embedded_order)
    assert method.stages == entry.stages
    assert analysis.report(method).verdicts["L"]
    weights = method.explicit.b, method.implicit.b
    assert all(method.residual(p, weights) < 1e-23 for p in range(1, method.order + 1))
    assert method.residual(method.order + 1, weights) > 1e-3
    assert pickle.loads(pickle.dumps(method)) == method


def test_coupling_counts():
    """Halves of order 2 each with the same nodes, but weights that do not fit, are of order 1."""
    explicit = Tableau([[], ["1/2"], [0, 1]], [0, 1, 0])
    implicit = Tableau([[0], ["1/4", "1/4"], ["1/2", "1/4", "1/4"]], ["1/4", "1/2", "1/4"])
    assert (explicit.order, implicit.order) == (2, 2)
    assert Additive(explicit, implicit).order == 2  # nodes are shared: to order 2 that is enough
    for name in ("ARK436", "ARK548"):  # … from order 4 on it is not: another's explicit half
        halves = catalogue.entry(f"{name}IMEX").method
        shifted = [[float(a) for a in row] for row in halves.explicit.A]
        shifted[3][1] += 0.1
        shifted[3][0] -= 0.1
        off = Additive(Tableau(shifted, halves.explicit.b, check=False), halves.implicit)
        assert off.order < halves.order


# -------------------------------------------------------------------- orders, dense output


@each
@pytest.mark.parametrize("is_traced", [False, True])
def test_order(name, is_traced):
    f = Split(traced(fast, n=2), traced(slow, n=2)) if is_traced else Split(fast, slow)
    order, end = catalogue.entry(name).order, best().y[:, -1]
    errors = [
        np.abs(solve(f, (0, 3), START, method=name, step=3 / n).y[:, -1] - end).max()
        for n in (80, 160)
    ]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


def test_a_step_is_the_definition():
    """ARK436 by hand, with a linear implicit part, for which the stages are linear systems."""
    method, h = catalogue.entry("ARK436IMEX").method, 0.1
    L = np.array([[-50.0, 3.0], [1.0, -7.0]])
    AE, b, c = method.explicit.arrays
    AI = method.implicit.arrays[0]
    y, E, I = np.array(START), [], []
    for i in range(method.stages):
        base = y + h * sum((AE[i, j] * E[j] + AI[i, j] * I[j] for j in range(i)), np.zeros(2))
        stage = np.linalg.solve(np.eye(2) - h * AI[i, i] * L, base)
        E.append(fast(c[i] * h, stage))
        I.append(L @ stage)
    expected = y + h * (b @ np.array(E) + b @ np.array(I))
    for f in (Split(fast, lambda t, y: L @ y), Split(fast, lambda t, y: L @ y, jac=L)):
        end = solve(f, (0, h), START, method=method, step=h).y[:, -1]
        assert np.max(np.abs(end - expected)) < 1e-13


@each
def test_between_the_steps(name):
    f = Split(traced(fast, n=2), traced(slow, n=2))
    tol = 1e-5 if name == "ARS222" else 1e-7
    run = solve(f, (0, 3), START, method=name, rtol=tol, atol=tol, dense_output=True)
    times = np.linspace(0, 3, 301)
    at_steps = np.abs(run.y - best().sol(run.t)).max()
    assert at_steps < 10 * tol
    assert np.abs(run.sol(times) - best().sol(times)).max() < 3 * at_steps


@pytest.mark.parametrize("name", ["ARK324IMEX", "ARK548IMEX"])
def test_stiff_between_the_steps(name):
    """Diffusion and reaction: the stiff part is a thousand times as fast."""
    problem = problems.get("brusselator_1d", n=30, t_end=2.0)
    times = np.linspace(0, 2, 40)
    run = solve(problem, method=name, rtol=1e-5, atol=1e-5, t_eval=times)
    exact = solve(problem, method="RADAU5", rtol=1e-9, atol=1e-9, t_eval=times)
    assert run.success
    assert np.max(np.abs(run.y - exact.y)) < 30 * 1e-5
    assert run.njev == 1  # it is constant


# -------------------------------------------------------------------- runs


@each
def test_a_contact_is_seen(name):
    free = Split(
        lambda t, y: np.array([y[1], -9.81]),
        lambda t, y: np.array([0.0, -1e5 * np.minimum(y[0], 0.0)]),
    )
    tol = 1e-4 if name == "ARS222" else 1e-7
    run = solve(free, (0, 3), [1.0, 0.0], method=name, rtol=tol, atol=tol)
    end = solve(free, (0, 3), [1.0, 0.0], method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    assert run.success
    assert np.abs(run.y[:, -1] - end).max() < 0.05


def test_other_methods_see_the_sum():
    for f in (Split(fast, slow), Split(traced(fast, n=2), traced(slow, n=2))):
        for method in ("DOPRI5", "RADAU5", "Rodas4P", "BDF", "auto"):
            run = solve(f, (0, 3), START, method=method, rtol=1e-7, atol=1e-7)
            assert np.abs(run.y[:, -1] - best().y[:, -1]).max() < 1e-4
        copy = pickle.loads(pickle.dumps(Split(fast, slow)))
        assert np.array_equal(copy(0.3, np.array(START)), Split(fast, slow)(0.3, np.array(START)))


def test_jumps_at_stops():
    """A part that jumps: both its values belong to their own side of the stop."""
    f = Split(lambda t, y: np.array([1.0 if t >= 1.0 else 0.0]), lambda t, y: -y)
    for name in NAMES:
        run = solve(f, (0, 2), [0.0], method=name, rtol=1e-6, atol=1e-8, tstops=[1.0])
        assert abs(run.y[0, -1] - (1 - np.exp(-1))) < 2e-5


def test_combinations():
    rng = np.random.default_rng(5)
    for _ in range(24):
        name = str(rng.choice(NAMES))
        is_traced, backward, event, is_complex, fixed = rng.integers(0, 2, 5).astype(bool)
        is_traced = is_traced and not is_complex
        rate = float(rng.uniform(0.5, 20.0))

        def explicit(t, y, p):
            return np.array([0.1 * y[1] + np.cos(t), y[0] * np.sin(2 * t)])

        def implicit(t, y, p):
            return np.array([-p[0] * y[0], -y[1] + 0.1 * y[0] * y[1]])

        parts = (explicit, implicit)
        if is_traced:
            parts = tuple(traced(part, n=2, params=1) for part in parts)
        span = (0.3, 0.0) if backward else (0.0, 2.0)
        y0 = np.array([0.7, 0.9]) + (0.2j if is_complex else 0.0)
        g = Event(lambda t, y: (y[1] - 0.5).real, reset=lambda t, y: y + np.array([0.0, 0.4]))
        times = np.linspace(*span, 7)
        common = {"t_eval": times, "events": g if event and not is_complex else None}
        tol = 1e-5 if name == "ARS222" else 1e-7
        control = {"step": 0.002} if fixed else {"rtol": tol, "atol": tol}
        problem = IVP(Split(*parts), y0, span, [rate])
        ours = solve(problem, method=name, **control, **common)
        exact = solve(problem, method="DOP853", rtol=1e-11, atol=1e-11, **common)
        where = (name, is_traced, backward, event, is_complex, fixed)
        assert ours.success, where
        scale = np.exp(0.3 * rate) if backward else 1.0
        assert np.max(np.abs(ours.y - exact.y)) < 3e-4 * scale, where


def test_stepper_many_and_check():
    f = Split(
        traced(lambda t, y, p: np.array([np.sin(t)]) + 0 * y, n=1, params=1),
        traced(lambda t, y, p: -p[0] * y, n=1, params=1),
    )
    problem = IVP(f, [1.0], (0.0, 2.0), [1.0])
    many = solve_many(problem, params=[[1.0], [50.0]], method="ARK436IMEX", rtol=1e-8, atol=1e-8)
    for rate, end in zip((1.0, 50.0), many.y):
        one = solve(problem.with_(params=[rate]), method="ARK436IMEX", rtol=1e-8, atol=1e-8)
        assert end[0] == one.y[0, -1]
    run = stepper(problem, method="ARK324IMEX")
    for _ in range(3):
        run.step()
    assert run.t > 0
    assert check_method("ARK324IMEX").ok


# -------------------------------------------------------------------- refusals


def test_refusals():
    with pytest.raises(ValueError, match=r"integrators\.Split"):
        solve(lambda t, y: -y, (0, 1), [1.0], method="ARK324IMEX")
    f = Split(fast, slow)
    with pytest.raises(ValueError, match="divide both parts by the mass matrix"):
        solve(f, (0, 1), START, method="ARK324IMEX", mass=np.diag([2.0, 1.0]))
    euler = Additive(Tableau([[], [1]], [1, 0]), Tableau([[0], [0, 1]], [0, 1]), name="Euler")
    with pytest.raises(ValueError, match="no embedded method"):
        solve(f, (0, 1), START, method=euler)
    assert solve(f, (0, 1), START, method=euler, step=0.1).success
    with pytest.raises(TypeError, match="must be a function"):
        Split(fast, 3.0)
    with pytest.raises(ValueError, match="not explicit"):
        Additive(catalogue.get("ARK324"), catalogue.get("ARK324"))
    with pytest.raises(ValueError, match="explicit first stage"):
        Additive(catalogue.get("RK4"), catalogue.get("RK4"))
    with pytest.raises(TypeError, match="additive method of two tableaux"):
        analysis.stability_function("ARK324IMEX")

    def fails(t, y):
        raise RuntimeError("no further")

    with pytest.raises(RuntimeError, match="no further"):
        solve(Split(fast, fails), (0, 1), START, method="ARK324IMEX")
    grows = solve(Split(lambda t, y: y**2, lambda t, y: 0 * y), (0, 2), [1.0], method="ARK436IMEX")
    assert grows.status in (Status.STEP_TOO_SMALL, Status.NONFINITE, Status.NEWTON_FAILED)


@pytest.mark.parametrize("rate", [1e4, 1e6, 1e8])
@each
def test_a_stiff_component_alone_is_followed_inside_the_steps(name, rate):
    """Steps of any length end on the solution: what happens inside must limit them."""
    slow = traced(lambda t, y, p: -2 * np.sin(2 * t) + 0 * y, n=1, params=1)
    stiff = traced(lambda t, y, p: -p * (y - np.cos(2 * t)), n=1, params=1)
    options = dict(method=name, rtol=1e-4, atol=1e-4, params=[rate])
    run = solve(Split(slow, stiff), (0, 3), [1.0], dense_output=True, **options)
    assert np.array_equal(run.y, solve(Split(slow, stiff), (0, 3), [1.0], **options).y)
    times = (run.t[:-1, None] + np.diff(run.t)[:, None] * np.linspace(0, 1, 9)).ravel()
    at_steps = np.max(np.abs(run.y[0] - np.cos(2 * run.t)))
    assert np.max(np.abs(run.sol(times)[0] - np.cos(2 * times))) < 10 * max(at_steps, 1e-4)
    assert at_steps < 3e-4


@each
def test_what_is_looked_at_inside_a_step_lies_on_states(name):
    """A polynomial through states of stages: at nodes of theirs it is they."""
    method = catalogue.entry(name).method
    check = additive_check(method)
    A, A_implicit = method.explicit.arrays[0], method.implicit.arrays[0]
    c = method.explicit.arrays[2]
    states = np.vstack([np.hstack([A, A_implicit]), check.value])
    # Of f_E = 0 and f_I = g'(t) with slopes at the stages that give states tᵏ, as stiff ones do.
    for k in range(2, check.order + 1):
        slopes = np.zeros(2 * method.stages)
        slopes[method.stages + 1 :] = np.linalg.solve(A_implicit[1:, 1:], c[1:] ** k)
        assert np.allclose(states @ slopes, np.append(c, check.node) ** k, atol=1e-12)
