"""Right-hand sides that jump at a surface: ``Switch(g, plus, minus)``.

A :class:`Switch` is a function f(t, y) that is ``plus`` where g > 0 and ``minus`` where g < 0. Sums
of switches and functions, and switches within switches, are switches of several surfaces. What
happens at the surfaces is in :mod:`.filippov`; it asks a :class:`Piecewise` for the smooth fields
between them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..problem import accepts_params
from ..tracing import Traced, TracingError, traced

__all__ = ["Piecewise", "Signs", "Switch", "SwitchSum", "call"]

#: Side of each surface: +1, −1; None where it makes no difference.
Signs = tuple[int | None, ...]


def call(function: Callable[..., Any], t: Any, y: Any, p: tuple[Any, ...]) -> Any:
    """function(t, y) or function(t, y, p), as it takes them."""
    return function(t, y, *p) if p and accepts_params(function) else function(t, y)


class Piecewise(ABC):
    """A right-hand side that is smooth between surfaces g_i(t, y) = 0."""

    is_piecewise = True  # asked of any f, without loading this module

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of surfaces."""

    @abstractmethod
    def field(self, signs: Signs) -> Callable[..., Any]:
        """The smooth function that holds on these sides of the surfaces."""

    @abstractmethod
    def surface(self, i: int, signs: Signs) -> Callable[..., Any]:
        """g_i, which may itself depend on the sides of surfaces before it."""

    @abstractmethod
    def relevant(self, signs: Signs) -> frozenset[int]:
        """Surfaces at which the field changes, seen from these sides."""


class Switch(Piecewise):
    """A right-hand side that jumps at a surface g(t, y) = 0.

    Where the motion reaches the surface, the speeds at which the two sides approach it tell what
    follows: it crosses, or, if both lead into it, it *slides* on the surface, with the convex
    combination of the two sides that is tangent to it (Filippov), until one side leads away. Signs
    of friction stick and slip in that way. ``solve`` locates and steps on all of this; the
    solution's ``modes`` are "plus", "minus" and "sliding".

    Parameters
    ----------
    g
        ``g(t, y)``: the surface is where it vanishes; traced, its rates are exact.
    plus, minus
        The right-hand side where g > 0 and where g < 0: functions f(t, y), or switches again.
        With traced ones, everything runs as machine code.
    name
        For messages.

    See Also
    --------
    Hybrid : Modes with different states, and jumps of the state.

    Notes
    -----
    With ``+``, switches and functions are added: ``f + Switch(g1, …) + Switch(g2, …)``. For a
    traced right-hand side that contains ``np.sign``, ``where``, ``abs``, ``minimum``,
    ``maximum``, ``solve(kinks="locate")`` does the same.

    Examples
    --------
    A block on a rough floor, v' = −sign(v), stops after 2 s and stays:

    >>> from integrators import solve
    >>> slide = Switch(lambda t, y: y[1], lambda t, y: [y[1], -1.0], lambda t, y: [y[1], 1.0])
    >>> sol = solve(slide, (0, 5), [0.0, 2.0])
    >>> [(stay.mode, round(stay.start, 9)) for stay in sol.modes]
    [('plus', 0.0), ('sliding', 2.0)]
    >>> sol.y[:, -1].round(9).tolist()
    [2.0, 0.0]
    """

    def __init__(
        self, g: Callable[..., Any], plus: Callable[..., Any], minus: Callable[..., Any],
        name: str = "",
    ) -> None:  # fmt: skip
        for what, function in (("g", g), ("plus", plus), ("minus", minus)):
            if not callable(function):
                raise TypeError(
                    f"{what} of a Switch must be a function of (t, y), got {function!r}"
                )
        if isinstance(g, Piecewise):
            raise TypeError(
                "g of a Switch must be a continuous function, got a Switch; put the switch into "
                "plus or minus"
            )
        self.g, self.plus, self.minus, self.name = g, plus, minus, name
        self._sides = (plus, minus)
        self._inner = [s.count if isinstance(s, Piecewise) else 0 for s in self._sides]

    @property
    def count(self) -> int:
        """Number of surfaces: its own, those of ``plus``, those of ``minus``."""
        return 1 + sum(self._inner)

    def _split(self, signs: Signs) -> tuple[int | None, Signs, Signs]:
        middle = 1 + self._inner[0]
        return signs[0], signs[1:middle], signs[middle:]

    def field(self, signs: Signs) -> Callable[..., Any]:
        """The side that holds."""
        own, plus, minus = self._split(signs)
        side, inner = (self.plus, plus) if own == 1 else (self.minus, minus)
        return side.field(inner) if isinstance(side, Piecewise) else side

    def surface(self, i: int, signs: Signs) -> Callable[..., Any]:
        """g, or a surface of one of the sides."""
        _, plus, minus = self._split(signs)
        if i == 0:
            return self.g
        if i <= self._inner[0]:
            assert isinstance(self.plus, Piecewise)
            return self.plus.surface(i - 1, plus)
        assert isinstance(self.minus, Piecewise)
        return self.minus.surface(i - 1 - self._inner[0], minus)

    def relevant(self, signs: Signs) -> frozenset[int]:
        """Its own surface, and those of the side that holds."""
        own, plus, minus = self._split(signs)
        side, inner, first = (
            (self.plus, plus, 1) if own == 1 else (self.minus, minus, 1 + len(plus))
        )
        found: Iterable[int] = side.relevant(inner) if isinstance(side, Piecewise) else ()
        return frozenset({0, *(first + i for i in found)})

    def __call__(self, t: Any, y: Any, *p: Any) -> Any:
        """Evaluate, as what it is off the surface; on it the mean of both sides."""
        g = np.asarray(call(self.g, t, y, p)).reshape(())[()]
        if not isinstance(g, float | np.floating | int | np.integer):
            raise TracingError(
                f"{self!r} cannot be traced as one: its surface would be lost. Remedy: trace g, "
                "plus and minus; or write f with np.sign or integrators.where, trace that, and "
                "solve with kinks='locate'"
            )
        if g != 0:
            return call(self.plus if g > 0 else self.minus, t, y, p)
        both = (np.asarray(call(side, t, y, p), dtype=float) for side in self._sides)
        return sum(both) / 2

    def __add__(self, other: Any) -> SwitchSum:
        return SwitchSum([self, other])

    def __radd__(self, other: Any) -> SwitchSum:
        return SwitchSum([other, self])

    def __repr__(self) -> str:
        return f"<Switch {self.name or getattr(self.g, '__name__', 'g')}: {self.count} surfaces>"


class SwitchSum(Piecewise):
    """A sum of functions and switches; ``f + Switch(...)`` makes one."""

    def __init__(self, terms: Sequence[Callable[..., Any]]) -> None:
        flat: list[Any] = []
        for term in terms:
            if not callable(term):
                raise TypeError(f"only functions f(t, y) and switches can be added, got {term!r}")
            flat += term.terms if isinstance(term, SwitchSum) else [term]
        self.terms: list[Any] = flat
        self._first = np.cumsum(
            [0, *(s.count if isinstance(s, Piecewise) else 0 for s in flat)]
        ).tolist()

    @property
    def count(self) -> int:
        """Number of surfaces of all terms."""
        return int(self._first[-1])

    def _own(self, k: int, signs: Signs) -> Signs:
        return signs[self._first[k] : self._first[k + 1]]

    def field(self, signs: Signs) -> Callable[..., Any]:
        """The sum of what holds of each term."""
        parts = [
            term.field(self._own(k, signs)) if isinstance(term, Piecewise) else term
            for k, term in enumerate(self.terms)
        ]

        def total(t: Any, y: Any, *p: Any) -> Any:
            return sum(np.asarray(call(part, t, y, p)) for part in parts)

        return traced_as(parts, total)

    def surface(self, i: int, signs: Signs) -> Callable[..., Any]:
        """A surface of one of the terms."""
        k = int(np.searchsorted(self._first, i, side="right")) - 1
        term = self.terms[k]
        assert isinstance(term, Piecewise)
        return term.surface(i - self._first[k], self._own(k, signs))

    def relevant(self, signs: Signs) -> frozenset[int]:
        """Those of all terms."""
        return frozenset(
            self._first[k] + i
            for k, term in enumerate(self.terms)
            if isinstance(term, Piecewise)
            for i in term.relevant(self._own(k, signs))
        )

    def __call__(self, t: Any, y: Any, *p: Any) -> Any:
        """Evaluate all terms."""
        return sum(np.asarray(call(term, t, y, p)) for term in self.terms)

    def __add__(self, other: Any) -> SwitchSum:
        return SwitchSum([self, other])

    def __radd__(self, other: Any) -> SwitchSum:
        return SwitchSum([other, self])

    def __repr__(self) -> str:
        return f"<SwitchSum of {len(self.terms)} terms: {self.count} surfaces>"


def traced_as(
    models: Sequence[Any], function: Callable[..., Any], outputs: int | None = None
) -> Callable[..., Any]:
    """``function`` as a traced function, if all of those that it calls are traced."""
    if not all(isinstance(model, Traced) for model in models):
        return function
    sizes = {model._size for model in models if model._size is not None}
    counts = {model._parameters for model in models if model._parameters}
    if len(sizes) != 1 or len(counts) > 1:
        return function
    if counts:

        def with_parameters(t: Any, y: Any, p: Any) -> Any:
            return function(t, y, p)

        return traced(with_parameters, n=sizes.pop(), params=counts.pop(), outputs=outputs)

    def without(t: Any, y: Any) -> Any:
        return function(t, y)

    return traced(without, n=sizes.pop(), params=0, outputs=outputs)
