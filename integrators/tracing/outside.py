"""Calls of machine code from traced code, by its address.

What is traced around a function need not contain it: a step of a method with a large right-hand
side calls it. The address is a number of the parameters, found at run time, so that the code around
it can be kept on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .symbols.symbol import Symbol, as_node

__all__ = ["CALL", "RESULT", "call_outside"]

CALL, RESULT = "call", "result"  # with the place of the address, or of the result: "call 7"


def call_outside(place: int, t: Symbol, x: Sequence[Any]) -> list[Symbol]:
    """Return f(t, x) as symbols, one for each component of x.

    Parameters
    ----------
    place
        Which of the parameters is the address of f, a C function of (t, x, p, out) that is given
        the same parameters as the code that calls it.
    t, x
        Its arguments.
    """
    graph = t.graph
    call = graph.node(f"{CALL} {place}", t.index, *(as_node(graph, xi) for xi in x))
    return [Symbol(graph, graph.node(f"{RESULT} {k}", call)) for k in range(len(x))]
