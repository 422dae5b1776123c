"""Sliders for notebooks: what a setting does to a mechanism. They need the extra ``notebook``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import solve
from integrators.analysis.plot.sliders import slider_panel

from ..runs.ivp import as_ivp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["stabilisation"]

SMALLEST = 1e-17  # gap that is drawn, where a logarithm needs one


def stabilisation(
    mechanism: Any, q0: Any = None, v0: Any = None, *, t_end: float = 2.0,
    method: str = "RK4", step: float = 0.01,
) -> Any:  # fmt: skip
    """Return a slider for Baumgarte's T_stab: the gap of the loops over time, and without it.

    Parameters
    ----------
    mechanism
        An entry of the catalogue, ``mechanisms.entry("four_bar")``, or a model with loops.
    q0, v0
        Its start, for a model of one's own.
    t_end, method, step
        Until when, by which method, with which step.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> four_bar = mechanisms.entry("four_bar")
    >>> panel = stabilisation(four_bar, t_end=0.5)  # doctest: +SKIP
    """
    start: Any = (q0, v0)
    model = mechanism
    if hasattr(mechanism, "start"):
        model = mechanism.model()
        start = mechanism.start(model)
    if not model.loops:
        raise ValueError(f"{model.name or 'the model'} has no loops; Baumgarte's terms close them")

    def drift(**settings: Any) -> tuple[Any, Any]:
        problem = as_ivp(model, start[0], start[1], (0.0, t_end), **settings)
        run = solve(problem, method=method, step=step)
        return run.t, np.maximum(
            np.abs(run.observed.drift).reshape(run.t.size, -1).max(1), SMALLEST
        )

    free = drift(stabilise="index1")

    def draw(T_stab: float) -> Figure:
        from integrators.analysis.plot.style import COLOURS, LEGEND, QUIET, labelled_axes

        title = f"{model.name}: {method}, h = {step:g} s"
        ax = labelled_axes(None, title, "t in s", "gap of the loops")
        ax.set_yscale("log")
        ax.plot(*free, color=QUIET, linestyle="--", label="no stabilisation")
        ax.plot(*drift(T_stab=T_stab), color=COLOURS[0], label=f"T_stab = {T_stab:.3g} s")
        ax.legend(**LEGEND)
        return ax.figure  # type: ignore[return-value]

    return slider_panel(draw, {"T_stab_log": (step / 2, t_end, 0.1)})
