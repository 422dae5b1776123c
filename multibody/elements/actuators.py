"""Drives and springs on sums of joint positions: actuators and tendons, as MuJoCo has them.

Both act on a length ℓ = ℓ₀ + Σ wᵢ qᵢ with a force F, which is wᵢ F in joint i: the power is F ℓ̇.
(MuJoCo's documentation, "Computation", sections on transmission and force generation.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..checks import exact_array, has_symbols, one_of
from .base import Element, element_kind
from .friction import _positive

__all__ = ["Actuator", "JointTendon"]

DYNAMICS = ("none", "integrator", "filter")


def _numbers(element: Any, name: str, shape: tuple[int, ...]) -> None:
    value = getattr(element, name)
    if value is None or has_symbols(np.asarray(value)):
        return
    array = exact_array(value, f"{type(element).__name__}: {name}", shape)
    if (name == "rest" or name.endswith("range")) and not array[0] <= array[1]:
        raise ValueError(
            f"{type(element).__name__}: expected {name} as (lower, upper), received {value!r}"
        )
    object.__setattr__(element, name, array)


def _clipped(x: Any, bounds: Any) -> Any:
    return x if bounds is None else np.minimum(np.maximum(x, bounds[0]), bounds[1])


class _OnJoints(Element):
    """What acts on a weighted sum of joint positions."""

    joints: Any
    gear: Any
    offset: float

    def __post_init__(self) -> None:
        joints = (self.joints,) if isinstance(self.joints, str) else tuple(self.joints)
        object.__setattr__(self, "joints", joints)
        gear = np.asarray(self.gear)
        if gear.ndim == 0:
            gear = gear.reshape(1)
        if gear.ndim != 1 or len(gear) < len(joints):
            raise ValueError(
                f"{type(self).__name__}: expected a number of gear for each of the freedoms of "
                f"{list(joints)}, received shape {gear.shape}"
            )
        object.__setattr__(self, "gear", gear)
        _numbers(self, "gear", gear.shape)

    def _measured(self, here: Any) -> tuple[Any, Any, bool]:
        """Length, its rate, and whether the joints have a length at all."""
        length, rate, at, single = self.offset, 0.0, 0, True
        for name in self.joints:
            q, v = here.joint(name)
            for k in range(len(v)):
                rate = rate + self.gear[at + k] * v[k]
            single = single and len(q) == len(v) == 1
            length = length + self.gear[at] * q[0] if single else 0.0
            at += len(v)
        if at != len(self.gear):
            raise ValueError(
                f"{type(self).__name__}: {list(self.joints)} have {at} freedoms, received "
                f"{len(self.gear)} numbers of gear"
            )
        return length, rate, single

    def _push(self, here: Any, force: Any) -> None:
        at = 0
        for name in self.joints:
            n = len(here.joint(name).velocity)
            here.push_joint(name, np.array([self.gear[at + k] * force for k in range(n)]))
            at += n


@element_kind
@dataclass(frozen=True, eq=False)
class Actuator(_OnJoints):
    """A drive whose force is linear in its input, length and speed.

        F = (g₀ + g₁ ℓ + g₂ ℓ̇) w + b₀ + b₁ ℓ + b₂ ℓ̇,   ℓ = offset + Σ gear q

    w is the input u, or an activation a that follows it: ȧ = u ("integrator") or T ȧ = u − a
    ("filter"). A motor has g = (1, 0, 0), b = 0; a servo of position g = (k, 0, 0),
    b = (0, −k, −d).

    Parameters
    ----------
    joints
        Name of a joint, or several.
    control
        u: a number, a function of time, a :class:`Table`, or an element whose output "u" it is.
    gear
        A number for each freedom of the joints.
    gain, bias
        g and b.
    offset
        Length where all positions are zero.
    control_range, force_range, activation_range
        (lower, upper): u and F are cut there, and a stands still.
    dynamics, time, initial
        How a follows u, T in s, and a at the start.
    body, point, wrench
        In place of joints: a body, a point of it, and the couple and force there for F = 1, six
        numbers in its axes. The speed is that of the point along the wrench; there is no length.

    Examples
    --------
    A servo that holds an arm against gravity:

    >>> from multibody import Actuator, ModelBuilder, Revolute, point_mass, simulate
    >>> b = ModelBuilder(name="servo")
    >>> _ = b.add_body("arm", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
    >>> b.add_element("servo", Actuator("arm", 0.5, gain=(1e3, 0, 0), bias=(0, -1e3, -60)))
    >>> run = simulate(b.build(), T=4.0)
    >>> q = run.y[0, -1]
    >>> f"{1e3 * (0.5 - q) - 9.81 * np.sin(q):.5f}"
    '0.00000'
    """

    joints: Any = ()
    control: Any = 0.0
    gear: Any = 1.0
    gain: Any = (1.0, 0.0, 0.0)
    bias: Any = (0.0, 0.0, 0.0)
    offset: float = 0.0
    control_range: Any = None
    force_range: Any = None
    activation_range: Any = None
    dynamics: str = "none"
    time: float = 1.0
    initial: float = 0.0
    body: str | None = None
    point: Any = (0.0, 0.0, 0.0)
    wrench: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    kind: ClassVar[str] = "actuator"

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.joints) == (self.body is not None):
            raise ValueError("Actuator: expected joints, or a body with a point and a wrench")
        one_of(self.dynamics, "Actuator: dynamics", DYNAMICS)
        shapes = dict.fromkeys(("control_range", "force_range", "activation_range"), (2,))
        shapes |= {"gain": (3,), "bias": (3,), "point": (3,), "wrench": (6,)}
        for name, shape in shapes.items():
            _numbers(self, name, shape)
        _positive(self, "time", zero=False)
        if self.dynamics != "none":
            object.__setattr__(self, "states", ("activation",))

    def start(self) -> Mapping[str, float]:
        """Activation as given."""
        return {"activation": self.initial} if self.states else {}

    def act(self, here: Any) -> None:
        """Follow the input, and push."""
        u = _clipped(here.signal(self.control), self.control_range)
        w = u
        if self.dynamics != "none":
            w = here.z[0]
            rate = u if self.dynamics == "integrator" else (u - w) / self.time
            if self.activation_range is not None:  # 0 where it leads further out
                low, high = self.activation_range
                rate = rate * (1.0 - (w >= high) * (rate > 0.0) - (w <= low) * (rate < 0.0))
            here.rates(rate)
        length, speed = self._length(here)
        factor, constant = (c[0] + c[1] * length + c[2] * speed for c in (self.gain, self.bias))
        force = _clipped(factor * w + constant, self.force_range)
        if self.body is None:
            self._push(here, force)
        else:
            at = here.frame(self.body, self.point)
            couple, push = at.R @ self.wrench[:3], at.R @ self.wrench[3:]
            here.push_at(self.body, force * push, at.position, force * couple)
        here.output("u", u)
        here.output("force", force)
        here.output("length", length)

    def _length(self, here: Any) -> tuple[Any, Any]:
        if self.body is not None:
            at = here.frame(self.body, self.point)
            couple, push = at.R @ self.wrench[:3], at.R @ self.wrench[3:]
            return self.offset, couple @ at.omega + push @ at.velocity
        length, speed, single = self._measured(here)
        if not single and any(not has_symbols(np.asarray(c[1])) and c[1] for c in
                              (self.gain, self.bias)):  # fmt: skip
            raise ValueError(
                f"Actuator: {list(self.joints)} are not all hinges or slides, so there is no "
                "length for gain[1] and bias[1]; a motor takes gain=(k, 0, 0) and no bias"
            )
        return length, speed


@element_kind
@dataclass(frozen=True, eq=False)
class JointTendon(_OnJoints):
    """A spring and damper on ℓ = offset + Σ gear q, over hinges and slides: a tendon on pulleys.

        F = −k (ℓ − rest) − d ℓ̇,   where ℓ within (rest₀, rest₁) is slack

    Parameters
    ----------
    joints, gear, offset
        As in :class:`Actuator`.
    stiffness, damping
        k and d.
    rest
        Length at rest, or the two ends of what is slack.

    Examples
    --------
    >>> from multibody import JointTendon, ModelBuilder, Revolute, energy, point_mass, simulate
    >>> b = ModelBuilder(name="finger")
    >>> _ = b.add_body("one", 0, Revolute("y"), inertia=point_mass(0.1, (0, 0, -0.05)))
    >>> _ = b.add_body("two", "one", Revolute("y"), inertia=point_mass(0.1, (0, 0, -0.05)))
    >>> b.add_element("tendon", JointTendon(("one", "two"), (0.01, 0.008), 500.0, 2.0))
    >>> simulate(b.build(), [0.5, 0.5], T=1.0).success
    True
    """

    joints: Any
    gear: Any
    stiffness: float = 0.0
    damping: float = 0.0
    rest: Any = (0.0, 0.0)
    offset: float = 0.0

    kind: ClassVar[str] = "joint_tendon"

    def __post_init__(self) -> None:
        super().__post_init__()
        rest = np.asarray(self.rest)
        object.__setattr__(self, "rest", np.array([rest, rest]) if rest.ndim == 0 else rest)
        _numbers(self, "rest", (2,))
        _positive(self, "stiffness", "damping")

    def act(self, here: Any) -> None:
        """Pull the length back."""
        length, rate, single = self._measured(here)
        if not single:
            raise ValueError(f"JointTendon: {list(self.joints)} are not all hinges or slides")
        stretch = np.maximum(length - self.rest[1], 0.0) + np.minimum(length - self.rest[0], 0.0)
        force = -self.stiffness * stretch - self.damping * rate
        self._push(here, force)
        here.energy(0.5 * self.stiffness * stretch * stretch)
        here.output("length", length)
        here.output("force", force)
