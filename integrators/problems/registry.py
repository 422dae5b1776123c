"""How a problem gets its name: a decorator, a look-up that forgives spelling, and a table.

A reference problem is a function with keyword parameters that returns an
:class:`~integrators.problem.IVP`. Decorating it is all that is needed to make it known to
:func:`get`, to the command line and to the tests.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from integrators.docstrings import documentation
from integrators.problem import IVP

__all__ = ["Entry", "entries", "get", "names", "register"]

Builder = TypeVar("Builder", bound=Callable[..., IVP])


@dataclass(frozen=True)
class Entry:
    """One line of the table of problems.

    Parameters
    ----------
    name
        The name by which :func:`get` finds it.
    build
        The function that returns the :class:`~integrators.problem.IVP`.
    settings
        Keyword arguments that a variant fixes, such as ``mu=1000``.
    aliases
        Other names.
    stiff, chaotic
        What to expect of it with the default parameters.
    digits
        Correct significant digits of the tabulated references (doubles keep 16 of them).
    """

    name: str
    build: Callable[..., IVP]
    settings: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    stiff: bool = False
    chaotic: bool = False
    digits: int = 16

    def problem(self, **parameters: Any) -> IVP:
        """Build the problem, with keyword parameters overriding the defaults."""
        accepted = inspect.signature(self.build).parameters
        for key in parameters:
            if key not in accepted:
                raise TypeError(
                    f"problem {self.name!r} has no parameter {key!r}; "
                    f"it takes {', '.join(accepted) or 'none'}"
                )
        return self.build(**{**self.settings, **parameters}).with_(name=self.name)

    @property
    def dimension(self) -> int:
        """Number of components of the state."""
        return self.problem().n

    @property
    def kind(self) -> str:
        """``"ODE"`` or ``"DAE index k"``."""
        problem = self.problem()
        if problem.mass is None:
            return "ODE"
        return f"DAE index {1 if problem.index is None else max(1, int(problem.index.max()))}"

    @property
    def reference(self) -> str:
        """``"exact"``, the digits known, or ``"none"``."""
        problem = self.problem()
        if problem.exact is not None:
            return "exact"
        return f"{self.digits} digits" if problem.references else "none"

    @property
    def description(self) -> str:
        """First line of the docstring, with the settings of a variant."""
        line = documentation(self.build)
        line = line.splitlines()[0].rstrip(".") if line else ""
        settings = ", ".join(f"{key} = {value}" for key, value in self.settings.items())
        return f"{line} ({settings})" if settings else line

    @property
    def source(self) -> str:
        """Where the problem and its reference values come from."""
        return self.problem().source


_ENTRIES: dict[str, Entry] = {}
_KEYS: dict[str, str] = {}  # folded name or alias -> name


def _fold(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in "-_ ")


def _origin(build: Callable[..., IVP]) -> tuple[str, str]:
    return build.__module__, build.__qualname__


def register(
    *aliases: str,
    stiff: bool = False,
    chaotic: bool = False,
    digits: int = 16,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[Builder], Builder]:
    """Make the decorated function a named problem.

    Parameters
    ----------
    aliases
        Other names under which :func:`get` finds it.
    stiff, chaotic, digits
        As in :class:`Entry`.
    variants
        Further names for fixed parameters, ``{"van_der_pol_1000": {"mu": 1000.0}}``. The keys
        ``stiff``, ``chaotic`` and ``aliases`` in a variant override those of the problem.

    Raises
    ------
    ValueError
        If a name is taken by another function; running a definition again replaces it.
    """

    def add(entry: Entry) -> None:
        for name in (entry.name, *entry.aliases):
            key = _fold(name)
            if key in _KEYS and _origin(_ENTRIES[_KEYS[key]].build) != _origin(entry.build):
                raise ValueError(
                    f"problem name {name!r} is taken by {_KEYS[key]!r}; choose another"
                )
            _KEYS[key] = entry.name
        _ENTRIES[entry.name] = entry

    def decorate(function: Builder) -> Builder:
        @functools.wraps(function)
        def build(*args: Any, **parameters: Any) -> IVP:
            problem = function(*args, **parameters)
            return problem if problem.name else problem.with_(name=function.__name__)

        add(Entry(build.__name__, build, {}, tuple(aliases), stiff, chaotic, digits))
        for name, given in (variants or {}).items():
            settings = dict(given)
            also = tuple(settings.pop("aliases", ()))
            is_stiff = bool(settings.pop("stiff", stiff))
            is_chaotic = bool(settings.pop("chaotic", chaotic))
            add(Entry(name, build, settings, also, is_stiff, is_chaotic, digits))
        return cast(Builder, build)

    return decorate


def names() -> list[str]:
    """Names of all problems, in alphabetical order.

    Examples
    --------
    >>> from integrators import problems
    >>> "lorenz" in problems.names()
    True
    """
    return sorted(_ENTRIES)


def entries() -> list[Entry]:
    """Table of all problems, in the order of :func:`names`.

    Examples
    --------
    >>> from integrators import problems
    >>> [e.kind for e in problems.entries() if e.name == "jay"]
    ['DAE index 3']
    """
    return [_ENTRIES[name] for name in names()]


def entry(name: str) -> Entry:
    """Line of the table for a name or alias; spelling as in :func:`get`."""
    key = _fold(name)
    if key not in _KEYS:
        close = dict.fromkeys(_KEYS[k] for k in difflib.get_close_matches(key, _KEYS, n=3))
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else f"choose one of {', '.join(names())}"
        )
        raise ValueError(f"unknown problem {name!r}; {hint}")
    return _ENTRIES[_KEYS[key]]


def get(name: str, **parameters: Any) -> IVP:
    """Return a reference problem by name.

    Parameters
    ----------
    name
        Name or alias; case, hyphens, underscores and spaces do not matter.
    parameters
        Keyword parameters of the problem; the rest keep their defaults.

    Raises
    ------
    ValueError
        If there is no such problem; the message suggests the nearest name.
    TypeError
        If the problem has no such parameter.

    Examples
    --------
    >>> from integrators import problems
    >>> problems.get("Van der Pol", mu=100.0)
    <IVP van_der_pol: n = 2, t from 0 to 200>
    >>> problems.get("robertsen")
    Traceback (most recent call last):
    ...
    ValueError: unknown problem 'robertsen'; did you mean robertson or robertson_dae?
    """
    return entry(name).problem(**parameters)
