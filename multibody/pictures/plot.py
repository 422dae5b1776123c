"""Pictures of motions: coordinates, energy, paths of points, stick figures.

Each function draws on the Axes given, or on those of a new figure, and returns them; nothing is
shown. matplotlib is imported when a picture is asked for.

Examples
--------
>>> from multibody import mechanisms, plot, simulate
>>> model = mechanisms.double_pendulum()
>>> solution = simulate(model, [1.5, 0.3], T=5.0)
>>> ax = plot.energy(model, solution)
>>> ax.get_xlabel()
't (s)'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.analysis.plot.style import (
    COLOURS,
    INK,
    QUIET,
    legend_beside,
    new_axes,
    new_figure,
    plain,
    tidy,
)

from ..checks import Array, ArrayLike, one_of, real_scalar
from ..runs.observing.states import states_at, states_of
from ..runs.simulate import energies, positions
from ..runs.units import kinds_of_positions, kinds_of_velocities
from .skeleton import Skeleton, axes_of_view, skeleton, view_of
from .surfaces import with_forces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model import Model

__all__ = ["coordinates", "energy", "energy_drift", "path", "stick_figure", "still"]

MOST_IN_LEGEND = 8  # more names than this would hide the curves
LOOP = "#F0E442"  # joints that close loops: Okabe and Ito's yellow, which no body has

#: Colour of contact forces.
FORCE = "#c8102e"
SMALLEST_DRIFT = 1e-17  # drawn in place of zero, which has no logarithm


def coordinates(
    model: Model,
    solution: Any,
    which: Sequence[int | str] | None = None,
    *,
    velocities: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw position variables (or velocity variables) over time.

    The axis is labelled with the units of what is drawn, such as "angles (rad), shifts (m)".

    Parameters
    ----------
    model, solution
        A model, and a solution of it.
    which
        Names (``"cart.shift"``), names of bodies (``"cart"``: all variables of its joint) or
        numbers of the variables; all if not given.
    velocities
        Draw velocity variables in place of position variables.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.cart_pole()
    >>> ax = coordinates(model, simulate(model, [0, 0.5], T=5.0), ["pole"])
    >>> [line.get_label() for line in ax.lines], ax.get_ylabel()
    (['pole.angle'], 'angles (rad)')
    """
    names = model.v_names if velocities else model.q_names
    chosen = _chosen(model, names, which, velocities)
    times, states = states_of(model, solution)
    rows = states[model.nq :] if velocities else states[: model.nq]
    ax = new_axes(ax)
    for k, i in enumerate(chosen):
        ax.plot(times, rows[i], label=plain(names[i]), lw=1.6, ls=_dashes(k), **_colour(k))
    kinds = kinds_of_velocities(model) if velocities else kinds_of_positions(model)
    kinds = kinds + ["own states"] * model.n_states
    drawn = dict.fromkeys(kinds[i] for i in chosen)  # a set that keeps its order
    _label(ax, model.name, ", ".join(drawn))
    _legend(ax, len(chosen))
    return ax


def _chosen(
    model: Model, names: Sequence[str], which: Sequence[int | str] | None, velocities: bool
) -> list[int]:
    if which is None:
        return list(range(len(names)))
    found: list[int] = []
    places = model.v_index if velocities else model.q_index
    bodies = {body.name: place for body, place in zip(model.bodies, places)}
    for item in [which] if isinstance(which, str | int) else which:
        if isinstance(item, str) and item in bodies:
            found += range(bodies[item].start, bodies[item].stop)
        elif isinstance(item, str) and item in names:
            found.append(names.index(item))
        elif isinstance(item, int | np.integer) and 0 <= item < len(names):
            found.append(int(item))
        else:
            raise ValueError(
                f"which: expected names of variables or bodies, or numbers below {len(names)}, "
                f"received {item!r}; the variables are {', '.join(names)}"
            )
    return found


def energy(model: Model, solution: Any, *, ax: Axes | None = None) -> Axes:
    """Draw kinetic, potential and total energy over time.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> len(energy(model, simulate(model, [1.0], T=3.0)).lines)
    3
    """
    found = energies(model, solution)
    ax = new_axes(ax)
    ax.plot(solution.t, found.kinetic, label="kinetic", lw=1.4, **_colour(1))
    ax.plot(solution.t, found.potential, label="potential", lw=1.4, **_colour(0))
    ax.plot(solution.t, found.total, label="total", color=INK, lw=2.0)
    _label(ax, model.name, "energy (J)")
    _legend(ax, 3)
    return ax


def energy_drift(model: Model, solutions: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how far the total energy is from its initial value, relative to the energy at play.

    The change is divided by the largest kinetic energy of the run, because the zero of potential
    energy is arbitrary.

    Parameters
    ----------
    model
        The mechanism.
    solutions
        A solution, or several to be compared, ``{label: solution}``.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.pendulum()
    >>> runs = {m: simulate(model, [1.0], T=3.0, method=m, step=0.01) for m in ("RK4", "Gauss2")}
    >>> energy_drift(model, runs).get_yscale()
    'log'
    """
    runs = solutions if isinstance(solutions, Mapping) else {solutions.method: solutions}
    ax = new_axes(ax)
    for k, (label, solution) in enumerate(runs.items()):
        found = energies(model, solution)
        scale = float(np.max(found.kinetic)) or 1.0
        drift = np.abs(found.total - found.total[0]) / scale
        ax.plot(solution.t[1:], np.maximum(drift[1:], SMALLEST_DRIFT), label=plain(label), lw=1.4,
                **_colour(k))  # fmt: skip
    ax.set_yscale("log")
    _label(ax, model.name, "change of energy / largest kinetic energy")
    _legend(ax, len(runs))
    return ax


def path(
    model: Model,
    solution: Any,
    body: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    view: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw the path of a body-fixed point in base coordinates.

    Parameters
    ----------
    model, solution
        A model, and a solution of it.
    body, point
        Name or number of the body, and a point in its coordinates.
    view
        "xz", "xy", "yz" or "3d"; "auto" takes the plane in which the mechanism moves, if there is
        one.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.double_pendulum()
    >>> path(model, simulate(model, [1.5, 0.3], T=5.0), "lower", (0, 0, -1)).get_ylabel()
    'z (m)'
    """
    view = view_of(model, view)
    ax = _space(ax, view)
    track = positions(model, solution, body, point)
    shown = [track[k] for k in axes_of_view(view)]
    number = model.number(body)
    name = model.bodies[number - 1].name if number else "base"
    ax.plot(
        *shown, lw=1.4, label=plain(name), **_colour(max(number - 1, 0))
    )  # as the body is drawn
    ax.plot(*[x[:1] for x in shown], "o", color=INK, ms=5, label="start")
    _equal(ax, np.array(shown), view)
    ax.set_title(plain(f"{model.name}: path of a point of {name}"), loc="left", fontsize="medium")
    _legend(ax, 2)
    return ax


def stick_figure(
    model: Model,
    q: ArrayLike | None = None,
    *,
    t: float = 0.0,
    view: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw a mechanism as lines and dots.

    Dots are joints, diamonds joints that close loops (one on each side, together where the loop is
    closed), lines are bodies, circles are centres of mass; dashed lines show what sliding joints
    have shifted, dotted lines are springs. A body ends where the uniform rod with its mass,
    centre and spread of mass ends; bodies that turn in all directions get a cross of such rods.

    Parameters
    ----------
    model
        The mechanism.
    q, t
        Position (neutral if not given) and time (for joints that time moves).
    view
        As in :func:`path`.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> stick_figure(mechanisms.cart_pole(), [0.5, 0.3]).get_xlabel()
    'x (m)'
    """
    from types import SimpleNamespace

    q = model.neutral() if q is None else model.check("q", q)
    state = SimpleNamespace(t=np.array([t]), y=np.concatenate([q, np.zeros(model.nv)])[:, None])
    bones = skeleton(model)
    places = bones.places(model, state)[0]
    view = view_of(model, view)
    ax = _space(ax, view)
    artists = Artists(ax, model, bones, view)
    artists.move(places)
    _equal(ax, places[:, list(axes_of_view(view))].T, view)
    ax.set_title(plain(model.name), loc="left", fontsize="medium")
    return ax


def still(
    model: Model,
    solution: Any,
    t: float | None = None,
    *,
    view: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw a mechanism at one time of a run, with the surfaces that touch and the forces there.

    It is the :func:`stick_figure` of that time, and a picture of an animation: contact forces are
    arrows from where they act on the second body of a contact, the longest for the largest force,
    which the title names. Those of one time, so the scale is that of the picture.

    Parameters
    ----------
    model, solution
        A model, and a solution of it.
    t
        Time, the last one if not given. Between the times of the solution its dense output is
        used, else states are interpolated linearly.
    view
        As in :func:`path`.

    Examples
    --------
    >>> from multibody import mechanisms, simulate
    >>> model = mechanisms.rocking_block()
    >>> start = mechanisms.entry("rocking_block").start(model)
    >>> still(model, simulate(model, *start, T=0.2), 0.1).get_title(loc="left")
    'rocking block, t = 0.1 s; largest contact force 29.1 N'
    """
    times = states_of(model, solution)[0]
    if not len(times):
        raise ValueError("solution: expected at least one time to show, received none")
    at = float(times[-1]) if t is None else real_scalar(t, "t")
    if not times.min() <= at <= times.max():
        raise ValueError(
            f"t: expected a time of the run, {times.min():g} to {times.max():g}, received {t!r}"
        )
    shown = states_at(model, solution, np.array([at]))
    bones = skeleton(model)
    bones, places, largest = with_forces(model, solution, shown, bones, bones.places(model, shown))
    view = view_of(model, view)
    ax = _space(ax, view)
    Artists(ax, model, bones, view).move(places[0])
    _equal(ax, places[0][:, list(axes_of_view(view))].T, view)
    said = f"; largest contact force {largest:.3g} N" if largest > 0.0 else ""
    ax.set_title(plain(f"{model.name}, t = {at:g} s{said}"), loc="left", fontsize="medium")
    return ax


class Artists:
    """Lines and dots of a stick figure on some Axes; :meth:`move` puts them in place."""

    def __init__(self, ax: Axes, model: Model, bones: Skeleton, view: str) -> None:
        self.bones, self.axes = bones, list(axes_of_view(view))
        empty: list[list[float]] = [[]] * len(self.axes)

        def line(**style: Any) -> Any:
            return ax.plot(*empty, **style)[0]

        base = dict(color=QUIET, lw=2.5)
        self.links = [
            line(solid_capstyle="round", **(dict(lw=4.0, **_colour(body - 1)) if body else base))
            for body in bones.bodies
        ]
        self.slides = [line(color=QUIET, lw=1.2, ls="--") for _ in bones.slides]
        self.surfaces = [line(color=QUIET, lw=1.6) for _ in bones.surfaces]
        foot = dict(marker="o", markevery=[0], ms=3.0)
        self.forces = [line(color=FORCE, lw=2.0, **foot) for _ in bones.forces]
        self.springs = [line(color=INK, lw=1.2, ls=":") for _ in bones.springs]
        heaviest = max([m for _, m in bones.centres], default=1.0)
        self.centres = [
            line(marker="o", ms=4.0 + 5.0 * (mass / heaviest) ** (1 / 3), mfc="white", mec=INK,
                 mew=1.2, ls="none")
            for _, mass in bones.centres
        ]  # fmt: skip
        self.joints = line(marker="o", ms=5.0, color=INK, ls="none")
        self.sides = [line(color=QUIET, lw=1.2, ls="--") for _ in bones.loops]
        self.loops = line(marker="D", ms=6.0, mfc=LOOP, mec=INK, mew=1.0, ls="none")

    def move(self, places: Array) -> None:
        """Put everything where the points are now; `places` has a row for each point."""
        shown = places[:, self.axes]
        groups = (
            (self.links, self.bones.links),
            (self.slides, self.bones.slides),
            (self.surfaces, self.bones.surfaces),
            (self.forces, self.bones.forces),
            (self.springs, self.bones.springs),
            (self.sides, self.bones.loops),
        )
        for lines, pairs in groups:
            for line, pair in zip(lines, pairs):
                _set(line, shown[list(pair)])
        for line, (point, _) in zip(self.centres, self.bones.centres):
            _set(line, shown[[point]])
        _set(self.joints, shown[list(self.bones.joints)])
        _set(self.loops, shown[[point for pair in self.bones.loops for point in pair]])


def _set(line: Any, points: Array) -> None:
    if points.shape[1] == 3:
        line.set_data_3d(*points.T)
    else:
        line.set_data(*points.T)


# ---------------------------------------------------------------------- axes


def _colour(k: int) -> dict[str, Any]:
    return {"color": COLOURS[k % (len(COLOURS) - 1)]}  # the last one is black, for joints


def _dashes(k: int) -> str:
    """Curves that share a colour differ by their dashes."""
    return ("-", "--", ":", "-.")[k // (len(COLOURS) - 1) % 4]


def _label(ax: Axes, title: str, quantity: str) -> None:
    ax.set(xlabel="t (s)", ylabel=quantity)
    ax.set_title(plain(title), loc="left", fontsize="medium")
    tidy(ax)


def _legend(ax: Axes, count: int) -> None:
    """Beside the picture: curves that oscillate leave no corner free."""
    if 1 < count <= MOST_IN_LEGEND:
        legend_beside(ax)


def _space(ax: Axes | None, view: str) -> Any:
    """Axes for places, with the names of the coordinates."""
    one_of(view, "view", ("xz", "xy", "yz", "3d"))
    if ax is None:
        ax = new_figure().add_subplot(projection="3d" if view == "3d" else None)
    elif (view == "3d") != (ax.name == "3d"):
        wanted = "projection='3d'" if view == "3d" else "no projection"
        raise ValueError(f"ax: expected Axes with {wanted} for the view {view!r}")
    for setter, k in zip(("set_xlabel", "set_ylabel", "set_zlabel"), axes_of_view(view)):
        getattr(ax, setter)(f"{'xyz'[k]} (m)")
    if view == "3d":
        ax.locator_params(nbins=4)  # labels of neighbouring axes are close to each other
    else:
        tidy(ax)
    return ax


def _equal(ax: Any, shown: Array, view: str, margin: float = 0.08) -> None:
    """Same scale on all axes, everything inside; `shown` has a row for each axis."""
    flat = shown.reshape(len(shown), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    size = float(np.max(high - low)) or 1.0
    # A direction in which little happens still gets a third of the picture.
    half = np.maximum((high - low) / 2, size / 6) + margin * size
    middle = (low + high) / 2
    for name, m, h in zip("xyz", middle, half):
        getattr(ax, f"set_{name}lim")(m - h, m + h)
    if view == "3d":
        ax.set_box_aspect(half)
    else:
        ax.set_aspect("equal")
