r"""The perturbation index of a DAE, by measurement.

Hairer, Lubich and Roche (*The Numerical Solution of Differential-Algebraic Systems by Runge–Kutta
Methods*, 1989, §1) call m the perturbation index if a perturbation δ(t) of the equations changes
the solution by no more than a constant times δ and its derivatives up to order m − 1. With
δ = ε sin ωt these are ε, εω, …, εω^(m−1): the change of the solution is proportional to ω^(m−1),
and for an ordinary differential equation to 1/ω. So every equation is disturbed at two frequencies,
and the exponent is read off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dae.general import DAE, Start
from ...solve import solve

__all__ = ["PerturbationIndex", "perturbation_index"]

FREQUENCIES = (20.0, 40.0)  # periods in the interval
RELATIVE = 1e-6  # size of the change aimed at, compared with the solution
RTOL = 1e-13


@dataclass(frozen=True)
class PerturbationIndex:
    """What :func:`perturbation_index` measured.

    Attributes
    ----------
    index
        1 + the largest exponent, rounded; 0 for an ordinary differential equation.
    exponents
        For each equation, by name, the exponent of ω with which the solution changes.
    """

    index: int
    exponents: dict[str, float]

    def __str__(self) -> str:
        lines = [f"  {name}: ω^{exponent:.2f}" for name, exponent in self.exponents.items()]
        return f"perturbation index {self.index}\n" + "\n".join(lines)


class _Disturbed:
    """F with ε sin ωt added to one equation; ε, ω and the equation's weights are parameters."""

    def __init__(self, function: Callable[..., Any], count: int, parameters: int) -> None:
        self.function, self.count, self.parameters = function, count, parameters
        self.__name__ = "disturbed"

    def __call__(self, t: Any, y: Any, d: Any, p: Any) -> Any:
        """Return the residuals."""
        own = (p[: self.parameters],) if self.parameters else ()
        residuals = list(np.ravel(np.asarray(self.function(t, y, d, *own), dtype=object)))
        weights = p[self.parameters + 1 :]
        wave = np.sin(p[self.parameters] * t)
        return [r - w * wave for r, w in zip(residuals, weights)]


def perturbation_index(system: DAE, start: Start, t_end: float) -> PerturbationIndex:
    """Measure how the solution reacts to fast disturbances of each equation.

    Parameters
    ----------
    system, start, t_end
        The equations, a consistent start, and the end of an interval on which the solution does
        not change its nature.

    Examples
    --------
    >>> from integrators import DAE
    >>> from integrators.analysis import perturbation_index
    >>> plant = DAE(lambda t, y, d: [d(y[0]) + y[0] - y[1], y[0] - np.sin(t)], names=["T", "Q"])
    >>> print(perturbation_index(plant, plant.consistent(), 2.0))
    perturbation index 2
      f0: ω^0.00
      f1: ω^1.00
    """
    count = system.equations.m
    own = start.params
    disturbed = DAE(
        _Disturbed(system.function, count, own.size),
        system.unknowns,
        params=[*own, 1.0, *np.zeros(count)],
        equations=system.equations.names,
        name=system.name,
    )
    n = len(system.unknowns)
    t0 = start.t
    times = np.linspace(t0, t_end, 400)

    def solution(omega: float, weights: Any) -> Any:
        """Values of the unknowns at all times, from the consistent start nearest to the given."""
        params = [*own, omega, *weights]
        guess = dict(zip(start.names, start.X))
        begin = disturbed.consistent(t0, guess=guess, params=params)
        problem = disturbed.problem(begin, (t0, t_end), "taylor")
        options = {"rtol": RTOL, "atol": RTOL, "t_eval": times, "throw": True}
        return solve(problem, method="Taylor", **options).y[:n]  # type: ignore[arg-type]

    calm = solution(1.0, np.zeros(count))
    size = float(np.abs(calm).max()) or 1.0
    exponents = {}
    for i, name in enumerate(system.equations.names):
        changes = []
        for periods in FREQUENCIES:
            omega = 2 * np.pi * periods / abs(t_end - t0)
            weights = np.zeros(count)
            weights[i] = RELATIVE * size
            changes.append(float(np.abs(solution(omega, weights) - calm).max()) / weights[i])
        ratio = np.log2(FREQUENCIES[1] / FREQUENCIES[0])
        exponents[name] = float(np.log2(changes[1] / changes[0]) / ratio) if changes[0] else -1.0
    return PerturbationIndex(max(0, round(1 + max(exponents.values()))), exponents)
