"""Analysis: what order and stability a method has, how hard a problem is, how large the error may be.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name → module of this package that defines it; loaded on first use.
_WHERE: dict[str, str] = {
    # the method
    # the problem
    # the error
    # the studies
}

__all__ = sorted([*_WHERE, "plot"])


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module(".plot", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
