"""One table of formulations, one road through it: names, time, projections, pickles."""

from __future__ import annotations

import operator
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import multibody as mb
from integrators import IVP, Event, Status, solve, solve_many, traced
from integrators.dae import FORMULATIONS, Mechanical
from integrators.dae.formulations.table import formulation_key, listing, register
from multibody import as_dae, as_ivp, mechanisms
from multibody.dynamics.loops.closure import gears
from multibody.runs.minimal import as_ivp_minimal

EXPLICIT = [form.name for form in FORMULATIONS.values() if form.is_explicit]
ROOT = Path(__file__).parents[3]


@cache
def linkage(name="four_bar"):
    entry = mechanisms.entry(name)
    model = entry.model()
    return model, *entry.start(model)


@cache
def formulated(name, mechanism="four_bar"):
    return as_dae(*linkage(mechanism), (0.0, 0.4), formulation=name)


@cache
def a_pendulum():
    return Mechanical(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -9.81]),
        lambda t, q: np.array([(q[0] ** 2 + q[1] ** 2 - 1) / 2]),
        q0=[1.0, 0.0],
        v0=[0.0, 0.0],
        t_span=(0.0, 6.0),
        trace=True,
    )


def run(problem, **options):
    method = "DOP853" if problem.mass is None else "RADAU5"
    return solve(problem, **{"method": method, "rtol": 1e-7, "atol": 1e-9} | options)


def same(first, second):
    """Both runs, bit for bit."""
    assert first.success, first.message
    assert first.nfev == second.nfev
    np.testing.assert_array_equal(first.t, second.t)
    np.testing.assert_array_equal(first.y, second.y)


# -------------------------------------------------------------------- the table


def test_the_page_shows_the_table():
    assert listing("markdown") in (ROOT / "docs" / "dae.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMULATIONS.values(), ids=operator.attrgetter("name"))
def test_entries_say_what_the_problem_is(form):
    problem = formulated(form.name)
    assert problem.formulation == form.name
    assert (problem.mass is None) == form.is_explicit
    assert form.keeps_multipliers == (problem.multipliers(problem.y0) is not None)
    if problem.index is not None and form.name != "overdetermined":
        assert problem.index.max() == form.index
    for name in (form.name, *form.aliases):
        assert formulation_key(name.upper().replace("INDEX", "Index-")) == form.name


def test_wrong_entries_are_refused():
    words = dict(index=0, unknowns="q, v", eliminates="λ", meaning="nothing", methods=("explicit",))
    with pytest.raises(ValueError, match="belongs to 'projected'"):
        register("projection", **words)
    with pytest.raises(ValueError, match="lower case"):
        register("My-Form", **words)
    with pytest.raises(ValueError, match=r"some of explicit, .* got \['any'\]"):
        register("mine", **words | {"methods": ("any",)})
    with pytest.raises(ValueError, match=r"stabilise: expected one of .*as_dae"):
        as_ivp(*linkage(), stabilise="ggl")
    with pytest.raises(ValueError, match="takes no alpha; baumgarte and augmented do"):
        as_ivp(*linkage(), stabilise="minimal", alpha=1.0)


# -------------------------------------------------------------------- as_ivp and as_dae


@pytest.mark.parametrize("name", EXPLICIT)
@pytest.mark.parametrize("mechanism", ["four_bar", "bricard"])
def test_both_names_make_one_problem(name, mechanism):
    """Bricard's linkage has a redundant constraint; quaternions are in another test."""
    ivp = as_ivp(*linkage(mechanism), (0.0, 0.4), stabilise=name)
    same(run(ivp), run(formulated(name, mechanism)))


def test_constant_forces_are_parameters_of_both():
    model, q, v = linkage()
    tau = np.array([0.3, 0.0, 0.0])
    problems = [
        as_ivp(model, q, v, (0.0, 0.3), tau=tau, stabilise="projection"),
        as_dae(model, q, v, (0.0, 0.3), tau=tau, formulation="projected"),
    ]
    same(*map(run, problems))
    same(*[run(p.with_(params=2 * tau)) for p in problems])
    other = as_dae(model, q, v, (0.0, 0.3), tau=2 * tau, formulation="projected")
    same(run(other), run(problems[0].with_(params=2 * tau)))


@pytest.mark.parametrize("name", EXPLICIT)
def test_time_turns_by_itself(name):
    """There and back again; feedback must pull in the direction in which time runs."""
    problem = formulated(name)
    end = run(problem, rtol=1e-10, atol=1e-12)
    back = problem.with_(t_span=(0.4, 0.0), y0=end.y[:, -1])
    again = run(back, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again.y[:, -1], problem.y0, atol=1e-6)
    assert mb.constraints(linkage()[0], again.y[:3, -1]).delta == pytest.approx(0.0, abs=1e-7)
    for there, here in ((problem, back.with_(t_span=(0.0, 0.4))),):
        np.testing.assert_array_equal(there.rhs(0.1, end.y[:, 5]), here.rhs(0.1, end.y[:, 5]))


def test_a_right_hand_side_of_ones_own_is_not_turned():
    problem = formulated("baumgarte").with_(f=lambda t, y: 0 * y).with_(t_span=(0.4, 0.0))
    assert not problem.rhs(0.0, problem.y0).any()


def test_quaternions_are_pulled_back_in_both_directions():
    b = mb.ModelBuilder(name="ball on a rod", gravity=(0, 0, -9.81))
    b.add_body("ball", 0, mb.Free(), inertia=mb.sphere(mass=1.0, radius=0.2))
    b.add_loop("pivot", 0, "ball", mb.Spherical(), placement_successor=(0.5, 0, 0))
    model = b.build()
    q = mb.assemble(model, [1, 0, 0, 0, -0.5, 0, 0]).q
    v = mb.consistent_velocity(model, q, [0.3, 0.5, 2.0, 0, 0, 0])
    off = np.concatenate([q, v])
    off[:4] *= 1 + 1e-4
    for kind in ("baumgarte", "projection"):
        problem = as_ivp(model, q, v, (0, 1), quaternions="stabilise", stabilise=kind)
        for span in ((0, 1), (0, -1)):
            end = run(problem.with_(t_span=span, y0=off))
            assert abs(np.linalg.norm(end.y[:4, -1]) - 1) < 2e-5


# -------------------------------------------------------------------- projections in the loop

OPTIONS = {
    "steps": {},
    "fixed": {"step": 0.01},
    "t_eval": {"t_eval": [0.0, 0.1, 0.100001, 0.33]},
    "dense": {"dense_output": True},
    "stops": {"tstops": [0.15, 0.2], "max_step": 0.05},
    "backwards": {"t_span": (0.0, -0.3)},
    "events": {"events": [Event(lambda t, y: y[0] - 1.2)], "t_eval": [0.1, 0.2]},
    "loose": {"rtol": 1e-2, "atol": 1e-2},
}


@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize("name", ["projected", "minimal", "overdetermined"])
def test_projections_by_the_loop_and_by_python_agree(name, how):
    problem = formulated(name).for_run()
    project = problem.project
    plain = problem.with_(project=lambda t, y: project(t, y))
    if name == "minimal":
        plain = plain.with_(f=lambda t, y: problem.f(t, y), fresh=None)
    first, second = run(formulated(name), **OPTIONS[how]), run(plain, **OPTIONS[how])
    assert first.success, first.message
    assert abs(first.nsteps - second.nsteps) <= 0.02 * second.nsteps
    same_times = first.t.shape == second.t.shape
    ends = (first.y, second.y) if same_times else (first.y[:, -1], second.y[:, -1])
    np.testing.assert_allclose(*ends, rtol=1e-6, atol=1e-6)
    if how == "dense":
        at = np.linspace(0.0, 0.4, 7)
        np.testing.assert_allclose(first.sol(at), second.sol(at), rtol=1e-6, atol=1e-6)


def test_a_traced_projection_of_ones_own_runs_in_the_loop():
    def turn(t, y):
        return np.array([y[1], -y[0]])

    def onto(t, y):
        return y / np.sqrt(np.sum(y * y))

    problem = IVP(traced(turn, n=2), [0.0, 1.0], (0.0, 50.0))
    ours = solve(problem, method="RK4", step=0.5, project=traced(onto, n=2))
    theirs = solve(problem, method="RK4", step=0.5, project=onto)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(ours.y, axis=0), 1.0, atol=1e-15)
    assert np.linalg.norm(solve(problem, method="RK4", step=0.5).y[:, -1]) < 0.999


def test_steps_before_a_projection_that_fails_are_kept():
    calls = []
    code = traced(lambda t, y: np.concatenate([y, [np.where(t > 1.0, 1.0, 0.0)]]), n=2, outputs=3)

    class Doubtful:
        n = 2

        def machine_codes(self):
            return code.machine_code(), None

        def __call__(self, t, y):
            calls.append(t)
            raise ArithmeticError("not on the surface")

    problem = IVP(traced(lambda t, y: [y[1], -y[0]], n=2), [0.0, 1.0], (0.0, 3.0))
    for more in ({}, {"t_eval": np.linspace(0.0, 3.0, 31)}, {"dense_output": True}):
        calls.clear()
        found = solve(problem, method="RK4", step=0.25, project=Doubtful(), **more)
        assert found.status == Status.FUNCTION_RAISED
        assert "not on the surface" in found.message
        assert calls == [1.25]
        assert found.t[-1] == pytest.approx(1.0)
        np.testing.assert_allclose(found.y[0], np.sin(found.t), atol=1e-3)


def test_runs_in_minimal_coordinates_do_not_meet():
    """Each has its own choice of coordinates; runs of different length in threads."""
    problem = a_pendulum().formulation("minimal")
    spans = [(0.0, 2.0), (0.0, 6.0), (0.0, 3.0), (0.0, -5.0)]
    alone = [run(problem.with_(t_span=span)) for span in spans]
    assert len(alone[1].problem.f.work.changes) > 5
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda span: run(problem.with_(t_span=span)), spans))
    for one, other in zip(alone, together):
        same(one, other)


@pytest.mark.parametrize("method", ["RADAU5", "RadauVariable", "Kvaerno5"])
def test_implicit_methods_follow_a_change_of_coordinates(method):
    """The pendulum of a metre, against its period by the arithmetic-geometric mean."""
    a, b = 1.0, np.sqrt(0.5)  # from the horizontal: cos(90°/2)
    while a - b > 1e-15:
        a, b = (a + b) / 2, np.sqrt(a * b)
    period = 2 * np.pi / np.sqrt(9.81) / a
    problem = a_pendulum().formulation("minimal").with_(t_span=(0.0, period))
    found = run(problem, method=method, rtol=1e-9, atol=1e-9)
    assert found.success, found.message
    assert len(found.problem.f.work.changes) >= 3
    np.testing.assert_allclose(found.y[:, -1], problem.y0, atol=1e-5)


def test_many_runs():
    for name in ("baumgarte", "projected", "minimal"):
        problem = formulated(name)
        starts = np.array([problem.y0, problem.y0])
        found = solve_many(problem, y0=starts, method="DOP853", rtol=1e-7, atol=1e-9)
        one = run(problem)
        np.testing.assert_allclose(found.y[0], one.y[:, -1], rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(found.y[0], found.y[1])


# -------------------------------------------------------------------- pickles


def torque(t, q, v):
    """Found by its name, as a process that unpickles it must."""
    return np.array([0.2 * np.sin(t), 0.0, 0.0])


def again(problem):
    return pickle.loads(pickle.dumps(problem))


@pytest.mark.parametrize("name", FORMULATIONS)
def test_formulations_pickle_as_model_and_recipe(name):
    problem = formulated(name)
    assert len(pickle.dumps(problem)) < 20_000
    same(run(problem), run(again(problem)))


def test_changes_are_part_of_the_recipe():
    model, q, v = linkage()
    problem = as_ivp(model, q, v, (0.0, 0.4), tau=[0.1, 0.0, 0.0])
    q[:] = q  # the recipe has arrays of its own
    changed = problem.with_(t_span=(0.0, -0.2), params=[0.4, 0.0, 0.0]).with_(name="back")
    found = again(changed)
    assert (found.name, found.t_span) == ("back", (0.0, -0.2))
    np.testing.assert_array_equal(found.params, changed.params)
    same(run(changed), run(found))
    same(run(changed), run(again(found)))


def test_arguments_that_change_later_do_not_matter():
    model, q, v = linkage()
    mine = np.array(q)
    problem = as_ivp(model, mine, v, (0.0, 0.1))
    mine += 1.0
    same(run(problem), run(again(problem)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: as_ivp(mechanisms.pendulum(), [1.0], [0.0], (0, 1)),
        lambda: as_ivp(*linkage(), (0, 0.2), tau=torque, stabilise="projection"),
        lambda: as_ivp(*linkage("bricard"), (0, 0.2), rank="truncate"),
        lambda: as_ivp_minimal(
            (arm := mechanisms.n_pendulum(3)), gears(arm, {"link3": {"link1": -2.0}}), [0.3, 0.1]
        ).with_(t_span=(0, 0.3)),
        lambda: mb.as_mechanical(*linkage(), (0, 0.2)).consistent().formulation("ggl"),
    ],
    ids=["tree", "torque", "truncate", "gears", "system"],
)
def test_other_problems_pickle(make):
    problem = make()
    first, second = run(problem), run(again(problem))
    same(first, second)
    for kept in (again(first), first):  # a solution keeps the name of its problem
        np.testing.assert_array_equal(kept.y, first.y)


def test_families_pickle():
    """Only the factory and what varies travels; the models are built where they are needed."""
    family = mb.ModelFamily(mechanisms.pendulum, {"length": 1.0})
    problem = family.problem([1.0], [0.0], (0.0, 0.5))
    p = family.parameters(np.array([[1.3]])).p[0]
    same(run(problem.with_(params=p)), run(again(problem.with_(params=p))))


def test_solutions_pickle_and_are_saved(tmp_path):
    for name in ("projected", "ggl", "minimal"):
        found = run(formulated(name), dense_output=True)
        kept = type(found).load(found.save(tmp_path / name))
        for other in (again(found), kept):
            np.testing.assert_array_equal(other.y, found.y)
            np.testing.assert_array_equal(other.sol(0.2), found.sol(0.2))


def test_functions_without_a_name_are_named_in_the_error():
    problem = as_ivp(*linkage(), (0, 0.2), tau=lambda t, q, v: np.zeros(3))
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(problem)


def test_a_run_is_reviewed_once(monkeypatch):
    """Each review looks at every state; joined twice, it took longer than the run."""
    from integrators.dae.formulations import augmented
    from integrators.dae.formulations.augmented import unconverged

    looks = []
    monkeypatch.setattr(
        augmented, "unconverged", lambda *given: looks.append(1) or unconverged(*given)
    )
    model, q0, v0 = linkage()
    for motion in (None, {"crank": lambda t: q0[0] + v0[0] * t}):
        looks.clear()
        options = dict(formulation="augmented", prescribed=motion)
        problem = as_dae(model, q0, v0, (0, 0.2), **options)
        assert solve(problem, method="DOPRI5", rtol=1e-6).success
        assert len(looks) == 1


def test_minimal_coordinates_say_why_they_cannot_be_traced():
    problem = formulated("minimal")
    with pytest.raises(TypeError, match=r"chosen along the run.*Remedy: take 'projected'"):
        solve(problem, method="Taylor")
    with pytest.raises(TypeError, match="chosen along the run"):
        solve(problem, sensitivities=["y0[0]"])
