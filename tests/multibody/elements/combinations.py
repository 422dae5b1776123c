"""Elements on mechanisms drawn at random: free bases, loops, gears, drives; every road agrees.

``python -m tests.multibody.elements.combinations 0 200`` draws many. The books of the energy are
the truth: what elements, springs, dampers and drives do is what the energy changes by. Besides,
forward dynamics by recursions, traced right-hand side, lanes and another formulation agree.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import multibody as mb
from integrators import solve, solve_many
from multibody.elements import NamedElement
from tests.multibody.random_mechanisms import draw

FORMULATIONS = (("index1", "DOP853"), ("projected", "DOP853"), ("ggl", "RADAU5"))
CLEAR = 1e-3  # of the largest singular value: nearer to a singular position nobody is right


class Doubtful(Exception):
    """Next to a singular position, or two that exclude each other."""


def with_force_elements(model, rng):
    """Two to four elements with numbers drawn at random."""
    single = [b.name for b in model.bodies if b.joint.nv == b.joint.nq == 1]
    bodies = [b.name for b in model.bodies]

    def body():
        return str(rng.choice(bodies))

    def joint():
        return str(rng.choice(single))

    def point():
        return tuple(rng.uniform(-0.4, 0.4, 3))

    free = (
        lambda: mb.Bushing(0, point(), body(), point(), np.full(6, 4.0), np.full(6, 0.3)),
        lambda: mb.PointForce(body(), point(), tuple(rng.uniform(-2, 2, 3))),
        lambda: mb.Suspension(body(), point(), 20.0, 0.5, mb.Wave(0.1, 1.0)),
        lambda: mb.SpringLaw(0, point(), body(), point(), lambda x, u: 3.0 * x**3 + 0.1 * u),
    )
    hinged = (
        lambda: mb.Friction(joint(), 0.5, 0.8, 0.1, 0.2, 0.1),
        lambda: mb.BristleFriction(joint(), 0.5, 0.8, 0.1, 0.2, 50.0, 2.0),
        lambda: mb.JointSpring(joint(), lambda q, v: -2.0 * np.sin(q) - 0.2 * v),
        lambda: mb.PID(joint(), 0.3, 5.0, 2.0, 1.0),
        lambda: mb.DCMotor(joint(), mb.Wave(2.0, 1.0), 0.5, 0.05, 0.4),
        lambda: mb.Actuator(joint(), 0.4, 1.5, (3.0, 0.2, 0.1), (0.1, -2.0, -0.3), 0.2,
                            force_range=(-0.5, 0.7), dynamics="filter", time=0.1),
        lambda: mb.JointTendon(single[:2], rng.uniform(-1, 1, len(single[:2])), 4.0, 0.3, 0.1),
        lambda: mb.Actuator((), 0.4, bias=(0.0, 0.0, -0.3), body=body(), point=point(),
                            wrench=rng.uniform(-1, 1, 6)),
    )  # fmt: skip
    menu = free + (hinged if single else ())
    chosen = [menu[int(k)]() for k in rng.integers(0, len(menu), int(rng.integers(2, 5)))]
    named = tuple(NamedElement(f"element{k}", e) for k, e in enumerate(chosen))
    return replace(model, elements=named)


def close(what, found, expected, tolerance):
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=what)


def check(seed, traced=True):
    """Raise where two roads differ."""
    rng = np.random.default_rng([seed, 18])
    c = draw(seed, n=int(rng.integers(2, 5)), loops=int(rng.integers(0, 2)), stated=None)
    model = with_force_elements(c.model, rng)
    q = np.concatenate([c.q, model.neutral()[c.model.nq :]])
    span, bonds = (c.t, c.t + 0.05), bool(model.bonds)
    if bonds:
        sizes = mb.mobility(model, q, t=c.t).singular_values
        if not sizes.size or sizes.min() < CLEAR * sizes.max():
            raise Doubtful
    exact = {"stabilise": "none"} if bonds else {}
    problem = mb.as_ivp(model, q, c.v, span, traced=traced or None, **exact)
    x = np.concatenate([q, c.v])
    close("FD_x", mb.FD_x(model, x, t=c.t), problem.rhs(c.t, x), 1e-8)

    times = np.linspace(*span, 17)  # enough for the work to be known
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11}
    run = solve(problem, t_eval=times, **options)
    assert run.success, run.message
    books = mb.energy_ledger(model, run)
    size = 1.0 + np.abs(books.energy).max() + sum(np.abs(w).max() for w in books.work.values())
    close("books", books.balance / size, 0.0, 1e-6 + 4.0 * books.quadrature_error.max() / size)

    if traced:
        many = solve_many(problem, np.array([x, x]), **options)
        close("lanes", many.y[1], run.y[:, -1], 1e-7)
    if bonds:
        name, method = FORMULATIONS[int(rng.integers(len(FORMULATIONS)))]
        other = mb.as_dae(model, q, c.v, span, formulation=name, traced=traced or None)
        again = solve(other, method=method, rtol=1e-8, atol=1e-10, t_eval=times)
        assert again.success, f"{name}: {again.message}"
        close(name, again.y[: len(x), -1], run.y[:, -1], 1e-5)


if __name__ == "__main__":
    first, last = (int(n) for n in sys.argv[1:3])
    bad, doubtful = 0, 0
    for seed in range(first, last):
        try:
            check(seed, traced=seed % 10 == 0)
        except Doubtful:
            doubtful += 1
        except Exception as error:
            bad += 1
            said = " ".join(str(error).split())[:300]
            sys.stdout.write(f"{seed}: {type(error).__name__}: {said}\n")
            sys.stdout.flush()
    count = f"{last - first} mechanisms, {doubtful} next to singular positions"
    sys.stdout.write(f"{count}, {bad} with differences\n")
