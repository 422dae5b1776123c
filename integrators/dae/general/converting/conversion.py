r"""Equations whose structure lies, rewritten so that it does not.

Where the system Jacobian J is singular although there is a transversal, the pattern counts
derivatives that cancel. Two conversions make a system with the same solutions and a transversal of
smaller value (Tan, Nedialkov & Pryce, *Conversion methods for improving structural analysis of
differential-algebraic equation systems*, BIT 57 (2017) 845–865):

- **linear combination**: with uᵀJ = 0, the equation with the smallest c among those with u_i ≠ 0 is
  replaced by Σ u_i f_i^(c_i − c_min), in which the leading derivatives cancel. u may contain
  derivatives of y_j below d_j − c_min only;
- **expression substitution**: with J v = 0 and C the largest c of the equations that contain the
  leading derivatives of the unknowns with v_j ≠ 0, a new unknown stands for
  y_j^(d_j − C) − (v_j/v_l) y_l^(d_l − C), and y_j is replaced in the leading places.

u and v come from elimination on the graph of J, in the order of pivots found at a random point.
A graph is no normal form: what cancels is still there. So the derivatives that a conversion removes
are replaced by constants, as is, before anything else is tried, a derivative with respect to which
an equation as given does not change; that is decided numerically, at random points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....tracing.calculus.derivative import replay
from ....tracing.graph import Graph, Program
from ....tracing.simplify import add, div, mul, neg, sub
from ..equations import Builder, Equations, Key
from ..jacobian import Singularity, SystemJacobian, sample_points
from ..pattern.blocks import blocks_in_order
from ..pattern.signature import Offsets, Signature, occurring, offsets, signature
from .cancellation import cancelled, collected, pruned, simplified, single, with_nodes
from .constant_combination import SIZES, constant_null_vector
from .null_vector import NullVector, null_vector, orders_in
from .vanishing import without_vanishing

__all__ = ["Conversion", "converted"]

Array = NDArray[np.float64]

MOST_CONVERSIONS = 30
LARGEST = 300  # unknowns of a system that is converted


@dataclass(frozen=True)
class Conversion:
    """What was done to the equations.

    Attributes
    ----------
    kind, text
        In words.
    replaced, times
        For a linear combination: the equation replaced, and how often each equation in the
        combination is differentiated there.
    """

    kind: str
    text: str
    replaced: int = -1
    times: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Converted:
    """Equations with their structure, after as many conversions as were possible.

    `written` has the highest derivative of each unknown in the equations as given.
    """

    equations: Equations
    sigma: Signature
    offsets: Offsets | None
    done: tuple[Conversion, ...]
    singular: Singularity | None = None
    written: tuple[int, ...] = ()

    @property
    def index(self) -> int:
        """The structural index of the equations as they were given.

        What is differentiated once it has been combined was differentiated before, perhaps. And
        where the derivative of an unknown that is written in an equation, or the first, is higher
        than the leading one, it takes so many differentiations more.
        """
        assert self.offsets is not None
        c = self.offsets.c.tolist()
        inside: list[dict[int, int]] = [{i: 0} for i in range(len(c))]
        for conversion in self.done:
            merged: dict[int, int] = {}
            for i, times in conversion.times.items():
                for given, before in inside[i].items():
                    merged[given] = max(merged.get(given, 0), before + times)
            if conversion.replaced >= 0:
                inside[conversion.replaced] = merged
        deepest = max(
            (before + c[i] for i, parts in enumerate(inside) for before in parts.values()),
            default=0,
        )
        leading = self.offsets.d.tolist()
        wanted = [*self.written, *([1] * (len(leading) - len(self.written)))]
        return deepest + max(0, *(max(1, o) - d for o, d in zip(wanted, leading)))


def converted(equations: Equations, parameters: Sequence[float] | None) -> Converted:
    """Convert equations until their system Jacobian is regular at random points, if that helps.

    Examples
    --------
    ẋ + ż = x and ẋ + ż = z − sin x: the derivatives in both are the same combination.

    >>> from integrators.dae.general.equations import trace_equations
    >>> pair = trace_equations(
    ...     lambda t, y, d: [d[0] + d[1] - y[0], d[0] + d[1] - y[1] + np.sin(y[0])],
    ...     ["x", "z"], None, 0)
    >>> result = converted(pair, None)
    >>> result.done[0].text
    'f1 was replaced by f0 - f1, in which the leading derivatives cancel'
    >>> result.offsets.index, result.offsets.value
    (1, 1)
    """
    sigma = signature(equations)
    found = offsets(sigma)
    written = [0] * equations.n
    for j, order in zip(sigma.columns.tolist(), sigma.orders.tolist()):
        written[j] = max(written[j], order)
    done: list[Conversion] = []
    singular = None
    used = without_vanishing(equations, parameters) if equations.n <= LARGEST else None
    if used is not None:
        equations, said = used
        sigma = signature(equations)
        found = offsets(sigma)
        done.append(
            Conversion("vanishing terms", f"terms that vanish were left out: {'; '.join(said)}")
        )
    while found is not None and len(done) < MOST_CONVERSIONS:
        step, singular = _improved(equations, sigma, found, parameters)
        if step is None:
            break
        new, conversion = step
        new_sigma = signature(new)
        new_offsets = offsets(new_sigma)
        if new_offsets is not None and new_offsets.value >= found.value + (
            conversion.kind == "cancellation"  # fewer derivatives, perhaps of the same value
        ):
            break  # no progress
        equations, sigma, found, singular = new, new_sigma, new_offsets, None
        done.append(conversion)
    return Converted(equations, sigma, found, tuple(done), singular, tuple(written))


def _improved(
    equations: Equations, sigma: Signature, found: Offsets, parameters: Sequence[float] | None
) -> tuple[tuple[Equations, Conversion] | None, Singularity | None]:
    """Return equations after one conversion, and where J is singular; None if it is not."""
    jacobian = SystemJacobian(equations, sigma, found)
    mask = found.leading(sigma)
    blocks = blocks_in_order(sigma.rows[mask], sigma.columns[mask], found.partner)
    numeric = lost = None
    for point in sample_points(jacobian.program, parameters, 3):
        entries = np.array(jacobian.program.evaluate(point), dtype=float)
        lost = jacobian.singular(entries, blocks)
        if lost is None:
            return None, None
        numeric = jacobian.dense(entries) if equations.n <= LARGEST else None
    if numeric is None:
        return None, lost
    better = (
        _without_cancelled(equations, parameters)
        or _combined(equations, found, jacobian, numeric, parameters)
        or _substituted(equations, sigma, found, jacobian, numeric, parameters)
        or _combined_in_part(equations, found, jacobian, numeric, parameters, lost)
    )
    if better is None:
        # Of several exponentials the steepest may have drowned the others: look at small values.
        for point in sample_points(jacobian.program, parameters, len(SIZES), sizes=SIZES):
            entries = np.array(jacobian.program.evaluate(point), dtype=float)
            if jacobian.singular(entries, blocks) is None:
                return None, None
    return better, lost


# ---------------------------------------------------------------- the two conversions


def _combined(
    equations: Equations,
    found: Offsets,
    jacobian: SystemJacobian,
    numeric: Array,
    parameters: Sequence[float] | None,
) -> tuple[Equations, Conversion] | None:
    """Replace an equation by a linear combination, if the conditions hold."""
    everything = list(range(equations.n))
    return _combination_of(equations, found, jacobian, numeric, parameters, everything, everything)


def _combined_in_part(
    equations: Equations,
    found: Offsets,
    jacobian: SystemJacobian,
    numeric: Array,
    parameters: Sequence[float] | None,
    lost: Singularity | None,
) -> tuple[Equations, Conversion] | None:
    """Combine the equations of a singular diagonal block, where others need not take part.

    Leading derivatives of unknowns outside the block stay, so that this brings less than a
    combination of all; but its coefficients may be constants where those of all are not. They may
    even contain leading derivatives, from outside: solutions are the same with any coefficients,
    and whether there is progress is seen.
    """
    if lost is None or not 1 < len(lost.equations) < equations.n:
        return None
    rows, columns = list(lost.equations), list(lost.unknowns)
    step = _combination_of(equations, found, jacobian, numeric, parameters, rows, columns)
    if step is None:
        return None
    better = offsets(signature(step[0]))
    return None if better is not None and better.value >= found.value else step


def _part(jacobian: SystemJacobian, rows: Sequence[int], columns: Sequence[int]) -> SystemJacobian:
    """Return the entries of some rows and columns, which are numbered anew."""
    row, column = ({x: k for k, x in enumerate(places)} for places in (rows, columns))
    entries = zip(jacobian.rows.tolist(), jacobian.columns.tolist(), jacobian.program.outputs)
    inside = [(row[i], column[j], o) for i, j, o in entries if i in row and j in column]
    program = jacobian.program
    other = object.__new__(SystemJacobian)
    other.equations, other.n = jacobian.equations, len(rows)
    other.rows, other.columns = np.array([e[0] for e in inside]), np.array([e[1] for e in inside])
    outputs = tuple(e[2] for e in inside)
    other.program = Program(program.ops, program.args, program.inputs, outputs, (len(outputs),))
    return other


def _combination_of(
    equations: Equations,
    found: Offsets,
    jacobian: SystemJacobian,
    numeric: Array,
    parameters: Sequence[float] | None,
    rows: Sequence[int],
    columns: Sequence[int],
) -> tuple[Equations, Conversion] | None:
    """Replace one of some equations by their combination without leading derivatives."""
    builder = Builder(equations.n, equations.parameters)
    here = np.ix_(rows, columns)
    points = sample_points(jacobian.program, parameters, len(SIZES), sizes=SIZES)
    values = [
        jacobian.dense(np.array(jacobian.program.evaluate(x), dtype=float))[here] for x in points
    ]
    constant = constant_null_vector(values)
    if constant is not None:
        nodes = {i: builder.graph.const(x) for i, x in constant.items()}
        u: NullVector | None = NullVector(nodes)
    else:
        u = null_vector(builder, _part(jacobian, rows, columns), numeric[here])
    if u is None:
        return None
    u.nodes = {rows[i]: node for i, node in u.nodes.items()}
    if constant is None:
        builder, u.nodes = simplified(builder, u.nodes, parameters)
    lowest = min(int(found.c[i]) for i in u.nodes)
    inside = orders_in(builder, list(u.nodes.values()))
    sure = all(order < found.d[j] - lowest for j, order in inside.items())
    if not sure and len(rows) == equations.n:
        return None
    residuals = builder.load(equations)
    g = builder.graph
    total = g.const(0.0)
    for i in sorted(u.nodes):
        term = residuals[i]
        for _ in range(int(found.c[i]) - lowest):
            term = builder.rate(term)
        total = add(g, total, mul(g, u.nodes[i], term))
    replaced = max(i for i in u.nodes if found.c[i] == lowest)
    if (g.values[u.nodes[min(u.nodes)]] or 0.0) < 0:
        total = neg(g, total)
    text = _combination(equations, u, found, lowest, g)
    residuals[replaced] = collected(g, total)
    new = builder.finish(residuals, equations.unknowns, equations.names)
    if sure:
        leading = {(j, int(found.d[j]) - lowest) for j in columns}
        new = pruned(new, {replaced: leading}, parameters)
    more = cancelled(single(new.program, replaced), new.symbols, parameters)
    new = pruned(new, {replaced: more}, parameters) if more else new
    return new, Conversion(
        "linear combination",
        f"{equations.names[replaced]} was replaced by {text}, in which the leading derivatives "
        "cancel",
        replaced,
        {i: int(found.c[i]) - lowest for i in u.nodes},
    )


def _combination(equations: Equations, u: NullVector, found: Offsets, lowest: int, g: Graph) -> str:
    """Σ u_i f_i^(c_i − c_min) in words."""
    parts = []
    numbers = [g.values[u.nodes[i]] for i in sorted(u.nodes)]
    flip = -1.0 if numbers[0] is not None and numbers[0] < 0 else 1.0
    for i, number in zip(sorted(u.nodes), numbers):
        times = int(found.c[i]) - lowest
        name = equations.names[i] + "'" * times
        if number is None:
            parts.append(f"+ u{i}·{name}")
            continue
        number *= flip
        factor = "" if abs(number) == 1.0 else f"{abs(number):.4g}·"
        parts.append(f"{'-' if number < 0 else '+'} {factor}{name}")
    text = " ".join(parts).removeprefix("+ ")
    return text + (" with factors that depend on the state" if None in numbers else "")


def _substituted(
    equations: Equations,
    sigma: Signature,
    found: Offsets,
    jacobian: SystemJacobian,
    numeric: Array,
    parameters: Sequence[float] | None,
) -> tuple[Equations, Conversion] | None:
    """Introduce unknowns for expressions, if the conditions hold."""
    flipped = _transposed(jacobian)
    builder = Builder(equations.n, equations.parameters)
    v = null_vector(builder, flipped, numeric.T.copy())
    if v is None or len(v.nodes) < 2:
        return None
    builder, v.nodes = simplified(builder, v.nodes, parameters)
    support = sorted(v.nodes)
    leading = found.leading(sigma)
    touched = sorted({int(i) for i, j in zip(sigma.rows[leading], sigma.columns[leading])
                      if int(j) in v.nodes})  # fmt: skip
    C = max(int(found.c[i]) for i in touched)
    if any(found.d[j] - C < 0 for j in support):
        return None
    for j, order in orders_in(builder, list(v.nodes.values())).items():
        if order > found.d[j] - C - (1 if j in v.nodes else 0):
            return None
    pivot = support[0]
    n, others = equations.n, [j for j in support if j != pivot]
    bigger = Builder(n + len(others), equations.parameters)
    ratios = _ratios(builder, bigger, v, pivot, others)
    g = bigger.graph
    base = bigger.input(pivot, int(found.d[pivot]) - C)
    expression = {}
    for new, j in enumerate(others):
        expression[j] = add(g, bigger.input(n + new, 0), mul(g, ratios[j], base))
    residuals = []
    for i in range(equations.m):
        put: dict[Key, int] = {}
        if i in touched:
            for j in others:
                if sigma.order(i, j) == found.d[j] - found.c[i]:
                    node = expression[j]
                    for _ in range(C - int(found.c[i])):
                        node = bigger.rate(node)
                    put[j, int(found.d[j] - found.c[i])] = node
        residuals.append(with_nodes(bigger, equations, i, put))
    added, names = [], []
    for new, j in enumerate(others):
        own = bigger.input(j, int(found.d[j]) - C)
        residuals.append(sub(g, own, expression[j]))
        added.append(f"{equations.unknowns[j]}~{new}")
        names.append(f"definition of {added[-1]}")
    made = bigger.finish(residuals, [*equations.unknowns, *added], [*equations.names, *names])
    gone = {i: {(pivot, int(found.d[pivot] - found.c[i]))} for i in touched}
    made = pruned(made, gone, parameters)
    from ..equations import derivative_name

    what = ", ".join(
        f"{name} = {derivative_name(equations.unknowns[j], int(found.d[j]) - C)} − "
        f"r·{derivative_name(equations.unknowns[pivot], int(found.d[pivot]) - C)}"
        for name, j in zip(added, others)
    )
    return made, Conversion(
        "expression substitution",
        f"new unknowns were introduced, {what}, with r such that leading derivatives cancel",
    )


def _transposed(jacobian: SystemJacobian) -> SystemJacobian:
    other = object.__new__(SystemJacobian)
    other.equations, other.program, other.n = jacobian.equations, jacobian.program, jacobian.n
    other.rows, other.columns = jacobian.columns, jacobian.rows
    return other


def _ratios(
    builder: Builder, bigger: Builder, v: NullVector, pivot: int, others: Sequence[int]
) -> dict[int, int]:
    """v_j/v_l as nodes of the bigger graph."""
    g = builder.graph
    nodes = [div(g, v.nodes[j], v.nodes[pivot]) for j in others]
    names = [""] * (1 + builder.k + len(builder.keys))
    program = Program.from_graph(g, nodes, names)
    own = [bigger.graph.input(i) for i in range(1 + builder.k)]
    own += [bigger.input(j, k) for j, k in builder.keys]
    copied = replay(bigger.graph, program, own)
    return {j: copied[o] for j, o in zip(others, program.outputs)}


def _without_cancelled(
    equations: Equations, parameters: Sequence[float] | None
) -> tuple[Equations, Conversion] | None:
    """Replace derivatives that occur in an equation but cancel there."""
    gone = {
        i: cancelled(single(equations.program, i), equations.symbols, parameters)
        for i in range(equations.m)
    }
    if not any(gone.values()):
        return None
    made = pruned(equations, gone, parameters)
    changed = [
        name
        for name, before, after in zip(
            equations.names,
            occurring(equations.program, len(equations.symbols)),
            occurring(made.program, len(made.symbols)),
        )
        if len(before) != len(after)
    ]
    return made, Conversion(
        "cancellation", f"derivatives that cancel were removed from {', '.join(changed)}"
    )
