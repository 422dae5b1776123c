"""Kernels: how numerical code is marked, compiled, cached and called. Knows numba and ctypes.

Imports nothing else of this package.
"""

from .compiler import (
    OnWorkspace,
    address_of,
    cache_directory,
    compiled,
    inline_kernel,
    interpreting,
    kernel,
)

__all__ = [
    "OnWorkspace",
    "address_of",
    "cache_directory",
    "compiled",
    "inline_kernel",
    "interpreting",
    "kernel",
]
