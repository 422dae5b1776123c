"""How the energy of an oscillation fares under a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["energy_error"]


def energy_error(errors: Sequence[float], z: float, title: str) -> Figure:
    """Draw relative errors of the energy after 1, 2, … steps with hω = z."""
    from .figure import ShownFigure

    figure = ShownFigure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(range(1, len(errors) + 1), errors)
    ax.set(xlabel=f"steps with hω = {z:g}", ylabel="relative error of the energy", title=title)
    return figure
