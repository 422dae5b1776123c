"""A hundred spheres that fall into a heap, one second: MoreauJean against MuJoCo, at equal step.

Both in one process, alternately, with one thread. MuJoCo is a compliant engine: its contacts are
soft by design, with solver settings as they come; its balls are given the same masses, radii,
friction and start. Prints the ratio of times, the deepest penetration and the mean height at the
end. Needs ``pip install mujoco``.

    python benchmarks/sphere_heap.py [--balls 100] [--step 0.002] [--repeat 3] [--cone elliptic]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import multibody as mb
from integrators import solve
from integrators.kernels import compiled_first

RADIUS, FRICTION, WALL, MASS = 0.05, 0.4, 0.3, 0.5


def start(balls: int) -> np.ndarray:
    """Centres in layers of 4 × 4 between the walls, a little off the grid so that they topple."""
    random = np.random.default_rng(4)
    places = []
    for k in range(balls):
        layer, row, column = k // 16, k // 4 % 4, k % 4
        place = [0.14 * (column - 1.5), 0.14 * (row - 1.5), RADIUS + 0.01 + 0.115 * layer]
        places.append(np.array(place) + random.uniform(-0.005, 0.005, 3))
    return np.array(places)


WALLS = [((1, 0, 0), (-WALL, 0, 0)), ((-1, 0, 0), (WALL, 0, 0))]
WALLS += [((0, 1, 0), (0, -WALL, 0)), ((0, -1, 0), (0, WALL, 0)), ((0, 0, 1), (0, 0, 0))]


def ours(balls: int) -> mb.Model:
    b = mb.ModelBuilder(name="heap")
    ball = mb.Ball(RADIUS)
    for k in range(balls):
        b.add_body(f"ball{k}", 0, mb.Free(), inertia=mb.sphere(mass=MASS, radius=RADIUS))
    for k in range(balls):
        for i, (normal, point) in enumerate(WALLS):
            wall = mb.HalfSpace(normal, point)
            b.add_contact(f"wall{i}-{k}", 0, wall, f"ball{k}", ball, friction=FRICTION)
        for j in range(k):
            b.add_contact(f"{j}-{k}", f"ball{j}", ball, f"ball{k}", ball, friction=FRICTION)
    return b.build()


def theirs(balls: int, step: float, cone: str) -> object:
    import mujoco

    planes = "".join(
        f'<geom type="plane" size="2 2 .1" pos="{p[0]} {p[1]} {p[2]}" '
        f'zaxis="{n[0]} {n[1]} {n[2]}" friction="{FRICTION} 0 0"/>'
        for n, p in WALLS
    )
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{RADIUS}" mass="{MASS}" '
        f'friction="{FRICTION} 0 0"/></body>'
        for x, y, z in start(balls)
    )
    text = (
        f'<mujoco><option timestep="{step}" gravity="0 0 -9.81" cone="{cone}"/>'
        f"<worldbody>{planes}{bodies}</worldbody></mujoco>"
    )
    return mujoco.MjModel.from_xml_string(text)


def run_theirs(model: object, steps: int) -> tuple[float, np.ndarray, int]:
    import mujoco

    data = mujoco.MjData(model)
    begin = time.perf_counter()
    for _ in range(steps):
        mujoco.mj_step(model, data)
    spent = time.perf_counter() - begin
    return spent, data.qpos.reshape(-1, 7)[:, :3].copy(), data.ncon


def depth(centres: np.ndarray) -> float:
    """How deep the deepest two are in each other, in parts of a radius."""
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2) - 2 * RADIUS
    apart[np.diag_indices(len(centres))] = np.inf
    walls = min(((centres - p) @ np.array(n, dtype=float)).min() - RADIUS for n, p in WALLS)
    return float(max(0.0, -min(apart.min(), walls)) / RADIUS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--balls", type=int, default=100)
    parser.add_argument("--step", type=float, default=0.002)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cone", default="pyramidal", help="MuJoCo's friction: or elliptic")
    given = parser.parse_args()
    model = ours(given.balls)
    q = model.neutral().reshape(-1, 7)
    q[:, 4:] = start(given.balls)
    problem = mb.as_ivp(model, q.ravel(), np.zeros(model.nv), (0.0, 1.0))
    mujoco_model = theirs(given.balls, given.step, given.cone)
    steps = round(1.0 / given.step)
    times: tuple[list[float], list[float]] = ([], [])
    with compiled_first():
        solve(problem.with_(t_span=(0.0, 5 * given.step)), method="MoreauJean", step=given.step)
        for _ in range(given.repeat):
            begin = time.perf_counter()
            run = solve(problem, method="MoreauJean", step=given.step)
            times[0].append(time.perf_counter() - begin)
            spent, centres, count = run_theirs(mujoco_model, steps)
            times[1].append(spent)
    assert run.success, run.message
    mine = run.y[: model.nq, -1].reshape(-1, 7)[:, 4:]
    ratio = min(times[0]) / min(times[1])
    print(f"{given.balls} spheres, {steps} steps of {given.step:g} s, {count} contacts at the end")
    print(f"MoreauJean / MuJoCo in time: {ratio:.2f}")
    print(f"deepest penetration, in radii: {depth(mine):.4f} and {depth(centres):.4f}")
    print(f"mean height: {mine[:, 2].mean():.4f} and {centres[:, 2].mean():.4f} m")


if __name__ == "__main__":
    main()
