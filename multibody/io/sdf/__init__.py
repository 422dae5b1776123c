"""SDF, the models of Gazebo: to models of this program, and models to it."""

from .reader import read_sdf
from .writer import write_sdf

__all__ = ["read_sdf", "write_sdf"]
