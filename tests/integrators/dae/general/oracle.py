"""Random structured DAEs, and what they are by brute force: differentiate, and count ranks.

    python -m tests.integrators.dae.general.oracle [count] [seed]

A system is a list of equations, each a sum of products of derivatives with small integer factors.
Its linearisation about an arbitrary power series, modulo a large prime, has the coefficients A_o(t)
of δ^(o) as power series; the equations differentiated K times are a matrix N of integers, exact,
for the coefficients of δ. What follows from the ranks of parts of N:

- the freedoms: how many dimensions are left of the first coefficients of δ, when K is large;
- whether there are finitely many: the same with one coefficient more;
- the differentiation index: after how many differentiations the highest derivatives of all unknowns
  follow from the lower ones.

Offsets come from all permutations. Nothing is shared with the library.
"""

import sys
from itertools import permutations
from math import perm

import numpy as np

from integrators import DAE

PRIME = 2_147_483_629
HIGHEST = 2  # order of derivatives


# ---------------------------------------------------------------- systems


def random_system(rng):
    """Equations as lists of (factor, ((unknown, order), …))."""
    n = int(rng.integers(2, 5))
    density = rng.uniform(0.35, 0.8)
    equations = []
    for _ in range(n):
        terms = [
            (int(rng.choice([-2, -1, 1, 2, 3])), ((j, int(rng.integers(0, HIGHEST + 1))),))
            for j in range(n)
            if rng.random() < density
        ]
        if terms and rng.random() < 0.4:  # a product
            other = int(rng.integers(n)), int(rng.integers(0, HIGHEST))
            k = int(rng.integers(len(terms)))
            factor, powers = terms[k]
            terms[k] = factor, (*powers, other)
        equations.append(terms)
    if rng.random() < 0.6:  # a trap: leading terms of one equation in another
        i, k = (int(x) for x in rng.choice(n, 2, replace=False))
        factor = int(rng.choice([-1, 1, 2]))
        with_unknown = ((int(rng.integers(n)), 0),) if rng.random() < 0.3 else ()
        copied = [(factor * f, (*powers, *with_unknown)) for f, powers in equations[i]]
        low = [(int(rng.choice([-1, 1, 2])), ((int(rng.integers(n)), 0),))]
        equations[k] = copied + low + [term for term in equations[k] if rng.random() < 0.3]
    return equations


def as_dae(equations):
    """The same for the library; the right sides depend on t, so that anything is a solution."""

    def F(t, y, d):
        out = []
        for i, terms in enumerate(equations):
            total = -np.cos(t + i)
            for factor, powers in terms:
                term = float(factor)
                for j, order in powers:
                    term = term * d(y[j], order)
                total = total + term
            out.append(total)
        return out

    return DAE(F, n=len(equations))


# ---------------------------------------------------------------- brute force


def rank(matrix):
    """Rank modulo the prime."""
    A = np.array(matrix, dtype=np.int64) % PRIME
    found = 0
    for column in range(A.shape[1]):
        if found == len(A):
            break
        below = np.flatnonzero(A[found:, column])
        if not below.size:
            continue
        pivot = found + int(below[0])
        A[[found, pivot]] = A[[pivot, found]]
        A[found] = A[found] * pow(int(A[found, column]), PRIME - 2, PRIME) % PRIME
        rows = found + 1 + np.flatnonzero(A[found + 1 :, column])
        if rows.size:
            A[rows] = (A[rows] - A[rows, column][:, None] * A[found]) % PRIME
        found += 1
    return found


def coefficients(equations, length, rng):
    """Power series of ∂f_i/∂y_j^(o) along a random one: {(i, j, o): array}."""
    n = len(equations)
    series = rng.integers(1, PRIME, (n, length + HIGHEST + 1))

    def derivative(j, order):
        factors = np.array([perm(m + order, order) for m in range(length)])
        return series[j, order : order + length] * factors % PRIME

    found = {}
    for i, terms in enumerate(equations):
        for factor, powers in terms:
            for k, (j, order) in enumerate(powers):
                value = np.zeros(length, dtype=np.int64)
                value[0] = factor % PRIME
                for other, key in enumerate(powers):
                    if other != k:
                        value = _product(value, derivative(*key))
                known = found.get((i, j, order), 0)
                found[i, j, order] = (known + value) % PRIME
    return found


def _product(a, b):
    out = np.zeros_like(a)
    for k, x in enumerate(a):
        if x:
            out[k:] = (out[k:] + int(x) * b[: len(a) - k] % PRIME) % PRIME
    return out


def derivative_array(A, n, K):
    """Rows (m, i), columns (m, j) of the equations differentiated up to K times."""
    width = K + HIGHEST + 1
    N = np.zeros(((K + 1) * n, width * n), dtype=np.int64)
    for (i, j, order), a in A.items():
        for m in range(K + 1):
            for place in range(
                m + 1
            ):  # a_(m − place) times (place + order)!/place! δ_(place + order)
                column = (place + order) * n + j
                entry = int(a[m - place]) * perm(place + order, order)
                N[m * n + i, column] = (N[m * n + i, column] + entry) % PRIME
    return N


def brute_force(equations, rng):
    """Return whether it is regular, its freedoms, and its differentiation index."""
    n = len(equations)
    most = n * HIGHEST + 1  # coefficients that tell any two solutions apart
    K = 2 * most + 2
    A = coefficients(equations, K + 1, rng)
    N = derivative_array(A, n, K)
    whole = N.shape[1] - rank(N)

    def dimensions(first):
        """Of the first coefficients of all solutions."""
        rest = N[:, first * n :]
        return whole - (rest.shape[1] - rank(rest))

    freedoms = dimensions(most)
    if dimensions(most + 1) != freedoms:
        return False, None, None
    highest = [max((o for (_, k, o) in A if k == j), default=0) for j in range(n)]
    top = [max(1, o) for o in highest]
    for k in range(K + 1):
        part = N[: (k + 1) * n]
        columns = [
            c for c in range(part.shape[1]) if c // n >= top[c % n] and c // n <= k + HIGHEST
        ]
        later = [c for c in columns if c // n > top[c % n]]
        known = part[:, columns]
        left = (len(columns) - rank(known)) - (len(later) - rank(part[:, later]))
        if left == 0:
            return True, freedoms, k
    raise AssertionError("a regular system without an index")


def brute_offsets(sigma):
    """Value of the best transversal and smallest offsets, from all permutations; None if none."""
    n = len(sigma)
    best, value = None, -1
    for order in permutations(range(n)):
        entries = [sigma[i][j] for i, j in enumerate(order)]
        if min(entries) >= 0 and sum(entries) > value:
            best, value = order, sum(entries)
    if best is None:
        return None
    c = [0] * n
    while True:
        d = [max((sigma[i][j] + c[i] for i in range(n) if sigma[i][j] >= 0), default=0)
             for j in range(n)]  # fmt: skip
        new = [d[best[i]] - sigma[i][best[i]] for i in range(n)]
        if new == c:
            return value, c, d
        c = new


def check(equations, rng):
    """Compare the library with brute force; returns what became of it."""
    found = as_dae(equations).structure()
    regular, freedoms, index = brute_force(equations, rng)
    if not found.regular or found.singularity is not None:
        assert not (regular and found.regular is False and not found.conversions), equations
        if not regular:
            return "singular"
        assert found.singularity is not None, equations  # refused, and it says so
        return "refused"
    assert regular, equations
    assert found.freedoms == freedoms, (equations, found.freedoms, freedoms)
    assert found.index >= index, (equations, found.index, index)
    if not found.conversions:
        offsets = brute_offsets(found.sigma.dense().tolist())
        assert offsets == (found.freedoms, found.c.tolist(), found.d.tolist()), equations
    same = "same index" if found.index == index else "higher index"
    return f"{'converted' if found.conversions else 'as given'}, {same}"


def run(count, seed):
    """Return how many systems there were of each kind."""
    rng = np.random.default_rng(seed)
    kinds = {}
    for _ in range(count):
        kind = check(random_system(rng), rng)
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


if __name__ == "__main__":
    many = [int(x) for x in sys.argv[1:]]
    sys.stdout.write(f"{run(*(many + [10_000, 0][len(many) :]))}\n")
