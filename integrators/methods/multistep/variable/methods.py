"""The methods as a user names them: "BDF", "NDF", "Adams"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....manifold import refuse_to_leave
from ....problem import IVP
from ....stepping.engine import Engine, Options, implicit_key
from ...runge_kutta.divided import divided_by_mass, is_regular
from .engine import AdamsEngine, BDFEngine

__all__ = ["BDF", "Adams"]

HIGHEST_BDF, HIGHEST_ADAMS = 5, 12
NDF_KAPPA = (-0.1850, -1 / 9, -0.0823, -0.0415, 0.0)


def _checked_order(order: Any, highest: int) -> int:
    if isinstance(order, bool) or order not in range(1, highest + 1):
        raise ValueError(f"order must be a whole number from 1 to {highest}, got {order!r}")
    return int(order)


def _refuse(name: str, fixed_form: str, problem: IVP, options: Options) -> None:
    if options.fixed:
        raise ValueError(
            f"{name} chooses its steps and orders itself; leave out step, or take a formula of one "
            f"order such as {fixed_form} for fixed steps"
        )
    refuse_to_leave(problem, name)


class BDF:
    """Backward differentiation formulas of orders 1 to 5; order and step are chosen on the way.

    For stiff problems, large ones above all: a step costs one or two evaluations of f and solves
    with one matrix. Mass matrices may be singular (index 1).

    Parameters
    ----------
    order
        The highest order that is used, 1 to 5.
    numerical
        Use the numerical differentiation formulas, whose errors are smaller at hardly less
        stability; ``method="NDF"``.

    Examples
    --------
    >>> from integrators import problems, solve
    >>> sol = solve(problems.get("hires"), method="BDF", rtol=1e-6, atol=1e-9)
    >>> sol.success, sol.nfev < 2 * sol.nsteps
    (True, True)
    """

    def __init__(self, order: int = HIGHEST_BDF, numerical: bool = False) -> None:
        self.order = _checked_order(order, HIGHEST_BDF)
        self.kappa = NDF_KAPPA if numerical else (0.0,) * HIGHEST_BDF
        self.name = "NDF" if numerical else "BDF"

    def __repr__(self) -> str:
        return f"BDF(order={self.order}, numerical={self.name == 'NDF'})"

    def bind(self, problem: IVP, options: Options) -> Engine:
        """Bind the method to a problem."""
        _refuse(self.name, "BDF3", problem, options)
        if problem.index is not None and np.max(problem.index) > 1:
            raise ValueError(
                f"{self.name} is for problems of index 1 at most, and this one has components of "
                f"index {int(np.max(problem.index))}; use RADAU5"
            )
        key = (self.name, self.order, *implicit_key(problem, options))
        return BDFEngine.reused(key, problem, options, lambda: BDFEngine(self, problem, options))


class Adams:
    """Adams–Bashforth–Moulton of orders 1 to 12; order and step are chosen on the way.

    For smooth problems that are not stiff and whose f is expensive: a step costs two evaluations
    of f, whatever the order.

    Parameters
    ----------
    order
        The highest order that is used, 1 to 12.

    Examples
    --------
    >>> from integrators import problems, solve
    >>> problem = problems.get("arenstorf")
    >>> sol, other = (solve(problem, method=m, rtol=1e-9, atol=1e-9) for m in ("Adams", "DOPRI5"))
    >>> sol.nfev < other.nfev
    True
    """

    name = "Adams"

    def __init__(self, order: int = HIGHEST_ADAMS) -> None:
        self.order = _checked_order(order, HIGHEST_ADAMS)

    def __repr__(self) -> str:
        return f"Adams(order={self.order})"

    def bind(self, problem: IVP, options: Options) -> Engine:
        """Bind the method to a problem."""
        _refuse(self.name, "ABM4", problem, options)
        if problem.mass is not None:
            if not is_regular(problem.mass):
                raise ValueError(
                    "Adams' methods cannot treat a singular mass matrix (a differential-algebraic "
                    "equation); use BDF or RADAU5"
                )
            problem = divided_by_mass(problem)
        key = (self.name, self.order, options.rtol)
        return AdamsEngine.reused(
            key, problem, options, lambda: AdamsEngine(self, problem, options)
        )
