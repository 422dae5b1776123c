"""Steps written out around calls of f: the same steps as those of the loop over the tableau."""

import numpy as np
import pytest

from integrators import IVP, solve, traced
from integrators.methods.runge_kutta import fused, stepcode


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


def run(n, monkeypatch, written_out, **options):
    monkeypatch.setattr(fused, "LARGEST", 0)  # nothing is traced into one step
    monkeypatch.setattr(stepcode, "LARGEST_STEP", 20_000 if written_out else 0)
    calls = []
    original = stepcode.step_code
    monkeypatch.setattr(stepcode, "step_code", lambda *a: calls.append(original(*a)) or calls[-1])
    problem = IVP(
        traced(ring(n), n=n, params=1), np.linspace(0.1, 1.0, n), (0.0, 5.0), params=[1.3]
    )
    solution = solve(problem, **options)
    monkeypatch.undo()
    assert len(calls) == 1
    assert (calls[0] is not None) == written_out
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


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 13])
@pytest.mark.parametrize(("method", "options"), METHODS, ids=[m for m, _ in METHODS])
def test_same_steps_as_the_loop(n, method, options, monkeypatch):
    a = run(n, monkeypatch, True, method=method, **options)
    b = run(n, monkeypatch, False, method=method, **options)
    assert (a.nsteps, a.nrejected, a.nfev) == (b.nsteps, b.nrejected, b.nfev)
    # Sums in another order: some ulps each step, and the step lengths follow the estimates.
    np.testing.assert_allclose(a.t, b.t, rtol=1e-9)
    np.testing.assert_allclose(a.y, b.y, rtol=1e-8, atol=1e-9)
    if a.sol is not None:
        np.testing.assert_allclose(a.sol(2.345), b.sol(2.345), rtol=1e-8)


def test_a_jump_is_not_looked_across(monkeypatch):
    """Steps that end at a tstop take the loop, whose stages stay on this side of it."""
    options = {"method": "DOPRI5", "rtol": 1e-8, "atol": 1e-8, "tstops": [1.0, 2.5]}
    a = run(5, monkeypatch, True, **options)
    b = run(5, monkeypatch, False, **options)
    assert a.nfev == b.nfev
    assert 1.0 in a.t
    assert 2.5 in a.t
    np.testing.assert_allclose(a.y[:, -1], b.y[:, -1], rtol=1e-9)


def test_too_long_states_are_left_to_the_loop():
    from integrators import catalogue

    assert stepcode.step_code(catalogue.get("DOP853"), 10_000, 0, False) is None
