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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ....tracing.calculus.derivative import replay
from ....tracing.graph import Graph, Program
from ....tracing.simplify import add, div, mul, neg, sub
from ..equations import Builder, Equations, Key, derivative_name
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
    known = _Known(equations, sigma, found, jacobian, numeric, parameters)
    whole = list(range(equations.n)), list(range(equations.n))
    parts = [whole]
    if lost is not None and 1 < len(lost.equations) < equations.n:
        parts.append((list(lost.equations), list(lost.unknowns)))
    # Constant coefficients first: they are the same everywhere, those that depend on the state may
    # vanish or become infinite where the run goes.
    better = (
        _without_cancelled(equations, parameters)
        or _combined(known, *whole, constant=True)
        or _first(_substituted(known, *part, constant=True) for part in parts)
        or _combined(known, *whole)
        or _substituted(known, *whole)
        or _first(_combined(known, *part) for part in parts[1:])
    )
    if better is None:
        # Of several exponentials the steepest may have drowned the others: look at small values.
        for point in sample_points(jacobian.program, parameters, len(SIZES), sizes=SIZES):
            entries = np.array(jacobian.program.evaluate(point), dtype=float)
            if jacobian.singular(entries, blocks) is None:
                return None, None
    return better, lost


# ---------------------------------------------------------------- the two conversions

Step = tuple[Equations, Conversion]


@dataclass(frozen=True)
class _Known:
    """Equations whose system Jacobian is singular: what the conversions need to know of them."""

    equations: Equations
    sigma: Signature
    found: Offsets
    jacobian: SystemJacobian
    numeric: Array
    parameters: Sequence[float] | None

    def null_vector(
        self, rows: Sequence[int], columns: Sequence[int], constant: bool, right: bool = False
    ) -> tuple[Builder, NullVector] | None:
        """Return u with uᵀJ = 0, or v with J v = 0 (`right`), of some rows and columns of J.

        By number of equation or unknown; None if there is none, or no constant one where one is
        wanted.
        """
        here, jacobian = np.ix_(rows, columns), self.jacobian
        points = sample_points(jacobian.program, self.parameters, len(SIZES), sizes=SIZES)
        values = [
            jacobian.dense(np.array(jacobian.program.evaluate(x), dtype=float))[here]
            for x in points
        ]
        builder = Builder(self.equations.n, self.equations.parameters)
        numbers = constant_null_vector([A.T for A in values] if right else values)
        if numbers is not None:
            found: NullVector | None = NullVector(
                {i: builder.graph.const(x) for i, x in numbers.items()}
            )
        elif constant:
            return None
        else:
            part, numeric = _part(jacobian, rows, columns), self.numeric[here]
            if right:
                part, numeric = _transposed(part), numeric.T.copy()
            found = null_vector(builder, part, numeric)
        if found is None:
            return None
        place = columns if right else rows
        found.nodes = {place[i]: node for i, node in found.nodes.items()}
        if numbers is None:
            builder, found.nodes = simplified(builder, found.nodes, self.parameters)
        return builder, found

    def is_better(self, step: Step | None) -> bool:
        """Whether fewer derivatives are left after a step."""
        if step is None:
            return False
        better = offsets(signature(step[0]))
        return better is None or better.value < self.found.value


def _first(steps: Iterable[Step | None]) -> Step | None:
    """Return the first step that was possible."""
    return next((step for step in steps if step is not None), None)


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


def _combined(
    known: _Known, rows: Sequence[int], columns: Sequence[int], constant: bool = False
) -> Step | None:
    """Replace one of some equations by their combination without leading derivatives.

    Where they are the equations of a singular diagonal block, leading derivatives of unknowns
    outside it stay, so that this brings less than a combination of all; but its coefficients may
    be constants where those of all are not. They may even contain leading derivatives, from
    outside: solutions are the same with any coefficients, and whether there is progress is seen.
    """
    equations, found, parameters = known.equations, known.found, known.parameters
    null = known.null_vector(rows, columns, constant)
    if null is None:
        return None
    builder, u = null
    lowest = min(int(found.c[i]) for i in u.nodes)
    inside = orders_in(builder, list(u.nodes.values()))
    sure = all(order < found.d[j] - lowest for j, order in inside.items())
    in_part = len(rows) < equations.n
    if not sure and not in_part:
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
    step = (
        new,
        Conversion(
            "linear combination",
            f"{equations.names[replaced]} was replaced by {text}, in which the leading derivatives "
            "cancel",
            replaced,
            {i: int(found.c[i]) - lowest for i in u.nodes},
        ),
    )
    return None if in_part and not known.is_better(step) else step


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
    known: _Known, rows: Sequence[int], columns: Sequence[int], constant: bool = False
) -> Step | None:
    """Introduce unknowns for expressions in some equations, if the conditions hold.

    The equations of a singular diagonal block may contain unknowns in a sum only, which elsewhere
    occur one by one.
    """
    equations, sigma, found = known.equations, known.sigma, known.found
    null = known.null_vector(rows, columns, constant, right=True)
    if null is None or len(null[1].nodes) < 2:
        return None
    builder, v = null
    support = sorted(v.nodes)
    leading = found.leading(sigma)
    touched = sorted({int(i) for i, j in zip(sigma.rows[leading], sigma.columns[leading])
                      if int(j) in v.nodes and int(i) in rows})  # fmt: skip
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
    numbers = {j: g.values[ratios[j]] for j in others}
    for i in range(equations.m):
        put: dict[Key, int] = {}
        for j in others if i in touched else ():
            top, node = int(found.d[j] - found.c[i]), expression[j]
            if sigma.order(i, j) < top:
                continue
            for order in range(int(found.d[j]) - C, top + 1):
                if order == top or numbers[j] is not None:  # a sum usually stays one below, too
                    put[j, order] = node
                node = bigger.rate(node)
        residuals.append(with_nodes(bigger, equations, i, put))
    added: list[str] = []
    for j in others:
        residuals.append(sub(g, bigger.input(j, int(found.d[j]) - C), expression[j]))
        added.append(_new_name(equations.unknowns[j], equations.unknowns))
    names = [f"definition of {name}" for name in added]
    made = bigger.finish(residuals, [*equations.unknowns, *added], [*equations.names, *names])
    made = pruned(
        made, {i: {(pivot, int(found.d[pivot] - found.c[i]))} for i in touched}, known.parameters
    )
    lower = {i: cancelled(single(made.program, i), made.symbols, known.parameters) for i in touched}
    made = pruned(made, lower, known.parameters)

    def defined(name: str, j: int) -> str:
        """The definition of a new unknown in words."""
        own, other = (
            derivative_name(equations.unknowns[k], int(found.d[k]) - C) for k in (j, pivot)
        )
        number = numbers[j]
        if number is None:
            return f"{name} = {own} − r·{other}"
        factor = "" if abs(number) == 1.0 else f"{abs(number):.4g}·"
        return f"{name} = {own} {'−' if number > 0 else '+'} {factor}{other}"

    what = ", ".join(map(defined, added, others))
    so_that = ", with r such that" if None in numbers.values() else ", for which"
    step = (
        made,
        Conversion(
            "expression substitution",
            f"new unknowns were introduced, {what}{so_that} leading derivatives cancel",
        ),
    )
    return step if known.is_better(step) else None


def _new_name(name: str, taken: Sequence[str]) -> str:
    """Return name~0, name~1, …: the first that is not taken."""
    return next(new for k in count() if (new := f"{name}~{k}") not in taken)


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
