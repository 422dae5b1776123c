"""A model file as a function of its numbers, each named by the keys that lead to it.

``bodies.rod.inertia.mass`` is the mass in the inertia of the body named "rod"; a number of a list
is named by its place, ``bodies.rod.placement.0``. So a file is a factory of models like any other
function of keyword parameters (``multibody.runs.families.family``).
"""

from __future__ import annotations

import copy
import difflib
from os import PathLike
from pathlib import Path
from typing import Any

from ...model import Model
from ..shared.source import Source, read_text
from .reader import format_of, model_of

__all__ = ["ModelFile"]


class ModelFile:
    """A model file whose numbers can be replaced.

    Parameters
    ----------
    path, format
        As in :func:`~multibody.load_model`.

    Examples
    --------
    >>> import tempfile
    >>> from multibody import mechanisms, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pendulum.toml"
    ...     save_model(mechanisms.pendulum(), path)
    ...     file = ModelFile(path)
    >>> file.nominal("gravity.2")
    -9.81
    >>> file(**{"gravity.2": -1.62}).gravity
    array([ 0.  ,  0.  , -1.62])
    """

    def __init__(self, path: str | PathLike[str], format: str | None = None) -> None:
        file = Path(path)
        self._source = Source(read_text(file), format_of(file, format), str(file))
        self.__name__ = file.stem

    def __call__(self, **numbers: float) -> Model:
        """Build the model with other numbers."""
        source = copy.copy(self._source)
        source.data = copy.deepcopy(self._source.data)
        for name, value in numbers.items():
            table, key = self._find(source.data, name)
            table[key] = value
        return model_of(source)

    def nominal(self, name: str) -> float:
        """Number under a name, as the file has it."""
        table, key = self._find(self._source.data, name)
        return float(table[key])

    def _find(self, data: Any, name: str) -> tuple[Any, Any]:
        """Where a number is: the table or list that holds it, and its key there."""
        at, keys = data, name.split(".")
        for depth, key in enumerate(keys):
            choices = _choices(at)
            if key not in choices:
                so_far = ".".join(keys[:depth])
                near = difflib.get_close_matches(key, choices, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(choices)}"
                raise ValueError(
                    f"{self._source.file}: {name!r} names no number of the file, as there is no "
                    f"{key!r} in {so_far or 'it'}; {hint}"
                )
            table, place = at, choices[key]
            at = table[place]
        if isinstance(at, bool) or not isinstance(at, int | float):
            raise ValueError(
                f"{self._source.file}: {name!r} is {at!r:.60}, expected a number; name one of "
                f"{', '.join(f'{name}.{k}' for k in _choices(at)) or 'the others'}"
            )
        return table, place


def _choices(at: Any) -> dict[str, Any]:
    """Names of what is in a table or list: keys, names of its tables, or places."""
    if isinstance(at, dict):
        return {str(key): key for key in at}
    if isinstance(at, list):
        named = [x.get("name", k) if isinstance(x, dict) else k for k, x in enumerate(at)]
        return {str(name): k for k, name in enumerate(named)}
    return {}
