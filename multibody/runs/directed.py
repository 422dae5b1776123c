"""Problems whose right-hand side knows which way time runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integrators import IVP
from integrators.dae.feedback import direction
from integrators.problem import time_span

__all__ = ["directed_problem"]


@dataclass(frozen=True, eq=False, repr=False)
class _Directed(IVP):
    """An IVP that takes another right-hand side where a new interval turns time round."""

    directed: Callable[[int], dict[str, Any]] | None = None

    def with_(self, **changes: Any) -> IVP:
        """Return a copy with some fields replaced; f follows the direction of time."""
        if self.directed is not None and "t_span" in changes and "f" not in changes:
            way = direction(time_span(changes["t_span"]))
            if way != direction(self.t_span):
                changes = {**self.directed(way), **changes}
        return super().with_(**changes)


def directed_problem(directed: Callable[[int], dict[str, Any]], **fields: Any) -> IVP:
    """Problem whose f, jac and manifold are what ``directed(±1)`` says for the way of ``t_span``.

    Examples
    --------
    A decay, whichever way it runs:

    >>> decay = directed_problem(
    ...     lambda way: {"f": lambda t, y: -way * y}, y0=[1.0], t_span=(0.0, 1.0)
    ... )
    >>> decay.rhs(0.0, [1.0]), decay.with_(t_span=(1.0, 0.0)).rhs(0.0, [1.0])
    (array([-1.]), array([1.]))
    """
    return _Directed(**directed(direction(fields["t_span"])), **fields, directed=directed)
