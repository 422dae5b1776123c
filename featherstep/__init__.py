"""The application: a command line, comparisons and their pictures, studies of many runs.

The libraries below it are :mod:`integrators` and :mod:`multibody`; nothing there imports this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study import (
        Assembled,
        At,
        Choice,
        EventTime,
        Final,
        Integral,
        LogNormal,
        LogUniform,
        Max,
        Mean,
        Min,
        Normal,
        Study,
        Triangular,
        TruncatedNormal,
        Uniform,
        energy,
        loop_force,
        observed,
        position,
        reaction,
        state,
    )

__all__ = [
    "Assembled",
    "At",
    "Choice",
    "EventTime",
    "Final",
    "Integral",
    "LogNormal",
    "LogUniform",
    "Max",
    "Mean",
    "Min",
    "Normal",
    "Study",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "__version__",
    "energy",
    "loop_force",
    "observed",
    "position",
    "reaction",
    "state",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "__version__":  # what studies are written with; late, since it loads everything
        return getattr(import_module(f"{__name__}.study"), name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("featherstep")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
