"""MJCF, the models of MuJoCo: bodies, joints, inertias and equalities as models of this program.

May import the builder and what readers share; ``read_mjcf`` is the way in.
"""

from .reader import read_mjcf

__all__ = ["read_mjcf"]
