"""Taylor expansions against sympy and mpmath; their remainders; the flat function."""

import math

import mpmath
import numpy as np
import pytest
import sympy

from integrators import analysis
from integrators.analysis.problem.taylor import multi_indices

ROUNDING = 1e-12
X, Y, Z = sympy.symbols("x y z")

ONE_VARIABLE = [
    (np.exp, 0.0, sympy.exp(X)),
    (np.cos, 0.0, sympy.cos(X)),
    (np.sin, 0.4, sympy.sin(X)),
    (lambda x: 1 / (1 + x * x), 0.5, 1 / (1 + X**2)),
    (lambda x: np.log(2 + x) * np.sqrt(1 + x), 0.1, sympy.log(2 + X) * sympy.sqrt(1 + X)),
]


@pytest.mark.parametrize(("f", "x0", "formula"), ONE_VARIABLE)
def test_one_variable(f, x0, formula):
    expansion = analysis.taylor(f, x0, 6)
    for k in range(7):
        exact = float(sympy.diff(formula, X, k).subs(X, sympy.Float(x0, 30)))
        assert expansion.derivative(k) == pytest.approx(exact, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("f", "x0", "formula"), ONE_VARIABLE)
@pytest.mark.parametrize("h", [0.5, -0.3])
def test_remainders_agree(f, x0, formula, h):
    """Integral form (with E20), Lagrange's form and the plain difference are one number."""
    expansion = analysis.taylor(f, x0, 3)
    x = x0 + h
    true = expansion.remainder(x)
    assert expansion.integral_remainder(x) == pytest.approx(true, abs=ROUNDING)
    theta = expansion.lagrange_point(x)
    assert 0 < theta < 1
    zeta = sympy.Float(x0 + theta * h, 30)
    fourth = float(sympy.diff(formula, X, 4).subs(X, zeta))
    assert fourth * h**4 / 24 == pytest.approx(true, abs=1e-11)
    lo, hi = expansion.remainder_bounds(x)
    assert lo <= true <= hi
    assert hi - lo < abs(true)
    assert abs(true) <= expansion.largest_remainder(abs(h))


def test_notable_series():
    """Notes, Eq 1.7 with the corrections of E21."""
    cosine, sine = (analysis.taylor(f, 0.0, 9) for f in (np.cos, np.sin))
    for k in range(5):
        assert cosine.coefficients[(2 * k,)] == pytest.approx((-1) ** k / math.factorial(2 * k))
        assert sine.coefficients[(2 * k + 1,)] == pytest.approx(
            (-1) ** k / math.factorial(2 * k + 1)
        )
    assert str(analysis.taylor(np.exp, 0.0, 2)) == "1 +1 h +0.5 h^2"


def several(x):
    return np.exp(x[0]) * np.sin(x[1]) + x[0] ** 2 * x[2] ** 3 / (1 + x[1] ** 2)


SEVERAL = sympy.exp(X) * sympy.sin(Y) + X**2 * Z**3 / (1 + Y**2)
POINT = (0.3, 0.7, -1.1)


def test_multi_index_form():
    """Notes, Eq 1.11: every ∂_α f/α! with |α| ≤ 4."""
    expansion = analysis.taylor(several, POINT, 4)
    at = dict(zip((X, Y, Z), (sympy.Float(p, 30) for p in POINT)))
    assert len(expansion.coefficients) == math.comb(3 + 4, 3)
    for alpha, c in expansion.coefficients.items():
        derivative = SEVERAL
        for variable, times in zip((X, Y, Z), alpha):
            derivative = sympy.diff(derivative, variable, times)
        factor = math.prod(map(math.factorial, alpha))
        assert c * factor == pytest.approx(float(derivative.subs(at)), rel=1e-11, abs=1e-11)


def test_gradient_and_hessian_form_is_the_multi_index_form():
    """Notes, Eq 1.10 equals Eq 1.11 for m = 2."""
    expansion = analysis.taylor(several, POINT, 2)
    h = np.array([0.2, -0.1, 0.3])
    quadratic = several(np.array(POINT)) + expansion.gradient @ h + h @ expansion.hessian @ h / 2
    assert expansion(np.array(POINT) + h) == pytest.approx(quadratic, abs=ROUNDING)
    assert expansion.hessian == pytest.approx(expansion.hessian.T)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_remainder_is_of_order_m_plus_one(m):
    expansion = analysis.taylor(several, POINT, m)
    h = np.array([0.2, -0.1, 0.3])
    sizes = [abs(expansion.remainder(np.array(POINT) + s * h)) for s in (0.1, 0.05)]
    assert math.log2(sizes[0] / sizes[1]) == pytest.approx(m + 1, abs=0.15)


def test_bounds_in_several_variables():
    expansion = analysis.taylor(several, POINT, 2)
    rng = np.random.default_rng(4)
    largest = expansion.largest_remainder(0.2)
    for _ in range(30):
        x = np.array(POINT) + rng.uniform(-0.2, 0.2, 3)
        true = expansion.remainder(x)
        lo, hi = expansion.remainder_bounds(x)
        assert lo <= true <= hi
        assert abs(true) <= largest
        assert expansion.integral_remainder(x) == pytest.approx(true, abs=ROUNDING)


def test_more_pieces_sharpen_the_bounds():
    expansion = analysis.taylor(np.exp, 0.0, 2)
    lagrange = expansion.remainder_bounds(1.0, pieces=1)
    assert lagrange == pytest.approx((1 / 6, math.e / 6), rel=1e-9)  # eˣ runs from 1 to e
    widths = [np.diff(expansion.remainder_bounds(1.0, pieces))[0] for pieces in (1, 4, 64)]
    assert widths[0] > 2 * widths[1] > 16 * widths[2]
    lo, hi = expansion.remainder_bounds(1.0, 64)
    assert lo <= math.e - 2.5 <= hi


def test_untraceable_functions_are_fitted():
    expansion = analysis.taylor(lambda x: math.exp(x), 0.5, 3)
    assert not expansion.exact
    for k in range(4):
        assert expansion.derivative(k) == pytest.approx(math.exp(0.5), rel=1e-3)
    with pytest.raises(ValueError, match="cannot be traced"):
        expansion.remainder_bounds(0.6)
    two = analysis.taylor(lambda x: math.sin(x[0]) * math.exp(x[1]), [0.4, 0.2], 2)
    factor = math.exp(0.2)
    assert two.gradient == pytest.approx([math.cos(0.4) * factor, math.sin(0.4) * factor], rel=1e-4)
    assert two.hessian == pytest.approx(
        np.array([[-math.sin(0.4), math.cos(0.4)], [math.cos(0.4), math.sin(0.4)]]) * factor,
        abs=1e-3,
    )


def test_indices():
    assert len(list(multi_indices(3, 4))) == math.comb(6, 2)
    assert all(sum(a) == 4 for a in multi_indices(3, 4))


# ------------------------------------------------------------------------------ the flat function


@pytest.mark.parametrize("k", [0, 1, 2, 5, 8])
def test_flat_derivatives(k):
    with mpmath.workdps(40):
        for x in (0.3, 0.5, 1.0, 2.5):
            exact = mpmath.diff(lambda u: mpmath.exp(-1 / u**2), x, k)
            assert analysis.flat_derivative(x, k) == pytest.approx(float(exact), rel=1e-9)
    assert analysis.flat_derivative(np.array([0.0, -1.0]), k).tolist() == [0.0, 0.0]


def test_all_derivatives_vanish_from_the_right():
    for k in range(12):
        near = abs(analysis.flat_derivative(np.array([0.1, 0.08, 0.06, 0.04, 0.02]), k))
        assert np.all(np.diff(near) <= 0)
        assert near[-1] == 0.0


def test_the_expansion_misses_the_function():
    """The polynomial is zero to the left and to the right; the function is not."""
    for order in (2, 10, 30):
        expansion = analysis.flat_expansion(order)
        assert expansion(0.5) == 0.0
        assert expansion.remainder(0.5) == pytest.approx(math.exp(-4))
        assert expansion.remainder(-0.5) == 0.0


# ------------------------------------------------------------------------------ bad input


def test_bad_input():
    with pytest.raises(TypeError, match="function"):
        analysis.taylor(3, 0.0, 2)
    with pytest.raises(ValueError, match="order"):
        analysis.taylor(np.exp, 0.0, -1)
    with pytest.raises(ValueError, match="order"):
        analysis.taylor(np.exp, 0.0, 2.5)
    with pytest.raises(ValueError, match="finite"):
        analysis.taylor(np.exp, np.nan, 2)
    with pytest.raises(ValueError, match="nothing to expand"):
        analysis.taylor(np.log, 0.0, 2)
    with pytest.raises(ValueError, match="does not exist"):
        analysis.taylor(np.sqrt, 0.0, 2)
    with pytest.raises(ValueError, match="one number"):
        analysis.taylor(lambda x: x, [1.0, 2.0], 2)
    with pytest.raises(ValueError, match="terms"):
        analysis.taylor(lambda x: x[0], np.zeros(30), 6)
    expansion = analysis.taylor(np.exp, 0.0, 1)
    with pytest.raises(ValueError, match="components"):
        expansion([1.0, 2.0])
    with pytest.raises(ValueError, match="order 2"):
        _ = expansion.hessian
    with pytest.raises(ValueError, match="radius"):
        expansion.largest_remainder(-1.0)
    with pytest.raises(ValueError, match="whole number"):
        analysis.flat_derivative(1.0, 1.5)
