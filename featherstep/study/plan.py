"""One run of a study: from its parameters to a problem, and from its solution to numbers.

A :class:`Plan` holds all that workers need to do any run: it is what is sent to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from integrators import IVP, Solution, solve
from integrators.errors import suggest
from multibody import Model, as_dae, as_ivp
from multibody.runs.forces import takes_parameters, with_parameters
from multibody.runs.observing.quantities import Seen

from .code import fingerprint, name_of
from .recording.reductions import EventTime, Reduction, Span
from .sampling.design import Design
from .starts import Assembled, GivenState, Start
from .subjects import Mechanism, Subject

__all__ = ["Plan", "RunFailed", "split_options"]

Array = NDArray[np.float64]

FORCES = ("tau", "f_ext")
#: Options of ``solve`` that a study has in other places, or that make no sense in it.
OWN = ("problem", "t_span", "y0", "method", "t_eval", "dense_output", "params", "args",
       "vectorized", "progress", "throw", "check", "on_interrupt", "callback",
       "events", "sensitivities")  # fmt: skip


SECOND_CHANCES = 20  # runs that may stand for the one in the middle


class RunFailed(Exception):
    """A run that could not be done; `stage` says how far it came."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage

    def __reduce__(self) -> Any:
        return type(self), (self.stage, str(self))


@dataclass(frozen=True)
class Plan:
    """All that is the same in every run of a study, and how they differ.

    Attributes
    ----------
    subject, design, start
        What is simulated, with which parameters, from where.
    fixed
        Parameters that are the same in all runs.
    t_span, method, options
        As ``solve`` takes them.
    model_options
        Arguments of :func:`~multibody.as_ivp` or :func:`~multibody.as_dae`.
    record
        What each run is reduced to.
    times
        When states are kept; empty for none.
    """

    subject: Subject
    design: Design
    start: Start
    t_span: tuple[float, float]
    method: Any
    fixed: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Reduction] = field(default_factory=dict)
    times: Array = field(default_factory=lambda: np.zeros(0))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was looked up."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    # ------------------------------------------------------------ before the run

    @property
    def needs_dense(self) -> bool:
        """Whether something is recorded for which the run between its steps is needed."""
        return any(reduction.dense for reduction in self.record.values())

    @property
    def events(self) -> dict[str, EventTime]:
        """Events that are recorded."""
        return {n: r for n, r in self.record.items() if isinstance(r, EventTime)}

    def own_parameters(self, parameters: Mapping[str, float]) -> dict[str, Any]:
        """Those that the subject takes; the start and the forces take the others."""
        others = set(self.elsewhere)
        if self.subject.accepted is not None:
            others = {name for name in others if not self.subject.takes(name)}
        return {**self.fixed, **{n: x for n, x in parameters.items() if n not in others}}

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Parameters that the start takes, and those that forces may: tau(t, q, v, p) has all."""
        known = self.forces_take_parameters and self.subject.accepted is not None
        named = self.design.names if known else ()
        return tuple(dict.fromkeys((*self.start.names, *named)))

    @property
    def forces_take_parameters(self) -> bool:
        """Whether forces are functions of (t, q, v, p)."""
        return any(takes_parameters(self.model_options.get(name)) for name in FORCES)

    def build(self, parameters: Mapping[str, float]) -> Model | IVP:
        """Model or problem of one run."""
        for name, value in parameters.items():
            if not np.isfinite(value):
                raise RunFailed("build", f"{name}: expected a finite number, received {value}")
        try:
            return self.subject.build(self.own_parameters(parameters))
        except Exception as error:
            raise RunFailed("build", told(error)) from error

    def start_of_model(self, model: Model, parameters: Mapping[str, float]) -> Array:
        """State [q; v] at the start of a run of a mechanism."""
        try:
            if isinstance(self.start, FULL):
                return self.start.state_in(self._seen_of(model), parameters, self._usual(model))
            if isinstance(self.start, Assembled):
                return self._assembled(model, parameters)
            return self.start.state(model, parameters, self._usual(model))
        except Exception as error:
            raise RunFailed("start", told(error)) from error

    def _usual(self, model: Model) -> Array:
        if isinstance(self.start, GivenState) and not isinstance(self.start.values, Mapping):
            return np.zeros(model.nq + model.nv)  # all of it is given
        return self.subject.usual_state(model)

    def _assembled(self, model: Model, parameters: Mapping[str, float]) -> Array:
        """Start with closed loops, found from that of the run in the middle.

        So all runs are closed in the same way; one that cannot be is told.
        """
        assert isinstance(self.start, Assembled)
        near, branch = self.middle_start
        q, v, its = self.start.closed(model, parameters, near)
        if model.bonds and its != branch:
            raise ValueError(
                "the loops close on another branch than in the run in the middle of the study; "
                "give Assembled(guess=...) nearer to the one that is meant"
            )
        return np.concatenate([q, v])

    @cached_property
    def middle_start(self) -> tuple[Array, int]:
        """State in which the run in the middle is assembled, and the branch of its loops."""
        assert isinstance(self.start, Assembled)
        q, v, branch = self._closed_in_the_middle(self.middle_model, self.middle_parameters)
        return np.concatenate([q, v]), branch

    def _closed_in_the_middle(self, model: Model, parameters: Mapping[str, float]) -> Any:
        assert isinstance(self.start, Assembled)
        usual = np.concatenate([model.neutral(), np.zeros(model.nv)])
        if isinstance(self.subject, Mechanism):
            usual = self.subject.usual_state(model)
            usual = self.start.led(model, parameters, usual)
        return self.start.closed(model, parameters, usual)

    @staticmethod
    def _seen_of(model: Model) -> Seen:
        names = (*model.q_names, *model.v_names)
        return Seen(_Named(names, model.nq + model.nv), model)

    @cached_property
    def middle_parameters(self) -> dict[str, float]:
        """Parameters of a run in the middle of the study that can be built."""
        raised: Exception | None = None
        for k in range(-1, min(self.design.n, SECOND_CHANCES)):
            parameters = self.design.middle() if k < 0 else self.design.run(k)
            try:
                made = self.build(parameters)
                if isinstance(made, Model) and isinstance(self.start, Assembled):
                    self._closed_in_the_middle(made, parameters)
                else:
                    self.problem(parameters, traced=False)
                return parameters
            except Exception as error:
                raised = raised or error
        assert raised is not None
        raise ValueError(f"no run can be started; the one in the middle says: {raised}") from raised

    @cached_property
    def middle_model(self) -> Model:
        """Model of the run in the middle."""
        model = self.build(self.middle_parameters)
        assert isinstance(model, Model)
        return model

    def problem(self, parameters: Mapping[str, float], **changes: Any) -> tuple[IVP, Seen]:
        """Initial value problem of one run, and what quantities look at.

        `changes` are options of a model's problem; ``traced=False`` to have it quickly.
        """
        made = self.build(parameters)
        if isinstance(made, IVP):
            return self._of_ivp(made, parameters)
        state = self.start_of_model(made, parameters)
        forces = {name: self.model_options.get(name) for name in FORCES}
        p = np.array(list(parameters.values()), dtype=np.float64)
        forces = {name: with_parameters(law, p) for name, law in forces.items()}
        options = {k: v for k, v in self.model_options.items() if k not in FORCES} | changes
        q, v = state[: made.nq], state[made.nq :]
        make = as_dae if "formulation" in options else as_ivp
        try:
            ivp = make(made, q, v, self.t_span, forces["tau"], forces["f_ext"], **options)
        except Exception as error:
            raise RunFailed("start", told(error)) from error
        return ivp, Seen(ivp, made, forces["tau"], forces["f_ext"], dict(parameters))

    def _of_ivp(self, made: IVP, parameters: Mapping[str, float]) -> tuple[IVP, Seen]:
        seen = Seen(made)
        state = np.asarray(made.y0)
        try:
            if isinstance(self.start, FULL):
                state = self.start.state_in(seen, parameters, np.array(state))
            elif type(self.start) is not Start:
                raise ValueError(f"start: {type(self.start).__name__} is for mechanisms")
            ivp = made.with_(y0=state, t_span=self.t_span)
        except Exception as error:
            raise RunFailed("start", told(error)) from error
        return ivp, Seen(ivp)

    # ------------------------------------------------------------ the run

    def solve(self, ivp: IVP, seen: Seen, **more: Any) -> Solution:
        """One run, alone."""
        events = [reduction.event(seen) for reduction in self.events.values()]
        options: dict[str, Any] = {**self.options, "dense_output": self.needs_dense}
        if self.times.size:
            options["t_eval"] = self.times
        return solve(
            ivp.with_(events=(*ivp.events, *events)) if events else ivp,
            method=self.method,
            **{**options, **more},
        )

    def reduce(self, seen: Seen, solution: Solution) -> dict[str, float]:
        """What a finished run is reduced to."""
        seen = replace(seen, kept={})
        span, found = Span(seen, solution), {}
        at = len(solution.t_events) - len(self.events)
        for name, reduction in self.record.items():
            try:
                if isinstance(reduction, EventTime):
                    found[name] = reduction.time(solution.t_events[at])
                    at += 1
                else:
                    found[name] = reduction.of(span)
            except Exception as error:
                raise RunFailed("record", f"{name}: {told(error)}") from error
        return found

    # ------------------------------------------------------------ checks and files

    def check(self) -> Seen:
        """Raise what is wrong with all runs, before any is done; return what is seen."""
        self.subject.check(self.design.names, self.elsewhere)
        for name in self.start.names:
            if name not in self.design.names:
                raise ValueError(
                    f"start: {name!r} is no parameter that is varied"
                    f"{suggest(name, self.design.names)}"
                )
        for name in self.fixed:
            if name in self.design.names:
                raise ValueError(f"fixed: {name!r} is varied, too; leave out one of them")
        self.subject.check(tuple(self.fixed), ())
        try:
            _, seen = self.problem(self.middle_parameters, traced=False)
        except RunFailed as error:
            raise ValueError(f"the run in the middle of the study fails: {error}") from error
        for name, reduction in self.record.items():
            try:
                reduction.check(seen, self.t_span)
            except ValueError as error:
                raise ValueError(f"record.{name}: {error}") from None
        self._check_solving()
        return seen

    def _check_solving(self) -> None:
        """Raise what ``solve`` has against the method or an option: f is not asked for it."""
        refusals = (TypeError, ValueError)
        try:
            self._solve_nothing(traced=False)
        except ImportError:
            pass  # another package, which runs need and looking at them does not
        except refusals:
            try:  # some methods need the trace
                self._solve_nothing()
            except refusals as error:
                raise ValueError(f"no run can be done: {error}") from error

    def _solve_nothing(self, **changes: Any) -> None:
        """Solve the problem of the run in the middle on an empty interval."""
        ivp, seen = self.problem(self.middle_parameters, **changes)
        at = self.t_span[0]
        self.solve(ivp.with_(t_span=(at, at)), seen, t_eval=None)

    def plain(self) -> dict[str, Any]:
        """The plan as it is kept in a store: two plans with the same form give the same runs."""
        return {
            "subject": self.subject.plain(),
            "fixed": plain_value(self.fixed),
            "design": self.design.plain(),
            "start": self.start.plain(),
            "t_span": list(self.t_span),
            "method": plain_value(self.method),
            "options": plain_value(self.options),
            "model_options": plain_value(self.model_options),
            "record": {name: plain_value(r.plain()) for name, r in self.record.items()},
            "functions": {
                name: fingerprint(function)
                for name, r in self.record.items()
                if (function := getattr(r.quantity, "function", None)) is not None
            },
            "times": self.times.tolist(),
        }


FULL = GivenState  # a start that needs the names of the states


@dataclass
class _Named:
    """Stands for a problem of which only the names of its states are asked."""

    state_names: tuple[str, ...]
    n: int


def told(error: BaseException) -> str:
    """What an exception says, with its kind where that is not plain from the words."""
    text = " ".join(str(error).split())
    if isinstance(error, RunFailed | ValueError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _solving() -> set[str]:
    """Options of ``solve``."""
    return set(inspect.signature(solve).parameters) - set(OWN)


def _making() -> set[str]:
    """Options that make a problem of a model."""
    making = {"formulation", *FORCES}
    for function in (as_ivp, as_dae):
        making |= set(inspect.signature(function).parameters)
    return making - {"model", "q0", "v0", "t_span", "options", "step"}


def option_names() -> list[str]:
    """Names of all options of a study."""
    return sorted(_solving() | _making())


def split_options(
    options: Mapping[str, Any], mechanism: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of ``solve``, and those that make a problem of a model."""
    solving, making = _solving(), _making()
    for name in options:
        if name in OWN:
            hint = {"events": "; record EventTime(...)", "t_eval": "; give outputs=",
                    "sensitivities": "; solve_many(..., sensitivities=...) has them"}  # fmt: skip
            raise ValueError(f"a study has no option {name!r} of its own{hint.get(name, '')}")
        if name not in solving and not (mechanism and name in making):
            known = solving | (making if mechanism else set())
            raise ValueError(f"unknown option {name!r}{suggest(name, known)}")
    for_models = {k: v for k, v in options.items() if mechanism and k in making - solving}
    return {k: v for k, v in options.items() if k not in for_models}, for_models


def plain_value(value: Any) -> Any:
    """A value as JSON has it; code by its name and fingerprint."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if callable(value):
        return {"function": name_of(value), "code": fingerprint(value)}
    return {"object": f"{type(value).__module__}:{type(value).__qualname__}", "is": repr(value)}
