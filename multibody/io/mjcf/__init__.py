"""MJCF, the models of MuJoCo: to models of this program, and models to it."""

from .reader import read_mjcf
from .writer import write_mjcf

__all__ = ["read_mjcf", "write_mjcf"]
