"""Run a right-hand side on arrays of node numbers and keep what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TracingError
from ..graph import Program
from ..trace import run
from .blocks import SymbolBlock, block_of
from .columns import Columns, equal
from .program import LoopProgram
from .templates import families

__all__ = ["loops_of", "trace_loops"]

#: Largest difference from the function itself, relative to the size of what it returns.
AGREEMENT = 1e-9


def trace_loops(
    call: Callable[[Any, Any, Any], Any], sizes: Sequence[int], outputs: int
) -> LoopProgram:
    """Trace a function of (t, y, p) an array at a time.

    Parameters
    ----------
    call
        The function.
    sizes
        Lengths of y and p.
    outputs
        How many numbers it returns.

    Raises
    ------
    TracingError
        Where the function does what is not known of arrays. It may still be traced by symbols.
    """
    one, other = (_traced(call, sizes, outputs) for _ in range(2))
    if not equal(one, other):
        raise TracingError("two traces differ")
    regions = (("t", 1), ("y", sizes[0]), ("p", sizes[1]))
    program = _program(*one, regions)
    _compare(program, call, sizes)
    return program


def loops_of(program: Program, n: int, k: int) -> LoopProgram:
    """Find the loops of a straight-line program whose inputs are t, n states, k parameters."""
    graph, outputs = Columns.of_program(program)
    return _program(graph, outputs, (("t", 1), ("y", n), ("p", k)))


def _program(
    graph: Columns, outputs: np.ndarray, regions: tuple[tuple[str, int], ...]
) -> LoopProgram:
    found, work = families(graph, outputs, [length for _, length in regions])
    return LoopProgram(tuple(found), regions, work, outputs.size)


def _traced(call: Any, sizes: Sequence[int], outputs: int) -> tuple[Columns, np.ndarray]:
    n, k = sizes
    graph = Columns(1 + n + k)
    t = SymbolBlock(graph, np.array(0))
    y, p = SymbolBlock(graph, np.arange(1, 1 + n)), SymbolBlock(graph, np.arange(1 + n, 1 + n + k))
    result = run(call, (t, y, p), graph)
    if result is None:
        raise TracingError("it returned None")
    nodes = block_of(graph, result).astype(float).index
    if nodes.shape != (outputs,):
        raise TracingError(f"it returned shape {nodes.shape}")
    return graph, nodes


def _compare(program: LoopProgram, call: Any, sizes: Sequence[int]) -> None:
    """Compare with the function at one point: some of NumPy could have gone past the blocks."""
    random = np.random.default_rng(0)
    t, y, p = 0.37, *(0.1 + random.random(size) for size in sizes)
    with np.errstate(all="ignore"):
        expected = np.asarray(call(t, y.copy(), p.copy()), dtype=float)
    found = program(t, y, p)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    if not np.allclose(found, expected, rtol=AGREEMENT, atol=AGREEMENT * scale, equal_nan=True):
        raise TracingError("its trace differs from it")
