"""Four roads to one solution: against closed forms, against each other, and in combinations."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from scipy.special import ellipj, ellipk

from integrators import (
    DAE,
    IVP,
    Event,
    Hybrid,
    IntegrationError,
    Mode,
    Transition,
    problems,
    solve,
    solve_many,
)
from integrators.dae.general import ROADS
from integrators.methods.runge_kutta.divided import is_regular
from integrators.problems import dae_systems

from .test_structure import chain

METHODS = {"dummy": "RADAU5", "underlying": "DOPRI853", "taylor": "Taylor", "given": "RADAU5"}


def swing(t, y, d, p):
    x, z, lam = y
    return [d(x, 2) + lam * x, d(z, 2) + lam * z + p[0], x**2 + z**2 - 1]


def exact(t, g=9.81):
    """Pendulum released at x = 1, z = 0: elliptic functions of modulus sin 45°."""
    m = 0.5
    sn = ellipj(ellipk(m) - np.sqrt(g) * t, m)[0]
    angle = 2 * np.arcsin(np.sqrt(m) * sn)
    return np.array([np.sin(angle), -np.cos(angle)])


@pytest.fixture(scope="module")
def system():
    return DAE(swing, names=["x", "z", "lambda"], params=[9.81])


@pytest.fixture(scope="module")
def start(system):
    return system.consistent(t=0, fixed={"x": 1.0, "x'": 0.0}, guess={"lambda": 0.0})


@pytest.mark.parametrize("road", ROADS)
def test_pendulum_against_elliptic_functions(system, start, road):
    problem = system.problem(start, (0.0, 4.0), road)
    assert problem.state_names[:3] == ("x", "z", "lambda")
    sol = solve(problem, method=METHODS[road], rtol=1e-10, atol=1e-10)
    assert sol.success
    assert np.abs(sol.y[:2] - exact(sol.t)).max() < 4e-9
    if road != "given":
        assert sol.observed.largest < 1e-14
        assert set(sol.observed.constraints) == {"f2", "f2'"}
        assert sol.quality.verdict == "nothing speaks against it"


@pytest.mark.parametrize(
    ("road", "method", "t_end"),
    [
        ("taylor", "Taylor", 100.0),
        ("underlying", "Taylor", 100.0),
        ("underlying", "RadauIIA7", 100.0),
        ("given", "RadauIIA5", 100.0),
        ("dummy", "RadauIIA5", 100.0),
    ],
)
def test_for_a_long_time(system, start, road, method, t_end):
    """Eight digits after a hundred seconds at rtol = 1e-10, on every road."""
    problem = system.problem(start, (0.0, t_end), road)
    sol = solve(problem, method=method, rtol=1e-10, atol=1e-10)
    assert np.abs(sol.y[:2] - exact(sol.t)).max() < 1e-8
    if road != "given":
        assert sol.observed.largest < 1e-12


def test_energy_as_given(system, start):
    """What an iteration of Newton's leaves in velocities, measured with h, would sum up."""
    problem = system.problem(start, (0.0, 20.0), "given")
    sol = solve(problem, method="RADAU5", rtol=1e-8, atol=1e-8)
    velocities = sol.y[[problem.state_names.index(name) for name in ("x'", "z'")]]
    energy = (velocities**2).sum(axis=0) / 2 + 9.81 * sol.y[1]
    assert np.abs(energy).max() < 2e-7  # 2e-6 without the last iteration
    assert np.abs(sol.y[:2, -1] - exact(20.0)).max() < 4e-8  # 4e-7


def test_taylor_of_order_twenty(system, start):
    """The error of order 20 falls by 2²⁰ with half the step: the local error is compared."""
    problem = system.problem(start, (0.0, 0.5), "taylor")
    errors = []
    for step in (0.25, 0.125):
        sol = solve(problem.with_(project=None), method="Taylor(20)", step=step)
        errors.append(np.abs(sol.y[:2, -1] - exact(0.5)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(20, abs=1.0)


def test_taylor_of_order_twenty_with_many_digits(system, start):
    """Doubles leave a factor of two between too long a step and rounding; fifty digits do not."""
    problem = system.problem(start, (0.0, 0.5), "taylor").with_(project=None)
    true = solve(problem, method="Taylor(30)", precision=50, step=1 / 128).y[:, -1]
    ends = [
        solve(problem, method="Taylor(20)", precision=50, step=1 / k).y[:, -1]
        for k in (32, 64, 128)
    ]
    errors = [float(sum((x - y) ** 2 for x, y in zip(end, true))) ** 0.5 for end in ends]
    assert errors[-1] > 1e-40
    assert np.log2(errors[:-1]) - np.log2(errors[1:]) == pytest.approx([20, 20], abs=0.4)


def test_series_by_stages_are_those_of_the_underlying_ode(system, start):
    order = 8
    staged = system.problem(start, (0, 1), "taylor")
    plain = system.problem(start, (0, 1), "underlying")
    y = plain.project(0.0, plain.y0 + 0.1, plain.params)
    a = staged.f.series(order)(0.0, y, staged.params)
    b = plain.f.series(order)(0.0, y, plain.params)
    assert a == pytest.approx(b, rel=1e-11, abs=1e-9)


def test_states_are_chosen_anew(system, start):
    """On its way round the circle, the state stays nearly along the tangent."""
    problem = system.problem(start, (0.0, 2.5), "dummy")
    sol = solve(problem, method="RADAU5", rtol=1e-7)
    names = problem.state_names
    along = sol.y[[names.index(f"state 1 along {name}") for name in "xz"]]
    assert len(np.unique(along[0])) > 4
    assert np.all(np.hypot(*along) == pytest.approx(1.0))
    x, z = sol.y[:2]
    assert np.abs(along[0] * z - along[1] * x).min() > 0.85  # cosine of the angle


def test_long_steps_of_high_order_keep_their_tolerance(system, start):
    """Where a state is no longer along the tangent, errors of dummies escape every estimate."""
    for method in ("RadauIIA7", "RadauVariable"):
        problem = system.problem(start, (0.0, 3.0), "dummy")
        sol = solve(problem, method=method, rtol=1e-10, atol=1e-10)
        assert np.abs(sol.y[:2] - exact(sol.t)).max() < 2e-9


@pytest.mark.parametrize("road", ROADS)
def test_both_directions_and_pickles(system, start, road):
    problem = system.problem(start, (0.0, 1.0), road)
    sol = solve(problem, method=METHODS[road], rtol=1e-9, atol=1e-9)
    there = problem.derivatives(1.0, sol.y[:, -1], problem.params)
    end = system.consistent(t=1.0, guess=dict(zip(problem.array.names, there)))
    back = solve(system.problem(end, (1.0, 0.0), road), method=METHODS[road], rtol=1e-9, atol=1e-9)
    assert back.y[:2, -1] == pytest.approx([1.0, 0.0], abs=3e-7)
    again = solve(pickle.loads(pickle.dumps(problem)), method=METHODS[road], rtol=1e-9, atol=1e-9)
    assert np.array_equal(again.y, sol.y)


@pytest.mark.parametrize("road", ROADS)
def test_events_are_followed_by_consistent_states(system, start, road):
    """A wall at x = 0.6 throws the pendulum back: the reset turns one velocity only."""

    def bounced(t, y):
        new = np.array(y)
        names = list(names_of)
        new[names.index("x'")] *= -1.0  # the other velocity is left to the constraints
        return new

    wall = Event(lambda t, y: y[0] - 0.6, direction=-1, reset=bounced)
    problem = system.problem(start, (0.0, 1.0), road, events=[wall])
    names_of = problem.state_names
    sol = solve(problem, method=METHODS[road], rtol=1e-9, atol=1e-9)
    assert sol.success
    assert len(sol.t_events[0]) >= 1
    hit = float(sol.t_events[0][0])
    x, z = exact(hit)
    assert x == pytest.approx(0.6, abs=1e-7)
    speed = np.sqrt(-2 * 9.81 * z)  # energy; before the wall it points along (z, −x)
    turned = np.array([-z * speed, -x * speed])
    along = turned @ [z, -x] * np.array([z, -x])  # what the constraint leaves of it
    after = np.flatnonzero(sol.t == sol.t_events[0][0])[-1]
    found = [sol.y[names_of.index(name), after] for name in ("x'", "z'")]
    assert sol.y[:2, after] == pytest.approx([x, z], abs=1e-7)  # positions did not jump
    assert found == pytest.approx(along, abs=1e-6 if road != "given" else 1e-4)


@pytest.mark.parametrize("road", ["dummy", "underlying", "taylor"])
def test_parameters_of_a_run(system, road):
    start = system.consistent(t=0, fixed={"x": 1.0, "x'": 0.0}, params=[1.62])
    problem = system.problem(start, (0.0, 2.0), road)
    sol = solve(problem, method=METHODS[road], rtol=1e-9, atol=1e-9)
    assert sol.y[:2, -1] == pytest.approx(exact(2.0, g=1.62), abs=1e-7)


def test_chains_of_pendulums():
    """Index 5: three roads to ten digits."""
    system = chain(2)
    start = system.consistent(
        fixed={"y0": 0.6, "y0'": 0.0, "y3": 0.5, "y3'": 0.1}, guess={"y1": -0.8, "y4": -1.0}
    )
    ends = {}
    for road, method in [("taylor", "Taylor"), ("underlying", "DOPRI853"), ("dummy", "RadauIIA5")]:
        sol = solve(system.problem(start, (0.0, 1.0), road), method=method, rtol=1e-12, atol=1e-12)
        assert sol.success, sol.message
        ends[road] = sol.y[:6, -1]
        assert sol.observed.largest < 1e-12
    assert ends["underlying"] == pytest.approx(ends["taylor"], rel=1e-10, abs=1e-10)
    assert ends["dummy"] == pytest.approx(ends["taylor"], rel=1e-10, abs=1e-10)
    with pytest.raises(ValueError, match="index 5"):
        system.problem(start, (0.0, 1.0), "given")


def test_implicit_equations():
    """F(t, y, ẏ) = 0 that cannot be solved for ẏ by hand; e^ẏ + ẏ = 1 + e + t − y, y = t."""
    system = DAE(lambda t, y, yp: [np.exp(yp[0]) + yp[0] - 1 - np.e - t + y[0]], names=["y"])
    start = system.consistent(t=0, fixed={"y": 0.0}, guess={"y'": 0.5})
    for road in ROADS:
        sol = solve(system.problem(start, (0, 2), road), method="RADAU5", rtol=1e-8, atol=1e-8)
        assert sol.y[0, -1] == pytest.approx(2.0, abs=1e-6), road


def test_converted_systems_are_solved():
    """ẋ + ż = x and ẋ + ż = z − sin x: one freedom, z = x + sin x, x' (2 + cos x) = x."""
    system = DAE(
        lambda t, y, d: [d[0] + d[1] - y[0], d[0] + d[1] - y[1] + np.sin(y[0])], names=["x", "z"]
    )
    start = system.consistent(fixed={"x": 0.5})
    assert start["z"] == pytest.approx(0.5 + np.sin(0.5))
    plain = solve(lambda t, x: x / (2 + np.cos(x)), (0, 2), [0.5], method="DOPRI853", rtol=1e-11)
    for road in ROADS:
        sol = solve(system.problem(start, (0, 2), road), method="RADAU5", rtol=1e-9, atol=1e-9)
        assert sol.y[0, -1] == pytest.approx(plain.y[0, -1], abs=1e-7), road


def test_the_index_of_components():
    """What the structure says is what the library's problems declare."""
    for name in ("pendulum_dae", "jay", "slider_crank"):
        problem = problems.get(name)
        system = DAE.from_problem(problem)
        start = system.consistent(t=0.0, guess=problem.y0)
        given = system.problem(start, (0.0, 1.0), "given")
        assert list(given.index) == list(problem.index), name
        assert given.mass == pytest.approx(problem.mass)


def test_refusals(system, start):
    with pytest.raises(ValueError, match="did you mean dummy"):
        system.problem(start, (0, 1), "dumy")
    with pytest.raises(ValueError, match="consistent at t = 0"):
        system.problem(start, (1, 2))
    with pytest.raises(TypeError, match="consistent"):
        system.problem([1.0, 0.0, 0.0], (0, 1))
    with pytest.raises(ValueError, match="implicit"):
        solve(system.problem(start, (0, 1)), method="DOPRI5")
    other = DAE(lambda t, y, d: [d[0] - y[0]], names=["q"])
    with pytest.raises(ValueError, match="another system"):
        other.problem(start, (0, 1))


def test_order_of_components_of_index_three():
    """Fixed steps: Radau IIA of three stages has orders 5, 3 and 2 for index 1, 2 and 3."""
    problem = problems.get("pendulum_dae").with_(t_span=(0.0, 1.0))
    errors = []
    for step in (1 / 40, 1 / 80):
        sol = solve(problem, method="RADAU5", step=step)
        assert sol.success, sol.message
        errors.append(np.abs(sol.y[:, -1] - problem.reference(1.0)))
    orders = np.log2(errors[0] / errors[1])
    assert orders == pytest.approx([5, 5, 3, 3, 2], abs=0.2)


@pytest.mark.parametrize("road", ROADS)
def test_sensitivities_are_refused_with_a_way_to_them(system, start, road):
    """Without projection, too: the start moves with parameters, which would be left out."""
    problem = system.problem(start, (0.0, 1.0), road)
    for one in (problem, problem.with_(project=None)):
        with pytest.raises(ValueError, match="differences of two runs"):
            solve(one, method=METHODS[road], sensitivities=["p[0]"])


@pytest.mark.parametrize("road", ROADS)
def test_other_parameters_and_starts_at_solve(system, start, road):
    """With other parameters the start is made consistent again; a wrong start is refused."""
    problem = system.problem(start, (0.0, 1.0), road)
    method = METHODS[road]
    moon = solve(problem, method=method, params=[1.62], rtol=1e-9, atol=1e-9)
    assert moon.y[:2, -1] == pytest.approx(exact(1.0, g=1.62), abs=1e-6)
    many = solve_many(problem, params=[[9.81], [1.62]], method=method, rtol=1e-9, atol=1e-9)
    assert many.y[1, :2] == pytest.approx(moon.y[:2, -1], abs=1e-8)
    with pytest.raises(ValueError, match="not consistent at t = 0"):
        solve(problem, (0.0, 1.0), 1.1 * problem.y0, method=method)
    with pytest.raises(ValueError, match="not consistent at t = 0"):
        solve(problem, (0.0, 1.0), problem.y0 + 0.1, method=method)


@pytest.mark.parametrize("road", ROADS)
def test_events_given_to_solve(system, start, road):
    """Resets that return the unknowns alone; the run goes on from a consistent state."""
    flip = Event(lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.6, -0.7, 0.0])
    problem = system.problem(start, (0.0, 0.8), road)
    sol = solve(problem, method=METHODS[road], events=[flip], rtol=1e-8, atol=1e-8)
    assert sol.success
    after = np.flatnonzero(sol.t == sol.t_events[0][0])[-1]
    nearest = np.array([0.6, -0.7]) / np.hypot(0.6, 0.7)
    assert sol.y[:2, after] == pytest.approx(nearest, abs=1e-8)
    largest = max(abs(x) for x in problem.residuals(sol.t[after], sol.y[:, after]).values())
    assert largest < 1e-12
    with pytest.raises(IntegrationError, match="3 unknowns or a whole state"):
        solve(
            problem,
            method=METHODS[road],
            events=[Event(lambda t, y: y[0], reset=lambda t, y: [1.0])],
            throw=True,
        )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("road", ROADS)
def test_a_reset_of_velocities_that_are_unknowns(road, whole):
    """With ẋ = u, turning u and v turns ẋ and ż, too: the motion runs back to where it began."""

    def first_order(t, y, d):
        x, z, u, v, lam = y
        return [d(x) - u, d(z) - v, d(u) + lam * x, d(v) + lam * z + 9.81, x**2 + z**2 - 1]

    turned = DAE(first_order, names=["x", "z", "u", "v", "lambda"])
    start = turned.consistent(fixed={"x": 0.6, "u": 0.8}, guess={"z": -0.8, "v": 0.6})

    def back(t, y):
        new = np.array(y)
        new[2:4] *= -1.0
        return new if whole else new[:5]

    problem = turned.problem(start, (0, 1), road, events=[Event(lambda t, y: t - 0.5, reset=back)])
    sol = solve(problem, method=METHODS[road], rtol=1e-9, atol=1e-9)
    assert sol.success
    assert sol.y[:4, -1] == pytest.approx([0.6, -0.8, -0.8, -0.6], abs=1e-6)


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
@pytest.mark.parametrize("road", ROADS)
def test_an_event_with_a_reset_happens_once(road, rtol):
    """x = sin t and u = ẋ are prescribed: made consistent after the reset of v, x is not where the
    step had it, and may be before the zero once more.
    """
    forced = DAE(
        lambda t, y, d: [y[0] - np.sin(t), d(y[0]) - y[1], d(y[2]) + y[2] - y[1]],
        names=["x", "u", "v"],
    )
    count = Event(lambda t, y: y[0] - 0.6, reset=lambda t, y: [y[0], y[1], y[2] + 1.0])
    times = np.array([np.arcsin(0.6) + 2 * np.pi * k for k in range(3)])
    times = np.sort(np.concatenate([times, np.pi - 2 * np.arcsin(0.6) + times]))
    for t0, t1 in [(0.0, 16.0), (16.0, 0.0)]:
        start = forced.consistent(t=t0, fixed={"v": (np.sin(t0) + np.cos(t0)) / 2})
        problem = forced.problem(start, (t0, t1), road, events=[count])
        sol = solve(problem, method=METHODS[road], rtol=rtol, atol=rtol)
        assert sol.success
        assert np.sort(sol.t_events[0]) == pytest.approx(times, abs=100 * rtol)
        expected = (np.sin(t1) + np.cos(t1)) / 2 + np.exp(times - t1).sum()
        assert sol.y[2, -1] == pytest.approx(expected, rel=1e3 * rtol)


@pytest.mark.parametrize("road", ROADS)
def test_singular_point_on_the_way(road):
    """x ẋ = −1/2, x = √(1 − t), ends at t = 1 where J = x vanishes."""
    system = DAE(lambda t, y, d: [y[0] * d[0] + 0.5], names=["x"])
    start = system.consistent(fixed={"x": 1.0})
    sol = solve(system.problem(start, (0, 2), road), method="RADAU5", rtol=1e-8)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert "nearly singular: the equations f0 hardly determine" in sol.message


@pytest.mark.parametrize("road", ROADS)
def test_branches_are_kept(road):
    """ẋ² + x² = 1 has the solutions ±sin t through 0; the start says which."""
    system = DAE(lambda t, y, d: [d[0] ** 2 + y[0] ** 2 - 1], names=["x"])
    for sign in (1.0, -1.0):
        start = system.consistent(fixed={"x": 0.0}, guess={"x'": 0.8 * sign})
        sol = solve(system.problem(start, (0, 1.2), road), method="RADAU5", rtol=1e-9, atol=1e-9)
        assert sol.y[0, -1] == pytest.approx(sign * np.sin(1.2), abs=1e-7)


def test_estimated_error_leaves_out_what_a_run_chooses(system, start):
    problem = system.problem(start, (0.0, 1.0), "dummy")
    sol = solve(problem, method="RADAU5", check="global")
    assert sol.quality.global_error.relative.max() < 1e-5


def test_index_seven_by_three_roads():
    system = chain(3)
    start = system.consistent(
        fixed={"y0": 0.6, "y0'": 0.0, "y3": 0.5, "y3'": 0.1, "y6": 0.4, "y6'": 0.0},
        guess={"y1": -0.8, "y4": -1.0, "y7": -1.0},
    )
    assert system.structure().index == 7
    ends = {}
    for road, method in [("taylor", "Taylor"), ("underlying", "DOPRI853"), ("dummy", "RadauIIA7")]:
        sol = solve(system.problem(start, (0.0, 0.3), road), method=method, rtol=1e-12, atol=1e-12)
        assert sol.success, sol.message
        ends[road] = sol.y[:9, -1]
    assert ends["underlying"] == pytest.approx(ends["taylor"], rel=1e-10, abs=1e-10)
    assert ends["dummy"] == pytest.approx(ends["taylor"], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("road", ["dummy", "underlying", "taylor"])
def test_modes(system, road):
    """A pendulum on a string: it flies where the string is slack, and is caught again."""
    start = system.consistent(fixed={"x": 0.0, "x'": 5.5}, guess={"z": -1.0})
    problem = system.problem(start, (0.0, 1.5), road)
    places = [problem.state_names.index(name) for name in ("x", "z", "x'", "z'")]

    def caught(t, y):
        state = np.zeros(problem.n)
        state[places] = y
        return problem.complete(t, state, problem.params)  # the radial speed is lost

    slack = Transition(lambda t, y: y[2], direction=-1, to="fly", map=lambda t, y: y[places])
    taut = Transition(
        lambda t, y: y[0] ** 2 + y[1] ** 2 - 1, 1, to="swing", map=caught, at_entry=False
    )
    flight = IVP(lambda t, y: [y[2], y[3], 0.0, -9.81], np.zeros(4), (0.0, 1.5))
    modes = {"swing": Mode(problem, slack, method=METHODS[road]), "fly": Mode(flight, taut)}
    sol = solve(Hybrid(modes, start="swing"), rtol=1e-9, atol=1e-9)
    assert [stay.mode for stay in sol.modes] == ["swing", "fly", "swing"]
    # The string slackens where λ = v² − g z vanishes, with v² = 5.5² − 2 g (z + 1).
    z = (5.5**2 - 2 * 9.81) / (3 * 9.81)
    assert sol.parts[0].y[1, -1] == pytest.approx(z, abs=1e-8)
    x, z = sol.parts[2].y[:2, 0]
    assert np.hypot(x, z) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("road", ["given", "dummy"])
def test_events_of_large_systems_take_no_singular_values(road, monkeypatch):
    """Those of a mass matrix with 1200 rows took a minute at every event."""
    svd = np.linalg.svd

    def small(a, *rest, **options):
        assert np.shape(a)[-1] <= 200
        return svd(a, *rest, **options)

    monkeypatch.setattr(np.linalg, "svd", small)
    monkeypatch.setattr(np.linalg._linalg, "svd", small)
    case = dae_systems.system("ladder", sections=250)
    kick = Event(lambda t, y: y[0] - 0.1, reset=lambda t, y: y)
    problem = case.problem(road, 0.4).with_(events=[kick])
    sol = solve(problem, method="RADAU5", rtol=1e-6, atol=1e-8)
    assert sol.success
    assert sol.t_events[0] == pytest.approx([0.22437], abs=1e-5)


def test_thousands_of_unknowns():
    """Sparse linear algebra on two roads; a singular mass matrix of that size is no obstacle."""
    case = dae_systems.system("ladder", sections=300)
    ends = []
    for road in ("given", "dummy"):
        problem = case.problem(road, 0.5)
        assert problem.n >= 600
        sol = solve(problem, method="RADAU5", rtol=1e-7, atol=1e-9)
        assert sol.success, sol.message
        ends.append(sol.y[:5, -1])
    assert ends[1] == pytest.approx(ends[0], abs=1e-7)
    assert is_regular(case.problem("given").mass) is False
    assert is_regular(scipy.sparse.diags([1e-9] * 600 + [1e3] * 400, format="csc"))
    with pytest.raises(ValueError, match="take road='dummy' or 'given'"):
        case.problem("underlying")
