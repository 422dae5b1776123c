"""Integrators: initial value problems solved by any Runge–Kutta method, and more.

>>> from integrators import solve
>>> solution = solve(lambda t, y: -2 * t * y**2, (0, 1), [1.0], method="RK4", step=0.1)
>>> print(f"{solution.y[0, -1]:.6f}")
0.500000
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import catalogue, problems
    from .checks import check_method
    from .control import PI, PID, Controller, I, Predictive
    from .errors import IntegrationError
    from .kernels import compiled, kernel
    from .methods.user import Method
    from .problem import IVP, Event
    from .solution import DenseOutput, Solution, Status
    from .solve import solve
    from .tableau import ContinuousExtension, OrderCondition, Tableau
    from .tracing import Traced, TracingError, traced, where

# Loaded on first use: `import integrators` costs next to nothing.
_HOMES = {
    "I": "control",
    "PI": "control",
    "PID": "control",
    "IVP": "problem",
    "ContinuousExtension": "tableau",
    "Controller": "control",
    "DenseOutput": "solution",
    "Event": "problem",
    "IntegrationError": "errors",
    "Method": "methods.user",
    "OrderCondition": "tableau",
    "Predictive": "control",
    "Solution": "solution",
    "Status": "solution",
    "Tableau": "tableau",
    "Traced": "tracing",
    "TracingError": "tracing",
    "check_method": "checks",
    "compiled": "kernels",
    "kernel": "kernels",
    "solve": "solve",
    "traced": "tracing",
    "where": "tracing",
}

__all__ = [
    "IVP",
    "PI",
    "PID",
    "ContinuousExtension",
    "Controller",
    "DenseOutput",
    "Event",
    "I",
    "IntegrationError",
    "Method",
    "OrderCondition",
    "Predictive",
    "Solution",
    "Status",
    "Tableau",
    "Traced",
    "TracingError",
    "catalogue",
    "check_method",
    "compiled",
    "kernel",
    "problems",
    "solve",
    "traced",
    "where",
]


def __getattr__(name: str) -> Any:
    if name in ("catalogue", "problems"):
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
