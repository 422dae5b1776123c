"""Draw the pictures of docs/mechanisms.md: ``python docs/pictures/make_mechanisms.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from multibody import mechanisms, plot, positions, simulate
from multibody.skeleton import view_of

HERE = Path(__file__).parent
SHOWN = (
    "double_pendulum",
    "n_pendulum",
    "cart_pole",
    "planar_tree",
    "heavy_top",
    "satellite",
    "puma560",
    "serial_arm",
)
CONFIGURATIONS = {
    "double_pendulum": [0.9, 0.6],
    "n_pendulum": [0.9, -0.5, 0.4, 0.5, -0.3],
    "cart_pole": [0.4, 0.5],
    "satellite": [1, 0, 0, 0, 0, 0, 0, -0.6, 1.0, -0.4, 0.8],
}


def gallery() -> None:
    """Stick figures of some mechanisms."""
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    for k, name in enumerate(SHOWN, 1):
        entry = mechanisms.entry(name)
        model = entry.model()
        projection = "3d" if view_of(model) == "3d" else None
        ax = figure.add_subplot(2, 4, k, projection=projection)
        plot.stick_figure(model, CONFIGURATIONS.get(name, entry.start(model)[0]), ax=ax)
        ax.set_title(name, loc="left", fontsize=10)
        ax.set(xlabel="", ylabel="")
        if projection:
            ax.set_zlabel("")
        ax.tick_params(labelsize=6)
    save(figure, "mechanisms")


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
    """Write a small PNG without metadata that changes from run to run."""
    FigureCanvasAgg(figure)
    figure.savefig(HERE / f"{name}.png", dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    gallery()
    motion()
