"""Munthe-Kaas methods: orders, manifolds kept, vector spaces, error control, dense output."""

import operator
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from integrators import IVP, Manifold, MuntheKaas, Solution, catalogue, groups, problems, solve
from integrators.manifold import Retraction
from tests.integrators.methods.rotating import (
    MATRIX,
    MOTION,
    QUATERNION,
    ROUNDING,
    TOP,
    TOP_START,
    TRACED_TOP,
    body_velocity,
    exact_matrix,
    exact_quaternion,
    exponential,
    hat,
    spin,
    top_rhs,
)

SLOPE = 0.15  # of the finest pair of steps, as for all methods
METHODS = {"RKMK1": 1, "RKMK2": 2, "RKMK3": 3, "RKMK4": 4, "RKMK5": 5}


@pytest.fixture(scope="module")
def top_end():
    run = solve_ivp(
        top_rhs, (0, 2), TOP_START, "DOP853", args=([2.0],), rtol=1e-13, atol=1e-13, max_step=0.02
    )
    return run.y[:, -1]


# -------------------------------------------------------------------- order


@pytest.mark.parametrize(("method", "order"), METHODS.items())
@pytest.mark.parametrize("form", ["quaternion", "matrix"])
def test_order_of_a_given_rotation(method, order, form):
    problem = spin(form=form)
    steps = {1: (800, 1600), 2: (200, 400), 3: (100, 200), 4: (50, 100), 5: (40, 80)}[order]
    errors = []
    for count in steps:
        end = solve(problem, method=method, step=2.0 / count).y[:, -1]
        errors.append(np.abs(problem.manifold.difference(end, problem.exact(2.0))).max())
    assert abs(np.log2(errors[0] / errors[1]) - order) < SLOPE, errors


@pytest.mark.parametrize(("method", "order"), METHODS.items())
def test_order_on_a_heavy_top(method, order, top_end):
    steps = {1: (6400, 12800), 2: (400, 800), 3: (400, 800), 4: (200, 400), 5: (100, 200)}[order]
    errors = []
    for count in steps:
        end = solve(TRACED_TOP, method=method, step=2.0 / count).y[:, -1]
        errors.append(np.abs(TOP.difference(end, top_end)).max())
    assert abs(np.log2(errors[0] / errors[1]) - order) < SLOPE, errors


def test_order_on_rigid_motions():
    """A body that turns as above and whose origin runs through p(t) = (sin t, t², cos 2t)."""

    def velocity(t, y):
        R = exact_matrix(t).reshape(3, 3)
        return np.concatenate([body_velocity(t), R.T @ [np.cos(t), 2 * t, -2 * np.sin(2 * t)]])

    def exact(t):
        return np.concatenate([exact_quaternion(t), [np.sin(t), t * t, np.cos(2 * t)]])

    def f(t, y):
        raise AssertionError("a Munthe-Kaas method has no use for f")

    problem = IVP(f, exact(0.0), (0.0, 2.0), manifold=MOTION.manifold(velocity))
    errors = []
    for count in (50, 100):
        end = solve(problem, method="RKMK4", step=2.0 / count).y[:, -1]
        errors.append(np.abs(MOTION.difference(end, exact(2.0))).max())
    assert abs(np.log2(errors[0] / errors[1]) - 4) < SLOPE, errors


@pytest.mark.parametrize("group", [QUATERNION, MATRIX, MOTION], ids=["q", "R", "qp"])
def test_exponential_euler_is_exact_for_constant_velocity(group):
    """Three long steps, against the exponential of the whole way in 50 digits."""
    xi = np.array([0.3, -0.5, 0.9, 1.0, 2.0, -0.7])[: group.dimension]
    start = np.eye(3).ravel() if group is MATRIX else np.eye(1, group.size).ravel()
    problem = IVP(lambda t, y: 0 * y, start, (0.0, 4.5), manifold=group.manifold(lambda t, y: xi))
    end = solve(problem, method="RKMK1", step=1.5).y[:, -1]
    twist = np.zeros((4, 4))
    twist[:3, :3] = hat(4.5 * xi)
    if group is MOTION:
        twist[:3, 3] = 4.5 * xi[3:]
        assert np.allclose(end[4:], exponential(twist)[:3, 3], rtol=0, atol=10 * ROUNDING)
    R = exponential(twist)[:3, :3]
    mine = end.reshape(3, 3) if group is MATRIX else None
    if mine is None:
        mine = np.array([groups._turned(end[:4], e) for e in np.eye(3)]).T
    assert np.allclose(mine, R, rtol=0, atol=ROUNDING)


def test_manifold_is_kept_without_renormalisation():
    """Rounding only: each step adds at most a few units in the last place to the norm."""
    few_units = 4 * np.finfo(float).eps
    long = TRACED_TOP.with_(t_span=(0.0, 200.0))
    q = solve(long, method="RKMK4", step=0.01).y[:4]
    assert np.abs(np.sum(q * q, axis=0) - 1).max() < 20_000**0.5 * 10 * few_units
    drift = solve(long, method="RK4", step=0.01).y[:4, -1]
    assert abs(drift @ drift - 1) > 1e-8  # what the method is for
    R = solve(spin(form="matrix"), method="RKMK2", step=1e-3).y.T.reshape(-1, 3, 3)
    identity = np.einsum("kij,kil->kjl", R, R)
    assert np.abs(identity - np.eye(3)).max() < 2000 * few_units


# -------------------------------------------------------------------- vector spaces

EXPLICIT = [name for name in catalogue.names() if catalogue.get(name).is_explicit]


def on_vectors(problem):
    return problem.with_(manifold=groups.euclidean(problem.n).manifold(problem.f))


@pytest.mark.parametrize("name", EXPLICIT)
def test_on_vectors_the_steps_are_those_of_the_tableau(name):
    """Bit for bit: fixed and adaptive steps, errors, first step, dense output, evaluations.

    Only with step doubling are sums rounded differently, (y + z₁) + z₂ or y + (z₁ + z₂). Its error
    estimate, a small difference, shows that, and with it the lengths of steps.
    """
    problem = on_vectors(problems.get("order_rational"))
    for options in ({"step": 0.05}, {"rtol": 1e-7, "dense_output": True}):
        plain = solve(problem, method=name, **options)
        lie = solve(problem, method=f"MuntheKaas({name})", **options)
        assert (lie.nfev, lie.nsteps, lie.nrejected) == (plain.nfev, plain.nsteps, plain.nrejected)
        assert (lie.error_estimate, lie.dense_order) == (plain.error_estimate, plain.dense_order)
        if plain.error_estimate == "step doubling":
            assert np.allclose(lie.t, plain.t, rtol=0, atol=1e-5)
            assert np.allclose(lie.y[:, -1], plain.y[:, -1], rtol=1e-11)
            continue
        assert np.array_equal(lie.t, plain.t)
        assert np.array_equal(lie.y, plain.y)
        if plain.sol is not None:  # Hermite's data are y₁ − y₀, rounded, or z itself
            times = np.linspace(*problem.t_span, 57)
            assert np.allclose(lie.sol(times), plain.sol(times), rtol=1e-13)


def test_more_tangent_components_than_coordinates():
    """A line on which two motions add up: n = 1, m = 2."""
    line = Manifold(2, lambda t, y: [np.cos(t), -y[0]], lambda y, z: [y[0] + z[0] + z[1]], _second)
    problem = IVP(lambda t, y: np.cos(t) - y, [0.5], (0.0, 3.0), manifold=line)
    found = solve(problem, method=MuntheKaas("DOP853"), rtol=1e-11, atol=1e-11, dense_output=True)
    exact = (np.cos(found.t) + np.sin(found.t)) / 2
    assert np.allclose(found.y[0], exact, rtol=0, atol=1e-9)
    assert np.allclose(found.sol(1.0), (np.cos(1) + np.sin(1)) / 2, rtol=0, atol=1e-8)


def _second(z, xi):
    return xi


# -------------------------------------------------------------------- error control


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "BS23", "Tsit5", "RK4", "Verner76"])
def test_tolerances_are_met(method, top_end):
    """The motion multiplies local errors: two digits are allowed, or what the tableau has."""
    before = np.inf
    for tolerance in (1e-5, 1e-7, 1e-9):
        options = dict(rtol=tolerance, atol=tolerance)
        run = solve(TRACED_TOP, method=f"MuntheKaas({method})", **options)
        plain = solve(TRACED_TOP, method=method, **options)
        assert run.success
        error, other = (np.abs(TOP.difference(r.y[:, -1], top_end)).max() for r in (run, plain))
        assert error < max(100 * tolerance, 2 * other)
        assert error < 0.2 * before  # a hundredth would be proportional
        before = error
    assert before > 1e-14  # not exact by accident: the tolerance does something


def test_steps_do_not_depend_on_the_frame():
    """The same motion seen from another frame: the same steps, though all components differ."""
    problem = spin()
    other = QUATERNION.retract(np.array([1.0, 0, 0, 0]), np.array([1.0, -2.0, 0.5]))
    turned = problem.with_(y0=groups._times(other, problem.y0))
    a, b = (solve(p, method="RKMK5", rtol=1e-8) for p in (problem, turned))
    assert np.allclose(a.t, b.t, rtol=1e-9)
    assert a.nsteps == b.nsteps
    assert np.allclose([groups._times(other, q) for q in a.y.T], b.y.T, rtol=0, atol=1e-12)


def test_tolerance_of_each_tangent_component():
    loose, tight = [1e-2] * 3 + [1e-8] * 3, [1e-8] * 6
    steps = [
        solve(TRACED_TOP, method="RKMK5", rtol=0.0, atol=atol).nsteps for atol in (loose, tight)
    ]
    assert steps[0] < steps[1]
    with pytest.raises(ValueError, match="each of the 6 components"):
        solve(TRACED_TOP, method="RKMK5", atol=[1e-8] * 7)
    assert solve(TRACED_TOP, method="DOPRI5", atol=[1e-8] * 7).success  # f has seven


# -------------------------------------------------------------------- dense output


@pytest.mark.parametrize(
    "method", ["Heun", "Kutta3", "RK4", "DOPRI5", "Tsit5", "DOP853", "Verner76"]
)
def test_dense_output_stays_on_the_manifold_and_has_its_order(method):
    problem = spin(form="matrix")
    errors = []
    for count in {"DOP853": (8, 16), "Verner76": (20, 40)}.get(method, (40, 80)):
        run = solve(problem, method=MuntheKaas(method), step=2.0 / count, dense_output=True)
        times = np.linspace(0, 2, 7 * count + 1)
        values = run.sol(times).T
        R = values.reshape(-1, 3, 3)
        identity = np.einsum("kij,kil->kjl", R, R)
        assert np.abs(identity - np.eye(3)).max() < 1e-13
        truth = [exact_matrix(t) for t in times]
        errors.append(max(np.abs(MATRIX.difference(a, b)).max() for a, b in zip(values, truth)))
        ends = [run.sol(t - 1e-12) for t in run.t[1:]]  # steps join, up to h·ω
        assert np.allclose(np.array(ends).T, run.y[:, 1:], rtol=0, atol=1e-11)
    slope = np.log2(errors[0] / errors[1])
    assert slope > min(run.dense_order, MuntheKaas(method).order) - SLOPE, errors
    assert run.dense_order == solve(problem, method=method, step=0.1).dense_order


def test_doubled_steps_have_dense_output_too():
    run = solve(spin(), method="RKMK4", rtol=1e-8, atol=1e-8, dense_output=True)
    times = np.linspace(0, 2, 101)
    errors = [QUATERNION.difference(run.sol(t), exact_quaternion(t)) for t in times]
    assert run.error_estimate == "step doubling"
    assert np.abs(errors).max() < 1e-6


def test_output_times_change_nothing():
    times = np.linspace(0, 2, 33)
    free = solve(TRACED_TOP, method="RKMK8", dense_output=True)
    asked = solve(TRACED_TOP, method="RKMK8", t_eval=times)
    # At the end of the run one is the last state and the other DOP853's polynomial at θ = 1.
    assert np.allclose(asked.y[:, :-1], free.sol(times[:-1]), rtol=0, atol=ROUNDING)
    assert np.array_equal(asked.y[:, -1], free.y[:, -1])
    assert np.array_equal(asked.h, free.h)


def test_saved_solutions_ask_for_the_manifold(tmp_path):
    run = solve(spin(), method="RKMK5", dense_output=True)
    for again in (
        Solution.load(run.save(tmp_path / "run")),
        pickle.loads(pickle.dumps(run)),
    ):
        assert np.array_equal(again.y, run.y)
        with pytest.raises(ValueError, match="give the problem again"):
            again.sol(1.0)
        assert np.array_equal(again.with_problem(run.problem).sol(1.0), run.sol(1.0))
        again.sol.move = Retraction(QUATERNION.retract)
        assert np.array_equal(again.sol(1.0), run.sol(1.0))
    plain = solve(spin(), method="DOPRI5", dense_output=True)
    again = Solution.load(plain.save(tmp_path / "plain"))
    assert again.sol.move is operator.add
    assert np.array_equal(pickle.loads(pickle.dumps(plain)).sol(1.0), plain.sol(1.0))
