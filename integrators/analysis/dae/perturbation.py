r"""The perturbation index of a DAE, by measurement.

Hairer, Lubich and Roche (*The Numerical Solution of Differential-Algebraic Systems by Runge–Kutta
Methods*, 1989, §1) call m the perturbation index if a perturbation δ(t) of the equations changes
the solution by no more than a constant times δ and its derivatives up to order m − 1. With
δ = ε sin ωt these are ε, εω, …, εω^(m−1): the change of the solution is proportional to ω^(m−1),
and for an ordinary differential equation to 1/ω. So every equation is disturbed at several
frequencies, and the exponent is read off.

Two things make the measurement sound. The highest power of ω may have a small factor (in a reactor
200 εω + εω²), so that frequencies go up by decades; a few periods of each are enough, which keeps
the cost the same. And ε is chosen anew at each frequency so that the solution hardly changes:
a fixed one becomes large when it is multiplied by ω^(m−1), and the disturbed equations need not
have a solution any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dae.general import DAE, Start
from ...solve import solve

__all__ = ["PerturbationIndex", "perturbation_index"]

FIRST = 20.0  # periods of the lowest frequency in the interval
RATIO, FREQUENCIES = 20.0, 4  # of a frequency to the one before, and how many there are
PERIODS = 4  # of each frequency that are looked at
TIMES = 100  # at which solutions are compared
AIM, LEAST, MOST = 1e-6, 1e-8, 1e-4  # change of the solution, relative: the best, and what will do
TRIALS = 6  # disturbances tried until the change has the right size
SETTLED = 0.1  # exponents of neighbouring frequencies that differ by less have settled
RTOL = 1e-13
MAX_STEPS = 20_000  # of a run over a few periods: some dozens are usual


@dataclass(frozen=True)
class PerturbationIndex:
    """What :func:`perturbation_index` measured.

    Attributes
    ----------
    index
        1 + the largest exponent, rounded; 0 for an ordinary differential equation.
    exponents
        For each equation, by name, the exponent of ω with which the solution changes.
    unsettled
        Equations whose exponent still changes at the highest frequency: the index may be another.
    """

    index: int
    exponents: dict[str, float]
    unsettled: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = []
        for name, exponent in self.exponents.items():
            doubt = " (not settled)" if name in self.unsettled else ""
            lines.append(f"  {name}: ω^{round(exponent, 2) + 0.0:.2f}{doubt}")
        return f"perturbation index {self.index}\n" + "\n".join(lines)


class _Disturbed:
    """F less ε sin ω(t − t0) in each equation; ω and all ε are parameters."""

    def __init__(self, function: Callable[..., Any], parameters: int, t0: float) -> None:
        self.function, self.parameters, self.t0 = function, parameters, t0
        self.__name__ = "disturbed"

    def __call__(self, t: Any, y: Any, d: Any, p: Any) -> Any:
        """Return the residuals."""
        own = (p[: self.parameters],) if self.parameters else ()
        residuals = list(np.ravel(np.asarray(self.function(t, y, d, *own), dtype=object)))
        weights = p[self.parameters + 1 :]
        wave = np.sin(p[self.parameters] * (t - self.t0))
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
    if float(t_end) == start.t:
        raise ValueError(f"t_end: expected another time than that of the start, {start.t:g}")
    waves = _Waves(system, start)
    exponents, unsettled = {}, []
    lowest = 2 * np.pi * FIRST / (float(t_end) - start.t)
    frequencies = lowest * RATIO ** np.arange(FREQUENCIES)
    calm = [waves.solution(omega, np.zeros(waves.count)) for omega in frequencies]
    for i, name in enumerate(system.equations.names):
        reactions = waves.reactions(i, frequencies, calm)
        slopes = np.diff(np.log(reactions)) / np.log(RATIO)
        exponents[name] = float(slopes[-1])
        if abs(slopes[-1] - slopes[-2]) > SETTLED or abs(slopes[-1] - round(slopes[-1])) > SETTLED:
            unsettled.append(name)
    index = max(0, round(1 + max(exponents.values())))
    return PerturbationIndex(index, exponents, tuple(unsettled))


class _Waves:
    """Solutions of a system some of whose equations are disturbed."""

    def __init__(self, system: DAE, start: Start) -> None:
        self.start, self.own = start, start.params
        self.count, self.n = system.equations.m, len(system.unknowns)
        self.disturbed = DAE(
            _Disturbed(system.function, self.own.size, start.t),
            system.unknowns,
            params=[*self.own, 1.0, *np.zeros(self.count)],
            equations=system.equations.names,
            name=system.name,
        )
        calm = self.disturbed.consistent(
            start.t,
            guess=dict(zip(start.names, start.X)),
            params=[*self.own, 1.0, *np.zeros(self.count)],
        )
        self.problem = self.disturbed.problem(calm, (start.t, start.t + 1.0), "taylor")
        self.highest = int(np.max(system.structure().c))  # derivatives that a reaction contains

    def solution(self, omega: float, weights: Any) -> Any:
        """The unknowns over a few periods.

        The start is made consistent stage by stage: a least change of all values would move
        positions for the sake of derivatives, which react more strongly, and be measured as well.
        """
        t0 = self.start.t
        t1 = t0 + PERIODS * 2 * np.pi / omega
        sol = solve(
            self.problem.with_(t_span=(t0, t1), params=[*self.own, omega, *weights]),
            method="Taylor",
            rtol=RTOL,
            atol=RTOL,
            t_eval=np.linspace(t0, t1, TIMES),
            max_steps=MAX_STEPS,
        )
        if not sol.success:
            raise ValueError(
                f"the perturbation index cannot be measured: with ω = {abs(omega):.3g} the run "
                f"ended early ({sol.message}); take a start, or a t_end, away from singular points"
            )
        return sol.y[: self.n]

    def reactions(self, equation: int, frequencies: Any, calm: list[Any]) -> Any:
        """Change of the solution divided by ε, for each frequency."""
        found: list[float] = []
        for omega, undisturbed in zip(frequencies, calm):
            sizes = np.abs(undisturbed).max(axis=1)
            sizes[sizes == 0.0] = sizes.max() or 1.0
            # As in the case of the highest power; later from the frequencies before.
            gain = max(1.0, abs(omega)) ** self.highest
            if len(found) > 1:
                gain = found[-1] ** 2 / found[-2] / sizes.min()
            epsilon = AIM / gain
            for _ in range(TRIALS):
                weights = np.zeros(self.count)
                weights[equation] = epsilon
                change = np.abs(self.solution(omega, weights) - undisturbed).max(axis=1)
                relative = float((change / sizes).max())
                if LEAST < relative < MOST:
                    break
                epsilon *= AIM / max(relative, 1e-3 * LEAST)
            found.append(float(change.max()) / epsilon)
        return np.maximum(found, np.finfo(float).tiny)
