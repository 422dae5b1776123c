"""The application: a command line, comparisons and their pictures.

The libraries below it are :mod:`integrators` and :mod:`multibody`; nothing there imports this.
"""

from __future__ import annotations

from typing import Any

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("featherstep")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
