"""URDF, the robots of ROS, with or without macros: to models, and models to it."""

from .reader import read_urdf
from .writer import write_urdf
from .xacro import read_xacro

__all__ = ["read_urdf", "read_xacro", "write_urdf"]
