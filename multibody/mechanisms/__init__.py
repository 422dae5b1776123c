"""Mechanisms ready to use: each function returns a model."""

from .pendulums import double_pendulum, pendulum

__all__ = ["double_pendulum", "pendulum"]
