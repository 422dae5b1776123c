"""Verdicts of convergence studies: the interval contains the order, or the obstacle is named.

Pairs that once got a wrong verdict or none, and a seeded sample of all pairs; the whole table is
``benchmarks/verdicts.py``.
"""

import random
from decimal import Decimal
from functools import cache

import mpmath
import numpy as np
import pytest

from integrators import catalogue, problems, solve
from integrators.analysis import convergence
from integrators.analysis.study.convergence_runs import _calls_for_digits, _doubted
from integrators.analysis.study.slopes import estimate_order
from integrators.methods.precise import ManyDigits, NotAvailable
from integrators.methods.taylor import Taylor
from integrators.problem import IVP

PLAIN = (
    "dahlquist", "harmonic_oscillator", "linear_growth", "logistic", "minus_2ty2", "order_rational",
    "order_separable", "order_trigonometric", "order_exponential", "order_mechanical", "rigid_body",
    "blow_up",
)  # fmt: skip
FAMILIES = sorted({entry.family for entry in catalogue.entries()})


def drawn(seed):
    """Two methods of each family, each on a problem of its own."""
    chance = random.Random(seed)
    of = {family: [e.name for e in catalogue.entries() if e.family == family]
          for family in FAMILIES}  # fmt: skip
    return [
        (chance.choice(PLAIN), name) for names in of.values() for name in chance.sample(names, 2)
    ]


SAMPLE = drawn(20)


@cache
def sampled(problem, method):
    return curve_of(problem, method)


def curve_of(problem, method, **options):
    (curve,) = convergence(problem, [method], **options).curves
    return curve


@pytest.mark.parametrize(
    ("problem", "method", "order"),
    [
        ("kepler", "RK4", 4),  # slopes fall from 4.74 to 4.02
        ("kepler", "DOPRI5", 5),
        ("pendulum", "Gauss4", 8),
        ("pendulum", Taylor(8), 8),
        ("pendulum", Taylor(20), 20),  # settles where the error is 1e-30
        ("lotka_volterra", "Gauss4", 8),
        ("rigid_body", "DOP853", 8),
        ("logistic", "DOP853", 8),
        ("brusselator", "DOP853", 8),
        ("order_separable", "DOP853", 8),  # doubles: no error is clear of round-off
        ("linear_growth", "Verner98", 9),
        ("logistic", "Verner65Eight", 6),  # slopes fall to 5.84 and rise again
        ("heat_1d", "Gauss4", 8),  # slopes scatter: the largest error lies between grid points
        ("heat_1d", "RadauIIA1", 1),  # 0.95 ± 0.04 where it was once thought settled
        ("blow_up", "Fehlberg23", 2),  # slopes fall from 3, below 2.5 with thousands of steps
    ],
)
def test_a_straight_line_has_its_number(problem, method, order):
    curve = curve_of(problem, method)
    assert order in curve.estimate, curve.estimate
    assert curve.estimate.high - curve.estimate.low < 0.5
    assert curve.verdict == "as expected"
    assert not curve.findings


@pytest.mark.parametrize(("problem", "method"), SAMPLE)
def test_a_sample_of_all_pairs(problem, method):
    curve = sampled(problem, method)
    estimate = curve.estimate
    if estimate.found:
        assert catalogue.get(method).order in estimate or curve.verdict == "higher"
    else:
        assert curve.verdict in ("not yet asymptotic", "round-off")
        assert estimate.reason


def test_most_of_the_sample_has_an_order():
    found = sum(sampled(problem, method).estimate.found for problem, method in SAMPLE[:12])
    assert found >= 11
    assert {catalogue.entry(method).family for _, method in SAMPLE} == set(FAMILIES)


def test_no_stiffness_where_steps_resolve_everything():
    """Kepler's eigenvalues are of size 4, the steps down to 0.02: that is not what is missing."""
    curve = curve_of("kepler", "DOP853", steps=[20 / n for n in (64, 128, 256, 512, 1024)])
    assert not curve.estimate.found
    assert "order reduction by stiffness" not in [finding.cause for finding in curve.findings]


def test_many_digits_are_told():
    study = convergence("logistic", ["DOP853"])
    assert study.curves[0].finer >= 3
    assert any("shortest steps were run with" in line for line in study.remarks())
    assert min(e for e in study.curves[0].errors if e) < 1e-17  # far below doubles


def test_an_order_that_seems_too_high_is_doubted():
    """DOPRI5 on van der Pol's equation: its leading error term is small, slopes are near 5.9."""
    steps = [20 / n for n in (2000, 2828, 4000, 5656, 8000)]
    study = convergence("van_der_pol", "DOPRI5", steps)
    assert study.curves[0].verdict == "higher"
    assert any("shorter steps, which may show" in line for line in study.remarks())


def test_order_reduction_is_still_told():
    curve = curve_of("prothero_robinson", "ARK548")
    assert curve.verdict == "too low"
    assert curve.findings[0].cause == "order reduction by stiffness"


# -------------------------------------------------------------------- many digits


def test_runs_with_many_digits_that_were_too_few_leave_no_trace(monkeypatch):
    """Steps of theirs that doubles have taken, too, are still doubles': their floor counts."""
    monkeypatch.setattr("integrators.methods.precise.system.MOST_OPERATIONS", 40_000)
    curve = curve_of("pendulum", Taylor(20))  # one affordable run, with 91 steps
    assert curve.finer == 0
    assert (curve.rows[-1].steps, curve.estimate.marks[-1]) == (91, "round-off")
    assert curve.verdict == "round-off"


def test_the_reference_of_many_digits_is_the_elliptic_function():
    """The pendulum from rest: sin(θ/2) = k cd(ωt), by another library with 50 digits."""
    problem = problems.get("pendulum")
    pendulum = ManyDigits(problem)
    square = -float(pendulum.f(Decimal(0), [Decimal(np.pi / 2), Decimal(0)])[1])  # g/l
    times = np.array([Decimal("0.1"), Decimal("2.5"), Decimal(10)], dtype=object)
    found = pendulum.along(times)
    with mpmath.workdps(50):
        k = mpmath.sin(mpmath.mpf(float(problem.y0[0])) / 2)
        rate = mpmath.sqrt(mpmath.mpf(square))
        for column, t in enumerate(times):
            angle = 2 * mpmath.asin(k * mpmath.ellipfun("cd", rate * mpmath.mpf(str(t)), m=k * k))
            assert abs(mpmath.mpf(str(found[0, column])) - angle) < 1e-29


def test_steps_of_many_digits_are_those_of_doubles():
    problem = problems.get("kepler")
    for name in ("RK4", "DOP853", "Gauss3", "SDIRK4"):
        _, y = ManyDigits(problem.with_(t_span=(0.0, 2.0))).run(catalogue.get(name), 40)
        twin = solve(problem.with_(t_span=(0.0, 2.0)), method=name, step=0.05)
        np.testing.assert_allclose(y[:, -1].astype(float), twin.y[:, -1], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda t, y: np.abs(y), "branches"),
        (lambda t, y: [float(y[0])], "traced"),
    ],
)
def test_what_many_digits_cannot_do_is_said(f, why):
    with pytest.raises(NotAvailable, match=why):
        ManyDigits(IVP(f, [1.0], (0.0, 1.0))).check_for_study()


def test_no_stiffness_where_steps_are_long_because_the_order_is_high():
    """Order 8 follows exp(−t) with h|λ| of 2.5; that coefficients have 14 digits is in the way."""
    curve = curve_of("logistic", "ESDIRK8516")
    assert curve.verdict == "round-off"
    assert [finding.cause for finding in curve.findings] == ["coefficients of few digits"]


def test_wrong_weights_are_named_where_nothing_was_expected():
    def mine(f, t, y, h):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 3 * k3 + f(t + h, y + h * k3))

    curve = curve_of("minus_2ty2", mine)
    assert curve.verdict == "no convergence"
    assert "b3 is 1/3 there, 1/2 here" in curve.findings[0].evidence
    assert max(row.steps for row in curve.rows) < 2000  # no use in going on
    assert "0 of" in str(convergence("minus_2ty2", mine).summary)


def test_no_stiffness_where_a_solution_is_fast_itself():
    """Near the Moon components of Arenstorf's orbit decay, and others grow, at the same rate."""
    steps = [17.0652166 / n for n in (2000, 3000, 4000, 6000)]
    curve = curve_of("arenstorf", "Verner87", steps=steps)
    assert not curve.estimate.found
    assert curve.verdict in ("not yet asymptotic", "round-off", "no convergence")


def test_stiffness_of_a_differential_algebraic_equation():
    """By eigenvalues of the pencil (∂f/∂y, M), without the infinite ones."""
    curve = curve_of("robertson_dae", "Crouzeix3")
    assert curve.verdict == "stiff"
    assert "of size 1e+04" in curve.findings[0].evidence


def test_an_error_that_has_just_changed_its_sign_is_no_low_order():
    """Errors of Verner65Eight, of order 6, on the pendulum: slope 5 below h = 0.03."""
    counts = [128, 152, 181, 215, 256, 304, 362, 431, 512, 609, 724, 861, 1024]
    errors = [2.1e-7, 5.8e-8, 1.5e-8, 3.8e-9, 8.9e-10, 1.9e-10, 5.6e-11, 2.3e-11, 9.3e-12, 3.8e-12,
              1.6e-12, 6.5e-13, 2.5e-13]  # fmt: skip
    estimate = estimate_order([10 / n for n in counts], errors, 7e-13)
    assert estimate.high < 6
    assert _calls_for_digits(estimate, 6)
    assert not _doubted(estimate, 6).found
    assert not _calls_for_digits(estimate, 5)
    low = estimate_order([1 / n for n in counts], [n**-5.0 for n in counts], 1024**-5.0)
    assert not _calls_for_digits(low, 6)  # a straight line that is too low needs no more digits
    assert _doubted(low, 6) is low


@pytest.mark.parametrize(
    ("problem", "method", "verdict"),
    [
        ("square_root", "Gauss1", "not smooth"),  # ∂f/∂y is infinite at the start
        ("arenstorf_3", "RadauIIA1", "not yet asymptotic"),  # no step follows the solution
        ("arenstorf", "RadauIIA1", "not yet asymptotic"),  # the same, and others fail
        ("pleiades", "RadauIIA1", "not yet asymptotic"),  # errors of 0.15 stay, the runs do not
        ("arenstorf_3", "Alexander2", "not yet asymptotic"),  # 1.47 ± 0.48 is no order
        ("friction_oscillator", "Gauss4", "not smooth"),
        ("pendulum_index2", "Gauss2", "no convergence"),  # of multipliers: s − 2 = 0
        ("oregonator", "Trapezoid", "stiff"),
        ("van_der_pol_100", "RK4", "not yet asymptotic"),  # 3.74, on its way up
    ],
)
def test_what_is_in_the_way_is_named(problem, method, verdict):
    assert curve_of(problem, method).verdict == verdict


def test_a_scheme_of_the_catalogue_is_no_misprint_of_another():
    def own(f, t, y, h):
        return y + h * f(t, y)

    for method in ("RadauIIA1", "ExplicitEuler", own):
        curve = curve_of("minus_2ty2", method)
        assert not any("misprint" in finding.cause for finding in curve.findings)


def test_round_off_of_multipliers_hides_no_order():
    curve = curve_of("pendulum_ggl", "Gauss6")
    assert curve.verdict == "too low"
    assert (
        4 in curve.estimate
    )  # s − 2 for multipliers of index 2 and even s (Hairer, Lubich, Roche)


def test_an_order_that_the_slopes_leave_is_not_claimed():
    steps = 20.0 / np.array([861, 1024, 1218, 1448, 1722, 2048, 2435])
    errors = [8.57e-8, 3.53e-8, 1.523e-8, 6.377e-9, 2.547e-9, 9.87e-10, 3.754e-10]  # Huta6, Kepler
    estimate = estimate_order(steps, errors, 1e-10)
    assert not estimate.found
    assert "leaves" in estimate.reason
