"""Mechanisms ready to use: each function returns a model.

:func:`get` finds them by name, :func:`entries` is the table of all, with a start for a first
simulation each. To add one, decorate a function that returns a model with :func:`register`.

Examples
--------
>>> from multibody import mechanisms
>>> mechanisms.get("double pendulum").nv
2
"""

from .andrews import ANDREWS, andrews, andrews_drive
from .bodies import free_body, heavy_top, rolling_sphere, satellite, spinning_top
from .cells import ladder, peaucellier, scissor
from .contact_machines import (
    compass_walker,
    loose_slider_crank,
    rimless_wheel,
    stick_slip_oscillator,
)
from .contacts import (
    bead_on_sphere,
    block_on_incline,
    bouncing_ball,
    bowling_ball,
    box_stack,
    dropped_rod,
    newtons_cradle,
    rocking_block,
    sliding_ladder,
)
from .governor import governor
from .linkages import five_bar, four_bar, n_four_bar, slider_crank
from .machines import (
    light_cart_pole,
    rubbing_slider_crank,
    servo_arm,
    seven_link_biped,
    stewart_platform,
)
from .parallel import delta_robot, free_stewart_platform
from .pendulums import cart_pole, double_pendulum, n_pendulum, pendulum, spherical_pendulum
from .registry import Entry, entries, entry, get, names, register
from .robots import PUMA560, PUMA560_POSES, lightweight_arm, puma560, serial_arm
from .spatial_linkages import bricard, spatial_slider_crank
from .trees import planar_tree, random_tree
from .vehicles import bicycle, car_axis, half_car, quarter_car

__all__ = [
    "ANDREWS",
    "PUMA560",
    "PUMA560_POSES",
    "Entry",
    "andrews",
    "andrews_drive",
    "bead_on_sphere",
    "bicycle",
    "block_on_incline",
    "bouncing_ball",
    "bowling_ball",
    "box_stack",
    "bricard",
    "car_axis",
    "cart_pole",
    "compass_walker",
    "delta_robot",
    "double_pendulum",
    "dropped_rod",
    "entries",
    "entry",
    "five_bar",
    "four_bar",
    "free_body",
    "free_stewart_platform",
    "get",
    "governor",
    "half_car",
    "heavy_top",
    "ladder",
    "light_cart_pole",
    "lightweight_arm",
    "loose_slider_crank",
    "n_four_bar",
    "n_pendulum",
    "names",
    "newtons_cradle",
    "peaucellier",
    "pendulum",
    "planar_tree",
    "puma560",
    "quarter_car",
    "random_tree",
    "register",
    "rimless_wheel",
    "rocking_block",
    "rolling_sphere",
    "rubbing_slider_crank",
    "satellite",
    "scissor",
    "serial_arm",
    "servo_arm",
    "seven_link_biped",
    "slider_crank",
    "sliding_ladder",
    "spatial_slider_crank",
    "spherical_pendulum",
    "spinning_top",
    "stewart_platform",
    "stick_slip_oscillator",
]
