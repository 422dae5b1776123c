"""Families: mechanisms of one structure, with their numbers as parameters of one traced problem.

A study of a thousand four-bars builds a thousand models, but there is one machine code: whatever
differs between the models (lengths, masses, inertias, stiffnesses, gravity, …) is an entry of the
parameter vector p that ``solve(problem, params=p)`` and ``solve_many(problem, params=rows)`` pass
on. Which entries those are is found by comparing the tables of a few models of the family
(``family_tables``).

p begins with the user's parameters as they were given, so that a run tells which model it
belongs to, and forces ``tau(t, q, v, p)`` can use them; behind them stand the numbers of the model
that follow from them.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrators.problem import Recipe, from_recipe
from integrators.tracing.decisions import Decided

from ...checks import Array, ArrayLike, real_array
from ...io.own.named_numbers import ModelFile
from ...model import Model
from .tables import (
    FamilyTree,
    StructureError,
    common_structure,
    numbers_of,
    place_name,
    places,
    table_of,
    table_sizes,
)

if TYPE_CHECKING:
    from integrators import IVP

    from .starts import Starts

__all__ = ["NAMED_FACTORIES", "FamilyRows", "ModelFamily", "StructureError"]

#: How a name becomes a factory with nominal values: filled in by ``multibody.mechanisms``.
NAMED_FACTORIES: list[Callable[[str], Callable[..., Model] | None]] = []

#: Relative changes of the nominal values at which models are compared: no multiples of each other,
#: so that numbers which agree at all of them agree always.
CHANGES = (1.3e-3, -2.1e-3, 3.7e-3)

KEPT_MODELS = 64

#: Part of a parameter by which it is changed to differentiate.
STEP = 1e-3

#: Differences in parts of a number, or of the largest of its table, that are rounding.
ROUNDING = 8 * float(np.finfo(float).eps)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FamilyRows:
    """Rows of p for rows of parameters.

    Attributes
    ----------
    p
        A row for each run; NaN where there is no such model.
    messages
        Why there is none; "" where there is one.
    """

    p: Array
    messages: Array

    @property
    def good(self) -> Array:
        """Whether each row has a model."""
        return self.messages == ""


class ModelFamily:
    """Models of one structure, ``factory(**parameters)``.

    Parameters
    ----------
    factory
        A function with keyword parameters that returns a :class:`~multibody.Model`, the name of a
        mechanism, or the path of a model file, whose numbers are named by their keys, such as
        ``"bodies.crank.mass"``.
    vary
        Names of the parameters that differ between the models, with nominal values; or names only
        if the factory has defaults for them.
    fixed
        Values of other parameters of the factory.

    Raises
    ------
    StructureError
        If the parameters change more than numbers; the message says what.

    Examples
    --------
    >>> from integrators import solve_many
    >>> from multibody import ModelFamily
    >>> family = ModelFamily("pendulum", {"length": 1.0, "mass": 1.0})
    >>> problem = family.problem([1.0], [0.0], (0.0, 1.0))
    >>> rows = family.parameters([[1.0, 1.0], [2.0, 1.0], [-1.0, 1.0]])
    >>> rows.good.tolist()
    [True, True, False]
    >>> many = solve_many(problem, params=rows.p[rows.good], rtol=1e-9)
    >>> many.y[:, 0].round(6)
    array([-0.980067, -0.493067])
    """

    def __init__(
        self,
        factory: Callable[..., Model] | str | PathLike[str],
        vary: Mapping[str, float] | Sequence[str],
        *,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        self._given = factory
        self.factory, self.name = _factory(factory)
        self.fixed = dict(fixed or {})
        self.nominal = _nominal_values(self.factory, vary)
        self.names = tuple(self.nominal)
        if not self.names:
            raise ValueError("vary: expected at least one parameter that differs between models")
        self._models: OrderedDict[bytes, Model] = OrderedDict()
        nominal = np.array([self.nominal[name] for name in self.names])
        self._samples, models = self._sample_models(nominal)
        trees = common_structure(models)
        self._general = trees[0]._general
        numbers = np.array([numbers_of(tree) for tree in trees])
        self._find_parameters(numbers)
        #: The nominal model, whose tables become symbols while functions are traced.
        self.base = self._build(nominal)
        self.tree = FamilyTree(self.base, trees, self._general)
        self.base.__dict__["tree"] = self.tree
        self._constant = numbers[0]
        self._scale = table_sizes(self.tree, numbers[0])
        self._rule = _traced_factory(self)

    def __reduce__(self) -> Any:
        return Recipe.follow, (
            Recipe(ModelFamily, (self._given, self.nominal), {"fixed": self.fixed}),
        )

    def _sample_models(self, nominal: Array) -> tuple[Array, list[Model]]:
        """Parameters at which models are compared, the nominal ones first, and the models.

        Where a change leaves what the factory accepts (a mass that would be negative), the
        opposite one is tried.
        """
        size = np.where(nominal == 0.0, 1.0, np.abs(nominal))
        uneven = 1.0 + 0.17 * (np.arange(len(nominal)) % 7)
        rows, models = [nominal], [self._build(nominal)]
        for change in CHANGES:
            failure: Exception | None = None
            for way in (1.0, np.where(nominal == 0.0, -1.0, 1.0), -1.0):
                row = nominal + way * change * size * uneven
                try:
                    models.append(self._build(row))
                except ValueError as error:
                    failure = failure or error
                    continue
                rows.append(row)
                break
            else:
                assert failure is not None
                raise ValueError(
                    f"vary: near the nominal values {self.nominal} there are no other models: "
                    f"{failure}"
                ) from failure
            uneven = np.roll(uneven, 1)
        return np.array(rows), models

    def _find_parameters(self, numbers: Array) -> None:
        """Which numbers differ between the samples, and which of them are always equal."""
        varied = np.flatnonzero((numbers != numbers[0]).any(axis=0))
        groups: dict[bytes, int] = {}
        slot = [groups.setdefault(numbers[:, k].tobytes(), len(groups)) for k in varied]
        self.varied = varied
        self.slot = np.array(slot, dtype=np.int64)
        first = dict(zip(reversed(slot), reversed(varied.tolist())))
        self.source = np.array([first[s] for s in range(len(groups))], dtype=np.int64)

    # ------------------------------------------------------------------ models

    @property
    def k(self) -> int:
        """Number of the user's parameters."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Length of p, without joint forces that are numbers."""
        return self.k + len(self.source)

    @property
    def p_names(self) -> tuple[str, ...]:
        """What each entry of p is."""
        where = places(self.tree)
        return (*self.names, *(place_name(self.tree, *where[k]) for k in self.source))

    def _build(self, values: Array) -> Model:
        given = dict(zip(self.names, (float(x) for x in values)))
        model = self.factory(**{**self.fixed, **given})
        if not isinstance(model, Model):
            raise TypeError(
                f"factory: expected a function that returns a Model, received {model!r:.80} from it"
            )
        return model

    def model(self, values: Mapping[str, float] | ArrayLike) -> Model:
        """Return one model: for parameters by name, in order, or for a row of p.

        Examples
        --------
        >>> from multibody import ModelFamily
        >>> ModelFamily("pendulum", ["length"]).model({"length": 2.0}).nv
        1
        """
        if isinstance(values, Mapping):
            values = self.rows({**self.nominal, **values})[0]
        row = np.array(np.ravel(np.asarray(values, dtype=float))[: self.k])
        key = row.tobytes()
        kept = self._models.get(key)
        if kept is not None:
            with contextlib.suppress(KeyError):  # another thread may have dropped it by now
                self._models.move_to_end(key)
            return kept
        model = self._models[key] = self._build(row)
        while len(self._models) > KEPT_MODELS:
            with contextlib.suppress(KeyError):
                self._models.popitem(last=False)
        return model

    # ------------------------------------------------------------------ rows

    def rows(self, values: Any) -> Array:
        """User parameters as rows in the order of ``names``, checked.

        Takes rows, a mapping of numbers and columns by name (also a DataFrame); names that are
        left out have their nominal values.
        """
        if hasattr(values, "keys"):
            given = {key: np.asarray(values[key], dtype=float) for key in values}
            for key in given:
                if key not in self.nominal:
                    raise ValueError(
                        f"{key!r} is no parameter of this family; they are {', '.join(self.names)}"
                    )
            columns = [given.get(name, np.asarray(self.nominal[name])) for name in self.names]
            return np.array(np.broadcast_arrays(*columns)).reshape(self.k, -1).T.copy()
        rows = np.atleast_2d(real_array(values, "parameters", finite=False)).astype(float)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise ValueError(
                f"parameters: expected rows of {self.k} numbers ({', '.join(self.names)}), "
                f"received shape {np.shape(values)}"
            )
        return rows

    def parameters(self, values: Any) -> FamilyRows:
        """Rows of p for rows of parameters, with a message where there is no such model.

        Parameters
        ----------
        values
            As in :meth:`rows`.
        """
        rows = self.rows(values)
        p = np.full((len(rows), self.size), np.nan)
        messages = np.full(len(rows), "", dtype=object)
        known = np.zeros(len(rows), dtype=bool)
        if self._rule is not None:
            p[:], known = self._by_rule(self._rule, rows)
        for k in np.flatnonzero(~known):
            p[k] = np.nan
            try:
                p[k] = self._row(rows[k])
            except Exception as error:  # this row has no model; others may
                messages[k] = str(error) or repr(error)
        return FamilyRows(p, messages)

    def _by_rule(self, rule: Decided, rows: Array) -> tuple[Array, Array]:
        """Rows of p by the traced factory, and for which rows it decides as it was traced."""
        numbers, known = rule.evaluate(rows)
        values = numbers[:, self.source]
        known &= np.isfinite(rows).all(axis=1) & np.isfinite(values).all(axis=1)
        expected = np.broadcast_to(self._constant, numbers.shape).copy()
        expected[:, self.varied] = values[:, self.slot]
        known &= self._agree(expected, numbers).all(axis=1)
        return np.hstack([rows, values]), known

    def _row(self, row: Array) -> Array:
        """One row of p; raises if its model does not belong to the family."""
        if not np.isfinite(row).all():
            name = self.names[int(np.flatnonzero(~np.isfinite(row))[0])]
            raise ValueError(f"{name}: expected a finite number, received {row.tolist()}")
        model = self._build(row)
        return self._values(row, model)

    def _values(self, row: Array, model: Model) -> Array:
        from .tables import _compare

        _compare(self.base, model)
        numbers = numbers_of(table_of(model, self._general))
        if numbers.shape != self._constant.shape:
            raise StructureError("this model has other tables than those of the family")
        values = numbers[self.source]
        expected = self._constant.copy()
        expected[self.varied] = values[self.slot]
        wrong = np.flatnonzero(~self._agree(expected, numbers))
        if wrong.size:
            where = place_name(self.tree, *places(self.tree)[wrong[0]])
            raise StructureError(
                f"{where} is {numbers[wrong[0]]:.9g} here, though near the nominal parameters it "
                f"follows another rule ({expected[wrong[0]]:.9g}); make a family with nominal "
                "values nearer to these"
            )
        return np.concatenate([row, values])

    def _agree(self, expected: Array, numbers: Array) -> Array:
        """Which numbers are what those in p say, but for rounding.

        Numbers that a factory makes in different ways may round alike at all samples.
        """
        with np.errstate(invalid="ignore"):
            near = np.abs(expected - numbers) <= ROUNDING * (self._scale + np.abs(numbers))
        return np.asarray(near | (expected == numbers))

    def gradient(self, values: Array, name: str, of: Callable[[Array], Array]) -> Array:
        """Derivative of ``of(rows)`` by one parameter, by differences of sixth order.

        All rows are computed at once, and the error is that of rounding, about 1e-12 in parts.
        """
        j = self.names.index(name)
        h = STEP * (abs(float(values[j])) or 1.0)
        rows = np.tile(np.asarray(values, dtype=float), (6, 1))
        rows[:, j] += h * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
        found = of(rows)
        if not np.isfinite(found).all():
            raise ValueError(
                f"{name}: there is no derivative at {values[j]:.6g}, because some models near it "
                "do not exist or cannot be assembled"
            )
        weights = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * h)
        return np.asarray(np.tensordot(weights, found, axes=1))

    def symbols(self, p: Any) -> Any:
        """Context in which the tables of the base model hold the symbols p."""
        from .symbols import table_numbers

        return self.tree.bound(self.varied, [table_numbers(p[self.k + s]) for s in self.slot])

    # ------------------------------------------------------------------ problems and starts

    @from_recipe
    def problem(
        self,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        t_span: Sequence[float] = (0.0, 10.0),
        tau: Any = None,
        f_ext: Any = None,
        **options: Any,
    ) -> IVP:
        """Return one traced problem for all models; arguments as in :func:`~multibody.as_ivp`.

        `q0` and `v0` belong to the nominal model; :meth:`starts` finds those of the others. Forces
        that are functions of four arguments, ``tau(t, q, v, p)``, receive the user's parameters.
        The problem's parameters are those of the nominal model; pass others as
        ``solve(problem, params=p)``.
        """
        from .problem import family_problem

        return family_problem(self, q0, v0, t_span, tau, f_ext, options)

    def starts(self, rows: Any, *arguments: Any, **options: Any) -> Starts:
        """Consistent starts of all rows; see :func:`~multibody.runs.families.starts.starts`."""
        from .starts import starts

        return starts(self, rows, *arguments, **options)

    def __repr__(self) -> str:
        return (
            f"<ModelFamily {self.name}: {', '.join(self.names)}; {len(self.source)} numbers differ>"
        )


def _factory(given: Any) -> tuple[Callable[..., Model], str]:
    """Function that makes models, and what to call it."""
    if isinstance(given, str):
        import_module("multibody.mechanisms")  # which knows the names
        for find in NAMED_FACTORIES:
            found = find(given)
            if found is not None:
                return found, given
        if given.lower().endswith((".toml", ".json")):
            return ModelFile(given), Path(given).stem
        raise ValueError(
            f"factory: expected a function that returns a Model, the name of a mechanism, or the "
            f"path of a model file, received {given!r}"
        )
    if isinstance(given, PathLike):
        return ModelFile(given), Path(given).stem
    if not callable(given):
        raise TypeError(f"factory: expected a function that returns a Model, received {given!r}")
    return given, getattr(given, "__name__", "factory")


def _nominal_values(factory: Any, vary: Any) -> dict[str, float]:
    """Nominal values by name; from the factory's defaults where only names are given."""
    if isinstance(vary, Mapping):
        wanted: dict[str, Any] = dict(vary)
    else:
        wanted = dict.fromkeys([vary] if isinstance(vary, str) else vary)
    nominal_of = getattr(factory, "nominal", None)
    try:
        accepted = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        accepted = {}  # type: ignore[assignment]
    anything = nominal_of is not None or any(a.kind is a.VAR_KEYWORD for a in accepted.values())
    found: dict[str, float] = {}
    for name, value in wanted.items():
        if accepted and not anything and name not in accepted:
            raise ValueError(
                f"vary: the factory has no parameter {name!r}; it takes {', '.join(accepted)}"
            )
        if value is None and nominal_of is not None:
            value = nominal_of(name)
        elif value is None and name in accepted:
            value = accepted[name].default
            value = None if value is inspect.Parameter.empty else value
        if value is None:
            raise ValueError(
                f"vary: {name!r} has no default; give its nominal value, vary={{{name!r}: …}}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ValueError(
                f"vary: expected a number as nominal value of {name!r}, received {value!r}; only "
                "numbers can vary within a family"
            )
        if not np.isfinite(value):
            raise ValueError(f"vary: the nominal value of {name!r} is {value!r}, expected finite")
        found[name] = float(value)
    return found


def _traced_factory(family: ModelFamily) -> Decided | None:
    """The factory as a traced function: all numbers of a model from its parameters.

    Most factories can be run on symbols, and then ten thousand models take as long as a few; they
    decide as they do for a sample (``integrators.tracing.decisions``), and rows that they would
    decide otherwise about are built one by one. So are all rows if it cannot be traced.
    """

    def numbers(x: Any) -> Any:
        model = family.factory(**{**family.fixed, **dict(zip(family.names, x))})
        return numbers_of(table_of(model, family._general))

    try:
        rule = Decided(numbers, family._samples[1])
        found, known = rule.evaluate(family._samples)
    except Exception as error:
        log.info("models of %s are built one by one: %s", family.name, error)
        return None
    built = [numbers_of(table_of(m, family._general)) for m in map(family._build, family._samples)]
    if not known[1] or not family._agree(found[known], np.array(built)[known]).all():
        log.info("models of %s are built one by one: the traced factory differs", family.name)
        return None
    return rule
