"""What a function says about itself, also where Python dropped it (``python -OO``)."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

__all__ = ["documentation"]


def documentation(function: Any) -> str:
    """Return the docstring of a function, if need be from its source; empty if it has none.

    Examples
    --------
    >>> documentation(documentation).partition(",")[0]
    'Return the docstring of a function'
    """
    if found := inspect.getdoc(function):
        return found
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or not Python
        return ""
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return ""
    return ast.get_docstring(definition) or ""
