"""Orientation of a body: matrices, quaternions, angle sequences, and the rates of all of them.

Imports ``kernels`` and ``checks``.
"""
