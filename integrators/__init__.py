"""Integrators: initial value problems solved by any Runge–Kutta method, and more.

>>> from integrators import solve
>>> solution = solve(lambda t, y: -2 * t * y**2, (0, 1), [1.0], method="RK4", step=0.1)
>>> print(f"{solution.y[0, -1]:.6f}")
0.500001
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import FileError, IntegrationError, IntegrationInterrupted
from .hybrid import Hybrid, Mode, Transition
from .kernels import compiled, kernel
from .manifold import Manifold
from .problem import IVP, Event, Schedule
from .runs.solution import DenseOutput, Solution, Status
from .solve import solve
from .stepping.control import PI, PID, Controller, I, Predictive
from .tableau import ContinuousExtension, OrderCondition, Tableau

if TYPE_CHECKING:
    from . import analysis, catalogue, dae, groups, problems
    from .analysis.method.check import check_method
    from .dae.general import DAE
    from .hybrid.switch import Switch
    from .many import ManySolutions, solve_many
    from .methods.imex import Split
    from .methods.lie import MuntheKaas
    from .methods.multistep import Multistep
    from .methods.taylor import Taylor
    from .methods.user import Method
    from .stepwise import Stepwise, stepper
    from .tableau.additive import Additive
    from .tableau.partitioned import Nystrom, Partitioned, Splitting
    from .tableau.rosenbrock import Rosenbrock
    from .tracing import Traced, TracingError, traced, where

__all__ = [
    "BDF",
    "DAE",
    "IVP",
    "PI",
    "PID",
    "Adams",
    "Additive",
    "BandedPart",
    "BlockJacobi",
    "ContinuousExtension",
    "Controller",
    "DenseOutput",
    "Event",
    "FileError",
    "Hybrid",
    "I",
    "IntegrationError",
    "IntegrationInterrupted",
    "Manifold",
    "ManySolutions",
    "Method",
    "Mode",
    "Multistep",
    "MuntheKaas",
    "Nystrom",
    "OrderCondition",
    "Partitioned",
    "Phase",
    "Predictive",
    "Rosenbrock",
    "Schedule",
    "Solution",
    "Split",
    "Splitting",
    "Status",
    "Stepwise",
    "Switch",
    "Tableau",
    "Taylor",
    "Traced",
    "TracingError",
    "Transition",
    "analysis",
    "catalogue",
    "check_method",
    "compiled",
    "dae",
    "fit",
    "groups",
    "kernel",
    "problems",
    "solve",
    "solve_many",
    "stepper",
    "traced",
    "where",
]

# Loaded on first use, to keep `import integrators` fast.
_LATER = {
    "DAE": "dae.general",
    "Adams": "methods.multistep.variable",
    "Additive": "tableau.additive",
    "Split": "methods.imex",
    "BDF": "methods.multistep.variable",
    "BandedPart": "methods.linear",
    "BlockJacobi": "methods.linear",
    "Method": "methods.user",
    "Multistep": "methods.multistep",
    "MuntheKaas": "methods.lie",
    "Taylor": "methods.taylor",
    "ManySolutions": "many",
    "Switch": "hybrid.switch",
    "Traced": "tracing",
    "TracingError": "tracing",
    "check_method": "analysis.method.check",
    "fit": "analysis.study.fit",
    "solve_many": "many",
    "Phase": "runs.phases",
    "Nystrom": "tableau.partitioned",
    "Partitioned": "tableau.partitioned",
    "Rosenbrock": "tableau.rosenbrock",
    "Splitting": "tableau.partitioned",
    "Stepwise": "stepwise",
    "stepper": "stepwise",
    "traced": "tracing",
    "where": "tracing",
}


def __getattr__(name: str) -> Any:
    if name in ("analysis", "catalogue", "dae", "groups", "problems"):
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
