"""Forces as a user gives them (numbers, tables over time, functions), as functions of t, q, v."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike, real_array
from ..dynamics.acting import acting
from ..dynamics.loops.loads import carried as carried  # solves for elements that feel reactions
from ..dynamics.storage.loading import ForcesLike

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "check_unlocked",
    "driven_variables",
    "external_force_law",
    "force_laws",
    "forces_at",
    "given_external_forces",
    "given_joint_forces",
    "joint_force_law",
    "lock_review",
    "table_law",
    "takes_parameters",
    "with_parameters",
]


def takes_parameters(force: Any) -> bool:
    """Whether a force is a function of (t, q, v, p) and not of (t, q, v).

    Examples
    --------
    >>> takes_parameters(lambda t, q, v, p: -p[0] * v), takes_parameters([0.0, 1.0])
    (True, False)
    """
    if not callable(force):
        return False
    try:
        arguments = inspect.signature(force).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [
        a
        for a in arguments
        if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty
    ]
    return len(required) == 4


def with_parameters(force: Any, p: Any) -> Any:
    """Return the force with its parameters filled in, if it takes any."""
    if not takes_parameters(force):
        return force
    return lambda t, q, v: force(t, q, v, p)


def joint_force_law(model: Model, tau: Any) -> tuple[Callable[..., Any] | None, Array]:
    """Joint forces, those of elements included, as a function of t, q, v, p, and p itself."""
    given, p = given_joint_forces(model, tau)
    if not model.elements:
        return given, p

    def law(t: Any, q: Any, v: Any, p: Any) -> Any:
        total = acting(model, t, q, v).joint_forces()
        return total if given is None else given(t, q, v, p) + total

    return law, p


def given_joint_forces(model: Model, tau: Any) -> tuple[Callable[..., Any] | None, Array]:
    """The same without the forces of elements."""
    none = np.zeros(0)
    if tau is None:
        return None, none
    if takes_parameters(tau):
        return lambda t, q, v, p: _joint_forces(model, tau(t, q, v, p)), none
    if callable(tau):
        return lambda t, q, v, p: _joint_forces(model, tau(t, q, v)), none
    if _is_table(model, tau):
        return table_law(*_table(model, *tau)), none
    return lambda t, q, v, p: p, model.check("tau", tau)


def driven_variables(model: Model, tau: Any) -> Array | None:
    """Whether joint forces can act on each velocity variable; None if there are none at all.

    A table tells by its numbers. Numbers are parameters, which may change, and a function can
    return anything.
    """
    if tau is None:
        return None
    if not callable(tau) and _is_table(model, tau):
        return np.asarray(_table(model, *tau)[1].any(axis=0))
    return np.ones(model.nv, dtype=bool)


def _is_table(model: Model, tau: Any) -> bool:
    """Whether joint forces are a pair (times, values), and not nv numbers."""
    if not (isinstance(tau, tuple) and len(tau) == 2):
        return False
    if np.ndim(tau[0]) != 1 or np.ndim(tau[1]) < 1:
        return False
    return np.ndim(tau[1]) == 2 or len(tau[0]) == len(tau[1]) != model.nv


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


def _table(model: Model, times: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    """Times and rows of forces of a table, checked."""
    times = real_array(times, "times")
    values = real_array(values, "values").reshape(len(times), -1)
    if values.shape[1] != model.nv or len(times) < 2 or np.any(np.diff(times) <= 0.0):
        raise ValueError(
            f"tau: expected a table (times, values) with at least two rising times and rows of "
            f"{model.nv} forces, received {len(times)} times and values of shape {values.shape}"
        )
    return times, values


def table_law(times: Array, values: Array) -> Callable[..., Any]:
    """Piecewise linear function as a sum of ramps, which needs no branches.

    Each ramp ends with its interval: ramps that go on for ever would have to cancel, and after a
    steep one little but rounding would be left. So the error is that of summing the differences.
    """
    starts, lengths = times[:-1], np.diff(times)
    slopes = np.diff(values, axis=0) / lengths[:, None]

    def law(t: Any, q: Any, v: Any, p: Any) -> Any:
        return values[0] + np.clip(t - starts, 0.0, lengths) @ slopes

    return law


def external_force_law(model: Model, f_ext: ForcesLike) -> Callable[..., Any] | None:
    """External forces, those of elements included, as a function of t, q, v [, p]: rows."""
    given = given_external_forces(model, f_ext)
    if not model.elements:
        return given

    def law(t: Any, q: Any, v: Any, *p: Any) -> Any:
        rows = acting(model, t, q, v).wrenches()
        return rows if given is None else given(t, q, v, *p) + rows

    if takes_parameters(f_ext):
        return lambda t, q, v, p: law(t, q, v, p)
    return lambda t, q, v: law(t, q, v)


def given_external_forces(model: Model, f_ext: ForcesLike) -> Callable[..., Any] | None:
    """The same without the forces of elements."""
    if f_ext is None:
        return None
    if takes_parameters(f_ext):
        return lambda t, q, v, p: _rows(model, f_ext(t, q, v, p))
    if callable(f_ext):
        return lambda t, q, v: _rows(model, f_ext(t, q, v))
    constant = _rows(model, f_ext)
    return lambda t, q, v: constant


def _rows(model: Model, forces: Any) -> Any:
    """External forces, floats or symbols, as a row for each body; from an array or a dictionary."""
    if forces is None:
        raise ValueError(
            "f_ext: expected a function that returns forces, but it returned None; is its "
            "`return` missing? Without external forces, leave f_ext out"
        )
    if isinstance(forces, Mapping):
        table: Any = [[0.0] * 6 for _ in model.bodies]
        for name, force in forces.items():
            i = model.number(name)
            if i == 0:
                raise ValueError("f_ext: a force on the base moves nothing; leave it out")
            row = _numbers(force, f"f_ext[{name!r}]")
            if row.shape != (6,):
                raise ValueError(
                    f"f_ext[{name!r}]: expected 6 numbers (couple and force, in base "
                    f"coordinates), received shape {row.shape}"
                )
            table[i - 1] = [a + b for a, b in zip(table[i - 1], row)]
        return np.array(table)
    rows = _numbers(forces, "f_ext")
    if rows.shape != (model.n_bodies, 6):
        raise ValueError(
            f"f_ext: expected a row of 6 numbers for each of {model.n_bodies} bodies, or a "
            f"dictionary by body names, received shape {rows.shape}"
        )
    return rows


def _numbers(value: Any, name: str) -> Any:
    """Finite numbers, or symbols of a function that is being traced."""
    from integrators.tracing.symbols.symbol import Symbol

    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return real_array(value, name)
    if array.dtype == object and any(isinstance(x, Symbol) for x in array.flat):
        return array
    return real_array(value, name)


def force_laws(
    model: Model, tau: Any, f_ext: Any, params: ArrayLike = ()
) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None, Array]:
    """Joint forces and external forces as functions of (t, q, v, p), or None; and p.

    The parameters are those of functions for forces, or else constant joint forces.
    """
    feels = _feeling(model)
    if feels and not (tau is None and f_ext is None):
        raise ValueError(
            f"element {feels[0]!r} feels the reaction in a joint, and knows of forces in the model "
            "only: make elements of tau, f_ext and prescribed motions (JointSpring, PointForce, "
            "ForceLaw, PID)"
        )
    tau_law, constant = joint_force_law(model, tau)
    outer = external_force_law(model, f_ext)
    law = outer
    if outer is not None and not takes_parameters(f_ext):
        plain = outer
        law = lambda t, q, v, p: plain(t, q, v)  # noqa: E731
    values = np.atleast_1d(real_array(params, "params")).astype(float)
    if not (takes_parameters(tau) or takes_parameters(f_ext)):
        if values.size:
            raise ValueError(
                "params: there is nothing that takes parameters; write a force as tau(t, q, v, p)"
            )
        return tau_law, law, constant
    if constant.size:
        raise ValueError(
            "tau: constant joint forces are parameters themselves, and f_ext(t, q, v, p) wants "
            "others; write them as tau(t, q, v, p)"
        )
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"params: expected the numbers that forces of (t, q, v, p) receive as p, received "
            f"{params!r:.80}; give params=[…]"
        )
    return tau_law, law, values


#: Part of a load that friction of this load may add to it: at 1 no acceleration satisfies both.
LOCKS = 0.5


def check_unlocked(model: Model, q: Array, v: Array, t: float) -> None:
    """Raise if friction locks a mechanism at its start."""
    if _feeling(model) and not np.isfinite(acting(model, t, q, v).joint_forces()).all():
        raise ValueError(f"initial state: {_locked(model)}")


def lock_review(model: Model, review: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Review of runs: whether one ended because friction locked, besides what another one says."""
    if not _feeling(model):
        return review

    def told(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
        status, text = (review and review(problem, t, y, rtol)) or (None, "")
        if not len(t) or t[-1] == problem.t_span[1]:
            return (status, text) if text else None
        q, v = y[: model.nq, -1], y[model.nq : model.nq + model.nv, -1]
        acted = acting(model, float(t[-1]), q, v)
        if not any(part.gain >= LOCKS for part in acted.parts.values()):
            return (status, text) if text else None
        remark = _locked(model)
        return status, f"{text}; {remark}" if text else remark

    return told


def _feeling(model: Model) -> list[str]:
    """Names of elements that feel a reaction."""
    return [e.name for e in model.elements if e.element.carried_by is not None]


def _locked(model: Model) -> str:
    return (
        f"friction of {', '.join(map(repr, _feeling(model)))} grows with what it adds to its own "
        "load, so that no acceleration satisfies both: the mechanism locks or jams there; take a "
        "smaller coefficient, or let the joint give way (Bushing)"
    )


def forces_at(tau: Any, f_ext: Any, p: Array) -> tuple[Any, Any]:
    """Forces as they acted in a run with the parameters p, which may be constant joint forces."""
    if tau is None or callable(tau) or isinstance(tau, tuple) or not len(p):
        return with_parameters(tau, p), with_parameters(f_ext, p)
    return p, f_ext
