"""Controllers: PID with an integral as a state, first-order filters; sampled ones with hold, delay.

A controller has the output "u". It pushes its joint with u, or leaves that to another element (a
motor whose ``voltage`` is the controller's name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..checks import has_symbols, real_scalar
from .base import Element, element_kind
from .friction import _positive

__all__ = ["PID", "FirstOrderFilter", "Sampled", "SampledLaw", "SampledPID"]


def _limited(u: Any, limit: Any) -> Any:
    return u if limit is None else np.minimum(np.maximum(u, -limit), limit)


@element_kind
@dataclass(frozen=True, eq=False)
class PID(Element):
    """A PID controller of a joint of one freedom.

        e = target − q,   u = k_p e + k_i ∫e dt + k_d (d target/dt − v)

    Parameters
    ----------
    joint
        Joint that is measured and, unless `acts` is False, pushed with u.
    target
        A number, a function of time, or a :class:`Table`.
    kp, ki, kd
        Gains. The damping acts on the joint's velocity; `target_rate` is its wanted value.
    target_rate
        A number, a function of time, or a table.
    limit
        Largest |u|; while it is reached, the integral stands still if the error would drive it
        further out.
    acts
        Whether u is a force in the joint.

    Examples
    --------
    >>> from multibody import PID, ModelBuilder, Revolute, point_mass, simulate
    >>> b = ModelBuilder(name="servo")
    >>> _ = b.add_body("arm", 0, Revolute("y"), inertia=point_mass(1.0, (0, 0, -1)))
    >>> b.add_element("servo", PID("arm", 0.8, kp=60.0, ki=80.0, kd=15.0))
    >>> run = simulate(b.build(), T=10.0)
    >>> f"{run.y[0, -1]:.6f}"
    '0.800000'
    """

    joint: str
    target: Any = 0.0
    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0
    target_rate: Any = 0.0
    limit: float | None = None
    acts: bool = True

    kind: ClassVar[str] = "pid"
    states = ("integral",)

    def __post_init__(self) -> None:
        _positive(self, "limit", zero=False)

    def act(self, here: Any) -> None:
        """Measure, and push."""
        q, v = here.joint(self.joint)
        error = here.signal(self.target) - q[0]
        raw = (
            self.kp * error + self.ki * here.z[0] + self.kd * (here.signal(self.target_rate) - v[0])
        )
        u = _limited(raw, self.limit)
        rate = error
        if self.limit is not None:  # 1 inside, 0 where u is cut and e leads further out
            outside = abs(raw) > self.limit
            rate = error * (1.0 - outside * (raw * error > 0.0))
        here.rates(rate)
        if self.acts:
            here.push_joint(self.joint, u)
        here.output("u", u)
        here.output("error", error)


@element_kind
@dataclass(frozen=True, eq=False)
class FirstOrderFilter(Element):
    """T ẏ = input − y, with y as a state and as the output "u".

    Parameters
    ----------
    input
        A number, a function of time, a table, or another element's output ("pid" or "pid.error").
    time
        T, in s.
    initial
        y at the start.
    joint
        Joint that is pushed with y, if any.
    """

    input: Any
    time: float
    initial: float = 0.0
    joint: str | None = None

    kind: ClassVar[str] = "filter"
    states = ("y",)

    def __post_init__(self) -> None:
        _positive(self, "time", zero=False)

    def start(self) -> Mapping[str, float]:
        """Start at the initial value."""
        return {"y": self.initial}

    def act(self, here: Any) -> None:
        """Follow the input."""
        y = here.z[0]
        here.rates((here.signal(self.input) - y) / self.time)
        if self.joint is not None:
            here.push_joint(self.joint, y)
        here.output("u", y)


# ---------------------------------------------------------------------- sampled


class Sampled(Element):
    """A controller that measures at instants, and holds its output between them.

    Subclasses are frozen dataclasses with fields `period`, `delay` and `joint`, names of what they
    remember in `memory`, and a method ``sample(here, memory)`` that returns u and the new memory.
    Samples are taken at whole multiples of the period; u acts `delay` later (any delay, also one
    of several periods) and stays until the next one does. Steps of the integration end on all of
    these times.
    """

    period: float
    delay: float
    joint: str | None
    memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, zero in (("period", False), ("delay", True)):
            value = getattr(self, name)
            if has_symbols(np.asarray(value)):
                raise ValueError(
                    f"{type(self).__name__}: {name} says when things happen, and cannot differ "
                    "within a family; make a family of each"
                )
            number = real_scalar(value, f"{type(self).__name__}: {name}")
            if number < 0.0 or (number == 0.0 and not zero):
                raise ValueError(
                    f"{type(self).__name__}: expected {name} {'≥' if zero else '>'} 0, received "
                    f"{value!r}"
                )
        queue = tuple(f"queue{k}" for k in range(self.slots))
        counts = ("samples", "applied") if self.slots else ("samples",)
        object.__setattr__(self, "states", (*self.memory, *counts, *queue, "u"))

    def _number_fields(self) -> list[str]:
        """Numbers without those that say when things happen: they are a part of the structure."""
        return [name for name in super()._number_fields() if name not in ("period", "delay")]

    @property
    def slots(self) -> int:
        """How many outputs may wait to act."""
        return int(np.ceil(self.delay / self.period - 1e-9)) + 1 if self.delay > 0.0 else 0

    def sample(self, here: Any, memory: Any) -> tuple[float, Sequence[float]]:
        """Measure, and return u and what is remembered."""
        raise TypeError(f"{type(self).__name__}: a sampled controller needs sample(here, memory)")

    def act(self, here: Any) -> None:
        """Hold the output."""
        u = here.state("u")
        here.rates(np.zeros(len(self.states)) + 0.0 * u)
        if self.joint is not None:
            here.push_joint(self.joint, u)
        here.output("u", u)

    # ------------------------------------------------------------------ instants

    def _at(self, name: str) -> int:
        return self.states.index(name)

    def instants(self) -> list[tuple[str, Callable[..., float], Callable[..., Any]]]:
        """Name, time of the next one as a function of the states, and what happens then."""
        found = [("samples", self._next_sample, self._take)]
        if self.slots:
            found.append(("applied", self._next_application, self._apply))
        return found

    def _next_sample(self, z: Any) -> float:
        return float(self.period * z[self._at("samples")])

    def _next_application(self, z: Any) -> float:
        return float(self.period * z[self._at("applied")] + self.delay)

    def _take(self, here: Any) -> Any:
        z, m = np.array(here.z, dtype=float), len(self.memory)
        u, memory = self.sample(here, z[:m].copy())
        z[:m] = memory
        if self.slots:
            waiting = round(z[self._at("samples")] - z[self._at("applied")])
            z[self._at("queue0") + waiting] = u
        else:
            z[self._at("u")] = u
        z[self._at("samples")] += 1.0
        return z

    def _apply(self, here: Any) -> Any:
        z = np.array(here.z, dtype=float)
        first = self._at("queue0")
        queue = z[first : first + self.slots]
        z[self._at("u")] = queue[0]
        z[first : first + self.slots] = np.append(queue[1:], 0.0)
        z[self._at("applied")] += 1.0
        return z

    def at_time(self, z: Any, t: float) -> Any:
        """Own states with counts that do not lie in the past."""
        z = np.array(z, dtype=float)
        k = float(np.ceil(t / self.period - 1e-9))
        if z[self._at("samples")] < k:
            z[self._at("samples")] = k
            if self.slots:
                z[self._at("applied")] = k
        return z

    def stops(self, t0: float, t1: float) -> Any:
        """Times of all instants in an interval."""
        ks = np.arange(np.floor((t0 - self.delay) / self.period), np.ceil(t1 / self.period) + 1)
        times = self.period * ks
        times = np.concatenate([times, times + self.delay]) if self.slots else times
        return times[(times > t0) & (times < t1)]


@element_kind
@dataclass(frozen=True, eq=False)
class SampledPID(Sampled):
    """A digital PID controller: e_k = target − q, u_k = k_p e_k + k_i h Σe + k_d (e_k − e_(k−1))/h.

    Parameters
    ----------
    joint
        Joint that is measured and, unless `acts` is False, pushed with u.
    target
        A number, a function of time, or a :class:`Table`.
    kp, ki, kd
        Gains.
    period, delay
        h, and how much later u acts, in s.
    limit
        Largest |u|; the sum then stands still if the error would drive it further out.
    acts
        Whether u is a force in the joint.
    """

    joint: str
    target: Any
    period: float
    kp: float = 0.0
    ki: float = 0.0
    kd: float = 0.0
    delay: float = 0.0
    limit: float | None = None
    acts: bool = True

    kind: ClassVar[str] = "sampled_pid"
    memory = ("sum", "last", "begun")

    def sample(self, here: Any, memory: Any) -> tuple[float, Sequence[float]]:
        """Measure the joint."""
        total, last, begun = memory
        q, _ = here.joint(self.joint)
        error = here.signal(self.target) - q[0]
        change = begun * (error - last) / self.period  # at first there is none to compare with
        summed = total + error * self.period
        raw = self.kp * error + self.ki * summed + self.kd * change
        u = _limited(raw, self.limit)
        if u != raw and raw * error > 0.0:
            summed = total
        return u, (summed, error, 1.0)

    def act(self, here: Any) -> None:
        """Hold the output."""
        u = here.state("u")
        here.rates(np.zeros(len(self.states)) + 0.0 * u)
        if self.acts:
            here.push_joint(self.joint, u)
        here.output("u", u)


@dataclass(frozen=True, eq=False)
class SampledLaw(Sampled):
    """A sampled controller as a function: ``law(here, memory)`` returns u and the new memory.

    Parameters
    ----------
    law
        Called at the instants, on numbers only; it may branch.
    period, delay
        In s.
    joint
        Joint that is pushed with u; None: others use the output "u".
    remembers
        Names of what it remembers; zero at the start.
    """

    law: Callable[[Any, Any], tuple[float, Sequence[float]]]
    period: float
    delay: float = 0.0
    joint: str | None = None
    remembers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", tuple(self.remembers))
        super().__post_init__()

    def sample(self, here: Any, memory: Any) -> tuple[float, Sequence[float]]:
        """Call the function."""
        found = self.law(here, memory)
        try:
            u, memory = found
            return float(u), [float(x) for x in memory]
        except (TypeError, ValueError):
            raise ValueError(
                f"SampledLaw: expected law(here, memory) to return u and {len(self.memory)} "
                f"numbers to remember, received {found!r:.80}"
            ) from None
