"""Sensors and named outputs: numbers that are read off along any run of a mechanism.

``record(model, solution, {"tip": point("arm", (0, 0, -1)), "pin": reaction("coupler", "wrench")})``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.errors import suggest

from ...checks import Array
from .quantities import (
    COMPONENTS,
    ENERGIES,
    EnergyOf,
    Function,
    JointLoad,
    ObservedValue,
    OutputOf,
    PathOf,
    PointOf,
    Quantity,
    Seen,
    State,
)

if TYPE_CHECKING:
    from ...model import Model

__all__ = [
    "Record",
    "energy",
    "loop_force",
    "observed",
    "output",
    "point",
    "position",
    "quantity_of",
    "reaction",
    "record",
    "state",
    "velocity",
]


class Record(dict[str, Array]):
    """Values by name, an entry (or a column) for each time of the run; `units` by name."""

    units: Mapping[str, str]

    def __init__(self, values: Mapping[str, Array], units: Mapping[str, str]) -> None:
        super().__init__(values)
        self.units = dict(units)


def record(model: Model, solution: Any, what: Mapping[str, Any]) -> Record:
    """Read named quantities off a run of a mechanism, at all of its times.

    Parameters
    ----------
    model
        The mechanism.
    solution
        Of any problem of it, in whatever variables.
    what
        Quantities by name: :func:`point`, :func:`velocity`, :func:`reaction`, :func:`loop_force`,
        :func:`energy`, :func:`output` of an element, :func:`state`, names of states, or functions
        of (t, y).

    Returns
    -------
    Record
        Arrays (m,), or (3, m) for points and velocities and (6, m) for wrenches.

    Examples
    --------
    >>> from multibody import mechanisms, point, reaction, record, simulate
    >>> model = mechanisms.pendulum()
    >>> run = simulate(model, [np.pi / 2], T=2.0, rtol=1e-10, fps=500)
    >>> found = record(model, run, {"tip": point("bob", (0, 0, -1)), "pin": reaction("bob")})
    >>> found["tip"].shape == (3, len(run.t)), found.units
    (True, {'tip': 'm', 'pin': 'N'})
    >>> f"{found['pin'].max():.2f}"  # 3 m g at the bottom
    '29.43'
    """
    if not isinstance(what, Mapping):
        raise TypeError(
            f"record: expected quantities by name, such as {{'tip': point('arm')}}, received "
            f"{what!r:.80}"
        )
    problem = getattr(solution, "problem", None)
    if problem is None or isinstance(problem, str) or not hasattr(problem, "y0"):
        raise ValueError(
            "record: the solution has lost its problem (it was loaded from a file or a pickle), so "
            "that the forces are not known; give it again: Solution.load(path, problem=...), or "
            "solution.with_problem(...)"
        )
    t, y = np.atleast_1d(solution.t), np.asarray(solution.y, dtype=float)
    seen = Seen(problem, model, run=solution)
    chosen = {name: quantity_of(given) for name, given in what.items()}
    for name, quantity in chosen.items():
        try:
            quantity.check(seen)
        except ValueError as error:
            raise ValueError(f"record: {name}: {error}") from None
    values = {name: quantity.along(seen, t, y) for name, quantity in chosen.items()}
    return Record(values, {name: quantity.unit_in(seen) for name, quantity in chosen.items()})


# ---------------------------------------------------------------------- what users write


def state(name: str | int) -> Quantity:
    """A component of the state, by its name or its number; a plain text means the same.

    Examples
    --------
    >>> state("crank.angle")
    State(name='crank.angle')
    """
    return State(name)


def energy(kind: str = "total") -> Quantity:
    """Energy of a mechanism: "total", "kinetic" or "potential" (J)."""
    if kind not in ENERGIES:
        raise ValueError(f"energy: expected one of {', '.join(ENERGIES)}, received {kind!r}")
    return EnergyOf(kind)


def loop_force(loop: str, component: str = "force") -> Quantity:
    """Load of a loop joint, as its successor feels it, in joint coordinates.

    Parameters
    ----------
    loop
        Its name.
    component
        "force" or "couple" for the length of that vector (N, Nm), without components that
        redundant constraints leave open; one of mx, my, mz, fx, fy, fz; or "wrench" for all six,
        NaN where they are left open.

    Examples
    --------
    >>> loop_force("joint").unit
    'N'
    """
    return JointLoad("loop_force", loop, _component(component))


def reaction(joint: str, component: str = "force") -> Quantity:
    """Load of the joint that carries a body, or of a loop joint, by the name of body or loop."""
    return JointLoad("reaction", joint, _component(component))


def _component(name: str) -> str:
    known = ("force", "couple", "wrench", *COMPONENTS)
    if name not in known:
        raise ValueError(f"component: expected one of {', '.join(known)}, received {name!r}")
    return name


def position(body: str, axis: str = "x", point: Sequence[float] = (0.0, 0.0, 0.0)) -> Quantity:
    """Coordinate x, y or z, in base axes, of a point given in body coordinates (m)."""
    place = np.asarray(point, dtype=np.float64)
    if axis not in ("x", "y", "z") or place.shape != (3,):
        raise ValueError(
            f"position: expected an axis x, y or z and a point of three numbers, received "
            f"{axis!r}, {point!r}"
        )
    return PointOf(body, axis, tuple(place.tolist()))


def point(body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Quantity:
    """Path of a point given in body coordinates: three rows, in base axes (m)."""
    return PathOf(body, _place("point", point))


def velocity(body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Quantity:
    """Velocity of a point given in body coordinates: three rows, in base axes (m/s)."""
    return PathOf(body, _place("velocity", point), True)


def _place(what: str, point: Sequence[float]) -> tuple[float, float, float]:
    place = np.asarray(point, dtype=np.float64)
    if place.shape != (3,):
        raise ValueError(f"{what}: expected a point of three numbers, received {point!r}")
    return float(place[0]), float(place[1]), float(place[2])


def output(element: str, name: str = "u") -> Quantity:
    """Output of an element, such as a motor's "torque"; see ``docs/elements.md``."""
    return OutputOf(element, name)


def observed(name: str) -> Quantity:
    """What ``Solution.observed`` shows: "drift", "velocity_drift", "singularity", an invariant."""
    return ObservedValue(name)


MAKERS: dict[str, Callable[..., Quantity]] = {
    "state": state,
    "energy": energy,
    "loop_force": loop_force,
    "reaction": reaction,
    "position": lambda body, axis="x", x=0.0, y=0.0, z=0.0: position(body, axis, (x, y, z)),
    "observed": observed,
    "point": lambda body, x=0.0, y=0.0, z=0.0: point(body, (x, y, z)),
    "velocity": lambda body, x=0.0, y=0.0, z=0.0: velocity(body, (x, y, z)),
    "output": output,
}


def quantity_of(what: Any) -> Quantity:
    """Quantity from what users and files give: a name, a table of one entry, or a function.

    Examples
    --------
    >>> quantity_of({"loop_force": "joint"})
    JointLoad(kind='loop_force', name='joint', component='force')
    """
    if isinstance(what, Quantity):
        return what
    if isinstance(what, str | int) and not isinstance(what, bool):
        return State(what)
    if isinstance(what, np.integer):
        return State(int(what))
    if isinstance(what, Mapping) and len(what) == 1:
        ((kind, given),) = what.items()
        if kind not in MAKERS:
            raise ValueError(
                f"expected one of {', '.join(MAKERS)}, received {kind!r}{suggest(kind, MAKERS)}"
            )
        values = given if isinstance(given, list | tuple) else [given]
        try:
            return MAKERS[kind](*values)
        except TypeError:
            raise ValueError(f"{kind}: cannot make sense of {given!r}") from None
    if callable(what):
        return Function(what)
    raise ValueError(
        "expected the name of a state, a quantity such as loop_force('joint'), or a function of "
        f"(t, y); received {what!r:.80}"
    )
