"""Rooted trees, drawn with their order conditions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...tableau.trees import Tree, density, symmetry
from ...tableau.trees import rooted_trees as all_trees
from ..method.butcher_series import bseries
from .style import COLOURS, INK, QUIET, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["rooted_trees"]

MOST = 6  # vertices: 37 trees
IN_A_ROW = 10


def rooted_trees(highest: int = 4, method: Any = None, ax: Axes | None = None) -> Axes:
    """Draw all rooted trees with up to so many vertices, and what they ask of a method.

    Parameters
    ----------
    highest
        Most vertices, up to 6.
    method
        Anything with a Butcher series: below each tree stands then its elementary weight, in green
        where the condition Φ(τ) = 1/γ(τ) holds, in orange where it does not.
    ax
        Axes to draw into; by default those of a new figure.

    Examples
    --------
    >>> ax = rooted_trees(4, "Kutta3")
    >>> len(ax.texts)  # 8 trees, a line or two below each
    16
    """
    if not isinstance(highest, int) or not 1 <= highest <= MOST:
        raise ValueError(f"highest must be a whole number from 1 to {MOST}, got {highest!r}")
    rows: list[list[Tree]] = []
    for p in range(1, highest + 1):
        found = list(all_trees(p))
        rows += [found[k : k + IN_A_ROW] for k in range(0, len(found), IN_A_ROW)]
    widest = max(map(len, rows))
    heights = [max(_height(tree) for tree in row) for row in rows]
    total = sum(h + 2.2 for h in heights)
    ax = new_axes(ax, (max(4.0, 1.15 * widest), max(2.5, 0.42 * total)))
    weights = None if method is None else bseries(method, highest)
    y = 0.0
    for row, height in zip(rows, heights):
        y -= height + 2.2
        for k, tree in enumerate(row):
            _draw(ax, tree, 2.4 * k, y + 1.2)
            target = Fraction(1, density(tree))
            ax.text(2.4 * k, y + 0.75, f"$\\gamma$ = {density(tree)}, $\\sigma$ = {symmetry(tree)}",
                    ha="center", va="center", fontsize=7.5, color=QUIET)  # fmt: skip
            if weights is not None:
                value = weights[tree]
                holds = abs(float(value) - float(target)) < 1e-12
                sign = "=" if holds else r"\neq"
                ax.text(2.4 * k, y + 0.25, rf"$\Phi$ = {_short(value)} ${sign}$ {target}",
                        ha="center", va="center", fontsize=7.5,
                        color=COLOURS[2] if holds else COLOURS[1])  # fmt: skip
    ax.set(xlim=(-1.4, 2.4 * (widest - 1) + 1.4), ylim=(y - 0.2, 0.2))
    ax.set_axis_off()
    name = "" if method is None else f": {getattr(method, 'name', method)}"
    ax.set_title(f"Rooted trees and order conditions{name}", loc="left", fontsize="medium",
                 color=INK)  # fmt: skip
    return ax


def _short(value: Any) -> str:
    text = str(value)
    return text if isinstance(value, Fraction | int) and len(text) <= 9 else f"{float(value):.4g}"


def _height(tree: Tree) -> int:
    return 0 if not tree else 1 + max(_height(child) for child in tree)


def _draw(ax: Axes, tree: Tree, x: float, y: float) -> None:
    """The root below; each branch gets as much width as it has leaves."""
    width = min(0.5, 1.7 / max(_leaves(tree), 1))
    left = x - width * (_leaves(tree) - 1) / 2

    def place(node: Tree, first: float, level: float) -> float:
        """Draw a vertex and what grows from it; return where it stands."""
        if not node:
            where = first
        else:
            feet, at = [], first
            for child in node:
                feet.append(place(child, at, level + 0.8))
                at += width * max(_leaves(child), 1)
            where = (feet[0] + feet[-1]) / 2
            for foot in feet:
                ax.plot([where, foot], [level, level + 0.8], color=INK, lw=1.2, zorder=2)
        root = level == y
        ax.plot([where], [level], "o", ms=5.5, color=COLOURS[1] if root else INK, zorder=3)
        return where

    place(tree, left, y)


def _leaves(tree: Tree) -> int:
    return 1 if not tree else sum(_leaves(child) for child in tree)
