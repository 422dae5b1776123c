"""Pictures of comparisons: the solution on the left, what accuracy costs on the right.

Nothing is computed here. matplotlib is imported when a picture is asked for; its object interface
is used throughout, so no window system is touched and no global state is changed. The figures of
the studies are those of :mod:`integrators.analysis.plot`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.analysis.plot import study, style
from integrators.analysis.plot.saving import save_figure
from integrators.analysis.plot.style import COLOURS, INK, LEGEND, QUIET, plain, tex
from integrators.analysis.study.convergence import Convergence
from integrators.analysis.study.work_precision import WorkPrecision
from integrators.files import replacing

from .compare import Comparison, Illustration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


__all__ = [
    "comparison_figure",
    "convergence_figure",
    "save",
    "save_comparison",
    "study_figure",
    "work_precision_figure",
]

MOST_COMPONENTS = 6  # curves in one picture
LEGEND_ROW = 0.1  # of the height of the curves
UNEQUAL = 30.0  # components whose sizes differ more than this are drawn relative to their size
MOST_DOTS = 600  # more step points than this would hide the curve
DPI = 130


@dataclass(frozen=True)
class _Orbit:
    """Which components to draw against each other, and what else is there to see."""

    pairs: tuple[tuple[int, int], ...] = ((0, 1),)
    labels: tuple[str, str] = ("$x$", "$y$")
    equal: bool = True
    marks: tuple[tuple[float, float, str], ...] = ()


_PHASE = (r"$\theta$", r"$\dot\theta$")
ORBITS = {
    "arenstorf": _Orbit(marks=((-0.012277471, 0.0, "Earth"), (0.987722529, 0.0, "Moon"))),
    "brusselator": _Orbit(labels=("$u$", "$v$"), equal=False),
    "harmonic_oscillator": _Orbit(labels=("$q$", r"$\dot q$"), equal=False),
    "kepler": _Orbit(marks=((0.0, 0.0, "Sun"),)),
    "lorenz": _Orbit(pairs=((0, 2),), labels=("$x$", "$z$"), equal=False),
    "lotka_volterra": _Orbit(labels=("prey", "predators"), equal=False),
    "pendulum": _Orbit(labels=_PHASE, equal=False),
    "pendulum_dae": _Orbit(),
    "pleiades": _Orbit(pairs=tuple((i, 7 + i) for i in range(7))),
    "van_der_pol": _Orbit(labels=("$y$", r"$\dot y$"), equal=False),
}
VARIANTS = {"arenstorf_3": "arenstorf", "lorenz_111": "lorenz"}


def save_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write a picture of a comparison.

    Parameters
    ----------
    comparison
        With its illustration, ``compare(..., illustrate=True)``.
    path
        File name; its ending says which format.
    """
    return save(comparison_figure(comparison), path)


def save(figure: Figure, path: str | Path, style: str | None = None) -> Path:
    """Write a figure to a file; ``style="paper"`` for the column of a paper."""
    with replacing(path) as file:
        if style is None:
            figure.savefig(file, dpi=DPI)
        else:
            wide = "page" if len(figure.axes) > 1 else "column"
            save_figure(figure, file, style=style, width=wide)
    return Path(path)


def comparison_figure(comparison: Comparison) -> Figure:
    """Return the figure: solution on the left, error against evaluations on the right."""

    def draw(figure: Figure) -> None:
        if comparison.illustration is None:
            study.work_precision(comparison, ax=figure.subplots())
        else:
            left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
            _draw_solution(left, comparison, comparison.illustration)
            study.work_precision(comparison, ax=right)

    return framed((10.5, 4.8), draw)


def study_figure(result: Convergence | WorkPrecision) -> Figure:
    """Return the figure of any study."""
    if isinstance(result, Convergence):
        return convergence_figure(result)
    return work_precision_figure(result)


def convergence_figure(result: Convergence) -> Figure:
    """Return the figure of a convergence study."""
    return framed((7.2, 5.4), lambda figure: study.convergence(result, figure.subplots()))


def work_precision_figure(result: WorkPrecision) -> Figure:
    """Return the figures of a work-precision study: against evaluations, time and tolerance."""

    def draw(figure: Figure) -> None:
        count = 2 if result.fixed else 3
        axes = figure.subplots(1, count, squeeze=False)[0]
        study.work_precision(result, "nfev", axes[0])
        study.work_precision(result, "seconds", axes[1])
        axes[1].set_title("", loc="left")
        if not result.fixed:
            study.tolerance(result, axes[2])
        for ax in axes[1:]:  # one legend, and one list of failures, are enough
            if ax.get_legend() is not None:
                ax.get_legend().remove()
            for text in list(ax.texts):
                text.remove()

    return framed((15.0 if not result.fixed else 10.5, 4.8), draw)


def framed(size: tuple[float, float], draw: Callable[[Figure], Any]) -> Figure:
    """Return a figure of this size, with what ``draw`` puts into it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.size": 11, "axes.edgecolor": QUIET, "axes.labelcolor": INK}):
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        draw(figure)
        return figure


# -------------------------------------------------------------------- the solution


def _draw_solution(ax: Axes, comparison: Comparison, shown: Illustration) -> None:
    name = comparison.problem.name
    orbit = ORBITS.get(VARIANTS.get(name, name))
    if orbit is not None and not np.iscomplexobj(shown.y):
        _draw_orbit(ax, orbit, shown, _colour(comparison, shown.row.method))
    else:
        _draw_components(ax, comparison, shown)
    ax.set_title(plain(name or "solution"), loc="left", fontweight="bold", color=INK)
    if _dotted(shown):
        label = f"dots: steps of {plain(shown.row.method)}, {study.setting_of(shown.row)}"
        ax.set_title(label, loc="right", fontsize=9, color=QUIET)
    style.tidy(ax)


def _dotted(shown: Illustration) -> bool:
    return len(shown.t_steps) <= MOST_DOTS


def _draw_orbit(ax: Axes, orbit: _Orbit, shown: Illustration, colour: str) -> None:
    for i, j in orbit.pairs:
        ax.plot(shown.y[i], shown.y[j], color=QUIET, lw=1.2, zorder=2)
        if _dotted(shown):
            _dots(ax, shown.y_steps[i], shown.y_steps[j], colour)
    for x, y, label in orbit.marks:
        ax.plot(x, y, "o", color=INK, ms=6, zorder=4)
        ax.annotate(
            label, (x, y), (0, -14), textcoords="offset points", ha="center", fontsize=9, color=INK
        )
    ax.margins(0.08)
    ax.set_xlabel(orbit.labels[0])
    ax.set_ylabel(orbit.labels[1])
    if orbit.equal:
        ax.set_aspect("equal", adjustable="datalim")


def _dots(ax: Axes, x: Any, y: Any, colour: Any) -> None:
    """Draw steps without a say in the limits: those that went astray leave the picture."""
    from matplotlib.lines import Line2D

    ax.add_artist(Line2D(x, y, ls="none", marker=".", ms=6, color=colour, zorder=3))


def _draw_components(ax: Axes, comparison: Comparison, shown: Illustration) -> None:
    from matplotlib import colormaps

    y, y_steps = np.real(shown.y), np.real(shown.y_steps)
    t0, t1 = comparison.problem.t_span
    elapsed = np.abs(shown.t_steps - t0)
    # Half of the steps in the first thousandth: the story is told in decades of time.
    logarithmic = len(elapsed) > 10 and np.median(elapsed) < 1e-3 * abs(t1 - t0)
    start = t0 if logarithmic else 0.0
    count = min(len(y), MOST_COMPONENTS)
    chosen = np.unique(np.linspace(0, len(y) - 1, count).round().astype(int))
    sizes = np.max(np.abs(y[chosen]), axis=1)
    sizes[sizes == 0] = 1.0
    scaled = sizes.max() > UNEQUAL * sizes.min()
    shades = [colormaps["viridis"](x) for x in np.linspace(0.0, 0.88, len(chosen))]
    divisors = sizes if scaled else np.ones(len(chosen))
    for i, divisor, shade in zip(chosen, divisors, shades):
        label = f"$y_{{{i + 1}}}$" + (f" / {tex(divisor)}" if scaled else "")
        ax.plot(shown.t - start, y[i] / divisor, color=shade, lw=1.4, label=label)
        if _dotted(shown):
            _dots(ax, shown.t_steps - start, y_steps[i] / divisor, shade)
    if logarithmic:
        ax.set_xscale("log")
        ax.set_xlim(left=float(elapsed[elapsed > 0][0]))
    ax.set_xlabel("$t$" if start == 0 else f"$t - {t0:g}$")
    if len(chosen) > 1 or scaled:
        columns = 2 if scaled else 4
        low, high = ax.get_ylim()  # a legend above the curves covers none
        ax.set_ylim(low, high + LEGEND_ROW * -(-len(chosen) // columns) * (high - low))
        ax.legend(fontsize=9, ncols=columns, loc="upper right", **LEGEND)
    else:
        ax.set_ylabel("$y$")


def _colour(comparison: Comparison, label: str) -> str:
    return COLOURS[comparison.methods.index(label) % len(COLOURS)]
