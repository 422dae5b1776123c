"""Constraints by functions: φ(t, q) = 0, or ψ(t, q, v) = 0, stated in Python (book, §3.1, §9.6).

A constraint is traced when the model is made, on the positions that it asks a view for, by name, by
place or as points of bodies: a gear in a machine of thousands is a function of two. Rows of K, ν
and γ come from exact derivatives of that trace (``dynamics.loops.constraints.stated``), so that it
stands beside the loop joints in every formulation.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import Array, ArrayLike, exact_array, floats, real_array

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Constraint", "Variables", "bound", "constraint_numbers"]

#: Part of the terms of ψ that may be left of what is not linear in v: rounding.
LINEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Constraint:
    """A function that vanishes along every motion.

    Attributes
    ----------
    name
        Its rows are called name[0], name[1], …
    function
        φ(q), φ(t, q) or φ(t, q, p); of velocities ψ(q, v), ψ(t, q, v) or ψ(t, q, v, p).
    parameters
        p: numbers that models of a family may differ in.
    of_velocities
        Whether it binds velocities only.
    description
        What :func:`str` of a model says about it.
    recipe
        For constraints of the library, such as gears: data from which it can be written to a file.
    """

    name: str
    function: Callable[..., Any]
    parameters: Any = ()
    of_velocities: bool = False
    description: str = "by a function"
    recipe: Any = None
    trace: Trace | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        """Number of rows."""
        return self._traced.count

    @property
    def is_rheonomic(self) -> bool:
        """Whether it moves the mechanism: time stands in it, or a velocity other than zero."""
        return self._traced.is_rheonomic

    @property
    def points(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        """Points that the function asks for: number of the body, and coordinates on it."""
        return self._traced.points

    @property
    def _traced(self) -> Trace:
        if self.trace is None:
            raise ValueError(f"constraint {self.name!r} belongs to no model yet")
        return self.trace

    def key(self) -> tuple[Any, ...]:
        """Equal for constraints that differ in their parameters only."""
        made = self._traced
        return (self.of_velocities, made.used, made.points, made.program.graph.digest)

    def __reduce__(self) -> Any:
        given = (self.function, self.parameters, self.of_velocities, self.description, self.recipe)
        return Constraint, (self.name, *given)


@dataclass(frozen=True, eq=False)
class Trace:
    """A constraint's function of t, z = [q; x] (of velocities [q; v; x; ẋ]) and p, x its points.

    Of q and v it takes the entries in `used` only.
    """

    program: Any
    count: int
    used: tuple[tuple[int, ...], tuple[int, ...]]
    points: tuple[tuple[int, tuple[float, ...]], ...]
    is_rheonomic: bool

    def of(self, q: Any, v: Any) -> list[Any]:
        """What the program takes of positions and velocities."""
        return [values[list(which)] for values, which in zip((q, v), self.used) if which]


class Variables:
    """Positions or velocities of a model inside a constraint's function.

    ``q["arm"]`` is the position of the joint of the body *arm* (an array, if it has several
    variables), ``q["arm.angle"]`` one variable by its name in ``model.q_names``, ``q[2]`` and
    ``q[2:4]`` are variables by place. ``q.point("arm", (1, 0, 0))`` is a point of a body in base
    coordinates; of velocities, ``v.point`` is its velocity.
    """

    def __init__(
        self, model: Model, values: Any, speeds: bool, point: Callable[[int, Array], Any]
    ) -> None:
        self._model, self._values, self._speeds, self._point = model, values, speeds, point
        self.used: set[int] = set()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(self[:], dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            found = self[self._place(key)]
            return found[0] if np.shape(found) == (1,) else found
        self.used.update(np.ravel(np.arange(len(self))[key]).tolist())
        return self._values[key]

    def _place(self, key: str) -> int | slice:
        """Where the variables of a name are."""
        model = self._model
        names = model.variable_places[1 if self._speeds else 0]
        for name in (key, f"d({key})") if self._speeds else (key,):
            if name in names:
                return names[name]
        near = difflib.get_close_matches(key, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {list(names)[:20]}"
        raise KeyError(f"no variable or body is named {key!r}; {hint}")

    def point(self, body: str | int, point: ArrayLike = (0.0, 0.0, 0.0)) -> Any:
        """Place (of velocities: velocity) of a point of a body, in base coordinates."""
        return self._point(self._model.number(body), exact_array(point, "point", (3,)))


class _Asked:
    """Points that a function asks for, in order, and what it gets for them."""

    def __init__(self, places: Any, velocities: Any = None) -> None:
        self.points: list[tuple[int, tuple[float, ...]]] = []
        self.views: list[Variables] = []
        self.places, self.velocities = places, velocities

    def _number(self, body: int, point: Array) -> int:
        key = body, tuple(map(float, point))
        if key not in self.points:
            self.points.append(key)
        return self.points.index(key)

    @property
    def used(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Positions and velocities that were asked for."""
        q, *v = (tuple(sorted(view.used)) for view in self.views)
        return q, v[0] if v else ()

    def place(self, body: int, point: Array) -> Any:
        k = self._number(body, point)
        return (
            self.places(body, point, k) if callable(self.places) else self.places[3 * k : 3 * k + 3]
        )

    def velocity(self, body: int, point: Array) -> Any:
        k = self._number(body, point)
        if callable(self.velocities):
            return self.velocities(body, point, k)
        return self.velocities[3 * k : 3 * k + 3]


def bound(constraint: Constraint, model: Model) -> Constraint:
    """The same constraint, traced on the variables of a model.

    Raises
    ------
    ValueError
        If the function returns no numbers, or is not linear in velocities.
    """
    from integrators.tracing import TracingError, traced

    where = f"constraint {constraint.name!r}"
    function, speeds = constraint.function, constraint.of_velocities
    if not callable(function):
        raise TypeError(f"{where}: expected a function, received {function!r}")
    if model.nq == model.n_states:
        raise ValueError(f"{where}: the joints of {model.name!r} have no variables to constrain")
    p = floats(np.array(real_array(constraint.parameters, f"{where}: parameters"))).reshape(-1)
    nq, nv, k = model.nq - model.n_states, model.nv, len(p)
    takes = _arguments(function)
    fewest = 2 if speeds else 1
    forms = "ψ(q, v), ψ(t, q, v) or ψ(t, q, v, p)" if speeds else "φ(q), φ(t, q) or φ(t, q, p)"
    if takes is not None and not fewest <= takes <= fewest + 2:
        raise TypeError(f"{where}: expected a function {forms}, received one of {takes} arguments")

    def value(t: Any, q: Any, v: Any, p: Any, asked: _Asked) -> list[Any]:
        views = [Variables(model, q, False, asked.place)]
        if speeds:
            views.append(Variables(model, v, True, asked.velocity))
        asked.views = views
        extra = fewest if takes is None else takes - fewest
        given = (*(() if extra == 0 else (t,)), *views, *((p,) if extra == 2 else ()))
        try:
            found = function(*given)
        except KeyError as error:
            raise ValueError(f"{where}: {error.args[0]}") from None
        except TracingError:
            raise
        except (AttributeError, TypeError) as error:
            raise TypeError(f"{where}: {error}; it is called as {forms}") from error
        if found is None:
            raise ValueError(f"{where}: its function returned None; is its `return` missing?")
        return list(np.ravel(np.asarray(found)))

    # Numbers first: how many rows, which variables, and which points.
    rng = np.random.default_rng(0)
    numbers = np.ones(k) if p.dtype == object else p
    probe = _Asked(
        lambda body, point, number: rng.uniform(0.5, 1.0, 3), lambda *_: rng.uniform(size=3)
    )
    with np.errstate(all="ignore"):
        count = len(value(0.3, model.trial_position[:nq], rng.standard_normal(nv), numbers, probe))
    if count == 0:
        raise ValueError(f"{where}: expected at least one number from its function, received none")
    points = tuple(probe.points)
    if not (points or any(probe.used)):
        raise ValueError(f"{where}: its function asks for no variable; write it as {forms}")
    q_used, v_used = probe.used
    nq_used, m = len(q_used), 3 * len(points)
    after = nq_used + len(v_used)

    def on_symbols(t: Any, z: Any, p: Any) -> Any:
        asked = _Asked(z[after : after + m], z[after + m : after + 2 * m])
        asked.points = list(points)
        q, v = np.full(nq, np.nan, dtype=object), np.full(nv, np.nan, dtype=object)
        q[list(q_used)], v[list(v_used)] = z[:nq_used], z[nq_used:after]
        rows = np.array(value(t, q, v, p, asked))
        if asked.used != (q_used, v_used):
            raise ValueError(f"{where}: it asks for other variables at every call; state one law")
        return rows

    n = after + (2 * m if speeds else m)
    try:
        if k:
            program = traced(on_symbols, n=n, params=k, outputs=count)
        else:
            program = traced(lambda t, z: on_symbols(t, z, ()), n=n, outputs=count)
    except TracingError as error:
        raise TracingError(
            f"{where}: its function cannot be traced ({error}); write it with NumPy and without "
            "branches, and hand numbers that vary between models over as parameters=…"
        ) from error
    moves = _uses_time(program)
    if speeds:
        moves = _check_linear(where, program, nq_used, len(v_used), m, numbers) or moves
    made = Trace(program, count, (q_used, v_used), points, moves)
    return Constraint(
        constraint.name,
        function,
        tuple(p.tolist()),
        speeds,
        constraint.description,
        constraint.recipe,
        made,
    )


def _arguments(function: Callable[..., Any]) -> int | None:
    """How many arguments a function wants; None if it does not tell."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return sum(
        a.default is a.empty and a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)
        for a in given
    )


def _uses_time(program: Any) -> bool:
    """Whether a program's first input stands in any of its outputs."""
    derivative = program.time_derivative().graph
    return not (
        derivative.is_constant and not np.any(derivative.evaluate([0.0] * len(derivative.inputs)))
    )


def _check_linear(where: str, program: Any, nq: int, nv: int, m: int, p: Array) -> bool:
    """Raise if a function is not linear in velocities; whether it moves what stands still."""
    rng = np.random.default_rng(1)

    def at(t: float, q: Array, v: Array, x: Array, u: Array) -> Array:
        z = np.concatenate([q, v, x, u])
        return np.asarray(program(t, z, p) if len(p) else program(t, z))

    t, q, x = 0.3, rng.uniform(0.2, 1.0, nq), rng.uniform(0.2, 1.0, m)
    (v, w), (u, y) = rng.standard_normal((2, nv)), rng.standard_normal((2, m))
    with np.errstate(all="ignore"):
        values = (
            at(t, q, v + w, x, u + y),
            at(t, q, v, x, u),
            at(t, q, w, x, y),
            at(t, q, 0 * v, x, 0 * u),
        )
        bent = np.abs(values[0] - values[1] - values[2] + values[3])
        size = np.max(np.abs(values), axis=0)
        if np.any(bent > LINEAR * (1.0 + size)):
            raise ValueError(
                f"{where}: expected a function that is linear in the velocities, "
                "A(t, q) v − b(t, q), received one that is not; no force law is agreed for others"
            )
    return bool(np.any(values[3] != 0.0))


def constraint_numbers(model: Model, constraint: Constraint) -> list[Any]:
    """What its law takes as p: its own parameters, and those of all joints."""
    numbers: list[Any] = list(constraint.parameters)
    for body in model.bodies:
        numbers += list(body.joint.parameters)
    return numbers
