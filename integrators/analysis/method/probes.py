"""Order conditions measured from outside: one step of any method on problems made for it.

For every rooted tree τ = [τ₁ … τₘ] let y_τ obey

    y_τ' = y_τ₁ ⋯ y_τₘ,   y_τ(0) = 0        (y' = 1 for the single vertex).

The solution is y_τ(t) = t^|τ|/γ(τ). One step of length h of a Runge–Kutta method gives h^|τ| Φ(τ)
instead, with its elementary weight Φ(τ), so that a single step shows which order conditions a
method meets, be it a tableau or somebody's program (:cite:`hairer1993`, II.2). Written with t in
place of the leaves below the root, the same problem is non-autonomous: if only that version goes
wrong, a stage is evaluated at the wrong time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem import IVP
from ...tableau.trees import Tree, bracket, density, order, rooted_trees
from ..error.measure import ErrorMeasure
from ..study.reference import Reference
from ..study.runs import attempt

__all__ = ["MeasuredWeight", "damping", "measured_weights"]

HIGHEST = 6  # 37 trees; a mistake nearly always shows by then
STEP = 0.25  # a power of two, short enough for the Newton iterations of implicit methods
TOLERANCE = 1e-9  # of a weight: coefficients with few digits, Newton iterations stopped early


@dataclass(frozen=True)
class MeasuredWeight:
    """The elementary weight of one tree, as one step of the method gave it."""

    tree: Tree
    weight: float
    target: Fraction

    @property
    def holds(self) -> bool:
        """Whether the order condition is met."""
        return abs(self.weight - float(self.target)) <= TOLERANCE

    @property
    def order(self) -> int:
        """Number of vertices."""
        return order(self.tree)

    @property
    def is_quadrature(self) -> bool:
        """Whether all branches are leaves: Σ bᵢ cᵢᵏ = 1/(k + 1)."""
        return all(not child for child in self.tree)

    @property
    def is_linear(self) -> bool:
        """Whether the tree does not branch: the condition that y' = λy sees."""
        return len(self.tree) <= 1 and all(_unbranched(child) for child in self.tree)

    def __str__(self) -> str:
        return f"{bracket(self.tree)} has weight {self.weight:.6g} instead of {self.target}"


def measured_weights(
    method: Any, highest: int = 4, *, autonomous: bool = True
) -> list[MeasuredWeight] | None:
    """Elementary weights of a method, measured by one step.

    Parameters
    ----------
    method
        Anything that takes fixed steps with ``solve``.
    highest
        Largest order of the trees.
    autonomous
        Whether leaves are state variables; otherwise they are the time.

    Returns
    -------
    list of MeasuredWeight, or None
        None if the method fails on the problem or chooses its own steps.

    Examples
    --------
    >>> from integrators import catalogue
    >>> [w.weight for w in measured_weights(catalogue.get("Heun"), 3)]
    [1.0, 0.5, 0.0, 0.5]
    >>> print(measured_weights(catalogue.get("Heun"), 3)[2])
    [[τ]] has weight 0 instead of 1/6
    """
    trees = [tree for p in range(1, min(highest, HIGHEST) + 1) for tree in rooted_trees(p)]
    place = {tree: k for k, tree in enumerate(trees)}

    def f(t: float, y: NDArray[Any]) -> NDArray[Any]:
        slopes = np.ones(len(trees))
        for k, tree in enumerate(trees):
            for child in tree:
                slopes[k] *= y[place[child]] if autonomous or child else t
        return slopes

    end = _one_step(f, np.zeros(len(trees)), method, STEP)
    if end is None:
        return None
    return [
        MeasuredWeight(tree, float(value) / STEP ** order(tree), Fraction(1, density(tree)))
        for tree, value in zip(trees, end)
    ]


def damping(method: Any, z: float) -> float | None:
    """R(z): the factor by which one step multiplies the solution of y' = zy; None if it fails.

    Examples
    --------
    >>> round(damping("ImplicitEuler", -9.0), 12)
    0.1
    """
    end = _one_step(lambda t, y: z * y, np.ones(1), method, 1.0)
    return None if end is None else float(end[0])


def _one_step(
    f: Callable[..., Any], y0: NDArray[np.float64], method: Any, step: float
) -> NDArray[np.float64] | None:
    problem = IVP(f, y0, (0.0, step))
    nothing = Reference(None, "")
    _, solution = attempt(problem, "", method, {"step": step}, nothing, ErrorMeasure())
    return None if solution is None else np.asarray(solution.y[:, -1], dtype=float)


def _unbranched(tree: Tree) -> bool:
    return len(tree) <= 1 and all(_unbranched(child) for child in tree)
