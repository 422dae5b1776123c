"""A model with rigid contacts as a problem for ``solve``: two roads, one door.

``solve(problem, method="DOP853", rtol=…)`` follows contact states as modes, with error control;
``solve(problem, method="MoreauJean", step=h)`` takes time steps that know nothing of instants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators import IVP, Hybrid
from integrators.problem import accepts_params

from ...checks import Array, ArrayLike, one_of
from ...model.contacts import HuntCrossley
from ..forces import force_laws
from ..scheduled import refuse_sampled
from .modes import BEGIN, ContactModes
from .moreau import MoreauJean
from .reacting import without_rigid

if TYPE_CHECKING:
    from ...model import Model

__all__ = ["ContactProblem", "contact_problem", "one_way"]


@dataclass(frozen=True, eq=False, repr=False)
class ContactProblem(Hybrid):
    """The motion of a model with rigid contacts.

    A :class:`~integrators.Hybrid` whose modes are sets of contact states, made when they are first
    entered: "free", "floor rests", "floor slides 180°", … .
    """

    contact_modes: ContactModes | None = None

    def __post_init__(self) -> None:
        """Let events see their own parameters only: modes have others behind them."""
        super().__post_init__()
        assert self.contact_modes is not None
        n = len(self.contact_modes.free.params)
        object.__setattr__(self, "events", tuple(_own(event, n) for event in self.events))

    def with_(self, **changes: Any) -> Hybrid:
        """Return a copy with some fields replaced; the first mode follows the initial state."""
        if self.contact_modes is not None and {"y0", "t_span", "params"} & set(changes):
            y0 = np.asarray(changes.get("y0", self.y0), dtype=float)
            t_span = changes.get("t_span", self.t_span)
            _forwards(t_span)
            nq = self.contact_modes.model.nq
            params = changes.get("params", self.params)
            state = self.contact_modes.model.check("q", y0[:nq]), y0[nq:]
            start, y = self.contact_modes.start(
                float(t_span[0]), *state, () if params is None else params
            )
            changes = {**changes, "start": start, "y0": y}
        return replace(self, **changes)

    def __reduce__(self) -> Any:
        """Pickle without the modes that were made; they are made again."""
        modes = self.contact_modes
        given = {"params": self.params, "events": self.events, "name": self.name}
        made = (modes, self.start, self.y0, self.t_span)
        return (_restored, (type(self), made, {**given, "zeno": self.zeno, "contact_modes": modes}))

    @property
    def model(self) -> Model:
        """The model."""
        assert self.contact_modes is not None
        return self.contact_modes.model

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the components of the state."""
        assert self.contact_modes is not None
        return tuple(self.contact_modes.free.state_names)

    @property
    def free_motion(self) -> IVP:
        """The motion while nothing touches; that of other modes asks for nothing more."""
        assert self.contact_modes is not None
        return self.contact_modes.free

    @property
    def distance(self) -> Any:
        """How far apart two states are; see :class:`~integrators.IVP`."""
        return self.free_motion.distance

    @property
    def invariants(self) -> dict[str, Any]:
        """Nothing is constant through impacts and friction."""
        return {}

    def observe(self, solution: Any) -> Any:
        """Contact forces along a solution; see :func:`multibody.contact_forces`."""
        from .observe import contact_forces

        return contact_forces(self.model, solution)

    def by_own_method(self, name: str) -> tuple[IVP, Any] | None:
        """Problem and method for a name that only this problem knows; ``solve`` asks for it."""
        if name != "MoreauJean" or self.contact_modes is None:
            return None
        method = MoreauJean(self.contact_modes)
        free = self.contact_modes.free
        params = free.params if self.params is None else self.params
        given = {"params": params, "events": self.events, "name": self.name}
        f = method.rates if len(params) else (lambda t, y: method.rates(t, y))
        problem = IVP(f, self.y0, self.t_span, **given, state_names=free.state_names)
        return problem, method

    def whole(self, ivp: IVP) -> ContactProblem:
        """Return the problem from another start, judged when a run by modes begins there."""
        given = {name: getattr(ivp, name) for name in ("y0", "t_span", "params", "events")}
        return replace(self, start=BEGIN, **given)


def _own(event: Any, n: int) -> Any:
    """An event whose functions are given n parameters at most."""

    def limited(function: Any) -> Any:
        if not callable(function) or not accepts_params(function):
            return function
        if not n:
            return lambda t, y: function(t, y)
        return function if isinstance(function, _First) else _First(function, n)

    changes = {name: limited(getattr(event, name)) for name in ("function", "reset")}
    return replace(event, **changes)


@dataclass(frozen=True)
class _First:
    """A function of (t, y, p) that is given the first n of p."""

    function: Any
    n: int

    def __call__(self, t: float, y: Array, p: Any) -> Any:
        return self.function(t, y, p[: self.n])


def _restored(kind: Any, made: tuple[Any, ...], given: dict[str, Any]) -> Any:
    return kind(*made, **given)


def _forwards(t_span: Any) -> None:
    """Refuse to run backwards."""
    if float(t_span[1]) < float(t_span[0]):
        raise ValueError(
            f"t_span = ({t_span[0]:g}, {t_span[1]:g}) runs backwards, but contacts that dissipate "
            "forget where they came from; leave out the contacts to look back"
        )


def one_way(problem: IVP, model: Model) -> IVP:
    """The problem of a model whose contacts yield; it does not run backwards where they dissipate.

    Raises
    ------
    ValueError
        If it does so.
    """

    def lasting(contact: Any) -> bool:
        return (
            isinstance(contact.law, HuntCrossley)
            and contact.law.dissipation == 0.0
            and not contact.friction
        )

    if all(contact.law is None or lasting(contact) for contact in model.contacts):
        return problem
    _forwards(problem.t_span)
    given = problem.directed

    def directed(way: int) -> dict[str, Any]:
        _forwards((0, way))
        return {} if given is None else dict(given(way))

    return problem.with_(directed=directed)


def contact_problem(
    model: Model,
    q0: Array,
    v0: Array,
    t_span: tuple[float, float],
    tau: Any,
    f_ext: Any,
    params: ArrayLike,
    restitution_law: str,
    **options: Any,
) -> ContactProblem:
    """Problem of a model with rigid contacts; arguments as in :func:`multibody.as_ivp`."""
    from ..ivp import as_ivp

    one_of(restitution_law, "restitution_law", ("newton", "poisson"))
    refuse_sampled(model, "a model with rigid contacts")
    _forwards(t_span)
    bare = without_rigid(model)
    if model.bonds:
        if options.get("stabilise") not in (None, "projection", "projected"):
            raise ValueError(
                f"stabilise={options['stabilise']!r}: {model.name!r} has rigid contacts, and runs "
                "with impacts keep loops closed by projection; leave it out"
            )
        options["stabilise"] = "projection"  # impacts need loops that are closed
    free = as_ivp(bare, q0, v0, t_span, tau, f_ext, params=params, **options)
    free = free.with_(manifold=None)  # modes with contacts have none: all methods, or none
    tau_law, force_law, values = force_laws(model, tau, f_ext, params)
    modes = ContactModes(model, free, tau_law, force_law, restitution_law)
    start, y0 = modes.start(t_span[0], q0, v0, values)
    return ContactProblem(modes, start, y0, t_span, name=model.name, contact_modes=modes)
