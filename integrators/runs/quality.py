"""What a run is worth: whether what the problem keeps was kept, and how errors grew on the way.

An integrator controls local errors and knows nothing of what becomes of them. The problem often
knows more: invariants, constraints, the books of energy. How far they drifted, relative to their
scale and to what the tolerance allows, is looked at after the run, at some of its states, when
``Solution.message`` or ``Solution.quality`` is first asked for; runs that nobody asks about pay
nothing. A drift out of proportion is told in the message; status and success stay.

Invariants do not see errors along the motion. Two things do: the growth of errors, from Jacobians
along the run (:attr:`Quality.sensitivity`), and a second run with a tighter tolerance
(:func:`global_error`, for ``solve(check="global")``).

Drift and growth are suspicions: how much of either a good run may have depends on the mechanism
(an energy may swing far where positions do not) and on how much better a method is than its
tolerance. Where a second run is cheap, it decides; where it is not, what is suspected counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .solution import Solution

__all__ = [
    "GlobalError",
    "Quality",
    "Watch",
    "global_error",
    "watched_invariants",
    "without_records",
]

Array = NDArray[np.float64]

#: States of a run that are looked at.
SAMPLES = 64

#: Parts of a run between jumps that are looked at.
MOST_PARTS_WATCHED = 32

#: Drift, in tolerances, that good runs stay below: local errors add up, and this is
#: the most that is usual for a method that just holds its tolerance.
PROPORTION = 10.0

#: Drift, in parts of the scale, that is told at any tolerance.
ALWAYS = 5e-3

#: The same for fixed steps, with which nobody says how many digits are wanted: four.
FIXED = 1e-4

#: Drift that is rounding, in parts of a scale …
ROUNDING = 1e-12
#: … and in parts of the quantity itself: errors of the sums that it is.
SUMMED = 1e-13

#: Error at the end, in tolerances, that local errors as large as allowed would make, above which a
#: run counts as sensitive: the digits asked for are not to be had from this tolerance. Where that
#: error is this part of the solution, no digit is, and the message says so.
SENSITIVE = 200.0
LOST = 0.1

#: Parts of steps and components for which growth is computed, and random errors sent along.
MOST_STEPS, MOST_COMPONENTS, ERRORS = 6000, 60, 4
#: Components for which that is done with a Jacobian that is no machine code: nobody who reads a
#: message waits for hundreds of large ones.
MOST_SLOW_COMPONENTS = 30

#: Operations of a traced f, times components, up to which its Jacobian is traced for that.
MOST_TRACED = 100_000

#: Steps at which errors are brought back onto constraints, and how small they are then.
MOST_STAYED, SMALL = 500, 1e-5

#: Steps are divided into parts h with h |J| at most this, but not too many.
LONGEST, MOST_PARTS = 1.0, 8

#: Tighter tolerance, or shorter step, of the second run; how tight and how much tighter it is at
#: least; and what error, in tolerances, is told.
TIGHTER, SHORTER = 100.0, 2.0
TIGHTEST, LEAST_TIGHTER = 1e-12, 10.0
FAR_OFF = 30.0

#: Parts of the allowed drift, and growth, above which a second run decides.
SUSPECTED_DRIFT, SUSPECTED_GROWTH = 0.3, 50.0
#: Part of a drift that is left in the second run if it is none of the integration.
UNREDUCED = 0.5
#: What the run may have cost for that, in operations, and the second one more than the first; and
#: how many operations an evaluation costs where modes change.
MOST_OPERATIONS, MOST_LONGER, WITH_MODES = 3e8, 20, 40_000


@dataclass(frozen=True)
class Watch:
    """One thing that should not drift.

    Attributes
    ----------
    name
        Such as "energy" or "loop gap".
    drift, t
        Largest change since the start, in the unit of the thing, and when.
    scale
        What the drift is compared with: the energy that moves, the size of the mechanism, or how
        far the value would change if every component did, in parts of it.
    allowed
        Drift over scale that the tolerance explains.
    """

    name: str
    drift: float
    t: float
    scale: float
    allowed: float

    @property
    def relative(self) -> float:
        """Drift over scale."""
        return self.drift / self.scale

    @property
    def ok(self) -> bool:
        """Whether the tolerance explains the drift."""
        return self.relative <= self.allowed

    def __str__(self) -> str:
        if not np.isfinite(self.drift):
            return f"{self.name} became NaN or infinite"
        return f"{self.name} drifted by {self.drift:.2g}, {self.relative:.1g} of its scale"


@dataclass(frozen=True)
class GlobalError:
    """Errors along a run, from a second one with a tighter tolerance.

    Attributes
    ----------
    t : (m,)
        Times at which both are known.
    error : (n, m)
        First run less second.
    relative : (m,)
        Largest component of it, in parts of the component's largest size along the run (of the
        largest of all, if that is a thousand times larger).
    source
        What the second run was, in words.
    """

    t: Array
    error: Array
    relative: Array
    source: str

    @property
    def end(self) -> float:
        """The relative error at the end."""
        return float(self.relative[-1]) if self.relative.size else float("nan")


class Quality:
    """What can be said of a run; see :attr:`Solution.quality`.

    Attributes
    ----------
    watches : tuple of Watch
        What was watched; empty if the problem keeps nothing that is known.
    rtol : float or None
        The tolerance asked for; None for a fixed step.
    global_error : GlobalError or None
        With ``solve(check="global")``.

    Examples
    --------
    An oscillator that a damping method robs of its energy:

    >>> from integrators import IVP, solve
    >>> energy = lambda t, y: y[0] ** 2 + y[1] ** 2
    >>> swing = IVP(lambda t, y: [y[1], -y[0]], [1.0, 0.0], (0, 10), invariants={"E": energy})
    >>> solve(swing, rtol=1e-8).quality.ok
    True
    >>> print(solve(swing, method="ImplicitEuler", step=0.05).quality.verdict)
    E drifted by 0.39, 0.2 of its scale
    """

    def __init__(
        self,
        solution: Solution,
        rtol: float | None,
        error: GlobalError | None = None,
        again: Callable[..., Solution] | None = None,
        atol: Any = 0.0,
    ) -> None:
        self.rtol, self.global_error, self._again = rtol, error, again
        self._least = np.asarray(atol, dtype=float) / rtol if rtol else 0.0
        self._evaluations, self._has_modes = solution.nfev, bool(solution.modes)
        self._watched_again: tuple[Watch, ...] = ()
        self._problem, self._t, self._y = solution.problem, solution.t, solution.y
        self._steps, self._jumps = solution.nsteps, any(map(len, solution.t_events))
        self.watches = _watches(solution, rtol)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against the run: what its message says."""
        far, told = self.error_at_end, [w for w in self.watches if not w.ok]
        if far is None:
            found = [str(w) for w in told]
            return (*found, self._grown) if self._is_lost else (*found,)
        asked = ALWAYS / FAR_OFF if self.rtol is None else self.rtol
        if far <= FAR_OFF * asked:
            return tuple(f"{w}{self._as_before(w)}" for w in told if self._as_before(w))
        error = self.global_error
        how = (
            f"a second run with a tolerance tighter by {self._tighter:.0f}"
            if error is None
            else error.source
        )
        said = f"its error at the end is about {far:.1g}, relative ({how})"
        return (*map(str, told), said)

    def _as_before(self, watch: Watch) -> str:
        """What to say of a drift that a tighter tolerance does not reduce; nothing of others."""
        if not np.isfinite(watch.drift):
            return " "
        second = next((w for w in self._watched_again if w.name == watch.name), None)
        if second is None or second.drift < UNREDUCED * watch.drift:
            return ""
        return ", with a tighter tolerance as well: the equations do not keep it"

    @functools.cached_property
    def error_at_end(self) -> float | None:
        """Relative error at the end, from a second run; None where there was none.

        A second run is made on request (``check="global"``), and where something is suspected of a
        run that was cheap. Of a mechanism it is the error of positions, in parts of its size
        (``IVP.distance``), of others the largest of the components.
        """
        if self.global_error is not None:
            return self._apart(self._y[:, -1] - self.global_error.error[:, -1], self.global_error)
        if not self._is_suspect() or not self._is_cheap():
            return None
        longer = min(MOST_LONGER, 3.0 * MOST_OPERATIONS / max(self._operations, 1.0))
        most = int(longer * (self._steps + 50))
        second = self._again(self._tighter, None, most)  # type: ignore[misc]
        if not second.success or second.reached is None:
            return None
        if not all(w.ok for w in self.watches):
            self._watched_again = _watches(second, self.rtol)
        return self._apart(second.reached[1])

    def _apart(self, right: Array, error: GlobalError | None = None) -> float:
        """How far the end is from where it should be, in parts of what moves."""
        distance = getattr(self._problem, "distance", None)
        if distance is not None:
            return float(distance(self._problem, float(self._t[-1]), self._y[:, -1], right))
        if error is not None:
            return error.end
        count = getattr(self._problem, "compared", len(right))
        return float((np.abs(self._y[:, -1] - right) / _sizes(self._y))[:count].max(initial=0.0))

    def _is_suspect(self) -> bool:
        """Whether to look closer, before anything is told.

        At a mechanism always: growth is that of errors of the size of the tolerance, which not
        every step keeps, and loops can be closed, energy be kept at a wrong place. So with
        differential-algebraic equations, of which nobody knows how errors grow.
        """
        if getattr(self._problem, "distance", None) is not None or self._is_algebraic:
            return True
        if any(w.relative > SUSPECTED_DRIFT * w.allowed for w in self.watches):
            return True
        return self._growth > SUSPECTED_GROWTH or self._is_lost

    @property
    def _is_algebraic(self) -> bool:
        """Whether the problem has constraints, or a mass matrix, which may be singular."""
        problem = self._problem
        return hasattr(problem, "compared") or getattr(problem, "mass", None) is not None

    def _is_cheap(self) -> bool:
        """Whether a second run costs little, can tell, and calls nothing that may do more."""
        if self._again is None or self.rtol is None or self._tighter < LEAST_TIGHTER:
            return False
        return _is_repeatable(self._problem) and self._operations <= MOST_OPERATIONS

    @property
    def _tighter(self) -> float:
        """By how much the tolerance of a second run is tighter."""
        return TIGHTER if self.rtol is None else min(TIGHTER, self.rtol / TIGHTEST)

    @property
    def _operations(self) -> float:
        """What the run cost, if f is traced."""
        each = _motion(self._problem).f.operations()["total"]
        return float(self._evaluations * (each + (WITH_MODES if self._has_modes else 0)))

    @functools.cached_property
    def sensitivity(self) -> float | None:
        """Error at the end, in tolerances, if each step made the error that it may make.

        From exact Jacobians at the steps: δ ← Φ δ + ε with Φ = exp(h J) and random ε of the size of
        the tolerance. None if there are no exact Jacobians, or large ones that are no machine code,
        for fixed steps, after jumps, and for output at other times than the steps.
        """
        try:
            run = self._t, self._y, self._steps, self._jumps
            return _sensitivity(self._problem, *run, self._least)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return None

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the run."""
        return not self.doubts and (self.error_at_end is not None or not self._growth > SENSITIVE)

    @property
    def _growth(self) -> float:
        """The sensitivity, where it is known and the error itself is not."""
        if self.rtol is None or self.global_error is not None:
            return 0.0
        growth = self.sensitivity
        return 0.0 if growth is None else growth

    @property
    def _is_lost(self) -> bool:
        """Whether growth may leave no digit."""
        return self._growth * (self.rtol or 0.0) > LOST

    @property
    def _grown(self) -> str:
        return (
            f"errors grow along it: those that the tolerance allows make about {self._growth:.0e} "
            "tolerances at the end; solve(check='global') tells more"
        )

    @property
    def verdict(self) -> str:
        """What speaks against the run, in words; "nothing speaks against it"."""
        said = list(self.doubts)
        if self.error_at_end is None and self._growth > SENSITIVE and self._grown not in said:
            said.append(self._grown)
        if said:
            return "; ".join(said)
        known = self.watches or self.global_error or self.sensitivity is not None
        return "nothing speaks against it" if known else "nothing is known that could be watched"

    def __repr__(self) -> str:
        return f"<Quality: {self.verdict}>"


# ---------------------------------------------------------------------- what is kept


def _watches(solution: Solution, rtol: float | None) -> tuple[Watch, ...]:
    problem = solution.problem
    watch = getattr(problem, "watch", None) or watched_invariants
    if solution.parts and not hasattr(problem, "invariants"):  # each mode has its own
        return tuple(
            replace(found, name=f"{found.name} in mode {stay.mode!r}")
            for stay, part in zip(solution.modes, solution.parts)
            for found in part.quality.watches
        )
    if not solution.t.size or not hasattr(problem, "invariants"):
        return ()
    allowed = FIXED if rtol is None else float(np.clip(PROPORTION * rtol, ROUNDING, ALWAYS))
    worst: dict[str, Watch] = {}
    for part in _between_jumps(solution):
        with np.errstate(all="ignore"):  # a run may have exploded
            found = watch(problem, solution.t[part], solution.y[:, part])
        for name, (t, values, scale, factor) in found.items():
            if scale > 0.0:
                here = Watch(name, *_largest(t, values), scale, factor * allowed)
                worst[name] = _worse(worst.get(name), here)
    return tuple(worst.values())


def _between_jumps(solution: Solution) -> list[slice]:
    """Parts of the output between resets of the state, which may change whatever they like."""
    t, events = solution.t, getattr(solution.problem, "events", ())
    resets = [times for event, times in zip(events, solution.t_events) if event.reset is not None]
    jumps = np.unique(np.concatenate([*resets, np.zeros(0)]))
    if not jumps.size:
        return [slice(0, t.size)]
    forward = 1.0 if t[-1] >= t[0] else -1.0
    first = np.searchsorted(forward * t, forward * jumps, side="left")
    beyond = np.searchsorted(forward * t, forward * jumps, side="right")
    # Of two states at the time of a jump the first is the one before it; a single one that after.
    ends = np.unique([0, *np.where(beyond > first + 1, beyond - 1, first), t.size])
    parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    if len(parts) > MOST_PARTS_WATCHED:
        some = np.linspace(0, len(parts) - 1, MOST_PARTS_WATCHED).round().astype(int)
        parts = [parts[k] for k in some]
    return parts


def _worse(known: Watch | None, here: Watch) -> Watch:
    """The larger drift of two parts of a run, on the larger of their scales."""
    if known is None:
        return here
    larger = max((known, here), key=lambda w: w.drift if np.isfinite(w.drift) else np.inf)
    return replace(larger, scale=max(known.scale, here.scale))


def _largest(t: Array, values: Array) -> tuple[float, float]:
    change = np.abs(values - values[..., :1]).reshape(-1, values.shape[-1]).max(axis=0)
    change = np.where(change <= SUMMED * np.abs(values).max(initial=0.0), 0.0, change)
    k = int(np.argmax(np.where(np.isfinite(change), change, np.inf)))
    return float(change[k]), float(t[k])


def samples(t: Array) -> NDArray[np.int64]:
    """Numbers of the states that are looked at: first and last, and some between."""
    return np.unique(np.linspace(0, len(t) - 1, min(len(t), SAMPLES)).round().astype(int))


Watched = tuple[Array, Array, float, float]  # times, values, scale, and a factor for the allowance


def watched_invariants(
    problem: Any, t: Array, y: Array, leave_out: Sequence[str] = ()
) -> Mapping[str, Watched]:
    """Invariants along a run; their scale is their change if every component grew by itself."""
    some = samples(t)
    found: dict[str, Watched] = {}
    for name, function in problem.invariants.items():
        if name in leave_out:
            continue
        g = problem.bind(function)
        values = np.array([_number(g(float(t[k]), y[:, k])) for k in some])
        scale = max(_reach(g, float(t[k]), y[:, k]) for k in (some[0], some[len(some) // 2]))
        if values.ndim == 1 and np.isfinite(scale):
            found[name] = t[some], values, scale, 1.0
    return found


def _number(value: Any) -> float:
    return float(np.real(np.asarray(value)).reshape(()))


def _reach(g: Callable[..., Any], t: float, y: NDArray[Any]) -> float:
    """Σ |∂g/∂yᵢ| |yᵢ|, by differences; at least |g|."""
    here, total = _number(g(t, y)), 0.0
    for i in np.flatnonzero(y):
        moved = np.array(y)
        moved[i] *= 1.0 + 1e-6
        total += abs(_number(g(t, moved)) - here) / 1e-6
    return max(total, abs(here))


# ---------------------------------------------------------------------- how errors grow


def _sensitivity(
    problem: Any, t: Array, y: Array, steps: int, jumps: bool, least: Any
) -> float | None:
    every_step = len(t) == steps + 1 and not jumps
    if not every_step or len(t) < 2 or np.iscomplexobj(y) or not np.isfinite(y).all():
        return None
    stay: Callable[..., Any] | None = None
    if hasattr(problem, "growing") and (found := problem.growing(t, y)) is not None:
        problem, y, stay = found
    jac = _exact_jacobian(problem)
    if jac is None or problem.mass is not None:
        return None
    most = MOST_COMPONENTS if hasattr(jac, "machine_code") else MOST_SLOW_COMPONENTS
    if len(y) > most:
        return None
    together = -(-len(t) // (MOST_STEPS // 2))  # of very many steps, some are taken as one
    if together > 1:
        some = np.append(np.arange(0, len(t) - 1, together), len(t) - 1)
        t, y = t[some], y[:, some]
    scale, n = _sizes(y), len(y)
    # A tolerance allows what atol does, where components are small: forces of stiff contacts live
    # on that. (States that a problem grows by may be others than those that it asks for.)
    small = np.maximum(1e-3 * scale, np.minimum(least, scale) if np.size(least) in (1, n) else 0.0)
    jacobian = problem.bind(jac)
    ends = np.array([_dense(jacobian(float(s), x)) for s, x in zip(t, y.T)])
    size = np.abs(ends * scale / scale[:, None]).sum(axis=2).max(axis=1)  # in relative errors
    parts = np.abs(np.diff(t)) * np.maximum(size[1:], size[:-1]) / LONGEST
    parts = np.minimum(np.ceil(parts), MOST_PARTS).astype(int).clip(1)
    if parts.sum() > MOST_STEPS:
        return None
    times, states, last = _between(problem, t, y, parts)
    J = np.array([_dense(jacobian(float(s), x)) for s, x in zip(times, states.T)])
    A = np.repeat(np.diff(t) / parts, parts)[:, None, None] * J
    B = np.eye(n) + A @ A / 12.0
    flow = np.linalg.solve(B - 0.5 * A, B + 0.5 * A)  # Padé's approximation of exp(A)
    rng = np.random.default_rng(0)
    every = 1 if stay is None else -(-len(t) // MOST_STAYED)
    delta, step = np.zeros((n, ERRORS)), 0
    for part, is_last in zip(flow, last):
        delta = part @ delta
        if is_last:
            step += 1
            if step % every == 0:
                x = y[:, step]
                share = np.sqrt(together * every / n)
                error = share * (np.abs(x) + small)[:, None] * rng.normal(size=(n, ERRORS))
                delta += error if stay is None else _stayed(problem, stay, t[step], x, error)
    return float(np.median(np.sqrt(np.mean((delta / scale[:, None]) ** 2, axis=0))))


def _exact_jacobian(problem: Any) -> Any:
    """The problem's Jacobian, or that of a right-hand side that was traced."""
    if callable(jac := getattr(problem, "jac", None)):
        return jac
    f: Any = getattr(problem, "f", None)
    if not hasattr(f, "jacobian") or f.operations()["total"] * problem.n > MOST_TRACED:
        return None
    return f.jacobian()


def _stayed(problem: Any, stay: Callable[..., Any], t: float, x: Array, error: Array) -> Array:
    """Errors that are left when states are brought back onto the constraints."""
    onto = problem.bind(stay)
    here = onto(float(t), x)
    moved = [onto(float(t), x + SMALL * column) for column in error.T]
    return (np.array(moved) - here).T / SMALL


def _between(problem: Any, t: Array, y: Array, parts: Any) -> tuple[Array, Array, Any]:
    """Times and states in the middle of the parts of each step, on cubics; the last of each."""
    step = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(step)) - np.repeat(np.cumsum(parts) - parts, parts)
    s = (number + 0.5) / parts[step]
    h = np.diff(t)[step]
    slope = np.array([problem.rhs(float(a), x) for a, x in zip(t, y.T)]).T
    start, end = y[:, step], y[:, step + 1]
    r = 1.0 - s
    cubic = r * r * (1.0 + 2.0 * s) * start + s * s * (3.0 - 2.0 * s) * end
    cubic += h * s * r * (r * slope[:, step] - s * slope[:, step + 1])
    return t[step] + s * h, cubic, number == parts[step] - 1


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)


def _sizes(y: NDArray[Any]) -> Array:
    """Largest size of each component, at least a thousandth of the largest of all."""
    sizes = np.abs(y).max(axis=1, initial=0.0)
    return np.maximum(sizes, max(1e-3 * float(sizes.max(initial=0.0)), np.finfo(float).tiny))


# ---------------------------------------------------------------------- a second run


def _is_repeatable(problem: Any) -> bool:
    """Whether a run calls no function that may do more than compute.

    Functions that are not traced are never called behind the back of whoever wrote them: they may
    print, count, or remember what they were called with.
    """
    motion = _motion(problem)
    schedule = getattr(motion, "schedule", None)
    return (
        hasattr(getattr(motion, "f", None), "operations")
        and (schedule is None or schedule.repeatable)
        and not without_records(problem).events
    )


def _motion(problem: Any) -> Any:
    """The equations of motion: of a problem with modes, those of the mode that it names for all."""
    return getattr(problem, "free_motion", problem)


def without_records(problem: Any) -> Any:
    """Return the problem without events that are only looked for: they change nothing."""
    events = getattr(problem, "events", ())
    acting = tuple(e for e in events if e.reset is not None or e.terminal)
    return problem if len(acting) == len(events) else problem.with_(events=acting)


def global_error(
    solution: Solution, again: Callable[[float, Array], Solution], rtol: float | None
) -> GlobalError:
    """Estimate errors along a run.

    Parameters
    ----------
    solution
        The run.
    again
        ``again(factor, times)`` runs the same method with a tolerance tighter, or a step shorter,
        by a factor, and output at these times.
    rtol
        The run's tolerance; None for a fixed step.
    """
    factor = SHORTER if rtol is None else TIGHTER
    times, keep = np.unique(solution.t, return_index=True)
    last = np.append(np.diff(solution.t) != 0.0, True)  # of two states at a jump, that after it
    keep = np.array([k if last[k] else k + 1 for k in keep], dtype=int)
    if solution.t.size > 1 and solution.t[-1] < solution.t[0]:
        times, keep = times[::-1], keep[::-1]
    how = f"a second run with a {'step shorter' if rtol is None else 'tolerance tighter'} by "
    second = again(factor, times)
    known = min(second.t.size, times.size)
    if not second.success:
        how = f"failed: {second.message}; {how}"
    error = solution.y[:, keep[:known]] - second.y[:, :known]
    # Components that a run chooses for itself differ between runs, and mean nothing.
    count = getattr(solution.problem, "compared", len(error))
    relative = (np.abs(error) / _sizes(solution.y)[:, None])[:count].max(axis=0, initial=0.0)
    if not second.success:
        relative = np.append(relative, np.nan)[-max(known, 1) :]
    return GlobalError(times[:known], error, relative, f"{how}{factor:g}")
