"""Hypothesis strategies for the mechanics tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from multibody.algebra.orientation import quaternions, rotations


def vectors(size, bound=2.0):
    """Arrays of moderate numbers, so absolute tolerances mean something."""
    # Three decimals: hypothesis then explores signs and zeros, not subnormal noise.
    numbers = st.integers(-int(1000 * bound), int(1000 * bound)).map(lambda n: n / 1000)
    return arrays(np.float64, size, elements=numbers)


def unit_vectors(size):
    return (
        vectors(size).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
    )


unit_quaternions = unit_vectors(4)
rotation_matrices = unit_quaternions.map(quaternions.to_matrix)
angles = st.integers(-3100, 3100).map(lambda n: n / 1000)
positive = st.integers(100, 5000).map(lambda n: n / 1000)


@st.composite
def central_inertias(draw):
    """Rotational inertia about the centre of mass of some real body."""
    second = np.array([draw(positive) for _ in range(3)])  # ∫x², ∫y², ∫z² along principal axes
    principal = np.diag(second.sum() - second)
    R = draw(rotation_matrices)
    I = R @ principal @ R.T
    return (I + I.T) / 2


def skew(a):
    return rotations.skew(a)
