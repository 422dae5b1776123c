"""Programs as C: one file that needs nothing but a C compiler and its mathematics library.

The function does the operations of the graph in their order, so that a compiler that is not
allowed to reorder or contract them (``-std=c99`` without ``-ffast-math``) gives the same bits,
but for elementary functions, which are those of its own library.
"""

from __future__ import annotations

import re

from .graph import FLOATS, Program
from .printing import _ATOM, Dialect, statements

__all__ = ["to_c"]

_HEAD = """\
/* {title}
 *
 * void {name}(double t, const double *y, const double *p, double *out)
 *   t    the time
 *   y    {n} numbers: {states}
 *   p    {k} numbers{parameters}
 *   out  {m} numbers, row by row: shape {shape}
 *
 * {total} operations. Compile with: cc -std=c99 -O2 -c {name}.c; link with -lm
 */
#include <math.h>
"""

#: What <math.h> lacks, as NumPy has it: NaN is passed on.
_HELPERS = {
    "min": "static double least(double a, double b) "
    "{ return (a < b || a != a) ? a : b; }",
    "max": "static double most(double a, double b) "
    "{ return (a > b || a != a) ? a : b; }",
    "sign": "static double sign(double a) "
    "{ return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == 0.0 ? 0.0 : a; }",
}  # fmt: skip
_NAMES = {"abs": "fabs", "min": "least", "max": "most"}
_RESERVED = frozenset({"t", "y", "p", "out", "main", "double", "int", "void", "const", "static"})


def _number(x: float) -> tuple[str, int]:
    if x != x:
        return "NAN", _ATOM
    if abs(x) == float("inf"):
        return ("INFINITY", _ATOM) if x > 0 else ("-INFINITY", 3)
    return repr(x), 3 if repr(x)[0] == "-" else _ATOM


def _call(op: str, inner: list[str]) -> str:
    if op == "select":
        return f"({inner[0]} ? {inner[1]} : {inner[2]})"
    if op in ("and", "or"):
        return f"(({inner[0]}) {'&&' if op == 'and' else '||'} ({inner[1]}))"
    if op == "not":
        return f"!({inner[0]})"
    return f"{_NAMES.get(op, op)}({', '.join(inner)})"


_AS_C = Dialect(_number, _call, "    const double {name} = {value};", negated=4)


def to_c(program: Program, n: int, k: int, name: str = "f", title: str = "") -> str:
    """C source of a program whose inputs are t, n states, k parameters and further vectors.

    The signature is that of the machine code: ``void f(double t, const double *y, const double *p,
    double *out)``; further vectors follow the parameters in ``p``.

    Raises
    ------
    ValueError
        If the name is none in C, or the graph calls functions that have no source.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> source = to_c(trace(lambda t, y: [y[1], -y[0]], (), 2), 2, 0)
    >>> [line.strip() for line in source.splitlines()[-3:-1]]
    ['out[0] = y[1];', 'out[1] = -y[0];']
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in _RESERVED:
        raise ValueError(f"name: expected a name of a C function, received {name!r}")
    unknown = sorted(set(program.ops) - FLOATS.keys() - {"const", "input"})
    if unknown:
        raise ValueError(
            f"to_c: the graph calls {unknown[0]!r}, a function of this process without C source; "
            "trace the function as a whole"
        )
    places = ["t", *(f"y[{i}]" for i in range(n))]
    places += [f"p[{i}]" for i in range(len(program.inputs) - 1 - n)]
    renamed = Program(program.ops, program.args, tuple(places), program.outputs, program.shape)
    lines, results = statements(renamed, _AS_C)
    extra = len(program.inputs) - 1 - n
    head = _HEAD.format(
        title=(title or "Generated from a traced function.").replace("*/", "* /"),
        name=name,
        n=n,
        k=extra,
        states="the state" if n else "none",
        parameters="" if extra == k else f": {k} parameters, then further vectors",
        m=len(results),
        shape=" × ".join(map(str, program.shape)) or "()",
        total=program.operations()["total"],
    )
    helpers = [text for op, text in _HELPERS.items() if op in program.ops]
    read = {places[a[0]][0] for op, a in zip(program.ops, program.args) if op == "input"}
    unused = [f"    (void){v};" for v in ("t", "y", "p") if v not in read]
    stores = [f"    out[{i}] = {result};" for i, result in enumerate(results)]
    signature = f"void {name}(double t, const double *y, const double *p, double *out)"
    prototype = f"{signature};"
    body = [signature, "{", *unused, *lines, *stores, "}"]
    return "\n".join([head, *helpers, *([""] if helpers else []), prototype, "", *body, ""])
