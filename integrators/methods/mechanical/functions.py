"""Functions of a mechanical system that methods for constraints ask for, traced where possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dae.acceleration import Eliminated, Weighted, eliminate
from ...dae.problem import full_rank, traced_or
from ...dae.system import Mechanical
from ...tracing import TracingError

__all__ = ["SystemFunctions"]

Array = NDArray[np.float64]


class SystemFunctions:
    """Each is a function of (t, x, p), with x = (q, v) or (q, u): traced, or on numbers."""

    def __init__(self, system: Mechanical) -> None:
        self.system, self.full_rank = system, full_rank(system)
        nq, nv, m, own = system.nq, system.nv, system.m, system.own_states
        trace = system.parts.traceable and self.full_rank

        def made(name: str, outputs: int, trace: bool = trace) -> Any:
            symbolic, numeric = getattr(self, f"_{name}"), getattr(self, f"_{name}_numbers")
            sizes = {"n": nq + nv, "outputs": outputs}
            try:
                return traced_or(system, trace, symbolic, other=numeric, key=name, **sizes)
            except TracingError:  # a retraction with branches, say
                return numeric

        self.accelerate = made("accelerate", own + nv + m)
        self.settle = made("settle", nv)
        self.move = made("move", nq, system.parts.traceable)

    def _accelerate(self, t: Any, x: Any, p: Any) -> Any:
        """ż, v̇ and λ from G v̇ = γ."""
        q, v = x[: self.system.nq], x[self.system.nq :]
        M, f, _, G, gamma, _ = self.system.ways.terms(t, q, v, p)
        return np.concatenate([self._own(t, q, v, p), *eliminate(M, f, G, gamma)])

    def _accelerate_numbers(self, t: float, x: Array, p: Any) -> Array:
        q, v = x[: self.system.nq], x[self.system.nq :]
        now = self.system.terms(t, q, v, p)
        known = Weighted(now.M, now.G, self.system.rank_tolerance)
        return np.concatenate([self._own(t, q, v, p), *known.accelerate(now.f, now.gamma)])

    def _own(self, t: Any, q: Any, v: Any, p: Any) -> Any:
        if not self.system.own_states:
            return np.zeros(0)
        return self.system.parts.rate(t, q, v, p)[-self.system.own_states :]

    def _settle(self, t: Any, x: Any, p: Any) -> Any:
        """The velocity nearest to v, in the norm of the mass, with G v = ν."""
        q, v = x[: self.system.nq], x[self.system.nq :]
        M, _, _, G, _, nu = self.system.ways.terms(t, q, v, p)
        return v + Eliminated(M, G).correction(nu - G @ v)

    def _settle_numbers(self, t: float, x: Array, p: Any) -> Array:
        q, v = x[: self.system.nq], x[self.system.nq :]
        now = self.system.terms(t, q, v, p)
        known = Weighted(now.M, now.G, self.system.rank_tolerance)
        return np.asarray(v + known.correction(now.nu - now.G @ v))

    def _move(self, t: Any, x: Any, p: Any) -> Any:
        """q ⊞ u of x = (q, u)."""
        return self.system.moved(t, x[: self.system.nq], x[self.system.nq :], p)

    _move_numbers = _move
