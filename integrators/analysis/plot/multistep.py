"""Stability regions of multistep methods, beside those of one-step methods if wished."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...methods.multistep import Multistep
from ..method.multistep import characteristic_roots, in_stability_region, root_locus
from ..method.stability.amplification import StabilityFunction
from .style import INK, QUIET, legend_beside, line_style, new_axes, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_regions"]

Window = tuple[float, float, float, float]

SHADE = "#a6cee3"
LIGHTLY = 0.12  # opacity of one region among several
COLUMNS, ROWS = 301, 151  # of the upper half; the lower is its mirror image
LARGEST = 60.0  # of a locus that is to be in the window


def draw_regions(
    methods: Sequence[Multistep | StabilityFunction], ax: Axes | None, window: Window | None
) -> Axes:
    """Draw where the largest root has |ζ| ≤ 1: one region shaded, with its root locus, or several.

    Parameters
    ----------
    methods
        Multistep methods, and stability functions of one-step methods.
    ax
        Axes to draw into; by default those of a new figure.
    window
        Left, right, bottom and top of the picture; by default chosen to show the regions.
    """
    ax = new_axes(ax, (5.2, 5.0))
    left, right, bottom, top = window or _window(methods)
    height = max(abs(bottom), abs(top))
    x, y = np.linspace(left, right, COLUMNS), np.linspace(0.0, height, ROWS)
    upper = x[None, :] + 1j * y[:, None]
    both = np.concatenate([-y[:0:-1], y])
    ax.axhline(0, color=QUIET, linewidth=0.7, zorder=1)
    ax.axvline(0, color=QUIET, linewidth=0.7, zorder=1)
    handles: list[Any] = []
    for k, method in enumerate(methods):
        level = _log_growth(method, upper)
        level = np.concatenate([level[:0:-1], level])
        style = line_style(k)
        shade(ax, x, both, -level, style, SHADE if len(methods) == 1 else None)
        if level.min() < 0 < level.max():
            colours, dashes = [style["color"]], [style["linestyle"]]
            ax.contour(x, both, level, levels=[0], colors=colours, linestyles=dashes, zorder=2)
        elif isinstance(method, Multistep):  # a curve without inside, as of the leapfrog
            for branch in root_locus(method):
                held = np.where(in_stability_region(method, branch), branch, np.nan)
                ax.plot(held.real, held.imag, zorder=2, **style)
        handles += ax.plot([], [], label=plain(method.name or "unnamed"), **style)
    if len(methods) == 1 and isinstance(methods[0], Multistep):
        for branch in root_locus(methods[0]):
            ax.plot(branch.real, branch.imag, color=QUIET, linewidth=0.8, zorder=1)
    elif len(methods) > 1 and handles:
        legend_beside(ax, handles=handles, fontsize=9)
    ax.set(xlim=(left, right), ylim=(bottom, top), xlabel="Re z", ylabel="Im z", aspect="equal")
    names = ", ".join(m.name for m in methods if m.name)
    title = f"Stability region: {names}" if 0 < len(names) <= 40 else "Stability region"
    ax.set_title(plain(title), loc="left", fontsize="medium", color=INK)
    tidy(ax)
    return ax


def shade(ax: Axes, x: Any, y: Any, level: Any, style: dict[str, Any], colour: str | None) -> None:
    """Shade where level ≥ 0: a single region in its colour; one of several so that others show."""
    alpha = 1.0 if colour else LIGHTLY
    colours = [colour or style["color"]]
    ax.contourf(x, y, level, levels=[0, math.inf], colors=colours, alpha=alpha, zorder=0)


def _log_growth(
    method: Multistep | StabilityFunction, Z: NDArray[np.complex128]
) -> NDArray[np.float64]:
    """Logarithm of the factor by which a step may enlarge the solution of y' = λy."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if isinstance(method, Multistep):
            growth = np.abs(characteristic_roots(method, Z)).max(axis=-1)
        else:
            growth = np.abs(method(Z))
        level = np.log(growth)
    return np.asarray(np.clip(np.nan_to_num(level, nan=700.0), -700.0, 700.0))


def _window(methods: Sequence[Multistep | StabilityFunction]) -> Window:
    """A window with the bounded regions, and with the loci of the unbounded ones."""
    boxes = [_extent(method) for method in methods]
    left, right = min(b[0] for b in boxes), max(b[1] for b in boxes)
    height = max(max(b[2] for b in boxes), (right - left) / 4)
    return left, right, -height, height


def _extent(method: Multistep | StabilityFunction) -> tuple[float, float, float]:
    if not isinstance(method, Multistep):
        from .method import _extent as of_one_step

        return of_one_step(method, False)
    if in_stability_region(method, -1e3):  # unbounded: what is outside matters
        points = root_locus(method).ravel()
        points = points[np.abs(points) < LARGEST]
        far = max(4.0, 1.1 * float(np.abs(points).max(initial=0.0)))
        return min(-0.4 * far, 1.2 * float(points.real.min(initial=0.0))), far, 0.9 * far
    x, y = np.linspace(-8.0, 2.0, 401), np.linspace(0.0, 4.0, 81)
    stable = _log_growth(method, x[None, :] + 1j * y[:, None]) <= 1e-9
    columns, rows = np.flatnonzero(stable.any(axis=0)), np.flatnonzero(stable.any(axis=1))
    left, right, height = x[columns[0]], max(x[columns[-1]], 0.0), y[rows[-1]]
    margin = 0.15 * max(right - left, height, 0.5)
    return float(left - margin), float(right + margin), float(height + margin)
