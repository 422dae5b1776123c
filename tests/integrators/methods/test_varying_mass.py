"""M(t, y) y' = f(t, y): every family, against closed forms and the same problem divided by hand."""

import pickle

import numpy as np
import pytest

from integrators import IVP, Event, Status, solve, solve_many, stepper, traced

METHODS = ["auto", "DOP853", "RADAU5", "Gauss4", "Kvaerno5", "Rodas5P", "ROS34PW2", "BDF", "Adams"]
RTOL = 1e-9


def slope(t, y):
    """Of (1 + y²) y' = −1 / (1 + t), so that y + y³/3 = 4/3 − log(1 + t), beside another one."""
    return np.array([-1 / (1 + t), np.cos(t) * y[1]])


def mass(t, y):
    """Depend on both."""
    return np.array([[1 + y[0] ** 2, 0.0], [0.0, 2 + np.cos(t)]])


def left(t, y):
    """What stays zero."""
    return y[0] + y[0] ** 3 / 3 - 4 / 3 + np.log1p(t)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: traced(f, n=2)], ids=["plain", "traced"])
@pytest.mark.parametrize("method", METHODS)
def test_closed_form(method, wrap):
    options = dict(method=method, rtol=RTOL, atol=RTOL, dense_output=True)
    run = solve(wrap(slope), (0, 2), [1.0, 1.0], mass=mass, **options)
    times = np.linspace(0, 2, 33)
    assert run.success
    assert np.max(np.abs(left(times, run.sol(times)))) < 300 * RTOL
    back = solve(wrap(slope), (2, 0), run.y[:, -1], mass=mass, **options)
    assert np.allclose(back.y[:, -1], 1.0, atol=1e3 * RTOL)


def double_pendulum(t, y):
    """Right-hand side of M(q) v' = … for unit masses and lengths."""
    a, b, v, w = y
    s = np.sin(a - b)
    return np.array([v, w, -(w**2) * s - 19.62 * np.sin(a), v**2 * s - 9.81 * np.sin(b)])


def inertia(t, y):
    """Identity beside [[2, cos], [cos, 1]]."""
    c = np.cos(y[0] - y[1])
    return np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 2.0, c], [0, 0, c, 1.0]])


def by_hand(t, y):
    """The same, divided."""
    return np.linalg.solve(inertia(t, y), double_pendulum(t, y))


@pytest.mark.parametrize("method", ["DOP853", "RADAU5", "Rodas5P", "Taylor"])
def test_the_same_as_divided_by_hand(method):
    y0, options = [1.2, -0.4, 0.0, 0.3], dict(method=method, rtol=1e-10, atol=1e-10)
    f = traced(double_pendulum, n=4)
    run = solve(f, (0, 3), y0, mass=inertia, events=lambda t, y: y[0], **options)
    same = solve(traced(by_hand, n=4), (0, 3), y0, events=lambda t, y: y[0], **options)
    assert np.allclose(run.y[:, -1], same.y[:, -1], atol=1e-8)
    assert len(run.t_events[0]) == len(same.t_events[0]) > 0
    assert np.allclose(run.t_events[0], same.t_events[0], atol=1e-9)


def test_the_jacobian_knows_how_the_matrix_changes():
    problem = IVP(traced(double_pendulum, n=4), [1.2, -0.4, 0.0, 0.3], (0, 1), mass=inertia)
    exact, y = problem.f.jacobian()(0.0, problem.y0), problem.y0
    near = np.array(
        [(by_hand(0, y + 1e-6 * e) - by_hand(0, y - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    ).T
    assert np.allclose(exact, near, atol=1e-7)


def with_constraint(t, y):
    """(1 + x²) x' = −x, 0 = z − x²."""
    return np.array([-y[0], y[1] - y[0] ** 2])


def half(t, y):
    """The second row is zero."""
    return np.array([[1 + y[0] ** 2, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: traced(f, n=2)], ids=["plain", "traced"])
@pytest.mark.parametrize("method", ["auto", "RADAU5", "Rodas5P", "BDF"])
def test_algebraic_rows(method, wrap):
    """log x + x²/2 falls by t."""
    run = solve(wrap(with_constraint), (0, 2), [1.0, 1.0], mass=half, method=method, rtol=1e-9)
    x, z = run.y[:, -1]
    assert abs(np.log(x) + x**2 / 2 - 0.5 + 2) < 1e-7
    assert abs(z - x**2) < 1e-7
    with pytest.raises(ValueError, match="singular"):
        solve(wrap(with_constraint), (0, 2), [1.0, 1.0], mass=half, method="DOP853")
    with pytest.raises(ValueError, match="consistent"):
        solve(wrap(with_constraint), (0, 2), [1.0, 0.0], mass=half, method=method)


def test_parameters_many_runs_resets_and_pickling():
    def f(t, y, p):
        return np.array([-p[0]])

    def heavy(t, y, p):
        return np.array([[p[1] + y[0] ** 2]])

    f = traced(f, n=1, params=2)
    values = np.array([[1.0, 1.0], [2.0, 3.0], [0.5, 2.0]])
    problem = IVP(f, [1.0], (0, 1), params=values[0], mass=heavy)
    runs = solve_many(problem, params=values, rtol=1e-10, atol=1e-10, method="DOP853")
    for (rate, own), y in zip(values, runs.y.ravel()):
        assert abs(own * y + y**3 / 3 - own - 1 / 3 + rate) < 1e-8
    again = Event(lambda t, y: y[0] - 0.5, reset=lambda t, y: y + 0.5)
    run = solve(problem, params=values[0], events=[again], rtol=1e-10, atol=1e-10)
    assert abs(run.t_events[0][0] - (4 / 3 - 0.5 - 0.125 / 3)) < 1e-8
    plain = IVP(slope, [1.0, 1.0], (0, 1), mass=mass)
    copy = pickle.loads(pickle.dumps(plain))
    assert np.array_equal(solve(copy).y, solve(plain).y)
    one = stepper(plain, "RADAU5")
    one.step()
    assert abs(left(one.t, one.y)) < 1e-5


@pytest.mark.parametrize("method", ["RADAU5", "DOPRI5", "BDF"])
def test_where_the_matrix_becomes_singular_the_run_ends(method):
    run = solve(
        lambda t, y: np.ones(1),
        (0, 1),
        [0.0],
        mass=lambda t, y: np.array([[max(0.0, 0.5 - t)]]),
        method=method,
    )
    assert run.status in (Status.STEP_TOO_SMALL, Status.NONFINITE, Status.NEWTON_FAILED)
    assert 0.49 < run.t[-1] <= 0.5


def test_refusals():
    f = lambda t, y: -y  # noqa: E731
    with pytest.raises(ValueError, match="leave them out"):
        IVP(f, [1.0], (0, 1), mass=lambda t, y: np.eye(1), jac=lambda t, y: -np.eye(1))
    with pytest.raises(ValueError, match="must be a 2×2 matrix"):
        IVP(f, [1.0, 2.0], (0, 1), mass=lambda t, y: np.eye(3))
    with pytest.raises(ValueError, match=r"singular at the start.*integrators.DAE"):
        IVP(f, [1.0, 2.0], (0, 1), mass=lambda t, y: np.ones((2, 2)))
    with pytest.raises(ValueError, match="not finite"):
        IVP(f, [1.0], (0, 1), mass=lambda t, y: np.array([[np.nan]]))
    run = solve(f, (0, 1), [1.0, 0.0], mass=lambda t, y: np.diag([1.0, max(0.0, t - 0.5)]))
    assert not run.success
    assert "must not change" in run.message


def test_sensitivities_with_a_matrix_that_varies():
    """y = exp(−p t), and ∂y/∂p = −t y; what cannot be traced is told what it lacks."""

    def f(t, y, p):
        return np.array([-p[0] * y[0] * (2 + np.sin(t))])

    def matrix(t, y):
        return np.array([[2 + np.sin(t)]])

    options = {"method": "RADAU5", "rtol": RTOL, "atol": RTOL, "sensitivities": ["p[0]"]}
    problem = IVP(traced(f, n=1, params=1), [1.0], (0.0, 1.0), [0.7], mass=matrix)
    found = solve(problem, **options).sensitivities["p[0]"]
    assert found[0, -1] == pytest.approx(-np.exp(-0.7), rel=1e-7)
    with pytest.raises(ValueError, match=r"give traced\(f\)"):
        solve(IVP(f, [1.0], (0.0, 1.0), [0.7], mass=matrix), **options)
