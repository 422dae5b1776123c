"""Sliders for notebooks: a figure, and the numbers it depends on under the mouse.

Each function returns a widget, which Jupyter shows. They need ipywidgets, the extra ``notebook``;
everything else works without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem import IVP
from ...solve import solve
from ..study.reference import as_problem, find_reference
from ..study.runs import resolve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["slider_panel", "stability_slider", "step_slider"]

STEPS = 240  # of the test equation at most: a run that takes longer is cut
SMOOTH = 400  # points of a reference
BLOWN = 1e3  # times the size of the exact solution: beyond, a curve leaves the picture


def slider_panel(
    draw: Callable[..., Figure], ranges: Mapping[str, Any], choices: Mapping[str, Any] | None = None
) -> Any:
    """Return a widget with a figure that is drawn anew whenever a slider moves.

    Parameters
    ----------
    draw
        Called with a keyword argument for each control; returns a figure.
    ranges
        Name → (smallest, largest, start) of a slider. A name that ends with "_log" has a
        logarithmic scale and is passed to ``draw`` without this ending.
    choices
        Name → list of texts to choose from; the first one is the start.

    Raises
    ------
    ImportError
        Without ipywidgets.

    Examples
    --------
    >>> from integrators.analysis.plot.style import new_axes
    >>> def draw(a):
    ...     ax = new_axes(None)
    ...     _ = ax.plot([0, 1], [0, a])
    ...     return ax.figure
    >>> panel = slider_panel(draw, {"a": (0.0, 2.0, 1.0)})  # doctest: +SKIP
    """
    try:
        import ipywidgets
    except ImportError:
        raise ImportError(
            'sliders need ipywidgets: pip install "featherstep[notebook]", then run this in Jupyter'
        ) from None
    controls: dict[str, Any] = {}
    for name, (low, high, start) in ranges.items():
        shown = dict(description=name.removesuffix("_log"), continuous_update=False)
        if name.endswith("_log"):
            ends = dict(min=float(np.log10(low)), max=float(np.log10(high)), step=0.01)
            widget = ipywidgets.FloatLogSlider(value=start, base=10, **ends, **shown)
        else:
            step = (high - low) / 200
            widget = ipywidgets.FloatSlider(start, min=low, max=high, step=step, **shown)
        controls[name.removesuffix("_log")] = widget
    for name, listed in (choices or {}).items():
        controls[name] = ipywidgets.Dropdown(options=list(listed), description=name)
    picture, said = ipywidgets.Image(format="png"), ipywidgets.HTML()

    def refresh(_: Any = None) -> None:
        try:
            figure: Any = draw(**{name: widget.value for name, widget in controls.items()})
            picture.value, said.value = figure._repr_png_(), ""
        except (ValueError, ArithmeticError) as error:  # a setting that cannot be: say so, stay
            said.value = f"<b>{error}</b>"

    for widget in controls.values():
        widget.observe(refresh, names="value")
    refresh()
    return ipywidgets.VBox([*controls.values(), said, picture])


def step_slider(problem: str | IVP, methods: Any = "ExplicitEuler", component: int = 0) -> Any:
    """Return a slider for the step size h: what methods make of a problem.

    Parameters
    ----------
    problem
        A problem, or the name of one.
    methods
        One or several: names, tableaux, functions ``step(f, t, y, h)``.
    component
        Which one is drawn.

    Examples
    --------
    >>> panel = step_slider("logistic", ["ExplicitEuler", "RK4"])  # doctest: +SKIP
    """
    ivp = as_problem(problem)
    several = (
        methods if isinstance(methods, Sequence) and not isinstance(methods, str) else [methods]
    )
    chosen = [resolve(method) for method in several]
    t0, t1 = ivp.t_span
    length = abs(t1 - t0)
    reference = find_reference(ivp)
    times = np.linspace(t0, t1, SMOOTH)
    truth = None if reference.along is None else reference.along(times)[component].real

    def draw(h: float) -> Figure:
        from .style import LEGEND, labelled_axes, line_style, plain

        ax = labelled_axes(None, plain(ivp.name), "t", f"$y_{{{component + 1}}}$")
        if truth is not None:
            ax.plot(times, truth, color="#bbbbbb", linewidth=4, label="solution")
        for k, (label, method) in enumerate(chosen):
            run = solve(ivp, method=method, step=h)
            values = run.y[component].real
            size = np.max(np.abs(values if truth is None else truth))
            kept = np.abs(values) < BLOWN * size
            error = "" if not run.success else _error(run, reference)
            style = line_style(k)
            ax.plot(run.t[kept], values[kept], label=f"{label}{error}", marker=".", **style)
        ax.set_title(f"h = {h:.4g}, {round(length / h)} steps", loc="right", fontsize=9)
        ax.legend(**LEGEND)
        return ax.figure  # type: ignore[return-value]

    return slider_panel(draw, {"h_log": (length / 500, length / 4, length / 20)})


def _error(run: Any, reference: Any) -> str:
    found = reference.error(run.y[:, -1])
    return "" if found is None else f": error {found:.1e} at the end"


def stability_slider(
    methods: Sequence[str] = ("ExplicitEuler", "Heun", "RK4", "ImplicitEuler", "ImplicitMidpoint"),
) -> Any:
    """Return sliders for h and λ: the stability region with z = hλ in it, and the run of y' = λy.

    Parameters
    ----------
    methods
        Names of the catalogue to choose from.

    Examples
    --------
    >>> panel = stability_slider(["ExplicitEuler", "RK4"])  # doctest: +SKIP
    """
    from ..method.stability.amplification import as_stability_function

    functions = {name: as_stability_function(resolve(name)[1]) for name in methods}

    def draw(h: float, growth: float, frequency: float, method: str) -> Figure:
        from .method import stability_region
        from .style import COLOURS, LEGEND, labelled_axes, new_figure

        lam = complex(growth, frequency)
        figure = new_figure((9.6, 4.2))
        region, curve = figure.subplots(1, 2)
        stability_region(method, region)
        z, R = h * lam, abs(complex(functions[method](h * lam)))
        (left, right), (low, high) = region.get_xlim(), region.get_ylim()
        region.set_xlim(min(left, 1.1 * z.real), max(right, 1.1 * z.real))
        region.set_ylim(min(low, -1.1 * abs(z.imag)), max(high, 1.1 * abs(z.imag)))
        region.plot([z.real], [z.imag], "o", color=COLOURS[1], markersize=9)
        inside = "inside" if R <= 1 else "outside"
        region.set_title("", loc="left")
        region.set_title(f"{method}: z = hλ is {inside}, |R(z)| = {R:.3g}", fontsize=10)
        labelled_axes(curve, f"y' = λy, λ = {lam.real:.3g} {lam.imag:+.3g} i", "t", "Re y")
        count = min(STEPS, max(1, round(10.0 / h)))
        factor = complex(functions[method](z))
        steps = factor ** np.arange(count + 1)
        times = np.linspace(0.0, count * h, SMOOTH)
        exact = np.exp(lam * times).real
        curve.plot(times, exact, color="#bbbbbb", linewidth=4, label="solution")
        top = 1.5 * max(1.0, float(np.max(np.abs(exact))))
        kept = np.abs(steps) < BLOWN * top
        grid = h * np.arange(count + 1)
        curve.plot(grid[kept], steps.real[kept], ".-", color=COLOURS[0], label=method)
        curve.set_ylim(-top, top)
        curve.legend(**LEGEND)
        return figure

    ranges = {
        "h_log": (0.01, 2.0, 0.2),
        "growth": (-20.0, 2.0, -8.0),
        "frequency": (0.0, 20.0, 0.0),
    }
    return slider_panel(draw, ranges, {"method": methods})
