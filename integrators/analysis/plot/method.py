"""Pictures of methods: stability regions, order stars, R along the axes, a report on one page.

Lines differ in colour and in dashes. Figures are made without pyplot, so no window is opened and no
global state changes; pass ``ax`` to draw into axes of your own.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..method.multistep import as_multistep
from ..method.stability.amplification import StabilityFunction, as_stability_function
from ..method.stability.oscillation import Dispersion, dispersion
from ..method.stability.sampled import SampledStability, as_sampled
from .multistep import SHADE, draw_regions, shade
from .style import COLOURS, INK, LEGEND, QUIET, legend_beside, line_style, new_axes, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..method.report import Report

__all__ = ["amplification", "dispersion_curves", "report_figure", "stability_region"]

YES, NO = COLOURS[2], COLOURS[1]
SAMPLED_REACH = 10.0  # to each side, of a function without coefficients
STAR = "#fdd0a2"
POINTS, FEWER_POINTS = 401, 81
PAGE = (8.27, 11.69)  # inches: A4
MOST_COLUMNS = 92  # a tableau with longer lines is drawn as a picture
LINE = 118  # characters on a line of the report

Window = tuple[float, float, float, float]


# ---------------------------------------------------------------------- the complex plane


def stability_region(
    methods: Any,
    ax: Axes | None = None,
    *,
    order_star: bool = False,
    window: Window | None = None,
) -> Axes:
    """Draw where |R(z)| ≤ 1, or the order star |R(z)| > |eᶻ|.

    Parameters
    ----------
    methods
        A tableau, the name of a scheme, a stability function, a multistep method, a function R(z),
        a function ``step(f, t, y, h)`` (implicit ones are applied to y' = λy point by point), or a
        list of them. One region is shaded (of a multistep method with its root locus); several are
        drawn by their boundaries, lightly shaded on the side of the region.
    ax
        Axes to draw into; by default those of a new figure.
    order_star
        Draw the order star instead: its q + 1 fingers at 0 show the order q of R, and for A-stable
        methods no finger crosses the imaginary axis.
    window
        Left, right, bottom and top of the picture; by default chosen to show the region.

    Examples
    --------
    >>> ax = stability_region("RK4")
    >>> ax.get_xlabel()
    'Re z'
    """
    several = [
        as_multistep(m) or as_sampled(m) or as_stability_function(m) for m in _several(methods)
    ]
    functions = [R for R in several if isinstance(R, StabilityFunction | SampledStability)]
    if len(functions) < len(several):
        if order_star:
            raise ValueError("order stars are drawn of one-step methods; leave order_star out")
        known = [m for m in several if not isinstance(m, SampledStability)]
        if len(known) < len(several):
            raise ValueError("functions are drawn beside one-step methods; draw them by themselves")
        return draw_regions(known, ax, window)
    ax = new_axes(ax, (5.2, 5.0))
    left, right, bottom, top = window or _window(functions, order_star)
    slow = any(isinstance(R, SampledStability) and not R.quick for R in functions)
    points = FEWER_POINTS if slow else POINTS
    x, y = np.linspace(left, right, points), np.linspace(bottom, top, points)
    Z = x[None, :] + 1j * y[:, None]
    ax.axhline(0, color=QUIET, linewidth=0.7, zorder=1)
    ax.axvline(0, color=QUIET, linewidth=0.7, zorder=1)
    handles: list[Any] = []
    for k, R in enumerate(functions):
        level = _log_modulus(R, Z) - (Z.real if order_star else 0.0)
        style = line_style(k)
        alone = STAR if order_star else SHADE
        colour = alone if len(functions) == 1 else None
        shade(ax, x, y, level if order_star else -level, style, colour)
        if level.min() < 0 < level.max():
            colours, dashes = [style["color"]], [style["linestyle"]]
            ax.contour(x, y, level, levels=[0], colors=colours, linestyles=dashes, zorder=2)
            if len(functions) > 1:
                handles += ax.plot([], [], label=plain(R.name or "unnamed"), **style)
    if len(functions) == 1:
        _mark_poles(ax, functions[0], (left, right, bottom, top), order_star)
    elif handles:
        legend_beside(ax, handles=handles, fontsize=9)
    ax.set(xlim=(left, right), ylim=(bottom, top), xlabel="Re z", ylabel="Im z", aspect="equal")
    what = "Order star" if order_star else "Stability region"
    names = ", ".join(R.name for R in functions if R.name)
    title = f"{what}: {names}" if 0 < len(names) <= 40 else what
    ax.set_title(plain(title), loc="left", fontsize="medium", color=INK)
    tidy(ax)
    return ax


def _mark_poles(
    ax: Axes, R: StabilityFunction | SampledStability, window: Window, zeros: bool
) -> None:
    left, right, bottom, top = window

    def inside(points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        keep = (points.real > left) & (points.real < right)
        shown: NDArray[np.complex128] = points[keep & (points.imag > bottom) & (points.imag < top)]
        return shown

    poles = inside(R.poles)
    if poles.size:
        ax.plot(poles.real, poles.imag, "x", color=NO, markersize=6, label="poles of R")
    if zeros:
        nulls = inside(R.zeros)
        if nulls.size:
            ax.plot(nulls.real, nulls.imag, "o", mfc="none", color=INK, ms=5, label="zeros of R")
    if ax.get_legend_handles_labels()[0]:
        # Below the plane: poles and boundary may be anywhere in it.
        ax.legend(loc="upper right", bbox_to_anchor=(1.0, -0.1), ncols=2, fontsize=8, **LEGEND)


def _log_modulus(R: Any, Z: NDArray[np.complex128]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        level = np.log(np.abs(R(Z)))
    limited: NDArray[np.float64] = np.clip(np.nan_to_num(level, nan=700.0), -700.0, 700.0)
    return limited


def _window(functions: Sequence[Any], order_star: bool) -> Window:
    """A window with everything of interest: bounded regions, and the poles of implicit methods."""
    boxes = [_extent(R, order_star) for R in functions]
    left, right = min(b[0] for b in boxes), max(b[1] for b in boxes)
    height = max(b[2] for b in boxes)
    width = right - left
    if 2 * height < width / 2:  # very long regions would be drawn as a line
        height = width / 4
    return left, right, -height, height


def _extent(R: Any, order_star: bool) -> tuple[float, float, float]:
    if isinstance(R, SampledStability):
        return _sampled_extent(R)
    if not R.is_polynomial:
        far = 1.9 * float(np.max(np.abs(R.poles)))
        far = max(far, 4.0)
        return -0.75 * far, far, 0.9 * far
    reach = 2.5 * len(R.numerator) + 2
    x, y = np.linspace(-reach, 4, 301), np.linspace(0, reach, 301)
    stable = _log_modulus(R, x[None, :] + 1j * y[:, None]) <= 0
    if not stable.any():  # a region smaller than the grid shows
        return -2.0, 1.0, 2.0
    columns, rows = np.flatnonzero(stable.any(axis=0)), np.flatnonzero(stable.any(axis=1))
    left, right, height = x[columns[0]], x[columns[-1]], y[rows[-1]]
    margin = 0.12 * max(right - left, height)
    if order_star:
        span = 1.3 * max(-left, height)
        return -span, span, span
    return left - margin, max(right, 0.0) + margin, height + margin


def _sampled_extent(R: SampledStability) -> tuple[float, float, float]:
    """Where a function changes between stable and unstable, looked for on a coarse grid."""
    x, y = np.linspace(-SAMPLED_REACH, SAMPLED_REACH, 41), np.linspace(0, SAMPLED_REACH, 21)
    stable = _log_modulus(R, x[None, :] + 1j * y[:, None]) <= 0
    few = stable if np.sum(stable) < stable.size / 2 else ~stable
    columns, rows = np.flatnonzero(few.any(axis=0)), np.flatnonzero(few.any(axis=1))
    if not columns.size:
        return -4.0, 4.0, 4.0
    margin = 0.15 * max(x[columns[-1]] - x[columns[0]], y[rows[-1]], 2.0)
    left, right = min(x[columns[0]], 0.0) - margin, max(x[columns[-1]], 0.0) + margin
    return float(left), float(right), float(y[rows[-1]] + margin)


# ---------------------------------------------------------------------- along the axes


def amplification(
    method: Any, axis: str = "real", ax: Axes | None = None, *, length: float | None = None
) -> Axes:
    """Draw R(x) beside eˣ on the negative real axis, or |R(iy)| beside 1 on the imaginary one.

    Parameters
    ----------
    method
        A tableau, the name of a scheme, a stability function, or a list of them.
    axis
        "real" or "imaginary".
    ax
        Axes to draw into; by default those of a new figure.
    length
        How far to go from 0; by default a little more than the bounded stability intervals.

    Examples
    --------
    >>> ax = amplification("RK4", "imaginary")
    >>> ax.get_ylabel()
    '|R(iy)|'
    """
    from ..method.stability.linear import stability_interval

    functions = [as_stability_function(m) for m in _several(method)]
    ends = [stability_interval(R, axis).value for R in functions]  # refuses other axes
    finite = [end for end in ends if 0 < end < math.inf]
    length = length or (1.2 * max(finite) if finite else 2.0 if 0.0 in ends else 10.0)
    ax = new_axes(ax, (5.2, 3.4))
    real = axis == "real"
    x = np.linspace(-length, 0, POINTS) if real else np.linspace(0, length, POINTS)
    exact = np.exp(x) if real else np.ones_like(x)
    ax.plot(x, exact, color=INK, linewidth=1, label="eˣ" if real else "exact: 1")
    lowest, highest = 1.0, 1.0
    for k, R in enumerate(functions):
        values = R(x) if real else np.abs(R(1j * x))
        style = line_style(k)
        ax.plot(x, values, label=plain(R.name or "unnamed"), **style)
        if 0 < ends[k] < length:
            where = -ends[k] if real else ends[k]
            value = R(where) if real else abs(R(1j * where))
            ax.plot([where], [np.real(value)], "o", color=style["color"], markersize=5)
            ax.annotate(
                f"{where:.4f}",
                (where, float(np.real(value))),
                textcoords="offset points",
                xytext=(4, 8 + 11 * k),  # ends of several methods may be close
                fontsize=8,
                color=style["color"],
            )
        lowest, highest = min(lowest, float(values.min())), max(highest, float(values.max()))
    for edge in (-1, 1) if real else (1,):
        ax.axhline(edge, color=QUIET, linewidth=0.7, linestyle=":")
    # Show small deviations from 1, but do not follow R to where it explodes.
    ax.set_ylim((-1.6, 1.6) if real else (max(0.0, lowest - 0.05), min(1.6, highest + 0.05)))
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_xlabel("z = hλ (real)" if real else "y = hω, z = iy")
    ax.set_ylabel("R(z)" if real else "|R(iy)|")
    tidy(ax)
    legend_beside(ax, fontsize=9)
    return ax


def dispersion_curves(curves: Any, ax: Axes | None = None) -> Axes:
    """Draw phase error and loss of amplitude against the angle of a step, on logarithmic axes.

    Parameters
    ----------
    curves
        What :func:`integrators.analysis.dispersion` returned, or a method to call it with, or a
        list of them. Growth of the amplitude is drawn by its size, and named in the legend.
    ax
        Axes to draw into; by default those of a new figure.

    Examples
    --------
    >>> ax = dispersion_curves(["RK4", "DOPRI5"])
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    shown = [c if isinstance(c, Dispersion) else dispersion(c) for c in _several(curves)]
    ax = new_axes(ax, (5.2, 3.6))
    floor = 1e-15  # below this only rounding is seen
    for k, curve in enumerate(shown):
        colour = COLOURS[k % len(COLOURS)]
        name = f"{curve.name}: " if len(shown) > 1 and curve.name else ""
        phase, loss = (
            np.where(np.abs(v) > floor, np.abs(v), np.nan)
            for v in (curve.phase_error, curve.amplitude_loss)
        )
        ax.plot(
            curve.y,
            phase,
            color=colour,
            label=f"{name}phase error, y$^{{{curve.phase_order + 1}}}$",
        )
        if curve.amplitude_order is None:
            continue
        power = curve.amplitude_order + 1
        what = "growth" if (curve.amplitude_constant or 0) < 0 else "loss"
        label = f"{name}{what} of amplitude, y$^{{{power}}}$"
        ax.plot(curve.y, loss, color=colour, linestyle="--", label=label)
    ax.set(xscale="log", yscale="log", xlabel="y = hω", ylabel="error per step")
    ax.set_xlim(float(shown[0].y[0]), float(shown[0].y[-1]))
    ax.set_ylim(bottom=floor)
    tidy(ax)
    ax.legend(fontsize=8, loc="lower right", **LEGEND)
    return ax


# ---------------------------------------------------------------------- the page


def report_figure(report: Report) -> Figure:
    """Draw a report on one page: tableau, region, R along the axes, conditions, verdicts.

    Parameters
    ----------
    report
        What :func:`integrators.analysis.report` returned.

    Examples
    --------
    >>> from integrators.analysis import report
    >>> len(report_figure(report("Heun")).axes)
    5
    """
    from .figure import ShownFigure

    figure = ShownFigure(figsize=PAGE, layout=None)
    figure.text(0.06, 0.965, report.title, fontsize=14, weight="bold", color=INK)
    below = 0.952
    for remark in report.remarks:
        lines = textwrap.wrap(remark, 108)
        figure.text(0.06, below, "\n".join(lines), fontsize=8.5, color=NO, va="top")
        below -= 0.014 * len(lines) + 0.004
    below = _draw_tableau(figure, below - 0.006, report)
    region = figure.add_axes((0.09, below - 0.32, 0.40, 0.29), anchor="N")
    stability_region(report.R, region)
    region.set_title("Stability region", loc="left", fontsize=9)
    region.tick_params(labelsize=7)
    for k, (name, title) in enumerate(
        (("real", "R on the real axis (thin: eˣ)"), ("imaginary", "|R| on the imaginary axis"))
    ):
        axes = figure.add_axes((0.59, below - 0.145 - 0.175 * k, 0.35, 0.115))
        amplification(report.R, name, axes)
        axes.set_title(title, loc="left", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.set_xlabel(axes.get_xlabel(), fontsize=8)
        axes.set_ylabel(axes.get_ylabel(), fontsize=8)
        if (legend := axes.get_legend()) is not None:
            legend.remove()
    text = figure.add_axes((0.06, 0.02, 0.88, below - 0.32 - 0.045 - 0.02))
    _draw_text(text, report)
    return figure


def _draw_tableau(figure: Figure, top: float, report: Report) -> float:
    """Write the tableau, or draw it where it is too large; return where it ends."""
    from matplotlib.colors import SymLogNorm

    lines = str(report.tableau).splitlines()
    longest = max(map(len, lines))
    if longest <= MOST_COLUMNS:
        size = min(9.0, 500.0 / (0.62 * longest))
        height = 1.45 * size * len(lines) / (72 * PAGE[1])
        ax = figure.add_axes((0.06, top - height, 0.88, height))
        ax.set_axis_off()
        ax.text(0, 1, "\n".join(lines), family="monospace", fontsize=size, va="top")
        return top - height
    ax = figure.add_axes((0.06, top - 0.2, 0.88, 0.18))
    ax.set_axis_off()
    A, b, _ = report.tableau.arrays
    stacked = np.vstack([A, np.full(A.shape[1], np.nan), b])
    limit = float(np.nanmax(np.abs(stacked)))
    shown = np.where(stacked == 0, np.nan, stacked)
    scale = SymLogNorm(linthresh=limit / 100, vmin=-limit, vmax=limit)
    picture = ax.imshow(shown, cmap="PuOr", norm=scale, aspect="auto")
    ticks = [-limit, -limit / 10, 0, limit / 10, limit]
    bar = figure.colorbar(picture, ax=ax, fraction=0.03, pad=0.01, ticks=ticks)
    bar.ax.set_yticklabels([f"{tick:.2g}" for tick in ticks], fontsize=7)
    bar.ax.minorticks_off()
    ax.set_title("coefficients: A, and below it b (blank where 0)", fontsize=8, loc="left")
    return top - 0.2


def _draw_text(ax: Axes, report: Report) -> None:
    """Order conditions and verdicts, a line each, as far as the page reaches."""
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    entries: list[tuple[str, str, str]] = [("Order", INK, "bold")]
    entries += [(line, INK, "normal") for line in report.order_lines()]
    entries.append(("Stability and geometry", INK, "bold"))
    entries += [(line, INK, "normal") for line in report.stability_lines()[:2]]
    entries += [(str(m), INK, "normal") for m in report.measures.values()]
    entries += [
        (f"{'✓' if v else '✗'} {v}", YES if v else NO, "normal") for v in report.verdicts.values()
    ]
    entries.append((str(report.dispersion), INK, "normal"))
    height = ax.get_position().height * PAGE[1] * 72  # points
    step = min(12.5, height / len(entries)) / height
    size = min(8.0, 0.68 * step * height)
    for k, (line, colour, weight) in enumerate(entries):
        shortened = line if len(line) <= LINE else line[: LINE - 2] + " …"
        ax.text(
            0,
            1 - k * step,
            _mathtext(shortened),
            color=colour,
            weight=weight,
            fontsize=size,
            va="top",
        )


def _mathtext(text: str) -> str:
    """Subscripts and superscripts of the text form, for fonts that lack these letters."""
    below = dict(zip("ᵢⱼₖₗₘₙₚₛₜᵤᵥₓₐₑₒₕ₁₂₃", "ijklmnpstuvxaeoh123"))
    above = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ᵏ", "0123456789k"))

    def subscript(match: re.Match[str]) -> str:
        return "$_{" + "".join(below[letter] for letter in match[0]) + "}$"

    def superscript(match: re.Match[str]) -> str:
        return "$^{" + "".join(above[letter] for letter in match[0]) + "}$"

    text = re.sub(f"[{''.join(below)}]+", subscript, text)
    return re.sub(f"[{''.join(above)}]+", superscript, text)


# ---------------------------------------------------------------------- helpers


def _several(methods: Any) -> list[Any]:
    items = list(methods) if isinstance(methods, list | tuple) else [methods]
    if not items:
        raise ValueError("expected at least one method to draw, got an empty list")
    return items
