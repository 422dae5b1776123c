"""Figures of the studies: convergence with slope triangles, work against precision."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from ..study.convergence import Convergence, Curve
from ..study.runs import Row
from ..study.work_precision import WorkPrecision
from .style import (
    INK,
    LEGEND,
    QUIET,
    Points,
    curve_style,
    label_counts,
    label_numbers,
    legend_beside,
    new_axes,
    plain,
    tex,
    tidy,
    told_apart,
    widen,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "tolerance", "work_precision"]

LARGEST_ERROR = 1e2  # relative; beyond it a run has nothing to do with the solution any more
SMALLEST_ERROR, OF_MANY_DIGITS = 1e-17, 1e-60  # an error of zero, on a logarithmic axis
LEGEND_LINE = 0.055  # of the height: room for each line of the legend above the curves
MOST_INSIDE = 8  # lines of a legend above the curves; longer ones stand beside the axes
FAILURE_ROW = 0.04  # of the height: a row of crosses for the failed runs of a method
MOST_FOR_FAILURES = 0.2  # of the height, for all of these rows
LINE = 80  # characters below a picture
TRIANGLE = 0.3  # width of a slope triangle, in decades at most
COSTS = {"nfev": "evaluations of $f$", "seconds": "time in seconds (median)"}


# -------------------------------------------------------------------- convergence


def convergence(study: Convergence, ax: Axes | None = None) -> Axes:
    """Draw errors against step sizes, both logarithmic, with slope triangles.

    Filled markers are the asymptotic range; hollow ones were set aside. Crosses at the upper edge
    are runs that failed, a row for each method, because they have no error to be drawn at. Errors
    that have nothing to do with the solution any more are left out. A curve that lies on another
    one has rings around the markers of that one.

    Parameters
    ----------
    study
        What :func:`integrators.analysis.convergence` returned.
    ax
        Where to draw; by default in a new figure.
    """
    ax = new_axes(ax)
    drawn_points: list[Points] = []
    largest = _largest_shown(study)
    for k, curve in enumerate(study.curves):
        _draw_curve(ax, curve, k, largest, drawn_points)
    if ax.lines:
        ax.set_xscale("log")
        ax.set_yscale("log")
        crosses = _draw_failures(ax, study)
        widen(ax)
        label_numbers(ax)
        low, high = ax.get_ylim()
        lines = len(ax.get_legend_handles_labels()[0])
        inside = lines <= MOST_INSIDE
        room = crosses + LEGEND_LINE * (lines + 0.7) * inside
        ax.set_ylim(low, high * (high / low) ** (room / (1.0 - room)))
        drawn: list[tuple[float, float]] = []
        for k, curve in enumerate(study.curves):
            _draw_triangle(ax, curve, k, drawn)
        # Small steps have small errors: the upper left corner is the emptiest one.
        if inside:
            below = (0.0, 1.0 - crosses)
            ax.legend(fontsize=9.5, loc="upper left", bbox_to_anchor=below, **LEGEND)
        else:
            legend_beside(ax, fontsize=9.5)
    else:
        ax.text(0.5, 0.5, "no run succeeded", transform=ax.transAxes, ha="center", color=QUIET)
    ax.set_xlabel("step size $h$")
    ax.set_ylabel(study.measure.label)
    ax.set_title(plain(study.problem.name), loc="left", fontweight="bold", color=INK)
    tidy(ax)
    return ax


def _draw_curve(ax: Axes, curve: Curve, k: int, largest: float, drawn: list[Points]) -> None:
    known = [
        (h, max(e, _smallest(curve)), mark)
        for h, e, mark in zip(curve.steps, curve.errors, curve.estimate.marks)
        if e is not None and _known(e) and e <= largest
    ]
    if not known:
        return
    h, e = [x[0] for x in known], [x[1] for x in known]
    style = told_apart(curve_style(k), dict(zip(h, e)), drawn)
    ax.plot(h, e, color=style["color"], ls=style["ls"], lw=0.9, alpha=0.6, zorder=2)
    hollow = [x for x in known if x[2] != "used"]
    filled = [x for x in known if x[2] == "used"]
    ax.plot(
        [x[0] for x in hollow],
        [x[1] for x in hollow],
        style["marker"],
        ms=style["ms"] - 2,
        mfc=style.get("mfc", "white"),
        mec=style["color"],
        mew=1.0,
        zorder=3,
    )
    ax.plot(
        [x[0] for x in filled] or [np.nan],
        [x[1] for x in filled] or [np.nan],
        **{**style, "ls": "none"},
        zorder=4,
        label=_legend(curve),
    )


def _largest_shown(study: Convergence) -> float:
    """Errors that have nothing to do with the solution any more must not set the scale."""
    errors = [e for curve in study.curves for e in curve.errors if e is not None]
    return LARGEST_ERROR if errors and min(errors) < LARGEST_ERROR else float("inf")


def _smallest(curve: Curve) -> float:
    return OF_MANY_DIGITS if curve.finer else SMALLEST_ERROR


def _legend(curve: Curve) -> str:
    seen = str(curve.estimate) if curve.estimate.found else "no order"
    claimed = "" if curve.expected is None else f" (claimed {curve.expected})"
    return f"{plain(curve.method)}: {seen}{claimed}"


def _draw_triangle(ax: Axes, curve: Curve, k: int, drawn: list[tuple[float, float]]) -> None:
    """A right-angled triangle below the asymptotic range, with its slope beside it."""
    used = [
        (h, e)
        for h, e, mark in zip(curve.steps, curve.errors, curve.estimate.marks)
        if mark == "used" and e
    ]
    if not curve.estimate.found or len(used) < 2:
        return
    order = round(curve.estimate.order)
    if order not in curve.estimate:
        return  # between two integers: a triangle would claim too much
    x, y = np.log10(np.array(used)).T
    width = min(TRIANGLE, float(x.max() - x.min()) / 2)
    right = float(x.max() + x.min()) / 2 + width / 2
    bottom, upper = np.log10(ax.get_ylim())
    below = max(0.35, 0.03 * float(upper - bottom))
    top = float(np.interp(right, x[::-1], y[::-1])) - below
    if any(abs(right - a) < width and abs(top - b) < 2 * below for a, b in drawn):
        return  # it would cover another one
    drawn.append((right, top))
    low, high, left = 10 ** (top - order * width), 10**top, 10 ** (right - width)
    ax.fill(
        [left, 10**right, 10**right],
        [low, low, high],
        fc="none",
        ec=curve_style(k)["color"],
        lw=1.1,
        zorder=3,
    )
    middle = np.sqrt(low * high)
    ax.annotate(
        str(order),
        (10**right, middle),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=10,
        color=curve_style(k)["color"],
    )


def _draw_failures(ax: Axes, study: Convergence) -> float:
    """Put crosses for failed runs into rows below the upper edge; return the height of the rows.

    Axes stretch to the steps of failed runs as well: often these are longer than all others.
    """
    failed = [
        (k, curve, [h for h, e in zip(curve.steps, curve.errors) if not _known(e)])
        for k, curve in enumerate(study.curves)
    ]
    failed = [(k, curve, steps) for k, curve, steps in failed if steps]
    spread = min(FAILURE_ROW, MOST_FOR_FAILURES / max(len(failed), 1))
    for row, (k, curve, steps) in enumerate(failed):
        ax.plot(
            steps,
            [1.0 - (row + 0.5) * spread] * len(steps),
            "x",
            color=curve_style(k)["color"],
            ms=6,
            transform=ax.get_xaxis_transform(),
            label=f"{plain(curve.method)}: all runs failed"
            if len(steps) == len(curve.steps)
            else None,
        )
    if failed:
        ax.plot([], [], "x", color=QUIET, ms=6, label="failed run, no error")
    return len(failed) * spread


def _known(error: float | None) -> bool:
    """Whether a run has an error that can be drawn."""
    return error is not None and bool(np.isfinite(error))


# -------------------------------------------------------------------- work and precision


def work_precision(result: WorkPrecision, against: str = "nfev", ax: Axes | None = None) -> Axes:
    """Draw the error against what it cost; failed runs are named below.

    Parameters
    ----------
    result
        What :func:`integrators.analysis.work_precision` returned.
    against
        "nfev" for evaluations of f, "seconds" for time.
    ax
        Where to draw; by default in a new figure.
    """
    if against not in COSTS:
        raise ValueError(f"against must be {' or '.join(map(repr, COSTS))}, got {against!r}")
    good = [row for row in result.rows if row.ok and row.error is not None]
    beside = ax is None
    drawn: list[Points] = []
    ax = new_axes(ax)
    for k, label in enumerate(result.methods):
        rows = [row for row in good if row.method == label and getattr(row, against)]
        if rows:
            style = curve_style(k)
            if len(rows) == 1:
                style["ls"] = "none"
            costs = [getattr(row, against) for row in rows]
            errors = [max(row.error or 0.0, SMALLEST_ERROR) for row in rows]
            style = told_apart(style, dict(zip(costs, errors)), drawn)
            ax.plot(costs, errors, **style, label=plain(label))
    if ax.lines:
        ax.set_xscale("log")
        ax.set_yscale("log")
        widen(ax)
        if against == "nfev":
            label_counts(ax)
        _mark_uncertainty(ax, result)
        _legend_of_methods(ax, beside)
    else:
        reason = "no run succeeded" if result.failures else "no reference to compare with"
        ax.text(0.5, 0.5, reason, transform=ax.transAxes, ha="center", color=QUIET)
    ax.set_xlabel(COSTS[against])
    ax.set_ylabel(_error_label(result))
    if result.rows:
        ax.set_title(_settings(result), loc="left", color=INK)
    tidy(ax)
    _name_failures(ax, result)
    return ax


def tolerance(result: WorkPrecision, ax: Axes | None = None) -> Axes:
    """Draw the error achieved against the tolerance asked for; on the diagonal both are equal."""
    if result.fixed:
        raise ValueError("runs with fixed steps have no tolerance to draw against")
    beside = ax is None
    ax = new_axes(ax)
    for k, label in enumerate(result.methods):
        rows = [r for r in result.rows if r.method == label and r.ok and r.error is not None]
        if rows:
            ax.plot(
                [row.rtol or 0.0 for row in rows],
                [max(row.error or 0.0, SMALLEST_ERROR) for row in rows],
                **curve_style(k),
                label=plain(label) + _exponent(result, label),
            )
    if ax.lines:
        ax.set_xscale("log")
        ax.set_yscale("log")
        widen(ax)
        low, high = ax.get_xlim()
        ax.plot([low, high], [low, high], color=QUIET, lw=1.0, ls=":", zorder=1)
        ax.set_xlim(low, high)
        _legend_of_methods(ax, beside)
    ax.set_xlabel("tolerance asked for (rtol)")
    ax.set_ylabel(_error_label(result))
    ax.set_title("dotted: error = tolerance", loc="left", color=INK)
    tidy(ax)
    return ax


def _legend_of_methods(ax: Axes, beside: bool) -> None:
    """A figure of its own has room where no curve is; axes among others have an empty corner."""
    if beside:
        legend_beside(ax, fontsize=10)
    else:
        ax.legend(fontsize=10, **LEGEND)


def _exponent(result: WorkPrecision, method: str) -> str:
    """Say with which power of the tolerance the error falls, if that is known."""
    fitted = result.proportionality.get(method)
    if fitted is None:
        return ""
    return f": error $\\sim$ rtol$^{{{fitted.exponent:.2f} \\pm {fitted.half:.2f}}}$"


def _error_label(result: WorkPrecision) -> str:
    if result.measure.observable is None and result.measure.over == "end":
        kind = "relative" if result.reference.relative else "absolute"
        return f"{kind} error at $t$ = {tex(result.problem.t_span[1])}"
    return result.measure.label


def _mark_uncertainty(ax: Axes, result: WorkPrecision) -> None:
    """Shade the errors that the reference cannot resolve."""
    low, high = ax.get_ylim()
    if low < result.uncertainty < high:
        ax.axhspan(low, result.uncertainty, color=QUIET, alpha=0.12, lw=0, zorder=1)
        ax.set_ylim(low, high)


def _settings(result: WorkPrecision) -> str:
    values = [row.step if result.fixed else row.rtol for row in result.rows]
    numbers = [x for x in dict.fromkeys(values) if x is not None]
    name = "step" if result.fixed else "rtol"
    if len(numbers) == 1:
        return f"{name} = {tex(numbers[0])}"
    return f"{name} from {tex(max(numbers))} to {tex(min(numbers))}"


def setting_of(row: Row) -> str:
    """The tolerance or step of a run, for a figure."""
    return f"rtol = {tex(row.rtol or 0)}" if row.step is None else f"step = {tex(row.step)}"


def _name_failures(ax: Axes, result: WorkPrecision) -> None:
    failed: dict[str, list[Row]] = {}
    for row in result.failures:
        failed.setdefault(f"{row.method} ({row.status})", []).append(row)
    total = len({row.setting for row in result.rows})
    texts = [
        name if len(rows) == total else f"{name} at {', '.join(map(setting_of, rows))}"
        for name, rows in failed.items()
    ]
    if texts:
        ax.text(
            0.0,
            -0.17,
            textwrap.fill("not shown: " + "; ".join(texts), LINE),
            transform=ax.transAxes,
            fontsize=9,
            color=QUIET,
            va="top",
        )
