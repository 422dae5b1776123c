"""Where runs start: as the mechanism says, in a given state, or assembled from a guess.

A number of a start may be the name of a parameter that the study varies: then each run has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multibody.runs.observing.quantities import Seen, State

__all__ = ["Assembled", "FoundBy", "GivenState", "Start", "start_of"]

Array = NDArray[np.float64]
Parameters = Mapping[str, float]

#: A number, the name of a parameter, or a list of these.
Value = Any

#: How far a joint is led at once (radians or metres), and how often at most.
STRIDE, MOST_STRIDES = 0.2, 500


class Start:
    """A rule for the position and velocity at the start."""

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the study that it uses."""
        return ()

    def state(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """State [q; v] at the start, given the usual one."""
        return usual

    def plain(self) -> Any:
        """The rule as it stands in a file."""
        return {}


@dataclass(frozen=True)
class Assembled(Start):
    """Loops closed by :func:`multibody.assemble`, velocities made consistent.

    Parameters
    ----------
    fixed
        Positions of joints that assembly keeps, by the names of their bodies.
    guess
        Position from which it starts: all of q, or positions by the names of bodies, the rest as
        the mechanism usually starts.
    speeds
        Velocities of joints that are kept, by the names of their bodies; all others follow from
        the loops. Everything is at rest if there are none.

    Notes
    -----
    Most loops can be closed in more than one way. All runs of a study are to be closed in the same
    one, that of the run in the middle: one that closes on another branch fails with a message. A
    mechanism of the catalogue is led there from its usual start, in short strides, so that it stays
    on the branch that it has there.

    Examples
    --------
    >>> Assembled(fixed={"crank": 4.0}).plain()
    {'assembled': {'fixed': {'crank': 4.0}}}
    """

    fixed: Mapping[str, Value] = field(default_factory=dict)
    guess: Any = None
    speeds: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("fixed", "speeds"):
            if not isinstance(getattr(self, name), Mapping):
                raise ValueError(
                    f"Assembled: expected {name} as values by the names of bodies, such as "
                    f"{{'crank': 4.0}}, received {getattr(self, name)!r}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the study that it uses."""
        guess = self.guess if isinstance(self.guess, Mapping) else {"": self.guess}
        return _names(self.fixed, guess, self.speeds)

    def state(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """State [q; v] at the start."""
        q, v, _ = self.closed(model, parameters, usual)
        return np.concatenate([q, v])

    def closed(self, model: Any, parameters: Parameters, usual: Array) -> tuple[Array, Array, int]:
        """Position, velocity and the branch on which the loops are closed."""
        from multibody import assemble, consistent_velocity

        q = self.first_guess(model, parameters, usual)
        v, moving = np.zeros(model.nv), list(self.speeds)
        for name, value in self.speeds.items():
            v[model.v_index[model.number(name) - 1]] = _number(value, parameters)
        if not model.bonds:
            return q, v, 1
        found = assemble(model, q, list(self.fixed))
        if moving or np.any(v):
            v = consistent_velocity(model, found.q, v, moving)
        return found.q, v, found.branch

    def led(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """State from which the loops close on the branch of the usual start.

        A joint that is kept far from there would else take the others along as Newton's iteration
        happens to go, and the branch would depend on the last digits of the parameters. Where the
        way is blocked, the usual start has to do.
        """
        from multibody import assemble

        q, target = usual[: model.nq], self.first_guess(model, parameters, usual)
        if self.guess is not None or not model.bonds:
            return usual
        for at in model.quaternion_places:  # of both that mean the same, the nearer one
            if q[at : at + 4] @ target[at : at + 4] < 0.0:
                target[at : at + 4] *= -1.0
        strides = int(np.ceil(np.abs(target - q).max(initial=0.0) / STRIDE))
        if not 1 < strides <= MOST_STRIDES:
            return usual
        kept = np.concatenate([np.arange(model.nq)[model.q_index[model.number(n) - 1]]
                               for n in self.fixed])  # fmt: skip
        start, now = q[kept], q.copy()
        try:
            for k in range(strides):
                now[kept] = start + (target[kept] - start) * (k / strides)
                now = np.array(assemble(model, model.normalise(now), list(self.fixed)).q)
        except ValueError:
            return usual
        return np.concatenate([now, usual[model.nq :]])

    def first_guess(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """Position from which assembly starts."""
        q = usual[: model.nq].copy()
        if isinstance(self.guess, Mapping):
            for name, value in self.guess.items():
                q[model.q_index[model.number(name) - 1]] = _number(value, parameters)
        elif self.guess is not None:
            q = np.array(model.check("q", _number(self.guess, parameters)))
        for name, value in self.fixed.items():
            q[model.q_index[model.number(name) - 1]] = _number(value, parameters)
        return q

    def plain(self) -> Any:
        """The rule as it stands in a file."""
        given = {"fixed": self.fixed, "guess": self.guess, "speeds": self.speeds}
        return {"assembled": {key: _plain(value) for key, value in given.items() if _said(value)}}


@dataclass(frozen=True)
class GivenState(Start):
    """Values of some components of the state, or of all."""

    values: Any  # by name, or all in order

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the study that it uses."""
        return _names(self.values if isinstance(self.values, Mapping) else {"": self.values})

    def state(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """State at the start."""
        raise TypeError("GivenState needs the names of the states; use state_in")

    def state_in(self, seen: Seen, parameters: Parameters, usual: Array) -> Array:
        """State at the start of a problem whose components have names."""
        if not isinstance(self.values, Mapping):
            state = np.asarray(_number(self.values, parameters), dtype=np.float64)
            if state.shape != usual.shape:
                raise ValueError(
                    f"start: expected {usual.size} numbers ({', '.join(seen.state_names[:6])}), "
                    f"received shape {state.shape}"
                )
            return state
        state = usual.copy()
        for name, value in self.values.items():
            state[State(name).number(seen)] = _number(value, parameters)
        return state

    def plain(self) -> Any:
        """The rule as it stands in a file."""
        return {"state": _plain(self.values)}


@dataclass(frozen=True)
class FoundBy(Start):
    """The user's own function of the model and the parameters: returns q and v."""

    function: Callable[..., Any]

    def state(self, model: Any, parameters: Parameters, usual: Array) -> Array:
        """State [q; v] at the start."""
        q, v = self.function(model, **parameters)
        return np.concatenate([model.check("q", q), model.check("v", v)])

    def plain(self) -> Any:
        """Which function it is."""
        from .code import fingerprint, name_of

        return {"function": name_of(self.function), "code": fingerprint(self.function)}


def start_of(given: Any) -> Start:
    """Start from what users and files give.

    Examples
    --------
    >>> start_of({"assembled": {"fixed": {"crank": "angle"}}}).names
    ('angle',)
    """
    if isinstance(given, Start):
        return given
    if given is None:
        return Start()
    if isinstance(given, Mapping):
        if set(given) == {"assembled"}:
            try:
                return Assembled(**given["assembled"])
            except TypeError:
                raise ValueError(
                    "start.assembled: expected fixed, guess and speeds, received "
                    f"{given['assembled']!r}"
                ) from None
        return GivenState(given["state"] if set(given) == {"state"} else dict(given))
    if callable(given):
        return FoundBy(given)
    if isinstance(given, tuple) and len(given) == 2 and all(np.ndim(x) == 1 for x in given):
        return GivenState([*given[0], *given[1]])
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return GivenState(list(given))
    raise ValueError(
        "start: expected Assembled(...), a state, values of states by name, a pair (q0, v0) or a "
        f"function of the model; received {given!r:.80}"
    )


def _number(value: Value, parameters: Parameters) -> Any:
    """A number, or the parameter of that name."""
    if isinstance(value, str):
        return parameters[value]
    if isinstance(value, list | tuple):
        return [_number(part, parameters) for part in value]
    return value


def _names(*values: Any) -> tuple[str, ...]:
    """Names of parameters among values."""
    found: list[str] = []
    for given in values:
        parts = given.values() if isinstance(given, Mapping) else [given]
        for part in parts:
            for item in part if isinstance(part, list | tuple) else [part]:
                if isinstance(item, str):
                    found.append(item)
    return tuple(dict.fromkeys(found))


def _said(value: Any) -> bool:
    return value is not None and len(value) > 0


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
