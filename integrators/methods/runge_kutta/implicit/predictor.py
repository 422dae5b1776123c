"""Slopes predicted from slopes that are known already.

Newton's iterations of a diagonally implicit method start there, and a slope at the end of a step
that is not at all where the stages point tells of a kink in f.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["extrapolation_weights", "stage_predictor", "through_last_stages"]

Array = NDArray[np.float64]

HIGHEST_DEGREE = 2
LARGEST_WEIGHTS = 6.0  # sum of the weights' moduli: how much errors of earlier stages may grow


def stage_predictor(c: Array) -> Array:
    """Weights: kᵢ ≈ Σⱼ weights[i, j] kⱼ over the stages j < i, for nodes c.

    Examples
    --------
    >>> import numpy as np
    >>> stage_predictor(np.array([0.0, 0.5, 1.0]))[2]  # a straight line
    array([-1.,  2.,  0.])
    """
    s = len(c)
    weights = np.zeros((s, s))
    for i in range(1, s):
        weights[i, :i] = extrapolation_weights(c[:i], c[i])
    return weights


def extrapolation_weights(
    nodes: Array, x: float, most: float = LARGEST_WEIGHTS, apart: float = 1e-3
) -> Array:
    """Weights of values at nodes in the polynomial through the nearest of them, at x.

    Its degree is as high as does not magnify errors of the values by more than `most`. Of values at
    nodes that are not so far `apart`, the last one is taken.
    """
    distinct: list[int] = []
    for j in range(len(nodes) - 1, -1, -1):
        if all(abs(nodes[j] - nodes[k]) > apart for k in distinct):
            distinct.append(j)
    nearest = sorted(distinct, key=lambda j: abs(nodes[j] - x))
    weights = np.zeros(len(nodes))
    for degree in range(min(HIGHEST_DEGREE, len(nearest) - 1), -1, -1):
        used = nearest[: degree + 1]
        row = [_lagrange(x, nodes[j], nodes[[k for k in used if k != j]]) for j in used]
        if np.sum(np.abs(row)) <= most:
            weights[used] = row
            break
    return weights


def through_last_stages(whole: Array, c: Array) -> Array:
    """Polynomials ℓⱼ(θ) through the last 1, 2, … stages; `whole` is what goes through all.

    Coefficients of θᵏ in [how many − 1, j, k].

    Examples
    --------
    >>> import numpy as np
    >>> through_last_stages(np.array([[2.0, -2.0], [-1.0, 2.0]]), np.array([0.5, 1.0]))[0]
    array([[0., 0.],
           [1., 0.]])
    """
    s = len(c)
    table = np.zeros((s, s, s))
    table[s - 1] = whole
    if whole.any():  # confluent nodes have none
        for used in range(1, s):
            inverse = np.linalg.inv(np.vander(c[s - used :], used, increasing=True))
            table[used - 1, s - used :, :used] = inverse.T
    return table


def _lagrange(x: float, node: float, others: Array) -> float:
    """Value at x of the polynomial that is 1 at a node and 0 at the others."""
    return float(np.prod((x - others) / (node - others)))
