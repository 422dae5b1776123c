"""Constraints on velocities only, minimal coordinates in machine code, runs that must end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from integrators import Status, solve
from integrators.dae import FORMULATIONS, Mechanical
from integrators.dae.formulations.placing import Placing
from tests.integrators.dae.systems import driven, pendulum, pendulum_exact, squeezer

MASS, INERTIA, SPEED, TURN = 2.0, 0.5, 1.5, 0.7


def skate(trace=True, **changes):
    """A blade on ice: it does not slip sideways, and nothing else restricts it."""

    def bias(t, q, v):
        return np.array([-v[2] * (np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1])])

    arguments = dict(
        q0=[0.0, 0.0, 0.0],
        v0=[SPEED, 0.0, TURN],
        t_span=(0.0, 3.0),
        velocity_only=[0],
        trace=trace,
        name="skate",
    )
    return Mechanical(
        np.diag([MASS, MASS, INERTIA]),
        lambda t, q, v: np.zeros(3),
        lambda t, q: np.zeros(1),
        lambda t, q: np.array([[np.sin(q[2]), -np.cos(q[2]), 0.0]]),
        bias,
        **{**arguments, **changes},
    )


def skate_exact(t):
    """A circle, at constant speed; λ is the force towards its centre."""
    return np.array([SPEED / TURN * np.sin(TURN * t), SPEED / TURN * (1 - np.cos(TURN * t))])


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_constraint_on_velocities_only(name, trace):
    system = skate(trace)
    problem = system.formulation(name)
    method = "RADAU5" if problem.mass is not None else "DOP853"
    run = solve(problem, method=method, rtol=1e-9, atol=1e-9, throw=True)
    seen = system.observables(run)
    np.testing.assert_allclose(seen.q[:2, -1], skate_exact(3.0), atol=1e-7)
    np.testing.assert_allclose(seen.multipliers, -MASS * SPEED * TURN, rtol=1e-6)
    assert np.all(seen.gap == 0.0)
    assert seen.velocity_drift.max() < 1e-7
    if name == "index3":
        assert problem.index.tolist() == [1] * 6 + [2]  # no position to differentiate


def test_methods_that_take_the_system_know_velocity_constraints():
    problem = skate().formulation("index2")
    for method, order in (("GeneralizedAlpha", 2), ("HEM4", 4)):
        errors = []
        for n in (30, 60):
            run = solve(problem, method=method, step=3.0 / n, throw=True)
            errors.append(np.abs(run.y[:2, -1] - skate_exact(3.0)).max())
            assert skate().observables(run).velocity_drift.max() < 1e-10
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


def test_redundant_rows_keep_their_kind():
    """Of two equal velocity constraints one is left, and it is still on velocities only."""
    one = skate()
    twice = Mechanical(
        one.given["mass"],
        one.given["force"],
        lambda t, q: np.zeros(2),
        lambda t, q: np.vstack([one.given["jacobian"](t, q)] * 2),
        lambda t, q, v: np.tile(one.given["bias"](t, q, v), 2),
        q0=one.q0,
        v0=one.v0,
        t_span=(0.0, 1.0),
        velocity_only=[0, 1],
    )
    assert twice.without_redundant().holonomic.tolist() == [False]


# -------------------------------------------------------------------- minimal coordinates


@pytest.mark.parametrize("make", [pendulum, driven, squeezer, skate])
def test_placing_agrees_with_pivoting(make):
    work = make().formulation("minimal").f.work
    split, system = work.split, work.mechanical
    fast = Placing(system, split)
    rng = np.random.default_rng(7)
    t0 = system.t_span[0]
    y = np.concatenate([system.q0, system.v0])
    y[: system.nq] += 1e-3 * rng.standard_normal(system.nq)
    y[system.nq :] += rng.standard_normal(system.nv)
    q, v, now = work.placed(t0, y, system.params)
    found = fast(t0, y, system.params)
    assert found is not None
    np.testing.assert_allclose(found[0], q, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found[1], v, rtol=1e-10, atol=1e-10)
    v_dot = system.acceleration(t0, q, v).v_dot
    expected = np.concatenate([now.q_dot, v_dot])
    np.testing.assert_allclose(found[2], expected, rtol=1e-8, atol=1e-9 * np.abs(v_dot).max())


def test_placing_says_when_it_does_not_do():
    """Far from the constraint three iterations are too few; at a dead point a pivot vanishes."""
    system = pendulum()
    work = system.formulation("minimal").f.work
    fast = Placing(system, work.split)
    (free,) = work.split.independent
    far = np.array([0.0, 0.0, 0.0, 0.0])
    far[free], far[1 - free] = 0.5, 3.0
    assert fast(0.0, far, system.params) is None
    np.testing.assert_allclose(work.placed(0.0, far, system.params)[0] @ far[:2] > 0, True)
    dead = np.array([0.0, 0.0, 0.0, 0.0])
    dead[free] = 1.0
    assert fast(0.0, dead, system.params) is None


# -------------------------------------------------------------------- careless input


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(velocity_only=[3]), ValueError, "different constraints 0 to 0"),
        (dict(velocity_only="all"), TypeError, "different constraints"),
        (dict(q0=[np.nan, 0.0, 0.0]), ValueError, "must be finite"),
        (dict(params="heavy"), TypeError, "params must be numbers"),
        (dict(rank_tolerance="small"), TypeError, "rank_tolerance must be a number"),
        (dict(t_span=3.0), ValueError, "two times"),
    ],
)
def test_careless_systems(changes, error, message):
    with pytest.raises(error, match=message):
        skate(**changes)


def test_velocity_constraints_must_be_given_whole():
    with pytest.raises(ValueError, match="give jacobian and bias"):
        pendulum(velocity_only=[0])
    with pytest.raises(ValueError, match=r"constraint must return 0 .*velocity_only = \[0\]"):
        pendulum(
            velocity_only=[0],
            q0=[2.0, 0.0],
            jacobian=lambda t, q: [[1.0, 0.0]],
            bias=lambda t, q, v: [0.0],
        )


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("projeted", {}, ValueError, "did you mean projected"),
        (3, {}, TypeError, "name such as"),
        ("index3", {"T_stab": 0.1}, TypeError, "'index3' has no option 'T_stab'; it takes none"),
        ("baumgarte", {"alfa": 1.0}, TypeError, "did you mean alpha"),
        ("baumgarte", {"alpha": np.nan}, ValueError, "alpha must be a rate in 1/s, and finite"),
        ("baumgarte", {"beta": -2.0}, ValueError, "grow instead of decaying"),
        ("augmented", {"iterations": "many"}, TypeError, "whole number"),
        ("augmented", {"penalty": -1.0}, ValueError, "penalty must be positive"),
        ("index1", {"multipliers": "yes"}, TypeError, "True or False"),
        ("minimal", {"independent": 0}, TypeError, "different velocities 0 to 1"),
        ("minimal", {"independent": [5]}, ValueError, "different velocities 0 to 1"),
        ("minimal", {"closure": 3, "y0": [0.0]}, TypeError, "closure must be a function"),
        ("minimal", {"closure": lambda y: y, "y0": [np.nan]}, ValueError, "y0 must be finite"),
    ],
)
def test_careless_options(name, options, error, message):
    with pytest.raises(error, match=message):
        pendulum().formulation(name, **options)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_inconsistent_starts_are_refused_with_residuals(name):
    with pytest.raises(ValueError, match=r"max \|g\| = 0.105 .*mechanical.consistent"):
        pendulum(q0=[1.1, 0.0]).formulation(name)
    with pytest.raises(ValueError, match=r"max \|G v − ν\| = 2, .*mechanical.consistent"):
        pendulum(v0=[2.0, 0.0]).formulation(name)


def test_careless_consistent_starts():
    with pytest.raises(ValueError, match="q must be finite"):
        pendulum().consistent(q=[np.nan, 0.0])
    with pytest.raises(ValueError, match="different velocities 0 to 1"):
        pendulum().consistent(fixed=[9])


# -------------------------------------------------------------------- Assimulo

pytest.importorskip("assimulo", exc_type=ImportError)


@pytest.mark.parametrize("solver", ["ODASSL", "IDA", "Radau5DAE"])
def test_a_solver_that_gets_nowhere_is_stopped(solver, monkeypatch):
    """With no evaluations allowed without an accepted step, the run ends and says so."""
    from integrators.methods.external import assimulo

    monkeypatch.setattr(assimulo, "FRUITLESS", 0)
    problem = pendulum().formulation("overdetermined")
    run = solve(problem, method=f"assimulo:{solver}", rtol=1e-6, atol=1e-6)
    assert run.status == Status.EXTERNAL_FAILED
    assert "no step was accepted in" in run.message
    assert "loosen rtol" in run.message


def test_overdetermined_equations_run_as_machine_code():
    problem = pendulum().formulation("overdetermined")
    assert hasattr(problem.extra, "machine_code")
    end = pendulum_exact(2.0)
    np.testing.assert_allclose(problem.extra(2.0, end), 0.0, atol=1e-12)
    run = solve(problem, method="assimulo:ODASSL", rtol=1e-9, atol=1e-9, throw=True)
    np.testing.assert_allclose(run.y[:2, -1], end[:2], atol=1e-5)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_control_c_stops_odassl():
    script = textwrap.dedent(
        """
        import numpy as np
        from integrators import Status, solve
        from integrators.dae import Mechanical
        p = Mechanical(np.eye(2), lambda t, q, v: [0.0, -9.81],
                       lambda t, q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
                       q0=[1.0, 0.0], v0=[0.0, 0.0], t_span=(0, 1e6), trace=True)
        p = p.formulation("overdetermined")
        solve(p, method="assimulo:ODASSL", rtol=1e-8, atol=1e-8, max_steps=10)
        print("ready", flush=True)
        s = solve(p, method="assimulo:ODASSL", rtol=1e-8, atol=1e-8, max_steps=10**8,
                  on_interrupt="return")
        assert s.status == Status.INTERRUPTED, s
        print("interrupted after", s.nsteps > 10)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()  # a run that cannot be interrupted would go on for ever
    assert process.returncode == 0, err
    assert "interrupted after True" in out
