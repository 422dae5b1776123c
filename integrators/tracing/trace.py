"""Run a function on symbols and keep what it did.

:func:`trace` is the low-level entry for functions of arrays; :func:`trace_flat` serves
:mod:`.traced`. The function runs twice: if the two graphs differ, it depends on something hidden
(a random number, a counter, the clock), and freezing it would give wrong results silently.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .errors import TracingError, user_location
from .graph import Graph, Program
from .symbols import numpy_functions as functions  # noqa: F401 (own versions of NumPy's functions)
from .symbols.arrays import SymbolArray, numpy_for_symbols
from .symbols.symbol import PythonFloat, Symbol, apply, as_number

__all__ = ["input_array", "output_nodes", "program_on_symbols", "run", "trace"]


def input_array(graph: Graph, first: int, shape: tuple[int, ...]) -> Any:
    """Return inputs first, first + 1, ... as an array of symbols (a symbol for shape ())."""
    if not shape:
        return PythonFloat(graph, graph.input(first))
    size = int(np.prod(shape, dtype=int))
    flat = np.empty(size, dtype=object)
    for k in range(size):
        flat[k] = Symbol(graph, graph.input(first + k))
    return flat.reshape(shape).view(SymbolArray)


def _is_number(x: Any) -> bool:
    """Whether an output that is no symbol is a real number: no text, no complex number."""
    if isinstance(x, np.ndarray):
        return x.ndim == 0 and _is_number(x[()])
    if isinstance(x, np.generic):
        return x.dtype.kind in "fiub"
    return hasattr(x, "__float__")


def output_nodes(graph: Graph, result: Any, name: str) -> tuple[list[int], tuple[int, ...]]:
    """Return the nodes and the shape of what a traced function returned."""
    if result is None:
        raise TracingError(f"{name} returned None; it must return its value")
    array = np.asarray(result, dtype=object)
    nodes = []
    for x in array.flat:
        if isinstance(x, Symbol):
            if x.graph is not graph:
                raise TracingError(
                    f"{name} returned a traced value of an earlier call: it keeps values between "
                    "calls. Remedy: keep no state, or leave the function untraced."
                )
            nodes.append(as_number(graph, x.index))
        elif _is_number(x):
            nodes.append(graph.const(float(x)))
        else:
            split = ": split them into real and imaginary parts" if np.iscomplexobj(x) else ""
            raise TracingError(
                f"{name} returned {type(x).__name__} ({x!r}); expected real numbers or traced "
                f"values, in a list, tuple or array{split}"
            )
    return nodes, array.shape


#: How NumPy says that something is not an index at all; other IndexErrors are the user's own.
_NOT_AN_INDEX = ("used as indices", "are valid indices")


def run(function: Callable[..., Any], arguments: Sequence[Any], blocks: Any = None) -> Any:
    """Call the function on symbols; errors name the user's line.

    `blocks` is the graph of arrays that are traced as a whole.
    """
    with numpy_for_symbols(blocks):
        try:
            return function(*arguments)
        except TracingError:
            raise
        except IndexError as error:
            if not any(text in str(error) for text in _NOT_AN_INDEX):
                raise
            raise TracingError(
                f"{user_location(error.__traceback__)}\nan index must be a constant, whole numbers "
                f"or a mask: a traced value is none ({error}). Remedy: choose between values with "
                "integrators.where(mask, a, b); for example, np.sum(y[y > 0]) is "
                "np.sum(integrators.where(y > 0, y, 0.0))."
            ) from error
        except (TypeError, AttributeError, np.linalg.LinAlgError) as error:
            raise TracingError(
                f"{user_location(error.__traceback__)}\n{type(error).__name__} on traced values: "
                f"{error}. Remedy: write it with NumPy's elementary functions, or leave the "
                "function untraced."
            ) from error


def twice(build: Callable[[], Program], name: str) -> Program:
    """Build a program two times and insist that both are the same."""
    first, second = build(), build()
    if first.digest != second.digest:
        raise TracingError(
            f"two traces of {name} differ ({len(first)} and {len(second)} nodes): it depends on "
            "hidden state such as a random number, a counter or the clock. Remedy: pass what "
            "changes as a parameter, or leave the function untraced."
        )
    return first


def trace(
    function: Callable[..., Any], *shapes: int | tuple[int, ...], simplify: bool = True
) -> Program:
    """Trace a function of arrays.

    Parameters
    ----------
    function
        Takes one array (or scalar) for each shape and returns numbers or arrays.
    shapes
        Shape of each argument: an int for a vector, ``()`` for a scalar.
    simplify
        False keeps every operation that the function performs, to count them.

    Returns
    -------
    Program
        The straight-line program; its inputs are the arguments one after the other, row-major.

    Examples
    --------
    The cost example of Featherstone's §10.4: 29 operations as written, 5 after simplification.

    >>> import numpy as np
    >>> I, s = np.diag([1.5, 1.6, 1.7]), np.array([0.0, 0.0, 1.0])
    >>> def tau(v):
    ...     return np.cross(v, I @ v) @ s
    >>> trace(tau, 3, simplify=False).operations()["total"]
    29
    >>> trace(tau, 3).operations()
    {'mul': 4, 'sub': 1, 'total': 5}
    """
    full = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    name = getattr(function, "__name__", "the function")
    try:
        labels = list(inspect.signature(function).parameters)[: len(full)]
    except (TypeError, ValueError):
        labels = []
    labels += [f"x{k}" for k in range(len(labels), len(full))]
    inputs: list[str] = []
    for label, shape in zip(labels, full):
        inputs += [
            label + (f"[{', '.join(map(str, index))}]" if shape else "")
            for index in np.ndindex(*shape)
        ]

    def build() -> Program:
        graph = Graph(simplify)
        arguments, first = [], 0
        for shape in full:
            arguments.append(input_array(graph, first, shape))
            first += int(np.prod(shape, dtype=int))
        nodes, shape = output_nodes(graph, run(function, arguments), name)
        return Program.from_graph(graph, nodes, inputs, shape)

    return twice(build, name)


def program_on_symbols(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """Replay a program on symbols of another graph, simplifying again."""
    algebra = {op: partial(apply, op) for op in set(program.ops)}
    return program.evaluate(list(inputs), algebra)
