"""Algebra: rotations, frames, screws, spatial vectors and inertias as types.

Imports ``kernels`` and ``checks``.
"""
