"""Draw the pictures of docs/mechanisms.md: ``python docs/pictures/make_mechanisms.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d
from PIL import Image

from multibody import assemble, mechanisms, positions, simulate
from multibody.pictures import plot
from multibody.pictures.skeleton import view_of

HERE = Path(__file__).parent
COLUMNS = 6
CONFIGURATIONS = {
    "double_pendulum": [0.9, 0.6],
    "n_pendulum": [0.9, -0.5, 0.4, 0.5, -0.3],
    "cart_pole": [0.4, 0.5],
    "pendulum": [0.7],
    "slider_crank": [0.9, -1.3, 0.37],
    "servo_arm": [0.9, -0.7, 0, 0, 0, 0],
    "seven_link_biped": [0.5, -1.0, 0.5, -0.5, 1.0, -0.5, 0, 0, 0, 0, 0, 0],
    "satellite": [1, 0, 0, 0, 0, 0, 0, -0.6, 1.0, -0.4, 0.8],
}


def gallery() -> None:
    """Stick figures of all mechanisms: shapes only, without axes."""
    entries = [
        e for e in mechanisms.entries() if e.name != "random_tree"
    ]  # has no shape of its own
    rows = -(-len(entries) // COLUMNS)
    figure = Figure(figsize=(1.7 * COLUMNS, 1.8 * rows), layout="constrained")
    for k, entry in enumerate(entries, 1):
        model = entry.model()
        projection = "3d" if view_of(model) == "3d" else None
        ax = figure.add_subplot(rows, COLUMNS, k, projection=projection)
        q = CONFIGURATIONS.get(entry.name, entry.start(model)[0])
        plot.stick_figure(model, assemble(model, q).q if model.loops else q, ax=ax)
        ax.set_title("", loc="left")
        ax.set_title(entry.name, fontsize=10)
        ax.set_axis_off()
        if projection:
            enlarge(ax)
    save(figure, "mechanisms")


def enlarge(ax: Any) -> None:
    """Let a 3-D figure fill its Axes, which without labels have room around the box."""
    points = np.hstack([line.get_data_3d() for line in ax.lines])
    shown = np.array(proj3d.proj_transform(*points, ax.get_proj())[:2])
    room = np.array([ax.viewLim.intervalx, ax.viewLim.intervaly])
    zoom = 0.9 * float(np.min(np.abs(room).min(axis=1) / np.abs(shown).max(axis=1)))
    ax.set_box_aspect(np.ptp([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()], 1), zoom=zoom)


def motion() -> None:
    """Path and energy of a double pendulum."""
    model = mechanisms.double_pendulum()
    solution = simulate(model, [2.0, 1.0], T=6.0)
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.path(model, solution, "lower", (0, 0, -1), ax=left)
    plot.stick_figure(model, solution.y[:2, -1], ax=left)
    track = positions(model, solution, "lower", (0, 0, -1))
    left.set(xlim=(-2.2, 2.2), ylim=(track[2].min() - 0.2, max(track[2].max(), 0.0) + 0.2))
    left.set_title("path of the lower bob", loc="left", fontsize="medium")
    plot.energy(model, solution, ax=right)
    save(figure, "double_pendulum")


def save(figure: Any, name: str) -> None:
    """Write a small PNG: few colours, no metadata that changes from run to run."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(90)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.quantize(256).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    gallery()
    motion()
