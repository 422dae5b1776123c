"""Systems, roads, methods and everything that ``solve`` can be asked for, drawn at random."""

import pickle

import numpy as np
import pytest

from integrators import DAE, Event, Hybrid, Mode, Solution, Transition, solve, solve_many
from integrators.dae.general import ROADS

T_END = 0.4
METHODS = {
    "dummy": ("RADAU5", "RadauIIA5", "SDIRK4", "RadauVariable", "assimulo:IDA"),
    "underlying": ("DOPRI853", "RADAU5", "BS5", "scipy:DOP853", "Taylor(12)"),
    "taylor": ("Taylor", "Taylor(12)", "Taylor(auto)"),
    "given": ("RADAU5", "RadauIIA5", "RadauVariable"),
}


def swing(t, y, d, p):
    """Index 3."""
    x, z, lam = y
    return [d(x, 2) + lam * x, d(z, 2) + lam * z + p[0], x**2 + z**2 - 1]


def pair(t, y, d, p):
    """Converted: ẋ + ż occurs in both."""
    x, z = y
    return [d[0] + d[1] - p[0] * x, d[0] + d[1] - z + np.sin(x)]


def led(t, y, d, p):
    """Index 2: an input that makes a state follow a path."""
    x, v, u = y
    return [d(x) - v, d(v) + p[0] * x**3 - u, v - np.cos(t)]


def implicit(t, y, yp, p):
    """F(t, y, ẏ) = 0, not to be solved for ẏ by hand."""
    return [np.exp(yp[0]) + yp[0] + y[1] - p[0], y[1] - y[0] ** 2]


SYSTEMS = {
    "swing": (DAE(swing, ["x", "z", "lambda"], params=[9.81]), {"x": 0.8, "x'": 0.1}, {"z": -0.6}),
    "pair": (DAE(pair, ["x", "z"], params=[1.0]), {"x": 0.5}, {}),
    "led": (DAE(led, ["x", "v", "u"], params=[2.0]), {"x": 0.3}, {"v": 1.0}),
    "implicit": (DAE(implicit, ["x", "w"], params=[1.5]), {"x": 0.5}, {}),
}
PARAMETERS = {"swing": (9.81, 1.62), "pair": (1.0, 0.7), "led": (2.0, 0.5), "implicit": (1.5, 0.9)}


def surface(t, y):
    """Crossed by every system here, whatever its parameter, on its way forwards or backwards."""
    return t**2 - 0.0529


def kicked(t, y):
    """The first unknown jumps; everything else is left to the constraints."""
    new = np.array(y)
    new[0] -= 0.05
    return new


EVENTS = {
    "none": [],
    "seen": [Event(surface)],
    "end": [Event(surface, terminal=True)],
    "reset": [Event(surface, reset=kicked)],
}


@pytest.fixture(scope="module")
def problem_of():
    """Problems by name, road, parameter and sign of time, made once."""
    made = {}

    def get(name, road, value, sign, events="none"):
        key = name, road, value, sign
        if key not in made:
            system, fixed, guess = SYSTEMS[name]
            start = system.consistent(0.0, fixed, guess, params=[value])
            made[key] = system.problem(start, (0.0, sign * T_END), road)
        return made[key].with_(events=EVENTS[events]) if events != "none" else made[key]

    return get


@pytest.fixture(scope="module")
def truth(problem_of):
    """The unknowns at some times, by Taylor series of the DAE with a tolerance of 1e-13."""
    known = {}

    def get(name, value, sign, events, times):
        key = name, value, sign, events
        if key not in known:
            problem = problem_of(name, "taylor", value, sign, events)
            known[key] = solve(problem, method="Taylor", rtol=1e-13, atol=1e-13, dense_output=True)
        n = len(SYSTEMS[name][0].unknowns)
        return known[key].t[-1], known[key].sol(np.asarray(times))[:n]

    return get


def draw(rng):
    """One combination."""
    road = str(rng.choice(ROADS))
    name = str(rng.choice(list(SYSTEMS)))
    return {
        "name": name,
        "road": road,
        "method": str(rng.choice(METHODS[road])),
        "value": float(rng.choice(PARAMETERS[name])),
        "sign": float(rng.choice([1.0, -1.0])),
        "events": str(rng.choice(list(EVENTS))),
        "given_late": bool(rng.random() < 0.4),  # parameters and events to solve, not the problem
        "t_eval": bool(rng.random() < 0.4),
        "dense": bool(rng.random() < 0.4),
        "tstops": bool(rng.random() < 0.3),
        "pickled": bool(rng.random() < 0.3),
        "saved": bool(rng.random() < 0.3),
        "many": bool(rng.random() < 0.2),
    }


TOLERANCE = 3e-6
MULTISTEP = 2e-5  # IDA begins anew at order 1 where states are chosen


@pytest.mark.parametrize("seed", range(36))
def test_combination(seed, problem_of, truth, tmp_path):
    what = draw(np.random.default_rng([16, seed]))
    name, road, sign = what["name"], what["road"], what["sign"]
    if what["method"].startswith("assimulo"):
        pytest.importorskip("assimulo")
    options = {"method": what["method"], "rtol": 1e-8, "atol": 1e-8}
    if what["given_late"]:
        problem = problem_of(name, road, PARAMETERS[name][0], sign)
        options |= {"params": [what["value"]], "events": EVENTS[what["events"]]}
    else:
        problem = problem_of(name, road, what["value"], sign, what["events"])
    if what["pickled"] and what["events"] != "reset":
        problem = pickle.loads(pickle.dumps(problem))
    if what["t_eval"]:
        options["t_eval"] = sign * np.array([0.1, 0.2, 0.37])
    if what["tstops"]:
        options["tstops"] = [0.15 * sign]
    n = len(SYSTEMS[name][0].unknowns)
    error = MULTISTEP if ":IDA" in what["method"] else TOLERANCE
    if what["many"] and what["events"] == "none":
        for option in ("params", "t_eval", "events", "tstops"):
            options.pop(option, None)
        found = solve_many(problem, params=[[v] for v in PARAMETERS[name]], **options)
        for y, value in zip(found.y, PARAMETERS[name]):
            _, right = truth(name, value, sign, "none", [sign * T_END])
            assert y[:n] == pytest.approx(right[:, 0], abs=error), what
        return
    sol = solve(problem, dense_output=what["dense"], **options)
    assert sol.success, (what, sol.message)
    if what["saved"]:
        sol = Solution.load(sol.save(tmp_path / "run.npz"))
    last, _ = truth(name, what["value"], sign, what["events"], [0.0])
    times = sol.t[(sol.t != sol.t_events[0][0])] if what["events"] == "reset" else sol.t
    if what["events"] != "none":
        assert sol.t_events[0] == pytest.approx([0.23 * sign], abs=1e-9), what
    if not what["t_eval"]:
        assert sol.t[-1] == pytest.approx(last, abs=1e-9), what
    elif what["events"] != "end":
        assert sol.t.tolist() == options["t_eval"].tolist(), what
    inside = np.isin(sol.t, times)
    _, right = truth(name, what["value"], sign, what["events"], times)
    scale = np.maximum(1.0, np.abs(right).max())
    assert np.abs(sol.y[:n, inside] - right).max() <= error * scale, what
    if what["dense"]:
        _, right = truth(name, what["value"], sign, what["events"], [0.13 * sign])
        assert np.abs(sol.sol(0.13 * sign)[:n] - right[:, 0]).max() <= 10 * error * scale, what


def led_by(path):
    """Index 3: e follows from a path, and acts on v, which nothing binds."""
    return DAE(
        lambda t, y, d: [y[0] - path(t), d[0] - y[1], d[1] - y[2], d[3] + y[3] - y[2]],
        names="a b e v",
    )


LED = led_by(lambda t: np.sin(3 * t)), led_by(lambda t: np.cos(2 * t))


@pytest.mark.parametrize("road", ROADS)
def test_modes_of_a_hybrid(road, tmp_path):
    """One path until its velocity vanishes, then another: right everywhere, in files too."""
    first = LED[0].problem(LED[0].consistent(0.0, {"v": 0.5}), (0.0, 2.0), road)
    then = LED[1].problem(LED[1].consistent(0.0, {"v": 0.5}), (0.0, 2.0), road)
    leave = Transition(lambda t, y: y[1], -1, to="then", map=lambda t, y: then.complete(t, y))
    method = METHODS[road][0]
    modes = {"first": Mode(first, leave, method=method), "then": Mode(then, method=method)}
    sol = solve(Hybrid(modes, start="first"), rtol=1e-8, atol=1e-8, dense_output=True)
    t = np.linspace(0.0, 2.0, 141)
    switch = np.pi / 6

    def forced(t):  # v' = −v + e with either e, and what is left of the start and of the switch
        sine = -0.9 * (np.sin(3 * t) - 3 * np.cos(3 * t))
        return sine, -0.8 * (np.cos(2 * t) + 2 * np.sin(2 * t))

    def before(t):
        return forced(t)[0] + (0.5 - forced(0.0)[0]) * np.exp(-t)

    after = forced(t)[1] + (before(switch) - forced(switch)[1]) * np.exp(switch - t)
    late = t > switch
    truth = [
        np.where(late, np.cos(2 * t), np.sin(3 * t)),
        np.where(late, -2 * np.sin(2 * t), 3 * np.cos(3 * t)),
        np.where(late, -4 * np.cos(2 * t), -9 * np.sin(3 * t)),
        np.where(late, after, before(t)),
    ]
    assert sol.modes[1].start == pytest.approx(switch, abs=1e-9)
    for run in (sol, Solution.load(sol.save(tmp_path / "run.npz"))):
        assert np.abs(run.sol(t)[:4] - truth).max() < 1e-7
