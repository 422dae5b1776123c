"""Mechanisms ready to use: each function returns a model.

:func:`get` finds them by name, :func:`entries` is the table of all, with a start for a first
simulation each. To add one, decorate a function that returns a model with :func:`register`.

Examples
--------
>>> from multibody import mechanisms
>>> mechanisms.get("double pendulum").nv
2
"""

from .bodies import free_body, heavy_top, rolling_sphere, satellite, spinning_top
from .pendulums import cart_pole, double_pendulum, n_pendulum, pendulum, spherical_pendulum
from .registry import Entry, entries, entry, get, names, register
from .robots import PUMA560, PUMA560_POSES, puma560, serial_arm
from .trees import planar_tree, random_tree

__all__ = [
    "PUMA560",
    "PUMA560_POSES",
    "Entry",
    "cart_pole",
    "double_pendulum",
    "entries",
    "entry",
    "free_body",
    "get",
    "heavy_top",
    "n_pendulum",
    "names",
    "pendulum",
    "planar_tree",
    "puma560",
    "random_tree",
    "register",
    "rolling_sphere",
    "satellite",
    "serial_arm",
    "spherical_pendulum",
    "spinning_top",
]
