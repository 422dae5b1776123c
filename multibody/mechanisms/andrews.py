"""Andrews' squeezing mechanism as a multibody model (A03).

The coordinates are those of the published equations (``integrators.problems.andrews``): angles
β, Θ, γ, Φ, δ, Ω, ε of the bodies K1 … K7, Θ, Φ and Ω relative to the body before. Three loops meet
in the point E, where K2, K3, K4 and K6 are hinged together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import Array
from ..elements import Actuator
from ..joints import Revolute
from ..model import Model
from ..model.builder import ModelBuilder
from ..model.shapes import Inertia
from .registry import register

__all__ = ["ANDREWS", "andrews", "andrews_drive"]

#: Lengths in m, masses in kg, moments of inertia about the centres of mass in kg m²
#: (Schiehlen, Multibody Systems Handbook, 1990; IVP Test Set).
ANDREWS: dict[str, Any] = {
    "mass": (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498),
    "inertia": (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5),
    "A": (-0.06934, -0.00227),
    "B": (-0.03635, 0.03273),
    "C": (0.014, 0.072),
    "d": 0.028, "da": 0.0115, "e": 0.02, "ea": 0.01421, "rr": 0.007, "ra": 0.00092,
    "ss": 0.035, "sa": 0.01874, "sb": 0.01043, "sc": 0.018, "sd": 0.02,
    "ta": 0.02308, "tb": 0.00916, "u": 0.04, "ua": 0.01228, "ub": 0.00449,
    "zf": 0.02, "zt": 0.04, "fa": 0.01421,
    "stiffness": 4530.0,
    "rest": 0.07785,
    "torque": 0.033,
}  # fmt: skip

#: Body, parent, and from the numbers above: place of its hinge on the parent, centre of mass.
Place = Callable[[dict[str, Any]], tuple[float, float]]
BODIES: tuple[tuple[str, str | int, Place, Place], ...] = (
    ("K1", 0, lambda p: (0.0, 0.0), lambda p: (p["ra"], 0.0)),
    ("K2", "K1", lambda p: (p["rr"], 0.0), lambda p: (-p["da"], 0.0)),
    ("K3", 0, lambda p: p["B"], lambda p: (p["sb"], -p["sa"])),
    ("K4", "K5", lambda p: (p["zt"], 0.0), lambda p: (0.0, p["ea"] - p["e"])),
    ("K5", 0, lambda p: p["A"], lambda p: (p["ta"], p["tb"])),
    ("K6", "K7", lambda p: (0.0, -p["u"]), lambda p: (p["zf"] - p["fa"], 0.0)),
    ("K7", 0, lambda p: p["A"], lambda p: (-p["ub"], -p["ua"])),
)

#: Angles of a start at rest: that of the IVP Test Set.
START = {
    "K1": -0.0617138900142764496358948458001,
    "K2": 0.0,
    "K3": 0.455279819163070380255912382449,
    "K4": 0.222668390165885884674473185609,
    "K5": 0.487364979543842550225598953530,
    "K6": -0.222668390165885884674473185609,
    "K7": 1.23054744454982119249735015568,
}


def _start(model: Model) -> Array:
    return np.array([START[body.name] for body in model.bodies])


@register(
    q0=_start,
    t_end=0.03,
    source="A03 of the library of computational benchmarks (IFToMM); W. Schiehlen, Multibody "
    "Systems Handbook, 1990; end point as in integrators.problems.andrews",
)
def andrews(torque: float = ANDREWS["torque"]) -> Model:
    """Andrews' squeezing mechanism: seven flat bodies, three loops, a spring, no gravity.

    The element "motor" turns K1 with a constant torque (N m); with 0 there is none, and the
    mechanism stays at rest. Bodies are numbered with parents first, K1 K2 K3 K5 K4 K7 K6; use
    ``model.number`` to find them.

    Examples
    --------
    >>> from multibody import FD_x
    >>> model = andrews()
    >>> FD_x(model, [*_start(model), *[0] * 7])[7:9].round(4)
    array([ 14222.4439, -10666.8329])
    """
    p = ANDREWS
    build = ModelBuilder(gravity=(0.0, 0.0, 0.0), name="Andrews' squeezer")
    for k, (name, parent, place, centre) in enumerate(BODIES):
        moment = p["inertia"][k]
        # A lamina: the moments across its plane do not matter in plane motion.
        inertia = Inertia(p["mass"][k], (*centre(p), 0.0), (moment / 2, moment / 2, moment))
        build.add_body(name, parent, Revolute(), (*place(p), 0.0), inertia)
    E_on = {
        "K3": (0.0, -p["ss"], 0.0),
        "K4": (0.0, -p["e"], 0.0),
        "K6": (p["zf"], 0.0, 0.0),
    }
    for name, point in E_on.items():
        build.add_loop(f"E{name}", name, "K2", Revolute(), point, (-p["d"], 0.0, 0.0))
    build.add_spring(
        "CD",
        0,
        (*p["C"], 0.0),
        "K3",
        (p["sd"], -p["sc"], 0.0),
        stiffness=p["stiffness"],
        rest=p["rest"],
    )
    if torque:
        build.add_element("motor", Actuator("K1", torque))
    return build.build()


def andrews_drive(model: Model, torque: float = ANDREWS["torque"]) -> Array:
    """Joint forces of the motor on K1, for an Andrews' mechanism that has none itself.

    Examples
    --------
    >>> andrews_drive(andrews(torque=0.0))
    array([0.033, 0.   , 0.   , 0.   , 0.   , 0.   , 0.   ])
    """
    if model.elements:
        raise ValueError(
            "andrews_drive: the model has its motor, which would act twice; leave the joint forces "
            "out, or take andrews(torque=0.0). element_forces tells those of the motor at a state"
        )
    tau = np.zeros(model.nv)
    tau[model.v_index[model.number("K1") - 1]] = torque
    return tau
