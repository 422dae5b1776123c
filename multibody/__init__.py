"""Rigid-body mechanics: the algebra of rotations, frames, screws and spatial vectors.

What lives where:

- `rotations`, `quaternions`, `angles`, `rates`: every parametrisation of a rotation, conversions,
  exponential map, angular-rate matrices;
- `points`, `natural`: velocity and acceleration of points, natural coordinates;
- `frames`: `Frame` and `FrameMoving`, which compose, invert and act with operators;
- `se3`, `screws`: poses, exponential map on SE(3), linear-first twists and wrenches;
- `spatial`, `plucker`, `inertia`, `planar`: the spatial-vector algebra as types, its planar part;
- `kernels`: the same arithmetic on plain arrays, for interpreted, compiled and traced use;
- `mechanisms`: models ready to use; `rhs`, `simulate`: models as initial value problems, solved;
- `plot`, `animate`: pictures of motions.

Conventions: ``docs/conventions.md``. In short: 6-vectors are angular first; X_BA maps A to B
coordinates; poses (R, p) are active; quaternions are Hamilton, scalar first; angle sequences are
named by their intrinsic axes; SI units and radians.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import (
    angles,
    dh,
    frames,
    graph,
    inertia,
    io,
    joints,
    kernels,
    natural,
    planar,
    plucker,
    points,
    quaternions,
    rates,
    rotations,
    screws,
    se3,
    spatial,
)
from .assembly import Assembly, AssemblyError, assemble, consistent_velocity
from .build import ModelBuilder
from .dae import as_dae, as_mechanical
from .dynamics.closed_loop import (
    ClosedLoopSolution,
    Constraints,
    Mobility,
    constrained_accelerations,
    constraints,
    loop_forces,
    mobility,
)
from .dynamics.compute import (
    FD,
    ID,
    SingularModelError,
    aba,
    bias_forces,
    coriolis_forces,
    crba,
    gravity_forces,
    joint_forces,
    position_rate,
    rnea,
)
from .dynamics.motion import (
    Energy,
    Kinematics,
    body_jacobian,
    centre_of_mass,
    energy,
    jacobian_rate,
    kinematics,
    momentum,
    point_acceleration,
    point_jacobian,
    point_position,
)
from .frames import Frame, FrameMoving, label_checks
from .inertia import ArticulatedInertia, CentralInertia, InverseInertia, RigidInertia, mcI
from .io import ModelFileError, load_model, save_model
from .joints import (
    AngleSequence,
    ConstantVelocity,
    Cylindrical,
    Driven,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    RollingSphere,
    Spherical,
    Universal,
    UserJoint,
    check_joint,
)
from .model import Body, Loop, Model, PointSpring
from .plucker import (
    Plucker,
    XtoV,
    rot,
    rotx,
    roty,
    rotz,
    rx,
    ry,
    rz,
    scrx,
    scry,
    scrz,
    xlt,
)
from .points import Point, Vector
from .rates import convert
from .rhs import FD_derivatives, FD_x, ID_derivatives, as_ivp, quaternion_drift
from .screws import Twist, Wrench
from .se3 import Pose
from .shapes import Inertia, box, cylinder, point_mass, rod, sphere
from .simulate import energies, positions, simulate
from .spatial import Force, Motion, crf, crm

if TYPE_CHECKING:
    from . import animate, mechanisms, plot

__all__ = [
    "FD",
    "ID",
    "AngleSequence",
    "ArticulatedInertia",
    "Assembly",
    "AssemblyError",
    "Body",
    "CentralInertia",
    "ClosedLoopSolution",
    "ConstantVelocity",
    "Constraints",
    "Cylindrical",
    "Driven",
    "Energy",
    "EnergyLedger",
    "FD_derivatives",
    "FD_x",
    "Fixed",
    "Force",
    "Frame",
    "FrameMoving",
    "Free",
    "Helical",
    "ID_derivatives",
    "Inertia",
    "InverseInertia",
    "Joint",
    "JointReactions",
    "Kinematics",
    "Loop",
    "LoopClosure",
    "LoopElement",
    "Mobility",
    "Model",
    "ModelBuilder",
    "ModelFileError",
    "Motion",
    "Planar",
    "Plucker",
    "Point",
    "PointSpring",
    "Pose",
    "Prismatic",
    "RackPinion",
    "Revolute",
    "RigidInertia",
    "RollingSphere",
    "SingularModelError",
    "SparseDynamics",
    "Spherical",
    "Twist",
    "Universal",
    "UserJoint",
    "Vector",
    "Wrench",
    "XtoV",
    "aba",
    "actuators",
    "angles",
    "animate",
    "as_dae",
    "as_ivp",
    "as_ivp_minimal",
    "as_mechanical",
    "assemble",
    "bias_forces",
    "body_jacobian",
    "box",
    "centre_of_mass",
    "check_joint",
    "closed_loop_inverse_dynamics",
    "compare",
    "consistent_velocity",
    "constrained_accelerations",
    "constraints",
    "convert",
    "coriolis_forces",
    "crba",
    "crf",
    "crm",
    "cylinder",
    "dh",
    "energies",
    "energy",
    "energy_ledger",
    "frames",
    "gears",
    "graph",
    "gravity_forces",
    "handle_dynamics",
    "independent_coordinates",
    "inertia",
    "io",
    "jacobian_rate",
    "joint_forces",
    "joint_reactions",
    "joints",
    "kernels",
    "kinematics",
    "label_checks",
    "load_model",
    "loop_elements",
    "loop_forces",
    "loop_forces_in",
    "loop_joint_forces",
    "loop_joint_state",
    "mcI",
    "mechanisms",
    "mobility",
    "momentum",
    "natural",
    "observe",
    "operational_space_inertia",
    "planar",
    "plot",
    "plucker",
    "point_acceleration",
    "point_jacobian",
    "point_mass",
    "point_position",
    "points",
    "position_rate",
    "positions",
    "quaternion_drift",
    "quaternions",
    "rates",
    "reactions_along",
    "rnea",
    "rod",
    "rot",
    "rotations",
    "rotx",
    "roty",
    "rotz",
    "rx",
    "ry",
    "rz",
    "save_model",
    "screws",
    "scrx",
    "scry",
    "scrz",
    "se3",
    "simulate",
    "spatial",
    "sphere",
    "xlt",
]


# Loaded on first use: public name → module that defines it.
_LATER = {
    "EnergyLedger": "ledger",
    "JointReactions": "dynamics.reactions",
    "LoopClosure": "dynamics.independent",
    "LoopElement": "dynamics.loop_joints",
    "SparseDynamics": "dynamics.sparse",
    "actuators": "dynamics.actuation",
    "as_ivp_minimal": "minimal",
    "closed_loop_inverse_dynamics": "dynamics.actuation",
    "compare": "comparison",
    "energy_ledger": "ledger",
    "gears": "dynamics.independent",
    "handle_dynamics": "dynamics.handles",
    "independent_coordinates": "dynamics.independent",
    "joint_reactions": "dynamics.reactions",
    "loop_elements": "dynamics.loop_joints",
    "loop_forces_in": "dynamics.loop_joints",
    "loop_joint_forces": "dynamics.loop_joints",
    "loop_joint_state": "dynamics.loop_joints",
    "observe": "observed",
    "operational_space_inertia": "dynamics.handles",
    "reactions_along": "dynamics.reactions",
}


def __getattr__(name: str) -> Any:
    if name in ("animate", "mechanisms", "plot"):
        return import_module(f".{name}", __name__)
    if name in _LATER:
        value = getattr(import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
