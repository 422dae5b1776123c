"""The functions of a mechanical system, completed: what is missing is derived from g.

With q̇ = rate(t, q, v), affine in v, the constraint 0 = g(t, q) has the derivatives

    ġ = ∂g/∂t + ∂g/∂q · q̇ = G v − ν,           G = ∂ġ/∂v,   ν = −ġ at v = 0,
    g̈ = G v̇ − γ,                                γ = −(∂ġ/∂t + ∂ġ/∂q · q̇),

exact because g is traced. Every function here takes (t, q, v, p) or (t, q, p), works on numbers and
on symbols, and returns an array of the right shape or says what is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tracing import Function, Traced, TracingError

__all__ = ["Parts", "complete"]

ARGUMENTS = {
    "mass": "t, q",
    "force": "t, q, v",
    "constraint": "t, q",
    "jacobian": "t, q",
    "bias": "t, q, v",
    "velocity_target": "t, q",
    "rate": "t, q, v",
    "retract": "q, u",
    "normalise": "q",
}


@dataclass(frozen=True)
class Parts:
    """The seven functions; `traceable` if all of them were given as traced, or may be traced.

    `derived` computes G, γ and ν in one call, flat, where all three come from g.
    """

    mass: Callable[..., Any]
    force: Callable[..., Any]
    constraint: Callable[..., Any]
    jacobian: Callable[..., Any]
    bias: Callable[..., Any]
    target: Callable[..., Any]
    rate: Callable[..., Any]
    traceable: bool
    derived: Callable[..., Any] | None = None


def adapt(name: str, function: Any) -> Callable[..., Any]:
    """Return the function with p as its last argument, whether it takes parameters or not."""
    if not callable(function):
        raise TypeError(f"{name} must be a function {name}({ARGUMENTS[name]}), got {function!r}")
    function = underlying(function)
    expected = len(ARGUMENTS[name].split(","))
    if isinstance(function, Function):  # a derivative of a traced function
        return function if function.k else lambda *arguments: function(*arguments[:-1])
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a compiled function that does not tell
        return lambda *arguments: function(*arguments[:-1])
    positional = [a for a in parameters if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    required = [a for a in positional if a.default is a.empty]
    open_ended = any(a.kind is a.VAR_POSITIONAL for a in parameters)
    too_few = len(positional) < expected and not open_ended
    if len(required) > expected + 1 or too_few:
        raise TypeError(
            f"{name} must be a function {name}({ARGUMENTS[name]}) or "
            f"{name}({ARGUMENTS[name]}, p); got one of {len(required)} arguments"
        )
    if len(positional) > expected:
        return function
    return lambda *arguments: function(*arguments[:-1])


def underlying(function: Any) -> Any:
    """Return what was traced; it is traced again as part of something larger."""
    return function.function if isinstance(function, Traced) else function


def is_traced(function: Any) -> bool:
    """Whether a function was given as a traced one."""
    return isinstance(function, Function)


def shaped(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value as an array of the given shape; matrices may come flat, row by row."""
    if value is None:
        raise TypeError(f"{name} returned None; expected shape {shape}")
    array = np.asarray(value)
    size = int(np.prod(shape))
    if array.shape == shape:
        return array
    if array.size == size and (array.ndim <= 1 or 1 in array.shape):
        return array.reshape(shape)
    raise ValueError(f"{name} returned shape {array.shape}; expected {shape}")


def complete(
    given: dict[str, Any], nq: int, nv: int, m: int, k: int, traceable: bool | None
) -> Parts:
    """Adapt the given functions and derive the missing ones.

    Parameters
    ----------
    given
        Functions by name; mass may be a matrix; None where missing.
    nq, nv, m, k
        Numbers of positions, velocities, constraints and parameters.
    traceable
        True: everything may be traced; False: nothing is; None: where all are given traced.
    """
    functions = [f for name, f in given.items() if callable(f) and name in ARGUMENTS]
    if traceable is None:
        traceable = all(is_traced(f) for f in functions)
    parts: dict[str, Any] = {}
    mass = given["mass"]
    if callable(mass):
        full = adapt("mass", mass)
        parts["mass"] = lambda t, q, p: shaped("mass", full(t, q, p), (nv, nv))
    else:
        constant = np.array(mass, dtype=float)
        parts["mass"] = lambda t, q, p: constant
    force, g = adapt("force", given["force"]), adapt("constraint", given["constraint"])
    parts["force"] = lambda t, q, v, p: shaped("force", force(t, q, v, p), (nv,))
    parts["constraint"] = lambda t, q, p: shaped("constraint", g(t, q, p), (m,))
    if given["rate"] is None:
        parts["rate"] = lambda t, q, v, p: v
    else:
        rate = adapt("rate", given["rate"])
        parts["rate"] = lambda t, q, v, p: shaped("rate", rate(t, q, v, p), (nq,))
    missing = [name for name in ("jacobian", "bias", "velocity_target") if given[name] is None]
    if "velocity_target" in missing and "jacobian" not in missing and "bias" not in missing:
        missing.remove("velocity_target")  # both derivatives given: taken as independent of time
        parts["target"] = lambda t, q, p: np.zeros(m)
    derived = Derived(parts["constraint"], parts["rate"], nq, nv, m, k) if missing else None
    for name, key, shape in (
        ("jacobian", "jacobian", (m, nv)),
        ("bias", "bias", (m,)),
        ("velocity_target", "target", (m,)),
    ):
        if given[name] is not None:
            parts[key] = _checked(name, adapt(name, given[name]), shape)
        elif derived is not None and key not in parts:
            parts[key] = getattr(derived, key)
    together = derived.together if derived is not None and len(missing) == 3 else None
    return Parts(**parts, traceable=traceable, derived=together)


def _checked(name: str, function: Callable[..., Any], shape: tuple[int, ...]) -> Callable[..., Any]:
    return lambda *arguments: shaped(name, function(*arguments), shape)


class Derived:
    """G, γ and ν of a traced constraint."""

    def __init__(
        self,
        constraint: Callable[..., Any],
        rate: Callable[..., Any],
        nq: int,
        nv: int,
        m: int,
        k: int,
    ) -> None:
        self.nq, self.nv, self.rate = nq, nv, rate
        try:
            g = Traced(lambda t, q, p: constraint(t, q, p), n=nq, params=k, outputs=m)
            slope, drift = g.jacobian(), g.time_derivative()

            def g_dot(t: Any, x: Any, p: Any) -> Any:
                q, v = x[:nq], x[nq:]
                return slope(t, q, p) @ rate(t, q, v, p) + drift(t, q, p)

            self.g_dot = Traced(g_dot, n=nq + nv, params=k, outputs=m)
        except TracingError as error:
            raise TracingError(
                "jacobian, bias or velocity_target is missing, and constraint (or rate) cannot be "
                f"differentiated because it cannot be traced: {error} Otherwise give all three."
            ) from error
        self.gradient = self.g_dot.jacobian()
        self.time_derivative = self.g_dot.time_derivative()
        self.along = self.g_dot.jvp()

        self.together = Traced(
            lambda t, x, p: np.concatenate(
                [
                    self.jacobian(t, x[:nq], p).ravel(),
                    self.bias(t, x[:nq], x[nq:], p),
                    self.target(t, x[:nq], p),
                ]
            ),
            n=nq + nv,
            params=k,
            outputs=m * nv + 2 * m,
        )

    def _state(self, q: Any, v: Any) -> Any:
        return np.concatenate([np.asarray(q), np.asarray(v)])

    def jacobian(self, t: Any, q: Any, p: Any) -> Any:
        """G."""
        x = self._state(q, np.zeros(self.nv))
        return self.gradient(t, x, p)[:, self.nq :]

    def target(self, t: Any, q: Any, p: Any) -> Any:
        """ν."""
        return -self.g_dot(t, self._state(q, np.zeros(self.nv)), p)

    def bias(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        """γ."""
        x = self._state(q, v)
        direction = self._state(self.rate(t, q, v, p), np.zeros(self.nv))
        return -(self.time_derivative(t, x, p) + self.along(t, x, direction, p))
