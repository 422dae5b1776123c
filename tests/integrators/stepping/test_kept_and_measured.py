"""What engines keep from run to run and from step to step, and how errors are measured."""

from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest

from integrators import solve, traced
from integrators.kernels.tiers.tiers import compiled_first
from integrators.stepping import engine as engines
from integrators.stepping.norms import mean_square, mean_square_of_many
from integrators.stepping.stiffness import (
    CALM,
    NEAR,
    SELDOM,
    quotient_of_distances,
    watch_explicit,
    watch_implicit,
)


def test_engines_that_wait_are_few_however_many_functions_were_solved(monkeypatch):
    monkeypatch.setattr(engines, "MOST_ENGINES", 3)
    monkeypatch.setattr(engines, "_kept", OrderedDict())  # none of earlier tests
    functions = [traced(lambda t, y, k=k: -k * y, n=1) for k in range(1, 7)]
    for f in functions:
        solve(f, (0, 1), [1.0], method="DOPRI5")
    waiting = [
        len(kept)
        for f in functions
        for key, kept in f._derived.items()
        if isinstance(key, tuple) and key[0] == "engines"
    ]
    assert sum(waiting) == 3
    assert waiting[-3:] == [1, 1, 1]  # the latest


def test_a_kept_engine_goes_over_to_machine_code_that_came_after_its_first_run():
    f = traced(lambda t, y: np.array([y[1], -y[0]]), n=2)
    with compiled_first():
        first = solve(f, (0, 3), [1.0, 0.0], method="DOPRI5")
    (waiting,) = (
        kept for key, kept in f._derived.items() if isinstance(key, tuple) and key[0] == "engines"
    )
    loop = waiting[0].loop
    assert loop.is_compiled
    code = loop.advance
    loop.is_compiled, loop.advance = False, loop._advance  # as if it had begun interpreted
    again = solve(f, (0, 3), [1.0, 0.0], method="DOPRI5")
    assert waiting[0].loop is loop
    assert loop.is_compiled
    assert loop.advance is not code
    assert loop.advance != loop._advance
    assert np.array_equal(first.y, again.y)
    kept = loop.advance
    solve(f, (0, 3), [1.0, 0.0], method="DOPRI5")
    assert loop.advance is kept  # and does not look again


@pytest.mark.parametrize("n", [1, 3, 6])
def test_power_iteration_of_an_implicit_method_finds_the_spectral_radius(n):
    """The vector is normalised at every step; it stays zero where J has no effect, and begins."""
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    J = Q @ np.diag(-np.linspace(1.0, 50.0, n)) @ Q.T
    w = SimpleNamespace(
        watch_stiffness=2, external_algebra=0, y=np.zeros(n), x=np.zeros(n), J=J, mild_steps=0,
        eigenvector=np.zeros(n), spectral_radius=0.0, stability_boundary=3.0, stiff_patience=5,
        family_wish=0,
    )  # fmt: skip
    radius = np.abs(np.linalg.eigvalsh(J)).max()
    for _ in range(200):
        watch_implicit(w, 1.0)
    assert w.spectral_radius == pytest.approx(radius, rel=1e-6)
    assert np.linalg.norm(w.eigenvector) == pytest.approx(1.0, rel=1e-12)
    assert (w.family_wish, w.mild_steps) == ((0, 0) if radius > 3.0 else (-1, 200))
    w.mild_steps = w.family_wish = 0
    for k in range(1, 6):
        watch_implicit(w, 2.9 / radius)
        assert (w.mild_steps, w.family_wish) == (k, -1 if k == 5 else 0)
    watch_implicit(w, 3.1 / radius)
    assert w.mild_steps == 0
    w.J = np.zeros((n, n))
    watch_implicit(w, 1.0)
    assert w.spectral_radius == 0.0
    assert not w.eigenvector.any()
    w.J = J  # a vector that vanished begins anew
    watch_implicit(w, 1.0)
    assert 0.0 < w.spectral_radius <= radius * (1 + 1e-12)


def explicit_step(w, y, slope, stages, h, A):
    """What the loop leaves after a step from y with these stages."""
    w.y_old, w.f0, w.K, w.A = y, slope, stages, A
    w.nsteps += 1
    watch_explicit(w, h)


def test_explicit_methods_see_how_f_differs_between_close_states():
    """|f(y) − f(z)|/|y − z| in the norm of the tolerances, z the stage at the end of a step."""
    rng = np.random.default_rng(8)
    n, A = 3, np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.4, 0.6, 0.0]])
    w = SimpleNamespace(
        watch_stiffness=2, stiff_stage=2, have_start=0, f0_known=1, y=np.zeros(n), nsteps=0,
        atol=np.array([1e-3, 1.0, 10.0]), rtol=1e-2, stage_slope=np.zeros(n), spectral_radius=-1.0,
        stage_state=np.zeros(n), stability_boundary=3.0, stiff_patience=4, stiff_steps=0,
        stiff_total=0, mild_steps=0, family_wish=0,
    )  # fmt: skip
    ys, fs, Ks = rng.normal(size=(2, n)), rng.normal(size=(2, n)), rng.normal(size=(2, 3, n))
    explicit_step(w, ys[0], fs[0], Ks[0], 0.25, A)
    assert (w.have_start, w.spectral_radius) == (1, -1.0)  # nothing to compare with so far
    z = ys[0] + 0.25 * (0.4 * Ks[0, 0] + 0.6 * Ks[0, 1])
    np.testing.assert_allclose(w.stage_state, z, rtol=1e-14)
    scale = w.atol + 1e-2 * np.abs(ys[1])
    expected = np.linalg.norm((fs[1] - Ks[0, 2]) / scale) / np.linalg.norm((ys[1] - z) / scale)
    w.stability_boundary = 1.01 * 0.5 * expected / NEAR
    explicit_step(w, ys[1], fs[1], Ks[1], 0.5, A)
    assert w.spectral_radius == pytest.approx(expected, rel=1e-12)
    assert (w.stiff_steps, w.mild_steps) == (0, 1)  # just below the boundary
    w.y_old = w.stage_state.copy()
    assert quotient_of_distances(w) == -1.0
    w.y_old, w.f0 = ys[0], np.full(n, np.nan)
    assert quotient_of_distances(w) == -1.0


def test_steps_at_the_boundary_of_stability_are_counted():
    """Some in a row make the wish for a stiff method, calm ones between them forget the others."""
    w = SimpleNamespace(
        watch_stiffness=2, stiff_stage=1, have_start=0, f0_known=1, y=np.zeros(1), nsteps=0,
        atol=np.ones(1), rtol=0.0, stage_slope=np.zeros(1), spectral_radius=-1.0,
        stage_state=np.zeros(1), stability_boundary=3.0, stiff_patience=4, stiff_steps=0,
        stiff_total=0, mild_steps=0, family_wish=0,
    )  # fmt: skip
    A = np.array([[0.0, 0.0], [1.0, 0.0]])

    def step(radius, h=1.0):
        y = w.stage_state + 1.0
        explicit_step(w, y, w.stage_slope - radius, np.array([[1.0], [2.0]]), h, A)
        return w.stiff_steps, w.stiff_total, w.mild_steps, w.family_wish

    step(0.0)
    limit = NEAR * w.stability_boundary
    assert step(1.01 * limit) == (1, 1, 0, 0)
    assert step(1.01 * limit / 2, h=-2.0) == (2, 2, 0, 0)
    for k in range(1, CALM):
        assert step(0.99 * limit) == (2, 2, k, 0)
    assert step(0.99 * limit) == (0, 2, CALM, 0)
    for k in range(1, 4):
        assert step(1.01 * limit) == (k, 2 + k, 0, 0)
    assert step(1.01 * limit) == (4, 6, 0, 1)
    w.family_wish, w.watch_stiffness = 0, 1  # a run that only tells of it
    assert step(1.01 * limit) == (5, 7, 0, 0)
    w.stiff_steps, w.nsteps = 0, SELDOM + 1
    step(1.01 * limit)  # two steps of many
    assert (w.stiff_steps, w.have_start) == (0, 0)
    w.nsteps = 2 * SELDOM - 1
    step(1.01 * limit)
    assert (w.stiff_steps, w.have_start) == (0, 1)
    assert step(1.01 * limit)[0] == 1


def test_dense_output_asks_for_a_slope_that_the_method_had_no_use_for():
    """A method that never asks for f(t, y): its cubics have the slopes."""
    h, at = 0.1, np.linspace(0, 2, 77)

    def exact(f, t, y, h):
        return y * np.exp(-h)

    run = solve(lambda t, y: -y, (0, 2), [1.0], method=exact, step=h, dense_output=True)
    assert run.success
    off = np.abs(run.sol(at)[0] - np.exp(-at)).max()
    assert off < 1.01 * h**4 / 384  # Hermite's cubic, whose error has the fourth derivative, ≤ 1


@pytest.mark.parametrize("n", [4, 7, 64, 129])
def test_the_norm_of_large_systems_is_that_of_small_ones(n):
    rng = np.random.default_rng(n)
    w = SimpleNamespace(
        y=rng.normal(size=n), y_new=rng.normal(size=n), atol=10.0 ** rng.uniform(-9, -3, n),
        rtol=1e-4, pairs=0, index=np.zeros(0, dtype=int), max_norm=0,
    )  # fmt: skip
    for part in range(4):  # each of the four sums alone, too
        e = rng.normal(size=n) * 10.0 ** rng.uniform(-8, -2, n) * (np.arange(n) % 4 >= part)
        assert mean_square_of_many(w, e) == pytest.approx(mean_square(w, e, 0.1), rel=1e-13)
