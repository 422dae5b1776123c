"""Polynomials through values at unequal times: weights, found anew for each step.

Variable steps and orders need no more than that. The past is kept as it is, newest first, in
``past``, at the times ``past_t``; a polynomial of degree k through its first k + 1 values is a sum
of these values with weights that depend on the times alone. To use a higher or lower order is to
look further back, or less far.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, no-check-untyped-defs

from __future__ import annotations

from ....kernels import kernel
from ....stepping.dense import copy

__all__ = [
    "basis_polynomial",
    "begin_lagrange",
    "extrapolate",
    "keep_value",
    "past_to_powers",
    "slope_weights",
]


@kernel
def begin_lagrange(times, k, t, out):
    """out[j] = ℓⱼ(t): weights of values at times[0 … k] in their polynomial at t."""
    for j in range(k + 1):
        weight = 1.0
        for i in range(k + 1):
            if i != j:
                weight *= (t - times[i]) / (times[j] - times[i])
        out[j] = weight


@kernel
def slope_weights(times, k, t, h, weights, out):
    """out[j] = h ℓⱼ′(t), from the weights ℓⱼ(t), at a time t that is none of the others."""
    for j in range(k + 1):
        total = 0.0
        for i in range(k + 1):
            if i != j:
                total += h / (t - times[i])
        out[j] = weights[j] * total


@kernel
def extrapolate(past, weights, k, sum_of_weights, out):
    """out = Σ weights[j]·past[j]; by differences from the newest value, which lose fewer digits."""
    n = out.shape[0]
    newest = past[0]
    for m in range(n):
        out[m] = 0.0
    for j in range(k, 0, -1):  # by rows, for the sake of large systems
        weight = weights[j]
        row = past[j]
        for m in range(n):
            out[m] += weight * (row[m] - newest[m])
    for m in range(n):
        out[m] += sum_of_weights * newest[m]


@kernel
def keep_value(w, t, y):
    """Put a value in front of the past; the oldest one goes."""
    for j in range(w.past_t.shape[0] - 1, 0, -1):
        w.past_t[j] = w.past_t[j - 1]
        copy(w.past[j - 1], w.past[j])
    w.past_t[0] = t
    copy(y, w.past[0])
    w.past_known = min(w.past_known + 1, w.past_t.shape[0])


@kernel
def past_to_powers(w, k, t, h):
    """Let Q be the polynomial through past[0 … k], in powers of θ = (time − t)/h.

    past[1] is the state at t, where θ = 0; so no power θ⁰ is left of the others.
    """
    n = w.y.shape[0]
    for j in range(w.Q.shape[0]):
        for m in range(n):
            w.Q[j, m] = 0.0
    for i in range(k + 1):
        w.nodes[i] = 0.0 if i == 1 else (w.past_t[i] - t) / h
    for i in range(k + 1):
        if i == 1:
            continue
        basis_polynomial(w.nodes, k, i, w.powers)
        for j in range(1, k + 1):
            for m in range(n):
                w.Q[j - 1, m] += w.powers[j] * (w.past[i, m] - w.past[1, m])


@kernel
def basis_polynomial(nodes, k, i, out):
    """out[j] = coefficient of θʲ in the polynomial that is 1 at nodes[i] and 0 at the others."""
    for j in range(k + 1):
        out[j] = 0.0
    out[0] = 1.0
    degree = 0
    for r in range(k + 1):
        if r == i:
            continue
        scale = 1.0 / (nodes[i] - nodes[r])
        for j in range(degree + 1, 0, -1):
            out[j] = (out[j - 1] - nodes[r] * out[j]) * scale
        out[0] = -nodes[r] * out[0] * scale
        degree += 1
