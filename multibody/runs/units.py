"""What the variables of joints are, and their SI units, by the names of the variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["kinds_of_positions", "kinds_of_velocities", "units_of"]

POSITIONS = {
    "angles (rad)": ("angle", "bend"),
    "shifts (m)": ("shift", "x", "y", "z", "p"),
    "directions": ("u",),
}
VELOCITIES = {
    "angular velocities (rad/s)": ("omega", *POSITIONS["angles (rad)"]),
    "velocities (m/s)": ("v", *POSITIONS["shifts (m)"]),
}


def kinds_of_positions(model: Model) -> list[str]:
    """What each position variable of joints is, with its unit."""
    kinds = []
    for body in model.bodies:
        names = list(body.joint.coordinates)
        if names[:4] == ["w", "x", "y", "z"]:
            kinds += ["unit quaternions"] * 4
            names = names[4:]
        kinds += [_kind(name, POSITIONS) for name in names]
    return kinds


def kinds_of_velocities(model: Model) -> list[str]:
    """What each velocity variable is, with its unit."""
    return [_kind(name, VELOCITIES) for body in model.bodies for name in body.joint.speeds]


def _kind(name: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """Kind of a joint's variable by its name; a user's joint may have names of its own."""
    for kind, starts in kinds.items():
        if name.split("_")[0] in starts:
            return kind
    return "other variables"


def units_of(model: Model) -> dict[str, str]:
    """Units of the variables that have one, by name.

    Examples
    --------
    >>> from multibody import mechanisms
    >>> units_of(mechanisms.cart_pole())["d(cart.shift)"]
    'm/s'
    """
    kinds = zip(
        (*model.q_names[: model.nq - model.n_states], *model.v_names),
        (*kinds_of_positions(model), *kinds_of_velocities(model)),
    )
    return {name: kind.partition("(")[2].rstrip(")") for name, kind in kinds if "(" in kind}
