"""Which function it was: a name to find it by, and a fingerprint that changes with its code.

A study that is resumed must go on with the functions it began with. What a function computes
cannot be told from its name, so the store keeps a hash of its code, of the constants in it, and of
what it closes over.
"""

from __future__ import annotations

import hashlib
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["fingerprint", "name_of"]

DEPTH = 4  # functions called by functions called by …


def name_of(function: Any) -> str:
    """Where a function can be imported from, ``module:name``.

    Examples
    --------
    >>> name_of(fingerprint)
    'featherstep.study.code:fingerprint'
    """
    function = inspect.unwrap(function) if callable(function) else function
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}:{name}"


def fingerprint(*things: Any) -> str:
    """Hash of functions and data; equal for the same code in another process.

    Examples
    --------
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    digest = hashlib.sha256()
    _add(digest, things, DEPTH, [])
    return digest.hexdigest()


def _add(digest: Any, thing: Any, depth: int, path: list[int]) -> None:
    """Add whatever makes a thing differ from another one; `path` leads to it, against circles."""
    if id(thing) in path:
        digest.update(b"again")
        return
    path = [*path, id(thing)]
    if isinstance(thing, types.CodeType):
        digest.update(thing.co_code)
        # The docstring is a constant, but computes nothing; names say what is called.
        for part in (thing.co_consts, thing.co_names, thing.co_varnames, thing.co_freevars):
            _add(digest, part, depth, path)
    elif isinstance(thing, types.FunctionType):
        _add(digest, thing.__code__, depth, path)
        _add(digest, (thing.__defaults__, thing.__kwdefaults__), depth, path)
        for cell in thing.__closure__ or ():
            try:
                _add(digest, cell.cell_contents, depth, path)
            except ValueError:  # an empty cell
                digest.update(b"empty")
        _add_globals(digest, thing, depth, path)
    elif isinstance(thing, np.ndarray):
        digest.update(f"{thing.shape}{thing.dtype}".encode())
        digest.update(repr(thing.tolist()).encode() if thing.dtype == object else thing.tobytes())
    elif isinstance(thing, list | tuple):
        digest.update(f"{type(thing).__name__} {len(thing)}".encode())
        for part in thing:
            _add(digest, part, depth, path)
    elif isinstance(thing, set | frozenset):
        _add(digest, sorted(map(repr, thing)), depth, path)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            _add(digest, (key, value), depth, path)
    elif isinstance(thing, str | bytes | int | float | complex | bool | type(None) | np.generic):
        digest.update(repr(thing).encode() + b"\0")
    else:
        _add_object(digest, thing, depth, path)


def _add_object(digest: Any, thing: Any, depth: int, path: list[int]) -> None:
    wrapped = getattr(thing, "__wrapped__", None) or getattr(thing, "func", None)
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    module = getattr(thing, "__module__", None) or type(thing).__module__
    digest.update(f"{module}:{name}".encode() + b"\0")
    if isinstance(thing, types.MethodType):
        _add(digest, (thing.__func__, thing.__self__), depth, path)
    elif wrapped is not None and callable(wrapped):
        _add(digest, wrapped, depth, path)
        _add(digest, getattr(thing, "keywords", None), depth, path)
        _add(digest, getattr(thing, "args", None), depth, path)
    elif isinstance(getattr(thing, "__dict__", None), dict) and not isinstance(
        thing, type | types.ModuleType
    ):
        data = {k: v for k, v in vars(thing).items() if not k.startswith("_")}
        if depth > 0:
            _add(digest, data, depth - 1, path)


def _add_globals(digest: Any, function: Callable[..., Any], depth: int, path: list[int]) -> None:
    """Functions and numbers of the same module that a function uses: they decide, too."""
    if depth <= 0:
        return
    names = function.__globals__
    for name in function.__code__.co_names:
        value = names.get(name)
        own = getattr(value, "__module__", None) == function.__module__
        if isinstance(value, types.FunctionType) and own:
            _add(digest, value, depth - 1, path)
        elif isinstance(value, bool | int | float | str | tuple | np.ndarray):
            _add(digest, (name, value), depth - 1, path)
