"""What is in the way of an order is named with evidence; and powers of tolerances."""

import random

import numpy as np
import pytest

from integrators import IVP, Tableau, Taylor, analysis, catalogue, problems, solve
from integrators.analysis import convergence
from integrators.analysis.study.proportionality import proportionality

OBSTACLES = {
    "stiff", "not smooth", "refused", "exact", "round-off", "not yet asymptotic",
    "reference too coarse",
}  # fmt: skip
#: Pairs of the whole library that take a fraction of a second each.
QUICK = (
    "andrews", "blow_up", "bouncing_ball", "curtiss_hirschfelder", "dahlquist", "decay", "jay",
    "linear_growth", "logistic", "minus_2ty2", "order_rational", "pendulum_ggl",
    "pendulum_index1", "prothero_robinson", "robertson", "robertson_dae", "square_root",
)  # fmt: skip
LOW = [name for name in catalogue.names() if catalogue.entry(name).order <= 5]
SAMPLE = random.Random(19).sample([(p, m) for p in QUICK for m in LOW], 24)


def curve_of(problem, method, *args, **options):
    (curve,) = convergence(problem, [method], *args, **options).curves
    return curve


@pytest.mark.parametrize(("problem", "method"), SAMPLE)
def test_the_interval_contains_the_order_or_the_obstacle_is_named(problem, method):
    curve = curve_of(problem, method)
    order = catalogue.entry(method).order
    if curve.estimate.found:
        explained = curve.findings and curve.findings[0].cause != "no cause found"
        assert order in curve.estimate or explained, (curve, curve.findings)
    else:
        assert curve.verdict in OBSTACLES, (curve, curve.findings)


def test_an_explicit_method_on_a_stiff_problem_is_told_by_its_amplification():
    curve = curve_of("robertson", "RK4")
    (finding,) = curve.findings
    assert curve.verdict == "stiff"
    assert "|R(hλ)|" in finding.evidence
    assert "RADAU5" in finding.remedy


def test_a_method_that_is_exact_is_not_called_failing():
    """y' = 2t is integrated by the midpoint rule without error."""
    quadratic = IVP(lambda t, y: 2 * t + 0 * y, [0.0], (0.0, 1.0), exact=lambda t: [t * t])
    assert curve_of(quadratic, "ExplicitMidpoint").verdict == "exact"
    # Short steps alone prove nothing.
    given = curve_of("minus_2ty2", "Gauss6", [0.05, 0.02, 0.01, 0.005])
    assert given.verdict == "round-off"


def test_a_refusal_is_no_missing_point():
    curve = curve_of("pendulum_ggl", "RK4")
    assert curve.verdict == "refused"
    assert "explicit" in curve.findings[0].evidence


def test_steep_is_not_rough():
    """Arenstorf's orbit turns sharply near the Earth, through a formula with powers: smooth."""
    study = convergence("arenstorf", ["Gauss3"], [17.065 / n for n in (3000, 4000, 5000, 6000)])
    assert "f is not smooth" not in [f.cause for f in study.curves[0].findings]


def test_a_kink_of_a_function_that_cannot_be_traced_is_rough():
    kink = IVP(lambda t, y: [(t - 0.6171 if t > 0.6171 else 0.0) * y[0]], [1.0], (0.0, 2.0))
    curve = curve_of(kink, "RK4", [2.0 / n for n in (16, 23, 32, 45, 64, 91, 128)])
    assert "f is not smooth" in [f.cause for f in curve.findings]
    assert "0.617" in curve.findings[0].evidence


def test_why_an_order_is_higher():
    """Lobatto IIID with 3 stages, of order 4, on a scalar autonomous problem: error terms of
    different trees are multiples of each other there and cancel."""
    tableau = Tableau([[], ["1/2"]], [0, 1], name="mid")
    assert not curve_of("minus_2ty2", tableau, [0.2, 0.1, 0.05, 0.025], order=1).findings
    steps = [0.9 / n for n in (8, 12, 16, 24, 32)]
    finding = curve_of("blow_up", "LobattoIIID3", steps).findings[0]
    assert "leading error term vanishes" in finding.cause
    assert "single step" in finding.evidence


# -------------------------------------------------------------------- tolerance proportionality


def test_powers_of_the_tolerance():
    rng = np.random.default_rng(3)
    rtol = 10.0 ** -np.arange(3, 11)
    noisy = 5 * rtol**0.8 * np.exp(0.05 * rng.standard_normal(8))
    fitted = proportionality(rtol, noisy)
    assert abs(fitted.exponent - 0.8) < fitted.half < 0.05
    assert not fitted.proportional
    assert proportionality(rtol, [None] * 6 + [1e-9, 1e-10]) is None
    # What the reference cannot resolve does not count.
    assert proportionality(rtol, np.maximum(rtol, 1e-7), uncertainty=1e-8).points == 4


def test_adaptive_runs_say_how_they_follow_the_tolerance():
    result = analysis.work_precision("kepler", ["DOPRI5"], [1e-4, 1e-5, 1e-6, 1e-7], repeat=1)
    fitted = result.proportionality["DOPRI5"]
    assert 0.5 < fitted.exponent < 1.5
    assert any("rtol^(" in note for note in result.notes())


def test_invariants_have_orders_of_their_own():
    """Energy of the harmonic oscillator with RK4: |R(iω h)| − 1 = O(h⁶), a drift of order 5."""
    found = analysis.component_orders("harmonic_oscillator", "RK4")
    assert found.index["energy"] is None
    assert 5 in found["energy"].estimate
    assert 4 in found["y0"].estimate


# -------------------------------------------------------------------- Taylor


def test_the_economic_form_is_the_substituted_one():
    """y' = sin(ty) + y², D₂ and D₃ written with y' and y'', against derivatives by recurrences."""

    def f(t, y):
        return np.sin(t * y) + y**2

    def second(t, y, y1):
        return np.cos(t * y) * (y + t * y1) + 2 * y * y1

    def third(t, y, y1, y2):
        inner = y + t * y1
        curved = -np.sin(t * y) * inner**2 + np.cos(t * y) * (2 * y1 + t * y2)
        return curved + 2 * y1**2 + 2 * y * y2

    method = Taylor.from_derivatives([f, second, third])
    start, span = [0.7], (0.3, 0.5)
    mine = solve(f, span, start, method=method, step=0.05)
    theirs = solve(f, span, start, method=Taylor(3), step=0.05)
    assert mine.y == pytest.approx(theirs.y, abs=1e-15)
    with pytest.raises(TypeError, match="derivative 3 takes 3 arguments"):
        Taylor.from_derivatives([f, second, second])
    broken = Taylor.from_derivatives([f, lambda t, y: None])
    assert "returned None" in solve(f, span, start, method=broken, step=0.1).message


def test_orders_above_sixty():
    """A step of 1.5 radii of convergence needs a continuation; one of 0.9 needs many terms."""
    problem = problems.get("logistic")
    run = solve(problem, method=Taylor(150), rtol=1e-13, atol=1e-16)
    assert run.y[:, -1] == pytest.approx(problem.exact(problem.t_span[1]), rel=1e-13)
    with pytest.raises(ValueError, match="between 1 and 250"):
        Taylor(251)


def test_steps_that_begin_to_follow_where_they_become_stable_are_not_limited_by_stability():
    """Errors fall from 5e-2 by thirteen decades; what is in the way is round-off."""
    (curve,) = convergence("van_der_pol", "CalvoMontijanoRandez65").curves
    assert curve.verdict in ("round-off", "not yet asymptotic", "as expected")
