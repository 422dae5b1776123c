"""What all figures share: colours, markers, light axes, numbers as they are read.

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart;
curves differ by their markers as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "MARKERS",
    "MORE_COLOURS",
    "Points",
    "curve_style",
    "labelled_axes",
    "legend_beside",
    "line_style",
    "new_axes",
    "new_figure",
    "tex",
    "tidy",
    "told_apart",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: With Tol's wine and olive and a grey, where colour alone has to tell up to ten things apart.
MORE_COLOURS = (*COLOURS, "#882255", "#999933", "#8A8A8A")
DASHES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)),
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, QUIET, GRID = "#222222", "#6b6b6b", "#e4e4e4"
LEGEND: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "framealpha": 0.85}
SIZE = (6.4, 4.6)  # inches

Points = dict[float, float]
"""A curve on logarithmic axes: its values by their places."""


def new_axes(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """Return the axes given, or fresh ones in a figure of their own, made without pyplot."""
    return new_figure(size).add_subplot() if ax is None else ax


def new_figure(size: tuple[float, float] = SIZE) -> Figure:
    """Return an empty figure, made without pyplot, which notebooks show nevertheless."""
    from .figure import ShownFigure

    return ShownFigure(figsize=size, layout="constrained")


def labelled_axes(
    ax: Axes | None, title: str, x: str, y: str, size: tuple[float, float] = SIZE
) -> Axes:
    """Return the axes given, or fresh ones, with a title, labels and light lines."""
    ax = new_axes(ax, size)
    ax.set_title(title, loc="left", fontsize="medium", color=INK)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    tidy(ax)
    return ax


def line_style(k: int) -> dict[str, Any]:
    """Colour and dashes of the k-th line, for curves without markers."""
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}


def legend_beside(ax: Axes, **options: Any) -> None:
    """Put the legend to the right of the axes, where it covers no curve."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**{**place, **LEGEND, **options})


def curve_style(k: int) -> dict[str, Any]:
    """Colour, marker and line of the k-th curve."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "ls": ("-", "--")[k // len(COLOURS) % 2],
        "lw": 1.6,
        "ms": 7,
        "mec": "white",
        "mew": 0.8,
    }


def told_apart(style: dict[str, Any], points: Points, drawn: list[Points]) -> dict[str, Any]:
    """Return the style of a curve, with rings for markers if it lies on others; it joins them."""
    twins = sum(_coincide(points, other) for other in drawn)
    drawn.append(points)
    if not twins:
        return style
    rings = {"ms": style["ms"] + 4 * twins, "mfc": "none", "mec": style["color"], "mew": 1.2}
    return {**style, **rings, "ls": "--"}


def _coincide(one: Points, other: Points) -> bool:
    """Whether most points of two curves are the same to the eye, on logarithmic axes."""
    same = sum(abs(np.log10(other[x] / y)) < 0.02 for x, y in one.items() if x in other)
    return 2 * same > min(len(one), len(other))


def tidy(ax: Axes) -> None:
    """Leave out what is not needed: two of the spines, dark grid lines."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=GRID, lw=0.8, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, labelsize=10)


def widen(ax: Axes, x_decades: float = 1.0, y_decades: float = 2.0) -> None:
    """Let logarithmic axes span some decades: a few per cent must not look like a world."""
    axes = ((ax.get_xlim(), ax.set_xlim, x_decades), (ax.get_ylim(), ax.set_ylim, y_decades))
    for limits, set_limits, least in axes:
        low, high = np.log10(limits)
        missing = max(0.0, least - (high - low)) / 2 + max(0.05, 0.01 * (high - low))
        set_limits(10 ** (low - missing), 10 ** (high + missing))


def plain(name: str) -> str:
    r"""A user's name as text: dollar signs in it would otherwise begin a formula.

    Examples
    --------
    >>> plain("5 $ and 7 $")
    '5 \\$ and 7 \\$'
    """
    return name.replace("$", r"\$")


def tex(x: float) -> str:
    """Write 0.05 as it is, 1e-06 and 3.6e-05 as powers of ten.

    Examples
    --------
    >>> tex(0.05), tex(1e-6)
    ('0.05', '$10^{-6}$')
    """
    mantissa, _, exponent = f"{x:.4g}".partition("e")
    if not exponent and (x == 0 or abs(x) >= 1e-2):
        return mantissa
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1.0" else rf"${mantissa}\cdot {power}$"


def label_counts(ax: Axes) -> None:
    """Write 1000 and 20 000 at the ticks; powers of ten alone are too few on a short axis."""
    _label(ax, _count)


def label_numbers(ax: Axes) -> None:
    """Write 0.02 and 0.05 at the ticks where powers of ten alone are too few."""
    low, high = ax.get_xlim()
    if np.log10(high / low) < 2.5:
        _label(ax, lambda x, _: tex(x))


def _label(ax: Axes, words: Callable[[float, Any], str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_xlim()
    decades = np.log10(high / low)
    subs = (1.0,) if decades > 2.5 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter(FuncFormatter(words))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _count(x: float, _: Any) -> str:
    return f"{x:,.0f}".replace(",", "\u2009") if x < 1e6 else f"{x / 1e6:g} million"
