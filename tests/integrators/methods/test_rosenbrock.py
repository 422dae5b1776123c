"""Rosenbrock and W-methods: coefficients, orders of every kind, steps, runs in combination."""

import pickle
import re
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import solve_ivp

from integrators import (
    IVP,
    Event,
    Rosenbrock,
    Status,
    analysis,
    catalogue,
    solve,
    solve_many,
    stepper,
    traced,
)
from integrators.problems import detest
from integrators.tableau.coloured import Family, coloured_trees, written
from integrators.tableau.rosenbrock import CONSTRAINED, WITH_MATRIX
from integrators.tableau.rosenbrock_extension import rosenbrock_check

SCHEMES = catalogue.entries("Rosenbrock")
NAMES = [e.name for e in SCHEMES]
ROUNDING = 2e-14  # of order conditions, with coefficients of 16 digits up to 150
each = pytest.mark.parametrize("name", NAMES)


# -------------------------------------------------------------------- coefficients


@pytest.mark.parametrize("entry", SCHEMES, ids=NAMES)
def test_declared_is_derived(entry):
    method, declared = entry.method, entry.declared
    assert (method.name, method.reference) == (entry.name, entry.reference)
    assert (method.stages, method.order) == (entry.stages, entry.order)
    assert method.embedded_order == entry.embedded_order
    assert method.w_order >= declared.get("w_order", 1)
    assert method.dae_order == declared["dae_order"]
    found = "L" if analysis.l_stability(method) else "A" if analysis.a_stability(method) else "–"
    assert found == entry.stability
    keys = re.findall(r"^@\w+\{(\w+),", (files("integrators") / "references.bib").read_text(), re.M)
    assert entry.reference in keys
    assert pickle.loads(pickle.dumps(method)) == method


@pytest.mark.parametrize("entry", SCHEMES, ids=NAMES)
def test_orders_do_not_depend_on_what_was_asked_before(entry):
    """Weights of trees are kept; whoever asks for them first, they have all digits."""
    fresh = pickle.loads(pickle.dumps(entry.method))
    rosenbrock_check.__wrapped__(fresh)
    assert (fresh.order, fresh.dae_order) == (entry.order, entry.declared["dae_order"])


@each
def test_conditions_hold_to_round_off(name):
    method = catalogue.entry(name).method
    for root, highest in ((0, method.order), (1, method.order - 1)):
        for tree in coloured_trees(CONSTRAINED, highest, root):
            assert method.condition(CONSTRAINED, tree)[0] < ROUNDING, written(tree, "fg")
    plain = Family([1]).trees(method.order + 1, 0)
    assert max(method.condition(CONSTRAINED, tree)[0] for tree in plain) > 1e-3


def test_numbers_of_trees():
    """Roche's and Steihaug and Wolfbrandt's counts: trees of index 1, trees with a matrix."""
    assert [len(CONSTRAINED.trees(n, 0)) for n in (1, 2, 3, 4)] == [1, 2, 10, 56]
    assert [sum(len(WITH_MATRIX.trees(n, c)) for c in (0, 1)) for n in (1, 2, 3, 4)] == [
        1,
        2,
        5,
        13,
    ]
    assert [len(Family([1]).trees(n, 0)) for n in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]


def test_forms_of_coefficients():
    """ROS3P as published in the transformed form is the one that is defined by α and γ."""
    g = "(1/2+sqrt(3)/6)"
    t, u = f"(-(2-1/(2*{g}))/{g})", f"((2/3-1/(6*{g}))/{g})"
    published = Rosenbrock.transformed(
        f"1/{g}\n1/{g} 0", f"-1/{g}**2\n-(1-{t})/{g} {t}", g, f"(1+{u})/{g} {u} 1/(3*{g})"
    )
    own = catalogue.entry("ROS3P").method
    for mine, theirs in ((own.alpha, published.alpha), (own.gamma, published.gamma)):
        for row, line in zip(mine, theirs):
            assert np.allclose([float(x) for x in row[:3]], [float(x) for x in line], atol=1e-15)
    assert (published.order, published.dae_order) == (3, 3)


# -------------------------------------------------------------------- one step


def _step(method, f, jac, by_time, mass, t, y, h):
    """A step as it is defined, with matrices of NumPy."""
    alpha = np.array([[float(x) for x in row] for row in method.alpha])
    gamma = np.array([[float(x) for x in row] for row in method.gamma])
    b = np.array([float(x) for x in method.b])
    k = np.zeros((len(b), len(y)))
    J = jac(t, y)
    for i in range(len(b)):
        right = h * f(t + alpha[i].sum() * h, y + alpha[i] @ k)
        right = right + h * J @ (gamma[i, :i] @ k[:i]) + gamma[i].sum() * h * h * by_time(t, y)
        k[i] = np.linalg.solve(mass - h * gamma[i, i] * J, right)
    return y + b @ k


def _system(t, y):
    return np.array([-y[0] * y[1] + np.cos(t), y[1] - y[0] ** 2 - np.sin(t) * y[0] - 1.0])


def _system_jacobian(t, y):
    return np.array([[-y[1], -y[0]], [-2 * y[0] - np.sin(t), 1.0]])


def _system_by_time(t, y):
    return np.array([-np.sin(t), -np.cos(t) * y[0]])


START = np.array([0.5, 0.25 + 1.0])  # consistent with 0 = z − y² − … at t = 0


@each
@pytest.mark.parametrize("mass", [np.eye(2), np.array([[2.0, 0.3], [0.1, 1.0]]), np.diag([1.0, 0])])
def test_step_is_the_definition(name, mass):
    method, h = catalogue.entry(name).method, 0.1
    expected = _step(method, _system, _system_jacobian, _system_by_time, mass, 0.0, START, h)
    given = None if np.array_equal(mass, np.eye(2)) else mass
    for f in (_system, traced(_system, n=2)):
        end = solve(IVP(f, START, (0.0, h), mass=given), method=method, step=h).y[:, -1]
        assert np.max(np.abs(end - expected)) < (1e-13 if f is not _system else 1e-8)


# -------------------------------------------------------------------- orders, measured


@cache
def _solution(mass):
    given = None if mass == "none" else np.diag([1.0, 0.0])
    return solve(_system, (0.0, 1.5), START, method="RADAU5", mass=given, rtol=1e-13, atol=1e-13).y[
        :, -1
    ]


@each
def test_order_on_index_one(name):
    f, end = traced(_system, n=2), _solution("singular")
    errors = []
    for steps in (20, 40, 80):
        run = solve(f, (0.0, 1.5), START, method=name, mass=np.diag([1.0, 0.0]), step=1.5 / steps)
        errors.append(np.abs(run.y[:, -1] - end).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes[-1] > catalogue.entry(name).declared["dae_order"] - 0.35


@pytest.mark.parametrize(("name", "order"), [("ROS34PW2", 3), ("Rodas5P", 2), ("Rodas4", 1)])
def test_order_with_a_wrong_jacobian(name, order):
    """Any matrix in place of J leaves a W-method its order."""
    wrong = np.array([[-3.0, 1.0], [0.5, -2.0]])
    f = traced(lambda t, y: np.array([-y[0] * y[1] + np.cos(t), np.sin(t) - y[1] ** 2]), n=2)
    end = solve_ivp(f, (0, 2), [1.0, 0.5], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    errors = []
    for steps in (64, 128, 256):
        run = solve(f, (0, 2), [1.0, 0.5], method=name, jac=wrong, step=2 / steps)
        errors.append(np.abs(run.y[:, -1] - end).max())
    assert abs(np.log2(errors[1] / errors[2]) - order) < 0.2


@pytest.mark.parametrize(
    ("name", "low", "high"), [("ROS3P", 2.75, 3.1), ("Rodas4P", 3.75, 4.1), ("Rodas4", 2.0, 2.7)]
)
def test_reduction_of_order_on_a_parabolic_problem(name, low, high):
    """Heat with moving ends, exact in space: q(x) e^(−t) cos 5t with a parabola q."""
    n = 40
    x, dx = np.arange(1, n + 1) / (n + 1), 1 / (n + 1)
    A = (np.diag(np.ones(n - 1), -1) - 2 * np.eye(n) + np.diag(np.ones(n - 1), 1)) / dx**2

    def q(x):
        return 1 + x + x * x

    def f(t, y):
        c, rate = np.exp(-t) * np.cos(5 * t), -np.exp(-t) * (np.cos(5 * t) + 5 * np.sin(5 * t))
        slope = A @ y + q(x) * rate - 2 * c
        slope[[0, -1]] += c * np.array([q(0.0), q(1.0)]) / dx**2
        return slope

    end = q(x) * np.exp(-1) * np.cos(5)
    errors = [
        np.abs(solve(f, (0, 1), q(x), method=name, jac=A, step=1 / k).y[:, -1] - end).max()
        for k in (50, 100)
    ]
    assert low < np.log2(errors[0] / errors[1]) < high


# -------------------------------------------------------------------- runs


@each
def test_detest(name):
    """Errors over tolerances at the end of the stiff problems."""
    worst = []
    for problem_name in detest.names("stiff"):
        problem = detest.get(problem_name)
        run = solve(problem, method=name, rtol=1e-6, atol=1e-6)
        assert run.success, (problem_name, run.message)
        end = np.asarray(list(problem.references.values())[-1], dtype=float)
        worst.append(np.max(np.abs(run.y[:, -1] - end) / (1e-6 + 1e-6 * np.abs(end))))
    assert np.median(worst) < 1.0
    assert max(worst) < 30.0


@each
def test_between_the_steps(name):
    f = traced(lambda t, y: np.array([np.cos(3 * t) - 2 * t * y[0] * y[1], y[0] - y[1] ** 2]), n=2)
    exact = solve_ivp(f, (0, 4), [1, 0.5], "DOP853", rtol=3e-14, atol=1e-15, dense_output=True).sol
    run = solve(f, (0, 4), [1.0, 0.5], method=name, rtol=1e-8, atol=1e-8, dense_output=True)
    at_steps, times = np.abs(run.y - exact(run.t)).max(), np.linspace(0, 4, 999)
    assert np.abs(run.sol(times) - exact(times)).max() < 3 * at_steps
    assert at_steps < 10 * 1e-8


@each
@pytest.mark.parametrize("is_traced", [False, True])
def test_a_contact_is_seen(name, is_traced):
    """1 kg falls on a stiff spring: estimates filtered by its matrix must not be blind."""

    def f(t, y):
        return np.array([y[1], -9.81 - 1e5 * np.minimum(y[0], 0.0)])

    run = solve(traced(f, n=2) if is_traced else f, (0, 10), [1.0, 0.0], method=name, rtol=1e-6,
                atol=1e-6)  # fmt: skip
    best = solve(f, (0, 10), [1.0, 0.0], method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    assert run.success
    assert np.abs(run.y[:, -1] - best).max() < 0.02


def test_w_methods_keep_jacobians():
    problem = detest.get(detest.names("stiff")[0])
    run = solve(problem, method="ROS34PW2", rtol=1e-7, atol=1e-7)
    assert 4 * run.njev < run.nsteps
    assert solve(problem, method="Rodas4", rtol=1e-7, atol=1e-7).njev >= 10


@each
def test_large_and_sparse(name):
    """Heat on a line of 60 points: all ways to a Jacobian take the same steps."""
    n = 60
    A = scipy.sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n)).tocsc() * (n + 1) ** 2
    y0 = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    rate = -4 * (n + 1) ** 2 * np.sin(np.pi / 2 / (n + 1)) ** 2
    found = []
    for known in ({"jac": A}, {"jac": A.toarray()}, {"jac_sparsity": A != 0}, {}):
        run = solve(lambda t, y: A @ y, (0, 0.1), y0, method=name, rtol=1e-6, atol=1e-9,
                    dense_output=True, **known)  # fmt: skip
        found.append(run.nsteps)
        for t in (0.1, 0.0123):
            assert np.abs(run.sol(t) - np.exp(rate * t) * y0).max() < 5e-7
    assert max(found) - min(found) <= 1


def test_stepper_and_many():
    f = traced(lambda t, y, p: np.array([np.sin(t) - p[0] * y[0]]), n=1)
    problem = IVP(f, [1.0], (0.0, 2.0), [1.0])
    many = solve_many(problem, params=[[1.0], [50.0]], method="Rodas4P", rtol=1e-8, atol=1e-8)
    for rate, end in zip((1.0, 50.0), many.y):
        one = solve(problem.with_(params=[rate]), method="Rodas4P", rtol=1e-8, atol=1e-8)
        assert end[0] == pytest.approx(one.y[0, -1], rel=1e-14)  # lanes multiply by an inverse
    follow = {"sensitivities": ["p[0]"], "rtol": 1e-8, "atol": 1e-8}
    ours, other = (solve(problem, method=m, **follow) for m in ("Rodas5P", "DOP853"))
    ends = [run.sensitivities["p[0]"][0, -1] for run in (ours, other)]
    assert abs(ends[0] - ends[1]) < 1e-6
    run = stepper(lambda t, y: -y, (0, 1), [1.0], method="Rodas5P")
    while run.t < 1:
        run.step()
    assert abs(run.y[0] - np.exp(-1)) < 1e-6


def test_combinations():
    """A drawn method on a drawn form of one problem: against a reference of another family."""
    rng = np.random.default_rng(21)
    for _ in range(24):
        name = str(rng.choice(NAMES))
        is_traced, backward, heavy, event = rng.integers(0, 2, 4).astype(bool)
        rate = float(rng.uniform(0.5, 30.0))
        M = np.array([[2.0, 0.5], [0.0, 1.0]]) if heavy else None

        def f(t, y, p):
            return np.array([p[0] * (np.cos(t) - y[0]) + 0.1 * y[1], y[0] * np.sin(2 * t) - y[1]])

        span = (2.0, 1.6) if backward else (0.0, 2.0)
        g = Event(lambda t, y: y[1] - 0.3, reset=lambda t, y: np.array([y[0], y[1] + 0.5]))
        times = np.linspace(*span, 7)
        runs = [
            solve(
                IVP(h, [0.7, 0.9], span, [rate], mass=M),
                method=method,
                rtol=rtol,
                atol=rtol,
                t_eval=times,
                events=g if event else None,
            )
            for h, method, rtol in (
                (traced(f, n=2, params=1) if is_traced else f, name, 1e-7),
                (f, "RADAU5", 1e-11),
            )
        ]
        assert all(run.success for run in runs), (name, is_traced, backward, heavy, event)
        ours, best = runs
        scale = np.exp(rate * 0.4) if backward else 1.0  # what the problem makes of an error
        assert np.abs(ours.y - best.y).max() < 1e-5 * scale, (name, is_traced, backward, heavy)
        if event:
            assert [len(t) for t in ours.t_events] == [len(t) for t in best.t_events]


def test_complex_states():
    for name in NAMES:
        run = solve(
            lambda t, y: 1j * y * (1 + 0.1 * t), (0, 5), [1 + 0j], method=name, rtol=1e-8, atol=1e-8
        )
        assert abs(run.y[0, -1] - np.exp(1j * (5 + 0.05 * 25))) < 2e-7


# -------------------------------------------------------------------- refusals


def test_refusals():
    plain = Rosenbrock([[]], [[1]], [1], name="linearly implicit Euler")
    assert solve(lambda t, y: -y, (0, 1), [1.0], method=plain, step=0.1).success
    with pytest.raises(ValueError, match=r"no embedded method .* fixed"):
        solve(lambda t, y: -y, (0, 1), [1.0], method=plain)
    constrained = IVP(_system, START, (0, 1), mass=np.diag([1.0, 0]), index=[1, 2])
    with pytest.raises(ValueError, match="index 1 at most"):
        solve(constrained, method="Rodas4")
    with pytest.raises(ValueError, match="below the diagonal only"):
        Rosenbrock([[1]], [[1]], [1])
    with pytest.raises(ValueError, match="same number"):
        Rosenbrock([[], [1]], [[1], [0, 2]], ["1/2", "1/2"])
    with pytest.raises(ValueError, match="did you mean"):
        solve(lambda t, y: -y, (0, 1), [1.0], method="Rodas5Q")
    with pytest.raises(TypeError, match="Rosenbrock method and has no Butcher tableau"):
        analysis.symplecticity("Rodas4")


def test_f_that_fails_is_told():
    def f(t, y):
        if t > 0.5:
            raise RuntimeError("no further")
        return -y

    with pytest.raises(RuntimeError, match="no further"):
        solve(f, (0, 1), [1.0], method="Rodas4", throw=True)
    grows = solve(lambda t, y: y**2, (0, 2), [1.0], method="Rodas5P")
    assert grows.status in (Status.STEP_TOO_SMALL, Status.NONFINITE)
    assert abs(grows.t[-1] - 1.0) < 1e-3


@pytest.mark.parametrize("rate", [-1e4, -1e6, -1e8])
@each
def test_a_stiff_component_alone_is_followed_inside_the_steps(name, rate):
    """Steps of any length end on the solution: what happens inside must limit them."""
    f = traced(lambda t, y, p: p * (y - np.cos(2 * t)) - 2 * np.sin(2 * t), n=1, params=1)
    for tolerance in (1e-4, 1e-7):
        options = dict(method=name, rtol=tolerance, atol=tolerance, params=[rate])
        run = solve(f, (0, 3), [1.0], dense_output=True, **options)
        assert np.array_equal(run.y, solve(f, (0, 3), [1.0], **options).y)
        times = (run.t[:-1, None] + np.diff(run.t)[:, None] * np.linspace(0, 1, 9)).ravel()
        assert np.max(np.abs(run.sol(times)[0] - np.cos(2 * times))) < 10 * tolerance
        assert run.nsteps < 5000


@each
def test_what_is_looked_at_inside_a_step_follows_powers_of_time(name):
    """One step on z = tᵏ, infinitely stiff: (1 + A) u = αᵏ, and γ' where k = 1."""
    method = catalogue.entry(name).method
    check, table = rosenbrock_check(method), method.computed
    rows = np.eye(method.stages) + table["A"]
    for k in range(1, check.order + 2):
        u = np.linalg.solve(rows, table["c"] ** k + (table["d"] if k == 1 else 0.0))
        off = abs(check.value @ u - check.node**k)
        slope = abs(check.slope @ u - k * check.node ** (k - 1))
        assert (off < 1e-12 and slope < 1e-11) == (k <= check.order)
