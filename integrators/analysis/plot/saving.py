"""Figures for papers: the width of a column, one size of type, fonts that publishers take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_figure"]

WIDTHS = {"column": 3.35, "page": 6.9}  # inches, of journals with two columns
TYPE, SMALL = 8.0, 7.0  # points: labels and titles; ticks and legends
LINE, MARKER = 1.0, 4.0  # points, at most
#: Type 42: outlines that can be searched and edited; text in SVG stays text.
FONTS: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}


def save_figure(
    figure: Any,
    path: str | Path,
    *,
    style: str | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Path:
    """Write a figure to a file.

    Parameters
    ----------
    figure
        A figure, or axes of one.
    path
        Its ending says the format: .pdf, .svg, .png, .eps, .pgf.
    style
        "paper" for a paper: the width below, type of 8 and 7 points at that width, thin lines,
        legends below the axes, fonts of Type 42. By default the figure is written as it is.
    width, height
        "column" (3.35 inches), "page" (6.9), or inches; by default the height keeps the shape, and
        leaves room for the legend below.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from integrators.analysis import plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = plot.save_figure(plot.stability_region("RK4"), f"{folder}/a.pdf", style="paper")
    ...     b"/FontType 42" in path.read_bytes() or b"/Type0" in path.read_bytes()
    True
    """
    import matplotlib

    drawn = figure if hasattr(figure, "savefig") else figure.figure
    target = Path(path)
    if style not in (None, "paper"):
        raise ValueError(f"style must be 'paper' or None, got {style!r}")
    if style is None:
        with replacing(target) as temporary:
            drawn.savefig(temporary)
        return target
    if isinstance(width, str) and width not in WIDTHS:
        raise ValueError(f"width must be {', '.join(map(repr, WIDTHS))} or inches, got {width!r}")
    inches = WIDTHS[width] if isinstance(width, str) else float(width)
    if not inches > 0 or (height is not None and not height > 0):
        raise ValueError(f"width and height must be positive, got {width!r} and {height!r}")
    before = drawn.get_size_inches()
    tall = inches * before[1] / before[0] + _room_below(drawn) if height is None else height
    with matplotlib.rc_context(FONTS):
        _for_paper(drawn, inches, tall)
        with replacing(target) as temporary:
            drawn.savefig(temporary, **({"dpi": 600} if target.suffix.lower() == ".png" else {}))
    return target


def _for_paper(figure: Figure, width: float, height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    figure.set_size_inches(width, height)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontsize(TYPE)
    for ax in figure.axes:
        ax.tick_params(labelsize=SMALL)
        for line in ax.findobj(Line2D):
            assert isinstance(line, Line2D)
            line.set_linewidth(min(line.get_linewidth(), LINE))
            line.set_markersize(min(line.get_markersize(), MARKER))
        if ax.get_legend() is not None:
            _legend_below(ax)


def _labels(ax: Any) -> tuple[list[str], int]:
    """What the legend of some axes says, and in how many columns there is room for it."""
    legend = ax.get_legend()
    labels = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    return labels, 1 if max(map(len, labels), default=0) > 22 else 2


def _room_below(figure: Figure) -> float:
    """Height of the longest legend, in inches."""
    rows = (-(-len(labels) // columns) for labels, columns in map(_labels, figure.axes))
    return max(rows, default=0) * 1.5 * SMALL / 72


def _legend_below(ax: Any) -> None:
    """A column has no room beside the axes, and within them curves would be covered."""
    handles = ax.get_legend().legend_handles
    labels, columns = _labels(ax)
    # In heights of its type, not in parts of the axes, which shrink as the legend grows.
    below = 4.4 if ax.xaxis.label.get_text() else 2.4
    ax.legend(
        handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns,
        fontsize=SMALL, frameon=False, borderaxespad=below, handlelength=2.2, columnspacing=1.2,
    )  # fmt: skip
