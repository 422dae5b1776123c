"""Draw the pictures of docs/conventions.md: ``python docs/pictures/make_frames.py``.

Each picture is computed with the library's own functions, so a change of convention shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from multibody.algebra.frames import Frame
from multibody.algebra.orientation import angles
from multibody.algebra.orientation.rotations import Rx, Rz
from multibody.algebra.se3 import Pose

HERE = Path(__file__).parent
COLOURS = ("tab:red", "tab:green", "tab:blue")


def axes_3d(figure: Any, position: int, of: int, title: str) -> Any:
    """Empty 3-D axes without ticks."""
    ax = figure.add_subplot(1, of, position, projection="3d")
    ax.set_title(title, fontsize=9)
    ax.set_axis_off()
    ax.view_init(elev=18, azim=25)
    return ax


def draw_frame(ax: Any, pose: Pose, name: str, size: float = 1.0, alpha: float = 1.0) -> None:
    """Three coloured arrows and a name at the origin."""
    for axis, (letter, colour) in enumerate(zip("xyz", COLOURS)):
        tip = size * pose.R[:, axis]
        ax.quiver(*pose.p, *tip, color=colour, alpha=alpha, linewidth=1.5, arrow_length_ratio=0.12)
        ax.text(*(pose.p + 1.12 * tip), letter, color=colour, alpha=alpha, fontsize=8)
    ax.text(*(pose.p - [0.0, 0.1, 0.3]), name, fontsize=10, weight="bold", alpha=alpha)


def arrow(ax: Any, start: Any, end: Any, label: str, style: str = "-", at: float = 0.55) -> None:
    """Vector with a label beside it, by default in its middle."""
    start, end = np.asarray(start), np.asarray(end)
    ax.quiver(*start, *(end - start), color="black", linewidth=1, linestyle=style,
              arrow_length_ratio=0.06)  # fmt: skip
    ax.text(*((1 - at) * start + at * end + [0, 0.05, 0.08]), label, fontsize=9)


def limits(ax: Any, low: tuple[float, ...], high: tuple[float, ...], zoom: float = 1.3) -> None:
    """Box to show, with equal scales on all axes."""
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(np.subtract(high, low), zoom=zoom)


def pose_and_transform() -> None:
    """One displacement read two ways: as a pose (R, p), as a coordinate transform (E, r)."""
    X_AB = Pose(angles.to_matrix([0.5, 0.4, 0.3], "zxz"), [-0.3, 1.9, 0.3])
    P_B = np.array([0.3, 0.5, 1.3])
    P_A = X_AB.act(P_B)
    figure = plt.figure(figsize=(5.2, 3.6))
    ax = axes_3d(figure, 1, 1, r"pose $X_{AB}$: $P_A = R\,P_B + p$      book: $E=R^T,\ r=p$")
    draw_frame(ax, Pose.identity(), "A")
    draw_frame(ax, X_AB, "B", 0.8)
    arrow(ax, np.zeros(3), X_AB.p, r"$p = r$")
    arrow(ax, np.zeros(3), P_A, r"$P_A$", "--")
    arrow(ax, X_AB.p, P_A, r"$P_B$", "--")
    ax.scatter(*P_A, color="black", s=12)
    limits(ax, (-0.6, -0.3, -0.2), (1.0, 3.0, 1.9))
    save(figure, "pose")


def intrinsic_sequence() -> None:
    """Draw the three rotations of zxz, each about an axis of the frame made by the one before."""
    a, b, c = 0.7, 0.8, 0.6
    steps = [
        ("Rz(a)", Rz(a)),
        ("Rz(a) Rx(b)", Rz(a) @ Rx(b)),
        ("Rz(a) Rx(b) Rz(c)", angles.to_matrix([a, b, c], "zxz")),
    ]
    figure = plt.figure(figsize=(7.2, 2.6))
    before = np.eye(3)
    for n, (title, R) in enumerate(steps, start=1):
        ax = axes_3d(figure, n, 3, title)
        draw_frame(ax, Pose(before), "", alpha=0.3)
        draw_frame(ax, Pose(R), "")
        limits(ax, (-0.5, -0.7, -0.4), (0.9, 0.9, 1.0), zoom=1.15)
        before = R
    save(figure, "sequence")


def frame_chain() -> None:
    """Frames c in b in a: χ_ca = χ_cb >> χ_ba."""
    x_ba = Frame([-0.3, 1.5, -0.2], Rz(0.6), origin="b", base="a")
    x_cb = Frame([0.0, 1.0, 1.0], Rx(0.6), origin="c", base="b")
    x_ca = x_cb >> x_ba
    figure = plt.figure(figsize=(5.2, 3.4))
    ax = axes_3d(figure, 1, 1, r"$\chi_{ca} = \chi_{cb} \gg \chi_{ba} = \chi_{ba} * \chi_{cb}$")
    draw_frame(ax, Pose.identity(), "a", 0.7)
    draw_frame(ax, Pose(x_ba.matrix, x_ba.position), "b", 0.7)
    draw_frame(ax, Pose(x_ca.matrix, x_ca.position), "c", 0.7)
    arrow(ax, np.zeros(3), x_ba.position, r"$r_{b,(a)}$")
    arrow(ax, x_ba.position, x_ca.position, r"$r_{c,(b)}$")
    arrow(ax, np.zeros(3), x_ca.position, r"$r_{c,(a)}$", "--", at=0.3)
    limits(ax, (-1.0, -0.3, -0.4), (0.7, 3.7, 1.5))
    save(figure, "chain")


def save(figure: Any, name: str) -> None:
    """Write a small PNG without metadata that changes from run to run."""
    figure.subplots_adjust(left=0, right=1, bottom=0, top=0.9, wspace=0)
    figure.savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    pose_and_transform()
    intrinsic_sequence()
    frame_chain()
