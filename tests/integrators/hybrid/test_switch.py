"""Right-hand sides that jump: crossing, sliding, and the ends of sliding, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from integrators import (
    IVP,
    Event,
    Hybrid,
    Mode,
    Solution,
    Status,
    Switch,
    Transition,
    solve,
    solve_many,
    traced,
)

METHODS = ["DOPRI5", "DOP853", "RADAU5", "Gauss4", "Taylor", "RadauVariable", "BDF", "Adams"]
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def friction_oscillator(kind):
    """x'' = −x − sign(x'), as a Switch of plain or traced functions, or as one traced function."""
    if kind == "sign":
        return traced(lambda t, y: [y[1], -y[0] - np.sign(y[1])], n=2)

    def maybe(f, **options):
        return traced(f, n=2, **options) if kind == "traced" else f

    return Switch(
        maybe(lambda t, y: [y[1]], outputs=1),
        maybe(lambda t, y: [y[1], -y[0] - 1.0]),
        maybe(lambda t, y: [y[1], -y[0] + 1.0]),
    )


FORMS = {kind: friction_oscillator(kind) for kind in ("plain", "traced", "sign")}


@pytest.mark.parametrize(
    ("kind", "method"),
    [(k, m) for k in FORMS for m in METHODS if (k, m) != ("plain", "Taylor")],  # needs a trace
)
def test_dry_friction_oscillator(kind, method):
    """Half swings of π lose 2 each, from 5.3 to −3.3 to 1.3, to rest at 0.7."""
    kinks = "locate" if kind == "sign" else None
    sol = solve(FORMS[kind], (0, 20), [5.3, 0.0], method=method, kinks=kinks, dense_output=True,
                **TIGHT)  # fmt: skip
    assert sol.success
    assert [stay.mode for stay in sol.modes] == ["minus", "plus", "minus", "sliding"]
    starts = [stay.start for stay in sol.modes]
    assert np.allclose(starts, math.pi * np.arange(4), rtol=0, atol=1e-8)
    assert np.allclose(sol.y[:, -1], [0.7, 0.0], rtol=0, atol=1e-8)
    at_rest = sol.sol(np.linspace(starts[3], 20, 50))
    assert np.ptp(at_rest[0]) <= 4e-16  # no creep: a last digit at most
    assert np.abs(at_rest[1]).max() <= (1e-30 if kind == "plain" else 0.0)
    assert np.all(np.diff(sol.t) > 0)  # states are continuous: no time comes twice
    assert sol.sol(1.0)[0] == pytest.approx(1 + 4.3 * math.cos(1.0), abs=1e-8)


def test_order_is_kept():
    """RK4 through two crossings, x = 1 + 0.3 cos t in the third half swing."""
    errors = []
    for step in (0.025, 0.0125, 0.00625):
        sol = solve(FORMS["traced"], (0, 7.5), [5.3, 0.0], method="RK4", step=step)
        exact = [1 + 0.3 * math.cos(7.5), -0.3 * math.sin(7.5)]
        errors.append(np.abs(sol.y[:, -1] - exact).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(slopes - 4) < 0.15)


@pytest.mark.parametrize("method", METHODS)
def test_stick_and_slip_of_a_shaken_block(method):
    """v' = 1.5 sin t − sign v: sticks until sin t = 2/3, and slips until v is 0 again."""
    f = traced(lambda t, y: [1.5 * np.sin(t) - np.sign(y[0])], n=1)
    sol = solve(f, (0, 12), [0.0], method=method, kinks="locate", **TIGHT)
    start = math.asin(1 / 1.5)
    end = brentq(lambda t: 1.5 * (math.cos(start) - math.cos(t)) - (t - start), 2, 4, xtol=1e-14)
    half = [("plus", start), ("sliding", end)]
    later = [("minus", start + math.pi), ("sliding", end + math.pi)]
    again = [(mode, t + 2 * math.pi) for mode, t in half]
    exact = [("sliding", 0.0), *half, *later, *again]
    assert [stay.mode for stay in sol.modes[:7]] == [mode for mode, _ in exact]
    assert np.allclose([s.start for s in sol.modes[:7]], [t for _, t in exact], rtol=0, atol=3e-9)


def test_belt_with_filippov_friction():
    """x'' = −x − sign(x' − 1/2): sticks to the belt until x = 1, then slips off tangentially."""
    sol = solve(
        Switch(
            lambda t, y: y[1] - 0.5,
            lambda t, y: [y[1], -y[0] - 1.0],
            lambda t, y: [y[1], -y[0] + 1.0],
        ),
        (0, 10), [0.0, 0.5], dense_output=True, **TIGHT,
    )  # fmt: skip
    assert [stay.mode for stay in sol.modes] == ["sliding", "minus"]
    assert sol.modes[1].start == pytest.approx(2.0, abs=1e-8)
    s = 5.0  # afterwards x = 1 + sin(t − 2)/2: it touches the belt's speed at t = 2 + 2π
    assert np.allclose(sol.sol(2 + s), [1 + math.sin(s) / 2, math.cos(s) / 2], rtol=0, atol=1e-8)


def test_sliding_on_a_curved_moving_surface():
    """Attracted to the circle of radius 1 + t/10 from both sides, turned round by ω = 1."""

    def side(inwards):
        def f(t, y):
            r = np.hypot(y[0], y[1])
            return np.array([-y[1], y[0]]) - inwards * np.array([y[0], y[1]]) / r

        return f

    surface = lambda t, y: np.hypot(y[0], y[1]) - (1 + t / 10)  # noqa: E731
    for make in (lambda f, **k: f, lambda f, **k: traced(f, n=2, **k)):
        g = make(lambda t, y: [surface(t, y)], outputs=1)
        sol = solve(Switch(g, make(side(1)), make(side(-1))), (0, 5), [0.5, 0.0], dense_output=True,
                    rtol=1e-9, atol=1e-11)  # fmt: skip
        entry = 0.5 / 0.9
        assert [stay.mode for stay in sol.modes] == ["minus", "sliding"]
        assert sol.modes[1].start == pytest.approx(entry, abs=1e-8)
        times = np.linspace(entry, 5, 9)
        radius = 1 + times / 10
        exact = radius * np.array([np.cos(times), np.sin(times)])
        assert np.abs(sol.sol(times) - exact).max() < 1e-7
        ends = sol.t[sol.t > entry + 0.01]
        off = np.hypot(*sol.y[:, sol.t > entry + 0.01]) - (1 + ends / 10)
        assert np.abs(off).max() < 1e-14


def two_blocks(traced_whole):
    """Two blocks with a spring between them, each with friction; the first is pushed."""
    if traced_whole:
        return traced(
            lambda t, y: [
                y[2],
                y[3],
                y[1] - y[0] - 0.4 * np.sign(y[2]) + 0.2,
                y[0] - y[1] - 0.3 * np.sign(y[3]),
            ],
            n=4,
        )
    rest = lambda t, y: np.array([y[2], y[3], y[1] - y[0] + 0.2, y[0] - y[1]])  # noqa: E731

    def friction(i, mu):
        force = mu * np.eye(4)[2 + i]
        return Switch(lambda t, y: y[2 + i], lambda t, y: -force, lambda t, y: force)

    return rest + friction(0, 0.4) + friction(1, 0.3)


@pytest.mark.parametrize("traced_whole", [False, True])
def test_two_switches_slide_at_once(traced_whole):
    sol = solve(two_blocks(traced_whole), (0, 30), [1.0, -1.0, 0.0, 0.0],
                kinks="locate" if traced_whole else None, **TIGHT)  # fmt: skip
    assert sol.success
    modes = [stay.mode for stay in sol.modes]
    assert modes[-2:] == [("sliding", "plus"), ("sliding", "sliding")]
    x1, x2, v1, v2 = sol.y[:, -1]
    assert v1 == v2 == 0.0
    assert abs(x1 - x2) <= 0.3 + 1e-12  # friction holds both
    # Energy lost is the friction's work: each mode's motion is that of its own linear system,
    # so compare with a run in which every switch is an event that a person wrote down.
    assert np.allclose(sol.y[:, -1], by_hand(30.0), rtol=0, atol=1e-8)


def by_hand(t1):
    """The same two blocks with modes written out: (s1, s2), 0 for a block that sticks."""
    mu = np.array([0.4, 0.3])

    def pull(y):
        return np.array([y[1] - y[0] + 0.2, y[0] - y[1]])

    def after(y, signs):
        """Signs of the velocities after an instant at which those marked None vanish."""
        return tuple(
            (0 if abs(pull(y)[i]) <= mu[i] else int(np.sign(pull(y)[i]))) if s is None else s
            for i, s in enumerate(signs)
        )

    def mode(signs):
        s = np.array(signs)

        def f(t, y):
            a = np.where(s == 0, 0.0, pull(y) - mu * s)
            return np.concatenate([y[2:] * (s != 0), a])

        def stop(i):
            def jump(t, y):
                y[2 + i] = 0.0
                return after(y, [None if k == i else signs[k] for k in (0, 1)]), y

            return Transition(lambda t, y: y[2 + i] * signs[i], -1, jump=jump)

        def slip(i):
            return Transition(
                lambda t, y: abs(pull(y)[i]) - mu[i],
                +1,
                jump=lambda t, y: (
                    tuple(int(np.sign(pull(y)[i])) if k == i else signs[k] for k in (0, 1)),
                    y,
                ),
            )

        return Mode(f, [slip(i) if signs[i] == 0 else stop(i) for i in (0, 1)])

    start = np.array([1.0, -1.0, 0.0, 0.0])
    problem = Hybrid(mode, after(start, [None, None]), start, (0, t1))
    return solve(problem, method="DOP853", **TIGHT).raise_for_status().y[:, -1]


@pytest.mark.parametrize("seed", range(6))
def test_random_planar_fields_against_chattering(seed):
    """Short Euler steps that chatter across the surface follow Filippov's solution to O(h)."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2, 2, 2)) - 0.5 * np.eye(2)
    b, n, y = 2 * rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=2)
    plus, minus = (lambda t, y, k=k: A[k] @ y + b[k] for k in (0, 1))
    sol = solve(Switch(lambda t, y: n @ y - 0.2, plus, minus), (0, 2), y, rtol=1e-8, atol=1e-10)
    h = 2e-4
    for _ in range(round(2 / h)):
        k = 0 if n @ y > 0.2 else 1
        y = y + h * (A[k] @ y + b[k])
    assert sol.success
    assert np.abs(sol.y[:, -1] - y).max() < 0.01 * max(1.0, np.abs(y).max())


def test_nested_switches_idle_where_they_do_not_matter():
    inner = Switch(lambda t, y: y[0] - 2, lambda t, y: [0.5], lambda t, y: [2.0])
    outer = Switch(lambda t, y: y[0] - 1, inner, lambda t, y: [1.0])
    sol = solve(outer, (0, 3), [0.0], rtol=1e-9)
    assert [stay.mode for stay in sol.modes] == [
        ("minus", "idle"), ("plus", "minus"), ("plus", "plus"),
    ]  # fmt: skip
    assert np.allclose([stay.start for stay in sol.modes], [0, 1, 1.5])
    assert sol.y[0, -1] == pytest.approx(2.75)


def test_start_on_the_surface():
    def start(plus, minus):
        f = Switch(lambda t, y: y[0], lambda t, y: [plus], lambda t, y: [minus])
        return solve(f, (0, 1), [0.0])

    assert start(1.0, 1.0).modes[0].mode == "plus"
    assert start(-1.0, -1.0).modes[0].mode == "minus"
    assert start(-1.0, 1.0).modes[0].mode == "sliding"
    apart = start(1.0, -1.0)  # both sides lead away: not unique, and said so
    assert apart.modes[0].mode == "plus"
    assert "not unique" in apart.message
    assert start(0.0, 0.0).success


def test_events_of_the_problem_go_on():
    """Crossings of x = 0 are counted over all modes; a reset and a terminal count act."""
    passage = Event(lambda t, y: y[0], terminal=3, name="middle")
    sol = solve(FORMS["traced"], (0, 20), [7.3, 0.0], events=passage, **TIGHT)
    assert sol.status == Status.EVENT
    assert sol.ended_by == 0
    exact = [math.pi * k + math.acos(-1 / (6.3 - 2 * k)) for k in range(3)]
    assert np.allclose(sol.t_events[0], exact, rtol=0, atol=1e-8)
    kick = Event(lambda t, y: t - 15.0, reset=lambda t, y: [y[0], 2.0])
    sol = solve(FORMS["plain"], (0, 20), [5.3, 0.0], events=kick, **TIGHT)
    assert [stay.mode for stay in sol.modes[3:5]] == ["sliding", "plus"]
    assert sol.modes[4].start == pytest.approx(15.0)


def test_switch_in_a_mode_of_a_hybrid():
    """A block slides to rest on a rough floor; after 3 s the floor is ice, and it is kicked."""
    rough = Mode(
        Switch(lambda t, y: y[1], lambda t, y: [y[1], -1.0], lambda t, y: [y[1], 1.0]),
        Transition(lambda t, y: t - 3.0, +1, to="ice", map=lambda t, y: [y[0], 1.0]),
    )
    problem = Hybrid({"rough": rough, "ice": lambda t, y: [y[1], 0.0]}, "rough", [0.0, 2.0], (0, 4))
    sol = solve(problem, dense_output=True)
    assert [stay.mode for stay in sol.modes] == ["rough", "ice"]
    assert [stay.mode for stay in sol.parts[0].modes] == ["plus", "sliding"]
    assert np.allclose(sol.sol([1.0, 2.5, 4.0])[0], [1.5, 2.0, 3.0])


def test_parameters_mass_and_many():
    def side(sign):
        return lambda t, y, p: [y[1], -y[0] - sign * p[0]]

    f = Switch(lambda t, y, p: y[1], side(1), side(-1))
    many = solve_many(f, (0, 20), [5.3, 0.0], params=[[1.0], [2.0]], **TIGHT)
    assert many.engine == "one by one: f is a Switch"
    assert np.allclose(many.y, [[0.7, 0.0], [-1.3, 0.0]], rtol=0, atol=1e-8)
    for p, y in zip(([1.0], [2.0]), many.y):
        alone = solve(f, (0, 20), [5.3, 0.0], params=p, method="DOPRI5", **TIGHT)
        assert np.array_equal(alone.y[:, -1], y)
    heavy = Switch(lambda t, y: y[1], lambda t, y: [y[1], -4 * y[0] - 4.0],
                   lambda t, y: [y[1], -4 * y[0] + 4.0])  # fmt: skip
    sol = solve(heavy, (0, 20), [5.3, 0.0], mass=np.diag([1.0, 4.0]), method="RADAU5", **TIGHT)
    assert np.allclose(sol.y[:, -1], [0.7, 0.0], rtol=0, atol=1e-8)


def test_solution_is_that_of_the_problem(tmp_path):
    problem = IVP(FORMS["traced"], [5.3, 0.0], (0, 20), name="rubbing")
    sol = solve(problem, check="global", **TIGHT)
    assert sol.problem is problem
    assert sol.quality.global_error.end < 1e-7
    loaded = Solution.load(sol.save(tmp_path / "run"))
    assert loaded.modes == sol.modes
    plain = solve(problem, **TIGHT)
    times = np.linspace(0, 20, 9)
    assert np.array_equal(solve(problem, t_eval=times, **TIGHT).t, times)
    assert plain.nsteps == sum(stay.nsteps for stay in plain.modes)


def test_refusals():
    f = FORMS["plain"]
    cases = [
        (lambda: solve(f, (1, 0), [1.0, 0.0]), "backwards"),
        (lambda: solve(f, (0, 1), [1.0 + 0j, 0.0]), "real states"),
        (lambda: solve(f, (0, 1), [1.0, 0.0], mass=np.diag([1.0, 0.0]), method="RADAU5"), "Hybrid"),
        (lambda: Switch(1, f, f), "must be a function"),
        (lambda: Switch(f, f, f), "continuous function"),
        (lambda: f + 3, "can be added"),
        (lambda: solve(lambda t, y: -y, (0, 1), [1.0], kinks="locate"), "traced"),
        (lambda: solve(lambda t, y: -y, (0, 1), [1.0], kinks="find"), "'locate' or None"),
    ]
    for call, message in cases:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
