"""Whether G, γ and ν, as a user gave them, are derivatives of g: compared with differences.

A wrong sign in γ leaves no trace where positions are projected: the constraints hold to rounding,
and the system ends in the wrong place. So what was given is compared, where the system starts and
at another place near by, with

    G u = d/ds g(t, q + s Q u),                 Q u = rate(t, q, u) − rate(t, q, 0),
    ν = −d/ds g(t + s, q + s rate(t, q, 0)),
    γ = −d/ds [G v − ν](t + s, q + s rate(t, q, v)),

along one seeded direction each: a dozen evaluations a place. Differences are central, for two steps
of which one is half the other: their distance says how good they are, and a bend at the place
itself (a motion that starts there with a jump) shows in one-sided differences that do not approach
each other. What cannot be judged by differences passes, and so do functions that are not defined
near by.

A user may have used g = 0 and G v = ν in writing G and γ. So velocities are made consistent, places
near by satisfy the constraints; where a gap is left the derivatives may be off by as much.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .system import Mechanical

__all__ = ["DERIVATIVE_TOLERANCE", "check_derivatives"]

Array = NDArray[np.float64]

DERIVATIVE_TOLERANCE = 1e-5
"""Largest relative error of derivatives that a user gives. Written out they are right to rounding;
made from differences by the user they have errors of about ε^(1/3) = 6e-6."""

STEPS = (1e-3, 1e-5, 1e-7)  # relative to the coordinates; the first that will do
HALVED = (1.0, 0.5)  # lengths of steps that are compared with one another
SEVERAL = (1.0, 0.5, 0.83, 0.61, 0.37)  # more of them: rounding errors can agree by chance
FINER = (1e-2, 1e-4)  # parts of all steps, before anything is called wrong
DECISIVE = 0.1  # doubt, relative to what is between two values, that lets one tell which is right
DOUBT = 10.0  # so many times the distance of two differences may be their error
GAP = 10.0  # so many times a relative gap may be the effect of using g = 0
APART = (2e-2, 2e-4)  # distance of the places, relative to the coordinates; the first that closes
ITERATIONS = 8  # of Gauss and Newton, to reach a place where the constraints hold
CLOSED = 1e-9  # relative to the coordinates
SEED = 20240229
PLACES = 2


class UnknownError(Exception):
    """The functions are not defined where a difference needs them."""


@dataclass(frozen=True)
class _Place:
    """A position with a consistent velocity, and the sizes that steps are relative to."""

    t: float
    q: Array
    v: Array
    size: float
    slack: float  # relative error that a gap excuses
    u: Array  # a direction


@dataclass(frozen=True)
class _Difference:
    """A derivative by differences, and the error that it may have, entry by entry."""

    value: Array
    doubt: Array


def check_derivatives(mechanical: Mechanical) -> None:
    """Raise ValueError where the jacobian, bias or velocity_target given contradicts g.

    Examples
    --------
    >>> from integrators.dae import Mechanical
    >>> Mechanical(  # doctest: +ELLIPSIS
    ...     np.eye(2), lambda t, q, v: [0.0, -9.81], lambda t, q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
    ...     lambda t, q: [[q[1], q[0]]],
    ...     q0=[1.0, 0.0], v0=[0.0, 0.0], t_span=(0, 1),
    ... )
    Traceback (most recent call last):
        ...
    ValueError: jacobian contradicts constraint: G[0, 0] is 0 where differences of g give 1...
    """
    given = mechanical.given
    if given["jacobian"] is None and given["bias"] is None and given["velocity_target"] is None:
        return
    random = np.random.default_rng(SEED)
    places = []
    with np.errstate(all="ignore"):
        for number in range(PLACES):
            with contextlib.suppress(UnknownError):
                places.append(_place(mechanical, random, number))
        for check in (_check_jacobian, _check_target, _check_bias):  # each relies on the one before
            for place in places:
                with contextlib.suppress(UnknownError):
                    check(mechanical, place)


# -------------------------------------------------------------------- places


def _value(function: Callable[..., Any], *arguments: Any) -> Array:
    """A function of the user near the start, where it need not be defined."""
    try:
        found = np.asarray(function(*arguments), dtype=float)
    except Exception as error:
        raise UnknownError from error
    if not np.isfinite(found).all():
        raise UnknownError
    return found


def _place(mechanical: Mechanical, random: np.random.Generator, number: int) -> _Place:
    """The start, for number 0, or a place near by, along a velocity that the constraints allow."""
    t, t1 = mechanical.t_span
    q = mechanical.q0.copy()
    size = float(np.abs(q).max()) or 1.0
    span = min(abs(t1 - t), 1.0) or 1.0
    fast = max(float(np.abs(mechanical.v0).max()), size / span)
    if number == 0:
        found = _closed(mechanical, t, q, size)
        q, left = (q, _distance(mechanical, t, q)) if found is None else (found, CLOSED * size)
    else:
        t, q = _near(mechanical, _direction(random, mechanical.nv) * fast, size, span)
        left = CLOSED * size
    v = _allowed(mechanical, t, q, mechanical.v0 + _direction(random, mechanical.nv) * fast)
    return _Place(t, q, v, size, GAP * left / size, _direction(random, mechanical.nv))


def _near(mechanical: Mechanical, wish: Array, size: float, span: float) -> tuple[float, Array]:
    """A time and position a little ahead of the start, where the constraints hold."""
    t0, t1 = mechanical.t_span
    v = _allowed(mechanical, t0, mechanical.q0, wish)
    q_dot = _value(mechanical.parts.rate, t0, mechanical.q0, v, mechanical.params)
    speed = float(np.abs(q_dot).max())
    for apart in APART if speed else ():  # without any speed the constraints hold everything fast
        ahead = float(np.copysign(apart * min(size / speed, span), t1 - t0))
        q = _closed(mechanical, t0 + ahead, mechanical.q0 + ahead * q_dot, size)
        if q is not None:
            return t0 + ahead, q
    raise UnknownError


def _closed(mechanical: Mechanical, t: float, q: Array, size: float) -> Array | None:
    """A position near q where g = 0, by Gauss's and Newton's iteration; None if that diverges."""
    before = np.inf
    for _ in range(ITERATIONS):
        u = _correction(mechanical, t, q)
        left = float(np.abs(u).max())
        if left <= CLOSED * size:
            return q
        if not left < before:
            return None
        q = _value(lambda x=q, w=u: mechanical.moved(t, x, w))
        before = left
    return None


def _correction(mechanical: Mechanical, t: float, q: Array) -> Array:
    """The smallest displacement that closes the linearised constraints."""
    G = _value(mechanical.parts.jacobian, t, q, mechanical.params)
    g = _value(mechanical.parts.constraint, t, q, mechanical.params)
    return np.asarray(np.linalg.lstsq(G, -g, rcond=None)[0], dtype=float)


def _distance(mechanical: Mechanical, t: float, q: Array) -> float:
    return float(np.abs(_correction(mechanical, t, q)).max())


def _direction(random: np.random.Generator, n: int) -> Array:
    """Components of either sign, none of them small."""
    return random.choice([-1.0, 1.0], n) * random.uniform(0.5, 1.0, n)


def _allowed(mechanical: Mechanical, t: float, q: Array, v: Array) -> Array:
    """The velocity nearest to v with G v = ν."""
    G = _value(mechanical.parts.jacobian, t, q, mechanical.params)
    nu = _value(mechanical.parts.target, t, q, mechanical.params)
    return np.asarray(v + np.linalg.lstsq(G, nu - G @ v, rcond=None)[0], dtype=float)


# -------------------------------------------------------------------- differences


def _difference(
    along: Callable[[float], Array], unit: float, scale: Array, parts: tuple[float, ...] = HALVED
) -> _Difference:
    """The derivative of along(s) at s = 0; `unit` is what the steps are relative to."""
    middle = along(0.0)
    value, doubt = np.zeros_like(middle), np.full(middle.shape, np.inf)
    for step in STEPS:
        lengths = [step * unit * part for part in parts]
        sides = [(along(h), along(-h)) for h in lengths]
        slopes = np.array([(a - b) / (2 * h) for (a, b), h in zip(sides, lengths)])
        bends = [np.abs(a - 2 * middle + b) / h for (a, b), h in zip(sides, lengths)]
        # Where along is smooth the bend is proportional to h; where it has a corner it stays.
        corner = np.where(bends[1] > 0.75 * bends[0], bends[1], 0.0)
        distance = DOUBT * np.ptp(slopes, axis=0) + corner
        extrapolated = slopes[1] + (slopes[1] - slopes[0]) / 3  # Richardson
        # A shorter step must confirm the longer one: rounding can make all of them zero.
        better = (distance < doubt) & (np.abs(extrapolated - value) <= doubt)
        value, doubt = np.where(better, extrapolated, value), np.where(better, distance, doubt)
        if np.all(doubt <= DERIVATIVE_TOLERANCE * scale):
            break
    return _Difference(value, doubt)


def _contradiction(
    found: Array,
    along: Callable[[float], Array],
    unit: float,
    scale: Array,
    slack: float,
    rows: NDArray[np.bool_],
) -> tuple[int, float] | None:
    """The first entry that is not what differences say, and what they say; None if all are."""
    for parts in (HALVED, SEVERAL):  # who accuses looks twice
        right = _difference(along, unit, scale, parts)
        allowed = right.doubt + (DERIVATIVE_TOLERANCE + slack) * (scale + np.abs(right.value))
        wrong = rows & ~(np.abs(found - right.value) <= allowed)
        if not wrong.any():
            return None
    for part in FINER:  # nor does it overlook what changes within its steps
        look = _difference(along, part * unit, scale, SEVERAL)
        allowed = look.doubt + (DERIVATIVE_TOLERANCE + slack) * (scale + np.abs(look.value))
        decisive = look.doubt < DECISIVE * np.abs(found - right.value)
        wrong &= ~(decisive & (np.abs(found - look.value) <= allowed))
    if not wrong.any():
        return None
    row = int(np.argmax(wrong))
    return row, float(right.value[row])


# -------------------------------------------------------------------- the three comparisons


def _check_jacobian(mechanical: Mechanical, place: _Place) -> None:
    if mechanical.given["jacobian"] is None:
        return
    parts, p, t, q = mechanical.parts, mechanical.params, place.t, place.q
    still = _value(parts.rate, t, q, np.zeros(mechanical.nv), p)
    G = _value(parts.jacobian, t, q, p)

    def compare(u: Array) -> tuple[int, float] | None:
        shift = _value(parts.rate, t, q, u, p) - still
        return _contradiction(
            G @ u,
            lambda s: _value(parts.constraint, t, q + s * shift, p),
            place.size / (float(np.abs(shift).max()) or 1.0),
            np.abs(G) @ np.abs(u),
            place.slack,
            mechanical.holonomic,
        )

    found = compare(place.u)
    if found is None:
        return
    row, expected = found
    entry, value = f"(G u)[{row}], u = {_list(place.u)},", float(G[row] @ place.u)
    for column, unit in enumerate(np.eye(mechanical.nv)):  # which of its entries it is
        found = compare(unit)
        if found is not None:
            row, expected = found
            entry, value = f"G[{row}, {column}]", float(G[row, column])
            break
    raise ValueError(
        f"jacobian contradicts constraint: {entry} is {value:.6g} where differences of g give "
        f"{expected:.6g}{_reversed(value, expected)}, at t = {t:.6g}, q = {_list(q)}. "
        "G[i, j] is the derivative of g[i] along velocity j. Correct one of them, or leave "
        f"jacobian and bias out to have them derived from constraint{_ACCEPT}"
    )


def _check_target(mechanical: Mechanical, place: _Place) -> None:
    parts, p, t, q = mechanical.parts, mechanical.params, place.t, place.q
    given = mechanical.given
    if given["velocity_target"] is None and (given["jacobian"] is None or given["bias"] is None):
        return  # derived from g
    drift = _value(parts.rate, t, q, np.zeros(mechanical.nv), p)
    nu = _value(parts.target, t, q, p)
    G = _value(parts.jacobian, t, q, p)
    found = _contradiction(
        nu,
        lambda s: -_value(parts.constraint, t + s, q + s * drift, p),
        _time_unit(mechanical, drift, place),
        np.abs(nu) + np.abs(G) @ np.abs(place.v),
        place.slack,
        mechanical.holonomic,
    )
    if found is None:
        return
    row, expected = found
    where = f"at t = {t:.6g}, q = {_list(q)}"
    if given["velocity_target"] is None:
        raise ValueError(
            f"constraint depends on time (differences give −∂g[{row}]/∂t = {expected:.6g} "
            f"{where}), but jacobian and bias are given without velocity_target, which makes it "
            "zero. Give velocity_target(t, q) = −∂g/∂t, or leave jacobian and bias out to have all "
            f"of them derived from constraint{_ACCEPT}"
        )
    raise ValueError(
        f"velocity_target contradicts constraint: ν[{row}] is {nu[row]:.6g} where differences of g "
        f"give {expected:.6g}{_reversed(nu[row], expected)}, {where}. "
        "ν = −∂g/∂t, so that ġ = G v − ν. Correct it, or leave velocity_target, jacobian and bias "
        f"out to have them derived from constraint{_ACCEPT}"
    )


def _check_bias(mechanical: Mechanical, place: _Place) -> None:
    if mechanical.given["bias"] is None:
        return
    parts, p, t, q, v = mechanical.parts, mechanical.params, place.t, place.q, place.v
    q_dot = _value(parts.rate, t, q, v, p)
    gamma = _value(parts.bias, t, q, v, p)

    def speed(s: float) -> Array:
        x = q + s * q_dot
        G = _value(parts.jacobian, t + s, x, p)
        return np.asarray(_value(parts.target, t + s, x, p) - G @ v, dtype=float)

    unit = _time_unit(mechanical, q_dot, place)
    G = _value(parts.jacobian, t, q, p)
    # G changes by its own size where positions change by theirs.
    scale = np.abs(gamma) + np.abs(G).max(axis=1) * float(np.abs(v).max()) / unit
    every = np.ones(mechanical.m, dtype=bool)
    found = _contradiction(gamma, speed, unit, scale, place.slack, every)
    if found is None:
        return
    row, expected = found
    derived = "" if not mechanical.holonomic.all() else " to have it derived from constraint"
    remedy = f", or leave it out{derived}" if derived else ""
    raise ValueError(
        f"bias contradicts jacobian: γ[{row}] is {gamma[row]:.6g} where differences of G v − ν "
        f"give {expected:.6g}{_reversed(gamma[row], expected)}, at t = {t:.6g}, "
        f"q = {_list(q)}, v = {_list(v)}. γ is what G v̇ shall be: γ = −d(G v − ν)/dt with v held "
        f"fast, for the pendulum g = (x² + y² − l²)/2 it is −ẋ² − ẏ². Correct it{remedy}{_ACCEPT}"
    )


def _time_unit(mechanical: Mechanical, q_dot: Array, place: _Place) -> float:
    """A time in which neither positions nor the motion as a whole change much."""
    t0, t1 = mechanical.t_span
    speed = float(np.abs(q_dot).max())
    span = abs(t1 - t0) or 1.0
    return min(place.size / speed, span) if speed else span


_ACCEPT = "; check_derivatives=False accepts them as they are"


def _reversed(found: float, expected: float) -> str:
    near = abs(found + expected) <= 1e-3 * abs(expected)
    return " (its sign is reversed)" if near and expected else ""


def _list(values: Array) -> str:
    shown = ", ".join(f"{x:.5g}" for x in values[:8])
    return f"[{shown}{', …' if len(values) > 8 else ''}]"
