"""The workspace of the dynamics: every array that its kernels read and write, declared once."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from integrators.kernels.workspace import Workspace

from ...checks import Array

__all__ = ["DRIVEN", "HAVE_ELEMENTS", "HAVE_FORCES", "TreeWorkspace", "variables"]

# Places in `switches`: whether external forces act, whether the model has force elements, and
# whether time moves joints of its tree.
HAVE_FORCES, HAVE_ELEMENTS, DRIVEN = 0, 1, 2

# Fields of the workspace; kinds as in integrators.kernels.workspace.
STRUCTURE = {
    "parent": "i1",  # of body i (counted from 0), −1 for the base
    "q_at": "i1",  # first position variable of each joint, and their number
    "v_at": "i1",
    "p_at": "i1",
    "axial": "i1",  # 1 if the joint is axial …
    "by_screws": "i1",  # … and 1 if its transforms are made as products of screws
    "pre": "i1",  # 1 if the placement has a screw about the parent's z
    "bend": "i1",  # 1 if it has a screw about x
    "z_free": "i1",  # 1 for a revolute joint without armature: I^a has an empty third row
    "quarters": "i1",  # quarter turns in θ₂, made without rounding
    "doubtful": "i1",  # 1 if nothing but rounding may be left of a freedom's pivot …
    "frail": "i1",  # … and 1 if a body has such a freedom because it lacks inertia
    "unit": "i1",  # row of the unit vector that a column of S is, or −1
    "parent_v": "i1",  # expanded parent array λ′ of the velocity variables
    "laws": "i1",  # addresses of the laws, 0 for axial joints
    "rates": "i1",  # addresses of q̇ …
    "plain": "i1",  # … and 1 where q̇ = v
    "quaternions": "i1",  # where in q unit quaternions begin
    "switches": "i1",
    "spring_bodies": "i2",
    "loop_p": "i1",  # predecessor and successor of each loop joint
    "loop_s": "i1",
    "loop_at": "i1",  # first row of each loop joint, then of each constraint by a function
    "loop_q_at": "i1",  # first parameter of each of them
    "loop_laws": "i1",
    "point_at": "i1",  # first point of each constraint by a function, and the bodies of points
    "point_body": "i1",
    "rows": "i1",  # constraints that can act at all
}
CONSTANTS = {
    "p": "f1",  # parameters of the laws of joints, then the numbers of elements
    "angle": "f1",  # θ = Σ angle·q
    "shift": "f1",  # d = d₂ + Σ shift·q
    "offset": "f2",  # θ₂ without its quarter turns, d₂
    "E_T": "f3",  # placement; of axial joints without its last screw
    "r_T": "f2",
    "inertia": "f2",
    "reach": "f2",  # from the parent's reference point, see multibody.dynamics.trees.newton_euler …
    "moments": "f2",  # … and m, h, second moments about it
    "gravity": "f1",  # acceleration of the base that has the effect of gravity, −a_g
    "armature": "f1",
    "elements": "f2",  # springs, dampers and stops of the joints; empty if there are none
    "springs": "f2",  # springs between points
    "loop_q": "f1",  # parameters of the loop joints
    "loop_E_P": "f3",  # placements of their frames
    "loop_r_P": "f2",
    "loop_E_S": "f3",
    "loop_r_S": "f2",
    "points": "f2",  # of constraints by functions, on their bodies
}
# Shapes, with the sizes of a model by name: bodies nb, positions nq, velocities nv, constraints nc,
# the longest argument of a law nx, and of the constraints by functions (``constraints.stated``).
VARIABLES: dict[str, tuple[str | int, ...]] = {
    "t": (1,),
    "q": ("nq",),
    "v": ("nv",),
    "a_q": ("nv",),  # joint accelerations, v̇
    "tau": ("nv",),
    "q_dot": ("nq",),
    "f_ext": ("nb", 6),  # external forces in base coordinates
    "spring_force": ("nb", 6),  # of springs between points, about the body's origin, in base axes
    "x": ("nx",),  # argument and value of a law
    "law": (60,),
    "E_J": (3, 3),
    "r_J": (3,),
    "screws": ("nb", 3, 7),  # scrz(θ…), scrx, scrz(θ₁…) of each axial joint
    "back": ("nb", 3, 7),  # their inverses
    "E": ("nb", 3, 3),  # X_λ
    "r": ("nb", 3),
    "E_0": ("nb", 3, 3),  # X_0, from base to body coordinates
    "r_0": ("nb", 3),
    "S": ("nv", 6),  # a row for each velocity variable
    "v_J": ("nb", 6),
    "c_J": ("nb", 6),
    "vel": ("nb", 6),  # velocity of each body
    "c": ("nb", 6),  # c_J + v × v_J
    "acc": ("nb", 6),
    "force": ("nb", 6),
    "U_matrix": ("nb", 3, 3),  # α× + ω×ω×
    "I_c": ("nb", 10),  # composite inertia
    "I_A": ("nb", 21),  # articulated inertia …
    "p_A": ("nb", 6),  # … and bias force
    "U": ("nv", 6),
    "D_inverse": ("nv",),
    "u": ("nv",),
    "H": ("nv", "nv"),
    # Scratch.
    "spare6": (6,),
    "other6": (6,),
    "point_a": (6,),
    "point_b": (6,),
    "totals": (12,),  # energies, mass, first moment and momentum of all bodies
    "spare10": (10,),
    "spare21": (21,),
    "loop_x": (18,),  # argument and value of a loop joint's law
    "loop_out": (54,),
    "end_p": (12,),  # velocity and acceleration of the two sides of a loop joint, and poses
    "end_s": (12,),
    "E_p": (3, 3),
    "r_p": (3,),
    "E_s": (3, 3),
    "r_s": (3,),
    "gap": (3,),  # from the predecessor's frame to the successor's, in base axes
    "E_rel": (3, 3),
    "r_rel": (3,),
    "S_0": ("nv", 6),  # freedoms in base coordinates
    "T_0": ("nc", 6),  # constraint forces in base coordinates
    "delta": ("nc",),
    "K": ("nc", "nv"),
    "nu": ("nc",),
    "gamma": ("nc",),
    "stated_x": ("nx_state",),  # argument and value of a constraint's law
    "stated_out": ("n_stated",),
    "point_acc": ("n_points", 3),  # of the points of constraints, at v̇ = 0
    "stabilise": (3,),  # α, β, ε, see multibody.dynamics.loops.multipliers
    "b": ("nc",),
    "z": ("nv",),
    "Y": ("nc", "nv"),  # rows of K through L⁻ᵀ
    "scaled": ("nv",),
    "A": ("nc", "nc"),
    "A_factor": ("nc", "nc"),
    "lam": ("nc",),  # multipliers
    "rest": ("nc",),
}


class TreeWorkspace(Workspace):
    """Arrays of a tree and of everything computed on it."""

    FIELDS: ClassVar[dict[str, str]] = {
        **STRUCTURE,
        **CONSTANTS,
        **{name: f"f{len(shape)}" for name, shape in VARIABLES.items()},
    }


def variables(sizes: dict[str, int], dtype: type) -> dict[str, Array]:
    """Return arrays of zeros for all variables; ``sizes`` by the names that their shapes use."""
    return {
        name: np.full([sizes[n] if isinstance(n, str) else n for n in shape], 0.0, dtype=dtype)
        for name, shape in VARIABLES.items()
    }
