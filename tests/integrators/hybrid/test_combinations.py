"""Events × resets × transitions × output × methods, drawn at random, against parabolas by hand.

A ball flies between a floor and a ceiling and bounces off both; a watcher counts passages of a
height and may end the run. The same motion is written in three ways: resets of one problem,
transitions of one mode to itself, and two modes, one for each wall that was hit last.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from integrators import IVP, Event, Hybrid, Mode, Solution, Status, Transition, solve, traced

GRAVITY = 3.0
METHODS = [
    ("DOPRI5", None), ("DOP853", None), ("RADAU5", None), ("Gauss4", None), ("RK4", 0.07),
    ("Taylor", None), ("Verner65", None), ("RadauVariable", None), ("Kvaerno5", None),
    ("NDF", None), ("Adams", None),
    ("scipy:RK45", None),
]  # fmt: skip
SEEDS = [*range(60), 1074]  # the last passes the height twice at the very start of a long step


@dataclass
class Case:
    """One draw."""

    ceiling: float
    restitution: float
    height: float
    direction: int
    terminal: int
    x: float
    v: float
    t_end: float
    road: str
    method: str
    step: float | None
    traced: bool
    times: np.ndarray | None
    dense: bool

    @classmethod
    def draw(cls, seed):
        rng = np.random.default_rng(seed)
        method, step = METHODS[rng.integers(len(METHODS))]
        ceiling = float(rng.uniform(1.0, 2.0))
        backward = bool(rng.random() < 0.2)
        t_end = float(rng.uniform(1.0, 3.0)) * (-1 if backward else 1)
        return cls(
            ceiling=ceiling,
            restitution=1.0 if backward else float(rng.choice([1.0, 0.8])),
            height=float(rng.uniform(0.2, 0.8)) * ceiling,
            direction=int(rng.integers(-1, 2)),
            terminal=int(rng.choice([0, 0, 1, 3])),
            x=float(rng.uniform(0.1, 0.9)) * ceiling,
            v=float(rng.uniform(-4.0, 4.0)),
            t_end=t_end,
            road="reset" if backward else str(rng.choice(["reset", "self", "walls"])),
            method=method,
            step=step,
            traced=bool(rng.random() < 0.5) or method == "Taylor",
            times=np.sort(rng.uniform(0.0, abs(t_end), 7)) * np.sign(t_end)
            if rng.random() < 0.5
            else None,
            dense=bool(rng.random() < 0.5),
        )

    def maybe(self, f, **options):
        return traced(f, n=2, **options) if self.traced else f

    def problem(self):
        f = self.maybe(lambda t, y: [y[1], -GRAVITY])
        floor = self.maybe(lambda t, y: [y[0]], outputs=1)
        roof = self.maybe(lambda t, y: [self.ceiling - y[0]], outputs=1)
        watch = Event(self.maybe(lambda t, y: [y[0] - self.height], outputs=1), self.direction,
                      self.terminal, name="watch")  # fmt: skip
        bounce = [
            lambda t, y: [0.0, -self.restitution * y[1]],
            lambda t, y: [self.ceiling, -self.restitution * y[1]],
        ]
        span, start = (0.0, self.t_end), [self.x, self.v]
        if self.road == "reset":
            walls = [Event(g, -1, reset=b) for g, b in zip((floor, roof), bounce)]
            return IVP(f, start, span, events=[watch, *walls])
        names = ["fly", "fly"] if self.road == "self" else ["from floor", "from roof"]
        leave = [
            Transition(g, -1, to=name, map=b) for g, b, name in zip((floor, roof), bounce, names)
        ]
        modes = {name: Mode(f, leave) for name in names}
        return Hybrid(modes, names[0], start, span, events=watch)

    def exact(self):
        """Flights (t, x, v), passages of the height that count, and when the run ends."""
        sign = 1.0 if self.t_end >= 0 else -1.0  # backwards is forwards with −v
        t, x, v, end = 0.0, self.x, sign * self.v, abs(self.t_end)
        flights, passages = [(t, x, v)], []
        while True:
            hits = [s for s in roots(x, v, 0.0) if v - GRAVITY * s < 0]
            hits += [s for s in roots(x, v, self.ceiling) if v - GRAVITY * s > 0]
            s_hit = min(s for s in hits if s > 1e-9)
            for s in sorted(roots(x, v, self.height)):
                speed = v - GRAVITY * s
                rises = speed > 0  # along the integration
                wanted = self.direction == 0 or rises == (self.direction > 0)
                if 1e-9 < s < min(s_hit, end - t) and wanted:
                    passages.append(t + s)
                    if self.terminal and len(passages) == self.terminal:
                        return flights, sign * np.array(passages), sign * (t + s), True
            if t + s_hit >= end:
                return flights, sign * np.array(passages), sign * end, False
            speed = v - GRAVITY * s_hit
            t, x, v = t + s_hit, 0.0 if speed < 0 else self.ceiling, -self.restitution * speed
            flights.append((t, x, v))

    def state(self, flights, t):
        sign = 1.0 if self.t_end >= 0 else -1.0
        t0, x, v = [flight for flight in flights if flight[0] <= abs(t)][-1]
        s = abs(t) - t0
        return np.array([x + v * s - GRAVITY * s * s / 2, sign * (v - GRAVITY * s)])


def roots(x, v, height):
    """Times at which x + v s − g s²/2 is at a height."""
    square = v * v + 2 * GRAVITY * (x - height)
    if square < 0:
        return []
    return [(v - math.sqrt(square)) / GRAVITY, (v + math.sqrt(square)) / GRAVITY]


@pytest.mark.parametrize("seed", SEEDS)
def test_bouncing_between_walls(seed, tmp_path):
    case = Case.draw(seed)
    flights, passages, end, stopped = case.exact()
    options = {"step": case.step} if case.step else {"rtol": 1e-9, "atol": 1e-11}
    sol = solve(case.problem(), method=case.method, t_eval=case.times, dense_output=case.dense,
                **options)  # fmt: skip
    assert sol.status == (Status.EVENT if stopped else Status.FINISHED), sol.message
    assert sol.reached[0] == pytest.approx(end, abs=1e-8)
    assert len(sol.t_events[0]) == len(passages)
    assert np.allclose(sol.t_events[0], passages, rtol=0, atol=1e-8)
    jumps = np.array([t for t, _, _ in flights])

    def clear(t):  # of jumps, whose times are rounded
        return np.min(np.abs(np.abs(t) - jumps[1:]), initial=1.0) > 1e-7

    if case.times is None:
        assert sol.t[-1] == pytest.approx(end, abs=1e-8)
    else:
        assert np.array_equal(sol.t, case.times[np.abs(case.times) <= abs(sol.reached[0])])
    for k, t in enumerate(sol.t):
        if clear(t):
            assert np.allclose(sol.y[:, k], case.state(flights, t), rtol=0, atol=1e-7)
    if case.dense:
        inside = np.linspace(0.0, end, 17)[1:-1]
        for t in filter(clear, inside):
            assert np.allclose(sol.sol(t), case.state(flights, t), rtol=0, atol=1e-7)
    if case.road != "reset":
        assert len(sol.modes) == 1 + np.count_nonzero(jumps[1:] < abs(end) - 1e-8)
        assert sum(stay.nsteps for stay in sol.modes) == sol.nsteps
        loaded = Solution.load(sol.save(tmp_path / "run"))
        again = pickle.loads(pickle.dumps(sol))
        assert loaded.modes == again.modes == sol.modes
        assert loaded.ended_by == again.ended_by == sol.ended_by
