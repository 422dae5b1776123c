"""Random expression graphs for the tests: every operation, well-conditioned on purpose.

A node is kept inside a range where its function is smooth and does not magnify errors much, so
that two evaluations which differ only by rounding stay within a stated tolerance.
"""

import numpy as np
from hypothesis import strategies as st

from integrators.tracing import where

UNARY = {
    "neg": lambda x: -x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": lambda x: np.tan(np.sin(x)),
    "asin": lambda x: np.arcsin(0.5 * np.sin(x)),
    "acos": lambda x: np.arccos(0.5 * np.cos(x)),
    "atan": np.arctan,
    "sinh": lambda x: np.sinh(np.cos(x)),
    "cosh": lambda x: np.cosh(np.sin(x)),
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": lambda x: np.arccosh(3.0 + np.sin(x)),
    "atanh": lambda x: np.arctanh(0.5 * np.sin(x)),
    "exp": lambda x: np.exp(np.sin(x)),
    "log": lambda x: np.log(2.0 + np.cos(x)),
    "log1p": lambda x: np.log1p(0.5 * np.sin(x)),
    "expm1": lambda x: np.expm1(np.cos(x)),
    "sqrt": lambda x: np.sqrt(2.0 + np.sin(x)),
    "abs": np.abs,
    "square": lambda x: np.sin(x) ** 2,
    "cube": lambda x: np.cos(x) ** 3,
    "half": lambda x: (2.0 + np.sin(x)) ** -1.5,
    "pow": lambda x: (2.0 + np.sin(x)) ** 0.3,
    "inverse": lambda x: 1.0 / (2.0 + np.cos(x)),
}


def _condition(c):
    """A comparison of plain floats as NumPy's bool, which `~` negates."""
    return np.bool_(c) if isinstance(c, bool) else c


BINARY = {
    "add": lambda x, y: 0.5 * (x + y),
    "sub": lambda x, y: 0.5 * (x - y),
    "mul": lambda x, y: np.sin(x) * y,
    "div": lambda x, y: x / (2.0 + np.sin(y)),
    "atan2": lambda x, y: np.arctan2(np.sin(x), 2.0 + np.cos(y)),
    "pow": lambda x, y: (2.0 + np.sin(x)) ** np.cos(y),
    "min": np.minimum,
    "max": np.maximum,
    "hypot": lambda x, y: np.hypot(np.cos(x), 1.0 + np.sin(y) ** 2),
    "where": lambda x, y: where(x < y, np.sin(x), y),
    "both": lambda x, y: where((x < y) & ~_condition(y < 0.1) | (x < -0.5), x, 0.5 * y),
}
N = 3

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 40)),
        st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 40), st.integers(0, 40)),
    ),
    min_size=3,
    max_size=12,
)
states = st.lists(st.floats(-3.0, 3.0).map(lambda x: round(x, 3)), min_size=N, max_size=N).map(
    np.array
)


def function(recipe):
    """The right-hand side that a list of steps describes."""

    def f(t, y, p):
        values = [y[0], y[1], y[2], 0.3 * t, p[0]]
        for name, *at in recipe:
            args = [values[i % len(values)] for i in at]
            values.append((UNARY if len(args) == 1 else BINARY)[name](*args))
        return values[-N:]

    return f


#: Elementary functions of one variable, smooth near 0.6.
ELEMENTARY = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": lambda x: np.arccosh(1 + x),
    "atanh": np.arctanh,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "pow": lambda x: x**0.3,
    "negative pow": lambda x: x**-2.7,
    "x to the x": lambda x: x**x,
    "2 to the x": lambda x: 2.0**x,
    "atan2": lambda x: np.arctan2(x, 1.0 + x * x),
    "atan2 of constant": lambda x: np.arctan2(2.0, x) + np.arctan2(x, 2.0),
    "quotient": lambda x: x / (1 + x) + 2.0 / x + x / 3.0,
    "abs": lambda x: abs(-x) * abs(x),
    "where": lambda x: where(x > 0.1, x * x, 0.0) + np.minimum(x, 5.0) + np.maximum(x, x * x),
}
