"""Motions of piecewise smooth right-hand sides: crossing surfaces, and sliding on them.

Between its surfaces a :class:`~.switch.Piecewise` right-hand side is smooth; each combination of
sides is a mode. Where the motion reaches surface i, the rates ġᵢ of the fields around that point
say what follows: it goes on to a side whose field leads away from the surface; if none does, both
lead into it, and it slides. The sliding field is the combination Σ_c w_c(λ) f_c of the fields f_c
on all sides c ∈ {+, −}ᵏ of the k surfaces it slides on, with the weights of multilinear
interpolation, w_c = Π (1 ± λᵢ)/2, and λ ∈ [−1, 1]ᵏ such that ġᵢ = 0 for all of them. For one
surface that is Filippov's convex combination [Filippov1988]_, with

    λ = −(n₊ + n₋)/(n₊ − n₋),    n± = ġ along f±.

Where the fields add up (friction in several places), λ solves linear equations. Sliding ends where
a λᵢ leaves [−1, 1]; states are projected onto the surface after every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..problem import IVP
from ..tracing import Traced
from .kinks import Kinks
from .modes import AfterReset, Exit, Hybrid, Mode, Transition
from .sliding import Blend
from .switch import Piecewise, Signs, call, traced_as

__all__ = ["Switched", "switched"]

Array = NDArray[np.float64]
Key = Any  # "plus", "minus", "sliding", "idle", or a tuple of them

_WORDS = {1: "plus", -1: "minus", 0: "sliding", None: "idle"}
_SIDES = {word: side for side, word in _WORDS.items()}

EPS, TINY = np.finfo(float).eps, np.finfo(float).tiny
ROUNDING = 1e-13  # |g| below this part of its terms is zero
# Rates below this part of the largest, and |λ| so near to 1, are looked at a little later; sliding
# ends where |λ| is so much above 1, which changes the state by the square of it. First for rates
# that are exact, then for differences.
UNDECIDED, UNDECIDED_DIFFERENCES = 1e-12, 1e-10
AHEAD = (1e-6, 1e-4, 1e-2)  # how much later, in parts of the time in which the state changes
DIFFERENCE = 1e-3  # step of differences for untraced g, in parts of the same
MOST_AT_ONCE = 3  # surfaces that meet in one point


@dataclass(frozen=True, eq=False)
class Switched(Hybrid):
    """The hybrid problem of a piecewise smooth right-hand side; :func:`switched` makes it."""

    shows_transitions: ClassVar[bool] = False
    continuous: ClassVar[bool] = True
    said: list[str] = field(default_factory=list)  # type: ignore[misc]


def switched(ivp: IVP, kinks: bool = False) -> Switched | None:
    """The modes of a problem whose f is a Switch or, with ``kinks``, traced; None without any."""
    f: Any = ivp.f
    if isinstance(f, Piecewise):
        pieces: Piecewise = f
    else:
        if not kinks:
            return None
        if not isinstance(f, Traced):
            raise TypeError(
                "kinks='locate' needs a traced right-hand side, integrators.traced(f), whose kinks "
                f"are known; got {f!r}. Remedy: trace it, or write it as a Switch"
            )
        ivp.rhs(ivp.t_span[0], ivp.y0)  # tells it n, if it did not know
        pieces = Kinks(f)
    if pieces.count == 0:
        return None
    _check(ivp)
    modes = _Modes(ivp, pieces)
    t0, t1 = ivp.t_span
    if t1 < t0:
        raise ValueError(
            f"t_span = ({t0:g}, {t1:g}) runs backwards, and motions that slide together are not "
            "told apart backwards; integrate y'(s) = −f(−s, y) over s = −t, if no sliding is meant"
        )
    start = modes.key_at(t0, ivp.y0)
    return Switched(
        modes.mode, start, ivp.y0, ivp.t_span, events=ivp.events, name=ivp.name, said=modes.said
    )


def _check(ivp: IVP) -> None:
    if ivp.y0.dtype.kind == "c":
        raise TypeError("a Switch works on real states; split them into real and imaginary parts")
    if ivp.manifold is not None:
        raise ValueError(
            "a Switch does not serve a problem on a manifold, whose methods do not use f; write "
            "its modes as a Hybrid"
        )
    if ivp.mass is not None:
        mass = ivp.mass.toarray() if hasattr(ivp.mass, "toarray") else np.asarray(ivp.mass)
        if np.linalg.matrix_rank(mass) < ivp.n:
            raise ValueError(
                "a Switch needs y', which a singular mass matrix does not tell; write the modes "
                "as a Hybrid, each with its own constraints"
            )


class _Modes:
    """Makes the modes of one problem, and decides where the motion goes at a surface."""

    def __init__(self, ivp: IVP, pieces: Piecewise) -> None:
        self.ivp, self.pieces = ivp, pieces
        self.p = (ivp.params,) if ivp.params.size else ()
        mass = ivp.mass
        self.mass = mass.toarray() if hasattr(mass, "toarray") else mass
        self.said: list[str] = []
        self.tried: tuple[float, set[tuple[Any, ...]]] = (np.nan, set())
        self.length = abs(ivp.t_span[1] - ivp.t_span[0]) or 1.0
        self._bound: dict[int, tuple[Any, Callable[..., Any]]] = {}
        self._common: dict[tuple[int, tuple[Signs, ...]], Any] = {}
        some = tuple(1 for _ in range(pieces.count))
        exact = all(isinstance(pieces.surface(i, some), Traced) for i in range(pieces.count))
        self.undecided = UNDECIDED if exact else UNDECIDED_DIFFERENCES

    # ------------------------------------------------------------ keys

    def key(self, sides: Sequence[int | None]) -> Key:
        words = tuple(_WORDS[side] for side in sides)
        return words[0] if len(words) == 1 else words

    def sides(self, key: Key) -> list[int | None]:
        return [_SIDES[word] for word in ((key,) if isinstance(key, str) else key)]

    def key_at(self, t: float, y: Array) -> Key:
        """The mode in which a motion starts."""
        sides: list[int | None] = [1] * self.pieces.count
        active = []
        for i in range(len(sides)):  # each may depend on those before it
            g = self.surface(i, sides)
            value = self.value(g, t, y)
            sides[i] = 1 if value >= 0 else -1
            if abs(value) <= self.blur(g, t, y):
                active.append(i)
        return self.decide(t, y, sides, active)

    # ------------------------------------------------------------ the modes

    def mode(self, key: Key) -> Mode:
        """The mode of a key: its field, and what leads out of it."""
        sides = self.sides(key)
        sliding = [i for i, side in enumerate(sides) if side == 0]
        changes: dict[str, Any] = {"events": (), "jac": None, "jac_sparsity": None}
        transitions: list[Transition] = [
            Exit(
                self.surface(i, sides),
                direction=-side,
                jump=self._crossing(sides, i),
                name=f"surface {i}",
            )
            for i, side in enumerate(sides)
            if side in (1, -1)
        ]
        if any(event.reset is not None for event in self.ivp.events):
            transitions.append(AfterReset(lambda t, y: 1.0, jump=self._anew))
        if not sliding:
            smooth = self.ivp.with_(f=self.field(tuple(sides)), **changes)
            return Mode(smooth, transitions)
        blend = Blend(self, sides, sliding)
        for place, i in enumerate(sliding):
            for side in (1, -1):
                transitions.append(
                    Exit(
                        blend.room(place, side),
                        direction=-1,
                        jump=self._leaving(sides, blend, i, side),
                        floor=self.undecided,
                        name=f"end of sliding on surface {i}",
                    )
                )
        own = self.ivp.project

        def project(t: float, y: Array, *p: Array) -> Array:
            y = np.asarray(y if own is None else self.ivp.bind(own)(t, y), dtype=np.float64)
            return blend.projected(t, y)

        return Mode(self.ivp.with_(f=blend.field, project=project, **changes), transitions)

    def _crossing(self, sides: list[int | None], i: int) -> Callable[..., tuple[Key, Array]]:
        sliding = [k for k, side in enumerate(sides) if side == 0]
        blend = Blend(self, sides, sliding) if sliding else None

        def jump(t: float, y: Array) -> tuple[Key, Array]:
            y = y if blend is None else blend.projected(t, y)
            near = [
                k
                for k, side in enumerate(sides)
                if side in (1, -1)
                and k != i
                and abs(self.value(g := self.surface(k, sides), t, y)) <= self.blur(g, t, y)
            ]
            return self._entered(t, y, self.decide(t, y, sides, sorted({i, *sliding, *near})))

        return jump

    def _anew(self, t: float, y: Array) -> tuple[Key, Array]:
        return self._entered(t, y, self.key_at(t, y))

    def _entered(self, t: float, y: Array, key: Key) -> tuple[Key, Array]:
        """A mode and the state in which it is entered: on the surfaces on which it slides."""
        sides = self.sides(key)
        sliding = [i for i, side in enumerate(sides) if side == 0]
        return key, Blend(self, sides, sliding).projected(t, y) if sliding else y

    def _leaving(
        self, sides: list[int | None], blend: Blend, i: int, side: int
    ) -> Callable[..., tuple[Key, Array]]:
        after = list(sides)
        after[i] = side
        active = [k for k in blend.sliding if k != i]

        def jump(t: float, y: Array) -> tuple[Key, Array]:
            y = blend.projected(t, y)
            if not active:
                return self._settled(t, y, after), y
            return self.decide(t, y, after, active), y

        return jump

    # ------------------------------------------------------------ what follows at a surface

    def decide(self, t: float, y: Array, sides: Sequence[int | None], active: Sequence[int]) -> Key:
        """The mode in which the motion leaves a point on the surfaces in ``active``."""
        if not active:
            return self._settled(t, y, sides)
        if len(active) > MOST_AT_ONCE:
            raise ValueError(
                f"{len(active)} surfaces of switches meet at t = {t:.9g}; at most {MOST_AT_ONCE} "
                "can be told apart. Remedy: write the modes that matter as a Hybrid"
            )
        if self.tried[0] != t:
            self.tried = t, set()
        candidates = sorted(product((1, -1, 0), repeat=len(active)), key=lambda c: c.count(0))
        weak: list[list[int | None]] = []
        for zeros in range(len(active) + 1):
            found: list[list[int | None]] = []
            for candidate in candidates:
                if candidate.count(0) != zeros:
                    continue
                trial = list(sides)
                for i, side in zip(active, candidate):
                    trial[i] = side
                if (*active, *trial) in self.tried[1]:
                    continue
                verdict = self._holds(t, y, trial, active)
                if verdict > 0:
                    found.append(trial)
                elif verdict == 0:
                    weak.append(trial)
            if found:
                return self._chosen(t, y, found, sides, active)
        if weak:
            return self._chosen(t, y, weak[:1], sides, active)
        names = ", ".join(map(str, active))
        raise ValueError(
            f"the motion at t = {t:.9g} cannot go on: no side of the switches {names} leads away "
            "from their surfaces, and no combination of the sides is tangent to them. Remedy: "
            "write the modes that matter as a Hybrid"
        )

    def _chosen(
        self,
        t: float,
        y: Array,
        found: list[list[int | None]],
        sides: Sequence[int | None],
        active: Sequence[int],
    ) -> Key:
        choice = next((trial for trial in found if list(trial) == list(sides)), found[0])
        if len(found) > 1:
            others = ", ".join(repr(self.key(trial)) for trial in found)
            self.said.append(
                f"the motion is not unique at t = {t:.9g}: {others} all lead away from the "
                f"surface; {self.key(choice)!r} was taken"
            )
        self.tried[1].add((*active, *choice))
        return self._settled(t, y, choice)

    def _settled(self, t: float, y: Array, sides: Sequence[int | None]) -> Key:
        """The key of some sides: surfaces that make no difference are idle, others get a side."""
        final = list(sides)
        relevant: set[int] = set()
        for signs in self.corners(final, [i for i, side in enumerate(final) if side == 0]):
            relevant |= self.pieces.relevant(signs)
        for i in sorted(relevant):
            if final[i] is None:
                final[i] = 1 if self.value(self.surface(i, final), t, y) > 0 else -1
        return self.key([side if i in relevant else None for i, side in enumerate(final)])

    def _holds(self, t: float, y: Array, trial: list[int | None], active: Sequence[int]) -> int:
        """Whether a motion may go on so: 1 yes, 0 undecided, −1 no."""
        sliding = [i for i in active if trial[i] == 0]
        scale = self._speeds(t, y, trial, active)
        blend = Blend(self, trial, sliding) if sliding else None
        first = self._margins(t, y, trial, active, scale, blend)
        if first is None:
            return -1
        velocity = blend.velocity(t, y) if blend else self.velocity(tuple(trial), t, y)
        verdict = 1
        for place, margin in enumerate(first):
            if margin > self.undecided:
                continue
            if margin < -self.undecided:
                return -1
            change = 0.0
            for part in AHEAD:  # nearly zero: where does it go?
                delta = part * self.time_scale(y, velocity)
                later = self._margins(t + delta, y + delta * velocity, trial, active, scale, blend)
                if later is None:
                    return -1
                change = later[place] - margin
                if abs(change) > max(self.undecided, 1e-6 * part):
                    break
            else:
                verdict = 0
                continue
            if change < 0:
                return -1
        return verdict

    def _speeds(
        self, t: float, y: Array, trial: list[int | None], active: Sequence[int]
    ) -> dict[int, float]:
        """Largest |ġ| of each surface, over the sides around; a little later, if all vanish."""
        largest = dict.fromkeys(active, 0.0)
        for later in (0.0, AHEAD[-1]):
            for corner in self.corners(trial, active):
                velocity = self.velocity(corner, t, y)
                delta = later * self.time_scale(y, velocity)
                then, there = t + delta, y + delta * velocity
                moved = self.velocity(corner, then, there) if later else velocity
                for i in active:
                    rate = abs(self.rate(self.surface(i, trial), then, there, moved))
                    largest[i] = max(largest[i], rate)
            if all(largest.values()):
                break
        return largest

    def _margins(
        self,
        t: float,
        y: Array,
        trial: list[int | None],
        active: Sequence[int],
        scale: dict[int, float],
        blend: Blend | None,
    ) -> list[float] | None:
        """By how much the conditions of a mode hold; None if there is no sliding field."""
        margins = []
        if blend is not None:
            with np.errstate(all="ignore"):
                lam = blend.weights(t, y)
            if not np.all(np.isfinite(lam)):
                return None
            margins += [float(1 - abs(x)) for x in lam]
            margins += blend.attraction(t, y, scale)
            velocity = blend.velocity(t, y)
        else:
            velocity = self.velocity(tuple(trial), t, y)
        for i in active:
            if trial[i] != 0 and scale[i] > 0:
                rate = self.rate(self.surface(i, trial), t, y, velocity)
                margins.append((trial[i] or 0) * rate / scale[i])
            elif trial[i] != 0:
                margins.append(0.0)
        return margins

    # ------------------------------------------------------------ fields and surfaces

    def corners(self, sides: Sequence[int | None], around: Sequence[int]) -> list[Signs]:
        """All combinations of sides of some surfaces, the other sides given; + first."""
        found = []
        for signs in product((1, -1), repeat=len(around)):
            corner = [1 if side == 0 else side for side in sides]
            for i, sign in zip(around, signs):
                corner[i] = sign
            found.append(tuple(corner))
        return found

    def surface(self, i: int, sides: Sequence[int | None]) -> Callable[..., Any]:
        """g_i on these sides; a surface that one slides on is seen from its upper side."""
        return self._told(self.pieces.surface(i, tuple(1 if s == 0 else s for s in sides)))

    def common_rate(
        self, i: int, g: Any, corners: Sequence[Signs], fields: Sequence[Any]
    ) -> Traced | None:
        """ġ as a function, if it is the same one on all sides by structure; else None."""
        if self.mass is not None or not all(isinstance(f, Traced) for f in (g, *fields)):
            return None
        asked = (i, tuple(corners))
        if asked not in self._common:
            own = slice(None, None if g.k else 0)

            def rates(t: Any, y: Any, *p: Any) -> list[Any]:
                gradient = np.ravel(g.jacobian()(t, y, *p[own]))
                drift = np.ravel(g.time_derivative()(t, y, *p[own]))[0]
                return [gradient @ np.ravel(call(f, t, y, p)) + drift for f in fields]

            def differ(t: Any, y: Any, *p: Any) -> list[Any]:
                first, *others = rates(t, y, *p)
                return [rate - first for rate in others]

            apart = traced_as([g, *fields], differ, outputs=len(fields) - 1)
            first = traced_as([g, *fields], lambda t, y, *p: rates(t, y, *p)[:1], outputs=1)
            known = isinstance(apart, Traced) and isinstance(first, Traced)
            self._common[asked] = self._told(first) if known and _vanishes(apart) else None
        return self._common[asked]

    def field(self, signs: Signs) -> Callable[..., Any]:
        """The smooth field on these sides."""
        return self._told(self.pieces.field(signs))

    def _told(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that knows its dimensions, if it is traced."""
        if isinstance(function, Traced) and not function.is_traced:
            self.bound(function)(self.ivp.t_span[0], self.ivp.y0)
        return function

    def value(self, g: Callable[..., Any], t: float, y: Array) -> float:
        return float(np.asarray(self.bound(g)(t, y)).reshape(()))

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function(t, y)`` with the parameters filled in; looked up, since asking takes long."""
        known = self._bound.get(id(function))
        if known is None:
            known = self._bound[id(function)] = (function, self.ivp.bind(function))
        return known[1]

    def velocity(self, signs: Signs, t: float, y: Array) -> Array:
        """y' on these sides."""
        slope = np.asarray(self.bound(self.field(signs))(t, y), dtype=np.float64).ravel()
        return slope if self.mass is None else np.linalg.solve(self.mass, slope)

    def rate(self, g: Callable[..., Any], t: float, y: Array, velocity: Array) -> float:
        """ġ along a velocity: exact if g is traced, else by differences."""
        if isinstance(g, Traced):
            p = self.p if g.k else ()
            own = np.ravel(g.time_derivative()(t, y, *p))[0]
            return float(np.ravel(g.jacobian()(t, y, *p)) @ velocity + own)
        s = DIFFERENCE * self.time_scale(y, velocity)
        far, near = (
            self.value(g, t + d, y + d * velocity) - self.value(g, t - d, y - d * velocity)
            for d in (2 * s, s)
        )
        return (8 * near - far) / (12 * s)

    def gradient(self, g: Callable[..., Any], t: float, y: Array) -> Array:
        """∂g/∂y."""
        if isinstance(g, Traced):
            return np.ravel(g.jacobian()(t, y, *(self.p if g.k else ())))
        found = np.zeros(y.size)
        for i in range(y.size):
            d = 1e-5 * max(abs(float(y[i])), 1e-3 * float(np.max(np.abs(y))), 1e-6)
            up, down = y.copy(), y.copy()
            up[i] += d
            down[i] -= d
            found[i] = (self.value(g, t, up) - self.value(g, t, down)) / (up[i] - down[i])
        return found

    def blur(self, g: Callable[..., Any], t: float, y: Array) -> float:
        """What |g| may be by rounding alone."""
        sizes = np.maximum(np.abs(y), EPS * np.max(np.abs(y)))
        return ROUNDING * float(np.abs(self.gradient(g, t, y)) @ sizes) + TINY

    def time_scale(self, y: Array, velocity: Array) -> float:
        """Time in which the state changes by its own size, at most that of the run."""
        size, speed = float(abs(y).max()), float(abs(velocity).max())
        return min(self.length, size / speed) if size * speed > 0 else 1e-3 * self.length


def _vanishes(function: Any) -> bool:
    """Whether a traced function is zero by structure."""
    graph = function.graph
    return all(graph.ops[o] == "const" and graph.args[o][0] == 0.0 for o in graph.outputs)
