"""Forward sensitivities: how a solution changes with parameters and initial values.

Along y' = f(t, y, p) the derivative S = dy/dα in a direction (dp/dα, dy₀/dα) obeys the variational
equation

    S' = (∂f/∂y) S + (∂f/∂p) dp/dα,   S(t₀) = dy₀/dα,

whose derivatives are exact, from the traced f. It is solved together with y, one column for each
direction, by any method, and the error of all of it is controlled (Hairer, Nørsett & Wanner,
I.14).

At an event g(t, y, p) = 0 with a reset y⁺ = r(t, y, p) the instant itself moves with α:

    dτ/dα = −(g_y S + g_p dp/dα)/(g_t + g_y f⁻),
    S⁺ = r_y S + r_p dp/dα + (r_t + r_y f⁻ − f⁺) dτ/dα,

the saltation matrix in one direction. A projection y⁺ = P(t, y, p) takes S⁺ = P_y S + P_p dp/dα.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import suggest
from ...hybrid.holding import Unheld
from ...mass import Divided
from ...problem import IVP, Event, accepts_params
from .jumps import REMEDY, first_jump, reset_times
from .tolerances import first_tolerances, tightened

__all__ = ["Sensitivities", "with_sensitivities", "with_traced_f"]

Array = NDArray[np.float64]

ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass
class Sensitivities:
    """The augmented problem, and the way back from its solutions.

    Attributes
    ----------
    problem
        The problem whose solution is wanted.
    names
        Of the directions.
    dp, dy0
        Directions in parameters and initial values, a row for each.
    augmented
        The problem for [y; S₁; S₂; …].
    f
        The right-hand side, traced.
    """

    problem: IVP
    names: tuple[str, ...]
    dp: Array
    dy0: Array
    augmented: IVP
    f: Any

    def solve(self, run: Callable[[Array], Any], rtol: float, own: Array, outputs: bool) -> Any:
        """Solution by ``run(atol)``, repeated where it was too loose for small sensitivities.

        What is looked at are final states, and those at output times if there are `outputs`:
        what ``solve_many`` has as well. ``own`` are the tolerances of the state itself.
        """
        used: Array | None = first_tolerances(own, self.dp, self.problem.params)
        done = 0
        while used is not None:
            found = run(used)
            if not found.success:
                break
            states = np.column_stack([found.y[:, : None if outputs else 0], found.reached[1]])
            used = tightened(used, own, rtol, states, done)
            done += 1
        return self.unpack(found)

    def unpack(self, found: Any) -> Any:
        """Solution of the problem itself, with ``sensitivities`` and, at events, their times'."""
        n = self.problem.n
        resets = reset_times(self.problem.events, found.t_events)
        jump = first_jump(self.f, found.t, found.y[:n], self.problem.params, resets)
        if jump is not None:
            raise ValueError(f"sensitivities: f jumps at about t = {jump:.6g}; {REMEDY}")
        out = object.__new__(type(found))  # `copy` leaves out what files cannot hold
        out.__dict__.update({k: v for k, v in found.__dict__.items() if k != "quality"})
        out.problem = self.problem
        out.sensitivities = self._split(found.y)
        out.y = found.y[:n]
        if found.reached is not None:
            out.reached = found.reached[0], found.reached[1][:n]
            out.final_sensitivities = self._split(found.reached[1])
        out.y_events = [y[:, :n] if len(y) else y for y in found.y_events]
        out.event_sensitivities = [
            self._of_event(k, times, states)
            for k, (times, states) in enumerate(zip(found.t_events, found.y_events))
        ]
        if found.sol is not None:
            out.sol = copy.copy(found.sol)
            out.sol.y, out.sol.Q = found.sol.y[:, :n], found.sol.Q[:, :, :n]
        return out

    def _split(self, z: Array) -> dict[str, Array]:
        n = self.problem.n
        return {name: z[n * (j + 1) : n * (j + 2)] for j, name in enumerate(self.names)}

    def _of_event(self, k: int, times: Array, states: Array) -> dict[str, Array]:
        """dτ/dα of each occurrence of an event, by name."""
        rate = _event_rates(self.problem, self.problem.events[k], self.dp)
        moved = [rate(t, z) for t, z in zip(times, states)]
        return {
            name: np.array([row[j] for row in moved]).reshape(len(times))
            for j, name in enumerate(self.names)
        }


def with_sensitivities(ivp: IVP, wanted: Any) -> Sensitivities:
    """Return the augmented problem for the sensitivities that are wanted; see ``solve``."""
    from ...tracing import traced

    if hasattr(ivp, "consistent_start"):
        raise ValueError(
            "sensitivities: how a consistent start, and the constraints, of a differential-"
            "algebraic system move with parameters is not traced; take differences of two runs by "
            "solve(problem, params=...), which find their starts again"
        )
    if ivp.y0.dtype.kind == "c" or ivp.mass is not None:
        what = "a mass matrix" if ivp.mass is not None else "a complex state"
        raise ValueError(
            f"sensitivities are for real problems y' = f(t, y, p), and this has {what}; write it "
            "as one"
        )
    if ivp.schedule is not None and ivp.schedule.events:
        raise ValueError(
            "sensitivities: states that are sampled jump by rules that are not traced; give the "
            "controller as a continuous one, or take differences of two runs"
        )
    listed = [wanted] if isinstance(wanted, str) else list(wanted)
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(
            "sensitivities: expected different names, at least one, such as 'p[0]' or 'y0[1]', "
            f"received {wanted!r}"
        )
    if isinstance(ivp.f, Divided):
        raise ValueError(
            "sensitivities with mass(t, y) need f and the matrix on symbols: give traced(f), and a "
            "matrix without branches, of at most three rows or symmetric and positive definite; or "
            "write the problem as y' = M⁻¹ f"
        )
    n, k, f = ivp.n, ivp.params.size, _traced_f(ivp)
    rows = [_direction(ivp, name) for name in listed]
    dp, dy0 = np.array([r[0] for r in rows]).reshape(len(rows), k), np.array([r[1] for r in rows])
    q = len(rows)

    def slopes(t: Any, z: Any, p: Any = ()) -> Any:
        y, shifts = z[:n], _given(p, k, q)
        parts = [f(t, y, p[:k]) if k else f(t, y)]
        columns = [z[n * (j + 1) : n * (j + 2)] for j in range(q)]
        by_p = f.parameter_jacobian()(t, y, p[:k]) if k and dp.any() else None
        for S, shift, own in zip(columns, shifts, dp):
            moved = f.jvp()(t, y, S, p[:k]) if k else f.jvp()(t, y, S)
            if by_p is not None and own.any():
                moved = moved + by_p @ shift
            parts.append(moved)
        return np.concatenate(parts)

    # Kept with f, so that a fit, which asks again and again, compiles once.
    key = ("sensitivities", q, tuple(bool(row.any()) for row in dp))
    together = f._derive(key, lambda: traced(slopes, n=n * (q + 1), params=k + dp.size))
    augmented = IVP(
        together,
        np.concatenate([ivp.y0, dy0.ravel()]),
        ivp.t_span,
        params=np.concatenate([ivp.params, dp.ravel()]),
        events=tuple(_event(ivp, f, event, k, q) for event in ivp.events),
        project=_projection(ivp, k, q),
        nonnegative=ivp.nonnegative,
        review=_review(ivp),
        schedule=ivp.schedule,
        name=ivp.name,
    )
    return Sensitivities(ivp, tuple(map(str, listed)), dp, dy0, augmented, f)


def with_traced_f(ivp: IVP) -> IVP:
    """The problem with f traced, for those who ask again and again."""
    return ivp if isinstance(ivp.f, Divided) else ivp.with_(f=_traced_f(ivp))


def _traced_f(ivp: IVP) -> Any:
    from ...tracing import Traced, traced

    f = ivp.f if isinstance(ivp.f, Traced) else traced(ivp.f, n=ivp.n, params=ivp.params.size)
    if f._size is None or f._parameters is None:
        return traced(f.function, n=ivp.n, params=ivp.params.size)
    return f


def _given(p: Any, k: int, q: int) -> Any:
    """Directions in the parameters, which stand behind them."""
    return [p[k * (1 + j) : k * (2 + j)] for j in range(q)] if k else [()] * q


def _direction(ivp: IVP, name: Any) -> tuple[Array, Array]:
    """What changes in p and in y0 with something that has a name."""
    n, k = ivp.n, ivp.params.size
    dp, dy0 = np.zeros(k), np.zeros(n)
    own = getattr(ivp, "sensitivity_direction", None)
    if own is not None and (found := own(name)) is not None:
        return np.asarray(found[0], dtype=float), np.asarray(found[1], dtype=float)
    place = re.fullmatch(r"(p|y0)\[(\d+)\]", str(name))
    if place is not None:
        at, into = int(place[2]), dp if place[1] == "p" else dy0
        if at < len(into):
            into[at] = 1.0
            return dp, dy0
    elif name in ivp.state_names:
        dy0[ivp.state_names.index(name)] = 1.0
        return dp, dy0
    known = [*getattr(ivp, "parameter_names", ()), *(f"p[{i}]" for i in range(k))]
    known += [*(f"y0[{i}]" for i in range(n)), *ivp.state_names]
    raise ValueError(
        f"sensitivities: {name!r} is no parameter and no initial value of this problem"
        f"{suggest(str(name), known)}; there are p[0] … p[{k - 1}] and y0[0] … y0[{n - 1}]"
        if k
        else f"sensitivities: {name!r} is no initial value of this problem"
        f"{suggest(str(name), known)}; there are y0[0] … y0[{n - 1}], and no parameters"
    )


# ---------------------------------------------------------------------- events and projections


def _as_traced(ivp: IVP, function: Any, outputs: int, what: str) -> Any:
    """A function of (t, y, p), traced; its derivatives are needed."""
    from ...tracing import Traced, TracingError, traced

    n, k = ivp.n, ivp.params.size
    takes = k > 0 and accepts_params(function)
    if hasattr(function, "graph"):
        takes = function._takes_p and bool(k)

    def value(t: Any, y: Any, p: Any = ()) -> Any:
        result = function(t, y, p) if takes else function(t, y)
        return np.reshape(np.asarray(result), (outputs,))

    make = partial(traced, value, n=n, params=k, outputs=outputs)
    try:
        if isinstance(function, Traced):
            return function._derive(("values", n, k, outputs), make)
        return make()
    except TracingError as error:
        raise TracingError(
            f"sensitivities need the derivatives of {what}, which cannot be traced: {error}"
        ) from error


def _event_rates(ivp: IVP, event: Event, dp: Array) -> Any:
    """dτ/dα of an event, as a function of t and z = [y; S₁; …], on floats."""
    n, k = ivp.n, ivp.params.size
    g = _as_traced(ivp, event.function, 1, f"event {event.name!r}")
    p = (ivp.params,) if k else ()

    def rates(t: float, z: Array) -> Array:
        y, columns = z[:n], z[n:].reshape(-1, n)
        by_y = np.ravel(g.jacobian()(t, y, *p))
        by_p = np.ravel(g.parameter_jacobian()(t, y, *p)) if k else np.zeros(0)
        by_t = float(np.ravel(g.time_derivative()(t, y, *p))[0])
        along = by_t + by_y @ ivp.rhs(t, y) or np.nan
        return np.array([-(by_y @ S + by_p @ shift) / along for S, shift in zip(columns, dp)])

    return rates


def _event(ivp: IVP, f: Any, event: Event, k: int, q: int) -> Event:
    """Event of the augmented problem; its reset carries the sensitivities across."""
    from ...tracing import traced

    n = ivp.n
    g = _as_traced(ivp, event.function, 1, f"event {event.name!r}")

    def of_state(t: Any, z: Any, p: Any = ()) -> Any:
        return g(t, z[:n], p[:k]) if k else g(t, z[:n])

    function = traced(of_state, n=n * (q + 1), params=k * (1 + q), outputs=1)
    reset = None
    if event.reset is not None:
        reset = _reset(ivp, f, g, event, k, q)
    return Unheld(function, event.direction, event.terminal, reset, event.name)


def _reset(ivp: IVP, f: Any, g: Any, event: Event, k: int, q: int) -> Any:
    n = ivp.n
    r = _as_traced(ivp, event.reset, n, f"the reset of event {event.name!r}")

    def across(t: float, z: Array, p: Any = ()) -> Array:
        y, own, shifts = z[:n], ((p[:k],) if k else ()), _given(p, k, q)
        after = r(t, y, *own)
        before, behind = f(t, y, *own), f(t, after, *own)
        by_y, by_t = r.jacobian()(t, y, *own), r.time_derivative()(t, y, *own)
        g_y, g_t = np.ravel(g.jacobian()(t, y, *own)), np.ravel(g.time_derivative()(t, y, *own))[0]
        along = g_t + g_y @ before
        if abs(along) <= ROUNDING * (abs(g_t) + np.abs(g_y) @ np.abs(before)):
            if np.array_equal(after, y):  # held on the surface
                return z
            raise ArithmeticError(
                f"sensitivities: event {event.name!r} meets its surface without speed at "
                f"t = {t:.9g}, where its time has no derivative; take differences of two runs"
            )
        parts = [after]
        for j in range(q):
            S = z[n * (j + 1) : n * (j + 2)]
            moved, touched = by_y @ S, g_y @ S
            if k:
                moved = moved + r.parameter_jacobian()(t, y, *own) @ shifts[j]
                touched = touched + np.ravel(g.parameter_jacobian()(t, y, *own)) @ shifts[j]
            parts.append(moved - (by_t + by_y @ before - behind) * (touched / along))
        return np.concatenate(parts)

    return across if k else (lambda t, z: across(t, z))


def _projection(ivp: IVP, k: int, q: int) -> Any:
    """Projection of the augmented problem."""
    if ivp.project is None:
        return None
    n, given = ivp.n, ivp.project
    unrolled = getattr(given, "unrolled", None)
    # Traced, with a number behind the state that says whether it is good.
    whole = None if unrolled is None else unrolled()
    if whole is None:
        whole = _as_traced(ivp, given, n, "the projection")
    by_y, knows = whole.jacobian(), bool(whole.k)
    by_p = whole.parameter_jacobian() if knows else None

    def project(t: float, z: Array, p: Any = ()) -> Array:
        y, own, shifts = z[:n], ((p[:k],) if k else ()), _given(p, k, q)
        bound = given(t, y, *own) if k and accepts_params(given) else given(t, y)
        J = np.asarray(by_y(t, y, *(own if knows else ())))[:n]
        parts = [np.asarray(bound)]
        for j in range(q):
            moved = J @ z[n * (j + 1) : n * (j + 2)]
            if by_p is not None:
                moved = moved + np.asarray(by_p(t, y, *own))[:n] @ shifts[j]
            parts.append(moved)
        return np.concatenate(parts)

    return project if k else (lambda t, z: project(t, z))


def _review(ivp: IVP) -> Any:
    if ivp.review is None:
        return None
    given, n, k = ivp.review, ivp.n, ivp.params.size

    def review(together: IVP, t: Array, z: Array, rtol: Any) -> Any:
        # Many runs share this function: parameters are those of the run that is looked at.
        own = dict(y0=together.y0[:n], params=together.params[:k], t_span=together.t_span)
        return given(ivp.with_(**own), t, z[:n], rtol)

    return review
