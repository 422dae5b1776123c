"""Systems made around known solutions: everywhere, not at the steps alone, is the truth known."""

import re

import numpy as np
import pytest

from integrators import DAE, Event, Solution, solve, solve_many
from integrators.dae.general import ROADS, StructureError
from integrators.problems.dae_systems import system as library

TOLERANCE = 1e-8
ALLOWED = 20 * TOLERANCE  # anywhere in a run
METHODS = {
    "dummy": ("RADAU5", "RadauIIA5", "RadauVariable", "SDIRK4", "auto"),
    "underlying": ("DOPRI853", "RADAU5", "auto", "BS5"),
    "taylor": ("Taylor", "Taylor(12)"),
    "given": ("RADAU5", "RadauIIA5", "RadauVariable"),
}


class Made:
    """n equations that r(t) solves, with r_j(t) = a sin(wt + φ) + b; a seed draws them.

    An unknown is differential, algebraic, or the rate of the one before, which raises the index;
    all are coupled by terms that vanish on the solution and nowhere else.
    """

    def __init__(self, seed, highest=3):
        rng = np.random.default_rng([160, seed])
        self.n = n = int(rng.integers(3, 6))
        self.a, self.w = rng.uniform(0.5, 1.0, n), rng.uniform(0.8, 2.0, n)
        self.phase, self.b = rng.uniform(0, 6, n), rng.uniform(-1, 1, n)
        self.kinds, run = [], 0
        for _ in range(n):  # rates of rates of … an algebraic unknown: so many make the index
            kinds = ["differential", "algebraic", "rate"]
            before = self.kinds[-1] if self.kinds else ""
            chained = before in ("algebraic", "rate") and run < highest - 1
            kind = str(rng.choice(kinds if chained else kinds[:2]))
            run = run + 1 if kind == "rate" else 0
            self.kinds.append(kind)
        for j, kind in enumerate(self.kinds):
            if kind == "rate":
                self.a[j], self.w[j] = self.a[j - 1] * self.w[j - 1], self.w[j - 1]
                self.phase[j], self.b[j] = self.phase[j - 1] + np.pi / 2, 0.0
        self.couplings = rng.uniform(-0.4, 0.4, (n, n)) * (rng.random((n, n)) < 0.5)
        self.mixed = np.eye(n)
        if rng.random() < 0.4:
            self.mixed = np.eye(n) + np.tril(rng.integers(-2, 3, (n, n)), -1)
        self.system = DAE(self.equations, [f"y{j}" for j in range(n)], params=[1.0])

    def r(self, j, t):
        return self.a[j] * np.sin(self.w[j] * t + self.phase[j]) + self.b[j]

    def rate(self, j, t):
        return self.a[j] * self.w[j] * np.cos(self.w[j] * t + self.phase[j])

    def truth(self, t):
        return np.array([self.r(j, np.asarray(t, dtype=float)) for j in range(self.n)])

    def equations(self, t, y, d, p):
        out = []
        for j, kind in enumerate(self.kinds):
            off = y[j] - self.r(j, t)
            if kind == "differential":
                others = sum(
                    float(c) * (y[k] - self.r(k, t)) * (1.0 + 0.3 * y[k])
                    for k, c in enumerate(self.couplings[j])
                    if c and k != j
                )
                out.append(d(y[j]) - self.rate(j, t) + p[0] * off + others)
            elif kind == "algebraic":
                # Differential unknowns only: others would change which equation determines what.
                others = sum(
                    float(c) * (y[k] - self.r(k, t))
                    for k, c in enumerate(self.couplings[j])
                    if c and self.kinds[k] == "differential" and "rate" not in self.kinds[j + 1 :]
                )
                out.append(off * (1.0 + 0.2 * off) + others)
            else:
                out.append(y[j] - d(y[j - 1]))
        rows = range(self.n)
        return [sum(float(self.mixed[i, j]) * out[j] for j in rows) for i in rows]

    def problem(self, road, t_span, **more):
        known = {f"y{j}": float(self.r(j, t_span[0])) for j in range(self.n)}
        start = self.system.consistent(t_span[0], guess=known)
        return self.system.problem(start, t_span, road, **more)


@pytest.mark.parametrize("seed", range(24))
def test_everywhere_along_a_run(seed, tmp_path):
    rng = np.random.default_rng([161, seed])
    road = ROADS[seed % 4]
    made = Made(seed // 2)
    method = str(rng.choice(METHODS[road]))
    t_span = (0.3, 2.8) if rng.random() < 0.7 else (2.0, -0.5)
    index = made.system.structure().index
    level = float(made.r(0, 1.234))
    events = [Event(lambda t, y: y[0] - level)]
    problem = made.problem(road, t_span, events=events)
    times = np.linspace(*t_span, 83)
    options = dict(method=method, rtol=TOLERANCE, atol=TOLERANCE)
    output = {"t_eval": times} if rng.random() < 0.5 else {"dense_output": True}
    sol = solve(problem, **options, **output)
    what = road, method, made.kinds, index, sol.message
    assert sol.success, what
    if rng.random() < 0.4:
        sol = Solution.load(sol.save(tmp_path / "run.npz"))
    y = sol.y if "t_eval" in output else sol.sol(times)
    assert np.abs(sol.y[: made.n] - made.truth(sol.t)).max() < ALLOWED, what
    assert np.abs(y[: made.n] - made.truth(times)).max() < ALLOWED, what
    assert np.abs(made.r(0, sol.t_events[0]) - level).max(initial=0.0) < ALLOWED, what
    assert np.min(np.abs(sol.t_events[0] - 1.234)) < 1e-5, what  # none was missed
    if seed % 6 == 0:
        many = solve_many(made.problem(road, t_span), params=[[1.0], [0.5]], **options)
        assert np.abs(many.y[:, : made.n] - made.truth(t_span[1])).max() < ALLOWED, what


def test_first_steps_of_index_three():
    """Rounding errors of x over h² in u act on w nonlinearly: the first step is not tiny."""
    system = DAE(
        lambda t, y, d: [
            y[0] - np.sin(t), d(y[0]) - y[1], d(y[1]) + y[2] + y[2] ** 3 / 3,
            d(y[3]) + y[3] - np.sin(y[2]),
        ],
        names="x v u w",
    )  # fmt: skip
    ends = []
    for road, method in [("given", "RadauIIA7"), ("given", "RadauIIA5"), ("taylor", "Taylor")]:
        problem = system.problem(system.consistent(2.0, {"w": 0.3}), (2.0, 0.0), road)
        sol = solve(problem, method=method, rtol=TOLERANCE, atol=TOLERANCE)
        assert sol.success, sol.message
        ends.append(sol.y[:4, -1])
    assert np.abs(ends - ends[-1]).max() < ALLOWED


@pytest.mark.parametrize("seed", [3, 13, 17])
def test_guesses_that_are_consistent_stay(seed):
    """Values that were not given start from zero: their way must not move the guesses."""
    made = Made(seed)
    known = {f"y{j}": float(made.r(j, 0.3)) for j in range(made.n)}
    assert max(map(abs, made.system.consistent(0.3, guess=known).changes.values())) < 1e-12


@pytest.mark.parametrize(("road", "method"), [(r, m) for r in METHODS for m in METHODS[r]])
def test_a_path_that_nothing_but_time_determines(road, method):
    """x = sin t, u = ẋ, v' = −v + u − cos t: steps of any length end on it."""
    system = DAE(
        lambda t, y, d: [y[0] - np.sin(t), y[1] - d(y[0]), d(y[2]) + y[2] - y[1] + np.cos(t)],
        names="x u v",
    )
    problem = system.problem(system.consistent(0.0, {"v": 0.0}), (0.0, 10.0), road)
    times = np.linspace(0, 10, 301)
    sol = solve(problem, method=method, rtol=TOLERANCE, atol=TOLERANCE, t_eval=times)
    error = np.abs(sol.y[:3] - [np.sin(times), np.cos(times), 0 * times]).max(axis=1)
    assert sol.success
    assert (error < ALLOWED).all()


def chain(t, y, d):
    return [y[0] - np.sin(t), *(d(y[i]) - y[i + 1] + 0.1 * y[i] ** 2 for i in range(len(y) - 1))]


def test_combined_chains_keep_their_index():
    """The last one needs a combination of two equations of a block, in which others stay."""
    matrices = [
        [[2, 1, 0, -2], [-1, -3, -3, -3], [-2, 2, 1, 3], [0, 1, 3, 2]],
        [[1, 1, -2, -1], [2, 1, 0, -1], [2, -1, -1, 3], [-2, -2, 1, 1]],
        [[1, -1, 0, -2, 2], [1, 1, 0, 1, 0], [0, -2, -1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, 0, -1]],
    ]
    for M in matrices:
        n = len(M)

        def combined(t, y, d, M=M):
            f = chain(t, y, d)
            return [sum(float(m) * x for m, x in zip(row, f)) for row in M]

        system = DAE(combined, [f"x{i}" for i in range(n)])
        assert (system.structure().index, system.structure().freedoms) == (n, 0)
        problem = system.problem(system.consistent(0.3), (0.3, 2.0), "taylor")
        sol = solve(problem, method="Taylor", rtol=1e-10, atol=1e-10)
        assert sol.y[0] == pytest.approx(np.sin(sol.t), abs=1e-9)
        assert sol.y[1] == pytest.approx(np.cos(sol.t) + 0.1 * np.sin(sol.t) ** 2, abs=1e-9)


def test_a_factor_that_vanishes_on_all_solutions_is_left_out():
    case = library("vanishing_factor")
    assert "terms that vanish were left out: f1 = 0 in f0" in str(case.system.structure())
    for road in ("dummy", "taylor"):
        sol = solve(case.problem(road), method=METHODS[road][0], rtol=1e-9, atol=1e-9)
        truth = [np.sin(sol.t), np.cos(sol.t), -np.sin(sol.t), -np.cos(sol.t)]
        assert sol.y[:4] == pytest.approx(np.array(truth), abs=1e-7)


def test_a_factor_that_vanishes_and_is_not_found_is_told():
    """Multiplied out it is no factor any more; another start would not help."""

    def hidden(t, y, d):
        a, b, c, e = y
        f = [a - np.sin(t), d(a) - b, d(b) - c, d(c) - e]
        product = np.cos(e) * d(a) - np.cos(e) * b
        return [f[0] + f[2] + product, f[1], f[2] - f[1] - 2 * f[0], f[3]]

    with pytest.raises(StructureError, match=r"singular at the start.* f0 .*vanishes on all"):
        DAE(hidden, names="a b c e").consistent(0.3)


HIGH = DAE(lambda t, y, d: [y[0] - np.sin(3 * t), d(y[0]) - y[1], d(y[1]) - y[2]], names="a b e")


def high(t):
    return np.array([np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)])


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA2", "RadauVariable"])
def test_unknowns_of_index_3_are_put_right_as_given(method, tmp_path):
    """At the steps, between them, at events and from files; without that e is off by 1e-3."""
    crossing = Event(lambda t, y: y[2] - 4.5)
    problem = HIGH.problem(HIGH.consistent(0.0), (0.0, 2.0), "given", events=[crossing])
    sol = solve(problem, method=method, rtol=TOLERANCE, atol=TOLERANCE, dense_output=True)
    times = np.linspace(0, 2, 150)
    assert np.abs(sol.y - high(sol.t)).max() < ALLOWED
    assert np.abs(sol.sol(times) - high(times)).max() < ALLOWED
    assert np.array_equal(Solution.load(sol.save(tmp_path / "run.npz")).sol(times), sol.sol(times))
    assert sol.reached[1] == pytest.approx(high(2.0), abs=ALLOWED)
    truth = [np.pi / 3 * k + s * np.pi / 18 for k, s in ((1, 1), (2, -1))]
    assert sol.t_events[0] == pytest.approx(truth, abs=1e-8)
    output = solve(problem, method=method, rtol=TOLERANCE, atol=TOLERANCE, t_eval=times)
    assert output.y == pytest.approx(sol.sol(times), abs=1e-12)


def test_what_constraints_put_right_leaves_nothing_open():
    """u = ẋ + 8 (x − sin t): errors of x, which has none left, would be eight times those of u."""

    def equations(t, y, d):
        off = y[0] - np.sin(3 * t)
        return [off, y[1] - d[0] - 8 * off]

    system = DAE(equations, names="x u")
    problem = system.problem(system.consistent(0.3), (0.3, 2.8), "given")
    sol = solve(problem, method="RADAU5", rtol=TOLERANCE, atol=TOLERANCE)
    assert np.abs(sol.y[1] - 3 * np.cos(3 * sol.t)).max() < 1e-3 * TOLERANCE


def rod(t, y, d):
    """A pendulum with masses that are coupled, friction by the multiplier, and a gauge of it."""
    x, z, lam, w = y
    rub = 0.2 * lam * d(x)
    return [
        3 * d(x, 2) + 0.5 * d(z, 2) + lam * x + rub,
        0.5 * d(x, 2) + d(z, 2) + lam * z + 9.81 + 0.2 * lam * d(z),
        x**2 + z**2 - 1,
        d(w) + w - (1 + 0.5 * np.sin(2 * t)) * lam,
    ]


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA5", "RadauVariable"])
def test_what_multipliers_act_on_is_put_right_with_them(method):
    """By the equations' own masses: in plain least squares x is off by 4e-6, w by 5e-5."""
    system = DAE(rod, names="x z lam w")
    start = system.consistent(0.0, {"x": 0.6, "x'": 0.3, "w": 0.0}, {"z": -0.8})
    taylor = solve(system.problem(start, (0, 1), "taylor"), method="Taylor", rtol=1e-12, atol=1e-12)
    given = system.problem(start, (0, 1), "given")
    assert given.index.tolist() == [1, 1, 3, 0, 2, 2]
    sol = solve(given, method=method, rtol=TOLERANCE, atol=TOLERANCE)
    assert np.abs(sol.y[[0, 1, 3], -1] - taylor.y[[0, 1, 3], -1]).max() < 2 * TOLERANCE


def test_multipliers_that_act_nonlinearly_are_told():
    system = DAE(
        lambda t, y, d: [y[0] - np.sin(t), d[0] - y[1], d[1] - y[2], d[3] + y[3] - y[2] ** 2],
        names="a b e v",
    )
    problem = system.problem(system.consistent(0.0, {"v": 0.0}), (0, 1), "given")
    assert "errors of e, which is of index 3" in solve(problem, method="RADAU5").message


def test_errors_that_grow_are_told():
    """Backwards the equations magnify errors 12 times, those of BDF to a hundred tolerances."""
    made = Made(152)
    problem = made.problem("dummy", (2.0, -0.5))
    run = solve(problem, method="BDF", rtol=TOLERANCE, atol=TOLERANCE)
    error = np.abs(run.y[: made.n, -1] - made.truth(-0.5)).max()
    told = re.search(r"its error at the end is about ([0-9.e-]+),", run.message)
    assert error > 50 * TOLERANCE
    assert 0.3 * error < float(told[1]) < 3 * error
    auto = solve(problem, rtol=TOLERANCE, atol=TOLERANCE, dense_output=True)
    assert np.abs(auto.y[: made.n] - made.truth(auto.t)).max() < ALLOWED


def test_what_is_less_accurate_without_that_is_told():
    problem = HIGH.problem(HIGH.consistent(0.0), (0.0, 6.0), "given").with_(project=None)
    sol = solve(problem, method="RADAU5", rtol=TOLERANCE, atol=TOLERANCE)
    error = np.abs(sol.y - high(sol.t))[2].max()
    told = re.search(r"e has index 3 and is off by about ([0-9.e-]+):", sol.message)
    assert error > 1e-6
    assert 0.1 * error < float(told[1]) < 10 * error
    assert problem.complete(sol.t[-1], sol.y[:, -1]) == pytest.approx(high(6.0), abs=1e-9)


@pytest.mark.parametrize("road", ROADS)
def test_a_state_that_contradicts_itself(road):
    """With ẋ = u, turned velocities u and w count, and old ẋ and ż follow; or the other way."""

    def swing(t, y, d):
        x, z, u, w, lam = y
        return [d(x) - u, d(z) - w, d(u) + lam * x, d(w) + lam * z + 9.81, x**2 + z**2 - 1]

    system = DAE(swing, names="x z u w lam")
    start = system.consistent(0.0, {"x": 0.6, "u": 0.4}, {"z": -0.8})
    problem = system.problem(start, (0.0, 1.0), road)
    names = list(problem.state_names)
    turned = problem.y0.copy()
    turned[2:4] *= -1
    found = problem.all_derivatives(0.0, problem.complete(0.0, turned))
    assert [found[x] for x in ("u", "w", "x'", "z'")] == pytest.approx([-0.4, -0.3, -0.4, -0.3])
    if "x'" in names:
        rates = [names.index("x'"), names.index("z'")]

        def turn(t, y):
            y = y.copy()
            y[rates] *= -1
            return y

        bounce = Event(lambda t, y: t - 0.1, reset=turn)
        sol = solve(problem.with_(events=[bounce]), method=METHODS[road][0], rtol=1e-9)
        after = sol.y[:4, np.flatnonzero(sol.t == sol.t_events[0][0])]
        assert after[2:, -1] == pytest.approx(-after[2:, 0], abs=1e-7)
