"""Animations: a web page in three dimensions of one file that needs no network, GIF, MP4.

>>> from multibody import animate, mechanisms, simulate
>>> model = mechanisms.double_pendulum()
>>> solution = simulate(model, [2.0, 0.5], T=5.0)
>>> path = animate.save(model, solution, "double.html")  # doctest: +SKIP
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.analysis.plot.style import QUIET
from integrators.files import replacing, write_text

from ..checks import Array, ArrayLike, real_array, real_scalar
from ..runs.observing.states import states_at, states_of
from .page_in_space import page_of
from .scene import named_runs, scene
from .skeleton import axes_of_view, skeleton, view_of
from .surfaces import with_forces

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["frames", "html", "save"]

MOST_FRAMES = 20_000


def frames(model: Model, solution: Any, fps: float = 30.0, speed: float = 1.0) -> Any:
    """States of a solution at even times, one for each frame.

    Parameters
    ----------
    model, solution
        A model, and a solution of it. Between the times of the solution its dense output is
        used (``dense_output=True``), else states are interpolated linearly: simulate with enough
        frames a second.
    fps
        Frames in a second of the animation.
    speed
        Seconds of the motion in a second of the animation; 0.5 is slow motion.

    Returns
    -------
    object
        With the fields ``t`` and ``y`` of a solution.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> frames(model, simulate(model, [1.0], T=2.0), fps=10).y.shape
    (2, 21)
    """
    times = states_of(model, solution)[0]
    for name, value in (("fps", fps), ("speed", speed)):
        if real_scalar(value, name) <= 0.0:
            raise ValueError(f"{name}: expected a positive number, received {value!r}")
    if len(times) == 0:
        raise ValueError(
            "solution: expected at least one time to show, received none; simulate without "
            "t_eval=[], or look at solution.message"
        )
    duration = abs(times[-1] - times[0])
    count = round(duration * fps / speed) + 1
    if count > MOST_FRAMES:
        raise ValueError(
            f"expected at most {MOST_FRAMES} frames, received {count} ({duration:g} s at {fps:g} "
            f"frames a second and speed {speed:g}); lower fps or raise speed"
        )
    t = np.linspace(times[0], times[-1], max(count, 1))
    return states_at(model, solution, t)


def save(
    model: Model,
    solution: Any,
    path: str | Path,
    *,
    fps: float = 30.0,
    speed: float = 1.0,
    view: str = "auto",
    trace: tuple[str | int, ArrayLike] | None = None,
    dpi: float = 90.0,
    reactions: bool = False,
) -> Path:
    """Write an animation; the ending of `path` says which kind.

    Parameters
    ----------
    model, solution
        A model, and a solution of it; for ``.html`` also several, in a list or by name, such as
        ``{"RK4": first, "RADAU5": second}``, which are shown as ghosts or side by side.
    path
        ``.html``: a page in three dimensions, in one file; see :func:`html`. ``.gif``: sticks.
        ``.mp4``: needs the program ffmpeg, on the PATH or from ``pip install imageio-ffmpeg``.
    fps, speed
        As in :func:`frames`.
    view
        "xz", "xy", "yz" or "3d"; "auto" takes the plane in which the mechanism moves, if there is
        one.
    trace
        (body, point): leave a trail where this point, in body coordinates, has been.
    dpi
        Resolution of GIF and MP4; pictures are 6.4 by 4.8 inches.
    reactions
        Whether the forces in all joints can be shown in a page, too; those of contacts always can.

    Returns
    -------
    Path
        Where the animation was written.

    Raises
    ------
    RuntimeError
        For ``.mp4`` if there is no ffmpeg; the message says how to get it.

    Examples
    --------
    >>> import tempfile
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> solution = simulate(model, [1.0], T=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, solution, Path(folder) / "pendulum.html").stat().st_size > 1000
    True
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind == ".html":
        page = html(
            model, solution, fps=fps, speed=speed, view=view, trace=trace, reactions=reactions
        )
        write_text(target, page)
        return target
    if kind not in (".gif", ".mp4"):
        raise ValueError(f"path: expected a name that ends in .html, .gif or .mp4, received {path}")
    if len(runs := named_runs(solution)) > 1 or reactions:
        raise ValueError(
            f"path: several runs and reactions are shown in pages only, received {path}; write "
            ".html"
        )
    (solution,) = runs.values()
    from matplotlib import rc_context

    program: dict[Any, Any] = {"animation.ffmpeg_path": _ffmpeg(target)} if kind == ".mp4" else {}
    figure, draw, count = _film(model, solution, fps, speed, view, trace)
    with rc_context(program):
        writer = _writer(kind, fps)
        with replacing(target) as file, writer.saving(figure, str(file), dpi):
            for k in range(count):
                draw(k)
                writer.grab_frame()
    return target


def _writer(kind: str, fps: float) -> Any:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if kind == ".gif":
        return PillowWriter(fps=fps)  # type: ignore[arg-type]
    # The index comes first in the file, so that a browser plays it while it loads.
    return FFMpegWriter(fps=fps, extra_args=["-movflags", "+faststart"])  # type: ignore[arg-type]


def _ffmpeg(target: Path) -> str:
    """Program that matplotlib is set to use ("ffmpeg" on the PATH), else that of imageio-ffmpeg."""
    from matplotlib import rcParams

    if (found := shutil.which(rcParams["animation.ffmpeg_path"])) is not None:
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError):  # not installed, or without a program for this machine
        raise RuntimeError(
            f"cannot write {target}: MP4 needs the program ffmpeg, which is neither on the PATH "
            "nor in the package imageio-ffmpeg; run `pip install imageio-ffmpeg`, or write .gif or "
            ".html"
        ) from None


def _scene(
    model: Model,
    solution: Any,
    fps: float,
    speed: float,
    view: str,
    trace: tuple[str | int, ArrayLike] | None,
) -> tuple[Any, Any, Array, Array | None, str]:
    """Skeleton, frames, places of its points (m, n, 3), trail (m, 3), and view."""
    bones, shown = skeleton(model), frames(model, solution, fps, speed)
    trail = None
    if trace is not None:
        from ..runs.simulate import positions

        body, point = trace
        trail = positions(model, shown, body, real_array(point, "trace", (3,))).T
    places = bones.places(model, shown)
    bones, places, _ = with_forces(model, solution, shown, bones, places)
    return bones, shown, places, trail, view_of(model, view)


def _film(
    model: Model, solution: Any, fps: float, speed: float, view: str, trace: Any
) -> tuple[Any, Any, int]:
    """Figure, function that draws frame k, and number of frames."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from . import plot

    bones, shown, places, trail, view = _scene(model, solution, fps, speed, view, trace)
    figure = Figure(figsize=(6.4, 4.8), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    ax = plot._space(figure.add_subplot(projection="3d" if view == "3d" else None), view)
    axes = list(axes_of_view(view))
    everything = places if trail is None else np.concatenate([places, trail[:, None]], axis=1)
    plot._equal(ax, np.moveaxis(everything[:, :, axes], 2, 0), view)
    line = ax.plot(*[[]] * len(axes), color=QUIET, lw=1.0)[0]
    artists = plot.Artists(ax, model, bones, view)
    title = ax.set_title("", loc="left", fontsize="medium")

    def draw(k: int) -> None:
        artists.move(places[k])
        if trail is not None:
            plot._set(line, trail[: k + 1, axes])
        title.set_text(f"{model.name}, t = {shown.t[k]:.2f} s")

    return figure, draw, len(shown.t)


def html(
    model: Model,
    solution: Any,
    *,
    fps: float = 30.0,
    speed: float = 1.0,
    view: str = "auto",
    trace: tuple[str | int, ArrayLike] | None = None,
    reactions: bool = False,
) -> str:
    """Return the text of a web page that shows the animation; parameters as in :func:`save`.

    Everything is in the page: numbers, drawing, controls. It loads nothing from anywhere. Bodies
    are solids with light and shadow (`ModelBuilder.add_solid`, files of robots, or made up from
    inertias and contacts); the mouse turns, shifts (shift or the right button) and zooms, boxes
    above the picture choose a view, a body to follow, frames and forces.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> html(model, simulate(model, [1.0], T=1.0))[:15]
    '<!DOCTYPE html>'
    """
    runs = {
        name: (run, frames(model, run, fps, speed)) for name, run in named_runs(solution).items()
    }
    return page_of(scene(model, runs, fps=float(fps), view=view, trace=trace, reactions=reactions))
