"""Closed mechanisms in every formulation: one motion, at every tolerance that numbers allow."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest

import multibody as mb
from integrators import Status, solve
from integrators.dae import FORMULATIONS
from multibody import ModelBuilder, Revolute, as_dae, as_ivp, as_mechanical, mechanisms
from multibody.dynamics.loops.closed_loop import constraints
from multibody.runs.dae import independent_rows
from multibody.runs.minimal import as_ivp_minimal

BETA = 15.8107711951537070971  # of A03 at 0.03 s, in quadruple precision
A04 = (-0.778135373033, -0.980352683443, -0.197252670617)  # P3 of Bricard's linkage at 2 s

WITH_MULTIPLIERS = ("index3", "index2", "ggl", "overdetermined")


def start(name):
    entry = mechanisms.entry(name)
    model = entry.model()
    return (model, *entry.start(model))


@cache
def system(name, t_end):
    return as_mechanical(*start(name), (0.0, t_end))


@cache
def reference(name, t_end):
    """End position by an explicit method with projection: nothing implicit is involved."""
    problem = system(name, t_end).formulation("projected")
    run = solve(problem, method="DOP853", rtol=1e-12, atol=1e-13, throw=True)
    return problem.split(t_end, run.y[:, -1])[0]


def suitable(problem):
    return "RadauVariable" if problem.mass is not None else "DOP853"


# ---------------------------------------------------------------------- down to rounding errors


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA5", "RadauVariable"])
@pytest.mark.parametrize("name", ["ggl", "index2"])
def test_four_bar_at_tight_tolerances(name, method):
    """Multipliers carry rounding errors of y times mass/h; Newton's iteration must know."""
    problem = system("four_bar", 5.0).formulation(name)
    for tol in (1e-8, 1e-9, 1e-10, 1e-11):
        run = solve(problem, method=method, rtol=tol, atol=0.01 * tol)
        assert run.success, (tol, run.message)
        assert run.nrejected < 0.2 * run.nsteps + 10
        # Errors of a step grow by two powers of ten in these five seconds.
        error = np.abs(run.y[:3, -1] - reference("four_bar", 5.0)).max()
        assert error < 100 * tol + 1e-9, tol


@pytest.mark.parametrize("method", ["RADAU5", "RadauIIA5"])
def test_four_bar_of_index_three(method):
    """Here rounding errors are divided by h²: six digits remain, down to rtol = 1e-10."""
    problem = system("four_bar", 5.0).formulation("index3")
    for tol in (1e-8, 1e-9, 1e-10):
        run = solve(problem, method=method, rtol=tol, atol=0.01 * tol)
        assert run.success, (tol, run.message)
        assert np.abs(run.y[:3, -1] - reference("four_bar", 5.0)).max() < 1e-6


def test_a_tolerance_below_rounding_is_named_as_the_reason():
    problem = system("four_bar", 5.0).formulation("ggl")
    run = solve(problem, method="RADAU5", rtol=1e-13, atol=1e-16)
    assert run.status == Status.STEP_TOO_SMALL
    assert "tolerance" in run.message
    assert run.nrejected < 1000  # it does not try for ever


@pytest.mark.parametrize("name", WITH_MULTIPLIERS)
@pytest.mark.parametrize("mechanism", ["slider_crank", "five_bar", "spatial_slider_crank"])
def test_formulations_converge(mechanism, name):
    """Tighter tolerances bring smaller errors, with two methods."""
    problem = system(mechanism, 1.0).formulation(name)
    for method in ("RadauIIA3", "RadauIIA5"):
        errors = []
        for tol in (1e-4, 1e-6, 1e-8):
            run = solve(problem, method=method, rtol=tol, atol=tol, throw=True)
            end = problem.split(1.0, run.y[:, -1])[0]
            errors.append(np.abs(end - reference(mechanism, 1.0)).max())
        # Positions of index 3 follow the tolerance with a power below one.
        assert errors[2] < (2e-5 if name == "index3" else 1e-6)
        assert errors[2] < 0.02 * errors[0] + 1e-9


# ---------------------------------------------------------------------- redundant constraints


def test_combined_rows_stay_independent_where_chosen_ones_do_not():
    model, q, v = start("bricard")
    combined = as_mechanical(model, q, v, (0.0, 3.0))
    assert combined.m == 4
    assert combined.rank() == 4
    motion = solve(as_dae(model, q, v, (0.0, 3.0), formulation="projected"), method="DOP853")
    assert motion.success
    seen = combined.observables(solve(combined.formulation("index2"), method="RADAU5"))
    assert seen.singularity.min() > 0.05
    K = np.array([constraints(model, x[:5], t=t).K for t, x in zip(motion.t, motion.y.T)])
    smallest = []
    for rows in combinations(range(5), 4):  # all choices that will do at the start
        sizes = np.linalg.svd(K[:, rows], compute_uv=False)
        if sizes[0, -1] > 0.05 * sizes[0, 0]:
            smallest.append(np.min(sizes[:, -1] / sizes[:, 0]))
    assert len(independent_rows(model, q)) == 4
    assert min(smallest) < 0.05  # some pass through a singular position


@pytest.mark.parametrize("name", FORMULATIONS)
def test_bricard_in_every_formulation(name):
    """P3 after two seconds, to eight of the twelve published decimals."""
    model, q, v = start("bricard")
    problem = as_dae(model, q, v, (0.0, 2.0), formulation=name)
    run = solve(problem, method=suitable(problem), rtol=1e-10, atol=1e-10, throw=True)
    end = problem.split(2.0, run.y[:, -1])[0]
    found = mb.point_position(model, end, "rod2", (0, -1, 0))
    np.testing.assert_allclose(found, A04, atol=1e-8)


# ---------------------------------------------------------------------- one answer


@pytest.mark.parametrize("name", FORMULATIONS)
def test_spatial_slider_crank_in_every_formulation(name):
    """Eight digits of crank angle and rate after 1 s, beside those of minimal coordinates."""
    model, q, v = start("spatial_slider_crank")
    exact = slider_crank_exact()
    problem = as_dae(model, q, v, (0.0, 1.0), formulation=name)
    tight = dict(rtol=1e-11, atol=1e-11)
    method = "RadauIIA5" if name == "index3" else suitable(problem)
    run = solve(problem, method=method, throw=True, **tight)
    end, rate = problem.split(1.0, run.y[:, -1])
    assert end[0] == pytest.approx(exact[0], rel=1e-8)
    # Velocities of index 3 have the error of positions divided by h.
    assert rate[0] == pytest.approx(exact[1], rel=1e-6 if name == "index3" else 1e-8)


def slider_closure(y):
    """Spatial slider-crank by its crank angle."""
    tip = [0.0, 0.1 - 0.08 * np.sin(y[0]), 0.12 + 0.08 * np.cos(y[0])]
    slider = np.sqrt(0.09 - tip[1] ** 2 - tip[2] ** 2)
    return [y[0], slider, np.arctan2(-tip[1], tip[2]), np.arcsin(-slider / 0.3)]


@cache
def slider_crank_exact():
    model, q, v = start("spatial_slider_crank")
    problem = as_ivp_minimal(model, slider_closure, q[:1], v[:1], (0.0, 1.0))
    return solve(problem, method="DOP853", rtol=1e-13, atol=1e-13, throw=True).y[:, -1]


def governor_with_a_loop():
    """The governor (A05) whose second arm is a free body, held by a hinge as a loop joint."""
    density, thin, radius, top = 3000.0, 0.01, 0.05, 1.0
    build = ModelBuilder(gravity=(0.0, 0.0, -9.81), name="governor with a loop")
    shaft = mb.box((thin, thin, 1.0), density=density, com=(0.0, 0.0, 0.5))
    build.add_body("shaft", 0, Revolute("z"), inertia=shaft)
    slider = mb.box((0.1, 0.1, 0.1), density=density)
    build.add_body("slider", "shaft", mb.Prismatic("z"), inertia=slider)
    for k, side in ((1, 1.0), (2, -1.0)):
        arm = mb.box((1.0, thin, thin), density=density, com=(side / 2, 0.0, 0.0))
        arm = arm + mb.point_mass(5.0, (side, 0.0, 0.0))
        hinge, place = Revolute((0.0, side, 0.0)), (side * radius, 0.0, top)
        if k == 1:
            build.add_body("arm1", "shaft", hinge, place, arm)
        else:
            build.add_body("arm2", 0, mb.Free(), inertia=arm)
            build.add_loop("hinge", "shaft", "arm2", hinge, place, (0.0, 0.0, 0.0))
        build.add_spring(
            f"spring{k}", "slider", (side * radius, 0.0, 0.0), f"arm{k}", (side / 2, 0.0, 0.0),
            stiffness=8e5, damping=4e4, rest=0.5,
        )  # fmt: skip
    return build.build()


def governor_start(q, v):
    """Positions and velocities of the cut model from those of the tree, shaft at 0."""
    fall, spin = q[3], np.array([0.0, 0.0, v[0]])
    c, s = np.cos(fall), np.sin(fall)
    R = np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])  # about −y
    hinge = np.array([-0.05, 0.0, 1.0])
    turn = [np.cos(fall / 2), 0.0, -np.sin(fall / 2), 0.0]
    return (
        np.concatenate([q[:3], turn, hinge]),
        np.concatenate([v[:3], R.T @ spin, R.T @ np.cross(spin, hinge)]),
    )


@pytest.mark.parametrize("name", FORMULATIONS)
def test_governor_in_every_formulation(name):
    """Stiff, with quaternions and five constraints: the tree's motion, to eight digits."""
    model = governor_with_a_loop()
    q, v = mechanisms.entry("governor").start(mechanisms.governor())
    problem = as_dae(model, *governor_start(q, v), (0.0, 0.02), formulation=name)
    run = solve(problem, method=suitable(problem), rtol=1e-10, atol=1e-11, throw=True)
    end, _ = problem.split(0.02, run.y[:, -1])
    np.testing.assert_allclose(end[:3], governor_tree()[:3], rtol=1e-8)


@cache
def governor_tree():
    entry = mechanisms.entry("governor")
    model = entry.model()
    problem = as_ivp(model, *entry.start(model), (0.0, 0.02))
    return solve(problem, method="DOP853", rtol=1e-12, atol=1e-13, throw=True).y[:, -1]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("index1", "DOP853"),
        ("projected", "DOP853"),
        ("ggl", "RADAU5"),
        ("overdetermined", "RadauVariable"),
        ("index3", "RadauIIA5"),
    ],
)
def test_andrews_a03_as_a_mechanism(name, method):
    """Eight digits of β, with the equations of motion made from the model."""
    model, q, v = start("andrews")
    problem = as_dae(model, q, v, (0.0, 0.03), formulation=name)
    run = solve(problem, method=method, rtol=1e-10, atol=1e-10, throw=True)
    end, _ = problem.split(0.03, run.y[:, -1])
    assert abs(end[model.number("K1") - 1] / BETA - 1.0) < 1e-8


# ---------------------------------------------------------------------- rolling

SLOPE, RADIUS, SPIN = 0.3, 0.2, np.array([0.3, -0.5, 0.8])


@cache
def ball():
    """A free sphere that a rolling loop joint keeps on an incline: one gap, two rates."""
    down = (9.81 * np.sin(SLOPE), 0.0, -9.81 * np.cos(SLOPE))
    build = ModelBuilder(gravity=down, name="ball")
    build.add_body("ball", 0, mb.Free(), inertia=mb.sphere(RADIUS, mass=2.0))
    build.add_loop("ground", 0, "ball", mb.RollingSphere(RADIUS))
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS])
    v = np.concatenate([SPIN, [RADIUS * SPIN[1], -RADIUS * SPIN[0], 0.0]])
    return build.build(), q, v


def ball_exact(t):
    """It rolls down with 5/7 of the acceleration of sliding, and goes on across as it was."""
    x = RADIUS * SPIN[1] * t + 5 / 14 * 9.81 * np.sin(SLOPE) * t * t
    return np.array([x, -RADIUS * SPIN[0] * t, RADIUS])


@pytest.mark.parametrize("name", FORMULATIONS)
def test_rolling_loop_joint_in_every_formulation(name):
    model, q, v = ball()
    problem = as_dae(model, q, v, (0.0, 1.0), formulation=name)
    assert problem.mechanical.holonomic.tolist() == [True, False, False]
    run = solve(problem, method=suitable(problem), rtol=1e-9, atol=1e-9, throw=True)
    end, _ = problem.split(1.0, run.y[:, -1])
    np.testing.assert_allclose(end[4:], ball_exact(1.0), atol=1e-7)
    seen = problem.mechanical.observables(run)
    assert seen.velocity_drift.max() < 1e-7
    if problem.index is not None and name in ("index3", "ggl"):
        assert problem.n == 13 + 3 + (name == "ggl")  # μ for the gap only


@pytest.mark.parametrize(
    ("method", "order", "steps"), [("GeneralizedAlpha", 2, 50), ("HEM4", 4, 20)]
)
def test_rolling_by_methods_that_take_the_system(method, order, steps):
    model, q, v = ball()
    problem = as_dae(model, q, v, (0.0, 1.0), formulation="index3")
    errors = []
    for n in (steps, 2 * steps):
        run = solve(problem, method=method, step=1.0 / n, throw=True)
        errors.append(np.abs(run.y[4:7, -1] - ball_exact(1.0)).max())
        slip = problem.mechanical.observables(run).speed[1:]
        # A half-explicit method does not keep quaternions at length 1, which is put right
        # afterwards; then the axes have turned a little.
        assert np.abs(slip).max() < (1e-10 if order == 2 else 1e-4)
    assert np.log2(errors[0] / errors[1]) > order - 0.3


# ---------------------------------------------------------------------- careless input


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(formulation="indx3"), ValueError, "did you mean index3"),
        (dict(formulation=None), TypeError, "name such as 'projected'"),
        (dict(formulation="baumgarte", alpha=-1.0), ValueError, "grow instead of decaying"),
        (dict(formulation="baumgarte", alpha="fast"), TypeError, "alpha must be a rate"),
        (dict(formulation="baumgarte", T_stap=0.1), TypeError, "did you mean T_stab"),
        (dict(formulation="ggl", T_stab=0.1), TypeError, "'ggl' has no option 'T_stab'"),
        (dict(t_span=(0.0,)), ValueError, "two times"),
        (dict(t_span="ggl"), ValueError, "two times"),
        (dict(rows=[0, 9]), ValueError, r"rows: expected some of 0 joint\[0\]"),
        (dict(rows=[0.5]), ValueError, "rows: expected different numbers"),
        (dict(q0=[np.nan, 0.0, 0.0]), ValueError, "q: expected finite"),
        (dict(v0=[1.0]), ValueError, "v: expected 3 numbers"),
        (dict(model="four_bar"), TypeError, "expected a Model"),
    ],
)
def test_careless_input(changes, error, message):
    model, q, v = start("four_bar")
    arguments = {"model": model, "q0": q, "v0": v, "t_span": (0.0, 1.0), **changes}
    with pytest.raises(error, match=message):
        as_dae(**arguments)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_inconsistent_starts_are_refused_with_the_remedy(name):
    model, q, v = start("four_bar")
    with pytest.raises(ValueError, match=r"rate of the gap of .*consistent_velocity"):
        as_dae(model, q, v + np.eye(3)[0], formulation=name)
    with pytest.raises(ValueError, match=r"gap of .*assemble"):
        as_dae(model, q + 0.1 * np.eye(3)[0], v, formulation=name)


def test_names_of_formulations_are_read_kindly():
    model, q, v = start("bricard")
    problem = as_dae(model, q, v, (0.0, 1.0), formulation="Index-1")
    assert problem.formulation == "index1"
    assert problem.mechanical.m == 5  # all rows that act, as for "index1"


@pytest.mark.parametrize("name", [*WITH_MULTIPLIERS, "index1"])
def test_a_free_body_on_a_ball_by_ida(name):
    """A quaternion, which equations leave free to grow, and a loop that holds a point of the body.

    It once gave up in each of these forms.
    """
    pytest.importorskip("assimulo", exc_type=ImportError)
    b = ModelBuilder(name="ball")
    b.add_body("top", 0, mb.Free(), inertia=mb.box((0.2, 0.3, 0.6), mass=2.0))
    b.add_loop("ball", 0, "top", mb.Spherical(), None, (0.0, 0.0, -0.5))
    model, rng = b.build(), np.random.default_rng(1)
    q0 = model.random(rng)
    q0[4:] = 0.0
    q0[4:] = -mb.point_position(model, q0, "top", (0.0, 0.0, -0.5))
    v0 = rng.normal(size=6)
    K = mb.constraints(model, q0).K
    v0 -= np.linalg.pinv(K) @ (K @ v0)
    right = solve(as_dae(model, q0, v0, (0, 1), formulation="projected"), rtol=1e-10, atol=1e-12)
    run = solve(
        as_dae(model, q0, v0, (0, 1), formulation=name),
        method="assimulo:IDA",
        rtol=1e-5,
        atol=1e-7,
    )
    assert run.success
    assert np.abs(run.y[:7, -1] - right.y[:7, -1]).max() < 100 * 1e-5


@pytest.mark.parametrize(("method", "rtol"), [("RADAU5", 1e-6), ("Rodas5P", 1e-6), ("BDF", 1e-7)])
def test_minimal_coordinates_choose_anew_before_pivots_vanish(method, rtol):
    """In a fixed order one pivot of Bricard's linkage goes through zero, where f was NaN.

    Steps of RADAU5 crept up to that place.
    """
    problem = system("bricard", 2.0).formulation("minimal")
    run = solve(problem, method=method, rtol=rtol, atol=0.01 * rtol, throw=True)
    position = problem.split(2.0, run.y[:, -1])[0]
    assert np.abs(position - reference("bricard", 2.0)).max() < 20 * rtol
