"""Event functions that are zero but for rounding."""

from __future__ import annotations

import numpy as np

from integrators.runs.instants.events import _zeros


def test_a_start_on_the_other_side_than_dense_output():
    """The value known at the start of a step is positive, dense output is negative all along."""
    nodes, values = np.array([0.0, 0.5, 1.0]), np.array([1e-18, -1e-18, -1e-18])
    assert _zeros(lambda theta: -1e-18, nodes, values, -1.0) == [(0.0, 1.0)]
