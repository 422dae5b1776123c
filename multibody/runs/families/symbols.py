"""Numbers of a table as symbols, of which kernels may ask whether they are zero.

Kernels leave out what a zero in a table makes superfluous: ``if e[STIFFNESS] != 0.0``. A number
that differs between models is zero in none or in some of them, and leaving nothing out is right for
all.
"""

from __future__ import annotations

from typing import Any

from integrators.tracing.symbols.symbol import Symbol

__all__ = ["TableNumber", "table_numbers"]


class TableNumber(Symbol):
    """A symbol that counts as different from zero; what is computed with it is a plain symbol."""

    __slots__ = ()
    __hash__ = Symbol.__hash__

    def __eq__(self, other: Any) -> Any:
        return False if _is_zero(other) else super().__eq__(other)

    def __ne__(self, other: Any) -> Any:
        return True if _is_zero(other) else super().__ne__(other)


def _is_zero(x: Any) -> bool:
    return isinstance(x, float | int) and x == 0.0


def table_numbers(symbol: Any) -> Any:
    """The same symbol as a number of a table; floats stay what they are."""
    return TableNumber(symbol.graph, symbol.index) if isinstance(symbol, Symbol) else symbol
