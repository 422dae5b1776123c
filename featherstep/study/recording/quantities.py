"""What can be recorded along a run: states, energies, forces in joints, points, the user's own.

A quantity is a number at each time of a run. :class:`Seen` is what a quantity looks at: the
problem, the model if there is one, and the forces that acted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators.errors import suggest
from integrators.problem import accepts_params

__all__ = [
    "Quantity",
    "Seen",
    "energy",
    "loop_force",
    "observed",
    "position",
    "quantity_of",
    "reaction",
    "state",
]

Array = NDArray[np.float64]

COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")
ENERGIES = ("total", "kinetic", "potential")
ALONG = ("drift", "velocity_drift", "singularity")


@dataclass
class Seen:
    """What quantities look at.

    Attributes
    ----------
    problem
        The initial value problem that was solved.
    model
        The mechanism, or None.
    tau, f_ext
        Forces that acted on it.
    parameters
        Values of the study's parameters.
    fast
        Quantities as traced functions of (t, y, p), where there are such.
    """

    problem: Any
    model: Any = None
    tau: Any = None
    f_ext: Any = None
    parameters: Any = None
    fast: Mapping[Any, Any] = field(default_factory=dict, repr=False)
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def state_names(self) -> tuple[str, ...]:
        """Names of the components of the state."""
        given = tuple(self.problem.state_names)
        return given or tuple(f"y[{i}]" for i in range(self.problem.n))

    def motion(self, t: Array, y: Array) -> SimpleNamespace:
        """Times, positions and velocities of the mechanism, whatever the problem's variables."""
        if self.model is None:
            raise ValueError(f"{self.problem!r} is no mechanism; record its states or functions")
        if hasattr(self.problem, "split"):
            from multibody.runs.dae import split_states

            q, v = split_states(self.problem, t, y)
        else:
            q, v = y[: self.model.nq], y[self.model.nq : self.model.nq + self.model.nv]
        return SimpleNamespace(t=t, q=np.ascontiguousarray(q), v=np.ascontiguousarray(v))

    def once(self, what: str, t: Array, y: Array, compute: Callable[[], Any]) -> Any:
        """The same for all quantities that ask for it at the same times, computed once."""
        key = (what, t.tobytes(), y.tobytes())
        if key not in self.kept:
            self.kept = {k: v for k, v in self.kept.items() if k[1:] == key[1:]}
            self.kept[key] = compute()
        return self.kept[key]


class Quantity:
    """A number at each time of a run."""

    unit = ""

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t, where the states stand in the columns of y."""
        raise TypeError(f"{type(self).__name__} tells no values")

    def quickly(self, seen: Seen, t: Array, y: Array) -> Array:
        """The same by machine code, where there is some."""
        program = seen.fast.get(self)
        if program is None:
            return self.along(seen, t, y)
        p = seen.problem.params
        return np.array([program(s, x, p)[0] for s, x in zip(t.tolist(), y.T.copy())])

    def check(self, seen: Seen) -> None:
        """Raise if there is no such thing in this problem, before anything is run."""

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        raise TypeError(f"{type(self).__name__} cannot stand in a file")

    def unit_in(self, seen: Seen) -> str:
        """Its unit in a given problem, empty if unknown."""
        return self.unit


@dataclass(frozen=True)
class State(Quantity):
    """A component of the state."""

    name: str | int

    def number(self, seen: Seen) -> int:
        """Its number; a body's name will do where its joint has one variable."""
        names = seen.state_names
        if isinstance(self.name, int):
            if -len(names) <= self.name < len(names):
                return self.name % len(names)
            raise ValueError(f"state {self.name}: there are {len(names)} components")
        for wanted in (self.name, f"y[{self.name}]"):
            if wanted in names:
                return names.index(wanted)
        # "crank" for "crank.angle", "d(crank)" for "d(crank.angle)"
        short: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            short.setdefault(name.partition(".")[0] + ")" * name.startswith("d("), []).append(i)
        found = short.get(self.name, [])
        if len(found) == 1:
            return found[0]
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise ValueError(
            f"there is no state {self.name!r}, or more than one; the states are {listed}"
            f"{suggest(str(self.name), names)}"
        )

    def check(self, seen: Seen) -> None:
        """Raise if there is no such component."""
        self.number(seen)

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        return np.array(y[self.number(seen)], dtype=np.float64)

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return self.name

    def unit_in(self, seen: Seen) -> str:
        """Radians, metres and so on, where the joints tell."""
        return state_units(seen)[self.number(seen)]


@dataclass(frozen=True)
class Function(Quantity):
    """The user's own function of (t, y) or (t, y, p)."""

    function: Callable[..., Any]
    text: str = ""

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        g = self._bound(seen)
        values = np.array([g(float(s), x) for s, x in zip(t, np.ascontiguousarray(y.T))])
        if values.shape != t.shape:
            raise ValueError(
                f"{self.function!r}: expected one number at each time, received shape "
                f"{values.shape[1:]}"
            )
        return values.astype(np.float64)

    def _bound(self, seen: Seen) -> Callable[..., Any]:
        """The function of (t, y): of a mechanism, p are the study's parameters."""
        if seen.model is None:
            bound: Callable[..., Any] = seen.problem.bind(self.function)
            return bound
        if not accepts_params(self.function):
            return self.function
        p = np.array(list((seen.parameters or {}).values()), dtype=np.float64)
        return lambda t, y: self.function(t, y, p)

    def for_lanes(self, seen: Seen, names: int) -> Callable[..., Any] | None:
        """The function of (t, y, p) with p of the problem, of which `names` are the study's."""
        if seen.model is None or not accepts_params(self.function):
            return self.function
        function = self.function
        return (lambda t, y, p: function(t, y, p[:names])) if names else None

    def plain(self) -> Any:
        """Which function it is: not enough to call it again."""
        from ..code import name_of

        return {"function": name_of(self.function)}


@dataclass(frozen=True)
class EnergyOf(Quantity):
    """Energy of a mechanism."""

    kind: str
    unit = "J"

    def check(self, seen: Seen) -> None:
        """Raise where there is no mechanism."""
        if seen.model is None:
            raise ValueError("energy(): expected a mechanism; give a function of (t, y) instead")

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        from multibody.dynamics.motion import energy as energy_of

        def compute() -> Any:
            x = seen.motion(t, y)
            return energy_of(seen.model, SimpleNamespace(t=t, y=np.vstack([x.q, x.v])))

        return np.array(getattr(seen.once("energy", t, y, compute), self.kind))

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {"energy": self.kind}


@dataclass(frozen=True)
class JointLoad(Quantity):
    """Force or couple in a joint, loop joints included."""

    kind: str  # "loop_force" or "reaction"
    name: str
    component: str

    @property
    def unit(self) -> str:  # type: ignore[override]
        """N m for couples, N for forces."""
        return "N m" if self.component[0] in "mc" else "N"

    def check(self, seen: Seen) -> None:
        """Raise if there is no such joint."""
        if seen.model is None:
            raise ValueError(f"{self.kind}({self.name!r}): expected a mechanism")
        parts = seen.model.loops if self.kind == "loop_force" else seen.model.bodies
        known = [part.name for part in parts]
        if self.name not in known:
            what = "loop" if self.kind == "loop_force" else "body"
            raise ValueError(
                f"{self.kind}: there is no {what} {self.name!r}; there are "
                f"{', '.join(known) or 'none'}{suggest(self.name, known)}"
            )

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t, in joint coordinates."""
        from multibody.runs.observing.reactions import reactions_along

        found = seen.once(
            "reactions", t, y,
            lambda: reactions_along(seen.model, seen.motion(t, y), seen.tau, seen.f_ext),
        )  # fmt: skip
        loop = self.kind == "loop_force"
        wrench = (found.loops if loop else found.bodies)[self.name]
        sure = found.determined["loop" if loop else "body", self.name].astype(bool)
        if self.component in COMPONENTS:
            i = COMPONENTS.index(self.component)
            if not sure[i].all():
                raise ValueError(
                    f"{self.component} in {self.name!r} is not determined by the equations of "
                    "rigid bodies: constraints are redundant; record 'force' or 'couple', which "
                    "leave such components out"
                )
            return np.array(wrench[i])
        part = slice(3, 6) if self.component == "force" else slice(0, 3)
        return np.sqrt((np.where(sure[part], wrench[part], 0.0) ** 2).sum(axis=0))

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {self.kind: [self.name, self.component]}


@dataclass(frozen=True)
class PointOf(Quantity):
    """A coordinate of a body-fixed point."""

    body: str
    axis: str
    point: tuple[float, float, float]
    unit = "m"

    def check(self, seen: Seen) -> None:
        """Raise if there is no such body."""
        if seen.model is None:
            raise ValueError(f"position({self.body!r}): expected a mechanism")
        seen.model.number(self.body)

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        from multibody.runs.simulate import poses

        def compute() -> Any:
            x = seen.motion(t, y)
            return poses(seen.model, SimpleNamespace(t=t, y=np.vstack([x.q, x.v])))

        R, p = seen.once("poses", t, y, compute)
        i = seen.model.number(self.body)
        return np.array((R[:, i] @ np.array(self.point) + p[:, i])[:, "xyz".index(self.axis)])

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {"position": [self.body, self.axis, *self.point]}


@dataclass(frozen=True)
class ObservedValue(Quantity):
    """What the problem lets observe: drift of constraints, invariants by name."""

    name: str

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        from integrators import Solution

        def compute() -> Any:
            return Solution(t, y, problem=seen.problem).observed

        found = seen.once("observed", t, y, compute)
        if self.name in ALONG:
            return np.array(getattr(found, self.name), dtype=np.float64)
        if self.name in found.invariants:
            return np.array(found.invariants[self.name], dtype=np.float64)
        known = [*ALONG, *found.invariants]
        raise ValueError(
            f"observed: there is no {self.name!r}; there are {', '.join(known)}"
            f"{suggest(self.name, known)}"
        )

    def check(self, seen: Seen) -> None:
        """Raise if nothing of this name can be observed."""
        if seen.problem.observe is None:
            raise ValueError(
                f"observed({self.name!r}): {seen.problem!r} lets nothing observe; expected a "
                "mechanism or a problem with observe="
            )
        t0 = np.array([seen.problem.t_span[0]])
        self.along(seen, t0, np.asarray(seen.problem.y0)[:, None])

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {"observed": self.name}


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
        redundant constraints leave open; or one of mx, my, mz, fx, fy, fz.

    Examples
    --------
    >>> loop_force("joint").unit
    'N'
    """
    return JointLoad("loop_force", loop, _component(component))


def reaction(body: str, component: str = "force") -> Quantity:
    """Load of the joint that carries a body, as :func:`loop_force` for joints of the tree."""
    return JointLoad("reaction", body, _component(component))


def _component(name: str) -> str:
    known = ("force", "couple", *COMPONENTS)
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


#: Units of joint variables by the first part of their names.
UNITS = {
    "angle": "rad",
    "bend": "rad",
    "shift": "m",
    "p": "m",
    "x": "m",
    "y": "m",
    "omega": "rad/s",
    "v": "m/s",
}


def state_units(seen: Seen) -> list[str]:
    """Units of the states of a mechanism, empty where they are not known."""
    names = seen.state_names
    if seen.model is None or len(names) != seen.model.nq + seen.model.nv:
        return [""] * len(names)
    positions: list[str] = []
    speeds: list[str] = []
    for body in seen.model.bodies:
        # Components of a quaternion have the names of lengths, and no unit.
        numbers = {"x", "y", "z"} if "w" in body.joint.coordinates else set()
        units = {
            c: "" if c in numbers else UNITS.get(c.partition("_")[0], "")
            for c in body.joint.coordinates
        }
        positions += units.values()
        for s in body.joint.speeds:
            rate = f"{units[s]}/s" if units.get(s) else ""
            speeds.append(rate if s in units else UNITS.get(s.partition("_")[0], ""))
    return positions + speeds
