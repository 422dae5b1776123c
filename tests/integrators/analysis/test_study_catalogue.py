"""The study finds the order of every scheme of the catalogue, or claims none.

Three problems, nonlinear, non-autonomous and coupled, in doubles. Where doubles are too short to
show an order (all errors between the first asymptotic step and round-off fit into one or two
steps), the same study runs on a program that computes with 60 digits.
"""

from functools import cache

import numpy as np
import pytest

from integrators import IVP, catalogue, problems, traced
from integrators.analysis import Program, convergence
from tests.integrators.tableau.reference_stepper import integrate

pytestmark = pytest.mark.slow

PROBLEMS = ("order_rational", "order_trigonometric", "order_exponential")
HIGH = 5  # from this order on steps are chosen by the study, down to round-off
INTERVALS = {1: (256, 2048), 2: (256, 2048), 3: (45, 512), 4: (45, 512)}
STUBBORN = {"Fehlberg12", "Fehlberg23", "ESDIRK325", "ESDIRK437", "Fehlberg45"}
"""Schemes whose leading error term is so small that steps have to be chosen, too."""


@cache
def study(name):
    """Curves of all schemes on one problem, by name."""
    problem = problems.get(name)
    fast = problem.with_(f=traced(problem.f, n=problem.n))
    groups = {}
    for scheme in catalogue.names():
        order = catalogue.get(scheme).order
        limits = None if order >= HIGH or scheme in STUBBORN else INTERVALS[order]
        groups.setdefault(limits, []).append(scheme)
    curves = []
    for limits, schemes in groups.items():
        steps = None
        if limits is not None:
            steps = [2.0 / n for n in np.unique(np.geomspace(*limits, 8).round())]
        curves += convergence(fast, schemes, steps, diagnosis=False).curves
    return {curve.method: curve for curve in curves}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_scheme_is_given_a_wrong_order(problem):
    curves = study(problem)
    assert len(curves) == len(catalogue.names())
    wrong = [
        f"{c.method} of order {c.expected}: {c.estimate}"
        for c in curves.values()
        if c.estimate.found and c.expected not in c.estimate
    ]
    assert not wrong


@pytest.mark.parametrize("problem", PROBLEMS)
def test_low_orders_are_all_found(problem):
    missing = [
        f"{c.method}: {c.estimate}"
        for c in study(problem).values()
        if c.expected < HIGH and not c.estimate.found
    ]
    assert not missing


@pytest.mark.parametrize("problem", PROBLEMS)
def test_where_no_order_is_claimed_round_off_is_near(problem):
    """Nothing but round-off keeps an order from being seen: the data go down to it."""
    for curve in study(problem).values():
        if not curve.estimate.found:
            assert curve.expected >= HIGH
            assert min(e for e in curve.errors if e is not None) < 1e-12
            assert curve.estimate.reason


def many_digits(scheme):
    """A program that integrates with 60 digits."""
    from mpmath import mp, mpf

    tableau = catalogue.get(scheme)

    def run(problem, step):
        t0, t1 = problem.t_span
        steps = round((t1 - t0) / step)
        with mp.workdps(60):
            end = integrate(problem.f, problem.y0, mpf(t0), mpf(t1), steps, tableau, mpf)
        return np.array([mpf(t0), mpf(t1)]), np.column_stack([problem.y0.astype(object), end])

    return Program(run, scheme, tableau.order)


def rational_problem():
    """Nonlinear, non-autonomous, coupled, and rational: it works in any arithmetic."""

    def f(t, y):
        a, b = y
        first = -2 * t * a * a * b * (1 + t) + (b * (1 + t) - 1) * a
        return np.array([first, -b * b * a * (1 + t * t) + (a * (1 + t * t) - 1) * b * t])

    def exact(t):
        return np.array([1 / (1 + t * t), 1 / (1 + t)])

    return IVP(f, [1.0, 1.0], (0.0, 1.0), exact=exact)


# Longest and shortest steps, where they are not the usual ones: Gauss6 is asymptotic at once,
# Verner98 and Papakostas65 late; the coefficients of DormandPrince87 have 18 digits.
FEWEST_AND_MOST = {
    "Gauss6": (8, 32),
    "Verner98": (32, 128),
    "Papakostas65": (64, 512),
    "DormandPrince87": (6, 22),
}


def test_what_doubles_leave_open_shows_in_many_digits():
    from mpmath import mp

    seen = {c.method for p in PROBLEMS for c in study(p).values() if c.estimate.found}
    left_open = [name for name in catalogue.names() if name not in seen]
    assert 0 < len(left_open) < 8
    with mp.workdps(60):
        for name in left_open:
            counts = np.geomspace(*FEWEST_AND_MOST.get(name, (12, 64)), 5).round()
            steps = [1.0 / n for n in np.unique(counts)]
            (curve,) = convergence(
                rational_problem(), many_digits(name), steps, precision=1e-50, measure="max"
            ).curves
            assert curve.expected in curve.estimate, f"{name}: {curve.estimate}"
