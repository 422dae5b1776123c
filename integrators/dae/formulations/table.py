"""The table of formulations: one entry each, from which every list of them is made.

A formulation is a function of a :class:`~integrators.dae.Mechanical` system and options that
returns an initial value problem, entered by :func:`register`. ``Mechanical.formulation``,
``multibody.as_ivp`` and ``as_dae``, ``compare``, the command line and the documentation read
``FORMULATIONS``; none of them knows a name of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import suggest
from ...problem import Recipe
from ..acceleration import Weighted
from ..consistency import check_start
from ..options import take_options
from ..problem import Formulation
from ..system import BUILT_ON, Mechanical

__all__ = ["FORMULATIONS", "Form", "formulate", "formulation_key", "listing", "register"]

EXPLICIT, IMPLICIT, MECHANICAL = "explicit", "implicit", "mechanical"
#: What `methods` says, in words.
WHO = {
    EXPLICIT: "every method, explicit ones too",
    IMPLICIT: "RADAU5 and its like",
    MECHANICAL: "methods that take M, f, g and G",
}


@dataclass(frozen=True)
class Form:
    """One formulation.

    Attributes
    ----------
    name, aliases
        What it is called, and other names for the same; spelling (case, -, _) does not matter.
    index
        Differentiation index of the equations that are integrated: 0 for an ordinary differential
        equation in which the constraints are solved for, up to 3.
    unknowns
        The state: q, v; with λ where multipliers are integrated along.
    eliminates
        What is computed from the state instead of being integrated.
    methods
        Who may use it: "explicit" (then every method may), "implicit" for differential-algebraic
        ones, "mechanical" for half-explicit methods and generalized-α.
    meaning
        One line on what becomes of the constraints.
    make
        ``make(mechanical, **options)`` returns the problem.
    """

    name: str
    aliases: tuple[str, ...]
    index: int
    unknowns: str
    eliminates: str
    methods: tuple[str, ...]
    meaning: str
    make: Callable[..., Formulation]

    @property
    def is_explicit(self) -> bool:
        """Whether it is an ordinary differential equation, for every method."""
        return EXPLICIT in self.methods

    @property
    def keeps_multipliers(self) -> bool:
        """Whether λ is part of the state, so that the constraints must be independent."""
        return "λ" in self.unknowns

    @property
    def options(self) -> tuple[str, ...]:
        """What it takes besides the system."""
        return tuple(inspect.signature(self.make).parameters)[1:]

    def __call__(self, mechanical: Mechanical, **options: Any) -> Formulation:
        """Return the problem."""
        return self.make(mechanical, **options)


FORMULATIONS: dict[str, Form] = {}


def register(
    name: str,
    *,
    index: int,
    unknowns: str,
    eliminates: str,
    methods: tuple[str, ...],
    meaning: str,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[..., Formulation]], Callable[..., Formulation]]:
    """Enter a formulation in the table; see :class:`Form`."""
    known = {key: form.name for form in FORMULATIONS.values() for key in (form.name, *form.aliases)}
    for key in (name, *aliases):
        if _plain(key) != key or key in known:
            taken = f"it belongs to {known[key]!r}" if key in known else "lower case, no - or _"
            raise ValueError(f"a formulation cannot be called {key!r}: {taken}")
    if unknown := set(methods) - set(WHO):
        raise ValueError(f"methods: expected some of {', '.join(WHO)}, got {sorted(unknown)}")

    def enter(make: Callable[..., Formulation]) -> Callable[..., Formulation]:
        FORMULATIONS[name] = Form(
            name, aliases, index, unknowns, eliminates, methods, meaning, make
        )
        return make

    return enter


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def formulation_key(name: str, *, explicit: bool = False, argument: str = "formulation") -> str:
    """Return the key of ``FORMULATIONS`` that a name means, in any spelling; refuse others.

    `explicit` admits only those that every method can solve; `argument` is who asks.

    Examples
    --------
    >>> formulation_key("Index-3"), formulation_key("projection")
    ('index3', 'projected')
    """
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be a name such as 'projected', got {name!r}")
    forms = [form for form in FORMULATIONS.values() if form.is_explicit or not explicit]
    keys = {key: form.name for form in forms for key in (form.name, *form.aliases)}
    key = _plain(name)
    if key not in keys:
        hint = suggest(key, list(keys))
        if key in FORMULATIONS:
            hint = ", which has multipliers as unknowns: as_dae makes such problems"
        raise ValueError(
            f"{argument}: expected one of {', '.join(map(repr, keys))}, received {name!r}{hint}"
        )
    return keys[key]


def listing(form: str = "text") -> str:
    """The table in words, "text" for a terminal or "markdown" for a page.

    Examples
    --------
    >>> print(listing().splitlines()[0])
      index1 (none)            q, v        every method, explicit ones too
    """
    forms = list(FORMULATIONS.values())
    if form == "markdown":
        rows = ["| name | index | state | solved for | for | constraints |", "|---" * 6 + "|"]
        for one in forms:
            names = ", ".join(f"`{name}`" for name in (one.name, *one.aliases))
            who = "; ".join(WHO[key] for key in one.methods)
            cells = (names, str(one.index), one.unknowns, one.eliminates, who, one.meaning)
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows)
    lines = []
    for one in forms:
        names = one.name + (f" ({', '.join(one.aliases)})" if one.aliases else "")
        lines.append(f"  {names:24} {one.unknowns:11} {WHO[one.methods[0]]}")
        lines.append(f"      {one.meaning}")
    return "\n".join(lines)


def formulate(
    mechanical: Mechanical, name: str, *, allow_inconsistent: bool = False, **options: Any
) -> Formulation:
    """Return the initial value problem of one formulation.

    Parameters
    ----------
    mechanical
        The system.
    name
        A key of ``FORMULATIONS``.
    allow_inconsistent
        Start even where the constraints do not hold.
    options
        What the formulation takes: "baumgarte" `alpha`, `beta` (1/s), or `T_stab` (s, or
        "auto" with `step`); "augmented" the same, `penalty` and `iterations`; "index1"
        `multipliers=True` to keep λ in the state; "minimal" `independent`, or `closure`, `y0`;
        those with eliminated λ `solver`: "auto", "traced", or one of :func:`accelerations`.

    Examples
    --------
    >>> import numpy as np
    >>> from integrators.dae import Mechanical
    >>> bead = Mechanical(np.eye(2), lambda t, q, v: [0.0, -1.0], lambda t, q: [q[1] - q[0]],
    ...                   q0=[0.0, 0.0], v0=[0.0, 0.0], t_span=(0, 1))
    >>> formulate(bead, "index3").index
    array([1, 1, 2, 2, 3])
    """
    key = formulation_key(name)
    take_options(f"the formulation {key!r}", FORMULATIONS[key].make, options)
    now = mechanical.terms(mechanical.t_span[0], mechanical.q0, mechanical.v0)
    if Weighted(now.M, now.G, mechanical.rank_tolerance).rank == 0:
        raise ValueError(
            f"the Jacobian of the {mechanical.m} constraints is zero at the start (rank 0, largest "
            f"entry {np.abs(now.G).max():.3g}): they restrict nothing there. Check constraint and "
            "jacobian, or start from another position"
        )
    if not allow_inconsistent:
        check_start(mechanical)
    problem = FORMULATIONS[key](mechanical, **options)
    options["allow_inconsistent"] = allow_inconsistent
    made: Any = problem.with_(recipe=Recipe(formulate, (mechanical, name), options))
    return made


BUILT_ON["formulate"] = formulate
