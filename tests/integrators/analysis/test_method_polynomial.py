"""Exact polynomials: signs and roots against NumPy's floating-point roots and known factors."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrators.analysis.exact import polynomial as poly

fractions = st.fractions(min_value=-20, max_value=20, max_denominator=12)


def from_roots(roots, lead=1):
    p = (Fraction(lead),)
    for r in roots:
        p = poly.multiply(p, (-Fraction(r), Fraction(1)))
    return p


@settings(deadline=None, max_examples=60)
@given(st.lists(fractions, min_size=1, max_size=6))
def test_positive_roots_are_found_once_each(roots):
    found = [root.value() for root in poly.positive_roots(from_roots(roots))]
    expected = sorted({r for r in roots if r > 0})
    assert len(found) == len(expected)
    for x, r in zip(found, expected):
        assert abs(x - r) <= r * Fraction(1, 2**120)


@settings(deadline=None, max_examples=60)
@given(st.lists(fractions, min_size=1, max_size=5), st.sampled_from([1, -1]))
def test_first_negative_is_the_first_sign_change(roots, lead):
    p = from_roots(roots, lead)
    end = poly.first_negative(p)
    odd = sorted(r for r in set(roots) if r > 0 and roots.count(r) % 2)
    sign = lead * (-1) ** sum(r > 0 for r in roots)  # just right of 0
    if sign < 0:
        assert end == 0
    elif odd:
        assert abs(end - odd[0]) <= odd[0] * Fraction(1, 2**120)
    else:
        assert end is None
    below = poly.point_below_zero(p)
    assert (below is None) == (end is None)
    if below is not None:
        assert poly.evaluate(p, below) < 0


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=7))
def test_hurwitz_agrees_with_floating_point_roots(coefficients):
    p = poly.trim([Fraction(a) for a in coefficients])
    if len(p) < 2:
        return
    real = np.roots([float(a) for a in reversed(p)]).real
    if real.size == len(p) - 1 and np.min(np.abs(real)) < 1e-6:
        return  # on the axis, floating-point roots decide nothing
    assert poly.is_hurwitz(p) == bool(np.all(real < 0))


def test_double_roots_do_not_change_the_sign():
    touching = from_roots([2, 2, 3, 3])
    assert poly.first_negative(touching) is None
    assert poly.first_negative(from_roots([2, 2, 3, 5])) == 3
    nearly = poly.add(touching, (Fraction(-1, 10**40),))
    assert poly.first_negative(nearly) is not None


def test_common_factor_and_quotient():
    p, q = from_roots([1, 2, "1/3"]), from_roots([2, "1/3", -7])
    common = poly.common_factor(p, q)
    assert common == from_roots([2, "1/3"])
    assert poly.multiply(common, poly.quotient(p, common)) == p
    with pytest.raises(ArithmeticError, match="remainder"):
        poly.quotient(p, from_roots([5]))


def test_text():
    assert poly.text((Fraction(0), Fraction(-1), Fraction(0), Fraction(2))) == "-z + 2 z³"
    assert poly.text(()) == "0"
    assert poly.text((Fraction(1, 3),), "y") == "1/3"
