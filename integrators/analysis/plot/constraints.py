"""A figure of the drift of runs from their constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .style import COLOURS, DASHES, labelled_axes, legend_beside, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..dae.drift import Drift

__all__ = ["drift"]

SMALLEST = 1e-17  # a residual of zero, on a logarithmic axis


def drift(found: Drift, ax: Axes | None = None) -> Axes:
    """Draw the residuals of all constraints along runs, on a logarithmic axis.

    Colours tell runs apart, and dashes constraints. Drawn are running maxima over a pale line of
    the residuals themselves, which pass through zero now and then.

    Parameters
    ----------
    found
        What :func:`integrators.analysis.drift` returned.
    ax
        Axes to draw on; by default a new figure.

    Examples
    --------
    >>> from integrators import solve
    >>> from integrators.analysis import drift, plot
    >>> from integrators.problems.dae_systems import system
    >>> problem = system("pendulum_chain").problem("underlying", 1.0).with_(project=None)
    >>> axes = plot.drift(drift(solve(problem, method="RK4", step=0.1)))
    >>> [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()]
    ['RK4, underlying, f2', "RK4, underlying, f2'"]
    """
    title = f"{plain(found.name)}: drift" if found.name else "drift"
    ax = labelled_axes(ax, title, "$t$", "residual of the constraint", (7.6, 4.2))
    runs = list(dict.fromkeys(curve.run for curve in found.curves))
    constraints = list(dict.fromkeys(curve.constraint for curve in found.curves))
    for curve in found.curves:
        colour = COLOURS[runs.index(curve.run) % len(COLOURS)]
        dashes = DASHES[constraints.index(curve.constraint) % len(DASHES)]
        size = np.maximum(np.abs(curve.residual), SMALLEST)
        growth = "" if np.isnan(curve.growth) else f": as $t^{{{curve.growth:.1f}}}$"
        label = f"{plain(curve.run)}, {plain(curve.constraint)}{growth}"
        ax.semilogy(curve.t, size, color=colour, lw=0.6, alpha=0.25)
        highest = np.maximum.accumulate(size)
        ax.semilogy(curve.t, highest, color=colour, linestyle=dashes, lw=1.4, label=label)
    legend_beside(ax, fontsize=8.5)
    return ax
