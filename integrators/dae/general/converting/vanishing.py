"""Terms of an equation that another equation makes zero.

In f + φ·g, where g = 0 is another equation, an unknown in φ seems to be determined everywhere but
on solutions: J is regular at random points and singular at every start. So expressions that are a
multiple of another residual are looked for inside products and other nonlinear terms, by their
values at random points, and zero is put in their place. Plain sums are left to the combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....tracing.graph import Program
from ....tracing.simplify import build
from ..equations import Builder, Equations
from ..jacobian import sample_points

__all__ = ["without_vanishing"]

SAME = 1e-12  # relative difference of ratios that counts as none
POINTS = 4


def without_vanishing(
    equations: Equations, parameters: Sequence[float] | None
) -> tuple[Equations, list[str]] | None:
    """Return the equations without such terms, and which were used where; None if there are none.

    Examples
    --------
    >>> from integrators.dae.general.equations import trace_equations
    >>> made = trace_equations(
    ...     lambda t, y, d: [y[0] - t, y[1] - d[0] + np.cos(y[1]) * (2 * y[0] - 2 * t)],
    ...     ["x", "z"], None, 0)
    >>> without_vanishing(made, None)[1]
    ['f0 = 0 in f1']
    """
    program = equations.program
    points = list(sample_points(program, parameters, POINTS))
    if len(points) < POINTS:
        return None
    everything = Program(
        program.ops, program.args, program.inputs, tuple(range(len(program))), (len(program),)
    )
    with np.errstate(all="ignore"):
        values = np.array([everything.evaluate(x) for x in points], dtype=float)
    zero: list[set[int]] = [set() for _ in range(equations.m)]
    sources: set[int] = set()
    said: list[str] = []
    for i in range(equations.m):
        if i in sources:  # others rely on it
            continue
        inside = np.array(_nonlinear_parts(program, program.outputs[i]), dtype=np.int64)
        same = _multiples(values[:, inside], values[:, list(program.outputs)])
        for k in np.flatnonzero(same.any(axis=0)).tolist():
            if k != i and not zero[k]:
                zero[i] |= set(inside[same[:, k]].tolist())
                sources.add(k)
                said.append(f"{equations.names[k]} = 0 in {equations.names[i]}")
    if not said:
        return None
    builder = Builder(equations.n, equations.parameters)
    residuals = [_rebuilt(builder, equations, i, zero[i]) for i in range(equations.m)]
    made = builder.finish(residuals, equations.unknowns, equations.names)
    finite = len(list(sample_points(made.program, parameters, POINTS))) == POINTS
    return (made, said) if finite else None


def _multiples(values: NDArray[Any], residuals: NDArray[Any]) -> NDArray[np.bool_]:
    """Which expressions are constant multiples of which residuals, by values at some points."""
    with np.errstate(all="ignore"):  # NaN is no multiple
        ratio = values[:, :, None] / residuals[:, None, :]
        spread = ratio.max(axis=0) - ratio.min(axis=0)
        return np.asarray((ratio[0] != 0.0) & (spread <= SAME * np.abs(ratio[0])))


def _nonlinear_parts(program: Program, output: int) -> list[int]:
    """Operations below an output that a sum does not lead to."""
    seen: dict[int, bool] = {}  # whether a node was reached in a plain sum only
    waiting = [(output, True)]
    while waiting:
        node, plain = waiting.pop()
        if seen.get(node, True) < plain or (node in seen and seen[node] == plain):
            continue
        seen[node] = plain
        op, args = program.ops[node], program.args[node]
        if op in ("const", "input"):
            continue
        constant = op == "mul" and any(program.ops[k] == "const" for k in args)
        plain = plain and (op in ("add", "sub", "neg") or constant)
        waiting += [(k, plain) for k in args]
    return [
        n for n, plain in seen.items() if not plain and program.ops[n] not in ("const", "input")
    ]


def _rebuilt(builder: Builder, equations: Equations, i: int, zero: set[int]) -> int:
    """Copy equation i with zero in the place of some nodes."""
    g, program = builder.graph, equations.program
    inputs = [g.input(0), *(builder.input(j, order) for j, order in equations.symbols)]
    inputs += [g.input(1 + p) for p in range(builder.k)]
    made: list[int] = []
    for node, (op, args) in enumerate(zip(program.ops, program.args)):
        if node in zero:
            made.append(g.const(0.0))
        elif op == "const":
            made.append(g.const(args[0]))
        elif op == "input":
            made.append(inputs[args[0]])
        else:
            made.append(build(g, op, *(made[k] for k in args)))
    return made[program.outputs[i]]
