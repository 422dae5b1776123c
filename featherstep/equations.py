"""Differential equations as text: ``y'' = -sin(y)``, read by a small grammar and never executed.

A system is a list of statements, one a line or separated by semicolons; # begins a comment:

    y'' = mu*(1 - y^2)*y' - y      an equation of any order for each unknown, t is the time
    y(0) = 2; y'(0) = 0            initial values, all at the same time
    mu = 5                         a parameter
    t = 0 .. 20                    the interval

Right-hand sides are taken apart by Python's parser into numbers, names, + − * / ** and the
functions of :data:`FUNCTIONS`, everything else is refused; the tree is then walked with the numbers
of a run, or once with symbols, so that such problems can be traced.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from integrators import IVP
from integrators.errors import suggest

__all__ = ["FUNCTIONS", "is_equation", "read_problem"]

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "abs": np.abs, "sign": np.sign, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan,
}  # fmt: skip
CONSTANTS = {"pi": math.pi, "e": math.e}
OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}  # fmt: skip
ENDING = ".ode"
LONGEST, DEEPEST = 20_000, 60  # characters of a system, depth of an expression
UNIT = (0.0, 10.0)  # the interval, if none is given

_NAME = r"[A-Za-z_]\w*"
_EQUATION = re.compile(rf"^({_NAME})\s*('+)\s*=(?!=)(.*)$")
_START = re.compile(rf"^({_NAME})\s*('*)\s*\(([^()]*)\)\s*=(.*)$")
_SPAN = re.compile(r"^t\s*=(.*?)\.\.(.*)$")
_VALUE = re.compile(rf"^({_NAME})\s*=(?!=)(.*)$")
_PRIMED = re.compile(rf"({_NAME})\s*('+)")


def is_equation(text: str) -> bool:
    """Whether what was typed is an equation, or a file of them, and not a name.

    Examples
    --------
    >>> is_equation("y'' = -sin(y)"), is_equation("kepler")
    (True, False)
    """
    return "=" in text or text.endswith(ENDING)


def read_problem(
    text: str,
    y0: Sequence[float] | None = None,
    t_end: float | None = None,
    parameters: Mapping[str, float] | None = None,
) -> IVP:
    """Read a system as an initial value problem.

    Parameters
    ----------
    text
        The statements, or the name of a file ending in ``.ode``.
    y0
        Initial values, each unknown with its derivatives, in the order of the equations; by default
        what the statements say, else 0.
    t_end
        End of the interval, in place of the one that is stated.
    parameters
        Values for parameters, in place of those stated or left open.

    Examples
    --------
    >>> pendulum = read_problem("y'' = -k*sin(y); k = 9.81", [1.0, 0.0], 2.0)
    >>> pendulum.n, pendulum.params
    (2, array([9.81]))
    >>> pendulum.f(0.0, [0.0, 3.0], [9.81])
    array([ 3., -0.])
    """
    name = text.strip()
    if text.endswith(ENDING):
        path = Path(text)
        if not path.is_file():
            raise ValueError(f"there is no file {text} with equations")
        name, text = path.stem, path.read_text(encoding="utf-8")
    if len(text) > LONGEST:
        raise ValueError(f"equations of more than {LONGEST} characters are not read")
    given = parameters or {}
    system = _System(text, given)
    values = {**system.values, **_known(given, system)}
    starts = _starts(system, y0)
    first, last = system.span or UNIT
    names = list(values)
    places = {unknown: k for k, unknown in enumerate(system.states)}
    slopes = [system.slope(state) for state in system.states]

    def f(t: Any, y: Any, p: Any) -> Any:
        inputs = {"t": t, **{state: y[k] for state, k in places.items()}}
        inputs |= {name: p[k] for k, name in enumerate(names)}
        return np.array([_value(slope, inputs) for slope in slopes])

    def without(t: Any, y: Any) -> Any:
        return f(t, y, ())

    return IVP(
        f if names else without, starts, (first, last if t_end is None else t_end),
        [values[name] for name in names], name=name if len(name) <= 40 else name[:37] + "…",
    )  # fmt: skip


class _System:
    """Statements, sorted by what they say."""

    def __init__(self, text: str, given: Mapping[str, float]) -> None:
        self.orders: dict[str, int] = {}
        self.sides: dict[str, ast.expr] = {}
        self.starts: dict[str, tuple[float, float]] = {}
        self.values: dict[str, float] = {}
        self.span: tuple[float, float] | None = None
        lines = [line.partition("#")[0] for line in re.split(r"[;\n]", text)]
        for line in filter(None, map(str.strip, lines)):
            self._read(line.replace("’", "'").replace("−", "-"))
        if not self.orders:
            raise ValueError("there is no equation; write, for instance, y'' = -sin(y)")
        self.states = [n + "'" * k for n, order in self.orders.items() for k in range(order)]
        known = {*self.states, *self.values, *CONSTANTS, "t"}
        for unknown, side in self.sides.items():
            for node in ast.walk(side):
                if isinstance(node, ast.Name) and (name := _plain(node.id)) not in known:
                    if name in given and "'" not in name:
                        self.values[name] = float(given[name])
                    elif name not in FUNCTIONS:
                        raise ValueError(
                            f"{name} in the equation of {unknown} is not known"
                            f"{suggest(name, sorted(known | set(FUNCTIONS)))}; a parameter needs a "
                            f"value among the equations, separated by a semicolon: {name} = 1"
                        )

    def _read(self, line: str) -> None:
        if found := _EQUATION.match(line):
            name, primes, side = found.groups()
            if name in self.orders:
                raise ValueError(f"there are two equations for {name}")
            if name in ("t", *FUNCTIONS, *CONSTANTS):
                raise ValueError(f"{name} cannot be an unknown: it has a meaning of its own")
            self.orders[name], self.sides[name] = len(primes), _parsed(side)
        elif found := _SPAN.match(line):
            self.span = _number(found[1]), _number(found[2])
        elif found := _START.match(line):
            name, primes, time, value = found.groups()
            self.starts[name + primes] = _number(time), _number(value)
        elif found := _VALUE.match(line):
            self.values[found[1]] = _number(found[2])
        else:
            raise ValueError(
                f"{line!r} is no statement; expected an equation such as y'' = -y, an initial "
                "value y(0) = 1, a parameter mu = 5, or t = 0 .. 20"
            )

    def slope(self, state: str) -> ast.expr:
        """What the derivative of a state is: the next state, or the right-hand side."""
        following = state + "'"
        name = state.rstrip("'")
        if following in self.states:
            return ast.Name(_mangled(following))
        return self.sides[name]


def _known(parameters: Mapping[str, float], system: _System) -> dict[str, float]:
    for name in parameters:
        if name not in system.values:
            raise ValueError(
                f"the equations have no parameter {name!r}{suggest(name, list(system.values))}"
            )
    return {name: float(value) for name, value in parameters.items()}


def _starts(system: _System, y0: Sequence[float] | None) -> list[float]:
    if y0 is not None:
        if len(y0) != len(system.states):
            shown = ", ".join(system.states)
            raise ValueError(f"--y0 needs {len(system.states)} numbers, for {shown}; got {len(y0)}")
        return list(y0)
    for state in system.starts:
        if state not in system.states:
            raise ValueError(f"{state} has an initial value but is not among the unknowns "
                             f"{', '.join(system.states)}")  # fmt: skip
    times = {time for time, _ in system.starts.values()}
    if len(times) > 1:
        raise ValueError(f"initial values are given at different times, {sorted(times)}")
    if not times:
        raise ValueError(f"initial values are missing: --y0 with {', '.join(system.states)}")
    start = times.pop()
    if system.span is not None and system.span[0] != start:
        raise ValueError(f"initial values are given at t = {start:g}, the interval begins at "
                         f"{system.span[0]:g}")  # fmt: skip
    system.span = system.span or (start, start + UNIT[1])
    return [system.starts.get(state, (start, 0.0))[1] for state in system.states]


# -------------------------------------------------------------------- expressions


def _mangled(name: str) -> str:
    """y'' as a name that Python's parser takes."""
    plain = name.rstrip("'")
    return f"{plain}__d{len(name) - len(plain)}" if plain != name else name


def _plain(name: str) -> str:
    plain, found, count = name.rpartition("__d")
    return plain + "'" * int(count) if found and count.isdigit() else name


def _parsed(text: str) -> ast.expr:
    """Take an expression apart; refuse what is not arithmetic."""
    source = _PRIMED.sub(lambda m: _mangled(m[1] + m[2]), text.strip()).replace("^", "**")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        missing = re.search(r"[\d)]\s*[A-Za-z_(]", text)
        hint = f"; write a * b for a product ({missing[0].strip()})" if missing else ""
        raise ValueError(f"{text.strip()!r} is not an expression{hint}") from None
    _check(tree, text.strip(), 0)
    return tree


def _check(node: ast.AST, text: str, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("an expression is nested too deeply")
    if isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in OPERATORS:
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in FUNCTIONS:
            known = list(FUNCTIONS)
            raise ValueError(f"{node.func.id} is not a function that is known"
                             f"{suggest(node.func.id, known)}")  # fmt: skip
        if len(node.args) != 1 or node.keywords:
            raise ValueError(f"{node.func.id} takes one argument")
        parts = list(node.args)
    elif isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise ValueError(f"{node.id} needs an argument: {node.id}(y)")
        parts = []
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        parts = []
    else:
        raise ValueError(
            f"{text!r} has more in it than numbers, names, + - * / ^ and functions such as sin(y)"
        )
    for part in parts:
        _check(part, text, depth + 1)


def _value(node: ast.AST, inputs: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        name = _plain(node.id)
        return inputs[name] if name in inputs else CONSTANTS[name]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_value(node.operand, inputs))
    if isinstance(node, ast.BinOp):
        left = _value(node.left, inputs)
        right = node.right
        if isinstance(node.op, ast.Pow) and isinstance(right, ast.Constant):
            power = right.value
            return left ** (power if isinstance(power, int) else float(power))  # type: ignore[arg-type]
        return OPERATORS[type(node.op)](left, _value(right, inputs))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return FUNCTIONS[node.func.id](_value(node.args[0], inputs))


def _number(text: str) -> float:
    """A number, or arithmetic of numbers: 2*pi."""
    try:
        value = float(_value(_parsed(text), {}))
    except KeyError as error:
        raise ValueError(f"{text.strip()!r} is not a number: {error} has no value") from None
    except ArithmeticError as error:
        raise ValueError(f"{text.strip()!r} is not a number: {error}") from None
    if not math.isfinite(value):
        raise ValueError(f"{text.strip()!r} is not a finite number")
    return value
