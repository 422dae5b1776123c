"""Analysis: order and stability of methods, difficulty of problems, sizes of errors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name → module of this package that defines it; loaded on first use.
_WHERE: dict[str, str] = {
    # the method
    "BSeries": "butcher_series",
    "Dispersion": "oscillation",
    "ErrorCoefficient": "order",
    "FiguresOfMerit": "order",
    "Measure": "verdict",
    "Report": "method_report",
    "StabilityFunction": "amplification",
    "Verdict": "verdict",
    "a_alpha": "stability",
    "a_stability": "stability",
    "adjoint": "geometric",
    "algebraic_stability": "algebraic",
    "an_stability": "algebraic",
    "bseries": "butcher_series",
    "compose": "geometric",
    "condition_formula": "order",
    "dispersion": "oscillation",
    "elementary_weights": "order",
    "error_coefficients": "order",
    "error_norm": "order",
    "exact_flow": "butcher_series",
    "failing_conditions": "order",
    "figures_of_merit": "order",
    "i_stability": "stability",
    "irreducible": "reducibility",
    "l_stability": "stability",
    "modified_equation": "butcher_series",
    "nonlinear_matrix": "algebraic",
    "quadratic_invariants": "geometric",
    "report": "method_report",
    "ssp_coefficient": "ssp",
    "stability_function": "amplification",
    "stability_interval": "stability",
    "stage_order": "order",
    "stiff_accuracy": "stability",
    "strong_a_stability": "stability",
    "symmetry": "geometric",
    "symplecticity": "geometric",
    # the problem
    "Constant": "constants",
    "Existence": "uniqueness",
    "Expansion": "expansions",
    "Picard": "iteration",
    "Quotients": "constants",
    "Stiffness": "eigenvalues",
    "difference_quotients": "constants",
    "existence": "uniqueness",
    "first_order": "reduction",
    "flat": "flatness",
    "flat_derivative": "flatness",
    "flat_expansion": "flatness",
    "lipschitz": "constants",
    "logarithmic_norm": "constants",
    "multi_indices": "expansions",
    "picard": "iteration",
    "stability_limit": "eigenvalues",
    "stiffness": "eigenvalues",
    "taylor": "expansions",
    # the error
    "EulerBounds": "error_bounds",
    "GlobalError": "estimation",
    "LocalErrors": "truncation",
    "Richardson": "extrapolation",
    "error_recursion": "truncation",
    "euler_bounds": "error_bounds",
    "extrapolation_table": "extrapolation",
    "global_error": "estimation",
    "increment_lipschitz": "truncation",
    "local_errors": "truncation",
    "richardson": "extrapolation",
    "truncation_order": "truncation",
    # the studies
    "Convergence": "convergence_study",
    "ErrorMeasure": "error_measure",
    "Exercise": "grading",
    "Finding": "diagnosis",
    "Grade": "grading",
    "OrderEstimate": "slopes",
    "Program": "runs",
    "WorkPrecision": "work_precision_study",
    "convergence": "convergence_study",
    "estimate_order": "slopes",
    "exercises": "grading",
    "find_reference": "reference",
    "grade": "grading",
    "measured_weights": "probes",
    "register_exercise": "grading",
    "work_precision": "work_precision_study",
}

__all__ = sorted([*_WHERE, "plot"])


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module(".plot", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
