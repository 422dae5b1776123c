"""The algorithms of trees, one a file: kinematics, inverse and forward dynamics, inertia, factors.

Imports ``storage``.
"""
