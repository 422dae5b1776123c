"""How a mechanism gets its name: a decorator, a look-up that forgives spelling, and a table.

A mechanism is a function with keyword parameters that returns a
:class:`~multibody.model.Model`. The decorator :func:`register` adds what a first simulation needs,
a start and an end time, so that tests, pictures and examples can iterate over all of them.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from integrators.docstrings import documentation

from ..checks import Array, ArrayLike
from ..model import Model
from ..runs.families.family import NAMED_FACTORIES

if TYPE_CHECKING:
    from integrators import IVP

__all__ = ["Entry", "entries", "entry", "get", "names", "register"]

Builder = TypeVar("Builder", bound=Callable[..., Model])

#: Numbers, or a function of the model for mechanisms of variable size; None for the default.
Start = ArrayLike | Callable[[Model], ArrayLike] | None


@dataclass(frozen=True)
class Entry:
    """One line of the table of mechanisms.

    Attributes
    ----------
    name
        The name by which :func:`get` finds it.
    build
        The function that returns the model.
    q0, v0
        Where a first simulation starts: numbers, a function of the model, or None for the
        neutral position, and for rest.
    t_end
        Where it ends; it begins at 0.
    source
        Where the parameters, or reference values for the motion, come from.
    settings
        Arguments for parameters that have no default.
    """

    name: str
    build: Callable[..., Model]
    q0: Start = None
    v0: Start = None
    t_end: float = 10.0
    source: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def model(self, **parameters: Any) -> Model:
        """Build the model, with keyword parameters in place of the defaults."""
        if not parameters:
            return self._usual
        accepted = inspect.signature(self.build).parameters
        for key in parameters:
            if key not in accepted:
                raise TypeError(
                    f"mechanism {self.name!r} has no parameter {key!r}; "
                    f"it takes {', '.join(accepted) or 'none'}"
                )
        return self.build(**{**self.settings, **parameters})

    @cached_property
    def _usual(self) -> Model:
        """With the defaults: one for all, because models never change."""
        return self.build(**self.settings)

    def start(self, model: Model) -> tuple[Array, Array]:
        """Position and velocity from which the mechanism is first simulated."""
        q0 = self.q0(model) if callable(self.q0) else self.q0
        v0 = self.v0(model) if callable(self.v0) else self.v0
        return (
            model.neutral() if q0 is None else model.check("q", q0),
            np.zeros(model.nv) if v0 is None else model.check("v", v0),
        )

    def problem(self, **parameters: Any) -> IVP:
        """Initial value problem of the first simulation, see :func:`multibody.as_ivp`.

        Examples
        --------
        >>> entry("pendulum").problem().y0
        array([1.57079633, 0.        ])
        """
        from ..runs.ivp import as_ivp

        model = self.model(**parameters)
        return as_ivp(model, *self.start(model), (0.0, self.t_end))

    @property
    def description(self) -> str:
        """First line of the docstring."""
        return documentation(self.build).partition("\n")[0].rstrip(".")


_ENTRIES: dict[str, Entry] = {}


def _fold(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in "-_ ")


def register(
    *,
    q0: Start = None,
    v0: Start = None,
    t_end: float = 10.0,
    source: str = "",
    settings: Mapping[str, Any] | None = None,
) -> Callable[[Builder], Builder]:
    """Make the decorated function a named mechanism; parameters as in :class:`Entry`.

    Examples
    --------
    >>> @register(q0=[0.1], source="my desk")
    ... def desk_toy() -> Model:
    ...     \"\"\"Pendulum of 10 cm.\"\"\"
    ...     from multibody import mechanisms
    ...     return mechanisms.pendulum(length=0.1)
    >>> get("desk toy").nv
    1
    >>> del _ENTRIES["desktoy"]
    """

    def decorate(function: Builder) -> Builder:
        name = function.__name__
        taken = _ENTRIES.get(_fold(name))
        if taken is not None and taken.build.__module__ != function.__module__:
            raise ValueError(f"mechanism name {name!r} is taken by {taken.build.__module__}")
        _ENTRIES[_fold(name)] = Entry(
            name, function, q0, v0, float(t_end), source, dict(settings or {})
        )
        return function

    return decorate


def names() -> list[str]:
    """Names of all mechanisms, in alphabetical order.

    Examples
    --------
    >>> "puma560" in names()
    True
    """
    return sorted(e.name for e in _ENTRIES.values())


def entries() -> list[Entry]:
    """Table of all mechanisms, in the order of :func:`names`.

    Examples
    --------
    >>> [e.description for e in entries() if e.name == "pendulum"]
    ['Point mass on a massless bar that swings about y; q = 0 hangs down']
    """
    return [entry(name) for name in names()]


def entry(name: str) -> Entry:
    """Line of the table for a name; case, hyphens, underscores and spaces do not matter.

    Examples
    --------
    >>> entry("Heavy top").t_end
    10.0
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a mechanism, received {name!r}")
    key = _fold(name)
    if key not in _ENTRIES:
        near = [_ENTRIES[k].name for k in difflib.get_close_matches(key, _ENTRIES, n=3)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of {names()}"
        raise ValueError(f"unknown mechanism {name!r}; {hint}")
    return _ENTRIES[key]


def get(name: str, **parameters: Any) -> Model:
    """Return a mechanism's model by name.

    Parameters
    ----------
    name
        Case, hyphens, underscores and spaces do not matter.
    parameters
        Keyword parameters of the mechanism; the rest keep their defaults.

    Raises
    ------
    ValueError
        If there is no such mechanism; the message suggests the nearest name.
    TypeError
        If the mechanism has no such parameter.

    Examples
    --------
    >>> get("n_pendulum", n=3)
    <Model pendulum of 3 rods: 3 bodies, nv = 3>
    >>> get("cart pool")
    Traceback (most recent call last):
        ...
    ValueError: unknown mechanism 'cart pool'; did you mean cart_pole or light_cart_pole?
    """
    return entry(name).model(**parameters)


def _named_factory(name: str) -> Callable[..., Model] | None:
    """How :class:`~multibody.ModelFamily` finds a mechanism: its function, settings filled in."""
    if _fold(name) not in _ENTRIES:
        return None
    found = entry(name)
    return functools.partial(found.build, **found.settings) if found.settings else found.build


NAMED_FACTORIES.append(_named_factory)
