"""Dynamics, one algorithm a file, in the book's notation: trees here, loops and books in folders.

`workspace` declares the arrays and `arrays` fills them from a model; `kinematics` has the kernels
that all algorithms share; `rnea`, `crba`, `aba` and `factor` are the algorithms, `forces` the
springs and dampers, and `functions` what users call. Imports models, and no solver.
"""

from . import arrays as arrays  # tells models how they become arrays
