"""Forward dynamics by one sparse system: six unknowns a body, for trees and loops (book, §8.13).

    [ I     P T ] [  a ]   [ P T_a τ + f − v ×* I v ]
    [ TᵀPᵀ  −ε  ] [ −λ ] = [ Tᵀ c ]                        (Eq 8.64)

in base coordinates. P is the incidence matrix of all joints, those of the tree and those of the
loops: each joint has at most four blocks, so the matrix has O(N) entries, whatever the loops do.
Where the pattern has a narrow ordering, as for a tree or a ladder, so have its factors; H of any
spanning tree of a ladder has O(N²) entries.

The pattern is analysed once for a model: which entries there are, and in which order elimination
fills in least. ε is zero for a tree. With loops it is as small as rounding allows, which makes the
matrix quasi-definite and so every order possible, redundant constraints or not; steps of iterative
refinement take its effect away from the accelerations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.kernels import OnWorkspace

from .._checks import Array, ArrayLike
from .closed_loop import _run_closure, check_stabilisation
from .compute import ForcesLike, _vector, load, load_forces
from .compute_kernels import joint_force_elements
from .forces import forces_kernel
from .tree import TreeWorkspace

if TYPE_CHECKING:
    from ..model import Model

__all__ = ["SparseDynamics", "SparseMotion"]
