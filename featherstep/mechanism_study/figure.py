"""Figures of mechanisms: error against work of a comparison, and a simulation over time.

Colours are formulations, markers are methods.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from integrators.analysis.plot.style import (
    INK,
    MARKERS,
    MORE_COLOURS,
    QUIET,
    label_counts,
    legend_beside,
    new_axes,
    plain,
    tidy,
    widen,
)
from multibody.checks import one_of
from multibody.pictures import plot

from ..problem_study.figure import framed
from .table import ACCURATE, Comparison, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from integrators import Solution
    from multibody import Model

__all__ = ["comparison", "mechanism_figure", "simulation_figure"]

COSTS = {"nfev": "evaluations of $f$", "seconds": "time in seconds (median)"}
SMALLEST_ERROR = 1e-17  # an error of zero, on a logarithmic axis
LINE = 84  # characters of a line below the picture


def comparison(result: Comparison, against: str = "nfev", ax: Axes | None = None) -> Axes:
    """Draw the error against what it cost.

    Filled markers are runs to trust, hollow ones all others; the dashed line is the largest error
    that is called right, the shaded errors are below what the reference can tell. Failed runs are
    named below.

    Parameters
    ----------
    result
        What :func:`featherstep.mechanism_study.compare.compare` returned.
    against
        "nfev" for evaluations of f, "seconds" for time.
    ax
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> from featherstep.mechanism_study.compare import compare
    >>> result = compare("pendulum", ["DOPRI5"], tolerances=[1e-5, 1e-7], t_end=1.0, repeat=1)
    >>> comparison(result).get_xlabel()
    'evaluations of $f$'
    """
    one_of(against, "against", tuple(COSTS))
    ax = new_axes(ax)
    drawn = [row for row in result.rows if row.ok and row.error is not None and _cost(row, against)]
    for i, formulation in enumerate(result.formulations):
        for k, method in enumerate(result.methods):
            rows = [r for r in drawn if (r.formulation, r.method) == (formulation, method)]
            _draw(ax, rows, against, MORE_COLOURS[i % len(MORE_COLOURS)], MARKERS[k % len(MARKERS)],
                  ("-", "--")[i // len(MORE_COLOURS) % 2])  # fmt: skip
    if drawn:
        ax.set_xscale("log")
        ax.set_yscale("log")
        widen(ax)
        if against == "nfev":
            label_counts(ax)
        _limits(ax, result)
        _legend(ax, result, drawn)
    else:
        reason = "no run reached the end" if result.failures else "no reference to compare with"
        ax.text(0.5, 0.5, reason, transform=ax.transAxes, ha="center", color=QUIET)
    ax.set_xlabel(COSTS[against])
    unit = f" ({result.measure.unit})" if result.measure.unit else ""
    ax.set_ylabel(f"error of {result.measure.label}{unit}")
    ax.set_title(plain(result.model.name), loc="left", fontweight="bold", color=INK)
    tidy(ax)
    _name_failures(ax, result)
    return ax


def _cost(row: Row, against: str) -> float:
    return float(getattr(row.run, against) or 0.0)


def _draw(ax: Axes, rows: list[Row], against: str, colour: str, marker: str, line: str) -> None:
    if not rows:
        return
    costs = [_cost(row, against) for row in rows]
    errors = [max(row.error or 0.0, SMALLEST_ERROR) for row in rows]
    ax.plot(costs, errors, color=colour, ls=line, lw=1.3, alpha=0.75, zorder=2)
    for x, y, row in zip(costs, errors, rows):
        face: dict[str, Any] = (
            {"mfc": colour, "mec": "white"} if row.trusted else {"mfc": "white", "mec": colour}
        )
        ax.plot([x], [y], marker, ms=7.5, mew=1.2 if not row.trusted else 0.8, zorder=3, **face)


def _limits(ax: Axes, result: Comparison) -> None:
    low, high = ax.get_ylim()
    doubt, right = result.reference.uncertainty, ACCURATE * result.size
    if low < doubt < high:
        ax.axhspan(low, doubt, color=QUIET, alpha=0.12, lw=0, zorder=1)
    if low < right < high:
        ax.axhline(right, color=QUIET, lw=1.0, ls="--", zorder=1)
    ax.set_ylim(low, high)


def _legend(ax: Axes, result: Comparison, drawn: list[Row]) -> None:
    """Colours and markers apart: their products would fill the picture."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    for i, name in enumerate(result.formulations):
        if any(row.formulation == name for row in drawn):
            line = ("-", "--")[i // len(MORE_COLOURS) % 2]
            colour = MORE_COLOURS[i % len(MORE_COLOURS)]
            handles.append(Line2D([], [], color=colour, ls=line, lw=3, label=plain(name)))
    for k, name in enumerate(result.methods):
        if any(row.method == name for row in drawn):
            marker = MARKERS[k % len(MARKERS)]
            handles.append(
                Line2D([], [], color=INK, ls="none", marker=marker, ms=7, label=plain(name))
            )
    if not all(row.trusted for row in drawn):
        handles.append(
            Line2D([], [], ls="none", marker="o", ms=7, mfc="white", mec=INK, label="not to trust")
        )
    legend_beside(ax, handles=handles, fontsize=9.5)


def _name_failures(ax: Axes, result: Comparison) -> None:
    failed: dict[str, list[str]] = {}
    for row in result.failures:
        words = row.verdict.removeprefix("failed: ").partition(",")[0]
        key = f"{row.formulation} by {row.method} ({words})"
        failed.setdefault(key, []).append(row.setting)
    total = len({row.setting for row in result.rows if row.setting})
    texts = [
        name if len(where) == total or not all(where) else f"{name} at {', '.join(where)}"
        for name, where in failed.items()
    ]
    if texts:
        ax.text(
            0.0,
            -0.16,
            textwrap.fill("failed: " + "; ".join(texts), LINE),
            transform=ax.transAxes,
            fontsize=9,
            color=QUIET,
            va="top",
        )


def mechanism_figure(result: Comparison) -> Figure:
    """Return the figures of a comparison on a mechanism: against evaluations and time."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        comparison(result, "nfev", axes[0])
        comparison(result, "seconds", axes[1])
        if axes[0].get_legend() is not None:  # one legend, and one list of failures, are enough
            axes[0].get_legend().remove()
        for text in list(axes[1].texts):
            text.remove()
        axes[1].set_title("", loc="left")
        axes[1].set_ylabel("")

    return framed((12.5, 5.2), draw)


def simulation_figure(model: Model, solution: Solution) -> Figure:
    """Return the figure of a simulated mechanism: positions, velocities and energy over time."""

    def draw(figure: Figure) -> None:
        above, middle, below = figure.subplots(3, 1, sharex=True)
        plot.coordinates(model, solution, ax=above)
        plot.coordinates(model, solution, velocities=True, ax=middle)
        plot.energy(model, solution, ax=below)
        for ax in (above, middle):
            ax.set_xlabel("")
        for ax in (middle, below):
            ax.set_title("", loc="left")

    return framed((8.5, 8.5), draw)
