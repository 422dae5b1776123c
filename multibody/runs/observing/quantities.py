"""What can be recorded along a run: states, energies, forces in joints, points, the user's own.

A quantity is a number at each time of a run. :class:`Seen` is what a quantity looks at: the
problem, the model if there is one, and the forces that acted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from integrators import Solution
from integrators.errors import suggest
from integrators.problem import accepts_params

from ...checks import Array
from ...dynamics.acting import acting
from ...dynamics.motion import energy as energy_of
from ...dynamics.motion import kinematics
from .acted import acted_along
from .reactions import reactions_along
from .states import states_of

__all__ = ["Quantity", "Seen", "state_units"]

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
    run
        A solution that is asked which forces acted, in place of `tau` and `f_ext`.
    fast
        Quantities as traced functions of (t, y, p), where there are such.
    """

    problem: Any
    model: Any = None
    tau: Any = None
    f_ext: Any = None
    parameters: Any = None
    fast: Mapping[Any, Any] = field(default_factory=dict, repr=False)
    run: Any = None
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
        states = states_of(self.model, Solution(t, y, problem=self.problem))[1]
        q, v = np.split(states, [self.model.nq])
        return SimpleNamespace(t=t, q=np.ascontiguousarray(q), v=np.ascontiguousarray(v))

    def reactions(self, t: Array, y: Array) -> Any:
        """Wrenches in all joints: under the forces that are known here, or to the problem."""
        if self.run is not None:
            return self.run.observed.reactions
        return reactions_along(self.model, self.motion(t, y), self.tau, self.f_ext)

    def once(self, what: str, t: Array, y: Array, compute: Callable[[], Any]) -> Any:
        """The same for all quantities that ask for it at the same times, computed once."""
        key = (what, t.tobytes(), y.tobytes())
        if key not in self.kept:
            self.kept = {k: v for k, v in self.kept.items() if k[1:] == key[1:]}
            self.kept[key] = compute()
        return self.kept[key]


class Quantity:
    """A number at each time of a run, or several: then they are rows of an array."""

    unit = ""
    #: How many numbers it has at each time.
    rows = 1

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
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"function": f"{self.function.__module__}:{name}"}


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
    def rows(self) -> int:  # type: ignore[override]
        """Six for the wrench."""
        return 6 if self.component == "wrench" else 1

    @property
    def unit(self) -> str:  # type: ignore[override]
        """N m for couples, N for forces."""
        if self.component == "wrench":
            return ""
        return "N m" if self.component[0] in "mc" else "N"

    def check(self, seen: Seen) -> None:
        """Raise if there is no such joint."""
        if seen.model is None:
            raise ValueError(f"{self.kind}({self.name!r}): expected a mechanism")
        loops, bodies = ([x.name for x in part] for part in (seen.model.loops, seen.model.bodies))
        known = loops if self.kind == "loop_force" else bodies + loops
        if self.name not in known:
            what = "loop" if self.kind == "loop_force" else "body or loop"
            raise ValueError(
                f"{self.kind}: there is no {what} {self.name!r}; there are "
                f"{', '.join(known) or 'none'}{suggest(self.name, known)}"
            )

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t, in joint coordinates."""
        found = seen.once("reactions", t, y, lambda: seen.reactions(t, y))
        loop = self.kind == "loop_force" or self.name not in found.bodies
        wrench = (found.loops if loop else found.bodies)[self.name]
        sure = found.determined["loop" if loop else "body", self.name].astype(bool)
        if self.component == "wrench":
            return np.where(sure, wrench, np.nan)
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
        from ..simulate import poses

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
class PathOf(Quantity):
    """Path, or velocity, of a body-fixed point in base coordinates: three rows."""

    body: str
    point: tuple[float, float, float]
    moving: bool = False
    rows = 3

    @property
    def unit(self) -> str:  # type: ignore[override]
        """m, or m/s."""
        return "m/s" if self.moving else "m"

    def check(self, seen: Seen) -> None:
        """Raise if there is no such body."""
        if seen.model is None:
            raise ValueError(f"point({self.body!r}): expected a mechanism")
        seen.model.number(self.body)

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        if not self.moving:
            axes = [PointOf(self.body, axis, self.point).along(seen, t, y) for axis in "xyz"]
            return np.array(axes)
        x = seen.motion(t, y)
        found = [
            self._velocity(kinematics(seen.model, q, v, t=float(s)), seen.model.number(self.body))
            for s, q, v in zip(t, x.q.T, x.v.T)
        ]
        return np.array(found).reshape(-1, 3).T

    def _velocity(self, moving: Any, i: int) -> Array:
        R, v = moving.poses[i].R, moving.velocities[i]
        return np.asarray(R @ (v[3:] + np.cross(v[:3], self.point)))

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {"velocity" if self.moving else "point": [self.body, *self.point]}


@dataclass(frozen=True)
class OutputOf(Quantity):
    """A named output of an element."""

    element: str
    name: str

    def check(self, seen: Seen) -> None:
        """Raise if there is no such element or output."""
        y0 = np.asarray(seen.problem.y0, dtype=float)[:, None]
        self.along(seen, np.array([seen.problem.t_span[0]]), y0)

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""
        known = [] if seen.model is None else [named.name for named in seen.model.elements]
        if self.element not in known:
            raise ValueError(
                f"output: there is no element {self.element!r}; there are "
                f"{', '.join(known) or 'none'}{suggest(self.element, known)}"
            )
        x, found = seen.motion(t, y), []
        model = acted_along(seen.model, seen.run)[0]
        for s, q, v in zip(t, x.q.T.copy(), x.v.T.copy()):
            outputs = acting(model, float(s), q, v).parts[self.element].outputs
            if self.name not in outputs:
                raise ValueError(
                    f"output: element {self.element!r} has no output {self.name!r}; it has "
                    f"{', '.join(outputs) or 'none'}{suggest(self.name, list(outputs))}"
                )
            found.append(float(np.ravel(outputs[self.name])[0]))
        return np.array(found)

    def plain(self) -> Any:
        """The quantity as it stands in a file."""
        return {"output": [self.element, self.name]}


@dataclass(frozen=True)
class ObservedValue(Quantity):
    """What the problem lets observe: drift of constraints, invariants by name."""

    name: str

    def along(self, seen: Seen, t: Array, y: Array) -> Array:
        """Values at times t."""

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
    return positions + [""] * seen.model.n_states + speeds
