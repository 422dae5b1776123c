"""Event-driven contact: a mode for each set of contact states, made when it is first entered.

While no state changes, the motion is smooth, and any integrator of the toolkit follows it with its
own error control (book, Table 11.1). What ends a mode is located as an event:

- a gap closes: impact, then forces decide anew;
- a normal force falls to zero: the point lifts off;
- friction reaches the edge of its cone: a sticking point begins to slide;
- slip comes to rest: the point sticks, or slides another way;
- impacts accumulate (Zeno): they are summed to their limit, and the point rests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.tracing import Traced, TracingError, traced

from ...checks import Array
from ...contact.accelerations import (
    CLOSED_GAP,
    CLOSED_SPEED,
    ContactForces,
    PainleveError,
    closed_points,
    settle,
)
from ...contact.held import Held, are_shared, held_symbols, onto_contacts
from ...contact.impacts import collide
from ...contact.kinematics import ContactKinematics, kinematics_at
from ...contact.lcp import LCPError
from ...contact.response import Mechanism, mechanism_at
from ...contact.workspace import SLOW, contacts_of
from ...dynamics.acting import with_own_rates
from ...dynamics.functions import rate_along
from ...dynamics.trees.kinematics import position_rates
from ..closed import TRACED_CONSTRAINTS
from ..slopes import TracedJacobian
from ..traced import set_forces
from .bounces import last_bounces
from .watching import Watch

if TYPE_CHECKING:
    from integrators import IVP, Mode, Transition

    from ...model import Model

__all__ = ["BEGIN", "FREE", "SETTLE", "ContactModes"]

#: Keys of the mode without contact, and of instants: a start that is yet to be judged, and what
#: follows infinitely many impacts.
FREE, BEGIN, SETTLE = "free", "(begins)", "(comes to rest)"

#: Gaps and speeds that count as none where impacts have accumulated: those of the lowest bounces
#: that are seen, √(2 · 9.81 · 10⁻¹⁰), in parts of the mechanism's length and speed.
SETTLED_GAP, SETTLED_SPEED = 1e-6, 5e-5

#: Where one point stands, others of the same body that are nearly as slow stand with it.
NEARLY = 3.0

#: Slip that is slow and turns by more than this, in parts of its acceleration, has no direction.
TURNING = 1e-6

#: Friction that is taken away where points that share forces give way, to see how they move.
YIELDING = 1e-6

#: A force below this part of the largest is none, where the point has just been found to lift off.
NO_FORCE = 1e-9


class ContactModes:
    """Makes modes from their keys, and decides at instants which one follows.

    Parameters
    ----------
    model
        With rigid contacts.
    free
        The problem without contact.
    tau, f_ext
        Functions of (t, q, v, p), or None.
    law
        "newton" or "poisson": restitution.
    """

    def __init__(
        self,
        model: Model,
        free: IVP,
        tau: Callable[..., Any] | None,
        f_ext: Callable[..., Any] | None,
        law: str,
    ) -> None:
        self.model, self.free, self.tau, self.f_ext, self.law = model, free, tau, f_ext, law
        self.contacts = contacts_of(model)
        self.held: dict[str, Held] = {FREE: Held()}
        self.motions: dict[Any, Any] = {}  # traced, by points and their states
        self.watch = Watch(model, self.given_forces)
        self.none = CLOSED_SPEED * self.contacts.speed
        self.closed = CLOSED_GAP * self.contacts.length
        self.slow = SLOW * self.contacts.speed

    def __reduce__(self) -> Any:
        """Pickle what it is made of, and the modes that are known."""
        made = (self.model, self.free, self.tau, self.f_ext, self.law)
        return (type(self), made, {"held": self.held})

    @property
    def known(self) -> set[str]:
        """Modes that runs have come across."""
        return {*self.held, BEGIN, SETTLE}

    # ------------------------------------------------------------------ modes

    def __call__(self, key: str) -> Mode:
        """Make the mode of a key."""
        from integrators import Mode, Transition

        from .mode import ContactMode

        if key in (BEGIN, SETTLE):
            decide = self._begin if key == BEGIN else self._settle
            return Mode(self.free, Transition(lambda t, y, *p: -1.0, -1, jump=decide, name=key))
        held = self.held[key]
        problem = self.free if not held.points else self._problem(held)
        return ContactMode(problem, self._transitions(held), SETTLE, held, self.watch)

    def _problem(self, held: Held) -> IVP:
        model, nq = self.model, self.model.nq
        motion = self._traced(held)

        def f(t: float, y: Array, p: Any = ()) -> Array:
            q, v = y[:nq], y[nq:]
            a = self.watch.motion(held, t, y, p).accelerations
            return np.concatenate([rate_along(model, q, v, t), a])

        def project(t: float, y: Array, *p: Any) -> Array:
            q = model.normalise(y[:nq])
            return np.concatenate(onto_contacts(model, held, t, q, y[nq:]))

        right = f if len(self.free.params) else (lambda t, y: f(t, y))
        nothing: dict[str, Any] = {"jac": None, "manifold": None, "invariants": {}, "review": None}
        problem = self.free.with_(f=right, project=project, **nothing)
        if motion is None:
            return problem
        params = np.concatenate([self.free.params, held.ways()])
        return problem.with_(f=motion, jac=TracedJacobian(motion), params=params)

    def _traced(self, held: Held) -> Any:
        """ẋ in a mode as machine code, with the directions of slip after other parameters.

        None where the motion without contacts is not traced, or the points' geometry is not.
        """
        model, nq, n_params = self.model, self.model.nq, len(self.free.params)
        rows = len(held.rows())
        large = rows + len(model.tree.acting_rows) > TRACED_CONSTRAINTS
        if large or not isinstance(self.free.f, Traced):
            return None
        key = held.points, held.states
        if key in self.motions:
            return self.motions[key]

        def motion(t: Any, x: Any, p: Any = ()) -> Any:
            w = self.contacts.symbolic(rows)
            w.t[0], w.q[:], w.v[:] = t, x[:nq], x[nq:]
            set_forces(model, w, *self.given_forces(t, x[:nq], x[nq:], p))
            held_symbols(model, held, w, p[n_params:])
            position_rates(w)
            return np.concatenate([with_own_rates(model, w.q_dot, t, w.q, w.v), w.a_q])

        sizes: dict[str, Any] = {"n": nq + model.nv, "params": n_params + len(held.ways())}
        try:
            made = traced(motion if sizes["params"] else lambda t, x: motion(t, x), **sizes)
        except TracingError:
            made = None
        self.motions[key] = made
        return made

    def given_forces(self, t: float, q: Array, v: Array, p: Any) -> tuple[Any, Any]:
        """Joint forces and external forces that are given, or None; p may go on behind theirs."""
        p = p[: len(self.free.params)]
        tau = None if self.tau is None else self.tau(t, q, v, p)
        return tau, None if self.f_ext is None else self.f_ext(t, q, v, p)

    # ------------------------------------------------------------------ what ends a mode

    def _transitions(self, held: Held) -> list[Transition]:
        from integrators import Transition

        from .mode import Ending

        names = self.contacts.names
        found: list[Transition] = []
        if held.bounces:
            found.append(
                Transition(
                    lambda t, y, p=(): self.watch.now.rest - t,
                    -1,
                    jump=lambda t, y, p=(): self._settle(t, y, p),
                    name="last bounce",
                )
            )

        def add(function: Callable[..., float], what: str, point: int, hint: str) -> None:
            found.append(
                Ending(
                    function,
                    -1,
                    jump=lambda t, y, p=(): self.enter(t, y, p, held, point, hint),
                    at_entry=False,
                    name=f"{names[point]} {what}",
                    gap=point if hint == "touch" else -1,
                    watch=self.watch,
                )
            )

        watch = self.watch
        if held.shared:
            add(watch.margin(held), "gives way", held.points[0], "yield")
        row = 0
        for j, (i, state) in enumerate(zip(held.points, held.states)):
            if not held.shared:
                add(watch.force(held, i), "lifts off", i, "lift")
            if state == "sticks" and not held.shared:
                add(watch.cone(held, i), "begins to slide", i, "slide")
            elif state == "slides" and self.contacts.friction[i] > 0.0:
                add(watch.slip(held, i, held.angles[j]), "stops sliding", i, "stop")
                slow = i in held.slow
                what = "speeds up" if slow else "slows down"
                add(watch.turned(i, held.angles[j], slow), what, i, "turn")
                add(watch.slope(held, row), "jams", i, "jam")
            row += 3 if state == "sticks" else 1
        for i in range(self.contacts.n):
            if i not in held.points:
                add(watch.gap(i), "touches", i, "touch")
        return found

    # ------------------------------------------------------------------ instants

    def start(self, t: float, q: Array, v: Array, p: Any = ()) -> tuple[str, Array]:
        """Mode and state at the start of a run; raises where bodies penetrate."""
        closed_points(self.model, kinematics_at(self.model, q, v, t))
        return self.enter(t, np.concatenate([q, v]), p)

    def _begin(self, t: float, y: Array, p: Any = ()) -> tuple[str, Array]:
        return self.start(t, self.model.normalise(y[: self.model.nq]), y[self.model.nq :], p)

    def enter(
        self,
        t: float,
        y: Array,
        p: Any = (),
        held: Held | None = None,
        point: int = -1,
        hint: str = "",
    ) -> tuple[str, Array]:
        """Mode and state after an instant: impacts if gaps are closing, then states by forces."""
        model, nq = self.model, self.model.nq
        q, v = y[:nq].copy(), y[nq:].copy()
        if hint == "jam":
            raise PainleveError(
                f"contact {self.contacts.names[point]!r} jams at t = {t:.9g}: the force that keeps "
                "the bodies apart grows without limit while it slides (Painlevé); use less "
                "friction, or a compliant law"
            )
        if held is not None and held.points:  # located between steps: as accurate as the run is
            q, v = onto_contacts(model, held, t, model.normalise(q), v)
        k = kinematics_at(model, q, v, t)
        if hint == "stop" and np.hypot(*k.slip[point]) < self.slow:  # no slip is left across
            v = onto_contacts(model, Held((point,), ("sticks",), (0.0,)), t, q, v)[1]
            k = kinematics_at(model, q, v, t)
        closed = k.gap <= self.closed
        if hint == "touch":
            closed[point] = True
        if (closed & (k.gap_rate < -self.none)).any():
            system = mechanism_at(model, q, v, None, None, t)
            v = collide(model, system, k, (q, v, t), closed, self.law).velocities
            given = self.given_forces(t, q, v, p)
            still, end = last_bounces(model, t, q, v, closed, given, self.law)
            if still.points:
                v = onto_contacts(model, still, t, q, v)[1]
                self.watch.now.rest = end
                return self._decided(t, q, v, p, closed, held, point, hint, True)
        return self._decided(t, q, v, p, closed, held, point, hint)

    def _settle(self, t: float, y: Array, p: Any = ()) -> tuple[str, Array]:
        """After infinitely many impacts: what is nearly closed and nearly at rest, rests."""
        model, nq = self.model, self.model.nq
        q, v = y[:nq].copy(), y[nq:].copy()
        k = kinematics_at(model, q, v, t)
        near = np.abs(k.gap) <= SETTLED_GAP * self.contacts.length
        near &= np.abs(k.gap_rate) <= SETTLED_SPEED * self.contacts.speed
        points = tuple(int(i) for i in np.flatnonzero(near))
        if not points:
            raise LCPError(
                f"impacts accumulate at t = {t:.9g}, but no contact comes to rest there; use "
                "smaller tolerances, another method (low orders lose sight of low bounces), or "
                "method='MoreauJean'"
            )
        still = Held(points, ("rests",) * len(points), (0.0,) * len(points))
        q, v = onto_contacts(model, still, t, q, v)
        return self._decided(t, q, v, p, near, None, -1, "")

    def _decided(
        self,
        t: float,
        q: Array,
        v: Array,
        p: Any,
        closed: Array,
        held: Held | None,
        point: int,
        hint: str,
        bounces: bool = False,
    ) -> tuple[str, Array]:
        """Contact states at an instant where no gap is closing any more."""
        model = self.model
        k = kinematics_at(model, q, v, t)
        resting = closed & (k.gap_rate <= self.none)
        system = mechanism_at(model, q, v, *self.given_forces(t, q, v, p), t)
        if hint == "lift" and held is not None:
            without = resting.copy()
            without[point] = False
            try:
                found = settle(model, system, k, without)
            except LCPError:
                found = None
            size = 1.0 + np.abs(system.acceleration).max(initial=0.0)
            if found is not None and found.gap_accelerations[point] >= -1e-6 * size:
                resting = without
        if not resting.any():
            return FREE, np.concatenate([q, v])
        # Where points give way, a little less friction shows the way that they are about to move.
        friction = self.contacts.friction * (1.0 - YIELDING if hint == "yield" else 1.0)
        found, standing = self._settled(system, k, resting, friction)
        points, states, angles, touching, slow = [], [], [], [], []
        largest = float(found.forces[:, 0].max(initial=0.0))
        for i in np.flatnonzero(resting):
            force, state = found.forces[i], found.states[i]
            if force[0] <= NO_FORCE * largest:
                if state != "apart":
                    touching.append(int(i))
                continue
            angle = 0.0
            if hint == "slide" and i == point:
                state = "slides"
            if state == "slides":
                slip = k.slip[i]
                if np.hypot(*slip) <= 1.5 * self.slow:
                    slow.append(int(i))
                if (
                    np.hypot(*slip) <= self.none or standing[i]
                ):  # it begins: against the friction there is
                    slip = -force[1:]
                if not slip.any():
                    slip = np.array([1.0, 0.0])
                angle = float(np.round(np.arctan2(slip[1], slip[0]), 12)) + 0.0
            points.append(int(i))
            states.append(state)
            angles.append(angle)
        chosen = Held(
            tuple(points), tuple(states), tuple(angles), tuple(touching), bounces, tuple(slow)
        )
        if not points:
            return FREE, np.concatenate([q, v])
        chosen = replace(chosen, shared=are_shared(model, chosen, t, q, v))
        q, onto = onto_contacts(model, chosen, t, q, v)
        sliding = [i for i, state in zip(points, states) if state == "slides"]
        before, after = k.slip[sliding], kinematics_at(model, q, onto, t).slip[sliding]
        moved, moves = (np.hypot(*slip.T) > self.none for slip in (before, after))
        rough = self.contacts.friction[sliding] > 0.0
        if (rough & moved & ~moves).any():  # others that stick hold it, too: it does not slide
            hint = hint if hint == "lift" else ""
            return self._decided(t, q, onto, p, closed, held, point, hint, bounces)
        key = self._key(chosen)
        self.held[key] = chosen
        return key, np.concatenate([q, onto])

    def _settled(
        self, system: Mechanism, k: ContactKinematics, resting: Array, friction: Array
    ) -> tuple[ContactForces, Array]:
        """Forces at an instant, and the points whose slip is too slow to have a direction.

        Slip that stops in its own line keeps that direction to the end. Where friction would turn
        it, a direction that is told from less than `SLOW` is wrong a moment later, and the law
        with it would chatter at that speed: there the point stands, and forces decide anew.
        """
        found = settle(self.model, system, k, resting, friction=friction)
        speed = np.hypot(k.slip[:, 0], k.slip[:, 1])
        pressed = resting & (self.contacts.friction > 0.0) & (found.forces[:, 0] > 0.0)
        pressed &= speed > self.none
        slow = pressed & (speed <= self.slow * (1.0 + TURNING))
        if slow.any():
            rate = k.T[:, 1:] @ found.accelerations + k.bias[:, 1:]
            across = np.abs(k.slip[:, 0] * rate[:, 1] - k.slip[:, 1] * rate[:, 0])
            turning = across > TURNING * speed * np.hypot(rate[:, 0], rate[:, 1])
            slow &= turning
        if slow.any():
            slow |= pressed & turning & (speed <= NEARLY * self.slow)
            found = settle(self.model, system, k, resting, slow, friction)
        return found, slow

    def _key(self, held: Held) -> str:
        """Readable name of a set of contact states."""
        parts = []
        for i, state, angle in zip(held.points, held.states, held.angles):
            way = f" {np.degrees(angle):.6g}°" if state == "slides" else ""
            parts.append(f"{self.contacts.names[i]} {state}{way}")
        parts += [f"{self.contacts.names[i]} touches" for i in held.touching]
        if held.bounces:
            parts.append("after the last bounces that can be seen")
        key = ", ".join(parts)
        number = 2
        while self.held.get(key, held) != held:  # angles that look alike
            key, number = f"{', '.join(parts)} ({number})", number + 1
        return key
