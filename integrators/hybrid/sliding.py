"""Sliding on surfaces: the combination of the fields on their sides that is tangent to them.

The equations are in :mod:`.filippov`, which decides where a motion slides and asks for the field,
the weights λ, and how far they are from their limits.

Where ġ is the same on both sides, whatever the state (a position, while accelerations jump), the
sides differ in g̈ first: there a motion slides on ġ = 0, with g = 0 besides, and the combination is
the one with g̈ = 0. The trace tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tracing import where
from .switch import call, traced_as

__all__ = ["Blend"]

Array = NDArray[np.float64]
MOST_ITERATIONS = 30


class Blend:
    """The field of sliding on some surfaces, and the weights λ of their sides."""

    def __init__(self, modes: Any, sides: Sequence[int | None], sliding: Sequence[int]) -> None:
        self.modes, self.sliding = modes, list(sliding)
        self.corners = modes.corners(sides, sliding)
        self.surfaces = [modes.surface(i, sides) for i in sliding]
        self.fields = [modes.field(corner) for corner in self.corners]
        self.above: list[Any] = []  # surfaces that it stays on because their rates vanish
        for place, i in enumerate(self.sliding):
            rate = modes.common_rate(i, self.surfaces[place], self.corners, self.fields)
            if rate is not None:
                self.above.append(self.surfaces[place])
                self.surfaces[place] = rate
        self.signs = np.array(list(product((1, -1), repeat=len(sliding))), dtype=np.float64)
        self._last: tuple[tuple[float, bytes], Array] | None = None  # λ, asked for many times

    # ------------------------------------------------------------ on numbers

    def _velocities(self, t: float, y: Array) -> Array:
        return np.array([self.modes.velocity(corner, t, y) for corner in self.corners])

    def _rates(self, t: float, y: Array, velocities: Array) -> Array:
        """ġ of each surface (rows) along each corner's field (columns)."""
        return np.array([[self.modes.rate(g, t, y, v) for v in velocities] for g in self.surfaces])

    def weights(self, t: float, y: Array) -> Array:
        """λ of each surface, not cut off at ±1; NaN if there is none."""
        asked = float(t), y.tobytes()
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._solved(self._rates(t, y, self._velocities(t, y)))
        return self._last[1]

    def _solved(self, rates: Array) -> Array:
        """λ with Σ_c w_c(λ) ġ_c = 0: in closed form for one surface, else by Newton's method."""
        if len(self.sliding) == 1:
            plus, minus = rates[0]
            if plus == minus == 0.0:
                return np.zeros(1)  # both sides are tangent, and so is any combination
            return np.array([-(plus + minus) / (plus - minus)])
        lam = np.zeros(len(self.sliding))
        for _ in range(MOST_ITERATIONS):
            residual = rates @ self._shares(lam)
            slope = np.array([rates @ self._shares(lam, i) for i in range(len(lam))]).T
            try:
                change = np.linalg.solve(slope, residual)
            except np.linalg.LinAlgError:
                break
            lam = lam - change
            if np.max(np.abs(change)) <= 1e-14 * max(1.0, np.max(np.abs(lam))):
                return lam
        return np.full(len(lam), np.nan)

    def _shares(self, lam: Array, by: int | None = None) -> Array:
        """Weight of each corner, Π (1 ± λᵢ)/2, or its derivative by one λ."""
        factors = (1.0 + self.signs * lam) / 2.0
        if by is not None:
            factors[:, by] = self.signs[:, by] / 2.0
        return factors.prod(axis=1)

    def attraction(self, t: float, y: Array, scale: dict[int, float]) -> list[float]:
        """For each surface, how much its two sides lead into it; > 0 if sliding is stable."""
        rates = self._rates(t, y, self._velocities(t, y))
        lam = self._solved(rates)
        found = []
        for place, i in enumerate(self.sliding):
            toward = -float(rates[place] @ self._shares(np.clip(lam, -1, 1), place))
            size = float(np.abs(rates[place]).max()) if self.above else scale[i]
            found.append(toward / size if size > 0 else 0.0)
        return found

    def velocity(self, t: float, y: Array) -> Array:
        """y' while sliding."""
        velocities = self._velocities(t, y)
        lam = self._solved(self._rates(t, y, velocities))
        return self._shares(lam) @ velocities

    def _tangent(self, t: float, y: Array, velocity: Array) -> Array:
        """The velocity without what rounding has left of ġ: what sticks must not creep."""
        off = np.array([self.modes.rate(g, t, y, velocity) for g in self.surfaces])
        G = np.array([self.modes.gradient(g, t, y) for g in self.surfaces])
        return velocity - _shortest(G, off)

    def projected(self, t: float, y: Array) -> Array:
        """The nearest state on the surfaces."""
        surfaces = [*self.above, *self.surfaces]
        for _ in range(3):
            values = np.array([self.modes.value(g, t, y) for g in surfaces])
            if not np.any(values):
                break
            G = np.array([self.modes.gradient(g, t, y) for g in surfaces])
            y = y - _shortest(G, values)
        return y

    # ------------------------------------------------------------ as functions of a problem

    @property
    def field(self) -> Callable[..., Any]:
        """f while sliding: traced for one surface if both sides and g are."""
        modes = self.modes

        def blended(t: float, y: Array, *p: Array) -> Array:
            velocities = self._velocities(t, y)
            lam = self._solved(self._rates(t, y, velocities))
            velocity = self._tangent(t, y, self._shares(lam) @ velocities)
            return velocity if modes.mass is None else modes.mass @ velocity

        if len(self.sliding) > 1 or modes.mass is not None:
            return blended

        def symbolic(t: Any, y: Any, *p: Any) -> Any:
            plus, minus, lam, gradient, drift = self._symbolic(t, y, p)
            slope = ((1 + lam) * plus + (1 - lam) * minus) / 2
            off = (gradient @ slope + drift) / (gradient @ gradient)  # rounding: see _tangent
            return slope - off * gradient

        made = traced_as([*self.fields, *self.surfaces], symbolic)
        return made if made is not symbolic else blended

    def _symbolic(self, t: Any, y: Any, p: tuple[Any, ...]) -> tuple[Any, Any, Any, Any, Any]:
        """Both sides, λ, ∂g/∂y and ∂g/∂t of one surface, on symbols."""
        g: Any = self.surfaces[0]
        own = p if g.k else ()
        gradient, drift = (
            np.ravel(g.jacobian()(t, y, *own)),
            np.ravel(g.time_derivative()(t, y, *own)),
        )
        plus, minus = (np.ravel(call(f, t, y, p)) for f in self.fields)
        n_plus, n_minus = gradient @ plus + drift[0], gradient @ minus + drift[0]
        apart = n_plus - n_minus
        lam = where(apart == 0.0, 0.0, -(n_plus + n_minus) / where(apart == 0.0, 1.0, apart))
        return plus, minus, lam, gradient, drift[0]

    def room(self, place: int, side: int) -> Callable[..., Any]:
        """1 ∓ λ of one surface: sliding ends where it falls through zero."""

        def left(t: float, y: Array, *p: Array) -> float:
            return float(1.0 - side * self.weights(t, y)[place])

        if len(self.sliding) > 1 or self.modes.mass is not None:
            return left

        def symbolic(t: Any, y: Any, *p: Any) -> Any:
            return [1.0 - side * self._symbolic(t, y, p)[2]]

        made = traced_as([*self.fields, *self.surfaces], symbolic, outputs=1)
        return made if made is not symbolic else left


def _shortest(G: Array, values: Array) -> Array:
    """The shortest x with G x = values."""
    if len(G) == 1:
        square = float(G[0] @ G[0])
        return G[0] * (values[0] / square) if square > 0 else np.zeros(G.shape[1])
    return np.asarray(np.linalg.lstsq(G, values, rcond=None)[0], dtype=np.float64)
