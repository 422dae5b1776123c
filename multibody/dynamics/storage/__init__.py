"""What the kernels read and write: a model as arrays and tables, the workspace, states entered.

Imports models, and the laws of loop joints.
"""
