"""A kernel that is compiled in a moment, where other processes can import it."""

from typing import ClassVar

import numpy as np

from integrators.kernels import OnWorkspace, kernel
from integrators.kernels.workspace import Workspace


class Tiny(Workspace):
    """One array."""

    FIELDS: ClassVar[dict[str, str]] = {"x": "f1"}


@kernel
def double(w):
    """x ← 2x."""
    for i in range(w.x.shape[0]):
        w.x[i] = 2.0 * w.x[i]


run_double = OnWorkspace(double, Tiny)


def workspace():
    """Return a workspace of ones."""
    return Tiny(x=np.ones(3))
