"""Labels of frames, (origin, base), and how loudly operators complain when they do not chain.

The paper on moving frames plans this (§5, Table 2, erratum E5). Each operator of `frames` says
which two labels must be equal; frames without labels are never checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from ..checks import one_of

__all__ = ["FrameLabelWarning", "Label", "Labels", "Mode", "check_chain", "label_checks"]

Label = int | str | None
Labels = tuple[Label, Label]
Mode = Literal["off", "warn", "raise"]

_mode: ContextVar[Mode] = ContextVar("label_checks", default="raise")


class FrameLabelWarning(UserWarning):
    """Frames were combined whose labels do not chain."""


@contextmanager
def label_checks(mode: Mode) -> Iterator[None]:
    """Check labels with another severity inside a ``with`` block; the default is "raise".

    "off" skips the comparison, "warn" issues a `FrameLabelWarning`. Frames without labels are
    never checked.

    Examples
    --------
    >>> from multibody.algebra.frames import Frame
    >>> a_in_b, c_in_d = Frame(origin="a", base="b"), Frame(origin="c", base="d")
    >>> with label_checks("off"):
    ...     product = a_in_b * c_in_d
    >>> a_in_b * c_in_d
    Traceback (most recent call last):
        ...
    ValueError: *: expected frames that chain, received left.origin = 'a' and right.base = 'd'; \
reorder the factors or correct the labels
    """
    one_of(mode, "mode", ("off", "warn", "raise"))
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def check_chain(operator: str, left: Label, left_name: str, right: Label, right_name: str) -> None:
    """Compare two labels that an operator needs equal.

    Examples
    --------
    >>> check_chain("*", "a", "origin", "a", "base")
    """
    mode = _mode.get()
    if mode == "off" or left is None or right is None or left == right:
        return
    message = (
        f"{operator}: expected frames that chain, received left.{left_name} = {left!r} and "
        f"right.{right_name} = {right!r}; reorder the factors or correct the labels"
    )
    if mode == "raise":
        raise ValueError(message)
    warnings.warn(message, FrameLabelWarning, stacklevel=3)
