r"""The signature matrix of a DAE and what follows from it: transversal, offsets, index, freedoms.

σ_ij is the order of the highest derivative of unknown j in equation i, −∞ where j does not occur
(Pryce, BIT 41 (2001) 364–394). A highest-value transversal picks one entry in each row and column
with the largest sum. The offsets are the smallest c_i ≥ 0 and d_j with

.. math:: d_j - c_i \ge σ_{ij}, \text{ with equality on the transversal.}

Equation i is to be differentiated c_i times; then the derivatives of order d_j of the unknowns can
be found from the lower ones, if the system Jacobian J_ij = ∂f_i/∂y_j^(d_j − c_i) is regular. The
number of freedoms is Σd − Σc, the structural index max c, plus one if some d_j is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....tracing.graph import CONDITIONS, Program
from ..equations import Equations, Key

__all__ = ["Offsets", "Signature", "offsets", "signature"]

Integers = NDArray[np.int64]

#: Constant wherever they have a derivative.
_STEPS = CONDITIONS | {"sign", "floor"}

#: Up to here a dense assignment is quicker than a sparse one.
LARGEST_DENSE = 400


@dataclass(frozen=True, eq=False)
class Signature:
    """σ as triplets: equation, unknown, order; sorted by equation, then unknown."""

    rows: Integers
    columns: Integers
    orders: Integers
    shape: tuple[int, int]

    def dense(self) -> Integers:
        """Return σ as a matrix with −1 for −∞."""
        matrix = np.full(self.shape, -1, dtype=np.int64)
        matrix[self.rows, self.columns] = self.orders
        return matrix

    def order(self, i: int, j: int) -> int:
        """Return σ_ij, −1 for −∞."""
        found = self.orders[(self.rows == i) & (self.columns == j)]
        return int(found[0]) if found.size else -1


def signature(equations: Equations) -> Signature:
    """Find the highest derivative of each unknown in each equation.

    Examples
    --------
    >>> from integrators.dae.general.equations import trace_equations
    >>> def pendulum(t, y, d):
    ...     x, z, tension = y
    ...     return [d(x, 2) + tension * x, d(z, 2) + tension * z + 9.81, x**2 + z**2 - 1]
    >>> signature(trace_equations(pendulum, ["x", "z", "tension"], None, 0)).dense()
    array([[ 2, -1,  0],
           [-1,  2,  0],
           [ 0,  0, -1]])
    """
    rows, columns, orders = [], [], []
    for i, found in enumerate(occurring(equations.program, len(equations.symbols))):
        highest: dict[int, int] = {}
        for place in found:
            j, order = equations.symbols[place]
            highest[j] = max(order, highest.get(j, 0))
        for j in sorted(highest):
            rows.append(i)
            columns.append(j)
            orders.append(highest[j])
    return Signature(
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array(orders, dtype=np.int64),
        (equations.m, equations.n),
    )


def occurring(program: Program, count: int) -> list[list[int]]:
    """For each output the inputs 1 … count that it depends on, numbered from 0.

    Sets are bits of integers; each is forgotten after its last use, so that large systems take
    little memory.
    """
    last = list(range(len(program)))
    for i, (op, args) in enumerate(zip(program.ops, program.args)):
        if op not in ("const", "input"):
            for a in args:
                last[a] = i
    for o in program.outputs:
        last[o] = len(program)
    sets: list[int] = []
    for i, (op, args) in enumerate(zip(program.ops, program.args)):
        found = 0
        if op == "input":
            place = args[0] - 1
            found = 1 << place if 0 <= place < count else 0
        elif op != "const":
            flat = op in _STEPS
            skip = 1 if op == "select" else 0  # the condition has no derivative
            for k, a in enumerate(args):
                if not flat and k >= skip:
                    found |= sets[a]
                if last[a] == i:
                    sets[a] = 0
        sets.append(found)
    return [_bits(sets[o]) for o in program.outputs]


def _bits(x: int) -> list[int]:
    """Numbers of the bits that are set."""
    found = []
    while x:
        low = x & -x
        found.append(low.bit_length() - 1)
        x ^= low
        if len(found) > 64:  # many: let NumPy unpack the rest
            packed = np.frombuffer(x.to_bytes((x.bit_length() + 7) // 8, "little"), dtype=np.uint8)
            found += np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist()
            break
    return found


@dataclass(frozen=True, eq=False)
class Offsets:
    """A highest-value transversal and the offsets.

    Attributes
    ----------
    partner
        The unknown that belongs to each equation.
    c, d
        How often equations are differentiated; orders of the derivatives found by them.
    value
        Σσ on the transversal: the number of freedoms, if the system Jacobian is regular.
    """

    partner: Integers
    c: Integers
    d: Integers
    value: int

    @property
    def index(self) -> int:
        """The structural index: max c, plus one if some d_j is 0."""
        return int(self.c.max(initial=0)) + int(self.d.min(initial=1) == 0)

    def leading(self, sigma: Signature) -> NDArray[np.bool_]:
        """Where d_j − c_i = σ_ij: the entries of the system Jacobian."""
        return np.asarray(self.d[sigma.columns] - self.c[sigma.rows] == sigma.orders)


def offsets(sigma: Signature) -> Offsets | None:
    """Return transversal and offsets, or None if there is no transversal (structurally singular).

    Examples
    --------
    >>> pendulum = Signature(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 2, 1, 2, 0, 1]),
    ...                      np.array([2, 0, 2, 0, 0, 0]), (3, 3))
    >>> found = offsets(pendulum)
    >>> found.c.tolist(), found.d.tolist(), found.index, found.value
    ([0, 0, 2], [2, 2, 0], 3, 2)
    """
    m, n = sigma.shape
    if m != n:
        return None
    partner = _transversal(sigma)
    if partner is None:
        return None
    on = _entries(sigma, partner)
    c = np.zeros(n, dtype=np.int64)
    while True:
        d = np.full(n, -1, dtype=np.int64)
        np.maximum.at(d, sigma.columns, sigma.orders + c[sigma.rows])
        new = d[partner] - on
        if np.array_equal(new, c):
            return Offsets(partner, c, d, int(on.sum()))
        c = new


def _entries(sigma: Signature, partner: Integers) -> Integers:
    """σ on the transversal, by equation."""
    mask = partner[sigma.rows] == sigma.columns
    out = np.zeros(sigma.shape[0], dtype=np.int64)
    out[sigma.rows[mask]] = sigma.orders[mask]
    return out


def _transversal(sigma: Signature) -> Integers | None:
    """A transversal of highest value: the partner of each equation."""
    n = sigma.shape[0]
    top = int(sigma.orders.max(initial=0)) + 1
    if n <= LARGEST_DENSE:
        from scipy.optimize import linear_sum_assignment

        never = -(n + 1) * (top + 1)
        matrix = np.full(sigma.shape, never, dtype=np.int64)
        matrix[sigma.rows, sigma.columns] = sigma.orders
        _, partner = linear_sum_assignment(matrix, maximize=True)
        if np.any(matrix[np.arange(n), partner] == never):
            return None
        return np.asarray(partner, dtype=np.int64)
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

    pattern = csr_matrix((np.ones(sigma.rows.size), (sigma.rows, sigma.columns)), shape=sigma.shape)
    if np.any(maximum_bipartite_matching(pattern, perm_type="column") < 0):
        return None
    cost = csr_matrix(
        ((top - sigma.orders).astype(float), (sigma.rows, sigma.columns)), shape=sigma.shape
    )
    _, partner = min_weight_full_bipartite_matching(cost)
    return np.asarray(partner, dtype=np.int64)


def unused(equations: Equations, sigma: Signature) -> list[Key]:
    """Unknowns that appear in no equation, as keys of order 0."""
    seen = set(sigma.columns.tolist())
    return [(j, 0) for j in range(equations.n) if j not in seen]
