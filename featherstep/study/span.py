"""Times of a study: the interval of its runs, and when trajectories are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators import IVP
from integrators.problem import time_span

from .subjects import Given, Problem, Subject

__all__ = ["is_problem", "output_times", "span_of"]

Array = NDArray[np.float64]


def is_problem(subject: Subject) -> bool:
    """Whether an initial value problem is studied, no mechanism."""
    return isinstance(subject, Problem) or (
        isinstance(subject, Given) and isinstance(subject.what, IVP)
    )


def span_of(subject: Subject, t_span: Any, fixed: Mapping[str, Any]) -> tuple[float, float]:
    """Interval of the runs: as given, or that of what is studied."""
    if t_span is None and subject.t_end is not None:
        return 0.0, subject.t_end
    if t_span is None and is_problem(subject):
        made = subject.build(fixed)
        assert isinstance(made, IVP)
        return made.t_span
    if t_span is None:
        raise ValueError("t_span: expected the interval of the runs, such as t_span=(0, 2)")
    span = time_span((0.0, t_span) if np.ndim(t_span) == 0 else t_span)
    if span[0] == span[1]:
        raise ValueError(f"t_span: expected two different times, received {t_span!r}")
    return span


def output_times(outputs: Any, span: tuple[float, float]) -> Array:
    """Times of trajectories: as given, or so many evenly over the interval."""
    if outputs is None:
        return np.zeros(0)
    if np.ndim(outputs) == 0:
        if isinstance(outputs, bool) or int(outputs) != outputs or outputs < 0 or outputs == 1:
            raise ValueError(
                f"outputs: expected a number of states ≥ 2, times, or 0, received {outputs!r}"
            )
        return np.linspace(*span, int(outputs)) if outputs else np.zeros(0)
    times = np.array(outputs, dtype=np.float64)
    ahead = np.diff(times) * np.sign(span[1] - span[0])
    inside = (times >= min(span)) & (times <= max(span))
    if times.ndim != 1 or not inside.all() or (ahead <= 0.0).any():
        raise ValueError(
            f"outputs: expected times from {span[0]:g} to {span[1]:g} in order, received "
            f"{outputs!r:.80}"
        )
    return times
