"""Dynamics of kinematic trees, one algorithm a file, in the book's notation.

`tree` turns a model into arrays, `kinematics` has the kernels that all algorithms share, `rnea`,
`crba`, `aba` and `factor` are the algorithms, `forces` the springs and dampers, and `compute`
the functions that users call.
"""
