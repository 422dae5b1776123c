"""Forward dynamics from Python with as little as possible between the call and the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from integrators import native
from integrators.kernels import OnWorkspace, interpreting, kernel

from .compute_kernels import forward_dynamics
from .tree import HAVE_FORCES, TreeWorkspace

__all__ = ["forward_dynamics_entry"]


@kernel
def accelerate(w: Any) -> Any:
    """a_q from q, v and tau at time 0, without external forces; returns Σ a_q as a check."""
    w.t[0] = 0.0
    w.switches[HAVE_FORCES] = 0
    if w.springs.shape[0] > 0:
        w.switches[HAVE_FORCES] = 1
        for i in range(w.f_ext.shape[0]):
            for k in range(6):
                w.f_ext[i, k] = 0.0
    return forward_dynamics(w)


_accelerate = OnWorkspace(accelerate, TreeWorkspace, returns=True)


def forward_dynamics_entry(w: TreeWorkspace, ordinary: Callable[..., Any]) -> Callable[..., Any]:
    """Return a builtin (q, v, tau) → accelerations that works on w.

    Whatever it does not understand (lists, other number types, wrong sizes, results that are not
    finite) is left to `ordinary`, which knows the error messages.
    """
    if interpreting() or not native.available():
        return ordinary
    return native.workspace_entry(
        _accelerate.address, w.address, (w.q, w.v, w.tau), w.a_q, ordinary, w
    )
