"""Force laws of machines: springs, bushings, friction, motors, controllers; and how to add one."""

from .actuators import Actuator, JointTendon
from .base import ELEMENTS, Element, ForceLaw, NamedElement, element_kind
from .controllers import PID, FirstOrderFilter, Sampled, SampledLaw, SampledPID
from .drives import DCMotor, HydraulicCylinder
from .friction import BearingFriction, BristleFriction, Friction, RollingResistance
from .signals import Formula, Table, Wave
from .springs import Bushing, JointSpring, PointForce, SpringLaw, Suspension

__all__ = [
    "ELEMENTS",
    "PID",
    "Actuator",
    "BearingFriction",
    "BristleFriction",
    "Bushing",
    "DCMotor",
    "Element",
    "FirstOrderFilter",
    "ForceLaw",
    "Formula",
    "Friction",
    "HydraulicCylinder",
    "JointSpring",
    "JointTendon",
    "NamedElement",
    "PointForce",
    "RollingResistance",
    "Sampled",
    "SampledLaw",
    "SampledPID",
    "SpringLaw",
    "Suspension",
    "Table",
    "Wave",
    "element_kind",
]
