"""SDF, the models of Gazebo: to models of this program."""

from .reader import read_sdf

__all__ = ["read_sdf"]
