"""Analysis: order and stability of methods, difficulty of problems, sizes of errors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name → module of this package that defines it; loaded on first use.
_WHERE: dict[str, str] = {
    # the method
    "AdditiveReport": "method.families.additive",
    "BSeries": "method.butcher_series",
    "Dispersion": "method.stability.oscillation",
    "ErrorCoefficient": "method.order",
    "FiguresOfMerit": "method.order",
    "Measure": "method.verdict",
    "MultistepReport": "method.multistep",
    "PartitionedReport": "method.families.partitioned",
    "Report": "method.report",
    "RosenbrockReport": "method.families.rosenbrock",
    "StabilityFunction": "method.stability.amplification",
    "Verdict": "method.verdict",
    "a_alpha": "method.stability.linear",
    "a_stability": "method.stability.linear",
    "additive_report": "method.families.additive",
    "adjoint": "method.geometric",
    "algebraic_stability": "method.stability.nonlinear",
    "an_stability": "method.stability.nonlinear",
    "bseries": "method.butcher_series",
    "characteristic_roots": "method.multistep",
    "compose": "method.geometric",
    "condition_formula": "method.order",
    "dispersion": "method.stability.oscillation",
    "elementary_weights": "method.order",
    "error_coefficients": "method.order",
    "error_norm": "method.order",
    "exact_flow": "method.butcher_series",
    "failing_conditions": "method.order",
    "figures_of_merit": "method.order",
    "i_stability": "method.stability.linear",
    "in_stability_region": "method.multistep",
    "irreducible": "method.reducibility",
    "l_stability": "method.stability.linear",
    "modified_equation": "method.butcher_series",
    "multistep_report": "method.multistep",
    "nonlinear_matrix": "method.stability.nonlinear",
    "partitioned_report": "method.families.partitioned",
    "quadratic_invariants": "method.geometric",
    "report": "method.report",
    "root_locus": "method.multistep",
    "rosenbrock_report": "method.families.rosenbrock",
    "ssp_coefficient": "method.stability.ssp",
    "stability_function": "method.stability.amplification",
    "stability_interval": "method.stability.linear",
    "stage_order": "method.order",
    "stiff_accuracy": "method.stability.linear",
    "strong_a_stability": "method.stability.linear",
    "symmetry": "method.geometric",
    "symplecticity": "method.geometric",
    "zero_stability": "method.multistep",
    # the problem
    "Constant": "problem.lipschitz",
    "Existence": "problem.existence",
    "Expansion": "problem.taylor",
    "Picard": "problem.picard",
    "Quotients": "problem.lipschitz",
    "Stiffness": "problem.stiffness",
    "difference_quotients": "problem.lipschitz",
    "existence": "problem.existence",
    "first_order": "problem.first_order",
    "flat": "problem.flatness",
    "flat_derivative": "problem.flatness",
    "flat_expansion": "problem.flatness",
    "lipschitz": "problem.lipschitz",
    "logarithmic_norm": "problem.lipschitz",
    "multi_indices": "problem.taylor",
    "picard": "problem.picard",
    "stability_limit": "problem.stiffness",
    "stiffness": "problem.stiffness",
    "taylor": "problem.taylor",
    # the error
    "EulerBounds": "error.euler_bounds",
    "GlobalError": "error.global_error",
    "LocalErrors": "error.local",
    "Richardson": "error.richardson",
    "error_recursion": "error.local",
    "euler_bounds": "error.euler_bounds",
    "extrapolation_table": "error.richardson",
    "global_error": "error.global_error",
    "increment_lipschitz": "error.local",
    "local_errors": "error.local",
    "richardson": "error.richardson",
    "truncation_order": "error.local",
    # the studies
    "ComponentOrders": "dae.components",
    "Convergence": "study.convergence",
    "Drift": "dae.drift",
    "ErrorMeasure": "error.measure",
    "Exercise": "exercise_checks",
    "Finding": "study.diagnosis",
    "Grade": "exercise_checks",
    "OrderEstimate": "study.slopes",
    "Program": "study.runs",
    "PerturbationIndex": "dae.perturbation",
    "Proportionality": "study.proportionality",
    "Roads": "dae.roads",
    "WorkPrecision": "study.work_precision",
    "compare_roads": "dae.roads",
    "component_orders": "dae.components",
    "convergence": "study.convergence",
    "drift": "dae.drift",
    "estimate_order": "study.slopes",
    "exercises": "exercise_checks",
    "find_reference": "study.reference",
    "grade": "exercise_checks",
    "measured_weights": "method.probes",
    "perturbation_index": "dae.perturbation",
    "method_check": "exercise_checks",
    "number_check": "exercise_checks",
    "register_exercise": "exercise_checks",
    "tableau_check": "exercise_checks",
    "work_precision": "study.work_precision",
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
