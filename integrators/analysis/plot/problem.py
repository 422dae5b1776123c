"""Figures of the problem and of the error.

Each function takes what an analysis returned, draws it on the Axes given or on a new figure, and
returns the Axes. Curves differ in colour and in dashes, so that they can be told apart in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..error.euler_bounds import EulerBounds
from ..error.global_error import GlobalError
from ..error.local import LocalErrors
from ..error.richardson import Richardson
from ..problem.existence import Existence
from ..problem.lipschitz import Constant, Quotients
from ..problem.picard import Picard
from ..problem.stiffness import Stiffness
from ..problem.taylor import Expansion
from .style import (
    COLOURS,
    MARKERS,
    label_numbers,
    labelled_axes,
    legend_beside,
    line_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "difference_quotients",
    "eigenvalues",
    "euler_bounds",
    "global_error",
    "local_errors",
    "picard_iterates",
    "richardson_table",
    "several_solutions",
    "step_limits",
    "taylor_polynomials",
]

TRUE = COLOURS[-1]


def _marked(k: int) -> dict[str, Any]:
    return {"marker": MARKERS[k % len(MARKERS)], **line_style(k)}


def _positive(values: Any) -> Any:
    """Zeros do not appear on a logarithmic axis."""
    v = np.asarray(values, dtype=float)
    return np.where(v > 0, v, np.nan)


def _expect(value: Any, kind: Any, made_by: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"expected what {made_by} returns, got {type(value).__name__}")


def euler_bounds(bounds: EulerBounds, ax: Axes | None = None) -> Axes:
    """Draw the true error of explicit Euler under all its bounds.

    Parameters
    ----------
    bounds
        What ``analysis.euler_bounds`` returned.
    ax
        Axes to draw into; by default those of a new figure, here and in all functions below.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> ax = euler_bounds(analysis.euler_bounds(problems.get("linear_growth"), 10))
    >>> ax.get_yscale()
    'log'
    """
    _expect(bounds, EulerBounds, "analysis.euler_bounds")
    title = f"explicit Euler, h = {bounds.h:.3g}, L = {bounds.L:.3g}, $M_2$ = {bounds.M2:.3g}"
    ax = labelled_axes(ax, title, "t", r"$|\varepsilon_k|$ and its bounds")
    for k, (name, values) in reversed(list(enumerate(bounds.curves.items()))):
        if np.isfinite(values).any():
            final = f"{np.nanmax(values):.4g}"
            ax.plot(bounds.t, _positive(values), label=f"{name}: {final}", **line_style(k))
    ax.plot(
        bounds.t, _positive(bounds.error), "o", color=TRUE, markersize=4,
        markevery=max(1, bounds.t.size // 20), zorder=1,
        label=f"true error: {bounds.largest_error:.4g}",
    )  # fmt: skip
    ax.set_yscale("log")
    legend_beside(ax)
    return ax


def difference_quotients(
    quotients: Quotients | Constant | Sequence[Quotients], ax: Axes | None = None
) -> Axes:
    """Draw difference quotients against the distance: level where f is Lipschitz, rising if not.

    Parameters
    ----------
    quotients
        One or several results of ``analysis.difference_quotients``, or of ``analysis.lipschitz``
        where the function is not Lipschitz.

    Examples
    --------
    >>> from integrators import analysis
    >>> ax = difference_quotients(analysis.lipschitz(lambda t, y: np.sqrt(np.abs(y)), (-1, 1)))
    >>> len(ax.lines)
    1
    """
    if isinstance(quotients, Constant):
        if quotients.quotients is None:
            raise ValueError(
                "this result has no quotients: the constant was found by intervals. Compute them "
                "by analysis.difference_quotients(f, y)"
            )
        quotients = quotients.quotients
    tables = [quotients] if isinstance(quotients, Quotients) else list(quotients)
    ax = labelled_axes(ax, "is f Lipschitz?", "distance", "largest difference quotient")
    for k, table in enumerate(tables):
        _expect(table, Quotients, "analysis.difference_quotients")
        where = ", ".join(f"{v:.3g}" for v in table.y[:3])
        word = f"grows like $d^{{{table.exponent:.2g}}}$" if table.growing else "bounded"
        ax.loglog(
            table.distances, _positive(table.values), markersize=4,
            label=f"at y = {where}: {word}", **_marked(k),
        )  # fmt: skip
    ax.invert_xaxis()
    legend_beside(ax)
    return ax


def several_solutions(existence: Existence, t: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the different solutions of a problem whose solution is not unique.

    Parameters
    ----------
    existence
        What ``analysis.existence`` returned with the verdict "not unique".
    t
        Times; the interval of existence by default.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> ax = several_solutions(analysis.existence(problems.get("square_root")))
    >>> len(ax.lines)  # two solutions and the initial point
    3
    """
    _expect(existence, Existence, "analysis.existence")
    if not existence.solutions:
        raise ValueError(f"no second solution is known; the verdict is {existence.verdict!r}")
    times = np.linspace(*existence.interval, 201) if t is None else np.asarray(t, dtype=float)
    ax = labelled_axes(ax, "several solutions through one point", "t", "y")
    names = ("y stays", "y leaves")
    for k, solution in enumerate(existence.solutions):
        ax.plot(times, solution(times), label=names[k % 2], linewidth=2, **line_style(k))
    ax.plot([existence.t0], [existence.y0[0]], "o", color=TRUE)
    legend_beside(ax)
    return ax


def picard_iterates(
    picard: Picard,
    component: int = 0,
    ax: Axes | None = None,
    *,
    exact: Callable[[Any], Any] | None = None,
    most: int = 6,
) -> Axes:
    """Draw Picard's iterates of one component, and the exact solution if given.

    Parameters
    ----------
    picard
        What ``analysis.picard`` returned.
    component
        Which component to draw.
    exact
        ``exact(t)``, the exact solution.
    most
        How many iterates to draw at most, besides the first.

    Examples
    --------
    >>> from integrators import analysis
    >>> ax = picard_iterates(analysis.picard(lambda t, y: y, (0, 1), [1.0], 3))
    >>> len(ax.lines)
    4
    """
    _expect(picard, Picard, "analysis.picard")
    if not 0 <= component < len(picard.iterates[0].polynomials):
        raise ValueError(f"there is no component {component}")
    t = np.linspace(*picard.t_span, 301)
    ax = labelled_axes(ax, "Picard's iterates", "t", f"$y_{{{component}}}$")
    for k, iterate in enumerate(picard.iterates[: most + 1]):
        ax.plot(t, iterate(t)[component], label=f"iterate {k}", **line_style(k))
    if exact is not None:
        values = [np.atleast_1d(exact(s))[component] for s in t]
        ax.plot(t, values, color=TRUE, linewidth=2.5, alpha=0.6, label="exact", zorder=1)
    legend_beside(ax)
    return ax


def taylor_polynomials(
    expansions: Sequence[Expansion] | Expansion, x: Any, ax: Axes | None = None
) -> Axes:
    """Draw a function of one variable and its Taylor polynomials on the points x.

    Parameters
    ----------
    expansions
        What ``analysis.taylor`` returned for one variable; several for several orders.
    x
        Points.

    Examples
    --------
    >>> from integrators import analysis
    >>> cosines = [analysis.taylor(np.cos, 0.0, k) for k in (2, 4)]
    >>> ax = taylor_polynomials(cosines, np.linspace(-3, 3, 50))
    >>> ax.get_legend_handles_labels()[1]
    ['order 2', 'order 4', 'f']
    """
    listed = [expansions] if isinstance(expansions, Expansion) else list(expansions)
    points = np.asarray(x, dtype=float)
    if points.ndim != 1 or points.size < 2:
        raise ValueError(f"x must be at least two points, got shape {points.shape}")
    ax = labelled_axes(ax, "Taylor polynomials", "x", "f(x)")
    for k, expansion in enumerate(listed):
        _expect(expansion, Expansion, "analysis.taylor")
        if not expansion.scalar:
            raise ValueError("only functions of one variable are drawn; take a slice")
        label = f"order {expansion.order}"
        ax.plot(points, [expansion(s) for s in points], label=label, **line_style(k))
    values = [float(listed[0].function(s)) for s in points]
    ax.plot(points, values, color=TRUE, linewidth=2.5, alpha=0.6, label="f", zorder=1)
    low, high = np.nanmin(values), np.nanmax(values)
    room = 0.5 * (high - low) or 1.0
    ax.set_ylim(low - room, high + room)  # polynomials run away
    ax.plot(listed[0].x0, [float(listed[0].function(listed[0].x0[0]))], "o", color=TRUE)
    legend_beside(ax)
    return ax


def eigenvalues(stiffness: Stiffness, ax: Axes | None = None) -> Axes:
    """Draw the real parts of the eigenvalues of ∂f/∂y along the solution.

    Parameters
    ----------
    stiffness
        What ``analysis.stiffness`` returned.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> ax = eigenvalues(analysis.stiffness(problems.get("van_der_pol"), points=20))
    >>> ax.get_xlabel()
    't'
    """
    _expect(stiffness, Stiffness, "analysis.stiffness")
    ax = labelled_axes(
        ax, r"eigenvalues of $\partial f/\partial y$ along the solution", "t", r"Re $\lambda$"
    )
    real = stiffness.eigenvalues.real
    for k, row in enumerate(real):
        ax.plot(stiffness.t, row, label=rf"$\lambda_{{{k + 1}}}$", **line_style(k))
    largest = float(np.max(np.abs(real)))
    if largest > 0:
        ax.set_yscale("symlog", linthresh=max(1e-3 * largest, 1e-12))
    ax.axhline(0, color=TRUE, linewidth=0.8)
    if len(real) <= 8:
        legend_beside(ax)
    return ax


def step_limits(stiffness: Stiffness, ax: Axes | None = None) -> Axes:
    """Draw the longest steps that stability and accuracy allow; shaded where the first limits.

    Parameters
    ----------
    stiffness
        What ``analysis.stiffness`` returned.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> ax = step_limits(analysis.stiffness(problems.get("van_der_pol"), points=20))
    >>> ax.get_ylabel()
    'longest step'
    """
    _expect(stiffness, Stiffness, "analysis.stiffness")
    title = f"what limits the step of {stiffness.method} at tolerance {stiffness.rtol:g}"
    ax = labelled_axes(ax, title, "t", "longest step")
    t, stable, accurate = stiffness.t, stiffness.h_stability, stiffness.h_accuracy
    shown = np.where(np.isfinite(stable), stable, np.nan)
    if np.isfinite(shown).any():
        ax.plot(t, shown, label="stability", **line_style(1))
        ax.fill_between(
            t, shown, accurate, where=stiffness.limited_by_stability, color=COLOURS[1], alpha=0.15,
            label="lost to stability",
        )  # fmt: skip
    ax.plot(t, accurate, label="accuracy", **line_style(0))
    ax.set_yscale("log")
    legend_beside(ax)
    return ax


def global_error(
    estimates: GlobalError | Sequence[GlobalError],
    ax: Axes | None = None,
    *,
    exact: Callable[[float], Any] | None = None,
) -> Axes:
    """Draw estimated global errors over time, beside the true one if the exact solution is given.

    Parameters
    ----------
    estimates
        One or several results of ``analysis.global_error`` for one solution.
    exact
        ``exact(t)``, the exact solution.

    Examples
    --------
    >>> from integrators import analysis, problems, solve
    >>> problem = problems.get("linear_growth")
    >>> estimate = analysis.global_error(solve(problem, method="RK4", step=0.1))
    >>> ax = global_error(estimate, exact=problem.exact)
    >>> ax.get_legend_handles_labels()[1]
    ['true', 'ladder']
    """
    listed = [estimates] if isinstance(estimates, GlobalError) else list(estimates)
    if not listed:
        raise ValueError("there is nothing to draw")
    for estimate in listed:
        _expect(estimate, GlobalError, "analysis.global_error")
    ax = labelled_axes(ax, str(listed[0]).splitlines()[0], "t", r"$\|e(t)\|_\infty$")
    first = listed[0]
    if exact is not None:
        true = np.array([np.atleast_1d(exact(s)) for s in first.t]).T - first.y
        ax.plot(
            first.t, _positive(np.max(np.abs(true), axis=0)), color=TRUE, linewidth=3, alpha=0.5,
            label="true",
        )  # fmt: skip
    for k, estimate in enumerate(listed):
        ax.plot(estimate.t, _positive(estimate.norms), label=estimate.how, **line_style(k))
    if first.rtol:
        size = np.max(np.abs(first.y))
        asked = first.rtol * size + float(np.max(first.atol))
        ax.axhline(asked, color=COLOURS[3], linestyle=":", label="tolerance")
    ax.set_yscale("log")
    legend_beside(ax)
    return ax


def local_errors(errors: LocalErrors | Sequence[LocalErrors], ax: Axes | None = None) -> Axes:
    """Draw the size of the local error of each step.

    Parameters
    ----------
    errors
        One or several results of ``analysis.local_errors``.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> ax = local_errors(analysis.local_errors(problems.get("linear_growth"), "RK4", 0.25))
    >>> len(ax.lines[0].get_xdata())
    4
    """
    listed = [errors] if isinstance(errors, LocalErrors) else list(errors)
    ax = labelled_axes(ax, "local errors", "t", r"$\|\tau_k\|$")
    for k, found in enumerate(listed):
        _expect(found, LocalErrors, "analysis.local_errors")
        label = f"{found.method}, {found.how}"
        marker = "os^Dv"[k % 5]
        ax.plot(
            found.t,
            _positive(found.norms),
            marker=marker,
            markersize=3,
            label=label,
            **line_style(k),
        )
    ax.set_yscale("log")
    legend_beside(ax)
    return ax


def richardson_table(richardson: Richardson, ax: Axes | None = None, *, exact: Any = None) -> Axes:
    """Draw, column by column, how the extrapolated values settle as the step shrinks.

    Parameters
    ----------
    richardson
        What ``analysis.richardson`` returned.
    exact
        The exact value, if known; otherwise distances are from the last entry of the table.

    Examples
    --------
    >>> from integrators import analysis, problems
    >>> table = analysis.richardson(problems.get("linear_growth"), "RK4", step=0.25)
    >>> ax = richardson_table(table)
    >>> ax.get_xscale()
    'log'
    """
    _expect(richardson, Richardson, "analysis.richardson")
    against = richardson.value if exact is None else np.atleast_1d(np.asarray(exact, dtype=float))
    word = "the last value" if exact is None else "the exact value"
    title = f"Richardson extrapolation of {richardson.method}"
    ax = labelled_axes(ax, title, "finest step used", f"distance from {word}")
    for k in range(len(richardson.table)):
        rows = richardson.table[k:]
        gaps = [np.max(np.abs(row[k] - against)) for row in rows]
        if np.any(np.asarray(gaps) > 0):
            label = "no extrapolation" if k == 0 else f"{k} term{'s' if k > 1 else ''} eliminated"
            ax.loglog(
                richardson.steps[k:], _positive(gaps), markersize=4, label=label, **_marked(k)
            )
    label_numbers(ax)
    legend_beside(ax)
    return ax
