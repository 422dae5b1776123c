"""Rigid-body mechanics: models of mechanisms, their dynamics, their motion.

What lives where, each room importing from those above it only:

- `kernels`: arithmetic of spatial vectors on plain arrays, interpreted, compiled and traced;
- `algebra`: rotations, frames, screws, spatial vectors and inertias as types;
- `joints`: a class a joint, and a registry; `elements`: force laws, likewise;
- `model`, `io`: bodies, joints and loops put together and checked; files;
- `dynamics`: one algorithm a file, `loops` for closed ones, `book` for those to read;
- `contact`: gaps, contact forces, impacts;
- `runs`: models as initial value problems and DAEs, simulated and observed;
- `mechanisms`, `pictures`: models ready to use; plots and animations.

Conventions: ``docs/conventions.md``. In short: 6-vectors are angular first; X_BA maps A to B
coordinates; poses (R, p) are active; quaternions are Hamilton, scalar first; angle sequences are
named by their intrinsic axes; SI units and radians.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import io, joints, kernels
from .algebra import (
    angles,
    frames,
    inertia,
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
from .algebra.frames import Frame, FrameMoving, label_checks
from .algebra.inertia import ArticulatedInertia, CentralInertia, InverseInertia, RigidInertia, mcI
from .algebra.plucker import (
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
from .algebra.points import Point, Vector
from .algebra.rates import convert
from .algebra.screws import Twist, Wrench
from .algebra.se3 import Pose
from .algebra.spatial import Force, Motion, crf, crm
from .dynamics.functions import (
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
from .dynamics.loops.assembly import Assembly, AssemblyError, assemble, consistent_velocity
from .dynamics.loops.closed_loop import (
    ClosedLoopSolution,
    Constraints,
    Mobility,
    constrained_accelerations,
    constraints,
    mobility,
)
from .dynamics.loops.forces import loop_forces
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
from .elements import (
    PID,
    BristleFriction,
    Bushing,
    DCMotor,
    Element,
    FirstOrderFilter,
    ForceLaw,
    Friction,
    HydraulicCylinder,
    JointSpring,
    PointForce,
    RollingResistance,
    Sampled,
    SampledLaw,
    SampledPID,
    SpringLaw,
    Suspension,
    Table,
    Wave,
)
from .io import ModelFileError, Report, load_model, save_model
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
    RollingBalls,
    RollingDisc,
    RollingSphere,
    Spherical,
    Universal,
    UserJoint,
    check_joint,
)
from .model import Body, Contact, Loop, Model, PointSpring, dh, graph
from .model.builder import ModelBuilder
from .model.contacts import HuntCrossley, SpringDamper
from .model.shapes import Inertia, box, cylinder, point_mass, rod, sphere
from .model.surfaces import Ball, Bowl, BoxCorners, Capsule, Disc, HalfSpace, Vertex
from .runs.dae import as_dae, as_mechanical
from .runs.ivp import FD_derivatives, FD_x, ID_derivatives, as_ivp, quaternion_drift
from .runs.simulate import energies, positions, simulate

if TYPE_CHECKING:
    from . import mechanisms
    from .pictures import animate, plot

__all__ = [
    "FD",
    "ID",
    "PID",
    "AngleSequence",
    "ArticulatedInertia",
    "Assembly",
    "AssemblyError",
    "Ball",
    "BaseParameters",
    "Body",
    "Bowl",
    "BoxCorners",
    "BristleFriction",
    "Bushing",
    "Capsule",
    "CentralInertia",
    "ClosedLoopSolution",
    "Conditioning",
    "ConstantVelocity",
    "Constraints",
    "Contact",
    "ContactForces",
    "Cost",
    "Cylindrical",
    "DCMotor",
    "Disc",
    "Driven",
    "Element",
    "Energy",
    "EnergyGainError",
    "EnergyLedger",
    "FD_derivatives",
    "FD_x",
    "FamilyRows",
    "FirstOrderFilter",
    "Fixed",
    "Force",
    "ForceLaw",
    "Frame",
    "FrameMoving",
    "Free",
    "Friction",
    "HalfSpace",
    "Helical",
    "HuntCrossley",
    "HybridResult",
    "HydraulicCylinder",
    "ID_derivatives",
    "Impact",
    "Inertia",
    "InverseInertia",
    "Joint",
    "JointReactions",
    "JointSpring",
    "Kinematics",
    "LCPError",
    "Loop",
    "LoopClosure",
    "LoopElement",
    "Mobility",
    "Model",
    "ModelBuilder",
    "ModelFamily",
    "ModelFile",
    "ModelFileError",
    "Motion",
    "PainleveError",
    "Planar",
    "Plucker",
    "Point",
    "PointForce",
    "PointSpring",
    "Pose",
    "Prismatic",
    "RackPinion",
    "Record",
    "Report",
    "Revolute",
    "RigidInertia",
    "RollingBalls",
    "RollingDisc",
    "RollingResistance",
    "RollingSphere",
    "Sampled",
    "SampledLaw",
    "SampledPID",
    "SingularModelError",
    "SparseDynamics",
    "Spherical",
    "SpringDamper",
    "SpringLaw",
    "Starts",
    "StructureError",
    "Suspension",
    "Table",
    "Twist",
    "Universal",
    "UserJoint",
    "Vector",
    "Vertex",
    "Wave",
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
    "base_parameters",
    "bias_forces",
    "body_jacobian",
    "box",
    "branched_cost",
    "centre_of_mass",
    "check_joint",
    "closed_loop_inverse_dynamics",
    "compare",
    "conditioning",
    "consistent_velocity",
    "constrained_accelerations",
    "constraints",
    "contact_accelerations",
    "contact_forces",
    "contact_kinematics",
    "convert",
    "coriolis_forces",
    "cost",
    "coulomb",
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
    "hybrid_dynamics",
    "impact",
    "impacts",
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
    "loop_force",
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
    "output",
    "parameter_names",
    "parameter_values",
    "planar",
    "plot",
    "plucker",
    "point",
    "point_acceleration",
    "point_jacobian",
    "point_mass",
    "point_position",
    "points",
    "position_rate",
    "positions",
    "published_cost",
    "quaternion_drift",
    "quaternions",
    "rates",
    "reaction",
    "reactions_along",
    "record",
    "regressor",
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
    "separate",
    "simplify",
    "simulate",
    "solve_lcp",
    "spatial",
    "sphere",
    "state",
    "stick_slip",
    "velocity",
    "xlt",
]


# Loaded on first use: public module → where it is; public name → module that defines it.
_MODULES = {"animate": "pictures.animate", "mechanisms": "mechanisms", "plot": "pictures.plot"}
_LATER = {
    "BaseParameters": "dynamics.parameters.base",
    "Conditioning": "dynamics.numerics.conditioning",
    "ContactForces": "contact.accelerations",
    "Cost": "dynamics.numerics.cost",
    "EnergyGainError": "contact.impacts",
    "EnergyLedger": "runs.observing.ledger",
    "FamilyRows": "mechanisms.families",
    "HybridResult": "dynamics.hybrid.functions",
    "Impact": "contact.impacts",
    "JointReactions": "dynamics.loops.reactions",
    "LCPError": "contact.lcp",
    "LoopClosure": "dynamics.loops.independent",
    "LoopElement": "dynamics.loops.joints",
    "ModelFamily": "mechanisms.families",
    "ModelFile": "io.named_numbers",
    "Record": "runs.observing.recorded",
    "PainleveError": "contact.accelerations",
    "SparseDynamics": "dynamics.book.sparse",
    "Starts": "mechanisms.families",
    "StructureError": "mechanisms.families",
    "actuators": "dynamics.loops.actuation",
    "as_ivp_minimal": "runs.minimal",
    "base_parameters": "dynamics.parameters.base",
    "branched_cost": "dynamics.numerics.cost",
    "closed_loop_inverse_dynamics": "dynamics.loops.actuation",
    "conditioning": "dynamics.numerics.conditioning",
    "contact_accelerations": "contact.accelerations",
    "contact_forces": "runs.contact.observe",
    "contact_kinematics": "contact.kinematics",
    "cost": "dynamics.numerics.cost",
    "coulomb": "contact.cones",
    "energy_ledger": "runs.observing.ledger",
    "gears": "dynamics.loops.independent",
    "handle_dynamics": "dynamics.book.handles",
    "hybrid_dynamics": "dynamics.hybrid.functions",
    "impact": "contact.impacts",
    "impacts": "runs.contact.observe",
    "independent_coordinates": "dynamics.loops.independent",
    "joint_reactions": "dynamics.loops.reactions",
    "loop_elements": "dynamics.loops.joints",
    "loop_forces_in": "dynamics.loops.forces",
    "loop_joint_forces": "dynamics.loops.joints",
    "loop_joint_state": "dynamics.loops.joints",
    "observe": "runs.observing.observe",
    "loop_force": "runs.observing.recorded",
    "output": "runs.observing.recorded",
    "point": "runs.observing.recorded",
    "reaction": "runs.observing.recorded",
    "record": "runs.observing.recorded",
    "state": "runs.observing.recorded",
    "velocity": "runs.observing.recorded",
    "operational_space_inertia": "dynamics.book.handles",
    "parameter_names": "dynamics.parameters.regressor",
    "parameter_values": "dynamics.parameters.regressor",
    "published_cost": "dynamics.numerics.cost",
    "reactions_along": "runs.observing.reactions",
    "regressor": "dynamics.parameters.regressor",
    "separate": "contact.separate",
    "simplify": "dynamics.parameters.equivalence",
    "solve_lcp": "contact.lcp",
    "stick_slip": "runs.stick_slip",
}


# They live in rooms of their own; `from multibody.rotations import …` finds them, too.
for _name in (
    *("angles", "dh", "frames", "graph", "inertia", "natural", "planar", "plucker", "points"),
    *("quaternions", "rates", "rotations", "screws", "se3", "spatial"),
):
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f".{_MODULES[name]}", __name__)
    elif name == "compare":  # a study of the application, which nothing here may import
        value = import_module("featherstep.mechanism_study.compare").compare
    elif name in _LATER:
        value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
