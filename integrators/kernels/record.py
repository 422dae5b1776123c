"""Records: numbers with names, for Python and for compiled code alike.

A kernel cannot hold Python objects, but it should not have to say ``clock[7]`` either. The numbers
of a record live one behind the other in memory, eight bytes each, and both sides know them by name:
interpreted, ``r.h`` is a property; compiled, ``r`` is a single pointer and ``r.h`` a load from a
known place (``numba_types``).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Record"]


class Record:
    """Named numbers; a subclass annotates its fields as ``float`` or ``int``.

    All of them are zero at first.

    Examples
    --------
    >>> class Ball(Record):
    ...     height: float
    ...     bounces: int
    >>> ball = Ball()
    >>> ball.height = 2
    >>> ball.bounces += 1
    >>> ball.height, ball.bounces
    (np.float64(2.0), np.int64(1))
    """

    FIELDS: ClassVar[dict[str, str]] = {}  # "f" or "i", in order
    records: ClassVar[dict[str, type[Record]]] = {}  # by name, for compiled code

    def __init_subclass__(cls) -> None:
        Record.records[cls.__name__] = cls
        cls.FIELDS = {name: str(kind)[0] for name, kind in cls.__annotations__.items()}
        for place, (name, kind) in enumerate(cls.FIELDS.items()):
            setattr(cls, name, _number(place, kind))

    def __init__(self) -> None:
        self.words = np.zeros(len(self.FIELDS), dtype=np.int64)
        self.floats: NDArray[np.float64] = self.words.view(np.float64)  # the same memory

    @classmethod
    def places(cls, *names: str) -> NDArray[np.intp]:
        """Where fields are in ``floats`` or ``words``, to set several at once."""
        order = list(cls.FIELDS)
        return np.array([order.index(name) for name in names])


def _number(place: int, kind: str) -> Any:
    def get_float(self: Record) -> Any:
        return self.floats[place]

    def put_float(self: Record, value: Any) -> None:
        self.floats[place] = value

    def get_word(self: Record) -> Any:
        return self.words[place]

    def put_word(self: Record, value: Any) -> None:
        self.words[place] = value

    return property(get_float, put_float) if kind == "f" else property(get_word, put_word)
