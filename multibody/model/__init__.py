"""Models: bodies, joints and loops, put together, numbered and checked.

Imports joints and algebra.
"""

from .model import Body, Constraint, Contact, Loop, Model, PointSpring, Solid

__all__ = ["Body", "Constraint", "Contact", "Loop", "Model", "PointSpring", "Solid"]
