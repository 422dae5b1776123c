"""Pictures of solutions: components over time, phase portraits, slope fields, errors.

Figures are made without pyplot; pass ``ax`` to draw into axes of your own. Legends stand beside the
axes, where they cover nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ... import problems
from ...problem import IVP
from ...runs.solution import Solution
from ...solve import solve
from ..study.reference import find_reference
from .style import COLOURS, INK, QUIET, labelled_axes, legend_beside, line_style, plain, tex

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["phase_portrait", "plot_error", "slope_field", "solution"]

FINE = 600  # points of a curve, where a solution is known between its steps
FAR = 1.5  # ranges of a component that its slope may cross within a step
ARROWS = 23  # to each side of a field
MOST_LINES = 10  # components that are drawn if nobody chooses
UNEQUAL = np.log(100.0)  # ratio of the sizes of components that one scale cannot show
STARTS = 5  # of a phase portrait, to each side

Array = NDArray[np.float64]


def solution(
    run: Solution,
    components: Sequence[int | str] | None = None,
    ax: Axes | None = None,
    *,
    steps: bool = False,
) -> Axes:
    """Draw the components of a solution over time; events are marked.

    Components of very different sizes are divided by them, and the legend says so, unless they were
    chosen: one of them alone has its own scale.

    Parameters
    ----------
    run
        What ``solve`` returned; ``sol.plot()`` is the same.
    components
        Numbers or names of those to draw; the first ten by default.
    ax
        Axes to draw into; by default those of a new figure, here and in all functions below.
    steps
        Mark every step, and draw their lengths below the curves on an axis of their own.

    Examples
    --------
    >>> from integrators import problems
    >>> ax = solution(solve(problems.get("pendulum"), rtol=1e-6))
    >>> ax.get_xlabel(), len(ax.lines)
    ('t', 2)
    """
    if not isinstance(run, Solution):
        raise TypeError(f"expected what solve returned, got {type(run).__name__}")
    names = run.names()
    chosen = range(min(len(names), MOST_LINES)) if components is None else components
    indices = [_index(c, names) for c in chosen]
    ax = labelled_axes(ax, plain(_title(run)), "t", "y")
    t, y = _curve(run)
    sizes = np.array([np.max(np.abs(y[i]), initial=0.0) for i in indices])
    sizes[sizes == 0.0] = 1.0
    if components is not None or not np.isfinite(sizes).all() or np.ptp(np.log(sizes)) < UNEQUAL:
        sizes[:] = 1.0
    for k, (i, size) in enumerate(zip(indices, sizes)):
        style = line_style(k)
        label = plain(names[i]) + (f" / {tex(size)}" if size != 1.0 else "")
        ax.plot(t, np.real(y[i]) / size, label=label, **style)
        if steps:
            ax.plot(run.t, np.real(run.y[i]) / size, ".", ms=4, color=style["color"])
        for states in run.y_events or ():
            if np.size(states):
                at = run.t_events[_event_of(run, states)]
                points = np.asarray(states).reshape(len(at), -1)
                ax.plot(
                    at, np.real(points[:, i]) / size, "o", mfc="white", mec=style["color"], ms=5
                )
    if len(indices) > 1 or components is not None:
        legend_beside(ax)
    else:
        ax.set_ylabel(plain(names[indices[0]]))
    if steps and run.t.size > 1:
        _draw_steps(ax, run)
    return ax


def _index(component: int | str, names: Sequence[str]) -> int:
    if isinstance(component, str):
        if component not in names:
            raise ValueError(f"there is no component {component!r} among {', '.join(names)}")
        return list(names).index(component)
    if not -len(names) <= component < len(names):
        raise ValueError(f"there is no component {component}; the state has {len(names)}")
    return int(component) % len(names)


def _event_of(run: Solution, states: Any) -> int:
    return next(k for k, other in enumerate(run.y_events) if other is states)


def _title(run: Solution) -> str:
    name = getattr(run.problem, "name", "") if run.problem is not None else ""
    return ", ".join(part for part in (name, run.method) if part)


def _curve(run: Solution) -> tuple[Array, NDArray[Any]]:
    """Points of the curve: smooth between steps, by dense output or else by the slopes there."""
    between = run.sol if run.t.size > 1 and run.sol is not None else _by_slopes(run)
    if between is None:
        return run.t, run.y
    t = np.union1d(np.linspace(run.t[0], run.t[-1], FINE), run.t)
    t = t if run.t[-1] > run.t[0] else t[::-1]
    return t, between(t)


def _by_slopes(run: Solution) -> Any:
    """Cubics through the steps with the slopes of f; None where these are not to be trusted.

    A slope that leads far out of the range of the solution within its step is that of a fast
    component, and jumps have two slopes: there straight lines are the better picture.
    """
    from scipy.interpolate import CubicHermiteSpline

    ivp = run.problem
    ways = np.diff(run.t)
    if not (isinstance(ivp, IVP) and 1 < run.t.size <= FINE and ivp.mass is None):
        return None
    if not (np.all(ways > 0) or np.all(ways < 0)) or any(e.reset is not None for e in ivp.events):
        return None
    f = ivp.bind(ivp.f)
    try:
        slopes = np.array([np.ravel(f(t, y)) for t, y in zip(run.t, run.y.T)]).T
    except Exception:  # whatever f cannot do at a state that was reached
        return None
    if slopes.shape != run.y.shape or not np.isfinite(slopes).all():
        return None
    far = np.maximum(np.abs(slopes[:, 1:]), np.abs(slopes[:, :-1])) * np.abs(ways)
    if np.any(far > FAR * np.ptp(run.y.real, axis=1, keepdims=True)):
        return None
    order = slice(None) if ways[0] > 0 else slice(None, None, -1)
    return CubicHermiteSpline(run.t[order], run.y[:, order], slopes[:, order], axis=1)


def _draw_steps(ax: Axes, run: Solution) -> None:
    """The lengths of the steps, on an axis at the right, in grey behind the curves."""
    other = ax.twinx()
    other.step(run.t[:-1], np.abs(np.diff(run.t)), where="post", color=QUIET, lw=0.9, alpha=0.7)
    other.set_yscale("log")
    other.set_ylabel("length of the step", color=QUIET)
    other.spines["top"].set_visible(False)
    low, high = other.get_ylim()
    other.set_ylim(low, high * (high / low) ** 2)  # in the lower third, and ticks only there
    decades = np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    other.set_yticks(10.0**decades)
    other.minorticks_off()
    legend = ax.get_legend()
    if legend is not None:
        legend.set_bbox_to_anchor((1.16, 1.0), transform=ax.transAxes)


def phase_portrait(
    problem: IVP | Solution | Sequence[Solution] | Any,
    components: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
    *,
    x: tuple[float, float] | None = None,
    y: tuple[float, float] | None = None,
    t: float = 0.0,
) -> Axes:
    """Draw two components against each other, over the directions of the field.

    Parameters
    ----------
    problem
        A problem with two components and no t in f: orbits start all over the window. Or one or
        several solutions: their orbits, over the field if there are two components.
    components
        Which two.
    x, y
        The window; by default what the solutions need.
    t
        Time at which the field is drawn.

    Examples
    --------
    >>> from integrators import problems
    >>> ax = phase_portrait(problems.get("pendulum"), x=(-4, 4), y=(-8, 8))
    >>> [float(x) for x in ax.get_xlim()]
    [-4.0, 4.0]
    """
    runs, ivp = _runs(problem)
    i, j = components
    names = runs[0].names() if runs else [f"y{k}" for k in range(ivp.n)]
    for k in (i, j):
        _index(k, names)
    ax = labelled_axes(ax, plain(ivp.name), plain(names[i]), plain(names[j]))
    if x is None or y is None:
        clouds = [np.real(run.y[[i, j]]) for run in runs] or _both_ways(ivp, i, j)
        values = np.concatenate(clouds, axis=1)
        x, y = x or _margins(values[0]), y or _margins(values[1])
    if ivp.n == 2:
        _draw_directions(ax, ivp, t, x, y, (i, j))
    for k, run in enumerate(runs):
        orbit = np.real(_curve(run)[1])
        ax.plot(orbit[i], orbit[j], lw=1.6, **line_style(k))
        ax.plot(orbit[i, 0], orbit[j, 0], "o", color=COLOURS[k % len(COLOURS)], ms=5)
    if not runs:
        _draw_orbits(ax, ivp, x, y, (i, j))
    ax.set(xlim=x, ylim=y)
    return ax


def _both_ways(ivp: IVP, i: int, j: int) -> list[Array]:
    """The solution of a problem, and where it came from if that is as near: whole orbits."""
    t0, t1 = ivp.t_span
    ways = []
    for end in (t1, 2 * t0 - t1):
        with np.errstate(all="ignore"):
            part = ivp.with_(t_span=(t0, end), exact=None, events=())
            ways.append(np.real(solve(part, rtol=1e-6, max_steps=5000).y[[i, j]]))
    ahead, back = ways
    low, high = ahead.min(axis=1, keepdims=True), ahead.max(axis=1, keepdims=True)
    room = 1.1 * (high - low)
    return ways if np.all((back >= low - room) & (back <= high + room)) else [ahead]


def _runs(given: Any) -> tuple[list[Solution], IVP]:
    if isinstance(given, str):
        given = problems.get(given)
    if isinstance(given, Solution):
        given = [given]
    if isinstance(given, IVP):
        if given.n != 2:
            raise ValueError(f"a portrait without solutions needs two components, got {given.n}")
        return [], given
    runs = list(given) if isinstance(given, Iterable) else []
    if not runs or not all(isinstance(run, Solution) for run in runs):
        hint = "; make it one by IVP(f, y0, t_span)" if callable(given) else ""
        raise TypeError(
            f"expected an IVP, or one or several solutions, got {type(given).__name__}{hint}"
        )
    return runs, runs[0].problem


def _margins(values: Array) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room


def _draw_directions(
    ax: Axes, ivp: IVP, t: float, x: Any, y: Any, components: tuple[int, int]
) -> None:
    """Small arrows of equal length: directions, not speeds."""
    f = ivp.bind(ivp.f)
    X, Y = np.meshgrid(np.linspace(x[0], x[1], ARROWS), np.linspace(y[0], y[1], ARROWS))
    U, V = np.zeros_like(X), np.zeros_like(Y)
    width, height = x[1] - x[0], y[1] - y[0]
    for index in np.ndindex(X.shape):
        state = np.zeros(2)
        state[list(components)] = X[index], Y[index]
        with np.errstate(all="ignore"):
            slope = np.asarray(f(t, state), dtype=float)[list(components)]
        length = np.hypot(slope[0] / width, slope[1] / height)
        if np.isfinite(length) and length > 0:
            U[index], V[index] = slope / length
    ax.quiver(X, Y, U, V, angles="xy", scale_units="xy", scale=1.6 * ARROWS, color="#b9b9b9",
              width=0.0022, headwidth=4, pivot="mid", zorder=1)  # fmt: skip


def _draw_orbits(ax: Axes, ivp: IVP, x: Any, y: Any, components: tuple[int, int]) -> None:
    length = abs(ivp.t_span[1] - ivp.t_span[0])
    for start in np.linspace(0.06, 0.94, STARTS):
        for corner in np.linspace(0.06, 0.94, STARTS):
            state = np.zeros(2)
            place = [x[0] + start * (x[1] - x[0]), y[0] + corner * (y[1] - y[0])]
            state[list(components)] = place
            for way in (1.0, -1.0):
                t0 = ivp.t_span[0]
                part = ivp.with_(y0=state, t_span=(t0, t0 + way * length), exact=None, events=())
                with np.errstate(all="ignore"):
                    run = solve(part, rtol=1e-7, max_steps=2000, dense_output=True)
                values = np.real(_curve(run)[1][list(components)])
                inside = np.cumprod(_inside(values, x, y)) > 0
                ax.plot(*np.where(inside, values, np.nan), color=COLOURS[0], lw=0.8, alpha=0.6)


def _inside(values: Array, x: Any, y: Any) -> Any:
    wide = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
    return (
        (values[0] > x[0] - wide[0])
        & (values[0] < x[1] + wide[0])
        & (values[1] > y[0] - wide[1])
        & (values[1] < y[1] + wide[1])
    )


def slope_field(
    problem: IVP | Any,
    ax: Axes | None = None,
    *,
    t: tuple[float, float] | None = None,
    y: tuple[float, float] | None = None,
    solutions: Sequence[float] = (),
) -> Axes:
    """Draw the slopes of a scalar equation in the plane of t and y, and solutions through it.

    Parameters
    ----------
    problem
        An IVP with one component.
    t, y
        The window; by default the interval of the problem, and what its solution needs.
    solutions
        Values at the start through which solutions are drawn; that of the problem by default.

    Examples
    --------
    >>> from integrators import problems
    >>> ax = slope_field(problems.get("logistic"), solutions=[0.1, 0.5, 1.5])
    >>> len(ax.lines)
    3
    """
    if isinstance(problem, str):
        problem = problems.get(problem)
    if not isinstance(problem, IVP) or problem.n != 1:
        raise ValueError("a slope field needs a problem with one component: IVP(f, [y0], (t0, t1))")
    t = problem.t_span if t is None else t
    ax = labelled_axes(ax, plain(problem.name), "t", "y")
    starts = list(solutions) or [float(problem.y0[0])]
    runs = []
    for start in starts:
        with np.errstate(all="ignore"):
            part = problem.with_(y0=[start], t_span=t, exact=None, events=())
            runs.append(solve(part, rtol=1e-6, dense_output=True, max_steps=5000))
    y = _margins(np.concatenate([run.y[0] for run in runs])) if y is None else y
    f = problem.bind(problem.f)
    T, Y = np.meshgrid(np.linspace(t[0], t[1], ARROWS), np.linspace(y[0], y[1], ARROWS))
    with np.errstate(all="ignore"):
        slopes = np.array([np.ravel(f(a, np.array([b])))[0] for a, b in zip(T.ravel(), Y.ravel())])
    width, height = t[1] - t[0], y[1] - y[0]
    length = np.hypot(1 / width, slopes.reshape(T.shape) / height)
    ax.quiver(T, Y, 1 / length, slopes.reshape(T.shape) / length, angles="xy", scale_units="xy",
              scale=1.4 * ARROWS, color="#a8a8a8", width=0.0024, headwidth=0, headlength=0,
              headaxislength=0, pivot="mid", zorder=1)  # fmt: skip
    for k, run in enumerate(runs):
        times, values = _curve(run)
        ax.plot(times, values[0], lw=1.8, **line_style(k))
    ax.set(xlim=sorted(t), ylim=y)
    return ax


def plot_error(
    runs: Solution | Sequence[Solution], ax: Axes | None = None, *, exact: Any = None
) -> Axes:
    """Draw the error of solutions over time, in the largest component.

    Parameters
    ----------
    runs
        One or several solutions of one problem.
    exact
        ``exact(t)``; by default the exact solution of the problem, or a reference computed to about
        twelve digits.

    Examples
    --------
    >>> from integrators import problems
    >>> kepler = problems.get("kepler")
    >>> ax = plot_error([solve(kepler, method=m, step=0.05) for m in ("RK4", "Gauss2")])
    >>> ax.get_yscale()
    'log'
    """
    listed = [runs] if isinstance(runs, Solution) else list(runs)
    if not listed or not all(isinstance(run, Solution) for run in listed):
        raise TypeError("expected what solve returned, one or several")
    problem: Any = listed[0].problem
    ax = labelled_axes(ax, plain(getattr(problem, "name", "")), "t", "largest error")
    reference = None if exact is not None else find_reference(problem)
    for k, run in enumerate(listed):
        if exact is not None:
            truth = np.array([np.atleast_1d(exact(s)) for s in run.t]).T
        else:
            assert reference is not None
            assert reference.along is not None
            truth = reference.along(run.t)
        error = np.max(np.abs(run.y - truth), axis=0)
        shown = np.where(error > 0, error, np.nan)
        label = plain(run.method or f"run {k}")
        ax.plot(run.t, shown, label=label, **line_style(k))
    ax.set_yscale("log")
    legend_beside(ax)
    ax.yaxis.label.set_color(INK)
    return ax
