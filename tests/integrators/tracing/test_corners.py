"""Corners: slopes where powers vanish and beside singular branches, enclosures near overflow."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from integrators import Event, Taylor, solve, traced, where
from integrators.tracing import trace
from integrators.tracing.calculus.interval import INTERVALS
from integrators.tracing.graph import CONDITIONS, UNARY
from tests.integrators.tracing.test_derivatives import differences

# Two exact derivatives differ by rounding only.
EXACT = 1e-12
NOTHING = (math.nan, math.nan)


def modes(F, t, y, p=()):
    """The Jacobian of F: as it is, column by column, row by row, in lanes, and interpreted."""
    n, outputs = len(y), len(F.graph.outputs)
    lanes = F.jacobian().machine_code(2)
    twice = [np.repeat(np.array(x, dtype=float)[:, None], 2, axis=1) for x in (y, p)]
    return {
        "jacobian": F.jacobian()(t, y, p),
        "jvp": np.array([F.jvp()(t, y, v, p) for v in np.eye(n)]).T,
        "vjp": np.array([F.vjp()(t, y, w, p) for w in np.eye(outputs)]),
        "lanes": lanes(t, *twice)[:, 1].reshape(outputs, n),
        "interpreted": np.array(F.jacobian().graph.evaluate([t, *y, *p]), dtype=float).reshape(
            outputs, n
        ),
    }


# --- powers at zero -----------------------------------------------------------------------------

#: Functions of y and t that are o(y) at 0: their derivative there is 0.
FLAT_AT_ZERO = {
    "y^1.5": lambda y, t: y**1.5,
    "y^2.5": lambda y, t: y**2.5,
    "y^15.5": lambda y, t: y**15.5,
    "signed power": lambda y, t: np.sign(y) * abs(y) ** 1.5,
    "y sqrt y": lambda y, t: y * np.sqrt(y),
    "y sqrt|y|": lambda y, t: y * np.sqrt(abs(y)),
    "|y| sqrt|y|": lambda y, t: abs(y) * np.sqrt(abs(y)),
    "y cbrt y": lambda y, t: np.cbrt(y) * y,
    "y y^0.3": lambda y, t: y * y**0.3,
    "y^1.3 y^0.3": lambda y, t: y**1.3 * y**0.3,
    "with factors": lambda y, t: -3 * y / 2 * np.sqrt(2 * y),
    "with a stranger": lambda y, t: y * np.sin(t) * np.sqrt(y),
    "drag": lambda y, t: y * np.hypot(y, 3 * y),
    "inside": lambda y, t: np.sin(y) ** 1.5 + np.cos(y**2.5),
}


@pytest.mark.parametrize("name", FLAT_AT_ZERO)
def test_products_with_roots_have_their_limit_at_zero(name):
    F = traced(lambda t, y: [FLAT_AT_ZERO[name](y[0], t)], n=1)
    for mode, J in modes(F, 0.7, [0.0]).items():
        assert J.tolist() == [[0.0]], mode
    for y in (0.3, 0.6):
        expected = differences(F, 0.7, [y])
        for mode, J in modes(F, 0.7, [y]).items():
            np.testing.assert_allclose(J, expected, rtol=EXACT, err_msg=mode)


@pytest.mark.parametrize("name", ["signed power", "y sqrt|y|", "|y| sqrt|y|", "y cbrt y", "drag"])
def test_products_with_roots_of_negative_numbers(name):
    F = traced(lambda t, y: [FLAT_AT_ZERO[name](y[0], t)], n=1)
    expected = differences(F, 0.7, [-0.6])
    for mode, J in modes(F, 0.7, [-0.6]).items():
        np.testing.assert_allclose(J, expected, rtol=EXACT, err_msg=mode)


def test_second_derivatives_of_higher_powers_at_zero():
    for power, second in ((1.5, np.inf), (2.5, 0.0), (3.5, 0.0)):
        F = traced(lambda t, y, p=power: [y[0] ** p], n=1, params=0)
        assert F.hvp()(0.0, [0.0], [1.0], [1.0]).tolist() == [second]
        y, expected = 0.7, power * (power - 1) * 0.7 ** (power - 2)
        assert F.hvp()(0.0, [y], [1.0], [1.0])[0] == pytest.approx(expected, rel=EXACT)


def test_half_powers_cost_a_root_and_their_slopes_no_more():
    assert trace(lambda x: x[0] ** 1.5, 1).operations() == {"mul": 1, "sqrt": 1, "total": 2}
    F = traced(lambda t, y: [y[0] ** 1.5], n=1)
    assert F.jacobian().operations() == {"mul": 1, "sqrt": 1, "total": 2}


def test_a_norm_has_slope_0_at_0_as_abs_has_and_its_own_elsewhere():
    F = traced(lambda t, y: [np.linalg.norm(y), y[0] * np.linalg.norm(y)], n=2)
    for mode, J in modes(F, 0.0, [0.0, 0.0]).items():
        assert J.tolist() == [[0.0, 0.0], [0.0, 0.0]], mode
    for x in (1e-150, 1e-3, 1e150):
        for mode, J in modes(F, 0.0, [3 * x, -4 * x]).items():
            assert J[0] == pytest.approx([0.6, -0.8], rel=EXACT), mode


def test_a_sum_doubled_often_is_searched_once():
    def doubled(t, y):
        total = y[0] * y[0]
        for _ in range(200):
            total = total + total
        return [np.sqrt(total)]

    assert traced(doubled, n=1).jacobian()(0.0, [0.5])[0, 0] == pytest.approx(2.0**100)


def test_implicit_methods_start_where_a_power_vanishes():
    """y' = 1 − y^1.5 from 0: the time to reach y is the integral of dy/(1 − y^1.5)."""
    F = traced(lambda t, y: 1 - y**1.5, n=1)
    solution = solve(F, (0.0, 1.0), [0.0], method="RADAU5", rtol=1e-8, atol=1e-10)
    assert solution.success, solution.message
    time = mpmath.quad(lambda y: 1 / (1 - y**1.5), [0, solution.y[0, -1]])
    # some tens of steps, each with an error of the tolerance
    assert float(time) == pytest.approx(1.0, abs=1e-6)


def test_implicit_methods_start_from_rest_under_drag():
    """Falling with drag proportional to |v|v from rest: v = tanh t."""
    F = traced(lambda t, y: [-np.hypot(y[0], y[1]) * y[0], 1 - np.hypot(y[0], y[1]) * y[1]], n=2)
    solution = solve(F, (0.0, 2.0), [0.0, 0.0], method="RADAU5", rtol=1e-8, atol=1e-10)
    assert solution.success, solution.message
    np.testing.assert_allclose(solution.y[:, -1], [0.0, np.tanh(2.0)], atol=1e-7)


def test_slope_of_a_power_in_its_exponent_where_the_base_vanishes():
    F = traced(lambda t, y, p: [y[0] ** p[0]], n=1, params=1)
    for p in (0.5, 1.0, 1.7, 2.0):
        assert F.parameter_jacobian()(0.0, [0.0], [p]).tolist() == [[0.0]]
    assert F.parameter_jacobian()(0.0, [0.0], [0.0]).tolist() == [[-np.inf]]
    assert np.isnan(F.parameter_jacobian()(0.0, [-1.0], [2.0])).all()
    y, p = 0.3, 1.7
    assert F.parameter_jacobian()(0.0, [y], [p])[0, 0] == pytest.approx(y**p * np.log(y), rel=EXACT)


# --- branches -----------------------------------------------------------------------------------

GUARDED = {
    "root": (lambda y: [where(y[0] > 0, np.sqrt(y[0]), 0.0), y[1]], [-1.0, 2.0], [[0, 0], [0, 1]]),
    "pole": (
        lambda y: [where(y[0] != 0, np.sin(y[0]) / y[0], 1.0), y[0]],
        [0.0, 1.0],
        [[0, 0], [1, 0]],
    ),
    "nested": (
        lambda y: [
            where(y[0] > 0, where(y[1] > 0, np.log(y[0]) * np.log(y[1]), np.sqrt(y[0])), y[1] ** 2),
            y[0] * y[1],
        ],
        [-1.0, 3.0],
        [[0, 6], [3, -1]],
    ),
    "used twice": (
        lambda y: [
            where(y[0] > 0, np.log(y[0]), y[1]),
            y[0] * where(y[0] > -2, y[1] ** 3, 3 * np.log(y[0])),
        ],
        [-1.0, 2.0],
        [[0, 1], [8, -12]],
    ),
    "min": (lambda y: [np.minimum(1 / y[0], 2.0), y[1]], [0.0, 1.0], [[0, 0], [0, 1]]),
    "chain": (
        lambda y: [where(y[0] > 0, np.exp(-1 / np.sqrt(y[0])) * y[1] ** 2, y[1]), y[0]],
        [0.0, 1.0],
        [[0, 1], [1, 0]],
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_the_side_not_taken_does_not_poison(name):
    f, y, expected = GUARDED[name]
    F = traced(lambda t, y: f(y), n=2)
    for mode, J in modes(F, 0.0, y).items():
        np.testing.assert_allclose(J, expected, rtol=EXACT, err_msg=mode)


@pytest.mark.parametrize("name", GUARDED)
def test_second_derivatives_beside_a_singular_side(name):
    f, y, _ = GUARDED[name]
    F = traced(lambda t, y: f(y), n=2)
    w, v, h = np.array([0.7, 1.3]), np.array([0.0, 1.0]), 1e-4
    y = np.array(y)
    numeric = (F.vjp()(0.0, y + h * v, w) - F.vjp()(0.0, y - h * v, w)) / (2 * h)
    assert np.isfinite(numeric).all()
    # central differences of at most cubic functions: h², and an ulp over h
    np.testing.assert_allclose(F.hvp()(0.0, y, w, v), numeric, rtol=1e-7, atol=1e-10)


def test_a_node_that_both_sides_use_is_always_used():
    """A root under both sides is really singular at 0: no branch may hide it."""
    F = traced(lambda t, y: [where(y[1] > 0, 2 * np.sqrt(y[0]), np.sqrt(y[0]))], n=2, outputs=1)
    for w in (1.0, -1.0):
        assert F.vjp()(0.0, [0.0, w], [1.0])[0] == np.inf
    assert F.vjp()(0.0, [4.0, 1.0], [1.0]).tolist() == [0.5, 0.0]
    assert F.vjp()(0.0, [4.0, -1.0], [1.0]).tolist() == [0.25, 0.0]


# --- conditions and slopes far out ---------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), list(itertools.product((0.0, 2.0, -1.0), (0.0, 5.0))))
def test_logical_operations_of_numbers_are_0_or_1(a, b):
    def f(t, y):
        number = 0 * y[0] + a
        return [
            np.logical_and(number, b) * y[0],
            np.logical_or(number, b) * y[0],
            np.logical_and(number, number) * y[0],
            np.logical_not(np.logical_not(number)) * y[0],
            np.logical_and(y[0], y[0]) * 1.0,
        ]

    expected = [3.0 * bool(a and b), 3.0 * bool(a or b), 3.0 * bool(a), 3.0 * bool(a), 1.0]
    F = traced(f, n=1, outputs=5)
    assert F(0.0, [3.0]).tolist() == expected


def test_a_condition_and_its_opposite():
    assert trace(lambda x: where((x[0] > 0) & ~(x[0] > 0), 1.0, 2.0), 1).is_constant
    assert trace(lambda x: where(~(x[0] > 0) | (x[0] > 0), 1.0, 2.0), 1).evaluate([3.0]) == [1.0]


@pytest.mark.parametrize("scale", [1e-307, 1e-200, 1e-150, 1.0, 1e151, 1e200, 1e307])
def test_slopes_of_the_angle_at_every_scale(scale):
    F = traced(lambda t, y: [np.arctan2(y[0], y[1])], n=2, outputs=1)
    y = [0.6 * scale, -0.8 * scale]
    for mode, J in modes(F, 0.0, y).items():
        assert J[0] == pytest.approx([-0.8 / scale, -0.6 / scale], rel=EXACT, abs=0.0), mode


def test_bounds_of_the_slopes_of_the_angle_stay_sharp():
    F = traced(lambda t, y: [np.arctan2(y[0], y[1])], n=2, outputs=1)
    lo, hi = F.jacobian().interval(([1.0, 1.0], [2.0, 2.0]))
    np.testing.assert_allclose(lo, [[1 / 8, -1.0]], rtol=1e-14)
    np.testing.assert_allclose(hi, [[1.0, -1 / 8]], rtol=1e-14)


@pytest.mark.parametrize("x", [0.0, 0.5, 5.0, -20.0, 100.0, 350.0, 800.0, -1e300])
def test_slope_of_tanh_keeps_its_digits(x):
    F = traced(lambda t, y: [np.tanh(y[0])], n=1)
    with mpmath.workdps(30):
        first = mpmath.sech(x) ** 2 if abs(x) < 1e3 else 0.0
        second = -2 * first * mpmath.tanh(x)
    for mode, J in modes(F, 0.0, [x]).items():
        assert J[0, 0] == pytest.approx(float(first), rel=EXACT, abs=0.0), mode
    found = F.hvp()(0.0, [x], [1.0], [1.0])[0]
    assert found == pytest.approx(float(second), rel=EXACT, abs=0.0)


# --- intervals ----------------------------------------------------------------------------------


def _real(f, domain=lambda *x: True):
    """A function of mpmath that is None outside its domain."""
    return lambda *x: f(*x) if domain(*x) else None


def _real_pow(x, y):
    if x < 0:
        return None if y != mpmath.floor(y) else x ** int(y)
    if x == 0:
        return None if y <= 0 else mpmath.mpf(0)
    return x**y


REAL = {
    **{op: _real(getattr(mpmath, op)) for op in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{op: _real(getattr(mpmath, op)) for op in ("atan", "asinh", "exp", "expm1", "floor", "sign")},
    **{op: _real(getattr(mpmath, op), lambda x: abs(x) <= 1) for op in ("asin", "acos")},
    "acosh": _real(mpmath.acosh, lambda x: x >= 1),
    "atanh": _real(mpmath.atanh, lambda x: abs(x) < 1),
    "log": _real(mpmath.log, lambda x: x > 0),
    "log1p": _real(mpmath.log1p, lambda x: x > -1),
    "sqrt": _real(mpmath.sqrt, lambda x: x >= 0),
    "neg": _real(lambda x: -x),
    "abs": _real(abs),
    "square": _real(lambda x: x * x),
    "add": _real(lambda x, y: x + y),
    "sub": _real(lambda x, y: x - y),
    "mul": _real(lambda x, y: x * y),
    "div": _real(lambda x, y: x / y, lambda x, y: y != 0),
    "pow": _real_pow,
    "atan2": _real(mpmath.atan2, lambda y, x: x != 0 or y != 0),
    "min": _real(min),
    "max": _real(max),
}


def _number(rng, largest):
    """A double of any sign and any size up to about 10^largest."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(scale=3)
    if kind == 1:
        return float(rng.integers(-4, 5))
    if kind == 2:
        return rng.choice([-1, 1]) * rng.uniform(700, 760)
    return rng.choice([-1, 1]) * 10.0 ** rng.uniform(-largest, largest)


def _interval(rng, largest):
    a = _number(rng, largest)
    width = abs(a) * 10.0 ** rng.uniform(-15, 1) if rng.integers(2) else 0.0
    b = a + width if rng.integers(3) else _number(rng, largest)
    return float(min(a, b)), float(max(a, b))


def _samples(rng, interval):
    lo, hi = interval
    inner = [lo + (hi - lo) * u for u in rng.uniform(size=3)] if hi - lo < np.inf else []
    whole = [math.floor(x) for x in (*inner, hi) if abs(x) < 1e6]
    return [x for x in (lo, hi, 0.0, 1.0, -1.0, *inner, *whole) if lo <= x <= hi]


def test_the_table_of_real_functions_is_complete():
    assert set(REAL) == set(INTERVALS) - CONDITIONS - {"select"}


@pytest.mark.parametrize("op", sorted(REAL))
def test_enclosures_contain_real_values_at_every_scale(op):
    rng = np.random.default_rng(17)
    arguments = 1 if op in UNARY or op == "square" else 2
    trigonometric = op in ("sin", "cos", "tan")
    inside = 0
    with mpmath.workdps(60):
        for _ in range(150):
            boxes = [_interval(rng, 16 if trigonometric else 307) for _ in range(arguments)]
            if op == "pow":  # the real value has as many digits as the exponent
                boxes[1] = _interval(rng, 3)
            lo, hi = (mpmath.mpf(x) for x in INTERVALS[op](*boxes))
            for point in itertools.product(*(_samples(rng, box) for box in boxes)):
                value = REAL[op](*(mpmath.mpf(float(x)) for x in point))
                if value is not None:
                    assert lo <= value <= hi, (boxes, point)
                    inside += 1
    assert inside > 100


@pytest.mark.parametrize("op", sorted(REAL))
def test_what_is_undefined_everywhere_stays_so(op):
    arguments = 1 if op in UNARY or op == "square" else 2
    for k in range(arguments):
        boxes = [(0.5, 0.7)] * arguments
        boxes[k] = NOTHING
        assert np.isnan(INTERVALS[op](*boxes)).all()


def test_functions_of_an_undefined_root():
    def f(t, y):
        root = np.sqrt(y[0])
        return [np.sign(root), np.minimum(1.0, root), np.maximum(root, 1.0), abs(root), 2 * root]

    lo, hi = traced(f, n=1, outputs=5).interval(([-2.0], [-1.0]))
    assert np.isnan([lo, hi]).all()


def test_powers_with_uncertain_exponents():
    F = traced(lambda t, y, p: [y[0] ** p[0]], n=1, params=1)
    lo, hi = F.interval(([-2.0], [1.0]), p=([1.0], [3.0]))
    np.testing.assert_allclose([lo[0], hi[0]], [-8.0, 4.0], rtol=1e-14)
    lo, hi = F.interval(([-2.0], [-1.0]), p=([1.2], [1.8]))
    assert np.isnan([lo, hi]).all()
    lo, hi = F.interval(([-2.0], [-1.0]), p=([1.2], [2.8]))
    np.testing.assert_allclose([lo[0], hi[0]], [1.0, 4.0], rtol=1e-14)
    lo, hi = F.interval(([-3.0], [-2.0]), p=([-np.inf], [-1.0]))
    np.testing.assert_allclose([lo[0], hi[0]], [-0.5, 0.5], rtol=1e-14)


def test_lower_bounds_do_not_overflow():
    largest = np.finfo(float).max
    F = traced(
        lambda t, y: [
            np.exp(y[0]),
            np.log(np.exp(y[0])),
            -np.sinh(y[0]),
            abs(1e138 * y[0]) ** 2.3,
            (1e200 * y[0]) ** 2,
            np.exp(y[0]) - np.exp(y[0] + 1.0),
        ],
        n=1,
        outputs=6,
    )
    lo, hi = F.interval(([711.0], [712.0]))
    assert np.all(lo[[0, 3, 4]] <= largest)
    assert np.all(hi[[0, 1, 3, 4]] == np.inf)
    assert lo[1] <= 711.0
    assert lo[1] == pytest.approx(np.log(largest))
    assert lo[2] == -np.inf
    assert hi[2] >= -largest
    assert (lo[5], hi[5]) == (-np.inf, np.inf)


@pytest.mark.parametrize("x", [1e-100, 1e-160, 1e-163, 1e-170, 1e-180, 0.0])
def test_slope_of_a_norm_where_squares_underflow(x):
    """Between 0, as at zero, and 1, as elsewhere; squares below 1e-308 have few digits or one."""
    J = traced(lambda t, y: [np.sqrt(y[0] * y[0] + y[1] * y[1])] * 2, n=2).jacobian()
    slope = J(0.0, [x, 0.0])[0, 0]
    assert 0.0 <= slope <= 1.5
    assert x < 1e-150 or slope == pytest.approx(1.0)


def test_conditions_and_their_opposites_in_every_order():
    """Never both, always one of them, however they are written; and the graph knows it."""

    def f(t, y):
        a, b = y[0] > 0.3, y[1] < t
        conditions = [a & ~a, ~a & a, a | ~a, ~a | a, a & a, ~(~a), a & ~b, ~a | b, ~(a & b)]
        return [where(c, 1.0, 2.0) for c in conditions]

    def plain(t, y):
        a, b = bool(y[0] > 0.3), bool(y[1] < t)
        nots = not a, not b
        truths = [False, False, True, True, a, a, a and nots[1], nots[0] or b, not (a and b)]
        return [1.0 if c else 2.0 for c in truths]

    g = traced(f, n=2, outputs=9)
    for y in itertools.product((0.1, 0.5), (-1.0, 1.0)):
        assert g(0.0, np.array(y)).tolist() == plain(0.0, y)
        assert g.graph.evaluate([0.0, *y]) == plain(0.0, y)
    constants = [g.graph.ops[node] == "const" for node in g.graph.outputs]
    assert constants == [True] * 4 + [False] * 5


@pytest.mark.parametrize("known", [None, 1])
@pytest.mark.parametrize("method", ["DOP853", "RADAU5", Taylor(8)])
def test_parameters_may_be_those_of_events_alone(known, method):
    falling = Event(lambda t, y, p: y[0] - p[0], terminal=True)
    for f in (lambda t, y: -y, traced(lambda t, y: -y, n=known)):
        run = solve(f, (0, 5), [1.0], params=[0.5], events=falling, method=method, rtol=1e-8)
        assert run.t[-1] == pytest.approx(np.log(2), abs=1e-6)
