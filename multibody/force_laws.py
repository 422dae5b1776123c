"""Forces as a user gives them (numbers, tables over time, functions), as functions of t, q, v."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import Array, ArrayLike, real_array
from .dynamics.compute import ForcesLike

if TYPE_CHECKING:
    from .model import Model

__all__ = ["external_force_law", "joint_force_law"]


def joint_force_law(model: Model, tau: Any) -> tuple[Callable[..., Any] | None, Array]:
    """Joint forces as a function of t, q, v, p, and the parameters p."""
    none = np.zeros(0)
    if tau is None:
        return None, none
    if callable(tau):
        return lambda t, q, v, p: _joint_forces(model, tau(t, q, v)), none
    if isinstance(tau, tuple) and len(tau) == 2 and np.ndim(tau[0]) == 1 and np.ndim(tau[1]) >= 1:
        if np.ndim(tau[1]) == 2 or len(tau[0]) == len(tau[1]) != model.nv:
            return _table_law(model, *tau), none
    return lambda t, q, v, p: p, model.check("tau", tau)


def _joint_forces(model: Model, forces: Any) -> Any:
    """What a function of the user returned, floats or symbols, if it is a force for each freedom.

    Checked here because arrays take a single number for all of their entries.
    """
    if forces is None:
        raise ValueError(
            f"tau: expected a function that returns {model.nv} numbers, but it returned None; is "
            "its `return` missing? Without joint forces, leave tau out"
        )
    vector = np.asarray(forces)
    if vector.ndim == 0:
        vector = vector.reshape(1)
    if vector.shape != (model.nv,):
        names = ", ".join(model.v_names[:6]) + (", …" if model.nv > 6 else "")
        raise ValueError(
            f"tau: expected {model.nv} numbers ({names}), received shape {np.shape(forces)} from "
            "the function; return a force for each freedom, zeros included"
        )
    return vector


def _table_law(model: Model, times: ArrayLike, values: ArrayLike) -> Callable[..., Any]:
    """Piecewise linear function as a sum of ramps, which needs no branches."""
    times = real_array(times, "times")
    values = real_array(values, "values").reshape(len(times), -1)
    if values.shape[1] != model.nv or len(times) < 2 or np.any(np.diff(times) <= 0.0):
        raise ValueError(
            f"tau: expected a table (times, values) with at least two rising times and rows of "
            f"{model.nv} forces, received {len(times)} times and values of shape {values.shape}"
        )
    slopes = np.diff(values, axis=0) / np.diff(times)[:, None]
    bends = np.diff(np.vstack([np.zeros(model.nv), slopes, np.zeros(model.nv)]), axis=0)

    def law(t: Any, q: Any, v: Any, p: Any) -> Any:
        total: Any = values[0]
        for start, bend in zip(times, bends):
            total = total + bend * np.maximum(t - start, 0.0)
        return total

    return law


def external_force_law(model: Model, f_ext: ForcesLike) -> Callable[..., Any] | None:
    """External forces as a function of t, q, v that returns a row for each body."""
    if f_ext is None:
        return None
    if callable(f_ext):
        return lambda t, q, v: _rows(model, f_ext(t, q, v))
    constant = _rows(model, f_ext)
    return lambda t, q, v: constant


def _rows(model: Model, forces: Any) -> Any:
    """External forces as a row for each body, from an array or a dictionary."""
    if isinstance(forces, dict):
        table: Any = [[0.0] * 6 for _ in model.bodies]
        for name, force in forces.items():
            i = model.number(name)
            if i == 0:
                raise ValueError("f_ext: a force on the base moves nothing; leave it out")
            table[i - 1] = [a + b for a, b in zip(table[i - 1], force)]
        return np.array(table)
    rows = np.asarray(forces)
    if rows.shape != (model.n_bodies, 6):
        raise ValueError(
            f"f_ext: expected a row of 6 numbers for each of {model.n_bodies} bodies, received "
            f"shape {rows.shape}"
        )
    return rows
