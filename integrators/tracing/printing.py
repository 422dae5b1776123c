r"""Programs as text: straight-line Python, and LaTeX for small ones; C is in ``c_source``.

A value that is used once and is short is written where it is used; every other value gets a
name. The Python text, executed, does the same floating-point operations in the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from .graph import Program

__all__ = ["Dialect", "statements", "to_latex", "to_python"]

#: Longest expression that is written in place instead of getting a name.
LONGEST_INLINE = 60

_INFIX = {
    "add": ("+", 1),
    "sub": ("-", 1),
    "mul": ("*", 2),
    "div": ("/", 2),
    "lt": ("<", 0),
    "le": ("<=", 0),
    "eq": ("==", 0),
    "ne": ("!=", 0),
}
_PYTHON = {
    "asin": "np.arcsin",
    "acos": "np.arccos",
    "atan": "np.arctan",
    "asinh": "np.arcsinh",
    "acosh": "np.arccosh",
    "atanh": "np.arctanh",
    "atan2": "np.arctan2",
    "pow": "np.power",
    "min": "np.minimum",
    "max": "np.maximum",
    "and": "np.logical_and",
    "or": "np.logical_or",
    "not": "np.logical_not",
    "select": "np.where",
}
_ATOM = 9


def _number(x: float) -> tuple[str, int]:
    if x != x:
        return "np.nan", _ATOM
    if abs(x) == float("inf"):
        return ("np.inf", _ATOM) if x > 0 else ("-np.inf", 3)
    return repr(x), _ATOM if x >= 0 and repr(x)[0] != "-" else 3


def _parenthesised(text: tuple[str, int], needed: int) -> str:
    return text[0] if text[1] >= needed else f"({text[0]})"


class Dialect(NamedTuple):
    """How a language writes what straight-line code is made of.

    Attributes
    ----------
    number
        Text and rank of a constant; `_ATOM` where it never needs brackets.
    call
        Text of a function by the name of its operation and the texts of its arguments.
    line
        A statement that names a value, with the places {name} and {value}.
    negated
        Rank that the operand of a minus sign needs: C reads two of them as another operator.
    """

    number: Callable[[float], tuple[str, int]]
    call: Callable[[str, list[str]], str]
    line: str
    negated: int


def statements(program: Program, dialect: Dialect) -> tuple[list[str], list[str]]:
    """Lines that name values, and the texts of the outputs."""
    uses: Counter[int] = Counter(program.outputs)
    for op, args in zip(program.ops, program.args):
        if op not in ("const", "input"):
            uses.update(args)
    text: list[tuple[str, int]] = []
    lines: list[str] = []
    for i, (op, a) in enumerate(zip(program.ops, program.args)):
        if op == "const":
            text.append(dialect.number(a[0]))
            continue
        if op == "input":
            text.append((program.inputs[a[0]], _ATOM))
            continue
        if op in _INFIX:
            sign, rank = _INFIX[op]
            if op == "mul" and program.ops[a[1]] == "const":
                a = (a[1], a[0])
            left, right = _parenthesised(text[a[0]], rank), _parenthesised(text[a[1]], rank + 1)
            new = (f"{left} {sign} {right}", rank)
        elif op == "neg":
            new = ("-" + _parenthesised(text[a[0]], dialect.negated), 3)
        else:
            new = (dialect.call(op, [text[j][0] for j in a]), _ATOM)
        if uses[i] > 1 or len(new[0]) > LONGEST_INLINE:
            name = f"x{len(lines)}"
            lines.append(dialect.line.format(name=name, value=new[0]))
            new = (name, _ATOM)
        text.append(new)
    return lines, [text[o][0] for o in program.outputs]


_AS_PYTHON = Dialect(
    number=_number,
    call=lambda op, inner: f"{_PYTHON.get(op, 'np.' + op)}({', '.join(inner)})",
    line="    {name} = {value}",
    negated=3,
)


def to_python(program: Program, name: str = "f", arguments: str | None = None) -> str:
    """Readable Python source that computes the program's outputs.

    Parameters
    ----------
    program
        What to print.
    name
        Name of the function.
    arguments
        Its argument list; by default the names of the inputs without their indices.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> print(to_python(trace(lambda x: [x[0] * x[1], x[0] - 2 * x[1]], 2)))
    def f(x):
        return np.array([x[0] * x[1], x[0] - 2.0 * x[1]])
    """
    if arguments is None:
        arguments = ", ".join(dict.fromkeys(i.split("[")[0] for i in program.inputs))
    lines, results = statements(program, _AS_PYTHON)
    if program.shape == ():
        lines.append(f"    return {results[0]}")
    else:
        tail = "" if len(program.shape) == 1 else f".reshape({program.shape})"
        lines.append(f"    return np.array([{', '.join(results)}]){tail}")
    return f"def {name}({arguments}):\n" + "\n".join(lines)


_LATEX = {
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
    "asinh": r"\operatorname{arsinh}",
    "acosh": r"\operatorname{arcosh}",
    "atanh": r"\operatorname{artanh}",
    "atan2": r"\operatorname{atan2}",
    "log1p": r"\operatorname{log1p}",
    "expm1": r"\operatorname{expm1}",
    "sign": r"\operatorname{sign}",
    "log": r"\ln",
    "and": r"\wedge",
    "or": r"\vee",
    "lt": "<",
    "le": r"\le",
    "eq": "=",
    "ne": r"\ne",
    "add": "+",
    "sub": "-",
}


def _latex_number(x: float) -> str:
    text = str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x)
    mantissa, e, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else text


def _latex_name(name: str) -> str:
    return re.sub(r"\[(.*)\]$", r"_{\1}", name)


def to_latex(program: Program, largest: int = 200) -> str:
    r"""Return the outputs as LaTeX, one a line, for programs of at most ``largest`` operations.

    Examples
    --------
    >>> from integrators.tracing import trace
    >>> import numpy as np
    >>> print(to_latex(trace(lambda x: np.sin(x[0]) / 2.0, 1)))
    \frac{\sin\left(x_{0}\right)}{2}
    """
    total = program.operations()["total"]
    if total > largest:
        raise ValueError(
            f"the graph has {total} operations, more than largest={largest}; "
            "use to_python() or raise the limit"
        )
    text: list[tuple[str, int]] = []
    for op, a in zip(program.ops, program.args):
        if op == "const":
            x = a[0]
            text.append((_latex_number(x) if abs(x) < float("inf") else str(x), 9 if x >= 0 else 1))
            continue
        if op == "input":
            text.append((_latex_name(program.inputs[a[0]]), _ATOM))
            continue
        if op == "mul" and program.ops[a[1]] == "const":
            a = (a[1], a[0])
        arg = [text[j] for j in a]

        def inside(k: int, needed: int, arg: list[tuple[str, int]] = arg) -> str:
            t, rank = arg[k]
            return t if rank >= needed else rf"\left({t}\right)"

        if op in ("add", "sub"):
            text.append((f"{inside(0, 1)} {_LATEX[op]} {inside(1, 2 if op == 'sub' else 1)}", 1))
        elif op == "mul":
            text.append((rf"{inside(0, 2)} \, {inside(1, 2)}", 2))
        elif op == "div":
            text.append((rf"\frac{{{arg[0][0]}}}{{{arg[1][0]}}}", 3))
        elif op == "neg":
            text.append((f"-{inside(0, 2)}", 1))
        elif op == "pow":
            text.append((f"{inside(0, 9)}^{{{arg[1][0]}}}", 3))
        elif op == "sqrt":
            text.append((rf"\sqrt{{{arg[0][0]}}}", _ATOM))
        elif op == "abs":
            text.append((rf"\left|{arg[0][0]}\right|", _ATOM))
        elif op == "floor":
            text.append((rf"\left\lfloor {arg[0][0]} \right\rfloor", _ATOM))
        elif op in ("lt", "le", "eq", "ne", "and", "or"):
            text.append((f"{inside(0, 1)} {_LATEX[op]} {inside(1, 1)}", 0))
        elif op == "not":
            text.append((rf"\neg {inside(0, 9)}", 1))
        elif op == "select":
            c, x, y = (t for t, _ in arg)
            text.append(
                (
                    rf"\begin{{cases}}{x} & \text{{if }} {c}\\ {y} & \text{{otherwise}}"
                    r"\end{cases}",
                    0,
                )
            )
        else:
            inner = ", ".join(t for t, _ in arg)
            text.append((rf"{_LATEX.get(op, chr(92) + op)}\left({inner}\right)", _ATOM))
    return "\\\\\n".join(text[o][0] for o in program.outputs)
