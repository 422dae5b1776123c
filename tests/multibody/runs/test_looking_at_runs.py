"""Runs of every kind of problem are looked at alike: positions, energies, records, plots, books."""

from __future__ import annotations

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest

import multibody as mb
from integrators import Solution, solve
from integrators.dae import FORMULATIONS

FOUR_BAR = mb.mechanisms.entry("four_bar")
SPAN = (0.0, 0.2)


def four_bar():
    model = FOUR_BAR.model()
    return model, FOUR_BAR.start(model)


def by_formulation(name):
    model, start = four_bar()
    method = "DOP853" if FORMULATIONS[name].is_explicit else "RADAU5"
    problem = mb.as_dae(model, *start, SPAN, formulation=name)
    return model, solve(problem, method=method, rtol=1e-7, atol=1e-9)


def minimal():
    model = mb.mechanisms.n_four_bar(2)
    problem = mb.as_ivp_minimal(
        model, lambda y: [y[0], y[0], y[0], -y[0], -y[0]], [1.5], [-1.0], SPAN
    )
    return model, solve(problem, rtol=1e-7)


def on_the_group():
    entry = mb.mechanisms.entry("heavy_top")
    model = entry.model()
    return model, solve(mb.as_ivp(model, *entry.start(model), SPAN), method="RKMK4", step=0.01)


def mechanical(name, method, **options):
    model, start = four_bar()
    system = mb.as_mechanical(model, *start, SPAN)
    return model, solve(system.formulation(name), method=method, **options)


def with_element():
    b = mb.ModelBuilder(name="servo")
    b.add_body("arm", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (0, 0, -1), mass=2.0))
    b.add_element("pid", mb.PID("arm", 0.8, 40.0, 20.0, 10.0))
    model = b.build()
    return model, mb.simulate(model, T=0.2)


def bouncing():
    entry = mb.mechanisms.entry("bouncing_ball")
    model = entry.model()
    return model, solve(mb.as_ivp(model, *entry.start(model), (0, 1)), rtol=1e-8)


def soft():
    b = mb.ModelBuilder(name="soft")
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.1))
    law = mb.SpringDamper(1e4, 20.0)
    b.add_contact("floor", 0, mb.HalfSpace(), "ball", mb.Ball(0.1), law=law)
    model = b.build()
    q = model.neutral()
    q[6] = 0.12
    return model, solve(mb.as_ivp(model, q, None, SPAN), method="RADAU5", rtol=1e-6)


def geared():
    b = mb.ModelBuilder(name="geared")
    lump = mb.rod((0, 0, 0), (0, 0, -1), mass=2.0)
    b.add_body("one", 0, mb.Revolute("y"), inertia=lump)
    b.add_body("two", 0, mb.Revolute("y"), (1, 0, 0), inertia=lump)
    model = b.build()
    closure = mb.gears(model, {"two": {"one": -2.0}})
    return model, solve(mb.as_ivp_minimal(model, closure, [0.3], [0.0], SPAN), rtol=1e-7)


def sticking():
    b = mb.ModelBuilder(name="sticking")
    b.add_body("arm", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (0, 0, -1), mass=2.0))
    b.add_element("dry", mb.Friction("arm", 1.0, 2.0))
    model = b.build()
    return model, solve(mb.stick_slip(model, [0.3], None, SPAN), rtol=1e-7)


RUNS = {
    "gears": geared,
    "stick_slip": sticking,
    **{name: lambda name=name: by_formulation(name) for name in FORMULATIONS},
    "as_ivp_minimal": minimal,
    "RKMK4": on_the_group,
    "Mechanical ggl": lambda: mechanical("ggl", "RADAU5", rtol=1e-7),
    "generalized-α": lambda: mechanical("index3", "GeneralizedAlpha(0.8)", step=0.01),
    "element": with_element,
    "rigid contact": bouncing,
    "soft contact": soft,
}


@pytest.mark.parametrize("name", RUNS)
def test_looked_at_alike(name, tmp_path):
    model, run = RUNS[name]()
    assert run.success, run.message
    body = model.bodies[-1].name
    path = mb.positions(model, run, body)
    assert path.shape == (3, len(run.t))
    energies = mb.energies(model, run)
    assert energies.total.shape == run.t.shape
    assert len(run.problem.state_names) == len(run.y)
    want = {"p": mb.point(body), "u": mb.velocity(body), "E": {"energy": "total"}}
    want |= {"pin": mb.reaction(body, "force"), "all": mb.reaction(body, "wrench")}
    found = mb.record(model, run, want)
    assert np.allclose(found["p"], path)
    assert np.allclose(found["E"], energies.total)
    assert np.allclose(np.sqrt(np.nansum(found["all"][3:] ** 2, axis=0)), found["pin"])
    slope = np.gradient(path, run.t, axis=1) if len(run.t) > 20 and not model.contacts else None
    if slope is not None:
        assert np.abs(slope - found["u"])[:, 2:-2].max() < 0.05 * (1 + np.abs(found["u"]).max())
    assert mb.energy_ledger(model, run).balance.shape[0] > 1
    for draw in (mb.plot.coordinates, mb.plot.energy, mb.plot.energy_drift):
        assert draw(model, run) is not None
    plt.close("all")
    mb.animate.save(model, run, tmp_path / "run.html")
    assert (tmp_path / "run.html").stat().st_size > 1000
    kept = Solution.load(run.save(tmp_path / "run.npz"))
    assert kept.names() == run.names() == list(run.problem.state_names)
    if run.names()[: model.nq] == list(model.q_names):
        assert np.array_equal(mb.positions(model, kept, body), path)
    else:  # other variables, which only the problem can translate
        with pytest.raises(ValueError, match=r"Solution\.load\(path, problem="):
            mb.positions(model, kept, body)
    with pytest.raises(ValueError, match=r"Solution\.load\(path, problem="):
        _ = kept.observed
    with pytest.raises(ValueError, match=r"Solution\.load\(path, problem="):
        mb.record(model, kept, want)
    whole = Solution.load(tmp_path / "run.npz", problem=run.problem)
    assert np.array_equal(mb.positions(model, whole, body), path)
    again = mb.record(model, whole, want)
    assert all(np.array_equal(again[key], found[key], equal_nan=True) for key in want)
    mb.animate.save(model, whole, tmp_path / "whole.html")
    assert (tmp_path / "whole.html").read_bytes() == (tmp_path / "run.html").read_bytes()
    if not model.rigid_contacts:  # whose states before impacts are in no file
        books = [mb.energy_ledger(model, x).balance for x in (run, whole)]
        assert np.array_equal(*books)


def test_problems_of_files_that_do_not_fit_are_refused(tmp_path):
    model = mb.mechanisms.bouncing_ball()
    run = solve(mb.as_ivp(model, [0.1], None, SPAN))  # it lies on the floor
    fresh = mb.as_ivp(model, [1.0], None, SPAN)
    kept = Solution.load(run.save(tmp_path / "run.npz"), problem=fresh)
    with pytest.raises(ValueError, match="files do not keep which points were held"):
        _ = kept.observed
    for look in (mb.impacts, mb.energy_ledger):
        with pytest.raises(ValueError, match="from a file"):
            look(model, kept)
    for wrong, error, match in (
        (with_element()[1].problem, ValueError, "its name is 'bouncing ball'"),
        (model, TypeError, "expected the IVP or Hybrid"),
    ):
        with pytest.raises(error, match=match):
            Solution.load(tmp_path / "run.npz", problem=wrong)
    model, run = sticking()
    lost = pickle.loads(pickle.dumps(run))
    with pytest.raises(ValueError, match="forces are not known"):
        mb.energy_ledger(model, lost)
    tau = lost.with_problem(run.problem).observed.tau
    assert np.array_equal(tau, run.observed.tau)


@pytest.mark.parametrize("law", [None, mb.SpringDamper(1e4, 1e3)])
def test_reactions_with_contacts(law):
    """A rod on a hinge, propped at its far end: each carries half the weight."""
    b = mb.ModelBuilder(name="beam")
    b.add_body("rod", 0, mb.Revolute("y"), inertia=mb.rod((0, 0, 0), (2, 0, 0), mass=3.0))
    b.add_contact("prop", 0, mb.HalfSpace(), "rod", mb.Vertex((2, 0, 0)), law=law)
    run = solve(mb.as_ivp(b.build(), [0.0], None, (0.0, 4.0)), method="RADAU5", rtol=1e-8)
    seen = run.observed
    assert np.allclose(seen.reactions["rod"][5, -1], 3.0 * 9.81 / 2, rtol=1e-6)
    assert np.allclose(seen.force[-1, 0], [0.0, 0.0, 3.0 * 9.81 / 2], rtol=1e-6)


def test_records_of_simulate_and_mistakes():
    model, run = with_element()
    want = {"u": mb.output("pid"), "error": mb.output("pid", "error"), "arm": "arm"}
    run = mb.simulate(model, T=1.0, record=want)
    found = run.recorded
    assert np.allclose(found["error"], 0.8 - found["arm"])
    integral = run.y[list(run.problem.state_names).index("pid.integral")]
    assert np.allclose(found["u"], 40 * found["error"] + 20 * integral - 10 * run.y[-1])
    assert found.units["arm"] == "rad"
    for wrong, match in (
        ({"x": mb.output("pid", "v")}, "no output 'v'"),
        ({"x": mb.output("pud")}, "no element 'pud'"),
        ({"x": mb.reaction("hand")}, "no body or loop 'hand'"),
        ({"x": "hand"}, "no state 'hand'"),
        ({"x": {"points": "arm"}}, "expected one of"),
    ):
        with pytest.raises(ValueError, match=match):
            mb.record(model, run, wrong)
    with pytest.raises(TypeError, match="by name"):
        mb.record(model, run, ["arm"])


def test_rounding_in_a_component_of_momentum_is_not_told():
    """A tree that falls: p_x and p_y are rounding beside p_z, which grows."""
    b = mb.ModelBuilder(name="falling")
    body = mb.box(mass=3.0, size=(0.3, 0.2, 0.1))
    b.add_body("trunk", 0, mb.Free(), inertia=body)
    c, s = np.cos(0.3), np.sin(0.3)
    turned = mb.Plucker(np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]), np.array([0.1, 0.05, 0.02]))
    b.add_body("leg", "trunk", mb.Revolute("y"), turned, body)
    b.add_body("foot", "leg", mb.Revolute("x"), turned, body)
    run = mb.simulate(b.build(), T=0.5)
    assert run.quality.ok, run.message
