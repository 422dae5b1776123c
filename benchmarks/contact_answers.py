"""What is known exactly of contact, impact and friction, and what runs find.

``python benchmarks/contact_answers.py`` prints the table of docs/contact.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import multibody as mb
from integrators import solve
from multibody import mechanisms

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.multibody.contact.test_instants import four_bar_with_stop

G = 9.81
SHARP = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def run(name, t_end=None, start=None, dense=False, **parameters):
    """Model and solution of a mechanism of the catalogue."""
    entry = mechanisms.entry(name)
    model = entry.model(**parameters)
    q, v = entry.start(model) if start is None else start
    problem = mb.as_ivp(model, q, v, (0.0, t_end or entry.t_end))
    solution = solve(problem, dense_output=dense, **SHARP)
    assert solution.success, solution.message
    return model, solution


def tell(what, error, unit=""):
    """One line of the table."""
    print(f"{what:<66} {error:9.1e} {unit}")


def bounces():
    """1: the times of all bounces, and rest after infinitely many."""
    e, first = 0.9, np.sqrt(2 / G)
    _, solution = run("bouncing_ball", 10.0, restitution=e)
    starts = np.array([stay.start for stay in solution.modes if stay.mode == "free"][1:])
    exact = first + 2 * first * np.cumsum([0.0, *(e**k for k in range(1, len(starts)))])
    tell(f"1  each of {len(starts)} bounces of a ball, e = 0.9", np.abs(starts - exact).max(), "s")
    rest = solution.modes[-1]
    tell("1  it comes to rest at t₁(1+e)/(1−e)", abs(rest.start - first * (1 + e) / (1 - e)), "s")
    tell("1  and stays there to the end of the run", abs(solution.y[0, -1] - 0.1), "m")


def leaving_and_sliding():
    """2: bead, ladder, bowling ball, incline, rocking block."""
    _, solution = run("bead_on_sphere")
    tell("2  a bead leaves a sphere at cos θ = (2/3) cos θ₀",
         abs(solution.parts[0].reached[1][1] - 2 / 3 * np.cos(0.1)))  # fmt: skip
    _, solution = run("sliding_ladder", 0.8)
    y = solution.parts[0].reached[1]
    tell("2  a ladder leaves the wall at 2/3 of its height",
         abs(y[1] + 0.5 * np.cos(y[2]) - 2 / 3 * np.cos(0.2)))  # fmt: skip
    model, solution = run("bowling_ball", 1.0)
    tell("2  a bowling ball rolls after 2v₀/7μg",
         abs(solution.modes[1].start - 10 / (7 * 0.2 * G)), "s")  # fmt: skip
    speed = mb.point_jacobian(model, solution.y[:7, -1], "ball") @ solution.y[7:, -1]
    tell("2  with 5v₀/7", abs(speed[0] - 25 / 7), "m/s")
    for mu, words in ((0.35, "sticks, tan α < μ: creep"), (0.25, "slides: its way")):
        _, solution = run("block_on_incline", friction=mu)
        way = np.linalg.norm(solution.y[4:7, -1] - solution.y[4:7, 0])
        pull = max(G * (np.sin(0.3) - mu * np.cos(0.3)), 0.0)
        tell(f"2  a block on an incline {words}", abs(way - 2.0 * pull), "m")
    _, solution = run("rocking_block", 1.6)
    ratio = solution.parts[1].y[5, 0] / solution.parts[0].reached[1][5]
    alpha = np.arctan2(0.2, 0.8)
    tell("2  rocking block, ω⁺/ω⁻ = 1 − (3/2) sin²α", abs(ratio - 1 + 1.5 * np.sin(alpha) ** 2))


def several_at_once():
    """3: rod, cradle, box."""
    model = mechanisms.entry("dropped_rod").model()
    ends = []
    for tilt in (0.0, 1e-9):
        start = ([0.0, 1.0, tilt], None)
        _, solution = run("dropped_rod", 3.0, start)
        ends.append([stay.start for stay in solution.modes])
    tell("3  level rod, and one tilted by 10⁻⁹: instants differ by",
         np.abs(np.subtract(*ends)).max(), "s")  # fmt: skip
    model = mechanisms.newtons_cradle()
    after = mb.impact(model, np.zeros(5), [-1.0, 0, 0, 0, 0]).velocities
    tell("3  Newton's cradle passes one ball on", np.abs(after - [0, 0, 0, 0, -1]).max(), "m/s")
    b = mb.ModelBuilder()
    b.add_body("box", 0, mb.Free(), inertia=mb.box((1, 1, 1), mass=2.0))
    b.add_contact("floor", 0, mb.HalfSpace(), "box", mb.BoxCorners((1, 1, 1)), friction=0.5)
    box = b.build()
    q = box.neutral()
    q[6] = 0.5
    found = mb.contact_accelerations(box, q, np.zeros(6))
    tell("3  box on four corners: accelerations", np.abs(found.accelerations).max(), "m/s²")
    tell("3  and forces, which are shared evenly",
         np.abs(found.forces[::2, 0] - 0.5 * G).max(), "N")  # fmt: skip


def orders():
    """4: the order through impacts, from the two finest of several steps."""
    problem = mechanisms.entry("newtons_cradle").problem().with_(t_span=(0.0, 1.2))
    end = solve(problem, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    errors = [
        np.abs(solve(problem, method="RK4", step=1.2 / n).y[:, -1] - end).max() for n in (40, 80)
    ]
    tell("4  RK4 through impacts: observed order − 4", abs(np.log2(errors[0] / errors[1]) - 4))
    for rtol in (1e-6, 1e-9):
        found = solve(problem, method="DOP853", rtol=rtol, atol=0.1 * rtol).y[:, -1]
        tell(f"4  DOP853 through impacts at rtol = {rtol:g}: error", np.abs(found - end).max())


def books():
    """5: energy between impacts, momentum at impacts."""
    model, q = four_bar_with_stop(0.2)
    four_bar = model, solve(mb.as_ivp(model, q, None, (0.0, 1.2)), dense_output=True, **SHARP)
    for words, (model, solution) in (
        ("four-bar at a stop", four_bar),
        ("slider-crank with clearance", run("loose_slider_crank", 0.12, dense=True)),
    ):
        nq, apart, jump = model.nq, 0.0, 0.0
        for part, stay in zip(solution.parts, solution.modes):
            total = mb.energy(model, part).total
            if stay.mode == "free":
                apart = max(apart, np.ptp(total) / np.abs(total).max())
        hits = {hit.t: hit.result for hit in mb.impacts(model, solution)}
        following = [stay.mode for stay in solution.modes[1:]]
        for before, after, mode in zip(solution.parts, solution.parts[1:], following):
            t, y = before.reached
            if t not in hits or "last bounces" in mode:
                continue
            k = mb.contact_kinematics(model, y[:nq], t=t)
            impulse = np.einsum("nkv,nk->v", k.T, hits[t].impulses)
            if model.bonds:
                impulse += mb.constraints(model, y[:nq], t=t).K.T @ hits[t].loop_impulses
            change = mb.crba(model, y[:nq]) @ (after.y[nq:, 0] - y[nq:])
            jump = max(jump, np.abs(change - impulse).max())
        ledger = mb.energy_ledger(model, solution)
        tell(f"5  {words}: energy between impacts, of it", apart)
        tell(f"5  {words}: momentum at impacts", jump, "N s")
        tell(f"5  {words}: the ledger, all along", np.abs(ledger.balance).max(), "J")


def hostile():
    """7: what is refused, and how."""

    def ball(**options):
        b = mb.ModelBuilder(name="hostile")
        b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=1.0, radius=0.1))
        for _ in range(2 if options.pop("twice", False) else 1):
            b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), **options)
        return b.build()

    def base_twice():
        b = mb.ModelBuilder()
        b.add_body("ball", 0, mb.Prismatic("z"), inertia=mb.sphere(mass=1.0, radius=0.1))
        b.add_contact("a", 0, mb.HalfSpace(), 0, mb.Ball(0.1))
        b.build()

    for words, attempt in (
        ("restitution −0.1", lambda: ball(restitution=-0.1)),
        ("μ = −1", lambda: ball(friction=-1.0)),
        ("penetration", lambda: mb.as_ivp(ball(), [0.07], [0.0], (0, 1))),
        ("the base with itself", base_twice),
        ("two contacts of one name", lambda: ball(twice=True)),
        ("NaN geometry", lambda: mb.Ball(float("nan"))),
    ):
        try:
            attempt()
            print(f"7  {words}: ACCEPTED")
        except (ValueError, TypeError) as error:
            print(f"7  {words}: {error}")


if __name__ == "__main__":
    for part in (bounces, leaving_and_sliding, several_at_once, orders, books, hostile):
        part()
    print("6  benchmarks/contact_lcp.py --random 10000, benchmarks/sphere_heap.py")
