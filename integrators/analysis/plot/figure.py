"""A figure that notebooks show by themselves.

Figures here are made without pyplot, so that no window opens and no global state changes. Jupyter,
however, learns to show matplotlib's figures only when pyplot is imported; otherwise it would print
``<Figure size …>``. Import this module inside functions: it loads matplotlib.
"""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]

DPI = 100.0


class ShownFigure(Figure):
    r"""A matplotlib figure that gives Jupyter its picture.

    Examples
    --------
    >>> figure = ShownFigure(figsize=(2.0, 1.0))
    >>> figure._repr_png_()[:4]
    b'\x89PNG'
    """

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()
