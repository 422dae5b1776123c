"""What a comparison found: the table of :class:`WorkPrecision`, and a curve for its picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.analysis.study.runs import Row
from integrators.analysis.study.work_precision import WorkPrecision

__all__ = ["Comparison", "Illustration"]


@dataclass(frozen=True)
class Illustration:
    """A smooth curve of the solution and the steps that one of the methods took along it."""

    t: NDArray[np.float64]
    y: NDArray[Any]
    t_steps: NDArray[np.float64]
    y_steps: NDArray[Any]
    row: Row


@dataclass(frozen=True, repr=False)
class Comparison(WorkPrecision):
    """The result of :func:`compare`: rows, the reference, and for the picture an illustration."""

    illustration: Illustration | None = None
