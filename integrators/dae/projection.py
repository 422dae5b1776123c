"""After each step back onto g = 0 and G v = ν, in machine code where possible.

Positions take Newton steps, each the smallest displacement in the norm of M that closes the
linearised constraints; velocities follow in one step (``consistency`` says more). Both steps are
traced, and the time loop itself repeats the first until it has settled (``stepping.projecting``).
Where a correction comes out so large that elimination without pivots is not to be trusted, and
where nothing can be traced, singular values serve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stepping.projecting import MOST_CLOSINGS, SETTLED, TOO_LARGE
from ..tracing import Traced, TracingError, traced, where
from .consistency import nearest, projected
from .problem import full_rank
from .system import Mechanical

__all__ = ["Projection", "TracedProjection"]

Array = NDArray[np.float64]


class TracedProjection:
    """``project(t, y, p)`` in two traced steps, for the time loop and for Python.

    Parameters
    ----------
    codes
        Closing (whose last value says how long a step it was) and settling, or None.
    n
        Size of the states.
    otherwise
        ``otherwise(t, y, p)`` serves where there are none, or where they do not succeed.
    """

    def __init__(
        self, codes: tuple[Traced, Traced] | None, n: int, otherwise: Callable[..., Array]
    ) -> None:
        self.codes, self.n, self.otherwise = codes, n, otherwise

    def machine_codes(self) -> tuple[Any, Any] | None:
        """Machine code of both steps, for the time loop; None where there is none."""
        if self.codes is None:
            return None
        closing, settling = self.codes
        return closing.machine_code(), settling.machine_code()

    def unrolled(self) -> Traced | None:
        """Return both steps as one traced function without loops, for lanes and for derivatives.

        Behind the projected state it returns a number that is at most 1 if two closings were
        enough, as they are from where an integrator ends its steps.
        """
        if self.codes is None:
            return None
        closing, settling = self.codes
        k = closing.k

        def project(t: Any, y: Any, p: Any = ()) -> Any:
            own = (p,) if k else ()
            first = closing(t, y, *own)
            second = closing(t, first[:-1], *own)
            enough = first[-1] <= SETTLED
            state = where(enough, first[:-1], second[:-1])
            size = where(enough, first[-1], second[-1])
            return np.concatenate([settling(t, state, *own), np.array([size / SETTLED])])

        return traced(project, n=self.n, params=k, outputs=self.n + 1)

    def __call__(self, t: float, y: Any, p: Any = ()) -> Array:
        """Project one state."""
        state = np.array(y, dtype=float)
        if self.codes is not None:
            closing, settling = self.codes
            for _ in range(MOST_CLOSINGS):
                found = closing(t, state, p)
                if not found[-1] <= TOO_LARGE:
                    break
                state = found[:-1]
                if found[-1] <= SETTLED:
                    return settling(t, state, p)
        return self.otherwise(t, np.asarray(y, dtype=float), p)


class Projection(TracedProjection):
    """The projection of a system, for states y = (q, v) or (q, v, λ).

    Parameters
    ----------
    mechanical
        The system.
    by_rank
        Insist on singular values.
    multipliers
        λ is part of the state and follows, too.
    """

    def __init__(
        self, mechanical: Mechanical, by_rank: bool = False, multipliers: bool = False
    ) -> None:
        self.mechanical, self.multipliers, self.by_rank = mechanical, multipliers, by_rank
        n = mechanical.nq + mechanical.nv + (mechanical.m if multipliers else 0)
        super().__init__(None, n, self._otherwise)
        regular = mechanical.ways.solves or full_rank(mechanical)
        if mechanical.parts.traceable and regular and not by_rank:
            key = "projection", multipliers
            if key not in mechanical.kept:
                mechanical.kept[key] = self._traced()
            self.codes = mechanical.kept[key]

    def _traced(self) -> tuple[Traced, Traced] | None:
        """Both steps; None if they are too large, or `normalise` is not to be traced."""
        n, k = self.n, self.mechanical.params.size
        try:
            closing = Traced(self._closing, n=n, params=k, outputs=n + 1)
            settling = Traced(self._settling, n=n, params=k)
            for made in (closing, settling):
                made.machine_code()
        except TracingError:
            return None
        return closing, settling

    def _closing(self, t: Any, y: Any, p: Any = ()) -> Any:
        """One Newton step of q, and how long it was, relative to q."""
        mechanical, nq = self.mechanical, self.mechanical.nq
        q = mechanical.normalised(np.array(y[:nq]), p)
        u = mechanical.ways.closing(t, q, p)
        size, reach = abs(u[0]), 1.0
        for x in u[1:]:
            size = np.maximum(size, abs(x))
        for x in q:
            reach = np.maximum(reach, abs(x))
        return np.concatenate([mechanical.displaced(t, q, u, p), y[nq:], [size / reach]])

    def _settling(self, t: Any, y: Any, p: Any = ()) -> Any:
        """Velocities, and multipliers where they are part of the state, for a closed position."""
        mechanical, nq, nv = self.mechanical, self.mechanical.nq, self.mechanical.nv
        q = y[:nq]
        v = mechanical.ways.settled(t, q, y[nq : nq + nv], p)
        parts = [q, v]
        if self.multipliers:
            parts.append(mechanical.ways.multipliers(t, q, v, p))
        return np.concatenate(parts)

    def _otherwise(self, t: float, y: Array, p: Any) -> Array:
        mechanical, nq, nv = self.mechanical, self.mechanical.nq, self.mechanical.nv
        bring = projected if self.by_rank else nearest
        x = bring(mechanical, t, y[: nq + nv], p)
        if not self.multipliers:
            return x
        force = mechanical.acceleration(t, x[:nq], x[nq:], p=p).multipliers
        return np.concatenate([x, force])
