"""Drives: a motor with its current and temperature, a hydraulic cylinder with its pressures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Element, element_kind
from .friction import _positive

__all__ = ["DCMotor", "HydraulicCylinder"]


@element_kind
@dataclass(frozen=True, eq=False)
class DCMotor(Element):
    """A direct-current motor on a joint, with its current as a state, and its temperature if asked.

        L di/dt = u − R i − k n ω,     torque on the joint = n k i,
        C dT/dt = R i² − (T − T_a)/R_th,     R = R₀ (1 + α (T − T_a)).

    Parameters
    ----------
    joint
        Joint of one freedom that it drives.
    voltage
        u: a number, a function of time, a :class:`Table`, or the name of an element whose output
        "u" it is (a controller's).
    resistance, inductance, constant, ratio
        R₀ (Ω), L (H), k (N m/A = V s), and the gear's n, motor speed by joint speed.
    heat_capacity, thermal_resistance, temperature_coefficient
        C (J/K), R_th (K/W) and α (1/K); without C the motor stays cool.

    Examples
    --------
    The speed at which it idles is u/(k n):

    >>> from multibody import DCMotor, Inertia, ModelBuilder, Revolute, simulate
    >>> b = ModelBuilder(name="fan", gravity=(0, 0, 0))
    >>> _ = b.add_body("rotor", 0, Revolute(), inertia=Inertia(0.1, (0, 0, 0), [1e-3] * 3))
    >>> b.add_element("motor", DCMotor("rotor", 12.0, 1.2, 0.5e-3, 0.05))
    >>> run = simulate(b.build(), T=8.0)
    >>> f"{run.y[2, -1]:.3f}"
    '240.000'
    """

    joint: str
    voltage: Any
    resistance: float
    inductance: float
    constant: float
    ratio: float = 1.0
    heat_capacity: float | None = None
    thermal_resistance: float = 1.0
    temperature_coefficient: float = 0.0

    kind: ClassVar[str] = "dc_motor"
    states = ("current",)

    def __post_init__(self) -> None:
        _positive(self, "resistance", "inductance", "thermal_resistance", zero=False)
        _positive(self, "heat_capacity", zero=False)
        if self.heat_capacity is not None:
            object.__setattr__(self, "states", ("current", "temperature"))

    def act(self, here: Any) -> None:
        """Turn the joint."""
        _, v = here.joint(self.joint)
        i = here.z[0]
        u = here.signal(self.voltage)
        warm = here.z[1] if self.heat_capacity is not None else 0.0
        R = self.resistance * (1.0 + self.temperature_coefficient * warm)
        rate = (u - R * i - self.constant * self.ratio * v[0]) / self.inductance
        torque = self.ratio * self.constant * i
        here.push_joint(self.joint, torque)
        if self.heat_capacity is None:
            here.rates(rate)
        else:
            heat = (R * i * i - warm / self.thermal_resistance) / self.heat_capacity
            here.rates(np.array([rate, heat]))
        here.energy(0.5 * self.inductance * i * i)
        here.output("torque", torque)
        here.output("voltage", u)
        here.output("supply", u * i)


@element_kind
@dataclass(frozen=True, eq=False)
class HydraulicCylinder(Element):
    """A double-acting cylinder on a sliding joint, with the pressures of its chambers as states.

        ṗ_a = E/V_a (Q − A_a v − c (p_a − p_b)),   ṗ_b = E/V_b (−Q + A_b v + c (p_a − p_b)),
        force = p_a A_a − p_b A_b,   V_a = V₀ + A_a x,   V_b = V₀ + A_b (s − x).

    Parameters
    ----------
    joint
        Joint of one freedom, with the position x from 0 to the stroke s.
    flow
        Q, m³/s, into chamber a and out of b: a number, a function of time, a :class:`Table`, or the
        name of an element whose output "u" it is.
    area_a, area_b
        Of the piston, in m².
    stroke, dead_volume
        s (m) and V₀ (m³).
    bulk_modulus, leakage
        E (Pa), and c (m³/(s Pa)) past the piston.
    pressure
        Of both chambers at the start, in Pa.
    """

    joint: str
    flow: Any
    area_a: float
    area_b: float
    stroke: float
    dead_volume: float
    bulk_modulus: float = 1.4e9
    leakage: float = 0.0
    pressure: float = 0.0

    kind: ClassVar[str] = "hydraulic_cylinder"
    states = ("p_a", "p_b")

    def __post_init__(self) -> None:
        _positive(self, "area_a", "area_b", "stroke", "dead_volume", "bulk_modulus", zero=False)
        _positive(self, "leakage")

    def start(self) -> Mapping[str, float]:
        """Both chambers at the pressure given."""
        return {"p_a": self.pressure, "p_b": self.pressure}

    def act(self, here: Any) -> None:
        """Push by the difference of the pressures."""
        q, v = here.joint(self.joint)
        p_a, p_b = here.z
        flow = here.signal(self.flow)
        leak = self.leakage * (p_a - p_b)
        V_a = self.dead_volume + self.area_a * q[0]
        V_b = self.dead_volume + self.area_b * (self.stroke - q[0])
        here.rates(
            np.array(
                [
                    self.bulk_modulus / V_a * (flow - self.area_a * v[0] - leak),
                    self.bulk_modulus / V_b * (-flow + self.area_b * v[0] + leak),
                ]
            )
        )
        force = p_a * self.area_a - p_b * self.area_b
        here.push_joint(self.joint, force)
        here.output("force", force)
