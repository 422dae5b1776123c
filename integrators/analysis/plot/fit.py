"""A fit: data as points, the fitted problem as curves, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .style import COLOURS, MARKERS, labelled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..study.fit import Fit

__all__ = ["fit_curves"]


def fit_curves(found: Fit, ax: Axes | None = None) -> Axes:
    """Draw data and model of a :class:`~integrators.analysis.study.fit.Fit`."""
    said = ", ".join(
        f"{name} = {value:.4g} " + ("(bound)" if name in found.on_bounds else f"± {error:.1g}")
        for name, value, error in zip(found.names, found.values, found.errors)
    )
    ax = labelled_axes(ax, said, "t", "data and fit")
    order = np.argsort(found.times)
    for k, (label, data, model) in enumerate(zip(found.labels, found.data, found.model)):
        style: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)]}
        ax.plot(found.times[order], model[order], **style)
        ax.plot(
            found.times, data, MARKERS[k % len(MARKERS)], markersize=4, label=str(label), **style
        )
    ax.legend()
    return ax
