"""Kernels: how numerical code is marked, compiled, cached and called. Knows numba and ctypes.

Imports nothing else of this package.
"""

from .cache import cache_directory
from .compiler import compiled, inline_kernel, interpreting, kernel
from .tiers.tiers import OnArrays, OnWorkspace, address_of, compiled_first

__all__ = [
    "OnArrays",
    "OnWorkspace",
    "address_of",
    "cache_directory",
    "compiled",
    "compiled_first",
    "inline_kernel",
    "interpreting",
    "kernel",
]
