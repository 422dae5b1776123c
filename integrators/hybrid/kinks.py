"""Kinks and jumps that a trace knows: ``sign``, ``abs``, ``minimum``, ``maximum`` and comparisons.

Each is a surface a − b = 0 between nodes of the graph. On given sides of all surfaces the graph is
replayed with the branch taken: a smooth function, traced as the whole is. ``floor`` has infinitely
many surfaces and is left as it is, as are ``==`` and ``!=``, which hold on a surface only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tracing import Traced, traced
from ..tracing.symbols.symbol import apply
from .switch import Piecewise, Signs

__all__ = ["Kinks"]

_JUMPS = frozenset({"sign", "lt", "le"})  # the others are continuous
_KINKS = _JUMPS | {"abs", "min", "max"}


class Kinks(Piecewise):
    """A traced right-hand side as a piecewise smooth one.

    Parameters
    ----------
    f
        The right-hand side; n and the number of parameters are known.

    Examples
    --------
    >>> import numpy as np
    >>> f = traced(lambda t, y: [y[1], -y[0] - np.sign(y[1])], n=2)
    >>> kinks = Kinks(f)
    >>> kinks.count, kinks.field((1,))(0.0, [0.0, 0.5]).tolist()
    (1, [0.5, -1.0])
    """

    def __init__(self, f: Traced) -> None:
        self.f, self.program = f, f.graph
        self._fields: dict[Signs, Traced] = {}
        self._surfaces: dict[tuple[int, Signs], Traced] = {}
        self.pairs: list[tuple[int, int | None]] = []  # nodes a, b of a − b; None: zero
        self.place: dict[int, tuple[int, int]] = {}  # kink node: its surface, and orientation
        moving = self._moving()
        for node, (op, args) in enumerate(zip(self.program.ops, self.program.args)):
            if op in _KINKS and any(moving[a] for a in args):
                self.place[node] = self._surface_of(args)

    def _moving(self) -> list[bool]:
        """Which nodes depend on t or y."""
        found: list[bool] = []
        for op, args in zip(self.program.ops, self.program.args):
            if op == "input":
                found.append(args[0] <= self.f.n)
            else:
                found.append(op != "const" and any(found[a] for a in args))
        return found

    def _surface_of(self, args: Sequence[int]) -> tuple[int, int]:
        """Number of the surface a − b = 0, and +1 or −1 if it is kept as b − a."""
        a, b = (args[0], None) if len(args) == 1 else (args[0], args[1])
        a_zero, b_zero = self._is_zero(a), b is None or self._is_zero(b)
        pair: tuple[int, int | None]
        if b_zero:
            pair, orientation = (a, None), 1
        elif a_zero:
            assert b is not None
            pair, orientation = (b, None), -1
        else:
            assert b is not None
            pair, orientation = ((a, b), 1) if a < b else ((b, a), -1)
        if pair not in self.pairs:
            self.pairs.append(pair)
        return self.pairs.index(pair), orientation

    def _is_zero(self, node: int) -> bool:
        return self.program.ops[node] == "const" and self.program.args[node][0] == 0.0

    @property
    def count(self) -> int:
        """Number of surfaces."""
        return len(self.pairs)

    def field(self, signs: Signs) -> Traced:
        """The graph with these branches."""
        if signs not in self._fields:
            outputs = self.program.outputs
            self._fields[signs] = self._traced(
                lambda values: [values(o) for o in outputs], signs, None
            )
        return self._fields[signs]

    def surface(self, i: int, signs: Signs) -> Traced:
        """A − b, with the branches before it."""
        if (i, signs) not in self._surfaces:
            a, b = self.pairs[i]

            def difference(values: Callable[[int], Any]) -> list[Any]:
                return [values(a) if b is None else values(a) - values(b)]

            self._surfaces[i, signs] = self._traced(difference, signs, 1)
        return self._surfaces[i, signs]

    def jump_surfaces(self) -> Traced | None:
        """Return a − b of all surfaces at which f may jump, as one function; None without any."""
        jumping = {self.place[node][0] for node in self.place if self.program.ops[node] in _JUMPS}
        pairs = [self.pairs[i] for i in sorted(jumping)]
        if not pairs:
            return None

        def differences(values: Callable[[int], Any]) -> list[Any]:
            return [values(a) if b is None else values(a) - values(b) for a, b in pairs]

        return self._traced(differences, (None,) * self.count, len(pairs))

    def relevant(self, signs: Signs) -> frozenset[int]:
        """Surfaces of the kinks that the outputs still need."""
        found: set[int] = set()
        seen: set[int] = set()
        waiting = list(self.program.outputs)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            op, args = self.program.ops[node], self.program.args[node]
            if op in ("const", "input"):
                continue
            if node in self.place:
                found.add(self.place[node][0])
                waiting += args  # the surface needs both sides
            if op == "select":
                waiting.append(args[0])
            waiting += self._operands(node, signs)
        return frozenset(found)

    def _chosen(self, node: int, signs: Signs) -> int | None:
        """The operand that a ``select`` takes, if its condition is decided."""
        if self.program.ops[node] != "select":
            return None
        condition, a, b = self.program.args[node]
        value = self._truth(condition, signs)
        return None if value is None else (a if value else b)

    def _truth(self, node: int, signs: Signs) -> bool | None:
        """Whether a condition holds on these sides; None if they do not decide it."""
        op, args = self.program.ops[node], self.program.args[node]
        if op in ("lt", "le") and node in self.place:
            i, orientation = self.place[node]
            side = signs[i]
            return None if side is None else side * orientation < 0
        if op == "not":
            value = self._truth(args[0], signs)
            return None if value is None else not value
        if op in ("and", "or"):
            both = [self._truth(a, signs) for a in args]
            decisive = op == "or"
            if decisive in both:
                return decisive
            return None if None in both else not decisive
        return None

    def _traced(
        self, result: Callable[[Callable[[int], Any]], list[Any]], signs: Signs, outputs: int | None
    ) -> Traced:
        n, k = self.f.n, self.f.k

        def replay(t: Any, y: Any, p: Any) -> list[Any]:
            inputs, known = [t, *y, *p], {}

            def value(node: int) -> Any:
                if node not in known:
                    known[node] = self._value(node, signs, inputs, value)
                return known[node]

            for node in range(len(self.program.ops)):  # in order, so that nothing recurses deeply
                if node in needed:
                    value(node)
            return result(value)

        needed = self._needed(result, signs)
        if k:
            return traced(replay, n=n, params=k, outputs=outputs)
        return traced(lambda t, y: replay(t, y, ()), n=n, params=0, outputs=outputs)

    def _needed(self, result: Callable[..., Any], signs: Signs) -> set[int]:
        """Nodes that a result needs on these sides."""
        waiting: list[int] = []

        def asked(node: int) -> float:
            waiting.append(node)
            return 0.0

        result(asked)
        found: set[int] = set()
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                if self.program.ops[node] not in ("const", "input"):
                    waiting += self._operands(node, signs)
        return found

    def _operands(self, node: int, signs: Signs) -> Sequence[int]:
        """Operands of a node that are needed on these sides."""
        op, args = self.program.ops[node], self.program.args[node]
        chosen = self._chosen(node, signs)
        if chosen is not None:
            return [chosen]
        if node in self.place and signs[self.place[node][0]] is not None:
            i, orientation = self.place[node]
            side = (signs[i] or 0) * orientation
            if op == "sign":
                return []
            if op in ("min", "max"):
                return [args[0] if (side > 0) == (op == "max") else args[1]]
        return args

    def _value(
        self, node: int, signs: Signs, inputs: Sequence[Any], value: Callable[[int], Any]
    ) -> Any:
        op, args = self.program.ops[node], self.program.args[node]
        if op == "const":
            return float(args[0])
        if op == "input":
            return inputs[args[0]]
        chosen = self._chosen(node, signs)
        if chosen is not None:
            return value(chosen)
        if node in self.place and signs[self.place[node][0]] is not None:
            i, orientation = self.place[node]
            side = float((signs[i] or 0) * orientation)
            if op == "sign":
                return side
            if op == "abs":
                return value(args[0]) if side > 0 else -value(args[0])
            if op in ("min", "max"):
                return value(args[0] if (side > 0) == (op == "max") else args[1])
            if op in ("lt", "le"):
                return side < 0
        return apply(op, *(value(a) for a in args))
