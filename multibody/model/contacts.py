"""Contacts of a model: two shapes, restitution, friction, and what the surfaces do when pressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from ..checks import real_scalar
from .surfaces import Shape, elementary

__all__ = ["LAWS", "Contact", "HuntCrossley", "SpringDamper", "checked_contact"]


@dataclass(frozen=True)
class SpringDamper:
    """The book's compliant surface (§11.8): a massless patch on a spring and a damper.

    The patch has a state of its own, z ≤ 0, that creeps back after the body has left: D ż = −K z
    − f. The body is pushed by f = max(0, −K z − D ż) while it touches the patch, and never pulled.
    Friction likewise has springs of its own along the two tangents, which slide at μ f.

    Parameters
    ----------
    stiffness, damping
        K and D, along the normal.
    tangential_stiffness, tangential_damping
        Along the tangents; those of the normal if not given. Used where the contact has friction.
    """

    kind: ClassVar[str] = "spring_damper"
    stiffness: float
    damping: float
    tangential_stiffness: float | None = None
    tangential_damping: float | None = None

    def __post_init__(self) -> None:
        _positive(self, ("stiffness", "damping"))
        for name in ("stiffness", "damping"):
            if getattr(self, f"tangential_{name}") is None:
                object.__setattr__(self, f"tangential_{name}", getattr(self, name))
        _positive(self, ("tangential_stiffness", "tangential_damping"))


@dataclass(frozen=True)
class HuntCrossley:
    """Normal force k δⁿ (1 + c δ̇) at depth δ, never negative; friction that begins smoothly.

    Parameters
    ----------
    stiffness, exponent
        k and n: 3/2 for spheres (Hertz).
    dissipation
        c, in s/m: the coefficient of restitution at low speeds is about 1 − (2/3) c v.
    slip_speed
        Friction is μ f s/√(s² + slip_speed²) against the slip s: below slip_speed it creeps.
    """

    kind: ClassVar[str] = "hunt_crossley"
    stiffness: float
    exponent: float = 1.5
    dissipation: float = 0.0
    slip_speed: float = 1e-3

    def __post_init__(self) -> None:
        _positive(self, ("stiffness", "slip_speed"))
        _positive(self, ("dissipation",), strict=False)
        if not real_scalar(self.exponent, "HuntCrossley: exponent") >= 1.0:
            raise ValueError(f"HuntCrossley: exponent: expected ≥ 1, received {self.exponent!r}")


def _positive(law: Any, names: tuple[str, ...], strict: bool = True) -> None:
    for name in names:
        value = real_scalar(getattr(law, name), f"{type(law).__name__}: {name}")
        if not np.isfinite(value) or value < 0.0 or (strict and value == 0.0):
            raise ValueError(
                f"{type(law).__name__}: {name}: expected a number {'>' if strict else '≥'} 0, "
                f"received {value!r}"
            )
        object.__setattr__(law, name, value)


LAWS: dict[str, Any] = {cls.kind: cls for cls in (SpringDamper, HuntCrossley)}


@dataclass(frozen=True, eq=False)
class Contact:
    """Two surfaces that may touch.

    Attributes
    ----------
    name
        Its points are called name, or name[0], name[1], … if there are several.
    body_a, shape_a, body_b, shape_b
        Numbers of the bodies, and shapes in their coordinates; the normal points from a to b.
    restitution
        e: the gap's rate after an impact is −e times the one before (Newton).
    friction
        Coulomb's μ.
    law
        None: rigid. Otherwise `SpringDamper` or `HuntCrossley`: pressed surfaces yield.
    gap
        In place of shapes: φ(q), a traceable function of the position variables.
    """

    name: str
    body_a: int = 0
    shape_a: Shape | None = None
    body_b: int = 0
    shape_b: Shape | None = None
    restitution: float = 0.0
    friction: float = 0.0
    law: Any = None
    gap: Callable[..., Any] | None = None

    def points(self) -> list[tuple[str, bool, int, list[float]]]:
        """Elementary contacts: names, whether a and b change places, kinds, numbers."""
        if self.gap is not None:
            return []
        assert self.shape_a is not None
        assert self.shape_b is not None
        turned, parts = elementary(self.name, self.shape_a, self.shape_b)
        names = [self.name] if len(parts) == 1 else [f"{self.name}[{k}]" for k in range(len(parts))]
        return [(name, turned, kind, numbers) for name, (kind, numbers) in zip(names, parts)]

    def identity(self) -> list[Any]:
        """What tells contacts apart."""
        return [getattr(self, item.name) for item in fields(self)]


def checked_contact(contact: Contact, n: int) -> Contact:
    """Contact of a model with n bodies, or an error that says what is wrong."""
    where = f"contact {contact.name!r}"
    e = real_scalar(contact.restitution, f"{where}: restitution")
    if not 0.0 <= e <= 1.0:
        raise ValueError(
            f"{where}: restitution: expected 0 ≤ e ≤ 1, received {e:g}; "
            + ("bodies would pass through" if e < 0 else "an impact would make energy")
        )
    mu = real_scalar(contact.friction, f"{where}: friction")
    if not (mu >= 0.0 and np.isfinite(mu)):
        raise ValueError(f"{where}: friction: expected μ ≥ 0, received {mu:g}")
    if contact.law is not None and not isinstance(contact.law, tuple(LAWS.values())):
        raise TypeError(
            f"{where}: law: expected None (rigid), SpringDamper or HuntCrossley, received "
            f"{contact.law!r:.80}"
        )
    if contact.law is not None and e != 0.0:
        raise ValueError(
            f"{where}: a compliant surface rebounds by its own law; leave out restitution={e:g}"
        )
    if contact.gap is not None:
        return _by_function(contact, where, e, mu)
    for side in ("a", "b"):
        shape, body = getattr(contact, f"shape_{side}"), getattr(contact, f"body_{side}")
        if not isinstance(shape, Shape):
            raise TypeError(
                f"{where}: shape_{side}: expected a shape, such as Ball(0.1), or gap=, a function "
                f"of q; received {shape!r:.80}"
            )
        if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body <= n:
            raise ValueError(
                f"{where}: body_{side}: expected the number of a body, 0 to {n}, received {body!r}"
            )
    if contact.body_a == contact.body_b:
        which = "the base" if contact.body_a == 0 else "one body"
        raise ValueError(
            f"{where}: expected two different bodies, received {which} twice; what belongs to one "
            "body never moves against it"
        )
    checked = Contact(
        contact.name,
        int(contact.body_a),
        contact.shape_a,
        int(contact.body_b),
        contact.shape_b,
        e,
        mu,
        contact.law,
    )
    checked.points()  # raises for pairs without a law
    return checked


def _by_function(contact: Contact, where: str, e: float, mu: float) -> Contact:
    if not callable(contact.gap):
        raise TypeError(f"{where}: gap: expected a function φ(q), received {contact.gap!r:.80}")
    if contact.shape_a is not None or contact.shape_b is not None:
        raise TypeError(f"{where}: expected either two shapes or gap=, received both")
    if mu != 0.0 or contact.law is not None:
        raise ValueError(
            f"{where}: a gap φ(q) has a normal but no tangents, so neither friction nor a law of "
            "its own; use shapes for these"
        )
    return Contact(contact.name, restitution=e, gap=contact.gap)


def check_duplicates(contacts: tuple[Contact, ...]) -> None:
    """Refuse two contacts that say the same of the same pair, under whatever names."""
    seen: dict[Any, str] = {}
    for contact in contacts:
        sides = ((contact.body_a, contact.shape_a), (contact.body_b, contact.shape_b))
        key = contact.gap or frozenset(sides)
        if key in seen:
            raise ValueError(
                f"contacts {seen[key]!r} and {contact.name!r} are the same pair of surfaces; keep "
                "one (forces of the two could not be told apart)"
            )
        seen[key] = contact.name
