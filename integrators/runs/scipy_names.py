"""What SciPy's ``solve_ivp`` calls otherwise, for programs that change one import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..problem import IVP, Event

__all__ = ["with_args"]


def with_args(args: Any, f: Any, jac: Any, events: Any, params: Any) -> tuple[Any, Any, Any]:
    """f, jac and events with further arguments filled in, as SciPy does with ``args``."""
    if isinstance(f, IVP):
        raise ValueError("args belongs to a function f(t, y, *args); an IVP has params instead")
    if not (isinstance(params, tuple) and params == ()):
        raise ValueError("give either params, for f(t, y, p), or args, for f(t, y, *args)")
    if not isinstance(args, tuple | list):
        raise TypeError(
            f"args must be a tuple of further arguments of f, got {args!r}; for a single one write "
            f"args=({args!r},)"
        )

    def filled(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t, y: function(t, y, *args)

    if callable(jac):
        jac = filled(jac)
    if callable(events) or isinstance(events, Event):
        events = (events,)
    whole = [Event.of(event) for event in events or ()]
    found = [
        replace(
            event,
            function=filled(event.function),
            reset=None if event.reset is None else filled(event.reset),
        )
        for event in whole
    ]
    return filled(f) if callable(f) else f, jac, found or None
