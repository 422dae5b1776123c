"""Forward dynamics from Python with as little as possible between the call and the kernel.

One compiled function checks the sizes, copies the arguments into the workspace, runs the kernel
and returns a fresh array. Whatever it does not understand (lists, other number types, wrong sizes,
results that are not finite) is left to the ordinary path, which knows the error messages.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from integrators.kernels import compiled, interpreting, kernel

from .compute_kernels import forward_dynamics
from .tree import HAVE_FORCES, TreeWorkspace

__all__ = ["fast_forward_dynamics"]


def tree_at(address: int) -> TreeWorkspace:
    """Workspace at an address; exists in compiled code only."""
    raise RuntimeError("tree_at works in compiled code only")


@kernel
def entry(address: Any, q: Any, v: Any, tau: Any) -> Any:
    """Accelerations, or an empty array if something is wrong."""
    w = tree_at(address)
    n = w.v.shape[0]
    if q.shape[0] != w.q.shape[0] or v.shape[0] != n or tau.shape[0] != n:
        return np.empty(0)
    for k in range(q.shape[0]):
        w.q[k] = q[k]
    for k in range(n):
        w.v[k] = v[k]
        w.tau[k] = tau[k]
    w.t[0] = 0.0
    w.switches[HAVE_FORCES] = 0
    if w.springs.shape[0] > 0:
        w.switches[HAVE_FORCES] = 1
        for i in range(w.f_ext.shape[0]):
            for k in range(6):
                w.f_ext[i, k] = 0.0
    total = forward_dynamics(w)
    if total - total != 0.0:
        return np.empty(0)
    out = np.empty(n)
    for k in range(n):
        out[k] = w.a_q[k]
    return out


@cache
def fast_forward_dynamics() -> Any:
    """Return f(address, q, v, tau), or None where nothing is compiled."""
    if interpreting():
        return None
    from numba import types
    from numba.extending import overload

    from integrators.intrinsics import workspace_cast

    cast = workspace_cast(TreeWorkspace)

    @overload(tree_at)
    def _tree_at(address):  # type: ignore[no-untyped-def]
        def at(address):  # type: ignore[no-untyped-def]
            return cast(address)

        return at

    function = compiled(entry)
    vector = types.Array(types.float64, 1, "A")
    function.compile((types.int64, vector, vector, vector))
    function.disable_compile()
    return function
