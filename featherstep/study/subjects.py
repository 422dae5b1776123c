"""What a study is about: a mechanism, a model file, a function that makes models, a problem.

Each subject turns parameters into a model or an initial value problem, says which parameters it
has, and can be written down: in full if it is a name or a file, by name and fingerprint if it is
code, which no file may bring along.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators import IVP
from integrators.errors import suggest
from multibody import Model

from .code import fingerprint, name_of

__all__ = ["Subject", "subject_of"]

Array = NDArray[np.float64]

MODEL_FILES = (".toml", ".json", ".urdf", ".sdf", ".xml")


_ENTRY = re.compile(r"(.+)\[(\d+)\]")


def gathered(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Entries ``mass[0]``, ``mass[1]``, … put together as a list ``mass``.

    Where ``mass`` itself is given, they replace entries of it.

    Examples
    --------
    >>> gathered({"mass[0]": 1.0, "mass[1]": 2.0, "length": 3.0})
    {'length': 3.0, 'mass': [1.0, 2.0]}
    """
    plain = {name: value for name, value in parameters.items() if not _ENTRY.fullmatch(name)}
    for name, value in parameters.items():
        if found := _ENTRY.fullmatch(name):
            given, i = plain.get(found[1], []), int(found[2])
            whole = list(given) if np.ndim(given) else [given]
            if i > len(whole):
                raise ValueError(f"{name}: expected {found[1]}[{len(whole)}] before it")
            plain[found[1]] = [*whole[:i], value, *whole[i + 1 :]]
    return plain


class Subject:
    """Something with parameters that becomes a model or a problem."""

    #: What it is, for titles.
    title = "study"
    #: Names of the parameters that it takes; None if any will do.
    accepted: tuple[str, ...] | None = None
    #: Until when it is simulated, if it says.
    t_end: float | None = None

    def build(self, parameters: Mapping[str, Any]) -> Model | IVP:
        """Model or problem with these parameters."""
        raise TypeError(f"{type(self).__name__} makes nothing")

    def usual_state(self, model: Model) -> Array:
        """Where a model usually starts: neutral and at rest, if nothing else is known."""
        return np.concatenate([model.neutral(), np.zeros(model.nv)])

    def plain(self) -> dict[str, Any]:
        """What it is, in a file."""
        raise TypeError(f"{type(self).__name__} cannot be written down")

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of; what was looked up is looked up again in another process."""
        return {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]

    def takes(self, name: str) -> bool:
        """Whether it has a parameter of this name; mass[0] is an entry of mass."""
        return self.accepted is None or bool({name, _ENTRY.sub(r"\1", name)} & set(self.accepted))

    def check(self, names: tuple[str, ...], elsewhere: tuple[str, ...]) -> None:
        """Raise for parameters that nobody uses; `elsewhere` are those that the start uses."""
        if self.accepted is None:
            return
        for name in names:
            if name not in elsewhere and not self.takes(name):
                known = [*self.accepted, *elsewhere]
                raise ValueError(
                    f"{self.title} has no parameter {name!r}; it has "
                    f"{', '.join(known) or 'none'}{suggest(name, known)}"
                )


@dataclass(frozen=True)
class Mechanism(Subject):
    """A mechanism of the catalogue."""

    name: str

    @cached_property
    def entry(self) -> Any:
        """Its line in the table of mechanisms."""
        from multibody.mechanisms import entry

        return entry(self.name)

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its name."""
        return str(self.entry.name)

    @property
    def accepted(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of its parameters."""
        return tuple(inspect.signature(self.entry.build).parameters)

    @property
    def t_end(self) -> float:  # type: ignore[override]
        """Until when it is first simulated."""
        return float(self.entry.t_end)

    def build(self, parameters: Mapping[str, Any]) -> Model:
        """Model with these parameters."""
        model: Model = self.entry.model(**gathered(parameters))
        return model

    def usual_state(self, model: Model) -> Array:
        """Start of the catalogue."""
        return np.concatenate(self.entry.start(model))

    def plain(self) -> dict[str, Any]:
        """Its name."""
        return {"mechanism": self.entry.name}


@dataclass(frozen=True)
class Problem(Subject):
    """A reference problem of the catalogue."""

    name: str

    @cached_property
    def entry(self) -> Any:
        """Its line in the table of problems."""
        from integrators import problems

        return problems.entry(self.name)

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its name."""
        return str(self.entry.name)

    @property
    def accepted(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of its parameters."""
        return tuple(inspect.signature(self.entry.build).parameters)

    def build(self, parameters: Mapping[str, Any]) -> IVP:
        """Problem with these parameters."""
        problem: IVP = self.entry.problem(**gathered(parameters))
        return problem

    def plain(self) -> dict[str, Any]:
        """Its name."""
        return {"problem": self.entry.name}


@dataclass(frozen=True)
class ModelFile(Subject):
    """A model file, whose numbers are parameters by the names of their keys.

    ``bodies.crank.inertia.mass``, ``gravity.1``, ``loops.pin.placement_successor.translation.0``:
    tables of a list go by their ``name``, other lists by numbers from 0.
    """

    path: str
    text: str

    @cached_property
    def _source(self) -> Any:
        from multibody.io.shared.source import Source

        return Source(self.text, Path(self.path).suffix.lower().removeprefix("."), self.path)

    @property
    def data(self) -> dict[str, Any]:
        """What the file says."""
        data: dict[str, Any] = self._source.data
        return data

    @property
    def title(self) -> str:  # type: ignore[override]
        """Name of the model, or of the file."""
        return str(self.data.get("name", Path(self.path).stem))

    @cached_property
    def accepted(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of all numbers in the file but those of its start, which the study gives."""
        return tuple(_numbers_in({k: part for k, part in self.data.items() if k != "start"}))

    def build(self, parameters: Mapping[str, Any]) -> Model:
        """Model with some numbers replaced."""
        from multibody.io.own.reader import model_of

        source = copy.copy(self._source)
        source.data = copy.deepcopy(self.data)
        for name, value in parameters.items():
            *way, last = _way(self.data, name)
            at: Any = source.data
            for key in way:
                at = at[key]
            at[last] = value
        return model_of(source)

    def usual_state(self, model: Model) -> Array:
        """The start that the file names; else neutral and at rest. Loops are closed."""
        from multibody import assemble, consistent_velocity
        from multibody.io import named_values

        start = self.data.get("start", {})
        q = named_values(model, "q", start.get("q", {}))
        v = named_values(model, "v", start.get("v", {}))
        if model.bonds:
            q = assemble(model, q).q
            v = consistent_velocity(model, q, v)
        return np.concatenate([q, v])

    def plain(self) -> dict[str, Any]:
        """Its name and text."""
        return {"file": Path(self.path).name, "text": self.text}


@dataclass(frozen=True)
class Factory(Subject):
    """The user's own function of keyword parameters: it returns a Model or an IVP."""

    function: Callable[..., Any]

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def accepted(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of its parameters; None if it takes any."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return None
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            return None
        return tuple(p.name for p in parameters)

    def build(self, parameters: Mapping[str, Any]) -> Model | IVP:
        """Model or problem with these parameters."""
        made = self.function(**gathered(parameters))
        if not isinstance(made, Model | IVP):
            raise TypeError(
                f"{self.title}: expected a function that returns a Model or an IVP, received "
                f"{made!r:.60} from it"
            )
        return made

    def plain(self) -> dict[str, Any]:
        """Where it can be imported from, and a fingerprint of its code."""
        return {"factory": name_of(self.function), "code": fingerprint(self.function)}


@dataclass(frozen=True)
class Given(Subject):
    """A model or an initial value problem as it is.

    The entries of a problem's vector p are parameters, by the names given or as p[0], p[1], …
    """

    what: Model | IVP
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its name."""
        return self.what.name or "problem"

    @cached_property
    def accepted(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the entries of p."""
        if isinstance(self.what, Model):
            return ()
        count = self.what.params.size
        if self.names and len(self.names) != count:
            raise ValueError(
                f"parameters: expected {count} names, one for each entry of the problem's params, "
                f"received {list(self.names)}"
            )
        return self.names or tuple(f"p[{i}]" for i in range(count))

    def vector(self, parameters: Mapping[str, Any]) -> Array:
        """The vector p, or rows of it where parameters are columns."""
        assert isinstance(self.what, IVP)
        columns = [parameters.get(n, self.what.params[i]) for i, n in enumerate(self.accepted)]
        return (
            np.array(np.broadcast_arrays(*columns), dtype=np.float64).T if columns else np.zeros(0)
        )

    def build(self, parameters: Mapping[str, Any]) -> Model | IVP:
        """The same, with another p."""
        if isinstance(self.what, Model) or not parameters:
            return self.what
        return self.what.with_(params=self.vector(parameters))

    def usual_state(self, model: Model) -> Array:
        """Neutral and at rest, loops closed."""
        from multibody import assemble

        q = assemble(model).q if model.bonds else model.neutral()
        return np.concatenate([q, np.zeros(model.nv)])

    def plain(self) -> dict[str, Any]:
        """Its name, and a fingerprint of its code and numbers."""
        if isinstance(self.what, Model):
            from multibody.io import dumps

            return {"file": f"{self.what.name or 'model'}.toml", "text": dumps(self.what)}
        ivp = self.what
        numbers = (np.asarray(ivp.y0), ivp.params, ivp.mass, ivp.events, ivp.project)
        f = getattr(ivp.f, "function", ivp.f)
        return {"ivp": ivp.name, "parameters": list(self.names), "code": fingerprint(f, *numbers)}


def subject_of(given: Any, parameters: tuple[str, ...] = (), allow_code: bool = False) -> Subject:
    """Subject from what users and files give.

    Parameters
    ----------
    given
        A name, the path of a model file, ``module:function``, a function, a Model or an IVP.
    parameters
        Names for the entries of an IVP's params.
    allow_code
        Whether ``module:function`` may be imported, which runs that module.
    """
    if isinstance(given, Subject):
        return given
    if isinstance(given, Model | IVP):
        return Given(given, tuple(parameters))
    if parameters:
        raise ValueError("parameters: expected names only for the params of an IVP")
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(MODEL_FILES)):
        return model_file(Path(given))
    if isinstance(given, str) and re.fullmatch(r"[\w.]+:[\w.]+", given):
        return Factory(_imported(given, allow_code))
    if isinstance(given, str):
        return _named(given)
    if callable(given):
        return Factory(given)
    raise ValueError(
        "expected a mechanism's name, a model file, a function that returns a Model or an IVP, a "
        f"Model or an IVP; received {given!r:.80}"
    )


def model_file(path: Path) -> ModelFile:
    """A model file as a subject; that of a robot as the same model in a file of our own."""
    from multibody.io import dumps, load_events, load_model, load_start
    from multibody.io.shared.source import read_text

    if path.suffix.lower() in (".toml", ".json"):
        file = ModelFile(str(path), read_text(path))
        file.usual_state(file.build({}))  # what is wrong with it is said now
        acting = [e.name for e in load_events(path) if e.terminal or e.scale or e.set]
        if acting:
            raise ValueError(
                f"{path.name}: event {acting[0]!r} changes the state or ends the run, which "
                "runs of a study do not follow; take it out of the file, and record an EventTime"
            )
        return file
    model, start = load_model(path), load_start(path)
    given = None if start.q is None else (start.q, np.zeros(model.nv))
    return ModelFile(str(path.with_suffix(".toml")), dumps(model, start=given))


def _imported(path: str, allowed: bool) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    if not allowed:
        raise ValueError(
            f"{path!r} would run code of {module}; allow it by allow_code=True, on the command "
            "line by --allow-code, if you trust it"
        )
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{path!r} cannot be imported: {error}") from error
    if not callable(found):
        raise ValueError(f"{path!r}: expected a function, received {found!r:.60}")
    return found


def _named(name: str) -> Subject:
    """A mechanism of this name; if there is none, a problem."""
    from integrators import problems
    from multibody import mechanisms

    def fold(text: str) -> str:
        return "".join(c for c in text.casefold() if c not in "-_ ")

    if fold(name) in map(fold, mechanisms.names()):
        return Mechanism(name)
    try:
        problems.entry(name)
    except ValueError:
        known = [*mechanisms.names(), *problems.names()]
        raise ValueError(
            f"there is no mechanism, problem or model file {name!r}{suggest(name, known)}"
        ) from None
    return Problem(name)


# ---------------------------------------------------------------------- numbers of a file


def _numbers_in(data: Any, before: str = "") -> list[str]:
    """Names of all numbers below a place."""
    if isinstance(data, bool):
        return []
    if isinstance(data, int | float):
        return [before]
    if isinstance(data, dict):
        parts = [(key, value) for key, value in data.items() if key != "format"]
    elif isinstance(data, list):
        parts = [(_item_name(i, item), item) for i, item in enumerate(data)]
    else:
        return []
    start = f"{before}." if before else ""
    return [name for key, value in parts for name in _numbers_in(value, f"{start}{key}")]


def _item_name(i: int, item: Any) -> str:
    return str(item["name"]) if isinstance(item, dict) and "name" in item else str(i)


def _way(data: Any, name: str) -> list[str | int]:
    """Keys and indices that lead to a number."""
    if name == "" and isinstance(data, int | float):
        return []
    items = (
        list(data.items())
        if isinstance(data, dict)
        else [(i, item) for i, item in enumerate(data)]
        if isinstance(data, list)
        else []
    )
    for key, value in items:
        label = _item_name(key, value) if isinstance(data, list) else str(key)
        if name == label or name.startswith(f"{label}."):
            rest = name[len(label) + 1 :]
            if rest in ("", *_numbers_in(value)) and (rest or not isinstance(value, dict | list)):
                return [key, *_way(value, rest)]
    raise ValueError(f"there is no number {name!r} in the file")
