"""Freedoms whose motion is prescribed, in a run that keeps them among its states.

At each instant hybrid dynamics (book, §9.1) finds the joint forces that make prescribed freedoms
accelerate as their motion does. These forces are a law tau(t, q, v) like any other, so that all
that works with forces works with prescribed motion: loops and their formulations, tracing, exact
Jacobians, lanes. (A joint that is to have no states at all is :class:`~multibody.Driven`.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.tracing import TracingError, traced
from integrators.tracing.symbols.symbol import Symbol

from ...checks import Array, ArrayLike, real_array
from ...dynamics.acting import acting
from ...dynamics.hybrid.articulated import hybrid_articulated
from ...dynamics.hybrid.closed import hybrid_closed
from ...dynamics.hybrid.composite import hybrid_composite
from ...dynamics.hybrid.functions import freedoms_named, hybrid_along, hybrid_dynamics
from ...dynamics.hybrid.selection import hybrid_tree
from ...dynamics.loops.closed_loop import REGULARISATION
from ...dynamics.loops.multipliers import EPSILON
from ...dynamics.trees.factored import is_shallow
from ...joints.motions import time_slopes
from ..forces import force_laws, table_law
from ..traced import set_forces

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["PrescribedMotion"]

#: How far a start that is given may be from the prescribed motion, in parts of its size.
START_TOLERANCE = 1e-6

#: How far a run may leave the prescribed motion, in parts of its size, before it is told.
FOLLOWED = 1e-3


class _Motion(NamedTuple):
    """Motion of some freedoms, and the time that it is known for.

    Position and velocity are functions of time, the acceleration one of (t, q, v), of numbers or
    symbols. A motion that is a law of accelerations has no positions of its own: NaN.
    """

    position: Callable[[float], Array]
    velocity: Callable[[float], Array]
    acceleration: Callable[[Any, Any, Any], Any]
    start: float = -np.inf
    end: float = np.inf
    is_law: bool = False


class PrescribedMotion:
    """Motions of a model's freedoms, and the forces that they take.

    Parameters
    ----------
    model
        The model.
    prescribed
        For each body, variable or place in v: a function of time, a table, a spline or a law; see
        :func:`~multibody.as_ivp`.
    """

    def __init__(self, model: Model, prescribed: Any) -> None:
        if not isinstance(prescribed, Mapping) or not prescribed:
            raise TypeError(
                "prescribed: expected a dictionary {body or variable: motion}, received "
                f"{prescribed!r:.80}"
            )
        if model.rigid_contacts:
            raise ValueError(
                f"prescribed: {model.name!r} has contacts, whose impacts would have to leave "
                "prescribed velocities alone; make the joint a Driven one"
            )
        self.model = model
        self.places = freedoms_named(model, list(prescribed))
        self.forward = ~np.isin(np.arange(model.nv), self.places)
        # Freedoms with a motion in time, in v and in q; others have a law of accelerations.
        self.followed: list[int] = []
        self.q_places: list[int] = []
        self.motions: list[_Motion] = []
        for key, motion in prescribed.items():
            own = freedoms_named(model, [key])
            if not own:
                raise ValueError(f"prescribed[{key!r}]: its joint has no freedom to prescribe")
            made = _motion(motion, f"prescribed[{key!r}]", len(own))
            self.motions.append(made)
            if not made.is_law:
                self.followed += own
                self.q_places += [_position_place(model, k) for k in own]

    # ------------------------------------------------------------------ along time

    def position(self, t: float) -> Array:
        """Where the motions in time are, in the order of `followed`."""
        return np.concatenate([np.zeros(0), *(m.position(t) for m in self._in_time)])

    def velocity(self, t: float) -> Array:
        """First derivatives."""
        return np.concatenate([np.zeros(0), *(m.velocity(t) for m in self._in_time)])

    @property
    def _in_time(self) -> list[_Motion]:
        return [m for m in self.motions if not m.is_law]

    def accelerations(self, t: Any, q: Any, v: Any) -> Any:
        """Second derivatives, of numbers or symbols, as nv numbers; zero for the others."""
        found = np.concatenate([m.acceleration(t, q, v) for m in self.motions])
        out = np.zeros(self.model.nv, dtype=found.dtype)
        out[self.places] = found
        return out

    def started(
        self, q0: ArrayLike | None, v0: ArrayLike | None, span: tuple[float, float]
    ) -> tuple[Array, Array]:
        """Position and velocity at the start; what is not given follows the motion."""
        model, t0 = self.model, span[0]
        for motion in self.motions:
            if min(span) < motion.start or max(span) > motion.end:
                raise ValueError(
                    f"prescribed: the motion is known from t = {motion.start:g} to {motion.end:g}, "
                    f"and the run goes from {span[0]:g} to {span[1]:g}; give a longer table"
                )
        start = []
        for name, value, places, wanted in (
            ("q", q0, self.q_places, self.position(t0)),
            ("v", v0, self.followed, self.velocity(t0)),
        ):
            if not np.isfinite(wanted).all():
                raise ValueError(f"prescribed: the motion has no finite {name} at t = {t0:g}")
            if value is None:
                given = model.neutral() if name == "q" else np.zeros(model.nv)
                given[places] = wanted
            else:
                given = model.check(name, value)
                off = np.abs(given[places] - wanted)
                worst = int(np.argmax(off)) if len(off) else -1
                if worst >= 0 and off[worst] > START_TOLERANCE * (1.0 + abs(wanted[worst])):
                    names = model.q_names if name == "q" else model.v_names
                    raise ValueError(
                        f"{name}0: the motion prescribed for {names[places[worst]]} starts with "
                        f"{wanted[worst]:.9g}, received {given[places[worst]]:.9g}; start where it "
                        f"does, or leave {name}0 out"
                    )
            start.append(given)
        return start[0], start[1]

    # ------------------------------------------------------------------ forces

    def forces(self, tau: Any, f_ext: Any, params: ArrayLike) -> tuple[Any, Array]:
        """Joint forces as a function, tau of forward freedoms as given, and its parameters."""
        model = self.model
        tau_law, force_law, p0 = force_laws(model, tau, f_ext, params)

        def law(t: Any, q: Any, v: Any, p: Any) -> Any:
            given = None if tau_law is None else tau_law(t, q, v, p)
            outside = None if force_law is None else force_law(t, q, v, p)
            total = self._forces(t, q, v, given, outside)
            if model.elements:  # they act besides what is given here
                total = total - acting(model, t, q, v).joint_forces()
            return total

        return (law if len(p0) else lambda t, q, v: law(t, q, v, p0)), p0

    def _forces(self, t: Any, q: Any, v: Any, tau: Any, f_ext: Any) -> Any:
        model = self.model
        known = np.zeros(model.nv) if tau is None else np.where(self.forward, tau, 0.0)
        a = self.accelerations(t, q, v)
        arrays = (q, v, known, a, () if f_ext is None else f_ext)
        if not isinstance(t, Symbol) and all(np.asarray(x).dtype != object for x in arrays):
            return hybrid_along(model, self.forward, float(t), q, v, known, a, f_ext)
        w = hybrid_tree(model).symbolic(self.forward)
        w.t[0], w.q[:], w.v[:] = t, q, v
        set_forces(model, w, None, f_ext)
        w.tau_known[:], w.a_known[:] = known, a
        if len(model.tree.acting_rows):
            w.stabilise[:] = 0.0
            w.stabilise[EPSILON] = REGULARISATION
            hybrid_closed(w)
        elif is_shallow(w.parent_v):
            hybrid_composite(w)
        else:
            hybrid_articulated(w)
        return w.tau

    def check_start(self, t: float, q: Array, v: Array) -> None:
        """Raise where the forces are not determined, before a run begins."""
        forward = np.flatnonzero(self.forward).tolist()
        hybrid_dynamics(self.model, q, v, a=self.accelerations(t, q, v), forward=forward, t=t)

    def applied(
        self,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        span: tuple[float, float],
        tau: Any,
        f_ext: Any,
        params: ArrayLike,
    ) -> tuple[Array, Array, Any, Array]:
        """Start, joint forces and parameters of a run that follows the motions, all checked."""
        start = self.started(q0, v0, span)
        self.check_start(span[0], *start)
        return *start, *self.forces(tau, f_ext, params)

    # ------------------------------------------------------------------ afterwards

    def review(self, given: Callable[..., Any] | None) -> Callable[..., Any]:
        """Review of runs (see :class:`integrators.IVP`): whether the motion was followed.

        Where a motion jumps or changes its velocity at once, its second derivative does not tell.
        """

        def told(problem: Any, t: Array, y: Array, rtol: float | None) -> Any:
            status, text = (given and given(problem, t, y, rtol)) or (None, "")
            remark = self._departure(t, self._states(problem, t, y))
            if not remark:
                return (status, text) if status is not None or text else None
            return status, f"{text}; {remark}" if text else remark

        return told

    def _states(self, problem: Any, t: Array, y: Array) -> Array:
        """[q; v] in columns, of a run in whatever variables a formulation has."""
        return np.concatenate(problem.split_along(t, y)) if hasattr(problem, "split_along") else y

    def _departure(self, t: Array, y: Array) -> str:
        if not len(t) or not self.followed:
            return ""
        nq = self.model.nq
        wanted = np.array([[*self.position(float(s)), *self.velocity(float(s))] for s in t]).T
        rows = [*self.q_places, *(nq + k for k in self.followed)]
        off = np.abs(y[rows] - wanted)
        size = np.nanmax(np.abs(wanted), axis=1, initial=0.0, keepdims=True)
        wrong = ~(off <= FOLLOWED * (size + START_TOLERANCE))
        if not wrong.any():
            return ""
        first = int(np.argmax(wrong.any(axis=0)))
        row = int(np.argmax(wrong[:, first]))
        names = (*self.model.q_names, *self.model.v_names)
        return (
            f"the run leaves the motion prescribed for {names[rows[row]]} at t = {t[first]:.6g}: "
            f"{y[rows[row], first]:.6g} where {wanted[row, first]:.6g} is prescribed; either the "
            "motion jumps in position or velocity there, which takes an impulse that forces do not "
            "have, or ends, or the loops do not allow it, or steps are too long"
        )


# ---------------------------------------------------------------------- motions as users give them


def _position_place(model: Model, k: int) -> int:
    """Where in q the position of a freedom is, for joints with q̇ = v."""
    for body, q, v in zip(model.bodies, model.q_index, model.v_index):
        if v.start <= k < v.stop:
            if not body.joint.rate_is_velocity:
                raise ValueError(
                    f"prescribed: {model.v_names[k]} is no rate of a position variable; prescribe "
                    f"joints with q̇ = v, or make the joint of {body.name!r} a Driven one"
                )
            return q.start + k - v.start
    raise IndexError(k)


def _motion(motion: Any, name: str, m: int) -> _Motion:
    if hasattr(motion, "derivative"):
        return _of_spline(motion, name, m)
    if callable(motion):
        return (_of_law if _takes_state(motion) else _of_function)(motion, name, m)
    if isinstance(motion, tuple) and len(motion) == 2:
        return _of_spline(_spline(*motion, name, m), name, m)
    raise TypeError(
        f"{name}: expected a function of time, a table (times, positions), a spline, or a law of "
        f"accelerations a(t, q, v), received {motion!r:.80}"
    )


def _takes_state(function: Callable[..., Any]) -> bool:
    """Whether a function wants t, q and v."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    ordinary = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(a.default is a.empty and a.kind in ordinary for a in given) == 3


def _of_law(law: Callable[[Any, Any, Any], Any], name: str, m: int) -> _Motion:
    """Accelerations as a function of time and state, of numbers or symbols."""

    def acceleration(t: Any, q: Any, v: Any) -> Any:
        return _shaped(law(t, q, v), name, m)

    def unknown(t: float) -> Array:
        return np.full(m, np.nan)

    return _Motion(unknown, unknown, acceleration, is_law=True)


def _shaped(found: Any, name: str, m: int) -> Any:
    """What a user's function returned, as m numbers."""
    if found is None:
        raise ValueError(f"{name}: the motion returned None; is its `return` missing?")
    values = np.asarray(found)
    if values.shape != (m,) and not (m == 1 and values.ndim == 0):
        raise ValueError(
            f"{name}: expected a motion of {m} freedoms, received shape {values.shape}"
        )
    return values.reshape(m)


def _of_function(function: Callable[[Any], Any], name: str, m: int) -> _Motion:
    """A function of time, traced to be differentiated where that can be done."""

    def position(t: Any, x: Any) -> Any:
        return _shaped(function(t), name, m)

    try:
        q = traced(position, n=1, outputs=m)
        v = traced(lambda t, x: q.time_derivative()(t, x), n=1, outputs=m)
        a = v.time_derivative()
    except TracingError:
        return _of_called(lambda t: np.asarray(position(t, None), dtype=float), name)
    none = np.zeros(1)
    return _Motion(lambda t: q(t, none), lambda t: v(t, none), lambda t, *_: a(t, none))


def _of_called(position: Callable[[float], Array], name: str) -> _Motion:
    """A function of time that cannot be traced: called, and differentiated by differences."""

    def acceleration(t: Any, q: Any, v: Any) -> Any:
        if isinstance(t, Symbol):
            raise TracingError(f"{name}: the motion is a function that cannot be traced")
        return time_slopes(position, float(t))[2]

    return _Motion(position, lambda t: time_slopes(position, t)[1], acceleration)


def _spline(times: ArrayLike, values: ArrayLike, name: str, m: int) -> Any:
    """Cubic spline through a table: smooth enough to have accelerations."""
    from scipy.interpolate import CubicSpline

    t, x = real_array(times, f"{name}: times"), real_array(values, f"{name}: positions")
    if t.ndim != 1 or len(t) < 2 or x.shape[:1] != t.shape or np.any(np.diff(t) <= 0.0):
        raise ValueError(
            f"{name}: expected a table (times, positions) with at least two rising times and a "
            f"row of {m} for each, received times of shape {t.shape} and positions of {x.shape}"
        )
    return CubicSpline(t, x)


def _of_spline(spline: Any, name: str, m: int) -> _Motion:
    """A spline of SciPy: cubic ones are traced, others are called."""
    from scipy.interpolate import CubicSpline

    knots = np.asarray(getattr(spline, "x", getattr(spline, "t", [])), dtype=float)
    if not knots.size:
        raise TypeError(
            f"{name}: expected a spline with knots, as SciPy's, received {spline!r:.80}"
        )
    first, last = float(knots[0]), float(knots[-1])
    velocity, second = spline.derivative(), spline.derivative(2)

    def values(function: Any) -> Callable[[float], Array]:
        def at(t: float) -> Array:
            if not first <= t <= last:
                return np.full(m, np.nan)
            found = np.asarray(function(t), dtype=float).reshape(-1)
            if found.shape != (m,):
                raise ValueError(
                    f"{name}: expected a motion of {m} freedoms, received {found.size} numbers"
                )
            return found

        return at

    values(spline)(first)
    if isinstance(spline, CubicSpline):  # its second derivative is linear between knots
        ramps = table_law(knots, np.array([values(second)(t) for t in knots]))
        acceleration: Callable[..., Any] = lambda t, q, v: ramps(t, q, v, None)  # noqa: E731
    else:
        called = values(second)

        def acceleration(t: Any, q: Any, v: Any) -> Any:
            if isinstance(t, Symbol):
                raise TracingError(f"{name}: splines other than CubicSpline are not traced")
            return called(float(t))

    return _Motion(values(spline), values(velocity), acceleration, first, last)
