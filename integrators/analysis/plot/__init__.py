"""Figures of the analysis: each function takes what an analysis returned, draws it, returns Axes.

Nothing here computes or calls `show`. Matplotlib is imported when the first figure is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name → module of this package that defines it; loaded on first use.
_WHERE: dict[str, str] = {
    # the method
    "amplification": "method",
    "dispersion_curves": "method",
    "report_figure": "method",
    "rooted_trees": "trees",
    "stability_region": "method",
    # the problem and the error
    "dae_structure": "systems",
    "difference_quotients": "problem",
    "eigenvalues": "problem",
    "euler_bounds": "problem",
    "global_error": "problem",
    "local_errors": "problem",
    "picard_iterates": "problem",
    "richardson_table": "problem",
    "several_solutions": "problem",
    "step_limits": "problem",
    "taylor_polynomials": "problem",
    # files
    "save_figure": "saving",
    # solutions
    "phase_portrait": "solution",
    "plot_error": "solution",
    "slope_field": "solution",
    # sliders for notebooks
    "slider_panel": "sliders",
    "stability_slider": "sliders",
    "step_slider": "sliders",
    # the studies
    "convergence": "study",
    "drift": "constraints",
    "fit_curves": "fit",
    "tolerance": "study",
    "work_precision": "study",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
