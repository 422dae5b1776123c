"""Methods for y = (q, v): splittings, Nyström pairs, Lobatto IIIA–IIIB."""

import pickle
import re
from importlib.resources import files

import numpy as np
import pytest

from integrators import (
    IVP,
    Event,
    Nystrom,
    Partitioned,
    Splitting,
    Status,
    analysis,
    catalogue,
    problems,
    solve,
    solve_many,
    stepper,
    traced,
)
from integrators.tableau.partitioned import is_nystrom_tree
from integrators.tableau.trees import rooted_trees
from multibody import ModelBuilder, Prismatic, Revolute, as_ivp, mechanisms, rod, sphere

KINDS = ("splitting", "Nyström", "partitioned")
SCHEMES = [e for e in catalogue.entries("all") if e.kind in KINDS]
NAMES = [e.name for e in SCHEMES]
SPLITTINGS = [e.name for e in SCHEMES if e.kind == "splitting"]
PAIRS = [e.name for e in SCHEMES if e.kind == "Nyström"]
each = pytest.mark.parametrize("name", NAMES)


# -------------------------------------------------------------------- coefficients


@pytest.mark.parametrize("entry", SCHEMES, ids=NAMES)
def test_declared_is_derived(entry):
    method = entry.method
    assert (method.name, method.reference) == (entry.name, entry.reference)
    assert (method.order, method.stages) == (entry.order, entry.stages)
    assert getattr(method, "embedded_order", None) == entry.embedded_order
    if isinstance(method, Splitting):
        assert method.nystrom_order == entry.declared.get("nystrom_order", entry.order)
    assert bool(analysis.symplecticity(method)) == (entry.stability == "symplectic")
    keys = re.findall(r"^@\w+\{(\w+),", (files("integrators") / "references.bib").read_text(), re.M)
    assert entry.reference in keys
    assert pickle.loads(pickle.dumps(method)) == method


@pytest.mark.parametrize("name", ["Suzuki4", "KahanLi6", "KahanLi8", "BlanesMoanNystrom6"])
def test_conditions_hold_to_the_digits_given(name):
    method = catalogue.entry(name).method
    for p in range(1, method.nystrom_order + 1):
        for tree, root, off in method.conditions(p):
            if p <= method.order or is_nystrom_tree(tree, root):
                assert abs(off) < (1e-25 if name[0] in "SK" else 1e-14)


def test_numbers_of_nystrom_trees():
    """Hairer, Nørsett and Wanner, II.14: 1, 1, 1, 2, 3, 6, 10, 20, 36 special Nyström trees."""
    found = [sum(is_nystrom_tree(t, 0) for t in rooted_trees(n)) for n in range(1, 8)]
    of_all_colours = [sum(is_nystrom_tree(t, 1) for t in rooted_trees(n)) for n in range(2, 9)]
    assert found == of_all_colours == [1, 1, 2, 3, 6, 10, 20]


def test_lobatto_of_two_stages_is_verlet():
    problem = problems.get("order_mechanical")
    one, other = (solve(problem, method=m, step=0.1).y[:, -1] for m in ("LobattoIIIAB2", "Verlet"))
    assert np.max(np.abs(one - other)) < 1e-14


def test_a_composition_is_its_steps():
    """Yoshida's step of 0.1 is three of Störmer and Verlet's; so is one by hand."""
    f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    gamma = 1 / (2 - 2 ** (1 / 3))
    y, t = np.array([1.0, 0.3]), 0.0
    for part in (gamma, 1 - 2 * gamma, gamma):
        run = solve(f, (t, t + 0.1 * part), y, method="StormerVerlet", step=abs(0.1 * part))
        t, y = t + 0.1 * part, run.y[:, -1]
    whole = solve(f, (0, 0.1), [1.0, 0.3], method="Yoshida4", step=0.1).y[:, -1]
    assert np.max(np.abs(whole - y)) < 1e-15


# -------------------------------------------------------------------- orders, measured


@each
def test_order(name):
    """On nonlinear, non-autonomous, coupled problems; both kinds where the method takes them."""
    method = catalogue.entry(name).method
    for problem_name in ("order_mechanical", "order_separable"):
        if problem_name == "order_separable" and isinstance(method, Nystrom):
            continue
        order = method.order
        if isinstance(method, Splitting) and problem_name == "order_mechanical":
            order = method.nystrom_order
        problem = problems.get(problem_name)
        counts = {10: (6, 8), 8: (6, 9)}.get(order, (10, 15) if order == 6 else (40, 60))
        if name == "BlanesMoanNystrom6":
            counts = (7, 10)
        errors = []
        for count in counts:
            run = solve(problem, method=name, step=2.0 / count)
            errors.append(np.max(np.abs(run.y[:, -1] - problem.exact(2.0))))
        if errors[0] < 1e-13:  # round-off, after six steps
            assert order == 10
            continue
        slope = np.log(errors[0] / errors[1]) / np.log(counts[1] / counts[0])
        assert slope > order - 0.35, (problem_name, errors)


# -------------------------------------------------------------------- what they are for


def test_modified_hamiltonian_of_symplectic_euler():
    """(q² + v²)/2 − h q v/2 is kept exactly, for steps of any number (kick, then drift)."""
    h = 0.1
    run = solve(lambda t, y: [y[1], -y[0]], (0, 1000), [1.0, 0.0], method="SymplecticEuler", step=h)
    q, v = run.y
    kept = (q * q + v * v) / 2 - h * q * v / 2
    assert np.ptp(kept) < 1e-12
    energy = (q * q + v * v) / 2
    assert 0.01 < np.ptp(energy) < 0.06  # in bounds of O(h), for ever


@pytest.mark.parametrize(("name", "step", "bound"), [
    ("StormerVerlet", 0.02, 3e-3), ("Yoshida4", 0.05, 2e-3), ("BlanesMoanNystrom6", 0.2, 2e-5),
    ("KahanLi8", 0.2, 2e-5), ("LobattoIIIAB3", 0.05, 1e-4),
])  # fmt: skip
def test_energy_stays_in_bounds(name, step, bound):
    """Kepler's ellipse of eccentricity 0.3 over 100 revolutions: no drift, where RK4 drifts."""
    f = traced(lambda t, y: np.array([y[2], y[3], *(-y[:2] / (y[0] ** 2 + y[1] ** 2) ** 1.5)]), n=4)
    start = [0.7, 0.0, 0.0, np.sqrt(1.3 / 0.7)]

    def errors(method, step):
        q1, q2, v1, v2 = solve(f, (0, 200 * np.pi), start, method=method, step=step).y
        energy = (v1**2 + v2**2) / 2 - 1 / np.hypot(q1, q2)
        return np.abs(energy + 0.5)

    found = errors(name, step)
    part = len(found) // 10
    assert found.max() < bound
    assert found[-part:].max() < 1.5 * found[:part].max()  # the last tenth is as good as the first
    if name == "Yoshida4":
        drifting = errors("RK4", step)
        assert drifting[-part:].max() > 5 * drifting[:part].max()


def test_symmetric_methods_undo_their_steps():
    f = traced(lambda t, y: np.array([y[2], y[3], -(y[0] ** 3) + y[1], -y[1] + y[0]]), n=4)
    for name in NAMES:
        method = catalogue.entry(name).method
        there = solve(f, (0, 1), [1.0, 0.2, 0.1, -0.3], method=name, step=0.25).y[:, -1]
        back = solve(f, (1, 0), there, method=name, step=0.25).y[:, -1]
        off = np.max(np.abs(back - [1.0, 0.2, 0.1, -0.3]))
        assert (off < 1e-13) == bool(analysis.symmetry(method)), name


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_keep_tolerances(name):
    problem = problems.get("pleiades")
    best = np.asarray(list(problem.references.values())[-1], dtype=float)
    run = solve(problem, method=name, rtol=1e-9, atol=1e-9)
    other = solve(problem, method="DOP853", rtol=1e-9, atol=1e-9)
    assert run.success
    assert run.nfev < other.nfev
    assert 10 * np.max(np.abs(run.y[:, -1] - best)) < np.max(np.abs(other.y[:, -1] - best))


@each
def test_between_the_steps(name):
    problem = problems.get("order_mechanical")
    method = catalogue.entry(name).method
    options = {"rtol": 1e-8, "atol": 1e-8} if name in PAIRS else {"step": 0.05}
    run = solve(problem, method=name, dense_output=True, **options)
    times = np.linspace(0, 2, 301)
    at_steps = np.max(np.abs(run.y - np.array([problem.exact(t) for t in run.t]).T))
    between = np.max(np.abs(run.sol(times) - np.array([problem.exact(t) for t in times]).T))
    assert between < 10 * at_steps + 1e-12, method.order


# -------------------------------------------------------------------- combinations


def test_combinations():
    rng = np.random.default_rng(3)
    for _ in range(30):
        name = str(rng.choice(NAMES))
        is_traced, backward, event, heavy, is_complex = rng.integers(0, 2, 5).astype(bool)
        stiffness = float(rng.uniform(0.5, 3.0))
        is_traced = is_traced and not is_complex

        def f(t, y, p):
            return np.array([y[2], y[3], np.cos(t) - p[0] * y[0] ** 3, -y[1] + 0.3 * y[0] * y[1]])

        y0 = np.array([0.4, 1.0, 0.0, 0.5]) + (0.1j if is_complex else 0.0)
        # M is the same for q and v, so that q' = v stays; forces are divided by it.
        M = np.diag([1.0, 1.0, 2.0, 4.0]) if heavy else None
        span = (1.5, 0.0) if backward else (0.0, 1.5)
        g = Event(lambda t, y: (y[1] - 0.9).real, reset=lambda t, y: y + np.array([0, 0.3, 0, 0]),
                  direction=-1)  # fmt: skip
        times = np.linspace(*span, 5)
        common = {"t_eval": times, "events": g if event and not is_complex else None}
        order = catalogue.entry(name).method.order
        step = {1: 2e-4, 2: 2e-3, 3: 5e-3}.get(order, 0.02)
        control = {"rtol": 1e-8, "atol": 1e-8} if name in PAIRS else {"step": step}
        ours = solve(
            IVP(traced(f, n=4, params=1) if is_traced else f, y0, span, [stiffness], mass=M),
            method=name, **control, **common,
        )  # fmt: skip
        best = solve(IVP(f, y0, span, [stiffness], mass=M), method="DOP853", rtol=1e-11,
                     atol=1e-11, **common)  # fmt: skip
        where = (name, is_traced, backward, event, heavy, is_complex)
        assert ours.success, where
        assert np.max(np.abs(ours.y - best.y)) < (2e-3 if order == 1 else 3e-5), where


def test_stepper_and_many():
    f = traced(lambda t, y, p: np.array([y[1], -p[0] * np.sin(y[0])]), n=2)
    problem = IVP(f, [1.0, 0.0], (0.0, 2.0), [1.0])
    many = solve_many(problem, params=[[1.0], [4.0]], method="KahanLi6", step=0.05)
    for rate, end in zip((1.0, 4.0), many.y):
        one = solve(problem.with_(params=[rate]), method="KahanLi6", step=0.05)
        assert np.array_equal(end, one.y[:, -1])
    run = stepper(problem, method="StormerVerlet", step=0.01)
    for _ in range(10):
        run.step()
    assert abs(run.t - 0.1) < 1e-12


def test_evaluations_are_not_wasted():
    """Verlet takes one evaluation of q'' = g a step, KDK or DKD; others as many as stages."""
    f = traced(lambda t, y: np.array([y[1], -np.sin(y[0])]), n=2)
    for name, each_step in (
        ("StormerVerlet", 1),
        ("PositionVerlet", 1),
        ("Yoshida4", 3),
        ("DPRKN6", 5),
    ):
        run = solve(f, (0, 10), [1.0, 0.0], method=name, step=0.1)
        assert run.nfev <= 100 * each_step + 2, name


# -------------------------------------------------------------------- mechanisms


def test_mechanisms_with_constant_inertia():
    """Two carts with springs have a constant H: Verlet takes them; a pendulum as well."""
    b = ModelBuilder(gravity=(0, 0, 0))
    b.add_body("one", 0, Prismatic("x"), inertia=sphere(mass=2.0, radius=0.1), stiffness=[30.0])
    b.add_body("two", "one", Prismatic("x"), inertia=sphere(mass=1.0, radius=0.1), stiffness=[50.0])
    carts = as_ivp(b.build(), q0=[0.1, -0.2], v0=[0.0, 0.3], t_span=(0.0, 5.0))
    ours = solve(carts, method="KahanLi8", step=0.025)
    best = solve(carts, method="DOP853", rtol=1e-11, atol=1e-11)
    assert np.max(np.abs(ours.y[:, -1] - best.y[:, -1])) < 1e-8
    p = ModelBuilder()
    p.add_body("rod", 0, Revolute("y"), inertia=rod((0, 0, 0), (0, 0, -1.0), mass=1.0))
    single = as_ivp(p.build(), q0=[1.0], v0=[0.0], t_span=(0.0, 5.0))
    assert np.max(np.abs(
        solve(single, method="DPRKN8", rtol=1e-10, atol=1e-10).y[:, -1]
        - solve(single, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    )) < 1e-7  # fmt: skip


def test_mechanisms_with_changing_inertia_are_refused():
    double = as_ivp(mechanisms.get("double_pendulum"), t_span=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"v'\[\d\] depends on v\[\d\].*LobattoIIIAB3"):
        solve(double, method="StormerVerlet", step=0.01)
    assert solve(double, method="LobattoIIIAB3", step=0.01).success


# -------------------------------------------------------------------- refusals


def test_refusals():
    def damped(t, y):
        return np.array([y[1], -y[0] - 0.1 * y[1]])

    for f in (damped, traced(damped, n=2)):
        for name in ("Yoshida4", "DPRKN6"):
            with pytest.raises(ValueError, match=r"v'\[0\] (depends on|changes with) v"):
                solve(f, (0, 1), [1.0, 0.5], method=name, step=0.1)
    with pytest.raises(ValueError, match="cannot be halved"):
        solve(lambda t, y: -y, (0, 1), [1.0, 0.0, 1.0], method="Verlet", step=0.1)
    with pytest.raises(ValueError, match="takes fixed steps"):
        solve(lambda t, y: [y[1], -y[0]], (0, 1), [1.0, 0.0], method="Verlet")
    with pytest.raises(ValueError, match="q' is not v"):
        solve(lambda t, y: [2 * y[1], -y[0]], (0, 1), [1.0, 0.5], method="DPRKN8")
    with pytest.raises(ValueError, match="singular"):
        solve(lambda t, y: [y[1], -y[0]], (0, 1), [1.0, 0.0], method="Verlet", step=0.1,
              mass=np.diag([1.0, 0.0]))  # fmt: skip
    pendulum = traced(lambda t, y, p: np.array([y[1], -p[0] * y[0]]), n=2, params=1)
    with pytest.raises(ValueError, match="equations of sensitivities"):
        solve(IVP(pendulum, [1.0, 0.0], (0, 1), [1.0]), method="DPRKN6", sensitivities=["p[0]"])
    with pytest.raises(TypeError, match="no Butcher tableau"):
        analysis.stability_function("Verlet")
    with pytest.raises(ValueError, match="both b_hat and b_rate_hat"):
        Nystrom([[]], ["1/2"], [1], [0], b_hat=[1])
    with pytest.raises(ValueError, match="kicks is empty"):
        Splitting([], [])
    stiff = solve(lambda t, y: [y[1], -1e8 * y[0]], (0, 1), [1.0, 0.0], method="LobattoIIIAB3",
                  step=0.1)  # fmt: skip
    assert stiff.status == Status.NEWTON_FAILED
    assert (
        Partitioned([[0, 0], ["1/2", "1/2"]], [["1/2", 0], ["1/2", 0]], ["1/2", "1/2"]).order == 2
    )
