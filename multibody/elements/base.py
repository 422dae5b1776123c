"""What an element is: a force law, with numbers and with states of its own if it has any.

An element reads the motion of the mechanism and acts on it. It is a class with one method, ``act``,
which is handed a :class:`~multibody.dynamics.acting.Here`: what is asked of it (joints, points,
frames, time, own states) are numbers in a run and symbols while a problem is traced, so the method
is written with NumPy and without branches on values (``integrators.where``).

Fields of the class that are numbers, or arrays of numbers, are the element's parameters: families
of models (:class:`~multibody.ModelFamily`) vary them, files carry them. Own states are named by
`states`; they stand behind the positions of the joints in q, and ``here.rates(…)`` says how they
change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..checks import Array, has_symbols, real_array

__all__ = ["ELEMENTS", "Element", "ForceLaw", "NamedElement", "element_kind"]

#: Element classes by the name that model files use.
ELEMENTS: dict[str, type[Element]] = {}

E = TypeVar("E", bound="type[Element]")


def element_kind(cls: E) -> E:
    """Enter an element class in the registry under its ``kind``."""
    ELEMENTS[cls.kind] = cls
    return cls


class Element:
    """A force law; subclasses are frozen dataclasses with a method ``act``.

    Attributes
    ----------
    kind
        Name in model files; "" for classes that no file can carry.
    states
        Names of the own states.

    Examples
    --------
    A dashpot to the base whose oil warms up, with the temperature as a state:

    >>> from dataclasses import dataclass
    >>> from multibody import Element, ModelBuilder, Prismatic, point_mass, simulate
    >>> @dataclass(frozen=True)
    ... class Dashpot(Element):
    ...     joint: str
    ...     damping: float
    ...     heat_capacity: float
    ...     states = ("temperature",)
    ...
    ...     def act(self, here):
    ...         _, v = here.joint(self.joint)
    ...         force = self.damping * v[0]
    ...         here.push_joint(self.joint, -force)
    ...         here.rates(force * v[0] / self.heat_capacity)
    >>> b = ModelBuilder(gravity=(0, 0, 0), name="damped")
    >>> _ = b.add_body("mass", 0, Prismatic("x"), inertia=point_mass(2.0))
    >>> b.add_element("oil", Dashpot("mass", 3.0, 50.0))
    >>> run = simulate(b.build(), [0.0], [1.0], T=20.0)
    >>> run.problem.state_names
    ('mass.shift', 'oil.temperature', 'd(mass.shift)')
    >>> f"{run.y[1, -1]:.6f}"  # the kinetic energy, 1 J, in 50 J/K
    '0.020000'
    """

    kind: ClassVar[str] = ""
    states: tuple[str, ...] = ()
    #: Joint whose reaction the element feels, by the name of a body or a loop; see `felt`.
    carried_by: str | None = None

    def felt(self, wrench: Any, here: Any) -> Any:
        """Of an element that feels a reaction: by what number ≥ 0 its action is multiplied.

        `wrench` is the reaction (couple, force) in the joint `carried_by`, in base coordinates.
        ``act`` then says what the element does for a load of one. What it does changes the
        reaction: the two are solved for together.
        """
        raise TypeError(f"{type(self).__name__}: an element that feels a reaction needs felt(…)")

    def act(self, here: Any) -> None:
        """Read the motion from `here`, and push."""
        raise TypeError(f"{type(self).__name__}: an element needs a method act(here)")

    def start(self) -> Mapping[str, float]:
        """Values of own states at the start of a run; zero for those that are left out."""
        return {}

    # ------------------------------------------------------------------ numbers

    def _fields(self) -> tuple[Field[Any], ...]:
        try:
            return fields(self)  # type: ignore[arg-type]
        except TypeError:  # no dataclass
            return ()

    def _number_fields(self) -> list[str]:
        """Names of fields that are numbers or arrays of numbers; those of text may be bodies."""
        found = [f for f in self._fields() if _is_numbers(getattr(self, f.name))]
        return [f.name for f in found if f.type is not str and not str(f.type).startswith("str")]

    def number_names(self) -> list[str]:
        """Name of the field that each of the numbers belongs to."""
        return [n for n in self._number_fields() for _ in range(np.size(getattr(self, n)))]

    @property
    def numbers(self) -> Array:
        """All numbers of the element, one after the other."""
        parts = [np.ravel(np.asarray(getattr(self, name))) for name in self._number_fields()]
        flat = [x for part in parts for x in part]
        array = np.array(flat, dtype=object) if flat else np.zeros(0)
        return array if has_symbols(array) else array.astype(float)

    def with_numbers(self, numbers: Any) -> Element:
        """Return the same element with other numbers (or symbols), unchecked."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        at = 0
        for name in self._number_fields():
            old = getattr(self, name)
            size = np.size(old)
            part = numbers[at : at + size]
            at += size
            twin.__dict__[name] = part[0] if np.ndim(old) == 0 else np.reshape(part, np.shape(old))
        return twin

    def start_values(self) -> Array:
        """Start of all own states, in order."""
        given = dict(self.start())
        if wrong := [name for name in given if name not in self.states]:
            raise ValueError(
                f"{type(self).__name__}: start() names {wrong}, but the states are "
                f"{list(self.states)}"
            )
        return real_array([given.get(name, 0.0) for name in self.states], "start").astype(float)

    def identity(self) -> Any:
        """Everything that tells elements apart."""
        values = [(f.name, getattr(self, f.name)) for f in self._fields()]
        rest = [
            (name, value._identity() if hasattr(value, "_identity") else value)
            for name, value in values
            if name not in self._number_fields()
        ]
        own = None if self._fields() else id(self)
        return type(self), tuple(self.states), self.numbers.tobytes(), repr(rest), own

    def shape(self) -> Any:
        """What elements of one structure share: everything but numbers."""
        numeric = [(name, np.shape(getattr(self, name))) for name in self._number_fields()]
        other = [
            (f.name, getattr(self, f.name)) for f in self._fields() if f.name not in dict(numeric)
        ]
        return type(self), tuple(self.states), numeric, other

    @property
    def is_numbers(self) -> bool:
        """Whether it is one of the library's, without a function of the user's."""
        values = [getattr(self, f.name) for f in self._fields()]
        library = type(self).__module__.startswith("multibody.elements.")
        return library and not any(map(callable, values))


def _is_numbers(value: Any) -> bool:
    if value is None or isinstance(value, str | bool | bytes) or callable(value):
        return False
    if isinstance(value, Mapping):
        return False
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    return bool(array.size) and (array.dtype.kind in "iuf" or has_symbols(array))


@dataclass(frozen=True)
class ForceLaw(Element):
    """A force law as a function ``law(here)``, for what needs no class.

    Parameters
    ----------
    law
        Function of a :class:`~multibody.dynamics.acting.Here`.
    own
        Names of own states, with their values at the start.

    Examples
    --------
    A magnet that pulls a bob towards a point of the base:

    >>> from multibody import ForceLaw, ModelBuilder, Revolute, point_mass, simulate
    >>> def magnet(here):
    ...     x, _ = here.point("bob", (0, 0, -1))
    ...     gap = np.array([0.2, 0.0, -1.1]) - x
    ...     here.push("bob", 0.5 * gap / (gap @ gap) ** 1.5, (0, 0, -1))
    >>> b = ModelBuilder(name="magnet")
    >>> _ = b.add_body("bob", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
    >>> b.add_element("magnet", ForceLaw(magnet))
    >>> simulate(b.build(), [0.5], T=1.0).success
    True
    """

    law: Callable[[Any], None]
    own: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise TypeError(f"law: expected a function law(here), received {self.law!r:.80}")
        object.__setattr__(self, "states", tuple(self.own))

    def act(self, here: Any) -> None:
        """Call the function."""
        self.law(here)

    def start(self) -> Mapping[str, float]:
        """Start values as given."""
        return self.own


@dataclass(frozen=True, eq=False)
class NamedElement:
    """An element of a model, and its name there."""

    name: str
    element: Element

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the own states in q."""
        return tuple(f"{self.name}.{state}" for state in self.element.states)
