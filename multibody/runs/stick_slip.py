"""Dry friction in joints that sticks exactly: the sign of a velocity as a surface of a ``Switch``.

``as_ivp`` smooths the jump of :class:`~multibody.Friction` over its slip speed, so that a joint
that should stick creeps. Here the two sides of the jump are right-hand sides of their own; where
both lead to v = 0, the motion stays there (Filippov), held by what friction it takes, up to the
stiction. Those who look at a run are told the friction that acted in it: of slipping joints the
law's without smoothing, of joints that stick what keeps v at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, Switch
from integrators import traced as trace
from integrators.problem import from_recipe

from ..checks import ArrayLike
from ..dynamics.functions import crba
from ..elements import Element, Friction, NamedElement
from .ivp import as_ivp

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["stick_slip"]

#: Part of its acceleration without loops that is left of a joint's that they hold: rounding.
HELD = 1e-9


@dataclass(frozen=True, eq=False)
class _Side(Element):
    """Dry friction of one sign of the velocity."""

    friction: Friction
    sign: float

    def act(self, here: Any) -> None:
        """Push against the motion of this sign."""
        _, v = here.joint(self.friction.joint)
        here.push_joint(self.friction.joint, -self.sign * self.friction.size(v[0]))


@dataclass(frozen=True, eq=False)
class _AsItWas(Element):
    """Friction as it acted in a run."""

    friction: Friction
    part: Callable[..., float]

    def act(self, here: Any) -> None:
        """Push with the part of the dry friction that acted, and the viscous one."""
        v = here.joint(self.friction.joint).velocity[0]
        force = -self.friction.viscous * v
        force -= self.part(here.t, here.q, here.v) * self.friction.size(v)
        here.push_joint(self.friction.joint, force)
        here.output("force", force)


@from_recipe
def stick_slip(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    t_span: Sequence[float] = (0.0, 10.0),
    tau: Any = None,
    f_ext: Any = None,
    **options: Any,
) -> IVP:
    """Initial value problem in which joints with dry friction stick and slip exactly.

    Parameters
    ----------
    model
        With elements :class:`~multibody.Friction` in joints of its tree; their `slip_speed` is
        not used.
    q0, v0, t_span, tau, f_ext, options
        As in :func:`~multibody.as_ivp`.

    Returns
    -------
    IVP
        Its right-hand side is a :class:`~integrators.Switch`: solutions tell in ``modes`` when
        joints stuck ("sliding" on the surface v = 0) and slipped. At most three joints may stick
        at once.

    Examples
    --------
    A mass on a spring loses 2μN/k of its swing at each turn, until it sticks:

    >>> from integrators import solve
    >>> from multibody import Friction, ModelBuilder, Prismatic, point_mass, stick_slip
    >>> b = ModelBuilder(gravity=(0, 0, 0), name="rubbing mass")
    >>> _ = b.add_body("mass", 0, Prismatic("x"), inertia=point_mass(1.0), stiffness=1.0)
    >>> b.add_element("floor", Friction("mass", coulomb=1.0))
    >>> run = solve(stick_slip(b.build(), [5.3], [0.0], (0, 20)), rtol=1e-10, atol=1e-12)
    >>> [stay.mode for stay in run.modes]
    ['minus', 'plus', 'minus', 'sliding']
    >>> round(float(run.y[0, -1]), 9), round(float(run.modes[-1].start / np.pi), 9)
    (0.7, 3.0)
    """
    dry: list[Any] = [
        named
        for named in model.elements
        if isinstance(named.element, Friction) and named.element.coulomb + _extra(named.element) > 0
    ]
    if not dry:
        raise ValueError(
            f"stick_slip: expected elements Friction with coulomb or stiction, but {model.name!r} "
            "has none; use as_ivp"
        )
    wet = [_viscous(named) if named in dry else named for named in model.elements]
    base = replace(model, elements=tuple(wet))
    smooth = as_ivp(base, q0, v0, t_span, tau, f_ext, **options)
    if smooth.schedule is not None and smooth.schedule.events:
        raise ValueError("stick_slip: sampled elements have instants of their own; use as_ivp")
    f0, n, p = smooth.f, smooth.n, smooth.params
    f: Any = f0
    places, slips = [], []
    for named in dry:
        friction: Any = named.element
        bodies = [body.name for body in model.bodies]
        if friction.joint not in bodies:
            raise ValueError(
                f"stick_slip: {named.name!r} is in the loop joint {friction.joint!r}; cut the loop "
                "elsewhere, so that its joint belongs to the tree"
            )
        place = model.nq + model.v_index[bodies.index(friction.joint)].start
        sides = [
            as_ivp(
                replace(base, elements=(*wet, NamedElement("side", _Side(friction, sign)))),
                *(q0, v0, t_span, tau, f_ext),
                **options,
            ).f
            for sign in (1.0, -1.0)
        ]
        added = [_less(side, f0, n, len(p)) for side in sides]
        if model.bonds and _holds_still(model, smooth, friction, added, place):
            continue  # by its loops: friction there moves nothing
        places.append(place)
        slips.append(named)
        f = f + Switch(_speed(place, n, len(p)), *added)
    if not slips:
        raise ValueError(
            f"stick_slip: the loops of {model.name!r} hold all joints with dry friction still, so "
            "that nothing can slip; use as_ivp"
        )
    observe: Any = smooth.observe

    def as_it_was(solution: Any, before: bool) -> Model:
        parts = _parts_along(solution, places, before)
        acted = {
            named.name: _AsItWas(named.element, partial(_part, parts, k))
            for k, named in enumerate(slips)
        }
        elements = [NamedElement(e.name, acted.get(e.name, e.element)) for e in model.elements]
        return replace(model, elements=tuple(elements))

    return IVP(
        f,
        smooth.y0,
        smooth.t_span,
        p,
        project=smooth.project,
        name=model.name,
        state_names=smooth.state_names,
        observe=replace(observe, as_it_was=as_it_was),
        schedule=smooth.schedule,
        admit=smooth.admit,
    )


def _holds_still(
    model: Model, problem: IVP, friction: Friction, added: Sequence[Any], place: int
) -> bool:
    """Whether loops hold a joint at the start: friction there does not accelerate it."""
    t, y, k = problem.t_span[0], problem.y0, place - model.nq
    p = (problem.params,) if len(problem.params) else ()
    plus, minus = (float(np.asarray(side(t, y, *p))[place]) for side in added)
    # A joint that is free gains at least this acceleration by the two forces.
    inertia = crba(model, model.normalise(y[: model.nq]), t=t)[k, k]
    return abs(plus - minus) <= HELD * 2.0 * float(friction.size(y[place])) / inertia


def _parts_along(solution: Any, places: Sequence[int], before: bool) -> Callable[..., Any]:
    """Parts of the dry friction that acted in a run, by (t, q, v): 1 and −1 for joints that slip.

    Where joints stick they are such that their velocities stay as they are. At the instants
    between stays those of the stay `before`, or of the one after it.
    """
    starts = np.array([stay.start for stay in solution.modes])
    first, *switches = solution.problem.f.terms
    p = (solution.problem.params,) if len(solution.problem.params) else ()
    last: dict[Any, Any] = {}

    def parts(t: float, q: Any, v: Any) -> Any:
        y = np.concatenate([q, v])
        if (key := (float(t), y.tobytes())) not in last:
            last.clear()
            at = max(int(np.searchsorted(starts, t, side="left" if before else "right")) - 1, 0)
            last[key] = found(t, y, np.ravel(solution.modes[at].mode))
        return last[key]

    def found(t: float, y: Any, words: Any) -> Any:
        sides = [(np.asarray(s.plus(t, y, *p)), np.asarray(s.minus(t, y, *p))) for s in switches]
        half = np.array([(plus - minus) / 2.0 for plus, minus in sides])
        middle = np.asarray(first(t, y, *p)) + sum((plus + minus) / 2.0 for plus, minus in sides)
        part = np.array([{"plus": 1.0, "minus": -1.0}.get(word, 0.0) for word in words])
        stuck = np.flatnonzero(words == "sliding")
        if stuck.size:
            rows = np.asarray(places)[stuck]
            slopes = (middle + part @ half)[rows]
            part[stuck] = np.linalg.solve(half[stuck][:, rows].T, -slopes)
        return part

    return parts


def _part(parts: Callable[..., Any], k: int, t: float, q: Any, v: Any) -> float:
    """What one of them is."""
    return float(parts(t, q, v)[k])


def _extra(friction: Friction) -> float:
    return 0.0 if friction.stiction is None else friction.stiction


def _viscous(named: NamedElement) -> NamedElement:
    """The same without dry friction."""
    element: Any = named.element
    return NamedElement(named.name, replace(element, coulomb=0.0, stiction=None))


def _speed(place: int, n: int, k: int) -> Any:
    """The velocity whose sign decides."""
    if k:
        return trace(lambda t, y, p: y[place : place + 1], n=n, params=k, outputs=1)
    return trace(lambda t, y: y[place : place + 1], n=n, outputs=1)


def _less(side: Any, smooth: Any, n: int, k: int) -> Any:
    """What one sign of dry friction adds."""

    def added(t: Any, y: Any, *p: Any) -> Any:
        return np.asarray(side(t, y, *p)) - np.asarray(smooth(t, y, *p))

    if not (hasattr(side, "machine_code") and hasattr(smooth, "machine_code")):
        return added
    if k:
        return trace(lambda t, y, p: added(t, y, p), n=n, params=k)
    return trace(lambda t, y: added(t, y), n=n)
