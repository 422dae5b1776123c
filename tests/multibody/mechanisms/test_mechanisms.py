"""The catalogue: every mechanism builds, starts, moves and keeps what it should keep."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

from integrators import solve
from multibody import FD, ID, mechanisms, simulate
from multibody.mechanisms.registry import _ENTRIES, register

ENTRIES = mechanisms.entries()

#: What takes the friction out of mechanisms that have it.
FRICTIONLESS = {"puma560": {"friction": False}, "governor": {"damping": 0.0}}


@pytest.fixture(params=ENTRIES, ids=lambda e: e.name)
def entry(request):
    return request.param


def test_entries_are_documented_and_exported(entry):
    assert getattr(mechanisms, entry.name) is entry.build
    assert entry.name in mechanisms.__all__
    assert entry.source
    assert len(entry.description) > 20
    text = inspect.getdoc(entry.build)
    for parameter in inspect.signature(entry.build).parameters:
        assert parameter in text, f"{entry.name} does not explain {parameter}"
    assert ">>>" in text


def test_models_are_reproducible_and_start_where_they_say(entry):
    model = entry.model()
    assert model == entry.model() == pickle.loads(pickle.dumps(model))
    q0, v0 = entry.start(model)
    assert (q0.shape, v0.shape) == ((model.nq,), (model.nv,))
    tau = np.linspace(-1.0, 1.0, model.nv)
    a = FD(model, q0, v0, tau, method="aba")  # of the tree, loops cut open
    np.testing.assert_allclose(ID(model, q0, v0, a), tau, atol=1e-10 * (1 + np.abs(a).max()))


def test_invariants_stay_constant(entry):
    """Energy (and momentum, of what floats) along a run, relative to their size."""
    problem = entry.problem()
    t_end = min(entry.t_end, 1.0)
    solution = solve(problem, t_span=(0.0, t_end), method="DOP853", rtol=1e-10, atol=1e-12)
    assert solution.success, solution.message
    assert len(problem.state_names) == len(problem.y0)
    moved = np.ptp(solution.y[: entry.model().nq], axis=1).max()
    assert moved > 1e-3, "defaults show what a machine is for, and this one stands still"
    if entry.model().contacts:  # impacts and friction keep nothing: tests/multibody/contact
        return
    model = entry.model()
    if model.elements or model.is_rheonomic:  # tests/multibody/elements has the books of energy
        assert "energy" not in problem.invariants
        return
    if entry.name in FRICTIONLESS:
        assert "energy" not in problem.invariants
        problem = entry.problem(**FRICTIONLESS[entry.name])
        solution = solve(problem, t_span=(0.0, t_end), method="DOP853", rtol=1e-10, atol=1e-12)
    assert "energy" in problem.invariants
    for name, g in problem.invariants.items():
        along = [g(t, x) for t, x in zip(solution.t, solution.y.T)]
        # Energies at play are of the order of joules; a tolerance of 1e-10 adds up over the run.
        assert np.ptp(along) < 2e-7 * (1.0 + np.max(np.abs(along))), name


def test_look_up_forgives_spelling_and_suggests():
    assert mechanisms.get("Double-Pendulum") == mechanisms.double_pendulum()
    assert mechanisms.get("puma 560", friction=False) == mechanisms.puma560(friction=False)
    with pytest.raises(ValueError, match="did you mean heavy_top"):
        mechanisms.get("heavy_pot")
    with pytest.raises(TypeError, match=r"no parameter 'lenght'.*length"):
        mechanisms.get("pendulum", lenght=2.0)
    with pytest.raises(TypeError, match="name of a mechanism"):
        mechanisms.get(3)


def test_a_name_is_taken_once():
    def pendulum():
        return mechanisms.pendulum()

    with pytest.raises(ValueError, match="'pendulum' is taken"):
        register()(pendulum)
    assert _ENTRIES["pendulum"].build is mechanisms.pendulum


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("n_pendulum", {"n": 0}, "whole number of links"),
        ("n_pendulum", {"n": 2.0}, "whole number of links"),
        ("n_pendulum", {"links": "ropes"}, "links: expected one of"),
        ("n_pendulum", {"n": 3, "mass": (1.0, 2.0)}, "mass: expected a positive number, or 3"),
        ("double_pendulum", {"length": -1.0}, "length: expected a positive"),
        ("cart_pole", {"links": "rope"}, "links: expected one of"),
        ("satellite", {"arms": -1}, "arms: expected a whole number"),
        ("serial_arm", {"n": 0}, "whole number of joints"),
        ("planar_tree", {"n": 0}, "whole number of rods"),
        ("planar_tree", {"branching": 1.5}, "probability"),
        ("free_body", {"moments": (1.0, 2.0)}, "moments"),
        ("free_body", {"moments": (1.0, 2.0, 4.0)}, "sum of the other two"),
        ("rolling_sphere", {"radius": 0.0}, "radius"),
    ],
)
def test_bad_parameters_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        mechanisms.get(name, **parameters)


def test_pendulums_agree_where_they_are_the_same():
    chain = mechanisms.n_pendulum(2, "points", length=(1.0, 0.5), mass=(2.0, 3.0))
    double = mechanisms.double_pendulum((1.0, 0.5), (2.0, 3.0))
    q, v = [0.4, -1.1], [0.3, 2.0]
    np.testing.assert_allclose(FD(chain, q, v), FD(double, q, v), rtol=1e-12)
    # A cart too heavy to move leaves a pendulum.
    heavy = mechanisms.cart_pole(cart_mass=1e12, pole_mass=1.0)
    found = FD(heavy, [0.0, 0.7], [0.0, 1.0])[1]
    assert found == pytest.approx(FD(mechanisms.pendulum(), [0.7], [1.0])[0], rel=1e-10)


def test_gravity_does_not_turn_a_free_body():
    model = mechanisms.free_body(gravity=9.81)
    a = FD(model, model.neutral(), [0.1, 0.2, 0.3, 0, 0, 0])
    still = FD(mechanisms.free_body(), model.neutral(), [0.1, 0.2, 0.3, 0, 0, 0])
    np.testing.assert_allclose(a, still - np.array([0, 0, 0, 0, 0, 9.81]), atol=1e-14)


def test_sensitive_start_of_a_serial_arm_needs_no_symmetry():
    """Nothing of the arm is zero, or it would not show what forward dynamics costs."""
    model = mechanisms.serial_arm(7)
    for body in model.bodies:
        assert np.all(np.abs(body.inertia.array) > 1e-6)
        assert np.all(np.abs(body.placement.r[[0, 2]]) > 1e-3)
    assert simulate(model, T=0.5).success
