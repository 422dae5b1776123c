"""A figure of the structure of a differential-algebraic system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .style import COLOURS, INK, QUIET, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dae_structure"]

LARGEST_NAMED = 30  # unknowns whose names and orders are written


def dae_structure(structure: Any, ax: Axes | None = None) -> Axes:
    """Draw the signature matrix of a DAE in block-triangular form.

    Entries of the system Jacobian are filled, others hollow; the transversal is marked, blocks are
    framed, and for small systems the orders, the names and the offsets are written.

    Parameters
    ----------
    structure
        What ``DAE(...).structure()`` returns.
    ax
        Axes to draw on; by default a new figure.

    Examples
    --------
    >>> from integrators import DAE
    >>> from integrators.analysis import plot
    >>> system = DAE(lambda t, y, d: [d(y[0]) - y[1], y[0] - t], names=["x", "u"])
    >>> plot.dae_structure(system.structure()).get_title()
    'DAE: index 2, 0 freedoms'
    """
    from matplotlib.patches import Rectangle

    sigma, equations = structure.sigma, structure.equations
    m, n = sigma.shape
    small = max(m, n) <= LARGEST_NAMED
    side = float(np.clip(0.42 * max(m, n) + 1.6, 3.2, 8.0)) if small else 6.0
    ax = new_axes(ax, (side + 0.6, side))
    rows, columns = np.arange(m), np.arange(n)
    title = f"{structure.name or 'DAE'}: "
    if structure.regular:
        rows = np.array([i for block in structure.blocks for i in block.equations])
        columns = np.array([j for block in structure.blocks for j in block.unknowns])
        freedoms = structure.freedoms
        title += f"index {structure.index}, {freedoms} freedom{'' if freedoms == 1 else 's'}"
    else:
        title += "structurally singular"
    at_row, at_column = np.argsort(rows), np.argsort(columns)
    x, y = at_column[sigma.columns], at_row[sigma.rows]
    leading = structure.offsets.leading(sigma) if structure.regular else np.zeros(x.size, bool)
    if small:
        for k in range(x.size):
            i, j = int(sigma.rows[k]), int(sigma.columns[k])
            chosen = structure.regular and structure.offsets.partner[i] == j
            colour = COLOURS[1] if chosen else COLOURS[0]
            face = colour if leading[k] else "white"
            cell = Rectangle((x[k] - 0.4, y[k] - 0.4), 0.8, 0.8, facecolor=face, edgecolor=colour)
            ax.add_patch(cell)
            ink = "white" if leading[k] else INK
            text = str(int(sigma.orders[k]))
            ax.text(x[k], y[k], text, color=ink, ha="center", va="center", fontsize=9)
        ax.set_xticks(range(n), _labels(structure, columns, equations.unknowns, "d"))
        ax.set_yticks(range(m), _labels(structure, rows, equations.names, "c"))
        ax.tick_params(length=0, labelsize=8)
    else:
        size = float(np.clip(300.0 / max(m, n), 0.3, 6.0))
        ax.plot(x[~leading], y[~leading], "s", color=COLOURS[5], markersize=size)
        ax.plot(x[leading], y[leading], "s", color=COLOURS[0], markersize=size)
    if structure.regular:
        first = -0.5
        for block in structure.blocks:
            length = len(block)
            if length > 1:
                frame = Rectangle((first, first), length, length, fill=False, edgecolor=QUIET)
                ax.add_patch(frame)
            first += length
    ax.set_xlim(-0.6, n - 0.4)
    ax.set_ylim(m - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.xaxis.tick_top()
    ax.set_title(title, fontsize=10, color=INK)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _labels(structure: Any, order: Any, names: Any, offset: str) -> list[str]:
    """Names with their offsets, in the order drawn."""
    if not structure.regular:
        return [names[k] for k in order]
    values = getattr(structure, offset)
    return [f"{names[k]}\n{offset} = {int(values[k])}" for k in order]
