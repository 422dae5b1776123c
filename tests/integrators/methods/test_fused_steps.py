"""Steps traced with f inside or called, alone or in lanes: the same as the generic step."""

import numpy as np
import pytest

from integrators import IVP, catalogue, solve, solve_many, traced
from integrators.many.lanes import code as lane_code
from integrators.methods.runge_kutta import engine, fused


def ring(n):
    """Coupled oscillators in a ring; every component depends on its neighbours and on time."""

    def f(t, y, p):
        return np.array(
            [
                p[0] * np.sin(y[(i + 1) % n]) - 0.1 * y[i] * y[i - 1] + np.cos(t + i)
                for i in range(n)
            ]
        )

    return f


#: Limits of operations with f inside and around calls of f.
FORMS = {"inside": (10**9, 0), "called": (0, 10**9), "loop": (0, 0)}


def problem(n):
    f = traced(ring(n), n=n, params=1)
    return IVP(f, np.linspace(0.1, 1.0, n), (0.0, 5.0), params=[1.3])


def run(n, monkeypatch, form, **options):
    inside, around = FORMS[form]
    monkeypatch.setattr(fused, "LARGEST", inside)
    monkeypatch.setattr(engine, "LARGEST_AROUND", around)
    ivp = problem(n)
    solution = solve(ivp, **options)
    monkeypatch.undo()
    (made,) = [x for key, x in ivp.f._derived.items() if key[0] == "step"]
    calls = 0 if made is None else sum(op.startswith("call") for op in made.graph.ops)
    assert (made is None) == (form == "loop")
    assert (calls > 0) == (form == "called")
    return solution


# Tolerances and first steps keep the estimates, which decide on the steps, far above round-off.
LOOSE = {"rtol": 1e-4, "atol": 1e-5, "first_step": 0.4}
METHODS = [
    ("RK4", {"step": 0.05}),
    ("Heun", {"step": 0.05}),
    ("DOPRI5", LOOSE),  # the first stage is the last of the step before
    ("DOP853", {**LOOSE, "first_step": 1.0}),  # two estimates
    ("BS23", {**LOOSE, "norm": "max"}),
    ("CashKarp", {**LOOSE, "dense_output": True}),
]


@pytest.mark.parametrize("form", ["inside", "called"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 13])
@pytest.mark.parametrize(("method", "options"), METHODS, ids=[m for m, _ in METHODS])
def test_same_steps_as_the_loop(n, method, options, form, monkeypatch):
    a = run(n, monkeypatch, form, method=method, **options)
    b = run(n, monkeypatch, "loop", method=method, **options)
    assert (a.nsteps, a.nrejected, a.nfev) == (b.nsteps, b.nrejected, b.nfev)
    # Sums in another order: some ulps each step, and the step lengths follow the estimates.
    np.testing.assert_allclose(a.t, b.t, rtol=1e-9)
    np.testing.assert_allclose(a.y, b.y, rtol=1e-8, atol=1e-9)
    if a.sol is not None:
        np.testing.assert_allclose(a.sol(2.345), b.sol(2.345), rtol=1e-8)


def test_a_jump_is_not_looked_across(monkeypatch):
    """Steps that end at a tstop take the loop, whose stages stay on this side of it."""
    options = {"method": "DOPRI5", "rtol": 1e-8, "atol": 1e-8, "tstops": [1.0, 2.5]}
    a = run(5, monkeypatch, "called", **options)
    b = run(5, monkeypatch, "loop", **options)
    assert a.nfev == b.nfev
    assert 1.0 in a.t
    assert 2.5 in a.t
    np.testing.assert_allclose(a.y[:, -1], b.y[:, -1], rtol=1e-9)


@pytest.mark.parametrize("method", ["DOPRI5", "DOP853", "BS23"])
def test_lanes_that_call_f_take_the_steps_of_single_runs(method, monkeypatch):
    monkeypatch.setattr(fused, "LARGEST", 0)
    ivp = problem(4)
    starts = ivp.y0 + np.linspace(0.0, 0.3, 11)[:, None]
    many = solve_many(ivp, y0=starts, method=method, rtol=1e-6, t_eval=[1.0, 4.0], first_step=0.1)
    assert many.engine.startswith("8 lanes")
    for k, y0 in enumerate(starts):
        alone = solve(ivp.with_(y0=y0), method=method, rtol=1e-6, t_eval=[1.0, 4.0], first_step=0.1)
        assert many.nsteps[k] == alone.nsteps
        np.testing.assert_allclose(many.y_eval[k], alone.y, rtol=1e-9, atol=1e-11)


def test_too_long_states_are_left_to_the_loop(monkeypatch):
    f = traced(lambda t, y: -y, n=200)
    assert fused.fused_step_function(f, catalogue.get("DOP853"), 0, False, 12) is None
    monkeypatch.setattr(lane_code, "LARGEST_AROUND", 10)
    monkeypatch.setattr(fused, "LARGEST", 0)
    ivp = problem(3)
    many = solve_many(ivp, y0=[ivp.y0, ivp.y0], method="DOPRI5")
    assert "too long" in many.engine
    assert many.success.all()
