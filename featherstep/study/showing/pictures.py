"""Pictures of a study: marginals, scatter with failures, Sobol's indices, bands, the worst runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from integrators.analysis.plot.style import COLOURS, INK, LEGEND, QUIET, new_figure, tidy
from integrators.errors import suggest

from ..keeping.part import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..study import Study

__all__ = ["bands", "marginals", "scatter", "sobol", "study_figure", "worst"]

Array = NDArray[np.float64]

MOST_PANELS = 6  # parameters or results that one figure shows
MOST_POINTS = 5_000  # points of a scatter plot
MOST_RUNS = 2_000  # trajectories that bands are computed from
BANDS = ((5.0, 95.0), (25.0, 75.0))  # percentiles
FAILED = COLOURS[1]
ABOVE: dict[str, Any] = {
    **LEGEND, "loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "fontsize": "small",
}  # fmt: skip


def study_figure(study: Study, kind: str = "overview", **options: Any) -> Figure:
    """Draw a study.

    Parameters
    ----------
    study
        A study that has been run, all of it or in part.
    kind
        "overview" (scatter and marginals), "marginals", "scatter", "sobol", "bands" (of
        trajectories) or "worst" (runs with the largest values of a column).
    options
        Of :func:`marginals`, :func:`scatter`, :func:`sobol`, :func:`bands` or :func:`worst`.
    """
    kinds: dict[str, Callable[..., Figure]] = {
        "overview": scatter,
        "marginals": marginals,
        "scatter": scatter,
        "sobol": sobol,
        "bands": bands,
        "worst": worst,
    }
    if kind not in kinds:
        raise ValueError(
            f"kind: expected one of {', '.join(kinds)}, received {kind!r}{suggest(kind, kinds)}"
        )
    return kinds[kind](study, **options)


def marginals(study: Study, names: Sequence[str] | None = None) -> Figure:
    """Histograms of what was recorded, with the median and the 5th and 95th percentile.

    Parameters
    ----------
    study
        The study.
    names
        Columns; by default the recorded values, or the parameters if nothing was recorded.
    """
    columns, good = _columns(study)
    shown = _chosen(study, names, _recorded(study) or list(study.design.names))
    figure = new_figure((3.4 * min(len(shown), 3), 2.8 * -(-len(shown) // 3)))
    panels = figure.subplots(-(-len(shown) // 3), min(len(shown), 3), squeeze=False)
    for ax, name in zip(panels.flat, shown):
        histogram(ax, columns[name][good], _label(study, name))
    for ax in panels.flat[len(shown) :]:
        ax.set_visible(False)
    return figure


def histogram(ax: Axes, values: Array, label: str) -> None:
    """Draw one marginal."""
    values = values[np.isfinite(values)]
    if values.size and np.ptp(values) > 0.0:
        bins = int(np.clip(np.sqrt(values.size), 8, 60))
        ax.hist(values, bins=bins, color=COLOURS[0], alpha=0.75)
        for q, style in ((5.0, ":"), (50.0, "-"), (95.0, ":")):
            ax.axvline(float(np.percentile(values, q)), color=INK, linestyle=style, linewidth=1.0)
    elif values.size:
        ax.text(0.5, 0.5, f"always {values[0]:.6g}", ha="center", transform=ax.transAxes)
    else:
        ax.text(0.5, 0.5, "no run has a value", ha="center", transform=ax.transAxes)
    ax.set_xlabel(label)
    ax.set_ylabel("runs")
    tidy(ax)


def scatter(study: Study, x: Sequence[str] | None = None, y: Sequence[str] | None = None) -> Figure:
    """Recorded values against parameters; runs that failed are crosses below the axis.

    Parameters
    ----------
    study
        The study.
    x, y
        Parameters and recorded values; by default the first few of each.
    """
    columns, good = _columns(study)
    across = _chosen(study, x, list(study.design.names))
    up = _chosen(study, y, _recorded(study))
    failed = ~good & (columns["status"] != "missing")
    points = _some(np.flatnonzero(good), MOST_POINTS)
    figure = new_figure((max(2.7 * len(across), 4.5), max(2.4 * len(up), 2.8)))
    panels = figure.subplots(max(len(up), 1), len(across), squeeze=False, sharex="col")
    for row, name in enumerate(up):
        for column, parameter in enumerate(across):
            ax = panels[row, column]
            ax.plot(
                columns[parameter][points], columns[name][points], "o", color=COLOURS[0],
                markersize=3.0 if len(points) < 1000 else 1.5, alpha=0.6, markeredgewidth=0.0,
            )  # fmt: skip
            _mark_failures(ax, columns[parameter][failed])
            if column == 0:
                ax.set_ylabel(_label(study, name))
            if row == len(up) - 1:
                ax.set_xlabel(parameter)
            ax.locator_params(axis="x", nbins=2)  # labels of five digits must not touch
            tidy(ax)
    if not up:
        for ax, parameter in zip(panels[0], across):
            histogram(ax, columns[parameter][good], parameter)
    count = int(failed.sum())
    text = f"{int(good.sum()):,} runs"
    if len(points) < good.sum():
        text += f" ({len(points):,} of them shown)"
    text += f"; {count:,} failed: crosses at the lower edge" if count else "; none failed"
    figure.suptitle(text, x=0.01, ha="left", fontsize="medium", color=INK)
    return figure


def _mark_failures(ax: Axes, at: Array) -> None:
    at = at[np.isfinite(at)]
    if at.size:
        edge = ax.get_xaxis_transform()  # heights in parts of the panel
        ax.plot(at, np.full(at.size, 0.02), "x", color=FAILED, markersize=5.0, transform=edge)


def sobol(study: Study, names: Sequence[str] | None = None) -> Figure:
    """Sobol's indices of recorded values, as bars with intervals of 95 % confidence.

    With ``sampling="saltelli"`` of first order and total; otherwise of first order only, by
    SALib's estimator for any sample (RBD-FAST), where it is installed.
    """
    shown = _chosen(study, names, _recorded(study))
    if not shown:
        raise ValueError("nothing was recorded: there is no variance to share out")
    figure = new_figure((max(1.2 * len(study.design.names) + 2.0, 4.5), 2.6 * len(shown)))
    panels = figure.subplots(len(shown), 1, squeeze=False)
    for ax, name in zip(panels[:, 0], shown):
        bars = _index_bars(study, name)
        for k, (label, values, errors) in enumerate(bars):
            at = np.arange(len(values)) + 0.38 * (k - 0.5 * (len(bars) - 1))
            ax.bar(at, values, 0.36, yerr=errors, label=label, color=COLOURS[k], ecolor=QUIET)
        ax.set_xticks(np.arange(len(study.design.names)), study.design.names)
        ax.set_ylabel(f"share of the variance\nof {name}")
        ax.set_ylim(min(0.0, *(float(values.min()) for _, values, _ in bars)), None)
        ax.legend(ncols=2, **ABOVE)
        tidy(ax)
    return figure


def _index_bars(study: Study, name: str) -> list[tuple[str, Array, Array]]:
    if study.design.sampling == "saltelli":
        found = study.sobol(name)
        return [
            ("first order", found.first, found.first_error),
            ("total", found.total, found.total_error),
        ]
    try:
        from SALib.analyze import rbd_fast
    except ImportError:
        raise ImportError(
            "Sobol's indices of any sample need SALib: pip install SALib; or make the study with "
            "sampling='saltelli'"
        ) from None
    columns, good = _columns(study)
    good &= np.isfinite(columns[name].astype(np.float64))
    inputs = np.array([columns[p][good] for p in study.design.names]).T
    problem = {
        "num_vars": inputs.shape[1],
        "names": list(study.design.names),
        "bounds": [[float(c.min()), float(c.max())] for c in inputs.T],
    }
    found = rbd_fast.analyze(problem, inputs, columns[name][good], seed=study.design.seed)
    return [("first order", np.array(found["S1"]), np.array(found["S1_conf"]))]


def bands(study: Study, names: Sequence[str] | None = None) -> Figure:
    """Percentiles of trajectories over time, with their median.

    Parameters
    ----------
    study
        With ``outputs``.
    names
        States; by default the first few.
    """
    data = study.trajectories()
    shown = _chosen_states(data, names)
    times = np.asarray(data["time"])
    _, good = _columns(study)
    runs = _some(np.flatnonzero(good), MOST_RUNS)
    figure = new_figure((6.4, 2.2 * len(shown)))
    panels = figure.subplots(len(shown), 1, squeeze=False, sharex=True)
    for k, (ax, name) in enumerate(zip(panels[:, 0], shown)):
        values = np.asarray(data[name][runs])
        for low, high in BANDS:
            if len(runs):
                edges = np.nanpercentile(values, [low, high], axis=0)
                label = f"{low:g} to {high:g} %"
                ax.fill_between(times, *edges, color=COLOURS[0], alpha=0.25, lw=0, label=label)
        if len(runs):
            ax.plot(times, np.nanmedian(values, axis=0), color=COLOURS[0], label="median")
        ax.set_ylabel(_with_unit(name, data[name].attrs.get("units", "")))
        tidy(ax)
        if k == 0:
            ax.legend(ncols=3, **ABOVE)
    panels[-1, 0].set_xlabel("t in s")
    return figure


def worst(study: Study, name: str | None = None, count: int = 5) -> Figure:
    """Trajectories of the runs with the largest values of a column, over the others' band.

    Parameters
    ----------
    study
        With ``outputs``.
    name
        The column; by default the first that was recorded.
    count
        How many runs.
    """
    recorded = _recorded(study)
    if name is None and not recorded:
        raise ValueError("name: expected a column; nothing was recorded")
    name = recorded[0] if name is None else name
    figure = bands(study)
    data = study.trajectories()
    times = np.asarray(data["time"])
    numbers = study.worst(name, count)
    for ax, state in zip(figure.axes, _chosen_states(data, None)):
        for k, number in enumerate(numbers):
            colour = COLOURS[1 + k % (len(COLOURS) - 1)]
            ax.plot(times, np.asarray(data[state][number]), color=colour, label=f"run {number}")
    figure.axes[0].legend(ncols=4, **ABOVE)
    figure.suptitle(f"runs with the largest {name}", x=0.01, ha="left", fontsize="medium")
    return figure


# ---------------------------------------------------------------------- what they share


def _columns(study: Study) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    columns = study.columns()
    return columns, np.asarray(columns["status"] == OK)


def _recorded(study: Study) -> list[str]:
    return list(study._plain["record"])


def _chosen(study: Study, names: Sequence[str] | str | None, usual: list[str]) -> list[str]:
    if names is None:
        return usual[:MOST_PANELS]
    listed = [names] if isinstance(names, str) else list(names)
    known = [*study.design.names, *_recorded(study), "nsteps", "t_end"]
    for name in listed:
        if name not in known:
            raise ValueError(f"there is no column of numbers {name!r}{suggest(name, known)}")
    return listed


def _chosen_states(data: Any, names: Sequence[str] | str | None) -> list[str]:
    known = list(data.data_vars)
    if names is None:
        return known[: min(MOST_PANELS, 4)]
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise ValueError(f"there is no state {name!r}{suggest(name, known)}")
    return listed


def _some(runs: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of the runs, evenly picked."""
    if len(runs) <= most:
        return runs
    return runs[np.linspace(0, len(runs) - 1, most).astype(int)]


def _label(study: Study, name: str) -> str:
    return _with_unit(name, study._kept(None).header["value_units"].get(name, ""))


def _with_unit(name: str, unit: str) -> str:
    return f"{name} in {unit}" if unit else name
