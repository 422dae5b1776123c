"""What the elements of a model do at a state: forces, rates of own states, energies, outputs.

The same laws run on floats and on symbols. Forces in tree joints are joint forces; all others are
wrenches on bodies, in base coordinates, so that reactions in joints come out right.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from integrators.kernels import OnWorkspace

from ..checks import Array, ArrayLike, exact_array
from ..elements import Element, NamedElement
from ..elements.signals import value_of
from ..model.rules import FROM_DYNAMICS
from .storage.loading import load
from .storage.workspace import TreeWorkspace
from .trees.kinematics import forward, way_between

if TYPE_CHECKING:
    from ..model import Model

__all__ = [
    "Acted",
    "FrameNow",
    "Here",
    "JointNow",
    "PointNow",
    "acting",
    "element_forces",
    "element_outputs",
    "look",
    "own_rates",
    "with_own_rates",
]

_run_forward = OnWorkspace(forward, TreeWorkspace)


class JointNow(NamedTuple):
    """Positions and velocities of a joint, in its own variables."""

    position: Any
    velocity: Any


class PointNow(NamedTuple):
    """Place and velocity of a point, in base coordinates."""

    position: Any
    velocity: Any


class FrameNow(NamedTuple):
    """A frame in base coordinates: axes in the columns of R, origin, angular velocity, velocity."""

    R: Any
    position: Any
    omega: Any
    velocity: Any


@dataclass
class _Part:
    """What one element does."""

    tau: Any = None
    wrenches: dict[int, Any] = field(default_factory=dict)
    rates: Any = None
    energy: Any = 0.0
    outputs: dict[str, Any] = field(default_factory=dict)
    gain: float = 0.0  # of loads that friction adds to what it is the friction of


@dataclass
class Acted:
    """What all elements of a model do at one state."""

    nv: int
    n_bodies: int
    parts: dict[str, _Part]
    sizes: dict[str, int]

    def joint_forces(self, name: str | None = None) -> Any:
        """Joint forces, nv numbers, of one element or of all."""
        chosen = self.parts.values() if name is None else [self.parts[name]]
        total: Any = np.zeros(self.nv)
        for part in chosen:
            if part.tau is not None:
                total = total + part.tau
        return total

    def wrenches(self, name: str | None = None) -> Any:
        """Wrenches on the bodies in base coordinates, a row for each, of one element or of all."""
        chosen = list(self.parts.values()) if name is None else [self.parts[name]]
        rows: list[Any] = [np.zeros(6) for _ in range(self.n_bodies)]
        for part in chosen:
            for i, wrench in part.wrenches.items():
                rows[i - 1] = rows[i - 1] + wrench
        return np.array(rows).reshape(self.n_bodies, 6)

    def rates(self) -> Any:
        """Rates of all own states."""
        found = [np.zeros(0)]
        for name, n in self.sizes.items():
            rates = self.parts[name].rates
            found.append(np.zeros(n) if rates is None else rates)
        return np.concatenate(found)


class Here:
    """The mechanism at one instant, as an element sees it; numbers, or symbols.

    Attributes
    ----------
    t
        Time.
    z
        Own states of the element, in the order of its ``states``.
    q, v
        Positions and velocities of the whole mechanism.
    """

    def __init__(self, scene: _Scene, element: NamedElement, z: Any) -> None:
        self._scene, self._named, self._part = scene, element, _Part()
        self.t, self.z, self.q, self.v = scene.t, z, scene.q, scene.v

    @property
    def element(self) -> Any:
        """The element itself."""
        return self._named.element

    def state(self, name: str) -> Any:
        """An own state by its name."""
        names = self._named.element.states
        if name not in names:
            self._wrong(f"has no state {name!r}; its states are {list(names)}")
        return self.z[names.index(name)]

    # ------------------------------------------------------------------ what is read

    def joint(self, name: str | int) -> JointNow:
        """Position and velocity of a joint: of the body `name`, or of the loop `name`."""
        scene = self._scene
        if (l := scene.loop_number(name)) is not None:
            q, v, _ = scene.loop(l)
            return JointNow(q, v)
        i = self._body(name, base=False)
        return JointNow(scene.q[scene.model.q_index[i - 1]], scene.v[scene.model.v_index[i - 1]])

    def axis(self, name: str | int) -> tuple[Any, bool]:
        """Axis of a joint of one freedom, in base axes, and whether the joint slides along it."""
        model = self._scene.model
        if (l := self._scene.loop_number(name)) is not None:
            loop = model.loops[l]
            joint, i, turn = loop.joint, loop.successor, loop.placement_successor.E.T
        else:
            i = self._body(name, base=False)
            joint, turn = model.bodies[i - 1].joint, np.eye(3)
        if joint.nv != 1 or joint.kind not in ("revolute", "prismatic"):
            self._wrong(f"the joint {name!r} is no hinge and no slide, which have one axis")
        return self.frame(i).R @ turn @ np.asarray(joint.axis), joint.kind == "prismatic"

    def frame(self, body: str | int, point: Any = (0.0, 0.0, 0.0)) -> FrameNow:
        """Frame of a body, moved to a point given in its coordinates."""
        i, place = self._body(body), _three(point, "point")
        R, origin, omega, velocity = self._scene.body(i)
        arm = R @ place
        return FrameNow(R, origin + arm, omega, velocity + _cross(omega, arm))

    def point(self, body: str | int, point: Any = (0.0, 0.0, 0.0)) -> PointNow:
        """Place and velocity, in base coordinates, of a point given in body coordinates."""
        at = self.frame(body, point)
        return PointNow(at.position, at.velocity)

    def between(self, body_a: str | int, point_a: Any, body_b: str | int, point_b: Any) -> Any:
        """From a point of one body to one of another, in base axes.

        Summed along the tree: how far away from the base's origin both are does not matter.
        """
        a, b = self._body(body_a), self._body(body_b)
        return self._scene.way(a, _three(point_a, "point"), b, _three(point_b, "point"))

    def signal(self, given: Any) -> Any:
        """Value of an input: a number, a function of time, a table, or another element's output.

        A text names an element, whose output "u" it is, or "element.output".
        """
        if not isinstance(given, str):
            return value_of(given, self.t)
        name, _, output = given.partition(".")
        return self.from_element(name, output or "u")

    def from_element(self, name: str, output: str = "u") -> Any:
        """Output of an element that was added before this one."""
        parts = self._scene.parts
        if name not in parts:
            self._wrong(
                f"there is no element {name!r} before it; elements see those that were added "
                f"earlier: {list(parts)}"
            )
        if output not in parts[name].outputs:
            known = list(parts[name].outputs)
            self._wrong(f"element {name!r} has no output {output!r}; it has {known}")
        return parts[name].outputs[output]

    # ------------------------------------------------------------------ what is done

    def push_joint(self, name: str | int, force: Any) -> None:
        """Act with a force (a torque) on each freedom of a joint, of the tree or of a loop."""
        scene = self._scene
        if (l := scene.loop_number(name)) is not None:
            _, v, wrench = scene.loop(l)
            loop = scene.model.loops[l]
            total = wrench(self._count(force, len(v), f"force in {name!r}"))
            self._wrench(loop.successor, total)
            self._wrench(loop.predecessor, -total)
            return
        i = self._body(name, base=False)
        place = scene.model.v_index[i - 1]
        values = self._count(force, place.stop - place.start, f"force in {name!r}")
        if self._part.tau is None:
            self._part.tau = np.zeros(scene.model.nv, dtype=values.dtype)
        total = self._part.tau.astype(np.result_type(self._part.tau, values))
        total[place] = total[place] + values
        self._part.tau = total

    def push(
        self,
        body: str | int,
        force: Any = (0.0, 0.0, 0.0),
        point: Any = (0.0, 0.0, 0.0),
        couple: Any = (0.0, 0.0, 0.0),
    ) -> None:
        """Act with a force at a point (in body coordinates) and a couple, in base axes."""
        F = self._count(force, 3, "force")
        C = self._count(couple, 3, "couple")
        i = self._body(body)
        if i:
            x = self.frame(i, point).position
            self._wrench(i, np.concatenate([C + _cross(x, F), F]))

    def push_at(
        self, body: str | int, force: Any, place: Any, couple: Any = (0.0, 0.0, 0.0)
    ) -> None:
        """Act with a force at a place, and a couple, all in base coordinates."""
        F = self._count(force, 3, "force")
        C = self._count(couple, 3, "couple")
        i = self._body(body)
        self._wrench(i, np.concatenate([C + _cross(self._count(place, 3, "place"), F), F]))

    def rates(self, values: Any) -> None:
        """Say how the own states change: a number for each."""
        n = len(self._named.element.states)
        self._part.rates = self._count(values, n, "rates")

    def energy(self, stored: Any) -> None:
        """Say what energy the element stores; for the ledger."""
        self._part.energy = self._part.energy + stored

    def output(self, name: str, value: Any) -> None:
        """Give a number that can be recorded a name, such as a current or a pressure."""
        self._part.outputs[name] = value

    # ------------------------------------------------------------------ helpers

    def _body(self, name: str | int, base: bool = True) -> int:
        try:
            i = self._scene.model.number(name)
        except (TypeError, ValueError) as error:
            loops = [loop.name for loop in self._scene.model.loops]
            more = f"; loops are {loops}" if loops and not base else ""
            self._wrong(f"{error}{more}")
        if i == 0 and not base:
            self._wrong("the base hangs on no joint; name a body or a loop")
        return i

    def _wrench(self, i: int, wrench: Any) -> None:
        if i:
            before = self._part.wrenches.get(i)
            self._part.wrenches[i] = wrench if before is None else before + wrench

    def _count(self, values: Any, n: int, what: str) -> Any:
        array = np.asarray(values)
        if array.ndim == 0:
            array = array.reshape(1)
        if array.shape != (n,):
            self._wrong(f"expected {n} numbers as {what}, received shape {np.shape(values)}")
        return array

    def _wrong(self, what: str) -> Any:
        raise ValueError(f"element {self._named.name!r}: {what}")


def _three(value: Any, name: str) -> Any:
    array = np.asarray(value)
    return (
        array if array.dtype == object and array.shape == (3,) else exact_array(value, name, (3,))
    )


def _cross(a: Any, b: Any) -> Any:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


class _Scene:
    """A model at a state, with whatever elements ask for computed once."""

    def __init__(self, model: Model, t: Any, q: Any, v: Any) -> None:
        self.model, self.t, self.q, self.v = model, t, q, v
        self.symbolic = any(np.asarray(x).dtype == object for x in (t, q, v))
        self._bodies: Any = None
        self._loops: dict[int, Any] = {}
        self._places: Any = None
        self.parts: dict[str, _Part] = {}

    @property
    def numbers(self) -> Any:
        """Numbers of all elements: those of the model's tables, or symbols in their places."""
        p = self.workspace.p if self.symbolic else self.model.tree.arrays["p"]
        return p[self.model.tree.arrays["p_at"][-1] :]

    @property
    def workspace(self) -> Any:
        """Workspace of objects with all bodies in their places."""
        if self._places is None:
            from .loops.constraints.joints import placed

            self._places = placed(self.model, self.q, self.v, self.t)
        return self._places

    def body(self, i: int) -> tuple[Any, Any, Any, Any]:
        """R, origin, angular velocity and velocity of the origin, in base axes."""
        if self._bodies is None:
            if self.symbolic:
                self._bodies = self.workspace
            else:
                w = load(self.model, self.q, self.v, float(self.t))
                _run_forward(w)
                scratch = {name: np.zeros(6) for name in ("gap", "spare6", "other6")}
                copies = {name: getattr(w, name).copy() for name in ("E_0", "r_0", "r", "vel")}
                self._bodies = SimpleNamespace(parent=w.parent, **copies, **scratch)
        w = self._bodies
        if i == 0:
            return np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3)
        E, r, velocity = w.E_0[i - 1], w.r_0[i - 1], w.vel[i - 1]
        back = np.array([[E[k][m] for k in range(3)] for m in range(3)])
        return back @ self.model.tree.turn[i - 1], r, back @ velocity[:3], back @ velocity[3:]

    def way(self, a: int, point_a: Any, b: int, point_b: Any) -> Any:
        """From a point of body a to one of body b, in base axes, summed along the tree."""
        self.body(a)
        turn, w = self.model.tree.turn, self._bodies
        ends = [turn[i - 1] @ x if i else x for i, x in ((a, point_a), (b, point_b))]
        way_between(w, a - 1, ends[0], b - 1, ends[1])
        return np.array(w.gap[:3])

    def loop_number(self, name: Any) -> int | None:
        """Number of the loop of this name, if no body has it."""
        if not isinstance(name, str):
            return None
        names = [loop.name for loop in self.model.loops]
        return names.index(name) if name in names else None

    def loop(self, l: int) -> tuple[Any, Any, Any]:
        """Position and velocity of a loop joint, and what makes wrenches of forces in it."""
        from .loops.constraints.joints import loop_reading

        if l not in self._loops:
            self._loops[l] = loop_reading(self.model, self.workspace, l)
        return self._loops[l]


#: What solves for elements that feel reactions together with these: ``loads.carried``, which knows
#: both, enters it.
CARRY: list[Any] = []


class _Last(threading.local):
    key: Any = None
    acted: Any = None


def acting(model: Model, t: Any, q: Any, v: Any) -> Acted:
    """What the elements of a model do at a state, of numbers or symbols.

    Of numbers the last result is kept: forces and rates are asked for one after the other.
    """
    symbolic = any(np.asarray(x).dtype == object for x in (t, q, v))
    last: _Last | None = None
    if not symbolic:
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        last = model.tree.traced.setdefault("acting", _Last())
        key = (float(t), q.tobytes(), v.tobytes())
        if last.key == key:
            return last.acted
    scene = _Scene(model, t, q, v)
    parts = scene.parts
    sizes: dict[str, int] = {}
    carried: list[tuple[Here, Element]] = []
    table, at, z_at = scene.numbers, 0, model.nq - model.n_states
    for named in model.elements:
        element = named.element
        count, n = len(element.numbers), len(element.states)
        bound = element.with_numbers(table[at : at + count]) if count else element
        here = Here(scene, named, q[z_at : z_at + n])
        bound.act(here)
        if n and here._part.rates is None:
            here._wrong(f"has states ({', '.join(element.states)}), but says no here.rates(…)")
        parts[named.name], sizes[named.name] = here._part, n
        at, z_at = at + count, z_at + n
        if bound.carried_by is not None:
            carried.append((here, bound))
    if carried:
        CARRY[0](model, t, q, v, carried, parts)
    acted = Acted(model.nv, model.n_bodies, parts, sizes)
    if last is not None:
        last.key, last.acted = key, acted
    return acted


def look(model: Model, t: float, q: Array, v: Array, name: str) -> Here:
    """What one element of a model sees at a state of numbers, those before it having acted."""
    scene = _Scene(model, t, q, v)
    scene.parts |= acting(model, t, q, v).parts
    at = model.nq - model.n_states
    for named in model.elements:
        n = len(named.element.states)
        if named.name == name:
            return Here(scene, named, q[at : at + n])
        at += n
    raise ValueError(f"no element is named {name!r}; there are {[e.name for e in model.elements]}")


def own_rates(model: Model, t: Any, q: Any, v: Any) -> Any:
    """Rates of the own states of a model's elements."""
    return acting(model, t, q, v).rates()


def with_own_rates(model: Model, q_dot: Any, t: Any, q: Any, v: Any) -> Any:
    """Return q̇ with the rates of own states entered, if there are any."""
    if not model.n_states:
        return q_dot
    return np.concatenate([q_dot[: model.nq - model.n_states], own_rates(model, t, q, v)])


def element_outputs(model: Model, t: float, q: Array, v: Array) -> dict[str, dict[str, float]]:
    """Named outputs of all elements at a state."""
    acted = acting(model, t, model.check("q", q, unit=False), model.check("v", v))
    return {
        name: {key: float(np.asarray(value).reshape(())) for key, value in part.outputs.items()}
        for name, part in acted.parts.items()
    }


def element_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, t: float = 0.0
) -> tuple[Array, Array]:
    """Joint forces and external forces of a model's elements at a state.

    Functions of a state and of forces (`FD`, `ID`, `joint_reactions`, …) take forces as they are
    given; elements, which may have states and inputs of their own, are given to them by this.

    Returns
    -------
    tau : (nv,)
        Forces in joints of the tree.
    f_ext : (N, 6)
        Wrenches on the bodies, in base coordinates.

    Examples
    --------
    >>> from multibody import FD, FD_x, ID, mechanisms
    >>> model = mechanisms.quarter_car()
    >>> q, v = [0.01, 0.02], [0.3, 0.1]
    >>> tau, f_ext = element_forces(model, q, v)
    >>> a = FD(model, q, v, tau, f_ext)
    >>> bool(np.allclose(a, FD_x(model, [*q, *v])[2:]))
    True
    >>> bool(np.allclose(ID(model, q, v, a, f_ext) - tau, 0.0))  # nothing else pushes
    True
    """
    acted = acting(model, t, model.check("q", q, unit=False), model.check("v", v))
    return acted.joint_forces(), acted.wrenches()


def check_elements(model: Model) -> None:
    """Let all elements act once, so that a misspelt name or a wrong count is told at once."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        acting(model, 0.0, model.random(rng), rng.standard_normal(model.nv))


FROM_DYNAMICS["check elements"] = check_elements
