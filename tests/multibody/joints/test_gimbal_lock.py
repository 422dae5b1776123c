"""Where freedoms become dependent, forward dynamics says so; close to it, its digits are right."""

from __future__ import annotations

import numpy as np
import pytest

from integrators import solve, traced
from multibody import (
    FD,
    AngleSequence,
    Fixed,
    Inertia,
    ModelBuilder,
    Revolute,
    SingularModelError,
    Spherical,
    as_ivp,
    bias_forces,
    crba,
    mechanisms,
    point_mass,
)
from multibody.algebra.orientation.quaternions import from_matrix
from multibody.dynamics.trees.factor import ltdl, ltl
from multibody.dynamics.with_elements import forward_dynamics

BODY = Inertia(1.3, (0.1, 0.2, -0.5), I_com=np.diag([0.1, 0.2, 0.15]))
RATES = np.array([0.4, -0.5, 0.6])

#: Distances in radians at which a pivot has lost all, or all but one or two, of its digits.
LOCKED = (0.0, 1e-12, 1e-9, 1e-8, 1e-7)


def by_angles(sequence="zyx", **options):
    b = ModelBuilder(name="top")
    b.add_body("top", 0, AngleSequence(sequence), None, BODY, **options)
    return b.build()


def by_rings(weld=False):
    """The same motion by three hinges, with rings that weigh nothing."""
    b = ModelBuilder(name="rings")
    b.add_body("outer", 0, Revolute("z"))
    if weld:
        b.add_body("frame", "outer", Fixed())
    b.add_body("inner", "frame" if weld else "outer", Revolute("y"))
    b.add_body("rotor", "inner", Revolute("x"), None, BODY)
    return b.build()


def near_lock(sequence, distance):
    middle = np.pi / 2 if len(set(sequence)) == 3 else 0.0
    return np.array([0.3, middle - distance, 0.2])


@pytest.mark.parametrize("distance", LOCKED)
@pytest.mark.parametrize("sequence", ["zyx", "xyz", "zxz", "yzy"])
def test_gimbal_lock_names_the_body(sequence, distance):
    model = by_angles(sequence)
    with pytest.raises(SingularModelError, match=rf"'top'.*AngleSequence\(sequence='{sequence}'\)"):
        FD(model, near_lock(sequence, distance), RATES)


@pytest.mark.parametrize("weld", [False, True])
@pytest.mark.parametrize("distance", LOCKED)
def test_rings_without_mass_lock_as_well(distance, weld):
    with pytest.raises(SingularModelError, match="'outer'"):
        FD(by_rings(weld), near_lock("zyx", distance), RATES)


@pytest.mark.parametrize("distance", [0.5, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("make", [by_angles, by_rings])
def test_close_to_the_lock_accelerations_are_those_of_a_ball_joint(make, distance):
    """ω̇ = S q̈ + c; D = SᵀIS has a pivot of distance², so of 16 digits ε/distance² is lost."""
    q = near_lock("zyx", distance)
    motion = AngleSequence("zyx").motion(q, RATES)
    b = ModelBuilder()
    b.add_body("top", 0, Spherical(), None, BODY)
    omega_dot = FD(b.build(), from_matrix(motion.X.E.T), motion.v[:3])
    found = motion.S[:3] @ FD(make(), q, RATES) + motion.c[:3]
    lost = 1e2 * np.finfo(float).eps / distance**2
    np.testing.assert_allclose(found, omega_dot, rtol=0, atol=lost * np.abs(omega_dot).max())


def test_armature_resolves_the_lock():
    """Rotors at the freedoms themselves leave nothing undetermined: H v̇ = −C is regular."""
    model = by_angles(armature=0.01)
    q = near_lock("zyx", 0.0)
    expected = np.linalg.solve(crba(model, q), -bias_forces(model, q, RATES))
    np.testing.assert_allclose(FD(model, q, RATES), expected, rtol=1e-11)  # condition 1e3


def test_light_bodies_on_one_axis_are_not_taken_for_locked():
    """A tiny rotor and a heavy wheel on one axis: D is small, but all its digits are there."""
    tiny, heavy = 1e-9, 1e6
    b = ModelBuilder(gravity=(0, 0, 0))
    b.add_body("rotor", 0, Revolute("z"), None, Inertia(1.0, I_com=tiny))
    b.add_body("wheel", "rotor", Revolute("z"), None, Inertia(1.0, I_com=heavy))
    a = FD(b.build(), [0.0, 0.0], [0.0, 0.0], [2e-9, 0.0])
    np.testing.assert_allclose(a, [2.0, -2.0], rtol=1e-12)


def test_a_point_mass_on_a_ball_joint_is_refused():
    """No single diagonal entry of D vanishes, but the mass can turn about the line to it."""
    b = ModelBuilder()
    b.add_body("bob", 0, Spherical(), None, point_mass(1.0, (0.3, 0.4, 0.5)))
    with pytest.raises(ValueError, match="'bob'"):
        b.build()


def on_symbols(model):
    """Forward dynamics by articulated bodies as a traced function of [q; v]."""

    def accelerations(t, x):
        w = model.tree.symbolic()
        w.q[:], w.v[:] = x[: model.nq], x[model.nq :]
        w.tau[:] = 0.0
        forward_dynamics(w)
        return w.a_q

    return traced(accelerations, n=model.nq + model.nv, outputs=model.nv)


@pytest.mark.parametrize("make", [by_angles, by_rings])
def test_traced_forward_dynamics_has_no_value_in_the_lock(make):
    model = make()
    f = on_symbols(model)
    for distance in LOCKED:
        x = np.concatenate([near_lock("zyx", distance), RATES])
        assert not np.isfinite(f(0.0, x)).any()
    q = near_lock("zyx", 0.3)
    np.testing.assert_allclose(f(0.0, np.concatenate([q, RATES])), FD(model, q, RATES), rtol=1e-11)


def test_bodies_with_inertia_cost_nothing_more():
    """No comparison is traced where pivots cannot vanish."""
    counts = on_symbols(mechanisms.serial_arm(n=3)).operations()
    assert not {"sign", "max", "select"} & set(counts)


def test_a_run_that_starts_in_the_lock_is_refused():
    problem = as_ivp(by_angles(), near_lock("zyx", 0.0), RATES, (0.0, 1.0), traced=False)
    with pytest.raises(SingularModelError, match="'top'"):
        solve(problem)


def test_factors_of_a_matrix_that_rounding_keeps_positive_are_refused():
    """1 − 1/(1 + ε) = ε is what rounding makes of zero as well."""
    eps = np.finfo(float).eps
    H = [[1.0, 1.0], [1.0, 1.0 + eps]]
    for factor in (ltl, ltdl):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            factor(H, [-1, 0])
        factor([[1.0, 1.0], [1.0, 1.0 + 1e-13]], [-1, 0])
