"""Pictures of comparisons: the solution on the left, what accuracy costs on the right.

Nothing is computed here. matplotlib is imported when a picture is asked for; its object interface
is used throughout, so no window system is touched and no global state is changed. Colours are
those of Okabe and Ito, which people with any kind of colour vision can tell apart; each method
has its own marker as well.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .compare import Comparison, Illustration, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["comparison_figure", "save_comparison"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, QUIET, GRID = "#222222", "#6b6b6b", "#e4e4e4"
MOST_COMPONENTS = 6  # curves in one picture
UNEQUAL = 30.0  # components whose sizes differ more than this are drawn relative to their size
MOST_DOTS = 600  # more step points than this would hide the curve
LEGEND: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "framealpha": 0.85}
DPI = 130
LINE = 80  # characters below a picture
SMALLEST_ERROR = 1e-17  # an error of zero, on a logarithmic axis


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
    figure = comparison_figure(comparison)
    figure.savefig(path, dpi=DPI)
    return Path(path)


def comparison_figure(comparison: Comparison) -> Figure:
    """Return the figure: solution on the left, error against evaluations on the right."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.size": 11, "axes.edgecolor": QUIET, "axes.labelcolor": INK}):
        figure = Figure(figsize=(10.5, 4.8), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        if comparison.illustration is None:
            _draw_costs(figure.subplots(), comparison)
        else:
            left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
            _draw_solution(left, comparison, comparison.illustration)
            _draw_costs(right, comparison)
        return figure


# -------------------------------------------------------------------- the solution


def _draw_solution(ax: Axes, comparison: Comparison, shown: Illustration) -> None:
    name = comparison.problem.name
    orbit = ORBITS.get(VARIANTS.get(name, name))
    if orbit is not None and not np.iscomplexobj(shown.y):
        _draw_orbit(ax, orbit, shown, _colour(comparison, shown.row.method))
    else:
        _draw_components(ax, comparison, shown)
    ax.set_title(name or "solution", loc="left", fontweight="bold", color=INK)
    if _dotted(shown):
        label = f"dots: steps of {shown.row.method}, {_setting(shown.row)}"
        ax.set_title(label, loc="right", fontsize=9, color=QUIET)
    _tidy(ax)


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
        label = f"$y_{{{i + 1}}}$" + (f" / {_tex(divisor)}" if scaled else "")
        ax.plot(shown.t - start, y[i] / divisor, color=shade, lw=1.4, label=label)
        if _dotted(shown):
            _dots(ax, shown.t_steps - start, y_steps[i] / divisor, shade)
    if logarithmic:
        ax.set_xscale("log")
        ax.set_xlim(left=float(elapsed[elapsed > 0][0]))
    ax.set_xlabel("$t$" if start == 0 else f"$t - {t0:g}$")
    if len(chosen) > 1 or scaled:
        ax.legend(fontsize=9, ncols=2 if len(chosen) > 3 else 1, **LEGEND)
    else:
        ax.set_ylabel("$y$")


# -------------------------------------------------------------------- what it costs


def _draw_costs(ax: Axes, comparison: Comparison) -> None:
    good = [row for row in comparison.rows if row.ok and row.error is not None]
    for k, label in enumerate(_labels(comparison)):
        rows = [row for row in good if row.method == label]
        if rows:
            ax.plot(
                [row.nfev for row in rows],
                [max(row.error or 0.0, SMALLEST_ERROR) for row in rows],
                color=_colour(comparison, label),
                marker=MARKERS[k % len(MARKERS)],
                ls=("-", "--")[k // len(COLOURS) % 2] if len(rows) > 1 else "none",
                lw=1.6,
                ms=8,
                mec="white",
                mew=0.8,
                label=label,
            )
    if good:
        ax.set_xscale("log")
        ax.set_yscale("log")
        _widen(ax)
        _label_counts(ax)
        ax.legend(fontsize=10, **LEGEND)
    else:
        reason = "no run succeeded" if comparison.failures else "no reference to compare with"
        ax.text(0.5, 0.5, reason, transform=ax.transAxes, ha="center", color=QUIET)
    kind = "relative" if comparison.reference.relative else "absolute"
    ax.set_xlabel("evaluations of $f$")
    ax.set_ylabel(f"{kind} error at $t$ = {_tex(comparison.problem.t_span[1])}")
    ax.set_title(_settings(comparison), loc="left", color=INK)
    _tidy(ax)
    _name_failures(ax, comparison)


def _labels(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(row.method for row in comparison.rows))


def _colour(comparison: Comparison, label: str) -> str:
    return COLOURS[_labels(comparison).index(label) % len(COLOURS)]


def _widen(ax: Axes) -> None:
    """Let the axes span a decade or two at least: a few per cent must not look like a world."""
    axes = ((ax.get_xlim(), ax.set_xlim, 1.0), (ax.get_ylim(), ax.set_ylim, 2.0))
    for limits, set_limits, least in axes:
        low, high = np.log10(limits)
        missing = max(0.0, least - (high - low)) / 2 + 0.05
        set_limits(10 ** (low - missing), 10 ** (high + missing))


def _settings(comparison: Comparison) -> str:
    fixed = comparison.rows[0].step is not None
    values = [row.step if fixed else row.rtol for row in comparison.rows]
    numbers = [x for x in dict.fromkeys(values) if x is not None]
    name = "step" if fixed else "rtol"
    if len(numbers) == 1:
        return f"{name} = {_tex(numbers[0])}"
    return f"{name} from {_tex(max(numbers))} to {_tex(min(numbers))}"


def _setting(row: Row) -> str:
    return f"rtol = {_tex(row.rtol or 0)}" if row.step is None else f"step = {_tex(row.step)}"


def _tex(x: float) -> str:
    """Write 0.05 as it is, 1e-06 and 3.6e-05 as powers of ten."""
    mantissa, _, exponent = f"{x:.4g}".partition("e")
    if not exponent and (x == 0 or abs(x) >= 1e-2):
        return mantissa
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1.0" else rf"${mantissa}\cdot {power}$"


def _label_counts(ax: Axes) -> None:
    """Write 1000 and 20 000 at the ticks; powers of ten alone are too few on a short axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_xlim()
    decades = np.log10(high / low)
    subs = (1.0,) if decades > 2.5 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter(FuncFormatter(_count))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _count(x: float, _: Any) -> str:
    return f"{x:,.0f}".replace(",", "\u2009") if x < 1e6 else f"{x / 1e6:g} million"


def _name_failures(ax: Axes, comparison: Comparison) -> None:
    failed: dict[str, list[Row]] = {}
    for row in comparison.failures:
        failed.setdefault(f"{row.method} ({row.status})", []).append(row)
    total = len({row.setting for row in comparison.rows})
    texts = [
        name if len(rows) == total else f"{name} at {', '.join(map(_setting, rows))}"
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


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=GRID, lw=0.8, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, labelsize=10)
